//! JSON objects, written key by key into the buffer that they go out of: most of the time of an event is its text.

use crate::time::Timestamp;
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr};

/// A key as it is written, with the comma in front of it: one piece of text that the compiler knows the length of.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}
pub(super) use key;

/// An object in work.
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
}

impl Object<'_> {
    #[inline(always)]
    fn key(&mut self, key: &'static str) -> &mut Vec<u8> {
        self.out.extend_from_slice(key.as_bytes());
        self.out
    }

    #[inline(always)]
    pub(super) fn text(&mut self, key: &'static str, value: &str) {
        text(self.key(key), value);
    }

    /// Nothing without a value.
    #[inline(always)]
    pub(super) fn some_text(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    #[inline(always)]
    pub(super) fn number(&mut self, key: &'static str, value: impl Into<u64>) {
        number(self.key(key), value.into());
    }

    /// Nothing without a value.
    #[inline(always)]
    pub(super) fn some_number(&mut self, key: &'static str, value: Option<impl Into<u64>>) {
        if let Some(value) = value {
            self.number(key, value);
        }
    }

    /// `false` is left out, as Suricata does.
    #[inline(always)]
    pub(super) fn flag(&mut self, key: &'static str, value: bool) {
        if value {
            self.key(key).extend_from_slice(b"true");
        }
    }

    /// Nanoseconds since the epoch, as text.
    pub(super) fn time(&mut self, key: &'static str, time_ns: u64) {
        let out = self.key(key);
        out.push(b'"');
        out.extend_from_slice(&Timestamp::of(time_ns).eve());
        out.push(b'"');
    }

    pub(super) fn address(&mut self, key: &'static str, address: IpAddr) {
        let out = self.key(key);
        match address {
            IpAddr::V4(address) => {
                for (i, octet) in address.octets().into_iter().enumerate() {
                    out.push(if i == 0 { b'"' } else { b'.' });
                    number(out, octet.into());
                }
                out.push(b'"');
            }
            IpAddr::V6(address) => v6(out, address),
        }
    }

    /// A document.
    pub(super) fn value(&mut self, key: &'static str, value: &serde_json::Value) {
        write!(self.key(key), "{value}").expect("memory takes everything");
    }

    /// In hexadecimal, so many digits at least.
    #[inline(always)]
    pub(super) fn hex(&mut self, key: &'static str, value: impl Into<u16>, least: usize) {
        hex(self.key(key), value.into(), least);
    }

    /// An object inside.
    pub(super) fn object(&mut self, key: &'static str, write: impl FnOnce(&mut Object<'_>)) {
        object(self.key(key), write);
    }

    /// A list. `write` writes an item.
    pub(super) fn list<T>(
        &mut self,
        key: &'static str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Vec<u8>, T),
    ) {
        let out = self.key(key);
        out.push(b'[');
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            write(out, item);
        }
        out.push(b']');
    }

    /// Nothing without items.
    pub(super) fn some_list<T>(
        &mut self,
        key: &'static str,
        items: impl IntoIterator<Item = T>,
        write: impl FnMut(&mut Vec<u8>, T),
    ) {
        self.list_within(key, usize::MAX, items, write);
    }

    /// The first items, as many as come to at most `most` bytes of text; nothing without any. Returns their number.
    pub(super) fn list_within<T>(
        &mut self,
        key: &'static str,
        most: usize,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Vec<u8>, T),
    ) -> usize {
        let begin = self.out.len();
        let out = self.key(key);
        let first = out.len();
        let mut written = 0;
        for item in items {
            let end = out.len();
            // The first comma gives way to the bracket, as in an object.
            out.push(b',');
            write(out, item);
            if out.len() - first > most {
                out.truncate(end);
                break;
            }
            written += 1;
        }
        match out.get_mut(first) {
            Some(comma) => {
                *comma = b'[';
                out.push(b']');
            }
            None => out.truncate(begin),
        }
        written
    }
}

/// Appends an object.
pub(super) fn object(out: &mut Vec<u8>, write: impl FnOnce(&mut Object<'_>)) {
    let begin = out.len();
    write(&mut Object { out: &mut *out });
    match out.get_mut(begin) {
        // In the place of the first key's comma.
        Some(first) => *first = b'{',
        None => out.push(b'{'),
    }
    out.push(b'}');
}

/// Appends a number.
pub(super) fn number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn hex(out: &mut Vec<u8>, value: u16, least: usize) {
    out.push(b'"');
    digits(out, value, least);
    out.push(b'"');
}

fn digits(out: &mut Vec<u8>, value: u16, least: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = [12, 8, 4, 0].map(|shift| DIGITS[usize::from(value >> shift & 15)]);
    let leading = digits.iter().take_while(|&&digit| digit == b'0').count();
    out.extend_from_slice(&digits[leading.min(digits.len() - least)..]);
}

/// As RFC 5952 says: lower case, and of the runs of zeros the first of the longest left out.
fn v6(out: &mut Vec<u8>, address: Ipv6Addr) {
    if address.to_ipv4_mapped().is_some() {
        write!(out, "\"{address}\"").expect("memory takes everything");
        return;
    }
    let segments = address.segments();
    let (mut zeros, mut run) = (0..0, 0..0);
    for (i, &segment) in segments.iter().enumerate() {
        run = if segment != 0 { i + 1..i + 1 } else { run.start..i + 1 };
        if run.len() > zeros.len() {
            zeros = run.clone();
        }
    }
    if zeros.len() < 2 {
        zeros = 8..8;
    }
    out.push(b'"');
    for (i, &segment) in segments.iter().enumerate() {
        if zeros.contains(&i) {
            if i == zeros.start {
                out.extend_from_slice(b"::");
            }
            continue;
        }
        if i != 0 && i != zeros.end {
            out.push(b':');
        }
        digits(out, segment, 1);
    }
    out.push(b'"');
}

/// Appends a text in quotes, with its escapes.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let clean = clean(rest);
        out.extend_from_slice(&rest[..clean]);
        rest = &rest[clean..];
        if rest.is_empty() {
            break;
        }
        let piece = rest.len().min(PIECE);
        rest = &rest[escape(out, rest, piece)..];
    }
    out.push(b'"');
}

/// Bytes that are looked at together, which the compiler makes one comparison of.
const PIECE: usize = 16;

/// How many bytes from the first on need no escape, in whole pieces, or all of them.
#[inline(always)]
fn clean(bytes: &[u8]) -> usize {
    let (pieces, rest) = bytes.as_chunks::<PIECE>();
    let is_clean = |piece: &&[u8; PIECE]| !piece.iter().fold(false, |any, &byte| any | needs_escape(byte));
    let clean = pieces.iter().take_while(is_clean).count();
    if clean == pieces.len() && !rest.iter().any(|&byte| needs_escape(byte)) { bytes.len() } else { clean * PIECE }
}

/// Those that RFC 8259 wants escaped, DEL, and the first bytes of [what acts on terminals](acts).
#[inline(always)]
fn needs_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\') | matches!(byte, 0x7f | 0xc2 | 0xd8 | 0xe2)
}

/// Characters that a terminal or a reader obeys and does not show: C1 controls, and those that turn the direction of
/// text.
fn acts(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}')
}

/// Writes at least so many bytes of a text, with their escapes, to the end of a character. Returns how many.
///
/// Each byte takes a few instructions, so that text which is all escapes costs little more than what it is written as.
#[inline(never)]
fn escape(out: &mut Vec<u8>, text: &[u8], least: usize) -> usize {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut at = 0;
    while at < least {
        let byte = text[at];
        at += 1;
        match byte {
            _ if !needs_escape(byte) => out.push(byte),
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            8 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..0x80 => {
                let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
            _ => {
                // Two or three bytes, as the text is UTF-8.
                let length = if byte < 0xe0 { 2 } else { 3 };
                let bytes = text.get(at - 1..at - 1 + length).unwrap_or_default();
                let character = str::from_utf8(bytes).ok().and_then(|text| text.chars().next());
                match character {
                    Some(character) if acts(character) => {
                        write!(out, "\\u{:04x}", u32::from(character)).expect("memory takes everything");
                    }
                    _ => out.extend_from_slice(bytes),
                }
                at += bytes.len().saturating_sub(1);
            }
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        /// Any text, control characters and quotes among it, is written as serde writes it, but for what acts.
        #[test]
        fn text_is_written_as_by_serde(
            value in "(?s)[\\x00-\\x24\\\\\"a-c\u{7f}-\u{a1}äß\u{61b}-\u{61d}\u{200d}-\u{2010}\u{2028}-\u{202f}\u{2065}-\u{206a}🦀]{0,40}"
        ) {
            let mut out = Vec::new();
            text(&mut out, &value);
            let written = String::from_utf8(out).unwrap();
            let mut expected = String::new();
            for character in serde_json::to_string(&value).unwrap().chars() {
                match u32::from(character) {
                    code @ (0x7f..=0x9f | 0x61c | 0x200e..=0x200f | 0x202a..=0x202e | 0x2066..=0x2069) => {
                        expected += &format!("\\u{code:04x}");
                    }
                    _ => expected.push(character),
                }
            }
            prop_assert_eq!(&written, &expected);
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), value);
        }

        #[test]
        fn numbers_and_addresses_are_written_as_by_serde(
            value: u64,
            v4: u32,
            v6: [u16; 8],
            sparse: u8,
            byte: u8,
            half: u16,
        ) {
            // With zeros in a row, too.
            let v6 = std::array::from_fn::<u16, 8, _>(|i| if sparse >> i & 1 == 0 { 0 } else { v6[i] });
            let (v4, v6) = (IpAddr::from(v4.to_be_bytes()), IpAddr::from(v6));
            let mut out = Vec::new();
            object(&mut out, |object| {
                object.number(key!("number"), value);
                object.address(key!("v4"), v4);
                object.address(key!("v6"), v6);
                object.hex(key!("byte"), byte, 2);
                object.hex(key!("half"), half, 1);
            });
            let found: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let (byte, half) = (format!("{byte:02x}"), format!("{half:x}"));
            prop_assert_eq!(found, json!({"number": value, "v4": v4, "v6": v6, "byte": byte, "half": half}));
        }
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let mut out = Vec::new();
        object(&mut out, |object| {
            object.some_text(key!("none"), None);
            object.some_number(key!("none"), None::<u64>);
            object.flag(key!("false"), false);
            object.some_list(key!("none"), [0_u64; 0], number);
            object.list(key!("empty"), [0_u64; 0], number);
            object.object(key!("inside"), |_| {});
            object.flag(key!("true"), true);
            object.list(key!("list"), [1, 2], number);
        });
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"empty":[],"inside":{},"true":true,"list":[1,2]}"#);
    }
}
