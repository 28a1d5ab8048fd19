//! A thread of a hand-off structure panics: between any two calls, with tickets in hand, and where a call runs the
//! user's code. Its requests are withdrawn with it, and the others meet as before.

use crate::book::{Book, Item};
use crate::fuse::{burn, tick, with_every_fuse};
use crate::meeting::Queue;
use corelane::handoff::{Exchanger, Fairness, SynchronousQueue, TransferQueue, WaitLimit};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

fn moment() -> WaitLimit<'static> {
    WaitLimit::new().timeout(Duration::from_micros(50))
}

/// Puts and takes in every way.
fn work<Q: Queue<Item>>(queue: &Q, book: &Book) {
    for way in 0..27 {
        tick();
        match way % 9 {
            0 => drop(queue.put_with(book.item(), &moment())),
            8 => drop(queue.leave(book.item())),
            1 => {
                let _ = queue.take_with(&moment()).map(Item::receive);
            }
            2 => {
                let mut ticket = queue.reserve_put(book.item());
                tick();
                if ticket.try_followup().is_none() {
                    tick();
                    drop(ticket.wait_with(&moment()));
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
                    drop(queue.put_with(book.item(), &moment()));
                }
            });
            let takes = scope.spawn(|| {
                while !over.load(SeqCst) {
                    let _ = queue.take_with(&moment()).map(Item::receive);
                }
            });
            let blown = victim.join().unwrap();
            over.store(true, SeqCst);
            others.join().unwrap();
            takes.join().unwrap();
            blown
        });
        if <C::Queue<Item> as Queue<Item>>::DRAINS {
            let mut left = Vec::new();
            let _ = queue.try_take_batch(&mut left, usize::MAX);
            left.into_iter().for_each(Item::receive);
        }
        assert_eq!((queue.puts(), queue.waiting_takes()), (0, 0));
        // A pair meets as if nothing had been.
        thread::scope(|scope| {
            scope.spawn(|| assert!(queue.put_with(book.item(), &WaitLimit::new()).is_ok()));
            queue.take_with(&WaitLimit::new()).expect("it is open").receive();
        });
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
        let swap = |item| exchanger.exchange_with(item, &moment());
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

/// A hand-off queue under test.
pub(crate) trait Meeting: 'static {
    type Queue<T: Send>: Queue<T>;

    fn queue<T: Send>() -> Self::Queue<T>;
}

macro_rules! meeting {
    ($name:ident: $queue:ident by $make:expr) => {
        pub(crate) struct $name;

        impl Meeting for $name {
            type Queue<T: Send> = $queue<T>;

            fn queue<T: Send>() -> $queue<T> {
                $make
            }
        }
    };
}

meeting!(Fair: SynchronousQueue by SynchronousQueue::new(Fairness::Fair));
meeting!(Unfair: SynchronousQueue by SynchronousQueue::new(Fairness::Unfair));
meeting!(Eliminating: SynchronousQueue by SynchronousQueue::with_elimination());
meeting!(Transfer: TransferQueue by TransferQueue::new());
