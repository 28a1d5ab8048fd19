//! Sixty-four threads on two CPUs: each of them gets on, whichever way it waits, and every item comes once.

use crate::fuse::Way;
use crate::{Case, Shared};
use corelane::mpmc;
use corelane::spsc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

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
