//! `spsc::stream`: messages of every length, in order and whole; bounds, closing and waiting as the other queues have
//! them.

#![allow(clippy::drop_non_drop, clippy::forget_non_drop)]
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[path = "support/first.rs"]
mod first;
#[path = "support/histories.rs"]
mod histories;
#[path = "support/one_to_one.rs"]
#[expect(dead_code, reason = "it counts bytes, and has no bound here")]
mod one_to_one;
#[allow(dead_code, reason = "it pauses nowhere")]
#[path = "support/random.rs"]
mod random;
#[path = "support/watchdog.rs"]
mod watchdog;

use corelane::error::{ChannelError, Closed, PopTimeoutError, TryPopError};
use corelane::spsc::stream::{self, Consumer, Producer, PushError, Tuning};
use corelane::spsc::{self, Counting, NoStats, Options};
use corelane::wait::{Adaptive, Park, Select, Selectable, Spin, Strategy, Yield};
use first::first;
use histories::{Clock, Event};
use one_to_one::{Step, judge};
use random::Random;
use std::io::{BufRead, ErrorKind, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::{mem, thread};

/// Long enough for the other thread to fall asleep.
const NAP: Duration = Duration::from_millis(4);
/// Tells late from never: there is no telling how late a call may end on a busy machine. The watchdog is more patient.
const SLACK: Duration = Duration::from_secs(30);
const STARTS: [usize; 2] = [0, usize::MAX - 30];

type Ends<W> = (Producer<W>, Consumer<W>);

fn queue_with<W: Strategy>(segment: usize, limit: Option<usize>, start: usize, wait: W) -> Ends<W> {
    let tuning = Tuning::new().segment(segment).cached(2);
    let tuning = limit.map_or(tuning, |limit| tuning.limit(limit));
    stream::channel_with(Options::new().tuning(tuning).wait(wait).start_at(start)).unwrap()
}

fn queue(segment: usize, limit: Option<usize>) -> Ends<Adaptive> {
    queue_with(segment, limit, usize::MAX - 30, Adaptive)
}

/// The message of this number: its bytes tell number, place and length.
fn message(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (number.wrapping_mul(31) ^ i ^ len) as u8).collect()
}

/// What a message takes up.
fn weight(len: usize) -> usize {
    8 + len.next_multiple_of(8)
}

fn popped_of<'a>(batch: Result<impl Iterator<Item = &'a [u8]>, TryPopError>) -> usize {
    batch.map_or(0, Iterator::count)
}

#[test]
fn messages_of_every_length_come_out_as_they_went_in() {
    for segment in [1, 24, 64, 4096, 65_536] {
        let (mut tx, mut rx) = queue(segment, None);
        let mut lens = (0..=20).chain([63, 64, 65, 4095, 4097]).collect::<Vec<_>>();
        // Around what a segment holds, with and without a header in front and behind.
        lens.extend((segment.saturating_sub(17)..=segment + 17).chain([10 << 20]));
        for (number, &len) in lens.iter().enumerate() {
            tx.try_push(&message(number, len)).unwrap();
            assert_eq!((tx.bytes(), rx.bytes()), (weight(len), weight(len)));
            let peeked = rx.try_peek().unwrap();
            assert!(is_aligned(peeked.as_ptr()));
            assert!(*peeked == *message(number, len), "{len} bytes, segments of {segment}");
            peeked.release();
            assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
        }
        for (number, &len) in lens.iter().enumerate() {
            tx.push(&message(number, len)).unwrap();
        }
        for (number, &len) in lens.iter().enumerate() {
            assert!(rx.pop().unwrap() == message(number, len), "{len} bytes, segments of {segment}");
        }
        assert!(rx.is_empty());
    }
}

fn is_aligned<T>(memory: *const T) -> bool {
    (memory as usize).is_multiple_of(stream::ALIGN)
}

#[test]
fn no_more_than_reserved_is_committed() {
    let (mut tx, mut rx) = queue(64, None);
    let reserved = tx.try_reserve(8).unwrap();
    // SAFETY: it panics.
    catch_unwind(AssertUnwindSafe(|| unsafe { reserved.commit(9) })).unwrap_err();
    assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
    let reserved = tx.try_reserve(1000).unwrap();
    reserved.commit_written().unwrap();
    assert_eq!(rx.try_pop(), Ok(&b""[..]));
    tx.push(b"next").unwrap();
    assert_eq!(rx.pop(), Ok(&b"next"[..]));
}

#[test]
fn a_batch_ends_at_the_limit() {
    let (mut tx, mut rx) = queue(64, Some(100));
    assert_eq!(tx.try_push_batch(&["12345678"; 10]).unwrap_or(0), 6, "6 of 16 bytes each are within 96");
    assert_eq!(tx.try_push_batch(&["1"; 10]).unwrap_or(0), 0);
    assert_eq!(tx.try_push(b""), Err(PushError::Full));
    assert_eq!(popped_of(rx.try_pop_batch(10)) + popped_of(rx.try_pop_batch(10)), 6);
    assert!(rx.is_empty());
    assert_eq!(tx.try_push_batch(&["", "", "123456789"]).unwrap_or(0), 3);
    assert_eq!(tx.push_batch::<&[u8]>(&[]), Ok(()));
    assert_eq!(popped_of(rx.try_pop_batch(0)), 0);
    assert_eq!(rx.bytes(), 40);
}

#[test]
fn a_batch_that_panics_has_pushed_what_came_before() {
    struct Explosive(Option<&'static str>);
    impl AsRef<[u8]> for Explosive {
        fn as_ref(&self) -> &[u8] {
            self.0.expect("a message that panics").as_bytes()
        }
    }
    for good in 0..20 {
        let (mut tx, mut rx) = queue(64, None);
        let batch = (0..=good).map(|i| Explosive((i < good).then_some("some bytes"))).collect::<Vec<_>>();
        catch_unwind(AssertUnwindSafe(|| tx.try_push_batch(&batch).unwrap_or(0))).unwrap_err();
        for _ in 0..good {
            assert_eq!(rx.try_pop(), Ok(&b"some bytes"[..]));
        }
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
        tx.push(b"after").unwrap();
        assert_eq!(rx.try_pop(), Ok(&b"after"[..]));
    }
}

#[test]
fn what_is_drained_is_lent_together() {
    let (mut tx, mut rx) = queue(1000, None);
    for number in 0..200 {
        tx.push(&message(number, number)).unwrap();
    }
    let mut number = 0;
    while !rx.is_empty() {
        let lent = rx.try_pop_batch(usize::MAX).unwrap().collect::<Vec<_>>();
        assert!(!lent.is_empty());
        // The producer goes on while they are lent.
        (0..50).for_each(|_| tx.push(&[0; 100]).unwrap());
        for got in lent {
            if number < 200 {
                assert_eq!(got, message(number, number));
            }
            number += 1;
        }
        if number > 400 {
            break;
        }
    }
    let (mut tx, mut rx) = queue(1000, None);
    assert_eq!(tx.try_push_batch(&["a", "b", "c"]).unwrap_or(0), 3);
    let mut drain = rx.try_pop_batch(10).unwrap();
    assert_eq!(drain.next(), Some(&b"a"[..]));
    drop(drain);
    assert_eq!(popped_of(rx.try_pop_batch(1)), 1);
    mem::forget(rx.try_pop_batch(1));
    assert_eq!(rx.pop(), Ok(&b"c"[..]));
}

#[test]
fn a_limit_is_kept_and_comes_back() {
    for limit in [16, 24, 64, 100, 1000, 10_000] {
        let (mut tx, mut rx) = queue(64, Some(limit));
        let most = limit / 8 * 8;
        assert_eq!((tx.limit(), rx.limit()), (Some(most), Some(most)));
        for len in [0, 1, 8, 9, 40] {
            if weight(len) > most {
                assert_eq!(tx.try_push(&vec![0; len]), Err(PushError::TooLarge));
                assert_eq!(tx.push(&vec![0; len]), Err(PushError::TooLarge));
                continue;
            }
            for _ in 0..30 {
                let mut count = 0;
                while tx.try_push(&vec![1; len]).is_ok() {
                    count += 1;
                }
                assert_eq!(count, most / weight(len));
                assert_eq!(rx.bytes(), count * weight(len));
                // An eighth, and the last message, may not be told of yet.
                let lag = most / 8 + 2 * weight(len);
                let mut popped = 0;
                while popped < count && popped * weight(len) <= lag {
                    rx.pop().unwrap();
                    popped += 1;
                }
                if popped * weight(len) > lag {
                    assert_eq!(tx.try_push(&vec![1; len]), Ok(()));
                }
                while rx.try_pop().is_ok() {}
                assert!(tx.is_empty());
            }
        }
        let whole = vec![7; most - 8];
        assert_eq!(tx.try_push(&whole), Ok(()));
        assert_eq!(tx.try_push(b""), Err(PushError::Full));
        assert!(rx.pop().unwrap() == whole && rx.is_empty());
        assert_eq!(tx.try_reserve(most - 7).err(), Some(PushError::TooLarge));
    }
    let (tx, rx) = stream::channel();
    assert_eq!((tx.limit(), rx.limit()), (None, None));
}

/// No memory that is freed would help.
#[test]
fn a_message_beyond_all_addresses_is_too_large() {
    let (mut tx, _rx) = stream::channel();
    for len in [usize::MAX, isize::MAX as usize, isize::MAX as usize / 2 + 1] {
        assert_eq!(tx.try_reserve(len).err(), Some(PushError::TooLarge), "{len}");
        assert_eq!(tx.reserve(len).err(), Some(PushError::TooLarge), "{len}");
        assert_eq!(tx.wait_for_room(len).err(), Some(PushError::TooLarge), "{len}");
    }
    // A machine of 32 bits may have so much.
    if cfg!(target_pointer_width = "64") && !cfg!(miri) {
        assert_eq!(tx.try_reserve(isize::MAX as usize / 2 - 100).err(), Some(PushError::NoMemory));
    }
    assert_eq!(tx.push(b"a message"), Ok(()));
}

#[test]
fn what_cannot_be_made_is_refused() {
    let refused = |tuning| stream::channel_with::<Adaptive, NoStats>(Options::new().tuning(tuning)).err();
    assert_eq!(refused(Tuning::new().segment(0)), Some(ChannelError::BadSegment));
    assert_eq!(refused(Tuning::new().cached(0)), Some(ChannelError::BadSegment));
    assert_eq!(refused(Tuning::new().limit(0)), Some(ChannelError::ZeroCapacity));
    assert_eq!(refused(Tuning::new().limit(15)), Some(ChannelError::ZeroCapacity));
    assert_eq!(refused(Tuning::new().segment(usize::MAX)), Some(ChannelError::TooLarge));
    assert_eq!(refused(Tuning::new().cached(usize::MAX / 8)), Some(ChannelError::NoMemory));
    assert_eq!(refused(Tuning::new().segment(1).cached(1).limit(16)), None);
    assert_eq!(refused(Tuning::new().limit(usize::MAX)), None);
}

#[test]
fn what_was_pushed_before_the_producer_left_is_drained() {
    for count in if cfg!(miri) { 0..12 } else { 0..40 } {
        let (mut tx, mut rx) = queue(64, None);
        (0..count).for_each(|number| tx.push(&message(number, number)).unwrap());
        assert!(!rx.is_closed());
        if count % 2 == 0 {
            drop(tx);
        } else {
            tx.close();
            assert!(tx.is_closed());
            assert_eq!(tx.try_push(b"late"), Err(PushError::Closed));
            assert_eq!(tx.push(&[0; 1000]), Err(PushError::Closed));
            assert_eq!(tx.try_push_batch(&["late"]).unwrap_or(0), 0);
            assert_eq!(tx.try_reserve(1).err(), Some(PushError::Closed));
        }
        assert!(rx.is_closed());
        for number in 0..count {
            assert!(rx.pop().unwrap() == message(number, number));
        }
        assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
        assert_eq!(rx.pop(), Err(Closed(())));
        assert_eq!(rx.pop_timeout(Duration::from_secs(100)), Err(PopTimeoutError::Closed));
        assert!(rx.try_peek().is_err() && rx.try_pop_batch(9).is_err() && rx.bytes() == 0);
    }
}

#[test]
fn a_consumer_that_closed_gets_exactly_what_was_accepted() {
    for (count, start) in (0..40).flat_map(|count| STARTS.map(|start| (count, start))) {
        for popped in [0, 1, count / 2, count] {
            let popped = popped.min(count);
            let (mut tx, mut rx) = queue_with(64, None, start, Adaptive);
            (0..count).for_each(|number| tx.push(&message(number, number)).unwrap());
            (0..popped).for_each(|number| assert!(rx.pop().unwrap() == message(number, number)));
            let reserved = tx.try_reserve(5).unwrap();
            rx.close();
            rx.close();
            assert_eq!(reserved.commit_written(), Err(Closed(())));
            for _ in 0..20 {
                assert_eq!(tx.try_push(&[1; 30]), Err(PushError::Closed));
                assert_eq!(tx.push(b""), Err(PushError::Closed));
                assert_eq!(tx.try_push_batch(&["late", "later"]).unwrap_or(0), 0);
            }
            assert_eq!(tx.try_reserve(1).err(), Some(PushError::Closed));
            assert!(tx.is_closed());
            for number in popped..count {
                assert!(rx.try_pop().unwrap() == message(number, number));
            }
            assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
            assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
        }
    }
}

#[test]
fn pushes_after_the_consumer_left_are_refused() {
    for limit in [None, Some(64)] {
        let (mut tx, rx) = queue(64, limit);
        tx.push(&[1; 20]).unwrap();
        drop(rx);
        for _ in 0..20 {
            assert_eq!(tx.try_push(&[1; 40]), Err(PushError::Closed));
            assert_eq!(tx.push(&[1; 40]), Err(PushError::Closed));
            assert_eq!(tx.push_timeout(b"", Duration::from_secs(100)), Err(PushError::Closed));
        }
        assert!(tx.is_closed());
    }
}

#[test]
fn a_parked_consumer_is_woken() {
    watchdog::guard(parked_consumers_are_woken);
}

fn parked_consumers_are_woken() {
    fn wake(expected: Result<&[u8], Closed>, wake: impl FnOnce(Producer<Park>) -> Option<Producer<Park>>) {
        let (tx, mut rx) = queue_with(64, None, usize::MAX, Park);
        thread::scope(|scope| {
            let popper = scope.spawn(move || (rx.pop().map(<[u8]>::to_vec), rx));
            thread::sleep(NAP);
            // Both are kept until both calls have returned: nothing may close the queue under one of them.
            let tx = wake(tx);
            let (popped, rx) = popper.join().unwrap();
            assert_eq!(popped, expected.map(<[u8]>::to_vec));
            drop((tx, rx));
        });
    }
    wake(Ok(b"one"), |mut tx| {
        tx.try_push(b"one").unwrap();
        Some(tx)
    });
    wake(Ok(&[3; 1000]), |mut tx| {
        tx.push(&[3; 1000]).unwrap();
        Some(tx)
    });
    wake(Ok(b"a"), |mut tx| {
        assert_eq!(tx.try_push_batch(&["a", "b"]).unwrap_or(0), 2);
        Some(tx)
    });
    wake(Ok(b"in"), |mut tx| {
        let mut reserved = tx.try_reserve(10).unwrap();
        reserved.append(b"in");
        reserved.commit_written().unwrap();
        Some(tx)
    });
    wake(Err(Closed(())), |mut tx| {
        tx.close();
        Some(tx)
    });
    wake(Err(Closed(())), |_| None);
}

#[test]
fn a_parked_producer_is_woken() {
    watchdog::guard(parked_producers_are_woken);
}

fn parked_producers_are_woken() {
    fn wake(len: usize, expected: Result<(), PushError>, wake: impl FnOnce(Consumer<Park>) -> Option<Consumer<Park>>) {
        let (mut tx, rx) = queue_with(64, Some(256), usize::MAX, Park);
        while tx.try_push(&[7; 8]).is_ok() {}
        thread::scope(|scope| {
            let pusher = scope.spawn(move || (tx.push(&vec![9; len]), tx));
            thread::sleep(NAP);
            let rx = wake(rx);
            let (pushed, tx) = pusher.join().unwrap();
            assert_eq!(pushed, expected);
            drop((tx, rx));
        });
    }
    wake(8, Ok(()), |mut rx| {
        // An eighth of the limit is two messages; the third look tells of them.
        (0..3).for_each(|_| assert!(rx.try_pop().is_ok()));
        Some(rx)
    });
    wake(248, Ok(()), |mut rx| {
        while rx.try_pop().is_ok() {}
        Some(rx)
    });
    wake(100, Ok(()), |mut rx| {
        while popped_of(rx.try_pop_batch(3)) > 0 {}
        Some(rx)
    });
    wake(8, Err(PushError::Closed), |mut rx| {
        rx.close();
        Some(rx)
    });
    wake(8, Err(PushError::Closed), |_| None);
}

#[test]
fn no_wake_up_is_lost() {
    watchdog::guard(|| {
        for limit in [16, 64, 200] {
            let (mut tx, mut rx) = queue_with(64, Some(limit), usize::MAX, Park);
            thread::scope(|scope| {
                scope.spawn(move || (0..5_000_u64).for_each(|number| tx.push(&number.to_ne_bytes()).unwrap()));
                (0..5_000_u64).for_each(|number| assert_eq!(rx.pop(), Ok(&number.to_ne_bytes()[..])));
                assert_eq!(rx.pop(), Err(Closed(())));
            });
        }
    });
}

#[test]
fn timed_calls_are_neither_early_nor_for_ever() {
    watchdog::guard(|| {
        fn on_time(time: Duration, call: impl FnOnce()) {
            let since = Instant::now();
            call();
            let took = since.elapsed();
            assert!(took >= time && took <= time + SLACK, "{took:?} for {time:?}");
        }
        fn timed<W: Strategy>(wait: W) {
            let (mut tx, mut rx) = queue_with(64, Some(64), 0, wait);
            for time in [Duration::ZERO, Duration::from_millis(6)] {
                on_time(time, || assert_eq!(rx.pop_timeout(time), Err(PopTimeoutError::Timeout)));
            }
            while tx.try_push(b"").is_ok() {}
            for time in [Duration::ZERO, Duration::from_millis(6)] {
                on_time(time, || assert_eq!(tx.push_timeout(b"", time), Err(PushError::Timeout)));
            }
            assert_eq!(rx.pop_timeout(Duration::MAX), Ok(&b""[..]));
            assert_eq!(tx.push_timeout(&[0; 100], Duration::from_secs(100)), Err(PushError::TooLarge));
        }
        timed(Spin);
        timed(Yield);
        timed(Park);
        timed(Adaptive);
    });
}

#[test]
fn a_stream_and_a_lane_are_waited_for_together() {
    watchdog::guard(|| {
        let (mut bytes, mut from_bytes) =
            stream::channel_with::<_, NoStats>(Options::new().tuning(Tuning::default()).wait(Park)).unwrap();
        let (mut items, mut from_items) = spsc::channel::<u64>(5);
        for turn in 0..20 {
            thread::scope(|scope| {
                let sleeper = scope.spawn(|| {
                    first(&mut [&mut from_bytes as &mut (dyn Selectable + Send), &mut from_items], &Park, None)
                });
                if turn % 4 == 0 {
                    thread::sleep(NAP);
                }
                if turn % 2 == 0 {
                    bytes.push(b"x").unwrap();
                } else {
                    items.push(7).unwrap();
                }
                assert_eq!(sleeper.join().unwrap(), Some(turn % 2));
            });
            if turn % 2 == 0 {
                assert!(from_bytes.try_pop().is_ok());
            } else {
                assert!(from_items.try_pop().is_ok());
            }
        }
        assert_eq!(first(&mut [&mut bytes], &Park, Some(Duration::ZERO)), Some(0), "a producer with room is ready");
    });
}

#[test]
fn a_producer_is_waited_for_until_a_message_of_so_many_bytes_fits() {
    watchdog::guard(|| {
        let (mut tx, mut rx) = queue(1000, Some(256));
        while tx.try_push(&[0; 16]).is_ok() {}
        let mut select = Select::with(Park);
        let tx = select.add_for(tx, 100);
        assert_eq!(select.try_wait(), None);
        thread::scope(|scope| {
            scope.spawn(move || {
                thread::sleep(NAP);
                while rx.pop().is_ok() {}
            });
            assert_eq!(select.wait().unwrap(), tx);
            assert_eq!(select[tx].try_push(&[1; 100]), Ok(()));
            drop(select);
        });
    });
}

#[test]
fn bytes_are_copied_through_writer_and_reader() {
    watchdog::guard(|| {
        let text = message(5, if cfg!(miri) { 15_000 } else { 300_000 });
        let (tx, mut rx) = queue(1000, Some(5_000));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut tx = tx;
                let mut random = Random::new(9);
                let mut left = &text[..];
                while !left.is_empty() {
                    let (now, later) = left.split_at(random.below(3_000).min(left.len()));
                    tx.writer().write_all(now).unwrap();
                    left = later;
                }
                tx.writer().flush().unwrap();
            });
            let mut got = Vec::new();
            rx.reader().read_to_end(&mut got).unwrap();
            assert!(got == text);
        });
        let mut text = String::new();
        let (mut tx2, mut rx2) = queue(64, None);
        for part in ["first li", "ne\n", "", "second line\nthi", "rd"] {
            tx2.push(part.as_bytes()).unwrap();
        }
        tx2.close();
        assert_eq!(
            rx2.reader().lines().map(Result::unwrap).collect::<Vec<_>>(),
            ["first line", "second line", "third"]
        );
        assert_eq!(rx2.reader().read_to_string(&mut text).unwrap(), 0);
        assert_eq!(tx2.writer().write(b"late").unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_writer_says_what_is_too_large() {
    let (mut tx, _rx) = queue(64, Some(64));
    assert_eq!(tx.writer().write(b"").unwrap(), 0);
    assert_eq!(tx.writer().write(&[0; 57]).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(tx.writer().write(&[0; 56]).unwrap(), 56);
    assert!(tx.bytes() == 64);
}

#[test]
fn a_message_read_in_part_goes_with_its_reader() {
    let (mut tx, mut rx) = queue(64, None);
    assert_eq!(tx.try_push_batch(&["abc", "def", "ghi"]).unwrap_or(0), 3);
    let mut reader = rx.reader();
    let mut two = [0; 2];
    reader.read_exact(&mut two).unwrap();
    assert_eq!(&two, b"ab");
    drop(reader);
    assert_eq!(rx.reader().read(&mut []).unwrap(), 0);
    assert_eq!(rx.reader().fill_buf().unwrap(), b"def");
    assert_eq!(rx.pop(), Ok(&b"def"[..]), "nothing was read of it");
    let mut reader = rx.reader();
    reader.read_exact(&mut [0; 3]).unwrap();
    drop(reader);
    assert!(rx.is_empty());
}

#[test]
fn both_ends_count() {
    let tuning = Tuning::new().segment(64).limit(64);
    let (mut tx, mut rx) = stream::channel_with(Options::new().tuning(tuning).wait(Spin).stats::<Counting>()).unwrap();
    assert!(rx.try_pop().is_err() && rx.try_peek().is_err() && rx.try_pop_batch(1).is_err());
    tx.try_push(&[0; 8]).unwrap();
    assert_eq!(tx.try_push_batch(&[[0; 8]; 4]).unwrap_or(0), 3);
    assert!(tx.try_push(b"").is_err() && tx.try_push(&[0; 100]).is_err());
    assert_eq!(popped_of(rx.try_pop_batch(3)) + popped_of(rx.try_pop_batch(3)), 4);
    let (sent, received) = (tx.stats(), rx.stats());
    assert_eq!((sent.pushes, sent.full, sent.waits, sent.high_water), (4, 2, 0, 64));
    assert_eq!((received.pops, received.empty, received.waits), (4, 3, 0));
    rx.close();
    assert!(tx.try_push(b"").is_err());
    assert_eq!(tx.stats().pushes, 4);
}

#[test]
fn handles_are_sent_and_debugged() {
    const fn is_sent<T: Send>() {}
    is_sent::<Producer>();
    is_sent::<Consumer>();
    let (mut tx, mut rx) = queue(64, Some(640));
    tx.push(b"secret").unwrap();
    let texts = [
        format!("{tx:?} {rx:?}") + &format!("{:?}", tx.try_reserve(5).unwrap()),
        format!("{:?}", rx.try_peek().unwrap()),
        format!("{:?}", rx.try_pop_batch(1)),
        format!("{:?}", rx.reader()),
    ];
    assert!(texts[0].contains("limit: Some(640), closed: false") && texts[0].contains("Reserved { len: 5"));
    assert!(!texts.concat().contains("secret") && texts[1].contains("len: 6"));
    let said = [PushError::Full, PushError::TooLarge, PushError::NoMemory, PushError::Closed].map(|e| e.to_string());
    assert_eq!(
        said,
        [
            "the queue has no room for the message",
            "the message is larger than the queue's limit, or than any memory",
            "there is not enough memory for the message",
            "the queue is closed"
        ]
    );
}

/// Its number, and then bytes that tell it once more.
fn numbered(number: u64, len: usize) -> Vec<u8> {
    let mut message = number.to_le_bytes().to_vec();
    message.resize(8 + len, number as u8);
    message
}

fn number_of(message: &[u8]) -> u64 {
    let (number, rest) = message.split_first_chunk().expect("it has a number");
    let number = u64::from_le_bytes(*number);
    assert!(rest.iter().all(|&byte| byte == number as u8), "message {number} came in pieces");
    number
}

/// A call of the producer, which has pushed so many messages.
fn produce(tx: &mut Producer<Adaptive>, random: &mut Random, next: &mut u64, clock: &Clock) -> Event<Vec<Step>> {
    let number = *next;
    let message = numbered(number, random.below(60));
    let (begin, end, steps) = match random.below(30) {
        0 => clock.time(|| {
            tx.close();
            vec![Step::Close]
        }),
        1..4 => clock.time(|| vec![Step::IsClosed(tx.is_closed())]),
        4..12 => {
            let batch: Vec<_> = (number..number + 4).map(|number| numbered(number, random.below(30))).collect();
            let (begin, end, pushed) = clock.time(|| tx.try_push_batch(&batch).unwrap_or(0) as u64);
            *next += pushed;
            let ended = (pushed < 4).then_some(Step::Refused(*next));
            return (begin, end, (number..*next).map(Step::Push).chain(ended).collect());
        }
        12..18 => clock.time(|| match tx.try_reserve(message.len()) {
            Ok(mut reserved) => {
                reserved.append(&message);
                vec![reserved.commit_written().map_or(Step::PushClosed, |()| Step::Push(number))]
            }
            Err(error) => {
                assert_eq!(error, PushError::Closed);
                vec![Step::PushClosed]
            }
        }),
        _ => clock.time(|| match tx.try_push(&message) {
            Ok(()) => vec![Step::Push(number)],
            Err(error) => {
                assert_eq!(error, PushError::Closed);
                vec![Step::PushClosed]
            }
        }),
    };
    *next += u64::from(steps == [Step::Push(number)]);
    (begin, end, steps)
}

/// A call of the consumer, which has popped so many.
fn consume(rx: &mut Consumer<Adaptive>, random: &mut Random, next: &mut u64, clock: &Clock) -> Event<Vec<Step>> {
    let first = *next;
    let nothing = Step::Nothing(first);
    let (begin, end, steps) = match random.below(30) {
        0 => clock.time(|| {
            rx.close();
            vec![Step::Close]
        }),
        1..4 => clock.time(|| vec![Step::IsClosed(rx.is_closed())]),
        4..10 => {
            let (begin, end, numbers) =
                clock.time(|| rx.try_pop_batch(4).into_iter().flatten().map(number_of).collect::<Vec<_>>());
            let ended = numbers.is_empty().then_some(nothing);
            (begin, end, numbers.into_iter().map(Step::Pop).chain(ended).collect())
        }
        10..16 => clock.time(|| match rx.try_peek() {
            Ok(message) => {
                let number = number_of(&message);
                message.release();
                vec![Step::Pop(number)]
            }
            Err(_) => vec![nothing],
        }),
        _ => clock.time(|| match rx.try_pop() {
            Ok(message) => vec![Step::Pop(number_of(message))],
            Err(TryPopError::Empty) => vec![Step::Empty(first)],
            Err(_) => vec![Step::PopClosed],
        }),
    };
    *next += steps.iter().filter(|step| matches!(step, Step::Pop(_))).count() as u64;
    (begin, end, steps)
}

/// Two threads, and a checker of linearizability that judges what each call answered.
#[test]
fn histories_are_linearizable() {
    const HISTORIES: usize = 300;
    for round in 0..HISTORIES {
        let segment = [1, 64, 300][round % 3];
        let (mut tx, mut rx) = queue_with(segment, None, [0, usize::MAX - 30][round % 2], Adaptive);
        let start = Step::Start { bound: u64::MAX, lag: 0, late: 0, inside: 0 };
        let randoms = [1, 2].map(|seed| Random::new((2 * round + seed) as u64));
        judge(start, randoms, (&mut tx, produce), (&mut rx, consume), |rx| rx.try_pop().ok().map(number_of));
    }
    println!("{HISTORIES} histories judged");
}
