//! Tasks that wait in a queue: the fixed, the elastic and the bounded pool.
//!
//! A design of our own: one locked queue that threads take batches from, in front of the synchronous queue in which
//! they sleep.
//!
//! # How it works
//!
//! 1. A task is pushed to the queue under the pool's lock, which is held for a few instructions. No thread is woken if
//!    one is *searching*: that one will look.
//! 2. A thread with nothing to do takes its share of the queue, at most 64 tasks: one to begin with, and the others as
//!    its *batch*. It begins them one by one; another thread that finds the queue empty takes half of what is left of
//!    the batch. So no task waits behind a long one while a thread is free. The first has begun, and no other thread
//!    can take it any more, though its thread may wake or start another one before it runs it. Otherwise threads that
//!    are stopped there would lose it to others, and those would have more threads started.
//! 3. A thread that finds nothing anywhere becomes the one searching thread, if there is none, and looks for a few
//!    microseconds. Otherwise, or then, it registers a take in the synchronous queue, looks once more, counts itself as
//!    sleeping and waits.
//! 4. A thread that pushes while none searches and one sleeps hands the task over instead, to the thread that fell
//!    asleep last, and counts it as searching until it runs. So one thread at a time is being woken, however many tasks
//!    come meanwhile.
//! 5. A thread that stops searching because it has found work passes the search on if there is more anywhere, in
//!    batches too: it wakes a sleeping thread or, if there may be one more, starts it.
//! 6. If no thread searches or sleeps, and there may be another one, it is started with the task. Only then are tasks
//!    queued.
//! 7. How many tasks wait is the number of those pushed less those begun. Threads count what they begin in words of
//!    their own, which are summed when the bound is reached by the last sum, or that leaves too little room for callers
//!    that wait. The sum is never too large, so the bound holds; and a caller that is told that the queue is full was
//!    told the truth at some moment of the call.
//!
//! # Synchronization
//!
//! - All moves of a task but the last, from a batch to its run, are made under the lock.
//! - A thread counts as sleeping under the lock, after it has registered its take and found nothing. So a thread that
//!   pushes and finds none sleeping can leave it at that: one that falls asleep later looks after the push. A thread
//!   that finds one sleeping finds its take, too; if the take is gone, the thread is on its way to the lock, and looks.
//! - A caller that waits for room raises `blocked` under the lock, under which a thread looks at it at the end of each
//!   batch. In between a thread may miss it: callers also look for themselves.
//!
//! # Progress
//!
//! Blocking, by the lock. A thread that is stopped while it holds it stops the pool.
//!
//! # When to use it, and when not
//!
//! Many tasks, short ones above all, for a number of threads that is known. Not where tasks wait for each other: those
//! that wait may hold all threads, and those that they wait for stay in the queue. [`hand_off`](crate::hand_off) starts
//! a thread for each.
//!
//! # Memory
//!
//! Four words a task, and a box for one that captures more than three. The queue and each thread have memory for 64
//! tasks from the start, 2 KiB; what a burst needs beyond goes back after it.

use crate::chunks::CHUNK;
use crate::error::{Reason, Rejected};
use crate::settings::{Queueing, Rejection};
use crate::shared::{Phase, Shared, State, Work};
use crate::slot::{Slot, add};
use crate::sync::{Arc, Instant, MutexGuard, Relaxed, SeqCst, fence, wait};
use crate::task::Task;
use corelane::error::PopTimeoutError;
use std::time::Duration;

/// How long a thread searches before it goes to sleep.
const SEARCH: Duration = Duration::from_micros(5);

/// Pauses between two looks at the queue: what is pushed meanwhile is taken as one batch.
const PAUSES: usize = 16;

/// While callers wait for room, a thread that begins task after task tells them so often, beside the end of each batch:
/// for every single task a caller would be woken, and sleep again after one push.
const TELL: Duration = Duration::from_micros(50);

/// Beyond half of the queue one more caller is woken for so much room.
const ROOM: usize = 16;

/// How often a caller that waits for room looks by itself: a thread may begin a long task just before it would have
/// told, and none tells of less than half of the queue.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(2);

/// Models have no time, so there a fence sees to it that no thread has to look by itself.
fn model_fence() {
    if cfg!(loom) {
        fence(SeqCst);
    }
}

/// What a thread begins next.
enum Next {
    /// It came from its caller's hand.
    Handed(Task),
    /// It was queued, and is counted as begun.
    Queued(Task),
}

/// What a thread does for the others when it has found work.
enum PassOn {
    Nothing,
    Wake,
    Start,
}

/// So much room wakes a caller that waits for it: half of the queue.
fn enough_room(capacity: u64) -> u64 {
    (capacity / 2).max(1)
}

/// How many callers are woken for this room.
fn callers(room: u64, enough: u64) -> usize {
    if room < enough { 0 } else { 1 + (room - enough) as usize / ROOM }
}

impl State {
    fn has_room(&mut self) -> bool {
        self.backlog.accepted < self.backlog.limit || self.room() > 0
    }

    /// For how many more tasks, by a new sum of those begun.
    fn room(&mut self) -> u64 {
        self.backlog.limit = self.totals().queued.saturating_add(self.backlog.capacity);
        self.backlog.limit - self.backlog.accepted
    }

    /// Whether a thread ends as there are too many. Not the last one that runs while tasks are queued: others that are
    /// counted are being started, and may fail to.
    fn has_surplus(&self) -> bool {
        self.threads > self.limits.max && (self.live > 1 || !self.has_queued())
    }

    fn has_queued(&self) -> bool {
        !self.backlog.tasks.is_empty() || self.slots.iter().any(|slot| slot.batched() > 0)
    }
}

impl Shared {
    /// Asked when there is more to do than the thread that asks can begin. What it answers has been counted, and is to
    /// be done outside of the lock.
    fn pass_on(&self, state: &mut State) -> PassOn {
        if state.backlog.searching > 0 {
            PassOn::Nothing
        } else if state.backlog.sleeping > 0 {
            state.backlog.searching += 1;
            PassOn::Wake
        } else if state.threads < state.limits.max {
            // After a shutdown, too: what was accepted may need it.
            self.count_thread(state);
            PassOn::Start
        } else {
            PassOn::Nothing
        }
    }

    fn is_bounded_and_blocks(&self) -> bool {
        matches!((self.config.queueing, self.config.rejection), (Queueing::Bounded(_), Rejection::Block(_)))
    }

    /// Hands the task over or queues it. With a `limit`, waits for room, and so long in all.
    pub(crate) fn enqueue(self: &Arc<Self>, mut task: Task, limit: Option<Duration>) -> Result<(), Rejected<Task>> {
        let mut state = self.lock();
        let mut grows = true;
        let mut wakes = true;
        // Known from the first wait on; none is for ever.
        let mut deadline: Option<Option<Instant>> = None;
        let mut until = |timeout| *deadline.get_or_insert_with(|| Instant::now().checked_add(timeout));
        loop {
            if state.phase != Phase::Running {
                drop(state);
                return Err(Rejected::new(task, Reason::ShutDown));
            }
            // With a search that found no thread, on which others may have relied.
            let give_up = |state| if wakes { drop(state) } else { self.go_on(state) };
            let core_first = self.config.core_first && state.threads < state.limits.core;
            if wakes && !core_first && state.backlog.searching == 0 && state.backlog.sleeping > 0 {
                state.backlog.searching += 1;
                drop(state);
                match self.idle.try_put(Work { task: Some(task), reserved: true }) {
                    Ok(()) => return Ok(()),
                    Err(error) => {
                        let work = error.into_inner();
                        task = work.task.expect("it was made with a task");
                    }
                }
                state = self.lock();
                state.backlog.searching -= 1;
                wakes = false;
                continue;
            }
            // Without a thread that runs there is none that searches: it was counted for one that has left.
            let searched = state.backlog.searching > 0 && state.live > 0;
            if grows && state.may_grow() && (core_first || !searched) {
                self.count_thread(&mut state);
                drop(state);
                match self.start(Some(task)) {
                    Ok(()) => return Ok(()),
                    Err((error, first)) => {
                        task = first.expect("it did not run");
                        state = self.lock();
                        if state.live == 0 {
                            drop(state);
                            return Err(Rejected::new(task, Reason::NoThread(error)));
                        }
                    }
                }
                grows = false;
                continue;
            }
            if state.live == 0 {
                // All threads there may be are being started. Should that fail, no thread would run the task.
                if state.threads == 0 {
                    grows = true;
                } else {
                    let until = limit.and_then(&mut until);
                    if until.is_some_and(|until| Instant::now() >= until) {
                        give_up(state);
                        return Err(Rejected::new(task, Reason::TimedOut));
                    }
                    state = wait(&self.started, state, until);
                }
                continue;
            }
            if state.has_room() {
                break;
            }
            let Some(until) = limit.map(&mut until) else {
                give_up(state);
                return Err(Rejected::new(task, Reason::Saturated));
            };
            if until.is_some_and(|until| Instant::now() >= until) {
                give_up(state);
                return Err(Rejected::new(task, Reason::TimedOut));
            }
            state = self.wait_for_room(state, until);
        }
        let look = self.push(&mut state, task);
        drop(state);
        if look {
            let _ = self.idle.try_put(Work { task: None, reserved: false });
        }
        Ok(())
    }

    /// Queues the task. True if a thread has to be told.
    fn push(&self, state: &mut State, task: Task) -> bool {
        if state.backlog.tasks.is_empty() {
            self.hints.has_tasks.store(true, Relaxed);
        }
        state.backlog.tasks.push(task);
        state.backlog.accepted += 1;
        state.backlog.searching == 0 && state.backlog.sleeping > 0
    }

    fn wait_for_room<'a>(&'a self, mut state: MutexGuard<'a, State>, until: Option<Instant>) -> MutexGuard<'a, State> {
        self.blocked.fetch_add(1, Relaxed);
        model_fence();
        if !state.has_room() {
            let look = Instant::now() + LOOK_FOR_ROOM;
            let until = if cfg!(loom) { until } else { Some(until.map_or(look, |until| until.min(look))) };
            state = wait(&self.room, state, until);
        }
        self.blocked.fetch_sub(1, Relaxed);
        state
    }

    /// Wakes callers that wait for room once half of the queue is free: the first of them may fill it alone, and more
    /// are woken the more of it is still free when this is called again.
    fn tell_of_room(&self, state: &mut State) {
        // Models have no time, so no caller looks by itself there.
        let enough = if cfg!(loom) { 1 } else { enough_room(state.backlog.capacity) };
        let known = state.backlog.limit - state.backlog.accepted;
        let room = if known >= enough { known } else { state.room() };
        let callers = callers(room, enough);
        (0..callers.min(self.blocked.load(Relaxed))).for_each(|_| self.room.notify_one());
    }

    /// Runs a task that was queued and is counted as begun.
    fn run_queued(&self, slot: &Slot, task: Task, told: &mut Option<Instant>) {
        if told.is_some() {
            model_fence();
            if self.blocked.load(Relaxed) > 0 {
                let now = Instant::now();
                if cfg!(loom) || told.is_some_and(|told| now - told >= TELL) {
                    self.tell_of_room(&mut self.lock());
                    *told = Some(now);
                }
            }
        }
        self.run(slot, task);
    }

    pub(crate) fn serve_queue(self: &Arc<Self>, slot: &Slot, first: Option<Task>) {
        // When callers were last told of room, if any may wait for it.
        let mut told = self.is_bounded_and_blocks().then(Instant::now);
        let mut next = first.map(Next::Handed);
        if next.is_some() {
            // Others may have left their tasks to a search that found its thread gone; the caller has started this one
            // instead.
            self.go_on(self.lock());
        }
        loop {
            match next.take() {
                Some(Next::Handed(task)) => {
                    add(&slot.tally.direct, 1);
                    self.run(slot, task);
                }
                Some(Next::Queued(task)) => self.run_queued(slot, task, &mut told),
                None => {}
            }
            while let Some(task) = slot.pop() {
                add(&slot.tally.queued, 1);
                self.run_queued(slot, task, &mut told);
            }
            next = self.find(slot);
            if next.is_none() {
                return;
            }
        }
    }

    /// Brings a task for the thread to begin with, and may fill its batch. None: the thread is to end.
    fn find(self: &Arc<Self>, slot: &Slot) -> Option<Next> {
        let mut state = self.lock();
        if self.blocked.load(Relaxed) > 0 {
            self.tell_of_room(&mut state);
        }
        let mut searched = false;
        loop {
            if state.has_surplus() {
                self.retire(&mut state);
                let pass_on = if state.has_queued() { self.pass_on(&mut state) } else { PassOn::Nothing };
                drop(state);
                self.do_pass_on(pass_on);
                return None;
            }
            if let Some(first) = self.take_batch(&mut state, slot) {
                add(&slot.tally.queued, 1);
                self.go_on(state);
                return Some(Next::Queued(first));
            }
            if state.phase != Phase::Running {
                self.retire(&mut state);
                return None;
            }
            if !searched && state.backlog.searching == 0 {
                state.backlog.searching += 1;
                drop(state);
                self.search();
                state = self.lock();
                state.backlog.searching -= 1;
                searched = true;
                continue;
            }
            drop(state);
            let ticket = self.idle.reserve_take();
            state = self.lock();
            let shrinks = state.has_surplus();
            let first = if shrinks { None } else { self.take_batch(&mut state, slot) };
            if shrinks || first.is_some() {
                // A task may have come by the ticket, too.
                let handed = ticket.abort().and_then(|work| Self::woken(&mut state, work));
                let next = match (handed, first) {
                    (Some(task), first) => {
                        first.into_iter().for_each(|first| slot.put_back(first));
                        Next::Handed(task)
                    }
                    (None, Some(first)) => {
                        add(&slot.tally.queued, 1);
                        Next::Queued(first)
                    }
                    (None, None) => continue,
                };
                self.go_on(state);
                return Some(next);
            }
            state.backlog.sleeping += 1;
            drop(state);
            let outcome = ticket.wait_with(&self.wait_limit());
            state = self.lock();
            state.backlog.sleeping -= 1;
            match outcome {
                Ok(work) => {
                    if let Some(task) = Self::woken(&mut state, work) {
                        self.go_on(state);
                        return Some(Next::Handed(task));
                    }
                }
                Err(PopTimeoutError::Closed) => {}
                Err(_) => {
                    if !state.has_queued() && state.has_idle_surplus() {
                        self.retire(&mut state);
                        return None;
                    }
                }
            }
            // A thread that has slept has searched long enough.
            searched = true;
        }
    }

    /// Takes what came by a ticket, for which a search may have been counted.
    fn woken(state: &mut State, work: Work) -> Option<Task> {
        state.backlog.searching -= u32::from(work.reserved);
        work.task
    }

    /// Leaves the lock with work, and passes the search on if there is more. Batches count: the thread that was to look
    /// at them may have stopped here.
    pub(crate) fn go_on(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let pass_on = if state.has_queued() { self.pass_on(&mut state) } else { PassOn::Nothing };
        drop(state);
        self.do_pass_on(pass_on);
    }

    fn do_pass_on(self: &Arc<Self>, pass_on: PassOn) {
        match pass_on {
            PassOn::Nothing => {}
            PassOn::Wake => {
                if self.idle.try_put(Work { task: None, reserved: true }).is_err() {
                    // A thread that slept is on its way, or has found work, and relied on this search for the rest.
                    // Others may have slept since.
                    let mut state = self.lock();
                    state.backlog.searching -= 1;
                    if state.backlog.searching > 0 || !state.has_queued() {
                        return;
                    }
                    if state.backlog.sleeping > 0 {
                        drop(state);
                        let _ = self.idle.try_put(Work { task: None, reserved: false });
                    } else {
                        self.go_on(state);
                    }
                }
            }
            // Should it fail, those that are there have more to do. It is counted.
            PassOn::Start => drop(self.start(None)),
        }
    }

    /// Takes this thread's share of the queue, or half of another thread's batch, and the first of it to begin with.
    fn take_batch(&self, state: &mut State, slot: &Slot) -> Option<Task> {
        if !state.backlog.tasks.is_empty() {
            let share = (state.backlog.tasks.len() / state.live.max(1)).clamp(1, CHUNK);
            let first = slot.fill(|batch| state.backlog.tasks.take(share, batch));
            if state.backlog.tasks.is_empty() {
                self.hints.has_tasks.store(false, Relaxed);
            }
            return first;
        }
        let others = state.slots.iter().filter(|other| !std::ptr::eq(&***other, slot));
        let mut tasks = others.map(|other| other.take_half()).find(|tasks| !tasks.is_empty())?;
        slot.fill(|batch| batch.append(&mut tasks))
    }

    /// Looks for tasks for a while.
    fn search(&self) {
        if cfg!(loom) {
            return;
        }
        let until = Instant::now() + SEARCH;
        while !self.hints.has_tasks.load(Relaxed) && Instant::now() < until {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
    }

    /// Takes the task back that has waited longest, as far as the queue knows; those in batches have left it in order.
    pub(crate) fn oldest(&self) -> Option<Task> {
        let mut state = self.lock();
        let mut task = None;
        for slot in &state.slots {
            task = slot.pop();
            if task.is_some() {
                break;
            }
        }
        let task = task.or_else(|| state.backlog.tasks.pop())?;
        state.backlog.accepted -= 1;
        if state.backlog.tasks.is_empty() {
            self.hints.has_tasks.store(false, Relaxed);
        }
        Some(task)
    }

    /// Takes all tasks back that have not begun, in the order they came in, those in batches first.
    pub(crate) fn take_back(&self) -> Vec<Task> {
        let mut state = self.lock();
        let mut tasks: Vec<Task> = state.slots.iter().flat_map(|slot| slot.take_all()).collect();
        tasks.extend(state.backlog.tasks.drain());
        self.hints.has_tasks.store(false, Relaxed);
        state.backlog.accepted -= tasks.len() as u64;
        tasks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_queue_wakes_a_caller_and_more_of_it_more() {
        for (capacity, enough) in [(1, 1), (2, 1), (3, 1), (1024, 512)] {
            assert_eq!(enough_room(capacity), enough);
            assert_eq!((callers(enough - 1, enough), callers(enough, enough)), (0, 1), "{capacity}");
        }
        assert_eq!((callers(512 + 15, 512), callers(512 + 16, 512), callers(1024, 512)), (1, 2, 33));
    }
}
