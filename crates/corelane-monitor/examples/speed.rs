//! Packets a second with 0, 1, 2 … SubAnalyzers over generated traffic in memory.
//!
//! `cargo run --release -p corelane-monitor --example speed [-- PACKETS [ROUNDS]]`

use corelane_monitor::{Plan, Progress, QueueKind, Settings, run};
use corelane_net::capture::Reader;
use corelane_net::synth::{self, Config};
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>().expect("a number"));
    let packets = args.next().unwrap_or(10_000_000);
    let rounds = args.next().unwrap_or(3);
    let bytes = synth::capture(Config { packets, ..Config::default() }).expect("a valid configuration");
    println!("{packets} packets, {} bytes", bytes.len());
    let mut plans = vec![Plan { analyzers: 0, ..Plan::default() }];
    for queue in QueueKind::ALL {
        plans.push(Plan { analyzers: 1, queue, ..Plan::default() });
    }
    plans.push(Plan { analyzers: 2, ..Plan::default() });
    for round in 0..rounds {
        for turn in 0..plans.len() {
            let plan = &plans[(round as usize + turn) % plans.len()];
            let reader = Reader::from_bytes(bytes.clone()).expect("a capture");
            let start = Instant::now();
            let report = run([reader], &Settings::default(), plan, &Progress::new(), |_, _| {}).expect("a valid plan");
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "{} analyzers by {:<8} {:>6.1} M packets/s, {} flows, {} alerts",
                plan.analyzers,
                plan.queue,
                report.packets as f64 / seconds / 1e6,
                report.flows,
                report.alerts.len()
            );
        }
    }
}
