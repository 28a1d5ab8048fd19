//! What a session gives.

use super::identify::Identified;
use super::{dns, http, tls};

/// Something that a conversation said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The protocol is known now. Behind a proxy's CONNECT, or an upgrade, there may be a second one.
    Identified(Identified),
    /// A request and its response.
    Http(Box<http::Exchange>),
    /// TLS begins.
    ClientHello(Box<tls::ClientHello>),
    /// The server's answer to it.
    ServerHello(Box<tls::ServerHello>),
    /// A DNS query or response.
    Dns(Box<dns::Message>),
}

impl Event {
    /// The bytes it holds outside of itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Identified(_) => 0,
            Self::Http(exchange) => size_of::<http::Exchange>() + exchange.heap_bytes(),
            Self::ClientHello(hello) => size_of::<tls::ClientHello>() + hello.heap_bytes(),
            Self::ServerHello(hello) => size_of::<tls::ServerHello>() + hello.heap_bytes(),
            Self::Dns(message) => size_of::<dns::Message>() + message.heap_bytes(),
        }
    }
}
