//! Jobs from one dispatcher to several workers: how long they take, how often the queues are tried, and the CPU time of
//! these calls.

use super::reading::{Failure, Outcome, Reading};
use super::tally::{Clock, Jobs, Part, Tally, cpu_of_a_job};
use crate::contenders::jobs::Dispatch;
use crate::rig::{self, Stop, Took, Work};
use crate::setting::Setting;
use crate::topology::Cpu;
use corelane::mpmc::Stats;
use cpu_time::ThreadTime;
use std::hint::black_box;
use std::time::Duration;
use values::*;

/// A job of the paper on batch queues: a loop of `turns` turns. Its number identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) turns: u32,
    pub(crate) number: u32,
}

impl Job {
    /// Does the job. All contenders share this one function for the loop, so that its compilation in one of them does
    /// not change the result. An empty job does not call it.
    #[inline(always)]
    pub(super) fn run(self) {
        #[inline(never)]
        fn take_turns(turns: u32) {
            for turn in 0..turns {
                black_box(turn);
            }
        }
        if self.turns != 0 {
            take_turns(self.turns);
        }
    }
}

/// How jobs get from a dispatcher to its workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// Each worker has a queue, and the batches go to the workers in turn. Otherwise all share one queue.
    pub(crate) per_worker: bool,
    /// A batch is put and taken by one call. Otherwise jobs are put and taken one by one.
    pub(crate) batched: bool,
    /// Jobs in a batch.
    pub(crate) batch: usize,
}

/// The positions of the values of attempts.
pub(crate) mod values {
    pub(crate) const ATTEMPTS: usize = 0;
    pub(crate) const ENQUEUE: usize = 1;
    pub(crate) const ENQUEUE_FAILED: usize = 2;
    pub(crate) const DEQUEUE: usize = 3;
    pub(crate) const DEQUEUE_FAILED: usize = 4;
    pub(crate) const ENQUEUE_CPU: usize = 5;
    pub(crate) const DEQUEUE_CPU: usize = 6;
}

/// Counts of the queues, and CPU time in microseconds. The parts are the dispatcher's and then its workers'.
pub(super) fn count_up(parts: &[Part]) -> Vec<f64> {
    let sum = |count: fn(&Stats) -> u64| parts.iter().map(|part| count(&part.stats)).sum::<u64>() as f64;
    let (push, pop) = (sum(|stats| stats.push.attempts), sum(|stats| stats.pop.attempts));
    let inside = |parts: &[Part]| parts.iter().map(|part| part.inside.as_secs_f64()).sum::<f64>() * 1e6;
    let mut values = vec![0.0; DEQUEUE_CPU + 1];
    values[ATTEMPTS] = push + pop;
    values[ENQUEUE] = push;
    values[ENQUEUE_FAILED] = sum(|stats| stats.push.failures);
    values[DEQUEUE] = pop;
    values[DEQUEUE_FAILED] = sum(|stats| stats.pop.failures);
    values[ENQUEUE_CPU] = inside(&parts[..1]);
    values[DEQUEUE_CPU] = inside(&parts[1..]);
    values
}

/// Hands out batches of jobs, each of `turns` turns, as fast as the workers take them. The measurement ends when all
/// jobs have been done. It checks that no job is lost and none comes twice.
pub(crate) fn dispatch(
    setting: &Setting,
    queue: &Dispatch,
    arrangement: Arrangement,
    workers: usize,
    turns: u32,
) -> Outcome {
    let jobs = setting.count_up_to(queue.most).next_multiple_of(arrangement.batch as u64);
    let (_, took) = run(setting, queue, arrangement, workers, [jobs as u32, turns], false)?;
    Ok(Reading::new(jobs, took))
}

/// The counts and the CPU time of a fixed number of batches, whatever time they take. The arrangement needs a queue for
/// each worker: the counts of one shared queue would be added up for each of them.
pub(crate) fn attempts(
    setting: &Setting,
    queue: &Dispatch,
    arrangement: Arrangement,
    workers: usize,
    [batches, turns]: [u32; 2],
) -> Outcome {
    /// How many batches a quick run hands out.
    const QUICK_BATCHES: u32 = 6;
    assert!(arrangement.per_worker);
    let jobs = if setting.quick { QUICK_BATCHES } else { batches } * arrangement.batch as u32;
    let (parts, took) = run(setting, queue, arrangement, workers, [jobs, turns], true)?;
    Ok(Reading { values: count_up(&parts), ..Reading::new(jobs.into(), took) })
}

fn run(
    setting: &Setting,
    queue: &Dispatch,
    arrangement: Arrangement,
    workers: usize,
    [jobs, turns]: [u32; 2],
    is_timed: bool,
) -> Result<(Vec<Part>, Took), Failure> {
    let (dispatcher, workers) = (queue.start)(arrangement, workers)?;
    let batch = arrangement.batch as u32;
    let mut work: Vec<(Option<Cpu>, Work<Part>)> = Vec::new();
    let hand_out: Work<Part> = Box::new(move |side| {
        let mut clock = is_timed.then(Clock::new);
        let mut first = 0;
        side.start()?;
        let fill = &mut |jobs_of_batch: &mut Vec<Job>| {
            let last = jobs.min(first + batch);
            jobs_of_batch.extend((first..last).map(|number| Job { turns, number }));
            first = last;
            !jobs_of_batch.is_empty()
        };
        if !dispatcher.hand_out(fill, clock.as_mut()) {
            return Err(Stop::Elsewhere);
        }
        side.stop();
        let inside = clock.map_or(Duration::ZERO, |clock| clock.sum);
        Ok(Part { tally: Tally::of_numbers(jobs), inside, ..Part::default() })
    });
    work.push((setting.cpus[0], hand_out));
    for worker in workers {
        let work_on: Work<Part> = Box::new(move |side| {
            let a_job = if is_timed { cpu_of_a_job(turns) } else { 0.0 };
            let mut jobs = Jobs::default();
            side.start()?;
            let start = ThreadTime::now();
            let stats = worker.work(&mut jobs);
            let cpu = start.elapsed();
            side.stop();
            let tally = jobs.tally;
            let inside = cpu.saturating_sub(Duration::from_secs_f64(a_job * tally.jobs() as f64));
            Ok(Part { tally, inside, stats })
        });
        work.push((setting.cpus[1], work_on));
    }
    let (parts, took) = rig::run(setting, work)?;
    parts[0].tally.check(parts[1..].iter().map(|part| part.tally))?;
    Ok((parts, took))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::jobs::{Dispatcher, channels, counting, lanes_adapt, lanes_yield, queues, rtrb_by_hand};
    use std::rc::Rc;

    const SETTING: Setting =
        Setting { cpus: [None; 2], bound: Duration::from_secs(1), count: 1001, counting: false, quick: false };
    const SINGLE: Arrangement = Arrangement { per_worker: true, batched: false, batch: 50 };

    /// A dispatcher that does this to each batch.
    struct Bad(Box<dyn Dispatcher>, fn(&mut Vec<Job>));

    impl Dispatcher for Bad {
        fn hand_out(self: Box<Self>, next: &mut dyn FnMut(&mut Vec<Job>) -> bool, clock: Option<&mut Clock>) -> bool {
            let Bad(dispatcher, mischief) = *self;
            let next = &mut |batch: &mut Vec<Job>| {
                let more = next(batch);
                mischief(batch);
                more
            };
            dispatcher.hand_out(next, clock)
        }
    }

    fn bad(mischief: fn(&mut Vec<Job>)) -> Dispatch {
        let good = lanes_yield();
        let start = good.start.clone();
        Dispatch {
            start: Rc::new(move |arrangement, workers| {
                let (dispatcher, workers) = start(arrangement, workers)?;
                Ok((Box::new(Bad(dispatcher, mischief)), workers))
            }),
            ..good
        }
    }

    #[test]
    fn a_job_that_is_lost_or_another_is_noticed() {
        let outcome = |mischief| dispatch(&SETTING, &bad(mischief), SINGLE, 3, 0);
        let lost = outcome(|batch| batch.retain(|job| job.number != 777));
        assert!(matches!(lost, Err(Failure::Stop(Stop::WrongCount { put: 1050, taken: 1049 }))), "{lost:?}");
        let other = outcome(|batch| {
            batch.iter_mut().filter(|job| job.number == 777).for_each(|job| job.number = 770);
        });
        assert!(matches!(other, Err(Failure::Stop(Stop::WrongSum { put, taken })) if put == taken + 7), "{other:?}");
    }

    /// More jobs than the queues hold, in whole batches. That each is done once is checked in the measurement.
    #[test]
    fn every_contender_brings_every_job_once() {
        let setting = Setting { count: 20_010, ..SETTING };
        for per_worker in [false, true] {
            for batched in [false, true] {
                let mut all = queues();
                all.extend(channels().into_iter().filter(|_| !batched));
                all.extend([lanes_yield(), lanes_adapt()].into_iter().filter(|_| per_worker));
                all.extend([rtrb_by_hand()].into_iter().filter(|_| per_worker && batched));
                for queue in all {
                    let arrangement = Arrangement { per_worker, batched, batch: 50 };
                    let reading = dispatch(&setting, &queue, arrangement, 3, 2);
                    assert!(reading.is_ok_and(|reading| reading.items == 20_050), "{} {arrangement:?}", queue.names[0]);
                }
            }
        }
    }

    #[test]
    fn every_queue_counts_what_was_tried() {
        for (queue, batched, puts) in counting().iter().flat_map(|it| [(it, false, 2000.0), (it, true, 40.0)]) {
            let arrangement = Arrangement { batched, ..SINGLE };
            let reading = attempts(&SETTING, queue, arrangement, 3, [40, 10]).expect("it comes to its end");
            let (name, values) = (queue.name(batched), reading.values);
            assert_eq!(reading.items, 2000, "{name}");
            // Each batch or job was put once, however many attempts failed. A batch that did not fit was put in parts.
            let put = values[ENQUEUE] - values[ENQUEUE_FAILED];
            assert!(if batched { put >= puts } else { put == puts }, "{name}: {values:?}");
            // Each worker learned at the end that no more jobs come.
            let taken = values[DEQUEUE] - values[DEQUEUE_FAILED];
            assert!(taken >= 1.0 && values[DEQUEUE_FAILED] >= 3.0, "{name}: {values:?}");
            assert_eq!(values[ATTEMPTS], values[ENQUEUE] + values[DEQUEUE], "{name}");
            assert!(values[ENQUEUE_CPU] >= 0.0 && values[DEQUEUE_CPU] >= 0.0, "{name}: {values:?}");
        }
    }
}
