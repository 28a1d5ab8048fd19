//! Everything at once.

use crate::column::Column;
use crate::tool::{call, rows, run_column};
use crate::workspace::{Result, root};
use crate::{evidence, mutants, release, tree};

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
    let root = root();
    let gate = root.join(".ci/run");
    let steps = Column::ALL.len() + 3;
    let step = |number: usize, name: &str| println!("\n== {number} of {steps}: {name}");
    step(1, ".ci/run");
    call(&gate.display().to_string(), &[])?;
    if arguments.quick {
        return Ok(());
    }
    let mut failures = Vec::new();
    for (number, column) in Column::ALL.into_iter().enumerate() {
        step(number + 2, column.title());
        match run_column(column, &rows(column, !arguments.again)?) {
            Ok(0) => {}
            Ok(rows) => failures.push(format!("{}: {rows} rows", column.title())),
            Err(error) => failures.push(format!("{}: {error}", column.title())),
        }
    }
    step(steps - 1, "mutants");
    failures.extend(mutants::run(&mutants::Arguments::all(!arguments.again)).err());
    step(steps, "what a release needs");
    failures.extend(release::run().err());
    let commit = tree::commit(&root).unwrap_or_else(|_| "unknown".to_owned());
    println!("\n{}", evidence::table(&root, &commit)?);
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}
