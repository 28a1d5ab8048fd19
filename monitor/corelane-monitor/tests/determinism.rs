//! One report, byte for byte, however the work is spread: any number of analyzers, any capacity, and partitions that
//! move.

use corelane_monitor::{Counting, Plan, Progress, Settings};
use corelane_net::capture::Reader;
use corelane_net::synth::{self, Config};
use std::fs;
use std::num::NonZeroU64;

#[path = "../../corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;
use captures_folder::captures;
#[allow(dead_code, reason = "not all are needed everywhere")]
#[path = "support/runs.rs"]
mod runs;
use runs::{plan, run};

const ANALYZERS: [usize; 7] = [0, 1, 2, 3, 4, 7, 16];
const CAPACITIES: [usize; 3] = [2, 64, 2048];

/// The JSON report, and all that the summary shows.
fn report(capture: &[u8], plan: &Plan) -> (String, String) {
    let reader = Reader::from_bytes(capture.to_vec()).expect("a capture");
    let counting = NonZeroU64::new(10_000).map(|every| Counting { every, top: 10 });
    let settings = Settings { counting, ..Settings::default() };
    let report = run([reader], &settings, plan, &Progress::new(), |_, _| {});
    let mut report = report.unwrap_or_else(|error| panic!("{plan:?}: {error}"));
    assert_eq!(report.analyzer_packets.len(), plan.analyzers.max(1));
    // The shares alone depend on the plan; not their sum.
    report.analyzer_packets = vec![report.analyzer_packets.iter().sum::<u64>() + report.dispatcher_packets];
    report.dispatcher_packets = 0;
    let mut json = Vec::new();
    report.write_json(&mut json).expect("memory");
    (String::from_utf8(json).expect("UTF-8"), format!("{report:?}"))
}

fn check(name: &str, capture: &[u8]) {
    let alone = report(capture, &Plan { analyzers: 0, ..Plan::default() });
    for plan in all().chain(restless()) {
        let found = report(capture, &plan);
        assert_eq!(found.0, alone.0, "{name}, {plan:?}");
        assert_eq!(found.1, alone.1, "{name}, {plan:?}");
    }
}

/// Every number of analyzers with every capacity.
fn all() -> impl Iterator<Item = Plan> {
    ANALYZERS.into_iter().flat_map(|n| CAPACITIES.into_iter().map(move |c| plan(n, c)))
}

/// Partitions that move all the time.
fn restless() -> impl Iterator<Item = Plan> {
    let plans = [(1, 2), (2, 64), (3, 2), (1, 2048), (7, 64), (2, 2)].into_iter();
    plans.map(|(n, c)| Plan { restless: true, ..plan(n, c) })
}

#[test]
fn real_captures() {
    let Some(folder) = captures() else { return };
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.retain(|path| path.to_string_lossy().contains(".pcap"));
    for path in &files {
        check(&path.to_string_lossy(), &fs::read(path).expect("a file"));
    }
    assert!(files.len() >= 30, "{}", files.len());
}

#[test]
fn generated_captures() {
    for (packets, seed) in [(2_000, 0), (2_000, 1), (2_000, 2), (50_000, 1)] {
        let config = Config { packets, seed, hosts: 2000, probe_scans: 8, ..Config::default() };
        check(&format!("{packets} packets"), &synth::capture(config).expect("a valid configuration"));
    }
}

#[test]
fn restless_partitions_are_analysed_by_either_stage() {
    let capture = synth::capture(Config { packets: 50_000, ..Config::default() }).expect("a valid configuration");
    for plan in restless() {
        let reader = Reader::from_bytes(capture.clone()).expect("a capture");
        let report = run([reader], &Settings::default(), &plan, &Progress::new(), |_, _| {}).expect("a plan");
        let own = report.dispatcher_packets;
        let others = report.analyzer_packets.iter().sum::<u64>();
        assert!(own > 1_000 && others > 1_000, "{plan:?}: {own} and {others} packets");
    }
}

#[test]
fn partitions_stay_where_the_stages_share_a_cpu() {
    let capture = synth::capture(Config { packets: 200_000, ..Config::default() }).expect("a valid configuration");
    let cpu = core_affinity::get_core_ids().expect("CPUs")[0].id;
    for analyzers in [1, 2] {
        let plan = Plan { cpus: vec![cpu], ..plan(analyzers, 2) };
        let reader = Reader::from_bytes(capture.clone()).expect("a capture");
        let report = run([reader], &Settings::default(), &plan, &Progress::new(), |_, _| {}).expect("a plan");
        assert_eq!(report.dispatcher_packets, 0);
    }
}
