//! Times that are wrong: of one packet, and of a clock that was set back.

use crate::packets::{ACK, Packet, RST, SECOND, START, SYN, tcp};
use crate::support::{Act, Case, Paced, Watched, plan, records};
use corelane_monitor::{Jumps, ScanState};
use corelane_net::capture::LinkType;
use corelane_net::synth::Conversations;
use serde_json::Value;

const HOUR: u64 = 3_600 * SECOND;

/// Ports that are refused, four a second.
fn scan(begin_ns: u64, from: &str, ports: u64) -> Vec<Packet> {
    let refused = |port: u64| {
        let (time_ns, from, to) =
            (begin_ns + port * SECOND / 4, format!("{from} 999"), format!("10.0.0.2 {}", 50 + port));
        [tcp(time_ns, &from, &to, SYN), tcp(time_ns + 1_000, &to, &from, RST | ACK)]
    };
    (0..ports).flat_map(refused).collect()
}

fn watch(link: LinkType, records: &[(u64, Vec<u8>)], analyzers: usize) -> Watched {
    let acts = records.iter().map(|(time_ns, data)| Act::Record(*time_ns, data.clone())).collect();
    Case::default().watch(Paced::new(link, acts, None), &plan(analyzers, 64))
}

/// The events, but for what depends on the number of packets and on how far the last of them is.
fn events(run: &Watched) -> Vec<Value> {
    let mut events: Vec<Value> = run
        .text
        .split_inclusive(|&byte| byte == b'\n')
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    for event in &mut events {
        event.as_object_mut().expect("an object").remove("pcap_cnt");
    }
    events
}

#[test]
fn one_packet_with_a_wrong_time_changes_nothing_else() {
    let (link, mut sound) = records(Conversations { seed: 3, conversations: 40, trouble: 20, spoofed: 5 }.capture());
    let begin_ns = sound[0].0;
    sound.extend(scan(begin_ns + SECOND / 3, "10.9.9.9", 30).iter().map(|packet| (packet.time_ns, packet.frame())));
    sound.sort_by_key(|&(time_ns, _)| time_ns);
    let stray = tcp(0, "10.7.7.7 7", "10.8.8.8 8", ACK).frame();
    for analyzers in [0, 2] {
        let plain = watch(link, &sound, analyzers);
        assert_eq!(plain.scans().iter().filter(|scan| scan.state == ScanState::Found).count(), 1);
        // Not of the first two: none can say which of them is wrong.
        for place in [0, 2, sound.len() / 3, sound.len() - 2] {
            let near_ns = sound[place].0;
            for time_ns in [near_ns + HOUR, near_ns - HOUR, near_ns + 100_000 * HOUR, 0, u64::MAX] {
                let mut records = sound.clone();
                records.insert(place, (time_ns, stray.clone()));
                let run = watch(link, &records, analyzers);
                let what = format!("{analyzers} analyzers, place {place}, {time_ns} instead of {near_ns}");
                assert_eq!(plain.scans(), run.scans(), "{what}");
                assert_eq!(events(&plain), events(&run), "{what}");
                let ahead = u64::from(time_ns > near_ns);
                assert_eq!(run.report.jumps, Jumps { ahead, ..Jumps::default() }, "{what}");
            }
        }
    }
}

#[test]
fn a_scan_after_the_clock_was_set_back_is_found() {
    for back_ns in [2 * 60 * SECOND, HOUR, 800 * SECOND] {
        let before = scan(START + HOUR, "10.9.9.9", 30);
        let after = scan(START + HOUR + 30 * SECOND - back_ns, "10.9.9.8", 30);
        let records: Vec<_> = [before, after].concat().iter().map(|packet| (packet.time_ns, packet.frame())).collect();
        let runs = [0, 3].map(|analyzers| watch(LinkType::RAW, &records, analyzers));
        assert_eq!(runs[0].difference(&runs[1]), None);
        let found = runs[0].scans().into_iter().filter(|scan| scan.state == ScanState::Found).count();
        assert_eq!((found, runs[0].report.jumps.set_back), (2, 1), "{back_ns}");
        // The flows have the times of their packets.
        let first = |event: &Value| event["flow"]["start"].as_str().map(str::to_owned);
        let flows: Vec<_> = events(&runs[0]).iter().filter_map(first).collect();
        let is_early = |start: &&String| start.as_str() < "1970-01-01T01:16:40";
        assert_eq!((flows.len(), flows.iter().filter(is_early).count()), (60, 30), "{back_ns}");
    }
}
