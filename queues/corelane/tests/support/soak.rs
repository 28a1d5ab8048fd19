//! How every scenario is run on real threads, in the place of `schedules.rs`: `cargo xtask soak`. A scenario runs again
//! and again for a time, with larger numbers than under shuttle. Besides what the scenario itself checks,
//! - no thread sleeps for ever: a scenario that stands still ends the process, which says where each thread is;
//! - the process does not grow;
//! - a timed call that failed has waited its time (`in_time` of `shared.rs`).
//!
//! `CORELANE_SOAK` is the time of each scenario in minutes. Rounds are numbered from `CORELANE_SEED`, so that one that
//! fails can be named. What is drawn comes again with it, the schedule of the threads does not.

use crate::watchdog;
use std::cell::Cell;
use std::hint::spin_loop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[allow(unused_imports, reason = "not every crate uses it")]
pub(crate) use std::sync;

/// Threads that draw other numbers than the one that spawned them.
pub(crate) mod thread {
    pub(crate) use std::thread::{JoinHandle, yield_now};

    pub(crate) fn spawn<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
        let mut mood = super::MOOD.get();
        let seed = mood.below(u64::MAX);
        super::MOOD.set(mood);
        std::thread::spawn(move || {
            super::MOOD.set(super::Mood::new(seed));
            f()
        })
    }
}

/// Marsaglia's xorshift, and how fast a thread runs: at full speed for a while, then slowly, then it sleeps.
#[derive(Clone, Copy)]
struct Mood {
    random: u64,
    /// So many draws until the next mood.
    left: u64,
    kind: u64,
}

/// Threads that the scenario has not spawned itself, as a pool's.
static OTHERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static MOOD: Cell<Mood> = Cell::new(Mood::new(OTHERS.fetch_add(1, Relaxed)));
}

impl Mood {
    fn new(seed: u64) -> Self {
        Self { random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, left: 0, kind: 0 }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % end
    }

    /// A pause between two calls.
    fn pause(&mut self) {
        if self.left == 0 {
            self.kind = self.below(6);
            self.left = 1 + self.below(if self.kind == 5 { 8 } else { 3_000 });
        }
        self.left -= 1;
        match self.kind {
            0..3 => {}
            3 => (0..self.below(200)).for_each(|_| spin_loop()),
            4 => {
                if self.below(16) == 0 {
                    thread::yield_now();
                }
            }
            _ => std::thread::sleep(Duration::from_micros(32 << self.below(7))),
        }
    }
}

/// A number. Threads draw before their calls, so this is where they pause.
pub(crate) fn draw(numbers: Range<usize>) -> usize {
    let mut mood = MOOD.get();
    let number = numbers.start + mood.below((numbers.end - numbers.start) as u64) as usize;
    mood.pause();
    MOOD.set(mood);
    number
}

/// One of these.
pub(crate) fn one_of<T: Copy>(values: &[T]) -> T {
    values[draw(0..values.len())]
}

/// So many, or some times as many.
pub(crate) fn many(count: usize) -> usize {
    count * one_of(&[1, 1, 1, 4, 30])
}

/// How far the memory may grow after the first quarter of the time: threads that come and go have stacks and arenas.
const SLACK: u64 = 8 << 20;

fn variable<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Runs a scenario for a time. One scenario at a time, because items and memory are counted for the whole process.
pub(crate) fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (minutes, seed) = (variable("CORELANE_SOAK", 0.01), variable("CORELANE_SEED", 1));
    let (start, time) = (Instant::now(), Duration::from_secs_f64(60.0 * minutes));
    let name = std::thread::current().name().unwrap_or("scenario").to_owned();
    let (mut rounds, mut first, mut last) = (0, 0, 0);
    while rounds == 0 || start.elapsed() < time {
        let turn = Instant::now();
        watchdog::guard(|| {
            while turn.elapsed() < Duration::from_millis(500) && (rounds == 0 || start.elapsed() < time) {
                MOOD.set(Mood::new(seed ^ rounds << 32));
                rounds += 1;
                if let Err(panic) = catch_unwind(AssertUnwindSafe(&scenario)) {
                    eprintln!("{name} has failed in round {rounds} of CORELANE_SEED={seed}");
                    resume_unwind(panic);
                }
            }
        });
        last = resident();
        if 4 * start.elapsed() < time || first == 0 {
            first = last.max(first);
        }
        assert!(last <= first + SLACK, "{name}: the process has grown from {} to {} KiB", first >> 10, last >> 10);
    }
    println!(
        "{name} (real threads): {rounds} rounds in {:.1?}, {} KiB, then {}",
        start.elapsed(),
        first >> 10,
        last >> 10
    );
}

/// The memory that the process uses, in bytes. 0 if the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
