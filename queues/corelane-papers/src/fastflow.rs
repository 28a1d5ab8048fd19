//! FastFlow's unbounded queue of pointers, as the case study describes it. It is the baseline for
//! [`corelane::spsc::linked`] and [`corelane::spsc::stream`].
//!
//! Source: the case study on FastFlow's queue, with its five components and its list of possible savings. This file was
//! written from that text, not from FastFlow's code.
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
//! 1. `PtrBuffer` (`SWSR_Ptr_Buffer`) is a bounded ring of pointers. NULL marks a free slot, so no index is shared. The
//!    whole buffer is set to NULL when it is allocated, and the consumer sets each slot to NULL when it pops.
//! 2. `ListQueue` (`dynqueue`) is a linked list of nodes. It holds the buffers between the producer's and the
//!    consumer's.
//! 3. The node cache is a `PtrBuffer` through which nodes go back to the producer.
//! 4. The buffer cache is a `PtrBuffer` through which buffers go back to the producer.
//! 5. `Queue` (`uSWSR_Ptr_Buffer`) combines them. The producer pushes into its buffer. When that is full, it takes
//!    another one from the cache or the allocator. The consumer pops from its buffer. When that is empty for good, it
//!    takes the next one from the list.
//!
//! A push meets six conditional branches, as the case study counts them, and so does a pop: two test for NULL, two for
//! a full (an empty) buffer, one for a queue that was not initialised, and one for the end of the ring. From handle to
//! message there are four steps: queue, buffer, slots, message. The compiler removes the checks that it can prove away,
//! because a `Box` is never NULL.
//!
//! # What differs, and why
//!
//! - Slots and the producer's current buffer are stored with release and loaded with acquire. The text assumes x86,
//!   where plain stores and loads have these orders. The links of the list need neither; see "Synchronization".
//! - A pointer is a `Box`, so NULL cannot be pushed, and the items inside are dropped with the queue.
//! - If memory is refused, `push` gives the pointer back.
//!
//! The queue neither waits, closes nor counts: the text has no such functions, and the text is what we measure against.
//!
//! # Synchronization
//!
//! - A slot, store-release (producer) → load-acquire (consumer): the pointer's target is written before it is read.
//!   Store-release of NULL (consumer) → load-acquire (producer): the pointer is read before the slot is written again.
//! - `written`, the producer's buffer, store-release (producer) → load-acquire (consumer): a consumer that finds a
//!   buffer other than its own there sees everything that was pushed into its own. So one more look tells whether its
//!   own buffer is empty for good.
//! - The same edge makes the link to the next buffer, and that buffer's node, visible. So links and nodes are relaxed.
//!   The buffer found in `written` is always a later one: the consumer's buffer is not used a second time before the
//!   consumer has left it, and to get to its buffer the consumer read a `written` at least that late.
//! - The caches are `PtrBuffer`s: they synchronize as a slot does, in the other direction.
//!
//! # Progress
//!
//! Wait-free except for the allocator.
//!
//! # When to use it, and when not
//!
//! Use it only to measure against.
//!
//! # Memory
//!
//! Buffers of `size` pointers, one node a buffer, two caches of 32 entries, and the memory that the pointers lead to.

use corelane::error::ChannelError;
use corelane::papers::{Arc, AtomicPtr, AtomicUsize, look_at, set_to};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::Relaxed;

/// Capacity of each cache. The text gives no number.
const CACHED: usize = if cfg!(corelane_loom) { 2 } else { 32 };

/// Aligned to two cache lines, as everywhere in corelane: the processor fetches a missed line's neighbour along with
/// it.
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
    /// The position that the consumer reads next. Only the consumer uses it.
    read: Padded<AtomicUsize>,
    /// The position that the producer writes next. Only the producer uses it.
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

    /// For the producer: whether the next slot is free.
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
    /// Written before the node is linked, and read after the node was found.
    value: AtomicPtr<T>,
}

/// A linked list of pointers, from one thread to another. Its first node is a dummy.
struct ListQueue<T> {
    /// Used by the consumer only.
    head: Padded<AtomicPtr<Node<T>>>,
    /// Used by the producer only.
    tail: Padded<AtomicPtr<Node<T>>>,
    /// Passes nodes from consumer to producer.
    cache: PtrBuffer<Node<T>>,
}

impl<T> ListQueue<T> {
    fn new() -> Option<Self> {
        let cache = PtrBuffer::new(CACHED)?;
        let dummy = on_heap(Node { next: AtomicPtr::new(null_mut()), value: AtomicPtr::new(null_mut()) })?;
        Some(Self { head: Padded(AtomicPtr::new(dummy)), tail: Padded(AtomicPtr::new(dummy)), cache })
    }

    /// For the producer. Returns false if the allocator refuses a node.
    fn push(&self, value: *mut T) -> bool {
        let mut node = self.cache.pop();
        if node.is_null() {
            let made = on_heap(Node { next: AtomicPtr::new(null_mut()), value: AtomicPtr::new(null_mut()) });
            let Some(made) = made else { return false };
            node = made;
        }
        // SAFETY: the node is new, or the consumer gave it back, so it is ours until it is linked. The tail is in the
        // list.
        unsafe {
            (*node).next.store(null_mut(), Relaxed);
            (*node).value.store(value, Relaxed);
            // Only a consumer that has acquired `written` follows this link, and `written` is stored after it.
            (*self.tail.load(Relaxed)).next.store(node, Relaxed);
        }
        self.tail.store(node, Relaxed);
        true
    }

    /// For the consumer, which has acquired `written` and so knows that a node is there. Returns NULL if there is none.
    fn pop(&self) -> *mut T {
        let dummy = self.head.load(Relaxed);
        // SAFETY: the head is in the list, and only this side takes nodes from the list.
        let next = unsafe { (*dummy).next.load(Relaxed) };
        if next.is_null() {
            return null_mut();
        }
        self.head.store(next, Relaxed);
        // SAFETY: the node was linked, so its value is there. No thread uses the old dummy any more.
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
            // SAFETY: both ends are gone. Every node is in the list or in the cache, once.
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

/// Moves a value to the heap. `None` if the allocator refuses the memory.
fn on_heap<V>(value: V) -> Option<*mut V> {
    let mut one = Vec::new();
    one.try_reserve_exact(1).ok()?;
    one.push(value);
    // An array of one element is allocated exactly like the element itself.
    Some(Box::into_raw(one.into_boxed_slice()).cast())
}

struct Queue<T> {
    /// The consumer's buffer.
    reading: Padded<AtomicPtr<PtrBuffer<T>>>,
    /// The producer's buffer.
    written: Padded<AtomicPtr<PtrBuffer<T>>>,
    /// The buffers behind the consumer's, up to and including the producer's.
    in_use: ListQueue<PtrBuffer<T>>,
    /// Passes buffers from consumer to producer.
    cache: PtrBuffer<PtrBuffer<T>>,
    /// How many pointers a buffer holds.
    size: usize,
    items: PhantomData<T>,
}

// SAFETY: boxes move from the producer's thread to the consumer's, hence `T: Send`.
unsafe impl<T: Send> Send for Queue<T> {}
// SAFETY: each end calls only its own half of every component, as the handles guarantee. Shared words are atomics.
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
        // SAFETY: the producer's buffer is alive until the consumer has left it for a later one.
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

    /// Gets an empty buffer for the producer, and publishes it in `written`.
    #[cold]
    #[inline(never)]
    fn next_written(&self) -> Option<*mut PtrBuffer<T>> {
        let mut next = self.cache.pop();
        if next.is_null() {
            next = on_heap(PtrBuffer::new(self.size)?)?;
        }
        if !self.in_use.push(next) {
            // SAFETY: the buffer is new or was given back, and is in no list.
            drop(unsafe { Box::from_raw(next) });
            return None;
        }
        set_to(&self.written, next);
        Some(next)
    }

    /// Pops a pointer, or NULL if there is none.
    ///
    /// # Safety
    /// Only the consumer's thread calls it.
    #[inline(always)]
    unsafe fn pop(&self) -> *mut T {
        // SAFETY: the consumer's buffer is alive until the consumer leaves it.
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

    /// Finds the buffer to pop from when the consumer's buffer seems empty. `None` if there is nothing to pop.
    ///
    /// # Safety
    /// As for [`pop`](Self::pop). The caller holds no reference to the consumer's buffer.
    #[cold]
    #[inline(never)]
    unsafe fn next_reading(&self) -> Option<*mut PtrBuffer<T>> {
        let here = self.reading.load(Relaxed);
        if look_at(&self.written) == here {
            return None;
        }
        // The producer has left this buffer, so nothing more will come into it. No reference to it lives on, because it
        // may be freed below. SAFETY: the consumer's buffer is alive until the consumer leaves it.
        if !unsafe { &*here }.empty() {
            return Some(here);
        }
        let next = self.in_use.pop();
        if next.is_null() {
            return None;
        }
        self.reading.store(next, Relaxed);
        if !self.cache.push(here) {
            // SAFETY: the producer has left the buffer, and so does the consumer here.
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
            // SAFETY: the pointer was pushed as a box, and is popped once.
            drop(unsafe { Box::from_raw(pointer) });
        }
        // All buffers are empty now: the consumer's, those behind it, and those in the cache.
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
/// If [`try_channel`] returns an error.
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
    /// The allocator refused a buffer. The pointer comes back.
    #[inline]
    pub fn push(&mut self, item: Box<T>) -> Result<(), Box<T>> {
        let pointer = Box::into_raw(item);
        // SAFETY: there is one producer, and it is borrowed mutably here.
        if unsafe { self.queue.push(pointer) } {
            Ok(())
        } else {
            // SAFETY: the pointer was not pushed, so it is still ours.
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
        // SAFETY: there is one consumer, and it is borrowed mutably here.
        let pointer = unsafe { self.queue.pop() };
        // SAFETY: the pointer was pushed as a box, and is popped once.
        (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("size", &self.queue.size).finish_non_exhaustive()
    }
}
