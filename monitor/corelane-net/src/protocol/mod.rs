//! Protocols: identifies the protocol of a conversation by content, and reads the clear text of HTTP/1, TLS, DNS, QUIC
//! and SSH.
//!
//! A [`Session`] takes the bytes of one conversation in order, as an [`Application`](crate::conversation::Application)
//! gets them, and makes [`Event`]s. First it identifies the protocol ([`identify`]). If there is a parser for it
//! ([`http`], [`tls`], [`dns`], [`quic`], [`ssh`]), the parser gets the bytes so far and all that follow. SMTP, FTP,
//! POP3 and IMAP are watched until they change to TLS; PostgreSQL, MySQL, LDAP, XMPP, RDP and SOCKS until they change
//! to it or to something else. Of all other protocols only the name is of interest, and no more bytes are wanted.
//!
//! ICE puts STUN in front of QUIC and DTLS. So a datagram of a protocol that is read replaces a verdict for one that is
//! not, as long as datagrams are judged.
//!
//! # Guarantees
//!
//! - The events do not depend on the pieces in which the bytes arrive, only on the bytes, the gaps, and the order of
//!   the two sides.
//! - No bytes make it panic, and its memory is bounded: each parser states its bounds, and the session's `heap_bytes`
//!   counts the bytes.
//! - A conversation may have been picked up in the middle, so a response may come first.
//!
//! # Crates that it uses
//!
//! `sha1` and `base64` make the Community ID, `sha2` the JA4 fingerprint, `md-5` the HASSH and the JA3. `aes`,
//! `aes-gcm`,
//! `hkdf` and `sha2` decrypt QUIC's Initial packets. `memchr` finds ends of lines. All other work is small enough to be
//! read here.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | this file | the protocols, their events, and the order of the rules: what is new begins here |
//! | `parser.rs` | the trait of a parser, and what is made of the list |
//! | `session.rs` | a session and its states |
//! | `identify/` | the evidence, and the rules for what is not read |
//! | `http/`, `tls/`, `dns/`, `quic/`, `ssh/` | a parser each, its rules, and its results as types |
//! | `dtls.rs` | TLS over datagrams |
//! | `starttls.rs` | dialogues of lines that change to TLS |
//! | `preface/` | those of other messages, and what proxies put in front |
//! | `wire.rs`, `text.rs` | fields of binary protocols; text for printing |
//! | `community_id.rs` | a flow's name in every tool |
//! | `fuzz.rs` | targets that take any bytes, for tests and for `fuzz/` |

mod community_id;
pub mod dns;
mod dtls;
#[doc(hidden)]
pub mod fuzz;
pub mod http;
pub mod identify;
mod parser;
mod preface;
pub mod quic;
mod session;
pub mod ssh;
mod starttls;
mod text;
pub mod tls;
mod wire;

pub use community_id::{CommunityId, community_id, community_id_seeded};
pub use identify::Identified;
pub use session::Session;
pub use text::{Detail, Text};

use crate::conversation::{Conversation, Side};
use identify::{Says, Seen, datagram, stream, stun};
use parser::{Next, Parser, Read, Start, protocols};
use std::fmt;

protocols! {
    /// HTTP/1.0 and 1.1.
    Http1 "http" read by http::Http,
    /// HTTP/2 without TLS.
    Http2 "http2",
    /// TLS 1.0 to 1.3, and SSL 3.
    Tls "tls" read by tls::Tls,
    /// DNS, multicast DNS among it.
    Dns "dns" read by dns::Dns,
    /// SSH.
    Ssh "ssh" read by ssh::Ssh,
    /// SMTP.
    Smtp "smtp" read by starttls::Starttls,
    /// FTP, its control connection.
    Ftp "ftp" read by starttls::Starttls,
    /// POP3.
    Pop3 "pop3" read by starttls::Starttls,
    /// IMAP.
    Imap "imap" read by starttls::Starttls,
    /// SMB, all versions.
    Smb "smb",
    /// QUIC.
    Quic "quic" read by quic::Quic,
    /// BitTorrent: peers over TCP and µTP, and the distributed hash table.
    BitTorrent "bittorrent",
    /// NTP.
    Ntp "ntp",
    /// DHCP and BOOTP.
    Dhcp "dhcp",
    /// NetBIOS names, whose messages are nearly those of DNS.
    NetbiosNames "netbios-ns",
    /// Telnet.
    Telnet "telnet",
    /// STUN and TURN, with the magic cookie.
    Stun "stun",
    /// WireGuard.
    Wireguard "wireguard",
    /// PostgreSQL.
    Pgsql "pgsql" read by preface::Preface,
    /// MySQL and MariaDB.
    Mysql "mysql" read by preface::Preface,
    /// LDAP.
    Ldap "ldap" read by preface::Preface,
    /// XMPP, which was called Jabber.
    Jabber "jabber" read by preface::Preface,
    /// RDP.
    Rdp "rdp" read by preface::Preface,
    /// SOCKS 4 and 5.
    Socks "socks" read by preface::Preface,
    /// DTLS 1.0 to 1.3.
    Dtls "dtls" read by dtls::Dtls,
}

/// A fact that a conversation shows. A `match` over all variants is how a program learns of a new protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// What both sides of an SSH connection state about themselves.
    Ssh(Box<ssh::Handshake>),
}

/// The rules over streams in their order; a rule counts when all before it have returned no. One that returns `More`
/// holds back all behind it.
const STREAM_RULES: &[fn(Seen<'_>) -> Says] = &[
    stream::http2_preface,
    http::request,
    http::status,
    tls::record,
    tls::ssl2_hello,
    ssh::banner,
    stream::bittorrent_handshake,
    stream::smb_header,
    stream::text_greeting,
    stream::telnet_options,
    preface::opening,
    preface::proxy_header,
    stream::http2_settings,
    stun::message_over_tcp,
    dns::message_over_tcp,
];

/// The rules over single datagrams in their order; the first yes is the verdict.
const DATAGRAM_RULES: &[fn(&[u8]) -> Says] = &[
    datagram::dhcp,
    quic::packet,
    stun::message,
    dtls::datagram,
    datagram::bittorrent_table,
    datagram::netbios_name,
    dns::message,
    datagram::bittorrent_transport,
    datagram::ntp,
    datagram::ntp_control,
    datagram::ntp_private,
    datagram::wireguard,
];

/// The way in which a conversation's bytes arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// TCP: a stream of each side.
    Stream,
    /// UDP: each call of `data` brings a datagram.
    Datagrams,
}

impl Carrier {
    /// The way in which this conversation's bytes arrive.
    pub fn of(conversation: &Conversation) -> Self {
        if conversation.is_tcp() { Carrier::Stream } else { Carrier::Datagrams }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
