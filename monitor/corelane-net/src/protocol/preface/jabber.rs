//! XMPP: the elements `starttls` of the client and `proceed` of the server (RFC 6120, 5.4.2).

use super::*;

const STREAM: &[u8] = b"<stream:stream";
const NAMESPACE: &[u8] = b"http://etherx.jabber.org/streams";
/// The longest element that is read.
const LONGEST: usize = 256;

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, word)
}

/// The head of a stream, with a declaration of XML in front or without.
pub(super) fn rule(seen: Seen<'_>) -> Says {
    let mut own = seen.own;
    match begins(own, 6, |at, byte| byte == b"<?xml "[at]) {
        None => return More,
        Some(false) => {}
        Some(true) => match find(own, b">") {
            None => return More,
            Some(end) => own = own[end + 1..].trim_ascii_start(),
        },
    }
    match begins(own, STREAM.len(), |at, byte| byte == STREAM[at]) {
        Some(true) => {}
        other => return says(other, No),
    }
    let Some(end) = find(own, b">") else {
        return More;
    };
    let head = &own[..end];
    match find(head, NAMESPACE).is_some() {
        false => No,
        // The answer has a number.
        true if find(head, b" id=").is_some() => Yes(Protocol::Jabber, "XMPP stream", Server),
        true => Yes(Protocol::Jabber, "XMPP stream", Client),
    }
}

/// The next element if it has one of these names, with its length and the name; anything else is stepped over.
fn element<'a>(bytes: &[u8], names: &[&'a [u8]]) -> Option<Result<(usize, &'a [u8]), usize>> {
    match bytes {
        [b'<', rest @ ..] => {
            let mut is_cut = false;
            for &name in names {
                match begins(rest, name.len() + 1, |at, byte| match name.get(at) {
                    Some(&letter) => byte == letter,
                    None => matches!(byte, b'/' | b'>') || byte.is_ascii_whitespace(),
                }) {
                    Some(true) => {
                        let seen = &bytes[..bytes.len().min(LONGEST)];
                        let Some(end) = find(seen, b">").map(|end| end + 1) else {
                            return (seen.len() == LONGEST).then_some(Err(1));
                        };
                        if seen[..end].ends_with(b"/>") {
                            return Some(Ok((end, name)));
                        }
                        // An element without content may be written as two tags.
                        let close = find(&seen[end..], b">").map(|close| (end + close + 1, name));
                        return match close {
                            None if seen.len() == LONGEST => Some(Err(1)),
                            close => close.map(Ok),
                        };
                    }
                    None => is_cut = true,
                    Some(false) => {}
                }
            }
            if is_cut { None } else { Some(Err(1)) }
        }
        _ => Some(Err(memchr::memchr(b'<', bytes).unwrap_or(bytes.len()))),
    }
}

pub(super) fn client(state: State, bytes: &[u8]) -> Option<Turn> {
    match (state.step, element(bytes, &[b"starttls"])?) {
        (0, Ok((length, _))) => take(length, 1),
        (0, Err(length)) => Some(Take(length, state)),
        _ => Some(Wait),
    }
}

pub(super) fn server(state: State, bytes: &[u8]) -> Option<Turn> {
    match element(bytes, &[b"proceed", b"failure"])? {
        Ok((length, b"proceed")) if state.step == 1 => Some(Change(length)),
        Ok((length, b"failure")) => take(length, 0),
        Ok((length, _)) | Err(length) => Some(Take(length, state)),
    }
}
