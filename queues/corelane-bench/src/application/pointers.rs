//! Elements of any size over a ring of words: the ring carries pointers to memory beside it.
//!
//! FastForward and B-Queue carry words that are not NULL. Footnote 1 of the MCRingBuffer paper: "The authors of \[2\]
//! suggest to transfer pointers to an external storage over the ring buffer".
//!
//! The memory has two places more than the ring has slots, S, and the elements use the places in turn. An element is
//! written into its place before the ring is asked for room. That does not overwrite what is still to be read: when
//! element n is written, the push of n - 1 has found its slot free, so n - 1 - S has been popped. Before that pop the
//! consumer has read n - 2 - S, whose place n takes. The store that frees a slot is release, and the producer's look
//! at it acquire, which orders the read before the write. Were that argument wrong, an element would be torn, and the
//! answer wrong, but nothing unsound: the words are atomics.

use crate::contender::{Ends, Kind, Pair, Unable};
use crate::item::Block;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The ring `P`, for blocks.
#[derive(Debug)]
pub(crate) struct Pointers<P>(PhantomData<P>);

type Storage<const WORDS: usize> = Arc<[[AtomicU64; WORDS]]>;

/// An end of the ring; the producer also has the place of its next element.
pub(crate) struct End<E, const WORDS: usize> {
    end: E,
    storage: Storage<WORDS>,
    next: usize,
}

impl<P: Pair<u64>, const WORDS: usize> Pair<Block<WORDS>> for Pointers<P> {
    const KIND: Kind = P::KIND;
    const GRAIN: u64 = P::GRAIN;
    const HAS_A_THREAD: bool = P::HAS_A_THREAD;
    type Tx = End<P::Tx, WORDS>;
    type Rx = End<P::Rx, WORDS>;

    fn name() -> String {
        P::name()
    }

    fn pair(capacity: usize) -> Result<Ends<Self, Block<WORDS>>, Unable> {
        let (tx, rx) = P::pair(capacity)?;
        let place = |_| std::array::from_fn(|_| AtomicU64::new(0));
        let storage: Storage<WORDS> = (0..capacity + 2).map(place).collect();
        Ok((End { end: tx, storage: storage.clone(), next: 0 }, End { end: rx, storage, next: 0 }))
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, Block(words): Block<WORDS>) -> bool {
        let place = &tx.storage[tx.next];
        place.iter().zip(words).for_each(|(to, word)| to.store(word, Relaxed));
        let pushed = P::try_push(&mut tx.end, tx.next as u64);
        if pushed {
            tx.next = if tx.next + 1 == tx.storage.len() { 0 } else { tx.next + 1 };
        }
        pushed
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<Block<WORDS>> {
        let place = &rx.storage[P::try_pop(&mut rx.end)? as usize];
        Some(Block(std::array::from_fn(|word| place[word].load(Relaxed))))
    }
}
