//! How a thread waits for a queue.
//!
//! A [`Strategy`] says what to do between two looks at the queue; it is a type parameter of the handles, so a queue that only
//! spins carries no code for parking.
//!
//! | strategy | between two looks | burns a core | choose it when |
//! |---|---|---|---|
//! | [`Adaptive`] | spins for at most 2 µs, then parks; parks at once on a machine with one CPU | no | unsure: it is the default |
//! | [`Spin`] | one pause instruction | yes | each side owns a core and nanoseconds count |
//! | [`Yield`] | lets other threads run | yes | more threads than cores, and waits are short |
//! | [`SpinPark`] | a number of pauses, then parks | no | the time between items is known |
//! | [`Park`] | parks at once | no | waits are long |
//!
//! A thread parks on a [`Parker`]. Every end of a queue has one; several ends may share one, so that a thread that serves
//! many queues sleeps once for all of them ([`any`]).
//!
//! # The park protocol
//!
//! Each end has a state word that only matters when it is not zero. To park, an end
//! 1. sets the flag `PARKED` in its own word,
//! 2. passes the heavy half of an asymmetric barrier (membarrier on Linux),
//! 3. looks at the queue once more, and
//! 4. if there is still nothing to do sleeps on its parker.
//!
//! The other end, after every publication (an item, or free slots),
//! 1. has stored the publication,
//! 2. passes the light half of the barrier, which is no instruction at all,
//! 3. reads the word, and if the flag is up takes it down and wakes the parker.
//!
//! Either the look of step 3 sees the publication or the read sees the flag, so no wake-up is lost; who parks pays, and the
//! fast path holds neither a fence nor a read-modify-write. Without membarrier no park lasts longer than 1 ms.
//!
//! A task waits by the same protocol, with its waker in the parker's place: see `spsc::asynchronous` (feature `async`).

#[cfg(feature = "std")]
mod parker;
#[cfg(feature = "async")]
mod waker;

#[cfg(feature = "std")]
pub use parker::Parker;
#[cfg(all(feature = "std", target_has_atomic = "64"))]
pub(crate) use parker::Token;
#[cfg(feature = "async")]
pub(crate) use waker::WakerCell;

use crate::sync;
use core::fmt::Debug;
#[cfg(feature = "std")]
use std::time::{Duration, Instant};

/// What a waiting thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Look at the queue again.
    Look,
    /// Sleep until the other end says that something changed.
    #[cfg(feature = "std")]
    Park,
}

/// One wait, from the first look that found nothing to the park or the success that ends it.
#[derive(Debug, Default)]
pub struct Spell {
    looks: u32,
    #[cfg(feature = "std")]
    since: Option<Instant>,
}

impl Spell {
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
pub trait Strategy: Clone + Debug + Send + 'static {
    /// Spends the time until the next look, or says that the thread should park.
    fn next(&self, spell: &mut Spell) -> Next;
}

/// Busy-waits with the CPU's pause instruction. The lowest latency; a waiting thread uses its whole core, and two threads
/// on one core hand over once per scheduler slice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl Strategy for Spin {
    #[inline]
    fn next(&self, _: &mut Spell) -> Next {
        sync::spin_loop();
        Next::Look
    }
}

/// Yields to the scheduler between looks, after a few pauses.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Yield;

#[cfg(feature = "std")]
impl Strategy for Yield {
    fn next(&self, spell: &mut Spell) -> Next {
        if spell.count() <= 32 {
            sync::spin_loop();
        } else {
            sync::yield_now();
        }
        Next::Look
    }
}

/// Parks at once.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Park;

#[cfg(feature = "std")]
impl Strategy for Park {
    fn next(&self, _: &mut Spell) -> Next {
        Next::Park
    }
}

/// Spins for a fixed number of looks, then parks.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct SpinPark {
    /// Looks before the park.
    pub looks: u32,
}

#[cfg(feature = "std")]
impl Default for SpinPark {
    fn default() -> Self {
        Self { looks: 200 }
    }
}

#[cfg(feature = "std")]
impl Strategy for SpinPark {
    fn next(&self, spell: &mut Spell) -> Next {
        if spell.count() > self.looks {
            return Next::Park;
        }
        sync::spin_loop();
        Next::Look
    }
}

/// Spins for at most 2 µs, then parks; on a machine with one CPU it parks at once, since the other end cannot run while this
/// one spins. The default.
///
/// Two microseconds are about what a park and a wake-up cost: a wait that is shorter is better spun away, and a wait that
/// is longer has at most doubled.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Adaptive;

#[cfg(feature = "std")]
impl Adaptive {
    /// The longest time it spins.
    pub const SPIN: Duration = Duration::from_micros(2);
    /// Looks between two looks at the clock, which costs as much as several of them.
    const LOOKS_PER_CLOCK: u32 = 8;
}

#[cfg(feature = "std")]
impl Strategy for Adaptive {
    fn next(&self, spell: &mut Spell) -> Next {
        if cfg!(any(loom, shuttle)) || has_one_cpu() {
            return Next::Park;
        }
        if spell.count().is_multiple_of(Self::LOOKS_PER_CLOCK) {
            let now = Instant::now();
            let since = *spell.since.get_or_insert(now);
            if now - since >= Self::SPIN {
                return Next::Park;
            }
        }
        sync::spin_loop();
        Next::Look
    }
}

/// True on a machine with one CPU. Asked once: the answer costs system calls.
#[cfg(feature = "std")]
pub(crate) fn has_one_cpu() -> bool {
    use std::sync::OnceLock;
    static ONE: OnceLock<bool> = OnceLock::new();
    *ONE.get_or_init(machine_has_one_cpu)
}

/// Asks for the CPUs of the machine, not for those on which somebody may run. Of a thread that would be wrong, as it may be
/// pinned and the other end's elsewhere; of the process nobody can tell, as on Linux each thread has a mask of its own, which
/// `available_parallelism` reads (and so does `sysconf`, with some C libraries). A process that really is kept to one CPU of many
/// loses at most [`Adaptive::SPIN`] a wait. Quotas do not matter: while one lasts the threads run side by side.
#[cfg(feature = "std")]
fn machine_has_one_cpu() -> bool {
    if cfg!(any(target_os = "linux", target_os = "android")) {
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

/// An end of a queue that a thread can wait for together with others: every producer and consumer of this crate.
///
/// A producer is ready when it has a free slot, a consumer when it has an item, and both when the queue is closed: take a
/// closed queue out of the set once it is drained, or no wait will last.
#[cfg(feature = "std")]
pub trait Waitable {
    #[doc(hidden)]
    fn ready(&mut self) -> bool;
    #[doc(hidden)]
    fn arm(&self);
    #[doc(hidden)]
    fn disarm(&self);
    #[doc(hidden)]
    fn parker(&self) -> &Parker;
}

#[cfg(feature = "std")]
impl<E: Waitable + ?Sized> Waitable for &mut E {
    fn ready(&mut self) -> bool {
        (**self).ready()
    }

    fn arm(&self) {
        (**self).arm();
    }

    fn disarm(&self) {
        (**self).disarm();
    }

    fn parker(&self) -> &Parker {
        (**self).parker()
    }
}

/// Waits until one of the ends is ready and returns the index of the first that is; `None` when the time is up first.
///
/// The thread sleeps once for all of them: they must share one [`Parker`]. Ends of different queues mix as
/// `&mut dyn Waitable`.
///
/// # Panics
/// If an end has another parker than the first: its wake-ups would be missed. If there is no end and no timeout.
#[cfg(feature = "std")]
pub fn any<E: Waitable, S: Strategy>(ends: &mut [E], strategy: &S, timeout: Option<Duration>) -> Option<usize> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let parker = match ends.first() {
        Some(first) => first.parker().clone(),
        None => {
            assert!(deadline.is_some(), "a wait for no queue and without a time would never end");
            Parker::new()
        }
    };
    assert!(ends.iter().all(|end| end.parker().is(&parker)), "the ends of one wait must share one parker");
    let mut spell = Spell::new();
    loop {
        let ready = ends.iter_mut().position(E::ready);
        if ready.is_some() || deadline.is_some_and(|at| Instant::now() >= at) {
            return ready;
        }
        if strategy.next(&mut spell) == Next::Park {
            ends.iter().for_each(E::arm);
            let ready = ends.iter_mut().position(E::ready);
            if ready.is_none() {
                parker.park(deadline);
            }
            ends.iter().for_each(E::disarm);
            if ready.is_some() {
                return ready;
            }
            spell = Spell::new();
        }
    }
}

/// The strategy of handles that name none: [`Adaptive`] with `std`, [`Spin`] without.
#[cfg(feature = "std")]
pub type DefaultStrategy = Adaptive;
/// The strategy of handles that name none: [`Adaptive`] with `std`, [`Spin`] without.
#[cfg(not(feature = "std"))]
pub type DefaultStrategy = Spin;

#[cfg(all(test, feature = "std", target_os = "linux", not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn one_cpu_is_told_from_several() {
        assert!(["0\n", "12\n", "3"].into_iter().all(names_one_cpu));
        assert!(!["0-1\n", "0,5\n", "0-3,5\n", "\n", ""].into_iter().any(names_one_cpu));
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
            (machine_has_one_cpu(), Adaptive.next(&mut Spell::new()))
        });
        assert_eq!(pinned.join().unwrap(), (false, Next::Look));
    }
}
