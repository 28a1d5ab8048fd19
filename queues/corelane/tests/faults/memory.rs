//! A process that gets no more memory: what cannot be made is refused, and what is refused comes back or waits until
//! the other end has made room. Everything that was accepted comes out.
//!
//! `allocation.rs` and `mpmc_memory.rs` say the same of each call, with an allocator that refuses; here it is the
//! system that does.

use crate::signals::limit_memory;
use corelane::error::{ChannelError, TryPushError};
use corelane::mpmc;
use corelane::spsc::{self, Linked, linked, stream};
use corelane::wait::Adaptive;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

type Page = [u64; 512];

/// What a process may have beside what it has at the start: 48 MiB.
const MORE: u64 = 48 << 20;
/// Pages that are more than that: 128 MiB.
const TOO_MANY: usize = 128 << 8;
const CHILD: &str = "CORELANE_TEST_MEMORY";

/// Runs a part of the test in a process of its own, which gets a limit when the part says so: threads are to be there
/// before.
fn in_a_process_of_its_own(name: &str, part: fn()) {
    if std::env::var(CHILD).is_ok_and(|child| child == name) {
        return part();
    }
    let mut command = Command::new(std::env::current_exe().expect("the test runs"));
    // One arena: else each thread that first allocates takes 64 MiB of address space.
    command.args(["--exact", name, "--nocapture"]).env(CHILD, name).env("MALLOC_ARENA_MAX", "1");
    let output = command.output().expect("it can be run again");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

fn until(flag: &AtomicBool) {
    while !flag.load(SeqCst) {
        thread::yield_now();
    }
}

/// A message that says its number, of 800 to 900 bytes, in memory that is there.
fn message(memory: &mut [u8; 1024], number: u64) -> &[u8] {
    let message = &mut memory[..800 + number as usize % 100];
    message.fill(number as u8);
    message[..8].copy_from_slice(&number.to_le_bytes());
    message
}

#[test]
fn what_cannot_be_made_is_refused() {
    in_a_process_of_its_own("memory::what_cannot_be_made_is_refused", || {
        limit_memory(MORE);
        macro_rules! refused {
            ($name:ident, $design:ident, [bounded $($flags:tt)*]) => {
                let made = spsc::$name::try_channel::<Page>(TOO_MANY);
                assert_eq!(made.err(), Some(ChannelError::NoMemory), stringify!($name));
                let (mut tx, mut rx) = spsc::$name::try_channel::<Page>(64).expect("there is as much");
                tx.push([7; 512]).expect("open");
                assert_eq!(rx.pop(), Ok([7; 512]));
            };
            ($name:ident, $design:ident, [unbounded $($flags:tt)*]) => {};
        }
        designs!(refused);
        for made in [
            mpmc::ticket::try_queue::<Page>(TOO_MANY).err(),
            mpmc::scq::try_queue::<Page>(TOO_MANY).err(),
            mpmc::condvar::try_queue::<Page>(TOO_MANY).err(),
            mpmc::busy_wait::try_queue::<Page>(TOO_MANY).err(),
        ] {
            assert_eq!(made, Some(ChannelError::NoMemory));
        }
    });
}

#[test]
fn an_unbounded_queue_refuses_or_waits_and_loses_nothing() {
    in_a_process_of_its_own("memory::an_unbounded_queue_refuses_or_waits_and_loses_nothing", || {
        let tuning = linked::Tuning::new().segment(16).cached(1);
        let options = spsc::Options::new().tuning(tuning).wait(Adaptive);
        let (mut tx, mut rx) = spsc::any_channel::<Page, Linked, _, _>(1, options).expect("two segments");
        let (ready, full) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let consumer = scope.spawn(|| {
                ready.store(true, SeqCst);
                until(&full);
                let mut expected = 0;
                while let Ok(page) = rx.pop() {
                    assert_eq!(page, [expected; 512]);
                    expected += 1;
                }
                expected
            });
            until(&ready);
            limit_memory(MORE);
            let mut next = 0;
            while tx.try_push([next; 512]).is_ok() {
                next += 1;
            }
            assert!((1_000..TOO_MANY as u64).contains(&next), "{next} pages");
            full.store(true, SeqCst);
            (next..TOO_MANY as u64).for_each(|page| tx.push([page; 512]).expect("open"));
            drop(tx);
            assert_eq!(consumer.join().unwrap(), TOO_MANY as u64);
        });
    });
}

#[test]
fn a_stream_says_no_memory_and_loses_nothing() {
    in_a_process_of_its_own("memory::a_stream_says_no_memory_and_loses_nothing", || {
        const MESSAGES: u64 = 200_000;
        let (mut tx, mut rx) = stream::channel();
        let large = vec![0; MORE as usize];
        let (ready, full) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let consumer = scope.spawn(|| {
                ready.store(true, SeqCst);
                until(&full);
                let mut expected = 0;
                while let Ok(found) = rx.pop() {
                    assert_eq!(found, message(&mut [0; 1024], expected));
                    expected += 1;
                }
                expected
            });
            until(&ready);
            limit_memory(MORE);
            let mut next = 0;
            let refusal = loop {
                match tx.try_push(message(&mut [0; 1024], next)) {
                    Ok(()) => next += 1,
                    Err(refusal) => break refusal,
                }
            };
            assert_eq!(refusal, stream::PushError::NoMemory);
            assert!(next > 10_000, "{next} messages");
            assert_eq!(tx.try_push(&large), Err(stream::PushError::NoMemory));
            full.store(true, SeqCst);
            while next < MESSAGES {
                match tx.push(message(&mut [0; 1024], next)) {
                    Ok(()) => next += 1,
                    Err(refusal) => {
                        assert_eq!(refusal, stream::PushError::NoMemory);
                        thread::yield_now();
                    }
                }
            }
            drop(tx);
            assert_eq!(consumer.join().unwrap(), MESSAGES);
        });
    });
}

#[test]
fn a_lock_free_list_refuses_or_waits_and_loses_nothing() {
    in_a_process_of_its_own("memory::a_lock_free_list_refuses_or_waits_and_loses_nothing", || {
        let queue = mpmc::michael_scott::queue::<Page>();
        let (ready, full) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let consumer = scope.spawn(|| {
                ready.store(true, SeqCst);
                until(&full);
                let mut expected = 0;
                while let Ok(page) = queue.pop() {
                    assert_eq!(page, [expected; 512]);
                    expected += 1;
                }
                expected
            });
            until(&ready);
            limit_memory(MORE);
            let mut next = 0;
            let refusal = loop {
                match queue.try_push([next; 512]) {
                    Ok(()) => next += 1,
                    Err(refusal) => break refusal,
                }
            };
            assert_eq!(refusal, TryPushError::Full([next; 512]));
            assert!(next > 1_000, "{next} pages");
            full.store(true, SeqCst);
            (next..TOO_MANY as u64).for_each(|page| queue.push([page; 512]).expect("open"));
            queue.close();
            assert_eq!(consumer.join().unwrap(), TOO_MANY as u64);
        });
    });
}
