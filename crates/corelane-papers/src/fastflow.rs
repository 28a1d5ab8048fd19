//! FastFlow's unbounded queue of pointers, as the case study found it: the baseline of
//! [`corelane::spsc::linked`] and [`corelane::spsc::stream`].
//!
//! Source: the case study on FastFlow's queue, its five components and its list of what could be less. Written from
//! that text, not from FastFlow's code.
//!
//! ```
//! let (mut producer, mut consumer) = corelane_papers::fastflow::channel(1024);
//! producer.push(Box::new("pointers only")).unwrap();
//! assert_eq!(consumer.pop().as_deref(), Some(&"pointers only"));
//! assert_eq!(consumer.pop(), None);
//! ```
//!
//! # How it works
//!
//! 1. `PtrBuffer` (`SWSR_Ptr_Buffer`): a bounded ring of pointers in which NULL says that a slot is free, so that no
//!    index is shared. It is set to NULL whole when it is allocated, and slot by slot as the consumer pops.
//! 2. `ListQueue` (`dynqueue`): a linked list of nodes, which holds the buffers between the producer's and the
//!    consumer's.
//! 3. The node cache: a `PtrBuffer` by which nodes go back to the producer.
//! 4. The buffer cache: a `PtrBuffer` by which buffers do.
//! 5. `Queue` (`uSWSR_Ptr_Buffer`) binds them together. The producer pushes into its buffer and takes another one from
//!    the cache or the allocator where that is full; the consumer pops from its own, and where that is empty for good
//!    takes the next from the list.
//!
//! A push meets six conditional branches, as the case study counts them, and so does a pop: two look for NULL, two for
//! a full (an empty) buffer, one for a queue that was not initialised, and one for the end of the ring. From handle to
//! message there are four steps: queue, buffer, slots, message. Which of the checks the compiler can prove away it
//! does: a `Box` is never NULL.
//!
//! # What differs, and why
//!
//! - Slots and the producer's current buffer are stored with release and loaded with acquire. The text's model is that
//!   of x86, where plain stores and loads are. The links of the list need neither, see below.
//! - A pointer is a `Box`: NULL cannot be pushed, and what is inside is dropped with the queue.
//! - Refused memory gives the pointer back.
//!
//! There is no waiting, closing, or counting: the text has none, and this is what the text measures.
//!
//! # Synchronization
//!
//! - A slot, store-release (producer) → load-acquire (consumer): the pointer's target is written before it is read.
//!   Store-release of NULL (consumer) → load-acquire (producer): the pointer is read before the slot is written again.
//! - `written`, the producer's buffer, store-release (producer) → load-acquire (consumer): a consumer that finds
//!   another buffer than its own there sees everything that was pushed into its own, so one more look says whether it
//!   is empty for good. It also sees the link to the buffer behind its own, and that node: so links and nodes are
//!   relaxed. For what it finds is a later buffer, as its own is not used a second time before it has left it, and to
//!   have come there it has read `written` as late as that.
//! - Caches are `PtrBuffer`s: as for a slot, in the other direction.
//!
//! # Progress
//!
//! Wait-free but for the allocator.
//!
//! # When to use it, and when not
//!
//! To measure against.
//!
//! # Memory
//!
//! Buffers of so many pointers, a node each, two caches of 32; and what the pointers lead to.

use corelane::error::ChannelError;
use corelane::papers::{Arc, AtomicPtr, AtomicUsize, look_at, set_to};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

/// Buffers and nodes kept for later. The text gives no number.
const CACHED: usize = if cfg!(loom) { 2 } else { 32 };

/// On two cache lines of its own, as everywhere in corelane: the neighbour of a missed line is fetched along with it.
#[repr(align(128))]
struct Padded<T>(T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// A bounded ring of pointers, from one thread to another.
struct PtrBuffer<T> {
    slots: Vec<AtomicPtr<T>>,
    /// Where the consumer reads next. The consumer's.
    read: Padded<AtomicUsize>,
    /// Where the producer writes next. The producer's.
    write: Padded<AtomicUsize>,
}

impl<T> PtrBuffer<T> {
    fn new(size: usize) -> Option<Self> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(size).ok()?;
        slots.resize_with(size, || AtomicPtr::new(null_mut()));
        Some(Self { slots, read: Padded(AtomicUsize::new(0)), write: Padded(AtomicUsize::new(0)) })
    }

    fn is_initialised(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Producer: whether there is a free slot.
    #[inline(always)]
    fn available(&self) -> bool {
        look_at(&self.slots[self.write.load(Relaxed)]).is_null()
    }

    /// Consumer: whether there is no pointer.
    #[inline(always)]
    fn empty(&self) -> bool {
        look_at(&self.slots[self.read.load(Relaxed)]).is_null()
    }

    #[inline(always)]
    fn push(&self, pointer: *mut T) -> bool {
        if pointer.is_null() {
            return false;
        }
        if !self.available() {
            return false;
        }
        let write = self.write.load(Relaxed);
        set_to(&self.slots[write], pointer);
        self.write.store(self.after(write), Relaxed);
        true
    }

    /// NULL if there is none.
    #[inline(always)]
    fn pop(&self) -> *mut T {
        if self.empty() {
            return null_mut();
        }
        let read = self.read.load(Relaxed);
        let pointer = look_at(&self.slots[read]);
        set_to(&self.slots[read], null_mut());
        self.read.store(self.after(read), Relaxed);
        pointer
    }

    #[inline(always)]
    fn after(&self, index: usize) -> usize {
        if index + 1 >= self.slots.len() { 0 } else { index + 1 }
    }
}

struct Node<T> {
    next: AtomicPtr<Node<T>>,
    /// Written before the node is linked, read after it was found.
    value: AtomicPtr<T>,
}

/// A linked list of pointers, from one thread to another. Its first node is a dummy.
struct ListQueue<T> {
    /// The consumer's.
    head: Padded<AtomicPtr<Node<T>>>,
    /// The producer's.
    tail: Padded<AtomicPtr<Node<T>>>,
    /// From consumer to producer.
    cache: PtrBuffer<Node<T>>,
}

impl<T> ListQueue<T> {
    fn new() -> Option<Self> {
        let cache = PtrBuffer::new(CACHED)?;
        let dummy = on_heap(Node { next: AtomicPtr::new(null_mut()), value: AtomicPtr::new(null_mut()) })?;
        Some(Self { head: Padded(AtomicPtr::new(dummy)), tail: Padded(AtomicPtr::new(dummy)), cache })
    }

    /// Producer. False if the allocator refuses a node.
    fn push(&self, value: *mut T) -> bool {
        let mut node = self.cache.pop();
        if node.is_null() {
            let made = on_heap(Node { next: AtomicPtr::new(null_mut()), value: AtomicPtr::new(null_mut()) });
            let Some(made) = made else { return false };
            node = made;
        }
        // SAFETY: new, or given back by the consumer, so ours until it is linked; the tail is the list's.
        unsafe {
            (*node).next.store(null_mut(), Relaxed);
            (*node).value.store(value, Relaxed);
            // Followed only by a consumer that has acquired `written`, which is stored behind this.
            (*self.tail.load(Relaxed)).next.store(node, Relaxed);
        }
        self.tail.store(node, Relaxed);
        true
    }

    /// Consumer, which knows of the node otherwise, and has acquired what says so. NULL if there is none.
    fn pop(&self) -> *mut T {
        let dummy = self.head.load(Relaxed);
        // SAFETY: the head is the list's; only this side takes nodes from it.
        let next = unsafe { (*dummy).next.load(Relaxed) };
        if next.is_null() {
            return null_mut();
        }
        self.head.store(next, Relaxed);
        // SAFETY: linked, so the value is there; no thread uses the old dummy any more.
        unsafe {
            let value = (*next).value.load(Relaxed);
            if !self.cache.push(dummy) {
                drop(Box::from_raw(dummy));
            }
            value
        }
    }
}

impl<T> Drop for ListQueue<T> {
    fn drop(&mut self) {
        let mut node = self.head.load(Relaxed);
        while !node.is_null() {
            // SAFETY: both ends are gone; every node is in the list or in the cache, once.
            let this = unsafe { Box::from_raw(node) };
            node = this.next.load(Relaxed);
        }
        loop {
            let node = self.cache.pop();
            if node.is_null() {
                break;
            }
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(node) });
        }
    }
}

/// A value on the heap, or none if the allocator refuses the memory.
fn on_heap<V>(value: V) -> Option<*mut V> {
    let mut one = Vec::new();
    one.try_reserve_exact(1).ok()?;
    one.push(value);
    // An array of one is allocated as the value itself would be.
    Some(Box::into_raw(one.into_boxed_slice()).cast())
}

struct Queue<T> {
    /// The consumer's buffer.
    reading: Padded<AtomicPtr<PtrBuffer<T>>>,
    /// The producer's buffer.
    written: Padded<AtomicPtr<PtrBuffer<T>>>,
    /// Buffers between the two, the producer's included once it differs.
    in_use: ListQueue<PtrBuffer<T>>,
    /// From consumer to producer.
    cache: PtrBuffer<PtrBuffer<T>>,
    /// Pointers in a buffer.
    size: usize,
    items: PhantomData<T>,
}

// SAFETY: boxes move from the producer's thread to the consumer's, hence `T: Send`.
unsafe impl<T: Send> Send for Queue<T> {}
// SAFETY: each end calls its own half of every component, as the handles see to; shared words are atomics.
unsafe impl<T: Send> Sync for Queue<T> {}

impl<T> Queue<T> {
    fn new(size: usize) -> Option<Self> {
        let (in_use, cache) = (ListQueue::new()?, PtrBuffer::new(CACHED)?);
        let first = on_heap(PtrBuffer::new(size)?)?;
        Some(Self {
            reading: Padded(AtomicPtr::new(first)),
            written: Padded(AtomicPtr::new(first)),
            in_use,
            cache,
            size,
            items: PhantomData,
        })
    }

    /// # Safety
    /// Only the producer's thread calls it.
    #[inline(always)]
    unsafe fn push(&self, pointer: *mut T) -> bool {
        if pointer.is_null() {
            return false;
        }
        // SAFETY: the producer's buffer is alive until the consumer has left it for one behind it.
        let mut buffer = unsafe { &*self.written.load(Relaxed) };
        if !buffer.is_initialised() {
            return false;
        }
        if !buffer.available() {
            let Some(next) = self.next_written() else { return false };
            // SAFETY: as above.
            buffer = unsafe { &*next };
        }
        buffer.push(pointer)
    }

    /// An empty buffer for the producer.
    #[cold]
    #[inline(never)]
    fn next_written(&self) -> Option<*mut PtrBuffer<T>> {
        let mut next = self.cache.pop();
        if next.is_null() {
            next = on_heap(PtrBuffer::new(self.size)?)?;
        }
        if !self.in_use.push(next) {
            // SAFETY: new or given back, and in no list.
            drop(unsafe { Box::from_raw(next) });
            return None;
        }
        set_to(&self.written, next);
        Some(next)
    }

    /// NULL if there is none.
    ///
    /// # Safety
    /// Only the consumer's thread calls it.
    #[inline(always)]
    unsafe fn pop(&self) -> *mut T {
        // SAFETY: the consumer's buffer is alive until it leaves it.
        let mut buffer = unsafe { &*self.reading.load(Relaxed) };
        if !buffer.is_initialised() {
            return null_mut();
        }
        if buffer.empty() {
            // SAFETY: as above.
            let Some(next) = (unsafe { self.next_reading() }) else { return null_mut() };
            // SAFETY: as above.
            buffer = unsafe { &*next };
        }
        buffer.pop()
    }

    /// Where to pop from, if anywhere, when the consumer's buffer seems empty.
    ///
    /// # Safety
    /// As [`pop`](Self::pop), whose caller holds no reference to the consumer's buffer.
    #[cold]
    #[inline(never)]
    unsafe fn next_reading(&self) -> Option<*mut PtrBuffer<T>> {
        let here = self.reading.load(Relaxed);
        if look_at(&self.written) == here {
            return None;
        }
        // The producer has left it: now what is in it is all there will ever be. No reference to it lives on: it may be
        // freed below. SAFETY: the consumer's buffer is alive until it leaves it.
        if !unsafe { &*here }.empty() {
            return Some(here);
        }
        let next = self.in_use.pop();
        if next.is_null() {
            return None;
        }
        self.reading.store(next, Relaxed);
        if !self.cache.push(here) {
            // SAFETY: the producer has left it, and so does this side.
            drop(unsafe { Box::from_raw(here) });
        }
        Some(next)
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        loop {
            // SAFETY: both handles are gone.
            let pointer = unsafe { self.pop() };
            if pointer.is_null() {
                break;
            }
            // SAFETY: pushed as a box, and popped once.
            drop(unsafe { Box::from_raw(pointer) });
        }
        // All are empty now: the consumer's, those behind it, and those that are cached.
        let mut buffer = self.reading.load(Relaxed);
        while !buffer.is_null() {
            // SAFETY: every buffer is in one of these places, once.
            drop(unsafe { Box::from_raw(buffer) });
            buffer = self.in_use.pop();
        }
        loop {
            let buffer = self.cache.pop();
            if buffer.is_null() {
                break;
            }
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(buffer) });
        }
    }
}

/// Makes a queue whose buffers hold `size` pointers each.
///
/// # Panics
/// Where [`try_channel`] returns an error.
#[track_caller]
pub fn channel<T: Send>(size: usize) -> (Producer<T>, Consumer<T>) {
    try_channel(size).unwrap_or_else(|error| panic!("{error}"))
}

/// Makes a queue whose buffers hold `size` pointers each.
///
/// # Errors
/// A size of 0, or no memory.
pub fn try_channel<T: Send>(size: usize) -> Result<(Producer<T>, Consumer<T>), ChannelError> {
    if size == 0 {
        return Err(ChannelError::ZeroCapacity);
    }
    let queue = Arc::new(Queue::new(size).ok_or(ChannelError::NoMemory)?);
    Ok((Producer { queue: queue.clone(), one_thread: PhantomData }, Consumer { queue, one_thread: PhantomData }))
}

/// The sending end.
pub struct Producer<T> {
    queue: Arc<Queue<T>>,
    one_thread: PhantomData<Cell<()>>,
}

impl<T> Producer<T> {
    /// Pushes a pointer.
    ///
    /// # Errors
    /// The pointer, if the allocator refused a buffer.
    #[inline]
    pub fn push(&mut self, item: Box<T>) -> Result<(), Box<T>> {
        let pointer = Box::into_raw(item);
        // SAFETY: there is one producer, and it is borrowed here.
        if unsafe { self.queue.push(pointer) } {
            Ok(())
        } else {
            // SAFETY: not pushed, so still ours.
            Err(unsafe { Box::from_raw(pointer) })
        }
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("size", &self.queue.size).finish_non_exhaustive()
    }
}

/// The receiving end.
pub struct Consumer<T> {
    queue: Arc<Queue<T>>,
    one_thread: PhantomData<Cell<()>>,
}

impl<T> Consumer<T> {
    /// Pops the oldest pointer, if there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<Box<T>> {
        // SAFETY: there is one consumer, and it is borrowed here.
        let pointer = unsafe { self.queue.pop() };
        // SAFETY: pushed as a box, and popped once.
        (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("size", &self.queue.size).finish_non_exhaustive()
    }
}
