//! The only `unsafe` of this crate: a clock cheap enough for the inside of a loop, calls of contenders that are
//! `unsafe` to make, and what the emulator's directory of cache lines is told.

use gil::spsc::Sender;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Ticks of the CPU's constant-rate counter, read in some 10 ns without a system call.
///
/// On x86-64 the time stamp counter, as in the B-Queue paper; on aarch64 the virtual counter; elsewhere nanoseconds.
/// The counters of all CPUs are taken to agree, which `machine.rs` checks where the system says so.
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

/// Copies items into the free run of a gil queue and hands them over; how many.
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

/// Copies bytes with their length in front into an rtrb ring, in one chunk; false if there is no room.
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
    // SAFETY: prefix and message, which the chunk has the length of, were just written.
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

/// What the directory of cache lines (`coherence/directory.c`) is told.
pub(crate) mod directory {
    const BEGIN: u64 = 0;
    const REGION: u64 = 1;
    const ENTER: u64 = 2;
    const LEAVE: u64 = 3;
    const PAUSE: u64 = 4;
    const RESUME: u64 = 5;
    const END: u64 = 6;
    const CROWD: u64 = 7;

    /// What things cost on the clocks of a crowd, in units of the caller's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(C)]
    pub(crate) struct Costs {
        pub(crate) access: u64,
        pub(crate) transfer: u64,
        pub(crate) pause: u64,
    }

    /// Says these words. Where there is no directory, nothing happens: no kernel knows the system call.
    fn mark<const WORDS: usize>(words: [u64; WORDS]) {
        #[cfg(target_os = "linux")]
        {
            /// As in `directory.c`.
            const MARK: libc::c_long = 0xC0DE;
            let [what, a, b, c, d] = std::array::from_fn(|i| words.get(i).copied().unwrap_or(0));
            // SAFETY: a system call that does not exist touches nothing; the directory only reads its arguments, and
            // what `crowd` has them point to.
            unsafe { libc::syscall(MARK, what, a, b, c, d) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = words;
    }

    /// A case begins.
    pub(crate) fn begin() {
        mark([BEGIN, 0, 0]);
    }

    /// The case of this number is over; so many items went through.
    pub(crate) fn end(case: usize, items: u64) {
        mark([END, case as u64, items]);
    }

    /// So many threads will enter, and run on the directory's clocks until the case is over.
    pub(crate) fn crowd(threads: usize, seed: u64, costs: &Costs) {
        /// As in `directory.c`.
        static PROBE: u64 = u64::from_be_bytes(*b"corelane");
        let [costs, probe] = [(&raw const *costs).addr(), (&raw const PROBE).addr()];
        mark([CROWD, threads as u64, seed, costs as u64, probe as u64]);
    }

    /// What lies here is counted apart.
    pub(crate) fn region(start: usize, bytes: usize) {
        mark([REGION, start as u64, bytes as u64]);
    }

    /// What this thread does from now on is seen, and counted or only remembered, until it leaves.
    pub(crate) fn enter(thread: usize, counted: bool) {
        mark([ENTER, thread as u64, counted.into()]);
    }

    /// Ends what [`enter`] began.
    pub(crate) fn leave() {
        mark([LEAVE, 0, 0]);
    }

    /// What this thread does from now on is not seen, until it resumes.
    pub(crate) fn pause() {
        mark([PAUSE, 0, 0]);
    }

    /// Ends a pause.
    pub(crate) fn resume() {
        mark([RESUME, 0, 0]);
    }
}

/// Memory of the threads that are [apart]. Its start; 0 until there is one.
static ARENA: AtomicUsize = AtomicUsize::new(0);
/// Of what the system gives when it is touched.
const ARENA_BYTES: usize = 512 << 20;
const LINE: usize = 64;

/// What the arena has to give.
struct Free {
    /// Behind what was given first.
    fresh: usize,
    /// What came back: its address and size. The last one first.
    back: Vec<(usize, usize)>,
}

static FREE: Mutex<Free> = Mutex::new(Free { fresh: 0, back: Vec::new() });

thread_local! {
    static APART: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, with memory out of an arena for what this thread allocates meanwhile: each allocation on lines of its own,
/// what was freed last first. Where memory lies then depends on nothing else in the process, and on no version of the
/// system's allocator. The directory of cache lines learns of each allocation as a region.
pub(crate) fn apart<R>(f: impl FnOnce() -> R) -> R {
    let before = APART.replace(true);
    let result = f();
    APART.set(before);
    result
}

/// The system's allocator, but for threads that are [apart].
#[derive(Debug)]
pub(crate) struct Allocator;

impl Allocator {
    #[inline(always)]
    fn has(memory: *mut u8) -> bool {
        let start = ARENA.load(Relaxed);
        memory.addr().wrapping_sub(start) < ARENA_BYTES && start != 0
    }

    /// The size of an allocation in the arena: whole lines, so that each size is used again.
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
            // What a caller makes an error of, if there is none at all or no more of it.
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

    /// The arena's own accesses are not the queue's.
    fn unseen<R>(f: impl FnOnce(&mut Free) -> R) -> R {
        let before = APART.replace(false);
        directory::pause();
        let result = f(&mut FREE.lock().unwrap_or_else(PoisonError::into_inner));
        directory::resume();
        APART.set(before);
        result
    }
}

// SAFETY: the system's allocator, whose results are passed on as they are; or memory of the arena, which is given to
// one at a time: `fresh` only grows, and what came back is taken out of the list.
unsafe impl GlobalAlloc for Allocator {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if APART.get() {
            return Self::give(layout);
        }
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    #[inline(always)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if APART.get() {
            let memory = Self::give(layout);
            if !memory.is_null() {
                // SAFETY: so many bytes were just given.
                unsafe { memory.write_bytes(0, layout.size()) };
            }
            return memory;
        }
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if Self::has(memory) {
            return Self::take_back(memory, layout);
        }
        // SAFETY: the caller's; it is not the arena's, so it is the system's.
        unsafe { System.dealloc(memory, layout) };
    }

    #[inline(always)]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !APART.get() && !Self::has(memory) {
            // SAFETY: the caller's; it is not the arena's, so it is the system's.
            return unsafe { System.realloc(memory, layout, bytes) };
        }
        // SAFETY: the caller's: the new size is valid with the alignment, the old memory has its layout and is given
        // up.
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
        // Of the same number of lines, and zeroed though it was used.
        let mut again = apart(|| vec![0_u8; 100]);
        assert_eq!(again.as_ptr() as usize, freed);
        assert!(again.iter().all(|&byte| byte == 0));
        again.iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
        // It may leave the arena, and come into it, with what it holds.
        again.reserve_exact(1000);
        assert!(!Allocator::has(again.as_mut_ptr()));
        apart(|| again.reserve_exact(10_000));
        assert!(Allocator::has(again.as_mut_ptr()));
        assert!(again.iter().enumerate().all(|(i, &byte)| byte == i as u8));
        assert_eq!(*first, 1);
    }
}
