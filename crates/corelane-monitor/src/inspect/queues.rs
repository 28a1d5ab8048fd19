//! The queues between the stages of the second analysis. What depends on their design is compiled here once, and not
//! again for every source: a batch of items, or a harvest, is worth a call through a table.

use super::collect::{Collector, Found, StepEnd};
use super::ends::{ItemConsumer, ItemProducer};
use super::feed::Creditor;
use super::item::Item;
use super::lines::Key;
use super::stage::Harvest;
use crate::pipeline::{Plan, PlanError, with_design};
use corelane::Bounded;
use corelane::spsc::{self, Consumer, Design, Linked, Options};
use corelane::wait::{Adaptive, Select};

/// The most harvests in a queue. As many more are with the output stage while it gives them out: of each stage at most
/// 2 MB of lines are on their way, however the threads are scheduled, where the stages are in step.
const HARVESTS: usize = 16;

/// What gets all that is found.
pub(super) type Out<'a> = &'a mut (dyn FnMut(Found<'_>) + Send);
/// What the Dispatchers tell the output stage, and are told by it: in the order of their numbers.
pub(super) type Rings = Vec<(Consumer<StepEnd, Linked>, Creditor)>;
/// Both ends of a queue of items.
pub(super) type Items = (Box<dyn ItemProducer>, Box<dyn ItemConsumer>);
/// A stage's end of its queue of harvests.
pub(super) type Sender = Box<dyn FnMut(Harvest) + Send>;
/// The output stage's work.
type Output = Box<dyn for<'a, 'b> FnOnce(Collector<'a>, Rings, Out<'b>) -> (Collector<'a>, Out<'b>) + Send>;

/// The queues of harvests, and what runs over them.
pub(super) struct Harvests {
    /// One for each stage, those of the first Dispatcher first.
    pub(super) senders: Vec<Sender>,
    /// Runs the third stage until all queues are drained.
    pub(super) output: Output,
}

impl Harvests {
    /// So many queues for each Dispatcher, of this design.
    pub(super) fn of<D: Design<Harvest> + Bounded>(
        counts: &[usize],
        capacity: usize,
        tuning: &D::Tuning,
    ) -> Result<Self, PlanError> {
        let (mut senders, mut queues) = (Vec::new(), Vec::new());
        for (ring, &count) in counts.iter().enumerate() {
            for stage in 0..count {
                let options = Options::new().tuning(tuning.clone());
                let queue = spsc::channel_with::<Harvest, D, Adaptive, _>(capacity.min(HARVESTS), options);
                let (mut producer, consumer) = queue.map_err(PlanError::Queue)?;
                // If the queue is closed the output stage has panicked, and the panic surfaces where it is joined.
                senders.push(Box::new(move |harvest| drop(producer.push(harvest))) as Sender);
                queues.push((ring, stage, consumer));
            }
        }
        Ok(Harvests { senders, output: Box::new(move |collector, rings, out| output(collector, queues, rings, out)) })
    }
}

/// The queues of a plan: those of items by Dispatcher, of which each has so many.
pub(super) fn queues(plan: &Plan, counts: &[usize]) -> Result<(Vec<Vec<Items>>, Harvests), PlanError> {
    with_design!(plan, |D, items, harvests| {
        let queue = |_| items_of::<D>(plan.capacity, &items);
        let queues = counts.iter().map(|&count| (0..count).map(queue).collect()).collect::<Result<_, _>>()?;
        Ok((queues, Harvests::of::<D>(counts, plan.capacity, &harvests)?))
    })
}

fn items_of<D: Design<Item> + Bounded>(capacity: usize, tuning: &D::Tuning) -> Result<Items, PlanError> {
    let options = Options::new().tuning(tuning.clone());
    let queue = spsc::channel_with::<Item, D, Adaptive, _>(capacity, options);
    let (producer, consumer) = queue.map_err(PlanError::Queue)?;
    Ok((Box::new(producer), Box::new(consumer)))
}

/// Runs the third stage until all queues are drained. The queues are those of each stage, with the numbers of its
/// Dispatcher and its own; each Dispatcher tells of ends, and is told how far its stages have come.
fn output<'a, 'b, D: Design<Harvest>>(
    mut collector: Collector<'a>,
    queues: Vec<(usize, usize, Consumer<Harvest, D>)>,
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
