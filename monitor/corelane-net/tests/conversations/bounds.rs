//! Floods and sweeps stay within the budget, and leave others alone. With CORELANE_FULL set the sweeps have 65,536
//! ports on 1,000 hosts.

use crate::support::*;
use corelane_net::conversation::{
    Application, Conversation, Conversations, Ending, LEAST_BYTES, Limits, Observer, Reason, Side,
};
use corelane_net::decode::{Packet, mapped};
use std::collections::HashMap;

/// Takes a kilobyte for each conversation it looks into.
struct Greedy(Vec<u8>);

impl Application for Greedy {
    type Found = ();

    fn data(&mut self, _: Side, _: u64, _: &[u8], (): &mut ()) {
        self.0.reserve_exact(1024);
    }

    fn gap(&mut self, _: Side, _: u64, _: u64, (): &mut ()) {}

    fn end(&mut self, _: Side, _: u64, (): &mut ()) {}

    fn heap_bytes(&self) -> usize {
        self.0.capacity()
    }
}

#[derive(Default)]
struct Reasons(HashMap<Reason, u64>);

impl Observer<Greedy> for Reasons {
    fn begin(&mut self, _: &Conversation) -> Option<Greedy> {
        Some(Greedy(Vec::new()))
    }

    fn over(&mut self, _: &Conversation, ending: &Ending, _: Option<Greedy>, (): &mut ()) {
        *self.0.entry(ending.reason).or_default() += 1;
    }
}

struct Flooded {
    table: Conversations<Greedy>,
    reasons: Reasons,
    limits: Limits,
    taken: u64,
}

impl Flooded {
    fn new(bytes: usize) -> Self {
        let limits = Limits::new(bytes);
        Self { table: Conversations::new(&limits), reasons: Reasons::default(), limits, taken: 0 }
    }

    fn take(&mut self, packet: &Packet<'_>) {
        self.table.packet(packet, &mut self.reasons);
        self.taken += 1;
        if self.taken.is_multiple_of(64) {
            assert!(self.table.reserved_bytes() <= self.limits.bytes, "{}", self.table.reserved_bytes());
        }
        if self.taken.is_multiple_of(4096) {
            self.table.expire(packet.time_ns, &mut self.reasons);
        }
    }
}

/// Another attacker's address and port each time.
fn spoofed(number: u32) -> Tcp {
    let source = (mapped(number.wrapping_mul(0x9e37_79b1)), (number % 50_000) as u16 + 1024);
    let ends = [source, (mapped(0x0a00_0002), 443)];
    Tcp { ends, time_ns: 100 * SECOND + 1000 * u64::from(number), first: [number, 7] }
}

const FLOOD: u32 = 200_000;

#[test]
fn spoofed_syns_take_no_memory() {
    let mut flooded = Flooded::new(1 << 20);
    flooded.take(&spoofed(0).syn());
    let first = flooded.table.reserved_bytes();
    // The trace of the last SYNs: a 64th of the budget.
    assert!(first <= 1 << 14, "{first}");
    for number in 0..FLOOD {
        flooded.take(&spoofed(number).syn());
        flooded.take(&spoofed(number).at(Originator, 0, 0, ACK, b""));
        flooded.take(&spoofed(number).at(Originator, 0, 0, FIN, b""));
        flooded.take(&spoofed(number).at(Responder, 0, 0, RST | ACK, b""));
    }
    assert_eq!((flooded.table.reserved_bytes(), flooded.table.len()), (first, 0));
}

/// Floods of what does begin conversations, with a few real ones among it.
#[test]
fn a_flood_neither_exceeds_the_budget_nor_drives_out_who_is_confirmed() {
    type Flood = fn(&mut Flooded, Tcp);
    let answered: Flood = |flooded, tcp| {
        flooded.take(&tcp.syn());
        flooded.take(&tcp.syn_ack());
    };
    let payload: Flood = |flooded, tcp| flooded.take(&tcp.send(Originator, 0, b"spoofed"));
    let holes: Flood = |flooded, tcp| {
        flooded.take(&tcp.syn_ack());
        flooded.take(&tcp.send(Responder, 100, &[1; 600]));
    };
    let datagrams: Flood = |flooded, tcp| {
        flooded.take(&udp((tcp.ends[0].0 as u32, tcp.ends[0].1), (1, 53), tcp.time_ns, b"spoofed"));
    };
    for flood in [answered, payload, holes, datagrams] {
        for bytes in [LEAST_BYTES, 1 << 20] {
            let mut flooded = Flooded::new(bytes);
            let real: Vec<Tcp> = (0..8)
                .map(|port| {
                    let ends = [(mapped(9), 60_000 + port), (mapped(10), 443)];
                    Tcp { ends, ..Tcp::default() }
                })
                .collect();
            for tcp in &real {
                flooded.take(&tcp.syn_ack());
                flooded.take(&tcp.send(Originator, 0, b"hello"));
            }
            let before = flooded.table.len();
            for number in 0..FLOOD / 10 {
                flood(&mut flooded, spoofed(number));
            }
            assert_eq!(before, 8);
            let evicted = flooded.table.counts().evicted;
            assert!(evicted > u64::from(FLOOD / 10) / 2, "{evicted}");
            // They go on as what they were, not as something picked up in the middle.
            let midstream = flooded.table.counts().midstream;
            for tcp in &real {
                flooded.take(&tcp.send(Responder, 0, b"answer"));
            }
            assert_eq!(flooded.table.counts().midstream, midstream);
            flooded.table.finish(&mut flooded.reasons);
            assert_eq!(flooded.table.reserved_bytes(), 0);
        }
    }
}

#[test]
fn new_conversations_have_a_chance_where_others_fill_the_budget() {
    let mut flooded = Flooded::new(LEAST_BYTES);
    for number in 0..10_000 {
        let tcp = spoofed(number);
        flooded.take(&tcp.syn_ack());
        flooded.take(&tcp.send(Originator, 0, b"hello"));
    }
    assert!(flooded.reasons.0[&Reason::Evicted] > 9_000);
    // Each was confirmed before it had to go: the ones heard of last are there.
    let midstream = flooded.table.counts().midstream;
    for number in 9_990..10_000 {
        flooded.take(&spoofed(number).send(Responder, 0, b"answer"));
    }
    assert_eq!((flooded.table.counts().midstream, midstream), (0, 0));
}

/// A scan of ports on hosts, in partitions as the monitor has them.
fn sweep(mut probe: impl FnMut(&mut Flooded, Tcp)) -> u64 {
    const PARTITIONS: usize = 256;
    let (hosts, ports) = if std::env::var_os("CORELANE_FULL").is_some() { (1000, 65_536) } else { (1000, 512) };
    let mut partitions: Vec<_> = (0..PARTITIONS).map(|_| Flooded::new(LEAST_BYTES)).collect();
    let mut number = 0_u64;
    for port in 0..ports {
        for host in 0..hosts {
            number += 1;
            let ends = [(mapped(0x0a00_0001), 50_000), (mapped(0xc0a8_0000 + host), port as u16)];
            let tcp = Tcp { ends, time_ns: 100 * SECOND + 1000 * number, first: [number as u32, 9] };
            probe(&mut partitions[host as usize % PARTITIONS], tcp);
        }
    }
    let reserved: usize = partitions.iter().map(|flooded| flooded.table.reserved_bytes()).sum();
    assert!(reserved <= PARTITIONS * LEAST_BYTES);
    partitions.iter().map(|flooded| flooded.table.counts().conversations).sum()
}

#[test]
fn a_sweep_by_syns_begins_no_conversation() {
    let begun = sweep(|flooded, tcp| {
        flooded.take(&tcp.syn());
        flooded.take(&tcp.at(Responder, -1, 0, RST | ACK, b""));
    });
    assert_eq!(begun, 0);
}

#[test]
fn a_sweep_by_datagrams_stays_within_the_budget() {
    let mut probes = 0;
    let begun = sweep(|flooded, tcp| {
        probes += 1;
        let ends = tcp.ends.map(|(address, port)| (address as u32, port));
        flooded.take(&udp(ends[0], ends[1], tcp.time_ns, b"probe"));
    });
    assert_eq!(begun, probes);
}

#[test]
fn a_conversation_that_goes_gives_its_memory_back() {
    let mut flooded = Flooded::new(16 << 20);
    for number in 0..5_000 {
        flooded.take(&spoofed(number).send(Originator, 0, b"hello"));
    }
    let full = flooded.table.reserved_bytes();
    flooded.table.expire(1000 * SECOND, &mut flooded.reasons);
    assert_eq!(flooded.table.len(), 0);
    let empty = flooded.table.reserved_bytes();
    // A page of entries, the list of pages, the least index.
    assert!(full > 5 << 20 && empty < 16_384, "{full} {empty}");
}

/// The tables' hashes have random keys; what is evicted, and in which order, must not show it.
#[test]
fn what_is_evicted_is_the_same_every_time() {
    #[derive(Default)]
    struct Order(Vec<(String, Reason)>);
    impl Observer<Greedy> for Order {
        fn begin(&mut self, _: &Conversation) -> Option<Greedy> {
            Some(Greedy(Vec::new()))
        }
        fn over(&mut self, conversation: &Conversation, ending: &Ending, _: Option<Greedy>, (): &mut ()) {
            self.0.push((conversation.end(Originator).to_string(), ending.reason));
        }
    }
    let run = || {
        let mut table = Conversations::new(&Limits::new(LEAST_BYTES));
        let mut order = Order::default();
        for number in 0..20_000_u32 {
            let mut tcp = spoofed(number % 7 * number % 3001);
            // Now and then nothing is sent for long enough to time out.
            tcp.time_ns = u64::from(100 + number / 5000 * 1000) * SECOND + u64::from(number) * 1_000_000;
            match number % 5 {
                0 => table.packet(&tcp.syn_ack(), &mut order),
                1 => table.packet(&tcp.send(Originator, 0, b"hello"), &mut order),
                2 => table.packet(&tcp.send(Responder, 5, b"held back"), &mut order),
                3 => table.packet(&tcp.at(Originator, 5, 0, RST, b""), &mut order),
                _ => table.packet(&udp((number % 600, 5000), (7, 53), tcp.time_ns, b"question"), &mut order),
            }
            if number % 900 == 0 {
                table.expire(tcp.time_ns, &mut order);
            }
        }
        table.finish(&mut order);
        (order.0, *table.counts())
    };
    let (order, counts) = run();
    assert!(counts.evicted > 1000 && counts.timed_out > 0, "{counts:?}");
    for _ in 0..3 {
        assert!(run() == (order.clone(), counts));
    }
}
