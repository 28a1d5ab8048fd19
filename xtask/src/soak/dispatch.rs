//! A dispatcher and workers that come and go.

use super::episode::Episode;
use super::load::{Item, Mood, Random, Way, dropped, timed};
use super::watch::{Doing, Watch};
use corelane::dispatch::{self, Builder, Mpmc, Queue};
use corelane::error::{DispatchError, PopTimeoutError};
use corelane::{mpmc, spsc};
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

type Worker<Q> = dispatch::Worker<Item, Q, Way>;

pub(crate) fn lane(episode: &mut Episode<'_>) -> u64 {
    run::<spsc::Lane>(episode)
}

pub(crate) fn linked(episode: &mut Episode<'_>) -> u64 {
    run::<spsc::Linked>(episode)
}

pub(crate) fn ticket(episode: &mut Episode<'_>) -> u64 {
    run::<Mpmc<mpmc::Ticket>>(episode)
}

/// The most workers at once.
const MOST: usize = 5;
/// The most jobs in the queues of an episode without a bound.
const AHEAD: usize = 50_000;

fn run<Q: Queue<Item, Tuning: Default>>(episode: &mut Episode<'_>) -> u64 {
    let (watch, until) = (episode.watch, episode.until);
    let random = &mut episode.random;
    let workers = random.between(1, MOST as u64) as usize;
    let builder = Builder::new(workers)
        .capacity(random.one_of(&[1, 2, 30, 1000]))
        .batch(random.one_of(&[1, 7, 50]))
        .wait(random.one_of(&Way::ALL))
        .tuning(Q::Tuning::default());
    let (mut dispatcher, workers) = builder.build_any::<Item, Q>().expect("a good capacity");
    dropped();
    let (mut next, mut made) = (0_u64, 0_u64);
    let (mut done, mut sum, mut gone) = (0, 0, 0);
    thread::scope(|scope| {
        let hire = |worker, random: &mut Random| {
            let random = random.fork();
            scope.spawn(move || work::<Q>(worker, random, watch))
        };
        let mut all: Vec<ScopedJoinHandle<'_, (u64, u64, u64)>> =
            workers.into_iter().map(|worker| hire(worker, random)).collect();
        let at = watch.place("dispatcher");
        let mut mood = Mood::new(random.fork());
        while Instant::now() < until {
            at.now(Doing::Pauses);
            mood.pause();
            if dispatcher.workers() < MOST && mood.random.below(200) == 0 || dispatcher.workers() == 0 {
                // On the way the dispatcher learns which workers have left.
                dispatcher.flush();
                if dispatcher.workers() < MOST {
                    all.push(hire(dispatcher.add_worker().expect("there is memory"), &mut mood.random));
                }
            }
            if dispatcher.loads().map(|(_, load)| load).sum::<usize>() > AHEAD {
                continue;
            }
            for _ in 0..mood.random.below(30) {
                let mut job = |ahead| {
                    made += 1;
                    Item(next + ahead)
                };
                let outcome = match mood.random.below(4) {
                    0 => {
                        at.now(Doing::Pushes);
                        dispatcher.dispatch(job(0)).map(|()| 1)
                    }
                    1 => {
                        at.now(Doing::TriesToPush);
                        dispatcher.try_dispatch(job(0)).map(|()| 1)
                    }
                    2 => {
                        at.now(Doing::PushesInTime);
                        let job = job(0);
                        let is_timeout = |refusal: &_| matches!(refusal, DispatchError::Timeout(_));
                        let call = |time| dispatcher.dispatch_timeout(job, time);
                        timed(mood.random.moment(), call, is_timeout).map(|()| 1)
                    }
                    _ => {
                        at.now(Doing::PushesABatch);
                        let most = mood.random.below(20);
                        let mut jobs = (0..most).map(&mut job).collect::<Vec<_>>();
                        let outcome = dispatcher.dispatch_batch(&mut jobs);
                        let count = most - jobs.len() as u64;
                        match outcome {
                            Ok(()) => Ok(count),
                            Err(DispatchError::NoWorker(())) => {
                                next += count;
                                Err(DispatchError::NoWorker(jobs.swap_remove(0)))
                            }
                            Err(refusal) => panic!("{refusal:?}"),
                        }
                    }
                };
                match outcome {
                    Ok(count) => next += count,
                    Err(DispatchError::Full(_) | DispatchError::Timeout(_)) => {}
                    Err(DispatchError::NoWorker(_)) => break,
                    Err(refusal) => panic!("no worker panics: {refusal}"),
                }
            }
        }
        at.now(Doing::Joins);
        if dispatcher.workers() == 0 {
            all.push(hire(dispatcher.add_worker().expect("there is memory"), &mut mood.random));
        }
        if let Err(unfinished) = dispatcher.join() {
            assert!(unfinished.panics.is_empty());
            done += unfinished.undone.len() as u64;
            sum += unfinished.undone.iter().map(|job| job.0).sum::<u64>();
        }
        drop(at);
        for worker in all {
            let (count, numbers, dropped) = worker.join().expect("see above");
            (done, sum, gone) = (done + count, sum + numbers, gone + dropped);
        }
    });
    assert_eq!(done, next, "done, of so many jobs");
    assert_eq!(sum, (0..next).sum::<u64>(), "the sum of their numbers");
    assert_eq!(gone + dropped(), made, "dropped, of so many jobs that were made");
    done
}

/// Jobs done, the sum of their numbers, and jobs dropped by this thread.
fn work<Q: Queue<Item>>(mut worker: Worker<Q>, random: Random, watch: &Watch) -> (u64, u64, u64) {
    let at = watch.place("worker");
    let mut mood = Mood::new(random);
    let (mut done, mut sum) = (0, 0);
    let mut jobs = Vec::new();
    // Some workers leave soon, and most stay.
    let mut left = if mood.random.below(3) == 0 { mood.random.below(3_000) } else { u64::MAX };
    let mut has_more = true;
    while has_more && left > 0 {
        at.now(Doing::Pauses);
        mood.pause();
        left -= 1;
        match mood.random.below(4) {
            0 => {
                at.now(Doing::Pops);
                match worker.pop() {
                    Ok(job) => jobs.push(job),
                    Err(_) => has_more = false,
                }
            }
            1 => {
                at.now(Doing::TriesToPop);
                jobs.extend(worker.try_pop());
            }
            2 => {
                at.now(Doing::PopsInTime);
                let is_timeout = |refusal: &_| *refusal == PopTimeoutError::Timeout;
                match timed(mood.random.moment(), |time| worker.pop_timeout(time), is_timeout) {
                    Ok(job) => jobs.push(job),
                    Err(PopTimeoutError::Timeout) => {}
                    Err(_) => has_more = false,
                }
            }
            _ => {
                at.now(Doing::PopsABatch);
                has_more = worker.pop_batch(&mut jobs, 1 + mood.random.below(40) as usize).is_ok();
            }
        }
        for job in jobs.drain(..) {
            (done, sum) = (done + 1, sum + job.0);
        }
    }
    at.now(Doing::Leaves);
    // Jobs that are not done go back, or to this thread if the dispatcher is gone.
    for job in worker.leave().err().unwrap_or_default() {
        (done, sum) = (done + 1, sum + job.0);
    }
    (done, sum, dropped())
}
