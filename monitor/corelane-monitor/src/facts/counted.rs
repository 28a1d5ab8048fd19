//! What was counted of a conversation that goes on, so that nothing of it is counted twice.
//!
//! Conversations with payload keep it beside their state ([`Kept`](super::Kept)). Those without have none: they have
//! their place in a table of the partition ([`Quiet`]) until they have payload or are over.

use crate::hash::HashKeys;
use corelane_net::conversation::{Conversation, Side};
use corelane_net::decode::Vlans;
use std::collections::HashMap;
use std::net::SocketAddr;

/// What was counted of a conversation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Bytes and packets of each [side](Side::index).
    bytes: [u64; 2],
    packets: [u64; 2],
    /// Whether it was counted as one that its server answered.
    pub(super) is_served: bool,
    /// Whether it was counted among the unknown.
    pub(super) is_unknown: bool,
}

/// What a conversation has had since it was counted last.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    /// Bytes and packets of each [side](Side::index).
    pub(super) bytes: [u64; 2],
    pub(super) packets: [u64; 2],
    /// Whether it was never counted before.
    pub(super) is_first: bool,
}

impl Counted {
    /// Counts all that there is of it now. `None` means that there is nothing new.
    pub(super) fn count(&mut self, conversation: &Conversation) -> Option<News> {
        let bytes = Side::BOTH.map(|side| conversation.bytes(side));
        let packets = Side::BOTH.map(|side| conversation.packets(side));
        if packets == self.packets {
            return None;
        }
        let is_first = self.packets == [0; 2];
        let since = |now: [u64; 2], before: [u64; 2]| [now[0] - before[0], now[1] - before[1]];
        let news = News { bytes: since(bytes, self.bytes), packets: since(packets, self.packets), is_first };
        (self.bytes, self.packets) = (bytes, packets);
        Some(news)
    }
}

/// The most conversations in a [`Quiet`]; a little less than a power of two, by which tables grow.
const QUIET: usize = 448;

/// The conversations without payload of which something was counted. All are TCP connections, as any datagram counts as
/// payload.
#[derive(Debug)]
pub(super) struct Quiet(HashMap<([SocketAddr; 2], Vlans), Counted, HashKeys>);

/// What tells it from the others.
fn key(conversation: &Conversation) -> ([SocketAddr; 2], Vlans) {
    (Side::BOTH.map(|side| conversation.end(side)), conversation.vlans())
}

impl Quiet {
    pub(super) fn new(keys: HashKeys) -> Self {
        Quiet(HashMap::with_hasher(keys))
    }

    /// What was counted of a conversation. `None` means that it is new and that there is no room: it is to be counted
    /// when it has payload or is over.
    pub(super) fn of(&mut self, conversation: &Conversation) -> Option<&mut Counted> {
        let (is_full, key) = (self.0.len() >= QUIET, key(conversation));
        if is_full { self.0.get_mut(&key) } else { Some(self.0.entry(key).or_default()) }
    }

    /// Removes a conversation, and returns what was counted of it.
    #[inline]
    pub(super) fn remove(&mut self, conversation: &Conversation) -> Counted {
        if self.0.is_empty() || !conversation.is_tcp() {
            return Counted::default();
        }
        self.0.remove(&key(conversation)).unwrap_or_default()
    }
}
