//! `--demo`: traffic made in memory, and whether its planted scans were found.

use crate::generate::write_frames;
use crate::input::Watch;
use corelane_monitor::{Alert, Report, Settings};
use corelane_net::capture::write::PcapWriter;
use corelane_net::capture::{OpenError, Reader};
use corelane_net::synth::{self, Config, Generator, LINK, Scanned};
use std::fmt::Write;

/// Packets of the demo.
pub(crate) const PACKETS: u64 = 2_000_000;
/// About so many bytes a packet takes in memory.
const BYTES: usize = 88;

/// The traffic, and the scans planted in it.
#[derive(Debug)]
pub(crate) struct Demo {
    pub(crate) reader: Reader,
    pub(crate) planted: Vec<synth::Alert>,
}

impl Demo {
    /// Makes the traffic; `None` if the user ended it.
    pub(crate) fn make(watch: &Watch) -> Result<Option<Demo>, OpenError> {
        const MEMORY: &str = "a Vec takes everything";
        let config = Config { packets: PACKETS, ..Config::default() };
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

/// Compares what was found with what was planted: the good news, or what is wrong.
pub(crate) fn verdict(planted: &[synth::Alert], settings: &Settings, report: &Report) -> Result<String, String> {
    if *settings != (Settings { top: settings.top, ..Settings::default() }) {
        return Ok("the planted scans are defined for the default detection options, so they were not compared".into());
    }
    compare(planted, &report.alerts)
}

fn compare(planted: &[synth::Alert], found: &[Alert]) -> Result<String, String> {
    if planted.len() == found.len() && planted.iter().zip(found).all(|(planted, found)| is_same(planted, found)) {
        return Ok(format!("found exactly the {} planted scans", planted.len()));
    }
    let mut wrong = format!("{} scans were planted, {} found, and they differ", planted.len(), found.len());
    for missing in planted.iter().filter(|planted| !found.iter().any(|found| is_same(planted, found))) {
        let _ = write!(wrong, "; not found: {missing}");
    }
    for extra in found.iter().filter(|found| !planted.iter().any(|planted| is_same(planted, found))) {
        let _ = write!(wrong, "; not planted: {extra:?}");
    }
    Err(wrong)
}

fn is_same(planted: &synth::Alert, found: &Alert) -> bool {
    let scanned = match *found {
        Alert::Vertical { destination, .. } => Scanned::Vertical { destination },
        Alert::Horizontal { port, .. } => Scanned::Horizontal { port },
    };
    let found = synth::Alert { source: found.source(), scanned, count: found.count(), time_ns: found.time_ns() };
    *planted == found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_seen() {
        let source = "10.0.0.1".parse().unwrap();
        let planted = [synth::Alert { source, scanned: Scanned::Horizontal { port: 22 }, count: 21, time_ns: 5 }];
        let found = |port, count, time_ns| [Alert::Horizontal { source, port, count, time_ns }];
        assert_eq!(compare(&planted, &found(22, 21, 5)), Ok("found exactly the 1 planted scans".to_owned()));
        for wrong in [found(23, 21, 5), found(22, 22, 5), found(22, 21, 6)] {
            let message = compare(&planted, &wrong).unwrap_err();
            assert!(message.contains("not found: ") && message.contains("not planted: "), "{message}");
        }
        assert!(compare(&planted, &[]).is_err());
        assert!(compare(&[], &found(22, 21, 5)).is_err());
    }
}
