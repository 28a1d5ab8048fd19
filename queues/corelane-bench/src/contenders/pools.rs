//! Thread pools: this library's, those of other crates, and the executor of the paper on synchronous queues.

use super::Kind::{self, Corelane, Crate, Paper};
use super::Unable;
use crate::measure::{self, Outcome, Task};
use crate::setting::Setting;
use corelane::handoff::{Fairness, SynchronousQueue};
use corelane_papers::handoff::JavaFive;
use corelane_pool::{Builder, Queueing, Rejection, ThreadPool};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;
use std::time::Duration;

/// A pool of threads that runs tasks.
#[derive(Clone)]
pub(crate) struct Pool {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) runs: Rc<dyn RunsTasks>,
}

/// What is measured of it.
pub(crate) trait RunsTasks {
    /// Tasks of so much work, from so many threads.
    fn tasks(&self, setting: &Setting, submitters: usize, nanoseconds: u64) -> Outcome;
    /// A pool of so many threads that has no task.
    fn idle(&self, setting: &Setting, threads: usize) -> Outcome;
}

/// How a pool is made, and its call.
struct Calls<F, G>(F, G);

impl<P, F, G> RunsTasks for Calls<F, G>
where
    P: Send + Sync + 'static,
    F: Fn(usize) -> Result<P, Unable>,
    G: Fn(&P, Task) -> bool + Copy + Send + 'static,
{
    fn tasks(&self, setting: &Setting, submitters: usize, nanoseconds: u64) -> Outcome {
        measure::tasks(&self.0, self.1, setting, submitters, nanoseconds)
    }

    fn idle(&self, setting: &Setting, threads: usize) -> Outcome {
        measure::idle_pool((self.0)(threads)?, self.1, setting, threads)
    }
}

/// A pool of fixed size has so many threads as `start` gets, one that grows by itself may grow. `execute` returns false
/// if the task is refused.
fn pool<P: Send + Sync + 'static>(
    name: &'static str,
    kind: Kind,
    start: impl Fn(usize) -> Result<P, Unable> + 'static,
    execute: impl Fn(&P, Task) -> bool + Copy + Send + 'static,
) -> Pool {
    Pool { name, kind, runs: Rc::new(Calls(start, execute)) }
}

/// This library's pool. A submitter that finds neither a thread nor room waits.
fn ours(name: &'static str, settings: fn(Builder, usize) -> Builder) -> Pool {
    let start = move |threads| {
        let settings = settings(ThreadPool::builder(), threads).rejection(Rejection::Block(Duration::MAX));
        settings.build().map_err(Unable::because)
    };
    pool(name, Corelane, start, |pool, task| pool.execute(move || task.run()).is_ok())
}

/// Every pool. The cached ones hand tasks directly to threads, and grow to 512 threads, as tokio's for blocking calls.
pub(crate) fn pools() -> Vec<Pool> {
    let rayon = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(Unable::because);
    let tokio = |_| tokio::runtime::Builder::new_current_thread().build().map_err(Unable::because);
    let rusty = |threads| Ok(rusty_pool::Builder::new().core_size(threads).max_size(threads).build());
    vec![
        ours("corelane-pool cached, unfair", |it, _| it.queueing(Queueing::HandOff(Fairness::Unfair))),
        ours("corelane-pool cached, fair", |it, _| it.queueing(Queueing::HandOff(Fairness::Fair))),
        ours("corelane-pool fixed", |it, threads| it.threads(threads).queueing(Queueing::Unbounded)),
        ours("corelane-pool bounded", |it, threads| it.threads(threads).queueing(Queueing::Bounded(1024))),
        pool(
            "threadpool",
            Crate,
            |n| Ok(threadpool::ThreadPool::new(n)),
            |it, task| (it.execute(move || task.run()), true).1,
        ),
        pool("rusty_pool", Crate, rusty, |it: &rusty_pool::ThreadPool, task| {
            it.try_execute(move || task.run()).is_ok()
        }),
        pool("rayon spawn", Crate, rayon, |it, task| (it.spawn(move || task.run()), true).1),
        pool("tokio spawn_blocking", Crate, tokio, |it, task| (drop(it.spawn_blocking(move || task.run())), true).1),
    ]
}

/// The paper's executor over each queue with which it was measured, except Hanson's, which has no `try_put`.
pub(crate) fn executors() -> Vec<Pool> {
    let over = |name, kind, queue: fn() -> Box<dyn Handing>| {
        pool(name, kind, move |_| Ok(Executor::over(queue())), Executor::execute)
    };
    vec![
        over("SynchronousQueue, unfair", Corelane, || Box::new(SynchronousQueue::new(Fairness::Unfair))),
        over("SynchronousQueue, fair", Corelane, || Box::new(SynchronousQueue::new(Fairness::Fair))),
        over("Java SE 5.0, unfair", Paper, || Box::new(JavaFive::new(Fairness::Unfair))),
        over("Java SE 5.0, fair", Paper, || Box::new(JavaFive::new(Fairness::Fair))),
    ]
}

/// A task, or the order to end. Java allocates each task.
type Order = Option<Box<dyn FnOnce() + Send>>;

/// The calls that the executor needs of a synchronous queue.
trait Handing: Send + Sync {
    /// Hands the order to a waiting thread, or returns it.
    fn try_put(&self, order: Order) -> Result<(), Order>;

    /// Waits for an order.
    fn take_timeout(&self, keep_alive: Duration) -> Option<Order>;
}

macro_rules! handing {
    ($($queue:ident),*) => {$(
        impl Handing for $queue<Order> {
            fn try_put(&self, order: Order) -> Result<(), Order> {
                self.try_put(order).map_err(|refused| refused.into_inner())
            }

            fn take_timeout(&self, keep_alive: Duration) -> Option<Order> {
                self.take_timeout(keep_alive).ok()
            }
        }
    )*};
}
handing!(SynchronousQueue, JavaFive);

/// Java's `ThreadPoolExecutor` as the paper uses it: a task goes to a thread that waits in the queue, or a thread is
/// started for the task. A thread that waits for long ends. It has no results, catches no panics and has no other
/// policy.
struct Executor(Arc<Workers>);

struct Workers {
    queue: Box<dyn Handing>,
    /// How many threads have not ended.
    alive: AtomicUsize,
}

/// Java's keep-alive time for cached threads.
const KEEP_ALIVE: Duration = Duration::from_secs(60);

impl Executor {
    fn over(queue: Box<dyn Handing>) -> Self {
        Executor(Arc::new(Workers { queue, alive: AtomicUsize::new(0) }))
    }

    #[inline(always)]
    fn execute(&self, task: Task) -> bool {
        match self.0.queue.try_put(Some(Box::new(move || task.run()))) {
            Ok(()) => true,
            Err(order) => self.start_thread(order),
        }
    }

    #[cold]
    fn start_thread(&self, first: Order) -> bool {
        let workers = self.0.clone();
        workers.alive.fetch_add(1, Acquire);
        let work = move || {
            let mut order = Some(first);
            while let Some(Some(task)) = order {
                task();
                order = workers.queue.take_timeout(KEEP_ALIVE);
            }
            workers.alive.fetch_sub(1, Release);
        };
        let started = thread::Builder::new().spawn(work).is_ok();
        if !started {
            self.0.alive.fetch_sub(1, Release);
        }
        started
    }
}

/// Ends every thread, so that none of them is left in the next measurement.
impl Drop for Executor {
    fn drop(&mut self) {
        while self.0.alive.load(Acquire) > 0 {
            if self.0.queue.try_put(None).is_err() {
                thread::sleep(Duration::from_micros(100));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A measurement ends when each task has counted itself as done, and an idle one when all threads have met.
    #[test]
    fn every_pool_runs_each_task_once() {
        let setting =
            Setting { cpus: [None; 2], bound: Duration::from_secs(9), count: 500, counting: false, quick: false };
        for pool in pools().into_iter().chain(executors()) {
            let tasks = pool.runs.tasks(&setting, 2, 0);
            assert!(tasks.is_ok_and(|reading| reading.items == 500), "{}", pool.name);
            let idle = pool.runs.idle(&Setting { quick: true, ..setting }, 2);
            assert!(idle.is_ok(), "{}: {idle:?}", pool.name);
        }
    }
}
