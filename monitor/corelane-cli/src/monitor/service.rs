//! What a run on an interface has beside the analysis: requests by signals, and numbers for those who watch it.

use super::usage::{cpu_time, peak_memory};
use crate::exit::complain;
use crate::interrupt::Requests;
use crate::metrics::{By, Interface, Listener, Metrics, OutputState, Snapshot};
use crate::notify::Notify;
use crate::output::Condition;
use corelane_monitor::{Captured, Findings, Jumps, Report, STEP_NS, Style, Timing};
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{iter, mem};

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

/// The numbers of the last step. The lock is held for the exchange of a pointer, so a reader holds up no thread of the
/// run.
#[derive(Clone, Debug, Default)]
struct Numbers(Arc<Mutex<Arc<Snapshot>>>);

impl Numbers {
    fn get(&self) -> Snapshot {
        let last = Arc::clone(&self.lock());
        (*last).clone()
    }

    fn set(&self, numbers: Snapshot) {
        let numbers = Arc::new(numbers);
        // Whichever is the last to have the old ones frees them.
        let old = mem::replace(&mut *self.lock(), numbers);
        drop(old);
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Snapshot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a scrape sees: the numbers of the last step, and the counts of the kernel, which are newer.
fn scrape(numbers: &Numbers, facts: &[Shared], protections: &[(&'static str, String)]) -> Snapshot {
    let mut numbers = numbers.get();
    capture(&mut numbers, &all(facts));
    numbers.protections = protections.to_vec();
    numbers
}

/// The watched side of a run.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) requests: Requests,
    /// Those of each ring.
    facts: Vec<Shared>,
    notify: Notify,
    numbers: Numbers,
    /// Serves the numbers as long as it lives.
    metrics: Option<Metrics>,
    start: Instant,
    /// Snapshots from one event with statistics to the next.
    every: u64,
    snapshots: u64,
    reports: usize,
    /// Those that were told.
    jumps: Jumps,
}

impl Service {
    /// A run that has begun, with these outputs and an event of statistics for every so many snapshots. The numbers are
    /// served where the listener listens, with what the process was deprived of. All are there from the start, as a
    /// rule of Prometheus says nothing of one that is not.
    pub(super) fn start(
        requests: &Requests,
        facts: Vec<Shared>,
        every: u64,
        outputs: &[(String, Condition)],
        listener: Option<Listener>,
        protections: Vec<(&'static str, String)>,
        notify: Notify,
    ) -> io::Result<Self> {
        let numbers = Numbers::default();
        let queue_fill = vec![("analyzers".into(), 0.0)];
        let none = numbers_of(&Report::default(), &Findings::default(), outputs);
        // Without a packet there is no progress either.
        numbers.set(Snapshot { updated: None, queue_fill, ..none });
        let (numbers_of_scrape, facts_of_scrape) = (numbers.clone(), facts.clone());
        let now = move || scrape(&numbers_of_scrape, &facts_of_scrape, &protections);
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
            jumps: Jumps::default(),
        })
    }

    /// Opens outputs again, and notifies the service manager.
    pub(super) fn reload(&self, reopen: impl FnOnce()) {
        let _ = self.notify.reloading();
        reopen();
        let _ = self.notify.ready(&format!("capturing from {}", all(&self.facts).capture.interface));
    }

    /// Notifies the service manager that the run goes on; to be called several times a minute.
    pub(super) fn alive(&mut self) {
        let _ = self.notify.alive(Instant::now());
    }

    /// Notifies the service manager that the run ends.
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
    pub(super) fn snapshot(
        &mut self,
        report: &Report,
        findings: &Findings,
        outputs: &[(String, Condition)],
        queue_fill: Option<f64>,
    ) -> bool {
        let queue_fill = queue_fill.into_iter().map(|fill| ("analyzers".into(), fill)).collect();
        self.numbers.set(Snapshot { queue_fill, ..numbers_of(report, findings, outputs) });
        let before = std::mem::replace(&mut self.jumps, report.jumps);
        if before.ahead < report.jumps.ahead {
            let more = report.jumps.ahead - before.ahead;
            complain(format_args!("packets whose time was more than a minute ahead of the others: {more}"));
        }
        if before.set_back < report.jumps.set_back {
            set_back(&report.jumps).into_iter().for_each(complain);
        }
        self.report_if_asked(report);
        self.snapshots += 1;
        self.snapshots.is_multiple_of(self.every)
    }

    /// Follows requests that no end of a step follows: there are no numbers before the first of so many packets.
    pub(super) fn follow(&mut self, packets: u64) {
        if self.snapshots == 0 && packets == 0 {
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
        let timing = Timing { wall: self.start.elapsed(), cpu: cpu_time(), peak_memory: peak_memory() };
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
fn numbers_of(report: &Report, findings: &Findings, outputs: &[(String, Condition)]) -> Snapshot {
    let by =
        |items: &[(&'static str, u64)]| -> By { items.iter().map(|&(name, count)| (name.into(), count)).collect() };
    let conversations = &findings.conversations;
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
        events: iter::once(("flow", over))
            .chain(findings.seen.by_type())
            .map(|(name, count)| (name.into(), count))
            .collect(),
        outputs: outputs.iter().map(|(name, condition)| OutputState::of(name, condition)).collect(),
        problems: set_back(&report.jumps).into_iter().collect(),
        ..Snapshot::default()
    }
}

/// That the clock was set back, and has not caught up.
fn set_back(jumps: &Jumps) -> Option<String> {
    let seconds = jumps.shift_ns.div_ceil(STEP_NS);
    (seconds > 0)
        .then(|| format!("the clock was set back: alerts have times that are {seconds} s later than the packets'"))
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
    numbers.outputs.extend(facts.copy.iter().map(|condition| OutputState::of("copy", condition)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelane_monitor::{Continuous, Found, Inspection, Job, Observer, Plan, Progress, Settings, Silence, Source};
    use corelane_net::capture::{LinkType, Record};
    use std::convert::Infallible;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    const SECOND: u64 = 1_000_000_000;

    /// Conversations that all begin at once, and then a packet of one of them each second.
    struct Crowd {
        conversations: u32,
        seconds: u64,
        sent: u64,
    }

    impl Source for Crowd {
        type Error = Infallible;

        fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
            let crowd = 2 * u64::from(self.conversations);
            let end = (self.sent + max as u64).min(crowd + self.seconds);
            for number in self.sent..end {
                let second = number.saturating_sub(crowd);
                let conversation = (number / 2 % u64::from(self.conversations)) as u32;
                // A SYN, and the answer to it.
                let packet = segment(conversation, number.is_multiple_of(2));
                let time_ns = SECOND * (1 + second);
                sink(Record { time_ns, wire_len: packet.len() as u32, link: LinkType::RAW, data: &packet });
            }
            let read = (end - self.sent) as usize;
            self.sent = end;
            Ok(read)
        }

        fn silence(&mut self) -> Silence {
            Silence::End { time_ns: None }
        }
    }

    fn segment(conversation: u32, is_first: bool) -> [u8; 40] {
        let mut packet = [0; 40];
        packet[..10].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6]);
        packet[32] = 0x50;
        let client = (0x0a00_0000 + conversation).to_be_bytes();
        let (at, flags, [from, to]) = if is_first { (12, 2, [20, 22]) } else { (16, 0x12, [22, 20]) };
        packet[at..at + 4].copy_from_slice(&client);
        packet[28 - at..32 - at].copy_from_slice(&[192, 0, 2, 1]);
        packet[from..from + 2].copy_from_slice(&4000_u16.to_be_bytes());
        packet[to..to + 2].copy_from_slice(&443_u16.to_be_bytes());
        packet[33] = flags;
        if !is_first {
            packet[31] = 1;
        }
        packet
    }

    #[derive(Default)]
    struct Times(Vec<Duration>);

    impl Times {
        fn take<T>(&mut self, act: impl FnOnce() -> T) -> T {
            let start = Instant::now();
            let done = act();
            self.0.push(start.elapsed());
            done
        }

        /// The median, and the most.
        fn sorted(mut self) -> (Duration, Duration) {
            self.0.sort_unstable();
            (self.0[self.0.len() / 2], self.0[self.0.len() - 1])
        }
    }

    /// A run over a crowd, all in one thread, with a snapshot every so many seconds; how long it took.
    fn run(crowd: Crowd, snapshot_s: u64, mut each: impl FnMut(&Report, &Findings) + Send) -> Duration {
        let job = Job {
            settings: Settings::default(),
            plan: Plan { analyzers: 0, ..Plan::default() },
            inspection: Inspection::default(),
            continuous: Some(Continuous { snapshot_s, ..Continuous::default() }),
        };
        let start = Instant::now();
        let found = &mut |found: Found<'_>| {
            if let Found::Snapshot(report, findings) = found {
                each(report, findings);
            }
        };
        job.run([crowd], Observer { progress: &Progress::new(), damage: &|_, _| {}, found }).unwrap();
        start.elapsed()
    }

    /// Prints how long scrapes hold up a run whose tables are full, and what a scrape and the numbers of a step take.
    #[test]
    #[ignore = "a measurement: cargo test --profile dist -- --ignored --nocapture scrape"]
    fn a_scrape_holds_up_no_thread_of_a_run_with_full_tables() {
        const CONVERSATIONS: u32 = 300_000;
        const SECONDS: u64 = 250;
        let crowd = || Crowd { conversations: CONVERSATIONS, seconds: SECONDS, sent: 0 };
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let facts = vec![Shared::default()];
        let (requests, notify) = (Requests::default(), Notify::default());
        let mut service =
            Service::start(&requests, facts.clone(), 10, &[], Some(listener), Vec::new(), notify).unwrap();
        let (numbers, address) = (service.numbers.clone(), service.address().unwrap());
        let (mut held, mut copied, mut answered) = (Times::default(), Times::default(), Times::default());
        let mut set = Times::default();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // Under load, as the run goes on all the time.
                while !is_over.load(Ordering::Relaxed) {
                    run(crowd(), 1, |report, findings| {
                        set.take(|| service.snapshot(report, findings, &[], Some(0.5)));
                    });
                }
            });
            while numbers.get().conversations < u64::from(CONVERSATIONS) {
                thread::sleep(Duration::from_millis(1));
            }
            for _ in 0..1000 {
                // All that keeps the run's threads out: their numbers of a step, and what the capture has counted.
                let (numbers, facts) = (&numbers, &facts);
                held.take(|| (Arc::clone(&numbers.lock()), facts[0].get()));
                copied.take(|| scrape(numbers, facts, &[]));
                answered.take(|| {
                    let mut client = TcpStream::connect(address).unwrap();
                    client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
                    let mut text = String::new();
                    client.read_to_string(&mut text).unwrap();
                    assert!(text.contains("corelane_queue_fill_ratio{stage=\"analyzers\"} 0.5"), "{text}");
                });
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let median = |every| {
            let mut times: Vec<_> = (0..5).map(|_| run(crowd(), every, |_, _| {})).collect();
            times.sort_unstable();
            times[2]
        };
        let step = median(1).saturating_sub(median(u64::MAX)) / SECONDS as u32;
        let rows = [("locks held", held), ("copy", copied), ("answer over HTTP", answered), ("numbers set", set)];
        let mut text = format!("{CONVERSATIONS} conversations; numbers of a step, made and set: {step:?}\n");
        let mut medians = Vec::new();
        for (what, times) in rows {
            let (count, (median, most)) = (times.0.len(), times.sorted());
            text += &format!("{what}: median {median:?}, most {most:?} of {count}\n");
            medians.push(median);
        }
        io::stderr().write_all(text.as_bytes()).unwrap();
        assert!(medians[0] < Duration::from_millis(1), "{medians:?}");
    }
}
