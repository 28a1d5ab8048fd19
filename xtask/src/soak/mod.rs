//! The soak: every family of queues under random traffic. It is started by hand and runs for as long as one likes.
//!
//! An episode makes a queue with random options and gives its ends to threads. The threads call it in every way, pause,
//! give up in time and come again. The episode ends by a drop, by a close from either side in the middle of the
//! traffic, or with items inside. It checks that:
//! - no item is lost, repeated or out of order, and each item is dropped once;
//! - a timed call that failed has waited its time;
//! - the process does not grow: its memory after an episode is the same as after the first rounds;
//! - no thread sleeps for ever: if no thread of an episode makes a step for half a minute, the watch prints the state
//!   of each thread, and ends the run.
//!
//! Episodes are numbered from the seed, so a run that fails can be identified. The schedule of the threads is not
//! repeated.

#[macro_use]
#[path = "../../../crates/corelane/tests/support/designs.rs"]
mod designs;
mod dispatch;
mod episode;
mod handoff;
mod load;
mod mpmc;
mod spsc;
mod stream;
mod watch;

use crate::workspace::{Result, root};
use episode::Episode;
use indicatif::{ProgressBar, ProgressStyle};
use load::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watch::Watch;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// For how long, all queues together
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Only queues whose name contains this
    #[arg(long)]
    queue: Option<String>,
    /// Where the numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Lists the queues
    #[arg(long)]
    list: bool,
}

/// A queue under test: runs an episode, and returns how many items came through. Panics if a check fails.
type Queue = (&'static str, fn(&mut Episode<'_>) -> u64);

/// The queues beside the designs of `corelane::spsc`, which are in the tests' list.
const OTHERS: [Queue; 16] = [
    ("spsc::stream", stream::run),
    ("mpmc::ticket", mpmc::ticket),
    ("mpmc::scq", mpmc::scq),
    ("mpmc::lanes", mpmc::lanes),
    ("mpmc::michael_scott", mpmc::michael_scott),
    ("mpmc::two_lock", mpmc::two_lock),
    ("mpmc::condvar", mpmc::condvar),
    ("mpmc::busy_wait", mpmc::busy_wait),
    ("handoff::fair", handoff::fair),
    ("handoff::unfair", handoff::unfair),
    ("handoff::eliminating", handoff::eliminating),
    ("handoff::transfer", handoff::transfer),
    ("handoff::exchanger", handoff::exchanger),
    ("dispatch::lane", dispatch::lane),
    ("dispatch::linked", dispatch::linked),
    ("dispatch::ticket", dispatch::ticket),
];

fn every_queue() -> Vec<Queue> {
    let mut queues: Vec<Queue> = Vec::new();
    macro_rules! add {
        ($name:ident, $design:ident, $flags:tt) => {
            queues.push((concat!("spsc::", stringify!($name)), spsc::$name));
        };
    }
    designs!(add);
    queues.extend(OTHERS);
    queues
}

/// How many rounds run before the memory is taken as the value it should keep. A round is an episode of each queue.
const ROUNDS_BEFORE: usize = 8;
/// How far the memory may differ from that value: threads that come and go have stacks and arenas.
const SLACK: u64 = 32 << 20;

/// Set for the program that is built with the soak's options.
const IS_OPTIMIZED: &str = "CORELANE_SOAK";

/// Builds this program optimized and with debug assertions, unless it already is, and runs that build.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let queues: Vec<_> = every_queue().into_iter().filter(|(name, _)| is_wanted(name, arguments)).collect();
    if arguments.list {
        queues.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    }
    if queues.is_empty() {
        let name = arguments.queue.as_deref().unwrap_or_default();
        return Err(format!("no queue has '{name}' in its name; see --list"));
    }
    if !(arguments.minutes > 0.0 && arguments.minutes < 1e6) {
        return Err(format!("--minutes {} is out of range; give more than 0 and less than 1000000", arguments.minutes));
    }
    if std::env::var_os(IS_OPTIMIZED).is_some() {
        return soak(arguments, &queues);
    }
    let words = ["run", "--quiet", "--profile", "soak", "--package", "xtask", "--"];
    let mut command = Command::new("cargo");
    command.args(words).args(std::env::args_os().skip(1)).current_dir(root());
    // Few arenas: each keeps memory for itself, and that would look like growth.
    command.env(IS_OPTIMIZED, "1").env("MALLOC_ARENA_MAX", "2");
    let status = command.status().map_err(|error| format!("cargo cannot be started: {error}"))?;
    if status.success() { Ok(()) } else { Err("the soak has failed, see above".into()) }
}

fn is_wanted(name: &str, arguments: &Arguments) -> bool {
    arguments.queue.as_ref().is_none_or(|wanted| name.contains(wanted.as_str()))
}

fn soak(arguments: &Arguments, queues: &[Queue]) -> Result<()> {
    let start = Instant::now();
    let time = Duration::from_secs_f64(arguments.minutes * 60.0);
    let watch = Arc::new(Watch::new());
    watch::start(&watch);
    let bar = ProgressBar::new(time.as_secs());
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len} s  {msg}").expect("a good template"));
    let (mut items, mut episodes, mut first, mut most, mut last) = (0, 0_u64, None, 0, 0);
    let mut round = 0;
    while start.elapsed() < time {
        for (name, queue) in queues {
            // The numbers of a queue's episodes stay the same if only one queue is chosen.
            let number = every_queue().iter().position(|(other, _)| other == name).unwrap_or(0) as u64;
            let seed = arguments.seed ^ (round as u64) << 32 ^ number << 24;
            let mut random = Random::new(seed);
            let until = Instant::now() + Duration::from_millis(random.between(5, 250));
            bar.set_position(start.elapsed().as_secs().min(time.as_secs()));
            bar.set_message(format!("{name}, {episodes} episodes, {} items", grouped(items)));
            watch.begin(format!("{name}, round {round}, --seed {}", arguments.seed));
            let mut episode = Episode { watch: &watch, random, until };
            let outcome = catch_unwind(AssertUnwindSafe(|| queue(&mut episode)));
            watch.end();
            items += outcome
                .map_err(|_| format!("{name} has failed in round {round} of --seed {}, see above", arguments.seed))?;
            episodes += 1;
            last = resident();
            most = most.max(last);
            if round >= ROUNDS_BEFORE {
                let first = *first.get_or_insert(most);
                if last > first + SLACK {
                    return Err(format!("{name}: the process has grown from {} to {} KiB", first >> 10, last >> 10));
                }
            }
            if start.elapsed() >= time {
                break;
            }
        }
        round += 1;
    }
    bar.finish_and_clear();
    println!(
        "{:.1} minutes, {} queues, {episodes} episodes, {} items: no loss, no growth (at most {} KiB in the first rounds, {} later, {} in the end), no lost wake-up",
        start.elapsed().as_secs_f64() / 60.0,
        queues.len(),
        grouped(items),
        first.unwrap_or(most) >> 10,
        most >> 10,
        last >> 10,
    );
    Ok(())
}

/// The number with a space between thousands.
fn grouped(count: u64) -> String {
    crate::evidence::grouped(count)
}

/// The memory that the process uses, in bytes. 0 if the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()).and_then(|kib| kib.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}
