//! Identifies the protocol of a conversation by its content, never by its ports.
//!
//! 1. The first bytes of each side of a stream are kept, at most [`PREFIX`]. Each datagram is judged by itself, up to
//!    [`DATAGRAMS`] a side, of STUN [`DATAGRAMS_OF_STUN`]. Among these one of QUIC, DTLS or DNS, which are read,
//!    replaces a protocol that is not.
//! 2. There is a rule for each kind of message. A rule returns yes, no, or that it needs more bytes. It never takes
//!    back a yes or a no when more bytes come. One says of a proxy's header that the bytes behind it are to be judged.
//! 3. The rules have an order, and a rule counts only when all before it have returned no. So the verdict does not
//!    depend on the pieces in which the bytes arrive.
//! 4. A rule may look at the bytes of the other side, but only at whole lines of it, and after the other side's own
//!    rules.
//! 5. When all rules of a side have returned no, or its prefix is full, that side is done. Its bytes are kept, as the
//!    other side may still identify them. A gap restarts a side, at most [`RESTARTS`] times.
//!
//! Rules check structure, not one magic byte: lengths that fit, versions that exist, lines with a valid end. Each yes
//! comes with its evidence, a phrase to print.

pub(super) mod datagram;
mod identified;
mod rule;
pub(super) mod stream;
pub(super) mod stun;

pub use super::Protocol;
pub use identified::Identified;
pub use rule::PREFIX;
pub(super) use rule::{Says, Seen, Speaker, first_line, starts};

use super::{DATAGRAM_RULES, STREAM_RULES};
use crate::conversation::Side;

/// The most bytes on the heap: buffers reserve up to twice the bytes that they need.
pub const MOST: usize = 4 * PREFIX;
/// The datagrams of a side that are examined.
pub const DATAGRAMS: u8 = 4;
/// The same behind STUN, by which ICE tries several ways first.
pub const DATAGRAMS_OF_STUN: u8 = 16;
/// The most restarts of a side by gaps.
pub const RESTARTS: u8 = 8;
/// When a side is done and this many further bytes of it have come, the identifier stops waiting for the other side.
const PATIENCE: u64 = 64 << 10;

/// Identifies the protocol of one conversation.
#[derive(Debug)]
pub(super) struct Identifier {
    sides: [Prefix; 2],
}

/// The state of a side.
#[derive(Debug, Default)]
pub(super) struct Prefix {
    /// The first bytes, while they may be of use.
    pub(super) bytes: Vec<u8>,
    /// Bytes in front of the kept ones that were not kept: a gap, and the bytes before it.
    pub(super) before: u64,
    /// Bytes behind the kept ones that were not kept.
    pub(super) skipped: u64,
    /// All rules have returned no, or were given up.
    done: bool,
    restarts: u8,
    datagrams: u8,
    pub(super) ended: bool,
}

/// The verdict of the rules on a side.
fn verdict(seen: Seen<'_>) -> Says {
    for rule in STREAM_RULES {
        match rule(seen) {
            Says::No => {}
            // The prefix is full, so this rule gets no more bytes.
            Says::More if seen.own.len() >= PREFIX => {}
            says => return says,
        }
    }
    Says::No
}

impl Identifier {
    pub(super) fn new() -> Self {
        Self { sides: Default::default() }
    }

    /// Takes the next bytes of a stream. If they decide, [`Identifier::into_sides`] has the kept bytes of both sides,
    /// and the second result is the number of `bytes` that are among those.
    pub(super) fn stream(&mut self, side: Side, time_ns: u64, bytes: &[u8]) -> (Option<Identified>, usize) {
        let own = &mut self.sides[side.index()];
        if own.skipped > 0 {
            own.skipped += bytes.len() as u64;
            return (None, bytes.len());
        }
        let kept = bytes.len().min(PREFIX - own.bytes.len());
        own.bytes.extend_from_slice(&bytes[..kept]);
        let found = self.judge(side, time_ns).or_else(|| self.judge(side.other(), time_ns));
        if found.is_some() {
            return (found, kept);
        }
        let rest = (bytes.len() - kept) as u64;
        self.sides[side.index()].skipped += rest;
        (None, bytes.len())
    }

    fn judge(&mut self, side: Side, time_ns: u64) -> Option<Identified> {
        let seen = Seen { own: &self.sides[side.index()].bytes, other: &self.sides[side.other().index()].bytes };
        if self.sides[side.index()].done || seen.own.is_empty() {
            return None;
        }
        match verdict(seen) {
            Says::Behind(skipped) if self.sides[side.index()].restarts < RESTARTS => {
                let own = &mut self.sides[side.index()];
                own.restarts += 1;
                own.bytes.drain(..skipped);
                return self.judge(side, time_ns);
            }
            Says::Yes(protocol, evidence, speaker) => {
                return Some(identified(protocol, evidence, speaker, side, time_ns));
            }
            Says::No | Says::Behind(_) => self.sides[side.index()].done = true,
            Says::More => {}
        }
        None
    }

    /// Takes the first bytes of a stream: returns a verdict on all of them, or an identifier that waits for more. One
    /// without bytes is to take these: they have a header of no protocol in front.
    pub(super) fn first(side: Side, time_ns: u64, bytes: &[u8]) -> Result<Identified, Self> {
        let kept = &bytes[..bytes.len().min(PREFIX)];
        let done = match verdict(Seen { own: kept, other: &[] }) {
            Says::Yes(protocol, evidence, speaker) => {
                return Ok(identified(protocol, evidence, speaker, side, time_ns));
            }
            Says::No => true,
            Says::More => false,
            Says::Behind(_) => return Err(Self::new()),
        };
        let mut identifier = Self::new();
        let skipped = (bytes.len() - kept.len()) as u64;
        identifier.sides[side.index()] = Prefix { bytes: kept.to_vec(), skipped, done, ..Prefix::default() };
        Err(identifier)
    }

    /// The same for the first datagram of a conversation.
    pub(super) fn first_datagram(side: Side, time_ns: u64, bytes: &[u8]) -> Result<Identified, Self> {
        let mut identifier = Self::new();
        identifier.datagram(side, time_ns, bytes).ok_or(identifier)
    }

    /// Takes a datagram, which is judged by itself.
    pub(super) fn datagram(&mut self, side: Side, time_ns: u64, bytes: &[u8]) -> Option<Identified> {
        let own = &mut self.sides[side.index()];
        if own.done {
            return None;
        }
        own.datagrams += 1;
        own.done = own.datagrams >= DATAGRAMS;
        judge_datagram(side, time_ns, bytes)
    }

    /// Whether it has taken bytes or datagrams.
    pub(super) fn has_begun(&self) -> bool {
        self.sides.iter().any(|side| !side.bytes.is_empty() || side.datagrams > 0)
    }

    /// The datagrams of each side so far.
    pub(super) fn datagrams(&self) -> [u8; 2] {
        [self.sides[0].datagrams, self.sides[1].datagrams]
    }

    /// Takes a gap: the bytes behind it are judged as if they were the first.
    pub(super) fn gap(&mut self, side: Side, missing: u64) {
        let own = &mut self.sides[side.index()];
        if own.restarts < RESTARTS {
            own.restarts += 1;
            own.done = false;
            own.before += own.bytes.len() as u64 + own.skipped + missing;
            own.bytes.clear();
            own.skipped = 0;
        } else {
            own.skipped += missing;
        }
    }

    pub(super) fn end(&mut self, side: Side) {
        let own = &mut self.sides[side.index()];
        own.ended = true;
        own.done = true;
    }

    /// Whether no further bytes can lead to a verdict.
    pub(super) fn is_hopeless(&self) -> bool {
        let [one, other] = &self.sides;
        let out = |a: &Prefix, b: &Prefix| a.done && (b.done || a.skipped >= PATIENCE);
        out(one, other) || out(other, one)
    }

    /// Returns the kept bytes of both sides.
    pub(super) fn into_sides(self) -> [Prefix; 2] {
        self.sides
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.sides.iter().map(|side| side.bytes.capacity()).sum()
    }
}

fn judge_datagram(side: Side, time_ns: u64, bytes: &[u8]) -> Option<Identified> {
    DATAGRAM_RULES.iter().find_map(|rule| match rule(bytes) {
        Says::Yes(protocol, evidence, speaker) => Some(identified(protocol, evidence, speaker, side, time_ns)),
        _ => None,
    })
}

/// The datagrams of a side that are examined of a conversation in this protocol.
pub(super) fn judged(protocol: Option<Protocol>) -> u8 {
    if protocol == Some(Protocol::Stun) { DATAGRAMS_OF_STUN } else { DATAGRAMS }
}

/// The verdict on a datagram that follows one of a protocol without a parser. Only a protocol with a parser replaces
/// that one.
pub(super) fn instead(before: Option<Protocol>, side: Side, time_ns: u64, bytes: &[u8]) -> Option<Identified> {
    judge_datagram(side, time_ns, bytes).filter(|found| {
        // A damaged message of NetBIOS may look like one of DNS.
        let is_damaged = (before, found.protocol) == (Some(Protocol::NetbiosNames), Protocol::Dns);
        found.protocol.read().is_some() && !is_damaged
    })
}

fn identified(protocol: Protocol, evidence: &'static str, speaker: Speaker, side: Side, time_ns: u64) -> Identified {
    let client = match speaker {
        Speaker::Client => Some(side),
        Speaker::Server => Some(side.other()),
        Speaker::Either => None,
    };
    Identified { protocol, evidence, side, client, time_ns }
}
