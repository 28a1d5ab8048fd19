//! Many producers, each with an order of its own, and no order between them: each [`Sender`] has a
//! [lane](crate::spsc::lane), and receivers take turns at the lanes. So producers never meet.
//!
//! ```
//! use corelane::mpmc::lanes;
//!
//! // For 1024 items of each sender.
//! let (mut sender, receiver) = lanes::channel(1024);
//! let workers = [(); 3].map(|()| {
//!     let mut receiver = receiver.clone();
//!     std::thread::spawn(move || receiver.iter().sum::<u64>())
//! });
//! for item in 1..=1000 {
//!     sender.push(item).expect("the workers are there");
//! }
//! drop((sender, receiver));
//! assert_eq!(workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u64>(), 500_500);
//! ```
//!
//! # Promises
//!
//! - **Order.** Items of one sender are popped in the order of their pushes.
//! - **`Empty`** says that each lane was empty at a moment of the call, each at its own. A [queue with one
//!   order](super#which-one) for all has one moment.
//! - **Progress of a push.** `try_push` is wait-free while no receiver sleeps. One that has a receiver to wake takes
//!   the lock of the list of sleepers for a few instructions, as does a pop.
//! - **Progress of a pop.** `try_pop` never waits for a lane or for the list of lanes: it passes over what another
//!   thread is in the middle of, and says `Busy` where it finds nothing else.
//! - **Stopped threads.** A receiver that is stopped in the middle of a pop keeps what is in that lane to itself, and
//!   nothing else. A thread that is stopped in the middle of a change of the list of lanes, which is a few instructions
//!   of a clone, holds up receivers that are about to sleep, beyond their time, too. `close` waits for receivers in the
//!   middle of a pop, but not for ever for receivers that pop again and again: it comes next at a lane after about a
//!   millisecond.
//! - **Memory.** A lane of the capacity for each sender, until the lane is drained and each receiver has come past it.
//!
//! # When to use it, and when not
//!
//! Use it where each producer's own order is enough, and there are several producers.
//!
//! - One producer has one lane, which several consumers only wrest from each other: take [`ticket`](super::ticket)
//!   there.
//! - Where consumers must see one order of all items, take [`ticket`](super::ticket) or [`scq`](super::scq).
//! - Where a consumer may be stopped for long in the middle of a pop, what is in that lane waits: take one of the two
//!   as well.
//!
//! # How it works
//!
//! Source: ours. A queue for each producer and no order between them is moodycamel's idea (`ConcurrentQueue`, in C++).
//! Its consumers share each queue by a fetch-and-add. Here a queue is a lane, which one consumer at a time has.
//!
//! 1. A sender is the producer of its own lane, and has its own capacity. A push costs what a push into a lane costs,
//!    and a look at a word. That word is written only when a receiver falls asleep or is woken.
//! 2. The other ends of all lanes, the outlets, have a small lock each. A receiver pops from the lane at which it
//!    stands, as long as it finds items there, for a turn of 64. Then it goes on to the next lane. It passes over a
//!    lane that another receiver is in the middle of. So receivers spread over the lanes, and one that finds nothing at
//!    its own steals from the others'.
//! 3. A clone of a sender makes a lane and puts its outlet into a list, under a lock of its own. Receivers have a copy
//!    of the list, which they renew between two turns if its version has changed. A lane whose sender is gone and that
//!    is drained leaves the list with the first receiver that comes past it.
//! 4. A receiver that is to sleep puts itself into the list of sleepers, executes the heavy half of the asymmetric
//!    barrier, and looks once more at every lane. It may sleep if each was free and empty: whatever comes after that
//!    finds it in the list.
//! 5. A lane that another receiver is in the middle of may hold more than that one takes. So two threads look for each
//!    other.
//!    - The look of step 4 raises a flag at each such outlet. Then the receiver executes the barrier once more, and
//!      looks whether one of those outlets has become free with the flag still up. If so, it looks at everything again.
//!    - The other receiver frees the lane, passes the light half of the barrier, and looks at the flag. If the flag is
//!      up, it enters the lane again, takes the flag down, and wakes a sleeper unless the lane is empty.
//!    - One of the two sees the other.
//!    - The other receiver may just have learnt that the lane is over: it frees the lane, and says so in another word.
//!      A receiver that finds that word takes the lane for over, and does not wait to be told of it.
//! 6. No waker runs under an outlet's lock: it may call the queue. A receiver whose pop, or close, is to wake the
//!    sender raises another flag beside that of step 5 instead, while it holds the lock. The next thread that leaves
//!    the lock with that flag up enters it again, takes the sender's sleeper, leaves, and wakes it.
//!    A close leaves each lane by the rules of steps 5 and 6, and keeps back no wake-up while it waits for the barrier
//!    or the next lane. It wakes senders for the close itself when all lanes are closed: a waker finds all of it so.
//! 7. One receiver is woken a change, however many items the change brought. A receiver that was woken looks again when
//!    its call ends, by the same rules, and wakes the next if there is still something.
//!
//! # Synchronization
//!
//! - An outlet's lock, store-release on leaving → compare-and-swap-acquire on entering: where the consumer's end
//!   stands, and the items that it takes.
//! - version, add-release (clone, under the list's lock) → load-acquire: the lane is in the list before a push to it
//!   can be known of.
//! - senders, sub-acquire-release (drop) → load-acquire before the look at the lanes: when there is no sender left all
//!   lanes are in the list, and closed. The same with the flag of a close.
//! - The list of sleepers, and an outlet's flag: by the asymmetric barrier, as said above.
//! - An outlet's flag, a read-modify-write-acquire-release on both sides: the thread that takes it down finds in the
//!   list of sleepers the receiver that has raised it, and at the lane what that receiver would have found.
//! - The flag for the sender: raised under the lock, and looked at by the same thread when it has left. A thread that
//!   takes it down holds the lock, and so comes after the pop or the close that raised it.
//! - A close raises the flags of all lanes, passes one barrier, and seals each lane after that: so each lane's
//!   close (`end/mod.rs`) has the barrier that it needs. Two threads that close do so side by side: the first in
//!   the lock seals, and each lane is sealed before either returns.
//! - Within a lane: see [`lane`](crate::spsc::lane).

use super::design::Stay;
use super::lock::{Guard, Lock, Pauses};
use super::queue::Options;
use super::sleepers::Sleepers;
use super::stats::NoStats;
use crate::end::wait::{Awaitable, wait_for};
use crate::end::{Control, ROOM};
use crate::error::{ChannelError, Closed, PopTimeoutError, PushTimeoutError, TryPopError, TryPushError, made};
use crate::items::{Items, Pops};
use crate::macros::debug;
use crate::mem::buffer::drop_while;
use crate::spsc::{self, Lane};
use crate::start::{START, START_32};
use crate::sync::{
    AcqRel, Acquire, Arc, AtomicBool, AtomicU32, AtomicUsize, Instant, Mutex, Padded, Relaxed, Release, heavy_barrier,
    load_after_store, pause,
};
use crate::wait::{Adaptive, Selectable, Sleeper, Strategy, selectable};
use alloc::vec::Vec;
use core::ops::DerefMut;
use std::time::Duration;

/// Items that a receiver takes from one lane, and the rest of its batch, before it is the next one's turn.
const TURN: usize = if cfg!(corelane_loom) { 1 } else { 64 };

/// The next receiver that leaves is to wake a sleeper for what it leaves behind.
const ITEM: u32 = 1;

type Producer<T, W> = spsc::Producer<T, Lane, W>;
type Consumer<T, W> = spsc::Consumer<T, Lane, W>;

/// The receivers' end of one lane.
struct Outlet<T: Send, W> {
    consumer: Lock<Consumer<T, W>>,
    /// What the next receiver that leaves the lock is to do: [`ITEM`], and [`ROOM`], to wake the sender.
    wanted: AtomicU32,
    /// The sender is gone and everything was popped.
    is_over: AtomicBool,
}

type Outlets<T, W> = Vec<Arc<Padded<Outlet<T, W>>>>;

/// The lanes that are not over.
struct List<T: Send, W> {
    outlets: Outlets<T, W>,
    /// None comes any more.
    is_closed: bool,
}

/// What all handles share.
struct Shared<T: Send, W> {
    list: Mutex<List<T, W>>,
    /// Counts the lanes that were added.
    version: Padded<AtomicUsize>,
    /// The receivers that sleep.
    sleepers: Padded<Sleepers>,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    /// Every lane is closed, and none comes any more.
    is_closed: AtomicBool,
    /// Of a lane.
    capacity: usize,
    /// Where a lane's positions start.
    start: usize,
}

/// Makes a queue for `capacity` items of each sender with the defaults, and a handle for each side.
///
/// ```
/// let (mut sender, mut receiver) = corelane::mpmc::lanes::channel(8);
/// sender.push(1).unwrap();
/// assert_eq!(receiver.pop(), Ok(1));
/// ```
///
/// # Panics
/// Where [`try_channel`] returns an error.
#[track_caller]
pub fn channel<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    made(try_channel(capacity))
}

/// Makes a queue for `capacity` items of each sender with the defaults, and a handle for each side.
///
/// ```
/// let (mut sender, mut receiver) = corelane::mpmc::lanes::try_channel(8)?;
/// sender.push(1).unwrap();
/// assert_eq!(receiver.pop(), Ok(1));
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
///
/// # Errors
/// A capacity of 0 or beyond what positions hold, or no memory.
pub fn try_channel<T: Send>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), ChannelError> {
    channel_with(capacity, Options::default())
}

/// Makes a queue for `capacity` items of each sender, and a handle for each side.
///
/// ```
/// use corelane::mpmc::{Options, lanes};
/// use corelane::wait::Yield;
///
/// let (mut sender, mut receiver) = lanes::channel_with(8, Options::new().wait(Yield))?;
/// sender.push(1).unwrap();
/// assert_eq!(receiver.pop(), Ok(1));
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
///
/// # Errors
/// As [`try_channel`].
#[allow(clippy::type_complexity, reason = "the two types are what it returns")]
pub fn channel_with<T: Send, W: Strategy>(
    capacity: usize,
    options: Options<W, NoStats>,
) -> Result<(Sender<T, W>, Receiver<T, W>), ChannelError> {
    let (wait, start) = options.into_parts();
    let shared = Arc::new(Shared {
        list: Mutex::new(List { outlets: Vec::new(), is_closed: false }),
        version: Padded(AtomicUsize::new(START)),
        sleepers: Padded(Sleepers::new()),
        senders: AtomicUsize::new(0),
        receivers: AtomicUsize::new(1),
        is_closed: AtomicBool::new(false),
        capacity,
        start,
    });
    let receiver = Receiver { view: View::new(0, &shared), wait: wait.clone(), shared: shared.clone() };
    Ok((Sender::add(shared, wait)?, receiver))
}

impl<T: Send, W: Strategy> Shared<T, W> {
    fn list(&self) -> impl DerefMut<Target = List<T, W>> + '_ {
        self.list.lock().expect("nothing panics under this lock")
    }

    /// One more lane; one that is closed from the start if the queue is.
    fn add(&self, wait: W) -> Result<Producer<T, W>, ChannelError> {
        let options = spsc::Options::new().wait(wait).start_at(self.start);
        let (mut producer, consumer) = spsc::channel_with(self.capacity, options)?;
        let consumer = Lock::new(consumer);
        let outlet = Outlet { consumer, wanted: AtomicU32::new(0), is_over: AtomicBool::new(false) };
        let outlet = Arc::new(Padded(outlet));
        // SAFETY: the outlet has the lane's consumer, and moves no more; its flag outlives the consumer, which is its
        // first field.
        unsafe { outlet.consumer.lock().control().defer(&outlet.wanted) };
        let mut list = self.list();
        if list.is_closed {
            // So its consumer, which goes here, waits for no push beside that.
            producer.close();
        } else {
            list.outlets.push(outlet);
            self.version.fetch_add(1, Release);
        }
        Ok(producer)
    }

    fn close(&self) {
        let outlets = {
            let mut list = self.list();
            list.is_closed = true;
            list.outlets.clone()
        };
        let mut is_open = false;
        for outlet in &outlets {
            is_open |= outlet.consumer.lock().control().begin_close();
            outlet.tell(&self.sleepers, ITEM | ROOM);
        }
        // One barrier for all, and not under a lock: it may take a millisecond.
        if is_open {
            Control::outwait();
        }
        for outlet in &outlets {
            outlet.consumer.lock().end_close();
            outlet.tell(&self.sleepers, ITEM);
        }
        self.is_closed.store(true, Release);
        // Only now: a sender's waker that calls the queue finds all of it closed.
        outlets.iter().for_each(|outlet| outlet.tell(&self.sleepers, ITEM | ROOM));
        self.sleepers.wake_all();
    }

    /// Drops what is inside: the queue is closed, and no receiver is left to pop it.
    #[cold]
    fn drain(&self) {
        let outlets = self.list().outlets.clone();
        let mut outlets = outlets.iter();
        let mut outlet = outlets.next();
        drop_while(|| {
            let Some(at) = outlet else { return false };
            // Not under the lock: the item's drop.
            let item = at.consumer.lock().try_pop();
            // A close beside this leaves the sender's wake-up to the thread that has the lock.
            drop(Leaves { outlet: at, sleepers: &self.sleepers });
            if item.is_err() {
                outlet = outlets.next();
            }
            true
        });
    }

    /// Takes the lanes that are over out of the list.
    #[cold]
    fn sweep(&self) {
        if let Ok(mut list) = self.list.try_lock() {
            let is_over = |outlet: &mut Arc<Padded<Outlet<T, W>>>| outlet.is_over.load(Relaxed);
            let over: Vec<_> = list.outlets.extract_if(.., is_over).collect();
            // Not under the lock: the last to let go of a lane drops it.
            drop(list);
            drop(over);
        }
    }
}

impl<T: Send, W> Shared<T, W> {
    /// Whether no item will come any more but what is in the lanes, all of which are in the list.
    fn is_ended(&self) -> bool {
        self.is_closed.load(Acquire) || self.senders.load(Acquire) == 0
    }
}

impl<T: Send, W: Strategy> Outlet<T, W> {
    /// Calls with the lane's consumer, unless another thread is in the middle of that.
    #[inline(always)]
    fn enter<R>(
        &self,
        sleepers: &Sleepers,
        call: impl FnOnce(&mut Consumer<T, W>) -> Result<R, TryPopError>,
    ) -> Result<R, TryPopError> {
        let Some(consumer) = self.consumer.enter(Stay::No, Pauses::Single) else { return Err(TryPopError::Busy) };
        // Looks when the lane is free, whether the call has returned or panicked.
        let mut entered = Entered { consumer, _leaves: Leaves { outlet: self, sleepers } };
        call(&mut entered.consumer)
    }

    /// Does what is wanted of these: wakes a sleeper for what is left in the lane, and the sender for its room.
    #[cold]
    #[inline(never)]
    fn tell(&self, sleepers: &Sleepers, of: u32) {
        while load_after_store(&self.wanted) & of != 0 {
            // Another receiver, which then sees the flags when it leaves.
            let Some(mut consumer) = self.consumer.enter(Stay::No, Pauses::Single) else { return };
            let wanted = self.wanted.fetch_and(!of, AcqRel) & of;
            let sender = if wanted & ROOM != 0 { consumer.control().producer.lower() } else { None };
            let is_left = wanted & ITEM != 0
                && consumer.try_peek().map_or_else(|nothing| nothing != TryPopError::Empty, |_| true);
            drop(consumer);
            if let Some(sender) = sender {
                sender.unpark();
            }
            if is_left {
                sleepers.wake();
            }
        }
    }
}

/// The hold of a lane. Dropped in this order.
struct Entered<'a, T: Send, W: Strategy> {
    consumer: Guard<'a, Consumer<T, W>>,
    _leaves: Leaves<'a, T, W>,
}

struct Leaves<'a, T: Send, W: Strategy> {
    outlet: &'a Outlet<T, W>,
    sleepers: &'a Sleepers,
}

impl<T: Send, W: Strategy> Drop for Leaves<'_, T, W> {
    #[inline(always)]
    fn drop(&mut self) {
        if load_after_store(&self.outlet.wanted) != 0 {
            self.outlet.tell(self.sleepers, ITEM | ROOM);
        }
    }
}

/// Pushes into a lane of its own. A clone is one more lane, for another producer; when the last sender is dropped the
/// queue is closed: receivers pop what is inside, and are then told [`Closed`].
///
/// `Send`, not `Sync`: one thread at a time pushes.
///
/// ```
/// use corelane::error::{Closed, TryPushError};
/// use corelane::mpmc::lanes;
///
/// let (mut sender, mut receiver) = lanes::channel(2);
/// let mut other = sender.clone();
/// assert_eq!(other.push('a'), Ok(()));
/// // The capacity is each sender's.
/// assert_eq!(sender.push_batch(&mut vec!['b', 'c']), Ok(()));
/// assert_eq!(sender.try_push('d'), Err(TryPushError::Full('d')));
/// assert_eq!((sender.len(), other.len(), other.capacity(), other.is_empty()), (2, 1, 2, false));
/// drop((sender, other));
///
/// let mut items: Vec<_> = receiver.iter().collect();
/// items.sort();
/// assert_eq!(items, ['a', 'b', 'c']);
/// assert_eq!(receiver.pop(), Err(Closed(())));
/// ```
#[doc(alias = "Producer")]
pub struct Sender<T: Send, W: Strategy = Adaptive> {
    producer: Producer<T, W>,
    shared: Arc<Shared<T, W>>,
}

impl<T: Send, W: Strategy> Sender<T, W> {
    fn add(shared: Arc<Shared<T, W>>, wait: W) -> Result<Self, ChannelError> {
        let producer = shared.add(wait)?;
        shared.senders.fetch_add(1, Relaxed);
        Ok(Self { producer, shared })
    }

    /// One more sender, with a lane of its own: [`clone`](Clone::clone) where memory may be short.
    ///
    /// ```
    /// let (mut sender, mut receiver) = corelane::mpmc::lanes::channel(2);
    /// sender.try_clone()?.push(1).unwrap();
    /// assert_eq!(receiver.pop(), Ok(1));
    /// # Ok::<(), corelane::error::ChannelError>(())
    /// ```
    ///
    /// # Errors
    /// No memory.
    pub fn try_clone(&self) -> Result<Self, ChannelError> {
        Self::add(self.shared.clone(), self.producer.wait.clone())
    }

    /// To be called after a push.
    #[inline(always)]
    fn wake(&self) {
        self.shared.sleepers.wake();
    }

    /// Pushes an item if there is room. Never waits.
    ///
    /// # Errors
    /// `Full` if `capacity` items of this sender are inside, or [a few fewer](crate::spsc::Producer::release_lag);
    /// `Closed` once the queue is closed. The item comes back.
    #[doc(alias = "try_send", alias = "offer")]
    #[inline]
    pub fn try_push(&mut self, item: T) -> Result<(), TryPushError<T>> {
        self.producer.try_push(item)?;
        self.wake();
        Ok(())
    }

    /// Pushes items from the front of the vector, as many as there is room for; they leave the vector. Returns how
    /// many. Never waits.
    ///
    /// ```
    /// let (mut sender, _receiver) = corelane::mpmc::lanes::channel(2);
    /// let mut items = vec![1, 2, 3];
    /// assert_eq!(sender.try_push_batch(&mut items), Ok(2));
    /// assert_eq!(items, [3]);
    /// ```
    ///
    /// # Errors
    /// Nothing was pushed, for the same reasons as in [`try_push`](Self::try_push). An empty vector is no error.
    pub fn try_push_batch(&mut self, items: &mut Vec<T>) -> Result<usize, TryPushError<()>> {
        let pushed = self.producer.try_push_batch(items)?;
        if pushed != 0 {
            self.wake();
        }
        Ok(pushed)
    }

    /// Pushes an item; waits while its lane is full.
    ///
    /// # Errors
    /// The queue is closed. The item comes back.
    #[doc(alias = "send", alias = "enqueue")]
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), Closed<T>> {
        self.producer.push(item)?;
        self.wake();
        Ok(())
    }

    /// Pushes an item; waits at most this long while its lane is full. Never gives up early.
    ///
    /// ```
    /// use corelane::error::PushTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (mut sender, _receiver) = corelane::mpmc::lanes::channel(1);
    /// let soon = Duration::from_millis(1);
    /// assert_eq!(sender.push_timeout('a', soon), Ok(()));
    /// assert_eq!(sender.push_timeout('b', soon), Err(PushTimeoutError::Timeout('b')));
    /// ```
    ///
    /// # Errors
    /// The time is up, or the queue is closed. The item comes back.
    #[doc(alias = "send_timeout", alias = "offer")]
    pub fn push_timeout(&mut self, item: T, timeout: Duration) -> Result<(), PushTimeoutError<T>> {
        self.producer.push_timeout(item, timeout)?;
        self.wake();
        Ok(())
    }

    /// Pushes all items of the vector, in order; waits while its lane is full.
    ///
    /// # Errors
    /// The queue is closed. The items that were not pushed are still in the vector, in order.
    #[doc(alias = "send_many", alias = "enqueue_bulk")]
    pub fn push_batch(&mut self, items: &mut Vec<T>) -> Result<(), Closed> {
        self.push_all(items, None).map_err(|_| Closed(()))
    }

    /// Pushes all items of the vector, in order; waits at most this long while its lane is full. Never gives up early.
    ///
    /// ```
    /// use corelane::error::PushTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (mut sender, _receiver) = corelane::mpmc::lanes::channel(2);
    /// let mut items = vec![1, 2, 3];
    /// let outcome = sender.push_batch_timeout(&mut items, Duration::from_millis(1));
    /// assert_eq!((outcome, items), (Err(PushTimeoutError::Timeout(())), vec![3]));
    /// ```
    ///
    /// # Errors
    /// The time is up, or the queue is closed. The items that were not pushed are still in the vector, in order.
    pub fn push_batch_timeout(&mut self, items: &mut Vec<T>, timeout: Duration) -> Result<(), PushTimeoutError<()>> {
        self.push_all(items, Instant::now().checked_add(timeout))
    }

    /// What was pushed is told of before each wait for room.
    fn push_all(&mut self, items: &mut Vec<T>, deadline: Option<Instant>) -> Result<(), PushTimeoutError<()>> {
        while !items.is_empty() {
            match self.try_push_batch(items) {
                Ok(_) => {}
                Err(TryPushError::Closed(())) => return Err(PushTimeoutError::Closed(())),
                Err(_) => self.producer.wait(1, deadline).map_err(|ended| ended.with(()))?,
            }
        }
        Ok(())
    }

    /// Closes the queue for all its handles: no later push succeeds, threads that wait are woken. What is inside can
    /// still be popped. Waits for receivers in the middle of a pop, and for a millisecond where there is no membarrier.
    ///
    /// ```
    /// use corelane::error::Closed;
    ///
    /// let (mut sender, mut receiver) = corelane::mpmc::lanes::channel(8);
    /// sender.push(1).unwrap();
    /// sender.close();
    /// assert!(sender.is_closed() && receiver.is_closed());
    /// assert_eq!(sender.push(2), Err(Closed(2)));
    /// assert_eq!((receiver.pop(), receiver.pop()), (Ok(1), Err(Closed(()))));
    /// ```
    pub fn close(&self) {
        self.shared.close();
    }

    /// True once the queue is closed, by a call or because all receivers are gone. Then it stays so.
    pub fn is_closed(&self) -> bool {
        self.producer.is_closed()
    }

    /// Items of this sender inside: at most so many, and at most [`capacity`](Self::capacity).
    #[must_use]
    pub fn len(&self) -> usize {
        self.producer.len()
    }

    /// True if [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The largest number of items of this sender that can be inside.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.producer.capacity()
    }
}

impl<T: Send, W: Strategy> Clone for Sender<T, W> {
    /// One more sender, with a lane of its own.
    ///
    /// # Panics
    /// Where [`try_clone`](Self::try_clone) returns an error.
    #[track_caller]
    fn clone(&self) -> Self {
        made(self.try_clone())
    }
}

impl<T: Send, W: Strategy> Drop for Sender<T, W> {
    fn drop(&mut self) {
        // First: a receiver that finds no sender any more finds every lane closed.
        self.producer.close();
        if self.shared.senders.fetch_sub(1, AcqRel) == 1 {
            self.shared.sleepers.wake_all();
        } else {
            // Lets go of a lane that is drained.
            self.shared.sleepers.wake();
        }
    }
}

// As of its lane's producer.
selectable::selectable!([T: Send, W: Strategy] Sender<T, W>, producer);

/// Pops from all lanes, in turns. A clone is one more handle to the same queue, and each item goes to one of them;
/// when the last is dropped the queue is closed: pushes are refused with their items, and what is inside is dropped.
///
/// Each thread has its own. As an iterator it waits for items, and ends when the queue is closed and
/// drained.
///
/// ```
/// use corelane::error::{Closed, TryPopError};
/// use corelane::mpmc::lanes;
///
/// let (mut sender, mut receiver) = lanes::channel(8);
/// let mut other = receiver.clone();
/// sender.push_batch(&mut vec![1, 2, 3, 4])?;
/// assert_eq!(receiver.pop(), Ok(1));
/// assert_eq!(other.try_pop(), Ok(2));
/// let mut items = Vec::new();
/// assert_eq!(other.pop_batch(&mut items, 10), Ok(2));
/// assert_eq!(receiver.try_pop(), Err(TryPopError::Empty));
///
/// drop((receiver, other));
/// assert_eq!(sender.push(5), Err(Closed(5)));
/// # Ok::<(), Closed>(())
/// ```
#[doc(alias = "Consumer")]
pub struct Receiver<T: Send, W: Strategy = Adaptive> {
    view: View<T, W>,
    wait: W,
    shared: Arc<Shared<T, W>>,
}

/// What a receiver knows of the lanes.
struct View<T: Send, W> {
    outlets: Outlets<T, W>,
    /// Of the list when they were copied.
    version: usize,
    /// Whose turn it is, and for how many more items.
    at: usize,
    left: usize,
    /// What this receiver does not find is to be told to a sleeper, itself or another one.
    is_armed: bool,
    /// It was woken, and has not found out since that there is nothing.
    was_woken: bool,
}

impl<T: Send, W: Strategy> View<T, W> {
    /// Of the receiver with this number: each begins somewhere else. It has copied no version of the list, so it begins
    /// one behind.
    fn new(number: usize, shared: &Shared<T, W>) -> Self {
        Self {
            outlets: Vec::new(),
            version: shared.version.load(Relaxed).wrapping_sub(1),
            at: START.wrapping_add(number),
            left: 0,
            is_armed: false,
            was_woken: false,
        }
    }

    /// Calls with the consumer of the lane whose turn it is, and, where there is nothing, with those of the others,
    /// until one answers otherwise.
    #[inline(always)]
    fn find<R>(
        &mut self,
        shared: &Shared<T, W>,
        mut call: impl FnMut(&mut Consumer<T, W>) -> Result<R, TryPopError>,
    ) -> Result<R, TryPopError> {
        if self.left != 0
            && let Some(outlet) = self.outlets.get(self.at)
            && let Ok(found) = outlet.enter(&shared.sleepers, &mut call)
        {
            return Ok(found);
        }
        self.search(shared, call)
    }

    /// As [`find`](Self::find), from the next lane on: its turn begins.
    #[cold]
    #[inline(never)]
    fn search<R>(
        &mut self,
        shared: &Shared<T, W>,
        mut call: impl FnMut(&mut Consumer<T, W>) -> Result<R, TryPopError>,
    ) -> Result<R, TryPopError> {
        // First: then no lane can come that is not in the list.
        let is_ended = shared.is_ended();
        let is_new = self.renew(shared);
        let mut is_busy = !is_new;
        let mut over = 0;
        let mut found = None;
        for _ in 0..self.outlets.len() {
            self.at = self.at.wrapping_add(1) % self.outlets.len();
            let outlet = &self.outlets[self.at];
            // Looks first: a lock that is held stays where it is.
            let outcome = match outlet.consumer.is_held() {
                true => Err(TryPopError::Busy),
                false => outlet.enter(&shared.sleepers, &mut call),
            };
            match outcome {
                Ok(answer) => {
                    self.left = TURN;
                    found = Some(answer);
                    break;
                }
                Err(TryPopError::Closed) => {
                    outlet.is_over.store(true, Relaxed);
                    over += 1;
                }
                Err(TryPopError::Busy) => {
                    is_busy = true;
                    if self.is_armed {
                        outlet.wanted.fetch_or(ITEM, AcqRel);
                    }
                }
                Err(TryPopError::Empty) => {}
            }
        }
        if over != 0 {
            // The turn stays with its lane, or is over with it.
            let is_over = |outlet: &Arc<Padded<Outlet<T, W>>>| outlet.is_over.load(Relaxed);
            let passed = self.outlets[..=self.at].iter().filter(|outlet| is_over(outlet)).count();
            self.at = self.at.wrapping_sub(passed);
            self.outlets.retain(|outlet| !is_over(outlet));
            shared.sweep();
        }
        found.ok_or(match (is_ended && is_new && self.outlets.is_empty(), is_busy) {
            // Lanes that were busy may be over since: no flag tells of those.
            (true, _) => TryPopError::Closed,
            (false, true) => TryPopError::Busy,
            (false, false) => TryPopError::Empty,
        })
    }

    /// Pops up to `max` items, which is not 0, of as many lanes as that takes.
    fn find_batch(&mut self, shared: &Shared<T, W>, items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError> {
        let mut popped = self.find(shared, |consumer| consumer.try_pop_batch(items, max))?;
        self.left = self.left.saturating_sub(popped);
        let home = self.at;
        for ahead in 1..self.outlets.len() {
            if popped == max {
                break;
            }
            let at = home.wrapping_add(ahead) % self.outlets.len();
            let outlet = &self.outlets[at];
            if !outlet.consumer.is_held()
                && let Ok(more) = outlet.enter(&shared.sleepers, |consumer| consumer.try_pop_batch(items, max - popped))
            {
                popped += more;
                self.at = at;
                self.left = TURN.saturating_sub(more);
            }
        }
        Ok(popped)
    }

    fn find_one(&mut self, shared: &Shared<T, W>) -> Result<T, TryPopError> {
        let item = self.find(shared, Consumer::try_pop)?;
        self.left = self.left.saturating_sub(1);
        Ok(item)
    }

    /// Copies the list where lanes have come. False if another thread is in the middle of changing it.
    fn renew(&mut self, shared: &Shared<T, W>) -> bool {
        let version = shared.version.load(Acquire);
        if version == self.version {
            return true;
        }
        let Ok(list) = shared.list.try_lock() else { return false };
        let outlets = list.outlets.clone();
        // Not under the lock: the last to let go of a lane drops it.
        drop(list);
        // It may have changed since: then it is copied once more, next time.
        self.version = version;
        self.outlets = outlets;
        true
    }

    /// Whether a pop need not wait. If not, and this receiver is armed, a sleeper is woken for whatever comes, and for
    /// what is left in lanes that are in use now.
    fn is_ready(&mut self, shared: &Shared<T, W>) -> bool {
        let mut looks = START_32;
        loop {
            match self.find(shared, |consumer| consumer.try_peek().map(|_| ())) {
                Ok(()) | Err(TryPopError::Closed) => return true,
                Err(TryPopError::Empty) => return false,
                Err(TryPopError::Busy) if !self.is_armed || self.is_told(shared) => return false,
                Err(TryPopError::Busy) => {
                    looks = looks.wrapping_add(1);
                    pause(looks);
                }
            }
        }
    }

    /// After a look that has raised flags: whether all of them will be seen. False if something has changed meanwhile.
    #[cold]
    fn is_told(&self, shared: &Shared<T, W>) -> bool {
        if self.version != shared.version.load(Acquire) {
            return false;
        }
        heavy_barrier();
        let is_seen = |outlet: &Outlet<T, W>| outlet.wanted.load(Relaxed) & ITEM == 0 || outlet.consumer.is_held();
        self.outlets.iter().all(|outlet| is_seen(outlet))
    }

    fn arm(&mut self, shared: &Shared<T, W>, sleeper: Sleeper) {
        self.is_armed = true;
        shared.sleepers.add(sleeper);
    }

    fn disarm(&mut self, shared: &Shared<T, W>, sleeper: Sleeper) {
        self.is_armed = false;
        self.was_woken |= !shared.sleepers.remove(sleeper);
    }

    /// A receiver that was woken wakes the next: there may be more, and no other receiver was told.
    fn pass_on(&mut self, shared: &Shared<T, W>) {
        if core::mem::take(&mut self.was_woken) && !shared.sleepers.is_empty() {
            self.is_armed = true;
            let is_ready = self.is_ready(shared);
            self.is_armed = false;
            if is_ready {
                shared.sleepers.wake();
            }
        }
    }
}

impl<T: Send, W: Strategy> Receiver<T, W> {
    /// Pops an item: the oldest one of its lane. Never waits.
    ///
    /// # Errors
    /// `Empty` if each lane was empty, at some moment of the call; `Closed` if moreover the queue is closed; `Busy` if
    /// another thread was in the middle of a pop from a lane, of a close, or of the clone of a sender, and no other
    /// lane had an item.
    #[doc(alias = "try_recv", alias = "poll")]
    #[inline]
    pub fn try_pop(&mut self) -> Result<T, TryPopError> {
        self.view.find_one(&self.shared)
    }

    /// Pops up to `max` items and appends them to `items`: those of one lane in their order, then those of the next.
    /// Returns how many, which is 0 only if `max` is. Never waits.
    ///
    /// ```
    /// use corelane::error::TryPopError;
    ///
    /// let (mut sender, mut receiver) = corelane::mpmc::lanes::channel(2);
    /// sender.push_batch(&mut vec![1, 2]).unwrap();
    /// let mut items = vec![0];
    /// assert_eq!(receiver.try_pop_batch(&mut items, 10), Ok(2));
    /// assert_eq!(receiver.try_pop_batch(&mut items, 10), Err(TryPopError::Empty));
    /// assert_eq!(items, [0, 1, 2]);
    /// ```
    ///
    /// # Errors
    /// Nothing was popped, for the same reasons as in [`try_pop`](Self::try_pop).
    pub fn try_pop_batch(&mut self, items: &mut Vec<T>, max: usize) -> Result<usize, TryPopError> {
        if max == 0 { Ok(0) } else { self.view.find_batch(&self.shared, items, max) }
    }

    /// Pops an item: the oldest one of its lane. Waits while all lanes are empty.
    ///
    /// # Errors
    /// The queue is closed and drained.
    #[doc(alias = "recv", alias = "dequeue")]
    #[inline]
    pub fn pop(&mut self) -> Result<T, Closed> {
        match self.try_pop() {
            Ok(item) => Ok(item),
            Err(TryPopError::Closed) => Err(Closed(())),
            Err(_) => self.wait_until(None, View::find_one).map_err(|_| Closed(())),
        }
    }

    /// Pops an item; waits at most this long while all lanes are empty. Never gives up early.
    ///
    /// ```
    /// use corelane::error::PopTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (mut sender, mut receiver) = corelane::mpmc::lanes::channel(1);
    /// sender.push('a').unwrap();
    /// let soon = Duration::from_millis(1);
    /// assert_eq!(receiver.pop_timeout(soon), Ok('a'));
    /// assert_eq!(receiver.pop_timeout(soon), Err(PopTimeoutError::Timeout));
    /// ```
    ///
    /// # Errors
    /// The time is up, or the queue is closed and drained.
    #[doc(alias = "recv_timeout", alias = "poll")]
    pub fn pop_timeout(&mut self, timeout: Duration) -> Result<T, PopTimeoutError> {
        let deadline = Instant::now().checked_add(timeout);
        self.wait_until(deadline, View::find_one)
    }

    /// Pops up to `max` items and appends them to `items`; waits while all lanes are empty. Returns how many, which is
    /// 0 only if `max` is.
    ///
    /// # Errors
    /// The queue is closed and drained.
    #[doc(alias = "recv_many", alias = "dequeue_bulk")]
    pub fn pop_batch(&mut self, items: &mut Vec<T>, max: usize) -> Result<usize, Closed> {
        self.batch_until(None, items, max).map_err(|_| Closed(()))
    }

    /// Pops up to `max` items and appends them to `items`; waits at most this long while all lanes are empty. Returns
    /// how many, which is 0 only if `max` is. Never gives up early.
    ///
    /// ```
    /// use corelane::error::PopTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (mut sender, mut receiver) = corelane::mpmc::lanes::channel(2);
    /// sender.push_batch(&mut vec![1, 2]).unwrap();
    /// let (mut items, soon) = (Vec::new(), Duration::from_millis(1));
    /// assert_eq!(receiver.pop_batch_timeout(&mut items, 10, soon), Ok(2));
    /// assert_eq!(receiver.pop_batch_timeout(&mut items, 10, soon), Err(PopTimeoutError::Timeout));
    /// ```
    ///
    /// # Errors
    /// The time is up, or the queue is closed and drained.
    pub fn pop_batch_timeout(
        &mut self,
        items: &mut Vec<T>,
        max: usize,
        timeout: Duration,
    ) -> Result<usize, PopTimeoutError> {
        self.batch_until(Instant::now().checked_add(timeout), items, max)
    }

    fn batch_until(
        &mut self,
        deadline: Option<Instant>,
        items: &mut Vec<T>,
        max: usize,
    ) -> Result<usize, PopTimeoutError> {
        if max == 0 {
            return Ok(0);
        }
        self.wait_until(deadline, |view, shared| view.find_batch(shared, items, max))
    }

    /// Makes attempts until one decides, or the time is up.
    fn wait_until<R>(
        &mut self,
        deadline: Option<Instant>,
        mut attempt: impl FnMut(&mut View<T, W>, &Shared<T, W>) -> Result<R, TryPopError>,
    ) -> Result<R, PopTimeoutError> {
        let Self { view, wait, shared } = self;
        let mut waiting = Waiting { view, shared };
        loop {
            match attempt(waiting.view, shared) {
                Ok(found) => return Ok(found),
                Err(TryPopError::Closed) => return Err(PopTimeoutError::Closed),
                // Then there is nothing to pass on.
                Err(TryPopError::Empty) => waiting.view.was_woken = false,
                Err(_) => {}
            }
            wait_for(&mut waiting, wait, deadline).ok_or(PopTimeoutError::Timeout)?;
        }
    }

    /// Items as they come: waits for each, and ends when the queue is closed and drained.
    ///
    /// ```
    /// let (mut sender, mut receiver) = corelane::mpmc::lanes::channel(4);
    /// let producer = std::thread::spawn(move || (1..=9).for_each(|item| sender.push(item).unwrap()));
    /// assert_eq!(receiver.iter().take(3).sum::<u32>(), 6);
    /// assert_eq!(receiver.iter().sum::<u32>(), 39);
    /// producer.join().unwrap();
    /// ```
    pub fn iter(&mut self) -> Iter<'_, T, W> {
        Items(self)
    }

    /// As [`Sender::close`].
    pub fn close(&self) {
        self.shared.close();
    }

    /// True once the queue is closed, by a call or because all handles of one kind are gone. Then it stays so.
    pub fn is_closed(&self) -> bool {
        self.shared.is_ended()
    }
}

/// A call that waits. However it ends, with a panic, too, its wake-up is passed on.
struct Waiting<'a, T: Send, W: Strategy> {
    view: &'a mut View<T, W>,
    shared: &'a Shared<T, W>,
}

impl<T: Send, W: Strategy> Drop for Waiting<'_, T, W> {
    fn drop(&mut self) {
        self.view.pass_on(self.shared);
    }
}

impl<T: Send, W: Strategy> Awaitable for Waiting<'_, T, W> {
    type Found = ();

    fn look(&mut self) -> Option<()> {
        self.view.is_ready(self.shared).then_some(())
    }

    fn arm(&mut self, sleeper: Sleeper) {
        self.view.arm(self.shared, sleeper);
    }

    fn disarm(&mut self, sleeper: Sleeper) {
        self.view.disarm(self.shared, sleeper);
    }
}

impl<T: Send, W: Strategy> Clone for Receiver<T, W> {
    fn clone(&self) -> Self {
        // First: these may fail.
        let (wait, shared) = (self.wait.clone(), self.shared.clone());
        let number = shared.receivers.fetch_add(1, Relaxed);
        Self { view: View::new(number, &shared), wait, shared }
    }
}

impl<T: Send, W: Strategy> Drop for Receiver<T, W> {
    fn drop(&mut self) {
        if self.shared.receivers.fetch_sub(1, AcqRel) == 1 {
            self.shared.close();
            self.shared.drain();
        }
    }
}

impl<T: Send, W: Strategy> selectable::sealed::Sealed for Receiver<T, W> {}

impl<T: Send, W: Strategy> Selectable for Receiver<T, W> {
    fn ready(&mut self, _: usize) -> bool {
        self.view.is_ready(&self.shared)
    }

    fn arm(&mut self, _: usize, sleeper: Sleeper) {
        self.view.arm(&self.shared, sleeper);
    }

    fn disarm(&mut self, sleeper: Sleeper) {
        self.view.disarm(&self.shared, sleeper);
        self.view.pass_on(&self.shared);
    }
}

/// See [`Receiver::iter`].
pub type Iter<'a, T, W = Adaptive> = Items<&'a mut Receiver<T, W>>;

/// Items as they come, with their handle: see [`Receiver::iter`].
pub type IntoIter<T, W = Adaptive> = Items<Receiver<T, W>>;

impl<T: Send, W: Strategy> Pops for Receiver<T, W> {
    type Item = T;

    #[inline]
    fn next_item(&mut self) -> Option<T> {
        self.pop().ok()
    }
}

impl<'a, T: Send, W: Strategy> IntoIterator for &'a mut Receiver<T, W> {
    type Item = T;
    type IntoIter = Iter<'a, T, W>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Send, W: Strategy> IntoIterator for Receiver<T, W> {
    type Item = T;
    type IntoIter = IntoIter<T, W>;

    fn into_iter(self) -> Self::IntoIter {
        Items(self)
    }
}

debug! { [T: Send, W: Strategy] Sender<[T, W]>: self, lane: self.producer }

debug! { [T: Send, W: Strategy] Receiver<[T, W]>: self, lanes: self.view.outlets.len(), closed: self.is_closed() }
