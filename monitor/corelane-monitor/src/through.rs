//! Tunnels around probes, so that an alert can name who sent them: what is inside of a tunnel is written by its sender,
//! who may put anyone's addresses there.
//!
//! 1. Where packets are decoded, [`Passages`] notes the outermost packet around the first one between two hosts that
//!    came through tunnels, for each direction. It goes by partitions, so it depends on their packets alone.
//! 2. What was noted goes to the output stage beside the failures of the same step, and counts before them. In a run
//!    without an end it is noted anew after [`AGAIN_S`], and holds for [`HOLDS_S`].
//! 3. A scan has the tunnel of the first of its failures whose hosts have one: in a whole capture in order of time.
//!
//! Data segments are not looked at: they are no probes. Memory: [`MOST`] pairs of hosts of a partition where it is
//! limited or there is no end; after that some are noted more often, or in a whole capture no more.

use crate::hash::HashKeys;
use crate::settings::Settings;
use crate::steps::{STEP_NS, step_of};
use corelane_net::decode::flags::{ACK, PSH, SYN};
use corelane_net::decode::{NoPacket, Question, TCP, Transport, Tunnel};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// After so many seconds the tunnel of two hosts is noted again, in a run without an end.
const AGAIN_S: u64 = 60;
/// So long it holds for failures: a UDP probe fails 60 s after it was sent.
const HOLDS_S: u64 = 192;
/// The pairs of hosts that a partition knows.
const MOST: usize = 256;

/// A packet came from the source to the destination through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Through {
    /// The source inside.
    pub source: IpAddr,
    /// The destination inside.
    pub destination: IpAddr,
    /// The time of the packet, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The outermost packet.
    #[serde(with = "Outermost")]
    pub tunnel: Tunnel,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Tunnel")]
struct Outermost {
    source: u128,
    destination: u128,
    source_port: u16,
    destination_port: u16,
    protocol: u8,
    depth: u8,
}

impl Through {
    /// The hosts inside.
    pub(crate) fn pair(&self) -> (IpAddr, IpAddr) {
        (self.source, self.destination)
    }
}

/// Source and destination, and whether they are of IPv4.
type Pair = (u128, u128, bool);

/// The hosts of what was found in a datagram, unless it is a data segment or neither a packet nor a question.
pub(crate) fn hosts(
    found: Result<Transport<u128>, NoPacket>,
    question: impl FnOnce() -> Option<Question<u128>>,
) -> Option<(u128, u128)> {
    match found {
        Ok(packet) if packet.protocol == TCP && packet.flags & ACK != 0 && packet.flags & (PSH | SYN) != 0 => None,
        Ok(packet) => Some((packet.source, packet.destination)),
        Err(NoPacket::Other) => question().map(|question| (question.source, question.destination)),
        Err(NoPacket::Malformed) => None,
    }
}

/// The tunnels between hosts, as packets show them.
#[derive(Debug)]
pub(crate) struct Passages {
    /// When those of each partition were noted last.
    noted: Vec<HashMap<Pair, u64, HashKeys>>,
    news: Vec<Through>,
    /// Whether they are noted again after a while.
    again: bool,
    most: usize,
    keys: HashKeys,
}

/// A clone has what is new alone.
impl Clone for Passages {
    fn clone(&self) -> Self {
        Passages { noted: Vec::new(), news: self.news.clone(), ..*self }
    }
}

impl Passages {
    pub(crate) fn new(settings: &Settings, again: bool, keys: HashKeys) -> Self {
        let most = if again || settings.table_bytes.is_some() { MOST } else { usize::MAX };
        Passages { noted: Vec::new(), news: Vec::new(), again, most, keys }
    }

    /// A packet came through tunnels.
    #[cold]
    pub(crate) fn see(&mut self, partition: u8, pair: Pair, time_ns: u64, outermost: &[u8]) {
        let keys = self.keys;
        self.noted.resize_with(256, || HashMap::with_hasher(keys));
        let noted = &mut self.noted[usize::from(partition)];
        match noted.get(&pair) {
            Some(&at_ns) if !self.again || time_ns < at_ns.saturating_add(AGAIN_S * STEP_NS) => return,
            None if noted.len() >= self.most && !self.again => return,
            None if noted.len() >= self.most => noted.clear(),
            _ => {}
        }
        let Some(tunnel) = Tunnel::of(outermost) else { return };
        noted.insert(pair, time_ns);
        let (source, destination, is_v4) = pair;
        let ip = |address: u128| match is_v4 {
            true => IpAddr::from(Ipv4Addr::from_bits(address as u32)),
            false => Ipv6Addr::from_bits(address).into(),
        };
        self.news.push(Through { source: ip(source), destination: ip(destination), time_ns, tunnel });
    }

    /// Adds what others have noted.
    pub(crate) fn add(&mut self, other: &Passages) {
        self.news.extend_from_slice(&other.news);
    }

    /// What was noted and not taken.
    pub(crate) fn news(&self) -> &[Through] {
        &self.news
    }

    /// Takes what was noted.
    pub(crate) fn take(&mut self) -> Vec<Through> {
        std::mem::take(&mut self.news)
    }
}

/// The tunnels between hosts, for the failures of all partitions.
#[derive(Debug)]
pub(crate) struct Known {
    /// The time is that of the last that was noted, the tunnel that of the first.
    pairs: HashMap<(IpAddr, IpAddr), Through, HashKeys>,
    most: usize,
    tidied: u64,
}

impl Known {
    pub(crate) fn new(most: usize, keys: HashKeys) -> Self {
        Known { pairs: HashMap::with_hasher(keys), most, tidied: 0 }
    }

    /// Adds what was noted; what holds no longer in this step leaves now and then.
    pub(crate) fn add(&mut self, mut noted: Vec<Through>, step: u64) {
        if step / AGAIN_S > self.tidied {
            self.tidied = step / AGAIN_S;
            self.pairs.retain(|_, through| holds(through, step));
        }
        noted.sort_unstable();
        for through in noted {
            let has_room = self.pairs.len() < self.most;
            match self.pairs.get_mut(&through.pair()) {
                Some(known) if holds(known, step) => known.time_ns = known.time_ns.max(through.time_ns),
                Some(known) => *known = through,
                None if has_room => drop(self.pairs.insert(through.pair(), through)),
                None => {}
            }
        }
    }

    /// The tunnel from one host to another, for what fails in this step.
    #[inline]
    pub(crate) fn of(&self, source: IpAddr, destination: IpAddr, step: u64) -> Option<Tunnel> {
        if self.pairs.is_empty() {
            return None;
        }
        self.pairs.get(&(source, destination)).filter(|through| holds(through, step)).map(|through| through.tunnel)
    }

    /// Of a whole capture, without steps: the first for each pair in order of time.
    pub(crate) fn of_all(mut noted: Vec<Through>, keys: HashKeys) -> Self {
        noted.sort_unstable_by_key(|it| (it.time_ns, *it));
        let mut known = Known::new(usize::MAX, keys);
        for through in noted {
            known.pairs.entry(through.pair()).or_insert(Through { time_ns: u64::MAX, ..through });
        }
        known
    }

    /// Goes on with these.
    pub(crate) fn restore(&mut self, all: Vec<Through>) {
        self.pairs.clear();
        self.pairs.extend(all.into_iter().map(|through| (through.pair(), through)));
    }

    /// All, in an order that is always the same.
    pub(crate) fn all(&self) -> Vec<Through> {
        let mut all: Vec<_> = self.pairs.values().copied().collect();
        all.sort_unstable();
        all
    }
}

fn holds(through: &Through, step: u64) -> bool {
    step.saturating_sub(step_of(through.time_ns)) <= HOLDS_S
}
