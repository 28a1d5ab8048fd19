//! The same output for any number of analyzers and any capacity.

use crate::captures_folder::captures;
use crate::packets::Capture;
use crate::support::Watched;
use crate::support::{Act, Case, Paced, plan, plans, records};
use corelane_monitor::{Inspection, Plan, Source};
use corelane_net::capture::Reader;
use corelane_net::conversation::{LEAST_BYTES, Limits};
use corelane_net::defrag;
use corelane_net::synth::{self, Config, Conversations};
use std::fs;

/// Runs the case with every plan.
fn check<S: Source + Send>(name: &str, case: &Case, plans: &[Plan], mut source: impl FnMut() -> S) -> Watched {
    let alone = case.alone(source());
    for plan in plans {
        if let Some(difference) = alone.difference(&case.watch(source(), plan)) {
            panic!("{name}, {plan:?}: {difference}");
        }
    }
    alone
}

fn of_bytes(name: &str, case: &Case, plans: &[Plan], capture: &[u8]) -> Watched {
    check(name, case, plans, || Reader::from_bytes(capture.to_vec()).expect("a capture"))
}

fn scarce() -> Case {
    let inspection = Inspection {
        conversations: Limits::new(LEAST_BYTES),
        fragments: defrag::Limits { datagrams: 2, bytes: 16 << 10, ..defrag::Limits::default() },
        ..Inspection::default()
    };
    Case { inspection, ..Case::default() }
}

#[test]
fn real_captures() {
    let Some(folder) = captures() else { return };
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    let plans = plans();
    let mut captures = 0;
    for (number, path) in files.iter().filter(|path| path.to_string_lossy().contains(".pcap")).enumerate() {
        let bytes = fs::read(path).expect("a file");
        // Some plans for each, so that all have their turn.
        let count = if bytes.len() < 100 << 10 { plans.len() } else { 2 };
        let some: Vec<_> = plans.iter().cycle().skip(number * 2 + 1).take(count).cloned().collect();
        of_bytes(&path.to_string_lossy(), &Case::default(), &some, &bytes);
        of_bytes(&path.to_string_lossy(), &scarce(), &some[..1], &bytes);
        captures += 1;
    }
    assert!(captures >= 30, "{captures}");
}

#[test]
fn made_up_conversations() {
    let plans = plans();
    for (seed, trouble) in [(1, 0), (2, 20), (3, 100)] {
        let traffic = Conversations { seed, conversations: 800, trouble, spoofed: 300 };
        let run = of_bytes("generated", &Case::default(), &plans, &traffic.capture());
        assert!(run.findings.conversation_bytes > 0 && run.findings.seen.http_requests > 300);
    }
    let scarce_traffic = Conversations { seed: 4, conversations: 4000, trouble: 10, spoofed: 70_000 };
    let run = of_bytes("scarce", &scarce(), &plans[2..4], &scarce_traffic.capture());
    assert!(run.findings.conversations.evicted > 1000, "{:?}", run.findings.conversations);
}

/// The same traffic with seconds between its packets: all that expires does.
#[test]
fn conversations_that_expire() {
    let traffic = Conversations { seed: 4, conversations: 300, trouble: 50, spoofed: 100 };
    let (link, mut records) = records(traffic.capture());
    for (number, (time_ns, _)) in (0..).zip(&mut records) {
        *time_ns += number / 20 * 700_000_000;
    }
    let acts: Vec<_> = records.into_iter().map(|(time_ns, data)| Act::Record(time_ns, data)).collect();
    let mut case = Case::default();
    for snapshot_s in [0, 1, 10] {
        case.continuous.snapshot_s = snapshot_s;
        let run = check("slow", &case, &plans(), || Paced::new(link, acts.clone(), None));
        assert!(run.findings.conversations.timed_out > 50, "{:?}", run.findings.conversations);
        assert!(run.snapshots() > 10, "{}", run.snapshots());
    }
}

#[test]
fn synthetic_traffic() {
    let config = Config { packets: 60_000, probe_scans: 8, ..Config::default() };
    let (capture, _) = Capture::synthetic(config);
    let mut case = Case::default();
    (case.continuous.forget_s, case.continuous.suppress_s, case.continuous.snapshot_s) = (7, 4, 2);
    let run = check("synthetic", &case, &plans(), || capture.clone());
    assert!(run.scans().len() > 30 && run.snapshots() > 10, "{} {}", run.scans().len(), run.snapshots());
}

/// Under a limit the oldest go first, whichever stage holds them.
#[test]
fn what_is_evicted_under_a_limit() {
    let capture = synth::capture(Config { packets: 200_000, hosts: 8000, ..Config::default() }).expect("a capture");
    let mut case = Case::scans_only();
    case.settings.table_bytes = Some(2 << 20);
    let some = [plan(1, 64), plan(3, 2048), plan(4, 100)];
    let run = of_bytes("limited", &case, &some, &capture);
    let evicted = run.report.evicted;
    assert!(evicted.flows > 1000 && evicted.failures > 100, "{evicted:?}");
    assert!(run.report.refused.is_empty(), "nothing is refused for good");
}
