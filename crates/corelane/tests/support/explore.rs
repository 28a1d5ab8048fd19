//! How every model is explored.

use corelane::Barrier;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// The first where the gate runs the models, the second in the whole of them.
pub(crate) fn quick<N>(quick: N, whole: N) -> N {
    if std::env::var_os("CORELANE_QUICK_MODELS").is_some() { quick } else { whole }
}

/// Explores a model with at most so many preemptions an execution.
pub(crate) fn explore_with(barrier: Barrier, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 5_000;
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let start = Instant::now();
    barrier.stands_in(|| {
        builder.check(move || {
            counter.fetch_add(1, Relaxed);
            model();
        });
    });
    let name = std::thread::current().name().unwrap_or("model").to_owned();
    println!("{name} ({barrier:?}, {preemptions}): {} executions in {:.1?}", count.load(Relaxed), start.elapsed());
}
