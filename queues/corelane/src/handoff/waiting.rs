//! How long a request waits, and how its thread spends the time.

use super::clock::clock;
use super::dual::{Answer, Dual, Fate, Otherwise, follow_up, withdraw};
use super::pool::{Index, Node};
use crate::error::{PopTimeoutError, PushTimeoutError};
use crate::start::START_32;
use crate::sync::{Acquire, Arc, AtomicBool, Instant, Mutex, MutexGuard, Relaxed, Release, spin_loop, yield_now};
use crate::wait::{Selectable, Sleeper, Token, has_one_cpu, selectable};
use alloc::vec::Vec;
use core::cell::Cell;
use core::fmt;
// Not loom's: what is learnt changes no order.
use core::sync::atomic::AtomicU32 as StdAtomicU32;
use std::time::Duration;

/// How long a thread waits for a partner at most: for ever, until a deadline or for a time, until a [`CancelToken`]
/// tells it to stop.
///
/// ```
/// use corelane::error::PopTimeoutError;
/// use corelane::handoff::{CancelToken, Fairness, SynchronousQueue, WaitLimit};
/// use std::time::{Duration, Instant};
///
/// let queue = SynchronousQueue::<u32>::new(Fairness::Fair);
/// let past = WaitLimit::new().deadline(Instant::now());
/// assert_eq!(queue.take_with(&past), Err(PopTimeoutError::Timeout));
/// let stop = CancelToken::new();
/// stop.cancel();
/// let limit = WaitLimit::new().timeout(Duration::from_secs(1)).cancel(&stop);
/// assert_eq!(queue.take_with(&limit), Err(PopTimeoutError::Cancelled));
/// ```
///
/// The first event ends the wait. Where several have happened, a partner goes before a cancellation, and a cancellation
/// before the end of the time.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitLimit<'a> {
    deadline: Option<Instant>,
    cancel: Option<&'a CancelToken>,
}

impl<'a> WaitLimit<'a> {
    /// For ever.
    pub fn new() -> Self {
        Self::default()
    }

    /// Until then. A time that has passed means: look once, do not wait.
    pub fn deadline(self, at: Instant) -> Self {
        Self { deadline: Some(at), ..self }
    }

    /// So long from now on; for ever if that is beyond what the clock can say.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { deadline: Instant::now().checked_add(timeout), ..self }
    }

    /// Until this token is cancelled.
    pub fn cancel(self, token: &'a CancelToken) -> Self {
        Self { cancel: Some(token), ..self }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(CancelToken::is_cancelled)
    }

    /// This time, or the deadline if that comes sooner.
    pub(super) fn sooner(&self, until: Instant) -> Instant {
        self.deadline.map_or(until, |at| at.min(until))
    }

    /// Sleeps until the token is set, or the limit may have come, or sooner for no reason.
    pub(super) fn sleep(&self, token: &Token) {
        let left = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
        match self.cancel {
            Some(cancel) => cancel.sleep(token, left),
            None => token.wait(left),
        }
    }

    /// Why not to wait any longer.
    pub(super) fn end(&self) -> Option<PopTimeoutError> {
        if self.is_cancelled() {
            Some(PopTimeoutError::Cancelled)
        } else if self.deadline.is_some_and(|at| Instant::now() >= at) {
            Some(PopTimeoutError::Timeout)
        } else {
            None
        }
    }
}

/// Tells waiting threads to stop. Clones are the same token; once cancelled it stays so.
///
/// ```
/// use corelane::handoff::{CancelToken, Fairness, SynchronousQueue, WaitLimit};
///
/// let queue = SynchronousQueue::<u32>::new(Fairness::Fair);
/// let stop = CancelToken::new();
/// std::thread::scope(|scope| {
///     let taker = scope.spawn(|| queue.take_with(&WaitLimit::new().cancel(&stop)));
///     stop.cancel();
///     assert!(taker.join().unwrap().unwrap_err().is_cancelled());
/// });
/// assert!(stop.is_cancelled());
/// assert!(queue.put_with(7, &WaitLimit::new().cancel(&stop)).unwrap_err().is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Cancel>);

#[derive(Default)]
struct Cancel {
    cancelled: AtomicBool,
    /// The threads that sleep and want to be woken. An entry is removed by the sleeper before it goes on.
    sleepers: Mutex<Vec<Bed>>,
}

/// Where a thread sleeps that is to be woken.
#[derive(Clone, Copy, PartialEq)]
enum Bed {
    /// Of a request: its own node's.
    Node(*const Token),
    /// Of a [`Select`](crate::wait::Select).
    Elsewhere(Sleeper),
}

// SAFETY: an address, which is only followed under the lock while the sleeper cannot leave.
unsafe impl Send for Bed {}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends every wait with this token, those to come too.
    pub fn cancel(&self) {
        let mut elsewhere = Vec::new();
        {
            let sleepers = self.0.sleepers();
            self.0.cancelled.store(true, Release);
            for &bed in &*sleepers {
                match bed {
                    // SAFETY: the sleeper removes its entry, under the lock, before its token can go.
                    Bed::Node(token) => unsafe { &*token }.notify(),
                    Bed::Elsewhere(sleeper) => elsewhere.push(sleeper),
                }
            }
        }
        // Not under the lock: a task's waker is foreign code, which may take it.
        elsewhere.into_iter().for_each(Sleeper::unpark);
    }

    /// True once [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Acquire)
    }

    /// Sleeps on `token` unless cancelled.
    fn sleep(&self, token: &Token, timeout: Option<Duration>) {
        let bed = Bed::Node(token);
        if self.0.add(bed) {
            token.wait(timeout);
            self.0.remove(bed);
        }
    }
}

impl Cancel {
    fn sleepers(&self) -> MutexGuard<'_, Vec<Bed>> {
        self.sleepers.lock().expect("nothing panics under this lock")
    }

    /// Not if it is cancelled: no thread would wake a sleeper that comes later.
    fn add(&self, bed: Bed) -> bool {
        let mut sleepers = self.sleepers();
        let is_cancelled = self.cancelled.load(Acquire);
        if !is_cancelled {
            sleepers.push(bed);
        }
        !is_cancelled
    }

    fn remove(&self, bed: Bed) {
        let mut sleepers = self.sleepers();
        if let Some(at) = sleepers.iter().position(|&other| other == bed) {
            sleepers.swap_remove(at);
        }
    }
}

impl selectable::sealed::Sealed for CancelToken {}

impl Selectable for CancelToken {
    fn ready(&mut self, _: usize) -> bool {
        self.is_cancelled()
    }

    fn arm(&mut self, _: usize, sleeper: Sleeper) {
        self.0.add(Bed::Elsewhere(sleeper));
    }

    fn disarm(&mut self, sleeper: Sleeper) {
        self.0.remove(Bed::Elsewhere(sleeper));
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CancelToken").field(&self.is_cancelled()).finish()
    }
}

/// The time from a wake-up until the thread that slept runs again, as measured in this process.
///
/// The waker writes down when it wakes, and the woken thread compares. This is a moving average, in nanoseconds. A
/// sample counts for at most twice the average, as some samples contain a whole time slice of another thread.
static WAKE_UP: StdAtomicU32 = StdAtomicU32::new(20_000);

/// The bounds of a spin.
const SPIN: core::ops::RangeInclusive<u32> = 2_000..=10_000;

fn learn(sample: u32) {
    let known = WAKE_UP.load(Relaxed);
    let sample = sample.min(known.saturating_mul(2));
    WAKE_UP.store(known - known / 8 + sample / 8, Relaxed);
}

/// How long the request that is next in line is spun for in all before its thread sleeps: a quarter of what sleep and
/// wake-up take.
pub(super) fn spin_time() -> Duration {
    let quarter = WAKE_UP.load(Relaxed) / 4;
    Duration::from_nanos(quarter.clamp(*SPIN.start(), *SPIN.end()).into())
}

/// Whether there is any use in a thread's spinning.
pub(super) fn spins() -> bool {
    !cfg!(any(corelane_loom, corelane_shuttle)) && !has_one_cpu()
}

/// Looks between two looks at the clock.
const LOOKS: u32 = 16;

/// Looks at a node's word until it changes or the time is up.
pub(super) fn spin<T>(node: &Node<T>, until: Instant) {
    loop {
        for _ in 0..LOOKS {
            if !node.word().is_waiting() {
                return;
            }
            spin_loop();
        }
        if Instant::now() >= until {
            return;
        }
    }
}

/// A spin is as long as this, until the thread yields to others.
const SLICE: Duration = Duration::from_micros(1);

/// A thread that yielded and is back so soon was alone: no other thread wants its CPU.
const ALONE: Duration = Duration::from_nanos(400);

/// A thread that was away for longer than this when it yielded goes to sleep: a thread that is woken is run sooner.
const TOO_LONG: Duration = Duration::from_micros(200);

/// How often a thread yields before it sleeps.
const TURNS: u32 = 64;

std::thread_local! {
    /// How many waits of this thread have begun with a spin in vain, or should have begun with one, since a spin
    /// helped.
    static MISSES: Cell<u32> = const { Cell::new(START_32) };
}

/// After so many misses a wait does not begin with a spin, but for each sixteenth: the partners run on this CPU.
const MANY: u32 = 128;

/// What a thread does before it sleeps. Returns when the request is decided, or when it is time to sleep.
///
/// A sleep and a wake-up cost ten times as much as the switch to a thread that is ready to run, and a partner that
/// shares this CPU runs only when this thread lets it. So:
///
/// 1. The thread begins with a spin: a partner that runs beside it is back before the switch to another thread is made.
///    Where that never helps, it yields at once.
/// 2. It yields, as long as there are other threads to yield to. They lose nothing by it.
/// 3. Where there are none, it spins if it is next in line, for as long as [`spin_time`] says in all.
fn linger<T>(dual: &impl Dual<T>, index: Index, limit: &WaitLimit<'_>) {
    let node = dual.pool().node(index);
    let mut budget = spin_time();
    // A request that is not next in line has little reason to stay awake.
    let idle = budget / 3;
    let misses = MISSES.get();
    let mut alone = misses < MANY || misses.is_multiple_of(16);
    let mut now = Instant::now();
    for turn in 0..TURNS {
        if alone {
            let burnt = if dual.is_next(index) {
                spin(node, limit.sooner(now + SLICE));
                if turn == 0 {
                    MISSES.set(if node.word().is_waiting() { misses.wrapping_add(1) } else { 0 });
                }
                now.elapsed()
            } else {
                idle
            };
            let Some(left) = budget.checked_sub(burnt) else { return };
            budget = left;
        }
        if turn == 0 && !alone {
            MISSES.set(misses.wrapping_add(1));
        }
        let leaves = Instant::now();
        if !node.word().is_waiting() || limit.sooner(leaves) < leaves {
            return;
        }
        yield_now();
        now = Instant::now();
        if now - leaves > TOO_LONG {
            return;
        }
        alone = now - leaves < ALONE;
    }
}

/// A take's item, nothing of a put; or why there was no partner, and a put's item.
pub(super) type Outcome<T> = Result<Option<T>, (PopTimeoutError, Option<T>)>;

/// How a request came out whose fate is decided.
pub(super) fn outcome<T>(fate: Fate<T>) -> Outcome<T> {
    match fate {
        Fate::Matched(item) => Ok(item),
        Fate::Closed(item) => Err((PopTimeoutError::Closed, item)),
    }
}

/// Waits for the fate of a registered request; withdraws it when the limit comes first, and returns a put's item.
///
/// # Safety
/// The caller owns the request, and never asks for it again.
pub(super) unsafe fn wait<T>(dual: &impl Dual<T>, index: Index, limit: &WaitLimit<'_>) -> Outcome<T> {
    let node = dual.pool().node(index);
    let spins = spins();
    if spins && !limit.is_cancelled() {
        linger(dual, index, limit);
    }
    // In place of a spin: others come a long way before the sleep.
    #[cfg(corelane_shuttle)]
    {
        use crate::sync::model::step;
        use shuttle::rand::{Rng, thread_rng};
        (0..thread_rng().gen_range(0..16)).for_each(|_| step());
    }
    loop {
        // SAFETY: by the caller's promise; an answer ends the loop.
        if let Some(fate) = unsafe { follow_up(dual.pool(), index) } {
            return outcome(fate);
        }
        if let Some(end) = limit.end() {
            // SAFETY: as above.
            match unsafe { withdraw(dual.pool(), index, || dual.clean(index)) } {
                Some(item) => return Err((end, item)),
                None => continue,
            }
        }
        let left = limit.deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if spins && left.is_some_and(|left| left < SHORTEST_SLEEP) {
            spin_loop();
            continue;
        }
        let word = node.word();
        if !word.is_waiting() || !word.is_parked() && !node.change(word, word.parked()) {
            continue;
        }
        limit.sleep(&node.token);
        if let Some(woken) = node.woken_at() {
            learn(clock().wrapping_sub(woken));
        }
    }
}

/// A sleep of less takes longer than asked for.
const SHORTEST_SLEEP: Duration = Duration::from_micros(2);

/// Makes a put, or a take that has no item, within the limit.
#[inline]
fn request<T>(dual: &impl Dual<T>, item: Option<T>, limit: &WaitLimit<'_>) -> Outcome<T> {
    match dual.request(item, Otherwise::Wait) {
        Answer::Matched(item) => Ok(item),
        Answer::Closed(item) => Err((PopTimeoutError::Closed, item)),
        // SAFETY: just registered, and forgotten.
        Answer::Waits(index) => unsafe { wait(dual, index, limit) },
        Answer::Alone(_) => unreachable!("it waits"),
    }
}

/// Hands the item over, within the limit; returns that of an exchange.
#[inline]
pub(super) fn put<T>(dual: &impl Dual<T>, item: T, limit: &WaitLimit<'_>) -> Result<Option<T>, PushTimeoutError<T>> {
    handed_over(request(dual, Some(item), limit))
}

/// What a put says at the end of its wait.
pub(super) fn handed_over<T>(outcome: Outcome<T>) -> Result<Option<T>, PushTimeoutError<T>> {
    outcome.map_err(|(why, item)| match (why, item.expect(ITEM)) {
        (PopTimeoutError::Timeout, item) => PushTimeoutError::Timeout(item),
        (PopTimeoutError::Cancelled, item) => PushTimeoutError::Cancelled(item),
        (PopTimeoutError::Closed, item) => PushTimeoutError::Closed(item),
    })
}

/// Takes an item, within the limit.
#[inline]
pub(super) fn take<T>(dual: &impl Dual<T>, limit: &WaitLimit<'_>) -> Result<T, PopTimeoutError> {
    taken(request(dual, None, limit))
}

/// What a take says at the end of its wait.
pub(super) fn taken<T>(outcome: Outcome<T>) -> Result<T, PopTimeoutError> {
    outcome.map(|item| item.expect(ITEM)).map_err(|(why, _)| why)
}

const ITEM: &str = "a put that fails has its item back, a take that succeeds has one";
