//! Recorded histories: when calls began and ended, and the checker of linearizability that judges what they answered
//! (Wing and Gong's algorithm with Lowe's improvements).

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use todc_utils::{Action, History, Specification, WGLChecker};

/// A call's beginning and end, by the clock, and the call with its answer.
pub(crate) type Event<C> = (usize, usize, C);

/// Gives each moment a number, to all threads.
#[derive(Default)]
pub(crate) struct Clock(AtomicUsize);

impl Clock {
    pub(crate) fn tick(&self) -> usize {
        self.0.fetch_add(1, SeqCst)
    }

    /// Makes a call between two moments.
    pub(crate) fn time<R>(&self, call: impl FnOnce() -> R) -> Event<R> {
        let begin = self.tick();
        let answer = call();
        (begin, self.tick(), answer)
    }
}

/// Runs these in threads that begin together, and gives back what each has recorded. Threads of their own for each
/// history: none waits for one that has panicked.
pub(crate) fn record<R: Send>(recorders: impl IntoIterator<Item = impl FnOnce() -> R + Send>) -> Vec<R> {
    let recorders: Vec<_> = recorders.into_iter().collect();
    let missing = AtomicUsize::new(recorders.len());
    thread::scope(|scope| {
        let missing = &missing;
        let threads = recorders.into_iter().map(|recorder| {
            scope.spawn(move || {
                missing.fetch_sub(1, SeqCst);
                while missing.load(SeqCst) != 0 {
                    thread::yield_now();
                }
                recorder()
            })
        });
        threads.collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Whether there is an order of the calls in which each takes effect between its beginning and its end, and answers as
/// the specification does. Each call stands for itself: calls of one thread may overlap, as the two halves of one that
/// waits.
pub(crate) fn is_linearizable<S: Specification>(events: impl IntoIterator<Item = Event<S::Operation>>) -> bool {
    let mut actions: Vec<_> = events
        .into_iter()
        .enumerate()
        .flat_map(|(id, (begin, end, call))| {
            [(begin, id, Action::Call(call.clone())), (end, id, Action::Response(call))]
        })
        .collect();
    if actions.is_empty() {
        return true;
    }
    actions.sort_by_key(|&(at, ..)| at);
    let actions = actions.into_iter().map(|(_, id, action)| (id, action)).collect();
    WGLChecker::<S>::is_linearizable(History::from_actions(actions))
}
