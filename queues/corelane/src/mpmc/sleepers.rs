//! The threads that sleep because a queue has nothing for them.
//!
//! # How it works
//!
//! 1. A thread that is to sleep puts its sleeper into the list, executes the heavy half of the asymmetric barrier,
//!    looks at the queue once more, and sleeps if there is still nothing.
//! 2. A thread that has changed the queue passes the light half, which is no instruction, and reads how many sleep. If
//!    any do, it takes the one that has slept longest out of the list and wakes it. By the barrier's argument
//!    (`sync.rs`) one of the two sees the other.
//! 3. One thread is woken a change, however many items the change brought. A thread that finds itself taken out of the
//!    list tries again after that. If it gets something and leaves more behind, or finds the queue closed, it wakes the
//!    next.
//!    - So of all that sleep as many are woken as find work.
//!    - A change may wake a thread that gave up in the meantime. That thread has looked at the change once more, so it
//!      is not lost.
//!    - A [`Select`](crate::wait::Select) takes nothing. So a select that was woken wakes the next in any case while
//!      there is something.
//!
//! 4. When the last receiver is gone a flag in the count says so. It takes the same barrier: a push either sees the
//!    flag or has put its item where the receiver that went finds it. Where there is no membarrier that receiver looks
//!    once more, a millisecond later, if its first look found a push in the middle of its call.
//!
//! # Progress
//!
//! The list has a lock, which is held for a few instructions: by a thread that goes to sleep or gets up, and by one
//! that wakes another. A thread that is stopped just there holds up every call that has a thread to wake, a `try_` call
//! too. No call of a queue where no thread sleeps comes near it.
//!
//! # Synchronization
//!
//! - count: a read-modify-write here, a load behind the light barrier there. It orders nothing but what the barrier
//!   does.
//! - list: under its lock. A thread that is out of the list knows all that the thread which took it out did before.

use crate::sync::{AcqRel, AtomicU32, Mutex, Relaxed, heavy_barrier, load_after_store};
use crate::wait::{Own, Sleeper};
use alloc::collections::VecDeque;

/// In the count: no thread will ever come here any more.
const GONE: u32 = 1 << 31;

/// The threads that sleep at one side of a queue.
pub(super) struct Sleepers {
    /// As many as are in the list, and [`GONE`]. Read after every change of the queue, written when one sleeps or is
    /// woken.
    count: AtomicU32,
    list: Mutex<VecDeque<Sleeper>>,
}

impl Sleepers {
    pub(super) fn new() -> Self {
        // Registers for membarrier here rather than at the first park.
        let _ = crate::sync::parks_are_bounded();
        Self { count: AtomicU32::new(0), list: Mutex::new(VecDeque::new()) }
    }

    fn list(&self) -> impl core::ops::DerefMut<Target = VecDeque<Sleeper>> + '_ {
        self.list.lock().expect("nothing panics under this lock")
    }

    /// Whether none sleeps, of those that have come before the caller was last here.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// To be called after a change of the queue that some of these may wait for: wakes the first. True if none will
    /// ever come [any more](Self::are_gone): then the caller has to see to what it changed.
    #[inline(always)]
    pub(super) fn wake(&self) -> bool {
        load_after_store(&self.count) != 0 && self.wake_first()
    }

    /// No thread will ever come here any more, nor is one here. The caller looks at the queue after that: of it and a
    /// thread that changes the queue one sees the other; where there is no membarrier, once it has
    /// [waited](crate::wait::outwait_publishers).
    pub(super) fn are_gone(&self) {
        self.count.fetch_or(GONE, AcqRel);
        heavy_barrier();
    }

    #[cold]
    #[inline(never)]
    fn wake_first(&self) -> bool {
        let first = {
            let mut list = self.list();
            let first = list.pop_front();
            if first.is_some() {
                self.count.fetch_sub(1, AcqRel);
            }
            first
        };
        if let Some(sleeper) = first {
            sleeper.unpark();
        }
        self.count.load(Relaxed) & GONE != 0
    }

    /// Wakes all. A thread that comes to the list later sees what the caller did before.
    pub(super) fn wake_all(&self) {
        let all = {
            let mut list = self.list();
            self.count.fetch_sub(list.len() as u32, AcqRel);
            core::mem::take(&mut *list)
        };
        for sleeper in all {
            sleeper.unpark();
        }
    }

    /// This sleeper is to be woken. The caller passes the heavy half of the barrier, and looks at the queue once more
    /// before it sleeps.
    pub(super) fn add(&self, sleeper: Sleeper) {
        let mut list = self.list();
        list.push_back(sleeper);
        self.count.fetch_add(1, AcqRel);
    }

    /// Takes a sleeper out of the list. False if another thread has, and has woken it, or is about to.
    pub(super) fn remove(&self, sleeper: Sleeper) -> bool {
        let mut list = self.list();
        let at = list.iter().position(|other| *other == sleeper);
        if let Some(at) = at {
            list.remove(at);
            self.count.fetch_sub(1, AcqRel);
        }
        at.is_some()
    }

    /// The caller wants to be woken. It looks at the queue once more before it sleeps at its [sleeper](Seat::sleeper).
    pub(super) fn sit_down(&self) -> Seat<'_> {
        let own = Own::new();
        self.add(own.sleeper());
        heavy_barrier();
        Seat { sleepers: self, own, left: false }
    }
}

/// A place in the list.
pub(super) struct Seat<'a> {
    sleepers: &'a Sleepers,
    own: Own,
    left: bool,
}

impl Seat<'_> {
    pub(super) fn sleeper(&self) -> Sleeper {
        self.own.sleeper()
    }

    /// Gives the place up. True if another thread woke this one, or was about to: it then looks at the queue once more,
    /// and if it takes something and there is more, wakes the next.
    pub(super) fn leave(mut self) -> bool {
        self.give_up()
    }

    fn give_up(&mut self) -> bool {
        self.left = true;
        !self.sleepers.remove(self.sleeper())
    }
}

impl Drop for Seat<'_> {
    /// Reached without [`leave`](Self::leave) when the look at the queue panicked: another thread has to look, then.
    fn drop(&mut self) {
        if !self.left && self.give_up() {
            self.sleepers.wake_first();
        }
    }
}
