//! The parser of QUIC.

use super::header::{Kind, LONGEST_ID, Long, long, variable};
use super::keys::Keys;
use super::pieces::{self, Full, Pieces};
use crate::conversation::Side;
use crate::protocol::parser::{Parser, Start};
use crate::protocol::{Carrier, Detail, Event, Protocol, tls};
use sha2::{Digest, Sha256};

/// The most datagrams of a side that are looked at, and as many strange ones.
pub const DATAGRAMS: u8 = 64;
/// The most packets of a datagram that are looked at.
pub const COALESCED: usize = 8;
/// The most Initial packets of a side that are decrypted, or tried, and as many strange ones.
pub const INITIALS: u8 = 64;
/// The most bytes of a side's Initial packets that are decrypted, or tried, and as many of strange ones.
pub const BYTES: usize = 128 << 10;
/// The most frames of a packet that are looked at, where a run of padding and PINGs is one.
pub const FRAMES: usize = 1024;
/// The most hellos of a side that are read.
pub const HELLOS: u8 = 4;
/// The most beginnings of a connection that are kept at a time.
const ORIGINS: usize = 2;
/// The most bytes on the heap of a connection: of each beginning a hello of each side, and the places of its pieces.
pub const MOST: usize = 2 * ORIGINS * pieces::MOST;

const PADDING: u64 = 0;
const PING: u64 = 1;
const ACK: u64 = 2;
const ACK_WITH_ECN: u64 = 3;
const CRYPTO: u64 = 6;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// The QUIC of one conversation.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Quic {
    /// The beginnings, the older in front.
    origins: [Option<Origin>; ORIGINS],
    halves: [Half; 2],
    /// The side of the first whole ClientHello.
    client: Option<Side>,
    /// The hash of the last ClientHello.
    hash: Option<[u8; 32]>,
    /// The server's last word in the clear has been read.
    answered: bool,
}

/// A beginning of the connection: where keys come from, and what they have opened.
#[derive(Debug)]
struct Origin {
    client: Side,
    version: u32,
    id: [u8; LONGEST_ID],
    id_len: usize,
    /// A whole ClientHello has come.
    has_hello: bool,
    streams: [Stream; 2],
}

/// One side's Initial packets of a beginning.
#[derive(Debug, Default)]
struct Stream {
    keys: Option<Keys>,
    /// The packet number that comes next.
    next_number: u64,
    pieces: Pieces,
}

/// What one side has cost.
#[derive(Debug, Default)]
struct Half {
    /// What belongs to the connection.
    own: Spent,
    /// What is strange: no key has opened it, and its destination is none that keys came from.
    strange: Spent,
    hellos: u8,
    done: bool,
}

#[derive(Debug, Default)]
struct Spent {
    datagrams: u8,
    initials: u8,
    bytes: usize,
}

impl Parser for Quic {
    const CARRIERS: &'static [Carrier] = &[Carrier::Datagrams];
    const MOST: usize = MOST;
    const HOLDS: &'static str = "a hello a side in at most 256 pieces, of two [beginnings](#quic)";

    fn new(_protocol: Protocol, _start: Start) -> Self {
        Self::default()
    }

    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) -> Option<usize> {
        let mut rest = bytes;
        let mut first = None;
        let mut is_own = false;
        for _ in 0..COALESCED {
            let Some(packet) = long(rest).filter(|_| self.wants(side)) else {
                break;
            };
            let destination = *first.get_or_insert(packet.destination);
            is_own |= self.is_known(packet.destination);
            // All packets of a datagram have the same destination (RFC 9000, 12.2).
            if packet.kind == Kind::Initial && packet.is_long_enough && packet.destination == destination {
                match self.initial(side, time_ns, &packet, out) {
                    Ok(opened) => is_own |= opened,
                    Err(Full) => self.finish(side),
                }
            }
            rest = packet.rest;
        }
        if self.halves[side.index()].spent(is_own).datagram().is_err() {
            self.finish(side);
        }
        None
    }

    fn gap(&mut self, _side: Side, _time_ns: u64, _missing: u64, _out: &mut Vec<Event>) {}

    fn end(&mut self, _side: Side, _time_ns: u64, _out: &mut Vec<Event>) {}

    fn is_over(&self) -> bool {
        self.halves.iter().all(|half| half.done)
    }

    fn wants(&self, side: Side) -> bool {
        !self.halves[side.index()].done
    }

    fn heap_bytes(&self) -> usize {
        let streams = self.origins.iter().flatten().flat_map(|origin| &origin.streams);
        streams.map(|stream| stream.pieces.heap_bytes()).sum()
    }

    /// A client's first packet.
    fn example(_protocol: Protocol) -> Vec<(Side, Vec<u8>)> {
        let hello: Vec<u8> =
            tls::Tls::example(Protocol::Tls).into_iter().flat_map(|(_, record)| record).skip(5).collect();
        let mut content = [&[CRYPTO as u8, 0, hello.len() as u8][..], &hello].concat();
        content.resize(1200, 0);
        vec![(
            Side::Originator,
            super::super::fuzz::initial(1, b"original", true, [b"original", b"c"], b"", 0, &content),
        )]
    }
}

impl Quic {
    /// Whether keys came from this destination.
    fn is_known(&self, destination: &[u8]) -> bool {
        self.origins.iter().flatten().any(|origin| origin.id() == destination)
    }

    /// Reads an Initial packet, and returns whether a key opened it. An error is the end of the side.
    fn initial(&mut self, side: Side, time_ns: u64, packet: &Long<'_>, out: &mut Vec<Event>) -> Result<bool, Full> {
        let is_known = self.is_known(packet.destination);
        let opened = self.open(side, packet);
        let half = &mut self.halves[side.index()];
        half.spent(is_known || opened.is_some()).initial(packet.packet.len())?;
        let Some((at, content)) = opened else {
            return Ok(false);
        };
        let read = self.read(at, side, (time_ns, packet.version), &content, out);
        if read.is_err() && self.halves[side.index()].hellos < HELLOS && self.origins.iter().all(Option::is_some) {
            // An error under one beginning proves nothing about the other one.
            self.forget(at);
            return Ok(true);
        }
        read.map(|()| true)
    }

    /// Reads the content of a packet that a beginning's keys have opened.
    fn read(
        &mut self,
        at: usize,
        side: Side,
        (time_ns, version): (u64, u32),
        content: &[u8],
        out: &mut Vec<Event>,
    ) -> Result<(), Full> {
        let Some(origin) = &mut self.origins[at] else {
            return Ok(());
        };
        let is_client = origin.client == side;
        let pieces = &mut origin.streams[side.index()].pieces;
        frames(content, |offset, piece| pieces.insert(offset, piece))?;
        while let Some((kind, content)) = pieces.message()? {
            let length = content.len();
            let event = match kind {
                CLIENT_HELLO if is_client => {
                    let hello = tls::client_hello((side, time_ns, Detail::Full), content, Some(version)).ok_or(Full)?;
                    let hash = Some(Sha256::digest(content).into());
                    // Behind a Retry the same hello comes again (RFC 9000, 17.2.5.2).
                    let repeats = pieces.is_first() && hash == self.hash;
                    (self.hash, self.client, origin.has_hello) = (hash, Some(side), true);
                    (!repeats).then(|| Event::ClientHello(Box::new(hello)))
                }
                SERVER_HELLO if !is_client => {
                    let hello = tls::server_hello((side, time_ns, Detail::Full), content, Some(version)).ok_or(Full)?;
                    self.answered = !hello.is_retry;
                    Some(Event::ServerHello(Box::new(hello)))
                }
                _ => return Err(Full),
            };
            out.extend(event);
            pieces.pass(length);
            let half = &mut self.halves[side.index()];
            half.hellos += 1;
            if half.hellos == HELLOS {
                return Err(Full);
            }
            if self.answered {
                break;
            }
        }
        self.settle(at);
        Ok(())
    }

    /// Drops what is of no more use behind a hello under this beginning.
    fn settle(&mut self, at: usize) {
        let Some(origin) = &self.origins[at] else {
            return;
        };
        let (client, other) = (origin.client, 1 - at);
        // The same ID under another version has the same keys.
        let has_hello = self.origins.iter().flatten().any(|any| any.has_hello && any.id() == origin.id());
        if self.answered {
            self.finish(client.other());
            if has_hello {
                self.finish(client);
            }
        }
        let is_other_client = self.origins[other].as_ref().is_some_and(|origin| origin.client != client);
        if self.answered || has_hello && is_other_client {
            self.forget(other);
        }
    }

    fn forget(&mut self, at: usize) {
        self.origins[at] = None;
        self.origins.sort_by_key(Option::is_none);
    }

    /// Decrypts an Initial packet, with the keys of the connection or, if it may be a client's first one, with those
    /// that its own destination gives. Returns which beginning has opened it, and the content.
    fn open(&mut self, side: Side, packet: &Long<'_>) -> Option<(usize, Vec<u8>)> {
        let mut may_be_first = !self.answered && self.client.is_none_or(|client| client == side);
        for (at, origin) in self.origins.iter_mut().enumerate() {
            let Some(origin) = origin else { continue };
            let (is_client, is_same) = (origin.client == side, origin.id() == packet.destination);
            // A client that has changed the version by itself still has its own ID there, and begins anew. One that
            // follows the server has the server's ID, and goes on.
            if is_client && is_same && origin.version != packet.version {
                continue;
            }
            if let Some(content) = origin.open(side, packet) {
                return Some((at, content));
            }
            may_be_first &= !(is_client && is_same);
        }
        if !may_be_first {
            return None;
        }
        let mut origin = Origin::new(side, packet);
        let content = origin.open(side, packet)?;
        Some((self.begin(origin), content))
    }

    /// Keeps a new beginning, and returns its place. If there are two, one gives way: the older if the newer has a
    /// hello, or is alone of another client; else the newer.
    fn begin(&mut self, new: Origin) -> usize {
        if let [Some(older), Some(newer)] = &self.origins {
            let of_another = older.client == new.client && newer.client != new.client;
            self.forget(usize::from(!(newer.has_hello || of_another)));
        }
        let at = usize::from(self.origins[0].is_some());
        self.origins[at] = Some(new);
        at
    }

    /// Ends a side; with both the connection is over.
    fn finish(&mut self, side: Side) {
        self.halves[side.index()].done = true;
        for origin in self.origins.iter_mut().flatten() {
            origin.streams[side.index()] = Stream::default();
        }
    }
}

impl Origin {
    /// The beginning that a client's first packet is.
    fn new(client: Side, packet: &Long<'_>) -> Self {
        let mut id = [0; LONGEST_ID];
        let id_len = packet.destination.len();
        id[..id_len].copy_from_slice(packet.destination);
        Self { client, version: packet.version, id, id_len, has_hello: false, streams: Default::default() }
    }

    fn id(&self) -> &[u8] {
        &self.id[..self.id_len]
    }

    fn open(&mut self, side: Side, packet: &Long<'_>) -> Option<Vec<u8>> {
        let is_client = self.client == side;
        let id = &self.id[..self.id_len];
        let stream = &mut self.streams[side.index()];
        let known = stream.keys.take().filter(|keys| keys.version == packet.version);
        stream.keys = known.or_else(|| Keys::new(packet.version, id, is_client));
        let (number, content) = stream.keys.as_ref()?.open(packet.packet, packet.number_at, stream.next_number)?;
        stream.next_number = stream.next_number.max(number + 1);
        Some(content)
    }
}

impl Half {
    fn spent(&mut self, is_own: bool) -> &mut Spent {
        if is_own { &mut self.own } else { &mut self.strange }
    }
}

impl Spent {
    /// Counts a datagram. An error means that it was the last one.
    fn datagram(&mut self) -> Result<(), Full> {
        self.datagrams = self.datagrams.saturating_add(1);
        if self.datagrams < DATAGRAMS { Ok(()) } else { Err(Full) }
    }

    /// Counts an Initial packet. An error means that it is one too many.
    fn initial(&mut self, bytes: usize) -> Result<(), Full> {
        if self.initials == INITIALS || self.bytes + bytes > BYTES {
            return Err(Full);
        }
        self.initials += 1;
        self.bytes += bytes;
        Ok(())
    }
}

/// Hands the CRYPTO frames of a packet's content to `take`, up to the first frame that no Initial packet has.
fn frames(mut content: &[u8], mut take: impl FnMut(u64, &[u8]) -> Result<(), Full>) -> Result<(), Full> {
    for _ in 0..FRAMES {
        let Some((kind, behind)) = variable(content) else {
            break;
        };
        let rest = match kind {
            // Each is a byte. Some clients mix them among the pieces of their hello.
            PADDING | PING => {
                let run = behind.iter().position(|&byte| u64::from(byte) > PING).unwrap_or(behind.len());
                Some(&behind[run..])
            }
            ACK | ACK_WITH_ECN => acknowledgment(behind, kind == ACK_WITH_ECN),
            CRYPTO => match crypto(behind) {
                Some((offset, piece, rest)) => {
                    take(offset, piece)?;
                    Some(rest)
                }
                None => None,
            },
            // A close, of which there is nothing to read, or an error.
            _ => None,
        };
        match rest {
            Some(rest) => content = rest,
            None => break,
        }
    }
    Ok(())
}

/// Steps over an ACK frame.
fn acknowledgment(bytes: &[u8], with_ecn: bool) -> Option<&[u8]> {
    let (_largest, rest) = variable(bytes)?;
    let (_delay, rest) = variable(rest)?;
    let (ranges, rest) = variable(rest)?;
    let (_first, mut rest) = variable(rest)?;
    // Each number has a byte at least, so more than there are end the loop soon.
    let numbers = ranges.saturating_mul(2).saturating_add(if with_ecn { 3 } else { 0 });
    for _ in 0..numbers {
        (_, rest) = variable(rest)?;
    }
    Some(rest)
}

/// The offset and the bytes of a CRYPTO frame, and what is behind it.
fn crypto(bytes: &[u8]) -> Option<(u64, &[u8], &[u8])> {
    let (offset, rest) = variable(bytes)?;
    let (length, rest) = variable(rest)?;
    let (piece, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((offset, piece, rest))
}
