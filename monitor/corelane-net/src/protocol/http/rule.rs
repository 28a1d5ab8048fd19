//! The rules that identify HTTP/1, and what its lines look like.

use crate::protocol::Protocol;
use crate::protocol::identify::Says::{self, More, No, Yes};
use crate::protocol::identify::Speaker::{Client, Server};
use crate::protocol::identify::{PREFIX, Seen, first_line, starts};

/// A byte of a token; methods are tokens.
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a line is a request line, without its line end.
pub(super) fn is_request_line(line: &[u8]) -> bool {
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    !method.is_empty()
        && method.len() <= LONGEST_METHOD
        && method.iter().copied().all(is_token)
        && !target.is_empty()
        && target.iter().all(|&byte| byte > b' ' && byte != 0x7f)
        && is_version(version)
}

/// Longer than any registered method.
const LONGEST_METHOD: usize = 24;

fn is_version(version: &[u8]) -> bool {
    matches!(version, [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor] if minor.is_ascii_digit())
}

pub(in crate::protocol) fn request(seen: Seen<'_>) -> Says {
    const EVIDENCE: &str = "HTTP/1 request line";
    // Robust servers skip empty lines in front.
    let start = seen.own.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(seen.own.len());
    if start > 4 {
        return No;
    }
    let own = &seen.own[start..];
    let method = own.iter().position(|&byte| !is_token(byte)).unwrap_or(own.len());
    if method > LONGEST_METHOD {
        return No;
    }
    match own.get(method) {
        None => return More,
        Some(b' ') if method > 0 => {}
        Some(_) => return No,
    }
    match first_line(own) {
        Some(line) if is_request_line(line) => Yes(Protocol::Http1, EVIDENCE, Client),
        Some(_) => No,
        None => {
            // The incomplete line must be a target so far, and behind that the start of a version.
            let rest = &own[method + 1..];
            let target = rest.iter().position(|&byte| byte <= b' ' || byte == 0x7f).unwrap_or(rest.len());
            match (target, rest.get(target)) {
                (0, Some(_)) => No,
                (_, None) if seen.own.len() < PREFIX => More,
                (_, None) if METHODS.contains(&&own[..method]) && rest[0] == b'/' => {
                    Yes(Protocol::Http1, "HTTP/1 request line, its first 4 KiB", Client)
                }
                (_, Some(b' ')) => {
                    let version = rest[target + 1..].strip_suffix(b"\r").unwrap_or(&rest[target + 1..]);
                    let fits = version.len() < 8 && b"HTTP/1.".starts_with(&version[..version.len().min(7)]);
                    if fits || is_version(version) { More } else { No }
                }
                _ => No,
            }
        }
    }
}

/// The methods in use, for lines that may be requests and show no more than that.
pub(super) const METHODS: [&[u8]; 26] = [
    b"GET",
    b"POST",
    b"HEAD",
    b"PUT",
    b"DELETE",
    b"OPTIONS",
    b"CONNECT",
    b"TRACE",
    b"PATCH",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"REPORT",
    b"SEARCH",
    b"SUBSCRIBE",
    b"UNSUBSCRIBE",
    b"NOTIFY",
    b"M-SEARCH",
    b"PURGE",
    b"MERGE",
    b"CHECKOUT",
    b"MKACTIVITY",
];

/// Whether a line starts like a status line: version, space, three digits, and a space or nothing.
pub(super) fn is_status_line(line: &[u8]) -> bool {
    line.len() >= 12
        && is_version(&line[..8])
        && line[8] == b' '
        && matches!(line[9], b'1'..=b'9')
        && line[10..12].iter().all(u8::is_ascii_digit)
        && line.get(12).is_none_or(|&byte| byte == b' ')
}

pub(in crate::protocol) fn status(seen: Seen<'_>) -> Says {
    match starts(seen.own, b"HTTP/1.") {
        Yes(..) => match seen.own.get(12) {
            None => More,
            Some(b' ' | b'\r' | b'\n') if is_status_line(&seen.own[..12]) => {
                Yes(Protocol::Http1, "HTTP/1 status line", Server)
            }
            Some(_) => No,
        },
        other => other,
    }
}
