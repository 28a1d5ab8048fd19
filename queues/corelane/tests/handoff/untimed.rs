//! Puts and takes that nothing limits.

use crate::support::{Mode, T, until};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

pub(crate) fn s6_a_put_ends_when_its_item_is_taken(mode: Mode) {
    let queue = mode.queue();
    assert_eq!(queue.fairness(), mode.fairness());
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
