//! MySQL: behind the server's greeting the client asks for TLS by the first 32 bytes of its login, and goes on at once.

use super::*;

/// CLIENT_SSL among the capabilities.
const TLS: u16 = 0x0800;

/// The greeting of protocol 10: number 0, a version, and zeros at the places of the filler.
pub(super) fn rule(seen: Seen<'_>) -> Says {
    let fits = |at: usize, byte: u8| match at {
        // Other protocols begin with lower numbers.
        0 => byte >= 32,
        1..=3 => byte == 0,
        4 => byte == 10,
        _ => byte.is_ascii_digit(),
    };
    match begins(seen.own, 6, fits) {
        Some(true) => match greeting(seen.own) {
            None => More,
            Some((_, None)) => No,
            Some((_, Some(_))) => Yes(Protocol::Mysql, "MySQL greeting", Server),
        },
        other => says(other, No),
    }
}

/// The length of the greeting and the lower half of its capabilities, once it is whole.
fn greeting(bytes: &[u8]) -> Option<(usize, Option<u16>)> {
    let whole = 4 + usize::from(*bytes.first()?);
    // The rest of a version that is text.
    let version = bytes.get(5..)?;
    let end = version.iter().position(|byte| !(0x20..0x7f).contains(byte));
    if end.unwrap_or(version.len()) > 64 || end.is_some_and(|end| version[end] != 0) {
        return Some((whole, None));
    }
    let message = bytes.get(..whole)?;
    let capabilities = |end: usize| {
        // A number and eight bytes of a challenge are in between.
        let [0, low, high] = *message.get(5 + end + 1 + 4 + 8..)?.first_chunk::<3>()? else {
            return None;
        };
        Some(u16::from_le_bytes([low, high]))
    };
    Some((whole, end.and_then(capabilities)))
}

pub(super) fn server(state: State, bytes: &[u8]) -> Option<Turn> {
    match state.step {
        0 => match greeting(bytes)? {
            (whole, Some(capabilities)) if capabilities & TLS != 0 => take(whole, 1),
            _ => Some(Over),
        },
        _ => Some(Wait),
    }
}

pub(super) fn client(state: State, bytes: &[u8]) -> Option<Turn> {
    if state.step == 0 {
        return Some(Wait);
    }
    match bytes.first_chunk::<6>()? {
        [32, 0, 0, 1, low, high] if u16::from_le_bytes([*low, *high]) & TLS != 0 => Some(Change(36)),
        _ => Some(Over),
    }
}
