//! `--demo`: makes traffic in memory, and checks whether its planted scans were found.

use crate::generate::write_frames;
use crate::input::Watch;
use corelane_monitor::{Alert, Probe, Report, Settings};
use corelane_net::capture::write::PcapWriter;
use corelane_net::capture::{OpenError, Reader};
use corelane_net::synth::{self, Config, Generator, LINK, Scanned};
use std::fmt::Write;

/// Packets of the demo.
pub(crate) const PACKETS: u64 = 2_000_000;
/// The memory of a packet in bytes, about.
const BYTES: usize = 88;

/// The traffic, and the scans planted in it.
#[derive(Debug)]
pub(crate) struct Demo {
    pub(crate) reader: Reader,
    pub(crate) planted: Vec<synth::Alert>,
}

impl Demo {
    /// Makes the traffic; `None` if the user ended the run.
    pub(crate) fn make(watch: &Watch) -> Result<Option<Demo>, OpenError> {
        const MEMORY: &str = "a Vec takes everything";
        let config = Config { packets: PACKETS, probe_scans: 4, ..Config::default() };
        let snaplen = config.file_snaplen();
        let mut generator = Generator::new(config).expect("the demo's configuration is valid");
        let image = Vec::with_capacity(PACKETS as usize * BYTES);
        let mut writer = PcapWriter::new(image, snaplen, LINK).expect(MEMORY);
        if !write_frames(&mut generator, &mut writer, watch).expect(MEMORY) {
            return Ok(None);
        }
        let reader = Reader::from_bytes(writer.finish().expect(MEMORY))?;
        Ok(Some(Demo { reader, planted: generator.truth() }))
    }
}

/// Compares the scans that were found with those planted. Returns a message of success, or of the difference.
pub(crate) fn verdict(planted: &[synth::Alert], settings: &Settings, report: &Report) -> Result<String, String> {
    if *settings
        != (Settings { top: settings.top, probes: settings.probes, counting: settings.counting, ..Settings::default() })
    {
        return Ok("the planted scans are defined for the default detection options, so they were not compared".into());
    }
    let planted: Vec<_> =
        planted.iter().filter(|planted| settings.probes || planted.probe.is_none()).copied().collect();
    let scans = report.alerts.iter().map(|alert| (None, alert));
    let scans = scans.chain(report.probe_scans.iter().map(|found| (Some(found.probe), &found.scan)));
    let named = |(probe, scan): (Option<Probe>, &Alert)| {
        planted_as(probe, scan).ok_or_else(|| format!("a scan was found of a kind that is not planted: {scan:?}"))
    };
    let mut found = scans.map(named).collect::<Result<Vec<_>, _>>()?;
    found.sort_unstable();
    compare(&planted, &found)
}

fn compare(planted: &[synth::Alert], found: &[synth::Alert]) -> Result<String, String> {
    if planted == found {
        return Ok(format!("found exactly the {} planted scans", planted.len()));
    }
    let mut wrong = format!("{} scans were planted, {} found, and they differ", planted.len(), found.len());
    for missing in planted.iter().filter(|planted| !found.contains(planted)) {
        let _ = write!(wrong, "; not found: {missing}");
    }
    for extra in found.iter().filter(|found| !planted.contains(found)) {
        let _ = write!(wrong, "; not planted: {extra}");
    }
    Err(wrong)
}

/// The scan in the generator's terms, if it plants such.
fn planted_as(probe: Option<Probe>, found: &Alert) -> Option<synth::Alert> {
    let probe = match probe {
        None => None,
        Some(Probe::Fin) => Some(synth::Probe::Fin),
        Some(Probe::Null) => Some(synth::Probe::Null),
        Some(Probe::Xmas) => Some(synth::Probe::Xmas),
        Some(Probe::Udp) => Some(synth::Probe::Udp),
        Some(Probe::SynFin) => Some(synth::Probe::SynFin),
        Some(Probe::Odd) => Some(synth::Probe::Odd),
        Some(Probe::Ack | Probe::Ping | Probe::Arp | Probe::Protocol | Probe::Sctp) => return None,
    };
    let scanned = match *found {
        Alert::Vertical { destination, .. } => Scanned::Vertical { destination },
        Alert::Horizontal { port, .. } => Scanned::Horizontal { port },
        Alert::Block { .. } => return None,
    };
    Some(synth::Alert { probe, source: found.source(), scanned, count: found.count(), time_ns: found.time_ns() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_seen() {
        let source = "10.0.0.1".parse().unwrap();
        let horizontal = |probe, port, count, time_ns| {
            [planted_as(probe, &Alert::Horizontal { source, port, count, time_ns }).unwrap()]
        };
        let found = |port, count, time_ns| horizontal(Some(Probe::Xmas), port, count, time_ns);
        let probe = Some(synth::Probe::Xmas);
        let planted =
            [synth::Alert { probe, source, scanned: Scanned::Horizontal { port: 22 }, count: 21, time_ns: 5 }];
        assert_eq!(compare(&planted, &found(22, 21, 5)), Ok("found exactly the 1 planted scans".to_owned()));
        let others = [None, Some(Probe::Fin)].map(|probe| horizontal(probe, 22, 21, 5));
        for wrong in [found(23, 21, 5), found(22, 22, 5), found(22, 21, 6)].into_iter().chain(others) {
            let message = compare(&planted, &wrong).unwrap_err();
            assert!(message.contains("not found: ") && message.contains("not planted: "), "{message}");
        }
        assert!(compare(&planted, &[]).is_err());
        assert!(compare(&[], &found(22, 21, 5)).is_err());
    }
}
