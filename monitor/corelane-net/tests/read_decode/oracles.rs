//! The same as others find, where the others look at the same: `pcap-parser` for records, `etherparse` for headers.

use std::io::Cursor;
use std::net::IpAddr;

use corelane_net::capture::{LinkType, Reader};
use corelane_net::decode::{Decoded, NoDatagram, NoPacket, TCP, UDP, datagram_at, decode, locate, transport};
use etherparse::{LaxNetSlice, LaxSlicedPacket, PacketBuilder, TransportSlice, VlanId};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, PcapBlockOwned, PcapHeader};
use proptest::prelude::*;

use crate::captures_folder::captures;
use crate::support::{Order, Owned, Pcap, PcapNg, read_all, samples};

#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    snaplen: u32,
    resolution: u8,
    offset: i64,
}

/// What stays the same between blocks.
#[derive(Default)]
struct Oracle {
    header: Option<PcapHeader>,
    interfaces: Vec<Interface>,
    records: Vec<Owned>,
}

impl Oracle {
    fn block(&mut self, block: PcapBlockOwned<'_>) {
        match block {
            PcapBlockOwned::LegacyHeader(header) => self.header = Some(header),
            PcapBlockOwned::Legacy(block) => {
                let header = self.header.as_ref().unwrap();
                let unit = if header.is_nanosecond_precision() { 1 } else { 1_000 };
                self.records.push(Owned {
                    time_ns: u64::from(block.ts_sec) * 1_000_000_000 + u64::from(block.ts_usec) * unit,
                    wire_len: block.origlen,
                    link: header.network.0.cast_unsigned(),
                    data: block.data.to_vec(),
                });
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => self.interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                self.interfaces.push(Interface {
                    link: block.linktype.0.cast_unsigned(),
                    snaplen: block.snaplen,
                    resolution: block.if_tsresol,
                    offset: block.if_tsoffset,
                });
            }
            PcapBlockOwned::NG(Block::SimplePacket(block)) => {
                let Interface { link, snaplen, .. } = self.interfaces[0];
                let captured = if snaplen == 0 { block.origlen } else { block.origlen.min(snaplen) };
                self.records.push(Owned {
                    time_ns: self.records.last().map_or(0, |last| last.time_ns),
                    wire_len: block.origlen,
                    link,
                    data: block.data[..captured as usize].to_vec(),
                });
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                let Interface { link, resolution, offset, .. } = self.interfaces[block.if_id as usize];
                let exponent = u32::from(resolution & 0x7f);
                let per_second = if resolution & 0x80 == 0 { 10_i128.pow(exponent) } else { 1 << exponent };
                let ticks = i128::from(block.ts_high) << 32 | i128::from(block.ts_low);
                let time = ticks * 1_000_000_000 / per_second + i128::from(offset) * 1_000_000_000;
                self.records.push(Owned {
                    time_ns: time as u64,
                    wire_len: block.origlen,
                    link,
                    data: block.packet_data().to_vec(),
                });
            }
            PcapBlockOwned::NG(_) => {}
        }
    }
}

fn records_of_the_oracle(capture: &[u8]) -> Vec<Owned> {
    let mut reader = pcap_parser::create_reader(capture.len() + 1024, Cursor::new(capture)).unwrap();
    let mut oracle = Oracle::default();
    loop {
        match reader.next() {
            Ok((used, block)) => {
                oracle.block(block);
                reader.consume(used);
            }
            // The capacity holds everything, so this is the end, a cut, or damage.
            Err(_) => return oracle.records,
        }
    }
}

fn same_records(name: &str, capture: &[u8]) -> usize {
    let (ours, _) = read_all(Reader::from_bytes(capture.to_vec()).unwrap());
    let theirs = records_of_the_oracle(capture);
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "{name}, record {number}");
    }
    ours.len()
}

#[test]
fn records_of_samples() {
    for (name, capture, count) in samples() {
        // It reads neither the modified format nor obsolete packets.
        if !["modified", "pcapng"].contains(&name) {
            assert_eq!(same_records(name, &capture), count);
        }
    }
}

/// All captures that are not packed, with their names.
fn real_captures() -> Vec<(String, Vec<u8>)> {
    let Some(folder) = captures() else {
        return Vec::new();
    };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let captures = files.filter(|path| path.extension().is_some_and(|end| end == "pcap" || end == "pcapng"));
    captures.map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn records_of_real_captures() {
    for (name, capture) in real_captures() {
        assert!(same_records(&name, &capture) > 0, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_of_pcap_captures(
        big in any::<bool>(),
        nanoseconds in any::<bool>(),
        records in prop::collection::vec(
            (any::<u32>(), 0..1_000_000_u32, prop::collection::vec(any::<u8>(), 0..200)),
            0..20,
        ),
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let magic = if nanoseconds { crate::support::NANOSECONDS } else { crate::support::MICROSECONDS };
        let capture = records.iter().fold(Pcap::new(order, magic, 65535, 1), |capture, (seconds, fraction, data)| {
            capture.record(*seconds, *fraction, data)
        });
        prop_assert_eq!(same_records("generated", &capture.bytes), records.len());
    }

    #[test]
    fn records_of_pcapng_captures(
        sections in prop::collection::vec(
            (
                any::<bool>(),
                0_u8..12,
                prop::collection::vec((0..1_u64 << 52, prop::collection::vec(any::<u8>(), 1..99)), 0..9),
            ),
            1..4,
        ),
    ) {
        let mut capture = PcapNg::new(Order::Little);
        for (big, resolution, records) in &sections {
            let order = if *big { Order::Big } else { Order::Little };
            capture = capture.section(order).interface(101, 0, &[]).clocked(*resolution, 0);
            // Few enough seconds for 64 bits of nanoseconds.
            let shift = if *resolution < 6 { 30 } else { 0 };
            for (number, (ticks, data)) in records.iter().enumerate() {
                capture = capture.enhanced(number as u32 % 2, ticks >> shift, 1500, data);
            }
        }
        let count: usize = sections.iter().map(|(.., records)| records.len()).sum();
        prop_assert_eq!(same_records("generated", &capture.bytes), count);
    }
}

/// Addresses, ports, protocol and flags, of either version.
type Facts = (IpAddr, IpAddr, u16, u16, u8, u8);

fn our_facts(decoded: Decoded) -> Option<Facts> {
    match decoded {
        Decoded::V4(p) => {
            let (source, destination) = (IpAddr::V4(p.source.into()), IpAddr::V4(p.destination.into()));
            Some((source, destination, p.source_port, p.destination_port, p.protocol, p.flags))
        }
        Decoded::V6(p) => {
            let (source, destination) = (IpAddr::V6(p.source.into()), IpAddr::V6(p.destination.into()));
            Some((source, destination, p.source_port, p.destination_port, p.protocol, p.flags))
        }
        _ => None,
    }
}

/// `None` where it found no transport header, be there one or not.
fn their_facts(packet: &LaxSlicedPacket<'_>) -> Option<Facts> {
    let (source, destination) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Arp(_) => return None,
    };
    match packet.transport.as_ref()? {
        TransportSlice::Tcp(tcp) => {
            Some((source, destination, tcp.source_port(), tcp.destination_port(), TCP, tcp.slice()[13]))
        }
        TransportSlice::Udp(udp) => Some((source, destination, udp.source_port(), udp.destination_port(), UDP, 0)),
        _ => None,
    }
}

/// What the other way finds: the IP header first, and what is behind it in a second step.
fn in_two_steps(link: LinkType, frame: &[u8]) -> Decoded {
    let located = match locate(link, frame) {
        Ok(located) => located,
        Err(NoDatagram::Undecoded) => return Decoded::Undecoded,
        Err(NoDatagram::Malformed) => return Decoded::Malformed,
    };
    let Ok(datagram) = datagram_at(frame, located.at, 0) else { return Decoded::Malformed };
    let addresses = (datagram.source, datagram.destination, datagram.is_v4);
    assert_eq!(addresses, (located.source, located.destination, located.is_v4));
    if datagram.fragment.is_some() {
        return Decoded::Fragment;
    }
    match transport(&datagram) {
        Ok(transport) if datagram.is_v4 => Decoded::V4(transport.to_v4()),
        Ok(transport) => Decoded::V6(transport),
        Err(NoPacket::Other) => Decoded::OtherIp,
        Err(NoPacket::Malformed) => Decoded::Malformed,
    }
}

/// An IP header is found behind at most 64 KiB of tags, by both ways.
#[test]
fn an_ip_header_far_behind_its_tags() {
    let frame = |tags: usize| {
        let mut frame = vec![0; 12];
        frame.extend([0x81, 0, 0, 7].repeat(tags));
        frame.extend([8, 0]);
        frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0, 99, 0, 8, 0, 0]);
        frame
    };
    let last = (usize::from(u16::MAX) - 14) / 4;
    for (tags, is_found) in [(2, true), (last, true), (last + 1, false)] {
        let decoded = decode(LinkType::ETHERNET, &frame(tags));
        assert_eq!(matches!(decoded, Decoded::V4(_)), is_found, "{tags}");
        assert_eq!(decoded, in_two_steps(LinkType::ETHERNET, &frame(tags)));
    }
}

/// Checks one frame and says whether both found a transport header.
fn same_headers(name: &str, frame: &[u8]) -> bool {
    let decoded = decode(LinkType::ETHERNET, frame);
    assert_eq!(decoded, in_two_steps(LinkType::ETHERNET, frame), "{name}");
    let ours = our_facts(decoded);
    let Ok(packet) = LaxSlicedPacket::from_ethernet(frame) else {
        assert_eq!(decoded, Decoded::Undecoded, "{name}");
        return false;
    };
    let theirs = their_facts(&packet);
    if theirs.is_some() {
        assert_eq!(ours, theirs, "{name}");
        return true;
    }
    // Where it stops, for cut options, a length that is not filled in or an extension header that it does not know, we
    // may go on; and it does not open MPLS.
    let stops = packet.ip_payload().is_some_and(|payload| [135, 139, 140].contains(&payload.ip_number.0));
    if packet.net.is_some() && packet.stop_err.is_none() && !stops {
        assert_eq!(ours, None, "{name}");
    }
    false
}

#[test]
fn headers_of_real_captures() {
    for (name, capture) in real_captures() {
        let mut compared = 0;
        for record in read_all(Reader::from_bytes(capture).unwrap()).0 {
            if record.link == 1 {
                compared += usize::from(same_headers(&name, &record.data));
            }
        }
        // The rest holds other link types, or headers that are wrong on purpose.
        let few = ["ipv6-http", "multisection", "semantics-cut", "semantics-headers"];
        assert!(compared > 1 || few.iter().any(|few| name.contains(few)), "{name}: {compared}");
    }
}

/// A frame with up to two tags, either version, either transport.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let addresses = any::<(u128, u128)>();
    (
        0..3_u8,
        any::<bool>(),
        any::<bool>(),
        addresses,
        any::<(u16, u16)>(),
        any::<u8>(),
        prop::collection::vec(any::<u8>(), 0..64),
    )
        .prop_map(|(tags, is_v6, is_tcp, (source, destination), ports, flags, payload)| {
            let builder = PacketBuilder::ethernet2([1; 6], [2; 6]);
            let ip = if is_v6 {
                etherparse::IpHeaders::Ipv6(
                    etherparse::Ipv6Header {
                        source: source.to_be_bytes(),
                        destination: destination.to_be_bytes(),
                        hop_limit: 9,
                        ..Default::default()
                    },
                    Default::default(),
                )
            } else {
                let header = etherparse::Ipv4Header {
                    source: (source as u32).to_be_bytes(),
                    destination: (destination as u32).to_be_bytes(),
                    time_to_live: 9,
                    ..Default::default()
                };
                etherparse::IpHeaders::Ipv4(header, Default::default())
            };
            let id = VlanId::try_new(7).unwrap();
            let builder = match tags {
                0 => builder.ip(ip),
                1 => builder.single_vlan(id).ip(ip),
                _ => builder.double_vlan(id, id).ip(ip),
            };
            let mut frame = Vec::new();
            if is_tcp {
                let mut header = etherparse::TcpHeader::new(ports.0, ports.1, 5, 6);
                (header.fin, header.syn, header.rst, header.psh) =
                    (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0, flags & 8 != 0);
                (header.ack, header.urg, header.ece, header.cwr) =
                    (flags & 16 != 0, flags & 32 != 0, flags & 64 != 0, flags & 128 != 0);
                header.set_options_raw(&payload[..payload.len().min(40) / 4 * 4]).unwrap();
                builder.tcp_header(header).write(&mut frame, &payload).unwrap();
            } else {
                builder.udp(ports.0, ports.1).write(&mut frame, &payload).unwrap();
            }
            frame
        })
}

/// Parts of the headers of links.
const BEFORE: &[&[u8]] = &[
    &[0xff, 3, 0, 0x21],
    &[0x57],
    &[0x0f, 0, 8, 0],
    &[0x11, 0, 0, 7, 0, 42],
    &[2, 0, 0, 7],
    &[8, 0, 1, 0, 8, 0, 0, 0],
    &[255, 0, 9, 0],
    &[1, 0, 9, 0],
    &[0, 0, 9, 0, 2, 0, 0, 0, 0x20],
    &[0, 0, 12, 0, 0, 0, 0, 0x80, 0, 0, 0, 0],
    &[0x80, 0x21, 0x10, 1, 0, 0, 0, 8],
    &[0x88, 0x83, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 2, 2, 2, 2, 2, 2],
    &[0x08, 1, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0],
    &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
    &[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0x88, 0x47, 0, 0, 0x11, 64],
    &[0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0x86, 0xdd],
    &[0x89, 9, 1, 2, 0, 1, 0, 4, 0, 1, 0, 4, 0x88, 0x64],
    &[0x45, 0, 0, 60, 0, 0, 0, 0, 64, 51, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
];

/// IP with any chain of extension headers, fragments among them, or bytes that look like them.
fn chain() -> impl Strategy<Value = Vec<u8>> {
    let kind = || prop::sample::select(vec![0_u8, 6, 17, 43, 44, 44, 51, 58, 60, 135, 140]);
    let headers = prop::collection::vec((kind(), 0_u8..2, prop::sample::select(vec![0_u8, 1, 8]), any::<u8>()), 0..6);
    let rest = prop::collection::vec(any::<u8>(), 0..40);
    (any::<bool>(), kind(), headers, rest).prop_map(|(is_v4, first, headers, rest)| {
        let mut packet = if is_v4 {
            vec![0x45, 0, 0, 0, 0, 9, u8::from(first == 44) << 5, 0, 64, if first == 44 { 51 } else { first }, 0, 0]
        } else {
            vec![0x60, 0, 0, 0, 0, 0, first, 64]
        };
        packet.resize(if is_v4 { 20 } else { 40 }, 1);
        for (next, len, offset, id) in headers {
            packet.extend([next, len, 0, offset, 0, 0, 0, id]);
            packet.resize(packet.len() + usize::from(len) * 8, 0x50);
        }
        packet.extend(rest);
        packet
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn headers_of_generated_frames(frame in frame()) {
        prop_assert!(same_headers("generated", &frame));
    }

    #[test]
    fn headers_of_cut_frames(frame in frame(), len in any::<prop::sample::Index>()) {
        same_headers("cut", &frame[..len.index(frame.len())]);
    }

    #[test]
    fn headers_of_mutated_frames(mut frame in frame(), at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let at = at.index(frame.len().min(80));
        frame[at] = value;
        same_headers("mutated", &frame);
    }

    /// Any bytes, and bytes that lead far into the headers of a link.
    #[test]
    fn frames_of_any_link_in_two_steps(
        link in prop::sample::select([&LinkType::ALL[..], &[LinkType(7)]].concat()),
        before in prop::collection::vec(prop::sample::select(BEFORE), 0..5),
        rest in prop::collection::vec(any::<u8>(), 0..120),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
    ) {
        let mut frame = before.concat();
        frame.extend(rest);
        for (at, value) in changes {
            if !frame.is_empty() {
                *at.get_mut(&mut frame) = value;
            }
        }
        prop_assert_eq!(decode(link, &frame), in_two_steps(link, &frame));
    }

    #[test]
    fn chains_of_headers_in_two_steps(packet in chain(), len in any::<prop::sample::Index>()) {
        for packet in [&packet[..], &packet[..len.index(packet.len())]] {
            prop_assert_eq!(decode(LinkType::RAW, packet), in_two_steps(LinkType::RAW, packet));
        }
    }
}
