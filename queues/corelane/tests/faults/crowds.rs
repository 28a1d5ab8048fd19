//! Sixty-four threads on two CPUs: each of them gets on, whichever way it waits, and every item comes once.

use crate::fuse::Way;
use crate::handoff_panics::Meeting;
use crate::{Case, Fans, Shared};
use corelane::dispatch::Builder;
use corelane::handoff::{Exchanger, TransferQueue, WaitLimit};
use corelane::mpmc;
use corelane::spsc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// As many producers as consumers.
const PAIRS: u64 = 32;

fn crowd(run: impl FnOnce() + Send) {
    thread::scope(|scope| {
        scope.spawn(|| {
            #[cfg(target_os = "linux")]
            crate::signals::keep_to_two_cpus();
            run();
        });
    });
}

/// Which numbers have come, of 0 on.
struct Tally(Vec<AtomicU32>);

impl Tally {
    fn new(items: u64) -> Self {
        Self((0..items).map(|_| AtomicU32::new(0)).collect())
    }

    fn came(&self, item: u64) {
        self.0[item as usize].fetch_add(1, Relaxed);
    }

    #[track_caller]
    fn assert_all_once(&self) {
        for (item, times) in self.0.iter().enumerate() {
            assert_eq!(times.load(Relaxed), 1, "item {item}");
        }
    }
}

pub(crate) fn thirty_two_pairs_on_two_cpus<C: Case>() {
    const ITEMS: u64 = 300;
    for wait in Way::ALL {
        crowd(|| {
            thread::scope(|scope| {
                for _ in 0..PAIRS {
                    let options = spsc::Options::new().tuning(C::tuning(4, 1)).wait(wait.clone());
                    let (mut tx, mut rx) =
                        spsc::any_channel::<u64, C::Design, _, _>(4, options).expect("a good capacity");
                    scope.spawn(move || (0..ITEMS).for_each(|item| tx.push(item).expect("open")));
                    scope.spawn(move || assert!(std::iter::from_fn(|| rx.pop().ok()).eq(0..ITEMS)));
                }
            });
        });
    }
}

pub(crate) fn sixty_four_threads_on_two_cpus<C: Shared>() {
    const ITEMS: u64 = 60;
    for wait in Way::ALL {
        let options = mpmc::Options::new().wait(wait);
        let queue = mpmc::any_queue::<u64, C::Design, _, mpmc::NoStats>(4, options).expect("a good capacity");
        let tally = Tally::new(PAIRS * ITEMS);
        crowd(|| {
            thread::scope(|scope| {
                let (queue, tally) = (&queue, &tally);
                let producers: Vec<_> = (0..PAIRS)
                    .map(|producer| {
                        scope.spawn(move || {
                            let mut items: Vec<_> = (producer * ITEMS..(producer + 1) * ITEMS).collect();
                            let mut batch = items.split_off(items.len() / 2);
                            items.into_iter().for_each(|item| queue.push(item).expect("open"));
                            queue.push_batch(&mut batch).expect("open");
                        })
                    })
                    .collect();
                for consumer in 0..PAIRS {
                    scope.spawn(move || {
                        let mut items = Vec::new();
                        if consumer % 2 == 0 {
                            items.extend(std::iter::from_fn(|| queue.pop().ok()));
                        } else {
                            while queue.pop_batch(&mut items, 3).is_ok() {}
                        }
                        items.into_iter().for_each(|item| tally.came(item));
                    });
                }
                producers.into_iter().for_each(|producer| producer.join().unwrap());
                queue.close();
            });
        });
        tally.assert_all_once();
    }
}

pub(crate) fn sixty_three_workers_on_two_cpus<C: Fans>() {
    const WORKERS: usize = 63;
    const JOBS: u64 = 4_000;
    for wait in Way::ALL {
        let tally = Tally::new(JOBS);
        crowd(|| {
            let builder = Builder::new(WORKERS).capacity(4).batch(2).wait(wait).tuning(C::Options::default());
            let (mut dispatcher, workers) = builder.build_any::<u64, C::Queue>().expect("a good capacity");
            thread::scope(|scope| {
                for worker in workers {
                    let tally = &tally;
                    scope.spawn(move || {
                        let mut worker = worker;
                        worker.jobs().for_each(|job| tally.came(job));
                    });
                }
                for job in 0..JOBS / 2 {
                    dispatcher.dispatch(job).expect("there are workers");
                }
                dispatcher.dispatch_batch(&mut (JOBS / 2..JOBS).collect()).expect("there are workers");
                dispatcher.join().expect("no worker panics");
            });
        });
        tally.assert_all_once();
    }
}

/// Half of the calls may give up, and come again.
fn meet(put: impl Fn(u64) -> bool + Sync, take: impl Fn() -> Option<u64> + Sync) {
    const ITEMS: u64 = 60;
    let tally = Tally::new(PAIRS * ITEMS);
    let left = AtomicU64::new(PAIRS * ITEMS);
    crowd(|| {
        thread::scope(|scope| {
            let (put, take, tally, left) = (&put, &take, &tally, &left);
            for producer in 0..PAIRS {
                scope.spawn(move || (producer * ITEMS..(producer + 1) * ITEMS).for_each(|item| while !put(item) {}));
                scope.spawn(move || {
                    while left.load(Relaxed) > 0 {
                        if let Some(item) = take() {
                            tally.came(item);
                            left.fetch_sub(1, Relaxed);
                        }
                    }
                });
            }
        });
    });
    tally.assert_all_once();
}

pub(crate) fn thirty_two_puts_and_takes_on_two_cpus<C: Meeting>() {
    let queue = C::queue();
    let moment = Duration::from_millis(2);
    let put = |item| match item % 2 {
        0 => queue.put(item).is_ok(),
        _ => queue.put_timeout(item, moment).is_ok(),
    };
    meet(put, || queue.take_timeout(moment).ok());
}

#[test]
fn thirty_two_pushes_puts_and_takes_on_two_cpus() {
    crate::watchdog::guard(|| {
        let queue = TransferQueue::new();
        let moment = Duration::from_millis(2);
        let put = |item| match item % 3 {
            0 => queue.push(item).is_ok(),
            1 => queue.put(item).is_ok(),
            _ => queue.put_timeout(item, moment).is_ok(),
        };
        meet(put, || queue.take_timeout(moment).ok());
    });
}

#[test]
fn sixty_four_threads_exchange_on_two_cpus() {
    crate::watchdog::guard(|| {
        const SWAPS: u64 = 40;
        let exchanger = Exchanger::new();
        let (given, got) = (AtomicU64::new(0), AtomicU64::new(0));
        crowd(|| {
            thread::scope(|scope| {
                for thread in 1..=2 * PAIRS {
                    let (exchanger, given, got) = (&exchanger, &given, &got);
                    scope.spawn(move || {
                        for _ in 0..SWAPS {
                            // The last ones find no partner any more.
                            let limit = WaitLimit::new().timeout(Duration::from_millis(20));
                            if let Ok(item) = exchanger.exchange_with(thread, &limit) {
                                given.fetch_add(thread, Relaxed);
                                got.fetch_add(item, Relaxed);
                            }
                        }
                    });
                }
            });
        });
        assert_eq!(given.load(Relaxed), got.into_inner());
        assert!(given.into_inner() > 0);
    });
}
