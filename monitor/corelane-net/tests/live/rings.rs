//! Full rings and several rings: no frame is missed in the counts.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use corelane_net::capture::live::Live;

use crate::frames::udp;
use crate::support::{Sender, drain, frame, inside, ipv4, number, options, pair, read};

#[test]
fn a_ring_that_overflows_says_by_how_much() {
    inside("rings::a_ring_that_overflows_says_by_how_much", || {
        pair();
        let mut live = Live::open("b0", &options().ring_bytes(1).snaplen(200).filter(Some(udp()))).unwrap();
        let sender = Sender::new("a0");
        let (mut sent, mut got) = (0, Vec::new());
        for round in 0..3 {
            for _ in 0..20_000 {
                sender.send(&ipv4(1, 2, 17, sent));
                sender.send(&ipv4(1, 2, 6, sent));
                sent += 1;
            }
            let counts = live.statistics();
            assert_eq!(counts.handed_out + counts.dropped + counts.in_ring(), counts.received);
            assert!(counts.dropped > 0 && counts.freezes > round, "{counts:?}");
            // Not all of it, so that it is full from another place the next time.
            got.extend(read(&mut live, counts.in_ring() as usize - 3));
            let counts = live.statistics();
            assert_eq!(counts.handed_out, got.len() as u64);
        }
        got.extend(drain(&mut live));
        sender.send(&ipv4(1, 2, 17, sent));
        let counts = live.statistics();
        assert_eq!(counts.received, u64::from(sent));
        assert_eq!(counts.handed_out, got.len() as u64);
        assert_eq!(counts.handed_out + counts.dropped, u64::from(sent));
        let numbers: Vec<u32> =
            got.iter().map(|record| u32::from_be_bytes(*record.data.last_chunk().unwrap())).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "in order, each once");
    });
}

/// A flood while frames are read. Nothing is lost between the two.
#[test]
fn frames_and_drops_add_up_while_both_ends_work() {
    inside("rings::frames_and_drops_add_up_while_both_ends_work", || {
        pair();
        let mut live = Live::open("b0", &options().ring_bytes(1)).unwrap();
        const FRAMES: u32 = 100_000;
        let sender = thread::spawn(|| {
            let sender = Sender::new("a0");
            (0..FRAMES).for_each(|index| sender.send(&ipv4(1, 2, 17, index)));
        });
        let (mut last, mut count) = (None, 0_u64);
        while !sender.is_finished() {
            live.read(100, Duration::from_millis(10), |record| {
                assert!(last < Some(number(record.data)));
                (last, count) = (Some(number(record.data)), count + 1);
            })
            .unwrap();
            let counts = live.statistics();
            assert_eq!(counts.handed_out, count);
            assert!(counts.received >= count + counts.dropped);
        }
        sender.join().unwrap();
        count += drain(&mut live).len() as u64;
        let counts = live.statistics();
        assert_eq!((counts.handed_out, counts.received), (count, u64::from(FRAMES)));
        assert_eq!(count + counts.dropped, u64::from(FRAMES));
    });
}

fn ipv6(source: u32, destination: u32) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 20, 59, 64];
    for address in [source, destination] {
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend(address.to_be_bytes());
    }
    packet.resize(60, 0);
    packet
}

#[test]
fn rings_share_the_frames_and_split_no_pair() {
    inside("rings::rings_share_the_frames_and_split_no_pair", || {
        pair();
        let rings = NonZeroU16::new(3).unwrap();
        // Nothing is read before all is sent, so the blocks have to last that long.
        let options = options().block_timeout(Duration::from_millis(200));
        let mut all = Live::open_rings("b0", &options, rings).unwrap();
        // A second group gets the same frames, and a number of its own.
        let mut others = Live::open_rings("b0", &options, rings).unwrap();
        let (here, there) = (Sender::new("a0"), Sender::new("b0"));
        let tags: [&[u8]; 3] = [&[], &[0x81, 0, 0, 5], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]];
        let mut sent = 0;
        for pair in 0..200_u32 {
            let (a, b) = (0x0a00_0001 + pair * 7, 0xc0a8_0000 + pair * 13);
            for tags in tags {
                for (sender, a, b) in [(&here, a, b), (&there, b, a), (&here, b, a)] {
                    sender.send(&frame(tags, &ipv4(a, b, 6, pair)[12..]));
                    sender.send(&frame(&[tags, &[0x86, 0xdd]].concat(), &ipv6(a, b)));
                    sent += 2;
                }
            }
            here.send(&frame(&[8, 6], &[0; 46]));
            sent += 1;
        }
        for rings in [&mut all, &mut others] {
            let mut places: HashMap<(bool, u64), usize> = HashMap::new();
            let mut counts = [0; 3];
            for (ring, live) in rings.iter_mut().enumerate() {
                let records = drain(live);
                counts[ring] = records.len();
                assert_eq!(live.statistics().received, records.len() as u64);
                for record in records {
                    let mut data = &record.data[12..];
                    while [[0x81, 0], [0x88, 0xa8]].contains(&[data[0], data[1]]) {
                        data = &data[4..];
                    }
                    let word = |at: usize| u64::from(u32::from_be_bytes(*data[at..].first_chunk().unwrap()));
                    // The sum, beside the kind, names the pair.
                    let pair = match [data[0], data[1]] {
                        [8, 0] => (true, word(14) + word(18)),
                        [0x86, 0xdd] => (false, word(22) + word(38)),
                        _ => {
                            assert_eq!(ring, 0, "what has no addresses comes to the first ring");
                            continue;
                        }
                    };
                    assert_eq!(*places.entry(pair).or_insert(ring), ring, "a pair is split");
                }
            }
            assert_eq!(counts.iter().sum::<usize>(), sent, "{counts:?}");
            assert!(counts.iter().all(|&count| count > sent / 6), "{counts:?}");
            assert_eq!(places.len(), 400);
        }
    });
}

/// Before all rings are there, a frame might come to two of them, or to the wrong one.
#[test]
fn rings_that_open_during_a_flood_get_no_frame_twice() {
    inside("rings::rings_that_open_during_a_flood_get_no_frame_twice", || {
        pair();
        let is_over = AtomicBool::new(false);
        let sent = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let sender = Sender::new("a0");
                while !is_over.load(Ordering::Relaxed) {
                    let index = sent.fetch_add(1, Ordering::Relaxed);
                    sender.send(&ipv4(1, index % 64, 17, index));
                }
            });
            let _stop = OnDrop(|| is_over.store(true, Ordering::Relaxed));
            for _ in 0..5 {
                let mut all = Live::open_rings("b0", &options(), NonZeroU16::new(3).unwrap()).unwrap();
                let (mut rings_of, mut seen) = (HashMap::new(), HashSet::new());
                let begun = sent.load(Ordering::Relaxed);
                while sent.load(Ordering::Relaxed) < begun + 500 {
                    thread::yield_now();
                }
                all.iter_mut().for_each(|live| live.stop().unwrap());
                for (ring, live) in all.iter_mut().enumerate() {
                    for record in drain(live) {
                        let number = number(&record.data);
                        assert!(seen.insert(number), "frame {number} came twice");
                        assert_eq!(*rings_of.entry(number % 64).or_insert(ring), ring, "a pair is split");
                    }
                }
                assert!(rings_of.len() > 32, "{} pairs came", rings_of.len());
            }
        });
    });
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
