//! What a worker's panic leaves.

use core::any::Any;
use core::fmt;
use std::boxed::Box;

/// The panic of a worker.
///
/// ```
/// let (mut dispatcher, mut workers) = corelane::dispatch::channel::<u32>(1, 8);
/// workers.remove(0).run(|_| panic!("I give up"));
/// assert!(dispatcher.try_dispatch(1).unwrap_err().is_panicked());
/// let panic = dispatcher.take_panic().unwrap();
/// assert_eq!((panic.worker(), panic.message()), (0, Some("I give up")));
/// assert_eq!(panic.to_string(), "worker 0 has panicked: I give up");
/// // What `std::panic::resume_unwind` goes on with.
/// assert!(panic.into_payload().is_some_and(|payload| payload.is::<&str>()));
/// ```
pub struct WorkerPanic {
    worker: usize,
    payload: Option<Box<dyn Any + Send>>,
}

impl WorkerPanic {
    pub(super) fn new(worker: usize, payload: Option<Box<dyn Any + Send>>) -> Self {
        Self { worker, payload }
    }

    /// The worker's number.
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// What it said, if that was text, as it usually is.
    pub fn message(&self) -> Option<&str> {
        let payload = self.payload.as_ref()?;
        payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref().map(std::string::String::as_str))
    }

    /// What it threw: `None` if it panicked outside of [`Worker::run`](super::Worker::run).
    pub fn into_payload(self) -> Option<Box<dyn Any + Send>> {
        self.payload
    }
}

impl fmt::Debug for WorkerPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPanic").field("worker", &self.worker).field("message", &self.message()).finish()
    }
}

impl fmt::Display for WorkerPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} has panicked", self.worker)?;
        match self.message() {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for WorkerPanic {}
