//! LDAP: an extended request for StartTLS, and the response with its number (RFC 4511, 4.14).

use super::*;

const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";
const BIND: u8 = 0x60;
const SEARCH: u8 = 0x63;
const EXTENDED: u8 = 0x77;
const EXTENDED_RESPONSE: u8 = 0x78;

/// Why nothing was read.
enum Stop {
    Cut,
    Wrong,
}

/// A message as far as it is there.
struct Message<'a> {
    /// Its bytes, more than are there perhaps.
    length: usize,
    id: u32,
    kind: u8,
    /// The first bytes of the operation.
    content: Fields<'a>,
}

/// The kind and the length in front of an element.
fn element(fields: &mut Fields<'_>) -> Result<(u8, usize), Stop> {
    let kind = fields.u8().ok_or(Stop::Cut)?;
    let length = match fields.u8().ok_or(Stop::Cut)? {
        length @ 0..=0x7f => length.into(),
        count @ 0x81..=0x84 => {
            let bytes = fields.take(usize::from(count - 0x80)).ok_or(Stop::Cut)?;
            bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte))
        }
        _ => return Err(Stop::Wrong),
    };
    Ok((kind, length))
}

/// The content of an element of this kind, as far as it is short and whole.
fn content<'a>(fields: &mut Fields<'a>, kind: u8) -> Result<&'a [u8], Stop> {
    match element(fields)? {
        (found, length) if found == kind && length <= HELD => fields.take(length).ok_or(Stop::Cut),
        _ => Err(Stop::Wrong),
    }
}

fn message(bytes: &[u8]) -> Result<Message<'_>, Stop> {
    let mut fields = Fields(bytes);
    if bytes.first().is_some_and(|&first| first != 0x30) {
        return Err(Stop::Wrong);
    }
    let (_, length) = element(&mut fields)?;
    let head = bytes.len() - fields.0.len();
    let id = match content(&mut fields, 2)? {
        number @ [0..0x80, ..] if number.len() <= 4 => number.iter().fold(0, |id, &byte| id << 8 | u32::from(byte)),
        _ => return Err(Stop::Wrong),
    };
    let (kind, inside) = element(&mut fields)?;
    let before = bytes.len() - fields.0.len() - head;
    // Only controls may follow the operation.
    if length > 1 << 24 || before + inside > length {
        return Err(Stop::Wrong);
    }
    Ok(Message { length: head + length, id, kind, content: fields })
}

/// The first request of a client: a bind of version 2 or 3, an extended request with its number, or a search.
pub(super) fn rule(seen: Seen<'_>) -> Says {
    let judged = message(seen.own).and_then(|mut message| {
        let fields = &mut message.content;
        Ok(match message.kind {
            BIND => matches!(content(fields, 2)?, [2 | 3]).then_some("LDAP bind"),
            EXTENDED => {
                let name = content(fields, 0x80)?;
                let is_name = name.len() > 2 && name.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
                is_name.then_some("LDAP extended request")
            }
            SEARCH => {
                content(fields, 4)?;
                let [scope, aliases] = [content(fields, 10)?, content(fields, 10)?];
                matches!((scope, aliases), ([0..=3], [0..=3])).then_some("LDAP search")
            }
            _ => None,
        })
    });
    match judged {
        Err(Stop::Cut) => More,
        Ok(Some(evidence)) => Yes(Protocol::Ldap, evidence, Client),
        Ok(None) | Err(Stop::Wrong) => No,
    }
}

pub(super) fn client(state: State, bytes: &[u8]) -> Option<Turn> {
    if state.step != 0 {
        return Some(Wait);
    }
    read(bytes, |message| match message.kind {
        EXTENDED => match content(&mut message.content, 0x80)? {
            START_TLS => Ok(Take(message.length, State { step: 1, id: message.id })),
            _ => Ok(Take(message.length, state)),
        },
        _ => Ok(Take(message.length, state)),
    })
}

pub(super) fn server(state: State, bytes: &[u8]) -> Option<Turn> {
    read(bytes, |message| match message.kind {
        EXTENDED_RESPONSE if state.step == 1 && message.id == state.id => match content(&mut message.content, 10)? {
            [0] => Ok(Change(message.length)),
            _ => Ok(Take(message.length, State::default())),
        },
        _ => Ok(Take(message.length, state)),
    })
}

/// What a message means.
fn read(bytes: &[u8], meaning: impl Fn(&mut Message<'_>) -> Result<Turn, Stop>) -> Option<Turn> {
    match message(bytes).and_then(|mut message| meaning(&mut message)) {
        Err(Stop::Cut) => None,
        Err(Stop::Wrong) => Some(Over),
        Ok(turn) => Some(turn),
    }
}
