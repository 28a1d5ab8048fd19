//! Waiting: every strategy, woken by everything that ends a wait, not early and never for ever.

use crate::case::{Case, LONG, NAP, Random, Under, queue, waiting};
use crate::cpu_time::cpu_time;
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::wait::{Adaptive, Park, Spin, SpinPark, Strategy, Yield};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Tells late from never: there is no telling how late a call may end on a busy machine. The watchdog is more patient.
const SLACK: Duration = Duration::from_secs(30);

type Parking<C> = Under<C, u64, Park>;

fn parking<C: Case>(capacity: usize) -> Parking<C> {
    waiting::<C, u64, _>(capacity, Park)
}

fn hands_over<C: Case, W: Strategy + Sync>(wait: W) {
    for (capacity, items) in [(1, 300), (64, 3_000)] {
        let queue = waiting::<C, u64, _>(capacity, wait.clone());
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random::new(1);
                for item in 0..items {
                    queue.push(item).unwrap();
                    random.pause();
                }
            });
            let mut random = Random::new(2);
            for item in 0..items {
                assert_eq!(queue.pop(), Ok(item));
                random.pause();
            }
        });
    }
}

pub(crate) fn every_strategy_hands_over<C: Case>() {
    hands_over::<C, _>(Spin);
    hands_over::<C, _>(Yield);
    hands_over::<C, _>(SpinPark::new(1));
    hands_over::<C, _>(Park);
    hands_over::<C, _>(Adaptive);
}

/// What a call says that may find the waiting thread in the middle of an attempt: a thread that waits busily makes them
/// all the time.
fn unless_busy<R, E>(busy: fn(&E) -> bool, mut call: impl FnMut() -> Result<R, E>) -> Result<R, E> {
    loop {
        match call() {
            Err(error) if busy(&error) => thread::yield_now(),
            answer => return answer,
        }
    }
}

pub(crate) fn a_sleeping_pop_is_woken_by_everything<C: Case>() {
    let wakes: [fn(&Parking<C>); 6] = [
        |queue| unless_busy(|error| matches!(error, TryPushError::Busy(_)), || queue.try_push(1)).unwrap(),
        |queue| queue.push(1).unwrap(),
        |queue| queue.push_timeout(1, LONG).unwrap(),
        |queue| {
            let batch = &mut vec![1];
            let pushed = unless_busy(|error| matches!(error, TryPushError::Busy(_)), || queue.try_push_batch(batch));
            assert_eq!(pushed, Ok(1));
        },
        |queue| queue.push_batch(&mut vec![1]).unwrap(),
        |queue| queue.push_batch_timeout(&mut vec![1], LONG).unwrap(),
    ];
    let pops: [fn(&Parking<C>) -> u64; 3] = [
        |queue| queue.pop().unwrap(),
        |queue| queue.pop_timeout(LONG).unwrap(),
        |queue| {
            let mut items = Vec::new();
            assert_eq!(queue.pop_batch(&mut items, 9), Ok(1));
            items[0]
        },
    ];
    for (wake, pop) in wakes.into_iter().flat_map(|wake| pops.map(|pop| (wake, pop))) {
        let queue = parking::<C>(4);
        thread::scope(|scope| {
            let popper = scope.spawn(|| pop(&queue));
            thread::sleep(NAP / 3);
            wake(&queue);
            assert_eq!(popper.join().unwrap(), 1);
        });
    }
}

pub(crate) fn a_sleeping_push_is_woken_by_everything<C: Case>() {
    if !C::BOUNDED {
        return;
    }
    let wakes: [fn(&Parking<C>); 4] = [
        |queue| assert_eq!(unless_busy(|error| *error == TryPopError::Busy, || queue.try_pop()), Ok(0)),
        |queue| assert_eq!(queue.pop(), Ok(0)),
        |queue| {
            let popped = unless_busy(|error| *error == TryPopError::Busy, || queue.try_pop_batch(&mut Vec::new(), 1));
            assert_eq!(popped, Ok(1));
        },
        |queue| assert_eq!(queue.pop_batch(&mut Vec::new(), 2), Ok(2)),
    ];
    let pushes: [fn(&Parking<C>); 3] = [
        |queue| queue.push(7).unwrap(),
        |queue| queue.push_timeout(7, LONG).unwrap(),
        |queue| queue.push_batch(&mut vec![7]).unwrap(),
    ];
    for (wake, push) in wakes.into_iter().flat_map(|wake| pushes.map(|push| (wake, push))) {
        let queue = parking::<C>(2);
        queue.push_batch(&mut vec![0, 1]).unwrap();
        thread::scope(|scope| {
            let pusher = scope.spawn(|| push(&queue));
            thread::sleep(NAP / 3);
            wake(&queue);
            pusher.join().unwrap();
        });
        let mut items = Vec::new();
        queue.pop_batch(&mut items, 9).unwrap();
        assert_eq!(items.last(), Some(&7));
    }
}

/// Nothing else happens after the one batch.
pub(crate) fn one_batch_wakes_all_it_has_items_for<C: Case>() {
    for _ in 0..5 {
        let queue = parking::<C>(8);
        let popped = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    queue.pop().unwrap();
                    popped.fetch_add(1, SeqCst);
                });
            }
            thread::sleep(NAP);
            queue.push_batch(&mut vec![1, 2, 3, 4]).unwrap();
        });
        assert_eq!(popped.into_inner(), 4);
    }
}

pub(crate) fn one_batch_makes_room_for_all<C: Case>() {
    if !C::BOUNDED {
        return;
    }
    for _ in 0..5 {
        let queue = parking::<C>(4);
        queue.push_batch(&mut vec![0, 1, 2, 3]).unwrap();
        thread::scope(|scope| {
            for item in 0..4 {
                let queue = &queue;
                scope.spawn(move || queue.push(item).unwrap());
            }
            thread::sleep(NAP);
            let popped = unless_busy(|error| *error == TryPopError::Busy, || queue.try_pop_batch(&mut Vec::new(), 9));
            assert_eq!(popped, Ok(4));
        });
        assert_eq!(queue.len(), 4);
    }
}

#[track_caller]
fn assert_on_time(since: Instant, time: Duration) {
    let took = since.elapsed();
    assert!(took >= time, "{took:?} is early for {time:?}");
    assert!(took <= time + SLACK, "{took:?} is late for {time:?}");
}

const TIMES: [Duration; 3] = [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(10)];

fn timed_pops<C: Case, W: Strategy>(wait: W) {
    let queue = waiting::<C, u64, _>(4, wait);
    for time in TIMES {
        let since = Instant::now();
        assert_eq!(queue.pop_timeout(time), Err(PopTimeoutError::Timeout));
        assert_on_time(since, time);
        let since = Instant::now();
        assert_eq!(queue.pop_batch_timeout(&mut Vec::new(), 3, time), Err(PopTimeoutError::Timeout));
        assert_on_time(since, time);
    }
}

pub(crate) fn timed_pops_are_not_early<C: Case>() {
    timed_pops::<C, _>(Spin);
    timed_pops::<C, _>(Park);
    timed_pops::<C, _>(Adaptive);
}

fn timed_pushes<C: Case, W: Strategy>(wait: W) {
    let queue = waiting::<C, u64, _>(4, wait);
    queue.push_batch(&mut vec![0, 1, 2, 3]).unwrap();
    for time in TIMES {
        let since = Instant::now();
        assert_eq!(queue.push_timeout(9, time), Err(PushTimeoutError::Timeout(9)));
        assert_on_time(since, time);
        let (since, mut batch) = (Instant::now(), vec![8, 9]);
        assert_eq!(queue.push_batch_timeout(&mut batch, time), Err(PushTimeoutError::Timeout(())));
        assert_on_time(since, time);
        assert_eq!(batch, [8, 9]);
    }
    assert_eq!((queue.len(), queue.pop()), (4, Ok(0)));
}

pub(crate) fn timed_pushes_are_not_early<C: Case>() {
    if C::BOUNDED {
        timed_pushes::<C, _>(Spin);
        timed_pushes::<C, _>(Park);
        timed_pushes::<C, _>(Adaptive);
    }
}

pub(crate) fn timed_waits_end_by_success<C: Case>() {
    let queue = queue::<C, u64>(1);
    for time in [LONG, Duration::MAX] {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(NAP);
                queue.push(1).unwrap();
                assert_eq!(queue.push_timeout(2, time), Ok(()));
            });
            assert_eq!(queue.pop_timeout(time), Ok(1));
            assert_eq!(queue.pop_timeout(time), Ok(2));
        });
    }
    assert_eq!(queue.push_timeout(3, Duration::ZERO), Ok(()));
    assert_eq!(queue.pop_timeout(Duration::ZERO), Ok(3));
}

/// A lost wake-up would end the process by the watchdog: nothing else wakes these threads.
pub(crate) fn no_wake_up_is_lost<C: Case>() {
    for capacity in [1, 2] {
        let queue = parking::<C>(capacity);
        thread::scope(|scope| {
            scope.spawn(|| (0..20_000).for_each(|item| queue.push(item).unwrap()));
            (0..20_000).for_each(|item| assert_eq!(queue.pop(), Ok(item)));
        });
    }
}

pub(crate) fn no_wake_up_is_lost_among_many<C: Case>() {
    const ITEMS: usize = 4_000;
    for capacity in [1, 3] {
        let queue = parking::<C>(capacity);
        thread::scope(|scope| {
            for thread in 0..3 {
                let queue = &queue;
                scope.spawn(move || {
                    let mut random = Random::new(thread);
                    let mut left = ITEMS;
                    while left != 0 {
                        let size = (1 + random.below(4)).min(left);
                        queue.push_batch(&mut vec![1; size]).unwrap();
                        left -= size;
                    }
                });
                scope.spawn(move || {
                    let mut random = Random::new(10 + thread);
                    let mut items = Vec::new();
                    while items.len() < ITEMS {
                        let max = (1 + random.below(4)).min(ITEMS - items.len());
                        queue.pop_batch(&mut items, max).unwrap();
                    }
                });
            }
        });
        assert!(queue.is_empty());
    }
}

/// Threads that are woken and give up at the same moment take no other's wake-up along.
pub(crate) fn wake_ups_survive_time_outs<C: Case>() {
    const ITEMS: u64 = 3_000;
    let queue = parking::<C>(1);
    let popped = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while popped.load(SeqCst) < 2 * ITEMS as usize {
                    if queue.pop_timeout(Duration::from_micros(20)).is_ok() {
                        popped.fetch_add(1, SeqCst);
                    }
                }
            });
        }
        // Waits without a time; the last items of the others are its business, too.
        scope.spawn(|| {
            while queue.pop().is_ok() {
                popped.fetch_add(1, SeqCst);
            }
        });
        let pushers = [(); 2].map(|()| {
            scope.spawn(|| {
                for item in 0..ITEMS {
                    if item % 2 == 0 {
                        queue.push(item).unwrap();
                    } else {
                        while queue.push_timeout(item, Duration::from_micros(20)).is_err() {}
                    }
                }
            })
        });
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        crate::case::until("everything is popped", || popped.load(SeqCst) == 2 * ITEMS as usize);
        queue.close();
    });
}

/// Idle for a tenth of a second: less than a twentieth of it awake. The busy wait is, by design.
pub(crate) fn an_idle_wait_sleeps<C: Case>() {
    if !C::SLEEPS {
        return;
    }
    let queue = queue::<C, u64>(1);
    thread::scope(|scope| {
        let popper = scope.spawn(|| {
            let before = cpu_time();
            queue.pop().unwrap();
            Some(cpu_time()? - before?)
        });
        thread::sleep(Duration::from_millis(100));
        queue.push(1).unwrap();
        match popper.join().unwrap() {
            Some(awake) => assert!(awake < Duration::from_millis(5), "{awake:?} awake"),
            None => println!("skipped: no schedstat here"),
        }
    });
}
