//! Queues and the allocator: one that refuses, and calls that need none.

#![allow(clippy::type_complexity)]
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[path = "support/allocator.rs"]
mod allocator;
#[macro_use]
#[path = "support/designs.rs"]
mod designs;

use allocator::{CALLS, LIMIT, LIVE, MANY, Page, SMALL, refused_memory_is_an_error_and_leaves_nothing, within};
use corelane::error::ChannelError;
use corelane::spsc::{self, Design, Lane, Options, lane, linked, stream};
use corelane::wait::{Adaptive, Park, Select};
use std::panic::catch_unwind;

fn make<T: Send, D: Design<T>>(
    capacity: usize,
) -> Result<(spsc::Producer<T, D, Adaptive>, spsc::Consumer<T, D, Adaptive>), ChannelError> {
    spsc::any_channel(capacity, Options::new().tuning(D::Tuning::default()).wait(Adaptive))
}

#[test]
fn a_refusing_allocator_is_no_memory() {
    macro_rules! refused {
        ($name:ident, $design:ident, [bounded $($flags:tt)*]) => {
            refused_memory_is_an_error_and_leaves_nothing(make::<Page, spsc::$design>);
        };
        ($name:ident, $design:ident, [unbounded $($flags:tt)*]) => {};
    }
    designs!(refused);
}

#[test]
fn channel_panics_where_there_is_no_memory() {
    let made = within(SMALL, || catch_unwind(|| drop(spsc::channel::<Page>(MANY))));
    let message = made.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(*message, "there is not enough memory for the queue: choose a smaller capacity, or free memory");
}

fn calls_allocate_nothing<D: Design<u64>>() {
    let (mut tx, mut rx) = make::<u64, D>(100).unwrap();
    let (mut items, mut batch) = (Vec::with_capacity(100), Vec::with_capacity(100));
    // The first wait of a process asks how many CPUs there are.
    let _ = rx.pop_timeout(std::time::Duration::from_millis(50));
    let before = CALLS.get();
    for _ in 0..100 {
        for item in 0..50 {
            tx.push(item).unwrap();
        }
        batch.extend(0..20);
        tx.push_batch(&mut batch).unwrap();
        tx.push_slice(&[1, 2, 3]).unwrap();
        let _ = tx.len() + rx.len();
        items.clear();
        assert_eq!(rx.pop_batch(&mut items, 40), Ok(40));
        while rx.pop_timeout(std::time::Duration::from_micros(10)).is_ok() {}
    }
    assert_eq!(CALLS.get(), before);
}

#[test]
fn pushing_popping_and_waiting_allocate_nothing() {
    // The unbounded ones as long as the segments that are kept do.
    macro_rules! called {
        ($name:ident, $design:ident, $flags:tt) => {
            calls_allocate_nothing::<spsc::$design>();
        };
    }
    designs!(called);
}

#[test]
fn waits_for_the_first_of_many_ends_allocate_nothing() {
    let (mut tx, rx) = spsc::channel::<u64>(4);
    let (sender, receiver) = corelane::mpmc::channel::<u64>(4);
    let mut select = Select::with(Park);
    let (rx, receiver) = (select.add(rx), select.add(receiver));
    let mut wait = |tx: &mut spsc::Producer<u64>, timeout| {
        assert_eq!(select.wait_timeout(timeout), None);
        tx.push(1).unwrap();
        sender.push(2).unwrap();
        for _ in 0..2 {
            let ready = select.wait().unwrap();
            let item = if ready == rx { select[rx].try_pop() } else { select[receiver].try_pop() };
            assert!(item.is_ok());
        }
    };
    // The first wait of a thread makes its place to sleep, the first of a shared queue its list.
    // It takes so long that the thread does sleep.
    wait(&mut tx, std::time::Duration::from_millis(20));
    let before = CALLS.get();
    (0..100).for_each(|_| wait(&mut tx, std::time::Duration::from_micros(10)));
    assert_eq!(CALLS.get(), before);
}

/// Bytes of an unbounded queue's segment in these tests, less its head and rounding.
const SEGMENT: usize = 8 * 4096;
const PAGES: linked::Tuning = linked::Tuning::new().segment(7).cached(2);

#[test]
fn a_compact_lane_takes_what_its_capacity_needs() {
    // 586 blocks of 7 items, a line each; 1,024 where there is room to spare.
    const CAPACITY: usize = 4096;
    let bytes = |tuning| {
        let before = LIVE.get();
        let ends = spsc::channel_with::<u64, Lane, Adaptive, _>(CAPACITY, Options::new().tuning(tuning)).unwrap();
        let bytes = LIVE.get() - before;
        drop(ends);
        bytes
    };
    let (compact, usual) = (bytes(lane::Tuning::new().compact()), bytes(lane::Tuning::new()));
    assert_eq!(usual - compact, (1024 - 586) * 64);
    assert!((586 * 64..586 * 64 + 2048).contains(&compact), "{compact} bytes");
}

#[test]
fn an_unbounded_queue_gives_memory_back_after_a_burst() {
    let before = LIVE.get();
    let (mut tx, mut rx) = linked::channel_with::<Page, Adaptive, spsc::NoStats>(Options::new().tuning(PAGES)).unwrap();
    let segment = (LIVE.get() - before) as usize / 2;
    assert!((7 * 4096..SEGMENT).contains(&segment), "two segments at first, not {} bytes", LIVE.get() - before);
    for _ in 0..3 {
        for _ in 0..1000 {
            tx.try_push([7; 4096]).unwrap();
        }
        let high = (LIVE.get() - before) as usize;
        assert!((1000 * 4096..1000 * 4096 * 5 / 4).contains(&high), "{high}");
        while rx.try_pop().is_ok() {}
        let low = (LIVE.get() - before) as usize;
        assert!(low < 4 * SEGMENT, "{low} bytes left: one segment in use, two kept");
    }
    // Little traffic goes on in what is kept.
    let calls = CALLS.get();
    for _ in 0..100 {
        tx.try_push([7; 4096]).unwrap();
        assert!(rx.try_pop().is_ok());
    }
    assert_eq!(CALLS.get(), calls);
    drop((tx, rx));
    assert_eq!(LIVE.get(), before);
}

#[test]
fn memory_that_is_refused_gives_the_item_back() {
    // A thread's first sleep may allocate its place to sleep, if no thread that has ended has left one.
    let (_tx, mut idle) = spsc::channel::<u64>(1);
    let _ = idle.pop_timeout(std::time::Duration::from_millis(50));
    let before = LIVE.get();
    let (mut tx, mut rx) = linked::channel_with::<Page, Adaptive, spsc::NoStats>(Options::new().tuning(PAGES)).unwrap();
    LIMIT.set(4 * 4096);
    let mut inside = 0_u8;
    let refused = loop {
        match tx.try_push([inside; 4096]) {
            Ok(()) => inside += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(inside, 14, "two segments are there from the start");
    assert!(refused.is_full() && refused.into_inner() == [14; 4096]);
    assert!(tx.push_timeout([0; 4096], std::time::Duration::from_millis(2)).is_err());
    assert!(tx.try_reserve().is_err() && tx.try_push_slice(&[[0; 4096]; 3]).unwrap_or(0) == 0);
    for item in 0..8 {
        assert!(tx.try_push([0; 4096]).is_err(), "its consumer has not left the first segment");
        assert_eq!(rx.try_pop(), Ok([item; 4096]));
    }
    for item in 14..21 {
        tx.try_push([item; 4096]).unwrap();
    }
    assert!(tx.try_push([0; 4096]).is_err());
    LIMIT.set(usize::MAX);
    tx.try_push([21; 4096]).unwrap();
    (8..22).for_each(|item| assert_eq!(rx.pop(), Ok([item; 4096])));
    drop((tx, rx));
    assert_eq!(LIVE.get(), before);
}

#[test]
fn a_push_without_memory_waits_for_the_consumer() {
    let (mut tx, mut rx) =
        linked::channel_with::<Page, _, spsc::NoStats>(Options::new().tuning(PAGES).wait(Park)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            within(4 * 4096, || (0..100).for_each(|item| tx.push([item; 4096]).unwrap()));
        });
        std::thread::sleep(std::time::Duration::from_millis(8));
        (0..100).for_each(|item| assert_eq!(rx.pop(), Ok([item; 4096])));
        assert!(rx.pop().is_err());
    });
}

#[test]
fn an_unbounded_queue_without_memory_is_not_made() {
    let before = LIVE.get();
    let made =
        within(SEGMENT / 2, || linked::channel_with::<Page, Adaptive, spsc::NoStats>(Options::new().tuning(PAGES)));
    assert_eq!(made.err(), Some(ChannelError::NoMemory));
    assert_eq!(LIVE.get(), before);
}

const STREAM: stream::Tuning = stream::Tuning::new().segment(32 * 1024).cached(2);

#[test]
fn a_stream_gives_memory_back_after_a_burst() {
    let before = LIVE.get();
    let (mut tx, mut rx) = stream::channel_with::<Adaptive, spsc::NoStats>(Options::new().tuning(STREAM)).unwrap();
    for _ in 0..3 {
        for _ in 0..10_000 {
            tx.try_push(&[7; 300]).unwrap();
        }
        tx.try_push(&[9; 5 << 20]).unwrap();
        let high = (LIVE.get() - before) as usize;
        let inside = rx.bytes();
        assert!(inside > 3_000_000 + (5 << 20) && high > inside && high < inside * 5 / 4, "{high} for {inside}");
        while rx.try_pop().is_ok() {}
        // The consumer still stands in the segment that was made for the large message.
        tx.try_push(b"").unwrap();
        tx.try_push(&[7; 32 * 1024 - 64]).unwrap();
        while rx.try_pop().is_ok() {}
        let low = (LIVE.get() - before) as usize;
        assert!(low < 4 * 33 * 1024, "{low} bytes left: one segment in use, two kept");
    }
    let calls = CALLS.get();
    for len in (0..1000).cycle().take(20_000) {
        tx.try_push(&[1; 1000][..len]).unwrap();
        assert!(rx.try_pop().is_ok_and(|message| message.len() == len));
    }
    assert_eq!(CALLS.get(), calls, "little traffic goes on in what is kept");
    drop((tx, rx));
    assert_eq!(LIVE.get(), before);
}

#[test]
fn memory_that_is_refused_is_an_error_and_not_the_end_of_a_stream() {
    let before = LIVE.get();
    let (mut tx, mut rx) = stream::channel_with::<Adaptive, spsc::NoStats>(Options::new().tuning(STREAM)).unwrap();
    LIMIT.set(16 * 1024);
    let mut inside = 0_u8;
    while tx.try_push(&[inside; 1016]).is_ok() {
        inside += 1;
    }
    assert_eq!(inside, 62, "31 with their headers in each of the two segments that are there from the start");
    assert_eq!(tx.push(&[0; 1016]), Err(stream::PushError::NoMemory));
    assert_eq!(tx.try_push(&[0; 100_000]), Err(stream::PushError::NoMemory));
    assert_eq!(tx.reserve(1016).err(), Some(stream::PushError::NoMemory));
    assert_eq!(tx.try_push_batch(&[[0; 1016]; 3]), Err(stream::PushError::NoMemory));
    assert_eq!(tx.push_batch(&[[0; 1016]; 3]).unwrap_err().pushed, 0);
    assert_eq!(tx.push_timeout(&[0; 1016], std::time::Duration::from_secs(9)), Err(stream::PushError::NoMemory));
    tx.try_push(&[99; 8]).unwrap();
    (0..32).for_each(|number| assert_eq!(rx.try_pop(), Ok(&[number; 1016][..])));
    tx.try_push(&[62; 1016]).unwrap();
    LIMIT.set(usize::MAX);
    tx.try_push(&[63; 100_000]).unwrap();
    (32..62).for_each(|number| assert_eq!(rx.try_pop(), Ok(&[number; 1016][..])));
    assert_eq!(rx.pop(), Ok(&[99; 8][..]));
    assert_eq!(rx.pop(), Ok(&[62; 1016][..]));
    assert_eq!(rx.pop(), Ok(&[63; 100_000][..]));
    let made = within(1024, || stream::try_channel().err());
    assert_eq!(made, Some(ChannelError::NoMemory));
    drop((tx, rx));
    assert_eq!(LIVE.get(), before);
}

/// What `corelane::guide::choosing` says, and the documentation of the constructors.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_new_queue_takes_as_much_as_is_said() {
    use corelane::handoff::{Fairness, SynchronousQueue, TransferQueue};
    use corelane::{dispatch, mpmc};

    fn thousands<T>(make: impl FnOnce() -> T) -> isize {
        let before = LIVE.get();
        let made = make();
        let bytes = LIVE.get() - before;
        drop(made);
        assert_eq!(LIVE.get(), before);
        // To the nearest, and what is less than one to one.
        (bytes + 400) / 1000
    }
    let small_lane = || Options::new().tuning(lane::Tuning::new().compact());
    let small_linked = || Options::new().tuning(linked::Tuning::new().segment(8));
    let small_stream = || Options::new().tuning(stream::Tuning::new().segment(256));
    let taken = [
        thousands(|| spsc::channel::<u64>(1024)),
        thousands(|| lane::channel_with::<u64, Adaptive, spsc::NoStats>(1024, small_lane()).unwrap()),
        thousands(|| spsc::channel::<u64>(1)),
        thousands(linked::channel::<u64>),
        thousands(|| linked::channel_with::<u64, Adaptive, spsc::NoStats>(small_linked()).unwrap()),
        thousands(stream::channel),
        thousands(|| stream::channel_with::<Adaptive, spsc::NoStats>(small_stream()).unwrap()),
        thousands(|| mpmc::channel::<u64>(1024)),
        thousands(|| mpmc::channel::<u64>(64)),
        thousands(|| mpmc::lanes::channel::<u64>(1024)),
        thousands(|| mpmc::lanes::channel::<u64>(64)),
        thousands(mpmc::michael_scott::channel::<u64>),
        thousands(mpmc::two_lock::channel::<u64>),
        thousands(|| dispatch::channel::<u64>(4, 1024)),
        thousands(|| dispatch::channel::<u64>(4, 64)),
        thousands(|| SynchronousQueue::<u64>::new(Fairness::Fair)),
        thousands(|| SynchronousQueue::<u64>::new(Fairness::Unfair)),
        thousands(TransferQueue::<u64>::new),
    ];
    assert_eq!(taken, [17, 10, 1, 34, 2, 132, 2, 17, 2, 18, 3, 5, 1, 43, 8, 16, 16, 16]);
}
