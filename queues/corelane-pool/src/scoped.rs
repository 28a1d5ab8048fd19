//! Tasks that borrow from their caller.
//!
//! # How it works
//!
//! 1. A task of a scope is a *cell* that holds the closure. The scope keeps a list of its cells. The pool gets a task
//!    that refers to the cell.
//! 2. The thread that takes the closure out of the cell runs it. This is a thread of the pool or, at the end of the
//!    scope, the thread that opened the scope. So a scope ends even if the pool is full, shut down or without threads.
//!    Scopes inside tasks of the same pool never wait for a thread that waits for them.
//! 3. At its end the scope takes every remaining closure and runs it, then waits until the closures that other threads
//!    took have ended. The pool may keep references to empty cells; their tasks do nothing.
//!
//! # Why this is sound
//!
//! The closure lives for `'env` and is stored as if it lived for ever. It is run or dropped before
//! [`ThreadPool::scope`] returns or unwinds, so before `'env` ends:
//! - The closure is always in its cell or with the one thread that has taken it. It is taken once, under the cell's
//!   lock.
//! - `scope` returns only after it has found each cell empty and each taken closure ended. It catches a panic of the
//!   scope's own closure first, and waits in the drop of a guard, which nothing can pass by. If a task of the scope
//!   adds a closure, that closure is in the list before the task ends.
//! - A task's panic is caught before its cell counts as ended. The closure is dropped by then, because running the
//!   closure consumes it.
//! - `'scope` is invariant, and `'env` outlives it. So everything that the closure borrows outlives the call of
//!   `scope`, as in the standard library.

use crate::closure::Closure;
use crate::pool::ThreadPool;
use crate::shared::Shared;
use crate::sync::{Arc, Condvar, Mutex, lock, wait};
use crate::task::Task;
use crate::worker::count_panic;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A closure, until a thread takes it.
struct Cell {
    closure: Mutex<Option<Closure<'static>>>,
    scope: Arc<Ledger>,
}

impl Cell {
    /// Runs the closure, if it is there. The scope reports the first panic, which `count` counts. Returns any other.
    /// `count` may take the pool's lock under the ledger's, never the other way round.
    fn run(&self, count: impl FnOnce()) -> Result<(), Box<dyn Any + Send>> {
        let Some(closure) = lock(&self.closure).take() else { return Ok(()) };
        let outcome = catch_unwind(AssertUnwindSafe(|| closure.call()));
        let mut entries = lock(&self.scope.entries);
        let further = match outcome {
            Err(payload) if entries.panic.is_none() => {
                entries.panic = Some(payload);
                count();
                Ok(())
            }
            outcome => outcome,
        };
        entries.unfinished -= 1;
        if entries.unfinished == 0 {
            self.scope.changed.notify_all();
        }
        further
    }
}

#[derive(Default)]
struct Entries {
    /// Cells that may still have their closures, oldest first.
    cells: Vec<Arc<Cell>>,
    /// Closures that have not ended.
    unfinished: usize,
    panic: Option<Box<dyn Any + Send>>,
}

struct Ledger {
    entries: Mutex<Entries>,
    /// Signals that all closures have ended, or that there is a new one.
    changed: Condvar,
}

impl Ledger {
    fn new() -> Self {
        Self { entries: Mutex::new(Entries::default()), changed: Condvar::new() }
    }
}

/// Adds tasks that may borrow. See [`ThreadPool::scope`].
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// let pool = corelane_pool::ThreadPool::fixed(2);
/// let sum = AtomicU32::new(0);
/// pool.scope(|scope| {
///     scope.spawn(|| {
///         sum.fetch_add(1, Relaxed);
///         // A task may add further ones.
///         scope.spawn(|| drop(sum.fetch_add(2, Relaxed)));
///     });
/// });
/// assert_eq!(sum.into_inner(), 3);
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    pool: ThreadPool,
    ledger: Arc<Ledger>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// Runs the closure in a thread of the pool. If no thread has begun it by the end of the scope, the thread that
    /// opened the scope runs it. Never fails and never waits.
    pub fn spawn(&'scope self, task: impl FnOnce() + Send + 'scope) {
        let closure: Closure<'scope> = Closure::new(task);
        // SAFETY: only the lifetime changes. The closure is run or dropped before `'scope` ends: see "Why this is
        // sound" in the header.
        let closure: Closure<'static> = unsafe { std::mem::transmute(closure) };
        let cell = Arc::new(Cell { closure: Mutex::new(Some(closure)), scope: self.ledger.clone() });
        {
            let mut entries = lock(&self.ledger.entries);
            entries.unfinished += 1;
            entries.cells.push(cell.clone());
            // If a task adds this closure, the scope may already be waiting: wake it.
            self.ledger.changed.notify_one();
        }
        let task = move || cell.run(|| drop(count_panic())).unwrap_or_else(|payload| resume_unwind(payload));
        // If the pool refuses the task, the closure is run at the end of the scope.
        self.pool.shared().let_go(self.pool.try_execute_task(Task::new(task)));
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

/// Runs or awaits every closure of the scope when it is dropped.
struct End<'a>(&'a Ledger, &'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut entries = lock(&self.0.entries);
        while entries.unfinished > 0 {
            let cells = std::mem::take(&mut entries.cells);
            if cells.is_empty() {
                entries = wait(&self.0.changed, entries, None);
                continue;
            }
            drop(entries);
            for cell in cells {
                if let Err(payload) = cell.run(|| self.1.count_panic()) {
                    self.1.take_panic(payload);
                }
            }
            entries = lock(&self.0.entries);
        }
        // Cells that other threads have emptied refer to the ledger, so the ledger must not refer to them.
        entries.cells.clear();
    }
}

impl ThreadPool {
    /// Runs tasks that may borrow from outside the closure, and returns when all of them have ended.
    ///
    /// The calling thread helps: when the closure has returned, it runs the tasks that no thread of the pool has begun.
    /// So scopes may be nested in a pool of any size, and they work in a pool that is full or shut down.
    ///
    /// # Panics
    /// If a task panicked, with the payload of the first panic, once all tasks have ended. If the closure panicked,
    /// with its payload. Any other panic goes to the [handler](crate::Builder::on_panic).
    ///
    /// ```
    /// let pool = corelane_pool::ThreadPool::fixed(2);
    /// let mut halves = [vec![3, 1, 2], vec![6, 4, 5]];
    /// pool.scope(|scope| {
    ///     for half in &mut halves {
    ///         scope.spawn(|| half.sort());
    ///     }
    /// });
    /// assert_eq!(halves.concat(), [1, 2, 3, 4, 5, 6]);
    /// ```
    ///
    /// Everything that a task borrows must outlive the scope:
    ///
    /// ```compile_fail
    /// let pool = corelane_pool::ThreadPool::cached();
    /// pool.scope(|scope| {
    ///     let inside = 5;
    ///     scope.spawn(|| println!("{inside}"));
    /// });
    /// ```
    pub fn scope<'env, R>(&self, f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
        self.scope_with(&Arc::new(Ledger::new()), f)
    }

    fn scope_with<'env, R>(
        &self,
        ledger: &Arc<Ledger>,
        f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        let scope = Scope { pool: self.clone(), ledger: ledger.clone(), scope: PhantomData, env: PhantomData };
        let shared = self.shared();
        let end = End(ledger, shared);
        let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
        // Not while the closure's panic unwinds: a task would take that panic for its own.
        drop(end);
        let panic = lock(&ledger.entries).panic.take();
        match (result, panic) {
            (Ok(result), None) => result,
            (Ok(result), Some(payload)) => {
                shared.let_go(result);
                resume_unwind(payload)
            }
            (Err(own), payload) => {
                payload.into_iter().for_each(|payload| shared.config.on_panic.call(payload));
                resume_unwind(own)
            }
        }
    }
}

#[cfg(all(test, not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn a_scope_leaves_nothing_behind() {
        let pool = ThreadPool::fixed(2);
        let ledgers: Vec<_> = (0..10).map(|_| Arc::new(Ledger::new())).collect();
        let over = AtomicUsize::new(0);
        for (tasks, ledger) in ledgers.iter().enumerate() {
            over.store(0, SeqCst);
            pool.scope_with(ledger, |scope| {
                for _ in 0..tasks {
                    scope.spawn(|| {
                        over.fetch_add(1, SeqCst);
                    });
                }
                // By the pool's threads in one half of the rounds, by this one or those in the other.
                while tasks % 2 == 0 && over.load(SeqCst) < tasks {
                    std::thread::yield_now();
                }
            });
            assert_eq!(over.load(SeqCst), tasks);
        }
        pool.join();
        assert!(ledgers.iter().all(|ledger| Arc::strong_count(ledger) == 1));
    }
}
