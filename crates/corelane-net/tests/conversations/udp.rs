//! The rules of UDP.

use crate::support::*;
use corelane_net::conversation::{Limits, Reason};

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
