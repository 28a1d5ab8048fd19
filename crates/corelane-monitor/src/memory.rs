//! A limit for all memory, and what each part may have of it.
//!
//! 1. What does not depend on the traffic comes off first: the program, a part of the limit for its queues, and what is on its way between the stages.
//!    The queues' share is the limit's alone: a plan whose queues need more is refused, and all others have the same left over.
//! 2. The rest is divided evenly over the 256 partitions, and the share of a partition over its fragments, its conversations and the tables of
//!    the scan detector. So what happens in a partition depends on its own packets alone.
//! 3. Fragments and conversations give up what is old ([`conversation`]). The scan detector forgets nothing, as its answer is exact: a table that
//!    has come to its share takes no new keys, goes on with those it has, and counts what it did not take ([`Refused`]). For what follows from
//!    its entries, groups of failures and hosts, it is charged with the most that they can come to.
//!
//! A capture that is preloaded or mapped is not in it; the blocks that one is read through are.

use crate::inspect::Inspection;
use crate::pipeline::Plan;
use crate::settings::Settings;
use crate::slot::PARTITIONS;
use corelane_net::{conversation, defrag};
use serde::Serialize;

/// What a failure may cost beside its entry: its group in the MainAnalyzer, and the report of it. So much, and this often the entry's size.
const FAILURE: (usize, usize) = (200, 5);
/// What a flow may cost beside its entry: its host among those of which the busiest are listed.
const HOST: usize = 350;

/// What one table may come to, in bytes; of IPv6 half as much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    table: usize,
    flows: usize,
    has_hosts: bool,
}

/// The size of an IPv4 entry.
const V4: usize = 32;

impl Room {
    pub(crate) const UNLIMITED: Room = Room { table: usize::MAX, flows: usize::MAX, has_hosts: false };

    /// What the settings leave a partition's tables.
    pub(crate) fn of(settings: &Settings) -> Self {
        let Some(bytes) = settings.table_bytes else { return Room::UNLIMITED };
        let share = usize::try_from(bytes / PARTITIONS as u64).unwrap_or(usize::MAX);
        let kinds = 1 + usize::from(settings.probes) + usize::from(settings.counting.is_some());
        // Two parts of three for IPv4.
        Room { table: share / 2 / kinds * 2 / 3, flows: share / 3, has_hosts: settings.top > 0 }
    }

    fn has(most: usize, entry: usize, bytes: usize) -> bool {
        bytes <= if entry > V4 { most / 2 } else { most }
    }

    /// Whether there is room for a table of so many entries. Those before it, half of it and so on, stay with the pool.
    pub(crate) fn has_table(&self, capacity: usize, entry: usize) -> bool {
        let failure = FAILURE.0 + entry * FAILURE.1 / 2;
        self.table == usize::MAX || Room::has(self.table, entry, capacity * 4 * entry + capacity / 16 * 9 * failure)
    }

    /// Whether there is room for an index of so many words, and a flow for every `space` of them.
    pub(crate) fn has_flows(&self, length: usize, space: usize, entry: usize) -> bool {
        let flow = entry + if self.has_hosts { HOST } else { 0 };
        self.flows == usize::MAX || Room::has(self.flows, entry, length * 2 * size_of::<u32>() + length / space * flow)
    }
}

/// What was not taken for want of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Packets of flows.
    pub flow_packets: u64,
    /// SYNs of attempts, and other probes.
    pub attempts: u64,
    /// Packets of sources that were to be counted.
    pub source_packets: u64,
}

impl Refused {
    /// Whether everything was taken.
    pub fn is_empty(&self) -> bool {
        *self == Refused::default()
    }

    pub(crate) fn add(&mut self, other: &Refused) {
        self.flow_packets += other.flow_packets;
        self.attempts += other.attempts;
        self.source_packets += other.source_packets;
    }
}

/// The least limit for a run of the scan detector.
const LEAST: u64 = 64 << 20;
/// The least limit for a run that looks into packets as well.
const LEAST_INSPECTING: u64 = 192 << 20;
/// The program and its threads.
const PROGRAM: u64 = 24 << 20;
/// Chunks and lines on their way between the stages, of packets with payload.
const ON_THE_WAY: u64 = 72 << 20;
/// An item or slot and, in the same number, a state report.
const QUEUED: u64 = 64;
/// The part of a limit that is the queues': one of so many.
const FOR_QUEUES: u64 = 24;

/// Divides a limit in bytes among all that a run keeps. The settings and the inspection get the same whatever the plan is.
///
/// # Errors
/// The least that is possible with this plan, if the limit is less.
pub fn limit_memory(
    limit: u64,
    plan: &Plan,
    settings: &mut Settings,
    inspection: Option<&mut Inspection>,
) -> Result<(), u64> {
    let queues = (plan.analyzers as u64).saturating_add(1).saturating_mul(plan.capacity as u64).saturating_mul(QUEUED);
    let (least, on_the_way) = if inspection.is_some() { (LEAST_INSPECTING, ON_THE_WAY) } else { (LEAST, 0) };
    // Not what the queues come to: what is found under a limit would depend on the plan.
    let for_queues = limit / FOR_QUEUES;
    if limit < least || queues > for_queues {
        return Err(least.max(queues.saturating_mul(FOR_QUEUES)));
    }
    let partitions = PARTITIONS as u64;
    let share = (limit - PROGRAM - on_the_way - for_queues) / partitions;
    let Some(inspection) = inspection else {
        settings.table_bytes = Some(share * partitions);
        return Ok(());
    };
    // Half of a datagram's most, and more.
    let fragments = (share / 8).clamp(128 << 10, 1 << 20);
    let half = (share - fragments) / 2;
    // The allocator takes something for itself.
    let conversations = usize::try_from(half / 8 * 7).unwrap_or(usize::MAX);
    inspection.conversations = conversation::Limits::new(conversations);
    inspection.fragments = defrag::Limits { bytes: (fragments / 8 * 7) as usize, ..defrag::Limits::default() };
    settings.table_bytes = Some(half * partitions);
    Ok(())
}
