//! The monitor's second analysis over MCRingBuffer as the papers print it: **it may hang**.
//!
//! Section 5.3 of the B-Queue paper compares its queue with two forms of MCRingBuffer inside this pipeline (Figure 12):
//!
//! - MCRingBuffer(deadlock): elements of an unfinished batch stay invisible until the batch is complete;
//! - MCRingBuffer(sane): a timer tells the Dispatcher every 10 microseconds to complete the batch by unused elements,
//!   which the stage discards. The Dispatcher looks at the signal when it inserts. So its last elements stay invisible
//!   while it waits for another event (section 2.6, method 3).
//!
//! Here these rings join the Dispatcher with the application stages. From the stages to the output stage goes the safe
//! [`McRing`](corelane::spsc::McRing) with batches of 1, as in the MCRingBuffer paper: harvests are few, own memory,
//! and must arrive at once.
//!
//! A ring takes plain data only. So a chunk first goes through an [unbounded lane](linked), and then an item without
//! the chunk marks its place in the ring. At the end of the capture the Dispatcher injects unused elements until every
//! element is visible.
//!
//! # How a hang is noticed
//!
//! The ends yield between two looks. An end gives up if it has yielded for the whole [`bound`](Printed::bound) while
//! the Dispatcher read nothing. All other ends then give up, too. Two cases lead to this:
//!
//! - A stage gets less than a batch of items in 8 strides of packets, or in 16 MiB of them. After that much the
//!   Dispatcher waits until all stages have come to its mark.
//! - A source, or the caller that takes the events, blocks for that long.

use corelane::error::{ChannelError, Closed};
use corelane::spsc::linked;
use corelane_monitor::seam::{Chunk, Item, ItemConsumer, ItemProducer, inspect_over};
use corelane_monitor::{Findings, Inspection, PlanError, Progress, Report, Settings, Source};
use corelane_papers::mcring_timer::{self, Signal, Timer};
use corelane_papers::{Dequeue, Enqueue};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

/// The pipeline's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Printed {
    /// Application stages, as [`Plan`](corelane_monitor::Plan)'s `analyzers`.
    pub(crate) stages: usize,
    /// Slots of a ring, which holds one element less.
    pub(crate) slots: usize,
    /// The number of elements after which a ring's indices are updated.
    pub(crate) batch: usize,
    /// The timer's period. `None` for the form without a timer.
    pub(crate) timer: Option<Duration>,
    /// If nothing moves for this long, the run hangs.
    pub(crate) bound: Duration,
}

impl Printed {
    /// MCRingBuffer(deadlock) with the B-Queue paper's parameters: 2,048 slots and batches of 256. The bound is two
    /// seconds.
    pub(crate) const fn deadlock(stages: usize) -> Self {
        Printed { stages, slots: 2048, batch: 256, timer: None, bound: Duration::from_secs(2) }
    }

    /// MCRingBuffer(sane): with a timer of 10 microseconds.
    pub(crate) const fn sane(stages: usize) -> Self {
        Printed { timer: Some(Timer::PAPER_PERIOD), ..Printed::deadlock(stages) }
    }
}

/// Why there is no report.
#[derive(Debug)]
pub(crate) enum Error {
    /// The rings or the stages cannot be made. Nothing was read.
    Plan(PlanError),
    /// The timer's thread cannot be started. Nothing was read.
    Timer(io::Error),
    /// Nothing moved for the whole [`bound`](Printed::bound).
    Hang(Duration),
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Error::Plan(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Plan(error) => error.fmt(f),
            Error::Timer(error) => write!(f, "cannot start the timer: {error}"),
            Error::Hang(bound) => write!(f, "hangs: nothing moved for {} s", bound.as_secs_f64()),
        }
    }
}

impl std::error::Error for Error {}

/// Like [`corelane_monitor::inspect`], over these rings. The report and the events are the same, if there are any.
///
/// # Errors
/// If the rings, the stages or the timer cannot be made, and if the pipeline hangs. Anything that `out` got before that
/// is of no use.
///
/// # Panics
/// If a stage panics, with its payload.
pub(crate) fn inspect<S: Source>(
    sources: impl IntoIterator<Item = S> + Send,
    settings: &Settings,
    inspection: &Inspection,
    printed: &Printed,
    progress: &Progress,
    damage: impl FnMut(usize, S::Error) + Send,
    out: impl FnMut(&[u8]) + Send,
) -> Result<(Report, Findings), Error> {
    // One timer signals all rings, and ends with the run.
    let timer = printed.timer.filter(|_| printed.stages > 0).map(Timer::start).transpose().map_err(Error::Timer)?;
    let signal = timer.as_ref().map_or_else(Signal::new, |timer| timer.signal().clone());
    let watch = &Watch { bound: printed.bound, progress, hangs: AtomicBool::new(false) };
    let rings: Result<_, _> = (0..printed.stages).map(|_| ring(printed, &signal, watch)).collect();
    let found = inspect_over(sources, settings, inspection, rings.map_err(PlanError::Queue)?, progress, damage, out)?;
    if watch.hangs() { Err(Error::Hang(printed.bound)) } else { Ok(found) }
}

fn ring<'a>(
    printed: &Printed,
    signal: &Signal,
    watch: &'a Watch<'a>,
) -> Result<(Producer<'a>, Consumer<'a>), ChannelError> {
    let (inserting, extracting) = mcring_timer::channel(printed.slots, printed.batch, signal)?;
    let (chunks, chunks_out) = linked::try_channel()?;
    let closed = Arc::new(AtomicBool::new(false));
    Ok((
        Producer { ring: inserting, chunks, closed: closed.clone(), watch },
        Consumer { ring: extracting, chunks: chunks_out, next: None, closed, watch },
    ))
}

/// The state that all ends of a run share.
#[derive(Debug)]
struct Watch<'a> {
    bound: Duration,
    progress: &'a Progress,
    hangs: AtomicBool,
}

impl Watch<'_> {
    // Relaxed: an end that sees the change later only waits a little longer.
    fn hangs(&self) -> bool {
        self.hangs.load(Ordering::Relaxed)
    }
}

/// A wait at one place.
struct Wait<'a> {
    watch: &'a Watch<'a>,
    /// How many packets the Dispatcher had read at the last look.
    packets: u64,
    looked: Instant,
    waited: Duration,
}

impl<'a> Wait<'a> {
    /// The most time between two looks that counts as waiting. In the rest the process was stopped, or other work had
    /// the CPU.
    const LOOK: Duration = Duration::from_millis(10);

    fn new(watch: &'a Watch<'a>) -> Self {
        Wait { watch, packets: watch.progress.packets(), looked: Instant::now(), waited: Duration::ZERO }
    }

    /// Called before another look: yields. False if the end has to give up.
    fn goes_on(&mut self) -> bool {
        thread::yield_now();
        let (now, packets) = (Instant::now(), self.watch.progress.packets());
        self.waited += (now - self.looked).min(Self::LOOK);
        self.looked = now;
        if packets != self.packets {
            self.packets = packets;
            self.waited = Duration::ZERO;
        }
        if self.waited > self.watch.bound {
            self.watch.hangs.store(true, Ordering::Relaxed);
        }
        !self.watch.hangs()
    }
}

/// The Dispatcher's end.
struct Producer<'a> {
    ring: mcring_timer::Producer<Item<()>>,
    chunks: linked::Producer<Chunk>,
    closed: Arc<AtomicBool>,
    watch: &'a Watch<'a>,
}

impl Producer<'_> {
    /// Inserts an item that was refused. False if the stage will not make room for it.
    #[cold]
    fn insert_later(&mut self, item: Item<()>) -> bool {
        let mut wait = Wait::new(self.watch);
        while self.ring.enqueue(item).is_err() {
            if self.is_closed() || !wait.goes_on() {
                return false;
            }
        }
        true
    }
}

impl ItemProducer for Producer<'_> {
    fn push_all(&mut self, items: &mut Vec<Item>) {
        for item in items.drain(..) {
            // If the item is refused, it goes to no stage, and neither does its mark.
            let item = item.map_chunk(|chunk| drop(self.chunks.push(chunk)));
            if self.ring.enqueue(item).is_err() && !self.insert_later(item) {
                return;
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed) || self.watch.hangs()
    }
}

impl Drop for Producer<'_> {
    /// Publishes every inserted element, and then signals the end.
    fn drop(&mut self) {
        let mut wait = Wait::new(self.watch);
        while !self.ring.flush() && !self.is_closed() && wait.goes_on() {}
        self.closed.store(true, Ordering::Release);
    }
}

/// An application stage's end.
struct Consumer<'a> {
    ring: mcring_timer::Consumer<Item<()>>,
    chunks: linked::Consumer<Chunk>,
    /// An item that was extracted to see whether there is one.
    next: Option<Item>,
    closed: Arc<AtomicBool>,
    watch: &'a Watch<'a>,
}

impl Consumer<'_> {
    #[inline]
    fn extract(&mut self) -> Option<Item> {
        let item = self.ring.dequeue()?;
        Some(item.map_chunk(|()| self.chunks.try_pop().expect("a chunk goes before its mark")))
    }
}

impl Consumer<'_> {
    /// Waits until there is an item. An error if no more will come.
    fn wait_for_item(&mut self) -> Result<(), Closed> {
        if !self.is_empty() {
            return Ok(());
        }
        let mut wait = Wait::new(self.watch);
        loop {
            // Loaded before the look: an end that sees the signal also sees the last elements.
            let closed = self.closed.load(Ordering::Acquire);
            if !self.is_empty() {
                return Ok(());
            }
            if closed || !wait.goes_on() {
                return Err(Closed(()));
            }
        }
    }

    /// Pops up to `max` items and appends them to `items`. Returns how many.
    fn pop_some(&mut self, items: &mut Vec<Item>, max: usize) -> usize {
        let before = items.len();
        while items.len() - before < max
            && let Some(item) = self.next.take().or_else(|| self.extract())
        {
            items.push(item);
        }
        items.len() - before
    }
}

impl ItemConsumer for Consumer<'_> {
    fn pop_batch(&mut self, items: &mut Vec<Item>, max: usize) -> Result<usize, Closed> {
        self.wait_for_item()?;
        Ok(self.pop_some(items, max))
    }

    fn is_empty(&mut self) -> bool {
        if self.next.is_none() {
            self.next = self.extract();
        }
        self.next.is_none()
    }
}

impl Drop for Consumer<'_> {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod ends {
    use super::*;

    const QUICK: Printed = Printed { slots: 64, batch: 16, bound: Duration::from_millis(100), ..Printed::deadlock(1) };

    fn marks(numbers: std::ops::Range<u64>) -> impl Iterator<Item = Item> {
        numbers.map(|number| Item::Passed { number })
    }

    fn popped(consumer: &mut Consumer<'_>) -> Vec<u64> {
        let mut items = Vec::new();
        consumer.pop_some(&mut items, usize::MAX);
        items
            .iter()
            .map(|item| match item {
                Item::Passed { number } => *number,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn an_unfinished_batch_is_invisible_until_the_end_and_waiting_for_it_is_a_hang() {
        let progress = Progress::new();
        let watch = Watch { bound: QUICK.bound, progress: &progress, hangs: AtomicBool::new(false) };
        let (mut producer, mut consumer) = ring(&QUICK, &Signal::new(), &watch).expect("a ring");
        producer.push_all(&mut marks(0..20).collect());
        assert_eq!(consumer.wait_for_item(), Ok(()));
        assert_eq!(popped(&mut consumer), (0..16).collect::<Vec<_>>());
        assert!(consumer.is_empty() && !producer.is_closed());
        assert_eq!(consumer.wait_for_item(), Err(Closed(())));
        assert!(watch.hangs() && producer.is_closed());

        let watch = Watch { bound: QUICK.bound, progress: &progress, hangs: AtomicBool::new(false) };
        let (mut producer, mut consumer) = ring(&QUICK, &Signal::new(), &watch).expect("a ring");
        producer.push_all(&mut marks(0..20).collect());
        drop(producer);
        assert_eq!(consumer.wait_for_item(), Ok(()));
        assert_eq!(popped(&mut consumer), (0..20).collect::<Vec<_>>());
        assert_eq!(consumer.wait_for_item(), Err(Closed(())));
        assert!(!watch.hangs());
    }

    #[test]
    fn a_signal_has_the_next_insertion_show_what_was_inserted_before() {
        let progress = Progress::new();
        let watch = Watch { bound: QUICK.bound, progress: &progress, hangs: AtomicBool::new(false) };
        let signal = Signal::new();
        let (mut producer, mut consumer) = ring(&QUICK, &signal, &watch).expect("a ring");
        producer.push_all(&mut marks(0..3).collect());
        signal.raise();
        assert!(consumer.is_empty());
        producer.push_all(&mut marks(3..5).collect());
        assert_eq!(popped(&mut consumer), [0, 1, 2]);
        assert!(consumer.is_empty());
    }

    #[test]
    fn a_stage_that_takes_nothing_is_a_hang_and_one_that_is_gone_is_not() {
        let progress = Progress::new();
        let watch = Watch { bound: QUICK.bound, progress: &progress, hangs: AtomicBool::new(false) };
        let (mut producer, consumer) = ring(&QUICK, &Signal::new(), &watch).expect("a ring");
        drop(consumer);
        producer.push_all(&mut marks(0..100).collect());
        drop(producer);
        assert!(!watch.hangs());

        let (mut producer, _consumer) = ring(&QUICK, &Signal::new(), &watch).expect("a ring");
        producer.push_all(&mut marks(0..100).collect());
        assert!(watch.hangs() && producer.is_closed());
    }

    #[test]
    fn who_waits_does_not_give_up_while_the_dispatcher_reads() {
        let progress = Progress::new();
        let watch = Watch { bound: Duration::ZERO, progress: &progress, hangs: AtomicBool::new(false) };
        let mut wait = Wait::new(&watch);
        for packets in 1..100 {
            progress.set(packets, 0);
            assert!(wait.goes_on());
        }
        while wait.goes_on() {}
        assert!(watch.hangs());
    }

    #[test]
    fn a_chunk_is_there_before_the_items_behind_its_mark() {
        let progress = Progress::new();
        let watch = Watch { bound: QUICK.bound, progress: &progress, hangs: AtomicBool::new(false) };
        let (mut producer, mut consumer) = ring(&QUICK, &Signal::new(), &watch).expect("a ring");
        let chunk = |byte: u8| Item::Chunk(Chunk::Copied(Arc::new(vec![byte])));
        producer.push_all(
            &mut (0..16)
                .map(|number| if number % 4 == 0 { chunk(number) } else { Item::Passed { number: 0 } })
                .collect(),
        );
        let mut items = Vec::new();
        assert_eq!(consumer.pop_some(&mut items, 100), 16);
        for (number, item) in (0..).zip(&items) {
            match item {
                Item::Chunk(bytes) => assert_eq!((bytes[..].to_vec(), number % 4), (vec![number], 0)),
                _ => assert_ne!(number % 4, 0),
            }
        }
    }
}
