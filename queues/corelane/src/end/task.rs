//! A task's wait at the end of a queue, which the futures of `spsc` and of `dispatch` have in common. The protocol is
//! in the header of `spsc/asynchronous.rs`, "How it works".

use super::End;
use super::wait::{Ended, Look, look};
use crate::error::Closed;
use crate::sync::{heavy_barrier, parks_are_bounded};
use crate::wait::{Doubt, wake_quietly};
use core::task::{Context, Poll, ready};

/// Ready calls of an end after which one is pending, so that other tasks get a turn.
pub const BUDGET: u32 = 128;

pub(crate) const POLLED_AGAIN: &str = "a future must not be polled after it was ready";

/// What a task's end keeps in mind from one poll to the next, or a task's ends.
#[derive(Debug)]
pub(crate) struct Polls {
    /// Ready ones since the last that was pending.
    ready: u32,
    /// Whether the other end may overlook the flag.
    doubt: Doubt,
}

impl Polls {
    /// Those of ends that become a task's now.
    pub(crate) fn of<'a>(ends: impl IntoIterator<Item = &'a End>) -> Self {
        let mut polls = Self { ready: 0, doubt: Doubt::default() };
        polls.turn(ends);
        polls
    }

    fn turn<'a>(&mut self, ends: impl IntoIterator<Item = &'a End>) {
        let mut overlooked = false;
        ends.into_iter().for_each(|end| overlooked |= end.become_task());
        if overlooked && !cfg!(corelane_loom) {
            self.doubt.begin();
        }
    }

    /// The heavy half of the barrier, for these ends, which have raised their flags. If membarrier is refused by now,
    /// other ends may overlook these flags for a moment, as they may those of ends that have just become a task's.
    pub(crate) fn pass_barrier<'a>(&mut self, ends: impl IntoIterator<Item = &'a End>) {
        heavy_barrier();
        if parks_are_bounded() {
            self.turn(ends);
        }
    }

    /// To be asked before a poll becomes ready: is it rather to be pending, for others' sake?
    #[inline]
    pub(crate) fn are_enough(&mut self, context: &Context<'_>) -> bool {
        self.ready += 1;
        if self.ready <= BUDGET {
            return false;
        }
        self.ready = 0;
        wake_quietly(context.waker());
        true
    }

    /// Ready when the end is, or when it never will be. Otherwise its task will be woken.
    #[inline]
    pub(crate) fn ready<E: Look>(&mut self, end: &mut E, context: &Context<'_>) -> Poll<Result<(), Closed>> {
        if !end.is_ready(1) {
            ready!(self.wait(end, context))?;
        }
        if self.are_enough(context) {
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    #[cold]
    fn wait<E: Look>(&mut self, end: &mut E, context: &Context<'_>) -> Poll<Result<(), Ended>> {
        self.begin();
        if let Some(waited) = look(end, 1) {
            return Poll::Ready(waited);
        }
        if !end.shared().await_with(context.waker()) {
            return self.is_pending(context, true);
        }
        // Asked after the waker was put: an end that has taken the flag down, and not the waker, will find the waker.
        if !end.shared().is_awaited() {
            end.waits();
            end.raise();
            self.pass_barrier([end.shared()]);
            if let Some(waited) = look(end, 1) {
                return Poll::Ready(waited);
            }
        }
        self.is_pending(context, false)
    }

    /// Before the first look of a poll.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.doubt.begin_look();
    }

    /// Pending, and to be polled again at once if it must, as the other end is in the middle of a wake-up; or later, as
    /// that may overlook the flag.
    pub(crate) fn is_pending<O>(&mut self, context: &Context<'_>, again: bool) -> Poll<O> {
        self.ready = 0;
        if again {
            wake_quietly(context.waker());
        } else {
            self.doubt.is_pending(context.waker());
        }
        Poll::Pending
    }
}
