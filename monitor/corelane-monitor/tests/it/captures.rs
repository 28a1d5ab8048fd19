//! Real captures, and made ones, with known truth.

use crate::captures_folder::captures;
use corelane_monitor::{Alert, Plan, Probe, ProbeScan, Progress, Report, Settings};
use corelane_net::capture::{Options, Reader};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn run(file: &Path, settings: &Settings) -> Report {
    let reader = Reader::open(file, &Options::default()).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let plan = Plan { analyzers: 0, ..Plan::default() };
    let damage = |_, error| println!("{}: {error}", file.display());
    crate::runs::run([reader], settings, &plan, &Progress::new(), damage).expect("a plan")
}

#[test]
fn every_capture_gives_the_expected_report() {
    let Some(folder) = captures() else { return };
    let expected = fs::read_to_string(folder.join("expected-portscans.jsonl")).expect("expected reports");
    let mut checked = 0;
    for line in expected.lines() {
        let mut expected: serde_json::Map<String, Value> = serde_json::from_str(line).expect("a JSON object");
        let file = expected.remove("file").expect("file");
        let file = file.as_str().expect("a name");
        let mut json = Vec::new();
        run(&folder.join(file), &Settings::default()).write_json(&mut json).expect("memory");
        let found: Value = serde_json::from_slice(&json).expect("JSON");
        assert_eq!(found, Value::Object(expected), "{file}");
        checked += 1;
    }
    assert!(checked >= 30, "only {checked} captures");
}

/// Which host probed which, by what, and when the threshold was crossed. The counts are those of TRUTH.json (and one
/// host it does not list); an independent program found the same scans and times by the same rules.
#[test]
fn scans_by_other_probes_are_named_for_what_they_are() {
    let Some(folder) = captures() else { return };
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.to_string_lossy().contains(".pcap"));
    assert!(files.len() >= 30, "only {} captures", files.len());
    for path in files {
        let vertical = |probe, source: &str, destination: &str, count, time_ns| {
            let (source, destination) = (source.parse().expect("an address"), destination.parse().expect("an address"));
            ProbeScan { probe, scan: Alert::Vertical { source, destination, count, time_ns } }
        };
        let sweep = |host: &str, count, time_ns| vertical(Probe::Udp, "10.20.0.110", host, count, time_ns);
        let expected = match path.file_name().expect("a name").to_str().expect("UTF-8") {
            "scan-xmas.pcap" => {
                vec![vertical(Probe::Xmas, "192.168.1.10", "192.168.1.25", 1000, 1_231_012_261_708_184_000)]
            }
            "scan-masscan-udp.pcap" => {
                vec![vertical(Probe::Udp, "172.31.15.102", "198.124.152.15", 1001, 1_566_411_438_034_289_000)]
            }
            "scan-network-sweep.pcap" => vec![
                ProbeScan {
                    probe: Probe::Ping,
                    scan: Alert::Horizontal {
                        source: "10.20.0.110".parse().expect("an address"),
                        port: 0,
                        count: 241,
                        time_ns: 1_321_019_195_378_100_000,
                    },
                },
                sweep("192.168.10.11", 1001, 1_321_019_460_266_566_000),
                sweep("192.168.10.53", 1001, 1_321_019_460_266_635_000),
                sweep("192.168.10.54", 1001, 1_321_019_460_267_023_000),
                sweep("192.168.10.10", 369, 1_321_019_460_267_088_000),
            ],
            // No control and no ordinary traffic. In flags-matrix.pcap the segments that look like probes reply to
            // others.
            _ => vec![],
        };
        assert_eq!(run(&path, &Settings::default()).probe_scans, expected, "{}", path.display());
    }
}
