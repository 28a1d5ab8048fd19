//! The three stages as threads joined by queues: Figure 12 of the MCRingBuffer paper.
//!
//! ```text
//!                 slots            state reports
//!              ┌─ queue ─▶ SubAnalyzer 0 ─ queue ─┐
//! Dispatcher ──┼─ queue ─▶ SubAnalyzer 1 ─ queue ─┼─▶ MainAnalyzer
//!              └─ queue ─▶ SubAnalyzer n ─ queue ─┘
//! ```
//!
//! The Dispatcher runs in the calling thread, unless it is pinned.
//!
//! 1. The Dispatcher closes its queues when the capture ends.
//! 2. A SubAnalyzer that has drained its queue finishes, sends its last state reports and closes its own.
//! 3. The MainAnalyzer ends when all of those are drained.
//!
//! A full queue makes only the stage before it wait, so no wait is circular.
//!
//! When the Dispatcher would wait, it analyses some partitions itself and sends state reports of its own: see
//! [`share`](crate::share).

use crate::dispatch::Dispatcher;
use crate::main_analyzer::MainAnalyzer;
use crate::partial_result::PartialResult;
use crate::report::Report;
use crate::run::Run;
use crate::settings::Settings;
use crate::share::{self, REPORTS, Shares, Sharing, sub_analysis};
use crate::slot::PARTITIONS;
use crate::source::{Progress, Source};
use crate::state_report::StateReport;
use core_affinity::CoreId;
use corelane::error::{ChannelError, TryPopError};
use corelane::spsc::{self, Consumer};
use corelane::wait::Select;
use std::collections::HashSet;
use std::fmt;
use std::sync::OnceLock;
use std::thread;

/// The number of stages and their CPUs. The report does not depend on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of SubAnalyzers; with 0 one thread does everything, without queues.
    pub analyzers: usize,
    /// The CPUs to which the stages are pinned: Dispatcher, SubAnalyzers, MainAnalyzer, in this order. The list starts
    /// over when it is used up. An empty list leaves the stages to the kernel.
    pub cpus: Vec<usize>,
    /// For tests: the capacity of each queue, in slots or in state reports.
    #[doc(hidden)]
    pub capacity: usize,
    /// For tests: partitions move to and fro all the time, whatever the load.
    #[doc(hidden)]
    pub restless: bool,
}

impl Plan {
    /// The most SubAnalyzers, since each owns at least one partition.
    pub const MOST_ANALYZERS: usize = PARTITIONS;
    /// The capacity of a queue in slots: a quarter of a megabyte, which both cores keep at hand. With 2,000 slots the
    /// Dispatcher sleeps more often, and each wake-up is a system call of the SubAnalyzer.
    pub(crate) const CAPACITY: usize = 8192;

    /// The fastest number of SubAnalyzers. If payload is inspected ([`inspect`](crate::inspect)) it is one for every
    /// CPU, since the Dispatcher then needs little of its CPU. Otherwise it is one for every CPU but one, and at least
    /// one, since the Dispatcher needs about half of its CPU and analyses in the rest.
    pub fn fastest_analyzers(payload: bool) -> usize {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let reading = if payload { 0 } else { 1 };
        (cpus - reading).clamp(1, Plan::MOST_ANALYZERS)
    }
}

impl Default for Plan {
    /// The plan for [`run`](crate::run), which inspects no payload.
    fn default() -> Self {
        Plan { analyzers: Plan::fastest_analyzers(false), cpus: Vec::new(), capacity: Plan::CAPACITY, restless: false }
    }
}

impl Plan {
    /// Checks the number of SubAnalyzers and the CPUs.
    ///
    /// # Errors
    /// If the plan cannot be carried out.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.analyzers > Plan::MOST_ANALYZERS {
            return Err(PlanError::TooManyAnalyzers);
        }
        Pins::new(&self.cpus).map(drop)
    }

    /// Whether and how partitions move: not without a CPU for each stage that analyses.
    fn sharing(&self) -> Sharing {
        let cpus = match self.cpus.len() {
            0 => thread::available_parallelism().map_or(1, usize::from),
            // The CPUs of the Dispatcher and the SubAnalyzers; the MainAnalyzer has little to do.
            _ => self.cpus.iter().cycle().take(1 + self.analyzers).collect::<HashSet<_>>().len(),
        };
        if self.restless {
            Sharing::Restless
        } else if cpus <= self.analyzers {
            Sharing::Fixed
        } else {
            Sharing::Even
        }
    }
}

/// Why a plan cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// More SubAnalyzers than partitions.
    TooManyAnalyzers,
    /// A queue that cannot be made.
    Queue(ChannelError),
    /// A CPU that this process may not run on.
    NoSuchCpu(usize),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::TooManyAnalyzers => write!(f, "the plan has too many analyzers: give at most {PARTITIONS}"),
            PlanError::Queue(error) => error.fmt(f),
            PlanError::NoSuchCpu(cpu) => {
                write!(f, "CPU {cpu} is not there or not allowed for this process; choose another")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// Analyses the records of all sources, as one capture in this order.
///
/// Returns early, with the results so far, when `progress` says stop. `damage` gets each error and the number of the
/// source it is in; the report covers everything that was whole. Sources are read in the calling thread unless the plan
/// names CPUs. The calling thread itself is never pinned.
///
/// # Errors
/// If the plan cannot be carried out; then nothing was read.
///
/// # Panics
/// If a stage panics, with its panic.
pub fn run<S: Source>(
    sources: impl IntoIterator<Item = S> + Send,
    settings: &Settings,
    plan: &Plan,
    progress: &Progress,
    mut damage: impl FnMut(usize, S::Error) + Send,
) -> Result<Report, PlanError> {
    plan.check()?;
    let pins = &Pins::new(&plan.cpus)?;
    let stages = Stages { settings, plan, pins };
    let damage: Damage<'_, S> = &mut damage;
    if plan.cpus.is_empty() {
        return stages.start(sources, progress, damage);
    }
    // The pinned thread ends with the run: the caller's thread stays unpinned, and so do threads that it starts later.
    thread::scope(|scope| {
        let dispatcher = move || {
            pins.pin(0);
            stages.start(sources, progress, damage)
        };
        join(spawn(scope, "dispatcher", dispatcher))
    })
}

/// The CPUs of the stages.
pub(crate) struct Pins(Vec<CoreId>);

impl Pins {
    /// None: the kernel places the stages.
    pub(crate) fn none() -> Self {
        Pins(Vec::new())
    }

    pub(crate) fn new(cpus: &[usize]) -> Result<Self, PlanError> {
        if cpus.is_empty() {
            return Ok(Pins(Vec::new()));
        }
        let all = core_affinity::get_core_ids().unwrap_or_default();
        let find = |&cpu| all.iter().find(|core| core.id == cpu).copied().ok_or(PlanError::NoSuchCpu(cpu));
        Ok(Pins(cpus.iter().map(find).collect::<Result<_, _>>()?))
    }

    /// Pins the calling thread, stage number `stage`.
    pub(crate) fn pin(&self, stage: usize) {
        if !self.0.is_empty() {
            core_affinity::set_for_current(self.0[stage % self.0.len()]);
        }
    }
}

#[derive(Clone, Copy)]
struct Stages<'a> {
    settings: &'a Settings,
    plan: &'a Plan,
    pins: &'a Pins,
}

impl Stages<'_> {
    /// Runs in the Dispatcher's thread.
    fn start<S: Source>(
        self,
        sources: impl IntoIterator<Item = S>,
        progress: &Progress,
        damage: Damage<'_, S>,
    ) -> Result<Report, PlanError> {
        if self.plan.analyzers == 0 {
            return Ok(crate::inspect::scans_alone(sources, self.settings, progress, damage));
        }
        let analyzers = self.plan.analyzers;
        let mut slot_ends = Vec::with_capacity(analyzers);
        let mut report_ends = Vec::with_capacity(analyzers + 1);
        for _ in 0..analyzers {
            let ends = spsc::try_channel(self.plan.capacity);
            slot_ends.push(ends.and_then(share::ends).map_err(PlanError::Queue)?);
        }
        // The last pair is the Dispatcher's.
        for _ in 0..=analyzers {
            report_ends.push(spsc::try_channel(self.plan.capacity).map_err(PlanError::Queue)?);
        }
        let (outlets, inlets): (Vec<_>, Vec<_>) = slot_ends.into_iter().unzip();
        let (mut report_producers, report_consumers): (Vec<_>, Vec<_>) = report_ends.into_iter().unzip();
        let own_reports = report_producers.pop().expect("one more than SubAnalyzers");
        let run = &Run::new();
        // The Dispatcher sets it before it closes its queues; SubAnalyzers read it after they found the queues closed.
        let max_time = &OnceLock::new();
        Ok(thread::scope(|scope| {
            let subs: Vec<_> = inlets
                .into_iter()
                .zip(report_producers)
                .enumerate()
                .map(|(number, (inlet, reports))| {
                    let body = move || {
                        self.pins.pin(1 + number);
                        sub_analysis(self.settings, run, inlet, reports, || max_time.get().copied().unwrap_or(0))
                    };
                    spawn(scope, &format!("analyzer {number}"), body)
                })
                .collect();
            let main = spawn(scope, "main analyzer", move || {
                self.pins.pin(1 + analyzers);
                main_analysis(self.settings, report_consumers)
            });
            let sharing = self.plan.sharing();
            let shares = Shares::new(sharing, self.settings, run, outlets, own_reports);
            let dispatcher = Dispatcher::new(run, self.settings);
            let (dispatcher, own) = dispatch(sources, dispatcher, shares, sharing.read(), progress, damage, |time| {
                let _ = max_time.set(time);
            });
            let results: Vec<PartialResult> = subs.into_iter().map(join).collect();
            let mut main = join(main);
            for result in results {
                main.partial_result(result);
            }
            main.dispatchers_result(own);
            main.finish(&dispatcher)
        }))
    }
}

/// What gets the errors of sources, with their numbers. Nothing that gets it is compiled for its type.
pub(crate) type Damage<'a, S> = &'a mut (dyn FnMut(usize, <S as Source>::Error) + Send);

pub(crate) fn spawn<'scope, T: Send + 'scope>(
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
pub(crate) fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs the first stage. Gives `ended` the largest time before the queues are closed.
fn dispatch<S: Source>(
    sources: impl IntoIterator<Item = S>,
    mut dispatcher: Dispatcher,
    mut shares: Shares,
    read: usize,
    progress: &Progress,
    damage: Damage<'_, S>,
    ended: impl FnOnce(u64),
) -> (Dispatcher, PartialResult) {
    'sources: for (number, mut source) in sources.into_iter().enumerate() {
        loop {
            if progress.is_stopped() || shares.is_broken() {
                break 'sources;
            }
            let read = source.read(read, |record| {
                dispatcher.record(&record, |partition, slot| shares.push(partition, slot));
            });
            shares.after_read(read.as_ref().map_or(0, |&records| records));
            match read {
                Ok(0) => break,
                Ok(_) => progress.set(dispatcher.packets(), dispatcher.bytes()),
                Err(error) => damage(number, error),
            }
        }
    }
    ended(dispatcher.max_time());
    let own = shares.finish(dispatcher.max_time());
    (dispatcher, own)
}

/// Runs the third stage until all queues are drained: takes state reports from one after the other.
fn main_analysis(settings: &Settings, queues: Vec<Consumer<StateReport>>) -> MainAnalyzer {
    let mut main = MainAnalyzer::new(settings);
    let mut batch = [StateReport::default(); REPORTS];
    let mut select = Select::new();
    let mut queues: Vec<_> = queues.into_iter().map(|queue| select.add(queue)).collect();
    while select.wait().is_some() {
        queues.retain(|&queue| {
            let popped = select[queue].try_pop_slice(&mut batch);
            batch[..popped.unwrap_or(0)].iter().for_each(|&report| main.state_report(report));
            if popped == Err(TryPopError::Closed) {
                select.remove(queue);
            }
            popped != Err(TryPopError::Closed)
        });
    }
    main
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelane_net::capture::{ReadError, Reader, Record};
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
        let capture = synth::capture(Config { packets: 10_000, ..Config::default() }).unwrap();
        for (sub_panics, main_panics, expected) in [(true, false, 3), (false, true, 3), (false, false, 11)] {
            let (outlet, inlet) = share::ends(spsc::channel(100_000)).unwrap();
            let (reports, reports_in) = spsc::channel(64);
            let (settings, run) = (Settings::default(), Run::new());
            let shares = Shares::new(Sharing::Fixed, &settings, &run, vec![outlet], reports);
            let (failing_sub, _sub) = if sub_panics { (Some(inlet), None) } else { (None, Some(inlet)) };
            let (failing_main, _main) = if main_panics { (Some(reports_in), None) } else { (None, Some(reports_in)) };
            let mut reads = 0;
            let reader = Reader::from_bytes(capture.clone()).unwrap();
            let source = Failing { reader, reads: &mut reads, ends: Some((failing_sub, failing_main)) };
            let dispatcher = Dispatcher::new(&run, &settings);
            dispatch([source], dispatcher, shares, 1_000, &Progress::new(), &mut |_, error| panic!("{error}"), |_| {});
            assert_eq!(reads, expected, "{sub_panics} {main_panics}");
        }
    }

    #[test]
    fn partitions_move_only_if_each_stage_that_analyses_has_a_cpu() {
        let sharing = |analyzers, cpus: &[usize]| Plan { analyzers, cpus: cpus.to_vec(), ..Plan::default() }.sharing();
        for (analyzers, cpus) in [(2, &[0, 1, 2][..]), (2, &[5, 1, 2, 3]), (1, &[0, 1]), (1, &[0, 1, 1])] {
            assert_eq!(sharing(analyzers, cpus), Sharing::Even, "{analyzers} {cpus:?}");
        }
        // The third CPU is the last stage's alone, or no stage's.
        for (analyzers, cpus) in
            [(2, &[0, 0, 1, 2][..]), (1, &[0, 0, 1]), (1, &[3]), (3, &[0, 1, 2]), (1, &[0, 0, 0, 1, 2])]
        {
            assert_eq!(sharing(analyzers, cpus), Sharing::Fixed, "{analyzers} {cpus:?}");
        }
    }
}
