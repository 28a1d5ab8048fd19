//! Random sequences of calls of one thread, each answered as a list of those that wait would. Tickets let one thread be
//! all parties.

use crate::meeting::Queue;
use crate::sequences_judge::judge;
use crate::support::{Item, Ledger, Mode};
use crate::watchdog::guard;
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::handoff::{CancelToken, TransferQueue, WaitLimit};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Instant;

const SEQUENCES: u32 = 300;

/// How a wait ends that finds no partner.
#[derive(Clone, Copy, Debug)]
enum End {
    Time,
    Cancelled,
}

/// What is done with a ticket.
#[derive(Clone, Copy, Debug)]
enum With {
    FollowUp,
    Abort,
    Drop,
    Wait(End),
}

#[derive(Clone, Copy, Debug)]
enum Call {
    ReservePut,
    ReserveTake,
    /// With one of the tickets, if there are any.
    Proceed(prop::sample::Index, With),
    TryPut,
    /// So many, until one is refused.
    TryPutBatch(usize),
    TryTake,
    TryTakeBatch(usize),
    Put(End),
    Take(End),
    /// Leaves an item, where that can be done.
    Leave,
    Close,
}

fn call() -> impl Strategy<Value = Call> {
    let end = || prop_oneof![Just(End::Time), Just(End::Cancelled)];
    let with = prop_oneof![
        4 => Just(With::FollowUp),
        2 => Just(With::Abort),
        1 => Just(With::Drop),
        1 => end().prop_map(With::Wait),
    ];
    prop_oneof![
        80 => Just(Call::ReservePut),
        80 => Just(Call::ReserveTake),
        160 => (any::<prop::sample::Index>(), with).prop_map(|(index, with)| Call::Proceed(index, with)),
        40 => Just(Call::TryPut),
        20 => (0..4_usize).prop_map(Call::TryPutBatch),
        40 => Just(Call::TryTake),
        20 => (0..4_usize).prop_map(Call::TryTakeBatch),
        20 => end().prop_map(Call::Put),
        20 => end().prop_map(Call::Take),
        40 => Just(Call::Leave),
        2 => Just(Call::Close),
    ]
}

/// What is to become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Waits,
    /// A take, with the item of this number.
    Got(u64),
    Taken,
    /// A put has its item of this number back.
    Closed(u64),
}

/// One that waits.
#[derive(Clone, Copy)]
struct Waiter {
    is_put: bool,
    /// The item's, or the take's.
    number: u64,
    /// Its owner has a ticket.
    has_ticket: bool,
}

/// The model: those that wait, the next one to be met last, and what the tickets will be told.
struct Model {
    is_fair: bool,
    drains: bool,
    closed: bool,
    waiting: Vec<Waiter>,
    fates: Vec<(u64, Fate)>,
}

impl Model {
    fn fate(&mut self, number: u64) -> &mut Fate {
        &mut self.fates.iter_mut().find(|(ticket, _)| *ticket == number).expect("it has a ticket").1
    }

    fn waits(&mut self, waiter: Waiter) {
        let at = if self.is_fair { 0 } else { self.waiting.len() };
        self.waiting.insert(at, waiter);
    }

    /// A put's partner, which is given the item of this number; or a take's, and its item.
    fn meet(&mut self, is_put: bool, number: u64) -> Option<u64> {
        if self.closed && (is_put || !self.drains) || self.waiting.last()?.is_put == is_put {
            return None;
        }
        let partner = self.waiting.pop()?;
        if partner.has_ticket {
            *self.fate(partner.number) = if is_put { Fate::Got(number) } else { Fate::Taken };
        }
        Some(partner.number)
    }

    fn reserve(&mut self, is_put: bool, number: u64) {
        let fate = match self.meet(is_put, number) {
            Some(_) if is_put => Fate::Taken,
            Some(item) => Fate::Got(item),
            None if self.closed => Fate::Closed(number),
            None => {
                self.waits(Waiter { is_put, number, has_ticket: true });
                Fate::Waits
            }
        };
        self.fates.push((number, fate));
    }

    fn withdraw(&mut self, number: u64) {
        self.waiting.retain(|waiter| waiter.number != number);
    }

    fn close(&mut self) {
        self.closed = true;
        let (left, gone) = self.waiting.iter().partition::<Vec<_>, _>(|waiter| !waiter.has_ticket);
        self.waiting = left;
        gone.iter().for_each(|waiter| *self.fate(waiter.number) = Fate::Closed(waiter.number));
    }

    fn count(&self, is_put: bool) -> usize {
        self.waiting.iter().filter(|waiter| waiter.is_put == is_put).count()
    }
}

type Ticket<'q> = crate::meeting::Ticket<'q, Item>;

fn run<Q: Queue<Item>>(queue: &Q, is_fair: bool, calls: &[Call]) {
    let ledger = Ledger::default();
    let mut model = Model { is_fair, drains: Q::DRAINS, closed: false, waiting: Vec::new(), fates: Vec::new() };
    let mut tickets: Vec<(u64, Ticket<'_>)> = Vec::new();
    let cancelled = CancelToken::new();
    cancelled.cancel();
    let limit = |end| match end {
        End::Time => WaitLimit::new().deadline(Instant::now()),
        End::Cancelled => WaitLimit::new().cancel(&cancelled),
    };
    for (number, &call) in (0..).step_by(10).zip(calls) {
        let gave_back = |item: &Item| assert_eq!(*item.value, number);
        match call {
            Call::ReservePut => {
                tickets.push((number, Ticket::Put(queue.reserve_put(ledger.item(number)))));
                model.reserve(true, number);
            }
            Call::ReserveTake => {
                tickets.push((number, Ticket::Take(queue.reserve_take())));
                model.reserve(false, number);
            }
            Call::Proceed(index, with) if !tickets.is_empty() => {
                let (number, ticket) = tickets.swap_remove(index.index(tickets.len()));
                let fate = *model.fate(number);
                if let Some(ticket) = proceed(ticket, number, with, fate, limit) {
                    tickets.push((number, ticket));
                } else {
                    model.withdraw(number);
                    model.fates.retain(|(ticket, _)| *ticket != number);
                }
            }
            Call::Proceed(..) => {}
            Call::TryPut => match (queue.try_put(ledger.item(number)), model.meet(true, number)) {
                (Ok(()), Some(_)) => {}
                (Err(TryPushError::Full(item)), None) if !model.closed => gave_back(&item),
                (Err(TryPushError::Closed(item)), None) if model.closed => gave_back(&item),
                (outcome, due) => panic!("{} instead of {due:?}", outcome.is_ok()),
            },
            Call::TryPutBatch(count) => {
                let mut items: Vec<_> = (0..count).map(|i| ledger.item(number + i as u64)).collect();
                let outcome = queue.try_put_batch(&mut items);
                let taken = (number..).take(count).take_while(|&number| model.meet(true, number).is_some()).count();
                assert!(
                    items.iter().map(|item| *item.value).eq((number..).take(count).skip(taken)),
                    "the others are left"
                );
                let error = if model.closed { TryPushError::Closed(()) } else { TryPushError::Full(()) };
                assert_eq!(outcome, if taken == 0 && count > 0 { Err(error) } else { Ok(taken) });
            }
            Call::TryTake => {
                let due = model.meet(false, number);
                let error = if model.closed { TryPopError::Closed } else { TryPopError::Empty };
                assert_eq!(queue.try_take().map(|item| *item.value), due.ok_or(error));
            }
            Call::TryTakeBatch(max) => {
                let mut items = Vec::new();
                let outcome = queue.try_take_batch(&mut items, max);
                let due: Vec<_> = (0..max).map_while(|_| model.meet(false, number)).collect();
                let error = if model.closed { TryPopError::Closed } else { TryPopError::Empty };
                assert_eq!(outcome, if due.is_empty() && max > 0 { Err(error) } else { Ok(due.len()) });
                assert!(items.iter().map(|item| *item.value).eq(due));
            }
            Call::Put(end) => match (queue.put_with(ledger.item(number), &limit(end)), model.meet(true, number)) {
                (Ok(()), Some(_)) => {}
                (Err(error), None) => {
                    match &error {
                        PushTimeoutError::Closed(_) => assert!(model.closed),
                        PushTimeoutError::Timeout(_) => assert!(!model.closed && matches!(end, End::Time)),
                        PushTimeoutError::Cancelled(_) => assert!(!model.closed && matches!(end, End::Cancelled)),
                        error => panic!("{error}"),
                    }
                    gave_back(&error.into_inner());
                }
                (outcome, due) => panic!("{} instead of {due:?}", outcome.is_ok()),
            },
            Call::Take(end) => {
                let due = model.meet(false, number);
                let error = match end {
                    _ if model.closed => PopTimeoutError::Closed,
                    End::Time => PopTimeoutError::Timeout,
                    End::Cancelled => PopTimeoutError::Cancelled,
                };
                assert_eq!(queue.take_with(&limit(end)).map(|item| *item.value), due.ok_or(error));
            }
            Call::Leave => {
                let back = queue.leave(ledger.item(number)).err();
                back.iter().for_each(gave_back);
                assert_eq!(back.is_some(), model.closed || !Q::DRAINS);
                if back.is_none() && model.meet(true, number).is_none() {
                    model.waits(Waiter { is_put: true, number, has_ticket: false });
                }
            }
            Call::Close => {
                queue.close();
                model.close();
            }
        }
        let shown = (queue.puts(), queue.is_empty(), queue.waiting_takes(), queue.is_closed());
        let puts = model.count(true);
        assert_eq!(shown, (puts, puts == 0, model.count(false), model.closed));
        // Each item is with a put that waits, or with a ticket that was given it, or gave it back.
        let with_tickets =
            model.fates.iter().filter(|(_, fate)| matches!(fate, Fate::Got(_))).count() + closed_puts(&tickets, &model);
        assert_eq!(ledger.alive(), model.count(true) + with_tickets);
    }
    tickets.clear();
    let mut left = Vec::new();
    let _ = queue.try_take_batch(&mut left, usize::MAX);
    assert_eq!(ledger.alive(), left.len());
}

/// Tickets of puts that a close has sent away, and that have not been told.
fn closed_puts(tickets: &[(u64, Ticket<'_>)], model: &Model) -> usize {
    let is_closed = |number| model.fates.contains(&(number, Fate::Closed(number)));
    tickets.iter().filter(|(number, ticket)| matches!(ticket, Ticket::Put(_)) && is_closed(*number)).count()
}

/// Uses a ticket whose fate is known. It comes back if its request goes on waiting.
fn proceed<'q, 'p>(
    ticket: Ticket<'q>,
    number: u64,
    with: With,
    fate: Fate,
    limit: impl Fn(End) -> WaitLimit<'p>,
) -> Option<Ticket<'q>> {
    match (ticket, with) {
        (ticket, With::Drop) => drop(ticket),
        (Ticket::Put(mut ticket), With::FollowUp) => match (ticket.try_followup(), fate) {
            (None, Fate::Waits) => return Some(Ticket::Put(ticket)),
            (Some(Ok(())), Fate::Taken) => {}
            (Some(Err(closed)), Fate::Closed(_)) => assert_eq!(*closed.0.value, number),
            (told, fate) => panic!("{:?} instead of {fate:?}", told.map(|told| told.is_ok())),
        },
        (Ticket::Take(mut ticket), With::FollowUp) => match (ticket.try_followup(), fate) {
            (None, Fate::Waits) => return Some(Ticket::Take(ticket)),
            (Some(Ok(item)), Fate::Got(due)) => assert_eq!(*item.value, due),
            (Some(Err(_)), Fate::Closed(_)) => {}
            (told, fate) => panic!("{:?} instead of {fate:?}", told.map(|told| told.is_ok())),
        },
        (Ticket::Put(ticket), With::Abort) => {
            let due = (fate != Fate::Taken).then_some(number);
            assert_eq!(ticket.abort().map(|item| *item.value), due);
        }
        (Ticket::Take(ticket), With::Abort) => {
            let due = if let Fate::Got(item) = fate { Some(item) } else { None };
            assert_eq!(ticket.abort().map(|item| *item.value), due);
        }
        (Ticket::Put(ticket), With::Wait(end)) => match (ticket.wait_with(&limit(end)), fate) {
            (Ok(()), Fate::Taken) => {}
            (Err(error), fate) => {
                match &error {
                    PushTimeoutError::Closed(_) => assert_eq!(fate, Fate::Closed(number)),
                    PushTimeoutError::Timeout(_) => assert!(fate == Fate::Waits && matches!(end, End::Time)),
                    PushTimeoutError::Cancelled(_) => assert!(fate == Fate::Waits && matches!(end, End::Cancelled)),
                    error => panic!("{error}"),
                }
                assert_eq!(*error.into_inner().value, number);
            }
            (Ok(()), fate) => panic!("taken instead of {fate:?}"),
        },
        (Ticket::Take(ticket), With::Wait(end)) => {
            let due = match (fate, end) {
                (Fate::Got(item), _) => Ok(item),
                (Fate::Waits, End::Time) => Err(PopTimeoutError::Timeout),
                (Fate::Waits, End::Cancelled) => Err(PopTimeoutError::Cancelled),
                _ => Err(PopTimeoutError::Closed),
            };
            assert_eq!(ticket.wait_with(&limit(end)).map(|item| *item.value), due);
        }
    }
    None
}

pub(crate) fn random_sequences_are_answered_as_by_a_list(mode: Mode) {
    judge(SEQUENCES, &vec(call(), 0..120), |calls| run(&mode.queue(), mode.is_fair(), &calls));
}

#[test]
fn a_transfer_queue_answers_random_sequences_as_a_list() {
    guard(|| judge(SEQUENCES, &vec(call(), 0..120), |calls| run(&TransferQueue::new(), true, &calls)));
}
