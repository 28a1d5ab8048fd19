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
//! | `sensor_input.rs` | shared by the commands that read sensor batches |
//! | `monitor/wire.rs`, `monitor/service.rs` | an interface as a source; what a run on it has beside the analysis |
//! | `input.rs`, `output.rs` | captures as one source; the places of results, `output/stream.rs` for months |
//! | `replay.rs` | captures played as fast as they were recorded, for `top` |
//! | `tap.rs` | the filter and the copy, between a source and its analysis; `tap/share.rs` for several rings |
//! | `manual.rs` | completions and man pages |
//! | `no_top.rs`, `no_notify.rs` | in place of `top.rs` without that feature, and of `notify.rs` beyond Linux |
//! | `progress.rs`, `interrupt.rs` | the progress bar; Ctrl-C and the signals of services |
//! | `metrics.rs` | `/metrics` and `/healthz` of a service |
//! | `confine.rs`, `notify.rs` | least privilege; messages to systemd |

#![cfg_attr(not(feature = "full"), allow(dead_code, reason = "what is left out uses it"))]
#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "an interface uses it"))]

mod aggregate;
mod args;
#[cfg(target_os = "linux")]
mod confine;
mod demo;
mod exit;
mod generate;
mod input;
mod interrupt;
#[cfg(feature = "manual")]
mod manual;
mod metrics;
mod monitor;
#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "live runs use it")]
mod notify;
#[cfg(not(target_os = "linux"))]
#[path = "no_notify.rs"]
mod notify;
mod output;
mod progress;
mod replay;
mod sensor_input;
mod sensors;
mod tap;
#[cfg(feature = "top")]
mod top;
#[cfg(not(feature = "top"))]
#[path = "no_top.rs"]
mod top;

use args::{Arguments, Command};
use clap::Parser;
use interrupt::Interrupt;
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
        #[cfg(feature = "manual")]
        Command::Completions { shell } => manual::completions(shell),
        #[cfg(feature = "manual")]
        Command::Man { command } => manual::page(command),
        #[cfg(not(feature = "manual"))]
        Command::Completions { .. } | Command::Man { .. } => {
            exit::refused(exit::left_out("completions and man pages", "manual"))
        }
    };
    exit.into()
}
