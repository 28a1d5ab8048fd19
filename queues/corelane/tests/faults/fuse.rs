//! Panics at a chosen place: the user's code that a queue calls, and that runs between two calls, ticks.

use corelane::wait::{Adaptive, Next, Park, SpinPark, Strategy, WaitState, Yield};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

thread_local! {
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What is thrown.
struct Blown;

/// Panics if this is the tick that the thread's fuse ends with.
pub(crate) fn tick() {
    if let Some(left) = LEFT.get()
        && !std::thread::panicking()
    {
        LEFT.set(left.checked_sub(1));
        if left == 0 {
            // Without the hook, which would print thousands of times.
            resume_unwind(Box::new(Blown));
        }
    }
}

/// Runs something that panics at its tick number `ticks`. `None` if it did; another panic goes on.
pub(crate) fn burn<R>(ticks: usize, run: impl FnOnce() -> R) -> Option<R> {
    LEFT.set(Some(ticks));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    LEFT.set(None);
    match outcome {
        Ok(outcome) => Some(outcome),
        Err(payload) if payload.is::<Blown>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs with fuses of every length, until none of several in a row blows: other threads decide how many ticks a run
/// has. The run says whether it did.
pub(crate) fn with_every_fuse(mut run: impl FnMut(usize) -> bool) {
    const IN_A_ROW: usize = 6;
    /// A wait ticks as long as it lasts.
    const ENOUGH: usize = 2_000;
    /// So many ticks a run may have, and has where its thread gets its turn in time: which may take some runs.
    const SHORT: usize = 20;
    let (mut whole, mut blown) = (0, 0);
    for ticks in 0..ENOUGH {
        let tries = if ticks <= SHORT { 50 } else { 1 };
        if (0..tries).any(|_| run(ticks)) {
            (whole, blown) = (0, blown + 1);
        } else {
            whole += 1;
        }
        if whole == IN_A_ROW {
            break;
        }
    }
    assert!(blown > SHORT, "{blown} ticks are no test");
}

/// Every way to wait, in one type: so each queue is compiled once.
#[derive(Debug)]
pub(crate) enum Way {
    Adaptive,
    Park,
    SpinPark,
    Yield,
    /// Looks a few times, then parks, and ticks as a user's strategy may.
    Ticking,
}

impl Way {
    pub(crate) const ALL: [Self; 4] = [Self::Adaptive, Self::Park, Self::SpinPark, Self::Yield];
}

impl Clone for Way {
    fn clone(&self) -> Self {
        match self {
            Self::Adaptive => Self::Adaptive,
            Self::Park => Self::Park,
            Self::SpinPark => Self::SpinPark,
            Self::Yield => Self::Yield,
            Self::Ticking => {
                tick();
                Self::Ticking
            }
        }
    }
}

impl Strategy for Way {
    fn next(&self, state: &mut WaitState) -> Next {
        match self {
            Self::Adaptive => Adaptive.next(state),
            Self::Park => Park.next(state),
            Self::SpinPark => SpinPark::default().next(state),
            Self::Yield => Yield.next(state),
            Self::Ticking => {
                tick();
                if state.count() > 3 {
                    return Next::Park;
                }
                std::thread::yield_now();
                Next::Retry
            }
        }
    }
}
