//! Everything is killed at random moments and started again, and nothing is lost or told twice.

use crate::choices::Choices;
use crate::program::Folder;
use crate::site::{Carrier, Process, Site, assert_same, events, generate, names, of_shards, ranges, start, whole};
use crate::split::split;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Scans are told, forgotten and told again within the capture.
pub(crate) const OPTIONS: [&str; 8] =
    ["--forget", "1m", "--suppress", "2m", "--vertical-threshold", "5", "--horizontal-threshold", "5"];

/// A capture in parts, and the alerts of one monitor over the whole.
pub(crate) struct Material {
    _folder: Folder,
    pub(crate) parts: Vec<PathBuf>,
    pub(crate) alerts: Vec<String>,
}

impl Material {
    pub(crate) fn new(packets: &str, sensors: usize) -> Self {
        let folder = Folder::new();
        let capture = folder.path("all.pcap");
        let scans = ["--vertical-scans", "60", "--horizontal-scans", "60", "--probe-scans", "40"];
        generate(&capture, &[&["-n", packets, "--rate", "1000"], &scans[..]].concat());
        let alerts = whole(&capture, &OPTIONS, &folder);
        assert!(alerts.len() > 50, "{} alerts", alerts.len());
        let parts = split(&capture, sensors, &folder.path(""));
        Material { _folder: folder, parts, alerts }
    }
}

/// The processes of a site.
pub(crate) struct World {
    pub(crate) site: Site,
    pub(crate) names: Vec<String>,
    pub(crate) sensors: Vec<Process>,
    shards: Vec<RangeInclusive<u8>>,
    pub(crate) aggregators: Vec<Process>,
}

impl World {
    /// All, before it is started.
    pub(crate) fn new(site: Site, material: &Material, aggregators: usize) -> Self {
        let names = names(material.parts.len());
        let sensor = |(name, part): (&String, &PathBuf)| {
            let mut sensor = site.sensor(name, part);
            sensor.add(OPTIONS);
            sensor
        };
        let sensors = names.iter().zip(&material.parts).map(sensor).collect();
        let shards = ranges(aggregators);
        let aggregator = |shards| {
            let mut aggregator = site.aggregator(shards, &names);
            aggregator.add(OPTIONS).add(["--until-ended", "--snapshot-interval", "1s"]);
            aggregator
        };
        let aggregators = shards.iter().map(aggregator).collect();
        World { site, names, sensors, shards, aggregators }
    }

    pub(crate) fn start(&mut self) {
        start(&mut self.sensors);
        start(&mut self.aggregators);
    }

    /// Time passes, in which each process runs one part of so many.
    pub(crate) fn pass(&mut self, time: Duration, parts: u64, choices: &mut Choices) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            for process in self.sensors.iter_mut().chain(&mut self.aggregators) {
                process.signal(if choices.below(parts) == 0 { Signal::CONT } else { Signal::STOP });
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Kills something, and starts it again after a while.
    pub(crate) fn kill(&mut self, choices: &mut Choices) {
        let what = choices.below(4);
        let (sensor, aggregator) = (choices.below(64) as usize, choices.below(64) as usize);
        let (sensor, aggregator) = (sensor % self.sensors.len(), aggregator % self.aggregators.len());
        if what == 0 || what == 3 {
            let some = if what == 3 { 0..self.sensors.len() } else { sensor..sensor + 1 };
            self.sensors[some].iter_mut().for_each(Process::kill);
        }
        let has_no_server = self.site.server.is_none();
        let mut server = self.site.server.as_mut().filter(|_| what == 1 || what == 3);
        if let Some(server) = &mut server {
            server.kill();
        }
        if what == 2 || what == 3 || has_no_server {
            let some = if what == 3 { 0..self.aggregators.len() } else { aggregator..aggregator + 1 };
            self.aggregators[some].iter_mut().for_each(Process::kill);
        }
        sleep(Duration::from_millis(choices.below(200)));
        if let Some(server) = server {
            server.restart();
        }
        self.start();
    }

    /// Lets all run.
    pub(crate) fn go_on(&self) {
        self.sensors.iter().chain(&self.aggregators).for_each(|process| process.signal(Signal::CONT));
    }

    /// Waits until all have ended.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        self.go_on();
        self.sensors.iter_mut().for_each(Process::finish);
        self.aggregators.iter_mut().for_each(Process::finish);
    }

    /// Compares what the aggregators have told with what one monitor tells.
    #[track_caller]
    pub(crate) fn compare(&self, alerts: &[String], what: &str) {
        for (aggregator, shards) in self.aggregators.iter().zip(&self.shards) {
            let eve = self.site.events(&aggregator.name);
            let what = format!("{what}, shards {shards:?}");
            assert_same(&events(&eve, "alert"), &of_shards(alerts, shards), &what);
            let mut news = BTreeMap::new();
            for event in events(&eve, "sensor") {
                let event: serde_json::Value = serde_json::from_str(&event).expect("JSON");
                let part = |name: &str| event["sensor"][name].as_str().expect("a text").to_owned();
                *news.entry((part("name"), part("state"))).or_insert(0) += 1;
            }
            let once = |name: &String| ["began", "ended"].map(|state| ((name.clone(), state.to_owned()), 1));
            let expected: BTreeMap<_, _> = self.names.iter().flat_map(once).collect();
            assert_eq!(news, expected, "{what}");
        }
    }
}

pub(crate) fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |number| number.parse().expect("a number"))
}

#[track_caller]
fn kill_and_compare(carrier: Carrier, material: &Material, seed: u64) -> Option<()> {
    eprintln!("seed {seed}, {carrier:?}");
    let mut choices = Choices(seed);
    let aggregators = 1 + choices.below(3) as usize;
    let mut world = World::new(Site::new(carrier)?, material, aggregators);
    let parts = [1, 2, 4, 8, 16][choices.below(5) as usize];
    world.start();
    for _ in 0..4 + choices.below(8) {
        let time = Duration::from_millis(choices.below(400));
        world.pass(time, parts, &mut choices);
        world.kill(&mut choices);
    }
    world.finish();
    let what = format!("seed {seed}, {carrier:?}, {aggregators} aggregators");
    world.compare(&material.alerts, &what);
    // All has been told, so all that they tell from their last snapshots on is known.
    start(&mut world.aggregators);
    world.aggregators.iter_mut().for_each(Process::finish);
    world.compare(&material.alerts, &format!("{what}, once more"));
    Some(())
}

fn kill_often(carrier: Carrier) {
    let material = Material::new("400k", 3);
    let seed = number("CORELANE_SENSOR_SEED", 1);
    for seed in seed..seed + number("CORELANE_SENSOR_RUNS", 2) {
        if kill_and_compare(carrier, &material, seed).is_none() {
            return;
        }
    }
}

#[test]
fn killed_at_any_moment_all_is_told_once_over_files() {
    kill_often(Carrier::Files);
}

#[test]
fn killed_at_any_moment_all_is_told_once_over_nats() {
    kill_often(Carrier::Nats);
}
