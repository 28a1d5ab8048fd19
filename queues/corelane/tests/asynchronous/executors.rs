//! The executors: of two kinds, each with one thread and with several.

use futures_executor::{ThreadPool, ThreadPoolBuilder};
use std::future::Future;
use std::sync::mpsc;

/// Runs two tasks to their end.
pub(crate) trait Executor {
    /// Whether both tasks share one thread, so that what one has not done the other cannot wait for but as a task.
    fn run<A, B>(a: A, b: B) -> (A::Output, B::Output)
    where
        A: Future<Output: Send> + Send + 'static,
        B: Future<Output: Send> + Send + 'static;
}

fn on_tokio<A, B>(runtime: tokio::runtime::Runtime, a: A, b: B) -> (A::Output, B::Output)
where
    A: Future<Output: Send> + Send + 'static,
    B: Future<Output: Send> + Send + 'static,
{
    let (a, b) = (runtime.spawn(a), runtime.spawn(b));
    runtime.block_on(async { (a.await.unwrap(), b.await.unwrap()) })
}

/// tokio, one thread.
pub(crate) struct TokioThread;

impl Executor for TokioThread {
    fn run<A, B>(a: A, b: B) -> (A::Output, B::Output)
    where
        A: Future<Output: Send> + Send + 'static,
        B: Future<Output: Send> + Send + 'static,
    {
        on_tokio(tokio::runtime::Builder::new_current_thread().build().unwrap(), a, b)
    }
}

/// tokio, tasks that are stolen between two threads.
pub(crate) struct TokioThreads;

impl Executor for TokioThreads {
    fn run<A, B>(a: A, b: B) -> (A::Output, B::Output)
    where
        A: Future<Output: Send> + Send + 'static,
        B: Future<Output: Send> + Send + 'static,
    {
        on_tokio(tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap(), a, b)
    }
}

/// futures, one thread that runs both in one task.
pub(crate) struct FuturesThread;

impl Executor for FuturesThread {
    fn run<A, B>(a: A, b: B) -> (A::Output, B::Output)
    where
        A: Future<Output: Send> + Send + 'static,
        B: Future<Output: Send> + Send + 'static,
    {
        futures_executor::block_on(futures_util::future::join(a, b))
    }
}

/// futures, a pool of two threads.
pub(crate) struct FuturesThreads;

impl Executor for FuturesThreads {
    fn run<A, B>(a: A, b: B) -> (A::Output, B::Output)
    where
        A: Future<Output: Send> + Send + 'static,
        B: Future<Output: Send> + Send + 'static,
    {
        fn spawn<F: Future<Output: Send> + Send + 'static>(pool: &ThreadPool, task: F) -> mpsc::Receiver<F::Output> {
            let (done, is_done) = mpsc::channel();
            pool.spawn_ok(async move { done.send(task.await).unwrap() });
            is_done
        }
        let pool = ThreadPoolBuilder::new().pool_size(2).create().unwrap();
        let (a, b) = (spawn(&pool, a), spawn(&pool, b));
        // A task that panicked has dropped its sender.
        (a.recv().expect("no task panics"), b.recv().expect("no task panics"))
    }
}
