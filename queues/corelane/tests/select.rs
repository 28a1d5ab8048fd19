//! One thread that waits for the first of many ends of every family. What holds for each design of `spsc` is in
//! `contract/select.rs`, what no schedule may lose in `loom_select.rs`, and a task's waits in `asynchronous/select.rs`.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[macro_use]
#[path = "support/designs.rs"]
mod designs;
#[allow(dead_code, reason = "it pauses nowhere")]
#[path = "support/random.rs"]
mod random;
#[path = "support/watchdog.rs"]
mod watchdog;

use corelane::dispatch::{self, Collector};
use corelane::error::PopTimeoutError;
use corelane::handoff::{CancelToken, Fairness, SynchronousQueue};
use corelane::mpmc::{self, Design, NoStats, Options, Queue};
use corelane::spsc::{self, stream};
use corelane::wait::{Adaptive, Park, Select, Selectable, Strategy, Yield};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for a thread to fall asleep, as a rule.
const NAP: Duration = Duration::from_millis(4);

/// Positions start here, so that waits pass over their wrap-around.
const START: usize = usize::MAX - 2;

fn channel<T: Send>(capacity: usize) -> (spsc::lane::Producer<T>, spsc::lane::Consumer<T>) {
    spsc::lane::channel_with(capacity, spsc::Options::new().start_at(START)).unwrap()
}

/// A thread sleeps for this end and others, and is woken by what `change` does, which makes this end ready.
fn wakes_by<E: Selectable + Send, W: Strategy>(name: &str, wait: W, end: E, change: impl FnOnce() + Send) {
    let (_tx, idle) = channel::<u8>(1);
    let (_sender, other) = mpmc::channel::<u8>(1);
    let mut select = Select::with(wait);
    select.add(idle);
    let key = select.add(end);
    select.add(other);
    assert_eq!(select.try_wait(), None, "{name} is not ready");
    assert_eq!(select.wait_timeout(Duration::from_millis(1)), None, "{name} is not ready");
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| select.wait());
        thread::sleep(NAP);
        change();
        assert_eq!(sleeper.join().unwrap().unwrap(), key, "{name}");
    });
    assert_eq!(select.try_wait().unwrap(), key, "{name} stays ready while nothing is taken");
}

fn shared<D: Design<u8>>(name: &str) {
    let full = || {
        let queue: Queue<u8, D, _, NoStats> = mpmc::any_queue(1, Options::new().wait(Adaptive)).unwrap();
        // One without a bound is never full.
        (queue.capacity() == 1).then(|| {
            queue.push(1).unwrap();
            queue
        })
    };
    let empty = || mpmc::any_queue::<u8, D, _, NoStats>(1, Options::new().wait(Adaptive)).unwrap();
    let queue = empty();
    wakes_by(name, Park, queue.pop_side(), || queue.push(1).unwrap());
    let queue = empty();
    wakes_by(name, Park, queue.pop_side(), || queue.close());
    if let Some(queue) = full() {
        wakes_by(name, Park, queue.push_side(), || assert_eq!(queue.try_pop(), Ok(1)));
    }
    if let Some(queue) = full() {
        wakes_by(name, Park, queue.push_side(), || queue.close());
    }
    let options = || Options::new().wait(Adaptive);
    let (sender, receiver) = mpmc::any_channel::<u8, D, _, NoStats>(1, options()).unwrap();
    wakes_by(name, Park, receiver, || sender.push(1).unwrap());
    let (sender, receiver) = mpmc::any_channel::<u8, D, _, NoStats>(1, options()).unwrap();
    wakes_by(name, Park, receiver, move || drop(sender));
}

#[test]
fn every_kind_of_end_wakes_it() {
    watchdog::guard(|| {
        let (mut tx, rx) = channel(1);
        wakes_by("a consumer", Park, rx, || tx.push(1).unwrap());
        let (tx, rx) = channel::<u8>(1);
        wakes_by("a consumer that is closed", Adaptive, rx, move || drop(tx));
        let (mut tx, mut rx) = channel(1);
        tx.push(1).unwrap();
        wakes_by("a producer", Yield, &mut tx, || assert_eq!(rx.pop(), Ok(1)));
        tx.push(1).unwrap();
        wakes_by("a producer that is closed", Park, &mut tx, move || drop(rx));

        let (mut tx, rx) = stream::channel();
        wakes_by("a stream's consumer", Park, rx, || tx.push(b"x").unwrap());
        let options = spsc::Options::new().tuning(stream::Tuning::new().limit(256)).wait(Park).start_at(START);
        let (mut tx, mut rx) = stream::channel_with::<_, spsc::NoStats>(options).unwrap();
        while tx.try_push(b"x").is_ok() {}
        wakes_by("a stream's producer", Park, tx, || while rx.try_pop().is_ok() {});

        macro_rules! wakes {
            ($name:ident, $design:ident, $flags:tt) => {
                shared::<mpmc::$design>(stringify!($name));
            };
        }
        shared_designs!(wakes);
        let (mut dispatcher, mut workers) = dispatch::channel::<u8>(1, 1);
        wakes_by("a worker", Park, &mut workers[0], || dispatcher.dispatch(1).unwrap());
        wakes_by("a dispatcher", Park, &mut dispatcher, || assert_eq!(workers[0].pop(), Ok(1)));
        dispatcher.dispatch(2).unwrap();
        wakes_by("a dispatcher whose worker leaves", Park, &mut dispatcher, || drop(workers.pop()));
        let mut results = Collector::<u8>::new(1);
        let mut result = results.add().unwrap();
        wakes_by("a collector", Park, &mut results, || result.push(1).unwrap());
        assert_eq!(results.collect(), Ok((0, 1)));
        wakes_by("a collector that is closed", Park, &mut results, move || drop(result));

        for fairness in [Fairness::Fair, Fairness::Unfair] {
            let queue = SynchronousQueue::new(fairness);
            wakes_by("a take", Park, queue.reserve_take(), || assert_eq!(queue.try_put(1), Ok(())));
            wakes_by("a put", Park, queue.reserve_put(2), || assert_eq!(queue.try_take(), Ok(2)));
            wakes_by("a take that is closed", Park, queue.reserve_take(), || queue.close());
        }
        let token = CancelToken::new();
        wakes_by("a token", Park, token.clone(), || token.cancel());
    });
}

#[test]
fn each_ready_end_is_named_in_turn() {
    let (mut tx, rx): (Vec<_>, Vec<_>) = (0..4).map(|_| channel(8)).unzip();
    let mut fair = Select::new();
    let keys: Vec<_> = rx.into_iter().map(|rx| fair.add(rx)).collect();
    [0, 1, 3].iter().for_each(|&i: &usize| tx[i].push(i).unwrap());
    let turns: Vec<_> = (0..6).map(|_| fair.wait().unwrap().index()).collect();
    assert_eq!(turns, [0, 1, 3, 0, 1, 3]);
    // From behind the last one on.
    fair[keys[0]].pop().unwrap();
    tx[2].push(2).unwrap();
    let turns: Vec<_> = (0..4).map(|_| fair.wait().unwrap().index()).collect();
    assert_eq!(turns, [1, 2, 3, 1]);
}

#[test]
fn the_first_ready_end_is_named_by_a_biased_set() {
    let (mut tx, rx): (Vec<_>, Vec<_>) = (0..3).map(|_| channel(8)).unzip();
    let mut select = Select::new().biased();
    let keys: Vec<_> = rx.into_iter().map(|rx| select.add(rx)).collect();
    tx[2].push(1).unwrap();
    assert_eq!(select.wait().unwrap(), keys[2]);
    tx[1].push(1).unwrap();
    assert!((0..3).all(|_| select.wait().unwrap() == keys[1]));
}

#[test]
fn ends_come_and_go() {
    let (mut tx, rx): (Vec<_>, Vec<_>) = (0..3).map(|_| channel::<usize>(8)).unzip();
    let mut select = Select::new();
    assert!(select.is_empty() && select.wait().is_none() && select.try_wait().is_none());
    let keys: Vec<_> = rx.into_iter().map(|rx| select.add(rx)).collect();
    tx.iter_mut().enumerate().for_each(|(i, tx)| tx.push(i).unwrap());
    let mut second = select.remove(keys[1]).unwrap();
    assert_eq!(second.pop(), Ok(1));
    assert_eq!((select.len(), select.wait().unwrap().index(), select.wait().unwrap().index()), (2, 0, 2));
    // Its place is taken by an end of another kind, which the old key does not lead to.
    let (sender, receiver) = mpmc::channel::<String>(1);
    let letters = select.add(receiver);
    assert_eq!(letters.index(), 1);
    assert!(select.get_mut(keys[1]).is_none() && select.remove(keys[1]).is_none());
    catch_unwind(AssertUnwindSafe(|| select[keys[1]].len())).unwrap_err();
    sender.push("text".into()).unwrap();
    let named: Vec<_> = (0..3).map(|_| select.wait().unwrap()).collect();
    assert!(named.iter().any(|&ready| ready == letters) && named.iter().all(|&ready| ready != keys[1]));
    assert_eq!(select[letters].try_pop().as_deref(), Ok("text"));
    // Nor does a key of another set.
    let mut other = Select::new();
    let (_tx, rx) = channel::<usize>(8);
    let elsewhere = other.add(rx);
    assert!(select.get_mut(elsewhere).is_none() && select.remove(elsewhere).is_none());
    assert_eq!(select[keys[2]].try_pop(), Ok(2));
    // What a set owns goes with it.
    drop(select);
    assert!(tx[0].is_closed() && sender.is_closed());
    assert!(!tx[1].is_closed(), "it was taken out");
}

#[test]
fn a_wait_is_never_early() {
    let (_tx, rx) = channel::<u8>(1);
    let mut select = Select::with(Park);
    let time = Duration::from_millis(15);
    let is_in_time = |select: &mut Select<'_, Park>| {
        let since = Instant::now();
        assert_eq!(select.wait_timeout(time), None);
        assert!(since.elapsed() >= time, "with {} ends", select.len());
    };
    is_in_time(&mut select);
    select.add(rx);
    is_in_time(&mut select);
}

#[test]
fn an_end_is_waited_for_by_one_thread_and_then_by_another() {
    watchdog::guard(|| {
        let (mut tx, rx) = channel(1);
        let mut select = Select::with(Park);
        let key = select.add(rx);
        for round in 0..20 {
            thread::scope(|scope| {
                let sleeper = scope.spawn(|| {
                    assert_eq!(select.wait().unwrap(), key);
                    select[key].pop()
                });
                if round % 4 == 0 {
                    thread::sleep(NAP);
                }
                tx.push(round).unwrap();
                assert_eq!(sleeper.join().unwrap(), Ok(round));
            });
        }
    });
}

/// Waits until so many threads sleep, or are about to, as far as can be told from outside.
fn asleep() {
    thread::sleep(2 * NAP);
}

/// A select that was woken and takes nothing leaves it to the next sleeper.
fn an_unused_wake_up_is_passed_on<D: Design<u8>>() {
    let queue: Queue<u8, D, _, NoStats> = mpmc::any_queue(4, Options::new().wait(Park)).unwrap();
    thread::scope(|scope| {
        // It sleeps first, so it is the first to be woken.
        let selects = scope.spawn(|| Select::with(Park).wait_for_pop(&queue));
        asleep();
        let pops = scope.spawn(|| queue.pop());
        asleep();
        queue.push(7).unwrap();
        assert_eq!(pops.join().unwrap(), Ok(7));
        // The pop may have been faster than the look of the select, which sleeps again, then.
        queue.close();
        selects.join().unwrap();
    });
}

trait WaitForPop<'a> {
    fn wait_for_pop<D: Design<u8>>(self, queue: &'a Queue<u8, D, Park, NoStats>);
}

impl<'a> WaitForPop<'a> for Select<'a, Park> {
    fn wait_for_pop<D: Design<u8>>(mut self, queue: &'a Queue<u8, D, Park, NoStats>) {
        let key = self.add(queue.pop_side());
        assert_eq!(self.wait().unwrap(), key);
    }
}

#[test]
fn what_a_select_does_not_take_another_sleeper_gets() {
    macro_rules! passed_on {
        ($name:ident, $design:ident, $flags:tt) => {
            watchdog::guard(an_unused_wake_up_is_passed_on::<mpmc::$design>);
        };
    }
    shared_designs!(passed_on);
}

/// A closed end that is still in the set is named again and again, and in its turn only.
#[test]
fn a_closed_end_keeps_nobody_waiting() {
    let (_, closed) = channel::<u8>(1);
    let (mut tx, rx) = channel::<u8>(1);
    let mut select = Select::new();
    let closed = select.add(closed);
    let open = select.add(rx);
    assert_eq!([select.wait().unwrap(), select.wait().unwrap()], [closed; 2]);
    tx.push(1).unwrap();
    assert_eq!([select.wait().unwrap(), select.wait().unwrap()], [open, closed]);
}

/// Whether a queue's wait ever has to look again without being woken.
#[cfg(target_os = "linux")]
fn has_membarrier() -> bool {
    // SAFETY: it touches no memory of ours.
    let commands = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_QUERY, 0, 0) };
    commands > 0 && commands & libc::c_long::from(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn an_idle_wait_for_many_ends_is_not_polled() {
    if !has_membarrier() {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"SKIPPED: no membarrier\n");
        return;
    }
    /// How often the strategy was asked.
    #[derive(Clone, Debug)]
    struct Counted(std::sync::Arc<AtomicUsize>);
    impl Strategy for Counted {
        fn next(&self, state: &mut corelane::wait::WaitState) -> corelane::wait::Next {
            self.0.fetch_add(1, SeqCst);
            Park.next(state)
        }
    }
    watchdog::guard(|| {
        let (mut tx, rx): (Vec<_>, Vec<_>) = (0..62).map(|_| channel::<u8>(1)).unzip();
        let (_sender, receiver) = mpmc::channel::<u8>(1);
        let queue = SynchronousQueue::<u8>::new(Fairness::Fair);
        let asked = Counted(Default::default());
        let mut select = Select::with(asked.clone());
        for rx in rx {
            select.add(rx);
        }
        select.add(receiver);
        select.add(queue.reserve_take());
        assert_eq!(select.len(), 64);
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| select.wait());
            thread::sleep(Duration::from_millis(150));
            tx[40].push(1).unwrap();
            assert_eq!(sleeper.join().unwrap().unwrap().index(), 40);
        });
        // A sleep may end for no reason; four hundred times it does not.
        let asked = asked.0.load(SeqCst);
        assert!(asked <= 4, "the strategy was asked {asked} times");
    });
}

#[test]
fn a_strategy_that_panics_leaves_the_set_as_it_was() {
    #[derive(Clone, Debug)]
    struct Fails(std::sync::Arc<AtomicBool>);
    impl Strategy for Fails {
        fn next(&self, state: &mut corelane::wait::WaitState) -> corelane::wait::Next {
            assert!(!self.0.load(SeqCst), "the strategy fails");
            Park.next(state)
        }
    }
    let fails = Fails(Default::default());
    let (sender, receiver) = mpmc::channel::<u8>(1);
    let mut select = Select::with(fails.clone());
    let key = select.add(receiver.clone());
    fails.0.store(true, SeqCst);
    catch_unwind(AssertUnwindSafe(|| select.wait())).unwrap_err();
    sender.push(1).unwrap();
    assert_eq!(select.wait().unwrap(), key);
    assert_eq!(receiver.pop_timeout(Duration::ZERO), Ok(1));
    assert_eq!(receiver.pop_timeout(Duration::ZERO), Err(PopTimeoutError::Timeout));
}

/// What a wait needs of an end is asked of that end, not of the one that was added.
#[test]
#[should_panic(expected = "`room` is more than the capacity")]
fn a_producer_that_was_replaced_is_asked_for_its_capacity() {
    let ((large, _rx), (small, _other)) = (channel::<u8>(8), channel::<u8>(2));
    let mut select = Select::new();
    let key = select.add_for(large, 4);
    assert_eq!(select.wait().unwrap(), key);
    select[key] = small;
    select.wait_timeout(Duration::from_millis(20));
}

#[cfg(all(target_os = "linux", not(miri)))]
mod descriptors {
    use super::{NAP, asleep, channel};
    use crate::random::Random;
    use crate::watchdog;
    use corelane::error::TryPopError;
    use corelane::wait::{Adaptive, Park, Readable, Ready, Select, Selectable, Writable, Yield};
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::{Duration, Instant};

    fn pair() -> (UnixStream, UnixStream) {
        let (one, two) = UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        two.set_nonblocking(true).unwrap();
        (one, two)
    }

    fn either_wakes_it<W: corelane::wait::Strategy>(wait: W) {
        let (mut far, near) = pair();
        let (mut tx, rx) = channel::<u8>(1);
        let mut select = Select::with(wait);
        let (rx, socket) = (select.add(rx), select.add(Readable::new(near)));
        assert_eq!(select.try_wait(), None);
        for round in 0..12 {
            thread::scope(|scope| {
                let sleeper = scope.spawn(|| select.wait().unwrap());
                if round % 3 == 0 {
                    thread::sleep(NAP);
                }
                if round % 2 == 0 {
                    far.write_all(b"x").unwrap();
                    assert_eq!(sleeper.join().unwrap(), socket);
                } else {
                    tx.push(round).unwrap();
                    assert_eq!(sleeper.join().unwrap(), rx);
                }
            });
            if round % 2 == 0 {
                select[socket].get_ref().read_exact(&mut [0]).unwrap();
            } else {
                assert_eq!(select[rx].pop(), Ok(round));
            }
        }
        // The other end goes: a read says so.
        drop(far);
        assert_eq!(select.wait().unwrap(), socket);
        assert_eq!(select[socket].get_ref().read(&mut [0]).unwrap(), 0);
        let near = select.remove(socket).unwrap().into_inner();
        assert_eq!(select.try_wait(), None);
        drop(near);
        drop(tx);
        assert_eq!(select.wait().unwrap(), rx);
    }

    #[test]
    fn a_queue_and_a_socket_are_waited_for_together() {
        watchdog::guard(|| {
            either_wakes_it(Park);
            either_wakes_it(Adaptive);
            either_wakes_it(Yield);
        });
    }

    #[test]
    fn a_socket_is_waited_for_until_it_has_room() {
        watchdog::guard(|| {
            let (mut near, mut far) = pair();
            while near.write(&[0; 4096]).is_ok() {}
            let mut select = Select::with(Park);
            let socket = select.add(Writable::new(&near));
            assert_eq!(select.wait_timeout(Duration::from_millis(2)), None);
            thread::scope(|scope| {
                let sleeper = scope.spawn(|| select.wait().unwrap());
                asleep();
                let error = far.read_to_end(&mut Vec::new()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                assert_eq!(sleeper.join().unwrap(), socket);
            });
        });
    }

    #[test]
    fn a_wait_in_poll_is_never_early() {
        let (_far, near) = pair();
        let mut select = Select::with(Park);
        select.add(Readable::new(near));
        for time in [Duration::from_micros(300), Duration::from_millis(15)] {
            let since = Instant::now();
            assert_eq!(select.wait_timeout(time), None);
            assert!(since.elapsed() >= time);
        }
    }

    /// How often this thread sleeps in a wait that times out; none where the system does not count that.
    fn sleeps_of(select: &mut Select<'_, Park>) -> Option<u64> {
        let sleeps = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
            let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
            count.trim().parse::<u64>().ok()
        };
        let before = sleeps()?;
        assert_eq!(select.wait_timeout(Duration::from_millis(300)), None);
        Some(sleeps()? - before)
    }

    /// As a wait for queues alone does: a pause between two looks would be a millisecond.
    #[test]
    fn a_wait_in_poll_sleeps_and_does_not_look_again() {
        let ((_far, near), (_tx, rx)) = (pair(), channel::<u8>(4));
        let mut select = Select::with(Park);
        select.add(rx);
        let Some(by_queues) = sleeps_of(&mut select) else {
            return println!("SKIPPED: this system does not count how often a thread sleeps");
        };
        select.add(Readable::new(near));
        let in_poll = sleeps_of(&mut select).unwrap();
        assert!(in_poll < by_queues + 30, "{in_poll} times, {by_queues} without a descriptor");
    }

    #[test]
    fn a_descriptor_takes_its_turn_among_the_others() {
        let (mut far, near) = pair();
        let (mut tx, rx) = channel::<u8>(4);
        let mut select = Select::new();
        let (socket, rx) = (select.add(Readable::new(near)), select.add(rx));
        far.write_all(b"x").unwrap();
        tx.push(1).unwrap();
        for _ in 0..2 {
            assert_eq!(select.wait().unwrap(), socket);
            assert_eq!(select.wait().unwrap(), rx);
        }
    }

    /// The one before is closed, and its number goes to other files.
    #[test]
    fn an_end_that_was_replaced_is_asked_for_its_descriptor() {
        const SOON: Duration = Duration::from_millis(5);
        let ((_gone, old), (mut far, new)) = (pair(), pair());
        let mut select = Select::with(Park);
        let socket = select.add(Readable::new(old));
        select[socket] = Readable::new(new);
        assert_eq!(select.wait_timeout(SOON), None);
        let others: Vec<_> = (0..4).map(|_| pair()).collect();
        others.iter().for_each(|(one, two)| {
            (&*one).write_all(b"x").unwrap();
            (&*two).write_all(b"x").unwrap();
        });
        assert_eq!(select.wait_timeout(SOON), None);
        far.write_all(b"x").unwrap();
        assert_eq!(select.wait_timeout(SOON).unwrap(), socket);
        // Two that change places.
        let (mut far, near) = pair();
        let other = select.add(Readable::new(near.try_clone().unwrap()));
        assert_eq!(select.wait_timeout(SOON).unwrap(), socket);
        let mut swapped = Readable::new(near.try_clone().unwrap());
        std::mem::swap(&mut select[socket], &mut swapped);
        std::mem::swap(&mut select[other], &mut swapped);
        assert_eq!([select.wait().unwrap(), select.wait().unwrap()], [Ready::from(other); 2]);
        far.write_all(b"x").unwrap();
        assert_eq!([select.wait().unwrap(), select.wait().unwrap()], [Ready::from(socket), Ready::from(other)]);
    }

    /// A key may lead to an end of any type.
    #[test]
    fn a_descriptor_that_took_the_place_of_a_queue_is_asked() {
        type Any<'a> = &'a mut (dyn Selectable + Send);
        const SOON: Duration = Duration::from_millis(5);
        let ((mut far, near), (mut tx, mut rx)) = (pair(), channel::<u8>(1));
        let (_keep, quiet) = pair();
        let (mut socket, mut quiet) = (Readable::new(near), Readable::new(quiet));
        let mut select = Select::with(Park);
        let key = select.add(&mut rx as Any<'_>);
        tx.push(1).unwrap();
        assert_eq!(select.wait_timeout(SOON).unwrap(), key);
        let queue = std::mem::replace(&mut select[key], &mut socket);
        assert_eq!(select.wait_timeout(SOON), None);
        far.write_all(b"x").unwrap();
        assert_eq!(select.wait_timeout(SOON).unwrap(), key);
        let other = select.add(&mut quiet as Any<'_>);
        select[key] = queue;
        assert_eq!((select.wait_timeout(SOON).unwrap() == key, select.try_wait().unwrap() == key), (true, true));
        assert!(select.remove(key).is_some() && select.remove(other).is_some());
    }

    /// Bytes through sockets and items through queues, in any order, to their ends.
    #[test]
    fn nothing_is_missed_between_sockets_and_queues() {
        const EACH: u32 = 1_500;
        watchdog::guard(|| {
            let (mut select, mut sockets, mut queues) = (Select::with(Park), Vec::new(), Vec::new());
            thread::scope(|scope| {
                for seed in 0..2 {
                    let (mut far, near) = pair();
                    far.set_nonblocking(false).unwrap();
                    sockets.push(select.add(Readable::new(near)));
                    let (mut tx, rx) = channel::<u32>(2);
                    queues.push(select.add(rx));
                    scope.spawn(move || {
                        let mut random = Random::new(seed + 1);
                        for i in 0..EACH {
                            far.write_all(&[i as u8]).unwrap();
                            random.spin(2_000);
                        }
                    });
                    scope.spawn(move || {
                        let mut random = Random::new(seed + 3);
                        for i in 0..EACH {
                            tx.push(i).unwrap();
                            random.spin(2_000);
                        }
                    });
                }
                let (mut bytes, mut items) = (0, 0);
                while let Some(ready) = select.wait() {
                    if let Some(&socket) = sockets.iter().find(|&&socket| ready == socket) {
                        match select[socket].get_ref().read(&mut [0; 16]) {
                            Ok(0) => drop(select.remove(socket)),
                            Ok(read) => bytes += read as u32,
                            Err(error) => panic!("it was ready: {error}"),
                        }
                    } else if let Some(&queue) = queues.iter().find(|&&queue| ready == queue) {
                        match select[queue].try_pop() {
                            Ok(_) => items += 1,
                            Err(TryPopError::Closed) => drop(select.remove(queue)),
                            Err(error) => panic!("it was ready: {error}"),
                        }
                    }
                }
                assert_eq!((bytes, items), (2 * EACH, 2 * EACH));
            });
        });
    }
}
