//! Rules over the two streams of a connection.

use super::rule::Says::{self, More, No, Yes};
use super::rule::Speaker::{Client, Either, Server};
use super::rule::{Seen, first_line, starts};
use crate::protocol::Protocol;

fn contains_ignoring_case(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

pub(in crate::protocol) fn http2_preface(seen: Seen<'_>) -> Says {
    match starts(seen.own, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") {
        Yes(..) => Yes(Protocol::Http2, "HTTP/2 connection preface", Client),
        other => other,
    }
}

/// A server's first frame, if the client's preface was not seen: SETTINGS of stream 0, no acknowledgement, with whole
/// settings.
pub(in crate::protocol) fn http2_settings(seen: Seen<'_>) -> Says {
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

pub(in crate::protocol) fn bittorrent_handshake(seen: Seen<'_>) -> Says {
    match starts(seen.own, b"\x13BitTorrent protocol") {
        Yes(..) => Yes(Protocol::BitTorrent, "BitTorrent handshake", Either),
        other => other,
    }
}

/// SMB behind the four bytes of a NetBIOS session message; the session's own request or answer may come first.
pub(in crate::protocol) fn smb_header(seen: Seen<'_>) -> Says {
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
pub(in crate::protocol) fn text_greeting(seen: Seen<'_>) -> Says {
    let own = seen.own;
    let mut undecided = false;
    let mut starts_with = |word: &[u8]| match starts(own, word) {
        Yes(..) => true,
        More => {
            undecided = true;
            false
        }
        _ => false,
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
pub(in crate::protocol) fn telnet_options(seen: Seen<'_>) -> Says {
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
