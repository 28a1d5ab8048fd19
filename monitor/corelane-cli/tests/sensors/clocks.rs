//! A sensor whose clock is not the aggregator's, or that is slow.

use crate::packets::{RST, SYN, tcp};
use crate::site::{Carrier, Process, Site, alerts_so_far, events, free_port, get, names, wait_for};
use crate::split::Capture;
use corelane_net::capture::LinkType;
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How much the clock of the second sensor is behind.
const BEHIND: Duration = Duration::from_secs(10);
/// How long both are looked at, in seconds: longer than it takes to judge a clock.
const SECONDS: u8 = 13;

/// A host of the network of this number is tried at this time, and refuses.
fn refused(pipe: &mut Capture<impl Write>, time: Duration, (network, host): (usize, u8)) {
    let time_ns = u64::try_from(time.as_nanos()).expect("a time of this century");
    let (from, to) = ("203.0.113.9 40000", format!("10.0.{network}.{host} 443"));
    for packet in [tcp(time_ns, from, &to, SYN), tcp(time_ns + 1000, &to, from, RST)] {
        let data = packet.frame();
        pipe.put(packet.time_ns, data.len() as u32, LinkType::RAW, &data);
    }
    pipe.flush();
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock")
}

/// Its batches come every two seconds, each of one second: it is never silent.
#[test]
fn a_sensor_that_is_slow_but_not_silent_is_left_out_and_holds_up_no_alert() {
    let site = Site::new(Carrier::Files).expect("it needs no server");
    let names = names(2);
    let mut sensors: Vec<_> = names.iter().map(|name| site.sensor(name, Path::new("-"))).collect();
    let mut pipes: Vec<_> = sensors.iter_mut().map(|sensor| Capture::to(sensor.start_on_pipe())).collect();
    let mut aggregator = site.aggregator(&(0..=255), &names);
    let port = free_port();
    aggregator.add(["--sensor-timeout", "4s", "--metrics", &port.to_string()]).start();
    let begin = now();
    let mut host = 0;
    let news = wait_for("it is left out, and a scan is told", || {
        host += 1;
        let time = now();
        refused(&mut pipes[0], time, (0, host));
        refused(&mut pipes[1], begin + (time - begin) / 2, (1, 0));
        sleep(Duration::from_millis(500));
        let news = events(&site.events("0-255"), "sensor");
        (alerts_so_far(&site.events("0-255")) > 0).then_some(news)
    });
    let news: Vec<_> = news.iter().filter(|event| event.contains("left_out")).collect();
    assert!(news.len() == 1 && news[0].contains("\"sensor-1\"") && news[0].contains("\"behind_ns\":"), "{news:?}");
    assert!(aggregator.said().contains("sensor sensor-1: left out: it is "), "{}", aggregator.said());
    wait_for("the port says so", || {
        let (status, health) = get(port, "/healthz").expect("it listens");
        (status == 503 && health.contains("sensor sensor-1 is left out")).then_some(())
    });
}

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
        let now = now();
        for ((number, pipe), time) in pipes.iter_mut().enumerate().zip([now, now - BEHIND]) {
            refused(pipe, time, (number, second));
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
