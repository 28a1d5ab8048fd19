//! Sensors and aggregators, joined by batches in memory, find what one monitor finds.

use crate::captures_folder::captures;
use crate::choices::Choices;
use crate::packets::{RST, SECOND, START, SYN, tcp};
use crate::records::{Owned, Records, of_one_clock, record, records_of, split, synthetic};
use crate::traffic;
use corelane_monitor::sensors::{Aggregator, Header, News, Refusal, SensorName, SensorNews, encode, shard_of};
use corelane_monitor::{Continuous, Found, Job, Observer, Plan, Progress, ScanEvent, ScanState, Settings};
use corelane_net::capture::{LinkType, Options, Reader};
use corelane_net::decode::locate;
use corelane_net::synth::{Config, Conversations, Tunnel};
use std::ops::RangeInclusive;

/// Runs a monitor over records: the scans that it finds, and the batches that it makes as a sensor of this number.
fn monitor(records: Records, settings: &Settings, analyzers: usize, number: usize) -> (Vec<ScanEvent>, Vec<Vec<u8>>) {
    let scans = Job::scans(settings.clone(), Plan { analyzers, capacity: 64, ..Plan::default() });
    let job = Job { continuous: Some(Continuous { reports: true, ..Continuous::default() }), ..scans };
    let (mut scans, mut batches) = (Vec::new(), Vec::new());
    let mut header = Header {
        sensor: name(number),
        epoch: 7,
        sequence: 0,
        before: 0,
        since_ns: 0,
        begun_ns: 0,
        more: false,
        is_last: false,
    };
    let found = &mut |found: Found<'_>| match found {
        Found::Scan(scan) => scans.push(scan.clone()),
        Found::Step { begun_ns, reports, through, is_last } => {
            (header.begun_ns, header.is_last) = (begun_ns, is_last);
            encode(&mut header, &mut reports.to_vec(), through, |_, batch| batches.push(batch.to_vec()));
        }
        _ => {}
    };
    let damage = &|_, never| match never {};
    job.run([records], Observer { progress: &Progress::new(), damage, found }).expect("a good plan");
    (scans, batches)
}

fn name(number: usize) -> SensorName {
    format!("sensor-{number}").parse().expect("a name")
}

/// The shards of each of so many aggregators.
fn ranges(count: usize) -> Vec<RangeInclusive<u8>> {
    let begin = |number: usize| number * 256 / count;
    (0..count).map(|number| begin(number) as u8..=(begin(number + 1) - 1) as u8).collect()
}

/// What an aggregator says of these batches. They come in any order between sensors, some again, and now and then it
/// ends at once and goes on from an earlier snapshot.
fn aggregate(
    batches: &[Vec<Vec<u8>>],
    settings: &Settings,
    shards: &RangeInclusive<u8>,
    choices: &mut Choices,
) -> Vec<ScanEvent> {
    let begin = || {
        let expected = (0..batches.len()).map(name);
        Aggregator::new(settings, &Continuous::default(), shards.clone(), expected)
    };
    let mut aggregator = begin();
    let mut scans: Vec<ScanEvent> = Vec::new();
    let mut places = vec![0; batches.len()];
    // What a restart goes on from: the state, the places of the sensors and what was said.
    let mut saved = (aggregator.snapshot(), places.clone(), 0);
    let hears = |scans: &mut Vec<ScanEvent>, news: News| match news {
        News::Scan(scan) => scans.push(scan),
        News::Sensor(event) => {
            assert!(
                matches!(event.news, SensorNews::Began { .. } | SensorNews::Ended),
                "nothing is missing: {event:?}"
            );
        }
    };
    while !aggregator.have_all_ended() {
        let sensor = choices.below(batches.len() as u64) as usize;
        let Some(batch) = batches[sensor].get(places[sensor]) else { continue };
        aggregator.take(batch, name(sensor).as_str(), u64::MAX, |news| hears(&mut scans, news)).expect("a batch");
        places[sensor] += 1;
        aggregator.advance(|news| hears(&mut scans, news));
        match choices.below(20) {
            0 => assert_eq!(
                aggregator.take(batch, name(sensor).as_str(), u64::MAX, |_| panic!("it was seen")),
                Err(Refusal::Again)
            ),
            1 => saved = (aggregator.snapshot(), places.clone(), scans.len()),
            2 => {
                aggregator = begin();
                aggregator.restore(&saved.0).expect("a snapshot");
                places.clone_from(&saved.1);
                scans.truncate(saved.2);
            }
            _ => {}
        }
    }
    aggregator.finish(|news| hears(&mut scans, news));
    scans
}

fn compare(what: &str, records: &[Owned], settings: &Settings, choices: &mut Choices) -> usize {
    let records = &of_one_clock(records);
    let (all, _) = monitor(Records(records.to_vec(), 0), settings, 0, 0);
    for sensors in [1, 2, 5] {
        let batches: Vec<_> = (split(records, sensors).into_iter().enumerate())
            .map(|(number, part)| monitor(part, settings, number % 3, number).1)
            .collect();
        for shards in (1..=3).flat_map(ranges) {
            let is_of = |scan: &&ScanEvent| shards.contains(&shard_of(scan.scan.source()));
            let expected: Vec<_> = all.iter().filter(is_of).cloned().collect();
            let scans = aggregate(&batches, settings, &shards, choices);
            assert_eq!(scans, expected, "{what}: {sensors} sensors, shards {shards:?}");
        }
    }
    all.len()
}

#[test]
fn captures_are_told_alike_by_any_number_of_sensors_and_aggregators() {
    let Some(folder) = captures() else { return };
    let (mut choices, mut scans) = (Choices(1), 0);
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let Ok(reader) = Reader::open(&path, &Options::default()) else { continue };
        let records = records_of(reader);
        let low = Settings { vertical_threshold: 2, horizontal_threshold: 2, ..Settings::default() };
        for settings in [Settings::default(), low] {
            scans += compare(&path.display().to_string(), &records, &settings, &mut choices);
        }
    }
    assert!(scans > 100, "{scans}");
}

#[test]
fn synthetic_traffic_is_told_alike_by_any_number_of_sensors_and_aggregators() {
    let mut choices = Choices(2);
    let mut records = synthetic(Config { packets: 60_000, ..Config::default() });
    assert!(compare("scans", &records, &Settings::default(), &mut choices) > 20);
    // Seconds become minutes: failures are forgotten, and scans end and are told again.
    let begin_ns = records[0].0;
    records.iter_mut().for_each(|(time_ns, ..)| *time_ns = begin_ns + (*time_ns - begin_ns) * 60);
    assert!(compare("slow scans", &records, &Settings::default(), &mut choices) > 20);
    let web = Conversations { seed: 3, conversations: 2_000, trouble: 5, spoofed: 100 };
    let records = records_of(Reader::from_bytes(web.capture()).expect("a capture"));
    let low = Settings { vertical_threshold: 1, horizontal_threshold: 1, ..Settings::default() };
    compare("web", &records, &low, &mut choices);
}

/// One source shows few hosts to each sensor.
#[test]
fn a_scan_of_hosts_at_ten_sensors_is_found_by_none_of_them_but_by_their_aggregator() {
    let (sensors, hosts) = (10, 15);
    let mut parts = vec![Vec::new(); sensors];
    for host in 0..hosts {
        for (sensor, part) in parts.iter_mut().enumerate() {
            let time_ns = START + (host * sensors + sensor) as u64 * (SECOND / 10);
            let (from, to) = ("203.0.113.9 40000", format!("10.0.{sensor}.{host} 443"));
            for packet in [tcp(time_ns, from, &to, SYN), tcp(time_ns + 1000, &to, from, RST)] {
                let data = packet.frame();
                part.push((packet.time_ns, data.len() as u32, LinkType::RAW, data));
            }
        }
    }
    let settings = Settings::default();
    assert!(hosts as u64 <= settings.horizontal_threshold);
    let batches: Vec<_> = (parts.into_iter().enumerate())
        .map(|(number, part)| {
            let (scans, batches) = monitor(Records(part, 0), &settings, 1, number);
            assert_eq!(scans, [], "sensor {number} alone");
            batches
        })
        .collect();
    let scans = aggregate(&batches, &settings, &(0..=255), &mut Choices(3));
    let states: Vec<_> = scans.iter().map(|scan| (scan.scan.count(), scan.state == ScanState::Found)).collect();
    assert_eq!(states, [(21, true), (150, false)]);
    assert_eq!(scans[0].scan.source(), "203.0.113.9".parse::<std::net::IpAddr>().expect("an address"));
}

/// The processor's time and the memory of an aggregator, by what sensors send. Prints figures for docs/benchmarks.md:
/// `cargo test --profile dist -p corelane-monitor --test parts -- --ignored --nocapture load`.
#[test]
#[ignore = "measures"]
fn load_of_an_aggregator() {
    let settings = Settings::default();
    for (sensors, seconds, failures, sources) in [
        (1000, 20, 0, 1),
        (100, 20, 100, 50),
        (100, 20, 1000, 1 << 20),
        (100, 20, 1000, 100),
        (10, 10, 20_000, 1 << 24),
    ] {
        let mut choices = Choices(5);
        let batches: Vec<_> = (0..sensors)
            .map(|number| {
                let mut packets = Vec::new();
                for second in 0..seconds {
                    let time_ns = START + second * SECOND;
                    // One that does not fail, so that each second has a packet.
                    packets.push((time_ns, tcp(time_ns, "192.0.2.1 5000", "192.0.2.2 80", 0x10).frame()));
                    for failure in 0..failures {
                        let time_ns = time_ns + failure * (SECOND / failures);
                        let [a, b, c] = (choices.below(sources) as u32 | 0x0100_0000).to_be_bytes()[1..] else {
                            return Vec::new();
                        };
                        let from = format!("11.{a}.{b}.{c} 40000");
                        let to = format!("10.{}.{}.{} 443", number % 256, choices.below(256), choices.below(256));
                        packets.push((time_ns, tcp(time_ns, &from, &to, SYN).frame()));
                    }
                }
                let records =
                    packets.into_iter().map(|(time_ns, data)| (time_ns, data.len() as u32, LinkType::RAW, data));
                monitor(Records(records.collect(), 0), &settings, 0, number).1
            })
            .collect();
        let memory = || {
            let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
            text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
        };
        let bytes: usize = batches.iter().flatten().map(Vec::len).sum();
        let count: usize = batches.iter().map(Vec::len).sum();
        let (before, start) = (memory(), std::time::Instant::now());
        let mut aggregator = Aggregator::new(&settings, &Continuous::default(), 0..=255, (0..sensors).map(name));
        // The last batches end all.
        for round in 0..batches.iter().map(Vec::len).max().unwrap_or(0) - 1 {
            for (number, batches) in batches.iter().enumerate() {
                let Some(batch) = batches.get(round) else { continue };
                aggregator.take(batch, name(number).as_str(), u64::MAX, |_| ()).expect("a batch");
                aggregator.advance(|_| ());
            }
        }
        let took = start.elapsed();
        let reports: u64 = aggregator.sensors().map(|sensor| sensor.reports).sum();
        let (groups, memory) = (aggregator.groups(), memory().saturating_sub(before));
        let start = std::time::Instant::now();
        let snapshot = aggregator.snapshot();
        println!(
            "{sensors} sensors, {failures} failures/s of {sources} sources: {count} batches, {reports} reports, {:.1} bytes a \
             report, {} a batch; {:.2} us a batch, {:.0} ns a report; {groups} groups, {memory} bytes, {:.0} a group; \
             snapshot {} bytes in {:?}",
            bytes as f64 / reports.max(1) as f64,
            bytes / count,
            took.as_secs_f64() * 1e6 / count as f64,
            took.as_secs_f64() * 1e9 / reports.max(1) as f64,
            memory as f64 / groups.max(1) as f64,
            snapshot.len(),
            start.elapsed(),
        );
    }
}

/// Scans through tunnels and bare ones: an aggregator tells the same tunnels, also after a restart.
#[test]
fn tunnels_are_told_alike_by_any_number_of_sensors_and_aggregators() {
    let tunnels = [Tunnel::Ip, Tunnel::Gre, Tunnel::Vxlan];
    let mut records = synthetic(Config { packets: 30_000, probe_scans: 8, ..Config::default() });
    for frame in &mut records {
        // By the hosts inside, as a pair of hosts is one sensor's.
        let sum = locate(frame.2, &frame.3).map_or(0, |at| at.source.wrapping_add(at.destination)) as usize;
        if !sum.is_multiple_of(4) {
            let data = tunnels[sum % 3].wrap(&record(frame), sum.is_multiple_of(2)).expect("an IP packet");
            (frame.1, frame.3) = (data.len() as u32, data);
        }
    }
    let settings = Settings { tunnels: true, ..Settings::default() };
    let (all, _) = monitor(Records(records.clone(), 0), &settings, 0, 0);
    let with = all.iter().filter(|scan| scan.tunnel.is_some()).count();
    assert!(with > 20, "{with} of {}", all.len());
    assert_eq!(compare("tunnels", &records, &settings, &mut Choices(3)), all.len());
}

/// Both addresses of a client are at two sensors, or their shards at two aggregators.
#[test]
fn innocents_and_scans_are_told_alike_by_any_number_of_sensors_and_aggregators() {
    let (mut choices, mut told) = (Choices(7), 0);
    for (name, _, packets) in traffic::rows() {
        let records: Vec<_> = (packets.iter())
            .map(|packet| {
                let frame = packet.frame();
                (packet.time_ns, frame.len() as u32, LinkType::RAW, frame)
            })
            .collect();
        told += usize::from(compare(name, &records, &Settings::default(), &mut choices) > 0);
    }
    assert!(told >= 11, "{told}");
}
