//! Everything at once.

use crate::tool::{Tool, call, run_tool};
use crate::workspace::{Result, root};
use crate::{evidence, mutants, release, rows};
use clap::ValueEnum;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only what every change has to pass: `.ci/run`
    #[arg(long)]
    quick: bool,
    /// Also what has passed with these very sources. Without it, what was interrupted goes on
    #[arg(long)]
    again: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let step = |name: &str| println!("\n== {name}");
    step(".ci/run");
    call(&root().join(".ci/run").display().to_string(), &[])?;
    if arguments.quick {
        return Ok(());
    }
    let mut failures = Vec::new();
    for &tool in Tool::value_variants() {
        step(&tool.key());
        match run_tool(tool, &rows::named(&[])?, !arguments.again) {
            Ok(0) => {}
            Ok(rows) => failures.push(format!("{}: {rows} rows", tool.key())),
            Err(error) => failures.push(format!("{}: {error}", tool.key())),
        }
    }
    step("mutants");
    failures.extend(mutants::run(&mutants::Arguments::all(!arguments.again)).err());
    step("what a release needs");
    failures.extend(release::run().err());
    step("evidence");
    evidence::run(&evidence::Arguments::default())?;
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}
