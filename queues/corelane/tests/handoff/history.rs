//! Recorded histories of the hand-off structures, judged.
//!
//! A rendezvous has no sequential specification: no call that waits for a partner could come first. So histories are
//! judged in two steps.
//!
//! 1. **Pairing**, of the plain record. Each item that a put was told is taken was got by one take, and no other item
//!    was got. The two calls overlap (a ticket's call lasts from its registration until its owner knows). Items that
//!    are put without waiting have no such duty.
//! 2. **Order**, by a checker of linearizability. Each request is two steps, as in section 2.2 of the paper: it asks,
//!    which matches it with one that waits or makes it wait; and it is told what became of it. Each step takes effect
//!    at one moment of its call; both of one call that waits may be anywhere within it, the first before the second.
//!    Partners are known from the items, so the steps have a sequential specification: a request that asks meets one
//!    that waits if there is one, a `try_` call that fails has found none, a follow-up that says nothing found its own
//!    request waiting. This says all that one operation a pair, on the intersection of the two calls, would say, and
//!    the order of those that wait as well.
//!
//! Which of those that wait is met:
//!
//! - fair, and the transfer queue: the one that asked first, always;
//! - unfair: any. It is no stack in the strict sense. A thread has looked at the top and is stopped; another request is
//!   pushed, and returns; the one below is asked and still waits; then the stopped thread meets it, below the top. No
//!   moment for that meeting is right for a stack, and all are for a bag. Without contention it is a stack:
//!   [`order`](crate::order) and [`sequences`](crate::sequences) say so. With elimination partners meet beside it in
//!   any case.
//!
//! A time-out is a request that was still waiting when it was withdrawn, any time after its time. While a close is
//! under way a call may answer as before it or as after it: a close promises that no later call succeeds, not that it
//! sends all requests away at one moment.
//!
//! An exchanger has less to say: pairs are symmetric, and one step each on the intersection of their calls. It is no
//! fault that a request waits at another place of the arena, so there is no order, and a time-out, or a `try_exchange`
//! that finds no partner, says nothing of others.

use crate::histories::{Clock, Event, is_linearizable, record};
use crate::meeting::Queue;
use crate::random::Random;
use crate::support::Mode;
use crate::watchdog::guard;
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::handoff::{Exchanger, TransferQueue, WaitLimit};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};
use todc_utils::Specification;

const THREADS: usize = 3;
const CALLS: usize = 7;
const HISTORIES: usize = 250;

/// Names a put by its item, a take by a number beyond.
type Id = u64;
const TAKES: Id = 1_000_000;

fn is_put(id: Id) -> bool {
    id < TAKES
}

/// How a request behaves when there is no partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Otherwise {
    Fails,
    Waits,
    /// Its item stays, and no thread waits.
    Leaves,
}

/// What became of a request, as far as its owner was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    /// The item was taken.
    Taken,
    Got(u64),
    NoPartner,
    TimedOut,
    /// By its owner, whatever had happened: there was no partner.
    Withdrawn,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Ask(Id, Otherwise),
    Told(Id, Told),
    Close,
    IsClosed(bool),
    IsEmpty(bool),
    HasTaker(bool),
}

#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    /// Got, but never put, or given back to its put as well.
    MadeUp(u64),
    Doubled(u64),
    Lost(u64),
    /// Partners whose calls do not overlap.
    Apart(u64),
    /// There is no order of the steps.
    Order,
}

/// A request, from its beginning until its owner knew.
#[derive(Clone, Copy)]
struct Request {
    begin: usize,
    end: usize,
    otherwise: Otherwise,
    fate: Told,
    partner: Option<Id>,
}

/// The first step: pairs puts and takes.
fn pair(events: &[Event<Call>]) -> Result<HashMap<Id, Request>, Wrong> {
    let mut requests = HashMap::new();
    for &(begin, end, call) in events {
        if let Call::Ask(id, otherwise) = call {
            let request = Request { begin, end, otherwise, fate: Told::Nothing, partner: None };
            assert!(requests.insert(id, request).is_none(), "requests have names of their own");
        }
    }
    for &(_, end, call) in events {
        if let Call::Told(id, fate) = call
            && fate != Told::Nothing
        {
            let request = requests.get_mut(&id).expect("it was asked for");
            (request.end, request.fate) = (end, fate);
        }
    }
    let takes: Vec<_> = requests.iter().filter(|(id, _)| !is_put(**id)).map(|(&id, &take)| (id, take)).collect();
    for (id, take) in takes {
        let Told::Got(item) = take.fate else { continue };
        let put = requests.get_mut(&item).ok_or(Wrong::MadeUp(item))?;
        if put.fate != Told::Taken {
            return Err(Wrong::MadeUp(item));
        }
        if put.partner.replace(id).is_some() {
            return Err(Wrong::Doubled(item));
        }
        if put.otherwise != Otherwise::Leaves && (put.end < take.begin || take.end < put.begin) {
            return Err(Wrong::Apart(item));
        }
        requests.get_mut(&id).expect("it is there").partner = Some(item);
    }
    match requests.iter().find(|(_, request)| request.fate == Told::Taken && request.partner.is_none()) {
        Some((&item, _)) => Err(Wrong::Lost(item)),
        None => Ok(requests),
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask { id: Id, otherwise: Otherwise, fate: Told, partner: Option<Id> },
    Told(Id, Told),
    BeginClose,
    EndClose,
    IsClosed(bool),
    IsEmpty(bool),
    HasTaker(bool),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    #[default]
    Open,
    /// A close is under way.
    Closing,
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Waiter {
    id: Id,
    /// Its owner does not wait for it.
    is_left: bool,
    /// A close sends it away, or may: its owner withdrew it in the end, whatever had happened.
    leaves: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    stage: Stage,
    /// In the order in which they asked.
    waiting: Vec<Waiter>,
    /// Their owners are still to be told.
    matched: BTreeSet<Id>,
}

impl State {
    fn remove(&mut self, id: Id) -> Option<Waiter> {
        let at = self.waiting.iter().position(|waiter| waiter.id == id)?;
        Some(self.waiting.remove(at))
    }

    /// The partners that wait, the first of them first. Those that a close may have sent away by now do not count.
    fn partners(&self, id: Id) -> impl Iterator<Item = &Waiter> {
        let here = move |waiter: &&Waiter| self.stage == Stage::Open || !waiter.leaves;
        self.waiting.iter().filter(move |waiter| is_put(waiter.id) != is_put(id)).filter(here)
    }

    /// `None` where it must not answer so.
    fn ask(&mut self, step: Ask, is_fair: bool, drains: bool) -> Option<()> {
        let Ask { id, otherwise, fate, partner } = step;
        let is_open = self.stage != Stage::Closed;
        if let Some(met) = partner.and_then(|partner| self.waiting.iter().find(|waiter| waiter.id == partner).copied())
        {
            let in_turn = !is_fair || self.partners(id).next() == Some(&met);
            if !in_turn || !(is_open || drains && met.is_left) {
                return None;
            }
            self.remove(met.id);
            self.matched.extend((!met.is_left).then_some(met.id));
            self.matched.extend((otherwise == Otherwise::Waits).then_some(id));
            return Some(());
        }
        // No partner to meet; once all is closed only items that were left can be.
        let alone = self.partners(id).next().is_none();
        let alone_or_closed = alone || self.stage != Stage::Open && (is_put(id) || !drains);
        let holds = match fate {
            Told::NoPartner => alone && is_open,
            Told::Closed if otherwise != Otherwise::Waits => alone_or_closed && self.stage != Stage::Open,
            Told::Closed | Told::Withdrawn => alone_or_closed,
            _ => alone && is_open && otherwise != Otherwise::Fails,
        };
        if otherwise != Otherwise::Fails && fate != Told::NoPartner {
            let is_left = otherwise == Otherwise::Leaves;
            if !(is_left && fate == Told::Closed) {
                let leaves = matches!(fate, Told::Closed | Told::Withdrawn);
                self.waiting.push(Waiter { id, is_left, leaves });
            }
        }
        holds.then_some(())
    }

    fn told(&mut self, id: Id, told: Told) -> Option<()> {
        let holds = match told {
            Told::Taken | Told::Got(_) => self.matched.remove(&id),
            Told::Nothing => self.stage != Stage::Closed && self.waiting.iter().any(|waiter| waiter.id == id),
            Told::TimedOut => self.stage != Stage::Closed && self.remove(id).is_some(),
            Told::Withdrawn => self.remove(id).is_some(),
            Told::Closed => self.stage != Stage::Open && self.remove(id).is_some(),
            Told::NoPartner => false,
        };
        holds.then_some(())
    }
}

/// A request, and what is known of it from the end.
struct Ask {
    id: Id,
    otherwise: Otherwise,
    fate: Told,
    partner: Option<Id>,
}

/// Where puts and takes meet. With `DRAINS`, items that were left can be taken after a close.
struct Meetings<const FAIR: bool, const DRAINS: bool>;

impl<const FAIR: bool, const DRAINS: bool> Specification for Meetings<FAIR, DRAINS> {
    type State = State;
    type Operation = Step;

    fn init() -> State {
        State::default()
    }

    fn apply(step: &Step, state: &State) -> (bool, State) {
        let mut next = state.clone();
        let there = |put: bool| state.waiting.iter().any(|waiter| is_put(waiter.id) == put);
        let holds = match *step {
            Step::Ask { id, otherwise, fate, partner } => {
                next.ask(Ask { id, otherwise, fate, partner }, FAIR, DRAINS).is_some()
            }
            Step::Told(id, told) => next.told(id, told).is_some(),
            Step::BeginClose => {
                next.stage = state.stage.max(Stage::Closing);
                true
            }
            Step::EndClose => {
                next.stage = Stage::Closed;
                state.stage != Stage::Open
            }
            Step::IsClosed(answer) => answer == (state.stage != Stage::Open),
            Step::IsEmpty(answer) => match state.stage {
                Stage::Open => answer != there(true),
                Stage::Closing => true,
                Stage::Closed => answer != state.waiting.iter().any(|waiter| waiter.is_left),
            },
            Step::HasTaker(answer) => match state.stage {
                Stage::Open => answer == there(false),
                Stage::Closing => true,
                Stage::Closed => !answer,
            },
        };
        if holds { (true, next) } else { (false, state.clone()) }
    }
}

fn judge<const FAIR: bool, const DRAINS: bool>(events: &[Event<Call>]) -> Result<(), Wrong> {
    let requests = pair(events)?;
    let steps = events.iter().flat_map(|&(begin, end, call)| {
        let steps: &[Step] = &match call {
            Call::Ask(id, otherwise) => {
                let Request { fate, partner, .. } = requests[&id];
                [Step::Ask { id, otherwise, fate, partner }].to_vec()
            }
            // That is in their one step.
            Call::Told(id, _) if requests[&id].otherwise != Otherwise::Waits => vec![],
            Call::Told(id, told) => vec![Step::Told(id, told)],
            Call::Close => vec![Step::BeginClose, Step::EndClose],
            Call::IsClosed(answer) => vec![Step::IsClosed(answer)],
            Call::IsEmpty(answer) => vec![Step::IsEmpty(answer)],
            Call::HasTaker(answer) => vec![Step::HasTaker(answer)],
        };
        steps.iter().map(|&step| (begin, end, step)).collect::<Vec<_>>()
    });
    if is_linearizable::<Meetings<FAIR, DRAINS>>(steps) { Ok(()) } else { Err(Wrong::Order) }
}

type Ticket<'q> = crate::meeting::Ticket<'q, u64>;

impl Ticket<'_> {
    fn follow_up(&mut self) -> Told {
        match self {
            Self::Put(ticket) => match ticket.try_followup() {
                None => Told::Nothing,
                Some(Ok(())) => Told::Taken,
                Some(Err(Closed(_))) => Told::Closed,
            },
            Self::Take(ticket) => match ticket.try_followup() {
                None => Told::Nothing,
                Some(Ok(item)) => Told::Got(item),
                Some(Err(_)) => Told::Closed,
            },
        }
    }

    fn abort(self) -> Told {
        match self {
            Self::Put(ticket) => ticket.abort().map_or(Told::Taken, |_| Told::Withdrawn),
            Self::Take(ticket) => ticket.abort().map_or(Told::Withdrawn, Told::Got),
        }
    }

    fn wait(self, limit: &WaitLimit<'_>) -> Told {
        match self {
            Self::Put(ticket) => of_put(ticket.wait_with(limit)),
            Self::Take(ticket) => of_take(ticket.wait_with(limit)),
        }
    }
}

fn of_put(outcome: Result<(), PushTimeoutError<u64>>) -> Told {
    match outcome {
        Ok(()) => Told::Taken,
        Err(PushTimeoutError::Closed(_)) => Told::Closed,
        Err(PushTimeoutError::Timeout(_)) => Told::TimedOut,
        Err(error) => unreachable!("there is no token: {error}"),
    }
}

fn of_take(outcome: Result<u64, PopTimeoutError>) -> Told {
    match outcome {
        Ok(item) => Told::Got(item),
        Err(PopTimeoutError::Closed) => Told::Closed,
        Err(PopTimeoutError::Timeout) => Told::TimedOut,
        Err(error) => unreachable!("there is no token: {error}"),
    }
}

/// Nothing at all, less than a spin, and long enough to sleep.
const TIMES: [Duration; 3] = [Duration::ZERO, Duration::from_micros(2), Duration::from_micros(150)];

/// A thread that records its calls.
struct Recorder<'a, Q> {
    queue: &'a Q,
    clock: &'a Clock,
    random: Random,
    /// The next put's item.
    next: u64,
    tickets: Vec<(Id, Ticket<'a>)>,
    events: Vec<Event<Call>>,
}

impl<'a, Q: Queue<u64>> Recorder<'a, Q> {
    fn new(queue: &'a Q, clock: &'a Clock, thread: usize, seed: u64) -> Self {
        let (random, next) = (Random::new(seed), 1000 * thread as u64);
        Self { queue, clock, random, next, tickets: Vec::new(), events: Vec::new() }
    }

    fn name(&mut self, put: bool) -> Id {
        self.next += 1;
        if put { self.next } else { TAKES + self.next }
    }

    /// A call that asks, and is told before it ends.
    fn ask(&mut self, id: Id, otherwise: Otherwise, call: impl FnOnce(&Q) -> Told) {
        let (begin, end, told) = self.clock.time(|| call(self.queue));
        self.events.extend([(begin, end, Call::Ask(id, otherwise)), (begin, end, Call::Told(id, told))]);
    }

    fn try_put(&mut self) {
        let id = self.name(true);
        self.ask(id, Otherwise::Fails, |queue| match queue.try_put(id) {
            Ok(()) => Told::Taken,
            Err(TryPushError::Full(_)) => Told::NoPartner,
            Err(TryPushError::Closed(_)) => Told::Closed,
            Err(error) => panic!("{error}"),
        });
    }

    /// Whether there was an item.
    fn try_take(&mut self) -> bool {
        let id = self.name(false);
        self.ask(id, Otherwise::Fails, |queue| match queue.try_take() {
            Ok(item) => Told::Got(item),
            Err(TryPopError::Empty) => Told::NoPartner,
            Err(TryPopError::Closed) => Told::Closed,
            Err(error) => panic!("{error}"),
        });
        matches!(self.events.last(), Some((_, _, Call::Told(_, Told::Got(_)))))
    }

    fn wait(&mut self, put: bool) {
        let (id, time) = (self.name(put), TIMES[self.random.below(TIMES.len())]);
        let start = Instant::now();
        let limit = WaitLimit::new().timeout(time);
        self.ask(id, Otherwise::Waits, |queue| {
            if put { of_put(queue.put_with(id, &limit)) } else { of_take(queue.take_with(&limit)) }
        });
        let timed_out = matches!(self.events.last(), Some((_, _, Call::Told(_, Told::TimedOut))));
        assert!(!timed_out || start.elapsed() >= time, "timed out early");
    }

    fn reserve(&mut self, put: bool) {
        let id = self.name(put);
        let queue = self.queue;
        let (begin, end, ticket) = self
            .clock
            .time(|| if put { Ticket::Put(queue.reserve_put(id)) } else { Ticket::Take(queue.reserve_take()) });
        self.tickets.push((id, ticket));
        self.events.push((begin, end, Call::Ask(id, Otherwise::Waits)));
    }

    /// Something with one of the tickets.
    fn proceed(&mut self, how: usize) {
        let at = self.random.below(self.tickets.len());
        let (id, mut ticket) = self.tickets.swap_remove(at);
        let (begin, end, told) = match how {
            0 => self.clock.time(|| ticket.abort()),
            1 => self.clock.time(|| ticket.wait(&WaitLimit::new().timeout(TIMES[2]))),
            _ => {
                let event = self.clock.time(|| ticket.follow_up());
                if event.2 == Told::Nothing {
                    self.tickets.push((id, ticket));
                }
                event
            }
        };
        self.events.push((begin, end, Call::Told(id, told)));
    }

    fn plain(&mut self, call: impl FnOnce(&Q) -> Option<Call>) {
        let (begin, end, call) = self.clock.time(|| call(self.queue));
        self.events.extend(call.map(|call| (begin, end, call)));
    }

    /// A call chosen at random.
    fn call(&mut self, tickets: bool) {
        let put = self.random.below(2) == 0;
        match self.random.below(60) {
            0 => self.plain(|queue| {
                queue.close();
                Some(Call::Close)
            }),
            1 => self.plain(|queue| Some(Call::IsClosed(queue.is_closed()))),
            2..5 => self.plain(|queue| {
                let for_takes = || Call::HasTaker(queue.waiting_takes() > 0);
                Q::DRAINS.then(|| if put { for_takes() } else { Call::IsEmpty(queue.is_empty()) })
            }),
            5..15 => self.try_put(),
            15..25 => drop(self.try_take()),
            25..30 if Q::DRAINS => {
                let id = self.name(true);
                self.ask(id, Otherwise::Leaves, |queue| queue.leave(id).map_or(Told::Closed, |()| Told::Taken));
            }
            30..45 if tickets && self.tickets.len() < 3 => self.reserve(put),
            45.. if !self.tickets.is_empty() => {
                let how = self.random.below(6);
                self.proceed(how);
            }
            _ => self.wait(put),
        }
    }

    fn record(mut self, tickets: bool) -> Vec<Event<Call>> {
        for _ in 0..CALLS {
            self.call(tickets);
            self.random.pause();
        }
        while !self.tickets.is_empty() {
            self.proceed(0);
        }
        self.events
    }
}

fn histories<Q: Queue<u64>, const FAIR: bool, const DRAINS: bool>(make: impl Fn() -> Q, tickets: bool) {
    for round in 0..HISTORIES {
        let (queue, clock) = (make(), Clock::default());
        let recorder = |thread| Recorder::new(&queue, &clock, thread, (round * THREADS + thread) as u64 + 1);
        let mut events = record((0..THREADS).map(recorder).map(|recorder| || recorder.record(tickets))).concat();
        // What was left is there, and nothing else.
        let mut rest = Recorder::new(&queue, &clock, THREADS, 1);
        while rest.try_take() {}
        events.append(&mut rest.events);
        let verdict = judge::<FAIR, DRAINS>(&events);
        assert_eq!(verdict, Ok(()), "begin, end, call and answer: {events:#?}");
    }
    println!("{HISTORIES} histories judged");
}

fn of_mode(mode: Mode, tickets: bool) {
    if mode.is_fair() {
        histories::<_, true, false>(|| mode.queue(), tickets);
    } else {
        histories::<_, false, false>(|| mode.queue(), tickets);
    }
}

pub(crate) fn calls_are_linearizable(mode: Mode) {
    of_mode(mode, false);
}

pub(crate) fn tickets_are_linearizable(mode: Mode) {
    of_mode(mode, true);
}

#[test]
fn transfer_calls_are_linearizable() {
    guard(|| histories::<_, true, true>(TransferQueue::new, false));
}

#[test]
fn transfer_tickets_are_linearizable() {
    guard(|| histories::<_, true, true>(TransferQueue::new, true));
}

/// A call of an exchanger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Swap {
    /// This item for that.
    For(u64, u64),
    TimedOut,
    /// No partner was there, for one that does not wait.
    NoPartner,
    Closed,
    Close,
    IsClosed(bool),
}

struct Exchanges;

impl Specification for Exchanges {
    type State = bool;
    type Operation = Swap;

    fn init() -> bool {
        false
    }

    fn apply(swap: &Swap, &closed: &bool) -> (bool, bool) {
        match *swap {
            Swap::For(..) | Swap::TimedOut | Swap::NoPartner => (!closed, closed),
            Swap::Closed => (closed, closed),
            Swap::Close => (true, true),
            Swap::IsClosed(answer) => (answer == closed, closed),
        }
    }
}

fn judge_swaps(events: &[Event<Swap>]) -> Result<(), Wrong> {
    let mut merged = Vec::new();
    let mut got = BTreeSet::new();
    for &(begin, end, swap) in events {
        let Swap::For(mine, theirs) = swap else {
            merged.push((begin, end, swap));
            continue;
        };
        if !got.insert(theirs) {
            return Err(Wrong::Doubled(theirs));
        }
        let partner = events.iter().find(|(_, _, other)| matches!(other, Swap::For(item, _) if *item == theirs));
        let &(other_begin, other_end, other) = partner.ok_or(Wrong::MadeUp(theirs))?;
        if other != Swap::For(theirs, mine) || mine == theirs {
            return Err(Wrong::Lost(mine));
        }
        let (begin, end) = (begin.max(other_begin), end.min(other_end));
        if begin > end {
            return Err(Wrong::Apart(mine));
        }
        if mine < theirs {
            merged.push((begin, end, swap));
        }
    }
    if is_linearizable::<Exchanges>(merged) { Ok(()) } else { Err(Wrong::Order) }
}

#[test]
fn exchanger_histories_are_pairs() {
    guard(|| {
        for round in 0..HISTORIES {
            let (exchanger, clock) = (Exchanger::new(), Clock::default());
            let swaps = |thread: usize| {
                let mut random = Random::new((round * THREADS + thread) as u64 + 1);
                let mut events = Vec::new();
                for call in 0..CALLS {
                    let item = (1000 * thread + call) as u64;
                    let time = TIMES[random.below(TIMES.len())];
                    let start = Instant::now();
                    let event = clock.time(|| match random.below(60) {
                        0 => {
                            exchanger.close();
                            Swap::Close
                        }
                        1..4 => Swap::IsClosed(exchanger.is_closed()),
                        4..19 => match exchanger.try_exchange(item) {
                            Ok(theirs) => Swap::For(item, theirs),
                            Err(TryPushError::Full(_)) => Swap::NoPartner,
                            Err(TryPushError::Closed(_)) => Swap::Closed,
                            Err(error) => panic!("{error}"),
                        },
                        _ => match exchanger.exchange_with(item, &WaitLimit::new().timeout(time)) {
                            Ok(theirs) => Swap::For(item, theirs),
                            Err(PushTimeoutError::Timeout(_)) => Swap::TimedOut,
                            Err(PushTimeoutError::Closed(_)) => Swap::Closed,
                            Err(error) => unreachable!("there is no token: {error}"),
                        },
                    });
                    assert!(event.2 != Swap::TimedOut || start.elapsed() >= time, "timed out early");
                    events.push(event);
                    random.pause();
                }
                events
            };
            let swaps = &swaps;
            let events = record((0..THREADS).map(|thread| move || swaps(thread))).concat();
            assert_eq!(judge_swaps(&events), Ok(()), "begin, end, call and answer: {events:#?}");
        }
        println!("{HISTORIES} histories judged");
    });
}

/// The judge itself: what no queue may do is found, and what each may do is not.
#[test]
fn the_judge_refuses_what_is_wrong() {
    use Otherwise::{Fails, Leaves, Waits};
    let (a, b, x, y) = (1, 2, TAKES + 1, TAKES + 2);
    let both =
        |begin, end, id, otherwise, told| [(begin, end, Call::Ask(id, otherwise)), (begin, end, Call::Told(id, told))];
    let put = |begin, end, id| both(begin, end, id, Waits, Told::Taken);
    let take = |begin, end, id, item| both(begin, end, id, Waits, Told::Got(item));
    let ask = |begin, id| vec![(begin, begin + 1, Call::Ask(id, Waits))];
    let told = |begin, id, told| vec![(begin, begin + 1, Call::Told(id, told))];
    let at_once = |begin, id, told| both(begin, begin + 1, id, Fails, told).to_vec();
    let left = |begin, id| both(begin, begin + 1, id, Leaves, Told::Taken).to_vec();
    let close = |begin| vec![(begin, begin + 1, Call::Close)];
    let call = |begin, call| vec![(begin, begin + 1, call)];
    let fair = |parts: &[Vec<Event<Call>>]| judge::<true, false>(&parts.concat());
    let unfair = |parts: &[Vec<Event<Call>>]| judge::<false, false>(&parts.concat());
    let transfer = |parts: &[Vec<Event<Call>>]| judge::<true, true>(&parts.concat());

    // Pairs.
    let pair = [put(0, 5, a), take(3, 9, x, a)].concat();
    assert_eq!(judge::<true, false>(&pair), Ok(()));
    assert_eq!(judge::<true, false>(&put(0, 5, a)), Err(Wrong::Lost(a)));
    assert_eq!(judge::<true, false>(&take(0, 5, x, a)), Err(Wrong::MadeUp(a)));
    let doubled = [pair, take(4, 8, y, a).to_vec()].concat();
    assert_eq!(judge::<false, false>(&doubled), Err(Wrong::Doubled(a)));
    let apart = [put(0, 5, a), take(6, 9, x, a)].concat();
    assert_eq!(judge::<false, false>(&apart), Err(Wrong::Apart(a)));
    let given_back = [both(0, 5, a, Waits, Told::TimedOut), take(3, 9, x, a)].concat();
    assert_eq!(judge::<false, false>(&given_back), Err(Wrong::MadeUp(a)));

    // Two that wait, by their tickets: the order is that of the asking.
    let two = |first, second| {
        let (get, end) = (at_once(4, x, Told::Got(first)), at_once(6, y, Told::Got(second)));
        [ask(0, a), ask(2, b), get, end, told(8, b, Told::Taken), told(10, a, Told::Taken)]
    };
    assert_eq!(fair(&two(a, b)), Ok(()));
    assert_eq!(fair(&two(b, a)), Err(Wrong::Order));
    assert_eq!((unfair(&two(a, b)), unfair(&two(b, a))), (Ok(()), Ok(())));
    // The same where they asked at the same time: either order.
    let meanwhile = |first, second| {
        let asks = [(0, 3, Call::Ask(a, Waits)), (1, 2, Call::Ask(b, Waits))].to_vec();
        let rest = two(first, second)[2..].concat();
        judge::<true, false>(&[asks, rest].concat())
    };
    assert_eq!((meanwhile(a, b), meanwhile(b, a)), (Ok(()), Ok(())));

    // One waits, as its follow-up says, and a take finds no partner; or one has been told before.
    let waits = |take| [ask(0, a), take, told(4, a, Told::Nothing), told(6, a, Told::Withdrawn)];
    assert_eq!(unfair(&waits(at_once(2, x, Told::NoPartner))), Err(Wrong::Order));
    assert_eq!(unfair(&waits(vec![])), Ok(()));
    let late = [ask(0, a), at_once(2, x, Told::Got(a)), told(4, a, Told::Nothing), told(6, a, Told::Taken)];
    assert_eq!(unfair(&late), Err(Wrong::Order));
    // Two of a kind each that wait for each other.
    let both_wait =
        [ask(0, a), ask(2, x), told(4, a, Told::Nothing), told(6, a, Told::Withdrawn), told(8, x, Told::Withdrawn)];
    assert_eq!(unfair(&both_wait), Err(Wrong::Order));
    // A time-out waits until then: a put before that found it.
    let timed = |at, put| [both(0, 5, x, Waits, Told::TimedOut).to_vec(), ask(at, a), put, told(8, a, Told::Withdrawn)];
    assert_eq!(fair(&timed(6, vec![])), Ok(()));
    assert_eq!(fair(&[ask(0, x), at_once(2, a, Told::NoPartner), told(4, x, Told::TimedOut)]), Err(Wrong::Order));

    // Closing.
    assert_eq!(fair(&[ask(0, a), close(2), told(4, a, Told::Closed), at_once(6, x, Told::Closed)]), Ok(()));
    assert_eq!(fair(&[ask(0, a), close(2), told(4, a, Told::Nothing), told(6, a, Told::Closed)]), Err(Wrong::Order));
    assert_eq!(fair(&[ask(0, a), told(2, a, Told::Closed), close(4)]), Err(Wrong::Order));
    assert_eq!(fair(&[close(0), at_once(2, x, Told::NoPartner)]), Err(Wrong::Order));
    assert_eq!(fair(&[ask(0, a), close(2), at_once(4, x, Told::Got(a)), told(6, a, Told::Taken)]), Err(Wrong::Order));
    assert_eq!(fair(&[close(0), call(2, Call::IsClosed(false))]), Err(Wrong::Order));

    // Items that were left: in their turn, after a close too, and until they are taken.
    let got = |begin, id, item| at_once(begin, id, Told::Got(item));
    assert_eq!(transfer(&[left(0, a), close(2), got(4, x, a), at_once(6, y, Told::Closed)]), Ok(()));
    let sent_away = [close(0), ask(2, a), at_once(4, x, Told::Closed), told(6, a, Told::Withdrawn)];
    assert_eq!((transfer(&sent_away), fair(&sent_away)), (Ok(()), Ok(())));
    assert_eq!(transfer(&[left(0, a), left(2, b), got(4, x, b), got(6, y, a)]), Err(Wrong::Order));
    assert_eq!(
        transfer(&[left(0, a), ask(2, b), got(4, x, b), got(6, y, a), told(8, b, Told::Taken)]),
        Err(Wrong::Order)
    );
    assert_eq!(transfer(&[left(0, a)]), Err(Wrong::Lost(a)));
    assert_eq!(transfer(&[left(0, a), at_once(2, y, Told::NoPartner), got(4, x, a)]), Err(Wrong::Order));
    assert_eq!(transfer(&[left(0, a), close(2), at_once(4, y, Told::Closed), got(6, x, a)]), Err(Wrong::Order));
    assert_eq!(transfer(&[left(0, a), call(2, Call::IsEmpty(true)), got(4, x, a)]), Err(Wrong::Order));
    assert_eq!(transfer(&[left(0, a), call(2, Call::HasTaker(true)), got(4, x, a)]), Err(Wrong::Order));
    assert_eq!(transfer(&[ask(0, x), call(2, Call::HasTaker(false)), told(4, x, Told::Withdrawn)]), Err(Wrong::Order));

    // Exchanges.
    let swap = |begin, end, mine, theirs| (begin, end, Swap::For(mine, theirs));
    assert_eq!(judge_swaps(&[swap(0, 5, 1, 2), swap(3, 6, 2, 1), (7, 8, Swap::TimedOut)]), Ok(()));
    assert_eq!(judge_swaps(&[swap(0, 5, 1, 2)]), Err(Wrong::MadeUp(2)));
    assert_eq!(judge_swaps(&[swap(0, 2, 1, 2), swap(3, 6, 2, 1)]), Err(Wrong::Apart(1)));
    assert_eq!(judge_swaps(&[swap(0, 5, 1, 2), swap(0, 5, 2, 3), swap(0, 5, 3, 1)]), Err(Wrong::Lost(1)));
    assert_eq!(judge_swaps(&[swap(0, 5, 1, 3), swap(0, 5, 2, 3), swap(0, 5, 3, 1)]), Err(Wrong::Doubled(3)));
    assert_eq!(judge_swaps(&[swap(0, 5, 1, 1)]), Err(Wrong::Lost(1)));
    assert_eq!(judge_swaps(&[(0, 1, Swap::Close), swap(2, 5, 1, 2), swap(3, 6, 2, 1)]), Err(Wrong::Order));
    assert_eq!(judge_swaps(&[(0, 1, Swap::Closed), (2, 3, Swap::Close)]), Err(Wrong::Order));
}
