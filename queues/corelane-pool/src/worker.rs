//! A thread of the pool: how it begins, how it ends, and how code that runs in it finds the pool.

use crate::current::{self, Starter};
use crate::settings::Handler;
use crate::shared::Shared;
use crate::slot::{Slot, add, join_all};
use crate::sync::{Arc, thread_local};
use std::cell::RefCell;
use std::fmt;

/// A thread of a pool before its start; [`Builder::start_with`](crate::Builder::start_with) gets it. If it is dropped
/// without [`run`](Self::run), for example because its thread panics, the thread never starts. Its first task goes back
/// to the caller.
///
/// If `start_with` has returned, there is no caller. The drop of the worker then drops the task, and
/// [`discarded`](crate::Counts::discarded) counts it; that drop must not wait for the pool, as `start_with` must not.
/// If other tasks wait, it starts another thread, and no further one until a thread has begun. The end of the pool
/// waits for every worker, so it never comes if one is leaked.
///
/// ```
/// use corelane_pool::ThreadPool;
/// use std::thread;
///
/// let pool = ThreadPool::builder()
///     .name("bound")
///     .stack_size(256 * 1024)
///     .start_with(|worker| {
///         let thread = thread::Builder::new().name(worker.name().into());
///         let thread = worker.stack_size().into_iter().fold(thread, thread::Builder::stack_size);
///         thread.spawn(move || {
///             // Here it might be bound to a CPU.
///             println!("{} is thread {}", worker.name(), worker.number());
///             worker.run();
///         })
///     })
///     .build()?;
/// let name = pool.spawn(|| thread::current().name().map(String::from)).unwrap();
/// assert_eq!(name.join().unwrap().as_deref(), Some("bound-0"));
/// # Ok::<(), corelane_pool::BuildError>(())
/// ```
pub struct Worker {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    name: String,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, slot: Arc<Slot>) -> Self {
        let name = shared.config.name.as_deref().unwrap_or("corelane-pool");
        let name = format!("{name}-{}", slot.number);
        Self { shared, slot, name }
    }

    /// The name that the thread should have.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The thread's number in the pool, counted from 0. Threads that could not be started are counted, too.
    pub fn number(&self) -> usize {
        self.slot.number
    }

    /// The stack size in bytes that the thread should have, if the [`Builder`](crate::Builder) sets one.
    pub fn stack_size(&self) -> Option<usize> {
        self.shared.config.stack_size
    }

    /// Runs tasks until the pool lets the thread end. The thread should end after this call. Returns at once if the
    /// start has failed in the meantime.
    pub fn run(self) {
        let Some(first) = self.slot.begin() else { return };
        let before = {
            let _context = Context::enter(&self.shared, Some(&self.slot));
            current::belong_to(self.shared.id);
            self.shared.enter(&self.slot);
            self.shared.hook(&self.shared.config.on_thread_start, self.slot.number);
            self.shared.serve(&self.slot, first);
            self.shared.hook(&self.shared.config.on_thread_stop, self.slot.number);
            self.shared.leave(&self.slot)
        };
        join_all(before);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.slot.give_up() {
            let orphan = self.slot.orphan();
            let is_late = orphan.is_some();
            if let Some(task) = orphan.flatten() {
                // The end of the pool waits for this drop, so nothing in it may wait for the pool.
                let _starter = Starter::enter(self.shared.id);
                self.shared.discard(task);
            }
            self.shared.never_started();
            self.shared.pass_on_for_none(is_late);
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The pool whose tasks a thread runs, and the thread's slot unless it is only a caller that runs a task itself.
type Place = Option<(Arc<Shared>, Option<Arc<Slot>>)>;

thread_local! {
    // Loom's macro knows no `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static CONTEXT: RefCell<Place> = RefCell::new(None);
}

/// While this value lives, what the thread runs counts for the pool. Afterwards as before.
pub(crate) struct Context(Place);

impl Context {
    pub(crate) fn enter(shared: &Arc<Shared>, slot: Option<&Arc<Slot>>) -> Self {
        Self(replace(Some((shared.clone(), slot.cloned()))))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // The pool's data is dropped when the thread-local is no longer borrowed.
        drop(replace(self.0.take()));
    }
}

/// Nothing in a destructor of a thread-local that is dropped later.
fn replace(place: Place) -> Place {
    CONTEXT.try_with(|context| context.replace(place)).ok().flatten()
}

/// Calls `f` with the pool whose tasks this thread runs, and with the thread's slot.
pub(crate) fn with_current(f: impl FnOnce(&Arc<Shared>, Option<&Slot>)) {
    // A thread-local that is dropped later may also call this.
    let _ = CONTEXT.try_with(|context| {
        if let Some((shared, slot)) = &*context.borrow() {
            f(shared, slot.as_deref());
        }
    });
}

/// Counts a panic that another part of the pool handles, if this thread runs a task of a pool. Returns its handler.
pub(crate) fn count_panic() -> Handler {
    let mut handler = Handler::default();
    with_current(|shared, slot| {
        match slot {
            Some(slot) => add(&slot.tally.panicked, 1),
            None => shared.count_panic(),
        }
        handler = shared.config.on_panic.clone();
    });
    handler
}
