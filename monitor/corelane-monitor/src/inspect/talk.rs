//! The state of a conversation that has brought payload.

use crate::facts::Kept;
use corelane_net::conversation::{Application, Conversation, Side};
use corelane_net::protocol::tls::{ClientHello, ServerHello};
use corelane_net::protocol::{Carrier, CommunityId, Detail, Event, Identified, Protocol, Session, community_id};

/// A protocol session, with the facts that its events share.
#[derive(Debug)]
pub(super) struct Talk {
    session: Session,
    /// If any event of it is written.
    pub(super) name: Option<Name>,
    /// The protocol that was identified last, with the client that is known since then or before.
    pub(super) identified: Option<Identified>,
    /// The protocol that was identified directly before it.
    pub(super) before: Option<Protocol>,
    /// A hello whose counterpart is still to come, and the number of the packet that brought it, if one did.
    pub(super) hello: Option<(Hello, Option<u64>)>,
    /// Requests, hellos, queries and SSH handshakes so far.
    pub(super) transactions: u64,
    /// Whether facts are gathered …
    gathers: bool,
    /// … and what is kept for them, if anything is.
    pub(super) kept: Option<Box<Kept>>,
}

/// One of the two hellos. That of the server may be recorded first.
#[derive(Debug)]
pub(super) enum Hello {
    Client(Box<ClientHello>),
    Server(Box<ServerHello>),
}

impl Hello {
    fn heap_bytes(&self) -> usize {
        match self {
            Hello::Client(hello) => size_of::<ClientHello>() + hello.heap_bytes(),
            Hello::Server(hello) => size_of::<ServerHello>() + hello.heap_bytes(),
        }
    }
}

/// The name of a conversation in all its events.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) flow_id: u64,
    pub(super) community_id: CommunityId,
}

impl Name {
    /// The name of the conversation that is the `count`th of its partition to get a name.
    pub(super) fn new(conversation: &Conversation, partition: u8, count: u64) -> Self {
        let (a, b) = (conversation.end(Side::Originator), conversation.end(Side::Responder));
        let community_id = community_id(conversation.protocol(), (a.ip(), a.port()), (b.ip(), b.port()));
        let words = [conversation.first_ns(), count << 8 | u64::from(partition), u64::from(a.port()) << 16];
        Name { flow_id: flow_id(community_id.as_str(), words), community_id }
    }
}

/// A number of 53 bits, which all readers of JSON can take, and never 0. It has no key, so that every run gives the
/// same.
fn flow_id(community_id: &str, words: [u64; 3]) -> u64 {
    let bytes = community_id.as_bytes().chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let mixed = bytes.chain(words).fold(0_u64, |state, word| {
        // The finalizer of SplitMix64.
        let state = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ state >> 31
    });
    (mixed >> 11).max(1)
}

impl Talk {
    pub(super) fn new(
        conversation: &Conversation,
        name: Option<Name>,
        detail: Detail,
        (gathers, kept): (bool, Option<Box<Kept>>),
    ) -> Self {
        let session = Session::with(Carrier::of(conversation), detail);
        Talk { session, name, identified: None, before: None, hello: None, transactions: 0, gathers, kept }
    }

    /// Whether the ClientHello of an answer that waits for it cannot come any more.
    pub(super) fn is_unasked(&self) -> bool {
        match &self.hello {
            Some((Hello::Server(hello), _)) => !self.session.wants(hello.server.other()),
            _ => false,
        }
    }

    /// The protocol that is known.
    pub(super) fn protocol(&self) -> Option<Protocol> {
        self.identified.map(|identified| identified.protocol)
    }

    /// The client, as far as it is known.
    pub(super) fn client(&self) -> Side {
        self.identified.and_then(|identified| identified.client).unwrap_or(Side::Originator)
    }
}

impl Application for Talk {
    type Found = Vec<Event>;

    #[inline]
    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], found: &mut Vec<Event>) {
        self.session.data(side, time_ns, bytes, found);
        if self.gathers && self.session.protocol().is_none() && !bytes.is_empty() {
            self.kept.get_or_insert_default().keep(bytes);
        }
    }

    fn answered_early(&mut self, side: Side) {
        self.session.answered_early(side);
    }

    fn gap(&mut self, side: Side, time_ns: u64, missing: u64, found: &mut Vec<Event>) {
        self.session.gap(side, time_ns, missing, found);
    }

    fn end(&mut self, side: Side, time_ns: u64, found: &mut Vec<Event>) {
        self.session.end(side, time_ns, found);
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        self.session.heap_bytes()
            + self.hello.as_ref().map_or(0, |(hello, _)| hello.heap_bytes())
            + self.kept.as_deref().map_or(0, Kept::heap_bytes)
    }

    #[inline]
    fn wants(&self, side: Side) -> bool {
        self.session.wants(side)
    }
}
