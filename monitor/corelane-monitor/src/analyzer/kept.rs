//! What is kept of attempts and probes until it is known which of them belong to a scan: the tables as they are at the
//! end, and a list of attempts that were answered.
//!
//! An answered attempt leaves its table. Where stories are told its partition keeps its key in a list. When the list is
//! full, keys that are there twice go, and then those of sources that have not failed in this partition so far: busy
//! clients. If it is still nearly full nothing more is kept.

use super::attempts::Attempt;
use super::family::Family;
use super::probes::Probed;
use super::{Attempts, Probes};
use crate::hash::HashKeys;
use crate::probe::Probe;
use crate::settings::Settings;
use crate::state_report::Tried;
use std::collections::HashMap;
use std::net::IpAddr;

/// The most keys of a list.
const MOST: usize = 1024;

/// The attempts of a partition that were answered.
#[derive(Debug)]
pub(crate) struct Answered<K> {
    keys: Vec<(K, u64)>,
    /// Whether some are missing.
    is_cut: bool,
    /// Whether nothing more is kept.
    is_full: bool,
}

impl<K> Default for Answered<K> {
    fn default() -> Self {
        Answered { keys: Vec::new(), is_cut: false, is_full: false }
    }
}

impl<K: Copy + Ord> Answered<K> {
    /// All keys, each once.
    pub(super) fn take(&mut self) -> Self {
        let mut own = std::mem::take(self);
        own.merge();
        own
    }

    fn merge(&mut self) {
        self.keys.sort_unstable();
        self.keys.dedup_by_key(|&mut (key, _)| key);
    }

    /// Keeps an attempt that was answered, with the time of its SYN. `failed` says whether the source of a key has
    /// failed.
    pub(super) fn add(&mut self, key: K, time_ns: u64, failed: impl FnOnce(&mut Vec<(K, u64)>)) {
        if self.is_full {
            return;
        }
        if self.keys.len() >= MOST {
            self.merge();
            if self.keys.len() > MOST / 4 * 3 {
                let before = self.keys.len();
                failed(&mut self.keys);
                self.is_cut |= self.keys.len() < before;
                self.is_full = self.keys.len() > MOST / 4 * 3;
                self.is_cut |= self.is_full;
            }
        }
        self.keys.push((key, time_ns));
    }
}

/// Leaves those keys whose source has failed.
pub(super) fn of_failed<A: Family>(attempts: &Attempts<A>, settings: &Settings, keys: &mut Vec<(A::Key, u64)>) {
    // Only of these sources: a partition may have any number of others.
    let mut has_failed = HashMap::<_, bool, _>::with_hasher(HashKeys::random());
    has_failed.extend(keys.iter().map(|(key, _)| (A::tried(key).source, false)));
    for entry in attempts.iter().filter(|entry| entry.value.failed().is_some()) {
        if let Some(has_failed) = has_failed.get_mut(&A::tried(entry.key()).source) {
            *has_failed = true;
        }
    }
    keys.retain(|(key, _)| {
        let tried = A::tried(key);
        has_failed[&tried.source] && !settings.ignores(&tried)
    });
}

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
    pub(super) answered: Vec<Answered<A::Key>>,
}

impl<A: Family> Default for FamilyTrials<A> {
    fn default() -> Self {
        FamilyTrials { attempts: Vec::new(), probes: Vec::new(), answered: Vec::new() }
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
            if let Some((time_ns, outcome)) = self.of_attempt(entry.value) {
                give(entry.key(), time_ns, outcome);
            }
        }
        for entry in trials.probes.iter().flat_map(|table| table.iter()) {
            if let Some((time_ns, outcome)) = of_probe(&entry.value) {
                give(entry.key(), time_ns, outcome);
            }
        }
        for (key, time_ns) in trials.answered.iter().flat_map(|answered| &answered.keys) {
            give(key, *time_ns, Outcome::Answered);
        }
    }

    fn of_attempt(&self, mut attempt: Attempt) -> Option<(u64, Outcome)> {
        let opened = attempt.is_open().then(|| attempt.time());
        attempt.finish(&self.settings, self.max_time);
        let time_ns = attempt.failed()?;
        if attempt.is_rejected() {
            return Some((time_ns, Outcome::Rejected));
        }
        // It has failed at its deadline.
        let opened = opened.unwrap_or_else(|| time_ns.saturating_sub(self.settings.syn_timeout_ns));
        Some((opened, Outcome::Unanswered))
    }

    /// Whether attempts that were answered may be missing.
    pub(crate) fn are_cut(&self) -> bool {
        fn any<K>(answered: &[Answered<K>]) -> bool {
            answered.iter().any(|answered| answered.is_cut)
        }
        any(&self.v4.answered) || any(&self.v6.answered)
    }
}

fn of_probe(probed: &Probed) -> Option<(u64, Outcome)> {
    match probed.failed() {
        Some(time_ns) => Some((time_ns, Outcome::Unanswered)),
        None => probed.is_answered().then_some((probed.time(), Outcome::Answered)),
    }
}
