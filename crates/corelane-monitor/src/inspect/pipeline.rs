//! The stages of the second analysis as threads joined by queues, or one after the other.

use super::Inspection;
use super::ends::{ItemConsumer, ItemProducer};
use super::feed::{Creditor, Credits, Feed, Marks};
use super::findings::Findings;
use super::item::{Frame, Item};
use super::lines::Spares;
use super::merge::Merge;
use super::stage::{ENOUGH, Harvest, Stage};
use crate::dispatch::{Dispatcher, Place};
use crate::main_analyzer::MainAnalyzer;
use crate::partial_result::PartialResult;
use crate::pipeline::{Pins, Plan, PlanError, join, spawn, with_design};
use crate::report::Report;
use crate::run::Run;
use crate::settings::Settings;
use crate::source::{Progress, Source, read_ahead};
use corelane::Bounded;
use corelane::spsc::mcring::Tuning;
use corelane::spsc::{self, Consumer, Design, McRing, Options, Producer};
use corelane::wait::{Adaptive, Select};
use corelane_net::capture::Record;
use std::sync::OnceLock;
use std::thread;

/// The most items that a stage takes at a time.
const BATCH: usize = 256;
/// The most harvests in a queue; each comes from one batch.
const HARVESTS: usize = 64;
/// Records that are read at a time.
const READ: usize = 4096;

/// Runs both analyses over the records of all sources, as one capture in this order. The scan detector's report is the
/// same as that of [`run`](crate::run()).
///
/// `out` gets the events of conversations: lines of JSON in their order, any number of them at a time. It gets an empty
/// slice when no more are at hand, so that a caller that gathers lines does not hold them back. It is called in a
/// thread of its own if the plan has any. The alerts and statistics that follow from the report are written by
/// [`eve`](crate::eve). Otherwise this is the same as [`run`](crate::run()), but partitions do not move.
///
/// # Errors
/// If the plan cannot be carried out; then nothing was read.
///
/// # Panics
/// If a stage panics, with its panic.
pub fn inspect<S: Source>(
    sources: impl IntoIterator<Item = S> + Send,
    settings: &Settings,
    inspection: &Inspection,
    plan: &Plan,
    progress: &Progress,
    damage: impl FnMut(usize, S::Error) + Send,
    out: impl FnMut(&[u8]) + Send,
) -> Result<(Report, Findings), PlanError> {
    plan.check()?;
    let pins = &Pins::new(&plan.cpus)?;
    let stages = Stages { settings, inspection, plan, pins };
    if plan.cpus.is_empty() {
        return stages.start(sources, progress, damage, out);
    }
    thread::scope(|scope| {
        let dispatcher = move || {
            pins.pin(0);
            stages.start(sources, progress, damage, out)
        };
        join(spawn(scope, "dispatcher", dispatcher))
    })
}

/// The same as [`inspect`] over these queues of items: one for each stage, and none for a single thread. The queues
/// from the stages to the output stage are [`McRing`] with batches of 1, as in the MCRingBuffer paper: harvests are
/// few, own memory, and are wanted at once.
///
/// # Errors
/// If there are more queues than partitions, or no memory; then nothing was read.
///
/// # Panics
/// If a stage panics, with its panic.
pub fn inspect_over<S: Source, P: ItemProducer, C: ItemConsumer>(
    sources: impl IntoIterator<Item = S>,
    settings: &Settings,
    inspection: &Inspection,
    queues: Vec<(P, C)>,
    progress: &Progress,
    damage: impl FnMut(usize, S::Error),
    out: impl FnMut(&[u8]) + Send,
) -> Result<(Report, Findings), PlanError> {
    let plan = &Plan { analyzers: queues.len(), ..Plan::default() };
    plan.check()?;
    let stages = Stages { settings, inspection, plan, pins: &Pins::new(&plan.cpus)? };
    if queues.is_empty() {
        return Ok(stages.alone(sources, progress, damage, out));
    }
    stages.join::<S, P, C, McRing>(sources, queues, Tuning::new().batch(1), progress, damage, out)
}

#[derive(Clone, Copy)]
struct Stages<'a> {
    settings: &'a Settings,
    inspection: &'a Inspection,
    plan: &'a Plan,
    pins: &'a Pins,
}

impl Stages<'_> {
    /// Runs in the Dispatcher's thread.
    fn start<S: Source>(
        self,
        sources: impl IntoIterator<Item = S>,
        progress: &Progress,
        damage: impl FnMut(usize, S::Error),
        out: impl FnMut(&[u8]) + Send,
    ) -> Result<(Report, Findings), PlanError> {
        if self.plan.analyzers == 0 {
            return Ok(self.alone(sources, progress, damage, out));
        }
        with_design!(self.plan, |D, items, harvests| self.run::<S, D>(sources, items, harvests, progress, damage, out))
    }

    fn run<S: Source, D: Design<Item> + Design<Harvest> + Bounded>(
        self,
        sources: impl IntoIterator<Item = S>,
        item_tuning: <D as Design<Item>>::Tuning,
        harvest_tuning: <D as Design<Harvest>>::Tuning,
        progress: &Progress,
        damage: impl FnMut(usize, S::Error),
        out: impl FnMut(&[u8]) + Send,
    ) -> Result<(Report, Findings), PlanError> {
        let queue = |_| {
            let options = Options::new().tuning(item_tuning.clone());
            spsc::channel_with::<Item, D, Adaptive, _>(self.plan.capacity, options).map_err(PlanError::Queue)
        };
        let items = (0..self.plan.analyzers).map(queue).collect::<Result<_, _>>()?;
        self.join::<S, _, _, D>(sources, items, harvest_tuning, progress, damage, out)
    }

    /// Joins the stages by these queues of items, one for each stage, and by queues of harvests of the design `D`.
    fn join<S: Source, P: ItemProducer, C: ItemConsumer, D: Design<Harvest> + Bounded>(
        self,
        sources: impl IntoIterator<Item = S>,
        items: Vec<(P, C)>,
        harvest_tuning: D::Tuning,
        progress: &Progress,
        damage: impl FnMut(usize, S::Error),
        out: impl FnMut(&[u8]) + Send,
    ) -> Result<(Report, Findings), PlanError> {
        let count = items.len();
        let mut harvests = Vec::with_capacity(count);
        for _ in 0..count {
            let options = Options::new().tuning(harvest_tuning.clone());
            let capacity = self.plan.capacity.min(HARVESTS);
            harvests.push(spsc::channel_with::<Harvest, D, Adaptive, _>(capacity, options).map_err(PlanError::Queue)?);
        }
        let (outlets, inlets): (Vec<_>, Vec<_>) = items.into_iter().unzip();
        let (harvests_in, harvests_out): (Vec<_>, Vec<_>) = harvests.into_iter().unzip();
        let (creditor, credits) = Credits::new().map_err(PlanError::Queue)?;
        let run = &Run::new();
        // The Dispatcher sets it before it closes its queues; stages read it after they found the queues closed.
        let end = &OnceLock::new();
        let spares = &Spares::default();
        Ok(thread::scope(|scope| {
            let stages: Vec<_> = (inlets.into_iter().zip(harvests_in).enumerate())
                .map(|(number, (inlet, harvests))| {
                    let body = move || {
                        self.pins.pin(1 + number);
                        let stage = Stage::new(self.settings, self.inspection, run, spares);
                        application(stage, inlet, harvests, || end.get().copied().unwrap_or_default())
                    };
                    spawn(scope, &format!("analyzer {number}"), body)
                })
                .collect();
            let output = spawn(scope, "output", move || {
                self.pins.pin(1 + count);
                output(self.settings, harvests_out, creditor, spares, out)
            });
            let mut feed = Feed::new(outlets, credits);
            let dispatcher = dispatch(sources, Dispatcher::new(run, self.settings), &mut feed, progress, damage);
            let _ = end.set((dispatcher.packets(), dispatcher.max_time()));
            drop(feed);
            let results: Vec<_> = stages.into_iter().map(join).collect();
            let mut main = join(output);
            let mut findings = Findings::default();
            for (result, found) in results {
                main.partial_result(result);
                findings.add(&found);
            }
            (main.finish(&dispatcher), findings)
        }))
    }

    /// Runs all stages in this thread.
    fn alone<S: Source>(
        self,
        sources: impl IntoIterator<Item = S>,
        progress: &Progress,
        mut damage: impl FnMut(usize, S::Error),
        mut out: impl FnMut(&[u8]),
    ) -> (Report, Findings) {
        let run = Run::new();
        let mut dispatcher = Dispatcher::new(&run, self.settings);
        let spares = Spares::default();
        let mut stage = Stage::new(self.settings, self.inspection, &run, &spares);
        let mut main = MainAnalyzer::new(self.settings);
        let mut merge = Merge::new(1, &spares);
        let mut marks = Marks::default();
        let mut take = |stage: &mut Stage<'_>, main: &mut MainAnalyzer| {
            let Harvest { lines, reports, passed } = stage.take();
            reports.into_iter().for_each(|report| main.state_report(report));
            merge.add(0, lines, passed);
            if merge.drain(&mut out) {
                out(&[]);
            }
        };
        read(
            sources,
            progress,
            || false,
            &mut damage,
            |source| {
                let read = read_ahead(source, READ, |record| {
                    let place = dispatcher.locate(&record);
                    let number = dispatcher.packets();
                    if let Some(time_ns) = marks.before(number, record.time_ns) {
                        stage.mark(number, time_ns);
                    }
                    if let Some((Place { network, outermost, partition }, record)) = place {
                        let Record { time_ns, wire_len, data, .. } = record;
                        let frame = Frame { time_ns, wire_len, data, network, outermost, partition };
                        stage.packet(number, &frame);
                    }
                    if stage.waiting() >= ENOUGH {
                        take(&mut stage, &mut main);
                    }
                });
                stage.pass(dispatcher.packets() + 1);
                take(&mut stage, &mut main);
                progress.set(dispatcher.packets(), dispatcher.bytes());
                read
            },
        );
        let (result, findings) = stage.finish(dispatcher.packets(), dispatcher.max_time());
        take(&mut stage, &mut main);
        main.partial_result(result);
        (main.finish(&dispatcher), findings)
    }
}

/// Reads all sources to their ends, or until `progress` says stop.
fn read<S: Source>(
    sources: impl IntoIterator<Item = S>,
    progress: &Progress,
    mut is_broken: impl FnMut() -> bool,
    damage: &mut impl FnMut(usize, S::Error),
    mut read: impl FnMut(&mut S) -> Result<usize, S::Error>,
) {
    for (number, mut source) in sources.into_iter().enumerate() {
        loop {
            if progress.is_stopped() || is_broken() {
                return;
            }
            match read(&mut source) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => damage(number, error),
            }
        }
    }
}

/// Runs the first stage.
fn dispatch<S: Source, P: ItemProducer>(
    sources: impl IntoIterator<Item = S>,
    mut dispatcher: Dispatcher,
    feed: &mut Feed<P>,
    progress: &Progress,
    mut damage: impl FnMut(usize, S::Error),
) -> Dispatcher {
    let feed = std::cell::RefCell::new(feed);
    read(
        sources,
        progress,
        || feed.borrow().is_broken(),
        &mut damage,
        |source| {
            let feed = &mut **feed.borrow_mut();
            feed.records_in(source.memory());
            let read = read_ahead(source, READ, |record| {
                let place = dispatcher.locate(&record);
                feed.record(dispatcher.packets(), place, record.time_ns);
            });
            feed.pause(dispatcher.packets() + 1);
            progress.set(dispatcher.packets(), dispatcher.bytes());
            read
        },
    );
    dispatcher
}

/// Runs the second stage until its queue is drained.
fn application<C: ItemConsumer, D: Design<Harvest>>(
    mut stage: Stage<'_>,
    mut inlet: C,
    mut harvests: Producer<Harvest, D>,
    end: impl FnOnce() -> (u64, u64),
) -> (PartialResult, Findings) {
    let mut items = Vec::with_capacity(BATCH);
    let mut sent = 0;
    // If the queue is closed the output stage has panicked, and the panic surfaces where it is joined.
    let mut send = |stage: &mut Stage<'_>| drop(harvests.push(stage.take()));
    while let Ok(popped) = inlet.pop_batch(&mut items, BATCH) {
        stage.follow(&mut items, &mut send);
        sent += popped;
        // Sends now and then, and when there is nothing else to do.
        if (sent >= 4 * BATCH || inlet.is_empty()) && stage.has_news() {
            send(&mut stage);
            sent = 0;
        }
    }
    let (packets, max_time) = end();
    let result = stage.finish(packets, max_time);
    send(&mut stage);
    result
}

/// Runs the third stage until all queues are drained.
fn output<D: Design<Harvest>>(
    settings: &Settings,
    queues: Vec<Consumer<Harvest, D>>,
    mut creditor: Creditor,
    spares: &Spares,
    mut out: impl FnMut(&[u8]),
) -> MainAnalyzer {
    let mut main = MainAnalyzer::new(settings);
    let mut merge = Merge::new(queues.len(), spares);
    let mut select = Select::new();
    let mut queues: Vec<_> = queues.into_iter().map(|queue| select.add(queue)).enumerate().collect();
    while select.wait().is_some() {
        queues.retain(|&(stage, queue)| {
            let closed = select[queue].is_closed();
            // An error means empty, or closed, which was checked before.
            let _ = select[queue].try_pop_each(usize::MAX, |Harvest { lines, reports, passed }| {
                reports.into_iter().for_each(|report| main.state_report(report));
                merge.add(stage, lines, passed);
            });
            if closed {
                // The same for a stage that has panicked.
                merge.add(stage, Default::default(), u64::MAX);
                select.remove(queue);
            }
            !closed
        });
        if merge.drain(&mut out) {
            out(&[]);
        }
        if !queues.is_empty() {
            creditor.tell(merge.passed());
        }
    }
    main
}
