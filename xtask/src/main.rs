//! The commands of this workspace, `cargo xtask`: hand-made faults that the tests must find, sanitizers, another
//! processor, the checks of a release, and the table of test outcomes.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `mutant.rs`, `mutants.rs`, `tree.rs` | the form of a fault; applying each to a copy of the sources |
//! | `cargo.rs`, `column.rs`, `rows.rs`, `tool.rs` | test binaries; the table's columns and rows; running them |
//! | `evidence.rs`, `verify.rs`, `release.rs` | records and their table; everything at once; packages |
//! | `soak/`, `bugs.rs`, `pictures.rs` | random traffic; the check of `docs/bugs.md`; the pictures in the documents |
//! | `workspace.rs` | the parts that all commands use |
//! | `readme.rs`, `tests/documents.rs` | tests of the documents |

#[cfg(test)]
mod bugs;
mod cargo;
mod column;
mod evidence;
mod mutant;
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
    /// Prints the table of what `verify` has seen of these sources
    Evidence,
    /// Makes the pictures in docs/pictures: of the demo, of a terminal (by tmux), of a page (by chromium)
    Pictures,
    /// What a release needs: each crate packaged, the oldest compiler, versions and licences where a tool is at hand
    Release,
    /// Random traffic through every family for as long as one likes, which loses nothing, grows by nothing, and lets no
    /// thread sleep for ever
    Soak(soak::Arguments),
    /// Runs everything, and prints the table of it
    Verify(verify::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Mutants(arguments) => mutants::run(&arguments),
        Command::Run(arguments) => tool::run(&arguments),
        Command::Evidence => evidence::run(),
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
