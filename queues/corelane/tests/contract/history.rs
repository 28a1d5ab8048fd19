//! Recorded histories of both ends, judged by a checker of linearizability, see [`one_to_one`](crate::one_to_one).

use crate::case::{Case, Random, Rx, Tx, queue_from};
use crate::histories::{Clock, Event, is_linearizable};
use crate::one_to_one::{OneToOne, Step, judge};
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use std::time::Duration;

const HISTORIES: usize = 120;
/// The smallest ones, and one that says `Full` early.
const BOUNDS: [usize; 4] = [1, 2, 5, 70];

/// More than a line of the lane has room for.
const MOST: usize = 9;
const MOMENT: Duration = Duration::from_micros(1);

/// A batch that was to be so long.
fn pushed(next: &mut u64, asked: usize, done: usize) -> Vec<Step> {
    let from = *next;
    *next += done as u64;
    let ended = (done < asked).then_some(Step::Refused(*next));
    (from..*next).map(Step::Push).chain(ended).collect()
}

/// One call of the producer, which has pushed `next` items, chosen at random.
fn produce<C: Case>(tx: &mut Tx<u64, C>, random: &mut Random, next: &mut u64, clock: &Clock) -> Event<Vec<Step>> {
    let item = *next;
    let asked = 1 + random.below(MOST);
    let items: Vec<_> = (item..item + asked as u64).collect();
    let one = |outcome| match outcome {
        Ok(()) => vec![Step::Push(item)],
        Err(TryPushError::Full(_)) => vec![Step::Full(item)],
        Err(_) => vec![Step::PushClosed],
    };
    let (begin, end, steps) = match random.below(40) {
        0 => clock.time(|| {
            tx.close();
            vec![Step::Close]
        }),
        1..4 => clock.time(|| vec![Step::IsClosed(tx.is_closed())]),
        4..9 => clock.time(|| vec![Step::InsideAtMost(tx.len() as u64)]),
        9..14 => clock.time(|| match tx.push_timeout(item, MOMENT) {
            Err(PushTimeoutError::Closed(item)) => one(Err(TryPushError::Closed(item))),
            Err(_) => vec![],
            Ok(()) => one(Ok(())),
        }),
        14..19 => clock.time(|| match tx.try_reserve() {
            Ok(slot) => one(slot.write(item).map_err(|closed| TryPushError::Closed(closed.0))),
            Err(TryPushError::Full(())) => one(Err(TryPushError::Full(item))),
            Err(_) => one(Err(TryPushError::Closed(item))),
        }),
        19..25 => {
            let (begin, end, done) = clock.time(|| tx.try_push_slice(&items).unwrap_or(0));
            return (begin, end, pushed(next, asked, done));
        }
        25..29 => {
            let (begin, end, done) = clock.time(|| tx.try_push_batch(&mut items.clone()).unwrap_or(0));
            return (begin, end, pushed(next, asked, done));
        }
        _ => clock.time(|| one(tx.try_push(item))),
    };
    *next += u64::from(steps == [Step::Push(item)]);
    (begin, end, steps)
}

/// A batch that was to be so long.
fn popped(next: &mut u64, asked: usize, items: &[u64]) -> Vec<Step> {
    *next += items.len() as u64;
    let ended = (items.len() < asked).then_some(Step::Nothing(*next));
    items.iter().flat_map(|&item| [Step::Take(item), Step::Free(item)]).chain(ended).collect()
}

/// One call of the consumer, which has popped `next` items, chosen at random.
fn consume<C: Case>(rx: &mut Rx<u64, C>, random: &mut Random, next: &mut u64, clock: &Clock) -> Event<Vec<Step>> {
    let first = *next;
    let asked = 1 + random.below(MOST);
    let mut items = Vec::with_capacity(MOST);
    let one = |outcome| match outcome {
        Ok(item) => vec![Step::Pop(item)],
        Err(TryPopError::Empty) => vec![Step::Empty(first)],
        Err(_) => vec![Step::PopClosed],
    };
    let (begin, end, steps) = match random.below(40) {
        0 => clock.time(|| {
            rx.close();
            vec![Step::Close]
        }),
        1..4 => clock.time(|| vec![Step::IsClosed(rx.is_closed())]),
        4..9 => clock.time(|| vec![Step::Inside(rx.len() as u64)]),
        9..14 => clock.time(|| match rx.pop_timeout(MOMENT) {
            Err(PopTimeoutError::Closed) => one(Err(TryPopError::Closed)),
            Err(_) => vec![],
            Ok(item) => one(Ok(item)),
        }),
        14..19 => clock.time(|| match rx.try_peek() {
            Ok(item) => vec![Step::Pop(item.pop())],
            Err(refusal) => one(Err(refusal)),
        }),
        19..25 => {
            let (begin, end, _) = clock.time(|| rx.try_pop_batch(&mut items, asked).unwrap_or(0));
            return (begin, end, popped(next, asked, &items));
        }
        25..29 => {
            let (begin, end, _) = clock.time(|| rx.try_pop_each(asked, |item| items.push(item)).unwrap_or(0));
            return (begin, end, popped(next, asked, &items));
        }
        _ => clock.time(|| one(rx.try_pop())),
    };
    *next += u64::from(matches!(steps[..], [Step::Pop(_)]));
    (begin, end, steps)
}

pub(crate) fn histories_are_linearizable<C: Case>() {
    let mut seeds = Random::new(1);
    for round in 0..HISTORIES * BOUNDS.len() {
        let bound = BOUNDS[round % BOUNDS.len()];
        let (mut tx, mut rx) = queue_from::<u64, C>(bound, [0, usize::MAX - 3][round / BOUNDS.len() % 2]);
        // Nearly empty, or nearly full.
        let few = seeds.below(bound.min(4) + 1) as u64;
        let inside = if seeds.below(2) == 0 { few } else { bound as u64 - few };
        (0..inside).for_each(|item| tx.try_push(item).unwrap());
        let (capacity, lag) = (tx.capacity() as u64, tx.release_lag() as u64);
        // Without a bound the consumer tells what it popped when it likes.
        let late = if capacity == bound as u64 { lag } else { u64::MAX };
        let start = Step::Start { bound: capacity, lag, late, inside };
        let randoms = [(); 2].map(|()| Random::new(seeds.below(1 << 30) as u64));
        judge(start, randoms, (&mut tx, produce::<C>), (&mut rx, consume::<C>), |rx| rx.try_pop().ok());
    }
    println!("{} histories judged", HISTORIES * BOUNDS.len());
}

/// The checker itself: what no queue may do is found.
#[test]
fn the_checker_refuses_what_is_wrong() {
    use Step::{
        Close, Empty, Free, Full, Inside, InsideAtMost, IsClosed, Nothing, Pop, PopClosed, Push, PushClosed, Refused,
        Start, Take,
    };
    let holds = |start: Step, steps: &[Step]| {
        let steps = [start].into_iter().chain(steps.iter().copied()).enumerate();
        is_linearizable::<OneToOne>(steps.map(|(i, step)| (2 * i, 2 * i + 1, step)))
    };
    let empty = Start { bound: 2, lag: 0, late: 0, inside: 0 };
    let early = Start { bound: 70, lag: 8, late: 8, inside: 61 };
    for (start, right) in [
        (empty, &[Empty(0), Push(0), Inside(1), Push(1), Full(2), InsideAtMost(2), Pop(0), Pop(1), Nothing(2)][..]),
        (empty, &[Push(0), IsClosed(false), Close, PushClosed, IsClosed(true), Pop(0), PopClosed]),
        (early, &[InsideAtMost(69), Push(61), Full(62), Push(62), Refused(63), Pop(0)]),
    ] {
        assert!(holds(start, right), "{right:?}");
    }
    for (start, wrong) in [
        (empty, &[Push(0), Push(1), Pop(1)][..]),
        (empty, &[Push(0), Pop(0), Pop(0)]),
        (empty, &[Push(0), Full(1)]),
        (empty, &[Push(0), Refused(1)]),
        (empty, &[Push(0), Push(1), Refused(1)]),
        (empty, &[Push(0), Push(1), Pop(0), Refused(2)]),
        (empty, &[Push(0), Push(1), Take(0), Free(0), Refused(2)]),
        (empty, &[Push(0), Push(1), Push(2)]),
        (empty, &[Push(0), Empty(0)]),
        (empty, &[Push(0), Nothing(0)]),
        (empty, &[Push(0), Close, PopClosed]),
        (empty, &[Close, Push(0)]),
        (empty, &[Close, Empty(0)]),
        (empty, &[PushClosed]),
        (empty, &[IsClosed(true)]),
        (empty, &[Push(0), Inside(0)]),
        (empty, &[Push(0), Free(0)]),
        (empty, &[Push(0), Push(1), Take(0), Push(2)]),
        (empty, &[Push(0), Push(1), Take(0), Free(0), Full(2)]),
        (empty, &[Push(0), InsideAtMost(0)]),
        (empty, &[InsideAtMost(1)]),
        (early, &[Full(61)]),
        (early, &[InsideAtMost(70)]),
    ] {
        assert!(!holds(start, wrong), "{wrong:?}");
    }
    // A batch that found nothing more has not given its slot back yet: so the queue may still be full. Once it has
    // ended it may not.
    let refused = |at| {
        let popped = [(2, 7, Take(0)), (2, 7, Free(0)), (2, 7, Nothing(1))];
        let pushed = [(3, 4, Push(1)), (at, at + 1, Refused(2))];
        let start = [(0, 1, Start { bound: 2, lag: 0, late: 0, inside: 1 })];
        is_linearizable::<OneToOne>(start.into_iter().chain(popped).chain(pushed))
    };
    assert!(refused(5) && !refused(8));
    // A batch counts its own item, which is still in the store buffer, and is refused; the other end sees it later. It
    // counts none that was freed before it began.
    let early = |popped: usize, last: Step| {
        let start = [(0, 1, Start { bound: 2, lag: 0, late: 0, inside: 1 })];
        let pushed = [(4, 11, Push(1)), (4, 11, Refused(2))];
        let others = [(popped, popped + 1, Pop(0)), (7, 8, last), (12, 13, Pop(1))];
        is_linearizable::<OneToOne>(start.into_iter().chain(pushed).chain(others))
    };
    assert!(early(5, Empty(1)) && early(5, Nothing(1)) && early(5, Inside(0)));
    assert!(!early(2, Empty(1)) && !early(2, Inside(1)));
    // A batch of two that is under way: its second item may be popped at once, but not before its first.
    let batch = |popped: [u64; 2]| {
        let [one, two] = popped.map(Pop);
        is_linearizable::<OneToOne>([(0, 1, empty), (2, 9, Push(0)), (2, 9, Push(1)), (3, 4, one), (5, 6, two)])
    };
    assert!(batch([0, 1]) && !batch([1, 0]));
}
