//! `Stream` and `Sink`.

use crate::executors::Executor;
use crate::support::{Carries, Task, async_queue, fill};
use corelane::error::Closed;
use futures_executor::block_on;
use futures_util::stream::FusedStream;
use futures_util::{Sink, SinkExt, Stream, StreamExt, stream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

pub(crate) fn a_sink_takes_what_it_was_ready_for<D: Carries>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(2);
    let task = Task::new();
    let waker = Waker::from(task.clone());
    let mut context = Context::from_waker(&waker);
    for item in 0..100 {
        // As often as one likes; it takes no slot.
        for _ in 0..3 {
            assert_eq!(Pin::new(&mut producer).poll_ready(&mut context), Poll::Ready(Ok(())));
        }
        assert!(consumer.is_empty());
        assert_eq!(Pin::new(&mut producer).start_send(item), Ok(()));
        // Before any flush.
        assert_eq!(consumer.try_pop(), Ok(item));
        assert_eq!(Pin::new(&mut producer).poll_flush(&mut context), Poll::Ready(Ok(())));
        // So that no turn for others is due.
        assert!(Pin::new(&mut consumer).poll_next(&mut context).is_pending());
        producer.try_push(0).unwrap();
        assert_eq!(Pin::new(&mut consumer).poll_next(&mut context), Poll::Ready(Some(0)));
        if item % 30 == 29 {
            producer = producer.into_blocking().into_async();
        }
    }
}

pub(crate) fn a_sink_gives_back_what_is_refused<D: Carries>() {
    let (mut producer, consumer) = async_queue::<u64, D>(2);
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(Pin::new(&mut producer).poll_ready(&mut context), Poll::Ready(Ok(())));
    drop(consumer);
    assert_eq!(Pin::new(&mut producer).start_send(7), Err(Closed(Some(7))));
    assert_eq!(Pin::new(&mut producer).poll_ready(&mut context), Poll::Ready(Err(Closed(None))));
    assert_eq!(Pin::new(&mut producer).poll_flush(&mut context), Poll::Ready(Ok(())));
    assert_eq!(Pin::new(&mut producer).poll_close(&mut context), Poll::Ready(Ok(())));
    assert_eq!(block_on(producer.send(8)), Err(Closed(None)));
}

pub(crate) fn a_closed_sink_ends_its_stream<D: Carries>() {
    let (mut producer, consumer) = async_queue::<u64, D>(9);
    block_on(async {
        for item in 0..5 {
            producer.feed(item).await.unwrap();
        }
        SinkExt::close(&mut producer).await.unwrap();
        SinkExt::close(&mut producer).await.unwrap();
        assert_eq!(producer.send(5).await, Err(Closed(None)));
        assert_eq!(consumer.collect::<Vec<_>>().await, [0, 1, 2, 3, 4]);
    });
}

pub(crate) fn a_sink_that_is_not_ready_panics<D: Carries>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(1);
    fill(&mut producer);
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut producer).poll_ready(&mut context).is_pending());
    let started = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut producer).start_send(9)));
    let text = "there is no free slot: call `start_send` only after `poll_ready` has returned ready";
    assert_eq!(started.unwrap_err().downcast_ref(), Some(&text));
    assert_eq!(consumer.try_pop(), Ok(0));
    assert_eq!(Pin::new(&mut producer).poll_ready(&mut context), Poll::Ready(Ok(())));
}

pub(crate) fn a_stream_ends_once<D: Carries>() {
    let (mut producer, mut consumer) = async_queue::<u64, D>(2);
    let mut context = Context::from_waker(Waker::noop());
    producer.try_push(1).unwrap();
    drop(producer);
    assert!(!consumer.is_terminated());
    assert_eq!(Pin::new(&mut consumer).poll_next(&mut context), Poll::Ready(Some(1)));
    assert!(!consumer.is_terminated());
    for _ in 0..3 {
        assert_eq!(Pin::new(&mut consumer).poll_next(&mut context), Poll::Ready(None));
        assert!(consumer.is_terminated());
    }
}

pub(crate) fn forwarded_through_two_queues<D: Carries, E: Executor>() {
    for (first, second) in [(64, 3), (1, 200)] {
        let items = if first == 1 { 1_000 } else { 5_000 };
        let (source, relay_in) = async_queue::<u64, D>(first);
        let (relay_out, sink) = async_queue::<u64, D>(second);
        let feed = async move {
            let source = stream::iter(0..items).map(Ok).forward(source);
            let relay = relay_in.map(Ok).forward(relay_out);
            let (fed, relayed) = futures_util::join!(source, relay);
            fed.and(relayed).unwrap();
        };
        let count = sink.enumerate().fold(0, async |count, (at, item)| {
            assert_eq!(at as u64, item);
            count + 1
        });
        let ((), count) = E::run(feed, count);
        assert_eq!(count, items);
    }
}
