//! Messages of bytes.

use super::episode::Episode;
use super::load::{Mood, Random, Way, timed};
use super::watch::{Doing, Watch};
use corelane::error::{PopTimeoutError, TryPopError};
use corelane::spsc::stream::{self, Consumer, Producer, PushError, Tuning};
use corelane::spsc::{NoStats, Options};
use std::thread;
use std::time::Instant;

/// The most bytes in a stream without a limit.
const AHEAD: usize = 4 << 20;

/// Writes a message that begins with its number and is filled with the number's lowest byte.
fn write(memory: &mut Vec<u8>, number: u64, random: &mut Random) {
    let len = match random.below(1000) {
        0 => random.below(100_000),
        1..100 => random.below(3_000),
        _ => random.below(60),
    };
    memory.clear();
    memory.resize(8 + len as usize, number as u8);
    memory[..8].copy_from_slice(&number.to_le_bytes());
}

#[track_caller]
fn check(message: &[u8], next: &mut u64) {
    assert_eq!(message[..8], next.to_le_bytes(), "the next message is another");
    assert!(message[8..].iter().all(|&byte| byte == *next as u8), "message {next} is not what was sent");
    *next += 1;
}

pub(crate) fn run(episode: &mut Episode<'_>) -> u64 {
    let random = &mut episode.random;
    let tuning = Tuning::new();
    let tuning = random.one_of(&[Some(64), Some(4096), None]).map_or(tuning, |bytes| tuning.segment(bytes));
    let tuning = random.one_of(&[Some(1), None]).map_or(tuning, |segments| tuning.cached(segments));
    let tuning = random.one_of(&[None, Some(100), Some(100_000)]).map_or(tuning, |bytes| tuning.limit(bytes));
    let options = Options::new().tuning(tuning).wait(random.one_of(&Way::ALL));
    let (tx, rx) = stream::channel_with::<_, NoStats>(options).expect("a good segment");
    let consumer_ends = random.below(2) == 0;
    let (one, other) = (random.fork(), random.fork());
    let (watch, until) = (episode.watch, episode.until);
    let (accepted, received) = thread::scope(|scope| {
        let producer = scope.spawn(move || produce(tx, consumer_ends, one, until, watch));
        let consumer = scope.spawn(move || consume(rx, consumer_ends, other, until, watch));
        (producer.join().expect("see above"), consumer.join().expect("see above"))
    });
    assert_eq!(received, accepted, "of so many messages that were accepted");
    received
}

fn produce(mut tx: Producer<Way>, consumer_ends: bool, random: Random, until: Instant, watch: &Watch) -> u64 {
    let at = watch.place("producer");
    let mut mood = Mood::new(random);
    let (mut next, mut memory) = (0, Vec::new());
    while consumer_ends || Instant::now() < until {
        at.now(Doing::Pauses);
        mood.pause();
        if tx.is_closed() {
            break;
        }
        if tx.bytes() > AHEAD {
            continue;
        }
        for _ in 0..mood.random.below(30) {
            write(&mut memory, next, &mut mood.random);
            let outcome = match mood.random.below(5) {
                0 => {
                    at.now(Doing::Pushes);
                    tx.push(&memory)
                }
                1 => {
                    at.now(Doing::TriesToPush);
                    tx.try_push(&memory)
                }
                2 => {
                    at.now(Doing::PushesInTime);
                    let is_timeout = |refusal: &_| *refusal == PushError::Timeout;
                    timed(mood.random.moment(), |time| tx.push_timeout(&memory, time), is_timeout)
                }
                3 => {
                    at.now(Doing::Reserves);
                    tx.try_reserve(memory.len()).and_then(|mut place| {
                        place.append(&memory);
                        place.commit_written().map_err(|_| PushError::Closed)
                    })
                }
                _ => {
                    at.now(Doing::PushesABatch);
                    let batch = [next, next + 1, next + 2].map(|number| {
                        let mut message = Vec::new();
                        write(&mut message, number, &mut mood.random);
                        message
                    });
                    next += tx.try_push_batch(&batch).unwrap_or(0) as u64;
                    continue;
                }
            };
            match outcome {
                Ok(()) => next += 1,
                Err(PushError::Full | PushError::Timeout | PushError::TooLarge) => {}
                Err(PushError::Closed) => return next,
                Err(refusal) => panic!("{refusal}"),
            }
        }
    }
    at.now(Doing::Closes);
    next
}

fn consume(mut rx: Consumer<Way>, ends: bool, random: Random, until: Instant, watch: &Watch) -> u64 {
    let at = watch.place("consumer");
    let mut mood = Mood::new(random);
    let mut next = 0;
    let mut is_over = false;
    loop {
        at.now(Doing::Pauses);
        mood.pause();
        if ends && !is_over && Instant::now() >= until {
            at.now(Doing::Closes);
            rx.close();
            is_over = true;
        }
        for _ in 0..mood.random.below(30) {
            match mood.random.below(5) {
                0 if !ends => {
                    at.now(Doing::Pops);
                    match rx.pop() {
                        Ok(message) => check(message, &mut next),
                        Err(_) => return next,
                    }
                }
                0 | 1 => {
                    at.now(Doing::TriesToPop);
                    match rx.try_pop() {
                        Ok(message) => check(message, &mut next),
                        Err(TryPopError::Empty) => {}
                        Err(_) => return next,
                    }
                }
                2 => {
                    at.now(Doing::PopsInTime);
                    let time = mood.random.moment();
                    let start = Instant::now();
                    match rx.pop_timeout(time) {
                        Ok(message) => check(message, &mut next),
                        Err(PopTimeoutError::Timeout) => assert!(start.elapsed() >= time, "it gave up early"),
                        Err(_) => return next,
                    }
                }
                3 => {
                    at.now(Doing::PopsABatch);
                    let most = mood.random.below(100) as usize;
                    rx.try_pop_batch(most).into_iter().flatten().for_each(|message| check(message, &mut next));
                }
                _ => {
                    at.now(Doing::Peeks);
                    if let Ok(message) = rx.try_peek() {
                        check(&message, &mut next);
                        message.release();
                    }
                }
            }
        }
    }
}
