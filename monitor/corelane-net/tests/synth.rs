//! Synthetic traffic against a second opinion: a small parser of its own, and the scan rules of the monitor written
//! down once more, without any of the generator's knowledge.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use corelane_net::synth::{Alert, Config, Generator, Probe, Scanned, capture};

const TIMEOUT: u64 = 3_000_000_000;
const THRESHOLD: usize = 20;

/// A frame of the generator, taken apart.
#[derive(Clone, Debug)]
struct Packet {
    time: u64,
    wire: usize,
    data: Vec<u8>,
    protocol: u8,
    source: IpAddr,
    destination: IpAddr,
    ports: [u16; 2],
    flags: u8,
    /// Where the transport header begins, and where the payload does.
    transport: usize,
    payload: usize,
}

impl Packet {
    fn new(time: u64, wire: u32, data: &[u8]) -> Self {
        let u16_at = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
        let v4 = |at: usize| IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(&data[at..at + 4]).unwrap()));
        let v6 = |at: usize| IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(&data[at..at + 16]).unwrap()));
        let (protocol, source, destination, transport) = match u16_at(12) {
            0x0800 => (data[23], v4(26), v4(30), 34),
            0x86dd => (data[20], v6(22), v6(38), 54),
            other => panic!("ethertype {other:#x}"),
        };
        let (flags, header) = match protocol {
            6 => (data[transport + 13], usize::from(data[transport + 12] >> 4) * 4),
            17 => (0, 8),
            other => panic!("protocol {other}"),
        };
        Self {
            time,
            wire: wire as usize,
            data: data.to_vec(),
            protocol,
            source,
            destination,
            ports: [u16_at(transport), u16_at(transport + 2)],
            flags,
            transport,
            payload: transport + header,
        }
    }

    fn has(&self, flags: u8) -> bool {
        self.protocol == 6 && self.flags & flags == flags
    }
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

fn packets(config: &Config) -> (Vec<Packet>, Vec<Alert>) {
    let mut generator = Generator::new(config.clone()).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = generator.next_frame() {
        packets.push(Packet::new(record.time_ns, record.wire_len, record.data));
    }
    assert!(generator.next_frame().is_none());
    (packets, generator.truth())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Open(u64),
    Answered,
    Failed(u64),
}

/// Source, destination and its port.
type Key = (IpAddr, IpAddr, u16);

/// All attempts and what became of them.
fn attempts(packets: &[Packet]) -> HashMap<Key, State> {
    let end = packets.iter().map(|packet| packet.time).max().unwrap_or(0);
    let mut attempts: HashMap<Key, State> = HashMap::new();
    for packet in packets.iter().filter(|packet| packet.protocol == 6) {
        if packet.has(SYN) && packet.flags & (ACK | RST | FIN) == 0 {
            let state = attempts
                .entry((packet.source, packet.destination, packet.ports[1]))
                .or_insert(State::Open(packet.time));
            if *state == State::Answered {
                *state = State::Open(packet.time);
            }
        }
        if let Some(state) = attempts.get_mut(&(packet.destination, packet.source, packet.ports[0]))
            && let State::Open(opened) = *state
            && packet.time - opened < TIMEOUT
        {
            if packet.has(RST) {
                *state = State::Failed(packet.time);
            } else if packet.has(SYN | ACK) {
                *state = State::Answered;
            }
        }
    }
    for state in attempts.values_mut() {
        if let State::Open(opened) = *state {
            *state = State::Failed((opened + TIMEOUT).min(end));
        }
    }
    attempts
}

/// Failures by source and what was scanned; each distinct destination or port fails once, since keys do.
fn groups(packets: &[Packet]) -> BTreeMap<(IpAddr, Scanned), Vec<u64>> {
    let mut groups: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for ((source, destination, port), state) in attempts(packets) {
        if let State::Failed(time) = state {
            for scanned in [Scanned::Vertical { destination }, Scanned::Horizontal { port }] {
                groups.entry((source, scanned)).or_default().push(time);
            }
        }
    }
    groups.values_mut().for_each(|times| times.sort_unstable());
    groups
}

fn reference(packets: &[Packet]) -> Vec<Alert> {
    let mut alerts: Vec<_> = groups(packets)
        .into_iter()
        .filter(|(_, times)| times.len() > THRESHOLD)
        .map(|((source, scanned), times)| Alert {
            probe: None,
            source,
            scanned,
            count: times.len() as u64,
            time_ns: times[THRESHOLD],
        })
        .collect();
    alerts.extend(probe_reference(packets));
    let key = |alert: &Alert| match alert.scanned {
        Scanned::Horizontal { port } => (alert.time_ns, "horizontal", alert.source, None, port, alert.probe),
        Scanned::Vertical { destination } => {
            (alert.time_ns, "vertical", alert.source, Some(destination), 0, alert.probe)
        }
    };
    alerts.sort_by_key(key);
    alerts
}

/// The scans by other probes than SYNs: what a flow begins with, and whether anything came back.
fn probe_reference(packets: &[Packet]) -> Vec<Alert> {
    type End = (IpAddr, u16);
    type Began = (Option<Probe>, End, Key, u64, bool);
    let mut flows: HashMap<(u8, End, End), Began> = HashMap::new();
    for packet in packets {
        let [from, to] = [(packet.source, packet.ports[0]), (packet.destination, packet.ports[1])];
        let flow = flows.entry((packet.protocol, from.min(to), from.max(to))).or_insert_with(|| {
            let probe = match (packet.protocol, packet.flags & 0x3f) {
                (17, _) => Some(Probe::Udp),
                (_, 0x01) => Some(Probe::Fin),
                (_, 0x00) => Some(Probe::Null),
                (_, 0x29) => Some(Probe::Xmas),
                (_, 0x03) => Some(Probe::SynFin),
                (_, 0x09) => Some(Probe::Odd),
                _ => None,
            };
            (probe, from, (packet.source, packet.destination, packet.ports[1]), packet.time, false)
        });
        flow.4 |= packet.protocol == 17 && flow.1 != from;
    }
    let mut keys: HashMap<(Probe, Key), (u64, bool)> = HashMap::new();
    for (probe, _, key, time, answered) in flows.into_values() {
        let Some(probe) = probe else { continue };
        let (earliest, ever) = keys.entry((probe, key)).or_insert((time, false));
        (*earliest, *ever) = (time.min(*earliest), *ever || answered);
    }
    let mut groups: BTreeMap<_, (Vec<u64>, usize)> = BTreeMap::new();
    for ((probe, (source, destination, port)), (time, answered)) in keys {
        for scanned in [Scanned::Vertical { destination }, Scanned::Horizontal { port }] {
            let (times, answers) = groups.entry((probe, source, scanned)).or_default();
            if answered { *answers += 1 } else { times.push(time) }
        }
    }
    let mut alerts = Vec::new();
    for ((probe, source, scanned), (mut times, answers)) in groups {
        times.sort_unstable();
        if times.len() > THRESHOLD && times.len() > 4 * answers {
            let (count, time_ns) = (times.len() as u64, times[THRESHOLD]);
            alerts.push(Alert { probe: Some(probe), source, scanned, count, time_ns });
        }
    }
    alerts
}

fn check(config: &Config) -> (Vec<Packet>, Vec<Alert>) {
    let (packets, truth) = packets(config);
    assert_eq!(packets.len() as u64, config.packets, "{config:?}");
    assert!(packets.is_sorted_by_key(|packet| packet.time), "{config:?}");
    assert_eq!(reference(&packets), truth, "{config:?}");
    (packets, truth)
}

#[test]
fn truth_is_what_the_rules_say_whatever_the_size() {
    for packets in [0, 1, 2, 3, 10, 17, 100, 264, 265, 300, 400, 1_000, 2_500, 5_000, 20_000, 65_536, 70_000] {
        for seed in 0..8 {
            for hosts in [2, 3, 60, 5_000] {
                check(&Config { packets, hosts, seed, ..Config::default() });
            }
        }
    }
}

#[test]
fn truth_is_what_the_rules_say_at_any_rate_and_number_of_scans() {
    for rate in [1_000, 5_000, 200_000, 10_000_000] {
        for scans in [[0, 0], [1, 0], [0, 1], [0, 9], [40, 3], [500, 500]] {
            for seed in 0..4 {
                let [vertical_scans, horizontal_scans] = scans;
                let packets_per_second = Some(rate);
                let config = Config { packets: 30_000, hosts: 100, seed, packets_per_second, ..Config::default() };
                let (_, truth) = check(&Config { vertical_scans, horizontal_scans, ..config });
                assert_eq!(truth.is_empty(), scans == [0, 0]);
            }
        }
    }
}

#[test]
fn truth_is_what_the_rules_say_of_other_probes() {
    for (packets, hosts) in [(300, 3), (2_500, 60), (30_000, 500), (70_000, 5_000)] {
        for seed in 0..4 {
            for (scans, probe_scans) in [(0, 1), (0, 8), (3, 40), (6, 500)] {
                let config = Config { packets, hosts, seed, probe_scans, ..Config::default() };
                check(&Config { vertical_scans: scans, horizontal_scans: scans, ..config });
            }
        }
    }
    let (_, truth) = check(&Config { packets: 200_000, probe_scans: 12, vertical_scans: 0, ..Config::default() });
    for probe in Probe::ALL {
        let shapes: Vec<_> = (truth.iter().filter(|alert| alert.probe == Some(probe)))
            .map(|alert| matches!(alert.scanned, Scanned::Vertical { .. }))
            .collect();
        assert!(shapes.len() == 2 && shapes[0] != shapes[1], "{probe}: {truth:?}");
    }
}

#[test]
fn only_the_dead_services_fail_in_the_background() {
    const DEAD_PORTS: [u16; 8] = [23, 445, 1433, 3389, 5900, 6379, 8443, 9200];
    for (packets, rate) in
        [(100, None), (3_000, None), (60_000, Some(1_000)), (400_000, None), (400_000, Some(300_000))]
    {
        for hosts in [2, 3, 20, 10_000] {
            let (vertical_scans, horizontal_scans, packets_per_second) = (0, 0, rate);
            let config = Config { packets, hosts, packets_per_second, ..Config::default() };
            let (packets, truth) = check(&Config { vertical_scans, horizontal_scans, ..config });
            assert_eq!(truth, []);
            // Nothing that a server or the capture's end does makes an attempt fail that was to succeed.
            for (key, state) in attempts(&packets) {
                assert_eq!(matches!(state, State::Failed(_)), DEAD_PORTS.contains(&key.2), "{key:?}: {state:?}");
            }
            // Eight services a client, over IPv4 and IPv6 together.
            assert!(groups(&packets).values().all(|times| times.len() <= 8));
        }
    }
}

#[test]
fn the_default_capture_holds_everything_it_promises() {
    let (packets, truth) = check(&Config::default());
    let groups = groups(&packets);
    // Every scan that was asked for, over both IP versions; horizontal ones that are near misses exist besides.
    assert_eq!(truth.len(), 12);
    for vertical in [false, true] {
        for v6 in [false, true] {
            let alike = |alert: &&Alert| {
                matches!(alert.scanned, Scanned::Vertical { .. }) == vertical && alert.source.is_ipv6() == v6
            };
            assert_eq!(truth.iter().filter(alike).count(), 3);
        }
    }
    let scanners: Vec<_> = truth.iter().map(|alert| alert.source).collect();
    let background = |times: &&Vec<u64>| times.len() < THRESHOLD;
    assert_eq!(groups.values().filter(|times| times.len() == THRESHOLD).count(), 4, "near misses");
    assert!(groups.values().filter(background).any(|times| times.len() > 1));
    // Some failures come by refusal and some by silence, some answers at once and some after a second try.
    let attempts = attempts(&packets);
    let mut opened: HashMap<Key, Vec<u64>> = HashMap::new();
    let mut late = 0;
    for packet in &packets {
        if packet.has(SYN) && !packet.has(ACK) {
            opened.entry((packet.source, packet.destination, packet.ports[1])).or_default().push(packet.time);
        } else if (packet.has(RST) || packet.has(SYN | ACK)) && scanners.contains(&packet.destination) {
            let first = opened[&(packet.destination, packet.source, packet.ports[0])][0];
            late += usize::from(packet.time - first >= TIMEOUT);
        }
    }
    let of_scans = |wanted: fn(&State, &[u64]) -> bool| {
        attempts.iter().filter(|(key, state)| scanners.contains(&key.0) && wanted(state, &opened[key])).count()
    };
    assert!(late > 10, "{late}");
    assert!(of_scans(|state, _| *state == State::Answered) > 100);
    assert!(of_scans(|state, times| *state == State::Answered && times.len() == 2) > 10);
    assert!(of_scans(|state, times| matches!(state, State::Failed(at) if at - times[0] < TIMEOUT)) > 100);
    assert!(of_scans(|state, times| matches!(state, State::Failed(at) if at - times[0] == TIMEOUT)) > 100);
}

#[test]
fn the_end_of_the_capture_cuts_some_scans_short() {
    let mut cut = 0;
    for seed in 0..20 {
        let (packets, truth) = check(&Config { packets: 5_000, seed, ..Config::default() });
        cut += truth.iter().filter(|alert| alert.time_ns == packets.last().unwrap().time).count();
    }
    assert!(cut > 10, "{cut}");
}

#[test]
fn conversations_shake_hands_talk_both_ways_and_part() {
    let (packets, truth) = check(&Config { packets: 300_000, hosts: 2_000, ..Config::default() });
    assert!(!truth.is_empty());
    let (mut pairs, mut live) = (HashMap::new(), HashMap::new());
    let (mut finished, mut reset, mut most, mut v6) = (0, 0, 0, 0);
    for packet in &packets {
        let [from, to] = [(packet.source, packet.ports[0]), (packet.destination, packet.ports[1])];
        *pairs.entry((from.0.min(to.0), from.0.max(to.0))).or_insert(0) += 1;
        v6 += usize::from(packet.source.is_ipv6());
        if packet.protocol != 6 {
            continue;
        }
        let u32_at = |at: usize| u32::from_be_bytes(packet.data[at..at + 4].try_into().unwrap());
        let (sequence, acknowledged) = (u32_at(packet.transport + 4), u32_at(packet.transport + 8));
        let flow = (from.min(to), from.max(to));
        if packet.has(SYN) && !packet.has(ACK) {
            // Two conversations may share a flow by chance; the later one counts.
            live.insert(flow, HashMap::from([(from, sequence)]));
        }
        let Some(next) = live.get_mut(&flow) else {
            continue;
        };
        if packet.has(SYN | ACK) {
            next.insert(from, sequence);
        }
        if packet.has(ACK) && next.len() == 2 && next.get(&from) == Some(&sequence) {
            assert_eq!(next[&to], acknowledged);
        }
        let taken = (packet.wire - packet.payload) as u32 + u32::from(packet.flags & (SYN | FIN) != 0);
        next.insert(from, sequence.wrapping_add(taken));
        most = most.max(live.len());
        finished += usize::from(packet.has(FIN));
        if packet.has(RST) {
            reset += 1;
            live.remove(&flow);
        }
    }
    assert!(pairs.len() > 3_000, "{}", pairs.len());
    assert!(most > 2_000, "{most}");
    assert!(finished > 2_000, "{finished}");
    assert!(reset > 200, "{reset}");
    let v6 = v6 * 100 / packets.len();
    assert!((12..=18).contains(&v6), "{v6} %");
}

#[test]
fn checksums_and_lengths_are_right_at_every_snaplen() {
    for snaplen in [Config::HEADERS_ONLY, 74, 80, 200, 65_535] {
        for packet in check(&Config { packets: 20_000, snaplen, ..Config::default() }).0 {
            let captured = match snaplen {
                Config::HEADERS_ONLY => packet.payload,
                snaplen => packet.wire.min(snaplen as usize),
            };
            assert_eq!(packet.data.len(), captured);
            check_headers(&packet);
        }
    }
}

fn check_headers(packet: &Packet) {
    let u16_at = |at: usize| usize::from(u16::from_be_bytes([packet.data[at], packet.data[at + 1]]));
    let length = packet.wire - packet.transport;
    let mut pseudo = vec![0, packet.protocol, (length >> 8) as u8, length as u8];
    if packet.transport == 34 {
        assert_eq!(packet.data[14], 0x45);
        assert_eq!(u16_at(16), packet.wire - 14);
        assert_eq!(sum(&packet.data[14..34]), 0xffff);
        pseudo.extend_from_slice(&packet.data[26..34]);
    } else {
        assert_eq!(packet.data[14] >> 4, 6);
        assert_eq!(u16_at(18), length);
        pseudo.extend_from_slice(&packet.data[22..54]);
    }
    assert!(packet.wire <= 1_514);
    // What was not captured is zeros, which add nothing. Cut options cannot be added up.
    if packet.data.len() >= packet.payload {
        assert!(packet.data[packet.payload..].iter().all(|&byte| byte == 0));
        pseudo.extend_from_slice(&packet.data[packet.transport..packet.payload]);
        assert_eq!(sum(&pseudo), 0xffff);
    }
    if packet.protocol == 17 {
        assert_eq!(u16_at(packet.transport + 4), length);
        assert_ne!(u16_at(packet.transport + 6), 0);
    }
}

/// The sum of 16-bit words with the carry added again; 0xffff over data that holds its own checksum.
fn sum(bytes: &[u8]) -> u32 {
    let sum: u32 = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}

#[test]
fn a_seed_is_a_capture() {
    let image = |seed| capture(Config { packets: 3_000, seed, ..Config::default() }).unwrap();
    assert!(image(1) == image(1));
    assert!(image(1) != image(2));
    // Captures are quoted by their seed: this value changes only with a reason that is worth it.
    assert_eq!(fnv(&image(1)), 0x67bb_d4b1_61f7_b422, "{:#x}", fnv(&image(1)));
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn the_image_holds_the_frames() {
    let config = Config { packets: 2_000, snaplen: 100, ..Config::default() };
    let image = capture(config.clone()).unwrap();
    assert_eq!(image[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    assert_eq!(image[16..24], [100, 0, 0, 0, 1, 0, 0, 0]);
    let mut rest = &image[24..];
    let mut generator = Generator::new(config).unwrap();
    while let Some(record) = generator.next_frame() {
        let field = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        assert_eq!(u64::from(field(0)) * 1_000_000_000 + u64::from(field(4)), record.time_ns);
        assert_eq!((field(8) as usize, field(12)), (record.data.len(), record.wire_len));
        assert_eq!(rest[16..16 + record.data.len()], *record.data);
        rest = &rest[16 + record.data.len()..];
    }
    assert!(rest.is_empty());
}

#[test]
fn no_record_is_longer_than_the_file_header_says() {
    let config = Config { packets: 50_000, ..Config::default() };
    let (packets, _) = packets(&config);
    assert!(packets.iter().all(|packet| packet.data.len() <= config.file_snaplen() as usize));
}
