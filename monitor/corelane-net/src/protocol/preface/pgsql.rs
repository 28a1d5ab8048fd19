//! PostgreSQL: the client asks for TLS, or for encryption by GSS, and the server answers by a letter.

use super::*;

const ASKS_TLS: &[u8; 8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
const ASKS_GSS: &[u8; 8] = b"\0\0\0\x08\x04\xd2\x16\x30";
const CANCELS: &[u8; 8] = b"\0\0\0\x10\x04\xd2\x16\x2e";

pub(super) fn rule(seen: Seen<'_>) -> Says {
    let own = seen.own;
    let mut all = No;
    for (message, evidence) in [
        (ASKS_TLS, "PostgreSQL request for TLS"),
        (ASKS_GSS, "PostgreSQL request for GSS"),
        (CANCELS, "PostgreSQL request to cancel"),
    ] {
        match begins(own, 8, |at, byte| byte == message[at]) {
            Some(true) => return Yes(Protocol::Pgsql, evidence, Client),
            None => all = More,
            Some(false) => {}
        }
    }
    // The start of a session: a length, version 3, and the first parameter.
    let start = |name: &[u8]| {
        begins(own, 8 + name.len(), |at, byte| match at {
            0 | 1 | 4 | 6 => byte == 0,
            2 | 3 => true,
            5 => byte == 3,
            7 => byte <= 2,
            _ => byte == name[at - 8],
        })
    };
    match [start(b"user\0"), start(b"database\0")] {
        [Some(true), _] | [_, Some(true)] => Yes(Protocol::Pgsql, "PostgreSQL start of a session", Client),
        [None, _] | [_, None] => More,
        _ => all,
    }
}

pub(super) fn client(state: State, bytes: &[u8]) -> Option<Turn> {
    match (state.step, bytes.first_chunk::<8>()?) {
        (0, ASKS_TLS) => take(8, 1),
        (0, ASKS_GSS) => take(8, 2),
        (0, _) => Some(Over),
        _ => Some(Wait),
    }
}

pub(super) fn server(state: State, bytes: &[u8]) -> Option<Turn> {
    match (state.step, bytes.first()?) {
        (0, _) => Some(Wait),
        (1, b'S') => Some(Change(1)),
        (_, b'N') => take(1, 0),
        _ => Some(Over),
    }
}
