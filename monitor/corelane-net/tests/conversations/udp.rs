//! The rules of UDP.

use crate::support::*;
use corelane_net::capture::{LinkType, Record};
use corelane_net::conversation::{Limits, Reason, Side};
use corelane_net::decode::{Packet, Vlans, datagram, packet};

const CLIENT: (u32, u16) = (0x0a00_0001, 50_000);
const SERVER: (u32, u16) = (0x0a00_0002, 53);

#[test]
fn each_datagram_is_one_call_also_an_empty_one() {
    let mut bench = Bench::new();
    bench.take(&udp(CLIENT, SERVER, 7, b"question"));
    bench.take(&udp(SERVER, CLIENT, 9, b""));
    bench.take(&udp(SERVER, CLIENT, 8, b"answer"));
    let (notes, over) = bench.only();
    assert_eq!(notes.events[..3], [data(Originator, "question"), data(Responder, ""), data(Responder, "answer")]);
    assert_eq!((over.packets, over.bytes, over.times), ([1, 2], [50, 90], (7, 9)));
    assert_eq!(over.reason, Reason::CaptureEnded);
}

#[test]
fn a_conversation_seen_from_its_answer_has_the_client_as_originator() {
    let mut bench = Bench::new();
    bench.take(&udp(SERVER, CLIENT, 9, b"answer"));
    assert_eq!(bench.only().1.originator, "10.0.0.1:50000");
}

#[test]
fn a_group_of_hosts_is_no_originator() {
    for group in [0xe000_00fb, 0xefff_fffa] {
        let mut bench = Bench::new();
        bench.take(&udp(SERVER, (group, 5353), 9, b"announcement"));
        assert_eq!(bench.only().1.originator, "10.0.0.2:53");
    }
}

#[test]
fn ports_and_addresses_make_conversations() {
    let mut bench = Bench::new();
    bench.take(&udp(CLIENT, SERVER, 1, b"a"));
    bench.take(&udp((CLIENT.0, 50_001), SERVER, 1, b"b"));
    bench.take(&udp((CLIENT.0 + 1, 50_000), SERVER, 1, b"c"));
    // The same numbers over TCP.
    let tcp = Tcp { ends: [(0xffff_0a00_0001, 50_000), (0xffff_0a00_0002, 53)], ..Tcp::default() };
    bench.take(&tcp.send(Originator, 0, b"d"));
    assert_eq!(bench.table.len(), 4);
}

/// The VLANs of a frame with these tags.
fn vlans(numbers: &[u8]) -> Vlans {
    let mut frame = vec![0; 12];
    numbers.iter().for_each(|&number| frame.extend([0x81, 0, 0x20, number]));
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0, 99, 0, 8, 0, 0]);
    let record = Record { time_ns: 0, wire_len: frame.len() as u32, link: LinkType::ETHERNET, data: &frame };
    packet(0, record.wire_len, &datagram(&record).unwrap()).unwrap().vlans
}

#[test]
fn vlans_make_conversations_in_both_directions() {
    let mut bench = Bench::new();
    let all: [&[u8]; 6] = [&[], &[10], &[20], &[10, 20], &[20, 10], &[10, 10]];
    for numbers in all {
        for (from, to) in [(CLIENT, SERVER), (SERVER, CLIENT)] {
            bench.take(&Packet { vlans: vlans(numbers), ..udp(from, to, 1, b"x") });
        }
    }
    // A priority is no VLAN, and of three the third does not count.
    for numbers in [&[0][..], &[0, 10], &[10, 0, 20], &[10, 20, 30]] {
        bench.take(&Packet { vlans: vlans(numbers), ..udp(CLIENT, SERVER, 1, b"x") });
    }
    assert_eq!(bench.table.len(), all.len());
    bench.table.finish(&mut bench.log);
    let mut found: Vec<_> = bench.log.over.iter().map(|over| (over.vlans.clone(), over.packets)).collect();
    found.sort();
    let expected: [(&[u16], [u64; 2]); 6] = [
        (&[], [2, 1]),
        (&[10], [2, 1]),
        (&[10, 10], [1, 1]),
        (&[10, 20], [3, 1]),
        (&[20], [1, 1]),
        (&[20, 10], [1, 1]),
    ];
    assert_eq!(found, expected.map(|(vlans, packets)| (vlans.to_vec(), packets)));
}

/// Each SYN is answered in its own VLAN.
#[test]
fn a_syn_is_that_of_its_vlan() {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    let other = Tcp { first: [7000, 9000], ..Tcp::default() };
    let within = |number, packet| Packet { vlans: vlans(&[number]), ..packet };
    bench.take(&within(10, tcp.syn()));
    bench.take(&within(20, other.syn()));
    bench.take(&within(20, other.syn_ack()));
    bench.take(&within(10, tcp.syn_ack()));
    bench.take(&within(10, tcp.send(Originator, 0, b"ten")));
    bench.take(&within(20, other.send(Originator, 0, b"twenty")));
    bench.table.finish(&mut bench.log);
    let mut found: Vec<_> = bench.log.over.iter().map(|over| (&over.vlans[..], over.packets, over.missed)).collect();
    found.sort();
    assert_eq!(found, [(&[10][..], [2, 1], [0, 0]), (&[20], [2, 1], [0, 0])]);
    assert!(bench.log.attempts.is_empty());
}

#[test]
fn one_sided_and_two_sided_ones_have_their_times() {
    let limits = Limits::default();
    for (answered, timeout) in [(false, limits.unconfirmed_timeout_ns), (true, limits.udp_timeout_ns)] {
        let mut bench = Bench::with(&limits);
        bench.take(&udp(CLIENT, SERVER, 50 * SECOND, b"question"));
        if answered {
            bench.take(&udp(SERVER, CLIENT, 50 * SECOND, b"answer"));
        }
        bench.expire(50 * SECOND + timeout - 1);
        assert_eq!(bench.table.len(), 1);
        bench.expire(50 * SECOND + timeout + 3 * SECOND);
        assert_eq!((bench.table.len(), bench.log.over[0].reason), (0, Reason::TimedOut));
    }
}

#[test]
fn who_wants_no_more_is_only_counted() {
    let mut bench = Bench::new();
    bench.log.enough = Some(1);
    for _ in 0..3 {
        bench.take(&udp(CLIENT, SERVER, 7, b"x"));
    }
    let (notes, over) = bench.only();
    assert_eq!((notes.side(Originator).len(), over.packets), (2, [3, 0]));
}

/// What the table says is active since a time: the originators, and the packets of both sides.
fn active(bench: &mut Bench, since_ns: u64) -> Vec<(String, u64)> {
    let mut active = Vec::new();
    bench.table.active_since(since_ns, |conversation, notes| {
        assert!(notes.is_some());
        let packets = Side::BOTH.iter().map(|&side| conversation.packets(side)).sum();
        active.push((conversation.end(Originator).to_string(), packets));
    });
    active.sort_unstable();
    active
}

#[test]
fn those_with_a_packet_since_a_time_are_found_whatever_has_become_of_them() {
    let mut bench = Bench::new();
    for host in 0..50 {
        bench.take(&udp((CLIENT.0 + host, CLIENT.1), SERVER, 10 * SECOND, b"question"));
    }
    // One is answered, and so in another list; one goes on after long; one has a packet at the last moment before.
    bench.take(&udp(SERVER, CLIENT, 20 * SECOND, b"answer"));
    bench.take(&udp((CLIENT.0 + 7, CLIENT.1), SERVER, 20 * SECOND - 1, b"question"));
    bench.take(&udp((CLIENT.0 + 20, CLIENT.1), SERVER, 21 * SECOND, b"question"));
    let expected = [("10.0.0.1:50000".to_owned(), 2), ("10.0.0.21:50000".to_owned(), 2)];
    assert_eq!(active(&mut bench, 20 * SECOND), expected);
    assert_eq!(active(&mut bench, 20 * SECOND - 1).len(), 3);
    assert_eq!(active(&mut bench, 0).len(), 50);
    assert_eq!(active(&mut bench, 21 * SECOND + 1), []);
    bench.table.finish(&mut bench.log);
    assert_eq!(active(&mut bench, 0), []);
}
