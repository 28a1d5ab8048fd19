//! `spsc::fastflow`, the baseline: pointers in order, each once, none lost with the queue.

#![cfg(not(any(loom, shuttle)))]

use corelane::error::ChannelError;
use corelane::spsc::fastflow;
use std::sync::Arc;
use std::thread;

#[test]
fn pointers_arrive_in_order() {
    for size in [1, 2, 3, 64, 1000] {
        let (mut tx, mut rx) = fastflow::channel(size);
        assert_eq!(rx.pop(), None);
        let (mut pushed, mut popped) = (0, 0);
        for round in 0..400 {
            for _ in 0..round % 17 {
                tx.push(Box::new(pushed)).unwrap();
                pushed += 1;
            }
            for _ in 0..round % 13 {
                let got = rx.pop();
                assert_eq!(got.as_deref(), (popped < pushed).then_some(&popped));
                popped += usize::from(got.is_some());
            }
        }
        while let Some(got) = rx.pop() {
            assert_eq!(*got, popped);
            popped += 1;
        }
        assert_eq!(popped, pushed);
    }
}

#[test]
fn pointers_cross_threads() {
    for size in [1, 5, 512] {
        let (mut tx, mut rx) = fastflow::channel(size);
        thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..200_000_u64 {
                    tx.push(Box::new(number)).unwrap();
                    if number % 1000 == 0 {
                        thread::yield_now();
                    }
                }
            });
            for number in 0..200_000 {
                let got = loop {
                    match rx.pop() {
                        Some(got) => break got,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(*got, number);
            }
            assert_eq!(rx.pop(), None);
        });
    }
}

/// Through more buffers than the cache holds.
#[test]
fn what_is_inside_is_dropped_with_the_queue() {
    for (size, inside, popped) in [(1, 0, 0), (1, 200, 150), (4, 500, 3), (4, 500, 499), (64, 10, 10)] {
        let item = Arc::new(());
        let (mut tx, mut rx) = fastflow::channel(size);
        (0..inside).for_each(|_| tx.push(Box::new(item.clone())).unwrap());
        (0..popped).for_each(|_| drop(rx.pop().unwrap()));
        assert_eq!(Arc::strong_count(&item), 1 + inside - popped);
        drop(tx);
        assert!(rx.pop().is_some() || inside == popped);
        drop(rx);
        assert_eq!(Arc::strong_count(&item), 1);
    }
}

#[test]
fn what_cannot_be_made_is_refused() {
    assert_eq!(fastflow::try_channel::<u8>(0).err(), Some(ChannelError::ZeroCapacity));
    assert_eq!(fastflow::try_channel::<u8>(usize::MAX / 8).err(), Some(ChannelError::NoMemory));
    let (tx, rx) = fastflow::channel::<u8>(7);
    assert_eq!(format!("{tx:?} {rx:?}"), "Producer { size: 7, .. } Consumer { size: 7, .. }");
}
