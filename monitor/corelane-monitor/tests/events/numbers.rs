//! Which packet an event says it came from.

use crate::support::{of_bytes, plan};
use corelane_monitor::Inspection;
use corelane_net::capture::{Reader, Record};
use corelane_net::conversation::{LEAST_BYTES, Limits};
use corelane_net::decode::{datagram, mapped};
use corelane_net::synth::Conversations;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The addresses of every record of a capture, the lesser first.
fn addresses(capture: &[u8]) -> Vec<Option<[u128; 2]>> {
    let mut reader = Reader::from_bytes(capture.to_vec()).expect("a capture");
    let mut all = Vec::new();
    let mut take = |record: Record<'_>| {
        let found = datagram(&record).ok();
        all.push(found.map(|found| in_order([found.source, found.destination])));
    };
    while reader.read(4096, &mut take).expect("it is whole") > 0 {}
    all
}

fn in_order(mut ends: [u128; 2]) -> [u128; 2] {
    ends.sort_unstable();
    ends
}

fn address(value: &Value) -> u128 {
    match value.as_str().expect("text").parse().expect("an address") {
        IpAddr::V4(address) => mapped(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[test]
fn a_packet_that_is_named_exists_and_is_of_the_conversation() {
    let scarce = Inspection { conversations: Limits::new(LEAST_BYTES), ..Inspection::default() };
    for (inspection, spoofed) in [(Inspection::default(), 500), (scarce, 70_000)] {
        // Many a connection is not closed, and some requests have no answer.
        let capture = Conversations { seed: 4, conversations: 6000, trouble: 100, spoofed }.capture();
        let addresses = addresses(&capture);
        let run = of_bytes(&capture, &inspection, &plan(2, 64));
        let mut counts = BTreeMap::<_, [u64; 2]>::new();
        for event in run.events() {
            let kind = event["event_type"].as_str().expect("a type").to_owned();
            let number = event.get("pcap_cnt").map(|number| number.as_u64().expect("a number"));
            counts.entry(kind).or_default()[usize::from(number.is_some())] += 1;
            let Some(number) = number else { continue };
            let packet = addresses.get(number as usize - 1).unwrap_or_else(|| panic!("no such packet: {event}"));
            let ends = in_order([address(&event["src_ip"]), address(&event["dest_ip"])]);
            assert_eq!(*packet, Some(ends), "a packet of others: {event}");
        }
        assert_eq!(counts["flow"][1], 0);
        assert!(counts["http"][0] > 0 && counts["http"][1] > 100 && counts["dns"][0] == 0, "{counts:?}");
    }
}
