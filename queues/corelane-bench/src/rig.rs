//! Threads that start together and are timed from the first start to the last stop. No contender can hang the bench.

use crate::counters::{Counters, Counts};
use crate::raw::ticks;
use crate::setting::Setting;
use crate::topology::{self, Cpu};
use cpu_time::ThreadTime;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Why a measurement has no figure. That is a result, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nothing moved for the whole bound.
    Hangs(Duration),
    /// An item was not the expected one.
    Wrong { expected: u64, got: u64 },
    /// The sum of the items taken is not that of the items put.
    WrongSum { put: u64, taken: u64 },
    /// More or fewer items were taken than put.
    WrongCount { put: u64, taken: u64 },
    /// The application's answer is not that of one thread.
    WrongAnswer,
    /// Another thread of the same measurement has stopped.
    Elsewhere,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Hangs(bound) => write!(f, "hangs: nothing moved for {} s", bound.as_secs_f64()),
            Stop::Wrong { expected, got } => write!(f, "wrong: item {got} where {expected} was due"),
            Stop::WrongSum { put, taken } => {
                write!(f, "wrong: what was put sums to {put}, what was taken to {taken}")
            }
            Stop::WrongCount { put, taken } => write!(f, "wrong: {put} were put, {taken} taken"),
            Stop::WrongAnswer => write!(f, "wrong: the answer is not that of one thread"),
            Stop::Elsewhere => write!(f, "stopped by the other side"),
        }
    }
}

/// The time of one thread.
#[derive(Clone, Copy, Debug)]
struct Lap {
    start: Instant,
    stop: Instant,
    cpu: Duration,
    counts: Option<Counts>,
}

/// The time of all threads together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    /// From the first start to the last stop.
    pub(crate) wall: Duration,
    /// Of all threads together.
    pub(crate) cpu: Duration,
    /// Of all threads together, if asked for.
    pub(crate) counts: Option<Counts>,
}

impl Took {
    fn of(laps: &[Lap]) -> Self {
        let start = laps.iter().map(|lap| lap.start).min().expect("a thread at least");
        let stop = laps.iter().map(|lap| lap.stop).max().expect("a thread at least");
        let counts = laps.iter().map(|lap| lap.counts).reduce(|sum, counts| Some(sum?.plus(counts?))).flatten();
        Took { wall: stop - start, cpu: laps.iter().map(|lap| lap.cpu).sum(), counts }
    }
}

/// A meeting point of all threads. It spins, so that the threads leave it within nanoseconds of each other. It yields
/// now and then, because two threads may share a CPU.
#[derive(Debug)]
struct Gate {
    threads: usize,
    arrived: AtomicUsize,
}

impl Gate {
    fn meet(&self, stopped: &AtomicBool) -> Result<(), Stop> {
        // The n-th meeting is over when n times as many threads have come as there are.
        let mine = self.arrived.fetch_add(1, Ordering::AcqRel);
        let all = (mine / self.threads + 1) * self.threads;
        let mut looks = 0_u32;
        while self.arrived.load(Ordering::Acquire) < all {
            if stopped.load(Ordering::Relaxed) {
                return Err(Stop::Elsewhere);
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(256) { thread::yield_now() } else { std::hint::spin_loop() }
        }
        Ok(())
    }
}

/// The position of a waiting thread, for the other threads to see.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Post {
    /// The position at which the thread waits, plus one. 0 before the first wait.
    position: AtomicU64,
    /// When the thread was first and last seen to wait there, in nanoseconds of the rig's clock.
    since: AtomicU64,
    last: AtomicU64,
    done: AtomicBool,
}

#[derive(Debug)]
struct Board {
    gate: Gate,
    posts: Vec<Post>,
    stopped: AtomicBool,
    start: Instant,
    bound: Duration,
}

/// A thread's view of the measurement.
#[derive(Debug)]
pub(crate) struct Side {
    me: usize,
    board: Arc<Board>,
    /// When the clock was started, and the thread's CPU time at that moment.
    lap: Option<(Instant, Duration)>,
    took: Option<Lap>,
    counters: Option<Counters>,
}

/// After this many failed tries a thread looks for a hang.
pub(crate) const PATIENCE: u64 = 4096;

impl Side {
    /// Waits for all threads, then starts this thread's clock.
    pub(crate) fn start(&mut self) -> Result<(), Stop> {
        self.board.gate.meet(&self.board.stopped)?;
        let cpu = ThreadTime::now().as_duration();
        if let Some(counters) = &mut self.counters {
            counters.start();
        }
        self.lap = Some((Instant::now(), cpu));
        Ok(())
    }

    /// Stops this thread's clock.
    pub(crate) fn stop(&mut self) {
        if let Some((start, cpu)) = self.lap.take() {
            let stop = Instant::now();
            let counts = self.counters.as_mut().map(Counters::stop);
            let cpu = ThreadTime::now().as_duration() - cpu;
            self.took = Some(Lap { start, stop, cpu, counts });
        }
    }

    /// Decides whether to give up. The thread calls it every [`PATIENCE`] failed tries at `position`.
    ///
    /// A measurement hangs when every thread is done or has been waiting at one place for the whole bound. A thread
    /// that does not get the CPU counts as neither, because it was not seen to wait lately.
    #[cold]
    #[inline(never)]
    pub(crate) fn stuck(&self, position: u64) -> Result<(), Stop> {
        let board = &*self.board;
        if board.stopped.load(Ordering::Relaxed) {
            return Err(Stop::Elsewhere);
        }
        let now = board.start.elapsed().as_nanos() as u64;
        let post = &board.posts[self.me];
        // Only this thread writes its post. The position is stored last, so a thread that reads it sees the time that
        // belongs to it.
        post.last.store(now, Ordering::Relaxed);
        if post.position.load(Ordering::Relaxed) != position + 1 {
            post.since.store(now, Ordering::Relaxed);
            post.position.store(position + 1, Ordering::Release);
        }
        let bound = board.bound.as_nanos() as u64;
        let stuck = board.posts.iter().all(|post| {
            post.done.load(Ordering::Acquire)
                || post.position.load(Ordering::Acquire) != 0
                    && now.saturating_sub(post.since.load(Ordering::Relaxed)) > bound
                    && now.saturating_sub(post.last.load(Ordering::Relaxed)) < bound / 2
        });
        if stuck && now.saturating_sub(post.since.load(Ordering::Relaxed)) > bound {
            board.stopped.store(true, Ordering::Relaxed);
            return Err(Stop::Hangs(board.bound));
        }
        Ok(())
    }

    /// Tries until there is a result, with a pause behind each try that failed, and looks for a hang.
    #[inline(always)]
    pub(crate) fn until<R>(
        &self,
        failed: &mut u64,
        position: u64,
        pause: impl Fn(),
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Result<R, Stop> {
        loop {
            if let Some(result) = attempt() {
                return Ok(result);
            }
            *failed += 1;
            if failed.is_multiple_of(PATIENCE) {
                self.stuck(position)?;
            }
            pause();
        }
    }

    /// Compares an item with the expected one.
    #[inline(always)]
    pub(crate) fn check(&self, got: u64, expected: u64) -> Result<(), Stop> {
        if got == expected { Ok(()) } else { Err(self.wrong(got, expected)) }
    }

    #[cold]
    #[inline(never)]
    fn wrong(&self, got: u64, expected: u64) -> Stop {
        self.board.stopped.store(true, Ordering::Relaxed);
        Stop::Wrong { expected, got }
    }

    fn finish(&self, failed: bool) {
        if failed {
            self.board.stopped.store(true, Ordering::Relaxed);
        }
        self.board.posts[self.me].done.store(true, Ordering::Release);
    }
}

/// The work of a thread.
pub(crate) type Work<R> = Box<dyn FnOnce(&mut Side) -> Result<R, Stop> + Send>;

/// How long a whole measurement may take beyond all bounds before its threads are abandoned. A contender may also hang
/// inside a call, where no thread of the bench can look for a hang.
const ABANDON: Duration = Duration::from_secs(60);

/// Runs each piece of work in a thread of its own on its CPU. Returns the results and the times.
///
/// # Errors
/// The gravest reason: first a wrong item, then a hang.
pub(crate) fn run<R: Send + 'static>(
    setting: &Setting,
    work: Vec<(Option<Cpu>, Work<R>)>,
) -> Result<(Vec<R>, Took), Stop> {
    let (bound, counting) = (setting.bound, setting.counting);
    let threads = work.len();
    let board = Arc::new(Board {
        gate: Gate { threads, arrived: AtomicUsize::new(0) },
        posts: (0..threads).map(|_| Post::default()).collect(),
        stopped: AtomicBool::new(false),
        start: Instant::now(),
        bound,
    });
    let (report, reports) = mpsc::channel();
    let mut handles = Vec::new();
    for (me, (cpu, work)) in work.into_iter().enumerate() {
        let mut side = Side { me, board: board.clone(), lap: None, took: None, counters: None };
        let report = report.clone();
        handles.push(thread::spawn(move || {
            if let Some(cpu) = cpu {
                topology::pin(cpu);
            }
            side.counters = counting.then(Counters::open);
            let result = work(&mut side);
            side.finish(result.is_err());
            let _ = report.send((me, result, side.took));
        }));
    }
    drop(report);
    let mut results: Vec<_> = (0..threads).map(|_| None).collect();
    let mut laps = Vec::new();
    let mut stop: Option<Stop> = None;
    for _ in 0..threads {
        match reports.recv_timeout(ABANDON + bound) {
            Ok((me, Ok(result), took)) => {
                results[me] = Some(result);
                laps.extend(took);
            }
            Ok((_, Err(reason), _)) => {
                let weight = |stop: &Stop| match stop {
                    Stop::Elsewhere => 0,
                    Stop::Hangs(_) => 1,
                    _ => 2,
                };
                if stop.as_ref().is_none_or(|stop| weight(stop) < weight(&reason)) {
                    stop = Some(reason);
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                board.stopped.store(true, Ordering::Relaxed);
                // The threads stay behind, asleep or spinning in a call that does not return.
                return Err(stop.unwrap_or(Stop::Hangs(ABANDON)));
            }
            // A thread has panicked. The joins below pass its panic on.
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    for handle in handles {
        if let Err(panic) = handle.join() {
            std::panic::resume_unwind(panic);
        }
    }
    match stop {
        Some(reason) => Err(reason),
        None => {
            let results = results.into_iter().map(|result| result.expect("no thread has stopped")).collect();
            Ok((results, Took::of(&laps)))
        }
    }
}

/// The rate of [`ticks`] in Hz, measured once against the system's clock.
pub(crate) fn tick_rate() -> f64 {
    use std::sync::OnceLock;
    static RATE: OnceLock<f64> = OnceLock::new();
    // Reads both clocks several times, and keeps the reading with the shortest time between its two tick counts: a
    // thread may be stopped between the clocks.
    let look = || {
        let looks = (0..10).map(|_| {
            let before = ticks();
            let now = Instant::now();
            (ticks() - before, before, now)
        });
        let (_, ticks, now) = looks.min_by_key(|look| look.0).expect("ten looks");
        (ticks, now)
    };
    *RATE.get_or_init(|| {
        let (first, start) = look();
        while start.elapsed() < Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        let (last, end) = look();
        (last - first) as f64 / (end - start).as_secs_f64()
    })
}
