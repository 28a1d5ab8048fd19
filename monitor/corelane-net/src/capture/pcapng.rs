//! The pcapng format is a series of blocks with a type and a length, the length twice. Sections may differ in byte
//! order, and every section describes its own interfaces. Of the statistics only the end of the capture is read, and of
//! the first section its comment. All other blocks are skipped.

use super::error::{OpenError, Part, SkipReason, Warning};
use super::order::{Big, ByteOrder, Little, Order};
use super::record::{LinkType, Record};
use super::step::{Found, LONGEST, Step, Stop};

/// The block type of a section header is the same in both byte orders.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
/// The old packet block, with a 16-bit interface number.
const OBSOLETE_PACKET: u32 = 2;
/// A packet of interface 0 without a time.
const SIMPLE_PACKET: u32 = 3;
pub(super) const INTERFACE_STATISTICS: u32 = 5;
pub(super) const ENHANCED_PACKET: u32 = 6;

pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Type, length, and the length again at the end.
const FRAME: usize = 12;
/// The shortest section header, from its type to its second length.
pub(super) const SECTION_HEADER: usize = 28;

/// The most interfaces of a section, and the most warnings about them: they stay in memory.
pub(super) const MOST_INTERFACES: usize = 1 << 16;
const MOST_WARNINGS: usize = 100;

pub(super) const OPTION_END: u16 = 0;
pub(super) const OPTION_COMMENT: u16 = 1;
/// Options of interfaces.
pub(super) const OPTION_NAME: u16 = 2;
pub(super) const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;
/// Options of statistics: the end of the capture, in the interface's ticks, and two counts.
pub(super) const OPTION_END_TIME: u16 = 3;
pub(super) const OPTION_RECEIVED: u16 = 4;
pub(super) const OPTION_DROPPED: u16 = 5;

/// The facts of the blocks so far.
#[derive(Debug)]
pub(super) struct PcapNg {
    order: ByteOrder,
    /// The interfaces of this section.
    interfaces: Vec<Interface>,
    /// The first comment of the first section, as far as it is text.
    pub(super) comment: Option<String>,
    /// The latest end of a capture that statistics have given, in nanoseconds since the epoch.
    pub(super) end_ns: Option<u64>,
    /// The warnings for the user.
    pub(super) warnings: Vec<Warning>,
    /// Unusable records, and in `told` whether one of this section has been reported.
    pub(super) skipped: u64,
    told: bool,
}

impl PcapNg {
    /// A state for a window that starts with a section header.
    pub(super) fn new(comment: Option<String>) -> Self {
        Self {
            order: ByteOrder::Little,
            interfaces: Vec::new(),
            comment,
            end_ns: None,
            warnings: Vec::new(),
            skipped: 0,
            told: false,
        }
    }

    /// Finds the packets of a window, at most `max`. `last_time` becomes the time of the last one.
    pub(super) fn walk(&mut self, window: &[u8], max: usize, last_time: &mut u64, found: &mut Vec<Found>) -> Step {
        let mut done = Progress { window, rest: window, records: 0, max };
        let stop = loop {
            let stop = match self.order {
                ByteOrder::Little => self.walk_section::<Little>(&mut done, last_time, found),
                ByteOrder::Big => self.walk_section::<Big>(&mut done, last_time, found),
            };
            match stop {
                Some(stop) => break stop,
                None => match self.start_section(done.rest) {
                    Ok(rest) => done.rest = rest,
                    Err(stop) => break stop,
                },
            }
        };
        Step { used: window.len() - done.rest.len(), records: done.records, stop }
    }

    /// Walks up to the next section header, and returns `None` there.
    fn walk_section<O: Order>(
        &mut self,
        done: &mut Progress<'_>,
        last_time: &mut u64,
        found: &mut Vec<Found>,
    ) -> Option<Stop> {
        loop {
            if done.records == done.max {
                return Some(Stop::Full);
            }
            let block = match Block::read::<O>(done.rest) {
                Ok(block) => block,
                Err(stop) => return stop,
            };
            let packet = match block.kind {
                ENHANCED_PACKET => self.enhanced::<O>(block.body),
                SIMPLE_PACKET => self.simple::<O>(block.body, *last_time),
                OBSOLETE_PACKET => self.obsolete::<O>(block.body),
                INTERFACE => {
                    if let Err(stop) = self.interface::<O>(block.body) {
                        return Some(stop);
                    }
                    done.rest = block.next;
                    continue;
                }
                INTERFACE_STATISTICS => {
                    self.statistics::<O>(block.body);
                    done.rest = block.next;
                    continue;
                }
                _ => {
                    done.rest = block.next;
                    continue;
                }
            };
            match packet {
                Ok(record) => {
                    *last_time = record.time_ns;
                    found.push(Found::new(done.window, record));
                    done.records += 1;
                    done.rest = block.next;
                }
                Err(reason) => {
                    if let Some(reason) = self.skip(reason) {
                        return Some(Stop::Skip { reason, bytes: done.rest.len() - block.next.len() });
                    }
                    done.rest = block.next;
                }
            }
        }
    }

    #[inline]
    fn enhanced<'w, O: Order>(&self, body: &'w [u8]) -> Result<Record<'w>, SkipReason> {
        let (header, rest) = body.split_first_chunk::<20>().ok_or(SkipReason::Overrun)?;
        let interface = self.interface_of(O::u32_at(header, 0))?;
        let data = rest.get(..O::u32_at(header, 12) as usize).ok_or(SkipReason::Overrun)?;
        let ticks = u64::from(O::u32_at(header, 4)) << 32 | u64::from(O::u32_at(header, 8));
        Ok(interface.record(interface.clock.time_ns(ticks), O::u32_at(header, 16), data))
    }

    #[cold]
    fn obsolete<'w, O: Order>(&self, body: &'w [u8]) -> Result<Record<'w>, SkipReason> {
        let (header, rest) = body.split_first_chunk::<20>().ok_or(SkipReason::Overrun)?;
        let interface = self.interface_of(u32::from(O::u16_at(header, 0)))?;
        let data = rest.get(..O::u32_at(header, 12) as usize).ok_or(SkipReason::Overrun)?;
        let ticks = u64::from(O::u32_at(header, 4)) << 32 | u64::from(O::u32_at(header, 8));
        Ok(interface.record(interface.clock.time_ns(ticks), O::u32_at(header, 16), data))
    }

    /// A simple packet gives the length of the frame. The captured length follows from the interface's snaplen.
    #[cold]
    fn simple<'w, O: Order>(&self, body: &'w [u8], last_time: u64) -> Result<Record<'w>, SkipReason> {
        let (header, rest) = body.split_first_chunk::<4>().ok_or(SkipReason::Overrun)?;
        let interface = self.interface_of(0)?;
        let wire_len = O::u32_at(header, 0);
        let captured = match interface.snaplen {
            0 => wire_len,
            snaplen => wire_len.min(snaplen),
        };
        let data = rest.get(..captured as usize).ok_or(SkipReason::Overrun)?;
        Ok(interface.record(last_time, wire_len, data))
    }

    #[inline]
    fn interface_of(&self, id: u32) -> Result<&Interface, SkipReason> {
        self.interfaces.get(id as usize).ok_or(SkipReason::NoInterface(id))
    }

    #[cold]
    fn interface<O: Order>(&mut self, body: &[u8]) -> Result<(), Stop> {
        let interface = Interface::read::<O>(body).ok_or(Stop::Damaged("an interface description is too short"))?;
        if !interface.link.is_supported() {
            let warning = Warning::UnknownLink { interface: self.interfaces.len(), link: interface.link };
            if self.warnings.len() < MOST_WARNINGS && !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        if self.interfaces.len() == MOST_INTERFACES {
            return Err(Stop::Damaged("a section has more interfaces than the limit of 65,536"));
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Takes the end of the capture. Statistics of no interface, or too short for what they claim, are ignored: no
    /// packet depends on them.
    #[cold]
    fn statistics<O: Order>(&mut self, body: &[u8]) {
        let Some((header, options)) = body.split_first_chunk::<12>() else { return };
        let Ok(&Interface { clock, .. }) = self.interface_of(O::u32_at(header, 0)) else { return };
        each_option::<O>(options, |code, value| {
            if let (OPTION_END_TIME, Ok(value)) = (code, <&[u8; 8]>::try_from(value)) {
                let ticks = u64::from(O::u32_at(value, 0)) << 32 | u64::from(O::u32_at(value, 4));
                self.end_ns = self.end_ns.max(Some(clock.time_ns(ticks)));
            }
        });
    }

    /// Takes over the byte order of the section header that the window starts with, and forgets the last section.
    #[cold]
    fn start_section<'w>(&mut self, window: &'w [u8]) -> Result<&'w [u8], Stop> {
        let order = section_order(window)?;
        let block = match order {
            ByteOrder::Little => Block::read_any::<Little>(window)?,
            ByteOrder::Big => Block::read_any::<Big>(window)?,
        };
        let major = block.body.get(4..6).ok_or(Stop::Damaged("a section header is too short"))?;
        let major = match order {
            ByteOrder::Little => Little::u16_at(major, 0),
            ByteOrder::Big => Big::u16_at(major, 0),
        };
        if major != 1 {
            return Err(Stop::Damaged("a section header has a major version other than 1"));
        }
        self.order = order;
        self.interfaces.clear();
        self.told = false;
        Ok(block.next)
    }

    /// Counts an unusable record, and returns its reason if it is to be reported: a capture may hold millions of the
    /// same kind.
    #[cold]
    fn skip(&mut self, reason: SkipReason) -> Option<SkipReason> {
        self.skipped += 1;
        let first = !self.told;
        self.told = true;
        first.then_some(reason)
    }
}

/// How far a walk has come.
struct Progress<'w> {
    window: &'w [u8],
    rest: &'w [u8],
    records: usize,
    max: usize,
}

/// One whole block.
struct Block<'w> {
    kind: u32,
    /// The bytes between the two lengths.
    body: &'w [u8],
    /// The bytes behind the block.
    next: &'w [u8],
}

impl<'w> Block<'w> {
    /// The block at the start of the window; `Err(None)` for a section header, whose byte order is not known yet.
    #[inline(always)]
    fn read<O: Order>(window: &'w [u8]) -> Result<Self, Option<Stop>> {
        match window.first_chunk::<4>() {
            Some(&kind) if O::u32(kind) == SECTION => Err(None),
            _ => Self::read_any::<O>(window).map_err(Some),
        }
    }

    #[inline(always)]
    fn read_any<O: Order>(window: &'w [u8]) -> Result<Self, Stop> {
        let header = window.first_chunk::<8>().ok_or(Stop::Short { part: Part::Header, needed: 8 })?;
        let (kind, length) = (O::u32_at(header, 0), O::u32_at(header, 4));
        if length > LONGEST {
            return Err(Stop::TooLong { length, limit: LONGEST });
        }
        let total = length as usize;
        if total < FRAME || !total.is_multiple_of(4) {
            return Err(Stop::Damaged("a block's length is below 12 or not a multiple of 4"));
        }
        let (block, next) = window.split_at_checked(total).ok_or(Stop::Short { part: Part::Data, needed: total })?;
        let (front, trailer) = block.split_at(total - 4);
        if O::u32_at(trailer, 0) != length {
            return Err(Stop::Damaged("the two lengths of a block differ"));
        }
        Ok(Self { kind, body: &front[8..], next })
    }
}

/// Hands over the options of a block, up to the first one that is cut.
fn each_option<O: Order>(mut options: &[u8], mut each: impl FnMut(u16, &[u8])) {
    while let Some((option, rest)) = options.split_first_chunk::<4>() {
        let (code, length) = (O::u16_at(option, 0), usize::from(O::u16_at(option, 2)));
        let Some(value) = rest.get(..length) else {
            break;
        };
        if code == OPTION_END {
            break;
        }
        each(code, value);
        options = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
}

/// The first comment of the section header that the window starts with.
fn comment(window: &[u8]) -> Option<String> {
    fn of<O: Order>(window: &[u8]) -> Option<String> {
        let mut comment = None;
        each_option::<O>(Block::read_any::<O>(window).ok()?.body.get(16..)?, |code, value| {
            if code == OPTION_COMMENT && comment.is_none() {
                comment = std::str::from_utf8(value).ok().map(str::to_owned);
            }
        });
        comment
    }
    match section_order(window).ok()? {
        ByteOrder::Little => of::<Little>(window),
        ByteOrder::Big => of::<Big>(window),
    }
}

/// The byte order that a section header states.
fn section_order(window: &[u8]) -> Result<ByteOrder, Stop> {
    let magic = window.get(8..).and_then(|rest| rest.first_chunk::<4>());
    let magic = *magic.ok_or(Stop::Short { part: Part::Header, needed: SECTION_HEADER })?;
    if u32::from_le_bytes(magic) == BYTE_ORDER_MAGIC {
        Ok(ByteOrder::Little)
    } else if u32::from_be_bytes(magic) == BYTE_ORDER_MAGIC {
        Ok(ByteOrder::Big)
    } else {
        Err(Stop::Damaged("a section header has no valid byte-order magic"))
    }
}

/// The facts of one interface.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    snaplen: u32,
    clock: Clock,
}

impl Interface {
    /// Options that have a wrong length are ignored.
    fn read<O: Order>(body: &[u8]) -> Option<Self> {
        let (header, options) = body.split_first_chunk::<8>()?;
        let mut resolution = DEFAULT_RESOLUTION;
        let mut offset_s = 0;
        each_option::<O>(options, |code, value| match (code, value) {
            (OPTION_TIME_RESOLUTION, &[value]) => resolution = value,
            (OPTION_TIME_OFFSET, value) => {
                if let Ok(value) = value.try_into() {
                    offset_s = O::u64(value).cast_signed();
                }
            }
            _ => {}
        });
        Some(Self {
            link: LinkType(u32::from(O::u16_at(header, 0))),
            snaplen: O::u32_at(header, 4),
            clock: Clock::new(resolution, offset_s),
        })
    }

    #[inline]
    fn record<'w>(&self, time_ns: u64, wire_len: u32, data: &'w [u8]) -> Record<'w> {
        Record { time_ns, wire_len, link: self.link, data }
    }
}

/// Microseconds.
const DEFAULT_RESOLUTION: u8 = 6;

/// The conversion of an interface's ticks to nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    unit: Unit,
    offset_ns: i128,
}

/// The length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// This many nanoseconds.
    Nanoseconds(u64),
    /// This many ticks are a nanosecond.
    PerNanosecond(u128),
    /// Two to the power of this many ticks are a second.
    PowerOfTwo(u8),
}

impl Clock {
    /// `resolution` is a negative power of ten, or of two if its upper bit is set.
    fn new(resolution: u8, offset_s: i64) -> Self {
        let exponent = u32::from(resolution & 0x7f);
        let unit = if resolution & 0x80 != 0 {
            Unit::PowerOfTwo(resolution & 0x7f)
        } else if exponent <= 9 {
            Unit::Nanoseconds(10_u64.pow(9 - exponent))
        } else {
            // Ticks too short for a power of ten in 128 bits: even 2^64 of them are less than a nanosecond.
            Unit::PerNanosecond(10_u128.checked_pow(exponent - 9).unwrap_or(u128::MAX))
        };
        Self { unit, offset_ns: i128::from(offset_s) * 1_000_000_000 }
    }

    #[inline]
    fn time_ns(&self, ticks: u64) -> u64 {
        match *self {
            Self { unit: Unit::Nanoseconds(unit), offset_ns: 0 } => ticks.saturating_mul(unit),
            _ => self.uncommon_time_ns(ticks),
        }
    }

    #[cold]
    fn uncommon_time_ns(&self, ticks: u64) -> u64 {
        let ticks = u128::from(ticks);
        let since = match self.unit {
            Unit::Nanoseconds(unit) => ticks * u128::from(unit),
            Unit::PerNanosecond(ticks_per_ns) => ticks / ticks_per_ns,
            Unit::PowerOfTwo(exponent) => (ticks * 1_000_000_000) >> exponent,
        };
        // Below 2^94 each, so neither the cast nor the sum overflows.
        let time = since.cast_signed() + self.offset_ns;
        u64::try_from(time.max(0)).unwrap_or(u64::MAX)
    }
}

/// The verdict on the interfaces at the start of a capture.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Survey {
    /// Some packets may be decoded, or reading will show the error.
    Readable,
    /// No packet can be decoded.
    UnknownLink(LinkType),
    /// This many bytes are needed to decide.
    Short(usize),
}

/// Looks ahead for an interface whose frames can be decoded.
pub(super) struct Scout {
    /// The section that it has reached.
    section: PcapNg,
    /// Whether it looks beyond the first packet.
    beyond: bool,
    /// Whether it has passed the first section header.
    has_begun: bool,
    unknown: Option<LinkType>,
    /// That of the first section.
    comment: Option<String>,
    /// Bytes of the window that it has passed.
    passed: usize,
}

impl Scout {
    pub(super) fn new(beyond: bool) -> Self {
        Self { section: PcapNg::new(None), beyond, has_begun: false, unknown: None, comment: None, passed: 0 }
    }

    /// Goes on in a window that starts where the last one did. With `at_end`, no bytes follow it.
    pub(super) fn survey(&mut self, window: &[u8], at_end: bool) -> Result<Survey, OpenError> {
        loop {
            let rest = &window[self.passed..];
            let block = match self.section.order {
                ByteOrder::Little => Block::read::<Little>(rest),
                ByteOrder::Big => Block::read::<Big>(rest),
            };
            let next = match block {
                Ok(block) => match self.block(&block) {
                    Some(found) => return Ok(found),
                    None => Ok(block.next),
                },
                Err(None) => {
                    if !self.has_begun {
                        self.comment = comment(rest);
                    }
                    self.section.start_section(rest)
                }
                Err(Some(stop)) => Err(stop),
            };
            match next {
                Ok(next) => self.passed = window.len() - next.len(),
                Err(stop) => return self.end(&stop, at_end),
            }
            self.has_begun = true;
        }
    }

    /// The verdict after one block, if there is one.
    fn block(&mut self, block: &Block<'_>) -> Option<Survey> {
        match block.kind {
            INTERFACE => {
                let interface = match self.section.order {
                    ByteOrder::Little => Interface::read::<Little>(block.body),
                    ByteOrder::Big => Interface::read::<Big>(block.body),
                };
                match interface {
                    Some(interface) if !interface.link.is_supported() => {
                        self.unknown = self.unknown.or(Some(interface.link));
                        None
                    }
                    _ => Some(Survey::Readable),
                }
            }
            ENHANCED_PACKET | SIMPLE_PACKET | OBSOLETE_PACKET if !self.beyond || self.unknown.is_none() => {
                Some(self.unknown.map_or(Survey::Readable, Survey::UnknownLink))
            }
            _ => None,
        }
    }

    fn end(&self, stop: &Stop, at_end: bool) -> Result<Survey, OpenError> {
        match (stop, self.unknown) {
            (Stop::Short { needed, .. }, _) if !at_end || !self.has_begun => Ok(Survey::Short(self.passed + needed)),
            (Stop::Damaged(what), _) if !self.has_begun => Err(OpenError::BadHeader(what)),
            _ if !self.has_begun => {
                Err(OpenError::BadHeader("the section header's length is above the limit of 16 MiB"))
            }
            (_, Some(link)) => Ok(Survey::UnknownLink(link)),
            (_, None) => Ok(Survey::Readable),
        }
    }

    /// The comment of the first section.
    pub(super) fn comment(self) -> Option<String> {
        self.comment
    }

    /// Takes the number of bytes that it has passed. The next window starts behind them.
    pub(super) fn take_passed(&mut self) -> usize {
        std::mem::take(&mut self.passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_resolutions() {
        assert_eq!(Clock::new(0, 0).time_ns(3), 3_000_000_000);
        assert_eq!(Clock::new(6, 0).time_ns(3), 3_000);
        assert_eq!(Clock::new(9, 0).time_ns(3), 3);
        assert_eq!(Clock::new(12, 0).time_ns(3_999), 3);
        assert_eq!(Clock::new(127, 0).time_ns(u64::MAX), 0);
    }

    #[test]
    fn binary_resolutions() {
        assert_eq!(Clock::new(0x80, 0).time_ns(2), 2_000_000_000);
        assert_eq!(Clock::new(0x80 | 10, 0).time_ns(1_536), 1_500_000_000);
        assert_eq!(Clock::new(0x80 | 32, 0).time_ns(7 << 31), 3_500_000_000);
        assert_eq!(Clock::new(0xff, 0).time_ns(u64::MAX), 0);
    }

    #[test]
    fn times_saturate() {
        assert_eq!(Clock::new(0, 0).time_ns(u64::MAX), u64::MAX);
        assert_eq!(Clock::new(6, i64::MAX).time_ns(0), u64::MAX);
        assert_eq!(Clock::new(6, i64::MIN).time_ns(u64::MAX), 0);
        assert_eq!(Clock::new(6, -1).time_ns(1_000_005), 5_000);
        assert_eq!(Clock::new(9, 2).time_ns(5), 2_000_000_005);
    }
}
