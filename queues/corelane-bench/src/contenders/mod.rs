//! The contenders: a line for each in a table.
//!
//! | file | contenders |
//! |---|---|
//! | this one | queues from one producer to one consumer: [`mod@designs`], [`crates`], and by name the printed ones |
//! | `many.rs` | queues between any number of threads |
//! | `jobs.rs` | queues from a dispatcher to its workers |
//! | `messages.rs` | queues of bytes |
//! | `pools.rs` | thread pools |
//!
//! A line has the name, the origin and the calls. From them [`pair`] and its like make an object whose methods are
//! whole measurements: the loops are compiled for each contender, and no call in them goes through a pointer.

#[macro_use]
#[path = "../../../corelane/tests/support/designs.rs"]
mod designs;
pub(crate) mod jobs;
pub(crate) mod many;
pub(crate) mod messages;
pub(crate) mod pools;

use crate::item::Item;
use crate::measure::{Made, Runs, Slices, Streams, Words};
use crate::raw;
use corelane::spsc::{self, Design, Options};
use corelane_papers::b_queue::{self, Backtracking, Parameters};
use corelane_papers::fast_forward::{self, Slip};
use corelane_papers::mcring_timer::Timer;
use corelane_papers::{Dequeue, Enqueue, basic_ring, lock_ring, mcring, mcring_callback, mcring_timer};
use crossbeam_queue::ArrayQueue;
use serde::{Deserialize, Serialize};
use std::num::{NonZero, NonZeroUsize};
use std::rc::Rc;
use std::sync::{Arc, Mutex, Weak};

/// Where a contender comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A safe design of this library.
    Corelane,
    /// A published design as printed.
    Paper,
    /// A queue of another crate or of the standard library.
    Crate,
    /// No queue: the bare machine at its best.
    Roofline,
}
use Kind::{Corelane, Crate, Paper};

/// Why a contender cannot take part.
#[derive(Clone, Debug)]
pub(crate) struct Unable(pub(crate) String);

impl Unable {
    pub(crate) fn because(reason: impl ToString) -> Self {
        Unable(reason.to_string())
    }
}

/// The sending end of a queue.
pub(crate) trait Tx<T>: Send + 'static {
    /// Pushes an item if there is room.
    fn try_push(&mut self, item: T) -> bool;

    /// Publishes all pushed items, if the design has a call for that. False if it must be called again.
    fn flush(&mut self) -> bool {
        true
    }
}

/// The receiving end of a queue.
pub(crate) trait Rx<T>: Send + 'static {
    /// Pops an item if there is one.
    fn try_pop(&mut self) -> Option<T>;

    /// The same, for a thread that pushes into other queues, which the callback flushes.
    #[inline(always)]
    fn poll(&mut self, _flush_outgoing: &mut dyn FnMut()) -> Option<T> {
        self.try_pop()
    }
}

/// An end and its call.
impl<T, X: Send + 'static, F: Fn(&mut X, T) -> bool + Send + 'static> Tx<T> for (X, F) {
    #[inline(always)]
    fn try_push(&mut self, item: T) -> bool {
        (self.1)(&mut self.0, item)
    }
}

impl<T, R: Send + 'static, G: Fn(&mut R) -> Option<T> + Send + 'static> Rx<T> for (R, G) {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<T> {
        (self.1)(&mut self.0)
    }
}

/// A queue from one producer to one consumer, and what can be measured of it.
#[derive(Clone)]
pub(crate) struct Queue<T: Item> {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) runs: Rc<dyn Runs<T>>,
    /// For items of one word.
    words: Option<Rc<dyn Words>>,
    /// Batch calls on both sides, or why there are none.
    pub(crate) slices: Result<Rc<dyn Slices>, &'static str>,
    /// Calls that wait, and the name of what has them.
    waits: Option<(&'static str, Rc<dyn Streams>)>,
}

/// The ends of a queue for at least so many items, as close to it as the contender can.
type Ends<X, R> = Result<(X, R), Unable>;

/// A queue by its ends. Items become visible only in groups of `grain`. The measured counts are multiples of it,
/// because only the experiment `deadlock` measures items that a paper form strands at the end of a run.
fn queue<T: Item, X: Tx<T>, R: Rx<T>>(
    name: impl Into<String>,
    kind: Kind,
    grain: usize,
    make: impl Fn(usize) -> Ends<X, R> + Send + Sync + 'static,
) -> Queue<T> {
    let made = Rc::new(Made { make: Box::new(make), grain: grain as u64, has_a_thread: false });
    let words = T::words(&made);
    Queue { name: name.into(), kind, runs: made, words, slices: Err("has no batch calls"), waits: None }
}

/// A queue by its calls.
fn pair<T: Item, X: Send + 'static, R: Send + 'static>(
    name: &str,
    kind: Kind,
    make: impl Fn(usize) -> Ends<X, R> + Send + Sync + 'static,
    push: impl Fn(&mut X, T) -> bool + Copy + Send + Sync + 'static,
    pop: impl Fn(&mut R) -> Option<T> + Copy + Send + Sync + 'static,
) -> Queue<T> {
    queue(name, kind, 1, move |capacity| make(capacity).map(|(tx, rx)| ((tx, push), (rx, pop))))
}

impl<T: Item> Queue<T> {
    fn slices<X: Send + 'static, R: Send + 'static>(
        self,
        make: impl Fn(usize) -> Ends<X, R> + Send + Sync + 'static,
        push: impl Fn(&mut X, &[T]) -> usize + Copy + Send + Sync + 'static,
        pop: impl Fn(&mut R, &mut [T]) -> usize + Copy + Send + Sync + 'static,
    ) -> Self {
        let ends = move |capacity| make(capacity).map(|(tx, rx)| ((tx, push), (rx, pop)));
        let made = Made { make: Box::new(ends), grain: 1, has_a_thread: false };
        Queue { slices: T::slices(made).ok_or("of words only"), ..self }
    }

    fn no_slices(self, reason: &'static str) -> Self {
        Queue { slices: Err(reason), ..self }
    }

    /// Calls that wait; false and `None` if the other end is gone.
    fn waits<X: Send + 'static, R: Send + 'static>(
        self,
        name: &'static str,
        make: impl Fn(usize) -> Ends<X, R> + Send + Sync + 'static,
        push: impl Fn(&mut X, T) -> bool + Copy + Send + Sync + 'static,
        pop: impl Fn(&mut R) -> Option<T> + Copy + Send + Sync + 'static,
    ) -> Self {
        let ends = move |capacity| make(capacity).map(|(tx, rx)| ((tx, push), (rx, pop)));
        let made = Made { make: Box::new(ends), grain: 1, has_a_thread: false };
        Queue { waits: T::streams(made).map(|made| (name, made)), ..self }
    }

    /// The same as its threads wait by themselves, or yield after a failed try.
    pub(crate) fn as_it_waits(&self) -> (String, Option<Rc<dyn Streams>>) {
        match &self.waits {
            Some((name, waits)) => ((*name).to_owned(), Some(waits.clone())),
            None => (format!("{} + yield", self.name), None),
        }
    }
}

impl Queue<u64> {
    pub(crate) fn words(&self) -> &dyn Words {
        &**self.words.as_ref().expect("items of one word")
    }
}

/// A safe design of this library as a user gets it, with default options and the default wait strategy.
pub(crate) fn design<T: Item, D: Design<T> + 'static>(name: &'static str, tuning: Option<D::Tuning>) -> Queue<T>
where
    D::Tuning: Clone + Send + Sync + 'static,
    spsc::Producer<T, D>: Send,
    spsc::Consumer<T, D>: Send,
{
    type Ends<T, D> = super::contenders::Ends<spsc::Producer<T, D>, spsc::Consumer<T, D>>;
    let make = move |capacity| -> Ends<T, D> {
        let options = Options::new().tuning(tuning.clone().unwrap_or_default());
        spsc::any_channel(capacity, options).map_err(Unable::because)
    };
    pair(name, Corelane, make.clone(), |tx, item| tx.try_push(item).is_ok(), |rx| rx.try_pop().ok())
        .slices(
            make.clone(),
            |tx, items| tx.try_push_slice(items).unwrap_or(0),
            |rx, items| rx.try_pop_slice(items).unwrap_or(0),
        )
        .waits(name, make, |tx, item| tx.push(item).is_ok(), |rx| rx.pop().ok())
}

/// Every safe design of this library as its tests list them: those with a bound, the flagship first, and those without.
fn listed<T: Item>() -> [Vec<Queue<T>>; 2] {
    let (mut bounded, mut unbounded) = (Vec::new(), Vec::new());
    macro_rules! add {
        ($module:ident, $design:ident, [bounded $($flags:tt)*]) => {
            bounded.push(design::<T, spsc::$design>(stringify!($module), None))
        };
        ($module:ident, $design:ident, [unbounded $($flags:tt)*]) => {
            unbounded.push(design::<T, spsc::$design>(stringify!($module), None))
        };
    }
    designs!(add);
    [bounded, unbounded]
}

pub(crate) fn designs<T: Item>() -> Vec<Queue<T>> {
    let [bounded, _] = listed();
    bounded
}

pub(crate) fn unbounded<T: Item>() -> Vec<Queue<T>> {
    let [_, unbounded] = listed();
    unbounded
}

/// The design of this name.
pub(crate) fn named<T: Item>(name: &str) -> Queue<T> {
    designs().into_iter().find(|queue| queue.name == name).expect("a design's name")
}

/// Every queue of other crates.
pub(crate) fn crates<T: Item>() -> Vec<Queue<T>> {
    let ring = |n| Ok(rtrb::RingBuffer::new(n));
    let rtrb = pair("rtrb", Crate, ring, |tx: &mut rtrb::Producer<T>, i| tx.push(i).is_ok(), |rx| rx.pop().ok())
        .slices(
            ring,
            |tx, items| tx.push_partial_slice(items).0.len(),
            |rx, items| rx.pop_partial_slice(items).0.len(),
        );

    use ringbuf::traits::{Consumer, Producer, Split};
    type Ringbuf<T> = (ringbuf::HeapProd<T>, ringbuf::HeapCons<T>);
    let ring = |n| -> Result<Ringbuf<T>, Unable> { Ok(ringbuf::HeapRb::new(n).split()) };
    let ringbuf = pair("ringbuf", Crate, ring, |tx, i| tx.try_push(i).is_ok(), |rx| rx.try_pop()).slices(
        ring,
        |tx, items| tx.push_slice(items),
        |rx, items| rx.pop_slice(items),
    );

    let ring = |n| {
        let n = NonZeroUsize::new(n).ok_or(Unable::because("its capacity must be at least 1"))?;
        Ok(gil::spsc::channel::<T>(n))
    };
    let gil = pair("gil", Crate, ring, |tx, i| tx.try_send(i).is_ok(), |rx| rx.try_recv())
        .slices(
            ring,
            |tx, items| raw::gil_push_slice(tx, items),
            |rx, items| {
                let mut guard = rx.read_guard();
                let n = guard.as_slice().len().min(items.len());
                items[..n].copy_from_slice(&guard.as_slice()[..n]);
                guard.advance(n);
                n
            },
        )
        .waits(
            "gil",
            ring,
            |tx, i| {
                tx.send(i);
                true
            },
            |rx| Some(rx.recv()),
        );

    let ring = |n| Ok(nexus_queue::spsc::ring_buffer(n));
    let nexus = pair("nexus-queue", Crate, ring, |tx, i| tx.push(i).is_ok(), |rx| rx.pop());

    // A ring without heap, with a constant size and handles that borrow it: each sample gets one that is never freed.
    // The size is the one that its documentation advises: a power of two, of which one slot stays free.
    let ring = |n| match n {
        2000 | 2048 => Ok(Box::leak(Box::<heapless::spsc::Queue<T, 2048>>::default()).split()),
        _ => Err(Unable::because("its capacity is a constant of the program: measured with 2047 only")),
    };
    let heapless = pair("heapless", Crate, ring, |tx, i| tx.enqueue(i).is_ok(), |rx| rx.dequeue());

    // Events in a ring, changed in place. An `EventPoller` is the form in which the user's own thread takes them. Its
    // batches are all or nothing.
    use disruptor::Producer as _;
    let ring = |n: usize| {
        let builder = disruptor::build_single_producer(n.next_power_of_two(), T::default, disruptor::BusySpin);
        let (poller, builder) = builder.new_event_poller();
        Ok((builder.build(), poller))
    };
    let disruptor = pair(
        "disruptor",
        Crate,
        ring,
        |tx, item| tx.try_publish(|event| *event = item).is_ok(),
        |rx| {
            let mut events = rx.take(1).ok()?;
            (&mut events).next().copied()
        },
    )
    .slices(
        ring,
        |tx, items| {
            let published = tx.try_batch_publish(items.len(), |events| {
                events.zip(items).for_each(|(event, item)| *event = *item);
            });
            if published.is_ok() { items.len() } else { 0 }
        },
        |rx, items| {
            let Ok(mut events) = rx.take(items.len() as u64) else { return 0 };
            let mut popped = 0;
            for (item, event) in items.iter_mut().zip(&mut events) {
                *item = *event;
                popped += 1;
            }
            popped
        },
    );

    let ring = |n| Ok(shared(ArrayQueue::new(n)));
    let array_queue = pair("crossbeam ArrayQueue", Crate, ring, |tx, i| tx.push(i).is_ok(), |rx| rx.pop());

    let ring = |n| Ok(crossbeam_channel::bounded(n));
    let crossbeam = pair("crossbeam channel", Crate, ring, |tx, i| tx.try_send(i).is_ok(), |rx| rx.try_recv().ok())
        .waits("crossbeam channel", ring, |tx, i| tx.send(i).is_ok(), |rx| rx.recv().ok());

    let ring = |n| Ok(shared(concurrent_queue::ConcurrentQueue::bounded(n)));
    let concurrent = pair("concurrent-queue", Crate, ring, |tx, i| tx.push(i).is_ok(), |rx| rx.pop().ok())
        .no_slices("has no batch calls; try_iter pops one by one");

    // Its queue does not wait, but the channel over it does.
    use thingbuf::mpsc::blocking;
    let (ring, channel) = (|n| Ok(shared(thingbuf::ThingBuf::new(n))), |n| Ok(blocking::channel(n)));
    let thingbuf = pair("thingbuf", Crate, ring, |tx, i| tx.push(i).is_ok(), |rx| rx.pop()).waits(
        "thingbuf channel",
        channel,
        |tx: &mut blocking::Sender<T>, i| tx.send(i).is_ok(),
        |rx: &mut blocking::Receiver<T>| rx.recv(),
    );

    let ring = |n| Ok(kanal::bounded(n));
    let kanal =
        pair("kanal", Crate, ring, |tx, i| matches!(tx.try_send(i), Ok(true)), |rx| rx.try_recv().ok().flatten())
            .no_slices("has a batch call on the receiving side only (drain_into)")
            .waits("kanal", ring, |tx, i| tx.send(i).is_ok(), |rx| rx.recv().ok());

    let ring = |n| Ok(flume::bounded(n));
    let flume = pair("flume", Crate, ring, |tx, i| tx.try_send(i).is_ok(), |rx| rx.try_recv().ok())
        .no_slices("has a batch call on the receiving side only (drain)")
        .waits("flume", ring, |tx, i| tx.send(i).is_ok(), |rx| rx.recv().ok());

    let ring = |n| Ok(std::sync::mpsc::sync_channel(n));
    let std = pair("std sync_channel", Crate, ring, |tx, i| tx.try_send(i).is_ok(), |rx| rx.try_recv().ok())
        .no_slices("has no batch calls; try_iter pops one by one")
        .waits("std sync_channel", ring, |tx, i| tx.send(i).is_ok(), |rx| rx.recv().ok());

    vec![
        rtrb,
        ringbuf,
        gil,
        nexus,
        heapless,
        disruptor,
        array_queue,
        crossbeam,
        concurrent,
        thingbuf,
        kanal,
        flume,
        std,
    ]
}

/// A queue that both ends share.
fn shared<Q>(queue: Q) -> (Arc<Q>, Arc<Q>) {
    let queue = Arc::new(queue);
    (queue.clone(), queue)
}

/// The queues of other crates with these names, in this order.
pub(crate) fn these_crates<T: Item>(names: &[&str]) -> Vec<Queue<T>> {
    let all = crates();
    let named = |name: &&str| all.iter().find(|queue| queue.name == *name).expect("a crate's name").clone();
    names.iter().map(named).collect()
}

/// The end of a paper form. `capacity` is the number of slots, as in the papers. Most rings hold one item fewer.
struct Printed<E>(E);

impl<T, E: Enqueue<T> + 'static> Tx<T> for Printed<E> {
    #[inline(always)]
    fn try_push(&mut self, item: T) -> bool {
        self.0.enqueue(item).is_ok()
    }
}

impl<T, E: Dequeue<T> + 'static> Rx<T> for Printed<E> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<T> {
        self.0.dequeue()
    }
}

fn printed<X, R>((tx, rx): (X, R)) -> (Printed<X>, Printed<R>) {
    (Printed(tx), Printed(rx))
}

/// A ring under a spin lock.
pub(crate) fn lock_ring<T: Item>() -> Queue<T> {
    queue("LockRingBuffer", Paper, 1, |n| lock_ring::channel::<T>(n).map(printed).map_err(Unable::because))
}

/// Lamport's queue.
pub(crate) fn basic_ring<T: Item>() -> Queue<T> {
    queue("BasicRingBuffer", Paper, 1, |n| basic_ring::channel::<T>(n).map(printed).map_err(Unable::because))
}

/// MCRingBuffer: `MCRingBuffer(deadlock)` of the B-Queue paper.
pub(crate) fn mc_ring<T: Item>(batch: usize) -> Queue<T> {
    let make = move |n| mcring::channel::<T>(n, batch).map(printed).map_err(Unable::because);
    queue(format!("MCRingBuffer, batch {batch}"), Paper, batch, make)
}

/// A producer whose unused items a timer has injected, and the timer, which runs as long as a producer exists.
struct Sane<T>(mcring_timer::Producer<T>, #[expect(dead_code, reason = "held")] Arc<Timer>);

impl<T: Item> Tx<T> for Sane<T> {
    #[inline(always)]
    fn try_push(&mut self, item: T) -> bool {
        self.0.enqueue(item).is_ok()
    }

    fn flush(&mut self) -> bool {
        self.0.flush()
    }
}

/// MCRingBuffer with deadlock prevention method 3, `MCRingBuffer(sane)`. One timer signals all queues that exist.
pub(crate) fn mc_ring_sane<T: Item>(batch: usize) -> Queue<T> {
    fn running_timer() -> Result<Arc<Timer>, Unable> {
        static RUNNING: Mutex<Weak<Timer>> = Mutex::new(Weak::new());
        let mut running = RUNNING.lock().expect("no panic with it locked");
        if let Some(timer) = running.upgrade() {
            return Ok(timer);
        }
        let timer = Arc::new(Timer::start(Timer::PAPER_PERIOD).map_err(Unable::because)?);
        *running = Arc::downgrade(&timer);
        Ok(timer)
    }
    let make = move |n| {
        let timer = running_timer()?;
        let (tx, rx) = mcring_timer::channel(n, batch, timer.signal()).map_err(Unable::because)?;
        Ok((Sane::<T>(tx, timer), Printed(rx)))
    };
    let made = Rc::new(Made { make: Box::new(make), grain: batch as u64, has_a_thread: true });
    let words = T::words(&made);
    let name = format!("MCRingBuffer(sane), batch {batch}");
    Queue { name, kind: Paper, runs: made, words, slices: Err("has no batch calls"), waits: None }
}

/// The ends of MCRingBuffer with method 4.
struct Method4<E>(E);

impl<T: Item> Tx<T> for Method4<mcring_callback::Producer<T>> {
    #[inline(always)]
    fn try_push(&mut self, item: T) -> bool {
        self.0.enqueue(item).is_ok()
    }

    fn flush(&mut self) -> bool {
        self.0.flush()
    }
}

impl<T: Item> Rx<T> for Method4<mcring_callback::Consumer<T>> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<T> {
        self.0.dequeue()
    }

    #[inline(always)]
    fn poll(&mut self, flush_outgoing: &mut dyn FnMut()) -> Option<T> {
        self.0.dequeue_or(flush_outgoing)
    }
}

/// MCRingBuffer with deadlock prevention method 4: a thread that finds no item flushes its outgoing queues.
pub(crate) fn mc_ring_callback<T: Item>(batch: usize) -> Queue<T> {
    let make = move |n| {
        let (tx, rx) = mcring_callback::channel::<T>(n, batch).map_err(Unable::because)?;
        Ok((Method4(tx), Method4(rx)))
    };
    queue(format!("MCRingBuffer, batch {batch}, method 4"), Paper, batch, make)
}

/// The end of a ring of words that are not 0. A number has a bit set that no number uses.
struct NotNull<E>(E);

const NOT_NULL: u64 = 1 << 63;

impl<E: Enqueue<NonZero<usize>> + 'static> Tx<u64> for NotNull<E> {
    #[inline(always)]
    fn try_push(&mut self, number: u64) -> bool {
        // The compiler sees that this is not 0.
        let word = NonZero::new((number | NOT_NULL) as usize).unwrap_or(NonZero::<usize>::MIN);
        self.0.enqueue(word).is_ok()
    }
}

impl<E: Dequeue<NonZero<usize>> + 'static> Rx<u64> for NotNull<E> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<u64> {
        self.0.dequeue().map(|word| word.get() as u64 & !NOT_NULL)
    }
}

fn not_null<X, R>((tx, rx): (X, R)) -> (NotNull<X>, NotNull<R>) {
    (NotNull(tx), NotNull(rx))
}

/// The MCRingBuffer paper's baseline: FastForward without slip, and with both indices on one line.
pub(crate) fn fast_forward() -> Queue<u64> {
    queue("FastForward", Paper, 1, |n| fast_forward::baseline(n).map(not_null).map_err(Unable::because))
}

/// FastForward as the B-Queue paper measures it: padded, with a slip that is [tuned](crate::slip) for the machine.
pub(crate) fn fast_forward_tuned(slip: Slip) -> Queue<u64> {
    let make = move |n| fast_forward::tuned(n, slip).map(not_null).map_err(Unable::because);
    queue(crate::slip::TUNED, Paper, 1, make)
}

/// B-Queue with batches of so many and so many cycles between two probes.
fn b_queue<B: Backtracking + Send + 'static>(mode: &str, finds_all: bool, batch: usize, ticks: u32) -> Queue<u64> {
    let parameters = Parameters { batch_size: batch, batch_max: batch, increment: 8.min(batch), ticks };
    let ticks = if ticks == PAPER_TICKS { String::new() } else { format!(", {ticks} ticks") };
    let make = move |n| b_queue::channel::<B>(n, parameters).map(not_null).map_err(Unable::because);
    queue(format!("B-Queue, {mode}{ticks}"), Paper, if finds_all { 1 } else { batch }, make)
}

/// The paper's parameters.
pub(crate) const PAPER_BATCH: usize = 256;
pub(crate) const PAPER_TICKS: u32 = 2000;

pub(crate) fn b_queue_adaptive(batch: usize, ticks: u32) -> Queue<u64> {
    b_queue::<b_queue::Adaptive>("adaptive", true, batch, ticks)
}

pub(crate) fn b_queue_plain(batch: usize) -> Queue<u64> {
    b_queue::<b_queue::Plain>("plain backtracking", true, batch, PAPER_TICKS)
}

/// A consumer that finds whole batches only.
pub(crate) fn b_queue_without(batch: usize) -> Queue<u64> {
    b_queue::<b_queue::NoBacktracking>("no backtracking", false, batch, PAPER_TICKS)
}
