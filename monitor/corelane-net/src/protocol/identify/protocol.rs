//! The protocols, and the facts about a conversation that is identified.

use std::fmt;

use crate::conversation::Side;

/// A protocol that is identified by content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/1.0 and 1.1.
    Http1,
    /// HTTP/2 without TLS.
    Http2,
    /// TLS 1.0 to 1.3, and SSL 3.
    Tls,
    /// DNS, multicast DNS among it.
    Dns,
    /// SSH.
    Ssh,
    /// SMTP.
    Smtp,
    /// FTP, its control connection.
    Ftp,
    /// POP3.
    Pop3,
    /// IMAP.
    Imap,
    /// SMB, all versions.
    Smb,
    /// QUIC.
    Quic,
    /// BitTorrent: peers over TCP and µTP, and the distributed hash table.
    BitTorrent,
    /// NTP.
    Ntp,
    /// DHCP and BOOTP.
    Dhcp,
    /// NetBIOS names, whose messages are nearly those of DNS.
    NetbiosNames,
    /// Telnet.
    Telnet,
    /// STUN and TURN, with the magic cookie.
    Stun,
    /// WireGuard.
    Wireguard,
}

impl Protocol {
    /// Its name in lower case, as Suricata's `app_proto` has it where Suricata knows the protocol.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http",
            Self::Http2 => "http2",
            Self::Tls => "tls",
            Self::Dns => "dns",
            Self::Ssh => "ssh",
            Self::Smtp => "smtp",
            Self::Ftp => "ftp",
            Self::Pop3 => "pop3",
            Self::Imap => "imap",
            Self::Smb => "smb",
            Self::Quic => "quic",
            Self::BitTorrent => "bittorrent",
            Self::Ntp => "ntp",
            Self::Dhcp => "dhcp",
            Self::NetbiosNames => "netbios-ns",
            Self::Telnet => "telnet",
            Self::Stun => "stun",
            Self::Wireguard => "wireguard",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The identified protocol, with its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identified {
    /// The protocol.
    pub protocol: Protocol,
    /// The evidence: a phrase such as `TLS record, ClientHello`.
    pub evidence: &'static str,
    /// The side whose bytes are the evidence.
    pub side: Side,
    /// The client's side, where the evidence tells it.
    pub client: Option<Side>,
    /// The time of the bytes that decided, in nanoseconds since the epoch.
    pub time_ns: u64,
}

impl fmt::Display for Identified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.protocol, self.evidence)
    }
}
