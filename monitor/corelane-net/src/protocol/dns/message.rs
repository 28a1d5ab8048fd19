//! The content of a DNS message.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::kind;
use crate::conversation::Side;
use crate::protocol::Text;

/// One DNS message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The time of its last byte, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The side that sent it.
    pub side: Side,
    /// The number of the transaction within its conversation, from 0. A query and its response have the same number.
    pub transaction: u64,
    /// The time of a response's query, in nanoseconds since the epoch, if the query was seen.
    pub asked_ns: Option<u64>,
    /// The id in the header.
    pub id: u16,
    /// The second word of the header: response, opcode, flags, response code.
    pub flags: u16,
    /// The numbers of questions, answers, authorities and additional records in the header.
    pub counts: [u16; 4],
    /// The questions.
    pub questions: Vec<Question>,
    /// The answers.
    pub answers: Vec<Record>,
    /// Whether all questions and answers of the header's numbers were there and could be read.
    pub is_whole: bool,
}

impl Message {
    /// Whether it is a response.
    pub fn is_response(&self) -> bool {
        self.flags & 0x8000 != 0
    }

    /// The kind of message by number: query, notify, update and so on.
    pub fn opcode(&self) -> u8 {
        (self.flags >> 11 & 0xf) as u8
    }

    /// The response code of the header, without EDNS's further bits.
    pub fn rcode(&self) -> u8 {
        (self.flags & 0xf) as u8
    }

    /// The response code as it is written, such as `NXDOMAIN`.
    pub fn rcode_name(&self) -> Cow<'static, str> {
        let code = self.rcode();
        kind::rcode_name(code).map_or_else(|| code.to_string().into(), Cow::from)
    }
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The name, without the dot at its end; dots and other odd bytes inside a label are escaped.
    pub name: Text,
    /// Its type.
    pub kind: u16,
    /// Its class.
    pub class: u16,
}

impl Question {
    /// The type as it is written, such as `AAAA` or `TYPE65280`.
    pub fn kind_name(&self) -> Cow<'static, str> {
        kind_name(self.kind)
    }
}

/// One resource record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The name that the record belongs to.
    pub name: Text,
    /// Its type.
    pub kind: u16,
    /// Its class.
    pub class: u16,
    /// The time for which it may be kept, in seconds.
    pub ttl: u32,
    /// Its data.
    pub data: Data,
}

impl Record {
    /// The type as it is written, such as `AAAA` or `TYPE65280`.
    pub fn kind_name(&self) -> Cow<'static, str> {
        kind_name(self.kind)
    }
}

/// The data of a resource record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Data {
    /// An IPv4 address.
    A(Ipv4Addr),
    /// An IPv6 address.
    Aaaa(Ipv6Addr),
    /// A name, for CNAME, DNAME, NS and PTR.
    Name(Text),
    /// A mail exchange.
    Mx {
        /// Lower is preferred.
        preference: u16,
        /// The host.
        exchange: Text,
    },
    /// A service.
    Srv {
        /// Lower is preferred.
        priority: u16,
        /// The share among those of one priority.
        weight: u16,
        /// The port.
        port: u16,
        /// The host.
        target: Text,
    },
    /// The start of a zone.
    Soa {
        /// The first server.
        server: Text,
        /// The mailbox, as a name.
        mailbox: Text,
        /// The version of the zone.
        serial: u32,
    },
    /// Text, with its parts joined.
    Txt(Text),
    /// Data of another type, or not readable as its type; the number of its bytes.
    Other(u16),
}

impl Data {
    /// Bytes of its texts.
    pub(super) fn text_len(&self) -> usize {
        match self {
            Data::Name(text) | Data::Mx { exchange: text, .. } | Data::Srv { target: text, .. } | Data::Txt(text) => {
                text.len()
            }
            Data::Soa { server, mailbox, .. } => server.len() + mailbox.len(),
            Data::A(_) | Data::Aaaa(_) | Data::Other(_) => 0,
        }
    }
}

fn kind_name(kind: u16) -> Cow<'static, str> {
    kind::name(kind).map_or_else(|| format!("TYPE{kind}").into(), Cow::from)
}
