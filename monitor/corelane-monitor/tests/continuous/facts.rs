//! Facts of the time between two snapshots: each has what happened then, and all together are those of the whole.

use crate::captures_folder::captures;
use crate::choices::Choices;
use crate::packets::{ACK, FIN, Packet, SECOND, START, SYN, tcp, udp};
use crate::runs::inspect;
use crate::support::{Act, Case, News, Paced, Watched, plan};
use corelane_monitor::eve::Events;
use corelane_monitor::facts::{Facts, Host, Talked};
use corelane_monitor::{Findings, Inspection, Plan, Progress, ScanEvent, ScanState, Settings};
use corelane_net::capture::{LinkType, Reader};
use corelane_net::conversation::{LEAST_BYTES, Limits, State};
use corelane_net::synth::{self, Config, Conversations};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;

/// Facts of each second.
fn case() -> Case {
    let inspection = Inspection { facts: true, events: Events::NONE, ..Inspection::default() };
    let mut case = Case { inspection, ..Case::default() };
    case.continuous.snapshot_s = 1;
    case
}

/// The facts of all snapshots, and at last those of the end.
fn steps(run: &Watched) -> Vec<&Facts> {
    let snapshots = run.news.iter().filter_map(|(_, news)| match news {
        News::Snapshot(snapshot) => Some(&snapshot.1),
        News::Scan(_) => None,
    });
    snapshots.chain([&run.findings]).map(|findings| findings.facts.as_deref().expect("facts")).collect()
}

/// A run whose output does not depend on the number of analyzers.
fn same(name: &str, case: &Case, capture: &[u8]) -> Watched {
    let reader = || Reader::from_bytes(capture.to_vec()).expect("a capture");
    let first = case.alone(reader());
    for analyzers in 1..=3 {
        let plan = plan(analyzers, [2, 64, 2048][analyzers % 3]);
        let other = case.watch(reader(), &plan);
        for (number, (own, other)) in steps(&other).iter().zip(steps(&first)).enumerate() {
            // The whole of it would be pages long.
            assert!(*own == other, "{name}, {plan:?}: the facts of step {number}");
        }
        assert_eq!(first.difference(&other), None, "{name}, {plan:?}");
    }
    first
}

/// What can be added up.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    /// Bytes that each host sent and received, its conversations, and those that it answered.
    hosts: BTreeMap<IpAddr, [u64; 4]>,
    /// Packets and bytes of conversations.
    talked: BTreeMap<String, [u64; 2]>,
    /// By kind, how often each was asked for, its answers, and that it is unknown.
    names: BTreeMap<(usize, String), [u64; 3]>,
    fingerprints: BTreeMap<String, u64>,
    evidence: BTreeMap<&'static str, u64>,
    /// Conversations with payload of no known protocol.
    unknown: u64,
    /// The bytes of each conversation of a host with itself.
    own: BTreeMap<String, u64>,
    packets: [u64; 3],
    begun: u64,
    /// The hosts and conversations that the lists have left out, and what else.
    left_out: [u64; 2],
}

fn sums<'a>(all: impl IntoIterator<Item = &'a Facts>) -> Sums {
    let mut sums = Sums::default();
    for facts in all {
        let others = facts.more_names.iter().sum::<u64>() + facts.more_fingerprints + facts.more_unknown;
        add(&mut sums.left_out, [facts.more_hosts + facts.more_conversations, others + facts.cut.len() as u64]);
        for (host, own) in &facts.hosts {
            let counts = [own.sent, own.received, u64::from(own.conversations), u64::from(own.served)];
            add(sums.hosts.entry(*host).or_default(), counts);
        }
        for talked in &facts.conversations {
            let counts = [talked.packets, talked.bytes].map(|counts| counts[0] + counts[1]);
            add(sums.talked.entry(named(talked)).or_default(), counts);
            if talked.ends[0].ip() == talked.ends[1].ip() {
                *sums.own.entry(named(talked)).or_default() += counts[1];
            }
        }
        for (kind, names) in facts.names.iter().enumerate() {
            for (name, own) in names {
                let counts = [own.count, own.answers, own.unknown];
                add(sums.names.entry((kind, name.to_string())).or_default(), counts);
            }
        }
        for (ja4, own) in &facts.fingerprints {
            *sums.fingerprints.entry(ja4.to_string()).or_default() += own.count;
        }
        for evidence in &facts.evidence {
            *sums.evidence.entry(evidence.text).or_default() += evidence.count;
        }
        sums.unknown += facts.unknown.iter().map(|(_, unknown)| unknown.conversations).sum::<u64>();
        for bin in facts.timeline.bins() {
            add(&mut sums.packets, bin.packets);
            sums.begun += bin.conversations.iter().map(|&count| u64::from(count)).sum::<u64>();
        }
    }
    sums
}

fn add<const N: usize>(sum: &mut [u64; N], counts: [u64; N]) {
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// The ends in their order, as it may be seen late which is the client.
fn named(talked: &Talked) -> String {
    let mut ends = talked.ends;
    ends.sort_unstable();
    format!("{ends:?}, TCP: {}, since {}", talked.is_tcp, talked.times.0)
}

/// Conversations, packets and bytes of all conversations.
fn over(findings: &Findings) -> [u64; 3] {
    let mut sum = [0; 3];
    let volumes = findings.protocols.values().chain(&findings.unidentified).chain(&findings.silent);
    volumes.for_each(|volume| add(&mut sum, [volume.flows, volume.packets, volume.bytes]));
    sum
}

/// All steps together have all conversations, packets and bytes of the run.
fn check(name: &str, case: &Case, capture: &[u8]) -> Watched {
    let run = same(name, case, capture);
    let total = sums(steps(&run));
    assert_eq!(total.left_out[0], 0, "{name}");
    let mut talked = [total.begun, 0, 0];
    total.talked.values().for_each(|&[packets, bytes]| add(&mut talked, [0, packets, bytes]));
    assert_eq!(talked, over(&run.findings), "{name}: conversations, packets, bytes");
    let hosts = |place: usize| total.hosts.values().map(|counts| counts[place]).sum::<u64>();
    // What a host has with itself counts once, and all else at both ends.
    let own = [total.own.values().sum::<u64>(), total.own.len() as u64];
    assert_eq!([hosts(0) + hosts(1) + own[0], hosts(2) + own[1]], [2 * talked[2], 2 * talked[0]], "{name}: by host");
    assert!(own[0] > 0 || hosts(0) == hosts(1), "{name}: sent and received");
    let packets = total.packets.iter().sum::<u64>();
    let report = &run.report;
    assert!(packets <= report.packets && packets + report.malformed + report.undecoded >= report.packets, "{name}");
    assert!(steps(&run).iter().all(|facts| facts.scanners.is_empty() && facts.stories.is_empty()));
    scans_go_on(name, &run);
    run
}

/// Each snapshot has the scans that were found and have not ended, and no fewer failures of each than the one before.
fn scans_go_on(name: &str, run: &Watched) {
    let mut open: Vec<ScanEvent> = Vec::new();
    for (_, news) in &run.news {
        match news {
            News::Scan(event) if event.state == ScanState::Found => open.push(event.clone()),
            News::Scan(event) => {
                let place = open.iter().position(|known| known.is_of(event)).expect("it was found");
                assert!(open.swap_remove(place).scan.count() <= event.scan.count(), "{name}: {event:?}");
            }
            News::Snapshot(snapshot) => {
                let going_on = &snapshot.1.facts.as_deref().expect("facts").going_on;
                assert_eq!(going_on.len(), open.len(), "{name}");
                assert!(going_on.is_sorted_by_key(|event| event.scan.time_ns()), "{name}");
                for event in going_on {
                    let known = open.iter_mut().find(|known| known.is_of(event)).expect("it was found");
                    assert!(known.scan.count() <= event.scan.count(), "{name}: {event:?}");
                    *known = event.clone();
                }
            }
        }
    }
    assert!(open.is_empty() && run.findings.facts.as_deref().expect("facts").going_on.is_empty(), "{name}");
}

#[test]
fn the_steps_of_captures_have_all_that_came() {
    let Some(folder) = captures() else { return };
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.contains(".pcap") {
            let run = check(&name, &case(), &fs::read(&path).expect("a file"));
            count += run.snapshots();
        }
    }
    assert!(count > 500, "{count} steps");
}

/// Where no conversation ends by silence, and the lists of a page have room for all.
#[test]
fn the_steps_of_captures_are_together_the_facts_of_the_whole() {
    let Some(folder) = captures() else { return };
    let names = ["dns.pcap", "ipv6-http.pcap", "tls-73-ciphers.pcap", "http-mixed.pcap", "scan-connect-retries.pcap"];
    for name in names {
        let capture = fs::read(folder.join(name)).expect("a file");
        let run = case().alone(Reader::from_bytes(capture.clone()).expect("a capture"));
        let (source, settings) = (Reader::from_bytes(capture).expect("a capture"), Settings::default());
        let (plan, progress) = (plan(0, 64), Progress::new());
        let whole = inspect([source], &settings, &case().inspection, &plan, &progress, |_, _| {}, |_| {});
        let (_, whole) = whole.expect("a plan");
        assert_eq!(over(&run.findings), over(&whole), "{name}");
        let whole = sums([whole.facts.as_deref().expect("facts")]);
        assert_eq!(whole.left_out, [0; 2], "{name}");
        assert_eq!(sums(steps(&run)), whole, "{name}");
    }
}

#[test]
fn made_up_conversations_are_told_whole_and_once() {
    for (seed, trouble, spoofed) in [(1, 0, 0), (2, 20, 200)] {
        let traffic = Conversations { seed, conversations: 600, trouble, spoofed };
        let run = check("generated", &case(), &traffic.capture());
        assert!(run.snapshots() > 2);
    }
    // Conversations are evicted all the time, told or not.
    let mut scarce = case();
    scarce.inspection.conversations = Limits::new(LEAST_BYTES);
    let traffic = Conversations { seed: 4, conversations: 4000, trouble: 10, spoofed: 70_000 };
    let run = same("scarce", &scarce, &traffic.capture());
    assert!(run.findings.conversations.evicted > 1000, "{:?}", run.findings.conversations);
    assert_eq!(sums(steps(&run)).begun, over(&run.findings)[0]);
    let planted = synth::capture(Config { packets: 60_000, ..Config::default() }).expect("a capture");
    let run = same("synthetic", &case(), &planted);
    assert_eq!(sums(steps(&run)).begun, over(&run.findings)[0]);
}

/// With a pause at the end of each second, so that each has a snapshot.
fn paced(packets: &[Packet], seconds: u64) -> Paced {
    let mut acts = Vec::new();
    for second in 0..seconds {
        let (begin, end) = (START + second * SECOND, START + (second + 1) * SECOND);
        let of = packets.iter().filter(|packet| (begin..end).contains(&packet.time_ns));
        acts.extend(of.map(|packet| Act::Record(packet.time_ns, packet.frame())));
        acts.push(Act::Pause(end));
    }
    Paced::new(LinkType::RAW, acts, None)
}

/// The facts of each of these seconds, the first of which has a packet, and what is left at the end.
fn seconds(case: &Case, packets: &[Packet], count: u64) -> Vec<Facts> {
    let run = case.alone(paced(packets, count));
    for analyzers in [1, 3] {
        let plan = Plan { analyzers, ..plan(analyzers, 64) };
        assert_eq!(run.difference(&case.watch(paced(packets, count), &plan)), None);
    }
    let facts: Vec<_> = steps(&run).into_iter().cloned().collect();
    assert_eq!(facts.len() as u64, count + 1);
    facts
}

fn host<'a>(facts: &'a Facts, address: &str) -> Option<&'a Host> {
    let address: IpAddr = address.parse().expect("an address");
    facts.hosts.iter().find(|(host, _)| *host == address).map(|(_, host)| host)
}

const DATAGRAM: u64 = 28;
const SEGMENT: u64 = 40;

#[test]
fn a_long_conversation_is_in_each_second_with_what_it_had_then() {
    let (client, server) = ("10.0.0.1 5000", "10.0.0.2 9999");
    // The packets of the client and the server in each second; at first there is no answer.
    let each = [[2, 0], [1, 3], [0, 0], [0, 1], [5, 5], [0, 0], [0, 0], [1, 0]];
    let mut packets = Vec::new();
    for (second, &[asked, answered]) in (0_u64..).zip(&each) {
        let time = |number: u64| START + second * SECOND + number * 1000;
        packets.extend((0..asked).map(|number| udp(time(number), client, server)));
        packets.extend((0..answered).map(|number| udp(time(100 + number), server, client)));
    }
    let facts = seconds(&case(), &packets, each.len() as u64);
    for (second, (facts, counts)) in facts.iter().zip(&each).enumerate() {
        if *counts == [0, 0] {
            assert!(facts.hosts.is_empty() && facts.conversations.is_empty() && facts.unknown.is_empty(), "{second}");
            assert!(facts.timeline.bins().is_empty(), "{second}");
            continue;
        }
        let [talked] = &facts.conversations[..] else { panic!("{second}: {facts:?}") };
        assert_eq!((talked.packets, talked.bytes), (*counts, counts.map(|count| count * DATAGRAM)), "{second}");
        let state = if second == 0 { State::New } else { State::Established };
        assert_eq!((talked.times.0, talked.state), (START, state), "{second}");
        let [own, other] = ["10.0.0.1", "10.0.0.2"].map(|address| host(facts, address).expect("a host"));
        assert_eq!([own.sent, own.received], counts.map(|count| count * DATAGRAM));
        assert_eq!([other.received, other.sent], counts.map(|count| count * DATAGRAM));
        // It counts when it begins, and as answered when it is.
        assert_eq!([own.conversations, other.conversations], [u32::from(second == 0); 2]);
        assert_eq!([own.served, other.served], [0, u32::from(second == 1)]);
        let reached = own.reached().items().iter().map(|it| (it.host.to_string(), it.port.number));
        assert_eq!(reached.collect::<Vec<_>>(), [("10.0.0.2".to_owned(), 9999)][..usize::from(second > 0)]);
        let [(port, unknown)] = &facts.unknown[..] else { panic!("{second}: {facts:?}") };
        assert_eq!((port.number, unknown.conversations), (9999, u64::from(second == 0)));
        assert_eq!(unknown.bytes, (counts[0] + counts[1]) * DATAGRAM);
    }
    assert!(facts[each.len()].hosts.is_empty(), "all was told");
}

/// Connections have no state of their own before there is payload. One is opened at the end of a second, and goes on
/// without any; in the end an RST refuses nothing, as it was open.
#[test]
fn a_connection_without_payload_is_told_as_it_goes_on() {
    let (client, server) = ("10.0.0.1 5000", "10.0.0.2 443");
    let at = |ms: u64| START + ms * SECOND / 1000;
    let packets = [
        tcp(at(900), client, server, SYN),
        // The SYN counts with its answer: before that there is no connection.
        tcp(at(1100), server, client, SYN | ACK),
        tcp(at(2100), client, server, ACK),
        tcp(at(2200), client, server, ACK),
        tcp(at(4000), client, server, FIN | ACK),
        tcp(at(4100), server, client, FIN | ACK),
    ];
    let facts = seconds(&case(), &packets, 12);
    let expected = [[0, 0], [1, 1], [2, 0], [0, 0], [1, 1]];
    for (second, facts) in facts.iter().enumerate() {
        let counts = expected.get(second).copied().unwrap_or_default();
        let found = facts.conversations.first().map_or([0, 0], |talked| talked.packets);
        assert_eq!(found, counts, "{second}");
        assert_eq!(facts.hosts.len(), if counts == [0, 0] { 0 } else { 2 }, "{second}");
        let begun = facts.timeline.bins().iter().flat_map(|bin| bin.conversations).sum::<u32>();
        assert_eq!(begun, u32::from(second == 1));
        assert!(facts.timeline.width_ns() <= SECOND / 100, "the SYN of before makes no bin wider");
    }
    let own = host(&facts[1], "10.0.0.1").expect("the client");
    assert_eq!((own.sent, own.received, own.conversations), (SEGMENT, SEGMENT, 1));
}

/// More connections without payload than a partition remembers what it told of: the others are told once they are over.
#[test]
fn connections_without_payload_are_told_whole_however_many_there_are() {
    let mut packets = Vec::new();
    const COUNT: u64 = 1000;
    for number in 0..COUNT {
        let client = format!("10.0.0.1 {}", 2000 + number);
        let at = |second: u64| START + second * SECOND + number * 1000;
        packets.push(tcp(at(0), &client, "10.0.0.2 80", SYN));
        packets.push(tcp(at(0) + 1, "10.0.0.2 80", &client, SYN | ACK));
        packets.push(tcp(at(1), &client, "10.0.0.2 80", ACK));
        packets.push(tcp(at(3), "10.0.0.2 80", &client, FIN | ACK));
        packets.push(tcp(at(3) + 1, &client, "10.0.0.2 80", FIN | ACK));
    }
    packets.sort_by_key(|packet| packet.time_ns);
    let facts = seconds(&case(), &packets, 20);
    let first = facts[0].conversations.len() as u64;
    assert!((100..COUNT).contains(&first), "{first}");
    let total = sums(&facts);
    assert_eq!((total.talked.len() as u64, total.begun, total.left_out), (COUNT, COUNT, [0; 2]));
    assert!(total.talked.values().all(|counts| *counts == [5, 5 * SEGMENT]));
    assert_eq!(total.hosts[&"10.0.0.2".parse::<IpAddr>().expect("an address")][2..], [COUNT, COUNT]);
}

/// As a scan's attempts are: what is sent without a SYN asks for no connection.
#[test]
fn only_an_answer_to_a_syn_or_a_datagram_says_that_a_port_is_open() {
    let (client, [asked, odd, late]) = ("10.0.0.1 5000", ["10.0.0.2 80", "10.0.0.2 81", "10.0.0.2 82"]);
    let packets = [
        tcp(START, client, asked, SYN),
        tcp(START + 1, asked, client, SYN | ACK),
        tcp(START + 2, client, odd, FIN),
        tcp(START + 3, odd, client, ACK),
        tcp(START + 4, client, late, ACK),
        tcp(START + 5, late, client, ACK),
    ];
    let facts = seconds(&case(), &packets, 1);
    let own = host(&facts[0], "10.0.0.1").expect("a host");
    assert_eq!(own.reached().items().iter().map(|it| it.port.number).collect::<Vec<_>>(), [80]);
}

#[test]
fn what_a_host_sends_to_itself_counts_once() {
    let (client, server) = ("127.0.0.1 5000", "127.0.0.1 53");
    let packets = [udp(START, client, server), udp(START + 1, server, client), udp(START + 2, client, server)];
    let facts = seconds(&case(), &packets, 1);
    let own = host(&facts[0], "127.0.0.1").expect("a host");
    assert_eq!((own.sent, own.received, own.conversations, own.served), (2 * DATAGRAM, DATAGRAM, 1, 1));
    assert_eq!(own.ports().map(|port| port.number).collect::<Vec<_>>(), [53]);
}

#[test]
fn what_a_scan_found_open_is_what_its_source_has_reached() {
    let Some(folder) = captures() else { return };
    let capture = fs::read(folder.join("scan-connect-retries.pcap")).expect("a file");
    let run = case().alone(Reader::from_bytes(capture).expect("a capture"));
    let mut open = BTreeMap::<IpAddr, BTreeSet<(String, u16)>>::new();
    for (source, host) in steps(&run).into_iter().flat_map(|facts| &facts.hosts) {
        for service in host.reached().items() {
            assert!(service.port.is_tcp || service.port.number != 135);
            open.entry(*source).or_default().insert((service.host.to_string(), service.port.number));
        }
    }
    let scanner: Vec<_> = open.values().filter(|services| services.len() > 4).collect();
    let expected = [135, 139, 445, 1025, 5000].map(|port| ("192.168.1.25".to_owned(), port));
    assert_eq!(scanner, [&BTreeSet::from(expected)]);
}

/// Any packets of some hosts, TCP and UDP, in two VLANs, with gaps of up to some minutes: nothing is told twice or
/// never.
#[test]
fn any_packets_are_told_once() {
    let mut choices = Choices(7);
    for round in 0..40 {
        let mut time_ns = START;
        let mut packets = Vec::new();
        for _ in 0..600 {
            time_ns +=
                [1000, SECOND / 20, SECOND, 70 * SECOND][[0, 0, 0, 0, 1, 1, 1, 1, 2, 3][choices.below(10) as usize]];
            let (a, b) = (format!("10.0.0.{} 4000", choices.below(4)), format!("10.0.1.{} 80", choices.below(4)));
            let (from, to) = if choices.below(2) == 0 { (a, b) } else { (b, a) };
            let flags = [SYN, SYN | ACK, ACK, ACK, FIN | ACK, 0x04][choices.below(6) as usize];
            packets.push(match choices.below(3) {
                0 => udp(time_ns, &from, &to),
                _ => tcp(time_ns, &from, &to, flags),
            });
        }
        let mut tagged = |packet: &Packet| {
            let before = [&[0; 12][..], &[0x81, 0, 0, 10 + choices.below(2) as u8, 8, 0]].concat();
            Act::Record(packet.time_ns, [before, packet.frame()].concat())
        };
        let acts: Vec<_> = packets.iter().map(&mut tagged).collect();
        let run = case().alone(Paced::new(LinkType::ETHERNET, acts.clone(), None));
        let other = case().watch(Paced::new(LinkType::ETHERNET, acts, None), &plan(2, 64));
        assert_eq!(run.difference(&other), None, "{round}");
        let total = sums(steps(&run));
        let mut talked = [total.begun, 0, 0];
        total.talked.values().for_each(|&[packets, bytes]| add(&mut talked, [0, packets, bytes]));
        assert_eq!(talked, over(&run.findings), "{round}");
    }
}
