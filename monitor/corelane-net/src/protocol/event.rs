//! The events of a session.

use super::identify::Identified;
use super::{dns, http, ssh, tls};

/// A fact that a conversation shows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The protocol is identified. Behind a proxy's CONNECT, an upgrade, or STARTTLS, there may be a
    /// second one.
    Identified(Identified),
    /// A request and its response.
    Http(Box<http::Exchange>),
    /// A TLS client's first message, over TCP or in QUIC.
    ClientHello(Box<tls::ClientHello>),
    /// The server's answer to a ClientHello.
    ServerHello(Box<tls::ServerHello>),
    /// A DNS query or response.
    Dns(dns::Message),
    /// What both sides of an SSH connection say of themselves.
    Ssh(Box<ssh::Handshake>),
}
