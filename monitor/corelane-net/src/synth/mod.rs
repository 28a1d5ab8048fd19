//! Synthetic traffic with planted scans.
//!
//! A [`Generator`] makes one frame after the other. They are heavy-tailed conversations between many pairs of hosts,
//! thousands of them at once, over TCP and UDP, IPv4 and IPv6, and planted port scans. [`Generator::truth`] has the
//! scans that a monitor must find in them, to the nanosecond. The memory is the same for a thousand packets and for a
//! billion.
//!
//! The same [`Config`] gives the same bytes, on every machine. Addresses are from ranges that are assigned to no
//! network. The checksums of IP, TCP and UDP are right: the payload, where it is captured at all, is zeros.
//! [`Conversations`] makes traffic with payload.
//!
//! ```
//! use corelane_net::synth::{Config, Generator, truth_json};
//!
//! let mut generator = Generator::new(Config { packets: 20_000, ..Config::default() })?;
//! let mut bytes = 0;
//! while let Some(record) = generator.next_frame() {
//!     bytes += u64::from(record.wire_len);
//! }
//! println!("{bytes} bytes, scans: {}", truth_json(&generator.truth()));
//! # Ok::<(), corelane_net::synth::ConfigError>(())
//! ```
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `config.rs`, `traffic.rs` | the configuration; the background |
//! | `scan.rs`, `truth.rs` | planted scans; the alerts that a monitor must find |
//! | `conversations.rs`, `tunnel.rs` | traffic with payload; frames wrapped in tunnels |
//! | `frame.rs`, `address.rs`, `calendar.rs`, `random.rs` | headers; addresses; the order of senders; chance |

use std::fmt;

use crate::capture::write::PcapWriter;
use crate::capture::{LinkType, Record};

mod address;
mod calendar;
mod config;
mod conversations;
mod frame;
mod random;
mod scan;
mod traffic;
mod truth;
mod tunnel;

use address::Plan;
use calendar::{Calendar, Clock};
pub use config::{Config, ConfigError};
pub use conversations::Conversations;
use frame::{ACK, Buffer, Ends, FIN, Lengths, Options, PSH, RST, SYN, Segment, Side, URG};
use random::Random;
use scan::{Fate, Scans};
use traffic::{Dead, Pace, Tcp, Udp};
pub use truth::{Alert, Probe, Scanned, truth_json};
use truth::{Reply, SYN_TIMEOUT_NS, probe_failure};
pub use tunnel::Tunnel;

/// The link type of the frames: Ethernet.
pub const LINK: LinkType = LinkType(1);

/// No agent sleeps longer than this, so every handshake is answered before the SYN timeout.
const LONGEST_SLEEP_NS: u64 = SYN_TIMEOUT_NS - 400_000_000;

/// Makes traffic, frame by frame.
pub struct Generator {
    config: Config,
    /// Number of the next frame.
    next: u64,
    clock: Clock,
    calendar: Calendar,
    pace: Pace,
    plan: Plan,
    random: Random,
    scans: Scans,
    /// All agents that have a slot in the calendar, and in `free` the unused numbers.
    agents: Vec<Agent>,
    free: Vec<u32>,
    buffer: Box<Buffer>,
}

/// An agent that sends a packet in a later slot.
#[derive(Clone, Debug)]
enum Agent {
    Tcp(Tcp),
    Udp(Udp),
    Attempt(Attempt),
}

/// An attempt to connect that may fail, of a scan or of the background; or another probe of a scan.
#[derive(Clone, Debug)]
struct Attempt {
    probe: Option<Probe>,
    ends: Ends,
    options: Options,
    sequence: u32,
    opened: u64,
    /// The scan whose truth depends on the outcome.
    scan: Option<u32>,
    /// The SYN, or the probe in its place, has been sent more than once.
    repeated: bool,
    next: Next,
}

/// The next packet of an attempt.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// The SYN again, at least once, and then perhaps a reply.
    Again(u8, Option<Reply>),
    /// A reply.
    Reply(Reply),
    /// The scanner drops the connection, which it does not want.
    Drop,
}

impl Next {
    /// The SYN `more` times again, and then perhaps a reply.
    fn again(more: u8, reply: Option<Reply>) -> Option<Self> {
        if more > 0 { Some(Self::Again(more, reply)) } else { reply.map(Self::Reply) }
    }
}

impl Generator {
    /// Prepares the traffic that `config` describes.
    ///
    /// # Errors
    ///
    /// If a value of `config` is out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let mut random = Random::new(config.seed);
        let gap_ns = config.gap_ns();
        // Small captures have a short horizon, so that conversations get somewhere.
        let horizon = (LONGEST_SLEEP_NS / gap_ns).min(calendar::LONGEST).min((config.packets / 4).max(16));
        let clock = Clock::new(config.start_ns, gap_ns, random.next());
        let plan = Plan::new(config.hosts, &mut random);
        let scans = Scans::new(&config, &plan, &mut random);
        Ok(Self {
            next: 0,
            clock,
            calendar: Calendar::new(horizon),
            pace: Pace::new(horizon),
            plan,
            random,
            scans,
            agents: Vec::new(),
            free: Vec::new(),
            buffer: Box::new(frame::EMPTY),
            config,
        })
    }

    /// The configuration of this traffic.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The next frame, or `None` once all frames have been made. Times do not decrease.
    #[inline]
    pub fn next_frame(&mut self) -> Option<Record<'_>> {
        let now = self.next;
        if now == self.config.packets {
            return None;
        }
        self.next += 1;
        let time_ns = self.clock.time(now);
        let Lengths { headers, wire } = match self.calendar.take(now) {
            Some(number) => self.resume(number, now, time_ns),
            None => self.open(now, time_ns),
        };
        let captured = match self.config.snaplen {
            Config::HEADERS_ONLY => headers,
            snaplen => wire.min(snaplen as usize),
        };
        Some(Record { time_ns, wire_len: wire as u32, link: LINK, data: &self.buffer[..captured] })
    }

    /// The alerts that a monitor with the default thresholds and time-out must report for these frames, in the report's
    /// order.
    ///
    /// They are complete once [`next_frame`](Self::next_frame) has returned `None`; before that they cover the probes
    /// so far.
    #[must_use]
    pub fn truth(&self) -> Vec<Alert> {
        let end = self.config.packets.checked_sub(1).map_or(0, |last| self.clock.time(last));
        self.scans.alerts(&self.plan, end)
    }

    /// Sends the packet of the slot's owner.
    #[inline]
    fn resume(&mut self, number: u32, now: u64, time_ns: u64) -> Lengths {
        let draw = self.random.next();
        let (lengths, wait) = match &mut self.agents[number as usize] {
            Agent::Tcp(tcp) => tcp.step(&mut self.buffer, self.pace, draw, time_ns),
            Agent::Udp(udp) => udp.step(&mut self.buffer, self.pace, draw),
            Agent::Attempt(_) => return self.pursue(number, now),
        };
        match wait {
            Some(delay) => self.calendar.put(self.calendar.find(now, delay), number),
            None => self.free.push(number),
        }
        lengths
    }

    /// Begins something new in a free slot. Probes of scans come first, so that all scans are completed.
    fn open(&mut self, now: u64, time_ns: u64) -> Lengths {
        if let Some(scan) = self.scans.due(now) {
            return self.probe(scan, now, time_ns);
        }
        match self.random.below(100) {
            0 => self.open_dead(now, time_ns),
            1..18 => self.open_udp(now, false),
            18 => self.open_udp(now, true),
            _ => self.open_tcp(now, time_ns),
        }
    }

    fn open_tcp(&mut self, now: u64, time_ns: u64) -> Lengths {
        let mut tcp = Tcp::new(&self.plan, self.pace, &mut self.random);
        // A handshake cut off by the capture's end would be a failed attempt. Near the end only quick ones fit.
        let mut slot = self.calendar.find(now, tcp.round_trip());
        if slot >= self.config.packets {
            slot = self.calendar.find(now, 1);
        }
        if slot >= self.config.packets {
            return self.open_udp(now, false);
        }
        let lengths = tcp.open(&mut self.buffer, time_ns);
        self.sleep(slot, Agent::Tcp(tcp));
        lengths
    }

    fn open_udp(&mut self, now: u64, stream: bool) -> Lengths {
        let make = if stream { Udp::stream } else { Udp::question };
        let mut udp = make(&self.plan, self.pace, &mut self.random);
        let (lengths, wait) = udp.open(&mut self.buffer);
        if let Some(delay) = wait {
            self.sleep(self.calendar.find(now, delay), Agent::Udp(udp));
        }
        lengths
    }

    /// Opens an attempt of the background that fails.
    fn open_dead(&mut self, now: u64, time_ns: u64) -> Lengths {
        let Dead { ends, refused, again } = Dead::new(&self.plan, &mut self.random);
        let next = if refused { Some(Next::Reply(Reply::Reject)) } else { Next::again(again, None) };
        self.attempt(None, ends, Options::SegmentSize, None, next, now, time_ns)
    }

    /// Sends a probe of a scan.
    fn probe(&mut self, number: u32, now: u64, time_ns: u64) -> Lengths {
        let probe = self.scans.probe(&self.plan, &mut self.random);
        // A listening port drops a segment that opens nothing, and no ICMP errors are made here.
        let is_sent = |reply: &Reply| match probe.kind {
            None => true,
            Some(Probe::Udp) => *reply == Reply::Accept,
            Some(_) => *reply == Reply::Reject,
        };
        let next = match probe.fate {
            Fate::Answered(reply) => Next::again(0, Some(reply).filter(is_sent)),
            Fate::Silent(again) => Next::again(again, None),
            Fate::Late(reply) => Next::again(1, Some(reply).filter(is_sent)),
        };
        self.attempt(probe.kind, probe.ends, probe.options, Some(number), next, now, time_ns)
    }

    /// Opens an attempt with its SYN, or sends another probe.
    #[allow(clippy::too_many_arguments)] // What an attempt is made of, and the moment.
    fn attempt(
        &mut self,
        probe: Option<Probe>,
        ends: Ends,
        options: Options,
        scan: Option<u32>,
        next: Option<Next>,
        now: u64,
        time_ns: u64,
    ) -> Lengths {
        let sequence = self.random.next() as u32;
        let lengths = knock(&mut self.buffer, probe, &ends, options, sequence);
        match next {
            Some(next) => {
                let mut attempt =
                    Attempt { probe, ends, options, sequence, opened: time_ns, scan, repeated: false, next };
                let slot = self.appoint(&mut attempt, now);
                self.sleep(slot, Agent::Attempt(attempt));
            }
            None => self.settle(probe, scan, time_ns, None),
        }
        lengths
    }

    /// Sends the next packet of an attempt.
    fn pursue(&mut self, number: u32, now: u64) -> Lengths {
        let Agent::Attempt(attempt) = &self.agents[number as usize] else { unreachable!("only attempts are pursued") };
        let mut attempt = attempt.clone();
        let (lengths, next) = match attempt.next {
            Next::Again(more, reply) => {
                attempt.repeated = true;
                let lengths = knock(&mut self.buffer, attempt.probe, &attempt.ends, attempt.options, attempt.sequence);
                (lengths, Next::again(more - 1, reply))
            }
            Next::Reply(_) if attempt.probe == Some(Probe::Udp) => {
                let (payload, id) = (20 + (attempt.sequence & 63) as u16, !attempt.sequence as u16);
                (frame::udp(&mut self.buffer, &attempt.ends, Side::Server, payload, id), None)
            }
            Next::Reply(reply) => {
                let (flags, sequence) = match reply {
                    Reply::Accept => (SYN | ACK, !attempt.sequence),
                    Reply::Reject => (RST | ACK, 0),
                };
                // SYN and FIN count as a byte.
                let taken = u32::from(attempt.probe != Some(Probe::Null));
                let numbers = [sequence, attempt.sequence.wrapping_add(taken)];
                let lengths = bare(&mut self.buffer, &attempt.ends, Side::Server, numbers, flags);
                (lengths, (reply == Reply::Accept).then_some(Next::Drop))
            }
            Next::Drop => {
                let numbers = [attempt.sequence.wrapping_add(1), 0];
                let lengths = bare(&mut self.buffer, &attempt.ends, Side::Client, numbers, RST);
                (lengths, None)
            }
        };
        if let Some(next) = next {
            attempt.next = next;
            let slot = self.appoint(&mut attempt, now);
            self.calendar.put(slot, number);
            self.agents[number as usize] = Agent::Attempt(attempt);
        } else {
            self.free.push(number);
        }
        lengths
    }

    /// Finds the slot for the next packet of an attempt. The truth is settled as soon as that slot decides the outcome.
    fn appoint(&mut self, attempt: &mut Attempt, now: u64) -> u64 {
        let delay = match attempt.next {
            Next::Again(..) => self.pace.patience(&mut self.random),
            // This reply may come after the deadline.
            Next::Reply(_) if attempt.repeated => self.pace.think(self.random.next()),
            Next::Reply(_) => self.pace.round_trip(&mut self.random).into(),
            Next::Drop => 1,
        };
        let slot = self.calendar.find(now, delay);
        let inside = slot < self.config.packets;
        match attempt.next {
            Next::Reply(reply) => {
                let reply = inside.then(|| (reply, self.clock.time(slot)));
                self.settle(attempt.probe, attempt.scan.take(), attempt.opened, reply);
            }
            Next::Again(_, Some(_)) if inside => (),
            Next::Again(..) => self.settle(attempt.probe, attempt.scan.take(), attempt.opened, None),
            Next::Drop => (),
        }
        slot
    }

    /// Settles the truth of an attempt whose outcome is known.
    fn settle(&mut self, probe: Option<Probe>, scan: Option<u32>, opened: u64, reply: Option<(Reply, u64)>) {
        let Some(scan) = scan else { return };
        match probe_failure(probe, opened, reply) {
            Some(time) => self.scans.failed(scan, time),
            None if probe.is_some() => self.scans.answered(scan),
            None => {}
        }
    }

    /// Gives the slot to a new agent.
    fn sleep(&mut self, slot: u64, agent: Agent) {
        let number = match self.free.pop() {
            Some(number) => {
                self.agents[number as usize] = agent;
                number
            }
            None => {
                self.agents.push(agent);
                // There are no more agents than slots.
                (self.agents.len() - 1) as u32
            }
        };
        self.calendar.put(slot, number);
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generator").field("config", &self.config).field("next", &self.next).finish_non_exhaustive()
    }
}

/// A whole capture in memory: the image of a pcap file.
///
/// # Errors
///
/// If a value of `config` is out of its range.
pub fn capture(config: Config) -> Result<Vec<u8>, ConfigError> {
    let mut generator = Generator::new(config)?;
    let config = generator.config();
    // With headers only a record takes 100 bytes at most, and 86 on average.
    let room = config.packets.saturating_mul(if config.snaplen == Config::HEADERS_ONLY { 88 } else { 128 });
    let image = Vec::with_capacity(usize::try_from(room).unwrap_or(0) + 64 * 1024);
    let snaplen = config.file_snaplen();
    let mut writer = PcapWriter::new(image, snaplen, LINK).expect(VEC);
    while let Some(record) = generator.next_frame() {
        writer.write(record.time_ns, record.wire_len, record.data).expect(VEC);
    }
    Ok(writer.finish().expect(VEC))
}

/// The reason why writing cannot fail there; the times are checked with the configuration.
const VEC: &str = "a Vec takes everything";

/// Writes a SYN of an attempt, or another probe.
fn knock(buffer: &mut Buffer, probe: Option<Probe>, ends: &Ends, options: Options, sequence: u32) -> Lengths {
    let flags = match probe {
        None => SYN,
        Some(Probe::Fin) => FIN,
        Some(Probe::Null) => 0,
        Some(Probe::Xmas) => FIN | PSH | URG,
        Some(Probe::SynFin) => SYN | FIN,
        Some(Probe::Odd) => FIN | PSH,
        Some(Probe::Udp) => return frame::udp(buffer, ends, Side::Client, 0, sequence as u16),
    };
    let segment =
        Segment { sequence, acknowledgement: 0, flags, window: 1_024, options, payload: 0, id: sequence as u16 };
    frame::tcp(buffer, ends, Side::Client, &segment)
}

/// Writes a segment without options or data.
fn bare(buffer: &mut Buffer, ends: &Ends, side: Side, [sequence, acknowledgement]: [u32; 2], flags: u8) -> Lengths {
    let segment = Segment { sequence, acknowledgement, flags, window: 0, options: Options::None, payload: 0, id: 0 };
    frame::tcp(buffer, ends, side, &segment)
}
