//! The events of a session.

use super::identify::Identified;
use super::{dns, http, ssh, tls};

/// A fact that a conversation shows. The largest are the most frequent too, so they need no memory of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "the largest is the most frequent")]
pub enum Event {
    /// The protocol is identified. Behind a proxy's CONNECT, an upgrade, or STARTTLS, there may be a
    /// second one.
    Identified(Identified),
    /// A request and its response.
    Http(http::Exchange),
    /// A TLS client's first message, over TCP or in QUIC.
    ClientHello(Box<tls::ClientHello>),
    /// The server's answer to a ClientHello.
    ServerHello(Box<tls::ServerHello>),
    /// A DNS query or response.
    Dns(dns::Message),
    /// What both sides of an SSH connection say of themselves.
    Ssh(Box<ssh::Handshake>),
}

impl Event {
    /// The bytes that it holds outside of itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Identified(_) => 0,
            Self::Http(exchange) => exchange.heap_bytes(),
            Self::ClientHello(hello) => size_of::<tls::ClientHello>() + hello.heap_bytes(),
            Self::ServerHello(hello) => size_of::<tls::ServerHello>() + hello.heap_bytes(),
            Self::Dns(message) => message.heap_bytes(),
            Self::Ssh(handshake) => size_of::<ssh::Handshake>() + handshake.heap_bytes(),
        }
    }
}
