//! Runs over whole captures, in few words.

use corelane_monitor::{
    Findings, Found, Inspection, Job, Observer, Plan, PlanError, Progress, Report, Settings, Source,
};

pub(crate) fn plan(analyzers: usize, capacity: usize) -> Plan {
    Plan { analyzers, capacity, ..Plan::default() }
}

/// The scan detector alone.
pub(crate) fn run<S: Source>(
    sources: impl IntoIterator<Item = S> + Send,
    settings: &Settings,
    plan: &Plan,
    progress: &Progress,
    damage: impl Fn(usize, S::Error) + Sync,
) -> Result<Report, PlanError> {
    let observer = Observer { progress, damage: &damage, found: &mut |_| {} };
    Job::scans(settings.clone(), plan.clone()).run(sources, observer).map(|(report, _)| report)
}

/// Both analyses; `out` gets events.
pub(crate) fn inspect<S: Source>(
    sources: impl IntoIterator<Item = S> + Send,
    settings: &Settings,
    inspection: &Inspection,
    plan: &Plan,
    progress: &Progress,
    damage: impl Fn(usize, S::Error) + Sync,
    mut out: impl FnMut(&[u8]) + Send,
) -> Result<(Report, Findings), PlanError> {
    let found = &mut |found: Found<'_>| {
        if let Found::Lines(lines) = found {
            out(lines);
        }
    };
    let (settings, plan) = (settings.clone(), plan.clone());
    let job = Job { settings, plan, inspection: *inspection, continuous: None };
    job.run(sources, Observer { progress, damage: &damage, found })
}
