//! Rules over single datagrams. They say yes or no.

use super::protocol::Protocol;
use super::rule::Says::{self, No, Yes};
use super::rule::Speaker::{Client, Either, Server};
use super::stun::stun;
use crate::protocol::{dns, quic};

/// The rules in their order; the first yes is the verdict.
pub(super) const RULES: [fn(&[u8]) -> Says; 11] = [
    dhcp,
    quic,
    stun_message,
    bittorrent_table,
    netbios_name,
    dns_message,
    bittorrent_transport,
    ntp,
    ntp_control,
    ntp_private,
    wireguard,
];

fn stun_message(bytes: &[u8]) -> Says {
    stun(bytes, false)
}

fn dns_message(bytes: &[u8]) -> Says {
    match dns::looks_like(bytes, false) {
        dns::Looks::Query => Yes(Protocol::Dns, "DNS query", Client),
        dns::Looks::Response => Yes(Protocol::Dns, "DNS response", Server),
        _ => No,
    }
}

/// A question for a name of 32 bytes, as NetBIOS writes it. Its type is the one of NetBIOS alone, or one that DNS has
/// too; then the name has only the letters A to P.
fn netbios_name(bytes: &[u8]) -> Says {
    let Some((header, rest)) = bytes.split_first_chunk::<12>() else {
        return No;
    };
    let counts: [u16; 4] = std::array::from_fn(|at| u16::from_be_bytes([header[4 + 2 * at], header[5 + 2 * at]]));
    let possible = rest.len() >= 38 && counts.iter().all(|&count| count <= 2) && counts[0] + counts[1] > 0;
    // A scope may follow the name, but is not used in practice.
    let named = possible && rest[0] == 32 && rest[33] == 0;
    let letters = || rest[1..33].iter().all(|byte| (b'A'..=b'P').contains(byte));
    match named && (rest[34..36] == [0, 0x20] || (rest[34..36] == [0, 0x21] && letters())) {
        false => No,
        true if header[2] & 0x80 == 0 => Yes(Protocol::NetbiosNames, "NetBIOS name query", Client),
        true => Yes(Protocol::NetbiosNames, "NetBIOS name response", Server),
    }
}

/// BOOTP's fixed part with lengths that fit, followed by DHCP's cookie.
fn dhcp(bytes: &[u8]) -> Says {
    let cookie = bytes.get(236..240) == Some(&[0x63, 0x82, 0x53, 0x63]);
    match bytes {
        [op @ (1 | 2), _, len, ..] if cookie && *len <= 16 => match op {
            1 => Yes(Protocol::Dhcp, "DHCP request with its cookie", Client),
            _ => Yes(Protocol::Dhcp, "DHCP reply with its cookie", Server),
        },
        _ => No,
    }
}

/// A long header of an assigned version, with identifiers and lengths that fit.
fn quic(bytes: &[u8]) -> Says {
    let Some(packet) = quic::long(bytes) else {
        return No;
    };
    match packet.kind {
        quic::Kind::Negotiation => Yes(Protocol::Quic, "QUIC version negotiation", Server),
        quic::Kind::Retry => Yes(Protocol::Quic, "QUIC Retry packet", Server),
        quic::Kind::Initial if bytes.len() >= 1200 && packet.destination.len() >= 8 => {
            Yes(Protocol::Quic, "QUIC Initial packet", Either)
        }
        quic::Kind::Initial => Yes(Protocol::Quic, "QUIC Initial packet, short", Either),
        quic::Kind::ZeroRtt | quic::Kind::Handshake => Yes(Protocol::Quic, "QUIC long header", Either),
    }
}

/// A message of the distributed hash table: a dictionary, with a kind and a transaction.
fn bittorrent_table(bytes: &[u8]) -> Says {
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let opened = [b"d1:a".as_slice(), b"d1:r", b"d1:e", b"d2:ip"].iter().any(|text| bytes.starts_with(text));
    match opened && bytes.ends_with(b"e") && has(b"1:t") {
        true if has(b"1:y1:q") => Yes(Protocol::BitTorrent, "BitTorrent table, query", Client),
        true if has(b"1:y1:r") => Yes(Protocol::BitTorrent, "BitTorrent table, response", Server),
        true if has(b"1:y1:e") => Yes(Protocol::BitTorrent, "BitTorrent table, error", Server),
        _ => No,
    }
}

/// µTP's first packet: type SYN of version 1, with nothing acknowledged, nothing measured yet, and no payload behind
/// known extensions.
fn bittorrent_transport(bytes: &[u8]) -> Says {
    let Some((header, mut rest)) = bytes.split_first_chunk::<20>() else {
        return No;
    };
    if header[0] != 0x41 || header[1] > 2 || header[8..12] != [0; 4] || header[18..20] != [0; 2] {
        return No;
    }
    let mut extension = header[1];
    while extension != 0 {
        let [next @ 0..=2, length, following @ ..] = rest else {
            return No;
        };
        extension = *next;
        rest = match following.get(usize::from(*length)..) {
            Some(rest) => rest,
            None => return No,
        };
    }
    if rest.is_empty() { Yes(Protocol::BitTorrent, "µTP packet SYN", Client) } else { No }
}

/// A header whose fields are all possible, in a datagram of possible length.
fn ntp(bytes: &[u8]) -> Says {
    // A key and a digest may follow the header; extensions come in words.
    if !(48..=48 + 256).contains(&bytes.len()) || !bytes.len().is_multiple_of(4) {
        return No;
    }
    let (version, mode) = (bytes[0] >> 3 & 7, bytes[0] & 7);
    let (stratum, poll, precision) = (bytes[1], bytes[2] as i8, bytes[3] as i8);
    let possible =
        (1..=4).contains(&version) && stratum <= 16 && (-7..=17).contains(&poll) && (-35..=0).contains(&precision);
    // Clients leave most fields zero, but not all of them.
    let transmitted = bytes[40..48] != [0; 8];
    match mode {
        _ if !possible || !transmitted => No,
        1 | 2 => Yes(Protocol::Ntp, "NTP symmetric mode", Either),
        3 => Yes(Protocol::Ntp, "NTP client mode", Client),
        4 => Yes(Protocol::Ntp, "NTP server mode", Server),
        5 => Yes(Protocol::Ntp, "NTP broadcast mode", Server),
        _ => No,
    }
}

/// NTP's mode 6, which reads and sets a server's variables (RFC 9327): an operation that exists, and as many bytes as
/// are counted, filled up to words. A key and a digest may follow.
fn ntp_control(bytes: &[u8]) -> Says {
    let Some((header, rest)) = bytes.split_first_chunk::<12>() else {
        return No;
    };
    let counted = usize::from(u16::from_be_bytes([header[10], header[11]])).next_multiple_of(4);
    let is_response = header[1] & 0x80 != 0;
    let possible = header[0] & 0xc7 == 6
        && (1..=4).contains(&(header[0] >> 3 & 7))
        && matches!(header[1] & 0x1f, 1..=12 | 31)
        && matches!(rest.len().checked_sub(counted), Some(0 | 20 | 24));
    match possible {
        // A query has no error, no status, and one part.
        true if !is_response && header[1] & 0x60 == 0 && header[4..6] == [0; 2] && header[8..10] == [0; 2] => {
            Yes(Protocol::Ntp, "NTP control mode, query", Client)
        }
        true if is_response => Yes(Protocol::Ntp, "NTP control mode, response", Server),
        _ => No,
    }
}

/// NTP's mode 7, by which one implementation is managed, and which its lists of clients have made known. Scanners send
/// it: an implementation and a request that exist, and items whose number and size fit.
fn ntp_private(bytes: &[u8]) -> Says {
    let Some((header, rest)) = bytes.split_first_chunk::<8>() else {
        return No;
    };
    let number = |at: usize| usize::from(u16::from_be_bytes([header[at] & 0xf, header[at + 1]]));
    let items = number(4) * number(6);
    let is_response = header[0] & 0x80 != 0;
    let possible = header[0] & 7 == 7
        && (2..=4).contains(&(header[0] >> 3 & 7))
        && matches!((header[2], header[3]), (0 | 2 | 3, 0..=45))
        && header[6] & 0xf0 == 0
        && bytes.len().is_multiple_of(4);
    match possible {
        true if is_response && items == rest.len() => Yes(Protocol::Ntp, "NTP private mode, response", Server),
        // A request has no error, and is filled up to a fixed length; a time, a key and a digest may follow.
        true if !is_response
            && header[0] & 0x40 == 0
            && header[4] & 0xf0 == 0
            && (items..=184 + 28).contains(&rest.len()) =>
        {
            Yes(Protocol::Ntp, "NTP private mode, request", Client)
        }
        _ => No,
    }
}

/// One of the four messages: its type, three zeros, and its length. Only the data have no fixed length: they come in
/// blocks of 16 bytes behind a receiver that is never zero and a counter that never comes to its highest two bytes.
fn wireguard(bytes: &[u8]) -> Says {
    let (&[kind, 0, 0, 0], rest) = bytes.split_first_chunk::<4>().unwrap_or((&[0; 4], &[])) else {
        return No;
    };
    match (kind, bytes.len()) {
        (1, 148) => Yes(Protocol::Wireguard, "WireGuard handshake initiation", Client),
        (2, 92) => Yes(Protocol::Wireguard, "WireGuard handshake response", Server),
        (3, 64) => Yes(Protocol::Wireguard, "WireGuard cookie reply", Either),
        (4, 32..) if rest.len() % 16 == 12 && rest[..4] != [0; 4] && rest[10..12] == [0; 2] => {
            Yes(Protocol::Wireguard, "WireGuard transport data", Either)
        }
        _ => No,
    }
}
