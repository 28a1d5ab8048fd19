//! Real captures, and made ones, with known truth.

use corelane_monitor::{Progress, Report, Rule, Settings, run_single};
use corelane_net::capture::{Options, Reader};
use serde_json::Value;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The folder named by CORELANE_CAPTURES, else the one beside the workspace. Says so loudly if there is none.
fn captures() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("CORELANE_CAPTURES")
        .map_or_else(|| workspace.join("../shared/captures"), |folder| workspace.join(folder));
    if folder.join("expected-portscans.jsonl").is_file() {
        return Some(folder);
    }
    // Not by a macro, whose output the test harness would keep to itself.
    let line = format!("SKIPPED: no captures in {} (set CORELANE_CAPTURES)\n", folder.display());
    io::stderr().write_all(line.as_bytes()).expect("standard error");
    None
}

fn run(file: &Path, settings: &Settings) -> Report {
    let reader = Reader::open(file, &Options::default()).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    run_single([reader], settings, &Progress::new(), |_, error| println!("{}: {error}", file.display()))
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

/// By the paper's rule the failed attempts are the keys with a SYN and without a SYN-ACK, which were counted apart. (The
/// count for flags-matrix.pcap takes SYN+FIN and SYN+RST for SYNs, so it is left out.)
#[test]
fn the_paper_rule_gives_the_known_sets() {
    let Some(folder) = captures() else { return };
    let settings = Settings { rule: Rule::Paper, ..Settings::default() };
    for (file, failed, alerts) in [
        ("scan-syn-vertical.pcap", 997, vec![997]),
        ("scan-connect-retries.pcap", 995, vec![995]),
        ("scan-network-sweep.pcap", 5218, vec![231, 997, 997, 998, 999, 999]),
        ("control-p2p-gnutella.pcap", 79, vec![79]),
        ("http-mixed.pcap", 0, vec![]),
        ("malformed-fuzz-be.pcap", 6, vec![]),
        ("scan-horizontal-445-vlan.pcap", 9, vec![]),
    ] {
        let report = run(&folder.join(file), &settings);
        let mut counts: Vec<_> = report.alerts.iter().map(|alert| alert.count()).collect();
        counts.sort_unstable();
        assert_eq!((report.failed_attempts, report.rejected, counts), (failed, 0, alerts), "{file}");
    }
}
