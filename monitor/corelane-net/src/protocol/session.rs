//! A session: the protocol that a conversation is in, and what its bytes go to.

use super::identify::{self, Identified, Identifier};
use super::parser::{Next, Start};
use super::{Carrier, Detail, Event, Protocol, Reader};
use crate::conversation::{Application, Side};

/// The most layers of protocols inside a protocol that are followed, such as a tunnel in a tunnel.
const LAYERS: u8 = 4;

/// Reads one conversation.
#[derive(Debug)]
pub struct Session {
    pub(super) carrier: Carrier,
    detail: Detail,
    state: State,
    protocol: Option<Protocol>,
    layers: u8,
    /// HTTP exchanges before the tunnel that this is in.
    exchanges: u64,
}

#[derive(Debug)]
enum State {
    /// No bytes have come. Most conversations are identified by their first ones, and keep none.
    Fresh,
    Identifying(Box<Identifier>),
    Read(Reader),
    /// The protocol of datagrams is known and is not read, but a later datagram may be of one that is. The numbers are
    /// the datagrams of each side that were judged.
    Named([u8; 2]),
    /// The protocol is known and of no further interest, or will never be known.
    Over,
}

impl Session {
    /// A session without bytes so far.
    pub fn new(carrier: Carrier) -> Self {
        Self::with(carrier, Detail::Full)
    }

    /// The same with less detail in its events.
    pub fn with(carrier: Carrier, detail: Detail) -> Self {
        Self { carrier, detail, state: State::Fresh, protocol: None, layers: 0, exchanges: 0 }
    }

    /// A session in a protocol that is read, for tests.
    pub(super) fn inside(protocol: Protocol, carrier: Carrier) -> Self {
        let session = Self::new(carrier);
        let (client, detail, exchanges) = (Side::Originator, session.detail, 0);
        let reader = Reader::new(protocol, Start { carrier, client, detail, exchanges }).expect("it is read");
        Self { state: State::Read(reader), ..session }
    }

    /// The most that [`heap_bytes`](Application::heap_bytes) may be now.
    pub(super) fn most_heap_bytes(&self) -> usize {
        match &self.state {
            State::Identifying(_) => size_of::<Identifier>() + identify::MOST,
            State::Read(reader) => reader.most(),
            State::Fresh | State::Named(_) | State::Over => 0,
        }
    }

    /// The protocol, once it is known. In a tunnel it is the protocol inside.
    pub fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// Takes the first bytes of a conversation.
    fn begin(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) {
        let first = match self.carrier {
            Carrier::Stream => Identifier::first(side, time_ns, bytes),
            Carrier::Datagrams => Identifier::first_datagram(side, time_ns, bytes),
        };
        match first {
            Ok(found) => {
                let mut judged = [0; 2];
                judged[side.index()] = 1;
                self.state = self.found(found, judged, out);
                if !matches!(self.state, State::Named(_)) {
                    self.data(side, time_ns, bytes, out);
                }
            }
            Err(identifier) => {
                let is_taken = identifier.has_begun();
                self.state = State::Identifying(Box::new(identifier));
                match is_taken {
                    true => self.give_up(),
                    false => self.identify(side, time_ns, bytes, out),
                }
            }
        }
    }

    /// Makes place for what comes before any bytes.
    fn keep(&mut self) {
        if matches!(self.state, State::Fresh) {
            self.state = State::Identifying(Box::new(Identifier::new()));
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
        let judged = identifier.datagrams();
        let state = self.found(found, judged, out);
        let State::Identifying(identifier) = std::mem::replace(&mut self.state, state) else {
            return;
        };
        if self.carrier == Carrier::Stream {
            // The kept bytes are handed on first, this side's last: more of this side may have come in this piece than
            // the verdict needed, and more follows.
            let mut sides = identifier.into_sides();
            let other = &mut sides[found.side.other().index()];
            if found.protocol == Protocol::Tls && is_no_record(&other.bytes) {
                other.bytes.clear();
            }
            for side in [side.other(), side] {
                self.replay(side, &sides[side.index()], time_ns, out);
            }
        }
        if used < bytes.len() && !matches!(self.state, State::Named(_)) {
            self.data(side, time_ns, &bytes[used..], out);
        }
    }

    /// Takes a datagram behind one whose protocol is not read.
    fn named(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) {
        let State::Named(judged) = &mut self.state else {
            return;
        };
        let most = identify::judged(self.protocol);
        if judged[side.index()] >= most {
            return;
        }
        judged[side.index()] += 1;
        let judged = *judged;
        match identify::instead(self.protocol, side, time_ns, bytes) {
            Some(found) => {
                self.state = self.found(found, judged, out);
                self.data(side, time_ns, bytes, out);
            }
            None if judged.iter().all(|&count| count >= most) => self.state = State::Over,
            None => {}
        }
    }

    /// Reports what was identified, and returns the state that reads it. Of datagrams, `judged` is the number of each
    /// side so far.
    fn found(&mut self, found: Identified, judged: [u8; 2], out: &mut Vec<Event>) -> State {
        self.protocol = Some(found.protocol);
        out.push(Event::Identified(found));
        let client = found.client.unwrap_or(found.side);
        let start = Start { carrier: self.carrier, client, detail: self.detail, exchanges: self.exchanges };
        match (Reader::new(found.protocol, start), self.carrier) {
            (Some(reader), _) => State::Read(reader),
            (None, Carrier::Datagrams) => State::Named(judged),
            (None, Carrier::Stream) => State::Over,
        }
    }

    /// Hands on the bytes of a side that were kept before the verdict. All of them get the time of the verdict, as the
    /// times of their pieces would be many to keep.
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

    /// Goes on with another protocol; `bytes` are the first of a side.
    fn tunnel(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) {
        self.layers += 1;
        let next = match self.layers < LAYERS {
            true => State::Fresh,
            false => State::Over,
        };
        let State::Read(mut reader) = std::mem::replace(&mut self.state, next) else {
            return;
        };
        let rests = Side::BOTH.map(|side| (side, reader.take_rest(side)));
        for side in Side::BOTH {
            reader.end(side, time_ns, out);
        }
        // The tunnel may hold HTTP again, which counts on.
        self.exchanges = self.exchanges.max(reader.exchanges());
        for (side, rest) in rests.iter().filter(|(_, rest)| !rest.is_empty()) {
            self.data(*side, time_ns, rest, out);
        }
        if !bytes.is_empty() {
            self.data(side, time_ns, bytes, out);
        }
    }
}

/// Whether a side's bytes begin like no record of TLS: with an agreement to it, whose request was not captured.
#[cold]
fn is_no_record(bytes: &[u8]) -> bool {
    !matches!(bytes, [] | [20..=23] | [20..=23, 3, ..] | [0x80..=0xff, ..])
}

/// A side's bytes, gaps and end go in, and events come out.
impl Application for Session {
    type Found = Vec<Event>;

    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) {
        match &mut self.state {
            State::Fresh => self.begin(side, time_ns, bytes, out),
            State::Identifying(_) => self.identify(side, time_ns, bytes, out),
            State::Read(reader) => match reader.data(side, time_ns, bytes, out) {
                Next::More => {}
                Next::Over => self.state = State::Over,
                Next::Tunnel(used) => self.tunnel(side, time_ns, &bytes[used..], out),
            },
            State::Named(_) => self.named(side, time_ns, bytes, out),
            State::Over => {}
        }
    }

    fn answered_early(&mut self, side: Side) {
        if let State::Read(reader) = &mut self.state {
            reader.answered_early(side);
        }
    }

    fn gap(&mut self, side: Side, time_ns: u64, missing: u64, out: &mut Vec<Event>) {
        self.keep();
        match &mut self.state {
            State::Identifying(identifier) => identifier.gap(side, missing),
            State::Read(reader) => match reader.gap(side, time_ns, missing, out) {
                Next::More => {}
                Next::Over => self.state = State::Over,
                // What is missing is in front of what follows.
                Next::Tunnel(_) => self.tunnel(side, time_ns, &[], out),
            },
            State::Fresh | State::Named(_) | State::Over => {}
        }
    }

    fn end(&mut self, side: Side, time_ns: u64, out: &mut Vec<Event>) {
        self.keep();
        match &mut self.state {
            State::Identifying(identifier) => {
                identifier.end(side);
                self.give_up();
            }
            State::Read(reader) => match reader.end(side, time_ns, out) {
                Next::More => {}
                Next::Over => self.state = State::Over,
                Next::Tunnel(_) => {
                    self.tunnel(side, time_ns, &[], out);
                    self.end(side, time_ns, out);
                }
            },
            State::Fresh | State::Named(_) | State::Over => {}
        }
    }

    fn wants(&self, side: Side) -> bool {
        match &self.state {
            State::Fresh | State::Identifying(_) => true,
            State::Read(reader) => reader.wants(side),
            State::Named(judged) => judged[side.index()] < identify::judged(self.protocol),
            State::Over => false,
        }
    }

    fn heap_bytes(&self) -> usize {
        match &self.state {
            State::Identifying(identifier) => size_of::<Identifier>() + identifier.heap_bytes(),
            State::Read(reader) => reader.heap_bytes(),
            State::Fresh | State::Named(_) | State::Over => 0,
        }
    }
}
