//! Many items a call.

use crate::case::{Case, NAP, queue, queue_from};
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

pub(crate) fn a_batch_goes_in_order<C: Case>() {
    let queue = queue::<C, u64>(100);
    let mut batch: Vec<_> = (0..100).collect();
    assert_eq!(queue.push_batch(&mut batch), Ok(()));
    assert!(batch.is_empty() && batch.capacity() >= 100);
    assert_eq!(queue.len(), 100);
    let mut items = Vec::new();
    assert_eq!(queue.pop_batch(&mut items, 100), Ok(100));
    assert!(items.into_iter().eq(0..100));
}

pub(crate) fn what_does_not_fit_stays_in_the_vector<C: Case>() {
    if !C::BOUNDED {
        return;
    }
    for inside in 0..=5 {
        let queue = queue::<C, u64>(5);
        (0..inside).for_each(|item| queue.try_push(item).unwrap());
        let mut batch: Vec<_> = (inside..20).collect();
        let fit = 5 - inside as usize;
        let expected = if fit == 0 { Err(TryPushError::Full(())) } else { Ok(fit) };
        assert_eq!(queue.try_push_batch(&mut batch), expected);
        assert!(batch.iter().copied().eq(5..20));
        let time_out = queue.push_batch_timeout(&mut batch, NAP);
        assert_eq!(time_out, Err(PushTimeoutError::Timeout(())));
        assert!(batch.into_iter().eq(5..20));
        (0..5).for_each(|item| assert_eq!(queue.try_pop(), Ok(item)));
    }
}

pub(crate) fn a_pop_takes_at_most_max_and_appends<C: Case>() {
    let queue = queue::<C, u64>(10);
    queue.push_batch(&mut (0..10).collect()).unwrap();
    let mut items = vec![99];
    assert_eq!(queue.pop_batch(&mut items, 3), Ok(3));
    assert_eq!(queue.try_pop_batch(&mut items, 4), Ok(4));
    assert_eq!(queue.pop_batch_timeout(&mut items, usize::MAX, NAP), Ok(3));
    assert_eq!(items, [99, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(queue.try_pop_batch(&mut items, 1), Err(TryPopError::Empty));
    assert_eq!(queue.pop_batch_timeout(&mut items, 1, NAP), Err(PopTimeoutError::Timeout));
    assert_eq!(items.len(), 11);
}

pub(crate) fn nothing_is_a_batch_too<C: Case>() {
    let queue = queue::<C, u64>(1);
    let mut none = Vec::new();
    for _ in 0..2 {
        assert_eq!(queue.push_batch(&mut none), Ok(()));
        assert_eq!(queue.try_push_batch(&mut none), Ok(0));
        assert_eq!(queue.push_batch_timeout(&mut none, NAP), Ok(()));
        assert_eq!(queue.push_batch(&mut Vec::with_capacity(3)), Ok(()));
        assert_eq!(queue.pop_batch(&mut none, 0), Ok(0));
        assert_eq!(queue.try_pop_batch(&mut none, 0), Ok(0));
        assert_eq!(queue.pop_batch_timeout(&mut none, 0, NAP), Ok(0));
        queue.close();
    }
    assert_eq!(queue.pop_batch(&mut none, 1), Err(Closed(())));
}

pub(crate) fn a_batch_larger_than_the_queue_waits_for_room<C: Case>() {
    for capacity in [1, 3, 64] {
        let queue = queue::<C, u64>(capacity);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut batch: Vec<_> = (0..1_000).collect();
                assert_eq!(queue.push_batch(&mut batch), Ok(()));
                assert!(batch.is_empty());
                queue.push_batch(&mut (1_000..2_000).collect()).unwrap();
                queue.close();
            });
            let mut items = Vec::new();
            while queue.pop_batch(&mut items, 7).is_ok() {}
            assert!(items.into_iter().eq(0..2_000));
        });
    }
}

pub(crate) fn an_iterator_that_panics_has_pushed_nothing<C: Case>() {
    let queue = queue::<C, Box<u64>>(10);
    let items = (0..5).map(|item| if item == 3 { panic!("no more") } else { Box::new(item) });
    catch_unwind(AssertUnwindSafe(|| queue.push_batch(&mut items.collect()))).unwrap_err();
    assert!(queue.is_empty());
    queue.push(Box::new(7)).unwrap();
    assert_eq!(queue.pop(), Ok(Box::new(7)));
}

pub(crate) fn an_iterator_may_use_the_queue<C: Case>() {
    let queue = queue::<C, u64>(4);
    queue.push_batch(&mut (0..4).collect()).unwrap();
    queue.push_batch(&mut (0..4).map(|_| queue.try_pop().unwrap() + 10).collect()).unwrap();
    let mut items = Vec::new();
    queue.pop_batch(&mut items, 9).unwrap();
    assert_eq!(items, [10, 11, 12, 13]);
}

pub(crate) fn batches_meet_the_wrap_around<C: Case>() {
    for capacity in [1, 2, 3, 5, 8] {
        for back in 0..24 {
            let queue = queue_from::<C, usize>(capacity, usize::MAX - back);
            let (mut pushed, mut popped) = (0, Vec::new());
            for round in 0..40 {
                let size = 1 + round % (capacity + 2);
                let mut batch: Vec<_> = (pushed..pushed + size).collect();
                pushed += queue.try_push_batch(&mut batch).unwrap_or(0);
                queue.try_pop_batch(&mut popped, 1 + round % 3).ok();
                assert_eq!(queue.len(), pushed - popped.len());
            }
            queue.try_pop_batch(&mut popped, usize::MAX).ok();
            assert!(popped.into_iter().eq(0..pushed));
        }
    }
}

/// The close comes while a batch waits for room: what went in can be popped, the rest is still in the vector.
pub(crate) fn a_batch_against_the_close<C: Case>() {
    if !C::BOUNDED {
        return;
    }
    let queue = queue::<C, u64>(4);
    thread::scope(|scope| {
        let pusher = scope.spawn(|| {
            let mut batch: Vec<_> = (0..10).collect();
            assert_eq!(queue.push_batch(&mut batch), Err(Closed(())));
            batch
        });
        crate::case::until("the queue is full", || queue.len() == 4);
        assert_eq!(queue.pop(), Ok(0));
        crate::case::until("the queue is full", || queue.len() == 4);
        queue.close();
        assert!(pusher.join().unwrap().into_iter().eq(5..10));
        let mut items = Vec::new();
        assert_eq!(queue.pop_batch(&mut items, 9), Ok(4));
        assert!(items.into_iter().eq(1..5));
        assert_eq!(queue.pop(), Err(Closed(())));
    });
}
