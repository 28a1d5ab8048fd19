//! What the rings are made of.

use corelane::error::ChannelError;
use corelane::papers::{Buffer, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;

/// The place of one item.
pub(crate) type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// `CACHE_LINE` of the papers.
pub(crate) const CACHE_LINE: usize = 64;

/// A group of variables on a cache line of its own. The papers pad to one line, so here it is no more than one.
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

/// The slots, in memory that was touched.
pub(crate) struct Array<S> {
    buffer: Buffer,
    pub(crate) len: u32,
    slots: PhantomData<S>,
}

// SAFETY: it owns its slots as a `Box<[S]>` does.
unsafe impl<S: Send> Send for Array<S> {}
// SAFETY: as above.
unsafe impl<S: Sync> Sync for Array<S> {}

impl<S> Array<S> {
    /// `len` slots, of which the papers have at least `least`.
    pub(crate) fn new(len: usize, least: usize, empty: impl Fn() -> S) -> Result<Self, ChannelError> {
        if len < least {
            return Err(ChannelError::ZeroCapacity);
        }
        // Twice the length fits, so that no sum of a position and a batch overflows.
        let short = u32::try_from(len).ok().filter(|&len| len <= u32::MAX / 2).ok_or(ChannelError::TooLarge)?;
        let buffer = Buffer::new(len, size_of::<S>(), align_of::<S>().max(CACHE_LINE))?;
        for i in 0..len {
            // SAFETY: inside the buffer, which no other thread knows yet.
            unsafe { buffer.start().cast::<S>().add(i).write(empty()) };
        }
        Ok(Self { buffer, len: short, slots: PhantomData })
    }

    /// # Safety
    /// `i` is below the number of slots.
    #[inline(always)]
    pub(crate) unsafe fn get(&self, i: u32) -> &S {
        debug_assert!(i < self.len);
        // SAFETY: by the caller's promise; `new` has initialised every slot.
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
        // Slots hold `Copy` items, but loom's cells and atomics own memory.
        if std::mem::needs_drop::<S>() {
            for i in 0..self.len as usize {
                // SAFETY: initialised by `new`, dropped once, here.
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

/// `spin_wait`: busy for so many cycles of the time stamp counter. Where there is none that may be read, a pause of the
/// processor counts as 64.
#[inline(always)]
pub(crate) fn spin_wait(ticks: u32) {
    if ticks == 0 {
        return;
    }
    #[cfg(all(target_arch = "x86_64", not(any(loom, shuttle, miri))))]
    {
        // SAFETY: reads a counter and nothing else.
        let now = || unsafe { std::arch::x86_64::_rdtsc() };
        let start = now();
        while now().wrapping_sub(start) < u64::from(ticks) {
            std::hint::spin_loop();
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, shuttle, miri)))))]
    for _ in 0..ticks.div_ceil(64) {
        corelane::papers::spin_loop();
    }
}
