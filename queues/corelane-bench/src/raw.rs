//! The only `unsafe` code of this crate: a clock that is cheap enough for the inside of a loop, `unsafe` calls of
//! contenders, the address of a packet socket, and calls to the emulator's directory of cache lines.

use gil::spsc::Sender;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Ticks of the CPU's constant-rate counter, read in some 10 ns without a system call.
///
/// The counter is the time stamp counter on x86-64, as in the B-Queue paper, and the virtual counter on aarch64.
/// Elsewhere it counts nanoseconds. The counters of all CPUs are assumed to agree. `machine.rs` checks that if the
/// system tells.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 CPU has the instruction, and it touches nothing.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let ticks: u64;
        // SAFETY: systems let user programs read the virtual counter, and it touches nothing.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// The address of a packet socket that sends on the interface with this index, and receives nothing.
#[cfg(target_os = "linux")]
pub(crate) fn packet_address(index: i32) -> socket2::SockAddr {
    let mut storage = socket2::SockAddrStorage::zeroed();
    // SAFETY: `sockaddr_ll` is an address type of this system, all its fields are numbers, and those that are not set
    // here are zero. Its family and its length say what it is.
    unsafe {
        let address = storage.view_as::<libc::sockaddr_ll>();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = index;
        socket2::SockAddr::new(storage, size_of::<libc::sockaddr_ll>() as u32)
    }
}

/// Copies items into the free run of a gil queue and publishes them. Returns how many.
#[inline(always)]
pub(crate) fn gil_push_slice<T: Copy>(tx: &mut Sender<T>, items: &[T]) -> usize {
    let room = tx.write_buffer();
    let n = room.len().min(items.len());
    for (slot, item) in room.iter_mut().zip(items) {
        slot.write(*item);
    }
    // SAFETY: the first n slots of the buffer have just been written, and n is at most its length.
    unsafe { tx.commit(n) };
    n
}

/// Copies bytes into an rtrb ring, with their length in front, in one chunk. False if there is no room.
#[inline(always)]
pub(crate) fn rtrb_push_prefixed(tx: &mut rtrb::Producer<u8>, message: &[u8]) -> bool {
    const PREFIX: usize = size_of::<u32>();
    let Ok(mut chunk) = tx.write_chunk_uninit(PREFIX + message.len()) else { return false };
    let prefix = (message.len() as u32).to_ne_bytes();
    let (first, second) = chunk.as_mut_slices();
    if second.is_empty() {
        copy_to(&mut first[..PREFIX], &prefix);
        copy_to(&mut first[PREFIX..], message);
    } else {
        let bytes = prefix.iter().chain(message);
        for (slot, byte) in first.iter_mut().chain(second).zip(bytes) {
            slot.write(*byte);
        }
    }
    // SAFETY: prefix and message were just written, and the chunk is as long as both together.
    unsafe { chunk.commit_all() };
    true
}

/// Copies bytes into memory of the same length.
#[inline(always)]
fn copy_to(memory: &mut [MaybeUninit<u8>], bytes: &[u8]) {
    // SAFETY: initialised bytes are valid as bytes that may be uninitialised.
    let bytes: &[MaybeUninit<u8>] = unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) };
    memory.copy_from_slice(bytes);
}

/// Calls to the directory of cache lines (`coherence/directory.c`).
pub(crate) mod directory {
    const BEGIN: u64 = 0;
    const REGION: u64 = 1;
    const ENTER: u64 = 2;
    const LEAVE: u64 = 3;
    const PAUSE: u64 = 4;
    const RESUME: u64 = 5;
    const END: u64 = 6;

    /// Sends these words to the directory. Without a directory nothing happens, because no kernel knows the system
    /// call.
    fn mark<const WORDS: usize>(words: [u64; WORDS]) {
        #[cfg(target_os = "linux")]
        {
            /// As in `directory.c`.
            const MARK: libc::c_long = 0xC0DE;
            let [what, a, b, c, d] = std::array::from_fn(|i| words.get(i).copied().unwrap_or(0));
            // SAFETY: a system call that does not exist touches nothing, and the directory only reads its arguments.
            unsafe { libc::syscall(MARK, what, a, b, c, d) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = words;
    }

    /// Begins a case.
    pub(crate) fn begin() {
        mark([BEGIN, 0, 0]);
    }

    /// Ends the case of this number, in which `items` items went through.
    pub(crate) fn end(case: usize, items: u64) {
        mark([END, case as u64, items]);
    }

    /// Has the memory at this place counted separately.
    pub(crate) fn region(start: usize, bytes: usize) {
        mark([REGION, start as u64, bytes as u64]);
    }

    /// From now on the directory sees this thread, until [`leave`]. It counts the thread's accesses or only remembers
    /// them.
    pub(crate) fn enter(thread: usize, counted: bool) {
        mark([ENTER, thread as u64, counted.into()]);
    }

    /// Ends what [`enter`] began.
    pub(crate) fn leave() {
        mark([LEAVE, 0, 0]);
    }

    /// From now on the directory does not see this thread, until [`resume`].
    pub(crate) fn pause() {
        mark([PAUSE, 0, 0]);
    }

    /// Ends a pause.
    pub(crate) fn resume() {
        mark([RESUME, 0, 0]);
    }
}

/// The start of the memory for threads that are [apart]. 0 before the first of them.
static ARENA: AtomicUsize = AtomicUsize::new(0);
/// The size of the arena. The system provides this memory only when it is touched.
const ARENA_BYTES: usize = 512 << 20;
const LINE: usize = 64;

/// The free memory of the arena.
struct Free {
    /// The address behind all memory given out so far.
    fresh: usize,
    /// The address and size of freed memory, the last freed at the end.
    back: Vec<(usize, usize)>,
}

static FREE: Mutex<Free> = Mutex::new(Free { fresh: 0, back: Vec::new() });

thread_local! {
    static APART: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`. Meanwhile this thread's allocations come from an arena, each on lines of its own, and memory freed last is
/// used first. So addresses depend on nothing else in the process and on no version of the system's allocator. The
/// directory of cache lines learns of each allocation as a region.
pub(crate) fn apart<R>(f: impl FnOnce() -> R) -> R {
    let before = APART.replace(true);
    let result = f();
    APART.set(before);
    result
}

/// The system's allocator, except for threads that are [apart].
#[derive(Debug)]
pub(crate) struct Allocator;

impl Allocator {
    #[inline(always)]
    fn has(memory: *mut u8) -> bool {
        let start = ARENA.load(Relaxed);
        memory.addr().wrapping_sub(start) < ARENA_BYTES && start != 0
    }

    /// The size of an allocation in the arena: whole lines, so that memory can be reused for the same size.
    fn lines(layout: Layout) -> usize {
        layout.size().next_multiple_of(LINE).next_multiple_of(layout.align())
    }

    #[cold]
    fn give(layout: Layout) -> *mut u8 {
        let bytes = Self::lines(layout);
        let address = Self::unseen(|free| {
            let start = match ARENA.load(Relaxed) {
                0 => {
                    let arena = Layout::from_size_align(ARENA_BYTES, 4096).expect("a valid layout");
                    // SAFETY: its size is not 0.
                    let start = unsafe { System.alloc(arena) };
                    free.fresh = start.expose_provenance();
                    ARENA.store(start.addr(), Relaxed);
                    start.addr()
                }
                start => start,
            };
            let fits = |&(address, size): &(usize, usize)| size == bytes && address.is_multiple_of(layout.align());
            if let Some(last) = free.back.iter().rposition(fits) {
                return free.back.remove(last).0;
            }
            let address = free.fresh.next_multiple_of(layout.align().max(LINE));
            // Address 0 makes the caller report an error: the system gave no arena, or the arena is used up.
            if start == 0 || bytes > ARENA_BYTES || address + bytes > start + ARENA_BYTES {
                return 0;
            }
            free.fresh = address + bytes;
            address
        });
        directory::region(address, if address == 0 { 0 } else { layout.size() });
        core::ptr::with_exposed_provenance_mut(address)
    }

    #[cold]
    fn take_back(memory: *mut u8, layout: Layout) {
        Self::unseen(|free| free.back.push((memory.addr(), Self::lines(layout))));
    }

    /// The directory must not count the arena's own accesses as the queue's.
    fn unseen<R>(f: impl FnOnce(&mut Free) -> R) -> R {
        let before = APART.replace(false);
        directory::pause();
        let result = f(&mut FREE.lock().unwrap_or_else(PoisonError::into_inner));
        directory::resume();
        APART.set(before);
        result
    }
}

// SAFETY: results of the system's allocator are passed on unchanged. Memory of the arena is given to one caller at a
// time: `fresh` only grows, and freed memory is taken out of the list when it is given again.
unsafe impl GlobalAlloc for Allocator {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if APART.get() {
            return Self::give(layout);
        }
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    #[inline(always)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if APART.get() {
            let memory = Self::give(layout);
            if !memory.is_null() {
                // SAFETY: this many bytes were just given.
                unsafe { memory.write_bytes(0, layout.size()) };
            }
            return memory;
        }
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if Self::has(memory) {
            return Self::take_back(memory, layout);
        }
        // SAFETY: the caller upholds the contract. The memory is not the arena's, so it is the system's.
        unsafe { System.dealloc(memory, layout) };
    }

    #[inline(always)]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !APART.get() && !Self::has(memory) {
            // SAFETY: the caller upholds the contract. The memory is not the arena's, so it is the system's.
            return unsafe { System.realloc(memory, layout, bytes) };
        }
        // SAFETY: the caller upholds the contract: the new size is valid with the alignment, the old memory has its
        // layout, and the caller gives it up.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !new.is_null() {
                memory.copy_to_nonoverlapping(new, layout.size().min(bytes));
                self.dealloc(memory, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_apart_lies_on_lines_of_its_own_and_is_used_again() {
        let outside = Box::new(1_u64);
        let (first, second) = apart(|| (Box::new(1_u32), Box::new([2_u64; 9])));
        for address in [&raw const *first as usize, &raw const *second as usize] {
            assert!(address.is_multiple_of(LINE) && Allocator::has(core::ptr::without_provenance_mut(address)));
        }
        assert!(!Allocator::has((&raw const *outside).cast_mut().cast()));
        let freed = &raw const *second as usize;
        drop(second);
        // It has the same number of lines, and it is zeroed although it was used before.
        let mut again = apart(|| vec![0_u8; 100]);
        assert_eq!(again.as_ptr() as usize, freed);
        assert!(again.iter().all(|&byte| byte == 0));
        again.iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
        // Memory may leave the arena, or come into it, and keeps its contents.
        again.reserve_exact(1000);
        assert!(!Allocator::has(again.as_mut_ptr()));
        apart(|| again.reserve_exact(10_000));
        assert!(Allocator::has(again.as_mut_ptr()));
        assert!(again.iter().enumerate().all(|(i, &byte)| byte == i as u8));
        assert_eq!(*first, 1);
    }
}
