//! The parts that the rings share: slots, padding, and positions.

use corelane::error::ChannelError;
use corelane::papers::{Buffer, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;

/// The place of one item.
pub(crate) type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// The papers' `CACHE_LINE`.
pub(crate) const CACHE_LINE: usize = 64;

/// A group of variables on a cache line of its own. The papers pad to one line, so this pads to one line, too.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Line<T>(pub(crate) T);

impl<T> Deref for Line<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The slots of a ring. Their memory was touched.
pub(crate) struct Array<S> {
    buffer: Buffer,
    pub(crate) len: u32,
    slots: PhantomData<S>,
}

// SAFETY: the array owns its slots as a `Box<[S]>` does.
unsafe impl<S: Send> Send for Array<S> {}
// SAFETY: as above.
unsafe impl<S: Sync> Sync for Array<S> {}

impl<S> Array<S> {
    /// Makes `len` slots. The papers need at least `least` of them.
    pub(crate) fn new(len: usize, least: usize, empty: impl Fn() -> S) -> Result<Self, ChannelError> {
        if len < least {
            return Err(ChannelError::ZeroCapacity);
        }
        // Twice the length fits into the type, so no sum of a position and a batch overflows.
        let short = u32::try_from(len).ok().filter(|&len| len <= u32::MAX / 2).ok_or(ChannelError::TooLarge)?;
        let buffer = Buffer::new(len, size_of::<S>(), align_of::<S>().max(CACHE_LINE))?;
        for i in 0..len {
            // SAFETY: the place is inside the buffer, which no other thread knows yet.
            unsafe { buffer.start().cast::<S>().add(i).write(empty()) };
        }
        Ok(Self { buffer, len: short, slots: PhantomData })
    }

    /// # Safety
    /// `i` must be below the number of slots.
    #[inline(always)]
    pub(crate) unsafe fn get(&self, i: u32) -> &S {
        debug_assert!(i < self.len);
        // SAFETY: the caller guarantees the range, and `new` has initialised every slot.
        unsafe { &*self.buffer.start().cast::<S>().add(i as usize) }
    }
}

impl<S> fmt::Debug for Array<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<S> Drop for Array<S> {
    fn drop(&mut self) {
        // Slots hold `Copy` items, but loom's cells and atomics own memory and must be dropped.
        if std::mem::needs_drop::<S>() {
            for i in 0..self.len as usize {
                // SAFETY: `new` has initialised the slot, and it is dropped once, here.
                unsafe { self.buffer.start().cast::<S>().add(i).drop_in_place() };
            }
        }
    }
}

/// `NEXT`: the position after `i` in a ring of `len` slots.
#[inline(always)]
pub(crate) fn next(i: u32, len: u32) -> u32 {
    if i + 1 == len { 0 } else { i + 1 }
}

/// `spin_wait`: spins for `ticks` cycles of the time stamp counter. Where no such counter can be read, one pause of the
/// processor counts as 64 cycles.
#[inline(always)]
pub(crate) fn spin_wait(ticks: u32) {
    if ticks == 0 {
        return;
    }
    #[cfg(all(target_arch = "x86_64", not(any(corelane_loom, corelane_shuttle, miri))))]
    {
        // SAFETY: this only reads a counter.
        let now = || unsafe { std::arch::x86_64::_rdtsc() };
        let start = now();
        while now().wrapping_sub(start) < u64::from(ticks) {
            std::hint::spin_loop();
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(corelane_loom, corelane_shuttle, miri)))))]
    for _ in 0..ticks.div_ceil(64) {
        corelane::papers::spin_loop();
    }
}
