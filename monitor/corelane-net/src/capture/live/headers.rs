//! The program by which the kernel keeps only the headers of plain packets: those of Ethernet that [`plain_v4`] and
//! [`plain_v6`] decode, but for what [may be a tunnel]. All that [`decode`] returns of them is in their first bytes.
//!
//! [`decode`]: crate::decode::decode
//! [may be a tunnel]: crate::decode::Transport::may_be_tunnel
//! [`plain_v4`]: crate::decode::plain_v4
//! [`plain_v6`]: crate::decode::plain_v6

use super::fanout::{IF_EQUAL, LOAD_BYTE, LOAD_HALF, RETURN, instruction};
use crate::capture::filter::Instruction;
use crate::decode::{TCP, TUNNEL_PORTS, TUNNEL_SOURCE_PORTS, UDP};

/// The bytes that are kept of a plain packet. The longest headers that count end at 74.
pub(super) const KEPT: u32 = 96;

const LOAD_LENGTH: u16 = 0x80;
const IF_AT_LEAST: u16 = 0x35;
const IF_SOME_BITS: u16 = 0x45;
/// A jump to the end of the program, until its length is known.
const TO_END: u8 = u8::MAX;

/// The program for Ethernet; it keeps `whole` bytes of packets that are not plain.
///
/// A load behind the end of a frame would drop it, so lengths are asked for first.
pub(super) fn program(whole: u32) -> Vec<Instruction> {
    let mut v4 = vec![
        instruction(LOAD_BYTE, 14),
        needs(IF_EQUAL, 0x45),
        instruction(LOAD_HALF, 20),
        // Fragments.
        refuses(IF_SOME_BITS, 0x3fff),
    ];
    v4.extend(transport(23, 36));
    let mut program = vec![
        instruction(LOAD_LENGTH, 0),
        needs(IF_AT_LEAST, 54),
        instruction(LOAD_HALF, 12),
        Instruction { code: IF_EQUAL, jt: 0, jf: v4.len() as u8, k: 0x0800 },
    ];
    program.extend(v4);
    program.extend([needs(IF_EQUAL, 0x86dd), instruction(LOAD_LENGTH, 0), needs(IF_AT_LEAST, 74)]);
    program.extend(transport(20, 56));
    let end = program.len();
    for (at, instruction) in program.iter_mut().enumerate() {
        for jump in [&mut instruction.jt, &mut instruction.jf] {
            if *jump == TO_END {
                *jump = (end - at - 1) as u8;
            }
        }
    }
    program.push(instruction(RETURN, whole));
    program
}

/// Cuts TCP, and UDP whose ports are no tunnel's: where the protocol and the destination port are.
fn transport(protocol: u32, port: u32) -> Vec<Instruction> {
    let mut datagram = vec![needs(IF_EQUAL, UDP.into()), instruction(LOAD_HALF, port)];
    datagram.extend(TUNNEL_PORTS.map(|port| refuses(IF_EQUAL, port.into())));
    datagram.push(instruction(LOAD_HALF, port - 2));
    datagram.extend(TUNNEL_SOURCE_PORTS.map(|port| refuses(IF_EQUAL, port.into())));
    let is_tcp = Instruction { code: IF_EQUAL, jt: datagram.len() as u8, jf: 0, k: TCP.into() };
    [vec![instruction(LOAD_BYTE, protocol), is_tcp], datagram, vec![instruction(RETURN, KEPT)]].concat()
}

/// The packet is not plain unless this holds.
fn needs(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: TO_END, k }
}

/// The packet is not plain if this holds.
fn refuses(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: TO_END, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::LinkType;
    use crate::capture::filter::Filter;
    use crate::decode::{Decoded, datagram_at, decode, decode_at, locate, plain_v4, plain_v6, transport};
    use proptest::prelude::*;

    const WHOLE: u32 = 262_144;

    fn kept(data: &[u8]) -> usize {
        let filter = Filter::new(program(WHOLE)).expect("as the kernel checks it");
        filter.kept(data).expect("no load is behind the end") as usize
    }

    /// The start of a packet of Ethernet, with fields that matter drawn from what matters.
    fn headers() -> impl Strategy<Value = Vec<u8>> {
        let kind = prop::sample::select(vec![0x0800_u16, 0x0800, 0x86dd, 0x86dd, 0x8100, 0x0806]);
        let first = prop::sample::select(vec![0x45_u8, 0x45, 0x46, 0x60, 0x60, 0x65]);
        let fragment = prop::sample::select(vec![0_u16, 0, 0x4000, 0x2000, 1]);
        let protocol = prop::sample::select(vec![TCP, UDP, UDP, 0, 4, 44]);
        let port = || prop::sample::select(vec![53_u16, 443, 4789, 8472, 6081, 2152, 1701, 3544, 6635]);
        let ports = (port(), port());
        let length = prop::sample::select(vec![0_u16, 7, 8, 19, 20, 27, 28, 39, 40, 1000]);
        let offset = prop::sample::select(vec![0x00_u8, 0x40, 0x50, 0xf0]);
        let bytes = prop::collection::vec(any::<u8>(), 14 + 40 + 20);
        (kind, first, fragment, protocol, ports, length, offset, bytes).prop_map(
            |(kind, first, fragment, protocol, (source, port), length, offset, mut bytes)| {
                let mut put = |at: usize, value: u16| bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
                put(12, kind);
                match kind {
                    0x0800 => {
                        [(16, length), (20, fragment), (34, source), (36, port)].map(|(at, value)| put(at, value))
                    }
                    _ => [(18, length), (54, source), (56, port), (56, port)].map(|(at, value)| put(at, value)),
                };
                bytes[14] = first;
                let (at, header) = if kind == 0x0800 { (23, 46) } else { (20, 66) };
                (bytes[at], bytes[header]) = (protocol, offset);
                bytes
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 30 } else { 20_000 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn what_is_cut_is_decoded_as_the_whole_and_is_no_tunnel(headers in headers(), length in 0_usize..200) {
            let mut data = headers;
            data.resize(length, 0x5a);
            let kept = kept(&data).min(length);
            let (whole, cut) = (decode(LinkType::ETHERNET, &data), decode(LinkType::ETHERNET, &data[..kept]));
            prop_assert_eq!(whole, cut);
            // A stage that does not decode goes this way.
            let stage = |data: &[u8]| {
                let at = locate(LinkType::ETHERNET, data).ok()?.at;
                datagram_at(data, at, length as u32).ok().map(|datagram| transport(&datagram))
            };
            prop_assert_eq!(stage(&data), stage(&data[..kept]));
            prop_assert!(kept == length || kept == KEPT as usize && !whole.may_be_tunnel());
        }

        /// What is plain is cut, so that this test sees enough of it.
        #[test]
        fn plain_packets_are_cut(headers in headers()) {
            let mut data = headers;
            data.resize(200, 0);
            let tunnel = decode(LinkType::ETHERNET, &data).may_be_tunnel();
            let is_plain_v4 = plain_v4(LinkType::ETHERNET, &data).is_some();
            let is_plain_v6 = plain_v6(LinkType::ETHERNET, &data).is_some();
            if (is_plain_v4 || is_plain_v6) && !tunnel {
                prop_assert_eq!(kept(&data), KEPT as usize);
            }
        }

        /// The straight line says what the way of all packets says.
        #[test]
        fn plain_packets_are_decoded_as_any(headers in headers(), length in 0_usize..200) {
            let mut data = headers;
            data.resize(length, 0);
            let any = locate(LinkType::ETHERNET, &data).map(|located| decode_at(&data, located.at));
            if let Some(packet) = plain_v4(LinkType::ETHERNET, &data) {
                prop_assert_eq!(any, Ok(Decoded::V4(packet)));
            }
            if let Some(packet) = plain_v6(LinkType::ETHERNET, &data) {
                prop_assert_eq!(any, Ok(Decoded::V6(packet)));
            }
        }
    }
}
