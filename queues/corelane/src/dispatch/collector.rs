//! Results back: a queue from each worker to one thread, which takes from all of them in turn.

use crate::bound::Bounded;
use crate::end::wait::{Awaitable, wait_for};
use crate::error::{ChannelError, Closed, PopTimeoutError, TryPopError};
use crate::macros::debug;
use crate::spsc::{self, Consumer, Design, Lane, Options, Producer};
use crate::start::START;
use crate::sync::Instant;
use crate::wait::{Adaptive, Selectable, Sleeper, Strategy, selectable};
use std::time::Duration;
use std::vec::Vec;

/// Results that are taken from one worker before it is another's turn.
const TURN: usize = 32;

/// The end where the results of all workers come together. One thread at a time collects.
///
/// It takes at most 32 results of one worker before it looks at the next one's queue, so no worker's results wait for
/// more than 32 of each other worker. A worker whose producer is gone is forgotten once its queue is drained.
///
/// ```
/// use corelane::dispatch::{self, Collector};
///
/// let (mut dispatcher, workers) = dispatch::channel(3, 64);
/// let mut squares = Collector::new(64);
/// std::thread::scope(|scope| {
///     for mut worker in workers {
///         let mut results = squares.add().unwrap();
///         scope.spawn(move || {
///             for job in &mut worker {
///                 results.push(job * job).expect("the collector is alive");
///             }
///         });
///     }
///     for job in 1..=10_u64 {
///         dispatcher.dispatch(job).unwrap();
///     }
///     dispatcher.join().unwrap();
///     let mut sum = 0;
///     while let Ok((_worker, square)) = squares.collect() {
///         sum += square;
///     }
///     assert_eq!(sum, 385);
/// });
/// ```
pub struct Collector<A: Send, D: Design<A> = Lane, W: Strategy = Adaptive> {
    queues: Vec<Consumer<A, D, W>>,
    /// The number of each queue's producer.
    numbers: Vec<usize>,
    added: usize,
    at: usize,
    /// Of the turn.
    left: usize,
    capacity: usize,
    wait: W,
}

impl<A: Send> Collector<A> {
    /// For queues of so many results each. [`add`](Self::add) makes them, and refuses a capacity that none can have.
    pub fn new(capacity: usize) -> Self {
        Self::with(capacity, Adaptive)
    }
}

impl<A: Send, D: Design<A> + Bounded, W: Strategy> Collector<A, D, W> {
    /// For queues of so many results each, with another way to wait, or another design. As [`new`](Self::new) it makes
    /// no queue yet.
    ///
    /// ```
    /// use corelane::dispatch::Collector;
    /// use corelane::spsc::McRing;
    /// use corelane::wait::Park;
    ///
    /// let mut results = Collector::<u32, McRing, _>::with(64, Park);
    /// let mut first = results.add().unwrap();
    /// first.push(7).unwrap();
    /// assert_eq!(results.collect(), Ok((0, 7)));
    /// ```
    pub fn with(capacity: usize, wait: W) -> Self {
        let (queues, numbers) = (Vec::new(), Vec::new());
        Self { queues, numbers, added: 0, at: 0, left: TURN, capacity, wait }
    }

    /// Lets another worker bring results. They come with its number, which counts up from 0: as the workers' numbers
    /// do, where one is added for each of them in order.
    ///
    /// # Errors
    /// As [`spsc::channel_with`].
    pub fn add(&mut self) -> Result<Producer<A, D, W>, ChannelError> {
        let options = Options::new().wait(self.wait.clone()).start_at(START);
        let (producer, consumer) = spsc::channel_with(self.capacity, options)?;
        self.queues.push(consumer);
        self.numbers.push(self.added);
        self.added = self.added.wrapping_add(1);
        Ok(producer)
    }
}

impl<A: Send, D: Design<A>, W: Strategy> Collector<A, D, W> {
    /// Takes a result, with the number of its worker. Never waits.
    ///
    /// # Errors
    /// `Empty` only if all results that were there before the call have been taken; `Closed` if every producer is gone
    /// as well.
    ///
    /// ```
    /// use corelane::dispatch::Collector;
    /// use corelane::error::TryPopError;
    ///
    /// let mut results = Collector::new(8);
    /// let mut first = results.add().unwrap();
    /// assert_eq!(results.try_collect(), Err(TryPopError::Empty));
    /// first.push('a').unwrap();
    /// drop(first);
    /// assert_eq!(results.try_collect(), Ok((0, 'a')));
    /// assert_eq!(results.try_collect(), Err(TryPopError::Closed));
    /// ```
    pub fn try_collect(&mut self) -> Result<(usize, A), TryPopError> {
        let mut seen = 0;
        while seen < self.queues.len() {
            if self.at >= self.queues.len() || self.left == 0 {
                self.at = if self.at + 1 < self.queues.len() { self.at + 1 } else { 0 };
                self.left = TURN;
            }
            match self.queues[self.at].try_pop() {
                Ok(result) => {
                    self.left -= 1;
                    return Ok((self.numbers[self.at], result));
                }
                Err(TryPopError::Empty | TryPopError::Busy) => {
                    seen += 1;
                    self.left = 0;
                }
                // The next one moves to its place.
                Err(TryPopError::Closed) => {
                    self.numbers.remove(self.at);
                    self.left = TURN;
                    self.queues.remove(self.at);
                }
            }
        }
        Err(if self.queues.is_empty() { TryPopError::Closed } else { TryPopError::Empty })
    }

    /// Takes a result, with the number of its worker, waiting for one.
    ///
    /// # Errors
    /// `Closed` once every producer is gone and all results have been taken.
    pub fn collect(&mut self) -> Result<(usize, A), Closed> {
        // Without a deadline nothing else ends it.
        self.collect_until(None).map_err(|_| Closed(()))
    }

    /// Takes a result, waiting at most this long for one.
    ///
    /// # Errors
    /// `Timeout`, never early, or `Closed` once every producer is gone and all results have been taken.
    ///
    /// ```
    /// use corelane::dispatch::Collector;
    /// use corelane::error::PopTimeoutError;
    /// use std::time::Duration;
    ///
    /// let mut results = Collector::new(8);
    /// let mut first = results.add().unwrap();
    /// first.push('a').unwrap();
    /// let soon = Duration::from_millis(1);
    /// assert_eq!(results.collect_timeout(soon), Ok((0, 'a')));
    /// assert_eq!(results.collect_timeout(soon), Err(PopTimeoutError::Timeout));
    /// ```
    pub fn collect_timeout(&mut self, timeout: Duration) -> Result<(usize, A), PopTimeoutError> {
        self.collect_until(Instant::now().checked_add(timeout))
    }

    fn collect_until(&mut self, deadline: Option<Instant>) -> Result<(usize, A), PopTimeoutError> {
        let mut timed_out = false;
        loop {
            match self.try_collect() {
                Ok(result) => return Ok(result),
                Err(TryPopError::Closed) => return Err(PopTimeoutError::Closed),
                Err(_) if timed_out => return Err(PopTimeoutError::Timeout),
                Err(TryPopError::Empty | TryPopError::Busy) => timed_out = !self.wait_for_result(deadline),
            }
        }
    }

    /// Whether no worker brings results any more, and all have been taken.
    pub(super) fn is_over(&self) -> bool {
        self.queues.is_empty()
    }

    /// False when the time is up.
    fn wait_for_result(&mut self, deadline: Option<Instant>) -> bool {
        let wait = self.wait.clone();
        wait_for(self, &wait, deadline).is_some()
    }
}

impl<A: Send, D: Design<A>, W: Strategy> Awaitable for Collector<A, D, W> {
    type Found = ();

    fn look(&mut self) -> Option<()> {
        self.ready(1).then_some(())
    }

    fn arm(&mut self, sleeper: Sleeper) {
        Selectable::arm(self, 1, sleeper);
    }

    fn disarm(&mut self, sleeper: Sleeper) {
        Selectable::disarm(self, sleeper);
    }
}

impl<A: Send, D: Design<A>, W: Strategy> selectable::sealed::Sealed for Collector<A, D, W> {}

impl<A: Send, D: Design<A>, W: Strategy> Selectable for Collector<A, D, W> {
    fn ready(&mut self, _: usize) -> bool {
        self.queues.is_empty() || self.queues.iter_mut().any(|queue| queue.ready(1))
    }

    fn arm(&mut self, _: usize, sleeper: Sleeper) {
        self.queues.iter_mut().for_each(|queue| queue.arm(1, sleeper));
    }

    fn disarm(&mut self, sleeper: Sleeper) {
        self.queues.iter_mut().for_each(|queue| queue.disarm(sleeper));
    }
}

debug! { [A: Send, D: Design<A>, W: Strategy] Collector<[A, D, W]>: self, workers: self.numbers }
