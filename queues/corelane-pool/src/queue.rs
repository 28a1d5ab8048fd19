//! Tasks that wait in a queue: the fixed, the elastic and the bounded pool.
//!
//! This is a design of our own: one locked queue from which threads take batches. Idle threads sleep in the synchronous
//! queue behind it.
//!
//! # How it works
//!
//! 1. A task is pushed to the queue under the pool's lock, which is held for a few instructions. If a thread is
//!    *searching*, no thread is woken, because the searching thread will find the task.
//! 2. A thread with nothing to do takes its share of the queue, at most 64 tasks. It begins the first one at once. The
//!    others are its *batch*, which it begins one by one. A thread that finds the queue empty takes half of the tasks
//!    left in another thread's batch. So no task waits behind a long one while a thread is free.
//! 3. The first task counts as begun, and no other thread can take it any more. This holds although its thread may
//!    first wake or start another thread. Otherwise a thread that the kernel stops at that point would lose the task to
//!    others, and those would have more threads started.
//! 4. A thread that finds no task anywhere becomes the searching thread, if there is none, and looks for a few
//!    microseconds. If another thread searches already, or if the search finds nothing, the thread registers a take in
//!    the synchronous queue, looks once more, counts itself as sleeping and waits.
//! 5. A caller that finds no thread searching and one sleeping does not push. It hands the task to the thread that fell
//!    asleep last, and counts that thread as searching until it runs. So at most one thread at a time is being woken,
//!    however many tasks come in the meantime.
//! 6. A thread that stops searching because it has found work passes the search on if there is more work anywhere,
//!    batches included. It wakes a sleeping thread. If none sleeps and one more is allowed, it starts a thread.
//! 7. If no thread searches or sleeps and one more is allowed, a thread is started with the task. If no more is
//!    allowed, the task is queued. If the thread never runs, another one is started for what is queued, but no third
//!    one.
//! 8. The number of waiting tasks is the number pushed minus the number begun. Each thread counts the tasks it begins
//!    in words of its own. These counts are summed again only when the bound is reached by the last sum, or when that
//!    sum leaves too little room for waiting callers. The sum of begun tasks is never too large, so the bound holds. A
//!    call that reports a full queue found it full at some moment of the call.
//!
//! # Synchronization
//!
//! - Every move of a task is made under the lock, except the last one, from a batch to its run.
//! - A thread counts itself as sleeping under the lock, after it has registered its take and found nothing. So a caller
//!   that pushes and finds no thread sleeping has nothing more to do: a thread that falls asleep later looks after the
//!   push. A caller that finds a thread sleeping also finds its take. If the take is gone, that thread is on its way to
//!   the lock and will look.
//! - A caller that waits for room raises `blocked` under the lock, and a thread reads `blocked` under the lock at the
//!   end of each batch. Between batches a thread may miss the change. Callers therefore also look by themselves.
//!
//! # Progress
//!
//! Blocking, because of the lock: a thread that is stopped while it holds the lock stops the pool.
//!
//! # When to use it, and when not
//!
//! Use it for many tasks, above all short ones, and a known number of threads. Do not use it for tasks that wait for
//! each other: the waiting tasks may hold all threads, and the tasks they wait for stay in the queue. For those,
//! [`hand_off`](crate::hand_off) starts a thread for each task.
//!
//! # Memory
//!
//! Four words a task, and a box for a task that captures more than three words. The queue and each thread have memory
//! for 64 tasks from the start, 2 KiB. Memory beyond that, for a burst, is released after the burst.

use crate::chunks::CHUNK;
use crate::current::is_starting;
use crate::error::{Reason, Rejected};
use crate::settings::{Queueing, Rejection};
use crate::shared::{Phase, Shared, State, Work};
use crate::slot::{Slot, add};
use crate::sync::{Arc, Instant, MutexGuard, Relaxed, SeqCst, fence, wait};
use crate::task::Task;
use corelane::error::PopTimeoutError;
use std::io;
use std::time::Duration;

/// How long a thread searches before it goes to sleep.
const SEARCH: Duration = Duration::from_micros(5);

/// Pauses between two looks at the queue. Tasks pushed in the meantime are taken as one batch.
const PAUSES: usize = 16;

/// While callers wait for room, a thread wakes them at the end of each batch and, between tasks, at most once in this
/// time. If it woke them after every task, a caller would sleep again after one push.
const WAKE: Duration = Duration::from_micros(50);

/// Once half of the queue is free, one more caller is woken for each such amount of further room, in tasks.
const ROOM: usize = 16;

/// How often a caller that waits for room looks by itself. It must, because a thread may begin a long task just before
/// it would have woken callers, and no thread wakes them while less than half of the queue is free.
const LOOK_FOR_ROOM: Duration = Duration::from_millis(2);

/// Models have no time, so no caller can look by itself there. In models this fence makes sure that none has to.
fn model_fence() {
    if cfg!(corelane_loom) {
        fence(SeqCst);
    }
}

/// The next task of a thread.
enum Next {
    /// Handed over directly by its caller.
    Handed(Task),
    /// It was queued, and is already counted as begun.
    Queued(Task),
}

/// How a thread that has found work passes the search on.
enum PassOn {
    Nothing,
    Wake,
    Start,
}

/// The room at which the first waiting caller is woken: half of the queue.
fn enough_room(capacity: u64) -> u64 {
    (capacity / 2).max(1)
}

/// How many callers to wake for this room.
fn callers(room: u64, enough: u64) -> usize {
    if room < enough { 0 } else { 1 + (room - enough) as usize / ROOM }
}

impl State {
    fn has_room(&mut self) -> bool {
        self.backlog.accepted < self.backlog.limit || self.room() > 0
    }

    /// Room for further tasks, by a new sum of the tasks begun.
    fn room(&mut self) -> u64 {
        self.backlog.limit = self.totals().queued.saturating_add(self.backlog.capacity);
        self.backlog.limit - self.backlog.accepted
    }

    /// Whether a thread ends because there are too many. The last running thread stays while tasks are queued: the
    /// other counted threads are being started, and their starts may fail.
    fn has_surplus(&self) -> bool {
        self.threads > self.limits.max && (self.live > 1 || !self.has_queued())
    }

    fn has_queued(&self) -> bool {
        !self.backlog.tasks.is_empty() || self.slots.iter().any(|slot| slot.batched() > 0)
    }
}

impl Shared {
    /// Decides how to pass the search on, for a thread that knows of more work than it can begin. The result is counted
    /// here; the caller carries it out after it has left the lock.
    fn pass_on(&self, state: &mut State) -> PassOn {
        if state.backlog.searching > 0 {
            PassOn::Nothing
        } else if state.backlog.sleeping > 0 {
            state.backlog.searching += 1;
            PassOn::Wake
        } else if state.threads < state.limits.max {
            // After a shutdown, too: the accepted tasks may need the thread.
            self.count_thread(state);
            PassOn::Start
        } else {
            PassOn::Nothing
        }
    }

    fn is_bounded_and_blocks(&self) -> bool {
        matches!((self.config.queueing, self.config.rejection), (Queueing::Bounded(_), Rejection::Block(_)))
    }

    /// Hands the task over or queues it. With a `limit`, waits for room, at most for that time in all.
    pub(crate) fn enqueue(self: &Arc<Self>, mut task: Task, limit: Option<Duration>) -> Result<(), Rejected<Task>> {
        let mut state = self.lock();
        let mut grows = true;
        let mut wakes = true;
        // The outer `None`: the call has not waited yet. The inner `None`: the call may wait without end.
        let mut deadline: Option<Option<Instant>> = None;
        let mut until = |timeout| *deadline.get_or_insert_with(|| Instant::now().checked_add(timeout));
        loop {
            if state.phase != Phase::Running {
                drop(state);
                return Err(Rejected::new(task, Reason::ShutDown));
            }
            // After a search of this call that found no sleeping thread, the search is passed on: others may have
            // relied on it.
            let give_up = |state| if wakes { drop(state) } else { self.go_on(state) };
            let core_first = self.config.core_first && state.threads < state.limits.core;
            if wakes && !core_first && state.backlog.searching == 0 && state.backlog.sleeping > 0 {
                state.backlog.searching += 1;
                drop(state);
                match self.idle.try_put(Work { task: Some(task), reserved: true }) {
                    Ok(()) => return Ok(()),
                    Err(error) => task = error.into_inner().into_task(),
                }
                state = self.lock();
                state.backlog.searching -= 1;
                wakes = false;
                continue;
            }
            // If no thread runs, none searches: `searching` was then counted for a thread that has left.
            let searched = state.backlog.searching > 0 && state.live > 0;
            if grows && state.may_grow() && (core_first || !searched) {
                self.count_thread(&mut state);
                drop(state);
                match self.start(Some(task)) {
                    Ok(()) => return Ok(()),
                    Err((error, first)) => {
                        task = first.expect("it did not run");
                        if self.lock().live == 0 {
                            return Err(Rejected::new(task, Reason::NoThread(error)));
                        }
                        self.let_go(error);
                        state = self.lock();
                    }
                }
                grows = false;
                continue;
            }
            if state.live == 0 {
                // All allowed threads are still being started. If their starts fail, no thread would run the task.
                if state.threads == 0 {
                    grows = true;
                } else if is_starting(self.id) {
                    give_up(state);
                    let error = io::Error::new(io::ErrorKind::WouldBlock, "`start_with` cannot wait for its thread");
                    return Err(Rejected::new(task, Reason::NoThread(error)));
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
            let Some(until) = limit.filter(|_| !is_starting(self.id)).map(&mut until) else {
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

    /// Queues the task. Returns true if a thread has to be woken.
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
            let until = if cfg!(corelane_loom) { until } else { Some(until.map_or(look, |until| until.min(look))) };
            state = wait(&self.room, state, until);
        }
        self.blocked.fetch_sub(1, Relaxed);
        state
    }

    /// Wakes callers that wait for room once half of the queue is free. The first caller may fill that half alone. More
    /// are woken if still more of the queue is free at the next call.
    fn wake_callers(&self, state: &mut State) {
        // Models have no time, so no caller looks by itself there.
        let enough = if cfg!(corelane_loom) { 1 } else { enough_room(state.backlog.capacity) };
        let known = state.backlog.limit - state.backlog.accepted;
        let room = if known >= enough { known } else { state.room() };
        let callers = callers(room, enough);
        (0..callers.min(self.blocked.load(Relaxed))).for_each(|_| self.room.notify_one());
    }

    /// Runs a task that was queued and is already counted as begun.
    fn run_queued(&self, slot: &Slot, task: Task, woken: &mut Option<Instant>) {
        if woken.is_some() {
            model_fence();
            if self.blocked.load(Relaxed) > 0 {
                let now = Instant::now();
                if cfg!(corelane_loom) || woken.is_some_and(|woken| now - woken >= WAKE) {
                    self.wake_callers(&mut self.lock());
                    *woken = Some(now);
                }
            }
        }
        self.run(slot, task);
    }

    pub(crate) fn serve_queue(self: &Arc<Self>, slot: &Slot, first: Option<Task>) {
        // When this thread last woke callers that wait for room. `None` if no caller ever waits for room.
        let mut woken = self.is_bounded_and_blocks().then(Instant::now);
        let mut next = first.map(Next::Handed);
        if next.is_some() {
            // A caller that could not wake a sleeping thread has started this one instead. Other callers may have left
            // their tasks to that caller's search, so the search is passed on.
            self.go_on(self.lock());
        }
        loop {
            match next.take() {
                Some(Next::Handed(task)) => {
                    add(&slot.tally.direct, 1);
                    self.run(slot, task);
                }
                Some(Next::Queued(task)) => self.run_queued(slot, task, &mut woken),
                None => {}
            }
            while let Some(task) = slot.pop() {
                add(&slot.tally.queued, 1);
                self.run_queued(slot, task, &mut woken);
            }
            next = self.find(slot);
            if next.is_none() {
                return;
            }
        }
    }

    /// Finds the thread's next task, and may fill its batch. `None`: the thread has to end.
    fn find(self: &Arc<Self>, slot: &Slot) -> Option<Next> {
        let mut state = self.lock();
        if self.blocked.load(Relaxed) > 0 {
            self.wake_callers(&mut state);
        }
        let mut searched = false;
        loop {
            if state.has_surplus() {
                self.retire(&mut state);
                self.go_on(state);
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
                // A task may also have come by the ticket.
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
            // A thread that has slept need not search again.
            searched = true;
        }
    }

    /// Takes the task that came by a ticket, if any. If the put counted a search for this thread, that search ends
    /// here.
    fn woken(state: &mut State, work: Work) -> Option<Task> {
        state.backlog.searching -= u32::from(work.reserved);
        work.task
    }

    /// Passes on the search of a thread that was counted and will not run: others may have relied on it. If the start
    /// of that thread is over, `is_late`, another thread is started for what waits; but only one until a thread has
    /// begun, since that one might not run either, and so on without end.
    pub(crate) fn pass_on_for_none(self: &Arc<Self>, is_late: bool) {
        let mut state = self.lock();
        let waits = state.has_queued() || state.may_grow() && self.idle.waiting_puts() > 0;
        let may_wake = state.backlog.sleeping > 0;
        if waits && (may_wake || is_late && !state.replaced) {
            let pass_on = self.pass_on(&mut state);
            state.replaced |= matches!(pass_on, PassOn::Start);
            drop(state);
            self.do_pass_on(pass_on);
        }
    }

    /// Leaves the lock, and passes the search on if there is more work. Tasks in batches count as well: the thread that
    /// should have looked at them may have stopped here.
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
                    // No take waits: the sleeping thread is waking up, or has found work and relied on this search for
                    // the rest. Other threads may have fallen asleep since.
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
            // If the start fails, the error is dropped: the running threads have the work, and the failure is counted.
            PassOn::Start => self.let_go(self.start(None)),
        }
    }

    /// Takes this thread's share of the queue, or else half of another thread's batch. Returns the first task.
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

    /// Looks for queued tasks for at most [`SEARCH`].
    fn search(&self) {
        if cfg!(corelane_loom) {
            return;
        }
        let until = Instant::now() + SEARCH;
        while !self.hints.has_tasks.load(Relaxed) && Instant::now() < until {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
        }
    }

    /// Takes back the task that has waited longest, as far as the order is known: tasks left the queue for batches in
    /// order.
    pub(crate) fn oldest(&self) -> Option<Task> {
        let mut state = self.lock();
        let task = state.slots.iter().find_map(|slot| slot.pop());
        let task = task.or_else(|| state.backlog.tasks.pop())?;
        state.backlog.accepted -= 1;
        if state.backlog.tasks.is_empty() {
            self.hints.has_tasks.store(false, Relaxed);
        }
        Some(task)
    }

    /// Takes back all tasks that have not begun, in the order of their pushes, those in batches first.
    pub(crate) fn take_back(&self) -> Vec<Task> {
        let mut state = self.lock();
        let mut tasks: Vec<Task> = state.slots.iter().flat_map(|slot| slot.take_all()).collect();
        tasks.extend(state.backlog.tasks.drain());
        self.hints.has_tasks.store(false, Relaxed);
        state.backlog.accepted -= tasks.len() as u64;
        tasks
    }
}

#[cfg(all(test, not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::*;
    use crate::{ThreadPool, Worker};
    use std::sync::Mutex;
    use std::thread;

    #[test]
    fn half_of_the_queue_wakes_a_caller_and_more_of_it_more() {
        for (capacity, enough) in [(1, 1), (2, 1), (3, 1), (1024, 512)] {
            assert_eq!(enough_room(capacity), enough);
            assert_eq!((callers(enough - 1, enough), callers(enough, enough)), (0, 1), "{capacity}");
        }
        assert_eq!((callers(512 + 15, 512), callers(512 + 16, 512), callers(1024, 512)), (1, 2, 33));
    }

    /// A thread is busy, and two workers are lost, the first while another thread searches: the second is replaced.
    #[test]
    fn a_worker_that_needs_no_successor_leaves_the_next_one_its_own() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keeps = kept.clone();
        let start = move |worker: Worker| {
            if worker.number() == 0 {
                return thread::Builder::new().spawn(|| worker.run());
            }
            keeps.lock().unwrap().push(worker);
            thread::Builder::new().spawn(|| ())
        };
        let pool =
            ThreadPool::builder().max_threads(2).queueing(Queueing::Unbounded).start_with(start).build().unwrap();
        let lose = || {
            let worker: Worker = kept.lock().unwrap().pop().expect("one was started");
            // Not under the lock: it may start another.
            drop(worker);
        };
        let (end, busy) = std::sync::mpsc::channel::<()>();
        let (begins, begun) = std::sync::mpsc::channel();
        pool.execute(move || {
            begins.send(()).unwrap();
            let _ = busy.recv();
        })
        .unwrap();
        begun.recv().unwrap();
        let [lost, waits] = [(); 2].map(|()| pool.spawn(|| 7).unwrap());
        pool.shared().lock().backlog.searching += 1;
        lose();
        pool.shared().lock().backlog.searching -= 1;
        assert!(kept.lock().unwrap().is_empty());
        let lost_too = pool.spawn(|| 7).unwrap();
        lose();
        let worker = kept.lock().unwrap().pop().expect("a task waits, and one more thread may start");
        let runs = thread::spawn(|| worker.run());
        assert_eq!([lost, waits, lost_too].map(|task| task.join().ok()), [None, Some(7), None]);
        drop(end);
        assert!(pool.join());
        runs.join().unwrap();
    }
}
