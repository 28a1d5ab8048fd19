//! What a stage gathers of all its partitions, and the way there of packets, events and conversations.

use super::bins::{Bins, Sum};
use super::bounded::{First, Weight};
use super::counted::Counted;
use super::part::{NAME, NameKind, Part, Tables};
use super::series::{SERIES, series_of};
use super::{HostName, Lists, cut};
use crate::hash::HashKeys;
use crate::slot::PARTITIONS;
use corelane_net::conversation::{Conversation, Side, State};
use corelane_net::decode::{TCP, UDP, Vlans};
use corelane_net::protocol::{Event, Protocol};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;

/// What happened in a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Packets of TCP, UDP and other protocols.
    pub packets: [u64; 3],
    /// Their bytes on the wire.
    pub bytes: [u64; 3],
    /// Conversations that began, by their [series](SERIES).
    pub conversations: [u32; SERIES.len()],
}

impl Sum for Bin {
    fn add(&mut self, other: &Self) {
        let add = |sum: &mut [u64], counts: &[u64]| sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        add(&mut self.packets, &other.packets);
        add(&mut self.bytes, &other.bytes);
        self.conversations.add(&other.conversations);
    }
}

/// A conversation with much traffic. The order is by bytes, the larger first, then by time and ends.
///
/// In steps bytes and packets are those since the last snapshot. All else is what is known so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Talked {
    /// The client's end and the server's.
    pub ends: [SocketAddr; 2],
    /// Bytes on the wire that each has sent.
    pub bytes: [u64; 2],
    /// Packets that each has sent.
    pub packets: [u64; 2],
    /// Its least and its largest time, in nanoseconds since the epoch.
    pub times: (u64, u64),
    /// Whether it is a TCP connection.
    pub is_tcp: bool,
    /// The VLANs that it is in.
    pub vlans: Vlans,
    /// Its place among the [series](SERIES).
    pub series: usize,
    /// The state that it ended in, or that it is in.
    pub state: State,
    /// The name that the client asked for, if one was seen.
    pub name: Option<HostName>,
}

impl Weight for Talked {
    fn weight(&self) -> u64 {
        self.bytes[0] + self.bytes[1]
    }
}

impl Talked {
    fn order(&self) -> impl Ord + use<> {
        let rank = (Reverse(self.weight()), Reverse(self.packets[0] + self.packets[1]));
        (rank, self.times, self.ends, self.is_tcp, self.vlans, self.bytes, self.packets, self.series)
    }
}

impl Ord for Talked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Talked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// How often conversations were identified by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The protocol.
    pub protocol: Protocol,
    /// The evidence for it.
    pub text: &'static str,
    /// The conversations.
    pub count: u64,
}

/// What stood before the IP headers of packets: filters of tcpdump's language have to be told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wraps {
    /// The most VLAN tags of an Ethernet frame: 0, 1 or 2.
    pub tags: u8,
    /// Whether there were tunnels, or MPLS, PPPoE, more or other tags on Ethernet.
    pub others: bool,
}

impl Wraps {
    /// Takes a frame whose outermost and innermost IP headers begin there.
    #[inline]
    pub(crate) fn add(&mut self, frame: &[u8], outermost: u16, innermost: u16) {
        const ETHERNET: u16 = 14;
        /// Headers of Linux cooked captures have 16 bytes, or 20, which end in an address then.
        const COOKED: [u16; 2] = [16, 20];
        self.others |= innermost != outermost;
        let Some(more) = outermost.checked_sub(ETHERNET).filter(|&more| more > 0) else { return };
        let before = frame.get(..usize::from(outermost)).unwrap_or_default();
        let has_type = matches!(before, [.., 0x08, 0x00] | [.., 0x86, 0xdd]);
        let mut tags = before.get(12..before.len() - 2).unwrap_or_default().chunks(4);
        let has_tags = tags.all(|tag| matches!(tag, [0x81, 0x00, ..] | [0x88, 0xa8, ..] | [0x91, 0x00, ..]));
        if more % 4 == 0 && more <= 8 && has_type && has_tags {
            self.tags = self.tags.max((more / 4) as u8);
        } else {
            self.others |= !COOKED.contains(&outermost) || outermost == COOKED[1] && has_type;
        }
    }

    fn merge(&mut self, other: Wraps) {
        *self = Wraps { tags: self.tags.max(other.tags), others: self.others || other.others };
    }
}

/// What a stage has gathered.
#[derive(Debug)]
pub(crate) struct StageFacts {
    pub(super) timeline: Bins<Bin, 240>,
    pub(super) conversations: First<Talked>,
    pub(super) evidence: BTreeMap<(Protocol, &'static str), Evidence>,
    pub(crate) wraps: Wraps,
    pub(super) parts: BTreeMap<u8, Tables>,
    pub(super) lists: Lists,
    /// All before this time was given out.
    since_ns: u64,
}

impl StageFacts {
    /// For one capture, or for the first of its steps.
    pub(crate) fn new(lists: Lists) -> Self {
        StageFacts {
            timeline: Bins::default(),
            conversations: First::new(lists.conversations),
            evidence: BTreeMap::new(),
            wraps: Wraps::default(),
            parts: BTreeMap::new(),
            lists,
            since_ns: 0,
        }
    }

    /// Counts a packet with an IP header.
    #[inline(always)]
    pub(crate) fn packet(&mut self, time_ns: u64, protocol: u8, wire_len: u32) {
        let place = match protocol {
            TCP => 0,
            UDP => 1,
            _ => 2,
        };
        let bin = self.timeline.at(time_ns);
        bin.packets[place] += 1;
        bin.bytes[place] += u64::from(wire_len);
    }

    /// Adds what came later, or from other partitions, in no more memory than one capture or step takes.
    pub(crate) fn merge(&mut self, mut other: StageFacts) {
        for (partition, tables) in std::mem::take(&mut other.parts) {
            match self.parts.entry(partition) {
                Entry::Vacant(place) => drop(place.insert(tables)),
                Entry::Occupied(mut own) => own.get_mut().merge(tables),
            }
        }
        self.merge_sums(other);
    }

    /// Adds all but the partitions.
    pub(super) fn merge_sums(&mut self, other: StageFacts) {
        self.timeline.merge(&other.timeline);
        self.conversations.merge(other.conversations);
        for (key, evidence) in other.evidence {
            self.evidence.entry(key).or_insert(Evidence { count: 0, ..evidence }).count += evidence.count;
        }
        self.wraps.merge(other.wraps);
    }
}

/// What is kept of a conversation with payload until it is over.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    counted: Counted,
    /// The name that the client asked for first.
    name: Option<HostName>,
    /// The first bytes of payload, while no protocol is known.
    first: Box<[u8]>,
}

/// Bytes of unknown payload that are kept.
const FIRST: usize = 32;

impl Kept {
    /// Its memory, its own among it.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.first.len() + self.name.as_ref().map_or(0, |name| name.len())
    }

    /// Keeps the first bytes.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        if self.first.is_empty() {
            self.first = bytes[..bytes.len().min(FIRST)].into();
        }
    }
}

/// A stage, while it gathers.
#[derive(Debug)]
pub(crate) struct Gatherer {
    facts: StageFacts,
    /// By the numbers of partitions.
    parts: Box<[Part]>,
}

impl Gatherer {
    /// For one capture, or for the first of its steps.
    pub(crate) fn new(lists: Lists, keys: HashKeys) -> Self {
        let parts = (0..PARTITIONS).map(|_| Part::new(keys, lists.in_steps)).collect();
        Gatherer { facts: StageFacts::new(lists), parts }
    }

    /// Counts a packet with an IP header.
    #[inline(always)]
    pub(crate) fn packet(&mut self, time_ns: u64, protocol: u8, wire_len: u32) {
        self.facts.packet(time_ns, protocol, wire_len);
    }

    /// Takes a frame whose outermost and innermost IP headers begin there.
    #[inline]
    pub(crate) fn wraps(&mut self, frame: &[u8], outermost: u16, innermost: u16) {
        self.facts.wraps.add(frame, outermost, innermost);
    }

    /// Where the facts of a partition go.
    #[inline]
    pub(crate) fn of(&mut self, partition: u8) -> Gather<'_> {
        Gather { stage: &mut self.facts, part: &mut self.parts[usize::from(partition)] }
    }

    /// All before this time was given out, in nanoseconds since the epoch.
    pub(crate) fn since_ns(&self) -> u64 {
        self.facts.since_ns
    }

    /// Takes what was gathered before this time.
    pub(crate) fn take_before(&mut self, time_ns: u64) -> StageFacts {
        let next = StageFacts { since_ns: time_ns, ..StageFacts::new(self.facts.lists) };
        let parts = (0..=u8::MAX).zip(&mut self.parts);
        let parts = parts.filter_map(|(partition, part)| Some((partition, part.take()?))).collect();
        StageFacts { parts, ..std::mem::replace(&mut self.facts, next) }
    }
}

/// Where the facts of one partition go.
#[derive(Debug)]
pub(crate) struct Gather<'a> {
    stage: &'a mut StageFacts,
    part: &'a mut Part,
}

impl Gather<'_> {
    /// A conversation has its first payload. In steps something is kept of each; else only once there is something, as
    /// of most there is nothing.
    pub(crate) fn begin(&mut self, conversation: &Conversation) -> Option<Box<Kept>> {
        let in_steps = self.stage.lists.in_steps;
        in_steps.then(|| Box::new(Kept { counted: self.part.quiet.remove(conversation), ..Kept::default() }))
    }

    /// Takes an event of a conversation.
    pub(crate) fn event(&mut self, conversation: &Conversation, event: &Event, kept: &mut Option<Box<Kept>>) {
        let ends = |client: Side| [client, client.other()].map(|side| conversation.end(side).ip());
        let mut asked = |kind, name: &str, client, time_ns| {
            let name = &*lower(name);
            self.part.name(kind, name, ends(client), time_ns);
            let kept = kept.get_or_insert_default();
            if kept.name.is_none() {
                kept.name = Some(name.into());
            }
        };
        match event {
            Event::Identified(found) => {
                let evidence = Evidence { protocol: found.protocol, text: found.evidence, count: 0 };
                self.stage.evidence.entry((found.protocol, found.evidence)).or_insert(evidence).count += 1;
                if let Some(kept) = kept {
                    kept.first = Box::default();
                }
            }
            Event::Http(exchange) => {
                if let Some(request) = &exchange.request
                    && let Some((name, _)) = request.host_and_port()
                {
                    asked(NameKind::Http, name, exchange.client, request.time_ns);
                }
            }
            Event::ClientHello(hello) => {
                let name = hello.server_name.as_deref();
                if let Some(name) = name {
                    asked(NameKind::Tls, name, hello.client, hello.time_ns);
                }
                if let Some(ja4) = hello.ja4.as_deref() {
                    let name = name.map(lower);
                    self.part.fingerprint(ja4, name.as_deref(), ends(hello.client)[0], hello.time_ns);
                }
            }
            Event::Dns(message) if message.is_response() => {
                if let Some(question) = message.questions.first() {
                    self.part.response(&lower(&question.name), message, ends(message.side.other()));
                }
            }
            Event::Dns(message) => {
                for question in &message.questions {
                    asked(NameKind::Dns, &question.name, message.side, message.time_ns);
                }
            }
            _ => {}
        }
    }

    /// Counts what a conversation has had since it was counted last, if anything: the rest, if it is over. `kept` is
    /// what is kept of it, if anything is.
    pub(crate) fn count(
        &mut self,
        conversation: &Conversation,
        protocol: Option<Protocol>,
        client: Side,
        (payload, kept): (bool, Option<&mut Kept>),
        is_over: bool,
    ) {
        let mut none = Kept::default();
        let kept = match kept {
            Some(kept) => kept,
            None if payload => &mut none,
            None => {
                if is_over {
                    // In a whole capture nothing was counted before.
                    if self.stage.lists.in_steps {
                        none.counted = self.part.quiet.remove(conversation);
                    }
                } else if let Some(counted) = self.part.quiet.of(conversation) {
                    none.counted = *counted;
                } else {
                    return;
                }
                &mut none
            }
        };
        let Kept { counted, name, first } = kept;
        let Some(news) = counted.count(conversation) else { return };
        let series = protocol.map_or(Protocol::ALL.len() + usize::from(!payload), series_of);
        if news.is_first {
            // Its SYN may have come long before, and bins would be as wide as that is long ago.
            let time_ns = conversation.first_ns().max(self.stage.since_ns);
            self.stage.timeline.aside(time_ns).conversations[series] += 1;
        }
        let sides = [client, client.other()];
        let bytes = sides.map(|side| news.bytes[side.index()]);
        self.stage.conversations.add(bytes[0] + bytes[1], || Talked {
            ends: sides.map(|side| conversation.end(side)),
            bytes,
            packets: sides.map(|side| news.packets[side.index()]),
            times: (conversation.first_ns(), conversation.last_ns()),
            is_tcp: conversation.is_tcp(),
            vlans: conversation.vlans(),
            series,
            state: conversation.state(),
            name: name.clone(),
        });
        let own = |it: &mut HostName| if is_over { std::mem::take(it) } else { it.clone() };
        // The server of a DNS query is not the host of that name.
        let name = name.as_mut().filter(|_| protocol != Some(Protocol::Dns)).map(own);
        let is_unknown = protocol.is_none() && payload;
        let unknown = is_unknown.then(|| if is_over { std::mem::take(first) } else { first.clone() });
        self.part.conversation(conversation, (&news, counted), client, protocol.map(series_of), name, unknown);
        if !payload
            && !is_over
            && let Some(own) = self.part.quiet.of(conversation)
        {
            *own = *counted;
        }
    }
}

/// A name as it is counted: in lower case, and not too long.
fn lower(name: &str) -> HostName {
    let mut name = cut(name, NAME);
    name.make_ascii_lowercase();
    name
}
