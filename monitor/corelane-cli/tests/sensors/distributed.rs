//! One source shows few hosts to each sensor: their aggregator finds it, and none of them does.

use crate::packets::{RST, SECOND, START, SYN, tcp};
use crate::site::{Carrier, Process, Site, events, names, start};
use crate::split::Capture;
use corelane_net::capture::LinkType;

const SENSORS: usize = 10;
const HOSTS: usize = 15;

#[track_caller]
fn scan(carrier: Carrier) {
    let Some(site) = Site::new(carrier) else { return };
    let names = names(SENSORS);
    let mut sensors = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let path = site.folder.path(&format!("{name}.pcapng"));
        let mut capture = Capture::create(&path);
        for host in 0..HOSTS {
            let time_ns = START + (host * SENSORS + number) as u64 * (SECOND / 10);
            let (from, to) = ("203.0.113.9 40000", format!("10.0.{number}.{host} 443"));
            for packet in [tcp(time_ns, from, &to, SYN), tcp(time_ns + 1000, &to, from, RST)] {
                let data = packet.frame();
                capture.put(packet.time_ns, data.len() as u32, LinkType::RAW, &data);
            }
        }
        capture.finish();
        let mut sensor = site.sensor(name, &path);
        sensor.add(["--eve".into(), site.folder.path(&format!("{name}.json")).into_os_string()]);
        sensors.push(sensor);
    }
    start(&mut sensors);
    let mut aggregator = site.aggregator(&(0..=255), &names);
    aggregator.add(["--until-ended"]).start().finish();
    sensors.iter_mut().for_each(Process::finish);
    for name in &names {
        let eve = site.folder.path(&format!("{name}.json"));
        assert_eq!(events(&eve, "alert"), [""; 0], "{name} alone");
        assert_ne!(events(&eve, "stats"), [""; 0], "{name} has analysed it");
    }
    let alerts: Vec<serde_json::Value> =
        events(&site.events("0-255"), "alert").iter().map(|alert| serde_json::from_str(alert).expect("JSON")).collect();
    let facts: Vec<_> = alerts.iter().map(|it| (it["src_ip"].as_str(), it["scan"]["count"].as_u64())).collect();
    let source = Some("203.0.113.9");
    assert_eq!(facts, [(source, Some(21)), (source, Some(150))], "{alerts:?}");
}

#[test]
fn a_scan_of_hosts_at_ten_sensors_is_found_over_files() {
    scan(Carrier::Files);
}

#[test]
fn a_scan_of_hosts_at_ten_sensors_is_found_over_nats() {
    scan(Carrier::Nats);
}
