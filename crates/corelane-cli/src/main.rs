//! The binary `corelane`: reads the command line, calls the libraries, and shows their results.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `args.rs`, `exit.rs` | the command line; exit codes and messages |
//! | `monitor.rs`, `top.rs`, `aggregate.rs`, `generate.rs`, `demo.rs` | the commands |
//! | `monitor/outputs.rs` | reports, events and scans, each to its place |
//! | `monitor/publish.rs`, `sensors/` | what a sensor sends; how batches travel to an aggregator |
//! | `hearing.rs` | what `aggregate` and `top --from` have in common |
//! | `monitor/wire.rs`, `monitor/service.rs` | an interface as a source; what a run on it has beside the analysis |
//! | `input.rs`, `output.rs` | captures as one source; the places of results, `output/stream.rs` for months |
//! | `tap.rs` | the filter and the copy, between a source and its analysis; `tap/share.rs` for several rings |
//! | `progress.rs`, `interrupt.rs` | the progress bar; Ctrl-C and the signals of services |
//! | `metrics.rs` | `/metrics` and `/healthz` of a service |
//! | `confine.rs`, `notify.rs` | least privilege; what systemd is told |

mod aggregate;
mod args;
#[cfg(target_os = "linux")]
mod confine;
mod demo;
mod exit;
mod generate;
mod hearing;
mod input;
mod interrupt;
mod metrics;
mod monitor;
#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "live runs use it")]
mod notify;
mod output;
mod progress;
mod sensors;
mod tap;
mod top;

use args::{Arguments, Command};
use clap::{CommandFactory, Parser};
use interrupt::Interrupt;
use output::Output;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let interrupt = match arguments.command {
        Command::Top(_) => Interrupt::install_gently(),
        _ => Interrupt::install(),
    };
    let exit = match arguments.command {
        Command::Monitor(arguments) => monitor::run(&arguments, &interrupt),
        Command::Top(arguments) => top::run(*arguments, &interrupt),
        Command::Aggregate(arguments) => aggregate::run(&arguments, &interrupt),
        Command::Gen(arguments) => generate::run(&arguments, &interrupt),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "corelane", &mut script);
            Output::stdout().write(|out| out.write_all(&script)).unwrap_or_else(exit::refused)
        }
        Command::Man { command } => {
            let mut program = Arguments::command().disable_help_subcommand(true);
            // This gives each command its full name, such as `corelane-monitor`, which is the title of its page.
            program.build();
            let command = match command {
                Some(name) => program.find_subcommand(name).expect("the parser takes no other name").clone(),
                None => program,
            };
            let page = clap_mangen::Man::new(command).source(concat!("corelane ", env!("CARGO_PKG_VERSION")));
            Output::stdout().write(|out| page.render(out)).unwrap_or_else(exit::refused)
        }
    };
    exit.into()
}
