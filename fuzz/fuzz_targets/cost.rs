//! What a packet costs the monitor at worst:
//!
//! ```sh
//! TARGET=ssh RUSTFLAGS=-Cinstrument-coverage cargo +nightly fuzz run -s none cost fuzz/corpus/ssh
//! ```
//!
//! Cost is counted in steps, which are blocks of instructions that the compiler counts (`-C instrument-coverage`): no
//! clock, so a machine that does other work finds the same. The fuzzer is told each percent of the bound that is
//! reached as if it were new coverage, so it climbs; above the bound it stops. All of the monitor with events is
//! measured, less what it costs without the conversation.
//!
//! The bytes are a script as in `corelane_net::protocol::fuzz`, behind the protocol's example; of QUIC, data that begin
//! with 1 are the content of an Initial packet. `CAPTURE=FILE` instead of bytes says what a capture costs.
#![no_main]

use corelane_monitor::{Found, Inspection, Job, Observer, Plan, Progress, Settings};
use corelane_net::capture::Reader;
use corelane_net::conversation::Side;
use corelane_net::protocol::fuzz::{ParserFacts, initial, parsers};
use corelane_net::protocol::{Carrier, Protocol};
use std::sync::LazyLock;

/// Steps of a packet, and of a byte of its payload: about 5 us and 15 ns on a Zen 5. Normal packets of HTTP, TLS and
/// DNS take 1,100, 550 and 2,100.
const BOUND: [u64; 2] = [11_000, 40];
/// QUIC is deciphered: that takes a step for every few bytes, each a fast one.
const DECIPHERED: u64 = 4;
/// Bytes of payload in a packet.
const SEGMENT: usize = 1_400;

unsafe extern "C" {
    #[link_name = "__start___llvm_prf_cnts"]
    static FIRST: u64;
    #[link_name = "__stop___llvm_prf_cnts"]
    static END: u64;
}

/// Of each percent of the bound whether it was reached.
#[unsafe(link_section = "__libfuzzer_extra_counters")]
static mut REACHED: [u8; 1024] = [0; 1024];

fn steps() -> u64 {
    // SAFETY: the linker places the counters of all crates between both symbols, and one thread runs.
    unsafe {
        let (first, end) = (&raw const FIRST, &raw const END);
        (0..end.offset_from(first) as usize).map(|at| first.add(at).read_volatile()).sum()
    }
}

/// Steps of the monitor over a capture.
fn cost(capture: Vec<u8>) -> u64 {
    let before = steps();
    let job = Job {
        inspection: Inspection::default(),
        ..Job::scans(Settings::default(), Plan { analyzers: 0, ..Plan::default() })
    };
    let reader = Reader::from_bytes(capture).expect("a capture");
    let found: &mut (dyn FnMut(Found<'_>) + Send) = &mut |found| drop(std::hint::black_box(found));
    let observer = Observer { progress: &Progress::new(), damage: &|_, error| panic!("{error}"), found };
    let _ = job.run([reader], observer).expect("no CPU is named");
    steps() - before
}

/// A capture of one conversation.
struct Conversation {
    capture: Vec<u8>,
    carrier: Carrier,
    packets: u64,
    payload: u64,
    /// Sequence numbers of both sides.
    next: [u32; 2],
}

impl Conversation {
    fn new(carrier: Carrier) -> Self {
        let mut capture = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        capture.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0]);
        capture.extend(101_u32.to_le_bytes()); // raw IP
        let mut new = Self { capture, carrier, packets: 0, payload: 0, next: [0; 2] };
        if carrier == Carrier::Stream {
            new.packet(Side::Originator, 2, &[]);
            new.packet(Side::Responder, 0x12, &[]);
            new.packet(Side::Originator, 0x10, &[]);
        }
        new
    }

    fn data(&mut self, side: Side, data: &[u8]) {
        data.chunks(SEGMENT).for_each(|data| self.packet(side, 0x18, data));
    }

    fn packet(&mut self, side: Side, flags: u8, payload: &[u8]) {
        let is_tcp = self.carrier == Carrier::Stream;
        let header = if is_tcp { 40 } else { 28 };
        let length = header + payload.len() as u32;
        self.capture.extend((self.packets as u32).to_le_bytes());
        self.capture.extend([0; 4]);
        self.capture.extend(length.to_le_bytes());
        self.capture.extend(length.to_le_bytes());
        let [a, b] = if side == Side::Originator { [1, 2] } else { [2, 1] };
        self.capture.extend([
            0x45,
            0,
            (length >> 8) as u8,
            length as u8,
            0,
            0,
            0x40,
            0,
            64,
            if is_tcp { 6 } else { 17 },
        ]);
        self.capture.extend([0, 0, 10, 0, 0, a, 10, 0, 0, b]);
        let port = |end: u8| if end == 1 { 40_000_u16 } else { 40_001 };
        self.capture.extend(port(a).to_be_bytes());
        self.capture.extend(port(b).to_be_bytes());
        if is_tcp {
            self.capture.extend(self.next[side.index()].to_be_bytes());
            self.capture.extend(self.next[side.other().index()].to_be_bytes());
            self.capture.extend([0x50, flags, 0x40, 0, 0, 0, 0, 0]);
        } else {
            self.capture.extend(((length - 20) as u16).to_be_bytes());
            self.capture.extend([0; 2]);
        }
        self.capture.extend(payload);
        let next = &mut self.next[side.index()];
        *next = next.wrapping_add(payload.len() as u32 + u32::from(flags & 3 != 0));
        self.packets += 1;
        self.payload += payload.len() as u64;
    }

    fn script(&mut self, mut bytes: &[u8]) {
        while let [control, high, low, rest @ ..] = bytes {
            let side = Side::BOTH[usize::from(control & 1)];
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            bytes = rest;
            match control >> 1 & 7 {
                7 if self.carrier == Carrier::Stream => self.packet(side, 0x11, &[]),
                6 => self.next[side.index()] = self.next[side.index()].wrapping_add(length as u32),
                _ => {
                    let (data, rest) = bytes.split_at(bytes.len().min(length));
                    bytes = rest;
                    match data {
                        // No fuzzer finds the key of a packet of QUIC.
                        [1, content @ ..] if TARGET.protocol == Protocol::Quic => {
                            let ids: [&[u8]; 2] =
                                if side == Side::Originator { [b"original", b"c"] } else { [b"c", b"s"] };
                            let is_client = side == Side::Originator;
                            self.data(side, &initial(1, b"original", is_client, ids, b"", self.packets, content));
                        }
                        _ => self.data(side, data),
                    }
                }
            }
        }
    }
}

static TARGET: LazyLock<ParserFacts> = LazyLock::new(|| {
    let name = std::env::var("TARGET").unwrap_or_default();
    let names = || parsers().map(|parser| parser.protocol.name()).collect::<Vec<_>>().join(", ");
    parsers()
        .find(|parser| parser.protocol.name() == name)
        .unwrap_or_else(|| panic!("set TARGET to one of {}", names()))
});

/// What a run without packets takes.
static NOTHING: LazyLock<u64> = LazyLock::new(|| {
    let nothing = || cost(Conversation::new(Carrier::Datagrams).capture);
    nothing();
    let nothing = nothing();
    if let Ok(capture) = std::env::var("CAPTURE") {
        let bytes = std::fs::read(&capture).expect("a file");
        let mut reader = Reader::from_bytes(bytes.clone()).expect("a capture");
        let (mut packets, mut length) = (0, 0);
        while reader
            .read(64, |record| {
                packets += 1;
                length += record.data.len() as u64
            })
            .expect("a whole capture")
            > 0
        {}
        let steps = cost(bytes) - nothing;
        println!("{capture}: {packets} packets of {} bytes, {} steps a packet", length / packets, steps / packets);
        std::process::exit(0);
    }
    nothing
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let nothing = *NOTHING;
    for &carrier in TARGET.carriers {
        let mut conversation = Conversation::new(carrier);
        for (side, data) in &TARGET.example {
            conversation.data(*side, data);
        }
        conversation.script(bytes);
        let times = if TARGET.protocol == Protocol::Quic { DECIPHERED } else { 1 };
        let bound = times * (BOUND[0] * conversation.packets + BOUND[1] * conversation.payload);
        let percent = cost(conversation.capture).saturating_sub(nothing) * 100 / bound;
        assert!(
            percent <= 100,
            "{percent} % of the bound: {} packets of {} bytes",
            conversation.packets,
            conversation.payload
        );
        // SAFETY: one thread runs.
        unsafe { (&raw mut REACHED[percent as usize]).write(1) };
    }
});
