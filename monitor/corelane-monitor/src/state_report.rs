//! The messages from a SubAnalyzer to the MainAnalyzer while packets flow.

use crate::continuous::UDP_FAILS_NS;
use crate::probe::Probe;
use crate::twins::Lag;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most reports that a stage sends together.
pub(crate) const TOGETHER: usize = 64;

/// The way in which an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An RST ended it. Of a UDP probe: it was judged before its time, as its room was needed.
    Rejected,
    /// It had no answer in time.
    Unanswered,
}

/// What became of an attempt or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Failed(Failure),
    /// The same of an attempt that was told as answered.
    Refuted(Failure),
    /// The same of one whose key was answered before: it makes no scan, but counts in one.
    Known(Failure),
    Answered,
    /// It has failed, and is [polled](crate::polls) from now on.
    Polled,
}

impl Verdict {
    fn marks(self) -> u32 {
        match self {
            Verdict::Failed(Failure::Rejected) => REJECTED,
            Verdict::Failed(Failure::Unanswered) => 0,
            Verdict::Refuted(failure) => REFUTED | Verdict::Failed(failure).marks(),
            Verdict::Known(failure) => KNOWN | Verdict::Failed(failure).marks(),
            Verdict::Answered => ANSWERED,
            Verdict::Polled => POLLED,
        }
    }

    /// The failure, if it is one.
    pub(crate) fn failure(self) -> Option<Failure> {
        match self {
            Verdict::Failed(failure) | Verdict::Refuted(failure) | Verdict::Known(failure) => Some(failure),
            Verdict::Answered | Verdict::Polled => None,
        }
    }
}

/// The content of a state report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// An attempt or, if that is named, a probe has failed.
    Failed(Option<Probe>),
    /// An attempt or, if that is named, a probe was answered.
    Answered(Option<Probe>),
    /// An attempt or, if that is named, a probe that has failed is tried again and again at equal distances: it makes
    /// no scan of its port.
    Polled(Option<Probe>),
    /// The traffic of a source since its last report.
    Sent {
        /// Bytes that it sent.
        bytes: u64,
        /// Connections that it began.
        connections: u16,
    },
}

/// One failed attempt or probe: source, destination, port and time. Or a probe that was answered, or the traffic of a
/// source since its last report, where [that is counted](crate::Counting).
///
/// A key (source, destination, port) fails at most once, and once for each kind of probe; where failures are
/// [forgotten](crate::Continuous), at most once in that time. Its time tells the step that it belongs to, and it is
/// reported before that step ends.
///
/// It has 44 bytes: source and destination in four words each, time in two, and port, failure, family, probe and the
/// time since the SYN in one.
/// For traffic, bytes take the place of the time and connections that of the port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateReport([u32; 11]);

const REJECTED: u32 = 1 << 16;
const V6: u32 = 1 << 17;
/// The shift of the probe's number; 0 is a SYN.
const PROBE: u32 = 18;
/// The same bits for a report of traffic; no probe has this number.
const SENT: u32 = 15 << PROBE;
const ANSWERED: u32 = 1 << 22;
const AGAIN: u32 = 1 << 31;
const REFUTED: u32 = 1 << 23;
/// It failed, and its key was answered before.
const KNOWN: u32 = ANSWERED | REFUTED;
/// It is polled from now on.
const POLLED: u32 = ANSWERED | REJECTED;
/// The shift of the time since the SYN.
const LAG: u32 = 24;
const LAGS: u32 = (Lag::UNKNOWN.0 as u32) << LAG;

/// A key that failed or was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tried<A> {
    pub(crate) source: A,
    pub(crate) destination: A,
    pub(crate) port: u16,
    /// `None` is a SYN.
    pub(crate) probe: Option<Probe>,
}

fn words(address: u128) -> [u32; 4] {
    std::array::from_fn(|word| (address >> (32 * word)) as u32)
}

impl StateReport {
    fn new(tried: Tried<u128>, time_ns: u64, marks: u32) -> Self {
        let Tried { source, destination, port, probe } = tried;
        let ([a, b, c, d], [e, f, g, h]) = (words(source), words(destination));
        let last = u32::from(port) | probe.map_or(0, Probe::number) << PROBE | marks;
        StateReport([a, b, c, d, e, f, g, h, time_ns as u32, (time_ns >> 32) as u32, last])
    }

    pub(crate) fn v4(tried: Tried<u32>, time_ns: u64, verdict: Verdict) -> Self {
        let Tried { source, destination, port, probe } = tried;
        let tried = Tried { source: source.into(), destination: destination.into(), port, probe };
        StateReport::new(tried, time_ns, verdict.marks())
    }

    pub(crate) fn v6(tried: Tried<u128>, time_ns: u64, verdict: Verdict) -> Self {
        StateReport::new(tried, time_ns, V6 | verdict.marks())
    }

    /// A report of a source's traffic, with its address as 128 bits.
    pub(crate) fn sent(source: u128, is_v6: bool, bytes: u64, connections: u16) -> Self {
        let family = if is_v6 { V6 } else { 0 };
        let tried = Tried { source, destination: 0, port: connections, probe: None };
        StateReport::new(tried, bytes, family | SENT)
    }

    /// The same, so long after its SYN. Only where that [counts](crate::twins): a SYN of IPv6 that failed, or of IPv4
    /// that was answered.
    pub(crate) fn after(mut self, lag: Lag) -> Self {
        if self.has_lag() {
            self.0[10] |= u32::from(lag.0) << LAG;
        }
        self
    }

    /// Whether it has the time since the SYN.
    pub(crate) fn has_lag(&self) -> bool {
        self.content() == if self.is_v6() { Content::Failed(None) } else { Content::Answered(None) }
    }

    /// The time since the SYN, if it [has](Self::has_lag) that.
    pub(crate) fn lag(&self) -> Lag {
        Lag((self.0[10] >> LAG) as u8 & Lag::UNKNOWN.0)
    }

    /// The same, of a key that may have been reported before: others of its partition were forgotten too early.
    pub(crate) fn again(mut self, is_again: bool) -> Self {
        self.0[10] |= if is_again { AGAIN } else { 0 };
        self
    }

    /// Whether it may be of a key that was reported before.
    pub(crate) fn is_again(&self) -> bool {
        self.0[10] & AGAIN != 0
    }

    /// The same with this time. Its SYN stays where it was.
    pub(crate) fn at(self, time_ns: u64) -> Self {
        let lag = self.lag().moved(self.time_ns(), time_ns);
        let StateReport([a, b, c, d, e, f, g, h, _, _, last]) = self;
        let last = if self.has_lag() { last & !LAGS } else { last };
        StateReport([a, b, c, d, e, f, g, h, time_ns as u32, (time_ns >> 32) as u32, last]).after(lag)
    }

    /// The same with this time, if its own is later.
    pub(crate) fn not_after(self, time_ns: u64) -> Self {
        if self.time_ns() > time_ns { self.at(time_ns) } else { self }
    }

    /// The content.
    #[inline(always)]
    pub fn content(&self) -> Content {
        match (self.0[10], self.probe()) {
            (marks, _) if marks & SENT == SENT => Content::Sent { bytes: self.time_ns(), connections: self.port() },
            (marks, probe) if marks & (KNOWN | POLLED) == POLLED => Content::Polled(probe),
            (marks, probe) if marks & KNOWN == ANSWERED => Content::Answered(probe),
            (_, probe) => Content::Failed(probe),
        }
    }

    pub(crate) fn is_v6(&self) -> bool {
        self.0[10] & V6 != 0
    }

    pub(crate) fn source_v4(&self) -> u32 {
        self.0[0]
    }

    pub(crate) fn source_v6(&self) -> u128 {
        self.address(0)
    }

    /// The address whose words begin here.
    fn address(&self, first: usize) -> u128 {
        (0..4).map(|word| u128::from(self.0[first + word]) << (32 * word)).sum()
    }

    fn ip(&self, address: u128) -> IpAddr {
        if self.is_v6() { Ipv6Addr::from_bits(address).into() } else { Ipv4Addr::from_bits(address as u32).into() }
    }

    /// The source that tried, or sent.
    pub fn source(&self) -> IpAddr {
        self.ip(self.address(0))
    }

    /// The destination that was tried, if one was.
    pub fn destination(&self) -> IpAddr {
        self.ip(self.address(4))
    }

    /// The destination port that was tried, if one was.
    pub fn port(&self) -> u16 {
        self.0[10] as u16
    }

    /// The time at which the attempt or probe failed or was known to be answered, in nanoseconds since the epoch, if
    /// one did.
    pub fn time_ns(&self) -> u64 {
        u64::from(self.0[8]) | u64::from(self.0[9]) << 32
    }

    /// Whether it counts long after it was sent: a datagram that was judged in its time.
    pub(crate) fn is_sent_before(&self) -> bool {
        self.probe().is_some_and(Probe::waits) && self.failure() != Failure::Rejected
    }

    /// The time of a failure that a scan is told with: of a datagram when it was sent, as far as that is known, of all
    /// others when they failed.
    pub(crate) fn sent_ns(&self) -> u64 {
        self.time_ns().saturating_sub(if self.is_sent_before() { UDP_FAILS_NS } else { 0 })
    }

    /// The way in which it failed, if it did.
    pub fn failure(&self) -> Failure {
        if self.0[10] & REJECTED != 0 { Failure::Rejected } else { Failure::Unanswered }
    }

    /// Whether the answer to this attempt, which was told, is void.
    pub(crate) fn is_refuted(&self) -> bool {
        self.0[10] & KNOWN == REFUTED
    }

    /// Whether the key of this attempt was answered before: it makes no scan, but counts in one.
    pub(crate) fn is_known(&self) -> bool {
        self.0[10] & KNOWN == KNOWN
    }

    /// The kind of probe that tried the port; `None` is a SYN.
    pub fn probe(&self) -> Option<Probe> {
        Probe::of_number(self.0[10] >> PROBE & 15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back() {
        const UNANSWERED: Verdict = Verdict::Failed(Failure::Unanswered);
        let tried = Tried { source: 0xfffe_fdfc, destination: 0x0102_0304, port: 65535, probe: None };
        let v4 = StateReport::v4(tried, u64::MAX - 1, Verdict::Failed(Failure::Rejected));
        assert_eq!(v4.source(), "255.254.253.252".parse::<IpAddr>().unwrap());
        assert_eq!(v4.destination(), "1.2.3.4".parse::<IpAddr>().unwrap());
        assert_eq!((v4.port(), v4.time_ns(), v4.failure()), (65535, u64::MAX - 1, Failure::Rejected));
        assert_eq!((v4.probe(), v4.content(), v4.is_v6()), (None, Content::Failed(None), false));
        for probe in Probe::ALL {
            let tried = Tried { probe: Some(probe), ..tried };
            let v4 = StateReport::v4(tried, u64::MAX, UNANSWERED);
            assert_eq!(
                (v4.port(), v4.failure(), v4.content()),
                (65535, Failure::Unanswered, Content::Failed(Some(probe)))
            );
            assert_eq!(StateReport::v4(tried, 0, Verdict::Answered).content(), Content::Answered(Some(probe)));
            assert_eq!(StateReport::v4(tried, 0, Verdict::Polled).content(), Content::Polled(Some(probe)));
        }
        let tried = Tried { source: u128::MAX - 2, destination: 3 << 100, port: 1, probe: Some(Probe::Udp) };
        let v6 = StateReport::v6(tried, 1 << 40, UNANSWERED);
        assert_eq!(v6.source(), IpAddr::from(Ipv6Addr::from_bits(u128::MAX - 2)));
        assert_eq!(v6.destination(), IpAddr::from(Ipv6Addr::from_bits(3 << 100)));
        assert_eq!((v6.port(), v6.time_ns(), v6.failure()), (1, 1 << 40, Failure::Unanswered));
        assert_eq!((v6.is_v6(), v6.content()), (true, Content::Failed(Some(Probe::Udp))));
        for (source, is_v6) in [(0xfffe_fdfc, false), (u128::MAX - 2, true)] {
            let sent = StateReport::sent(source, is_v6, u64::MAX - 1, 65_534);
            assert_eq!(sent.content(), Content::Sent { bytes: u64::MAX - 1, connections: 65_534 });
            assert_eq!((sent.source_v6(), sent.is_v6()), (source, is_v6));
        }
        assert_eq!(size_of::<StateReport>(), 44);
        // The time of the SYN stays.
        let after = |lag| StateReport::v6(Tried { probe: None, ..tried }, 9 << 32, UNANSWERED).after(Lag(lag));
        for (lag, ticks, expected) in
            [(96, 0, 96), (96, -96, 0), (96, -97, 0), (96, 30, 126), (96, 31, 127), (127, -9, 127)]
        {
            let moved = after(lag).at((9_u64 << 32).wrapping_add_signed(31_250_000 * ticks));
            assert_eq!((moved.lag(), moved.content()), (Lag(expected), Content::Failed(None)), "{lag} {ticks}");
        }
    }
}
