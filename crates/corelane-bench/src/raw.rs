//! The only `unsafe` of this crate: a clock cheap enough for the inside of a loop, and calls of contenders that are `unsafe`
//! to make.

use gil::spsc::Sender;
use std::mem::MaybeUninit;

/// Ticks of the CPU's constant-rate counter, read in some 10 ns without a system call.
///
/// On x86-64 the time stamp counter, as in the B-Queue paper; on aarch64 the virtual counter; elsewhere nanoseconds. The
/// counters of all CPUs are taken to agree, which `machine.rs` checks where the system says so.
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
