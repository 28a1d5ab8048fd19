//! `corelane-bench`: repeats the papers' evaluations of inter-core queues, beside the crates people use today.
//!
//! - `experiments/` holds one file for each experiment, all of one form: the source it repeats, its parameters, its
//!   panels;
//! - `contenders/` has one type for each queue, and `measure/` has the loops that are compiled for each of them;
//!   `roofline.rs` measures the bare machine;
//! - `rig.rs` starts the threads of a measurement together, times them and notices hangs; `runner.rs` makes rounds of
//!   measurements; `record.rs` is their stored form;
//! - `live/` measures the capture from an interface, in namespaces of its own;
//! - `application/` is the papers' application, over any ring;
//! - `report/` draws the page.

mod application;
mod args;
mod coherence;
mod contender;
mod contenders;
mod counters;
mod experiments;
mod histogram;
mod item;
mod live;
mod machine;
mod measure;
mod plan;
mod progress;
mod published;
mod raw;
mod record;
mod report;
mod rig;
mod roofline;
mod runner;
mod scale;
mod setting;
mod slip;
mod stats;
mod table;
mod topology;
mod tune;

use args::{Arguments, Command, ReportArguments, RunArguments};
use clap::Parser;
use plan::Experiment;
use progress::Meter;
use runner::Effort;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

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
        Command::Tune(arguments) => print(&tune::run(arguments.quick)).map(success),
        Command::Report(arguments) => report(&arguments).map(success),
        Command::Scale(arguments) => scale::run(&arguments).and_then(|(text, code)| print(&text).map(|()| code)),
        Command::CrowdGuest(arguments) => {
            coherence::crowd_guest(&arguments);
            Ok(ExitCode::SUCCESS)
        }
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
    let width = experiments::ALL.iter().map(|experiment| experiment.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for experiment in experiments::ALL {
        out += &format!("{:width$}  {}\n", experiment.name, experiment.title);
        out += &format!("{:width$}  repeats {}\n", "", experiment.repeats);
    }
    print(&out)
}

/// The experiments of these names, each once.
fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, String> {
    let mut chosen: Vec<&Experiment> = Vec::new();
    for name in names {
        let matching: Vec<_> =
            experiments::ALL.iter().filter(|experiment| name == "all" || experiment.name == name).collect();
        if matching.is_empty() {
            let known: Vec<_> = experiments::ALL.iter().map(|experiment| experiment.name).collect();
            return Err(format!("no experiment is called '{name}'; choose one of {}", known.join(", ")));
        }
        for experiment in matching {
            if chosen.iter().all(|other| other.name != experiment.name) {
                chosen.push(experiment);
            }
        }
    }
    Ok(chosen)
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
        let mut meter = Meter::new(experiment.name);
        let record = runner::run(experiment, &effort, &mut meter);
        drop(meter);
        print(&table::render(&record))?;
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

fn report(arguments: &ReportArguments) -> Result<(), String> {
    if let Some([name, file]) = arguments.plot.as_deref() {
        return report::write_plot(&arguments.directory, name, Path::new(file));
    }
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
