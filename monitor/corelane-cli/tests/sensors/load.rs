//! How much one server and one aggregator take, with batches made here in real time:
//! `cargo test --profile dist -p corelane-cli --features full --test sensors -- --ignored --nocapture load`.

use crate::choices::Choices;
use crate::nats::{Client, message};
use crate::site::{Carrier, Server, Site, free_port, scrape, value, wait_for};
use corelane_monitor::sensors::shard_of;
use std::fs;
use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SECOND: u64 = 1_000_000_000;
/// Seconds of a run, of which the first half is for warming up.
const SECONDS: u64 = 14;

/// What all sensors bring in each second.
#[derive(Clone, Copy)]
struct Load {
    sensors: u64,
    failures: u64,
    /// The sources of all failures; each is seen by all sensors.
    sources: u64,
}

/// A sensor whose batches say that hosts were sought at one port.
struct Sensor {
    name: String,
    sequence: u64,
    before: u64,
}

impl Sensor {
    /// The batch of the second from here.
    fn batch(&mut self, since_ns: u64, failures: u64, sources: &[Ipv4Addr], choices: &mut Choices) -> Vec<u8> {
        let mut bytes = [&b"CLB\x02\0"[..], &[self.name.len() as u8], self.name.as_bytes()].concat();
        for word in [1, self.sequence, self.before, since_ns, since_ns + SECOND] {
            bytes.extend(word.to_le_bytes());
        }
        varint(failures, &mut bytes);
        self.sequence += 1;
        self.before += failures;
        // As many of each source as there are, or one of some sources in the order of the shards.
        let first = choices.below(sources.len() as u64) as usize;
        let mut chosen: Vec<_> = (0..failures as usize).map(|it| (first + it) % sources.len()).collect();
        chosen.sort_unstable();
        for of_shard in chosen.chunk_by(|&a, &b| shard_of(sources[a].into()) == shard_of(sources[b].into())) {
            let mut section = Vec::new();
            let mut last = None;
            for &source in of_shard {
                let is_same = last.replace(source) == Some(source);
                section.push(if is_same { 1 << 1 | 1 << 3 } else { 0 });
                if !is_same {
                    section.extend(sources[source].octets());
                }
                section.extend((0x0a00_0000 | choices.below(1 << 24) as u32).to_be_bytes());
                if !is_same {
                    section.extend(443_u16.to_le_bytes());
                }
                // As a zigzag: so many nanoseconds after the one before.
                varint(2 * choices.below(SECOND / (of_shard.len() as u64 + 1)), &mut section);
            }
            bytes.push(shard_of(sources[of_shard[0]].into()));
            varint(section.len() as u64, &mut bytes);
            bytes.extend(section);
        }
        bytes
    }
}

fn varint(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_nanos() as u64
}

/// The time that a process has computed for, and its memory in MB.
fn cost(id: u32) -> (Duration, u64) {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    (Duration::from_millis(10 * (number(11) + number(12))), number(21) * 4096 / 1_000_000)
}

fn run(load: Load) {
    let Some(site) = Site::new(Carrier::Nats) else { return };
    let server = site.server.as_ref().map_or((0, 0), |server: &Server| (server.port, server.id()));
    let metrics = free_port();
    let mut aggregator = site.aggregator(&(0..=255), &[]);
    aggregator.add(["--metrics", &metrics.to_string()]).start();
    wait_for("the metrics", || (!scrape(metrics).is_empty()).then_some(()));
    let id = aggregator.id().expect("it was started");
    let client = Client::connect(server.0);
    let mut choices = Choices(1);
    let mut sources: Vec<_> = (0..load.sources).map(|number| Ipv4Addr::from(0x0b00_0000 + number as u32)).collect();
    sources.sort_unstable_by_key(|&source| shard_of(source.into()));
    let mut sensors: Vec<_> =
        (0..load.sensors).map(|number| Sensor { name: format!("sensor-{number}"), sequence: 0, before: 0 }).collect();
    let begin_ns = (now_ns() / SECOND + 2) * SECOND;
    let (mut sent, mut late, mut lags, mut warm) = (0, Duration::ZERO, Vec::new(), None);
    for second in 0..SECONDS {
        let since_ns = begin_ns + second * SECOND;
        let mut bytes = Vec::new();
        for sensor in &mut sensors {
            let batch = sensor.batch(since_ns, load.failures / load.sensors, &sources, &mut choices);
            let headers = format!("Corelane-Batch: 1.{}", sensor.sequence - 1);
            message(&format!("corelane.batches.{}", sensor.name), "", Some(&headers), &batch, &mut bytes);
        }
        // Each second is sent when it is over.
        let due_ns = since_ns + SECOND;
        sleep(Duration::from_nanos(due_ns.saturating_sub(now_ns())));
        late = late.max(Duration::from_nanos(now_ns().saturating_sub(due_ns)));
        sent += bytes.len() as u64;
        client.send(&bytes);
        if second == SECONDS / 2 {
            warm = Some((Instant::now(), cost(server.1).0, cost(id).0));
        }
        sleep(Duration::from_millis(600));
        let samples = scrape(metrics);
        let is_over = samples.iter().find(|((name, _), _)| name == "corelane_time_seconds").map_or(0.0, |it| *it.1);
        lags.push(due_ns as f64 / 1e9 - is_over);
    }
    let (since, server_before, before) = warm.expect("there is a second half");
    let took = since.elapsed().as_secs_f64();
    let ((server_cpu, server_memory), (cpu, memory)) = (cost(server.1), cost(id));
    let total = load.sensors * SECONDS;
    let begin = Instant::now();
    let sum = || {
        let samples = scrape(metrics);
        samples.iter().filter(|((name, _), _)| name.contains("sensor_batches")).map(|it| *it.1 as u64).sum::<u64>()
    };
    while sum() < total && begin.elapsed() < Duration::from_secs(120) {
        sleep(Duration::from_millis(100));
    }
    let lag = |lags: &[f64]| lags.iter().copied().fold(0.0, f64::max);
    let percent = |cpu: Duration, before: Duration| (cpu - before).as_secs_f64() / took * 100.0;
    eprintln!(
        "{} sensors, {} failures/s of {} sources: {:.1} bytes a failure, {:.2} MB/s; lag {:.1} s, then {:.1} s; all {} of \
         {total} batches {:.1} s later; server {:.0} % of a CPU, {server_memory} MB; aggregator {:.0} %, {memory} MB, {} \
         groups; sent late by {late:?}; {}",
        load.sensors,
        load.failures,
        load.sources,
        sent as f64 / (load.failures * SECONDS).max(1) as f64,
        sent as f64 / 1e6 / SECONDS as f64,
        lag(&lags[2..lags.len() / 2]),
        lag(&lags[lags.len() / 2..]),
        sum(),
        begin.elapsed().as_secs_f64(),
        percent(server_cpu, server_before),
        percent(cpu, before),
        value(&scrape(metrics), "scan_groups", ""),
        if aggregator.said().contains("lost") { "LOST" } else { "nothing lost" },
    );
}

#[test]
#[ignore = "measures; run it with --ignored"]
fn load_of_a_server_and_an_aggregator() {
    let load = |sensors, failures, sources| Load { sensors, failures, sources };
    // Batches alone.
    for sensors in [1000, 10_000] {
        run(load(sensors, 0, 1));
    }
    // Few sources that scan all the time, and many that fail now and then.
    for failures in [100_000, 300_000] {
        run(load(100, failures, 100));
        run(load(100, failures, 100_000));
    }
    run(load(1000, 1_000_000, 10_000));
}
