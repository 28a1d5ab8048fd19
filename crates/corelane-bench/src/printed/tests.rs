//! MCRingBuffer as printed, between the Dispatcher and the application stages: the same answer as without it, or a hang
//! that is noticed.

use super::{Error, Printed, inspect};
use corelane_monitor::{Findings, Inspection, Plan, Progress, Report, Settings, Source};
use corelane_net::capture::{LinkType, Options, Reader, Record};
use corelane_net::synth::Conversations;
use std::convert::Infallible;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

fn of<S: Source + Send>(source: S, printed: &Printed) -> Result<(Report, Findings, Vec<u8>), Error> {
    let mut text = Vec::new();
    let out = |lines: &[u8]| text.extend_from_slice(lines);
    let (settings, inspection, progress) = (Settings::default(), Inspection::default(), Progress::new());
    let (report, findings) = inspect([source], &settings, &inspection, printed, &progress, |_, _| {}, out)?;
    Ok((of_any_plan(report), findings, text))
}

/// The report without the parts that depend on the plan.
fn of_any_plan(report: Report) -> Report {
    Report { analyzer_packets: Vec::new(), dispatcher_packets: 0, ..report }
}

/// The report and events of one thread without any queue.
fn of_one_thread(capture: &[u8]) -> (Report, Findings, Vec<u8>) {
    let mut text = Vec::new();
    let out = |lines: &[u8]| text.extend_from_slice(lines);
    let (settings, inspection, progress) = (Settings::default(), Inspection::default(), Progress::new());
    let (reader, plan) = (Reader::from_bytes(capture.to_vec()), Plan { analyzers: 0, ..Plan::default() });
    let reader = reader.expect("a capture");
    let found = corelane_monitor::inspect([reader], &settings, &inspection, &plan, &progress, |_, _| {}, out);
    let (report, findings) = found.expect("a plan");
    (of_any_plan(report), findings, text)
}

#[test]
fn the_answer_is_that_of_one_thread() {
    let capture = Conversations { seed: 7, conversations: 6000, trouble: 10, spoofed: 500 }.capture();
    let (expected, found, lines) = of_one_thread(&capture);
    assert!(expected.packets > 10 * 4096, "several marks: {} packets", expected.packets);
    for stages in 0..=3 {
        for printed in [Printed::deadlock(stages), Printed::sane(stages)] {
            // No wait reaches this bound, however slow the machine is.
            let printed = Printed { bound: Duration::from_secs(600), ..printed };
            let mapped = Reader::from_bytes(capture.clone());
            let stream = Reader::from_read(io::Cursor::new(capture.clone()), None, &Options::default());
            for reader in [mapped, stream] {
                let (report, findings, text) = of(reader.expect("a capture"), &printed).expect("no hang");
                assert!(text == lines, "{printed:?}: {} and {} bytes", text.len(), lines.len());
                assert_eq!((&report, &findings), (&expected, &found), "{printed:?}");
            }
        }
    }
}

/// Packets between two hosts, so that one stage gets them all.
struct OnePair(usize);

impl Source for OnePair {
    type Error = Infallible;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let frame =
            [69, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 9, 9, 9, 8, 0, 12, 0, 0, 1, 2, 3, 4];
        let count = self.0.min(max);
        self.0 -= count;
        for _ in 0..count {
            let (wire_len, data) = (frame.len() as u32, &frame[..]);
            sink(Record { time_ns: 1_700_000_000_000_000_000, wire_len, link: LinkType::RAW, data });
        }
        Ok(count)
    }
}

#[test]
fn a_hang_is_noticed() {
    let bound = Duration::from_millis(200);
    let short = |printed| Printed { bound, ..printed };
    // The quiet stage has less than a batch of marks when the Dispatcher first waits for it.
    let hangs = of(OnePair(100_000), &short(Printed::deadlock(2)));
    assert!(matches!(hangs, Err(Error::Hang(after)) if after == bound), "{hangs:?}");
    // With one stage, or with few packets, there is no such wait.
    let printed = Printed { bound: Duration::from_secs(600), ..Printed::deadlock(1) };
    assert_eq!(of(OnePair(100_000), &printed).expect("no hang").0.packets, 100_000);
    let printed = Printed { stages: 2, ..printed };
    assert_eq!(of(OnePair(30_000), &printed).expect("no hang").0.packets, 30_000);
    // This ring is full before its first batch is complete.
    let hangs = of(OnePair(100_000), &Printed { slots: 64, ..short(Printed::deadlock(1)) });
    assert!(matches!(hangs, Err(Error::Hang(_))), "{hangs:?}");
}

#[test]
fn a_panic_of_the_output_ends_the_run() {
    let capture = Conversations { seed: 1, conversations: 3000, trouble: 0, spoofed: 0 }.capture();
    for printed in [Printed::deadlock(1), Printed::sane(3)] {
        let printed = Printed { bound: Duration::from_secs(600), ..printed };
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let reader = Reader::from_bytes(capture.clone()).expect("a capture");
            let (settings, inspection, progress) = (Settings::default(), Inspection::default(), Progress::new());
            inspect([reader], &settings, &inspection, &printed, &progress, |_, _| {}, |_| panic!("enough"))
        }));
        let panic = ran.expect_err("the panic goes on");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"enough"));
    }
}

#[test]
fn what_cannot_be_made_is_an_error() {
    for printed in [
        Printed { batch: 0, ..Printed::deadlock(1) },
        Printed { slots: 1, ..Printed::sane(1) },
        Printed::deadlock(Plan::MOST_ANALYZERS + 1),
    ] {
        let error = of(OnePair(1), &printed).expect_err("no such plan");
        assert!(matches!(error, Error::Plan(_)) && !error.to_string().is_empty(), "{error:?}");
    }
}
