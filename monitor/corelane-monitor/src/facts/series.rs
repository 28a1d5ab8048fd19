//! The series of conversations that facts tell apart: by protocol.

use corelane_net::protocol::Protocol;

/// Every protocol, in the order of their places in sets and series.
pub(super) const PROTOCOLS: [Protocol; 18] = [
    Protocol::Http1,
    Protocol::Http2,
    Protocol::Tls,
    Protocol::Dns,
    Protocol::Ssh,
    Protocol::Smtp,
    Protocol::Ftp,
    Protocol::Pop3,
    Protocol::Imap,
    Protocol::Smb,
    Protocol::Quic,
    Protocol::BitTorrent,
    Protocol::Ntp,
    Protocol::Dhcp,
    Protocol::NetbiosNames,
    Protocol::Telnet,
    Protocol::Stun,
    Protocol::Wireguard,
];

/// The names of the series of conversations in a [`Bin`](super::Bin): the protocols, payload of none of them, no
/// payload.
pub const SERIES: [&str; PROTOCOLS.len() + 2] = {
    let mut names = ["unknown"; PROTOCOLS.len() + 2];
    let mut place = 0;
    while place < PROTOCOLS.len() {
        names[place] = PROTOCOLS[place].name();
        place += 1;
    }
    names[PROTOCOLS.len() + 1] = "no payload";
    names
};

/// The place of a protocol among the [series](SERIES).
pub fn series_of(protocol: Protocol) -> usize {
    // Their order is that of the type, and a test says so.
    protocol as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_place() {
        for (place, protocol) in PROTOCOLS.into_iter().enumerate() {
            assert_eq!((series_of(protocol), SERIES[place]), (place, protocol.name()));
        }
        assert_eq!(SERIES[PROTOCOLS.len()..], ["unknown", "no payload"]);
    }
}
