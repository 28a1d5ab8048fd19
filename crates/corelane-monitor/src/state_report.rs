//! What travels from a SubAnalyzer to the MainAnalyzer while packets flow.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// By an RST.
    Rejected,
    /// By silence.
    Unanswered,
}

/// One failed attempt, as far as it matters to the global analysis: who tried which port, and when it failed. Which
/// destination it was is known to be new to the MainAnalyzer, as a key (source, destination, port) fails at most once.
///
/// 28 bytes: source in four words, time in two, and port, kind and family in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateReport([u32; 7]);

const REJECTED: u32 = 1 << 16;
const V6: u32 = 1 << 17;

impl StateReport {
    fn new(source: u128, family: u32, port: u16, time_ns: u64, failure: Failure) -> Self {
        let kind = if failure == Failure::Rejected { REJECTED } else { 0 };
        StateReport([
            source as u32,
            (source >> 32) as u32,
            (source >> 64) as u32,
            (source >> 96) as u32,
            time_ns as u32,
            (time_ns >> 32) as u32,
            u32::from(port) | kind | family,
        ])
    }

    pub(crate) fn v4(source: u32, port: u16, time_ns: u64, failure: Failure) -> Self {
        StateReport::new(u128::from(source), 0, port, time_ns, failure)
    }

    pub(crate) fn v6(source: u128, port: u16, time_ns: u64, failure: Failure) -> Self {
        StateReport::new(source, V6, port, time_ns, failure)
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

    /// Who tried.
    pub fn source(&self) -> IpAddr {
        if self.is_v6() {
            Ipv6Addr::from_bits(self.source_v6()).into()
        } else {
            Ipv4Addr::from_bits(self.source_v4()).into()
        }
    }

    /// The destination port that was tried.
    pub fn port(&self) -> u16 {
        self.0[6] as u16
    }

    /// When the attempt failed.
    pub fn time_ns(&self) -> u64 {
        u64::from(self.0[4]) | u64::from(self.0[5]) << 32
    }

    /// How it failed.
    pub fn failure(&self) -> Failure {
        if self.0[6] & REJECTED != 0 { Failure::Rejected } else { Failure::Unanswered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back() {
        let v4 = StateReport::v4(0xfffe_fdfc, 65535, u64::MAX - 1, Failure::Rejected);
        assert_eq!(v4.source(), "255.254.253.252".parse::<IpAddr>().unwrap());
        assert_eq!((v4.port(), v4.time_ns(), v4.failure()), (65535, u64::MAX - 1, Failure::Rejected));
        let v6 = StateReport::v6(u128::MAX - 2, 1, 1 << 40, Failure::Unanswered);
        assert_eq!(v6.source(), IpAddr::from(Ipv6Addr::from_bits(u128::MAX - 2)));
        assert_eq!((v6.port(), v6.time_ns(), v6.failure()), (1, 1 << 40, Failure::Unanswered));
        assert_eq!(size_of::<StateReport>(), 28);
    }
}
