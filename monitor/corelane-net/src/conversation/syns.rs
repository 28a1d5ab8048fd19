//! Traces of the last SYNs.
//!
//! A SYN alone begins no conversation, or each spoofed SYN of a flood would be one. But when its answer comes, or data
//! whose answer was not captured, the SYN shows which end opened, when, and where the sequence numbers start. So SYNs
//! leave traces in a fixed number of places. A hash of the conversation chooses eight places, of which the oldest trace
//! is overwritten if there is no other. So only a flood overwrites traces that matter, and only costs those connections
//! the time and the count of their SYN. The hash has no secret, as the same traces must be lost in every run.
//!
//! Payload on a SYN (TCP Fast Open) is kept, too, as it counts once it is acknowledged: all traces together keep as many
//! bytes of it as their own places take. Beyond that it is left out.

use super::key::{Key, Sender};
use crate::decode::Packet;
use std::ops::Range;

/// The time for which a trace counts, in nanoseconds.
const FRESH: u64 = 60_000_000_000;

/// The most places: more than a partition sees SYNs in the time of an answer.
const MOST: usize = 4096;

/// The places that a conversation's trace may have.
const WAYS: usize = 8;

/// A SYN, and its repetitions.
#[derive(Clone, Debug)]
pub(super) struct Syn {
    key: Key,
    /// What it carried, as far as it is kept.
    pub(super) payload: Box<[u8]>,
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
    /// Bytes of payload.
    payload: usize,
}

impl Syns {
    /// Makes room for traces, with a part of a partition's memory.
    pub(super) fn new(bytes: usize) -> Self {
        let count = (bytes / 64 / size_of::<Option<Syn>>()).clamp(1, MOST);
        Self { places: Box::default(), count: 1 << count.ilog2(), payload: 0 }
    }

    pub(super) fn reserved_bytes(&self) -> usize {
        size_of_val(&*self.places) + self.payload
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
        self.places(key).find(|&place| self.places[place].as_ref().is_some_and(|syn| syn.key.equals(key)))
    }

    /// Records a SYN of this time. Returns whether memory was reserved for it.
    pub(super) fn remember(&mut self, key: &Key, sender: Sender, packet: &Packet<'_>) -> bool {
        let Packet { time_ns, sequence, frames, wire_len: bytes, payload, .. } = *packet;
        let before = self.reserved_bytes();
        if self.places.is_empty() {
            self.places = vec![None; self.count].into();
        }
        let age = |&place: &usize| self.places[place].as_ref().map(|syn| syn.first_ns);
        // A free place counts as the oldest; of several, the first.
        let place = self.find(key).or_else(|| self.places(key).min_by_key(age)).unwrap_or(0);
        match &mut self.places[place] {
            Some(old) if old.key.equals(key) && old.sender == sender && old.sequence == sequence => {
                old.frames = old.frames.saturating_add(frames);
                old.bytes = old.bytes.saturating_add(bytes);
            }
            old => {
                self.payload -= old.as_ref().map_or(0, |old| old.payload.len());
                let fits = self.payload + payload.len() <= size_of::<Option<Syn>>() * self.count;
                let payload: Box<[u8]> = if fits { payload.into() } else { Box::default() };
                self.payload += payload.len();
                *old = Some(Syn { key: *key, first_ns: time_ns, sequence, frames, bytes, sender, payload });
            }
        }
        self.reserved_bytes() > before
    }

    /// The trace of a SYN of this conversation for a packet of this time, if there is one. Only times of the
    /// conversation itself are compared: when others of the partition come has nothing to do with it.
    pub(super) fn get(&self, key: &Key, time_ns: u64) -> Option<&Syn> {
        self.places[self.find(key)?].as_ref().filter(|syn| time_ns.saturating_sub(syn.first_ns) < FRESH)
    }

    /// Takes the same out, whatever its time is.
    pub(super) fn take(&mut self, key: &Key) -> Option<Syn> {
        let syn = self.places[self.find(key)?].take()?;
        self.payload -= syn.payload.len();
        Some(syn)
    }

    /// Gives all memory back.
    pub(super) fn clear(&mut self) {
        self.places = Box::default();
        self.payload = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Packet, TCP, mapped};

    fn syn(host: u32, time_ns: u64, payload: &[u8]) -> Packet<'_> {
        Packet {
            time_ns,
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
            payload,
            cut: 0,
            outermost: &[],
        }
    }

    fn key(host: u32) -> Key {
        Key::of(&syn(host, 0, b"")).0
    }

    fn remember(syns: &mut Syns, host: u32, time_ns: u64, payload: &[u8]) -> bool {
        let packet = syn(host, time_ns, payload);
        let (key, sender) = Key::of(&packet);
        syns.remember(&key, sender, &packet)
    }

    #[test]
    fn the_oldest_trace_makes_way_when_all_places_are_taken() {
        let mut syns = Syns { places: Box::default(), count: WAYS, payload: 0 };
        let kept = |syns: &Syns| (2..20).filter(|&host| syns.get(&key(host), 100).is_some()).collect::<Vec<_>>();
        for host in 2..10 {
            remember(&mut syns, host, host.into(), b"");
        }
        assert_eq!(kept(&syns), (2..10).collect::<Vec<_>>());
        remember(&mut syns, 2, 50, b"");
        assert_eq!(syns.get(&key(2), 100).map(|syn| (syn.first_ns, syn.frames)), Some((2, 2)));
        syns.take(&key(5));
        for host in [10, 11] {
            remember(&mut syns, host, host.into(), b"");
        }
        assert_eq!(kept(&syns), [3, 4, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn payload_is_kept_within_its_bound_and_given_back() {
        let mut syns = Syns { places: Box::default(), count: WAYS, payload: 0 };
        let most = WAYS * size_of::<Option<Syn>>();
        let half = vec![7; most / 2];
        let held = |syns: &Syns, host| syns.get(&key(host), 100).map_or(0, |syn| syn.payload.len());
        for host in 2..5 {
            assert_eq!(remember(&mut syns, host, 1, &half), host < 4, "{host}");
        }
        assert_eq!(
            ([2, 3, 4].map(|host| held(&syns, host)), syns.reserved_bytes()),
            ([half.len(), half.len(), 0], 2 * most)
        );
        assert_eq!(syns.take(&key(3)).map(|syn| syn.payload.len()), Some(half.len()));
        assert!(remember(&mut syns, 5, 1, &half));
        // One in its place gives back what the other held.
        for host in 20..60 {
            remember(&mut syns, host, host.into(), b"x");
            assert!(syns.reserved_bytes() <= 2 * most);
        }
        assert_eq!(syns.payload, WAYS);
        syns.clear();
        assert_eq!(syns.reserved_bytes(), 0);
    }
}
