//! Items larger than a thread's stack: a queue for them is made, filled in place and dropped. A constructor that makes a slot on the stack
//! ends the process where the compiler does not optimize.
#![cfg(not(any(loom, shuttle, miri)))]

use corelane::handoff::{Exchanger, Fairness, SynchronousQueue, TransferQueue};
use corelane::mpmc;
use corelane::spsc::{self, Design, Options};

/// Twice a test thread's stack.
type Large = [u8; 4 << 20];

fn is_filled_in_place<D: Design<Large>>() {
    let (mut producer, mut consumer) =
        spsc::channel_with::<Large, D, _, _>(2, Options::new().tuning(D::Tuning::default())).unwrap();
    let mut place = producer.reserve().unwrap();
    let start = place.as_uninit_mut().as_mut_ptr().cast::<u8>();
    // SAFETY: the place is as large as an item, and every byte is written before it is pushed.
    unsafe {
        start.write_bytes(7, size_of::<Large>());
        assert!(place.commit().is_ok());
    }
    assert_eq!(consumer.peek().unwrap()[size_of::<Large>() - 1], 7);
}

macro_rules! of_designs {
    ($($name:ident: $design:ty,)+) => {
        $(#[test]
        fn $name() {
            is_filled_in_place::<$design>();
        })+
    };
}

of_designs! {
    lane: spsc::Lane,
    locked: spsc::Locked,
    lamport: spsc::Lamport,
    fastforward: spsc::FastForward,
    multiline: spsc::MultiLine,
    mcring: spsc::McRing,
    bqueue: spsc::BQueue,
    linked: spsc::Linked,
}

#[test]
fn shared_queues() {
    drop(mpmc::queue::<Large>(2));
    drop(mpmc::michael_scott::queue::<Large>());
    drop(mpmc::two_lock::queue::<Large>());
}

#[test]
fn hand_off() {
    drop(SynchronousQueue::<Large>::new(Fairness::Fair));
    drop(SynchronousQueue::<Large>::new(Fairness::Unfair));
    drop(TransferQueue::<Large>::new());
    drop(Exchanger::<Large>::new());
}
