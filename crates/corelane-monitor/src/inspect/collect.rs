//! What the output stage makes of the harvests: lines and scans in one order, and the report.

use super::findings::Findings;
use super::lines::{Key, Spares};
use super::merge::Merge;
use super::stage::{Harvest, Numbers};
use crate::continuous::{Continuous, ScanEvent, ScanState, Scans};
use crate::dispatch::Dispatcher;
use crate::main_analyzer::MainAnalyzer;
use crate::report::{LATEST, ProbeScan, Report};
use crate::settings::Settings;
use crate::steps::{begin_of, step_of};
use std::collections::VecDeque;

/// What a run has found, as it comes.
#[derive(Debug)]
pub enum Found<'a> {
    /// Events of conversations: lines of JSON, any number of them. None mean that no more are at hand.
    Lines(&'a [u8]),
    /// A scan was found, or has ended. Only where [time passes in steps](crate::watch()).
    Scan(&'a ScanEvent),
    /// All numbers so far, at the end of a step. Only there too.
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
}

impl StepEnd {
    fn key(&self) -> Key {
        Key::mark(self.number, step_of(self.begun_ns), 0)
    }
}

/// The state of the output stage.
pub(super) struct Collector<'a> {
    settings: &'a Settings,
    merge: Merge<'a>,
    /// For captures that end.
    main: MainAnalyzer,
    /// For time that passes in steps.
    scans: Option<Scans>,
    ends: VecDeque<StepEnd>,
    /// The snapshots of each stage that wait for those of the others.
    snapshots: Vec<VecDeque<Numbers>>,
    /// The latest scans.
    latest: VecDeque<ScanEvent>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        stages: usize,
        settings: &'a Settings,
        continuous: Option<&Continuous>,
        spares: &'a Spares,
    ) -> Self {
        Collector {
            settings,
            merge: Merge::new(stages, spares),
            main: MainAnalyzer::new(settings),
            scans: continuous.map(|continuous| Scans::new(settings, continuous)),
            ends: VecDeque::new(),
            snapshots: (0..stages).map(|_| VecDeque::new()).collect(),
            latest: VecDeque::new(),
        }
    }

    /// Takes the end of steps, before any stage has passed it.
    pub(super) fn end(&mut self, end: StepEnd) {
        self.ends.push_back(end);
    }

    /// Takes what a stage has found.
    pub(super) fn add(&mut self, stage: usize, harvest: Harvest) {
        let Harvest { lines, reports, snapshots, passed } = harvest;
        match &mut self.scans {
            None => reports.into_iter().for_each(|report| self.main.state_report(report)),
            Some(scans) => reports.into_iter().for_each(|report| scans.report(report)),
        }
        self.snapshots[stage].extend(snapshots);
        self.merge.add(stage, lines, passed);
    }

    /// The number of the first packet that may bring something more.
    pub(super) fn passed(&self) -> u64 {
        self.merge.passed().number()
    }

    /// Gives out all that is complete.
    pub(super) fn drain(&mut self, mut out: impl FnMut(Found<'_>)) {
        let passed = self.merge.passed();
        let mut any = false;
        while self.ends.front().is_some_and(|end| end.key() <= passed)
            && let Some(end) = self.ends.pop_front()
        {
            any = true;
            let over = |&step: &u64| begin_of(step.saturating_add(1)) <= end.begun_ns;
            while let Some(step) = self.scans.as_ref().and_then(Scans::next_due).filter(over) {
                self.merge.drain(Key::mark(end.number, step + 1, 0), |lines| out(Found::Lines(lines)));
                let Some(scans) = &mut self.scans else { break };
                scans.end(step, |event| tell(event, &mut self.latest, &mut out));
            }
            self.merge.drain(end.key(), |lines| out(Found::Lines(lines)));
            if let Some(dispatcher) = &end.snapshot {
                let numbers: Vec<_> = self.snapshots.iter_mut().filter_map(VecDeque::pop_front).collect();
                let (report, findings) = self.report(MainAnalyzer::new(self.settings), dispatcher, numbers);
                out(Found::Snapshot(&report, &findings));
            }
        }
        any |= self.merge.drain(passed, |lines| out(Found::Lines(lines)));
        if any {
            out(Found::Lines(&[]));
        }
    }

    /// The run is over: makes the report of the numbers of all stages.
    pub(super) fn finish(
        mut self,
        dispatcher: &Dispatcher,
        numbers: Vec<Numbers>,
        mut out: impl FnMut(Found<'_>),
    ) -> (Report, Findings) {
        if let Some(scans) = &mut self.scans {
            scans.finish(|event| tell(event, &mut self.latest, &mut out));
        }
        let main = std::mem::replace(&mut self.main, MainAnalyzer::new(self.settings));
        self.report(main, dispatcher, numbers)
    }

    fn report(&self, mut main: MainAnalyzer, dispatcher: &Dispatcher, numbers: Vec<Numbers>) -> (Report, Findings) {
        let mut findings = Findings::default();
        for (result, found) in numbers {
            main.partial_result(result);
            findings.add(&found);
        }
        let mut report = main.finish(dispatcher);
        if let Some(scans) = &self.scans {
            report.pairs = None;
            report.scans = Some(scans.found());
            report.scan_groups = scans.len() as u64;
            report.evicted.groups = scans.evicted();
            for ScanEvent { probe, scan, .. } in &self.latest {
                match *probe {
                    None => report.alerts.push(scan.clone()),
                    Some(probe) => report.probe_scans.push(ProbeScan { probe, scan: scan.clone() }),
                }
            }
        }
        (report, findings)
    }
}

/// Gives out news of a scan, and keeps it among the latest, with all its failures once it has ended.
fn tell(event: ScanEvent, latest: &mut VecDeque<ScanEvent>, out: &mut impl FnMut(Found<'_>)) {
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
