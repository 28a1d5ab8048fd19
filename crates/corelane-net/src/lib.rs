//! Bytes to facts, no threads: capture files, packet headers, synthetic traffic.
//!
//! - [`capture`] reads pcap and pcapng from files, pipes and memory, compressed or not, and writes pcap.
//! - [`decode`] turns one captured frame into addresses, ports and TCP flags, and finds its payload.
//! - [`defrag`] puts IP fragments together.
//! - [`conversation`] puts packets together to conversations, and hands their bytes to a protocol in order.
//! - [`protocol`] finds out what a conversation speaks, and reads HTTP/1, TLS and DNS.
//! - [`synth`] makes traffic with known truth, deterministic by seed.
//!
//! Nothing here starts a thread or knows a queue: the crate `corelane-monitor` does both.

pub mod capture;
pub mod conversation;
pub mod decode;
pub mod defrag;
pub mod protocol;
pub mod synth;
