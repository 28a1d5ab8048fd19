//! How a thread waits for a queue: a [`Strategy`] says what to do between two looks at the queue.
//!
//! It is a type parameter of the handles, so a queue that only spins carries no code for parking.
//!
//! | strategy | between two looks | burns a core | choose it when |
//! |---|---|---|---|
//! | [`Adaptive`] | spins and yields for 2 µs, or 10 where waits are short, then parks | no | unsure |
//! | [`Spin`] | one pause instruction | yes | each side owns a core and nanoseconds count |
//! | [`Yield`] | lets other threads run | yes | more threads than cores, and waits are short |
//! | [`SpinPark`] | a number of pauses, then parks | no | the time between items is known |
//! | [`Park`] | parks at once | no | waits are long |
//!
//! Handles that name no strategy have [`Adaptive`], in every build. Without the feature `std` it spins, and the three
//! that need a system (`Yield`, `SpinPark`, `Park`) are not there. On `wasm32-unknown-unknown` there is `std` and no
//! clock: `Adaptive` does what `SpinPark` does, a timed call is over as soon as it would wait, and any other call that
//! has to sleep panics in the standard library where that has no threads.
//!
//! A thread that serves many queues waits for the first that is ready with a [`Select`], and sleeps once for all of
//! them.
//!
//! # Promises
//!
//! - **No wake-up is lost**, by the park protocol below.
//! - **The end that parks pays for the barrier.** The other end's fast path holds neither a fence nor a
//!   read-modify-write. It makes a system call only to wake an end that is parked.
//! - **Without membarrier no park lasts longer than 1 ms**, and a task that waits is polled once more after so long.
//!   The same holds from the moment on at which a sandbox refuses it.
//!
//! # The park protocol
//!
//! Each end has a state word that only matters when it is not zero. To park, an end
//! 1. says where its thread sleeps, and sets the flag `PARKED` in its own word,
//! 2. executes the heavy half of an asymmetric barrier (membarrier on Linux),
//! 3. looks at the queue once more, and
//! 4. if there is still nothing to do sleeps there.
//!
//! The other end, after every publication (an item, or free slots),
//! 1. has stored the publication,
//! 2. passes the light half of the barrier, which is no instruction at all,
//! 3. reads the word, and if the flag is up takes it down and wakes the sleeper.
//!
//! Either the look of step 3 sees the publication or the read sees the flag, so no wake-up is lost.
//!
//! A task waits by the same protocol, with its waker in the sleeper's place: see `spsc::asynchronous` (feature
//! `async`).
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | this file | strategies |
//! | `sleeper.rs`, `waker.rs` | where a thread sleeps, in every family, and what wakes it; where a waker lies |
//! | `select.rs`, `poll.rs` | the first of many ends that is ready; file descriptors among them |
//! | `late.rs` | what a thread that comes late to wake another may still use |
//! | `selectable.rs` | what an end offers to a select |
//! | `timer.rs` | one more look for a task, where there is no membarrier |

#[cfg(all(feature = "std", any(corelane_loom, all(target_os = "linux", not(corelane_shuttle)))))]
#[allow(unreachable_pub, missing_docs, missing_debug_implementations, reason = "public in models alone")]
mod late;
#[cfg(all(feature = "std", target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
mod poll;
#[cfg(feature = "std")]
mod select;
#[cfg(feature = "std")]
pub(crate) mod selectable;
#[cfg(feature = "std")]
mod sleeper;
#[cfg(feature = "async")]
mod timer;
#[cfg(feature = "async")]
mod waker;

#[cfg(all(feature = "std", corelane_loom))]
#[doc(hidden)]
pub use late::Late;
#[cfg(feature = "std")]
pub use select::{Key, Ready, Select};
#[cfg(all(feature = "std", target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
pub use select::{Readable, Writable};
#[cfg(feature = "std")]
pub use selectable::Selectable;
#[cfg(feature = "std")]
pub(crate) use sleeper::{Own, Sleeper, SleeperCell, Token};
#[cfg(feature = "async")]
pub(crate) use timer::Doubt;
#[cfg(feature = "async")]
pub(crate) use waker::{WakerCell, wake_quietly};

use crate::sync;
use crate::sync::Instant;
#[cfg(feature = "std")]
use core::cell::Cell;
use core::fmt::Debug;
#[cfg(feature = "std")]
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};
use core::time::Duration;

/// After the heavy half of the barrier, for an end that then looks for the last time. Where there is no membarrier a
/// publisher may overlook what that end has written. Then this waits until what such a publisher has published is to be
/// seen, and returns true.
pub(crate) fn outwait_publishers() -> bool {
    let overlooked = sync::parks_are_bounded();
    #[cfg(corelane_loom)]
    sync::outwait();
    #[cfg(all(feature = "std", not(any(corelane_loom, corelane_shuttle))))]
    if overlooked {
        std::thread::sleep(sleeper::BOUND);
    }
    overlooked
}

/// What a waiting thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// Look at the queue again.
    Retry,
    /// Sleep until the other end says that something changed. Without `std` there is nothing to sleep on: the thread
    /// makes one pause and goes on looking.
    Park,
}

/// One wait, from the first look that found nothing to the park or the success that ends it.
///
/// ```
/// use corelane::wait::{Next, Spin, Strategy, WaitState};
///
/// let mut wait = WaitState::new();
/// assert_eq!((wait.count(), wait.count()), (1, 2));
/// assert_eq!(Spin.next(&mut wait), Next::Retry);
/// ```
#[derive(Debug, Default)]
pub struct WaitState {
    looks: u32,
    /// When the present slice of spinning began.
    since: Option<Instant>,
    /// CPU time that this wait has used.
    used: Duration,
    /// CPU time that this wait may use.
    budget: Duration,
    /// Another thread ran when this one last yielded.
    crowded: bool,
}

impl WaitState {
    /// A wait that begins now.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often the strategy has been asked in this wait, this time included. Stays at `u32::MAX` once there.
    pub fn count(&mut self) -> u32 {
        self.looks = self.looks.saturating_add(1);
        self.looks
    }
}

/// What to do between two looks at a queue that has nothing to give.
///
/// ```
/// use corelane::spsc::{Options, lane};
/// use corelane::wait::{Next, Strategy, WaitState};
///
/// /// Looks a thousand times in a row, and then sleeps.
/// #[derive(Clone, Debug)]
/// struct Patient;
///
/// impl Strategy for Patient {
///     fn next(&self, wait: &mut WaitState) -> Next {
///         if wait.count() < 1000 { Next::Retry } else { Next::Park }
///     }
/// }
///
/// let (mut producer, mut consumer) = lane::channel_with(8, Options::new().wait(Patient)).unwrap();
/// producer.push(7).unwrap();
/// assert_eq!(consumer.pop(), Ok(7));
/// ```
pub trait Strategy: Clone + Debug + Send + 'static {
    /// Whether it ever says [`Next::Park`].
    ///
    /// A wake-up costs a system call only where threads park. So a [dispatcher](crate::dispatch::Dispatcher::dispatch)
    /// waits for more room at a time with a strategy that parks than with one that does not.
    const PARKS: bool = true;

    /// Spends the time until the next look, or says that the thread should park.
    fn next(&self, state: &mut WaitState) -> Next;
}

/// Busy-waits with the CPU's pause instruction. The lowest latency; a waiting thread uses its whole core, and two
/// threads on one core hand over once per scheduler slice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl Strategy for Spin {
    const PARKS: bool = false;

    #[inline]
    fn next(&self, _: &mut WaitState) -> Next {
        sync::spin_loop();
        Next::Retry
    }
}

/// Yields to the scheduler between looks, after a few pauses: for more threads than CPUs, where a pause keeps the
/// others waiting.
// 8 pauses, not more: with 32 an exchange between two near CPUs took six times as long (`docs/benchmarks.md`).
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Yield;

#[cfg(feature = "std")]
impl Strategy for Yield {
    const PARKS: bool = false;

    fn next(&self, state: &mut WaitState) -> Next {
        if state.count() <= 8 {
            sync::spin_loop();
        } else {
            sync::yield_now();
        }
        Next::Retry
    }
}

/// Parks at once.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Park;

#[cfg(feature = "std")]
impl Strategy for Park {
    fn next(&self, _: &mut WaitState) -> Next {
        Next::Park
    }
}

/// Spins for a fixed number of looks, 200 unless [`new`](Self::new) is told another, then parks.
///
/// ```
/// use corelane::wait::{Next, SpinPark, Strategy, WaitState};
///
/// let (strategy, mut wait) = (SpinPark::new(1), WaitState::new());
/// assert_eq!(strategy.next(&mut wait), Next::Retry);
/// assert_eq!(strategy.next(&mut wait), Next::Park);
/// ```
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct SpinPark {
    looks: u32,
}

#[cfg(feature = "std")]
impl SpinPark {
    /// Looks so often, with a pause after each, before it parks; with 0 it parks at once. The [default](Default) is
    /// 200.
    pub const fn new(looks: u32) -> Self {
        Self { looks }
    }
}

#[cfg(feature = "std")]
impl Default for SpinPark {
    fn default() -> Self {
        Self::new(200)
    }
}

#[cfg(feature = "std")]
impl Strategy for SpinPark {
    fn next(&self, state: &mut WaitState) -> Next {
        if state.count() > self.looks {
            return Next::Park;
        }
        sync::spin_loop();
        Next::Retry
    }
}

/// Spins, yields, and parks: at most 2 µs of CPU time, or 10 µs in waits that follow each other closely, then it
/// sleeps. The default.
///
/// **How long it spins.** A park and a wake-up cost about two microseconds, and ten and more where the CPU goes idle
/// meanwhile and belongs to a virtual machine. So a shorter wait is better spun away, and a longer one has at most
/// doubled. The last wait tells which of the two the next one will be.
///
/// - If the last wait began less than 10 µs ago, a thread that parked each time would be busy with nothing but parking.
///   It may as well spin that long, and see the item at once.
/// - Otherwise it spins for 2 µs, which costs what parking costs.
///
/// **When it yields.** Up to a microsecond the other end may be running on another CPU, and is back before anything
/// else could be done. After that the thread yields, and again after each further microsecond. Where there are more
/// threads than CPUs the other end may be waiting for this CPU, and a switch to a thread that is ready costs a tenth of
/// a sleep and a wake-up. If that has not helped, the thread parks. On a machine with one CPU it yields at once.
///
/// **When it does not yield.** A thread that yields to one that computes for long comes back late, where one that
/// sleeps is run soon after it is woken. So after 100 µs away it does not yield in its next wait, after the second time
/// in three waits, and so on up to 4,095.
///
/// Each time that yielding helps takes one doubling back. It helps when what the thread waits for comes while another
/// thread has the CPU, and the thread is back in time. It takes only one back, because a single success proves little:
/// a thread that computes is now and then back by chance.
/// Without `std` there is neither a clock nor anything to sleep on: then it does what [`Spin`] does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adaptive;

impl Adaptive {
    /// The CPU time that it uses before it parks.
    pub const SPIN: Duration = Duration::from_micros(2);
    /// The CPU time that it uses before it parks, if its last wait began no longer ago.
    pub const LONG_SPIN: Duration = Duration::from_micros(10);
}

#[cfg(feature = "std")]
impl Adaptive {
    /// It spins as long before it yields.
    const SLICE: Duration = Duration::from_micros(1);
    /// Looks between two looks at the clock, which costs as much as several of them.
    const LOOKS_PER_CLOCK: u32 = 8;
    /// The cost of a switch to another thread.
    const SWITCH: Duration = Duration::from_nanos(400);
    /// A thread that was away for so long is better woken.
    const TOO_LONG: Duration = Duration::from_micros(100);

    /// A look at the clock: spins on, yields, or ends the part of the wait that is awake.
    fn turn(state: &mut WaitState) -> Next {
        let now = Instant::now();
        let mut learnt = LEARNT.get();
        let since = *state.since.get_or_insert_with(|| {
            state.budget = learnt.begin(now);
            now
        });
        learnt.hopes = false;
        LEARNT.set(learnt);
        let slice = match learnt.waits {
            _ if state.crowded || has_one_cpu() => Duration::ZERO,
            0 => Self::SLICE,
            _ => Self::SPIN,
        };
        if now - since < slice {
            sync::spin_loop();
            return Next::Retry;
        }
        if learnt.waits > 0 {
            learnt.waits -= 1;
            LEARNT.set(learnt);
            return Next::Park;
        }
        state.used += now - since;
        if state.used >= state.budget {
            return Next::Park;
        }
        sync::yield_now();
        let back = Instant::now();
        state.since = Some(back);
        let away = back - now;
        state.crowded = learnt.was_away(away);
        LEARNT.set(learnt);
        state.used += if state.crowded { Self::SWITCH } else { away };
        if !state.crowded && has_one_cpu() {
            // No other thread is ready: the other end sleeps, or waits for a device.
            return Next::Park;
        }
        Next::Retry
    }
}

#[cfg(not(feature = "std"))]
impl Strategy for Adaptive {
    const PARKS: bool = false;

    #[inline]
    fn next(&self, state: &mut WaitState) -> Next {
        Spin.next(state)
    }
}

#[cfg(feature = "std")]
impl Strategy for Adaptive {
    fn next(&self, state: &mut WaitState) -> Next {
        if cfg!(any(corelane_loom, corelane_shuttle)) {
            return Next::Park;
        }
        if !sync::HAS_CLOCK {
            return SpinPark::default().next(state);
        }
        if !state.count().is_multiple_of(Self::LOOKS_PER_CLOCK) && !state.crowded && !has_one_cpu() {
            sync::spin_loop();
            return Next::Retry;
        }
        Self::turn(state)
    }
}

/// What a thread has learnt from its waits.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Learnt {
    /// When the last wait began that was long enough for a look at the clock.
    began: Option<Instant>,
    /// The shortest time away so far, which is the cost of yielding when no other thread is ready; at most
    /// [`ALONE`](Self::ALONE).
    shortest: Duration,
    /// How often it was away too long, less how often yielding helped, up to [`MOST`](Self::MOST).
    times: u32,
    /// In how many waits to come it does not yield.
    waits: u32,
    /// It was away, not too long, and has yet to see what for: some kernels give it the CPU back at once beside a
    /// thread that computes.
    hopes: bool,
}

#[cfg(feature = "std")]
impl Learnt {
    const NOTHING: Self = Self { began: None, shortest: Self::ALONE, times: 0, waits: 0, hopes: false };
    const MOST: u32 = 12;
    /// What yielding costs at most when no other thread is ready: in a virtual machine, which looks for interrupts on
    /// the way; elsewhere less than half.
    const ALONE: Duration = Duration::from_nanos(500);

    /// A wait begins: so the last one ended well if it still hoped. Returns the CPU time for this one.
    fn begin(&mut self, now: Instant) -> Duration {
        if self.hopes {
            self.times = self.times.saturating_sub(1);
        }
        let last = self.began.replace(now);
        let is_often = last.is_some_and(|last| now - last < Adaptive::LONG_SPIN);
        if is_often { Adaptive::LONG_SPIN } else { Adaptive::SPIN }
    }

    /// It yielded, and was away so long. Returns whether another thread ran meanwhile.
    fn was_away(&mut self, away: Duration) -> bool {
        self.shortest = self.shortest.min(away);
        let was_crowded = away >= 2 * self.shortest;
        if away >= Adaptive::TOO_LONG {
            self.times = (self.times + 1).min(Self::MOST);
            self.waits = (1 << self.times) - 1;
        } else {
            self.hopes = was_crowded;
        }
        was_crowded
    }
}

#[cfg(feature = "std")]
std::thread_local! {
    static LEARNT: Cell<Learnt> = const { Cell::new(Learnt::NOTHING) };
}

/// True on a machine with one CPU. Asked once: the answer costs system calls.
#[cfg(feature = "std")]
pub(crate) fn has_one_cpu() -> bool {
    /// No thread waits for another's first ask: each asks until one has the answer.
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    const UNKNOWN: u8 = 0;
    const ONE: u8 = 1;
    const SEVERAL: u8 = 2;
    match KNOWN.load(Relaxed) {
        UNKNOWN => {
            let one = machine_has_one_cpu();
            KNOWN.store(if one { ONE } else { SEVERAL }, Relaxed);
            one
        }
        known => known == ONE,
    }
}

/// Asks for the CPUs of the machine, not for those on which a thread or the process may run.
///
/// - A thread's CPUs would be wrong, as it may be pinned and the other end's thread elsewhere.
/// - The process's CPUs cannot be told. On Linux each thread has a mask of its own, which `available_parallelism` reads
///   (and so does `sysconf`, with some C libraries).
///
/// A process that really is kept to one CPU of many loses at most [`Adaptive::SPIN`] a wait. Quotas do not matter:
/// while one lasts the threads run side by side.
#[cfg(feature = "std")]
fn machine_has_one_cpu() -> bool {
    if cfg!(miri) {
        // It runs one thread at a time.
        true
    } else if cfg!(any(target_os = "linux", target_os = "android")) {
        // Where it is not shown: spinning in vain costs less than never spinning.
        std::fs::read_to_string("/sys/devices/system/cpu/online").is_ok_and(|list| names_one_cpu(&list))
    } else {
        std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1)
    }
}

/// Whether a list of CPUs such as `0-3,5` has one only.
#[cfg(feature = "std")]
fn names_one_cpu(list: &str) -> bool {
    list.trim_end().parse::<u32>().is_ok()
}

#[cfg(all(test, feature = "std", target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn one_cpu_is_told_from_several() {
        assert!(["0\n", "12\n", "3"].into_iter().all(names_one_cpu));
        assert!(!["0-1\n", "0,5\n", "0-3,5\n", "\n", ""].into_iter().any(names_one_cpu));
    }

    const ALONE: Duration = Learnt::ALONE;

    #[test]
    fn who_was_away_too_long_gives_way_less_and_less() {
        let mut learnt = Learnt::NOTHING;
        for waits in [1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 2047, 4095, 4095] {
            assert!(learnt.was_away(Adaptive::TOO_LONG));
            assert_eq!((learnt.waits, learnt.hopes), (waits, false));
        }
    }

    #[test]
    fn giving_way_that_helped_takes_one_doubling_back() {
        let mut learnt = Learnt { times: 5, ..Learnt::NOTHING };
        assert!(learnt.was_away(10 * ALONE) && learnt.hopes);
        let in_vain = Learnt { hopes: false, ..learnt };
        for (mut learnt, times) in [(learnt, 4), (in_vain, 5)] {
            learnt.begin(Instant::now());
            assert_eq!(learnt.times, times);
            learnt.was_away(Adaptive::TOO_LONG);
            assert_eq!(learnt.waits, (1 << (times + 1)) - 1);
        }
    }

    #[test]
    fn who_was_away_for_short_was_alone() {
        let mut learnt = Learnt::NOTHING;
        assert!(!learnt.was_away(2 * ALONE - Duration::from_nanos(1)) && !learnt.hopes);
        assert!(learnt.was_away(2 * ALONE) && learnt.hopes);
        // Where it costs less, less is enough.
        assert!(!learnt.was_away(ALONE / 3) && !learnt.hopes);
        assert!(learnt.was_away(ALONE) && learnt.hopes);
    }

    #[test]
    fn a_wait_that_follows_closely_may_be_awake_for_longer() {
        let mut learnt = Learnt::NOTHING;
        let first = Instant::now();
        let second = first + Adaptive::LONG_SPIN - Duration::from_nanos(1);
        let third = second + Adaptive::LONG_SPIN;
        let budgets = [first, second, third].map(|now| learnt.begin(now));
        assert_eq!(budgets, [Adaptive::SPIN, Adaptive::LONG_SPIN, Adaptive::SPIN]);
    }

    /// Asks the strategy until it says park, and returns the CPU time that took.
    fn cpu_time_of_a_wait() -> Duration {
        let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut now = || {
            // SAFETY: the call writes to the timespec only.
            assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut used) }, 0);
            Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
        };
        let start = now();
        let mut state = WaitState::new();
        while Adaptive.next(&mut state) == Next::Retry {}
        now() - start
    }

    #[test]
    fn a_wait_in_vain_uses_little_of_the_cpu() {
        // Alone, and beside threads that want the CPU all the time.
        for rivals in [0, 2] {
            let over = std::sync::atomic::AtomicBool::new(false);
            let cpu = core_affinity::get_core_ids().unwrap_or_default().into_iter().next();
            let pin = || cpu.is_some_and(core_affinity::set_for_current);
            let mut times = std::thread::scope(|scope| {
                for _ in 0..rivals {
                    scope.spawn(|| {
                        pin();
                        while !over.load(std::sync::atomic::Ordering::Relaxed) {
                            core::hint::spin_loop();
                        }
                    });
                }
                let waits = scope.spawn(|| {
                    pin();
                    (0..101).map(|_| cpu_time_of_a_wait()).collect::<std::vec::Vec<_>>()
                });
                let times = waits.join().unwrap();
                over.store(true, std::sync::atomic::Ordering::Relaxed);
                times
            });
            times.sort();
            // An interrupt may fall into one of them; in half of them there is none.
            assert!(times[50] < 4 * Adaptive::LONG_SPIN, "{rivals} rivals: {times:?}");
        }
    }

    #[test]
    fn a_pinned_thread_sees_the_machine_and_spins() {
        let cpus = core_affinity::get_core_ids().unwrap_or_default();
        if cpus.len() < 2 {
            // Not through `eprintln!`, which a passing test swallows.
            let _ = writeln!(std::io::stderr(), "SKIPPED: one CPU is all there is to run on");
            return;
        }
        let pinned = std::thread::spawn(move || {
            assert!(core_affinity::set_for_current(cpus[0]));
            assert_eq!(std::thread::available_parallelism().map(usize::from).ok(), Some(1));
            (machine_has_one_cpu(), Adaptive.next(&mut WaitState::new()))
        });
        assert_eq!(pinned.join().unwrap(), (false, Next::Retry));
    }
}
