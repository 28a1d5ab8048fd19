//! Queues from one dispatcher to several workers.

use super::Kind::{self, Corelane, Crate};
use super::Unable;
use crate::measure::{Arrangement, Clock, Job, Jobs};
use corelane::dispatch::{self, Builder};
use corelane::mpmc::{
    self, BusyWait, Condvar, Counting, Design, MichaelScott, NoStats, Options, Recorder, Stats, Ticket, TwoLock,
};
use corelane::spsc::Lane;
use corelane::wait::{Adaptive, Strategy, Yield};
use rtrb::chunks::ChunkError;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::yield_now;

/// The capacity of a queue with a bound.
const CAPACITY: usize = 2048;
/// The most jobs for a queue without a bound: as many as in the paper, 100,000 batches of 50.
const WITHOUT_A_BOUND: u64 = 5_000_000;

/// The dispatcher's end. Dropping it ends the work.
pub(crate) trait Dispatcher: Send {
    /// Hands out batches until there are no more, and waits for room. False if no worker is left. The clock counts the
    /// time inside the queue's calls.
    fn hand_out(self: Box<Self>, next: &mut dyn FnMut(&mut Vec<Job>) -> bool, clock: Option<&mut Clock>) -> bool;
}

/// The end of a worker.
pub(crate) trait Worker: Send {
    /// Does jobs, and waits for them, until the dispatcher is gone and no job is left. Returns the queue's counts.
    fn work(self: Box<Self>, jobs: &mut Jobs<'_>) -> Stats;
}

type Started = Result<(Box<dyn Dispatcher>, Vec<Box<dyn Worker>>), Unable>;

#[derive(Clone)]
pub(crate) struct Dispatch {
    /// The name of single jobs, and of batches.
    pub(crate) names: [String; 2],
    pub(crate) kind: Kind,
    /// The most jobs of a sample: a queue without a bound holds everything that its workers have not done yet.
    pub(crate) most: u64,
    /// Makes the queues to so many workers, for an arrangement that exists.
    pub(crate) start: Rc<dyn Fn(Arrangement, usize) -> Started>,
}

impl Dispatch {
    fn new(names: [String; 2], kind: Kind, start: impl Fn(Arrangement, usize) -> Started + 'static) -> Self {
        Dispatch { names, kind, most: u64::MAX, start: Rc::new(start) }
    }

    pub(crate) fn name(&self, batched: bool) -> &str {
        &self.names[usize::from(batched)]
    }
}

/// An end and its call, which empties a batch, or works to the end.
struct End<Q, F>(Q, F);

impl<Q: Send, F: Fn(&mut Q, &mut Vec<Job>) -> bool + Send> Dispatcher for End<Q, F> {
    fn hand_out(self: Box<Self>, next: &mut dyn FnMut(&mut Vec<Job>) -> bool, mut clock: Option<&mut Clock>) -> bool {
        let End(mut queue, dispatch) = *self;
        let mut batch = Vec::new();
        while next(&mut batch) {
            let done = match &mut clock {
                Some(clock) => clock.time(|| dispatch(&mut queue, &mut batch)),
                None => dispatch(&mut queue, &mut batch),
            };
            if !done {
                return false;
            }
        }
        true
    }
}

impl<Q: Send, F: Fn(Q, &mut Jobs<'_>) -> Stats + Send> Worker for End<Q, F> {
    fn work(self: Box<Self>, jobs: &mut Jobs<'_>) -> Stats {
        let End(queue, work) = *self;
        work(queue, jobs)
    }
}

fn started<Q, W>(
    dispatcher: Q,
    dispatch: impl Fn(&mut Q, &mut Vec<Job>) -> bool + Send + 'static,
    workers: Vec<W>,
    work: impl Fn(W, &mut Jobs<'_>) -> Stats + Copy + Send + 'static,
) -> Started
where
    Q: Send + 'static,
    W: Send + 'static,
{
    let workers = workers.into_iter().map(|worker| -> Box<dyn Worker> { Box::new(End(worker, work)) });
    Ok((Box::new(End(dispatcher, dispatch)), workers.collect()))
}

/// The queues of a dispatcher. Each batch goes to the next queue in turn.
struct InTurn<Q> {
    queues: Vec<Q>,
    at: usize,
}

impl<Q> InTurn<Q> {
    #[inline(always)]
    fn next(&mut self) -> &mut Q {
        self.at = if self.at + 1 < self.queues.len() { self.at + 1 } else { 0 };
        &mut self.queues[self.at]
    }
}

/// Makes as many queues as the arrangement has. Returns the dispatcher's ends, and one end for each worker.
fn ends<Tx, Rx: Clone>(
    arrangement: Arrangement,
    workers: usize,
    mut queue: impl FnMut() -> Result<(Tx, Rx), Unable>,
) -> Result<(InTurn<Tx>, Vec<Rx>), Unable> {
    let queues = if arrangement.per_worker { workers } else { 1 };
    let (queues, rxs): (Vec<_>, Vec<_>) =
        (0..queues).map(|_| queue()).collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    Ok((InTurn { queues, at: 0 }, rxs.iter().cycle().take(workers).cloned().collect()))
}

/// Closes its queue when it is dropped.
struct Closing<D: Design<Job>, W: Strategy, S: Recorder>(Arc<mpmc::Queue<Job, D, W, S>>);

impl<D: Design<Job>, W: Strategy, S: Recorder> Drop for Closing<D, W, S> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A queue of `mpmc`, with its own calls.
fn of_mpmc<D, W, S>(names: [&str; 2], stats: fn(&mpmc::Queue<Job, D, W, S>) -> Stats) -> Dispatch
where
    D: Design<Job> + 'static,
    W: Strategy + Default + 'static,
    S: Recorder + 'static,
    mpmc::Queue<Job, D, W, S>: Send + Sync,
{
    Dispatch::new(names.map(str::to_owned), Corelane, move |arrangement, workers| {
        let Arrangement { batched, batch, .. } = arrangement;
        let (queues, workers) = ends(arrangement, workers, || {
            let queue = mpmc::any_queue(CAPACITY, Options::new().wait(W::default()).stats::<S>());
            let queue = Arc::new(queue.map_err(Unable::because)?);
            Ok((Closing(queue.clone()), queue))
        })?;
        let dispatch = move |queues: &mut InTurn<Closing<D, W, S>>, batch: &mut Vec<Job>| {
            let queue = &*queues.next().0;
            if batched { queue.push_batch(batch).is_ok() } else { batch.drain(..).all(|job| queue.push(job).is_ok()) }
        };
        started(queues, dispatch, workers, move |queue, jobs| {
            let mut some = Vec::with_capacity(batch);
            if batched {
                while queue.pop_batch(&mut some, batch).is_ok() {
                    some.drain(..).for_each(|job| jobs.does(job));
                }
            } else {
                while let Ok(job) = queue.pop() {
                    jobs.does(job);
                }
            }
            stats(&queue)
        })
    })
}

/// The paper's names, which wait as in the paper, and the queue of this library.
const CLQ: [&str; 2] = ["CLQ", "BCLQ"];
const TLQ: [&str; 2] = ["TLQ", "BTLQ"];
const CVQ: [&str; 2] = ["CVQ", "BCVQ"];
const BWQ: [&str; 2] = ["BWQ", "BBWQ"];
const TICKET: [&str; 2] = ["ticket + yield", "ticket, batches + yield"];

/// Every queue between any number of threads that a dispatcher may use, one for all workers or one for each worker,
/// with batches. The paper's four come first.
pub(crate) fn queues() -> Vec<Dispatch> {
    let unbounded = |dispatch| Dispatch { most: WITHOUT_A_BOUND, ..dispatch };
    vec![
        unbounded(of_mpmc::<MichaelScott, Yield, NoStats>(CLQ, |_| Stats::default())),
        unbounded(of_mpmc::<TwoLock, Yield, NoStats>(TLQ, |_| Stats::default())),
        of_mpmc::<Condvar, Yield, NoStats>(CVQ, |_| Stats::default()),
        of_mpmc::<BusyWait, Yield, NoStats>(BWQ, |_| Stats::default()),
        of_mpmc::<Ticket, Yield, NoStats>(TICKET, |_| Stats::default()),
        of_mpmc::<Ticket, Adaptive, NoStats>(["ticket", "ticket, batches"], |_| Stats::default()),
    ]
}

/// Those that count, each with one way to wait.
pub(crate) fn counting() -> Vec<Dispatch> {
    vec![
        of_mpmc::<MichaelScott, Yield, Counting>(CLQ, mpmc::Queue::stats),
        of_mpmc::<TwoLock, Yield, Counting>(TLQ, mpmc::Queue::stats),
        of_mpmc::<Condvar, Yield, Counting>(CVQ, mpmc::Queue::stats),
        of_mpmc::<BusyWait, Yield, Counting>(BWQ, mpmc::Queue::stats),
        of_mpmc::<Ticket, Yield, Counting>(TICKET, mpmc::Queue::stats),
    ]
}

/// The fan-out over lanes: by `dispatch` and each worker's iterator, or by slices and `pop_each`.
fn lanes<W: Strategy + Default + Sync + 'static>(note: &str) -> Dispatch {
    let names = ["lane", "lane, batches"].map(|name| format!("{name}{note}"));
    Dispatch::new(names, Corelane, |Arrangement { per_worker, batched, batch }, workers| {
        assert!(per_worker, "a lane has one consumer");
        let built = Builder::new(workers).capacity(CAPACITY).batch(batch).wait(W::default()).build();
        let (dispatcher, workers) = built.map_err(Unable::because)?;
        let dispatch = move |dispatcher: &mut dispatch::Dispatcher<Job, Lane, W>, batch: &mut Vec<Job>| {
            if batched {
                let done = dispatcher.dispatch_slice(batch).is_ok();
                batch.clear();
                done
            } else {
                batch.drain(..).all(|job| dispatcher.dispatch(job).is_ok())
            }
        };
        let work = move |mut worker: dispatch::Worker<Job, Lane, W>, jobs: &mut Jobs<'_>| {
            if batched {
                // A worker takes the jobs that are there, and gives each slot back on the way, not after the last job.
                while worker.pop_each(usize::MAX, |job| jobs.does(job)).is_ok() {}
            } else {
                worker.jobs().for_each(|job| jobs.does(job));
            }
            Stats::default()
        };
        started(dispatcher, dispatch, workers, work)
    })
}

pub(crate) fn lanes_yield() -> Dispatch {
    lanes::<Yield>(" + yield")
}

pub(crate) fn lanes_adapt() -> Dispatch {
    lanes::<Adaptive>("")
}

/// A channel of another crate that workers may share.
macro_rules! channel {
    ($name:literal, $channel:ident) => {
        Dispatch::new([$name, $name].map(str::to_owned), Crate, |arrangement, workers| {
            assert!(!arrangement.batched, "it has no batches");
            let (queues, workers) = ends(arrangement, workers, || Ok($channel::bounded(CAPACITY)))?;
            let dispatch = |queues: &mut InTurn<$channel::Sender<Job>>, batch: &mut Vec<Job>| {
                let sender = queues.next();
                batch.drain(..).all(|job| sender.send(job).is_ok())
            };
            started(queues, dispatch, workers, |queue, jobs| {
                while let Ok(job) = queue.recv() {
                    jobs.does(job);
                }
                Stats::default()
            })
        })
    };
}

pub(crate) fn crossbeam() -> Dispatch {
    channel!("crossbeam channel", crossbeam_channel)
}

pub(crate) fn channels() -> Vec<Dispatch> {
    vec![crossbeam(), channel!("flume", flume), channel!("kanal", kanal)]
}

/// A fan-out written by hand over rtrb: a ring for each worker. Whole batches go in by rtrb's chunks, to the next
/// worker that has room for all of it, and workers read them in place.
pub(crate) fn rtrb_by_hand() -> Dispatch {
    let name = "rtrb chunks by hand + yield".to_owned();
    Dispatch::new([name.clone(), name], Crate, |Arrangement { per_worker, batched, batch }, workers| {
        assert!(per_worker && batched, "it has one consumer, and is there for its chunks");
        let (queues, workers) = (0..workers).map(|_| rtrb::RingBuffer::new(CAPACITY)).unzip();
        let dispatch = |queues: &mut InTurn<rtrb::Producer<Job>>, batch: &mut Vec<Job>| {
            let workers = queues.queues.len();
            let mut full = 0;
            loop {
                let producer = queues.next();
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
        };
        let work = move |mut queue: rtrb::Consumer<Job>, jobs: &mut Jobs<'_>| loop {
            let chunk = match queue.read_chunk(batch) {
                Ok(chunk) => chunk,
                Err(ChunkError::TooFewSlots(0)) => {
                    if queue.is_abandoned() && queue.is_empty() {
                        return Stats::default();
                    }
                    yield_now();
                    continue;
                }
                Err(ChunkError::TooFewSlots(fewer)) => match queue.read_chunk(fewer) {
                    Ok(chunk) => chunk,
                    Err(_) => continue,
                },
            };
            let (first, second) = chunk.as_slices();
            first.iter().chain(second).for_each(|job| jobs.does(*job));
            chunk.commit_all();
        };
        started(InTurn { queues, at: 0 }, dispatch, workers, work)
    })
}
