//! Honest drops: what the kernel received is what was analysed and what was dropped, everywhere it is said.

use rustix::process::Signal;

use crate::net::{inside, ipv4};
use crate::support::{
    Folder, Live, assert_same_of, events, labelled, pair, query_of, replay, sample, sending, stats, under_load,
    wait_for,
};

/// Frames of a flood for each ring: ten times what a ring of 1 MiB holds.
const FLOOD: u32 = 60_000;
/// Bytes of each frame.
const LENGTH: u64 = 74;

/// Floods a program that stands still, with rings and options; of each three frames the first is UDP. One of
/// `one_in` frames passes.
fn flood(rings: u32, options: &[&str], one_in: u32) {
    let folder = Folder::new();
    let eve = folder.path("eve.json");
    pair(0);
    let (flood, count) = (rings * FLOOD, rings.to_string());
    let passing = u64::from(flood / one_in);
    let mut all = vec!["--ring-size", "1M", "--stats-interval", "1s", "--eve", eve.to_str().unwrap()];
    all.extend(["--rings", &count]);
    all.extend(options);
    let live = Live::start(0, all);
    live.signal(Signal::STOP);
    sending(0, |sender| {
        for number in 0..flood {
            // To many hosts, as a UDP datagram without an answer: nothing of it is an event. So all rings have frames.
            sender.send(&ipv4(1, 2 + number % 16, if number.is_multiple_of(3) { 17 } else { 6 }, number));
        }
    });
    live.signal(Signal::CONT);
    live.wait_until_received(passing as usize);
    // Once all is analysed, the counts of the kernel and those of the analysis agree.
    wait_for("the analysis of the rest", || {
        let samples = live.scrape();
        assert_eq!(sample(&samples, "capture_packets_total") as u64, passing);
        let (drops, bytes) = (sample(&samples, "capture_drops_total") as u64, sample(&samples, "bytes_total") as u64);
        assert!(drops > 0 && labelled(&samples, "capture_freezes_total", "b0") > 0.0);
        assert!(bytes / LENGTH + drops <= passing, "{bytes} bytes, {drops} dropped");
        (bytes == (passing - drops) * LENGTH).then_some(())
    });
    assert_eq!(live.times_said("packets were dropped"), 1, "{}", live.said());
    let outcome = live.stop().code(0);
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    let report = outcome.json();
    let (capture, analysed) = (&report["capture"], report["packets"].as_u64().unwrap());
    let dropped = capture["kernel_drops"].as_u64().unwrap();
    assert_eq!(capture["kernel_packets"], passing, "{report}");
    assert_eq!(analysed + dropped, passing, "{report}");
    assert!(analysed > 0 && dropped > passing / 2, "{report}");
    let all = stats(&eve);
    assert!(all.len() >= 2, "while it runs, and at the end: {all:?}");
    let last = all.last().unwrap();
    assert_eq!(last["capture"]["kernel_packets"], passing, "{last}");
    assert_eq!(last["capture"]["kernel_drops"], dropped, "{last}");
    assert_eq!(last["decoder"]["pkts"], analysed, "{last}");
    for one in &all {
        let number = |pointer: &str| one.pointer(pointer).unwrap().as_u64().unwrap();
        let [received, dropped] = ["/capture/kernel_packets", "/capture/kernel_drops"].map(number);
        assert!(number("/decoder/pkts") + dropped <= received, "{one}");
    }
}

/// UDP over IPv4.
const UDP: &str = "6\n40 0 0 12\n21 0 3 2048\n48 0 0 23\n21 0 1 17\n6 0 0 262144\n6 0 0 0\n";

fn flood_with_a_filter(rings: u32) {
    let folder = Folder::new();
    let program = folder.file("udp.bpf", UDP);
    flood(rings, &["--filter-program", program.to_str().unwrap()], 3);
}

#[test]
fn a_flood_is_analysed_or_counted_as_dropped() {
    inside("drops::a_flood_is_analysed_or_counted_as_dropped", || flood(1, &[], 1));
}

#[test]
fn a_flood_of_three_rings_is_analysed_or_counted_as_dropped() {
    inside("drops::a_flood_of_three_rings_is_analysed_or_counted_as_dropped", || flood(3, &[], 1));
}

#[test]
fn a_filter_keeps_what_it_refuses_out_of_the_counts() {
    inside("drops::a_filter_keeps_what_it_refuses_out_of_the_counts", || flood_with_a_filter(1));
}

#[test]
fn a_filter_of_three_rings_keeps_what_it_refuses_out_of_the_counts() {
    inside("drops::a_filter_of_three_rings_keeps_what_it_refuses_out_of_the_counts", || flood_with_a_filter(3));
}

/// What comes while it ends was either captured, and is analysed, or was not.
fn end_in_the_middle(rings: u16) {
    let folder = Folder::new();
    let (eve, tee) = (folder.path("eve.json"), folder.path("tee.pcapng"));
    pair(0);
    let count = rings.to_string();
    let outputs = ["--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap()];
    let live = Live::start(0, outputs.into_iter().chain(["--rings", &count]));
    let end = || {
        live.wait_until_received(5000);
        live.signal(Signal::INT);
        live.finish()
    };
    let (_, outcome) = under_load(0, |sender, number| sender.send(&query_of(1 + number % 3, number)), end);
    // Also the end by Ctrl-C is one that was wanted.
    let report = outcome.code(0).json();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let received = number(&report["capture"]["kernel_packets"]);
    assert_eq!(number(&report["packets"]) + number(&report["capture"]["kernel_drops"]), received, "{report}");
    assert!(received >= 5000);
    let expected = replay(&[tee], &folder.path("replay.json"), &["--tunnels=off"]);
    assert_same_of(rings, &events(&eve), &expected, "up to the end");
}

#[test]
fn an_end_in_the_middle_of_a_flood_leaves_nothing_out() {
    inside("drops::an_end_in_the_middle_of_a_flood_leaves_nothing_out", || end_in_the_middle(1));
}

#[test]
fn an_end_of_three_rings_in_the_middle_of_a_flood_leaves_nothing_out() {
    inside("drops::an_end_of_three_rings_in_the_middle_of_a_flood_leaves_nothing_out", || end_in_the_middle(3));
}
