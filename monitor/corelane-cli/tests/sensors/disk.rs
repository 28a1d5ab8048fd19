//! A server whose disk is full.

use crate::kills::{Material, OPTIONS};
use crate::program::{Folder, corelane, run};
use crate::site::{
    Carrier, Process, Server, Site, assert_same, events, free_port, names, scrape, start, value, wait_for,
};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// A file system of 24 MiB in memory.
struct Disk(Folder);

impl Disk {
    /// `None` where this process may not mount one.
    fn mount() -> Option<Self> {
        let folder = Folder::new();
        let disk = Disk(folder);
        let done = mount(Some("tmpfs"), &disk.store(), Some("tmpfs"), MsFlags::empty(), Some("size=24m"));
        if done.is_err() {
            let _ = std::io::stderr().write_all(b"SKIPPED: this process may not mount a small disk\n");
            return None;
        }
        Some(disk)
    }

    fn store(&self) -> PathBuf {
        self.0.path("")
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut file = File::create(self.store().join("filler")).expect("a file");
        let error = loop {
            if let Err(error) = file.write_all(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }

    fn free(&self) {
        fs::remove_file(self.store().join("filler")).expect("it is there");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = umount2(&self.store(), MntFlags::MNT_DETACH);
    }
}

/// Other files take all the disk. nats-server 2.9.10 then acknowledges nothing until it is started again.
#[test]
fn a_server_whose_disk_is_full_gets_the_rest_when_it_is_started_with_room() {
    let Some(disk) = Disk::mount() else { return };
    let Some(server) = Server::start(&disk.store(), &[]) else { return };
    let folder = Folder::new();
    fs::create_dir(folder.path("batches")).expect("a temporary folder");
    let mut site = Site { folder, server: Some(server), through: None };
    let material = Material::new("100k", 2);
    let names = names(2);
    let mut aggregator = site.aggregator(&(0..=255), &names);
    let port = free_port();
    aggregator.add(OPTIONS).add(["--until-ended", "--snapshot-interval", "1s", "--sensor-timeout", "60s"]);
    aggregator.add(["--metrics", &port.to_string()]).start();
    // The stream and its first state are there.
    wait_for("its numbers", || (value(&scrape(port), "sensor_present", "sensor-0") == 1).then_some(()));
    disk.fill();
    let mut sensors: Vec<_> = names.iter().zip(&material.parts).map(|(name, part)| site.sensor(name, part)).collect();
    start(&mut sensors);
    sensors.iter().for_each(|sensor| sensor.wait_until_said("waiting for the server"));
    disk.free();
    site.server.as_mut().expect("it is there").restart();
    sensors.iter_mut().for_each(Process::finish);
    aggregator.finish();
    assert_same(&events(&site.events("0-255"), "alert"), &material.alerts, "through a disk that was full");
    let news = events(&site.events("0-255"), "sensor");
    assert!(news.iter().all(|event| !event.contains("\"lost\"")), "{news:?}: {}", aggregator.said());
}

/// Scans that cannot be written are no silent end.
#[test]
fn an_aggregator_whose_standard_output_is_full_says_so() {
    let material = Material::new("100k", 2);
    let site = Site::new(Carrier::Files).expect("it needs no server");
    for (name, part) in names(2).iter().zip(&material.parts) {
        site.sensor(name, part).add(OPTIONS).start().finish();
    }
    let full = File::options().write(true).open("/dev/full").expect("a device");
    let mut command =
        corelane(["aggregate", "--until-ended", "--from", &site.place(), "--expect", &names(2).join(",")]);
    let outcome = run(command.args(OPTIONS).stdout(full)).code(1);
    let said = outcome.stderr.lines().filter(|line| line.contains("standard output: cannot be written: No space left"));
    // When it happens, and at the end.
    assert_eq!(said.count(), 2, "{outcome:?}");
}
