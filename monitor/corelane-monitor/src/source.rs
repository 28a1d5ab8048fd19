//! The sources of records.

use corelane::prefetch_read;
use corelane_net::capture::{Memory, ReadError, Reader, Record};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A source of the records of a capture, in order: a [`Reader`], or synthetic traffic.
pub trait Source {
    /// The reason why records are missing.
    type Error;

    /// Hands at most `max` records to `sink` and returns their number; 0 is the end. After an error the call may be
    /// repeated: it goes on behind the damage, or returns 0.
    fn read(&mut self, max: usize, sink: impl FnMut(Record<'_>)) -> Result<usize, Self::Error>;

    /// Asked when [`read`](Source::read) has brought no record: whether more may come.
    fn silence(&mut self) -> Silence {
        Silence::End { time_ns: None }
    }

    /// The memory in which the next records lie, if they stay there while it is held. Then a caller that needs their
    /// bytes for longer need not copy them. A record may lie elsewhere, as a source may go on to another capture in the
    /// middle of a read.
    fn memory(&mut self) -> Option<&Memory> {
        None
    }
}

/// What it means that a [`Source`] has brought no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// No more records come.
    End {
        /// The time at which the capture ended, if it is known.
        time_ns: Option<u64>,
    },
    /// There is none at the moment.
    Pause {
        /// No record before this time follows.
        time_ns: u64,
    },
}

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// Memory of so many bytes is asked for ahead. Less fits into the caches, and was just filled.
const LARGE: usize = 4 << 20;
/// How far ahead of a record its memory is asked for: some records of usual length, and well within the first cache.
const AHEAD: usize = 4096;

/// The same as [`Source::read`], asking for memory ahead, for records with payload. Where one begins is known only from
/// the one before, so every record of a capture in memory would be waited for. Headers alone lie close enough for the
/// processor to guess.
#[inline]
pub(crate) fn read_ahead<S: Source>(
    source: &mut S,
    max: usize,
    mut sink: impl FnMut(Record<'_>),
) -> Result<usize, S::Error> {
    let memory = source.memory().filter(|memory| memory.len() >= LARGE).cloned();
    source.read(max, |record| {
        if let Some(memory) = &memory
            && let Some(at) = memory.place(record.data)
            && let Some(ahead) = memory.get(at + AHEAD..at + AHEAD + record.data.len())
        {
            ahead.iter().step_by(LINE).for_each(prefetch_read);
        }
        sink(record);
    })
}

impl Source for Reader {
    type Error = ReadError;

    #[inline]
    fn read(&mut self, max: usize, sink: impl FnMut(Record<'_>)) -> Result<usize, ReadError> {
        Reader::read(self, max, sink)
    }

    fn memory(&mut self) -> Option<&Memory> {
        Reader::memory(self)
    }
}

impl<S: Source> Source for &mut S {
    type Error = S::Error;

    #[inline]
    fn read(&mut self, max: usize, sink: impl FnMut(Record<'_>)) -> Result<usize, S::Error> {
        S::read(self, max, sink)
    }

    fn silence(&mut self) -> Silence {
        S::silence(self)
    }

    fn memory(&mut self) -> Option<&Memory> {
        S::memory(self)
    }
}

/// The progress of a run, and a way to end it early, for other threads.
#[derive(Debug, Default)]
pub struct Progress {
    packets: AtomicU64,
    bytes: AtomicU64,
    /// In millionths, and 1 more; 0 if there was no look.
    fullest: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Progress of a run that has not begun.
    pub const fn new() -> Self {
        let [packets, bytes, fullest] = [const { AtomicU64::new(0) }; 3];
        Progress { packets, bytes, fullest, stop: AtomicBool::new(false) }
    }

    // All relaxed: the numbers are for show and order nothing, and the stop may be seen a little later.

    /// The records that were read, a little late.
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Their bytes on the wire, a little late.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How full the fullest queue to an analyzer was, from 0 to 1, when it was last looked at: at the ends of steps
    /// that bring a [snapshot](crate::Found::Snapshot). `None` if there was no look since the last call, or if there
    /// are no queues.
    pub fn take_queue_fill(&self) -> Option<f64> {
        self.fullest.swap(0, Ordering::Relaxed).checked_sub(1).map(|fill| fill as f64 / 1e6)
    }

    /// The queue that is now the fullest of a Dispatcher's. Of several Dispatchers the fullest counts.
    pub(crate) fn queue_fill(&self, fill: f64) {
        self.fullest.fetch_max((fill * 1e6) as u64 + 1, Ordering::Relaxed);
    }

    /// Makes the run stop reading and report its results so far.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether [`stop`](Progress::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Adds to the progress.
    pub fn add(&self, packets: u64, bytes: u64) {
        self.packets.fetch_add(packets, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the progress.
    pub fn set(&self, packets: u64, bytes: u64) {
        self.packets.store(packets, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_queue_counts_until_it_is_asked_for() {
        let progress = Progress::new();
        assert_eq!(progress.take_queue_fill(), None);
        [0.25, 1.0, 0.0].iter().for_each(|&fill| progress.queue_fill(fill));
        assert_eq!(progress.take_queue_fill(), Some(1.0));
        assert_eq!(progress.take_queue_fill(), None);
        progress.queue_fill(0.0);
        assert_eq!(progress.take_queue_fill(), Some(0.0), "empty is not unknown");
    }
}
