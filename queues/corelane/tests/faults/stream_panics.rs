//! An end of a stream panics: between any two calls, with a reservation or a message in hand, and where a batch reads
//! the user's messages. What was pushed before comes out, whole and in order.

use crate::fuse::{Way, burn, tick, with_every_fuse};
use corelane::error::TryPopError;
use corelane::spsc::stream::{self, Consumer, Producer, PushError, Tuning};
use corelane::spsc::{NoStats, Options};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const MESSAGES: usize = 40;
const MOMENT: Duration = Duration::from_micros(50);

fn queue(limit: Option<usize>) -> (Producer<Way>, Consumer<Way>) {
    let tuning = Tuning::new().segment(256).cached(1);
    let tuning = limit.map_or(tuning, |limit| tuning.limit(limit));
    stream::channel_with::<_, NoStats>(Options::new().tuning(tuning).wait(Way::Ticking)).expect("a good segment")
}

/// A message says its number in every word.
fn message(number: usize) -> Vec<u8> {
    (number as u64).to_le_bytes().repeat(1 + number % 7)
}

#[track_caller]
fn check(message: &[u8], next: &mut usize) {
    assert_eq!(message, self::message(*next), "message {next}");
    *next += 1;
}

struct Written(Vec<u8>);

impl AsRef<[u8]> for Written {
    fn as_ref(&self) -> &[u8] {
        tick();
        &self.0
    }
}

/// Pushes messages in every way. `pushed` counts those whose push has returned.
fn produce(tx: &mut Producer<Way>, pushed: &AtomicUsize) -> bool {
    for way in 0.. {
        let next = pushed.load(SeqCst);
        if next >= MESSAGES {
            return false;
        }
        tick();
        let outcome = match way % 5 {
            0 => tx.push(&message(next)),
            1 => tx.try_push(&message(next)),
            2 => tx.push_timeout(&message(next), MOMENT).map_err(|_| PushError::Full),
            3 => match tx.try_reserve(message(next).len()) {
                Ok(mut place) => {
                    tick();
                    place.append(&message(next)[..8]);
                    tick();
                    place.append(&message(next)[8..]);
                    place.commit_written().map_err(|_| PushError::Closed)
                }
                Err(refused) => Err(refused),
            },
            _ => {
                let batch = [next, next + 1, next + 2].map(|number| Written(message(number)));
                let sent = tx.try_push_batch(&batch).unwrap_or(0);
                pushed.fetch_add(sent, SeqCst);
                Err(if tx.is_closed() { PushError::Closed } else { PushError::Full })
            }
        };
        match outcome {
            Ok(()) => drop(pushed.fetch_add(1, SeqCst)),
            Err(PushError::Closed) => return true,
            Err(_) => thread::yield_now(),
        }
    }
    unreachable!("it ends before")
}

/// Takes messages in every way, and checks them. Returns when the stream is at its end.
fn consume(rx: &mut Consumer<Way>, next: &mut usize) {
    for way in 0.. {
        tick();
        match way % 5 {
            0 => match rx.pop() {
                Ok(message) => check(message, next),
                Err(_) => return,
            },
            1 => match rx.try_pop() {
                Ok(message) => check(message, next),
                Err(TryPopError::Closed) => return,
                Err(_) => thread::yield_now(),
            },
            2 => drop(rx.pop_timeout(MOMENT).map(|message| check(message, next))),
            3 => {
                if let Ok(message) = rx.try_peek() {
                    tick();
                    check(&message, next);
                    message.release();
                }
            }
            _ => {
                let messages = rx.try_pop_batch(3);
                for message in messages.into_iter().flatten() {
                    check(message, next);
                }
            }
        }
    }
}

#[test]
fn a_producer_ends_anywhere() {
    crate::watchdog::guard(|| {
        for limit in [None, Some(100)] {
            with_every_fuse(|ticks| {
                let (tx, mut rx) = queue(limit);
                let (pushed, mut next) = (AtomicUsize::new(0), 0);
                let blown = thread::scope(|scope| {
                    let producer = scope.spawn(|| {
                        burn(ticks, || {
                            let mut tx = tx;
                            produce(&mut tx, &pushed);
                            tick();
                        })
                        .is_none()
                    });
                    consume(&mut rx, &mut next);
                    producer.join().unwrap()
                });
                let pushed = pushed.into_inner();
                // A batch that panicked has pushed what came before.
                assert!((pushed..=pushed + if blown { 2 } else { 0 }).contains(&next), "{next} of {pushed}");
                blown
            });
        }
    });
}

#[test]
fn ends_go_on_after_a_panic_anywhere() {
    crate::watchdog::guard(|| {
        for limit in [None, Some(100)] {
            for panics in 0..2 {
                with_every_fuse(|ticks| {
                    let fuse = |side| if side == panics { ticks } else { usize::MAX };
                    let (tx, mut rx) = queue(limit);
                    let (pushed, mut next) = (AtomicUsize::new(0), 0);
                    let blown = thread::scope(|scope| {
                        let producer = scope.spawn(|| {
                            let mut tx = tx;
                            let blown = burn(fuse(0), || produce(&mut tx, &pushed)).is_none();
                            // Where a batch has panicked the consumer knows better how much of it was pushed.
                            let sum = tx.bytes();
                            assert!(!tx.is_closed() && sum < 1 << 20);
                            drop(tx);
                            blown
                        });
                        let blown = burn(fuse(1), || consume(&mut rx, &mut next)).is_none();
                        consume(&mut rx, &mut next);
                        producer.join().unwrap() || blown
                    });
                    let pushed = pushed.into_inner();
                    assert!((pushed..=pushed + if blown { 2 } else { 0 }).contains(&next), "{next} of {pushed}");
                    blown
                });
            }
        }
    });
}
