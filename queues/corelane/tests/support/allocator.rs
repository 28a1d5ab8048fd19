//! An allocator that refuses, and counts.
#![allow(dead_code, reason = "not every suite is refused memory")]

use corelane::error::ChannelError;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Refuses what is larger than this thread's limit, and counts what this thread does.
struct Allocator;

thread_local! {
    pub(crate) static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
    pub(crate) static CALLS: Cell<usize> = const { Cell::new(0) };
    pub(crate) static LIVE: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: the system's allocator, or a refusal.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LIMIT.get() {
            return std::ptr::null_mut();
        }
        CALLS.set(CALLS.get() + 1);
        LIVE.set(LIVE.get() + layout.size() as isize);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        // SAFETY: the caller's; all memory is the system's.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

pub(crate) type Page = [u8; 4096];

/// More than a panic needs for its backtrace.
pub(crate) const SMALL: usize = 64 << 20;
/// Pages of more than that.
pub(crate) const MANY: usize = 100_000;

pub(crate) fn refused_memory_is_an_error_and_leaves_nothing<Q>(make: impl Fn(usize) -> Result<Q, ChannelError>) {
    drop(make(2));
    let before = LIVE.get();
    assert_eq!(within(SMALL, || make(MANY).err()), Some(ChannelError::NoMemory));
    drop(make(100).unwrap());
    assert_eq!(LIVE.get(), before);
}

/// Makes a call while this thread is refused all that is larger.
pub(crate) fn within<R>(limit: usize, call: impl FnOnce() -> R) -> R {
    LIMIT.set(limit);
    let answer = call();
    LIMIT.set(usize::MAX);
    answer
}
