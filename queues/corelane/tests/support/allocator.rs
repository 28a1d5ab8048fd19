//! An allocator that refuses, and counts.

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
