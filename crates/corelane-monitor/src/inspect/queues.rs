//! The queues between the stages of the second analysis, and the work of the output stage.

use super::collect::{Collector, Found, StepEnd};
use super::feed::Creditor;
use super::item::Item;
use super::lines::Key;
use super::stage::Harvest;
use crate::pipeline::{Plan, PlanError};
use corelane::spsc::{self, Consumer, Linked, Producer};
use corelane::wait::Select;

/// The most harvests in a queue. As many more are with the output stage while it gives them out: of each stage at most
/// 2 MB of lines are on their way, however the threads are scheduled, where the stages are in step.
const HARVESTS: usize = 16;

/// What gets all that is found.
pub(super) type Out<'a> = &'a mut (dyn FnMut(Found<'_>) + Send);
/// What the Dispatchers tell the output stage, and are told by it: in the order of their numbers.
pub(super) type Rings = Vec<(Consumer<StepEnd, Linked>, Creditor)>;
/// A stage's ends of its queues of items and harvests.
pub(super) type Ends = (Consumer<Item>, Producer<Harvest>);
/// The numbers of a Dispatcher and of a stage, and the queue of its harvests.
pub(super) type Harvests = Vec<(usize, usize, Consumer<Harvest>)>;

/// The queues of a Dispatcher's stages, so many: its own ends, and theirs.
pub(super) fn queues(
    plan: &Plan,
    ring: usize,
    count: usize,
    harvests: &mut Harvests,
) -> Result<(Vec<Producer<Item>>, Vec<Ends>), PlanError> {
    let (mut outlets, mut stages) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for stage in 0..count {
        let (outlet, items) = spsc::try_channel(plan.capacity).map_err(PlanError::Queue)?;
        let (sender, queue) = spsc::try_channel(plan.capacity.min(HARVESTS)).map_err(PlanError::Queue)?;
        harvests.push((ring, stage, queue));
        outlets.push(outlet);
        stages.push((items, sender));
    }
    Ok((outlets, stages))
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
    while select.wait().is_some() {
        queues.retain(|&(ring, stage, queue)| {
            let closed = select[queue].is_closed();
            // An error means empty, or closed, which was checked before.
            let _ = select[queue].try_pop_each(usize::MAX, |harvest| collector.add(ring, stage, harvest));
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
        for (ring, (_, creditor)) in rings.iter_mut().enumerate() {
            // Also where all stages of the ring are over: its Dispatcher may wait for credit, and has to find that out.
            creditor.tell(collector.passed(ring));
        }
    }
    (collector, out)
}
