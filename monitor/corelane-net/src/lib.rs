//! From bytes to facts, without threads: capture files, packet headers, conversations, protocols, synthetic traffic.
//!
//! - [`capture`] reads pcap and pcapng from files, pipes and memory, compressed or not, and writes them. It has packet
//!   filters. On Linux it captures from an interface too.
//! - [`decode`] turns one captured frame into addresses, ports and TCP flags, and finds its payload.
//! - [`defrag`] reassembles IP fragments.
//! - [`conversation`] joins packets to conversations, and hands their bytes to a protocol in order.
//! - [`protocol`] identifies the protocol of a conversation, and reads HTTP/1, TLS, QUIC, SSH and DNS.
//! - [`synth`] makes traffic with known scans, the same for the same seed.
//!
//! This crate starts no thread and uses no queue: the crate `corelane-monitor` does both.

pub mod capture;
pub mod conversation;
pub mod decode;
pub mod defrag;
pub mod protocol;
pub mod synth;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
