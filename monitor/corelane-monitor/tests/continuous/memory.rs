//! Memory does not grow with time, and stays within a limit whatever comes.
//!
//! A process's memory is measured, so each measurement is a process of its own: this program, told to run one test.

use crate::choices::Choices;
use crate::packets::SECOND;
use crate::support::{Case, plan};
use corelane_monitor::{Found, Inspection, Observer, Plan, Probe, Progress, Report, ScanState, Source, limit_memory};
use corelane_net::capture::{LinkType, Record};
use std::convert::Infallible;
use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

const START: u64 = 1_700_000_000 * SECOND;

/// Frames of IPv4 at a constant rate.
struct Made<'a> {
    packets: u64,
    at: u64,
    per_second: u64,
    make: &'a (dyn Fn(u64) -> Facts + Sync),
}

/// What is not the same in every frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    source: u32,
    destination: u32,
    source_port: u16,
    port: u16,
    /// `None` is UDP.
    flags: Option<u8>,
}

impl Source for Made<'_> {
    type Error = Infallible;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let count = (self.packets - self.at).min(max as u64);
        for number in self.at..self.at + count {
            let Facts { source, destination, source_port, port, flags } = (self.make)(number);
            let mut frame = [0; 40];
            (frame[0], frame[3], frame[8]) = (0x45, 40, 64);
            frame[12..16].copy_from_slice(&source.to_be_bytes());
            frame[16..20].copy_from_slice(&destination.to_be_bytes());
            frame[20..22].copy_from_slice(&source_port.to_be_bytes());
            frame[22..24].copy_from_slice(&port.to_be_bytes());
            match flags {
                Some(flags) => (frame[9], frame[32], frame[33]) = (6, 0x50, flags),
                None => (frame[9], frame[25]) = (17, 20),
            }
            let time_ns = START + (u128::from(number) * u128::from(SECOND) / u128::from(self.per_second)) as u64;
            sink(Record { time_ns, wire_len: 54, link: LinkType::RAW, data: &frame });
        }
        self.at += count;
        Ok(count as usize)
    }
}

/// SYNs and datagrams from sources that do not exist, by turns, to many hosts and ports.
fn spoofed(number: u64) -> Facts {
    let mut choices = Choices(number);
    let (addresses, ports) = (choices.next(), choices.next());
    Facts {
        source: 0x0100_0000 + (addresses as u32 >> 2),
        destination: 0x0a00_0000 + (addresses >> 32) as u32 % 5000,
        source_port: 1024 + ports as u16 % 50_000,
        port: (ports >> 16) as u16 % 1000,
        flags: number.is_multiple_of(2).then_some(0x02),
    }
}

/// Sources that do not exist, each of which scans a host: nothing but scans.
fn scanners(number: u64) -> Facts {
    let (scanner, port) = (number / 22, number % 22);
    let (source, destination) = (0x0100_0000 + scanner as u32, 0x0a00_0000 + scanner as u32 % 5000);
    Facts { source, destination, source_port: 4000, port: port as u16, flags: Some(0x01) }
}

/// Frames of each round of [`usual`].
const ROUND: u64 = 8;
/// Probes of each scan in it.
const PROBES: u64 = 25;
/// The scanners in it are from here on.
const SCANNERS: u32 = 0xc000_0000;

/// Usual traffic: a connection, an attempt that fails, a question and its answer, a question without one. At the
/// beginning of each hour the last is a probe of that hour's scan.
fn usual(number: u64, per_second: u64) -> Facts {
    let (round, part) = (number / ROUND, number % ROUND);
    let mut choices = Choices(round);
    let (addresses, ports) = (choices.next(), choices.next());
    let client = 0x0a00_0000 + addresses as u32 % 10_000;
    let server = 0x0b00_0000 + (addresses >> 32) as u32 % 500;
    let dead = 0x0c00_0000 + (addresses >> 32) as u32 % 100_000;
    let own = 1024 + (ports as u16 % 60_000);
    let port = 2000 + (ports >> 16) as u16 % 20_000;
    let forth = Facts { source: client, destination: server, source_port: own, port: 443, flags: None };
    let back = Facts { source: server, destination: client, source_port: 443, port: own, flags: None };
    let nobody = Facts { destination: dead, port, ..forth };
    let (hour, within) = (round / (3600 * per_second / ROUND), round % (3600 * per_second / ROUND));
    match part {
        0 => Facts { flags: Some(0x02), ..forth },
        1 => Facts { flags: Some(0x12), ..back },
        2 => Facts { flags: Some(0x11), ..forth },
        3 => Facts { flags: Some(0x11), ..back },
        4 => Facts { flags: Some(0x02), ..nobody },
        5 => forth,
        6 => back,
        _ if within < PROBES => {
            let (source, port) = (SCANNERS + hour as u32, 1 + within as u16);
            Facts { source, port, flags: Some(0x02), ..nobody_of(hour) }
        }
        _ => nobody,
    }
}

fn nobody_of(hour: u64) -> Facts {
    Facts { source: 0, destination: 0x0d00_0000 + hour as u32, source_port: 4000, port: 0, flags: None }
}

/// The bytes of memory that this process has now.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("pages");
    pages * 4096
}

fn say(line: &str) {
    // Not by a macro, whose output the test harness may keep to itself.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The bytes that a run takes, after each of these minutes, and what it found.
struct Measured {
    bytes: Vec<u64>,
    /// The first scans.
    found: Vec<corelane_monitor::ScanEvent>,
    report: Report,
}

/// Measures each time that so many minutes have passed: from the time of this number on while the output stage is held
/// up.
fn measure<S: Source<Error = Infallible> + Send>(
    source: S,
    case: &Case,
    plan: &Plan,
    minutes: u64,
    held_from: usize,
) -> Measured {
    let mut case = case.clone();
    // Facts are taken at each snapshot, so there are many.
    let every = if case.inspection.facts { 60 * minutes } else { 1 };
    case.continuous.snapshot_s = 60 * minutes / every;
    let progress = &Progress::new();
    let (begun, mut bytes, mut found) = (resident(), Vec::new(), Vec::new());
    let mut snapshots = 0;
    let found_now = &mut |news: Found<'_>| match news {
        Found::Snapshot(_, findings) => {
            assert_eq!(findings.facts.is_some(), case.inspection.facts);
            snapshots += 1;
            if snapshots % every > 0 {
                return;
            }
            if bytes.len() >= held_from {
                hold_up(progress);
            }
            bytes.push(resident().saturating_sub(begun));
        }
        // What is kept here counts too.
        Found::Scan(event) if event.state == ScanState::Found && found.len() < 2000 => found.push(event.clone()),
        _ => {}
    };
    let damage = &|_, never: Infallible| match never {};
    let ran = case.job(plan).run([source], Observer { progress, damage, found: found_now });
    Measured { bytes, found, report: ran.expect("a plan").0 }
}

/// Holds up the stage that calls this until the others wait for it: then all is on its way that may be. That they wait
/// is nothing that they tell. If one of them only pauses, less is on its way, and less is measured.
fn hold_up(progress: &Progress) {
    const TIMES: u32 = 10;
    let (mut before, mut same) = (progress.packets(), 0);
    while same < TIMES {
        std::thread::sleep(Duration::from_millis(5));
        let now = progress.packets();
        same = if now == before { same + 1 } else { 0 };
        before = now;
    }
}

/// Runs a scenario in a process of its own, and returns what it says.
fn alone(scenario: &str) {
    if !cfg!(target_os = "linux") {
        return say("SKIPPED: the system does not say how much memory a process has");
    }
    let program = std::env::current_exe().expect("this program");
    let arguments = ["--exact", "memory::scenario", "--ignored", "--nocapture", "--test-threads=1"];
    let output = Command::new(program).args(arguments).env(SCENARIO, scenario).output().expect("a process");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {said}{}", String::from_utf8_lossy(&output.stdout));
    assert!(said.contains("MiB"), "{scenario} was not run: {said}");
    say(&said);
}

/// The variable that names a scenario.
const SCENARIO: &str = "CORELANE_TEST_SCENARIO";

#[test]
#[ignore = "run by the tests of this file"]
fn scenario() {
    let scenario = std::env::var(SCENARIO).unwrap_or_default();
    // Some have a number of analyzers.
    let (name, analyzers) = scenario.split_once(" with ").unwrap_or((&scenario, "0"));
    let analyzers = analyzers.parse().expect("a number");
    match name {
        "flood" => flood([64, 24], false, 3_000_000, &spoofed),
        "flood, payload" => flood([192, 96], true, 750_000, &spoofed),
        "scanners" => flood([64, 48], false, 1_500_000, &scanners),
        "hours" => hours(analyzers, 3, 80, false, false),
        "hours, facts" => hours(analyzers, 3, 80, true, false),
        "hours, held up" => hours(analyzers, 6, 20, false, true),
        "thirty days" => hours(analyzers, 30 * 24, 80, false, false),
        _ => say("SKIPPED: this is run by the other tests of its file"),
    }
}

/// Two and a half minutes of a flood: a limit is kept, and reached soon. The second number of MiB is what a run may
/// take beside the program: less, as not all parts are used.
fn flood([limit, most]: [u64; 2], payload: bool, packets: u64, make: &(dyn Fn(u64) -> Facts + Sync)) {
    let (limit, most) = (limit << 20, most << 20);
    let mut case = Case { inspection: Inspection { payload, ..Inspection::default() }, ..Case::default() };
    let plan = plan(1, 1024);
    let Case { settings, inspection, .. } = &mut case;
    limit_memory(limit, &plan, settings, payload.then_some(inspection)).expect("enough");
    let per_second = packets / 150;
    let source = Made { packets, at: 0, per_second, make };
    let Measured { bytes, report, .. } = measure(source, &case, &plan, 1, usize::MAX);
    let total = resident();
    say(&format!("{} of {} MiB, {bytes:?}, {:?}", total >> 20, limit >> 20, report.evicted));
    assert!(total <= limit && bytes.iter().all(|&bytes| bytes <= most), "{total} of {limit}, {bytes:?} of {most}");
    let [first, second] = bytes[..] else { panic!("{bytes:?}") };
    assert!(second <= first + first / 10 + (4 << 20), "it grows from {first} to {second}");
    let evicted = report.evicted;
    assert!(evicted.flows > 0 && evicted.failures + evicted.groups > packets / 50, "{evicted:?}");
}

/// The most bytes that are on their way from one analyzer, and that the output stage has taken.
const ON_THE_WAY: u64 = 2 << 20;

/// Usual traffic for so many hours. If the output stage is held up, from the third hour on.
fn hours(analyzers: usize, hours: u64, per_second: u64, facts: bool, is_held_up: bool) {
    let source =
        Made { packets: hours * 3600 * per_second, at: 0, per_second, make: &|number| usual(number, per_second) };
    let plan = plan(analyzers, Plan::default().capacity);
    let case = Case { inspection: Inspection { facts, ..Inspection::default() }, ..Case::default() };
    let held_from = if is_held_up { 12 } else { usize::MAX };
    let Measured { bytes, found, report } = measure(source, &case, &plan, 10, held_from);
    let (before, after) = bytes.split_at(12);
    let second_hour = *before[6..].iter().max().expect("six of ten minutes");
    let days: Vec<_> = bytes.chunks(24 * 6).map(|day| day.iter().max().map_or(0, |most| most >> 10)).collect();
    say(&format!("hour 2: {} KiB, each day {days:?} KiB, now {} MiB", second_hour >> 10, resident() >> 20));
    let most = after.iter().max().expect("some hours");
    assert!(second_hour > 4 << 20, "{second_hour} bytes are too few to say something");
    // What is on its way between threads is a matter of the stages alone, and comes beside what else varies.
    let more = second_hour / 10 + if analyzers > 0 { ON_THE_WAY * (analyzers as u64 + 1) } else { 0 };
    assert!(*most <= second_hour + more, "{most} after {second_hour}");
    // Every scan that was planted, and no other.
    let sources: Vec<_> = found.iter().map(|event| (event.scan.kind(), event.scan.source(), event.probe)).collect();
    let planted = (0..hours as u32).map(|hour| ("vertical", Ipv4Addr::from_bits(SCANNERS + hour).into(), None));
    assert_eq!(sources, planted.collect::<Vec<_>>());
    assert!(report.evicted.is_empty() && report.refused.is_empty());
}

#[test]
fn a_flood_stays_within_a_limit() {
    ["flood", "flood, payload", "scanners"].into_iter().for_each(alone);
}

#[test]
fn memory_is_the_same_after_hours() {
    ["hours with 0", "hours, facts with 0", "hours, facts with 2"].into_iter().for_each(alone);
}

/// What is on its way between threads depends on how they are scheduled. The most of it, which days may bring about, is
/// brought about here.
#[test]
fn memory_is_the_same_after_hours_and_when_the_output_is_held_up() {
    ["hours, held up with 1", "hours, held up with 2"].into_iter().for_each(alone);
}

#[test]
#[ignore = "takes minutes: cargo test --release -p corelane-monitor --test continuous thirty_days -- --ignored \
            --nocapture"]
fn thirty_days_take_no_more_memory_than_two_hours() {
    alone("thirty days with 0");
}

#[test]
#[ignore = "takes minutes, as the test above"]
fn thirty_days_take_no_more_memory_than_two_hours_with_one_analyzer() {
    alone("thirty days with 1");
}

#[test]
#[ignore = "takes minutes, as the test above"]
fn thirty_days_take_no_more_memory_than_two_hours_with_two_analyzers() {
    alone("thirty days with 2");
}

/// What a limit leaves of a flood does not depend on the stages that share it.
#[test]
fn a_flood_gives_the_same_for_any_number_of_analyzers() {
    for (make, payload) in
        [(spoofed as fn(u64) -> Facts, false), (scanners, false), (one_scan, false), (one_scan, true)]
    {
        let mut case = Case::scans_only();
        limit_memory(64 << 20, &plan(4, 64), &mut case.settings, None).expect("enough");
        case.inspection.payload = payload;
        case.continuous.snapshot_s = 5;
        // Less than the least limit, so that it is reached soon.
        case.settings.table_bytes = case.settings.table_bytes.map(|bytes| bytes / 16);
        let source = || Made { packets: 300_000, at: 0, per_second: 10_000, make: &make };
        let alone = case.alone(source());
        assert!(alone.report.evicted.flows > 0 && alone.snapshots() >= 5, "{:?}", alone.report.evicted);
        for analyzers in 1..=4 {
            let run = case.watch(source(), &plan(analyzers, 64 * analyzers));
            assert_eq!(alone.difference(&run), None, "{analyzers}");
        }
    }
}

/// A scan of one host, beside a flood that leaves it more room in some steps than in others.
fn one_scan(number: u64) -> Facts {
    let is_flooded = (number / 20_000).is_multiple_of(2);
    match number % 4 {
        0 => Facts {
            source: 0x0a00_0001,
            destination: 0x0b00_0000,
            source_port: 40_000,
            port: (number / 4 % 60_000) as u16 + 1,
            flags: Some(0x02),
        },
        _ if is_flooded => spoofed(number),
        _ => spoofed(number % 64),
    }
}

/// A partition has room for dozens of failures by itself.
#[test]
fn a_scan_borrows_the_room_that_other_partitions_do_not_need() {
    let make = |number: u64| match number % 4 {
        0 => Facts {
            source: 0x0a00_0001,
            destination: 0x0b00_0000,
            source_port: 40_000,
            port: (number / 4 % 3_000) as u16 + 1,
            flags: Some(0x02),
        },
        other => spoofed(other + number / 4 % 16 * 4),
    };
    let mut found: Vec<Vec<_>> = Vec::new();
    for seed in [0, 1, u64::MAX] {
        let mut case = Case::scans_only();
        limit_memory(64 << 20, &plan(0, 64), &mut case.settings, None).expect("enough");
        case.settings.seed = seed;
        let run = case.alone(Made { packets: 4 * 3_200, at: 0, per_second: 80, make: &make });
        assert!(run.report.evicted.is_empty(), "{seed}: {:?}", run.report.evicted);
        found.push(run.scans().into_iter().map(|event| (event.scan, event.distinct)).collect());
    }
    assert!(found[0].iter().any(|(scan, distinct)| scan.kind() == "vertical" && *distinct == 3_000), "{found:?}");
    assert!(found.iter().all(|other| *other == found[0]), "the seed matters only where room was wanting: {found:?}");
}

/// What left its table and fails again may be known already.
#[test]
fn ports_of_a_scan_are_never_more_than_there_are() {
    const PORTS: u64 = 20_000;
    let mut case = Case::scans_only();
    limit_memory(64 << 20, &plan(0, 64), &mut case.settings, None).expect("enough");
    let make = |number: u64| Facts {
        source: 0x0a00_0001,
        destination: 0x0b00_0000,
        source_port: 40_000,
        port: (number % PORTS) as u16 + 1,
        flags: Some(0x02),
    };
    let run = case.alone(Made { packets: 10 * PORTS, at: 0, per_second: PORTS / 4, make: &make });
    assert!(run.report.evicted.failures > PORTS, "{:?}", run.report.evicted);
    let scans = run.scans();
    let [_, ended] = &scans[..] else { panic!("{scans:?}") };
    assert!(ended.scan.count() > 2 * PORTS, "{ended:?}");
    assert!((21..=PORTS).contains(&ended.distinct), "{ended:?}");
}

/// More probes of one host than its partition has room for, long before the first of them is late.
#[test]
fn a_scan_that_is_faster_than_a_limit_allows_for_is_found_at_once() {
    const RATE: u64 = 100_000;
    for (flags, within_s) in [(Some(0x02), 1), (None, 1)] {
        let mut case = Case::scans_only();
        limit_memory(64 << 20, &plan(0, 64), &mut case.settings, None).expect("enough");
        let port = |number: u64| (number % 60_000) as u16 + 1;
        let make = |number| {
            let (source, destination) = (0x0a00_0001, 0x0b00_0000);
            // UDP keys are new each time, as the ports of the source are.
            Facts { source, destination, source_port: 40_000 + (number / 60_000) as u16, port: port(number), flags }
        };
        let run = case.alone(Made { packets: 5 * RATE, at: 0, per_second: RATE, make: &make });
        let scans = run.scans();
        let first = scans.first().expect("it is found");
        assert_eq!(first.state, ScanState::Found);
        let after_s = (first.scan.time_ns() - START) / SECOND;
        assert!(after_s < within_s, "{flags:?}: found after {after_s} s");
        assert!(run.report.evicted.failures > 0, "{:?}", run.report.evicted);
    }
}

/// What is due is tidied when it is much. Nothing is lost by that where nothing has left its table.
#[test]
fn many_keys_that_are_due_at_once_are_all_judged() {
    const KEYS: u64 = 150_000;
    let make = |number: u64| {
        let (key, is_syn) = (number / 2, number.is_multiple_of(2));
        let source = 0x0a00_0001 + u32::from(is_syn);
        let flags = is_syn.then_some(0x02);
        Facts { source, destination: 0x0b00_0000 + key as u32, source_port: 4000, port: 80, flags }
    };
    // All in two seconds; and in ten minutes, when one is due after the other.
    for seconds in [2, 600] {
        let source = Made { packets: 2 * KEYS, at: 0, per_second: 2 * KEYS / seconds, make: &make };
        let run = Case::scans_only().alone(source);
        assert_eq!((run.report.flows, run.report.unanswered), (2 * KEYS, KEYS), "{seconds}");
        let ended = run.scans().into_iter().filter(|event| event.state != ScanState::Found);
        let mut counts: Vec<_> = ended.map(|event| (event.probe, event.scan.count())).collect();
        counts.sort_unstable();
        assert_eq!(counts, [(None, KEYS), (Some(Probe::Udp), KEYS)], "{seconds}");
    }
}
