//! How many keys of a source were answered, of each host and of each port: what [scans](super::scans) are weighed by.
//! And how many of them failed later.
//!
//! Nearly all connections of a network are answered, and each is counted here, so a count lies in a table that is
//! fetched ahead. Counts do not depend on the order of a step's answers. Where they lack room, those of the fewest
//! answers leave, as they outweigh the least.

use super::scans::{Key, Target, order};
use crate::probe::Probe;
use crate::run::Run;
use crate::state_report::StateReport;
use crate::table::{Align32, Align64, Table};
use bytemuck::Zeroable;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Answers that are fetched ahead together.
const TOGETHER: usize = 32;

/// How many members failed, or were answered, in the latest window that had any, and in that before it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, Zeroable)]
pub(super) struct Tally {
    window: u64,
    pub(super) now: u32,
    before: u32,
}

impl Tally {
    /// Goes on to a window.
    pub(super) fn pass(&mut self, window: u64) -> &mut Self {
        if window > self.window {
            let is_next = window == self.window + 1;
            *self = Tally { window, now: 0, before: if is_next { self.now } else { 0 } };
        }
        self
    }

    /// Takes one back.
    pub(super) fn take_back(&mut self) {
        let from = if self.now > 0 { &mut self.now } else { &mut self.before };
        *from = from.saturating_sub(1);
    }

    pub(super) fn most(&self) -> u64 {
        self.now.max(self.before).into()
    }

    pub(super) fn sum(&self) -> u64 {
        u64::from(self.now) + u64::from(self.before)
    }

    /// Whether it says nothing in this window.
    fn is_over(&self, window: u64) -> bool {
        self.window + 1 < window
    }
}

type WordsV4 = [u64; 2];
type WordsV6 = [u64; 5];

/// A key in words, of which the last is never 0.
enum Words {
    V4(WordsV4),
    V6(WordsV6),
}

/// What is counted of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// Members that were answered.
    Answered,
    /// Those of them that failed later.
    Failed,
}

#[inline(always)]
fn words(of: Of, (source, probe, target): &Key) -> Words {
    let port = if let Target::Port(port) = target { u64::from(*port) } else { 0 };
    let is_port = u64::from(matches!(target, Target::Port(_)));
    let kind = u64::from(probe.map_or(0, Probe::number)) << 3 | (of as u64) << 2 | is_port << 1 | 1;
    let host = if let Target::Host(host) = target { Some(host) } else { None };
    match source {
        IpAddr::V4(source) => {
            let host = if let Some(IpAddr::V4(host)) = host { u64::from(host.to_bits()) } else { 0 };
            Words::V4([u64::from(source.to_bits()) << 32 | host, port << 32 | kind])
        }
        IpAddr::V6(source) => {
            let (source, host) = (source.to_bits(), if let Some(IpAddr::V6(host)) = host { host.to_bits() } else { 0 });
            Words::V6([(source >> 64) as u64, source as u64, (host >> 64) as u64, host as u64, port << 32 | kind])
        }
    }
}

/// The answers of all sources, in this window and that before it.
#[derive(Debug)]
pub(super) struct Answers {
    run: Run,
    /// The [room](Answers::room) that they may take.
    most: usize,
    window: u64,
    v4: Table<WordsV4, Tally, Align32>,
    v6: Table<WordsV6, Tally, Align64>,
}

/// All that there is to go on from, in order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AnswersState {
    v4: Vec<(WordsV4, Tally)>,
    v6: Vec<(WordsV6, Tally)>,
}

impl Answers {
    pub(super) fn new(most: usize) -> Self {
        Answers { run: Run::new(), most, window: 0, v4: Table::default(), v6: Table::default() }
    }

    pub(super) fn state(&self) -> AnswersState {
        let mut v4: Vec<_> = self.v4.iter().map(|entry| (*entry.key(), entry.value)).collect();
        let mut v6: Vec<_> = self.v6.iter().map(|entry| (*entry.key(), entry.value)).collect();
        v4.sort_unstable_by_key(|(words, _)| *words);
        v6.sort_unstable_by_key(|(words, _)| *words);
        AnswersState { v4, v6 }
    }

    pub(super) fn restore(&mut self, state: AnswersState) {
        *self = Answers::new(self.most);
        for (words, tally) in state.v4 {
            self.window = self.window.max(tally.window);
            *self.at(Words::V4(words)) = tally;
        }
        for (words, tally) in state.v6 {
            self.window = self.window.max(tally.window);
            *self.at(Words::V6(words)) = tally;
        }
    }

    /// The tallies, in those of IPv4.
    pub(super) fn room(&self) -> usize {
        self.v4.len() + 2 * self.v6.len()
    }

    /// That of a key, which may be new.
    #[inline(always)]
    fn at(&mut self, words: Words) -> &mut Tally {
        match words {
            Words::V4(words) => self.v4.entry(&self.run, &words, self.run.keys.hash(&words)),
            Words::V6(words) => self.v6.entry(&self.run, &words, self.run.keys.hash(&words)),
        }
    }

    /// The members of a key that were answered.
    pub(super) fn get(&mut self, key: &Key) -> Option<&mut Tally> {
        self.find(Of::Answered, key)
    }

    /// No block ever has any.
    fn find(&mut self, of: Of, key: &Key) -> Option<&mut Tally> {
        let Answers { run, v4, v6, .. } = self;
        if key.2 == Target::Block {
            return None;
        }
        match words(of, key) {
            Words::V4(words) => v4.find(&words, run.keys.hash(&words)).map(|position| v4.value_at(position)),
            Words::V6(words) => v6.find(&words, run.keys.hash(&words)).map(|position| v6.value_at(position)),
        }
    }

    #[inline(always)]
    fn prefetch(&self, words: Words) {
        match words {
            Words::V4(words) => self.v4.prefetch(self.run.keys.hash(&words)),
            Words::V6(words) => self.v6.prefetch(self.run.keys.hash(&words)),
        }
    }

    /// A window has begun: those that are over leave.
    pub(super) fn pass(&mut self, window: u64) {
        if window > self.window {
            self.window = window;
            self.retain(|tally| !tally.is_over(window));
        }
    }

    /// Counts the answers of a step, which are in this window.
    pub(super) fn add(&mut self, answers: &mut [StateReport], window: u64) {
        // Of each answer there may be two tallies more, of IPv6 at worst. Which of them leave depends on their order.
        let is_tight = self.room().saturating_add(4 * answers.len()) > self.most;
        if is_tight {
            answers.sort_unstable_by_key(order);
        }
        for together in answers.chunks(TOGETHER) {
            for report in together {
                targets(report).into_iter().for_each(|key| self.prefetch(words(Of::Answered, &key)));
            }
            for report in together {
                for key in targets(report) {
                    self.at(words(Of::Answered, &key)).pass(window).now += 1;
                }
                if is_tight && self.room() > self.most {
                    self.halve();
                }
            }
        }
    }

    /// Takes back the answers that failures of the same step refute.
    pub(super) fn take_back(&mut self, failures: &[StateReport], window: u64) {
        for report in failures.iter().filter(|report| report.is_refuted()) {
            for key in targets(report) {
                self.get(&key).into_iter().for_each(|tally| tally.pass(window).take_back());
            }
        }
    }

    /// A member of a key failed that was answered before.
    pub(super) fn fail(&mut self, key: &Key, window: u64) {
        self.at(words(Of::Failed, key)).pass(window).now += 1;
        if self.room() > self.most {
            self.halve();
        }
    }

    /// How many did so in this window and in that before it; from now on none.
    pub(super) fn take_failed(&mut self, key: &Key, window: u64) -> u64 {
        self.find(Of::Failed, key).map_or(0, |tally| std::mem::take(tally.pass(window)).sum())
    }

    fn retain(&mut self, keep: impl Fn(&Tally) -> bool) {
        self.v4.retain(&self.run, &keep);
        self.v6.retain(&self.run, keep);
    }

    /// Gives up half of them or more, of the fewest answers.
    #[cold]
    fn halve(&mut self) {
        let (v4, v6) = (self.v4.iter().map(|entry| entry.value), self.v6.iter().map(|entry| entry.value));
        let mut all: Vec<u64> = v4.chain(v6).map(|tally| tally.most()).collect();
        let half = all.len() / 2;
        let least = *all.select_nth_unstable(half).1;
        self.retain(|tally| tally.most() > least);
    }
}

/// The keys that an answer counts for.
#[inline(always)]
fn targets(report: &StateReport) -> [Key; 2] {
    let probe = report.probe();
    [Target::Host(report.destination()), Target::Port(report.port())].map(|target| (report.source(), probe, target))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_report::{Tried, Verdict};
    use crate::steps::begin_of;

    fn answered(source: u32, destination: u32, port: u16) -> StateReport {
        let tried = Tried { source, destination, port, probe: None };
        StateReport::v4(tried, begin_of(100), Verdict::Answered)
    }

    fn of_v6(source: u128, port: u16) -> StateReport {
        let tried = Tried { source, destination: 9, port, probe: Some(Probe::Udp) };
        StateReport::v6(tried, begin_of(100), Verdict::Answered)
    }

    /// Stages that run beside each other report in any order.
    #[test]
    fn what_is_counted_and_what_leaves_does_not_depend_on_the_order_of_a_step() {
        let mut reports: Vec<_> = (0..600_u32).map(|n| answered(1 + n % 97, n % 13, (n % 7) as u16)).collect();
        reports.extend((0..200_u16).map(|n| of_v6(1 + u128::from(n % 11), n % 5)));
        for most in [usize::MAX, 500, 100, 20, 0] {
            let state = |reports: &mut [StateReport]| {
                let mut answers = Answers::new(most);
                answers.add(reports, 3);
                assert!(answers.room() <= most, "{most}");
                format!("{:?}", answers.state())
            };
            let expected = state(&mut reports.clone());
            reports.rotate_left(123);
            assert_eq!(state(&mut reports.clone()), expected, "{most}");
            reports.reverse();
            assert_eq!(state(&mut reports.clone()), expected, "{most}");
        }
    }

    #[test]
    fn hosts_ports_and_kinds_are_apart_and_a_state_goes_on() {
        let mut answers = Answers::new(usize::MAX);
        let (first, other) = (answered(1, 2, 3), of_v6(1, 3));
        answers.add(&mut [first, answered(1, 3, 3), answered(1, 2, 2), other], 3);
        let mut again = Answers::new(usize::MAX);
        again.restore(answers.state());
        for answers in [&mut answers, &mut again] {
            let mut of = |key: &Key| answers.get(key).map(|tally| tally.most());
            assert_eq!(targets(&first).map(|key| of(&key)), [Some(2), Some(2)]);
            assert_eq!(targets(&other).map(|key| of(&key)), [Some(1), Some(1)]);
            let (source, host) = (first.source(), Target::Host(first.destination()));
            assert_eq!((of(&(source, Some(Probe::Udp), host)), of(&(source, None, Target::Block))), (None, None));
        }
        again.take_back(&[answered(1, 2, 3)], 3);
        assert_eq!(again.get(&targets(&first)[0]).map(|tally| tally.most()), Some(2), "nothing refutes it");
        again.pass(5);
        assert_eq!(again.room(), 0);
    }
}
