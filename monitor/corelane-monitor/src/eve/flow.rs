//! `flow`: a conversation that is over.

use super::Header;
use super::json::{Object, key};
use corelane_net::conversation::{Conversation, Ending, Reason, Side, State};
use corelane_net::decode::flags::{ACK, FIN, RST, SYN};
use corelane_net::protocol::Protocol;

/// What the event says beside the conversation itself.
pub(crate) struct Flow<'a> {
    /// The protocol that was spoken last.
    pub(crate) protocol: Option<Protocol>,
    /// The protocol that was spoken directly before it.
    pub(crate) before: Option<Protocol>,
    /// Whether there was any payload.
    pub(crate) payload: bool,
    pub(crate) transactions: u64,
    pub(crate) ending: &'a Ending,
}

impl<'a> Flow<'a> {
    /// What the event says of a conversation that has brought no payload.
    pub(crate) fn without_payload(ending: &'a Ending) -> Self {
        Self { protocol: None, before: None, payload: false, transactions: 0, ending }
    }
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
            Some(protocol) => event.text(key!("app_proto"), protocol.name()),
            None if flow.payload => event.text(key!("app_proto"), "failed"),
            None => {}
        }
        let before = flow.before.filter(|_| flow.before != flow.protocol);
        event.some_text(key!("app_proto_orig"), before.map(Protocol::name));
        event.object(key!("flow"), |fields| {
            fields.number(key!("pkts_toserver"), conversation.packets(client));
            fields.number(key!("pkts_toclient"), conversation.packets(server));
            fields.number(key!("bytes_toserver"), conversation.bytes(client));
            fields.number(key!("bytes_toclient"), conversation.bytes(server));
            fields.time(key!("start"), first);
            fields.time(key!("end"), last);
            fields.number(key!("age"), last / 1_000_000_000 - first / 1_000_000_000);
            let state = match conversation.state() {
                State::New => "new",
                State::Established => "established",
                State::Closed => "closed",
            };
            fields.text(key!("state"), state);
            let reason = match flow.ending.reason {
                // They stay for stragglers, then their time is over.
                Reason::Finished | Reason::Reset | Reason::TimedOut => "timeout",
                Reason::Replaced => "tcp_reuse",
                Reason::Evicted => "forced",
                Reason::CaptureEnded => "shutdown",
            };
            fields.text(key!("reason"), reason);
            fields.some_number(key!("tx_cnt"), (flow.transactions > 0).then_some(flow.transactions));
        });
        if conversation.is_tcp() {
            event.object(key!("tcp"), |tcp| write_tcp(tcp, conversation, client, flow.ending));
        }
    });
}

fn write_tcp(tcp: &mut Object<'_>, conversation: &Conversation, client: Side, ending: &Ending) {
    let (to_server, to_client) = (conversation.tcp_flags(client), conversation.tcp_flags(client.other()));
    let all = to_server | to_client;
    tcp.hex(key!("tcp_flags"), all, 2);
    tcp.hex(key!("tcp_flags_ts"), to_server, 2);
    tcp.hex(key!("tcp_flags_tc"), to_client, 2);
    let flags = [
        (key!("syn"), SYN),
        (key!("fin"), FIN),
        (key!("rst"), RST),
        (key!("psh"), 0x08),
        (key!("ack"), ACK),
        (key!("urg"), 0x20),
        (key!("ecn"), 0x40),
        (key!("cwr"), 0x80),
    ];
    flags.into_iter().for_each(|(name, flag)| tcp.flag(name, all & flag != 0));
    let state = match conversation.state() {
        State::New if to_client & SYN != 0 => "syn_recv",
        State::New if to_server & SYN != 0 => "syn_sent",
        State::New => "none",
        State::Established => "established",
        State::Closed => "closed",
    };
    tcp.text(key!("state"), state);
    // An attempt that led to nothing, in Zeek's words.
    let attempt = match (to_server, to_client) {
        (SYN, 0) => Some("S0"),
        (SYN, answer) if answer & (SYN | RST) == RST => Some("REJ"),
        _ => None,
    };
    tcp.some_text(key!("conn_state"), attempt);
    tcp.flag(key!("ts_gap"), ending.missed[client.index()] > 0);
    tcp.flag(key!("tc_gap"), ending.missed[client.other().index()] > 0);
}
