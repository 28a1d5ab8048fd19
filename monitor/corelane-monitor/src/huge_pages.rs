//! Memory of the tables: zeroed, and in huge pages. All `unsafe` of this crate is in this file.
//!
//! A packet touches two lines that lie anywhere in the tables. With small pages most such touches miss the TLB too, and
//! the fetch ahead waits for the page walk; `docs/benchmarks.md` has the cost. Each table alone is smaller than a huge
//! page, so the system's allocator cannot help. So all tables of a run take their blocks from one pool:
//!
//! 1. The pool maps chunks of many huge pages and cuts blocks from the last one, from front to back.
//! 2. A block's size is a power of two. A block that is given back goes to the list of its size, for the next table
//!    that grows to it. So growing in the middle of a run needs neither a system call nor page faults.
//! 3. A run whose packets do not wait makes its first pages [ready](Pool::ready) before they come. Each page that a
//!    packet touches first would take the system's time; on a virtual machine that may be milliseconds.
//! 4. Small blocks come from the system's allocator, so that a short capture does not touch a whole huge page for each
//!    table.

use bytemuck::Zeroable;
use memmap2::{MmapMut, MmapRaw};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a chunk: address space until it is touched.
const CHUNK: usize = 64 << 20;
/// Smaller blocks come from the system's allocator.
const SMALLEST: usize = 8 << 10;

/// The pool from which the tables of one run take their memory. Clones are the same pool.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Mutex<Chunks>>);

struct Chunks {
    /// Mapped until the pool and all its blocks are gone. Raw, as a slice of a map would be one of its blocks too.
    maps: Vec<MmapRaw>,
    /// The address of the last chunk's unused part, and its bytes in `left`.
    next: usize,
    left: usize,
    /// Addresses, with exposed provenance, of the blocks that were given back, by the logarithm of their size.
    free: [Vec<usize>; usize::BITS as usize],
}

impl Pool {
    /// An empty pool.
    pub(crate) fn new() -> Self {
        let free = std::array::from_fn(|_| Vec::new());
        Self(Arc::new(Mutex::new(Chunks { maps: Vec::new(), next: 0, left: 0, free })))
    }

    fn chunks<R>(&self, f: impl FnOnce(&mut Chunks) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the memory of so many bytes of the blocks to come, as far as the system can.
    pub(crate) fn ready(&self, bytes: usize) {
        self.chunks(|chunks| {
            if bytes == 0 || chunks.left < bytes && chunks.map(bytes).is_none() {
                return;
            }
            #[cfg(target_os = "linux")]
            if let Some(map) = chunks.maps.last() {
                // Only advice: a system that does not know it makes the pages when they are touched.
                let _ = map.advise_range(memmap2::Advice::PopulateWrite, map.len() - chunks.left, bytes);
            }
        });
    }

    /// A block of `size` zero bytes, where `size` is a power of two; it is aligned to its size, up to a page. `None` if
    /// there is no memory.
    fn take(&self, size: usize) -> Option<NonNull<u8>> {
        let (address, used) = self.chunks(|chunks| chunks.take(size))?;
        let start = NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(address))?;
        if used {
            // SAFETY: the block has `size` bytes and was given back, so no other code refers to it.
            unsafe { start.as_ptr().write_bytes(0, size) };
        }
        Some(start)
    }

    fn give_back(&self, start: NonNull<u8>, size: usize) {
        self.chunks(|chunks| chunks.free[size.ilog2() as usize].push(start.as_ptr().expose_provenance()));
    }
}

impl Chunks {
    /// A block's address, and whether it was used before.
    fn take(&mut self, size: usize) -> Option<(usize, bool)> {
        if let Some(address) = self.free[size.ilog2() as usize].pop() {
            return Some((address, true));
        }
        if self.left < size {
            self.map(size)?;
        }
        let address = self.next;
        self.next += size;
        self.left -= size;
        Some((address, false))
    }

    /// Maps a chunk for at least so many bytes.
    fn map(&mut self, bytes: usize) -> Option<()> {
        let map = MmapRaw::from(MmapMut::map_anon(CHUNK.max(bytes)).ok()?);
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage); // Only advice: without it everything works, slower.
        (self.next, self.left) = (map.as_mut_ptr().expose_provenance(), map.len());
        self.maps.push(map);
        Some(())
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// A slice of its own memory that starts as zeros.
pub(crate) struct Zeroed<T> {
    start: NonNull<T>,
    len: usize,
    /// The pool of the memory; `None` for the system's allocator, and where there is no memory.
    pool: Option<Pool>,
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Pool>();
};
// SAFETY: a `Zeroed` owns its items as a boxed slice does, and its pool may go to any thread, as is checked above.
unsafe impl<T: Send> Send for Zeroed<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Zeroed<T> {}

impl<T: Zeroable + Copy> Zeroed<T> {
    /// `len` zeros.
    pub(crate) fn new(pool: &Pool, len: usize) -> Self {
        const { assert!(size_of::<T>() != 0, "no memory has to mean no items") };
        let layout = Layout::array::<T>(len).expect("a table is smaller than the address space");
        let Some(size) = Self::pool_size(&layout) else {
            if layout.size() == 0 {
                return Self::default();
            }
            // SAFETY: the size is not 0.
            let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
            return Self { start: start.cast(), len, pool: None };
        };
        let start = pool.take(size).unwrap_or_else(|| handle_alloc_error(layout));
        Self { start: start.cast(), len, pool: Some(pool.clone()) }
    }
}

impl<T> Zeroed<T> {
    /// The size of the pool's block for this layout; `None` if the pool has no such blocks.
    fn pool_size(layout: &Layout) -> Option<usize> {
        let size = layout.size().checked_next_power_of_two()?;
        // A chunk begins at a page, and all blocks in it are powers of two no smaller than this.
        (size >= SMALLEST && layout.align() <= 4096).then_some(size)
    }
}

impl<T> Default for Zeroed<T> {
    /// No items, and no memory.
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0, pool: None }
    }
}

impl<T> Drop for Zeroed<T> {
    fn drop(&mut self) {
        let layout = Layout::array::<T>(self.len).expect("it was allocated");
        match (&self.pool, layout.size()) {
            (_, 0) => {}
            (None, _) => {
                // SAFETY: allocated by `new` with this layout.
                unsafe { dealloc(self.start.as_ptr().cast(), layout) };
            }
            (Some(pool), _) => {
                let size = Self::pool_size(&layout).expect("it came from the pool");
                pool.give_back(self.start.cast(), size);
            }
        }
    }
}

impl<T> Deref for Zeroed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: this value owns the memory, and it holds `len` items, as all zeros is a valid `T`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Zeroed<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T> fmt::Debug for Zeroed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zeroed").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Zeroable)]
    #[repr(align(64))]
    struct Line([u64; 8]);

    #[test]
    fn blocks_are_zero_aligned_and_apart() {
        let pool = Pool::new();
        // Some of the blocks lie in it, one lies across its end.
        pool.ready(1 << 20);
        // The second round takes the blocks that were given back.
        for round in 0..2 {
            let mut blocks: Vec<Zeroed<Line>> =
                [1, 7, 128, 129, 1000, 4096, 100_000, 2_000_000].map(|len| Zeroed::new(&pool, len)).into();
            for (mark, block) in (1..).zip(&mut blocks) {
                assert_eq!(block.as_ptr() as usize % 64, 0);
                assert!(block.iter().all(|line| line.0 == [0; 8]), "round {round}");
                block.fill(Line([mark; 8]));
            }
            for (mark, block) in (1..).zip(&blocks) {
                assert!(block.iter().all(|line| line.0 == [mark; 8]));
            }
        }
    }

    #[test]
    fn blocks_outlive_the_pool_and_its_thread() {
        let block = std::thread::spawn(|| {
            let pool = Pool::new();
            let mut block = Zeroed::<u64>::new(&pool, 10_000);
            block.fill(7);
            block
        });
        let block = block.join().unwrap();
        assert!(block.iter().all(|&word| word == 7));
    }

    #[test]
    fn a_block_that_was_given_back_is_used_again() {
        let pool = Pool::new();
        let first = Zeroed::<u64>::new(&pool, 5_000).as_ptr();
        assert_eq!(Zeroed::<u64>::new(&pool, 5_000).as_ptr(), first);
    }

    #[test]
    fn nothing_takes_no_memory() {
        let pool = Pool::new();
        assert!(Zeroed::<u64>::new(&pool, 0).is_empty());
        assert!(pool.chunks(|chunks| chunks.maps.is_empty()));
    }
}
