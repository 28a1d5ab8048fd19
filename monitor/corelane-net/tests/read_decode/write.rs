//! The writer of pcapng: read back by the reader, by `pcap-parser` and by other programs; full disks; the end of a
//! capture in damaged statistics.

use std::io::{self, Write};
use std::process::Command;

use corelane_net::capture::write::{Interface, PcapngWriter};
use corelane_net::capture::{LinkType, Reader};
use pcap_parser::{Block, PcapBlockOwned};
use proptest::prelude::*;

use crate::support::{Order, Owned, PcapNg, is_installed, packed_and_plain, read_all, read_whole};

const LAST: u64 = 1_700_000_009_000_000_009;

fn memory(snaplen: u32) -> PcapngWriter<Vec<u8>> {
    PcapngWriter::new(Vec::new(), LinkType::ETHERNET, snaplen, Some("veth0")).unwrap()
}

fn owned(time_ns: u64, wire_len: u32, link: u32, data: &[u8]) -> Owned {
    Owned { time_ns, wire_len, link, data: data.to_vec() }
}

/// The end of a capture, read in every way.
fn end_ns(capture: &[u8]) -> Option<u64> {
    let end = |bytes: Vec<u8>| {
        let mut reader = Reader::from_bytes(bytes).unwrap();
        while !matches!(reader.read(3, |_| {}), Ok(0)) {}
        reader.end_ns()
    };
    let ends: Vec<_> = packed_and_plain(capture).into_iter().map(end).collect();
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    ends[0]
}

#[test]
fn the_layout_is_that_of_pcapng_byte_for_byte() {
    let mut writer = PcapngWriter::new(Vec::new(), LinkType(0x0102), 0x0304_0506, Some("eth10")).unwrap();
    writer.write(writer.first_interface(), 0x1122_3344_5566_7788, 0x0a0b, &[1, 2, 3, 4, 5]).unwrap();
    writer.finish(Some(0x2122_3344_5566_7788), Some(7), Some(0x0100_0000_0000_0000)).unwrap();
    #[rustfmt::skip]
    let expected = [
        0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0,
        1, 0, 0, 0, 44, 0, 0, 0, 2, 1, 0, 0, 6, 5, 4, 3,
        2, 0, 5, 0, b'e', b't', b'h', b'1', b'0', 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0,
        6, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55,
        5, 0, 0, 0, 0x0b, 0x0a, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0, 40, 0, 0, 0,
        5, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0x44, 0x33, 0x22, 0x21, 0x88, 0x77, 0x66, 0x55,
        3, 0, 8, 0, 0x44, 0x33, 0x22, 0x21, 0x88, 0x77, 0x66, 0x55,
        4, 0, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0, 5, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 64, 0, 0, 0,
    ];
    assert_eq!(writer.into_inner(), expected);
}

#[test]
fn a_comment_comes_back_from_the_first_section() {
    let write = |comment: &str| {
        let mut writer = PcapngWriter::commented(Vec::new(), LinkType::ETHERNET, 0, None, comment).unwrap();
        assert!(writer.header().len() < 1_000);
        writer.write(writer.first_interface(), 1, 60, &[0; 60]).unwrap();
        writer.finish(None, None, None).unwrap();
        writer.into_inner()
    };
    let [none, one, other] = ["", "seed ä 7", "seed 8"].map(write);
    assert_eq!(none, {
        let mut writer = PcapngWriter::new(Vec::new(), LinkType::ETHERNET, 0, None).unwrap();
        writer.write(writer.first_interface(), 1, 60, &[0; 60]).unwrap();
        writer.finish(None, None, None).unwrap();
        writer.into_inner()
    });
    for (capture, comment, records) in [
        (none.clone(), None, 1),
        (one.clone(), Some("seed ä 7"), 1),
        ([one, other.clone()].concat(), Some("seed ä 7"), 2),
        ([none, other].concat(), None, 2),
    ] {
        for bytes in packed_and_plain(&capture) {
            let mut reader = Reader::from_bytes(bytes).unwrap();
            assert_eq!(reader.comment(), comment, "before a packet is read");
            let mut found = 0;
            while reader.read(10, |_| found += 1).unwrap() > 0 {}
            assert_eq!((found, reader.comment()), (records, comment));
        }
    }
    let refused = PcapngWriter::commented(Vec::new(), LinkType::ETHERNET, 0, None, &"x".repeat(65_536)).unwrap_err();
    assert!(refused.to_string().contains("comment"), "{refused}");
}

#[test]
fn packets_and_the_end_come_back() {
    let mut writer = memory(100);
    let ethernet = writer.first_interface();
    let raw = writer.interface(LinkType::RAW, 0, None).unwrap();
    assert_eq!(writer.interface(LinkType::RAW, 0, None).unwrap(), raw);
    assert_eq!(writer.interface(LinkType::ETHERNET, 100, Some("veth0")).unwrap(), ethernet);
    assert_ne!(writer.interface(LinkType::ETHERNET, 100, None).unwrap(), ethernet);
    let long: Vec<u8> = (0..(1 << 20) + 3).map(|at| at as u8).collect();
    writer.write(ethernet, LAST, 1500, &long).unwrap();
    writer.write(raw, 0, u32::MAX, &long).unwrap();
    let late = writer.interface(LinkType::LINUX_SLL2, 0, Some("any")).unwrap();
    writer.write(late, u64::MAX, 0, &[]).unwrap();
    writer.write(raw, 5, 5, &[5; 5]).unwrap();
    writer.finish(Some(LAST + 1), None, None).unwrap();
    assert_eq!((writer.waiting(), writer.torn()), (0, 0));
    let capture = writer.into_inner();
    let expected = [
        owned(LAST, 1500, 1, &long[..100]),
        owned(0, u32::MAX, 101, &long),
        owned(u64::MAX, 0, 276, &[]),
        owned(5, 5, 101, &[5; 5]),
    ];
    assert_eq!(read_whole(&capture), expected);
    assert_eq!(end_ns(&capture), Some(LAST + 1));
}

/// Blocks that a writer goes on with in another file mean the same behind its header.
#[test]
fn a_further_file_begins_with_the_header() {
    let mut writer = memory(100);
    let raw = writer.interface(LinkType::RAW, 0, None).unwrap();
    writer.write(raw, LAST, 4, &[4; 4]).unwrap();
    writer.flush().unwrap();
    let mut further = writer.header();
    let first = writer.get_ref().len();
    writer.write(raw, LAST, 5, &[5; 5]).unwrap();
    let ethernet = writer.first_interface();
    writer.write(ethernet, 6, 600, &[6; 200]).unwrap();
    writer.finish(Some(LAST + 1), None, None).unwrap();
    further.extend(&writer.into_inner()[first..]);
    assert_eq!(read_whole(&further), [owned(LAST, 5, 101, &[5; 5]), owned(6, 600, 1, &[6; 100])]);
    assert_eq!(end_ns(&further), Some(LAST + 1));
    // What waits is not in it.
    let waiting = memory(100);
    assert_eq!(waiting.header().len(), waiting.waiting());
}

#[test]
fn a_capture_without_packets_has_an_end_all_the_same() {
    let mut writer = memory(0);
    writer.finish(Some(LAST), None, None).unwrap();
    let capture = writer.into_inner();
    assert_eq!(read_whole(&capture), []);
    assert_eq!(end_ns(&capture), Some(LAST));
    let mut writer = memory(0);
    writer.finish(None, Some(1), Some(2)).unwrap();
    assert_eq!(end_ns(&writer.into_inner()), None);
}

#[test]
fn what_the_format_cannot_say_is_refused() {
    let kind = |error: io::Error| error.kind();
    let refused = PcapngWriter::new(Vec::new(), LinkType(65_536), 0, None).unwrap_err();
    assert_eq!(kind(refused), io::ErrorKind::InvalidInput);
    let mut writer = memory(0);
    let first = writer.first_interface();
    let name = "n".repeat(65_536);
    assert_eq!(writer.interface(LinkType::RAW, 0, Some(&name)).map_err(kind), Err(io::ErrorKind::InvalidInput));
    writer.interface(LinkType::RAW, 0, Some(&name[1..])).unwrap();
    // The longest that the reader accepts, and a byte more.
    let data = vec![7; (16 << 20) - 32 + 1];
    assert_eq!(writer.write(first, 1, 1, &data).map_err(kind), Err(io::ErrorKind::InvalidInput));
    writer.write(first, 1, 1, &data[1..]).unwrap();
    writer.finish(None, None, None).unwrap();
    assert_eq!(read_whole(&writer.into_inner())[0].data.len(), data.len() - 1);
}

#[test]
fn pcap_parser_reads_the_statistics() {
    let mut writer = memory(0);
    writer.write(writer.first_interface(), LAST, 60, &[3; 42]).unwrap();
    writer.finish(Some(LAST + 1), Some(500), Some(20)).unwrap();
    let capture = writer.into_inner();
    let mut reader = pcap_parser::create_reader(1 << 16, io::Cursor::new(&capture[..])).unwrap();
    let mut seen = Vec::new();
    while let Ok((used, block)) = reader.next() {
        match block {
            PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                assert_eq!((block.linktype.0, block.if_tsresol, block.if_tsoffset), (1, 9, 0));
                assert_eq!(block.if_name().unwrap().unwrap(), "veth0");
            }
            PcapBlockOwned::NG(Block::InterfaceStatistics(block)) => {
                seen.extend(block.options.iter().map(|option| (option.code.0, option.value[..].to_vec())));
            }
            _ => {}
        }
        reader.consume(used);
    }
    let end = [((LAST + 1) >> 32) as u32, (LAST + 1) as u32].map(u32::to_le_bytes).concat();
    let count = |count: u64| count.to_le_bytes().to_vec();
    assert_eq!(seen, [(3, end), (4, count(500)), (5, count(20)), (0, vec![])]);
}

#[test]
fn other_programs_read_the_file() {
    let mut writer = memory(0);
    let first = writer.first_interface();
    for second in 0..3 {
        writer.write(first, LAST + second * 1_000_000_000, 60, &[second as u8; 60]).unwrap();
    }
    writer.write(first, LAST, 250_000, &vec![1; 200_000]).unwrap();
    writer.finish(Some(LAST + 5), Some(4), Some(1)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tee.pcapng");
    std::fs::write(&path, writer.into_inner()).unwrap();
    let output = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).arg("-r").arg(&path).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    if is_installed("tcpdump") {
        let lines = output("tcpdump", &["-tt", "-n", "-q", "--nano"]);
        let times: Vec<_> = lines.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(times.iter().filter(|time| time.starts_with("17000000")).count(), 4, "{lines}");
        assert_eq!(times[0], "1700000009.000000009");
    }
    if is_installed("tshark") {
        let fields = ["frame.time_epoch", "frame.len", "frame.cap_len", "frame.interface_name"];
        let fields: Vec<_> = fields.iter().flat_map(|field| ["-e", field]).collect();
        let lines = output("tshark", &[&["-n", "-T", "fields"][..], &fields].concat());
        let expected = "1700000009.000000009\t60\t60\tveth0\n1700000010.000000009\t60\t60\tveth0\n\
                        1700000011.000000009\t60\t60\tveth0\n1700000009.000000009\t250000\t200000\tveth0\n";
        assert_eq!(lines, expected);
    }
    if is_installed("capinfos") {
        let facts = Command::new("capinfos").arg(&path).output().unwrap();
        let facts = String::from_utf8(facts.stdout).unwrap();
        for fact in ["Time precision = nanoseconds", "Number of stat entries = 1", "Name = veth0"] {
            assert!(facts.contains(fact), "{fact}: {facts}");
        }
    }
}

/// A disk with a little room, in which each write may go a part of the way.
struct Disk {
    bytes: Vec<u8>,
    room: usize,
    /// The most bytes that a write takes.
    step: usize,
    interrupt: bool,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.interrupt = !self.interrupt;
        if self.interrupt {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let taken = bytes.len().min(self.room).min(self.step);
        if taken == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= taken;
        self.bytes.extend(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What happens to a writer.
#[derive(Clone, Debug)]
enum Act {
    Write(usize),
    Flush,
    /// The disk has so much more room.
    Free(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..3_usize, 0..60_000_usize).prop_map(|(kind, length)| Act::Write([length, length % 100, 300_000][kind])),
        1 => Just(Act::Flush),
        2 => (0..400_000_usize).prop_map(Act::Free),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_full_disk_loses_whole_packets_alone(
        acts in prop::collection::vec(act(), 1..60),
        room in 0..2000_usize,
        step in 1..100_000_usize,
    ) {
        let disk = Disk { bytes: Vec::new(), room, step, interrupt: false };
        let mut writer = PcapngWriter::new(disk, LinkType::ETHERNET, 0, None).unwrap();
        let first = writer.first_interface();
        let mut kept = Vec::new();
        for (time, act) in acts.iter().enumerate() {
            match *act {
                Act::Write(length) => match writer.write(first, time as u64, 9, &vec![time as u8; length]) {
                    Ok(()) => kept.push(owned(time as u64, 9, 1, &vec![time as u8; length])),
                    Err(error) => prop_assert_eq!(error.kind(), io::ErrorKind::StorageFull),
                },
                Act::Flush => if let Err(error) = writer.flush() {
                    prop_assert_eq!(error.kind(), io::ErrorKind::StorageFull);
                },
                Act::Free(room) => writer.get_mut().room += room,
            }
            // Bounded: one buffer, and the one packet that it did not hold.
            prop_assert!(writer.waiting() <= (256 << 10) + 300_032 + 60, "{}", writer.waiting());
            // What is there, less the torn block, is a capture; all of it is one with at most a cut at its end.
            let written = &writer.get_ref().bytes;
            let whole = &written[..written.len() - writer.torn()];
            if !whole.is_empty() {
                let records = read_whole(whole);
                prop_assert_eq!(&records[..], &kept[..records.len()]);
                let (found, errors) = read_all(Reader::from_bytes(written.clone()).unwrap());
                prop_assert_eq!(found.len(), records.len());
                prop_assert_eq!(errors.len(), usize::from(writer.torn() > 0));
            }
        }
        let ended = writer.finish(Some(77), None, None);
        writer.get_mut().room = usize::MAX;
        if ended.is_err() {
            writer.flush().unwrap();
        }
        let capture = writer.into_inner().bytes;
        prop_assert_eq!(read_whole(&capture), kept);
        prop_assert_eq!(end_ns(&capture), Some(77));
    }

    #[test]
    fn any_packets_come_back(
        packets in prop::collection::vec(
            (any::<u64>(), any::<u32>(), 0..4_u32, prop::collection::vec(any::<u8>(), 0..300)),
            0..40,
        ),
        end in any::<Option<u64>>(),
    ) {
        let mut writer = memory(0);
        let interfaces: Vec<Interface> =
            [1, 101, 113, 276].map(|link| writer.interface(LinkType(link), 200, None).unwrap()).to_vec();
        for (time, wire, interface, data) in &packets {
            writer.write(interfaces[*interface as usize], *time, *wire, data).unwrap();
        }
        writer.finish(end, None, None).unwrap();
        let capture = writer.into_inner();
        let expected: Vec<_> = packets
            .iter()
            .map(|(time, wire, interface, data)| {
                owned(*time, *wire, [1, 101, 113, 276][*interface as usize], &data[..data.len().min(200)])
            })
            .collect();
        prop_assert_eq!(read_whole(&capture), expected);
        prop_assert_eq!(end_ns(&capture), end);
    }

    #[test]
    fn any_statistics_are_no_panic(
        body in prop::collection::vec(any::<u8>(), 0..60),
        resolution in any::<u8>(),
        offset in any::<i64>(),
        ticks in any::<u64>(),
        big in any::<bool>(),
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let capture = PcapNg::new(order).clocked(resolution, offset).block(5, &body).statistics(0, &[(3, ticks)]);
        prop_assert!(end_ns(&capture.bytes).is_some());
    }
}

#[test]
fn what_is_torn_is_less_than_a_block() {
    let disk = Disk { bytes: Vec::new(), room: 0, step: 1, interrupt: false };
    let mut writer = PcapngWriter::new(disk, LinkType::RAW, 0, None).unwrap();
    writer.write(writer.first_interface(), 1, 1, &[]).unwrap();
    // A section header, an interface without a name, a packet without bytes.
    for (block, length) in [28, 32, 32].into_iter().enumerate() {
        for written in 1..=length {
            writer.get_mut().room = 1;
            // The last byte of all is the only one after which nothing is left to write.
            assert_eq!(writer.flush().is_ok(), (block, written) == (2, length));
            assert_eq!(writer.torn(), written % length, "{block}");
        }
    }
}

#[test]
fn a_writer_that_takes_nothing_is_an_error() {
    struct Nothing;
    impl Write for Nothing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Ok(0)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut writer = PcapngWriter::new(Nothing, LinkType::RAW, 0, None).unwrap();
    assert_eq!(writer.flush().unwrap_err().kind(), io::ErrorKind::WriteZero);
}

#[test]
fn the_end_is_the_latest_and_in_the_units_of_its_interface() {
    for order in Order::BOTH {
        for (resolution, offset, ticks, time_ns) in [
            (0, 0, 5, 5_000_000_000),
            (6, 1, 5, 1_000_005_000),
            (9, 0, LAST, LAST),
            (9, -1, 1_000_000_005, 5),
            (12, 0, 5_999, 5),
            (0x80 | 20, 0, 3 << 19, 1_500_000_000),
            (0, 0, u64::MAX, u64::MAX),
            (6, i64::MAX, 0, u64::MAX),
            (6, -10, 5, 0),
        ] {
            let capture = PcapNg::new(order).clocked(resolution, offset).statistics(0, &[(3, ticks)]);
            assert_eq!(end_ns(&capture.bytes), Some(time_ns), "{order:?} {resolution} {offset} {ticks}");
        }
    }
    let capture = PcapNg::new(Order::Big)
        .interface(1, 0, &[])
        .statistics(0, &[(2, 9), (3, 70), (4, 99)])
        .enhanced(0, 5, 1, &[1])
        .section(Order::Little)
        .clocked(9, 0)
        .statistics(0, &[(3, 69_999)])
        .statistics(0, &[]);
    assert_eq!(end_ns(&capture.bytes), Some(70_000));
    assert_eq!(read_whole(&capture.bytes).len(), 1);
    let later = capture.statistics(0, &[(3, 70_001)]);
    assert_eq!(end_ns(&later.bytes), Some(70_001));
}

#[test]
fn the_end_is_known_once_the_end_is_read() {
    let capture = PcapNg::new(Order::Little).interface(1, 0, &[]).enhanced(0, 5, 1, &[1]).statistics(0, &[(3, 70)]);
    let mut reader = Reader::from_bytes(capture.bytes).unwrap();
    assert_eq!(reader.read(1, |_| {}).unwrap(), 1);
    assert_eq!(reader.end_ns(), None);
    assert_eq!(reader.read(1, |_| {}).unwrap(), 0);
    assert_eq!(reader.end_ns(), Some(70_000));
}

#[test]
fn damaged_statistics_say_nothing_and_cost_nothing() {
    let good = PcapNg::new(Order::Little).clocked(9, 0);
    let (option, end) = (good.option(3, &[0, 0, 0, 0, 9, 0, 0, 0]), good.option(0, &[]));
    let header = [0; 12];
    for (body, expected) in [
        ([&header[..], &option].concat(), Some(9)),
        ([&header[..], &option, &end].concat(), Some(9)),
        // The end is behind the end of the options, or cut, or of a wrong length.
        ([&header[..], &end, &option].concat(), None),
        ([&header[..], &option[..8]].concat(), None),
        ([&header[..], &good.option(3, &[9; 4])].concat(), None),
        ([&header[..], &good.option(3, &[9; 12])].concat(), None),
        ([&header[..], &good.option(4, &[9; 5]), &option].concat(), Some(9)),
        ([&header[..], &[4, 0, 0xff, 0xff], &option].concat(), None),
        // No such interface; and too short.
        ([&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &option].concat(), None),
        ([&[0xff; 12][..], &option].concat(), None),
        (header[..8].to_vec(), None),
        (vec![], None),
    ] {
        let capture = PcapNg::new(Order::Little).clocked(9, 0).block(5, &body).enhanced(0, 1, 1, &[7]);
        assert_eq!(end_ns(&capture.bytes), expected, "{body:02x?}");
        assert_eq!(read_whole(&capture.bytes).len(), 1);
    }
    // A file that ends inside its statistics is cut, and they are not believed.
    let whole = PcapNg::new(Order::Little).clocked(9, 0).enhanced(0, 1, 1, &[7]).bytes;
    let capture = PcapNg::new(Order::Little).clocked(9, 0).enhanced(0, 1, 1, &[7]).statistics(0, &[(3, 9)]).bytes;
    for length in whole.len() + 1..capture.len() {
        let (records, errors) = read_all(Reader::from_bytes(capture[..length].to_vec()).unwrap());
        assert_eq!((records.len(), errors.len()), (1, 1));
        assert_eq!(end_ns(&capture[..length]), None, "{length}");
    }
}
