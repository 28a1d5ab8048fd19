//! The pcapng format: sections, interfaces, clocks, packets of every kind.

use corelane_net::capture::{LinkType, OpenError, ReadError, Reader, SkipReason, Warning};
use corelane_net::decode::{Decoded, decode};

use crate::support::{Order, Owned, PcapNg, gzip, read_all, read_whole};

fn owned(time_ns: u64, wire_len: u32, link: u32, data: &[u8]) -> Owned {
    Owned { time_ns, wire_len, link, data: data.to_vec() }
}

#[test]
fn packets_of_every_kind() {
    for order in Order::BOTH {
        let capture = PcapNg::new(order)
            .interface(1, 10, &[])
            .enhanced(0, 1_600_000_000_000_001, 1500, &[1; 5])
            .simple(7, &[2; 7])
            .simple(900, &[3; 10])
            .obsolete(0, 0x0001_0000_0000_0002, 6, &[4; 6]);
        let expected = [
            owned(1_600_000_000_000_001_000, 1500, 1, &[1; 5]),
            owned(1_600_000_000_000_001_000, 7, 1, &[2; 7]),
            owned(1_600_000_000_000_001_000, 900, 1, &[3; 10]),
            owned(0x0001_0000_0000_0002 * 1000, 6, 1, &[4; 6]),
        ];
        assert_eq!(read_whole(&capture.bytes), expected, "{order:?}");
    }
}

#[test]
fn a_simple_packet_is_whole_where_the_interface_sets_no_limit() {
    let capture = PcapNg::new(Order::Little).interface(1, 0, &[]).simple(1000, &[3; 1000]);
    assert_eq!(read_whole(&capture.bytes)[0].data.len(), 1000);
}

#[test]
fn the_first_packet_without_a_time_takes_the_last_files_last() {
    let capture = PcapNg::new(Order::Little).interface(1, 0, &[]).simple(1, &[3]);
    assert_eq!(read_whole(&capture.bytes)[0].time_ns, 0);
    let mut reader = Reader::from_bytes(capture.bytes).unwrap();
    reader.set_last_time_ns(123);
    reader.read(1, |record| assert_eq!(record.time_ns, 123)).unwrap();
    assert_eq!(reader.last_time_ns(), 123);
}

#[test]
fn clocks() {
    for order in Order::BOTH {
        for (resolution, offset, ticks, time_ns) in [
            (0, 0, 5, 5_000_000_000),
            (3, 0, 5, 5_000_000),
            (6, 1, 5, 1_000_005_000),
            (9, 0, 1_600_000_000_123_456_789, 1_600_000_000_123_456_789),
            (9, -1, 1_000_000_005, 5),
            (12, 0, 5_999, 5),
            (0x80 | 20, 0, 3 << 19, 1_500_000_000),
            (0x80, 2, 5, 7_000_000_000),
            (0, 0, u64::MAX, u64::MAX),
            (6, -10, 5, 0),
        ] {
            let capture = PcapNg::new(order).clocked(resolution, offset).enhanced(0, ticks, 1, &[1]);
            assert_eq!(read_whole(&capture.bytes)[0].time_ns, time_ns, "{order:?} {resolution} {offset} {ticks}");
        }
    }
}

#[test]
fn sections_of_both_orders_describe_their_own_interfaces() {
    let capture = PcapNg::new(Order::Big)
        .clocked(9, 0)
        .interface(101, 0, &[])
        .enhanced(1, 5, 1, &[1])
        .section(Order::Little)
        .interface(113, 0, &[])
        .enhanced(0, 6, 1, &[2])
        .section(Order::Big)
        .clocked(3, 0)
        .enhanced(0, 7, 1, &[3]);
    let expected = [owned(5_000, 1, 101, &[1]), owned(6_000, 1, 113, &[2]), owned(7_000_000, 1, 1, &[3])];
    assert_eq!(read_whole(&capture.bytes), expected);
}

#[test]
fn other_blocks_and_odd_options_are_no_matter() {
    let options = |code: u16, len: u16, value: &[u8]| {
        let mut option = [Order::Little.u16(code), Order::Little.u16(len)].concat();
        option.extend(value);
        option
    };
    let capture = PcapNg::new(Order::Little)
        .block(5, &[])
        .interface(1, 0, &options(9, 500, &[9, 0, 0, 0]))
        .interface(1, 0, &options(9, 2, &[9, 9, 0, 0]))
        .interface(1, 0, &[options(0, 0, &[]), options(9, 1, &[9, 0, 0, 0])].concat())
        .interface(1, 0, &[9])
        .block(0x8000_0bad, &[0xff; 4000])
        .enhanced(0, 1, 1, &[0])
        .enhanced(1, 1, 1, &[0])
        .block(4, &[1; 33])
        .enhanced(2, 1, 1, &[0])
        .enhanced(3, 1, 1, &[0])
        .block(0, &[]);
    assert!(read_whole(&capture.bytes).iter().all(|record| record.time_ns == 1_000));
    assert_eq!(read_whole(&capture.bytes).len(), 4);
}

#[test]
fn a_packet_of_no_interface_is_skipped_and_told_once_a_section() {
    for order in Order::BOTH {
        let capture = PcapNg::new(order)
            .enhanced(0, 1, 1, &[1])
            .simple(1, &[1])
            .interface(1, 0, &[])
            .enhanced(0, 2, 1, &[2])
            .enhanced(1, 3, 1, &[3])
            .section(order)
            .interface(1, 0, &[])
            .enhanced(0, 4, 1, &[4])
            .obsolete(9, 5, 1, &[5])
            .enhanced(0, 6, 1, &[6]);
        let (records, errors) = read_all(Reader::from_bytes(capture.bytes.clone()).unwrap());
        assert_eq!(records.iter().map(|record| record.data[0]).collect::<Vec<_>>(), [2, 4, 6]);
        let told: Vec<_> = errors
            .iter()
            .map(|error| match error {
                ReadError::Skipped { place, reason: SkipReason::NoInterface(id) } => (place.record, *id),
                error => panic!("{error}"),
            })
            .collect();
        assert_eq!(told, [(1, 0), (6, 9)]);
        assert!(errors.iter().all(ReadError::goes_on));
        let ReadError::Skipped { place, .. } = errors[0] else { unreachable!() };
        assert_eq!(place.offset, 28);
        let mut reader = Reader::from_bytes(capture.bytes).unwrap();
        while !matches!(reader.read(10, |_| {}), Ok(0)) {}
        assert_eq!(reader.skipped(), 4);
    }
}

#[test]
fn skipped_packets_count_in_the_place_of_a_later_error() {
    let mut bytes = PcapNg::new(Order::Little)
        .interface(1, 0, &[])
        .enhanced(0, 1, 1, &[1])
        .enhanced(1, 2, 1, &[2])
        .enhanced(0, 3, 1, &[3])
        .enhanced(0, 4, 1, &[4])
        .bytes;
    bytes.pop();
    let (_, errors) = read_all(Reader::from_bytes(bytes).unwrap());
    assert_eq!(errors.iter().map(|error| error.place().record).collect::<Vec<_>>(), [2, 4]);
}

#[test]
fn a_packet_that_overruns_its_block_is_skipped() {
    let overrun = Order::Little.words(&[0, 0, 0, 1000, 1000, 0]);
    for (kind, body) in [(6, &overrun[..]), (6, &overrun[..16]), (2, &overrun), (2, &[]), (3, &[0xff; 8]), (3, &[])] {
        let capture = PcapNg::new(Order::Little).interface(1, 0, &[]).block(kind, body).enhanced(0, 1, 1, &[7]);
        let (records, errors) = read_all(Reader::from_bytes(capture.bytes).unwrap());
        assert_eq!(records.len(), 1, "{kind}");
        let [ReadError::Skipped { reason: SkipReason::Overrun, .. }] = errors[..] else { panic!("{errors:?}") };
    }
}

#[test]
fn frames_of_an_unknown_link_type_count_as_undecoded() {
    let capture = PcapNg::new(Order::Little)
        .interface(147, 0, &[])
        .interface(1, 0, &[])
        .enhanced(0, 1, 40, &[0x45; 40])
        .enhanced(1, 2, 1, &[1])
        .section(Order::Big)
        .interface(147, 0, &[]);
    for bytes in [capture.bytes.clone(), gzip(&capture.bytes)] {
        let mut reader = Reader::from_bytes(bytes).unwrap();
        let mut found = Vec::new();
        while reader
            .read(9, |record| {
                found.push((record.link, decode(record.link, record.data)));
            })
            .unwrap()
            > 0
        {}
        assert_eq!(found, [(LinkType(147), Decoded::Undecoded), (LinkType(1), Decoded::Undecoded)]);
        let warnings = reader.take_warnings();
        assert_eq!(warnings, [Warning::UnknownLink { interface: 0, link: LinkType(147) }]);
        assert!(warnings[0].to_string().contains("147"));
        assert!(reader.take_warnings().is_empty());
    }
}

#[test]
fn unknown_link_types_alone_cannot_be_read() {
    let capture = PcapNg::new(Order::Little).interface(147, 0, &[]).interface(2, 0, &[]).enhanced(0, 1, 1, &[1]);
    for bytes in [capture.bytes.clone(), gzip(&capture.bytes)] {
        assert!(matches!(Reader::from_bytes(bytes).unwrap_err(), OpenError::UnknownLink(LinkType(147))));
    }
    let without_packets = PcapNg::new(Order::Little).interface(147, 0, &[]);
    assert!(matches!(Reader::from_bytes(gzip(&without_packets.bytes)).unwrap_err(), OpenError::UnknownLink(_)));
}

#[test]
fn a_later_section_may_be_readable() {
    let capture = PcapNg::new(Order::Little)
        .interface(147, 0, &[])
        .enhanced(0, 1, 1, &[1])
        .section(Order::Big)
        .interface(1, 0, &[])
        .enhanced(0, 1, 1, &[1]);
    assert_eq!(read_whole(&capture.bytes).len(), 2);
}

#[test]
fn a_capture_without_packets_is_one() {
    assert_eq!(read_whole(&PcapNg::new(Order::Big).bytes), []);
    assert_eq!(read_whole(&PcapNg::new(Order::Big).interface(1, 0, &[]).bytes), []);
}

#[test]
fn a_first_section_header_has_to_be_right() {
    let good = PcapNg::new(Order::Little).bytes;
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        Reader::from_bytes(bytes).unwrap_err()
    };
    assert!(matches!(with(8, 0), OpenError::BadHeader(_)), "byte-order magic");
    assert!(matches!(with(12, 2), OpenError::BadHeader(_)), "version");
    assert!(matches!(with(4, 8), OpenError::BadHeader(_)), "length");
    assert!(matches!(with(7, 0xff), OpenError::BadHeader(_)), "absurd length");
    assert!(matches!(with(24, 8), OpenError::BadHeader(_)), "second length");
    for len in 4..good.len() {
        let error = Reader::from_bytes(good[..len].to_vec()).unwrap_err();
        assert!(matches!(error, OpenError::CutHeader { have, .. } if have == len), "{error}");
    }
}
