//! What the tests share.

use corelane_pool::{Builder, Fairness, Queueing, ThreadPool, Worker};
use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Short, and longer than any spin.
pub(crate) const T: Duration = Duration::from_millis(20);
/// Far longer than a test.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "never came true: {what}");
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Counts one more.
pub(crate) fn bump(count: &AtomicUsize) {
    count.fetch_add(1, SeqCst);
}

/// Calls a closure when it is dropped.
pub(crate) struct AtDrop(Option<Box<dyn FnOnce() + Send>>);

impl AtDrop {
    pub(crate) fn call(call: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(call)))
    }
}

impl Drop for AtDrop {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|call| call());
    }
}

thread_local! {
    static LATE: RefCell<Option<AtDrop>> = const { RefCell::new(None) };
}

/// Calls this when the thread's locals are dropped, or in [`end_this_thread`].
pub(crate) fn at_the_end_of_this_thread(call: impl FnOnce() + Send + 'static) {
    LATE.set(Some(AtDrop::call(call)));
}

/// Calls now what is to be called at the end of this thread.
pub(crate) fn end_this_thread() {
    drop(LATE.take());
}

/// What tasks stand before until it is opened. Opened when a test fails, too, whose pool then waits for its tasks.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<(bool, usize)>, Condvar)>);

impl Gate {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// For tasks: waits until it is open.
    pub(crate) fn pass(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        state.1 += 1;
        changed.notify_all();
        drop(changed.wait_while(state, |(open, _)| !*open).unwrap());
    }

    pub(crate) fn open(&self) {
        let (state, changed) = &*self.0;
        state.lock().unwrap().0 = true;
        changed.notify_all();
    }

    /// Waits until so many have come.
    pub(crate) fn await_comers(&self, count: usize) {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap();
        let (_state, result) = changed.wait_timeout_while(state, LONG, |(_, came)| *came < count).unwrap();
        assert!(!result.timed_out(), "{count} did not come");
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.open();
        }
    }
}

/// Occupies so many threads of the pool until the gate is opened.
pub(crate) fn occupy(pool: &ThreadPool, threads: usize) -> Gate {
    let gate = Gate::new();
    for _ in 0..threads {
        // A thread that was just woken may not wait yet.
        until("a thread has it", || {
            let gate = gate.clone();
            pool.try_execute(move || gate.pass()).is_ok()
        });
    }
    gate.await_comers(threads);
    gate
}

/// Every way to queue.
pub(crate) const ALL: [Queueing; 4] = [
    Queueing::HandOff(Fairness::Unfair),
    Queueing::HandOff(Fairness::Fair),
    Queueing::Unbounded,
    Queueing::Bounded(1000),
];

/// Those with a queue.
pub(crate) const QUEUES: [Queueing; 2] = [Queueing::Unbounded, Queueing::Bounded(1000)];

pub(crate) const UNFAIR: Queueing = Queueing::HandOff(Fairness::Unfair);

/// A pool's settings with core and most threads.
pub(crate) fn builder(queueing: Queueing, core: usize, max: usize) -> Builder {
    ThreadPool::builder().queueing(queueing).core_threads(core).max_threads(max)
}

/// A thread as the pool itself starts it.
pub(crate) fn start(worker: Worker) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(worker.name().to_owned()).spawn(move || worker.run())
}

/// Waits until every thread of the pool waits. Without a queue, a thread may not wait yet although its task is over.
pub(crate) fn settle(pool: &ThreadPool) {
    until("all wait", || pool.counts().active == 0 && pool.waiting_threads() == pool.counts().threads);
}

/// CPU time that the process has used.
pub(crate) fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // utime and stime, in hundredths of a second.
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
