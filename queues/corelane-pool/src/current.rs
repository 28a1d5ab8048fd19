//! What the current thread is to a pool: one of its threads, or in the middle of starting one.

use crate::sync::plain::Mutex;
use crate::sync::{ThreadId, current, thread_local};
use std::cell::Cell;

thread_local! {
    // The pool that this thread belongs to, from the start of its worker to the end of the thread. Without a
    // destructor, so that the destructors of other thread-locals find it. Loom's macro knows no `const`.
    #[allow(clippy::missing_const_for_thread_local)]
    static POOL: Cell<u64> = Cell::new(0);
}

/// From now on this thread belongs to the pool of that number.
pub(crate) fn belong_to(id: u64) {
    let _ = POOL.try_with(|pool| pool.set(id));
}

/// Whether this thread belongs to the pool of that number, and so cannot wait for the pool's end. Where a platform
/// destroys even thread-locals without destructors, a thread that ends is taken for the pool's.
pub(crate) fn belongs_to(id: u64) -> bool {
    POOL.try_with(|pool| pool.get() == id).unwrap_or(true)
}

/// The threads that are in `start_with`, and in that of which pool, as often as they are.
static STARTERS: Mutex<Vec<(ThreadId, u64)>> = Mutex::new(Vec::new());

fn starters() -> std::sync::MutexGuard<'static, Vec<(ThreadId, u64)>> {
    STARTERS.lock().expect("nothing panics under this lock")
}

/// While this value lives, the thread that made it is in `start_with` of the pool of this number, or must wait for
/// nothing of that pool either. Starts of several pools may be nested.
pub(crate) struct Starter(u64);

impl Starter {
    pub(crate) fn enter(pool: u64) -> Self {
        let here = current().id();
        starters().push((here, pool));
        Self(pool)
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        let entry = (current().id(), self.0);
        let mut starters = starters();
        let at = starters.iter().position(|&other| other == entry).expect("it has entered");
        starters.swap_remove(at);
    }
}

/// Whether this thread is in `start_with` of the pool of that number. It may be making the only thread that would do
/// what it waits for.
pub(crate) fn is_starting(pool: u64) -> bool {
    let starters = starters();
    !starters.is_empty() && starters.contains(&(current().id(), pool))
}
