//! One producer, one consumer: every design.

use crate::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use crate::{Item, Wait, draw, explore, in_time, many, one_of, thread, wait};
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::spsc::bqueue::Backtracking;
use corelane::spsc::{self, Design, Options};
use corelane::wait::Select;
use std::sync::Arc;

/// A design under test, with options that are drawn.
pub(crate) trait Tested:
    Design<Item, Tuning = Self::Options> + Design<usize, Tuning = Self::Options> + Send + Sync + 'static
{
    type Options: Default;

    fn options(capacity: usize) -> Self::Options;
}

macro_rules! tested {
    ($name:ident, $design:ident, $flags:tt) => {
        impl Tested for spsc::$design {
            type Options = <spsc::$design as Design<usize>>::Tuning;

            fn options(capacity: usize) -> Self::Options {
                let drawn: fn(usize) -> Self::Options = drawn!($name);
                // The defaults half of the time.
                if draw(0..2) == 0 { Default::default() } else { drawn(capacity) }
            }
        }
    };
}

/// What draws a design's options for a capacity.
macro_rules! drawn {
    (linked) => {
        |_| spsc::linked::Tuning::new().segment(draw(1..30)).cached(draw(1..4))
    };
    (mcring) => {
        |capacity| spsc::mcring::Tuning::new().batch(size(capacity))
    };
    (multiline) => {
        |capacity| spsc::multiline::Tuning::new().lines(size(capacity))
    };
    (bqueue) => {
        |capacity| {
            let ways = [Backtracking::None, Backtracking::Plain, Backtracking::Adaptive];
            let tuning = spsc::bqueue::Tuning::new().batch_size(size(capacity));
            tuning.ticks(draw(0..3) as u32).backtracking(one_of(&ways))
        }
    };
    (fastforward) => {
        |capacity| {
            let tuning = spsc::fastforward::Tuning::new().good(capacity).danger(size(capacity));
            tuning.avg_time(draw(0..3) as u32).interval(1)
        }
    };
    ($name:ident) => {
        |_| Default::default()
    };
}

/// A size from 1 to the capacity.
fn size(capacity: usize) -> usize {
    draw(0..capacity) + 1
}

designs!(tested);

type Producer<T, D> = spsc::Producer<T, D, Wait>;
type Consumer<T, D> = spsc::Consumer<T, D, Wait>;

fn queue_of<T: Send, D: Tested + Design<T, Tuning = <D as Tested>::Options>>(
    capacity: usize,
) -> (Producer<T, D>, Consumer<T, D>) {
    let start = one_of(&[0, 1, usize::MAX - 40]);
    let options = Options::new().tuning(D::options(capacity)).wait(wait()).start_at(start);
    spsc::any_channel(capacity, options).unwrap()
}

/// Small ones, where both ends wait all the time, and large ones, where batches, look-ahead and lag come in.
fn capacity() -> usize {
    if cfg!(corelane_shuttle) {
        one_of(&[1, 2, 3, 4, 7, 16, 64, 100])
    } else {
        one_of(&[1, 2, 3, 7, 64, 65, 1_000, 4_096])
    }
}

/// Some items for a queue of that capacity.
fn items(capacity: usize) -> usize {
    many(draw(1..4 * capacity.min(64) + 20))
}

fn queue<T: Send, D: Tested + Design<T, Tuning = <D as Tested>::Options>>() -> (Producer<T, D>, Consumer<T, D>, usize) {
    let capacity = capacity();
    let (producer, consumer) = queue_of(capacity);
    (producer, consumer, items(capacity))
}

/// Pushes items of these numbers by drawn calls, in order. Returns the first that was refused as the queue is closed.
fn push_all<D: Tested>(producer: &mut Producer<Item, D>, from: usize, to: usize, timed: bool) -> Result<(), usize> {
    let mut next = from;
    while next < to {
        match draw(0..if timed { 7 } else { 6 }) {
            0 => match producer.try_push(Item::new(next)) {
                Ok(()) => next += 1,
                Err(TryPushError::Full(item)) => {
                    assert_eq!(item.id, next);
                    thread::yield_now();
                }
                Err(refused) => {
                    assert!(refused.is_closed() && refused.into_inner().id == next);
                    return Err(next);
                }
            },
            1 => {
                let mut batch = (next..to).take(draw(1..40)).map(Item::new).collect::<Vec<_>>();
                let closed = if draw(0..2) == 0 {
                    next += producer.try_push_batch(&mut batch).unwrap_or(0);
                    producer.is_closed()
                } else {
                    next += batch.len();
                    let closed = producer.push_batch(&mut batch).is_err();
                    next -= batch.len();
                    closed
                };
                assert!(batch.first().is_none_or(|item| item.id == next));
                if closed {
                    return Err(next);
                }
                thread::yield_now();
            }
            2 => match producer.try_reserve() {
                Ok(reserved) if draw(0..4) != 0 => {
                    if let Err(closed) = reserved.write(Item::new(next)) {
                        assert_eq!(closed.0.id, next);
                        return Err(next);
                    }
                    next += 1;
                }
                Ok(reserved) => drop(reserved),
                Err(TryPushError::Full(())) => thread::yield_now(),
                Err(_) => return Err(next),
            },
            3 => {
                let slots = draw(1..40).min(producer.capacity() - producer.release_lag());
                if producer.wait_for_room(slots).is_err() {
                    return Err(next);
                }
                for _ in 0..slots.min(to - next) {
                    match producer.try_push(Item::new(next)) {
                        Ok(()) => next += 1,
                        Err(TryPushError::Full(_)) => panic!("it has waited for {slots} slots"),
                        Err(_) => return Err(next),
                    }
                }
            }
            6 => match in_time(PushTimeoutError::is_timeout, |time| producer.push_timeout(Item::new(next), time)) {
                Ok(()) => next += 1,
                Err(PushTimeoutError::Timeout(item)) => assert_eq!(item.id, next),
                Err(_) => return Err(next),
            },
            _ => match producer.push(Item::new(next)) {
                Ok(()) => next += 1,
                Err(closed) => {
                    assert_eq!(closed.0.id, next);
                    return Err(next);
                }
            },
        }
        assert!(producer.len() <= producer.capacity());
    }
    Ok(())
}

/// Pops items by drawn calls, until there are so many, or the queue is closed. Returns the number of the next.
fn pop_all<D: Tested>(consumer: &mut Consumer<Item, D>, from: usize, to: usize, timed: bool) -> usize {
    let mut next = from;
    while next < to {
        let came = |item: Item, next: &mut usize| {
            assert_eq!(item.id, *next);
            *next += 1;
        };
        match draw(0..if timed { 7 } else { 6 }) {
            0 => match consumer.try_pop() {
                Ok(item) => came(item, &mut next),
                Err(TryPopError::Empty) => thread::yield_now(),
                Err(_) => return next,
            },
            1 => {
                let mut items = Vec::new();
                let count = consumer.try_pop_batch(&mut items, draw(1..40).min(to - next)).unwrap_or(0);
                assert_eq!(count, items.len());
                items.into_iter().for_each(|item| came(item, &mut next));
                thread::yield_now();
            }
            2 => match consumer.try_peek() {
                Ok(item) => {
                    assert_eq!(item.id, next);
                    match draw(0..3) {
                        0 => came(item.pop(), &mut next),
                        1 => {
                            item.release();
                            next += 1;
                        }
                        _ => drop(item),
                    }
                }
                Err(_) => thread::yield_now(),
            },
            3 => {
                if consumer.wait_for_item().is_err() {
                    return next;
                }
                came(consumer.try_pop().expect("it has waited for one"), &mut next);
            }
            6 => match in_time(PopTimeoutError::is_timeout, |time| consumer.pop_timeout(time)) {
                Ok(item) => came(item, &mut next),
                Err(PopTimeoutError::Closed) => return next,
                Err(_) => {}
            },
            _ => match consumer.pop() {
                Ok(item) => came(item, &mut next),
                Err(_) => return next,
            },
        }
        let len = consumer.len();
        assert!(len <= consumer.capacity());
        if draw(0..8) == 0 {
            for _ in 0..len.min(to - next) {
                came(consumer.try_pop().expect("it was counted"), &mut next);
            }
        }
    }
    next
}

fn crossing<D: Tested>(timed: bool) {
    explore(move || {
        let (mut producer, mut consumer, items) = queue::<Item, D>();
        let goes = draw(0..2) == 0;
        let pusher = thread::spawn(move || {
            push_all(&mut producer, 0, items, timed).unwrap();
            // It goes, or closes the queue and stays.
            (!goes).then(|| {
                producer.close();
                producer
            })
        });
        assert_eq!(pop_all(&mut consumer, 0, usize::MAX, timed), items);
        let _stays = pusher.join().unwrap();
    });
}

pub(crate) fn items_come_once_and_in_order<D: Tested>() {
    crossing::<D>(false);
}

pub(crate) fn time_outs_lose_nothing<D: Tested>() {
    crossing::<D>(true);
}

/// Items that are copied, many at a time.
pub(crate) fn slices_come_in_order<D: Tested>() {
    explore(|| {
        let (mut producer, mut consumer, _) = queue::<usize, D>();
        let items = many(draw(1..400));
        let pusher = thread::spawn(move || {
            let all = (0..items).collect::<Vec<_>>();
            let mut rest = &all[..];
            while !rest.is_empty() {
                let pushed = producer.try_push_slice(&rest[..draw(0..80).min(rest.len())]).unwrap_or(0);
                rest = &rest[pushed..];
                if draw(0..2) == 0 && !rest.is_empty() {
                    producer.push(rest[0]).unwrap();
                    rest = &rest[1..];
                } else {
                    thread::yield_now();
                }
            }
        });
        let mut popped = Vec::new();
        loop {
            match draw(0..3) {
                0 => {
                    consumer.try_pop_batch(&mut popped, draw(1..80)).unwrap_or(0);
                }
                1 => {
                    let mut some = [0; 80];
                    let count = consumer.try_pop_slice(&mut some[..draw(0..80)]).unwrap_or(0);
                    popped.extend_from_slice(&some[..count]);
                }
                _ => match consumer.pop() {
                    Ok(item) => popped.push(item),
                    Err(_) => break,
                },
            }
            thread::yield_now();
        }
        assert!(popped.into_iter().eq(0..items));
        pusher.join().unwrap();
    });
}

/// A thread sends questions, so many at once that they fill a queue or not, and waits for the answers.
pub(crate) fn questions_are_answered<D: Tested>() {
    explore(|| {
        let capacity = capacity();
        let (mut ask, mut asked) = queue_of::<usize, D>(capacity);
        let (mut answer, mut answered) = queue_of::<usize, D>(capacity);
        let most = capacity - ask.release_lag().min(capacity - 1);
        let server = thread::spawn(move || {
            while let Ok(question) = asked.pop() {
                answer.push(question + 1_000).unwrap();
            }
        });
        let (mut sent, mut got) = (0, 0);
        let items = items(capacity.min(16));
        while got < items {
            let burst = draw(1..5).min(most).min(items - sent);
            (0..burst).for_each(|_| {
                ask.push(sent).unwrap();
                sent += 1;
            });
            while got < sent {
                assert_eq!(answered.pop(), Ok(got + 1_000));
                got += 1;
            }
        }
        drop(ask);
        server.join().unwrap();
    });
}

/// What was accepted is popped or drained, the rest comes back.
pub(crate) fn the_consumer_closes_in_midstream<D: Tested>() {
    explore(|| {
        let (mut producer, mut consumer, items) = queue::<Item, D>();
        let pusher = thread::spawn(move || {
            let end = push_all(&mut producer, 0, items, draw(0..2) == 0);
            // An end that was told so once is told so for ever.
            if end.is_err() {
                assert!(producer.is_closed());
                assert!(producer.try_push(Item::new(items)).unwrap_err().is_closed());
            }
            end
        });
        let mut popped = pop_all(&mut consumer, 0, draw(0..items + 1), false);
        consumer.close();
        while let Ok(item) = consumer.try_pop() {
            assert_eq!(item.id, popped);
            popped += 1;
        }
        assert_eq!(consumer.try_pop().err(), Some(TryPopError::Closed));
        assert_eq!(pusher.join().unwrap().err().unwrap_or(items), popped);
    });
}

/// Whatever is inside is dropped once, and an end that waits learns of it.
pub(crate) fn the_consumer_goes_in_midstream<D: Tested>() {
    explore(|| {
        let (mut producer, mut consumer, items) = queue::<Item, D>();
        let pusher = thread::spawn(move || {
            let end = push_all(&mut producer, 0, items, draw(0..2) == 0).err();
            assert!(end.is_none() || producer.is_closed());
        });
        pop_all(&mut consumer, 0, draw(0..items + 1), false);
        drop(consumer);
        pusher.join().unwrap();
    });
}

/// `Empty` and `Full` are true at some moment of the call.
pub(crate) fn answers_are_true<D: Tested>() {
    explore(|| {
        let capacity = capacity();
        let (mut producer, mut consumer) = queue_of::<usize, D>(capacity);
        let items = items(capacity);
        let (pushed, popped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (tell, told) = (pushed.clone(), popped.clone());
        let pusher = thread::spawn(move || {
            let mut next = 0;
            while next < items {
                let gone = told.load(SeqCst);
                match producer.try_push(next) {
                    Ok(()) => {
                        next += 1;
                        tell.store(next, SeqCst);
                    }
                    Err(_) => {
                        let inside = next - gone;
                        assert!(inside + producer.release_lag() >= producer.capacity(), "{inside} inside");
                        thread::yield_now();
                    }
                }
            }
        });
        let mut next = 0;
        loop {
            let there = pushed.load(SeqCst);
            match consumer.try_pop() {
                Ok(item) => {
                    assert_eq!(item, next);
                    next += 1;
                    popped.store(next, SeqCst);
                }
                Err(TryPopError::Empty) => {
                    assert!(there <= next, "{there} were pushed, {next} popped");
                    thread::yield_now();
                }
                Err(_) => break,
            }
        }
        assert_eq!(next, items);
        pusher.join().unwrap();
    });
}

/// One thread serves several queues and sleeps once for all.
pub(crate) fn one_sleep_serves_several_queues<D: Tested>() {
    explore(|| {
        let strategy = wait();
        let count = draw(2..4);
        let (consumers, pushers): (Vec<Consumer<usize, D>>, Vec<_>) = (0..count)
            .map(|_| {
                let capacity = capacity();
                let options = Options::new().tuning(D::options(capacity)).wait(strategy);
                let (mut producer, consumer) = spsc::any_channel(capacity, options).unwrap();
                let items = many(draw(0..40));
                let pusher = thread::spawn(move || {
                    (0..items).for_each(|item| producer.push(item).unwrap());
                    items
                });
                (consumer, pusher)
            })
            .unzip();
        let mut popped = 0;
        let mut select = Select::with(strategy);
        let keys: Vec<_> = consumers.into_iter().map(|consumer| select.add(consumer)).collect();
        while let Some(ready) = select.wait() {
            let ready = keys[ready.index()];
            match select[ready].try_pop() {
                Ok(_) => popped += 1,
                Err(TryPopError::Closed) => drop(select.remove(ready)),
                Err(_) => panic!("it was ready"),
            }
        }
        assert_eq!(pushers.into_iter().map(|pusher| pusher.join().unwrap()).sum::<usize>(), popped);
    });
}
