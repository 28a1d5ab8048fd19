//! Community ID, version 1: one name for a flow in every tool that knows the addresses and ports.
//!
//! The hash follows the published specification (corelight/community-id-spec). It is the SHA-1 of the seed, the two
//! ends in order, the protocol and a zero byte, in network byte order; it is written in base64 behind `1:`.
//!
//! 1. The end with the smaller address comes first; if the addresses are equal, the one with the smaller port.
//! 2. ICMP has no ports. Its type stands for the source port. If the type has an answer, the answer's type stands for
//!    the destination port, so that both directions get one name. Otherwise the code stands for it, and the ends stay
//!    in the order of the packet.
//! 3. Protocols with neither ports nor types are hashed without ports.

use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;
const SCTP: u8 = 132;

/// A Community ID: 30 ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommunityId([u8; 30]);

impl CommunityId {
    /// The ID as it is written.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("base64 is ASCII")
    }
}

impl fmt::Display for CommunityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for CommunityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The Community ID of a flow of the IP protocol `protocol`, with the seed 0, which is every tool's default.
///
/// For ICMP the ports are type and code, as in Wireshark and Zeek. Addresses of two families make no flow: they are
/// hashed unchanged, IPv4 first.
///
/// ```
/// use corelane_net::protocol::community_id;
///
/// let (client, server) = ("128.232.110.120".parse().unwrap(), "66.35.250.204".parse().unwrap());
/// let id = community_id(6, (client, 34855), (server, 80));
/// assert_eq!(id.as_str(), "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
/// assert_eq!(id, community_id(6, (server, 80), (client, 34855)));
/// ```
pub fn community_id(protocol: u8, source: (IpAddr, u16), destination: (IpAddr, u16)) -> CommunityId {
    community_id_seeded(0, protocol, source, destination)
}

/// The same with a seed, which makes the names of one site differ from those of another.
pub fn community_id_seeded(seed: u16, protocol: u8, source: (IpAddr, u16), destination: (IpAddr, u16)) -> CommunityId {
    let ports = match protocol {
        TCP | UDP | SCTP => Some((source.1, destination.1, false)),
        ICMP => Some(icmp_ports(source.1, destination.1, icmp_answer)),
        ICMP_V6 => Some(icmp_ports(source.1, destination.1, icmp_v6_answer)),
        _ => None,
    };
    let (source_port, destination_port, one_way) = ports.unwrap_or((0, 0, false));
    let (mut low, mut high) = ((source.0, source_port), (destination.0, destination_port));
    if !one_way && high < low {
        std::mem::swap(&mut low, &mut high);
    }
    let mut hash = Sha1::new();
    hash.update(seed.to_be_bytes());
    for address in [low.0, high.0] {
        match address {
            IpAddr::V4(address) => hash.update(address.octets()),
            IpAddr::V6(address) => hash.update(address.octets()),
        }
    }
    hash.update([protocol, 0]);
    if ports.is_some() {
        hash.update(low.1.to_be_bytes());
        hash.update(high.1.to_be_bytes());
    }
    let mut id = *b"1:0000000000000000000000000000";
    let written = STANDARD.encode_slice(hash.finalize(), &mut id[2..]);
    debug_assert_eq!(written, Ok(28), "SHA-1 has 20 bytes");
    CommunityId(id)
}

/// Type and code as ports, and whether the flow has only one direction.
fn icmp_ports(kind: u16, code: u16, answer: fn(u16) -> Option<u16>) -> (u16, u16, bool) {
    match answer(kind) {
        Some(answer) => (kind, answer, false),
        None => (kind, code, true),
    }
}

/// The ICMP type that answers this type, or that this type answers.
fn icmp_answer(kind: u16) -> Option<u16> {
    Some(match kind {
        0 => 8,
        8 => 0,
        9 => 10,
        10 => 9,
        13 => 14,
        14 => 13,
        15 => 16,
        16 => 15,
        17 => 18,
        18 => 17,
        _ => return None,
    })
}

/// The same for ICMPv6.
fn icmp_v6_answer(kind: u16) -> Option<u16> {
    Some(match kind {
        128 => 129,
        129 => 128,
        130 => 131,
        131 => 130,
        133 => 134,
        134 => 133,
        135 => 136,
        136 => 135,
        139 => 140,
        140 => 139,
        144 => 145,
        145 => 144,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(protocol: u8, source: &str, destination: &str, ports: (u16, u16)) -> String {
        community_id(protocol, (source.parse().unwrap(), ports.0), (destination.parse().unwrap(), ports.1)).to_string()
    }

    /// The specification's baseline. It has real packets, so its "ports" of ICMP come from type and code: the pairs
    /// below are (type, code).
    #[test]
    fn the_published_vectors() {
        #[rustfmt::skip]
        let vectors = [
            (58, "fe80::200:86ff:fe05:80da", "fe80::260:97ff:fe07:69ea", (135, 0), "1:dGHyGvjMfljg6Bppwm3bg0LO8TY="),
            (58, "fe80::260:97ff:fe07:69ea", "fe80::200:86ff:fe05:80da", (136, 0), "1:dGHyGvjMfljg6Bppwm3bg0LO8TY="),
            (58, "fe80::260:97ff:fe07:69ea", "fe80::200:86ff:fe05:80da", (135, 0), "1:zavyT/cezQr1fmImYCwYnMXbgck="),
            (58, "fe80::200:86ff:fe05:80da", "fe80::260:97ff:fe07:69ea", (136, 0), "1:zavyT/cezQr1fmImYCwYnMXbgck="),
            (58, "3ffe:501:1800:2345::2", "3ffe:507:0:1:200:86ff:fe05:80da", (3, 0), "1:2ObVBgIn28oZvibYZhZMBgh7WdQ="),
            (58, "3ffe:501:410:0:2c0:dfff:fe47:33e", "3ffe:507:0:1:200:86ff:fe05:80da", (1, 4), "1:hLZd0XGWojozrvxqE0dWB1iM6R0="),
            (58, "3ffe:507:0:1:200:86ff:fe05:80da", "3ffe:501:0:1001::2", (128, 0), "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg="),
            (58, "3ffe:501:0:1001::2", "3ffe:507:0:1:200:86ff:fe05:80da", (129, 0), "1:+TW+HtLHvV1xnGhV1lv7XoJrqQg="),
            (58, "fe80::200:86ff:fe05:80da", "ff02::2", (133, 0), "1:hO+sN4H+MG5MY/8hIrXPqc4ZQz0="),
            (58, "fe80::260:97ff:fe07:69ea", "ff02::1", (134, 0), "1:pkvHqCL88/tg1k4cPigmZXUtL00="),
            (1, "192.168.0.89", "192.168.0.1", (8, 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
            (1, "192.168.0.1", "192.168.0.89", (0, 0), "1:X0snYXpgwiv9TZtqg64sgzUn6Dk="),
            (1, "10.0.0.1", "10.0.0.2", (11, 0), "1:YHxtAirCG//0OzkcVAukqKQN9xM="),
            (6, "2001:470:e5bf:dead:4957:2174:e82c:4887", "2607:f8b0:400c:c03::1a", (63943, 25), "1:/qFaeAR+gFe1KYjMzVDsMv+wgU4="),
            (6, "2607:f8b0:400c:c03::1a", "2001:470:e5bf:dead:4957:2174:e82c:4887", (25, 63943), "1:/qFaeAR+gFe1KYjMzVDsMv+wgU4="),
            (132, "192.168.170.8", "192.168.170.56", (7, 7), "1:MP2EtRCAUIZvTw6MxJHLV7N7JDs="),
            (132, "192.168.170.56", "192.168.170.8", (7, 7), "1:MP2EtRCAUIZvTw6MxJHLV7N7JDs="),
            (6, "128.232.110.120", "66.35.250.204", (34855, 80), "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
            (6, "66.35.250.204", "128.232.110.120", (80, 34855), "1:LQU9qZlK+B5F3KDmev6m5PMibrg="),
            (17, "192.168.1.52", "8.8.8.8", (54585, 53), "1:d/FP5EW3wiY1vCndhwleRRKHowQ="),
            (17, "8.8.8.8", "192.168.1.52", (53, 54585), "1:d/FP5EW3wiY1vCndhwleRRKHowQ="),
            (46, "10.1.12.1", "10.1.12.2", (0, 0), "1:KHlLkgoJW7ifUTyTSgyVfkFHzKw="),
            (46, "10.1.12.2", "10.1.12.1", (0, 0), "1:KHlLkgoJW7ifUTyTSgyVfkFHzKw="),
        ];
        for (protocol, source, destination, ports, expected) in vectors {
            assert_eq!(
                id(protocol, source, destination, ports),
                expected,
                "{protocol} {source} {destination} {ports:?}"
            );
        }
    }

    #[test]
    fn a_seed_makes_another_name() {
        let ends = (("10.0.0.1".parse().unwrap(), 1), ("10.0.0.2".parse().unwrap(), 2));
        assert_eq!(community_id_seeded(0, 6, ends.0, ends.1), community_id(6, ends.0, ends.1));
        assert_ne!(community_id_seeded(1, 6, ends.0, ends.1), community_id(6, ends.0, ends.1));
    }
}
