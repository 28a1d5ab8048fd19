//! Probes other than a SYN: segments with flags that no stack sends, and questions without an answer, by UDP and by
//! protocols without ports.
//!
//! A probe has the key (kind, source, destination, destination port). A key counts once, at the time of its earliest
//! probe. Only packets of the address pair are examined, in the order of the file.
//!
//! 1. A TCP segment is a failed probe at once if, ECN's bits aside, it has FIN alone (FIN scan), no flag (NULL), FIN,
//!    PSH and URG (Xmas), SYN and FIN, others of these without ACK, or SYN and RST. No stack sends such a segment: by
//!    RFC 9293 (section 3.1) all segments have ACK but a SYN that opens and an RST. So what its sender sent before in
//!    the flow does not matter. If the other end began the flow, the segment is an answer.
//!    A segment with ACK, or FIN and ACK (Maimon), is a failed probe if it begins its flow and an RST is the first
//!    packet that comes back; in a whole capture, the second packet of the flow. Conversations that began before the
//!    capture and were aborted look alike, so it counts for the ports of one host alone, and not where it may answer,
//!    as in step 3.
//! 2. A UDP datagram that begins its flow asks. The key has failed unless a datagram comes back on one of its flows, at
//!    any time: a single datagram may be lost or late, and one answer shows that a host is there. ICMP errors are
//!    ignored, as refusal and silence count the same here.
//! 3. Some datagrams do not ask, and their flows are not judged:
//!    - datagrams to a multicast or broadcast address, where many hosts may answer from elsewhere, or none;
//!    - datagrams from a port below 1024 to one that is not: they look like the answer to a question that the capture
//!      lacks, because it began later or another host asked in this name (backscatter);
//!    - datagrams with at most 30 hops left to a port from 33434 on, by which traceroute and its like make routers
//!      answer.
//! 4. A group of UDP keys is no scan if one key of five or more was answered: resolvers and peer-to-peer programs meet
//!    many hosts that have gone away, but also some that have not.
//!
//! 5. What asks by another protocol than TCP and UDP ([`Question`]) has no flow: its type says whether it asks or
//!    answers. A key of SCTP, a ping or ARP has failed unless an answer comes back, as one of UDP. A group by SCTP is
//!    none by rule 4, one by ping or ARP if as many are answered as fail. An IP protocol has failed at once.
//! 6. A key of ARP has failed only if it was asked for again within [`AGAIN_NS`]. The answer goes to the one that asks,
//!    and a tap that sees questions alone would take every router for a scanner. One that was answered does not ask
//!    again so soon.
//! 7. A key by UDP, ping or SCTP that is [polled](crate::polls), each time by another flow, makes no scan of its port.
//!
//! Memory: two bits in the flow of a UDP conversation, and one entry for each key that asked.
//!
//! [`Question`]: corelane_net::decode::Question

use super::flows::Flow;
use crate::key::Key;
use crate::polls::Tries;
use crate::probe::Probe;
use crate::run::Run;
use crate::slot::Slot;
use crate::table::Table;
use bytemuck::Zeroable;
use corelane_net::decode::UDP;
use corelane_net::decode::flags::{ACK, FIN, PSH, RST, SYN, URG};

/// The mask of all flags but those of ECN.
const FLAGS: u8 = 0x3f;

const fn of_flags(flags: u8) -> Option<Probe> {
    const XMAS: u8 = FIN | PSH | URG;
    match flags & FLAGS {
        FIN => Some(Probe::Fin),
        0 => Some(Probe::Null),
        XMAS => Some(Probe::Xmas),
        flags if flags & (SYN | RST) == SYN | RST => Some(Probe::Odd),
        flags if flags & ACK != 0 => None,
        flags if flags & (SYN | FIN | RST) == SYN | FIN => Some(Probe::SynFin),
        flags if flags & (SYN | RST) == 0 => Some(Probe::Odd),
        _ => None,
    }
}

/// Bit n says whether a packet whose lower six flags are n may be a probe. The test needs no branch. Datagrams have no
/// flags, so all of them may be.
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

/// A question of ARP is asked again within this time, in nanoseconds, if it was not answered …
const AGAIN_NS: u64 = 60_000_000_000;
/// … and after this, or it is one packet that was captured twice.
const APART_NS: u64 = 50_000_000;

/// Whether a key of this kind fails only when it is asked for again.
pub(crate) fn is_asked_again(probe: Probe) -> bool {
    probe == Probe::Arp
}

/// Whether a key of this kind may be [polled](crate::polls). Those that fail at once are asked by scanners alone.
pub(crate) fn may_be_polled(probe: Probe) -> bool {
    probe.waits() && !is_asked_again(probe)
}

/// Whether the second question is asked again so long after the first.
pub(crate) fn is_again(first_ns: u64, second_ns: u64) -> bool {
    (APART_NS..=AGAIN_NS).contains(&second_ns.saturating_sub(first_ns))
}

/// The effect of a packet on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Probe,
    Answer,
    /// An RST that shows that the packet before it was a probe.
    Refusal,
}

/// What a packet without a flow does to its key.
pub(crate) fn question(slot: &Slot) -> Event {
    if slot.flags() == 0 { Event::Probe } else { Event::Answer }
}

/// The kind of a packet that [`may_probe`], or has no flow.
#[inline(always)]
pub(crate) fn kind(slot: &Slot) -> Probe {
    if slot.has_no_flow() {
        return Probe::of_number(slot.protocol().into()).unwrap_or(Probe::Ping);
    }
    of_flags(slot.flags()).filter(|_| slot.protocol() != UDP).unwrap_or(Probe::Udp)
}

/// The values of [`Flow::beginning`]: nothing is known yet …
const UNKNOWN: u64 = 0;
/// … the end with the lesser address and port asked …
const BY_LESSER: u64 = 1;
/// … the other end asked …
const BY_GREATER: u64 = 2;
/// … the flow is settled: no packet of it changes anything.
const SETTLED: u64 = 3;
/// The bits of these.
const SENDER: u64 = 3;
/// Set for TCP beside the end that began: by a segment with ACK.
const BY_ACK: u64 = 4;

/// The [beginning](Flow::beginning) of the flow that this packet begins: of TCP who sent it, and whether an RST is to
/// tell if it is a probe.
#[inline]
pub(crate) fn begin(slot: &Slot) -> u64 {
    const FIN_ACK: u8 = FIN | ACK;
    if slot.protocol() == UDP {
        return UNKNOWN;
    }
    let may_probe = matches!(slot.flags() & FLAGS, ACK | FIN_ACK) && !may_answer(slot);
    sender(slot) | if may_probe { BY_ACK } else { 0 }
}

/// Whether the sender of this segment began its flow, which has this beginning.
#[inline(always)]
pub(crate) fn began(beginning: u64, slot: &Slot) -> bool {
    beginning & SENDER == sender(slot)
}

/// Whether an RST that comes back shows that the first packet of its flow, which has this beginning, was a probe.
pub(crate) fn refuses(beginning: u64, slot: &Slot) -> bool {
    beginning & BY_ACK != 0 && !began(beginning, slot)
}

#[inline(always)]
fn sender(slot: &Slot) -> u64 {
    if slot.is_by_lesser() { BY_LESSER } else { BY_GREATER }
}

/// The event of a packet that [`may_probe`]; the packets of a flow come here in order. `to_many` says whether its
/// destination is no single host.
#[inline(always)]
pub(crate) fn event(flow: &mut Flow, slot: &Slot, to_many: bool) -> Option<Event> {
    if slot.protocol() != UDP {
        return began(flow.beginning(), slot).then_some(Event::Probe);
    }
    let before = flow.beginning();
    let (beginning, event) = datagram(before, slot, to_many);
    if beginning != before {
        flow.set_beginning(beginning);
    }
    event
}

/// The beginning of a flow after a datagram, and the datagram's effect.
#[inline(always)]
pub(crate) fn datagram(beginning: u64, slot: &Slot, to_many: bool) -> (u64, Option<Event>) {
    let sender = sender(slot);
    match beginning {
        SETTLED => (SETTLED, None),
        UNKNOWN if asks(slot, to_many) => (sender, Some(Event::Probe)),
        beginning if beginning == sender => (beginning, None),
        beginning => (SETTLED, (beginning != UNKNOWN).then_some(Event::Answer)),
    }
}

/// Whether a datagram that begins a flow asks for an answer; step 3.
fn asks(slot: &Slot, to_many: bool) -> bool {
    const TRACEROUTE: u16 = 33_434;
    let is_trace = slot.has_few_hops() && slot.ports().1 >= TRACEROUTE;
    !(to_many || may_answer(slot) || is_trace)
}

/// Whether a packet's ports are those of an answer.
fn may_answer(slot: &Slot) -> bool {
    const PRIVILEGED: u16 = 1024;
    let (source_port, port) = slot.ports();
    source_port < PRIVILEGED && port >= PRIVILEGED
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Zeroable)]
#[repr(u32)]
enum State {
    /// The entry was made this moment.
    #[default]
    New,
    /// It was asked for once, which says nothing yet.
    Once,
    /// No answer came back.
    Failed,
    /// An answer came back.
    Answered,
}

/// The state of a key.
#[derive(Clone, Copy, Debug, Default, Zeroable)]
pub(crate) struct Probed {
    /// The time of the earliest probe.
    time: u64,
    state: State,
    tries: Tries,
}

impl Probed {
    /// The time of the earliest probe.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// The time of the failure, if the key has failed.
    pub(crate) fn failed(&self) -> Option<u64> {
        (self.state == State::Failed).then_some(self.time)
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.state == State::Answered
    }

    /// Whether it has failed and is [polled](crate::polls). Then its failure makes no scan of its port.
    pub(crate) fn is_polled(&self) -> bool {
        self.state == State::Failed && self.tries.is_polled()
    }
}

/// Takes one event of the key of a probe of this kind.
pub(crate) fn step<K: Key, A: Copy + Default + Zeroable>(
    table: &mut Table<K, Probed, A>,
    run: &Run,
    key: &K,
    probe: Probe,
    event: Event,
    time: u64,
) {
    let hash = key.hash(&run.keys);
    match event {
        Event::Probe | Event::Refusal => {
            let probed = table.entry(run, key, hash);
            match probed.state {
                State::New if is_asked_again(probe) => {
                    *probed = Probed { time, state: State::Once, tries: Tries::default() };
                }
                State::Once if is_again(probed.time, time) => probed.state = State::Failed,
                State::Once => {
                    probed.time = if time > probed.time.saturating_add(AGAIN_NS) { time } else { probed.time }
                }
                State::New => *probed = Probed { time, state: State::Failed, tries: Tries::first(time) },
                State::Failed => {
                    probed.time = probed.time.min(time);
                    if may_be_polled(probe) {
                        probed.tries = probed.tries.then(time);
                    }
                }
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
        for (flags, probe) in [
            (0x03, Probe::SynFin),
            (0x2b, Probe::SynFin),
            (0x06, Probe::Odd),
            (0x07, Probe::Odd),
            (0x08, Probe::Odd),
            (0x09, Probe::Odd),
            (0x20, Probe::Odd),
            (0x21, Probe::Odd),
            (0x28, Probe::Odd),
        ] {
            assert_eq!(of_flags(flags), Some(probe), "{flags:#x}");
        }
        // What stacks send: nearly all with ACK, an RST, a SYN, which PSH and URG do not change.
        let sent =
            (0x10..=FLAGS).filter(|flags| flags & ACK != 0).chain([0x02, 0x0a, 0x22, 0x2a, 0x04, 0x05, 0x0c, 0x24]);
        for flags in sent {
            let probe = (flags & (SYN | RST) == SYN | RST).then_some(Probe::Odd);
            assert_eq!(of_flags(flags), probe, "{flags:#x}");
        }
        for flags in 0..=FLAGS {
            assert_eq!(PROBING >> flags & 1 == 1, of_flags(flags).is_some(), "{flags:#x}");
        }
    }
}
