//! How a worker leaves, and what it leaves behind: the only thing that dispatcher and worker share beside their queue.
//!
//! # How it works
//!
//! 1. A worker that leaves does not close its queue. It puts its receiver, with all that is inside, on its [`Seat`],
//!    says so in the seat's flag and on the [`Desk`], and wakes the dispatcher.
//! 2. The dispatcher looks at the desk in each call. If there is news it takes the receivers from the seats, and so has
//!    both ends of those queues. No other thread can add to what is inside or take from it, even if the last push came
//!    long after the leave.
//! 3. When the dispatcher itself is gone the seat is abandoned. A worker that leaves later finds that, and keeps its
//!    receiver.
//!
//! So each job that was dispatched has been taken by its worker, or comes back to the dispatcher, or to the worker if
//! there is no dispatcher any more.
//!
//! # Synchronization
//!
//! - the receiver: under the seat's lock, which both take in this one event of a worker's life only. Only a dispatcher
//!   that ends may wait for it: to any other the worker's news come after the lock.
//! - `news`, swap-release (worker) → swap-acquire (dispatcher), and then `left`, store-release → load-acquire: the
//!   receiver lies on its seat before they are set. They only say that a look is worth while. The flag of the seat is
//!   the last of the three, so a dispatcher that is told by it not to sleep finds the news.
//! - A dispatcher that sleeps for room, or for the last worker's leave. It puts its sleeper on the desk and then looks
//!   at the flags; the worker sets the flags and then takes the sleeper. Both swap that word. Either the worker comes
//!   second, and wakes the sleeper; or the dispatcher does, and sees the flags. So no barrier is needed here. Of
//!   several workers that come at once one takes the sleeper, with the flags of those that came before it.
//! - A dispatcher's task (feature `async`) waits in the same way. The cell of its waker is to the task what the token
//!   is to a thread: the task leaves its waker and then looks for news; the worker sets the news and then takes the
//!   waker. Both hold the cell by read-modify-writes. Either the worker comes second, and finds the waker; or the task
//!   does, and then the worker's news are done to it, for any look. Of several workers that come at once one takes the
//!   waker, with the news of those that found it doing so: `wait/waker.rs`.

use super::panic::WorkerPanic;
use crate::sync::{Acquire, Arc, AtomicBool, Mutex, Padded, Relaxed, Release};
#[cfg(feature = "async")]
use crate::wait::WakerCell;
use crate::wait::{Sleeper, SleeperCell};
use core::any::Any;
use core::mem;
#[cfg(feature = "async")]
use core::task::Waker;
use std::boxed::Box;

/// How a worker left.
pub(super) enum Leave {
    /// By call, by drop, or by the end of its thread.
    Orderly,
    /// By a panic, with the payload where it was caught.
    Panic(Option<Box<dyn Any + Send>>),
}

impl Leave {
    pub(super) fn into_panic(self, worker: usize) -> Option<WorkerPanic> {
        match self {
            Self::Orderly => None,
            Self::Panic(payload) => Some(WorkerPanic::new(worker, payload)),
        }
    }
}

enum State<C> {
    Working,
    Left(C, Leave),
    Abandoned,
}

/// What one worker shares with the dispatcher.
pub(super) struct Seat<C> {
    left: AtomicBool,
    state: Mutex<State<C>>,
}

const NO_PANIC: &str = "nothing panics under this lock";

impl<C> Seat<C> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { left: AtomicBool::new(false), state: Mutex::new(State::Working) })
    }

    /// The worker leaves, for the dispatcher to take what it leaves behind. Gives it back if there is no dispatcher.
    pub(super) fn leave(&self, desk: &Desk, receiver: C, how: Leave) -> Result<(), (C, Leave)> {
        {
            let mut state = self.state.lock().expect(NO_PANIC);
            if matches!(*state, State::Abandoned) {
                return Err((receiver, how));
            }
            *state = State::Left(receiver, how);
        }
        desk.tell();
        self.left.store(true, Release);
        if let Some(sleeper) = desk.sleeper.swap(None) {
            sleeper.unpark();
        }
        #[cfg(feature = "async")]
        desk.wake_task();
        Ok(())
    }

    /// Whether the worker has left.
    pub(super) fn is_left(&self) -> bool {
        self.left.load(Acquire)
    }

    /// What the worker has left behind. The dispatcher comes back no more if there is something, or if it says so.
    pub(super) fn clear(&self, abandon: bool) -> Option<(C, Leave)> {
        let mut state = if abandon {
            self.state.lock().expect(NO_PANIC)
        } else {
            // It is held by the worker, which has news when it has left it.
            self.state.try_lock().ok()?
        };
        if matches!(*state, State::Working) && !abandon {
            return None;
        }
        match mem::replace(&mut *state, State::Abandoned) {
            State::Left(receiver, how) => Some((receiver, how)),
            _ => None,
        }
    }
}

/// What all workers share with the dispatcher.
pub(super) struct Desk {
    /// Some worker has left. Read in each call of the dispatcher, so alone on its line.
    news: Padded<AtomicBool>,
    /// Where the dispatcher sleeps, if it does.
    sleeper: SleeperCell,
    /// Where its task waits.
    #[cfg(feature = "async")]
    waker: WakerCell,
}

impl Desk {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            news: Padded(AtomicBool::new(false)),
            sleeper: SleeperCell::new(),
            #[cfg(feature = "async")]
            waker: WakerCell::new(),
        })
    }

    /// By a read-modify-write like [`take_news`](Self::take_news), so that the two have an order.
    fn tell(&self) {
        self.news.swap(true, Release);
    }

    /// Not ordered: what is there to be seen is seen by [`take_news`](Self::take_news).
    #[inline(always)]
    pub(super) fn has_news(&self) -> bool {
        self.news.load(Relaxed)
    }

    /// Takes the news down: a worker that leaves from now on sets it again.
    pub(super) fn take_news(&self) -> bool {
        self.news.swap(false, Acquire)
    }

    /// Says which thread sleeps until a worker leaves, or that none does any more. The caller looks for news after
    /// that.
    pub(super) fn sleeper_is(&self, sleeper: Option<Sleeper>) {
        self.sleeper.swap(sleeper);
    }

    /// To be called after [`tell`](Self::tell).
    #[cfg(feature = "async")]
    fn wake_task(&self) {
        self.waker.wake();
    }

    /// Says which task to wake when a worker leaves, or none. The caller looks for news after that. Returns false if a
    /// worker is in the middle of a wake-up: the task must be polled again.
    #[cfg(feature = "async")]
    pub(super) fn await_with(&self, waker: Option<Waker>) -> bool {
        self.waker.exchange(waker)
    }
}
