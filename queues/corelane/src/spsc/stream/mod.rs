//! An unbounded queue of byte messages of any length. The bytes lie in the queue, so a message costs no allocation.
//!
//! ```
//! use corelane::spsc::stream;
//!
//! let (mut producer, mut consumer) = stream::channel();
//! producer.push(b"whole").unwrap();
//!
//! // In place: code that fills memory fills the queue's own.
//! let mut reserved = producer.reserve(100).unwrap();
//! assert_eq!((reserved.append(b"in "), reserved.append(b"parts")), (3, 5));
//! reserved.commit_written().unwrap();
//!
//! assert_eq!(consumer.pop().unwrap(), b"whole");
//! assert_eq!(&*consumer.peek().unwrap(), b"in parts");
//! assert_eq!(consumer.try_pop().unwrap(), b"in parts");
//! ```
//!
//! # Promises
//!
//! - **Order.** First in, first out; each message whole and once.
//! - **Alignment.** A message's bytes are aligned to [`ALIGN`].
//! - **Progress.** Wait-free but for the allocator, see [`linked`](super::linked). `close` and `bytes` of the consumer
//!   look at each message of one segment.
//! - **Memory.** 132 kB at first. A message takes 8 bytes and its length rounded up to 8. Segments are as in
//!   [`linked`](super::linked): two at first, at most [`Tuning::cached`] kept. A segment that was made for a large
//!   message is freed when it is left.
//!
//! # When to use it, and when not
//!
//! Use it for anything that is bytes already, or soon will be: records, packets, log lines, serialised requests. Use it
//! also for small items of mixed types.
//!
//! Do not use it to hand on a large buffer that the next stage only reads: that copies where a pointer would do. Send
//! boxes through a [`lane`](super::lane) or [`linked`](super::linked) there.
//!
//! # How it works
//!
//! Source: the case study on FastFlow's queue, its `ff_queue`: "if one needs to stream the data, do stream the data".
//! The sketch in the text has the layout. Closing, waiting, the byte limit, batches and memory that is given back are
//! ours.
//!
//! 1. A segment is a run of 8-byte words. A message is a header word and its bytes behind it, rounded up to words.
//! 2. A header is 0 where nothing is published yet, or the message's length plus one. The producer writes the message
//!    and a 0 into the header behind it, and then its own header: after that the message can be read. So a message
//!    costs one publication and no shared index. The header lies in the cache line of the bytes, and nothing is ever
//!    cleared beyond the next word.
//! 3. The consumer reads the header where it stands, one branch a message, and steps over the message.
//! 4. A message that does not fit into the rest of a segment goes to the next one. The producer takes the oldest
//!    segment that the consumer has left, or a new one, links it, and writes a header that says so. A message larger
//!    than a segment gets one of its own. The consumer follows, and gives the segment that it leaves back or frees it,
//!    as in [`linked`](super::linked).
//! 5. A batch is written message by message, but the first header last: one publication shows all of it.
//! 6. With a limit the producer counts words. It learns from `consumed` of those that were popped. The consumer
//!    publishes `consumed` for every eighth of the limit and before it says Empty. What the producer may still write is
//!    folded into the end of the segment. What the consumer may read before it publishes or is sealed is folded into
//!    one pointer. So there is still one comparison on each side.
//! 7. What happens once a segment or less is done in a call that gets an end's place by value and gives it back, as in
//!    the [`lane`](super::lane). A handle whose address no call ever gets lives in registers.
//!
//! There is no exact position of the producer in a word of its own. It would answer at once what
//! [`close`](Consumer::close) and [`bytes`](Consumer::bytes) look for in the producer's segment, header by header; but
//! they are rare, and each message would pay.
//!
//! # Synchronization
//!
//! - A header, store-release (producer) → load-acquire (consumer): the bytes behind it, the 0 behind those, and
//!   everything written before it are there when it is read. A link is stored before the header that says to follow it.
//! - `tail`, store-release (producer) → load-acquire (consumer): as in [`linked`](super::linked), and stored before the
//!   same header.
//! - A segment on its way back: as in [`linked`](super::linked).
//! - `consumed`, store-release (consumer) → load-acquire (producer): what was done before a pop is visible after the
//!   push that it made room for. Nothing in here needs that: memory is reused only by segments.
//! - Parking and closing: see [`crate::wait`]. A producer that finds the queue closed takes back what lies behind the
//!   seal.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `body.rs` | the format of the memory, and what both ends share |
//! | `tx.rs`, `rx.rs` | the halves: where an end stands, how far it may go, what it lends |
//! | `producer.rs`, `consumer.rs` | the handles and their guards |
//! | `error.rs`, `io.rs` | why a push was refused; a sink and a source of bytes |

mod body;
mod consumer;
mod error;
#[cfg(feature = "std")]
mod io;
mod producer;
mod rx;
mod tx;

use super::design::Shared;
use super::handle::Options;
use super::stats::Recorder;
use crate::end::Control;
use crate::error::ChannelError;
use crate::mem::segments::Pool;
use crate::sync::{AtomicPtr, AtomicUsize, Padded, Relaxed, UnsafeCell};
use crate::wait::Strategy;
use body::{Body, EMPTY, PopSide, PushSide, UNLIMITED, Word, first_word, header, last_word, run_end};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use rx::Rx;
use tx::Tx;

pub use body::ALIGN;
pub use consumer::{Consumer, Messages, Peeked};
pub use error::{PushBatchError, PushError};
#[cfg(feature = "std")]
pub use io::{Reader, Writer};
pub use producer::{Producer, Reserved};

super::tuning! {
    /// How memory is held, and how much.
    ///
    /// ```
    /// use corelane::spsc::Options;
    /// use corelane::spsc::stream::{self, PushError, Tuning};
    ///
    /// let tuning = Tuning::new().segment(4096).cached(2).limit(1000);
    /// let (mut producer, _consumer) = stream::channel_with(Options::new().tuning(tuning))?;
    /// assert_eq!(producer.limit(), Some(1000));
    /// // The largest message within the limit, and one that is longer.
    /// assert_eq!(producer.try_push(&[0; 993]), Err(PushError::TooLarge));
    /// assert_eq!(producer.try_push(&[0; 992]), Ok(()));
    /// # Ok::<(), corelane::error::ChannelError>(())
    /// ```
    pub struct Tuning {
        /// Bytes in a segment, rounded up to whole words. At least 1; by default 64 KiB.
        segment(bytes: usize),
        /// How many unused segments are kept. At least 1; by default 4.
        cached(segments: usize),
        /// The most bytes that messages inside may take up, each its length rounded up to 8 plus 8. At least 16; by
        /// default there is no limit but memory. The producer learns of popped messages a little late: the consumer
        /// tells of them when it looks for the next one, once they are an eighth of the limit, or there is none.
        limit(bytes: usize),
    }
}

const SEGMENT_BYTES: usize = 64 * 1024;
const CACHED: usize = if cfg!(corelane_loom) { 2 } else { 4 };

/// Makes a queue with the defaults: 132 kB at first, in two segments, which [`Tuning::segment`] makes smaller. With
/// segments of 256 bytes it is 2 kB; a longer message has a segment of its own.
///
/// # Panics
/// Where [`try_channel`] returns an error.
///
/// ```
/// let (mut producer, mut consumer) = corelane::spsc::stream::channel();
/// producer.push(b"a message").unwrap();
/// assert_eq!(consumer.pop().unwrap(), b"a message");
/// ```
#[track_caller]
pub fn channel() -> (Producer, Consumer) {
    crate::error::made(try_channel())
}

/// Makes a queue with the defaults.
///
/// # Errors
/// No memory.
///
/// ```
/// let (mut producer, mut consumer) = corelane::spsc::stream::try_channel()?;
/// producer.push(b"a message").unwrap();
/// assert_eq!(consumer.pop().unwrap(), b"a message");
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
pub fn try_channel() -> Result<(Producer, Consumer), ChannelError> {
    channel_with(Options::default())
}

/// Makes a queue.
///
/// # Errors
/// Segments of nothing, none to be cached, a limit that no message fits in, or no memory.
///
/// ```
/// use corelane::spsc::{Options, stream};
/// use corelane::wait::Spin;
///
/// let options = Options::new().tuning(stream::Tuning::new().limit(1 << 20)).wait(Spin);
/// let (mut producer, mut consumer) = stream::channel_with(options)?;
/// producer.push(b"a message").unwrap();
/// assert_eq!(consumer.pop().unwrap(), b"a message");
/// # Ok::<(), corelane::error::ChannelError>(())
/// ```
#[expect(clippy::type_complexity, reason = "a pair of handles is what the reader looks for")]
pub fn channel_with<W: Strategy, S: Recorder>(
    options: Options<Tuning, W, S>,
) -> Result<(Producer<W, S>, Consumer<W, S>), ChannelError> {
    let Tuning { segment, cached, limit } = options.tuning;
    if segment == Some(0) || cached == Some(0) {
        return Err(ChannelError::BadSegment);
    }
    let limit = limit.map_or(UNLIMITED, |bytes| (bytes / ALIGN).min(UNLIMITED));
    if limit < 2 {
        return Err(ChannelError::ZeroCapacity);
    }
    // Room for a message of a word at least, and for the header behind it.
    let words = segment.unwrap_or(SEGMENT_BYTES).div_ceil(ALIGN).max(3);
    let bytes = words.checked_mul(size_of::<Word>()).ok_or(ChannelError::TooLarge)?;
    let pool = Pool::new(bytes, cached.unwrap_or(CACHED))?;
    let segment = pool.allocate_touched()?;
    let start = options.start;
    let release_every = if limit == UNLIMITED { UNLIMITED } else { limit / 8 };
    let body = Body {
        pool,
        limit,
        release_every,
        consumed: Padded(AtomicUsize::new(start)),
        tail: Padded(AtomicPtr::new(segment)),
        writer: Padded(UnsafeCell::new(PushSide { segment, turn: 0 })),
        reader: Padded(UnsafeCell::new(PopSide { segment, turn: 0, released: start, sealed: None })),
    };
    // From here on the body frees the first segment.
    let spare = body.pool.allocate_touched()?;
    let turn = body.pool.keep_first(spare);
    let first = first_word(segment);
    // SAFETY: the segment is alive, and no other thread knows it or the body.
    let stop = unsafe {
        (*segment).base.store(start, Relaxed);
        header(first).store(EMPTY, Relaxed);
        body.reader.with_mut(|reader| {
            (*reader).turn = turn;
            body.stop(&*reader)
        })
    };
    let control = Control::new();
    // A clone that panics leaves no queue behind: from the handles on nothing does.
    let wait = options.wait.clone();
    let shared = Shared::new(control, body);
    let end = run_end(first, last_word(segment), limit);
    let tx = Tx { at: first, end, shared: shared.clone() };
    let rx = Rx {
        at: first,
        stop,
        #[cfg(corelane_loom)]
        lent: alloc::vec::Vec::new(),
        shared,
    };
    let (tx, rx) = (ManuallyDrop::new(tx), ManuallyDrop::new(rx));
    let producer = Producer { raw: tx, wait, stats: S::default(), one_thread: PhantomData };
    Ok((producer, Consumer { raw: rx, wait: options.wait, stats: S::default(), one_thread: PhantomData }))
}
