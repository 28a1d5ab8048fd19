//! How every scenario is run, and what it draws.

#[cfg(not(corelane_shuttle))]
compile_error!(
    "`--cfg corelane_shuttle` is missing: `cargo shuttle` sets it, unless the variable RUSTFLAGS is set, which needs it then"
);

use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, MaxSteps, Runner};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

#[allow(unused_imports, reason = "not every crate uses both")]
pub(crate) use shuttle::{sync, thread};

/// Changes of priority that a schedule of PCT makes, and one: a bug that takes so many events in a certain order is
/// found with a probability that is known.
const DEPTH: usize = 3;

/// Schedules of either scheduler; `CORELANE_SCHEDULES` says another number.
const SCHEDULES: usize = 20;

/// The same schedules every time; `SHUTTLE_RANDOM_SEED` says others.
const SEED: u64 = 1;

/// Runs a scenario under many schedules: half of them choose a thread at each step, the others let the first by a drawn
/// order of priority run, which they change now and then. A thread that will not be woken is a deadlock, which shuttle
/// reports, with a schedule that `shuttle::replay` runs again.
pub(crate) fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    run(Arc::new(scenario));
}

/// Compiled once.
fn run(scenario: Arc<dyn Fn() + Send + Sync>) {
    let count = std::env::var("CORELANE_SCHEDULES").ok().and_then(|count| count.parse().ok()).unwrap_or(SCHEDULES);
    let mut config = Config::new();
    config.stack_size = 1 << 17;
    config.max_steps = MaxSteps::FailAfter(10_000_000);
    let start = Instant::now();
    let again = scenario.clone();
    let random = Runner::new(RandomScheduler::new_from_seed(SEED, count), config.clone()).run(move || again());
    let pct = Runner::new(PctScheduler::new_from_seed(SEED, DEPTH, count), config).run(move || scenario());
    let name = std::thread::current().name().unwrap_or("scenario").to_owned();
    println!("{name} (random, PCT of depth {DEPTH}): {} schedules in {:.1?}", random + pct, start.elapsed());
}

/// So many, where real threads have more.
pub(crate) fn many(count: usize) -> usize {
    count
}

/// A number that comes again with the schedule.
pub(crate) fn draw(numbers: Range<usize>) -> usize {
    thread_rng().gen_range(numbers)
}

/// One of these.
pub(crate) fn one_of<T: Copy>(values: &[T]) -> T {
    values[draw(0..values.len())]
}
