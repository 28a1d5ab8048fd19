//! Packets made by hand, and an application that notes what it is given.

use corelane_net::conversation::{Application, Conversation, Conversations, Ending, Limits, Observer, Reason, Side};
use corelane_net::decode::{Packet, TCP, Tunnel, UDP, Vlans, mapped};

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const ACK: u8 = 0x10;

pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) use Side::{Originator, Responder};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Data(Side, Vec<u8>),
    Gap(Side, u64),
    End(Side),
}

pub(crate) fn data(side: Side, bytes: impl AsRef<[u8]>) -> Event {
    Event::Data(side, bytes.as_ref().to_vec())
}

/// Notes everything, and where in memory it was.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) events: Vec<Event>,
    pub(crate) places: Vec<usize>,
    /// The times that gaps and ends were given.
    pub(crate) late_ns: Vec<u64>,
    /// The sides whose bytes came before those that they answer.
    pub(crate) early: Vec<Side>,
    /// Wants no more once it has so many events.
    pub(crate) enough: Option<usize>,
}

impl Notes {
    /// The calls for a side, checked against what is promised about them.
    pub(crate) fn side(&self, side: Side) -> Vec<Event> {
        let of = |event: &&Event| match event {
            Event::Data(of, _) | Event::Gap(of, _) | Event::End(of) => *of == side,
        };
        let events: Vec<Event> = self.events.iter().filter(of).cloned().collect();
        let ends = events.iter().filter(|event| matches!(event, Event::End(_))).count();
        assert!(ends <= 1 && (ends == 0 || events.last() == Some(&Event::End(side))), "{events:?}");
        events
    }

    /// The bytes of a side; `None` stands for each that was given up.
    pub(crate) fn bytes(&self, side: Side) -> Vec<Option<u8>> {
        let mut all = Vec::new();
        for event in self.side(side) {
            match event {
                Event::Data(_, bytes) => all.extend(bytes.into_iter().map(Some)),
                Event::Gap(_, missing) => all.resize(all.len() + missing as usize, None),
                Event::End(_) => {}
            }
        }
        all
    }
}

impl Application for Notes {
    type Found = ();

    fn data(&mut self, side: Side, _: u64, bytes: &[u8], (): &mut ()) {
        assert!(self.wants(side), "not wanted any more");
        self.places.push(bytes.as_ptr() as usize);
        self.events.push(data(side, bytes));
    }

    fn answered_early(&mut self, side: Side) {
        self.early.push(side);
    }

    fn gap(&mut self, side: Side, time_ns: u64, missing: u64, (): &mut ()) {
        assert!(self.wants(side) && missing > 0);
        self.late_ns.push(time_ns);
        self.events.push(Event::Gap(side, missing));
    }

    fn end(&mut self, side: Side, time_ns: u64, (): &mut ()) {
        self.late_ns.push(time_ns);
        self.events.push(Event::End(side));
    }

    fn heap_bytes(&self) -> usize {
        0
    }

    fn wants(&self, _: Side) -> bool {
        self.enough.is_none_or(|enough| self.events.len() < enough)
    }
}

/// What is left of a conversation.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) originator: String,
    pub(crate) reason: Reason,
    pub(crate) missed: [u64; 2],
    pub(crate) packets: [u64; 2],
    pub(crate) bytes: [u64; 2],
    pub(crate) times: (u64, u64),
    pub(crate) midstream: bool,
    pub(crate) vlans: Vec<u16>,
    pub(crate) notes: Option<Notes>,
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) over: Vec<Over>,
    pub(crate) begun: usize,
    pub(crate) progress: usize,
    /// Attempts that led to nothing.
    pub(crate) attempts: Vec<Over>,
    /// For the next application.
    pub(crate) enough: Option<usize>,
    pub(crate) refuse: bool,
}

impl Observer<Notes> for Log {
    fn begin(&mut self, _: &Conversation) -> Option<Notes> {
        self.begun += 1;
        (!self.refuse).then(|| Notes { enough: self.enough, ..Notes::default() })
    }

    fn progress(&mut self, _: &Conversation, _: &mut Notes, _: Option<&Tunnel>, (): &mut ()) {
        self.progress += 1;
    }

    fn over(&mut self, conversation: &Conversation, ending: &Ending, notes: Option<Notes>, (): &mut ()) {
        if let Some(notes) = &notes {
            for side in Side::BOTH {
                if conversation.is_tcp() {
                    assert_eq!(notes.side(side).last(), Some(&Event::End(side)), "every side ends");
                }
            }
        }
        self.over.push(Over::new(conversation, ending, notes));
    }

    fn attempted(&mut self, attempt: &Conversation, ending: &Ending) {
        self.attempts.push(Over::new(attempt, ending, None));
    }
}

impl Over {
    fn new(conversation: &Conversation, ending: &Ending, notes: Option<Notes>) -> Self {
        Self {
            originator: conversation.end(Originator).to_string(),
            reason: ending.reason,
            missed: ending.missed,
            packets: Side::BOTH.map(|side| conversation.packets(side)),
            bytes: Side::BOTH.map(|side| conversation.bytes(side)),
            times: (conversation.first_ns(), conversation.last_ns()),
            midstream: conversation.is_midstream(),
            vlans: conversation.vlans().numbers().collect(),
            notes,
        }
    }
}

/// A partition with its log.
pub(crate) struct Bench {
    pub(crate) table: Conversations<Notes>,
    pub(crate) log: Log,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(&Limits::default())
    }

    pub(crate) fn with(limits: &Limits) -> Self {
        Self { table: Conversations::new(limits), log: Log::default() }
    }

    pub(crate) fn take(&mut self, packet: &Packet<'_>) {
        self.table.packet(packet, &mut self.log);
    }

    pub(crate) fn expire(&mut self, mark_ns: u64) {
        self.table.expire(mark_ns, &mut self.log);
    }

    /// Ends the capture; what is left must be one conversation with an application.
    pub(crate) fn only(mut self) -> (Notes, Over) {
        self.table.finish(&mut self.log);
        assert_eq!(self.log.over.len(), 1, "{:?}", self.log.over);
        let mut over = self.log.over.pop().unwrap();
        (over.notes.take().expect("an application"), over)
    }
}

/// The two ends of a TCP connection and where their sequence numbers begin.
#[derive(Clone, Debug)]
pub(crate) struct Tcp {
    pub(crate) ends: [(u128, u16); 2],
    pub(crate) first: [u32; 2],
    pub(crate) time_ns: u64,
}

impl Default for Tcp {
    fn default() -> Self {
        let ends = [(mapped(0x0a00_0001), 40_000), (mapped(0x0a00_0002), 80)];
        Self { ends, first: [1000, 5000], time_ns: 100 * SECOND }
    }
}

impl Tcp {
    /// A segment at this distance from the first byte of its side, which acknowledges the other side's bytes up to
    /// `ack`.
    pub(crate) fn at<'a>(&self, side: Side, at: i64, ack: i64, flags: u8, payload: &'a [u8]) -> Packet<'a> {
        let (here, there) = (side.index(), side.other().index());
        Packet {
            time_ns: self.time_ns,
            wire_len: 54 + payload.len() as u32,
            frames: 1,
            source: self.ends[here].0,
            destination: self.ends[there].0,
            source_port: self.ends[here].1,
            destination_port: self.ends[there].1,
            protocol: TCP,
            flags,
            sequence: self.first[here].wrapping_add(at as u32),
            acknowledgment: if flags & ACK == 0 { 0 } else { self.first[there].wrapping_add(ack as u32) },
            payload,
            cut: 0,
            outermost: &[],
            vlans: Vlans::NONE,
        }
    }

    /// Payload that acknowledges nothing new.
    pub(crate) fn send<'a>(&self, side: Side, at: i64, payload: &'a [u8]) -> Packet<'a> {
        self.at(side, at, 0, PSH | ACK, payload)
    }

    pub(crate) fn syn(&self) -> Packet<'static> {
        self.at(Originator, -1, 0, SYN, b"")
    }

    pub(crate) fn syn_ack(&self) -> Packet<'static> {
        self.at(Responder, -1, 0, SYN | ACK, b"")
    }

    pub(crate) fn open(&self, bench: &mut Bench) {
        bench.take(&self.syn());
        bench.take(&self.syn_ack());
        bench.take(&self.at(Originator, 0, 0, ACK, b""));
    }
}

/// An opened connection.
pub(crate) fn opened() -> (Bench, Tcp) {
    let (mut bench, tcp) = (Bench::new(), Tcp::default());
    tcp.open(&mut bench);
    (bench, tcp)
}

pub(crate) fn udp<'a>(from: (u32, u16), to: (u32, u16), time_ns: u64, payload: &'a [u8]) -> Packet<'a> {
    Packet {
        time_ns,
        wire_len: 42 + payload.len() as u32,
        frames: 1,
        source: mapped(from.0),
        destination: mapped(to.0),
        source_port: from.1,
        destination_port: to.1,
        protocol: UDP,
        flags: 0,
        sequence: 0,
        acknowledgment: 0,
        payload,
        cut: 0,
        outermost: &[],
        vlans: Vlans::NONE,
    }
}
