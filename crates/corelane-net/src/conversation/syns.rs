//! Traces of the last SYNs.
//!
//! A SYN alone begins no conversation, or each spoofed SYN of a flood would be one. But when its answer comes, or data
//! whose answer was not captured, the SYN tells which end opened, when, and where the sequence numbers start. So SYNs
//! leave traces in a fixed number of places. The place is a hash of the conversation, and a later SYN overwrites it. A
//! flood overwrites traces, and only costs those connections the time and the count of their SYN. The hash has no
//! secret, as the same traces must be lost in every run.

use super::key::{Key, Sender};

/// The time for which a trace counts, in nanoseconds.
const FRESH: u64 = 60_000_000_000;

/// The most places: more than a partition sees SYNs in the time of an answer.
const MOST: usize = 4096;

/// A SYN, and its repetitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syn {
    key: Key,
    pub(super) first_ns: u64,
    pub(super) sequence: u32,
    pub(super) frames: u32,
    pub(super) bytes: u32,
    pub(super) sender: Sender,
}

#[derive(Debug)]
pub(super) struct Syns {
    /// Empty before the first SYN.
    places: Box<[Option<Syn>]>,
    count: usize,
}

impl Syns {
    /// Makes room for traces, with a part of a partition's memory.
    pub(super) fn new(bytes: usize) -> Self {
        let count = (bytes / 64 / size_of::<Option<Syn>>()).clamp(1, MOST);
        Self { places: Box::default(), count: 1 << count.ilog2() }
    }

    pub(super) fn reserved_bytes(&self) -> usize {
        size_of_val(&*self.places)
    }

    fn place(&self, key: &Key) -> usize {
        let mix = |hash: u64, word: u64| {
            let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
            (product >> 64) as u64 ^ product as u64
        };
        let hash = key.words().into_iter().fold(0x2545_f491_4f6c_dd1d, mix);
        (hash >> 32) as usize & (self.count - 1)
    }

    /// Records a SYN. Says whether memory was reserved for it.
    pub(super) fn remember(
        &mut self,
        key: &Key,
        sender: Sender,
        now_ns: u64,
        sequence: u32,
        frames: u32,
        bytes: u32,
    ) -> bool {
        let reserved = self.places.is_empty();
        if reserved {
            self.places = vec![None; self.count].into();
        }
        let place = self.place(key);
        let fresh = Syn { key: *key, first_ns: now_ns, sequence, frames, bytes, sender };
        self.places[place] = Some(match self.places[place] {
            Some(old) if old.key.equals(key) && old.sender == sender && old.sequence == sequence => {
                Syn { frames: old.frames.saturating_add(frames), bytes: old.bytes.saturating_add(bytes), ..old }
            }
            _ => fresh,
        });
        reserved
    }

    /// The trace of a SYN of this conversation, if there is one.
    pub(super) fn get(&self, key: &Key, now_ns: u64) -> Option<Syn> {
        let syn = (*self.places.get(self.place(key))?)?;
        (syn.key.equals(key) && now_ns.saturating_sub(syn.first_ns) < FRESH).then_some(syn)
    }

    pub(super) fn forget(&mut self, key: &Key) {
        let place = self.place(key);
        if let Some(place) = self.places.get_mut(place)
            && place.is_some_and(|syn| syn.key.equals(key))
        {
            *place = None;
        }
    }

    /// Gives all memory back.
    pub(super) fn clear(&mut self) {
        self.places = Box::default();
    }
}
