//! Writing pcap and pcapng files.

use std::io::{self, BufWriter, Write};

use super::pcapng;
use super::record::LinkType;
use super::step::LONGEST;

/// Marks a pcap file whose times carry nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// The version every reader knows.
const VERSION: [u16; 2] = [2, 4];
/// One system call per this many bytes: about three thousand packets of headers.
const BUFFER: usize = 256 * 1024;

/// Writes a pcap file: little-endian, with times in nanoseconds, so that every time survives exactly.
///
/// Packets go out as they come; memory does not grow with their number.
///
/// ```
/// use corelane_net::capture::{LinkType, write::PcapWriter};
///
/// let mut writer = PcapWriter::new(Vec::new(), 65_535, LinkType(1))?;
/// writer.write(1_700_000_000_000_000_001, 60, &[0; 42])?;
/// let image = writer.finish()?;
/// assert_eq!(image.len(), 24 + 16 + 42);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    out: BufWriter<W>,
    snaplen: usize,
}

impl<W: Write> PcapWriter<W> {
    /// Starts a file whose header has `snaplen` and `link`. No record will hold more than `snaplen` bytes.
    ///
    /// # Errors
    ///
    /// The errors of `w`. Written bytes wait in a buffer, so an error may belong to an earlier call.
    pub fn new(w: W, snaplen: u32, link: LinkType) -> io::Result<Self> {
        let mut header = [0; 24];
        header[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        header[4..6].copy_from_slice(&VERSION[0].to_le_bytes());
        header[6..8].copy_from_slice(&VERSION[1].to_le_bytes());
        header[16..20].copy_from_slice(&snaplen.to_le_bytes());
        header[20..24].copy_from_slice(&link.0.to_le_bytes());
        let mut out = BufWriter::with_capacity(BUFFER, w);
        out.write_all(&header)?;
        Ok(Self { out, snaplen: usize::try_from(snaplen).unwrap_or(usize::MAX) })
    }

    /// Appends one packet: its time in nanoseconds since the epoch, its length on the wire, and its captured bytes,
    /// which are cut to the snaplen.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if the time does not fit the format's 32 bits of seconds (the year 2106);
    /// otherwise the errors of the writer below.
    #[inline]
    pub fn write(&mut self, time_ns: u64, wire_len: u32, data: &[u8]) -> io::Result<()> {
        let data = &data[..data.len().min(self.snaplen)];
        let seconds = u32::try_from(time_ns / 1_000_000_000).map_err(|_| too_late())?;
        let nanoseconds = (time_ns % 1_000_000_000) as u32;
        let mut header = [0; 16];
        header[0..4].copy_from_slice(&seconds.to_le_bytes());
        header[4..8].copy_from_slice(&nanoseconds.to_le_bytes());
        // At most the snaplen, which is 32 bits.
        header[8..12].copy_from_slice(&(data.len() as u32).to_le_bytes());
        header[12..16].copy_from_slice(&wire_len.to_le_bytes());
        self.out.write_all(&header)?;
        self.out.write_all(data)
    }

    /// Writes the bytes that still wait in the buffer, and returns the writer. A writer that is dropped instead tries
    /// the same but cannot report an error.
    ///
    /// # Errors
    ///
    /// The errors of the writer below.
    pub fn finish(self) -> io::Result<W> {
        let mut w = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        w.flush()?;
        Ok(w)
    }
}

#[cold]
fn too_late() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "the packet's time is past the year 2106, the last that pcap can store; give an earlier one",
    )
}

/// Bytes of an enhanced packet block beside its data and their padding.
const PACKET_FRAME: usize = 32;
/// 10^-9 of a second, as `if_tsresol` encodes it.
const NANOSECONDS: u8 = 9;

/// The number of an interface in the file that a [`PcapngWriter`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface(u32);

/// Writes a pcapng file: little-endian, one section, with times in nanoseconds, and at its end when the capture ended
/// and how many packets it received and dropped.
///
/// A packet is taken as a whole or not at all, also when the disk is full: whole blocks wait in a buffer of about
/// 256 KiB, and the next write goes on at the byte where the last one failed. So a file never has a good block behind a
/// torn one, and memory does not grow while nothing can be written.
///
/// ```
/// use corelane_net::capture::{LinkType, Reader, write::PcapngWriter};
///
/// let mut writer = PcapngWriter::new(Vec::new(), LinkType::ETHERNET, 262_144, Some("eth0"))?;
/// let interface = writer.first_interface();
/// writer.write(interface, 1_700_000_000_000_000_001, 60, &[0; 42])?;
/// writer.finish(Some(1_700_000_001_000_000_000), Some(1), Some(0))?;
///
/// let mut reader = Reader::from_bytes(writer.into_inner())?;
/// while reader.read(1024, |record| assert_eq!(record.time_ns, 1_700_000_000_000_000_001))? > 0 {}
/// assert_eq!(reader.end_ns(), Some(1_700_000_001_000_000_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    w: W,
    /// Whole blocks. The first `written` bytes are written already.
    buffer: Vec<u8>,
    written: usize,
    interfaces: Vec<(LinkType, u32, Option<String>)>,
    last_time: u64,
    comment: String,
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a file with one interface: the link type of its frames, the most bytes that are kept of each (0: all),
    /// and its name, if it has one. Nothing is written yet.
    ///
    /// # Errors
    ///
    /// As [`PcapngWriter::interface`].
    pub fn new(w: W, link: LinkType, snaplen: u32, name: Option<&str>) -> io::Result<Self> {
        Self::commented(w, link, snaplen, name, "")
    }

    /// The same; the section has this comment, if it is not empty, which [`Reader::comment`](super::Reader::comment)
    /// gives back.
    ///
    /// # Errors
    ///
    /// As [`PcapngWriter::interface`], and [`io::ErrorKind::InvalidInput`] if the comment is longer than 65,535 bytes.
    pub fn commented(w: W, link: LinkType, snaplen: u32, name: Option<&str>, comment: &str) -> io::Result<Self> {
        if comment.len() > usize::from(u16::MAX) {
            return Err(invalid("the comment is longer than 65,535 bytes; give a shorter one"));
        }
        let mut writer = Self::over(w, BUFFER, comment);
        writer.interface(link, snaplen, name)?;
        Ok(writer)
    }

    /// A section without interfaces.
    fn over(w: W, buffer: usize, comment: &str) -> Self {
        let buffer = Vec::with_capacity(buffer);
        let comment = comment.to_owned();
        let mut writer = Self { w, buffer, written: 0, interfaces: Vec::new(), last_time: 0, comment };
        let block = writer.begin(pcapng::SECTION);
        writer.put(&pcapng::BYTE_ORDER_MAGIC.to_le_bytes());
        // The version, 1.0, and a section whose length is not known.
        writer.put(&[1, 0, 0, 0]);
        writer.put(&u64::MAX.to_le_bytes());
        if !writer.comment.is_empty() {
            let comment = std::mem::take(&mut writer.comment);
            writer.option(pcapng::OPTION_COMMENT, comment.as_bytes());
            writer.option(pcapng::OPTION_END, &[]);
            writer.comment = comment;
        }
        writer.end(block);
        writer
    }

    /// The interface that [`PcapngWriter::new`] was given.
    pub fn first_interface(&self) -> Interface {
        Interface(0)
    }

    /// An interface of this link type, snaplen (0: no limit) and name. It is described in the file when it is asked for
    /// the first time; later calls with the same values give it again.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] for what the format cannot express: a link type or a length of the name above
    /// 65,535; and for an interface beyond the 65,536 that a reader accepts.
    pub fn interface(&mut self, link: LinkType, snaplen: u32, name: Option<&str>) -> io::Result<Interface> {
        let is_same = |(l, s, n): &(LinkType, u32, Option<String>)| (*l, *s, n.as_deref()) == (link, snaplen, name);
        if let Some(number) = self.interfaces.iter().position(is_same) {
            return Ok(Interface(number as u32));
        }
        let number = self.interfaces.len();
        if number == pcapng::MOST_INTERFACES {
            return Err(invalid("a section holds at most 65,536 interfaces; start another file"));
        }
        let kind = u16::try_from(link.0).map_err(|_| invalid("pcapng has no link types above 65,535; write pcap"))?;
        if name.is_some_and(|name| name.len() > usize::from(u16::MAX)) {
            return Err(invalid("the interface's name is longer than 65,535 bytes; give a shorter one"));
        }
        let block = self.begin(pcapng::INTERFACE);
        self.put(&kind.to_le_bytes());
        self.put(&[0, 0]);
        self.put(&snaplen.to_le_bytes());
        if let Some(name) = name {
            self.option(pcapng::OPTION_NAME, name.as_bytes());
        }
        self.option(pcapng::OPTION_TIME_RESOLUTION, &[NANOSECONDS]);
        self.option(pcapng::OPTION_END, &[]);
        self.end(block);
        self.interfaces.push((link, snaplen, name.map(str::to_owned)));
        Ok(Interface(number as u32))
    }

    /// Appends one packet: its time in nanoseconds since the epoch, its length on the wire, and its captured bytes,
    /// which are cut to the snaplen of its interface.
    ///
    /// # Errors
    ///
    /// The packet was not taken, and all others are safe: the caller may give it again, or go on without it.
    /// [`io::ErrorKind::InvalidInput`] if its block would be longer than the 16 MiB that a reader accepts; otherwise
    /// the buffer is full, and the error is that of the writer below, which every further call tries once.
    ///
    /// # Panics
    ///
    /// If the interface is of another writer, and this one has none of its number.
    #[inline]
    pub fn write(&mut self, interface: Interface, time_ns: u64, wire_len: u32, data: &[u8]) -> io::Result<()> {
        let data = match self.interfaces[interface.0 as usize].1 {
            0 => data,
            snaplen => &data[..data.len().min(usize::try_from(snaplen).unwrap_or(usize::MAX))],
        };
        let room = (data.len() + PACKET_FRAME).next_multiple_of(4);
        if room > LONGEST as usize {
            return Err(invalid("the packet is longer than the 16 MiB that a reader accepts; set a snaplen"));
        }
        if self.buffer.len() + room > BUFFER {
            self.drain()?;
        }
        let block = self.begin(pcapng::ENHANCED_PACKET);
        let mut header = [0; 20];
        header[0..4].copy_from_slice(&interface.0.to_le_bytes());
        header[4..12].copy_from_slice(&ticks(time_ns));
        // Below 16 MiB.
        header[12..16].copy_from_slice(&(data.len() as u32).to_le_bytes());
        header[16..20].copy_from_slice(&wire_len.to_le_bytes());
        self.put(&header);
        self.put(data);
        self.end(block);
        self.last_time = time_ns;
        Ok(())
    }

    /// Writes all that waits in the buffer.
    ///
    /// # Errors
    ///
    /// Those of the writer below. What is left keeps waiting, and the next call goes on with it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.drain()?;
        self.w.flush()
    }

    /// Ends the file with a block of statistics of the first interface, and writes all that waits: the time at which
    /// the capture ended, in nanoseconds since the epoch, and the packets that the capture received, the dropped ones
    /// among them, and dropped. What is `None` is not written.
    ///
    /// # Errors
    ///
    /// As [`PcapngWriter::flush`], which is what to call to try again: this one would append another such block.
    pub fn finish(&mut self, end_ns: Option<u64>, received: Option<u64>, dropped: Option<u64>) -> io::Result<()> {
        let block = self.begin(pcapng::INTERFACE_STATISTICS);
        self.put(&0_u32.to_le_bytes());
        self.put(&ticks(end_ns.unwrap_or(self.last_time)));
        if let Some(end_ns) = end_ns {
            self.option(pcapng::OPTION_END_TIME, &ticks(end_ns));
        }
        for (option, count) in [(pcapng::OPTION_RECEIVED, received), (pcapng::OPTION_DROPPED, dropped)] {
            if let Some(count) = count {
                self.option(option, &count.to_le_bytes());
            }
        }
        self.option(pcapng::OPTION_END, &[]);
        self.end(block);
        self.flush()
    }

    /// What a further file has to begin with, if blocks of this writer are to follow there: its section and all
    /// interfaces up to now.
    pub fn header(&self) -> Vec<u8> {
        let mut header = PcapngWriter::over(io::sink(), 0, &self.comment);
        for (link, snaplen, name) in &self.interfaces {
            // Each of them was accepted before.
            let _ = header.interface(*link, *snaplen, name.as_deref());
        }
        header.buffer
    }

    /// Bytes that wait in the buffer.
    pub fn waiting(&self) -> usize {
        self.buffer.len() - self.written
    }

    /// Bytes of a torn block at the end of what was written; 0 unless the last write failed. A caller that gives the
    /// file up can cut it by that many bytes, so that it ends with a whole block.
    pub fn torn(&self) -> usize {
        let mut start = 0;
        while start < self.written {
            let length = self.buffer[start + 4..].first_chunk().expect("the buffer holds whole blocks");
            let next = start + u32::from_le_bytes(*length) as usize;
            if next > self.written {
                return self.written - start;
            }
            start = next;
        }
        0
    }

    /// The writer below.
    pub fn get_ref(&self) -> &W {
        &self.w
    }

    /// The writer below, to be used with care: what is written to it comes between blocks, or into one.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.w
    }

    /// The writer below. What still waits is lost: call [`PcapngWriter::finish`] or [`PcapngWriter::flush`] before.
    pub fn into_inner(self) -> W {
        self.w
    }

    /// Not through `Write::write_all`, which does not report how far it came before an error.
    fn drain(&mut self) -> io::Result<()> {
        while self.written < self.buffer.len() {
            match self.w.write(&self.buffer[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.buffer.clear();
        // One long frame should not hold its memory for ever.
        self.buffer.shrink_to(BUFFER);
        self.written = 0;
        Ok(())
    }

    /// Starts a block, and returns where in the buffer.
    #[inline]
    fn begin(&mut self, kind: u32) -> usize {
        let start = self.buffer.len();
        self.put(&kind.to_le_bytes());
        self.put(&[0; 4]);
        start
    }

    /// Pads a block, and writes its length at both ends.
    #[inline]
    fn end(&mut self, start: usize) {
        self.pad();
        // Below 16 MiB, like all blocks here.
        let length = ((self.buffer.len() - start + 4) as u32).to_le_bytes();
        self.buffer[start + 4..start + 8].copy_from_slice(&length);
        self.put(&length);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let length = u16::try_from(value.len()).expect("names are checked, all else is short");
        self.put(&code.to_le_bytes());
        self.put(&length.to_le_bytes());
        self.put(value);
        self.pad();
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Every block starts at a multiple of four in the buffer.
    #[inline]
    fn pad(&mut self) {
        self.buffer.resize(self.buffer.len().next_multiple_of(4), 0);
    }
}

/// A time as statistics and packets hold it: the upper half first, in any byte order.
fn ticks(time_ns: u64) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&((time_ns >> 32) as u32).to_le_bytes());
    bytes[4..].copy_from_slice(&(time_ns as u32).to_le_bytes());
    bytes
}

#[cold]
fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_that_of_pcap_byte_for_byte() {
        let mut writer = PcapWriter::new(Vec::new(), 0x0001_0203, LinkType(0x65)).unwrap();
        writer.write(0x1234_5678 * 1_000_000_000 + 0x0102_0304, 0x0506, &[0xaa, 0xbb, 0xcc]).unwrap();
        writer.write(5, 0, &[]).unwrap();
        #[rustfmt::skip]
        let expected = [
            0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 2, 1, 0, 0x65, 0, 0, 0,
            0x78, 0x56, 0x34, 0x12, 4, 3, 2, 1, 3, 0, 0, 0, 6, 5, 0, 0, 0xaa, 0xbb, 0xcc,
            0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(writer.finish().unwrap(), expected);
    }

    #[test]
    fn a_record_is_cut_to_the_snaplen() {
        let mut writer = PcapWriter::new(Vec::new(), 4, LinkType(1)).unwrap();
        writer.write(0, 9, &[7; 9]).unwrap();
        let image = writer.finish().unwrap();
        assert_eq!(image[24 + 8..], [4, 0, 0, 0, 9, 0, 0, 0, 7, 7, 7, 7]);
    }

    #[test]
    fn a_record_longer_than_the_buffer_is_whole() {
        let data: Vec<u8> = (0..2 * BUFFER + 7).map(|i| i as u8).collect();
        let mut writer = PcapWriter::new(Vec::new(), u32::MAX, LinkType(1)).unwrap();
        writer.write(0, data.len() as u32, &data).unwrap();
        assert_eq!(writer.finish().unwrap()[24 + 16..], data);
    }

    #[test]
    fn the_last_time_the_format_can_say_is_written_and_the_next_refused() {
        let end = (u64::from(u32::MAX) + 1) * 1_000_000_000;
        let mut writer = PcapWriter::new(Vec::new(), 64, LinkType(1)).unwrap();
        writer.write(end - 1, 0, &[]).unwrap();
        assert_eq!(writer.write(end, 0, &[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let image = writer.finish().unwrap();
        assert_eq!(image.len(), 24 + 16);
        assert_eq!(image[24..32], [0xff, 0xff, 0xff, 0xff, 0xff, 0xc9, 0x9a, 0x3b]);
    }

    #[test]
    fn errors_of_the_writer_below_come_out() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let writer = PcapWriter::new(Full, 64, LinkType(1)).unwrap();
        assert_eq!(writer.finish().err().unwrap().kind(), io::ErrorKind::StorageFull);
    }
}
