//! The table of the conversations of one partition.
//!
//! 1. An [index](super::index) finds the conversation of a packet. That takes a look at one line of words and one at
//!    the conversation itself, which has two lines. Conversations lie side by side and without holes: when one is
//!    removed, the last one takes its number. So the reserved memory follows their number down as well as up.
//! 2. The header of the [module](super) states when a conversation begins. Its application begins with its first
//!    payload.
//! 3. Each conversation is in one of four lists, by its class; the one with the latest packet is at the end. A list
//!    knows time in ticks of a second. A conversation that already had a packet in this tick keeps its place, so that
//!    packets in a row do not touch their neighbours' lines.
//! 4. At a mark in time, conversations whose time-out has passed are removed from the front of the lists.
//!    From the other end, those with a packet since some time are found without a look at the rest.
//! 5. When memory is needed and the budget is used up, conversations are evicted until it fits. Closed ones are evicted
//!    first. Then come one-sided ones, if these have more than a quarter of the budget. Then comes the least recently
//!    used of the others. One-sided ones within their quarter come last.
//!
//! # Why a flood does not win
//!
//! - A spoofed SYN reserves nothing; neither does an RST, FIN or ACK of no conversation, whatever other flags it has.
//! - A spoofed SYN that is answered begins a conversation, and so does a spoofed datagram or segment with payload. But
//!   the other end never confirms it. So all of these together keep at most a quarter of the budget while others need
//!   the rest.
//! - [Limits of its own](super::stream) bound the bytes that one conversation holds back.
//!
//! # Why the result is always the same
//!
//! Everything here is a function of the packets and marks of this partition, in their order. The hash of the index has
//! random keys, but the reserved memory depends only on the number of conversations, not on their positions (see
//! [`index`](super::index)).

use super::application::Application;
use super::entry::{
    Class, Conversation, Ending, Entry, HOLDING, MIDSTREAM, NONE, PADDED, RESET, Reason, TUNNELLED, Tick,
};
use super::index::Index;
use super::key::{Key, Sender};
use super::limits::{Counts, LEAST_BYTES, Limits};
use super::observer::Observer;
use super::segments::Segments;
use super::side::Side;
use super::stream::{ENDED, Extra, SENT, STARTED, Shared, Turn, UNWANTED};
use super::syns::{Syn, Syns};
use crate::decode::flags::{ACK, FIN, RST, SYN};
use crate::decode::{Packet, TCP};
use foldhash::quality::RandomState;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

/// A list of conversations, linked by the numbers in them.
#[derive(Clone, Copy, Debug)]
struct List {
    oldest: u32,
    newest: u32,
    len: usize,
    /// Bytes that its conversations reserve beside their entries.
    charged: usize,
}

const EMPTY: List = List { oldest: NONE, newest: NONE, len: 0, charged: 0 };

/// The conversations of one partition. See the [module](super).
#[derive(Debug)]
pub struct Conversations<A: Application> {
    hash: RandomState,
    index: Index,
    entries: Segments<Entry<A>>,
    lists: [List; 4],
    syns: Syns,
    /// The numbers of the conversations that hold bytes back.
    holding: Vec<u32>,
    /// The largest time of a packet or mark so far.
    clock: u64,
    shared: Shared<A::Found>,
}

/// Nanoseconds of a tick.
const TICK: u64 = 1 << 30;

fn tick(time_ns: u64) -> Tick {
    Tick::try_from(time_ns / TICK).unwrap_or(Tick::MAX)
}

impl<A: Application> Conversations<A> {
    /// Makes an empty table, which reserves no memory yet.
    ///
    /// # Panics
    ///
    /// If the budget is less than [`LEAST_BYTES`].
    pub fn new(limits: &Limits) -> Self {
        assert!(limits.bytes >= LEAST_BYTES, "`limits.bytes` is {}: allow at least {LEAST_BYTES}", limits.bytes);
        Self {
            hash: RandomState::default(),
            index: Index::default(),
            entries: Segments::default(),
            lists: [EMPTY; 4],
            syns: Syns::new(limits.bytes),
            holding: Vec::new(),
            clock: 0,
            shared: Shared {
                limits: *limits,
                counts: Counts::default(),
                now_ns: 0,
                held: 0,
                called: false,
                found: A::Found::default(),
                tunnels: BTreeMap::new(),
            },
        }
    }

    /// The number of conversations.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no conversation.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The counts so far.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// The bytes reserved. Between two calls they never exceed the budget, unless an application alone takes more than
    /// that within one packet.
    pub fn reserved_bytes(&self) -> usize {
        let charged: usize = self.lists.iter().map(|list| list.charged).sum();
        self.index.reserved_bytes()
            + self.entries.reserved_bytes()
            + self.syns.reserved_bytes()
            + self.holding.capacity() * size_of::<u32>()
            + self.shared.bytes_of_tunnels(0)
            + charged
    }

    /// The cost of all bytes that are held back as out of order, measured as for [`Limits::held`].
    pub fn held_bytes(&self) -> usize {
        self.shared.held
    }

    /// Takes a packet. All packets of a conversation have to come here, in the order of the capture.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>, observer: &mut impl Observer<A>) {
        self.packet_at(packet.time_ns, packet, observer);
    }

    /// The same for a packet whose time may be wrong: so much time has passed, in nanoseconds since the epoch, by which
    /// all is judged that waits. Conversations and their bytes keep the packet's own time.
    #[inline]
    pub fn packet_at(&mut self, now_ns: u64, packet: &Packet<'_>, observer: &mut impl Observer<A>) {
        self.clock = self.clock.max(now_ns);
        self.shared.now_ns = now_ns;
        let (key, sender) = Key::of(packet);
        let hash = self.hash(&key);
        let found = self.index.find(hash, |number| self.entries.get(number).conversation.key().equals(&key));
        let is_tcp = packet.protocol == TCP;
        self.shared.counts.tcp_packets += u64::from(is_tcp);
        self.shared.counts.udp_packets += u64::from(!is_tcp);
        let found = match found {
            Some(number) if packet.flags & SYN != 0 => self.go_on_or_replace(number, &key, sender, packet, observer),
            found => found,
        };
        let Some(number) = found.or_else(|| self.open(&key, hash, sender, packet, observer)) else {
            return;
        };
        let Self { entries, shared, .. } = self;
        let entry = entries.get_mut(number);
        let side = sender.side(entry.conversation.originator);
        entry.conversation.count(side, packet);
        let late_tunnel = !packet.outermost.is_empty() && entry.conversation.flags & TUNNELLED == 0;
        if late_tunnel {
            shared.keep_tunnel(&mut entry.conversation, sender, packet);
        }
        shared.called = false;
        if is_tcp {
            segment(entry, side, packet, shared, observer);
        } else {
            datagram(entry, side, packet, shared, observer);
        }
        if shared.called {
            called(entry, self.clock, shared, observer);
        }
        if self.settle(number, true) || late_tunnel {
            self.make_room(observer, |_| 0);
        }
    }

    /// Makes time pass up to `mark_ns`: gives up holes and conversations that have waited for too long. The caller
    /// chooses where marks lie among the packets; the same places give the same result.
    pub fn expire(&mut self, mark_ns: u64, observer: &mut impl Observer<A>) {
        self.clock = self.clock.max(mark_ns);
        self.shared.now_ns = self.clock;
        // Backwards, as a conversation that is done leaves the list, and the last one takes its place.
        for at in (0..self.holding.len()).rev() {
            let number = self.holding[at];
            let entry = self.entries.get_mut(number);
            self.shared.called = false;
            for side in Side::BOTH {
                if let Some(mut turn) = turn(entry, side, self.clock, &mut self.shared) {
                    turn.expire();
                }
            }
            if self.shared.called {
                called(entry, self.clock, &mut self.shared, observer);
            }
            self.settle(number, false);
        }
        for (class, timeout_ns) in self.timeouts() {
            // A tick counts only when the next one has begun, so that no conversation times out early.
            while let Some(number) = self.oldest(class)
                && let behind = tick(self.clock) - self.entries.get(number).conversation.touched
                && u64::from(behind.saturating_sub(1)) * TICK >= timeout_ns
            {
                self.remove(number, Reason::TimedOut, observer);
            }
        }
        self.syns.expire(self.clock, |syn| attempted(syn, None, observer));
        self.make_room(observer, |_| 0);
    }

    /// The least mark at which [`expire`](Conversations::expire) would give something up; `None` if nothing waits for
    /// time to pass.
    pub fn next_due(&self) -> Option<u64> {
        let timeouts = self.timeouts().into_iter().filter_map(|(class, timeout_ns)| {
            let touched = self.entries.get(self.oldest(class)?).conversation.touched;
            let ticks = u64::from(touched) + 1 + timeout_ns.div_ceil(TICK);
            Some(ticks.saturating_mul(TICK))
        });
        let holes = self.holding.iter().flat_map(|&number| {
            let Entry { conversation, extra } = self.entries.get(number);
            let limits = &self.shared.limits;
            Side::BOTH.into_iter().filter_map(move |side| extra.as_ref()?.due(side, &conversation.marks, limits))
        });
        timeouts.chain(holes).chain(self.syns.next_due()).min()
    }

    /// Calls `act` with each conversation whose latest packet has this time, in nanoseconds since the epoch, or a later
    /// one, and with its application, if it has one. The order is a function of the packets and marks so far. The time
    /// that it takes is that of the conversations that had a packet since two ticks, of 1.07 s each, before `since_ns`.
    ///
    /// `act` may change an application, but not the bytes that it [reserves](Application::heap_bytes): they are charged
    /// at the next packet only.
    pub fn active_since(&mut self, since_ns: u64, mut act: impl FnMut(&Conversation, Option<&mut A>)) {
        let since = tick(since_ns);
        for list in self.lists {
            let mut number = list.newest;
            while number != NONE {
                let Entry { conversation, extra } = self.entries.get_mut(number);
                // It is touched in the tick of its latest packet, or later.
                if conversation.touched < since {
                    break;
                }
                number = conversation.older;
                if conversation.last_ns() >= since_ns {
                    act(conversation, extra.as_mut().map(|extra| &mut extra.application));
                    debug_assert!(extra.as_ref().is_none_or(|extra| extra.charged == extra.reserved_bytes()));
                }
            }
        }
    }

    /// The classes in the order in which they expire, and their time-outs.
    fn timeouts(&self) -> [(Class, u64); 4] {
        let limits = &self.shared.limits;
        [
            (Class::Closed, limits.closed_timeout_ns),
            (Class::Unconfirmed, limits.unconfirmed_timeout_ns),
            (Class::Udp, limits.udp_timeout_ns),
            (Class::Tcp, limits.tcp_timeout_ns),
        ]
    }

    /// Ends the capture, and every conversation with it. Gives all memory back.
    pub fn finish(&mut self, observer: &mut impl Observer<A>) {
        while self.entries.len() > 0 {
            self.remove((self.entries.len() - 1) as u32, Reason::CaptureEnded, observer);
        }
        self.index = Index::default();
        self.entries = Segments::default();
        self.holding = Vec::new();
        self.shared.found = A::Found::default();
        self.syns.expire(u64::MAX, |syn| attempted(syn, None, observer));
        self.syns.clear();
    }

    #[inline]
    fn hash(&self, key: &Key) -> u32 {
        // Word by word: as an array they would be hashed as bytes of any number.
        let mut hasher = self.hash.build_hasher();
        key.words().into_iter().for_each(|word| hasher.write_u64(word));
        (hasher.finish() >> 32) as u32
    }

    /// Takes a SYN, with or without ACK, of a conversation that is there. If it begins another connection, the old
    /// conversation is over. Otherwise the result is the conversation's number now.
    #[cold]
    fn go_on_or_replace(
        &mut self,
        number: u32,
        key: &Key,
        sender: Sender,
        packet: &Packet<'_>,
        observer: &mut impl Observer<A>,
    ) -> Option<u32> {
        let conversation = &self.entries.get(number).conversation;
        let control = packet.flags & (SYN | ACK | RST | FIN);
        let side = sender.side(conversation.originator);
        let anew = if control == SYN {
            conversation.class == Class::Closed
        } else {
            let expected = conversation.streams[side.index()].next;
            let is_answered = |syn: &Syn| syn.sender != sender && syn.sequence.wrapping_add(1) == packet.acknowledgment;
            control == SYN | ACK
                && conversation.has_started(side)
                && packet.sequence.wrapping_add(1) != expected
                && self.syns.get(key, self.shared.now_ns).is_some_and(is_answered)
        };
        if anew {
            self.remove(number, Reason::Replaced, observer);
            return None;
        }
        if control == SYN {
            // This may be a new connection on the ports of an old one; its answer will show it.
            self.remember_syn(key, sender, packet, observer);
        }
        // The trace may have evicted conversations, so the number is looked up again.
        let hash = self.hash(key);
        self.index.find(hash, |number| self.entries.get(number).conversation.key().equals(key))
    }

    fn remember_syn(&mut self, key: &Key, sender: Sender, packet: &Packet<'_>, observer: &mut impl Observer<A>) {
        let (grown, gone) = self.syns.remember(key, sender, self.shared.now_ns, packet);
        if let Some(syn) = gone {
            attempted(&syn, None, observer);
        }
        if grown {
            self.make_room(observer, |_| 0);
        }
    }

    /// Takes a packet without a conversation, and begins one if the packet can.
    #[cold]
    fn open(
        &mut self,
        key: &Key,
        hash: u32,
        sender: Sender,
        packet: &Packet<'_>,
        observer: &mut impl Observer<A>,
    ) -> Option<u32> {
        if packet.protocol != TCP {
            let conversation = Conversation::new(key, guess(packet, sender), packet.time_ns);
            return Some(self.insert(conversation, hash, sender, packet, observer));
        }
        let control = packet.flags & (SYN | ACK | RST | FIN);
        if control == SYN {
            self.shared.counts.bare_syns += 1;
            self.remember_syn(key, sender, packet, observer);
            return None;
        }
        // An answer acknowledges the SYN, and at most the payload on it.
        let is_answered = |syn: &Syn| {
            syn.sender != sender
                && packet.acknowledgment.wrapping_sub(syn.sequence.wrapping_add(1)) <= u32::from(u16::MAX)
        };
        let has_payload = !packet.payload.is_empty() || packet.cut > 0;
        if control != SYN | ACK && !(has_payload && control & (SYN | ACK | RST) == ACK) {
            self.shared.counts.strays += 1;
            // RFC 9293, 3.10.7.3: it acknowledges the SYN.
            if control == RST | ACK
                && self.syns.get(key, self.shared.now_ns).is_some_and(is_answered)
                && let Some(syn) = self.syns.take(key).filter(|syn| !syn.is_told())
            {
                attempted(&syn, Some(packet), observer);
            }
            return None;
        }
        let answers = control == SYN | ACK;
        let is_fresh = self.syns.get(key, self.shared.now_ns).is_some_and(|syn| !answers || is_answered(syn));
        let syn = self.syns.take(key).filter(|_| is_fresh);
        let originator = match &syn {
            Some(syn) => syn.sender,
            None if answers => sender.other(),
            None => guess(packet, sender),
        };
        let mut conversation = Conversation::new(key, originator, packet.time_ns);
        let [stream, _] = &mut conversation.streams;
        let [marks, _] = &mut conversation.marks;
        if let Some(syn) = &syn {
            stream.start(marks, syn.sequence.wrapping_add(1));
            conversation.count_syns(syn);
        } else if answers {
            stream.start(marks, packet.acknowledgment);
        } else {
            conversation.flags |= MIDSTREAM;
            self.shared.counts.midstream += 1;
        }
        let number = self.insert(conversation, hash, sender, packet, observer);
        if let Some(syn) = syn {
            let is_own = syn.sender == sender;
            self.take_early(number, &syn, is_own, packet, observer);
        }
        Some(number)
    }

    /// Takes the payload of the SYN (RFC 7413), as far as a conversation's first packet shows that it was taken: the
    /// other end acknowledges it, or its sender goes on behind it.
    fn take_early(
        &mut self,
        number: u32,
        syn: &Syn,
        is_own: bool,
        packet: &Packet<'_>,
        observer: &mut impl Observer<A>,
    ) {
        let first = syn.sequence.wrapping_add(1);
        let taken = if is_own { packet.sequence } else { packet.acknowledgment }.wrapping_sub(first) as usize;
        let Some(payload @ [_, ..]) = syn.payload.get(..taken.min(syn.payload.len())) else { return };
        if is_own && taken != payload.len() {
            return;
        }
        let entry = self.entries.get_mut(number);
        begin(entry, packet.time_ns, &mut self.shared, observer);
        if let Some(mut turn) = turn(entry, Side::Originator, packet.time_ns, &mut self.shared) {
            turn.data(first, payload, 0);
            called(entry, self.clock, &mut self.shared, observer);
        }
    }

    fn insert(
        &mut self,
        mut conversation: Conversation,
        hash: u32,
        sender: Sender,
        packet: &Packet<'_>,
        observer: &mut impl Observer<A>,
    ) -> u32 {
        let tunnels = usize::from(!packet.outermost.is_empty());
        self.make_room(observer, |table| {
            // While the index moves there are two of them.
            table.entries.bytes_of_next()
                + table.index.larger().map_or(0, Index::bytes_of)
                + (table.shared.bytes_of_tunnels(tunnels) - table.shared.bytes_of_tunnels(0))
        });
        self.shared.counts.conversations += 1;
        self.shared.keep_tunnel(&mut conversation, sender, packet);
        let number = self.entries.push(Entry { conversation, extra: None });
        self.index.insert(hash, number);
        self.link(number);
        number
    }

    /// Moves a conversation to the class that it should have, and updates its charge. With `heard`, also moves it to
    /// the place for conversations with a packet in this tick. Returns whether it costs more than before.
    #[inline]
    fn settle(&mut self, number: u32, heard: bool) -> bool {
        let now = tick(self.clock);
        let entry = self.entries.get_mut(number);
        let conversation = &mut entry.conversation;
        let [a, b] = conversation.marks;
        let class = if a.has(ENDED) && b.has(ENDED) {
            Class::Closed
        } else if !(a.has(SENT) && b.has(SENT)) {
            Class::Unconfirmed
        } else if conversation.is_tcp() {
            Class::Tcp
        } else {
            Class::Udp
        };
        if class != conversation.class || (heard && now != conversation.touched) {
            self.unlink(number);
            let conversation = &mut self.entries.get_mut(number).conversation;
            let closed = class == Class::Closed && conversation.class != Class::Closed;
            let reset = conversation.flags & RESET != 0;
            conversation.class = class;
            self.shared.counts.finished += u64::from(closed && !reset);
            self.shared.counts.reset += u64::from(closed && reset);
            self.link(number);
        }
        self.charge(number)
    }

    /// Updates the charge of a conversation, and whether it is listed as holding bytes back. Returns whether it costs
    /// more than before.
    #[inline]
    fn charge(&mut self, number: u32) -> bool {
        let Entry { conversation, extra } = self.entries.get_mut(number);
        let Some(extra) = extra else { return false };
        let reserved = extra.reserved_bytes();
        let before = std::mem::replace(&mut extra.charged, reserved);
        let list = &mut self.lists[conversation.class as usize];
        list.charged = list.charged - before + reserved;
        let waits = extra.is_waiting();
        if waits == (conversation.flags & HOLDING != 0) {
            return reserved > before;
        }
        if waits {
            conversation.flags |= HOLDING;
            extra.holding = self.holding.len() as u32;
            self.holding.push(number);
        } else {
            conversation.flags &= !HOLDING;
            let at = extra.holding;
            self.leave_holding(at);
        }
        true
    }

    fn leave_holding(&mut self, at: u32) {
        self.holding.swap_remove(at as usize);
        if let Some(&moved) = self.holding.get(at as usize) {
            let extra = self.entries.get_mut(moved).extra.as_mut();
            extra.expect("it holds bytes back").holding = at;
        }
    }

    /// Puts a conversation at the end of its list.
    fn link(&mut self, number: u32) {
        let touched = tick(self.clock);
        let Entry { conversation, extra } = self.entries.get_mut(number);
        let list = &mut self.lists[conversation.class as usize];
        conversation.touched = touched;
        conversation.older = list.newest;
        conversation.newer = NONE;
        list.len += 1;
        list.charged += extra.as_ref().map_or(0, |extra| extra.charged);
        let before = std::mem::replace(&mut list.newest, number);
        match before {
            NONE => list.oldest = number,
            before => self.entries.get_mut(before).conversation.newer = number,
        }
    }

    fn unlink(&mut self, number: u32) {
        let Entry { conversation, extra } = self.entries.get(number);
        let (older, newer, class) = (conversation.older, conversation.newer, conversation.class as usize);
        let list = &mut self.lists[class];
        list.len -= 1;
        list.charged -= extra.as_ref().map_or(0, |extra| extra.charged);
        self.join_neighbours(class, older, newer, newer, older);
    }

    /// Links the neighbours of a place in a list: `newer` follows the one before it, and `older` precedes the one
    /// behind it.
    fn join_neighbours(&mut self, class: usize, before: u32, behind: u32, newer: u32, older: u32) {
        match before {
            NONE => self.lists[class].oldest = newer,
            before => self.entries.get_mut(before).conversation.newer = newer,
        }
        match behind {
            NONE => self.lists[class].newest = older,
            behind => self.entries.get_mut(behind).conversation.older = older,
        }
    }

    fn oldest(&self, class: Class) -> Option<u32> {
        let oldest = self.lists[class as usize].oldest;
        (oldest != NONE).then_some(oldest)
    }

    /// Evicts conversations until there is room for `needed` more bytes.
    fn make_room(&mut self, observer: &mut impl Observer<A>, needed: impl Fn(&Self) -> usize) {
        while self.reserved_bytes() + needed(self) > self.shared.limits.bytes
            && let Some(number) = self.victim()
        {
            self.remove(number, Reason::Evicted, observer);
        }
    }

    fn victim(&self) -> Option<u32> {
        let unconfirmed = &self.lists[Class::Unconfirmed as usize];
        let theirs = unconfirmed.charged + unconfirmed.len * size_of::<Entry<A>>();
        let longest = |class| self.oldest(class).map(|number| (self.entries.get(number).conversation.touched, number));
        let confirmed =
            || longest(Class::Udp).into_iter().chain(longest(Class::Tcp)).min_by_key(|&(touched, _)| touched);
        self.oldest(Class::Closed)
            .or_else(|| self.oldest(Class::Unconfirmed).filter(|_| theirs > self.shared.limits.bytes / 4))
            .or_else(|| confirmed().map(|(_, number)| number))
            .or_else(|| self.oldest(Class::Unconfirmed))
    }

    #[cold]
    fn remove(&mut self, number: u32, reason: Reason, observer: &mut impl Observer<A>) {
        self.unlink(number);
        let entry = self.entries.get_mut(number);
        let reason = match entry.conversation.class {
            Class::Closed if entry.conversation.flags & RESET != 0 => Reason::Reset,
            Class::Closed => Reason::Finished,
            _ => reason,
        };
        // No packet of it came later, though packets of others may have moved the clock on.
        let last_ns = entry.conversation.last_ns();
        for side in Side::BOTH {
            if let Some(mut turn) = turn(entry, side, last_ns, &mut self.shared) {
                turn.finish();
            }
        }
        let counts = &mut self.shared.counts;
        match reason {
            // These were counted when the conversation was closed.
            Reason::Finished | Reason::Reset => {}
            Reason::Replaced => counts.replaced += 1,
            Reason::TimedOut => counts.timed_out += 1,
            Reason::Evicted => counts.evicted += 1,
            Reason::CaptureEnded => counts.open_at_end += 1,
        }
        let extra = entry.extra.take();
        let held_at =
            (entry.conversation.flags & HOLDING != 0).then(|| extra.as_ref().map_or(0, |extra| extra.holding));
        let (missed, application) = match extra {
            Some(extra) => (extra.missed, Some(extra.application)),
            None => ([0; 2], None),
        };
        let tunnel = self.shared.take_tunnel(&entry.conversation);
        let ending = Ending { reason, missed, tunnel };
        observer.over(&entry.conversation, &ending, application, &mut self.shared.found);
        if let Some(at) = held_at {
            self.leave_holding(at);
        }
        let hash = self.hash(&self.entries.get(number).conversation.key());
        self.index.remove(hash, number);
        let last = (self.entries.len() - 1) as u32;
        self.entries.swap_remove(number);
        if number != last {
            self.renumber(last, number);
        }
    }

    /// Makes the links follow the last conversation, which has taken the number of one that was removed.
    fn renumber(&mut self, from: u32, to: u32) {
        let Entry { conversation, extra } = self.entries.get(to);
        let (older, newer, class) = (conversation.older, conversation.newer, conversation.class as usize);
        let hash = self.hash(&conversation.key());
        if conversation.flags & HOLDING != 0 {
            let at = extra.as_ref().expect("it holds bytes back").holding;
            self.holding[at as usize] = to;
        }
        self.index.renumber(hash, from, to);
        self.join_neighbours(class, older, newer, to, to);
    }
}

/// The end that opened, for a packet that does not show it: the sender, unless it sends from a service's port to a
/// client's. A group of hosts opens nothing.
fn guess(packet: &Packet<'_>, sender: Sender) -> Sender {
    const SERVICES: u16 = 1024;
    let answers = packet.source_port < SERVICES && packet.destination_port >= SERVICES;
    if answers && !is_multicast(packet.destination) { sender.other() } else { sender }
}

fn is_multicast(address: u128) -> bool {
    IpAddr::V6(address.into()).to_canonical().is_multicast()
}

/// Tells of an attempt that led to nothing, and of the RST that refused it. One whose trace made way is told as one
/// that took too long: which others were tried meanwhile has nothing to do with it.
#[cold]
fn attempted<A: Application>(syn: &Syn, refusal: Option<&Packet<'_>>, observer: &mut impl Observer<A>) {
    let reason = if refusal.is_some() { Reason::Reset } else { Reason::TimedOut };
    let ending = Ending { reason, missed: [0; 2], tunnel: syn.tunnel.as_deref().copied() };
    observer.attempted(&Conversation::attempt(syn, refusal), &ending);
}

/// The turn of a side; `None` if the conversation has no application.
#[inline]
fn turn<'a, A: Application>(
    entry: &'a mut Entry<A>,
    side: Side,
    time_ns: u64,
    shared: &'a mut Shared<A::Found>,
) -> Option<Turn<'a, A>> {
    let Entry { conversation, extra } = entry;
    let extra = extra.as_mut()?;
    let (stream, marks) = (&mut conversation.streams[side.index()], &mut conversation.marks[side.index()]);
    Some(Turn { side, time_ns, stream, marks, extra, shared })
}

/// Follows a call of the application: updates which sides it wants now, and lets the observer fetch its results.
#[inline]
fn called<A: Application>(
    entry: &mut Entry<A>,
    time_ns: u64,
    shared: &mut Shared<A::Found>,
    observer: &mut impl Observer<A>,
) {
    for side in Side::BOTH {
        if let Some(mut turn) = turn(entry, side, time_ns, shared) {
            turn.heed();
        }
    }
    if let Some(extra) = &mut entry.extra {
        let tunnel = match entry.conversation.flags & TUNNELLED {
            0 => None,
            _ => shared.tunnels.get(&entry.conversation.key()),
        };
        observer.progress(&entry.conversation, &mut extra.application, tunnel, &mut shared.found);
    }
}

/// Begins the application of a conversation that has none yet.
#[cold]
fn begin<A: Application>(
    entry: &mut Entry<A>,
    time_ns: u64,
    shared: &mut Shared<A::Found>,
    observer: &mut impl Observer<A>,
) {
    entry.extra = observer.begin(&entry.conversation).map(Extra::new);
    shared.counts.applications += u64::from(entry.extra.is_some());
    for side in Side::BOTH {
        let unwanted = entry.extra.as_ref().is_none_or(|extra| !extra.application.wants(side));
        let marks = &mut entry.conversation.marks[side.index()];
        if unwanted {
            marks.set(UNWANTED);
        }
        // This side has closed without a byte.
        if marks.has(ENDED)
            && let Some(extra) = &mut entry.extra
        {
            shared.called = true;
            extra.application.end(side, time_ns, &mut shared.found);
        }
    }
}

#[inline]
fn datagram<A: Application>(
    entry: &mut Entry<A>,
    side: Side,
    packet: &Packet<'_>,
    shared: &mut Shared<A::Found>,
    observer: &mut impl Observer<A>,
) {
    let marks = &mut entry.conversation.marks[side.index()];
    marks.set(SENT);
    if entry.extra.is_none() && !marks.has(UNWANTED) {
        begin(entry, packet.time_ns, shared, observer);
    }
    let marks = &mut entry.conversation.marks[side.index()];
    if let Some(extra) = &mut entry.extra
        && !marks.has(UNWANTED)
    {
        shared.called = true;
        extra.application.data(side, packet.time_ns, packet.payload, &mut shared.found);
        if !extra.application.wants(side) {
            marks.set(UNWANTED);
        }
    }
}

#[inline]
fn segment<A: Application>(
    entry: &mut Entry<A>,
    side: Side,
    packet: &Packet<'_>,
    shared: &mut Shared<A::Found>,
    observer: &mut impl Observer<A>,
) {
    let (here, there) = (side.index(), side.other().index());
    let flags = packet.flags;
    if flags & (SYN | ACK) != SYN {
        entry.conversation.marks[here].set(SENT);
    }
    if flags & RST != 0 {
        return reset(entry, side, packet, shared);
    }
    let mut ahead = false;
    if flags & ACK != 0 {
        let Conversation { streams, marks, .. } = &mut entry.conversation;
        ahead = streams[there].acknowledged(&mut marks[there], packet.acknowledgment);
        if ahead
            && entry.extra.as_ref().is_some_and(|extra| extra.side_is_waiting(side.other()))
            && let Some(mut turn) = turn(entry, side.other(), packet.time_ns, shared)
        {
            turn.give_up_acknowledged();
        }
    }
    let mut sequence = packet.sequence;
    if flags & SYN != 0 {
        if flags & ACK == 0 {
            return;
        }
        sequence = sequence.wrapping_add(1);
        let Conversation { streams, marks, .. } = &mut entry.conversation;
        let (stream, marks) = (&mut streams[here], &mut marks[here]);
        if !marks.has(STARTED) || stream.may_begin_at(*marks, sequence) {
            stream.start(marks, sequence);
        } else if entry.extra.is_none() {
            stream.start_again(marks, sequence);
        }
    }
    let length = (packet.payload.len() as u32).saturating_add(packet.cut);
    let end = sequence.wrapping_add(length);
    let is_fin = flags & FIN != 0;
    if length > 0 || is_fin {
        let mut zeros = 0;
        if length <= PADDING || entry.conversation.flags & (PADDED << here) != 0 {
            match padding(&mut entry.conversation, side, packet, sequence) {
                Some(before) => zeros = before,
                None => return,
            }
        }
        let Conversation { streams, marks, .. } = &entry.conversation;
        let fin_waits = is_fin && marks[here].has(STARTED) && streams[here].next != end;
        if entry.extra.is_none() && (length > 0 || fin_waits) && !marks[here].has(UNWANTED | ENDED) {
            begin(entry, packet.time_ns, shared, observer);
        }
        if let Some(mut turn) = turn(entry, side, packet.time_ns, shared) {
            if zeros > 0 {
                turn.data(turn.stream.next, &[0; PADDING as usize][..zeros], 0);
            }
            if length > 0 {
                turn.data(sequence, packet.payload, packet.cut);
                if ahead {
                    turn.extra.application.answered_early(side);
                }
            }
            if is_fin {
                turn.fin(end);
            }
        } else {
            let Conversation { streams, marks, .. } = &mut entry.conversation;
            streams[here].follow(&mut marks[here], end);
            if is_fin {
                marks[here].set(ENDED);
            }
        }
    } else {
        let Conversation { streams, marks, .. } = &entry.conversation;
        let is_keep_alive = marks[here].has(STARTED) && sequence.wrapping_add(1) == streams[here].next;
        shared.counts.keep_alives += u64::from(is_keep_alive);
    }
}

/// The most padding of a frame: up to the 60 bytes that Ethernet requires, behind 54 bytes of headers.
const PADDING: u32 = 6;

/// Looks whether the payload of a segment is padding that a middlebox took for payload: then the result is `None`.
/// Otherwise it is the number of such bytes before this segment that were payload, as it goes on behind them.
#[cold]
fn padding(conversation: &mut Conversation, side: Side, packet: &Packet<'_>, sequence: u32) -> Option<usize> {
    /// The frame, with a tag of a VLAN.
    const FRAME: u32 = 64;
    let flag = PADDED << side.index();
    let was_padded = conversation.flags & flag != 0;
    let behind = sequence.wrapping_sub(conversation.streams[side.index()].next);
    if packet.flags == ACK
        && behind == 0
        && conversation.has_started(side)
        && packet.wire_len <= FRAME
        && !packet.payload.is_empty()
        && packet.cut == 0
        && packet.payload.iter().all(|&byte| byte == 0)
        && !was_padded
    {
        conversation.flags |= flag;
        return None;
    }
    conversation.flags &= !flag;
    Some(if was_padded && behind <= PADDING { behind as usize } else { 0 })
}

/// Takes an RST, which ends both sides if its sequence number is the next one.
#[cold]
fn reset<A: Application>(entry: &mut Entry<A>, side: Side, packet: &Packet<'_>, shared: &mut Shared<A::Found>) {
    let Conversation { streams, marks, .. } = &mut entry.conversation;
    if marks.iter().all(|marks| marks.has(ENDED)) {
        return;
    }
    let stream = &streams[side.index()];
    let last = entry.extra.as_ref().and_then(|extra| extra.last(side)).unwrap_or(stream.next);
    if !stream.is_reset(marks[side.index()], packet.sequence, last) {
        shared.counts.implausible += 1;
        return;
    }
    for side in Side::BOTH {
        if let Some(mut turn) = turn(entry, side, packet.time_ns, shared) {
            turn.finish();
        }
        entry.conversation.marks[side.index()].set(ENDED);
    }
    entry.conversation.flags |= RESET;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::{UDP, Vlans, mapped};
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// An application that keeps the last bytes of each call, so that its memory goes up and down.
    #[derive(Debug)]
    struct Keeper(Vec<u8>);

    impl Application for Keeper {
        type Found = ();

        fn data(&mut self, _: Side, _: u64, bytes: &[u8], (): &mut ()) {
            self.0 = bytes.to_vec();
        }

        fn gap(&mut self, _: Side, _: u64, _: u64, (): &mut ()) {
            self.0 = Vec::new();
        }

        fn end(&mut self, _: Side, _: u64, (): &mut ()) {}

        fn heap_bytes(&self) -> usize {
            self.0.capacity()
        }
    }

    #[derive(Default)]
    struct Counter {
        begun: u64,
        attempts: u64,
        over: HashMap<Reason, u64>,
    }

    impl Observer<Keeper> for Counter {
        fn begin(&mut self, conversation: &Conversation) -> Option<Keeper> {
            self.begun += 1;
            (!conversation.end(Side::Responder).port().is_multiple_of(5)).then(|| Keeper(Vec::new()))
        }

        fn attempted(&mut self, _: &Conversation, _: &Ending) {
            self.attempts += 1;
        }

        fn over(&mut self, _: &Conversation, ending: &Ending, _: Option<Keeper>, (): &mut ()) {
            *self.over.entry(ending.reason).or_default() += 1;
        }
    }

    /// Checks every value that is cached for speed against the state that it caches.
    fn check(table: &mut Conversations<Keeper>) {
        let (mut held, mut holding, mut tunnelled) = (0, 0, 0);
        let mut charged = [0; 4];
        for number in 0..table.entries.len() as u32 {
            let Entry { conversation, extra } = table.entries.get(number);
            let key = conversation.key();
            let found =
                table.index.find(table.hash(&key), |number| table.entries.get(number).conversation.key() == key);
            assert_eq!(found, Some(number));
            let tunnel = table.shared.tunnels.get(&key);
            assert_eq!(tunnel.is_some(), conversation.flags & TUNNELLED != 0);
            tunnelled += usize::from(tunnel.is_some());
            if let Some(extra) = extra {
                assert_eq!(extra.charged, extra.reserved_bytes());
                charged[conversation.class as usize] += extra.charged;
                held += extra.held();
                assert!(extra.held() <= table.shared.limits.held_per_conversation);
            }
            let waits = extra.as_ref().is_some_and(|extra| extra.is_waiting());
            assert_eq!(waits, conversation.flags & HOLDING != 0);
            if waits {
                holding += 1;
                assert_eq!(table.holding[extra.as_ref().unwrap().holding as usize], number);
            }
        }
        assert_eq!((held, holding), (table.shared.held, table.holding.len()));
        assert!(held <= table.shared.limits.held);
        assert_eq!(tunnelled, table.shared.tunnels.len());
        let mut listed = 0;
        for (list, charged) in table.lists.iter().zip(charged) {
            assert_eq!(list.charged, charged);
            let (mut number, mut before, mut touched, mut len) = (list.oldest, NONE, 0, 0);
            while number != NONE {
                let conversation = &table.entries.get(number).conversation;
                assert_eq!(conversation.older, before);
                assert!(conversation.touched >= touched, "a list is in order of time");
                (before, number, touched, len) = (number, conversation.newer, conversation.touched, len + 1);
            }
            assert_eq!((list.newest, list.len), (before, len));
            listed += len;
        }
        assert_eq!(listed, table.len());
        for since_ns in [0, 1_500_000_000, 10_000_000_000].map(|ago| table.clock.saturating_sub(ago)) {
            let mut active = Vec::new();
            table.active_since(since_ns, |conversation, keeper| active.push((conversation.key(), keeper.is_some())));
            let entries = (0..table.entries.len() as u32).map(|number| table.entries.get(number));
            let expected = entries.filter(|entry| entry.conversation.last_ns() >= since_ns);
            let mut expected: Vec<_> =
                expected.map(|entry| (entry.conversation.key(), entry.extra.is_some())).collect();
            active.sort_unstable();
            expected.sort_unstable();
            assert_eq!(active, expected, "since {since_ns}");
        }
        assert!(table.reserved_bytes() <= table.shared.limits.bytes, "{}", table.reserved_bytes());
    }

    /// An IPv4 header in an IPv4 packet.
    const IP_IN_IP: [u8; 40] = {
        let mut packet = [0; 40];
        (packet[0], packet[3], packet[9]) = (0x45, 40, 4);
        (packet[20], packet[23]) = (0x45, 20);
        packet
    };

    #[derive(Clone, Debug)]
    enum Step {
        Packet { client: u8, tcp: bool, back: bool, sequence: u32, flags: u8, length: usize },
        Mark(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let flags = prop_oneof![
            4 => Just(ACK),
            1 => Just(SYN),
            1 => Just(SYN | ACK),
            1 => Just(FIN | ACK),
            1 => Just(RST),
            1 => any::<u8>(),
        ];
        let sequence = prop_oneof![8 => 0_u32..3000, 1 => any::<u32>()];
        let length = prop_oneof![1 => Just(0_usize), 4 => 1_usize..1500];
        let packet = (0_u8..40, prop::bool::weighted(0.8), any::<bool>(), sequence, flags, length).prop_map(
            |(client, tcp, back, sequence, flags, length)| Step::Packet { client, tcp, back, sequence, flags, length },
        );
        prop::collection::vec(prop_oneof![60 => packet, 1 => (0_u64..40).prop_map(Step::Mark)], 1..600)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

        #[test]
        fn accounts_are_what_they_stand_for(steps in steps(), scarce in any::<bool>()) {
            let limits = if scarce {
                Limits { held: 6000, held_per_conversation: 4000, held_per_side: 3000, ..Limits::new(LEAST_BYTES) }
            } else {
                Limits::default()
            };
            let mut table = Conversations::new(&limits);
            let mut counter = Counter::default();
            let bytes: Vec<u8> = (0..1500_u32).map(|i| i as u8).collect();
            let mut time_ns = 1 << 40;
            for step in steps {
                match step {
                    Step::Packet { client, tcp, back, sequence, flags, length } => {
                        time_ns += 20_000_000;
                        // Two have the same ends, in two VLANs.
                        let host = client / 2;
                        let ends = [(mapped(u32::from(host)), 4000), (mapped(1000), u16::from(host) * 7 + 1)];
                        let (from, to) = if back { (ends[1], ends[0]) } else { (ends[0], ends[1]) };
                        let packet = Packet {
                            time_ns,
                            wire_len: 60,
                            frames: 1,
                            source: from.0,
                            destination: to.0,
                            source_port: from.1,
                            destination_port: to.1,
                            protocol: if tcp { TCP } else { UDP },
                            flags: if tcp { flags } else { 0 },
                            sequence,
                            acknowledgment: sequence ^ 64,
                            payload: &bytes[..length],
                            cut: u32::from(length == 700),
                            outermost: if client % 4 == 0 { &IP_IN_IP } else { &[] },
                            vlans: Vlans::from_bits(u32::from(client % 2)),
                        };
                        table.packet(&packet, &mut counter);
                    }
                    Step::Mark(seconds) => {
                        time_ns += seconds << 30;
                        // Nothing is given up before it is due, and something then.
                        while let Some(due) = table.next_due().filter(|&due| due <= time_ns) {
                            let before = (table.len(), counter.attempts, *table.counts());
                            table.expire(due.saturating_sub(1).max(table.clock), &mut counter);
                            if table.clock < due {
                                prop_assert_eq!(before, (table.len(), counter.attempts, *table.counts()));
                            }
                            table.expire(due, &mut counter);
                            // Traces are looked through at a time that is not too late for any.
                            let looked = table.next_due().is_none_or(|next| next > due);
                            prop_assert!(looked || before != (table.len(), counter.attempts, *table.counts()));
                        }
                        let before = (table.len(), *table.counts());
                        table.expire(time_ns, &mut counter);
                        prop_assert_eq!(before, (table.len(), *table.counts()));
                    }
                }
                check(&mut table);
            }
            table.finish(&mut counter);
            check(&mut table);
            prop_assert_eq!(table.reserved_bytes(), 0);
            let counts = table.counts();
            prop_assert_eq!(counts.conversations, counter.over.values().sum::<u64>());
            let by_reason = [
                (Reason::Finished, counts.finished),
                (Reason::Reset, counts.reset),
                (Reason::Replaced, counts.replaced),
                (Reason::TimedOut, counts.timed_out),
                (Reason::Evicted, counts.evicted),
                (Reason::CaptureEnded, counts.open_at_end),
            ];
            for (reason, count) in by_reason {
                prop_assert_eq!(counter.over.get(&reason).copied().unwrap_or(0), count, "{:?}", reason);
            }
        }
    }
}
