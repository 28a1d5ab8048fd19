//! Thread pools.

use crate::contender::{Kind, Pool, Unable};
use corelane::handoff::Fairness;
use corelane_pool::{Builder, Queueing, Rejection, ThreadPool};
use std::time::Duration;

/// This library's pool. A submitter that finds neither a thread nor room waits.
fn of_ours(settings: Builder) -> Result<ThreadPool, Unable> {
    settings.rejection(Rejection::Block(Duration::MAX)).build().map_err(|error| Unable::because(error.to_string()))
}

/// The cached pool: tasks go directly to threads. It grows to 512 threads.
#[derive(Debug)]
pub(crate) struct Cached<const FAIR: bool>(ThreadPool);

pub(crate) type CachedUnfair = Cached<false>;
pub(crate) type CachedFair = Cached<true>;

impl<const FAIR: bool> Pool for Cached<FAIR> {
    const KIND: Kind = Kind::Corelane;

    fn name() -> String {
        if FAIR { "corelane-pool cached, fair" } else { "corelane-pool cached, unfair" }.to_owned()
    }

    fn start(_: usize) -> Result<Self, Unable> {
        let fairness = if FAIR { Fairness::Fair } else { Fairness::Unfair };
        of_ours(ThreadPool::builder().queueing(Queueing::HandOff(fairness))).map(Cached)
    }

    #[inline(always)]
    fn execute(&self, task: impl FnOnce() + Send + 'static) -> bool {
        self.0.execute(task).is_ok()
    }
}

/// Pools with a queue: without a bound, or with room for 1024 tasks.
#[derive(Debug)]
pub(crate) struct Queueful<const BOUNDED: bool>(ThreadPool);

pub(crate) type Unbounded = Queueful<false>;
pub(crate) type Bounded = Queueful<true>;

impl<const BOUNDED: bool> Pool for Queueful<BOUNDED> {
    const KIND: Kind = Kind::Corelane;

    fn name() -> String {
        if BOUNDED { "corelane-pool bounded" } else { "corelane-pool fixed" }.to_owned()
    }

    fn start(threads: usize) -> Result<Self, Unable> {
        let queueing = if BOUNDED { Queueing::Bounded(1024) } else { Queueing::Unbounded };
        of_ours(ThreadPool::builder().threads(threads).queueing(queueing)).map(Queueful)
    }

    #[inline(always)]
    fn execute(&self, task: impl FnOnce() + Send + 'static) -> bool {
        self.0.execute(task).is_ok()
    }
}

/// The crate `threadpool`: a channel of boxed tasks behind a lock.
#[derive(Debug)]
pub(crate) struct Threadpool(threadpool::ThreadPool);

impl Pool for Threadpool {
    const KIND: Kind = Kind::Crate;

    fn name() -> String {
        "threadpool".to_owned()
    }

    fn start(threads: usize) -> Result<Self, Unable> {
        Ok(Threadpool(threadpool::ThreadPool::new(threads)))
    }

    #[inline(always)]
    fn execute(&self, task: impl FnOnce() + Send + 'static) -> bool {
        self.0.execute(task);
        true
    }
}

/// The crate `rusty_pool`: crossbeam's channel of boxed tasks. It can grow when no thread is idle. Here all its threads
/// are core threads.
pub(crate) struct RustyPool(rusty_pool::ThreadPool);

impl std::fmt::Debug for RustyPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RustyPool").finish_non_exhaustive()
    }
}

impl Pool for RustyPool {
    const KIND: Kind = Kind::Crate;

    fn name() -> String {
        "rusty_pool".to_owned()
    }

    fn start(threads: usize) -> Result<Self, Unable> {
        Ok(RustyPool(rusty_pool::Builder::new().core_size(threads).max_size(threads).build()))
    }

    #[inline(always)]
    fn execute(&self, task: impl FnOnce() + Send + 'static) -> bool {
        self.0.try_execute(task).is_ok()
    }
}

/// rayon's pool, through `spawn`.
#[derive(Debug)]
pub(crate) struct Rayon(rayon::ThreadPool);

impl Pool for Rayon {
    const KIND: Kind = Kind::Crate;

    fn name() -> String {
        "rayon spawn".to_owned()
    }

    fn start(threads: usize) -> Result<Self, Unable> {
        let built = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        built.map(Rayon).map_err(|error| Unable::because(error.to_string()))
    }

    #[inline(always)]
    fn execute(&self, task: impl FnOnce() + Send + 'static) -> bool {
        self.0.spawn(task);
        true
    }
}

/// tokio's pool for blocking calls. It grows to 512 threads.
#[derive(Debug)]
pub(crate) struct TokioBlocking(tokio::runtime::Runtime);

impl Pool for TokioBlocking {
    const KIND: Kind = Kind::Crate;

    fn name() -> String {
        "tokio spawn_blocking".to_owned()
    }

    fn start(_: usize) -> Result<Self, Unable> {
        let built = tokio::runtime::Builder::new_current_thread().build();
        built.map(TokioBlocking).map_err(|error| Unable::because(error.to_string()))
    }

    #[inline(always)]
    fn execute(&self, task: impl FnOnce() + Send + 'static) -> bool {
        drop(self.0.spawn_blocking(task));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::{each_executor, each_pool};
    use std::sync::{Arc, Barrier, mpsc};

    fn runs_tasks<P: Pool>() {
        const TASKS: usize = 500;
        let pool = P::start(2).expect("it can be made");
        // Two tasks at a time.
        let meeting = Arc::new(Barrier::new(3));
        for _ in 0..2 {
            let meeting = meeting.clone();
            assert!(pool.execute(move || _ = meeting.wait()), "{}", P::name());
        }
        meeting.wait();
        let (sender, done) = mpsc::channel();
        for number in 0..TASKS {
            let sender = sender.clone();
            assert!(pool.execute(move || sender.send(number).unwrap()), "{}", P::name());
        }
        let mut ran: Vec<_> = done.iter().take(TASKS).collect();
        ran.sort_unstable();
        assert!(ran.into_iter().eq(0..TASKS), "{}", P::name());
    }

    #[test]
    fn every_pool_runs_each_task_once() {
        each_pool!(P => runs_tasks::<P>());
        each_executor!(P => runs_tasks::<P>());
    }
}
