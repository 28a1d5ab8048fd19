//! IPv4 and IPv6: how their packets lie in slots, and how their addresses lie in the keys of the tables.

use super::attempts::is_reply;
use crate::slot::Slot;
use crate::state_report::{Failure, StateReport};
use crate::table::{Align32, Align64, Key};
use crate::talkers::Address;
use bytemuck::Zeroable;
use std::fmt::Debug;

/// An address family, named by the type of its addresses.
pub(crate) trait Family: Address {
    /// Of a flow as of an attempt: both need two addresses and at most two ports.
    type Key: Key + Debug;
    /// So that a flow lies in one cache line.
    type FlowAlign: Copy + Default + Debug + Zeroable;
    /// So that an attempt lies in one cache line.
    type AttemptAlign: Copy + Default + Debug + Zeroable;

    /// The flow of the packet that begins at slot `i`.
    fn flow_key(chunk: &[Slot], i: usize) -> Self::Key;
    /// The attempt that the packet belongs to: source, destination and port of the SYN.
    fn attempt_key(chunk: &[Slot], i: usize) -> Self::Key;
    /// The two addresses of a flow, the lesser first.
    fn pair(flow: &Self::Key) -> (Self, Self);
    /// Source, destination and port of an attempt.
    fn attempt(key: &Self::Key) -> (Self, Self, u16);
    fn state_report(source: Self, port: u16, time_ns: u64, failure: Failure) -> StateReport;
}

/// Marks the last word of an attempt's key as taken.
const TAKEN: u64 = 1 << 63;

/// Source, destination and port of the SYN.
#[inline(always)]
fn of_the_syn<A>(slot: &Slot, (source, destination): (A, A)) -> (A, A, u16) {
    let (source_port, destination_port) = slot.ports();
    if is_reply(slot) { (destination, source, source_port) } else { (source, destination, destination_port) }
}

impl Family for u32 {
    type Key = [u64; 2];
    /// 32 bytes, two in a line.
    type FlowAlign = Align32;
    /// 32 bytes, two in a line.
    type AttemptAlign = Align32;

    #[inline(always)]
    fn flow_key(chunk: &[Slot], i: usize) -> [u64; 2] {
        chunk[i].flow_v4()
    }

    #[inline(always)]
    fn attempt_key(chunk: &[Slot], i: usize) -> [u64; 2] {
        let slot = &chunk[i];
        let (source, destination, port) = of_the_syn(slot, slot.addresses_v4());
        [u64::from(source) << 32 | u64::from(destination), TAKEN | u64::from(port)]
    }

    fn pair(flow: &[u64; 2]) -> (u32, u32) {
        ((flow[0] >> 16) as u32, (flow[1] >> 16) as u32)
    }

    fn attempt(key: &[u64; 2]) -> (u32, u32, u16) {
        ((key[0] >> 32) as u32, key[0] as u32, key[1] as u16)
    }

    fn state_report(source: u32, port: u16, time_ns: u64, failure: Failure) -> StateReport {
        StateReport::v4(source, port, time_ns, failure)
    }
}

impl Family for u128 {
    type Key = [u64; 5];
    /// 56 bytes in one line.
    type FlowAlign = Align64;
    /// 56 bytes in one line.
    type AttemptAlign = Align64;

    #[inline(always)]
    fn flow_key(chunk: &[Slot], i: usize) -> [u64; 5] {
        chunk[i].flow_v6(&chunk[i + 1])
    }

    #[inline(always)]
    fn attempt_key(chunk: &[Slot], i: usize) -> [u64; 5] {
        let slot = &chunk[i];
        let (source, destination, port) = of_the_syn(slot, slot.addresses_v6(&chunk[i + 1]));
        let last = TAKEN | u64::from(port);
        [(source >> 64) as u64, source as u64, (destination >> 64) as u64, destination as u64, last]
    }

    fn pair(flow: &[u64; 5]) -> (u128, u128) {
        (u128::from(flow[0]) << 64 | u128::from(flow[1]), u128::from(flow[2]) << 64 | u128::from(flow[3]))
    }

    fn attempt(key: &[u64; 5]) -> (u128, u128, u16) {
        let (source, destination) = Self::pair(key);
        (source, destination, key[4] as u16)
    }

    fn state_report(source: u128, port: u16, time_ns: u64, failure: Failure) -> StateReport {
        StateReport::v6(source, port, time_ns, failure)
    }
}
