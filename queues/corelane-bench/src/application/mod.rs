//! The papers' application: three stages over rings, in the form in which the papers built it.
//!
//! ```text
//!               packets             reports
//!              ┌─ ring ─▶ SubAnalyzer 0 ─ ring ─┐
//! Dispatcher ──┼─ ring ─▶ SubAnalyzer 1 ─ ring ─┼─▶ MainAnalyzer
//!              └─ ring ─▶ SubAnalyzer n ─ ring ─┘
//! ```
//!
//! - [`portscans`] is section III of the MCRingBuffer paper: both kinds of port scans, and the counts of III-A3.
//! - [`layers`] is section 5.3 of the B-Queue paper, where the stages are called input, application and output: TCP,
//!   the protocol of each conversation, HTTP.
//!
//! # How it works
//!
//! 1. The Dispatcher decodes a record, and inserts it into the ring that the sum of its two addresses chooses: one
//!    element an insert.
//! 2. A SubAnalyzer polls its ring. It inserts the reports that a packet causes before it looks for the next packet.
//! 3. The MainAnalyzer looks at the rings of reports in turn, and takes one report from each that has one.
//! 4. At the end of the trace an end mark goes through each ring. Then the ring is flushed; one without such a call,
//!    which would keep its last elements, gets a whole batch of marks.
//!
//! No wait is circular: a stage waits only for room in front of it, or for elements from the stage behind it.
//!
//! # What differs from print
//!
//! Where there are fewer CPUs than threads, a thread yields after 64 failed polls: the papers' machines had a core for
//! each thread, and there a thread never stops polling.

pub(crate) mod layers;
mod pointers;
pub(crate) mod portscans;
mod trace;

pub(crate) use pointers::pointers;
pub(crate) use trace::Trace;

use crate::contenders::{self as queues, Kind, PAPER_BATCH, PAPER_TICKS, Queue, Rx, Tx, Unable, designs};
use crate::item::Item;
use crate::measure::{Boxed, Failure, Reading};
use crate::rig::{self, PATIENCE, Side, Stop, Work};
use crate::setting::Setting;
use crate::slip;
use crate::topology::{Cpu, cpus};
use corelane_net::capture::Record;
use std::fmt::Debug;
use std::hint::spin_loop;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

/// The work of the stages.
pub(crate) trait Application: Send + Sync + 'static {
    /// An element on the way to a SubAnalyzer. The default value marks the end, and is no packet.
    type Packet: Item + PartialEq;
    /// An element on the way to the MainAnalyzer; the same.
    type Report: Item + PartialEq;
    /// The state of a SubAnalyzer, and its results at the end.
    type Sub;
    type Local: Send + 'static;
    /// The state of the MainAnalyzer.
    type Main: Default + Send + 'static;
    type Answer: Debug + PartialEq;
    /// Whether each thread has a CPU of its own, if there are enough. Otherwise the kernel places the threads.
    const PINNED: bool;

    /// Every printed and every safe ring.
    fn rings() -> Vec<Ring<Self::Packet, Self::Report>>;

    fn trace(&self) -> &Trace;

    /// Decodes the record of this number: the sum of its addresses, and its element. `None` for one that is left out.
    fn dispatch(&self, number: usize, record: &Record<'_>) -> Option<(u128, Self::Packet)>;

    fn sub_analyzer(&self) -> Self::Sub;

    fn analyse(&self, sub: &mut Self::Sub, packet: Self::Packet, reports: &mut Vec<Self::Report>);

    fn finish(&self, sub: Self::Sub, reports: &mut Vec<Self::Report>) -> Self::Local;

    fn aggregate(main: &mut Self::Main, report: Self::Report);

    fn answer(main: Self::Main, locals: Vec<Self::Local>) -> Self::Answer;
}

/// Makes a ring of this capacity.
type Make<T> = dyn Fn(&Setting, usize) -> Result<Boxed<T>, Unable>;
/// Makes a ring of words one of an application's elements.
type Words<T> = fn(Carrier<u64>) -> Carrier<T>;

/// A ring between two stages. Its elements become visible in groups of `grain`, which is 1 for a ring that can be
/// flushed. A batch of marks would not do there: with a whole batch of unused elements after each they would not fit.
#[derive(Clone)]
pub(crate) struct Carrier<T> {
    grain: u64,
    make: Rc<Make<T>>,
}

impl<T: Item> From<Queue<T>> for Carrier<T> {
    fn from(queue: Queue<T>) -> Self {
        Carrier { grain: queue.runs.grain(), make: Rc::new(move |_, capacity| queue.runs.boxed(capacity)) }
    }
}

/// The rings to the SubAnalyzers and from them.
#[derive(Clone)]
pub(crate) struct Ring<P, R> {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    packets: Carrier<P>,
    reports: Carrier<R>,
}

/// Every ring, with these batches of MCRingBuffer to the SubAnalyzers and from them.
fn rings<P: Item, R: Item>([packets, reports]: [usize; 2], words: (Words<P>, Words<R>)) -> Vec<Ring<P, R>> {
    let any = |packets: Queue<P>, reports: Queue<R>| {
        let (name, kind) = (packets.name.clone(), packets.kind);
        Ring { name, kind, packets: packets.into(), reports: reports.into() }
    };
    let of_words = |name: &str, ring: Carrier<u64>| Ring {
        name: name.to_owned(),
        kind: Kind::Paper,
        packets: words.0(ring.clone()),
        reports: words.1(ring),
    };
    let named = |queue: Queue<u64>| of_words(&queue.name.clone(), queue.into());
    let tuned = |setting: &Setting, capacity| {
        queues::fast_forward_tuned(slip::for_one_queue(setting, capacity)).runs.boxed(capacity)
    };
    let flushed = |ring: Ring<P, R>| Ring {
        packets: Carrier { grain: 1, ..ring.packets },
        reports: Carrier { grain: 1, ..ring.reports },
        ..ring
    };
    let mut rings = vec![
        any(queues::lock_ring(), queues::lock_ring()),
        any(queues::basic_ring(), queues::basic_ring()),
        named(queues::fast_forward()),
        of_words(slip::TUNED, Carrier { grain: 1, make: Rc::new(tuned) }),
        any(queues::mc_ring(packets), queues::mc_ring(reports)),
        flushed(any(queues::mc_ring_sane(packets), queues::mc_ring_sane(reports))),
        flushed(any(queues::mc_ring_callback(packets), queues::mc_ring_callback(reports))),
        named(queues::b_queue_adaptive(PAPER_BATCH, PAPER_TICKS)),
        named(queues::b_queue_plain(PAPER_BATCH)),
        named(queues::b_queue_without(PAPER_BATCH)),
    ];
    rings.extend(designs().into_iter().zip(designs()).map(|(packets, reports)| any(packets, reports)));
    rings
}

/// The results of a thread.
struct Part<A: Application> {
    local: Option<A::Local>,
    main: Option<A::Main>,
    /// Failed inserts of the Dispatcher, or failed polls of the others.
    tries: u64,
}

/// Runs the application in one thread, without a ring.
pub(crate) fn alone<A: Application>(app: &Arc<A>, setting: &Setting) -> Result<(A::Answer, Reading), Failure> {
    let shared = app.clone();
    let work: Work<(A::Main, A::Local)> = Box::new(move |side| {
        let app = &*shared;
        let (mut sub, mut main, mut reports) = (app.sub_analyzer(), A::Main::default(), Vec::new());
        side.start()?;
        for (number, record) in app.trace().records().enumerate() {
            if let Some((_, packet)) = app.dispatch(number, &record) {
                app.analyse(&mut sub, packet, &mut reports);
                reports.drain(..).for_each(|report| A::aggregate(&mut main, report));
            }
        }
        let local = app.finish(sub, &mut reports);
        reports.drain(..).for_each(|report| A::aggregate(&mut main, report));
        side.stop();
        Ok((main, local))
    });
    let (results, took) = rig::run(setting, vec![(None, work)])?;
    let (mains, locals): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let main = mains.into_iter().next().expect("one thread");
    Ok((A::answer(main, locals), Reading::new(app.trace().len() as u64, took)))
}

/// Runs the application with this many SubAnalyzers over rings of this capacity.
pub(crate) fn parallel<A: Application>(
    app: &Arc<A>,
    ring: &Ring<A::Packet, A::Report>,
    setting: &Setting,
    subs: usize,
    capacity: usize,
) -> Result<(A::Answer, Reading), Failure> {
    let (mut txs, mut ends, mut report_rxs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..subs {
        let (tx, rx) = (ring.packets.make)(setting, capacity)?;
        let (report_tx, report_rx) = (ring.reports.make)(setting, capacity)?;
        txs.push(tx);
        ends.push((rx, report_tx));
        report_rxs.push(report_rx);
    }
    let has_cpu_each = subs + 2 <= cpus().len();
    let mut places = cpus().iter().copied().filter(|_| A::PINNED && has_cpu_each);
    let mut work: Vec<(Option<Cpu>, Work<Part<A>>)> = Vec::new();
    let (shared, grain) = (app.clone(), ring.packets.grain);
    let dispatcher: Work<_> = Box::new(move |side| dispatch(&*shared, txs, grain, Polls::new(side, !has_cpu_each)));
    work.push((places.next(), dispatcher));
    for (rx, tx) in ends {
        let (shared, grain) = (app.clone(), ring.reports.grain);
        let sub: Work<_> = Box::new(move |side| sub_analysis(&*shared, rx, tx, grain, Polls::new(side, !has_cpu_each)));
        work.push((places.next(), sub));
    }
    let main: Work<_> = Box::new(move |side| main_analysis::<A>(report_rxs, Polls::new(side, !has_cpu_each)));
    work.push((places.next(), main));
    let (parts, took) = rig::run(setting, work)?;
    let full = parts[0].tries;
    let empty = parts[1..].iter().map(|part| part.tries).sum();
    let (mut main, mut locals) = (None, Vec::new());
    for part in parts {
        locals.extend(part.local);
        main = main.or(part.main);
    }
    let answer = A::answer(main.expect("a MainAnalyzer"), locals);
    Ok((answer, Reading { full, empty, ..Reading::new(app.trace().len() as u64, took) }))
}

/// The same, and the answer must be this one.
pub(crate) fn checked<A: Application>(
    app: &Arc<A>,
    ring: &Ring<A::Packet, A::Report>,
    setting: &Setting,
    subs: usize,
    capacity: usize,
    expected: &A::Answer,
) -> Result<Reading, Failure> {
    let (answer, reading) = parallel(app, ring, setting, subs, capacity)?;
    if answer == *expected { Ok(reading) } else { Err(Stop::WrongAnswer.into()) }
}

/// A thread's polls.
struct Polls<'a> {
    side: &'a mut Side,
    yields: bool,
    failed: u64,
}

impl<'a> Polls<'a> {
    fn new(side: &'a mut Side, yields: bool) -> Self {
        Polls { side, yields, failed: 0 }
    }

    /// Called after a poll or an insert that failed. The position counts both, so it rises from wait to wait.
    #[inline(always)]
    fn failed(&mut self, position: u64) -> Result<(), Stop> {
        self.failed += 1;
        if self.failed.is_multiple_of(PATIENCE) {
            self.side.stuck(position)?;
        }
        if self.yields && self.failed.is_multiple_of(64) {
            thread::yield_now();
        }
        spin_loop();
        Ok(())
    }

    /// Inserts an element, as soon as there is room.
    #[inline(always)]
    fn insert<T: Item>(&mut self, tx: &mut dyn Tx<T>, item: T, position: u64) -> Result<(), Stop> {
        while !tx.try_push(item) {
            self.failed(position)?;
        }
        Ok(())
    }

    /// Inserts the end mark, as often as it takes to make it visible.
    fn end<T: Item>(&mut self, tx: &mut dyn Tx<T>, grain: u64, position: u64) -> Result<(), Stop> {
        (0..grain).try_for_each(|_| self.insert(tx, T::default(), position))?;
        while !tx.flush() {
            self.failed(position)?;
        }
        Ok(())
    }
}

/// The SubAnalyzer of an address pair: the addresses' sum is the same in both directions.
#[inline(always)]
fn share(sum: u128, subs: usize) -> usize {
    let hash = (sum as u64 ^ (sum >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(hash) * subs as u128) >> 64) as usize
}

fn dispatch<A: Application>(
    app: &A,
    mut txs: Vec<Box<dyn Tx<A::Packet>>>,
    grain: u64,
    mut polls: Polls<'_>,
) -> Result<Part<A>, Stop> {
    polls.side.start()?;
    let subs = txs.len();
    for (number, record) in app.trace().records().enumerate() {
        if let Some((sum, packet)) = app.dispatch(number, &record) {
            polls.insert(&mut *txs[share(sum, subs)], packet, number as u64)?;
        }
    }
    txs.iter_mut().try_for_each(|tx| polls.end(&mut **tx, grain, app.trace().len() as u64))?;
    polls.side.stop();
    Ok(Part { local: None, main: None, tries: polls.failed })
}

fn sub_analysis<A: Application>(
    app: &A,
    mut rx: Box<dyn Rx<A::Packet>>,
    mut tx: Box<dyn Tx<A::Report>>,
    grain: u64,
    mut polls: Polls<'_>,
) -> Result<Part<A>, Stop> {
    let (mut sub, mut reports, mut position) = (app.sub_analyzer(), Vec::new(), 0);
    polls.side.start()?;
    loop {
        let packet = loop {
            match rx.poll(&mut || _ = tx.flush()) {
                Some(packet) => break packet,
                None => polls.failed(position)?,
            }
        };
        position += 1;
        if packet == A::Packet::default() {
            break;
        }
        app.analyse(&mut sub, packet, &mut reports);
        for report in reports.drain(..) {
            position += 1;
            polls.insert(&mut *tx, report, position)?;
        }
    }
    let local = app.finish(sub, &mut reports);
    for report in reports {
        position += 1;
        polls.insert(&mut *tx, report, position)?;
    }
    polls.end(&mut *tx, grain, position + 1)?;
    polls.side.stop();
    Ok(Part { local: Some(local), main: None, tries: polls.failed })
}

fn main_analysis<A: Application>(mut rxs: Vec<Box<dyn Rx<A::Report>>>, mut polls: Polls<'_>) -> Result<Part<A>, Stop> {
    let (mut main, mut position) = (A::Main::default(), 0);
    polls.side.start()?;
    while !rxs.is_empty() {
        let before = position;
        rxs.retain_mut(|rx| {
            let Some(report) = rx.try_pop() else { return true };
            position += 1;
            let is_end = report == A::Report::default();
            if !is_end {
                A::aggregate(&mut main, report);
            }
            !is_end
        });
        if position == before {
            polls.failed(position)?;
        }
    }
    polls.side.stop();
    Ok(Part { local: None, main: Some(main), tries: polls.failed })
}

#[cfg(test)]
mod tests;
