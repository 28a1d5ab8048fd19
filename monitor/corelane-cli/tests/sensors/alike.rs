//! The alerts of any number of sensors and aggregators are those of one monitor.

use crate::captures_folder::captures;
use crate::nats::Client;
use crate::program::Folder;
use crate::site::{Carrier, Process, Site, assert_same, events, generate, names, of_shards, ranges, start, whole};
use crate::split::split;
use corelane_net::capture::{Options, Reader};
use std::path::{Path, PathBuf};

/// Low thresholds, so that captures without scans have alerts too.
const LOW: [&str; 4] = ["--vertical-threshold", "2", "--horizontal-threshold", "2"];

/// Runs sensors and aggregators over a capture. Gives the number of alerts, or `None` without a server.
#[track_caller]
fn compare(carrier: Carrier, capture: &Path, thresholds: &[&[&str]], sensors: &[usize]) -> Option<usize> {
    let parts = Folder::new();
    // One clock for all: a capture that has several would move each of its parts in another way.
    let [one] = &split(capture, 1, &parts.path(""))[..] else { panic!("one part") };
    let expected: Vec<_> = thresholds.iter().map(|options| whole(one, options, &parts)).collect();
    for &count in sensors {
        let site = Site::new(carrier)?;
        let names = names(count);
        let captures = split(capture, count, &parts.path(""));
        let mut processes: Vec<_> =
            names.iter().zip(&captures).map(|(name, capture)| site.sensor(name, capture)).collect();
        start(&mut processes);
        processes.iter_mut().for_each(Process::finish);
        for (options, alerts) in thresholds.iter().zip(&expected) {
            for shards in (1..=3).map(ranges) {
                let aggregator = |shards| {
                    let mut aggregator = site.aggregator(shards, &names);
                    // Without a later state, with which batches would be removed that the next ones need.
                    aggregator.add(["--until-ended", "--snapshot-interval", "1h"]).add(options.iter().copied());
                    aggregator
                };
                let mut aggregators: Vec<_> = shards.iter().map(aggregator).collect();
                start(&mut aggregators);
                for (aggregator, shards) in aggregators.iter_mut().zip(&shards) {
                    aggregator.finish();
                    let what = format!("{}: {count} sensors, shards {shards:?}, {options:?}", capture.display());
                    let eve = site.events(&aggregator.name);
                    assert_same(&events(&eve, "alert"), &of_shards(alerts, shards), &what);
                    assert_eq!(events(&eve, "sensor").len(), 2 * count, "{what}: each begins and ends");
                    // It would be gone on from by the next of these shards.
                    let _ = std::fs::remove_file(eve);
                }
                let _ = std::fs::remove_dir_all(site.batches().join("aggregators"));
                if let Some(server) = &site.server {
                    let gone =
                        Client::connect(server.port).ask("$JS.API.STREAM.DELETE.OBJ_corelane-snapshots", None, b"");
                    assert!(gone.contains("\"success\":true"), "{gone}");
                }
            }
        }
    }
    Some(expected.iter().map(Vec::len).sum())
}

/// All captures that can be opened.
fn all_captures() -> Option<Vec<PathBuf>> {
    let entries = std::fs::read_dir(captures()?).expect("a folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.is_file() && Reader::open(path, &Options::default()).is_ok());
    paths.sort();
    Some(paths)
}

/// Some that are small and have alerts.
fn some_captures() -> Option<Vec<PathBuf>> {
    let folder = captures()?;
    let names = ["scan-horizontal-445-vlan.pcap", "scan-masscan-udp.pcap", "semantics-both-scans.pcap"];
    Some(names.iter().map(|name| folder.join(name)).collect())
}

#[track_caller]
fn compare_all(carrier: Carrier, captures: &[PathBuf], thresholds: &[&[&str]], sensors: &[usize]) {
    let mut alerts = 0;
    for capture in captures {
        let Some(count) = compare(carrier, capture, thresholds, sensors) else { return };
        alerts += count;
    }
    assert!(alerts >= captures.len(), "{alerts} alerts of {} captures", captures.len());
}

#[test]
fn some_captures_are_told_alike_over_files() {
    let Some(captures) = some_captures() else { return };
    compare_all(Carrier::Files, &captures, &[&[], &LOW], &[1, 2, 5]);
}

#[test]
fn some_captures_are_told_alike_over_nats() {
    let Some(captures) = some_captures() else { return };
    compare_all(Carrier::Nats, &captures, &[&LOW], &[2, 5]);
}

#[test]
fn a_generated_capture_is_told_alike_over_files() {
    let folder = Folder::new();
    let capture = folder.path("all.pcap");
    generate(&capture, &["-n", "200k", "--rate", "1000"]);
    assert!(compare(Carrier::Files, &capture, &[&[]], &[1, 5]) > Some(20));
}

#[test]
#[ignore = "minutes; run it with --ignored"]
fn all_captures_are_told_alike_over_files() {
    let Some(captures) = all_captures() else { return };
    compare_all(Carrier::Files, &captures, &[&[], &LOW], &[1, 2, 5]);
}

#[test]
#[ignore = "minutes; run it with --ignored"]
fn all_captures_are_told_alike_over_nats() {
    let Some(captures) = all_captures() else { return };
    compare_all(Carrier::Nats, &captures, &[&[], &LOW], &[1, 2, 5]);
}

#[test]
#[ignore = "minutes, and 2 GB of disk; run it with --ignored"]
fn five_million_packets_are_told_alike() {
    let folder = Folder::new();
    let capture = folder.path("all.pcap");
    generate(&capture, &["-n", "5M"]);
    for carrier in [Carrier::Files, Carrier::Nats] {
        let Some(alerts) = compare(carrier, &capture, &[&[], &LOW], &[1, 2, 5]) else { return };
        assert!(alerts > 20, "{alerts}");
    }
}
