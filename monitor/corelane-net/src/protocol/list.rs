//! The list of protocols: their names, what reads them, the events that come of it, and the order of the rules that
//! identify them. All else that goes over the protocols is made of it.

use super::identify::{Identified, Says, Seen, datagram, stream, stun};
use super::parser::{Parser, Start};
use super::{Carrier, dns, http, quic, ssh, starttls, tls};
use crate::conversation::Side;
use std::fmt;

/// A protocol is a line: its name in lower case, as Suricata's `app_proto` has it where Suricata knows the protocol,
/// and its parser, if it is read. Their order is that of reports.
macro_rules! protocols {
    ($($(#[$doc:meta])* $protocol:ident $name:literal $(read by $parser:ty)?,)*) => {
        /// A protocol that is identified by content.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Protocol {
            $($(#[$doc])* $protocol,)*
        }

        impl Protocol {
            /// All protocols, in their order.
            pub const ALL: &'static [Protocol] = &[$(Protocol::$protocol),*];

            /// Its name in lower case, as Suricata's `app_proto` has it where Suricata knows the protocol.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$protocol => $name,)*
                }
            }

            /// What its parser says of itself, if it is read.
            pub(super) const fn read(self) -> Option<Read> {
                match self {
                    $($(Self::$protocol => Some(Read::of::<$parser>()),)?)*
                    _ => None,
                }
            }
        }

        /// The parser of a conversation.
        #[derive(Debug)]
        pub(super) enum Reader {
            $($($protocol(Box<$parser>),)?)*
        }

        impl Reader {
            /// A parser for a protocol, if it is read.
            pub(super) fn new(protocol: Protocol, start: Start) -> Option<Self> {
                match protocol {
                    $($(Protocol::$protocol => Some(Self::$protocol(Box::new(<$parser>::new(protocol, start)))),)?)*
                    _ => None,
                }
            }

            pub(super) fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) -> Next {
                match self {
                    $($(Self::$protocol(parser) => {
                        let tunnel = <$parser>::data(parser, side, time_ns, bytes, out);
                        tunnel.map_or_else(|| Next::of(&**parser), Next::Tunnel)
                    })?)*
                }
            }

            pub(super) fn gap(&mut self, side: Side, time_ns: u64, missing: u64, out: &mut Vec<Event>) -> Next {
                match self {
                    $($(Self::$protocol(parser) => {
                        <$parser>::gap(parser, side, time_ns, missing, out);
                        Next::of(&**parser)
                    })?)*
                }
            }

            pub(super) fn end(&mut self, side: Side, time_ns: u64, out: &mut Vec<Event>) -> Next {
                match self {
                    $($(Self::$protocol(parser) => {
                        <$parser>::end(parser, side, time_ns, out);
                        Next::of(&**parser)
                    })?)*
                }
            }

            pub(super) fn take_rest(&mut self, side: Side) -> Vec<u8> {
                match self {
                    $($(Self::$protocol(parser) => <$parser>::take_rest(parser, side),)?)*
                }
            }

            pub(super) fn exchanges(&self) -> u64 {
                match self {
                    $($(Self::$protocol(parser) => <$parser>::exchanges(parser),)?)*
                }
            }

            pub(super) fn wants(&self, side: Side) -> bool {
                match self {
                    $($(Self::$protocol(parser) => <$parser>::wants(parser, side),)?)*
                }
            }

            /// The bytes of the parser, on the heap.
            pub(super) fn heap_bytes(&self) -> usize {
                match self {
                    $($(Self::$protocol(parser) => size_of::<$parser>() + <$parser>::heap_bytes(parser),)?)*
                }
            }

            /// The most of them.
            pub(super) fn most(&self) -> usize {
                match self {
                    $($(Self::$protocol(_) => size_of::<$parser>() + <$parser>::MOST,)?)*
                }
            }
        }
    };
}

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
    /// What both sides of an SSH connection say of themselves.
    Ssh(Box<ssh::Handshake>),
}

/// The rules over streams in their order; a rule counts when all before it have said no. One that answers `More` holds
/// back all behind it.
pub(super) const STREAM_RULES: &[fn(Seen<'_>) -> Says] = &[
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
    stream::http2_settings,
    stun::message_over_tcp,
    dns::message_over_tcp,
];

/// The rules over single datagrams in their order; the first yes is the verdict.
pub(super) const DATAGRAM_RULES: &[fn(&[u8]) -> Says] = &[
    datagram::dhcp,
    quic::packet,
    stun::message,
    datagram::bittorrent_table,
    datagram::netbios_name,
    dns::message,
    datagram::bittorrent_transport,
    datagram::ntp,
    datagram::ntp_control,
    datagram::ntp_private,
    datagram::wireguard,
];

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What comes behind bytes, a gap or an end.
#[derive(Debug)]
pub(super) enum Next {
    /// More for this parser.
    More,
    /// Another protocol, behind so many of the bytes.
    Tunnel(usize),
    /// Nothing of interest, of either side.
    Over,
}

impl Next {
    fn of(parser: &impl Parser) -> Self {
        if parser.is_over() { Self::Over } else { Self::More }
    }
}

/// What a parser says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) carriers: &'static [Carrier],
    pub(super) most: usize,
    pub(super) holds: &'static str,
    pub(super) example: fn(Protocol) -> Vec<(Side, Vec<u8>)>,
}

impl Read {
    const fn of<P: Parser>() -> Self {
        Self { carriers: P::CARRIERS, most: P::MOST, holds: P::HOLDS, example: P::example }
    }
}
