//! What the tests are generic over, and what they share.

use corelane::spsc::{self, AsyncConsumer, AsyncProducer, Design, Options};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

/// An item that is neither Debug nor Sync.
pub(crate) struct Silent(pub(crate) Cell<u64>);

/// A design, for all the items of this suite.
pub(crate) trait Carries:
    Design<u64, Tuning = Self::Options> + Design<String, Tuning = Self::Options> + Design<Silent, Tuning = Self::Options>
{
    type Options: Clone + Default + Send + Sync + 'static;
}

impl<D, O: Clone + Default + Send + Sync + 'static> Carries for D
where
    D: Design<u64, Tuning = O> + Design<String, Tuning = O> + Design<Silent, Tuning = O>,
{
    type Options = O;
}

pub(crate) fn queue<T: Send, D: Design<T>>(capacity: usize) -> (spsc::Producer<T, D>, spsc::Consumer<T, D>) {
    spsc::any_channel(capacity, Options::new().tuning(D::Tuning::default())).expect("a good capacity")
}

pub(crate) fn async_queue<T: Send, D: Design<T>>(capacity: usize) -> (AsyncProducer<T, D>, AsyncConsumer<T, D>) {
    let (producer, consumer) = queue::<T, D>(capacity);
    (producer.into_async(), consumer.into_async())
}

/// Pushes until the queue is full.
pub(crate) fn fill<D: Design<u64>>(producer: &mut AsyncProducer<u64, D>) -> u64 {
    (0..).take_while(|&item| producer.try_push(item).is_ok()).count() as u64
}

/// A task as its waker sees it.
#[derive(Default)]
pub(crate) struct Task(AtomicUsize);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Task {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// How often it was woken.
    pub(crate) fn wakes(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// Polls once, for this task.
pub(crate) fn poll<F: Future + Unpin>(task: &Arc<Task>, future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(&Waker::from(task.clone())))
}

/// How many other places hold the task's waker.
pub(crate) fn holders(task: &Arc<Task>) -> usize {
    Arc::strong_count(task) - 1
}

/// Pending once.
pub(crate) async fn give_way() {
    let mut gave = false;
    poll_fn(|context| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Marsaglia's xorshift: the same tests every time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}
