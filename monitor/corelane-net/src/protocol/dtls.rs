//! DTLS (RFC 6347, RFC 9147): reads the two hellos, which are in the clear.
//!
//! 1. A datagram holds records: kind, version, epoch, number and length in 13 bytes, then the content. Records of epoch
//!    0 are in the clear. The first one of another epoch ends its side: hellos come before it.
//! 2. A handshake record holds messages or fragments of them. Those of a hello are put together by their places; what
//!    has come twice counts once. A fragment of another message begins anew.
//! 3. A ClientHello has a cookie, and is else read as in [`tls`](super::tls). The client repeats its hello with the
//!    cookie that the server has asked for, and either end what is not answered in time. So a hello that is the same
//!    but for its cookie is reported once.
//!
//! Other datagrams, such as those of STUN and SRTP, are stepped over.
//!
//! # Bounds
//!
//! A side is done after [`DATAGRAMS`] datagrams or [`HELLOS`] hellos. In a datagram at most [`LOOKED_AT`] records are
//! looked at, and as many fragments in a record.

use super::identify::Says::{self, No, Yes};
use super::identify::Speaker::{Client, Either, Server};
use super::parser::{Parser, Start};
use super::quic::pieces::{self, Pieces};
use super::tls;
use super::wire::Fields;
use super::{Carrier, Detail, Event, Protocol};
use crate::conversation::Side;
use sha2::{Digest, Sha256};

/// The most datagrams of a side.
const DATAGRAMS: u8 = 64;
/// The most hellos of a side.
const HELLOS: u8 = 4;
/// The most records of a datagram, and fragments of a record.
const LOOKED_AT: usize = 16;
/// The most bytes on the heap of a conversation: a hello of each side, and the places of its fragments.
const MOST: usize = 2 * pieces::MOST;

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const HELLO_VERIFY_REQUEST: u8 = 3;

/// A record.
struct Record<'a> {
    kind: u8,
    epoch: u16,
    content: &'a [u8],
}

/// A message of the handshake, or a fragment of one.
struct Fragment<'a> {
    kind: u8,
    length: u32,
    number: u16,
    place: u32,
    content: &'a [u8],
}

/// The versions 1.0 and 1.2; 1.3 has the latter's in its records.
fn is_version(version: u16) -> bool {
    matches!(version, 0xfeff | 0xfefd)
}

fn record<'a>(fields: &mut Fields<'a>) -> Option<Record<'a>> {
    let (kind, version, epoch) = (fields.u8()?, fields.u16()?, fields.u16()?);
    let _number: [u8; 6] = fields.array()?;
    let content = fields.counted_by_u16()?;
    (matches!(kind, CHANGE_CIPHER_SPEC..=APPLICATION_DATA) && is_version(version)).then_some(Record {
        kind,
        epoch,
        content,
    })
}

fn fragment<'a>(fields: &mut Fields<'a>) -> Option<Fragment<'a>> {
    let three = |fields: &mut Fields<'_>| fields.array().map(|[a, b, c]: [u8; 3]| u32::from_be_bytes([0, a, b, c]));
    let kind = fields.u8()?;
    let (length, number, place, here) = (three(fields)?, fields.u16()?, three(fields)?, three(fields)?);
    let content = fields.take(here as usize)?;
    (place + here <= length).then_some(Fragment { kind, length, number, place, content })
}

/// A record of epoch 0 that begins with a hello, or records that fill the datagram, the first with what it may hold.
pub(super) fn datagram(bytes: &[u8]) -> Says {
    if !matches!(bytes, [CHANGE_CIPHER_SPEC..=APPLICATION_DATA, 0xfe, 0xff | 0xfd, ..]) {
        return No;
    }
    let mut fields = Fields(bytes);
    let Some(first) = record(&mut fields) else {
        return No;
    };
    let found = |evidence, speaker| Yes(Protocol::Dtls, evidence, speaker);
    if first.kind == HANDSHAKE && first.epoch == 0 {
        let Some(message) = fragment(&mut Fields(first.content)) else {
            return No;
        };
        let version = message.content.first_chunk().map(|version| u16::from_be_bytes(*version));
        if message.place > 0 || !version.is_some_and(is_version) {
            return No;
        }
        return match message.kind {
            CLIENT_HELLO if message.length >= 41 => found("DTLS record, ClientHello", Client),
            SERVER_HELLO if message.length >= 38 => found("DTLS record, ServerHello", Server),
            HELLO_VERIFY_REQUEST if message.length <= 3 + 255 => found("DTLS record, HelloVerifyRequest", Server),
            _ => No,
        };
    }
    // What is encrypted looks random. A key changes rarely, and the upper bytes of numbers are zeros.
    let is_usual = match (first.kind, first.epoch) {
        (CHANGE_CIPHER_SPEC, 0) => first.content == [1],
        (ALERT, 0) => matches!(first.content, [1 | 2, _]),
        (HANDSHAKE | APPLICATION_DATA | ALERT, 1..=8) => first.content.len() > 16 && bytes[5..7] == [0; 2],
        _ => false,
    };
    while !fields.0.is_empty() {
        if record(&mut fields).is_none() {
            return No;
        }
    }
    match first.kind {
        _ if !is_usual => No,
        CHANGE_CIPHER_SPEC => found("DTLS record, ChangeCipherSpec", Either),
        ALERT => found("DTLS record, alert", Either),
        HANDSHAKE => found("DTLS record, encrypted handshake", Either),
        _ => found("DTLS record, application data", Either),
    }
}

/// The DTLS of one conversation.
#[derive(Debug, Default)]
pub(super) struct Dtls {
    detail: Detail,
    halves: [Half; 2],
}

/// One side's records.
#[derive(Debug, Default)]
struct Half {
    /// The kind, the number and the length of the hello whose fragments are collected.
    message: Option<(u8, u16, u32)>,
    pieces: Pieces,
    /// It was whole. It begins anew only at its first byte, so that its hash is made once for all its bytes.
    is_taken: bool,
    /// The hash of the last hello.
    hash: Option<[u8; 32]>,
    datagrams: u8,
    hellos: u8,
    done: bool,
}

impl Half {
    /// Takes a fragment of a hello. Returns the kind and the content of the hello, if it is whole and new.
    fn take(&mut self, fragment: &Fragment<'_>) -> Option<(u8, &[u8])> {
        let Fragment { kind, length, number, place, content } = *fragment;
        let is_next = self.message != Some((kind, number, length));
        if self.is_taken && !is_next && place > 0 {
            return None;
        }
        if is_next || self.is_taken {
            self.message = Some((kind, number, length));
            self.is_taken = false;
            self.pieces = Pieces::default();
            let [_, l0, l1, l2] = length.to_be_bytes();
            self.pieces.insert(0, &[kind, l0, l1, l2]).ok()?;
        }
        self.pieces.insert(4 + u64::from(place), content).ok()?;
        let (kind, content) = self.pieces.message().ok()??;
        self.is_taken = true;
        let (before, behind) = match kind {
            CLIENT_HELLO => without_cookie(content)?,
            _ => (content, &[][..]),
        };
        let hash = Some(Sha256::new().chain_update(before).chain_update(behind).finalize().into());
        if hash == self.hash {
            return None;
        }
        self.hash = hash;
        self.hellos += 1;
        Some((kind, content))
    }
}

/// What is in front of a ClientHello's cookie and behind it.
fn without_cookie(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = Fields(content);
    fields.take(2 + 32)?;
    fields.counted_by_u8()?;
    let before = &content[..content.len() - fields.0.len()];
    fields.counted_by_u8()?;
    Some((before, fields.0))
}

impl Parser for Dtls {
    const CARRIERS: &'static [Carrier] = &[Carrier::Datagrams];
    const MOST: usize = MOST;
    const HOLDS: &'static str = "a hello a side in at most 256 pieces";

    fn new(_protocol: Protocol, start: Start) -> Self {
        Self { detail: start.detail, ..Self::default() }
    }

    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) -> Option<usize> {
        let half = &mut self.halves[side.index()];
        let mut records = Fields(bytes);
        for _ in 0..LOOKED_AT {
            let Some(record) = record(&mut records).filter(|_| !half.done) else {
                break;
            };
            half.done |= record.epoch > 0;
            if record.kind != HANDSHAKE || record.epoch > 0 {
                continue;
            }
            let mut fragments = Fields(record.content);
            for _ in 0..LOOKED_AT {
                let Some(fragment) = fragment(&mut fragments).filter(|_| half.hellos < HELLOS) else {
                    break;
                };
                if !matches!(fragment.kind, CLIENT_HELLO | SERVER_HELLO) || fragment.length as usize > tls::HELLO {
                    continue;
                }
                let head = (side, time_ns, self.detail);
                out.extend(match half.take(&fragment) {
                    Some((CLIENT_HELLO, content)) => {
                        tls::client_hello(head, content, None).map(|hello| Event::ClientHello(Box::new(hello)))
                    }
                    Some((_, content)) => {
                        tls::server_hello(head, content, None).map(|hello| Event::ServerHello(Box::new(hello)))
                    }
                    None => None,
                });
            }
        }
        half.datagrams = half.datagrams.saturating_add(1);
        half.done |= half.datagrams >= DATAGRAMS || half.hellos >= HELLOS;
        if half.done {
            half.pieces = Pieces::default();
        }
        None
    }

    fn gap(&mut self, _side: Side, _time_ns: u64, _missing: u64, _out: &mut Vec<Event>) {}

    fn end(&mut self, _side: Side, _time_ns: u64, _out: &mut Vec<Event>) {}

    fn wants(&self, side: Side) -> bool {
        !self.halves[side.index()].done
    }

    fn is_over(&self) -> bool {
        self.halves.iter().all(|half| half.done)
    }

    fn heap_bytes(&self) -> usize {
        self.halves.iter().map(|half| half.pieces.heap_bytes()).sum()
    }

    /// The shortest ClientHello.
    fn example(_protocol: Protocol) -> Vec<(Side, Vec<u8>)> {
        let head = b"\x16\xfe\xff\0\0\0\0\0\0\0\0\0\x36\x01\0\0\x2a\0\0\0\0\0\0\0\x2a\xfe\xfd";
        let hello = [&head[..], &[7; 32], b"\0\0\0\x02\xc0\x2b\x01\0"].concat();
        vec![(Side::Originator, hello)]
    }
}
