//! `flow`: a conversation that is over.

use super::Header;
use super::json::Object;
use corelane_net::conversation::{Conversation, Ending, Reason, Side, State};
use corelane_net::decode::flags::{ACK, FIN, RST, SYN};
use corelane_net::protocol::Protocol;

/// What the event says beside the conversation itself.
pub(crate) struct Flow<'a> {
    pub(crate) protocol: Option<Protocol>,
    /// Whether there was any payload.
    pub(crate) payload: bool,
    pub(crate) transactions: u64,
    pub(crate) ending: &'a Ending,
}

/// Writes the event of a conversation whose client is at this side.
pub(crate) fn write(
    line: &mut Vec<u8>,
    header: &Header<'_>,
    conversation: &Conversation,
    client: Side,
    flow: &Flow<'_>,
) {
    let server = client.other();
    let (first, last) = (conversation.first_ns(), conversation.last_ns());
    header.line(line, "flow", |event| {
        match flow.protocol {
            Some(protocol) => event.text("app_proto", protocol.name()),
            None if flow.payload => event.text("app_proto", "failed"),
            None => {}
        }
        event.object("flow", |fields| {
            fields.number("pkts_toserver", conversation.packets(client));
            fields.number("pkts_toclient", conversation.packets(server));
            fields.number("bytes_toserver", conversation.bytes(client));
            fields.number("bytes_toclient", conversation.bytes(server));
            fields.time("start", first);
            fields.time("end", last);
            fields.number("age", last / 1_000_000_000 - first / 1_000_000_000);
            let state = match conversation.state() {
                State::New => "new",
                State::Established => "established",
                State::Closed => "closed",
            };
            fields.text("state", state);
            let reason = match flow.ending.reason {
                // They stay for stragglers, then their time is over.
                Reason::Finished | Reason::Reset | Reason::TimedOut => "timeout",
                Reason::Replaced => "tcp_reuse",
                Reason::Evicted => "forced",
                Reason::CaptureEnded => "shutdown",
            };
            fields.text("reason", reason);
            fields.some_number("tx_cnt", Some(flow.transactions).filter(|&transactions| transactions > 0));
        });
        if conversation.is_tcp() {
            event.object("tcp", |tcp| write_tcp(tcp, conversation, client, flow.ending));
        }
    });
}

fn write_tcp(tcp: &mut Object<'_>, conversation: &Conversation, client: Side, ending: &Ending) {
    let (to_server, to_client) = (conversation.tcp_flags(client), conversation.tcp_flags(client.other()));
    let all = to_server | to_client;
    tcp.hex("tcp_flags", all);
    tcp.hex("tcp_flags_ts", to_server);
    tcp.hex("tcp_flags_tc", to_client);
    let flags = [
        ("syn", SYN),
        ("fin", FIN),
        ("rst", RST),
        ("psh", 0x08),
        ("ack", ACK),
        ("urg", 0x20),
        ("ecn", 0x40),
        ("cwr", 0x80),
    ];
    flags.into_iter().for_each(|(name, flag)| tcp.flag(name, all & flag != 0));
    let state = match conversation.state() {
        State::New => "none",
        State::Established => "established",
        State::Closed => "closed",
    };
    tcp.text("state", state);
    tcp.flag("ts_gap", ending.missed[client.index()] > 0);
    tcp.flag("tc_gap", ending.missed[client.other().index()] > 0);
}
