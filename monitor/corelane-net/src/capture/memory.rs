//! The bytes that records are lent from: memory of our own, or a mapped file.

use std::fmt;
use std::io::{self, Read};
use std::ops::Deref;
use std::sync::Arc;

use memmap2::{Mmap, MmapMut, MmapOptions};

/// Bytes that can be looked at as one slice.
#[derive(Debug)]
pub(super) enum Bytes {
    /// A file, mapped.
    Mapped(Mmap),
    /// Memory from the allocator.
    Owned(Vec<u8>),
    /// Anonymous memory whose first bytes are filled.
    Anonymous(Growing),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Owned(bytes) => bytes,
            Self::Anonymous(bytes) => bytes.filled(),
        }
    }
}

/// Bytes of a capture: all of them if they are at hand, otherwise the part that the next records come from. Clones are
/// the same bytes, which do not change while a clone exists.
#[derive(Clone)]
pub struct Memory(Arc<Bytes>);

impl Memory {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self(Arc::new(bytes))
    }

    /// Memory of `len` bytes, to be filled.
    pub(super) fn with_room(len: usize) -> Self {
        Self::new(Bytes::Owned(vec![0; len]))
    }

    /// The bytes, writable, if they are our own and no other handle leads to them.
    pub(super) fn get_mut(&mut self) -> Option<&mut [u8]> {
        match Arc::get_mut(&mut self.0)? {
            Bytes::Owned(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Whether both are the same bytes.
    pub fn is(&self, other: &Memory) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The position of a record's bytes in this memory; `None` if they lie elsewhere.
    #[inline]
    pub fn place(&self, data: &[u8]) -> Option<usize> {
        let all: &[u8] = self;
        let start = data.as_ptr().addr().checked_sub(all.as_ptr().addr())?;
        (start.checked_add(data.len())? <= all.len()).then_some(start)
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Address space for an input of unknown length. It costs nothing until it is touched.
const UNKNOWN_RESERVE: usize = 64 << 30;
/// The smallest reserve that is tried, if the system refuses larger ones.
const LEAST_RESERVE: usize = 1 << 20;

/// Anonymous memory that is filled from the front. All its address space is reserved at once, so that a long input is
/// written where it stays and touched once. Only an input of unknown length that outgrows its reserve is copied.
#[derive(Debug)]
pub(super) struct Growing {
    map: MmapMut,
    len: usize,
}

impl Growing {
    /// Room for exactly `len` bytes.
    pub(super) fn with_len(len: usize) -> io::Result<Self> {
        Ok(Self { map: anonymous(len, false)?, len: 0 })
    }

    /// Room for an input of unknown length.
    pub(super) fn unbounded() -> io::Result<Self> {
        let mut reserve = UNKNOWN_RESERVE;
        loop {
            match anonymous(reserve, true) {
                Ok(map) => return Ok(Self { map, len: 0 }),
                Err(error) if reserve <= LEAST_RESERVE => return Err(error),
                Err(_) => reserve /= 2,
            }
        }
    }

    fn filled(&self) -> &[u8] {
        &self.map[..self.len]
    }

    /// Reads once; 0 means the end of the input or no room left.
    pub(super) fn read_from(&mut self, source: &mut impl Read) -> io::Result<usize> {
        loop {
            match source.read(&mut self.map[self.len..]) {
                Ok(count) => {
                    self.len += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == self.map.len()
    }

    /// Doubles the room.
    pub(super) fn grow(&mut self) -> io::Result<()> {
        let mut larger = anonymous(self.map.len().saturating_mul(2), true)?;
        larger[..self.len].copy_from_slice(self.filled());
        self.map = larger;
        Ok(())
    }
}

fn anonymous(len: usize, reserve_only: bool) -> io::Result<MmapMut> {
    let mut options = MmapOptions::new();
    options.len(len);
    if reserve_only {
        options.no_reserve_swap();
    }
    let map = options.map_anon()?;
    // Fewer faults while filling and fewer TLB misses while walking. Only advice.
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    Ok(map)
}
