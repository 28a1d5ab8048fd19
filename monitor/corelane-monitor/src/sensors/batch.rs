//! The batch: what a sensor says of a part of its time.
//!
//! Reports lie in sections, one for each shard of sources that has any. An aggregator of some shards keeps theirs, and
//! of others the answers by which clients of IPv6 are no scanners. In a section they are sorted, and what a report
//! shares with the one before it is left out: a failed attempt of a scan takes 5 to 9 bytes, one of another source
//! 13 to 17, and some 24 more over IPv6.
//!
//! # The format
//!
//! Numbers are little-endian. A varint has seven bits a byte, the lowest first. A batch of another version is refused.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `CLB`, version 4 |
//! | 1 | 1: more batches of this time follow; 2: the sensor's run has ended |
//! | 1 + n | the sensor's name |
//! | 8, 8 | epoch, later for each run; sequence in it, from 0 |
//! | 8 | failures in earlier batches of the epoch |
//! | 8, 8 | nanoseconds since 1970: the batch is from here to there |
//! | varint | failures in this batch |
//! | 1, varint, … | for each shard that has any: its number, the length of its section, the section |
//!
//! A failure in a section is a byte of flags, then what differs from the one before: source, destination, port (in
//! network order, network order, little-endian), and the difference of the times as a zigzag varint. Flags: 1 IPv6; 2,
//! 4, 8 the same source, destination, port; the upper four bits are the outcome: 0 a SYN that was unanswered, 1 one
//! that was rejected, 2 to 12 a failed probe of a kind from 1 on. 14 means that one byte more stands there: 16 and the
//! kind of a probe that was answered, 0 for a SYN; 32 and the kind of one that was judged early; 48 or 49 as 0 or 1 of
//! a SYN that was told as answered; 50 or 51 likewise of one whose key was answered before; 128 and the kind of one
//! that is polled from now on, 0 for a SYN; 64 and what stands there otherwise, for a key that may have been told
//! before.
//!
//! Behind the time of a SYN of IPv6 that failed, or of IPv4 that was answered, a byte says how long before it was sent:
//! so many 32nds of a second, or 127 if it is not known. 15 is no failure but the tunnel between this source and
//! destination, and stands before their failures: there is no port, and behind the time 38 bytes follow: source and
//! destination (IPv4 as `::ffff:a.b.c.d`), their ports (little-endian), the protocol and the depth.

use crate::probe::Probe;
use crate::state_report::{Content, Failure, StateReport, Tried, Verdict};
use crate::through::Through;
use crate::twins::Lag;
use corelane_net::decode::{DEEPEST, Tunnel};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The version of the format.
pub const VERSION: u8 = 4;
/// The most bytes of a batch; a sensor makes several of more. NATS takes messages of 1 MiB, unless told otherwise.
pub const MOST_BYTES: usize = 512 << 10;

const MAGIC: [u8; 3] = *b"CLB";

/// Set in the second byte: more batches of the same time follow.
const MORE: u8 = 1;
/// The sensor has ended.
const LAST: u8 = 1 << 1;

/// Set in the first byte of a report.
const V6: u8 = 1;
/// The source is that of the report before …
const SAME_SOURCE: u8 = 1 << 1;
/// … and the destination …
const SAME_DESTINATION: u8 = 1 << 2;
/// … and the port.
const SAME_PORT: u8 = 1 << 3;
/// The shift of what became of it: 0 and 1 are a SYN that was unanswered or rejected, then come failed probes by their
/// kinds.
const OUTCOME: u32 = 4;
/// In place of what became of it: the next byte says so.
const MORE_OUTCOME: u8 = 14;
/// In place of what became of it: the tunnel between source and destination.
const THROUGH: u8 = 15;

/// A failure that is known after the end of a run has at most this much later a time, in nanoseconds.
const LATER_NS: u64 = 3600 * 1_000_000_000;

/// The name of a sensor: 1 to 64 letters, digits, `-` and `_` of ASCII.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SensorName(Box<str>);

impl SensorName {
    /// The most letters.
    pub const MOST: usize = 64;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SensorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for SensorName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_');
        if (1..=SensorName::MOST).contains(&name.len()) && name.bytes().all(is_letter) {
            return Ok(SensorName(name.into()));
        }
        Err("not the name of a sensor; give 1 to 64 letters, digits, '-' and '_'".to_owned())
    }
}

/// The shard of a source, the same in every program and on every machine.
pub fn shard_of(source: IpAddr) -> u8 {
    let bits = match source {
        IpAddr::V4(source) => u128::from(source.to_bits()),
        IpAddr::V6(source) => source.to_bits(),
    };
    // The finalizer of SplitMix64 on each half.
    let mix = |word: u64| {
        let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    };
    (mix(mix((bits >> 64) as u64).wrapping_add(bits as u64)) >> 56) as u8
}

/// What a batch says beside its reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sensor.
    pub sensor: SensorName,
    /// The run of the sensor: later runs have larger ones. It is the second since the epoch of Unix in which the run
    /// began, or one more than that of the run before.
    pub epoch: u64,
    /// The place among the batches of the epoch: 0, 1, 2 …
    pub sequence: u64,
    /// How many reports the earlier batches of the epoch had.
    pub before: u64,
    /// The batch is of the time from here, in nanoseconds since the epoch of Unix …
    pub since_ns: u64,
    /// … to here: all steps before this are over, unless more follows.
    pub begun_ns: u64,
    /// Whether more batches of the same time follow.
    pub more: bool,
    /// Whether this is the last batch of the sensor's run.
    pub is_last: bool,
}

/// A batch, as far as an aggregator of some shards needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What it says beside its reports.
    pub header: Header,
    /// How many reports it has, of all shards.
    pub count: u64,
    /// The reports of the shards that were asked for.
    pub reports: Vec<StateReport>,
    /// Of other shards, the answered SYNs of IPv4: those of sources that may have another address by IPv6.
    pub others: Vec<StateReport>,
    /// The tunnels between the hosts of reports, of the same shards as those.
    pub through: Vec<Through>,
}

/// Why bytes are no batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchError {
    /// They do not begin as a batch.
    NotABatch,
    /// A batch of another version.
    Version(u8),
    /// What stands at this byte is none of a batch.
    Damaged {
        /// The number of bytes before it.
        at: usize,
    },
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BatchError::NotABatch => f.write_str("not a batch of a sensor"),
            BatchError::Version(version) => {
                write!(
                    f,
                    "a batch of version {version}, and this program reads version {VERSION}; update the older one"
                )
            }
            BatchError::Damaged { at } => write!(f, "damaged at byte {at}"),
        }
    }
}

impl std::error::Error for BatchError {}

/// The order of hosts in a batch: all of a source are together.
fn hosts(source: IpAddr, destination: IpAddr) -> impl Ord + use<> {
    (shard_of(source), source, destination)
}

/// The order of reports in a batch.
fn order(report: &StateReport) -> impl Ord + use<> {
    let outcome = outcome(report);
    (hosts(report.source(), report.destination()), report.time_ns(), report.port(), outcome, report.lag().0)
}

/// In front of the number of a kind whose probe was answered, 0 for a SYN: a byte of its own.
const ANSWERED: u8 = 16;
/// The same of one that was judged early.
const EARLY: u8 = 32;
/// The same of a SYN that was told as answered, and has failed: without a refusal, or with one.
const REFUTED: u8 = 48;
/// The same of one whose key was answered before.
const KNOWN: u8 = 50;
/// In front of the number of a kind whose key is polled from now on, 0 for a SYN.
const POLLED: u8 = 128;
/// Set in that byte for a key that may have been told before.
const AGAIN: u8 = 64;

fn outcome(report: &StateReport) -> Option<u8> {
    let rejected = u8::from(report.failure() == Failure::Rejected);
    let again = if report.is_again() { AGAIN } else { 0 };
    let outcome = match report.content() {
        Content::Failed(None) if report.is_refuted() => REFUTED + rejected,
        Content::Failed(None) if report.is_known() => KNOWN + rejected,
        Content::Failed(None) => rejected,
        Content::Failed(Some(probe)) if rejected != 0 => EARLY + probe.number() as u8,
        Content::Failed(Some(probe)) => 1 + probe.number() as u8,
        Content::Answered(probe) => ANSWERED + probe.map_or(0, Probe::number) as u8,
        Content::Polled(probe) => POLLED + probe.map_or(0, Probe::number) as u8,
        Content::Sent { .. } => return None,
    };
    Some(again | outcome)
}

fn verdict(outcome: u8) -> Option<(Option<Probe>, Verdict)> {
    let probe = |number: u8| Probe::of_number(number.into());
    let waits = |number: u8| probe(number).filter(|probe| probe.waits());
    const UNANSWERED: Verdict = Verdict::Failed(Failure::Unanswered);
    match outcome {
        0 => Some((None, UNANSWERED)),
        1 => Some((None, Verdict::Failed(Failure::Rejected))),
        2..ANSWERED => Some((Some(probe(outcome - 1)?), UNANSWERED)),
        ANSWERED => Some((None, Verdict::Answered)),
        17..EARLY => Some((Some(waits(outcome - ANSWERED)?), Verdict::Answered)),
        REFUTED => Some((None, Verdict::Refuted(Failure::Unanswered))),
        49 => Some((None, Verdict::Refuted(Failure::Rejected))),
        KNOWN => Some((None, Verdict::Known(Failure::Unanswered))),
        51 => Some((None, Verdict::Known(Failure::Rejected))),
        EARLY..REFUTED => Some((Some(waits(outcome - EARLY)?), Verdict::Failed(Failure::Rejected))),
        POLLED => Some((None, Verdict::Polled)),
        129.. => Some((Some(waits(outcome - POLLED)?), Verdict::Polled)),
        _ => None,
    }
}

/// Makes the batches of a part of a sensor's time: one, or several where there are very many reports. `header` is that
/// of the first one, and becomes that of the one that follows the last. Traffic of sources is left out, and so are
/// tunnels between hosts without reports.
///
/// The same reports and tunnels in any order make the same bytes.
pub fn encode(
    header: &mut Header,
    reports: &mut Vec<StateReport>,
    through: &[Through],
    mut each: impl FnMut(&Header, &[u8]),
) {
    reports.retain(|report| outcome(report).is_some());
    let latest_ns = header.begun_ns.saturating_add(LATER_NS);
    reports.iter_mut().for_each(|report| *report = report.not_after(latest_ns));
    reports.sort_unstable_by_key(order);
    let mut through: Vec<_> =
        through.iter().map(|it| Through { time_ns: it.time_ns.min(header.begun_ns), ..*it }).collect();
    through.sort_unstable_by_key(|it| (hosts(it.source, it.destination), *it));
    let mut through = &through[..];
    let mut rest = &reports[..];
    let is_last = header.is_last;
    loop {
        let mut body = Vec::new();
        let taken = sections(rest, &mut through, header, &mut body);
        rest = &rest[taken..];
        header.more = !rest.is_empty();
        header.is_last = is_last && !header.more;
        let mut bytes = head(header, taken);
        bytes.extend_from_slice(&body);
        each(header, &bytes);
        header.sequence += 1;
        header.before += taken as u64;
        if !header.more {
            break;
        }
    }
    header.since_ns = header.begun_ns;
}

fn head(header: &Header, count: usize) -> Vec<u8> {
    let flags = if header.more { MORE } else { 0 } | if header.is_last { LAST } else { 0 };
    let name = header.sensor.as_str();
    let mut bytes = MAGIC.to_vec();
    bytes.extend([VERSION, flags, name.len() as u8]);
    bytes.extend_from_slice(name.as_bytes());
    for word in [header.epoch, header.sequence, header.before, header.since_ns, header.begun_ns] {
        bytes.extend(word.to_le_bytes());
    }
    varint(count as u64, &mut bytes);
    bytes
}

/// The most bytes of a report.
const REPORT: usize = 2 + 16 + 16 + 2 + 10 + 1;
/// The bytes of a tunnel.
const TUNNEL: usize = 16 + 16 + 2 + 2 + 1 + 1;
/// Room for all but sections.
const HEAD: usize = 6 + SensorName::MOST + 5 * 8 + 10;

/// Writes the sections of reports until a batch is full, each pair of hosts behind its tunnel. Says how many reports
/// were written.
fn sections(reports: &[StateReport], through: &mut &[Through], header: &Header, bytes: &mut Vec<u8>) -> usize {
    let mut taken = 0;
    let mut section = Vec::new();
    for of_shard in reports.chunk_by(|a, b| shard_of(a.source()) == shard_of(b.source())) {
        section.clear();
        let mut last = None;
        let mut time_ns = header.since_ns;
        let mut count = 0;
        for report in of_shard {
            if HEAD + bytes.len() + section.len() + 2 * REPORT + TUNNEL + 16 > MOST_BYTES {
                break;
            }
            let pair = (report.source(), report.destination());
            while let Some((first, behind)) = through.split_first()
                && hosts(first.source, first.destination) <= hosts(pair.0, pair.1)
            {
                *through = behind;
                if first.pair() == pair {
                    let ends = (pair.0, pair.1, None);
                    write(ends, first.time_ns, THROUGH, &mut last, &mut time_ns, &mut section);
                    write_tunnel(&first.tunnel, &mut section);
                    break;
                }
            }
            let ends = (pair.0, pair.1, Some(report.port()));
            write(ends, report.time_ns(), outcome(report).unwrap_or(0), &mut last, &mut time_ns, &mut section);
            section.extend(report.has_lag().then_some(report.lag().0));
            count += 1;
        }
        if count > 0 {
            bytes.push(shard_of(of_shard[0].source()));
            varint(section.len() as u64, bytes);
            bytes.extend_from_slice(&section);
        }
        taken += count;
        if count < of_shard.len() {
            break;
        }
    }
    taken
}

/// Source, destination and port; a tunnel has no port.
type Ends = (IpAddr, IpAddr, Option<u16>);

/// Writes what a report or a tunnel begins with. `last` is what was written before, `time_ns` its time.
fn write(ends: Ends, at_ns: u64, outcome: u8, last: &mut Option<Ends>, time_ns: &mut u64, bytes: &mut Vec<u8>) {
    let (source, destination, port) = ends;
    let is_v6 = source.is_ipv6();
    let alike = last.filter(|last| last.0.is_ipv6() == is_v6);
    let same_source = alike.is_some_and(|last| last.0 == source);
    let same_destination = alike.is_some_and(|last| last.1 == destination);
    let same_port = port.is_some() && alike.is_some_and(|last| last.2 == port);
    let flags = [(is_v6, V6), (same_source, SAME_SOURCE), (same_destination, SAME_DESTINATION), (same_port, SAME_PORT)];
    let flags = flags.into_iter().filter(|(is, _)| *is).fold(0, |flags, (_, flag)| flags | flag);
    match outcome {
        ANSWERED.. => bytes.extend([flags | MORE_OUTCOME << OUTCOME, outcome]),
        _ => bytes.push(flags | outcome << OUTCOME),
    }
    let mut address = |address: IpAddr| match address {
        IpAddr::V4(address) => bytes.extend(address.octets()),
        IpAddr::V6(address) => bytes.extend(address.octets()),
    };
    if !same_source {
        address(source);
    }
    if !same_destination {
        address(destination);
    }
    if let Some(port) = port.filter(|_| !same_port) {
        bytes.extend(port.to_le_bytes());
    }
    let delta = at_ns.wrapping_sub(*time_ns) as i64;
    varint((delta << 1 ^ delta >> 63) as u64, bytes);
    (*last, *time_ns) = (Some(ends), at_ns);
}

fn write_tunnel(tunnel: &Tunnel, bytes: &mut Vec<u8>) {
    let Tunnel { source, destination, source_port, destination_port, protocol, depth } = *tunnel;
    bytes.extend([source, destination].map(u128::to_be_bytes).as_flattened());
    bytes.extend([source_port, destination_port].map(u16::to_le_bytes).as_flattened());
    bytes.extend([protocol, depth]);
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn varint(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

impl Batch {
    /// Reads a batch, with the reports of these shards.
    ///
    /// # Errors
    /// If the bytes are no batch of this version, with the place.
    pub fn decode(bytes: &[u8], shards: &RangeInclusive<u8>) -> Result<Batch, BatchError> {
        let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Err(BatchError::NotABatch) };
        match rest.first() {
            None => return Err(BatchError::NotABatch),
            Some(&VERSION) => {}
            Some(&version) => return Err(BatchError::Version(version)),
        }
        if bytes.len() > MOST_BYTES {
            return Err(BatchError::Damaged { at: MOST_BYTES });
        }
        let mut input = Input { bytes, at: MAGIC.len() + 1 };
        input.batch(shards).ok_or(BatchError::Damaged { at: input.at })
    }

    /// One that follows this one, is of this time, and has no reports: so that those of this one are missing.
    pub(super) fn without_content(self, begun_ns: u64) -> Batch {
        let Batch { header: Header { sequence, before, .. }, count, .. } = self;
        let (sequence, before) = (sequence.saturating_add(1), before.saturating_add(count));
        let header = Header { sequence, before, since_ns: begun_ns, begun_ns, ..self.header };
        Batch { header, count: 0, reports: Vec::new(), others: Vec::new(), through: Vec::new() }
    }
}

/// Bytes that are read. After a failure `at` is about where it was.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn word(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn batch(&mut self, shards: &RangeInclusive<u8>) -> Option<Batch> {
        let flags = self.byte().filter(|flags| flags & !(MORE | LAST) == 0)?;
        let length = self.byte()?;
        let name = std::str::from_utf8(self.take(length.into())?).ok()?;
        let sensor = name.parse().ok()?;
        let header = Header {
            sensor,
            epoch: self.word()?,
            sequence: self.word()?,
            before: self.word()?,
            since_ns: self.word()?,
            begun_ns: self.word()?,
            more: flags & MORE != 0,
            is_last: flags & LAST != 0,
        };
        let is_order = header.since_ns <= header.begun_ns && !(header.more && header.is_last);
        let count = self.varint().filter(|_| is_order)?;
        let (mut reports, mut others, mut through) = (Vec::new(), Vec::new(), Vec::new());
        let (mut before, mut skipped) = (None, 0);
        while self.at < self.bytes.len() {
            let shard = self.byte().filter(|&shard| before.is_none_or(|before| before < shard))?;
            before = Some(shard);
            let length = usize::try_from(self.varint()?).ok()?;
            let begin = self.at;
            let section = self.take(length)?;
            let mut section = Input { bytes: section, at: 0 };
            let is_asked_for = shards.contains(&shard);
            let (known, tunnels) = (others.len(), through.len());
            let of_section = if is_asked_for { &mut reports } else { &mut others };
            if section.section(shard, &header, of_section, &mut through).is_none() {
                self.at = begin + section.at;
                return None;
            }
            if !is_asked_for {
                through.truncate(tunnels);
                skipped += others.len() - known;
                let is_needed = |report: &StateReport| report.has_lag() && !report.is_v6();
                let needed: Vec<_> = others.drain(known..).filter(is_needed).collect();
                others.extend(needed);
            }
        }
        let read = (reports.len() + skipped) as u64;
        (read == count).then_some(Batch { header, count, reports, others, through })
    }

    fn section(
        &mut self,
        shard: u8,
        header: &Header,
        reports: &mut Vec<StateReport>,
        through: &mut Vec<Through>,
    ) -> Option<()> {
        // A run that has ended knows what would have failed later.
        let end_ns =
            if header.is_last || header.more { header.begun_ns.saturating_add(LATER_NS) } else { header.begun_ns };
        let mut time_ns = header.since_ns;
        let mut last: Option<(bool, u128, u128, Option<u16>)> = None;
        while self.at < self.bytes.len() {
            let flags = self.byte()?;
            let outcome = match flags >> OUTCOME {
                MORE_OUTCOME => self.byte().filter(|&outcome| outcome >= ANSWERED)?,
                outcome => outcome,
            };
            let is_v6 = flags & V6 != 0;
            let last_alike = last.filter(|last| last.0 == is_v6);
            let source = if flags & SAME_SOURCE != 0 { last_alike?.1 } else { self.address(is_v6)? };
            let destination = if flags & SAME_DESTINATION != 0 { last_alike?.2 } else { self.address(is_v6)? };
            let port = match flags & SAME_PORT {
                0 if outcome == THROUGH => None,
                0 => Some(u16::from_le_bytes(self.array()?)),
                _ => Some(last_alike?.3?),
            };
            let delta = self.varint()?;
            time_ns = time_ns.wrapping_add((delta >> 1) ^ (delta & 1).wrapping_neg());
            last = Some((is_v6, source, destination, port));
            if outcome == THROUGH {
                let ip = |address: u128| match is_v6 {
                    true => Ipv6Addr::from_bits(address).into(),
                    false => IpAddr::from(Ipv4Addr::from_bits(address as u32)),
                };
                let (source, destination, tunnel) = (ip(source), ip(destination), self.tunnel()?);
                if time_ns > end_ns || shard_of(source) != shard {
                    return None;
                }
                through.push(Through { source, destination, time_ns, tunnel });
                continue;
            }
            let (port, (probe, verdict)) = (port?, verdict(outcome & !AGAIN)?);
            let report = match is_v6 {
                true => StateReport::v6(Tried { source, destination, port, probe }, time_ns, verdict),
                false => {
                    let (source, destination) = (source as u32, destination as u32);
                    StateReport::v4(Tried { source, destination, port, probe }, time_ns, verdict)
                }
            };
            let lag =
                if report.has_lag() { Lag(self.byte().filter(|&lag| lag <= Lag::UNKNOWN.0)?) } else { Lag::UNKNOWN };
            let report = report.after(lag).again(outcome & AGAIN != 0);
            if time_ns > end_ns || shard_of(report.source()) != shard {
                return None;
            }
            reports.push(report);
        }
        Some(())
    }

    fn tunnel(&mut self) -> Option<Tunnel> {
        let tunnel = Tunnel {
            source: self.address(true)?,
            destination: self.address(true)?,
            source_port: u16::from_le_bytes(self.array()?),
            destination_port: u16::from_le_bytes(self.array()?),
            protocol: self.byte()?,
            depth: self.byte()?,
        };
        (1..=DEEPEST).contains(&tunnel.depth).then_some(tunnel)
    }

    fn address(&mut self, is_v6: bool) -> Option<u128> {
        match is_v6 {
            true => self.array().map(u128::from_be_bytes),
            false => self.array().map(|octets| u32::from_be_bytes(octets).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::STEP_NS;
    use proptest::prelude::*;

    const SINCE: u64 = 1_700_000_000 * STEP_NS;

    fn header() -> Header {
        Header {
            sensor: "tap-1".parse().unwrap(),
            epoch: 3,
            sequence: 9,
            before: 100,
            since_ns: SINCE,
            begun_ns: SINCE + STEP_NS,
            more: false,
            is_last: false,
        }
    }

    fn report(is_v6: bool, ends: (u8, u8), port: u16, time_ns: u64, outcome: u8) -> StateReport {
        let (probe, verdict) = verdict(outcome & !AGAIN).unwrap();
        let (again, lag) = (outcome & AGAIN != 0, Lag(port as u8 & 127));
        let (source, destination) = (u32::from(ends.0) << 24 | 1, u32::from(ends.1) << 8 | 2);
        match is_v6 {
            false => {
                StateReport::v4(Tried { source, destination, port, probe }, time_ns, verdict).after(lag).again(again)
            }
            true => {
                let (source, destination) = (u128::from(source) << 90, u128::from(destination) << 77);
                StateReport::v6(Tried { source, destination, port, probe }, time_ns, verdict).after(lag).again(again)
            }
        }
    }

    fn reports() -> impl Strategy<Value = Vec<StateReport>> {
        let time = prop_oneof![SINCE..SINCE + STEP_NS, Just(SINCE + STEP_NS), Just(0)];
        let one = (
            any::<bool>(),
            (0..4_u8, any::<u8>()),
            prop_oneof![0..3_u16, any::<u16>()],
            time,
            prop_oneof![
                0..13_u8,
                (prop::sample::select(vec![4_u8, 8, 9, 11]), 1..3_u8).prop_map(|(kind, way)| 16 * way + kind),
                prop::sample::select(vec![
                    ANSWERED,
                    POLLED,
                    POLLED + 4,
                    REFUTED,
                    REFUTED + 1,
                    KNOWN,
                    KNOWN + 1,
                    AGAIN,
                    AGAIN | 1,
                    AGAIN | EARLY | 4
                ]),
            ],
        );
        let one = one.prop_map(|(is_v6, ends, port, time_ns, outcome)| report(is_v6, ends, port, time_ns, outcome));
        prop::collection::vec(one, 0..200)
    }

    fn batches(header: &mut Header, reports: &[StateReport]) -> Vec<Vec<u8>> {
        let mut batches = Vec::new();
        encode(header, &mut reports.to_vec(), &through(reports), |_, batch| batches.push(batch.to_vec()));
        batches
    }

    /// The hosts of some sources have a tunnel.
    fn through(reports: &[StateReport]) -> Vec<Through> {
        let tunnel = |port| Tunnel {
            source: u128::from(port) << 70,
            destination: 7,
            source_port: 40_000,
            destination_port: 4789,
            protocol: 17,
            depth: 2,
        };
        let mut through: Vec<_> = (reports.iter())
            .filter(|report| shard_of(report.source()) % 2 == 1)
            .map(|report| Through {
                source: report.source(),
                destination: report.destination(),
                time_ns: report.time_ns(),
                tunnel: tunnel(report.port()),
            })
            .collect();
        through.sort_by_key(|it| (hosts(it.source, it.destination), *it));
        through.dedup_by_key(|it| it.pair());
        through
    }

    fn sorted(mut reports: Vec<StateReport>) -> Vec<StateReport> {
        reports.sort_unstable_by_key(order);
        reports
    }

    proptest! {
        #[test]
        fn a_batch_comes_back_and_its_bytes_do_not_depend_on_the_order(reports in reports(), split in any::<u8>()) {
            let batch = batches(&mut header(), &reports);
            let mut backwards = reports.clone();
            backwards.reverse();
            prop_assert_eq!(&batch, &batches(&mut header(), &backwards));
            let count = reports.len() as u64;
            let decoded = Batch::decode(&batch[0], &(0..=255)).unwrap();
            let (through, others) = (through(&reports), vec![]);
            let all = Batch { header: header(), count, through, others, reports: sorted(reports) };
            prop_assert_eq!(&decoded, &all);
            let others = Batch::decode(&batch[0], &(split..=split)).unwrap().others;
            let is_needed = |it: &&StateReport| {
                it.source().is_ipv4() && it.content() == Content::Answered(None) && shard_of(it.source()) != split
            };
            prop_assert_eq!(others, all.reports.iter().filter(is_needed).copied().collect::<Vec<_>>());
            // Each shard is in one of both halves.
            let (low, high) = (0..=split, split..=255);
            let parts = [low, high].map(|shards| {
                let reports = Batch::decode(&batch[0], &shards).unwrap().reports;
                reports.into_iter().filter(move |it| *shards.start() == 0 || shard_of(it.source()) != split)
            });
            prop_assert_eq!(parts.into_iter().flatten().collect::<Vec<_>>(), all.reports);
        }

        #[test]
        fn hostile_bytes_are_an_error_or_a_batch(
            reports in reports(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = batches(&mut header(), &reports).remove(0);
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                if let Ok(batch) = Batch::decode(bytes, &(0..=255)) {
                    let latest_ns = batch.header.begun_ns.saturating_add(LATER_NS);
                    prop_assert!(batch.reports.iter().all(|it| it.time_ns() <= latest_ns));
                }
            }
        }
    }

    #[test]
    fn errors_have_a_place() {
        let whole = batches(&mut header(), &[report(false, (1, 2), 3, SINCE, 0)]).remove(0);
        let error = |bytes: &[u8]| Batch::decode(bytes, &(0..=255)).unwrap_err();
        assert_eq!(
            (error(b""), error(b"CLB"), error(b"GET / HTTP/1.1")),
            (BatchError::NotABatch, BatchError::NotABatch, BatchError::NotABatch)
        );
        let mut other = whole.clone();
        other[3] = VERSION + 1;
        assert_eq!(
            error(&other).to_string(),
            "a batch of version 5, and this program reads version 4; update the older one"
        );
        // The report itself is its last bytes: its outcome is none.
        let mut other = whole.clone();
        let at = whole.len() - 12;
        other[at] = 0xf0;
        assert!(matches!(error(&other), BatchError::Damaged { at: place } if place > at), "{:?}", error(&other));
        // A source of another shard.
        other.clone_from(&whole);
        other[at + 1] ^= 0xff;
        assert!(matches!(error(&other), BatchError::Damaged { .. }));
        for cut in 0..whole.len() {
            assert!(Batch::decode(&whole[..cut], &(0..=255)).is_err(), "{cut}");
        }
    }

    #[test]
    fn a_flood_of_one_source_makes_several_batches_of_a_few_bytes_a_report() {
        let count = 300_000;
        let reports: Vec<_> =
            (0..count).map(|i| report(false, (1, (i >> 16) as u8), i as u16, SINCE + i * 1000, 1)).collect();
        let mut header = Header { is_last: true, ..header() };
        let batches = batches(&mut header, &reports);
        assert!(batches.len() > 2 && batches.iter().all(|batch| batch.len() <= MOST_BYTES));
        let bytes: usize = batches.iter().map(Vec::len).sum();
        assert!(bytes as u64 <= 6 * count, "{bytes}");
        let mut all = Vec::new();
        for (number, batch) in batches.iter().enumerate() {
            let Batch { header, count, reports, .. } = Batch::decode(batch, &(0..=255)).unwrap();
            let is_last = number + 1 == batches.len();
            assert_eq!((header.sequence, header.before), (9 + number as u64, 100 + all.len() as u64));
            assert_eq!((header.more, header.is_last, count), (!is_last, is_last, reports.len() as u64));
            all.extend(reports);
        }
        assert_eq!(sorted(all), sorted(reports));
        assert_eq!((header.sequence, header.before), (9 + batches.len() as u64, 100 + count));
        assert_eq!(header.since_ns, SINCE + STEP_NS);
    }

    #[test]
    fn what_would_fail_much_later_than_the_end_fails_an_hour_later() {
        let mut header = Header { is_last: true, ..header() };
        let batch = batches(&mut header, &[report(false, (1, 2), 3, u64::MAX, 0)]).remove(0);
        let reports = Batch::decode(&batch, &(0..=255)).unwrap().reports;
        assert_eq!(reports[0].time_ns(), SINCE + STEP_NS + LATER_NS);
        // In the middle of a run nothing is later than the end of its step.
        let batch =
            batches(&mut Header { is_last: false, ..header }, &[report(false, (1, 2), 3, u64::MAX, 0)]).remove(0);
        assert!(Batch::decode(&batch, &(0..=255)).is_err());
    }

    #[test]
    fn shards_are_even_and_stay() {
        let mut counts = [0; 256];
        (0..1 << 16)
            .for_each(|i: u32| counts[usize::from(shard_of(IpAddr::from((0x0a00_0000 | i).to_be_bytes())))] += 1);
        assert!(counts.iter().all(|count| (180..340).contains(count)), "{counts:?}");
        // Written down once: a program of another version must find the same.
        let shards = ["192.0.2.1", "198.51.100.7", "2001:db8::1"].map(|source| shard_of(source.parse().unwrap()));
        assert_eq!(shards, [227, 22, 197]);
    }

    #[test]
    fn names() {
        for good in ["a", "Tap_1-x", &"x".repeat(64)] {
            assert!(good.parse::<SensorName>().is_ok(), "{good}");
        }
        for bad in ["", "a b", "ä", "a.b", "a/b", "*", &"x".repeat(65)] {
            assert!(bad.parse::<SensorName>().is_err(), "{bad}");
        }
    }
}
