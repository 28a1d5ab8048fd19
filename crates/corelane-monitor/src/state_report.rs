//! The messages from a SubAnalyzer to the MainAnalyzer while packets flow.

use crate::probe::Probe;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The way in which an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An RST ended it.
    Rejected,
    /// It had no answer in time.
    Unanswered,
}

/// The content of a state report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// An attempt or, if that is named, a probe has failed.
    Failed(Option<Probe>),
    /// The traffic of a source since its last report.
    Sent {
        /// Bytes that it sent.
        bytes: u64,
        /// Connections that it began.
        connections: u16,
    },
}

/// One failed attempt or probe, as far as the global analysis needs it: the source, the port and the time of failure.
/// The destination is left out: it is always new to the MainAnalyzer, as a key (source, destination, port) fails at
/// most once, and once for each kind of probe.
///
/// Or the traffic of a source since its last report, where [that is counted](crate::Counting).
///
/// It has 28 bytes: source in four words, time in two, and port, failure, family and probe in one. For traffic, bytes
/// take the place of the time and connections that of the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateReport([u32; 7]);

const REJECTED: u32 = 1 << 16;
const V6: u32 = 1 << 17;
/// The shift of the probe's number; 0 is a SYN.
const PROBE: u32 = 18;
/// The same bits for a report of traffic; no probe has this number.
const SENT: u32 = 7 << PROBE;

impl StateReport {
    fn new(source: u128, family: u32, port: u16, time_ns: u64, failure: Failure, probe: Option<Probe>) -> Self {
        let probe = probe.map_or(0, Probe::number) << PROBE;
        let failure = if failure == Failure::Rejected { REJECTED } else { 0 };
        StateReport([
            source as u32,
            (source >> 32) as u32,
            (source >> 64) as u32,
            (source >> 96) as u32,
            time_ns as u32,
            (time_ns >> 32) as u32,
            u32::from(port) | failure | family | probe,
        ])
    }

    pub(crate) fn v4(source: u32, port: u16, time_ns: u64, failure: Failure, probe: Option<Probe>) -> Self {
        StateReport::new(u128::from(source), 0, port, time_ns, failure, probe)
    }

    pub(crate) fn v6(source: u128, port: u16, time_ns: u64, failure: Failure, probe: Option<Probe>) -> Self {
        StateReport::new(source, V6, port, time_ns, failure, probe)
    }

    /// A report of a source's traffic, with its address as 128 bits.
    pub(crate) fn sent(source: u128, is_v6: bool, bytes: u64, connections: u16) -> Self {
        let family = if is_v6 { V6 } else { 0 };
        let mut report = StateReport::new(source, family, connections, bytes, Failure::Unanswered, None);
        report.0[6] |= SENT;
        report
    }

    /// The content.
    #[inline(always)]
    pub fn told(&self) -> Told {
        if self.0[6] & SENT == SENT {
            Told::Sent { bytes: self.time_ns(), connections: self.port() }
        } else {
            Told::Failed(self.probe())
        }
    }

    pub(crate) fn is_v6(&self) -> bool {
        self.0[6] & V6 != 0
    }

    pub(crate) fn source_v4(&self) -> u32 {
        self.0[0]
    }

    pub(crate) fn source_v6(&self) -> u128 {
        (0..4).map(|word| u128::from(self.0[word]) << (32 * word)).sum()
    }

    /// The source that tried, or sent.
    pub fn source(&self) -> IpAddr {
        if self.is_v6() {
            Ipv6Addr::from_bits(self.source_v6()).into()
        } else {
            Ipv4Addr::from_bits(self.source_v4()).into()
        }
    }

    /// The destination port that was tried, if one was.
    pub fn port(&self) -> u16 {
        self.0[6] as u16
    }

    /// The time at which the attempt or probe failed, in nanoseconds since the epoch, if one did.
    pub fn time_ns(&self) -> u64 {
        u64::from(self.0[4]) | u64::from(self.0[5]) << 32
    }

    /// The way in which it failed, if it did.
    pub fn failure(&self) -> Failure {
        if self.0[6] & REJECTED != 0 { Failure::Rejected } else { Failure::Unanswered }
    }

    /// The kind of probe that tried the port; `None` is a SYN.
    pub fn probe(&self) -> Option<Probe> {
        Probe::of_number(self.0[6] >> PROBE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back() {
        let v4 = StateReport::v4(0xfffe_fdfc, 65535, u64::MAX - 1, Failure::Rejected, None);
        assert_eq!(v4.source(), "255.254.253.252".parse::<IpAddr>().unwrap());
        assert_eq!((v4.port(), v4.time_ns(), v4.failure()), (65535, u64::MAX - 1, Failure::Rejected));
        assert_eq!(v4.probe(), None);
        for probe in Probe::ALL {
            let v4 = StateReport::v4(1, 65535, u64::MAX, Failure::Unanswered, Some(probe));
            assert_eq!(
                (v4.port(), v4.failure(), v4.probe(), v4.is_v6()),
                (65535, Failure::Unanswered, Some(probe), false)
            );
        }
        let v6 = StateReport::v6(u128::MAX - 2, 1, 1 << 40, Failure::Unanswered, Some(Probe::Udp));
        assert_eq!(v6.source(), IpAddr::from(Ipv6Addr::from_bits(u128::MAX - 2)));
        assert_eq!((v6.port(), v6.time_ns(), v6.failure()), (1, 1 << 40, Failure::Unanswered));
        assert_eq!((v6.is_v6(), v6.probe()), (true, Some(Probe::Udp)));
        assert_eq!((v4.told(), v6.told()), (Told::Failed(None), Told::Failed(Some(Probe::Udp))));
        for (source, is_v6) in [(0xfffe_fdfc, false), (u128::MAX - 2, true)] {
            let sent = StateReport::sent(source, is_v6, u64::MAX - 1, 65_534);
            assert_eq!(sent.told(), Told::Sent { bytes: u64::MAX - 1, connections: 65_534 });
            assert_eq!((sent.source_v6(), sent.is_v6()), (source, is_v6));
        }
        assert_eq!(size_of::<StateReport>(), 28);
    }
}
