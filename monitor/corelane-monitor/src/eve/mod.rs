//! Events in Suricata's EVE format: one JSON document a line, with its names and nesting, so that what reads those
//! reads these.
//!
//! A file for each type of event; `docs/eve.md` has every field and what differs. To add a protocol's event: a file
//! here with a `Message`, and a line in the list below.

pub(crate) mod alert;
pub(crate) mod dns;
pub(crate) mod flow;
pub(crate) mod http;
mod json;
pub(crate) mod quic;
mod seen;
mod sensor;
pub(crate) mod ssh;
mod stats;
pub(crate) mod tls;

pub use alert::write_scan;
pub use seen::Seen;
pub use sensor::write_sensor;
pub use stats::write_stats;

use corelane_net::conversation::Side;
use corelane_net::decode::{Tunnel, Vlans};
use corelane_net::protocol::Event;
use json::{Object, key};
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::BitOr;
use std::str::FromStr;

/// A type of event is a line: its flag, its name as `event_type` has it, and the message whose event it is, if it is
/// one of a conversation. Their order is that of lists.
macro_rules! types {
    ($($(#[$doc:meta])* $flag:ident $name:literal $(of $event:ident($message:ty))?,)*) => {
        /// The places of the types.
        #[allow(clippy::upper_case_acronyms)]
        enum Place {
            $($flag,)*
        }

        impl Events {
            $($(#[$doc])* pub const $flag: Events = Events(1 << Place::$flag as u16);)*
            /// All types.
            pub const ALL: Events = Events($(Events::$flag.0)|*);
            /// The types with their names, as `event_type` has them.
            pub const NAMES: [(&'static str, Events); [$($name),*].len()] = [$(($name, Events::$flag)),*];
        }

        /// The message of an event that is written by itself. Hellos are written in pairs.
        pub(crate) fn message(event: &Event) -> Option<&dyn Message> {
            match event {
                Event::Identified(_) | Event::ClientHello(_) | Event::ServerHello(_) => None,
                $($(Event::$event(message) => {
                    let message: &$message = message;
                    Some(message)
                })?)*
            }
        }
    };
}

types! {
    /// Conversations that are over.
    FLOW "flow",
    /// HTTP exchanges.
    HTTP "http" of Http(corelane_net::protocol::http::Exchange),
    /// TLS handshakes.
    TLS "tls",
    /// DNS messages.
    DNS "dns" of Dns(corelane_net::protocol::dns::Message),
    /// QUIC handshakes.
    QUIC "quic",
    /// SSH handshakes.
    SSH "ssh" of Ssh(corelane_net::protocol::ssh::Handshake),
    /// Scans.
    ALERT "alert",
    /// Statistics at the end.
    STATS "stats",
}

/// A message of a conversation, which has an event.
pub(crate) trait Message {
    /// The type of its event.
    fn event_type(&self) -> Events;

    /// The side that the event is from: the client's, or the sender's.
    fn from(&self) -> Side;

    /// The client's side, if the message shows it.
    fn client(&self) -> Option<Side> {
        None
    }

    fn time_ns(&self) -> u64;

    /// Whether it is a transaction of the conversation, as answers are none.
    fn is_transaction(&self) -> bool {
        true
    }

    /// Counts what is in it; the event itself is counted for every message.
    fn count(&self, _seen: &mut Seen, _is_tcp: bool) {}

    /// Writes the event.
    fn write(&self, line: &mut Vec<u8>, header: &Header<'_>);
}

/// A set of types of events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Events(u16);

impl Events {
    /// No events.
    pub const NONE: Events = Events(0);
    /// What is said in conversations.
    pub(crate) const MESSAGES: Events = Events(Events::ALL.0 & !(Events::FLOW.0 | Events::ALERT.0 | Events::STATS.0));

    /// Whether one of those is among these.
    pub const fn has(self, others: Events) -> bool {
        self.0 & others.0 != 0
    }

    /// The place of one type in the list.
    pub(crate) const fn place(self) -> usize {
        self.0.trailing_zeros() as usize
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
    pub(crate) vlans: Vlans,
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
            object.some_list(key!("vlan"), self.vlans.numbers(), |out, number| json::number(out, number.into()));
            object.address(key!("src_ip"), self.source.ip());
            object.number(key!("src_port"), self.source.port());
            object.address(key!("dest_ip"), self.destination.ip());
            object.number(key!("dest_port"), self.destination.port());
            object.text(key!("proto"), if self.is_tcp { "TCP" } else { "UDP" });
            object.number(key!("ip_v"), if self.source.is_ipv4() { 4_u8 } else { 6 });
            object.text(key!("community_id"), self.community_id);
            if let Some(tunnel) = &self.tunnel {
                object.object(key!("tunnel"), |fields| EveTunnel::new(tunnel).write(fields));
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
            vlans: Vlans::NONE,
            community_id: "1:x=",
            tunnel: None,
        }
    }
}

/// The fields of a tunnel.
#[derive(Serialize)]
struct EveTunnel {
    src_ip: IpAddr,
    src_port: u16,
    dest_ip: IpAddr,
    dest_port: u16,
    proto: &'static str,
    depth: u8,
}

impl EveTunnel {
    fn new(tunnel: &Tunnel) -> Self {
        let address = |address: u128| IpAddr::V6(address.into()).to_canonical();
        EveTunnel {
            src_ip: address(tunnel.source),
            src_port: tunnel.source_port,
            dest_ip: address(tunnel.destination),
            dest_port: tunnel.destination_port,
            proto: match tunnel.protocol {
                4 => "IPv4",
                41 => "IPv6",
                47 => "GRE",
                97 => "EtherIP",
                115 => "L2TP",
                _ => "UDP",
            },
            depth: tunnel.depth,
        }
    }

    fn write(&self, fields: &mut Object<'_>) {
        fields.address(key!("src_ip"), self.src_ip);
        fields.number(key!("src_port"), self.src_port);
        fields.address(key!("dest_ip"), self.dest_ip);
        fields.number(key!("dest_port"), self.dest_port);
        fields.text(key!("proto"), self.proto);
        fields.number(key!("depth"), self.depth);
    }
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
