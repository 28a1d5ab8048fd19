//! What a packet costs on its way into conversations, and what a capture says: `conversations FILE [ROUNDS]`. For
//! tuning.
//!
//! The records are in memory before the clock starts. Each step does what the one before it does, and more.

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use corelane_net::capture::{LinkType, Options, Reader, Record};
use corelane_net::conversation::{Application, Conversation, Ending, Limits, Observer, Partition, Side};
use corelane_net::decode::{Tunnel, datagram, packet};
use corelane_net::defrag;
use corelane_net::protocol::{Carrier, Event, Session};

/// Counts bytes: the least that an application can do.
#[derive(Debug, Default)]
struct Bytes(u64);

impl Application for Bytes {
    type Found = ();

    fn data(&mut self, _: Side, _: u64, bytes: &[u8], (): &mut ()) {
        self.0 += bytes.len() as u64;
    }

    fn gap(&mut self, _: Side, _: u64, _: u64, (): &mut ()) {}

    fn end(&mut self, _: Side, _: u64, (): &mut ()) {}

    fn heap_bytes(&self) -> usize {
        0
    }
}

/// What one round over the capture found.
#[derive(Debug, Default)]
struct Found {
    conversations: u64,
    bytes: u64,
    events: BTreeMap<&'static str, u64>,
}

/// Flows alone, without applications.
struct Flows(Found);

impl Observer<Bytes> for Flows {
    fn begin(&mut self, _: &Conversation) -> Option<Bytes> {
        None
    }

    fn over(&mut self, _: &Conversation, _: &Ending, _: Option<Bytes>, (): &mut ()) {
        self.0.conversations += 1;
    }
}

struct Streams(Found);

impl Observer<Bytes> for Streams {
    fn begin(&mut self, _: &Conversation) -> Option<Bytes> {
        Some(Bytes(0))
    }

    fn over(&mut self, _: &Conversation, _: &Ending, application: Option<Bytes>, (): &mut ()) {
        self.0.conversations += 1;
        self.0.bytes += application.map_or(0, |bytes| bytes.0);
    }
}

struct Protocols(Found);

impl Protocols {
    fn take(&mut self, found: &mut Vec<Event>) {
        for event in found.drain(..) {
            let name = match event {
                Event::Identified(_) => "identified",
                Event::Http(_) => "http",
                Event::ClientHello(_) => "client hello",
                Event::ServerHello(_) => "server hello",
                Event::Dns(_) => "dns",
                _ => "other",
            };
            *self.0.events.entry(name).or_default() += 1;
        }
    }
}

impl Observer<Session> for Protocols {
    fn begin(&mut self, conversation: &Conversation) -> Option<Session> {
        Some(Session::new(Carrier::of(conversation)))
    }

    fn progress(&mut self, _: &Conversation, _: &mut Session, _: Option<&Tunnel>, found: &mut Vec<Event>) {
        self.take(found);
    }

    fn over(&mut self, _: &Conversation, _: &Ending, _: Option<Session>, found: &mut Vec<Event>) {
        self.0.conversations += 1;
        self.take(found);
    }
}

struct Frame {
    time_ns: u64,
    wire_len: u32,
    link: LinkType,
    data: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let file = PathBuf::from(arguments.next().ok_or("usage: conversations FILE [ROUNDS]")?);
    let rounds = arguments.next().map_or(Ok(5), |rounds| rounds.to_string_lossy().parse::<usize>());
    let rounds = rounds.map_err(|_| "ROUNDS must be a whole number")?.max(1);
    let mut reader = Reader::open(&file, &Options::default())?;
    let mut frames = Vec::new();
    while reader.read(4096, |record| {
        let Record { time_ns, wire_len, link, data } = record;
        frames.push(Frame { time_ns, wire_len, link, data: data.to_vec() });
    })? > 0
    {}

    measure("headers to the payload", rounds, frames.len(), || {
        for record in records(&frames) {
            if let Ok(datagram) = datagram(&record) {
                let _ = black_box(packet(record.time_ns, record.wire_len, &datagram));
            }
        }
        Found::default()
    });
    measure("flows, no application", rounds, frames.len(), || run(&frames, Flows(Found::default())).0);
    measure("streams in order", rounds, frames.len(), || run(&frames, Streams(Found::default())).0);
    measure("protocols", rounds, frames.len(), || run(&frames, Protocols(Found::default())).0);
    Ok(())
}

fn records(frames: &[Frame]) -> impl Iterator<Item = Record<'_>> {
    frames.iter().map(|frame| Record {
        time_ns: frame.time_ns,
        wire_len: frame.wire_len,
        link: frame.link,
        data: &frame.data,
    })
}

/// All of a capture through one partition that has room for it.
fn run<A: Application, O: Observer<A>>(frames: &[Frame], mut observer: O) -> O {
    const SECOND: u64 = 1_000_000_000;
    let mut partition = Partition::<A>::new(&Limits::new(64 << 20), &defrag::Limits::default());
    let (mut buffer, mut mark) = (Vec::new(), 0);
    for record in records(frames) {
        if record.time_ns >= mark {
            partition.expire(record.time_ns, &mut observer);
            mark = record.time_ns + SECOND;
        }
        if let Ok(datagram) = datagram(&record) {
            partition.datagram(record.time_ns, record.wire_len, &datagram, &mut buffer, &mut observer);
        }
    }
    partition.finish(&mut observer);
    observer
}

fn measure(what: &str, rounds: usize, packets: usize, mut round: impl FnMut() -> Found) {
    let mut found = round();
    let mut times = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        found = round();
        times.push(start.elapsed().as_secs_f64() * 1e9 / packets as f64);
    }
    times.sort_by(f64::total_cmp);
    let (least, median, most) = (times[0], times[rounds / 2], times[rounds - 1]);
    println!("{what:24} {median:7.1} ns a packet ({least:.1} to {most:.1})  {found:?}");
}
