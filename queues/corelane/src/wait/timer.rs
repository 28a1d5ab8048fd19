//! One more look, for a task that waits where there is no membarrier.
//!
//! # How it works
//!
//! 1. Where there is no membarrier, a publisher that is just publishing may overlook a flag that a task's wait has
//!    raised: it has read the word before, and what it publishes is not to be seen yet. Both are over in much less than
//!    a millisecond. After that the publication is to be seen, and the flag is to every publisher.
//! 2. So a wait that has raised flags is in [`Doubt`] for a millisecond. A task that is pending meanwhile is polled
//!    once more after that. It is not polled again until it is woken.
//! 3. The library has one thread for that, which wakes such tasks in the order in which they asked, as all wait equally
//!    long. The first that asks starts it. It ends after a second in which none has asked.
//! 4. Where no thread can be started the task is polled again at once, and so on for that millisecond.
//!
//! Fences on both sides would need no thread. But they would be paid by each publication, of threads too, on every
//! system but Linux: of a lane's item they are the greater part, while a task's wait costs more than this look anyway.
//! (Without `std` there are no threads, and that is how it is done there, see `sync.rs`.)
//!
//! A waker is user code: it is cloned, woken and dropped while no lock is held, and its panic ends in its call.

use core::task::Waker;
#[cfg(all(feature = "std", not(any(corelane_loom, corelane_shuttle))))]
pub(crate) use timed::Doubt;
#[cfg(not(all(feature = "std", not(any(corelane_loom, corelane_shuttle)))))]
pub(crate) use untimed::Doubt;

#[cfg(all(feature = "std", not(any(corelane_loom, corelane_shuttle))))]
mod timed {
    use super::Waker;
    use crate::sync::Instant;
    use crate::wait::waker::quietly;
    use std::collections::VecDeque;
    use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
    use std::time::Duration;
    use std::{process, thread};

    /// As long as a thread parks at most where a wake-up may be missed.
    const OVERLOOKED: Duration = Duration::from_millis(1);
    /// The thread stays for so long when there is nothing to do.
    const STAYS: Duration = Duration::from_secs(1);

    /// Whether a publisher may still overlook the flags of a wait.
    #[derive(Debug, Default)]
    pub(crate) struct Doubt {
        until: Option<Instant>,
    }

    impl Doubt {
        /// Flags were raised, or made more insistent, just now.
        pub(crate) fn begin(&mut self) {
            self.until = Some(Instant::now() + OVERLOOKED);
        }

        /// To be called before the first look of a poll, so that there is one after the doubt is over.
        #[inline]
        pub(crate) fn begin_look(&mut self) {
            if self.until.is_some_and(|until| Instant::now() >= until) {
                self.until = None;
            }
        }

        /// To be called when that poll is pending: sees to another one if it must.
        pub(crate) fn is_pending(&self, waker: &Waker) {
            if self.until.is_some() {
                wake_later(waker.clone());
            }
        }
    }

    struct Timer {
        /// In the order of their times.
        tasks: VecDeque<(Instant, Waker)>,
        /// The process in which the thread runs. A child of it has no such thread.
        process: Option<u32>,
    }

    static TIMER: Mutex<Timer> = Mutex::new(Timer { tasks: VecDeque::new(), process: None });
    static CHANGED: Condvar = Condvar::new();

    fn timer() -> MutexGuard<'static, Timer> {
        TIMER.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_later(waker: Waker) {
        if cfg!(miri) {
            // Its programs may not end before their threads.
            return quietly(|| waker.wake());
        }
        let mut timer = timer();
        let this = Some(process::id());
        let runs = timer.process == this;
        if runs && timer.tasks.back().is_some_and(|(_, last)| last.will_wake(&waker)) {
            // By then the task asks again if it must.
            drop(timer);
            return quietly(|| drop(waker));
        }
        // Without the thread there are tasks only in a child: those of its parent, which are not woken here.
        let inherited = if runs { VecDeque::new() } else { core::mem::take(&mut timer.tasks) };
        let was_idle = timer.tasks.is_empty();
        timer.tasks.push_back((Instant::now() + OVERLOOKED, waker));
        timer.process = this;
        drop(timer);
        quietly(|| drop(inherited));
        if runs {
            if was_idle {
                CHANGED.notify_one();
            }
        } else if thread::Builder::new().name("corelane-timer".into()).spawn(run).is_err() {
            give_up();
        }
    }

    fn give_up() {
        let mut timer = timer();
        timer.process = None;
        let tasks = core::mem::take(&mut timer.tasks);
        drop(timer);
        tasks.into_iter().for_each(|(_, waker)| quietly(|| waker.wake()));
    }

    fn run() {
        let mut timer = timer();
        loop {
            let Some((at, _)) = timer.tasks.front() else {
                let (woken, waited) = CHANGED.wait_timeout(timer, STAYS).unwrap_or_else(PoisonError::into_inner);
                timer = woken;
                if waited.timed_out() && timer.tasks.is_empty() {
                    timer.process = None;
                    return;
                }
                continue;
            };
            let left = at.saturating_duration_since(Instant::now());
            let due = if left.is_zero() { timer.tasks.pop_front() } else { None };
            drop(timer);
            match due {
                Some((_, waker)) => quietly(|| waker.wake()),
                None => thread::sleep(left),
            }
            timer = self::timer();
        }
    }
}

/// Models know no time, and without `std` no flag is overlooked.
#[cfg(not(all(feature = "std", not(any(corelane_loom, corelane_shuttle)))))]
mod untimed {
    use super::Waker;
    use crate::wait::wake_quietly;

    /// Whether a publisher may overlook the flags of a wait.
    #[derive(Debug, Default)]
    pub(crate) struct Doubt(bool);

    impl Doubt {
        /// Flags were raised just now.
        pub(crate) fn begin(&mut self) {
            self.0 = true;
        }

        pub(crate) fn begin_look(&mut self) {}

        pub(crate) fn is_pending(&self, waker: &Waker) {
            if self.0 {
                wake_quietly(waker);
            }
        }
    }
}
