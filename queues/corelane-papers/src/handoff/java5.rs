//! The synchronous queue of Java SE 5.0: a lock, and a list of waiting threads for each side.
//!
//! Source: Listing 4 of "Scalable Synchronous Queues" (Scherer, Lea, Scott), and its text on the two modes.
//!
//! # How it works
//!
//! 1. A put takes the lock and looks for a waiting take. If it finds one, it leaves the lock, gives the take the item
//!    and wakes it.
//! 2. Otherwise the put leaves a node with the item in the list of waiting puts. It leaves the lock, and sleeps until a
//!    take has the item.
//! 3. A take does the same with the sides exchanged.
//! 4. A request whose time is up is marked in its node. A thread that finds a marked node looks for the next one. The
//!    request is then removed from its list, which is walked under the lock.
//!
//! The lists are queues in fair mode and stacks otherwise. In fair mode the lock is first come first served as well,
//! because a request's place is decided when it gets the lock. A thread that leaves the lock hands it to the thread
//! that has slept for it longest, and no thread can use the lock until that thread has woken up. This is why fair mode
//! was slow.
//!
//! # Synchronization
//!
//! - the node's lock: the item is written before it is read, and either the match or the time-out wins.
//! - the entry lock: orders all accesses to the lists.
//!
//! # Progress
//!
//! Blocking.
//!
//! # When to use it, and when not
//!
//! Never use it, except to measure what one lock for both sides costs, above all a fair one.
//!
//! # Memory
//!
//! One allocation for each request that waits.

use super::NO_PANIC;
use corelane::error::{PopTimeoutError, PushTimeoutError, TryPushError};
use corelane::handoff::Fairness;
use corelane::papers::{Arc, Instant, Mutex, Token};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// A request that waits.
struct Node<T> {
    state: Mutex<State<T>>,
    token: Token,
}

enum State<T> {
    /// Waits with the item of a put.
    Waiting(Option<T>),
    /// Matched, with the item for a take.
    Matched(Option<T>),
    Cancelled,
}

impl<T> Node<T> {
    fn new(item: Option<T>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::Waiting(item)), token: Token::new() })
    }

    /// Exchanges items with the node's owner, unless the owner has given up.
    fn fulfil(&self, item: Option<T>) -> Result<Option<T>, Option<T>> {
        let mut state = self.state.lock().expect(NO_PANIC);
        let State::Waiting(theirs) = &mut *state else { return Err(item) };
        let theirs = theirs.take();
        *state = State::Matched(item);
        drop(state);
        self.token.notify();
        Ok(theirs)
    }

    /// Sleeps until a partner has come, and returns its item. If the time is up first, returns the request's own item.
    fn wait(&self, deadline: Option<Instant>) -> Result<Option<T>, Option<T>> {
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            {
                let mut state = self.state.lock().expect(NO_PANIC);
                match &mut *state {
                    State::Matched(item) => return Ok(item.take()),
                    State::Waiting(item) if left == Some(Duration::ZERO) => {
                        let item = item.take();
                        *state = State::Cancelled;
                        return Err(item);
                    }
                    State::Waiting(_) | State::Cancelled => {}
                }
            }
            self.token.wait(left);
        }
    }
}

type List<T> = VecDeque<Arc<Node<T>>>;

struct Lists<T> {
    puts: List<T>,
    takes: List<T>,
}

/// A lock that serves threads first come first served.
struct FifoLock(Mutex<Line>);

struct Line {
    held: bool,
    waiting: VecDeque<Arc<Node<()>>>,
}

impl FifoLock {
    fn lock(&self) {
        let node = {
            let mut line = self.0.lock().expect(NO_PANIC);
            if !line.held {
                line.held = true;
                return;
            }
            let node = Node::new(None);
            line.waiting.push_back(node.clone());
            node
        };
        // This thread holds the lock from the match on.
        let _ = node.wait(None);
    }

    fn unlock(&self) {
        let mut line = self.0.lock().expect(NO_PANIC);
        match line.waiting.pop_front() {
            Some(next) => {
                drop(line);
                let _ = next.fulfil(None);
            }
            None => line.held = false,
        }
    }
}

/// The synchronous queue of Java SE 5.0, fair or unfair. See the [module](super) for its limits.
///
/// ```
/// use corelane::error::{PopTimeoutError, PushTimeoutError, TryPushError};
/// use corelane::handoff::Fairness;
/// use corelane_papers::handoff::JavaFive;
/// use std::time::Duration;
///
/// let (queue, moment) = (JavaFive::new(Fairness::Fair), Duration::from_millis(1));
/// std::thread::scope(|scope| {
///     scope.spawn(|| queue.put(1));
///     assert_eq!(queue.take(), 1);
/// });
/// assert_eq!(queue.try_put(2), Err(TryPushError::Full(2)));
/// assert_eq!(queue.put_timeout(2, moment), Err(PushTimeoutError::Timeout(2)));
/// assert_eq!(queue.take_timeout(moment), Err(PopTimeoutError::Timeout));
/// ```
pub struct JavaFive<T> {
    entry: Option<FifoLock>,
    lists: Mutex<Lists<T>>,
}

impl<T: Send> JavaFive<T> {
    /// Makes a queue in which no thread waits.
    pub fn new(fairness: Fairness) -> Self {
        let entry =
            (fairness == Fairness::Fair).then(|| FifoLock(Mutex::new(Line { held: false, waiting: VecDeque::new() })));
        Self { entry, lists: Mutex::new(Lists { puts: VecDeque::new(), takes: VecDeque::new() }) }
    }

    /// Runs `section` under the queue's lock: a few instructions that do not panic.
    fn locked<R>(&self, section: impl FnOnce(&mut Lists<T>) -> R) -> R {
        let Some(entry) = &self.entry else {
            return section(&mut self.lists.lock().expect(NO_PANIC));
        };
        entry.lock();
        // Never contended, because the entry lock is held.
        let result = section(&mut self.lists.lock().expect(NO_PANIC));
        entry.unlock();
        result
    }

    /// Takes a waiting request, a put or a take, out of its list.
    fn pop(&self, lists: &mut Lists<T>, put: bool) -> Option<Arc<Node<T>>> {
        let list = if put { &mut lists.puts } else { &mut lists.takes };
        if self.entry.is_some() { list.pop_front() } else { list.pop_back() }
    }

    /// A put (with an item) or a take (without). Returns the partner's item, or the request's own when the time is up.
    fn transfer(&self, mut item: Option<T>, deadline: Option<Instant>) -> Result<Option<T>, Option<T>> {
        let is_put = item.is_some();
        loop {
            let found = self.locked(|lists| {
                self.pop(lists, !is_put).ok_or_else(|| {
                    let node = Node::new(item.take());
                    if is_put { &mut lists.puts } else { &mut lists.takes }.push_back(node.clone());
                    node
                })
            });
            match found {
                Ok(partner) => match partner.fulfil(item) {
                    Ok(theirs) => return Ok(theirs),
                    Err(back) => item = back,
                },
                Err(node) => {
                    let outcome = node.wait(deadline);
                    if outcome.is_err() {
                        self.locked(|lists| {
                            let own = if is_put { &mut lists.puts } else { &mut lists.takes };
                            own.retain(|other| !Arc::ptr_eq(other, &node));
                        });
                    }
                    return outcome;
                }
            }
        }
    }

    /// Waits until the item is taken.
    pub fn put(&self, item: T) {
        assert!(self.transfer(Some(item), None).is_ok(), "nothing ends this wait");
    }

    /// Waits for an item.
    pub fn take(&self) -> T {
        self.transfer(None, None).ok().flatten().expect("nothing ends this wait but an item")
    }

    /// Hands the item to a waiting take, if there is one. Never waits.
    ///
    /// # Errors
    /// No take waits. The item comes back.
    #[doc(alias = "offer")]
    pub fn try_put(&self, item: T) -> Result<(), TryPushError<T>> {
        let mut item = Some(item);
        while let Some(take) = self.locked(|lists| self.pop(lists, false)) {
            match take.fulfil(item) {
                Ok(_) => return Ok(()),
                Err(back) => item = back,
            }
        }
        Err(TryPushError::Full(item.expect("no take has it")))
    }

    /// Waits until the item is taken, at most for `timeout`.
    ///
    /// # Errors
    /// The time is up. The item comes back.
    #[doc(alias = "offer")]
    pub fn put_timeout(&self, item: T, timeout: Duration) -> Result<(), PushTimeoutError<T>> {
        match self.transfer(Some(item), Instant::now().checked_add(timeout)) {
            Ok(_) => Ok(()),
            Err(item) => Err(PushTimeoutError::Timeout(item.expect("a put that fails has its item back"))),
        }
    }

    /// Waits for an item, at most for `timeout`.
    ///
    /// # Errors
    /// The time is up.
    #[doc(alias = "poll")]
    pub fn take_timeout(&self, timeout: Duration) -> Result<T, PopTimeoutError> {
        match self.transfer(None, Instant::now().checked_add(timeout)) {
            Ok(item) => Ok(item.expect("a take that succeeds has an item")),
            Err(_) => Err(PopTimeoutError::Timeout),
        }
    }
}

impl<T> fmt::Debug for JavaFive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JavaFive").field("fair", &self.entry.is_some()).finish_non_exhaustive()
    }
}
