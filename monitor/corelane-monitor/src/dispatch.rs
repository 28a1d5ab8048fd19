//! The first stage: decodes just enough of a record to know its partition.

use crate::hash::HashKeys;
use crate::lending::{Lending, Lent};
use crate::report::Tunnels;
use crate::room::{self, Room};
use crate::run::Run;
use crate::settings::Settings;
use crate::slot::{PARTITIONS, Slot};
use crate::steps::{Jumps, Steps, step_of};
use crate::through::{Passages, Through, hosts};
use corelane_net::capture::{LinkType, Record};
use corelane_net::decode::{
    Closed, Decoded, Located, NoDatagram, NoPacket, Question, TCP, Transport, Vlans, arp, datagram_at, decode,
    decode_at, innermost, is_arp, locate, plain_v4, plain_v6, question, transport,
};
use corelane_net::defrag::{Counts, Defragmenter, Limits};
use std::sync::Arc;

/// Decodes records, counts the facts that need no state, and passes on [slots](crate::slot).
#[derive(Clone, Debug)]
pub struct Dispatcher {
    keys: HashKeys,
    packets: u64,
    bytes: u64,
    tcp: u64,
    malformed: u64,
    undecoded: u64,
    /// Those of them that are of ARP.
    arp: u64,
    /// The least and the largest of any record; the first is the larger one before there is one.
    times: (u64, u64),
    steps: Steps,
    /// Set if tunnels are opened.
    tunnels: Option<Tunnels>,
    fragments: Fragments,
    /// The tunnels of packets whose slots were asked for.
    passages: Passages,
    /// Set if time passes in steps and memory has a limit.
    lending: Option<Box<Lending>>,
}

/// Fragments of packets whose slots were asked for.
#[derive(Debug)]
struct Fragments {
    limits: Limits,
    /// One for each partition, once there is a fragment.
    partitions: Vec<Option<Box<Defragmenter>>>,
    buffer: Vec<u8>,
    /// Those of datagrams that are not here.
    counts: Counts,
}

/// A clone has the counts, and no fragments.
impl Clone for Fragments {
    fn clone(&self) -> Self {
        Fragments { counts: self.counts(), ..Fragments::new(self.limits) }
    }
}

impl Fragments {
    fn new(limits: Limits) -> Self {
        Fragments { limits, partitions: Vec::new(), buffer: Vec::new(), counts: Counts::default() }
    }

    /// The counts, if no more fragments follow.
    fn counts(&self) -> Counts {
        let mut counts = self.counts;
        for fragments in self.partitions.iter().flatten() {
            counts.add(fragments.counts());
            counts.timed_out += fragments.waiting();
        }
        counts
    }
}

/// What gets the slots of packets.
pub(crate) trait Sink {
    /// Those of one packet: one for IPv4, two for IPv6.
    fn slots<const N: usize>(&mut self, packet: [Slot; N]);
}

/// Gets each slot with its partition.
struct Each<F>(F);

impl<F: FnMut(u8, Slot)> Sink for Each<F> {
    #[inline(always)]
    fn slots<const N: usize>(&mut self, packet: [Slot; N]) {
        packet.into_iter().for_each(|slot| (self.0)(slot.partition(), slot));
    }
}

/// Where a record's packet is, and where it belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The offset of its IP header; inside of tunnels, if they are opened, of the innermost.
    pub(crate) network: u16,
    /// The offset of the outermost IP header.
    pub(crate) outermost: u16,
    pub(crate) partition: u8,
}

#[inline]
fn placed<'a>(keys: &HashKeys, (outermost, located, part): (u16, Located, Record<'a>)) -> (Place, Record<'a>) {
    let Located { at, source, destination, is_v4 } = located;
    let partition = match is_v4 {
        true => keys.partition_v4(source as u32, destination as u32),
        false => keys.partition_v6(source, destination),
    };
    (Place { network: at, outermost, partition }, part)
}

impl Dispatcher {
    /// A Dispatcher that has seen no record. The SubAnalyzers must be of the same run.
    pub fn new(run: &Run, settings: &Settings) -> Self {
        let tunnels = settings.tunnels.then(Tunnels::default);
        Dispatcher {
            keys: run.keys,
            packets: 0,
            bytes: 0,
            tcp: 0,
            malformed: 0,
            undecoded: 0,
            arp: 0,
            times: (u64::MAX, 0),
            steps: Steps::none(),
            tunnels,
            fragments: Fragments::new(room::fragments(settings)),
            passages: Passages::new(settings, false, run.keys),
            lending: None,
        }
    }

    /// The same, for a run in which time passes in steps, and failures are forgotten after so many seconds.
    pub(crate) fn in_steps(run: &Run, settings: &Settings, forget_s: u64) -> Self {
        let passages = Passages::new(settings, true, run.keys);
        let lending = Lending::new(run.keys, Room::of(settings), forget_s).map(Box::new);
        Dispatcher { steps: Steps::new(), passages, lending, ..Dispatcher::new(run, settings) }
    }

    /// A step has begun: the room of partitions from now on, if that has changed.
    pub(crate) fn lend(&mut self) -> Option<Arc<Lent>> {
        let step = step_of(self.begun_ns());
        self.lending.as_mut()?.lend(step)
    }

    #[inline(always)]
    fn begins_v4(&mut self, packet: &Transport<u32>) {
        if let Some(lending) = &mut self.lending {
            lending.v4(packet);
        }
    }

    #[inline(always)]
    fn begins_v6(&mut self, packet: &Transport<u128>) {
        if let Some(lending) = &mut self.lending {
            lending.v6(packet);
        }
    }

    /// The same of a packet that another stage decodes.
    #[inline(never)]
    fn begins(&mut self, (place, record): &(Place, Record<'_>)) {
        if let Ok(datagram) = datagram_at(record.data, place.network, record.wire_len)
            && datagram.fragment.is_none()
            && let Ok(packet) = transport(&datagram)
        {
            match datagram.is_v4 {
                true => self.begins_v4(&packet.to_v4()),
                false => self.begins_v6(&packet),
            }
        }
    }

    /// The clock of steps.
    #[inline(always)]
    pub(crate) fn steps(&mut self) -> &mut Steps {
        &mut self.steps
    }

    /// The time of the mark before a packet of this time, if one is due.
    #[inline(always)]
    pub(crate) fn marked(&self, time_ns: u64) -> u64 {
        if self.steps.is_none() { time_ns } else { self.steps.begun_ns() }
    }

    /// One that has seen the records of all of these.
    ///
    /// # Panics
    /// If there are none.
    pub(crate) fn sum(dispatchers: &[Dispatcher]) -> Dispatcher {
        let (first, others) = dispatchers.split_first().expect("at least one");
        let mut sum = first.clone();
        for other in others {
            sum.packets += other.packets;
            sum.bytes += other.bytes;
            sum.tcp += other.tcp;
            sum.malformed += other.malformed;
            sum.undecoded += other.undecoded;
            sum.arp += other.arp;
            sum.times = (sum.times.0.min(other.times.0), sum.times.1.max(other.times.1));
            sum.steps.join(&other.steps);
            sum.fragments.counts.add(&other.fragments.counts());
            sum.passages.add(&other.passages);
            if let (Some(tunnels), Some(more)) = (&mut sum.tunnels, other.tunnels) {
                tunnels.opened += more.opened;
                tunnels.too_deep += more.too_deep;
                tunnels.fragmented += more.fragmented;
            }
        }
        sum
    }

    /// Takes one record. A TCP or UDP packet, and one that asks a host or answers, goes to `sink` as its slots, one for
    /// IPv4 and two for IPv6, each with the packet's partition. All slots of a partition must reach its SubAnalyzer in
    /// this order.
    #[inline(always)]
    pub fn record(&mut self, record: &Record<'_>, sink: impl FnMut(u8, Slot)) {
        let mut sink = Each(sink);
        if let Some((place, part)) = self.packet(record, &mut sink) {
            self.fragment(place, &part, &mut sink);
        }
    }

    /// The same, with the slots of a packet together. A fragment has none, and comes back with its place and the part
    /// of the record that counts.
    #[inline(always)]
    pub(crate) fn packet<'a>(&mut self, record: &Record<'a>, sink: &mut impl Sink) -> Option<(Place, Record<'a>)> {
        self.count(record);
        if let Some(packet) = plain_v4(record.link, record.data).filter(|packet| !packet.may_be_tunnel()) {
            self.begins_v4(&packet);
            self.v4(record, &packet, sink);
        } else if let Some(packet) = plain_v6(record.link, record.data).filter(|packet| !packet.may_be_tunnel()) {
            self.begins_v6(&packet);
            self.v6(record, &packet, sink);
        } else {
            return self.unusual(record, sink);
        }
        None
    }

    /// The same of one that is not plain, or may be a tunnel.
    #[inline(never)]
    fn unusual<'a>(&mut self, record: &Record<'a>, sink: &mut impl Sink) -> Option<(Place, Record<'a>)> {
        let (mut part, mut decoded) = (*record, decode(record.link, record.data));
        let mut found = None;
        if self.tunnels.is_some() && decoded.may_be_tunnel() {
            found = self.find(record).ok();
            if let Some((_, Located { at, .. }, inside)) = found {
                // Of the record, only the part inside of the tunnels counts.
                (part, decoded) = (inside, decode_at(inside.data, at));
            }
        }
        if let Some((place, part)) = found.map(|found| placed(&self.keys, found))
            && let Ok(datagram) = datagram_at(part.data, place.network, part.wire_len)
        {
            let hosts = hosts(transport(&datagram), || question(&datagram));
            self.through(place, &part, datagram.is_v4, hosts);
        }
        match decoded {
            Decoded::V4(packet) => {
                self.begins_v4(&packet);
                self.v4(&part, &packet, sink);
            }
            Decoded::V6(packet) => {
                self.begins_v6(&packet);
                self.v6(&part, &packet, sink);
            }
            Decoded::Fragment => {
                return found.or_else(|| self.find(record).ok()).map(|found| placed(&self.keys, found));
            }
            Decoded::OtherIp => {
                if let Some(found) = found.or_else(|| self.find(record).ok()) {
                    self.other(found, sink);
                }
            }
            Decoded::Undecoded => {
                if let Some((_, question)) = self.without_ip(record) {
                    sink.slots([Slot::question_v4(&self.keys, record.time_ns, record.wire_len, &question)]);
                }
            }
            Decoded::Malformed => self.malformed += 1,
        }
        None
    }

    /// Takes a fragment. If it has a TCP or UDP header its slots go to `sink` at once, as in captures without the other
    /// fragments; else when its datagram is whole.
    #[cold]
    #[inline(never)]
    fn fragment(&mut self, place: Place, record: &Record<'_>, sink: &mut impl Sink) {
        let Record { time_ns, wire_len, link, data } = *record;
        let Ok(mut datagram) = datagram_at(data, place.network, wire_len) else {
            self.malformed += 1;
            return;
        };
        datagram.vlans = Vlans::of(link, data, place.outermost);
        let found = transport(&datagram);
        if found != Err(NoPacket::Malformed) {
            self.found(time_ns, wire_len, datagram.is_v4, found, || question(&datagram), sink);
        }
        let Fragments { limits, partitions, buffer, .. } = &mut self.fragments;
        partitions.resize_with(PARTITIONS, || None);
        let of_partition =
            partitions[usize::from(place.partition)].get_or_insert_with(|| Defragmenter::new(limits).into());
        let whole = of_partition.fragment(time_ns, wire_len, &datagram, buffer);
        if let Some((wire_len, found, question)) =
            whole.and_then(|whole| Some((whole.wire_len, whole.transport()?, whole.question())))
        {
            self.through(place, record, datagram.is_v4, hosts(found, || question));
            self.found(time_ns, wire_len, datagram.is_v4, found, || question, sink);
        }
    }

    /// Notes through which tunnels a packet came, if it did.
    fn through(&mut self, place: Place, record: &Record<'_>, is_v4: bool, hosts: Option<(u128, u128)>) {
        let outermost = record.data.get(usize::from(place.outermost)..).unwrap_or_default();
        if place.outermost != place.network
            && let Some((source, destination)) = hosts
        {
            let now_ns = self.steps.time(record.time_ns);
            self.passages.see(place.partition, (source, destination, is_v4), now_ns, outermost);
        }
    }

    /// A packet of another protocol than TCP and UDP, where it was found.
    fn other(&mut self, (_, located, part): (u16, Located, Record<'_>), sink: &mut impl Sink) {
        if let Ok(datagram) = datagram_at(part.data, located.at, part.wire_len) {
            let other = Err(NoPacket::Other);
            self.found(part.time_ns, part.wire_len, datagram.is_v4, other, || question(&datagram), sink);
        }
    }

    fn found(
        &mut self,
        time_ns: u64,
        wire_len: u32,
        is_v4: bool,
        found: Result<Transport<u128>, NoPacket>,
        question: impl FnOnce() -> Option<Question<u128>>,
        sink: &mut impl Sink,
    ) {
        let record = Record { time_ns, wire_len, link: LinkType::RAW, data: &[] };
        match found {
            Ok(packet) if is_v4 => self.v4(&record, &packet.to_v4(), sink),
            Ok(packet) => self.v6(&record, &packet, sink),
            Err(NoPacket::Other) => match question() {
                Some(question) if is_v4 => {
                    sink.slots([Slot::question_v4(&self.keys, time_ns, wire_len, &question.to_v4())]);
                }
                Some(question) => sink.slots(Slot::question_v6(&self.keys, time_ns, wire_len, &question)),
                None => {}
            },
            Err(NoPacket::Malformed) => self.malformed += 1,
        }
    }

    #[inline(always)]
    fn v4(&mut self, record: &Record<'_>, packet: &Transport<u32>, sink: &mut impl Sink) {
        self.tcp += u64::from(packet.protocol == TCP);
        sink.slots([Slot::v4(&self.keys, record.time_ns, record.wire_len, packet)]);
    }

    #[inline(always)]
    fn v6(&mut self, record: &Record<'_>, packet: &Transport<u128>, sink: &mut impl Sink) {
        self.tcp += u64::from(packet.protocol == TCP);
        sink.slots(Slot::v6(&self.keys, record.time_ns, record.wire_len, packet));
    }

    /// Counts a record without an IP header, and finds what it asks by ARP.
    #[cold]
    fn without_ip(&mut self, record: &Record<'_>) -> Option<(u16, Question<u32>)> {
        self.undecoded += 1;
        self.arp += u64::from(is_arp(record.link, record.data));
        arp(record.link, record.data)
    }

    /// Takes one record for a stage that decodes it. That stage counts TCP packets, and packets that are malformed
    /// behind the addresses. The result has the part of the record that counts: all of it, but for tunnels.
    #[inline]
    pub(crate) fn locate<'a>(&mut self, record: &Record<'a>) -> Option<(Place, Record<'a>)> {
        self.count(record);
        match self.find(record) {
            Ok(found) => {
                let found = placed(&self.keys, found);
                if self.lending.is_some() {
                    self.begins(&found);
                }
                Some(found)
            }
            Err(NoDatagram::Undecoded) => {
                let (at, Question { source, destination, .. }) = self.without_ip(record)?;
                let partition = self.keys.partition_v4(source, destination);
                Some((Place { network: at, outermost: at, partition }, *record))
            }
            Err(NoDatagram::Malformed) => {
                self.malformed += 1;
                None
            }
        }
    }

    /// Where a record's outermost IP header begins; the header that decides; and the record without what is behind the
    /// packets outside of that one.
    #[inline]
    fn find<'a>(&mut self, record: &Record<'a>) -> Result<(u16, Located, Record<'a>), NoDatagram> {
        let outermost = locate(record.link, record.data)?;
        let Some(tunnels) = &mut self.tunnels else { return Ok((outermost.at, outermost, *record)) };
        let found = innermost(record.data, outermost);
        tunnels.opened += u64::from(found.depth > 0);
        match found.closed {
            None => {}
            Some(Closed::TooDeep) => tunnels.too_deep += 1,
            Some(Closed::Fragmented) => tunnels.fragmented += 1,
        }
        let (data, behind) = record.data.split_at(found.end);
        let wire_len = record.wire_len.saturating_sub(behind.len() as u32);
        Ok((outermost.at, found.located, Record { wire_len, data, ..*record }))
    }

    #[inline(always)]
    fn count(&mut self, record: &Record<'_>) {
        self.packets += 1;
        self.bytes += u64::from(record.wire_len);
        self.times = (self.times.0.min(record.time_ns), self.times.1.max(record.time_ns));
    }

    /// Records so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Their bytes on the wire.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// TCP packets with a whole header.
    pub fn tcp(&self) -> u64 {
        self.tcp
    }

    /// Records with an IP, TCP or UDP header that is wrong or cut.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Records without an IP header.
    pub fn undecoded(&self) -> u64 {
        self.undecoded
    }

    /// Those of them that are of ARP.
    pub fn arp(&self) -> u64 {
        self.arp
    }

    /// Counts of the fragments whose slots were asked for. Datagrams that lack some count as timed out.
    pub fn fragments(&self) -> Counts {
        self.fragments.counts()
    }

    /// The tunnels of packets whose slots were asked for.
    pub(crate) fn passages(&mut self) -> &mut Passages {
        &mut self.passages
    }

    /// What they have noted.
    pub(crate) fn noted(&self) -> &[Through] {
        self.passages.news()
    }

    /// Counts of tunnels, if they are opened.
    pub fn tunnels(&self) -> Option<Tunnels> {
        self.tunnels
    }

    /// The time at which the current step began, if time passes in steps.
    pub(crate) fn begun_ns(&self) -> u64 {
        self.steps.begun_ns()
    }

    /// The least and the largest time of any record, decoded or not.
    pub fn times(&self) -> Option<(u64, u64)> {
        (self.packets > 0).then_some(self.times)
    }

    /// The largest time of any record, at which the capture ends; 0 without records. Where time passes in steps, the
    /// largest in the last one. [`SubAnalyzer::finish`](crate::SubAnalyzer::finish) needs it.
    pub fn max_time(&self) -> u64 {
        self.steps.time(self.times.1)
    }

    /// Times that steps did not believe.
    pub(crate) fn jumps(&self) -> Jumps {
        self.steps.jumps()
    }
}
