//! Everything is restarted again and again, and nothing grows.

use crate::choices::Choices;
use crate::kills::{Material, OPTIONS, World, number};
use crate::site::{Carrier, Process, Site, free_port, scrape, value, wait_for};
use crate::split::Capture;
use corelane_net::capture::{Options, Reader, Record};
use std::fs::{self, File};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Captured time between two rounds: what was told in one is over in the next.
const ROUND: u64 = 3 * 3600 * 1_000_000_000;

/// Rounds after which what is kept has its size.
const WARM: usize = 3;

/// Writes a capture again, so much later.
fn shift(from: &Path, to: &Path, by_ns: u64) {
    let mut capture = Capture::create(to);
    let mut reader = Reader::open(from, &Options::default()).expect("a capture");
    let put = |record: Record<'_>, capture: &mut Capture<File>| {
        capture.put(record.time_ns + by_ns, record.wire_len, record.link, record.data);
    };
    while reader.read(1000, |record| put(record, &mut capture)).expect("it is whole") > 0 {}
    capture.finish();
}

/// The bytes of all files in a folder.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |path: &Path| if path.is_dir() { size(path) } else { path.metadata().map_or(0, |facts| facts.len()) };
    entries.map(|entry| size(&entry.path())).sum()
}

/// The memory of a process in bytes.
fn memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().map_or(0, |kilobytes: u64| kilobytes * 1024)
}

#[track_caller]
fn endure(carrier: Carrier) {
    let time = Duration::from_secs(60 * number("CORELANE_SENSOR_MINUTES", 1));
    let seed = number("CORELANE_SENSOR_SEED", 1);
    let mut choices = Choices(seed);
    let material = Material::new("200k", 3);
    let Some(site) = Site::new(carrier) else { return };
    let mut world = World::new(site, &material, 1);
    let port = free_port();
    let mut aggregator = world.site.aggregator(&(0..=255), &world.names);
    aggregator.add(OPTIONS).add(["--snapshot-interval", "1s", "--metrics", &port.to_string()]);
    world.aggregators = vec![aggregator];
    let mut each = Vec::new();
    let mut sizes: Vec<[u64; 4]> = Vec::new();
    let start = Instant::now();
    for round in 0.. {
        if start.elapsed() > time && round > 2 * WARM {
            break;
        }
        for (number, part) in material.parts.iter().enumerate() {
            // One file after the other, as of a capture that rotates.
            let path = world.site.folder.path(&format!("part-{number}.pcapng"));
            shift(part, &path, round as u64 * ROUND);
            world.sensors[number] = world.site.sensor(&world.names[number], &path);
            world.sensors[number].add(OPTIONS);
        }
        world.start();
        for _ in 0..choices.below(4) {
            world.pass(Duration::from_millis(choices.below(300)), 4, &mut choices);
            world.kill(&mut choices);
        }
        world.go_on();
        world.sensors.iter_mut().for_each(Process::finish);
        // No lag is left, and all has counted once.
        let count = |names: &[String]| -> Vec<u64> {
            let samples = scrape(port);
            names.iter().map(|name| value(&samples, "sensor_reports_total", name)).collect()
        };
        if round == 0 {
            wait_for("the ends", || {
                let said = world.aggregators[0].said();
                world.names.iter().all(|name| said.contains(&format!("sensor {name}: its run has ended"))).then_some(())
            });
            sleep(Duration::from_millis(2500));
            each = count(&world.names);
            assert!(each.iter().all(|&count| count > 100), "{each:?}");
        }
        let expected: Vec<_> = each.iter().map(|count| count * (round as u64 + 1)).collect();
        let limit = Instant::now() + Duration::from_secs(30);
        while count(&world.names) != expected {
            let found = count(&world.names);
            assert!(Instant::now() < limit, "seed {seed}, round {round}: {found:?}, not {expected:?}");
            sleep(Duration::from_millis(100));
        }
        // A snapshot is stored, and what it makes needless is removed.
        sleep(Duration::from_millis(1500));
        let site = &world.site;
        let now = [
            size(&site.batches()),
            size(&site.folder.path("store")),
            world.aggregators[0].id().map_or(0, memory),
            site.server.as_ref().map_or(0, |server| memory(server.id())),
        ];
        eprintln!("{carrier:?}, round {round}, {:?}: logs, store, aggregator, server: {now:?}", start.elapsed());
        sizes.push(now);
    }
    let (early, late) = (&sizes[WARM..], &sizes[sizes.len() - WARM..]);
    let early = &early[..early.len() / 2];
    for (at, what) in ["the logs", "the store", "the aggregator", "the server"].into_iter().enumerate() {
        let most = |sizes: &[[u64; 4]]| sizes.iter().map(|sizes| sizes[at]).max().unwrap_or(0);
        // A segment or a block of the store may be the larger one by chance.
        let (before, after) = (most(early), most(late));
        assert!(after <= before + before / 4 + (4 << 20), "{what} grew from {before} to {after}: {sizes:?}");
    }
}

#[test]
#[ignore = "CORELANE_SENSOR_MINUTES; run it with --ignored"]
fn restarted_again_and_again_nothing_grows_over_files() {
    endure(Carrier::Files);
}

#[test]
#[ignore = "CORELANE_SENSOR_MINUTES; run it with --ignored"]
fn restarted_again_and_again_nothing_grows_over_nats() {
    endure(Carrier::Nats);
}
