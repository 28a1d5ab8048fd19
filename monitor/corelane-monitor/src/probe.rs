//! The kinds of probes other than a SYN.

use corelane_net::decode::Asked;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A kind of probe other than a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Probe {
    /// A TCP segment with FIN alone.
    Fin,
    /// A TCP segment without a flag.
    Null,
    /// A TCP segment with FIN, PSH and URG.
    Xmas,
    /// A UDP datagram.
    Udp,
    /// A TCP segment with SYN and FIN, without ACK and RST.
    SynFin,
    /// A TCP segment with other flags that no stack sends: FIN with PSH or URG, PSH, URG, or SYN and RST.
    Odd,
    /// A TCP segment with ACK alone, or with FIN, that begins its flow and is refused.
    Ack,
    /// An ICMP or ICMPv6 packet that hosts answer: echo, timestamp, address mask, information. It has no port.
    Ping,
    /// A question of ARP. It has no port.
    Arp,
    /// A packet of an IP protocol that few hosts speak. The port is the number of the protocol.
    Protocol,
    /// INIT or COOKIE ECHO of SCTP.
    Sctp,
}

impl Probe {
    /// Every kind.
    pub const ALL: [Probe; 11] = [
        Probe::Fin,
        Probe::Null,
        Probe::Xmas,
        Probe::Udp,
        Probe::SynFin,
        Probe::Odd,
        Probe::Ack,
        Probe::Ping,
        Probe::Arp,
        Probe::Protocol,
        Probe::Sctp,
    ];

    /// Whether it counts for a port of many hosts too, and not for the ports of a host alone.
    pub(crate) fn counts_hosts(self) -> bool {
        !matches!(self, Probe::Ack | Probe::Protocol)
    }

    /// Whether it asks for a port of a host, or another number, and not for the host alone: 0 stands in its place.
    pub fn has_port(self) -> bool {
        !matches!(self, Probe::Ping | Probe::Arp)
    }

    /// Whether it may be answered for a while, and fails when it was not.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Probe::Udp | Probe::Ping | Probe::Arp | Probe::Sctp)
    }

    /// So many failures are outweighed by one answer: a group that has no more of them is no scan.
    pub(crate) fn outweighed(self) -> u64 {
        // Most of what is asked whether it is there may be there.
        if self.has_port() { 4 } else { 1 }
    }

    /// The protocol that carries it, as Suricata names it.
    pub fn carrier(self, is_v6: bool) -> &'static str {
        match self {
            Probe::Udp => "UDP",
            Probe::Ping if is_v6 => "IPv6-ICMP",
            Probe::Ping => "ICMP",
            Probe::Arp => "ARP",
            Probe::Protocol => "IP",
            Probe::Sctp => "SCTP",
            Probe::Fin | Probe::Null | Probe::Xmas | Probe::SynFin | Probe::Odd | Probe::Ack => "TCP",
        }
    }

    /// The kind with this number, from 1 on.
    pub(crate) fn of_number(number: u32) -> Option<Probe> {
        Probe::ALL.get((number as usize).wrapping_sub(1)).copied()
    }

    /// The number of the kind, 1 to 11; 0 stands for a SYN, and 15 for none of these.
    pub(crate) const fn number(self) -> u32 {
        self as u32 + 1
    }
}

impl From<Asked> for Probe {
    fn from(asked: Asked) -> Self {
        match asked {
            Asked::Ping => Probe::Ping,
            Asked::Arp => Probe::Arp,
            Asked::Protocol => Probe::Protocol,
            Asked::Sctp => Probe::Sctp,
        }
    }
}

/// Writes the usual name of the kind.
impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Probe::Fin => "FIN",
            Probe::Null => "NULL",
            Probe::Xmas => "Xmas",
            Probe::Udp => "UDP",
            Probe::SynFin => "SYN+FIN",
            Probe::Odd => "odd flags",
            Probe::Ack => "ACK",
            Probe::Ping => "ping",
            Probe::Arp => "ARP",
            Probe::Protocol => "IP protocol",
            Probe::Sctp => "SCTP",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for probe in Probe::ALL {
            assert_eq!(Probe::of_number(probe.number()), Some(probe));
        }
        assert_eq!((Probe::of_number(0), Probe::of_number(12)), (None, None));
        assert_eq!(Probe::of_number(15), None, "stands for something else in keys");
    }
}
