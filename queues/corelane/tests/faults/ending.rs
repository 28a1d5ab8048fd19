//! Threads that are short of stack, short-lived, or at their end already.

use crate::fuse::Way;
use crate::watchdog::guard;
use corelane::handoff::{Fairness, SynchronousQueue, TransferQueue};
use corelane::{mpmc, spsc};
use std::cell::RefCell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(2);

/// What a thread keeps for itself to wait with is gone when its other thread-locals are dropped.
#[test]
fn a_thread_that_ends_still_waits() {
    struct Last(Option<Box<dyn FnOnce()>>);

    impl Drop for Last {
        fn drop(&mut self) {
            self.0.take().expect("it is dropped once")();
        }
    }

    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }

    /// Ends a thread that waits first, or never before its end, and does something at its end.
    fn at_the_end(waits_before: bool, wait: impl Fn() + 'static + Send, last: impl FnOnce() + 'static + Send) {
        let thread = thread::spawn(move || {
            if waits_before {
                wait();
            }
            LAST.set(Some(Last(Some(Box::new(last)))));
            if !waits_before {
                wait();
            }
        });
        thread.join().expect("it ends as usual");
    }

    guard(|| {
        for waits_before in [true, false] {
            let queue = Arc::new(mpmc::queue::<u64>(1));
            // What a thread waits with is its own, whatever it waits for.
            let (other, first) = (queue.clone(), mpmc::queue::<u64>(1));
            let pusher = thread::spawn({
                let queue = queue.clone();
                move || {
                    thread::sleep(4 * MOMENT);
                    queue.push(7).expect("open");
                }
            });
            at_the_end(
                waits_before,
                move || assert!(first.pop_timeout(Duration::from_micros(50)).is_err()),
                move || assert_eq!(other.pop(), Ok(7)),
            );
            pusher.join().unwrap();

            let queue = Arc::new(SynchronousQueue::new(Fairness::Fair));
            let (other, first) = (queue.clone(), queue.clone());
            let putter = thread::spawn(move || queue.put(7).expect("open"));
            at_the_end(
                waits_before,
                move || assert!(first.put_timeout(0, Duration::ZERO).is_err()),
                move || assert_eq!(other.take(), Ok(7)),
            );
            putter.join().unwrap();

            let (mut tx, mut rx) = spsc::channel_with::<u64, spsc::Lane, _, _>(1, spsc::Options::new().wait(Way::Park))
                .expect("a good capacity");
            let pusher = thread::spawn(move || {
                thread::sleep(MOMENT);
                tx.push(7).expect("open");
            });
            at_the_end(waits_before, || {}, move || assert_eq!(rx.pop(), Ok(7)));
            pusher.join().unwrap();
        }
    });
}

/// What a thread that has ended left behind is the next one's to use.
#[test]
fn threads_of_one_call_come_and_go() {
    guard(|| {
        let queue = mpmc::queue::<u64>(1);
        let list = mpmc::michael_scott::queue::<u64>();
        let meeting = SynchronousQueue::new(Fairness::Unfair);
        let transfer = TransferQueue::new();
        for round in 0..300 {
            thread::scope(|scope| {
                scope.spawn(|| queue.push(round).expect("open"));
                scope.spawn(|| assert_eq!(queue.pop(), Ok(round)));
                scope.spawn(|| list.push(round).expect("open"));
                scope.spawn(|| assert_eq!(list.pop(), Ok(round)));
                scope.spawn(|| meeting.put(round).expect("open"));
                scope.spawn(|| assert_eq!(meeting.take(), Ok(round)));
                scope.spawn(|| transfer.put(round).expect("open"));
                scope.spawn(|| assert_eq!(transfer.take(), Ok(round)));
            });
        }
        assert!(meeting.nodes() <= 1024 && transfer.nodes() <= 1024);
    });
}

/// An item is larger than the stack: no slot, block or segment is made there first.
#[test]
fn queues_for_large_items_are_made_on_a_small_stack() {
    type Large = [u8; 1 << 20];

    macro_rules! made {
        ($name:ident, $design:ident, [bounded $($flags:tt)*]) => {
            drop(spsc::$name::try_channel::<Large>(3).expect("there is memory"));
        };
        ($name:ident, $design:ident, [unbounded $($flags:tt)*]) => {
            drop(spsc::$name::try_channel::<Large>().expect("there is memory"));
        };
    }

    macro_rules! shared {
        ($name:ident, $design:ident, [$bound:ident $($flags:tt)*]) => {
            let made = mpmc::any_queue::<Large, mpmc::$design, _, mpmc::NoStats>(3, mpmc::Options::new());
            assert!(made.is_ok() || !says!($bound), "there is memory");
        };
    }
    let small = thread::Builder::new().stack_size(128 << 10).spawn(|| {
        designs!(made);
        shared_designs!(shared);
    });
    small.expect("there is memory").join().expect("the stack is large enough");
}
