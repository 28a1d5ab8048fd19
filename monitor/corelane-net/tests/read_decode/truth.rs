//! The counters of real captures against known truth.

use std::collections::HashSet;
use std::path::Path;

use corelane_net::capture::{Options, ReadError, Reader};
use corelane_net::decode::{Decoded, TCP, Transport, datagram, decode, transport};

use crate::captures_folder::captures;

#[derive(Debug, Default, PartialEq, Eq)]
struct Counters {
    packets: u64,
    bytes: u64,
    tcp: u64,
    flows: u64,
    pairs: u64,
    malformed: u64,
    undecoded: u64,
}

type End = (u128, u16);

#[derive(Default)]
struct Tally {
    counters: Counters,
    /// Protocol, whether IPv6, and the two ends in order.
    flows: HashSet<(u8, bool, End, End)>,
    pairs: HashSet<(bool, u128, u128)>,
}

impl Tally {
    fn packet(&mut self, is_v6: bool, packet: Transport<u128>) {
        self.counters.tcp += u64::from(packet.protocol == TCP);
        let ends = [(packet.source, packet.source_port), (packet.destination, packet.destination_port)];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        self.flows.insert((packet.protocol, is_v6, low, high));
        self.pairs.insert((is_v6, low.0, high.0));
    }

    fn finish(mut self) -> Counters {
        self.counters.flows = self.flows.len() as u64;
        self.counters.pairs = self.pairs.len() as u64;
        self.counters
    }
}

fn count(file: &Path, options: &Options, step: usize) -> (Counters, Vec<ReadError>) {
    let mut reader = Reader::open(file, options).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut tally = Tally::default();
    let mut errors = Vec::new();
    loop {
        let read = reader.read(step, |record| {
            tally.counters.packets += 1;
            tally.counters.bytes += u64::from(record.wire_len);
            let decoded = match decode(record.link, record.data) {
                Decoded::Fragment => {
                    let datagram = datagram(&record).expect("a fragment");
                    match transport(&datagram) {
                        Ok(packet) if datagram.is_v4 => Decoded::V4(packet.to_v4()),
                        Ok(packet) => Decoded::V6(packet),
                        Err(_) => Decoded::Fragment,
                    }
                }
                decoded => decoded,
            };
            match decoded {
                Decoded::V4(packet) => tally.packet(
                    false,
                    Transport {
                        source: packet.source.into(),
                        destination: packet.destination.into(),
                        source_port: packet.source_port,
                        destination_port: packet.destination_port,
                        protocol: packet.protocol,
                        flags: packet.flags,
                        hops: packet.hops,
                        is_at_zero: packet.is_at_zero,
                    },
                ),
                Decoded::V6(packet) => tally.packet(true, packet),
                Decoded::Fragment => {}
                Decoded::OtherIp => {}
                Decoded::Undecoded => tally.counters.undecoded += 1,
                Decoded::Malformed => tally.counters.malformed += 1,
            }
        });
        match read {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    (tally.finish(), errors)
}

#[test]
fn counters_of_real_captures() {
    let Some(folder) = captures() else { return };
    let expected = std::fs::read_to_string(folder.join("expected-portscans.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for line in expected.lines() {
        let truth: serde_json::Value = serde_json::from_str(line).unwrap();
        let name = truth["file"].as_str().unwrap();
        let number = |key: &str| truth[key].as_u64().unwrap();
        let truth = Counters {
            packets: number("packets"),
            bytes: number("bytes"),
            tcp: number("tcp"),
            flows: number("flows"),
            pairs: number("pairs"),
            malformed: number("malformed"),
            undecoded: number("undecoded"),
        };
        for (preload, step) in [(false, usize::MAX), (false, 1), (true, 1000)] {
            let (found, errors) = count(&folder.join(name), &Options::default().preload(preload), step);
            if found != truth {
                wrong.push(format!("{name} (preload {preload}, step {step}): found {found:?}, truth {truth:?}"));
            }
            let cut = name == "file-cut-http.pcap";
            if errors.len() != usize::from(cut) {
                wrong.push(format!("{name}: {errors:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_cut_capture_says_where() {
    let Some(folder) = captures() else { return };
    let (counters, errors) = count(&folder.join("file-cut-http.pcap"), &Options::default(), 10);
    assert_eq!(counters.packets, 25);
    let [ReadError::Cut { place, .. }] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!(place.record, 26);
}
