//! What a wait looks at, and the wait itself: one loop for an end, for the ends of a dispatcher, and for a
//! [`Select`](crate::wait::Select).

use super::End;
use crate::error::{Closed, PopTimeoutError, PushTimeoutError};
use crate::sync::Instant;
use crate::wait::{Next, Strategy, WaitState};
#[cfg(feature = "std")]
use crate::wait::{Own, Sleeper};

/// Why a wait ended without what was waited for.
#[derive(Clone, Copy)]
pub(crate) enum Ended {
    Closed,
    Timeout,
}

impl Ended {
    /// As a push says it, with what it was to push.
    pub(crate) fn with<T>(self, item: T) -> PushTimeoutError<T> {
        match self {
            Self::Closed => PushTimeoutError::Closed(item),
            Self::Timeout => PushTimeoutError::Timeout(item),
        }
    }
}

/// Of a wait without a deadline.
impl From<Ended> for Closed {
    fn from(_: Ended) -> Self {
        Self(())
    }
}

impl From<Ended> for PopTimeoutError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Closed => Self::Closed,
            Ended::Timeout => Self::Timeout,
        }
    }
}

/// What a wait for one end looks at.
pub(crate) trait Look {
    /// Whether there is what is waited for. `room` is for how much of it: for an end that pushes, so many free slots.
    fn is_ready(&mut self, room: usize) -> bool;

    fn is_over(&self) -> bool;

    /// Called once a wait, when the first look found neither.
    fn waits(&mut self) {}

    /// What the other end sees of it.
    fn shared(&self) -> &End;

    /// Says for how much this end is to be woken, before it raises its flag. Nothing where it pops: any item wakes it.
    fn wake_for(&self, room: usize) {
        let _ = room;
    }

    /// The `room` of the other calls, where a caller asks for so much.
    fn room_of(&self, amount: usize) -> usize {
        amount
    }

    /// Raises a task's flag, for one item or slot. The caller passes the heavy half of the barrier, once for all ends
    /// that its task waits for. The position of an earlier wait, should its flag be up still, is no later one.
    #[cfg(feature = "async")]
    fn raise(&self) {
        self.wake_for(1);
        self.shared().raise();
    }
}

/// Ready, closed, or neither. A closed queue is looked at once more: the last items may have come just before.
pub(crate) fn look<E: Look>(end: &mut E, room: usize) -> Option<Result<(), Ended>> {
    if end.is_ready(room) {
        Some(Ok(()))
    } else if end.is_over() {
        Some(if end.is_ready(room) { Ok(()) } else { Err(Ended::Closed) })
    } else {
        None
    }
}

/// What a thread waits for.
#[cfg(feature = "std")]
pub(crate) trait Awaitable {
    type Found;

    /// What ends the wait, if it is there.
    fn look(&mut self) -> Option<Self::Found>;

    /// Raises the flags of all ends, for this sleeper. The caller passes the heavy half of the barrier, once for all,
    /// looks once more, and takes the flags [down](Self::disarm) again in any case.
    fn arm(&mut self, sleeper: Sleeper);

    fn disarm(&mut self, sleeper: Sleeper);

    fn sleeper(&self) -> Own {
        Own::new()
    }

    fn sleep(&mut self, sleeper: Sleeper, deadline: Option<Instant>) {
        sleeper.park(deadline);
    }
}

/// Waits as the strategy says, until a look finds something. `None` when the time is up.
#[cfg(feature = "std")]
pub(crate) fn wait_for<A: Awaitable, W: Strategy>(
    awaited: &mut A,
    wait: &W,
    deadline: Option<Instant>,
) -> Option<A::Found> {
    let mut state = WaitState::new();
    loop {
        let found = awaited.look();
        if found.is_some() || deadline.is_some_and(|at| Instant::now() >= at) {
            return found;
        }
        if wait.next(&mut state) == Next::Park {
            let own = awaited.sleeper();
            let sleeper = own.sleeper();
            awaited.arm(sleeper);
            crate::sync::heavy_barrier();
            let found = awaited.look();
            if found.is_none() {
                awaited.sleep(sleeper, deadline);
            }
            awaited.disarm(sleeper);
            if found.is_some() {
                return found;
            }
            state = WaitState::new();
        }
    }
}

/// One end, and for how much room.
struct One<'a, E> {
    end: &'a mut E,
    room: usize,
}

#[cfg(feature = "std")]
impl<E: Look> Awaitable for One<'_, E> {
    type Found = Result<(), Ended>;

    #[inline]
    fn look(&mut self) -> Option<Result<(), Ended>> {
        look(self.end, self.room)
    }

    fn arm(&mut self, sleeper: Sleeper) {
        self.end.wake_for(self.room);
        self.end.shared().arm(sleeper);
    }

    fn disarm(&mut self, _: Sleeper) {
        self.end.shared().disarm();
    }
}

/// Without sleep and without a clock.
#[cfg(not(feature = "std"))]
fn wait_for<E: Look, W: Strategy>(one: &mut One<'_, E>, wait: &W, _: Option<Instant>) -> Option<Result<(), Ended>> {
    let mut state = WaitState::new();
    loop {
        let found = look(one.end, one.room);
        if found.is_some() {
            return found;
        }
        if wait.next(&mut state) == Next::Park {
            crate::sync::spin_loop();
        }
    }
}

/// Waits for one end, until the deadline at most.
pub(crate) fn wait_until<E: Look, W: Strategy>(
    end: &mut E,
    room: usize,
    wait: &W,
    deadline: Option<Instant>,
) -> Result<(), Ended> {
    if let Some(waited) = look(end, room) {
        return waited;
    }
    end.waits();
    wait_for(&mut One { end, room }, wait, deadline).unwrap_or(Err(Ended::Timeout))
}
