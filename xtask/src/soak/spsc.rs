//! One producer, one consumer.

use super::episode::Episode;
use super::load::{Item, Mood, Random, Way, dropped, timed};
use super::watch::{Doing, Watch};
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::spsc::{self, Design, Options, linked};
use std::thread;
use std::time::Instant;

type Tx<D> = spsc::Producer<Item, D, Way>;
type Rx<D> = spsc::Consumer<Item, D, Way>;

/// How an episode ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The producer leaves, and the consumer drains the queue.
    Left,
    /// The producer closes the queue, and stays.
    Closed,
    /// The consumer closes the queue in the middle, and drains it.
    Refused,
    /// The consumer leaves in the middle.
    Deserted,
}

macro_rules! episodes {
    (linked, $design:ident, $flags:tt) => {
        pub(crate) fn linked(episode: &mut Episode<'_>) -> u64 {
            let tuning = linked::Tuning::new();
            let segment = episode.random.one_of(&[Some(1), Some(30), None]);
            let tuning = segment.map_or(tuning, |items| tuning.segment(items));
            let cached = episode.random.one_of(&[Some(1), Some(4), None]);
            let tuning = cached.map_or(tuning, |segments| tuning.cached(segments));
            run::<spsc::$design>(episode, tuning)
        }
    };
    ($name:ident, $design:ident, $flags:tt) => {
        pub(crate) fn $name(episode: &mut Episode<'_>) -> u64 {
            run::<spsc::$design>(episode, Default::default())
        }
    };
}
designs!(episodes);

/// The most items in a queue without a bound.
const AHEAD: usize = 50_000;

fn run<D: Design<Item>>(episode: &mut Episode<'_>, tuning: D::Tuning) -> u64 {
    let random = &mut episode.random;
    let capacity = random.one_of(&[1, 2, 3, 7, 64, 65, 1000, 4096]);
    let start = random.one_of(&[0, usize::MAX - 1000]);
    let end = random.one_of(&[End::Left, End::Closed, End::Refused, End::Deserted]);
    let options = Options::new().tuning(tuning).wait(random.one_of(&Way::ALL)).start_at(start);
    let (tx, rx) = spsc::any_channel::<Item, D, _, _>(capacity, options).expect("a good capacity");
    let (one, other) = (random.fork(), random.fork());
    let (watch, until) = (episode.watch, episode.until);
    dropped();
    let ((accepted, made, dropped_one), (received, dropped_other)) = thread::scope(|scope| {
        let producer = scope.spawn(move || produce(tx, end, one, until, watch));
        let consumer = scope.spawn(move || consume(rx, end, other, until, watch));
        let (tx, accepted, made, dropped_one) = producer.join().expect("see above");
        let outcome = consumer.join().expect("see above");
        drop(tx);
        ((accepted, made, dropped_one), outcome)
    });
    assert_eq!(dropped_one + dropped_other + dropped(), made, "of so many items that were made");
    if end == End::Deserted {
        assert!(received <= accepted);
    } else {
        assert_eq!(received, accepted, "{end:?}: of so many items that were accepted");
    }
    received
}

/// The handle, and how many items were accepted, made, and dropped by this thread.
fn produce<D: Design<Item>>(
    mut tx: Tx<D>,
    end: End,
    random: Random,
    until: Instant,
    watch: &Watch,
) -> (Option<Tx<D>>, u64, u64, u64) {
    let at = watch.place("producer");
    let mut mood = Mood::new(random);
    let (mut next, mut made) = (0, 0);
    let bound = tx.capacity().min(AHEAD);
    let mut is_open = true;
    // If the consumer ends the episode, this thread waits for that.
    while is_open && (matches!(end, End::Refused | End::Deserted) || Instant::now() < until) {
        at.now(Doing::Pauses);
        mood.pause();
        if tx.len() > bound {
            is_open = !tx.is_closed();
            continue;
        }
        for _ in 0..mood.random.below(30) {
            let mut item = || {
                made += 1;
                Item(next)
            };
            match mood.random.below(7) {
                0 => {
                    at.now(Doing::Pushes);
                    is_open = tx.push(item()).is_ok();
                    next += u64::from(is_open);
                }
                1 | 2 => {
                    at.now(Doing::TriesToPush);
                    match tx.try_push(item()) {
                        Ok(()) => next += 1,
                        Err(TryPushError::Full(item)) => assert_eq!(item.0, next),
                        Err(_) => is_open = false,
                    }
                }
                3 => {
                    at.now(Doing::PushesInTime);
                    let item = item();
                    let is_timeout = |refusal: &_| matches!(refusal, PushTimeoutError::Timeout(_));
                    match timed(mood.random.moment(), |time| tx.push_timeout(item, time), is_timeout) {
                        Ok(()) => next += 1,
                        Err(PushTimeoutError::Timeout(item)) => assert_eq!(item.0, next),
                        Err(_) => is_open = false,
                    }
                }
                4 => {
                    at.now(Doing::PushesABatch);
                    let most = mood.random.below(100);
                    let mut items = (next..next + most).map(Item).collect::<Vec<_>>();
                    made += most;
                    if mood.random.below(2) == 0 {
                        // Items that do not fit stay behind.
                        let _ = tx.try_push_batch(&mut items);
                        is_open = !tx.is_closed();
                    } else {
                        is_open = tx.push_batch(&mut items).is_ok();
                    }
                    next += most - items.len() as u64;
                }
                5 => {
                    at.now(Doing::Reserves);
                    match tx.try_reserve() {
                        Ok(place) => {
                            is_open = place.write(item()).is_ok();
                            next += u64::from(is_open);
                        }
                        Err(TryPushError::Full(())) => {}
                        Err(_) => is_open = false,
                    }
                }
                _ => {
                    at.now(Doing::WaitsForRoom);
                    let room = 1 + mood.random.below(tx.capacity().min(64) as u64) as usize;
                    is_open = tx.wait_for_room(room).is_ok();
                }
            }
            if !is_open {
                break;
            }
        }
    }
    at.now(Doing::Closes);
    let rest = match end {
        End::Closed => {
            tx.close();
            Some(tx)
        }
        _ => {
            drop(tx);
            None
        }
    };
    (rest, next, made, dropped())
}

/// How many items were received, and how many this thread dropped.
fn consume<D: Design<Item>>(mut rx: Rx<D>, end: End, random: Random, until: Instant, watch: &Watch) -> (u64, u64) {
    let at = watch.place("consumer");
    let mut mood = Mood::new(random);
    let mut next = 0;
    let mut items = Vec::new();
    let mut has_more = true;
    let mut is_over = false;
    let mut check = |item: &Item| {
        assert_eq!(item.0, next, "the next item is another");
        next += 1;
    };
    while has_more {
        at.now(Doing::Pauses);
        mood.pause();
        if !is_over && matches!(end, End::Refused | End::Deserted) && Instant::now() >= until {
            at.now(Doing::Closes);
            is_over = true;
            if end == End::Deserted {
                break;
            }
            rx.close();
        }
        for _ in 0..mood.random.below(30) {
            match mood.random.below(7) {
                // Not if this end has to end the episode.
                0 if !matches!(end, End::Refused | End::Deserted) => {
                    at.now(Doing::Pops);
                    match rx.pop() {
                        Ok(item) => check(&item),
                        Err(_) => has_more = false,
                    }
                }
                0..3 => {
                    at.now(Doing::TriesToPop);
                    match rx.try_pop() {
                        Ok(item) => check(&item),
                        Err(TryPopError::Empty) => {}
                        Err(_) => has_more = false,
                    }
                }
                3 => {
                    at.now(Doing::PopsInTime);
                    let is_timeout = |refusal: &_| *refusal == PopTimeoutError::Timeout;
                    match timed(mood.random.moment(), |time| rx.pop_timeout(time), is_timeout) {
                        Ok(item) => check(&item),
                        Err(PopTimeoutError::Timeout) => {}
                        Err(_) => has_more = false,
                    }
                }
                4 => {
                    at.now(Doing::PopsABatch);
                    let _ = rx.try_pop_batch(&mut items, mood.random.below(100) as usize);
                    items.drain(..).for_each(|item| check(&item));
                }
                5 => {
                    at.now(Doing::Peeks);
                    if let Ok(item) = rx.try_peek() {
                        check(&item);
                        item.release();
                    }
                }
                _ if matches!(end, End::Refused | End::Deserted) => {}
                _ => {
                    at.now(Doing::WaitsForAnItem);
                    has_more = rx.wait_for_item().is_ok();
                }
            }
            if !has_more {
                break;
            }
        }
    }
    drop(rx);
    (next, dropped())
}
