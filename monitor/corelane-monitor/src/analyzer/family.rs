//! IPv4 and IPv6: the layout of their packets in slots, and of their addresses in the keys of the tables.

use super::attempts::is_reply;
use crate::key::Key;
use crate::partial_result::{Answered, PartialResult};
use crate::probe::Probe;
use crate::slot::Slot;
use crate::state_report::{StateReport, Tried, Verdict};
use crate::table::{Align32, Align64};
use crate::talkers::Address;
use bytemuck::Zeroable;
use corelane_net::decode::TCP;
use std::fmt::Debug;

/// An address family, named by the type of its addresses.
pub(crate) trait Family: Address {
    /// The key of a flow or an attempt: both need two addresses and at most two ports.
    type Key: Key + Ord + Debug;
    /// The slots of a packet.
    const SLOTS: usize;
    /// The bytes of an entry of any table.
    const ENTRY: usize = align_of::<Self::FlowAlign>();
    /// Aligns a flow so that it lies in one cache line.
    type FlowAlign: Copy + Default + Debug + Zeroable;
    /// Aligns an attempt so that it lies in one cache line.
    type AttemptAlign: Copy + Default + Debug + Zeroable;
    /// The key of a source.
    type SourceKey: Key + Debug;

    /// The key of the packet's direction of its flow, in a step.
    fn direction(chunk: &[Slot], i: usize, step: u64) -> Self::Key;
    /// The flow of the packet that begins at slot `i`.
    fn flow_key(chunk: &[Slot], i: usize) -> Self::Key;
    /// The attempt that the packet belongs to: source, destination and port of the SYN.
    fn attempt_key(chunk: &[Slot], i: usize) -> Self::Key;
    /// The key of a probe of this kind: source, destination and port. The packet is that probe, or its answer if
    /// `is_answer`.
    fn probe_key(chunk: &[Slot], i: usize, probe: Probe, is_answer: bool) -> Self::Key;
    /// Whether the packet goes to a multicast or broadcast address.
    fn is_to_many(chunk: &[Slot], i: usize) -> bool;
    /// The packet's source.
    fn source_key(chunk: &[Slot], i: usize) -> Self::SourceKey;
    /// The state report of the bytes and connections of a source.
    fn sent_report(key: &Self::SourceKey, bytes: u64, connections: u16) -> StateReport;
    /// The two addresses of a flow, the lesser first.
    fn pair(flow: &Self::Key) -> (Self, Self);
    /// What the key of an attempt or of a probe says.
    fn tried(key: &Self::Key) -> Tried<Self>;
    /// The state report of a key.
    fn state_report(tried: Tried<Self>, time_ns: u64, verdict: Verdict) -> StateReport;
    /// The keys that were answered.
    fn answered(result: &mut PartialResult) -> &mut Vec<Answered<Self>>;
}

/// Marks the last word of an attempt's key as taken.
const TAKEN: u64 = 1 << 63;
/// The bit at which a probe's key holds the number of its kind; an attempt's key has 0 there.
const PROBE: u32 = 32;

/// Source, destination and port of the packet, or of the packet that it replies to.
#[inline(always)]
fn of_the_first<A>(slot: &Slot, (source, destination): (A, A), is_reply: bool) -> (A, A, u16) {
    let (source_port, destination_port) = slot.ports();
    if is_reply { (destination, source, source_port) } else { (source, destination, destination_port) }
}

/// The last word of a key: port and kind.
#[inline(always)]
const fn last_word(port: u16, number: u32) -> u64 {
    TAKEN | (number as u64) << PROBE | port as u64
}

fn probe_of(last_word: u64) -> Option<Probe> {
    Probe::of_number((last_word >> PROBE) as u32 & 15)
}

/// The ports of a packet, the lower bits of a step, which are those of 34 years, and two bits that keep the word from
/// being zero: 1 is UDP, 3 is TCP, and 2 is what has no flow.
#[inline(always)]
fn ports_in(slot: &Slot, step: u64) -> u64 {
    let (source_port, destination_port) = slot.ports();
    let kind = 1 + 2 * u32::from(slot.protocol() == TCP) + u32::from(slot.has_no_flow());
    let step = (step as u32) << 2 | kind;
    u64::from(source_port) << 48 | u64::from(destination_port) << 32 | u64::from(step)
}

#[inline(always)]
fn key_v4(slot: &Slot, is_reply: bool, number: u32) -> [u64; 2] {
    let (source, destination, port) = of_the_first(slot, slot.addresses_v4(), is_reply);
    [u64::from(source) << 32 | u64::from(destination), last_word(port, number)]
}

#[inline(always)]
fn key_v6(slot: &Slot, rest: &Slot, is_reply: bool, number: u32) -> [u64; 5] {
    let (source, destination, port) = of_the_first(slot, slot.addresses_v6(rest), is_reply);
    let last = last_word(port, number);
    [(source >> 64) as u64, source as u64, (destination >> 64) as u64, destination as u64, last]
}

impl Family for u32 {
    const SLOTS: usize = 1;
    type Key = [u64; 2];
    /// 32 bytes, two in a line.
    type FlowAlign = Align32;
    /// 32 bytes, two in a line.
    type AttemptAlign = Align32;
    type SourceKey = [u64; 1];

    #[inline(always)]
    fn direction(chunk: &[Slot], i: usize, step: u64) -> [u64; 2] {
        let (source, destination) = chunk[i].addresses_v4();
        [u64::from(source) << 32 | u64::from(destination), ports_in(&chunk[i], step)]
    }

    #[inline(always)]
    fn flow_key(chunk: &[Slot], i: usize) -> [u64; 2] {
        chunk[i].flow_v4()
    }

    #[inline(always)]
    fn attempt_key(chunk: &[Slot], i: usize) -> [u64; 2] {
        key_v4(&chunk[i], is_reply(&chunk[i]), 0)
    }

    #[inline(always)]
    fn probe_key(chunk: &[Slot], i: usize, probe: Probe, is_answer: bool) -> [u64; 2] {
        key_v4(&chunk[i], is_answer, probe.number())
    }

    /// Addresses from 224.0.0.0 on name no single host.
    #[inline(always)]
    fn is_to_many(chunk: &[Slot], i: usize) -> bool {
        chunk[i].addresses_v4().1 >= 0xe000_0000
    }

    #[inline(always)]
    fn source_key(chunk: &[Slot], i: usize) -> [u64; 1] {
        [TAKEN | u64::from(chunk[i].addresses_v4().0)]
    }

    fn sent_report(key: &[u64; 1], bytes: u64, connections: u16) -> StateReport {
        StateReport::sent(u128::from(key[0] as u32), false, bytes, connections)
    }

    fn pair(flow: &[u64; 2]) -> (u32, u32) {
        ((flow[0] >> 16) as u32, (flow[1] >> 16) as u32)
    }

    fn tried(key: &[u64; 2]) -> Tried<u32> {
        let (source, destination) = ((key[0] >> 32) as u32, key[0] as u32);
        Tried { source, destination, port: key[1] as u16, probe: probe_of(key[1]) }
    }

    fn state_report(tried: Tried<u32>, time_ns: u64, verdict: Verdict) -> StateReport {
        StateReport::v4(tried, time_ns, verdict)
    }

    fn answered(result: &mut PartialResult) -> &mut Vec<Answered<u32>> {
        &mut result.answered_v4
    }
}

impl Family for u128 {
    const SLOTS: usize = 2;
    type Key = [u64; 5];
    /// 56 bytes in one line.
    type FlowAlign = Align64;
    /// 56 bytes in one line.
    type AttemptAlign = Align64;
    type SourceKey = [u64; 3];

    #[inline(always)]
    fn direction(chunk: &[Slot], i: usize, step: u64) -> [u64; 5] {
        let (source, destination) = chunk[i].addresses_v6(&chunk[i + 1]);
        let last = ports_in(&chunk[i], step);
        [(source >> 64) as u64, source as u64, (destination >> 64) as u64, destination as u64, last]
    }

    #[inline(always)]
    fn flow_key(chunk: &[Slot], i: usize) -> [u64; 5] {
        chunk[i].flow_v6(&chunk[i + 1])
    }

    #[inline(always)]
    fn attempt_key(chunk: &[Slot], i: usize) -> [u64; 5] {
        key_v6(&chunk[i], &chunk[i + 1], is_reply(&chunk[i]), 0)
    }

    #[inline(always)]
    fn probe_key(chunk: &[Slot], i: usize, probe: Probe, is_answer: bool) -> [u64; 5] {
        key_v6(&chunk[i], &chunk[i + 1], is_answer, probe.number())
    }

    /// ff00::/8 is multicast; there is no broadcast.
    #[inline(always)]
    fn is_to_many(chunk: &[Slot], i: usize) -> bool {
        chunk[i].addresses_v6(&chunk[i + 1]).1 >> 120 == 0xff
    }

    #[inline(always)]
    fn source_key(chunk: &[Slot], i: usize) -> [u64; 3] {
        let (source, _) = chunk[i].addresses_v6(&chunk[i + 1]);
        [(source >> 64) as u64, source as u64, TAKEN]
    }

    fn sent_report(key: &[u64; 3], bytes: u64, connections: u16) -> StateReport {
        StateReport::sent(u128::from(key[0]) << 64 | u128::from(key[1]), true, bytes, connections)
    }

    fn pair(flow: &[u64; 5]) -> (u128, u128) {
        (u128::from(flow[0]) << 64 | u128::from(flow[1]), u128::from(flow[2]) << 64 | u128::from(flow[3]))
    }

    fn tried(key: &[u64; 5]) -> Tried<u128> {
        let (source, destination) = Self::pair(key);
        Tried { source, destination, port: key[4] as u16, probe: probe_of(key[4]) }
    }

    fn state_report(tried: Tried<u128>, time_ns: u64, verdict: Verdict) -> StateReport {
        StateReport::v6(tried, time_ns, verdict)
    }

    fn answered(result: &mut PartialResult) -> &mut Vec<Answered<u128>> {
        &mut result.answered_v6
    }
}
