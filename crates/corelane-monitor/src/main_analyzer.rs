//! The third stage: the global analysis.

use crate::analyzer::PartialResult;
use crate::dispatch::Dispatcher;
use crate::groups::{Groups, Scan};
use crate::hash::HashKeys;
use crate::report::{Alert, Report};
use crate::settings::Settings;
use crate::state_report::StateReport;
use crate::talkers::{Address, Talkers};

/// Finds horizontal scans from the state reports of all SubAnalyzers, and puts their partial results together. Neither
/// the order of the reports nor that of the results matters, but for whose share of packets is named first.
#[derive(Debug)]
pub struct MainAnalyzer {
    /// Failures by (source, port).
    groups_v4: Groups<(u32, u16)>,
    groups_v6: Groups<(u128, u16)>,
    talkers: Talkers,
    report: Report,
}

impl MainAnalyzer {
    /// A MainAnalyzer without state.
    pub fn new(settings: &Settings) -> Self {
        let keys = HashKeys::random();
        MainAnalyzer {
            groups_v4: Groups::new(settings.horizontal_threshold, keys),
            groups_v6: Groups::new(settings.horizontal_threshold, keys),
            talkers: Talkers::new(settings.top, keys),
            report: Report::default(),
        }
    }

    /// Takes a state report of any SubAnalyzer.
    #[inline]
    pub fn state_report(&mut self, report: StateReport) {
        if report.is_v6() {
            self.groups_v6.add((report.source_v6(), report.port()), report.time_ns());
        } else {
            self.groups_v4.add((report.source_v4(), report.port()), report.time_ns());
        }
    }

    /// Takes the partial result of a SubAnalyzer. Called in the order of the SubAnalyzers' numbers, as
    /// [`Report::analyzer_packets`] is in the order of these calls.
    pub fn partial_result(&mut self, result: PartialResult) {
        self.report.analyzer_packets.push(result.packets);
        self.add(result);
    }

    /// Takes the partial result of what the Dispatcher analysed itself.
    pub fn dispatchers_result(&mut self, result: PartialResult) {
        self.report.dispatcher_packets += result.packets;
        self.add(result);
    }

    fn add(&mut self, result: PartialResult) {
        let report = &mut self.report;
        report.flows += result.flows;
        report.pairs += result.pairs;
        report.rejected += result.rejected;
        report.unanswered += result.unanswered;
        report.failed_attempts += result.rejected + result.unanswered;
        report.alerts.extend(result.alerts);
        self.talkers.merge(result.talkers);
    }

    /// All SubAnalyzers' reports and results are here: makes the report, with the Dispatcher's own counts.
    pub fn finish(mut self, dispatcher: &Dispatcher) -> Report {
        fn horizontal<A: Address>(scan: Scan<(A, u16)>) -> Alert {
            let Scan { key: (source, port), count, time_ns } = scan;
            Alert::Horizontal { source: source.ip(), port, count, time_ns }
        }
        let mut report = self.report;
        report.alerts.extend(self.groups_v4.drain_scans().map(horizontal));
        report.alerts.extend(self.groups_v6.drain_scans().map(horizontal));
        report.alerts.sort_unstable_by_key(Alert::order);
        report.packets = dispatcher.packets();
        report.bytes = dispatcher.bytes();
        report.tcp = dispatcher.tcp();
        report.malformed = dispatcher.malformed();
        report.undecoded = dispatcher.undecoded();
        report.times = dispatcher.times();
        (report.conversations, report.hosts) = self.talkers.finish();
        report
    }
}
