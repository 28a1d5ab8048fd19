//! The soak: shuttle's scenarios on real threads, one after the other, for as long as one likes. What it checks is in
//! `queues/corelane/tests/support/soak.rs`.

use crate::cargo::{self, How, Tests};
use crate::workspace::{Result, root};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// For how long, all scenarios together
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Only scenarios whose name contains this, such as a queue's name
    #[arg(long)]
    queue: Option<String>,
    /// Where the numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Lists the scenarios
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !(arguments.minutes > 0.0 && arguments.minutes < 1e6) {
        return Err(format!("--minutes {} is out of range; give more than 0 and less than 1000000", arguments.minutes));
    }
    let how = How { arguments: &["--profile", "soak", "--features", "shuttle"], ..How::at("target") };
    println!("building the scenarios; the first time takes minutes");
    let mut chosen = Vec::new();
    for target in ["shuttle", "shuttle_papers", "shuttle_pool"] {
        let tests = Tests::parse(target)?;
        let binary = cargo::build(&root(), tests.target, &how)?;
        let mut names = binary.names(&how, &tests)?;
        let wanted = arguments.queue.as_deref().unwrap_or_default();
        names.retain(|name| format!("{target}::{name}").contains(wanted));
        chosen.push((target, binary, names));
    }
    chosen.retain(|(_, _, names)| !names.is_empty());
    if arguments.list {
        chosen.iter().for_each(|(target, _, names)| names.iter().for_each(|name| println!("{target}::{name}")));
        return Ok(());
    }
    let count = chosen.iter().map(|(_, _, names)| names.len()).sum::<usize>();
    if count == 0 {
        let name = arguments.queue.as_deref().unwrap_or_default();
        return Err(format!("no scenario has '{name}' in its name; see --list"));
    }
    // Few arenas: each keeps memory for itself, and that would look like growth.
    let how = how.with("CORELANE_SOAK", arguments.minutes / count as f64).with("MALLOC_ARENA_MAX", 2);
    let how = how.with("CORELANE_SEED", arguments.seed);
    let mut failed = Vec::new();
    for (target, binary, names) in &chosen {
        let mut command = binary.command(&how);
        let status = command.args(names).args(["--exact", "--nocapture", "--test-threads=1"]).status();
        let status = status.map_err(|error| format!("{command:?} cannot be started: {error}"))?;
        failed.extend((!status.success()).then_some(*target));
    }
    if failed.is_empty() {
        println!("{:.1} minutes, {count} scenarios: no loss, no growth, no lost wake-up", arguments.minutes);
        return Ok(());
    }
    Err(format!("the soak has failed in {}, see above", failed.join(", ")))
}
