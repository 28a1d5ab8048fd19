//! The stages of the second analysis as threads joined by queues, or one after the other.

use super::Inspection;
use super::collect::{Collector, StepEnd};
use super::feed::{Credits, Feed, Marks};
use super::item::{Frame, Item};
use super::lines::Spares;
use super::queues::{HARVESTS, Out, channels, output};
use super::share::{self, Inlet, Shares, sub_analysis};
use super::stage::{ENOUGH, Harvest, Numbers, Stage};
use super::tap::{Came, Ring, ring};
use crate::continuous::Continuous;
use crate::dispatch::{Dispatcher, Place};
use crate::findings::Findings;
use crate::job::{Job, Observer};
use crate::lending::Lent;
use crate::partial_result::PartialResult;
use crate::plan::{Pins, Plan, PlanError, Sharing};
use crate::report::Report;
use crate::run::Run;
use crate::settings::Settings;
use crate::source::{Progress, Source};
use crate::steps::step_of;
use corelane::spsc::{self, Consumer, Linked, Producer};
use corelane_net::capture::{LinkType, Record};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;

/// The most items that a stage takes at a time.
const BATCH: usize = 256;

/// Runs a job over the sources of each Dispatcher, usually one.
pub(crate) fn start<I: IntoIterator<Item = S> + Send, S: Source>(
    job: &Job,
    sources: Vec<I>,
    Observer { progress, damage, found }: Observer<'_, S::Error>,
) -> Result<(Report, Findings), PlanError> {
    start_rings(job, sources.into_iter().map(|sources| ring(sources, damage)).collect(), progress, found)
}

/// The same, whatever the type of the sources is.
fn start_rings(
    job: &Job,
    mut rings: Vec<Ring<'_>>,
    progress: &Progress,
    out: Out<'_>,
) -> Result<(Report, Findings), PlanError> {
    let Job { settings, plan, inspection, continuous } = job;
    let pins = &plan.pins()?;
    // Without those that need a whole capture.
    let of_steps = continuous.as_ref().map(|_| Settings { counting: None, top: 0, ..settings.clone() });
    let settings = of_steps.as_ref().unwrap_or(settings);
    let stages = Stages { settings, continuous: continuous.as_ref(), inspection, plan, pins };
    progress.set(0, 0);
    stages.as_dispatcher(|| match rings.pop() {
        Some(ring) if rings.is_empty() && plan.analyzers == 0 => match stages.shares() {
            true => Ok(stages.alone_with_slots(ring, progress, out)),
            false => Ok(stages.alone(ring, progress, out)),
        },
        last => {
            rings.extend(last);
            stages.run(rings, progress, out)
        }
    })
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
    fn run(self, rings: Vec<Ring<'_>>, progress: &Progress, out: Out<'_>) -> Result<(Report, Findings), PlanError> {
        let count = rings.len();
        let share = |ring: usize| ((self.plan.analyzers + count - 1 - ring) / count).max(1);
        let mut counts: Vec<_> = (0..count).map(share).collect();
        let run = &self.new_run();
        let (mut fronts, mut backs, mut from_dispatchers, mut harvests) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (number, (ring, count)) in rings.into_iter().zip(&mut counts).enumerate() {
            let (creditor, credits) = Credits::new().map_err(PlanError::Queue)?;
            // Without a bound: at most one end for each packet on its way is in it.
            let (steps_in, steps) = spsc::linked::try_channel().map_err(PlanError::Queue)?;
            let capacity = self.plan.capacity;
            let (mut senders, queues) = channels(capacity.min(HARVESTS), *count + usize::from(self.shares()))?;
            let (front, inlets): (_, Vec<_>) = if self.shares() {
                let (slots, inlets) = channels(capacity, *count)?;
                let ends = slots.into_iter().zip(inlets).map(share::ends).collect::<Result<Vec<_>, _>>();
                let (outlets, inlets): (_, Vec<_>) = ends.map_err(PlanError::Queue)?.into_iter().unzip();
                let own = senders.pop().expect("one more than stages");
                let shares = Shares::new(self.plan.sharing(), self.settings, run, outlets);
                (Front::Slots(Box::new(shares), own), inlets.into_iter().map(Back::Slots).collect())
            } else {
                let (items, inlets) = channels(capacity, *count)?;
                (Front::Items(Box::new(Feed::new(items, credits))), inlets.into_iter().map(Back::Items).collect())
            };
            *count = queues.len();
            harvests.extend(queues.into_iter().enumerate().map(|(stage, queue)| (number, stage, queue)));
            backs.extend(inlets.into_iter().zip(senders).map(|(inlet, sender)| (number, inlet, sender)));
            fronts.push((ring, front, steps_in));
            from_dispatchers.push((steps, creditor));
        }
        // Set before the queues of the Dispatchers are closed; stages read it after they found theirs closed.
        let end = &OnceLock::new();
        let spares = &Spares::default();
        // A panic ends all Dispatchers, as it surfaces when the last one has ended.
        let broken = &AtomicBool::new(false);
        Ok(thread::scope(|scope| {
            let stages: Vec<_> = (backs.into_iter().enumerate())
                .map(|(number, (ring, inlet, sender))| {
                    let body = move || {
                        self.pins.pin(1 + number);
                        let end = || end.get().map(|(packets, time): &(Vec<u64>, u64)| (packets[ring], *time));
                        let end = || end().unwrap_or_default();
                        match inlet {
                            Back::Items(items) => {
                                let stage = Stage::new(self.settings, self.continuous, self.inspection, run, spares);
                                application(stage, items, sender, &end)
                            }
                            Back::Slots(slots) => {
                                let mut sender = sender;
                                let result =
                                    sub_analysis(self.settings, run, slots, &mut into(&mut sender), || end().1);
                                Numbers::of_headers(result)
                            }
                        }
                    };
                    spawn(scope, &format!("analyzer {number}"), body)
                })
                .collect();
            let last = 1 + stages.len();
            let last_stage = spawn(scope, "output", move || {
                self.pins.pin(last);
                output(Collector::new(&counts, self.settings, self.continuous, spares), harvests, from_dispatchers, out)
            });
            let dispatch = move |(ring, mut front, mut ends): (Ring<'_>, Front, Producer<StepEnd, Linked>)| {
                let _panic = OnPanic(broken);
                // If the queue is closed the output stage has panicked, and the panic surfaces where it is joined.
                let step_ended = &mut |end| drop(ends.push(end));
                let clock = self.dispatch(ring, run, &mut front, step_ended, progress, broken);
                (clock, front, ends)
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
            for (clock, front, ends) in &mut fronts {
                let time_ns = begun_ns.saturating_sub(clock.dispatcher.jumps().shift_ns);
                pass(clock, front, &mut |end| drop(ends.push(end)), progress, time_ns);
            }
            let packets = fronts.iter().map(|(clock, ..)| clock.dispatcher.packets()).collect();
            let _ = end.set((packets, max_time));
            // Closes the queues.
            let ended = fronts.into_iter().map(|(clock, front, _)| (clock.dispatcher, front.finish(max_time)));
            let (dispatchers, own): (Vec<_>, Vec<_>) = ended.unzip();
            let numbers: Vec<_> = stages.into_iter().map(join).collect();
            let (collector, out) = join(last_stage);
            collector.finish(&dispatchers, numbers, own, out)
        }))
    }

    /// Whether the Dispatcher decodes, and analyses a share: where only headers count, and time does not pass.
    fn shares(&self) -> bool {
        !self.inspection.payload && self.continuous.is_none()
    }

    /// The first stage's work, before it has begun.
    fn dispatcher(self, run: &Run) -> Clock {
        let dispatcher = match self.continuous {
            None => Dispatcher::new(run, self.settings),
            Some(continuous) => Dispatcher::in_steps(run, self.settings, continuous.forget_s),
        };
        let every = self.continuous.map_or(u64::MAX, |continuous| continuous.snapshot_s.max(1));
        Clock { dispatcher, held: None, every, next: every }
    }

    /// Runs the first stage. `told` gets the end of each step before any other stage hears of it. The result comes
    /// early if this or another Dispatcher is broken.
    fn dispatch(
        self,
        ring: Ring<'_>,
        run: &Run,
        front: &mut Front,
        told: &mut dyn FnMut(StepEnd),
        progress: &Progress,
        broken: &AtomicBool,
    ) -> Clock {
        let mut clock = self.dispatcher(run);
        ring(&mut |tap| {
            while !progress.is_stopped() {
                if front.is_broken() {
                    broken.store(true, Relaxed);
                }
                if broken.load(Relaxed) {
                    break;
                }
                let before = (clock.dispatcher.packets(), clock.dispatcher.bytes());
                let came = match front {
                    Front::Items(feed) => tap.items(&mut clock, &mut Fed { feed, told, progress }),
                    Front::Slots(shares, own) => tap.slots(&mut clock.dispatcher, shares, &mut into(own)),
                };
                progress.add(clock.dispatcher.packets() - before.0, clock.dispatcher.bytes() - before.1);
                match came {
                    Came::Records => {}
                    Came::Time(time_ns) => pass(&mut clock, front, told, progress, time_ns),
                    Came::End => break,
                }
            }
        });
        if let Front::Items(feed) = front
            && let Some(held) = &clock.held
        {
            progress.add(1, held.wire_len.into());
            clock.finish(&mut Fed { feed, told, progress });
            feed.pause(clock.dispatcher.packets() + 1);
        }
        clock
    }

    /// A new run, with the memory that is to be ready before the first packet.
    fn new_run(&self) -> Run {
        let run = Run::seeded(self.settings.seed);
        if let Some(continuous) = self.continuous {
            let most = self.settings.table_bytes.map_or(u64::MAX, |bytes| bytes / 4);
            run.pool.ready(usize::try_from(continuous.ready_bytes.min(most)).unwrap_or(0));
        }
        run
    }

    /// Runs the scan detector in this thread: all partitions are the Dispatcher's share.
    fn alone_with_slots(self, ring: Ring<'_>, progress: &Progress, out: Out<'_>) -> (Report, Findings) {
        let (run, spares) = (self.new_run(), Spares::default());
        let mut shares = Shares::new(Sharing::Fixed, self.settings, &run, Vec::new());
        let mut dispatcher = Dispatcher::new(&run, self.settings);
        let mut collector = Collector::new(&[1], self.settings, None, &spares);
        ring(&mut |tap| {
            let add = &mut |harvest| collector.add(0, 0, harvest);
            while !progress.is_stopped() && tap.slots(&mut dispatcher, &mut shares, add) != Came::End {
                progress.set(dispatcher.packets(), dispatcher.bytes());
            }
        });
        let result = shares.finish(dispatcher.max_time(), &mut |harvest| collector.add(0, 0, harvest));
        collector.finish(&[dispatcher], vec![Numbers::of_headers(result)], [None], out)
    }

    /// Runs all stages in this thread.
    fn alone(self, ring: Ring<'_>, progress: &Progress, out: Out<'_>) -> (Report, Findings) {
        let run = self.new_run();
        let spares = Spares::default();
        let stage = Stage::new(self.settings, self.continuous, self.inspection, &run, &spares);
        let collector = Collector::new(&[1], self.settings, self.continuous, &spares);
        let mut alone = Alone { stage, collector, marks: Marks::default(), payload: self.inspection.payload, out };
        let mut clock = self.dispatcher(&run);
        ring(&mut |tap| {
            while !progress.is_stopped() {
                let came = tap.alone(&mut clock, &mut alone);
                progress.set(clock.dispatcher.packets(), clock.dispatcher.bytes());
                match came {
                    Came::Records => {}
                    Came::Time(time_ns) => {
                        if clock.pass(time_ns, &mut alone) {
                            // The next read may wait for long.
                            alone.send();
                        }
                    }
                    Came::End => break,
                }
            }
        });
        clock.finish(&mut alone);
        progress.set(clock.dispatcher.packets(), clock.dispatcher.bytes());
        let Alone { mut stage, mut collector, out, .. } = alone;
        let Clock { dispatcher, .. } = clock;
        let numbers = stage.finish(dispatcher.packets(), dispatcher.max_time(), &mut |harvest| {
            collector.add(0, 0, harvest);
            collector.drain(out);
        });
        collector.drain(out);
        collector.finish(&[dispatcher], vec![numbers], [None], out)
    }
}

/// All stages in one thread.
pub(super) struct Alone<'a, 'b> {
    stage: Stage<'a>,
    collector: Collector<'a>,
    marks: Marks,
    payload: bool,
    out: Out<'b>,
}

impl Alone<'_, '_> {
    /// All packets before this number have come.
    pub(super) fn pause(&mut self, number: u64) {
        self.stage.pass(number);
        self.send();
    }

    /// Gives out what was found.
    fn send(&mut self) {
        self.stage.send(&mut |harvest| self.collector.add(0, 0, harvest));
        self.collector.drain(self.out);
    }

    /// Takes the end of a step. The result is what the mark behind it brings.
    fn end(&mut self, mut end: StepEnd) -> (bool, Option<Arc<Lent>>) {
        let news = (end.snapshot.is_some(), end.lent.take());
        self.collector.end(0, end);
        news
    }

    /// Time passes, before the packet of this number.
    fn mark(&mut self, number: u64, time_ns: u64, (snapshot, lent): (bool, Option<Arc<Lent>>)) {
        let Alone { stage, collector, out, .. } = self;
        stage.mark(number, time_ns, snapshot, &mut |harvest| {
            collector.add(0, 0, harvest);
            collector.drain(*out);
        });
        lent.into_iter().for_each(|lent| stage.lend(&lent));
    }
}

impl Take for Alone<'_, '_> {
    #[inline(always)]
    fn take(&mut self, dispatcher: &mut Dispatcher, record: &Record<'_>, end: Option<StepEnd>) {
        if !self.payload {
            // Nothing expires but with steps, and one look at the headers is enough.
            if let Some(end) = end {
                let (number, begun_ns) = (end.number, end.begun_ns);
                let news = self.end(end);
                self.mark(number, begun_ns, news);
            }
            if let Some(found) = dispatcher.packet(record, &mut self.stage) {
                self.stage.packet(dispatcher.packets(), &frame(found));
            }
            if !dispatcher.passages().news().is_empty() {
                self.collector.through(dispatcher.passages().take());
            }
            return;
        }
        let news = end.map(|end| self.end(end)).unwrap_or_default();
        let number = dispatcher.packets() + 1;
        if let Some(time_ns) = self.marks.before(number, dispatcher.marked(record.time_ns)) {
            self.mark(number, time_ns, news);
        }
        if let Some(found) = dispatcher.locate(record) {
            self.stage.packet(number, &frame(found));
        }
        if self.stage.waiting() >= ENOUGH {
            self.send();
        }
    }

    fn pass(&mut self, end: StepEnd) {
        let (number, begun_ns) = (end.number, end.begun_ns);
        let news = self.end(end);
        if let Some(time_ns) = self.marks.before(number, begun_ns) {
            self.mark(number, time_ns, news);
        }
    }
}

fn frame((place, record): (Place, Record<'_>)) -> Frame<'_> {
    let (Place { network, outermost, partition }, Record { time_ns, wire_len, link, data }) = (place, record);
    Frame { time_ns, wire_len, link, data, network, outermost, partition }
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> thread::ScopedJoinHandle<'scope, T> {
    thread::Builder::new()
        .name(name.to_string())
        .spawn_scoped(scope, body)
        .unwrap_or_else(|error| panic!("cannot start the thread {name}: {error}; use fewer analyzers"))
}

/// The thread's result; if it panicked, the panic goes on here.
fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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

/// The Dispatcher's ends of the queues to its stages.
enum Front {
    /// Packets, for stages that decode them.
    Items(Box<Feed>),
    /// Decoded packets, and the harvests of the Dispatcher's own analysis.
    Slots(Box<Shares>, Producer<Harvest>),
}

/// A stage's end of that queue.
enum Back {
    Items(Consumer<Item>),
    Slots(Inlet),
}

impl Front {
    /// Whether another stage has panicked: no stage closes its queue before the Dispatcher has closed all of its own.
    /// The panic surfaces where the stage is joined, so the Dispatcher stops reading.
    fn is_broken(&self) -> bool {
        match self {
            Front::Items(feed) => feed.is_broken(),
            Front::Slots(shares, own) => own.is_closed() || shares.is_broken(),
        }
    }

    /// Closes the queues. Returns the result of the Dispatcher's own analysis, if there was any.
    fn finish(self, max_time: u64) -> Option<PartialResult> {
        match self {
            Front::Items(_) => None,
            Front::Slots(shares, mut own) => Some(shares.finish(max_time, &mut into(&mut own))),
        }
    }
}

/// Sends records to stages that decode them. `told` gets the end of each step first.
pub(super) struct Fed<'a, 'b> {
    pub(super) feed: &'a mut Feed,
    told: &'a mut (dyn FnMut(StepEnd) + 'b),
    progress: &'a Progress,
}

impl Fed<'_, '_> {
    fn end(&mut self, mut end: StepEnd) {
        if end.snapshot.is_some() {
            self.feed.ask(self.progress);
        }
        self.feed.lend(end.lent.take());
        (self.told)(end);
    }
}

impl Take for Fed<'_, '_> {
    #[inline(always)]
    fn take(&mut self, dispatcher: &mut Dispatcher, record: &Record<'_>, end: Option<StepEnd>) {
        if let Some(end) = end {
            self.end(end);
        }
        let place = dispatcher.locate(record);
        self.feed.record(dispatcher.packets(), place, dispatcher.marked(record.time_ns));
    }

    fn pass(&mut self, end: StepEnd) {
        let (number, begun_ns) = (end.number, end.begun_ns);
        self.end(end);
        self.feed.pass(number, begun_ns);
    }
}

/// Time passes for all stages of a Dispatcher, though no packet came.
fn pass(clock: &mut Clock, front: &mut Front, told: &mut dyn FnMut(StepEnd), progress: &Progress, time_ns: u64) {
    // For slots it does not.
    if let Front::Items(feed) = front {
        clock.pass(time_ns, &mut Fed { feed, told, progress });
    }
}

/// What follows a clock: the packets that it believes, and the ends of steps.
pub(super) trait Take {
    /// The next packet; `end` is set if a step has ended before it.
    fn take(&mut self, dispatcher: &mut Dispatcher, record: &Record<'_>, end: Option<StepEnd>);

    /// A step has ended, though no packet came.
    fn pass(&mut self, end: StepEnd);
}

/// The Dispatcher, and what the ends of steps need of it.
pub(super) struct Clock {
    pub(super) dispatcher: Dispatcher,
    /// The packet that waits until its time is believed.
    held: Option<Held>,
    /// The seconds between two snapshots.
    every: u64,
    /// The step from which one is due.
    next: u64,
}

/// A record of its own.
struct Held {
    time_ns: u64,
    wire_len: u32,
    link: LinkType,
    data: Vec<u8>,
}

impl Clock {
    /// Gives a record to `taker`, behind the one that waits; or lets it wait.
    #[inline(always)]
    pub(super) fn offer(&mut self, record: &Record<'_>, taker: &mut impl Take) {
        if self.held.is_some() {
            self.release(record.time_ns, taker);
        }
        let steps = self.dispatcher.steps();
        let begun_ns = steps.begun_ns();
        if !steps.packet(record.time_ns) {
            return self.hold(record);
        }
        let end = self.end_since(begun_ns);
        taker.take(&mut self.dispatcher, record, end);
    }

    #[cold]
    fn hold(&mut self, record: &Record<'_>) {
        let Record { time_ns, wire_len, link, data } = *record;
        self.held = Some(Held { time_ns, wire_len, link, data: data.to_vec() });
    }

    /// Takes the packet that waits, before one of this time.
    #[cold]
    #[inline(never)]
    fn release(&mut self, next_ns: u64, taker: &mut impl Take) {
        let Some(Held { time_ns, wire_len, link, data }) = self.held.take() else { return };
        let begun_ns = self.dispatcher.begun_ns();
        self.dispatcher.steps().settle(next_ns);
        let end = self.end_since(begun_ns);
        taker.take(&mut self.dispatcher, &Record { time_ns, wire_len, link, data: &data }, end);
    }

    /// No packet before this time follows. Says whether something was given to `taker`.
    fn pass(&mut self, time_ns: u64, taker: &mut impl Take) -> bool {
        let is_believed = self.held.as_ref().is_some_and(|held| held.time_ns <= time_ns);
        if is_believed {
            self.release(time_ns, taker);
        }
        let begun_ns = self.dispatcher.begun_ns();
        self.dispatcher.steps().pass(time_ns);
        let end = self.end_since(begun_ns);
        let has_passed = end.is_some();
        end.into_iter().for_each(|end| taker.pass(end));
        is_believed || has_passed
    }

    /// No packet follows.
    fn finish(&mut self, taker: &mut impl Take) {
        self.release(u64::MAX, taker);
    }

    #[inline(always)]
    fn end_since(&mut self, begun_ns: u64) -> Option<StepEnd> {
        (self.dispatcher.begun_ns() != begun_ns).then(|| self.end())
    }

    #[cold]
    fn end(&mut self) -> StepEnd {
        let begun_ns = self.dispatcher.begun_ns();
        let is_due = step_of(begun_ns) >= self.next;
        if is_due {
            self.next = (step_of(begun_ns) / self.every + 1).saturating_mul(self.every);
        }
        let snapshot = is_due.then(|| Box::new(self.dispatcher.clone()));
        let lent = self.dispatcher.lend();
        StepEnd { number: self.dispatcher.packets() + 1, begun_ns, snapshot, lent }
    }
}

/// Runs the second stage until its queue is drained.
fn application(
    mut stage: Stage<'_>,
    mut inlet: Consumer<Item>,
    mut sender: Producer<Harvest>,
    end: &dyn Fn() -> (u64, u64),
) -> Numbers {
    let mut items = Vec::with_capacity(BATCH);
    let mut sent = 0;
    let out = &mut into(&mut sender);
    while let Ok(popped) = inlet.pop_batch(&mut items, BATCH) {
        stage.follow(&mut items, out);
        sent += popped;
        // Sends now and then, and when there is nothing else to do.
        if (sent >= 4 * BATCH || inlet.is_empty()) && stage.has_news() {
            stage.send(out);
            sent = 0;
        }
    }
    let (packets, max_time) = end();
    stage.finish(packets, max_time, out)
}

/// Sends harvests into a queue. If it is closed the output stage has panicked, and the panic surfaces where it is
/// joined.
fn into(queue: &mut Producer<Harvest>) -> impl FnMut(Harvest) {
    |harvest| drop(queue.push(harvest))
}

#[cfg(test)]
mod tests {
    use super::super::tap::READ;
    use super::*;
    use corelane_net::capture::{ReadError, Reader};
    use corelane_net::synth::{self, Config};

    /// A capture whose reads are counted. The third read drops `ends`, as a stage that panics does.
    struct Failing<'a, E> {
        reader: Reader,
        reads: &'a mut u32,
        ends: Option<E>,
    }

    impl<E> Source for Failing<'_, E> {
        type Error = ReadError;

        fn read(&mut self, max: usize, sink: impl FnMut(Record<'_>)) -> Result<usize, ReadError> {
            *self.reads += 1;
            if *self.reads == 3 {
                self.ends = None;
            }
            self.reader.read(max, sink)
        }
    }

    #[test]
    fn the_dispatcher_stops_when_another_stage_has_panicked() {
        let capture = synth::capture(Config { packets: 10 * READ as u64, ..Config::default() }).unwrap();
        for (sub_panics, main_panics, expected) in [(true, false, 3), (false, true, 3), (false, false, 11)] {
            let (outlet, inlet) = share::ends(spsc::channel(100_000)).unwrap();
            let (harvests, harvests_in) = spsc::channel(64);
            let (settings, run, plan) = (&Settings::default(), Run::new(), &Plan::default());
            let shares = Shares::new(Sharing::Fixed, settings, &run, vec![outlet]);
            let (failing_sub, _sub) = if sub_panics { (Some(inlet), None) } else { (None, Some(inlet)) };
            let (failing_main, _main) = if main_panics { (Some(harvests_in), None) } else { (None, Some(harvests_in)) };
            let mut reads = 0;
            let reader = Reader::from_bytes(capture.clone()).unwrap();
            let source = Failing { reader, reads: &mut reads, ends: Some((failing_sub, failing_main)) };
            let inspection = &Inspection { payload: false, ..Inspection::default() };
            let stages = Stages { settings, continuous: None, inspection, plan, pins: &Pins::new(&[]).unwrap() };
            let (mut front, broken) = (Front::Slots(Box::new(shares), harvests), AtomicBool::new(false));
            let ring = ring([source], &|_, error| panic!("{error}"));
            stages.dispatch(ring, &run, &mut front, &mut |_| {}, &Progress::new(), &broken);
            assert_eq!(reads, expected, "{sub_panics} {main_panics}");
        }
    }
}
