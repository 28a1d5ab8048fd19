//! Records in memory, and their parts.

use corelane_monitor::{STEP_NS, Source};
use corelane_net::capture::{LinkType, Reader, Record};
use corelane_net::decode::locate;
use corelane_net::synth::{self, Config, Generator};
use std::convert::Infallible;

pub(crate) type Owned = (u64, u32, LinkType, Vec<u8>);

/// Records in memory, some at a time.
#[derive(Clone)]
pub(crate) struct Records(pub(crate) Vec<Owned>, pub(crate) usize);

impl Source for Records {
    type Error = Infallible;

    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Infallible> {
        let some = &self.0[self.1..][..max.min(100).min(self.0.len() - self.1)];
        some.iter().for_each(|owned| sink(record(owned)));
        self.1 += some.len();
        Ok(some.len())
    }
}

pub(crate) fn record((time_ns, wire_len, link, data): &Owned) -> Record<'_> {
    Record { time_ns: *time_ns, wire_len: *wire_len, link: *link, data }
}

/// The records with times of one clock, as those of an interface have: a late one has the time at which the step of the
/// latest one before it began.
pub(crate) fn of_one_clock(records: &[Owned]) -> Vec<Owned> {
    let mut begun_ns = 0;
    let mut records = records.to_vec();
    for (time_ns, ..) in &mut records {
        begun_ns = begun_ns.max(*time_ns / STEP_NS * STEP_NS);
        *time_ns = begun_ns.max(*time_ns);
    }
    records
}

/// Splits the records as an interface does: by their addresses, in both directions alike.
pub(crate) fn split(records: &[Owned], rings: usize) -> Vec<Records> {
    let mut split: Vec<_> = (0..rings).map(|_| Records(Vec::new(), 0)).collect();
    for (time_ns, wire_len, link, data) in records {
        let sum = locate(*link, data).map_or(0, |at| at.source.wrapping_add(at.destination));
        split[(sum % rings as u128) as usize].0.push((*time_ns, *wire_len, *link, data.clone()));
    }
    split
}

/// All records of a capture but for what is damaged.
pub(crate) fn records_of(mut reader: Reader) -> Vec<Owned> {
    let mut records = Vec::new();
    loop {
        let keep =
            |record: Record<'_>| records.push((record.time_ns, record.wire_len, record.link, record.data.to_vec()));
        if matches!(reader.read(1000, keep), Ok(0)) {
            return records;
        }
    }
}

pub(crate) fn synthetic(config: Config) -> Vec<Owned> {
    let mut generator = Generator::new(config).expect("a good configuration");
    let mut records = Vec::new();
    while let Some(record) = generator.next_frame() {
        records.push((record.time_ns, record.wire_len, synth::LINK, record.data.to_vec()));
    }
    records
}
