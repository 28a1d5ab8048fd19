//! The rules of UDP.

use crate::support::*;
use corelane_net::conversation::{Limits, Reason, Side};

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
