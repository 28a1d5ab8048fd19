//! How often a dispatcher and its workers try to put and to take, and the CPU time of these calls.

use super::client_server::{Clients, serve};
use super::reading::{Outcome, Reading};
use super::tally::{Clock, Part, Tally, cpu_of_a_job};
use crate::contender::{Arrangement, Counted, Job};
use crate::rig::{self, Stop, Work};
use crate::setting::Setting;
use crate::topology::Cpu;
use corelane::mpmc::Stats;
use cpu_time::ThreadTime;
use std::time::Duration;
use values::*;

/// How many batches a quick run hands out.
const QUICK_BATCHES: u64 = 6;

/// The positions of the values in a reading.
pub(crate) mod values {
    pub(crate) const ATTEMPTS: usize = 0;
    pub(crate) const ENQUEUE: usize = 1;
    pub(crate) const ENQUEUE_FAILED: usize = 2;
    pub(crate) const DEQUEUE: usize = 3;
    pub(crate) const DEQUEUE_FAILED: usize = 4;
    pub(crate) const ENQUEUE_CPU: usize = 5;
    pub(crate) const DEQUEUE_CPU: usize = 6;
    pub(super) const COUNT: usize = 7;
}

/// Counts of the queues, and CPU time in microseconds. The parts are the dispatcher's and then its workers'.
fn count_up(parts: &[Part]) -> Vec<f64> {
    let sum = |count: fn(&Stats) -> u64| parts.iter().map(|part| count(&part.stats)).sum::<u64>() as f64;
    let (push, pop) = (sum(|stats| stats.push.attempts), sum(|stats| stats.pop.attempts));
    let mut values = vec![0.0; COUNT];
    values[ATTEMPTS] = push + pop;
    values[ENQUEUE] = push;
    values[ENQUEUE_FAILED] = sum(|stats| stats.push.failures);
    values[DEQUEUE] = pop;
    values[DEQUEUE_FAILED] = sum(|stats| stats.pop.failures);
    values[ENQUEUE_CPU] = parts[0].inside.as_secs_f64() * 1e6;
    values[DEQUEUE_CPU] = parts[1..].iter().map(|part| part.inside.as_secs_f64()).sum::<f64>() * 1e6;
    values
}

/// Hands out a fixed number of batches of jobs, whatever time that takes. The arrangement needs a queue for each
/// worker: the counts of one shared queue would be added up for each of them.
pub(crate) fn attempts<D: Counted>(
    setting: &Setting,
    arrangement: Arrangement,
    workers: usize,
    batches: u64,
    turns: u32,
) -> Outcome {
    assert!(arrangement.per_worker);
    let (dispatcher, workers) = D::start(arrangement, workers)?;
    let batch = arrangement.batch as u32;
    let jobs = if setting.quick { QUICK_BATCHES } else { batches } as u32 * batch;
    let mut work: Vec<(Option<Cpu>, Work<Part>)> = Vec::new();
    let hand_out: Work<Part> = Box::new(move |side| {
        let mut dispatcher = dispatcher;
        let mut jobs_of_batch = Vec::with_capacity(batch as usize);
        let mut clock = Clock::new();
        side.start()?;
        for first in (0..jobs).step_by(batch as usize) {
            jobs_of_batch.extend((first..first + batch).map(|number| Job { turns, number }));
            if !clock.time(|| D::dispatch(&mut dispatcher, &mut jobs_of_batch)) {
                return Err(Stop::Elsewhere);
            }
        }
        drop(dispatcher);
        side.stop();
        Ok(Part { tally: Tally::of_numbers(jobs), inside: clock.sum, ..Part::default() })
    });
    work.push((setting.cpus[0], hand_out));
    for worker in workers {
        let work_on: Work<Part> = Box::new(move |side| {
            let mut worker = worker;
            let a_job = cpu_of_a_job(turns);
            let mut tally = Tally::default();
            side.start()?;
            let start = ThreadTime::now();
            D::work(&mut worker, |job| {
                job.run();
                tally.add(job);
            });
            let cpu = start.elapsed();
            side.stop();
            let inside = cpu.saturating_sub(Duration::from_secs_f64(a_job * tally.jobs() as f64));
            Ok(Part { tally, inside, stats: D::stats(&worker) })
        });
        work.push((setting.cpus[1], work_on));
    }
    let (parts, took) = rig::run(setting, work)?;
    parts[0].tally.check(parts[1..].iter().map(|part| part.tally))?;
    Ok(Reading { values: count_up(&parts), ..Reading::new(jobs.into(), took) })
}

/// The same measurement, of a server of these clients.
pub(crate) fn attempts_of_a_server<D: Counted>(
    setting: &Setting,
    arrangement: Arrangement,
    workers: usize,
    clients: Clients,
) -> Outcome {
    assert!(arrangement.per_worker);
    let served = serve::<D>(setting, arrangement, workers, clients, D::stats)?;
    Ok(Reading { values: count_up(&served.parts), ..Reading::new(served.requests, served.took) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::each_counted_queue_of_jobs;

    const SETTING: Setting =
        Setting { cpus: [None; 2], bound: Duration::from_secs(1), count: 1, counting: true, quick: false };

    fn counts<D: Counted>(batched: bool, puts: f64) {
        let arrangement = Arrangement { per_worker: true, batched, batch: 50 };
        let reading = attempts::<D>(&SETTING, arrangement, 3, 40, 10).expect("it comes to its end");
        let name = D::name(batched);
        let values = reading.values;
        assert_eq!(reading.items, 2000, "{name}");
        // Each batch or job was put once, however many attempts failed. A batch that did not fit was put in parts.
        let put = values[ENQUEUE] - values[ENQUEUE_FAILED];
        assert!(if batched { put >= puts } else { put == puts }, "{name}: {values:?}");
        // Each worker learned at the end that no more jobs come.
        assert!(values[DEQUEUE] - values[DEQUEUE_FAILED] >= 1.0 && values[DEQUEUE_FAILED] >= 3.0, "{name}: {values:?}");
        assert_eq!(values[ATTEMPTS], values[ENQUEUE] + values[DEQUEUE], "{name}");
        assert!(values[ENQUEUE_CPU] >= 0.0 && values[DEQUEUE_CPU] >= 0.0, "{name}: {values:?}");
    }

    #[test]
    fn every_queue_counts_what_was_tried() {
        each_counted_queue_of_jobs!(D => {
            counts::<D>(false, 2000.0);
            counts::<D>(true, 40.0);
        });
    }

    fn a_server_counts<D: Counted>() {
        let clients = Clients { clients: 5, requests: 4, batch: 30, turns: 10 };
        let arrangement = Arrangement { per_worker: true, batched: false, batch: 30 };
        let reading = attempts_of_a_server::<D>(&SETTING, arrangement, 3, clients).expect("it comes to its end");
        assert_eq!(reading.items, 20);
        assert_eq!(reading.values[ENQUEUE] - reading.values[ENQUEUE_FAILED], 600.0, "{}", D::name(false));
    }

    #[test]
    fn every_queue_of_a_server_counts_too() {
        each_counted_queue_of_jobs!(D => a_server_counts::<D>());
    }
}
