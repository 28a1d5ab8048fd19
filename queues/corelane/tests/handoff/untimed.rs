//! Puts and takes that nothing limits.

use crate::support::{LONG, Mode, T, until};
use corelane::error::{TryPopError, TryPushError};
use corelane::handoff::SynchronousQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

pub(crate) fn s1_a_new_queue_is_empty(mode: Mode) {
    let queue = mode.queue::<u32>();
    assert_eq!((queue.waiting_puts(), queue.waiting_takes()), (0, 0));
    assert!(!queue.is_closed());
    assert_eq!(queue.fairness(), mode.fairness());
}

pub(crate) fn s2_a_try_put_without_a_taker_returns_its_item(mode: Mode) {
    let queue = mode.queue();
    assert_eq!(queue.try_put(7), Err(TryPushError::Full(7)));
    assert_eq!(queue.waiting_puts(), 0);
}

pub(crate) fn s3_a_batch_stops_at_the_first_refusal(mode: Mode) {
    let queue = mode.queue();
    let mut items = vec![0, 1, 2, 3];
    assert_eq!(queue.try_put_batch(&mut items), Err(TryPushError::Full(())));
    assert_eq!(items, [0, 1, 2, 3]);
    let mut ticket = queue.reserve_take();
    assert_eq!(queue.try_put_batch(&mut items), Ok(1));
    assert_eq!((ticket.try_followup(), &items[..]), (Some(Ok(0)), &[1, 2, 3][..]));
    let mut tickets = [(); 2].map(|()| queue.reserve_take());
    assert_eq!(queue.try_put_batch(&mut items), Ok(2));
    assert_eq!(items, [3]);
    let mut taken = tickets.each_mut().map(|ticket| ticket.try_followup().unwrap().unwrap());
    taken.sort_unstable();
    assert_eq!(taken, [1, 2]);
    // More wait than there are items.
    let tickets = [(); 2].map(|()| queue.reserve_take());
    assert_eq!(queue.try_put_batch(&mut items), Ok(1));
    assert!(items.is_empty());
    assert_eq!((queue.try_put_batch(&mut items), queue.waiting_takes()), (Ok(0), 1));
    drop(tickets);
    queue.close();
    assert_eq!(queue.try_put_batch(&mut items), Ok(0));
    items.push(4);
    assert_eq!(queue.try_put_batch(&mut items), Err(TryPushError::Closed(())));
    assert_eq!(items, [4]);
}

pub(crate) fn s6_a_put_ends_when_its_item_is_taken(mode: Mode) {
    let queue = mode.queue();
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        let putter = scope.spawn(|| {
            queue.put(5).unwrap();
            taken.load(Relaxed)
        });
        until("a put waits", || queue.waiting_puts() == 1);
        thread::sleep(T);
        assert!(!putter.is_finished());
        taken.store(1, Relaxed);
        assert_eq!(queue.take(), Ok(5));
        assert_eq!(putter.join().unwrap(), 1);
    });
    assert_eq!(queue.waiting_puts(), 0);
}

pub(crate) fn s9_a_try_take_without_a_putter_finds_nothing(mode: Mode) {
    let queue = mode.queue::<u32>();
    assert_eq!(queue.try_take(), Err(TryPopError::Empty));
    assert_eq!(queue.waiting_takes(), 0);
}

pub(crate) fn s13_a_try_put_fails_and_a_timed_put_meets_a_take(mode: Mode) {
    let queue = mode.queue();
    thread::scope(|scope| {
        assert!(queue.try_put(1).is_err());
        scope.spawn(|| assert_eq!(queue.put_timeout(1, LONG), Ok(())));
        assert_eq!(queue.take(), Ok(1));
    });
}

pub(crate) fn s14_a_try_take_fails_and_a_timed_take_meets_a_put(mode: Mode) {
    let queue = mode.queue();
    thread::scope(|scope| {
        assert!(queue.try_take().is_err());
        scope.spawn(|| assert_eq!(queue.take_timeout(LONG), Ok(2)));
        queue.put(2).unwrap();
    });
}

pub(crate) fn s15_a_batch_releases_the_puts_that_wait(mode: Mode) {
    let queue = mode.queue();
    let mut items = vec![100];
    assert_eq!(queue.try_take_batch(&mut items, 10), Err(TryPopError::Empty));
    thread::scope(|scope| {
        for item in 0..3 {
            let queue = &queue;
            scope.spawn(move || queue.put(item).unwrap());
        }
        until("three puts wait", || queue.waiting_puts() == 3);
        assert_eq!(queue.try_take_batch(&mut items, 0), Ok(0));
        assert_eq!(queue.try_take_batch(&mut items, 2), Ok(2));
        assert_eq!(queue.try_take_batch(&mut items, 2), Ok(1));
    });
    items[1..].sort_unstable();
    assert_eq!(items, [100, 0, 1, 2]);
}

fn passes<V: Send + PartialEq + std::fmt::Debug>(mode: Mode, mut item: impl FnMut() -> V) {
    let queue = mode.queue();
    thread::scope(|scope| {
        // A take that waits, and a put that waits: two ways to move.
        let (first, second) = (item(), item());
        scope.spawn(|| {
            queue.put(first).unwrap();
            queue.put(second).unwrap();
        });
        until("a put waits", || queue.waiting_puts() == 1);
        assert_eq!(queue.take().unwrap(), item());
        assert_eq!(queue.take().unwrap(), item());
    });
    let mut ticket = queue.reserve_take();
    queue.try_put(item()).unwrap();
    assert_eq!(ticket.try_followup().unwrap().unwrap(), item());
    let ticket = queue.reserve_put(item());
    assert_eq!(ticket.abort().unwrap(), item());
}

#[repr(align(512))]
#[derive(PartialEq, Debug)]
struct Aligned(u8);

pub(crate) fn s28_items_of_any_kind(mode: Mode) {
    passes(mode, || ());
    passes(mode, || 7_u8);
    passes(mode, || [9_u64; 128]);
    passes(mode, || Aligned(3));
    passes(mode, || String::from("not Copy"));
    passes(mode, || None::<Box<u32>>);
}

pub(crate) fn s28_a_queue_travels_through_a_queue(mode: Mode) {
    let outer = mode.queue();
    thread::scope(|scope| {
        scope.spawn(|| {
            let inner: Arc<SynchronousQueue<u32>> = outer.take().unwrap();
            inner.put(11).unwrap();
        });
        let inner = Arc::new(mode.queue());
        outer.put(inner.clone()).unwrap();
        assert_eq!(inner.take(), Ok(11));
    });
}

pub(crate) fn s28_a_taker_puts_before_it_takes_again(mode: Mode) {
    let (there, back) = (mode.queue(), mode.queue());
    thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok(item) = there.take() {
                back.put(item + 1).unwrap();
            }
        });
        for item in 0..1000 {
            there.put(item).unwrap();
            assert_eq!(back.take(), Ok(item + 1));
        }
        there.close();
    });
}

pub(crate) fn s30_what_came_before_is_visible_on_both_sides(mode: Mode) {
    let queue = mode.queue();
    let (before_put, before_take) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1..=5_000 {
                before_put.store(i, Relaxed);
                queue.put(()).unwrap();
                // The take began behind the other thread's store, whichever of the two waited.
                assert!(before_take.load(Relaxed) >= i);
            }
        });
        for i in 1..=5_000 {
            before_take.store(i, Relaxed);
            queue.take().unwrap();
            assert!(before_put.load(Relaxed) >= i);
        }
    });
}
