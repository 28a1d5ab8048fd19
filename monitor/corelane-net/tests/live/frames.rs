//! What is sent comes out: bytes, lengths, times, tags.

use std::io::Write;
use std::net::UdpSocket;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use corelane_net::capture::filter::Instruction;
use corelane_net::capture::live::{Live, interfaces};
use corelane_net::capture::{LinkType, Record};

use crate::support::{Owned, Sender, drain, frame, inside, ip, ipv4, number, options, pair, quiet, read, skip, tunnel};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn frames_come_in_order_with_their_bytes_and_a_time() {
    inside("frames::frames_come_in_order_with_their_bytes_and_a_time", || {
        pair();
        let mut live =
            Live::open("b0", &options().ring_bytes(16 << 20).block_timeout(Duration::from_millis(200))).unwrap();
        assert_eq!(live.link(), LinkType::ETHERNET);
        assert!(live.take_news().is_none());
        let (sender, start) = (Sender::new("a0"), now());
        let sent: Vec<Vec<u8>> =
            (0..5000).map(|index| frame(&[0x12, 0x34], &vec![index as u8; 46 + index % 1400])).collect();
        for frame in &sent {
            sender.send(frame);
        }
        let records = read(&mut live, sent.len());
        let end = now();
        for (record, frame) in records.iter().zip(&sent) {
            assert_eq!(record.data, *frame);
            assert_eq!(record.wire_len as usize, frame.len());
            assert_eq!(record.link, 1);
            assert!((start..=end).contains(&record.time_ns));
        }
        assert!(records.is_sorted_by_key(|record| record.time_ns));
        assert!(drain(&mut live).is_empty());
        let counts = live.statistics();
        assert_eq!((counts.received, counts.handed_out, counts.dropped), (5000, 5000, 0));
        assert_eq!((counts.truncated, counts.damaged), (0, 0));
    });
}

/// Both directions are seen.
#[test]
fn tags_come_back_as_they_were_sent() {
    inside("frames::tags_come_back_as_they_were_sent", || {
        pair();
        let (sender, mut receiver, mut own) =
            (Sender::new("a0"), Live::open("b0", &options()).unwrap(), Live::open("a0", &options()).unwrap());
        let tags: [&[u8]; 6] = [
            &[],
            &[0x81, 0, 0x60, 42],
            &[0x81, 0, 0, 0],
            &[0x88, 0xa8, 0x20, 7],
            &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8],
            &[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3],
        ];
        let sent: Vec<Vec<u8>> = tags.iter().map(|tags| frame(tags, &ipv4(1, 2, 17, 5)[12..])).collect();
        for frame in &sent {
            sender.send(frame);
        }
        for live in [&mut receiver, &mut own] {
            for (record, frame) in read(live, sent.len()).iter().zip(&sent) {
                assert_eq!(record.data, *frame);
                assert_eq!(record.wire_len as usize, frame.len());
            }
        }
    });
}

#[test]
fn the_longest_frames_come_whole() {
    inside("frames::the_longest_frames_come_whole", || {
        pair();
        let mut live = Live::open("b0", &options()).unwrap();
        let sender = Sender::new("a0");
        let sent: Vec<Vec<u8>> =
            (0..20_u8).map(|index| frame(&[0x81, 0, 0, 3, 0x12, 0x34], &vec![index; 65_531])).collect();
        for frame in &sent {
            sender.send(frame);
        }
        let records = read(&mut live, sent.len());
        assert!(records.iter().zip(&sent).all(|(record, frame)| record.data == *frame));
        assert_eq!(live.statistics().truncated, 0);
    });
}

#[test]
fn snaplen_cuts_and_counts() {
    inside("frames::snaplen_cuts_and_counts", || {
        pair();
        let mut live = Live::open("b0", &options().snaplen(100)).unwrap();
        let sender = Sender::new("a0");
        for length in [60, 86, 87, 500] {
            sender.send(&frame(&[0x12, 0x34], &vec![7; length]));
        }
        sender.send(&frame(&[0x81, 0, 0, 9, 0x12, 0x34], &[7; 300]));
        let records = read(&mut live, 5);
        let lengths = |record: &Owned| (record.data.len(), record.wire_len);
        let found: Vec<_> = records.iter().map(lengths).collect();
        assert_eq!(found, [(74, 74), (100, 100), (100, 101), (100, 514), (100, 318)]);
        assert_eq!(records[4].data[12..18], [0x81, 0, 0, 9, 0x12, 0x34]);
        assert_eq!(live.statistics().truncated, 3);
    });
}

/// UDP over IPv4 only, at most 48 bytes of it.
pub(crate) fn udp() -> Vec<Instruction> {
    [(0x28, 0, 0, 12), (0x15, 0, 3, 0x0800), (0x30, 0, 0, 23), (0x15, 0, 1, 17), (0x06, 0, 0, 74), (0x06, 0, 0, 0)]
        .map(|(code, jt, jf, k)| Instruction { code, jt, jf, k })
        .to_vec()
}

#[test]
fn a_filter_counts_only_what_passes() {
    inside("frames::a_filter_counts_only_what_passes", || {
        pair();
        let mut live = Live::open("b0", &options().filter(Some(udp())).snaplen(70)).unwrap();
        let sender = Sender::new("a0");
        for index in 0..300 {
            sender.send(&ipv4(1, 2, if index % 3 == 0 { 17 } else { 6 }, index));
        }
        let mut records = read(&mut live, 100);
        records.extend(drain(&mut live));
        assert_eq!(records.len(), 100);
        // The filter's 74 bytes were cut to the 70 asked for.
        assert!(records.iter().all(|record| record.data[23] == 17 && record.data.len() == 70 && record.wire_len == 74));
        let counts = live.statistics();
        assert_eq!((counts.received, counts.dropped, counts.truncated), (100, 0, 100));
    });
}

#[test]
fn payload_is_left_out_of_plain_packets_alone() {
    inside("frames::payload_is_left_out_of_plain_packets_alone", || {
        pair();
        // TCP and UDP, 300 bytes on the wire.
        let packet = |protocol: u8, port: u16, fragment: u16| {
            let mut packet = ipv4(1, 2, protocol, 7);
            packet.resize(300, 0x5a);
            packet[16..18].copy_from_slice(&286_u16.to_be_bytes());
            packet[20..22].copy_from_slice(&fragment.to_be_bytes());
            packet[36..38].copy_from_slice(&port.to_be_bytes());
            packet[46] = 0x50;
            packet
        };
        let tagged = |tags: &[u8], packet: &[u8]| [&packet[..12], tags, &packet[12..]].concat();
        let plain = packet(17, 53, 0);
        let sent = [
            (plain.clone(), 96),
            (packet(6, 80, 0x4000), 96),
            (tagged(&[0x81, 0, 0, 5], &plain), 100),
            (plain[..90].to_vec(), 90),
            (packet(17, 4789, 0), 300),
            (packet(17, 53, 0x2000), 300),
            (packet(1, 53, 0), 300),
            (tagged(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6], &plain), 308),
            (frame(&[0x08, 0x06], &[9; 286]), 300),
        ];
        let all = [(0x06, 0, 0, 262_144)].map(|(code, jt, jf, k)| Instruction { code, jt, jf, k }).to_vec();
        for filter in [None, Some(all)] {
            let mut live = Live::open("b0", &options().headers_only(true).filter(filter)).unwrap();
            let sender = Sender::new("a0");
            for (frame, _) in &sent {
                sender.send(frame);
            }
            for (record, (frame, length)) in read(&mut live, sent.len()).iter().zip(&sent) {
                assert_eq!((record.data.as_slice(), record.wire_len as usize), (&frame[..*length], frame.len()));
            }
            let counts = live.statistics();
            assert_eq!((counts.received, counts.truncated), (sent.len() as u64, 0));
        }
        // What the filter or `snaplen` keeps of a packet is no more than that.
        let mut live = Live::open("b0", &options().headers_only(true).filter(Some(udp())).snaplen(200)).unwrap();
        let sender = Sender::new("a0");
        sent.iter().for_each(|(frame, _)| sender.send(frame));
        let lengths: Vec<_> = read(&mut live, 5).iter().map(|record| record.data.len()).collect();
        assert_eq!(lengths, [74, 78, 74, 74, 74]);
    });
}

#[test]
fn a_frame_on_loopback_comes_once() {
    inside("frames::a_frame_on_loopback_comes_once", || {
        ip("link set lo up");
        let mut live = Live::open("lo", &options()).unwrap();
        assert_eq!(live.link(), LinkType::ETHERNET);
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for index in 0..50_u32 {
            sender.send_to(&index.to_be_bytes(), receiver.local_addr().unwrap()).unwrap();
        }
        let mut records = read(&mut live, 50);
        records.extend(drain(&mut live));
        let numbers: Vec<u32> = records.iter().map(|record| number(&record.data)).collect();
        assert_eq!(numbers, (0..50).collect::<Vec<u32>>());
        assert_eq!(live.statistics().received, 50);
    });
}

#[test]
fn an_interface_without_link_header_is_raw_ip() {
    inside("frames::an_interface_without_link_header_is_raw_ip", || {
        quiet();
        let Some(mut tunnel) = tunnel(libc::ARPHRD_NONE) else {
            return skip("an_interface_without_link_header_is_raw_ip: no tun interfaces");
        };
        ip("address add 10.1.0.1/24 dev t0");
        let mut live = Live::open("t0", &options()).unwrap();
        assert_eq!(live.link(), LinkType::RAW);
        // One that arrives, and one that leaves.
        let arriving = ipv4(1, 2, 17, 5)[14..].to_vec();
        tunnel.write_all(&arriving).unwrap();
        let sender = UdpSocket::bind("10.1.0.1:0").unwrap();
        sender.send_to(&[1, 2, 3, 4], "10.1.0.2:9").unwrap();
        let records = read(&mut live, 2);
        assert!(records.iter().all(|record| record.link == 101));
        assert_eq!(records[0].data, arriving);
        assert_eq!(records[1].data[..1], [0x45]);
        assert_eq!(records[1].data[16..20], [10, 1, 0, 2]);
        assert_eq!(records[1].data[28..], [1, 2, 3, 4]);
    });
}

#[test]
fn a_silent_interface_says_since_when() {
    inside("frames::a_silent_interface_says_since_when", || {
        pair();
        let mut live = Live::open("b0", &options()).unwrap();
        assert_eq!(live.interface(), "b0");
        let quiet = live.quiet_since().unwrap();
        // Two time-outs of 20 ms, and some more.
        assert!(quiet < now() - 40_000_000);
        let sender = Sender::new("a0");
        sender.send(&ipv4(1, 2, 17, 3));
        // The frame is in a block that is not handed over yet.
        assert_eq!(live.quiet_since(), None);
        let record = &read(&mut live, 1)[0];
        assert!(record.time_ns >= quiet);
        assert!(live.quiet_since().unwrap() < now() - 40_000_000);
    });
}

#[test]
fn a_wait_ends_without_frames() {
    inside("frames::a_wait_ends_without_frames", || {
        pair();
        let mut live = Live::open("b0", &options()).unwrap();
        let start = std::time::Instant::now();
        let mut none = |record: Record<'_>| panic!("a frame: {record:?}");
        assert_eq!(live.read(1, Duration::ZERO, &mut none).unwrap(), 0);
        assert_eq!(live.read(1, Duration::from_millis(1500), &mut none).unwrap(), 0);
        assert!(start.elapsed() >= Duration::from_millis(1500));
    });
}

#[test]
fn interfaces_are_listed() {
    inside("frames::interfaces_are_listed", || {
        pair();
        ip("link set a0 down");
        let all = interfaces().unwrap();
        let find = |name: &str| all.iter().find(|interface| interface.name == name).unwrap();
        let (lo, a0, b0) = (find("lo"), find("a0"), find("b0"));
        assert!(lo.is_loopback && !a0.is_loopback && !b0.is_loopback);
        assert!(!a0.is_up && b0.is_up);
        assert_eq!((b0.mtu, b0.link), (65_535, Some(LinkType::ETHERNET)));
        assert!(all.is_sorted_by_key(|interface| interface.index));
    });
}
