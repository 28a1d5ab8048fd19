//! The rules that identify DNS.

use super::parser::HEADER;
use super::wire::{Broken, Name, Place};
use crate::protocol::identify::Says::{self, More, No, Yes};
use crate::protocol::identify::Seen;
use crate::protocol::identify::Speaker::{Client, Server};
use crate::protocol::{Carrier, Protocol};

/// The shortest message that can be judged: a header, and a question for the root.
const SHORTEST: usize = HEADER + 5;

/// The least bytes of a question and of a record: with the name of the root.
const QUESTION: usize = 5;
const RECORD: usize = 11;
/// The questions that are examined where there are many.
const EXAMINED: usize = 32;

/// The verdict on bytes that may be a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    Query,
    Response,
    /// They look like a message, as far as they go.
    Cut,
    Other,
}

/// Judges whether this is a message. Its header and counts must make sense. It must have a whole first question or, in
/// a response without questions, a whole first record. A question for a server's state has neither. With `more`, bytes
/// may follow.
fn looks_like(bytes: &[u8], more: bool, carrier: Carrier) -> Looks {
    let cut = if more { Looks::Cut } else { Looks::Other };
    let word = |at: usize| bytes.get(at..at + 2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    let Some(flags) = word(2) else {
        return cut;
    };
    let (response, opcode, rcode) = (flags & 0x8000 != 0, flags >> 11 & 0xf, flags & 0xf);
    // Code 3 was never given out, and a query has no result yet.
    if !matches!(opcode, 0..=2 | 4 | 5) || (!response && rcode != 0) || (response && rcode > 11) {
        return Looks::Other;
    }
    let (Some(questions), Some(answers), Some(authorities), Some(additional)) = (word(4), word(6), word(8), word(10))
    else {
        return cut;
    };
    if bytes.len() == HEADER && !more && flags == 0x1000 && bytes[4..] == [0; 8] {
        return Looks::Query;
    }
    let possible = match response {
        false => questions > 0 && questions <= 32 && answers <= 64 && authorities <= 64 && additional <= 16,
        true => {
            questions <= 32
                && (questions > 0 || answers > 0)
                && answers <= 4096
                && authorities <= 256
                && additional <= 256
        }
    };
    // Multicast DNS puts many into one datagram. Then there is room for them, and more than the first are examined.
    let fits = || {
        let records = [answers, authorities, additional].map(usize::from).iter().sum::<usize>();
        QUESTION * usize::from(questions) + RECORD * records + HEADER <= bytes.len()
    };
    let is_many = !possible;
    if is_many && !(carrier == Carrier::Datagrams && questions > 0 && opcode == 0 && rcode == 0 && fits()) {
        return Looks::Other;
    }
    let first = Place::new(bytes, HEADER);
    let mut place = first;
    match place.labels(&mut Name::new()) {
        // There are no names in the header to point at.
        Ok(Some(..HEADER)) | Err(Broken::Wrong) => return Looks::Other,
        Err(Broken::Cut) => return cut,
        Ok(_) => {}
    }
    let at = bytes.len() - place.rest().len();
    let (Some(kind), Some(class)) = (word(at), word(at + 2)) else {
        return cut;
    };
    if !are_usual(kind, class) {
        return Looks::Other;
    }
    if is_many && !are_questions(first, usize::from(questions)) {
        return Looks::Other;
    }
    if questions == 0 {
        let Some(length) = word(at + 8) else {
            return cut;
        };
        if bytes.len() < at + 10 + usize::from(length) {
            return cut;
        }
    }
    if response { Looks::Response } else { Looks::Query }
}

/// Whether a question may be of this type and class.
fn are_usual(kind: u16, class: u16) -> bool {
    // The highest bit is multicast DNS's own. Type 32 is NetBIOS's, which has the same header.
    !matches!(kind, 0 | 32) && matches!(class & 0x7fff, 1 | 3 | 4 | 254 | 255)
}

/// Whether so many questions begin here, of which the first are examined.
#[cold]
fn are_questions(mut place: Place<'_>, count: usize) -> bool {
    (0..count.min(EXAMINED)).all(|_| {
        let is_named = place.labels(&mut Name::new()).is_ok();
        let words = place.fields(|fields| Some((fields.u16()?, fields.u16()?)));
        is_named && words.is_some_and(|(kind, class)| are_usual(kind, class))
    })
}

/// A message in a datagram.
pub(in crate::protocol) fn message(bytes: &[u8]) -> Says {
    match looks_like(bytes, false, Carrier::Datagrams) {
        Looks::Query => Yes(Protocol::Dns, "DNS query", Client),
        Looks::Response => Yes(Protocol::Dns, "DNS response", Server),
        _ => No,
    }
}

/// A message behind its length.
pub(in crate::protocol) fn message_over_tcp(seen: Seen<'_>) -> Says {
    let Some((length, message)) = seen.own.split_first_chunk::<2>() else {
        return More;
    };
    let length = usize::from(u16::from_be_bytes(*length));
    if length < SHORTEST {
        return No;
    }
    match looks_like(&message[..message.len().min(length)], message.len() < length, Carrier::Stream) {
        Looks::Query => Yes(Protocol::Dns, "DNS query behind its length", Client),
        Looks::Response => Yes(Protocol::Dns, "DNS response behind its length", Server),
        Looks::Cut => More,
        Looks::Other => No,
    }
}
