//! The executors: of two kinds, each with one thread and with several.

use futures_executor::{ThreadPool, ThreadPoolBuilder};
use std::future::Future;
use std::sync::mpsc;
use tokio::runtime::Builder;

/// Where two tasks run.
pub(crate) enum Kind {
    /// One thread of tokio, so that what one has not done the other cannot wait for but as a task.
    TokioThread,
    /// tokio, tasks that are stolen between two threads.
    TokioThreads,
    /// futures, one thread that runs both in one task.
    FuturesThread,
    /// futures, a pool of two threads.
    FuturesThreads,
}

pub(crate) trait Executor {
    const KIND: Kind;

    /// Runs two tasks to their end.
    fn run<A, B>(a: A, b: B) -> (A::Output, B::Output)
    where
        A: Future<Output: Send> + Send + 'static,
        B: Future<Output: Send> + Send + 'static,
    {
        let runtime = match Self::KIND {
            Kind::TokioThread => Builder::new_current_thread().build(),
            Kind::TokioThreads => Builder::new_multi_thread().worker_threads(2).build(),
            Kind::FuturesThread => return futures_executor::block_on(futures_util::future::join(a, b)),
            Kind::FuturesThreads => {
                let pool = ThreadPoolBuilder::new().pool_size(2).create().unwrap();
                let (a, b) = (spawn(&pool, a), spawn(&pool, b));
                // A task that panicked has dropped its sender.
                return (a.recv().expect("no task panics"), b.recv().expect("no task panics"));
            }
        };
        let runtime = runtime.unwrap();
        let (a, b) = (runtime.spawn(a), runtime.spawn(b));
        runtime.block_on(async { (a.await.unwrap(), b.await.unwrap()) })
    }
}

fn spawn<F: Future<Output: Send> + Send + 'static>(pool: &ThreadPool, task: F) -> mpsc::Receiver<F::Output> {
    let (done, is_done) = mpsc::channel();
    pool.spawn_ok(async move { done.send(task.await).unwrap() });
    is_done
}

macro_rules! executors {
    ($($kind:ident)+) => {
        $(pub(crate) struct $kind;

        impl Executor for $kind {
            const KIND: Kind = Kind::$kind;
        })+
    };
}
executors!(TokioThread TokioThreads FuturesThread FuturesThreads);
