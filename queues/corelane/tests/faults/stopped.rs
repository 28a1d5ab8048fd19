//! A thread is stopped in the middle of whatever it does, often between two instructions of a call. The `try_` calls of
//! the others return, and find everything whose call has returned; when the thread goes on the stream is whole.

use crate::fuse::Way;
use crate::handoff_panics::Meeting;
use crate::meeting::Queue;
use crate::random::Random;
use crate::signals::Stop;
use crate::{Case, Fans, Long, Shared};
use corelane::dispatch::Builder;
use corelane::error::{DispatchError, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::handoff::WaitLimit;
use corelane::mpmc;
use corelane::spsc::{self, Options};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

const STOPS: usize = 150;
const CAPACITIES: [usize; 2] = [3, 100];
/// Far longer than a test.
const LONG: Duration = Duration::from_secs(50);

fn queue<C: Case>(
    capacity: usize,
    wait: Way,
) -> (spsc::Producer<u64, C::Design, Way>, spsc::Consumer<u64, C::Design, Way>) {
    spsc::any_channel(capacity, Options::new().tuning(C::tuning(capacity, KEEPS)).wait(wait).start_at(usize::MAX - 50))
        .expect("a good capacity")
}

const LENGTH: usize = size_of::<Long>() / size_of::<u64>();

/// Segments that an unbounded queue keeps: so many that no test goes to the allocator, which has locks that a stopped
/// thread may hold.
const KEEPS: usize = 40;
/// The most items in an unbounded queue, in capacities, which are its segments.
const AHEAD: u64 = 8;

/// A while that is sometimes some pauses, and sometimes several slices of a call.
fn moment(random: &mut Random) {
    random.spin(3_000);
}

/// Lets the queue make the segments that it will need.
fn warm_up<D: spsc::Design<u64>, W>(
    capacity: usize,
    tx: &mut spsc::Producer<u64, D, W>,
    rx: &mut spsc::Consumer<u64, D, W>,
) {
    for _ in 0..3 {
        let pushed = (0..2 * AHEAD * capacity as u64).take_while(|&item| tx.try_push(item).is_ok()).count();
        assert_eq!(std::iter::from_fn(|| rx.try_pop().ok()).count(), pushed);
    }
}

fn until_it_runs(stop: &Stop) {
    while !stop.stop() {
        thread::yield_now();
    }
    stop.resume();
}

/// Ends the stopped thread when a check fails: else the check's words would be lost, as the scope waits for that
/// thread.
struct OnFailure<'a>(&'a Stop, &'a AtomicBool);

impl Drop for OnFailure<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.1.store(true, SeqCst);
            self.0.resume();
        }
    }
}

pub(crate) fn a_stopped_producer_strands_nothing<C: Case>() {
    for capacity in CAPACITIES {
        let (mut tx, mut rx) = queue::<C>(capacity, Way::Adaptive);
        let (stop, pushed, over) = (Stop::new(), AtomicU64::new(0), AtomicBool::new(false));
        let most = AtomicU64::new(0);
        warm_up(capacity, &mut tx, &mut rx);
        thread::scope(|scope| {
            scope.spawn(|| {
                stop.run(|| {
                    let mut random = Random::new(1);
                    let mut next = 0;
                    while !over.load(SeqCst) {
                        if next > most.load(SeqCst) {
                            continue;
                        }
                        next += match random.below(4) {
                            0 => tx.try_push_slice(&[next, next + 1, next + 2]).unwrap_or(0) as u64,
                            1 => tx.try_push_batch(&mut (next..next + 3).collect()).unwrap_or(0) as u64,
                            2 => u64::from(tx.try_reserve().is_ok_and(|place| place.write(next).is_ok())),
                            _ => u64::from(tx.try_push(next).is_ok()),
                        };
                        pushed.store(next, SeqCst);
                        random.pause();
                    }
                    drop(tx);
                });
            });
            let _on_failure = OnFailure(&stop, &over);
            until_it_runs(&stop);
            let mut random = Random::new(2);
            let mut next = 0;
            let mut pop = |next: &mut u64| match rx.try_pop() {
                Ok(item) => {
                    assert_eq!(item, *next);
                    *next += 1;
                    true
                }
                Err(refusal) => {
                    assert_eq!(refusal, TryPopError::Empty);
                    false
                }
            };
            for _ in 0..STOPS {
                most.store(next + AHEAD * capacity as u64, SeqCst);
                for _ in 0..random.below(2 * capacity) {
                    pop(&mut next);
                }
                moment(&mut random);
                assert!(stop.stop());
                if C::GOES_ON {
                    let pushed = pushed.load(SeqCst);
                    while next < pushed {
                        assert!(pop(&mut next), "item {next} of {pushed} is stranded");
                    }
                    // What the stopped call has published, and no more.
                    while pop(&mut next) {
                        assert!(next <= pushed + 3);
                    }
                }
                stop.resume();
            }
            over.store(true, SeqCst);
            while let Ok(item) = rx.pop() {
                assert_eq!(item, next);
                next += 1;
            }
            assert_eq!(next, pushed.load(SeqCst));
        });
    }
}

pub(crate) fn a_stopped_consumer_leaves_all_room_but_the_lag<C: Case>() {
    for capacity in CAPACITIES {
        let (mut tx, mut rx) = queue::<C>(capacity, Way::Adaptive);
        let (stop, popped, over) = (Stop::new(), AtomicU64::new(0), AtomicBool::new(false));
        warm_up(capacity, &mut tx, &mut rx);
        thread::scope(|scope| {
            scope.spawn(|| {
                stop.run(|| {
                    let mut random = Random::new(3);
                    let mut next = 0;
                    let mut items = Vec::with_capacity(8);
                    loop {
                        match random.below(3) {
                            0 => drop(rx.try_pop_batch(&mut items, 3).unwrap_or(0)),
                            1 => items.extend(rx.try_peek().map(spsc::Peeked::pop)),
                            _ => items.extend(rx.try_pop()),
                        }
                        let end = next + items.len() as u64;
                        assert!(items.drain(..).eq(next..end));
                        next = end;
                        popped.store(next, SeqCst);
                        random.pause();
                        if over.load(SeqCst) && rx.is_closed() && rx.is_empty() {
                            break;
                        }
                    }
                });
            });
            let _on_failure = OnFailure(&stop, &over);
            until_it_runs(&stop);
            let mut random = Random::new(4);
            let mut next = 0;
            for _ in 0..STOPS {
                for _ in 0..random.below(2 * capacity) {
                    next += u64::from(tx.try_push(next).is_ok());
                }
                moment(&mut random);
                assert!(stop.stop());
                if C::GOES_ON {
                    let room = if C::BOUNDED { capacity - tx.release_lag() } else { 3 * capacity };
                    let enough = popped.load(SeqCst) + room as u64;
                    while next < enough {
                        assert_eq!(tx.try_push(next), Ok(()), "there is room for {} more", enough - next);
                        next += 1;
                    }
                    // No more than there is room for.
                    for _ in 0..2 * capacity + 10 {
                        match tx.try_push(next) {
                            Ok(()) => next += 1,
                            Err(TryPushError::Full(_)) => break,
                            Err(refusal) => unreachable!("{refusal}"),
                        }
                    }
                    assert!(!C::BOUNDED || next <= popped.load(SeqCst) + (capacity + 3) as u64);
                }
                stop.resume();
            }
            drop(tx);
            over.store(true, SeqCst);
            while popped.load(SeqCst) != next {
                thread::yield_now();
            }
        });
    }
}

/// A system call that a signal interrupts is no wake-up, and no time-out.
pub(crate) fn signals_end_no_wait<C: Case>() {
    const TIME: Duration = Duration::from_millis(20);
    let (mut tx, mut rx) = queue::<C>(2, Way::Park);
    let interrupt = |stop: &Stop| {
        for _ in 0..20 {
            thread::sleep(Duration::from_micros(200));
            if stop.stop() {
                stop.resume();
            }
        }
    };
    let stops = [Stop::new(), Stop::new()];
    let timed_out = &AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stops[0];
        let consumer = scope.spawn(move || {
            stop.run(move || {
                let item = rx.pop();
                let start = Instant::now();
                assert_eq!(rx.pop_timeout(TIME), Err(PopTimeoutError::Timeout));
                assert!(start.elapsed() >= TIME);
                (item, rx)
            })
        });
        until_it_runs(stop);
        interrupt(stop);
        tx.try_push(7).unwrap();
        interrupt(stop);
        let (item, mut rx) = consumer.join().unwrap();
        assert_eq!(item, Ok(7));
        if !C::BOUNDED {
            return;
        }
        tx.try_push_slice(&[8, 9]).unwrap_or(0);
        let stop = &stops[1];
        let producer = scope.spawn(move || {
            stop.run(move || {
                let start = Instant::now();
                assert_eq!(tx.push_timeout(10, TIME), Err(PushTimeoutError::Timeout(10)));
                assert!(start.elapsed() >= TIME);
                timed_out.store(true, SeqCst);
                tx.push(10)
            })
        });
        until_it_runs(stop);
        while !timed_out.load(SeqCst) && !producer.is_finished() {
            interrupt(stop);
        }
        interrupt(stop);
        assert_eq!(rx.pop(), Ok(8));
        assert_eq!((producer.join().unwrap(), rx.pop(), rx.pop()), (Ok(()), Ok(9), Ok(10)));
    });
}

/// The stopped thread makes `try_` calls, as the others do: no thread is asleep, so none is to be woken.
pub(crate) fn try_calls_return_beside_a_stopped_thread<C: Shared>() {
    if C::BLOCKS {
        return;
    }
    // Memory for so many items is there from the start, and no more are in it, even without a bound.
    const MOST: usize = 2_000;
    let queue = mpmc::any_queue::<u64, C::Design, _, mpmc::NoStats>(
        if C::BOUNDED { 8 } else { 2 * MOST },
        mpmc::Options::new().wait(Way::Adaptive).start_at(usize::MAX - 50),
    )
    .expect("a good capacity");
    let (stop, over) = (Stop::new(), AtomicBool::new(false));
    // What each thread has pushed and popped: sums of numbers, which are 1 on.
    let (pushed, popped) = (AtomicU64::new(0), AtomicU64::new(0));
    let (pushes, pops) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let push = |item: u64| match queue.try_push(item) {
        Ok(()) => {
            pushed.fetch_add(item, SeqCst);
            pushes.fetch_add(1, SeqCst);
            true
        }
        Err(TryPushError::Full(_)) => {
            assert!(C::BOUNDED);
            false
        }
        Err(TryPushError::Busy(_)) => {
            assert!(!C::LOCK_FREE);
            false
        }
        Err(error) => panic!("{error}"),
    };
    let pop = || match queue.try_pop() {
        Ok(item) => {
            popped.fetch_add(item, SeqCst);
            pops.fetch_add(1, SeqCst);
            true
        }
        Err(TryPopError::Empty) => false,
        Err(TryPopError::Busy) => {
            assert!(!C::LOCK_FREE);
            false
        }
        Err(error) => panic!("{error}"),
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            stop.run(|| {
                let mut random = Random::new(5);
                let mut items = Vec::with_capacity(8);
                while !over.load(SeqCst) {
                    items.clear();
                    // The counts are those of calls that have returned: a few more may be inside.
                    let crowded = pushes.load(SeqCst).saturating_sub(pops.load(SeqCst)) > MOST;
                    match random.below(4) {
                        0 | 1 if crowded => {}
                        0 => {
                            items.extend([1, 2, 3]);
                            let _ = queue.try_push_batch(&mut items);
                            let sent = 6 - items.iter().sum::<u64>();
                            pushed.fetch_add(sent, SeqCst);
                            pushes.fetch_add(3 - items.len(), SeqCst);
                        }
                        1 => drop(push(random.below(1000) as u64 + 1)),
                        2 => {
                            let _ = queue.try_pop_batch(&mut items, 3);
                            popped.fetch_add(items.iter().sum(), SeqCst);
                            pops.fetch_add(items.len(), SeqCst);
                        }
                        _ => drop(pop()),
                    }
                }
            });
        });
        let _on_failure = OnFailure(&stop, &over);
        until_it_runs(&stop);
        let mut random = Random::new(6);
        for _ in 0..2 * STOPS {
            moment(&mut random);
            assert!(stop.stop());
            for item in 0..20 {
                let pushed = push(item + 1);
                assert!(pushed || !C::LOCK_FREE);
                let popped = pop();
                assert!(popped || !C::LOCK_FREE, "an item was pushed, and no other thread is awake");
            }
            stop.resume();
        }
        over.store(true, SeqCst);
    });
    while pop() {}
    assert_eq!(pushed.into_inner(), popped.into_inner());
    assert_eq!(pushes.into_inner(), pops.into_inner());
}

/// A sender and a receiver of three lanes, in one thread, are stopped in the middle of a call. The other senders'
/// pushes find room, and another receiver finds what is in all lanes but one.
#[test]
fn a_stopped_thread_keeps_one_lane_to_itself() {
    crate::watchdog::guard(|| {
        const CAPACITY: usize = 64;
        let (tx, rx) = mpmc::lanes::channel::<u64>(CAPACITY);
        let (stop, over) = (Stop::new(), AtomicBool::new(false));
        // Sums of what was pushed and popped by the thread that is stopped.
        let (pushed, popped) = (AtomicU64::new(0), AtomicU64::new(0));
        let (mut own, mut taker) = (tx.clone(), rx.clone());
        let (mut senders, mut other) = ([tx.clone(), tx], rx);
        let (mut sent, mut taken) = (0, 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                stop.run(|| {
                    let mut random = Random::new(11);
                    let mut items = Vec::with_capacity(8);
                    while !over.load(SeqCst) {
                        if random.below(2) == 0 && own.try_push(1).is_ok() {
                            pushed.fetch_add(1, SeqCst);
                        }
                        items.clear();
                        match random.below(2) {
                            0 => items.extend(taker.try_pop()),
                            _ => drop(taker.try_pop_batch(&mut items, 3)),
                        }
                        popped.fetch_add(items.iter().sum(), SeqCst);
                    }
                });
            });
            let _on_failure = OnFailure(&stop, &over);
            until_it_runs(&stop);
            let mut random = Random::new(12);
            for _ in 0..STOPS {
                moment(&mut random);
                assert!(stop.stop());
                // Whatever is in the lane that may be kept is not more than fits there.
                for tx in &mut senders {
                    while tx.try_push(1).is_ok() {
                        sent += 1;
                    }
                }
                let before = taken;
                loop {
                    match other.try_pop() {
                        Ok(item) => taken += item,
                        Err(error) => {
                            assert!(matches!(error, TryPopError::Empty | TryPopError::Busy));
                            break;
                        }
                    }
                }
                assert!(taken - before >= CAPACITY as u64 / 2, "both lanes were kept from the other receiver");
                stop.resume();
            }
            over.store(true, SeqCst);
        });
        drop((own, senders));
        taken += other.iter().sum::<u64>();
        assert_eq!(sent + pushed.into_inner(), taken + popped.into_inner());
    });
}

pub(crate) fn others_meet_beside_a_stopped_thread<C: Meeting>() {
    let queue = C::queue::<u64>();
    let (stop, over) = (Stop::new(), AtomicBool::new(false));
    let (put, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    let count = |counter: &AtomicU64, came: bool| {
        counter.fetch_add(came.into(), SeqCst);
    };
    let moment_of_time = WaitLimit::new().timeout(Duration::from_micros(5));
    thread::scope(|scope| {
        scope.spawn(|| {
            stop.run(|| {
                while !over.load(SeqCst) {
                    count(&put, queue.put_with(1, &moment_of_time).is_ok());
                    count(&taken, queue.take_with(&moment_of_time).is_ok());
                    count(&put, queue.try_put(1).is_ok());
                    count(&taken, queue.try_take().is_ok());
                }
            });
        });
        scope.spawn(|| {
            while !over.load(SeqCst) {
                count(&taken, queue.take_with(&WaitLimit::new().timeout(Duration::from_millis(1))).is_ok());
            }
        });
        let _on_failure = OnFailure(&stop, &over);
        until_it_runs(&stop);
        let mut random = Random::new(7);
        for _ in 0..STOPS {
            moment(&mut random);
            assert!(stop.stop());
            for _ in 0..5 {
                assert!(queue.put_with(1, &WaitLimit::new().timeout(LONG)).is_ok(), "a taker is there, and is not met");
                count(&put, true);
            }
            stop.resume();
        }
        over.store(true, SeqCst);
    });
    assert_eq!(put.into_inner(), taken.into_inner());
}

/// Looks, of a millisecond and more each: far longer than calls take that do not wait, on a busy machine too. Where
/// everything is stopped nothing is looked at.
const HELD_UP: u32 = 8_000;

/// Watches a test whose thread is stopped and goes on in turn, which `turns` counts: lets it go on, and says so, where
/// it is stopped for too long. To be run beside the test until that is `over`.
fn is_held_up(stop: &Stop, turns: &AtomicU64, over: &AtomicBool) -> bool {
    let mut last = (0, 0);
    while !over.load(SeqCst) {
        thread::sleep(Duration::from_millis(1));
        let turn = turns.load(SeqCst);
        last = (turn, if turn == last.0 { last.1 + 1 } else { 0 });
        if turn % 2 == 1 && last.1 > HELD_UP {
            stop.resume();
            return true;
        }
    }
    false
}

pub(crate) fn what_a_stopped_dispatcher_has_dispatched_is_there<C: Fans>() {
    let builder = Builder::new(2).capacity(20).batch(3).wait(Way::Adaptive).tuning(C::Options::default());
    let (mut dispatcher, mut workers) = builder.build_any::<Long, C::Queue>().expect("a good capacity");
    let (stop, dispatched, over) = (Stop::new(), AtomicU64::new(0), AtomicBool::new(false));
    let turns = AtomicU64::new(0);
    thread::scope(|scope| {
        let stopped = scope.spawn(|| {
            stop.run(|| {
                let mut job = 0;
                while !over.load(SeqCst) {
                    match dispatcher.try_dispatch([job; LENGTH]) {
                        Ok(()) => job += 1,
                        Err(refusal) => assert!(matches!(refusal, DispatchError::Full(_))),
                    }
                    dispatched.store(job, SeqCst);
                }
                drop(dispatcher);
            });
        });
        let _on_failure = OnFailure(&stop, &over);
        let held_up = scope.spawn(|| is_held_up(&stop, &turns, &over));
        until_it_runs(&stop);
        let mut random = Random::new(8);
        let mut done = 0;
        for _ in 0..STOPS {
            // Often it is stopped where its calls find room, and so in the middle of a push.
            let enough = done + random.below(300) as u64;
            while done < enough {
                done += u64::from(workers[random.below(2)].try_pop().is_ok());
                random.pause();
                assert!(!stopped.is_finished());
            }
            if random.below(2) == 0 {
                moment(&mut random);
            }
            assert!(stop.stop());
            turns.fetch_add(1, SeqCst);
            let jobs = dispatched.load(SeqCst);
            workers.iter_mut().for_each(|worker| done += std::iter::from_fn(|| worker.try_pop().ok()).count() as u64);
            assert!((jobs..=jobs + 1).contains(&done), "{done} of {jobs} jobs");
            turns.fetch_add(1, SeqCst);
            stop.resume();
            if held_up.is_finished() {
                break;
            }
        }
        over.store(true, SeqCst);
        assert!(!held_up.join().unwrap(), "a call has waited for the thread that is stopped");
        let rest: usize = workers.iter_mut().map(|worker| worker.jobs().count()).sum();
        assert_eq!(done + rest as u64, dispatched.load(SeqCst));
    });
}

pub(crate) fn a_stopped_worker_leaves_the_jobs_to_others<C: Fans>() {
    const CAPACITY: usize = 20;
    let builder = Builder::new(2).capacity(CAPACITY).batch(3).wait(Way::Adaptive).tuning(C::Options::default());
    let (mut dispatcher, mut workers) = builder.build_any::<Long, C::Queue>().expect("a good capacity");
    let (mut other, mut worker) = (workers.pop().expect("of two"), workers.pop().expect("of two"));
    let (stop, done, over) = (Stop::new(), AtomicU64::new(0), AtomicBool::new(false));
    let turns = AtomicU64::new(0);
    thread::scope(|scope| {
        let stopped = scope.spawn(|| {
            stop.run(|| {
                while !over.load(SeqCst) {
                    let jobs = worker.try_pop().into_iter().count();
                    done.fetch_add(jobs as u64, SeqCst);
                }
                done.fetch_add(worker.jobs().count() as u64, SeqCst);
            });
        });
        let _on_failure = OnFailure(&stop, &over);
        let held_up = scope.spawn(|| is_held_up(&stop, &turns, &over));
        until_it_runs(&stop);
        let mut random = Random::new(9);
        let (mut dispatched, mut others) = (0, 0);
        // What the one does not take, the other does: one job, or three.
        let mut dispatch = |three: bool| {
            loop {
                let sent = if three {
                    dispatcher.try_dispatch_slice(&[[dispatched; LENGTH]; 3]).unwrap_or(0)
                } else {
                    usize::from(dispatcher.try_dispatch([dispatched; LENGTH]).is_ok())
                };
                dispatched += sent as u64;
                if sent > 0 {
                    break;
                }
                assert!(other.try_pop().is_ok(), "a job is refused, and this worker has none");
                others += 1;
            }
        };
        for _ in 0..6 * STOPS {
            // It is stopped where there are jobs for it, and so in the middle of a pop.
            let enough = done.load(SeqCst) + random.below(100) as u64;
            while done.load(SeqCst) < enough {
                dispatch(random.below(2) == 0);
                random.pause();
                assert!(!stopped.is_finished());
            }
            assert!(stop.stop());
            turns.fetch_add(1, SeqCst);
            for _ in 0..4 * CAPACITY {
                dispatch(random.below(8) == 0);
            }
            turns.fetch_add(1, SeqCst);
            stop.resume();
            if held_up.is_finished() {
                break;
            }
        }
        over.store(true, SeqCst);
        assert!(!held_up.join().unwrap(), "a call has waited for the thread that is stopped");
        drop(dispatcher);
        others += other.jobs().count() as u64;
        while done.load(SeqCst) + others != dispatched {
            thread::yield_now();
        }
    });
}
