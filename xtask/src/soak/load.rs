//! Numbers, pauses, ways to wait, and items whose drops are counted.

use corelane::wait::{Adaptive, Next, Park, SpinPark, Strategy, WaitState, Yield};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Marsaglia's xorshift.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from)
    }

    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// Starts another sequence.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.below(u64::MAX >> 11))
    }

    /// A time of less than a third of a millisecond.
    pub(crate) fn moment(&mut self) -> Duration {
        Duration::from_nanos(self.below(300_000))
    }
}

/// The mood of a thread: it runs at full speed for a while, then slowly, then it sleeps.
pub(crate) struct Mood {
    pub(crate) random: Random,
    left: u64,
    kind: u64,
}

impl Mood {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, left: 0, kind: 0 }
    }

    /// A pause between two calls.
    pub(crate) fn pause(&mut self) {
        if self.left == 0 {
            self.kind = self.random.below(6);
            self.left = 1 + self.random.below(if self.kind == 5 { 8 } else { 3_000 });
        }
        self.left -= 1;
        match self.kind {
            0..3 => {}
            3 => (0..self.random.below(200)).for_each(|_| std::hint::spin_loop()),
            4 => {
                if self.random.below(16) == 0 {
                    std::thread::yield_now();
                }
            }
            _ => std::thread::sleep(Duration::from_micros(self.random.below(3_000))),
        }
    }
}

/// Every way to wait, in one type, so that each queue is compiled once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Adaptive,
    Park,
    SpinPark,
    Yield,
}

impl Way {
    pub(crate) const ALL: [Self; 5] = [Self::Adaptive, Self::Adaptive, Self::Park, Self::SpinPark, Self::Yield];
}

impl Strategy for Way {
    fn next(&self, state: &mut WaitState) -> Next {
        match self {
            Self::Adaptive => Adaptive.next(state),
            Self::Park => Park.next(state),
            Self::SpinPark => SpinPark::default().next(state),
            Self::Yield => Yield.next(state),
        }
    }
}

thread_local! {
    static DROPPED: Cell<u64> = const { Cell::new(0) };
}

/// An item that counts its drop. Each thread counts for itself: a shared count would order accesses that a queue should
/// order.
#[derive(Debug)]
pub(crate) struct Item(pub(crate) u64);

impl Drop for Item {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
    }
}

/// How many items this thread has dropped since the last call.
pub(crate) fn dropped() -> u64 {
    DROPPED.take()
}

/// Runs a timed call. One that fails must have waited its time.
#[track_caller]
pub(crate) fn timed<T, E>(
    time: Duration,
    call: impl FnOnce(Duration) -> Result<T, E>,
    timed_out: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let start = Instant::now();
    let outcome = call(time);
    if let Err(refusal) = &outcome
        && timed_out(refusal)
    {
        assert!(start.elapsed() >= time, "it gave up after {:?} of {time:?}", start.elapsed());
    }
    outcome
}
