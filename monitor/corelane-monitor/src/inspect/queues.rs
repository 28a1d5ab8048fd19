//! The queues between the stages of the second analysis, and the work of the output stage.

use super::collect::{Collector, Found, StepEnd};
use super::feed::Creditor;
use super::item::Item;
use super::lines::Key;
use super::stage::Harvest;
use crate::plan::PlanError;
use crate::slot::Slot;
use crate::state_report::{StateReport, TOGETHER};
use corelane::spsc::{self, Consumer, Linked, Producer};
use corelane::wait::Select;

/// The most harvests in a queue. As many more are with the output stage while it gives them out: of each stage at most
/// 2 MB of lines are on their way, however the threads are scheduled, where the stages are in step.
pub(super) const HARVESTS: usize = 16;

/// The bytes that the queues of one stage hold at most, of which one is of slots or items, and one of harvests with
/// state reports. What else is in harvests, and the memory of packets, has bounds of its own.
pub(crate) fn queued_bytes(capacity: usize) -> u64 {
    const { assert!(size_of::<Slot>() == size_of::<Item>()) };
    // One harvest is with the output stage.
    let reports = (capacity.min(HARVESTS) + 1) * TOGETHER * size_of::<StateReport>();
    (capacity as u64).saturating_mul(size_of::<Slot>() as u64).saturating_add(reports as u64)
}

/// What gets all that is found.
pub(super) type Out<'a> = &'a mut (dyn FnMut(Found<'_>) + Send);
/// What the Dispatchers tell the output stage, and are told by it: in the order of their numbers.
pub(super) type Rings = Vec<(Consumer<StepEnd, Linked>, Creditor)>;
/// The numbers of a Dispatcher and of a stage, and the queue of its harvests.
pub(super) type Harvests = Vec<(usize, usize, Consumer<Harvest>)>;

/// The producers of some queues, and their consumers.
type Ends<T> = (Vec<Producer<T>>, Vec<Consumer<T>>);

/// So many queues.
pub(super) fn channels<T: Send>(capacity: usize, count: usize) -> Result<Ends<T>, PlanError> {
    let queues: Result<Vec<_>, _> = (0..count).map(|_| spsc::try_channel(capacity)).collect();
    Ok(queues.map_err(PlanError::Queue)?.into_iter().unzip())
}

/// Runs the third stage until all queues are drained. The queues are those of each stage, with the numbers of its
/// Dispatcher and its own; each Dispatcher tells of ends, and is told how far its stages have come.
pub(super) fn output<'a, 'b>(
    mut collector: Collector<'a>,
    queues: Harvests,
    mut rings: Rings,
    out: Out<'b>,
) -> (Collector<'a>, Out<'b>) {
    let mut select = Select::new();
    let mut queues: Vec<_> = queues.into_iter().map(|(ring, stage, queue)| (ring, stage, select.add(queue))).collect();
    let mut ahead: Harvests = Vec::new();
    while select.wait().is_some() {
        queues.retain(|&(ring, stage, queue)| {
            let closed = select[queue].is_closed();
            // An error means empty, or closed, which was checked before.
            let most = if closed { usize::MAX } else { HARVESTS };
            let _ = select[queue].try_pop_each(most, |harvest| collector.add(ring, stage, harvest));
            if closed {
                // The same for a stage that has panicked.
                collector.add(ring, stage, Harvest { passed: Key::END, ..Harvest::default() });
                select.remove(queue);
            }
            !closed
        });
        // What a stage has passed was told before it heard of it.
        for (ring, (ends, _)) in rings.iter_mut().enumerate() {
            let _ = ends.try_pop_each(usize::MAX, |end| collector.end(ring, end));
        }
        collector.drain(out);
        queues.retain(|&(ring, stage, queue)| {
            let is_ahead = collector.is_ahead(ring, stage);
            ahead.extend(is_ahead.then(|| select.remove(queue)).flatten().map(|queue| (ring, stage, queue)));
            !is_ahead
        });
        for (ring, stage, queue) in ahead.extract_if(.., |(ring, stage, _)| !collector.is_ahead(*ring, *stage)) {
            queues.push((ring, stage, select.add(queue)));
        }
        for (ring, (_, creditor)) in rings.iter_mut().enumerate() {
            // Also where all stages of the ring are over: its Dispatcher may wait for credit, and has to find that out.
            creditor.grant(collector.passed(ring));
        }
    }
    (collector, out)
}
