//! One thread: what each call answers.

use crate::case::{CAPACITIES, Case, Page, Random, STARTS, Under, queue, queue_from};
use corelane::error::{ChannelError, Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::mpmc::{self, Counting, Design, Options, UNBOUNDED};
use corelane::wait::Adaptive;
use std::collections::VecDeque;
use std::time::Duration;

pub(crate) fn it_is_a_queue<C: Case>() {
    for (capacity, start) in CAPACITIES.into_iter().flat_map(|capacity| STARTS.map(|start| (capacity, start))) {
        let queue = queue_from::<C, u64>(capacity, start);
        assert_eq!(queue.try_pop(), Err(TryPopError::Empty));
        for lap in 0..5 {
            for item in 0..capacity as u64 {
                assert_eq!(queue.len() as u64, item);
                assert_eq!(queue.try_push(lap * 1000 + item), Ok(()));
            }
            assert!(!queue.is_empty());
            for item in 0..capacity as u64 {
                assert_eq!(queue.try_pop(), Ok(lap * 1000 + item));
            }
            assert!(queue.is_empty());
            assert_eq!(queue.try_pop(), Err(TryPopError::Empty));
        }
    }
}

pub(crate) fn a_full_queue_refuses<C: Case>() {
    for capacity in CAPACITIES {
        let queue = queue::<C, u64>(capacity);
        assert_eq!(queue.capacity(), if C::BOUNDED { capacity } else { UNBOUNDED });
        for item in 0..capacity as u64 {
            queue.try_push(item).unwrap();
        }
        if !C::BOUNDED {
            (0..1000).for_each(|item| queue.try_push(item).unwrap());
            assert_eq!(queue.len(), capacity + 1000);
            continue;
        }
        for next in 0..10 {
            assert_eq!(queue.try_push(99), Err(TryPushError::Full(99)));
            assert_eq!(queue.len(), capacity);
            queue.try_pop().unwrap();
            assert_eq!(queue.try_push(next), Ok(()));
        }
    }
}

pub(crate) fn an_item_comes_back<C: Case>() {
    let queue = queue::<C, String>(1);
    queue.push("inside".into()).unwrap();
    if C::BOUNDED {
        assert_eq!(queue.try_push("a".into()).unwrap_err().into_inner(), "a");
        assert_eq!(queue.push_timeout("b".into(), Duration::ZERO), Err(PushTimeoutError::Timeout("b".into())));
    }
    queue.close();
    assert_eq!(queue.try_push("a".into()), Err(TryPushError::Closed("a".into())));
    assert_eq!(queue.push("b".into()), Err(Closed("b".into())));
    assert_eq!(queue.push_timeout("c".into(), Duration::MAX), Err(PushTimeoutError::Closed("c".into())));
    let mut batch = vec!["d".to_owned(), "e".to_owned()];
    assert_eq!(queue.try_push_batch(&mut batch), Err(TryPushError::Closed(())));
    assert_eq!(queue.push_batch(&mut batch), Err(Closed(())));
    assert_eq!(batch, ["d", "e"]);
    assert_eq!(queue.push_batch_timeout(&mut batch, Duration::MAX), Err(PushTimeoutError::Closed(())));
    assert_eq!(batch, ["d", "e"]);
    assert_eq!(queue.pop().as_deref(), Ok("inside"));
    assert_eq!(queue.try_pop(), Err(TryPopError::Closed));
    assert_eq!(queue.pop(), Err(Closed(())));
    assert_eq!(queue.pop_timeout(Duration::MAX), Err(PopTimeoutError::Closed));
}

pub(crate) fn random_calls_behave_like_a_deque<C: Case>() {
    for (seed, capacity) in CAPACITIES.into_iter().enumerate() {
        for start in STARTS {
            let mut random = Random::new(seed as u64);
            let queue = queue_from::<C, u64>(capacity, start);
            let mut model = VecDeque::new();
            let bound = if C::BOUNDED { capacity } else { usize::MAX };
            let (mut next, mut popped) = (0_u64, Vec::new());
            for _ in 0..4_000 {
                match random.below(5) {
                    0 => {
                        let pushed = queue.try_push(next);
                        let room = model.len() < bound;
                        assert_eq!(pushed, if room { Ok(()) } else { Err(TryPushError::Full(next)) });
                        if room {
                            model.push_back(next);
                            next += 1;
                        }
                    }
                    1 => assert_eq!(queue.try_pop().ok(), model.pop_front()),
                    2 => {
                        let count = random.below(2 * capacity) as u64 % 50;
                        let mut batch: Vec<_> = (next..next + count).collect();
                        let fits = (bound - model.len()).min(count as usize);
                        let expected = if fits == 0 && count != 0 { Err(TryPushError::Full(())) } else { Ok(fits) };
                        assert_eq!(queue.try_push_batch(&mut batch), expected);
                        model.extend(next..next + fits as u64);
                        next += fits as u64;
                        assert!(batch.into_iter().eq(next..next + count - fits as u64));
                    }
                    3 => {
                        let max = random.below(2 * capacity) % 50;
                        let there = max.min(model.len());
                        let expected = if there == 0 && max != 0 { Err(TryPopError::Empty) } else { Ok(there) };
                        popped.clear();
                        assert_eq!(queue.try_pop_batch(&mut popped, max), expected);
                        assert!(popped.iter().copied().eq(model.drain(..there)));
                    }
                    _ => assert_eq!(queue.len(), model.len()),
                }
            }
            queue.close();
            while let Some(item) = model.pop_front() {
                assert_eq!(queue.try_pop(), Ok(item));
            }
            assert_eq!(queue.try_pop(), Err(TryPopError::Closed));
        }
    }
}

pub(crate) fn positions_wrap_around<C: Case>() {
    for capacity in [1, 2, 3, 5, 8] {
        for back in 0..40 {
            let queue = queue_from::<C, usize>(capacity, usize::MAX - back);
            for item in 0..60 {
                queue.try_push(item).unwrap();
                if item % capacity == capacity - 1 {
                    assert_eq!(queue.len(), capacity);
                    (item + 1 - capacity..=item).for_each(|item| assert_eq!(queue.try_pop(), Ok(item)));
                    assert_eq!((queue.len(), queue.try_pop()), (0, Err(TryPopError::Empty)));
                }
            }
        }
    }
}

pub(crate) fn capacity_zero_and_absurd_ones_are_refused<C: Case>() {
    let make = |capacity| {
        mpmc::any_queue::<u64, C::Design, Adaptive, mpmc::NoStats>(capacity, Options::new()).map(|_| ()).unwrap_err()
    };
    assert_eq!(make(0), ChannelError::ZeroCapacity);
    for capacity in [UNBOUNDED + 1, usize::MAX / 2 + 1, usize::MAX] {
        assert_eq!(make(capacity), ChannelError::TooLarge);
    }
    if C::BOUNDED {
        assert_eq!(make(UNBOUNDED), ChannelError::TooLarge);
    }
}

pub(crate) fn what_is_counted<C: Case>() {
    let queue: Under<C, u64, Adaptive, Counting> = mpmc::any_queue(2, Options::new().stats::<Counting>()).unwrap();
    queue.push(1).unwrap();
    assert_eq!(queue.try_push_batch(&mut vec![2]), Ok(1));
    let mut refused = 0;
    if C::BOUNDED {
        queue.try_push(3).unwrap_err();
        refused = 1;
    }
    let mut items = Vec::new();
    assert_eq!(queue.pop_batch(&mut items, 5), Ok(2));
    queue.try_pop().unwrap_err();
    assert_eq!(queue.try_push_batch(&mut Vec::new()), Ok(0));
    assert_eq!(queue.try_pop_batch(&mut items, 0), Ok(0));
    let stats = queue.stats();
    assert_eq!((stats.push.attempts, stats.push.failures, stats.push.items), (2 + refused, refused, 2));
    assert_eq!((stats.pop.attempts, stats.pop.failures, stats.pop.items), (2, 1, 2));
    assert_eq!((stats.push.sleeps, stats.pop.sleeps, stats.push.retries, stats.pop.retries), (0, 0, 0, 0));
    // A thread that does not run until its time is over does not come to sleep.
    for _ in 0..100 {
        queue.pop_timeout(Duration::from_millis(5)).unwrap_err();
        if queue.stats().pop.sleeps > 0 || !C::SLEEPS {
            break;
        }
    }
    let stats = queue.stats();
    assert_eq!(stats.pop.sleeps > 0, C::SLEEPS);
    assert_eq!(stats.pop.attempts - 1, stats.pop.failures);
}

pub(crate) fn a_thread_pops_what_it_pushed<C: Case>() {
    let queue = queue::<C, u64>(16);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let queue = &queue;
            scope.spawn(move || {
                for i in 0..2_000 {
                    // At most four are inside, so there is room; and the own one or another's in its place is there.
                    queue.push(thread * 10_000 + i).unwrap();
                    loop {
                        match queue.try_pop() {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error, TryPopError::Busy, "an own push was not found"),
                        }
                    }
                }
            });
        }
    });
    assert!(queue.is_empty());
}

/// The queue is full but for what these threads have popped and not pushed back: each finds the room it made. A pop of
/// a large item is in its middle for long.
pub(crate) fn a_thread_pushes_where_it_popped<C: Case>() {
    let queue = queue::<C, Page>(4);
    queue.push_batch(&mut (0..4).map(|item| [item; 512]).collect()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..3_000 {
                    let mut item = queue.pop().unwrap();
                    while let Err(refused) = queue.try_push(item) {
                        assert!(refused.is_busy(), "the room that a pop made was not found");
                        item = refused.into_inner();
                    }
                }
            });
        }
    });
    assert_eq!(queue.len(), 4);
}

pub(crate) fn debug_shows_no_item<C: Case>() {
    fn text<D: Design<String>>(queue: &mpmc::Queue<String, D>) -> String {
        format!("{queue:?} {:?}", queue.try_push("secret".into()))
    }
    let queue = queue::<C, String>(1);
    queue.push("secret".into()).unwrap();
    assert!(!text(&queue).contains("secret"));
}
