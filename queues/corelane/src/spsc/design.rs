//! What an algorithm has to provide. Everything of the contract that is the same for every queue (waiting, time-outs,
//! closing, batches, guards, drops of handles) is written once, in [`handle`](super::handle), over these traits.

use crate::end::Control;
use crate::error::ChannelError;
use crate::sync::{Arc, Slot};
use core::fmt::Debug;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr;

/// A single-producer single-consumer queue algorithm, as a type parameter of the handles.
///
/// Sealed: the contract rests on what the implementations promise each other.
pub trait Design<T>: sealed::Sealed + Sized + 'static {
    /// The algorithm's own options.
    type Tuning: Clone + Debug + Default;
    #[doc(hidden)]
    type Producer: RawProducer<T>;
    #[doc(hidden)]
    type Consumer: RawConsumer<T>;

    #[doc(hidden)]
    fn create(request: Request<'_, Self::Tuning>) -> Result<(Self::Producer, Self::Consumer), ChannelError>;

    /// How many slots a queue of this capacity and tuning may withhold: `try_push` may say Full although up to this
    /// many fewer than `capacity` items are inside. 0 below capacity 64, at most capacity / 8 above.
    fn release_lag(capacity: usize, tuning: &Self::Tuning) -> usize;
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// What [`Design::create`] is asked for.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "on its way into a queue")]
pub struct Request<'a, O> {
    pub(crate) capacity: usize,
    /// No more memory than the capacity needs, for a lane; others take no notice of it.
    pub(crate) compact: bool,
    pub(crate) tuning: &'a O,
    pub(crate) control: Control,
    /// Where the indices start, so that tests reach their wrap-around.
    pub(crate) start: usize,
}

/// The producer's half of an algorithm.
///
/// A push is `writable() > 0`, a write to `slot(0)`, `publish(1)`.
///
/// # Safety
///
/// Implementors promise that between a call of `writable` that returned n and the next `publish`, the producer alone
/// may access `slot(i)` for i < n, and that an access of the consumer to an item happens after the `publish` that
/// covered it.
#[doc(hidden)]
pub unsafe trait RawProducer<T>: Send {
    /// The usual length of an adjacent run where there is one, so that its copy needs no call; 0 otherwise.
    const RUN: usize = 0;

    /// How many items may be written now without another look at the consumer: 0 only if the queue is full up to its
    /// `release_lag`, or halted.
    fn writable(&mut self) -> usize;

    /// Whether [`writable`](Self::writable) is not 0.
    #[inline(always)]
    fn is_writable(&mut self) -> bool {
        self.writable() != 0
    }

    /// How many of the first n writable slots lie side by side in memory.
    fn adjacent(&self, n: usize) -> usize;

    /// The i-th slot of the current run. A pointer, because it also leads to the slots [adjacent](Self::adjacent) to
    /// it.
    ///
    /// # Safety
    /// `i` is below what the last `writable` returned, less what was published since.
    unsafe fn slot(&self, i: usize) -> *const Slot<T>;

    /// Hands the first n written slots of the run to the consumer.
    ///
    /// # Safety
    /// They hold items, and n is at most what `slot` allows.
    unsafe fn publish(&mut self, n: usize);

    /// Moves items from the memory at `from` into free slots and hands them over, as many as can be without another
    /// look at the consumer, but at most `most`: none only if nothing is writable.
    ///
    /// # Safety
    /// There are `most` items at `from`, and those that are not [taken back](Self::retract) are the queue's from now
    /// on.
    #[inline(always)]
    unsafe fn publish_moved(&mut self, from: *const T, most: usize) -> usize {
        let n = self.writable().min(most);
        let n = self.adjacent(n);
        if n > 0 {
            // SAFETY: `n` slots are writable and side by side; the source cannot overlap them, because no reference to
            // a slot exists. The rest is the caller's promise.
            unsafe {
                copy_in(self.slot(0), from, n, Self::RUN);
                self.publish(n);
            }
        }
        n
    }

    /// Takes back the last n items that were published. If one `publish` published them, they are then in `slot(0..n)`
    /// and belong to the caller.
    ///
    /// # Safety
    /// n is at most the size of the last `publish` or `publish_moved`, and the consumer has decided a seal before these
    /// items.
    unsafe fn retract(&mut self, n: usize);

    /// From now on `writable` returns 0.
    fn halt(&mut self);

    /// Items published since the queue was made, plus the start, wrapping.
    fn position(&self) -> usize;

    /// An upper bound of the number of items inside, at most `capacity`.
    fn len(&self) -> usize;

    fn capacity(&self) -> usize;

    fn control(&self) -> &Control;

    /// Closes the queue and drops this half.
    ///
    /// # Safety
    /// This half is not used afterwards, nor dropped.
    unsafe fn retire(&mut self)
    where
        Self: Sized,
    {
        self.control().close_by_producer();
        // SAFETY: the caller's.
        unsafe { ptr::drop_in_place(self) };
    }
}

/// The consumer's half of an algorithm.
///
/// A pop is `readable() > 0`, a read of `slot(0)`, `release(1)`.
///
/// # Safety
///
/// Implementors promise that `slot(i)` for i below what `readable` returned holds a published item until it is
/// released, and that the producer writes there again only after the release.
#[doc(hidden)]
pub unsafe trait RawConsumer<T>: Send {
    /// As for [`RawProducer::RUN`].
    const RUN: usize = 0;

    /// How many items may be read now without another look at the producer: 0 only if every push that returned before
    /// the call has been popped. Before it returns 0 it publishes every slot it has freed.
    fn readable(&mut self) -> usize;

    /// Whether [`readable`](Self::readable) is not 0.
    #[inline(always)]
    fn is_readable(&mut self) -> bool {
        self.readable() != 0
    }

    /// How many of the first n readable items lie side by side in memory.
    fn adjacent(&self, n: usize) -> usize;

    /// The i-th item of the current run. A pointer, because it also leads to the items [adjacent](Self::adjacent) to
    /// it.
    ///
    /// # Safety
    /// `i` is below what the last `readable` returned, less what was released since.
    unsafe fn slot(&self, i: usize) -> *const Slot<T>;

    /// Frees the first n slots of the run, whose items the caller has taken.
    ///
    /// # Safety
    /// n is at most what `slot` allows.
    unsafe fn release(&mut self, n: usize);

    /// Moves items to the memory at `to` and frees their slots, as many as can be without another look at the producer,
    /// but at most `most`: none only if nothing is readable.
    ///
    /// # Safety
    /// There is room for `most` items, and what was moved there is owned by the caller.
    #[inline(always)]
    unsafe fn release_moved(&mut self, to: *mut MaybeUninit<T>, most: usize) -> usize {
        let n = self.readable().min(most);
        let n = self.adjacent(n);
        if n > 0 {
            // SAFETY: `n` items are readable side by side; the rest is the caller's promise.
            unsafe {
                copy_out(self.slot(0), to, n, Self::RUN);
                self.release(n);
            }
        }
        n
    }

    /// Moves items to `each`, one by one, and frees their slots: as many as can be without another look at the
    /// producer, but at most `most`, and none only if nothing is readable or `most` is 0. If `each` panics, what it was
    /// given is popped, and no more.
    #[inline(always)]
    fn release_each(&mut self, most: usize, each: &mut impl FnMut(T)) -> usize
    where
        Self: Sized,
    {
        release_each(self, most, each)
    }

    /// [`Stats::taken`](super::stats::Stats::taken) and [`abstains`](super::stats::Stats::abstains).
    fn pace(&self) -> (usize, u32) {
        (0, 0)
    }

    /// Items popped since the queue was made, plus the start, wrapping.
    fn position(&self) -> usize;

    /// A lower bound of the number of items inside: exactly those whose push returned before the call, or more.
    fn len(&self) -> usize;

    /// From now on `readable` covers what is published now and nothing later. Returns the position behind the last of
    /// it. Called once more where the producer has published, and decided the seal, meanwhile: then that is what it
    /// covers.
    fn seal(&mut self) -> usize;

    fn capacity(&self) -> usize;

    fn control(&self) -> &Control;

    /// Closes the queue, unless this half has sealed it, and drops this half.
    ///
    /// # Safety
    /// This half is not used afterwards, nor dropped.
    unsafe fn retire(&mut self)
    where
        Self: Sized,
    {
        let position = self.position();
        self.control().close_by_consumer(position);
        // SAFETY: the caller's.
        unsafe { ptr::drop_in_place(self) };
    }
}

/// Slots are given back in runs of so many items at most while a caller is given one item after the other.
const GIVEN: usize = 32;

/// [`RawConsumer::release_each`], by its other calls.
#[inline(always)]
pub(super) fn release_each<T, R: RawConsumer<T>>(raw: &mut R, most: usize, each: &mut impl FnMut(T)) -> usize {
    let run = raw.readable().min(most).min(GIVEN);
    let run = raw.adjacent(run);
    let mut given = Given { raw, count: 0, items: PhantomData };
    for i in 0..run {
        given.count += 1;
        // SAFETY: readable, and counted as popped before anything can fail.
        each(unsafe { (*given.raw.slot(i)).with(|slot| (*slot).assume_init_read()) });
    }
    run
}

/// Items of a run that were moved out of their slots; releases these.
struct Given<'a, T, R: RawConsumer<T>> {
    raw: &'a mut R,
    count: usize,
    items: PhantomData<T>,
}

impl<T, R: RawConsumer<T>> Drop for Given<'_, T, R> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: so many items were readable, and have been moved out.
        unsafe { self.raw.release(self.count) };
    }
}

/// The memory both halves share; the last handle frees it and drops what is still inside.
pub(crate) struct Shared<B> {
    pub(crate) control: Control,
    pub(crate) body: B,
}

impl<B> Shared<B> {
    pub(crate) fn new(control: Control, body: B) -> Arc<Self> {
        Arc::new(Self { control, body })
    }
}

/// Moves `count` items into slots that lie side by side. Whole runs of a length known at compile time become a few
/// moves instead of a call.
///
/// # Safety
/// So many slots from `first` on are writable and adjacent, there are so many items at `from`, and only one of the
/// copies is used.
#[inline(always)]
pub(super) unsafe fn copy_in<T>(first: *const Slot<T>, from: *const T, count: usize, run: usize) {
    #[cfg(not(corelane_loom))]
    crate::sync::writes(first, count);
    #[cfg(not(corelane_loom))]
    // SAFETY: outside of loom a slot is nothing but the item's memory; the rest is the caller's promise.
    unsafe {
        copy(from, first.cast::<T>().cast_mut(), count, run);
    }
    #[cfg(corelane_loom)]
    for i in 0..count {
        // SAFETY: the caller's promise.
        unsafe { (*first.add(i)).with_mut(|slot| (*slot).write(ptr::read(from.add(i)))) };
    }
    #[cfg(corelane_loom)]
    let _ = run;
}

/// Copies `count` items; `run` is how many they usually are.
///
/// It makes no call where there are few: a batch that begins or ends inside a block would make one for the sake of a
/// few words.
///
/// # Safety
/// As for [`ptr::copy_nonoverlapping`].
#[cfg(not(corelane_loom))]
#[inline(always)]
unsafe fn copy<T>(from: *const T, to: *mut T, count: usize, run: usize) {
    // SAFETY: the caller's; the pieces of a count below 16 add up to it.
    unsafe {
        if count == run {
            to.copy_from_nonoverlapping(from, run);
        } else if count < run && run <= 16 && size_of::<T>() <= 16 {
            let mut done = 0;
            let mut piece = |length: usize| {
                if count & length != 0 {
                    to.add(done).copy_from_nonoverlapping(from.add(done), length);
                    done += length;
                }
            };
            piece(8);
            piece(4);
            piece(2);
            piece(1);
        } else {
            to.copy_from_nonoverlapping(from, count);
        }
    }
}

/// Moves items out of slots that lie side by side.
///
/// # Safety
/// The slots from `first` on hold `count` adjacent items, `to` has room for them, and only one of the copies is used.
#[inline(always)]
pub(super) unsafe fn copy_out<T>(first: *const Slot<T>, to: *mut MaybeUninit<T>, count: usize, run: usize) {
    #[cfg(not(corelane_loom))]
    crate::sync::reads(first, count);
    #[cfg(not(corelane_loom))]
    // SAFETY: outside of loom a slot is nothing but the item's memory; the rest is the caller's promise.
    unsafe {
        copy(first.cast(), to, count, run);
    }
    #[cfg(corelane_loom)]
    for i in 0..count {
        // SAFETY: the caller's promise.
        unsafe { to.add(i).write(MaybeUninit::new((*first.add(i)).with(|slot| (*slot).assume_init_read()))) };
    }
    #[cfg(corelane_loom)]
    let _ = run;
}
