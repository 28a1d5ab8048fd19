//! The commands of this workspace, `cargo xtask`: hand-made faults that the tests must find, sanitizers, another
//! processor, the soak, the checks of a release, and the table of test outcomes.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `mutants.rs`, `tree.rs` | applying each fault of `mutants/` to a copy of the sources; copies and digests |
//! | `cargo.rs`, `rows.rs`, `tool.rs` | test binaries; which tests belong to which queue; running them under a tool |
//! | `evidence.rs`, `verify.rs`, `release.rs` | records and their table; everything at once; packages |
//! | `soak.rs`, `bugs.rs`, `pictures.rs` | scenarios on real threads; checks of `docs/bugs.md`; pictures in documents |
//! | `workspace.rs` | the parts that all commands use |
//! | `readme.rs`, `tests/documents.rs` | tests of the documents |

#[cfg(test)]
mod bugs;
mod cargo;
mod evidence;
mod mutants;
mod pictures;
mod release;
mod rows;
mod soak;
mod tool;
mod tree;
mod verify;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The commands of this workspace")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Applies hand-made faults one by one, and says which the tests find
    Mutants(mutants::Arguments),
    /// Runs the queues' tests under a tool, which it installs first: a model checker, a sanitizer, another processor
    Run(tool::Arguments),
    /// Prints the table of what `run`, `mutants` and `verify` have seen of these sources
    Evidence(evidence::Arguments),
    /// Makes the pictures in docs/pictures: of the demo, of a terminal (by tmux), of a page (by chromium)
    Pictures,
    /// What a release needs: each crate packaged, the oldest compiler, versions and licences where a tool is at hand
    Release,
    /// Runs shuttle's scenarios on real threads for as long as one likes: nothing is lost, repeated or out of order,
    /// nothing grows, and no thread sleeps for ever
    Soak(soak::Arguments),
    /// Runs everything, and prints the table of it
    Verify(verify::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Mutants(arguments) => mutants::run(&arguments),
        Command::Run(arguments) => tool::run(&arguments),
        Command::Evidence(arguments) => evidence::run(&arguments),
        Command::Pictures => pictures::run(),
        Command::Release => release::run(),
        Command::Soak(arguments) => soak::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
