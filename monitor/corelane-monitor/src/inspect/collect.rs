//! What the output stage makes of the harvests: lines and scans in one order, and the report.

use super::lines::{Key, Spares};
use super::merge::Merge;
use super::stage::{Counts, Harvest, Numbers};
use crate::analyzer::kept::Trials;
use crate::continuous::{Continuous, ScanEvent, ScanState, Scans};
use crate::dispatch::Dispatcher;
use crate::facts::{self, Facts, StageFacts};
use crate::findings::Findings;
use crate::lending::Lent;
use crate::main_analyzer::MainAnalyzer;
use crate::partial_result::PartialResult;
use crate::report::{LATEST, ProbeScan, Report};
use crate::settings::Settings;
use crate::state_report::StateReport;
use crate::steps::{begin_of, step_of};
use crate::through::Through;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a run has found, as it comes.
#[derive(Debug)]
pub enum Found<'a> {
    /// Events of conversations: lines of JSON, any number of them. None mean that no more are at hand.
    Lines(&'a [u8]),
    /// A scan was found, or has ended. Only where [time passes in steps](crate::Continuous).
    Scan(&'a ScanEvent),
    /// The state reports of failures and answers, in any order, where they are [asked for](Continuous::reports).
    Step {
        /// All steps before this time are over, and these are the reports in them that were not given out before. If
        /// the run is over this is its end.
        begun_ns: u64,
        /// The reports.
        reports: &'a [StateReport],
        /// The tunnels between the hosts of these reports, each once.
        through: &'a [Through],
        /// Whether the run is over. Then what was still open is among the reports, with the times at which it would
        /// have failed.
        is_last: bool,
    },
    /// All numbers so far, at the end of a step, with the [facts](Findings::facts) of the time since the last snapshot,
    /// each of which is given out once. Those of a ring that lags come with a later snapshot. Only there too.
    Snapshot(&'a Report, &'a Findings),
}

/// The end of steps, as the Dispatcher saw it.
#[derive(Debug)]
pub(super) struct StepEnd {
    /// The number of the packet before which they ended.
    pub(super) number: u64,
    /// All steps before this time are over.
    pub(super) begun_ns: u64,
    /// The Dispatcher's numbers, if all numbers are wanted.
    pub(super) snapshot: Option<Box<Dispatcher>>,
    /// What is lent from now on, if that has changed.
    pub(super) lent: Option<Arc<Lent>>,
}

impl StepEnd {
    fn key(&self) -> Key {
        Key::mark(self.number, step_of(self.begun_ns), 0)
    }
}

/// What one Dispatcher and its stages have brought.
struct Ring<'a> {
    merge: Merge<'a>,
    ends: VecDeque<StepEnd>,
    /// The snapshots of each stage that wait for those of the others.
    snapshots: Vec<VecDeque<Numbers>>,
    /// The counts of the last complete snapshot.
    counts: Option<(Box<Dispatcher>, Vec<Counts>)>,
    /// The facts that are still to be given out.
    gathered: Option<StageFacts>,
    /// All its steps before this time are over.
    begun_ns: u64,
}

/// The state of the output stage.
///
/// Usually there is one Dispatcher. With several, each has stages of its own: their lines come out as they are
/// complete, those of each Dispatcher in order, and a step is over for scans when all have passed it.
pub(super) struct Collector<'a> {
    settings: &'a Settings,
    rings: Vec<Ring<'a>>,
    /// For captures that end.
    main: MainAnalyzer,
    /// For time that passes in steps.
    scans: Option<Scans>,
    /// The latest scans.
    latest: VecDeque<ScanEvent>,
    /// All steps before this time are over for scans.
    begun_ns: u64,
}

impl<'a> Collector<'a> {
    /// `stages` has the number of stages of each Dispatcher.
    pub(super) fn new(
        stages: &[usize],
        settings: &'a Settings,
        continuous: Option<&Continuous>,
        spares: &'a Spares,
    ) -> Self {
        let ring = |&stages: &usize| Ring {
            merge: Merge::new(stages, spares),
            ends: VecDeque::new(),
            snapshots: (0..stages).map(|_| VecDeque::new()).collect(),
            counts: None,
            gathered: None,
            begun_ns: 0,
        };
        Collector {
            settings,
            rings: stages.iter().map(ring).collect(),
            main: MainAnalyzer::new(settings),
            scans: continuous.map(|continuous| Scans::new(settings, continuous)),
            latest: VecDeque::new(),
            begun_ns: 0,
        }
    }

    /// Takes the end of steps, before any stage has passed it.
    pub(super) fn end(&mut self, ring: usize, end: StepEnd) {
        self.rings[ring].ends.push_back(end);
    }

    /// Takes what a stage has found.
    pub(super) fn add(&mut self, ring: usize, stage: usize, harvest: Harvest) {
        let Harvest { lines, reports, through, snapshots, passed, reported } = harvest;
        self.through(through);
        match &mut self.scans {
            None => reports.into_iter().for_each(|report| self.main.state_report(report)),
            Some(scans) => reports.into_iter().for_each(|report| scans.report(report)),
        }
        let ring = &mut self.rings[ring];
        ring.snapshots[stage].extend(snapshots);
        ring.merge.add(stage, lines, passed, reported);
    }

    /// Takes the tunnels of hosts.
    pub(super) fn through(&mut self, noted: Vec<Through>) {
        match &mut self.scans {
            None => self.main.through(noted),
            Some(scans) => noted.into_iter().for_each(|through| scans.through(through)),
        }
    }

    /// The number of the first packet of a Dispatcher that may bring something more.
    pub(super) fn passed(&self, ring: usize) -> u64 {
        self.rings[ring].merge.passed().number()
    }

    /// Whether a stage is to wait for another one.
    pub(super) fn is_ahead(&self, ring: usize, stage: usize) -> bool {
        self.rings[ring].merge.is_ahead(stage)
    }

    /// Gives out all that is complete.
    pub(super) fn drain(&mut self, out: &mut dyn FnMut(Found<'_>)) {
        let mut any = false;
        for number in 0..self.rings.len() {
            any |= self.drain_one(number, out);
        }
        if any {
            out(Found::Lines(&[]));
        }
    }

    /// Gives out what is complete of one ring. Says whether there was anything.
    fn drain_one(&mut self, number: usize, out: &mut dyn FnMut(Found<'_>)) -> bool {
        let others = self.rings.iter().enumerate().filter(|&(other, _)| other != number);
        let others_ns = others.map(|(_, ring)| ring.begun_ns).min().unwrap_or(u64::MAX);
        let passed = self.rings[number].merge.passed();
        let mut any = false;
        while let Some(end) = self.rings[number].ends.pop_front() {
            // Before all reports are there only what comes before the mark is complete.
            let is_reported = end.key() <= self.rings[number].merge.reported();
            let upto = if is_reported { passed } else { passed.min(Key::mark(end.number, 0, 0)) };
            let (is_over, some) = self.end_steps(number, &end, others_ns, upto, out);
            any |= some;
            if !is_over {
                self.rings[number].ends.push_front(end);
                return any;
            }
            any = true;
            self.rings[number].begun_ns = end.begun_ns;
            if let Some(dispatcher) = end.snapshot {
                self.snapshot(number, dispatcher, out);
            }
        }
        let ring = &mut self.rings[number];
        any |= ring.merge.drain(passed, |lines| out(Found::Lines(lines)));
        if passed == Key::END && ring.begun_ns != u64::MAX {
            // It holds no step of the others back any longer.
            let end = StepEnd { number: 0, begun_ns: u64::MAX, snapshot: None, lent: None };
            self.end_steps(number, &end, others_ns, Key::END, out);
            self.rings[number].begun_ns = u64::MAX;
        }
        any
    }

    /// Ends the steps that a ring has passed, and all others too: for scans, behind the lines that are due in them.
    /// What comes before `upto` is complete. Says whether all steps before this end are over, and whether there was
    /// anything.
    fn end_steps(
        &mut self,
        number: usize,
        end: &StepEnd,
        others_ns: u64,
        upto: Key,
        out: &mut dyn FnMut(Found<'_>),
    ) -> (bool, bool) {
        let begun_ns = end.begun_ns.min(others_ns);
        if begun_ns == u64::MAX {
            // The run is over.
            return (true, false);
        }
        let mut any = false;
        let over = |&step: &u64| begin_of(step.saturating_add(1)) <= begun_ns;
        while let Some(step) = self.scans.as_ref().and_then(Scans::next_due).filter(over) {
            let key = Key::mark(end.number, step + 1, 0);
            any |= self.rings[number].merge.drain(key.min(upto), |lines| out(Found::Lines(lines)));
            if key > upto {
                return (false, any);
            }
            let Some(scans) = &mut self.scans else { break };
            scans.end(step, |event| give_out_scan(event, &mut self.latest, out));
            any = true;
        }
        any |= self.rings[number].merge.drain(end.key().min(upto), |lines| out(Found::Lines(lines)));
        if end.key() > upto {
            return (false, any);
        }
        if begun_ns > self.begun_ns {
            self.begun_ns = begun_ns;
            self.give_out_reports(begun_ns, false, out);
        }
        (true, any)
    }

    /// Gives out the reports that have counted, where they are asked for.
    fn give_out_reports(&mut self, begun_ns: u64, is_last: bool, out: &mut dyn FnMut(Found<'_>)) {
        if let Some((reports, through)) = self.scans.as_mut().and_then(Scans::take_counted) {
            out(Found::Step { begun_ns, reports: &reports, through: &through, is_last });
        }
    }

    /// Gives out the numbers of all rings, when the first of them has new ones. Those of a ring that lags are its last
    /// ones, as no number may fall; its facts come once. Before the first packet of any ring there is nothing to tell.
    fn snapshot(&mut self, number: usize, dispatcher: Box<Dispatcher>, out: &mut dyn FnMut(Found<'_>)) {
        let ring = &mut self.rings[number];
        let mut counts = Vec::new();
        for numbers in ring.snapshots.iter_mut().filter_map(VecDeque::pop_front) {
            counts.push(numbers.counts);
            match (&mut ring.gathered, numbers.facts) {
                (Some(gathered), Some(facts)) => gathered.merge(facts),
                (gathered, facts) => *gathered = gathered.take().or(facts),
            }
        }
        ring.counts = Some((dispatcher, counts));
        if number > 0 {
            return;
        }
        let mut all = Vec::new();
        let mut dispatchers = Vec::new();
        for (dispatcher, counts) in self.rings.iter().filter_map(|ring| ring.counts.as_ref()) {
            dispatchers.push(Dispatcher::clone(dispatcher));
            all.extend_from_slice(counts);
        }
        if dispatchers.iter().all(|dispatcher| dispatcher.packets() == 0) {
            return;
        }
        let gathered = self.rings.iter_mut().filter_map(|ring| ring.gathered.take()).collect();
        let (report, findings) = self.report(MainAnalyzer::new(self.settings), &dispatchers, all, gathered, &[]);
        out(Found::Snapshot(&report, &findings));
    }

    /// The run is over: makes the report of the numbers of all stages, with those of the Dispatchers' own analyses.
    pub(super) fn finish(
        mut self,
        dispatchers: &[Dispatcher],
        numbers: Vec<Numbers>,
        own: impl IntoIterator<Item = Option<PartialResult>>,
        out: &mut dyn FnMut(Found<'_>),
    ) -> (Report, Findings) {
        let end_ns = dispatchers.iter().map(Dispatcher::max_time).max().unwrap_or(0);
        if let Some(scans) = &mut self.scans {
            scans.finish(end_ns, |event| give_out_scan(event, &mut self.latest, out));
        }
        self.give_out_reports(end_ns, true, out);
        let mut main = std::mem::replace(&mut self.main, MainAnalyzer::new(self.settings));
        own.into_iter().flatten().for_each(|own| main.dispatchers_result(own));
        let mut gathered: Vec<_> = self.rings.iter_mut().filter_map(|ring| ring.gathered.take()).collect();
        let (mut all, mut trials) = (Vec::new(), Vec::new());
        for numbers in numbers {
            all.push(numbers.counts);
            gathered.extend(numbers.facts);
            trials.extend(numbers.trials);
        }
        self.report(main, dispatchers, all, gathered, &trials)
    }

    fn report(
        &self,
        mut main: MainAnalyzer,
        dispatchers: &[Dispatcher],
        counts: Vec<Counts>,
        gathered: Vec<StageFacts>,
        trials: &[Trials],
    ) -> (Report, Findings) {
        let mut findings = Findings::default();
        for (result, found) in counts {
            main.partial_result(result);
            findings.add(&found);
        }
        let mut report = main.finish(&Dispatcher::sum(dispatchers));
        report.fragments.add(&findings.fragments);
        if let Some(scans) = &self.scans {
            report.pairs = None;
            report.scans = Some(scans.found());
            report.scan_groups = scans.len() as u64;
            report.evicted.groups = scans.evicted();
            for event in &self.latest {
                let mut scan = event.scan.clone();
                scans.count_now(event).into_iter().for_each(|count| scan.set_count(count));
                report.tunnelled.extend(event.tunnel.map(|tunnel| (scan.name(event.probe), tunnel)));
                match event.probe {
                    None => report.alerts.push(scan),
                    Some(probe) => report.probe_scans.push(ProbeScan { probe, scan }),
                }
            }
        }
        if !gathered.is_empty() {
            let mut all = Facts::of(gathered);
            // Stories need all attempts, which only a whole capture keeps.
            match &self.scans {
                None => facts::describe_scans(&report, trials, &mut all),
                Some(scans) => {
                    all.going_on = scans.going_on().collect();
                    all.going_on.sort_by_key(ScanEvent::order);
                }
            }
            findings.facts = Some(Box::new(all));
        }
        (report, findings)
    }
}

/// Gives out news of a scan, and keeps it among the latest, with all its failures once it has ended.
fn give_out_scan(event: ScanEvent, latest: &mut VecDeque<ScanEvent>, out: &mut dyn FnMut(Found<'_>)) {
    out(Found::Scan(&event));
    if event.state == ScanState::Found {
        latest.push_back(event);
        if latest.len() > LATEST {
            latest.pop_front();
        }
    } else if let Some(found) = latest.iter_mut().find(|found| found.is_of(&event)) {
        found.scan = event.scan;
    }
}
