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
 *     MARK, CROWD, threads, seed, costs, probe
 *                                    so many threads will enter, and run on clocks of the directory's (below) until
 *                                    the end
 *
 * Written to the file that the argument out=FILE names, a line each:
 *
 *     case NUMBER ITEMS TIME FAILED  the time on the directory's clocks; compare-and-swaps that failed. 0 without a
 *                                    crowd
 *     count THREAD LENGTH ACCESSES READS WRITES UPGRADES
 *     line LENGTH OFFSET MOVED       how often the line so far behind its region's start moved, upgrades included;
 *                                    small regions only
 *
 * LENGTH is 0 for what lies in no region; then OFFSET is an address.
 *
 * A crowd. Of its threads one runs at a time: after each access the one whose clock shows least, but it goes on while
 * it is ahead by less than an eighth of a transfer. So threads are switched anywhere inside calls, and the same way in
 * each run of one seed. costs points to three words, the costs of an access, of a transfer and of a pause:
 *
 * - an access, and a transfer, costs half to one and a half of its cost, as the seed has it;
 * - a read of a line that has to come, and a locked operation on one that has to come or that others hold, cost a
 *   transfer more, which begins when the line's last transfer is over. A locked operation begins when this thread's
 *   stores are over;
 * - a store does not wait for its line. Its transfer is the line's, and what the same thread stores later is seen no
 *   earlier than it;
 * - a system call costs eight transfers. A thread that sleeps in one lets the others run, and goes on at the time that
 *   they have come to: only then does it depend on real time how threads are switched.
 *
 * A compare-and-swap has failed if its line is the same before and after it. To compare them the directory reads the
 * program's memory, where it lies at the program's own addresses; probe is the address of a word that holds PROBE.
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
typedef void (*instruction_callback)(unsigned vcpu, void *);
typedef void (*return_callback)(qemu_plugin_id_t, unsigned vcpu, int64_t number, int64_t result);
typedef void (*syscall_callback)(qemu_plugin_id_t, unsigned vcpu, int64_t number, uint64_t, uint64_t, uint64_t,
                                 uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, tb_callback);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t, syscall_callback);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t, return_callback);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, instruction_callback, enum qemu_plugin_cb_flags,
                                            void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, mem_callback, enum qemu_plugin_cb_flags,
                                      enum qemu_plugin_mem_rw, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

enum { MARK = 0xC0DE };
enum { BEGIN, REGION, ENTER, LEAVE, PAUSE, RESUME, END, CROWD };
enum { AHEAD = 8, SYSTEM = 8 };
/* Of Linux on x86-64. */
enum { NANOSLEEP = 35, FUTEX = 202, CLOCK_NANOSLEEP = 230, FUTEX_WAIT = 0, FUTEX_WAIT_BITSET = 9, FUTEX_COMMAND = 127 };
#define PROBE UINT64_C(0x636F72656C616E65)
enum { LINE_BITS = 6, THREADS = 64, VCPUS = 4096, KINDS = 256, TABLE_BITS = 18, SMALL = 2048 };

struct line {
    uint64_t number;
    uint64_t holders; /* a bit a thread */
    uint64_t offset;  /* behind the start of its region */
    uint64_t moved;
    uint32_t era; /* of another one than the present: this entry is free */
    int16_t writer; /* the last one; -1: none */
    uint16_t kind;
    uint64_t free;    /* when its last transfer is over */
    bool is_known;    /* what it holds: */
    uint64_t held[8];
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

/* What an instruction does, beside plain accesses. */
enum operation { PLAIN, LOCKED, COMPARE };

static struct {
    unsigned expected, entered;
    int turn; /* the thread that runs; -1: none */
    uint64_t access, transfer, pause, now, failed;
} crowd = {.turn = -1};
static struct {
    bool is_in, sleeps;
    uint64_t clock, stored, random; /* stored: when its stores are over */
    pthread_cond_t is_next;
} threads[THREADS];

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

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* The thread that is to run, by the least clock; -1: all have left, or sleep. */
static int least(void) {
    int least = -1;
    for (int thread = 0; thread < (int)crowd.expected; thread++) {
        if (threads[thread].is_in && !threads[thread].sleeps &&
            (least < 0 || threads[thread].clock < threads[least].clock)) {
            least = thread;
        }
    }
    return least;
}

/* Lets the next one run. */
static void pass(void) {
    crowd.turn = least();
    if (crowd.turn >= 0) {
        crowd.now = later(crowd.now, threads[crowd.turn].clock);
        pthread_cond_signal(&threads[crowd.turn].is_next);
    }
}

static void await_turn(int thread) {
    while (crowd.turn != thread) {
        pthread_cond_wait(&threads[thread].is_next, &lock);
    }
}

/* Lets another one run, if this one is ahead. */
static void go_on(int thread) {
    crowd.now = later(crowd.now, threads[thread].clock);
    if (threads[thread].clock > threads[least()].clock + crowd.transfer / AHEAD) {
        pass();
        await_turn(thread);
    }
}

static void join(int thread) {
    threads[thread].is_in = true;
    if (++crowd.entered == crowd.expected) {
        pass();
    }
    await_turn(thread);
}

/* Half to one and a half of a cost. Threads that cost the same each time could keep in step for ever. */
static uint64_t about(unsigned thread, uint64_t cost) {
    uint64_t *random = &threads[thread].random;
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    return cost / 2 + *random % (cost + 1);
}

static void charge(unsigned thread, struct line *line, bool moves, bool is_shared, bool store,
                   enum operation operation) {
    uint64_t *clock = &threads[thread].clock, *stored = &threads[thread].stored;
    *clock += about(thread, crowd.access);
    uint64_t done = later(*clock, line->free) + about(thread, crowd.transfer);
    if (store && operation == PLAIN) {
        *stored = later(*stored, moves ? done : *clock);
        line->free = later(line->free, *stored);
    } else if (moves) {
        *clock = done;
        // Caches that read what one of them wrote are served together.
        line->free = store || !is_shared ? done : line->free;
    }
}

/* Whether the line holds what it held. */
static bool is_as_it_was(struct line *line) {
    const uint64_t *words = (const uint64_t *)(uintptr_t)(line->number << LINE_BITS);
    bool same = line->is_known && memcmp(line->held, words, sizeof line->held) == 0;
    memcpy(line->held, words, sizeof line->held);
    line->is_known = true;
    return same;
}

static void touch(unsigned thread, bool counted, uint64_t number, bool store, enum operation operation) {
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
    if (crowd.expected != 0) {
        charge(thread, line, read || write || upgrade, (line->holders & (line->holders - 1)) != 0, store, operation);
        crowd.failed += is_as_it_was(line) && operation == COMPARE;
    }
    line->holders = store ? me : line->holders | me;
    if (store) {
        line->writer = (int16_t)thread;
    }
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t address, void *operation) {
    if (!vcpus[vcpu % VCPUS].inside) {
        return;
    }
    uint64_t last = (address + (UINT64_C(1) << qemu_plugin_mem_size_shift(info)) - 1) >> LINE_BITS;
    pthread_mutex_lock(&lock);
    for (uint64_t number = address >> LINE_BITS; number <= last; number++) {
        touch(vcpus[vcpu % VCPUS].thread, vcpus[vcpu % VCPUS].counted, number, qemu_plugin_mem_is_store(info),
              (enum operation)(uintptr_t)operation);
    }
    if (crowd.expected != 0) {
        go_on((int)vcpus[vcpu % VCPUS].thread);
    }
    pthread_mutex_unlock(&lock);
}

/* Before a locked operation, which another thread's may overtake while this one's stores are not over. */
static void on_locked(unsigned vcpu, void *unused) {
    (void)unused;
    if (vcpus[vcpu % VCPUS].inside && crowd.expected != 0) {
        pthread_mutex_lock(&lock);
        int thread = (int)vcpus[vcpu % VCPUS].thread;
        threads[thread].clock = later(threads[thread].clock, threads[thread].stored);
        go_on(thread);
        pthread_mutex_unlock(&lock);
    }
}

static void on_pause(unsigned vcpu, void *unused) {
    (void)unused;
    if (vcpus[vcpu % VCPUS].inside && crowd.expected != 0) {
        pthread_mutex_lock(&lock);
        threads[vcpus[vcpu % VCPUS].thread].clock += crowd.pause;
        pthread_mutex_unlock(&lock);
    }
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

static void begin_crowd(uint64_t expected, uint64_t seed, const uint64_t *costs, const uint64_t *probe) {
    if (expected == 0 || expected > THREADS) {
        give_up("too many threads");
    }
    if (*probe != PROBE) {
        give_up("the program's memory does not lie at its own addresses");
    }
    crowd.expected = (unsigned)expected;
    crowd.entered = 0;
    crowd.turn = -1;
    crowd.access = costs[0], crowd.transfer = costs[1], crowd.pause = costs[2];
    crowd.now = crowd.failed = 0;
    for (unsigned thread = 0; thread < THREADS; thread++) {
        threads[thread].is_in = threads[thread].sleeps = false;
        threads[thread].clock = threads[thread].stored = 0;
        threads[thread].random = (seed * THREADS + thread + 1) * UINT64_C(0x9E3779B97F4A7C15);
    }
}

static void end(uint64_t number, uint64_t items) {
    fprintf(out, "case %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", number, items, crowd.now, crowd.failed);
    crowd.expected = 0;
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

static void leave_for_the_system(unsigned vcpu, bool sleeps) {
    if (vcpu < VCPUS && vcpus[vcpu].inside && crowd.expected != 0) {
        pthread_mutex_lock(&lock);
        threads[vcpus[vcpu].thread].clock += SYSTEM * crowd.transfer;
        if (sleeps) {
            threads[vcpus[vcpu].thread].sleeps = true;
            pass();
        }
        pthread_mutex_unlock(&lock);
    }
}

static void on_return(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result) {
    (void)id, (void)number, (void)result;
    if (vcpu < VCPUS && vcpus[vcpu].inside && threads[vcpus[vcpu].thread].sleeps) {
        pthread_mutex_lock(&lock);
        int thread = (int)vcpus[vcpu].thread;
        threads[thread].sleeps = false;
        threads[thread].clock = later(threads[thread].clock, crowd.now);
        if (crowd.turn < 0) {
            pass();
        }
        await_turn(thread);
        pthread_mutex_unlock(&lock);
    }
}

static void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t what, uint64_t a, uint64_t b,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)a6, (void)a7, (void)a8;
    if (number != MARK) {
        bool sleeps =
            number == FUTEX && ((a & FUTEX_COMMAND) == FUTEX_WAIT || (a & FUTEX_COMMAND) == FUTEX_WAIT_BITSET);
        leave_for_the_system(vcpu, sleeps || number == NANOSLEEP || number == CLOCK_NANOSLEEP);
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
        if (crowd.expected != 0) {
            join((int)a);
        }
        break;
    case LEAVE:
        vcpus[vcpu].inside = false;
        if (crowd.expected != 0) {
            threads[vcpus[vcpu].thread].is_in = false;
            crowd.now = later(crowd.now, later(threads[vcpus[vcpu].thread].clock, threads[vcpus[vcpu].thread].stored));
            pass();
        }
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
    case CROWD:
        begin_crowd(a, b, (const uint64_t *)(uintptr_t)a4, (const uint64_t *)(uintptr_t)a5);
        break;
    }
    pthread_mutex_unlock(&lock);
}

/* What an instruction of x86-64 does: one with a lock prefix, or an exchange with memory, which needs none. */
static enum operation operation(const uint8_t *byte, const uint8_t *end) {
    bool locked = false;
    for (; byte < end && (*byte == 0xF0 || *byte == 0x66 || (*byte & 0xF0) == 0x40); byte++) {
        locked |= *byte == 0xF0;
    }
    if (end - byte >= 2 && byte[0] == 0x0F && (byte[1] == 0xB0 || byte[1] == 0xB1 || byte[1] == 0xC7) && locked) {
        return COMPARE;
    }
    return locked || (byte < end && (*byte == 0x86 || *byte == 0x87)) ? LOCKED : PLAIN;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    size_t n = qemu_plugin_tb_n_insns(block);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        const uint8_t *bytes = qemu_plugin_insn_data(instruction);
        size_t length = qemu_plugin_insn_size(instruction);
        enum operation does = operation(bytes, bytes + length);
        if (does != PLAIN) {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_locked, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
        qemu_plugin_register_vcpu_mem_cb(instruction, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                         (void *)(uintptr_t)does);
        if (length == 2 && bytes[0] == 0xF3 && bytes[1] == 0x90) {
            qemu_plugin_register_vcpu_insn_exec_cb(instruction, on_pause, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
    }
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    if (argc != 1 || strncmp(argv[0], "out=", 4) != 0 || (out = fopen(argv[0] + 4, "w")) == NULL) {
        fprintf(stderr, "directory of cache lines: needs out=FILE, a file that can be written\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    for (unsigned thread = 0; thread < THREADS; thread++) {
        pthread_cond_init(&threads[thread].is_next, NULL);
    }
    qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_return);
    return 0;
}
