//! `flow`: a conversation that is over.

use super::{Header, Time, end, is_false, key};
use corelane_net::conversation::{Conversation, Ending, Reason, Side, State};
use corelane_net::decode::flags::{ACK, FIN, RST, SYN};
use corelane_net::protocol::Protocol;
use serde::Serialize;

/// What the event says beside the conversation itself.
pub(crate) struct Flow<'a> {
    pub(crate) protocol: Option<Protocol>,
    /// Whether there was any payload.
    pub(crate) payload: bool,
    pub(crate) transactions: u64,
    pub(crate) ending: &'a Ending,
}

#[derive(Serialize)]
struct Fields {
    pkts_toserver: u64,
    pkts_toclient: u64,
    bytes_toserver: u64,
    bytes_toclient: u64,
    start: Time,
    end: Time,
    age: u64,
    state: &'static str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_cnt: Option<u64>,
}

#[derive(Serialize)]
struct Tcp {
    tcp_flags: String,
    tcp_flags_ts: String,
    tcp_flags_tc: String,
    #[serde(skip_serializing_if = "is_false")]
    syn: bool,
    #[serde(skip_serializing_if = "is_false")]
    fin: bool,
    #[serde(skip_serializing_if = "is_false")]
    rst: bool,
    #[serde(skip_serializing_if = "is_false")]
    psh: bool,
    #[serde(skip_serializing_if = "is_false")]
    ack: bool,
    #[serde(skip_serializing_if = "is_false")]
    urg: bool,
    #[serde(skip_serializing_if = "is_false")]
    ecn: bool,
    #[serde(skip_serializing_if = "is_false")]
    cwr: bool,
    state: &'static str,
    #[serde(skip_serializing_if = "is_false")]
    ts_gap: bool,
    #[serde(skip_serializing_if = "is_false")]
    tc_gap: bool,
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
    header.begin(line, "flow");
    match flow.protocol {
        Some(protocol) => key(line, "app_proto", &protocol.name()),
        None if flow.payload => key(line, "app_proto", &"failed"),
        None => {}
    }
    let fields = Fields {
        pkts_toserver: conversation.packets(client),
        pkts_toclient: conversation.packets(server),
        bytes_toserver: conversation.bytes(client),
        bytes_toclient: conversation.bytes(server),
        start: Time(first),
        end: Time(last),
        age: last / 1_000_000_000 - first / 1_000_000_000,
        state: match conversation.state() {
            State::New => "new",
            State::Established => "established",
            State::Closed => "closed",
        },
        reason: match flow.ending.reason {
            // They stay for stragglers, then their time is over.
            Reason::Finished | Reason::Reset | Reason::TimedOut => "timeout",
            Reason::Replaced => "tcp_reuse",
            Reason::Evicted => "forced",
            Reason::CaptureEnded => "shutdown",
        },
        tx_cnt: (flow.transactions > 0).then_some(flow.transactions),
    };
    key(line, "flow", &fields);
    if conversation.is_tcp() {
        let (to_server, to_client) = (conversation.tcp_flags(client), conversation.tcp_flags(server));
        let all = to_server | to_client;
        let has = |flag: u8| all & flag != 0;
        let tcp = Tcp {
            tcp_flags: format!("{all:02x}"),
            tcp_flags_ts: format!("{to_server:02x}"),
            tcp_flags_tc: format!("{to_client:02x}"),
            syn: has(SYN),
            fin: has(FIN),
            rst: has(RST),
            psh: has(0x08),
            ack: has(ACK),
            urg: has(0x20),
            ecn: has(0x40),
            cwr: has(0x80),
            state: match conversation.state() {
                State::New => "none",
                State::Established => "established",
                State::Closed => "closed",
            },
            ts_gap: flow.ending.missed[client.index()] > 0,
            tc_gap: flow.ending.missed[server.index()] > 0,
        };
        key(line, "tcp", &tcp);
    }
    end(line);
}
