//! The first stage: decodes just enough of a record to know its partition.

use crate::hash::HashKeys;
use crate::run::Run;
use crate::slot::{Slot, partition_v4, partition_v6};
use corelane_net::capture::Record;
use corelane_net::decode::{Decoded, Located, NoDatagram, TCP, decode, locate};

/// Decodes records, counts the facts that need no state, and passes on [slots](crate::slot).
#[derive(Clone, Debug)]
pub struct Dispatcher {
    keys: HashKeys,
    packets: u64,
    bytes: u64,
    tcp: u64,
    malformed: u64,
    undecoded: u64,
    times: Option<(u64, u64)>,
}

impl Dispatcher {
    /// A Dispatcher that has seen no record. The SubAnalyzers must be of the same run.
    pub fn new(run: &Run) -> Self {
        Dispatcher { keys: run.keys, packets: 0, bytes: 0, tcp: 0, malformed: 0, undecoded: 0, times: None }
    }

    /// Takes one record. A TCP or UDP packet goes to `sink` as its slots, one for IPv4 and two for IPv6, each with the
    /// packet's partition. All slots of a partition must reach its SubAnalyzer in this order.
    #[inline(always)]
    pub fn record(&mut self, record: &Record<'_>, mut sink: impl FnMut(u8, Slot)) {
        self.count(record);
        match decode(record.link, record.data) {
            Decoded::V4(packet) => {
                self.tcp += u64::from(packet.protocol == TCP);
                let slot = Slot::v4(&self.keys, record.time_ns, record.wire_len, &packet);
                sink(slot.partition(), slot);
            }
            Decoded::V6(packet) => {
                self.tcp += u64::from(packet.protocol == TCP);
                for slot in Slot::v6(&self.keys, record.time_ns, record.wire_len, &packet) {
                    sink(slot.partition(), slot);
                }
            }
            Decoded::OtherIp => {}
            Decoded::Undecoded => self.undecoded += 1,
            Decoded::Malformed => self.malformed += 1,
        }
    }

    /// Takes one record for a stage that decodes it. Returns where its IP header begins, and its partition. That stage
    /// counts TCP packets, and packets that are malformed behind the addresses.
    #[inline]
    pub(crate) fn locate(&mut self, record: &Record<'_>) -> Option<(u16, u8)> {
        self.count(record);
        match locate(record.link, record.data) {
            Ok(Located { at, source, destination, is_v4: true }) => {
                Some((at, partition_v4(source as u32, destination as u32)))
            }
            Ok(Located { at, source, destination, is_v4: false }) => Some((at, partition_v6(source, destination))),
            Err(NoDatagram::Undecoded) => {
                self.undecoded += 1;
                None
            }
            Err(NoDatagram::Malformed) => {
                self.malformed += 1;
                None
            }
        }
    }

    #[inline(always)]
    fn count(&mut self, record: &Record<'_>) {
        self.packets += 1;
        self.bytes += u64::from(record.wire_len);
        self.times = Some(match self.times {
            None => (record.time_ns, record.time_ns),
            Some((least, largest)) => (least.min(record.time_ns), largest.max(record.time_ns)),
        });
    }

    /// Records so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Their bytes on the wire.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// TCP packets with a whole header.
    pub fn tcp(&self) -> u64 {
        self.tcp
    }

    /// Records with an IP, TCP or UDP header that is wrong or cut.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Records without an IP header.
    pub fn undecoded(&self) -> u64 {
        self.undecoded
    }

    /// The least and the largest time of any record, decoded or not.
    pub fn times(&self) -> Option<(u64, u64)> {
        self.times
    }

    /// The largest time of any record, at which the capture ends; 0 without records.
    /// [`SubAnalyzer::finish`](crate::SubAnalyzer::finish) needs it.
    pub fn max_time(&self) -> u64 {
        self.times.map_or(0, |(_, largest)| largest)
    }
}
