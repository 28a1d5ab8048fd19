//! Random sequences of calls of one thread, which is the dispatcher and all workers: jobs go where there is room, come
//! back from workers that leave or panic, and are taken in their order, as lists of them would say. Which worker a job
//! goes to is the route's business; here it is seen from the backlogs.

use crate::sequences_judge::judge;
use crate::{Case, Rx, Tx, build, drain};
use corelane::dispatch::{Builder, LeastLoaded, RoundRobin, Route};
use corelane::error::{DispatchError, TryPopError};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::VecDeque;
use std::panic::resume_unwind;

const SEQUENCES: u32 = 200;
const MOST_WORKERS: usize = 4;

#[derive(Clone, Copy, Debug)]
enum Call {
    Dispatch,
    DispatchSlice(usize),
    Flush,
    TakeReturned,
    TakePanic,
    /// A worker joins.
    Join,
    /// What the worker at this place does, if there is one.
    Pop(Index),
    Take(Index, usize),
    Drain(Index, usize),
    Leave(Index),
    Drop(Index),
    Panic(Index),
}

fn call() -> impl Strategy<Value = Call> {
    let worker = any::<Index>;
    prop_oneof![
        40 => Just(Call::Dispatch),
        10 => (0..6_usize).prop_map(Call::DispatchSlice),
        5 => Just(Call::Flush),
        2 => Just(Call::TakeReturned),
        4 => Just(Call::TakePanic),
        8 => Just(Call::Join),
        15 => worker().prop_map(Call::Pop),
        5 => (worker(), 1..5_usize).prop_map(|(worker, most)| Call::Take(worker, most)),
        5 => (worker(), 1..5_usize).prop_map(|(worker, most)| Call::Drain(worker, most)),
        2 => worker().prop_map(Call::Leave),
        2 => worker().prop_map(Call::Drop),
        2 => worker().prop_map(Call::Panic),
    ]
}

/// A worker as the dispatcher sees it.
struct Line {
    number: usize,
    jobs: VecDeque<u64>,
    /// It has left, by a panic or not, and the dispatcher has not heard of it.
    left: Option<bool>,
}

struct Run<C: Case, R: Route<u64>> {
    dispatcher: Tx<u64, C, R>,
    workers: Vec<Rx<u64, C>>,
    capacity: usize,
    lines: Vec<Line>,
    /// Jobs that came back, the first to go out again in front.
    returned: VecDeque<u64>,
    panics: VecDeque<usize>,
    joined: usize,
    next: u64,
}

impl<C: Case, R: Route<u64>> Run<C, R> {
    fn line(&mut self, at: usize) -> &mut Line {
        let number = self.workers[at].number();
        self.lines.iter_mut().find(|line| line.number == number).expect("it has not left")
    }

    fn joins(&mut self) {
        self.lines.push(Line { number: self.joined, jobs: VecDeque::new(), left: None });
        self.joined += 1;
    }

    /// The dispatcher hears of those that have left.
    fn hear(&mut self) {
        let mut back = VecDeque::new();
        self.lines.retain_mut(|line| {
            let Some(panicked) = line.left else { return true };
            back.append(&mut line.jobs);
            self.panics.extend(panicked.then_some(line.number));
            false
        });
        back.append(&mut self.returned);
        self.returned = back;
    }

    /// The call sends out what has come back, and then these jobs, as long as there is room. Says how many of these,
    /// and why not all.
    fn send(&mut self, jobs: &[u64]) -> (usize, Option<DispatchError<()>>) {
        self.hear();
        if !self.panics.is_empty() {
            return (0, Some(DispatchError::Panicked(())));
        }
        if self.lines.is_empty() {
            return (0, Some(DispatchError::NoWorker(())));
        }
        let inside: usize = self.lines.iter().map(|line| line.jobs.len()).sum();
        let room = (self.lines.len().saturating_mul(self.capacity)).saturating_sub(inside);
        let back = self.returned.len();
        let mut out: Vec<_> = self.returned.iter().chain(jobs).copied().collect();
        let full = (out.len() > room).then_some(DispatchError::Full(()));
        out.truncate(room);
        self.returned.drain(..back.min(out.len()));
        self.find(&out);
        (out.len().saturating_sub(back), full)
    }

    /// Finds where these jobs have gone: by the backlogs if that is one place, by taking all jobs if they are several.
    fn find(&mut self, out: &[u64]) {
        let more =
            |line: &Line, worker: &mut Rx<u64, C>| worker.backlog().checked_sub(line.jobs.len()).expect("none is lost");
        let mut risen = Vec::new();
        for worker in &mut self.workers {
            let line = self.lines.iter().position(|line| line.number == worker.number()).expect("all are heard of");
            let more = more(&self.lines[line], worker);
            risen.extend((more > 0).then_some((line, more)));
        }
        assert_eq!(risen.iter().map(|(_, more)| more).sum::<usize>(), out.len());
        if let [(line, _)] = risen[..] {
            self.lines[line].jobs.extend(out);
        } else if !risen.is_empty() {
            let mut found = Vec::new();
            for worker in &mut self.workers {
                let line = self.lines.iter_mut().find(|line| line.number == worker.number()).expect("all are heard of");
                let mut jobs = drain::<u64, C, _>(worker);
                let new = jobs.split_off(line.jobs.len());
                assert_eq!(line.jobs, jobs);
                // In the order in which they went out.
                let mut order = out.iter();
                assert!(new.iter().all(|job| order.any(|other| other == job)), "{new:?} of {out:?}");
                line.jobs.clear();
                found.extend(new);
            }
            found.sort_unstable();
            let mut all = out.to_vec();
            all.sort_unstable();
            assert_eq!(found, all);
        }
    }

    fn leaves(&mut self, at: usize, panics: bool) -> Rx<u64, C> {
        self.line(at).left = Some(panics);
        self.workers.remove(at)
    }

    fn call(&mut self, call: Call) {
        let job = self.next;
        let worker = |index: Index, workers: &Vec<_>| index.index(workers.len());
        match call {
            Call::Dispatch => {
                self.next += 1;
                let outcome = self.dispatcher.try_dispatch(job);
                let (_, error) = self.send(&[job]);
                let error = error.map(|error| match error {
                    DispatchError::Full(()) => DispatchError::Full(job),
                    DispatchError::NoWorker(()) => DispatchError::NoWorker(job),
                    _ => DispatchError::Panicked(job),
                });
                assert_eq!(outcome.err(), error);
            }
            Call::DispatchSlice(count) => {
                let jobs: Vec<_> = (job..job + count as u64).collect();
                self.next += count as u64;
                let sent = self.dispatcher.try_dispatch_slice(&jobs).unwrap_or(0);
                // Without a job it does not even look.
                let due = if count == 0 { 0 } else { self.send(&jobs).0 };
                assert_eq!(sent, due);
            }
            Call::Flush => {
                let left = self.dispatcher.flush();
                self.send(&[]);
                assert_eq!(left, self.returned.len());
            }
            Call::TakeReturned => {
                let returned = self.dispatcher.take_returned();
                self.hear();
                assert_eq!(std::mem::take(&mut self.returned), returned);
            }
            Call::TakePanic => {
                let panic = self.dispatcher.take_panic().map(|panic| panic.worker());
                self.hear();
                assert_eq!(panic, self.panics.pop_front());
            }
            Call::Join => {
                if self.workers.len() < MOST_WORKERS {
                    let worker = self.dispatcher.add_worker().unwrap();
                    self.hear();
                    assert_eq!(worker.number(), self.joined);
                    self.joins();
                    self.workers.push(worker);
                }
            }
            _ if self.workers.is_empty() => {}
            Call::Pop(index) => {
                let at = worker(index, &self.workers);
                let due = self.line(at).jobs.pop_front();
                assert_eq!(self.workers[at].try_pop(), due.ok_or(TryPopError::Empty));
            }
            Call::Take(index, most) | Call::Drain(index, most) => {
                let at = worker(index, &self.workers);
                let there = most.min(self.line(at).jobs.len());
                if there > 0 {
                    let due: Vec<_> = self.line(at).jobs.drain(..there).collect();
                    let mut jobs = Vec::new();
                    let taken = match call {
                        Call::Take(..) => self.workers[at].pop_batch(&mut jobs, most),
                        _ => self.workers[at].pop_each(most, |job| jobs.push(job)),
                    };
                    assert_eq!((taken, jobs), (Ok(there), due));
                }
            }
            Call::Leave(index) => {
                let worker = self.leaves(worker(index, &self.workers), false);
                assert_eq!(worker.leave(), Ok(()));
            }
            Call::Drop(index) => drop(self.leaves(worker(index, &self.workers), false)),
            Call::Panic(index) => {
                let worker = self.leaves(worker(index, &self.workers), true);
                // Without the message that a panic prints.
                assert_eq!(worker.run(|_| resume_unwind(Box::new("a worker's panic"))), None::<()>);
            }
        }
        assert_eq!(self.dispatcher.workers(), self.lines.len());
        for at in 0..self.workers.len() {
            assert_eq!(self.workers[at].backlog(), self.line(at).jobs.len());
        }
    }

    /// All workers leave, or the dispatcher does.
    fn end(mut self, workers_first: bool) {
        if workers_first {
            while !self.workers.is_empty() {
                drop(self.leaves(0, false));
            }
            // It sends out what it can first, and all have left.
            self.hear();
            let (panics, undone) = match self.dispatcher.join() {
                Ok(()) => (Vec::new(), Vec::new()),
                Err(unfinished) => (unfinished.panics, unfinished.undone),
            };
            assert!(panics.iter().map(|panic| panic.worker()).eq(self.panics));
            assert_eq!(self.returned, undone);
            return;
        }
        drop(self.dispatcher);
        for (at, mut worker) in self.workers.into_iter().enumerate() {
            let line = self.lines.iter_mut().find(|line| line.number == worker.number()).expect("it has not left");
            if at % 2 == 0 {
                // No dispatcher is left to give it to.
                let undone = Vec::from_iter(line.jobs.drain(..));
                assert_eq!(worker.leave(), if undone.is_empty() { Ok(()) } else { Err(undone) });
            } else {
                assert_eq!(line.jobs, drain::<u64, C, _>(&mut worker));
                assert_eq!(worker.try_pop(), Err(TryPopError::Closed));
            }
        }
    }
}

fn sequences<C: Case, R: Route<u64>>(is_bounded: bool, route: impl Fn() -> R) {
    let fan_outs = (0..3_usize, 1..6_usize, 1..5_usize, any::<bool>(), vec(call(), 0..120));
    judge(SEQUENCES, &fan_outs, |(workers, capacity, batch, workers_first, calls)| {
        let builder = Builder::new(workers).capacity(capacity).batch(batch).route(route());
        let (dispatcher, workers) = build::<C, u64, _, _>(builder);
        let capacity = if is_bounded { capacity } else { usize::MAX };
        let (returned, panics) = Default::default();
        let count = workers.len();
        let mut run =
            Run::<C, R> { dispatcher, workers, capacity, lines: Vec::new(), returned, panics, joined: 0, next: 0 };
        (0..count).for_each(|_| run.joins());
        calls.into_iter().for_each(|call| run.call(call));
        run.end(workers_first);
    });
}

pub(crate) fn random_sequences_are_answered_as_by_lists<C: Case>() {
    sequences::<C, _>(true, RoundRobin::new);
}

pub(crate) fn random_sequences_without_a_bound_are_answered_as_by_lists<C: Case>() {
    sequences::<C, _>(false, RoundRobin::new);
}

/// The route is none of the queue's business: over one of them.
#[test]
fn random_sequences_to_the_least_loaded_are_answered_as_by_lists() {
    sequences::<crate::lane::This, _>(true, LeastLoaded::new);
}
