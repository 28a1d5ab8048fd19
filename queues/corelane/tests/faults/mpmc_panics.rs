//! A thread of a shared queue panics: at every place where a call runs the user's code, and between any two. The others
//! go on, and the queue is whole: it holds as much as before, and no thread sleeps over an item.

use crate::Shared;
use crate::book::{Book, Item};
use crate::fuse::{Way, burn, tick, with_every_fuse};
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::mpmc::{self, Design, Options, Queue};
use std::panic::{AssertUnwindSafe, catch_unwind};

use std::thread;
use std::time::Duration;

type Under<C, T> = Queue<T, <C as Shared>::Design, Way>;

const MOMENT: Duration = Duration::from_micros(50);
const CAPACITY: usize = 5;

fn queue<C: Shared, T: Send>() -> Under<C, T>
where
    C::Design: Design<T>,
{
    mpmc::any_queue(CAPACITY, Options::new().wait(Way::Ticking).start_at(usize::MAX - 12)).expect("a good capacity")
}

/// Pushes and pops in every way.
fn work<C: Shared>(queue: &Under<C, Item>, book: &Book) {
    let receive = |items: Vec<Item>| items.iter().for_each(Item::note);
    for way in 0..24 {
        tick();
        match way % 8 {
            0 => drop(queue.push_timeout(book.item(), MOMENT)),
            1 => match queue.try_pop() {
                Ok(item) => item.receive(),
                Err(TryPopError::Empty | TryPopError::Busy) => {}
                Err(error) => panic!("{error}"),
            },
            2 => {
                let mut items = vec![book.item(), book.item(), book.item()];
                match queue.push_batch_timeout(&mut items, MOMENT) {
                    Ok(()) => assert!(items.is_empty()),
                    Err(PushTimeoutError::Timeout(())) => assert!(!items.is_empty()),
                    Err(error) => panic!("{error}"),
                }
            }
            3 => {
                let mut items = Vec::new();
                let _ = queue.pop_batch_timeout(&mut items, 2, MOMENT);
                receive(items);
            }
            4 => {
                let items = (0..2).map(|_| {
                    tick();
                    book.item()
                });
                queue.push_batch(&mut items.collect()).expect("it is open");
            }
            5 => match queue.pop_timeout(MOMENT) {
                Ok(item) => item.receive(),
                Err(PopTimeoutError::Timeout) => {}
                Err(error) => panic!("{error}"),
            },
            6 => match queue.try_push(book.item()) {
                Ok(()) | Err(TryPushError::Full(_) | TryPushError::Busy(_)) => {}
                Err(error) => panic!("{error}"),
            },
            _ => {
                let mut items = Vec::new();
                let _ = queue.try_pop_batch(&mut items, 3);
                receive(items);
            }
        }
    }
}

pub(crate) fn a_thread_ends_anywhere<C: Shared>() {
    const OTHERS: usize = 40;
    with_every_fuse(|ticks| {
        let (book, gone) = (Book::new(200), Book::new(200));
        let queue = queue::<C, Item>();
        let blown = thread::scope(|scope| {
            let victim = scope.spawn(|| burn(ticks, || work::<C>(&queue, &gone)).is_none());
            let consumer = scope.spawn(|| {
                while let Ok(item) = queue.pop() {
                    item.receive();
                }
            });
            for _ in 0..OTHERS {
                queue.push(book.item()).expect("it is open");
            }
            let blown = victim.join().unwrap();
            // A thread that the victim should have woken, and did not, would sleep now.
            for _ in 0..OTHERS {
                queue.push(book.item()).expect("it is open");
            }
            queue.close();
            consumer.join().unwrap();
            blown
        });
        assert_eq!(book.missing(), []);
        assert!(queue.is_empty());
        book.assert_each_dropped_once();
        gone.assert_each_dropped_once();
        blown
    });
}

/// The strategy panics while a batch waits for room.
pub(crate) fn a_batch_that_panics_leaves_the_rest_in_the_vector<C: Shared>() {
    for ticks in 0..9 {
        let queue = queue::<C, u64>();
        if !C::BOUNDED {
            return;
        }
        let mut items: Vec<_> = (0..2 * CAPACITY as u64).collect();
        let blown = burn(ticks, || queue.push_batch_timeout(&mut items, MOMENT)).is_none();
        assert!(blown || items.len() == CAPACITY);
        assert!(items.iter().copied().eq(2 * CAPACITY as u64 - items.len() as u64..2 * CAPACITY as u64));
        let mut popped = Vec::new();
        let _ = queue.try_pop_batch(&mut popped, usize::MAX);
        assert_eq!(popped.len() + items.len(), 2 * CAPACITY);
        assert!(popped.into_iter().eq(0..(2 * CAPACITY - items.len()) as u64));
    }
}

pub(crate) fn a_vector_that_cannot_grow_takes_nothing<C: Shared>() {
    let queue = queue::<C, ()>();
    (0..3).for_each(|_| queue.push(()).unwrap());
    let mut items = vec![(); usize::MAX];
    catch_unwind(AssertUnwindSafe(|| queue.try_pop_batch(&mut items, 2))).unwrap_err();
    assert_eq!(queue.len(), 3);
    let mut items = Vec::new();
    assert_eq!(queue.try_pop_batch(&mut items, usize::MAX), Ok(3));
    let capacity = if C::BOUNDED { CAPACITY } else { 100 };
    (0..capacity).for_each(|_| queue.try_push(()).unwrap());
    assert_eq!(queue.try_push(()).is_err(), C::BOUNDED);
    queue.close();
    assert_eq!(std::iter::from_fn(|| queue.pop().ok()).take(1000).count(), capacity + usize::from(!C::BOUNDED));
}
