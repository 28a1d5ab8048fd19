//! Messages of bytes.

use crate::{Wait, draw, explore, in_time, many, one_of, thread, wait};
use corelane::error::{PopTimeoutError, TryPopError};
use corelane::spsc::Options;
use corelane::spsc::stream::{self, Consumer, Producer, PushError, Tuning};

type Ends = (Producer<Wait>, Consumer<Wait>);

/// Short segments, so that messages often begin another one; with a limit or not.
fn queue() -> (Ends, usize) {
    let segment = if cfg!(corelane_shuttle) { one_of(&[8, 40, 100, 1_000]) } else { one_of(&[8, 64, 4_096, 60_000]) };
    let limit = one_of(&[None, Some(16), Some(200), Some(if cfg!(corelane_shuttle) { 1_000 } else { 100_000 })]);
    let tuning = Tuning::new().segment(segment).cached(draw(1..4));
    let tuning = limit.map_or(tuning, |limit| tuning.limit(limit));
    let options = Options::new().tuning(tuning).wait(wait()).start_at(one_of(&[0, usize::MAX - 40]));
    let longest = limit.map_or(3 * segment / 2, |limit| limit - 8);
    (stream::channel_with(options).unwrap(), longest)
}

/// The message of this number.
fn message(number: usize, longest: usize) -> Vec<u8> {
    let len = number.wrapping_mul(number / 3 + 7) % (longest + 1);
    (0..len).map(|i| (number.wrapping_mul(31) ^ i ^ len) as u8).collect()
}

/// Pushes messages by drawn calls. Returns the number of the first that was refused as the queue is closed, or how many
/// there are.
fn push_all(producer: &mut Producer<Wait>, messages: usize, longest: usize, timed: bool) -> usize {
    let mut next = 0;
    while next < messages {
        let bytes = message(next, longest);
        // And what else than Closed such a call may say where there is no room.
        let (pushed, no_room) = match draw(0..if timed { 5 } else { 4 }) {
            0 => (producer.try_push(&bytes), Some(PushError::Full)),
            1 => {
                let batch =
                    (next..messages).take(draw(1..10)).map(|number| message(number, longest)).collect::<Vec<_>>();
                let pushed = producer.try_push_batch(&batch);
                next += pushed.unwrap_or(0);
                if producer.is_closed() {
                    return next;
                }
                assert_ne!(pushed, Ok(0), "there were some");
                thread::yield_now();
                match pushed {
                    Ok(_) | Err(PushError::Full) => continue,
                    Err(error) => panic!("{error}"),
                }
            }
            2 => match producer.try_reserve(bytes.len() + draw(0..2).min(longest - bytes.len())) {
                Ok(reserved) if draw(0..4) == 0 => {
                    drop(reserved);
                    thread::yield_now();
                    continue;
                }
                Ok(mut reserved) => {
                    reserved.append(&bytes);
                    (reserved.commit_written().map_err(|_| PushError::Closed), None)
                }
                Err(error) => (Err(error), Some(PushError::Full)),
            },
            4 => {
                let is_timeout = |error: &_| *error == PushError::Timeout;
                (in_time(is_timeout, |time| producer.push_timeout(&bytes, time)), Some(PushError::Timeout))
            }
            _ => (producer.push(&bytes), None),
        };
        match pushed {
            Ok(()) => next += 1,
            Err(PushError::Closed) => return next,
            Err(error) if Some(error) == no_room => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
    next
}

/// Pops messages by drawn calls, until there are so many or the queue is closed. Returns the number of the next.
fn pop_all(consumer: &mut Consumer<Wait>, to: usize, longest: usize, timed: bool) -> usize {
    let mut next = 0;
    while next < to {
        let popped = match draw(0..if timed { 5 } else { 4 }) {
            0 => consumer.try_pop(),
            1 => {
                for bytes in consumer.try_pop_batch(draw(1..10).min(to - next)).into_iter().flatten() {
                    assert_eq!(bytes, message(next, longest));
                    next += 1;
                }
                thread::yield_now();
                continue;
            }
            2 => {
                if let Ok(peeked) = consumer.try_peek() {
                    assert_eq!(*peeked, message(next, longest));
                    if draw(0..2) == 0 {
                        peeked.release();
                        next += 1;
                    }
                }
                thread::yield_now();
                continue;
            }
            4 => {
                let consumer = &mut *consumer;
                let popped = in_time(PopTimeoutError::is_timeout, move |time| consumer.pop_timeout(time));
                popped.map_err(|error| if error.is_timeout() { TryPopError::Empty } else { TryPopError::Closed })
            }
            _ => consumer.pop().map_err(|_| TryPopError::Closed),
        };
        match popped {
            Ok(bytes) => {
                assert_eq!(bytes, message(next, longest));
                next += 1;
            }
            Err(TryPopError::Closed) => return next,
            Err(_) => thread::yield_now(),
        }
    }
    next
}

fn crossing(timed: bool) {
    explore(move || {
        let ((mut producer, mut consumer), longest) = queue();
        let messages = many(draw(1..100));
        let pusher = thread::spawn(move || assert_eq!(push_all(&mut producer, messages, longest, timed), messages));
        assert_eq!(pop_all(&mut consumer, usize::MAX, longest, timed), messages);
        pusher.join().unwrap();
    });
}

#[test]
fn messages_come_once_and_in_order() {
    crossing(false);
}

#[test]
fn time_outs_lose_nothing() {
    crossing(true);
}

#[test]
fn questions_are_answered() {
    explore(|| {
        let (((mut ask, mut asked), longest), ((mut answer, mut answered), other)) = (queue(), queue());
        let longest = longest.min(other);
        let server = thread::spawn(move || {
            while let Ok(question) = asked.pop() {
                answer.push(question).unwrap();
            }
        });
        for number in 0..many(draw(1..60)) {
            ask.push(&message(number, longest)).unwrap();
            assert_eq!(answered.pop().unwrap(), message(number, longest));
        }
        drop(ask);
        server.join().unwrap();
    });
}

#[test]
fn the_consumer_closes_in_midstream() {
    explore(|| {
        let ((mut producer, mut consumer), longest) = queue();
        let messages = many(draw(1..100));
        let pusher = thread::spawn(move || {
            let pushed = push_all(&mut producer, messages, longest, draw(0..2) == 0);
            // An end that was told so once is told so for ever.
            if pushed < messages {
                assert!(producer.is_closed());
                assert_eq!(producer.try_push(&message(pushed, longest)), Err(PushError::Closed));
            }
            pushed
        });
        let mut popped = pop_all(&mut consumer, draw(0..messages + 1), longest, false);
        consumer.close();
        while let Ok(bytes) = consumer.try_pop() {
            assert_eq!(bytes, message(popped, longest));
            popped += 1;
        }
        assert_eq!(consumer.try_pop(), Err(TryPopError::Closed));
        assert_eq!(pusher.join().unwrap(), popped);
    });
}
