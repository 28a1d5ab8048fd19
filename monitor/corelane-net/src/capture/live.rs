//! Capture from an interface of Linux: `AF_PACKET` with a ring that the kernel fills (TPACKET_V3).
//!
//! - Frames are lent from the ring, without a copy. Their time is the kernel's.
//! - The VLAN tag that the kernel takes from a frame is put back.
//! - Nothing is dropped here. A caller that does not read lets the ring overflow, and [`Live::statistics`] reports by
//!   how much, exactly.
//! - An interface that goes down, or is deleted and made again, does not end the capture. [`Live::take_news`] reports
//!   it.
//!
//! Opening needs the capability CAP_NET_RAW, and so does opening anew after the interface was deleted. Reading does
//! not.
//!
//! ```no_run
//! use corelane_net::capture::live::{Live, Options};
//! use std::time::Duration;
//!
//! let mut live = Live::open("eth0", &Options::default())?;
//! let mut bytes = 0;
//! for _ in 0..100 {
//!     live.read(1024, Duration::from_millis(100), |record| bytes += u64::from(record.wire_len))?;
//! }
//! live.stop()?;
//! while !live.is_drained() {
//!     live.read(1024, Duration::from_millis(100), |record| bytes += u64::from(record.wire_len))?;
//! }
//! println!("{bytes} bytes, {} frames dropped", live.statistics().dropped);
//! # Ok::<_, corelane_net::capture::live::LiveError>(())
//! ```
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `live/ring.rs` | the ring's layout and who owns what when; the calls on the socket; all `unsafe` |
//! | `live/block.rs` | the walk over a block, and what is checked of it |
//! | `live/fanout.rs` | the program that spreads frames over several rings |
//! | `live/headers.rs` | the program that leaves out payload |
//! | `live/error.rs`, `live/interfaces.rs` | errors and news; the interfaces of this machine |

mod block;
mod error;
mod fanout;
mod headers;
mod interfaces;
mod ring;

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::netdevice::index_to_name;
use socket2::Socket;

use self::block::{TAG, Tally, View};
pub use self::error::{LiveError, News};
pub use self::interfaces::{Interface, interfaces};
use self::ring::{Blocks, Size};
use super::filter::Instruction;
use super::record::{LinkType, Record};

/// The fewest and the most bytes of a frame that can be kept.
const SHORTEST_SNAPLEN: u32 = 64;
const LONGEST_SNAPLEN: u32 = 262_144;
/// Blocks are as large as this, if the ring is large enough, and never smaller than that. A wake-up should be for many
/// frames, as the caches are cold then.
const BLOCK: usize = 8 << 20;
const SMALLEST_BLOCK: usize = 128 << 10;
/// Blocks that a ring should have. On a quiet interface each holds what came in one time-out, so a reader that stays
/// away for as many time-outs finds the ring full, whatever its size.
const BLOCKS: usize = 8;
/// What a block needs beside a frame: headers, and the gap in front of the frame.
const AROUND: usize = 256;
/// How often the interface is looked at while nothing comes.
const LOOK: Duration = Duration::from_secs(1);
/// How long a frame may be on its way from its time-stamp into the ring.
const ON_ITS_WAY: Duration = Duration::from_millis(100);
/// The instructions of the longest filter behind which plain packets can be cut: the kernel takes 4,096 in all.
const LONGEST_CUT: usize = 4000;
/// `ARPHRD_RAWIP`.
const RAW_IP: u16 = 519;

/// News that are kept for a caller that does not ask for them.
const MOST_NEWS: usize = 64;

/// Options of a live capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes kept of a frame: 64 to 262,144. Frames on the wire are up to 64 KiB long where the network card joins or
    /// splits segments.
    pub snaplen: u32,
    /// Bytes of the ring, less than 4 GiB. The kernel takes as many from its own memory, which is never swapped. They
    /// are rounded up to whole blocks, and to two of them. A block has 8 MiB. A ring of less than 64 MiB has smaller
    /// ones, as far as a frame of `snaplen` bytes fits.
    pub ring_bytes: usize,
    /// After this time the kernel hands over a block that is not full, in whole milliseconds from 1 to 10,000; it may
    /// take twice as long. Less wakes the reader more often. It also fills the ring sooner, as a block may hold a
    /// single frame: a reader that stays away for as many time-outs as there are blocks finds frames dropped, however
    /// few came.
    pub block_timeout: Duration,
    /// Whether frames to other machines are captured too. That ends with the process.
    pub promiscuous: bool,
    /// The program that chooses frames, which the kernel runs. `None` lets all through.
    pub filter: Option<Vec<Instruction>>,
    /// Whether payload is left out: of TCP and UDP over Ethernet the kernel copies the first
    /// [96 bytes](Options::HEADERS), which have all that [`decode`](crate::decode::decode) looks at. Frames are kept
    /// whole if they have a tag inside of another, if they have other protocols, and if they may be fragments or
    /// tunnels. So the ring lasts longer, and reading it costs less.
    pub headers_only: bool,
}

impl Default for Options {
    /// Whole frames, a ring of 64 MiB, 200 ms, promiscuous, no filter, with payload.
    fn default() -> Self {
        Self {
            snaplen: LONGEST_SNAPLEN,
            ring_bytes: 64 << 20,
            block_timeout: Duration::from_millis(200),
            promiscuous: true,
            filter: None,
            headers_only: false,
        }
    }
}

impl Options {
    /// The bytes that are kept of a frame without its payload, with [`Options::headers_only`].
    pub const HEADERS: u32 = headers::KEPT;

    /// Sets [`Options::snaplen`].
    #[must_use]
    pub fn snaplen(mut self, snaplen: u32) -> Self {
        self.snaplen = snaplen;
        self
    }

    /// Sets [`Options::ring_bytes`].
    #[must_use]
    pub fn ring_bytes(mut self, ring_bytes: usize) -> Self {
        self.ring_bytes = ring_bytes;
        self
    }

    /// Sets [`Options::block_timeout`].
    #[must_use]
    pub fn block_timeout(mut self, block_timeout: Duration) -> Self {
        self.block_timeout = block_timeout;
        self
    }

    /// Sets [`Options::promiscuous`].
    #[must_use]
    pub fn promiscuous(mut self, promiscuous: bool) -> Self {
        self.promiscuous = promiscuous;
        self
    }

    /// Sets [`Options::filter`].
    #[must_use]
    pub fn filter(mut self, filter: Option<Vec<Instruction>>) -> Self {
        self.filter = filter;
        self
    }

    /// Sets [`Options::headers_only`].
    #[must_use]
    pub fn headers_only(mut self, headers_only: bool) -> Self {
        self.headers_only = headers_only;
        self
    }

    /// Bytes of the smallest ring with these options, to which fewer are rounded up.
    pub fn least_ring_bytes(&self) -> usize {
        2 * self.smallest_block()
    }

    fn smallest_block(&self) -> usize {
        (self.snaplen as usize + AROUND).next_power_of_two().max(SMALLEST_BLOCK)
    }

    fn size(&self) -> Result<Size, LiveError> {
        if !(SHORTEST_SNAPLEN..=LONGEST_SNAPLEN).contains(&self.snaplen) {
            return Err(LiveError::BadSnaplen(self.snaplen));
        }
        let smallest = self.smallest_block();
        let mut block = BLOCK;
        while block > smallest && self.ring_bytes / BLOCKS < block {
            block /= 2;
        }
        let blocks = self.ring_bytes.div_ceil(block).max(2);
        match blocks.checked_mul(block) {
            Some(bytes) if u32::try_from(bytes).is_ok() => Ok(Size { block, blocks }),
            _ => Err(LiveError::RingTooLarge { bytes: self.ring_bytes as u64, error: None }),
        }
    }

    /// The bytes that are kept of a plain packet on such a link, if others are kept whole.
    fn kept(&self, link: LinkType) -> Option<u32> {
        let has_room = self.filter.as_ref().is_none_or(|filter| filter.len() <= LONGEST_CUT);
        let cuts = self.headers_only && has_room && link == LinkType::ETHERNET && self.snaplen > headers::KEPT;
        cuts.then_some(headers::KEPT)
    }

    /// The program that the kernel runs: the filter, which keeps no more of a frame than `snaplen`; what it would keep
    /// whole goes on to the program that cuts plain packets.
    fn program(&self, link: LinkType) -> Vec<Instruction> {
        let all = [keep(self.snaplen)];
        let filter = self.filter.as_deref().unwrap_or(&all);
        let cuts = self.kept(link).is_some();
        let mut program: Vec<_> = (filter.iter().enumerate())
            .map(|(at, &instruction)| match instruction {
                Instruction { code: KEEP, k, .. } if k >= self.snaplen && cuts => {
                    Instruction { code: JUMP, jt: 0, jf: 0, k: (filter.len() - at - 1) as u32 }
                }
                Instruction { code: KEEP, k, .. } => keep(k.min(self.snaplen)),
                other => other,
            })
            .collect();
        if cuts {
            program.extend(headers::program(self.snaplen));
        }
        program
    }

    fn timeout_ms(&self) -> u32 {
        self.block_timeout.as_millis().clamp(1, 10_000) as u32
    }

    /// How long a frame may be in a block that is not handed over. The kernel looks at every time-out, and hands over a
    /// block that was there the last time.
    fn held_back(&self) -> Duration {
        2 * Duration::from_millis(self.timeout_ms().into()) + ON_ITS_WAY
    }
}

/// The operation that ends a program with a constant, the bytes to keep.
const KEEP: u16 = 0x06;
/// The operation that goes on behind so many others.
const JUMP: u16 = 0x05;

/// An end of a program that keeps this many bytes of a frame; 0 drops it.
fn keep(bytes: u32) -> Instruction {
    Instruction { code: KEEP, jt: 0, jf: 0, k: bytes }
}

/// Counts of a live capture since it was opened, over all rings that it had.
///
/// At any time `received == handed_out + dropped + in_ring()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Frames that passed the filter.
    pub received: u64,
    /// Frames that the sinks of [`Live::read`] got.
    pub handed_out: u64,
    /// Frames that were lost: the ring had no room for them, or see `damaged`.
    pub dropped: u64,
    /// How often the ring became full.
    pub freezes: u64,
    /// Frames handed out that were longer on the wire, but for those cut by [`Options::headers_only`].
    pub truncated: u64,
    /// Dropped frames that the kernel had placed wrongly in the ring. A number above 0 is an error of the kernel.
    pub damaged: u64,
}

impl Statistics {
    /// Frames that were received and wait in the ring.
    pub fn in_ring(&self) -> u64 {
        self.received.saturating_sub(self.handed_out + self.dropped)
    }

    /// Adds what a ring has counted.
    fn add(&mut self, ring: &Ring) {
        self.received += ring.received;
        self.handed_out += ring.tally.handed_out;
        self.dropped += ring.dropped + ring.tally.damaged;
        self.freezes += ring.freezes;
        self.truncated += ring.tally.truncated;
        self.damaged += ring.tally.damaged;
    }
}

/// A ring with its socket and its counts.
#[derive(Debug)]
struct Ring {
    blocks: Blocks,
    socket: Socket,
    /// The interface's index; another one of the same name has another one.
    index: i32,
    view: View,
    tally: Tally,
    received: u64,
    dropped: u64,
    freezes: u64,
    /// The real filter is attached when all rings of the group are there. Until then none passes a frame, as it would
    /// come twice, or to a ring that it does not belong to.
    is_closed: bool,
}

impl Ring {
    fn open(interface: &str, options: &Options, is_closed: bool) -> Result<Self, LiveError> {
        let size = options.size()?;
        let socket = ring::socket().map_err(|error| LiveError::of("socket", error))?;
        let index = rustix::net::netdevice::name_to_index(&socket, interface)
            .map_err(|error| Self::no_interface(interface, "SIOCGIFINDEX", error.into()))? as i32;
        // To no protocol, so that nothing comes before everything is set.
        ring::bind(&socket, index, 0).map_err(|error| Self::no_interface(interface, "bind", error))?;
        let kind = ring::address(&socket).map_err(|error| LiveError::of("getsockname", error))?.kind;
        let link = link_type(kind).ok_or_else(|| LiveError::UnknownLink { name: interface.to_owned(), kind })?;
        if kind == libc::ARPHRD_LOOPBACK {
            // There every frame comes twice: as it leaves, and as it arrives.
            ring::ignore_outgoing(&socket).map_err(|error| LiveError::of("PACKET_IGNORE_OUTGOING", error))?;
        }
        let program = options.program(link);
        let refused = |error| LiveError::FilterRefused { instructions: program.len(), error };
        if u16::try_from(program.len()).is_err() {
            return Err(refused(io::ErrorKind::InvalidInput.into()));
        }
        // The kernel checks the filter even if it is replaced before it runs.
        ring::attach(&socket, &program).map_err(refused)?;
        if is_closed {
            ring::attach(&socket, &[keep(0)]).map_err(|error| LiveError::of("SO_ATTACH_FILTER", error))?;
        }
        let blocks =
            ring::blocks(&socket, size, TAG, options.timeout_ms()).map_err(|(call, error)| match error.kind() {
                io::ErrorKind::OutOfMemory => {
                    LiveError::RingTooLarge { bytes: (size.block * size.blocks) as u64, error: Some(error) }
                }
                _ => LiveError::of(call, error),
            })?;
        if options.promiscuous {
            ring::promiscuous(&socket, index).map_err(|error| LiveError::of("PACKET_ADD_MEMBERSHIP", error))?;
        }
        ring::bind(&socket, index, ring::ALL).map_err(|error| Self::no_interface(interface, "bind", error))?;
        let kept = options.kept(link).map(|kept| kept as usize);
        let view = View { link, snaplen: options.snaplen as usize, kept };
        let tally = Tally::default();
        Ok(Self { blocks, socket, index, view, tally, received: 0, dropped: 0, freezes: 0, is_closed })
    }

    fn no_interface(name: &str, call: &'static str, error: io::Error) -> LiveError {
        match error.raw_os_error() {
            Some(libc::ENODEV | libc::ENXIO) => {
                let available = interfaces().unwrap_or_default().into_iter().map(|interface| interface.name).collect();
                LiveError::NoInterface { name: name.to_owned(), available }
            }
            _ => LiveError::of(call, error),
        }
    }

    /// Adds what the kernel has counted since the last time.
    fn count(&mut self) -> io::Result<()> {
        let [received, dropped, freezes] = ring::statistics(&self.socket)?;
        self.received += u64::from(received);
        self.dropped += u64::from(dropped);
        self.freezes += u64::from(freezes);
        Ok(())
    }

    /// Whether no frame is in the ring, not even in a block that is not handed over.
    fn is_empty(&mut self) -> bool {
        let is_counted = self.count().is_ok();
        let mut counts = Statistics::default();
        counts.add(self);
        is_counted && counts.in_ring() == 0 && !self.blocks.is_ready()
    }

    /// Lets the frames through that the filter chooses.
    fn open_filter(&mut self, options: &Options) -> Result<(), LiveError> {
        ring::attach(&self.socket, &options.program(self.view.link))
            .map_err(|error| LiveError::of("SO_ATTACH_FILTER", error))?;
        self.is_closed = false;
        Ok(())
    }
}

/// The rings that share the frames of an interface.
#[derive(Debug)]
struct Group {
    /// How many there are to be.
    rings: usize,
    joined: usize,
    /// The kernel's number of the group, as long as a ring is in it.
    id: Option<u16>,
    /// The interface is gone, and some rings of the old group are still in it. None joins before all have left.
    is_leaving: bool,
}

impl Group {
    /// Joins; `Ok(false)` means: not yet.
    fn join(&mut self, socket: &Socket) -> io::Result<bool> {
        if self.is_leaving {
            return Ok(false);
        }
        self.id = Some(ring::fan_out(socket, self.id, &fanout::program())?);
        self.joined += 1;
        Ok(true)
    }

    fn leave(&mut self) {
        self.joined = self.joined.saturating_sub(1);
        self.is_leaving = self.joined > 0;
        if self.joined == 0 {
            self.id = None;
        }
    }
}

/// A capture from an interface.
///
/// # Panics
///
/// No method panics on what a frame, an interface or the kernel does.
#[derive(Debug)]
pub struct Live {
    name: String,
    options: Options,
    /// `None` while the interface is gone and all frames from it were read.
    ring: Option<Ring>,
    link: LinkType,
    group: Option<Arc<Mutex<Group>>>,
    /// What the rings before this one have counted.
    before: Statistics,
    is_running: bool,
    /// When the interface was found to be gone.
    gone: Option<Instant>,
    /// An interface of that name was there, but was refused.
    was_refused: bool,
    looked: Instant,
    news: VecDeque<News>,
    stopped: Option<Instant>,
}

impl Live {
    /// Opens a capture from `interface`. One that is down can be opened; [`Live::take_news`] reports it.
    ///
    /// # Errors
    ///
    /// If there is no such interface, this process may not capture, an option is out of range, or the kernel refuses
    /// one.
    pub fn open(interface: &str, options: &Options) -> Result<Self, LiveError> {
        let ring = Ring::open(interface, options, false)?;
        Ok(Self::new(interface, options, ring, None))
    }

    /// Opens several rings that share the frames of `interface`, each with the options, for as many threads. All frames
    /// between two addresses come to one ring, in both directions. Frames in which the kernel finds no IP header behind
    /// up to three VLAN tags come to the first ring.
    ///
    /// A ring that is dropped leaves its share to the others, and the shares of all rings may change.
    ///
    /// # Errors
    ///
    /// As [`Live::open`].
    pub fn open_rings(interface: &str, options: &Options, rings: NonZeroU16) -> Result<Vec<Self>, LiveError> {
        let rings = usize::from(rings.get());
        if rings == 1 {
            return Ok(vec![Self::open(interface, options)?]);
        }
        let group = Arc::new(Mutex::new(Group { rings, joined: 0, id: None, is_leaving: false }));
        let mut all = Vec::new();
        for _ in 0..rings {
            let ring = Ring::open(interface, options, true)?;
            lock(&group).join(&ring.socket).map_err(|error| LiveError::of("PACKET_FANOUT", error))?;
            all.push(Self::new(interface, options, ring, Some(Arc::clone(&group))));
        }
        for live in &mut all {
            live.open_filter()?;
        }
        Ok(all)
    }

    fn new(interface: &str, options: &Options, ring: Ring, group: Option<Arc<Mutex<Group>>>) -> Self {
        let link = ring.view.link;
        let mut live = Self {
            name: interface.to_owned(),
            options: options.clone(),
            ring: Some(ring),
            link,
            group,
            before: Statistics::default(),
            is_running: true,
            gone: None,
            was_refused: false,
            looked: Instant::now(),
            news: VecDeque::new(),
            stopped: None,
        };
        live.look();
        live
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.name
    }

    /// The link type of the frames. It changes only with [`News::Back`].
    pub fn link(&self) -> LinkType {
        self.link
    }

    /// Hands up to `max` frames to `sink`, in the order in which the kernel got them, and returns their number. If none
    /// is there, it waits for at most `wait`, or until a signal or news of the interface; 0 means that none came.
    ///
    /// # Errors
    ///
    /// If a call on the socket fails for another reason than the state of the interface. The next call may succeed.
    ///
    /// # Panics
    ///
    /// If `max` is 0, as the result would have no meaning.
    #[inline]
    pub fn read(&mut self, max: usize, wait: Duration, mut sink: impl FnMut(Record<'_>)) -> Result<usize, LiveError> {
        assert!(max > 0, "`max` is 0: ask for at least one frame");
        let count = self.take(max, &mut sink);
        if count > 0 || !self.wait(wait)? {
            return Ok(count);
        }
        Ok(self.take(max, &mut sink))
    }

    #[inline]
    fn take(&mut self, max: usize, sink: &mut impl FnMut(Record<'_>)) -> usize {
        let Some(ring) = &mut self.ring else { return 0 };
        ring.blocks.read(ring.view, max, &mut ring.tally, sink)
    }

    /// Waits for frames, and returns whether some may be there.
    #[cold]
    fn wait(&mut self, wait: Duration) -> Result<bool, LiveError> {
        let (start, known) = (Instant::now(), self.news.len());
        loop {
            self.open_filter()?;
            if self.looked.elapsed() >= LOOK {
                self.look();
            }
            if self.news.len() != known {
                return Ok(false);
            }
            let left = wait.saturating_sub(start.elapsed());
            let step = left.min(LOOK.saturating_sub(self.looked.elapsed()));
            let Some(ring) = &self.ring else {
                if left.is_zero() {
                    return Ok(false);
                }
                thread::sleep(step);
                continue;
            };
            let found = match poll(&ring.socket, step) {
                Ok(found) => found,
                // A signal: the caller may want to know.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(false),
                Err(error) => return Err(LiveError::of("poll", error)),
            };
            if found.contains(PollFlags::ERR) {
                // Taking the error also clears it.
                let error = ring.socket.take_error().map_err(|error| LiveError::of("SO_ERROR", error))?;
                self.look();
                if let Some(error) = error.filter(|error| error.raw_os_error() != Some(libc::ENETDOWN)) {
                    return Err(LiveError::of("receive", error));
                }
            }
            if found.contains(PollFlags::IN) {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    /// Finds out what became of the interface.
    fn look(&mut self) {
        self.looked = Instant::now();
        match &self.ring {
            None => self.open_again(),
            Some(ring) if self.gone.is_none() => {
                if ring::address(&ring.socket).is_ok_and(|address| address.index != ring.index) {
                    self.gone = Some(Instant::now());
                    self.tell(News::Gone);
                } else if let Ok(name) = index_to_name(&ring.socket, ring.index.cast_unsigned())
                    // The interface may have another name by now, and still be the one.
                    && let Ok(is_running) = ring::is_running(&ring.socket, &name)
                    && is_running != self.is_running
                {
                    self.is_running = is_running;
                    self.tell(if is_running { News::Up } else { News::Down });
                }
            }
            Some(_) => {}
        }
        if let (Some(gone), Some(ring)) = (self.gone, &mut self.ring) {
            let is_overdue = gone.elapsed() > self.options.held_back() + LOOK && !ring.blocks.is_ready();
            if is_overdue || ring.is_empty() {
                self.close_ring();
            }
        }
    }

    fn tell(&mut self, news: News) {
        if self.news.len() == MOST_NEWS {
            self.news.pop_front();
        }
        self.news.push_back(news);
    }

    /// Gives the ring back. What is in it is lost.
    fn close_ring(&mut self) {
        let Some(mut ring) = self.ring.take() else { return };
        let _ = ring.count(); // Only a closed socket has no counts.
        self.before.add(&ring);
        self.before.dropped += self.before.in_ring();
        drop(ring);
        if let Some(group) = &self.group {
            lock(group).leave();
        }
    }

    /// Opens a ring on an interface of the same name.
    fn open_again(&mut self) {
        if self.stopped.is_some() {
            return;
        }
        let opened = Ring::open(&self.name, &self.options, self.group.is_some()).and_then(|ring| match &self.group {
            Some(group) => match lock(group).join(&ring.socket) {
                Ok(has_joined) => Ok(has_joined.then_some(ring)),
                // A ring of the group has not yet seen that the interface went away once more.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
                Err(error) => Err(LiveError::of("PACKET_FANOUT", error)),
            },
            None => Ok(Some(ring)),
        });
        match opened {
            Ok(Some(ring)) => {
                self.link = ring.view.link;
                self.ring = Some(ring);
                (self.gone, self.was_refused, self.is_running) = (None, false, true);
                self.tell(News::Back);
                self.look();
            }
            Ok(None) | Err(LiveError::NoInterface { .. }) => {}
            Err(error) => {
                if !self.was_refused {
                    self.was_refused = true;
                    self.tell(News::Refused(error));
                }
            }
        }
    }

    /// Attaches the real filter as soon as all rings of the group are there.
    fn open_filter(&mut self) -> Result<(), LiveError> {
        if let (Some(ring), Some(group), None) = (&mut self.ring, &self.group, self.stopped)
            && ring.is_closed
        {
            let is_whole = {
                let group = lock(group);
                group.joined == group.rings
            };
            if is_whole {
                ring.open_filter(&self.options)?;
            }
        }
        Ok(())
    }

    /// What became of the interface, in order; each is returned once. Only the last 64 are kept.
    pub fn take_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    /// If no frame is in the ring: a time, in nanoseconds since the epoch, such that no frame before it is still to
    /// come, as long as the clock is not set. It lies somewhat more than twice [`Options::block_timeout`] in the past.
    pub fn quiet_since(&mut self) -> Option<u64> {
        // Before the ring is looked at: what comes later is later.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        if self.ring.as_mut().is_some_and(|ring| !ring.is_empty()) {
            return None;
        }
        u64::try_from(now.checked_sub(self.options.held_back())?.as_nanos()).ok()
    }

    /// What was counted so far. The kernel counts in 32 bits, so a capture of more than a million frames a second has
    /// to ask once an hour.
    pub fn statistics(&mut self) -> Statistics {
        let mut counts = self.before;
        if let Some(ring) = &mut self.ring {
            let _ = ring.count(); // The counts stay what they were, and the next call has the rest.
            counts.add(ring);
        }
        counts
    }

    /// Ends the capture: no new frames come from now on. Those in the ring can still be read, until
    /// [`Live::is_drained`]; then the statistics are final.
    ///
    /// # Errors
    ///
    /// If the kernel refuses. Frames go on to come then.
    pub fn stop(&mut self) -> Result<(), LiveError> {
        if let Some(ring) = &self.ring {
            // Not by the binding: that of a ring in a group cannot change.
            ring::attach(&ring.socket, &[keep(0)]).map_err(|error| LiveError::of("SO_ATTACH_FILTER", error))?;
        }
        self.stopped.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Whether the capture was stopped and all its frames were read. That takes some more than
    /// [`Options::block_timeout`] after [`Live::stop`], as the kernel holds the last block back that long.
    pub fn is_drained(&mut self) -> bool {
        let Some(stopped) = self.stopped else { return false };
        let Some(ring) = &mut self.ring else { return true };
        let held_back = self.options.held_back();
        // A frame that had passed the filter may have come into the ring after it was replaced.
        let is_late = stopped.elapsed() > ON_ITS_WAY;
        is_late && (ring.is_empty() || stopped.elapsed() > held_back + LOOK && !ring.blocks.is_ready())
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.close_ring();
        if let Some(group) = &self.group {
            // The others do not wait for this one when they open anew.
            lock(group).rings -= 1;
        }
    }
}

/// Waits until the socket has a block that is ready, an error, or the time is over.
fn poll(socket: &Socket, wait: Duration) -> io::Result<PollFlags> {
    let mut fds = [PollFd::new(socket, PollFlags::IN | PollFlags::ERR)];
    let wait = Timespec::try_from(wait).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    rustix::event::poll(&mut fds, Some(&wait))?;
    Ok(fds[0].revents())
}

fn lock(group: &Mutex<Group>) -> MutexGuard<'_, Group> {
    group.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The link type of an interface's frames, by the kernel's number for its hardware.
fn link_type(kind: u16) -> Option<LinkType> {
    match kind {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(LinkType::ETHERNET),
        // The kernel takes the header off, or there is none.
        libc::ARPHRD_NONE
        | libc::ARPHRD_PPP
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT
        | RAW_IP => Some(LinkType::RAW),
        _ => None,
    }
}
