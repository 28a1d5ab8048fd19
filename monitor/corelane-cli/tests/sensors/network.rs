//! A network that is cut and heals, below and above the time after which a silent sensor is left out.

use crate::choices::Choices;
use crate::kills::{Material, OPTIONS, World, number};
use crate::program::Folder;
use crate::site::{Carrier, Site, events, free_port, generate, names, scrape, value, wait_for};
use crate::split::split;
use rustix::process::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

/// How often a thread looks at what it is to do.
const LOOK: Duration = Duration::from_millis(5);

const OPEN: u8 = 0;
/// Nothing passes, as if a cable was pulled.
const HELD: u8 = 1;
/// Connections are closed, and none is made.
const CUT: u8 = 2;
const END: u8 = 3;

/// What lies between the program and a server.
struct Proxy {
    port: u16,
    state: Arc<AtomicU8>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    fn start(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, connections) = (Arc::new(AtomicU8::new(OPEN)), Arc::new(Mutex::new(Vec::new())));
        let (seen, kept) = (Arc::clone(&state), Arc::clone(&connections));
        let accept = move || {
            loop {
                match seen.load(Ordering::Relaxed) {
                    END => return,
                    HELD => sleep(LOOK),
                    state => match listener.accept() {
                        Ok((client, _)) if state == OPEN => {
                            client.set_nonblocking(false).unwrap();
                            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { continue };
                            let ends = [&client, &server].map(|end| end.try_clone().unwrap());
                            kept.lock().unwrap().extend(ends);
                            for (from, to) in [(&client, &server), (&server, &client)] {
                                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                                let state = Arc::clone(&seen);
                                thread::spawn(move || copy(from, to, &state));
                            }
                        }
                        Ok(_) => {}
                        Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(LOOK),
                        Err(error) => panic!("{error}"),
                    },
                }
            }
        };
        Proxy { port, state, connections, thread: Some(thread::spawn(accept)) }
    }

    fn set(&self, state: u8) {
        self.state.store(state, Ordering::Relaxed);
        if state >= CUT {
            for connection in self.connections.lock().unwrap().drain(..) {
                let _ = connection.shutdown(Shutdown::Both);
            }
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(END);
        let _ = self.thread.take().expect("once").join();
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, state: &AtomicU8) {
    let mut bytes = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        while state.load(Ordering::Relaxed) == HELD {
            sleep(LOOK);
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// All goes through a network that is cut again and again, for less than the time after which a sensor is left out.
#[test]
fn short_cuts_of_the_network_change_nothing() {
    let material = Material::new("200k", 3);
    let seed = number("CORELANE_SENSOR_SEED", 1);
    for seed in seed..seed + number("CORELANE_SENSOR_RUNS", 1) {
        eprintln!("seed {seed}");
        let mut choices = Choices(seed);
        let Some(mut site) = Site::new(Carrier::Nats) else { return };
        let proxy = Proxy::start(site.server.as_ref().expect("it is there").port);
        site.through = Some(proxy.port);
        let mut world = World::new(site, &material, 2);
        // So that the network is up while they start.
        world.start();
        for aggregator in &world.aggregators {
            let snapshot = world.site.events(&aggregator.name);
            wait_for("its output", || snapshot.is_file().then_some(()));
        }
        for _ in 0..4 {
            world.pass(Duration::from_millis(choices.below(200)), 4, &mut choices);
            proxy.set(if choices.below(2) == 0 { HELD } else { CUT });
            world.pass(Duration::from_millis(choices.below(1000)), 4, &mut choices);
            proxy.set(OPEN);
        }
        world.finish();
        world.compare(&material.alerts, &format!("seed {seed}"));
    }
}

/// The reports of each sensor where nothing is cut.
fn reports(captures: &[std::path::PathBuf], names: &[String]) -> Vec<u64> {
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let port = free_port();
    for (name, capture) in names.iter().zip(captures) {
        site.sensor(name, capture).start().finish();
    }
    let mut aggregator = site.aggregator(&(0..=255), names);
    aggregator.add(["--metrics", &port.to_string()]).start();
    let counts =
        || -> Vec<u64> { names.iter().map(|name| value(&scrape(port), "sensor_batches_total", name)).collect() };
    let mut last = Vec::new();
    wait_for("all batches", || {
        let before = std::mem::replace(&mut last, counts());
        let has_all = names.iter().all(|name| aggregator.said().contains(&format!("sensor {name}: its run has ended")));
        (has_all && before == last && last.iter().all(|&count| count > 0)).then_some(())
    });
    // The numbers are a second old at most.
    sleep(Duration::from_millis(1100));
    names.iter().map(|name| value(&scrape(port), "sensor_reports_total", name)).collect()
}

/// A sensor is cut off for longer. It is left out and comes back, and all that it saw counts once.
#[test]
fn a_long_cut_leaves_a_sensor_out_until_it_is_back_and_loses_nothing() {
    let Some(mut site) = Site::new(Carrier::Nats) else { return };
    let folder = Folder::new();
    let capture = folder.path("all.pcap");
    generate(&capture, &["-n", "1500k", "--rate", "3000"]);
    let names = names(2);
    let mut captures = split(&capture, 2, &folder.path(""));
    // The second has the shorter one, so that the first is not behind it at its end.
    let short = folder.path("short.pcap");
    generate(&short, &["-n", "600k", "--rate", "1500", "--seed", "7"]);
    captures[1] = short;
    let expected = reports(&captures, &names);
    assert!(expected.iter().all(|&count| count > 100), "{expected:?}");

    let proxy = Proxy::start(site.server.as_ref().expect("it is there").port);
    let port = free_port();
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(["--metrics", &port.to_string(), "--sensor-timeout", "2s", "--snapshot-interval", "1s"]);
    aggregator.add(OPTIONS).start();
    site.through = Some(proxy.port);
    let mut first = site.sensor(&names[0], &captures[0]);
    site.through = None;
    let mut second = site.sensor(&names[1], &captures[1]);

    // Some of the first comes, but not all.
    first.start();
    wait_for("a part of it", || {
        first.signal(Signal::CONT);
        sleep(Duration::from_millis(2));
        first.signal(Signal::STOP);
        sleep(Duration::from_millis(20));
        aggregator.said().contains("sensor-0: began a run").then_some(())
    });
    proxy.set(CUT);
    first.signal(Signal::CONT);
    second.start().finish();
    aggregator.wait_until_said("sensor-0: left out");
    // Once that is stored it is not told again.
    sleep(Duration::from_millis(1500));
    aggregator.kill();
    aggregator.start();
    sleep(Duration::from_millis(500));
    proxy.set(OPEN);
    aggregator.wait_until_said("sensor-0: back");
    first.finish();
    aggregator.wait_until_said("sensor-0: its run has ended");
    sleep(Duration::from_millis(1200));
    let numbers = scrape(port);
    let counted: Vec<_> = names.iter().map(|name| value(&numbers, "sensor_reports_total", name)).collect();
    assert_eq!(counted, expected, "{}", aggregator.said());
    let late = value(&numbers, "sensor_late_total", &names[0]);
    assert!(0 < late && late < expected[0], "{late} of {expected:?}");
    aggregator.signal(Signal::TERM);
    aggregator.finish();
    let eve = site.events("0-255");
    let news: Vec<_> = events(&eve, "sensor")
        .iter()
        .filter_map(|event| {
            let event: serde_json::Value = serde_json::from_str(event).expect("JSON");
            let sensor = &event["sensor"];
            let text = |name: &str| sensor[name].as_str().expect("a text").to_owned();
            (text("name") == "sensor-0").then(|| (text("state"), sensor["reports"].as_u64()))
        })
        .collect();
    let of = |state: &str| (state.to_owned(), None);
    // It is let in a little before it has caught up, so some are late behind that.
    let back = news.iter().find_map(|(state, reports)| reports.filter(|_| state == "back"));
    assert!(back.is_some_and(|back| 0 < back && back <= late), "{late}: {news:?}");
    assert_eq!(news, [of("began"), of("left_out"), ("back".to_owned(), back), of("ended")]);
    assert!(events(&eve, "alert").len() > 20);
}
