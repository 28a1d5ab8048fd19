//! How workers leave a fan-out, under every interleaving. Runs with
//! `cargo loom -p corelane --test loom_dispatch`.
//!
//! The queues have models of their own in `loom.rs`. What is new in a fan-out is the receiver that lies on a seat for
//! the dispatcher, and a dispatcher that may sleep while that happens. A lost wake-up is a deadlock, which loom
//! reports.

#[path = "support/explore.rs"]
mod explore;

use corelane::Barrier;
use corelane::dispatch::{Builder, Collector, Dispatcher, Mpmc, RoundRobin, Worker};
use corelane::error::DispatchError;
use corelane::mpmc::{BusyWait, Design, MichaelScott, Ticket, TwoLock};
use corelane::spsc::Lane;
use corelane::wait::Park;
use explore::{Item, explore_with, quick, spawn_with};
use loom::thread;

fn explore(preemptions: usize, model: fn()) {
    explore_with(Barrier::Fences, preemptions, model);
    explore_with(Barrier::ReadModifyWrite, preemptions, model);
}

type Ends = (Dispatcher<Item, Lane, Park, RoundRobin>, Vec<Worker<Item, Lane, Park>>);

fn fan_out(workers: usize, capacity: usize) -> Ends {
    Builder::new(workers).capacity(capacity).batch(1).wait(Park).build().unwrap()
}

/// The count itself, which every model of every suite relies on.
#[test]
#[should_panic(expected = "drops of each item: {0: 1, 1: 0}")]
fn an_item_that_leaks_is_found() {
    explore(0, || {
        drop(Item::new(0));
        std::mem::forget(Item::new(1));
    });
}

/// A worker takes a job, if there is one, and leaves, while the dispatcher dispatches more. Each job is done or comes
/// back.
#[test]
fn a_worker_leaves_while_jobs_come() {
    explore(3, || {
        let (mut dispatcher, mut workers) = fan_out(1, 4);
        let mut worker = workers.remove(0);
        dispatcher.try_dispatch(Item::new(0)).unwrap();
        let leaver = thread::spawn(move || {
            let job = worker.try_pop().unwrap();
            assert_eq!(job.read(), 0);
            let more = worker.try_pop().ok().map(|job| job.read());
            assert!(worker.leave().is_ok());
            more
        });
        let mut refused = None;
        for id in 1..3 {
            if let Err(error) = dispatcher.try_dispatch(Item::new(id)) {
                let DispatchError::NoWorker(job) = error else { panic!("{error}") };
                refused.get_or_insert(job.read());
            }
        }
        let more = leaver.join().unwrap();
        dispatcher.flush();
        let back = dispatcher.take_returned().iter().map(Item::read).collect::<Vec<_>>();
        // What was dispatched, without what was done.
        let first = more.map_or(1, |job| job + 1);
        assert!(back.iter().copied().eq(first..refused.unwrap_or(3)), "{first} {back:?} {refused:?}");
    });
}

/// The dispatcher sleeps for room that never comes; the worker's leave wakes it.
#[test]
fn a_leave_wakes_a_dispatcher_that_waits_for_room() {
    explore(3, || {
        let (mut dispatcher, mut workers) = fan_out(1, 1);
        dispatcher.try_dispatch(Item::new(0)).unwrap();
        let worker = workers.remove(0);
        let leaver = thread::spawn(move || drop(worker));
        let error = dispatcher.dispatch(Item::new(1)).unwrap_err();
        let DispatchError::NoWorker(job) = error else { panic!("{error}") };
        assert_eq!(job.read(), 1);
        leaver.join().unwrap();
        let back = dispatcher.take_returned();
        assert_eq!(back.iter().map(Item::read).collect::<Vec<_>>(), [0]);
    });
}

/// In these four a waker comes late, and finds the place to sleep of a thread to which the end has moved.
#[test]
fn a_worker_moves_between_two_waits() {
    explore(3, || {
        let (dispatcher, mut workers) = Builder::new(1).capacity(2).batch(1).wait(Park).build::<usize>().unwrap();
        let mut worker = workers.remove(0);
        let other = spawn_with(dispatcher, move |dispatcher| {
            dispatcher.try_dispatch(1).unwrap();
            dispatcher.try_dispatch(2).unwrap();
        });
        assert_eq!(worker.pop(), Ok(1));
        let worker = spawn_with(worker, move |worker| assert_eq!(worker.pop(), Ok(2)));
        drop((worker.join().unwrap(), other.join().unwrap()));
    });
}

#[test]
fn a_dispatcher_moves_between_two_waits() {
    explore(3, || {
        let (mut dispatcher, mut workers) = Builder::new(1).capacity(2).batch(1).wait(Park).build::<usize>().unwrap();
        dispatcher.dispatch_batch(&mut vec![0, 1]).unwrap();
        let worker = workers.remove(0);
        let takes = spawn_with(worker, move |worker| assert_eq!([worker.try_pop(), worker.try_pop()], [Ok(0), Ok(1)]));
        dispatcher.dispatch(2).unwrap();
        let dispatcher = spawn_with(dispatcher, move |dispatcher| dispatcher.dispatch(3).unwrap());
        drop((dispatcher.join().unwrap(), takes.join().unwrap()));
    });
}

/// It waits for room, and then at the desk, where the worker leaves.
#[test]
fn a_dispatcher_moves_and_waits_at_the_desk() {
    explore(3, || {
        let (mut dispatcher, mut workers) = Builder::new(1).capacity(1).batch(1).wait(Park).build::<usize>().unwrap();
        dispatcher.dispatch(0).unwrap();
        let mut worker = workers.remove(0);
        let takes = thread::spawn(move || assert_eq!(worker.try_pop(), Ok(0)));
        let undone = match dispatcher.dispatch(1) {
            Ok(()) => thread::spawn(move || dispatcher.join().unwrap_err().undone).join().unwrap(),
            Err(refused) => vec![refused.into_inner()],
        };
        assert_eq!(undone, [1]);
        takes.join().unwrap();
    });
}

#[test]
fn a_collector_moves_between_two_waits() {
    explore(3, || {
        let mut results: Collector<usize, Lane, Park> = Collector::with(2, Park);
        let producer = results.add().unwrap();
        let pusher = spawn_with(producer, move |producer| {
            producer.push(1).unwrap();
            producer.push(2).unwrap();
        });
        assert_eq!(results.collect(), Ok((0, 1)));
        thread::spawn(move || assert_eq!(results.collect(), Ok((0, 2)))).join().unwrap();
        drop(pusher.join().unwrap());
    });
}

/// It sleeps for room, one worker leaves, the other makes room: for the job that came back and for the new one.
#[test]
fn what_comes_back_finds_another_worker() {
    explore(quick(1, 2), || {
        let (mut dispatcher, mut workers) = fan_out(2, 1);
        dispatcher.try_dispatch(Item::new(0)).unwrap();
        dispatcher.try_dispatch(Item::new(1)).unwrap();
        let (mut stays, leaves) = (workers.remove(1), workers.remove(0));
        let leaver = thread::spawn(move || assert!(leaves.leave().is_ok()));
        let taker = thread::spawn(move || {
            let got = [stays.pop().unwrap().read(), stays.pop().unwrap().read(), stays.pop().unwrap().read()];
            assert!(stays.pop().is_err());
            got
        });
        // Room for it comes at once, or with the leave, and then behind what came back.
        let dispatched = dispatcher.dispatch(Item::new(2));
        assert!(dispatched.is_ok());
        leaver.join().unwrap();
        dispatcher.join().unwrap();
        let got = taker.join().unwrap();
        assert_eq!(got[0], 1);
        assert!(got[1..] == [0, 2] || got[1..] == [2, 0], "{got:?}");
    });
}

/// Both go at once: the jobs are the worker's, or are dropped with what they lie in.
#[test]
fn dispatcher_and_worker_leave_at_once() {
    explore(4, || {
        let (mut dispatcher, mut workers) = fan_out(1, 4);
        dispatcher.try_dispatch(Item::new(0)).unwrap();
        dispatcher.try_dispatch(Item::new(1)).unwrap();
        let worker = workers.remove(0);
        let leaver = thread::spawn(move || {
            if let Err(jobs) = worker.leave() {
                assert_eq!(jobs.iter().map(Item::read).collect::<Vec<_>>(), [0, 1]);
            }
        });
        drop(dispatcher);
        leaver.join().unwrap();
    });
}

/// `join` sleeps for the last worker, which sleeps for jobs until the queues are closed.
#[test]
fn a_join_wakes_the_workers_and_they_wake_it() {
    explore(2, || {
        let (mut dispatcher, workers) = fan_out(2, 2);
        dispatcher.try_dispatch(Item::new(0)).unwrap();
        let threads = workers.into_iter().map(|mut worker| {
            thread::spawn(move || {
                let done = worker.jobs().map(|job| job.read()).count();
                drop(worker);
                done
            })
        });
        let threads = threads.collect::<Vec<_>>();
        dispatcher.join().unwrap();
        let done = threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>();
        assert_eq!(done, [1, 0]);
    });
}

/// `join` finds what a worker that leaves early has not done.
#[test]
fn a_join_gets_what_is_undone() {
    explore(3, || {
        let (mut dispatcher, mut workers) = fan_out(1, 2);
        dispatcher.try_dispatch(Item::new(0)).unwrap();
        dispatcher.try_dispatch(Item::new(1)).unwrap();
        let mut worker = workers.remove(0);
        let leaver = thread::spawn(move || assert_eq!(worker.pop().unwrap().read(), 0));
        let unfinished = dispatcher.join().unwrap_err();
        assert_eq!(unfinished.undone.iter().map(Item::read).collect::<Vec<_>>(), [1]);
        leaver.join().unwrap();
    });
}

/// One thread dispatches and collects, a worker takes jobs and brings results; each queue has room for one.
#[test]
fn results_make_room_for_jobs() {
    fn model() {
        let (mut dispatcher, mut workers) = Builder::new(1).capacity(1).wait(Park).build::<usize>().unwrap();
        let mut results: Collector<usize, Lane, Park> = Collector::with(1, Park);
        let (mut worker, mut producer) = (workers.remove(0), results.add().unwrap());
        let thread = thread::spawn(move || {
            for job in &mut worker {
                producer.push(job + 10).unwrap();
            }
        });
        let mut got = Vec::new();
        for job in 0..2 {
            dispatcher.dispatch_collecting(job, &mut results, |_, result| got.push(result)).unwrap();
        }
        drop(dispatcher);
        while let Ok((_, result)) = results.collect() {
            got.push(result);
        }
        thread.join().unwrap();
        assert_eq!(got, [10, 11]);
    }
    explore_with(Barrier::Fences, 1, model);
    explore_with(Barrier::ReadModifyWrite, quick(0, 1), model);
}

/// Over a shared queue's ring. A job in the middle of its push is not there yet, so its worker may fall asleep; and a
/// slot in the middle of a pop is not free, so the dispatcher may.
#[test]
fn both_ends_of_a_ring_sleep_in_turn() {
    explore(2, || {
        let builder = Builder::new(1).capacity(1).batch(1).wait(Park);
        let (mut dispatcher, mut workers) = builder.build_with::<Item, Mpmc<Ticket>>().unwrap();
        let mut worker = workers.remove(0);
        let taker = thread::spawn(move || {
            assert_eq!([worker.pop().unwrap().read(), worker.pop().unwrap().read()], [0, 1]);
            assert!(worker.pop().is_err());
        });
        for id in 0..2 {
            assert!(dispatcher.dispatch(Item::new(id)).is_ok());
        }
        drop(dispatcher);
        taker.join().unwrap();
    });
}

/// Over shared queues. Each dispatches to the other and then finds nothing: one of the two is mistaken.
fn who_has_dispatched_and_who_finds_nothing_agree<D: Design<Item>>() {
    let builder = Builder::new(1).capacity(1).batch(1).wait(Park);
    let (mut to_other, mut other) = builder.clone().build_any::<Item, Mpmc<D>>().unwrap();
    let (mut to_me, mut me) = builder.build_any::<Item, Mpmc<D>>().unwrap();
    let job = Item::new(0);
    let thread = thread::spawn(move || {
        to_me.try_dispatch(job).unwrap();
        (other[0].try_pop().is_ok(), other, to_me)
    });
    to_other.try_dispatch(Item::new(1)).unwrap();
    let found = me[0].try_pop().is_ok();
    let (other_found, other, to_me) = thread.join().unwrap();
    assert!(found || other_found);
    drop((to_other, to_me, me, other));
}

#[test]
fn over_rings_who_has_dispatched_and_who_finds_nothing_agree() {
    explore(3, who_has_dispatched_and_who_finds_nothing_agree::<Ticket>);
}

#[test]
fn over_locks_who_has_dispatched_and_who_finds_nothing_agree() {
    explore(3, who_has_dispatched_and_who_finds_nothing_agree::<BusyWait>);
}

/// What is said to be in a worker's queue is there, also in the middle of a dispatch.
fn a_backlog_is_there<D: Design<Item>>() {
    let builder = Builder::new(1).capacity(2).batch(2).wait(Park);
    let (mut dispatcher, mut workers) = builder.build_any::<Item, Mpmc<D>>().unwrap();
    let mut jobs = vec![Item::new(0), Item::new(1)];
    let thread = thread::spawn(move || {
        let backlog = workers[0].backlog();
        for id in 0..backlog {
            assert_eq!(workers[0].try_pop().unwrap().read(), id);
        }
        workers
    });
    assert!(dispatcher.dispatch_batch(&mut jobs).is_ok());
    drop((thread.join().unwrap(), dispatcher));
}

#[test]
fn a_backlog_is_there_in_a_ring() {
    explore(3, a_backlog_is_there::<Ticket>);
}

#[test]
fn a_backlog_is_there_in_a_lock_free_list() {
    explore(2, a_backlog_is_there::<MichaelScott>);
}

#[test]
fn a_backlog_is_there_between_two_locks() {
    explore(3, a_backlog_is_there::<TwoLock>);
}
