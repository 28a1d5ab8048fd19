//! Real captures, with what others found in them.

use crate::captures_folder::captures;
use crate::properties::agree;
use crate::support::*;
use corelane_net::capture::{Options, Reader, Record};
use corelane_net::conversation::{Limits, Partition, Reason, Side};
use corelane_net::decode::{Decoded, datagram, decode};
use corelane_net::defrag::{self, Defragmenter};
use etherparse::SlicedPacket;
use etherparse::defrag::IpDefragPool;
use std::collections::HashMap;
use std::path::Path;

fn read(path: &Path, mut each: impl FnMut(&Record<'_>)) {
    let Ok(mut reader) = Reader::open(path, &Options::default()) else { return };
    // What is wrong with some of them is not the matter here.
    while !matches!(reader.read(4096, |record| each(&record)), Ok(0)) {}
}

struct Played {
    partition: Partition<Notes>,
    log: Log,
}

fn play(path: &Path, limits: &Limits) -> Played {
    let mut partition = Partition::new(limits, &defrag::Limits::default());
    let (mut log, mut buffer) = (Log::default(), Vec::new());
    let mut mark = 0;
    read(path, |record| {
        // A mark each second, as the monitor's Dispatcher is to set them.
        if record.time_ns / SECOND > mark {
            mark = record.time_ns / SECOND;
            partition.expire(mark * SECOND, &mut log);
        }
        if let Ok(datagram) = datagram(record) {
            partition.datagram(record.time_ns, record.wire_len, &datagram, &mut buffer, &mut log);
        }
        assert!(partition.conversations().reserved_bytes() <= limits.bytes);
    });
    partition.finish(&mut log);
    Played { partition, log }
}

/// Far more than any of these captures needs.
fn plenty() -> Limits {
    Limits::new(256 << 20)
}

impl Played {
    fn count(&self, side: Side, text: &str) -> usize {
        let all = self.log.over.iter().filter_map(|over| over.notes.as_ref());
        all.map(|notes| {
            let bytes: Vec<u8> = notes.bytes(side).into_iter().map(|byte| byte.unwrap_or(0)).collect();
            bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
        })
        .sum()
    }
}

#[test]
fn a_lost_response_is_one_gap_among_a_thousand() {
    let Some(folder) = captures() else { return };
    let played = play(&folder.join("http-1000-requests-gap.pcap.gz"), &plenty());
    let counts = played.partition.conversations().counts();
    assert_eq!((counts.conversations, counts.midstream, counts.gaps), (1, 0, 1), "{counts:?}");
    assert_eq!(played.count(Originator, "GET /"), 1000);
    assert_eq!(played.count(Responder, "HTTP/1.1 200"), 999);
}

#[test]
fn a_browsing_session() {
    let Some(folder) = captures() else { return };
    let played = play(&folder.join("http-mixed.pcap"), &plenty());
    let counts = *played.partition.conversations().counts();
    assert_eq!(counts.tcp_packets + counts.udp_packets, 4631);
    // As tshark has it: 66 TCP streams, 70 UDP streams, 338 requests.
    assert_eq!((played.log.over.len(), counts.midstream, counts.gaps), (136, 1, 0), "{counts:?}");
    let requests = ["GET /", "POST /", "SUBSCRIBE /"].map(|method| played.count(Originator, method));
    assert_eq!(requests, [336, 1, 1]);
    // One for each request, though tshark counts 336.
    assert_eq!(played.count(Responder, "HTTP/1."), 338);
}

#[test]
fn conversations_years_apart() {
    let Some(folder) = captures() else { return };
    let played = play(&folder.join("vlan-mpls.pcap"), &plenty());
    let counts = *played.partition.conversations().counts();
    // Telnet under MPLS, of which one direction was captured; HTTP under VLAN; HTTP.
    let over: Vec<_> =
        played.log.over.iter().map(|over| (over.originator.as_str(), over.reason, over.missed)).collect();
    let expected = [
        ("10.1.2.1:11001", Reason::TimedOut, [0, 50]),
        ("141.42.64.125:56730", Reason::Finished, [0, 0]),
        ("10.20.80.1:50343", Reason::Finished, [0, 0]),
    ];
    assert_eq!(over, expected);
    assert_eq!((counts.tcp_packets, counts.gaps), (47, 1));
}

/// How often each is there, whatever their order.
fn tally(payloads: impl IntoIterator<Item = Vec<u8>>) -> HashMap<Vec<u8>, usize> {
    let mut tally = HashMap::new();
    payloads.into_iter().for_each(|payload| *tally.entry(payload).or_default() += 1);
    tally
}

#[test]
fn fragments_as_etherparse_puts_them_together() {
    let Some(folder) = captures() else { return };
    let mut ours = Defragmenter::new(&defrag::Limits { datagrams: 1000, bytes: 64 << 20, ..defrag::Limits::default() });
    let mut theirs = IpDefragPool::<(), ()>::new();
    let (mut buffer, mut our_wholes, mut their_wholes) = (Vec::new(), Vec::new(), Vec::new());
    let mut fragments = 0;
    read(&folder.join("ip-fragments.pcap"), |record| {
        let Ok(datagram) = datagram(record) else { return };
        if datagram.fragment.is_none() {
            return;
        }
        fragments += 1;
        if let Some(whole) = ours.fragment(0, record.wire_len, &datagram, &mut buffer) {
            our_wholes.push(whole.datagram.payload.to_vec());
        }
        let sliced = SlicedPacket::from_ethernet(record.data).unwrap();
        if let Ok(Some(whole)) = theirs.process_sliced_packet(&sliced, (), ()) {
            their_wholes.push(whole.payload);
        }
    });
    assert_eq!((fragments, ours.counts().fragments), (1859, 1859));
    assert_eq!((our_wholes.len(), ours.counts().duplicates, ours.counts().overlaps), (190, 617, 0));
    assert!(tally(our_wholes) == tally(their_wholes));
}

#[test]
fn every_capture_adds_up_with_any_limits() {
    let Some(folder) = captures() else { return };
    let tight = Limits { held: 4000, ..Limits::new(64 << 10) };
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.contains("pcap") {
            continue;
        }
        let (mut whole, mut fragments, mut others) = (0_u64, 0, 0);
        read(&path, |record| {
            agree(record).unwrap_or_else(|error| panic!("{name}: {error}"));
            match decode(record.link, record.data) {
                Decoded::Fragment => fragments += 1,
                Decoded::V4(_) | Decoded::V6(_) => whole += 1,
                Decoded::OtherIp => others += 1,
                Decoded::Undecoded | Decoded::Malformed => {}
            }
        });
        for limits in [plenty(), tight] {
            let Played { partition, log } = play(&path, &limits);
            let counts = partition.conversations().counts();
            let put_together = partition.fragments().counts().whole;
            assert_eq!(partition.fragments().counts().fragments, fragments, "{name}");
            let taken = counts.tcp_packets + counts.udp_packets + partition.others();
            assert!((whole + others..=whole + others + put_together).contains(&taken), "{name}");
            // Every packet is in a conversation, or said to be in none.
            let packets: u64 = log.over.iter().map(|over| over.packets[0] + over.packets[1]).sum();
            let frames = packets + counts.strays;
            assert!(frames + counts.bare_syns >= counts.tcp_packets + counts.udp_packets, "{name}");
            assert_eq!(counts.conversations, log.over.len() as u64, "{name}");
            assert_eq!(counts.gap_bytes, log.over.iter().flat_map(|over| over.missed).sum::<u64>(), "{name}");
            assert_eq!(partition.reserved_bytes(), 0, "{name}");
        }
    }
}
