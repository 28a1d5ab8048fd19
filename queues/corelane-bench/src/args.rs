//! The command line.

use clap::{Args, Parser, Subcommand, ValueHint};
use std::path::PathBuf;

/// Repeats the papers' evaluations of inter-core queues, beside the crates people use today.
#[derive(Debug, Parser)]
#[command(
    name = "corelane-bench",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  corelane-bench list
  corelane-bench run peers
  corelane-bench run all --quick                 does everything run here?
  corelane-bench run round-trip peers --json results/today.json
  corelane-bench report results                  writes results/report.html
  corelane-bench coherence                       cache lines that move, counted in an emulator

Quote figures of a full run on a machine that does nothing else."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Says what there is to run, and what each experiment repeats
    List,
    Run(RunArguments),
    Report(ReportArguments),
    Coherence(CoherenceArguments),
    #[command(hide = true)]
    CoherenceGuest(GuestArguments),
    #[command(hide = true)]
    LiveGuest(LiveArguments),
}

/// Runs experiments, prints their tables
#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// Experiments by name, or `all`
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,

    /// Only sees that everything runs: the figures mean nothing
    #[arg(long)]
    pub(crate) quick: bool,

    /// Rounds: every contender is measured once in each [default: 7, the fewest; with --quick 1]
    #[arg(long, value_name = "N", conflicts_with = "quick", value_parser = clap::value_parser!(u16).range(7..))]
    pub(crate) rounds: Option<u16>,

    /// What a sample takes, in milliseconds: less is quicker and wavers more
    #[arg(long, value_name = "MS", default_value_t = 150, conflicts_with = "quick",
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) sample: u16,

    /// Writes every sample and the facts of the machine to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
}

/// Makes one HTML page of the results in a directory, or a page of tables
#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    /// Holds the files that `run --json` wrote; the page is written there too, as report.html
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    /// Writes tables instead of the page, as summary.md
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Makes the tables of this page anew, such as docs/benchmarks.md, of results in DIR's directories
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "markdown")]
    pub(crate) page: Option<PathBuf>,
}

/// Counts the cache lines that move from thread to thread, in an emulator
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  corelane-bench coherence                          every queue
  corelane-bench coherence lane rtrb --regions      two of them, by thread and region of memory
  corelane-bench coherence --check                  has any queue's count changed?
  corelane-bench run cache-lines                    what the papers say of it: Figure 11 of MCRingBuffer,
                                                    Tables 2 and 3 of B-Queue

Needs QEMU's user emulation 7.2 and a C compiler; queues/corelane-bench/coherence/fetch-emulator unpacks Debian 12's,
without root. Exit codes: 0 done, 1 --check found a difference, 2 an error, 3 no emulator.")]
pub(crate) struct CoherenceArguments {
    /// Queues by name [default: all]
    #[arg(value_name = "QUEUE")]
    pub(crate) names: Vec<String>,

    /// Also what each thread did in each region of memory, named by its size, and the lines of small regions
    #[arg(long)]
    pub(crate) regions: bool,

    /// Compares this library's queues with data/coherence.toml, as this program was built with
    #[arg(long, conflicts_with_all = ["names", "regions"])]
    pub(crate) check: bool,

    /// Writes the counts of this library's queues to this file, as data/coherence.toml has them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
        conflicts_with_all = ["names", "regions", "check"])]
    pub(crate) write: Option<PathBuf>,
}

/// What runs inside the emulator.
#[derive(Args, Debug)]
pub(crate) struct GuestArguments {
    #[arg(long)]
    pub(crate) quick: bool,
    pub(crate) cases: Vec<usize>,
}

/// What runs in namespaces of its own. What it plays comes on the standard input.
#[derive(Args, Debug)]
pub(crate) struct LiveArguments {
    #[arg(long)]
    pub(crate) quick: bool,
}
