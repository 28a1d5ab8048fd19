//! What innocent clients send, and what scanners send.

use crate::choices::Choices;
use crate::packets::{ACK, FIN, Packet, RST, SECOND, START, SYN};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MS: u64 = SECOND / 1000;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Becomes {
    Answered,
    Refused,
    Silent,
}

use Becomes::{Answered, Refused, Silent};

pub(crate) fn v4(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(0x0a00_0000 + number).into()
}

pub(crate) fn v6(number: u32) -> IpAddr {
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number)).into()
}

/// The client of most of it.
const CLIENT: u32 = 0x00ff_0001;

/// The same, by both families.
pub(crate) fn client() -> [IpAddr; 2] {
    [v4(CLIENT), v6(CLIENT)]
}

type End = (IpAddr, u16);

fn packet(time_ns: u64, from: End, to: End, flags: Option<u8>) -> Packet {
    let ((source, source_port), (destination, destination_port)) = (from, to);
    Packet { time_ns, source, destination, source_port, destination_port, flags, hops: 64 }
}

/// One SYN, and what comes back.
pub(crate) fn attempt(time_ns: u64, from: End, to: End, becomes: Becomes) -> Vec<Packet> {
    let back = |after: u64, flags: u8| packet(time_ns + after, to, from, Some(flags));
    let mut packets = vec![packet(time_ns, from, to, Some(SYN))];
    match becomes {
        Answered => {
            packets.extend([back(10 * MS, SYN | ACK), packet(time_ns + 11 * MS, from, to, Some(ACK))]);
            packets.extend([packet(time_ns + 30 * MS, from, to, Some(FIN | ACK)), back(40 * MS, FIN | ACK)]);
        }
        Refused => packets.push(back(10 * MS, RST | ACK)),
        Silent => {}
    }
    packets
}

/// The same by a kernel, which tries again by the same port for as long as its program waits.
pub(crate) fn connect(time_ns: u64, from: End, to: End, becomes: Becomes, waits_s: u64) -> Vec<Packet> {
    let mut packets = attempt(time_ns, from, to, becomes);
    if becomes == Silent {
        let again = [1, 3, 7, 15, 31].into_iter().filter(|&after| after < waits_s);
        packets.extend(again.map(|after| packet(time_ns + after * SECOND, from, to, Some(SYN))));
    }
    packets
}

/// A datagram, and perhaps one back.
fn ask(time_ns: u64, from: End, to: End, is_answered: bool) -> Vec<Packet> {
    let back = is_answered.then(|| packet(time_ns + 10 * MS, to, from, None));
    std::iter::once(packet(time_ns, from, to, None)).chain(back).collect()
}

/// Targets that are tried for so many rounds, at equal distances and each at its own time: `becomes` says of each and
/// each round what becomes of it.
pub(crate) fn polled(
    targets: u32,
    port: u16,
    every_ms: u64,
    rounds: u64,
    becomes: impl Fn(u32, u64) -> Becomes,
) -> Vec<Packet> {
    let mut from_port = 20_000_u16;
    let mut packets = Vec::new();
    for round in 0..rounds {
        for target in 0..targets {
            let offset = u64::from(target) * every_ms * MS / u64::from(targets);
            // A timer is late by a few milliseconds.
            let late = (round * 7 + u64::from(target) * 3) % 11 * MS;
            from_port = from_port.wrapping_add(1).max(20_000);
            let (from, to) = ((v4(CLIENT), from_port), (v4(target), port));
            let waits_s = (every_ms / 1000).min(10);
            packets.extend(connect(
                START + round * every_ms * MS + offset + late,
                from,
                to,
                becomes(target, round),
                waits_s,
            ));
        }
    }
    packets
}

/// The same with a port of one host for each host.
pub(crate) fn on_one_host(mut packets: Vec<Packet>) -> Vec<Packet> {
    for Packet { destination, destination_port, .. } in &mut packets {
        let IpAddr::V4(host) = *destination else { continue };
        (*destination, *destination_port) = (v4(1), 1000 + host.to_bits() as u16);
    }
    packets
}

/// A poller by SNMP with new ports: two more questions by the same one, a second apart, where there is no answer.
pub(crate) fn snmp(dead: u32, live: u32, every_s: u64, rounds: u64) -> Vec<Packet> {
    let mut packets = Vec::new();
    for round in 0..rounds {
        for target in 0..dead + live {
            let time_ns = START + (round * every_s * 1000 + u64::from(target) * 20) * MS;
            let from = (v4(CLIENT), 30_000 + (round * 200 + u64::from(target)) as u16);
            let to = (v4(target), 161);
            let is_live = target >= dead;
            packets.extend(ask(time_ns, from, to, is_live));
            if !is_live {
                packets.extend((1..3).flat_map(|again| ask(time_ns + again * SECOND, from, to, false)));
            }
        }
    }
    packets
}

/// A server that delivers to so many others, one every 12 seconds. Every fourth is dead and tried again ever later.
fn mail(servers: u32) -> Vec<Packet> {
    let of = |server: u32| {
        let begun = START + u64::from(server) * 12 * SECOND;
        let is_dead = server.is_multiple_of(4);
        let tries = if is_dead { &[0, 300, 900, 2100][..] } else { &[0] };
        let becomes = if is_dead { Silent } else { Answered };
        let try_at = move |(number, after): (usize, &u64)| {
            let from = (v4(CLIENT), 20_000 + 10 * server as u16 + number as u16);
            connect(begun + after * SECOND, from, (v4(server), 25), becomes, 30)
        };
        tries.iter().enumerate().flat_map(try_at).collect::<Vec<_>>()
    };
    let mut packets: Vec<_> = (0..servers).flat_map(of).collect();
    packets.retain(|packet| packet.time_ns < START + u64::from(servers) * 12 * SECOND);
    packets
}

/// A server that has nothing to deliver but to the dead: all are tried again every hour.
fn mail_at_night(dead: u32, hours: u64) -> Vec<Packet> {
    let of = |hour: u64, server: u32| {
        let from = (v4(CLIENT), 20_000 + 100 * hour as u16 + server as u16);
        connect(START + (hour * 3600 + u64::from(server) * 5) * SECOND, from, (v4(server), 25), Silent, 30)
    };
    (0..hours).flat_map(|hour| (0..dead).flat_map(move |server| of(hour, server))).collect()
}

/// A client that tries addresses of IPv6, of which nothing comes of the first `dead`, and of IPv4 so much later.
pub(crate) fn happy_eyeballs(dead: u32, live: u32, apart_ms: u64, after_ms: u64, becomes: Becomes) -> Vec<Packet> {
    let of = |site: u32| {
        let time_ns = START + u64::from(site) * apart_ms * MS;
        let port = 20_000 + site as u16;
        let by_v6 = if site < dead { becomes } else { Answered };
        let mut packets = attempt(time_ns, (v6(CLIENT), port), (v6(site), 443), by_v6);
        if site < dead {
            let jitter = u64::from(site * 5 % 13) * MS;
            let time_ns = time_ns + after_ms * MS + jitter;
            packets.extend(attempt(time_ns, (v4(CLIENT), 7 + port), (v4(site), 443), Answered));
        }
        packets
    };
    (0..dead + live).flat_map(of).collect()
}

/// A node that asks others from one port; every `gone`-th does not answer.
fn dht(nodes: u32, gone: u32) -> Vec<Packet> {
    let of = |node: u32| {
        let (from, to) = ((v4(CLIENT), 6881), (v4(node), 6881 + (node % 3) as u16));
        ask(START + u64::from(node) * 150 * MS, from, to, !node.is_multiple_of(gone))
    };
    (0..nodes).flat_map(of).collect()
}

/// Answers to what was sent in the name of another.
fn backscatter(servers: u32) -> Vec<Packet> {
    let of = |server: u32| {
        let flags = if server.is_multiple_of(2) { SYN | ACK } else { RST | ACK };
        let to = (v4(CLIENT), 1024 + server as u16);
        packet(START + u64::from(server) * 20 * MS, (v4(server), 80), to, Some(flags))
    };
    (0..servers).map(of).collect()
}

/// A program that opens pages of so many hosts, every tenth of which is gone.
fn crawler(hosts: u32) -> Vec<Packet> {
    let of = |host: u32| {
        let becomes = [Silent, Answered][usize::from(!host.is_multiple_of(10))];
        connect(START + u64::from(host) * 40 * MS, (v4(CLIENT), 20_000 + host as u16), (v4(host), 443), becomes, 5)
    };
    (0..hosts).flat_map(of).collect()
}

/// A scan of so many hosts, so far apart, of which every so many-th answers; others refuse or are silent.
pub(crate) fn sweep(hosts: u32, apart_ms: u64, answering: Option<u32>, otherwise: Becomes) -> Vec<Packet> {
    let of = |host: u32| {
        let becomes = if answering.is_some_and(|every| host.is_multiple_of(every)) { Answered } else { otherwise };
        attempt(START + u64::from(host) * apart_ms * MS, (v4(CLIENT), 40_000), (v4(host), 445), becomes)
    };
    (0..hosts).flat_map(of).collect()
}

/// A scan of so many ports of one host.
fn vertical(ports: u16, apart_ms: u64, otherwise: Becomes) -> Vec<Packet> {
    let of = |port: u16| {
        let becomes = if port.is_multiple_of(30) { Answered } else { otherwise };
        attempt(START + u64::from(port) * apart_ms * MS, (v4(CLIENT), 40_000), (v4(1), port), becomes)
    };
    (1..=ports).flat_map(of).collect()
}

/// The tries of nmap at each host, a second apart and each by the next port.
pub(crate) fn tried_again(hosts: u32, tries: u64, apart_ms: u64) -> Vec<Packet> {
    let of = |host: u32| {
        (0..tries).flat_map(move |number| {
            let from = (v4(CLIENT), 40_000 + number as u16);
            let time_ns = START + u64::from(host) * 30 * MS + number * apart_ms * MS;
            attempt(time_ns, from, (v4(host), 445), Silent)
        })
    };
    (0..hosts).flat_map(of).collect()
}

/// A scan by the connections of a kernel.
pub(crate) fn connected(hosts: u32, waits_s: u64) -> Vec<Packet> {
    let of = |host: u32| {
        let (from, to) = ((v4(CLIENT), 40_000 + host as u16), (v4(host), 445));
        connect(START + u64::from(host) * 30 * MS, from, to, Silent, waits_s)
    };
    (0..hosts).flat_map(of).collect()
}

/// The same scan so often, each time in another order.
pub(crate) fn repeated(hosts: u32, runs: u64, run_ms: u64) -> Vec<Packet> {
    let mut choices = Choices(5);
    let mut packets = Vec::new();
    for run in 0..runs {
        let mut order: Vec<_> = (0..hosts).collect();
        for left in (1..order.len()).rev() {
            order.swap(left, choices.below(left as u64 + 1) as usize);
        }
        for (place, &host) in order.iter().enumerate() {
            let time_ns = START + (run * run_ms + place as u64 * run_ms / u64::from(hosts)) * MS;
            packets.extend(attempt(time_ns, (v4(CLIENT), 40_000 + run as u16), (v4(host), 445), Silent));
        }
    }
    packets
}

fn udp_scan(hosts: u32, apart_ms: u64) -> Vec<Packet> {
    let of = |host: u32| {
        let is_answered = host.is_multiple_of(20);
        ask(START + u64::from(host) * apart_ms * MS, (v4(CLIENT), 40_000), (v4(host), 161), is_answered)
    };
    (0..hosts).flat_map(of).collect()
}

/// A scan by IPv6 of a host that opens pages by IPv4 meanwhile.
pub(crate) fn by_v6_with_pages(hosts: u32, apart_ms: u64, page_ms: u64) -> Vec<Packet> {
    let mut choices = Choices(9);
    let scan =
        |host: u32| attempt(START + u64::from(host) * apart_ms * MS, (v6(CLIENT), 40_000), (v6(host), 443), Silent);
    let mut packets: Vec<_> = (0..hosts).flat_map(scan).collect();
    let pages = u64::from(hosts) * apart_ms / page_ms;
    for page in 0..pages {
        let time_ns = START + (page * page_ms + choices.below(page_ms)) * MS;
        packets.extend(attempt(time_ns, (v4(CLIENT), 20_000 + page as u16), (v4(page as u32), 443), Answered));
    }
    packets
}

/// What is sent, and whether it is a scan.
pub(crate) type Row = (&'static str, bool, Vec<Packet>);

/// All of it, each in order of time.
pub(crate) fn rows() -> Vec<Row> {
    let down = |at: u64, how: Becomes| move |_: u32, round: u64| if round < at { Answered } else { how };
    // Dead ones are among the others.
    let some = |dead: u32, how: Becomes| move |target: u32, _: u64| if target * 7 % 80 < dead { how } else { Answered };
    let first = |dead: u32, how: Becomes| move |target: u32, _: u64| if target < dead { how } else { Answered };
    let mut rows: Vec<Row> = vec![
        ("30 backends go down, refused", false, polled(30, 8080, 5000, 24, down(12, Refused))),
        ("100 backends go down, silent", false, polled(100, 8080, 2000, 60, down(20, Silent))),
        ("30 backends never up, every 5 s", false, polled(30, 8080, 5000, 24, |_, _| Refused)),
        ("100 exporters never up, every 15 s", false, polled(100, 9100, 15_000, 20, |_, _| Silent)),
        ("Prometheus: 50 live, 30 silent", false, polled(80, 9100, 15_000, 20, some(30, Silent))),
        ("Prometheus: 30 silent, then 50 live", false, polled(80, 9100, 15_000, 20, first(30, Silent))),
        ("mail: 200 servers, 50 dead", false, mail(200)),
        ("mail: 50 dead alone, hourly, 8 hours", false, mail_at_night(50, 8)),
        ("happy eyeballs: 25 dead, every 2 s", false, happy_eyeballs(25, 0, 2000, 250, Silent)),
        ("happy eyeballs: 100 dead, every 70 ms", false, happy_eyeballs(100, 0, 70, 300, Silent)),
        ("happy eyeballs: 60 refuse, 20 live", false, happy_eyeballs(60, 20, 900, 15, Refused)),
        ("SNMP: 40 live, 30 dead", false, snmp(30, 40, 60, 10)),
        ("SNMP: 30 agents never up, every minute", false, snmp(30, 0, 60, 10)),
        ("DHT: 400 nodes, half gone", false, dht(400, 2)),
        ("backscatter: 500 servers", false, backscatter(500)),
        ("crawler: 1,000 hosts, 100 gone", false, crawler(1000)),
        ("sweep of 256, a third answers, 100/s", true, sweep(256, 10, Some(3), Silent)),
        ("sweep of 256, a third answers, 1/s", true, sweep(256, 1000, Some(3), Refused)),
        ("sweep of 256, none answers, 1,000/s", true, sweep(256, 1, None, Silent)),
        ("sweep of 30, none answers, 1/s", true, sweep(30, 1000, None, Refused)),
        ("100 ports closed, 100/s", true, vertical(100, 10, Refused)),
        ("60 ports, -T2: 0.4 s apart", true, vertical(60, 400, Silent)),
        ("60 ports, -T1: 15 s apart", true, vertical(60, 15_000, Silent)),
        ("nmap: 10 retries a second apart", true, tried_again(40, 11, 1000)),
        ("256 hosts by UDP, 50/s", true, udp_scan(256, 20)),
        ("256 hosts five times, 20 s each", true, repeated(256, 5, 20_000)),
        ("60 hosts in a loop of a minute", true, polled(60, 445, 60_000, 5, |_, _| Silent)),
        ("256 hosts in a loop of a minute", true, polled(256, 445, 60_000, 5, |_, _| Silent)),
        ("100 ports in a loop of a minute", true, on_one_host(polled(100, 445, 60_000, 5, |_, _| Silent))),
        ("40 hosts by IPv6, 2/s, pages by IPv4, 2.5/s", true, by_v6_with_pages(40, 500, 400)),
        ("40 hosts by IPv6, 10/s, pages by IPv4, 20/s", true, by_v6_with_pages(40, 100, 50)),
    ];
    rows.iter_mut().for_each(|(_, _, packets)| packets.sort_by_key(|packet| packet.time_ns));
    rows
}
