//! Tasks from any number of threads to a pool of threads, and the cost of a pool that has no task.

use super::handoff::busy;
use super::reading::{Outcome, Reading};
use crate::contenders::Unable;
use crate::raw::ticks;
use crate::rig::{self, Side, Stop, Work, tick_rate};
use crate::setting::Setting;
use crate::topology::{Cpu, cpus};
use cpu_time::ProcessTime;
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread::{self, Thread};
use std::time::Duration;

/// Tasks of each submitter before the clock starts.
const WARM: u64 = 64;
/// The most tasks a sample runs: a pool without a bound holds everything that its threads have not run yet.
const MOST: u64 = 1_000_000;

/// How many tasks of one submitter are not done, and the thread that waits for them.
#[derive(Debug)]
#[repr(align(128))]
struct Pending {
    tasks: AtomicU64,
    submitter: Thread,
}

impl Pending {
    /// Makes the state of the calling thread. It is never freed: a task may outlive a measurement that was given up,
    /// and reference counts would add their cost to every task.
    fn new() -> &'static Self {
        Box::leak(Box::new(Self { tasks: AtomicU64::new(0), submitter: thread::current() }))
    }

    #[inline(always)]
    fn is_done(&self) {
        if self.tasks.fetch_sub(1, Release) == 1 {
            self.submitter.unpark();
        }
    }

    /// Sleeps until all tasks are done.
    fn wait(&self, side: &Side) -> Result<(), Stop> {
        loop {
            let left = self.tasks.load(Acquire);
            if left == 0 {
                return Ok(());
            }
            thread::park_timeout(Duration::from_millis(20));
            side.stuck(left)?;
        }
    }
}

/// The process's CPU time when a thread started its clock, and when it stopped it.
type Span = Range<Duration>;

/// A task: some work, and that it is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pending: &'static Pending,
    ticks: u64,
}

impl Task {
    #[inline(always)]
    pub(crate) fn run(self) {
        if self.ticks > 0 && self.ticks != MEETS {
            let start = ticks();
            while ticks().wrapping_sub(start) < self.ticks {
                spin_loop();
            }
        }
        self.pending.is_done();
        while self.ticks == MEETS && self.pending.tasks.load(Acquire) > 0 {
            thread::yield_now();
        }
    }
}

/// The work of a task that ends when all tasks of its submitter run.
const MEETS: u64 = u64::MAX;

/// Runs tasks of about `nanoseconds` of work each. `submitters` threads hand them in as fast as they can. The
/// measurement ends when all tasks have run; each task counts itself as done. CPU time is that of the process, because
/// the pool's threads do most of the work.
pub(crate) fn tasks<P: Send + Sync + 'static>(
    start: impl Fn(usize) -> Result<P, Unable>,
    execute: impl Fn(&P, Task) -> bool + Copy + Send + 'static,
    setting: &Setting,
    submitters: usize,
    nanoseconds: u64,
) -> Outcome {
    let pool = Arc::new(start(cpus().len().max(1))?);
    let each = setting.count_up_to(MOST).div_ceil(submitters as u64);
    let work_ticks = (nanoseconds as f64 * tick_rate() / 1e9) as u64;
    let mut work: Vec<(Option<Cpu>, Work<Span>)> = Vec::new();
    for submitter in 0..submitters {
        let pool = pool.clone();
        let submit: Work<Span> = Box::new(move |side| {
            let pool = &*pool;
            let task = Task { pending: Pending::new(), ticks: work_ticks };
            let execute = |task| execute(pool, task);
            submit(execute, task, WARM, side)?;
            side.start()?;
            let start = ProcessTime::now().as_duration();
            submit(execute, task, each, side)?;
            let stop = ProcessTime::now().as_duration();
            side.stop();
            Ok(start..stop)
        });
        work.push((setting.cpus[submitter % 2], submit));
    }
    let (spans, took) = rig::run(setting, work)?;
    let start = spans.iter().map(|span| span.start).min().unwrap_or_default();
    let stop = spans.iter().map(|span| span.end).max().unwrap_or_default();
    Ok(Reading { cpu: stop - start, ..Reading::new(each * submitters as u64, took) })
}

#[inline(always)]
fn submit(execute: impl Fn(Task) -> bool, task: Task, count: u64, side: &Side) -> Result<(), Stop> {
    task.pending.tasks.store(count, Relaxed);
    for _ in 0..count {
        if !execute(task) {
            return Err(Stop::Elsewhere);
        }
    }
    task.pending.wait(side)
}

/// Starts `threads` threads of a pool by as many tasks that wait for each other. Then leaves the pool alone, for as
/// many milliseconds as the setting says. The value is the share of one core that it uses in this time, in percent.
pub(crate) fn idle_pool<P: Send + 'static>(
    pool: P,
    execute: impl Fn(&P, Task) -> bool + Send + 'static,
    setting: &Setting,
    threads: usize,
) -> Outcome {
    let count = if setting.quick { 1 } else { setting.count };
    let wait: Work<f64> = Box::new(move |side| {
        let task = Task { pending: Pending::new(), ticks: MEETS };
        submit(|task| execute(&pool, task), task, threads as u64, side)?;
        side.start()?;
        let percent = busy(Duration::from_millis(count));
        side.stop();
        Ok(percent)
    });
    let (percents, took) = rig::run(setting, vec![(setting.cpus[0], wait)])?;
    Ok(Reading { values: percents, ..Reading::new(count, took) })
}
