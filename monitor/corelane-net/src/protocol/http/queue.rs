//! The exchanges of a connection that are not over.
//!
//! A thousand may wait, and a packet may bring a hundred messages, so none of them is searched for. What is asked of an
//! exchange, once true, stays true, so all in front of a cursor need not be looked at again:
//!
//! - Exchanges that have a response, or will not have one, are in front of all others, and of them only the last may
//!   lack the end of its body.
//! - The client sends the body of the request that came last.

use super::exchange::{Request, Response};
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) request: Option<Request>,
    /// The client may wait for a response before it sends the body.
    pub(super) expects: bool,
    /// The request and its body are there, or will not be.
    pub(super) asked: bool,
    pub(super) response: Option<Response>,
    /// The response and its body are there, or will not be.
    pub(super) answered: bool,
    /// The response came before its request was whole: that was sent before, and is late or under way.
    pub(super) is_early: bool,
    /// Bytes of the texts of both.
    pub(super) texts: usize,
}

impl Waiting {
    fn is_closed(&self) -> bool {
        self.response.is_some() || self.answered
    }

    fn is_late(&self) -> bool {
        self.request.is_some() || self.asked
    }
}

/// All in front of it are past something.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor(u16);

impl Cursor {
    fn first(&mut self, queue: &VecDeque<Waiting>, is_past: impl Fn(&Waiting) -> bool) -> Option<usize> {
        while let Some(exchange) = queue.get(usize::from(self.0)) {
            if !is_past(exchange) {
                return Some(usize::from(self.0));
            }
            self.0 += 1;
        }
        None
    }
}

/// At most [`PIPELINE`](super::PIPELINE) exchanges, in the order of their requests.
#[derive(Debug, Default)]
pub(super) struct Queue {
    exchanges: VecDeque<Waiting>,
    closed: Cursor,
    answered: Cursor,
    late: Cursor,
    asked: Cursor,
    sent_before: Cursor,
    /// The place of the request that came last, plus one; 0 if it has left.
    asking: u16,
}

impl Index<usize> for Queue {
    type Output = Waiting;

    fn index(&self, at: usize) -> &Waiting {
        &self.exchanges[at]
    }
}

impl IndexMut<usize> for Queue {
    fn index_mut(&mut self, at: usize) -> &mut Waiting {
        &mut self.exchanges[at]
    }
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.exchanges.len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.exchanges.capacity() * size_of::<Waiting>()
    }

    pub(super) fn push_back(&mut self, exchange: Waiting) {
        if self.exchanges.capacity() == 0 {
            // Few connections have several at a time.
            self.exchanges.reserve_exact(1);
        }
        self.exchanges.push_back(exchange);
    }

    pub(super) fn pop_front(&mut self) -> Option<Waiting> {
        let first = self.exchanges.pop_front()?;
        for cursor in [&mut self.closed, &mut self.answered, &mut self.late, &mut self.asked, &mut self.sent_before] {
            cursor.0 = cursor.0.saturating_sub(1);
        }
        self.asking = self.asking.saturating_sub(1);
        if self.exchanges.is_empty() && self.exchanges.capacity() > 16 {
            self.exchanges = VecDeque::new();
        }
        Some(first)
    }

    pub(super) fn pop_if(&mut self, is_over: impl Fn(&Waiting) -> bool) -> Option<Waiting> {
        if is_over(self.exchanges.front()?) { self.pop_front() } else { None }
    }

    /// The first that awaits a response, as do all behind it.
    pub(super) fn open(&mut self) -> Option<usize> {
        self.closed.first(&self.exchanges, Waiting::is_closed)
    }

    /// The first that awaits a request.
    pub(super) fn early(&mut self) -> Option<usize> {
        self.late.first(&self.exchanges, Waiting::is_late)
    }

    /// The exchange whose request comes now.
    pub(super) fn ask(&mut self, at: usize) -> &mut Waiting {
        self.asking = at as u16 + 1;
        &mut self.exchanges[at]
    }

    /// The exchange whose body a side is sending.
    pub(super) fn current(&mut self, is_client: bool) -> Option<&mut Waiting> {
        if is_client {
            let at = self.asking.checked_sub(1)?;
            self.exchanges.get_mut(usize::from(at)).filter(|exchange| !exchange.asked)
        } else {
            let at = self.answered.first(&self.exchanges, |exchange| exchange.answered)?;
            Some(&mut self.exchanges[at]).filter(|exchange| exchange.response.is_some())
        }
    }

    /// Those that await a request were sent theirs before.
    pub(super) fn sent_before(&mut self) {
        let from = std::mem::replace(&mut self.sent_before.0, self.exchanges.len() as u16);
        for exchange in self.exchanges.range_mut(usize::from(from)..) {
            exchange.is_early |= !exchange.is_late();
        }
    }

    /// No request of those that are there is still to come.
    pub(super) fn all_asked(&mut self) {
        if let Some(from) = self.asked.first(&self.exchanges, |exchange| exchange.asked) {
            self.exchanges.range_mut(from..).for_each(|exchange| exchange.asked = true);
        }
    }

    /// No response of those that are there is still to come.
    pub(super) fn all_answered(&mut self) {
        self.exchanges.iter_mut().for_each(|exchange| exchange.answered = true);
    }
}
