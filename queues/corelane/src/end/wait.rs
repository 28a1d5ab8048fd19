//! What a wait looks at, and the wait itself: one loop for an end, for the ends of a dispatcher, and for a
//! [`Select`](crate::wait::Select).

#[cfg(feature = "std")]
use crate::sync::Instant;
use crate::wait::{Next, Strategy, WaitState};
#[cfg(feature = "std")]
use crate::wait::{Own, Selectable, Sleeper};

/// How a wait for one end ended.
pub(crate) enum Waited {
    Ready,
    Closed,
    #[cfg(feature = "std")]
    Timeout,
}

/// What a wait for one end looks at.
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
#[cfg(feature = "std")]
struct One<'a, E> {
    end: &'a mut E,
    room: usize,
}

#[cfg(feature = "std")]
impl<E: Look + Selectable> Awaitable for One<'_, E> {
    type Found = Waited;

    #[inline]
    fn look(&mut self) -> Option<Waited> {
        look(self.end, self.room)
    }

    fn arm(&mut self, sleeper: Sleeper) {
        self.end.arm(self.room, sleeper);
    }

    fn disarm(&mut self, sleeper: Sleeper) {
        self.end.disarm(sleeper);
    }
}

#[cfg(feature = "std")]
pub(crate) fn wait_until<E: Look + Selectable, W: Strategy>(
    end: &mut E,
    room: usize,
    wait: &W,
    deadline: Option<Instant>,
) -> Waited {
    if let Some(waited) = look(end, room) {
        return waited;
    }
    end.waits();
    wait_for(&mut One { end, room }, wait, deadline).unwrap_or(Waited::Timeout)
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
