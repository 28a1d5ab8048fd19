/*
 * A directory of cache lines, as a plugin of QEMU's user emulation: it counts which lines move from thread to thread.
 *
 * For each line of 64 bytes the directory knows which threads hold it, and which thread wrote it last. Caches have no
 * end, so a line leaves one only when another thread writes it:
 *
 * - a read of a line that the thread does not hold and another one wrote moves it here; the others keep it;
 * - a write to a line that the thread does not hold and others do moves it here, and away from them;
 * - a write to a line that the thread holds, and others too, is an upgrade: nothing moves, but the others lose it.
 *
 * A thread that meets a line first, as nobody wrote or holds it, moves nothing.
 *
 * The program tells the directory what to look at by system calls with a number that no kernel knows. Without this
 * plugin they fail and do nothing; and unlike a store to an agreed address they carry words, which a plugin of this
 * interface cannot read from memory.
 *
 *     MARK, BEGIN                    forget everything
 *     MARK, REGION, start, length    what lies there is counted apart, together with all regions of this length
 *     MARK, ENTER, thread, counted   this thread's accesses are seen from now on, under this number; counted, or only
 *                                    remembered (warm-up)
 *     MARK, LEAVE                    this thread's accesses are not seen from now on
 *     MARK, PAUSE; MARK, RESUME      as LEAVE, and back to what was before
 *     MARK, END, case, items         write the counts, with these two words
 *
 * Written to the file that the argument out=FILE names, a line each:
 *
 *     case NUMBER ITEMS
 *     count THREAD LENGTH ACCESSES READS WRITES UPGRADES
 *     line LENGTH OFFSET MOVED       how often the line so far behind its region's start moved, upgrades included;
 *                                    small regions only
 *
 * LENGTH is 0 for what lies in no region; then OFFSET is an address.
 *
 * The declarations are those of the plugin interface, version 1, as QEMU documents it; Debian packages no header.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
typedef void (*tb_callback)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*mem_callback)(unsigned vcpu, qemu_plugin_meminfo_t, uint64_t address, void *);
typedef void (*syscall_callback)(qemu_plugin_id_t, unsigned vcpu, int64_t number, uint64_t, uint64_t, uint64_t,
                                 uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, tb_callback);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, syscall_callback);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, mem_callback, enum qemu_plugin_cb_flags,
                                      enum qemu_plugin_mem_rw, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

enum { MARK = 0xC0DE };
enum { BEGIN, REGION, ENTER, LEAVE, PAUSE, RESUME, END };
enum { LINE_BITS = 6, THREADS = 64, VCPUS = 4096, KINDS = 256, TABLE_BITS = 18, SMALL = 2048 };

struct line {
    uint64_t number;
    uint64_t holders; /* a bit a thread */
    uint64_t offset;  /* behind the start of its region */
    uint64_t moved;
    uint32_t era; /* of another one than the present: this entry is free */
    int16_t writer; /* the last one; -1: none */
    uint16_t kind;
};

struct counts {
    uint64_t accesses, reads, writes, upgrades;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static uint32_t era = 1;
static struct line table[1 << TABLE_BITS];
static unsigned lines;
static uint64_t lengths[KINDS]; /* what each kind of region is: its length; the first is no region */
static unsigned kinds = 1;
static struct counts counts[THREADS][KINDS];
/* Each is changed and read by its own thread only. */
static struct {
    bool inside, counted, paused;
    unsigned thread;
} vcpus[VCPUS];

static void give_up(const char *why) {
    fprintf(stderr, "directory of cache lines: %s\n", why);
    _exit(70);
}

static struct line *find(uint64_t number) {
    unsigned at = (number * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - TABLE_BITS);
    while (table[at].era == era && table[at].number != number) {
        at = (at + 1) & ((1 << TABLE_BITS) - 1);
    }
    struct line *line = &table[at];
    if (line->era != era) {
        if (++lines > (1 << TABLE_BITS) / 2) {
            give_up("too many lines");
        }
        *line = (struct line){.number = number, .offset = number << LINE_BITS, .era = era, .writer = -1};
    }
    return line;
}

static void touch(unsigned thread, bool counted, uint64_t number, bool store) {
    struct line *line = find(number);
    struct counts *count = &counts[thread][line->kind];
    uint64_t me = UINT64_C(1) << thread;
    bool held = line->holders & me, others = line->holders & ~me;
    bool read = !store && !held && line->writer >= 0;
    bool write = store && !held && others, upgrade = store && held && others;
    if (counted) {
        count->accesses++;
        count->reads += read;
        count->writes += write;
        count->upgrades += upgrade;
        line->moved += read || write || upgrade;
    }
    line->holders = store ? me : line->holders | me;
    if (store) {
        line->writer = (int16_t)thread;
    }
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *unused) {
    (void)unused;
    if (!vcpus[vcpu % VCPUS].inside) {
        return;
    }
    uint64_t last = (address + (UINT64_C(1) << qemu_plugin_mem_size_shift(info)) - 1) >> LINE_BITS;
    pthread_mutex_lock(&lock);
    for (uint64_t number = address >> LINE_BITS; number <= last; number++) {
        touch(vcpus[vcpu % VCPUS].thread, vcpus[vcpu % VCPUS].counted, number, qemu_plugin_mem_is_store(info));
    }
    pthread_mutex_unlock(&lock);
}

static void begin(void) {
    era++;
    lines = 0;
    kinds = 1;
    memset(counts, 0, sizeof counts);
}

static void region(uint64_t start, uint64_t length) {
    unsigned kind = 1;
    while (kind < kinds && lengths[kind] != length) {
        kind++;
    }
    if (kind == KINDS) {
        give_up("too many kinds of regions");
    }
    if (kind == kinds) {
        lengths[kinds++] = length;
    }
    for (uint64_t number = start >> LINE_BITS; length != 0 && number <= (start + length - 1) >> LINE_BITS; number++) {
        struct line *line = find(number);
        line->kind = (uint16_t)kind;
        line->offset = (number << LINE_BITS) - (start & ~UINT64_C(63));
    }
}

static void end(uint64_t number, uint64_t items) {
    fprintf(out, "case %" PRIu64 " %" PRIu64 "\n", number, items);
    for (unsigned thread = 0; thread < THREADS; thread++) {
        for (unsigned kind = 0; kind < kinds; kind++) {
            struct counts *c = &counts[thread][kind];
            if (c->accesses != 0) {
                fprintf(out, "count %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                        thread, lengths[kind], c->accesses, c->reads, c->writes, c->upgrades);
            }
        }
    }
    for (unsigned at = 0; at < 1 << TABLE_BITS; at++) {
        struct line *line = &table[at];
        if (line->era == era && line->moved != 0 && lengths[line->kind] <= SMALL) {
            fprintf(out, "line %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", lengths[line->kind], line->offset, line->moved);
        }
    }
    fflush(out);
}

static void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t what, uint64_t a, uint64_t b,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != MARK) {
        return;
    }
    if (vcpu >= VCPUS || (what == ENTER && a >= THREADS)) {
        give_up("too many threads");
    }
    pthread_mutex_lock(&lock);
    switch (what) {
    case BEGIN:
        begin();
        break;
    case REGION:
        region(a, b);
        break;
    case ENTER:
        vcpus[vcpu].inside = true;
        vcpus[vcpu].thread = (unsigned)a;
        vcpus[vcpu].counted = b != 0;
        break;
    case LEAVE:
        vcpus[vcpu].inside = false;
        break;
    case PAUSE:
        vcpus[vcpu].paused = vcpus[vcpu].inside;
        vcpus[vcpu].inside = false;
        break;
    case RESUME:
        vcpus[vcpu].inside = vcpus[vcpu].paused;
        break;
    case END:
        end(a, b);
        break;
    }
    pthread_mutex_unlock(&lock);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(block);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
    }
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    if (argc != 1 || strncmp(argv[0], "out=", 4) != 0 || (out = fopen(argv[0] + 4, "w")) == NULL) {
        fprintf(stderr, "directory of cache lines: needs out=FILE, a file that can be written\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    return 0;
}
