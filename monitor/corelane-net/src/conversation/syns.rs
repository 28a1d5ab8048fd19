//! Traces of the last SYNs.
//!
//! A SYN alone begins no conversation, or each spoofed SYN of a flood would be one. But when its answer comes, or data
//! whose answer was not captured, the SYN shows which end opened, when, and where the sequence numbers start. So SYNs
//! leave traces in a fixed number of places. A hash of the conversation chooses eight places, of which the oldest trace
//! is overwritten if there is no other. So only a flood overwrites traces that matter, and only costs those connections
//! the time and the count of their SYN. The hash has no secret, as the same traces must be lost in every run.
//!
//! An attempt is over when its trace is: when an RST refuses it, when another takes its place, after [`FRESH`], or at
//! the end. A trace that is over by time stays for the conversation that it may still begin: the time of that may be
//! another.
//!
//! Payload on a SYN (TCP Fast Open) is kept, too, as it counts once it is acknowledged, and so is the tunnel that it
//! came through: for all traces together as many bytes as their own places take. Beyond that both are left out.

use super::key::{Key, Sender};
use crate::decode::{Packet, Tunnel};
use std::ops::Range;

/// The time for which a trace counts, in nanoseconds.
const FRESH: u64 = 60_000_000_000;

/// Traces are looked through for those that are over at most once in this time, in nanoseconds.
const ROUND: u64 = 1 << 34;

/// The most places: more than a partition sees SYNs in the time of an answer.
const MOST: usize = 4096;

/// The places that a conversation's trace may have.
const WAYS: usize = 8;

/// A SYN, and its repetitions.
#[derive(Clone, Debug)]
pub(super) struct Syn {
    pub(super) key: Key,
    /// What it carried, as far as it is kept.
    pub(super) payload: Box<[u8]>,
    /// The tunnel that it came through, with its source on the sender's side, as far as it is kept.
    pub(super) tunnel: Option<Box<Tunnel>>,
    /// How much time had passed when it came; the other times are those of the packets.
    since_ns: u64,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) sequence: u32,
    pub(super) frames: u32,
    pub(super) bytes: u32,
    pub(super) sender: Sender,
    /// The observer knows that it is over.
    told: bool,
}

impl Syn {
    pub(super) fn is_told(&self) -> bool {
        self.told
    }

    /// Bytes that it keeps outside of itself.
    fn kept(&self) -> usize {
        self.payload.len() + self.tunnel.as_ref().map_or(0, |_| size_of::<Tunnel>())
    }
}

#[derive(Debug)]
pub(super) struct Syns {
    /// Empty before the first SYN.
    places: Box<[Option<Syn>]>,
    count: usize,
    /// Bytes of payload and of tunnels.
    kept: usize,
    /// No trace that was not told is over before this time.
    due_ns: u64,
}

impl Syns {
    /// Makes room for traces, with a part of a partition's memory.
    pub(super) fn new(bytes: usize) -> Self {
        let count = (bytes / 64 / size_of::<Option<Syn>>()).clamp(1, MOST);
        Self { places: Box::default(), count: 1 << count.ilog2(), kept: 0, due_ns: u64::MAX }
    }

    pub(super) fn reserved_bytes(&self) -> usize {
        size_of_val(&*self.places) + self.kept
    }

    /// The places that a trace of this conversation may have. They do not depend on VLANs: traces that are over
    /// together are told in the order of their places, which a tag does not change.
    fn places(&self, key: &Key) -> Range<usize> {
        let mix = |hash: u64, word: u64| {
            let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
            (product >> 64) as u64 ^ product as u64
        };
        let hash = key.without_vlans().words().into_iter().fold(0x2545_f491_4f6c_dd1d, mix);
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

    /// Records a SYN. Returns whether memory was reserved for it, and what made way and was not told.
    pub(super) fn remember(
        &mut self,
        key: &Key,
        sender: Sender,
        now_ns: u64,
        packet: &Packet<'_>,
    ) -> (bool, Option<Syn>) {
        let Packet { time_ns, sequence, frames, wire_len: bytes, payload, .. } = *packet;
        let before = self.reserved_bytes();
        if self.places.is_empty() {
            self.places = vec![None; self.count].into();
        }
        let age = |&place: &usize| self.places[place].as_ref().map(|syn| syn.since_ns);
        // A free place counts as the oldest; of several, the first.
        let place = self.find(key).or_else(|| self.places(key).min_by_key(age)).unwrap_or(0);
        let mut gone = None;
        match &mut self.places[place] {
            Some(old) if old.key.equals(key) && old.sender == sender && old.sequence == sequence && !old.told => {
                old.frames = old.frames.saturating_add(frames);
                old.bytes = old.bytes.saturating_add(bytes);
                old.last_ns = old.last_ns.max(time_ns);
            }
            old => {
                self.kept -= old.as_ref().map_or(0, Syn::kept);
                let (key, payload, tunnel) = (*key, payload.into(), Tunnel::of(packet.outermost).map(Box::new));
                let (since_ns, first_ns, last_ns, told) = (now_ns, time_ns, time_ns, false);
                let mut syn =
                    Syn { key, payload, tunnel, since_ns, first_ns, last_ns, sequence, frames, bytes, sender, told };
                if self.kept + syn.kept() > size_of::<Option<Syn>>() * self.count {
                    (syn.payload, syn.tunnel) = (Box::default(), None);
                }
                self.kept += syn.kept();
                gone = old.replace(syn).filter(|old| !old.told);
                self.due_ns = self.due_ns.min(due(now_ns));
            }
        }
        (self.reserved_bytes() > before, gone)
    }

    /// The least time at which one is over, or later ones may be.
    pub(super) fn next_due(&self) -> Option<u64> {
        (self.due_ns != u64::MAX).then_some(self.due_ns)
    }

    /// Calls `tell` with those that are over at this time and were not told.
    pub(super) fn expire(&mut self, now_ns: u64, mut tell: impl FnMut(&Syn)) {
        if self.due_ns > now_ns {
            return;
        }
        self.due_ns = u64::MAX;
        for syn in self.places.iter_mut().flatten().filter(|syn| !syn.told) {
            if due(syn.since_ns) <= now_ns {
                syn.told = true;
                tell(syn);
            } else {
                self.due_ns = self.due_ns.min(due(syn.since_ns));
            }
        }
    }

    /// The trace of a SYN of this conversation for a packet of this time, if there is one. Only times of the
    /// conversation itself are compared: when others of the partition come has nothing to do with it.
    pub(super) fn get(&self, key: &Key, now_ns: u64) -> Option<&Syn> {
        self.places[self.find(key)?].as_ref().filter(|syn| now_ns.saturating_sub(syn.since_ns) < FRESH)
    }

    /// Takes the same out, whatever its time is.
    pub(super) fn take(&mut self, key: &Key) -> Option<Syn> {
        let syn = self.places[self.find(key)?].take()?;
        self.kept -= syn.kept();
        Some(syn)
    }

    /// Forgets all, and gives all memory back.
    pub(super) fn clear(&mut self) {
        self.places = Box::default();
        (self.kept, self.due_ns) = (0, u64::MAX);
    }
}

/// The time at which an attempt is over that began at `since_ns`.
fn due(since_ns: u64) -> u64 {
    since_ns.saturating_add(FRESH).checked_next_multiple_of(ROUND).unwrap_or(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{Packet, TCP, Vlans, mapped};

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
            vlans: Vlans::NONE,
        }
    }

    fn key(host: u32) -> Key {
        Key::of(&syn(host, 0, b"")).0
    }

    fn remember(syns: &mut Syns, host: u32, time_ns: u64, payload: &[u8]) -> bool {
        let packet = syn(host, time_ns, payload);
        let (key, sender) = Key::of(&packet);
        syns.remember(&key, sender, time_ns, &packet).0
    }

    #[test]
    fn the_oldest_trace_makes_way_when_all_places_are_taken() {
        let mut syns = Syns { places: Box::default(), count: WAYS, kept: 0, due_ns: u64::MAX };
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
        let mut syns = Syns { places: Box::default(), count: WAYS, kept: 0, due_ns: u64::MAX };
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
        assert_eq!(syns.kept, WAYS);
        syns.clear();
        assert_eq!(syns.reserved_bytes(), 0);
    }
}
