//! Random sequences of calls of one thread, each answered as a deque of bounded length would. There is no other thread
//! to wait for, so no call is `Busy`.

use crate::case::{CAPACITIES, Ends, Rx, Shared, Tx, channel_with};
use crate::sequences_judge::judge;
use corelane::error::{Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError};
use corelane::wait::Adaptive;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::time::Duration;

const SEQUENCES: u32 = 400;

#[derive(Clone, Copy, Debug)]
enum Call {
    Push,
    PushFor,
    PushBatch(usize),
    PushBatchFor(usize),
    /// As many as there is room for.
    PushAll(usize),
    Pop,
    PopFor,
    PopBatch(usize),
    PopBatchFor(usize),
    Close,
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        40 => Just(Call::Push),
        10 => Just(Call::PushFor),
        20 => (0..12_usize).prop_map(Call::PushBatch),
        10 => (0..12_usize).prop_map(Call::PushBatchFor),
        10 => (0..12_usize).prop_map(Call::PushAll),
        40 => Just(Call::Pop),
        10 => Just(Call::PopFor),
        30 => (0..12_usize).prop_map(Call::PopBatch),
        10 => (0..12_usize).prop_map(Call::PopBatchFor),
        2 => Just(Call::Close),
    ]
}

/// A channel, and what is to be in it.
struct Run<C: Shared> {
    ends: Ends<C, u64, Adaptive>,
    model: VecDeque<u64>,
    bound: usize,
    closed: bool,
    next: u64,
}

impl<C: Shared> Run<C> {
    fn room(&self) -> usize {
        if self.closed { 0 } else { self.bound - self.model.len() }
    }

    /// The next items, which are to go in as far as they fit.
    fn batch(&mut self, count: usize) -> (Vec<u64>, usize) {
        let items: Vec<_> = (self.next..self.next + count as u64).collect();
        let fits = count.min(self.room());
        self.model.extend(&items[..fits]);
        self.next += count as u64;
        (items, fits)
    }

    fn refusal<T>(&self, item: T) -> TryPushError<T> {
        if self.closed { TryPushError::Closed(item) } else { TryPushError::Full(item) }
    }

    fn refusal_in_time<T>(&self, item: T) -> PushTimeoutError<T> {
        if self.closed { PushTimeoutError::Closed(item) } else { PushTimeoutError::Timeout(item) }
    }

    fn call(&mut self, call: Call) {
        match call {
            Call::Push => {
                let (items, fits) = self.batch(1);
                let due = if fits == 1 { Ok(()) } else { Err(self.refusal(items[0])) };
                assert_eq!(self.ends.0.try_push(items[0]), due);
            }
            Call::PushFor => {
                let (items, fits) = self.batch(1);
                let due = if fits == 1 { Ok(()) } else { Err(self.refusal_in_time(items[0])) };
                assert_eq!(self.ends.0.push_timeout(items[0], Duration::ZERO), due);
            }
            Call::PushBatch(count) => {
                let (mut items, fits) = self.batch(count);
                let left = items[fits..].to_vec();
                let due = if fits == 0 && count > 0 { Err(self.refusal(())) } else { Ok(fits) };
                assert_eq!(self.ends.0.try_push_batch(&mut items), due);
                assert_eq!(items, left);
            }
            Call::PushBatchFor(count) => {
                let (mut items, fits) = self.batch(count);
                let left = items[fits..].to_vec();
                let due = if left.is_empty() { Ok(()) } else { Err(self.refusal_in_time(())) };
                assert_eq!(self.ends.0.push_batch_timeout(&mut items, Duration::ZERO), due);
                assert_eq!(items, left);
            }
            Call::PushAll(count) => {
                let count = if self.closed { count } else { count.min(self.room()) };
                let (mut items, fits) = self.batch(count);
                let left = items[fits..].to_vec();
                let due = if fits == count { Ok(()) } else { Err(Closed(())) };
                assert_eq!(self.ends.0.push_batch(&mut items), due);
                assert_eq!(items, left);
            }
            Call::Pop => {
                let error = if self.closed { TryPopError::Closed } else { TryPopError::Empty };
                assert_eq!(self.ends.1.try_pop(), self.model.pop_front().ok_or(error));
            }
            Call::PopFor => {
                let error = if self.closed { PopTimeoutError::Closed } else { PopTimeoutError::Timeout };
                assert_eq!(self.ends.1.pop_timeout(Duration::ZERO), self.model.pop_front().ok_or(error));
            }
            Call::PopBatch(max) => {
                let mut items = vec![u64::MAX];
                let there = max.min(self.model.len());
                let error = if self.closed { TryPopError::Closed } else { TryPopError::Empty };
                let due = if there == 0 && max > 0 { Err(error) } else { Ok(there) };
                assert_eq!(self.ends.1.try_pop_batch(&mut items, max), due);
                assert!(items[1..].iter().copied().eq(self.model.drain(..there)));
            }
            Call::PopBatchFor(max) => {
                let mut items = vec![u64::MAX];
                let there = max.min(self.model.len());
                let error = if self.closed { PopTimeoutError::Closed } else { PopTimeoutError::Timeout };
                let due = if there == 0 && max > 0 { Err(error) } else { Ok(there) };
                assert_eq!(self.ends.1.pop_batch_timeout(&mut items, max, Duration::ZERO), due);
                assert!(items[1..].iter().copied().eq(self.model.drain(..there)));
            }
            Call::Close => {
                self.ends.1.close();
                self.closed = true;
            }
        }
        let shown = (self.ends.0.len(), self.ends.0.is_empty(), self.ends.1.is_closed());
        assert_eq!(shown, (self.model.len(), self.model.is_empty(), self.closed));
    }
}

/// Positions and versions wrap around in some.
pub(crate) fn random_sequences_are_answered_as_by_a_deque<C: Shared>() {
    let start = prop_oneof![Just(0), (0..60_usize).prop_map(|back| usize::MAX - back)];
    // Above 64 a sender of lanes is told of room some items late.
    let capacities = &CAPACITIES[..if C::LANES { 5 } else { 6 }];
    let channels = (prop::sample::select(capacities), start, vec(call(), 0..150));
    judge(SEQUENCES, &channels, |(capacity, start, calls)| {
        let bound = if C::BOUNDED { capacity } else { usize::MAX };
        let ends = channel_with::<C, u64, _>(capacity, start, Adaptive);
        let mut run = Run::<C> { ends, model: VecDeque::new(), bound, closed: false, next: 0 };
        calls.into_iter().for_each(|call| run.call(call));
    });
}
