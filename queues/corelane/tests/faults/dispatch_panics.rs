//! The dispatcher of a fan-out panics, or one of its workers: at every place where a call runs the user's code, and
//! between any two. Each job is done once, comes back, or was in the hands of the one that panicked.

use crate::Fans;
use crate::book::{Book, Item};
use crate::fuse::{Way, burn, tick, with_every_fuse};
use corelane::dispatch::{Builder, ByKey, Dispatcher, RoundRobin, Route, Worker};
use corelane::error::{DispatchError, PopTimeoutError};
use std::thread;
use std::time::Duration;

type Tx<C, R> = Dispatcher<Item, <C as Fans>::Queue, Way, R>;
type Rx<C> = Worker<Item, <C as Fans>::Queue, Way>;

const JOBS: usize = 40;
const MOMENT: Duration = Duration::from_micros(50);

fn build<C: Fans, R: Route<Item>>(route: R) -> (Tx<C, R>, Vec<Rx<C>>) {
    let builder = Builder::new(2).capacity(2).batch(3).wait(Way::Ticking).route(route);
    builder.tuning(C::Options::default()).build_any().expect("a good capacity")
}

/// Dispatches jobs in every way until there were enough. What a batch has not handed out stays in `hand`, also when it
/// panics.
fn dispatch<C: Fans, R: Route<Item>>(dispatcher: &mut Tx<C, R>, book: &Book, hand: &mut Vec<Item>) {
    let mut way = book.made();
    let mut back = None;
    while book.made() < JOBS || back.is_some() || !hand.is_empty() {
        tick();
        way += 1;
        if way % 4 == 3 || !hand.is_empty() {
            if hand.is_empty() {
                hand.extend([back.take().unwrap_or_else(|| book.item()), book.item(), book.item()]);
            }
            match dispatcher.dispatch_batch(hand) {
                Ok(()) => assert!(hand.is_empty()),
                Err(refusal) => {
                    assert_eq!(refusal, DispatchError::Panicked(()));
                    assert!(dispatcher.take_panic().is_some());
                }
            }
            thread::yield_now();
            continue;
        }
        let job = back.take().unwrap_or_else(|| book.item());
        let outcome = match way % 4 {
            0 => dispatcher.dispatch(job),
            1 => dispatcher.try_dispatch(job),
            _ => dispatcher.dispatch_timeout(job, MOMENT),
        };
        match outcome {
            Ok(()) => {}
            Err(DispatchError::Full(job) | DispatchError::Timeout(job)) => back = Some(job),
            Err(DispatchError::Panicked(job)) => {
                back = Some(job);
                assert!(dispatcher.take_panic().is_some());
            }
            Err(refusal) => unreachable!("one worker at least stays: {refusal}"),
        }
        thread::yield_now();
    }
}

/// Takes jobs in every way until there will be no more.
fn work<C: Fans>(worker: &mut Rx<C>) {
    for way in 0.. {
        tick();
        match way % 4 {
            0 => match worker.pop() {
                Ok(job) => job.receive(),
                Err(_) => return,
            },
            1 => drop(worker.try_pop().map(Item::receive)),
            2 => match worker.pop_timeout(MOMENT) {
                Ok(job) => job.receive(),
                Err(PopTimeoutError::Closed) => return,
                Err(_) => {}
            },
            _ => {
                let mut jobs = Vec::new();
                if worker.pop_batch(&mut jobs, 2).is_err() {
                    return;
                }
                jobs.iter().for_each(Item::note);
            }
        }
    }
}

fn by_key() -> ByKey<impl FnMut(&Item) -> u64 + Send> {
    ByKey::new(|job: &Item| {
        tick();
        job.id as u64
    })
}

/// What a panicking dispatcher may have in hand: a job, or one that had come back.
#[track_caller]
fn assert_all_done(book: &Book, gone: usize) {
    let missing = book.missing();
    assert!(missing.len() <= gone, "{missing:?} of {} were lost", book.made());
    book.assert_each_dropped_once();
}

pub(crate) fn a_dispatcher_ends_anywhere<C: Fans>() {
    with_every_fuse(|ticks| {
        let book = Book::new(2 * JOBS);
        let (dispatcher, workers) = build::<C, _>(RoundRobin::new());
        let mut hand = Vec::new();
        let blown = thread::scope(|scope| {
            for worker in workers {
                scope.spawn(|| {
                    let mut worker = worker;
                    work::<C>(&mut worker);
                });
            }
            burn(ticks, || {
                let mut dispatcher = dispatcher;
                dispatch::<C, _>(&mut dispatcher, &book, &mut hand);
                tick();
            })
            .is_none()
        });
        hand.iter().for_each(Item::note);
        drop(hand);
        assert_all_done(&book, usize::from(blown));
        blown
    });
}

pub(crate) fn a_dispatcher_goes_on_after_a_panic_anywhere<C: Fans>() {
    with_every_fuse(|ticks| {
        let book = Book::new(3 * JOBS);
        let (mut dispatcher, workers) = build::<C, _>(by_key());
        let blown = thread::scope(|scope| {
            for worker in workers {
                scope.spawn(|| {
                    let mut worker = worker;
                    work::<C>(&mut worker);
                });
            }
            let mut hand = Vec::new();
            let blown = burn(ticks, || dispatch::<C, _>(&mut dispatcher, &book, &mut hand)).is_none();
            dispatch::<C, _>(&mut dispatcher, &book, &mut hand);
            dispatcher.join().expect("no worker has panicked");
            blown
        });
        assert_all_done(&book, usize::from(blown));
        blown
    });
}

pub(crate) fn a_worker_ends_anywhere<C: Fans>() {
    for runs in [false, true] {
        with_every_fuse(|ticks| {
            let book = Book::new(2 * JOBS);
            let (mut dispatcher, mut workers) = build::<C, _>(RoundRobin::new());
            let blown = thread::scope(|scope| {
                let mut other = workers.pop().expect("there are two");
                scope.spawn(move || work::<C>(&mut other));
                let worker = workers.pop().expect("there are two");
                let victim = scope.spawn(move || {
                    if runs {
                        // The panic is the dispatcher's to hear of, and does not come here, as long as there is a
                        // dispatcher.
                        let done = burn(ticks, || worker.run(|worker| work::<C>(worker)));
                        done.is_none_or(|done| done.is_none())
                    } else {
                        burn(ticks, || {
                            let mut worker = worker;
                            work::<C>(&mut worker);
                        })
                        .is_none()
                    }
                });
                dispatch::<C, _>(&mut dispatcher, &book, &mut Vec::new());
                let undone = match dispatcher.join() {
                    Ok(()) => Vec::new(),
                    Err(unfinished) => unfinished.undone,
                };
                undone.iter().for_each(Item::note);
                drop(undone);
                victim.join().unwrap()
            });
            assert_all_done(&book, 0);
            blown
        });
    }
}
