//! Tunnels: what is opened, and what is not.

use corelane_net::capture::{LinkType, Record};
use corelane_net::decode::{
    Closed, DEEPEST, Innermost, TCP, Tunnel, UDP, datagram_at, decode, innermost, locate, mapped,
};
use corelane_net::protocol::fuzz;
use corelane_net::synth;
use proptest::prelude::*;

fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    packet.extend(payload);
    packet
}

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend([7; 32]);
    packet.extend(payload);
    packet
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    between(5000, port, payload)
}

fn between(source: u16, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = [source, port, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    datagram.extend(payload);
    datagram
}

/// A UDP datagram from 10.0.0.1 to 10.0.0.2, which is what all tunnels here carry.
fn inner() -> Vec<u8> {
    let mut packet = v4(UDP, &udp(53, b"payload"));
    packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    packet
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &kind.to_be_bytes(), payload].concat()
}

fn open(frame: &[u8]) -> Innermost {
    let found = innermost(frame, locate(LinkType::RAW, frame).expect("a sound header"));
    let may_be_tunnel = decode(LinkType::RAW, frame).may_be_tunnel();
    assert!(may_be_tunnel || (found.depth, found.closed) == (0, None), "a tunnel where none may be");
    found
}

/// The tunnels in a frame; also checks where they lead.
fn depth(frame: &[u8]) -> u8 {
    let found = open(frame);
    assert_eq!(found.closed, None);
    if found.depth > 0 {
        assert_eq!(found.located.source, mapped(0x0a00_0001));
        let datagram = datagram_at(&frame[..found.end], found.located.at, frame.len() as u32).expect("a datagram");
        assert_eq!(&datagram.payload[8..], b"payload");
    }
    found.depth
}

#[test]
fn each_tunnel_is_opened_where_its_headers_fit() {
    let (ip, frame) = (inner(), ethernet(0x0800, &inner()));
    let tagged = ethernet(0x8100, &[&[0, 7, 0x88, 0x47, 0, 0, 0x11, 64][..], &ip].concat());
    let gre = |headers: &[u8], payload: &[u8]| v4(47, &[headers, payload].concat());
    let on = |port: u16, headers: &[u8], payload: &[u8]| v4(UDP, &udp(port, &[headers, payload].concat()));
    let vxlan = [8, 0, 0, 0, 0, 0, 1, 0];
    let gtp = |flags: u8, length: usize, rest: &[u8]| [&[flags, 255, 0, length as u8, 0, 0, 0, 1][..], rest].concat();
    let erspan_2 = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 0];
    let erspan_3 = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let changed = |bytes: &[u8], at: usize, value: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] = value;
        bytes
    };
    let ppp = |protocol: &[u8], length: usize| [&[0x20, 1, 0x88, 0x0b, 0, length as u8, 0, 1][..], protocol].concat();
    let length = ip.len();
    let chain = |extensions: usize| {
        let next = (0..=extensions).map(|number| if number == extensions { [1, 0, 0, 0] } else { [1, 0, 0, 0x85] });
        next.collect::<Vec<_>>().concat()
    };
    for (name, expected, frame) in [
        ("IPv4 in IPv4", 1, v4(4, &ip)),
        ("IPv4 in IPv6", 1, v6(4, &ip)),
        ("IPv4 behind an extension header of IPv6", 1, v6(60, &[&[4, 0, 0, 0, 0, 0, 0, 0][..], &ip].concat())),
        ("protocol 41 carries IPv6 only", 0, v4(41, &ip)),
        ("protocol 4 carries IPv4 only", 0, v4(4, &v6(59, &[]))),
        ("an inner header that is cut", 0, v4(4, &ip[..19])),
        ("GRE", 1, gre(&[0, 0, 8, 0], &ip)),
        ("GRE with all fields", 1, gre(&[0xb0, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], &ip)),
        ("GRE with routing", 0, gre(&[0x40, 0, 8, 0, 0, 0, 0, 0], &ip)),
        ("GRE with reserved bits", 0, gre(&[0x08, 0, 8, 0], &ip)),
        ("GRE of version 2", 0, gre(&[0, 2, 8, 0], &ip)),
        ("GRE with a key that is cut", 0, v4(47, &[0x20, 0, 8, 0, 1])),
        ("GRE with ARP", 0, gre(&[0, 0, 8, 6], &ip)),
        ("NVGRE", 1, gre(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 1], &frame)),
        ("NVGRE, tags and labels", 1, gre(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 1], &tagged)),
        ("MPLS in GRE", 1, gre(&[0, 0, 0x88, 0x47, 0, 0, 0x11, 64], &ip)),
        ("ERSPAN I", 1, gre(&[0, 0, 0x88, 0xbe], &frame)),
        ("ERSPAN II", 1, gre(&erspan_2, &frame)),
        ("ERSPAN II of another version", 0, gre(&changed(&erspan_2, 8, 0x20), &frame)),
        ("ERSPAN III", 1, gre(&erspan_3, &frame)),
        ("ERSPAN III, a platform's header", 1, gre(&[&changed(&erspan_3, 19, 1)[..], &[0; 8]].concat(), &frame)),
        ("ERSPAN III with IP", 1, gre(&changed(&erspan_3, 18, 2 << 2), &ip)),
        ("ERSPAN III with another frame", 0, gre(&changed(&erspan_3, 18, 1 << 2), &frame)),
        ("ERSPAN III of another version", 0, gre(&changed(&erspan_3, 8, 0x10), &frame)),
        ("PPTP", 1, gre(&ppp(&[0xff, 3, 0, 0x21], length + 4), &ip)),
        ("PPTP, PPP's short form", 1, gre(&ppp(&[0x21], length + 1), &ip)),
        ("PPTP, another protocol of PPP", 0, gre(&ppp(&[0xc0, 0x21], length + 2), &ip)),
        ("PPTP whose payload is shorter", 0, gre(&ppp(&[0x21], 19), &ip)),
        ("PPTP with a checksum", 0, gre(&[0xa0, 1, 0x88, 0x0b, 0, 99, 0, 99, 0, length as u8 + 1, 0, 1, 0x21], &ip)),
        ("PPP without a key", 0, gre(&[0, 1, 0x88, 0x0b, 0x21], &ip)),
        ("EtherIP", 1, v4(97, &[&[0x30, 0][..], &frame].concat())),
        ("EtherIP, tags and labels", 1, v4(97, &[&[0x30, 0][..], &tagged].concat())),
        ("EtherIP of another version", 0, v4(97, &[&[0x40, 0][..], &frame].concat())),
        ("EtherIP with reserved bits", 0, v4(97, &[&[0x30, 1][..], &frame].concat())),
        ("behind an authentication header", 1, v4(51, &[&[4, 1, 0, 0][..], &[9; 8], &ip].concat())),
        ("VXLAN", 1, on(4789, &vxlan, &frame)),
        ("VXLAN on Linux's port", 1, on(8472, &vxlan, &tagged)),
        ("VXLAN on another port", 0, on(4790, &vxlan, &frame)),
        ("VXLAN whose number does not hold", 0, on(4789, &changed(&vxlan, 0, 0), &frame)),
        ("VXLAN, cut", 0, on(4789, &vxlan, &frame[..30])),
        ("Geneve", 1, on(6081, &[0, 0, 0x65, 0x58, 0, 0, 1, 0], &frame)),
        ("Geneve with options and IP", 1, on(6081, &[1, 0, 8, 0, 0, 0, 1, 0, 9, 9, 9, 9], &ip)),
        ("Geneve for its own ends", 0, on(6081, &[0, 0x80, 0x65, 0x58, 0, 0, 1, 0], &frame)),
        ("Geneve of version 1", 0, on(6081, &[0x40, 0, 0x65, 0x58, 0, 0, 1, 0], &frame)),
        ("Geneve, options cut", 0, on(6081, &[0x3f, 0, 0x65, 0x58, 0, 0, 1, 0], &frame)),
        ("GTP", 1, on(2152, &gtp(0x30, length, &[]), &ip)),
        ("GTP with fields", 1, on(2152, &gtp(0x32, length + 4, &[0, 1, 0, 0]), &ip)),
        ("GTP, two extensions", 1, on(2152, &gtp(0x34, length + 12, &[0, 0, 0, 1, 1, 0, 0, 2, 1, 0, 0, 0]), &ip)),
        ("GTP, eight extensions", 1, on(2152, &gtp(0x34, length + 36, &chain(8)), &ip)),
        ("GTP, nine extensions", 0, on(2152, &gtp(0x34, length + 40, &chain(9)), &ip)),
        ("GTP, an extension without length", 0, on(2152, &gtp(0x34, length + 8, &[0, 0, 0, 1, 0, 0, 0, 0]), &ip)),
        ("GTP, an extension that is cut", 0, on(2152, &gtp(0x34, length + 4, &[0, 0, 0, 1]), &[99; 30])),
        ("GTP, nothing behind its extension", 0, on(2152, &gtp(0x34, 8, &[0, 0, 0, 1, 1, 0, 0, 0]), &[])),
        ("padding behind the outer packet", 1, [v4(4, &ip), vec![0; 6]].concat()),
        ("GTP of version 2", 0, on(2152, &gtp(0x50, length, &[]), &ip)),
        ("GTP that carries no packet", 0, on(2152, &changed(&gtp(0x30, length, &[]), 1, 1), &ip)),
        ("GTP that is longer than it says", 0, on(2152, &gtp(0x30, length - 1, &[]), &ip)),
        ("TCP", 0, v4(TCP, &udp(4789, &[&vxlan[..], &frame].concat()))),
        ("behind the end of the datagram", 0, [v4(UDP, &udp(4789, &[])), vxlan.to_vec(), frame].concat()),
    ] {
        assert_eq!(depth(&frame), expected, "{name}");
    }
}

#[test]
fn l2tp_is_opened_from_and_to_its_port() {
    let (ip, frame) = (inner(), ethernet(0x0800, &inner()));
    let long = |bits: u8, length: usize, rest: &[u8]| [&[0x40 | bits, 2, 0, length as u8][..], rest].concat();
    let (ids, length) = ([0, 1, 0, 2], ip.len());
    let data = |header: &[u8], ppp: &[u8]| [header, ppp, &ip].concat();
    let ppp = [0xff, 3, 0, 0x21];
    let mut six = v6(UDP, &udp(53, b"payload"));
    six[8..24].copy_from_slice(&mapped(0x0a00_0001).to_be_bytes());
    for (name, expected, payload) in [
        ("no fields", 1, data(&[&[0, 2][..], &ids].concat(), &ppp)),
        ("PPP without address and control", 1, data(&[&[0, 2][..], &ids].concat(), &[0, 0x21])),
        ("a protocol of one byte", 1, data(&[&[0, 2][..], &ids].concat(), &[0x21])),
        ("another protocol of PPP", 0, data(&[&[0, 2][..], &ids].concat(), &[0xc0, 0x21])),
        ("IPv6", 1, [&[0, 2][..], &ids, &[0xff, 3, 0, 0x57], &six].concat()),
        ("a length", 1, data(&long(0, 12 + length, &ids), &ppp)),
        ("a length, cut", 1, data(&long(0, 99 + length, &ids), &ppp)),
        ("a length that ends before", 0, data(&long(0, 12 + 19, &ids), &ppp)),
        ("a length shorter than the header", 0, data(&long(0, 3, &ids), &ppp)),
        ("a sequence", 1, data(&[&[8, 2][..], &ids, &[0, 3, 0, 4]].concat(), &ppp)),
        ("an offset", 1, data(&[&[2, 2][..], &ids, &[0, 3, 7, 7, 7]].concat(), &ppp)),
        ("an offset of nothing", 1, data(&[&[2, 2][..], &ids, &[0, 0]].concat(), &ppp)),
        ("an offset behind the end", 0, data(&[&[2, 2][..], &ids, &[9, 0]].concat(), &ppp)),
        ("priority", 1, data(&[&[1, 2][..], &ids].concat(), &ppp)),
        ("all fields", 1, data(&long(0xb, 20 + length, &[&ids[..], &[0, 3, 0, 4, 0, 2, 7, 7]].concat()), &ppp)),
        ("control", 0, data(&long(0x88, 16 + length, &[&ids[..], &[0, 3, 0, 4]].concat()), &ppp)),
        ("a reserved bit", 0, data(&[&[0x10, 2][..], &ids].concat(), &ppp)),
        ("version 1", 0, data(&[&[0, 1][..], &ids].concat(), &ppp)),
        ("cut", 0, vec![0, 2, 0, 1, 0]),
        ("version 3", 1, [&[0, 3, 0, 0, 0, 0, 0, 1][..], &frame].concat()),
        ("version 3, a cookie", 1, [&[0, 3, 0, 0, 0, 0, 0, 1][..], &[9; 8], &frame].concat()),
        ("version 3, control", 0, [&[0, 3, 0, 0, 0, 0, 0, 0][..], &frame].concat()),
    ] {
        for (source, destination) in [(5000, 1701), (1701, 5000), (1701, 1701)] {
            assert_eq!(depth(&v4(UDP, &between(source, destination, &payload))), expected, "{name}");
        }
        assert_eq!(depth(&v4(UDP, &udp(1702, &payload))), 0, "{name}");
    }
    // A cookie of two lengths, and the header of Ethernet or none.
    let tagged = ethernet(0x8100, &[&[0, 7, 8, 0][..], &ip].concat());
    for between in 0..20 {
        for frame in [&frame, &tagged] {
            let packet = v4(115, &[&[0, 0, 0, 1][..], &vec![0; between], frame].concat());
            assert_eq!(depth(&packet), u8::from([0, 4, 8, 12].contains(&between)), "{between}");
        }
    }
    assert_eq!(depth(&v4(115, &[&[0; 4][..], &frame].concat())), 0, "control");
    assert_eq!(depth(&v4(115, &[&[0, 0, 0, 1][..], &frame[..33]].concat())), 0, "no sound header");
}

#[test]
fn teredo_and_mpls_are_opened_where_lengths_fit() {
    let mut six = v6(UDP, &udp(53, b"payload"));
    six[8..24].copy_from_slice(&mapped(0x0a00_0001).to_be_bytes());
    let origin = [0, 0, 0x63, 0xbf, 0x3f, 0xff, 0xfd, 0xfe];
    let plain = [0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    let long = [0, 1, 2, 3, 9, 9, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8, 0];
    for (name, expected, payload) in [
        ("IPv6 alone", 1, six.clone()),
        ("origin", 1, [&origin[..], &six].concat()),
        ("authentication", 1, [&plain[..], &six].concat()),
        ("authentication with its parts", 1, [&long[..], &six].concat()),
        ("both", 1, [&long[..], &origin, &six].concat()),
        ("both, in the other order", 0, [&origin[..], &plain, &six].concat()),
        ("authentication, cut", 0, long[..12].to_vec()),
        ("origin, cut", 0, origin[..5].to_vec()),
        ("IPv4", 0, inner()),
        ("more than the packet", 0, [&six[..], &[0]].concat()),
        ("less than the packet", 0, six[..six.len() - 1].to_vec()),
    ] {
        for (source, destination) in [(5000, 3544), (3544, 5000), (3544, 3544)] {
            assert_eq!(depth(&v4(UDP, &between(source, destination, &payload))), expected, "{name}");
        }
        assert_eq!(depth(&v4(UDP, &udp(3545, &payload))), 0, "{name}");
    }
    // A query whose first byte looks like a version.
    assert_eq!(depth(&v4(UDP, &between(53, 3544, &[&[0x60, 1, 0x81, 0x80, 0, 1, 0, 1][..], &[0; 60]].concat()))), 0);
    let labels = [0, 1, 0, 64, 0, 2, 1, 64];
    for (name, expected, payload) in [
        ("IPv4", 1, [&labels[..], &inner()].concat()),
        ("IPv6", 1, [&labels[..], &six].concat()),
        ("Ethernet", 1, [&labels[..], &[0; 4], &ethernet(0x0800, &inner())].concat()),
        ("more than the packet", 0, [&labels[..], &inner(), &[0]].concat()),
        ("less than the packet", 0, [&labels[..], &inner()[..30]].concat()),
        ("no bottom", 0, labels[..4].to_vec()),
    ] {
        assert_eq!(depth(&v4(UDP, &udp(6635, &payload))), expected, "{name}");
        assert_eq!(depth(&v4(UDP, &between(6635, 5000, &payload))), 0, "{name}");
    }
    // What was not captured counts.
    for (payload, port) in [(six, 3544), ([&labels[..], &inner()].concat(), 6635)] {
        let packet = v4(UDP, &udp(port, &payload));
        assert_eq!(open(&packet[..packet.len() - 3]).depth, 1, "{port}");
    }
}

#[test]
fn a_tunnel_too_deep_and_a_fragment_are_told_apart_from_none() {
    let mut frame = inner();
    for depth in 1..=DEEPEST + 1 {
        frame = v4(4, &frame);
        let found = open(&frame);
        assert_eq!(found.depth, depth.min(DEEPEST));
        assert_eq!(found.closed, (depth > DEEPEST).then_some(Closed::TooDeep), "{depth}");
    }
    let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &ethernet(0x0800, &inner())].concat();
    for (fragment, frame, closed) in [
        ([0x20, 0], v4(4, &inner()), true),
        ([0x20, 0], v4(47, &[&[0, 0, 8, 0][..], &inner()].concat()), true),
        ([0x20, 0], v4(47, &inner()), false),
        ([0x20, 0], v4(51, &[&[4, 1, 0, 0][..], &[9; 8], &inner()].concat()), true),
        ([0x20, 0], v4(51, &[4, 1, 0, 0]), false),
        ([0, 1], v4(47, &[&[0, 0, 8, 0][..], &inner()].concat()), false),
        ([0x20, 0], v4(UDP, &udp(4789, b"no tunnel")), false),
        ([0x20, 0], v4(UDP, &udp(4789, &vxlan)), true),
        ([0x20, 0], v4(UDP, &udp(53, &vxlan)), false),
        // What follows no longer has ports.
        ([0, 1], v4(UDP, &udp(4789, &vxlan)), false),
        ([0x20, 0], v4(TCP, &udp(4789, &vxlan)), false),
    ] {
        let mut frame = frame;
        frame[6..8].copy_from_slice(&fragment);
        let found = open(&frame);
        assert_eq!((found.depth, found.closed), (0, closed.then_some(Closed::Fragmented)), "{frame:?}");
    }
    // Of IPv6 the options may stand behind the fragment header.
    for options in [&[][..], &[4, 0, 4, 1, 3, 0, 0, 0]] {
        let next = if options.is_empty() { 4 } else { 60 };
        let fragment = [&[next, 0, 0, 1, 0, 0, 0, 9][..], options, &inner()].concat();
        assert_eq!(open(&v6(44, &fragment)).closed, Some(Closed::Fragmented), "{options:?}");
    }
    // The lengths outside say where a packet ends.
    let mut longer = inner();
    longer[3] += 8;
    let frame = [v4(4, &longer), b"padding!".to_vec()].concat();
    let found = open(&frame);
    let datagram = datagram_at(&frame[..found.end], found.located.at, frame.len() as u32).expect("a datagram");
    assert_eq!((&datagram.payload[8..], datagram.cut), (&b"payload"[..], 8));
    // What lies in the padding is inside of nothing.
    assert_eq!(open(&[v4(4, &v4(4, &[])), inner()].concat()).depth, 1);
    // A fragment inside is a packet like any other.
    let mut fragment = inner();
    fragment[6] = 0x20;
    let frame = v4(4, &fragment);
    assert_eq!(open(&frame).depth, 1);
    assert!(datagram_at(&frame, open(&frame).located.at, 0).expect("a datagram").fragment.is_some());
}

#[test]
fn the_outermost_packet_names_the_tunnel() {
    let vxlan = v4(UDP, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &ethernet(0x0800, &v4(4, &inner()))].concat()));
    let tunnel = Tunnel::of(&vxlan).expect("a tunnel");
    let expected = Tunnel {
        source: mapped(0xc000_0201),
        destination: mapped(0xc000_0202),
        source_port: 5000,
        destination_port: 4789,
        protocol: UDP,
        depth: 2,
    };
    assert_eq!(tunnel, expected);
    let turned = Tunnel { source: expected.destination, destination: expected.source, ..expected };
    assert_eq!(tunnel.turned(), turned);
    let gre = Tunnel::of(&v6(47, &[&[0, 0, 8, 0][..], &inner()].concat())).expect("a tunnel");
    assert_eq!((gre.protocol, gre.source_port, gre.destination_port, gre.depth), (47, 0, 0, 1));
    assert_eq!(gre.source, u128::from_be_bytes([7; 16]));
    assert_eq!((Tunnel::of(&inner()), Tunnel::of(&[])), (None, None));
}

proptest! {
    #[test]
    fn whatever_bytes_lead_into_the_frame(
        start in prop::collection::vec(prop::sample::select(synth::Tunnel::ALL.to_vec()), 0..4),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut frame = ethernet(0x0800, &inner());
        frame.extend(bytes);
        for (number, tunnel) in start.into_iter().enumerate() {
            let record = Record { time_ns: 0, wire_len: frame.len() as u32, link: LinkType::ETHERNET, data: &frame };
            // Every second one is IPv6, which Teredo carries alone.
            frame = tunnel.wrap(&record, number % 2 == 0).unwrap_or(frame);
        }
        for (at, value) in changes {
            *at.get_mut(&mut frame) = value;
        }
        frame.truncate(cut.index(frame.len() + 1));
        fuzz::tunnels(&frame);
    }
}
