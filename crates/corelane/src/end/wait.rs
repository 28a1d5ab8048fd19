//! What a wait for an end looks at, and the wait itself.

#[cfg(feature = "std")]
use crate::sync::Instant;
#[cfg(feature = "std")]
use crate::wait::Waitable;
use crate::wait::{Next, Strategy, WaitState};

/// How a wait ended.
pub(crate) enum Waited {
    Ready,
    Closed,
    #[cfg(feature = "std")]
    Timeout,
}

/// What a wait looks at.
pub(crate) trait Look {
    /// Whether there is what is waited for. `room` is for how much of it: for an end that pushes, so many free slots.
    fn is_ready(&mut self, room: usize) -> bool;
    fn is_over(&self) -> bool;
    /// Called once a wait, when the first look found neither.
    fn waits(&mut self);
}

/// Ready, closed, or neither. A closed queue is looked at once more: the last items may have come just before.
pub(crate) fn look<E: Look>(end: &mut E, room: usize) -> Option<Waited> {
    if end.is_ready(room) {
        Some(Waited::Ready)
    } else if end.is_over() {
        Some(if end.is_ready(room) { Waited::Ready } else { Waited::Closed })
    } else {
        None
    }
}

#[cfg(feature = "std")]
pub(crate) fn wait_until<E: Look + Waitable, W: Strategy>(
    end: &mut E,
    room: usize,
    wait: &W,
    deadline: Option<Instant>,
) -> Waited {
    if let Some(waited) = look(end, room) {
        return waited;
    }
    end.waits();
    let mut state = WaitState::new();
    loop {
        if let Some(waited) = look(end, room) {
            return waited;
        }
        if deadline.is_some_and(|at| Instant::now() >= at) {
            return Waited::Timeout;
        }
        if wait.next(&mut state) == Next::Park {
            end.arm(room);
            crate::sync::heavy_barrier();
            let seen = look(end, room);
            if seen.is_none() {
                end.parker().park(deadline);
            }
            end.disarm();
            if let Some(waited) = seen {
                return waited;
            }
            state = WaitState::new();
        }
    }
}

#[cfg(not(feature = "std"))]
pub(crate) fn wait_until<E: Look, W: Strategy>(end: &mut E, room: usize, wait: &W) -> Waited {
    if let Some(waited) = look(end, room) {
        return waited;
    }
    end.waits();
    let mut state = WaitState::new();
    loop {
        if let Some(waited) = look(end, room) {
            return waited;
        }
        if wait.next(&mut state) == Next::Park {
            crate::sync::spin_loop();
        }
    }
}
