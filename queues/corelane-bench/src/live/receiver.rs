//! The contenders, each over the same ring.

use super::Contender;
use corelane_monitor::eve::Events;
use corelane_monitor::{
    Continuous, Found, Inspection, Job, Observer, Plan as Spread, Progress, Settings, Silence, Source, limit_memory,
};
use corelane_net::capture::Record;
use corelane_net::capture::live::{Live, LiveError, Options, Statistics};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The longest wait for a record, as in `corelane monitor`.
const PATIENCE: Duration = Duration::from_millis(250);
/// Records that are read at a time, as by the monitor.
const READ: usize = 4096;
/// The memory that `corelane monitor -i` may use.
const MEMORY: u64 = 1 << 30;

/// What sender and receiver know of each other.
#[derive(Debug, Default)]
pub(super) struct Shared {
    is_reading: AtomicBool,
    read: AtomicU64,
    stop: AtomicBool,
    is_over: AtomicBool,
    counts: Mutex<Option<Statistics>>,
}

// All relaxed: what is read is a count or a wish, and orders nothing. The final counts are read when both have ended.
impl Shared {
    /// Whether the reader has begun, so that frames are read as they come.
    pub(super) fn is_reading(&self) -> bool {
        self.is_reading.load(Relaxed)
    }

    /// Frames read so far.
    pub(super) fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Makes the reader read what is in the ring, and end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether the reader has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// The final counts of the ring, if it was read to the end.
    pub(super) fn counts(&self) -> Option<Statistics> {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every contender's ring: 64 MiB. A quick run does not wait so long for blocks that do not become full.
pub(super) fn options(contender: Contender, quick: bool) -> Options {
    let options = Options::default().ring_bytes(64 << 20).headers_only(contender.headers_only());
    if quick { options.block_timeout(Duration::from_millis(10)) } else { options }
}

/// A ring as a source of records, until it is told to stop.
#[derive(Debug)]
struct Wire<'a> {
    live: Live,
    shared: &'a Shared,
    is_stopped: bool,
}

impl Source for Wire<'_> {
    type Error = LiveError;

    #[inline]
    fn read(&mut self, max: usize, sink: impl FnMut(Record<'_>)) -> Result<usize, LiveError> {
        if self.shared.stop.load(Relaxed) && !self.is_stopped {
            self.live.stop()?;
            self.is_stopped = true;
        }
        self.shared.is_reading.store(true, Relaxed);
        let read = self.live.read(max, PATIENCE, sink)?;
        self.shared.read.fetch_add(read as u64, Relaxed);
        Ok(read)
    }

    fn silence(&mut self) -> Silence {
        if self.is_stopped && self.live.is_drained() {
            *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.live.statistics());
            return Silence::End { time_ns: None };
        }
        Silence::Pause { time_ns: self.live.quiet_since().unwrap_or(0) }
    }
}

/// Reads all that comes, by this contender, until it is told to stop. The calling thread is one of the readers, and the
/// others have the CPUs that it has.
///
/// # Errors
/// If the contender cannot be started, or reading has failed.
pub(super) fn receive(contender: Contender, live: Live, shared: &Shared) -> Result<(), String> {
    /// Tells the sender, also if this panics.
    struct Over<'a>(&'a Shared);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.is_over.store(true, Relaxed);
        }
    }
    let _over = Over(shared);
    let wire = Wire { live, shared, is_stopped: false };
    match contender {
        Contender::Counting { .. } => count(wire),
        Contender::Monitor { analyzers, eve } => monitor(wire, analyzers, eve),
    }
}

/// The least that a reader can do.
fn count(mut wire: Wire<'_>) -> Result<(), String> {
    let (mut frames, mut bytes) = (0_u64, 0_u64);
    loop {
        let read = wire.read(READ, |record| {
            frames += 1;
            bytes += u64::from(record.wire_len);
        });
        if read.map_err(|error| error.to_string())? == 0
            && let Silence::End { .. } = wire.silence()
        {
            black_box((frames, bytes));
            return Ok(());
        }
    }
}

/// `corelane monitor -i`, without or with `--eve`, but for what it writes.
fn monitor(wire: Wire<'_>, analyzers: usize, eve: bool) -> Result<(), String> {
    let plan = Spread { analyzers, ..Spread::default() };
    let mut settings = Settings { tunnels: true, top: 0, ..Settings::default() };
    let events = if eve { Events::ALL } else { Events::NONE };
    let mut inspection = Inspection { events, payload: eve, ..Inspection::default() };
    limit_memory(MEMORY, &plan, &mut settings, Some(&mut inspection).filter(|inspection| inspection.payload))
        .map_err(|least| format!("the plan needs {least} bytes"))?;
    let failure = OnceLock::new();
    let progress = Progress::new();
    let damage = &|_, error: LiveError| {
        failure.get_or_init(|| error.to_string());
        progress.stop();
    };
    let mut bytes = 0;
    let found = &mut |found: Found<'_>| match found {
        Found::Lines(lines) => bytes += black_box(lines).len(),
        found => _ = black_box(found),
    };
    let continuous = Some(Continuous { ready_bytes: Continuous::READY, ..Continuous::default() });
    let job = Job { settings, plan, inspection, continuous };
    job.run([wire], Observer { progress: &progress, damage, found }).map_err(|error| error.to_string())?;
    black_box(bytes);
    failure.into_inner().map_or(Ok(()), Err)
}
