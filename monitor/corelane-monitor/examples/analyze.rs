//! What each stage costs alone, on synthetic traffic in memory, in one thread: the slowest is what queues can at best
//! reach, the sum is what one thread reaches.
//!
//! ```sh
//! cargo run --profile dist -p corelane-monitor --example analyze -- [PACKETS [HOSTS [ROUNDS]]]
//! ```

use corelane_monitor::{Dispatcher, Job, Observer, Plan, Progress, Run, Settings, Slot, SubAnalyzer};
use corelane_net::capture::Reader;
use corelane_net::synth::{Config, capture};
use std::error::Error;
use std::time::{Duration, Instant};

const BATCH: usize = 64;

fn reader(bytes: &[u8]) -> Result<Reader, Box<dyn Error>> {
    Ok(Reader::from_bytes(bytes.to_vec())?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let whole =
        |argument: String| argument.parse::<u64>().map_err(|_| "PACKETS, HOSTS and ROUNDS must be whole numbers");
    let mut arguments = std::env::args().skip(1).map(whole);
    let packets = arguments.next().transpose()?.unwrap_or(4_000_000);
    let mut config = Config { packets, ..Config::default() };
    if let Some(hosts) = arguments.next().transpose()? {
        config.hosts = u32::try_from(hosts).map_err(|_| "HOSTS must be less than 2^32")?;
    }
    let rounds = arguments.next().transpose()?.unwrap_or(7);
    println!("{} packets, {} hosts, medians of {rounds} rounds", config.packets, config.hosts);
    let bytes = capture(config)?;
    let settings = Settings { top: 0, ..Settings::default() };

    let run = Run::new();
    let mut slots = Vec::new();
    let mut dispatcher = Dispatcher::new(&run, &settings);
    let mut all = reader(&bytes)?;
    while all.read(BATCH, |record| dispatcher.record(&record, |_, slot| slots.push(slot)))? > 0 {}
    println!("{} slots", slots.len());

    let mut dispatch = Vec::new();
    let mut process = Vec::new();
    let mut finish = Vec::new();
    let mut single = Vec::new();
    for round in 0..rounds {
        let mut input = reader(&bytes)?;
        let mut batch = [Slot::default(); BATCH];
        let mut at = 0;
        let mut dispatcher = Dispatcher::new(&run, &settings);
        let start = Instant::now();
        let mut sink = |_, slot| {
            batch[at % BATCH] = slot;
            at += 1;
            if at % BATCH == 0 {
                std::hint::black_box(&mut batch);
            }
        };
        while input.read(4096, |record| dispatcher.record(&record, &mut sink))? > 0 {}
        dispatch.push(start.elapsed());
        drop(input);

        let mut analyzer = SubAnalyzer::new(&settings, &run);
        let start = Instant::now();
        slots.chunks(BATCH).for_each(|batch| analyzer.process(batch));
        process.push(start.elapsed());
        let start = Instant::now();
        let result = analyzer.finish(dispatcher.max_time());
        finish.push(start.elapsed());
        drop(analyzer);

        let mut input = reader(&bytes)?;
        let start = Instant::now();
        let job = Job::scans(settings.clone(), Plan { analyzers: 0, ..Plan::default() });
        let damage = &|_, error| eprintln!("{error}");
        let observer = Observer { progress: &Progress::new(), damage, found: &mut |_| {} };
        let (report, _) = job.run([&mut input], observer)?;
        single.push(start.elapsed());
        if round == 0 {
            let (flows, pairs, scans) = (report.flows, report.pairs.unwrap_or_default(), report.alerts.len());
            println!("{flows} flows, {pairs} pairs, {} failed attempts, {scans} scans", report.failed_attempts);
            assert_eq!(result.packets(), report.analyzer_packets[0]);
        }
    }
    for (name, times) in [("dispatch", dispatch), ("process", process), ("finish", finish), ("all three", single)] {
        show(name, times, packets);
    }
    Ok(())
}

fn show(name: &str, mut times: Vec<Duration>, packets: u64) {
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64();
    let rate = |time: f64| packets as f64 / time / 1e6;
    let (least, most) = (times[0].as_secs_f64(), times[times.len() - 1].as_secs_f64());
    println!(
        "{name:10} {:7.1} ms {:6.2} ns/packet {:6.1} M packets/s ({:.1} to {:.1})",
        median * 1e3,
        median * 1e9 / packets as f64,
        rate(median),
        rate(most),
        rate(least),
    );
}
