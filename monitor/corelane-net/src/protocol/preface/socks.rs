//! SOCKS 4, 4a and 5 (RFC 1928, RFC 1929): what follows an accepted CONNECT.

use super::*;

const CONNECT: u8 = 1;

/// The first message of a client with its length: a list of methods, or a whole request of version 4.
fn first(bytes: &[u8]) -> Option<Option<usize>> {
    match *bytes {
        [5, 0, ..] => Some(None),
        [5, count, ref methods @ ..] => {
            let count = usize::from(count);
            let methods = &methods[..count.min(methods.len())];
            // The assigned ones.
            match methods.iter().all(|&method| method <= 9) {
                true if methods.len() < count => None,
                true => Some(Some(2 + count)),
                false => Some(None),
            }
        }
        [4, command, ..] if !matches!(command, 1 | 2) => Some(None),
        [4, ..] => {
            let (head, rest) = bytes.split_first_chunk::<8>()?;
            if head[2..4] == [0; 2] || head[4..8] == [0; 4] {
                return Some(None);
            }
            // An address that does not exist stands for a name behind the user.
            let names = if head[4..7] == [0; 3] { 2 } else { 1 };
            let mut at = 0;
            for _ in 0..names {
                let end = rest[at..].iter().position(|byte| !(0x21..0x7f).contains(byte));
                match end {
                    Some(end) if end <= 255 && rest[at + end] == 0 => at += end + 1,
                    None if rest.len() - at <= 255 => return None,
                    _ => return Some(None),
                }
            }
            Some(Some(8 + at))
        }
        [] | [5] => None,
        _ => Some(None),
    }
}

/// Whether the server's bytes answer what the client's begin with.
fn answers(own: &[u8], asked: &[u8]) -> Option<bool> {
    match (own, asked) {
        ([5, method, ..], [5, count, methods @ ..]) => {
            let methods = &methods[..methods.len().min((*count).into())];
            Some(*method == 0xff || methods.contains(method))
        }
        ([0, code, ..], [4, ..]) => Some((0x5a..=0x5d).contains(code)),
        ([5], [5, ..]) | ([0], [4, ..]) => None,
        _ => Some(false),
    }
}

/// The answer decides: three bytes of a client alone are weak evidence. So a client's bytes wait for it, as long as
/// they have the form of a request, with nothing but the next message behind.
pub(super) fn rule(seen: Seen<'_>) -> Says {
    let (own, other) = (seen.own, seen.other);
    if !matches!(own, [0 | 4 | 5, ..]) {
        return No;
    }
    if matches!((own, other), ([5, ..], [5, ..]) | ([0, ..], [4, ..])) {
        match (first(other), answers(own, other)) {
            (None, _) | (Some(Some(_)), None) => return More,
            (Some(Some(_)), Some(true)) => {
                let evidence = if own[0] == 5 { "SOCKS 5 methods" } else { "SOCKS 4 request" };
                return Yes(Protocol::Socks, evidence, Server);
            }
            _ => {}
        }
    }
    let waits = match first(own) {
        None => true,
        Some(None) => false,
        Some(Some(length)) => {
            let is_answerable = other.is_empty() || answers(other, own) != Some(false);
            is_answerable && may_follow(&own[length..])
        }
    };
    if waits { More } else { No }
}

/// Whether this may be what a client sends next: a request, or a name and a password.
fn may_follow(bytes: &[u8]) -> bool {
    match *bytes {
        [5, command, ..] => command <= 3,
        [1, length, ref name @ ..] => length > 0 && name.iter().take(length.into()).all(|&byte| byte != 0),
        [] | [1 | 5] => true,
        _ => false,
    }
}

/// The length of an address of version 5 with its port, behind its kind.
fn address(bytes: &[u8]) -> Option<Option<usize>> {
    Some(match *bytes.get(3..)? {
        [] => return None,
        [1, ..] => Some(10),
        [4, ..] => Some(22),
        [3] => return None,
        [3, length, ..] => Some(7 + usize::from(length)),
        _ => None,
    })
}

pub(super) fn client(state: State, bytes: &[u8]) -> Option<Turn> {
    match state.step {
        0 => match (first(bytes)?, bytes) {
            (Some(length), [5, ..]) => take(length, 1),
            (Some(length), [4, CONNECT, ..]) => take(length, 5),
            _ => Some(Over),
        },
        2 => {
            let mut fields = Fields(bytes);
            let version = fields.u8()?;
            let (user, word) = (fields.counted_by_u8(), fields.counted_by_u8());
            match (version, user, word) {
                (1, Some(_), Some(_)) => take(bytes.len() - fields.0.len(), 3),
                (1, ..) => None,
                _ => Some(Over),
            }
        }
        4 => match (bytes.first_chunk::<3>()?, address(bytes)?) {
            ([5, CONNECT, 0], Some(length)) => take(length, 6),
            _ => Some(Over),
        },
        _ => Some(Wait),
    }
}

pub(super) fn server(state: State, bytes: &[u8]) -> Option<Turn> {
    match state.step {
        1 => match bytes.first_chunk()? {
            [5, 0] => take(2, 4),
            [5, 2] => take(2, 2),
            _ => Some(Over),
        },
        3 => match bytes.first_chunk()? {
            [1, 0] => take(2, 4),
            _ => Some(Over),
        },
        5 => match bytes.first_chunk()? {
            [0, 0x5a, _, _, _, _, _, _] => Some(Change(8)),
            _ => Some(Over),
        },
        6 => match (bytes.first_chunk::<3>()?, address(bytes)?) {
            ([5, 0, 0], Some(length)) => Some(Change(length)),
            _ => Some(Over),
        },
        _ => Some(Wait),
    }
}
