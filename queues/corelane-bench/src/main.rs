//! `corelane-bench`: repeats the papers' evaluations of inter-core queues, beside the crates people use today.
//!
//! - `experiments/` has a function for each experiment, which makes a plan of panels and cases;
//! - `contenders/` has a line for each queue, and `measure/` has the loops that are compiled for each of them;
//!   `roofline.rs` measures the bare machine;
//! - `rig.rs` starts the threads of a measurement together, times them and notices hangs; `runner.rs` makes rounds of
//!   measurements; `record.rs` is their stored form;
//! - `live/` measures the capture from an interface, in namespaces of its own;
//! - `application/` is the papers' application, over any ring;
//! - `report/` draws the page.

mod application;
mod args;
mod coherence;
mod contenders;
mod counters;
mod experiments;
mod histogram;
mod item;
mod live;
mod machine;
mod measure;
mod plan;
mod published;
mod raw;
mod record;
mod report;
mod rig;
mod roofline;
mod runner;
mod setting;
mod slip;
mod stats;
mod topology;

use args::{Arguments, Command, ReportArguments, RunArguments};
use clap::Parser;
use experiments::Experiment;
use runner::Effort;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: raw::Allocator = raw::Allocator;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let success = |()| ExitCode::SUCCESS;
    let done = match arguments.command {
        Command::Coherence(arguments) => {
            coherence::run(&arguments).and_then(|(text, code)| print(&text).map(|()| code))
        }
        Command::List => list().map(success),
        Command::Run(arguments) => run(&arguments).map(success),
        Command::Report(arguments) => report(&arguments).map(success),
        Command::CoherenceGuest(arguments) => coherence::guest(&arguments).map(success),
        Command::LiveGuest(arguments) => live::guest(arguments.quick).map(success),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("corelane-bench: {error}");
            ExitCode::from(2)
        }
    }
}

fn list() -> Result<(), String> {
    let all = experiments::all();
    let width = all.iter().map(|experiment| experiment.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for Experiment { name, texts, .. } in all {
        out += &format!("{name:width$}  {}\n{:width$}  repeats {}\n", texts.title, "", texts.repeats);
    }
    print(&out)
}

/// The experiments of these names, each once.
fn chosen(names: &[String]) -> Result<Vec<Experiment>, String> {
    let mut all = experiments::all();
    let known = all.iter().map(|experiment| experiment.name).collect::<Vec<_>>();
    if let Some(name) = names.iter().find(|name| *name != "all" && !known.contains(&name.as_str())) {
        return Err(format!("no experiment is called '{name}'; choose one of {}", known.join(", ")));
    }
    // In the order in which they are named.
    let at = |experiment: &Experiment| names.iter().position(|name| name == "all" || name == experiment.name);
    all.retain(|experiment| at(experiment).is_some());
    all.sort_by_key(at);
    Ok(all)
}

fn run(arguments: &RunArguments) -> Result<(), String> {
    let experiments = chosen(&arguments.names)?;
    if !env!("BENCH_BUILD").starts_with("dist ") && !arguments.quick {
        eprintln!("corelane-bench: this is no `dist` build, so its figures mean nothing; build with `--profile dist`");
    }
    let effort = match arguments.rounds {
        _ if arguments.quick => Effort::quick(),
        rounds => Effort {
            sample: Duration::from_millis(arguments.sample.into()),
            ..Effort::full(rounds.map_or(Effort::LEAST_ROUNDS, usize::from))
        },
    };
    // The file is opened first, because hours of measuring must not end at a wrong path.
    let mut file = match &arguments.json {
        Some(path) => Some(File::create(path).map_err(|error| unwritable(path, &error))?),
        None => None,
    };
    let mut records = Vec::new();
    for experiment in experiments {
        let record = runner::run(&experiment, &effort, &mut progress(experiment.name));
        print(&report::shown(&record))?;
        records.push(record);
    }
    if let (Some(file), Some(path)) = (&mut file, &arguments.json) {
        let mut writer = BufWriter::new(file);
        serde_json::to_writer(&mut writer, &records)
            .map_err(io::Error::from)
            .and_then(|()| writer.flush())
            .map_err(|error| unwritable(path, &error))?;
    }
    Ok(())
}

/// Reports the progress of a run now and then, on the standard error.
fn progress(experiment: &str) -> impl FnMut(&str, usize, usize, Duration) {
    const EVERY: Duration = Duration::from_secs(10);
    let mut last = Instant::now();
    move |what, done, of, left| {
        if last.elapsed() > EVERY {
            last = Instant::now();
            eprintln!("{experiment}: {} %, {} s left, {what}", 100 * done / of, left.as_secs());
        }
    }
}

fn report(arguments: &ReportArguments) -> Result<(), String> {
    if let Some(page) = &arguments.page {
        return report::write_page(&arguments.directory, page);
    }
    let write = if arguments.markdown { report::write_markdown } else { report::write };
    let (page, results) = write(&arguments.directory)?;
    print(&format!("{}: {results} results\n", page.display()))
}

/// The error message for a file that cannot be written.
fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot be written: {error}; check the folder, the access and the free space", path.display())
}

/// If the reader of the output is gone, that is no error.
fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(unwritable(Path::new("standard output"), &error))
        }
        _ => Ok(()),
    }
}
