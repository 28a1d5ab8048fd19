//! The parser of DNS.

use std::hash::{Hash, Hasher};

use super::kind;
use super::message::{Data, Message, Question, Record};
use super::wire::{Place, RawRecord};
use crate::conversation::Side;
use crate::protocol::parser::{Parser, Start};
use crate::protocol::text::{Detail, printable};
use crate::protocol::wire::Fields;
use crate::protocol::{Carrier, Event, Protocol};

/// The most questions of a message that are read.
pub const QUESTIONS: usize = 128;
/// The most answers of a message that are read.
pub const ANSWERS: usize = 64;
/// The most queries of a conversation that are remembered.
pub const PENDING: usize = 64;
/// The most bytes of a text that are kept.
pub const TEXT: usize = 1024;
/// The most bytes on the heap of a conversation: the queries, and a message of each side, in buffers that reserve up to
/// twice the bytes that they need.
pub const MOST: usize = 2 * PENDING * size_of::<Asked>() + 4 * (2 + 0xffff);
/// Bytes of a header.
pub(super) const HEADER: usize = 12;

/// The DNS of one conversation.
#[derive(Debug)]
pub(in crate::protocol) struct Dns {
    carrier: Carrier,
    detail: Detail,
    pending: Vec<Asked>,
    transactions: u64,
    /// The bytes of each side's current message over TCP.
    streams: [Stream; 2],
}

/// A query that waits for its response.
#[derive(Clone, Copy, Debug)]
struct Asked {
    id: u16,
    question: u64,
    time_ns: u64,
    transaction: u64,
}

/// Collects the messages of one side over TCP.
#[derive(Debug, Default)]
struct Stream {
    /// A length and the message behind it, as far as they have come.
    buffer: Vec<u8>,
    /// Bytes still to come of a message that a gap has spoilt.
    skip: usize,
    /// A gap has hidden where the next message starts.
    lost: bool,
}

impl Parser for Dns {
    const CARRIERS: &'static [Carrier] = &[Carrier::Datagrams, Carrier::Stream];
    const MOST: usize = MOST;
    const HOLDS: &'static str = "over TCP a message a side; over UDP only 64 queries that wait";

    fn new(_protocol: Protocol, Start { carrier, detail, .. }: Start) -> Self {
        Self { carrier, detail, pending: Vec::new(), transactions: 0, streams: Default::default() }
    }

    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) -> Option<usize> {
        match self.carrier {
            Carrier::Stream => self.stream(side, time_ns, bytes, out),
            Carrier::Datagrams => self.message(side, time_ns, bytes, out),
        }
        None
    }

    /// A gap inside a message is skipped by the message's length.
    fn gap(&mut self, side: Side, _time_ns: u64, missing: u64, _out: &mut Vec<Event>) {
        let stream = &mut self.streams[side.index()];
        let left = if stream.buffer.len() >= 2 { stream.missing() } else { stream.skip } as u64;
        if left == 0 || missing > left {
            stream.lost = true;
        } else {
            stream.skip = (left - missing) as usize;
        }
        stream.buffer = Vec::new();
    }

    fn end(&mut self, _side: Side, _time_ns: u64, _out: &mut Vec<Event>) {}

    fn wants(&self, side: Side) -> bool {
        !self.streams[side.index()].lost
    }

    fn heap_bytes(&self) -> usize {
        self.pending.capacity() * size_of::<Asked>()
            + self.streams.iter().map(|stream| stream.buffer.capacity()).sum::<usize>()
    }

    /// A query and its response, over UDP.
    fn example(_protocol: Protocol) -> Vec<(Side, Vec<u8>)> {
        let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
        let mut response = query.to_vec();
        response[2] = 0x81;
        vec![(Side::Originator, query.to_vec()), (Side::Responder, response)]
    }
}

impl Dns {
    fn message(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) {
        let Some(mut message) = head(side, time_ns, bytes) else {
            return;
        };
        if self.detail == Detail::Full {
            message.is_whole = read(&mut message, bytes).is_some();
            self.pair(&mut message);
        }
        out.push(Event::Dns(message));
    }

    /// Takes the next bytes of a TCP stream.
    fn stream(&mut self, side: Side, time_ns: u64, mut bytes: &[u8], out: &mut Vec<Event>) {
        loop {
            let stream = &mut self.streams[side.index()];
            if stream.lost || bytes.is_empty() {
                return;
            }
            let skipped = stream.skip.min(bytes.len());
            stream.skip -= skipped;
            bytes = &bytes[skipped..];
            if stream.buffer.is_empty()
                && let Some((length, rest)) = bytes.split_first_chunk::<2>()
                && let Some((message, rest)) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
            {
                bytes = rest;
                self.message(side, time_ns, message, out);
                continue;
            }
            let missing = stream.missing();
            let taken = missing.min(bytes.len());
            stream.buffer.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if stream.buffer.len() > 2 && stream.missing() == 0 {
                let buffer = std::mem::take(&mut stream.buffer);
                self.message(side, time_ns, &buffer[2..], out);
            } else if stream.buffer == [0, 0] {
                stream.buffer.clear();
            }
        }
    }

    /// Sets the number of the message's transaction and, for a response, the time of its query.
    fn pair(&mut self, message: &mut Message) {
        let question = message.questions.first().map(key);
        // A response without its question answers by its id alone.
        let same = |asked: &Asked| asked.id == message.id && question.is_none_or(|question| asked.question == question);
        let found = self.pending.iter().position(same);
        if message.is_response() {
            if let Some(found) = found {
                let asked = self.pending.remove(found);
                message.asked_ns = Some(asked.time_ns);
                message.transaction = asked.transaction;
                return;
            }
        } else if let Some(found) = found {
            message.transaction = self.pending[found].transaction;
            return;
        }
        message.transaction = self.transactions;
        self.transactions += 1;
        if let (false, Some(question)) = (message.is_response(), question) {
            if self.pending.len() == PENDING {
                self.pending.remove(0);
            }
            let (id, time_ns, transaction) = (message.id, message.time_ns, message.transaction);
            self.pending.push(Asked { id, question, time_ns, transaction });
        }
    }
}

impl Stream {
    /// Bytes that are missing to the end of the length or, once that is known, of the message.
    fn missing(&self) -> usize {
        match self.buffer.first_chunk::<2>() {
            None => 2 - self.buffer.len(),
            Some(length) => 2 + usize::from(u16::from_be_bytes(*length)) - self.buffer.len(),
        }
    }
}

/// A hash of a question: the name without regard to case, the type and the class.
fn key(question: &Question) -> u64 {
    let mut hash = std::hash::DefaultHasher::new();
    for byte in question.name.bytes() {
        byte.to_ascii_lowercase().hash(&mut hash);
    }
    (question.kind, question.class).hash(&mut hash);
    hash.finish()
}

/// The facts of the header, if there is a whole one.
fn head(side: Side, time_ns: u64, bytes: &[u8]) -> Option<Message> {
    let mut fields = Fields(bytes.get(..HEADER)?);
    let [id, flags] = [fields.u16()?, fields.u16()?];
    let counts = [fields.u16()?, fields.u16()?, fields.u16()?, fields.u16()?];
    Some(Message {
        time_ns,
        side,
        transaction: 0,
        asked_ns: None,
        id,
        flags,
        counts,
        questions: Vec::new(),
        answers: Vec::new(),
        is_whole: true,
    })
}

/// The most text that is made of a message of this many bytes: names stand for more than their bytes where pointers
/// compress them, and bytes that are escaped for four.
fn most_text(bytes: usize) -> usize {
    TEXT + 4 * bytes
}

/// Reads the whole questions and answers. Returns `None` if those were not all.
fn read(message: &mut Message, bytes: &[u8]) -> Option<()> {
    let mut place = Place::new(bytes, HEADER);
    let [questions, answers, ..] = message.counts.map(usize::from);
    let mut room = most_text(bytes.len());
    for number in 0..questions {
        if number < QUESTIONS {
            let (name, kind, class) = place.question()?;
            room = room.checked_sub(name.len())?;
            message.questions.push(Question { name, kind, class });
        } else {
            place.skip_question()?;
        }
    }
    for _ in 0..answers.min(ANSWERS) {
        let record = place.record()?;
        let data = data(&record).unwrap_or(Data::Other(record.data.rest().len() as u16));
        room = room.checked_sub(record.name.len() + data.text_len())?;
        let RawRecord { name, kind, class, ttl, .. } = record;
        message.answers.push(Record { name, kind, class, ttl, data });
    }
    Some(())
}

/// The data of a record whose type is read and has such data.
fn data(record: &RawRecord<'_>) -> Option<Data> {
    let mut place = record.data;
    let data = match record.kind {
        kind::A => Data::A(place.fields(Fields::array::<4>)?.into()),
        kind::AAAA => Data::Aaaa(place.fields(Fields::array::<16>)?.into()),
        kind::CNAME | kind::DNAME | kind::NS | kind::PTR => Data::Name(place.name()?),
        kind::MX => Data::Mx { preference: place.fields(Fields::u16)?, exchange: place.name()? },
        kind::SRV => {
            let [priority, weight, port] =
                place.fields(|fields| Some([fields.u16()?, fields.u16()?, fields.u16()?]))?;
            Data::Srv { priority, weight, port, target: place.name()? }
        }
        kind::SOA => {
            let (server, mailbox) = (place.name()?, place.name()?);
            // Behind the serial number are four times.
            let serial = place.fields(|fields| fields.u32().filter(|_| fields.take(16).is_some()))?;
            Data::Soa { server, mailbox, serial }
        }
        kind::TXT => {
            let mut text = Vec::new();
            while !place.rest().is_empty() {
                let part = place.fields(Fields::counted_by_u8)?;
                text.extend_from_slice(&part[..part.len().min(TEXT - text.len())]);
            }
            Data::Txt(printable(&text))
        }
        _ => return None,
    };
    place.rest().is_empty().then_some(data)
}
