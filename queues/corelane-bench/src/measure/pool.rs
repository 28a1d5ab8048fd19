//! Tasks from any number of threads to a pool of threads, and the cost of a pool that has no task.

use super::handoff::busy;
use super::reading::{Outcome, Reading};
use crate::contender::Pool;
use crate::raw::ticks;
use crate::rig::{self, Side, Stop, Work, tick_rate};
use crate::setting::Setting;
use crate::topology::{Cpu, cpus};
use cpu_time::ProcessTime;
use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Barrier};
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

/// Runs tasks of about `nanoseconds` of work each. `submitters` threads hand them in as fast as they can. The
/// measurement ends when all tasks have run; each task counts itself as done. CPU time is that of the process, because
/// the pool's threads do most of the work.
pub(crate) fn tasks<P: Pool>(setting: &Setting, submitters: usize, nanoseconds: u64) -> Outcome {
    let pool = Arc::new(P::start(cpus().len().max(1))?);
    let each = setting.count_up_to(MOST).div_ceil(submitters as u64);
    let work_ticks = (nanoseconds as f64 * tick_rate() / 1e9) as u64;
    let mut work: Vec<(Option<Cpu>, Work<Span>)> = Vec::new();
    for submitter in 0..submitters {
        let pool = pool.clone();
        let submit: Work<Span> = Box::new(move |side| {
            let pool = &*pool;
            let pending = Pending::new();
            submit(pool, pending, WARM, work_ticks, side)?;
            side.start()?;
            let start = ProcessTime::now().as_duration();
            submit(pool, pending, each, work_ticks, side)?;
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
fn submit<P: Pool>(pool: &P, pending: &'static Pending, count: u64, work_ticks: u64, side: &Side) -> Result<(), Stop> {
    pending.tasks.store(count, Relaxed);
    for _ in 0..count {
        let task = move || {
            if work_ticks > 0 {
                let start = ticks();
                while ticks().wrapping_sub(start) < work_ticks {
                    spin_loop();
                }
            }
            pending.is_done();
        };
        if !pool.execute(task) {
            return Err(Stop::Elsewhere);
        }
    }
    pending.wait(side)
}

/// Starts `threads` threads of a pool by as many tasks that wait for each other. Then leaves the pool alone, for as
/// many milliseconds as the setting says. The value is the share of one core that it uses in this time, in percent.
pub(crate) fn idle_pool<P: Pool>(setting: &Setting, threads: usize) -> Outcome {
    let pool = P::start(threads)?;
    let count = if setting.quick { 1 } else { setting.count };
    let wait: Work<f64> = Box::new(move |side| {
        let all = Arc::new(Barrier::new(threads + 1));
        for _ in 0..threads {
            let all = all.clone();
            if !pool.execute(move || _ = all.wait()) {
                return Err(Stop::Elsewhere);
            }
        }
        all.wait();
        side.start()?;
        let percent = busy(Duration::from_millis(count));
        side.stop();
        Ok(percent)
    });
    let (percents, took) = rig::run(setting, vec![(setting.cpus[0], wait)])?;
    Ok(Reading { values: percents, ..Reading::new(count, took) })
}
