//! The load for `job_server`: many clients at once, their latencies and the throughput.
//!
//! `cargo run --profile dist -p corelane --example job_client -- --help`

mod jobs;

use jobs::load::{self, Load};
use jobs::protocol::MOST_JOBS;
use std::net::ToSocketAddrs;
use std::process::ExitCode;

const HELP: &str = "\
Sends batches of jobs to a job_server from many clients at once, and says how long they took.

Usage: job_client [OPTIONS]

  --connect ADDRESS  the server [127.0.0.1:7878]
  --clients N        clients at once, each with a connection [300]
  --requests N       batches that each client sends, one after the other [80]
  --batch N          jobs in a batch [150]
  --size N           turns of a loop in a job [10]
  --stop             tell the server to stop when all is done
  --help             this

Example, the paper's Table 3, with 3 x 300 clients:
  job_client --connect 127.0.0.1:7878 --clients 900 --requests 80 --batch 150 --size 10
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("job_client: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, String> {
    let mut load = Load::default();
    let (mut connect, mut stop) = ("127.0.0.1:7878".to_string(), false);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        match option.as_str() {
            "--help" => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            "--stop" => {
                stop = true;
                continue;
            }
            _ => {}
        }
        let value = arguments.next().ok_or(format!("{option} is not an option, or lacks its value; see --help"))?;
        let number = |least: usize, most: usize| match value.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(format!("{option} needs a whole number from {least} to {most}, not {value}")),
        };
        match option.as_str() {
            "--connect" => connect = value,
            "--clients" => load.clients = number(1, 100_000)?,
            "--requests" => load.requests = number(1, usize::MAX)?,
            "--batch" => load.batch = number(1, MOST_JOBS)?,
            "--size" => load.size = number(0, u32::MAX as usize)? as u32,
            _ => return Err(format!("{option} is not an option; see --help")),
        }
    }
    let address = connect.to_socket_addrs().ok().and_then(|mut all| all.next());
    let address = address.ok_or(format!("--connect {connect} is not an address; give one such as 127.0.0.1:7878"))?;
    let outcome =
        load::run(address, load).map_err(|error| format!("a client cannot be started: {error}; use fewer"))?;
    let seconds = outcome.elapsed.as_secs_f64();
    let jobs = outcome.latencies.len() * load.batch;
    println!("{} clients, {} requests each, {} jobs of {} turns", load.clients, load.requests, load.batch, load.size);
    println!("{} requests in {seconds:.3} s", outcome.latencies.len());
    println!("{:.0} requests/s, {:.2} M jobs/s", outcome.latencies.len() as f64 / seconds, jobs as f64 / seconds / 1e6);
    println!(
        "latency p50 {:?}, p99 {:?}; a client on average {:?}",
        outcome.quantile(0.5),
        outcome.quantile(0.99),
        outcome.client
    );
    if stop {
        load::stop(address).map_err(|error| format!("the server at {address} cannot be stopped: {error}"))?;
    }
    if let Some((number, failure)) = outcome.failures.first() {
        let count = outcome.failures.len();
        eprintln!("job_client: {count} clients of {address} failed; client {number}: {failure}; is the server there?");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
