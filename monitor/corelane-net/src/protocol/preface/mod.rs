//! Prefaces: short dialogues in which two ends agree on the protocol that follows them, most often TLS.
//!
//! A protocol is a line of [`PREFACES`]: a rule that identifies it, and how the messages of its two sides are read.
//! What all have in common is here:
//!
//! 1. A side's bytes are messages. Each is taken, waits for the other side, changes to what follows, or ends the watch
//!    ([`Turn`]).
//! 2. What waits is held: a client may send its hello before the answer. Where the server refuses, it is read as
//!    messages.
//! 3. Behind the change both sides are identified anew, the held bytes first.
//! 4. A gap, or the end of the side that is waited for, may have hidden the change. Then what follows is identified
//!    anew too.
//!
//! # Bounds
//!
//! Of each side at most [`HELD`] bytes are held. Where a message is longer or more waits, what follows is identified
//! anew. The watch ends behind [`WATCHED`] bytes of messages of a side.

mod jabber;
mod ldap;
mod mysql;
mod pgsql;
mod proxy;
mod rdp;
mod socks;

pub(super) use proxy::proxy_header;

use super::identify::Says::{self, More, No, Yes};
use super::identify::Seen;
use super::identify::Speaker::{Client, Server};
use super::parser::{Parser, Start};
use super::wire::Fields;
use super::{Carrier, Event, Protocol};
use crate::conversation::Side;

/// The most bytes of a side that are held.
pub(super) const HELD: usize = 8 << 10;
/// The most bytes of messages of a side that are watched.
const WATCHED: usize = 64 << 10;
/// The most bytes on the heap of a connection, in buffers that reserve up to twice the bytes that they need.
const MOST: usize = 4 * HELD;

/// A protocol whose ends agree on what follows.
struct Form {
    protocol: Protocol,
    rule: fn(Seen<'_>) -> Says,
    client: Read,
    server: Read,
    example: [(Side, &'static [u8]); 4],
}

/// How the next message of a side is read. None, if bytes are missing.
type Read = fn(State, &[u8]) -> Option<Turn>;

/// The place in a dialogue.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    step: u8,
    /// The number of the message that waits for its answer.
    id: u32,
}

/// What a message is.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// It waits for the other side.
    Wait,
    /// It has so many bytes, more than are there perhaps; the dialogue goes on behind them in this state.
    Take(usize, State),
    /// It has so many bytes, and another protocol follows.
    Change(usize),
    /// No other protocol follows.
    Over,
}
use Turn::{Change, Over, Take, Wait};

const fn take(bytes: usize, step: u8) -> Option<Turn> {
    Some(Take(bytes, State { step, id: 0 }))
}

const C: Side = Side::Originator;
const S: Side = Side::Responder;

static PREFACES: [Form; 6] = [
    Form {
        protocol: Protocol::Mysql,
        rule: mysql::rule,
        client: mysql::client,
        server: mysql::server,
        example: [
            (
                S,
                b"\x34\0\0\0\x0a5.1.73\0aaaabbbbbbbb\0\xff\xff\x21\x02\0\xff\xc1\x15\0\0\0\0\0\0\0\0\0\0cccccccccccc\0",
            ),
            (C, b"\x20\0\0\x01\x85\xae\xff\x19\0\0\0\x01\x21\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
            (C, b""),
            (S, b""),
        ],
    },
    Form {
        protocol: Protocol::Pgsql,
        rule: pgsql::rule,
        client: pgsql::client,
        server: pgsql::server,
        example: [(C, b"\0\0\0\x08\x04\xd2\x16\x30"), (S, b"N"), (C, b"\0\0\0\x08\x04\xd2\x16\x2f"), (S, b"S")],
    },
    Form {
        protocol: Protocol::Rdp,
        rule: rdp::rule,
        client: rdp::client,
        server: rdp::server,
        example: [
            (C, b"\x03\0\0\x13\x0e\xe0\0\0\0\0\0\x01\0\x08\0\x03\0\0\0"),
            (S, b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\x1f\x08\0\x02\0\0\0"),
            (C, b""),
            (S, b""),
        ],
    },
    Form {
        protocol: Protocol::Socks,
        rule: socks::rule,
        client: socks::client,
        server: socks::server,
        example: [
            (C, b"\x05\x01\0"),
            (S, b"\x05\0"),
            (C, b"\x05\x01\0\x03\x01a\x01\xbb"),
            (S, b"\x05\0\0\x01\0\0\0\0\0\0"),
        ],
    },
    Form {
        protocol: Protocol::Ldap,
        rule: ldap::rule,
        client: ldap::client,
        server: ldap::server,
        example: [
            (C, b"0\x1d\x02\x01\x01w\x18\x80\x161.3.6.1.4.1.1466.20037"),
            (S, b"0\x0c\x02\x01\x01x\x07\x0a\x01\0\x04\0\x04\0"),
            (C, b""),
            (S, b""),
        ],
    },
    Form {
        protocol: Protocol::Jabber,
        rule: jabber::rule,
        client: jabber::client,
        server: jabber::server,
        example: [
            (C, b"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"),
            (S, b"<stream:features><starttls/></stream:features>"),
            (C, b"<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
            (S, b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
        ],
    },
];

/// The rule for all of them: the first that does not say no.
pub(super) fn opening(seen: Seen<'_>) -> Says {
    PREFACES.iter().map(|form| (form.rule)(seen)).find(|says| *says != No).unwrap_or(No)
}

/// The preface of one connection.
#[derive(Debug)]
pub(super) struct Preface {
    client: Side,
    /// How messages of the client and of the server are read.
    reads: [Read; 2],
    state: State,
    sides: [Messages; 2],
    /// What follows is to be identified anew.
    changes: bool,
    is_over: bool,
}

/// The messages of a side.
#[derive(Debug, Default)]
struct Messages {
    /// The bytes from `at` on are yet to be read, or wait.
    held: Vec<u8>,
    at: usize,
    /// Bytes of a message that are still to come.
    skip: usize,
    /// Bytes of messages so far.
    seen: usize,
}

impl Preface {
    /// Reads the next message of a side. Returns whether there was one.
    fn step(&mut self, side: Side) -> bool {
        let read = self.reads[usize::from(side != self.client)];
        let own = &mut self.sides[side.index()];
        let bytes = &own.held[own.at..];
        if self.changes || self.is_over || bytes.is_empty() {
            return false;
        }
        let taken = match read(self.state, bytes) {
            None | Some(Wait) => return false,
            // What moves the dialogue has to be whole.
            Some(Take(taken, state)) if state.step != self.state.step && taken > bytes.len() => return false,
            Some(Change(taken)) if taken > bytes.len() => return false,
            Some(Take(taken, state)) => {
                self.state = state;
                taken
            }
            Some(Change(taken)) => {
                self.changes = true;
                taken
            }
            Some(Over) => {
                self.is_over = true;
                0
            }
        };
        own.skip = taken.saturating_sub(bytes.len());
        own.at += taken.min(bytes.len());
        own.seen = own.seen.saturating_add(taken);
        self.is_over |= own.seen > WATCHED && !self.changes;
        true
    }
}

impl Parser for Preface {
    const CARRIERS: &'static [Carrier] = &[Carrier::Stream];
    const MOST: usize = MOST;
    const HOLDS: &'static str = "what waits for the other side";

    fn new(protocol: Protocol, start: Start) -> Self {
        let form = PREFACES.iter().find(|form| form.protocol == protocol).unwrap_or(&PREFACES[0]);
        Self {
            client: start.client,
            reads: [form.client, form.server],
            state: State::default(),
            sides: Default::default(),
            changes: false,
            is_over: false,
        }
    }

    fn data(&mut self, side: Side, _time_ns: u64, bytes: &[u8], _out: &mut Vec<Event>) -> Option<usize> {
        let mut used = 0;
        while used < bytes.len() && !self.changes && !self.is_over {
            let own = &mut self.sides[side.index()];
            let skipped = own.skip.min(bytes.len() - used);
            own.skip -= skipped;
            used += skipped;
            own.held.drain(..std::mem::take(&mut own.at));
            let taken = (HELD - own.held.len()).min(bytes.len() - used);
            own.held.extend_from_slice(&bytes[used..used + taken]);
            used += taken;
            // The other side goes on behind each message, whatever else is there of this one.
            while self.step(side.other()) || self.step(side) {}
            let own = &mut self.sides[side.index()];
            if self.changes {
                // It came with these bytes, and is none of those that waited.
                used -= own.held.len() - own.at;
                own.held.truncate(own.at);
            }
            self.changes |= !self.is_over && own.held.len() - own.at == HELD && used < bytes.len();
        }
        self.changes.then_some(used)
    }

    /// In front of the first message a gap hides nothing that is known to be there.
    fn gap(&mut self, side: Side, _time_ns: u64, missing: u64, _out: &mut Vec<Event>) {
        let has_begun = self.sides.iter().any(|side| side.seen > 0);
        let own = &mut self.sides[side.index()];
        match usize::try_from(missing) {
            Ok(missing) if missing <= own.skip => own.skip -= missing,
            _ => self.changes |= has_begun || own.held.len() > own.at,
        }
    }

    fn end(&mut self, side: Side, _time_ns: u64, _out: &mut Vec<Event>) {
        let waits = |side: Side| {
            let side = &self.sides[side.index()];
            side.seen > 0 && side.held.len() > side.at
        };
        match waits(side.other()) {
            true => self.changes = true,
            false => self.is_over |= !waits(side),
        }
    }

    fn wants(&self, _side: Side) -> bool {
        !self.is_over
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn leaves(&self) -> bool {
        self.changes
    }

    fn take_rest(&mut self, side: Side) -> Vec<u8> {
        let own = &mut self.sides[side.index()];
        own.held.split_off(own.at)
    }

    fn heap_bytes(&self) -> usize {
        self.sides.iter().map(|side| side.held.capacity()).sum()
    }

    /// The preface, and a hello behind it.
    fn example(protocol: Protocol) -> Vec<(Side, Vec<u8>)> {
        let form = PREFACES.iter().find(|form| form.protocol == protocol).unwrap_or(&PREFACES[0]);
        let messages = form.example.iter().filter(|(_, bytes)| !bytes.is_empty());
        messages.map(|&(side, bytes)| (side, bytes.to_vec())).chain(super::tls::Tls::example(Protocol::Tls)).collect()
    }
}

/// Whether bytes are all of what fits, or its beginning; `fits` says of each place which bytes do.
fn begins(bytes: &[u8], length: usize, fits: impl Fn(usize, u8) -> bool) -> Option<bool> {
    match bytes.iter().take(length).enumerate().all(|(at, &byte)| fits(at, byte)) {
        false => Some(false),
        true if bytes.len() < length => None,
        true => Some(true),
    }
}

/// Says yes, no, or that bytes are missing.
fn says(found: Option<bool>, yes: Says) -> Says {
    match found {
        None => More,
        Some(false) => No,
        Some(true) => yes,
    }
}
