//! Tasks handed directly to threads: the cached pool.
//!
//! Source: section 1 and Figure 6 of "Scalable Synchronous Queues" (Scherer, Lea, Scott), where a synchronous queue is
//! the core of the ThreadPoolExecutor.
//!
//! # How it works
//!
//! 1. An idle thread waits in a take of the synchronous queue, for the keep-alive time.
//! 2. A caller puts its task to the queue by a `try_put`. One compare-and-swap of the waiting take's word gives the
//!    task to that thread.
//! 3. If no take waits, a thread is started with the task. If no further thread is allowed, the policy decides: the
//!    task is rejected, or its caller waits in a put, which the next free thread finds.
//! 4. A take whose time is up is withdrawn by a compare-and-swap of the same word. So a thread either has a task or may
//!    end. No count of idle threads exists beside the queue that could disagree with it.
//!
//! # Synchronization
//!
//! - Everything that happened before a task was put is visible to the task, through the queue or through the start of
//!   the thread.
//! - A thread that ends looks for a put by a `try_take`, under the same lock under which it is uncounted. A caller that
//!   waits registers its put before it takes that lock, and then checks whether a thread may be started and whether one
//!   runs. So one of the two sees the other. A worker that is dropped looks for puts in the same way. If no thread runs
//!   and all allowed threads are still being started, the caller waits until those starts have succeeded or failed.
//! - The queue is closed after the phase has changed. A task that meets a take between the two came before the
//!   shutdown.
//!
//! # Progress
//!
//! A `try_put` is lock-free. A start, an end and a rejection take the lock.
//!
//! # When to use it, and when not
//!
//! Use it for tasks that wait or take long, and that must not wait for each other: each begins at once, in a thread of
//! its own. For many short tasks a [queue](crate::queue) is several times as fast, because a thread can take many at a
//! time.

use crate::current::is_starting;
use crate::error::{Reason, Rejected};
use crate::shared::{Phase, Shared, Work};
use crate::slot::{Slot, add};
use crate::sync::{Arc, Instant, Relaxed, SeqCst, fence, wait};
use crate::task::Task;
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPushError};
use corelane::handoff::WaitLimit;
use std::time::Duration;

impl Work {
    fn of(task: Task) -> Self {
        Self { task: Some(task), reserved: false }
    }

    pub(crate) fn into_task(self) -> Task {
        self.task.expect("it was made with a task")
    }
}

impl Shared {
    /// Hands the task to a waiting thread or to a new one.
    #[inline]
    pub(crate) fn hand_off(self: &Arc<Self>, mut task: Task) -> Result<(), Rejected<Task>> {
        let core_first = self.config.core_first && self.hints.threads.load(Relaxed) < self.hints.core.load(Relaxed);
        if !core_first {
            match self.idle.try_put(Work::of(task)) {
                Ok(()) => return Ok(()),
                Err(TryPushError::Closed(work)) => return Err(Rejected::new(work.into_task(), Reason::ShutDown)),
                Err(error) => task = error.into_inner().into_task(),
            }
        }
        self.start_with_task(task)
    }

    fn start_with_task(self: &Arc<Self>, task: Task) -> Result<(), Rejected<Task>> {
        let mut state = self.lock();
        if !state.may_grow() {
            let shut_down = state.phase != Phase::Running;
            drop(state);
            return Err(Rejected::new(task, if shut_down { Reason::ShutDown } else { Reason::Saturated }));
        }
        self.count_thread(&mut state);
        drop(state);
        self.start(Some(task))
            .map_err(|(error, task)| Rejected::new(task.expect("it did not run"), Reason::NoThread(error)))
    }

    /// Waits until a thread takes the task, at most for `timeout`.
    pub(crate) fn put(self: &Arc<Self>, mut task: Task, timeout: Duration) -> Result<(), Rejected<Task>> {
        if is_starting(self.id) {
            return Err(Rejected::new(task, Reason::Saturated));
        }
        let limit = WaitLimit::new().timeout(timeout);
        let until = Instant::now().checked_add(timeout);
        loop {
            let ticket = self.idle.reserve_put(Work::of(task));
            let state = self.lock();
            if state.may_grow() {
                drop(state);
                let Some(work) = ticket.abort() else { return Ok(()) };
                match self.start_with_task(work.into_task()).map_err(Rejected::split) {
                    Ok(()) => return Ok(()),
                    Err((again, Reason::Saturated)) => task = again,
                    Err((task, reason)) => return Err(Rejected::new(task, reason)),
                }
                continue;
            }
            if state.phase == Phase::Running && state.live == 0 {
                // All allowed threads are still being started. If their starts fail, no thread would take the put.
                let Some(work) = ticket.abort() else { return Ok(()) };
                task = work.into_task();
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Err(Rejected::new(task, Reason::TimedOut));
                }
                drop(wait(&self.started, state, until));
                continue;
            }
            drop(state);
            return ticket.wait_with(&limit).map_err(|error| {
                let reason = match error {
                    PushTimeoutError::Closed(_) => Reason::ShutDown,
                    _ => Reason::TimedOut,
                };
                Rejected::new(error.into_inner().into_task(), reason)
            });
        }
    }

    pub(crate) fn serve_hand_offs(&self, slot: &Slot, first: Option<Task>) {
        let mut task = first;
        loop {
            if let Some(task) = task.take() {
                add(&slot.tally.direct, 1);
                self.run(slot, task);
            }
            let ticket = self.idle.reserve_take();
            // The fence pairs with the one in `set_limits`: the thread that changes the limits sees this take, or this
            // thread sees the new limits.
            fence(SeqCst);
            if self.hints.threads.load(Relaxed) > self.hints.max.load(Relaxed) {
                task = ticket.abort().and_then(|work| work.task);
                if task.is_none() {
                    let mut state = self.lock();
                    if state.threads > state.limits.max {
                        match self.idle.try_take() {
                            Ok(work) => task = work.task,
                            Err(_) => return self.retire(&mut state),
                        }
                    }
                }
                continue;
            }
            task = match ticket.wait_with(&self.wait_limit()) {
                Ok(Work { task: Some(task), .. }) => Some(task),
                Ok(Work { task: None, .. }) => {
                    // `set_limits` holds the lock while it wakes threads. A woken thread waits for that lock here, so
                    // it is not woken twice.
                    drop(self.lock());
                    None
                }
                Err(PopTimeoutError::Closed) => return self.retire(&mut self.lock()),
                Err(_) => {
                    let mut state = self.lock();
                    match self.idle.try_take() {
                        Ok(work) => work.task,
                        Err(_) if state.has_idle_surplus() => return self.retire(&mut state),
                        Err(_) => None,
                    }
                }
            };
        }
    }
}
