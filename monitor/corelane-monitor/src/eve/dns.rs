//! `dns`: a query or a response, in the form that Suricata 8 calls version 3.

use super::Seen;
use super::json::{self, Object, key};
use super::{Events, Header};
use corelane_net::conversation::Side;
use corelane_net::protocol::dns::{Data, Message, Record};

/// Bytes of JSON that the questions of an event come to at most, and its answers. Names may be pointers of two bytes:
/// a message may make a hundred times its size of text.
const TEXT: usize = 16 << 10;

impl super::Message for Message {
    fn event_type(&self) -> Events {
        Events::DNS
    }

    fn from(&self) -> Side {
        self.side
    }

    fn time_ns(&self) -> u64 {
        self.time_ns
    }

    fn is_transaction(&self) -> bool {
        !self.is_response()
    }

    fn count(&self, seen: &mut Seen, is_tcp: bool) {
        let counts = if self.is_response() { &mut seen.dns_responses } else { &mut seen.dns_queries };
        counts[usize::from(is_tcp)] += 1;
    }

    fn write(&self, line: &mut Vec<u8>, header: &Header<'_>) {
        write(line, header, self);
    }
}

fn write(line: &mut Vec<u8>, header: &Header<'_>, message: &Message) {
    header.line(line, "dns", |event| {
        event.object(key!("dns"), |dns| {
            dns.number(key!("version"), 3_u8);
            dns.text(key!("type"), if message.is_response() { "response" } else { "request" });
            dns.number(key!("tx_id"), message.transaction);
            dns.number(key!("id"), message.id);
            dns.hex(key!("flags"), message.flags, 1);
            let flags = [
                (key!("qr"), 0x8000),
                (key!("aa"), 0x0400),
                (key!("tc"), 0x0200),
                (key!("rd"), 0x0100),
                (key!("ra"), 0x0080),
                (key!("z"), 0x0040),
            ];
            flags.into_iter().for_each(|(name, flag)| dns.flag(name, message.flags & flag != 0));
            dns.number(key!("opcode"), message.opcode());
            dns.text(key!("rcode"), &message.rcode_name());
            let written = dns.list_within(key!("queries"), TEXT, &message.questions, |out, question| {
                json::object(out, |query| {
                    query.text(key!("rrname"), &question.name);
                    query.text(key!("rrtype"), &question.kind_name());
                });
            });
            // Few have as many.
            let left = usize::from(message.counts[0]).saturating_sub(written);
            dns.some_number(key!("queries_omitted"), (left > 0).then_some(left as u64));
            dns.list_within(key!("answers"), TEXT, &message.answers, |out, record| {
                json::object(out, |answer| write_answer(answer, record));
            });
        });
    });
}

fn write_answer(answer: &mut Object<'_>, record: &Record) {
    answer.text(key!("rrname"), &record.name);
    answer.text(key!("rrtype"), &record.kind_name());
    answer.number(key!("ttl"), record.ttl);
    match &record.data {
        Data::A(address) => answer.address(key!("rdata"), (*address).into()),
        Data::Aaaa(address) => answer.address(key!("rdata"), (*address).into()),
        Data::Name(name) | Data::Mx { exchange: name, .. } | Data::Txt(name) => answer.text(key!("rdata"), name),
        Data::Srv { priority, weight, port, target } => answer.object(key!("srv"), |srv| {
            srv.number(key!("priority"), *priority);
            srv.number(key!("weight"), *weight);
            srv.number(key!("port"), *port);
            srv.text(key!("name"), target);
        }),
        Data::Soa { server, mailbox, serial } => answer.object(key!("soa"), |soa| {
            soa.text(key!("mname"), server);
            soa.text(key!("rname"), mailbox);
            soa.number(key!("serial"), *serial);
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelane_net::protocol::dns::Question;

    #[test]
    fn questions_that_are_not_written_are_counted() {
        let queries = |names: &[&str], count: u16| {
            let question = |name: &&str| Question { name: (**name).into(), kind: 12, class: 1 };
            let message = Message {
                time_ns: 0,
                side: Side::Originator,
                transaction: 0,
                asked_ns: None,
                id: 0,
                flags: 0,
                counts: [count, 0, 0, 0],
                questions: names.iter().map(question).collect(),
                answers: vec![],
                is_whole: true,
            };
            let mut line = Vec::new();
            write(&mut line, &Header::example(), &message);
            let event: serde_json::Value = serde_json::from_slice(&line).unwrap();
            let written = event["dns"]["queries"].as_array().map_or(0, Vec::len);
            (written, event["dns"].get("queries_omitted").and_then(|count| count.as_u64()))
        };
        assert_eq!(queries(&["a", "b"], 2), (2, None));
        assert_eq!(queries(&["a", "b"], 200), (2, Some(198)));
        let long = "x".repeat(1000);
        assert_eq!(queries(&[&*long; 20], 20), (15, Some(5)));
    }
}
