//! The parser of QUIC.

use super::header::{Kind, LONGEST_ID, Long, long, variable};
use super::keys::Keys;
use super::pieces::{self, Full, Pieces};
use crate::conversation::Side;
use crate::protocol::event::Event;
use crate::protocol::{Detail, tls};

/// The most datagrams of a side that are looked at.
pub const DATAGRAMS: u8 = 64;
/// The most packets of a datagram that are looked at.
pub const COALESCED: usize = 8;
/// The most Initial packets of a side that are decrypted, or tried.
pub const INITIALS: u8 = 64;
/// The most bytes of a side's Initial packets that are decrypted, or tried.
pub const BYTES: usize = 128 << 10;
/// The most frames of a packet that are looked at, where a run of padding is one.
pub const FRAMES: usize = 1024;
/// The most hellos of a side that are read.
pub const HELLOS: u8 = 4;
/// The most bytes on the heap of a connection: a hello of each side, and the places of its pieces.
pub const MOST: usize = 2 * pieces::MOST;

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
    origin: Option<Origin>,
    halves: [Half; 2],
    /// The random bytes of the last ClientHello.
    random: Option<[u8; 32]>,
    /// The server's last word in the clear has been read.
    answered: bool,
}

/// Where the keys come from.
#[derive(Clone, Copy, Debug)]
struct Origin {
    client: Side,
    id: [u8; LONGEST_ID],
    id_len: usize,
}

impl Origin {
    fn id(&self) -> &[u8] {
        &self.id[..self.id_len]
    }
}

/// One side's Initial packets.
#[derive(Debug, Default)]
struct Half {
    keys: Option<Keys>,
    /// The packet number that comes next.
    expected: u64,
    pieces: Pieces,
    datagrams: u8,
    initials: u8,
    bytes: usize,
    hellos: u8,
    done: bool,
}

impl Quic {
    /// Takes a datagram of a side.
    pub(in crate::protocol) fn datagram(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) {
        let mut rest = bytes;
        for _ in 0..COALESCED {
            let Some(packet) = long(rest).filter(|_| self.wants(side)) else {
                break;
            };
            if packet.kind == Kind::Initial && self.initial(side, time_ns, &packet, out).is_err() {
                self.halves[side.index()].finish();
            }
            rest = packet.rest;
        }
        let half = &mut self.halves[side.index()];
        half.datagrams = half.datagrams.saturating_add(1);
        if half.datagrams == DATAGRAMS {
            half.finish();
        }
    }

    /// Whether more datagrams of a side are of use.
    pub(in crate::protocol) fn wants(&self, side: Side) -> bool {
        !self.answered && !self.halves[side.index()].done
    }

    pub(in crate::protocol) fn heap_bytes(&self) -> usize {
        self.halves.iter().map(|half| half.pieces.heap_bytes()).sum()
    }

    /// Reads an Initial packet. An error is the end of the side.
    fn initial(&mut self, side: Side, time_ns: u64, packet: &Long<'_>, out: &mut Vec<Event>) -> Result<(), Full> {
        let half = &mut self.halves[side.index()];
        if half.initials == INITIALS || half.bytes + packet.packet.len() > BYTES {
            return Err(Full);
        }
        half.initials += 1;
        half.bytes += packet.packet.len();
        let Some(content) = self.open(side, packet) else {
            return Ok(());
        };
        let is_client = self.origin.is_some_and(|origin| origin.client == side);
        let half = &mut self.halves[side.index()];
        frames(&content, |offset, piece| half.pieces.insert(offset, piece))?;
        while let Some((kind, content)) = half.pieces.message()? {
            let length = content.len();
            let event = match kind {
                CLIENT_HELLO if is_client => {
                    let random = content.get(2..).and_then(|content| content.first_chunk()).copied();
                    // Behind a Retry the same hello comes again.
                    let again = half.pieces.is_first() && random.is_some() && random == self.random;
                    self.random = random;
                    let hello =
                        tls::client_hello((side, time_ns, Detail::Full), content, Some(packet.version)).ok_or(Full)?;
                    (!again).then(|| Event::ClientHello(Box::new(hello)))
                }
                SERVER_HELLO if !is_client => {
                    let hello = tls::server_hello(side, time_ns, content, Some(packet.version)).ok_or(Full)?;
                    self.answered = !hello.is_retry;
                    Some(Event::ServerHello(Box::new(hello)))
                }
                _ => return Err(Full),
            };
            out.extend(event);
            half.pieces.pass(length);
            half.hellos += 1;
            if half.hellos == HELLOS {
                return Err(Full);
            }
            if self.answered {
                break;
            }
        }
        Ok(())
    }

    /// Decrypts an Initial packet, with the keys of the connection or, if it may be a client's first one, with those
    /// that its own destination gives.
    fn open(&mut self, side: Side, packet: &Long<'_>) -> Option<Vec<u8>> {
        if let Some(origin) = &self.origin {
            let is_client = origin.client == side;
            let half = &mut self.halves[side.index()];
            let known = half.keys.take().filter(|keys| keys.version == packet.version);
            half.keys = known.or_else(|| Keys::new(packet.version, origin.id(), is_client));
            if let Some(content) = half.open(packet) {
                return Some(content);
            }
            if !is_client || packet.destination == origin.id() {
                return None;
            }
        }
        let mut half = Half { keys: Keys::new(packet.version, packet.destination, true), ..Half::default() };
        let content = half.open(packet)?;
        let mut id = [0; LONGEST_ID];
        let id_len = packet.destination.len();
        id[..id_len].copy_from_slice(packet.destination);
        self.origin = Some(Origin { client: side, id, id_len });
        // What was said before was said to another server, or for nothing.
        for side in &mut self.halves {
            (side.keys, side.expected, side.pieces) = (None, 0, Pieces::default());
        }
        let own = &mut self.halves[side.index()];
        (own.keys, own.expected) = (half.keys, half.expected);
        Some(content)
    }
}

impl Half {
    fn open(&mut self, packet: &Long<'_>) -> Option<Vec<u8>> {
        let (number, content) = self.keys.as_ref()?.open(packet.packet, packet.number_at, self.expected)?;
        self.expected = self.expected.max(number + 1);
        Some(content)
    }

    fn finish(&mut self) {
        self.done = true;
        (self.keys, self.pieces) = (None, Pieces::default());
    }
}

/// Hands the CRYPTO frames of a packet's content to `take`, up to the first frame that no Initial packet has.
fn frames(mut content: &[u8], mut take: impl FnMut(u64, &[u8]) -> Result<(), Full>) -> Result<(), Full> {
    for _ in 0..FRAMES {
        let Some((kind, behind)) = variable(content) else {
            break;
        };
        let rest = match kind {
            PADDING => {
                let padding = behind.iter().position(|&byte| byte != 0).unwrap_or(behind.len());
                Some(&behind[padding..])
            }
            PING => Some(behind),
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
