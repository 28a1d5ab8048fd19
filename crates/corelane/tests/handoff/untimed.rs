//! Puts and takes without an end to patience.

use crate::support::{LONG, Mode, T, until};
use corelane::error::{OfferError, PopError};
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

pub(crate) fn s2_an_offer_without_a_taker_returns_its_item(mode: Mode) {
    let queue = mode.queue();
    assert_eq!(queue.offer(7), Err(OfferError::NoTaker(7)));
    assert_eq!(queue.waiting_puts(), 0);
}

pub(crate) fn s3_try_extend_stops_at_the_first_refusal(mode: Mode) {
    let queue = mode.queue();
    let mut items = 0..3;
    assert_eq!(queue.try_extend(&mut items), Err(OfferError::NoTaker(0)));
    assert_eq!(items, 1..3);
    let mut ticket = queue.reserve_take();
    assert_eq!(queue.try_extend(&mut items), Err(OfferError::NoTaker(2)));
    assert_eq!(ticket.try_followup(), Some(Ok(1)));
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

pub(crate) fn s9_a_poll_without_a_putter_finds_nothing(mode: Mode) {
    let queue = mode.queue::<u32>();
    assert_eq!(queue.poll(), Err(PopError::Empty));
    assert_eq!(queue.waiting_takes(), 0);
}

pub(crate) fn s13_an_offer_fails_and_a_timed_one_meets_a_take(mode: Mode) {
    let queue = mode.queue();
    thread::scope(|scope| {
        assert!(queue.offer(1).is_err());
        scope.spawn(|| assert_eq!(queue.offer_timeout(1, LONG), Ok(())));
        assert_eq!(queue.take(), Ok(1));
    });
}

pub(crate) fn s14_a_poll_fails_and_a_timed_one_meets_a_put(mode: Mode) {
    let queue = mode.queue();
    thread::scope(|scope| {
        assert!(queue.poll().is_err());
        scope.spawn(|| assert_eq!(queue.poll_timeout(LONG), Ok(2)));
        queue.put(2).unwrap();
    });
}

pub(crate) fn s15_drain_releases_the_puts_that_wait(mode: Mode) {
    let queue = mode.queue();
    let mut items = vec![100];
    assert_eq!(queue.drain_into(&mut items, 10), 0);
    thread::scope(|scope| {
        for item in 0..3 {
            let queue = &queue;
            scope.spawn(move || queue.put(item).unwrap());
        }
        until("three puts wait", || queue.waiting_puts() == 3);
        assert_eq!(queue.drain_into(&mut items, 0), 0);
        assert_eq!(queue.drain_into(&mut items, 2), 2);
        assert_eq!(queue.drain_into(&mut items, 2), 1);
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
    queue.offer(item()).unwrap();
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
                // The take began behind the other thread's store, whoever of the two waited.
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
