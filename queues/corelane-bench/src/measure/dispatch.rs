//! Jobs from one dispatcher to several workers.

use super::reading::{Outcome, Reading};
use super::tally::Tally;
use crate::contender::{Arrangement, Dispatch, Job};
use crate::rig::{self, Stop, Work};
use crate::setting::Setting;
use crate::topology::Cpu;

/// Hands out batches of jobs, each of `turns` turns, as fast as the workers take them. The measurement ends when all
/// jobs have been done. It checks that no job is lost and none comes twice.
pub(crate) fn dispatch<D: Dispatch>(
    setting: &Setting,
    arrangement: Arrangement,
    workers: usize,
    turns: u32,
) -> Outcome {
    let (dispatcher, workers) = D::start(arrangement, workers)?;
    let batch = arrangement.batch as u32;
    // The runner asks for far fewer jobs than the numbers of jobs can count.
    let jobs = setting.count_up_to(D::MOST).next_multiple_of(u64::from(batch)) as u32;
    let mut work: Vec<(Option<Cpu>, Work<Tally>)> = Vec::new();
    let hand_out: Work<Tally> = Box::new(move |side| {
        let mut dispatcher = dispatcher;
        let mut jobs_of_batch = Vec::with_capacity(batch as usize);
        side.start()?;
        for first in (0..jobs).step_by(batch as usize) {
            jobs_of_batch.extend((first..first + batch).map(|number| Job { turns, number }));
            if !D::dispatch(&mut dispatcher, &mut jobs_of_batch) {
                return Err(Stop::Elsewhere);
            }
        }
        drop(dispatcher);
        side.stop();
        Ok(Tally::of_numbers(jobs))
    });
    work.push((setting.cpus[0], hand_out));
    for worker in workers {
        let work_on: Work<Tally> = Box::new(move |side| {
            let mut worker = worker;
            let mut tally = Tally::default();
            side.start()?;
            D::work(&mut worker, |job| {
                job.run();
                tally.add(job);
            });
            side.stop();
            Ok(tally)
        });
        work.push((setting.cpus[1], work_on));
    }
    let (tallies, took) = rig::run(setting, work)?;
    tallies[0].check(tallies[1..].iter().copied())?;
    Ok(Reading::new(jobs.into(), took))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::{Kind, Unable};
    use crate::contenders::LanesYield;
    use crate::measure::reading::Failure;
    use std::time::Duration;

    const SETTING: Setting =
        Setting { cpus: [None; 2], bound: Duration::from_secs(1), count: 1001, counting: false, quick: false };
    const SINGLE: Arrangement = Arrangement { per_worker: true, batched: false, batch: 50 };

    /// The fault that a bad contender makes in the jobs of a batch.
    trait Mischief: 'static {
        fn to(batch: &mut Vec<Job>);
    }

    #[derive(Debug)]
    struct Loses;
    impl Mischief for Loses {
        fn to(batch: &mut Vec<Job>) {
            batch.retain(|job| job.number != 777);
        }
    }

    #[derive(Debug)]
    struct Swaps;
    impl Mischief for Swaps {
        fn to(batch: &mut Vec<Job>) {
            batch.iter_mut().filter(|job| job.number == 777).for_each(|job| job.number = 770);
        }
    }

    #[derive(Debug)]
    struct Bad<M>(M);

    impl<M: Mischief> Dispatch for Bad<M> {
        const KIND: Kind = Kind::Crate;
        type Dispatcher = <LanesYield as Dispatch>::Dispatcher;
        type Worker = <LanesYield as Dispatch>::Worker;

        fn name(_: bool) -> String {
            "bad".to_owned()
        }

        fn start(arrangement: Arrangement, workers: usize) -> Result<(Self::Dispatcher, Vec<Self::Worker>), Unable> {
            LanesYield::start(arrangement, workers)
        }

        fn dispatch(dispatcher: &mut Self::Dispatcher, batch: &mut Vec<Job>) -> bool {
            M::to(batch);
            LanesYield::dispatch(dispatcher, batch)
        }

        fn work(worker: &mut Self::Worker, each: impl FnMut(Job)) {
            LanesYield::work(worker, each);
        }
    }

    #[test]
    fn whole_batches_are_handed_out_and_all_of_their_jobs_done() {
        let reading = dispatch::<LanesYield>(&SETTING, SINGLE, 3, 2).expect("it comes to its end");
        assert_eq!(reading.items, 1050);
    }

    #[test]
    fn a_job_that_is_lost_or_another_is_noticed() {
        let lost = dispatch::<Bad<Loses>>(&SETTING, SINGLE, 3, 0);
        assert!(matches!(lost, Err(Failure::Stop(Stop::WrongCount { put: 1050, taken: 1049 }))), "{lost:?}");
        let other = dispatch::<Bad<Swaps>>(&SETTING, SINGLE, 3, 0);
        assert!(matches!(other, Err(Failure::Stop(Stop::WrongSum { put, taken })) if put == taken + 7), "{other:?}");
    }
}
