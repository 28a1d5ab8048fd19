//! How every model is explored.

#[cfg(not(corelane_loom))]
compile_error!(
    "`--cfg corelane_loom` is missing: `cargo loom` sets it, unless the variable RUSTFLAGS is set, which needs it then"
);

#[path = "ledger.rs"]
#[allow(dead_code, reason = "not every suite has items")]
mod ledger;

use corelane::Barrier;
#[allow(unused_imports, reason = "not every suite has items")]
pub(crate) use ledger::Item;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// The first where the gate runs the models, the second in the whole of them.
pub(crate) fn quick<N>(quick: N, whole: N) -> N {
    if std::env::var_os("CORELANE_QUICK_MODELS").is_some() { quick } else { whole }
}

/// Explores a model with at most so many preemptions an execution; for the gate at most three, and two where that takes
/// ten times as long. The items of each execution are dropped, once.
pub(crate) fn explore_with(barrier: Barrier, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    let most = if barrier == Barrier::ReadModifyWrite { 2 } else { 3 };
    let preemptions = preemptions.min(quick(most, usize::MAX));
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 5_000;
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let start = Instant::now();
    barrier.stands_in(|| {
        builder.check(move || {
            counter.fetch_add(1, Relaxed);
            Barrier::begin();
            Item::forget_all();
            model();
            Item::assert_each_dropped_once();
        });
    });
    let name = std::thread::current().name().unwrap_or("model").to_owned();
    println!("{name} ({barrier:?}, {preemptions}): {} executions in {:.1?}", count.load(Relaxed), start.elapsed());
}

/// Runs `f` with an end in another thread, and gives back both.
#[allow(dead_code, reason = "not every suite has ends")]
pub(crate) fn spawn_with<E: 'static, R: 'static>(
    mut end: E,
    f: impl FnOnce(&mut E) -> R + 'static,
) -> thread::JoinHandle<(R, E)> {
    thread::spawn(move || (f(&mut end), end))
}
