//! How the settings of a pool are applied, over the [hand-off](crate::hand_off) and the [queue](crate::queue): which of
//! the two takes a task, what happens to a task for which there is neither a thread nor room, and what new limits
//! change.

use crate::error::{BuildError, Reason, Rejected};
use crate::settings::{Limits, Queueing, Rejection};
use crate::shared::{Shared, Work};
use crate::slot::Slot;
use crate::sync::{Arc, Relaxed, SeqCst, fence};
use crate::task::Task;
use crate::worker::Context;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Shared {
    /// Accepts the task, or returns it with the reason. Waits only for a thread that is being started, and for none in
    /// `start_with`.
    pub(crate) fn try_execute(self: &Arc<Self>, task: Task) -> Result<(), Rejected<Task>> {
        match self.config.queueing {
            Queueing::HandOff(_) => self.hand_off(task),
            Queueing::Unbounded | Queueing::Bounded(_) => self.enqueue(task, None),
        }
    }

    /// Like [`try_execute`](Self::try_execute), but with [`Rejection::Block`] and a queue the caller also waits for
    /// room.
    fn execute_or_wait(self: &Arc<Self>, task: Task) -> Result<(), Rejected<Task>> {
        match (self.config.queueing, self.config.rejection) {
            (Queueing::Unbounded | Queueing::Bounded(_), Rejection::Block(timeout)) => {
                self.enqueue(task, Some(timeout))
            }
            _ => self.try_execute(task),
        }
    }

    /// Accepts the task, or applies the rejection policy to it.
    pub(crate) fn execute(self: &Arc<Self>, task: Task) -> Result<(), Rejected<Task>> {
        let (mut task, reason) = match self.execute_or_wait(task) {
            Ok(()) => return Ok(()),
            Err(rejected) => rejected.split(),
        };
        if !matches!(reason, Reason::Saturated) {
            return Err(self.reject(Rejected::new(task, reason)));
        }
        match self.config.rejection {
            Rejection::Return => Err(self.reject(Rejected::new(task, reason))),
            Rejection::CallerRuns => {
                self.rejected.fetch_add(1, Relaxed);
                let _context = Context::enter(self, None);
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| task.run())) {
                    self.take_panic(payload);
                }
                Ok(())
            }
            // With a queue, `execute_or_wait` has waited already; in `start_with` neither does.
            Rejection::Block(timeout) => self.put(task, timeout).map_err(|rejected| self.reject(rejected)),
            Rejection::Discard => {
                self.discard(task);
                Ok(())
            }
            Rejection::DiscardOldest => loop {
                match self.oldest() {
                    Some(oldest) => self.discard(oldest),
                    // All have begun, or there is no queue.
                    None if matches!(self.config.queueing, Queueing::HandOff(_)) => {
                        self.discard(task);
                        return Ok(());
                    }
                    None => {}
                }
                match self.try_execute(task).map_err(Rejected::split) {
                    Ok(()) => return Ok(()),
                    Err((again, Reason::Saturated)) => task = again,
                    Err((task, reason)) => return Err(self.reject(Rejected::new(task, reason))),
                }
            },
        }
    }

    /// Counts a task that goes back to its caller.
    pub(crate) fn reject(&self, rejected: Rejected<Task>) -> Rejected<Task> {
        self.rejected.fetch_add(1, Relaxed);
        rejected
    }

    /// Drops a task that will not run, and counts it.
    pub(crate) fn discard(&self, task: Task) {
        self.discarded.fetch_add(1, Relaxed);
        self.let_go(task);
    }

    /// The work of a thread between its start and its end.
    pub(crate) fn serve(self: &Arc<Self>, slot: &Slot, first: Option<Task>) {
        match self.config.queueing {
            Queueing::HandOff(_) => self.serve_hand_offs(slot, first),
            Queueing::Unbounded | Queueing::Bounded(_) => self.serve_queue(slot, first),
        }
    }

    /// Changes the limits on threads and the keep-alive time.
    pub(crate) fn set_limits(self: &Arc<Self>, change: impl FnOnce(&mut Limits)) -> Result<(), BuildError> {
        let mut state = self.lock();
        let mut limits = state.limits;
        change(&mut limits);
        limits.check()?;
        state.limits = limits;
        self.publish(&limits);
        fence(SeqCst);
        // Waiting threads are woken and look at the new limits. They need the lock before they can wait again, so this
        // loop ends. Working threads look at the limits when they are done.
        while self.idle.try_put(Work { task: None, reserved: false }).is_ok() {}
        // Waiting tasks may now begin in further threads. A caller that waits for a thread being started may start
        // another one. If a start fails here, the error is dropped: the existing threads run the tasks.
        self.started.notify_all();
        let puts = self.idle.waiting_puts();
        let mut further = 0;
        while further < puts && state.may_grow() {
            self.count_thread(&mut state);
            further += 1;
        }
        self.go_on(state);
        (0..further).for_each(|_| self.let_go(self.start(None)));
        Ok(())
    }
}
