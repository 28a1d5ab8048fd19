//! `dns`: a query or a response, in the form that Suricata 8 calls version 3.

use super::Header;
use super::json::{self, Object};
use corelane_net::protocol::dns::{Data, Message, Record};

/// Bytes of text that the answers of an event come to at most. Names in answers are pointers of two bytes, so that a
/// message may make a hundred times its size of text.
const ANSWERS: usize = 16 << 10;

/// Bytes of a record's JSON, or a few more.
fn text_len(record: &Record) -> usize {
    // Keys, numbers, and all else that is short, addresses among them.
    const FRAME: usize = 128;
    let data = match &record.data {
        Data::A(address) => {
            3 + address.octets().map(|octet| 1 + usize::from(octet > 9) + usize::from(octet > 99)).iter().sum::<usize>()
        }
        Data::Aaaa(address) => address.to_string().len(),
        Data::Name(name) | Data::Mx { exchange: name, .. } | Data::Txt(name) => escaped_len(name),
        Data::Srv { target, .. } => escaped_len(target),
        Data::Soa { server, mailbox, .. } => escaped_len(server) + escaped_len(mailbox),
        _ => 0,
    };
    FRAME + escaped_len(&record.name) + data
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
    header.line(line, "dns", |event| {
        event.object("dns", |dns| {
            dns.number("version", 3_u8);
            dns.text("type", if message.is_response() { "response" } else { "request" });
            dns.number("tx_id", message.transaction);
            dns.number("id", message.id);
            dns.display("flags", format_args!("{:x}", message.flags));
            let flags = [("qr", 0x8000), ("aa", 0x0400), ("tc", 0x0200), ("rd", 0x0100), ("ra", 0x0080), ("z", 0x0040)];
            flags.into_iter().for_each(|(name, flag)| dns.flag(name, message.flags & flag != 0));
            dns.number("opcode", message.opcode());
            dns.text("rcode", &message.rcode_name());
            dns.some_list("queries", &message.questions, |out, question| {
                json::object(out, |query| {
                    query.text("rrname", &question.name);
                    query.text("rrtype", &question.kind_name());
                });
            });
            let mut text = 0;
            let answers = message.answers.iter().take_while(|record| {
                text += text_len(record);
                text <= ANSWERS
            });
            dns.some_list("answers", answers, |out, record| json::object(out, |answer| write_answer(answer, record)));
        });
    });
}

fn write_answer(answer: &mut Object<'_>, record: &Record) {
    answer.text("rrname", &record.name);
    answer.text("rrtype", &record.kind_name());
    answer.number("ttl", record.ttl);
    match &record.data {
        Data::A(address) => answer.address("rdata", (*address).into()),
        Data::Aaaa(address) => answer.address("rdata", (*address).into()),
        Data::Name(name) | Data::Mx { exchange: name, .. } | Data::Txt(name) => answer.text("rdata", name),
        Data::Srv { priority, weight, port, target } => answer.object("srv", |srv| {
            srv.number("priority", *priority);
            srv.number("weight", *weight);
            srv.number("port", *port);
            srv.text("name", target);
        }),
        Data::Soa { server, mailbox, serial } => answer.object("soa", |soa| {
            soa.text("mname", server);
            soa.text("rname", mailbox);
            soa.number("serial", *serial);
        }),
        _ => {}
    }
}
