//! A capture in memory, whole, so that no stage waits for a disk.

use corelane_net::capture::{LinkType, ReadError, Reader, Record};

/// The records of a capture.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    places: Vec<Place>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Place {
    time_ns: u64,
    wire_len: u32,
    link: LinkType,
    begin: usize,
    end: usize,
}

impl Trace {
    /// Reads a generated capture, which is whole.
    pub(crate) fn generated(capture: Vec<u8>) -> Self {
        let reader = Reader::from_bytes(capture).expect("a capture");
        Trace::read(reader, |error| panic!("a generated capture is whole: {error}"))
    }

    /// Reads all records. What is damaged goes to `damage`, as far as the reader can go on behind it.
    pub(crate) fn read(mut reader: Reader, mut damage: impl FnMut(ReadError)) -> Self {
        let mut trace = Trace::default();
        loop {
            let Trace { places, bytes } = &mut trace;
            let read = reader.read(4096, |Record { time_ns, wire_len, link, data }| {
                let begin = bytes.len();
                bytes.extend_from_slice(data);
                places.push(Place { time_ns, wire_len, link, begin, end: bytes.len() });
            });
            match read {
                Ok(0) => return trace,
                Ok(_) => {}
                Err(error) => damage(error),
            }
        }
    }

    /// The number of records.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    #[inline(always)]
    pub(crate) fn record(&self, number: usize) -> Record<'_> {
        let Place { time_ns, wire_len, link, begin, end } = self.places[number];
        Record { time_ns, wire_len, link, data: &self.bytes[begin..end] }
    }

    #[inline(always)]
    pub(crate) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        (0..self.len()).map(|number| self.record(number))
    }
}
