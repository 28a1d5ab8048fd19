//! The paper forms under every interleaving of small cases. Runs with
//! `cargo loom -p corelane-papers --test loom_paper`.
//!
//! Where elements lie in the queue's own slots, loom sees which thread accesses them. The forms whose slots are words
//! carry the number of a parcel, memory that the producer writes before it sends the number and the consumer reads when
//! it gets it. Parcels are used again as soon as the queue says that theirs was read: that is what the order of a NULL
//! is for.
//!
//! A form that hangs has no model, as it has no end: see `tests/deadlock.rs`.

#[path = "../../corelane/tests/support/explore.rs"]
mod explore;

use corelane::Barrier;
use corelane_papers::b_queue::{self, Adaptive, Backtracking, NoBacktracking, Parameters, Plain};
use corelane_papers::fast_forward::{self, Slip};
use corelane_papers::mcring_timer::{self, Signal};
use corelane_papers::{Dequeue, Enqueue, basic_ring, lock_ring, mcring, mcring_callback};
use explore::{explore_with, quick};
use loom::cell::UnsafeCell;
use loom::thread;
use std::num::NonZero;
use std::sync::Arc;

type Word = NonZero<usize>;

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    explore_with(Barrier::Fences, preemptions, model);
}

fn enqueue<T: Copy>(producer: &mut impl Enqueue<T>, item: T) {
    while producer.enqueue(item).is_err() {
        thread::yield_now();
    }
}

fn dequeue<T>(consumer: &mut impl Dequeue<T>) -> T {
    loop {
        match consumer.dequeue() {
            Some(item) => return item,
            None => thread::yield_now(),
        }
    }
}

/// Elements in slots go from thread to thread, in order.
fn elements<P, C>(preemptions: usize, elements: usize, queue: impl Fn() -> (P, C) + Send + Sync + 'static)
where
    P: Enqueue<usize> + 'static,
    C: Dequeue<usize>,
{
    explore(preemptions, move || {
        let (mut producer, mut consumer) = queue();
        let pusher = thread::spawn(move || {
            (0..elements).for_each(|element| enqueue(&mut producer, element));
            producer
        });
        for element in 0..elements {
            assert_eq!(dequeue(&mut consumer), element);
        }
        assert_eq!(consumer.dequeue(), None);
        drop(pusher.join().unwrap());
    });
}

/// The words of a queue of `slots` slots carry parcels, of which there are two more than slots: when the word before
/// this one was accepted, the one a lap before it was dequeued, so the parcel of the one before that was read.
fn parcels<P, C>(preemptions: usize, words: usize, slots: usize, queue: impl Fn() -> (P, C) + Send + Sync + 'static)
where
    P: Enqueue<Word> + 'static,
    C: Dequeue<Word>,
{
    explore(preemptions, move || {
        let (mut producer, mut consumer) = queue();
        let written = Arc::new((0..slots + 2).map(|_| UnsafeCell::new(0)).collect::<Vec<_>>());
        let read = written.clone();
        let pusher = thread::spawn(move || {
            for word in 1..=words {
                // SAFETY: loom checks that no other thread accesses it now.
                written[word % written.len()].with_mut(|parcel| unsafe { *parcel = word });
                enqueue(&mut producer, Word::new(word).unwrap());
            }
            producer
        });
        for word in 1..=words {
            assert_eq!(dequeue(&mut consumer).get(), word);
            // SAFETY: loom checks that no thread writes it now.
            assert_eq!(read[word % read.len()].with(|parcel| unsafe { *parcel }), word);
        }
        assert_eq!(consumer.dequeue(), None);
        drop(pusher.join().unwrap());
    });
}

/// Figure 5 of the B-Queue paper with one word on its way.
fn answers<P, C>(preemptions: usize, queue: impl Fn() -> (P, C) + Send + Sync + 'static)
where
    P: Enqueue<Word> + 'static,
    C: Dequeue<Word> + 'static,
{
    explore(preemptions, move || {
        let (mut ask, mut asked) = queue();
        let (mut answer, mut answered) = queue();
        let server = thread::spawn(move || {
            for _ in 0..2 {
                let question = dequeue(&mut asked);
                enqueue(&mut answer, question.saturating_add(10));
            }
            (asked, answer)
        });
        for question in [1, 2] {
            enqueue(&mut ask, Word::new(question).unwrap());
            assert_eq!(dequeue(&mut answered).get(), question + 10);
        }
        drop(server.join().unwrap());
    });
}

#[test]
fn basic_ring_passes_elements() {
    elements(3, 4, || basic_ring::channel(2).unwrap());
    elements(2, 5, || basic_ring::channel(3).unwrap());
}

#[test]
fn lock_ring_passes_elements() {
    elements(3, 3, || lock_ring::channel(2).unwrap());
    elements(2, 4, || lock_ring::channel(3).unwrap());
}

#[test]
fn mcring_passes_batches() {
    elements(3, 4, || mcring::channel(2, 1).unwrap());
    elements(3, 4, || mcring::channel(3, 2).unwrap());
    elements(2, 6, || mcring::channel(4, 2).unwrap());
}

#[test]
fn fast_forward_passes_parcels() {
    parcels(3, 5, 1, || fast_forward::baseline(1).unwrap());
    parcels(2, 6, 2, || fast_forward::baseline(2).unwrap());
}

#[test]
fn fast_forward_passes_parcels_while_it_slips() {
    let slip = Slip { good: 1, danger: 1, avg_time: 0, interval: 1 };
    parcels(2, 5, 1, move || fast_forward::tuned(1, slip).unwrap());
    parcels(2, quick(5, 6), 2, move || fast_forward::tuned(2, slip).unwrap());
}

fn b_queue<B: Backtracking>(size: usize, batch_size: usize) -> (b_queue::Producer, b_queue::Consumer<B>) {
    b_queue::channel(size, Parameters { batch_size, batch_max: batch_size, increment: 1, ticks: 0 }).unwrap()
}

#[test]
fn b_queue_passes_parcels_in_whole_batches() {
    parcels(2, 6, 3, || b_queue::<NoBacktracking>(3, 2));
}

#[test]
fn b_queue_passes_parcels_with_backtracking() {
    parcels(3, 5, 2, || b_queue::<Plain>(2, 1));
    parcels(2, 6, 3, || b_queue::<Plain>(3, 2));
}

#[test]
fn b_queue_passes_parcels_with_self_adaptive_backtracking() {
    parcels(2, 6, 3, || b_queue::<Adaptive>(3, 2));
}

#[test]
fn rings_that_do_not_batch_do_not_hang() {
    answers(2, || basic_ring::channel(2).unwrap());
    answers(2, || fast_forward::baseline(2).unwrap());
}

#[test]
fn b_queue_does_not_hang() {
    answers(2, || b_queue::<Plain>(3, 2));
    answers(2, || b_queue::<Adaptive>(3, 2));
}

/// The signal comes at any time; what was inserted before an insertion that sees it is shown by that.
#[test]
fn mcring_with_a_timer_shows_elements_after_a_signal() {
    explore(quick(2, 3), || {
        let signal = Signal::new();
        let (mut producer, mut consumer) = mcring_timer::channel(5, 2, &signal).unwrap();
        let timer = thread::spawn(move || signal.raise());
        let pusher = thread::spawn(move || {
            for element in 0..3_usize {
                enqueue(&mut producer, element);
            }
            assert!(producer.flush());
            producer
        });
        for element in 0..3 {
            assert_eq!(dequeue(&mut consumer), element);
        }
        assert_eq!(consumer.dequeue(), None);
        drop(pusher.join().unwrap());
        timer.join().unwrap();
    });
}

#[test]
fn mcring_with_a_callback_does_not_hang() {
    explore(2, || {
        let (mut ask, mut asked) = mcring_callback::channel(4, 2).unwrap();
        let (mut answer, mut answered) = mcring_callback::channel(4, 2).unwrap();
        fn get(from: &mut mcring_callback::Consumer<usize>, outgoing: &mut mcring_callback::Producer<usize>) -> usize {
            loop {
                let element = from.dequeue_or(|| {
                    outgoing.flush();
                });
                match element {
                    Some(element) => return element,
                    None => thread::yield_now(),
                }
            }
        }
        let server = thread::spawn(move || {
            let question = get(&mut asked, &mut answer);
            enqueue(&mut answer, question + 10);
            assert!(answer.flush());
            (asked, answer)
        });
        enqueue(&mut ask, 1);
        assert_eq!(get(&mut answered, &mut ask), 11);
        drop(server.join().unwrap());
    });
}
