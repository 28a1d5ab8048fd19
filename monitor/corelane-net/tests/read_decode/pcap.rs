//! The pcap format: every header shape says the same.

use corelane_net::capture::{LinkType, OpenError, Reader};

use crate::support::{MICROSECONDS, MODIFIED, NANOSECONDS, Order, Owned, Pcap, read_in_steps, read_whole};

#[test]
fn byte_orders_and_resolutions() {
    for order in Order::BOTH {
        for (magic, unit) in [(MICROSECONDS, 1_000), (NANOSECONDS, 1), (MODIFIED, 1_000)] {
            let capture = Pcap::new(order, magic, 65535, 101)
                .raw(1_600_000_000, 999_999, 3, 1500, &[1, 2, 3])
                .record(0, 0, &[])
                .record(u32::MAX, u32::MAX, &[4; 1000]);
            let expected = [
                (1_600_000_000_000_000_000 + 999_999 * unit, 1500, vec![1, 2, 3]),
                (0, 0, vec![]),
                (4_294_967_295_000_000_000 + 4_294_967_295 * unit, 1000, vec![4; 1000]),
            ];
            let expected = expected.map(|(time_ns, wire_len, data)| Owned { time_ns, wire_len, link: 101, data });
            assert_eq!(read_whole(&capture.bytes), expected, "{order:?} {magic:x}");
        }
    }
}

#[test]
fn a_capture_without_records_is_one() {
    assert_eq!(read_whole(&Pcap::usual().bytes), []);
}

#[test]
fn any_number_of_records_a_call() {
    let capture = (0..100).fold(Pcap::usual(), |capture, n| capture.record(n, 0, &vec![n as u8; n as usize]));
    let whole = read_whole(&capture.bytes);
    assert_eq!(whole.len(), 100);
    for max in [1, 2, 3, 33, 99, 100, 101, usize::MAX] {
        let reader = Reader::from_bytes(capture.bytes.clone()).unwrap();
        assert_eq!(read_in_steps(reader, max).0, whole);
    }
}

#[test]
fn the_last_time_is_known() {
    let mut reader = Reader::from_bytes(Pcap::usual().record(5, 6, &[]).record(3, 4, &[]).bytes).unwrap();
    assert_eq!(reader.last_time_ns(), 0);
    reader.read(1, |_| {}).unwrap();
    assert_eq!(reader.last_time_ns(), 5_000_006_000);
    reader.read(1, |_| {}).unwrap();
    assert_eq!(reader.last_time_ns(), 3_000_004_000);
}

#[test]
#[should_panic(expected = "at least one record")]
fn no_records_a_call_would_look_like_the_end() {
    let _ = Reader::from_bytes(Pcap::usual().bytes).unwrap().read(0, |_| {});
}

#[test]
fn records_longer_than_the_snaplen_are_records() {
    for snaplen in [0, 1, 64] {
        let capture = Pcap::new(Order::Little, MICROSECONDS, snaplen, 1).record(1, 0, &[7; 70_000]).record(2, 0, &[8]);
        assert_eq!(read_whole(&capture.bytes).len(), 2);
    }
}

#[test]
fn long_frames_are_believed_where_the_snaplen_allows_them() {
    let frame = vec![1; 5 << 20];
    let capture = Pcap::new(Order::Big, MICROSECONDS, 8 << 20, 1).record(1, 0, &frame).record(2, 0, &[8]);
    assert_eq!(read_whole(&capture.bytes)[0].data, frame);
}

#[test]
fn link_types() {
    for link in [0, 1, 9, 12, 14, 50, 51, 101, 104, 105, 108, 113, 119, 127, 163, 166, 204, 228, 229, 239, 276] {
        assert!(LinkType(link).is_supported());
        for order in Order::BOTH {
            let capture = Pcap::new(order, MICROSECONDS, 0, link).record(1, 0, &[]);
            assert_eq!(read_whole(&capture.bytes)[0].link, link);
        }
    }
    for link in [2, 147, 192, 65535] {
        assert!(!LinkType(link).is_supported());
        let capture = Pcap::new(Order::Little, MICROSECONDS, 0, link).record(1, 0, &[]);
        let error = Reader::from_bytes(capture.bytes).unwrap_err();
        assert!(matches!(error, OpenError::UnknownLink(LinkType(found)) if found == link), "{error}");
        assert!(error.to_string().contains(&link.to_string()));
    }
}

#[test]
fn the_length_of_a_frame_checksum_is_no_part_of_the_link_type() {
    let capture = Pcap::new(Order::Little, MICROSECONDS, 0, 0x2400_0001).record(1, 0, &[]);
    assert_eq!(read_whole(&capture.bytes)[0].link, 1);
}
