//! The rules for STUN, whose messages are the same over UDP and TCP.

use super::rule::Says::{self, More, No, Yes};
use super::rule::Seen;
use super::rule::Speaker::{Client, Either, Server};
use crate::protocol::Protocol;

const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
/// Bytes of a header.
const HEADER: usize = 20;

/// A message of RFC 8489: two zero bits, a length in words, the magic cookie, and attributes that fill that length.
/// Where more bytes may follow (`more`), the first attribute is enough; else the length must be the message's.
fn stun(bytes: &[u8], more: bool) -> Says {
    let fits = |at: usize, byte: u8| match at {
        0 => byte & 0xc0 == 0,
        3 => byte & 3 == 0,
        4..8 => byte == COOKIE[at - 4],
        _ => true,
    };
    if !bytes.iter().take(HEADER).enumerate().all(|(at, &byte)| fits(at, byte)) {
        return No;
    }
    let Some((header, mut rest)) = bytes.split_first_chunk::<HEADER>() else {
        return if more { More } else { No };
    };
    let mut left = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if !more && left != rest.len() {
        return No;
    }
    if more && left > 0 && rest.len() < 4 {
        return More;
    }
    while left > 0 {
        let Some((attribute, following)) = rest.split_first_chunk::<4>() else {
            break;
        };
        let length = 4 + usize::from(u16::from_be_bytes([attribute[2], attribute[3]])).next_multiple_of(4);
        if length > left {
            return No;
        }
        if more {
            break;
        }
        left -= length;
        rest = following.get(length - 4..).unwrap_or_default();
    }
    // The class is two bits that lie apart.
    match (header[0] & 1, header[1] >> 4 & 1) {
        (0, 0) => Yes(Protocol::Stun, "STUN request", Client),
        (0, _) => Yes(Protocol::Stun, "STUN indication", Either),
        (_, 0) => Yes(Protocol::Stun, "STUN success response", Server),
        _ => Yes(Protocol::Stun, "STUN error response", Server),
    }
}

pub(in crate::protocol) fn message(bytes: &[u8]) -> Says {
    stun(bytes, false)
}

pub(in crate::protocol) fn message_over_tcp(seen: Seen<'_>) -> Says {
    stun(seen.own, true)
}
