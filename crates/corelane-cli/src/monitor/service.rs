//! What a run on an interface has beside the analysis: requests by signals, and numbers for those who watch it.

use crate::exit::complain;
use crate::interrupt::Requests;
use crate::metrics::{By, Interface, Listener, Metrics, OutputState, Snapshot};
use crate::notify::Notify;
use crate::output::Condition;
use corelane_monitor::{Captured, Findings, Report, Style, Timing};
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the other threads know of a capture that goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) capture: Captured,
    pub(super) is_up: bool,
    /// The time from the arrival of the last packet to when it was read.
    pub(super) lag: Duration,
    pub(super) last_ns: Option<u64>,
    /// How the copy is, if one is written.
    pub(super) copy: Option<Condition>,
}

/// The facts, for all threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared(Arc<Mutex<Facts>>);

impl Shared {
    fn get(&self) -> Facts {
        self.lock().clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watched side of a run.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) requests: Requests,
    /// Those of each ring.
    facts: Vec<Shared>,
    notify: Notify,
    numbers: Arc<Mutex<Snapshot>>,
    /// Serves the numbers as long as it lives.
    metrics: Option<Metrics>,
    start: Instant,
    /// Snapshots from one event with statistics to the next.
    every: u64,
    snapshots: u64,
    reports: usize,
}

impl Service {
    /// A run that has begun, with an event of statistics for every so many snapshots. The numbers are served where the
    /// listener listens, with what the process was deprived of.
    pub(super) fn start(
        requests: &Requests,
        facts: Vec<Shared>,
        every: u64,
        listener: Option<Listener>,
        protections: Vec<(&'static str, String)>,
        notify: Notify,
    ) -> io::Result<Self> {
        let numbers = Arc::new(Mutex::new(Snapshot::default()));
        let (told, seen) = (Arc::clone(&numbers), facts.clone());
        let now = move || {
            // What the kernel counts is newer than the last step.
            let mut numbers = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
            capture(&mut numbers, &all(&seen));
            numbers.protections.clone_from(&protections);
            numbers
        };
        let metrics = listener.map(|listener| listener.serve(now)).transpose()?;
        let requests = requests.clone();
        let interface = all(&facts).capture.interface;
        // A service manager that does not listen any longer is its own fault.
        let _ = notify.ready(&format!("capturing from {interface}"));
        Ok(Service {
            requests,
            facts,
            notify,
            numbers,
            metrics,
            start: Instant::now(),
            every,
            snapshots: 0,
            reports: 0,
        })
    }

    /// Opens outputs again, and tells the service manager of it.
    pub(super) fn reload(&self, reopen: impl FnOnce()) {
        let _ = self.notify.reloading();
        reopen();
        let _ = self.notify.ready(&format!("capturing from {}", all(&self.facts).capture.interface));
    }

    /// Tells the service manager that the run goes on; to be called several times a minute.
    pub(super) fn alive(&mut self) {
        let _ = self.notify.alive(Instant::now());
    }

    /// Tells the service manager that the run ends.
    pub(super) fn stopping(&self) {
        let _ = self.notify.stopping();
    }

    /// Where the numbers are served.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(Metrics::address)
    }

    /// What the capture has counted so far. `outputs` are those of the run beside the copy.
    pub(super) fn captured(&self, outputs: &[(String, Condition)]) -> Captured {
        let Facts { capture, copy, .. } = all(&self.facts);
        let conditions = || outputs.iter().map(|(_, condition)| condition).chain(copy.as_ref());
        Captured {
            output_errors: conditions().map(|condition| condition.errors).sum(),
            output_dropped: conditions().map(|condition| condition.dropped).sum(),
            ..capture
        }
    }

    /// Takes the numbers at the end of a step. Says whether an event with statistics is due.
    pub(super) fn snapshot(&mut self, report: &Report, findings: &Findings, outputs: &[(String, Condition)]) -> bool {
        let numbers = numbers(report, findings, outputs);
        *self.numbers.lock().unwrap_or_else(PoisonError::into_inner) = numbers;
        self.report_if_asked(report);
        self.snapshots += 1;
        self.snapshots.is_multiple_of(self.every)
    }

    /// Follows requests that no end of a step follows: there are no numbers before the first packet.
    pub(super) fn follow(&mut self) {
        if self.snapshots == 0 {
            let capture = Some(self.captured(&[]));
            self.report_if_asked(&Report { capture, ..Report::default() });
        }
    }

    fn report_if_asked(&mut self, report: &Report) {
        let reports = self.requests.reports();
        if reports != self.reports {
            self.reports = reports;
            self.write(report);
        }
    }

    /// Writes the report so far to the standard error.
    fn write(&self, report: &Report) {
        let timing = Timing { wall: self.start.elapsed(), cpu: super::cpu_time(), peak_memory: super::peak_memory() };
        let style = Style { color: crate::progress::color(io::stderr().is_terminal()) };
        if report.write_summary(&timing, style, io::stderr().lock()).is_err() {
            complain("the report that was asked for cannot be written");
        }
    }
}

/// The facts of all rings together.
fn all(rings: &[Shared]) -> Facts {
    let mut sum = Facts { is_up: true, ..Facts::default() };
    for ring in rings {
        let facts = ring.get();
        sum.capture.kernel_packets += facts.capture.kernel_packets;
        sum.capture.kernel_drops += facts.capture.kernel_drops;
        sum.capture.freezes += facts.capture.freezes;
        sum.capture.truncated += facts.capture.truncated;
        sum.capture.interface = facts.capture.interface;
        sum.is_up &= facts.is_up;
        sum.lag = sum.lag.max(facts.lag);
        sum.last_ns = sum.last_ns.max(facts.last_ns);
        // They share one copy.
        sum.copy = facts.copy.or(sum.copy);
    }
    sum
}

/// What the numbers of a step say to those who watch the run.
fn numbers(report: &Report, findings: &Findings, outputs: &[(String, Condition)]) -> Snapshot {
    let by =
        |items: &[(&'static str, u64)]| -> By { items.iter().map(|&(name, count)| (name.into(), count)).collect() };
    let conversations = &findings.conversations;
    let seen = &findings.seen;
    let [syn, probes] = report.scans.unwrap_or_default();
    let over = conversations.finished
        + conversations.reset
        + conversations.replaced
        + conversations.timed_out
        + conversations.evicted;
    Snapshot {
        updated: Some(Instant::now()),
        bytes: report.bytes,
        conversations: conversations.conversations.saturating_sub(over),
        scan_groups: report.scan_groups,
        memory: by(&[("conversations", findings.conversation_bytes), ("fragments", findings.fragment_bytes)]),
        evicted: by(&[
            ("conversations", conversations.evicted),
            ("fragments", findings.fragments.evicted),
            ("flows", report.evicted.flows),
            ("failures", report.evicted.failures),
            ("groups", report.evicted.groups),
        ]),
        refused: by(&[("fragments", findings.fragments.refused)]),
        alerts: by(&[("syn", syn), ("probe", probes)]),
        events: by(&[
            ("flow", over),
            ("http", seen.http),
            ("tls", seen.tls),
            ("quic", seen.quic),
            ("dns", [seen.dns_queries, seen.dns_responses].as_flattened().iter().sum()),
            ("ssh", seen.ssh),
        ]),
        outputs: outputs.iter().map(|(name, condition)| output(name, condition)).collect(),
        ..Snapshot::default()
    }
}

/// Adds what the capture says.
fn capture(numbers: &mut Snapshot, facts: &Facts) {
    numbers.packet_lag = facts.lag;
    numbers.last_packet_ns = facts.last_ns;
    numbers.interfaces = vec![Interface {
        name: facts.capture.interface.clone(),
        is_up: facts.is_up,
        packets: facts.capture.kernel_packets,
        drops: facts.capture.kernel_drops,
        freezes: facts.capture.freezes,
        truncated: facts.capture.truncated,
    }];
    numbers.outputs.extend(facts.copy.iter().map(|condition| output("copy", condition)));
}

fn output(name: &str, condition: &Condition) -> OutputState {
    let Condition { errors, dropped, error } = condition.clone();
    OutputState { name: name.to_owned(), errors, dropped, error }
}
