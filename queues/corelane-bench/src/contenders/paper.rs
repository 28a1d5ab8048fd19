//! The published designs as printed, under their papers' names. `capacity` is the number of slots, as in the papers.
//! Most rings hold one item fewer.

use crate::contender::{Ends, Kind, Pair, Unable};
use crate::item::Item;
use corelane::error::ChannelError;
use corelane_papers::b_queue::{self, Adaptive, Backtracking, NoBacktracking, Parameters, Plain};
use corelane_papers::fast_forward::{self, Baseline, Slip, Tuned};
use corelane_papers::mcring_timer::Timer;
use corelane_papers::{Dequeue, Enqueue, basic_ring, lock_ring, mcring, mcring_callback, mcring_timer};
use std::marker::PhantomData;
use std::num::NonZero;
use std::sync::{Arc, Mutex, Weak};

fn refused(error: ChannelError) -> Unable {
    Unable::because(error.to_string())
}

/// A paper form that takes any item.
macro_rules! form {
    ($(#[$doc:meta])* $name:ident $(<$batch:ident>)?, $label:expr, $module:ident, ($($argument:expr),*)) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name $(<const $batch: usize>)?;

        impl<T: Item $(, const $batch: usize)?> Pair<T> for $name $(<$batch>)? {
            const KIND: Kind = Kind::Paper;
            $(const GRAIN: u64 = $batch as u64;)?
            type Tx = $module::Producer<T>;
            type Rx = $module::Consumer<T>;

            fn name() -> String {
                $label.to_string()
            }

            fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
                $module::channel(capacity $(, $argument)*).map_err(refused)
            }

            #[inline(always)]
            fn try_push(tx: &mut Self::Tx, item: T) -> bool {
                tx.enqueue(item).is_ok()
            }

            #[inline(always)]
            fn try_pop(rx: &mut Self::Rx) -> Option<T> {
                rx.dequeue()
            }
        }
    };
}

form!(
    /// A ring under a spin lock.
    LockRingBuffer,
    "LockRingBuffer",
    lock_ring,
    ()
);
form!(
    /// Lamport's queue.
    BasicRingBuffer,
    "BasicRingBuffer",
    basic_ring,
    ()
);
form!(
    /// MCRingBuffer: `MCRingBuffer(deadlock)` of the B-Queue paper.
    McRingBuffer<BATCH>,
    format!("MCRingBuffer, batch {BATCH}"),
    mcring,
    (BATCH)
);

/// MCRingBuffer with deadlock prevention method 3, `MCRingBuffer(sane)`: on a timer the producer injects unused items.
#[derive(Debug)]
pub(crate) struct McRingBufferSane<const BATCH: usize>;

/// The producer, and the timer that runs as long as the producer exists.
pub(crate) struct Sane<T> {
    producer: mcring_timer::Producer<T>,
    _timer: Arc<Timer>,
}

/// The timer of the queues that exist, or a new one.
fn running_timer() -> Result<Arc<Timer>, Unable> {
    static RUNNING: Mutex<Weak<Timer>> = Mutex::new(Weak::new());
    let mut running = RUNNING.lock().expect("no panic with it locked");
    if let Some(timer) = running.upgrade() {
        return Ok(timer);
    }
    let timer = Arc::new(Timer::start(Timer::PAPER_PERIOD).map_err(|error| Unable::because(error.to_string()))?);
    *running = Arc::downgrade(&timer);
    Ok(timer)
}

impl<T: Item, const BATCH: usize> Pair<T> for McRingBufferSane<BATCH> {
    const KIND: Kind = Kind::Paper;
    const GRAIN: u64 = BATCH as u64;
    const HAS_A_THREAD: bool = true;
    type Tx = Sane<T>;
    type Rx = mcring_timer::Consumer<T>;

    fn name() -> String {
        format!("MCRingBuffer(sane), batch {BATCH}")
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        let mut pairs = <Self as Pair<T>>::pairs(1, capacity)?;
        Ok(pairs.remove(0))
    }

    /// One timer signals all queues of a system.
    fn pairs(queues: usize, capacity: usize) -> Result<Vec<Ends<Self, T>>, Unable> {
        let timer = running_timer()?;
        let pair = |_| {
            let (producer, consumer) = mcring_timer::channel(capacity, BATCH, timer.signal()).map_err(refused)?;
            Ok((Sane { producer, _timer: timer.clone() }, consumer))
        };
        (0..queues).map(pair).collect()
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: T) -> bool {
        tx.producer.enqueue(item).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<T> {
        rx.dequeue()
    }

    fn flush(tx: &mut Self::Tx) -> bool {
        tx.producer.flush()
    }
}

/// MCRingBuffer with deadlock prevention method 4: a thread that finds no item flushes its outgoing queues.
#[derive(Debug)]
pub(crate) struct McRingBufferCallback<const BATCH: usize>;

impl<T: Item, const BATCH: usize> Pair<T> for McRingBufferCallback<BATCH> {
    const KIND: Kind = Kind::Paper;
    const GRAIN: u64 = BATCH as u64;
    type Tx = mcring_callback::Producer<T>;
    type Rx = mcring_callback::Consumer<T>;

    fn name() -> String {
        format!("MCRingBuffer, batch {BATCH}, method 4")
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        mcring_callback::channel(capacity, BATCH).map_err(refused)
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: T) -> bool {
        tx.enqueue(item).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<T> {
        rx.dequeue()
    }

    #[inline(always)]
    fn poll(rx: &mut Self::Rx, flush_outgoing: impl FnOnce()) -> Option<T> {
        rx.dequeue_or(flush_outgoing)
    }

    fn flush(tx: &mut Self::Tx) -> bool {
        tx.flush()
    }
}

/// A bit that no number uses. Queues of words that are not 0 carry each number with this bit set.
const NOT_NULL: u64 = 1 << 63;

#[inline(always)]
fn word(number: u64) -> NonZero<usize> {
    // The compiler sees that this is not 0.
    NonZero::new((number | NOT_NULL) as usize).unwrap_or(NonZero::<usize>::MIN)
}

#[inline(always)]
fn number(word: NonZero<usize>) -> u64 {
    word.get() as u64 & !NOT_NULL
}

/// The MCRingBuffer paper's baseline: FastForward without slip, and with both indices on one line.
#[derive(Debug)]
pub(crate) struct FastForward;

impl Pair<u64> for FastForward {
    const KIND: Kind = Kind::Paper;
    type Tx = fast_forward::Producer<Baseline>;
    type Rx = fast_forward::Consumer<Baseline>;

    fn name() -> String {
        "FastForward".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        fast_forward::baseline(capacity).map_err(refused)
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: u64) -> bool {
        tx.enqueue(word(item)).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<u64> {
        rx.dequeue().map(number)
    }
}

/// FastForward as the B-Queue paper measures it: padded, with a slip that is [tuned](crate::slip) for the machine.
#[derive(Debug)]
pub(crate) struct FastForwardTuned;

/// The slip of the queues that are made next. It belongs to the machine, so it cannot be part of a type.
static SLIP: Mutex<Slip> = Mutex::new(Slip::suggested(0, 64));

impl FastForwardTuned {
    /// Sets the slip of the queues that are made from now on.
    pub(crate) fn slip(slip: Slip) {
        *SLIP.lock().expect("no thread panics with a slip") = slip;
    }
}

impl Pair<u64> for FastForwardTuned {
    const KIND: Kind = Kind::Paper;
    type Tx = fast_forward::Producer<Tuned>;
    type Rx = fast_forward::Consumer<Tuned>;

    fn name() -> String {
        "FastForward, tuned slip".to_owned()
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        fast_forward::tuned(capacity, *SLIP.lock().expect("no thread panics with a slip")).map_err(refused)
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: u64) -> bool {
        tx.enqueue(word(item)).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<u64> {
        rx.dequeue().map(number)
    }
}

/// A B-Queue consumer's backtracking, with a name.
pub(crate) trait Mode: Backtracking + Send + 'static {
    const NAME: &'static str;
    /// Whether a consumer also finds less than a batch.
    const FINDS_ALL: bool;
}

impl Mode for NoBacktracking {
    const NAME: &'static str = "no backtracking";
    const FINDS_ALL: bool = false;
}

impl Mode for Plain {
    const NAME: &'static str = "plain backtracking";
    const FINDS_ALL: bool = true;
}

impl Mode for Adaptive {
    const NAME: &'static str = "adaptive";
    const FINDS_ALL: bool = true;
}

/// B-Queue with this kind of backtracking, batches of `BATCH` and `TICKS` cycles between two probes.
#[derive(Debug)]
pub(crate) struct PaperBQueue<M, const BATCH: usize = 256, const TICKS: u32 = 2000>(PhantomData<M>);

/// With self-adaptive backtracking and the paper's parameters.
pub(crate) type PaperBQueueAdaptive = PaperBQueue<Adaptive>;

impl<M: Mode, const BATCH: usize, const TICKS: u32> Pair<u64> for PaperBQueue<M, BATCH, TICKS> {
    const KIND: Kind = Kind::Paper;
    const GRAIN: u64 = if M::FINDS_ALL { 1 } else { BATCH as u64 };
    type Tx = b_queue::Producer;
    type Rx = b_queue::Consumer<M>;

    fn name() -> String {
        match TICKS {
            2000 => format!("B-Queue, {}", M::NAME),
            _ => format!("B-Queue, {}, {TICKS} ticks", M::NAME),
        }
    }

    fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        let parameters = Parameters { batch_size: BATCH, batch_max: BATCH, increment: 8.min(BATCH), ticks: TICKS };
        b_queue::channel(capacity, parameters).map_err(refused)
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, item: u64) -> bool {
        tx.enqueue(word(item)).is_ok()
    }

    #[inline(always)]
    fn try_pop(rx: &mut Self::Rx) -> Option<u64> {
        rx.dequeue().map(number)
    }
}
