//! A limit for all memory, and its division.
//!
//! 1. The memory that does not depend on the traffic comes off first: the program, a part of the limit for its queues,
//!    and the data on their way between the stages. The queues' share depends on the limit alone. A plan whose queues
//!    need more is refused, and all others have the same left over.
//! 2. The rest is divided evenly over the 256 partitions. The share of a partition is divided over its fragments, its
//!    conversations and the tables of the scan detector. So the results of a partition depend on its own packets alone.
//!    Where time passes in steps, these tables [borrow](crate::lending) from those of other partitions.
//! 3. Fragments and conversations evict old ones ([`conversation`]). The scan detector forgets nothing, as its answer
//!    is exact: a table that has used up its share takes no new keys, goes on with those it has, and counts those it
//!    refused ([`Refused`](crate::Refused)). Groups of failures and hosts follow from its entries, so it is charged
//!    with the most that they can take.
//!
//! A capture that is preloaded or mapped does not count; the blocks that a capture is read through do.

use crate::facts;
use crate::inspect::{Inspection, queued_bytes};
use crate::plan::Plan;
use crate::settings::Settings;
use crate::slot::PARTITIONS;
use corelane_net::{conversation, defrag};

/// The least limit for a run of the scan detector.
const LEAST: u64 = 64 << 20;
/// The least limit for a run that looks into packets as well.
const LEAST_INSPECTING: u64 = 192 << 20;
/// The program and its threads.
const PROGRAM: u64 = 24 << 20;
/// Chunks and lines on their way between the stages, for runs that inspect payload.
const ON_THE_WAY: u64 = 72 << 20;
/// The queues' part of a limit is one of so many.
const FOR_QUEUES: u64 = 24;

/// Divides a limit in bytes among all parts of a run. The settings and the inspection get the same limits whatever the
/// plan is.
///
/// # Errors
/// The least limit that is possible with this plan, if `limit` is less.
pub fn limit_memory(
    limit: u64,
    plan: &Plan,
    settings: &mut Settings,
    inspection: Option<&mut Inspection>,
) -> Result<(), u64> {
    let queues = (plan.analyzers as u64).saturating_add(1).saturating_mul(queued_bytes(plan.capacity));
    let facts = if inspection.as_ref().is_some_and(|inspection| inspection.facts) { facts::MOST } else { 0 };
    let (least, on_the_way) =
        if inspection.is_some() { (LEAST_INSPECTING + facts, ON_THE_WAY + facts) } else { (LEAST, 0) };
    // Not the bytes that the queues need: the results under a limit would depend on the plan.
    let for_queues = limit / FOR_QUEUES;
    if limit < least || queues > for_queues {
        return Err(least.max(queues.saturating_mul(FOR_QUEUES)));
    }
    let partitions = PARTITIONS as u64;
    let share = (limit - PROGRAM - on_the_way - for_queues) / partitions;
    let Some(inspection) = inspection else {
        // Fragments take the rest.
        settings.table_bytes = Some(share / 16 * 15 * partitions);
        return Ok(());
    };
    // Even the least of these holds one datagram of the largest size.
    let fragments = (share / 8).clamp(128 << 10, 1 << 20);
    let half = (share - fragments) / 2;
    // The allocator has its own overhead.
    let conversations = usize::try_from(half / 8 * 7).unwrap_or(usize::MAX);
    inspection.conversations = conversation::Limits::new(conversations);
    inspection.fragments = defrag::Limits { bytes: (fragments / 8 * 7) as usize, ..defrag::Limits::default() };
    settings.table_bytes = Some(half * partitions);
    Ok(())
}
