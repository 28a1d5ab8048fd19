//! Bytes that are no batches, and a server whose disk is full.

use crate::choices::Choices;
use crate::kills::{Material, OPTIONS};
use crate::nats::Client;
use crate::site::{Carrier, Process, Site, assert_same, events, free_port, names, scrape, start, value, wait_for};
use corelane_monitor::sensors::{Header, VERSION, encode};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// A batch of another sensor.
fn batch(sensor: &str) -> Vec<u8> {
    let (sensor, second) = (sensor.parse().expect("a name"), 1_000_000_000);
    let (since_ns, begun_ns) = (second, 2 * second);
    let mut header =
        Header { sensor, epoch: 1, sequence: 0, before: 0, since_ns, begun_ns, more: false, is_last: false };
    let mut bytes = Vec::new();
    encode(&mut header, &mut Vec::new(), &[], |_, batch| bytes.extend_from_slice(batch));
    bytes
}

/// What a hostile peer may send: noise, cut batches, those of another version, and of another sensor.
/// With each the reason why it does not count.
fn hostile(choices: &mut Choices) -> Vec<(&'static str, Vec<u8>)> {
    let mut bytes = Vec::new();
    for _ in 0..300 {
        let mut noise: Vec<u8> = (0..choices.below(300)).map(|_| choices.next() as u8).collect();
        // Some begin as a batch does.
        if choices.below(2) == 0 {
            let known = [&b"CLB"[..], &[VERSION]].concat();
            let most = known.len().min(noise.len());
            noise[..most].copy_from_slice(&known[..most]);
        }
        bytes.push(("damaged", noise));
    }
    let good = batch("sensor-0");
    bytes.extend((0..good.len()).map(|length| ("damaged", good[..length].to_vec())));
    bytes.push(("damaged", [&good[..], b"more"].concat()));
    for version in (0..=255).filter(|&version| version != VERSION) {
        let mut other = good.clone();
        other[3] = version;
        bytes.push(("other version", other));
    }
    // It comes as that of a sensor that is expected, or of none.
    bytes.push(("other name", batch("stranger")));
    bytes
}

/// Starts an aggregator that is told all this besides, and looks at what it makes of it.
#[track_caller]
fn disturb(site: &Site, material: &Material, send: impl Fn(&[u8])) {
    let names = names(material.parts.len());
    let port = free_port();
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(["--metrics", &port.to_string(), "--snapshot-interval", "1s"]).add(OPTIONS).start();
    let mut sensors: Vec<_> = names.iter().zip(&material.parts).map(|(name, part)| site.sensor(name, part)).collect();
    for sensor in &mut sensors {
        sensor.add(OPTIONS);
    }
    let bytes = hostile(&mut Choices(5));
    let (before, behind) = bytes.split_at(bytes.len() / 2);
    before.iter().for_each(|(_, bytes)| send(bytes));
    start(&mut sensors);
    behind.iter().for_each(|(_, bytes)| send(bytes));
    sensors.iter_mut().for_each(Process::finish);
    let reasons = ["damaged", "other version", "other name"];
    let expected = reasons.map(|reason| bytes.iter().filter(|(of, _)| *of == reason).count() as u64);
    let mut counted = [0; 3];
    let start = std::time::Instant::now();
    while counted != expected {
        let samples = scrape(port);
        counted = reasons.map(|reason| value(&samples, "refused_batches_total", reason));
        assert!(start.elapsed() < Duration::from_secs(20), "{counted:?} of {expected:?}: {}", aggregator.said());
        sleep(Duration::from_millis(50));
    }
    for name in &names {
        aggregator.wait_until_said(&format!("sensor {name}: its run has ended"));
    }
    let said = aggregator.said();
    for part in [
        "a batch of version 0, and this program reads version 4",
        "it names sensor stranger, and another sensor sent it",
        "not a batch",
    ] {
        assert_eq!(said.matches(part).count(), 1, "{part:?} once: {said}");
    }
    // It goes on from its snapshot, too, and what is open at the end is told.
    aggregator.kill();
    aggregator.add(["--until-ended"]).start().finish();
    assert_same(&events(&site.events("0-255"), "alert"), &material.alerts, "beside hostile bytes");
}

#[test]
fn hostile_messages_are_counted_and_disturb_nothing() {
    let Some(site) = Site::new(Carrier::Nats) else { return };
    let port = site.server.as_ref().expect("it is there").port;
    let client = Client::connect(port);
    client.make_stream(-1);
    let material = Material::new("100k", 2);
    // With its headers and without them, on the subject of a sensor and on another.
    let (plain, other) = ("corelane.batches.sensor-0", "corelane.batches.zzz");
    disturb(&site, &material, |bytes| client.publish(if bytes.len() % 2 == 0 { plain } else { other }, None, bytes));
    // Headers that are none of a sensor's are counted, and what is behind them is not looked at.
    let mut aggregator = site.aggregator(&(0..=255), &names(2));
    let metrics = free_port();
    aggregator.add(["--metrics", &metrics.to_string()]).add(OPTIONS).start();
    for header in ["x", "1", "1.", "-1.2", "18446744073709551616.1"] {
        client.publish(plain, Some(&format!("Corelane-Batch: {header}")), &batch("sensor-0"));
        client.publish(plain, Some(&format!("Corelane-Batch: 9.9\r\nCorelane-After: {header}")), b"x");
    }
    wait_for("ten damaged headers", || {
        (value(&scrape(metrics), "refused_batches_total", "damaged record") == 10).then_some(())
    });
}

/// A record of a log, whole.
fn record(sequence: u64, batch: &[u8]) -> Vec<u8> {
    let body = [&sequence.to_le_bytes()[..], batch].concat();
    [&(batch.len() as u32).to_le_bytes()[..], &crc32fast::hash(&body).to_le_bytes(), &body].concat()
}

#[test]
fn a_hostile_log_is_counted_and_disturbs_nothing() {
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let material = Material::new("100k", 2);
    let folder = site.batches().join("zzz").join(format!("{:016x}", 1));
    fs::create_dir_all(&folder).expect("a temporary folder");
    let log = std::cell::RefCell::new([&b"CLbatch\n"[..], &[1, 0, 0, 0]].concat());
    let count = std::cell::Cell::new(0);
    disturb(&site, &material, |bytes| {
        log.borrow_mut().extend(record(count.get(), bytes));
        count.set(count.get() + 1);
        fs::write(folder.join(format!("{:016x}.batches", 0)), &*log.borrow()).expect("room");
    });
}

/// Files that are no log at all, and noise where one should be.
#[test]
fn noise_instead_of_a_log_disturbs_nothing() {
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let material = Material::new("100k", 2);
    let mut choices = Choices(9);
    let mut noise = |length: u64| -> Vec<u8> { (0..length).map(|_| choices.next() as u8).collect() };
    let put = |path: &Path, bytes: &[u8]| {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a temporary folder");
        fs::write(path, bytes).expect("room");
    };
    let head = [&b"CLbatch\n"[..], &[1, 0, 0, 0]].concat();
    let segment = |sensor: &str, first: u64| {
        site.batches().join(sensor).join(format!("{:016x}", 1)).join(format!("{first:016x}.batches"))
    };
    put(&segment("noise", 0), &noise(5_000));
    put(&segment("noise", 7), &[&head[..], &noise(5_000)].concat());
    put(&segment("noise", 9), &[&head[..], &record(9, b"no batch"), &noise(10)].concat());
    put(&segment("version", 0), &[&b"CLbatch\n"[..], &[9, 0, 0, 0], &record(0, b"x")].concat());
    put(&site.batches().join("plain-file"), b"x");
    put(&site.batches().join("trimmed-wrong").join("trimmed"), &noise(20));
    put(&site.batches().join("no sensor").join("x"), b"x");
    fs::create_dir_all(site.batches().join("odd").join("not-hexadecimal")).expect("a temporary folder");
    let names = names(2);
    let mut sensors: Vec<_> = names.iter().zip(&material.parts).map(|(name, part)| site.sensor(name, part)).collect();
    start(&mut sensors);
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(OPTIONS).add(["--until-ended"]).start().finish();
    sensors.iter_mut().for_each(Process::finish);
    assert_same(&events(&site.events("0-255"), "alert"), &material.alerts, "beside noise");
}

/// The stream takes no more: batches wait in the spool, and go on once there is room.
#[test]
fn a_server_that_is_full_gets_the_rest_when_there_is_room() {
    let Some(site) = Site::new(Carrier::Nats) else { return };
    let client = Client::connect(site.server.as_ref().expect("it is there").port);
    // A bound of messages: where one of bytes is reached, nats-server 2.9.10 at times removes the oldest instead of
    // refusing what is new.
    client.make_stream(60);
    let material = Material::new("100k", 2);
    let names = names(2);
    let mut sensors: Vec<_> = names.iter().zip(&material.parts).map(|(name, part)| site.sensor(name, part)).collect();
    start(&mut sensors);
    for sensor in &sensors {
        sensor.wait_until_said("waiting for the server");
        assert!(sensor.said().contains("maximum messages exceeded"), "{}", sensor.said());
    }
    // A signal ends the wait. The next start sends the rest.
    sensors[0].signal(Signal::TERM);
    assert_eq!(sensors[0].end(), Some(143), "{}", sensors[0].said());
    sensors[0].start();
    // Its snapshots make room, again and again.
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(OPTIONS).add(["--until-ended", "--snapshot-interval", "1s", "--sensor-timeout", "60s"]).start();
    sensors.iter_mut().for_each(Process::finish);
    aggregator.finish();
    let news = events(&site.events("0-255"), "sensor");
    assert!(news.iter().all(|event| !event.contains("\"lost\"")), "{news:?}: {}", aggregator.said());
    assert_same(&events(&site.events("0-255"), "alert"), &material.alerts, "through a server that was full");
}
