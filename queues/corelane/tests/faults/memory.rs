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
use std::cell::RefCell;
use std::process::Command;
use std::sync::Mutex;
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
        macro_rules! refused_too {
            ($name:ident, $design:ident, [bounded $($flags:tt)*]) => {
                let made =
                    mpmc::any_queue::<Page, mpmc::$design, Adaptive, mpmc::NoStats>(TOO_MANY, mpmc::Options::new());
                assert_eq!(made.err(), Some(ChannelError::NoMemory), stringify!($name));
            };
            ($name:ident, $design:ident, $flags:tt) => {};
        }
        shared_designs!(refused_too);
    });
}

/// Pushes until the memory is used up, and then all that is left while another thread pops. A `try_push` of a number
/// says whether it was accepted, and `push` waits for memory where the queue can.
fn refuses_or_waits<T: Sync>(
    queue: T,
    all: u64,
    least: u64,
    (try_push, push): (impl Fn(u64) -> bool, impl Fn(u64)),
    pop: impl Fn(&T, u64) -> bool + Sync,
    close: impl FnOnce(),
) {
    let (ready, full) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        // Before the limit: a thread needs memory, too.
        let consumer = scope.spawn(|| {
            ready.store(true, SeqCst);
            until(&full);
            (0..).take_while(|&number| pop(&queue, number)).count() as u64
        });
        until(&ready);
        limit_memory(MORE);
        let next = (0..).take_while(|&number| try_push(number)).count() as u64;
        assert!((least..all).contains(&next), "{next} items");
        full.store(true, SeqCst);
        (next..all).for_each(push);
        close();
        assert_eq!(consumer.join().unwrap(), all);
    });
}

fn page(number: u64) -> Page {
    [number; 512]
}

#[test]
fn an_unbounded_queue_refuses_or_waits_and_loses_nothing() {
    in_a_process_of_its_own("memory::an_unbounded_queue_refuses_or_waits_and_loses_nothing", || {
        let tuning = linked::Tuning::new().segment(16).cached(1);
        let options = spsc::Options::new().tuning(tuning).wait(Adaptive);
        let (tx, rx) = spsc::any_channel::<Page, Linked, _, _>(1, options).expect("two segments");
        let tx = RefCell::new(Some(tx));
        let with = |number, push: fn(&mut spsc::Producer<Page, Linked>, Page) -> bool| {
            push(tx.borrow_mut().as_mut().expect("it is open"), page(number))
        };
        let pushes = (
            |number| with(number, |tx, page| tx.try_push(page).is_ok()),
            |number| assert!(with(number, |tx, page| tx.push(page).is_ok())),
        );
        let pop = |rx: &Mutex<spsc::Consumer<Page, Linked>>, number| {
            rx.lock().unwrap().pop().is_ok_and(|popped| popped == page(number))
        };
        refuses_or_waits(Mutex::new(rx), TOO_MANY as u64, 1_000, pushes, pop, || drop(tx.take()));
    });
}

#[test]
fn a_stream_says_no_memory_and_loses_nothing() {
    in_a_process_of_its_own("memory::a_stream_says_no_memory_and_loses_nothing", || {
        let (tx, rx) = stream::channel();
        let tx = RefCell::new(Some(tx));
        let large = vec![0; MORE as usize];
        let push = |bytes: &[u8]| tx.borrow_mut().as_mut().expect("it is open").try_push(bytes);
        let pushes = (
            |number| match push(message(&mut [0; 1024], number)) {
                Ok(()) => true,
                Err(refusal) => {
                    assert_eq!(
                        (refusal, push(&large)),
                        (stream::PushError::NoMemory, Err(stream::PushError::NoMemory))
                    );
                    false
                }
            },
            |number| {
                while let Err(refusal) = push(message(&mut [0; 1024], number)) {
                    assert_eq!(refusal, stream::PushError::NoMemory);
                    thread::yield_now();
                }
            },
        );
        let pop = |rx: &Mutex<stream::Consumer>, number| {
            rx.lock().unwrap().pop().is_ok_and(|found| found == message(&mut [0; 1024], number))
        };
        refuses_or_waits(Mutex::new(rx), 200_000, 10_000, pushes, pop, || drop(tx.take()));
    });
}

#[test]
fn a_lock_free_list_refuses_or_waits_and_loses_nothing() {
    in_a_process_of_its_own("memory::a_lock_free_list_refuses_or_waits_and_loses_nothing", || {
        let queue = &mpmc::michael_scott::queue::<Page>();
        let pushes = (
            |number| match queue.try_push(page(number)) {
                Ok(()) => true,
                Err(refusal) => {
                    assert_eq!(refusal, TryPushError::Full(page(number)));
                    false
                }
            },
            |number| queue.push(page(number)).expect("open"),
        );
        let pop = |(): &(), number| queue.pop().is_ok_and(|popped| popped == page(number));
        refuses_or_waits((), TOO_MANY as u64, 1_000, pushes, pop, || queue.close());
    });
}
