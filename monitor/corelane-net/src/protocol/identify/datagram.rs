//! Rules over single datagrams. They return yes or no.

use super::rule::Says::{self, No, Yes};
use super::rule::Speaker::{Client, Either, Server};
use crate::protocol::Protocol;

/// A question for a name of 32 bytes, as NetBIOS writes it. Its type is the one of NetBIOS alone, or one that DNS has
/// too; then the name has only the letters A to P.
pub(in crate::protocol) fn netbios_name(bytes: &[u8]) -> Says {
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
pub(in crate::protocol) fn dhcp(bytes: &[u8]) -> Says {
    let cookie = bytes.get(236..240) == Some(&[0x63, 0x82, 0x53, 0x63]);
    match bytes {
        [op @ (1 | 2), _, len, ..] if cookie && *len <= 16 => match op {
            1 => Yes(Protocol::Dhcp, "DHCP request with its cookie", Client),
            _ => Yes(Protocol::Dhcp, "DHCP reply with its cookie", Server),
        },
        _ => No,
    }
}

/// A message of the distributed hash table: a dictionary, with a kind and a transaction.
pub(in crate::protocol) fn bittorrent_table(bytes: &[u8]) -> Says {
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
pub(in crate::protocol) fn bittorrent_transport(bytes: &[u8]) -> Says {
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
pub(in crate::protocol) fn ntp(bytes: &[u8]) -> Says {
    // A key and a digest may follow the header; extensions come in words.
    if !(48..=48 + 256).contains(&bytes.len()) || !bytes.len().is_multiple_of(4) {
        return No;
    }
    let (version, mode) = (bytes[0] >> 3 & 7, bytes[0] & 7);
    let (stratum, poll, precision) = (bytes[1], bytes[2] as i8, bytes[3] as i8);
    // Seconds, in the upper half of each: delay and dispersion. Nothing is that far away.
    let near = |at: usize| bytes[at] == 0 && bytes[at + 1] < 16;
    let possible = (1..=4).contains(&version) && stratum <= 16 && (-7..=17).contains(&poll) && near(4) && near(8);
    // A client may hide its precision with the rest.
    let hidden = mode == 3 && precision == 32 && bytes[4..16] == [0; 12];
    // Clients leave most fields zero, but not all of them.
    let transmitted = bytes[40..48] != [0; 8];
    if !possible || !transmitted || !(hidden || (-35..=0).contains(&precision)) {
        return No;
    }
    // The years 2000 to 2056, in seconds since 1900, which begin again in 2036. A client's time may be any number.
    let seconds = u32::from_be_bytes([bytes[40], bytes[41], bytes[42], bytes[43]]);
    let is_dated = seconds.wrapping_sub(3_155_673_600) < 56 * 31_557_600;
    // A refusal has letters for a source, and may repeat the client's time.
    let refuses = bytes[0] >> 6 == 3 && stratum == 0 && bytes[12..16].iter().all(u8::is_ascii_uppercase);
    match mode {
        1 | 2 => Yes(Protocol::Ntp, "NTP symmetric mode", Either),
        3 => Yes(Protocol::Ntp, "NTP client mode", Client),
        4 if refuses || (stratum > 0 && is_dated) => Yes(Protocol::Ntp, "NTP server mode", Server),
        5 if is_dated => Yes(Protocol::Ntp, "NTP broadcast mode", Server),
        _ => No,
    }
}

/// NTP's mode 6, which reads and sets a server's variables (RFC 9327): an operation that exists, a number of its own,
/// and as many bytes as are counted, filled up to words. A key and a digest may follow.
pub(in crate::protocol) fn ntp_control(bytes: &[u8]) -> Says {
    let Some((header, rest)) = bytes.split_first_chunk::<12>() else {
        return No;
    };
    let counted = usize::from(u16::from_be_bytes([header[10], header[11]])).next_multiple_of(4);
    let is_response = header[1] & 0x80 != 0;
    let possible = header[0] & 0xc7 == 6
        && (1..=4).contains(&(header[0] >> 3 & 7))
        && matches!(header[1] & 0x1f, 1..=12 | 31)
        && header[2..4] != [0; 2]
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
pub(in crate::protocol) fn ntp_private(bytes: &[u8]) -> Says {
    let Some((header, rest)) = bytes.split_first_chunk::<8>() else {
        return No;
    };
    let number = |at: usize| usize::from(u16::from_be_bytes([header[at] & 0xf, header[at + 1]]));
    let items = number(4) * number(6);
    let error = header[4] >> 4;
    let possible = header[0] & 7 == 7
        && (2..=4).contains(&(header[0] >> 3 & 7))
        && matches!((header[2], header[3]), (2 | 3, 0..=45))
        && header[6] & 0xf0 == 0
        && bytes.len().is_multiple_of(4);
    let is_response = header[0] & 0x80 != 0;
    match possible {
        true if is_response && items == rest.len() && (items > 0 || error > 0) => {
            Yes(Protocol::Ntp, "NTP private mode, response", Server)
        }
        // A request has no error, and is filled up to a fixed length; a key and a digest may follow.
        true if !is_response
            && header[0] & 0x40 == 0
            && error == 0
            && items <= rest.len()
            && [0, 20, 24]
                .iter()
                .any(|mac| matches!(bytes.len() - mac.min(&bytes.len()), 8 | 48 | 160 | 184 | 192)) =>
        {
            Yes(Protocol::Ntp, "NTP private mode, request", Client)
        }
        _ => No,
    }
}

/// One of the four messages: its type, three zeros, its length, and what looks random where keys and what they encrypt
/// are. The data have no fixed length: they come in blocks of 16 bytes behind a receiver that is never zero and a
/// counter, and the first 2 KiB and the last block must look random. A key is used for 180 seconds, which is too short
/// for 2^32 packets.
pub(in crate::protocol) fn wireguard(bytes: &[u8]) -> Says {
    let &[kind, 0, 0, 0, ..] = bytes else {
        return No;
    };
    let all_random = |parts: &[&[u8]]| parts.iter().all(|part| looks_random(part));
    // The second digest is of a cookie, and zero where there is none.
    let second = |digest: &[u8]| digest == [0; 16] || looks_random(digest);
    match (kind, bytes.len()) {
        (1, 148)
            if all_random(&[&bytes[8..40], &bytes[40..88], &bytes[88..116], &bytes[116..132]])
                && second(&bytes[132..]) =>
        {
            Yes(Protocol::Wireguard, "WireGuard handshake initiation", Client)
        }
        (2, 92) if all_random(&[&bytes[12..44], &bytes[44..60], &bytes[60..76]]) && second(&bytes[76..]) => {
            Yes(Protocol::Wireguard, "WireGuard handshake response", Server)
        }
        (3, 64) if all_random(&[&bytes[8..32], &bytes[32..]]) => {
            Yes(Protocol::Wireguard, "WireGuard cookie reply", Either)
        }
        (4, 32..)
            if bytes.len().is_multiple_of(16)
                && bytes[4..8] != [0; 4]
                && bytes[12..16] == [0; 4]
                && bytes[16..].chunks(32).take(64).all(looks_random)
                && looks_random(&bytes[bytes.len() - 16..]) =>
        {
            Yes(Protocol::Wireguard, "WireGuard transport data", Either)
        }
        _ => No,
    }
}

/// Whether some 16 to 48 bytes could be random: few zeros, few bytes that occur twice, and some with and some without
/// the highest bit, which text has not. Of 16 random bytes 1 in 30,000 fails, of 32 fewer.
fn looks_random(bytes: &[u8]) -> bool {
    let (mut seen, mut zeros, mut high) = ([0_u64; 4], 0, 0);
    for &byte in bytes {
        seen[usize::from(byte >> 6)] |= 1 << (byte & 63);
        zeros += usize::from(byte == 0);
        high += usize::from(byte >= 0x80);
    }
    let distinct: u32 = seen.iter().map(|word| word.count_ones()).sum();
    let few = bytes.len() / 16;
    zeros <= 4 && distinct as usize * 8 >= bytes.len() * 5 && (few..=bytes.len() - few).contains(&high)
}
