//! MCRingBuffer with deadlock prevention method 3: a timer tells the producer to inject unused elements.
//!
//! Source: section 2.6, method 3, and section 5.3 of the B-Queue paper (Wang, Zhang, Tang, Hua), where this is
//! `MCRingBuffer(sane)` of Figure 12. The unused elements are those of section II-B2 of the MCRingBuffer paper.
//!
//! # How it works
//!
//! 1. An auxiliary thread ([`Timer`]) changes a global variable ([`Signal`]) every 10 microseconds.
//! 2. The producer looks at the variable before it inserts. If the variable has changed and elements are invisible, the
//!    producer injects unused elements until the batch is complete. If the ring becomes full before that, the producer
//!    continues at its next insertion.
//! 3. The consumer discards the unused elements.
//!
//! The ring below is [`mcring`], unchanged. An unused element is `None`, so that any element can be sent. With
//! `NonZero<usize>` that takes no more room than the element.
//!
//! Left open in print: how many elements are injected. The signal says "whether the queue needs a flush operation", and
//! within its period all elements of a queue are delivered. So here one signal publishes every inserted element. The
//! paper's variable is a flag that some thread must reset. Here it is a counter, so that one signal serves all queues
//! of a system.
//!
//! # The other methods of section 2.6
//!
//! Methods 1 and 2 are not built. In method 1 the auxiliary thread inserts by itself: then there are two producers, and
//! the ring is for one. In method 2 the timer interrupts the producer, which would have to be reentrant: a signal
//! handler that runs between the write of an element and the update of `nextWrite` would overwrite the element. The
//! paper makes the same objection to both. Method 4 is [`mcring_callback`](super::mcring_callback).
//!
//! # What differs from print, and why safety forces it
//!
//! Nothing beyond [`mcring`].
//!
//! # Synchronization
//!
//! That of [`mcring`]. The signal orders nothing: it is relaxed.
//!
//! # What hangs, and when
//!
//! The same cases hang as with the raw ring: two threads in a ring of two queues that have each inserted less than a
//! batch and poll. The timer goes on, but a thread that polls does not insert, and a thread that does not insert does
//! not look at the signal ("deadlock remains unsolved"). For the same reason the last elements of a stream stay
//! invisible until the producer inserts again, or [flushes](Producer::flush) by itself.

use super::slots::Line;
use super::{Dequeue, Enqueue, mcring};
use corelane::error::ChannelError;
use corelane::papers::{Arc, AtomicUsize};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

#[cfg(not(any(corelane_loom, corelane_shuttle)))]
pub use timer::Timer;

/// The global variable through which a timer informs producers.
#[derive(Clone)]
pub struct Signal(Arc<Line<AtomicUsize>>);

impl Signal {
    /// A signal that was never raised.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(Arc::new(Line(AtomicUsize::new(0))))
    }

    /// Asks every producer to flush before its next insertion.
    pub fn raise(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// How often the signal was raised.
    pub fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// Makes a ring of `max` slots, which holds up to `max - 1` elements, used and unused, and updates its indices every
/// `batch_size` elements.
///
/// # Errors
/// Those of [`mcring::channel`].
pub fn channel<T: Copy + Send>(
    max: usize,
    batch_size: usize,
    signal: &Signal,
) -> Result<(Producer<T>, Consumer<T>), ChannelError> {
    let (producer, consumer) = mcring::channel(max, batch_size)?;
    Ok((Producer { ring: producer, seen: signal.count(), signal: signal.clone() }, Consumer { ring: consumer }))
}

/// The end that inserts.
pub struct Producer<T> {
    ring: mcring::Producer<Option<T>>,
    /// The count of the signal at the last complete flush.
    seen: usize,
    signal: Signal,
}

/// The end that extracts.
pub struct Consumer<T> {
    ring: mcring::Consumer<Option<T>>,
}

impl<T: Copy + Send> Producer<T> {
    /// Injects unused elements until every inserted element is visible. False if the ring became full before that.
    pub fn flush(&mut self) -> bool {
        self.ring.inject_unused()
    }

    #[cold]
    #[inline(never)]
    fn answer(&mut self, count: usize) {
        if self.flush() {
            self.seen = count;
        }
    }
}

impl<T: Copy + Send> Enqueue<T> for Producer<T> {
    #[inline(always)]
    fn enqueue(&mut self, element: T) -> Result<(), T> {
        let count = self.signal.count();
        if count != self.seen {
            self.answer(count);
        }
        self.ring.enqueue(Some(element)).map_err(|_| element)
    }
}

impl<T: Copy + Send> Dequeue<T> for Consumer<T> {
    #[inline(always)]
    fn dequeue(&mut self) -> Option<T> {
        self.ring.discard_unused()
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Signal").field(&self.count()).finish()
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("ring", &self.ring).field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("ring", &self.ring).finish()
    }
}

#[cfg(not(any(corelane_loom, corelane_shuttle)))]
mod timer {
    use super::Signal;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread::{Builder, JoinHandle, sleep};
    use std::time::{Duration, Instant};

    /// The auxiliary thread. It ends when this value is dropped. Its wake-ups disturb other programs on the machine, so
    /// end it before the next measurement.
    #[derive(Debug)]
    pub struct Timer {
        signal: Signal,
        over: Arc<AtomicBool>,
        thread: Option<JoinHandle<()>>,
    }

    impl Timer {
        /// The period of section 5.3.
        pub const PAPER_PERIOD: Duration = Duration::from_micros(10);

        /// Starts a thread that raises a new signal once a period. The system may wake it less often: [`Signal::count`]
        /// tells how often it was raised.
        ///
        /// # Errors
        /// No thread can be started.
        pub fn start(period: Duration) -> io::Result<Self> {
            let signal = Signal::new();
            let over = Arc::new(AtomicBool::new(false));
            let (raised, is_over) = (signal.clone(), over.clone());
            let thread = Builder::new().name("mcring timer".into()).spawn(move || {
                wake_in_time();
                let mut next = Instant::now();
                while !is_over.load(Relaxed) {
                    next += period;
                    let now = Instant::now();
                    match next.checked_duration_since(now) {
                        Some(rest) => sleep(rest),
                        // The thread woke too late. Missed signals are not made up for.
                        None => next = now,
                    }
                    raised.raise();
                }
            })?;
            Ok(Self { signal, over, thread: Some(thread) })
        }

        /// The signal that this timer raises.
        pub fn signal(&self) -> &Signal {
            &self.signal
        }
    }

    impl Drop for Timer {
        fn drop(&mut self) {
            self.over.store(true, Relaxed);
            if let Some(thread) = self.thread.take() {
                // The thread does not panic.
                let _ = thread.join();
            }
        }
    }

    /// By default Linux wakes a thread up to 50 microseconds late, five of the paper's periods.
    fn wake_in_time() {
        #[cfg(target_os = "linux")]
        // SAFETY: this option takes a number and changes only the calling thread's timers. If the call fails, they stay
        // late.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        }
    }
}
