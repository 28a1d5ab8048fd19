//! The parser of SSH.

use md5::{Digest, Md5};

use super::handshake::{Handshake, Hassh, Peer};
use crate::conversation::Side;
use crate::protocol::identify::Says::{self, More, No, Yes};
use crate::protocol::identify::{Seen, Speaker, starts};
use crate::protocol::parser::{Parser, Start};
use crate::protocol::text::{Text, hex, printable};
use crate::protocol::{Carrier, Event, Protocol};

/// The longest version line, with its end (RFC 4253, section 4.2).
pub const LINE: usize = 255;
/// The most bytes of lines in front of a version line that are skipped.
pub const BEFORE: usize = 64 << 10;
/// The longest packet that is taken, in bytes, its length among them (RFC 4253, section 6.1).
pub const PACKET: usize = 35_000;
/// The most packets of a side that are looked at.
pub const PACKETS: u8 = 16;
/// The most bytes on the heap of a connection: of each side a packet, in a buffer that reserves up to twice the bytes
/// that it needs, or its four lists twice, and its version line in characters of three bytes.
pub const MOST: usize = 2 * (2 * PACKET + 4 * LINE);

/// Bytes of a packet up to its kind: the length in four, the length of the padding, the kind.
const HEADER: usize = 6;

const IGNORE: u8 = 2;
const UNIMPLEMENTED: u8 = 3;
const DEBUG: u8 = 4;
const KEXINIT: u8 = 20;

/// The SSH of one connection.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Ssh {
    halves: [Half; 2],
    /// The side that is the client, once it has shown.
    client: Option<Side>,
    /// The time of the last byte that carried a fact for the event.
    time_ns: u64,
    /// The event is made.
    is_over: bool,
}

/// One side's bytes.
#[derive(Debug, Default)]
struct Half {
    at: At,
    /// The line or the packet in work, as far as it has come and is of interest.
    buffer: Vec<u8>,
    /// Bytes of lines in front of the version line so far.
    before: usize,
    /// Packets so far.
    packets: u8,
    told: Told,
}

/// What a side has stated so far.
#[derive(Debug, Default)]
struct Told {
    /// Protocol and software.
    version: Option<(Text, Text)>,
    offer: Option<Offer>,
}

/// The place in a side's bytes.
#[derive(Debug, Default, PartialEq, Eq)]
enum At {
    /// In a line that may become the version line.
    #[default]
    Line,
    /// In a line in front of the version line.
    OtherLine,
    /// In a packet's first bytes.
    Header,
    /// In KEXINIT.
    Offer,
    /// In another packet, with this many bytes to come.
    Skip(usize),
    /// No more bytes are of use.
    Done,
}

/// The algorithms that a side offers, as HASSH has them: as the client, and as the server.
#[derive(Debug)]
struct Offer {
    texts: [Text; 2],
}

impl Offer {
    /// Whether a key exchange with GSS is among the algorithms.
    fn has_gss(&self) -> bool {
        let exchange = self.texts[0].split(';').next().unwrap_or_default();
        exchange.split(',').any(|name| name.starts_with("gss-"))
    }
}

impl Parser for Ssh {
    const CARRIERS: &'static [Carrier] = &[Carrier::Stream];
    const MOST: usize = MOST;
    const HOLDS: &'static str = "an offer of algorithms a side";

    fn new(_protocol: Protocol, _start: Start) -> Self {
        Self::default()
    }

    fn data(&mut self, side: Side, time_ns: u64, mut bytes: &[u8], out: &mut Vec<Event>) -> Option<usize> {
        while !bytes.is_empty() && self.wants(side) {
            let told = self.halves[side.index()].step(&mut bytes);
            match told {
                Step::Nothing => continue,
                Step::Told => self.time_ns = time_ns,
                Step::Role(is_client) => {
                    self.time_ns = time_ns;
                    self.client.get_or_insert(if is_client { side } else { side.other() });
                }
            }
            self.finish(out);
        }
        // A line or packet that cannot be one has no event of its own.
        self.finish(out);
        None
    }

    /// In front of a side's first byte a gap hides nothing that is known to be there.
    fn gap(&mut self, side: Side, time_ns: u64, _missing: u64, out: &mut Vec<Event>) {
        let half = &self.halves[side.index()];
        let untouched = half.at == At::Line && half.buffer.is_empty() && half.before == 0;
        if !untouched {
            self.end(side, time_ns, out);
        }
    }

    fn end(&mut self, side: Side, _time_ns: u64, out: &mut Vec<Event>) {
        self.halves[side.index()].finish();
        self.finish(out);
    }

    fn wants(&self, side: Side) -> bool {
        !self.is_over && self.halves[side.index()].at != At::Done
    }

    /// Whether the event is made, or there is nothing to report.
    fn is_over(&self) -> bool {
        self.is_over
    }

    fn heap_bytes(&self) -> usize {
        self.halves.iter().map(|half| half.buffer.capacity() + half.told.heap_bytes()).sum()
    }

    /// SSH 1 states no more than its version.
    fn example(_protocol: Protocol) -> Vec<(Side, Vec<u8>)> {
        Side::BOTH.map(|side| (side, b"SSH-1.5-example\n".to_vec())).into()
    }
}

/// The rule for a version line.
pub(in crate::protocol) fn banner(seen: Seen<'_>) -> Says {
    let version = match starts(seen.own, b"SSH-") {
        Yes(..) => &seen.own[4..],
        other => return other,
    };
    match version {
        [b'1' | b'2', b'.', minor, ..] if minor.is_ascii_digit() => {
            Yes(Protocol::Ssh, "SSH version banner", Speaker::Either)
        }
        [] | [b'1' | b'2'] | [b'1' | b'2', b'.'] => More,
        _ => No,
    }
}

impl Ssh {
    /// Makes the event, when all is known or no more can come.
    fn finish(&mut self, out: &mut Vec<Event>) {
        if self.halves.iter().any(Half::is_old) {
            self.halves.iter_mut().filter(|half| half.told.version.is_some()).for_each(Half::finish);
        }
        let done = |half: &Half| half.at == At::Done;
        let told = |half: &Half| done(half) || half.told.offer.is_some();
        let known = self.client.is_some() && self.halves.iter().all(told);
        if self.is_over || !(known || self.halves.iter().all(done)) {
            return;
        }
        self.is_over = true;
        let client_side = self.client.unwrap_or(Side::Originator);
        let [client, server] = [client_side, client_side.other()].map(|side| {
            self.halves[side.index()].finish();
            std::mem::take(&mut self.halves[side.index()].told).peer(usize::from(side != client_side))
        });
        if client.is_some() || server.is_some() {
            out.push(Event::Ssh(Box::new(Handshake { time_ns: self.time_ns, client_side, client, server })));
        }
    }
}

/// What a step through a side's bytes has shown.
enum Step {
    Nothing,
    Told,
    /// Whether the side is the client.
    Role(bool),
}

impl Half {
    /// Takes some of the bytes, at most up to the end of a line or of a packet's part.
    fn step(&mut self, bytes: &mut &[u8]) -> Step {
        match self.at {
            At::Line => self.line(bytes),
            At::OtherLine => {
                let end = memchr::memchr(b'\n', bytes);
                let taken = end.map_or(bytes.len(), |end| end + 1);
                *bytes = &bytes[taken..];
                self.skip_before(taken);
                if end.is_some() && self.at != At::Done {
                    self.at = At::Line;
                }
                Step::Nothing
            }
            At::Header => {
                self.collect(bytes, HEADER);
                if self.buffer.len() == HEADER { self.header() } else { Step::Nothing }
            }
            At::Offer => {
                let length = 4 + self.packet_length();
                self.collect(bytes, length);
                if self.buffer.len() == length { self.offer() } else { Step::Nothing }
            }
            At::Skip(left) => {
                let taken = left.min(bytes.len());
                *bytes = &bytes[taken..];
                self.at = if taken < left { At::Skip(left - taken) } else { At::Header };
                Step::Nothing
            }
            At::Done => {
                *bytes = &[];
                Step::Nothing
            }
        }
    }

    /// Fills the buffer up to `length` bytes.
    fn collect(&mut self, bytes: &mut &[u8], length: usize) {
        let (taken, rest) = bytes.split_at(bytes.len().min(length - self.buffer.len()));
        self.buffer.extend_from_slice(taken);
        *bytes = rest;
    }

    /// Counts bytes in front of the version line.
    fn skip_before(&mut self, count: usize) {
        self.before += count;
        if self.before > BEFORE {
            self.finish();
        }
    }

    fn line(&mut self, bytes: &mut &[u8]) -> Step {
        let end = memchr::memchr(b'\n', bytes).map(|end| end + 1);
        let room = LINE - self.buffer.len();
        let taken = end.unwrap_or(bytes.len()).min(room);
        self.buffer.extend_from_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
        let is_whole = self.buffer.ends_with(b"\n");
        let mark = b"SSH-";
        let common = self.buffer.len().min(mark.len());
        if self.buffer[..common] != mark[..common] {
            let length = self.buffer.len();
            self.buffer.clear();
            self.at = if is_whole { At::Line } else { At::OtherLine };
            self.skip_before(length);
            return Step::Nothing;
        }
        if !is_whole {
            if self.buffer.len() == LINE {
                self.finish();
            }
            return Step::Nothing;
        }
        let line = std::mem::take(&mut self.buffer);
        let Some(version) = version(&line) else {
            self.finish();
            return Step::Nothing;
        };
        self.told.version = Some(version);
        self.at = At::Header;
        Step::Told
    }

    /// Whether the side speaks SSH 1 alone, which exchanges keys in packets of another form. Version 1.99 means that it
    /// speaks SSH 2 too.
    fn is_old(&self) -> bool {
        let version = self.told.version.as_ref().map_or("", |(protocol, _)| protocol);
        version.starts_with("1.") && version != "1.99"
    }

    /// The length that a packet states, without the length field itself.
    fn packet_length(&self) -> usize {
        self.buffer.first_chunk().map_or(0, |length| u32::from_be_bytes(*length) as usize)
    }

    /// Takes a packet's first bytes.
    fn header(&mut self) -> Step {
        let length = self.packet_length();
        let kind = self.buffer[HEADER - 1];
        let padding = usize::from(self.buffer[HEADER - 2]);
        self.packets += 1;
        let is_possible = (padding + 2..=PACKET - 4).contains(&length) && self.packets <= PACKETS;
        let role = match (self.told.offer.is_some(), kind) {
            _ if !is_possible => None,
            (false, KEXINIT) => {
                self.at = At::Offer;
                return Step::Nothing;
            }
            // A server with GSS may send these (RFC 4462, section 2.1), so they show nothing.
            (true, 32 | 34) if self.told.offer.as_ref().is_some_and(Offer::has_gss) => None,
            // The client begins the key exchange, and begins each of its parts.
            (true, 30 | 32 | 34) => Some(true),
            (true, 31 | 33) => Some(false),
            (_, IGNORE | UNIMPLEMENTED | DEBUG) => {
                self.buffer.clear();
                self.at = At::Skip(length + 4 - HEADER);
                return Step::Nothing;
            }
            _ => None,
        };
        self.finish();
        role.map_or(Step::Nothing, Step::Role)
    }

    /// Takes a whole KEXINIT.
    fn offer(&mut self) -> Step {
        let packet = std::mem::take(&mut self.buffer);
        let payload = &packet[HEADER..packet.len() - usize::from(packet[HEADER - 2])];
        let Some((offer, is_client)) = offer(payload) else {
            self.finish();
            return Step::Nothing;
        };
        self.told.offer = Some(offer);
        self.at = At::Header;
        is_client.map_or(Step::Told, Step::Role)
    }

    fn finish(&mut self) {
        self.at = At::Done;
        self.buffer = Vec::new();
    }
}

impl Told {
    /// The facts of a side, of the client (0) or of the server (1).
    fn peer(self, role: usize) -> Option<Peer> {
        let (protocol, software) = self.version?;
        let hassh = self.offer.map(|Offer { texts }| {
            let [client, server] = texts;
            let text = if role == 0 { client } else { server };
            let mut hash = String::with_capacity(32);
            hex(&mut hash, &Md5::digest(text.as_bytes()));
            Hassh { hash: (*hash).into(), text }
        });
        Some(Peer { protocol, software, hassh })
    }

    fn heap_bytes(&self) -> usize {
        let version =
            self.version.as_ref().map_or(0, |(protocol, software)| protocol.heap_bytes() + software.heap_bytes());
        version + self.offer.as_ref().map_or(0, |offer| offer.texts.iter().map(Text::heap_bytes).sum())
    }
}

/// Protocol and software of a version line. Comments may follow behind a space.
fn version(line: &[u8]) -> Option<(Text, Text)> {
    let line = line.strip_suffix(b"\n")?;
    let line = line.strip_suffix(b"\r").unwrap_or(line).strip_prefix(b"SSH-")?;
    let dash = memchr::memchr(b'-', line)?;
    let (protocol, software) = (&line[..dash], &line[dash + 1..]);
    let end = software.iter().position(|&byte| byte == b' ').unwrap_or(software.len());
    (dash > 0).then(|| (printable(protocol), printable(&software[..end])))
}

/// Reads the content of KEXINIT, from its cookie on: sixteen random bytes, then lists of names. The second result is
/// whether the side is the client, where a name of the key exchange shows it.
fn offer(payload: &[u8]) -> Option<(Offer, Option<bool>)> {
    let mut rest = payload.get(16..)?;
    let mut lists = [""; 8];
    for list in &mut lists {
        let (length, following) = rest.split_first_chunk()?;
        let (names, following) = following.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        // Names are printable ASCII (RFC 4251, section 6).
        *list = std::str::from_utf8(names).ok().filter(|names| names.bytes().all(|byte| byte.is_ascii_graphic()))?;
        rest = following;
    }
    let [exchange, _, encryption_there, encryption_back, mac_there, mac_back, compression_there, compression_back] =
        lists;
    // RFC 8308, and OpenSSH's strict key exchange.
    let role = exchange.split(',').find_map(|name| match name {
        "ext-info-c" | "kex-strict-c-v00@openssh.com" => Some(true),
        "ext-info-s" | "kex-strict-s-v00@openssh.com" => Some(false),
        _ => None,
    });
    let text = |lists: [&str; 4]| (*lists.join(";")).into();
    let texts = [
        text([exchange, encryption_there, mac_there, compression_there]),
        text([exchange, encryption_back, mac_back, compression_back]),
    ];
    Some((Offer { texts }, role))
}
