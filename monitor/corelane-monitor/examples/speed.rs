//! Packets a second with 0, 1 and 2 SubAnalyzers over generated traffic in memory: every plan in each round, in rotated
//! order.
//!
//! `cargo run --profile dist -p corelane-monitor --example speed [-- PACKETS [ROUNDS]]`

use corelane_monitor::{Job, Observer, Plan, Progress, Settings};
use corelane_net::capture::Reader;
use corelane_net::synth::{self, Config};
use std::time::Instant;

fn main() {
    let mut args =
        std::env::args().skip(1).map(|arg| arg.parse::<u64>().expect("PACKETS and ROUNDS must be whole numbers"));
    let packets = args.next().unwrap_or(10_000_000);
    let rounds = args.next().unwrap_or(7);
    let bytes = synth::capture(Config { packets, ..Config::default() }).expect("a valid configuration");
    println!("{packets} packets, {} bytes; medians of {rounds} rounds", bytes.len());
    let plans = [0, 1, 2].map(|analyzers| Plan { analyzers, ..Plan::default() });
    let mut rates = vec![Vec::new(); plans.len()];
    let mut own = vec![0; plans.len()];
    // Each reader has its memory to itself, as after `--preload`; it is written before the clock starts.
    for round in 0..rounds as usize {
        for turn in 0..plans.len() {
            let number = (round + turn) % plans.len();
            let reader = Reader::from_bytes(bytes.clone()).expect("a capture");
            let start = Instant::now();
            let job = Job::scans(Settings::default(), plans[number].clone());
            let observer = Observer { progress: &Progress::new(), damage: &|_, _| {}, found: &mut |_| {} };
            let (report, _) = job.run([reader], observer).expect("a valid plan");
            rates[number].push(report.packets as f64 / start.elapsed().as_secs_f64() / 1e6);
            own[number] = report.dispatcher_packets * 100 / report.packets;
        }
    }
    for ((plan, rates), own) in plans.iter().zip(&mut rates).zip(own) {
        rates.sort_by(f64::total_cmp);
        println!(
            "{} analyzers {:>5.1} M packets/s ({:.1} to {:.1}), {own} % by the Dispatcher",
            plan.analyzers,
            rates[rates.len() / 2],
            rates[0],
            rates[rates.len() - 1],
        );
    }
}
