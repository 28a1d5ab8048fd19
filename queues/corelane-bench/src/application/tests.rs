//! Every ring gives the answer of one thread, with any number of SubAnalyzers, and that answer is the known one.

use super::layers::Layers;
use super::portscans::{Answer, Portscans, Scan};
use super::{Application, Carrier, Ring, Trace, alone, checked, parallel, pointers};
use crate::contenders::{Tx, Unable, fast_forward, mc_ring};
use crate::item::{Block, Item};
use crate::measure::Failure;
use crate::rig::Stop;
use crate::setting::Setting;
use corelane_net::capture::{Options, Reader};
use corelane_net::decode::mapped;
use corelane_net::synth::{Alert, Config, Conversations, Generator, Scanned, capture};
use corelane_papers::mcring_timer::{self, Signal};
use corelane_papers::{Dequeue, Enqueue};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[path = "../../../../monitor/corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;

/// No wait reaches this bound, however slow the machine is.
const SETTING: Setting =
    Setting { cpus: [None, None], bound: Duration::from_secs(600), count: 1, counting: false, quick: true };

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
fn every_ring<A: Application>(app: &Arc<A>, expected: &A::Answer) {
    // Threads that poll take the CPUs from those of another ring.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock();
    let rings = A::rings();
    assert_eq!(rings.len(), 17);
    for (ring, subs) in rings.iter().flat_map(|ring| [1, 2, 4].map(|subs| (ring, subs))) {
        if let Err(failure) = checked(app, ring, &SETTING, subs, 2048, expected) {
            panic!("{}, {subs} SubAnalyzers: {failure}", ring.name);
        }
    }
}

/// The ring of this name.
fn ring<A: Application>(name: &str) -> Ring<A::Packet, A::Report> {
    A::rings().into_iter().find(|ring| ring.name == name).expect("a ring")
}

fn portscans(config: Config, counts: bool) -> (Arc<Portscans>, Answer) {
    let app = Arc::new(Portscans {
        trace: Arc::new(Trace::generated(capture(config).expect("a valid configuration"))),
        counts,
    });
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
    every_ring(&app, &expected);
}

#[test]
fn every_ring_looks_into_all_conversations() {
    let made = Conversations { seed: 3, conversations: 100, trouble: 5, spoofed: 0 };
    let app = Arc::new(Layers { trace: Trace::generated(made.capture()) });
    let (expected, _) = alone(&app, &SETTING).expect("an answer");
    let [_, conversations, identified, http, hello, answer, dns, other] = expected;
    assert_eq!((conversations, other), (100, 0));
    assert!(identified >= 90 && http >= 40 && hello >= 15 && answer >= 15 && dns >= 40, "{expected:?}");
    every_ring(&app, &expected);
}

/// A ring that loses its 10th element.
fn loses<T: Item>(ring: &Carrier<T>) -> Carrier<T> {
    struct Loses<T>(Box<dyn Tx<T>>, usize);
    impl<T: Item> Tx<T> for Loses<T> {
        fn try_push(&mut self, item: T) -> bool {
            self.1 += 1;
            self.1 == 10 || self.0.try_push(item)
        }
    }
    let make = ring.make.clone();
    let make = move |setting: &_, capacity| {
        let (tx, rx) = make(setting, capacity)?;
        Ok::<crate::measure::Boxed<T>, _>((Box::new(Loses(tx, 0)), rx))
    };
    Carrier { make: Rc::new(make), ..ring.clone() }
}

#[test]
fn a_lost_packet_or_report_is_a_wrong_answer() {
    for counts in [false, true] {
        let (app, expected) = portscans(Config { packets: 3_000, ..Config::default() }, counts);
        let lane = ring::<Portscans>("lane");
        let packet = Ring { packets: loses(&lane.packets), ..lane.clone() };
        let report = Ring { reports: loses(&lane.reports), ..lane };
        for ring in [packet, report] {
            let failure = checked(&app, &ring, &SETTING, 2, 64, &expected);
            assert!(matches!(failure, Err(Failure::Stop(Stop::WrongAnswer))), "{failure:?}");
        }
    }
    let made = Conversations { seed: 3, conversations: 50, trouble: 0, spoofed: 0 };
    let app = Arc::new(Layers { trace: Trace::generated(made.capture()) });
    let (expected, _) = alone(&app, &SETTING).expect("an answer");
    let lane = ring::<Layers>("lane");
    let report = checked(&app, &Ring { reports: loses(&lane.reports), ..lane }, &SETTING, 1, 64, &expected);
    assert!(matches!(report, Err(Failure::Stop(Stop::WrongAnswer))), "{report:?}");
}

#[test]
fn a_ring_that_keeps_its_last_elements_hangs() {
    // Its batch is larger than the application knows.
    let packets = Carrier { grain: 1, ..mc_ring(50).into() };
    let (app, _) = portscans(Config { packets: 1_010, ..Config::default() }, false);
    let setting = Setting { bound: Duration::from_millis(200), ..SETTING };
    let hangs = parallel(&app, &Ring { packets, ..ring::<Portscans>("lane") }, &setting, 1, 2000);
    assert!(matches!(hangs, Err(Failure::Stop(Stop::Hangs(_)))), "{hangs:?}");
}

/// A ring whose timer asks for a flush before each insertion, as it does where threads run slower than its period.
#[test]
fn a_ring_whose_timer_never_rests_ends() {
    struct Restless<T>(mcring_timer::Producer<T>, Signal);
    impl<T: Item> Tx<T> for Restless<T> {
        fn try_push(&mut self, item: T) -> bool {
            self.1.raise();
            self.0.enqueue(item).is_ok()
        }
        fn flush(&mut self) -> bool {
            self.0.flush()
        }
    }
    fn restless<T: Item>(ring: &Carrier<T>) -> Carrier<T> {
        let make = |_: &Setting, capacity| {
            let signal = Signal::new();
            let (tx, rx) = mcring_timer::channel(capacity, 50, &signal).map_err(Unable::because)?;
            let pop = |rx: &mut mcring_timer::Consumer<T>| rx.dequeue();
            Ok::<crate::measure::Boxed<T>, _>((Box::new(Restless(tx, signal)), Box::new((rx, pop))))
        };
        Carrier { make: Rc::new(make), ..ring.clone() }
    }
    let (app, expected) = portscans(Config { packets: 1_000, ..Config::default() }, false);
    let sane = ring::<Portscans>("MCRingBuffer(sane), batch 50");
    let ring = Ring { packets: restless(&sane.packets), reports: restless(&sane.reports), ..sane };
    let setting = Setting { bound: Duration::from_secs(5), ..SETTING };
    let outcome = checked(&app, &ring, &setting, 2, 2000, &expected);
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn pointers_lead_to_the_elements() {
    let (mut tx, mut rx) = (pointers::<3>(fast_forward().into()).make)(&SETTING, 4).expect("a ring");
    let block = |number| Block([number, number + 1, number + 2]);
    for lap in 0..10 {
        for number in 4 * lap..4 * lap + 4 {
            assert!(tx.try_push(block(number)));
        }
        assert!(!tx.try_push(block(99)));
        for number in 4 * lap..4 * lap + 4 {
            assert_eq!(rx.try_pop(), Some(block(number)));
        }
        assert_eq!(rx.try_pop(), None);
    }
}

/// A capture; its records, packets of TCP and UDP, flows, failed attempts, released connections; how many failed
/// attempts its scans have, horizontal ones first.
type Known = (&'static str, [u64; 5], &'static str);

/// `corelane monitor --rule paper` found the same scans, failed attempts and flows, as long as it had that option, and
/// the same connections and bytes of each source.
const KNOWN: &[Known] = &[
    ("control-backscatter.pcap", [4771, 4743, 933, 0, 374], ""),
    ("control-p2p-gnutella.pcap", [1343, 1343, 243, 79, 103], "h79"),
    ("dns.pcap", [464, 464, 219, 0, 0], ""),
    ("file-cut-http.pcap", [25, 25, 4, 0, 2], ""),
    ("flags-matrix.pcap", [7938, 7938, 3969, 220, 3713], "v220"),
    ("http-1000-requests-gap.pcap.gz", [4102, 4102, 1, 0, 1], ""),
    ("http-mixed.pcap", [4631, 4631, 136, 0, 13], ""),
    ("ip-fragments.pcap", [3000, 1396, 4, 0, 0], ""),
    ("ipv6-http.pcap", [81, 81, 4, 0, 0], ""),
    ("malformed-fuzz-be.pcap", [691, 572, 244, 6, 2], ""),
    ("pcapng-multisection-be.pcapng", [8, 8, 3, 0, 0], ""),
    ("scan-connect-retries.pcap", [9924, 9924, 2012, 995, 2005], "v995"),
    ("scan-horizontal-445-vlan.pcap", [21, 21, 9, 9, 0], ""),
    ("scan-horizontal-multiport-icmp.pcap", [16, 10, 10, 10, 0], ""),
    ("scan-masscan-udp.pcap", [1001, 1001, 1001, 0, 0], ""),
    ("scan-network-sweep.pcap", [47423, 42890, 27154, 5218, 13828], "h231 v997 v997 v999 v999 v998"),
    ("scan-syn-vertical.pcap", [2011, 2011, 1994, 997, 5], "v997"),
    ("scan-xmas.pcap", [2000, 2000, 1000, 0, 1000], ""),
    ("semantics-both-scans.pcap", [64, 63, 63, 63, 0], "h21 v21 v21"),
    ("semantics-cut-header.pcap", [2, 0, 0, 0, 0], ""),
    ("semantics-cut-options.pcap", [2, 2, 2, 2, 0], ""),
    ("semantics-deadline-alert.pcap", [26, 25, 25, 25, 0], "v25"),
    ("semantics-deadline.pcap", [9, 8, 4, 2, 2], ""),
    ("semantics-end-of-capture.pcap", [23, 21, 21, 21, 0], "v21"),
    ("semantics-flags.pcap", [11, 10, 7, 3, 5], ""),
    ("semantics-headers.pcap", [6, 3, 3, 3, 0], ""),
    ("semantics-own-clock.pcap", [5, 5, 3, 0, 0], ""),
    ("semantics-retransmit.pcap", [11, 10, 3, 0, 1], ""),
    ("tls-73-ciphers.pcap", [1095, 1095, 73, 0, 73], ""),
    ("vlan-mpls.pcap", [47, 47, 3, 1, 3], ""),
];

#[test]
fn the_known_captures_give_the_known_answers() {
    let Some(folder) = captures_folder::captures() else { return };
    for &(file, [records, packets, flows, failed, released], scans) in KNOWN {
        let reader = Reader::open(&folder.join(file), &Options::default()).expect("a capture");
        let app = Arc::new(Portscans { trace: Arc::new(Trace::read(reader, |_| {})), counts: true });
        let (answer, _) = alone(&app, &SETTING).expect("an answer");
        let found = answer.scans.iter().map(|scan| match scan {
            Scan::Horizontal { count, .. } => format!("h{count}"),
            Scan::Vertical { count, .. } => format!("v{count}"),
        });
        let hosts = answer.hosts.values();
        assert_eq!(found.collect::<Vec<_>>().join(" "), scans, "{file}");
        assert_eq!(
            [app.trace.len() as u64, answer.sums.packets, answer.sums.flows],
            [records, packets, flows],
            "{file}"
        );
        assert_eq!([answer.sums.failed, answer.reported as u64], [failed, failed], "{file}");
        assert_eq!(hosts.clone().map(|host| host.begun).sum::<u64>(), flows, "{file}");
        assert_eq!(hosts.clone().map(|host| host.released).sum::<u64>(), released, "{file}");
        assert_eq!(hosts.map(|host| host.bytes).sum::<u64>(), answer.sums.bytes, "{file}");
        for subs in [1, 2, 4] {
            for name in ["MCRingBuffer, batch 50", "lane"] {
                let outcome = checked(&app, &ring::<Portscans>(name), &SETTING, subs, 2000, &answer);
                assert!(outcome.is_ok(), "{file}, {name}, {subs} SubAnalyzers: {outcome:?}");
            }
        }
    }
}
