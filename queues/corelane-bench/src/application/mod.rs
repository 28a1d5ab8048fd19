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
//! 4. At the end of the trace an end mark goes through each ring, repeated until a whole batch is behind the last
//!    element: a ring that shows whole batches only would keep its last elements otherwise.
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

pub(crate) use pointers::Pointers;
pub(crate) use trace::Trace;

use crate::contender::Pair;
use crate::item::Item;
use crate::measure::{Failure, Reading};
use crate::rig::{self, PATIENCE, Side, Stop, Work};
use crate::setting::Setting;
use crate::topology::{Cpu, cpus};
use corelane_net::capture::Record;
use std::fmt::Debug;
use std::hint::spin_loop;
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

    fn trace(&self) -> &Trace;

    /// Decodes the record of this number: the sum of its addresses, and its element. `None` for one that is left out.
    fn dispatch(&self, number: usize, record: &Record<'_>) -> Option<(u128, Self::Packet)>;

    fn sub_analyzer(&self) -> Self::Sub;

    fn analyse(&self, sub: &mut Self::Sub, packet: Self::Packet, reports: &mut Vec<Self::Report>);

    fn finish(&self, sub: Self::Sub, reports: &mut Vec<Self::Report>) -> Self::Local;

    fn aggregate(main: &mut Self::Main, report: Self::Report);

    fn answer(main: Self::Main, locals: Vec<Self::Local>) -> Self::Answer;
}

/// Receives every ring, by the types of the rings to the SubAnalyzers and from them.
pub(crate) trait EachRing<A: Application> {
    fn ring<P: Pair<A::Packet>, R: Pair<A::Report>>(&mut self);
}

/// Calls [`EachRing::ring`] for each printed and each safe ring. `$words` makes a ring of words one of the
/// application's elements. `$batch` is the batch of MCRingBuffer to the SubAnalyzers, `$reports` the one from them.
macro_rules! each_ring {
    ($each:expr, $words:ident, $batch:literal, $reports:literal) => {{
        use crate::contenders::{
            BasicRingBuffer, FastForward, FastForwardTuned, LockRingBuffer, McRingBuffer, McRingBufferCallback,
            McRingBufferSane, PaperBQueue, each_design,
        };
        use corelane_papers::b_queue::{Adaptive, NoBacktracking, Plain};
        $each.ring::<LockRingBuffer, LockRingBuffer>();
        $each.ring::<BasicRingBuffer, BasicRingBuffer>();
        $each.ring::<$words<FastForward>, $words<FastForward>>();
        $each.ring::<$words<FastForwardTuned>, $words<FastForwardTuned>>();
        $each.ring::<McRingBuffer<$batch>, McRingBuffer<$reports>>();
        $each.ring::<McRingBufferSane<$batch>, McRingBufferSane<$reports>>();
        $each.ring::<McRingBufferCallback<$batch>, McRingBufferCallback<$reports>>();
        $each.ring::<$words<PaperBQueue<Adaptive>>, $words<PaperBQueue<Adaptive>>>();
        $each.ring::<$words<PaperBQueue<Plain>>, $words<PaperBQueue<Plain>>>();
        $each.ring::<$words<PaperBQueue<NoBacktracking>>, $words<PaperBQueue<NoBacktracking>>>();
        each_design!(P => $each.ring::<P, P>());
    }};
}
use each_ring;

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
pub(crate) fn parallel<A: Application, P: Pair<A::Packet>, R: Pair<A::Report>>(
    app: &Arc<A>,
    setting: &Setting,
    subs: usize,
    capacity: usize,
) -> Result<(A::Answer, Reading), Failure> {
    let (txs, rxs): (Vec<_>, Vec<_>) = P::pairs(subs, capacity)?.into_iter().unzip();
    let (report_txs, report_rxs): (Vec<_>, Vec<_>) = R::pairs(subs, capacity)?.into_iter().unzip();
    let has_cpu_each = subs + 2 <= cpus().len();
    let mut places = cpus().iter().copied().filter(|_| A::PINNED && has_cpu_each);
    let mut work: Vec<(Option<Cpu>, Work<Part<A>>)> = Vec::new();
    let shared = app.clone();
    let dispatcher: Work<_> = Box::new(move |side| dispatch::<A, P>(&shared, txs, Polls::new(side, !has_cpu_each)));
    work.push((places.next(), dispatcher));
    for (rx, tx) in rxs.into_iter().zip(report_txs) {
        let shared = app.clone();
        let sub: Work<_> =
            Box::new(move |side| sub_analysis::<A, P, R>(&shared, rx, tx, Polls::new(side, !has_cpu_each)));
        work.push((places.next(), sub));
    }
    let main: Work<_> = Box::new(move |side| main_analysis::<A, R>(report_rxs, Polls::new(side, !has_cpu_each)));
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
pub(crate) fn checked<A: Application, P: Pair<A::Packet>, R: Pair<A::Report>>(
    app: &Arc<A>,
    setting: &Setting,
    subs: usize,
    capacity: usize,
    expected: &A::Answer,
) -> Result<Reading, Failure> {
    let (answer, reading) = parallel::<A, P, R>(app, setting, subs, capacity)?;
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
    fn insert<P: Pair<T>, T: Item>(&mut self, tx: &mut P::Tx, item: T, position: u64) -> Result<(), Stop> {
        while !P::try_push(tx, item) {
            self.failed(position)?;
        }
        Ok(())
    }

    /// Inserts the end mark, and a batch in all.
    fn end<P: Pair<T>, T: Item>(&mut self, tx: &mut P::Tx, position: u64) -> Result<(), Stop> {
        (0..P::GRAIN).try_for_each(|_| self.insert::<P, T>(tx, T::default(), position))
    }
}

/// The SubAnalyzer of an address pair: the addresses' sum is the same in both directions.
#[inline(always)]
fn share(sum: u128, subs: usize) -> usize {
    let hash = (sum as u64 ^ (sum >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(hash) * subs as u128) >> 64) as usize
}

fn dispatch<A: Application, P: Pair<A::Packet>>(
    app: &A,
    mut txs: Vec<P::Tx>,
    mut polls: Polls<'_>,
) -> Result<Part<A>, Stop> {
    polls.side.start()?;
    let subs = txs.len();
    for (number, record) in app.trace().records().enumerate() {
        if let Some((sum, packet)) = app.dispatch(number, &record) {
            polls.insert::<P, _>(&mut txs[share(sum, subs)], packet, number as u64)?;
        }
    }
    txs.iter_mut().try_for_each(|tx| polls.end::<P, _>(tx, app.trace().len() as u64))?;
    polls.side.stop();
    Ok(Part { local: None, main: None, tries: polls.failed })
}

fn sub_analysis<A: Application, P: Pair<A::Packet>, R: Pair<A::Report>>(
    app: &A,
    mut rx: P::Rx,
    mut tx: R::Tx,
    mut polls: Polls<'_>,
) -> Result<Part<A>, Stop> {
    let (mut sub, mut reports, mut position) = (app.sub_analyzer(), Vec::new(), 0);
    polls.side.start()?;
    loop {
        let packet = loop {
            match P::poll(&mut rx, || _ = R::flush(&mut tx)) {
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
            polls.insert::<R, _>(&mut tx, report, position)?;
        }
    }
    let local = app.finish(sub, &mut reports);
    for report in reports {
        position += 1;
        polls.insert::<R, _>(&mut tx, report, position)?;
    }
    polls.end::<R, _>(&mut tx, position + 1)?;
    polls.side.stop();
    Ok(Part { local: Some(local), main: None, tries: polls.failed })
}

fn main_analysis<A: Application, R: Pair<A::Report>>(
    mut rxs: Vec<R::Rx>,
    mut polls: Polls<'_>,
) -> Result<Part<A>, Stop> {
    let (mut main, mut position) = (A::Main::default(), 0);
    polls.side.start()?;
    while !rxs.is_empty() {
        let before = position;
        rxs.retain_mut(|rx| {
            let Some(report) = R::try_pop(rx) else { return true };
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
