//! Stages that fail, and runs that are stopped.

use crate::runs::inspect;
use crate::support::plan;
use corelane_monitor::{Inspection, Progress, Settings};
use corelane_net::capture::Reader;
use corelane_net::synth::Conversations;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[test]
fn a_panic_of_the_output_ends_the_run() {
    let capture = Conversations { seed: 1, conversations: 3000, trouble: 0, spoofed: 0 }.capture();
    for (analyzers, capacity) in [(0, 64), (1, 2), (1, 8192), (3, 64)] {
        let mut lines = 0;
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let out = |text: &[u8]| {
                lines += text.len();
                assert!(lines < 100_000, "enough");
            };
            let reader = Reader::from_bytes(capture.clone()).expect("a capture");
            let plan = plan(analyzers, capacity);
            let progress = Progress::new();
            inspect([reader], &Settings::default(), &Inspection::default(), &plan, &progress, |_, _| {}, out)
        }));
        let panic = ran.expect_err("the panic goes on");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"enough"));
    }
}

#[test]
fn a_run_that_is_stopped_tells_what_it_found() {
    let capture = Conversations { seed: 1, conversations: 3000, trouble: 0, spoofed: 0 }.capture();
    for analyzers in [0, 1, 3] {
        let progress = Progress::new();
        let mut text = Vec::new();
        let reader = Reader::from_bytes(capture.clone()).expect("a capture");
        let out = |lines: &[u8]| {
            text.extend_from_slice(lines);
            progress.stop();
        };
        let plan = plan(analyzers, 64);
        let ran = inspect([reader], &Settings::default(), &Inspection::default(), &plan, &progress, |_, _| {}, out);
        let (report, findings) = ran.expect("a plan");
        assert!(report.packets > 1000 && findings.seen.http_requests > 0);
        let flows = findings.conversations.conversations;
        let events =
            text.split(|&byte| byte == b'\n').filter(|line| line.windows(7).any(|name| name == b"\"flow\":")).count();
        assert_eq!(events as u64, flows);
    }
}
