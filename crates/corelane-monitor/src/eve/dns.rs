//! `dns`: a query or a response, in the form that Suricata 8 calls version 3.

use super::{Header, end, is_false, key};
use corelane_net::protocol::dns::{Data, Message, Record};
use serde::Serialize;

#[derive(Serialize)]
struct Fields<'a> {
    version: u8,
    r#type: &'static str,
    tx_id: u64,
    id: u16,
    flags: String,
    #[serde(skip_serializing_if = "is_false")]
    qr: bool,
    #[serde(skip_serializing_if = "is_false")]
    aa: bool,
    #[serde(skip_serializing_if = "is_false")]
    tc: bool,
    #[serde(skip_serializing_if = "is_false")]
    rd: bool,
    #[serde(skip_serializing_if = "is_false")]
    ra: bool,
    #[serde(skip_serializing_if = "is_false")]
    z: bool,
    opcode: u8,
    rcode: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queries: Vec<Query<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<Answer<'a>>,
}

#[derive(Serialize)]
struct Query<'a> {
    rrname: &'a str,
    rrtype: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    rrname: &'a str,
    rrtype: String,
    ttl: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rdata: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    soa: Option<Soa<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    srv: Option<Srv<'a>>,
}

#[derive(Serialize)]
struct Soa<'a> {
    mname: &'a str,
    rname: &'a str,
    serial: u32,
}

#[derive(Serialize)]
struct Srv<'a> {
    priority: u16,
    weight: u16,
    port: u16,
    name: &'a str,
}

/// Bytes of text that the answers of an event come to at most. Names in answers are pointers of two bytes, so that a
/// message may make a hundred times its size of text.
const ANSWERS: usize = 16 << 10;

impl Answer<'_> {
    /// Bytes of JSON, or a few more.
    fn text_len(&self) -> usize {
        // Keys, numbers, and all else that is short.
        const FRAME: usize = 128;
        let soa = self.soa.as_ref().map_or(0, |soa| escaped_len(soa.mname) + escaped_len(soa.rname));
        let srv = self.srv.as_ref().map_or(0, |srv| escaped_len(srv.name));
        FRAME + escaped_len(self.rrname) + self.rdata.as_deref().map_or(0, escaped_len) + soa + srv
    }
}

/// Bytes of a text in JSON.
fn escaped_len(text: &str) -> usize {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}

/// Writes the event.
pub(crate) fn write(line: &mut Vec<u8>, header: &Header<'_>, message: &Message) {
    let has = |flag: u16| message.flags & flag != 0;
    let fields = Fields {
        version: 3,
        r#type: if message.is_response() { "response" } else { "request" },
        tx_id: message.transaction,
        id: message.id,
        flags: format!("{:x}", message.flags),
        qr: has(0x8000),
        aa: has(0x0400),
        tc: has(0x0200),
        rd: has(0x0100),
        ra: has(0x0080),
        z: has(0x0040),
        opcode: message.opcode(),
        rcode: message.rcode_name(),
        queries: (message.questions.iter())
            .map(|question| Query { rrname: &question.name, rrtype: question.kind_name() })
            .collect(),
        answers: (message.answers.iter().map(answer))
            .scan(0, |text, answer| {
                *text += answer.text_len();
                (*text <= ANSWERS).then_some(answer)
            })
            .collect(),
    };
    header.begin(line, "dns");
    key(line, "dns", &fields);
    end(line);
}

fn answer(record: &Record) -> Answer<'_> {
    let mut answer =
        Answer { rrname: &record.name, rrtype: record.kind_name(), ttl: record.ttl, rdata: None, soa: None, srv: None };
    match &record.data {
        Data::A(address) => answer.rdata = Some(address.to_string()),
        Data::Aaaa(address) => answer.rdata = Some(address.to_string()),
        Data::Name(name) | Data::Mx { exchange: name, .. } | Data::Txt(name) => answer.rdata = Some(name.to_string()),
        Data::Srv { priority, weight, port, target } => {
            answer.srv = Some(Srv { priority: *priority, weight: *weight, port: *port, name: target });
        }
        Data::Soa { server, mailbox, serial } => {
            answer.soa = Some(Soa { mname: server, rname: mailbox, serial: *serial });
        }
        _ => {}
    }
    answer
}
