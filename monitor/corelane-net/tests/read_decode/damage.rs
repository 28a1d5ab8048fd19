//! Cut and damaged captures: what was whole is handed over, the error says where, nothing panics or hangs.

use corelane_net::capture::{OpenError, Part, ReadError, Reader};
use proptest::prelude::*;

use crate::support::{Order, Owned, PACKERS, Pcap, PcapNg, gzip, read_all, read_in_steps, read_whole, samples};

#[test]
fn a_cut_header_and_cut_data_say_where() {
    let capture = Pcap::usual().record(1, 0, &[1; 10]).record(2, 0, &[2; 20]).bytes;
    assert_eq!(capture.len(), 86);
    for (len, part, needed, have) in [(51, Part::Header, 16, 1), (65, Part::Header, 16, 15), (66, Part::Data, 36, 16)] {
        let (records, errors) = read_all(Reader::from_bytes(capture[..len].to_vec()).unwrap());
        assert_eq!(records.len(), 1);
        let [ReadError::Cut { place, part: found, needed: of, have: bytes }] = &errors[..] else {
            panic!("{errors:?}")
        };
        assert_eq!((place.record, place.offset), (2, 50));
        assert_eq!((*found, *of, *bytes), (part, needed, have));
        assert!(!errors[0].goes_on());
    }
    let (_, errors) = read_all(Reader::from_bytes(capture[..85].to_vec()).unwrap());
    assert_eq!(
        errors[0].to_string(),
        "record 2 at byte 50: the input ends inside the data (35 of 36 bytes with the header); \
         if it was longer, copy it again"
    );
}

/// Reads what can be opened. A cut or damaged capture is read the same way from memory and through a buffer.
fn read_both_ways(bytes: &[u8]) -> Option<(Vec<Owned>, Vec<String>)> {
    let read = |bytes: Vec<u8>, max| match Reader::from_bytes(bytes) {
        Ok(reader) => {
            let (records, errors) = read_in_steps(reader, max);
            Ok((records, errors.iter().map(ToString::to_string).collect::<Vec<_>>()))
        }
        Err(error) => Err(error),
    };
    let whole = read(bytes.to_vec(), usize::MAX);
    let streamed = read(gzip(bytes), 2);
    match (whole, streamed) {
        (Ok(whole), Ok(streamed)) => {
            assert_eq!(whole, streamed);
            Some(whole)
        }
        // A stream cannot look beyond the first packet for a link type that can be decoded.
        (Ok(_), Err(OpenError::UnknownLink(_))) => None,
        (Err(whole), Err(streamed)) => {
            assert_eq!(whole.to_string(), streamed.to_string());
            None
        }
        (whole, streamed) => panic!("{whole:?} but {streamed:?}"),
    }
}

#[test]
fn cut_at_every_byte() {
    for (name, capture, count) in samples() {
        let whole = read_whole(&capture);
        assert_eq!(whole.len(), count, "{name}");
        let mut most = 0;
        for len in 0..capture.len() {
            let Some((records, errors)) = read_both_ways(&capture[..len]) else {
                continue;
            };
            assert_eq!(records, whole[..records.len()], "{name} cut to {len}");
            assert!(records.len() >= most && errors.len() <= 1, "{name} cut to {len}");
            most = records.len();
            let (again, _) = read_all(Reader::from_bytes(capture[..len].to_vec()).unwrap());
            assert_eq!(again, records);
        }
        assert_eq!(most, count - 1, "{name}");
    }
}

#[test]
fn a_cut_capture_says_so_unless_the_cut_is_between_records() {
    let capture = Pcap::usual().record(1, 0, &[1; 10]).record(2, 0, &[2; 20]).bytes;
    for len in 24..capture.len() {
        let (_, errors) = read_all(Reader::from_bytes(capture[..len].to_vec()).unwrap());
        assert_eq!(errors.is_empty(), [24, 50, 86].contains(&len), "{len}");
    }
}

#[test]
fn packed_captures_cut_at_every_byte() {
    for (name, capture, count) in samples() {
        for (_, pack) in PACKERS {
            let packed = pack(&capture);
            for len in 0..packed.len() {
                let Ok(reader) = Reader::from_bytes(packed[..len].to_vec()) else {
                    continue;
                };
                let (records, errors) = read_all(reader);
                assert!(records.len() <= count);
                // The data may be whole where only the packing's own end is cut.
                assert_eq!(errors.len(), 1, "{name} cut to {len}: {errors:?}");
                assert!(matches!(errors[0], ReadError::Input { .. }), "{name} cut to {len}: {errors:?}");
            }
        }
    }
}

#[test]
fn absurd_lengths_end_the_capture_and_take_no_memory() {
    for order in Order::BOTH {
        for length in [(1 << 20) + 1, 1 << 28, (1 << 28) + 1, 0x7fff_ffff, 0x8000_0000, u32::MAX - 15, u32::MAX] {
            let capture = Pcap::new(order, crate::support::MICROSECONDS, 65535, 1)
                .record(1, 0, &[1; 10])
                .raw(2, 0, length, length, &[2; 100])
                .record(3, 0, &[3; 10]);
            let (records, errors) = read_all(Reader::from_bytes(capture.bytes.clone()).unwrap());
            assert_eq!(records.len(), 1);
            let [ReadError::TooLong { place, length: found, .. }] = &errors[..] else { panic!("{errors:?}") };
            assert_eq!((place.record, place.offset, *found), (2, 50, length));
            assert!(read_both_ways(&capture.bytes).is_some());
        }
    }
}

#[test]
fn a_long_length_is_cut_where_the_snaplen_allows_it() {
    for (length, what) in [(1 << 24, "ends inside the data"), ((1 << 24) + 1, "above the limit of 16777216")] {
        let capture = Pcap::new(Order::Little, crate::support::MICROSECONDS, u32::MAX, 1);
        let (_, errors) = read_both_ways(&capture.raw(2, 0, length, 0, &[2; 100]).bytes).unwrap();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].contains(what) && errors[0].starts_with("record 1 at byte 24: "), "{errors:?}");
    }
}

#[test]
fn impossible_blocks_end_the_capture() {
    let good = PcapNg::new(Order::Little).interface(1, 0, &[]).enhanced(0, 1, 1, &[7]).bytes;
    for (length, trailer) in [(0, 0), (4, 4), (8, 8), (13, 13), (16, 20), (u32::MAX, u32::MAX)] {
        let mut bytes = good.clone();
        bytes.extend(Order::Little.words(&[6, length, 0, trailer]));
        bytes.extend(&good[28..]);
        let (records, errors) = read_all(Reader::from_bytes(bytes.clone()).unwrap());
        assert_eq!(records.len(), 1, "{length}");
        assert!(matches!(errors[..], [ReadError::Damaged { .. } | ReadError::TooLong { .. }]), "{errors:?}");
        assert_eq!(errors[0].place().offset, good.len() as u64);
        assert!(read_both_ways(&bytes).is_some());
    }
}

#[test]
fn impossible_later_blocks_of_other_kinds_end_the_capture() {
    let good = || PcapNg::new(Order::Little).interface(1, 0, &[]).enhanced(0, 1, 1, &[7]);
    for (kind, body) in [(1, &[0; 4][..]), (0x0a0d_0d0a, &[0; 16]), (0x0a0d_0d0a, &0x1a2b_3c4d_u32.to_le_bytes())] {
        let bytes = good().block(kind, body).enhanced(0, 2, 1, &[8]).bytes;
        let (records, errors) = read_both_ways(&bytes).unwrap();
        assert_eq!((records.len(), errors.len()), (1, 1), "{kind}: {errors:?}");
    }
}

#[test]
fn interfaces_without_end_take_no_memory() {
    let capture = (0..70_000).fold(PcapNg::new(Order::Little), |capture, _| capture.interface(147, 0, &[]));
    let bytes = capture.interface(1, 0, &[]).enhanced(0, 1, 1, &[7]).bytes;
    let mut reader = Reader::from_bytes(bytes).unwrap();
    let error = reader.read(1, |_| {}).unwrap_err().to_string();
    assert!(error.contains("more interfaces") && error.contains(&format!("at byte {}", 28 + 65_536 * 20)), "{error}");
    assert_eq!(reader.take_warnings().len(), 100);
}

/// Frames whose headers are half right, so that mutations reach deep.
fn capture() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(samples().into_iter().map(|(_, bytes, _)| bytes).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_captures_end(
        mut bytes in capture(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        read_both_ways(&bytes);
    }

    #[test]
    fn spliced_captures_end(
        first in capture(),
        second in capture(),
        cuts in any::<[prop::sample::Index; 2]>(),
    ) {
        let bytes = [&first[..cuts[0].index(first.len())], &second[cuts[1].index(second.len())..]].concat();
        read_both_ways(&bytes);
    }

    #[test]
    fn mutated_packed_captures_end(
        bytes in capture(),
        (_, pack) in prop::sample::select(PACKERS),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = pack(&bytes);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(reader) = Reader::from_bytes(bytes) {
            read_all(reader);
        }
    }
}
