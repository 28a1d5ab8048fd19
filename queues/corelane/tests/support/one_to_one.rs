//! A queue from one thread to one other, as histories of it are judged.
//!
//! The producer numbers its items, so the queue's state is how many were pushed and popped. A batch is not atomic: each
//! of its items is a step of its own, somewhere within the whole call, and if it ended early that is a step behind
//! them. A batch that is popped gives its slots back when it likes, in steps of their own: it may have found nothing
//! more, while the producer still finds the queue full. `Full` may come early by the release lag.
//!
//! A batch that ends early has looked for room behind its items, and counts them all. Its publication is a store and
//! its look a load, with no fence in between: it may be refused for items that no consumer sees yet. So that step may
//! come before them.

use crate::histories::{Clock, Event, is_linearizable, record};
use crate::random::Random;
use todc_utils::Specification;

/// A call of an end, chosen at random: with the number of items that it has pushed or popped.
type Call<E> = fn(&mut E, &mut Random, &mut u64, &Clock) -> Event<Vec<Step>>;

const CALLS: usize = 8;

/// Records calls of both ends, with pauses in between, and judges them; then what is left is there.
pub(crate) fn judge<T: Send, R: Send>(
    start: Step,
    [mut one, mut other]: [Random; 2],
    (tx, produce): (&mut T, Call<T>),
    (rx, consume): (&mut R, Call<R>),
    mut pop: impl FnMut(&mut R) -> Option<u64>,
) {
    let Step::Start { inside: mut pushed, .. } = start else { panic!("a start comes first") };
    let (clock, mut popped) = (Clock::default(), 0);
    let (begin, end, ()) = clock.time(|| ());
    let mut events = vec![(begin, end, start)];
    let several = |random: &mut Random, call: &mut dyn FnMut(&mut Random) -> Event<Vec<Step>>| {
        let mut events = Vec::new();
        for _ in 0..CALLS {
            let (begin, end, steps) = call(random);
            events.extend(steps.into_iter().map(|step| (begin, end, step)));
            random.spin(30);
        }
        events
    };
    let recorders: [Box<dyn FnOnce() -> Vec<Event<Step>> + Send + '_>; 2] = [
        Box::new(|| several(&mut one, &mut |random| produce(tx, random, &mut pushed, &clock))),
        Box::new(|| several(&mut other, &mut |random| consume(rx, random, &mut popped, &clock))),
    ];
    events.extend(record(recorders).concat());
    let (begin, end, ()) = clock.time(|| ());
    events.extend(std::iter::from_fn(|| pop(rx)).map(|item| (begin, end, Step::Pop(item))));
    let (begin, end, ()) = clock.time(|| ());
    events.push((begin, end, Step::Nothing(pushed)));
    assert!(is_linearizable::<OneToOne>(events.iter().copied()), "begin, end, call and answer: {events:#?}");
}

/// A call's answer, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Before all others: what the queue holds, how many fewer than that may be `Full`, by how many the producer's
    /// count may be too large, and what is inside.
    Start {
        bound: u64,
        lag: u64,
        late: u64,
        inside: u64,
    },
    /// The item of this number.
    Push(u64),
    /// No push after so many in all.
    Full(u64),
    /// No further push after so many in all, visible or not: full or closed.
    Refused(u64),
    PushClosed,
    /// The item of this number, and its slot is free.
    Pop(u64),
    /// The item of this number, of a batch.
    Take(u64),
    /// The slot of this item is free.
    Free(u64),
    /// Nothing to pop after so many in all, and not closed.
    Empty(u64),
    /// Nothing to pop, closed or not.
    Nothing(u64),
    PopClosed,
    /// What the producer is told: an upper bound.
    InsideAtMost(u64),
    /// What the consumer is told.
    Inside(u64),
    Close,
    IsClosed(bool),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    bound: u64,
    lag: u64,
    late: u64,
    pushed: u64,
    popped: u64,
    freed: u64,
    closed: bool,
}

pub(crate) struct OneToOne;

impl Specification for OneToOne {
    type State = State;
    type Operation = Step;

    fn init() -> State {
        State::default()
    }

    fn apply(step: &Step, state: &State) -> (bool, State) {
        let &State { bound, lag, late, pushed, popped, freed, closed } = state;
        let inside = pushed - popped;
        let occupied = pushed - freed;
        let is_full = occupied + lag >= bound;
        let mut next = *state;
        let holds = match *step {
            Step::Start { bound, lag, late, inside } => {
                next = State { bound, lag, late, pushed: inside, popped: 0, freed: 0, closed: false };
                *state == State::default()
            }
            Step::Push(number) => {
                next.pushed += 1;
                number == pushed && occupied < bound && !closed
            }
            Step::Full(after) => after == pushed && is_full && !closed,
            Step::Refused(after) => after >= pushed && ((after - freed).saturating_add(lag) >= bound || closed),
            Step::PushClosed | Step::IsClosed(true) => closed,
            Step::Pop(number) => {
                next.popped += 1;
                next.freed += 1;
                number == popped && freed == popped && inside > 0
            }
            Step::Take(number) => {
                next.popped += 1;
                number == popped && inside > 0
            }
            Step::Free(number) => {
                next.freed += 1;
                number == freed && freed < popped
            }
            Step::Empty(after) => after == popped && inside == 0 && !closed,
            Step::Nothing(after) => after == popped && inside == 0,
            Step::PopClosed => inside == 0 && closed,
            Step::InsideAtMost(count) => (inside..=bound.min(occupied.saturating_add(late))).contains(&count),
            Step::Inside(count) => count == inside,
            Step::Close => {
                next.closed = true;
                true
            }
            Step::IsClosed(false) => !closed,
        };
        if holds { (true, next) } else { (false, *state) }
    }
}
