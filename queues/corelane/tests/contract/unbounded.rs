//! Queues without a bound: never full, and in all else like the others.

use crate::capacity::lengths_are_bounds;
use crate::case::{Case, Page, Random, STARTS, Wide, options, queue_from};
use crate::model::consume;
use corelane::error::{ChannelError, TryPopError};
use corelane::spsc::{self, Counting, Design, Linked, linked};
use corelane::wait::Adaptive;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::{mem, thread};

/// Some of which are the length of a segment in one of the suites.
const LENGTHS: [usize; 6] = [1, 2, 7, 50, 64, 1000];

pub(crate) fn it_is_never_full<C: Case>() {
    for (length, start) in LENGTHS.into_iter().flat_map(|length| STARTS.map(|start| (length, start))) {
        let (mut tx, mut rx) = queue_from::<u64, C>(length, start);
        assert_eq!((tx.len(), rx.len(), tx.release_lag()), (0, 0, 0));
        assert!(tx.capacity() == rx.capacity() && tx.capacity() >= isize::MAX as usize / 2);
        let (mut pushed, mut popped) = (0, 0);
        for round in 0..6 {
            for _ in 0..3_000 {
                assert_eq!(tx.try_push(pushed), Ok(()));
                pushed += 1;
            }
            let inside = (pushed - popped) as usize;
            assert_eq!(rx.len(), inside);
            assert!(tx.len() >= inside);
            let most = if round % 2 == 0 { 3_000 } else { inside as u64 };
            for _ in 0..most {
                assert_eq!(rx.try_pop(), Ok(popped));
                popped += 1;
            }
        }
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
        assert_eq!((tx.len(), rx.len()), (0, 0), "a consumer that says Empty has told of all it popped");
        assert_eq!(tx.wait_for_room(1_000_000), Ok(()));
    }
}

pub(crate) fn abandoned_reservations_publish_nothing<C: Case>() {
    let (mut tx, mut rx) = queue_from::<u64, C>(3, usize::MAX - 3);
    for item in 0..100 {
        tx.try_reserve().unwrap().as_uninit_mut().write(u64::MAX);
        mem::forget(tx.try_reserve().unwrap());
        assert_eq!(rx.len(), 0);
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
        assert_eq!(tx.len(), 0);
        assert_eq!(tx.try_push_slice(&[item, item + 1]).unwrap_or(0), 2);
        drop(tx.try_reserve());
        assert_eq!((rx.try_pop(), rx.try_pop()), (Ok(item), Ok(item + 1)));
    }
    drop(tx);
    assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
}

fn run<C: Case>(length: usize, start: usize, seed: u64, calls: usize) {
    let (mut tx, mut rx) = queue_from::<u64, C>(length, start);
    let mut random = Random::new(seed);
    let mut model = VecDeque::new();
    let mut next = 0;
    for _ in 0..calls {
        let n = random.below(2 * length + 10);
        let items = (next..next + n as u64).collect::<Vec<_>>();
        let pushed = match random.below(16) {
            0 => {
                assert_eq!(tx.try_push(next), Ok(()));
                1
            }
            1 => tx.try_push_slice(&items).unwrap_or(0),
            2 => tx.try_push_batch(&mut items.to_vec()).unwrap_or(0),
            3 => match random.below(4) {
                0 => {
                    drop(tx.try_reserve().unwrap());
                    0
                }
                1 => {
                    mem::forget(tx.try_reserve().unwrap());
                    0
                }
                _ => {
                    tx.try_reserve().unwrap().write(next).unwrap();
                    1
                }
            },
            4 => {
                let len = tx.len();
                assert!(len >= model.len());
                assert_eq!(tx.is_empty(), len == 0);
                0
            }
            5..15 => {
                if consume::<C>(&mut rx, &mut model, &mut random, n) {
                    assert!(tx.is_empty(), "a consumer that says Empty has told of all it popped");
                }
                0
            }
            _ => {
                tx.try_push_slice(&items).unwrap_or(0)
                    + tx.try_push_batch(&mut (next + n as u64..next + 2 * n as u64).collect()).unwrap_or(0)
            }
        };
        assert!([0, 1, n, 2 * n].contains(&pushed));
        model.extend(next..next + pushed as u64);
        next += pushed as u64;
    }
    rx.close();
    assert_eq!(rx.len(), model.len());
    assert!(tx.try_push(0).unwrap_err().is_closed());
    for item in model {
        assert_eq!(rx.try_pop(), Ok(item));
    }
    assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
}

pub(crate) fn random_calls_behave_like_a_deque<C: Case>() {
    for length in LENGTHS {
        for seed in 0..10 {
            run::<C>(length, seed as usize * 11, seed, 1_000);
        }
    }
}

pub(crate) fn random_calls_behave_like_a_deque_across_the_wrap_around<C: Case>() {
    for length in LENGTHS {
        for seed in 0..10 {
            run::<C>(length, usize::MAX - 2 * seed as usize, 100 + seed, 300);
        }
    }
}

fn every_size<T: Copy + PartialEq + Debug + Send, C: Case>(number: impl Fn(u64) -> T)
where
    C::Design: Design<T, Tuning = C::Options>,
{
    for length in [1, 3, 100] {
        let (mut tx, mut rx) = queue_from::<T, C>(length, usize::MAX - 3);
        let (mut pushed, mut popped) = (0, 0);
        for lap in 0..40 {
            for _ in 0..10 + lap {
                assert!(tx.try_push(number(pushed)).is_ok());
                pushed += 1;
            }
            for _ in 0..10 + lap / 2 {
                assert_eq!(rx.try_pop(), Ok(number(popped)));
                popped += 1;
            }
        }
        let mut rest = Vec::new();
        assert_eq!(rx.try_pop_batch(&mut rest, usize::MAX).unwrap_or(0) as u64, pushed - popped);
        assert!(rest.into_iter().eq((popped..pushed).map(&number)));
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
    }
}

pub(crate) fn items_of_every_size_come_out_as_they_went_in<C: Case>() {
    every_size::<(), C>(|_| ());
    every_size::<u8, C>(|n| n as u8);
    every_size::<u64, C>(|n| n);
    every_size::<[u8; 28], C>(|n| [n as u8; 28]);
    every_size::<[u64; 4], C>(|n| [n; 4]);
    every_size::<[u64; 7], C>(|n| [n; 7]);
    every_size::<[u64; 8], C>(|n| [n; 8]);
    every_size::<Page, C>(|n| [n; 512]);
    every_size::<Wide, C>(Wide);
}

pub(crate) fn zero_sized_items_are_counted<C: Case>() {
    let (mut tx, mut rx) = queue_from::<(), C>(1000, usize::MAX - 3);
    assert_eq!(tx.try_push_slice(&[(); 100_000]).unwrap_or(0), 100_000);
    assert_eq!(rx.len(), 100_000);
    assert_eq!(rx.try_pop_batch(&mut Vec::new(), 99_999).unwrap_or(0), 99_999);
    assert_eq!(rx.try_pop_slice(&mut [(); 5]).unwrap_or(0), 1);
    assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
}

pub(crate) fn len_is_a_bound_while_both_ends_run<C: Case>() {
    for length in [1, 64, 2000] {
        lengths_are_bounds::<C>(length, 20_000);
    }
}

/// The consumer starts late and finds segments of every age.
pub(crate) fn a_producer_far_ahead_is_caught_up_with<C: Case>() {
    const ITEMS: u64 = 100_000;
    let (mut tx, mut rx) = queue_from::<u64, C>(100, usize::MAX - 3);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut random = Random::new(1);
            for item in 0..ITEMS {
                tx.try_push(item).unwrap();
                if item > ITEMS / 2 {
                    random.pause();
                }
            }
        });
        let mut random = Random::new(2);
        for item in 0..ITEMS {
            if item < ITEMS / 4 {
                random.pause();
            }
            assert_eq!(rx.pop(), Ok(item));
        }
        assert!(rx.pop().is_err());
    });
}

pub(crate) fn what_is_inside_is_counted<C: Case>() {
    let options = options::<C, _>(8, Adaptive).stats::<Counting>();
    let (mut tx, mut rx) = spsc::any_channel::<u64, C::Design, _, _>(8, options).unwrap();
    assert_eq!(tx.try_push_batch(&mut (0..100).collect()).unwrap_or(0), 100);
    assert_eq!(rx.try_pop_batch(&mut Vec::new(), 60).unwrap_or(0), 60);
    let (sent, received) = (tx.stats(), rx.stats());
    assert_eq!((sent.pushes, sent.full, sent.high_water), (100, 0, 100));
    assert_eq!((received.pops, received.empty), (60, 0));
}

#[test]
fn segments_of_nothing_are_refused() {
    use linked::Tuning;
    let refused = |tuning| {
        let options = spsc::Options::new().tuning(tuning);
        linked::channel_with::<u64, Adaptive, spsc::NoStats>(options).err()
    };
    assert_eq!(refused(Tuning::new().segment(0)), Some(ChannelError::BadSegment));
    assert_eq!(refused(Tuning::new().cached(0)), Some(ChannelError::BadSegment));
    assert_eq!(refused(Tuning::new().segment(usize::MAX)), Some(ChannelError::TooLarge));
    assert_eq!(refused(Tuning::new().segment(usize::MAX / 16)), Some(ChannelError::TooLarge));
    assert_eq!(refused(Tuning::new().cached(usize::MAX / 8)), Some(ChannelError::NoMemory));
    assert_eq!(refused(Tuning::new().segment(1).cached(1)), None);
    assert_eq!(refused(Tuning::new()), None);
}

/// The generic constructor takes any capacity, and makes it no bound.
#[test]
fn a_capacity_is_no_bound() {
    let options = spsc::Options::new().tuning(linked::Tuning::default());
    let (mut tx, rx) = spsc::any_channel::<u64, Linked, Adaptive, _>(3, options).unwrap();
    assert_eq!(tx.try_push_batch(&mut (0..50_000).collect()).unwrap_or(0), 50_000);
    assert_eq!((rx.len(), rx.capacity()), (50_000, linked::UNBOUNDED));
    let (mut tx, mut rx) = linked::channel();
    assert_eq!(tx.try_push(5), Ok(()));
    assert_eq!(rx.try_pop(), Ok(5));
}
