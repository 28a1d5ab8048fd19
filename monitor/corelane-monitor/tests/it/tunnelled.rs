//! Scans inside of tunnels: an alert names the outermost packet, as what is inside may have any source.

use crate::fragments::runs;
use crate::packets::{Capture, FIN, Packet, SECOND, START, SYN, tcp, udp};
use corelane_monitor::{Probe, Settings};
use corelane_net::decode::{Tunnel, mapped};
use serde_json::json;

const SENDER: u32 = 0xcb00_7142;
const END: u32 = 0xc000_0201;

fn outer(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend(SENDER.to_be_bytes());
    packet.extend(END.to_be_bytes());
    packet.extend(payload);
    packet
}

fn ip_in_ip(inner: &[u8]) -> Vec<u8> {
    outer(if inner[0] >> 4 == 4 { 4 } else { 41 }, inner)
}

fn vxlan(inner: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = if inner[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xdd] };
    let payload = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &[2; 12], &kind, inner].concat();
    let ports = [40_000_u16, 4789, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    outer(17, &[ports, payload].concat())
}

type Wrap = fn(&[u8]) -> Vec<u8>;

fn tunnel(wrap: Wrap, v6: bool) -> Tunnel {
    let is_vxlan = wrap(&[0x45])[9] == 17;
    let (source_port, destination_port, protocol) = match (is_vxlan, v6) {
        (true, _) => (40_000, 4789, 17),
        (false, v6) => (0, 0, if v6 { 41 } else { 4 }),
    };
    let (source, destination) = (mapped(SENDER), mapped(END));
    Tunnel { source, destination, source_port, destination_port, protocol, depth: 1 }
}

/// Thirty probes, those of some numbers in a tunnel.
fn capture(probe: &dyn Fn(u64) -> Packet, wrap: Wrap, is_inside: impl Fn(u64) -> bool) -> Capture {
    let mut capture = Capture::of(&(0..30).map(probe).collect::<Vec<_>>());
    for (number, (_, frame)) in (0..).zip(&mut capture.records) {
        if is_inside(number) {
            *frame = wrap(frame);
        }
    }
    // Long enough for all to fail.
    let last = Capture::of(&[tcp(START + 200 * SECOND, "10.0.0.8 1", "10.0.0.9 1", FIN)]);
    capture.records.extend(last.records);
    capture
}

#[test]
fn a_scan_has_the_tunnel_that_its_probes_came_through() {
    let settings = Settings { tunnels: true, ..Settings::default() };
    type Make = fn(u64, &str, &str) -> Packet;
    let kinds: [(Option<Probe>, Make); 3] = [
        (None, |time_ns, from, to| tcp(time_ns, from, to, SYN)),
        (Some(Probe::Fin), |time_ns, from, to| tcp(time_ns, from, to, FIN)),
        (Some(Probe::Udp), udp),
    ];
    for wrap in [vxlan as Wrap, ip_in_ip as Wrap] {
        for (kind, make) in kinds {
            for (v6, vertical) in [(false, true), (true, true), (false, false), (true, false)] {
                let probe = |number: u64| {
                    let (host, port) = if vertical { (2, 100 + number) } else { (2 + number, 99) };
                    let (from, to) = match v6 {
                        false => ("10.1.1.1 4000".to_owned(), format!("10.2.2.{host} {port}")),
                        true => ("2001:db8::1 4000".to_owned(), format!("2001:db8::2:{host} {port}")),
                    };
                    make(START + number * SECOND / 10, &from, &to)
                };
                let name = format!("{kind:?} {v6} {vertical} {:?}", tunnel(wrap, v6));
                for (report, _) in runs(&capture(&probe, wrap, |_| true), &settings) {
                    let found: Vec<_> = report.tunnelled.iter().collect();
                    let [((probe, source, destination, port), outermost)] = found[..] else {
                        panic!("{name}: {found:?}")
                    };
                    assert_eq!((*probe, *outermost), (kind, tunnel(wrap, v6)), "{name}");
                    assert_eq!(
                        (source.is_ipv6(), destination.is_some(), port.is_some()),
                        (v6, vertical, !vertical),
                        "{name}"
                    );
                }
                let (report, _) = &runs(&capture(&probe, wrap, |_| true), &settings)[0];
                let mut eve = Vec::new();
                report.write_eve(&mut eve).unwrap();
                let alert: serde_json::Value = serde_json::from_slice(&eve).expect("one alert");
                let Tunnel { source_port, destination_port, .. } = tunnel(wrap, v6);
                let outermost = json!({
                    "src_ip": "203.0.113.66", "src_port": source_port, "dest_ip": "192.0.2.1",
                    "dest_port": destination_port, "proto": alert["tunnel"]["proto"], "depth": 1,
                });
                assert_eq!(alert["tunnel"], outermost, "{name}");
                // Bare ones have none, nor has a scan of other hosts beside a tunnel.
                for (report, _) in runs(&capture(&probe, wrap, |_| false), &settings) {
                    assert_eq!(report.alerts.len() + report.probe_scans.len(), 1, "{name}");
                    assert!(report.tunnelled.is_empty(), "{name}: {report:?}");
                }
                // One of those that made it a scan is enough; of a host that it came to later it is not.
                for inside in [7, 25] {
                    for (report, _) in runs(&capture(&probe, wrap, |number| number == inside), &settings) {
                        let tunnels = Vec::from_iter(report.tunnelled.into_values());
                        let expected = usize::from(vertical || inside == 7);
                        assert_eq!(tunnels, vec![tunnel(wrap, v6); expected], "{name} {inside}");
                    }
                }
            }
        }
    }
}
