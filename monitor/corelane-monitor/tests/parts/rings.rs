//! Several rings, each with a Dispatcher of its own, find what one finds.

use crate::captures_folder::captures;
use crate::records::{Owned, Records, of_one_clock, records_of, split, synthetic};
use corelane_monitor::{
    Continuous, Findings, Found, Inspection, Job, Observer, Plan, Progress, Report, STEP_NS, Settings, Silence, Source,
};
use corelane_net::capture::{LinkType, Options, Reader, Record};
use corelane_net::synth::{Config, Conversations};
use serde_json::Value;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The events without what may differ, in an order of their own, the scans among them, and the report.
struct Ran {
    events: Vec<String>,
    report: Report,
}

fn ran(run: impl FnOnce(&mut (dyn FnMut(Found<'_>) + Send)) -> Report) -> Ran {
    let (mut text, mut events) = (Vec::new(), Vec::new());
    let mut out = |found: Found<'_>| match found {
        Found::Lines(lines) => text.extend_from_slice(lines),
        Found::Scan(scan) => events.push(format!("{scan:?}")),
        Found::Step { .. } | Found::Snapshot(..) => {}
    };
    let report = run(&mut out);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let mut event: Value = serde_json::from_slice(line).expect("JSON");
        let fields = event.as_object_mut().expect("an object");
        fields.remove("pcap_cnt");
        fields.remove("flow_id");
        events.push(event.to_string());
    }
    events.sort_unstable();
    let report = Report { analyzer_packets: Vec::new(), dispatcher_packets: 0, scan_groups: 0, ..report };
    Ran { events, report }
}

fn job(analyzers: usize) -> Job {
    Job {
        settings: Settings { probes: true, ..Settings::default() },
        plan: Plan { analyzers, capacity: 64, ..Plan::default() },
        inspection: Inspection::default(),
        continuous: Some(Continuous::default()),
    }
}

/// Runs a job over records, as one source or shared among so many rings.
fn run(job: &Job, records: &[Owned], rings: Option<usize>) -> Ran {
    let progress = Progress::new();
    ran(|found| {
        let observer = Observer { progress: &progress, damage: &|_, never| match never {}, found };
        let report = match rings {
            None => job.run([Records(records.to_vec(), 0)], observer),
            Some(rings) => job.run_rings(split(records, rings), observer),
        };
        assert_eq!(progress.packets(), records.len() as u64);
        report.expect("the plan is good").0
    })
}

fn compare(name: &str, records: &[Owned]) {
    let records = &of_one_clock(records);
    let one = run(&job(0), records, None);
    for (rings, analyzers) in [(1, 0), (2, 1), (2, 3), (3, 4)] {
        let several = run(&job(analyzers), records, Some(rings));
        for (a, b) in one.events.iter().zip(&several.events) {
            assert_eq!(a, b, "{name}, {rings} rings");
        }
        assert_eq!(one.events.len(), several.events.len(), "{name}, {rings} rings");
        assert_eq!(one.report, several.report, "{name}, {rings} rings");
    }
}

#[test]
fn captures_are_told_alike_by_any_number_of_rings() {
    let Some(folder) = captures() else { return };
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(reader) = Reader::open(&path, &Options::default()) else { continue };
        let records = records_of(reader);
        compare(&path.display().to_string(), &records);
    }
}

#[test]
fn synthetic_traffic_is_told_alike_by_any_number_of_rings() {
    let records = synthetic(Config { packets: 60_000, ..Config::default() });
    compare("scans", &records);
    let web = Conversations { seed: 3, conversations: 2_000, trouble: 5, spoofed: 100 };
    let records = records_of(Reader::from_bytes(web.capture()).expect("a capture"));
    compare("web", &records);
}

/// Each ring has a limit of memory for itself: what is evicted, and that alone, depends on their number.
#[test]
fn one_limit_for_all_evicts_more_than_one_for_each_ring() {
    let records = of_one_clock(&synthetic(Config { packets: 60_000, ..Config::default() }));
    for (mib, evicts) in [(32, true), (48, false)] {
        let mut job = job(1);
        job.settings.table_bytes = Some(mib << 20);
        let [one, three] = [None, Some(3)].map(|rings| run(&job, &records, rings));
        let [of_one, of_three] = [&one, &three].map(|ran| ran.report.evicted.failures);
        assert_eq!((of_one > 0, of_one > of_three), (evicts, evicts), "{mib}: {of_one} and {of_three}");
        assert_eq!((one.events == three.events, one.report == three.report), (!evicts, !evicts), "{mib}");
    }
}

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A ring whose clock goes on from second to second while it is silent, until it is to end.
struct Silent<'a> {
    seconds: u64,
    is_over: &'a AtomicBool,
    since: Instant,
}

impl<'a> Silent<'a> {
    fn until(is_over: &'a AtomicBool) -> Self {
        Silent { seconds: 0, is_over, since: Instant::now() }
    }
}

impl Source for Silent<'_> {
    type Error = Infallible;

    fn read(&mut self, _: usize, _: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        thread::yield_now();
        Ok(0)
    }

    fn silence(&mut self) -> Silence {
        if self.is_over.load(Relaxed) {
            return Silence::End { time_ns: None };
        }
        assert!(self.since.elapsed() < PATIENCE, "nothing has ended this ring");
        self.seconds += 1;
        Silence::Pause { time_ns: self.seconds * STEP_NS }
    }
}

/// A ring with packets of some seconds, then without any, and without a clock.
struct Lagging<'a>(Records, &'a AtomicBool);

impl Source for Lagging<'_> {
    type Error = Infallible;

    fn read(&mut self, max: usize, sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        thread::yield_now();
        self.0.read(max, sink)
    }

    fn silence(&mut self) -> Silence {
        match self.1.load(Relaxed) {
            true => Silence::End { time_ns: None },
            false => Silence::Pause { time_ns: 0 },
        }
    }
}

enum Ring<'a> {
    Silent(Silent<'a>),
    Lagging(Lagging<'a>),
    Panics,
}

impl Source for Ring<'_> {
    type Error = Infallible;

    fn read(&mut self, max: usize, sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        match self {
            Ring::Silent(ring) => ring.read(max, sink),
            Ring::Lagging(ring) => ring.read(max, sink),
            Ring::Panics => panic!("as planned"),
        }
    }

    fn silence(&mut self) -> Silence {
        match self {
            Ring::Silent(ring) => ring.silence(),
            Ring::Lagging(ring) => ring.silence(),
            Ring::Panics => Silence::End { time_ns: None },
        }
    }
}

fn watch_all(rings: Vec<Ring<'_>>, mut found: impl FnMut(Found<'_>) + Send) -> Report {
    let job = Job {
        settings: Settings::default(),
        plan: Plan { analyzers: rings.len(), capacity: 64, ..Plan::default() },
        inspection: Inspection::default(),
        continuous: Some(Continuous { snapshot_s: 1, ..Continuous::default() }),
    };
    let damage = &|_, never| match never {};
    let observer = Observer { progress: &Progress::new(), damage, found: &mut found };
    job.run_rings(rings, observer).expect("the plan is good").0
}

/// The numbers come with the steps of the first ring, though it has no packets, and those of a ring that lags stay.
#[test]
fn numbers_are_those_of_all_rings_and_never_fall() {
    let is_over = AtomicBool::new(false);
    let packet = |seconds: u64| (seconds * STEP_NS, 60, LinkType::ETHERNET, vec![0; 60]);
    // At the end of the first second there are ten.
    let records = (0..10).map(|_| packet(1)).chain([packet(2)]).collect();
    let rings = vec![Ring::Silent(Silent::until(&is_over)), Ring::Lagging(Lagging(Records(records, 0), &is_over))];
    let (last, times) = (AtomicU64::new(0), AtomicU64::new(0));
    let report = watch_all(rings, |found| {
        let Found::Snapshot(report, _) = found else { return };
        assert!(report.packets >= last.load(Relaxed).max(1), "{} packets", report.packets);
        last.store(report.packets, Relaxed);
        if times.fetch_add(1, Relaxed) == 100 {
            is_over.store(true, Relaxed);
        }
    });
    assert!(times.into_inner() > 100);
    // Of the second packet's second there is no end before that of the run.
    assert_eq!(report.packets, 11);
}

#[test]
fn a_ring_that_panics_ends_the_others() {
    let never = AtomicBool::new(false);
    for silent_first in [true, false] {
        let mut rings = vec![Ring::Silent(Silent::until(&never)), Ring::Panics];
        if !silent_first {
            rings.reverse();
        }
        let panic = catch_unwind(AssertUnwindSafe(|| watch_all(rings, |_| ()))).expect_err("a panic");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"as planned"));
    }
}

/// Bytes of all conversations.
fn bytes(findings: &Findings) -> u64 {
    let volumes = findings.protocols.values().chain(&findings.unidentified).chain(&findings.silent);
    volumes.map(|volume| volume.bytes).sum()
}

/// The bytes that hosts have sent, and the conversations that began.
fn of_facts(findings: &Findings) -> [u64; 2] {
    let facts = findings.facts.as_deref().expect("facts");
    assert_eq!((facts.more_hosts, facts.cut.len()), (0, 0));
    let begun = facts.timeline.bins().iter().flat_map(|bin| bin.conversations).map(u64::from).sum();
    [facts.hosts.iter().map(|(_, host)| host.sent).sum(), begun]
}

/// Whichever ring is ahead of the others.
#[test]
fn facts_of_rings_are_given_out_once() {
    let capture = Conversations { seed: 3, conversations: 400, trouble: 5, spoofed: 100 }.capture();
    let records = records_of(Reader::from_bytes(capture).expect("a capture"));
    let job = Job {
        settings: Settings::default(),
        plan: Plan { analyzers: 3, capacity: 64, ..Plan::default() },
        inspection: Inspection { facts: true, ..Inspection::default() },
        continuous: Some(Continuous { snapshot_s: 1, ..Continuous::default() }),
    };
    for (rings, first_is_empty) in [(1, false), (2, false), (3, false), (1, true), (2, true)] {
        let mut sources = split(&records, rings);
        if first_is_empty {
            // It has no clock, so that there is no snapshot: all waits for the end.
            sources.insert(0, Records(Vec::new(), 0));
        }
        let mut sum = [0; 2];
        let damage = &|_, never| match never {};
        let found = &mut |found: Found<'_>| {
            if let Found::Snapshot(_, findings) = found {
                sum.iter_mut().zip(of_facts(findings)).for_each(|(sum, count)| *sum += count);
            }
        };
        let ran = job.run_rings(sources, Observer { progress: &Progress::new(), damage, found });
        let (_, findings) = ran.expect("the plan is good");
        sum.iter_mut().zip(of_facts(&findings)).for_each(|(sum, count)| *sum += count);
        assert_eq!(sum, [bytes(&findings), findings.conversations.conversations], "{rings} rings");
    }
}

/// As [`Job::run`] over no sources.
#[test]
fn no_rings_have_no_packets() {
    for (analyzers, payload) in [(0, true), (2, true), (2, false)] {
        let job = Job {
            settings: Settings::default(),
            plan: Plan { analyzers, ..Plan::default() },
            inspection: Inspection { payload, ..Inspection::default() },
            continuous: payload.then(Continuous::default),
        };
        let observer = Observer { progress: &Progress::new(), damage: &|_, never| match never {}, found: &mut |_| {} };
        let (report, _) = job.run_rings(Vec::<Records>::new(), observer).expect("the plan is good");
        assert_eq!(report.packets, 0, "{analyzers}");
    }
}

/// A ring that ends with an error.
struct Broken(bool);

impl Source for Broken {
    type Error = ();

    fn read(&mut self, _: usize, _: impl FnMut(Record<'_>)) -> Result<usize, ()> {
        if std::mem::replace(&mut self.0, true) { Ok(0) } else { Err(()) }
    }
}

/// Each waits until the other has an error too.
#[test]
fn rings_report_errors_at_once() {
    let errors = AtomicU64::new(0);
    let damage = &|_, ()| {
        errors.fetch_add(1, Relaxed);
        let begun = Instant::now();
        while errors.load(Relaxed) < 2 {
            assert!(begun.elapsed() < Duration::from_secs(10), "the other ring waits to report its error");
            std::thread::yield_now();
        }
    };
    let observer = Observer { progress: &Progress::new(), damage, found: &mut |_| {} };
    let plan = Plan { analyzers: 2, ..Plan::default() };
    let ran = Job::scans(Settings::default(), plan).run_rings(vec![Broken(false), Broken(false)], observer);
    assert_eq!(ran.expect("the plan is good").0.packets, 0);
}
