//! The ring of a packet socket and the calls on the socket. All `unsafe` of live capture is in this file.
//!
//! # Layout
//!
//! The ring is memory of the kernel, mapped here for reading and writing (TPACKET_V3, version 3 of `PACKET_RX_RING`).
//! It is cut into blocks of one size. A block:
//!
//! | bytes | what | written by |
//! |---|---|---|
//! | 0..8 | version, private area | kernel |
//! | 8..12 | `block_status`: the word by which the block changes hands | kernel and us, atomically |
//! | 12..48 | number of frames, offset of the first, length, sequence number, times | kernel |
//! | 48.. | frames, each behind a header of 48 bytes that has the distance to the next one | kernel |
//!
//! In front of every frame lie at least 4 bytes without use (`PACKET_RESERVE`). We move the two addresses of a frame
//! there, in a block that is ours, to put back the VLAN tag that the kernel took. We write nothing else, but for the
//! word.
//!
//! # Synchronization
//!
//! 1. The kernel fills a block, then sets `TP_STATUS_USER` in its word, behind a write barrier. We load the word with
//!    Acquire. So all that the kernel wrote into the block happens before our reads. From then on the kernel only reads
//!    the block: its word, to find out whether it comes back, and while the ring is full its number of frames.
//! 2. We store `TP_STATUS_KERNEL` with Release, after the last use of a frame. So our reads and moves happen before the
//!    kernel's next writes.
//!
//! In between the block is ours. No other thread of this process has it, as [`Blocks`] owns the map and lends a block
//! only through `&mut self`. So a slice of it is sound, even a mutable one, from byte 12 on: behind the word, which we
//! change while the kernel reads it. Of the slice it reads only what neither side changes. The slice ends before the
//! store.
//!
//! # Trust
//!
//! The kernel has all rights over this process anyway. But what it writes comes from frames of strangers, and an error
//! in it would become ours. So the number of blocks and their size are ours alone, and nothing read from the ring is
//! used as an offset before [`block`](super::block) has checked it against the block.

use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, SockFilter, Socket, Type};

use super::block::{LENT, STATUS, Tally, View, Walk};
use crate::capture::filter::Instruction;
use crate::capture::record::Record;

/// A block that is ours: an Acquire load has seen `TP_STATUS_USER` in its word. Only [`Blocks::acquire`] makes one, and
/// [`Blocks::release`] takes it before the block goes back.
#[derive(Debug)]
struct Ours(usize);

/// The blocks of a ring, and the position in it.
#[derive(Debug)]
pub(super) struct Blocks {
    map: MmapRaw,
    /// Bytes of a block: a multiple of 8, larger than its header.
    size: usize,
    count: usize,
    /// The block that comes next, unless there is a current one.
    next: usize,
    /// The block that is being read, and the position in it.
    current: Option<(Ours, Walk)>,
}

impl Blocks {
    /// Blocks of `size` bytes over the whole of `map`; a rest that is smaller stays unused.
    pub(super) fn new(map: MmapRaw, size: usize) -> Self {
        assert!(
            size > LENT && size.is_multiple_of(8) && map.len() >= size,
            "a block has room for its word, and words are aligned"
        );
        let count = map.len() / size;
        Self { map, size, count, next: 0, current: None }
    }

    /// The word of a block below `count`.
    fn word(&self, block: usize) -> &AtomicU32 {
        debug_assert!(block < self.count);
        // SAFETY: `block` is below `count`, so the word lies inside the map, which `self` keeps alive. A map begins at
        // a page and `size` is a multiple of 8, so the word is aligned. It is only used atomically: slices begin behind
        // it ("Synchronization").
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(block * self.size + STATUS).cast()) }
    }

    /// The next block, if the kernel has handed it over.
    fn acquire(&self) -> Option<Ours> {
        // Acquire: our reads come after all that the kernel wrote into the block.
        let status = self.word(self.next).load(Ordering::Acquire);
        (status & libc::TP_STATUS_USER != 0).then_some(Ours(self.next))
    }

    /// The bytes of a block behind its word.
    fn lent<'a>(map: &'a mut MmapRaw, size: usize, ours: &'a mut Ours) -> &'a mut [u8] {
        // SAFETY: `ours` names a block below `count`, so these bytes lie inside the map, which is borrowed for as long.
        // As it is ours, the kernel does not write it, and reads nothing of it that we write, but for its word, which
        // is in front; and it does not go back before this borrow of `ours` ends ("Synchronization").
        unsafe { slice::from_raw_parts_mut(map.as_mut_ptr().add(ours.0 * size + LENT), size - LENT) }
    }

    /// Gives the block back to the kernel.
    fn release(&mut self, ours: Ours) {
        // Release: the kernel writes only after our last use of a frame.
        self.word(ours.0).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (ours.0 + 1) % self.count;
    }

    /// Whether a frame may be there without waiting.
    pub(super) fn is_ready(&mut self) -> bool {
        if self.current.is_none() {
            let Some(mut ours) = self.acquire() else { return false };
            let walk = Walk::new(Self::lent(&mut self.map, self.size, &mut ours));
            self.current = Some((ours, walk));
        }
        true
    }

    /// Hands up to `max` frames to `sink`, as long as blocks are ready.
    #[inline]
    pub(super) fn read(
        &mut self,
        view: View,
        max: usize,
        tally: &mut Tally,
        sink: &mut impl FnMut(Record<'_>),
    ) -> usize {
        let mut count = 0;
        while count < max && self.is_ready() {
            let Some((ours, walk)) = &mut self.current else { break };
            count += walk.read(Self::lent(&mut self.map, self.size, ours), view, max - count, tally, sink);
            if walk.is_over()
                && let Some((ours, _)) = self.current.take()
            {
                self.release(ours);
            }
        }
        count
    }
}

/// What a packet socket is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The index of the interface; negative once it is gone.
    pub(super) index: i32,
    /// The `ARPHRD_` number of the interface.
    pub(super) kind: u16,
}

/// The frames of all protocols, for [`bind`].
pub(super) const ALL: u16 = libc::ETH_P_ALL as u16;

/// A packet socket that receives nothing until it is bound to a protocol.
pub(super) fn socket() -> io::Result<Socket> {
    Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))
}

/// Binds `socket` to an interface. It receives the frames of `protocol` from now on; 0 is none.
pub(super) fn bind(socket: &Socket, index: i32, protocol: u16) -> io::Result<()> {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: `sockaddr_ll` is an address type of this system, all its fields are numbers, and those that are not set
    // here are zero. Its family and its length state what it is.
    let address = unsafe {
        let address = storage.view_as::<libc::sockaddr_ll>();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = index;
        SockAddr::new(storage, mem::size_of::<libc::sockaddr_ll>() as u32)
    };
    socket.bind(&address)
}

/// What `socket` is bound to.
pub(super) fn address(socket: &Socket) -> io::Result<Address> {
    let mut storage = socket.local_addr()?.as_storage();
    // SAFETY: `sockaddr_ll` is the address type of a packet socket, all its fields are numbers, and bytes that the
    // kernel did not write are zero.
    let address = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    Ok(Address { index: address.sll_ifindex, kind: address.sll_hatype })
}

/// Sets an option of packet sockets.
fn set<T: Copy>(socket: &Socket, option: i32, value: &T) -> io::Result<()> {
    let (start, size) = (std::ptr::from_ref(value).cast(), mem::size_of::<T>() as u32);
    // SAFETY: the kernel reads no more than `size` bytes from `value`, which lives until the call returns; and what a
    // `sock_fprog` points to, which its one caller keeps as long.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, start, size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An option of packet sockets that is made of words; those that the kernel does not know are 0.
fn get<const WORDS: usize>(socket: &Socket, option: i32) -> io::Result<[u32; WORDS]> {
    let mut value = [0_u32; WORDS];
    let mut size = mem::size_of_val(&value) as u32;
    // SAFETY: the kernel writes no more than `size` bytes to `value`, of which every pattern is valid.
    match unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value.as_mut_ptr().cast(), &mut size)
    } {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the interface of this name is set up and has a carrier.
pub(super) fn is_running(socket: &Socket, name: &str) -> io::Result<bool> {
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_flags: 0 };
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru };
    // The last byte stays 0.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the kernel reads the name, which ends with a 0, and writes inside `request`. The member that is read was
    // written here already.
    let (result, flags) = unsafe {
        let result = libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &mut request);
        (result, i32::from(request.ifr_ifru.ifru_flags))
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(flags & libc::IFF_UP != 0 && flags & libc::IFF_RUNNING != 0)
}

/// Lets the frames through that the program chooses, from now on.
pub(super) fn attach(socket: &Socket, program: &[Instruction]) -> io::Result<()> {
    let program: Vec<SockFilter> = program.iter().map(|i| SockFilter::new(i.code, i.jt, i.jf, i.k)).collect();
    socket.attach_filter(&program)
}

/// The sizes of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) block: usize,
    pub(super) blocks: usize,
}

/// Why a ring was not made: the call that failed.
pub(super) type Failure = (&'static str, io::Error);

/// Makes the ring of `socket`, with room for a VLAN tag in front of each frame. `timeout` is in milliseconds.
pub(super) fn blocks(socket: &Socket, size: Size, reserve: usize, timeout: u32) -> Result<Blocks, Failure> {
    // Frames lie one behind the other whatever this says, but the kernel wants it to fit.
    const FRAME: usize = 2048;
    let request = libc::tpacket_req3 {
        tp_block_size: size.block as u32,
        tp_block_nr: size.blocks as u32,
        tp_frame_size: FRAME as u32,
        tp_frame_nr: (size.block / FRAME * size.blocks) as u32,
        tp_retire_blk_tov: timeout,
        tp_sizeof_priv: 0,
        tp_feature_req_word: 0,
    };
    let version = libc::tpacket_versions::TPACKET_V3 as u32;
    set(socket, libc::PACKET_VERSION, &version).map_err(|error| ("PACKET_VERSION", error))?;
    set(socket, libc::PACKET_RESERVE, &(reserve as u32)).map_err(|error| ("PACKET_RESERVE", error))?;
    set(socket, libc::PACKET_RX_RING, &request).map_err(|error| ("PACKET_RX_RING", error))?;
    let map = MmapOptions::new().len(size.block * size.blocks).map_raw(socket).map_err(|error| ("mmap", error))?;
    Ok(Blocks::new(map, size.block))
}

/// Leaves out frames that this machine sends.
pub(super) fn ignore_outgoing(socket: &Socket) -> io::Result<()> {
    set(socket, libc::PACKET_IGNORE_OUTGOING, &1_u32)
}

/// Receives frames to other machines too, as long as the socket is open.
pub(super) fn promiscuous(socket: &Socket, index: i32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(socket, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Frames that passed the filter, those of them that found no room, and how often the ring was full, since the last
/// call.
pub(super) fn statistics(socket: &Socket) -> io::Result<[u32; 3]> {
    get(socket, libc::PACKET_STATISTICS)
}

/// Joins the group `id` of rings that share the frames of an interface. `None` makes a group that no other program has,
/// and whose frames `program` spreads. Returns the group's number.
pub(super) fn fan_out(socket: &Socket, id: Option<u16>, program: &[Instruction]) -> io::Result<u16> {
    let mode = libc::PACKET_FANOUT_CBPF;
    if let Some(id) = id {
        set(socket, libc::PACKET_FANOUT, &(mode << 16 | u32::from(id)))?;
        return Ok(id);
    }
    set(socket, libc::PACKET_FANOUT, &((mode | libc::PACKET_FANOUT_FLAG_UNIQUEID) << 16))?;
    let mut program: Vec<libc::sock_filter> =
        program.iter().map(|i| libc::sock_filter { code: i.code, jt: i.jt, jf: i.jf, k: i.k }).collect();
    let request = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    set(socket, libc::PACKET_FANOUT_DATA, &request)?;
    Ok(get::<1>(socket, libc::PACKET_FANOUT)?[0] as u16)
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;
    use std::thread;

    use memmap2::MmapMut;

    use super::super::block::tests::{Frame, fill};
    use super::*;
    use crate::capture::record::LinkType;

    const SIZE: usize = 4096;
    const VIEW: View = View { link: LinkType::ETHERNET, snaplen: 65_535, kept: None };

    fn ring(count: usize) -> Blocks {
        Blocks::new(MmapRaw::from(MmapMut::map_anon(count * SIZE).unwrap()), SIZE)
    }

    /// The kernel's side of a ring.
    struct Kernel {
        start: *mut u8,
        count: usize,
    }

    // SAFETY: the map stays for as long as the thread that has this: the test never drops it.
    unsafe impl Send for Kernel {}

    impl Kernel {
        fn of(blocks: &Blocks) -> Self {
            Self { start: blocks.map.as_mut_ptr(), count: blocks.count }
        }

        /// Waits for the block of this number, and fills it.
        fn put(&self, number: usize, frames: &[Frame]) {
            let block = number % self.count * SIZE;
            // SAFETY: inside the map, aligned, and only used atomically.
            let word = unsafe { AtomicU32::from_ptr(self.start.add(block + STATUS).cast()) };
            while word.load(Ordering::Acquire) != libc::TP_STATUS_KERNEL {
                thread::yield_now();
            }
            // SAFETY: inside the map, and the kernel's by the load above.
            fill(unsafe { slice::from_raw_parts_mut(self.start.add(block + LENT), SIZE - LENT) }, frames);
            word.store(libc::TP_STATUS_USER, Ordering::Release);
        }
    }

    /// Under Miri, a weaker ordering of either side or a slice over the word is a data race.
    #[test]
    fn a_block_changes_hands() {
        const BLOCKS: usize = if cfg!(miri) { 20 } else { 2000 };
        const FRAMES: usize = 5;
        // If an assertion fails, the writer goes on in the map.
        let mut blocks = ManuallyDrop::new(ring(3));
        let kernel = Kernel::of(&blocks);
        let writer = thread::spawn(move || {
            for number in 0..BLOCKS {
                let frames: Vec<Frame> = (0..FRAMES)
                    .map(|index| {
                        let number = number * FRAMES + index;
                        let mut frame = Frame::new([&[0; 12][..], &number.to_ne_bytes()].concat());
                        frame.tag = number.is_multiple_of(2).then_some((None, number as u16));
                        frame
                    })
                    .collect();
                kernel.put(number, &frames);
            }
        });
        let (mut tally, mut next) = (Tally::default(), 0_usize);
        while next < BLOCKS * FRAMES {
            let count = blocks.read(VIEW, 3, &mut tally, &mut |record| {
                let mut expected = vec![0; 12];
                if next.is_multiple_of(2) {
                    expected.extend([0x81, 0]);
                    expected.extend((next as u16).to_be_bytes());
                }
                expected.extend(next.to_ne_bytes());
                assert_eq!(record.data, expected);
                next += 1;
            });
            if count == 0 {
                thread::yield_now();
            }
        }
        writer.join().unwrap();
        assert!(!blocks.is_ready());
        assert_eq!(tally, Tally { handed_out: next as u64, truncated: 0, damaged: 0 });
    }

    #[test]
    fn a_read_stops_inside_a_block_and_goes_on_there() {
        let mut blocks = ring(2);
        let kernel = Kernel::of(&blocks);
        let frames: Vec<Frame> = (0..5).map(|index| Frame::new(vec![index; 20])).collect();
        kernel.put(0, &frames);
        kernel.put(1, &frames[..1]);
        let (mut tally, mut seen) = (Tally::default(), Vec::new());
        for max in [2, 2, 2, 2] {
            blocks.read(VIEW, max, &mut tally, &mut |record| seen.push(record.data[0]));
        }
        assert_eq!(seen, [0, 1, 2, 3, 4, 0]);
        assert!(!blocks.is_ready());
        // Both blocks were given back.
        kernel.put(2, &frames[..1]);
        kernel.put(3, &frames[..1]);
    }

    #[test]
    fn a_sink_that_panics_has_used_up_its_frame_only() {
        let mut blocks = ring(2);
        let mut frames: Vec<Frame> = (0..3).map(|index| Frame::new(vec![index; 20])).collect();
        frames[1].tag = Some((None, 1));
        Kernel::of(&blocks).put(0, &frames);
        let mut tally = Tally::default();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            blocks.read(VIEW, 9, &mut tally, &mut |record| assert_ne!(record.data[0], 1));
        }));
        assert!(panicked.is_err());
        let mut seen = Vec::new();
        blocks.read(VIEW, 9, &mut tally, &mut |record| seen.push((record.data[0], record.data.len())));
        assert_eq!(seen, [(2, 20)]);
        assert_eq!(tally.handed_out, 3);
        // So has one that panics on the last frame, and the block goes back with the next call.
        let kernel = Kernel::of(&blocks);
        kernel.put(1, &frames[..1]);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            blocks.read(VIEW, 9, &mut tally, &mut |_| panic!("the last frame"));
        }));
        assert!(panicked.is_err());
        assert_eq!(blocks.read(VIEW, 9, &mut tally, &mut |_| unreachable!("it was the last")), 0);
        kernel.put(2, &frames[..1]);
        kernel.put(3, &frames[..1]);
    }
}
