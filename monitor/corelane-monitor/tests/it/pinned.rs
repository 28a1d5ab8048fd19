//! Stages on CPUs of their own, and what that does to the caller: nothing.

use crate::runs::run;
use corelane_monitor::{Plan, Progress, Settings, Source};
use corelane_net::capture::Record;
use std::convert::Infallible;
use std::io::Write;

/// The CPUs that this thread may run on.
fn cpus() -> Vec<usize> {
    core_affinity::get_core_ids().unwrap_or_default().iter().map(|core| core.id).collect()
}

/// No records; notes where they are asked for.
struct Where<'a>(&'a mut Vec<usize>);

impl Source for Where<'_> {
    type Error = Infallible;

    fn read(&mut self, _: usize, _: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        *self.0 = cpus();
        Ok(0)
    }
}

#[test]
fn the_caller_stays_as_free_as_it_was() {
    let before = cpus();
    if before.len() < 2 {
        // Not through `eprintln!`, which a passing test swallows.
        let _ = writeln!(std::io::stderr(), "SKIPPED: one CPU is all there is to pin to");
        return;
    }
    for analyzers in [0, 1, 2] {
        for pins in [[before[0], before[1]], [before[1], before[0]]] {
            let plan = Plan { analyzers, cpus: pins.to_vec(), ..Plan::default() };
            let mut dispatchers = Vec::new();
            let report = run([Where(&mut dispatchers)], &Settings::default(), &plan, &Progress::new(), |_, _| {});
            report.unwrap_or_else(|error| panic!("{plan:?}: {error}"));
            assert_eq!(dispatchers, [pins[0]]);
            assert_eq!(cpus(), before);
        }
    }
}
