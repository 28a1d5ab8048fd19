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

use super::Carrier;
use crate::contenders::{Rx, Tx};
use crate::item::Block;
use crate::measure::Boxed;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

type Storage<const WORDS: usize> = Arc<[[AtomicU64; WORDS]]>;

/// An end of the ring; the producer also has the place of its next element.
struct End<E: ?Sized, const WORDS: usize> {
    end: Box<E>,
    storage: Storage<WORDS>,
    next: usize,
}

/// The ring, for blocks.
pub(crate) fn pointers<const WORDS: usize>(ring: Carrier<u64>) -> Carrier<Block<WORDS>> {
    let grain = ring.grain;
    let make = move |setting: &_, capacity| {
        let (tx, rx) = (ring.make)(setting, capacity)?;
        let place = |_| std::array::from_fn(|_| AtomicU64::new(0));
        let storage: Storage<WORDS> = (0..capacity + 2).map(place).collect();
        let (tx, rx) = (End { end: tx, storage: storage.clone(), next: 0 }, End { end: rx, storage, next: 0 });
        Ok::<Boxed<_>, _>((Box::new(tx), Box::new(rx)))
    };
    Carrier { grain, make: Rc::new(make) }
}

impl<const WORDS: usize> Tx<Block<WORDS>> for End<dyn Tx<u64>, WORDS> {
    #[inline(always)]
    fn try_push(&mut self, Block(words): Block<WORDS>) -> bool {
        let place = &self.storage[self.next];
        place.iter().zip(words).for_each(|(to, word)| to.store(word, Relaxed));
        let pushed = self.end.try_push(self.next as u64);
        if pushed {
            self.next = if self.next + 1 == self.storage.len() { 0 } else { self.next + 1 };
        }
        pushed
    }
}

impl<const WORDS: usize> Rx<Block<WORDS>> for End<dyn Rx<u64>, WORDS> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<Block<WORDS>> {
        let place = &self.storage[self.end.try_pop()? as usize];
        Some(Block(std::array::from_fn(|word| place[word].load(Relaxed))))
    }
}
