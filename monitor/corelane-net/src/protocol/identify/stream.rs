//! Rules over the two streams of a connection.

use super::protocol::Protocol;
use super::rule::PREFIX;
use super::rule::Says::{self, More, No, Yes};
use super::rule::Speaker::{Client, Either, Server};
use super::stun::stun;
use crate::protocol::dns;

/// The bytes that a rule over a stream examines.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) own: &'a [u8],
    /// The bytes of the other side so far.
    pub(super) other: &'a [u8],
}

/// The rules in their order; a rule counts when all before it have said no.
pub(super) const RULES: [fn(Seen<'_>) -> Says; 13] = [
    http2_preface,
    http1_request,
    http1_status,
    tls_record,
    ssl2_hello,
    ssh_banner,
    bittorrent_handshake,
    smb_header,
    text_greeting,
    telnet_options,
    http2_settings,
    stun_message,
    dns_over_tcp,
];

/// Whether `bytes` start with `magic`, or may still do so.
fn starts(bytes: &[u8], magic: &[u8]) -> Says {
    let common = bytes.len().min(magic.len());
    match bytes[..common] == magic[..common] {
        false => No,
        true if common < magic.len() => More,
        true => Yes(Protocol::Http1, "", Either),
    }
}

/// The first line without its end, once the end is there.
fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    Some(bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]))
}

fn contains_ignoring_case(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

fn http2_preface(seen: Seen<'_>) -> Says {
    match starts(seen.own, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") {
        Yes(..) => Yes(Protocol::Http2, "HTTP/2 connection preface", Client),
        other => other,
    }
}

/// A server's first frame, if the client's preface was not seen: SETTINGS of stream 0, no acknowledgement, with whole
/// settings.
fn http2_settings(seen: Seen<'_>) -> Says {
    let len = seen.own.len().min(9);
    let fits = |at: usize, byte: u8| match at {
        0 | 4..=8 => byte == 0,
        1 => byte <= 1,
        3 => byte == 4,
        _ => true,
    };
    if !seen.own[..len].iter().enumerate().all(|(at, &byte)| fits(at, byte)) {
        return No;
    }
    let Some(header) = seen.own.first_chunk::<9>() else {
        return More;
    };
    let length = usize::from(u16::from_be_bytes([header[1], header[2]]));
    if length == 0 || length % 6 != 0 {
        return No;
    }
    // Each setting that is there has an assigned number.
    match seen.own[9..].chunks(6).take(length / 6).all(|setting| match *setting {
        [high, low, ..] => high == 0 && (1..=16).contains(&low),
        [high] => high == 0,
        [] => true,
    }) {
        false => No,
        true if seen.own.len() < 9 + length => More,
        true => Yes(Protocol::Http2, "HTTP/2 SETTINGS frame", Server),
    }
}

/// A byte of a token; methods are tokens.
pub(in crate::protocol) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a line is a request line, without its line end.
pub(in crate::protocol) fn is_request_line(line: &[u8]) -> bool {
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

fn http1_request(seen: Seen<'_>) -> Says {
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
pub(in crate::protocol) const METHODS: [&[u8]; 26] = [
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
pub(in crate::protocol) fn is_status_line(line: &[u8]) -> bool {
    line.len() >= 12
        && is_version(&line[..8])
        && line[8] == b' '
        && matches!(line[9], b'1'..=b'9')
        && line[10..12].iter().all(u8::is_ascii_digit)
        && line.get(12).is_none_or(|&byte| byte == b' ')
}

fn http1_status(seen: Seen<'_>) -> Says {
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

/// A TLS record whose kind and version exist and whose length is allowed. For a handshake the first message is checked
/// too.
fn tls_record(seen: Seen<'_>) -> Says {
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
        22 => tls_handshake(length, body),
        _ => No,
    }
}

/// The first message of a handshake record: a hello, or another message in clear text.
fn tls_handshake(record: usize, body: &[u8]) -> Says {
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

/// A ClientHello in the form of SSL 2: its three lists have possible lengths, which add up to the length of the record.
fn ssl2_hello(seen: Seen<'_>) -> Says {
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

fn ssh_banner(seen: Seen<'_>) -> Says {
    let version = match starts(seen.own, b"SSH-") {
        Yes(..) => &seen.own[4..],
        other => return other,
    };
    match version {
        [b'1' | b'2', b'.', minor, ..] if minor.is_ascii_digit() => Yes(Protocol::Ssh, "SSH version banner", Either),
        [] | [b'1' | b'2'] | [b'1' | b'2', b'.'] => More,
        _ => No,
    }
}

fn bittorrent_handshake(seen: Seen<'_>) -> Says {
    match starts(seen.own, b"\x13BitTorrent protocol") {
        Yes(..) => Yes(Protocol::BitTorrent, "BitTorrent handshake", Either),
        other => other,
    }
}

/// SMB behind the four bytes of a NetBIOS session message; the session's own request or answer may come first.
fn smb_header(seen: Seen<'_>) -> Says {
    let mut own = seen.own;
    // A session request names two hosts in 34 bytes each; its answer is four bytes long.
    let in_front = match own.first() {
        Some(0x81) => [0x81, 0, 0, 68].as_slice(),
        Some(0x82) => &[0x82, 0, 0, 0],
        _ => &[],
    };
    match starts(own, in_front) {
        Yes(..) => {}
        other => return other,
    }
    let skip = in_front.len() + if in_front.first() == Some(&0x81) { 68 } else { 0 };
    own = match own.get(skip..) {
        Some(rest) if !rest.is_empty() => rest,
        _ => return More,
    };
    let fits = |at: usize, byte: u8| match at {
        0 => byte == 0,
        1 => byte <= 1,
        4 => (0xfc..=0xff).contains(&byte),
        5..=7 => byte == b"SMB"[at - 5],
        _ => true,
    };
    if !own.iter().take(8).enumerate().all(|(at, &byte)| fits(at, byte)) {
        return No;
    }
    match own.get(4..8) {
        None => More,
        Some([0xff, ..]) => Yes(Protocol::Smb, "SMB 1 header", Either),
        Some([0xfe, ..]) => Yes(Protocol::Smb, "SMB 2 header", Either),
        Some([0xfd, ..]) => Yes(Protocol::Smb, "SMB 3 header, encrypted", Either),
        Some(_) => Yes(Protocol::Smb, "SMB 3 header, compressed", Either),
    }
}

/// Protocols whose server greets with a line, and the first word of their clients.
fn text_greeting(seen: Seen<'_>) -> Says {
    let own = seen.own;
    let mut undecided = false;
    let mut starts_with = |word: &[u8]| match starts(own, word) {
        Yes(..) => true,
        More => {
            undecided = true;
            false
        }
        No => false,
    };
    if starts_with(b"220 ") || starts_with(b"220-") {
        return match first_line(own) {
            None => More,
            Some(line) if contains_ignoring_case(line, b"SMTP") => Yes(Protocol::Smtp, "SMTP greeting", Server),
            Some(line) if contains_ignoring_case(line, b"FTP") => Yes(Protocol::Ftp, "FTP greeting", Server),
            // The client's first word decides.
            Some(_) => match first_line(seen.other) {
                Some(line) if is_ftp_command(line) => Yes(Protocol::Ftp, "greeting 220, then an FTP command", Server),
                Some(line) if is_smtp_command(line) => {
                    Yes(Protocol::Smtp, "greeting 220, then an SMTP command", Server)
                }
                Some(_) => No,
                None => More,
            },
        };
    }
    if starts_with(b"EHLO ") || starts_with(b"HELO ") {
        return match first_line(own) {
            None => More,
            Some(_) => Yes(Protocol::Smtp, "SMTP command EHLO or HELO", Client),
        };
    }
    if starts_with(b"+OK") {
        return match own.get(3) {
            None => More,
            Some(b' ' | b'\r') => match first_line(own) {
                None => More,
                Some(_) => Yes(Protocol::Pop3, "POP3 greeting", Server),
            },
            Some(_) => No,
        };
    }
    if starts_with(b"* OK ") || starts_with(b"* PREAUTH ") {
        return match first_line(own) {
            None => More,
            Some(_) => Yes(Protocol::Imap, "IMAP greeting", Server),
        };
    }
    if FTP_COMMANDS.iter().any(|word| starts_with(word)) {
        return match (first_line(own), first_line(seen.other)) {
            (Some(line), Some(answer)) if is_ftp_command(line) => match answer {
                [b'2' | b'3', b'0'..=b'5', b'0'..=b'9', b' ' | b'-', ..] => {
                    Yes(Protocol::Ftp, "FTP command and its answer", Client)
                }
                [b'+', b'O', b'K', ..] => Yes(Protocol::Pop3, "POP3 command and its answer", Client),
                _ => No,
            },
            (Some(line), None) if is_ftp_command(line) => More,
            (None, _) => More,
            _ => No,
        };
    }
    if undecided { More } else { No }
}

const FTP_COMMANDS: [&[u8]; 3] = [b"USER ", b"AUTH ", b"FEAT"];

fn is_ftp_command(line: &[u8]) -> bool {
    let word = |word: &[u8]| line.len() >= word.len() && line[..word.len()].eq_ignore_ascii_case(word);
    word(b"USER ") || word(b"AUTH TLS") || word(b"AUTH SSL") || (word(b"FEAT") && line.len() == 4)
}

fn is_smtp_command(line: &[u8]) -> bool {
    let word = |word: &[u8]| line.len() >= word.len() && line[..word.len()].eq_ignore_ascii_case(word);
    word(b"EHLO") || word(b"HELO") || word(b"MAIL FROM")
}

/// Two option negotiations in a row.
fn telnet_options(seen: Seen<'_>) -> Says {
    let fits = |at: usize, byte: u8| match at % 3 {
        0 => byte == 0xff,
        1 => (0xfb..=0xfe).contains(&byte),
        _ => byte <= 49,
    };
    let fit = seen.own.iter().take(6).enumerate().all(|(at, &byte)| fits(at, byte));
    match (fit, seen.own.len() >= 6) {
        (false, _) => No,
        (true, false) => More,
        (true, true) => Yes(Protocol::Telnet, "Telnet option negotiation", Either),
    }
}

fn stun_message(seen: Seen<'_>) -> Says {
    stun(seen.own, true)
}

fn dns_over_tcp(seen: Seen<'_>) -> Says {
    let Some((length, message)) = seen.own.split_first_chunk::<2>() else {
        return More;
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length < dns::SHORTEST {
        return No;
    }
    match dns::looks_like(&message[..message.len().min(length)], message.len() < length) {
        dns::Looks::Query => Yes(Protocol::Dns, "DNS query behind its length", Client),
        dns::Looks::Response => Yes(Protocol::Dns, "DNS response behind its length", Server),
        dns::Looks::Cut => More,
        dns::Looks::Other => No,
    }
}
