//! Decoding frames: one packet, dressed in everything that may stand in front of it.

use corelane_net::capture::LinkType;
use corelane_net::decode::{Decoded, TCP, Transport, UDP, decode};

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
    assert_eq!(decode(LinkType(105), &four), Decoded::Undecoded);
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
    for outer in [0x8100, 0x88a8, 0x9100] {
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
    }
}

#[test]
fn pppoe_sessions() {
    let session = |kind: u16, payload: &[u8]| [&[0x11, 0, 0, 7, 0, 42], &kind.to_be_bytes()[..], payload].concat();
    assert_eq!(on_ethernet(0x8864, &session(0x0021, &v4(TCP, &tcp()))), v4_of(TCP));
    assert_eq!(on_ethernet(0x8864, &session(0x0057, &v6(TCP, &tcp()))), v6_of(TCP));
    assert_eq!(on_ethernet(0x8100, &tagged(0x8864, &session(0x0021, &v4(UDP, &udp())))), v4_of(UDP));
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
    assert_eq!(fragment(0x2000, &tcp()), v4_of(TCP));
    assert_eq!(fragment(0x8000, &tcp()), v4_of(TCP));
    assert_eq!(fragment(0x2000, &tcp()[..8]), Decoded::Malformed);
    for bits in [1, 0x2001, 0x1fff, 0x4001] {
        assert_eq!(fragment(bits, &tcp()), Decoded::OtherIp);
        assert_eq!(fragment(bits, &[]), Decoded::OtherIp);
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
    for kind in [0, 43, 60] {
        for units in [0, 1, 31] {
            assert_eq!(on_ethernet(0x86dd, &v6(kind, &extension(TCP, units, &tcp()))), v6_of(TCP), "{kind} {units}");
        }
        assert_eq!(on_ethernet(0x86dd, &v6(kind, &[TCP])), Decoded::Malformed);
        assert_eq!(on_ethernet(0x86dd, &v6(kind, &[TCP, 255, 0, 0])), Decoded::Malformed);
    }
    let authentication = [&[UDP, 4, 0, 0], &[7; 20][..], &udp()].concat();
    assert_eq!(on_ethernet(0x86dd, &v6(51, &authentication)), v6_of(UDP));
    assert_eq!(on_ethernet(0x86dd, &v6(44, &fragment(TCP, 1, &tcp()))), v6_of(TCP));
    assert_eq!(on_ethernet(0x86dd, &v6(44, &fragment(TCP, 0x0008, &tcp()))), Decoded::OtherIp);
    assert_eq!(on_ethernet(0x86dd, &v6(44, &[TCP, 0, 0])), Decoded::Malformed);
    let chain = extension(43, 0, &extension(44, 2, &fragment(60, 0, &extension(51, 0, &authentication))));
    assert_eq!(on_ethernet(0x86dd, &v6(0, &chain)), v6_of(UDP));
    assert_eq!(on_ethernet(0x86dd, &v6(0, &extension(59, 0, &tcp()))), Decoded::OtherIp);
}

#[test]
fn what_an_icmp_error_quotes_is_no_packet() {
    let error = [&[3, 1, 0, 0, 0, 0, 0, 0], &v4(TCP, &tcp())[..]].concat();
    assert_eq!(on_ethernet(0x0800, &v4(1, &error)), Decoded::OtherIp);
}
