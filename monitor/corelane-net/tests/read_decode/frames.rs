//! Decoding frames: one packet, dressed in everything that may stand in front of it.

use corelane_net::capture::{LinkType, Record};
use corelane_net::decode::{Decoded, TCP, Transport, UDP, datagram, datagram_at, decode, transport};

const SYN: u8 = 0x02;

fn tcp() -> Vec<u8> {
    let mut header = [1234_u16.to_be_bytes(), 80_u16.to_be_bytes()].concat();
    header.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, SYN, 4, 0, 0, 0, 0, 0]);
    header
}

fn udp() -> Vec<u8> {
    [1234_u16, 80, 8, 0].map(u16::to_be_bytes).concat()
}

fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 192, 168, 0, 2]);
    packet.extend(payload);
    packet
}

const V6_SOURCE: u128 = 0x2001_0db8_0000_0000_0000_0000_0000_0001;
const V6_DESTINATION: u128 = 0xfe80_0000_0000_0000_0000_0000_0000_0002;

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend(V6_SOURCE.to_be_bytes());
    packet.extend(V6_DESTINATION.to_be_bytes());
    packet.extend(payload);
    packet
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

fn on_ethernet(kind: u16, payload: &[u8]) -> Decoded {
    decode(LinkType::ETHERNET, &ethernet(kind, payload))
}

fn v4_of(protocol: u8) -> Decoded {
    Decoded::V4(Transport {
        source: 0x0a00_0001,
        destination: 0xc0a8_0002,
        source_port: 1234,
        destination_port: 80,
        protocol,
        flags: if protocol == TCP { SYN } else { 0 },
        hops: 64,
        is_at_zero: false,
    })
}

fn v6_of(protocol: u8) -> Decoded {
    Decoded::V6(Transport {
        source: V6_SOURCE,
        destination: V6_DESTINATION,
        source_port: 1234,
        destination_port: 80,
        protocol,
        flags: if protocol == TCP { SYN } else { 0 },
        hops: 64,
        is_at_zero: false,
    })
}

#[test]
fn transports_over_both_versions() {
    assert_eq!(on_ethernet(0x0800, &v4(TCP, &tcp())), v4_of(TCP));
    assert_eq!(on_ethernet(0x0800, &v4(UDP, &udp())), v4_of(UDP));
    assert_eq!(on_ethernet(0x86dd, &v6(TCP, &tcp())), v6_of(TCP));
    assert_eq!(on_ethernet(0x86dd, &v6(UDP, &udp())), v6_of(UDP));
    for protocol in [1, 2, 4, 41, 47, 50, 58, 132] {
        assert_eq!(on_ethernet(0x0800, &v4(protocol, &v4(TCP, &tcp()))), Decoded::OtherIp);
        assert_eq!(on_ethernet(0x86dd, &v6(protocol, &v6(TCP, &tcp()))), Decoded::OtherIp);
    }
}

#[test]
fn flags_come_as_they_are() {
    for flags in 0..=255 {
        let mut header = tcp();
        header[13] = flags;
        let Decoded::V4(packet) = on_ethernet(0x0800, &v4(TCP, &header)) else { panic!() };
        assert_eq!(packet.flags, flags);
    }
}

#[test]
fn hops_come_as_they_are() {
    for hops in [0, 1, 30, 255] {
        for protocol in [TCP, UDP] {
            let payload = if protocol == TCP { tcp() } else { udp() };
            let (mut four, mut six) = (v4(protocol, &payload), v6(protocol, &payload));
            (four[8], six[7]) = (hops, hops);
            let Decoded::V4(packet) = on_ethernet(0x0800, &four) else { panic!() };
            assert_eq!(packet.hops, hops);
            let Decoded::V6(packet) = on_ethernet(0x86dd, &six) else { panic!() };
            assert_eq!(packet.hops, hops);
        }
    }
}

/// On the fast path of Ethernet and on the general one, and no datagram is, whatever stands there.
#[test]
fn a_sequence_number_of_zero_is_told() {
    for (protocol, at_zero) in [(TCP, true), (UDP, false)] {
        for number in [0_u32, 1, 1 << 8, 1 << 16, 1 << 31] {
            let mut payload = tcp();
            payload[4..8].copy_from_slice(&number.to_be_bytes());
            let (four, six) = (v4(protocol, &payload), v6(protocol, &payload));
            let raw = |packet: &[u8]| decode(LinkType::RAW, packet);
            for decoded in [on_ethernet(0x0800, &four), raw(&four), on_ethernet(0x86dd, &six), raw(&six)] {
                let found = match decoded {
                    Decoded::V4(packet) => packet.is_at_zero,
                    Decoded::V6(packet) => packet.is_at_zero,
                    other => panic!("{other:?}"),
                };
                assert_eq!(found, at_zero && number == 0, "{protocol} {number:#x} {decoded:?}");
            }
        }
    }
}

#[test]
fn link_types() {
    let (four, six) = (v4(TCP, &tcp()), v6(UDP, &udp()));
    for link in [LinkType::RAW, LinkType::RAW_12, LinkType::RAW_14] {
        assert_eq!(decode(link, &four), v4_of(TCP));
        assert_eq!(decode(link, &six), v6_of(UDP));
        assert_eq!(decode(link, &[0x55; 60]), Decoded::Malformed);
        assert_eq!(decode(link, &[]), Decoded::Malformed);
    }
    assert_eq!(decode(LinkType::IPV4, &four), v4_of(TCP));
    assert_eq!(decode(LinkType::IPV4, &six), Decoded::Malformed);
    assert_eq!(decode(LinkType::IPV6, &six), v6_of(UDP));
    assert_eq!(decode(LinkType::IPV6, &four), Decoded::Malformed);
    for link in [LinkType::NULL, LinkType::LOOP] {
        for order in [u32::to_le_bytes, u32::to_be_bytes] {
            assert_eq!(decode(link, &[&order(2), &four[..]].concat()), v4_of(TCP));
            for family in [10, 24, 28, 30] {
                assert_eq!(decode(link, &[&order(family), &six[..]].concat()), v6_of(UDP));
            }
            assert_eq!(decode(link, &[&order(7), &four[..]].concat()), Decoded::Undecoded);
        }
        assert_eq!(decode(link, &[2, 0, 0]), Decoded::Undecoded);
    }
    let cooked = |kind: u16, payload: &[u8]| [&[0; 14], &kind.to_be_bytes()[..], payload].concat();
    assert_eq!(decode(LinkType::LINUX_SLL, &cooked(0x0800, &four)), v4_of(TCP));
    assert_eq!(decode(LinkType::LINUX_SLL, &cooked(0x86dd, &six)), v6_of(UDP));
    assert_eq!(decode(LinkType::LINUX_SLL, &cooked(0x0806, &four)), Decoded::Undecoded);
    assert_eq!(decode(LinkType::LINUX_SLL, &[0; 15]), Decoded::Undecoded);
    let cooked_2 = |kind: u16, payload: &[u8]| [&kind.to_be_bytes()[..], &[0; 18], payload].concat();
    assert_eq!(decode(LinkType::LINUX_SLL2, &cooked_2(0x0800, &four)), v4_of(TCP));
    assert_eq!(decode(LinkType::LINUX_SLL2, &cooked_2(0x86dd, &six)), v6_of(UDP));
    assert_eq!(decode(LinkType::LINUX_SLL2, &[8; 19]), Decoded::Undecoded);
    for (four_is, six_is) in
        [(&[0xff, 3, 0, 0x21][..], &[0xff, 3, 0, 0x57][..]), (&[0, 0x21], &[0, 0x57]), (&[0x21], &[0x57])]
    {
        assert_eq!(decode(LinkType::PPP, &[four_is, &four].concat()), v4_of(TCP));
        assert_eq!(decode(LinkType::PPP, &[six_is, &six].concat()), v6_of(UDP));
    }
    assert_eq!(decode(LinkType::PPP, &[&[0xff, 3, 0xc0, 0x21], &four[..]].concat()), Decoded::Undecoded);
    assert_eq!(decode(LinkType::PPP, &[0xff, 3, 0]), Decoded::Undecoded);
    assert_eq!(decode(LinkType(147), &four), Decoded::Undecoded);
}

#[test]
fn serial_lines() {
    let packet = v4(TCP, &tcp());
    for (link, before, is_read) in [
        (LinkType::PPP_HDLC, &[0xff, 3, 0, 0x21][..], true),
        (LinkType::PPP_HDLC, &[0xff, 3, 0x21], true),
        (LinkType::PPP_HDLC, &[0x21], true),
        (LinkType::PPP_HDLC, &[0x0f, 0, 8, 0], true),
        (LinkType::PPP_HDLC, &[0x8f, 0, 8, 0], true),
        (LinkType::PPP_HDLC, &[0xff, 3, 0xc0, 0x21], false),
        (LinkType::PPP_HDLC, &[0xff, 3, 2, 0x81, 0, 0, 0x11, 64], true),
        (LinkType::CISCO_HDLC, &[0x0f, 0, 8, 0], true),
        (LinkType::CISCO_HDLC, &[0x8f, 0, 8, 0], true),
        (LinkType::CISCO_HDLC, &[0x0f, 0, 0x88, 0x47, 0, 0, 0x11, 64], true),
        (LinkType::CISCO_HDLC, &[0x0f, 0, 0x80, 0x35], false),
        (LinkType::CISCO_HDLC, &[0xff, 3, 0, 0x21], true),
        (LinkType::PPPOE, &[0x11, 0, 0, 7, 0, 42, 0, 0x21], true),
        (LinkType::PPPOE, &[0x11, 0, 0, 7, 0, 41, 0x21], true),
        (LinkType::PPPOE, &[0x11, 9, 0, 0, 0, 42, 1, 1, 0, 0], false),
        (LinkType::PPP_DIRECTION, &[0, 0xff, 3, 0, 0x21], true),
        (LinkType::PPP_DIRECTION, &[1, 0, 0x21], true),
        (LinkType::PPP_DIRECTION, &[1, 0x21], true),
        (LinkType::PPP_PPPD, &[0, 3, 0, 0x21], true),
        (LinkType::PPP_PPPD, &[1, 3, 0x21], true),
        (LinkType::PPP_PPPD, &[1, 0xff, 3, 0, 0x21], true),
        (LinkType::PPP_PPPD, &[1, 3, 0xc0, 0x21], false),
    ] {
        let expected = if is_read { v4_of(TCP) } else { Decoded::Undecoded };
        assert_eq!(decode(link, &[before, &packet].concat()), expected, "{link:?} {before:x?}");
        for cut in 0..before.len().min(3) {
            assert_eq!(decode(link, &before[..cut]), Decoded::Undecoded, "{link:?} {before:x?} {cut}");
        }
    }
    let six = v6(UDP, &udp());
    assert_eq!(decode(LinkType::CISCO_HDLC, &[&[0x0f, 0, 0x86, 0xdd], &six[..]].concat()), v6_of(UDP));
    assert_eq!(decode(LinkType::PPP_HDLC, &[&[0xff, 3, 0, 0x57], &six[..]].concat()), v6_of(UDP));
    assert_eq!(decode(LinkType::PPPOE, &[&[0x11, 0, 0, 7, 0, 42, 0x57], &six[..]].concat()), v6_of(UDP));
}

#[test]
fn packets_that_the_packet_filter_logged() {
    let (four, six) = (v4(TCP, &tcp()), v6(UDP, &udp()));
    for order in [u16::to_le_bytes, u16::to_be_bytes] {
        let attribute = |kind: u16, value: &[u8]| {
            let mut bytes = [order(4 + value.len() as u16), order(kind)].concat();
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let log = |family: u8, attributes: &[Vec<u8>]| [&[family, 0, 0, 7], &attributes.concat()[..]].concat();
        let of = |family: u8, attributes: &[Vec<u8>]| decode(LinkType::NFLOG, &log(family, attributes));
        let header = attribute(1, &[8, 0, 1, 0]);
        // Behind a prefix whose length is no multiple of four, and one with a flag.
        let many = [header.clone(), attribute(10, b"in: "), attribute(0x8014, &[7; 9]), attribute(9, &four)];
        assert_eq!(of(2, &many), v4_of(TCP));
        assert_eq!(of(2, &[attribute(9, &four)]), v4_of(TCP));
        assert_eq!(of(10, &[header.clone(), attribute(9, &six), attribute(4, &[0; 4])]), v6_of(UDP));
        assert_eq!(of(7, &[attribute(9, &six)]), v6_of(UDP), "a bridge");
        assert_eq!(of(3, &[attribute(9, &[0, 1, 8, 0, 6, 4])]), Decoded::Undecoded, "ARP");
        assert_eq!(of(2, std::slice::from_ref(&header)), Decoded::Undecoded, "no packet");
        assert_eq!(of(2, &[[order(3), order(1)].concat(), attribute(9, &four)]), Decoded::Undecoded, "a length of 3");
        assert_eq!(of(2, &[[order(99), order(1)].concat()]), Decoded::Undecoded, "a length behind the end");
        for cut in 0..log(2, &many).len() - four.len() {
            assert_eq!(decode(LinkType::NFLOG, &log(2, &many)[..cut]), Decoded::Undecoded, "{cut}");
        }
    }
}

/// LLC and SNAP in front of IPv4.
const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

/// A header of 802.11 with these two first bytes, a sequence number and what follows it.
fn wifi(kind: u8, flags: u8, rest: &[u8]) -> Vec<u8> {
    [&[kind, flags, 0, 0][..], &[2; 18], &[0x30, 5], rest].concat()
}

#[test]
fn frames_of_802_11() {
    let packet = v4(TCP, &tcp());
    let aggregate = [&[2; 12][..], &[9, 4]].concat();
    let fragment = |number: u8| {
        let mut header = wifi(0x08, 4, &[]);
        header[22] |= number;
        header
    };
    let plain = [
        ("from a station", wifi(0x08, 1, &[]), true),
        ("to a station", wifi(0x08, 2, &[]), true),
        ("among stations", wifi(0x08, 0, &[]), true),
        ("again, with more to come, and saving power", wifi(0x08, 0x39, &[]), true),
        ("four addresses", wifi(0x08, 3, &[2; 6]), true),
        ("data with an acknowledgment", wifi(0x18, 1, &[]), true),
        ("quality of service", wifi(0x88, 1, &[5, 0]), true),
        ("quality of service, four addresses", wifi(0x88, 3, &[2, 2, 2, 2, 2, 2, 5, 0]), true),
        ("control of high throughput", wifi(0x88, 0x81, &[5, 0, 1, 2, 3, 4]), true),
        ("all of it", wifi(0x88, 0x83, &[2, 2, 2, 2, 2, 2, 5, 0, 1, 2, 3, 4]), true),
        ("strictly ordered, without quality", wifi(0x08, 0x81, &[]), true),
        ("aggregated", wifi(0x88, 1, &[&[0x85, 0][..], &aggregate].concat()), true),
        ("aggregated, four addresses", wifi(0x88, 3, &[&[2; 6][..], &[0x85, 0], &aggregate].concat()), true),
        ("the first fragment", fragment(0), true),
        ("the second fragment", fragment(1), false),
        ("protected", wifi(0x08, 0x41, &[]), false),
        ("no data", wifi(0x48, 1, &[]), false),
        ("quality of service, no data", wifi(0xc8, 1, &[5, 0]), false),
        ("a beacon", wifi(0x80, 0, &[]), false),
        ("control", wifi(0xb4, 0, &[]), false),
        ("version 1", wifi(0x09, 1, &[]), false),
    ];
    for (name, header, is_read) in plain {
        let frame = [&header[..], &SNAP, &packet].concat();
        let expected = if is_read { v4_of(TCP) } else { Decoded::Undecoded };
        assert_eq!(decode(LinkType::WIFI, &frame), expected, "{name}");
        for cut in 0..header.len() + SNAP.len() {
            assert_eq!(decode(LinkType::WIFI, &frame[..cut]), Decoded::Undecoded, "{name}, {cut}");
        }
        // Behind other headers, and in front of a checksum.
        let frame = [&frame[..], &[1, 2, 3, 4]].concat();
        let avs = [&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[7; 56]].concat();
        for link in [LinkType::AVS, LinkType::PRISM] {
            assert_eq!(decode(link, &[&avs[..], &frame].concat()), expected, "{name}, {link:?}");
            assert_eq!(decode(link, &avs), Decoded::Undecoded);
        }
        assert_eq!(decode(LinkType::PRISM, &[&[7; 144][..], &frame].concat()), expected, "{name}, Prism");
        assert_eq!(decode(LinkType::PRISM, &[7; 143]), Decoded::Undecoded);
        // Flags: without any, in front of the checksum, padded; behind the time, which is aligned; behind more words.
        let none = [0, 0, 8, 0, 0, 0, 0, 0].to_vec();
        let flags = |flags: u8| vec![0, 0, 9, 0, 2, 0, 0, 0, flags];
        let timed = |flags: u8| [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[0x20; 8], &[flags]].concat();
        let words =
            |flags: u8| [&[0, 0, 25, 0, 3, 0, 0, 0xa0, 0x20, 0x20, 0x20, 0x20][..], &[0x20; 12], &[flags]].concat();
        let more = |flags: u8| {
            let mut header = words(flags);
            header[8..12].copy_from_slice(&[0, 0, 0, 0x80]);
            header[12..16].copy_from_slice(&[0; 4]);
            header
        };
        let mut padded = header.clone();
        padded.resize(header.len().next_multiple_of(4), 0x55);
        let padded = [&padded[..], &frame[header.len()..]].concat();
        for before in [none, flags(0x10), timed(0x10), words(0), more(0)] {
            assert_eq!(decode(LinkType::RADIOTAP, &[&before[..], &frame].concat()), expected, "{name} {before:x?}");
            for cut in 0..before.len() {
                assert_eq!(decode(LinkType::RADIOTAP, &before[..cut]), Decoded::Undecoded, "{name}, {cut}");
            }
        }
        if !name.contains("aggregated") {
            for before in [flags(0x30), timed(0x20), words(0x20), more(0x20)] {
                let decoded = decode(LinkType::RADIOTAP, &[&before[..], &padded].concat());
                assert_eq!(decoded, expected, "{name}, padded {before:x?}");
            }
        }
    }
    assert_eq!(decode(LinkType::RADIOTAP, &[1, 0, 8, 0, 0, 0, 0, 0]), Decoded::Undecoded, "version 1");
    let six = [&wifi(0x08, 1, &[])[..], &SNAP[..6], &[0x86, 0xdd], &v6(UDP, &udp())].concat();
    assert_eq!(decode(LinkType::WIFI, &six), v6_of(UDP));
}

#[test]
fn no_ip_header_is_reached() {
    for kind in [0x0806, 0x88cc, 0x0040, 0x88e5] {
        assert_eq!(on_ethernet(kind, &v4(TCP, &tcp())), Decoded::Undecoded);
    }
    for len in 0..14 {
        assert_eq!(decode(LinkType::ETHERNET, &ethernet(0x0800, &[])[..len]), Decoded::Undecoded);
    }
}

fn tagged(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[0x20, 5], &kind.to_be_bytes()[..], payload].concat()
}

#[test]
fn vlan_tags_nest() {
    let packet = v4(TCP, &tcp());
    for outer in [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300] {
        let one = tagged(0x0800, &packet);
        assert_eq!(on_ethernet(outer, &one), v4_of(TCP));
        let mut many = one;
        for _ in 0..9 {
            many = tagged(0x8100, &many);
            assert_eq!(on_ethernet(outer, &many), v4_of(TCP));
        }
        assert_eq!(on_ethernet(outer, &tagged(0x86dd, &v6(TCP, &tcp()))), v6_of(TCP));
        assert_eq!(on_ethernet(outer, &tagged(0x0806, &packet)), Decoded::Undecoded);
        assert_eq!(on_ethernet(outer, &[0, 1, 8]), Decoded::Undecoded);
    }
}

/// The kind of a tag, and what it has in front of the next EtherType.
type Tag<'a> = (u16, &'a [u8]);

#[test]
fn the_first_two_tags_that_name_a_vlan_are_read() {
    let snap = &[0xaa, 0xaa, 3, 0, 0, 0][..];
    let service = &[&[0, 0, 0, 7][..], &[0x81, 0, 0, 9, 0x81, 0, 0, 9, 0x81, 0, 0, 9]].concat();
    // Tags, and the VLANs.
    let cases: [(&[Tag<'_>], &[u16]); 13] = [
        (&[], &[]),
        (&[(0x8100, &[0, 10])], &[10]),
        (&[(0x88a8, &[0xff, 0xff])], &[4095]),
        (&[(0x9100, &[0xe0, 1])], &[1]),
        (&[(0x9200, &[1, 0])], &[256]),
        (&[(0x9300, &[0x50, 0])], &[]),
        (&[(0x88a8, &[0, 7]), (0x8100, &[0, 10])], &[7, 10]),
        (&[(0x8100, &[0, 10]), (0x9100, &[0, 7])], &[10, 7]),
        (&[(0x8100, &[0, 5]), (0x8100, &[0, 5]), (0x8100, &[0, 6]), (0x9200, &[0, 7])], &[5, 5]),
        (&[(0x8100, &[0xa0, 0]), (0x8100, &[0, 10])], &[10]),
        (&[(0x8926, &[0, 1, 0, 2]), (0x8100, &[0, 3])], &[3]),
        (&[(72, snap), (0x8100, &[0, 3])], &[3]),
        // What looks like tags inside of another tag is none.
        (&[(0x88a8, &[0, 4]), (0x88e7, service)], &[4]),
    ];
    let heads = [
        (LinkType::ETHERNET, vec![2; 12], vec![]),
        (LinkType::LINUX_SLL, [&[0, 0, 0, 1, 0, 6][..], &[0x81, 0, 0, 1, 0x81, 0, 0, 1]].concat(), vec![]),
        (LinkType::LINUX_SLL2, vec![], [&[0; 8][..], &[0, 6], &[0x81, 0, 0, 1, 0x81, 0, 8, 0]].concat()),
    ];
    for (tags, expected) in cases {
        for (link, before, behind) in &heads {
            for (kind, packet) in [(0x0800_u16, v4(TCP, &tcp())), (0x86dd, v6(UDP, &udp()))] {
                // The first EtherType is in the header, each other one behind a tag.
                let mut kinds = tags.iter().map(|tag| tag.0).chain([kind]).map(u16::to_be_bytes);
                let mut next = || kinds.next().expect("one for each tag and for IP");
                let mut data = [&before[..], &next(), &behind[..]].concat();
                tags.iter().for_each(|(_, tag)| data.extend([*tag, &next()].concat()));
                data.extend(packet);
                let record = Record { time_ns: 0, wire_len: data.len() as u32, link: *link, data: &data };
                let found = datagram(&record).map(|datagram| datagram.vlans.numbers().collect::<Vec<_>>());
                assert_eq!(found.as_deref(), Ok(expected), "{link:?} {data:x?}");
            }
        }
    }
}

#[test]
fn tags_of_any_kind_nest() {
    let tags: [(u16, &[u8]); 10] = [
        (0x8100, &[0x20, 5]),
        (0x88a8, &[0x20, 5]),
        (0x9200, &[0x20, 5]),
        (0x8926, &[0, 1, 0, 2]),
        (0x893f, &[0, 1, 0, 2, 0, 0]),
        (0x8909, &[1, 1, 0, 1, 0, 4]),
        (0x8909, &[1, 2, 0, 1, 0, 4, 0, 1, 0, 5]),
        (0x88e7, &[0, 0, 0, 7, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]),
        // A length, LLC and SNAP of two kinds.
        (72, &[0xaa, 0xaa, 3, 0, 0, 0]),
        (1500, &[0xaa, 0xaa, 3, 0, 0, 0xf8]),
    ];
    for (outer, outer_tag) in tags {
        for (inner, inner_tag) in tags {
            for (kind, packet, decoded) in
                [(0x0800_u16, v4(TCP, &tcp()), v4_of(TCP)), (0x86dd, v6(UDP, &udp()), v6_of(UDP))]
            {
                let tag = [outer_tag, &inner.to_be_bytes(), inner_tag, &kind.to_be_bytes()].concat();
                let frame = [&tag[..], &packet].concat();
                assert_eq!(on_ethernet(outer, &frame), decoded, "{outer:x} {inner:x}");
                for cut in 0..tag.len() {
                    assert_eq!(on_ethernet(outer, &tag[..cut]), Decoded::Undecoded, "{outer:x} {inner:x} {cut}");
                }
            }
        }
    }
    let packet = v4(TCP, &tcp());
    for (kind, tag) in [
        (0x8909, &[2, 1, 0, 1, 0, 4, 8, 0][..]),
        (72, &[0xaa, 0xaa, 0x13, 0, 0, 0, 8, 0]),
        (72, &[0xaa, 0xaa, 3, 0, 0, 0x0c, 8, 0]),
        (1501, &SNAP),
        (72, &[0x42, 0x42, 3]),
    ] {
        assert_eq!(on_ethernet(kind, &[tag, &packet].concat()), Decoded::Undecoded, "{kind:x} {tag:x?}");
    }
    assert_eq!(on_ethernet(72, &[&[6, 6, 3], &packet[..]].concat()), v4_of(TCP), "LLC that names IP itself");
    let cooked = [&[0; 14][..], &[0, 4], &SNAP, &packet].concat();
    assert_eq!(decode(LinkType::LINUX_SLL, &cooked), v4_of(TCP), "LLC on Linux's any device");
}

#[test]
fn mpls_labels_and_pseudowires() {
    let label = |bottom: u8, payload: &[u8]| [&[0, 1, 0x20 | bottom, 64], payload].concat();
    for kind in [0x8847, 0x8848] {
        assert_eq!(on_ethernet(kind, &label(1, &v4(TCP, &tcp()))), v4_of(TCP));
        assert_eq!(on_ethernet(kind, &label(0, &label(0, &label(1, &v6(UDP, &udp()))))), v6_of(UDP));
        assert_eq!(on_ethernet(kind, &label(1, &[0; 60])), Decoded::Undecoded);
        assert_eq!(on_ethernet(kind, &label(1, &[])), Decoded::Undecoded);
        assert_eq!(on_ethernet(kind, &label(0, &[0, 1])), Decoded::Undecoded);
        assert_eq!(on_ethernet(0x8100, &tagged(kind, &label(1, &v4(TCP, &tcp())))), v4_of(TCP));
        assert_eq!(on_ethernet(kind, &label(1, &v4(TCP, &tcp())[..19])), Decoded::Malformed);
        let inside = |kind: u16, payload: &[u8]| [&[0, 7][..], &[2; 10], &kind.to_be_bytes(), payload].concat();
        let plain = inside(0x0800, &v4(TCP, &tcp()));
        let tags = inside(0x8100, &tagged(0x86dd, &v6(UDP, &udp())));
        for control in [&[][..], &[0; 4], &[0, 0, 0, 9]] {
            let wire = |frame: &[u8]| label(0, &label(1, &[control, frame].concat()));
            assert_eq!(on_ethernet(kind, &wire(&plain)), v4_of(TCP), "{control:?}");
            assert_eq!(on_ethernet(kind, &wire(&tags)), v6_of(UDP), "{control:?}");
            assert_eq!(on_ethernet(kind, &wire(&inside(0x0806, &v4(TCP, &tcp())))), Decoded::Undecoded);
            assert_eq!(on_ethernet(kind, &wire(&plain[..20])), Decoded::Undecoded, "no sound header");
            assert_eq!(on_ethernet(kind, &wire(&inside(0x0800, &v6(UDP, &udp())))), Decoded::Undecoded);
        }
        let vendor = ethernet(0x0800, &v4(TCP, &tcp()));
        let other = [&[0xd0], &vendor[1..]].concat();
        assert_eq!(on_ethernet(kind, &label(1, &other)), v4_of(TCP), "an address that begins with no version");
        assert_eq!(on_ethernet(kind, &label(1, &[&[0x10, 0, 0, 0], &plain[..]].concat())), Decoded::Undecoded);
    }
}

#[test]
fn pppoe_sessions() {
    let session = |kind: u16, payload: &[u8]| [&[0x11, 0, 0, 7, 0, 42], &kind.to_be_bytes()[..], payload].concat();
    assert_eq!(on_ethernet(0x8864, &session(0x0021, &v4(TCP, &tcp()))), v4_of(TCP));
    assert_eq!(on_ethernet(0x8864, &session(0x0057, &v6(TCP, &tcp()))), v6_of(TCP));
    assert_eq!(on_ethernet(0x8100, &tagged(0x8864, &session(0x0021, &v4(UDP, &udp())))), v4_of(UDP));
    let short = |kind: u8, payload: &[u8]| [&[0x11, 0, 0, 7, 0, 41, kind], payload].concat();
    assert_eq!(on_ethernet(0x8864, &short(0x21, &v4(TCP, &tcp()))), v4_of(TCP));
    assert_eq!(on_ethernet(0x8864, &short(0x57, &v6(UDP, &udp()))), v6_of(UDP));
    assert_eq!(on_ethernet(0x8864, &short(0x2d, &v4(TCP, &tcp()))), Decoded::Undecoded);
    assert_eq!(on_ethernet(0x8864, &session(0xc021, &[0; 40])), Decoded::Undecoded);
    assert_eq!(on_ethernet(0x8864, &session(0, &[])[..7]), Decoded::Undecoded);
}

#[test]
fn headers_cut_at_every_byte() {
    for (packet, whole, decoded) in [
        (ethernet(0x0800, &v4(TCP, &tcp())), 54, v4_of(TCP)),
        (ethernet(0x0800, &v4(UDP, &udp())), 42, v4_of(UDP)),
        (ethernet(0x86dd, &v6(TCP, &tcp())), 74, v6_of(TCP)),
        (ethernet(0x86dd, &v6(UDP, &udp())), 62, v6_of(UDP)),
        (
            ethernet(
                0x86dd,
                &v6(0, &[&[51, 0, 0, 0, 0, 0, 0, 0][..], &[6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &tcp()].concat()),
            ),
            94,
            v6_of(TCP),
        ),
    ] {
        assert_eq!(packet.len(), whole);
        for len in 14..whole {
            assert_eq!(decode(LinkType::ETHERNET, &packet[..len]), Decoded::Malformed, "{len} of {whole}");
        }
        assert_eq!(decode(LinkType::ETHERNET, &packet), decoded);
    }
}

#[test]
fn wrong_headers() {
    let wrong = |at: usize, value: u8| {
        let mut frame = ethernet(0x0800, &v4(TCP, &tcp()));
        frame[at] = value;
        decode(LinkType::ETHERNET, &frame)
    };
    assert_eq!(wrong(14, 0x44), Decoded::Malformed, "IPv4 header of 16 bytes");
    assert_eq!(wrong(14, 0x55), Decoded::Malformed, "IP version 5");
    assert_eq!(wrong(14, 0x65), Decoded::Malformed, "IPv6 where IPv4 was announced");
    assert_eq!(wrong(14, 0x4f), Decoded::Malformed, "options beyond the frame");
    assert_eq!(wrong(46, 0x40), Decoded::Malformed, "TCP header of 16 bytes");
    assert_eq!(wrong(46, 0xf0), v4_of(TCP), "options that are cut");
    assert_eq!(on_ethernet(0x86dd, &v4(TCP, &tcp())), Decoded::Malformed, "IPv4 where IPv6 was announced");
}

#[test]
fn ipv4_options_are_stepped_over() {
    let mut packet = v4(TCP, &tcp());
    packet[0] = 0x47;
    packet[3] += 8;
    packet.splice(20..20, [1; 8]);
    assert_eq!(on_ethernet(0x0800, &packet), v4_of(TCP));
}

#[test]
fn the_stated_length_counts() {
    let with_total = |total: u16, captured: &[u8]| {
        let mut packet = v4(TCP, captured);
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        on_ethernet(0x0800, &packet)
    };
    for total in [0, 1, 19] {
        assert_eq!(with_total(total, &tcp()), v4_of(TCP), "shorter than the header: what was captured");
    }
    for total in 20..40 {
        assert_eq!(with_total(total, &tcp()), Decoded::Malformed, "the rest is a trailer");
    }
    for total in [40, 41, 1500, 65535] {
        assert_eq!(with_total(total, &tcp()), v4_of(TCP));
    }
    let mut packet = v6(TCP, &tcp());
    packet[5] = 0;
    assert_eq!(on_ethernet(0x86dd, &packet), v6_of(TCP));
    packet[5] = 19;
    assert_eq!(on_ethernet(0x86dd, &packet), Decoded::Malformed);
}

#[test]
fn ipv4_fragments() {
    let fragment = |bits: u16, payload: &[u8]| {
        let mut packet = v4(TCP, payload);
        packet[6..8].copy_from_slice(&bits.to_be_bytes());
        on_ethernet(0x0800, &packet)
    };
    assert_eq!(fragment(0x8000, &tcp()), v4_of(TCP));
    for bits in [0x2000, 1, 0x2001, 0x1fff, 0x4001] {
        assert_eq!(fragment(bits, &tcp()), Decoded::Fragment);
        assert_eq!(fragment(bits, &[]), Decoded::Fragment);
    }
}

#[test]
fn ipv6_extension_headers() {
    let extension = |next: u8, units: u8, payload: &[u8]| {
        let mut header = vec![next, units, 0, 0, 0, 0, 0, 0];
        header.resize(8 * (1 + usize::from(units)), 9);
        [&header[..], payload].concat()
    };
    let fragment = |next: u8, offset: u16, payload: &[u8]| {
        [&[next, 0], &offset.to_be_bytes()[..], &[0, 0, 0, 9], payload].concat()
    };
    for kind in [0, 43, 60, 135, 139, 140] {
        for units in [0, 1, 31] {
            assert_eq!(on_ethernet(0x86dd, &v6(kind, &extension(TCP, units, &tcp()))), v6_of(TCP), "{kind} {units}");
        }
        assert_eq!(on_ethernet(0x86dd, &v6(kind, &[TCP])), Decoded::Malformed);
        assert_eq!(on_ethernet(0x86dd, &v6(kind, &[TCP, 255, 0, 0])), Decoded::Malformed);
    }
    let authentication = [&[UDP, 4, 0, 0], &[7; 20][..], &udp()].concat();
    assert_eq!(on_ethernet(0x86dd, &v6(51, &authentication)), v6_of(UDP));
    assert_eq!(on_ethernet(0x86dd, &v6(44, &fragment(TCP, 0, &tcp()))), v6_of(TCP), "not one of several");
    for bits in [0x0001, 0x0008, 0x0009] {
        assert_eq!(on_ethernet(0x86dd, &v6(44, &fragment(TCP, bits, &tcp()))), Decoded::Fragment);
    }
    assert_eq!(on_ethernet(0x86dd, &v6(44, &[TCP, 0, 0])), Decoded::Malformed);
    let chain = extension(43, 0, &extension(44, 2, &fragment(60, 0, &extension(51, 0, &authentication))));
    assert_eq!(on_ethernet(0x86dd, &v6(0, &chain)), v6_of(UDP));
    assert_eq!(on_ethernet(0x86dd, &v6(0, &extension(59, 0, &tcp()))), Decoded::OtherIp);
}

#[test]
fn authentication_headers_of_ipv4() {
    let header = |next: u8, words: u8, payload: &[u8]| {
        [&[next, words, 0, 0][..], &vec![9; 4 * usize::from(words) + 4], payload].concat()
    };
    for words in [0, 4, 5, 255] {
        assert_eq!(on_ethernet(0x0800, &v4(51, &header(TCP, words, &tcp()))), v4_of(TCP), "{words}");
        assert_eq!(on_ethernet(0x0800, &v4(51, &header(51, 4, &header(UDP, words, &udp())))), v4_of(UDP), "{words}");
        assert_eq!(on_ethernet(0x0800, &v4(51, &header(TCP, words, &tcp()[..19]))), Decoded::Malformed, "{words}");
        assert_eq!(on_ethernet(0x0800, &v4(51, &header(50, words, &tcp()))), Decoded::OtherIp, "{words}");
    }
    let whole = header(TCP, 4, &tcp());
    for cut in 0..whole.len() {
        assert_eq!(on_ethernet(0x0800, &v4(51, &whole[..cut])), Decoded::Malformed, "{cut}");
    }
    // Of a fragment that is not the first it is no header.
    for (bits, found) in [(0x2000_u16, Some((TCP, SYN))), (0x2001, None), (1, None)] {
        let mut packet = v4(51, &whole);
        packet[6..8].copy_from_slice(&bits.to_be_bytes());
        let datagram = datagram_at(&packet, 0, 0).expect("a fragment");
        assert_eq!(transport(&datagram).ok().map(|it| (it.protocol, it.flags)), found, "{bits:x}");
    }
    // Extension headers of IPv6 are none of IPv4.
    for other in [0, 43, 44, 60, 135] {
        assert_eq!(
            on_ethernet(0x0800, &v4(other, &[&[TCP, 0, 0, 0, 0, 0, 0, 0], &tcp()[..]].concat())),
            Decoded::OtherIp
        );
        let inside = header(other, 4, &[&[TCP, 0, 0, 0, 0, 0, 0, 0], &tcp()[..]].concat());
        assert_eq!(on_ethernet(0x0800, &v4(51, &inside)), Decoded::OtherIp);
    }
}

#[test]
fn what_an_icmp_error_quotes_is_no_packet() {
    let error = [&[3, 1, 0, 0, 0, 0, 0, 0], &v4(TCP, &tcp())[..]].concat();
    assert_eq!(on_ethernet(0x0800, &v4(1, &error)), Decoded::OtherIp);
}
