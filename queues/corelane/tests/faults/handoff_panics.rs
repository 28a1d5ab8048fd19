//! A thread of a hand-off structure panics: between any two calls, with tickets in hand, and where a call runs the
//! user's code. Its requests are withdrawn with it, and the others meet as before.

use crate::book::{Book, Item};
use crate::fuse::{burn, tick, with_every_fuse};
use corelane::handoff::{Exchanger, Fairness, SynchronousQueue, TransferQueue, WaitLimit};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const MOMENT: Duration = Duration::from_micros(50);

/// A hand-off structure under test.
pub(crate) trait Meeting: 'static {
    fn queue<T: Send>() -> SynchronousQueue<T>;
}

/// Puts and takes in every way.
fn work(queue: &SynchronousQueue<Item>, book: &Book) {
    for way in 0..24 {
        tick();
        match way % 8 {
            0 => drop(queue.put_timeout(book.item(), MOMENT)),
            1 => {
                let _ = queue.take_timeout(MOMENT).map(Item::receive);
            }
            2 => {
                let mut ticket = queue.reserve_put(book.item());
                tick();
                if ticket.try_followup().is_none() {
                    tick();
                    drop(ticket.wait_with(&WaitLimit::new().timeout(MOMENT)));
                }
            }
            3 => {
                let mut ticket = queue.reserve_take();
                tick();
                match ticket.try_followup() {
                    Some(item) => drop(item.map(Item::receive)),
                    None => drop(ticket.abort().map(Item::receive)),
                }
            }
            4 => {
                let mut items = Vec::new();
                for _ in 0..3 {
                    tick();
                    items.push(book.item());
                }
                let _ = queue.try_put_batch(&mut items);
                tick();
            }
            5 => {
                let mut items = Vec::new();
                let _ = queue.try_take_batch(&mut items, 2);
                items.iter().for_each(Item::note);
            }
            6 => {
                let _put = queue.reserve_put(book.item());
                tick();
            }
            _ => {
                let _take = queue.reserve_take();
                tick();
            }
        }
    }
}

pub(crate) fn a_thread_ends_anywhere<C: Meeting>() {
    with_every_fuse(|ticks| {
        let (book, gone) = (Book::new(10_000), Book::new(200));
        let queue = C::queue();
        let over = AtomicBool::new(false);
        let blown = thread::scope(|scope| {
            let victim = scope.spawn(|| burn(ticks, || work(&queue, &gone)).is_none());
            let others = scope.spawn(|| {
                while !over.load(SeqCst) && book.made() < 9_000 {
                    drop(queue.put_timeout(book.item(), MOMENT));
                }
            });
            let takes = scope.spawn(|| {
                while !over.load(SeqCst) {
                    let _ = queue.take_timeout(MOMENT).map(Item::receive);
                }
            });
            let blown = victim.join().unwrap();
            over.store(true, SeqCst);
            others.join().unwrap();
            takes.join().unwrap();
            blown
        });
        assert_eq!((queue.waiting_puts(), queue.waiting_takes()), (0, 0));
        // A pair meets as if nothing had been.
        thread::scope(|scope| {
            scope.spawn(|| queue.put(book.item()).expect("it is open"));
            queue.take().expect("it is open").receive();
        });
        drop(queue);
        book.assert_each_dropped_once();
        gone.assert_each_dropped_once();
        blown
    });
}

#[test]
fn a_thread_of_a_transfer_queue_ends_anywhere() {
    with_every_fuse(|ticks| {
        let (book, gone) = (Book::new(1_000), Book::new(200));
        let queue = TransferQueue::new();
        let blown = thread::scope(|scope| {
            let victim = scope.spawn(|| {
                burn(ticks, || {
                    for way in 0..15 {
                        tick();
                        match way % 5 {
                            0 => drop(queue.push(gone.item())),
                            1 => drop(queue.put_timeout(gone.item(), MOMENT)),
                            2 => {
                                let _ticket = queue.reserve_put(gone.item());
                                tick();
                            }
                            3 => drop(queue.take_timeout(MOMENT).map(Item::receive)),
                            _ => {
                                let mut ticket = queue.reserve_take();
                                tick();
                                if let Some(Ok(item)) = ticket.try_followup() {
                                    item.receive();
                                }
                            }
                        }
                    }
                })
                .is_none()
            });
            let consumer = scope.spawn(|| {
                while let Ok(item) = queue.take() {
                    item.receive();
                }
            });
            for i in 0..60 {
                match i % 2 {
                    0 => queue.push(book.item()).expect("it is open"),
                    _ => queue.put(book.item()).expect("it is open"),
                }
            }
            let blown = victim.join().unwrap();
            queue.close();
            consumer.join().unwrap();
            blown
        });
        // A ticket of the victim may have matched one of these: then it went with it.
        assert!(book.missing().len() <= usize::from(blown) + 3);
        drop(queue);
        book.assert_each_dropped_once();
        gone.assert_each_dropped_once();
        blown
    });
}

#[test]
fn a_thread_of_an_exchanger_ends_anywhere() {
    with_every_fuse(|ticks| {
        let (book, gone) = (Book::new(100_000), Book::new(200));
        let exchanger = Exchanger::new();
        let over = AtomicBool::new(false);
        let swap = |item| exchanger.exchange_with(item, &WaitLimit::new().timeout(MOMENT));
        let blown = thread::scope(|scope| {
            let victim = scope.spawn(|| {
                burn(ticks, || {
                    for _ in 0..12 {
                        tick();
                        drop(swap(gone.item()).map(Item::receive));
                    }
                })
                .is_none()
            });
            scope.spawn(|| {
                while !over.load(SeqCst) && book.made() < 90_000 {
                    drop(swap(book.item()).map(Item::receive));
                }
            });
            let blown = victim.join().unwrap();
            over.store(true, SeqCst);
            blown
        });
        thread::scope(|scope| {
            scope.spawn(|| exchanger.exchange(book.item()).expect("it is open").receive());
            exchanger.exchange(book.item()).expect("it is open").receive();
        });
        drop(exchanger);
        book.assert_each_dropped_once();
        gone.assert_each_dropped_once();
        blown
    });
}

/// First come, first served.
pub(crate) struct Fair;
/// Last come, first served.
pub(crate) struct Unfair;
/// The same, with places beside the stack.
pub(crate) struct Eliminating;

impl Meeting for Fair {
    fn queue<T: Send>() -> SynchronousQueue<T> {
        SynchronousQueue::new(Fairness::Fair)
    }
}

impl Meeting for Unfair {
    fn queue<T: Send>() -> SynchronousQueue<T> {
        SynchronousQueue::new(Fairness::Unfair)
    }
}

impl Meeting for Eliminating {
    fn queue<T: Send>() -> SynchronousQueue<T> {
        SynchronousQueue::with_elimination()
    }
}
