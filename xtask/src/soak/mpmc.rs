//! Any number of producers and consumers.

use super::episode::Episode;
use super::load::{Item, Mood, Random, Way, dropped, timed};
use super::watch::{Doing, Watch};
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::mpmc::{self, Design, NoStats, Options, lanes};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

type Queue<D> = mpmc::Queue<Item, D, Way>;
type Refused<T> = Result<(), TryPushError<T>>;

/// The calls of a producer.
trait Pushes: Send {
    fn push(&mut self, item: Item) -> Result<(), Closed<Item>>;
    fn try_push(&mut self, item: Item) -> Refused<Item>;
    fn push_timeout(&mut self, item: Item, time: Duration) -> Result<(), PushTimeoutError<Item>>;
    fn push_batch(&mut self, items: &mut Vec<Item>) -> Result<(), Closed>;
    fn try_push_batch(&mut self, items: &mut Vec<Item>) -> Result<usize, TryPushError<()>>;
    fn len(&self) -> usize;
}

/// The calls of a consumer.
trait Pops: Send {
    fn pop(&mut self) -> Result<Item, Closed>;
    fn try_pop(&mut self) -> Result<Item, TryPopError>;
    fn pop_timeout(&mut self, time: Duration) -> Result<Item, PopTimeoutError>;
    fn pop_batch(&mut self, items: &mut Vec<Item>, most: usize) -> Result<usize, Closed>;
    fn try_pop_batch(&mut self, items: &mut Vec<Item>, most: usize) -> Result<usize, TryPopError>;
}

/// Implements both traits for a type by the type's own calls of the same names.
macro_rules! calls {
    ([$($generics:tt)*] $pushes:ty, $pops:ty) => {
        impl<$($generics)*> Pushes for $pushes {
            fn push(&mut self, item: Item) -> Result<(), Closed<Item>> {
                (*self).push(item)
            }
            fn try_push(&mut self, item: Item) -> Refused<Item> {
                (*self).try_push(item)
            }
            fn push_timeout(&mut self, item: Item, time: Duration) -> Result<(), PushTimeoutError<Item>> {
                (*self).push_timeout(item, time)
            }
            fn push_batch(&mut self, items: &mut Vec<Item>) -> Result<(), Closed> {
                (*self).push_batch(items)
            }
            fn try_push_batch(&mut self, items: &mut Vec<Item>) -> Result<usize, TryPushError<()>> {
                (*self).try_push_batch(items)
            }
            fn len(&self) -> usize {
                (**self).len()
            }
        }

        impl<$($generics)*> Pops for $pops {
            fn pop(&mut self) -> Result<Item, Closed> {
                (*self).pop()
            }
            fn try_pop(&mut self) -> Result<Item, TryPopError> {
                (*self).try_pop()
            }
            fn pop_timeout(&mut self, time: Duration) -> Result<Item, PopTimeoutError> {
                (*self).pop_timeout(time)
            }
            fn pop_batch(&mut self, items: &mut Vec<Item>, most: usize) -> Result<usize, Closed> {
                (*self).pop_batch(items, most)
            }
            fn try_pop_batch(&mut self, items: &mut Vec<Item>, most: usize) -> Result<usize, TryPopError> {
                (*self).try_pop_batch(items, most)
            }
        }
    };
}
calls!([D: Design<Item>] &Queue<D>, &Queue<D>);
calls!([] &mut lanes::Sender<Item, Way>, &mut lanes::Receiver<Item, Way>);

macro_rules! designs {
    ($($name:ident $design:ident)+) => {
        $(pub(crate) fn $name(episode: &mut Episode<'_>) -> u64 {
            of_design::<mpmc::$design>(episode)
        })+
    };
}
designs!(ticket Ticket scq Scq michael_scott MichaelScott two_lock TwoLock condvar Condvar busy_wait BusyWait);

/// The most items in a queue without a bound.
const AHEAD: usize = 50_000;
const MOST: usize = 4;
/// The number of an item is the producer's number, followed by the item's number with that producer.
const SHIFT: u32 = 48;

/// Draws capacity, way to wait, and the numbers of producers and consumers.
fn shape(random: &mut Random) -> (usize, Way, [u64; 2]) {
    let capacity = random.one_of(&[1, 2, 3, 8, 100, 1024]);
    (capacity, random.one_of(&Way::ALL), [(); 2].map(|()| random.between(1, MOST as u64 + 1)))
}

fn of_design<D: Design<Item>>(episode: &mut Episode<'_>) -> u64 {
    let (capacity, way, [producers, consumers]) = shape(&mut episode.random);
    let start = episode.random.one_of(&[0, usize::MAX - 1000]);
    let options = Options::new().wait(way).start_at(start);
    let queue: Queue<D> = mpmc::any_queue::<Item, D, _, NoStats>(capacity, options).expect("a good capacity");
    let ends = (vec![&queue; producers as usize], vec![&queue; consumers as usize]);
    let received = run(episode, ends, &|| queue.close());
    assert!(queue.len() <= queue.capacity());
    received.done(|| drop(queue))
}

pub(crate) fn lanes(episode: &mut Episode<'_>) -> u64 {
    let (capacity, way, [producers, consumers]) = shape(&mut episode.random);
    let (sender, receiver) =
        lanes::channel_with::<Item, _>(capacity, Options::new().wait(way)).expect("a good capacity");
    let mut senders: Vec<_> = (0..producers).map(|_| sender.clone()).collect();
    let mut receivers: Vec<_> = (0..consumers).map(|_| receiver.clone()).collect();
    let ends = (senders.iter_mut().collect(), receivers.iter_mut().collect());
    let received = run(episode, ends, &|| sender.close());
    received.done(|| drop((sender, receiver, senders, receivers)))
}

/// The numbers to compare when the queue is gone.
struct Received {
    made: u64,
    dropped: u64,
    drains: bool,
    received: [u64; MOST],
    accepted: [u64; MOST],
}

impl Received {
    /// Ends the queue with the items inside, and compares. Returns how many items came through.
    fn done(self, end: impl FnOnce()) -> u64 {
        end();
        let Received { made, received, accepted, .. } = self;
        assert_eq!(self.dropped + dropped(), made, "dropped, of so many items that were made");
        if self.drains {
            assert_eq!(received, accepted, "received and accepted, by producer");
        } else {
            assert!(received.iter().zip(accepted).all(|(&received, accepted)| received <= accepted));
        }
        received.iter().sum()
    }
}

fn run<P: Pushes, C: Pops>(
    episode: &mut Episode<'_>,
    (producers, consumers): (Vec<P>, Vec<C>),
    close: &dyn Fn(),
) -> Received {
    let random = &mut episode.random;
    // One thread closes the queue, in the middle or when the producers are done. Its items are drained, or dropped with
    // it.
    let in_the_middle = random.below(2) == 0;
    let drains = random.below(4) != 0;
    let (watch, until) = (episode.watch, episode.until);
    let left = AtomicBool::new(false);
    dropped();
    let mut of_threads = Vec::new();
    let mut received = [0; MOST];
    let mut accepted = [0; MOST];
    thread::scope(|scope| {
        let left = &left;
        let pushing: Vec<_> = (0..)
            .zip(producers)
            .map(|(producer, queue)| {
                let random = random.fork();
                scope.spawn(move || produce(queue, producer, random, until, watch))
            })
            .collect();
        let popping: Vec<_> = consumers
            .into_iter()
            .map(|queue| {
                let random = random.fork();
                scope.spawn(move || consume(queue, left, random, watch))
            })
            .collect();
        if in_the_middle {
            thread::sleep(until.saturating_duration_since(Instant::now()) / 2);
            left.store(!drains, SeqCst);
            close();
        }
        for (producer, pushing) in pushing.into_iter().enumerate() {
            let (count, made, dropped) = pushing.join().expect("see above");
            accepted[producer] = count;
            of_threads.push((made, dropped));
        }
        left.store(!drains, SeqCst);
        close();
        for popping in popping {
            let (counts, dropped) = popping.join().expect("see above");
            received.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            of_threads.push((0, dropped));
        }
    });
    let (made, dropped) = of_threads.iter().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    Received { made, dropped, drains, received, accepted }
}

/// How many items were accepted, how many were made, and how many this thread dropped.
fn produce<P: Pushes>(mut queue: P, producer: u64, random: Random, until: Instant, watch: &Watch) -> (u64, u64, u64) {
    let at = watch.place("producer");
    let mut mood = Mood::new(random);
    let (mut next, mut made) = (0, 0);
    let mut batch = Vec::new();
    'open: while Instant::now() < until {
        at.now(Doing::Pauses);
        mood.pause();
        if queue.len() > AHEAD {
            continue;
        }
        for _ in 0..mood.random.below(30) {
            let mut item = |ahead| {
                made += 1;
                Item(producer << SHIFT | (next + ahead))
            };
            match mood.random.below(5) {
                0 => {
                    at.now(Doing::Pushes);
                    if queue.push(item(0)).is_err() {
                        break 'open;
                    }
                    next += 1;
                }
                1 => {
                    at.now(Doing::TriesToPush);
                    match queue.try_push(item(0)) {
                        Ok(()) => next += 1,
                        Err(TryPushError::Full(_) | TryPushError::Busy(_)) => {}
                        Err(TryPushError::Closed(_)) => break 'open,
                        Err(error) => panic!("{error}"),
                    }
                }
                2 => {
                    at.now(Doing::PushesInTime);
                    let item = item(0);
                    let is_timeout = |refusal: &_| matches!(refusal, PushTimeoutError::Timeout(_));
                    match timed(mood.random.moment(), |time| queue.push_timeout(item, time), is_timeout) {
                        Ok(()) => next += 1,
                        Err(PushTimeoutError::Timeout(_)) => {}
                        Err(PushTimeoutError::Closed(_)) => break 'open,
                        Err(error) => panic!("{error}"),
                    }
                }
                way => {
                    at.now(Doing::PushesABatch);
                    let count = mood.random.below(20);
                    batch.clear();
                    batch.extend((0..count).map(&mut item));
                    let closed = if way == 3 {
                        queue.push_batch(&mut batch).is_err()
                    } else {
                        matches!(queue.try_push_batch(&mut batch), Err(TryPushError::Closed(())))
                    };
                    next += count - batch.len() as u64;
                    if closed {
                        break 'open;
                    }
                }
            }
        }
    }
    at.now(Doing::Leaves);
    drop(batch);
    (next, made, dropped())
}

/// How many items were received of each producer, and how many this thread dropped.
fn consume<C: Pops>(mut queue: C, left: &AtomicBool, random: Random, watch: &Watch) -> ([u64; MOST], u64) {
    let at = watch.place("consumer");
    let mut mood = Mood::new(random);
    let (mut counts, mut last) = ([0; MOST], [None; MOST]);
    let mut items = Vec::new();
    let mut receive = |item: &Item| {
        let (producer, number) = ((item.0 >> SHIFT) as usize, item.0 & ((1 << SHIFT) - 1));
        assert!(last[producer].is_none_or(|last| last < number), "{last:?} before {number} of producer {producer}");
        last[producer] = Some(number);
        counts[producer] += 1;
    };
    'open: while !left.load(SeqCst) {
        at.now(Doing::Pauses);
        mood.pause();
        for _ in 0..mood.random.below(30) {
            match mood.random.below(5) {
                0 => {
                    at.now(Doing::Pops);
                    match queue.pop() {
                        Ok(item) => receive(&item),
                        Err(_) => break 'open,
                    }
                }
                1 => {
                    at.now(Doing::TriesToPop);
                    match queue.try_pop() {
                        Ok(item) => receive(&item),
                        Err(TryPopError::Empty | TryPopError::Busy) => {}
                        Err(TryPopError::Closed) => break 'open,
                        Err(error) => panic!("{error}"),
                    }
                }
                2 => {
                    at.now(Doing::PopsInTime);
                    let is_timeout = |refusal: &_| *refusal == PopTimeoutError::Timeout;
                    match timed(mood.random.moment(), |time| queue.pop_timeout(time), is_timeout) {
                        Ok(item) => receive(&item),
                        Err(PopTimeoutError::Timeout) => {}
                        Err(PopTimeoutError::Closed) => break 'open,
                        Err(error) => panic!("{error}"),
                    }
                }
                way => {
                    at.now(Doing::PopsABatch);
                    let most = 1 + mood.random.below(30) as usize;
                    let closed = if way == 3 {
                        queue.pop_batch(&mut items, most).is_err()
                    } else {
                        queue.try_pop_batch(&mut items, most) == Err(TryPopError::Closed)
                    };
                    items.drain(..).for_each(|item| receive(&item));
                    if closed {
                        break 'open;
                    }
                }
            }
        }
    }
    at.now(Doing::Leaves);
    (counts, dropped())
}
