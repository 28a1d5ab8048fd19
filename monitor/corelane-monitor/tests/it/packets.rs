//! Packets made by hand, and captures of them in memory.

use corelane_monitor::{Job, Observer, Plan, Probe, Progress, Report, Settings, Source};
use corelane_net::capture::{LinkType, Record};
use corelane_net::decode::{TCP, UDP};
use corelane_net::synth::{self, Config, Generator, truth_json};
use std::convert::Infallible;
use std::net::IpAddr;

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;
pub(crate) const XMAS: u8 = 0x29;

/// The kind of a first segment with these flags, whatever those of ECN are.
pub(crate) fn probe_by(flags: u8) -> Option<Probe> {
    match flags & !0xc0 {
        0 => Some(Probe::Null),
        FIN => Some(Probe::Fin),
        XMAS => Some(Probe::Xmas),
        // With PSH and URG or without.
        0x03 | 0x0b | 0x23 | 0x2b => Some(Probe::SynFin),
        0x08 | 0x20 | 0x28 | 0x09 | 0x21 => Some(Probe::Odd),
        flags if flags & 0x06 == 0x06 => Some(Probe::Odd),
        _ => None,
    }
}

pub(crate) const SECOND: u64 = 1_000_000_000;
/// Where hand-made captures begin.
pub(crate) const START: u64 = 1_000 * SECOND;

/// A TCP or UDP packet and the time of its record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) time_ns: u64,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    /// None is UDP.
    pub(crate) flags: Option<u8>,
    pub(crate) hops: u8,
}

/// `from` and `to` are written "address port".
pub(crate) fn tcp(time_ns: u64, from: &str, to: &str, flags: u8) -> Packet {
    let parse = |endpoint: &str| {
        let (address, port) = endpoint.split_once(' ').expect("address and port");
        (address.parse::<IpAddr>().expect("address"), port.parse::<u16>().expect("port"))
    };
    let ((source, source_port), (destination, destination_port)) = (parse(from), parse(to));
    Packet { time_ns, source, destination, source_port, destination_port, flags: Some(flags), hops: 64 }
}

pub(crate) fn udp(time_ns: u64, from: &str, to: &str) -> Packet {
    Packet { flags: None, ..tcp(time_ns, from, to, 0) }
}

/// Whether an answer to a first SYN has outlasted the time-out when another comes. Time is counted in parts of which a
/// second has 64.
pub(crate) fn has_outlasted(first_ns: u64, time_ns: u64, settings: &Settings) -> bool {
    let ticks = |time_ns: u64| time_ns / (SECOND / 64);
    ticks(time_ns) - ticks(first_ns) > ticks(settings.syn_timeout_ns)
}

/// Source, destination, port at the destination: what an attempt is about.
pub(crate) type Key = (IpAddr, IpAddr, u16);

impl Packet {
    /// Alike for both directions.
    pub(crate) fn ends(&self) -> [(IpAddr, u16); 2] {
        let mut ends = [(self.source, self.source_port), (self.destination, self.destination_port)];
        ends.sort_unstable();
        ends
    }

    /// The port of the end that opens the attempt.
    pub(crate) fn client_port(&self) -> u16 {
        let is_syn = self.attempt().is_some_and(|(_, what)| what == 'S');
        if is_syn { self.source_port } else { self.destination_port }
    }

    /// The attempt that the packet is part of: 'S' opens it, 'A' answers it, 'R' rejects it, and so does 'Z', also
    /// behind an answer.
    pub(crate) fn attempt(&self) -> Option<(Key, char)> {
        let flags = self.flags.unwrap_or(0);
        let forth = (self.source, self.destination, self.destination_port);
        let back = (self.destination, self.source, self.source_port);
        match (flags & RST != 0, flags & SYN != 0, flags & ACK != 0, flags & FIN != 0) {
            (true, _, false, _) => Some((back, 'R')),
            (true, ..) => Some((back, 'Z')),
            (_, true, true, _) => Some((back, 'A')),
            (_, true, false, false) => Some((forth, 'S')),
            _ => None,
        }
    }

    /// What the first packet of a flow probes by, if it is a probe.
    pub(crate) fn probe(&self) -> Option<Probe> {
        let to_many = match self.destination {
            IpAddr::V4(address) => address.octets()[0] >= 224,
            IpAddr::V6(address) => address.is_multicast(),
        };
        match self.flags {
            Some(flags) => probe_by(flags),
            None if to_many => None,
            None if self.source_port < 1024 && self.destination_port >= 1024 => None,
            None if self.hops <= 30 && self.destination_port >= 33_434 => None,
            None => Some(Probe::Udp),
        }
    }

    /// Whether this packet, which begins its flow, is a probe by ACK if this one is the second.
    pub(crate) fn is_refused_by(&self, reset: &Packet) -> bool {
        let ends =
            |packet: &Packet| [(packet.source, packet.source_port), (packet.destination, packet.destination_port)];
        let may_answer = self.source_port < 1024 && self.destination_port >= 1024;
        matches!(self.flags.map(|flags| flags & !0xc0), Some(0x10 | 0x11))
            && !may_answer
            && reset.flags.is_some_and(|flags| flags & RST != 0)
            && ends(reset)[0] == ends(self)[1]
            && ends(reset)[0] != ends(self)[0]
    }

    /// From the IP header on.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut transport = Vec::new();
        transport.extend(self.source_port.to_be_bytes());
        transport.extend(self.destination_port.to_be_bytes());
        match self.flags {
            Some(flags) => {
                // A port that refuses has no number of its own.
                let number = u8::from(flags & (RST | ACK) != RST | ACK);
                transport.extend([0, 0, 0, number, 0, 0, 0, 2, 0x50, flags, 1, 0, 0, 0, 0, 0]);
            }
            None => transport.extend([0, 8, 0, 0]),
        }
        let protocol = if self.flags.is_some() { TCP } else { UDP };
        let length = transport.len() as u16;
        let mut frame = Vec::new();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                frame.extend([0x45, 0]);
                frame.extend((length + 20).to_be_bytes());
                frame.extend([0, 0, 0, 0, self.hops, protocol, 0, 0]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                frame.extend([0x60, 0, 0, 0]);
                frame.extend(length.to_be_bytes());
                frame.extend([protocol, self.hops]);
                frame.extend(source.octets());
                frame.extend(destination.octets());
            }
            _ => panic!("two address families in one packet"),
        }
        frame.extend(transport);
        frame
    }
}

/// Records in memory.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    pub(crate) link: LinkType,
    pub(crate) records: Vec<(u64, Vec<u8>)>,
    at: usize,
}

impl Capture {
    pub(crate) fn of(packets: &[Packet]) -> Self {
        let records = packets.iter().map(|packet| (packet.time_ns, packet.frame())).collect();
        Capture { link: LinkType(101), records, at: 0 }
    }

    /// Synthetic traffic, and the alerts it has to raise, as JSON.
    pub(crate) fn synthetic(config: Config) -> (Self, String) {
        let mut generator = Generator::new(config).expect("a sound configuration");
        let mut records = Vec::new();
        while let Some(record) = generator.next_frame() {
            records.push((record.time_ns, record.data.to_vec()));
        }
        (Capture { link: synth::LINK, records, at: 0 }, truth_json(&generator.truth()))
    }

    /// Adds a record of one byte, which only moves the end of the capture.
    pub(crate) fn ending(mut self, time_ns: u64) -> Self {
        self.records.push((time_ns, vec![0x00]));
        self
    }

    pub(crate) fn run(self, settings: &Settings) -> Report {
        let job = Job::scans(settings.clone(), Plan { analyzers: 0, ..Plan::default() });
        let damage = &|_, never| match never {};
        job.run([self], Observer { progress: &Progress::new(), damage, found: &mut |_| {} }).expect("a plan").0
    }

    pub(crate) fn each(&self, mut sink: impl FnMut(Record<'_>)) {
        for (time_ns, data) in &self.records {
            sink(Record { time_ns: *time_ns, wire_len: data.len() as u32, link: self.link, data });
        }
    }
}

impl Source for Capture {
    type Error = Infallible;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let behind = &self.records[self.at..];
        let now = behind.len().min(max);
        for (time_ns, data) in &behind[..now] {
            sink(Record { time_ns: *time_ns, wire_len: data.len() as u32, link: self.link, data });
        }
        self.at += now;
        Ok(now)
    }
}
