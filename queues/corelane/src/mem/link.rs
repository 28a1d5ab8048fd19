//! Links to nodes that stay nodes: an index, flags, and a tag that counts the changes of that link.
//!
//! A link that compares equal has not been changed meanwhile. The one exception is a thread that slept, in the middle
//! of an operation, through a multiple of 2^34 changes, to the very one. So a structure may use its nodes again at
//! once: a thread that comes late with an old link reads a word that still exists, and its compare-and-swap fails.

use crate::start::START_64;
use crate::sync::{AcqRel, AtomicU64, Relaxed, look, set};

/// The name of a node; [`NULL`] is none.
pub(crate) type Index = u32;
pub(crate) const NULL: Index = 0;

pub(crate) const INDEX_BITS: u32 = 28;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
const FLAGS: u64 = 0b11 << INDEX_BITS;
const TAG: u64 = 1 << (INDEX_BITS + 2);

/// What a link points to, and how often it was changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link(u64);

impl Link {
    /// The meaning is the structure's that sets it.
    pub(crate) const FLAG_A: u64 = 1 << INDEX_BITS;
    /// The meaning is the structure's that sets it.
    pub(crate) const FLAG_B: u64 = 1 << (INDEX_BITS + 1);

    /// A link that was never changed.
    pub(crate) fn new(index: Index) -> Self {
        Self(START_64.wrapping_mul(TAG) | u64::from(index))
    }

    pub(crate) fn index(self) -> Index {
        (self.0 & INDEX_MASK) as Index
    }

    pub(crate) fn is_null(self) -> bool {
        self.index() == NULL
    }

    pub(crate) fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    pub(crate) fn flags(self) -> u64 {
        self.0 & FLAGS
    }

    /// This link after a change.
    pub(crate) fn to(self, index: Index, flags: u64) -> Self {
        Self((self.0 & !(INDEX_MASK | FLAGS)).wrapping_add(TAG) | flags | u64::from(index))
    }
}

/// A link in memory.
pub(crate) struct AtomicLink(AtomicU64);

impl AtomicLink {
    pub(crate) fn new(index: Index) -> Self {
        Self(AtomicU64::new(Link::new(index).0))
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> Link {
        Link(look(&self.0))
    }

    /// For the owner of a node that nothing links to. Release, for threads that come late: one that reads what a node
    /// has become in a later life also sees that the structure's head has moved on since.
    pub(crate) fn set(&self, link: Link) {
        set(&self.0, link.0);
    }

    #[inline(always)]
    pub(crate) fn change(&self, from: Link, to: Link) -> bool {
        self.0.compare_exchange(from.0, to.0, AcqRel, Relaxed).is_ok()
    }

    /// Sets [`Link::FLAG_A`] and leaves the rest alone.
    pub(crate) fn freeze(&self, link: Link) -> bool {
        self.change(link, Link(link.0 | Link::FLAG_A))
    }

    /// Sets a flag and leaves the rest alone, whatever it is.
    pub(crate) fn raise(&self, flag: u64) -> Link {
        Link(self.0.fetch_or(flag, AcqRel))
    }
}
