//! Scans that were planted are found, once and in time, and no others.

use crate::packets::{ACK, Capture, FIN, Packet, RST, SECOND, START, SYN, XMAS, tcp, udp};
use crate::support::{Case, News, Watched, plan};
use corelane_monitor::{Alert, Probe, ScanEvent, ScanState, Source};
use corelane_net::capture::Record;
use corelane_net::synth::{self, Config, Generator, Scanned};
use std::convert::Infallible;

/// Traffic as it is made, so that nothing of it is kept.
struct Synthetic<'a>(&'a mut Generator);

impl Source for Synthetic<'_> {
    type Error = Infallible;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let mut count = 0;
        while count < max
            && let Some(record) = self.0.next_frame()
        {
            sink(record);
            count += 1;
        }
        Ok(count)
    }
}

fn probe(probe: synth::Probe) -> Probe {
    match probe {
        synth::Probe::Fin => Probe::Fin,
        synth::Probe::Null => Probe::Null,
        synth::Probe::Xmas => Probe::Xmas,
        synth::Probe::Udp => Probe::Udp,
        synth::Probe::SynFin => Probe::SynFin,
        synth::Probe::Odd => Probe::Odd,
    }
}

/// Kind of probes, and the scan without its count and time.
fn planted(alert: &synth::Alert) -> (Option<Probe>, Alert) {
    let (source, count, time_ns) = (alert.source, 0, 0);
    let scan = match alert.scanned {
        Scanned::Vertical { destination } => Alert::Vertical { source, destination, count, time_ns },
        Scanned::Horizontal { port } => Alert::Horizontal { source, port, count, time_ns },
    };
    (alert.probe.map(probe), scan)
}

fn told(event: &ScanEvent) -> (Option<Probe>, Alert) {
    let mut scan = event.scan.clone();
    let (Alert::Vertical { count, time_ns, .. }
    | Alert::Horizontal { count, time_ns, .. }
    | Alert::Block { count, time_ns, .. }) = &mut scan;
    (*count, *time_ns) = (0, 0);
    (event.probe, scan)
}

/// Each planted scan is found once and has ended once; nothing else is.
fn check(config: Config, analyzers: usize) {
    let packets = config.packets;
    let mut generator = Generator::new(config).expect("a sound configuration");
    let mut case = Case::scans_only();
    case.continuous.snapshot_s = 1;
    let run = case.watch(Synthetic(&mut generator), &plan(analyzers, 2048));
    assert_eq!(run.report.packets, packets);
    let truth = generator.truth();
    let (found, ended): (Vec<_>, Vec<_>) = run.scans().into_iter().partition(|event| event.state == ScanState::Found);
    let planted = planted_once(&truth, &found);
    assert_eq!(planted.len(), ended.len());
    for (alert, event) in planted {
        // Silence is told later than answers, which outweigh it at first.
        let (time_ns, count) = (event.scan.time_ns(), event.scan.count());
        assert!((alert.time_ns..alert.time_ns + 1_000_000_000).contains(&time_ns) && count >= 21, "{alert} {event:?}");
        let end = ended.iter().find(|end| told(end) == told(event)).expect("its end");
        assert_eq!((end.scan.time_ns(), end.scan.count()), (time_ns, alert.count), "{alert}");
    }
    assert!(found.len() >= 12, "{}", found.len());
    in_their_steps(&run);
}

fn planted_once<'a>(truth: &'a [synth::Alert], found: &'a [ScanEvent]) -> Vec<(&'a synth::Alert, &'a ScanEvent)> {
    let pair = |alert| {
        let mut events = found.iter().filter(|event| told(event) == planted(alert));
        let event = events.next().unwrap_or_else(|| panic!("{alert} was not found"));
        assert_eq!(events.next(), None, "{alert} was found twice");
        (alert, event)
    };
    let pairs: Vec<_> = truth.iter().map(pair).collect();
    let invented = found.iter().find(|event| !truth.iter().any(|alert| planted(alert) == told(event)));
    assert_eq!(invented, None);
    pairs
}

/// A scan is told with its step, and so before the numbers at the end of that.
fn in_their_steps(run: &Watched) {
    assert!(run.snapshots() >= 29, "{}", run.snapshots());
    let mut over_ns = 0;
    for (_, news) in &run.news {
        match news {
            News::Snapshot(numbers) => {
                over_ns = numbers.0.times.map_or(0, |(_, last_ns)| (last_ns / SECOND + 1) * SECOND);
            }
            News::Scan(event) if event.state == ScanState::Found => {
                let late = if event.probe == Some(Probe::Udp) { 60 * SECOND } else { 0 };
                assert!(event.scan.time_ns() + late >= over_ns, "{event:?} is late: {over_ns}");
            }
            News::Scan(_) => {}
        }
    }
}

#[test]
fn every_planted_scan_is_found_and_none_is_invented() {
    // With 2,000,000 packets of a minute and a half there are UDP keys that are judged before the end.
    check(Config { probe_scans: 8, ..Config::default() }, 2);
    for seed in 2..5 {
        let few = Config { packets: 100_000, hosts: 2000, probe_scans: 8, seed, ..Config::default() };
        check(few, seed as usize % 3);
    }
}

/// A probe a minute, of twenty-one ports of one host or of one port of twenty-one hosts.
fn slow_scan(vertical: bool, how: &dyn Fn(u64, &str, &str) -> Vec<Packet>) -> Vec<Packet> {
    let to = |number: u64| match vertical {
        true => format!("10.0.0.2 {}", 100 + number),
        false => format!("10.0.0.{} 99", 100 + number),
    };
    let mut packets: Vec<_> =
        (0..21).flat_map(|number| how(START + number * 60 * SECOND, "10.0.0.1 4000", &to(number))).collect();
    // Long enough for the last to be judged.
    packets.push(tcp(START + 3600 * SECOND, "10.0.0.8 1", "10.0.0.9 1", ACK));
    packets
}

#[test]
fn a_slow_scan_is_found_if_all_that_it_takes_is_remembered() {
    type How = dyn Fn(u64, &str, &str) -> Vec<Packet>;
    let syn = |time_ns, from: &str, to: &str| vec![tcp(time_ns, from, to, SYN)];
    let rejected = |time_ns, from: &str, to: &str| vec![tcp(time_ns, from, to, SYN), tcp(time_ns + 5, to, from, RST)];
    let fin = |time_ns, from: &str, to: &str| vec![tcp(time_ns, from, to, FIN)];
    let xmas = |time_ns, from: &str, to: &str| vec![tcp(time_ns, from, to, XMAS)];
    let datagram = |time_ns, from: &str, to: &str| vec![udp(time_ns, from, to)];
    let kinds: [(&How, u64); 5] = [(&syn, 3), (&rejected, 0), (&fin, 0), (&xmas, 0), (&datagram, 0)];
    for (how, after_s) in kinds {
        for vertical in [true, false] {
            let packets = slow_scan(vertical, how);
            for (forget_s, found) in [(20 * 60 - 1, false), (20 * 60, true), (15 * 60, false), (30 * 60, true)] {
                let mut case = Case::scans_only();
                case.continuous.forget_s = forget_s;
                let run = case.alone(Capture::of(&packets));
                let scans: Vec<_> = run.scans().into_iter().filter(|event| event.state == ScanState::Found).collect();
                assert_eq!(scans.len(), usize::from(found), "{forget_s} {vertical} {after_s}");
                if let Some(event) = scans.first() {
                    assert_eq!(event.scan.time_ns() / SECOND, START / SECOND + 20 * 60 + after_s);
                    assert_eq!(event.scan.kind(), if vertical { "vertical" } else { "horizontal" });
                }
            }
        }
    }
}
