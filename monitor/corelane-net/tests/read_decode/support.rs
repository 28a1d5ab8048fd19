//! Captures made by hand, and what all tests do with them.

use std::io::Write;
use std::process::{Command, Stdio};

use corelane_net::capture::{Compression, ReadError, Reader, Record};

/// Whether a program is there to compare with; says that the test skips it otherwise.
pub(crate) fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_installed = found.is_ok_and(|status| status.success());
    if !is_installed {
        // Not through `eprintln!`, which a passing test swallows.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {program} is not installed");
    }
    is_installed
}

/// A record that outlives the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) time_ns: u64,
    pub(crate) wire_len: u32,
    pub(crate) link: u32,
    pub(crate) data: Vec<u8>,
}

impl From<Record<'_>> for Owned {
    fn from(record: Record<'_>) -> Self {
        Self { time_ns: record.time_ns, wire_len: record.wire_len, link: record.link.0, data: record.data.to_vec() }
    }
}

/// Reads to the end in steps of `max`, and checks what holds of every input.
pub(crate) fn read_in_steps(mut reader: Reader, max: usize) -> (Vec<Owned>, Vec<ReadError>) {
    let (mut records, mut errors) = (Vec::new(), Vec::new());
    let mut position = 0;
    // No capture of these tests is near a million calls long: a reader that does not end is found out.
    for _ in 0..1_000_000 {
        let before = records.len();
        let read = reader.read(max, |record| records.push(Owned::from(record)));
        let handed_over = records.len() - before;
        assert!(reader.position() >= position, "the position went back");
        position = reader.position();
        match read {
            Ok(0) => {
                assert_eq!(handed_over, 0);
                assert_eq!(reader.read(max, |_| panic!("a record behind the end")).unwrap(), 0);
                assert_eq!(reader.records(), records.len() as u64);
                return (records, errors);
            }
            Ok(count) => assert!(count == handed_over && count <= max),
            Err(error) => {
                assert_eq!(handed_over, 0, "a call that fails hands over nothing");
                let text = error.to_string();
                assert!(!text.contains('\n') && text.contains(&error.place().to_string()), "{text}");
                errors.push(error);
            }
        }
    }
    panic!("the reader does not end");
}

pub(crate) fn read_all(reader: Reader) -> (Vec<Owned>, Vec<ReadError>) {
    read_in_steps(reader, 1 << 20)
}

/// Reads a capture that has to be faultless.
pub(crate) fn read_whole(capture: &[u8]) -> Vec<Owned> {
    let (records, errors) = read_all(Reader::from_bytes(capture.to_vec()).unwrap());
    assert!(errors.is_empty(), "{errors:?}");
    records
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// With a checksum, as the command-line tool packs.
#[cfg(feature = "zstd")]
pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut packer = zstd::Encoder::new(Vec::new(), 1).unwrap();
    packer.include_checksum(true).unwrap();
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// Packs bytes.
pub(crate) type Packer = fn(&[u8]) -> Vec<u8>;

/// The packings that this build reads.
pub(crate) const PACKERS: &[(Compression, Packer)] = &[
    (Compression::Gzip, gzip),
    #[cfg(feature = "zstd")]
    (Compression::Zstd, zstd),
];

/// The bytes in each packing, and behind those as they are.
pub(crate) fn packed_and_plain(bytes: &[u8]) -> Vec<Vec<u8>> {
    PACKERS.iter().map(|(_, pack)| pack(bytes)).chain([bytes.to_vec()]).collect()
}

/// Numbers in a byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) const BOTH: [Self; 2] = [Self::Little, Self::Big];

    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub(crate) fn u64(self, value: u64) -> [u8; 8] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub(crate) fn words(self, values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|&value| self.u32(value)).collect()
    }
}

pub(crate) const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub(crate) const NANOSECONDS: u32 = 0xa1b2_3c4d;
pub(crate) const MODIFIED: u32 = 0xa1b2_cd34;

/// A pcap file under construction.
pub(crate) struct Pcap {
    order: Order,
    magic: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Pcap {
    pub(crate) fn new(order: Order, magic: u32, snaplen: u32, link: u32) -> Self {
        let mut bytes = order.u32(magic).to_vec();
        bytes.extend(order.u16(2));
        bytes.extend(order.u16(4));
        bytes.extend(order.words(&[0, 0, snaplen, link]));
        Self { order, magic, bytes }
    }

    /// Little-endian microseconds of Ethernet.
    pub(crate) fn usual() -> Self {
        Self::new(Order::Little, MICROSECONDS, 65535, 1)
    }

    /// A record that may claim other lengths than its data have.
    pub(crate) fn raw(mut self, seconds: u32, fraction: u32, captured: u32, wire: u32, data: &[u8]) -> Self {
        self.bytes.extend(self.order.words(&[seconds, fraction, captured, wire]));
        if self.magic == MODIFIED {
            self.bytes.extend([7; 8]);
        }
        self.bytes.extend(data);
        self
    }

    pub(crate) fn record(self, seconds: u32, fraction: u32, data: &[u8]) -> Self {
        let length = data.len() as u32;
        self.raw(seconds, fraction, length, length, data)
    }
}

/// A pcapng file under construction.
pub(crate) struct PcapNg {
    order: Order,
    pub(crate) bytes: Vec<u8>,
}

impl PcapNg {
    /// Starts with a section header.
    pub(crate) fn new(order: Order) -> Self {
        Self { order, bytes: Vec::new() }.section(order)
    }

    /// A section header, from which on the order holds.
    pub(crate) fn section(mut self, order: Order) -> Self {
        self.order = order;
        let mut body = order.u32(0x1a2b_3c4d).to_vec();
        body.extend(order.u16(1));
        body.extend(order.u16(0));
        body.extend(order.u64(u64::MAX));
        self.block(0x0a0d_0d0a, &body)
    }

    /// Any block; the body is padded.
    pub(crate) fn block(mut self, kind: u32, body: &[u8]) -> Self {
        let padded = body.len().next_multiple_of(4);
        let total = padded as u32 + 12;
        self.bytes.extend(self.order.words(&[kind, total]));
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len() + padded - body.len(), 0);
        self.bytes.extend(self.order.u32(total));
        self
    }

    pub(crate) fn interface(self, link: u16, snaplen: u32, options: &[u8]) -> Self {
        let mut body = self.order.u16(link).to_vec();
        body.extend([0, 0]);
        body.extend(self.order.u32(snaplen));
        body.extend(options);
        self.block(1, &body)
    }

    /// One option, padded.
    pub(crate) fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = self.order.u16(code).to_vec();
        option.extend(self.order.u16(value.len() as u16));
        option.extend(value);
        option.resize(option.len().next_multiple_of(4), 0);
        option
    }

    /// An interface of Ethernet with a resolution and an offset in seconds.
    pub(crate) fn clocked(self, resolution: u8, offset: i64) -> Self {
        let mut options = self.option(2, b"lo0");
        options.extend(self.option(9, &[resolution]));
        options.extend(self.option(14, &self.order.u64(offset as u64)));
        options.extend(self.option(0, &[]));
        self.interface(1, 0, &options)
    }

    pub(crate) fn enhanced(self, interface: u32, ticks: u64, wire: u32, data: &[u8]) -> Self {
        let length = data.len() as u32;
        let mut body = self.order.words(&[interface, (ticks >> 32) as u32, ticks as u32, length, wire]);
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(self.option(1, b"a comment"));
        self.block(6, &body)
    }

    pub(crate) fn obsolete(self, interface: u16, ticks: u64, wire: u32, data: &[u8]) -> Self {
        let mut body = self.order.u16(interface).to_vec();
        body.extend([0xff, 0xff]);
        body.extend(self.order.words(&[(ticks >> 32) as u32, ticks as u32, data.len() as u32, wire]));
        body.extend(data);
        self.block(2, &body)
    }

    /// Statistics of an interface, with options of eight bytes. A time has its upper half first in either order.
    pub(crate) fn statistics(self, interface: u32, options: &[(u16, u64)]) -> Self {
        let mut body = self.order.words(&[interface, 0, 0]);
        for &(code, value) in options {
            let value = match code {
                2 | 3 => self.order.words(&[(value >> 32) as u32, value as u32]),
                _ => self.order.u64(value).to_vec(),
            };
            body.extend(self.option(code, &value));
        }
        self.block(5, &body)
    }

    pub(crate) fn simple(self, wire: u32, data: &[u8]) -> Self {
        let mut body = self.order.u32(wire).to_vec();
        body.extend(data);
        self.block(3, &body)
    }
}

/// A capture of every kind that has a few records, and how many.
pub(crate) fn samples() -> Vec<(&'static str, Vec<u8>, usize)> {
    let mut samples = Vec::new();
    for (name, order) in [("little", Order::Little), ("big", Order::Big)] {
        let plain =
            Pcap::new(order, MICROSECONDS, 100, 1).record(1, 2, &[3; 14]).record(4, 5, &[]).record(6, 7, &[8; 61]);
        samples.push((name, plain.bytes, 3));
    }
    let modified = Pcap::new(Order::Big, MODIFIED, 100, 1).record(1, 2, &[3; 5]).record(4, 5, &[9; 20]);
    samples.push(("modified", modified.bytes, 2));
    let ng = PcapNg::new(Order::Big)
        .interface(1, 20, &[])
        .clocked(0x8a, -1)
        .enhanced(0, 5_000_000, 60, &[1; 17])
        .block(0xbad, &[2; 11])
        .simple(40, &[3; 20])
        .enhanced(1, 4096, 14, &[4; 14])
        .statistics(1, &[(2, 1), (3, 8192), (4, 3)])
        .section(Order::Little)
        .clocked(9, 3)
        .obsolete(0, 77, 5, &[5; 5]);
    samples.push(("pcapng", ng.bytes, 4));
    samples
}
