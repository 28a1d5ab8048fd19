//! The configuration of synthetic traffic.

use std::fmt;

use super::frame;

/// The paper's trace held 82 million packets of one hour: this many nanoseconds a packet.
const PAPER_GAP_NS: u64 = 43_902;
/// A smaller capture is stretched to this length, so that attempts have time to run into their deadline …
const STRETCH_NS: u64 = 30_000_000_000;
/// … but the packets come no further apart than this.
const WIDEST_GAP_NS: u64 = 1_000_000;

/// The configuration of synthetic traffic. Equal values give equal bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The number of packets; exactly this many are made.
    pub packets: u64,
    /// The number of hosts, half of them clients and half servers, all over IPv4 and IPv6. Scanners and their targets
    /// are extra.
    pub hosts: u32,
    /// Chooses one of many similar captures.
    pub seed: u64,
    /// The most bytes of a packet that are kept; [`Config::HEADERS_ONLY`] keeps its link, IP and TCP or UDP headers.
    pub snaplen: u32,
    /// Earliest time of the first packet, in nanoseconds since the epoch.
    pub start_ns: u64,
    /// Packets per second. `None` is 82 million an hour; captures of less than 30 seconds at that rate are stretched to
    /// 30 seconds, but not below 1000 packets per second.
    pub packets_per_second: Option<u32>,
    /// The number of vertical scans to plant. Fewer are planted if they would be more than about a quarter of the
    /// packets.
    pub vertical_scans: u32,
    /// The number of horizontal scans to plant, with the same restriction.
    pub horizontal_scans: u32,
    /// The number of scans by other [probes](super::Probe) than SYNs, with the same restriction. The kinds alternate,
    /// and so do vertical and horizontal ones.
    pub probe_scans: u32,
}

impl Config {
    /// The [`snaplen`](Self::snaplen) that keeps all headers and no payload.
    pub const HEADERS_ONLY: u32 = 0;
    /// The smallest other snaplen: Ethernet, IPv6 and TCP without options. Less would hide TCP from a monitor.
    pub const MIN_SNAPLEN: u32 = 74;
    /// The largest snaplen, that of the usual tools.
    pub const MAX_SNAPLEN: u32 = 262_144;
    /// The fewest hosts: a client and a server.
    pub const MIN_HOSTS: u32 = 2;
    /// The most hosts: half of them fill 100.64.0.0/10.
    pub const MAX_HOSTS: u32 = 1 << 23;
    /// The most scans of a kind.
    pub const MAX_SCANS: u32 = 1 << 18;
    /// The lowest rate: fewer packets per second could not answer every handshake in time.
    pub const MIN_RATE: u32 = 1_000;
    /// The highest rate: 100 ns a packet.
    pub const MAX_RATE: u32 = 10_000_000;

    /// The snaplen for the header of a capture file.
    #[must_use]
    pub fn file_snaplen(&self) -> u32 {
        if self.snaplen == Self::HEADERS_ONLY { frame::MAX_HEADERS.next_multiple_of(16) as u32 } else { self.snaplen }
    }

    /// Nanoseconds from packet to packet.
    pub(super) fn gap_ns(&self) -> u64 {
        match self.packets_per_second {
            Some(rate) => 1_000_000_000 / u64::from(rate),
            None => (STRETCH_NS / self.packets.max(1)).clamp(PAPER_GAP_NS, WIDEST_GAP_NS),
        }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if !(Self::MIN_HOSTS..=Self::MAX_HOSTS).contains(&self.hosts) {
            return Err(ConfigError::Hosts(self.hosts));
        }
        if self.snaplen != Self::HEADERS_ONLY && !(Self::MIN_SNAPLEN..=Self::MAX_SNAPLEN).contains(&self.snaplen) {
            return Err(ConfigError::Snaplen(self.snaplen));
        }
        for scans in [self.vertical_scans, self.horizontal_scans, self.probe_scans] {
            if scans > Self::MAX_SCANS {
                return Err(ConfigError::Scans(scans));
            }
        }
        if let Some(rate) = self.packets_per_second
            && !(Self::MIN_RATE..=Self::MAX_RATE).contains(&rate)
        {
            return Err(ConfigError::Rate(rate));
        }
        let end = self.gap_ns().checked_mul(self.packets).and_then(|length| length.checked_add(self.start_ns));
        match end {
            Some(end) if end / 1_000_000_000 <= u64::from(u32::MAX) => Ok(()),
            _ => Err(ConfigError::Time),
        }
    }
}

impl Default for Config {
    /// Two million packets, which are a minute and a half of the paper's network.
    fn default() -> Self {
        Self {
            packets: 2_000_000,
            hosts: 50_000,
            seed: 1,
            snaplen: Self::HEADERS_ONLY,
            start_ns: 1_700_000_000_000_000_000,
            packets_per_second: None,
            vertical_scans: 6,
            horizontal_scans: 6,
            probe_scans: 0,
        }
    }
}

/// The reason why a [`Config`] was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// The number of hosts is out of range.
    Hosts(u32),
    /// The snaplen is out of range.
    Snaplen(u32),
    /// Too many scans of a kind.
    Scans(u32),
    /// Too few or too many packets per second.
    Rate(u32),
    /// The capture would end after the last time that a pcap file can hold.
    Time,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts(hosts) => {
                write!(f, "the hosts must be {} to {}, not {hosts}", Config::MIN_HOSTS, Config::MAX_HOSTS)
            }
            Self::Snaplen(snaplen) => write!(
                f,
                "the snaplen must be {} to {}, or {} for the headers only, not {snaplen}",
                Config::MIN_SNAPLEN,
                Config::MAX_SNAPLEN,
                Config::HEADERS_ONLY,
            ),
            Self::Scans(scans) => write!(f, "the scans of a kind must be at most {}, not {scans}", Config::MAX_SCANS),
            Self::Rate(rate) => {
                write!(f, "the rate must be {} to {} packets a second, not {rate}", Config::MIN_RATE, Config::MAX_RATE)
            }
            Self::Time => f.write_str(
                "the capture would end after the year 2106, the last that pcap can store; make fewer packets",
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_at_the_limits_pass_and_those_beyond_are_refused() {
        let fits = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.validate()
        };
        assert_eq!(fits(|_| ()), Ok(()));
        assert_eq!(fits(|c| c.packets = 0), Ok(()));
        assert_eq!(fits(|c| c.packets = u64::MAX), Err(ConfigError::Time));
        assert_eq!(fits(|c| c.start_ns = u64::MAX), Err(ConfigError::Time));
        assert_eq!(fits(|c| c.start_ns = u64::from(u32::MAX) * 1_000_000_000), Err(ConfigError::Time));
        assert_eq!(fits(|c| c.hosts = 2), Ok(()));
        assert_eq!(fits(|c| c.hosts = 1), Err(ConfigError::Hosts(1)));
        assert_eq!(fits(|c| c.hosts = 1 << 23), Ok(()));
        assert_eq!(fits(|c| c.hosts = (1 << 23) + 1), Err(ConfigError::Hosts((1 << 23) + 1)));
        assert_eq!(fits(|c| c.snaplen = 74), Ok(()));
        assert_eq!(fits(|c| c.snaplen = 73), Err(ConfigError::Snaplen(73)));
        assert_eq!(fits(|c| c.snaplen = 262_145), Err(ConfigError::Snaplen(262_145)));
        assert_eq!(fits(|c| c.vertical_scans = (1 << 18) + 1), Err(ConfigError::Scans((1 << 18) + 1)));
        assert_eq!(fits(|c| c.horizontal_scans = (1 << 18) + 1), Err(ConfigError::Scans((1 << 18) + 1)));
        assert_eq!(fits(|c| c.probe_scans = (1 << 18) + 1), Err(ConfigError::Scans((1 << 18) + 1)));
        assert_eq!(fits(|c| c.packets_per_second = Some(999)), Err(ConfigError::Rate(999)));
        assert_eq!(fits(|c| c.packets_per_second = Some(1_000)), Ok(()));
    }

    #[test]
    fn the_papers_trace_lasts_an_hour() {
        let config = Config { packets: 82_000_000, ..Config::default() };
        assert_eq!(config.gap_ns() * config.packets / 1_000_000_000, 3_599);
    }
}
