//! A limit for all memory, and what each part may have of it.
//!
//! 1. What does not depend on the traffic comes off first: the program, a part of the limit for its queues, and what is
//!    on its way between the stages. The queues' share is the limit's alone: a plan whose queues need more is refused,
//!    and all others have the same left over.
//! 2. The rest is divided evenly over the 256 partitions, and the share of a partition over its fragments, its
//!    conversations and the tables of the scan detector. So what happens in a partition depends on its own packets
//!    alone.
//! 3. Fragments and conversations give up what is old ([`conversation`]). The scan detector forgets nothing, as its
//!    answer is exact: a table that has come to its share takes no new keys, goes on with those it has, and counts what
//!    it did not take ([`Refused`](crate::Refused)). For what follows from its entries, groups of failures and hosts,
//!    it is charged with the most that they can come to.
//!
//! A capture that is preloaded or mapped is not in it; the blocks that one is read through are.

use crate::inspect::Inspection;
use crate::pipeline::Plan;
use crate::settings::Settings;
use crate::slot::PARTITIONS;
use corelane_net::{conversation, defrag};

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

/// Divides a limit in bytes among all that a run keeps. The settings and the inspection get the same whatever the plan
/// is.
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
