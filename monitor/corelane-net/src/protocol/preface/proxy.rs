//! The PROXY protocol of HAProxy, versions 1 and 2.

use super::*;

/// The header that proxies put in front of a connection (the PROXY protocol of HAProxy, versions 1 and 2). What follows
/// is judged as if it were not there.
pub(in crate::protocol) fn proxy_header(seen: Seen<'_>) -> Says {
    const BINARY: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
    const LONGEST_LINE: usize = 107;
    let own = seen.own;
    match begins(own, 14, |at, byte| match at {
        0..12 => byte == BINARY[at],
        12 => matches!(byte, 0x20 | 0x21),
        _ => matches!(byte, 0 | 0x11 | 0x12 | 0x21 | 0x22 | 0x31 | 0x32),
    }) {
        None => return More,
        Some(true) => {
            let Some(length) = own.get(14..16).map(|length| u16::from_be_bytes([length[0], length[1]])) else {
                return More;
            };
            let length = 16 + usize::from(length);
            return if own.len() < length { More } else { Says::Behind(length) };
        }
        Some(false) => {}
    }
    match begins(own, 6, |at, byte| byte == b"PROXY "[at]) {
        Some(true) => {}
        other => return says(other, No),
    }
    let line = &own[..own.len().min(LONGEST_LINE)];
    let Some(end) = memchr::memchr(b'\n', line) else {
        return if line.len() < LONGEST_LINE { More } else { No };
    };
    let text = line[..end].strip_suffix(b"\r").and_then(|text| str::from_utf8(text).ok());
    let mut words = text.unwrap_or_default().split(' ').skip(1);
    let is_header = match words.next() {
        Some("UNKNOWN") => true,
        Some(family @ ("TCP4" | "TCP6")) => {
            let is_v4 = family == "TCP4";
            let addresses = [words.next(), words.next()];
            let ports = [words.next(), words.next()];
            let is_address = |word: Option<&str>| {
                word.and_then(|word| word.parse::<std::net::IpAddr>().ok())
                    .is_some_and(|found| found.is_ipv4() == is_v4)
            };
            let is_port = |word: Option<&str>| word.is_some_and(|word| word.parse::<u16>().is_ok());
            addresses.into_iter().all(is_address) && ports.into_iter().all(is_port) && words.next().is_none()
        }
        _ => false,
    };
    if is_header { Says::Behind(end + 1) } else { No }
}
