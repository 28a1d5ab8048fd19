//! A producer that waits for more than one slot.

use crate::case::{Case, LARGE, Rx, Tx, fill, options, queue, queue_with};
use corelane::wait::{Next, Park, Strategy, WaitState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const NAP: Duration = Duration::from_millis(8);

fn parking<C: Case>(capacity: usize) -> (Tx<u64, C, Park>, Rx<u64, C, Park>) {
    queue_with::<u64, C, _>(capacity, options::<C, _>(capacity, Park).start_at(usize::MAX - 3))
}

pub(crate) fn is_there_at_once_where_slots_are_free<C: Case>() {
    for capacity in [1, 2, 63, 100, LARGE] {
        let (mut tx, mut rx) = parking::<C>(capacity);
        assert_eq!(tx.wait_for_room(capacity), Ok(()));
        assert_eq!(tx.wait_for_room(1), Ok(()));
        fill(&mut tx, 0);
        assert_eq!(tx.wait_for_room(0), Ok(()), "no slot is always free");
        while rx.try_pop().is_ok() {}
        assert_eq!(tx.wait_for_room(capacity), Ok(()));
        assert_eq!(tx.try_push_batch(&mut (0..2 * capacity as u64).collect()), Ok(capacity));
    }
}

pub(crate) fn comes_when_so_many_slots_are_free<C: Case>() {
    for (capacity, slots) in [(2, 2), (8, 3), (63, 1), (63, 30), (63, 63), (100, 50), (LARGE, LARGE / 2)] {
        let (mut tx, mut rx) = parking::<C>(capacity);
        fill(&mut tx, 0);
        let lag = tx.release_lag();
        let woken = AtomicBool::new(false);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut tx = tx;
                assert_eq!(tx.wait_for_room(slots), Ok(()));
                woken.store(true, SeqCst);
                assert!(capacity - tx.len() >= slots);
                assert_eq!(tx.try_push_batch(&mut (0..slots as u64).collect()).unwrap_or(0), slots);
                tx
            });
            thread::sleep(NAP);
            for _ in 0..slots - 1 {
                rx.try_pop().unwrap();
            }
            thread::sleep(NAP);
            assert!(!woken.load(SeqCst), "only {} slots of {slots} are free", slots - 1);
            for _ in 0..=lag.min(capacity - slots) {
                rx.try_pop().unwrap();
            }
            if lag > capacity - slots {
                assert!(rx.try_pop().is_err(), "the queue is empty, so its consumer tells");
            }
            drop(waiter.join().unwrap());
        });
    }
}

pub(crate) fn beyond_the_capacity_panics<C: Case>() {
    let (mut tx, mut rx) = queue::<u64, C>(10);
    catch_unwind(AssertUnwindSafe(|| tx.wait_for_room(11))).unwrap_err();
    tx.push(1).unwrap();
    assert_eq!(rx.pop(), Ok(1));
}

/// Parks, but panics as long as it is told to.
#[derive(Clone, Debug, Default)]
struct Fails(Arc<AtomicBool>);

impl Strategy for Fails {
    fn next(&self, state: &mut WaitState) -> Next {
        assert!(!self.0.load(SeqCst), "the strategy fails");
        Park.next(state)
    }
}

/// A later wait is for one slot again, whatever ended the wait for many.
pub(crate) fn a_wait_that_panics_is_forgotten<C: Case>() {
    let fails = Fails::default();
    let (mut tx, mut rx) = queue_with::<u64, C, _>(2, options::<C, _>(2, fails.clone()));
    fill(&mut tx, 0);
    fails.0.store(true, SeqCst);
    catch_unwind(AssertUnwindSafe(|| tx.wait_for_room(2))).unwrap_err();
    fails.0.store(false, SeqCst);
    assert_eq!(rx.try_pop(), Ok(0));
    // There is a free slot.
    let mut ends = [&mut tx];
    assert_eq!(crate::first::first(&mut ends, &Park, Some(Duration::ZERO)), Some(0));
    assert_eq!(tx.wait_for_room(1), Ok(()));
    tx.try_push(2).unwrap();
}
