//! The background: conversations of clients and servers.
//!
//! Popular hosts are chosen by Zipf's law, lengths by a bounded Pareto distribution. By construction the background
//! causes no alerts:
//!
//! - A TCP conversation is opened only if the slot of its SYN-ACK lies inside the capture. That slot is within the
//!   longest sleep, which is shorter than the SYN time-out.
//! - Only clients reset conversations. A server's RST could meet the next SYN of the same client to the same port and
//!   fail an attempt that was not planned.
//! - Attempts that fail go to [`DEAD`] services. A client always has the same ones, and fewer than any threshold.

use super::address::Plan;
use super::frame::{ACK, Buffer, Ends, FIN, FULL, Lengths, Options, PSH, RST, SYN, Segment, Side, tcp, udp};
use super::random::{Random, scale};

/// Services of a client, for each IP version, that do not answer. They are far below the threshold of a scan.
const DEAD: u64 = 4;
/// The ports of dead services; no living service has one of them.
const DEAD_PORTS: [u16; 8] = [23, 445, 1433, 3389, 5900, 6379, 8443, 9200];

/// Servers that a client prefers.
const FAVOURITES: u64 = 16;
/// The first number that [`Plan::trait_of`] takes for them; those below are for the dead services.
const FIRST_FAVOURITE: u64 = 2 * DEAD;

/// Durations, in packets of the capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    horizon: u64,
}

impl Pace {
    pub(super) fn new(horizon: u64) -> Self {
        Self { horizon }
    }

    /// The time to a server and back: between a 256th and an eighth of the longest sleep.
    pub(super) fn round_trip(self, random: &mut Random) -> u16 {
        let longest = (self.horizon / 8).max(1) >> random.below(5);
        (longest / 2 + random.below(longest / 2 + 1)).max(1) as u16
    }

    /// The time until a SYN is repeated.
    pub(super) fn patience(self, random: &mut Random) -> u64 {
        self.horizon / 2 + random.below(self.horizon / 2 + 1)
    }

    /// The time until a user acts again.
    pub(super) fn think(self, draw: u64) -> u64 {
        let shortest = self.horizon / 16;
        shortest + scale(draw, self.horizon - shortest)
    }

    /// The time from packet to packet of a burst, or to the near end and back.
    fn soon(draw: u64) -> u64 {
        1 + (draw >> 60)
    }
}

/// The next step of a TCP conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Accept,
    Confirm,
    Data,
    Close,
    CloseBack,
    LastAck,
    Abort,
}

/// A TCP conversation that will be accepted.
#[derive(Clone, Debug)]
pub(super) struct Tcp {
    ends: Ends,
    /// The next sequence number of each side.
    next: [u32; 2],
    /// The time stamp that each side sent last.
    stamps: [u32; 2],
    /// Data packets to come.
    left: u32,
    round_trip: u16,
    id: u16,
    stage: Stage,
    /// The side that sends the bulk of the data; the other asks for it.
    bulk: Side,
    /// Data packets of the burst to come.
    burst: u8,
    /// Data packets since the last acknowledgement.
    unacknowledged: u8,
}

/// The packet of one step of a conversation, and the number of packets until the next step.
struct Step {
    side: Side,
    flags: u8,
    payload: u16,
    wait: Option<u64>,
}

impl Tcp {
    pub(super) fn new(plan: &Plan, pace: Pace, random: &mut Random) -> Self {
        let draw = random.next();
        Self {
            ends: ends(plan, random, |server| service(plan, server)),
            next: [draw as u32, (draw >> 32) as u32],
            stamps: [0; 2],
            left: random.pareto(),
            round_trip: pace.round_trip(random),
            id: (draw >> 13) as u16,
            stage: Stage::Accept,
            bulk: if draw >> 61 == 0 { Side::Client } else { Side::Server },
            burst: 0,
            unacknowledged: 0,
        }
    }

    pub(super) fn round_trip(&self) -> u64 {
        self.round_trip.into()
    }

    /// Sends the SYN.
    pub(super) fn open(&mut self, buffer: &mut Buffer, time_ns: u64) -> Lengths {
        // Some stacks offer explicit congestion notification (ECE and CWR).
        let flags = if self.id & 7 == 0 { SYN | 0xc0 } else { SYN };
        self.send(buffer, &Step { side: Side::Client, flags, payload: 0, wait: None }, time_ns)
    }

    /// Sends the next packet, and returns the wait until the one after it.
    #[inline]
    pub(super) fn step(&mut self, buffer: &mut Buffer, pace: Pace, draw: u64, time_ns: u64) -> (Lengths, Option<u64>) {
        let soon = Some(Pace::soon(draw));
        let (side, flags, stage, wait) = match self.stage {
            Stage::Data => {
                let step = self.exchange(pace, draw);
                let lengths = self.send(buffer, &step, time_ns);
                return (lengths, step.wait);
            }
            Stage::Accept => (Side::Server, SYN | ACK, Stage::Confirm, soon),
            Stage::Confirm => (Side::Client, ACK, Stage::Data, soon),
            Stage::Close => (Side::Client, FIN | ACK, Stage::CloseBack, Some(self.round_trip())),
            Stage::CloseBack => (Side::Server, FIN | ACK, Stage::LastAck, soon),
            Stage::LastAck => (Side::Client, ACK, Stage::LastAck, None),
            Stage::Abort => (Side::Client, RST | ACK, Stage::Abort, None),
        };
        let lengths = self.send(buffer, &Step { side, flags, payload: 0, wait }, time_ns);
        self.stage = stage;
        (lengths, wait)
    }

    /// A request, a part of the burst that answers it, or the burst's acknowledgement, which comes for every second
    /// packet.
    #[inline]
    fn exchange(&mut self, pace: Pace, draw: u64) -> Step {
        let asks = self.bulk.other();
        let step = if self.unacknowledged == 2 || (self.unacknowledged == 1 && self.burst == 0) {
            self.unacknowledged = 0;
            let wait = if self.burst == 0 { pace.think(draw) } else { Pace::soon(draw) };
            Step { side: asks, flags: ACK, payload: 0, wait: Some(wait) }
        } else if self.burst == 0 {
            self.burst = 1 + (draw & 7) as u8;
            let payload = 60 + (draw >> 3 & 0x1ff) as u16;
            Step { side: asks, flags: PSH | ACK, payload, wait: Some(self.round_trip()) }
        } else {
            self.burst -= 1;
            self.unacknowledged += 1;
            let full = FULL[usize::from(self.ends.v6)];
            let (flags, payload) =
                if self.burst == 0 { (PSH | ACK, 1 + scale(draw, full.into()) as u16) } else { (ACK, full) };
            Step { side: self.bulk, flags, payload, wait: Some(Pace::soon(draw)) }
        };
        self.left -= 1;
        if self.left == 0 {
            self.stage = if draw >> 32 & 15 == 0 { Stage::Abort } else { Stage::Close };
        }
        step
    }

    #[inline]
    fn send(&mut self, buffer: &mut Buffer, step: &Step, time_ns: u64) -> Lengths {
        let (side, other) = (step.side as usize, step.side.other() as usize);
        // These are milliseconds of a clock that every host started at another time.
        let stamp =
            ((time_ns / 1_000_000) as u32).wrapping_add((self.ends.addresses[side] as u32).wrapping_mul(0x9e37_79b9));
        let echo = self.stamps[other];
        self.stamps[side] = stamp;
        let segment = Segment {
            sequence: self.next[side],
            acknowledgement: if step.flags & ACK != 0 { self.next[other] } else { 0 },
            flags: step.flags,
            window: if step.flags & SYN != 0 { 64_240 } else { 502 - u16::from(self.burst) },
            options: match step.flags {
                flags if flags & SYN != 0 => Options::Open { stamp, echo },
                flags if flags & RST != 0 => Options::None,
                _ => Options::Stamps { stamp, echo },
            },
            payload: step.payload,
            id: self.id,
        };
        self.id = self.id.wrapping_add(1);
        let taken = u32::from(step.payload) + u32::from(step.flags & (SYN | FIN) != 0);
        self.next[side] = self.next[side].wrapping_add(taken);
        tcp(buffer, &self.ends, step.side, &segment)
    }
}

/// A UDP conversation: a question and its answer, or a stream.
#[derive(Clone, Debug)]
pub(super) struct Udp {
    ends: Ends,
    left: u32,
    round_trip: u16,
    id: u16,
    stream: bool,
}

impl Udp {
    pub(super) fn question(plan: &Plan, pace: Pace, random: &mut Random) -> Self {
        let port = if random.below(16) == 0 { 123 } else { 53 };
        Self::new(ends(plan, random, |_| port), 1, false, pace, random)
    }

    pub(super) fn stream(plan: &Plan, pace: Pace, random: &mut Random) -> Self {
        let port = [443, 443, 3_478, 5_004][random.below(4) as usize];
        let left = random.pareto();
        Self::new(ends(plan, random, |_| port), left, true, pace, random)
    }

    fn new(ends: Ends, left: u32, stream: bool, pace: Pace, random: &mut Random) -> Self {
        Self { ends, left, round_trip: pace.round_trip(random), id: random.next() as u16, stream }
    }

    pub(super) fn open(&mut self, buffer: &mut Buffer) -> (Lengths, Option<u64>) {
        (udp(buffer, &self.ends, Side::Client, 24 + (self.id & 31), self.id), Some(self.round_trip.into()))
    }

    #[inline]
    pub(super) fn step(&mut self, buffer: &mut Buffer, pace: Pace, draw: u64) -> (Lengths, Option<u64>) {
        self.left -= 1;
        self.id = self.id.wrapping_add(1);
        let (side, payload) = match draw & 3 {
            0 if self.stream => (Side::Client, 30 + (draw >> 8 & 0xff) as u16),
            _ if self.stream => (Side::Server, 1_200),
            _ => (Side::Server, 60 + (draw >> 8 & 0xff) as u16),
        };
        let wait = if draw >> 16 & 7 == 0 { pace.think(draw) } else { Pace::soon(draw) };
        (udp(buffer, &self.ends, side, payload, self.id), (self.left > 0).then_some(wait))
    }
}

/// An attempt of the background that will fail.
#[derive(Clone, Debug)]
pub(super) struct Dead {
    pub(super) ends: Ends,
    /// Refused at once, or never answered.
    pub(super) refused: bool,
    /// The number of times that the SYN is repeated.
    pub(super) again: u8,
}

impl Dead {
    pub(super) fn new(plan: &Plan, random: &mut Random) -> Self {
        let client = random.zipf(plan.clients());
        let v6 = is_v6(random);
        let which = plan.trait_of(client, random.below(DEAD) + if v6 { DEAD } else { 0 });
        let refused = which & 1 == 0;
        let there = if refused { plan.server(v6, scale(which, plan.servers())) } else { plan.nowhere(v6, which >> 40) };
        let ends = Ends {
            v6,
            addresses: [plan.client(v6, client), there],
            ports: [ephemeral(random), DEAD_PORTS[(which >> 8 & 7) as usize]],
        };
        Self { ends, refused, again: if refused { 0 } else { random.below(3) as u8 } }
    }
}

/// The port that a client's conversation comes from.
pub(super) fn ephemeral(random: &mut Random) -> u16 {
    32_768 + random.below(28_232) as u16
}

/// A client and its server, with the port of that server.
fn ends(plan: &Plan, random: &mut Random, port: impl FnOnce(u64) -> u16) -> Ends {
    let client = random.zipf(plan.clients());
    // Three times of four a client goes to one of its favourite servers.
    let server = if random.below(4) > 0 {
        let favourite = plan.trait_of(client, FIRST_FAVOURITE + random.below(FAVOURITES));
        Random::new(favourite).zipf(plan.servers())
    } else {
        random.zipf(plan.servers())
    };
    let v6 = is_v6(random);
    let ports = [ephemeral(random), port(server)];
    Ends { v6, addresses: [plan.client(v6, client), plan.server(v6, server)], ports }
}

/// 16 % of the conversations are IPv6.
fn is_v6(random: &mut Random) -> bool {
    random.below(100) < 16
}

/// The port that a server listens on.
fn service(plan: &Plan, server: u64) -> u16 {
    const PORTS: [u16; 16] = [443, 443, 443, 443, 443, 443, 443, 443, 80, 80, 80, 22, 25, 993, 5_222, 8_080];
    PORTS[(plan.trait_of(server, 0xfe) & 15) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_living_service_has_the_port_of_a_dead_one() {
        let plan = Plan::new(2, &mut Random::new(1));
        assert!((0..1_000).all(|server| !DEAD_PORTS.contains(&service(&plan, server))));
    }
}
