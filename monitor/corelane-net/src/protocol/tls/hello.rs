//! The content of the hellos.

use crate::conversation::Side;
use crate::protocol::Text;

/// The content of a ClientHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// The time of its last byte, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The side that sent it.
    pub client: Side,
    /// The version of QUIC that carried it: 1, 0x6b3343cf for version 2, or that of a draft. None over TCP.
    pub quic: Option<u32>,
    /// The version in its head: 0x0303 for TLS 1.2 and everything newer.
    pub legacy_version: u16,
    /// The versions it offers in an extension, in its order, without GREASE values.
    pub versions: Vec<u16>,
    /// The host it wants to reach (SNI).
    pub server_name: Option<Text>,
    /// The protocols it offers (ALPN), in its order.
    pub protocols: Vec<Text>,
    /// The cipher suites, in its order, with GREASE values.
    pub ciphers: Vec<u16>,
    /// The kinds of its extensions, in its order, with GREASE values.
    pub extensions: Vec<u16>,
    /// The signature algorithms, in its order, with GREASE values.
    pub signatures: Vec<u16>,
    /// The JA4 fingerprint. A hello in the form of SSL 2 has none.
    pub ja4: Option<Text>,
}

/// The content of a ServerHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHello {
    /// The time of its last byte, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The side that sent it.
    pub server: Side,
    /// The version of QUIC that carried it, as of a ClientHello.
    pub quic: Option<u32>,
    /// The version that was chosen: 0x0303 for TLS 1.2, 0x0304 for 1.3.
    pub version: u16,
    /// The cipher suite.
    pub cipher: u16,
    /// The protocol that was chosen, if it is in the clear (TLS 1.3 encrypts it).
    pub protocol: Option<Text>,
    /// Whether it asks for another ClientHello.
    pub is_retry: bool,
}

impl ClientHello {
    /// The bytes it holds outside of itself.
    pub fn heap_bytes(&self) -> usize {
        let numbers = [&self.versions, &self.ciphers, &self.extensions, &self.signatures];
        2 * numbers.iter().map(|numbers| numbers.capacity()).sum::<usize>()
            + self.protocols.capacity() * size_of::<Text>()
            + self.protocols.iter().map(|name| name.heap_bytes()).sum::<usize>()
            + self.server_name.as_ref().map_or(0, |name| name.heap_bytes())
            + self.ja4.as_ref().map_or(0, |ja4| ja4.heap_bytes())
    }
}

/// A version as it is written, such as `TLS 1.2`.
pub fn version_name(version: u16) -> &'static str {
    match version {
        0x0300 => "SSLv3",
        0x0301 => "TLS 1.0",
        0x0302 => "TLS 1.1",
        0x0303 => "TLS 1.2",
        0x0304 => "TLS 1.3",
        _ => "unknown",
    }
}
