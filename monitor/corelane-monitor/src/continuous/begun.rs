//! A log of what may tell a [twin](crate::twins): the latest attempts of IPv6 that failed and of IPv4 that were
//! answered.
//!
//! Reports of a step come in any order, so the log keeps and gives up whole steps.

use crate::state_report::StateReport;
use crate::twins::tick;
use std::collections::VecDeque;
use std::net::IpAddr;

/// The [tick] at which an attempt began, its source, and its port.
type Attempt = (u32, IpAddr, u16);

/// All that there is to go on from, in order.
pub(super) type BegunState = Vec<(u64, Vec<Attempt>)>;

/// The attempts of the latest steps.
#[derive(Debug)]
pub(super) struct Begun {
    steps: VecDeque<(u64, Vec<Attempt>)>,
    len: usize,
    most: usize,
}

impl Begun {
    /// One of so many attempts.
    pub(super) fn new(most: usize) -> Self {
        Begun { steps: VecDeque::new(), len: 0, most }
    }

    pub(super) fn state(&self) -> BegunState {
        let mut state = BegunState::from_iter(self.steps.iter().cloned());
        state.iter_mut().for_each(|(_, attempts)| attempts.sort_unstable());
        state
    }

    pub(super) fn restore(&mut self, state: BegunState) {
        self.len = state.iter().map(|(_, attempts)| attempts.len()).sum();
        self.steps = state.into();
    }

    /// Takes the reports of a step. Of a step with too many the latest stay.
    pub(super) fn add(&mut self, step: u64, reports: &[StateReport]) {
        let attempts = reports.iter().filter(|report| report.has_lag() && !report.is_known());
        let mut attempts: Vec<_> = attempts
            .filter_map(|report| Some((tick(report.lag().before(report.time_ns())?), report.source(), report.port())))
            .collect();
        if attempts.len() > self.most {
            attempts.sort_unstable();
            attempts.drain(..attempts.len() - self.most);
        }
        self.len += attempts.len();
        if !attempts.is_empty() {
            self.steps.push_back((step, attempts));
        }
        while self.len > self.most
            && let Some((_, attempts)) = self.steps.pop_front()
        {
            self.len -= attempts.len();
        }
    }

    /// The ticks of a source's attempts at a port, the latest first.
    pub(super) fn of_source(&self, source: IpAddr, port: u16) -> Vec<u32> {
        let mut found = Vec::new();
        for (step, attempts) in self.steps.iter().rev() {
            let of_source = attempts.iter().filter(|attempt| attempt.1 == source && attempt.2 == port);
            found.extend(of_source.map(|attempt| (*step, attempt.0)));
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, tick)| tick).collect()
    }

    /// The ticks and sources of attempts by IPv4 at a port, in no order.
    pub(super) fn of_v4(&self, port: u16) -> impl Iterator<Item = (u32, u32)> {
        let all = self.steps.iter().flat_map(|(_, attempts)| attempts);
        all.filter_map(move |&(tick, source, of)| match source {
            IpAddr::V4(source) if of == port => Some((tick, source.to_bits())),
            _ => None,
        })
    }
}
