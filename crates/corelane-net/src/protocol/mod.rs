//! What conversations say: which protocol it is, by content, and of HTTP/1, TLS and DNS what can be read in the clear.
//!
//! A [`Session`] takes the bytes of one conversation in order, as [`Application`] has them, and gives [`Event`]s. First
//! it finds out which protocol it is ([`identify`]). If it is one that is read ([`http`], [`tls`], [`dns`]) its parser
//! then gets what was seen so far and all that follows; of all others only the name is of interest, and the session
//! wants no more bytes.
//!
//! # What holds for all of it
//!
//! - The events do not depend on the pieces in which the bytes arrive, only on the bytes, the gaps, and the order of
//!   the two sides.
//! - No bytes make it panic, and what it keeps is bounded: each parser states its bounds, and [`Session::heap_bytes`]
//!   counts.
//! - A conversation may have been picked up in the middle: a response may come first.
//!
//! # The kept crates
//!
//! `httparse` reads heads of HTTP/1, `tls-parser` the hellos of TLS, `domain` the names and records of DNS; `sha1` and
//! `base64` make the Community ID, `sha2` the JA4 fingerprint; `memchr` finds ends of lines. All else is small enough
//! to be read here.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | this file, `event.rs` | a session and its states; what it gives |
//! | `identify/` | the rules, in their order, and the evidence |
//! | `http/`, `tls/`, `dns/` | a parser each, and what it finds, as types |
//! | `community_id.rs`, `text.rs` | a flow's name in every tool; text to be printed |
//! | `fuzz.rs` | targets that take any bytes, for tests and for `fuzz/` |

mod community_id;
pub mod dns;
mod event;
#[doc(hidden)]
pub mod fuzz;
pub mod http;
pub mod identify;
mod text;
pub mod tls;

pub use community_id::{CommunityId, community_id, community_id_seeded};
pub use event::Event;
pub use identify::{Identified, Protocol};

use crate::conversation::{Application, Side};
use identify::Identifier;

/// How a conversation's bytes arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// TCP: a stream of each side.
    Stream,
    /// UDP: each call of `data` brings a datagram.
    Datagrams,
}

/// Protocols inside a protocol that are followed: a tunnel in a tunnel, and so on.
const LAYERS: u8 = 4;

/// Reads one conversation.
#[derive(Debug)]
pub struct Session {
    carrier: Carrier,
    state: State,
    protocol: Option<Protocol>,
    layers: u8,
    /// HTTP exchanges in front of the tunnel that this is in.
    exchanges: u64,
}

#[derive(Debug)]
enum State {
    Identifying(Box<Identifier>),
    Http(Box<http::Http>),
    Tls(Box<tls::Tls>),
    Dns(Box<dns::Dns>),
    /// It is known and of no further interest, or will never be known.
    Over,
}

impl Session {
    /// A conversation of which nothing was seen yet.
    pub fn new(carrier: Carrier) -> Self {
        let state = State::Identifying(Box::new(Identifier::new()));
        Self { carrier, state, protocol: None, layers: 0, exchanges: 0 }
    }

    /// The protocol, once it is known. Inside a tunnel the one inside.
    pub fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// The next bytes of a side, in order; of UDP one datagram. Events are appended to `out`.
    pub fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) {
        match &mut self.state {
            State::Identifying(_) => self.identify(side, time_ns, bytes, out),
            State::Http(http) => {
                let used = http.data(side, time_ns, bytes, out);
                if http.is_tunnel() {
                    self.tunnel(side, time_ns, &bytes[used..], out);
                }
            }
            State::Tls(tls) => tls.data(side, time_ns, bytes, out),
            State::Dns(dns) if self.carrier == Carrier::Datagrams => dns.datagram(side, time_ns, bytes, out),
            State::Dns(dns) => dns.stream(side, time_ns, bytes, out),
            State::Over => {}
        }
    }

    /// So many bytes of a side are missing.
    pub fn gap(&mut self, side: Side, time_ns: u64, missing: u64, out: &mut Vec<Event>) {
        match &mut self.state {
            State::Identifying(identifier) => identifier.gap(side, missing),
            State::Http(http) => http.gap(side, time_ns, missing, out),
            State::Tls(tls) => tls.gap(side, missing),
            State::Dns(dns) => dns.gap(side, missing),
            State::Over => {}
        }
    }

    /// Nothing further comes from a side.
    pub fn end(&mut self, side: Side, time_ns: u64, out: &mut Vec<Event>) {
        match &mut self.state {
            State::Identifying(identifier) => {
                identifier.end(side);
                self.give_up();
            }
            State::Http(http) => http.end(side, time_ns, out),
            State::Tls(tls) => tls.end(side),
            State::Dns(_) | State::Over => {}
        }
    }

    /// Whether more of a side is of use.
    pub fn wants(&self, side: Side) -> bool {
        match &self.state {
            State::Identifying(_) | State::Http(_) => true,
            State::Tls(tls) => tls.wants(side),
            State::Dns(dns) => dns.wants(side),
            State::Over => false,
        }
    }

    /// The bytes it holds outside of itself.
    pub fn heap_bytes(&self) -> usize {
        match &self.state {
            State::Identifying(identifier) => size_of::<Identifier>() + identifier.heap_bytes(),
            State::Http(http) => size_of::<http::Http>() + http.heap_bytes(),
            State::Tls(tls) => size_of::<tls::Tls>() + tls.heap_bytes(),
            State::Dns(dns) => size_of::<dns::Dns>() + dns.heap_bytes(),
            State::Over => 0,
        }
    }

    fn identify(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) {
        let State::Identifying(identifier) = &mut self.state else {
            return;
        };
        let (found, used) = match self.carrier {
            Carrier::Stream => identifier.stream(side, time_ns, bytes),
            Carrier::Datagrams => (identifier.datagram(side, time_ns, bytes), 0),
        };
        let Some(found) = found else {
            self.give_up();
            return;
        };
        self.protocol = Some(found.protocol);
        out.push(Event::Identified(found));
        let state = match found.protocol {
            Protocol::Http1 => {
                let client = found.client.unwrap_or(found.side);
                State::Http(Box::new(http::Http::new(client, self.exchanges)))
            }
            Protocol::Tls => State::Tls(Box::default()),
            Protocol::Dns => State::Dns(Box::default()),
            _ => State::Over,
        };
        let State::Identifying(identifier) = std::mem::replace(&mut self.state, state) else {
            return;
        };
        if self.carrier == Carrier::Stream {
            // What was kept, this side last: of it more may have come in this piece than the verdict needed, and more
            // comes behind.
            let sides = identifier.into_sides();
            for side in [side.other(), side] {
                self.replay(side, &sides[side.index()], time_ns, out);
            }
        }
        if used < bytes.len() {
            self.data(side, time_ns, &bytes[used..], out);
        }
    }

    /// Hands on what was kept of a side while it was not known what it is. All of it gets the time of the verdict, as
    /// the times of the pieces it came in would be many to keep.
    fn replay(&mut self, side: Side, kept: &identify::Prefix, time_ns: u64, out: &mut Vec<Event>) {
        if kept.before > 0 {
            self.gap(side, time_ns, kept.before, out);
        }
        if !kept.bytes.is_empty() {
            self.data(side, time_ns, &kept.bytes, out);
        }
        if kept.skipped > 0 {
            self.gap(side, time_ns, kept.skipped, out);
        }
        if kept.ended {
            self.end(side, time_ns, out);
        }
    }

    fn give_up(&mut self) {
        if let State::Identifying(identifier) = &self.state
            && identifier.is_hopeless()
        {
            self.state = State::Over;
        }
    }

    /// What follows is another protocol, of which `bytes` are the first of a side.
    fn tunnel(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) {
        self.layers += 1;
        let next = match self.layers < LAYERS {
            true => State::Identifying(Box::new(Identifier::new())),
            false => State::Over,
        };
        let State::Http(mut http) = std::mem::replace(&mut self.state, next) else {
            return;
        };
        let rests = Side::BOTH.map(|side| (side, http.take_rest(side)));
        // What comes behind may be HTTP again, and counts on.
        Side::BOTH.into_iter().for_each(|side| http.end(side, time_ns, out));
        self.exchanges = http.number();
        for (side, rest) in rests.iter().filter(|(_, rest)| !rest.is_empty()) {
            self.data(*side, time_ns, rest, out);
        }
        if !bytes.is_empty() {
            self.data(side, time_ns, bytes, out);
        }
    }
}

/// A session that keeps its events until they are taken, which is to be done after every packet.
#[derive(Debug)]
pub struct Keeping {
    session: Session,
    events: Vec<Event>,
}

impl Keeping {
    /// A conversation of which nothing was seen yet.
    pub fn new(carrier: Carrier) -> Self {
        Self { session: Session::new(carrier), events: Vec::new() }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The events since the last call.
    pub fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

impl Application for Keeping {
    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8]) {
        self.session.data(side, time_ns, bytes, &mut self.events);
    }

    fn gap(&mut self, side: Side, time_ns: u64, missing: u64) {
        self.session.gap(side, time_ns, missing, &mut self.events);
    }

    fn end(&mut self, side: Side, time_ns: u64) {
        self.session.end(side, time_ns, &mut self.events);
    }

    fn heap_bytes(&self) -> usize {
        let events: usize = self.events.iter().map(Event::heap_bytes).sum();
        self.session.heap_bytes() + events + self.events.capacity() * size_of::<Event>()
    }

    fn wants(&self, side: Side) -> bool {
        self.session.wants(side)
    }
}
