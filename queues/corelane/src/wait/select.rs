//! Waiting for the first of many ends.
//!
//! # How it works
//!
//! 1. A look goes over the ends in order and stops at the first that is ready. File descriptors are asked once a look,
//!    all by one call of `poll`, when the look comes to the first of them. Each end is asked for its descriptor then,
//!    as it may have taken the place of another by its key.
//! 2. As long as nothing is found the strategy says what to do. To park, the thread raises the flags of all ends,
//!    executes the heavy half of the asymmetric barrier once, looks at all of them again, and sleeps. That is the [park
//!    protocol](super#the-park-protocol), for many ends. A set with descriptors sleeps in `poll`, where the other end
//!    of a queue wakes it through an `eventfd`.
//! 3. Awake, the thread takes all flags down and looks. It may find another end than the one that woke it.
//! 4. An end of a queue between many threads stands in that queue's list of sleepers, and each change there wakes one
//!    of them. A select that finds itself taken out of such a list has been woken, and may take nothing. So it wakes
//!    the next of that list, if there is still something, whatever it returns. No wake-up ends with it.
//! 5. A task's wait (feature `async`) leaves the flags up from one poll to the next, with a [sleeper](super::sleeper)
//!    that has the task's waker. They are raised anew only once some end has taken its flag down. Where there is no
//!    membarrier, the task is polled once more after each time that they were raised: see `timer.rs`.
//!
//! # Synchronization
//!
//! The edges are those of the ends. Flags that are up while the set is not waiting are taken down by whatever comes
//! next: another wait, a removal, the drop.

#[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
use super::poll::{Descriptors, Interest};
use super::selectable::Selectable;
#[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
use super::selectable::sealed;
#[cfg(feature = "async")]
use super::sleeper::Borrowed;
#[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
use super::sleeper::{BOUND, Own, park_limit};
use super::{Adaptive, Sleeper, Strategy};
use crate::end::wait::{Awaitable, wait_for};
use crate::macros::debug;
use crate::start::START_32;
use crate::sync::Instant;
use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};
#[cfg(feature = "async")]
use core::task::{Context, Poll};
#[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
use std::os::fd::{AsFd, AsRawFd, RawFd};
// Not the model's: nothing is ordered by a set's number.
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::vec::Vec;

#[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
macro_rules! descriptor {
    ($($(#[$doc:meta])* $name:ident)+) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<F>(F);

        impl<F: AsFd> $name<F> {
            /// A set asks it for its descriptor each time it looks.
            pub fn new(descriptor: F) -> Self {
                Self(descriptor)
            }

            /// What was given to [`new`](Self::new).
            pub fn get_ref(&self) -> &F {
                &self.0
            }

            /// What was given to [`new`](Self::new).
            pub fn into_inner(self) -> F {
                self.0
            }
        }

        impl<F: AsFd> sealed::Sealed for $name<F> {}

        impl<F: AsFd> Selectable for $name<F> {
            /// Not asked: a set asks for all of its descriptors together.
            fn ready(&mut self, _: usize) -> bool {
                false
            }

            fn arm(&mut self, _: usize, _: Sleeper) {}

            fn disarm(&mut self, _: Sleeper) {}

            fn descriptor(&self) -> Option<(RawFd, Interest)> {
                Some((self.0.as_fd().as_raw_fd(), Interest::$name))
            }
        })+
    };
}

#[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
descriptor! {
    /// A file descriptor to wait for until a read from it does not block: there is something, or its end, or an error.
    /// A socket, a pipe, an `eventfd`, a timer; a file on disk is always ready.
    ///
    /// Linux only. The thread sleeps in `poll`; each look of the wait costs one system call for all descriptors of the
    /// set. It should be non-blocking, as there may be less than a call asks for. At its end it stays ready until it is
    /// [removed](Select::remove). Where a sandbox refuses `ppoll`, all descriptors of a set are always ready.
    ///
    /// ```
    /// # #[cfg(not(miri))]
    /// # {
    /// use corelane::error::TryPopError;
    /// use corelane::wait::{Readable, Select};
    /// use std::io::{ErrorKind, Read, Write};
    /// use std::os::unix::net::UnixStream;
    ///
    /// let (mut client, server) = UnixStream::pair()?;
    /// server.set_nonblocking(true)?;
    /// let (mut orders_out, orders) = corelane::spsc::channel::<u32>(8);
    /// let mut select = Select::new();
    /// let orders = select.add(orders);
    /// let socket = select.add(Readable::new(server));
    ///
    /// client.write_all(b"hello")?;
    /// orders_out.push(7).unwrap();
    /// drop((client, orders_out));
    /// let (mut text, mut sum) = (Vec::new(), 0);
    /// while let Some(ready) = select.wait() {
    ///     if ready == socket {
    ///         let mut bytes = [0; 512];
    ///         match select[socket].get_ref().read(&mut bytes) {
    ///             Ok(0) => drop(select.remove(socket)),
    ///             Ok(n) => text.extend(&bytes[..n]),
    ///             Err(error) if error.kind() == ErrorKind::WouldBlock => {}
    ///             Err(error) => return Err(error),
    ///         }
    ///     } else {
    ///         match select[orders].try_pop() {
    ///             Ok(order) => sum += order,
    ///             Err(TryPopError::Closed) => drop(select.remove(orders)),
    ///             Err(_) => {}
    ///         }
    ///     }
    /// }
    /// assert_eq!((&text[..], sum), (&b"hello"[..], 7));
    /// # }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    Readable
    /// A file descriptor to wait for until a write to it does not block, or fails. As [`Readable`].
    ///
    /// ```
    /// # #[cfg(not(miri))]
    /// # {
    /// use corelane::wait::{Select, Writable};
    /// use std::io::Write;
    /// use std::os::unix::net::UnixStream;
    ///
    /// let (client, _server) = UnixStream::pair()?;
    /// let mut select = Select::new();
    /// let socket = select.add(Writable::new(client));
    /// assert_eq!(select.wait().unwrap(), socket);
    /// select[socket].get_ref().write_all(b"hello")?;
    /// let _client = select.remove(socket).unwrap().into_inner();
    /// # }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    Writable
}

/// The name of an end in its [`Select`], with the end's type: to be copied, and compared with what a wait returns.
///
/// A key names no end but its own. Once that is removed, or in another set, [`Select::get_mut`] returns `None` and
/// indexing panics. An [index](Self::index), on the other hand, may be used again.
///
/// ```
/// use corelane::wait::{Ready, Select};
///
/// let (mut producer, consumer) = corelane::spsc::channel::<u32>(8);
/// let mut select = Select::new();
/// let items = select.add(consumer);
/// producer.push(7).unwrap();
/// let ready = select.wait().unwrap();
/// assert!(ready == items && ready == Ready::from(items));
/// // For a table beside the set.
/// assert_eq!((ready.index(), items.index()), (0, 0));
/// ```
pub struct Key<E> {
    place: Ready,
    /// Invariant: it leads to an end that may be changed.
    end: PhantomData<fn(E) -> E>,
}

impl<E> Clone for Key<E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Key<E> {}

impl<E> Key<E> {
    /// As [`Ready::index`].
    pub fn index(&self) -> usize {
        self.place.index()
    }
}

impl<E> fmt::Debug for Key<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.index()).finish()
    }
}

/// Which end is ready: to be compared with the [`Key`]s that [`Select::add`] returned.
///
/// ```
/// use corelane::wait::Select;
///
/// let mut names = Vec::new();
/// let mut select = Select::new();
/// let (mut orders, orders_in) = corelane::spsc::channel::<u32>(8);
/// let (_news, news_in) = corelane::spsc::channel::<u32>(8);
/// for (name, end) in [("orders", orders_in), ("news", news_in)] {
///     assert_eq!(select.add(end).index(), names.len());
///     names.push(name);
/// }
/// orders.push(7).unwrap();
/// assert_eq!(names[select.wait().unwrap().index()], "orders");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The number of the set.
    set: u64,
    index: u32,
    /// How often an end was put there before. It never wraps around, because a key's type rests on it.
    version: u64,
}

impl Ready {
    /// The ends of a set are numbered from 0 in the order in which they are added. An end that is added after others
    /// were removed takes the lowest number that is free.
    pub fn index(&self) -> usize {
        self.index as usize
    }
}

impl<E> From<Key<E>> for Ready {
    fn from(key: Key<E>) -> Self {
        key.place
    }
}

impl<E> PartialEq<Key<E>> for Ready {
    fn eq(&self, key: &Key<E>) -> bool {
        *self == key.place
    }
}

impl<E> PartialEq<Ready> for Key<E> {
    fn eq(&self, ready: &Ready) -> bool {
        self.place == *ready
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ready").field(&self.index).finish()
    }
}

struct Entry<'a> {
    /// None while the place is free.
    end: Option<Box<dyn Selectable + Send + 'a>>,
    /// How much room was asked for ...
    asked: usize,
    /// ... and with how many free slots it is ready for that, if it is a producer.
    room: usize,
    version: u64,
    /// Its number among the descriptors that were asked last, if it is one.
    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    polled: Option<usize>,
}

/// A set of ends to wait for. A wait names the first that is ready. Any [`Selectable`] ends mix: of every family, that
/// push and that pop, and file descriptors.
///
/// - **It takes nothing.** It reports that an end is ready: the next `try_` call on that end succeeds, or says Closed.
///   Between many threads (`mpmc`) another thread may be faster, or hold a lock, and the call finds nothing after all:
///   then wait again. If the queue still has something after the wait, the next of its sleepers is woken as well. A
///   `Collector` is also ready when one of its producers has left, and may then say Empty.
/// - **It is fair.** Where several ends are ready, a wait names the first behind the one that was named last. So each
///   of `n` ends that is ready is named within `n` waits. A [`biased`](Self::biased) set names the first in the order
///   of their keys.
/// - **It owns its ends**, or borrows them where `&mut end` is added, and hands them out by their keys. A set that owns
///   all its ends is a `Select<'static>`, as a field of a structure may be. It is `Send`.
/// - **It is made once and waits as often as you like.** A wait allocates nothing, but for the list of sleepers of an
///   `mpmc` queue, which grows when more threads sleep there than ever before.
///
/// ```
/// use corelane::error::TryPopError;
/// use corelane::wait::Select;
///
/// let (mut numbers_out, numbers) = corelane::spsc::channel::<u32>(8);
/// let (letters_out, letters) = corelane::mpmc::channel::<char>(8);
/// let mut select = Select::new();
/// let numbers = select.add(numbers);
/// let letters = select.add(letters);
///
/// std::thread::scope(|scope| {
///     scope.spawn(move || (0..3).for_each(|n| numbers_out.push(n).unwrap()));
///     scope.spawn(move || "xyz".chars().for_each(|c| letters_out.push(c).unwrap()));
///     let (mut sum, mut text) = (0, String::new());
///     // None once the set is empty.
///     while let Some(ready) = select.wait() {
///         if ready == numbers {
///             match select[numbers].try_pop() {
///                 Ok(number) => sum += number,
///                 Err(TryPopError::Closed) => drop(select.remove(numbers)),
///                 Err(_) => {}
///             }
///         } else if ready == letters {
///             match select[letters].try_pop() {
///                 Ok(letter) => text.push(letter),
///                 Err(TryPopError::Closed) => drop(select.remove(letters)),
///                 Err(_) => {}
///             }
///         }
///     }
///     assert_eq!((sum, &*text), (3, "xyz"));
/// });
/// ```
///
/// Ends that push, of which a wait names the first that has room:
///
/// ```
/// # use corelane::wait::Select;
/// let (mut a, _a) = corelane::spsc::channel(1);
/// let (mut b, _b) = corelane::spsc::channel(1);
/// a.push(1).unwrap();
/// let mut select = Select::new();
/// select.add(&mut a);
/// let b = select.add(&mut b);
/// assert_eq!(select.wait().unwrap(), b);
/// select[b].push(2).unwrap();
/// assert_eq!(select.try_wait(), None);
/// ```
pub struct Select<'a, W: Strategy = Adaptive> {
    entries: Vec<Entry<'a>>,
    /// How many ends there are.
    count: usize,
    /// This set's number: a key of another one is refused.
    set: u64,
    /// Where a fair look begins.
    next: usize,
    biased: bool,
    wait: W,
    /// The place of an end that was handed out, and may be another by now.
    touched: Option<usize>,
    /// The flags are up, for this sleeper.
    armed: Option<Sleeper>,
    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    descriptors: Descriptors,
    /// How many of the ends are descriptors.
    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    polled: usize,
    /// Where a task of it waits.
    #[cfg(feature = "async")]
    task: Option<Borrowed>,
    /// Ready waits of a task since the last that was pending.
    #[cfg(feature = "async")]
    in_a_row: u32,
    /// Whether an end may overlook the flags of a task's wait.
    #[cfg(feature = "async")]
    doubt: super::Doubt,
}

impl Select<'_> {
    /// An empty set that waits as [`Adaptive`] does.
    pub fn new() -> Self {
        Self::with(Adaptive)
    }
}

impl Default for Select<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, W: Strategy> Select<'a, W> {
    /// An empty set that waits in this way; the ends' own strategies are not asked.
    ///
    /// ```
    /// use corelane::wait::{Select, SpinPark};
    ///
    /// assert!(Select::with(SpinPark::new(100)).is_empty());
    /// ```
    pub fn with(wait: W) -> Self {
        /// 64 bits on every system, some of which have no atomics of that width: two sets of one number would take each
        /// other's keys.
        static SETS: Mutex<u64> = Mutex::new(START_32 as u64);
        let set = {
            let mut sets = SETS.lock().unwrap_or_else(PoisonError::into_inner);
            *sets += 1;
            *sets
        };
        Self {
            entries: Vec::new(),
            count: 0,
            set,
            next: 0,
            biased: false,
            wait,
            touched: None,
            armed: None,
            #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
            descriptors: Descriptors::new(),
            #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
            polled: 0,
            #[cfg(feature = "async")]
            task: None,
            #[cfg(feature = "async")]
            in_a_row: 0,
            #[cfg(feature = "async")]
            doubt: super::Doubt::default(),
        }
    }

    /// From now on the first of several ready ends is named, in the order of their [indices](Ready::index): one that is
    /// always ready keeps those behind it waiting.
    ///
    /// ```
    /// # use corelane::wait::Select;
    /// let (mut urgent_out, urgent) = corelane::spsc::channel(8);
    /// let (mut other_out, other) = corelane::spsc::channel(8);
    /// let mut select = Select::new().biased();
    /// let urgent = select.add(urgent);
    /// let other = select.add(other);
    /// other_out.push('b').unwrap();
    /// urgent_out.push('a').unwrap();
    /// assert_eq!(select.wait().unwrap(), urgent);
    /// assert_eq!(select.wait().unwrap(), urgent);
    /// select[urgent].pop().unwrap();
    /// assert_eq!(select.wait().unwrap(), other);
    /// ```
    pub fn biased(mut self) -> Self {
        self.biased = true;
        self
    }

    /// Puts an end, or a `&mut` of one, into the set. One that pushes is ready with room for one item; a
    /// [`stream::Producer`](crate::spsc::stream::Producer) with room for a message of one byte. Where a stream is
    /// refused memory it is ready, to say so.
    ///
    /// # Panics
    /// If there are 2^32 ends.
    #[track_caller]
    pub fn add<E: Selectable + Send + 'a>(&mut self, end: E) -> Key<E> {
        self.add_for(end, 1)
    }

    /// As [`add`](Self::add), for a [producer](crate::spsc::Producer) to be ready with so many free slots, or with room
    /// for one message of so many bytes. Others take no notice of it: between many threads room for several items may
    /// go to several of them.
    ///
    /// ```
    /// # use corelane::wait::Select;
    /// let (mut producer, mut consumer) = corelane::spsc::channel(4);
    /// producer.push_slice(&[1, 2, 3]).unwrap();
    /// let mut select = Select::new();
    /// let half = select.add_for(producer, 2);
    /// assert_eq!(select.try_wait(), None);
    /// consumer.pop().unwrap();
    /// assert_eq!(select.try_wait().unwrap(), half);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add). If the queue never has so much room; where another end has taken its place by its key,
    /// the next wait panics.
    #[track_caller]
    pub fn add_for<E: Selectable + Send + 'a>(&mut self, end: E, room: usize) -> Key<E> {
        let (asked, room) = (room, end.needs(room));
        self.disarm_all();
        #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
        let polled = end.descriptor().map(|_| 0);
        #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
        self.count_polled(false, polled.is_some());
        let end = Some(Box::new(end) as Box<dyn Selectable + Send + 'a>);
        let free = self.entries.iter().position(|entry| entry.end.is_none());
        let at = match free {
            Some(at) => {
                let entry = &mut self.entries[at];
                (entry.end, entry.asked, entry.room) = (end, asked, room);
                #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
                {
                    entry.polled = polled;
                }
                at
            }
            None => {
                self.entries.push(Entry {
                    end,
                    asked,
                    room,
                    version: START_32.into(),
                    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
                    polled,
                });
                self.entries.len() - 1
            }
        };
        self.count += 1;
        Key { place: self.ready_at(at), end: PhantomData }
    }

    /// Asks all descriptors.
    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    fn ask(&mut self) {
        let polled = self.entries.iter_mut().filter(|entry| entry.polled.is_some());
        self.descriptors.ask(polled.enumerate().filter_map(|(number, entry)| {
            entry.polled = Some(number);
            entry.end.as_ref()?.descriptor()
        }));
    }

    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    fn count_polled(&mut self, was: bool, is: bool) {
        self.polled = self.polled - usize::from(was) + usize::from(is);
        if is {
            self.descriptors.reserve(self.polled);
        }
    }

    /// Asks the end that was handed out last what it needs: another one may have taken its place.
    fn refresh(&mut self) {
        let Some(at) = self.touched else { return };
        let entry = &mut self.entries[at];
        if let Some(end) = &entry.end {
            entry.room = end.needs(entry.asked);
            #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
            {
                let was = core::mem::replace(&mut entry.polled, end.descriptor().map(|_| 0));
                let is = entry.polled.is_some();
                self.count_polled(was.is_some(), is);
            }
        }
        self.touched = None;
    }

    #[track_caller]
    fn ready_at(&self, at: usize) -> Ready {
        let index = u32::try_from(at).expect("fewer than 2^32 ends");
        Ready { set: self.set, index, version: self.entries[at].version }
    }

    /// Takes an end out of the set. `None` if it was taken out before.
    pub fn remove<E: Selectable>(&mut self, key: Key<E>) -> Option<E> {
        self.end_of(key)?;
        self.disarm_all();
        let entry = &mut self.entries[key.index()];
        let end = entry.end.take()?;
        entry.version += 1;
        self.count -= 1;
        #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
        if entry.polled.take().is_some() {
            self.polled -= 1;
        }
        // SAFETY: `end_of` says that the end is an `E`, which `add` has boxed.
        Some(*unsafe { Box::from_raw(Box::into_raw(end).cast::<E>()) })
    }

    /// The end of this key; `None` if it was taken out. `select[key]` is the same, and panics then.
    ///
    /// ```
    /// let mut select = corelane::wait::Select::new();
    /// let (mut producer, consumer) = corelane::spsc::channel::<u32>(8);
    /// let items = select.add(consumer);
    /// producer.push(7).unwrap();
    /// assert_eq!(select.get_mut(items).unwrap().try_pop(), Ok(7));
    /// drop(select.remove(items));
    /// assert!(select.get_mut(items).is_none());
    /// ```
    pub fn get_mut<E: Selectable>(&mut self, key: Key<E>) -> Option<&mut E> {
        // What is done to the end must not meet a flag of ours.
        self.disarm_all();
        let end = self.end_of(key)?;
        if self.touched != Some(key.index()) {
            self.refresh();
            self.touched = Some(key.index());
        }
        // SAFETY: `end_of` says that it points to an `E`, and the set is borrowed for as long as the reference lives.
        Some(unsafe { &mut *end })
    }

    /// Where the end of this key lies, if it is still there.
    ///
    /// A key of this set (by its number) for this place and version was made by the `add` that put an `E` there, and
    /// `E` is that very type: a key is invariant in it.
    fn end_of<E>(&mut self, key: Key<E>) -> Option<*mut E> {
        let entry = self.entries.get_mut(key.index()).filter(|entry| entry.version == key.place.version)?;
        if key.place.set != self.set {
            return None;
        }
        let end: *mut (dyn Selectable + Send + 'a) = &mut **entry.end.as_mut()?;
        Some(end.cast::<E>())
    }

    /// How many ends there are.
    ///
    /// ```
    /// let mut select = corelane::wait::Select::new();
    /// assert!(select.is_empty());
    /// let (_producer, consumer) = corelane::spsc::channel::<u32>(8);
    /// let items = select.add(consumer);
    /// assert_eq!(select.len(), 1);
    /// select.remove(items);
    /// assert_eq!((select.len(), select.wait()), (0, None));
    /// ```
    pub fn len(&self) -> usize {
        self.count
    }

    /// True if there is none: a [`wait`](Self::wait) returns at once then.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Waits until an end is ready, and names it. `None` if there are no ends.
    pub fn wait(&mut self) -> Option<Ready> {
        if self.is_empty() {
            return None;
        }
        self.wait_until(None)
    }

    /// Names an end that is ready, if there is one. Never waits, but for the lock of a queue that has one.
    pub fn try_wait(&mut self) -> Option<Ready> {
        self.disarm_all();
        self.refresh();
        self.look()
    }

    /// Waits until an end is ready, at most so long. `None` when the time is up: never early, even if there are no
    /// ends; how late depends on the strategy and the scheduler.
    ///
    /// As long as some end is ready, the time is never up. For what is to be done once in a while, keep in mind when:
    ///
    /// ```
    /// use corelane::wait::Select;
    /// use std::time::{Duration, Instant};
    ///
    /// const PERIOD: Duration = Duration::from_millis(1);
    /// let (mut producer, consumer) = corelane::spsc::channel(64);
    /// let busy = std::thread::spawn(move || while producer.push(()).is_ok() {});
    /// let mut select = Select::new();
    /// let key = select.add(consumer);
    /// let (mut ticks, mut next) = (0, Instant::now() + PERIOD);
    /// while ticks < 3 {
    ///     let left = next.saturating_duration_since(Instant::now());
    ///     if left.is_zero() {
    ///         ticks += 1;
    ///         next += PERIOD;
    ///     } else if select.wait_timeout(left).is_some() {
    ///         select[key].try_pop().unwrap();
    ///     }
    /// }
    /// drop(select);
    /// busy.join().unwrap();
    /// ```
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Ready> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Option<Ready> {
        self.disarm_all();
        self.refresh();
        // Before the strategy is cloned.
        if let Some(ready) = self.look() {
            return Some(ready);
        }
        let wait = self.wait.clone();
        wait_for(self, &wait, deadline)
    }

    /// The first end that is ready, from where this look begins.
    #[inline]
    fn look(&mut self) -> Option<Ready> {
        let start = if self.biased || self.next >= self.entries.len() { 0 } else { self.next };
        #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
        let mut asked = false;
        let at = (start..self.entries.len()).chain(0..start).find(|&at| {
            #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
            if self.entries[at].polled.is_some() {
                if !asked {
                    self.ask();
                    asked = true;
                }
                return self.entries[at].polled.is_some_and(|number| self.descriptors.is_ready(number));
            }
            let entry = &mut self.entries[at];
            entry.end.as_mut().is_some_and(|end| end.ready(entry.room))
        })?;
        self.next = at + 1;
        Some(self.ready_at(at))
    }

    fn arm_all(&mut self, sleeper: Sleeper) {
        self.armed = Some(sleeper);
        for entry in &mut self.entries {
            if let Some(end) = &mut entry.end {
                end.arm(entry.room, sleeper);
            }
        }
    }

    #[inline]
    fn disarm_all(&mut self) {
        if let Some(sleeper) = self.armed.take() {
            self.entries.iter_mut().filter_map(|entry| entry.end.as_mut()).for_each(|end| end.disarm(sleeper));
        }
    }

    /// As [`wait`](Self::wait), for a task: a future. With the feature `async`.
    ///
    /// Ends that have no calls for tasks are waited for in this way, such as those of [`mpmc`](crate::mpmc):
    ///
    /// ```
    /// use corelane::error::TryPopError;
    /// use corelane::{mpmc, wait::Select};
    ///
    /// let (sender, receiver) = mpmc::channel(8);
    /// let thread = std::thread::spawn(move || (1..=3).for_each(|item| sender.push(item).unwrap()));
    /// let sum = futures_executor::block_on(async move {
    ///     let mut select = Select::new();
    ///     let receiver = select.add(receiver);
    ///     let mut sum = 0;
    ///     while select.wait_async().await.is_some() {
    ///         match select[receiver].try_pop() {
    ///             Ok(item) => sum += item,
    ///             Err(TryPopError::Closed) => drop(select.remove(receiver)),
    ///             // Another receiver was faster.
    ///             Err(_) => {}
    ///         }
    ///     }
    ///     sum
    /// });
    /// assert_eq!(sum, 6);
    /// thread.join().unwrap();
    /// ```
    ///
    /// It may be dropped any time, as in a `select!` beside other futures: nothing is lost, as nothing is taken. While
    /// it is not polled, or if it is forgotten, a shared queue's wake-up may stay with it until the set is used again.
    /// An idle task is not polled; where there is no membarrier, once more, a millisecond after it began to wait.
    /// After 128 ready waits in a row one is pending, so that other tasks get a turn.
    ///
    /// # Panics
    /// If there are file descriptors in the set. A task waits for those by its own runtime, in a `select!` beside this.
    #[cfg(feature = "async")]
    #[track_caller]
    pub fn wait_async(&mut self) -> impl Future<Output = Option<Ready>> {
        // Another future may have been forgotten.
        self.disarm_all();
        self.refresh();
        #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
        assert!(
            self.polled == 0,
            "`wait_async` cannot wait for the file descriptors in this set: wait for them by the task's runtime"
        );
        /// Takes the flags down when the future is ready, or dropped.
        struct Waiting<'s, 'a, W: Strategy>(&'s mut Select<'a, W>);
        impl<W: Strategy> Drop for Waiting<'_, '_, W> {
            fn drop(&mut self) {
                self.0.disarm_all();
                if let Some(waker) = self.0.task.as_ref().and_then(|task| task.sleeper().waker()) {
                    waker.exchange(None);
                }
            }
        }
        // Not an `async` block: the panic of a waker's clone would be the end of that.
        let mut waiting = Some(Waiting(self));
        core::future::poll_fn(move |context| {
            let ready = waiting.as_mut().expect(crate::end::task::POLLED_AGAIN).0.poll(context);
            if ready.is_ready() {
                waiting = None;
            }
            ready
        })
    }

    #[cfg(feature = "async")]
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Ready>> {
        if self.is_empty() {
            return Poll::Ready(None);
        }
        self.doubt.begin_look();
        if let Some(ready) = self.look() {
            self.in_a_row += 1;
            if self.in_a_row <= crate::end::task::BUDGET {
                return Poll::Ready(Some(ready));
            }
            self.in_a_row = 0;
            self.next = ready.index();
            super::wake_quietly(context.waker());
            return Poll::Pending;
        }
        self.in_a_row = 0;
        let sleeper = self.task.get_or_insert_with(Borrowed::task).sleeper();
        let waker = sleeper.waker().expect("made for it");
        if !waker.exchange(Some(context.waker().clone())) {
            // The task that is just being woken may be that of an earlier poll.
            super::wake_quietly(context.waker());
            return Poll::Pending;
        }
        // Asked after the waker was put: an end that has taken its flag down and has not said so yet finds that waker.
        if sleeper.was_woken() || self.armed.is_none() {
            self.disarm_all();
            self.arm_all(sleeper);
            crate::sync::heavy_barrier();
            if crate::sync::parks_are_bounded() {
                self.doubt.begin();
            }
        }
        if let Some(ready) = self.look() {
            return Poll::Ready(Some(ready));
        }
        self.doubt.is_pending(context.waker());
        Poll::Pending
    }
}

impl<W: Strategy> Awaitable for Select<'_, W> {
    type Found = Ready;

    fn look(&mut self) -> Option<Ready> {
        Select::look(self)
    }

    fn arm(&mut self, sleeper: Sleeper) {
        self.arm_all(sleeper);
    }

    fn disarm(&mut self, _: Sleeper) {
        self.disarm_all();
    }

    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    fn sleeper(&self) -> Own {
        if self.polled == 0 { Own::new() } else { Own::in_poll() }
    }

    #[cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle))))]
    fn sleep(&mut self, sleeper: Sleeper, deadline: Option<Instant>) {
        let limit = park_limit(deadline);
        if self.polled == 0 {
            sleeper.park(deadline);
        } else if let Some(event) = sleeper.event() {
            event.with(|event| self.descriptors.sleep(event, limit));
        } else {
            self.descriptors.nap(limit.map_or(BOUND, |limit| limit.min(BOUND)));
        }
    }
}

impl<E: Selectable, W: Strategy> Index<Key<E>> for Select<'_, W> {
    type Output = E;

    fn index(&self, key: Key<E>) -> &E {
        let entry = self.entries.get(key.index()).filter(|_| self.ready_at(key.index()) == key.place);
        let end = entry.and_then(|entry| entry.end.as_deref()).expect(REMOVED);
        // SAFETY: an `E`, by the argument of `end_of`; borrowed as long as the set is.
        unsafe { &*ptr_of(end).cast::<E>() }
    }
}

impl<E: Selectable, W: Strategy> IndexMut<Key<E>> for Select<'_, W> {
    fn index_mut(&mut self, key: Key<E>) -> &mut E {
        self.get_mut(key).expect(REMOVED)
    }
}

const REMOVED: &str = "the key's end was taken out of this set, or is another set's: use keys of ends in this set";

fn ptr_of<'a>(end: &(dyn Selectable + Send + 'a)) -> *const (dyn Selectable + Send + 'a) {
    end
}

impl<W: Strategy> Drop for Select<'_, W> {
    /// Flags that a forgotten future has left up come down before the ends go, and its task is let go of.
    fn drop(&mut self) {
        self.disarm_all();
        #[cfg(feature = "async")]
        if let Some(waker) = self.task.as_ref().and_then(|task| task.sleeper().waker()) {
            waker.exchange(None);
        }
    }
}

debug! { [W: Strategy] Select<['_, W]>: self, ends: self.count, biased: self.biased }
