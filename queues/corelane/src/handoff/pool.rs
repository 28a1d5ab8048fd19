//! The nodes of the dual structures: memory that stays what it is, and words that say in one piece what a node is.
//!
//! # How it works
//!
//! 1. A node, once allocated, stays a node until its pool is dropped. So a thread that comes late with an old reference
//!    reads atomics that still exist, and its compare-and-swap fails: no hazard pointers, epochs or fences are needed.
//! 2. Nodes are named by an index of 28 bits. A [`Link`] is an index, two flags and a tag of 34 bits that counts the
//!    changes of that link. A link that compares equal has not been changed meanwhile. The one exception is a thread
//!    that slept, in the middle of an operation, through a multiple of 2^34 changes, to the very one.
//! 3. A node's [`word`](Node::word) says whether its request waits, was matched (by which node), withdrawn or closed,
//!    and which parties are done with the node. Each change of a request's fate is one compare-and-swap of it. While
//!    the request waits, the word holds the node's version, a count of its uses.
//! 4. Each thread first tries the few nodes of the *front row* that its number maps to. To take one is a
//!    compare-and-swap, to give it back a store, both on a line that the thread needs anyway. When they are taken, a
//!    Treiber stack of the other nodes is next, and then the first node that was never taken. Its segment is made when
//!    it is missing, of as many nodes as there are already.
//! 5. A linked node goes back when three credits are in: its owner has learnt its fate (`DONE`), its item has been
//!    moved out or there was none (`READ`), nothing links to it any more (`UNLINKED`). The thread that brings the last
//!    credit frees the node.
//!
//! What each compare-and-swap relies on:
//!
//! - word, `FREE` to `HELD`: nothing is known of a free node, so any life of it is as good as another.
//! - free list, to take the first: its tag says that the node was first since its link was read, and a link in the list
//!   is changed only by the thread that brings the node back. To bring nodes back: its tag.
//! - segment, from none: once for all.
//!
//! # Synchronization
//!
//! - word, store-release of `WAITING` or compare-and-swap-release of a link (owner) → compare-and-swap-acquire
//!   (partner): the item is written before it is read.
//! - word, compare-and-swap-release of `MATCHED` (partner) → load-acquire (owner): the item in the partner's node is
//!   written before it is read.
//! - word, fetch-or acquire-release of a credit: all uses of a node come before the last credit, so before the node is
//!   freed.
//! - word, store-release of `FREE` → compare-and-swap-acquire of `HELD`; free list, compare-and-swap-release →
//!   -acquire: the last use of a node comes before its next one.
//! - Late readers: every store to a word or a link is a release, every load of one in a structure an acquire. A thread
//!   that reads what a node has become in a later life therefore also sees that the structure's head or top has moved
//!   on since, and looks there anew. It can neither take the old picture for a true one nor retry on it for ever.
//! - segments, compare-and-swap-release → load-acquire: a node is made before it is found. An index is only ever learnt
//!   behind its segment's publication.
//!
//! # Memory
//!
//! A node is 128 bytes, more where the item does not fit beside 40 bytes of words. A pool begins with its front row of
//! at most 16 KiB, doubles when everything is in use, and keeps its nodes: as many as were in use at once, rounded up.

use crate::mem::link::INDEX_BITS;
pub(super) use crate::mem::link::{AtomicLink, Index, Link, NULL};
use crate::start::START_64;
use crate::sync::{AcqRel, Acquire, AtomicU64, Padded, Relaxed, Release, Slot, init_slot, look, set};
#[cfg(feature = "std")]
use crate::wait::{Sleeper, SleeperCell, Token};
use alloc::boxed::Box;
use core::ptr;
// Not the model's: nothing is ordered by these, and every access to a node would be a choice for it.
use crate::sync::plain::{AtomicPtr, AtomicU64 as Plain, AtomicUsize as PlainCount};

/// What a node is, in one word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(u64);

const KIND: u64 = 0b111;
const VALUE_SHIFT: u32 = 10;

impl Word {
    /// In the front row, for any thread to take.
    const FREE: u64 = 0;
    /// Taken, and not a request (yet): its owner prepares it, or it carries an item to the node it has matched.
    const HELD: u64 = 1;
    /// A request that waits; its owner looks for itself.
    const WAITING: u64 = 2;
    /// A request that waits; its owner sleeps on the node's token.
    const PARKED: u64 = 3;
    const MATCHED: u64 = 4;
    /// Withdrawn, by its owner or (`BY_CLOSE`) by the close of the structure.
    const CANCELLED: u64 = 5;
    /// The request is a put. In a node that is held: there is an item in it.
    pub(super) const DATA: u64 = 1 << 3;
    /// Credit: the owner knows its request's fate and will not look again.
    pub(super) const DONE: u64 = 1 << 4;
    /// Credit: there is no item in the node any more.
    pub(super) const READ: u64 = 1 << 5;
    /// Credit: nothing links to the node any more.
    pub(super) const UNLINKED: u64 = 1 << 6;
    const CREDITS: u64 = Self::DONE | Self::READ | Self::UNLINKED;
    /// Of a cancelled node: it leaves the list by its front ...
    pub(super) const SKIPPED: u64 = 1 << 7;
    /// ... or from its middle.
    pub(super) const UNLINKING: u64 = 1 << 8;
    /// Of a cancelled node: its owner is to be told that the structure is closed.
    const BY_CLOSE: u64 = 1 << 9;

    fn kind(self) -> u64 {
        self.0 & KIND
    }

    pub(super) fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }

    pub(super) fn is_waiting(self) -> bool {
        matches!(self.kind(), Self::WAITING | Self::PARKED)
    }

    pub(super) fn is_parked(self) -> bool {
        self.kind() == Self::PARKED
    }

    pub(super) fn is_matched(self) -> bool {
        self.kind() == Self::MATCHED
    }

    pub(super) fn is_cancelled(self) -> bool {
        self.kind() == Self::CANCELLED
    }

    pub(super) fn is_closed(self) -> bool {
        self.is_cancelled() && self.has(Self::BY_CLOSE)
    }

    pub(super) fn is_data(self) -> bool {
        self.has(Self::DATA)
    }

    /// No thread waits for this request's fate: an item that was put without waiting.
    pub(super) fn is_asynchronous(self) -> bool {
        self.is_waiting() && self.has(Self::DONE)
    }

    /// The same request, or a cancelled one, as `earlier`, in the list for sure.
    pub(super) fn still_stands(self, earlier: Self) -> bool {
        (self.is_waiting() || self.is_cancelled())
            && !self.has(Self::SKIPPED | Self::UNLINKING)
            && self.0 >> VALUE_SHIFT == earlier.0 >> VALUE_SHIFT
    }

    /// The node that carries the item for this matched take.
    pub(super) fn partner(self) -> Index {
        (self.0 >> VALUE_SHIFT) as Index
    }

    fn with_kind(self, kind: u64) -> Self {
        Self(self.0 & !KIND | kind)
    }

    /// This waiting put, taken by a partner that will read the item from the node.
    pub(super) fn taken(self) -> Self {
        self.with_kind(Self::MATCHED)
    }

    /// This waiting take, given the item in node `partner`.
    pub(super) fn given(self, partner: Index) -> Self {
        Self(Self::MATCHED | self.0 & Self::DONE | Self::READ | u64::from(partner) << VALUE_SHIFT)
    }

    /// This waiting exchange, given the item in node `partner`, whose owner will read the item from this one.
    pub(super) fn swapped(self, partner: Index) -> Self {
        Self(Self::MATCHED | self.0 & Self::DONE | u64::from(partner) << VALUE_SHIFT)
    }

    pub(super) fn parked(self) -> Self {
        self.with_kind(Self::PARKED)
    }

    pub(super) fn unparked(self) -> Self {
        self.with_kind(Self::WAITING)
    }

    pub(super) fn cancelled(self) -> Self {
        self.with_kind(Self::CANCELLED)
    }

    pub(super) fn closed(self) -> Self {
        self.cancelled().with(Self::BY_CLOSE)
    }

    pub(super) fn with(self, bits: u64) -> Self {
        Self(self.0 | bits)
    }
}

/// One request, or an item on its way.
#[repr(align(128))]
pub(super) struct Node<T> {
    word: AtomicU64,
    /// The list's, and while the node is free the free list's.
    pub(super) next: AtomicLink,
    /// How often the node was taken. Its owner's.
    version: Plain,
    /// Where the owner sleeps. An earlier owner's late wake-up may arrive here: sleepers look again.
    #[cfg(feature = "std")]
    pub(super) token: Token,
    /// Where the owner sleeps instead, if it waits for several requests at once. Written by the owner, and read by the
    /// thread that wakes it. Ordered by the word.
    #[cfg(feature = "std")]
    sleeper: SleeperCell,
    /// When the owner was last woken; 0 if it was not since it looked.
    #[cfg(feature = "std")]
    woken_at: core::sync::atomic::AtomicU32,
    item: Slot<T>,
}

impl<T> Node<T> {
    /// Makes a free node.
    ///
    /// # Safety
    /// `node` is the memory of a node that no other thread knows.
    unsafe fn init(node: *mut Self) {
        // SAFETY: the caller's memory, field by field, as an item may be larger than the stack.
        unsafe {
            (&raw mut (*node).word).write(AtomicU64::new(Word::FREE));
            (&raw mut (*node).next).write(AtomicLink::new(NULL));
            (&raw mut (*node).version).write(Plain::new(START_64));
            #[cfg(feature = "std")]
            {
                (&raw mut (*node).token).write(Token::new());
                (&raw mut (*node).sleeper).write(SleeperCell::new());
                (&raw mut (*node).woken_at).write(core::sync::atomic::AtomicU32::new(0));
            }
            init_slot(&raw mut (*node).item);
        }
    }

    #[inline(always)]
    pub(super) fn word(&self) -> Word {
        Word(look(&self.word))
    }

    #[inline(always)]
    pub(super) fn change(&self, from: Word, to: Word) -> bool {
        self.word.compare_exchange(from.0, to.0, AcqRel, Relaxed).is_ok()
    }

    /// For the owner of a held node: the word of a request, which it becomes by this.
    pub(super) fn become_request(&self, credits: u64) {
        // An owner that went without taking it back has left its sleeper here: this one sleeps on the token.
        #[cfg(feature = "std")]
        self.sleeper.clear();
        let held = self.word.load(Relaxed);
        let version = self.version.load(Relaxed);
        let read = if held & Word::DATA != 0 { 0 } else { Word::READ };
        set(&self.word, Word::WAITING | held & Word::DATA | read | credits | version << VALUE_SHIFT);
    }

    /// Takes [`become_request`](Self::become_request) back, for a node that was not linked.
    pub(super) fn become_held(&self) {
        set(&self.word, Word::HELD | self.word.load(Relaxed) & Word::DATA);
    }

    /// Wakes the owner, which sleeps or did a moment ago. If the node has another owner by now, that one looks in vain.
    #[cfg(feature = "std")]
    #[cold]
    pub(super) fn wake(&self) {
        self.woken_at.store(super::clock::clock(), Relaxed);
        match self.sleeper.get() {
            None => self.token.notify(),
            Some(elsewhere) => elsewhere.unpark(),
        }
    }

    /// For the owner of a request: if it is still to be decided, the thread that decides it is to wake this sleeper.
    #[cfg(feature = "std")]
    pub(super) fn park(&self, sleeper: Sleeper) {
        self.sleeper.set(sleeper);
        let word = self.word();
        if word.is_waiting() {
            // If this fails it was decided.
            self.change(word, word.parked());
        }
    }

    /// Takes [`park`](Self::park) back.
    #[cfg(feature = "std")]
    pub(super) fn unpark(&self) {
        let word = self.word();
        if word.is_parked() {
            self.change(word, word.unparked());
        }
        self.sleeper.clear();
    }

    /// When the owner was woken since it last asked.
    #[cfg(feature = "std")]
    pub(super) fn woken_at(&self) -> Option<u32> {
        let at = self.woken_at.load(Relaxed);
        (at != 0).then(|| {
            self.woken_at.store(0, Relaxed);
            at
        })
    }

    /// Puts an item in.
    ///
    /// # Safety
    /// The caller owns the node, which is held and empty.
    pub(super) unsafe fn put_item(&self, item: T) {
        // SAFETY: no other thread accesses the item of a held node.
        self.item.with_mut(|slot| unsafe { (*slot).write(item) });
        set(&self.word, Word::HELD | Word::DATA);
    }

    /// Drops the item where it is.
    ///
    /// # Safety
    /// As [`take_item`](Self::take_item).
    unsafe fn drop_item(&self) {
        // SAFETY: the caller's promise.
        self.item.with_mut(|item| unsafe { (*item).assume_init_drop() });
    }

    /// Moves the item out.
    ///
    /// # Safety
    /// There is one, which the caller alone has the right to, by a compare-and-swap of the word or as the node's owner.
    pub(super) unsafe fn take_item(&self) -> T {
        // SAFETY: by the caller's promise.
        self.item.with(|slot| unsafe { (*slot).assume_init_read() })
    }
}

/// Nodes of the front row.
const FRONT_BYTES: usize = 16 * 1024;
/// Nodes of the front row that a thread tries.
const OWN: usize = if cfg!(corelane_loom) { 2 } else { 4 };
const SEGMENTS: usize = INDEX_BITS as usize;

/// All nodes of a structure.
pub(super) struct Pool<T> {
    /// Segment 0 is the front row; each further one has as many nodes as all before it, and is made when one is taken.
    segments: [AtomicPtr<Node<T>>; SEGMENTS],
    front: usize,
    spare: Padded<Spare>,
}

/// The nodes that are not of the front row.
struct Spare {
    /// Those that were given back.
    free: AtomicLink,
    /// How many nodes there are before the first that was never taken, the front row included.
    taken: PlainCount,
    /// What orders segments for loom, which does not see their pointers.
    #[cfg(corelane_loom)]
    order: AtomicU64,
}

// SAFETY: items move from thread to thread, hence `T: Send`; no reference to an item is shared.
unsafe impl<T: Send> Send for Pool<T> {}
// SAFETY: as above; the word says which thread may touch a node's item.
unsafe impl<T: Send> Sync for Pool<T> {}

impl<T> Pool<T> {
    pub(super) fn new() -> Self {
        let front = if cfg!(corelane_loom) { 2 } else { (FRONT_BYTES / size_of::<Node<T>>()).clamp(4, 128) };
        Self::with_front(1 << front.ilog2())
    }

    fn with_front(front: usize) -> Self {
        let pool = Self {
            segments: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            front,
            spare: Padded(Spare {
                free: AtomicLink::new(NULL),
                taken: PlainCount::new(front),
                #[cfg(corelane_loom)]
                order: AtomicU64::new(0),
            }),
        };
        pool.segments[0].store(Self::segment(front), Release);
        pool
    }

    fn segment(nodes: usize) -> *mut Node<T> {
        let mut memory = Box::<[Node<T>]>::new_uninit_slice(nodes);
        for node in &mut memory {
            // SAFETY: its own memory.
            unsafe { Node::init(node.as_mut_ptr()) };
        }
        Box::into_raw(memory).cast()
    }

    /// How many nodes a segment has.
    fn len(&self, segment: usize) -> usize {
        if segment == 0 { self.front } else { self.front << (segment - 1) }
    }

    /// The segment of the node at `position`, counted from 0, and where it stands in there.
    #[inline(always)]
    fn place(&self, position: usize) -> (usize, usize) {
        if position < self.front {
            (0, position)
        } else {
            let segment = (position / self.front).ilog2() as usize + 1;
            (segment, position - self.len(segment))
        }
    }

    #[inline(always)]
    pub(super) fn node(&self, index: Index) -> &Node<T> {
        let (segment, offset) = self.place(index as usize - 1);
        let nodes = self.segments[segment].load(Acquire);
        // SAFETY: an index names a node of a published segment, and segments live as long as the pool.
        unsafe { &*nodes.add(offset) }
    }

    /// A held node without an item.
    pub(super) fn allocate(&self) -> Index {
        let index = self.take_own().or_else(|| self.pop()).unwrap_or_else(|| self.take_new());
        let node = self.node(index);
        node.version.store(node.version.load(Relaxed).wrapping_add(1), Relaxed);
        // A change that was meant for the node's last life must fail.
        node.next.set(node.next.load().to(NULL, 0));
        index
    }

    /// A held node with an item.
    pub(super) fn allocate_with(&self, item: T) -> Index {
        let index = self.allocate();
        // SAFETY: just taken.
        unsafe { self.node(index).put_item(item) };
        index
    }

    #[inline(always)]
    fn take_own(&self) -> Option<Index> {
        let first = thread_number().wrapping_mul(OWN);
        (0..OWN).map(|i| ((first + i) & (self.front - 1)) as Index + 1).find(|&index| {
            let word = &self.node(index).word;
            word.load(Relaxed) == Word::FREE && word.compare_exchange(Word::FREE, Word::HELD, Acquire, Relaxed).is_ok()
        })
    }

    fn pop(&self) -> Option<Index> {
        loop {
            let first = self.spare.free.load();
            if first.is_null() {
                return None;
            }
            let next = self.node(first.index()).next.load();
            if self.spare.free.change(first, first.to(next.index(), 0)) {
                return Some(first.index());
            }
        }
    }

    /// Puts a node that the caller owns on the free list.
    fn push(&self, index: Index) {
        let node = &self.node(index).next;
        loop {
            let top = self.spare.free.load();
            node.set(node.load().to(top.index(), 0));
            if self.spare.free.change(top, top.to(index, 0)) {
                return;
            }
        }
    }

    /// Takes the first node that was never taken, for a call that found none free: all before it were in use then.
    #[cold]
    fn take_new(&self) -> Index {
        // A count of calls in vain, which could wrap around, would lead to nodes that are in use.
        let next = |taken| (taken < 1 << (INDEX_BITS - 1)).then_some(taken + 1);
        let position = self.spare.taken.fetch_update(Relaxed, Relaxed, next);
        let position = position.expect("100 million requests wait here: let fewer threads and tickets wait");
        let segment = self.place(position).0;
        if self.segments[segment].load(Acquire).is_null() {
            let count = self.len(segment);
            let nodes = Self::segment(count);
            #[cfg(corelane_loom)]
            self.spare.order.fetch_add(1, Release);
            if self.segments[segment].compare_exchange(ptr::null_mut(), nodes, AcqRel, Acquire).is_err() {
                // SAFETY: made by `segment` with this length and not published.
                unsafe { Self::free_segment(nodes, count) };
            }
        }
        #[cfg(corelane_loom)]
        self.spare.order.fetch_add(1, Acquire);
        let index = position as Index + 1;
        set(&self.node(index).word, Word::HELD);
        index
    }

    /// # Safety
    /// Made by [`segment`](Self::segment) with this length, and not used again.
    unsafe fn free_segment(nodes: *mut Node<T>, count: usize) {
        // SAFETY: by the caller's promise.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(nodes, count)) });
    }

    /// Gives a node back that nothing links to and no thread will look at.
    pub(super) fn free(&self, index: Index) {
        let node = self.node(index);
        if index as usize <= self.front {
            set(&node.word, Word::FREE);
        } else {
            set(&node.word, Word::HELD);
            self.push(index);
        }
    }

    /// Moves the item out of a held node, which is freed.
    ///
    /// # Safety
    /// The node is the caller's alone, and holds an item.
    pub(super) unsafe fn take_and_free(&self, index: Index) -> T {
        // SAFETY: by the caller's promise.
        let item = unsafe { self.node(index).take_item() };
        self.free(index);
        item
    }

    /// Brings in credits of a node, which is freed with the last one.
    pub(super) fn credit(&self, index: Index, credits: u64) {
        let before = self.node(index).word.fetch_or(credits, AcqRel);
        if (before | credits) & Word::CREDITS == Word::CREDITS {
            self.free(index);
        }
    }

    /// How many nodes there are, in use or not.
    pub(super) fn nodes(&self) -> usize {
        (0..SEGMENTS).take_while(|&i| !self.segments[i].load(Acquire).is_null()).map(|i| self.len(i)).sum()
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        struct Memory<'a, T>(&'a Pool<T>);
        impl<T> Drop for Memory<'_, T> {
            fn drop(&mut self) {
                for (i, segment) in self.0.segments.iter().enumerate() {
                    let nodes = segment.load(Acquire);
                    if !nodes.is_null() {
                        // SAFETY: made with this length, and no thread has a reference any more.
                        unsafe { Pool::free_segment(nodes, self.0.len(i)) };
                    }
                }
            }
        }
        let memory = Memory(self);
        let pool = memory.0;
        // Items that were put without waiting, or whose tickets were forgotten.
        crate::mem::buffer::drop_all(pool.nodes(), |position| {
            let node = pool.node(position as Index + 1);
            let word = node.word();
            let held = word.kind() == Word::HELD || word.is_waiting() || word.is_closed();
            if held && word.is_data() && !word.has(Word::READ) {
                // SAFETY: by its word the node holds an item, and no other thread is there.
                unsafe { node.drop_item() };
            }
        });
    }
}

/// A small number of this thread.
#[cfg(all(feature = "std", not(any(corelane_loom, corelane_shuttle))))]
#[inline(always)]
fn thread_number() -> usize {
    use core::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(crate::start::START);
    std::thread_local! {
        static NUMBER: core::cell::Cell<usize> = const { core::cell::Cell::new(usize::MAX) };
    }
    let number = NUMBER.get();
    if number != usize::MAX {
        return number;
    }
    let number = NEXT.fetch_add(1, Relaxed);
    NUMBER.set(number);
    number
}

#[cfg(any(not(feature = "std"), corelane_loom, corelane_shuttle))]
fn thread_number() -> usize {
    0
}
