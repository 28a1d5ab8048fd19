//! Writing pcap files.

use std::io::{self, BufWriter, Write};

use super::record::LinkType;

/// Marks a pcap file whose times carry nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// The version every reader knows.
const VERSION: [u16; 2] = [2, 4];
/// One system call per so many bytes: about three thousand packets of headers.
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
