//! The rules of fragments, one by one.

use crate::properties::fragment;
use corelane_net::capture::LinkType;
use corelane_net::decode::{Datagram, TCP, UDP, Vlans, mapped, packet, transport};
use corelane_net::defrag::{Counts, Defragmenter, Limits};

const V4: u128 = mapped(1);
const V6: u128 = 0x2001 << 112;

struct Bench {
    table: Defragmenter,
    buffer: Vec<u8>,
    time_ns: u64,
}

impl Bench {
    fn new() -> Self {
        Self::with(&Limits::default())
    }

    fn with(limits: &Limits) -> Self {
        Self { table: Defragmenter::new(limits), buffer: Vec::new(), time_ns: 1 }
    }

    /// The payload as text, once it is whole.
    fn take(&mut self, datagram: &Datagram<'_>) -> Option<String> {
        let whole = self.table.fragment(self.time_ns, 100, datagram, &mut self.buffer)?;
        assert_eq!((whole.datagram.fragment, whole.datagram.cut), (None, 0));
        Some(String::from_utf8_lossy(whole.datagram.payload).into_owned())
    }

    fn counts(&self) -> Counts {
        *self.table.counts()
    }
}

#[test]
fn fragments_in_order_and_out_of_order() {
    for source in [V4, V6] {
        let pieces = [
            fragment(source, 0, b"01234567", true),
            fragment(source, 8, b"89abcdef", true),
            fragment(source, 16, b"end", false),
        ];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut bench = Bench::new();
            assert_eq!(bench.take(&pieces[order[0]]), None);
            assert_eq!(bench.take(&pieces[order[1]]), None);
            let whole = bench.table.fragment(1, 100, &pieces[order[2]], &mut bench.buffer).unwrap();
            assert_eq!(whole.datagram.payload, b"0123456789abcdefend");
            assert_eq!((whole.frames, whole.wire_len), (3, 300));
            assert_eq!(
                (whole.datagram.source, whole.datagram.destination, whole.datagram.protocol),
                (source, mapped(2), UDP)
            );
        }
    }
}

#[test]
fn datagrams_are_told_apart() {
    let mut bench = Bench::new();
    let first = fragment(V4, 0, b"01234567", true);
    let mut others = [fragment(V4, 8, b"x", false); 6];
    others[0].source = V4 + 1;
    others[1].destination += 1;
    others[2].protocol = TCP;
    others[3].fragment.as_mut().unwrap().id += 1;
    others[4].is_v4 = false;
    let tagged = [&[0; 12][..], &[0x81, 0, 0, 10, 8, 0]].concat();
    others[5].vlans = Vlans::of(LinkType::ETHERNET, &tagged, 18);
    bench.take(&first);
    for other in &others {
        assert_eq!(bench.take(other), None);
    }
    assert_eq!(bench.take(&fragment(V4, 8, b"y", false)).unwrap(), "01234567y");
    let begin = Datagram { vlans: others[5].vlans, ..first };
    let whole = bench.table.fragment(1, 100, &begin, &mut bench.buffer).unwrap();
    assert_eq!((whole.datagram.payload, whole.datagram.vlans), (&b"01234567x"[..], others[5].vlans));
}

#[test]
fn the_first_fragment_of_v6_says_the_protocol() {
    let mut bench = Bench::new();
    let mut last = fragment(V6, 8, b"y", false);
    last.protocol = 99;
    bench.take(&last);
    let whole = bench.table.fragment(1, 100, &fragment(V6, 0, b"01234567", true), &mut bench.buffer).unwrap();
    assert_eq!(whole.datagram.protocol, UDP);
}

#[test]
fn further_headers_of_fragments_are_stepped_over() {
    // Destination options of IPv6; an authentication header of either version.
    for (source, protocol) in [(V6, 60), (V6, 51), (V4, 51)] {
        let mut payload = vec![UDP, 0, 1, 4, 0, 0, 0, 0];
        payload.extend([0, 53, 0, 99, 0, 10, 0, 0, b'h', b'i']);
        let mut bench = Bench::new();
        let mut first = fragment(source, 0, &payload[..16], true);
        first.protocol = protocol;
        let ports = transport(&first).map(|found| (found.protocol, found.source_port));
        assert_eq!(ports, Ok((UDP, 53)), "{protocol}");
        bench.take(&first);
        let mut last = fragment(source, 16, &payload[16..], false);
        last.protocol = protocol;
        let whole = bench.table.fragment(1, 100, &last, &mut bench.buffer).unwrap();
        let packet = packet(1, 200, &whole.datagram).unwrap();
        assert_eq!((packet.protocol, packet.source_port, packet.payload), (UDP, 53, &b"hi"[..]), "{protocol}");
    }
}

/// Cut anywhere, a header is found once: in the first fragment or in the datagram.
#[test]
fn a_header_in_several_fragments_is_found_when_they_are_together() {
    let tcp = [0, 7, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x60, 2, 4, 0, 0, 0, 0, 0, 2, 4, 5, 180];
    let udp = [0, 7, 0, 80, 0, 8, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let options = [&[TCP, 0, 1, 4, 0, 0, 0, 0][..], &tcp].concat();
    for (protocol, payload, header) in [(TCP, &tcp[..], 20), (UDP, &udp, 8), (60, &options, 28)] {
        for (size, backwards) in [(8, false), (8, true), (16, false), (16, true), (24, false)] {
            let source = if protocol == 60 { V6 } else { V4 };
            let mut pieces: Vec<_> = (payload.chunks(size).enumerate())
                .map(|(at, piece)| fragment(source, at * size, piece, (at + 1) * size < payload.len()))
                .map(|piece| Datagram { protocol, ..piece })
                .collect();
            let first = transport(&pieces[0]);
            assert_eq!(first.is_ok(), size >= header, "{protocol} {size}");
            if backwards {
                pieces.reverse();
            }
            let mut bench = Bench::new();
            let (last, before) = pieces.split_last().unwrap();
            assert!(before.iter().all(|piece| bench.take(piece).is_none()));
            if let Some(whole) = bench.table.fragment(1, 100, last, &mut bench.buffer) {
                let found = whole.transport().map(|found| found.map(|it| (it.destination_port, it.hops)));
                assert_eq!(found, (size < header).then_some(Ok((80, last.hops))), "{protocol} {size} {backwards}");
            } else {
                assert!(before.is_empty() && last.fragment.unwrap().more, "{protocol} {size} {backwards}");
            }
        }
    }
}

#[test]
fn v6_between_mapped_addresses_is_v6() {
    let mut payload = vec![UDP, 0, 1, 4, 0, 0, 0, 0];
    payload.extend([0, 53, 0, 99, 0, 10, 0, 0, b'h', b'i']);
    let [mut first, mut last] = [fragment(V4, 0, &payload[..16], true), fragment(V4, 16, &payload[16..], false)];
    (first.is_v4, first.protocol) = (false, 60);
    // What an IPv6 fragment that is not the first says of the protocol may be anything.
    (last.is_v4, last.protocol) = (false, 99);
    let mut bench = Bench::new();
    bench.take(&first);
    let whole = bench.table.fragment(1, 100, &last, &mut bench.buffer).expect("it is whole");
    assert!(!whole.datagram.is_v4);
    let packet = packet(1, 200, &whole.datagram).expect("UDP behind a header");
    assert_eq!((packet.source, packet.source_port, packet.payload), (V4, 53, &b"hi"[..]));
}

#[test]
fn what_came_first_stays_in_v4() {
    let mut bench = Bench::new();
    bench.take(&fragment(V4, 8, b"89abcdef", true));
    bench.take(&fragment(V4, 0, b"01234567XXXXXXXXghijklmn", true));
    assert_eq!((bench.counts().overlaps, bench.counts().teardrops, bench.counts().conflicts), (1, 1, 1));
    assert_eq!(bench.take(&fragment(V4, 16, b"ghijklmnop", false)).unwrap(), "0123456789abcdefghijklmnop");
    assert_eq!((bench.counts().overlaps, bench.counts().conflicts, bench.counts().duplicates), (2, 1, 0));
}

#[test]
fn an_overlap_gives_a_v6_datagram_up_for_good() {
    let mut bench = Bench::new();
    bench.take(&fragment(V6, 0, b"0123456789abcdef", true));
    bench.take(&fragment(V6, 8, b"89abcdefghijklmn", true));
    assert_eq!((bench.counts().overlaps, bench.counts().conflicts), (1, 0));
    let reserved = bench.table.reserved_bytes();
    for late in [fragment(V6, 0, b"01234567", true), fragment(V6, 24, b"o", false)] {
        assert_eq!(bench.take(&late), None);
    }
    assert_eq!((bench.counts().refused, bench.table.reserved_bytes()), (2, reserved));
    bench.table.finish();
    assert_eq!(bench.counts().timed_out, 0, "it has been counted");
}

#[test]
fn duplicates_are_no_overlaps() {
    for source in [V4, V6] {
        let mut bench = Bench::new();
        for _ in 0..3 {
            assert_eq!(bench.take(&fragment(source, 0, b"01234567", true)), None);
        }
        assert_eq!((bench.counts().duplicates, bench.counts().overlaps), (2, 0));
        let whole = bench.table.fragment(1, 100, &fragment(source, 8, b"9", false), &mut bench.buffer).unwrap();
        assert_eq!((whole.datagram.payload, whole.frames, whole.wire_len), (&b"012345679"[..], 2, 200));
    }
}

#[test]
fn a_teardrop_is_counted() {
    let mut bench = Bench::new();
    bench.take(&fragment(V4, 0, &[7; 32], true));
    // The last fragment lies inside the first, and claims that the datagram ends there.
    bench.take(&fragment(V4, 24, &[8; 4], false));
    assert_eq!((bench.counts().malformed, bench.counts().whole), (1, 0));
    bench.take(&fragment(V4, 8, &[8; 8], true));
    assert_eq!((bench.counts().teardrops, bench.counts().conflicts), (1, 1));
    // One that ends where the datagram does says so although nothing of it is new.
    let whole = bench.table.fragment(1, 100, &fragment(V4, 24, &[7; 8], false), &mut bench.buffer).unwrap();
    assert_eq!((whole.datagram.payload, whole.frames), (&[7; 32][..], 1));
    assert_eq!(bench.counts().teardrops, 2);
}

#[test]
fn fragments_that_nobody_may_send() {
    let mut bench = Bench::new();
    bench.take(&fragment(V4, 0, b"", true));
    bench.take(&fragment(V4, 0, b"", false));
    bench.take(&fragment(V4, 0, b"not eight", true));
    bench.take(&fragment(V4, 65_528, b"too long", false));
    assert_eq!((bench.counts().malformed, bench.table.reserved_bytes()), (4, 0));
    // Behind the end, or with two ends.
    bench.take(&fragment(V4, 8, b"8", false));
    bench.take(&fragment(V4, 16, b"01234567", true));
    bench.take(&fragment(V4, 8, b"89", false));
    assert_eq!(bench.counts().malformed, 6);
    let mut cut = fragment(V4, 0, b"01234567", true);
    cut.cut = 8;
    bench.take(&cut);
    assert_eq!((bench.counts().cut, bench.counts().fragments), (1, 8));
    assert_eq!(bench.take(&fragment(V4, 0, b"01234567", true)).unwrap(), "012345678");
}

#[test]
fn an_end_does_not_move_to_the_front() {
    let mut bench = Bench::new();
    bench.take(&fragment(V4, 16, b"end", false));
    assert_eq!(bench.take(&fragment(V4, 8, b"end", false)), None);
    assert_eq!((bench.counts().malformed, bench.counts().overlaps), (1, 0));
    bench.take(&fragment(V4, 0, b"01234567", true));
    assert_eq!(bench.take(&fragment(V4, 8, b"89abcdef", true)).unwrap(), "0123456789abcdefend");
}

#[test]
fn the_longest_datagram_fits() {
    let mut bench = Bench::new();
    let payload: Vec<u8> = (0..65_535_u32).map(|at| (at % 251) as u8).collect();
    let mut whole = None;
    for (at, piece) in payload.chunks(1480).enumerate() {
        whole = bench.take(&fragment(V4, at * 1480, piece, (at + 1) * 1480 < payload.len()));
    }
    assert!(whole.is_some() && bench.buffer == payload);
    assert!(bench.table.reserved_bytes() < 16_384);
}

#[test]
fn time_gives_datagrams_up() {
    let limits = Limits::default();
    let mut bench = Bench::with(&limits);
    bench.take(&fragment(V4, 0, b"01234567", true));
    bench.table.expire(limits.timeout_ns);
    assert_eq!(bench.counts().timed_out, 0);
    // Neither a mark nor a packet may be too late for the first fragment.
    bench.table.expire(limits.timeout_ns + 1);
    assert_eq!(bench.counts().timed_out, 1);
    bench.time_ns = limits.timeout_ns + 1;
    bench.take(&fragment(V4, 0, b"01234567", true));
    bench.time_ns += limits.timeout_ns;
    assert_eq!(bench.take(&fragment(V4, 8, b"8", false)), None);
    assert_eq!(bench.counts().timed_out, 2);
}

#[test]
fn the_oldest_makes_room() {
    let mut bench = Bench::with(&Limits { datagrams: 2, ..Limits::default() });
    for source in 1..=3 {
        bench.take(&fragment(mapped(source), 0, b"01234567", true));
    }
    assert_eq!(bench.counts().evicted, 1);
    assert!(bench.take(&fragment(mapped(2), 8, b"8", false)).is_some());
    assert!(bench.take(&fragment(mapped(3), 8, b"8", false)).is_some());
    assert_eq!(bench.take(&fragment(mapped(1), 8, b"8", false)), None);
}

#[test]
fn bytes_are_limited() {
    let limits = Limits { bytes: 100_000, ..Limits::default() };
    let mut bench = Bench::with(&limits);
    for source in 1..=64 {
        bench.take(&fragment(mapped(source), 8, &[0; 40_000], true));
        assert!(bench.table.reserved_bytes() <= limits.bytes);
    }
    assert_eq!(bench.counts().evicted, 62);
}

#[test]
fn pieces_are_limited() {
    let mut bench = Bench::with(&Limits { pieces: 3, ..Limits::default() });
    for at in 1..=4 {
        bench.take(&fragment(V4, 16 * at, b"01234567", true));
    }
    assert_eq!(bench.counts().too_many_pieces, 1);
    bench.table.finish();
    assert_eq!((bench.counts().timed_out, bench.table.reserved_bytes()), (0, 0));
}

#[test]
fn counts_add_up() {
    let mut bench = Bench::new();
    bench.take(&fragment(V4, 0, b"01234567", true));
    bench.take(&fragment(V4, 8, b"8", false));
    let mut sum = bench.counts();
    sum.add(&bench.counts());
    assert_eq!((sum.fragments, sum.whole), (4, 2));
}
