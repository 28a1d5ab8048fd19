//! Probes other than a SYN: FIN, NULL and Xmas segments, and UDP datagrams without an answer.
//!
//! A probe is the first packet of its flow. It has the key (kind, source, destination, destination port), and a key
//! counts once, at the time of its earliest probe. Only packets of the address pair are looked at, in the order of the
//! file.
//!
//! 1. A TCP segment with FIN alone (FIN scan), without a flag (NULL) or with FIN, PSH and URG (Xmas), ECN's bits aside,
//!    that begins its flow, has failed at once: no stack sends one before it has a connection, and RFC 9293 (section
//!    3.10.7) answers it with an RST or not at all. One that comes behind any other packet of its flow is taken for a
//!    part of that conversation.
//! 2. A UDP datagram that begins its flow asks. The key has failed unless a datagram comes back on one of its flows,
//!    whenever: a single datagram may be lost or late, and one answer shows that a host is there. An ICMP error is not
//!    looked at, as refusal and silence are the same here.
//! 3. Some datagrams do not ask, and their flows are not judged: those to a multicast or broadcast address, where many
//!    may answer from elsewhere or none; those from a port below 1024 to one that is not, which look like the answer to
//!    a question that the capture does not have (it began later, or another host asked in this name: backscatter);
//!    those with at most 30 hops left to a port from 33434 on, by which traceroute and its like make routers speak.
//! 4. A group of UDP keys in which one of five or more was answered is no scan: resolvers and peer-to-peer programs
//!    meet many hosts that have gone away, but not only those.
//!
//! What is kept: two bits in the flow of a UDP conversation, and one entry for each key that asked.

use super::flows::Flow;
use crate::key::Key;
use crate::probe::Probe;
use crate::run::Run;
use crate::slot::Slot;
use crate::table::Table;
use bytemuck::Zeroable;
use corelane_net::decode::UDP;
use corelane_net::decode::flags::{FIN, PSH, URG};

/// All flags but those of ECN.
const FLAGS: u8 = 0x3f;

const fn of_flags(flags: u8) -> Option<Probe> {
    const XMAS: u8 = FIN | PSH | URG;
    match flags & FLAGS {
        FIN => Some(Probe::Fin),
        0 => Some(Probe::Null),
        XMAS => Some(Probe::Xmas),
        _ => None,
    }
}

/// Bit n says whether a packet whose lower six flags are n may be a probe: a test without a branch. Datagrams have no
/// flags, so all of them are in.
const PROBING: u64 = {
    let mut set = 0;
    let mut flags = 0;
    while flags <= FLAGS {
        if of_flags(flags).is_some() {
            set |= 1 << flags;
        }
        flags += 1;
    }
    set
};

/// 1 if the packet may be a probe or answer one, else 0.
#[inline(always)]
pub(crate) fn may_probe(slot: &Slot) -> u64 {
    PROBING >> (slot.flags() & FLAGS) & 1
}

/// What a packet means to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Probe,
    Answer,
}

/// The kind of a packet that [`may_probe`].
#[inline(always)]
pub(crate) fn kind(slot: &Slot) -> Probe {
    of_flags(slot.flags()).filter(|_| slot.protocol() != UDP).unwrap_or(Probe::Udp)
}

/// What a flow remembers of its beginning, see [`Flow::beginning`]: nothing yet …
const UNKNOWN: u64 = 0;
/// … or that the end with the lesser address and port asked …
const BY_LESSER: u64 = 1;
/// … or the other one …
const BY_GREATER: u64 = 2;
/// … or that nothing more can come of it.
const SETTLED: u64 = 3;

/// A packet that [`may_probe`], in the order of its flow. `is_first` says whether it began it, for TCP; `by_lesser`
/// whether the end with the lesser address and port sent it; `to_many` whether its destination is no single host.
#[inline(always)]
pub(crate) fn event(
    flow: &mut Flow,
    slot: &Slot,
    is_first: impl FnOnce(&Flow) -> bool,
    by_lesser: bool,
    to_many: bool,
) -> Option<Event> {
    if slot.protocol() != UDP {
        return is_first(flow).then_some(Event::Probe);
    }
    let sender = if by_lesser { BY_LESSER } else { BY_GREATER };
    match flow.beginning() {
        SETTLED => None,
        UNKNOWN if asks(slot, to_many) => {
            flow.set_beginning(sender);
            Some(Event::Probe)
        }
        beginning if beginning == sender => None,
        beginning => {
            flow.set_beginning(SETTLED);
            (beginning != UNKNOWN).then_some(Event::Answer)
        }
    }
}

/// Whether a datagram that begins a flow asks for an answer; step 3.
fn asks(slot: &Slot, to_many: bool) -> bool {
    const PRIVILEGED: u16 = 1024;
    const TRACEROUTE: u16 = 33_434;
    let (source_port, port) = slot.ports();
    let is_answer = source_port < PRIVILEGED && port >= PRIVILEGED;
    let is_trace = slot.has_few_hops() && port >= TRACEROUTE;
    !(to_many || is_answer || is_trace)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Zeroable)]
#[repr(u64)]
enum State {
    /// Of an entry that was made this moment.
    #[default]
    New,
    /// Nothing came back.
    Failed,
    /// A datagram came back.
    Answered,
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, Default, Zeroable)]
pub(crate) struct Probed {
    /// Of the earliest probe.
    time: u64,
    state: State,
}

impl Probed {
    /// The failure's time, if it has failed.
    pub(crate) fn failed(&self) -> Option<u64> {
        (self.state == State::Failed).then_some(self.time)
    }
}

/// One event of the key.
pub(crate) fn step<K: Key, A: Copy + Default + Zeroable>(
    table: &mut Table<K, Probed, A>,
    run: &Run,
    key: &K,
    event: Event,
    time: u64,
) {
    let hash = key.hash(&run.keys);
    match event {
        Event::Probe => {
            let probed = table.entry(run, key, hash);
            match probed.state {
                State::New => *probed = Probed { time, state: State::Failed },
                State::Failed => probed.time = probed.time.min(time),
                State::Answered => {}
            }
        }
        Event::Answer => {
            if let Some(position) = table.find(key, hash) {
                table.value_at(position).state = State::Answered;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_make_probes() {
        for ecn in [0, 0x40, 0x80, 0xc0] {
            assert_eq!(of_flags(0x01 | ecn), Some(Probe::Fin));
            assert_eq!(of_flags(ecn), Some(Probe::Null));
            assert_eq!(of_flags(0x29 | ecn), Some(Probe::Xmas));
        }
        let probes = [0x00, 0x01, 0x29];
        for flags in (0..=FLAGS).filter(|flags| !probes.contains(flags)) {
            assert_eq!(of_flags(flags), None, "{flags:#x}");
            assert_eq!(PROBING >> flags & 1, 0, "{flags:#x}");
        }
    }
}
