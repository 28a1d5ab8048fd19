//! The kinds of probes other than a SYN.

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
}

impl Probe {
    /// Every kind.
    pub const ALL: [Probe; 7] =
        [Probe::Fin, Probe::Null, Probe::Xmas, Probe::Udp, Probe::SynFin, Probe::Odd, Probe::Ack];

    /// Whether it counts for a port of many hosts too, and not for the ports of a host alone.
    pub(crate) fn counts_hosts(self) -> bool {
        self != Probe::Ack
    }

    /// The kind with this number, from 1 on.
    pub(crate) fn of_number(number: u32) -> Option<Probe> {
        Probe::ALL.get((number as usize).wrapping_sub(1)).copied()
    }

    /// The number of the kind, 1 to 7; 0 stands for a SYN, and 15 for none of these.
    pub(crate) const fn number(self) -> u32 {
        self as u32 + 1
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
        assert_eq!((Probe::of_number(0), Probe::of_number(8)), (None, None));
        assert_eq!(Probe::of_number(15), None, "stands for something else in keys");
    }
}
