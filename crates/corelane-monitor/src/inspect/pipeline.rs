//! The stages of the second analysis as threads joined by queues, or one after the other.

use super::Inspection;
use super::collect::{Collector, Found, StepEnd};
use super::feed::{Credits, Feed, Marks};
use super::findings::Findings;
use super::item::{Frame, Item};
use super::lines::Spares;
use super::queues::{Out, output, queues};
use super::stage::{ENOUGH, Harvest, Stage};
use crate::continuous::Continuous;
use crate::dispatch::{Dispatcher, Place};
use crate::partial_result::PartialResult;
use crate::pipeline::{Damage, Pins, Plan, PlanError, join, spawn};
use crate::report::Report;
use crate::run::Run;
use crate::settings::Settings;
use crate::source::{Progress, Silence, Source, read_ahead};
use crate::steps::step_of;
use corelane::spsc::{self, Consumer, Linked, Producer};
use corelane_net::capture::Record;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// The most items that a stage takes at a time.
const BATCH: usize = 256;
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
    mut damage: impl FnMut(usize, S::Error) + Send,
    out: impl FnMut(&[u8]) + Send,
) -> Result<(Report, Findings), PlanError> {
    begin(sources, settings, None, inspection, plan, progress, &mut damage, &mut lines_to(out))
}

/// Runs both analyses over records that may come for months: an interface, or captures as if they came from one.
///
/// Time passes in [`Steps`](crate::Steps), and nothing is kept for ever: conversations and flows end when they are
/// silent, failures are forgotten, and scans are told at once. So memory does not grow with time. Flows and scans
/// differ from those of [`inspect`] where something was forgotten, and the report counts flows as begun and has no
/// address pairs. [`Settings::counting`] and [`Settings::top`] need a whole capture and are not heeded.
///
/// `out` gets all that is found as it comes, in an order that depends on the packets alone: events of conversations by
/// packet; and at the end of a step its scans, behind all that its end has brought about. Otherwise this is the same as
/// [`inspect`].
///
/// # Errors
/// If the plan cannot be carried out; then nothing was read.
///
/// # Panics
/// If a stage panics, with its panic.
#[expect(clippy::too_many_arguments, reason = "those of `inspect`, and the settings of time")]
pub fn watch<S: Source>(
    sources: impl IntoIterator<Item = S> + Send,
    settings: &Settings,
    continuous: &Continuous,
    inspection: &Inspection,
    plan: &Plan,
    progress: &Progress,
    mut damage: impl FnMut(usize, S::Error) + Send,
    mut out: impl FnMut(Found<'_>) + Send,
) -> Result<(Report, Findings), PlanError> {
    begin(sources, &of_steps(settings), Some(continuous), inspection, plan, progress, &mut damage, &mut out)
}

/// The same as [`watch`], over the rings of one interface, each read in a thread of its own by a Dispatcher with stages
/// of its own: at least one, and their share of [`Plan::analyzers`]. No address pair may be in two rings.
///
/// A step is over for scans when all rings have passed it. The events are those of one ring, but for their order, the
/// numbers of packets and the names of flows. Errors come with the number of the source, which is always 0.
///
/// # Errors
/// As [`watch`].
///
/// # Panics
/// As [`watch`].
#[expect(clippy::too_many_arguments, reason = "those of `watch`")]
pub fn watch_rings<S: Source + Send>(
    rings: Vec<S>,
    settings: &Settings,
    continuous: &Continuous,
    inspection: &Inspection,
    plan: &Plan,
    progress: &Progress,
    mut damage: impl FnMut(usize, S::Error) + Send,
    mut out: impl FnMut(Found<'_>) + Send,
) -> Result<(Report, Findings), PlanError> {
    let settings = &of_steps(settings);
    plan.check()?;
    let pins = &Pins::new(&plan.cpus)?;
    let stages = Stages { settings, continuous: Some(continuous), inspection, plan, pins };
    // Of the type that `watch` is called with, mostly: each is compiled for its own.
    let rings: Vec<_> = rings.into_iter().map(|ring| vec![ring]).collect();
    stages.as_dispatcher(|| stages.run(rings, progress, &mut damage, &mut out))
}

/// The settings without those that need a whole capture.
fn of_steps(settings: &Settings) -> Settings {
    Settings { counting: None, top: 0, ..settings.clone() }
}

#[expect(clippy::too_many_arguments, reason = "those of `watch`")]
fn begin<S: Source>(
    sources: impl IntoIterator<Item = S> + Send,
    settings: &Settings,
    continuous: Option<&Continuous>,
    inspection: &Inspection,
    plan: &Plan,
    progress: &Progress,
    damage: Damage<'_, S>,
    out: Out<'_>,
) -> Result<(Report, Findings), PlanError> {
    plan.check()?;
    let pins = &Pins::new(&plan.cpus)?;
    let stages = Stages { settings, continuous, inspection, plan, pins };
    stages.as_dispatcher(|| match plan.analyzers {
        0 => Ok(stages.alone(sources, progress, damage, out)),
        _ => stages.run(vec![sources], progress, damage, out),
    })
}

fn lines_to(mut out: impl FnMut(&[u8])) -> impl FnMut(Found<'_>) {
    move |found| {
        if let Found::Lines(lines) = found {
            out(lines);
        }
    }
}

/// The scan detector alone, in this thread.
pub(crate) fn scans_alone<S: Source>(
    sources: impl IntoIterator<Item = S>,
    settings: &Settings,
    progress: &Progress,
    damage: Damage<'_, S>,
) -> Report {
    let (inspection, plan) =
        (&Inspection { payload: false, ..Inspection::default() }, &Plan { analyzers: 0, ..Plan::default() });
    let stages = Stages { settings, continuous: None, inspection, plan, pins: &Pins::none() };
    stages.alone(sources, progress, damage, &mut |_: Found<'_>| {}).0
}

#[derive(Clone, Copy)]
struct Stages<'a> {
    settings: &'a Settings,
    continuous: Option<&'a Continuous>,
    inspection: &'a Inspection,
    plan: &'a Plan,
    pins: &'a Pins,
}

impl Stages<'_> {
    /// Runs in this thread, or in one that is pinned, if stages are.
    fn as_dispatcher<R: Send>(self, run: impl FnOnce() -> R + Send) -> R {
        if self.plan.cpus.is_empty() {
            return run();
        }
        thread::scope(|scope| {
            let dispatcher = move || {
                self.pins.pin(0);
                run()
            };
            join(spawn(scope, "dispatcher", dispatcher))
        })
    }

    /// Runs the stages of several Dispatchers, each with sources and its share of the stages, and at least one.
    fn run<I: IntoIterator<Item = S> + Send, S: Source>(
        self,
        rings: Vec<I>,
        progress: &Progress,
        damage: Damage<'_, S>,
        out: Out<'_>,
    ) -> Result<(Report, Findings), PlanError> {
        let count = rings.len();
        let share = |ring: usize| ((self.plan.analyzers + count - 1 - ring) / count).max(1);
        let counts: Vec<_> = (0..count).map(share).collect();
        let (mut fronts, mut backs, mut tolds, mut harvests) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (ring, sources) in rings.into_iter().enumerate() {
            let (outlets, ends) = queues(self.plan, ring, counts[ring], &mut harvests)?;
            let (creditor, credits) = Credits::new().map_err(PlanError::Queue)?;
            // Without a bound: at most one end for each packet on its way is in it.
            let (steps_in, steps) = spsc::linked::try_channel().map_err(PlanError::Queue)?;
            backs.extend(ends.into_iter().map(|ends| (ring, ends)));
            fronts.push((sources, Feed::new(outlets, credits), steps_in));
            tolds.push((steps, creditor));
        }
        let run = &self.new_run();
        // Set before the queues of the Dispatchers are closed; stages read it after they found theirs closed.
        let end = &OnceLock::new();
        let spares = &Spares::default();
        let damage = &Mutex::new(damage);
        // A panic ends all Dispatchers, as it surfaces when the last one has ended.
        let broken = &AtomicBool::new(false);
        Ok(thread::scope(|scope| {
            let stages: Vec<_> = (backs.into_iter().enumerate())
                .map(|(number, (ring, (inlet, sender)))| {
                    let body = move || {
                        self.pins.pin(1 + number);
                        let stage = Stage::new(self.settings, self.continuous, self.inspection, run, spares);
                        let end = || end.get().map(|(packets, time): &(Vec<u64>, u64)| (packets[ring], *time));
                        application(stage, inlet, sender, &|| end().unwrap_or_default())
                    };
                    spawn(scope, &format!("analyzer {number}"), body)
                })
                .collect();
            let last = 1 + stages.len();
            let last_stage = spawn(scope, "output", move || {
                self.pins.pin(last);
                output(Collector::new(&counts, self.settings, self.continuous, spares), harvests, tolds, out)
            });
            let dispatch = move |(sources, mut feed, mut ends): (I, Feed, Producer<StepEnd, Linked>)| {
                let _panic = OnPanic(broken);
                let damage = |number, error| damage.lock().unwrap_or_else(PoisonError::into_inner)(number, error);
                // If the queue is closed the output stage has panicked, and the panic surfaces where it is joined.
                let told = |end| drop(ends.push(end));
                let clock = self.dispatch(sources, run, &mut feed, told, progress, broken, damage);
                (clock, feed, ends)
            };
            let mut fronts = fronts.into_iter();
            let first = fronts.next();
            let others: Vec<_> = (fronts.enumerate())
                .map(|(number, front)| {
                    let body = move || {
                        self.pins.pin(1 + last + number);
                        dispatch(front)
                    };
                    spawn(scope, &format!("dispatcher {}", 1 + number), body)
                })
                .collect();
            let mut fronts: Vec<_> = first.map(dispatch).into_iter().collect();
            fronts.extend(others.into_iter().map(join));
            // The run ends for all at one time.
            let max_time = fronts.iter().map(|(clock, ..)| clock.dispatcher.max_time()).max().unwrap_or(0);
            let begun_ns = fronts.iter().map(|(clock, ..)| clock.dispatcher.begun_ns()).max().unwrap_or(0);
            for (clock, feed, ends) in &mut fronts {
                pass(clock, feed, &mut |end| drop(ends.push(end)), progress, begun_ns);
            }
            let packets = fronts.iter().map(|(clock, ..)| clock.dispatcher.packets()).collect();
            let _ = end.set((packets, max_time));
            let dispatchers: Vec<_> = fronts.into_iter().map(|(clock, ..)| clock.dispatcher).collect();
            let numbers: Vec<_> = stages.into_iter().map(join).collect();
            let (collector, out) = join(last_stage);
            collector.finish(&dispatchers, numbers, out)
        }))
    }

    /// The first stage's work, before it has begun.
    fn dispatcher(self, run: &Run) -> Clock {
        let dispatcher = match self.continuous {
            None => Dispatcher::new(run, self.settings),
            Some(_) => Dispatcher::in_steps(run, self.settings),
        };
        let every = self.continuous.map_or(u64::MAX, |continuous| continuous.snapshot_s.max(1));
        Clock { dispatcher, every, next: every }
    }

    /// Runs the first stage. `told` gets the end of each step before any other stage hears of it. The result comes
    /// early if this or another Dispatcher is broken.
    #[expect(clippy::too_many_arguments, reason = "what all Dispatchers share, and what each has")]
    fn dispatch<S: Source>(
        self,
        sources: impl IntoIterator<Item = S>,
        run: &Run,
        feed: &mut Feed,
        told: impl FnMut(StepEnd),
        progress: &Progress,
        broken: &AtomicBool,
        mut damage: impl FnMut(usize, S::Error),
    ) -> Clock {
        let state = RefCell::new((self.dispatcher(run), feed, told));
        read(
            sources,
            progress,
            || {
                if state.borrow().1.is_broken() {
                    broken.store(true, Relaxed);
                }
                broken.load(Relaxed)
            },
            &mut damage,
            |source| {
                let (clock, feed, told) = &mut *state.borrow_mut();
                let before = (clock.dispatcher.packets(), clock.dispatcher.bytes());
                feed.records_in(source.memory());
                let read = read_ahead(source, READ, |mut record| {
                    if let Some(end) = clock.packet(&mut record) {
                        if end.snapshot.is_some() {
                            feed.ask(progress);
                        }
                        told(end);
                    }
                    let place = clock.dispatcher.locate(&record);
                    feed.record(clock.dispatcher.packets(), place, clock.dispatcher.marked(record.time_ns));
                });
                feed.pause(clock.dispatcher.packets() + 1);
                progress.add(clock.dispatcher.packets() - before.0, clock.dispatcher.bytes() - before.1);
                read
            },
            |time_ns| {
                let (clock, feed, told) = &mut *state.borrow_mut();
                pass(clock, feed, told, progress, time_ns);
            },
        );
        state.into_inner().0
    }

    /// A new run, with the memory that is to be ready before the first packet.
    fn new_run(&self) -> Run {
        let run = Run::new();
        if let Some(continuous) = self.continuous {
            let most = self.settings.table_bytes.map_or(u64::MAX, |bytes| bytes / 4);
            run.pool.ready(usize::try_from(continuous.ready_bytes.min(most)).unwrap_or(0));
        }
        run
    }

    /// Runs all stages in this thread.
    fn alone<S: Source>(
        self,
        sources: impl IntoIterator<Item = S>,
        progress: &Progress,
        mut damage: Damage<'_, S>,
        out: Out<'_>,
    ) -> (Report, Findings) {
        let run = self.new_run();
        let spares = Spares::default();
        let stage = Stage::new(self.settings, self.continuous, self.inspection, &run, &spares);
        let collector = Collector::new(&[1], self.settings, self.continuous, &spares);
        let state = RefCell::new((self.dispatcher(&run), stage, collector, Marks::default(), out));
        read(
            sources,
            progress,
            || false,
            &mut damage,
            |source| {
                let (clock, stage, collector, marks, out) = &mut *state.borrow_mut();
                let read = read_ahead(source, READ, |mut record| {
                    let end = clock.packet(&mut record);
                    if !self.inspection.payload {
                        // Without conversations nothing expires but with steps, and one look at the headers is enough.
                        if let Some(end) = end {
                            stage.mark(end.number, end.begun_ns, end.snapshot.is_some());
                            collector.end(0, end);
                        }
                        clock.dispatcher.packet(&record, stage);
                        return;
                    }
                    let snapshot = end.as_ref().is_some_and(|end| end.snapshot.is_some());
                    end.into_iter().for_each(|end| collector.end(0, end));
                    let number = clock.dispatcher.packets() + 1;
                    if let Some(time_ns) = marks.before(number, clock.dispatcher.marked(record.time_ns)) {
                        stage.mark(number, time_ns, snapshot);
                    }
                    if let Some((Place { network, outermost, partition }, record)) = clock.dispatcher.locate(&record) {
                        let Record { time_ns, wire_len, data, .. } = record;
                        let frame = Frame { time_ns, wire_len, data, network, outermost, partition };
                        stage.packet(number, &frame);
                    }
                    if stage.waiting() >= ENOUGH {
                        collector.add(0, 0, stage.take());
                        collector.drain(&mut *out);
                    }
                });
                stage.pass(clock.dispatcher.packets() + 1);
                collector.add(0, 0, stage.take());
                collector.drain(out);
                progress.set(clock.dispatcher.packets(), clock.dispatcher.bytes());
                read
            },
            |time_ns| {
                let (clock, stage, collector, marks, out) = &mut *state.borrow_mut();
                let Some(end) = clock.pass(time_ns) else { return };
                let (number, snapshot) = (end.number, end.snapshot.is_some());
                if let Some(time_ns) = marks.before(number, end.begun_ns) {
                    stage.mark(number, time_ns, snapshot);
                }
                collector.end(0, end);
                // The next read may wait for long.
                collector.add(0, 0, stage.take());
                collector.drain(out);
            },
        );
        let (Clock { dispatcher, .. }, mut stage, mut collector, _, mut out) = state.into_inner();
        let numbers = stage.finish(dispatcher.packets(), dispatcher.max_time());
        collector.add(0, 0, stage.take());
        collector.drain(&mut out);
        collector.finish(&[dispatcher], vec![numbers], out)
    }
}

/// Says so when its thread panics.
struct OnPanic<'a>(&'a AtomicBool);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

/// Time passes for all stages of a Dispatcher, though no packet came.
fn pass(clock: &mut Clock, feed: &mut Feed, told: &mut impl FnMut(StepEnd), progress: &Progress, time_ns: u64) {
    let Some(end) = clock.pass(time_ns) else { return };
    if end.snapshot.is_some() {
        feed.ask(progress);
    }
    let (number, begun_ns) = (end.number, end.begun_ns);
    told(end);
    feed.pass(number, begun_ns);
}

/// The Dispatcher, and what the ends of steps need of it.
struct Clock {
    dispatcher: Dispatcher,
    /// The seconds between two snapshots.
    every: u64,
    /// The step from which one is due.
    next: u64,
}

impl Clock {
    /// Sets the time of a record. The result is set if time passes to another step.
    #[inline(always)]
    fn packet(&mut self, record: &mut Record<'_>) -> Option<StepEnd> {
        let (time_ns, begun_ns) = self.dispatcher.time(record.time_ns);
        record.time_ns = time_ns;
        begun_ns.map(|begun_ns| self.end(begun_ns))
    }

    /// No packet before this time follows.
    fn pass(&mut self, time_ns: u64) -> Option<StepEnd> {
        self.dispatcher.pass(time_ns).map(|begun_ns| self.end(begun_ns))
    }

    #[cold]
    fn end(&mut self, begun_ns: u64) -> StepEnd {
        let is_due = step_of(begun_ns) >= self.next;
        if is_due {
            self.next = (step_of(begun_ns) / self.every + 1).saturating_mul(self.every);
        }
        let snapshot = is_due.then(|| Box::new(self.dispatcher.clone()));
        StepEnd { number: self.dispatcher.packets() + 1, begun_ns, snapshot }
    }
}

/// Reads all sources to their ends, or until `progress` says stop. `pass` hears of time that passes without records.
fn read<S: Source>(
    sources: impl IntoIterator<Item = S>,
    progress: &Progress,
    mut is_broken: impl FnMut() -> bool,
    damage: &mut impl FnMut(usize, S::Error),
    mut read: impl FnMut(&mut S) -> Result<usize, S::Error>,
    mut pass: impl FnMut(u64),
) {
    for (number, mut source) in sources.into_iter().enumerate() {
        loop {
            if progress.is_stopped() || is_broken() {
                return;
            }
            match read(&mut source) {
                Ok(0) => match source.silence() {
                    Silence::Pause { time_ns } => pass(time_ns),
                    Silence::End { time_ns } => {
                        time_ns.into_iter().for_each(&mut pass);
                        break;
                    }
                },
                Ok(_) => {}
                Err(error) => damage(number, error),
            }
        }
    }
}

/// Runs the second stage until its queue is drained.
fn application(
    mut stage: Stage<'_>,
    mut inlet: Consumer<Item>,
    mut sender: Producer<Harvest>,
    end: &dyn Fn() -> (u64, u64),
) -> (PartialResult, Findings) {
    let mut items = Vec::with_capacity(BATCH);
    let mut sent = 0;
    // If the queue is closed the output stage has panicked, and the panic surfaces where it is joined.
    let mut send = |stage: &mut Stage<'_>| drop(sender.push(stage.take()));
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
