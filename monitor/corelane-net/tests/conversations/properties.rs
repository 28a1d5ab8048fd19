//! Whatever happens to segments and fragments on their way, the result is that of a plain reference, up to what was
//! given up.

use crate::support::*;
use corelane_net::capture::{LinkType, Record};
use corelane_net::conversation::{LEAST_BYTES, Limits};
use corelane_net::decode::{
    Datagram, Decoded, Fragment, NoDatagram, NoPacket, UDP, Vlans, datagram, decode, mapped, packet,
};
use corelane_net::defrag::{self, Defragmenter};
use proptest::prelude::*;

/// Which copy of the bytes a piece is from: they differ in every byte.
fn byte(at: usize, copy: u8) -> u8 {
    (at as u8).wrapping_mul(31) ^ copy << 6
}

fn piece(from: usize, to: usize, copy: u8) -> Vec<u8> {
    (from..to).map(|at| byte(at, copy)).collect()
}

/// The bytes that are known, and whose: what came first stays.
#[derive(Clone, Default)]
struct Reference(Vec<Option<u8>>);

impl Reference {
    fn new(length: usize) -> Self {
        Self(vec![None; length])
    }

    fn put(&mut self, from: usize, bytes: &[u8]) {
        for (at, &byte) in bytes.iter().enumerate() {
            self.0[from + at].get_or_insert(byte);
        }
    }

    fn known(&self) -> &[Option<u8>] {
        let end = self.0.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        &self.0[..end]
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Bytes from here to there, of this copy.
    Send(usize, usize, u8),
    /// Everything before this is acknowledged.
    Ack(usize),
    Fin,
}

const LENGTH: usize = 300;

fn send() -> impl Strategy<Value = Step> {
    let copy = prop_oneof![6 => Just(0_u8), 1 => 1_u8..4];
    (0..LENGTH, 1_usize..60, copy).prop_map(|(from, length, copy)| Step::Send(from, (from + length).min(LENGTH), copy))
}

/// A whole stream in segments, some of them lost or doubled, in a disorder that is mostly local, with other segments in
/// between.
fn steps(acks: bool) -> impl Strategy<Value = Vec<Step>> {
    let whole = prop::collection::vec((1_usize..40, 0_u8..8, 0_usize..6), 1..60).prop_map(|segments| {
        let (mut at, mut steps) = (0, Vec::new());
        for (length, fate, late) in segments {
            let to = (at + length).min(LENGTH);
            if at < to {
                for copy in 0..usize::from(fate.min(2)) {
                    steps.push((steps.len() + late * (copy + 1), Step::Send(at, to, 0)));
                }
            }
            at = to;
        }
        steps.sort_by_key(|&(order, _)| order);
        steps.into_iter().map(|(_, step)| step).collect::<Vec<_>>()
    });
    let ack = if acks { 1 } else { 0 };
    let other = prop_oneof![4 => send(), 4 * ack => (0..=LENGTH).prop_map(Step::Ack), 1 => Just(Step::Fin)];
    (whole, prop::collection::vec((any::<prop::sample::Index>(), other), 0..12)).prop_map(|(mut steps, others)| {
        for (at, other) in others {
            steps.insert(at.index(steps.len() + 1), other);
        }
        steps
    })
}

/// What an application got, whether there was a FIN, and the table after the last step.
fn play(limits: &Limits, first: u32, steps: &[Step], mut after: impl FnMut(&Bench)) -> (Vec<Option<u8>>, bool) {
    let tcp = Tcp { first: [first, 7], ..Tcp::default() };
    let mut bench = Bench::with(limits);
    tcp.open(&mut bench);
    let mut fin = false;
    for step in steps {
        match *step {
            Step::Send(from, to, copy) => bench.take(&tcp.send(Originator, from as i64, &piece(from, to, copy))),
            Step::Ack(to) => bench.take(&tcp.at(Responder, 0, to as i64, ACK, b"")),
            Step::Fin => {
                fin = true;
                bench.take(&tcp.at(Originator, LENGTH as i64, 0, FIN | ACK, b""));
            }
        }
        after(&bench);
    }
    bench.table.finish(&mut bench.log);
    let over = bench.log.over.pop().expect("the connection");
    let missed = over.missed[0];
    let got = over.notes.map_or_else(Vec::new, |notes| notes.bytes(Originator));
    assert_eq!(missed, got.iter().filter(|byte| byte.is_none()).count() as u64);
    (got, fin)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

    /// Without acknowledgments, and with room enough, nothing is given up before the end.
    #[test]
    fn segments_in_any_order_give_the_reference(
        steps in steps(false),
        first in prop_oneof![any::<u32>(), Just(u32::MAX - 100)],
    ) {
        let mut reference = Reference::new(LENGTH);
        for step in &steps {
            if let Step::Send(from, to, copy) = *step {
                reference.put(from, &piece(from, to, copy));
            }
        }
        let (got, fin) = play(&Limits::default(), first, &steps, |_| {});
        if fin && !got.is_empty() {
            prop_assert_eq!(&got[..], &reference.0[..]);
        } else {
            prop_assert_eq!(&got[..], reference.known());
        }
    }

    /// A byte is only missing if it was acknowledged before it came, and none is other than its first copy.
    #[test]
    fn acknowledged_holes_are_given_up_and_nothing_else(steps in steps(true), first in any::<u32>()) {
        let mut reference = Reference::new(LENGTH);
        let (mut acked, mut may_miss) = (0, [false; LENGTH]);
        for step in &steps {
            match *step {
                Step::Send(from, to, copy) => {
                    for (at, may_miss) in (from..to).zip(&mut may_miss[from..to]) {
                        *may_miss |= reference.0[at].is_none() && at < acked;
                    }
                    reference.put(from, &piece(from, to, copy));
                }
                Step::Ack(to) => acked = acked.max(to),
                Step::Fin => {}
            }
        }
        let (got, fin) = play(&Limits::default(), first, &steps, |_| {});
        prop_assert!(got.len() >= reference.known().len());
        prop_assert!(got.len() <= LENGTH && (!fin || got.is_empty() || got.len() == LENGTH));
        for (at, (got, reference)) in got.iter().zip(&reference.0).enumerate() {
            prop_assert!(got == reference || (got.is_none() && may_miss[at]), "{}", at);
        }
    }

    /// Whatever the limits give up, what remains is right, and the limits hold at every step.
    #[test]
    fn limits_hold_and_what_remains_is_right(steps in steps(true), held in 0_usize..400) {
        let limits = Limits { held_per_side: held, held_per_conversation: held, held, ..Limits::new(LEAST_BYTES) };
        let mut reference = Reference::new(LENGTH);
        for step in &steps {
            if let Step::Send(from, to, copy) = *step {
                reference.put(from, &piece(from, to, copy));
            }
        }
        let (got, fin) = play(&limits, 9, &steps, |bench| assert!(bench.table.held_bytes() <= held));
        prop_assert!(got.len() >= reference.known().len());
        prop_assert!(!fin || got.is_empty() || got.len() == LENGTH);
        // Of a byte that was given up a later copy is not taken either, so each is its first copy or nothing.
        for (got, reference) in got.iter().zip(&reference.0) {
            prop_assert!(got.is_none() || got == reference);
        }
    }

    /// Fragments of IPv4 datagrams, some lost, doubled, overlapping, in any order.
    #[test]
    fn fragments_in_any_order_give_the_reference(
        length in 9_usize..400,
        cuts in prop::collection::vec((0_usize..50, 1_usize..20, 0_u8..3), 0..24),
        seed in any::<prop::sample::Index>(),
    ) {
        let mut fragments: Vec<(usize, usize, u8)> =
            (0..length).step_by(64).map(|at| (at, (at + 64).min(length), 0)).collect();
        for (from, blocks, copy) in cuts {
            let from = 8 * from % length.next_multiple_of(8);
            let to = (from + 8 * blocks).min(length);
            if from < to {
                let at = seed.index(fragments.len() + 1);
                fragments.insert(at, (from, to, copy));
                fragments.rotate_left(at % 3);
            }
        }
        let mut table = Defragmenter::new(&defrag::Limits::default());
        let mut buffer = Vec::new();
        let (mut reference, mut has_end) = (Reference::new(length), false);
        for (from, to, copy) in fragments {
            let piece = piece(from, to, copy);
            reference.put(from, &piece);
            has_end |= to == length;
            let whole = table.fragment(1, 100, &fragment(mapped(1), from, &piece, to < length), &mut buffer);
            let expected: Option<Vec<u8>> = reference.0.iter().copied().collect();
            let expected = expected.filter(|_| has_end);
            prop_assert_eq!(whole.map(|whole| whole.datagram.payload.to_vec()), expected.clone());
            if expected.is_some() {
                (reference, has_end) = (Reference::new(length), false);
            }
        }
    }

    /// Within limits whatever comes, and what becomes whole has no byte that was not sent.
    #[test]
    fn fragments_stay_within_limits(
        fragments in prop::collection::vec((0_u128..6, 0_usize..40, 1_usize..30, any::<bool>(), 0_u64..3), 1..200),
    ) {
        let limits = defrag::Limits { datagrams: 4, bytes: 2500, pieces: 5, timeout_ns: 20 };
        let mut table = Defragmenter::new(&limits);
        let mut buffer = Vec::new();
        let mut time_ns = 0;
        for (source, at, blocks, more, passed) in fragments {
            time_ns += passed;
            // Half of them are IPv6.
            let source = if source % 2 == 0 { mapped(source as u32) } else { source };
            let bytes = vec![source as u8; 8 * blocks];
            if let Some(whole) = table.fragment(time_ns, 1, &fragment(source, 8 * at, &bytes, more), &mut buffer) {
                prop_assert!(whole.datagram.payload.iter().all(|&byte| byte == source as u8));
            }
            prop_assert!(table.reserved_bytes() <= limits.bytes);
        }
        table.finish();
        prop_assert_eq!(table.reserved_bytes(), 0);
    }

    /// What looks into packets agrees with what only takes ports out of them.
    #[test]
    fn both_ways_to_decode_agree(
        mut frame in frame(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        kept in any::<prop::sample::Index>(),
    ) {
        for (at, value) in hits {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        let kept = kept.index(2 * frame.len()).min(frame.len());
        let (wire_len, data) = (frame.len() as u32, &frame[..kept]);
        let record = Record { time_ns: 0, wire_len, link: LinkType::ETHERNET, data };
        agree(&record)?;
    }
}

pub(crate) fn fragment(source: u128, offset: usize, payload: &[u8], more: bool) -> Datagram<'_> {
    let fragment = Some(Fragment { id: 5, offset: offset as u32, more });
    let is_v4 = source >> 32 == 0xffff;
    Datagram {
        source,
        destination: mapped(2),
        is_v4,
        protocol: UDP,
        hops: 64,
        fragment,
        payload,
        cut: 0,
        outermost: &[],
        vlans: Vlans::NONE,
    }
}

/// Frames of several kinds, whose bytes are then hit.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let v4 = |protocol: u8, bits: u16, payload: Vec<u8>| {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((20 + payload.len() as u16).to_be_bytes());
        frame.extend([0, 9]);
        frame.extend(bits.to_be_bytes());
        frame.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(payload);
        frame
    };
    let v6 = |next: u8, payload: Vec<u8>| {
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((payload.len() as u16).to_be_bytes());
        frame.extend([next, 64]);
        frame.extend([0x20; 32]);
        frame.extend(payload);
        frame
    };
    let tcp: Vec<u8> =
        [0, 80, 200, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0x60, 0x18, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0, b'x', b'y'].into();
    let udp: Vec<u8> = [0, 53, 200, 0, 0, 12, 0, 0, 1, 2, 3, 4, 0, 0].into();
    let behind = |header: [u8; 8], payload: &[u8]| [&header[..], payload].concat();
    let frames = vec![
        v4(6, 0, tcp.clone()),
        v4(17, 0, udp.clone()),
        v4(17, 0x2000, udp.clone()),
        v4(6, 0x2003, tcp.clone()),
        v4(0, 0, tcp.clone()),
        v6(6, tcp.clone()),
        v6(17, udp.clone()),
        v6(44, behind([6, 0, 0, 0, 0, 0, 0, 7], &tcp)),
        v6(44, behind([17, 0, 0, 1, 0, 0, 0, 7], &udp)),
        v6(
            0,
            behind(
                [44, 0, 1, 4, 0, 0, 0, 0],
                &behind([60, 0, 0, 1, 0, 0, 0, 7], &behind([6, 0, 1, 4, 0, 0, 0, 0], &tcp)),
            ),
        ),
        v6(51, behind([58, 1, 0, 0, 0, 0, 0, 0], &[0; 30])),
    ];
    prop::sample::select(frames)
}

pub(crate) fn agree(record: &Record<'_>) -> Result<(), TestCaseError> {
    let plain = decode(record.link, record.data);
    let datagram = match datagram(record) {
        Ok(datagram) => datagram,
        Err(reason) => {
            let expected = if reason == NoDatagram::Malformed { Decoded::Malformed } else { Decoded::Undecoded };
            prop_assert_eq!(plain, expected);
            return Ok(());
        }
    };
    prop_assert!(datagram.payload.len() <= record.data.len());
    prop_assert!(datagram.payload.len() + datagram.cut as usize <= record.wire_len as usize);
    if datagram.fragment.is_some() {
        prop_assert_eq!(plain, Decoded::Fragment);
        prop_assert_eq!(packet(0, 0, &datagram), Err(NoPacket::Other));
        return Ok(());
    }
    let packet = packet(record.time_ns, record.wire_len, &datagram);
    match (plain, packet) {
        (Decoded::V4(plain), Ok(packet)) => {
            let addresses = (mapped(plain.source), mapped(plain.destination));
            prop_assert_eq!(addresses, (packet.source, packet.destination));
            let ports = (plain.source_port, plain.destination_port, plain.protocol, plain.flags);
            prop_assert_eq!(ports, (packet.source_port, packet.destination_port, packet.protocol, packet.flags));
        }
        (Decoded::V6(plain), Ok(packet)) => {
            prop_assert_eq!((plain.source, plain.destination), (packet.source, packet.destination));
            let ports = (plain.source_port, plain.destination_port, plain.protocol, plain.flags);
            prop_assert_eq!(ports, (packet.source_port, packet.destination_port, packet.protocol, packet.flags));
        }
        (Decoded::OtherIp, Err(NoPacket::Other)) | (Decoded::Malformed, Err(NoPacket::Malformed)) => {}
        (plain, packet) => prop_assert!(false, "{:?} and {:?}", plain, packet),
    }
    Ok(())
}
