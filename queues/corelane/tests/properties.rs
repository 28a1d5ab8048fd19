//! The unbounded queues against a deque: whatever sizes, options and calls proptest thinks of, one thread finds in the
//! queue what it would find in the deque, and segments are given back once the queue is empty.

#![allow(clippy::drop_non_drop, clippy::forget_non_drop)]
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

use corelane::error::TryPopError;
use corelane::spsc::{self, Options, linked, stream};
use corelane::wait::Adaptive;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

/// Counts this thread's allocations that are aligned as segments are, and as what both ends of a queue share.
struct Segments;

std::thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

fn is_counted(layout: Layout) -> bool {
    layout.align() >= 128
}

// SAFETY: passes every call on to the system's allocator.
unsafe impl GlobalAlloc for Segments {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_counted(layout) {
            LIVE.set(LIVE.get() + 1);
        }
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if is_counted(layout) {
            LIVE.set(LIVE.get() - 1);
        }
        // SAFETY: the caller's.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Segments = Segments;

/// How many segments a queue that was just found empty may have: one in use and what it keeps, behind what both ends
/// share.
fn most_when_empty(cached: usize) -> usize {
    1 + 1 + cached
}

/// For a test; says how many sequences it judges.
fn config() -> ProptestConfig {
    const CASES: u32 = 1024;
    println!("{CASES} sequences judged");
    ProptestConfig {
        cases: CASES,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

/// Where positions start: at 0, or so that they wrap around soon.
fn start() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), (0..200_usize).prop_map(|n| usize::MAX - n)]
}

/// Segments from one that holds next to nothing to one that holds a whole run of calls.
fn segment() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1..40_usize, 3 => 40..400_usize, 1 => 400..20_000_usize]
}

/// A message's length.
#[derive(Clone, Copy, Debug)]
enum Length {
    Bytes(usize),
    /// So many more bytes than a segment has, less 24.
    Segment(usize),
    /// So many segments.
    Segments(usize),
}

impl Length {
    fn bytes(self, segment: usize) -> usize {
        match self {
            Length::Bytes(bytes) => bytes,
            Length::Segment(more) => (segment + more).saturating_sub(24),
            Length::Segments(count) => count * segment,
        }
    }
}

fn length() -> impl Strategy<Value = Length> {
    prop_oneof![
        8 => (0..34_usize).prop_map(Length::Bytes),
        2 => (0..300_usize).prop_map(Length::Bytes),
        2 => (0..48_usize).prop_map(Length::Segment),
        1 => (2..9_usize).prop_map(Length::Segments),
    ]
}

/// What becomes of a guard.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Dropped,
    Forgotten,
    /// All of it is committed, written in two pieces; or released.
    Used,
    /// So much of it is committed, in 1/256.
    Part(u8),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![Just(Fate::Dropped), Just(Fate::Forgotten), Just(Fate::Used), any::<u8>().prop_map(Fate::Part)]
}

#[derive(Clone, Debug)]
enum StreamCall {
    Push(Length),
    Reserve(Length, Fate),
    Batch(Vec<Length>),
    Burst(Length, usize),
    Pop,
    Peek(Fate),
    Drain { most: usize, taken: usize },
    Empty,
}

fn stream_call() -> impl Strategy<Value = StreamCall> {
    prop_oneof![
        4 => length().prop_map(StreamCall::Push),
        3 => (length(), fate()).prop_map(|(length, fate)| StreamCall::Reserve(length, fate)),
        2 => vec(length(), 0..9).prop_map(StreamCall::Batch),
        1 => (length(), 0..100_usize).prop_map(|(length, count)| StreamCall::Burst(length, count)),
        6 => Just(StreamCall::Pop),
        2 => fate().prop_map(StreamCall::Peek),
        2 => (0..20_usize, 0..20_usize).prop_map(|(most, taken)| StreamCall::Drain { most, taken }),
        1 => Just(StreamCall::Empty),
    ]
}

/// What a message takes up.
fn weight(len: usize) -> usize {
    8 + len.next_multiple_of(8)
}

/// A stream, and what is to be in it.
struct Stream {
    tx: stream::Producer,
    rx: stream::Consumer,
    model: VecDeque<Vec<u8>>,
    segment: usize,
    cached: usize,
    most: usize,
    /// The longest message so far: the consumer tells of what it popped when it looks at the next one.
    longest: usize,
    number: usize,
}

impl Stream {
    fn message(&mut self, length: Length) -> Vec<u8> {
        let len = length.bytes(self.segment);
        self.number += 1;
        (0..len).map(|i| (self.number.wrapping_mul(31) ^ i ^ len) as u8).collect()
    }

    fn inside(&self) -> usize {
        self.model.iter().map(|message| weight(message.len())).sum()
    }

    /// Whether a message of this length fits, by what the producer knows.
    fn judge(&self, before: usize, len: usize, pushed: Result<(), stream::PushError>) {
        let due = match weight(len) {
            weight if weight > self.most => Err(stream::PushError::TooLarge),
            weight if before + weight > self.most => Err(stream::PushError::Full),
            _ => Ok(()),
        };
        assert_eq!(pushed, due);
    }

    fn pushed(&mut self, message: Vec<u8>) {
        self.longest = self.longest.max(weight(message.len()));
        self.model.push_back(message);
    }

    fn push(&mut self, length: Length) {
        let message = self.message(length);
        let before = self.tx.bytes();
        let pushed = self.tx.try_push(&message);
        self.judge(before, message.len(), pushed);
        if pushed.is_ok() {
            self.pushed(message);
        }
    }

    fn reserve(&mut self, length: Length, fate: Fate) {
        let mut message = self.message(length);
        let len = message.len();
        let before = self.tx.bytes();
        let reserved = self.tx.try_reserve(len);
        let mut reserved = match reserved {
            Ok(reserved) => reserved,
            Err(error) => return self.judge(before, len, Err(error)),
        };
        assert_eq!(reserved.len(), len);
        assert!((reserved.as_uninit_mut().as_ptr() as usize).is_multiple_of(stream::ALIGN));
        match fate {
            Fate::Dropped => {
                reserved.append(&message);
                drop(reserved);
            }
            Fate::Forgotten => mem::forget(reserved),
            Fate::Used => {
                let (first, second) = message.split_at(len / 3);
                assert_eq!(
                    (reserved.append(first), reserved.append(second), reserved.append(b"+")),
                    (first.len(), second.len(), 0)
                );
                reserved.commit_written().unwrap();
                self.pushed(message);
            }
            Fate::Part(part) => {
                message.truncate(len * usize::from(part) / 256);
                for (to, from) in reserved.as_uninit_mut().iter_mut().zip(&message) {
                    to.write(*from);
                }
                // SAFETY: so many bytes were just written.
                unsafe { reserved.commit(message.len()) }.unwrap();
                self.pushed(message);
            }
        }
    }

    fn batch(&mut self, lengths: &[Length]) {
        let batch = lengths.iter().map(|&length| self.message(length)).collect::<Vec<_>>();
        let mut room = self.most - self.tx.bytes();
        let fits = |message: &&Vec<u8>| {
            let left = room.checked_sub(weight(message.len()));
            room = left.unwrap_or(0);
            left.is_some()
        };
        let due = batch.iter().take_while(fits).count();
        assert_eq!(self.tx.try_push_batch(&batch).unwrap_or(0), due);
        batch.into_iter().take(due).for_each(|message| self.pushed(message));
    }

    fn popped(&mut self, got: Option<Vec<u8>>) {
        assert_eq!(got, self.model.pop_front());
        if got.is_none() {
            self.is_empty();
        }
    }

    /// To be called when the consumer has found nothing.
    fn is_empty(&self) {
        assert!(self.model.is_empty());
        assert!(self.tx.is_empty() && self.tx.bytes() == 0, "an end that says Empty has told of all that was popped");
        assert!(LIVE.get() <= most_when_empty(self.cached), "{} segments are kept", LIVE.get());
    }

    fn call(&mut self, call: StreamCall) {
        match call {
            StreamCall::Push(length) => self.push(length),
            StreamCall::Reserve(length, fate) => self.reserve(length, fate),
            StreamCall::Batch(lengths) => self.batch(&lengths),
            StreamCall::Burst(length, count) => (0..count).for_each(|_| self.push(length)),
            StreamCall::Pop => {
                let got = self.rx.try_pop().map(<[u8]>::to_vec);
                assert!(matches!(got, Ok(_) | Err(TryPopError::Empty)));
                self.popped(got.ok());
            }
            StreamCall::Peek(fate) => match self.rx.try_peek() {
                Err(_) => self.is_empty(),
                Ok(peeked) => {
                    assert_eq!(Some(&*peeked), self.model.front().map(Vec::as_slice));
                    match fate {
                        Fate::Dropped | Fate::Part(_) => drop(peeked),
                        Fate::Forgotten => mem::forget(peeked),
                        Fate::Used => {
                            peeked.release();
                            self.model.pop_front();
                        }
                    }
                }
            },
            StreamCall::Drain { most, taken } => {
                let lent = self.rx.try_pop_batch(most);
                let lent = lent.into_iter().flatten().take(taken).map(<[u8]>::to_vec).collect::<Vec<_>>();
                assert!(lent.len() <= most.min(taken));
                assert!(!lent.is_empty() || self.model.is_empty() || most == 0 || taken == 0);
                lent.into_iter().for_each(|got| self.popped(Some(got)));
            }
            StreamCall::Empty => {
                while let Ok(got) = self.rx.try_pop().map(<[u8]>::to_vec) {
                    self.popped(Some(got));
                }
                self.is_empty();
            }
        }
        let inside = self.inside();
        assert_eq!(self.rx.bytes(), inside);
        let held_back = self.tx.bytes() - inside;
        assert!(self.tx.bytes() <= self.most);
        assert!(self.most == UNLIMITED || held_back <= self.most / 8 + self.longest, "{held_back} held back");
    }
}

const UNLIMITED: usize = usize::MAX / 2;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_stream_is_a_deque_of_messages(
        segment in segment(),
        cached in 1..4_usize,
        limit in proptest::option::of(prop_oneof![16..400_usize, 400..40_000_usize]),
        start in start(),
        calls in vec(stream_call(), 0..150),
    ) {
        let tuning = stream::Tuning::new().segment(segment).cached(cached);
        let tuning = limit.map_or(tuning, |limit| tuning.limit(limit));
        let before = LIVE.get();
        prop_assert_eq!(before, 0, "a queue before this one has left memory behind");
        let options = Options::new().tuning(tuning).start_at(start);
        let (tx, rx) = stream::channel_with::<Adaptive, spsc::NoStats>(options).unwrap();
        let most = limit.map_or(UNLIMITED, |bytes| bytes / 8 * 8);
        let mut stream = Stream { tx, rx, model: VecDeque::new(), segment, cached, most, longest: 0, number: 0 };
        for call in calls {
            stream.call(call);
        }
        let Stream { mut tx, mut rx, model, .. } = stream;
        rx.close();
        prop_assert_eq!(tx.try_push(b"late"), Err(stream::PushError::Closed));
        for expected in model {
            prop_assert_eq!(rx.try_pop(), Ok(&expected[..]));
        }
        prop_assert_eq!(rx.try_pop(), Err(TryPopError::Closed));
    }
}

#[derive(Clone, Copy, Debug)]
enum LinkedCall {
    Push,
    Reserve(Fate),
    Slice(usize),
    Iter(usize),
    Pop,
    Peek(Fate),
    PopSlice(usize),
    PopInto(usize),
    /// Far more than what is kept holds.
    Burst(usize),
    Empty,
}

fn linked_call() -> impl Strategy<Value = LinkedCall> {
    prop_oneof![
        4 => Just(LinkedCall::Push),
        2 => fate().prop_map(LinkedCall::Reserve),
        2 => (0..80_usize).prop_map(LinkedCall::Slice),
        2 => (0..80_usize).prop_map(LinkedCall::Iter),
        4 => Just(LinkedCall::Pop),
        2 => fate().prop_map(LinkedCall::Peek),
        2 => (0..100_usize).prop_map(LinkedCall::PopSlice),
        3 => (0..100_usize).prop_map(LinkedCall::PopInto),
        1 => (100..2000_usize).prop_map(LinkedCall::Burst),
        1 => Just(LinkedCall::Empty),
    ]
}

/// A linked queue of items of `N` words, and what is to be in it.
struct Linked<const N: usize> {
    tx: linked::Producer<[u64; N]>,
    rx: linked::Consumer<[u64; N]>,
    model: VecDeque<u64>,
    cached: usize,
    number: u64,
}

impl<const N: usize> Linked<N> {
    fn new(segment: usize, cached: usize, start: usize) -> Self {
        let tuning = linked::Tuning::new().segment(segment).cached(cached);
        let options = Options::new().tuning(tuning).start_at(start);
        let (tx, rx) = linked::channel_with::<_, Adaptive, spsc::NoStats>(options).unwrap();
        Linked { tx, rx, model: VecDeque::new(), cached, number: 0 }
    }

    /// The next items.
    fn items(&mut self, count: usize) -> Vec<[u64; N]> {
        let first = self.number;
        self.number += count as u64;
        self.model.extend(first..self.number);
        (first..self.number).map(|number| [number; N]).collect()
    }

    fn popped(&mut self, got: &[[u64; N]]) {
        for item in got {
            assert_eq!(Some(*item), self.model.pop_front().map(|number| [number; N]));
        }
    }

    /// To be called when the consumer has found nothing.
    fn is_empty(&mut self) {
        assert!(self.model.is_empty());
        assert!(self.tx.is_empty(), "an end that says Empty has told of all that was popped");
        assert!(LIVE.get() <= most_when_empty(self.cached), "{} segments are kept", LIVE.get());
    }

    fn call(&mut self, call: LinkedCall) {
        match call {
            LinkedCall::Push => {
                let item = self.items(1)[0];
                assert!(self.tx.try_push(item).is_ok());
            }
            LinkedCall::Reserve(fate) => match fate {
                Fate::Dropped | Fate::Part(_) => drop(self.tx.try_reserve().unwrap()),
                Fate::Forgotten => mem::forget(self.tx.try_reserve().unwrap()),
                Fate::Used => {
                    let item = self.items(1)[0];
                    self.tx.try_reserve().unwrap().write(item).unwrap();
                }
            },
            LinkedCall::Slice(count) => {
                let items = self.items(count);
                assert_eq!(self.tx.try_push_slice(&items).unwrap_or(0), count);
            }
            LinkedCall::Iter(count) | LinkedCall::Burst(count) => {
                let items = self.items(count);
                assert_eq!(self.tx.try_push_batch(&mut items.into_iter().collect()).unwrap_or(0), count);
            }
            LinkedCall::Pop => match self.rx.try_pop() {
                Ok(item) => self.popped(&[item]),
                Err(error) => {
                    assert_eq!(error, TryPopError::Empty);
                    self.is_empty();
                }
            },
            LinkedCall::Peek(fate) => match self.rx.try_peek() {
                Err(_) => self.is_empty(),
                Ok(peeked) => {
                    assert_eq!(Some(*peeked), self.model.front().map(|&number| [number; N]));
                    match fate {
                        Fate::Dropped | Fate::Part(_) => drop(peeked),
                        Fate::Forgotten => mem::forget(peeked),
                        Fate::Used => {
                            let item = peeked.pop();
                            self.popped(&[item]);
                        }
                    }
                }
            },
            LinkedCall::PopSlice(most) => {
                let mut items = vec![[0; N]; most];
                let count = self.rx.try_pop_slice(&mut items).unwrap_or(0);
                assert_eq!(count, most.min(self.model.len()));
                self.popped(&items[..count]);
            }
            LinkedCall::PopInto(most) => {
                let mut items = Vec::new();
                let count = self.rx.try_pop_batch(&mut items, most).unwrap_or(0);
                assert_eq!((count, items.len()), (most.min(self.model.len()), count));
                self.popped(&items);
            }
            LinkedCall::Empty => {
                while let Ok(item) = self.rx.try_pop() {
                    self.popped(&[item]);
                }
                self.is_empty();
            }
        }
        assert_eq!((self.rx.len(), self.rx.is_empty()), (self.model.len(), self.model.is_empty()));
        assert!(self.tx.len() >= self.model.len());
    }

    fn run(mut self, calls: &[LinkedCall]) {
        calls.iter().for_each(|&call| self.call(call));
        self.rx.close();
        assert!(self.tx.try_push([0; N]).is_err_and(|error| error.is_closed()));
        assert_eq!(self.rx.len(), self.model.len());
        while let Ok(item) = self.rx.try_pop() {
            self.popped(&[item]);
        }
        assert_eq!((self.rx.try_pop(), self.model.len()), (Err(TryPopError::Closed), 0));
    }
}

proptest! {
    #![proptest_config(config())]

    /// Items of 7, 2 and 1 in a line, and such as need several.
    #[test]
    fn a_linked_queue_is_a_deque(
        segment in segment(),
        cached in 1..4_usize,
        start in start(),
        calls in vec(linked_call(), 0..60),
    ) {
        prop_assert_eq!(LIVE.get(), 0, "a queue before this one has left memory behind");
        Linked::<1>::new(segment, cached, start).run(&calls);
        Linked::<3>::new(segment, cached, start).run(&calls);
        Linked::<6>::new(segment, cached, start).run(&calls);
        Linked::<10>::new(segment, cached, start).run(&calls);
    }

    #[test]
    fn what_is_left_in_a_linked_queue_is_dropped_once(
        segment in 1..50_usize,
        start in start(),
        turns in vec((0..100_usize, 0..100_usize), 1..6),
        consumer_first: bool,
    ) {
        let options = Options::new().tuning(linked::Tuning::new().segment(segment).cached(1)).start_at(start);
        let (mut tx, mut rx) = linked::channel_with::<_, Adaptive, spsc::NoStats>(options).unwrap();
        let token = Arc::new(());
        let mut inside = 0;
        for (pushes, pops) in turns {
            inside += tx.try_push_batch(&mut (0..pushes).map(|_| token.clone()).collect()).unwrap_or(0);
            inside -= rx.try_pop_batch(&mut Vec::new(), pops).unwrap_or(0);
            prop_assert_eq!(Arc::strong_count(&token), 1 + inside);
        }
        if consumer_first {
            drop(rx);
            drop(tx);
        } else {
            drop(tx);
            drop(rx);
        }
        prop_assert_eq!((Arc::strong_count(&token), LIVE.get()), (1, 0));
    }
}
