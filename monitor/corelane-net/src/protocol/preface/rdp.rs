//! RDP: a connection request of X.224 behind the head of TPKT, and its confirmation with what was chosen (MS-RDPBCGR,
//! 2.2.1.1 and 2.2.1.2).

use super::*;

const COOKIE: &[u8] = b"Cookie: ";

/// The length of a message with this kind (X.224, 13.3 and 13.4), as far as it can be one.
fn length(bytes: &[u8], kind: u8) -> Option<Option<usize>> {
    let fits = |at: usize, byte: u8| match at {
        0 => byte == 3,
        1 | 2 | 6 | 7 => byte == 0,
        5 => byte == kind,
        // Class 0, which has no options.
        10 => kind != 0xe0 || byte == 0,
        3 | 8 | 9 => true,
        _ => byte >= 6,
    };
    match begins(bytes, 11, fits)? {
        true => Some((bytes[3] == bytes[4].wrapping_add(5)).then_some(usize::from(bytes[3]))),
        false => Some(None),
    }
}

/// The length of a request: up to the end of what is asked for, whatever the number in front says.
fn request(bytes: &[u8]) -> Option<Option<usize>> {
    let Some(counted) = length(bytes, 0xe0)? else {
        return Some(None);
    };
    let mut at = 11;
    if bytes[at..].starts_with(COOKIE) {
        let line = &bytes[at..bytes.len().min(counted)];
        at += match memchr::memchr(b'\n', line) {
            None if bytes.len() < counted => return None,
            end => end.unwrap_or(0) + 1,
        };
    }
    let asked = bytes.get(at..(at + 8).min(counted.max(at)))?;
    match is_negotiation(asked, 1) {
        // A number for the two ends' records may follow.
        true => Some(Some(at + 8 + if asked[1] & 8 == 0 { 0 } else { 36 })),
        false => Some((at > 11).then_some(counted)),
    }
}

pub(super) fn rule(seen: Seen<'_>) -> Says {
    let own = seen.own;
    match (request(own), length(own, 0xd0)) {
        (Some(Some(_)), _) => Yes(Protocol::Rdp, "RDP connection request", Client),
        (_, Some(Some(length))) => match own.get(11..length) {
            None => More,
            Some(rest) if is_negotiation(rest, 2) || is_negotiation(rest, 3) => {
                Yes(Protocol::Rdp, "RDP connection confirmation", Server)
            }
            Some(_) => No,
        },
        (None, _) | (_, None) => More,
        _ => No,
    }
}

/// What is asked for or chosen: a kind, flags, the length 8, and bits or a number.
fn is_negotiation(bytes: &[u8], kind: u8) -> bool {
    matches!(bytes, [first, _, 8, 0, bits, 0, 0, 0, ..] if *first == kind && *bits <= 0x1f)
}

pub(super) fn client(state: State, bytes: &[u8]) -> Option<Turn> {
    match state.step {
        0 => match request(bytes)? {
            Some(length) => take(length, 1),
            None => Some(Over),
        },
        _ => Some(Wait),
    }
}

pub(super) fn server(state: State, bytes: &[u8]) -> Option<Turn> {
    if state.step == 0 {
        return Some(Wait);
    }
    let Some(length) = length(bytes, 0xd0)? else {
        return Some(Over);
    };
    let chosen = bytes.get(11..length)?;
    // TLS, also with more authentication inside. 0 is encryption of RDP's own.
    match is_negotiation(chosen, 2) && chosen[4] != 0 {
        true => Some(Change(length)),
        false => Some(Over),
    }
}
