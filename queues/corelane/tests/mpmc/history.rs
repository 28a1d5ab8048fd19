//! Recorded histories, judged by a checker of linearizability.
//!
//! A few threads make a few random calls each; every call and every answer takes a number from one clock. The checker
//! looks for an order of the calls in which each takes effect between its two numbers and the answers are those of a
//! queue. `Busy` claims nothing and is left out. A batch that is made in one step is one call, with all its items at
//! one moment, which is more than is promised.

use crate::case::{Ends, Random, Rx, Shared, Tx, channel_with};
use crate::histories::{self, Clock, Event};
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::wait::Adaptive;
use std::collections::VecDeque;
use std::time::Duration;
use todc_utils::Specification;

const THREADS: usize = 3;
const CALLS: usize = 6;
const HISTORIES: usize = 500;
/// Items in a batch, at most.
const LARGEST: usize = 3;

/// A call and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    Push(Vec<u64>),
    /// With this many items at most in the middle of other threads' calls, which may take room, too.
    Full(usize),
    PushClosed,
    Pop(Vec<u64>),
    Empty,
    /// Nothing to pop, closed or not.
    Nothing,
    PopClosed,
    Close,
    IsClosed(bool),
    /// One of a thread's calls, or of the single calls that a batch is made of, which come in this order.
    Part(usize, usize, Box<Self>),
}

/// A queue of at most `BOUND` items.
struct Fifo<const BOUND: usize>;

/// No bound.
const NONE: usize = usize::MAX;

impl<const BOUND: usize> Specification for Fifo<BOUND> {
    /// With the next part of each thread.
    type State = (VecDeque<u64>, bool, [usize; THREADS]);
    type Operation = Call;

    fn init() -> Self::State {
        (VecDeque::new(), false, [0; THREADS])
    }

    fn apply(call: &Call, state: &Self::State) -> (bool, Self::State) {
        let (items, closed, parts) = state;
        let mut next = state.clone();
        // A batch that does nothing says why: it does not succeed.
        let holds = match call {
            Call::Push(pushed) => {
                next.0.extend(pushed);
                !pushed.is_empty() && !closed && next.0.len() <= BOUND
            }
            Call::Full(midway) => !closed && items.len() + midway >= BOUND,
            Call::PushClosed => *closed,
            Call::Pop(popped) => !popped.is_empty() && popped.iter().all(|&item| next.0.pop_front() == Some(item)),
            Call::Empty => !closed && items.is_empty(),
            Call::Nothing => items.is_empty(),
            Call::PopClosed => *closed && items.is_empty(),
            Call::Close => {
                next.1 = true;
                true
            }
            Call::IsClosed(answer) => answer == closed,
            Call::Part(thread, number, call) => {
                let (holds, mut next) = Self::apply(call, state);
                next.2[*thread] += 1;
                return (holds && parts[*thread] == *number, if holds { next } else { state.clone() });
            }
        };
        if holds { (true, next) } else { (false, state.clone()) }
    }
}

/// What a thread may do.
#[derive(Clone, Copy)]
struct Mix {
    batches: bool,
    waits: bool,
}

/// One call, chosen at random, and what it answered; none if that was `Busy`, or a wait in vain.
fn call<C: Shared>(
    (tx, rx): &mut Ends<C, u64, Adaptive>,
    random: &mut Random,
    mix: Mix,
    next: &mut u64,
) -> Option<Call> {
    const MOMENT: Duration = Duration::from_micros(1);
    let kinds = if mix.batches { 4 } else { 2 };
    if random.below(40) == 0 {
        tx.close();
        return Some(Call::Close);
    }
    if random.below(20) == 0 {
        return Some(Call::IsClosed(rx.is_closed()));
    }
    match random.below(kinds) {
        0 => {
            *next += 1;
            let item = *next;
            let outcome = if mix.waits {
                tx.push_timeout(item, MOMENT).map_err(|error| match error {
                    PushTimeoutError::Timeout(item) => TryPushError::Busy(item),
                    PushTimeoutError::Closed(item) => TryPushError::Closed(item),
                    error => panic!("{error}"),
                })
            } else {
                tx.try_push(item)
            };
            match outcome {
                Ok(()) => Some(Call::Push(vec![item])),
                Err(TryPushError::Full(_)) => Some(Call::Full(0)),
                Err(TryPushError::Closed(_)) => Some(Call::PushClosed),
                Err(TryPushError::Busy(_)) => None,
                Err(error) => panic!("{error}"),
            }
        }
        1 => {
            let outcome = if mix.waits {
                rx.pop_timeout(MOMENT).map_err(|error| match error {
                    PopTimeoutError::Timeout => TryPopError::Busy,
                    PopTimeoutError::Closed => TryPopError::Closed,
                    error => panic!("{error}"),
                })
            } else {
                rx.try_pop()
            };
            match outcome {
                Ok(item) => Some(Call::Pop(vec![item])),
                Err(TryPopError::Empty) => Some(Call::Empty),
                Err(TryPopError::Closed) => Some(Call::PopClosed),
                Err(TryPopError::Busy) => None,
                Err(error) => panic!("{error}"),
            }
        }
        2 => {
            let count = 1 + random.below(LARGEST) as u64;
            let items: Vec<_> = (*next + 1..=*next + count).collect();
            *next += count;
            let mut batch = items.clone();
            match tx.try_push_batch(&mut batch) {
                Ok(pushed) => Some(Call::Push(items[..pushed].to_vec())),
                Err(TryPushError::Full(())) => Some(Call::Full(0)),
                Err(TryPushError::Closed(())) => Some(Call::PushClosed),
                Err(TryPushError::Busy(())) => None,
                Err(error) => panic!("{error}"),
            }
        }
        _ => {
            let mut items = Vec::new();
            match rx.try_pop_batch(&mut items, 1 + random.below(LARGEST)) {
                Ok(_) => Some(Call::Pop(items)),
                Err(TryPopError::Empty) => Some(Call::Empty),
                Err(TryPopError::Closed) => Some(Call::PopClosed),
                Err(TryPopError::Busy) => None,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Batches as what they are promised to be, sequences of single calls.
fn parts(events: Vec<Vec<Event<Call>>>) -> Vec<Vec<Event<Call>>> {
    let singles = |call: Call| match call {
        Call::Push(items) => items.into_iter().map(|item| Call::Push(vec![item])).collect(),
        Call::Pop(items) => items.into_iter().map(|item| Call::Pop(vec![item])).collect(),
        call => vec![call],
    };
    let of_thread = |(thread, events): (usize, Vec<Event<Call>>)| {
        let calls = events
            .into_iter()
            .flat_map(|(begin, end, call)| singles(call).into_iter().map(move |call| (begin, end, call)));
        (0..)
            .zip(calls)
            .map(|(number, (begin, end, call))| (begin, end, Call::Part(thread, number, call.into())))
            .collect()
    };
    (0..).zip(events).map(of_thread).collect()
}

/// The calls that concern the lane of this thread. Items have the numbers of their threads, in thousands. That a pop
/// finds nothing in one lane says nothing of a close: there may be items in others. Nor does a queue that is not closed
/// yet: its close goes from lane to lane.
fn of_lane(lane: usize, events: &Histories) -> Vec<Vec<Event<Call>>> {
    let concerning = |thread: usize, call: &Call| match call {
        Call::Push(_) | Call::Full(_) | Call::PushClosed => (thread == lane).then(|| call.clone()),
        Call::Pop(items) => {
            let own: Vec<_> = items.iter().copied().filter(|item| *item as usize / 1000 == lane).collect();
            (!own.is_empty()).then_some(Call::Pop(own))
        }
        Call::Empty => Some(Call::Nothing),
        Call::IsClosed(false) => None,
        call => Some(call.clone()),
    };
    let of_thread = |(thread, events): (usize, &Vec<Event<Call>>)| {
        events.iter().filter_map(|(begin, end, call)| Some((*begin, *end, concerning(thread, call)?))).collect()
    };
    events.iter().enumerate().map(of_thread).collect()
}

type Histories = [Vec<Event<Call>>];

/// The calls that claim something. A `Full` is told how many items may be in the middle of the other threads' calls, if
/// those are so large and it may be early.
fn claims(calls: &[Vec<Event<Option<Call>>>], largest: usize) -> Vec<Vec<Event<Call>>> {
    let midway = |thread: usize, begin, end| {
        let others = calls.iter().enumerate().filter(|&(other, _)| other != thread).flat_map(|(_, calls)| calls);
        others.filter(|&&(from, to, _)| from < end && begin < to).count() * largest
    };
    let claim = |thread, &(begin, end, ref call): &Event<Option<Call>>| {
        let call = call.clone()?;
        Some((begin, end, if call == Call::Full(0) { Call::Full(midway(thread, begin, end)) } else { call }))
    };
    (0..).zip(calls).map(|(thread, calls)| calls.iter().filter_map(|call| claim(thread, call)).collect()).collect()
}

fn is_linearizable<const BOUND: usize>(histories: &Histories) -> bool {
    histories::is_linearizable::<Fifo<BOUND>>(histories.iter().flatten().cloned())
}

/// A few calls of one thread.
fn record<C: Shared>(
    ends: &mut Ends<C, u64, Adaptive>,
    random: &mut Random,
    mix: Mix,
    thread: usize,
    clock: &Clock,
) -> Vec<Event<Option<Call>>> {
    let mut events = Vec::with_capacity(CALLS);
    let mut next = 1000 * thread as u64;
    for _ in 0..CALLS {
        events.push(clock.time(|| call::<C>(ends, random, mix, &mut next)));
        (0..random.below(30)).for_each(|_| std::hint::spin_loop());
    }
    events
}

fn histories<C: Shared, const BOUND: usize>(mix: Mix) {
    let capacity = if BOUND == NONE { 2 } else { BOUND };
    let mut randoms: [_; THREADS] = std::array::from_fn(|thread| Random::new(1 + thread as u64));
    for round in 0..HISTORIES {
        let start = [0, usize::MAX - 3][round % 2];
        let (tx, rx) = channel_with::<C, u64, _>(capacity, start, Adaptive);
        let mut ends: [_; THREADS] = std::array::from_fn(|_| (tx.clone(), rx.clone()));
        drop((tx, rx));
        let clock = Clock::default();
        let recorders = randoms.iter_mut().zip(&mut ends).enumerate().map(|(i, (random, ends))| {
            let clock = &clock;
            move || record::<C>(ends, random, mix, i, clock)
        });
        let calls = histories::record(recorders);
        let events = claims(&calls, usize::from(C::BY_PLACES) * LARGEST);
        let histories = match C::LANES {
            true => (0..THREADS).map(|lane| parts(of_lane(lane, &events))).collect(),
            false => vec![if C::BY_PLACES { parts(events) } else { events }],
        };
        for events in histories {
            assert!(is_linearizable::<BOUND>(&events), "begin, end, call and answer, by thread: {events:#?}");
        }
    }
    println!("{HISTORIES} histories judged");
}

fn both<C: Shared>(mix: Mix) {
    if C::BOUNDED {
        histories::<C, 1>(mix);
        histories::<C, 2>(mix);
    } else {
        histories::<C, NONE>(mix);
    }
}

pub(crate) fn single_calls_are_linearizable<C: Shared>() {
    both::<C>(Mix { batches: false, waits: false });
}

pub(crate) fn batches_are_linearizable<C: Shared>() {
    both::<C>(Mix { batches: true, waits: false });
}

pub(crate) fn waiting_calls_are_linearizable<C: Shared>() {
    both::<C>(Mix { batches: true, waits: true });
}

/// The checker itself: what no queue may do is found.
#[test]
fn the_checker_refuses_what_is_wrong() {
    use Call::{Close, Empty, Full, IsClosed, Nothing, Pop, PopClosed, Push, PushClosed};
    let full = || Full(0);
    let sequence = |calls: &[Call]| {
        vec![calls.iter().enumerate().map(|(i, call)| (2 * i, 2 * i + 1, call.clone())).collect::<Vec<_>>()]
    };
    let push = |items: &[u64]| Push(items.to_vec());
    let pop = |items: &[u64]| Pop(items.to_vec());
    for right in [
        &[push(&[1]), push(&[2]), full(), pop(&[1, 2]), Empty][..],
        &[push(&[1, 2]), pop(&[1]), Close, PushClosed, pop(&[2]), PopClosed, IsClosed(true), Nothing],
    ] {
        assert!(is_linearizable::<2>(&sequence(right)), "{right:?}");
    }
    for wrong in [
        &[push(&[1]), push(&[2]), pop(&[2])][..],
        &[push(&[1]), full()],
        &[push(&[1]), Empty],
        &[push(&[1]), Nothing],
        &[push(&[1]), pop(&[1]), pop(&[1])],
        &[push(&[1]), Close, PopClosed],
        &[push(&[1, 2, 3])],
        &[push(&[])],
        &[push(&[1, 2]), push(&[])],
        &[pop(&[])],
        &[push(&[1]), pop(&[])],
        &[Close, push(&[1])],
        &[IsClosed(true)],
        &[PushClosed],
    ] {
        assert!(!is_linearizable::<2>(&sequence(wrong)), "{wrong:?}");
    }
    // Beside another call Full may be early, where that is allowed.
    let beside = |largest| claims(&[vec![(0, 3, Some(push(&[1])))], vec![(1, 2, Some(full()))]], largest);
    assert!(!is_linearizable::<3>(&beside(1)) && is_linearizable::<3>(&beside(2)));
    // The first push of two has begun and not ended, the second one has ended: Empty is wrong, see `ticket.rs`.
    let stopped = |answer| vec![vec![(0, 9, push(&[1]))], vec![(1, 2, push(&[2]))], vec![(3, 4, answer)]];
    assert!(!is_linearizable::<NONE>(&stopped(Empty)));
    assert!(is_linearizable::<NONE>(&stopped(pop(&[2]))));
    // By lanes: each thread's items in their order, what others find, and a batch of two lanes.
    let lanes = |popped: [u64; 2]| {
        let pushes = |from| (0..2).map(|i| (2 * i, 2 * i + 1, push(&[from + i as u64]))).collect::<Vec<_>>();
        let events = [pushes(0), pushes(1000), vec![(4, 5, pop(&[1000])), (6, 7, pop(&popped)), (8, 9, Empty)]];
        [0, 1].map(|lane| is_linearizable::<2>(&parts(of_lane(lane, &events))))
    };
    assert_eq!((lanes([0, 1001]), lanes([1, 1001]), lanes([0, 1])), ([false, true], [false, true], [true, false]));
}
