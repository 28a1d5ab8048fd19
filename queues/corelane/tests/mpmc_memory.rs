//! The shared queues and the allocator: what a burst leaves behind, memory that is refused, calls that need none.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[macro_use]
#[path = "support/designs.rs"]
mod designs;
#[path = "support/allocator.rs"]
mod allocator;
#[path = "support/watchdog.rs"]
mod watchdog;

use allocator::{CALLS, LIMIT, LIVE, Page, refused_memory_is_an_error_and_leaves_nothing, within};
use corelane::dispatch::{Builder, Mpmc};
use corelane::error::{ChannelError, DispatchError, TryPushError};
use corelane::mpmc::{self, Design, MichaelScott, Options, Queue, Ticket, TwoLock};
use corelane::spsc::{self, Linked, linked};
use corelane::wait::{Adaptive, Park, Select};
use std::time::Duration;

/// Room for a panic, and for no more nodes than there are.
const FEW: usize = 4 * 4096;

/// Long enough to fall asleep in, on a busy machine too.
const WARM_UP: Duration = Duration::from_millis(50);

fn make<T: Send, D: Design<T>>(capacity: usize) -> Result<Queue<T, D, Park>, ChannelError> {
    mpmc::any_queue(capacity, Options::new().wait(Park))
}

fn live(since: isize) -> usize {
    (LIVE.get() - since) as usize
}

/// 10,000 items and batches of them come and go.
fn burst(queue: &Queue<u64, impl Design<u64>, Park>, high: impl FnOnce()) {
    (0..5_000).for_each(|item| queue.try_push(item).unwrap());
    let mut batch: Vec<_> = (5_000..10_000).collect();
    while !batch.is_empty() {
        queue.try_push_batch(&mut batch).unwrap();
    }
    drop(batch);
    high();
    let mut items = Vec::new();
    (0..2_000).for_each(|item| assert_eq!(queue.try_pop(), Ok(item)));
    while queue.try_pop_batch(&mut items, 700).is_ok() {}
    assert!(items.into_iter().eq(2_000..10_000));
}

#[test]
fn two_lock_gives_memory_back_after_a_burst() {
    let before = LIVE.get();
    let queue = make::<u64, TwoLock>(1).unwrap();
    let least = live(before);
    for _ in 0..3 {
        burst(&queue, || assert!(live(before) >= 10_000 * (8 + size_of::<usize>())));
        assert_eq!(live(before), least, "the dummy");
    }
    drop(queue);
    assert_eq!(LIVE.get(), before);
}

#[test]
fn michael_scott_uses_memory_again_after_a_burst() {
    let before = LIVE.get();
    let queue = make::<u64, MichaelScott>(64).unwrap();
    let mut most = 0;
    for round in 0..4 {
        burst(&queue, || most = live(before));
        assert!(most < 2 * 32 * 10_001 + 4096, "{most} bytes: the nodes in use, rounded up to a power of two");
        assert_eq!(live(before), most, "kept for the next burst");
        let calls = CALLS.get();
        (0..5_000).for_each(|item| queue.try_push(item).unwrap());
        (0..5_000).for_each(|item| assert_eq!(queue.try_pop(), Ok(item)));
        assert_eq!(CALLS.get(), calls, "in round {round}");
    }
    drop(queue);
    assert_eq!(LIVE.get(), before);
}

#[test]
fn memory_that_is_refused_gives_the_item_back() {
    // The first wait of a thread makes its place to sleep, which it keeps.
    make::<u64, Ticket>(1).unwrap().pop_timeout(WARM_UP).unwrap_err();
    let before = LIVE.get();
    let queue = make::<Page, MichaelScott>(7).unwrap();
    LIMIT.set(FEW);
    let mut inside = 0;
    let refused = loop {
        match queue.try_push([inside; 4096]) {
            Ok(()) => inside += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(inside, 7, "eight nodes are there from the start, and one is the dummy");
    assert_eq!(refused, TryPushError::Full([7; 4096]));
    let mut batch = vec![[8; 4096]; 2];
    assert_eq!(queue.try_push_batch(&mut batch), Err(TryPushError::Full(())));
    assert!(queue.push_timeout([9; 4096], Duration::from_millis(2)).is_err());
    assert_eq!(queue.try_pop(), Ok([0; 4096]));
    assert_eq!(queue.try_push_batch(&mut batch), Ok(1), "as many as there is memory for");
    assert_eq!(batch.len(), 1);
    LIMIT.set(usize::MAX);
    queue.push_batch(&mut batch).unwrap();
    (1..7).for_each(|item| assert_eq!(queue.try_pop(), Ok([item; 4096])));
    (0..2).for_each(|_| assert_eq!(queue.try_pop(), Ok([8; 4096])));
    drop((queue, batch));
    assert_eq!(LIVE.get(), before);
}

#[test]
fn a_push_without_memory_waits_for_a_pop() {
    let queue = make::<Page, MichaelScott>(3).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            within(FEW, || (0..100).for_each(|item| queue.push([item; 4096]).unwrap()));
        });
        std::thread::sleep(Duration::from_millis(5));
        (0..100).for_each(|item| assert_eq!(queue.pop(), Ok([item; 4096])));
    });
}

/// A select that waits for room finds none where a push is refused, and sleeps until a pop has made some.
#[test]
fn a_select_without_memory_waits_for_a_pop() {
    watchdog::guard(|| {
        let queue = make::<Page, MichaelScott>(3).unwrap();
        let mut select = Select::new();
        let room = select.add(queue.push_side());
        // A panic needs memory.
        for round in 0..10 {
            let found = within(FEW, || {
                while queue.try_push([round; 4096]).is_ok() {}
                (queue.len(), select.try_wait(), select.wait_timeout(Duration::from_millis(1)))
            });
            assert_eq!(found, (3, None, None));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(5));
                    queue.pop().unwrap();
                });
                assert_eq!(within(FEW, || select.wait()).unwrap(), room);
            });
        }
        // The allocator gives again.
        queue.try_push([10; 4096]).unwrap();
        assert_eq!(select.try_wait().unwrap(), room);
        let pushed = || (0..9).take_while(|_| queue.try_push([10; 4096]).is_ok()).count();
        assert_eq!(within(FEW, || (pushed(), select.try_wait())), (4, None));
    });
}

/// The same for the other queue without a bound that may be refused memory.
#[test]
fn a_select_over_a_linked_queue_without_memory_waits_for_pops() {
    watchdog::guard(|| {
        let options = spsc::Options::new().tuning(linked::Tuning::new().segment(4).cached(1)).wait(Adaptive);
        let (mut tx, mut rx) = spsc::any_channel::<Page, Linked, _, _>(1, options).unwrap();
        let mut select = Select::new();
        let key = select.add(&mut tx);
        let found = within(FEW, || {
            while select[key].try_push([0; 4096]).is_ok() {}
            (select.try_wait(), select.wait_timeout(Duration::from_millis(1)))
        });
        assert_eq!(found, (None, None));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                while rx.try_pop().is_ok() {}
            });
            assert_eq!(within(FEW, || select.wait()).unwrap(), key);
        });
        assert!(within(FEW, || select[key].try_push([0; 4096]).is_ok()));
    });
}

/// As above, between a dispatcher and its worker: a batch is as long as there is memory for, and a dispatcher that
/// waits is woken by a pop.
#[test]
fn a_dispatcher_without_memory_is_refused_or_waits() {
    watchdog::guard(|| {
        let builder = Builder::new(1).capacity(3).batch(8).wait(Park);
        let (mut dispatcher, mut workers) = builder.build_unbounded::<Page, Mpmc<MichaelScott>>().unwrap();
        let mut worker = workers.remove(0);
        let page = |number: u8| [number; 4096];
        let mut rest = (4..100).map(page).collect();
        LIMIT.set(FEW);
        assert_eq!(dispatcher.try_dispatch_slice(&[page(0), page(1), page(2), page(3), page(4)]), Ok(3));
        assert_eq!(dispatcher.try_dispatch(page(3)), Err(DispatchError::Full(page(3))));
        let moment = Duration::from_millis(2);
        assert_eq!(dispatcher.dispatch_timeout(page(3), moment), Err(DispatchError::Timeout(page(3))));
        assert_eq!(worker.try_pop(), Ok(page(0)));
        assert_eq!(dispatcher.try_dispatch_slice(&[page(3), page(4)]), Ok(1));
        std::thread::scope(|scope| {
            let taker = scope.spawn(move || {
                std::thread::sleep(5 * moment);
                assert!(worker.jobs().eq((1..200).map(page)));
            });
            assert_eq!(dispatcher.dispatch_batch(&mut rest), Ok(()));
            (100..200).for_each(|number| dispatcher.dispatch(page(number)).unwrap());
            drop(dispatcher);
            LIMIT.set(usize::MAX);
            taker.join().unwrap();
        });
    });
}

#[test]
fn a_queue_without_memory_is_not_made() {
    macro_rules! refused {
        ($name:ident, $design:ident, [$bound:ident $sleeps:ident $places:ident blocks]) => {};
        ($name:ident, $design:ident, $flags:tt) => {
            refused_memory_is_an_error_and_leaves_nothing(make::<Page, mpmc::$design>);
        };
    }
    shared_designs!(refused);
}

fn calls_allocate_nothing<D: Design<u64>>() {
    let queue = make::<u64, D>(100).unwrap();
    let (mut batch, mut items) = (Vec::with_capacity(100), Vec::with_capacity(100));
    let wait = || queue.pop_timeout(Duration::from_micros(10)).unwrap_err();
    // The first wait of a thread makes its place to sleep, the first of a queue its list.
    queue.pop_timeout(WARM_UP).unwrap_err();
    let before = CALLS.get();
    for _ in 0..100 {
        batch.extend(0..50);
        queue.push_batch(&mut batch).unwrap();
        (0..50).for_each(|item| queue.push(item).unwrap());
        items.clear();
        assert_eq!(queue.pop_batch(&mut items, 60), Ok(60));
        (10..50).for_each(|item| assert_eq!(queue.pop(), Ok(item)));
        wait();
    }
    assert_eq!(CALLS.get(), before);
}

#[test]
fn pushing_popping_and_waiting_allocate_nothing() {
    // One with a node for each item and a lock has no memory of its own.
    macro_rules! called {
        ($name:ident, $design:ident, [$bound:ident $sleeps:ident $places:ident blocks]) => {};
        ($name:ident, $design:ident, $flags:tt) => {
            calls_allocate_nothing::<mpmc::$design>();
        };
    }
    shared_designs!(called);
}

#[test]
fn a_lane_without_memory_is_not_made_and_calls_allocate_nothing() {
    use corelane::mpmc::lanes;
    refused_memory_is_an_error_and_leaves_nothing(lanes::try_channel::<Page>);
    // Of two lanes the second has no memory.
    let before = LIVE.get();
    let (tx, rx) = lanes::try_channel::<Page>(100).unwrap();
    assert_eq!(within(100 << 10, || tx.try_clone().err()), Some(ChannelError::NoMemory));
    drop((tx.clone(), rx.clone()));
    drop((tx, rx));
    assert_eq!(LIVE.get(), before);

    let (mut tx, mut rx) = lanes::channel_with(100, Options::new().wait(Park)).unwrap();
    let mut other = tx.clone();
    let (mut batch, mut items) = (Vec::with_capacity(100), Vec::with_capacity(100));
    rx.pop_timeout(WARM_UP).unwrap_err();
    let before = CALLS.get();
    for _ in 0..100 {
        batch.extend(0..50);
        tx.push_batch(&mut batch).unwrap();
        (0..50).for_each(|item| other.push(item).unwrap());
        items.clear();
        assert_eq!(rx.pop_batch(&mut items, 60), Ok(60));
        (0..40).for_each(|_| assert!(rx.pop().unwrap() < 50_u64));
        rx.pop_timeout(Duration::from_micros(10)).unwrap_err();
    }
    assert_eq!(CALLS.get(), before);
}
