//! Without the feature `std`: a wait that is told to park goes on looking, and the default strategy is there. With
//! `async`, tasks wait and are woken all the same. Run with `cargo test -p corelane --no-default-features --test
//! without_std`, and again with `--features async`.
#![cfg(not(any(feature = "std", corelane_loom, corelane_shuttle)))]

use corelane::wait::{Adaptive, Next, Strategy, WaitState};
use corelane::{mpmc, spsc};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

/// Says that the thread should park, each time.
#[derive(Clone, Debug, Default)]
struct Parks(Arc<AtomicU32>);

impl Strategy for Parks {
    fn next(&self, state: &mut WaitState) -> Next {
        self.0.store(state.count(), Relaxed);
        Next::Park
    }
}

impl Parks {
    /// Waits until another thread has been told to park more than once.
    fn seen(&self) {
        while self.0.load(Relaxed) < 10 {
            thread::yield_now();
        }
    }
}

#[test]
fn who_is_told_to_park_goes_on_looking() {
    let parks = Parks::default();
    let (mut producer, mut consumer) = spsc::lane::channel_with(1, spsc::Options::new().wait(parks.clone())).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || assert_eq!((consumer.pop(), consumer.pop()), (Ok(1), Err(corelane::error::Closed(())))));
        parks.seen();
        producer.push(1).unwrap();
        drop(producer);
    });
}

#[test]
fn who_is_told_to_park_by_a_shared_queue_goes_on_looking() {
    let parks = Parks::default();
    let (sender, receiver) = mpmc::ticket::channel_with(1, mpmc::Options::new().wait(parks.clone())).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || assert_eq!(receiver.pop(), Ok(1)));
        parks.seen();
        sender.push(1).unwrap();
    });
}

#[test]
fn handles_that_name_no_strategy_have_the_adaptive_one() {
    let (mut producer, mut consumer): (spsc::Producer<u32>, spsc::Consumer<u32, spsc::Lane, Adaptive>) =
        spsc::channel(1);
    thread::scope(|scope| {
        scope.spawn(move || assert!((0..100).all(|number| consumer.pop() == Ok(number))));
        (0..100).for_each(|number| producer.push(number).unwrap());
    });
}

#[cfg(feature = "async")]
mod tasks {
    use corelane::spsc::{self, Design, Options};
    use futures_executor::block_on;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::task::{Context, Wake, Waker};
    use std::thread;

    /// Two threads whose tasks wait for each other at almost each item: a lost wake-up would be the end of it.
    fn wake_each_other<D: Design<u32>>() {
        const ITEMS: u32 = 20_000;
        let (producer, consumer) =
            spsc::any_channel::<u32, D, _, _>(1, Options::new().tuning(D::Tuning::default())).unwrap();
        let (mut producer, mut consumer) = (producer.into_async(), consumer.into_async());
        thread::scope(|scope| {
            scope.spawn(move || {
                block_on(async {
                    for item in 0..ITEMS {
                        producer.push(item).await.unwrap();
                    }
                });
            });
            block_on(async {
                for item in 0..ITEMS {
                    assert_eq!(consumer.pop().await, Ok(item));
                }
                assert!(consumer.pop().await.is_err());
            });
        });
    }

    #[test]
    fn on_two_threads_wake_each_other() {
        macro_rules! each {
            ($($module:ident::$Design:ident,)+) => { $(wake_each_other::<spsc::$Design>();)+ };
        }
        corelane::each_design!(each);
    }

    /// A push beside the poll that begins to wait: the poll finds the item, or the push wakes the task. So both sides
    /// need a full fence. Miri finds that one is missing in any of its schedules, a processor hardly ever.
    #[test]
    fn a_push_beside_a_poll_is_not_overlooked() {
        const ROUNDS: u32 = if cfg!(miri) { 100 } else { 20_000 };
        struct Flag(AtomicU32);
        impl Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, SeqCst);
            }
        }
        let (mut producer, consumer) = spsc::lamport::channel::<u32>(1);
        let mut consumer = consumer.into_async();
        let (begun, pushed) = (AtomicU32::new(0), AtomicU32::new(0));
        let flag = Arc::new(Flag(AtomicU32::new(0)));
        let waker = Waker::from(Arc::clone(&flag));
        let mut context = Context::from_waker(&waker);
        let mut overlooked = 0;
        let wait_for = |word: &AtomicU32, round| {
            let mut looks = 0_u32;
            while word.load(SeqCst) != round {
                looks += 1;
                if looks.is_multiple_of(1 << 12) { thread::yield_now() } else { core::hint::spin_loop() }
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    wait_for(&begun, round);
                    producer.try_push(round).unwrap();
                    pushed.store(round, SeqCst);
                }
            });
            for round in 1..=ROUNDS {
                let wakes = flag.0.load(SeqCst);
                begun.store(round, SeqCst);
                // Sooner and later, by a few instructions.
                (0..round % 32).for_each(|_| core::hint::spin_loop());
                let polled = pin!(consumer.pop()).poll(&mut context);
                wait_for(&pushed, round);
                if polled.is_pending() {
                    overlooked += u32::from(flag.0.load(SeqCst) == wakes);
                    assert!(consumer.try_pop().is_ok());
                }
            }
        });
        assert_eq!(overlooked, 0, "of {ROUNDS} pushes");
    }

    /// The push is not left in its middle: the process ends.
    #[test]
    fn a_waker_that_panics_aborts() {
        const CHILD: &str = "CORELANE_A_WAKER_PANICS";
        struct Panics;
        impl Wake for Panics {
            fn wake(self: Arc<Self>) {
                panic!("a waker of the test");
            }
        }
        if std::env::var_os(CHILD).is_some() {
            let (mut producer, consumer) = spsc::channel::<u32>(1);
            let mut consumer = consumer.into_async();
            let mut pop = pin!(consumer.pop());
            assert!(pop.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::new(Panics)))).is_pending());
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| producer.push(1)));
            return;
        }
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "tasks::a_waker_that_panics_aborts", "--nocapture"]).env(CHILD, "1");
        let output = child.output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("a waker of the test"), "{output:?}");
    }
}
