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
        answers: message.answers.iter().map(answer).collect(),
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
