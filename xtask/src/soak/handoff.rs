//! Queues without a buffer: puts that meet takes, items that are left behind or waited for, and exchanges.

use super::episode::Episode;
use super::load::{Item, Mood, Random, dropped, timed};
use super::watch::{Doing, Watch};
use corelane::error::{PopTimeoutError, PushTimeoutError};
use corelane::handoff::{Exchanger, Fairness, SynchronousQueue, TransferQueue};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// The most threads on a side.
const MOST: u64 = 5;
/// The most nodes that this few threads may need at once, the first row included.
const NODES: usize = 1024;

/// The calls that all these queues have, under one name each.
trait Meets: Sync {
    fn put(&self, item: Item) -> bool;
    /// Returns whether the item came to a thread.
    fn try_put(&self, item: Item) -> bool;
    fn put_timeout(&self, item: Item, time: Duration) -> Result<(), PushTimeoutError<Item>>;
    fn ticket(&self, item: Item) -> bool;
    fn take(&self) -> Option<Item>;
    fn try_take(&self) -> Option<Item>;
    fn take_timeout(&self, time: Duration) -> Result<Item, PopTimeoutError>;
    fn take_ticket(&self) -> Option<Item>;
    fn close(&self);
    fn nodes(&self) -> usize;
    /// Whether no thread waits and no item is inside.
    fn is_idle(&self) -> bool;
}

impl Meets for SynchronousQueue<Item> {
    fn put(&self, item: Item) -> bool {
        self.put(item).is_ok()
    }

    fn try_put(&self, item: Item) -> bool {
        self.try_put(item).is_ok()
    }

    fn put_timeout(&self, item: Item, time: Duration) -> Result<(), PushTimeoutError<Item>> {
        self.put_timeout(item, time)
    }

    fn ticket(&self, item: Item) -> bool {
        self.reserve_put(item).abort().is_none()
    }

    fn take(&self) -> Option<Item> {
        self.take().ok()
    }

    fn try_take(&self) -> Option<Item> {
        self.try_take().ok()
    }

    fn take_timeout(&self, time: Duration) -> Result<Item, PopTimeoutError> {
        self.take_timeout(time)
    }

    fn take_ticket(&self) -> Option<Item> {
        self.reserve_take().abort()
    }

    fn close(&self) {
        self.close();
    }

    fn nodes(&self) -> usize {
        self.nodes()
    }

    fn is_idle(&self) -> bool {
        self.waiting_puts() == 0 && self.waiting_takes() == 0
    }
}

/// A transfer queue leaves the item behind where a synchronous queue waits. So a put may come and go, and a ticket,
/// too.
impl Meets for TransferQueue<Item> {
    fn put(&self, item: Item) -> bool {
        if item.0.is_multiple_of(2) { self.push(item).is_ok() } else { self.put(item).is_ok() }
    }

    fn try_put(&self, item: Item) -> bool {
        self.try_put(item).is_ok()
    }

    fn put_timeout(&self, item: Item, time: Duration) -> Result<(), PushTimeoutError<Item>> {
        self.put_timeout(item, time)
    }

    fn ticket(&self, item: Item) -> bool {
        self.reserve_put(item).abort().is_none()
    }

    fn take(&self) -> Option<Item> {
        self.take().ok()
    }

    fn try_take(&self) -> Option<Item> {
        self.try_take().ok()
    }

    fn take_timeout(&self, time: Duration) -> Result<Item, PopTimeoutError> {
        self.take_timeout(time)
    }

    fn take_ticket(&self) -> Option<Item> {
        self.reserve_take().abort()
    }

    fn close(&self) {
        self.close();
    }

    fn nodes(&self) -> usize {
        0
    }

    fn is_idle(&self) -> bool {
        self.is_empty() && self.waiting_takes() == 0
    }
}

pub(crate) fn fair(episode: &mut Episode<'_>) -> u64 {
    run(episode, &SynchronousQueue::new(Fairness::Fair))
}

pub(crate) fn unfair(episode: &mut Episode<'_>) -> u64 {
    run(episode, &SynchronousQueue::new(Fairness::Unfair))
}

pub(crate) fn eliminating(episode: &mut Episode<'_>) -> u64 {
    run(episode, &SynchronousQueue::with_elimination())
}

pub(crate) fn transfer(episode: &mut Episode<'_>) -> u64 {
    run(episode, &TransferQueue::new())
}

fn run(episode: &mut Episode<'_>, queue: &dyn Meets) -> u64 {
    let (watch, until) = (episode.watch, episode.until);
    let random = &mut episode.random;
    let (puts, takes) = (random.between(1, MOST), random.between(1, MOST));
    let over = AtomicBool::new(false);
    dropped();
    let (mut put_sum, mut taken_sum, mut taken_count, mut made, mut gone) = (0, 0, 0, 0, 0);
    thread::scope(|scope| {
        let over = &over;
        let putting: Vec<_> = (0..puts)
            .map(|_| {
                let random = random.fork();
                scope.spawn(move || put(queue, over, random, watch))
            })
            .collect();
        let taking: Vec<_> = (0..takes)
            .map(|_| {
                let random = random.fork();
                scope.spawn(move || take(queue, random, watch))
            })
            .collect();
        thread::sleep(until.saturating_duration_since(Instant::now()));
        over.store(true, SeqCst);
        queue.close();
        for thread in putting {
            let (sum, items, dropped) = thread.join().expect("see above");
            (put_sum, made, gone) = (put_sum + sum, made + items, gone + dropped);
        }
        for thread in taking {
            let (sum, count, dropped) = thread.join().expect("see above");
            (taken_sum, taken_count, gone) = (taken_sum + sum, taken_count + count, gone + dropped);
        }
    });
    // The items that a transfer queue held when it was closed.
    while let Some(item) = queue.try_take() {
        taken_sum += item.0;
    }
    assert_eq!(put_sum, taken_sum, "the sums of what was put and taken");
    assert_eq!(gone + dropped(), made, "dropped, of so many items that were made");
    assert!(queue.is_idle(), "a thread still waits");
    assert!(queue.nodes() <= NODES, "{} nodes", queue.nodes());
    taken_count
}

/// The sum of the items that came to a thread, and the numbers of items made and dropped by this thread.
fn put(queue: &dyn Meets, over: &AtomicBool, random: Random, watch: &Watch) -> (u64, u64, u64) {
    let at = watch.place("putter");
    let mut mood = Mood::new(random);
    let (mut sum, mut made) = (0, 0);
    while !over.load(SeqCst) {
        at.now(Doing::Pauses);
        mood.pause();
        for _ in 0..mood.random.below(10) {
            made += 1;
            let number = mood.random.between(1, 1 << 20);
            let item = Item(number);
            let came = match mood.random.below(5) {
                0 | 1 => {
                    at.now(Doing::Pushes);
                    queue.put(item)
                }
                2 => {
                    at.now(Doing::TriesToPush);
                    queue.try_put(item)
                }
                3 => {
                    at.now(Doing::PushesInTime);
                    let is_timeout = |refusal: &_| matches!(refusal, PushTimeoutError::Timeout(_));
                    timed(mood.random.moment(), |time| queue.put_timeout(item, time), is_timeout).is_ok()
                }
                _ => {
                    at.now(Doing::Reserves);
                    queue.ticket(item)
                }
            };
            sum += if came { number } else { 0 };
        }
    }
    at.now(Doing::Leaves);
    (sum, made, dropped())
}

/// The sum of the items taken, how many were taken, and how many this thread dropped.
fn take(queue: &dyn Meets, random: Random, watch: &Watch) -> (u64, u64, u64) {
    let at = watch.place("taker");
    let mut mood = Mood::new(random);
    let (mut sum, mut count) = (0, 0);
    'open: loop {
        at.now(Doing::Pauses);
        mood.pause();
        for _ in 0..mood.random.below(10) {
            let item = match mood.random.below(5) {
                0 | 1 => {
                    at.now(Doing::Pops);
                    let Some(item) = queue.take() else { break 'open };
                    Some(item)
                }
                2 => {
                    at.now(Doing::TriesToPop);
                    queue.try_take()
                }
                3 => {
                    at.now(Doing::PopsInTime);
                    let is_timeout = |refusal: &_| *refusal == PopTimeoutError::Timeout;
                    match timed(mood.random.moment(), |time| queue.take_timeout(time), is_timeout) {
                        Ok(item) => Some(item),
                        Err(PopTimeoutError::Timeout) => None,
                        Err(PopTimeoutError::Closed) => break 'open,
                        Err(error) => panic!("{error}"),
                    }
                }
                _ => {
                    at.now(Doing::Reserves);
                    queue.take_ticket()
                }
            };
            if let Some(item) = item {
                (sum, count) = (sum + item.0, count + 1);
            }
        }
    }
    at.now(Doing::Leaves);
    (sum, count, dropped())
}

pub(crate) fn exchanger(episode: &mut Episode<'_>) -> u64 {
    let (watch, until) = (episode.watch, episode.until);
    let exchanger = Exchanger::new();
    let threads = episode.random.between(2, 2 * MOST);
    let swap = |random: Random| {
        let at = watch.place("exchanger");
        let mut mood = Mood::new(random);
        let (mut given, mut got, mut swaps, mut made) = (0, 0, 0, 0);
        while !exchanger.is_closed() {
            at.now(Doing::Pauses);
            mood.pause();
            made += 1;
            let number = mood.random.between(1, 1 << 20);
            at.now(Doing::Exchanges);
            let time = if mood.random.below(2) == 0 { Duration::from_secs(1_000) } else { mood.random.moment() };
            let swap = |time| exchanger.exchange_timeout(Item(number), time);
            let got_one = if mood.random.below(4) == 0 {
                exchanger.try_exchange(Item(number)).ok()
            } else {
                timed(time, swap, |refusal| matches!(refusal, PushTimeoutError::Timeout(_))).ok()
            };
            if let Some(item) = got_one {
                (given, got, swaps) = (given + number, got + item.0, swaps + 1);
            }
        }
        (given, got, swaps, made, dropped())
    };
    dropped();
    let (mut given, mut got, mut swaps, mut made, mut gone) = (0, 0, 0, 0, 0);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                let random = episode.random.fork();
                scope.spawn(move || swap(random))
            })
            .collect();
        thread::sleep(until.saturating_duration_since(Instant::now()));
        exchanger.close();
        for thread in threads {
            let (a, b, count, items, dropped) = thread.join().expect("see above");
            (given, got, swaps, made, gone) = (given + a, got + b, swaps + count, made + items, gone + dropped);
        }
    });
    assert_eq!(given, got, "the sums of what was given and got");
    assert_eq!(gone, made, "dropped, of so many items that were made");
    assert!(exchanger.nodes() <= NODES, "{} nodes", exchanger.nodes());
    swaps
}
