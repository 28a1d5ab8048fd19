//! Events in Suricata's EVE format: one JSON document a line, with its names and nesting, so that what reads those
//! reads these.
//!
//! A file for each type of event; `docs/eve.md` has every field and what differs. To add a protocol's event: a file
//! here with its fields, a flag in [`Events`], and the call in `inspect/records.rs`.

pub(crate) mod alert;
pub(crate) mod dns;
pub(crate) mod flow;
pub(crate) mod http;
mod json;
pub(crate) mod quic;
mod sensor;
pub(crate) mod ssh;
mod stats;
pub(crate) mod tls;

pub use alert::write_scan;
pub use sensor::write_sensor;
pub use stats::write_stats;

use corelane_net::decode::Tunnel;
use json::{Object, key};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::BitOr;
use std::str::FromStr;

/// A set of types of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Events(u8);

impl Events {
    /// No events.
    pub const NONE: Events = Events(0);
    /// Conversations that are over.
    pub const FLOW: Events = Events(1);
    /// HTTP exchanges.
    pub const HTTP: Events = Events(2);
    /// TLS handshakes.
    pub const TLS: Events = Events(4);
    /// DNS messages.
    pub const DNS: Events = Events(8);
    /// Scans.
    pub const ALERT: Events = Events(16);
    /// Statistics at the end.
    pub const STATS: Events = Events(32);
    /// QUIC handshakes.
    pub const QUIC: Events = Events(64);
    /// SSH handshakes.
    pub const SSH: Events = Events(128);
    /// What is said in conversations.
    pub(crate) const MESSAGES: Events = Events(2 | 4 | 8 | 64 | 128);
    /// All types.
    pub const ALL: Events = Events(255);

    /// The types with their names, as `event_type` has them.
    pub const NAMES: [(&'static str, Events); 8] = [
        ("flow", Events::FLOW),
        ("http", Events::HTTP),
        ("tls", Events::TLS),
        ("dns", Events::DNS),
        ("quic", Events::QUIC),
        ("ssh", Events::SSH),
        ("alert", Events::ALERT),
        ("stats", Events::STATS),
    ];

    /// Whether one of those is among these.
    pub const fn has(self, others: Events) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether there are events among these that only the second analysis finds.
    pub const fn need_inspection(self) -> bool {
        self.has(Events(!Events::ALERT.0))
    }
}

impl BitOr for Events {
    type Output = Events;

    fn bitor(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Events::NAMES.iter().filter(|(_, event)| self.has(*event)).map(|(name, _)| name)).finish()
    }
}

impl FromStr for Events {
    type Err = String;

    /// One type by its name.
    fn from_str(name: &str) -> Result<Self, String> {
        let found = Events::NAMES.into_iter().find(|(known, _)| *known == name);
        let names = || Events::NAMES.map(|(known, _)| known).join(", ");
        found.map(|(_, event)| event).ok_or_else(|| format!("no event is called '{name}'; choose {}", names()))
    }
}

/// What the events of conversations begin with.
pub(crate) struct Header<'a> {
    pub(crate) time_ns: u64,
    pub(crate) flow_id: u64,
    /// The number of the packet.
    pub(crate) number: Option<u64>,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) is_tcp: bool,
    pub(crate) community_id: &'a str,
    /// The tunnel that the conversation came through, with its source on the event's source's side.
    pub(crate) tunnel: Option<Tunnel>,
}

impl Header<'_> {
    /// Writes a line: what all events have in common, and what `write` adds.
    fn line(&self, line: &mut Vec<u8>, event_type: &str, write: impl FnOnce(&mut Object<'_>)) {
        json::object(line, |object| {
            object.time(key!("timestamp"), self.time_ns);
            object.number(key!("flow_id"), self.flow_id);
            object.some_number(key!("pcap_cnt"), self.number);
            object.text(key!("event_type"), event_type);
            object.address(key!("src_ip"), self.source.ip());
            object.number(key!("src_port"), self.source.port());
            object.address(key!("dest_ip"), self.destination.ip());
            object.number(key!("dest_port"), self.destination.port());
            object.text(key!("proto"), if self.is_tcp { "TCP" } else { "UDP" });
            object.number(key!("ip_v"), if self.source.is_ipv4() { 4_u8 } else { 6 });
            object.text(key!("community_id"), self.community_id);
            if let Some(tunnel) = &self.tunnel {
                object.object(key!("tunnel"), |fields| write_tunnel(fields, tunnel));
            }
            write(object);
        });
        line.push(b'\n');
    }
}

#[cfg(test)]
impl Header<'_> {
    /// That of the events in tests.
    fn example() -> Self {
        Header {
            time_ns: 1_700_000_000_123_456_789,
            flow_id: 7,
            number: Some(9),
            source: "10.0.0.1:1234".parse().unwrap(),
            destination: "10.0.0.2:443".parse().unwrap(),
            is_tcp: true,
            community_id: "1:x=",
            tunnel: None,
        }
    }
}

fn write_tunnel(fields: &mut Object<'_>, tunnel: &Tunnel) {
    let address = |address: u128| IpAddr::V6(address.into()).to_canonical();
    fields.address(key!("src_ip"), address(tunnel.source));
    fields.number(key!("src_port"), tunnel.source_port);
    fields.address(key!("dest_ip"), address(tunnel.destination));
    fields.number(key!("dest_port"), tunnel.destination_port);
    let protocol = match tunnel.protocol {
        4 => "IPv4",
        41 => "IPv6",
        47 => "GRE",
        _ => "UDP",
    };
    fields.text(key!("proto"), protocol);
    fields.number(key!("depth"), tunnel.depth);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_names() {
        for (name, event) in Events::NAMES {
            assert_eq!(name.parse(), Ok(event));
            assert!(Events::ALL.has(event) && !Events::NONE.has(event));
        }
        assert!("htp".parse::<Events>().is_err());
        assert!(!Events::ALERT.need_inspection() && (Events::ALERT | Events::STATS).need_inspection());
        assert_eq!(format!("{:?}", Events::FLOW | Events::DNS), r#"{"flow", "dns"}"#);
    }
}
