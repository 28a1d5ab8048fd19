//! Which protocol a conversation speaks, by what it says and never by its ports.
//!
//! 1. Of each side the first bytes are kept, at most [`PREFIX`]. Of datagrams each is judged by itself, up to
//!    [`DATAGRAMS`] a side.
//! 2. A rule a protocol says of them: yes, no, or not to be told yet. It never takes a yes or no back when more bytes
//!    come.
//! 3. The rules have an order, and one speaks only when all before it have said no. So the verdict does not depend on
//!    the pieces in which the bytes arrive.
//! 4. A rule may look at what the other side said, but only at whole lines of it, and after the other side's own rules.
//! 5. When all rules of a side have said no, or its prefix is full, that side is done; its bytes are kept, as the other
//!    side may tell what they are. A gap starts it anew, [`RESTARTS`] times.
//!
//! Rules ask for structure, not for one magic byte: lengths that fit, versions that exist, lines that end as they must.
//! What each has seen is its evidence, a phrase to be printed.

mod datagram;
mod protocol;
mod rule;
mod stream;

pub use protocol::{Identified, Protocol};
pub use rule::PREFIX;
pub(super) use stream::{METHODS, is_request_line, is_status_line, is_token};

use crate::conversation::Side;
use rule::{Says, Speaker};
use stream::Seen;

/// Bytes on the heap that this never exceeds, in buffers that reserve up to twice of what they need.
pub const MOST: usize = 4 * PREFIX;
/// How many datagrams of a side are looked at.
pub const DATAGRAMS: u8 = 4;
/// How often a gap makes a side look anew.
pub const RESTARTS: u8 = 8;
/// Bytes of a side that is done, after which the other side is not waited for.
const PATIENCE: u64 = 64 << 10;

/// Finds out which protocol a conversation speaks.
#[derive(Debug)]
pub(super) struct Identifier {
    sides: [Prefix; 2],
}

/// What is known of a side.
#[derive(Debug, Default)]
pub(super) struct Prefix {
    /// The first bytes, as long as they may be of use.
    pub(super) bytes: Vec<u8>,
    /// Bytes that were not kept, in front of those that are: a gap, and what came before it.
    pub(super) before: u64,
    /// The same behind them.
    pub(super) skipped: u64,
    /// All rules have said no, or were given up.
    done: bool,
    restarts: u8,
    datagrams: u8,
    pub(super) ended: bool,
}

impl Identifier {
    pub(super) fn new() -> Self {
        Self { sides: Default::default() }
    }

    /// The next bytes of a stream. When they decide, what was kept of both sides is in [`Identifier::into_sides`], and
    /// `bytes` was not added to it beyond the second result.
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
        use Says::{More, No, Yes};
        for rule in stream::RULES {
            match rule(seen) {
                Yes(protocol, evidence, speaker) => {
                    return Some(identified(protocol, evidence, speaker, side, time_ns));
                }
                No => {}
                More if seen.own.len() < PREFIX => return None,
                More => {}
            }
        }
        self.sides[side.index()].done = true;
        None
    }

    /// A datagram, which is judged by itself.
    pub(super) fn datagram(&mut self, side: Side, time_ns: u64, bytes: &[u8]) -> Option<Identified> {
        let own = &mut self.sides[side.index()];
        if own.done {
            return None;
        }
        own.datagrams += 1;
        own.done = own.datagrams >= DATAGRAMS;
        for rule in datagram::RULES {
            if let Says::Yes(protocol, evidence, speaker) = rule(bytes) {
                return Some(identified(protocol, evidence, speaker, side, time_ns));
            }
        }
        None
    }

    /// Bytes are missing: what follows is looked at as if it were the start.
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

    /// Whether nothing that still comes can make a verdict.
    pub(super) fn is_hopeless(&self) -> bool {
        let [one, other] = &self.sides;
        let out = |a: &Prefix, b: &Prefix| a.done && (b.done || a.skipped >= PATIENCE);
        out(one, other) || out(other, one)
    }

    /// Gives back what was kept of both sides.
    pub(super) fn into_sides(self) -> [Prefix; 2] {
        self.sides
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.sides.iter().map(|side| side.bytes.capacity()).sum()
    }
}

fn identified(protocol: Protocol, evidence: &'static str, speaker: Speaker, side: Side, time_ns: u64) -> Identified {
    let client = match speaker {
        Speaker::Client => Some(side),
        Speaker::Server => Some(side.other()),
        Speaker::Either => None,
    };
    Identified { protocol, evidence, side, client, time_ns }
}
