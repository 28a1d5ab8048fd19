//! A block of raw memory that is allocated fallibly and touched at once.

use crate::error::ChannelError;
use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ptr::NonNull;

/// Memory that is freed on drop. What is in it is the owner's to drop.
#[derive(Debug)]
pub(crate) struct Buffer {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a buffer is an address; the queue's protocol says which thread may access what is there.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// The smallest page of the systems we run on.
const PAGE: usize = 4096;
const LINE: usize = 64;

impl Buffer {
    /// Memory for so many cells, none on more cache lines than it must be, and the bytes from cell to cell: a cell's
    /// size, rounded up to a power of two up to a line, and to lines above.
    pub(crate) fn of_cells<C>(count: usize) -> Result<(Self, usize), ChannelError> {
        // A cell of no size has an alignment all the same.
        let bytes = size_of::<C>().max(align_of::<C>());
        let stride = if bytes <= LINE { bytes.next_power_of_two() } else { bytes.next_multiple_of(LINE) };
        Ok((Self::new(count, stride, align_of::<C>().max(2 * LINE))?, stride))
    }

    /// `count` elements of `stride` bytes, the first aligned to `align`. Every page is written, so that no page fault
    /// is left for the first lap; the contents are unspecified.
    pub(crate) fn new(count: usize, stride: usize, align: usize) -> Result<Self, ChannelError> {
        let bytes = count.checked_mul(stride).ok_or(ChannelError::TooLarge)?;
        let layout = Layout::from_size_align(bytes, align).map_err(|_| ChannelError::TooLarge)?;
        if bytes == 0 {
            let start = core::ptr::without_provenance_mut(layout.align());
            return Ok(Self { start: NonNull::new(start).expect("an alignment is not 0"), layout });
        }
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(ChannelError::NoMemory)?;
        for offset in (0..bytes).step_by(PAGE).chain([bytes - 1]) {
            // SAFETY: inside the allocation. Volatile, or the compiler would drop the write as unread.
            unsafe { start.as_ptr().add(offset).write_volatile(0) };
        }
        Ok(Self { start, layout })
    }

    #[inline(always)]
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.layout.size() != 0 {
            // SAFETY: allocated by `new` with this layout.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }
}

/// Drops what there is one by one, until there is nothing; when one drop panics the rest is dropped all the same and
/// the panic goes on.
pub(crate) fn drop_while(drop_one: impl FnMut() -> bool) {
    struct Rest<F: FnMut() -> bool>(F);
    impl<F: FnMut() -> bool> Rest<F> {
        fn run(&mut self) {
            while (self.0)() {}
        }
    }
    impl<F: FnMut() -> bool> Drop for Rest<F> {
        fn drop(&mut self) {
            self.run();
        }
    }
    Rest(drop_one).run();
}

/// Drops `count` items one by one; when one drop panics the rest is dropped all the same and the panic goes on.
pub(crate) fn drop_all(count: usize, mut drop_one: impl FnMut(usize)) {
    struct Rest<'a, F: FnMut(usize)> {
        next: usize,
        count: usize,
        drop_one: &'a mut F,
    }
    impl<F: FnMut(usize)> Rest<'_, F> {
        fn run(&mut self) {
            while self.next < self.count {
                let i = self.next;
                self.next += 1;
                (self.drop_one)(i);
            }
        }
    }
    impl<F: FnMut(usize)> Drop for Rest<'_, F> {
        fn drop(&mut self) {
            // Only reached with items left when a drop panicked. A second panic while unwinding aborts, as everywhere
            // in Rust.
            self.run();
        }
    }
    Rest { next: 0, count, drop_one: &mut drop_one }.run();
}
