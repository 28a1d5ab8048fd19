//! The parser of TLS.

use sha2::{Digest, Sha256};

use super::hello::{ClientHello, ServerHello, is_dtls, is_grease};
use crate::conversation::Side;
use crate::protocol::parser::{Parser, Start};
use crate::protocol::text::{Detail, Text, digit, hex, printable};
use crate::protocol::wire::{Fields, words};
use crate::protocol::{Carrier, Event, Protocol};

/// The longest hello that is read.
pub const HELLO: usize = 32 << 10;
/// The most bytes of records of a side that are read.
pub const RECORDS: u64 = 256 << 10;
/// The most names of protocols that are kept of a hello.
pub const PROTOCOLS: usize = 32;
/// The most bytes on the heap of a connection: a hello of each side, in buffers that reserve up to twice the bytes that
/// they need.
pub const MOST: usize = 4 * HELLO;
/// The longest content of a record.
const LONGEST_RECORD: usize = (1 << 14) + 2048;

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

const SUPPORTED_VERSIONS: u16 = 43;
const SERVER_NAME: u16 = 0;
const PROTOCOL_NAMES: u16 = 16;
const SIGNATURE_ALGORITHMS: u16 = 13;
const GROUPS: u16 = 10;
const POINT_FORMATS: u16 = 11;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// The TLS of one connection.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Tls {
    detail: Detail,
    halves: [Half; 2],
}

/// One side's records.
#[derive(Debug, Default)]
struct Half {
    /// A record's kind, version and length, as far as they have come.
    header: [u8; 5],
    header_len: usize,
    /// Bytes of the record that are still to come.
    left: usize,
    /// Bytes of records so far.
    seen: u64,
    message: Message,
    /// This record is a ClientHello in the form of SSL 2.
    is_ssl2: bool,
    /// ChangeCipherSpec has come.
    encrypted: bool,
    done: bool,
}

/// A handshake message, as far as it has come.
#[derive(Debug, Default)]
struct Message {
    header: [u8; 4],
    header_len: usize,
    /// The content of a hello.
    buffer: Vec<u8>,
    /// Bytes of another message that are still to come.
    skip: usize,
    /// A gap has hidden where the next message of this record starts.
    lost: bool,
}

impl Parser for Tls {
    const CARRIERS: &'static [Carrier] = &[Carrier::Stream];
    const MOST: usize = MOST;
    const HOLDS: &'static str = "a hello a side";

    fn new(_protocol: Protocol, start: Start) -> Self {
        Self { detail: start.detail, ..Self::default() }
    }

    fn data(&mut self, side: Side, time_ns: u64, mut bytes: &[u8], out: &mut Vec<Event>) -> Option<usize> {
        let half = &mut self.halves[side.index()];
        while !half.done && !bytes.is_empty() {
            if half.left == 0 {
                let taken = bytes.len().min(5 - half.header_len);
                half.header[half.header_len..half.header_len + taken].copy_from_slice(&bytes[..taken]);
                half.header_len += taken;
                bytes = &bytes[taken..];
                if half.header_len == 5 {
                    half.record();
                }
                continue;
            }
            let taken = bytes.len().min(half.left);
            let (content, rest) = bytes.split_at(taken);
            bytes = rest;
            half.left -= taken;
            if half.is_ssl2 {
                half.message.buffer.extend_from_slice(content);
            } else if half.header[0] == HANDSHAKE {
                half.handshake((side, time_ns, self.detail), content, out);
            }
            if half.left == 0 {
                if std::mem::take(&mut half.is_ssl2) {
                    let version = u16::from_be_bytes([half.header[3], half.header[4]]);
                    let hello = ssl2_client_hello(side, time_ns, version, &half.message.buffer);
                    out.extend(hello.map(|hello| Event::ClientHello(Box::new(hello))));
                    half.message = Message::default();
                }
                half.header_len = 0;
                half.message.lost = false;
                if half.seen > RECORDS {
                    half.finish();
                }
            }
        }
        None
    }

    fn gap(&mut self, side: Side, _time_ns: u64, missing: u64, _out: &mut Vec<Event>) {
        let half = &mut self.halves[side.index()];
        // While a record's header is collected, no bytes of a record are left to come.
        if half.done || missing > half.left as u64 || half.left == 0 {
            half.finish();
            return;
        }
        half.left -= missing as usize;
        half.is_ssl2 = false;
        half.message = Message { lost: half.left > 0, ..Message::default() };
        if half.left == 0 {
            half.header_len = 0;
        }
    }

    fn end(&mut self, side: Side, _time_ns: u64, _out: &mut Vec<Event>) {
        self.halves[side.index()].finish();
    }

    fn wants(&self, side: Side) -> bool {
        !self.halves[side.index()].done
    }

    fn heap_bytes(&self) -> usize {
        self.halves.iter().map(|half| half.message.buffer.capacity()).sum()
    }

    /// The shortest ClientHello.
    fn example(_protocol: Protocol) -> Vec<(Side, Vec<u8>)> {
        let hello = [&b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03"[..], &[7; 32], b"\0\0\x02\x13\x01\x01\0\0\0"];
        vec![(Side::Originator, hello.concat())]
    }
}

impl Half {
    /// Takes a complete record header.
    fn record(&mut self) {
        if self.seen == 0 && self.header[0] & 0x80 != 0 && self.header[2] == CLIENT_HELLO {
            // Three of its bytes are in the header.
            let length = usize::from(self.header[0] & 0x7f) << 8 | usize::from(self.header[1]);
            self.is_ssl2 = length > 3;
            if self.is_ssl2 {
                self.seen = 2 + length as u64;
                self.left = length - 3;
                return;
            }
        }
        let length = usize::from(u16::from_be_bytes([self.header[3], self.header[4]]));
        let known = matches!(self.header[0], CHANGE_CIPHER_SPEC | ALERT | HANDSHAKE);
        if !known || self.header[1] != 3 || length > LONGEST_RECORD {
            self.finish();
            return;
        }
        if self.header[0] == CHANGE_CIPHER_SPEC {
            self.encrypted = true;
            self.message = Message::default();
        }
        self.seen += 5 + length as u64;
        self.left = length;
        if length == 0 {
            self.header_len = 0;
        }
    }

    /// Takes the next bytes of the stream of handshake messages.
    fn handshake(&mut self, (side, time_ns, detail): (Side, u64, Detail), mut bytes: &[u8], out: &mut Vec<Event>) {
        let message = &mut self.message;
        while !bytes.is_empty() && !message.lost {
            if message.skip > 0 {
                let skipped = message.skip.min(bytes.len());
                message.skip -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            if message.header_len < 4 {
                let taken = bytes.len().min(4 - message.header_len);
                message.header[message.header_len..message.header_len + taken].copy_from_slice(&bytes[..taken]);
                message.header_len += taken;
                bytes = &bytes[taken..];
                if message.header_len < 4 {
                    return;
                }
            }
            let [kind, length @ ..] = message.header;
            let length = usize::from(length[0]) << 16 | usize::from(length[1]) << 8 | usize::from(length[2]);
            let is_hello = matches!(kind, CLIENT_HELLO | SERVER_HELLO) && length <= HELLO;
            if self.encrypted && !(kind == CLIENT_HELLO && is_hello) {
                // These are random bytes, so no message can be found in them, though each record may begin one.
                *message = Message { lost: true, ..Message::default() };
                return;
            }
            if !is_hello {
                message.header_len = 0;
                message.skip = length;
                continue;
            }
            // Most hellos are in one piece.
            let hello = if message.buffer.is_empty() && bytes.len() >= length {
                let (hello, rest) = bytes.split_at(length);
                bytes = rest;
                hello
            } else {
                let taken = bytes.len().min(length - message.buffer.len());
                message.buffer.extend_from_slice(&bytes[..taken]);
                bytes = &bytes[taken..];
                if message.buffer.len() < length {
                    return;
                }
                &message.buffer
            };
            if kind == CLIENT_HELLO {
                if let Some(hello) = client_hello((side, time_ns, detail), hello, None) {
                    out.push(Event::ClientHello(Box::new(hello)));
                }
            } else if let Some(hello) = server_hello((side, time_ns, detail), hello, None) {
                out.push(Event::ServerHello(Box::new(hello)));
            }
            *message = Message::default();
        }
    }

    fn finish(&mut self) {
        self.done = true;
        self.message = Message::default();
    }
}

/// The content of a ClientHello. `quic` is the version of QUIC that carried it, if one did.
pub(in crate::protocol) fn client_hello(
    (client, time_ns, detail): (Side, u64, Detail),
    content: &[u8],
    quic: Option<u32>,
) -> Option<ClientHello> {
    let mut fields = Fields(content);
    let legacy_version = fields.u16()?;
    let _random: [u8; 32] = fields.array()?;
    fields.counted_by_u8().filter(|session| session.len() <= 32)?;
    if is_dtls(legacy_version) {
        let _cookie = fields.counted_by_u8()?;
    }
    let ciphers = fields.counted_by_u16().filter(|ciphers| ciphers.len() % 2 == 0)?;
    let _compression = fields.counted_by_u8()?;
    let mut hello = ClientHello {
        time_ns,
        client,
        quic,
        legacy_version,
        versions: Vec::new(),
        server_name: None,
        protocols: Vec::new(),
        ciphers: Vec::new(),
        extensions: Vec::new(),
        signatures: Vec::new(),
        groups: Vec::new(),
        point_formats: Vec::new(),
        ja4: None,
        is_ech: false,
    };
    if detail == Detail::Counts {
        return Some(hello);
    }
    hello.ciphers = words(ciphers).collect();
    let mut first_protocol: &[u8] = &[];
    for (kind, content) in extensions(fields) {
        hello.extensions.push(kind);
        // An extension with bad content still counts.
        match kind {
            SERVER_NAME => {
                if let Some(name) = server_name(content) {
                    hello.server_name = name.map(printable);
                }
            }
            PROTOCOL_NAMES => {
                if let Some(names) = protocol_names(content) {
                    first_protocol = names.clone().next().unwrap_or_default();
                    let names = names.filter(|name| !matches!(**name, [a, b] if a == b && a & 0xf == 0xa));
                    hello.protocols = names.take(PROTOCOLS).map(printable).collect();
                }
            }
            SIGNATURE_ALGORITHMS => {
                if let Some(algorithms) = Fields(content).counted_by_u16() {
                    hello.signatures = words(algorithms).collect();
                }
            }
            GROUPS => {
                if let Some(groups) = Fields(content).counted_by_u16() {
                    hello.groups = words(groups).collect();
                }
            }
            POINT_FORMATS => {
                if let Some(formats) = Fields(content).counted_by_u8() {
                    hello.point_formats = formats.to_vec();
                }
            }
            // The inner hello has another type, and is encrypted.
            ENCRYPTED_CLIENT_HELLO => hello.is_ech = content.first() == Some(&0),
            SUPPORTED_VERSIONS => {
                if let Some(versions) = supported_versions(content) {
                    hello.versions = words(versions).filter(|&version| !is_grease(version)).collect();
                }
            }
            _ => {}
        }
    }
    hello.ja4 = Some(ja4(&hello, first_protocol));
    Some(hello)
}

/// A ClientHello in the form of SSL 2, from its lengths on (RFC 5246, E.2).
fn ssl2_client_hello(client: Side, time_ns: u64, version: u16, content: &[u8]) -> Option<ClientHello> {
    let (lengths, lists) = content.split_first_chunk::<6>()?;
    let ciphers = lists.get(..usize::from(u16::from_be_bytes([lengths[0], lengths[1]])))?;
    // Each has three bytes; the first is zero for those that are not SSL 2's own.
    let ciphers = ciphers.chunks_exact(3).filter(|cipher| cipher[0] == 0);
    Some(ClientHello {
        time_ns,
        client,
        quic: None,
        legacy_version: version,
        versions: Vec::new(),
        server_name: None,
        protocols: Vec::new(),
        ciphers: ciphers.map(|cipher| u16::from_be_bytes([cipher[1], cipher[2]])).collect(),
        extensions: Vec::new(),
        signatures: Vec::new(),
        groups: Vec::new(),
        point_formats: Vec::new(),
        ja4: None,
        is_ech: false,
    })
}

/// The content of a ServerHello, as with [`client_hello`].
pub(in crate::protocol) fn server_hello(
    (server, time_ns, detail): (Side, u64, Detail),
    content: &[u8],
    quic: Option<u32>,
) -> Option<ServerHello> {
    let mut fields = Fields(content);
    let version = fields.u16().filter(|version| matches!(version, 0x0300..=0x0303 | 0xfefd | 0xfeff))?;
    let random: [u8; 32] = fields.array()?;
    fields.counted_by_u8().filter(|session| session.len() <= 32)?;
    let cipher = fields.u16()?;
    let _compression = fields.u8()?;
    let mut hello = ServerHello {
        time_ns,
        server,
        quic,
        legacy_version: version,
        version,
        cipher,
        extensions: Vec::new(),
        protocol: None,
        is_retry: random == RETRY,
    };
    // SSL 3 has none.
    for (kind, content) in extensions(fields).filter(|_| version != 0x0300) {
        if detail == Detail::Full {
            hello.extensions.push(kind);
        }
        match kind {
            PROTOCOL_NAMES => {
                if let Some(mut names) = protocol_names(content) {
                    hello.protocol = names.next().map(printable);
                }
            }
            SUPPORTED_VERSIONS => {
                hello.version = supported_versions(content).and_then(|all| words(all).next()).unwrap_or(hello.version);
            }
            _ => {}
        }
    }
    Some(hello)
}

/// The fixed value of the random field in a ServerHello that asks for another ClientHello (RFC 8446, 4.1.3).
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// The whole extensions at the end of a hello, each with its kind. None, if the hello ends before all of them.
fn extensions(mut hello: Fields<'_>) -> impl Iterator<Item = (u16, &[u8])> {
    let mut all = Fields(hello.counted_by_u16().unwrap_or_default());
    std::iter::from_fn(move || Some((all.u16()?, all.counted_by_u16()?)))
}

/// The most bytes of a host's name that are kept: it is one of DNS (RFC 6066, section 3), and those have no more.
const MOST_NAME: usize = 255;

/// The first host of an extension with names of servers (RFC 6066, section 3). It may have none.
fn server_name(content: &[u8]) -> Option<Option<&[u8]>> {
    if content.is_empty() {
        return Some(None);
    }
    let mut names = Fields(Fields(content).counted_by_u16()?);
    let mut names = std::iter::from_fn(move || Some((names.u8()?, names.counted_by_u16()?)));
    Some(names.find(|&(kind, _)| kind == 0).map(|(_, name)| &name[..name.len().min(MOST_NAME)]))
}

/// The names of an extension with names of protocols (RFC 7301, section 3.1).
fn protocol_names(content: &[u8]) -> Option<impl Iterator<Item = &[u8]> + Clone> {
    let mut names = Fields(Fields(content).counted_by_u16()?);
    Some(std::iter::from_fn(move || names.counted_by_u8()))
}

/// The bytes of the versions of an extension with those that are supported: a server's is one, a client's are a list
/// (RFC 8446, 4.2.1).
fn supported_versions(content: &[u8]) -> Option<&[u8]> {
    match content {
        [_, _] => Some(content),
        [_, versions @ ..] if versions.len() % 2 == 0 => Some(versions),
        _ => None,
    }
}

/// The JA4 fingerprint of a ClientHello, by FoxIO's published description (`technical_details/JA4.md` of
/// FoxIO-LLC/ja4; its licence for JA4 alone is BSD-3-Clause).
///
/// 1. `t` for TCP, `q` for QUIC, `d` for DTLS; the highest version, of the extension if there is one; `d` if there is a
///    host name, `i` if not; the number of cipher suites and of extensions, at most 99; the first and last character of
///    the first protocol name, or of its bytes in hexadecimal where either is not a letter or digit.
/// 2. The cipher suites in order of number, as a list in hexadecimal; of its SHA-256 the first 12 digits.
/// 3. The same of the extensions without host name and protocol names, with the signature algorithms behind, these in
///    their own order.
///
/// Values of GREASE are left out everywhere. Empty lists are twelve zeros.
fn ja4(hello: &ClientHello, first_protocol: &[u8]) -> Text {
    let mut ciphers: Vec<u16> = real(&hello.ciphers).collect();
    let mut extensions: Vec<u16> = real(&hello.extensions).collect();
    // The numbers of DTLS fall.
    let highest = match hello.is_dtls() {
        true => hello.versions.iter().copied().min(),
        false => hello.versions.iter().copied().max(),
    };
    let version = match highest.unwrap_or(hello.legacy_version) {
        0xfefc => "d3",
        0xfefd => "d2",
        0xfeff => "d1",
        0x0304 => "13",
        0x0303 => "12",
        0x0302 => "11",
        0x0301 => "10",
        0x0300 => "s3",
        0x0002 => "s2",
        _ => "00",
    };
    let name = if extensions.contains(&SERVER_NAME) { 'd' } else { 'i' };
    let carrier = match hello.quic {
        Some(_) => 'q',
        None if hello.is_dtls() => 'd',
        None => 't',
    };
    let (first, last) = ends(first_protocol);
    let mut fingerprint = String::with_capacity(36);
    fingerprint.push(carrier);
    fingerprint += version;
    fingerprint.push(name);
    for count in [ciphers.len(), extensions.len()] {
        let count = count.min(99) as u8;
        fingerprint.extend([count / 10, count % 10].map(digit));
    }
    fingerprint.extend([first, last, '_']);
    ciphers.sort_unstable();
    let mut text = String::with_capacity(5 * (ciphers.len().max(extensions.len() + hello.signatures.len()) + 1));
    list(&mut text, ciphers);
    digest(&mut fingerprint, &text);
    fingerprint.push('_');
    extensions.retain(|&kind| kind != SERVER_NAME && kind != PROTOCOL_NAMES);
    extensions.sort_unstable();
    text.clear();
    list(&mut text, extensions);
    let mut signatures = real(&hello.signatures).peekable();
    if !text.is_empty() && signatures.peek().is_some() {
        text.push('_');
        list(&mut text, signatures);
    }
    digest(&mut fingerprint, &text);
    (*fingerprint).into()
}

/// The values without those of GREASE.
fn real(values: &[u16]) -> impl Iterator<Item = u16> {
    values.iter().copied().filter(|&value| !is_grease(value))
}

/// The two characters that stand for a protocol name.
fn ends(name: &[u8]) -> (char, char) {
    let (Some(&first), Some(&last)) = (name.first(), name.last()) else {
        return ('0', '0');
    };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return (first.into(), last.into());
    }
    (digit(first >> 4), digit(last & 0xf))
}

/// Appends the values as four digits each, with commas between them.
fn list(text: &mut String, values: impl IntoIterator<Item = u16>) {
    for (number, value) in values.into_iter().enumerate() {
        if number > 0 {
            text.push(',');
        }
        hex(text, &value.to_be_bytes());
    }
}

/// Appends the first twelve digits of the hash, or zeros for nothing.
fn digest(fingerprint: &mut String, text: &str) {
    if text.is_empty() {
        *fingerprint += "000000000000";
        return;
    }
    hex(fingerprint, &Sha256::digest(text)[..6]);
}
