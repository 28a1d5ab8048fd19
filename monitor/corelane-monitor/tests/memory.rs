//! All memory of a run stays under its limit, and what is found under a limit is the same everywhere.
//!
//! The process's most memory counts, so this is a program of its own.

use corelane_monitor::{
    Continuous, Found, Inspection, Job, Observer, Plan, Progress, Report, Settings, Source, limit_memory,
};
use corelane_net::capture::{LinkType, Reader, Record};
use corelane_net::synth::{self, Config};
use std::convert::Infallible;
use std::fs;
use std::io::Write;
use std::sync::Mutex;

#[allow(dead_code, reason = "not all are needed everywhere")]
#[path = "support/runs.rs"]
mod runs;
use runs::{inspect, run};

/// A source that probes all ports of hosts, and SYNs of sources that do not exist to one host, by turns.
struct Flood {
    packets: u64,
    at: u64,
}

const PORTS: u64 = 65_536;

impl Source for Flood {
    type Error = Infallible;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let count = (self.packets - self.at).min(max as u64);
        let mut frame = [0; 40];
        frame[0] = 0x45;
        frame[2..4].copy_from_slice(&40_u16.to_be_bytes());
        frame[9] = 6;
        frame[32..34].copy_from_slice(&[0x50, 0x02]);
        for number in self.at..self.at + count {
            let sweep = number.is_multiple_of(2);
            let step = number / 2;
            let spoofed = (step as u32).wrapping_mul(0x9e37_79b1);
            let (source, destination, port) = if sweep {
                (0x0a00_0001, 0xc0a8_0000 + (step / PORTS) as u32, (step % PORTS) as u16)
            } else {
                (spoofed, 0xc633_6401, 80)
            };
            frame[12..16].copy_from_slice(&source.to_be_bytes());
            frame[16..20].copy_from_slice(&destination.to_be_bytes());
            frame[20..22].copy_from_slice(&(40_000 + (step % 20_000) as u16).to_be_bytes());
            frame[22..24].copy_from_slice(&port.to_be_bytes());
            let time_ns = 1_700_000_000_000_000_000 + number * 1000;
            sink(Record { time_ns, wire_len: 54, link: LinkType::RAW, data: &frame });
        }
        self.at += count;
        Ok(count as usize)
    }
}

/// Clients whose requests have 14 KB, which are three times as long in an event, and get no answer. All time out
/// together, at a packet that comes much later.
struct Requests {
    connections: u32,
    at: u32,
}

impl Requests {
    fn request() -> Vec<u8> {
        let text = "\u{85}".repeat(7000);
        format!("GET /{text} HTTP/1.1\r\nHost: a.example\r\n\r\n").into_bytes()
    }

    /// A segment between the client of this number and a server.
    fn segment(number: u32, is_answer: bool, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
        let (mut ends, mut ports) = ([0x0a00_0001 + number * 7, 0xc000_0207], [40_000_u16, 80]);
        if is_answer {
            (ends, ports) = ([ends[1], ends[0]], [ports[1], ports[0]]);
        }
        let mut frame =
            [&[0x45, 0][..], &(40 + payload.len() as u16).to_be_bytes(), &[0, 0, 0, 0, 64, 6, 0, 0]].concat();
        ends.iter().for_each(|end| frame.extend(end.to_be_bytes()));
        ports.iter().for_each(|port| frame.extend(port.to_be_bytes()));
        let acknowledged: u32 = if flags == 2 { 0 } else { 1001 };
        [sequence, acknowledged].iter().for_each(|number| frame.extend(number.to_be_bytes()));
        frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        frame.extend(payload);
        frame
    }
}

impl Source for Requests {
    type Error = Infallible;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let request = Requests::request();
        let begin = 1_700_000_000_000_000_000;
        let mut put =
            |time_ns, data: &[u8]| sink(Record { time_ns, wire_len: data.len() as u32, link: LinkType::RAW, data });
        let mut count = 0;
        while count + 3 <= max && self.at < self.connections {
            let (number, time_ns) = (self.at, begin + u64::from(self.at) * 100_000);
            put(time_ns, &Requests::segment(number, false, 1000, 2, &[]));
            put(time_ns, &Requests::segment(number, true, 1000, 0x12, &[]));
            put(time_ns, &Requests::segment(number, false, 1001, 0x18, &request));
            (self.at, count) = (self.at + 1, count + 3);
        }
        if count == 0 && self.at == self.connections {
            put(begin + 900_000_000_000, &Requests::segment(u32::MAX / 8, false, 1000, 2, &[]));
            (self.at, count) = (self.at + 1, 1);
        }
        Ok(count)
    }
}

/// The most memory that this process has had, in bytes.
fn most() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// One at a time: the memory is the process's.
static ALONE: Mutex<()> = Mutex::new(());

/// In this order, as the most of the first is less.
#[test]
fn runs_stay_under_the_limit() {
    let _alone = ALONE.lock();
    a_sweep_and_a_flood();
    conversations_that_end_together();
}

fn a_sweep_and_a_flood() {
    // With 1000 hosts it takes minutes: 131 million packets.
    let hosts = std::env::var("CORELANE_SWEEP_HOSTS").ok().and_then(|hosts| hosts.parse::<u64>().ok()).unwrap_or(30);
    let packets = 2 * PORTS * hosts;
    for (limit, inspecting) in [(192 << 20, true), (128 << 20, false)] {
        let plan = Plan { analyzers: 2, ..Plan::default() };
        let (mut settings, mut inspection) = (Settings::default(), Inspection::default());
        let inspection = inspecting.then_some(&mut inspection);
        let source = Flood { packets, at: 0 };
        let report = match inspection {
            None => {
                limit_memory(limit, &plan, &mut settings, None).expect("enough");
                run([source], &settings, &plan, &Progress::new(), |_, never| match never {}).expect("a plan")
            }
            Some(inspection) => {
                limit_memory(limit, &plan, &mut settings, Some(inspection)).expect("enough");
                let progress = Progress::new();
                let ran = inspect([source], &settings, inspection, &plan, &progress, |_, never| match never {}, |_| {});
                ran.expect("a plan").0
            }
        };
        assert_eq!(report.packets, packets);
        assert!(report.refused.attempts > packets / 4, "{:?}", report.refused);
        assert!(!report.alerts.is_empty(), "a sweep is seen all the same");
        let Some(most) = most() else {
            let _ = writeln!(std::io::stderr(), "SKIPPED: the system does not say how much memory was used");
            return;
        };
        let _ = writeln!(std::io::stderr(), "limit {} MiB, used {} MiB", limit >> 20, most >> 20);
        assert!(most <= 192 << 20, "{most} of {limit}");
    }
}

/// All that conversations have kept becomes lines at one mark, or at the end.
fn conversations_that_end_together() {
    let limit = 512 << 20;
    for (analyzers, in_steps) in [(0, true), (2, false), (2, true)] {
        let plan = Plan { analyzers, ..Plan::default() };
        let (mut settings, mut inspection) = (Settings::default(), Inspection::default());
        limit_memory(limit, &plan, &mut settings, Some(&mut inspection)).expect("enough");
        let continuous = in_steps.then(Continuous::default);
        let (progress, damage) = (Progress::new(), |_, never: Infallible| match never {});
        let (mut lines, mut bytes) = (0, 0);
        let found = &mut |found: Found<'_>| {
            if let Found::Lines(text) = found {
                lines += text.iter().filter(|&&byte| byte == b'\n').count();
                bytes += text.len();
            }
        };
        let job = Job { settings, plan, inspection, continuous };
        let observer = Observer { progress: &progress, damage: &damage, found };
        job.run([Requests { connections: 12_000, at: 0 }], observer).expect("a plan");
        assert!(lines >= 24_000 && bytes > 400 << 20, "{lines} lines of {bytes} bytes");
        let Some(most) = most() else { return };
        let _ = writeln!(std::io::stderr(), "limit {} MiB, used {} MiB", limit >> 20, most >> 20);
        assert!(most <= limit, "{most} of {limit}, {analyzers} analyzers, {in_steps}");
    }
}

#[test]
fn what_a_limit_leaves_does_not_depend_on_the_plan() {
    let divided = |limit, analyzers, capacity, inspecting: bool| {
        let plan = Plan { analyzers, capacity, ..Plan::default() };
        let (mut settings, mut inspection) = (Settings::default(), Inspection::default());
        let divided = limit_memory(limit, &plan, &mut settings, inspecting.then_some(&mut inspection));
        divided.map(|()| (settings, inspection))
    };
    for (limit, inspecting) in [(64 << 20, false), (192 << 20, true), (1 << 30, false), (1 << 30, true)] {
        let alone = divided(limit, 0, Plan::default().capacity, inspecting).expect("enough");
        assert!(alone.0.table_bytes.is_some_and(|bytes| bytes > limit / 16), "{alone:?}");
        for (analyzers, capacity) in
            [(1, Plan::default().capacity), (3, 2), (4, Plan::default().capacity), (7, 2048), (30, 512)]
        {
            let spread = divided(limit, analyzers, capacity, inspecting);
            assert_eq!(spread.as_ref(), Ok(&alone), "{limit}, {analyzers} analyzers, {capacity} items");
        }
        // Queues that are too large for their part are refused, with a limit that is enough for just them.
        for (analyzers, capacity) in [(255, 1 << 20), (1, 1 << 24)] {
            let least = divided(limit, analyzers, capacity, inspecting).expect_err("too little");
            assert!(least > limit && divided(least, analyzers, capacity, inspecting).is_ok(), "{least}");
            assert_eq!(divided(least - 1, analyzers, capacity, inspecting), Err(least));
        }
        assert!(divided(u64::MAX, usize::MAX, usize::MAX, inspecting).is_err());
    }
}

#[test]
fn what_is_refused_is_the_same_everywhere() {
    let _alone = ALONE.lock();
    let capture =
        synth::capture(Config { packets: 100_000, hosts: 4000, ..Config::default() }).expect("a valid configuration");
    let settings = Settings { table_bytes: Some(3 << 20), ..Settings::default() };
    let found = |plan: &Plan| {
        let reader = Reader::from_bytes(capture.clone()).expect("a capture");
        let report = run([reader], &settings, plan, &Progress::new(), |_, error| panic!("{error}")).expect("a plan");
        Report { analyzer_packets: Vec::new(), dispatcher_packets: 0, ..report }
    };
    let alone = found(&Plan { analyzers: 0, ..Plan::default() });
    assert!(alone.refused.flow_packets > 1000 && alone.refused.attempts > 100, "{:?}", alone.refused);
    // A flow that is not kept is no probe, and its packets are counted once, whichever thread looks at them.
    assert_eq!(alone.probe_scans, []);
    let reader = Reader::from_bytes(capture.clone()).expect("a capture");
    let without = Settings { probes: false, ..settings.clone() };
    let without = run([reader], &without, &Plan::default(), &Progress::new(), |_, error| panic!("{error}"));
    assert_eq!(without.expect("a plan").refused.flow_packets, alone.refused.flow_packets);
    for (analyzers, restless) in [(1, false), (3, false), (2, true), (7, true)] {
        assert_eq!(found(&Plan { analyzers, restless, capacity: 64, ..Plan::default() }), alone, "{analyzers}");
    }
    // With room for all nothing is refused, and the document has no word of it.
    let all = run(
        [Reader::from_bytes(capture.clone()).expect("a capture")],
        &Settings { table_bytes: Some(4 << 30), ..Settings::default() },
        &Plan::default(),
        &Progress::new(),
        |_, _| {},
    );
    let mut json = Vec::new();
    all.expect("a plan").write_json(&mut json).expect("memory");
    assert!(!String::from_utf8(json).expect("UTF-8").contains("refused"));
}
