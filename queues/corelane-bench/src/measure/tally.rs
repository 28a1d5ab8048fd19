//! The records of threads that hand out or do jobs: which jobs, and CPU time.

use super::jobs::Job;
use crate::rig::Stop;
use corelane::mpmc::Stats;
use cpu_time::ThreadTime;
use std::hint::black_box;
use std::time::Duration;

/// Jobs that were handed out or done, by their count and the sum of their numbers. A lost or repeated job changes both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    jobs: u64,
    sum: u64,
}

impl Tally {
    #[inline(always)]
    pub(super) fn add(&mut self, job: Job) {
        self.jobs += 1;
        self.sum += u64::from(job.number);
    }

    /// The tally of one job of each number below `jobs`.
    pub(super) fn of_numbers(jobs: u32) -> Self {
        let jobs = u64::from(jobs);
        Tally { jobs, sum: jobs * jobs.saturating_sub(1) / 2 }
    }

    pub(super) fn jobs(self) -> u64 {
        self.jobs
    }

    fn plus(self, other: Tally) -> Tally {
        Tally { jobs: self.jobs + other.jobs, sum: self.sum + other.sum }
    }

    /// Whether the workers have done exactly the jobs that were handed out.
    pub(super) fn check(self, done: impl IntoIterator<Item = Tally>) -> Result<(), Stop> {
        let done = done.into_iter().fold(Tally::default(), Tally::plus);
        if self.jobs != done.jobs {
            return Err(Stop::WrongCount { put: self.jobs, taken: done.jobs });
        }
        if self.sum != done.sum {
            return Err(Stop::WrongSum { put: self.sum, taken: done.sum });
        }
        Ok(())
    }
}

/// What a worker does with its jobs.
#[derive(Default)]
pub(crate) struct Jobs<'a> {
    pub(super) tally: Tally,
    /// What comes after each job.
    pub(super) after: Option<&'a mut dyn FnMut(Job)>,
}

impl Jobs<'_> {
    #[inline(always)]
    pub(crate) fn does(&mut self, job: Job) {
        job.run();
        self.tally.add(job);
        if let Some(after) = &mut self.after {
            after(job);
        }
    }
}

/// A thread's share of a measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) tally: Tally,
    /// CPU time inside the queues' calls.
    pub(super) inside: Duration,
    /// The counts of a worker's queue.
    pub(super) stats: Stats,
}

/// Adds up the calling thread's CPU time in calls, minus the cost of the clock itself.
#[derive(Debug)]
pub(crate) struct Clock {
    a_look: Duration,
    looks: u32,
    pub(super) sum: Duration,
}

impl Clock {
    pub(super) fn new() -> Self {
        let start = ThreadTime::now();
        let looks = 64;
        (0..looks).for_each(|_| _ = ThreadTime::now());
        Self { a_look: start.elapsed() / (looks + 1), looks: 0, sum: Duration::ZERO }
    }

    #[inline(always)]
    pub(crate) fn time<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let start = ThreadTime::now();
        let result = call();
        self.sum += start.elapsed().saturating_sub(self.a_look);
        self.looks += 1;
        result
    }

    /// The cost of the clock itself.
    pub(super) fn cost(&self) -> Duration {
        self.a_look * 2 * self.looks
    }
}

/// The CPU time, in seconds, that a job of this many turns takes when it comes through no queue.
pub(super) fn cpu_of_a_job(turns: u32) -> f64 {
    const JOBS: u32 = 10_000;
    let run = || {
        let mut jobs = Jobs::default();
        (0..JOBS).for_each(|number| jobs.does(black_box(Job { turns, number })));
        black_box(jobs.tally);
    };
    run();
    let start = ThreadTime::now();
    run();
    start.elapsed().as_secs_f64() / f64::from(JOBS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    fn spin(time: Duration) {
        let start = ThreadTime::now();
        while start.elapsed() < time {}
    }

    #[test]
    fn the_clock_counts_work_and_no_sleep() {
        let mut clock = Clock::new();
        // Each call is measured once more, because a thread may be charged for time it did not use.
        let start = ThreadTime::now();
        clock.time(|| spin(Duration::from_millis(3)));
        let work = start.elapsed();
        spin(Duration::from_millis(3));
        let start = ThreadTime::now();
        clock.time(|| sleep(Duration::from_millis(3)));
        let most = work + start.elapsed();
        assert!((Duration::from_micros(2900)..=most).contains(&clock.sum), "{:?} of {most:?}", clock.sum);
        assert!(clock.cost() < Duration::from_millis(1));
    }

    #[test]
    fn longer_jobs_take_longer() {
        let least = |turns| (0..5).map(|_| cpu_of_a_job(turns)).fold(f64::INFINITY, f64::min);
        let (short, long) = (least(1), least(1000));
        assert!(short > 0.0 && long > 10.0 * short, "{short} {long}");
    }
}
