//! What a task costs the allocator.

#![cfg(not(any(corelane_loom, corelane_shuttle)))]

use corelane_pool::ThreadPool;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread::yield_now;

/// Counts what each thread asks for.
struct Allocator;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's; all memory is the system's.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

static DONE: AtomicUsize = AtomicUsize::new(0);

/// Has the pool run so many tasks with `N` words besides, one after the other. How often the calling thread asked for
/// memory.
fn calls_for<const N: usize>(pool: &ThreadPool, tasks: usize) -> usize {
    let (before, done) = (CALLS.get(), DONE.load(SeqCst));
    for task in 0..tasks {
        let words = [task; N];
        pool.execute(move || {
            DONE.fetch_add(1 + words.iter().filter(|&&word| word != task).count(), SeqCst);
        })
        .expect("it is running");
        while DONE.load(SeqCst) <= done + task {
            yield_now();
        }
    }
    CALLS.get() - before
}

/// A caller that queues the first tasks does not pay for the queue.
#[test]
fn the_first_tasks_need_no_memory() {
    for pool in [ThreadPool::fixed(1), ThreadPool::bounded(1, 64)] {
        let (begun, begins) = channel();
        let (go, goes) = channel::<()>();
        let task = move || {
            begun.send(()).expect("the test waits");
            goes.recv().expect_err("the test says nothing");
        };
        pool.execute(task).expect("it is running");
        begins.recv().expect("the thread has begun");
        let before = CALLS.get();
        (0..64).for_each(|_| pool.execute(|| {}).expect("it is running"));
        assert_eq!(CALLS.get() - before, 0);
        drop(go);
    }
}

#[test]
fn a_task_of_three_words_needs_no_memory() {
    for pool in [ThreadPool::fixed(1), ThreadPool::bounded(1, 8)] {
        // The thread, and the nodes of the queue that it sleeps in.
        calls_for::<2>(&pool, 1000);
        assert_eq!(calls_for::<2>(&pool, 1000), 0);
        assert_eq!(calls_for::<3>(&pool, 1000), 1000, "the test counts");
    }
}
