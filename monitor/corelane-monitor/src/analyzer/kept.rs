//! What is kept of attempts and probes until it is known which of them belong to a scan: the tables as they are at the
//! end.

use super::attempts::Attempt;
use super::family::Family;
use super::probes::Probed;
use super::{Attempts, Probes};
use crate::probe::Probe;
use crate::settings::Settings;
use crate::state_report::{Failure, Tried};
use std::net::IpAddr;

/// What became of an attempt or probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Rejected,
    Unanswered,
    Answered,
}

/// An attempt or probe, with the time at which it was made; if it was rejected, the time of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) port: u16,
    /// `None` is a SYN.
    pub(crate) probe: Option<Probe>,
    pub(crate) time_ns: u64,
    pub(crate) outcome: Outcome,
}

/// The trials of one address family.
#[derive(Debug)]
pub(super) struct FamilyTrials<A: Family> {
    pub(super) attempts: Vec<Attempts<A>>,
    pub(super) probes: Vec<Probes<A>>,
}

impl<A: Family> Default for FamilyTrials<A> {
    fn default() -> Self {
        FamilyTrials { attempts: Vec::new(), probes: Vec::new() }
    }
}

/// All trials of a SubAnalyzer, once the capture is over.
#[derive(Debug)]
pub(crate) struct Trials {
    pub(super) v4: FamilyTrials<u32>,
    pub(super) v6: FamilyTrials<u128>,
    pub(super) settings: Settings,
    pub(super) max_time: u64,
}

impl Trials {
    /// Calls this with every trial, in no order.
    pub(crate) fn each(&self, mut sink: impl FnMut(&Trial)) {
        self.each_of(&self.v4, &mut sink);
        self.each_of(&self.v6, &mut sink);
    }

    fn each_of<A: Family>(&self, trials: &FamilyTrials<A>, sink: &mut impl FnMut(&Trial)) {
        let mut give = |key: &A::Key, time_ns, outcome| {
            let tried @ Tried { source, destination, port, probe } = A::tried(key);
            if !self.settings.ignores(&tried) {
                sink(&Trial { source: source.ip(), destination: destination.ip(), port, probe, time_ns, outcome });
            }
        };
        for entry in trials.attempts.iter().flat_map(|table| table.iter()) {
            for (time_ns, outcome) in self.of_attempt(entry.value).into_iter().flatten() {
                give(entry.key(), time_ns, outcome);
            }
        }
        for entry in trials.probes.iter().flat_map(|table| table.iter()) {
            if let Some((time_ns, outcome)) = of_probe(&entry.value) {
                give(entry.key(), time_ns, outcome);
            }
        }
    }

    /// That it was answered, and that it failed: both, if one was later.
    fn of_attempt(&self, mut attempt: Attempt) -> [Option<(u64, Outcome)>; 2] {
        let opened = attempt.is_open().then(|| attempt.time());
        attempt.finish(&self.settings, self.max_time);
        let time_ns = attempt.time();
        let failed = attempt.failed().map(|(failure, _)| match failure {
            Failure::Rejected => (time_ns, Outcome::Rejected),
            // At its deadline.
            Failure::Unanswered => {
                let opened = opened.unwrap_or_else(|| time_ns.saturating_sub(self.settings.syn_timeout_ns));
                (opened, Outcome::Unanswered)
            }
        });
        let is_answered = attempt.was_answered() || attempt.was_open_afterwards();
        [is_answered.then_some((time_ns, Outcome::Answered)), failed]
    }

    /// Whether attempts that were answered may be missing.
    pub(crate) fn are_cut(&self) -> bool {
        fn any<A: Family>(trials: &FamilyTrials<A>) -> bool {
            trials.attempts.iter().any(|attempts| attempts.may_lack())
        }
        any(&self.v4) || any(&self.v6)
    }
}

fn of_probe(probed: &Probed) -> Option<(u64, Outcome)> {
    match probed.failed() {
        Some(time_ns) => Some((time_ns, Outcome::Unanswered)),
        None => probed.is_answered().then_some((probed.time(), Outcome::Answered)),
    }
}
