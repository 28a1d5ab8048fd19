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
}

impl Probe {
    /// Every kind.
    pub const ALL: [Probe; 4] = [Probe::Fin, Probe::Null, Probe::Xmas, Probe::Udp];

    /// The kind with this number, from 1 on.
    pub(crate) fn of_number(number: u32) -> Option<Probe> {
        Probe::ALL.get((number as usize).wrapping_sub(1)).copied()
    }

    /// The number of the kind, 1 to 4; 0 stands for a SYN.
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
        assert_eq!((Probe::of_number(0), Probe::of_number(5)), (None, None));
    }
}
