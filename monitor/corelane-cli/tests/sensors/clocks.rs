//! A sensor whose clock is not the aggregator's.

use crate::packets::{RST, SYN, tcp};
use crate::site::{Carrier, Process, Site, events, names, wait_for};
use crate::split::Capture;
use corelane_net::capture::LinkType;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How much the clock of the second sensor is behind.
const BEHIND: Duration = Duration::from_secs(10);
/// How long both are looked at, in seconds: longer than it takes to judge a clock.
const SECONDS: u8 = 13;

/// Both sensors read pipes, which are written as packets come on an interface. A source shows a host to each of them in
/// each second, fewer than a scan has, and more to both.
#[test]
fn a_clock_that_is_ten_seconds_behind_is_told_and_a_scan_over_it_is_found() {
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let names = names(2);
    let mut sensors: Vec<_> = names.iter().map(|name| site.sensor(name, Path::new("-"))).collect();
    let mut pipes: Vec<_> = sensors.iter_mut().map(|sensor| Capture::to(sensor.start_on_pipe())).collect();
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(["--until-ended"]).start();
    for second in 0..SECONDS {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
        for ((number, pipe), time) in pipes.iter_mut().enumerate().zip([now, now - BEHIND]) {
            let time_ns = u64::try_from(time.as_nanos()).expect("a time of this century");
            let (from, to) = ("203.0.113.9 40000", format!("10.0.{number}.{second} 443"));
            for packet in [tcp(time_ns, from, &to, SYN), tcp(time_ns + 1000, &to, from, RST)] {
                let data = packet.frame();
                pipe.put(packet.time_ns, data.len() as u32, LinkType::RAW, &data);
            }
            pipe.flush();
        }
        sleep(Duration::from_secs(1));
    }
    wait_for("what is said", || aggregator.said().contains("sensor-1: its clock is 1").then_some(()));
    drop(pipes);
    sensors.iter_mut().for_each(Process::finish);
    aggregator.finish();
    let news = events(&site.events("0-255"), "sensor");
    let clocks: Vec<_> = news.iter().filter(|event| event.contains("\"clock\"")).collect();
    let [clock] = clocks[..] else { panic!("one is wrong, and it is said once: {clocks:?}") };
    let clock: serde_json::Value = serde_json::from_str(clock).expect("JSON");
    let behind_ns = clock["sensor"]["behind_ns"].as_u64().expect("a number");
    assert_eq!(clock["sensor"]["name"], "sensor-1");
    // A second is over when the first packet of the next comes, and a batch is read a moment later.
    assert!((9..=13).contains(&(behind_ns / 1_000_000_000)), "{behind_ns}");
    let alerts = events(&site.events("0-255"), "alert");
    let found = |state: &str| alerts.iter().filter(|alert| alert.contains(state)).count();
    assert_eq!((found("\"found\""), found("\"ended\"")), (1, 1), "{alerts:?}");
    assert!(alerts.iter().any(|alert| alert.contains("\"count\":26")), "all hosts of both: {alerts:?}");
}
