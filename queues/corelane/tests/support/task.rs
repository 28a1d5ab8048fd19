//! An executor of a model's task.

use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

/// An executor of one task: a thread that sleeps while it is pending.
#[derive(Default)]
pub(crate) struct Task {
    pub(crate) woken: Mutex<bool>,
    changed: Condvar,
    /// Loom does not see it.
    pub(crate) wakes: AtomicUsize,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Relaxed);
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

pub(crate) fn poll<F: Future + Unpin>(task: &Arc<Task>, future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(&Waker::from(task.clone())))
}

pub(crate) fn block_on<F: Future + Unpin>(mut future: F) -> F::Output {
    let task = Arc::new(Task::default());
    loop {
        if let Poll::Ready(output) = poll(&task, &mut future) {
            return output;
        }
        let mut woken = task.woken.lock().unwrap();
        if *woken {
            // It asked to be polled again: another thread has to get on first.
            thread::yield_now();
        }
        while !*woken {
            woken = task.changed.wait(woken).unwrap();
        }
        *woken = false;
    }
}
