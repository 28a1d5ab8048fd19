//! A thread of a queue with one producer and one consumer panics: at every place where a call runs the user's code, and
//! between any two.
//!
//! What the producer had pushed can be popped; what it had in hand is gone, once; the other end hears of the end, or,
//! where the panic is caught, notices nothing.

use crate::Case;
use crate::book::{Book, Item};
use crate::fuse::{Way, burn, tick, with_every_fuse};
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::spsc::{self, Options};
use std::thread;
use std::time::Duration;

type Tx<C> = spsc::Producer<Item, <C as Case>::Design, Way>;
type Rx<C> = spsc::Consumer<Item, <C as Case>::Design, Way>;

const ITEMS: usize = 30;
const CAPACITIES: [usize; 2] = [2, 9];
const MOMENT: Duration = Duration::from_micros(50);

fn queue<C: Case>(capacity: usize) -> (Tx<C>, Rx<C>) {
    let start = usize::MAX - 12;
    let options = Options::new().tuning(C::tuning(capacity, 1)).wait(Way::Ticking).start_at(start);
    spsc::any_channel::<Item, C::Design, _, _>(capacity, options).expect("a good capacity")
}

/// Pushes items in every way until there were enough, or the queue is closed. Returns whether it was. What a batch has
/// not pushed stays in `hand`, also when it panics.
fn produce<C: Case>(tx: &mut Tx<C>, book: &Book, hand: &mut Vec<Item>) -> bool {
    if tx.push_batch(hand).is_err() {
        return true;
    }
    let mut way = book.made();
    while book.made() < ITEMS {
        tick();
        way += 1;
        let closed = match way % 6 {
            0 => tx.push(book.item()).is_err(),
            1 => try_push::<C>(tx, book.item()),
            2 => push_in_time::<C>(tx, book.item()),
            3 => {
                hand.extend([book.item(), book.item(), book.item()]);
                tx.push_batch(hand).is_err()
            }
            4 => reserve::<C>(tx, book),
            _ => {
                let room = tx.capacity().min(2);
                tx.wait_for_room(room).is_err() || tx.push(book.item()).is_err()
            }
        };
        if closed {
            return true;
        }
        assert!(tx.len() <= tx.capacity());
    }
    false
}

fn try_push<C: Case>(tx: &mut Tx<C>, item: Item) -> bool {
    let (mut item, mut looks) = (item, 0);
    loop {
        match tx.try_push(item) {
            Ok(()) => return false,
            Err(TryPushError::Full(back)) => item = back,
            Err(_) => return true,
        }
        // Later in a wait nothing is different.
        if looks < 3 {
            looks += 1;
            tick();
        }
        thread::yield_now();
    }
}

fn push_in_time<C: Case>(tx: &mut Tx<C>, item: Item) -> bool {
    let mut item = item;
    loop {
        match tx.push_timeout(item, MOMENT) {
            Ok(()) => return false,
            Err(PushTimeoutError::Timeout(back)) => item = back,
            Err(_) => return true,
        }
    }
}

fn reserve<C: Case>(tx: &mut Tx<C>, book: &Book) -> bool {
    loop {
        match tx.try_reserve() {
            Ok(place) => {
                tick();
                return place.write(book.item()).is_err();
            }
            Err(TryPushError::Full(())) => {}
            Err(_) => return true,
        }
        if matches!(tx.wait_for_room(1), Err(Closed(()))) {
            return true;
        }
    }
}

/// Pops items in every way until the queue is closed and drained.
fn consume<C: Case>(rx: &mut Rx<C>) {
    let mut way = 0;
    loop {
        tick();
        way += 1;
        match way % 6 {
            0 => match rx.pop() {
                Ok(item) => item.receive(),
                Err(_) => return,
            },
            1 => match rx.try_pop() {
                Ok(item) => item.receive(),
                Err(TryPopError::Closed) => return,
                Err(_) => thread::yield_now(),
            },
            2 => match rx.pop_timeout(MOMENT) {
                Ok(item) => item.receive(),
                Err(PopTimeoutError::Closed) => return,
                Err(_) => {}
            },
            3 => {
                if let Ok(item) = rx.try_peek() {
                    tick();
                    item.pop().receive();
                }
            }
            4 => {
                if let Ok(item) = rx.try_peek() {
                    tick();
                    item.note();
                    item.release();
                }
            }
            _ => {
                if rx.wait_for_item().is_err() {
                    return;
                }
                let mut items = Vec::new();
                rx.try_pop_batch(&mut items, 3).unwrap_or(0);
                items.iter().for_each(Item::note);
            }
        }
        assert!(rx.len() <= rx.capacity());
    }
}

/// All but at most one were received: the one that the producer had in hand.
#[track_caller]
fn assert_received(book: &Book, gone: usize) {
    let missing = book.missing();
    assert!(missing.len() <= gone, "{missing:?} of {} were lost", book.made());
    book.assert_each_dropped_once();
}

pub(crate) fn a_producer_ends_anywhere<C: Case>() {
    for capacity in CAPACITIES {
        with_every_fuse(|ticks| {
            let book = Book::new(ITEMS + 3);
            let (tx, mut rx) = queue::<C>(capacity);
            let mut hand = Vec::new();
            let blown = thread::scope(|scope| {
                let producer = scope.spawn(|| {
                    burn(ticks, || {
                        let mut tx = tx;
                        produce::<C>(&mut tx, &book, &mut hand);
                        tx.close();
                        tick();
                    })
                    .is_none()
                });
                consume::<C>(&mut rx);
                producer.join().unwrap()
            });
            assert_eq!(rx.try_pop().err(), Some(TryPopError::Closed));
            drop(rx);
            hand.iter().for_each(Item::note);
            drop(hand);
            assert_received(&book, usize::from(blown));
            blown
        });
    }
}

pub(crate) fn a_producer_goes_on_after_a_panic_anywhere<C: Case>() {
    for capacity in CAPACITIES {
        with_every_fuse(|ticks| {
            let book = Book::new(2 * ITEMS);
            let (tx, mut rx) = queue::<C>(capacity);
            let blown = thread::scope(|scope| {
                let producer = scope.spawn(|| {
                    let (mut tx, mut hand) = (tx, Vec::new());
                    let blown = burn(ticks, || produce::<C>(&mut tx, &book, &mut hand)).is_none();
                    assert!(!tx.is_closed());
                    assert!(!produce::<C>(&mut tx, &book, &mut hand));
                    blown
                });
                consume::<C>(&mut rx);
                producer.join().unwrap()
            });
            drop(rx);
            assert_received(&book, usize::from(blown));
            blown
        });
    }
}

pub(crate) fn a_consumer_ends_anywhere<C: Case>() {
    for capacity in CAPACITIES {
        with_every_fuse(|ticks| {
            let book = Book::new(2 * ITEMS);
            let (tx, rx) = queue::<C>(capacity);
            let blown = thread::scope(|scope| {
                let consumer = scope.spawn(|| {
                    let rx = rx;
                    burn(ticks, || {
                        let mut rx = rx;
                        consume::<C>(&mut rx);
                    })
                    .is_none()
                });
                let mut tx = tx;
                if !produce::<C>(&mut tx, &book, &mut Vec::new()) {
                    tx.close();
                }
                let blown = consumer.join().unwrap();
                assert!(matches!(tx.try_push(book.item()), Err(TryPushError::Closed(_))));
                blown
            });
            // In order, so what came is a front of what was pushed.
            let received = (0..book.made()).take_while(|&id| book.received(id)).count();
            assert!((received..book.made()).all(|id| !book.received(id)));
            assert!(blown || received >= ITEMS);
            book.assert_each_dropped_once();
            blown
        });
    }
}

pub(crate) fn a_consumer_goes_on_after_a_panic_anywhere<C: Case>() {
    for capacity in CAPACITIES {
        with_every_fuse(|ticks| {
            let book = Book::new(ITEMS + 3);
            let (tx, rx) = queue::<C>(capacity);
            let blown = thread::scope(|scope| {
                let consumer = scope.spawn(|| {
                    let mut rx = rx;
                    let blown = burn(ticks, || consume::<C>(&mut rx)).is_none();
                    consume::<C>(&mut rx);
                    blown
                });
                let mut tx = tx;
                assert!(!produce::<C>(&mut tx, &book, &mut Vec::new()));
                drop(tx);
                consumer.join().unwrap()
            });
            assert_received(&book, 0);
            blown
        });
    }
}
