//! Code of a user that panics, at each place where a queue runs some: the table of `corelane::guide::guarantees`, row
//! by row.

use crate::support::{Task, poll};
use corelane::dispatch::{self, Builder, ByKey, Collector};
use corelane::error::{Closed, DispatchError, TryPopError};
use corelane::mpmc::{self, lanes};
use corelane::spsc::asynchronous::BUDGET;
use corelane::spsc::{self, Options, stream};
use corelane::wait::{Next, Select, Strategy, WaitState};
use futures_util::Sink;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use std::time::Duration;

/// The rows of the table, and what shows each.
const ROWS: [(&str, fn()); 14] = [
    ("the wake-up by a waker", a_wake_up),
    ("the drop of a waker", the_drop_of_a_waker),
    ("the clone of a waker", the_clone_of_a_waker),
    ("the drop of an item, by the last receiver", the_drop_of_an_item),
    ("the drop of an item, in `release`", the_drop_of_a_released_item),
    ("the closure of `pop_each`", the_closure_of_pop_each),
    ("the key of a job that is handed out", the_key_of_a_job),
    ("the key of a job that came back", the_key_of_a_returned_job),
    ("the work of a worker, in `run`", the_work_of_a_worker),
    ("the drop of a job, by a dispatcher", the_drop_of_a_dispatchers_job),
    ("the drop of a job, by a worker that panics", the_drop_of_a_job_by_a_worker_that_panics),
    ("the closure of `dispatch_collecting`", the_closure_of_dispatch_collecting),
    ("a wait strategy", a_wait_strategy),
    ("`as_ref` of a message", as_ref_of_a_message),
];

#[test]
fn each_row_of_the_table_is_true() {
    let text = include_str!("../../src/guide/guarantees.rs");
    let (_, table) = text.split_once("# When your code panics").expect("the table's heading");
    let table = table.split_once("\n//! #").map_or(table, |(table, _)| table);
    let rows = table.lines().filter_map(|line| line.strip_prefix("//! | ")?.split_once(" | "));
    let rows = rows.map(|(place, _)| place).skip(1).collect::<Vec<_>>();
    assert_eq!(rows, ROWS.map(|(place, _)| place), "the table has other rows than this test");
    let fails = |&(_, shows): &(_, fn())| catch_unwind(|| crate::watchdog::guard(shows)).is_err();
    let failed = ROWS.iter().filter(|row| fails(row)).map(|(place, _)| place).collect::<Vec<_>>();
    assert!(failed.is_empty(), "not true: {failed:#?}");
}

fn panics<R>(call: impl FnOnce() -> R) -> String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(call)) else { panic!("a panic is missing") };
    payload.downcast_ref::<&str>().copied().unwrap_or_default().to_owned()
}

/// What of a waker panics.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Wake,
    Drop,
    Clone,
}

/// A waker of which a part panics, while it is armed.
static ARMED: AtomicBool = AtomicBool::new(false);

fn waker(part: Part) -> Waker {
    fn blow(part: &Part, this: Part) {
        if *part == this && ARMED.swap(false, SeqCst) {
            panic!("a waker");
        }
    }
    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            // SAFETY: the data are one of three statics, whatever is done to the waker.
            blow(unsafe { &*data.cast::<Part>() }, Part::Clone);
            RawWaker::new(data, &TABLE)
        },
        // SAFETY: as above.
        |data| blow(unsafe { &*data.cast::<Part>() }, Part::Wake),
        // SAFETY: as above.
        |data| blow(unsafe { &*data.cast::<Part>() }, Part::Wake),
        // SAFETY: as above.
        |data| blow(unsafe { &*data.cast::<Part>() }, Part::Drop),
    );
    let data: &'static Part = match part {
        Part::Wake => &Part::Wake,
        Part::Drop => &Part::Drop,
        Part::Clone => &Part::Clone,
    };
    // SAFETY: the table's functions keep to the contract: the data are static, and nothing is freed.
    unsafe { Waker::from_raw(RawWaker::new(std::ptr::from_ref(data).cast(), &TABLE)) }
}

fn poll_with<F: Future + Unpin>(waker: &Waker, future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// An item whose drop panics if it is odd. How many are there is counted.
struct Odd(u32, Arc<AtomicUsize>);

impl Odd {
    fn several(numbers: impl IntoIterator<Item = u32>) -> (Vec<Self>, Arc<AtomicUsize>) {
        let there = Arc::new(AtomicUsize::new(0));
        let new = |number| {
            there.fetch_add(1, SeqCst);
            Self(number, there.clone())
        };
        (numbers.into_iter().map(new).collect(), there)
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        self.1.fetch_sub(1, SeqCst);
        if self.0 % 2 == 1 && !std::thread::panicking() {
            panic!("an item");
        }
    }
}

fn a_wake_up() {
    let waker = waker(Part::Wake);
    // Of one end, of one of several, of a select.
    let (mut producer, consumer) = spsc::channel(2);
    let mut consumer = consumer.into_async();
    assert!(poll_with(&waker, &mut consumer.pop()).is_pending());
    ARMED.store(true, SeqCst);
    producer.push(1).unwrap();
    assert_eq!((ARMED.load(SeqCst), consumer.try_pop()), (false, Ok(1)));

    let (sender, receiver) = mpmc::channel(2);
    let mut select = Select::new();
    let key = select.add(receiver.clone());
    {
        let mut wait = pin!(select.wait_async());
        assert!(poll_with(&waker, &mut wait).is_pending());
        ARMED.store(true, SeqCst);
        sender.push(1).unwrap();
        assert!(!ARMED.load(SeqCst));
    }
    assert_eq!(select[key].try_pop(), Ok(1));
    // Beside one that sleeps, both of which a close wakes.
    let mut wait = pin!(select.wait_async());
    assert!(poll_with(&waker, &mut wait).is_pending());
    let sleeps = std::thread::spawn(move || receiver.pop());
    std::thread::sleep(Duration::from_millis(10));
    ARMED.store(true, SeqCst);
    drop(sender);
    assert_eq!(sleeps.join().unwrap(), Err(Closed(())));

    let (mut sender, mut receiver) = lanes::channel(1);
    sender.push(1).unwrap();
    let mut select = Select::new();
    let key = select.add(sender);
    {
        let mut wait = pin!(select.wait_async());
        assert!(poll_with(&waker, &mut wait).is_pending());
        ARMED.store(true, SeqCst);
        assert_eq!((receiver.try_pop(), ARMED.load(SeqCst)), (Ok(1), false));
    }
    assert_eq!((select[key].try_push(2), receiver.try_pop()), (Ok(()), Ok(2)));
    drop(select);

    // By a poll, which gives other tasks a turn: of an end, and of a set.
    let (mut producer, consumer) = spsc::channel(BUDGET as usize + 2);
    while producer.try_push(1).is_ok() {}
    let mut consumer = consumer.into_async();
    (0..BUDGET).for_each(|_| assert!(poll_with(&waker, &mut consumer.pop()).is_ready()));
    ARMED.store(true, SeqCst);
    assert!(poll_with(&waker, &mut consumer.pop()).is_pending() && !ARMED.load(SeqCst));
    assert!(poll_with(&waker, &mut consumer.pop()).is_ready());
    let mut select = Select::new();
    select.add(consumer.into_blocking());
    (0..BUDGET).for_each(|_| assert!(poll_with(&waker, &mut pin!(select.wait_async())).is_ready()));
    let mut wait = pin!(select.wait_async());
    ARMED.store(true, SeqCst);
    assert!(poll_with(&waker, &mut wait).is_pending() && !ARMED.load(SeqCst));
    assert!(poll_with(&waker, &mut wait).is_ready());
}

fn the_drop_of_a_waker() {
    let waker = waker(Part::Drop);
    let armed = || ARMED.store(true, SeqCst);
    fn gone(what: &str) {
        assert!(!ARMED.load(SeqCst), "{what}: no waker was dropped");
    }

    macro_rules! each {
        ($($module:ident::$design:ident,)+) => { $(
            // The consumer goes: what it has popped is not dropped once more, and the rest is.
            let (items, there) = Odd::several([0, 2, 4, 6]);
            let options = Options::new();
            let (mut producer, consumer) =
                spsc::any_channel::<Odd, spsc::$design, _, spsc::NoStats>(8, options).unwrap();
            let mut consumer = consumer.into_async();
            let mut items = items.into_iter();
            producer.push(items.next().unwrap()).ok().unwrap();
            drop(consumer.try_pop());
            assert!(poll_with(&waker, &mut consumer.pop()).is_pending());
            armed();
            drop(consumer);
            gone("a consumer");
            assert!(producer.is_closed() && producer.push(items.next().unwrap()).is_err());
            drop(items);
            assert_eq!(there.load(SeqCst), 0);
            // The producer goes: the consumer learns of it.
            let options = Options::new();
            let (producer, mut consumer) =
                spsc::any_channel::<u32, spsc::$design, _, spsc::NoStats>(1, options).unwrap();
            let mut producer = producer.into_async();
            if (0..10).any(|item| producer.try_push(item).is_err()) {
                assert!(poll_with(&waker, &mut producer.push(9)).is_pending());
                armed();
                drop(producer);
                gone("a producer");
                assert_eq!((consumer.pop(), consumer.pop()), (Ok(0), Err(Closed(()))));
            }
        )+ };
    }
    corelane::each_design!(each);

    // A worker leaves: its job comes back.
    for by_call in [false, true] {
        let (mut dispatcher, mut workers) = dispatch::channel(1, 4);
        let mut worker = workers.remove(0).into_async();
        assert!(poll_with(&waker, &mut worker.pop()).is_pending());
        // Another poll leaves its waker there: that of the first goes.
        armed();
        assert!(poll(&Task::new(), &mut worker.pop()).is_pending());
        gone("a worker's first poll");
        assert!(poll_with(&waker, &mut worker.pop()).is_pending());
        armed();
        if by_call {
            worker.leave().unwrap();
        } else {
            drop(worker);
        }
        gone("a worker");
        assert_eq!(dispatcher.try_dispatch(1), Err(DispatchError::NoWorker(1)));
        dispatcher.join().unwrap();
    }
    // A dispatcher goes: its workers learn of it.
    let (mut dispatcher, mut workers) = dispatch::channel(2, 1);
    dispatcher.dispatch_slice(&[1, 2]).unwrap();
    let mut dispatcher = dispatcher.into_async();
    assert!(poll_with(&waker, &mut dispatcher.dispatch(3)).is_pending());
    armed();
    drop(dispatcher);
    gone("a dispatcher");
    for worker in &mut workers {
        assert!(worker.pop().is_ok() && worker.pop().is_err());
    }
    // A select's future goes: its ends are as before.
    let (mut producer, consumer) = spsc::channel(1);
    let mut select = Select::new();
    let key = select.add(consumer);
    {
        let mut wait = pin!(select.wait_async());
        assert!(poll_with(&waker, &mut wait).is_pending());
        armed();
    }
    gone("a select");
    producer.push(1).unwrap();
    assert_eq!(select[key].pop(), Ok(1));
}

fn the_clone_of_a_waker() {
    let waker = waker(Part::Clone);
    let (mut producer, consumer) = spsc::channel(1);
    let mut consumer = consumer.into_async();
    ARMED.store(true, SeqCst);
    assert_eq!(panics(|| poll_with(&waker, &mut consumer.pop())), "a waker");
    assert!(poll_with(&waker, &mut consumer.pop()).is_pending());
    producer.push(1).unwrap();
    assert_eq!(poll_with(&waker, &mut consumer.pop()), Poll::Ready(Ok(1)));

    // A future is polled again as if nothing had been.
    let mut select = Select::new();
    select.add(consumer.into_blocking());
    let mut wait = pin!(select.wait_async());
    ARMED.store(true, SeqCst);
    assert_eq!(panics(|| poll_with(&waker, &mut wait).is_ready()), "a waker");
    let task = Task::new();
    assert!(poll(&task, &mut wait).is_pending());
    producer.push(2).unwrap();
    assert!(task.wakes() == 1 && poll(&task, &mut wait).is_ready());
}

fn the_drop_of_an_item() {
    let (items, there) = Odd::several([0, 1, 2]);
    let (mut producer, consumer) = spsc::channel(4);
    producer.push_batch(&mut { items }).ok().unwrap();
    assert_eq!(panics(|| drop(consumer)), "an item");
    assert_eq!((there.load(SeqCst), producer.is_closed()), (0, true));

    let (items, there) = Odd::several([0, 1, 2]);
    let (sender, receiver) = mpmc::channel(4);
    sender.push_batch(&mut { items }).ok().unwrap();
    assert_eq!(panics(|| drop(receiver)), "an item");
    assert_eq!((there.load(SeqCst), sender.is_closed()), (0, true));

    let (items, there) = Odd::several([0, 1, 2]);
    let (mut sender, receiver) = lanes::channel(4);
    sender.push_batch(&mut { items }).ok().unwrap();
    assert_eq!(panics(|| drop(receiver)), "an item");
    assert_eq!((there.load(SeqCst), sender.is_closed()), (0, true));
}

fn the_drop_of_a_released_item() {
    let (items, there) = Odd::several([1, 2]);
    let (mut producer, mut consumer) = spsc::channel(2);
    producer.push_batch(&mut { items }).ok().unwrap();
    assert_eq!(panics(|| consumer.peek().unwrap().release()), "an item");
    assert_eq!((there.load(SeqCst), consumer.len()), (1, 1));
    let (mut more, _) = Odd::several([4]);
    assert!(producer.try_push(more.remove(0)).is_ok());
}

fn the_closure_of_pop_each() {
    let (mut producer, mut consumer) = spsc::channel(4);
    producer.push_slice(&[1, 2, 3]).unwrap();
    let each = |item| {
        if item == 2 {
            panic!("a closure")
        }
    };
    assert_eq!(panics(|| consumer.pop_each(4, each)), "a closure");
    assert_eq!((consumer.try_pop(), consumer.try_pop()), (Ok(3), Err(TryPopError::Empty)));
}

fn the_key_of_a_job() {
    let key = |job: &u64| {
        if *job == 2 {
            panic!("a key")
        }
        *job
    };
    let (mut dispatcher, workers) = Builder::new(1).capacity(8).route(ByKey::new(key)).build::<u64>().unwrap();
    assert_eq!(panics(|| dispatcher.dispatch(2)), "a key");
    let mut jobs = vec![1, 2, 3];
    assert_eq!(panics(|| dispatcher.dispatch_batch(&mut jobs)), "a key");
    assert_eq!(jobs, [2, 3]);
    drop(workers);
    assert_eq!(dispatcher.join().unwrap_err().undone, [1]);
}

fn the_key_of_a_returned_job() {
    /// The job that a call is to hand out: it is kept with the others, or stays in the vector.
    const NEW: u64 = 1_000;
    const SOON: Duration = Duration::from_millis(1);
    // The key panics at the call of this number, or not at all where it is 0.
    let fuse = Arc::new(AtomicUsize::new(0));
    let own = fuse.clone();
    let key = move |job: &u64| {
        if own.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) == Ok(1) {
            panic!("a key")
        }
        *job
    };
    // One queue is full: the first key is asked for before a job goes out, the second by a call that waits for room.
    for (asked, call) in (0..7).map(|call| (1, call)).chain((3..7).map(|call| (2, call))).chain([(3, 3)]) {
        let route = ByKey::new(key.clone());
        let (mut dispatcher, mut workers) = Builder::new(2).capacity(4).route(route).build::<u64>().unwrap();
        let mut jobs = (0..100).filter(|&job| dispatcher.try_dispatch(job).is_ok()).collect::<Vec<_>>();
        drop(workers.remove(0));
        fuse.store(asked, SeqCst);
        let panic = match call {
            0 => panics(|| dispatcher.flush()),
            1 => panics(|| dispatcher.try_dispatch_batch(&mut vec![NEW])),
            2 => panics(|| dispatcher.try_dispatch(NEW)),
            3 => panics(|| dispatcher.dispatch(NEW)),
            4 => panics(|| dispatcher.dispatch_timeout(NEW, SOON)),
            5 => panics(|| dispatcher.dispatch_collecting(NEW, &mut Collector::<u64>::new(1), |_, _| {})),
            _ => {
                let mut end = dispatcher.into_async();
                let panic = panics(|| poll(&Task::new(), &mut end.dispatch(NEW)));
                dispatcher = end.into_blocking();
                panic
            }
        };
        assert_eq!((panic.as_str(), fuse.load(SeqCst)), ("a key", 0));
        jobs.extend((call > 1).then_some(NEW));
        drop(workers);
        dispatcher.flush();
        let mut undone = dispatcher.join().unwrap_err().undone;
        undone.sort_unstable();
        assert_eq!(undone, jobs, "asked {asked} times, call {call}");
    }
    // A sink that has said that it is ready.
    let (mut dispatcher, mut workers) = Builder::new(2).route(ByKey::new(key)).build::<u64>().unwrap();
    (0..8).for_each(|job| dispatcher.dispatch(job).unwrap());
    drop(workers.remove(0));
    fuse.store(1, SeqCst);
    assert_eq!(panics(|| dispatcher.flush()), "a key");
    let mut end = dispatcher.into_async();
    fuse.store(1, SeqCst);
    assert_eq!(panics(|| Pin::new(&mut end).start_send(NEW)), "a key");
    drop(workers);
    let mut undone = end.into_blocking().join().unwrap_err().undone;
    undone.sort_unstable();
    assert_eq!(undone, (0..8).chain([NEW]).collect::<Vec<_>>());
}

fn the_work_of_a_worker() {
    let (mut dispatcher, mut workers) = dispatch::channel(2, 4);
    dispatcher.dispatch_slice(&[1, 2, 3, 4]).unwrap();
    assert!(workers.remove(0).run(|_| panic!("a worker")).is_none());
    assert_eq!(dispatcher.try_dispatch(5), Err(DispatchError::Panicked(5)));
    assert_eq!(dispatcher.take_panic().unwrap().message(), Some("a worker"));
    assert_eq!(dispatcher.flush() + dispatcher.loads().map(|(_, jobs)| jobs).sum::<usize>(), 4);
}

fn the_drop_of_a_dispatchers_job() {
    let (items, there) = Odd::several([1, 2, 4, 6]);
    let (mut dispatcher, mut workers) = Builder::new(2).batch(1).capacity(8).build::<Odd>().unwrap();
    dispatcher.dispatch_batch(&mut { items }).ok().unwrap();
    workers.remove(0).leave().ok().unwrap();
    assert_eq!(panics(|| drop(dispatcher)), "an item");
    let second = workers.remove(0);
    assert!(second.is_closed());
    assert_eq!((second.backlog(), there.load(SeqCst)), (2, 2));
    assert_eq!(second.leave().err().map(|jobs| jobs.len()), Some(2), "they come back to the worker");
}

fn the_drop_of_a_job_by_a_worker_that_panics() {
    /// Its drop panics beside another panic, too.
    struct Bad(Arc<AtomicUsize>);

    impl Drop for Bad {
        fn drop(&mut self) {
            self.0.fetch_sub(1, SeqCst);
            panic!("a job");
        }
    }

    for runs in [true, false] {
        let there = Arc::new(AtomicUsize::new(3));
        let (mut dispatcher, mut workers) = dispatch::channel(1, 4);
        let mut jobs = [(); 3].map(|()| Bad(there.clone())).into();
        dispatcher.dispatch_batch(&mut jobs).ok().unwrap();
        drop(dispatcher);
        let worker = workers.remove(0);
        let works = || match runs {
            true => worker.run(|_| panic!("a worker")),
            false => {
                let _worker = worker;
                panic!("a worker")
            }
        };
        assert_eq!(panics(works), "a worker");
        assert_eq!(there.load(SeqCst), 0);
    }
}

fn the_closure_of_dispatch_collecting() {
    let (mut dispatcher, mut workers) = dispatch::channel(1, 1);
    let mut results = Collector::new(4);
    let mut result = results.add().unwrap();
    result.push_slice(&[1, 2]).unwrap();
    dispatcher.dispatch(1).unwrap();
    assert_eq!(panics(|| dispatcher.dispatch_collecting(2, &mut results, |_, _| panic!("a closure"))), "a closure");
    assert_eq!(results.try_collect(), Ok((0, 2)));
    assert_eq!((workers[0].try_pop(), workers[0].try_pop()), (Ok(1), Err(TryPopError::Empty)));
    dispatcher.dispatch(3).unwrap();
}

#[derive(Clone, Debug)]
struct Blows;

impl Strategy for Blows {
    fn next(&self, _: &mut WaitState) -> Next {
        panic!("a strategy")
    }
}

fn a_wait_strategy() {
    let (mut producer, mut consumer) = spsc::lane::channel_with(1, Options::new().wait(Blows)).unwrap();
    assert_eq!(panics(|| consumer.pop()), "a strategy");
    producer.push(1).unwrap();
    assert_eq!(consumer.pop(), Ok(1));

    let (sender, receiver) = mpmc::ticket::channel_with(1, mpmc::Options::new().wait(Blows)).unwrap();
    assert_eq!(panics(|| receiver.pop()), "a strategy");
    sender.push(1).unwrap();
    assert_eq!(receiver.pop(), Ok(1));
}

fn as_ref_of_a_message() {
    struct Message(u8);
    impl AsRef<[u8]> for Message {
        fn as_ref(&self) -> &[u8] {
            if self.0 == 2 {
                panic!("a message")
            }
            std::slice::from_ref(&self.0)
        }
    }
    let (mut producer, mut consumer) = stream::channel();
    assert_eq!(panics(|| producer.try_push_batch(&[Message(1), Message(2), Message(3)])), "a message");
    producer.push(&[4]).unwrap();
    let popped = std::iter::from_fn(|| consumer.try_pop().ok().map(|message| message[0])).collect::<Vec<_>>();
    assert_eq!(popped, [1, 4]);
}
