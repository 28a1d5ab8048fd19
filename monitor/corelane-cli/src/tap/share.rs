//! A copy that several rings share.
//!
//! 1. Each ring is read by a thread of its own, and each is at a time of its own. But the file is in the order of time,
//!    as one ring would have brought it: a replay has one clock for all.
//! 2. So a record waits in memory until all rings have passed its time: by records, or by the clock where none come. A
//!    ring that is over is not waited for.
//! 3. If too much waits, the rings that are ahead are not read: packets wait in the kernel, which counts what it drops.
//!    The ring that is last goes on always, so the others do not wait for ever.
//! 4. While a clock that was set back catches up, no ring passes any time. If too much waits then, the order is that of
//!    steps alone.

use super::Copy;
use crate::output::Condition;
use corelane_monitor::STEP_NS;
use corelane_net::capture::{LinkType, Record};
use std::collections::VecDeque;
use std::mem::size_of;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most bytes of records that wait, of all rings, but for what each reads at a time. A ring without packets is a
/// quarter of a second behind the others: in that time so much comes at 8 Gbit/s.
pub(super) const MOST_WAITING: usize = 256 << 20;

/// The end of one ring.
#[derive(Debug)]
pub(crate) struct Share {
    common: Arc<Common>,
    ring: usize,
    /// Records since the last rest.
    gathered: Vec<Owned>,
    /// The largest time of a record so far, or a later one up to which the clock has passed.
    passed_ns: u64,
}

#[derive(Debug)]
struct Common {
    joint: Mutex<Joint>,
    /// A ring has passed some time, or is over.
    moved: Condvar,
}

#[derive(Debug)]
struct Joint {
    copy: Copy,
    rings: Vec<Ring>,
    /// Bytes of all records that wait, and the most of them before rings that are ahead have to wait.
    bytes: usize,
    most: usize,
    /// Packets received and dropped, of the rings that are over, and the time at which the last of their steps began.
    counts: (u64, u64),
    end_ns: u64,
}

/// One ring, as the others know it.
#[derive(Debug, Default)]
struct Ring {
    /// What waits for the other rings.
    records: VecDeque<Owned>,
    /// Its further records have no earlier place than this.
    passed_ns: u64,
    is_over: bool,
}

#[derive(Debug)]
struct Owned {
    /// Its place in the order: the largest time of its ring up to it. The kernel takes the times a little before the
    /// order, so they may go back.
    place_ns: u64,
    time_ns: u64,
    wire_len: u32,
    link: LinkType,
    data: Box<[u8]>,
}

impl Owned {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.data.len()
    }
}

impl Share {
    /// The ends of all rings. So many bytes may wait.
    pub(super) fn all(copy: Copy, rings: usize, most: usize) -> Vec<Self> {
        let ends = (0..rings).map(|_| Ring::default()).collect();
        let joint = Joint { copy, rings: ends, bytes: 0, most, counts: (0, 0), end_ns: 0 };
        let common = Arc::new(Common { joint: Mutex::new(joint), moved: Condvar::new() });
        let share = |ring| Share { common: Arc::clone(&common), ring, gathered: Vec::new(), passed_ns: 0 };
        (0..rings).map(share).collect()
    }

    /// How the file is, with the number of lost records.
    pub(super) fn condition(&self) -> Condition {
        self.common.lock().copy.condition()
    }

    /// Takes a record.
    #[inline]
    pub(super) fn take(&mut self, record: &Record<'_>) {
        self.passed_ns = self.passed_ns.max(record.time_ns);
        self.gathered.push(Owned {
            place_ns: self.passed_ns,
            time_ns: record.time_ns,
            wire_len: record.wire_len,
            link: record.link,
            data: record.data.into(),
        });
    }

    /// No record of this ring before this time follows.
    pub(super) fn pass(&mut self, time_ns: u64) {
        if time_ns > self.passed_ns {
            self.passed_ns = time_ns;
            self.update(|_| ());
        }
    }

    /// No more records are at hand.
    pub(super) fn rest(&mut self, reopens: usize) {
        self.update(|joint| {
            // What follows in the next file is not before the step that goes on.
            let begun_ns = joint.begun_ns();
            joint.copy.rest(reopens, Some(begun_ns));
        });
    }

    /// Waits until this ring may be read, at most for so long; says whether it may.
    pub(super) fn wait_for_room(&self, most: Duration) -> bool {
        let is_ahead = |joint: &mut Joint| joint.is_full() && joint.is_ahead(self.ring);
        let waited = self.common.moved.wait_timeout_while(self.common.lock(), most, is_ahead);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// The ring is over. Its last step began at this time, and so many packets were received and dropped.
    pub(super) fn finish(&mut self, begun_ns: u64, (received, dropped): (u64, u64)) {
        let ring = self.ring;
        self.update(|joint| {
            joint.rings[ring].is_over = true;
            joint.counts = (joint.counts.0 + received, joint.counts.1 + dropped);
            joint.end_ns = joint.end_ns.max(begun_ns);
            joint.write();
            if joint.rings.iter().all(|ring| ring.is_over) {
                joint.copy.finish(Some(joint.end_ns), Some(joint.counts));
            }
        });
    }

    /// Hands on what is new of this ring, and does something more with what all share.
    fn update(&mut self, more: impl FnOnce(&mut Joint)) {
        let mut joint = self.common.lock();
        joint.bytes += self.gathered.iter().map(Owned::bytes).sum::<usize>();
        let ring = &mut joint.rings[self.ring];
        ring.records.extend(self.gathered.drain(..));
        ring.passed_ns = self.passed_ns;
        joint.write();
        more(&mut joint);
        drop(joint);
        self.common.moved.notify_all();
    }
}

impl Common {
    fn lock(&self) -> MutexGuard<'_, Joint> {
        self.joint.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Joint {
    /// The time that all rings have passed.
    fn passed_ns(&self) -> u64 {
        let going_on = self.rings.iter().filter(|ring| !ring.is_over);
        going_on.map(|ring| ring.passed_ns).min().unwrap_or(u64::MAX)
    }

    /// When the step began that the last ring is in.
    fn begun_ns(&self) -> u64 {
        self.passed_ns() / STEP_NS * STEP_NS
    }

    fn is_full(&self) -> bool {
        self.bytes >= self.most
    }

    /// Whether another ring is some steps behind this one. What is the last ring's does not wait.
    fn is_ahead(&self, ring: usize) -> bool {
        self.rings[ring].passed_ns / STEP_NS > self.passed_ns() / STEP_NS
    }

    /// Writes what no earlier record can precede any longer; if too much waits, in one step, all of that step.
    fn write(&mut self) {
        self.write_to(self.passed_ns());
        let is_waited_for = |ring: usize| !self.rings[ring].is_over && self.is_ahead(ring);
        if self.is_full() && !(0..self.rings.len()).any(is_waited_for) {
            self.write_to(self.begun_ns().saturating_add(STEP_NS - 1));
        }
    }

    /// Writes all that waits and has no later place than this.
    fn write_to(&mut self, passed_ns: u64) {
        let mut records = Vec::new();
        for ring in &mut self.rings {
            let count = ring.records.partition_point(|record| record.place_ns <= passed_ns);
            records.extend(ring.records.drain(..count));
        }
        records.sort_by_key(|record| record.place_ns);
        for record in &records {
            let Owned { time_ns, wire_len, link, data, .. } = record;
            self.copy.take(&Record { time_ns: *time_ns, wire_len: *wire_len, link: *link, data });
            self.bytes -= record.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CopyEnd, Tap};
    use super::*;
    use crate::output::Output;
    use corelane_monitor::Steps;
    use corelane_net::capture::{Options, Reader};
    use std::thread;
    use std::time::Instant;
    use tempfile::TempDir;

    const SECOND: u64 = 1_000_000_000;
    /// Bytes of a record's packet.
    const LENGTH: usize = 1000;
    const NOT_LONG: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(60);

    /// The taps of some rings, of which so many records may wait, and the folder with their copy.
    fn taps<const RINGS: usize>(most: usize) -> ([Tap; RINGS], TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let output = Output::create(&folder.path().join("copy")).unwrap();
        let copy = Copy::of_interface(output, 65_535, "eth0".to_owned(), LinkType::ETHERNET, 0);
        let shares = Share::all(copy, RINGS, most * (size_of::<Owned>() + LENGTH));
        let tap = |share| Tap { filter: None, copy: Some(CopyEnd::Shared(share)), steps: Some(Steps::new()) };
        let taps: Vec<_> = shares.into_iter().map(tap).collect();
        (taps.try_into().unwrap(), folder)
    }

    /// Takes records of these times, together.
    fn take(tap: &mut Tap, times: impl IntoIterator<Item = u64>) {
        for time_ns in times {
            let data = &[7; LENGTH];
            tap.take(Record { time_ns, wire_len: LENGTH as u32, link: LinkType::ETHERNET, data }).unwrap();
        }
        tap.rest(0);
    }

    /// The times in the file, and the time at its end, if that is written.
    fn written(folder: &TempDir) -> (Vec<u64>, Option<u64>) {
        let mut reader = Reader::open(&folder.path().join("copy"), &Options::default()).unwrap();
        let mut times = Vec::new();
        while reader.read(1000, |record| times.push(record.time_ns)).unwrap() > 0 {}
        (times, reader.end_ns())
    }

    #[test]
    fn the_file_is_in_the_order_of_time_and_waits_for_no_more_than_it_must() {
        let ([mut a, mut b, mut c], folder) = taps(1000);
        take(&mut a, [SECOND, SECOND + 30, SECOND + 60]);
        take(&mut b, [SECOND + 20, SECOND + 50]);
        // It begins when all rings have come, each by a packet or the clock.
        assert!(written(&folder).0.is_empty());
        c.pass(SECOND + 40);
        c.rest(0);
        assert_eq!(written(&folder).0, [SECOND, SECOND + 20, SECOND + 30]);
        // A time that goes back a little stays where it came, as does one of a step that is over.
        take(&mut c, [SECOND + 55, SECOND + 45]);
        take(&mut c, [2 * SECOND + 10, SECOND + 70]);
        take(&mut b, [2 * SECOND]);
        take(&mut a, [2 * SECOND + 5]);
        let mut expected = [0, 20, 30, 50, 55, 45, 60].map(|time| SECOND + time).to_vec();
        expected.push(2 * SECOND);
        assert_eq!(written(&folder).0, expected);
        for mut tap in [a, b, c] {
            tap.finish(Some((3, 1)));
        }
        expected.extend([2 * SECOND + 5, 2 * SECOND + 10, SECOND + 70]);
        assert_eq!(written(&folder), (expected, Some(2 * SECOND)));
    }

    #[test]
    fn a_ring_that_is_far_ahead_waits_for_the_others() {
        let ([mut a, mut b, mut c], _folder) = taps(10);
        take(&mut a, (1..=9).map(|time| time * SECOND));
        assert!(a.wait_for_room(NOT_LONG), "there is room for one more");
        take(&mut a, [10 * SECOND]);
        assert!(!a.wait_for_room(NOT_LONG));
        c.pass(4 * SECOND);
        assert!(!a.wait_for_room(NOT_LONG), "b may bring anything");
        take(&mut b, [2 * SECOND]);
        assert!(a.wait_for_room(NOT_LONG), "two records are written");
        take(&mut a, [11 * SECOND, 11 * SECOND]);
        let may_go_on = [&a, &b, &c].map(|tap| tap.wait_for_room(NOT_LONG));
        assert_eq!(may_go_on, [false, true, false], "all wait for b, and b for none");
    }

    /// Also if all that waits is its own, of one moment.
    #[test]
    fn the_last_ring_never_waits() {
        let ([mut a, mut b], folder) = taps(10);
        take(&mut a, [0; 1000]);
        assert!(a.wait_for_room(NOT_LONG) && b.wait_for_room(NOT_LONG), "none is ahead");
        take(&mut b, [SECOND; 1000]);
        take(&mut a, [SECOND - 1; 1000]);
        assert!(a.wait_for_room(NOT_LONG) && !b.wait_for_room(NOT_LONG));
        take(&mut a, [SECOND; 1000]);
        assert!(a.wait_for_room(NOT_LONG) && b.wait_for_room(NOT_LONG), "both are where the other is");
        assert_eq!(written(&folder).0.len(), 4000);
    }

    #[test]
    fn a_ring_that_is_over_holds_no_other_back() {
        let ([mut a, mut b, mut c], folder) = taps(10);
        take(&mut a, [5 * SECOND; 100]);
        take(&mut b, [SECOND]);
        b.finish(Some((1, 0)));
        assert!(!a.wait_for_room(NOT_LONG), "c has not come");
        c.finish(Some((0, 0)));
        assert!(a.wait_for_room(NOT_LONG), "it is the only one left");
        take(&mut a, [6 * SECOND; 100]);
        a.finish(Some((200, 0)));
        let (times, end_ns) = written(&folder);
        assert!(times.len() == 201 && times.is_sorted() && end_ns == Some(6 * SECOND), "{times:?}, {end_ns:?}");
    }

    #[test]
    fn what_a_ring_that_is_over_has_left_is_written_in_its_place() {
        let ([mut a, mut b], folder) = taps(10);
        take(&mut a, [5 * SECOND; 100]);
        a.finish(Some((100, 0)));
        for time in 1..5 {
            assert!(b.wait_for_room(NOT_LONG), "though so much waits, the only ring has to go on");
            take(&mut b, [time * SECOND; 10]);
        }
        assert_eq!(written(&folder).0.len(), 40);
        b.finish(Some((40, 0)));
        let (times, end_ns) = written(&folder);
        assert!(times.len() == 140 && times.is_sorted() && end_ns == Some(5 * SECOND), "{times:?}, {end_ns:?}");
    }

    #[test]
    fn a_clock_that_was_set_back_holds_no_ring_back() {
        let ([mut a, mut b], folder) = taps(10);
        take(&mut a, [SECOND + 900]);
        take(&mut b, [SECOND + 200]);
        for _ in 0..10 {
            take(&mut a, [5; 10]);
            take(&mut b, [5; 10]);
            assert!(a.wait_for_room(NOT_LONG) && b.wait_for_room(NOT_LONG), "both are in one step");
        }
        let (times, _) = written(&folder);
        assert!(times.len() > 190 && times[2..].iter().all(|&time| time == 5), "{times:?}");
    }

    #[test]
    fn a_ring_that_waits_is_woken_as_soon_as_it_may_be_read() {
        let moves: [fn(&mut Tap); 3] =
            [|tap| take(tap, [6 * SECOND]), |tap| tap.pass(7 * SECOND), |tap| tap.finish(Some((0, 0)))];
        for go_on in moves {
            let ([mut a, mut b], _folder) = taps(10);
            take(&mut a, [5 * SECOND; 10]);
            assert!(!a.wait_for_room(NOT_LONG));
            thread::scope(|scope| {
                let waits = scope.spawn(|| a.wait_for_room(LONG));
                let begun = Instant::now();
                go_on(&mut b);
                assert!(waits.join().unwrap());
                assert!(begun.elapsed() < LONG / 2, "it was not woken, but looked when its time was over");
            });
        }
    }
}
