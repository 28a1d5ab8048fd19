//! A server of jobs over TCP: a dispatcher, workers with a queue each, an acknowledgement for each batch.
//!
//! `cargo run --profile dist -p corelane --example job_server -- --help`

mod jobs;

use jobs::server::{Config, Server};
use std::process::ExitCode;

const HELP: &str = "\
Does jobs that clients send in batches over TCP, and acknowledges each batch when its jobs are done.

Usage: job_server [OPTIONS]

  --listen ADDRESS   where to listen [127.0.0.1:7878]; port 0 takes any
  --workers N        threads that do jobs [3]
  --capacity N       pieces of batches in the queue of a worker [256]
  --piece N          jobs of a batch that go to one worker together [150]
  --clients N        clients at a time [2000]
  --help             this

It ends by Ctrl-C, or when a client says so (job_client --stop): it takes no more, does what it has taken, acknowledges it, and
says what it has done.

Example:
  job_server --listen 127.0.0.1:7878 --workers 3 &
  job_client --connect 127.0.0.1:7878 --clients 900 --requests 80 --batch 150 --size 10 --stop
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("job_server: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<(), String> {
    let mut config = Config::default();
    let mut listen = "127.0.0.1:7878".to_string();
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        if option == "--help" {
            print!("{HELP}");
            return Ok(());
        }
        let value = arguments.next().ok_or(format!("{option} is not an option, or lacks its value; see --help"))?;
        let number = || match value.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{option} needs a whole number of at least 1, not {value}")),
        };
        match option.as_str() {
            "--listen" => listen = value,
            "--workers" => config.workers = number()?,
            "--capacity" => config.capacity = number()?,
            "--piece" => config.piece = number()?,
            "--clients" => config.clients = number()?,
            _ => return Err(format!("{option} is not an option; see --help")),
        }
    }
    let server = Server::start(&listen, config, |line| eprintln!("{line}"))
        .map_err(|error| format!("the server cannot start at {listen}: {error}; choose other options"))?;
    println!("listening at {}", server.address());
    let stopper = server.stopper();
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM])
        .map_err(|error| format!("cannot listen to signals: {error}"))?;
    let handle = signals.handle();
    // The first one stops the server, the second one the process.
    let waiter = std::thread::spawn(move || {
        for (count, signal) in signals.forever().enumerate() {
            if count > 0 {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            stopper.stop();
        }
    });
    let totals = server.join();
    handle.close();
    let _ = waiter.join();
    println!(
        "{} clients, {} batches, {} jobs; {} acknowledgements for clients that were gone, {} clients refused",
        totals.clients, totals.batches, totals.jobs, totals.lost, totals.refused
    );
    Ok(())
}
