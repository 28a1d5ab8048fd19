//! The paper forms do what is printed: the same answer to every call, early Full and stranded items included.
//!
//! An oracle says of each form, call by call, what print says. One thread alone sees every write at once, so the oracle
//! is exact. What two threads do to each other is the business of the streams and of `tests/loom_paper.rs`; what they
//! do to each other in a ring, of `tests/deadlock.rs`.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[path = "../../corelane/tests/support/watchdog.rs"]
mod watchdog;

use corelane::error::ChannelError;
use corelane_papers::b_queue::{self, Adaptive, NoBacktracking, Parameters, Plain};
use corelane_papers::fast_forward::{self, Slip};
use corelane_papers::mcring_timer::{self, Signal, Timer};
use corelane_papers::{Dequeue, Enqueue, basic_ring, lock_ring, mcring, mcring_callback};
use std::fmt::Debug;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// An item that tells its number.
trait Item: Copy + Send + PartialEq + Debug {
    fn numbered(number: usize) -> Self;
}

impl Item for u64 {
    fn numbered(number: usize) -> Self {
        number as u64
    }
}

impl Item for NonZero<usize> {
    fn numbered(number: usize) -> Self {
        NonZero::new(number + 1).unwrap()
    }
}

/// The largest element of the MCRingBuffer paper's evaluation.
impl Item for [u64; 128] {
    fn numbered(number: usize) -> Self {
        std::array::from_fn(|i| (number * 128 + i) as u64)
    }
}

impl Item for u8 {
    fn numbered(number: usize) -> Self {
        number as u8
    }
}

/// What the next calls must answer, by the counts of elements that went in and came out.
trait Oracle {
    fn takes(&mut self, enqueued: usize, dequeued: usize) -> bool;
    fn gives(&mut self, enqueued: usize, dequeued: usize) -> bool;
}

/// Full and empty are exact.
struct Exact {
    capacity: usize,
}

impl Oracle for Exact {
    fn takes(&mut self, enqueued: usize, dequeued: usize) -> bool {
        enqueued - dequeued < self.capacity
    }

    fn gives(&mut self, enqueued: usize, dequeued: usize) -> bool {
        enqueued > dequeued
    }
}

/// Either side sees only the whole batches of the other.
struct Batches {
    capacity: usize,
    batch: usize,
}

impl Oracle for Batches {
    fn takes(&mut self, enqueued: usize, dequeued: usize) -> bool {
        enqueued - dequeued / self.batch * self.batch < self.capacity
    }

    fn gives(&mut self, enqueued: usize, dequeued: usize) -> bool {
        enqueued / self.batch * self.batch > dequeued
    }
}

/// The producer is granted a batch when more than a batch of slots is free. The consumer finds any item if it
/// backtracks; if not it is granted a batch when a batch is there.
struct Probes {
    size: usize,
    batch: usize,
    backtracks: bool,
    granted_to_producer: usize,
    granted_to_consumer: usize,
}

impl Probes {
    fn new(size: usize, batch: usize, backtracks: bool) -> Self {
        Self { size, batch, backtracks, granted_to_producer: 0, granted_to_consumer: 0 }
    }
}

impl Oracle for Probes {
    fn takes(&mut self, enqueued: usize, dequeued: usize) -> bool {
        if enqueued == self.granted_to_producer && self.size - (enqueued - dequeued) > self.batch {
            self.granted_to_producer += self.batch;
        }
        enqueued < self.granted_to_producer
    }

    fn gives(&mut self, enqueued: usize, dequeued: usize) -> bool {
        if self.backtracks {
            return enqueued > dequeued;
        }
        if dequeued == self.granted_to_consumer && enqueued - dequeued >= self.batch {
            self.granted_to_consumer += self.batch;
        }
        dequeued < self.granted_to_consumer
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Random runs of calls on both ends, for many laps, each answer compared with the oracle's.
fn every_answer_is_the_printed_one<T: Item>(
    (mut producer, mut consumer): (impl Enqueue<T>, impl Dequeue<T>),
    mut oracle: impl Oracle,
) {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let (mut enqueued, mut dequeued, mut full, mut empty) = (0, 0, 0, 0);
    for _ in 0..2_000 {
        for _ in 0..random.below(12) {
            let item = T::numbered(enqueued);
            let takes = oracle.takes(enqueued, dequeued);
            assert_eq!(producer.enqueue(item), if takes { Ok(()) } else { Err(item) }, "{enqueued} in, {dequeued} out");
            enqueued += usize::from(takes);
            full += usize::from(!takes);
        }
        for _ in 0..random.below(12) {
            let gives = oracle.gives(enqueued, dequeued);
            let item = gives.then(|| T::numbered(dequeued));
            assert_eq!(consumer.dequeue(), item, "{enqueued} in, {dequeued} out");
            dequeued += usize::from(gives);
            empty += usize::from(!gives);
        }
    }
    assert!(dequeued > 1_000 && full > 100 && empty > 100, "{dequeued} items, {full} times full, {empty} times empty");
}

/// Every item once and in order, from thread to thread. The producer goes on until the consumer has all it counts, so
/// that the last of them do not stay invisible.
fn a_stream_arrives_in_order<T: Item>(ends: (impl Enqueue<T> + 'static, impl Dequeue<T> + 'static)) {
    so_many_arrive_in_order(100_000, ends);
}

fn so_many_arrive_in_order<T: Item>(
    items: usize,
    (mut producer, mut consumer): (impl Enqueue<T> + 'static, impl Dequeue<T> + 'static),
) {
    watchdog::guard(|| {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let pusher = scope.spawn(|| {
                let mut enqueued = 0;
                while !over.load(Relaxed) {
                    match producer.enqueue(T::numbered(enqueued)) {
                        Ok(()) => enqueued += 1,
                        Err(item) => {
                            assert_eq!(item, T::numbered(enqueued));
                            thread::yield_now();
                        }
                    }
                }
                enqueued
            });
            let mut dequeued = 0;
            while dequeued < items {
                match consumer.dequeue() {
                    Some(item) => {
                        assert_eq!(item, T::numbered(dequeued));
                        dequeued += 1;
                    }
                    None => thread::yield_now(),
                }
            }
            over.store(true, Relaxed);
            let enqueued = pusher.join().unwrap();
            while let Some(item) = consumer.dequeue() {
                assert_eq!(item, T::numbered(dequeued));
                dequeued += 1;
            }
            assert!(dequeued <= enqueued);
        });
    });
}

fn parameters(batch_size: usize) -> Parameters {
    Parameters { batch_size, batch_max: batch_size, increment: 2, ticks: 0 }
}

macro_rules! exact_rings {
    ($($name:ident: $ring:ident),+) => {
        $(mod $name {
            use super::*;

            #[test]
            fn answer_as_printed() {
                for max in [2, 3, 8, 13] {
                    every_answer_is_the_printed_one::<u64>($ring::channel(max).unwrap(), Exact { capacity: max - 1 });
                }
                every_answer_is_the_printed_one::<[u64; 128]>($ring::channel(5).unwrap(), Exact { capacity: 4 });
            }

            #[test]
            fn stream_in_order() {
                a_stream_arrives_in_order::<u64>($ring::channel(2).unwrap());
                a_stream_arrives_in_order::<u64>($ring::channel(2000).unwrap());
                a_stream_arrives_in_order::<[u64; 128]>($ring::channel(7).unwrap());
            }

            #[test]
            fn need_two_slots() {
                for max in [0, 1] {
                    assert_eq!($ring::channel::<u64>(max).err(), Some(ChannelError::ZeroCapacity));
                }
                assert_eq!($ring::channel::<u64>(usize::MAX).err(), Some(ChannelError::TooLarge));
            }
        })+
    };
}
exact_rings!(basic_rings: basic_ring, lock_rings: lock_ring);

mod fast_forwards {
    use super::*;

    const SLIP: Slip = Slip { good: 8, danger: 3, avg_time: 10, interval: 4 };

    #[test]
    fn answer_as_printed() {
        for size in [1, 2, 8, 13] {
            every_answer_is_the_printed_one(fast_forward::baseline(size).unwrap(), Exact { capacity: size });
            every_answer_is_the_printed_one(fast_forward::tuned(size, SLIP).unwrap(), Exact { capacity: size });
        }
    }

    #[test]
    fn stream_in_order() {
        for size in [1, 7, 2000] {
            a_stream_arrives_in_order(fast_forward::baseline(size).unwrap());
            a_stream_arrives_in_order(fast_forward::tuned(size, SLIP).unwrap());
            a_stream_arrives_in_order(fast_forward::tuned(size, Slip::suggested(20, 64)).unwrap());
        }
    }

    #[test]
    fn need_a_slot() {
        assert_eq!(fast_forward::baseline(0).err(), Some(ChannelError::ZeroCapacity));
        assert_eq!(fast_forward::tuned(0, SLIP).err(), Some(ChannelError::ZeroCapacity));
    }
}

mod mcrings {
    use super::*;

    #[test]
    fn answer_as_printed() {
        for max in [3, 8, 13] {
            for batch in 1..max {
                let oracle = Batches { capacity: max - 1, batch };
                every_answer_is_the_printed_one::<u64>(mcring::channel(max, batch).unwrap(), oracle);
            }
        }
        let oracle = Batches { capacity: 5, batch: 2 };
        every_answer_is_the_printed_one::<[u64; 128]>(mcring::channel(6, 2).unwrap(), oracle);
    }

    #[test]
    fn stream_in_order() {
        for (max, batch) in [(2, 1), (4, 3), (2000, 1), (2000, 50), (2000, 1999)] {
            a_stream_arrives_in_order::<u64>(mcring::channel(max, batch).unwrap());
        }
        a_stream_arrives_in_order::<[u64; 128]>(mcring::channel(7, 3).unwrap());
    }

    /// Late publication: the elements are accepted, and no consumer can have them.
    #[test]
    fn strand_all_but_whole_batches() {
        let (mut producer, mut consumer) = mcring::channel(2000, 50).unwrap();
        for element in 0..49_u64 {
            producer.enqueue(element).unwrap();
        }
        assert_eq!(producer.invisible(), 49);
        assert_eq!(consumer.dequeue(), None);
        producer.enqueue(49).unwrap();
        assert_eq!(producer.invisible(), 0);
        for element in 0..50 {
            assert_eq!(consumer.dequeue(), Some(element));
        }
        assert_eq!(consumer.dequeue(), None);
    }

    #[test]
    fn refuse_a_batch_of_nothing() {
        assert_eq!(mcring::channel::<u64>(8, 0).err(), Some(ChannelError::BadBatch));
    }

    /// Full before the first batch is complete: both sides fail for ever, and nothing is overwritten.
    #[test]
    fn pass_nothing_on_if_a_batch_does_not_fit() {
        for batch in [8, 9, usize::MAX] {
            let (mut producer, mut consumer) = mcring::channel(8, batch).unwrap();
            for element in 0..7_u64 {
                assert_eq!(producer.enqueue(element), Ok(()));
            }
            for _ in 0..100 {
                assert_eq!(producer.enqueue(7), Err(7));
                assert_eq!(consumer.dequeue(), None);
            }
            assert_eq!(producer.invisible(), 7);
        }
    }
}

mod mcrings_with_a_timer {
    use super::*;

    #[test]
    fn answer_as_printed_as_long_as_there_is_no_signal() {
        for batch in 1..8 {
            let oracle = Batches { capacity: 7, batch };
            every_answer_is_the_printed_one::<u64>(mcring_timer::channel(8, batch, &Signal::new()).unwrap(), oracle);
        }
    }

    #[test]
    fn show_what_was_inserted_at_the_insertion_after_a_signal() {
        let signal = Signal::new();
        signal.raise();
        let (mut producer, mut consumer) = mcring_timer::channel(20, 5, &signal).unwrap();
        for round in 0..10 {
            for element in 0..3 {
                producer.enqueue(4 * round + element).unwrap();
            }
            signal.raise();
            signal.raise();
            assert_eq!(consumer.dequeue(), None, "no end has looked at the signal");
            producer.enqueue(4 * round + 3).unwrap();
            for element in 0..3 {
                assert_eq!(consumer.dequeue(), Some(4 * round + element));
            }
            assert_eq!(consumer.dequeue(), None, "the signal was answered before the last insertion");
            assert!(producer.flush());
            assert_eq!(consumer.dequeue(), Some(4 * round + 3));
            assert_eq!(consumer.dequeue(), None);
        }
    }

    #[test]
    fn answer_a_signal_later_when_they_were_full() {
        let signal = Signal::new();
        let (mut producer, mut consumer) = mcring_timer::channel(6, 4, &signal).unwrap();
        (0..5).for_each(|element| producer.enqueue(element).unwrap());
        signal.raise();
        assert_eq!(producer.enqueue(5), Err(5));
        assert!(!producer.flush());
        (0..4).for_each(|element| assert_eq!(consumer.dequeue(), Some(element)));
        assert_eq!(consumer.dequeue(), None);
        // Three slots are free for unused elements, one for this.
        assert_eq!(producer.enqueue(5), Ok(()));
        assert_eq!(consumer.dequeue(), Some(4));
        assert_eq!(consumer.dequeue(), None);
    }

    #[test]
    fn stream_in_order() {
        let timer = Timer::start(Timer::PAPER_PERIOD).unwrap();
        for (max, batch) in [(2, 1), (4, 3), (2000, 50), (2048, 256)] {
            // Fewer, for a single processor, which has three threads to run here and the unused elements to pass on.
            so_many_arrive_in_order::<u64>(5_000, mcring_timer::channel(max, batch, timer.signal()).unwrap());
            let words = mcring_timer::channel(max, batch, timer.signal()).unwrap();
            so_many_arrive_in_order::<NonZero<usize>>(5_000, words);
        }
    }

    /// Far less than a batch at a time: only the timer lets them through.
    #[test]
    fn deliver_less_than_a_batch_while_the_timer_runs() {
        watchdog::guard(|| {
            let timer = Timer::start(Timer::PAPER_PERIOD).unwrap();
            let (mut producer, mut consumer) = mcring_timer::channel(2000, 100, timer.signal()).unwrap();
            for element in 0..100 {
                producer.enqueue(element).unwrap();
                let count = timer.signal().count();
                while timer.signal().count() == count {
                    thread::yield_now();
                }
                if element > 0 {
                    assert_eq!(consumer.dequeue(), Some(element - 1));
                }
            }
        });
    }

    #[test]
    fn have_a_timer_that_ends_with_its_handle() {
        watchdog::guard(|| {
            let timer = Timer::start(Timer::PAPER_PERIOD).unwrap();
            let signal = timer.signal().clone();
            while signal.count() < 10 {
                thread::yield_now();
            }
            drop(timer);
            let count = signal.count();
            thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(signal.count(), count);
        });
    }
}

mod mcrings_with_a_callback {
    use super::*;

    #[test]
    fn answer_as_printed_as_long_as_nobody_flushes() {
        for batch in 1..8 {
            let oracle = Batches { capacity: 7, batch };
            every_answer_is_the_printed_one::<u64>(mcring_callback::channel(8, batch).unwrap(), oracle);
        }
    }

    #[test]
    fn call_back_when_there_is_nothing_and_only_then() {
        let (mut producer, mut consumer) = mcring_callback::channel(20, 5).unwrap();
        for element in 0..30_u8 {
            producer.enqueue(element).unwrap();
            let mut calls = 0;
            assert_eq!(consumer.dequeue_or(|| calls += 1), None);
            assert_eq!(calls, 1);
            assert!(producer.flush());
            assert_eq!(consumer.dequeue_or(|| calls += 1), Some(element));
            assert_eq!(calls, 1);
        }
    }

    #[test]
    fn flush_in_part_when_full() {
        let (mut producer, mut consumer) = mcring_callback::channel(6, 4).unwrap();
        (0..5).for_each(|element| producer.enqueue(element).unwrap());
        assert!(!producer.flush());
        (0..4).for_each(|element| assert_eq!(consumer.dequeue(), Some(element)));
        assert!(producer.flush());
        assert_eq!(consumer.dequeue(), Some(4));
    }

    #[test]
    fn stream_in_order() {
        for (max, batch) in [(2, 1), (4, 3), (2000, 50), (2048, 256)] {
            a_stream_arrives_in_order::<u64>(mcring_callback::channel(max, batch).unwrap());
        }
        a_stream_arrives_in_order::<[u64; 128]>(mcring_callback::channel(7, 3).unwrap());
    }
}

mod b_queues {
    use super::*;

    fn word(number: usize) -> NonZero<usize> {
        Item::numbered(number)
    }

    #[test]
    fn answer_as_printed() {
        for size in [2, 3, 8, 13] {
            for batch in 1..size {
                answers_as_printed::<NoBacktracking>(size, batch, false);
                answers_as_printed::<Plain>(size, batch, true);
                answers_as_printed::<Adaptive>(size, batch, true);
            }
        }
    }

    fn answers_as_printed<B: b_queue::Backtracking>(size: usize, batch: usize, backtracks: bool) {
        let ends = b_queue::channel::<B>(size, parameters(batch)).unwrap();
        every_answer_is_the_printed_one::<NonZero<usize>>(ends, Probes::new(size, batch, backtracks));
    }

    #[test]
    fn stream_in_order() {
        for (size, batch) in [(2, 1), (7, 3), (16, 15), (2048, 256)] {
            a_stream_arrives_in_order(b_queue::channel::<NoBacktracking>(size, parameters(batch)).unwrap());
            a_stream_arrives_in_order(b_queue::channel::<Plain>(size, parameters(batch)).unwrap());
            a_stream_arrives_in_order(b_queue::channel::<Adaptive>(size, parameters(batch)).unwrap());
        }
        a_stream_arrives_in_order(b_queue::channel::<Adaptive>(Parameters::PAPER_SLOTS, Parameters::PAPER).unwrap());
    }

    /// With two of eight slots free.
    #[test]
    fn say_full_early() {
        let (mut producer, mut consumer) = b_queue::channel::<Plain>(8, parameters(3)).unwrap();
        for number in 0..6 {
            producer.enqueue(word(number)).unwrap();
        }
        assert_eq!(producer.enqueue(word(6)), Err(word(6)));
        assert_eq!(consumer.dequeue(), Some(word(0)));
        assert_eq!(producer.enqueue(word(6)), Err(word(6)), "three slots are free, the fourth is probed");
        assert_eq!(consumer.dequeue(), Some(word(1)));
        assert_eq!(producer.enqueue(word(6)), Ok(()));
    }

    /// Printed, `batch_tail` is left on the slot that is taken, and the next dequeue takes one that was never probed.
    #[test]
    fn probe_again_after_a_batch_of_one() {
        fn check<B: b_queue::Backtracking>() {
            let (mut producer, mut consumer) = b_queue::channel::<B>(8, parameters(3)).unwrap();
            for number in 0..20 {
                producer.enqueue(word(number)).unwrap();
                assert_eq!(consumer.dequeue(), Some(word(number)));
                assert_eq!(consumer.dequeue(), None);
            }
        }
        check::<Plain>();
        check::<Adaptive>();
    }

    fn history(consumer: &b_queue::Consumer<Adaptive>) -> usize {
        let text = format!("{consumer:?}");
        let digits = text.split("batch_history: ").nth(1).unwrap().split(',').next().unwrap();
        digits.parse().unwrap()
    }

    #[test]
    fn adapt_as_printed_and_raise_the_history_on_failing_polls() {
        let parameters = Parameters { batch_size: 32, batch_max: 20, increment: 8, ticks: 0 };
        let (mut producer, mut consumer) = b_queue::channel::<Adaptive>(64, parameters).unwrap();
        for raised in [8, 16, 20, 20] {
            assert_eq!(consumer.dequeue(), None);
            assert_eq!(history(&consumer), raised);
        }
        // Probes for 20, 10 and 5 fail, the one for 2 does not.
        (0..3).for_each(|number| producer.enqueue(word(number)).unwrap());
        assert_eq!(consumer.dequeue(), Some(word(0)));
        assert_eq!(history(&consumer), 2);
        assert_eq!(consumer.dequeue(), Some(word(1)));
        assert_eq!(history(&consumer), 2);
        // 2 + 8 fails, so do 5 and 2.
        assert_eq!(consumer.dequeue(), Some(word(2)));
        assert_eq!(history(&consumer), 1);
        // 1 + 8 is there.
        (3..14).for_each(|number| producer.enqueue(word(number)).unwrap());
        assert_eq!(consumer.dequeue(), Some(word(3)));
        assert_eq!(history(&consumer), 9);
    }

    #[test]
    fn strand_less_than_a_batch_without_backtracking_only() {
        let (mut producer, mut consumer) = b_queue::channel::<NoBacktracking>(8, parameters(3)).unwrap();
        producer.enqueue(word(0)).unwrap();
        producer.enqueue(word(1)).unwrap();
        assert_eq!(consumer.dequeue(), None);
        producer.enqueue(word(2)).unwrap();
        assert_eq!(consumer.dequeue(), Some(word(0)));

        let (mut producer, mut consumer) = b_queue::channel::<Plain>(8, parameters(3)).unwrap();
        producer.enqueue(word(0)).unwrap();
        assert_eq!(consumer.dequeue(), Some(word(0)));
    }

    /// A batch of eight is probed four times. Fewer cycles than four waits is not possible, whatever the machine does.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn wait_after_every_probe_that_fails() {
        // SAFETY: reads a counter.
        let cycles = || unsafe { std::arch::x86_64::_rdtsc() };
        let ticks = 1_000_000;
        let (_producer, mut consumer) = b_queue::channel::<Plain>(16, Parameters { ticks, ..parameters(8) }).unwrap();
        let start = cycles();
        assert_eq!(consumer.dequeue(), None);
        assert!(cycles() - start >= 4_000_000);
    }

    #[test]
    fn refuse_batches_that_overwrite() {
        for batch in [0, 8, 9, usize::MAX] {
            let bad =
                [Parameters { batch_size: batch, ..parameters(1) }, Parameters { batch_max: batch, ..parameters(1) }];
            for parameters in bad {
                assert_eq!(b_queue::channel::<Adaptive>(8, parameters).err(), Some(ChannelError::BadBatch));
            }
        }
        assert!(b_queue::channel::<Adaptive>(8, parameters(7)).is_ok());
        let still = Parameters { increment: 0, ..parameters(1) };
        assert_eq!(b_queue::channel::<Adaptive>(8, still).err(), Some(ChannelError::BadBatch));
        assert!(b_queue::channel::<Plain>(8, still).is_ok());
    }
}
