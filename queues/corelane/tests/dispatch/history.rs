//! Recorded histories of a dispatcher and its workers, judged by a checker of linearizability.
//!
//! A worker's queue is first-in first-out, of its own, and which one a job went to is known from which worker took it.
//! So the dispatcher's calls are steps at those queues: a job enters one of them, in the order of the jobs; `Full` has
//! found each of them full, one after the other, and the dispatcher's end closes them one after the other. `Full`
//! counts what the dispatcher has put there, seen by the worker or not: a publication is a store and the look for room
//! a load, with no fence in between. No worker leaves here: a job that comes back stands in two queues in turn, and it
//! cannot be told which the first was. That each job is taken once then, and in which order, is what
//! [`membership`](crate::membership), [`accounting`](crate::accounting) and [`sequences`](crate::sequences) say.

use crate::histories::{Clock, Event, is_linearizable, record};
use crate::random::Random;
use crate::{Case, Rx, Tx, build};
use corelane::dispatch::{Builder, RoundRobin};
use corelane::error::{DispatchError, PopTimeoutError, TryPopError};
use std::collections::HashMap;
use std::thread;
use std::time::Duration;
use todc_utils::Specification;

const WORKERS: usize = 2;
const CALLS: usize = 7;
const HISTORIES: usize = 120;
const MOMENT: Duration = Duration::from_micros(1);

/// A call and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    /// These jobs, in this order.
    Dispatched(Vec<u64>),
    /// After so many jobs in all.
    Full(u64),
    /// By this worker.
    Taken(usize, Vec<u64>),
    Empty(usize),
    Backlog(usize, usize),
    IsClosed(usize, bool),
    Closed(usize),
    /// The dispatcher is.
    Gone,
}

#[derive(Clone, Debug)]
enum Step {
    /// Before all others: how many jobs a queue holds.
    Start(usize),
    Dispatch(usize, u64),
    /// After so many jobs for this worker in all, visible or not.
    Full(usize, usize),
    Take(usize, u64),
    Empty(usize),
    Backlog(usize, usize),
    IsClosed(usize, bool),
    Closed(usize),
    Gone(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    bound: usize,
    queues: [Vec<u64>; WORKERS],
    /// How many jobs have left each queue.
    taken: [usize; WORKERS],
    /// The next job.
    next: u64,
    /// By queue: the dispatcher is, as far as its worker can tell.
    gone: [bool; WORKERS],
}

struct Workers;

impl Specification for Workers {
    type State = State;
    type Operation = Step;

    fn init() -> State {
        State::default()
    }

    fn apply(step: &Step, state: &State) -> (bool, State) {
        let mut next = state.clone();
        let holds = match *step {
            Step::Start(bound) => {
                next.bound = bound;
                *state == State::default()
            }
            Step::Dispatch(worker, job) => {
                next.queues[worker].push(job);
                next.next += 1;
                job == state.next && !state.gone[worker] && next.queues[worker].len() <= state.bound
            }
            Step::Full(worker, total) => total.checked_sub(state.taken[worker]) == Some(state.bound),
            Step::Take(worker, job) => {
                let is_first = state.queues[worker].first() == Some(&job);
                next.queues[worker].drain(..usize::from(is_first));
                next.taken[worker] += 1;
                is_first
            }
            Step::Empty(worker) => state.queues[worker].is_empty() && !state.gone[worker],
            Step::Closed(worker) => state.queues[worker].is_empty() && state.gone[worker],
            Step::Backlog(worker, count) => count <= state.queues[worker].len(),
            Step::IsClosed(worker, answer) => answer == state.gone[worker],
            Step::Gone(worker) => {
                next.gone[worker] = true;
                !state.gone[worker]
            }
        };
        if holds { (true, next) } else { (false, state.clone()) }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    Doubled(u64),
    Lost(u64),
    Order,
}

/// Of calls after the first two moments.
fn judge(bound: usize, events: &[Event<Call>]) -> Result<(), Wrong> {
    let mut takers = HashMap::new();
    for (_, _, call) in events {
        let Call::Taken(worker, jobs) = call else { continue };
        for &job in jobs {
            if takers.insert(job, *worker).is_some() {
                return Err(Wrong::Doubled(job));
            }
        }
    }
    let mut steps = vec![(0, 1, Step::Start(bound))];
    for &(begin, end, ref call) in events {
        let mut step = |step| steps.push((begin, end, step));
        match *call {
            Call::Dispatched(ref jobs) => {
                for &job in jobs {
                    step(Step::Dispatch(*takers.get(&job).ok_or(Wrong::Lost(job))?, job));
                }
            }
            Call::Full(after) => {
                for worker in 0..WORKERS {
                    let total = takers.iter().filter(|&(&job, &taker)| job < after && taker == worker).count();
                    step(Step::Full(worker, total));
                }
            }
            Call::Taken(worker, ref jobs) => jobs.iter().for_each(|&job| step(Step::Take(worker, job))),
            Call::Empty(worker) => step(Step::Empty(worker)),
            Call::Backlog(worker, count) => step(Step::Backlog(worker, count)),
            Call::IsClosed(worker, answer) => step(Step::IsClosed(worker, answer)),
            Call::Closed(worker) => step(Step::Closed(worker)),
            Call::Gone => (0..WORKERS).for_each(|worker| step(Step::Gone(worker))),
        }
    }
    if is_linearizable::<Workers>(steps) { Ok(()) } else { Err(Wrong::Order) }
}

/// One call of the dispatcher, which has dispatched `next` jobs, chosen at random.
fn dispatch<C: Case>(
    dispatcher: &mut Tx<u64, C, RoundRobin>,
    random: &mut Random,
    next: &mut u64,
    clock: &Clock,
) -> Vec<Event<Call>> {
    let job = *next;
    let jobs: Vec<_> = (job..job + 1 + random.below(4) as u64).collect();
    let (begin, end, (sent, full)) = match random.below(8) {
        0 => clock.time(|| {
            dispatcher.dispatch_batch(&mut jobs.clone()).unwrap();
            (jobs.len(), false)
        }),
        1 => clock.time(|| {
            dispatcher.dispatch(job).unwrap();
            (1, false)
        }),
        2 => clock.time(|| match dispatcher.dispatch_timeout(job, MOMENT) {
            Ok(()) => (1, false),
            Err(error) => {
                assert_eq!(error, DispatchError::Timeout(job));
                (0, true)
            }
        }),
        3..5 => {
            let (begin, end, sent) = clock.time(|| dispatcher.try_dispatch_slice(&jobs).unwrap_or(0));
            (begin, end, (sent, sent < jobs.len()))
        }
        _ => clock.time(|| match dispatcher.try_dispatch(job) {
            Ok(()) => (1, false),
            Err(error) => {
                assert_eq!(error, DispatchError::Full(job));
                (0, true)
            }
        }),
    };
    *next += sent as u64;
    let dispatched = (begin, end, Call::Dispatched((job..*next).collect()));
    [dispatched].into_iter().chain(full.then_some((begin, end, Call::Full(*next)))).collect()
}

/// One call of a worker, chosen at random. None if it waited in vain.
fn work<C: Case>(worker: &mut Rx<u64, C>, random: &mut Random, clock: &Clock) -> Option<Event<Call>> {
    let number = worker.number();
    let most = 1 + random.below(4);
    let mut jobs = Vec::with_capacity(most);
    let one = |job| Call::Taken(number, vec![job]);
    let (begin, end, call) = match random.below(12) {
        0 => clock.time(|| Some(Call::IsClosed(number, worker.is_closed()))),
        1..3 => clock.time(|| Some(Call::Backlog(number, worker.backlog()))),
        3 => clock.time(|| worker.pop_batch(&mut jobs, most).map_or(Some(Call::Closed(number)), |_| None)),
        4 => clock.time(|| worker.pop_each(most, |job| jobs.push(job)).map_or(Some(Call::Closed(number)), |_| None)),
        5 => clock.time(|| match worker.pop_timeout(MOMENT) {
            Ok(job) => Some(one(job)),
            Err(PopTimeoutError::Closed) => Some(Call::Closed(number)),
            Err(_) => None,
        }),
        _ => clock.time(|| match worker.try_pop() {
            Ok(job) => Some(one(job)),
            Err(TryPopError::Empty) => Some(Call::Empty(number)),
            Err(_) => Some(Call::Closed(number)),
        }),
    };
    let taken = (!jobs.is_empty()).then_some(Call::Taken(number, jobs));
    taken.or(call).map(|call| (begin, end, call))
}

fn histories<C: Case>(is_bounded: bool) {
    for round in 0..HISTORIES {
        let capacity = 1 + round % 3;
        let bound = if is_bounded { capacity } else { usize::MAX };
        let builder = Builder::new(WORKERS).capacity(capacity).batch(1 + round / 3 % 3).route(RoundRobin::new());
        let (mut dispatcher, workers) = build::<C, u64, _, _>(builder);
        let clock = &Clock::default();
        let (_, _, mut events) = clock.time(Vec::new);
        let seed = (1 + round * (1 + WORKERS)) as u64;
        let mut recorders: Vec<Box<dyn FnOnce() -> Vec<Event<Call>> + Send + '_>> = Vec::new();
        for (seed, mut worker) in (seed..).zip(workers) {
            recorders.push(Box::new(move || {
                let mut random = Random::new(seed);
                let mut events = Vec::new();
                // Until all is done, so that a dispatcher that waits for room gets it.
                while !matches!(events.last(), Some((_, _, Call::Closed(_)))) {
                    events.extend(work::<C>(&mut worker, &mut random, clock));
                    // Of much that finds nothing a little is enough.
                    if events.len() > 4 * CALLS && matches!(events.last(), Some((_, _, Call::Empty(_)))) {
                        events.pop();
                        thread::yield_now();
                    }
                    random.spin(60);
                }
                events
            }));
        }
        recorders.push(Box::new(move || {
            let (mut random, mut next, mut events) = (Random::new(seed + WORKERS as u64), 0, Vec::new());
            for _ in 0..CALLS {
                events.extend(dispatch::<C>(&mut dispatcher, &mut random, &mut next, clock));
                random.pause();
            }
            let (begin, end, ()) = clock.time(|| drop(dispatcher));
            events.push((begin, end, Call::Gone));
            events
        }));
        events.extend(record(recorders).concat());
        assert_eq!(judge(bound, &events), Ok(()), "begin, end, call and answer: {events:#?}");
    }
    println!("{HISTORIES} histories judged");
}

pub(crate) fn histories_are_linearizable<C: Case>() {
    histories::<C>(true);
}

pub(crate) fn histories_without_a_bound_are_linearizable<C: Case>() {
    histories::<C>(false);
}

/// The judge itself: what no fan-out may do is found.
#[test]
fn the_judge_refuses_what_is_wrong() {
    use Call::{Backlog, Closed, Dispatched, Empty, Full, Gone, IsClosed, Taken};
    let verdict = |calls: &[Call]| {
        let events: Vec<_> = calls.iter().enumerate().map(|(i, call)| (2 * i + 2, 2 * i + 3, call.clone())).collect();
        judge(2, &events)
    };
    let dispatched = |jobs: &[u64]| Dispatched(jobs.to_vec());
    let taken = |worker, jobs: &[u64]| Taken(worker, jobs.to_vec());
    for right in [
        &[dispatched(&[0, 1, 2, 3]), Full(4), taken(1, &[2, 3]), taken(0, &[0, 1]), Empty(0)][..],
        &[dispatched(&[0]), Backlog(1, 1), Gone, IsClosed(1, true), Closed(0), taken(1, &[0]), Closed(1)],
    ] {
        assert_eq!(verdict(right), Ok(()), "{right:?}");
    }
    assert_eq!(verdict(&[dispatched(&[0])]), Err(Wrong::Lost(0)));
    assert_eq!(verdict(&[dispatched(&[0]), taken(0, &[0]), taken(1, &[0])]), Err(Wrong::Doubled(0)));
    for wrong in [
        &[taken(0, &[0]), dispatched(&[0])][..],
        &[dispatched(&[0, 1]), taken(0, &[1]), taken(0, &[0])],
        &[dispatched(&[0]), Empty(0), taken(0, &[0])],
        &[dispatched(&[0, 1]), Full(2), taken(0, &[0, 1])],
        &[dispatched(&[0, 1, 2]), Full(3), taken(0, &[0, 1]), taken(1, &[2])],
        &[dispatched(&[0, 1, 2, 3]), taken(0, &[0]), Full(4), taken(0, &[1]), taken(1, &[2, 3])],
        &[dispatched(&[0, 1, 2]), Full(3), dispatched(&[3]), taken(0, &[0, 1]), taken(1, &[2, 3])],
        &[dispatched(&[0, 1, 2]), taken(0, &[0, 1, 2])],
        &[dispatched(&[0]), Backlog(0, 2), taken(0, &[0])],
        &[dispatched(&[0]), Gone, Closed(0), taken(0, &[0])],
        &[Gone, dispatched(&[0]), taken(0, &[0])],
        &[Gone, Empty(0)],
        &[IsClosed(0, true)],
    ] {
        assert_eq!(verdict(wrong), Err(Wrong::Order), "{wrong:?}");
    }
    // A batch is refused for its own job, which is still in the store buffer: its worker finds nothing, and sees the
    // job later. But room that there was before the batch began is found.
    let early = |one_taken: usize| {
        judge(
            2,
            &[
                (2, 3, dispatched(&[0, 1, 2])),
                (6, 13, dispatched(&[3])),
                (6, 13, Full(4)),
                (one_taken, one_taken + 1, taken(1, &[2])),
                (9, 10, Empty(1)),
                (14, 15, taken(1, &[3])),
                (16, 17, taken(0, &[0, 1])),
            ],
        )
    };
    assert_eq!((early(7), early(4)), (Ok(()), Err(Wrong::Order)));
}
