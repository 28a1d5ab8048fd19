//! What the structures provide in which requests meet, and the follow-up to a request, which is the same for all.

use super::pool::{Index, Node, Pool, Word};
use crate::error::{TryPopError, TryPushError};
use crate::sync::{AtomicUsize, Relaxed};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How a request behaves when there is no partner.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// It fails.
    Fail,
    /// It is registered and waits.
    Wait,
    /// Its item stays for the next take, and no thread waits.
    Leave,
}

/// What became of a request. A put's item comes back where it was not handed over.
pub(super) enum Answer<T> {
    /// A partner was there. A take has its item.
    Matched(Option<T>),
    /// Registered in this node.
    Waits(Index),
    /// There was no partner.
    Alone(Option<T>),
    /// The structure is closed.
    Closed(Option<T>),
}

/// The answer to a follow-up.
pub(super) enum Fate<T> {
    /// Handed over. A take has its item.
    Matched(Option<T>),
    /// The structure was closed. A put has its item.
    Closed(Option<T>),
}

/// Where requests meet.
pub(super) trait Dual<T> {
    fn pool(&self) -> &Pool<T>;

    /// Matches a put (with an item) or a take (without) with the request that is next in line, or registers it.
    fn request(&self, item: Option<T>, otherwise: Otherwise) -> Answer<T>;

    /// True if the request in this node is the next to be matched.
    fn is_next(&self, index: Index) -> bool;

    /// Removes nodes that do not wait any more, this one or others. Called by a request that was just cancelled and has
    /// not given up its node.
    fn clean(&self, index: Index);

    /// No request after this is matched or registered; those that wait learn of it.
    fn close(&self);

    fn is_closed(&self) -> bool;
}

/// A synchronous dual structure: a chain that holds either puts or takes that wait.
pub(super) trait Chain<T>: Dual<T> {
    fn cleaning(&self) -> &Cleaning;

    /// Removes nodes that do not wait any more from where the next is matched.
    fn trim(&self);

    /// Visits the nodes in their order; `false` if the one it stood on has left before the end. With `unlink` it takes
    /// out those that were cancelled, where it can.
    fn walk(&self, unlink: bool, visit: impl FnMut(&Node<T>, Word)) -> bool;

    /// How many requests of one kind wait. A traversal.
    fn count(&self, data: bool) -> usize {
        let mut count = 0;
        for _ in 0..ATTEMPTS {
            count = 0;
            if self.walk(false, |_, word| count += usize::from(word.is_waiting() && word.is_data() == data)) {
                break;
            }
        }
        count
    }

    /// Removes nodes that do not wait any more from the front, and, where many have accumulated elsewhere, all of them.
    fn clean_chain(&self, index: Index) {
        self.trim();
        if self.pool().node(index).word().has(Word::UNLINKED | Word::SKIPPED) {
            return;
        }
        let dead = self.cleaning().dead.fetch_add(1, Relaxed) + 1;
        if dead >= self.cleaning().limit.load(Relaxed) {
            self.sweep();
        }
    }

    /// Unlinks the nodes that were cancelled.
    fn sweep(&self) {
        self.cleaning().dead.store(0, Relaxed);
        for _ in 0..ATTEMPTS {
            let mut live = 0;
            if self.walk(true, |_, word| live += usize::from(word.is_waiting())) {
                self.cleaning().limit.store(live.max(SWEEP), Relaxed);
                return;
            }
        }
    }
}

/// What only those touch that were cancelled.
pub(super) struct Cleaning {
    /// Nodes cancelled in the middle since the last sweep, and not unlinked since.
    dead: AtomicUsize,
    /// A sweep is due at so many.
    limit: AtomicUsize,
}

impl Cleaning {
    pub(super) fn new() -> Self {
        Self { dead: AtomicUsize::new(0), limit: AtomicUsize::new(SWEEP) }
    }
}

/// The least number of dead nodes that a sweep is worth.
const SWEEP: usize = if cfg!(corelane_loom) { 1 } else { 32 };

/// How often a walk that was disturbed begins again. One that does mends what others left, which would hide it from
/// loom.
const ATTEMPTS: usize = if cfg!(corelane_loom) { 1 } else { 3 };

/// Asks for the fate of a registered request: reads nothing but its own node, and ends the request if it has one.
///
/// # Safety
/// The caller owns the request, and does not ask again after an answer.
pub(super) unsafe fn follow_up<T>(pool: &Pool<T>, index: Index) -> Option<Fate<T>> {
    let node = pool.node(index);
    let word = node.word();
    if word.is_waiting() {
        return None;
    }
    if word.is_matched() {
        // SAFETY: the node of a matched take names the one that was left for it, with an item.
        let item = (!word.is_data()).then(|| unsafe { pool.take_and_free(word.partner()) });
        pool.credit(index, Word::DONE);
        return Some(Fate::Matched(item));
    }
    debug_assert!(word.is_closed());
    // SAFETY: no take has matched the put, so its item is still there, and its owner's.
    let item = word.is_data().then(|| unsafe { node.take_item() });
    pool.credit(index, Word::DONE | Word::READ);
    Some(Fate::Closed(item))
}

/// Withdraws a registered request, unless its fate is decided. A put has its item back. `clean` removes its node or
/// others.
///
/// # Safety
/// As for [`follow_up`].
pub(super) unsafe fn withdraw<T>(pool: &Pool<T>, index: Index, clean: impl FnOnce()) -> Option<Option<T>> {
    let node = pool.node(index);
    loop {
        let word = node.word();
        if !word.is_waiting() {
            return None;
        }
        if node.change(word, word.cancelled()) {
            // SAFETY: the compare-and-swap kept every partner away, so the item is still there, and its owner's.
            let item = word.is_data().then(|| unsafe { node.take_item() });
            clean();
            pool.credit(index, Word::DONE | Word::READ);
            return Some(item);
        }
    }
}

/// Wakes the owner of a request that was just decided, if it slept then.
pub(super) fn wake<T>(node: &Node<T>, word: Word) {
    #[cfg(feature = "std")]
    if word.is_parked() {
        node.wake();
    }
    #[cfg(not(feature = "std"))]
    let _ = (node, word);
}

/// A request on its way in: its item, until a node is needed for it.
pub(super) struct Incoming<'a, T> {
    pool: &'a Pool<T>,
    item: Option<T>,
    index: Option<Index>,
    is_data: bool,
    /// A put that takes its partner's item: an exchange.
    swaps: bool,
}

impl<'a, T> Incoming<'a, T> {
    pub(super) fn new(pool: &'a Pool<T>, item: Option<T>) -> Self {
        let is_data = item.is_some();
        Self { pool, item, index: None, is_data, swaps: false }
    }

    /// An exchange.
    pub(super) fn swap(pool: &'a Pool<T>, item: T) -> Self {
        Self { swaps: true, ..Self::new(pool, Some(item)) }
    }

    /// This request again, with the item it had, after its node was given up.
    pub(super) fn again(self, item: Option<T>) -> Self {
        Self { item, index: None, ..self }
    }

    pub(super) fn pool(&self) -> &'a Pool<T> {
        self.pool
    }

    /// Whether this request and a waiting one are partners.
    #[inline(always)]
    pub(super) fn suits(&self, word: Word) -> bool {
        self.swaps || word.is_data() != self.is_data
    }

    #[inline(always)]
    pub(super) fn is_data(&self) -> bool {
        self.is_data
    }

    /// The held node with its item, if it has one.
    #[inline(always)]
    pub(super) fn node(&mut self) -> Index {
        *self.index.get_or_insert_with(|| match self.item.take() {
            Some(item) => self.pool.allocate_with(item),
            None => self.pool.allocate(),
        })
    }

    /// Tries to decide the fate of a waiting partner. If it succeeds, a take has read its item, an exchange its
    /// partner's, and the word before is what the owner is to be woken by.
    #[inline(always)]
    pub(super) fn match_with(&mut self, index: Index, word: Word) -> bool {
        let node = self.pool.node(index);
        if self.swaps {
            let mine = self.node();
            let matches = node.change(word, word.swapped(mine));
            if matches {
                // SAFETY: the compare-and-swap made the item ours.
                self.item = Some(unsafe { node.take_item() });
            }
            matches
        } else if self.is_data {
            let mine = self.node();
            node.change(word, word.given(mine))
        } else if node.change(word, word.taken()) {
            // SAFETY: the compare-and-swap made the item ours.
            self.item = Some(unsafe { node.take_item() });
            true
        } else {
            false
        }
    }

    /// After a match: what the caller gets. A put's node went with its item.
    #[inline(always)]
    pub(super) fn matched(self) -> Answer<T> {
        if self.is_data {
            return Answer::Matched(self.item);
        }
        self.pool_back();
        Answer::Matched(self.item)
    }

    fn pool_back(&self) {
        if let Some(index) = self.index {
            self.pool.free(index);
        }
    }

    /// Without a match: the item comes back.
    pub(super) fn back(self) -> Option<T> {
        match self.index {
            // SAFETY: nothing links to the node, and a put's node holds its item.
            Some(index) if self.is_data => Some(unsafe { self.pool.take_and_free(index) }),
            _ => {
                self.pool_back();
                self.item
            }
        }
    }
}

/// Hands the item to a take that waits.
#[inline]
pub(super) fn try_put<T>(dual: &impl Dual<T>, item: T) -> Result<(), TryPushError<T>> {
    match dual.request(Some(item), Otherwise::Fail) {
        Answer::Matched(_) => Ok(()),
        Answer::Alone(Some(item)) => Err(TryPushError::Full(item)),
        Answer::Closed(Some(item)) => Err(TryPushError::Closed(item)),
        Answer::Waits(_) | Answer::Alone(None) | Answer::Closed(None) => unreachable!("a put that does not wait"),
    }
}

/// Takes the item of a put that waits.
#[inline]
pub(super) fn try_take<T>(dual: &impl Dual<T>) -> Result<T, TryPopError> {
    match dual.request(None, Otherwise::Fail) {
        Answer::Matched(Some(item)) => Ok(item),
        Answer::Alone(_) => Err(TryPopError::Empty),
        Answer::Closed(_) => Err(TryPopError::Closed),
        Answer::Waits(_) | Answer::Matched(None) => unreachable!("a take that does not wait"),
    }
}

/// Items on their way out of a vector. It gets back what is left when this is dropped.
struct Left<'v, T> {
    items: &'v mut Vec<T>,
    left: VecDeque<T>,
}

impl<T> Drop for Left<'_, T> {
    fn drop(&mut self) {
        *self.items = core::mem::take(&mut self.left).into();
    }
}

/// Hands over as many items as find a take that waits, and returns how many; or why there was none.
pub(super) fn try_put_batch<T>(dual: &impl Dual<T>, items: &mut Vec<T>) -> Result<usize, TryPushError<()>> {
    let left = core::mem::take(items).into();
    let mut from = Left { items, left };
    let mut count = 0;
    while let Some(item) = from.left.pop_front() {
        if let Err(error) = try_put(dual, item) {
            let error = error.map(|item| from.left.push_front(item));
            return if count == 0 { Err(error) } else { Ok(count) };
        }
        count += 1;
    }
    Ok(count)
}

/// Takes the items of puts that wait, at most `max`, and appends them. Returns how many; or why there was none.
pub(super) fn try_take_batch<T>(dual: &impl Dual<T>, items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError> {
    for count in 0..max {
        match try_take(dual) {
            Ok(item) => items.push(item),
            Err(error) => return if count == 0 { Err(error) } else { Ok(count) },
        }
    }
    Ok(max)
}
