//! One report, byte for byte, however the work is spread: any number of analyzers, any queue, any capacity, any batch.

use corelane_monitor::{Counting, Plan, Progress, QueueKind, Settings, Sharing, run};
use corelane_net::capture::Reader;
use corelane_net::synth::{self, Config};
use std::fs;
use std::num::NonZeroU64;

#[path = "../../corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;
use captures_folder::captures;

const ANALYZERS: [usize; 6] = [0, 1, 2, 3, 7, 16];
const CAPACITIES: [usize; 3] = [2, 64, 2048];
/// Every number of analyzers with every queue and every capacity.
const PLANS: usize = ANALYZERS.len() * QueueKind::ALL.len() * CAPACITIES.len();
/// Captures up to this size go through every plan.
const SMALL: usize = 1 << 20;

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

fn plan(analyzers: usize, queue: QueueKind, capacity: usize) -> Plan {
    Plan { analyzers, queue, capacity, ..Plan::default() }
}

fn check(name: &str, capture: &[u8], plans: impl Iterator<Item = Plan>) -> usize {
    let alone = report(capture, &Plan { analyzers: 0, ..Plan::default() });
    let mut runs = 0;
    for plan in plans {
        let found = report(capture, &plan);
        assert_eq!(found.0, alone.0, "{name}, {plan:?}");
        assert_eq!(found.1, alone.1, "{name}, {plan:?}");
        runs += 1;
    }
    runs
}

/// Every number of analyzers with every queue and every capacity.
fn all() -> impl Iterator<Item = Plan> {
    let queues = || QueueKind::ALL.into_iter();
    ANALYZERS
        .into_iter()
        .flat_map(move |n| queues().flat_map(move |queue| CAPACITIES.into_iter().map(move |c| plan(n, queue, c))))
}

/// Every number of analyzers with every queue, the capacities in turn so that each meets each queue, and batch sizes.
fn covering() -> impl Iterator<Item = Plan> {
    let turns = ANALYZERS.into_iter().enumerate().flat_map(|(i, analyzers)| {
        let queues = QueueKind::ALL.into_iter().enumerate();
        queues.map(move |(j, queue)| plan(analyzers, queue, CAPACITIES[(i + j) % CAPACITIES.len()]))
    });
    let batches = [(1, 2, 1), (2, 2, 2), (3, 64, 1), (7, 64, 7), (16, 64, 64), (2, 2048, 50), (1, 2048, 1024)];
    let batches = batches.into_iter().flat_map(|(analyzers, capacity, batch)| {
        let queues = QueueKind::ALL.into_iter().filter(|queue| queue.has_batch());
        queues.map(move |queue| Plan { batch: Some(batch), ..plan(analyzers, queue, capacity) })
    });
    turns.chain(batches)
}

/// Partitions that move all the time, with two queues in turn for every number of analyzers and capacity.
fn restless() -> impl Iterator<Item = Plan> {
    let plans = [(1, 2), (2, 64), (3, 2), (1, 2048), (7, 64), (2, 2)].into_iter().flat_map(|plan| [plan, plan]);
    let plans = plans.zip(QueueKind::ALL.into_iter().cycle()).map(|((n, c), queue)| plan(n, queue, c));
    plans.map(|plan| Plan { sharing: Sharing::Restless, ..plan })
}

#[test]
fn the_plans_cover_what_they_have_to() {
    assert_eq!((all().count(), PLANS), (126, 126));
    for queue in QueueKind::ALL {
        for capacity in CAPACITIES {
            assert!(covering().any(|plan| plan.queue == queue && plan.capacity == capacity && plan.analyzers > 0));
        }
        assert!(restless().any(|plan| plan.queue == queue));
        for analyzers in ANALYZERS {
            assert!(covering().any(|plan| plan.queue == queue && plan.analyzers == analyzers));
        }
    }
}

#[test]
fn small_captures_through_every_plan_and_large_ones_through_some() {
    let Some(folder) = captures() else { return };
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let (mut small, mut large) = (0, 0);
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !name.contains(".pcap") {
            continue;
        }
        let capture = fs::read(&path).expect("a file");
        if capture.len() <= SMALL {
            assert_eq!(check(&name, &capture, all()), PLANS);
            small += 1;
            check(&name, &capture, restless());
        } else {
            check(&name, &capture, covering().chain(restless()));
            large += 1;
        }
    }
    assert!(small >= 27 && large >= 3, "{small} small captures, {large} large ones");
}

#[test]
fn generated_captures() {
    let capture = |packets, seed| {
        let config = Config { packets, seed, hosts: 2000, probe_scans: 8, ..Config::default() };
        synth::capture(config).expect("a valid configuration")
    };
    for seed in 0..3 {
        assert_eq!(check("2,000 packets", &capture(2_000, seed), all()), PLANS);
        check("2,000 packets", &capture(2_000, seed), restless());
    }
    check("50,000 packets", &capture(50_000, 1), covering().chain(restless()));
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
fn fixed_partitions_stay() {
    let capture = synth::capture(Config { packets: 200_000, ..Config::default() }).expect("a valid configuration");
    for analyzers in [1, 2] {
        let plan = Plan { sharing: Sharing::Fixed, capacity: 2, ..plan(analyzers, QueueKind::Lane, 2) };
        let reader = Reader::from_bytes(capture.clone()).expect("a capture");
        let report = run([reader], &Settings::default(), &plan, &Progress::new(), |_, _| {}).expect("a plan");
        assert_eq!(report.dispatcher_packets, 0);
    }
}
