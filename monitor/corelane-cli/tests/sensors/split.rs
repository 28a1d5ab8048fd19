//! Captures in parts, as several taps would have seen them.

use corelane_monitor::STEP_NS;
use corelane_net::capture::{LinkType, Options, Reader, Record};
use corelane_net::decode::locate;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// A pcapng capture whose times are whole nanoseconds.
pub(crate) struct Capture<W: Write> {
    out: BufWriter<W>,
    links: Vec<LinkType>,
}

impl Capture<File> {
    pub(crate) fn create(path: &Path) -> Self {
        Capture::to(File::create(path).expect("a temporary file"))
    }
}

impl<W: Write> Capture<W> {
    pub(crate) fn to(out: W) -> Self {
        let mut capture = Capture { out: BufWriter::new(out), links: Vec::new() };
        let mut body = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        body.extend([1, 0, 0, 0]);
        body.extend((-1_i64).to_le_bytes());
        capture.block(0x0a0d_0d0a, &body);
        capture
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let padding = body.len().next_multiple_of(4) - body.len();
        let length = ((12 + body.len() + padding) as u32).to_le_bytes();
        for part in [&kind.to_le_bytes()[..], &length, body, &[0; 3][..padding], &length] {
            self.out.write_all(part).expect("room");
        }
    }

    pub(crate) fn put(&mut self, time_ns: u64, wire_len: u32, link: LinkType, data: &[u8]) {
        let interface = self.links.iter().position(|&known| known == link).unwrap_or_else(|| {
            let mut body = u16::try_from(link.0).expect("a link type of files").to_le_bytes().to_vec();
            // No limit of length; then the unit of times, nanoseconds.
            body.extend([0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
            self.block(1, &body);
            self.links.push(link);
            self.links.len() - 1
        });
        let words = [interface as u32, (time_ns >> 32) as u32, time_ns as u32, data.len() as u32, wire_len];
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend_from_slice(data);
        self.block(6, &body);
    }

    pub(crate) fn flush(&mut self) {
        self.out.flush().expect("room");
    }

    pub(crate) fn finish(mut self) {
        self.flush();
    }
}

/// Splits a capture by address pairs into files of so many sensors. Its times are clamped before, so that all see one
/// clock.
pub(crate) fn split(capture: &Path, sensors: usize, folder: &Path) -> Vec<PathBuf> {
    let paths: Vec<_> = (0..sensors).map(|number| folder.join(format!("{sensors}-{number}.pcapng"))).collect();
    let mut parts: Vec<_> = paths.iter().map(|path| Capture::create(path)).collect();
    let mut begun_ns = 0;
    let mut reader = Reader::open(capture, &Options::default()).expect("a capture");
    loop {
        let put = |record: Record<'_>| {
            let sum = locate(record.link, record.data).map_or(0, |at| at.source.wrapping_add(at.destination));
            let part = &mut parts[(sum % sensors as u128) as usize];
            begun_ns = begun_ns.max(record.time_ns / STEP_NS * STEP_NS);
            part.put(record.time_ns.max(begun_ns), record.wire_len, record.link, record.data);
        };
        if matches!(reader.read(1000, put), Ok(0)) {
            break;
        }
    }
    parts.into_iter().for_each(Capture::finish);
    paths
}
