//! The rules that identify HTTP/1, and what its lines look like.

use crate::protocol::Protocol;
use crate::protocol::identify::Says::{self, More, No, Yes};
use crate::protocol::identify::Speaker::{Client, Server};
use crate::protocol::identify::{PREFIX, Seen, first_line};
use memchr::{memchr, memrchr};

/// A byte of a token; methods are tokens.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The words of a request line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestLine<'a> {
    pub(super) method: &'a [u8],
    pub(super) target: &'a [u8],
    /// The last word; none in HTTP/0.9.
    pub(super) version: &'a [u8],
}

/// Cuts a line into the words of a request. Any space divides them, also several (RFC 9112, 3). A target with spaces
/// ends at the first, as in Suricata; one with other white space only where no space follows it. Where there is no
/// target, a version is in its place.
pub(super) fn request_line(line: &[u8]) -> RequestLine<'_> {
    let (method, rest) = word(line, is_space);
    let (target, rest) = match memchr(b' ', rest) {
        Some(_) => word(rest, |byte| byte == b' '),
        None => word(rest, is_space),
    };
    let version = rest.rsplit(|&byte| is_space(byte)).next().unwrap_or_default();
    RequestLine { method, target, version }
}

/// The words of a status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatusLine<'a> {
    pub(super) version: &'a [u8],
    pub(super) status: &'a [u8],
    pub(super) reason: &'a [u8],
}

/// Cuts a line into the words of a status line.
pub(super) fn status_line(line: &[u8]) -> StatusLine<'_> {
    let (version, rest) = word(line, is_space);
    let (status, reason) = word(rest, is_space);
    StatusLine { version, status, reason }
}

/// A first word up to where it `ends`, and what is behind it, without the space around both.
fn word(bytes: &[u8], ends: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let bytes = trim(bytes);
    let (word, rest) = bytes.split_at(bytes.iter().position(|&byte| ends(byte)).unwrap_or(bytes.len()));
    (word, trim(rest))
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes
        && is_space(*first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && is_space(*last)
    {
        bytes = rest;
    }
    bytes
}

/// White space within a line: RFC 9112, 3.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c | b'\r')
}

/// What is known of the place at which a start line is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At the beginning of a connection of any protocol.
    First,
    /// Right behind a message.
    Next,
    /// Anywhere.
    Lost,
}

/// Where in a line a request line begins: at its start, or else as late as possible.
pub(super) fn find_request(line: &[u8], place: Place) -> Option<usize> {
    if is_request_line(line) || is_odd_request_line(line, place) {
        return Some(0);
    }
    // In the middle of a line it has to look more like one: a known method, and a usual version at the end.
    let (mut rest, [b' ', version @ ..]) = line.split_last_chunk::<9>()? else {
        return None;
    };
    if !is_version(version) {
        return None;
    }
    while let Some(space) = memrchr(b' ', rest) {
        rest = &rest[..space];
        let method = rest.iter().rev().take(LONGEST_METHOD).take_while(|&&byte| is_token(byte)).count();
        if method >= SHORTEST_METHOD && METHODS.contains(&&rest[space - method..]) {
            return Some(space - method);
        }
    }
    None
}

/// Where in a line a status line begins: at its start, or else as late as possible.
pub(super) fn find_status(line: &[u8], place: Place) -> Option<usize> {
    if is_status_line(line) || (place == Place::Next && is_http(word(line, is_space).0)) {
        return Some(0);
    }
    (1..line.len().saturating_sub(11)).rev().find(|&at| line[at] == b'H' && is_status_line(&line[at..]))
}

/// Whether a line is a request line as clients send it, without its line end.
fn is_request_line(line: &[u8]) -> bool {
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    is_method(method)
        && !target.is_empty()
        && target.iter().all(|&byte| byte > b' ' && byte != 0x7f)
        && is_version(version)
}

/// Whether a line is a request line that only a lenient server reads.
fn is_odd_request_line(line: &[u8], place: Place) -> bool {
    let RequestLine { method, target, version } = request_line(line);
    if !is_method(method) || target.is_empty() {
        return false;
    }
    let is_known = METHODS.contains(&method);
    let is_target = target[0] == b'/' || (version.is_empty() && is_http(target) && target.get(4) == Some(&b'/'));
    match place {
        Place::First => is_known && (is_http(version) || (version.is_empty() && is_target)),
        Place::Next => is_http(version) || (is_known && is_target),
        Place::Lost => is_known && is_version(version),
    }
}

fn is_method(method: &[u8]) -> bool {
    !method.is_empty() && method.len() <= LONGEST_METHOD && method.iter().copied().all(is_token)
}

/// Longer than any registered method.
const LONGEST_METHOD: usize = 24;
/// Of those in use.
const SHORTEST_METHOD: usize = 3;

fn is_version(version: &[u8]) -> bool {
    matches!(version, [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor] if minor.is_ascii_digit())
}

/// Whether a word stands where a version does, whatever version it is.
fn is_http(version: &[u8]) -> bool {
    version.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"HTTP"))
}

pub(in crate::protocol) fn request(seen: Seen<'_>) -> Says {
    const EVIDENCE: &str = "HTTP/1 request line";
    // Robust servers skip empty lines and space in front.
    let is_blank = |byte: &u8| matches!(byte, b'\r' | b'\n' | b' ' | b'\t');
    let start = seen.own.iter().position(|byte| !is_blank(byte)).unwrap_or(seen.own.len());
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
        Some(b' ' | b'\t') if method > 0 => {}
        Some(_) => return No,
    }
    let rest = &own[method + 1..];
    // Behind a known method, and the beginning of a target that is likely, a lenient server takes anything.
    let is_known = METHODS.contains(&&own[..method]);
    let likely = is_known && matches!(trim(rest).first(), None | Some(b'/' | b'*' | b'h' | b'H'));
    match first_line(own) {
        Some(line) if is_request_line(line) || (likely && is_odd_request_line(line, Place::First)) => {
            Yes(Protocol::Http1, EVIDENCE, Client)
        }
        Some(_) => No,
        None if likely && seen.own.len() < PREFIX => More,
        None if likely && rest.first() == Some(&b'/') => {
            Yes(Protocol::Http1, "HTTP/1 request line, its first 4 KiB", Client)
        }
        None => unfinished(rest),
    }
}

/// What a line without its end is that has to become a request line as clients send it: so far a target, and behind
/// that the start of a version.
fn unfinished(rest: &[u8]) -> Says {
    let target = rest.iter().position(|&byte| byte <= b' ' || byte == 0x7f).unwrap_or(rest.len());
    match (target, rest.get(target)) {
        (0, Some(_)) => No,
        (_, None) if rest.len() < PREFIX => More,
        (_, Some(b' ')) => {
            let version = rest[target + 1..].strip_suffix(b"\r").unwrap_or(&rest[target + 1..]);
            let fits = version.len() < 8 && b"HTTP/1.".starts_with(&version[..version.len().min(7)]);
            if fits || is_version(version) { More } else { No }
        }
        _ => No,
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
fn is_status_line(line: &[u8]) -> bool {
    line.len() >= 12
        && is_version(&line[..8])
        && line[8] == b' '
        && matches!(line[9], b'1'..=b'9')
        && line[10..12].iter().all(u8::is_ascii_digit)
        && line.get(12).is_none_or(|&byte| byte == b' ')
}

/// Whether a line is a status line that only a lenient client reads: a digit behind any version.
fn is_odd_status_line(line: &[u8]) -> bool {
    let StatusLine { version, status, .. } = status_line(line);
    is_http(version) && status.first().is_some_and(u8::is_ascii_digit)
}

/// The longest line without an end that may become a status line.
const LONGEST_STATUS_LINE: usize = 256;

pub(in crate::protocol) fn status(seen: Seen<'_>) -> Says {
    const EVIDENCE: Says = Yes(Protocol::Http1, "HTTP/1 status line", Server);
    let name = &seen.own[..seen.own.len().min(4)];
    if !b"HTTP"[..name.len()].eq_ignore_ascii_case(name) {
        return No;
    }
    match seen.own.get(12) {
        Some(b' ' | b'\r' | b'\n') if is_status_line(&seen.own[..12]) => return EVIDENCE,
        _ => {}
    }
    match first_line(seen.own) {
        Some(line) if is_odd_status_line(line) => EVIDENCE,
        None if seen.own.len() < LONGEST_STATUS_LINE => More,
        _ => No,
    }
}
