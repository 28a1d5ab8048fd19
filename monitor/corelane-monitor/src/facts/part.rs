//! What one partition gathers, in bounded tables, and how the partitions are joined.

use super::bounded::{Bounded, Few, Tally, Weight};
use super::counted::{Counted, News, Quiet};
use super::{Facts, NAMES, UNKNOWN, cut};
use crate::hash::HashKeys;
use corelane_net::conversation::{Conversation, Side};
use corelane_net::decode::flags::{ACK, FIN, PSH, RST, SYN};
use corelane_net::decode::mapped;
use corelane_net::protocol::Protocol;
use corelane_net::protocol::dns::Message;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};

/// The most entries of tables; a little less than a power of two, by which tables grow.
const HOST_ENTRIES: usize = 896;
const NAME_ENTRIES: usize = 448;
/// In steps, of a second or so, there are fewer: so there is memory for what hosts reach, and what was counted.
const NAME_ENTRIES_IN_STEPS: usize = 224;
const OTHER_ENTRIES: usize = 224;
/// The most conversations that wait to be added up.
const WAITING: usize = 32;
/// The most bytes of a name.
pub(super) const NAME: usize = 128;
/// The most bytes of a name that a host keeps.
const HOST_NAME: usize = 64;
/// What the tables hold, as [`Facts::cut`] says it.
const TABLES: [&str; 6] = [
    "fingerprints",
    "ports with unknown payload",
    "hosts",
    NameKind::Http.table(),
    NameKind::Tls.table(),
    NameKind::Dns.table(),
];

/// A kind of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// The hosts of HTTP requests.
    Http,
    /// The servers that ClientHellos name, over TCP or in QUIC.
    Tls,
    /// The names of DNS queries and responses.
    Dns,
}

impl NameKind {
    /// What [`Facts::cut`] calls their table.
    pub(crate) const fn table(self) -> &'static str {
        match self {
            NameKind::Http => "names in HTTP",
            NameKind::Tls => "names in TLS",
            NameKind::Dns => "names in DNS",
        }
    }
}

/// A name, in lower case. One that is too long ends in `…`.
pub type HostName = Box<str>;

/// A port of TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// Whether it is one of TCP.
    pub is_tcp: bool,
    /// The number.
    pub number: u16,
}

/// A port of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Service {
    /// The host.
    pub host: IpAddr,
    /// The port.
    pub port: Port,
}

/// The least and the largest time of something, in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub u64, pub u64);

impl Default for Span {
    fn default() -> Self {
        Span(u64::MAX, 0)
    }
}

impl Span {
    pub(super) fn add(&mut self, other: Span) {
        *self = Span(self.0.min(other.0), self.1.max(other.1));
    }
}

/// The traffic of a host in conversations. It fills one line of memory: those of all partitions are more than a cache
/// holds, and which one is next cannot be foreseen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub struct Host {
    /// Bytes on the wire that it sent.
    pub sent: u64,
    /// Bytes on the wire that it received.
    pub received: u64,
    /// Its conversations. In steps each counts once: in the step in which it has its first packet.
    pub conversations: u32,
    /// Those that it answered. In steps each counts once: in the step of its first answer.
    pub served: u32,
    /// The least and largest time of its conversations, in steps too: of all that have a packet in the step.
    pub span: Span,
    /// The protocols that were identified, as bits by their [places](super::series_of). From [`TCP_PORTS`] on a bit of
    /// each port says whether it is of TCP, then a set bit ends them.
    marks: u32,
    /// Ports at which it answered.
    ports: [u16; Host::MOST_PORTS],
    /// What few hosts have.
    more: Option<Box<More>>,
}

const _: () = assert!(size_of::<Host>() == 64);

/// The place among a host's marks of its first port.
const TCP_PORTS: usize = 25;

const _: () = assert!(Protocol::ALL.len() <= TCP_PORTS && TCP_PORTS + Host::MOST_PORTS < 32);

/// More of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct More {
    names: Few<HostName, 3>,
    reached: Few<Service, 8>,
    /// It answered at more ports than are kept.
    has_more_ports: bool,
}

/// How often a name was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// How often: requests, hellos or queries.
    pub count: u64,
    /// Answers in DNS responses.
    pub answers: u64,
    /// DNS responses that say that there is no such name.
    pub unknown: u64,
    /// The hosts that asked, and how often. One of which only an answer was seen asked zero times.
    pub clients: Tally<IpAddr, 8>,
    /// The hosts that were asked.
    pub servers: Few<IpAddr, 4>,
    /// The least and largest time.
    pub span: Span,
}

/// How often a fingerprint was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    /// How many hellos had it.
    pub count: u64,
    /// The hosts that sent them.
    pub clients: Few<IpAddr, 8>,
    /// Servers that they named.
    pub names: Few<HostName, 2>,
    /// The least and largest time.
    pub span: Span,
}

/// Conversations with payload of no known protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// How many.
    pub conversations: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// The ends of one, client first.
    pub example: Option<(IpAddr, IpAddr)>,
    /// The first bytes of its payload.
    pub first: Box<[u8]>,
    /// The least and largest time.
    pub span: Span,
}

impl Weight for Host {
    fn weight(&self) -> u64 {
        self.sent + self.received
    }
}

impl Weight for Name {
    fn weight(&self) -> u64 {
        self.count
    }
}

impl Weight for Fingerprint {
    fn weight(&self) -> u64 {
        self.count
    }
}

impl Weight for Unknown {
    fn weight(&self) -> u64 {
        self.bytes
    }
}

/// What a partition gathers.
#[derive(Debug)]
pub(super) struct Part {
    tables: Tables,
    /// What is to be added to hosts and ports: where many are added in a row, the memory of all is fetched at once.
    waiting: Vec<Waiting>,
    /// What was counted of conversations that go on: stays when the rest is taken.
    pub(super) quiet: Quiet,
    in_steps: bool,
}

/// What a conversation means for its hosts, and for its server's port.
#[derive(Debug)]
struct Waiting {
    /// Client and server.
    hosts: [Bits; 2],
    /// Bytes that each has sent.
    sent: [u64; 2],
    span: Span,
    protocols: u32,
    /// The server's.
    port: Port,
    /// Whether it was never counted before.
    is_first: bool,
    /// Whether the server has answered …
    is_served: bool,
    /// … and that was never counted before.
    is_first_served: bool,
    /// Whether the server has answered an attempt, as a scan counts it: by TCP a SYN, by UDP a datagram.
    is_open: bool,
    /// The name by which the server was asked.
    name: Option<HostName>,
    /// The first bytes of its payload, if that is of no known protocol …
    unknown: Option<Box<[u8]>>,
    /// … and whether that was never counted before.
    is_first_unknown: bool,
}

impl Part {
    pub(super) fn new(keys: HashKeys, in_steps: bool) -> Self {
        Part { tables: Tables::new(keys, in_steps), waiting: Vec::new(), quiet: Quiet::new(keys), in_steps }
    }

    /// Takes what was gathered, if there is anything.
    pub(super) fn take(&mut self) -> Option<Tables> {
        self.settle();
        (!self.tables.is_empty()).then(|| self.tables.take())
    }

    /// Counts what a conversation has had, at both its hosts. `series` is the place of its protocol; without one,
    /// `unknown` is how its payload begins, which its port has.
    pub(super) fn conversation(
        &mut self,
        conversation: &Conversation,
        (news, counted): (&News, &mut Counted),
        client: Side,
        series: Option<usize>,
        name: Option<HostName>,
        unknown: Option<Box<[u8]>>,
    ) {
        let server = client.other();
        let ends = [client, server].map(|side| conversation.end(side));
        let flags = conversation.tcp_flags(server);
        let is_refused = conversation.is_tcp() && flags & (SYN | RST | PSH | FIN) == RST;
        let is_served = conversation.packets(server) > 0 && !is_refused;
        let is_agreed = conversation.tcp_flags(client) & SYN != 0 && flags & (SYN | ACK) == SYN | ACK;
        let is_first_unknown = unknown.is_some() && !counted.is_unknown;
        self.waiting.push(Waiting {
            hosts: ends.map(|end| bits(end.ip())),
            sent: [client, server].map(|side| news.bytes[side.index()]),
            span: Span(conversation.first_ns(), conversation.last_ns()),
            protocols: series.map_or(0, |series| 1 << series),
            port: Port { is_tcp: conversation.is_tcp(), number: ends[1].port() },
            is_first: news.is_first,
            is_served,
            is_first_served: is_served && !counted.is_served,
            is_open: is_served && (is_agreed || !conversation.is_tcp()),
            name: name.map(|name| if name.len() > HOST_NAME { cut(&name, HOST_NAME) } else { name }),
            unknown,
            is_first_unknown,
        });
        counted.is_served |= is_served;
        counted.is_unknown |= is_first_unknown;
        if self.waiting.len() >= WAITING {
            self.settle();
        }
    }

    /// Adds up what waits.
    fn settle(&mut self) {
        let Part { tables: Tables { hosts, unknown, .. }, waiting, in_steps, .. } = self;
        let mut hashes = [([0; 2], 0); WAITING];
        for ((of_hosts, of_port), waiting) in hashes.iter_mut().zip(&*waiting) {
            *of_hosts = waiting.hosts.map(|host| hosts.hash(&host));
            of_hosts.iter().for_each(|&hash| hosts.prefetch_index(hash));
            if waiting.unknown.is_some() {
                *of_port = unknown.hash(&waiting.port);
                unknown.prefetch_index(*of_port);
            }
        }
        // The index of all is there, or on its way, and says where the entries are.
        for ((of_hosts, of_port), waiting) in hashes.iter().zip(&*waiting) {
            of_hosts.iter().for_each(|&hash| hosts.prefetch(hash));
            if waiting.unknown.is_some() {
                unknown.prefetch(*of_port);
            }
        }
        for (mut waiting, ([of_client, of_server], of_port)) in waiting.drain(..).zip(hashes) {
            if let Some(first) = waiting.unknown.take() {
                unknown.update_hashed(of_port, &waiting.port, |&port| port, |entry| entry.add(&waiting, first));
            }
            let Waiting { hosts: [client, server], port, is_served, is_open, .. } = waiting;
            let own = |&bits: &Bits| bits;
            hosts.update_hashed(of_client, &client, own, |host| {
                host.add(&waiting, 0);
                if is_open && *in_steps {
                    let service = Service { host: address(server), port };
                    host.more().reached.add(&service, |&service| service);
                }
            });
            hosts.update_hashed(of_server, &server, own, |host| {
                // What a host sends to itself counts once.
                if client != server {
                    host.add(&waiting, 1);
                }
                host.served = host.served.saturating_add(u32::from(waiting.is_first_served));
                if is_served {
                    host.add_port(port);
                }
                if let Some(name) = &waiting.name {
                    host.more().names.add(&**name, |name| name.into());
                }
            });
        }
    }

    /// Counts a name that a client asked for at a server.
    pub(super) fn name(&mut self, kind: NameKind, name: &str, ends: [IpAddr; 2], time_ns: u64) {
        self.about(kind, name, ends, time_ns, |entry| {
            entry.count += 1;
            entry.clients.add(ends[0], 1);
        });
    }

    /// Counts what a DNS response says of a name.
    pub(super) fn response(&mut self, name: &str, message: &Message, ends: [IpAddr; 2]) {
        const NO_SUCH_NAME: u8 = 3;
        self.about(NameKind::Dns, name, ends, message.time_ns, |entry| {
            entry.clients.add(ends[0], 0);
            entry.answers += message.answers.len() as u64;
            entry.unknown += u64::from(message.rcode() == NO_SUCH_NAME);
        });
    }

    /// Takes what was said about a name between a client and a server.
    fn about(
        &mut self,
        kind: NameKind,
        name: &str,
        [_, server]: [IpAddr; 2],
        time_ns: u64,
        count: impl FnOnce(&mut Name),
    ) {
        self.tables.names[kind as usize].update(
            name,
            |name| name.into(),
            |entry| {
                count(entry);
                entry.servers.add(&server, |&host| host);
                entry.span.add(Span(time_ns, time_ns));
            },
        );
    }

    pub(super) fn fingerprint(&mut self, ja4: &str, name: Option<&str>, client: IpAddr, time_ns: u64) {
        self.tables.fingerprints.update(
            ja4,
            |ja4| ja4.into(),
            |entry| {
                entry.count += 1;
                entry.clients.add(&client, |&host| host);
                if let Some(name) = name {
                    entry.names.add(name, |name| cut(name, HOST_NAME));
                }
                entry.span.add(Span(time_ns, time_ns));
            },
        );
    }
}

/// An address, IPv4 mapped into IPv6, as two words: a `u128` would make the table of the keys a third larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Bits(u64, u64);

fn bits(address: IpAddr) -> Bits {
    let bits = match address {
        IpAddr::V4(address) => mapped(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    Bits((bits >> 64) as u64, bits as u64)
}

fn address(Bits(high, low): Bits) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))).to_canonical()
}

/// What was gathered of a partition.
#[derive(Debug)]
pub(crate) struct Tables {
    /// By address.
    hosts: Bounded<Bits, Host>,
    names: [Bounded<HostName, Name>; 3],
    fingerprints: Bounded<HostName, Fingerprint>,
    unknown: Bounded<Port, Unknown>,
}

impl Tables {
    fn new(keys: HashKeys, in_steps: bool) -> Self {
        let names = if in_steps { NAME_ENTRIES_IN_STEPS } else { NAME_ENTRIES };
        Tables {
            hosts: Bounded::new(HOST_ENTRIES, keys),
            names: std::array::from_fn(|_| Bounded::new(names, keys)),
            fingerprints: Bounded::new(OTHER_ENTRIES, keys),
            unknown: Bounded::new(OTHER_ENTRIES, keys),
        }
    }

    fn take(&mut self) -> Self {
        Tables {
            hosts: self.hosts.take(),
            names: self.names.each_mut().map(Bounded::take),
            fingerprints: self.fingerprints.take(),
            unknown: self.unknown.take(),
        }
    }

    fn is_empty(&self) -> bool {
        self.hosts.is_empty()
            && self.names.iter().all(Bounded::is_empty)
            && self.fingerprints.is_empty()
            && self.unknown.is_empty()
    }

    /// Adds those of the same partition that came later, within the bounds of one.
    pub(super) fn merge(&mut self, other: Tables) {
        self.hosts.merge(other.hosts, Host::merge);
        self.names.iter_mut().zip(other.names).for_each(|(own, other)| own.merge(other, Name::merge));
        self.fingerprints.merge(other.fingerprints, Fingerprint::merge);
        self.unknown.merge(other.unknown, Unknown::merge);
    }
}

/// Joins partitions in this order, and lists so many hosts.
pub(super) fn join(parts: impl Iterator<Item = Tables>, most_hosts: usize, facts: &mut Facts) {
    let mut hosts = HashMap::<Bits, Host, _>::with_hasher(HashKeys::random());
    let mut names: [BTreeMap<HostName, Name>; 3] = Default::default();
    let mut fingerprints = BTreeMap::<HostName, Fingerprint>::new();
    let mut unknown = BTreeMap::<Port, Unknown>::new();
    let mut is_cut = [false; 6];
    for part in parts {
        let Tables { hosts: of_hosts, names: of_names, fingerprints: of_fingerprints, unknown: of_unknown } = part;
        let tables = [of_fingerprints.is_cut(), of_unknown.is_cut(), of_hosts.is_cut()];
        let tables = tables.into_iter().chain(of_names.iter().map(Bounded::is_cut));
        is_cut.iter_mut().zip(tables).for_each(|(all, own)| *all |= own);
        of_hosts.into_entries().for_each(|(host, own)| hosts.entry(host).or_default().merge(own));
        for (names, own) in names.iter_mut().zip(of_names) {
            own.into_entries().for_each(|(name, own)| names.entry(name).or_default().merge(own));
        }
        of_fingerprints.into_entries().for_each(|(ja4, own)| fingerprints.entry(ja4).or_default().merge(own));
        of_unknown.into_entries().for_each(|(port, own)| unknown.entry(port).or_default().merge(own));
    }
    facts.cut = TABLES.into_iter().zip(is_cut).filter(|&(_, is_cut)| is_cut).map(|(name, _)| name).collect();
    // There are many, of which few are listed.
    let (hosts, more_hosts) = heaviest(hosts, (most_hosts, 0));
    facts.hosts = hosts.into_iter().map(|(bits, host)| (address(bits), host)).collect();
    facts.more_hosts = more_hosts;
    for (kind, names) in names.into_iter().enumerate() {
        (facts.names[kind], facts.more_names[kind]) = heaviest(names, NAMES);
    }
    (facts.fingerprints, facts.more_fingerprints) = heaviest(fingerprints, NAMES);
    (facts.unknown, facts.more_unknown) = heaviest(unknown, (UNKNOWN, 0));
}

/// The heaviest and the lightest entries, heavy ones first, and how many others there were.
fn heaviest<K: Ord, V: Weight>(
    entries: impl IntoIterator<Item = (K, V)>,
    (heavy, light): (usize, usize),
) -> (Vec<(K, V)>, u64) {
    let mut entries: Vec<_> = entries.into_iter().collect();
    let order = |a: &(K, V), b: &(K, V)| (Reverse(a.1.weight()), &a.0).cmp(&(Reverse(b.1.weight()), &b.0));
    let more = entries.len().saturating_sub(heavy + light);
    if more > 0 && light == 0 {
        entries.select_nth_unstable_by(heavy, order);
        entries.truncate(heavy);
    }
    entries.sort_unstable_by(order);
    if entries.len() > heavy + light {
        entries.drain(heavy..heavy + more);
    }
    (entries, more as u64)
}

impl Host {
    /// Adds what a conversation means for both its hosts; this is the client if `side` is 0.
    fn add(&mut self, waiting: &Waiting, side: usize) {
        self.sent += waiting.sent[side];
        self.received += waiting.sent[1 - side];
        self.conversations = self.conversations.saturating_add(u32::from(waiting.is_first));
        self.span.add(waiting.span);
        self.marks |= waiting.protocols;
    }

    fn merge(&mut self, other: Host) {
        self.sent += other.sent;
        self.received += other.received;
        self.conversations = self.conversations.saturating_add(other.conversations);
        self.served = self.served.saturating_add(other.served);
        self.span.add(other.span);
        other.ports().for_each(|port| self.add_port(port));
        self.marks |= other.marks & ((1 << TCP_PORTS) - 1);
        if let Some(more) = other.more {
            self.more().names.merge(more.names);
            self.more().reached.merge(more.reached);
            self.more().has_more_ports |= more.has_more_ports;
        }
    }

    /// How many ports are kept.
    fn port_count(&self) -> usize {
        (self.marks >> TCP_PORTS).checked_ilog2().unwrap_or(0) as usize
    }

    fn add_port(&mut self, port: Port) {
        if self.ports().any(|known| known == port) {
            return;
        }
        let count = self.port_count();
        let Some(place) = self.ports.get_mut(count) else { return self.more().has_more_ports = true };
        *place = port.number;
        let bit = 1 << (TCP_PORTS + count);
        self.marks = self.marks & !bit | if port.is_tcp { bit } else { 0 } | bit << 1;
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    const MOST_PORTS: usize = 6;

    /// The first six ports at which it answered, in the order in which they came.
    pub fn ports(&self) -> impl Iterator<Item = Port> {
        let port =
            |place: usize| Port { is_tcp: self.marks >> (TCP_PORTS + place) & 1 == 1, number: self.ports[place] };
        (0..self.port_count()).map(port)
    }

    /// Whether it answered at others.
    pub fn has_more_ports(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.has_more_ports)
    }

    /// Names by which it was asked, in HTTP and in hellos.
    pub fn names(&self) -> &Few<HostName, 3> {
        self.more.as_ref().map_or(const { &Few::new() }, |more| &more.names)
    }

    /// Services that answered it, refusals aside. Only in steps.
    pub fn reached(&self) -> &Few<Service, 8> {
        self.more.as_ref().map_or(const { &Few::new() }, |more| &more.reached)
    }

    /// The protocols that it spoke.
    pub fn protocols(&self) -> impl Iterator<Item = Protocol> {
        Protocol::ALL.iter().copied().enumerate().filter(|(place, _)| self.marks >> place & 1 == 1).map(|(_, it)| it)
    }
}

impl Name {
    fn merge(&mut self, other: Name) {
        self.count += other.count;
        self.answers += other.answers;
        self.unknown += other.unknown;
        self.clients.merge(other.clients);
        self.servers.merge(other.servers);
        self.span.add(other.span);
    }
}

impl Fingerprint {
    fn merge(&mut self, other: Fingerprint) {
        self.count += other.count;
        self.clients.merge(other.clients);
        self.names.merge(other.names);
        self.span.add(other.span);
    }
}

impl Unknown {
    fn add(&mut self, waiting: &Waiting, first: Box<[u8]>) {
        self.conversations += u64::from(waiting.is_first_unknown);
        self.bytes += waiting.sent.iter().sum::<u64>();
        self.span.add(waiting.span);
        if self.first.is_empty() {
            let [client, server] = waiting.hosts.map(address);
            (self.example, self.first) = (Some((client, server)), first);
        }
    }

    fn merge(&mut self, other: Unknown) {
        self.conversations += other.conversations;
        self.bytes += other.bytes;
        self.span.add(other.span);
        if self.first.is_empty() {
            (self.example, self.first) = (other.example, other.first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_its_first_ports_and_says_if_there_are_more() {
        let port = |number: u16| Port { is_tcp: number % 4 < 2, number };
        let of = |numbers: std::ops::Range<u16>| {
            let mut host = Host { marks: 1 << 17 | 1, ..Host::default() };
            // A port counts once.
            numbers.clone().chain(numbers).for_each(|number| host.add_port(port(number)));
            host
        };
        for count in 0..8 {
            let host = of(0..count);
            let kept: Vec<_> = (0..count.min(6)).map(port).collect();
            assert_eq!((host.ports().collect::<Vec<_>>(), host.has_more_ports()), (kept, count > 6));
            assert_eq!(host.protocols().collect::<Vec<_>>(), [Protocol::Http1, Protocol::Wireguard]);
            for own in 0..8 {
                let mut joined = of(100..100 + own);
                joined.merge(host.clone());
                let kept: Vec<_> = (100..100 + own.min(6)).chain(0..count.min(6)).map(port).take(6).collect();
                let has_more = own + count > 6;
                assert_eq!((joined.ports().collect::<Vec<_>>(), joined.has_more_ports()), (kept, has_more));
                assert_eq!(joined.protocols().count(), 2);
            }
        }
        // The same number is another port of TCP than of UDP.
        let mut host = Host::default();
        [true, false].into_iter().for_each(|is_tcp| host.add_port(Port { is_tcp, number: 53 }));
        assert_eq!(host.ports().map(|port| port.is_tcp).collect::<Vec<_>>(), [true, false]);
    }
}
