//! Traces of the last SYNs.
//!
//! A SYN alone begins no conversation, or each spoofed SYN of a flood would be one. But when its answer comes, or data
//! whose answer was not captured, the SYN shows which end opened, when, and where the sequence numbers start. So SYNs
//! leave traces in a fixed number of places. A hash of the conversation chooses eight places, of which the oldest trace
//! is overwritten if there is no other. So only a flood overwrites traces that matter, and only costs those connections
//! the time and the count of their SYN. The hash has no secret, as the same traces must be lost in every run.

use super::key::{Key, Sender};
use std::ops::Range;

/// The time for which a trace counts, in nanoseconds.
const FRESH: u64 = 60_000_000_000;

/// The most places: more than a partition sees SYNs in the time of an answer.
const MOST: usize = 4096;

/// The places that a conversation's trace may have.
const WAYS: usize = 8;

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

    /// The places that a trace of this conversation may have.
    fn places(&self, key: &Key) -> Range<usize> {
        let mix = |hash: u64, word: u64| {
            let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
            (product >> 64) as u64 ^ product as u64
        };
        let hash = key.words().into_iter().fold(0x2545_f491_4f6c_dd1d, mix);
        let ways = self.count.min(WAYS);
        let first = (hash >> 32) as usize & (self.count - 1) & !(ways - 1);
        first..first + ways
    }

    /// Where the trace of a conversation is, if there is one.
    fn find(&self, key: &Key) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        self.places(key).find(|&place| self.places[place].is_some_and(|syn| syn.key.equals(key)))
    }

    /// Records a SYN of this time. Returns whether memory was reserved for it.
    pub(super) fn remember(
        &mut self,
        key: &Key,
        sender: Sender,
        time_ns: u64,
        sequence: u32,
        frames: u32,
        bytes: u32,
    ) -> bool {
        let reserved = self.places.is_empty();
        if reserved {
            self.places = vec![None; self.count].into();
        }
        let age = |&place: &usize| self.places[place].map(|syn| syn.first_ns);
        // A free place counts as the oldest; of several, the first.
        let place = self.find(key).or_else(|| self.places(key).min_by_key(age)).unwrap_or(0);
        let fresh = Syn { key: *key, first_ns: time_ns, sequence, frames, bytes, sender };
        self.places[place] = Some(match self.places[place] {
            Some(old) if old.key.equals(key) && old.sender == sender && old.sequence == sequence => {
                Syn { frames: old.frames.saturating_add(frames), bytes: old.bytes.saturating_add(bytes), ..old }
            }
            _ => fresh,
        });
        reserved
    }

    /// The trace of a SYN of this conversation for a packet of this time, if there is one. Only times of the
    /// conversation itself are compared: when others of the partition come has nothing to do with it.
    pub(super) fn get(&self, key: &Key, time_ns: u64) -> Option<Syn> {
        let syn = self.places[self.find(key)?]?;
        (time_ns.saturating_sub(syn.first_ns) < FRESH).then_some(syn)
    }

    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(place) = self.find(key) {
            self.places[place] = None;
        }
    }

    /// Gives all memory back.
    pub(super) fn clear(&mut self) {
        self.places = Box::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Packet, TCP, mapped};

    fn key(host: u32) -> (Key, Sender) {
        let packet = Packet {
            time_ns: 0,
            wire_len: 60,
            frames: 1,
            source: mapped(host),
            destination: mapped(1),
            source_port: 1000,
            destination_port: 80,
            protocol: TCP,
            flags: 2,
            sequence: 0,
            acknowledgment: 0,
            payload: &[],
            cut: 0,
            outermost: &[],
        };
        Key::of(&packet)
    }

    #[test]
    fn the_oldest_trace_makes_way_when_all_places_are_taken() {
        let mut syns = Syns { places: Box::default(), count: WAYS };
        let kept = |syns: &Syns| (2..20).filter(|&host| syns.get(&key(host).0, 100).is_some()).collect::<Vec<_>>();
        for host in 2..10 {
            let (key, sender) = key(host);
            syns.remember(&key, sender, u64::from(host), 7, 1, 60);
        }
        assert_eq!(kept(&syns), (2..10).collect::<Vec<_>>());
        let (again, sender) = key(2);
        syns.remember(&again, sender, 50, 7, 1, 60);
        assert_eq!(syns.get(&again, 100).map(|syn| (syn.first_ns, syn.frames)), Some((2, 2)));
        syns.forget(&key(5).0);
        for host in [10, 11] {
            let (key, sender) = key(host);
            syns.remember(&key, sender, u64::from(host), 7, 1, 60);
        }
        assert_eq!(kept(&syns), [3, 4, 6, 7, 8, 9, 10, 11]);
    }
}
