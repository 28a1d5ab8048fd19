//! The rules that identify TLS.

use crate::protocol::Protocol;
use crate::protocol::identify::Says::{self, More, No, Yes};
use crate::protocol::identify::Seen;
use crate::protocol::identify::Speaker::{Client, Either, Server};

/// A TLS record whose kind and version exist and whose length is allowed. For a handshake the first message is checked
/// too.
pub(in crate::protocol) fn record(seen: Seen<'_>) -> Says {
    let own = seen.own;
    let fits = |at: usize, byte: u8| match at {
        0 => matches!(byte, 20..=23),
        1 => byte == 3,
        2 => byte <= 4,
        3 => byte <= 0x41,
        _ => true,
    };
    if !own.iter().take(5).enumerate().all(|(at, &byte)| fits(at, byte)) {
        return No;
    }
    let Some((header, body)) = own.split_first_chunk::<5>() else {
        return More;
    };
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if length == 0 || length > (1 << 14) + 256 {
        return No;
    }
    let found = |evidence, speaker| Yes(Protocol::Tls, evidence, speaker);
    match header[0] {
        20 if length != 1 => No,
        20 => match body.first() {
            None => More,
            Some(1) => found("TLS record, ChangeCipherSpec", Either),
            Some(_) => No,
        },
        21 if length == 2 => match body {
            [] | [1 | 2] => More,
            [1 | 2, description, ..] if *description <= 120 => found("TLS record, alert", Either),
            _ => No,
        },
        // These are encrypted. For four of the five header bytes at most one value in a hundred fits, so they are
        // evidence enough.
        21 => found("TLS record, alert", Either),
        23 if header[2] > 0 => found("TLS record, application data", Either),
        22 => handshake(length, body),
        _ => No,
    }
}

/// The first message of a handshake record: a hello, or another message in clear text.
fn handshake(record: usize, body: &[u8]) -> Says {
    if record < 6 {
        return cut_handshake(record, body);
    }
    let Some(header) = body.first_chunk::<6>() else {
        return match body.first() {
            Some(1 | 2 | 4 | 11..=16 | 20 | 22) | None => More,
            Some(_) => No,
        };
    };
    let length = usize::from(header[1]) << 16 | usize::from(header[2]) << 8 | usize::from(header[3]);
    match header[0] {
        1 | 2 if !(38..=1 << 17).contains(&length) || header[4] != 3 || header[5] > 4 => No,
        1 => Yes(Protocol::Tls, "TLS record, ClientHello", Client),
        2 => Yes(Protocol::Tls, "TLS record, ServerHello", Server),
        11 if length >= 3 && header[4] == 0 => Yes(Protocol::Tls, "TLS record, Certificate", Either),
        16 if length + 4 <= record => Yes(Protocol::Tls, "TLS record, ClientKeyExchange", Client),
        _ => No,
    }
}

/// A record that holds less than that of a hello, with another one behind it.
#[cold]
fn cut_handshake(record: usize, body: &[u8]) -> Says {
    match (body.first(), body.get(record..record + 2)) {
        (Some(1), Some([22, 3])) => Yes(Protocol::Tls, "TLS record, ClientHello", Client),
        (Some(2), Some([22, 3])) => Yes(Protocol::Tls, "TLS record, ServerHello", Server),
        (None | Some(1 | 2), None) => More,
        _ => No,
    }
}

/// A ClientHello in the form of SSL 2: its three lists have possible lengths, which add up to the length of the record.
pub(in crate::protocol) fn ssl2_hello(seen: Seen<'_>) -> Says {
    let fits = |at: usize, byte: u8| match at {
        0 => byte & 0xc0 == 0x80,
        2 => byte == 1,
        3 => matches!(byte, 0 | 3),
        4 => byte <= 4,
        _ => true,
    };
    if !seen.own.iter().take(5).enumerate().all(|(at, &byte)| fits(at, byte)) {
        return No;
    }
    let Some(header) = seen.own.first_chunk::<11>() else {
        return More;
    };
    let [length, ciphers, session, challenge] =
        [0, 5, 7, 9].map(|at| usize::from(u16::from_be_bytes([header[at], header[at + 1]])));
    let lists = ciphers > 0 && ciphers.is_multiple_of(3) && matches!(session, 0 | 16) && (16..=32).contains(&challenge);
    match lists && length & 0x3fff == 9 + ciphers + session + challenge {
        true => Yes(Protocol::Tls, "SSL 2 record, ClientHello", Client),
        false => No,
    }
}
