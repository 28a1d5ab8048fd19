//! Queues from one dispatcher to several workers.

use crate::contender::{Arrangement, Counted, Dispatch, Job, Kind, Unable};
use corelane::dispatch::{self, Builder};
use corelane::mpmc::{
    self, BusyWait, Condvar, Counting, Design, MichaelScott, NoStats, Options, Recorder, Stats, Ticket, TwoLock,
};
use corelane::wait::{Adaptive, Strategy, Yield};
use rtrb::chunks::ChunkError;
use std::marker::PhantomData;
use std::sync::Arc;
use std::thread::yield_now;

/// The capacity of a queue with a bound.
const CAPACITY: usize = 2048;
/// The most jobs for a queue without a bound: as many as in the paper, 100,000 batches of 50.
const WITHOUT_A_BOUND: u64 = 5_000_000;

/// The queues of a dispatcher. Each batch goes to the next queue in turn.
#[derive(Debug)]
pub(crate) struct InTurn<Q> {
    queues: Vec<Q>,
    at: usize,
    batched: bool,
}

impl<Q> InTurn<Q> {
    fn new(queues: Vec<Q>, batched: bool) -> Self {
        Self { queues, at: 0, batched }
    }

    #[inline(always)]
    fn next(&mut self) -> &mut Q {
        self.at = if self.at + 1 < self.queues.len() { self.at + 1 } else { 0 };
        &mut self.queues[self.at]
    }
}

/// The queue of a worker, and how many jobs it takes at once: `None` for one by one.
#[derive(Debug)]
pub(crate) struct Taker<Q> {
    queue: Q,
    batch: Option<usize>,
}

/// Makes as many queues as the arrangement has. Returns the dispatcher's ends, and one end for each worker.
fn ends<Tx, Rx: Clone>(
    arrangement: Arrangement,
    workers: usize,
    mut queue: impl FnMut() -> Result<(Tx, Rx), Unable>,
) -> Result<(InTurn<Tx>, Vec<Taker<Rx>>), Unable> {
    let queues = if arrangement.per_worker { workers } else { 1 };
    let (txs, rxs): (Vec<_>, Vec<_>) = (0..queues).map(|_| queue()).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let batch = arrangement.batched.then_some(arrangement.batch);
    let takers = rxs.iter().cycle().take(workers).map(|queue| Taker { queue: queue.clone(), batch }).collect();
    Ok((InTurn::new(txs, arrangement.batched), takers))
}

/// The paper's name for a design of `mpmc`, or the name used here.
pub(crate) trait Named: Design<Job> {
    const SINGLE: &'static str;
    const BATCHED: &'static str;
    const BOUNDED: bool;
}

macro_rules! named {
    ($design:ty, $single:literal, $batched:literal, $bounded:literal) => {
        impl Named for $design {
            const SINGLE: &'static str = $single;
            const BATCHED: &'static str = $batched;
            const BOUNDED: bool = $bounded;
        }
    };
}

named!(MichaelScott, "CLQ", "BCLQ", false);
named!(TwoLock, "TLQ", "BTLQ", false);
named!(Condvar, "CVQ", "BCVQ", true);
named!(BusyWait, "BWQ", "BBWQ", true);
named!(Ticket, "ticket", "ticket, batches", true);

/// The queues of `mpmc`, with their own calls.
#[derive(Debug)]
pub(crate) struct Mpmc<D, W, S = NoStats>(PhantomData<(D, W, S)>);

pub(crate) type Clq = Mpmc<MichaelScott, Yield>;
pub(crate) type Tlq = Mpmc<TwoLock, Yield>;
pub(crate) type Cvq = Mpmc<Condvar, Yield>;
pub(crate) type Bwq = Mpmc<BusyWait, Yield>;
pub(crate) type TicketYields = Mpmc<Ticket, Yield>;
pub(crate) type TicketAdapts = Mpmc<Ticket, Adaptive>;
pub(crate) type ClqCounts = Mpmc<MichaelScott, Yield, Counting>;
pub(crate) type TlqCounts = Mpmc<TwoLock, Yield, Counting>;
pub(crate) type CvqCounts = Mpmc<Condvar, Yield, Counting>;
pub(crate) type BwqCounts = Mpmc<BusyWait, Yield, Counting>;
pub(crate) type TicketCounts = Mpmc<Ticket, Yield, Counting>;

/// Closes its queue when it is dropped.
#[derive(Debug)]
pub(crate) struct Closing<D: Design<Job>, W: Strategy, S: Recorder>(Arc<mpmc::Queue<Job, D, W, S>>);

impl<D: Design<Job>, W: Strategy, S: Recorder> Drop for Closing<D, W, S> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// How a contender waits, if it can be chosen.
pub(crate) trait Waits: Strategy + Default + Sync {
    const NOTE: &'static str;
}

impl Waits for Yield {
    const NOTE: &'static str = " + yield";
}

impl Waits for Adaptive {
    const NOTE: &'static str = "";
}

impl<D: Named + 'static, W: Waits, S: Recorder> Dispatch for Mpmc<D, W, S>
where
    mpmc::Queue<Job, D, W, S>: Send + Sync,
{
    const KIND: Kind = Kind::Corelane;
    const MOST: u64 = if D::BOUNDED { u64::MAX } else { WITHOUT_A_BOUND };
    type Dispatcher = InTurn<Closing<D, W, S>>;
    type Worker = Taker<Arc<mpmc::Queue<Job, D, W, S>>>;

    fn name(batched: bool) -> String {
        let name = if batched { D::BATCHED } else { D::SINGLE };
        // The paper's designs wait as in the paper.
        if D::SINGLE == Ticket::SINGLE { format!("{name}{}", W::NOTE) } else { name.to_owned() }
    }

    fn start(arrangement: Arrangement, workers: usize) -> Result<(Self::Dispatcher, Vec<Self::Worker>), Unable> {
        ends(arrangement, workers, || {
            let queue = mpmc::any_queue(CAPACITY, Options::new().wait(W::default()).stats::<S>());
            let queue = Arc::new(queue.map_err(|error| Unable::because(error.to_string()))?);
            Ok((Closing(queue.clone()), queue))
        })
    }

    #[inline(always)]
    fn dispatch(dispatcher: &mut Self::Dispatcher, batch: &mut Vec<Job>) -> bool {
        let batched = dispatcher.batched;
        let queue = &*dispatcher.next().0;
        if batched { queue.push_batch(batch).is_ok() } else { batch.drain(..).all(|job| queue.push(job).is_ok()) }
    }

    #[inline(always)]
    fn work(worker: &mut Self::Worker, mut each: impl FnMut(Job)) {
        let queue = &*worker.queue;
        match worker.batch {
            None => {
                while let Ok(job) = queue.pop() {
                    each(job);
                }
            }
            Some(batch) => {
                let mut jobs = Vec::with_capacity(batch);
                while queue.pop_batch(&mut jobs, batch).is_ok() {
                    jobs.drain(..).for_each(&mut each);
                }
            }
        }
    }
}

impl<D: Named + 'static, W: Waits> Counted for Mpmc<D, W, Counting>
where
    mpmc::Queue<Job, D, W, Counting>: Send + Sync,
{
    fn stats(worker: &Self::Worker) -> Stats {
        worker.queue.stats()
    }
}

/// The fan-out over lanes: by `dispatch` and each worker's iterator, or by slices and `drain`.
#[derive(Debug)]
pub(crate) struct Lanes<W>(PhantomData<W>);

pub(crate) type LanesYield = Lanes<Yield>;
pub(crate) type LanesAdapt = Lanes<Adaptive>;

type Lane = corelane::spsc::Lane;

impl<W: Waits> Dispatch for Lanes<W> {
    const KIND: Kind = Kind::Corelane;
    type Dispatcher = (dispatch::Dispatcher<Job, Lane, W>, bool);
    type Worker = Taker<dispatch::Worker<Job, Lane, W>>;

    fn name(batched: bool) -> String {
        format!("lane{}{}", if batched { ", batches" } else { "" }, W::NOTE)
    }

    fn start(arrangement: Arrangement, workers: usize) -> Result<(Self::Dispatcher, Vec<Self::Worker>), Unable> {
        let Arrangement { per_worker, batched, batch } = arrangement;
        assert!(per_worker, "a lane has one consumer");
        let built = Builder::new(workers).capacity(CAPACITY).batch(batch).wait(W::default()).build();
        let (dispatcher, workers) = built.map_err(|error| Unable::because(error.to_string()))?;
        // A worker takes the jobs that are there, and gives each slot back on the way, not after the last job.
        let batch = batched.then_some(usize::MAX);
        Ok(((dispatcher, batched), workers.into_iter().map(|queue| Taker { queue, batch }).collect()))
    }

    #[inline(always)]
    fn dispatch((dispatcher, batched): &mut Self::Dispatcher, batch: &mut Vec<Job>) -> bool {
        if *batched {
            let done = dispatcher.dispatch_slice(batch).is_ok();
            batch.clear();
            done
        } else {
            batch.drain(..).all(|job| dispatcher.dispatch(job).is_ok())
        }
    }

    #[inline(always)]
    fn work(worker: &mut Self::Worker, mut each: impl FnMut(Job)) {
        match worker.batch {
            None => worker.queue.jobs().for_each(each),
            Some(batch) => while worker.queue.pop_each(batch, &mut each).is_ok() {},
        }
    }
}

macro_rules! channel {
    ($(#[doc = $doc:literal])+ $name:ident, $label:literal, $crate_name:ident) => {
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub(crate) struct $name;

        impl Dispatch for $name {
            const KIND: Kind = Kind::Crate;
            type Dispatcher = InTurn<$crate_name::Sender<Job>>;
            type Worker = Taker<$crate_name::Receiver<Job>>;

            fn name(_: bool) -> String {
                $label.to_owned()
            }

            fn start(
                arrangement: Arrangement,
                workers: usize,
            ) -> Result<(Self::Dispatcher, Vec<Self::Worker>), Unable> {
                assert!(!arrangement.batched, "it has no batches");
                ends(arrangement, workers, || Ok($crate_name::bounded(CAPACITY)))
            }

            #[inline(always)]
            fn dispatch(dispatcher: &mut Self::Dispatcher, batch: &mut Vec<Job>) -> bool {
                let sender = dispatcher.next();
                batch.drain(..).all(|job| sender.send(job).is_ok())
            }

            #[inline(always)]
            fn work(worker: &mut Self::Worker, mut each: impl FnMut(Job)) {
                while let Ok(job) = worker.queue.recv() {
                    each(job);
                }
            }
        }
    };
}

channel!(
    /// crossbeam's channel.
    CrossbeamJobs,
    "crossbeam channel",
    crossbeam_channel
);
channel!(
    /// flume's channel.
    FlumeJobs,
    "flume",
    flume
);
channel!(
    /// kanal's channel.
    KanalJobs,
    "kanal",
    kanal
);

/// A fan-out written by hand over rtrb: a ring for each worker. Whole batches go in by rtrb's chunks, and workers read
/// them in place.
#[derive(Debug)]
pub(crate) struct RtrbByHand;

impl Dispatch for RtrbByHand {
    const KIND: Kind = Kind::Crate;
    type Dispatcher = InTurn<rtrb::Producer<Job>>;
    type Worker = Taker<rtrb::Consumer<Job>>;

    fn name(_: bool) -> String {
        "rtrb chunks by hand + yield".to_owned()
    }

    fn start(arrangement: Arrangement, workers: usize) -> Result<(Self::Dispatcher, Vec<Self::Worker>), Unable> {
        assert!(arrangement.per_worker && arrangement.batched, "it has one consumer, and is there for its chunks");
        let (txs, rxs): (Vec<_>, Vec<_>) = (0..workers).map(|_| rtrb::RingBuffer::new(CAPACITY)).unzip();
        let batch = Some(arrangement.batch);
        Ok((InTurn::new(txs, true), rxs.into_iter().map(|queue| Taker { queue, batch }).collect()))
    }

    /// Gives the batch to the next worker that has room for all of it.
    #[inline(always)]
    fn dispatch(dispatcher: &mut Self::Dispatcher, batch: &mut Vec<Job>) -> bool {
        let workers = dispatcher.queues.len();
        let mut full = 0;
        loop {
            let producer = dispatcher.next();
            if producer.push_entire_slice(batch).is_ok() {
                batch.clear();
                return true;
            }
            full += 1;
            if full % workers == 0 {
                if producer.is_abandoned() {
                    return false;
                }
                yield_now();
            }
        }
    }

    #[inline(always)]
    fn work(worker: &mut Self::Worker, mut each: impl FnMut(Job)) {
        let batch = worker.batch.unwrap_or(1);
        loop {
            let chunk = match worker.queue.read_chunk(batch) {
                Ok(chunk) => chunk,
                Err(ChunkError::TooFewSlots(0)) => {
                    if worker.queue.is_abandoned() && worker.queue.is_empty() {
                        return;
                    }
                    yield_now();
                    continue;
                }
                Err(ChunkError::TooFewSlots(fewer)) => match worker.queue.read_chunk(fewer) {
                    Ok(chunk) => chunk,
                    Err(_) => continue,
                },
            };
            let (first, second) = chunk.as_slices();
            first.iter().chain(second).copied().for_each(&mut each);
            chunk.commit_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::{each_channel_of_jobs, each_queue_of_jobs};

    fn brings_every_job<D: Dispatch>(per_worker: bool, batched: bool) {
        const WORKERS: usize = 3;
        // More jobs than the queues hold, and not a multiple of the batch.
        const JOBS: u32 = 20_010;
        let arrangement = Arrangement { per_worker, batched, batch: 50 };
        let (mut dispatcher, workers) = D::start(arrangement, WORKERS).expect("it can be made");
        assert_eq!(workers.len(), WORKERS);
        let done = std::thread::scope(|scope| {
            let work = |mut worker: D::Worker| {
                let mut done = Vec::new();
                D::work(&mut worker, |job| done.push(job));
                done
            };
            let threads: Vec<_> = workers.into_iter().map(|worker| scope.spawn(move || work(worker))).collect();
            for first in (0..JOBS).step_by(50) {
                let numbers = first..JOBS.min(first + 50);
                let mut batch: Vec<_> = numbers.map(|number| Job { turns: number % 7, number }).collect();
                assert!(D::dispatch(&mut dispatcher, &mut batch) && batch.is_empty());
            }
            drop(dispatcher);
            let mut done: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
            done.sort_by_key(|job| job.number);
            done
        });
        let all = (0..JOBS).map(|number| Job { turns: number % 7, number });
        assert!(done.into_iter().eq(all), "{} {arrangement:?}", D::name(batched));
    }

    #[test]
    fn every_contender_brings_every_job_once() {
        for per_worker in [false, true] {
            for batched in [false, true] {
                each_queue_of_jobs!(D => brings_every_job::<D>(per_worker, batched));
            }
            each_channel_of_jobs!(D => brings_every_job::<D>(per_worker, false));
        }
        for batched in [false, true] {
            brings_every_job::<LanesYield>(true, batched);
            brings_every_job::<LanesAdapt>(true, batched);
        }
        brings_every_job::<RtrbByHand>(true, true);
    }
}
