//! A thread of the pool: how it begins, how it ends, and how what runs in it knows the pool.

use crate::shared::Shared;
use crate::slot::{Slot, add, join_all};
use crate::sync::{Arc, lock, thread_local};
use std::cell::RefCell;
use std::fmt;

/// A thread of a pool that is about to be started: what [`Builder::start_with`](crate::Builder::start_with) gets.
/// Dropped without [`run`](Self::run), it was never started, and the task it was to begin with is dropped with it or
/// returned to its caller.
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

    /// What the thread should be called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts the threads of the pool, those that could not be started among them, from 0.
    pub fn number(&self) -> usize {
        self.slot.number
    }

    /// The size its stack should have in bytes, if the pool was told one.
    pub fn stack_size(&self) -> Option<usize> {
        self.shared.config.stack_size
    }

    /// Runs tasks until the thread is to end. The thread should end then.
    pub fn run(self) {
        if !self.slot.claim() {
            return;
        }
        let before = {
            let _context = Context::enter(&self.shared, &self.slot);
            self.shared.enter(&self.slot);
            self.shared.hook(&self.shared.config.on_thread_start, self.slot.number);
            let first = lock(&self.slot.first).take();
            self.shared.serve(&self.slot, first);
            self.shared.hook(&self.shared.config.on_thread_stop, self.slot.number);
            self.shared.leave(&self.slot)
        };
        join_all(before);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.slot.claim() {
            self.shared.never_started();
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

thread_local! {
    // Loom's macro knows no `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static CONTEXT: RefCell<Option<(Arc<Shared>, Arc<Slot>)>> = RefCell::new(None);
}

/// Makes a thread known as the pool's, while it lives.
struct Context;

impl Context {
    fn enter(shared: &Arc<Shared>, slot: &Arc<Slot>) -> Self {
        CONTEXT.with(|context| *context.borrow_mut() = Some((shared.clone(), slot.clone())));
        Self
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // What the pool owns is dropped when the thread-local is free again.
        drop(CONTEXT.with(|context| context.borrow_mut().take()));
    }
}

/// Calls with the pool and the slot of this thread, if it is a pool's.
pub(crate) fn with_current<R>(f: impl FnOnce(&Arc<Shared>, &Slot) -> R) -> Option<R> {
    // A thread-local that is dropped later may ask, too.
    CONTEXT.try_with(|context| context.borrow().as_ref().map(|(shared, slot)| f(shared, slot))).ok().flatten()
}

/// Counts a panic that is taken care of elsewhere.
pub(crate) fn count_panic() {
    with_current(|_, slot| add(&slot.tally.panicked, 1));
}
