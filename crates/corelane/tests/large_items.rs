//! Items larger than a thread's stack: a queue for them is made, a place in it reserved, and both dropped. A constructor that makes a slot on the stack
//! ends the process where the compiler does not optimize.
#![cfg(not(any(loom, shuttle, miri)))]

use corelane::handoff::{Exchanger, Fairness, SynchronousQueue, TransferQueue};
use corelane::mpmc;
use corelane::spsc::{self, Design, Options};

/// Twice a test thread's stack.
type Large = [u8; 4 << 20];

fn is_made<D: Design<Large>>() {
    let options = Options::new().tuning(D::Tuning::default());
    let (mut producer, consumer) = spsc::channel_with::<Large, D, _, _>(2, options).unwrap();
    // Nothing is pushed: what a closed queue refuses comes back by value.
    producer.reserve().unwrap().as_uninit_mut();
    drop((producer, consumer));
}

macro_rules! of_designs {
    ($($name:ident: $design:ty,)+) => {
        $(#[test]
        fn $name() {
            is_made::<$design>();
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
