//! How fast synthetic traffic is made, and what it is like:
//! `cargo run --profile dist -p corelane-net --example synth [PACKETS] [HOSTS]`.

use std::collections::HashSet;
use std::hint::black_box;
use std::time::Instant;

use corelane_net::synth::{Config, Generator, capture};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut config = Config::default();
    if let Some(packets) = arguments.next() {
        config.packets = packets.parse().map_err(|_| "PACKETS must be a whole number")?;
    }
    if let Some(hosts) = arguments.next() {
        config.hosts = hosts.parse().map_err(|_| "HOSTS must be a whole number below 2^32")?;
    }
    rate(&config)?;
    shape(&config)?;
    Ok(())
}

/// Times the generator alone, and with the file image if that is small.
fn rate(config: &Config) -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let mut generator = Generator::new(config.clone())?;
    while let Some(record) = generator.next_frame() {
        black_box(record.data);
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("generator: {:.2} M frames/s", config.packets as f64 / seconds / 1e6);
    if config.packets <= 10_000_000 {
        let start = Instant::now();
        let image = capture(config.clone())?;
        let seconds = start.elapsed().as_secs_f64();
        println!("capture in memory: {} bytes in {seconds:.3} s", image.len());
    }
    Ok(())
}

/// Counts what a monitor would see.
fn shape(config: &Config) -> Result<(), Box<dyn std::error::Error>> {
    let mut generator = Generator::new(config.clone())?;
    let (mut flows, mut pairs) = (HashSet::new(), HashSet::new());
    let (mut file, mut wire, mut tcp, mut v6, mut opens, mut last) = (24, 0, 0, 0, 0, 0);
    while let Some(record) = generator.next_frame() {
        let data = record.data;
        file += 16 + data.len();
        wire += u64::from(record.wire_len);
        last = record.time_ns;
        let (protocol, addresses, at) =
            if data[14] >> 4 == 6 { (data[20], 22..54, 54) } else { (data[23], 26..34, 34) };
        v6 += u64::from(at == 54);
        let (source, destination) = data[addresses.clone()].split_at(addresses.len() / 2);
        let (from, to) = ((source, &data[at..at + 2]), (destination, &data[at + 2..at + 4]));
        // A number of 64 bits stands for the flow: a few of many millions may fall together.
        flows.insert(number(&(protocol, from.min(to), from.max(to))));
        pairs.insert(number(&(source.min(destination), source.max(destination))));
        tcp += u64::from(protocol == 6);
        opens += u64::from(protocol == 6 && data[at + 13] & 0x17 == 0x02);
    }
    let packets = config.packets as f64;
    println!(
        "file: {file} bytes, {:.1} a packet; on the wire {:.1} a packet",
        file as f64 / packets,
        wire as f64 / packets
    );
    println!("time: {:.3} s", (last - config.start_ns) as f64 / 1e9);
    println!("flows: {}, address pairs: {}", flows.len(), pairs.len());
    println!(
        "TCP: {:.1} %, SYN: {:.1} %, IPv6: {:.1} %",
        share(tcp, packets),
        share(opens, packets),
        share(v6, packets)
    );
    println!("scans:");
    for alert in generator.truth() {
        println!("  {alert}");
    }
    Ok(())
}

fn share(part: u64, packets: f64) -> f64 {
    part as f64 * 100.0 / packets
}

fn number(value: &impl std::hash::Hash) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
