//! Every ring gives the answer of one thread, with any number of SubAnalyzers, and that answer is the known one.

use super::layers::{Layers, each_ring_of_layers};
use super::portscans::{Answer, Portscans, Scan, each_ring_of_portscans};
use super::{Application, EachRing, Pointers, Trace, alone, checked, parallel};
use crate::contender::{Ends, Kind, Pair, Unable};
use crate::contenders::{FastForward, Lane, McRingBuffer};
use crate::item::{Block, Item};
use crate::measure::Failure;
use crate::rig::Stop;
use crate::setting::Setting;
use corelane_net::capture::{Options, Reader};
use corelane_net::decode::mapped;
use corelane_net::synth::{Alert, Config, Conversations, Generator, Scanned, capture};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

#[path = "../../../corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;

/// No wait reaches this bound, however slow the machine is.
const SETTING: Setting =
    Setting { cpus: [None, None], bound: Duration::from_secs(600), count: 1, counting: false, quick: true };

fn trace(capture: Vec<u8>) -> Trace {
    Trace::read(Reader::from_bytes(capture).expect("a capture"), |error| panic!("{error}"))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => mapped(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn scanned(config: &Config) -> BTreeSet<Scan> {
    let mut generator = Generator::new(config.clone()).expect("a valid configuration");
    while generator.next_frame().is_some() {}
    let scan = |Alert { source, scanned, count, .. }| match scanned {
        Scanned::Horizontal { port } => Scan::Horizontal { source: number(source), port, count },
        Scanned::Vertical { destination } => {
            Scan::Vertical { source: number(source), destination: number(destination), count }
        }
    };
    generator.truth().into_iter().map(scan).collect()
}

/// Runs every ring, and compares.
struct Check<A: Application> {
    app: Arc<A>,
    expected: A::Answer,
    rings: usize,
}

impl<A: Application> EachRing<A> for Check<A> {
    fn ring<P: Pair<A::Packet>, R: Pair<A::Report>>(&mut self) {
        for subs in [1, 2, 4] {
            if let Err(failure) = checked::<A, P, R>(&self.app, &SETTING, subs, 2048, &self.expected) {
                panic!("{}, {subs} SubAnalyzers: {failure}", P::name());
            }
        }
        self.rings += 1;
    }
}

fn portscans(config: Config, counts: bool) -> (Arc<Portscans>, Answer) {
    let app = Arc::new(Portscans { trace: Arc::new(trace(capture(config).expect("a valid configuration"))), counts });
    let (answer, _) = alone(&app, &SETTING).expect("an answer");
    (app, answer)
}

#[test]
fn every_ring_finds_the_planted_scans() {
    // The generator's truth is by the monitor's rule, by which an answer may come too late. With this seed none does.
    let config =
        Config { packets: 8_000, hosts: 300, seed: 2, vertical_scans: 3, horizontal_scans: 3, ..Config::default() };
    let truth = scanned(&config);
    assert_eq!(truth.len(), 6, "{truth:?}");
    let (app, expected) = portscans(config, true);
    assert_eq!(expected.scans, truth);
    assert_eq!((expected.sums.packets, app.trace.len()), (8_000, 8_000));
    assert_eq!(expected.reported as u64, expected.sums.failed);
    let bytes: u64 = app.trace.records().map(|record| u64::from(record.wire_len)).sum();
    assert_eq!(expected.sums.bytes, bytes);
    assert_eq!(expected.hosts.values().map(|host| host.bytes).sum::<u64>(), bytes);
    assert_eq!(expected.hosts.values().map(|host| host.begun).sum::<u64>(), expected.sums.flows);
    assert!(expected.hosts.values().map(|host| host.released).sum::<u64>() > 100);
    let mut check = Check { app, expected, rings: 0 };
    each_ring_of_portscans(&mut check);
    assert_eq!(check.rings, 17);
}

#[test]
fn every_ring_looks_into_all_conversations() {
    let made = Conversations { seed: 3, conversations: 400, trouble: 5, spoofed: 0 };
    let app = Arc::new(Layers { trace: trace(made.capture()) });
    let (expected, _) = alone(&app, &SETTING).expect("an answer");
    let [_, conversations, identified, http, hello, answer, dns, other] = expected;
    assert_eq!((conversations, other), (400, 0));
    assert!(identified >= 390 && http >= 190 && hello >= 90 && answer >= 90 && dns >= 190, "{expected:?}");
    let mut check = Check { app, expected, rings: 0 };
    each_ring_of_layers(&mut check);
    assert_eq!(check.rings, 17);
}

/// A ring that loses its 10th element.
struct Loses<P>(P);

impl<P: Pair<T>, T: Item> Pair<T> for Loses<P> {
    const KIND: Kind = P::KIND;
    type Tx = (P::Tx, usize);
    type Rx = P::Rx;

    fn name() -> String {
        format!("{} that loses", P::name())
    }

    fn pair(capacity: usize) -> Result<Ends<Self, T>, Unable> {
        P::pair(capacity).map(|(tx, rx)| ((tx, 0), rx))
    }

    fn try_push((tx, pushed): &mut Self::Tx, item: T) -> bool {
        *pushed += 1;
        *pushed == 10 || P::try_push(tx, item)
    }

    fn try_pop(rx: &mut Self::Rx) -> Option<T> {
        P::try_pop(rx)
    }
}

#[test]
fn a_lost_packet_or_report_is_a_wrong_answer() {
    for counts in [false, true] {
        let (app, expected) = portscans(Config { packets: 3_000, ..Config::default() }, counts);
        let packet = checked::<_, Loses<Lane>, Lane>(&app, &SETTING, 2, 64, &expected);
        let report = checked::<_, Lane, Loses<Lane>>(&app, &SETTING, 2, 64, &expected);
        for failure in [packet, report] {
            assert!(matches!(failure, Err(Failure::Stop(Stop::WrongAnswer))), "{failure:?}");
        }
    }
    let made = Conversations { seed: 3, conversations: 50, trouble: 0, spoofed: 0 };
    let app = Arc::new(Layers { trace: trace(made.capture()) });
    let (expected, _) = alone(&app, &SETTING).expect("an answer");
    let report = checked::<_, Lane, Loses<Lane>>(&app, &SETTING, 1, 64, &expected);
    assert!(matches!(report, Err(Failure::Stop(Stop::WrongAnswer))), "{report:?}");
}

#[test]
fn a_ring_that_keeps_its_last_elements_hangs() {
    /// A ring whose batch is larger than the bench knows.
    struct Keeps;
    impl Pair<Block<7>> for Keeps {
        const KIND: Kind = Kind::Paper;
        type Tx = <McRingBuffer<50> as Pair<Block<7>>>::Tx;
        type Rx = <McRingBuffer<50> as Pair<Block<7>>>::Rx;

        fn name() -> String {
            "a ring that keeps".to_owned()
        }

        fn pair(capacity: usize) -> Result<Ends<Self, Block<7>>, Unable> {
            <McRingBuffer<50> as Pair<Block<7>>>::pair(capacity)
        }

        fn try_push(tx: &mut Self::Tx, item: Block<7>) -> bool {
            <McRingBuffer<50> as Pair<Block<7>>>::try_push(tx, item)
        }

        fn try_pop(rx: &mut Self::Rx) -> Option<Block<7>> {
            <McRingBuffer<50> as Pair<Block<7>>>::try_pop(rx)
        }
    }
    let (app, _) = portscans(Config { packets: 1_010, ..Config::default() }, false);
    let setting = Setting { bound: Duration::from_millis(200), ..SETTING };
    let hangs = parallel::<_, Keeps, Lane>(&app, &setting, 1, 2000);
    assert!(matches!(hangs, Err(Failure::Stop(Stop::Hangs(_)))), "{hangs:?}");
}

#[test]
fn pointers_lead_to_the_elements() {
    type Ring = Pointers<FastForward>;
    let (mut tx, mut rx) = <Ring as Pair<Block<3>>>::pair(4).expect("a ring");
    let block = |number| Block([number, number + 1, number + 2]);
    for lap in 0..10 {
        for number in 4 * lap..4 * lap + 4 {
            assert!(Ring::try_push(&mut tx, block(number)));
        }
        assert!(!Ring::try_push(&mut tx, block(99)));
        for number in 4 * lap..4 * lap + 4 {
            assert_eq!(Ring::try_pop(&mut rx), Some(block(number)));
        }
        assert_eq!(Ring::try_pop(&mut rx), None);
    }
}

/// Once only, before the monitor's own application of the papers goes: the same results over every capture.
#[test]
fn the_monitor_finds_the_same_by_the_papers_rule() {
    use corelane_monitor::{Counting, Progress, Rule, Settings, run_single};
    use std::num::NonZeroU64;
    let Some(folder) = captures_folder::captures() else { return };
    let mut files = Vec::new();
    for folder in [folder.clone(), folder.join("wire"), folder.join("analyst")] {
        let mut found: Vec<_> =
            std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        found.retain(|path| path.to_string_lossy().contains(".pcap"));
        found.sort();
        files.extend(found);
    }
    let mut compared = 0;
    for file in files {
        let open = || Reader::open(&file, &Options::default());
        let Ok(reader) = open() else { continue };
        let counting = Some(Counting { every: NonZeroU64::new(1 << 14).unwrap(), top: usize::MAX });
        let settings = Settings { rule: Rule::Paper, probes: false, top: 0, counting, ..Settings::default() };
        let report = run_single([reader], &settings, &Progress::new(), |_, _| {});
        let app = Arc::new(Portscans { trace: Arc::new(Trace::read(open().expect("again"), |_| {})), counts: true });
        let (answer, _) = alone(&app, &SETTING).expect("an answer");
        let name = file.display();
        let alerts: BTreeSet<_> = report
            .alerts
            .iter()
            .map(|alert| match *alert {
                corelane_monitor::Alert::Horizontal { source, port, count, .. } => {
                    Scan::Horizontal { source: number(source), port, count }
                }
                corelane_monitor::Alert::Vertical { source, destination, count, .. } => {
                    Scan::Vertical { source: number(source), destination: number(destination), count }
                }
            })
            .collect();
        assert_eq!(answer.scans, alerts, "{name}");
        assert_eq!(app.trace.len() as u64, report.packets, "{name}");
        assert_eq!((answer.sums.failed, answer.sums.flows), (report.failed_attempts, report.flows), "{name}");
        let mut sources: Vec<_> =
            report.sources.unwrap().iter().map(|s| (number(s.source), s.connections, s.bytes)).collect();
        sources.sort_unstable();
        let hosts: Vec<_> = answer
            .hosts
            .iter()
            .filter(|(_, host)| host.begun + host.bytes > 0)
            .map(|(&address, host)| (address, host.begun, host.bytes))
            .collect();
        assert_eq!(hosts, sources, "{name}");
        for subs in [1, 2, 4] {
            checked::<_, Lane, Lane>(&app, &SETTING, subs, 2048, &answer).unwrap_or_else(|f| panic!("{name}: {f}"));
            checked::<_, McRingBuffer<50>, McRingBuffer<1>>(&app, &SETTING, subs, 2048, &answer)
                .unwrap_or_else(|f| panic!("{name}: {f}"));
        }
        let text: Vec<_> = answer
            .scans
            .iter()
            .map(|scan| match *scan {
                Scan::Horizontal { count, .. } => format!("h{count}"),
                Scan::Vertical { count, .. } => format!("v{count}"),
            })
            .collect();
        let released: u64 = answer.hosts.values().map(|host| host.released).sum();
        println!(
            "    (\"{}\", [{}, {}, {}, {}, {released}], \"{}\"),",
            file.strip_prefix(&folder).unwrap().display(),
            report.packets,
            answer.sums.packets,
            answer.sums.flows,
            answer.sums.failed,
            text.join(" ")
        );
        compared += 1;
    }
    println!("{compared} captures");
    for seed in 1..5 {
        let config = Config { packets: 50_000, seed, ..Config::default() };
        let bytes = capture(config).unwrap();
        let settings = Settings { rule: Rule::Paper, probes: false, top: 0, ..Settings::default() };
        let report = run_single([Reader::from_bytes(bytes.clone()).unwrap()], &settings, &Progress::new(), |_, _| {});
        let app = Arc::new(Portscans { trace: Arc::new(trace(bytes)), counts: false });
        let (answer, _) = alone(&app, &SETTING).unwrap();
        assert_eq!((answer.scans.len(), answer.sums.failed), (report.alerts.len(), report.failed_attempts));
    }
}
