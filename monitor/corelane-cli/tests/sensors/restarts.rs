//! Ends and restarts that are looked at one by one.

use crate::choices::Choices;
use crate::kills::{Material, OPTIONS, number};
use crate::packets::{RST, SECOND, START, SYN, tcp};
use crate::site::{
    Carrier, Process, Site, alerts_so_far, assert_same, events, free_port, names, scrape, start, value, wait_for, whole,
};
use crate::split::Capture;
use corelane_net::capture::LinkType;
use rustix::process::Signal;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

fn sensors(site: &Site, material: &Material) -> (Vec<String>, Vec<Process>) {
    let names = names(material.parts.len());
    let sensor = |(name, part): (&String, &std::path::PathBuf)| {
        let mut sensor = site.sensor(name, part);
        sensor.add(OPTIONS);
        sensor
    };
    let sensors = names.iter().zip(&material.parts).map(sensor).collect();
    (names, sensors)
}

/// Lets a sensor run bit by bit until something is so. It is stopped then.
#[track_caller]
fn run_until(sensor: &Process, what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || {
        sensor.signal(Signal::CONT);
        sleep(Duration::from_millis(2));
        sensor.signal(Signal::STOP);
        is_so().then_some(())
    });
}

/// The bytes of all segments of a sensor's log.
fn logged(folder: &Path) -> u64 {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries(folder)
        .flat_map(|epoch| entries(&epoch).collect::<Vec<_>>())
        .filter_map(|it| Some(it.metadata().ok()?.len()))
        .sum()
}

/// A sensor of files that a signal ends has not ended its run. The next start goes on with it.
#[test]
fn a_signal_to_a_sensor_of_files_ends_no_run() {
    let material = Material::new("200k", 2);
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let (names, mut sensors) = sensors(&site, &material);
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(OPTIONS).add(["--until-ended", "--snapshot-interval", "1s"]).start();
    sensors[1].start().finish();
    let log = site.batches().join(&names[0]);
    let mut before = 0;
    for time in 0..4 {
        sensors[0].start();
        run_until(&sensors[0], "more of its log", || logged(&log) > before);
        sensors[0].signal(Signal::TERM);
        sensors[0].signal(Signal::CONT);
        let code = sensors[0].end();
        before = logged(&log);
        if code == Some(0) {
            assert!(time > 0, "it was at its end");
            break;
        }
        assert_eq!(code, Some(143), "{}", sensors[0].said());
        assert!(!aggregator.said().contains("sensor-0: its run has ended"), "{}", aggregator.said());
    }
    sensors[0].start().finish();
    aggregator.finish();
    assert_same(&events(&site.events("0-255"), "alert"), &material.alerts, "after signals");
    assert_eq!(events(&site.events("0-255"), "sensor").len(), 4, "each begins and ends once");
}

/// A sensor whose spool is full waits for room. A signal ends that too, and costs nothing.
#[test]
fn a_signal_while_a_spool_is_full_loses_nothing() {
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let path = site.folder.path("slow.pcapng");
    let mut capture = Capture::create(&path);
    let seconds: u64 = 40_000;
    for second in 0..seconds {
        let (from, to) = ("203.0.113.9 40000", format!("10.0.{}.{} 443", second / 250 % 250, second % 250));
        for packet in [tcp(START + second * SECOND, from, &to, SYN), tcp(START + second * SECOND + 9, &to, from, RST)] {
            let data = packet.frame();
            capture.put(packet.time_ns, data.len() as u32, LinkType::RAW, &data);
        }
    }
    capture.finish();
    let alerts = whole(&path, &OPTIONS, &site.folder);
    assert!(alerts.len() > 20, "{} alerts", alerts.len());
    let names = names(1);
    let mut sensor = site.sensor(&names[0], &path);
    sensor.add(OPTIONS).add(["--spool-size", "2M"]).start();
    sensor.wait_until_said("the spool is full");
    sensor.signal(Signal::TERM);
    assert_eq!(sensor.end(), Some(143), "{}", sensor.said());
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(OPTIONS).add(["--snapshot-interval", "1s"]);
    aggregator.add(["--until-ended", "--sensor-timeout", "60s"]).start();
    // Room comes once a second, and so does a signal.
    let code = (0..40).find_map(|number| {
        sensor.start();
        sleep(Duration::from_millis(400 + number * 37 % 1100));
        sensor.signal(Signal::TERM);
        let code = sensor.end();
        // One that was hit before it listened for signals has not begun.
        assert!(matches!(code, Some(0 | 143) | None), "{code:?}: {}", sensor.said());
        assert!(!sensor.said().contains("were lost"), "{}", sensor.said());
        code.filter(|&code| code == 0)
    });
    if code.is_none() {
        sensor.start().finish();
    }
    aggregator.finish();
    assert_same(&events(&site.events("0-255"), "alert"), &alerts, "through a spool that was full");
    let news = events(&site.events("0-255"), "sensor");
    assert_eq!(news.len(), 2, "it begins and ends, and nothing is lost: {news:?}");
}

/// A sensor has told all, and another one that is expected never comes. Gives what there is to tell, the place, and the
/// aggregator before it is started.
fn beside_a_ghost() -> (Material, Site, Process) {
    let material = Material::new("100k", 1);
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let (mut names, mut sensors) = sensors(&site, &material);
    names.push("ghost".to_owned());
    sensors[0].start().finish();
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(OPTIONS).add(["--sensor-timeout", "1s"]);
    (material, site, aggregator)
}

/// One that is expected never comes. It is left out, and what it held back is told.
#[test]
fn a_sensor_that_never_comes_is_left_out() {
    let (material, site, mut aggregator) = beside_a_ghost();
    aggregator.start();
    aggregator.wait_until_said("sensor ghost: left out");
    let eve = site.events("0-255");
    // Scans that go on have not ended, and what is open has not failed.
    let least = material.alerts.len() / 4;
    wait_for("alerts", || (alerts_so_far(&eve) >= least).then_some(()));
    aggregator.signal(Signal::TERM);
    aggregator.finish();
    let alerts = events(&eve, "alert");
    assert_same(&alerts, &material.alerts[..alerts.len()], "before the end");
    let news = events(&eve, "sensor");
    assert_eq!(news.iter().filter(|event| event.contains("left_out")).count(), 1, "{news:?}");
}

/// One that is expected never comes, and the aggregator is killed around the time at which the clock leaves it out.
#[test]
fn what_the_clock_has_decided_is_told_once_though_the_aggregator_is_killed() {
    let (material, site, mut aggregator) = beside_a_ghost();
    aggregator.add(["--snapshot-interval", "1h"]);
    let eve = site.events("0-255");
    let mut choices = Choices(number("CORELANE_SENSOR_SEED", 1));
    for _ in 0..8 {
        aggregator.start();
        // Some before, some after, and some as soon as a scan is told.
        if choices.below(3) == 0 {
            let before = alerts_so_far(&eve);
            let end = Instant::now() + Duration::from_secs(3);
            while alerts_so_far(&eve) == before && Instant::now() < end {
                sleep(Duration::from_millis(1));
            }
        } else {
            sleep(Duration::from_millis(900 + choices.below(1500)));
        }
        aggregator.kill();
    }
    aggregator.start();
    let least = material.alerts.len() / 4;
    wait_for("alerts", || (alerts_so_far(&eve) >= least).then_some(()));
    sleep(Duration::from_secs(3));
    aggregator.signal(Signal::TERM);
    aggregator.finish();
    let alerts = events(&eve, "alert");
    assert_same(&alerts, &material.alerts[..alerts.len().min(material.alerts.len())], "before the end");
    let news = events(&eve, "sensor");
    assert_eq!(news.iter().filter(|event| event.contains("left_out")).count(), 1, "{news:?}");
}

/// The file of events is left as a killed process or a power loss leaves it.
#[test]
fn a_torn_file_of_events_becomes_whole() {
    let material = Material::new("100k", 1);
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let (names, mut sensors) = sensors(&site, &material);
    sensors[0].start().finish();
    let mut aggregator = site.aggregator(&(0..=255), &names);
    // There is the snapshot of the start alone.
    aggregator.add(OPTIONS).add(["--snapshot-interval", "1h"]);
    let eve = site.events("0-255");
    fs::write(&eve, "{\"kept\":1}\n").expect("room");
    aggregator.start();
    aggregator.wait_until_said("sensor-0: its run has ended");
    wait_for("alerts", || (alerts_so_far(&eve) > 20).then_some(()));
    aggregator.kill();
    let whole = fs::read(&eve).expect("it is there");
    for cut in [1, 2, 100, 1_000, whole.len() - 12, whole.len() - 11] {
        fs::write(&eve, &whole[..whole.len() - cut]).expect("room");
        aggregator.start();
        wait_for("what was cut off", || (fs::metadata(&eve).ok()?.len() == whole.len() as u64).then_some(()));
        aggregator.kill();
    }
    OpenOptions::new().append(true).open(&eve).and_then(|mut file| file.write_all(b"{\"torn")).expect("room");
    aggregator.add(["--until-ended"]).start().finish();
    assert!(fs::read_to_string(&eve).expect("text").starts_with("{\"kept\":1}\n"));
    assert_same(&events(&eve, "alert"), &material.alerts, "after all this");
}

/// A rotated file of events, and a kill behind that.
#[test]
fn rotation_and_a_kill_lose_and_repeat_nothing() {
    let material = Material::new("200k", 1);
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let (names, mut sensors) = sensors(&site, &material);
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(OPTIONS).add(["--snapshot-interval", "1h"]).start();
    let (eve, old) = (site.events("0-255"), site.folder.path("old.json"));
    wait_for("its output", || eve.is_file().then_some(()));
    sensors[0].start();
    run_until(&sensors[0], "some alerts", || alerts_so_far(&eve) > 10);
    fs::rename(&eve, &old).expect("it is there");
    aggregator.signal(Signal::HUP);
    wait_for("a new file", || eve.is_file().then_some(()));
    sensors[0].signal(Signal::CONT);
    sensors[0].finish();
    wait_for("some alerts", || (alerts_so_far(&eve) > 0).then_some(()));
    aggregator.kill();
    aggregator.add(["--until-ended"]).start().finish();
    let all = [events(&old, "alert"), events(&eve, "alert")].concat();
    assert_same(&all, &material.alerts, "both files");
}

#[test]
fn two_sensors_of_one_name_are_noticed() {
    let material = Material::new("200k", 1);
    // On one machine the second is refused.
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let (_, mut first) = sensors(&site, &material);
    let (_, mut second) = sensors(&site, &material);
    first[0].start();
    let log = site.batches().join("sensor-0");
    run_until(&first[0], "its lock", || log.join("run").is_file());
    assert_eq!(second[0].start().end(), Some(2));
    assert!(second[0].said().contains("another process is this sensor"), "{}", second[0].said());
    first[0].signal(Signal::CONT);
    first[0].finish();

    // On two the later one counts.
    let Some(site) = Site::new(Carrier::Nats) else { return };
    let (names, mut first) = sensors(&site, &material);
    let port = free_port();
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(OPTIONS).add(["--metrics", &port.to_string()]).start();
    first[0].start();
    run_until(&first[0], "its begin", || aggregator.said().contains("began a run at"));
    sleep(Duration::from_millis(1100));
    let mut second = site.sensor(&names[0], &material.parts[0]);
    second.replace(&site.batches(), &site.folder.path("another spool"));
    second.add(OPTIONS).start().finish();
    first[0].signal(Signal::CONT);
    first[0].finish();
    wait_for("refused batches", || (value(&scrape(port), "refused_batches_total", "old run") > 0).then_some(()));
    assert!(aggregator.said().contains("two sensors may have one name"), "{}", aggregator.said());
}

#[test]
fn what_cannot_be_gone_on_from_is_refused_in_one_line() {
    let material = Material::new("100k", 1);
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let (names, mut sensors) = sensors(&site, &material);
    start(&mut sensors);
    sensors[0].finish();
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(OPTIONS).start();
    aggregator.wait_until_said("its run has ended");
    aggregator.signal(Signal::TERM);
    aggregator.finish();
    let mut other = site.aggregator(&(0..=255), &names);
    other.add(["--vertical-threshold", "6"]).start();
    assert_eq!(other.end(), Some(2));
    assert!(other.said().contains("made with other settings"), "{}", other.said());
    // A damaged one is said by its name.
    let snapshot = site.batches().join("aggregators").join("0-255.snapshot");
    let mut bytes = fs::read(&snapshot).expect("it is there");
    *bytes.last_mut().expect("some") ^= 1;
    fs::write(&snapshot, bytes).expect("room");
    assert_eq!(aggregator.start().end(), Some(2));
    assert!(aggregator.said().contains("0-255.snapshot is damaged"), "{}", aggregator.said());
    fs::remove_dir_all(site.batches()).expect("it is there");
    assert_eq!(aggregator.start().end(), Some(2));
    assert!(aggregator.said().contains("there is no such folder"), "{}", aggregator.said());
}
