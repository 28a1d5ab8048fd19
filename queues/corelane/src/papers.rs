//! What the unpublished crate `corelane-papers` may reach, and no more: published queues as printed are tested and
//! measured on the same atomics, memory and sleep as the queues that are made of them, under loom and shuttle as well.
//! None of it is an interface for any other crate: it changes without notice.

#![allow(missing_debug_implementations, reason = "as little as is needed")]

use crate::error::ChannelError;
use crate::{mem, sync, wait};
use std::time::Duration;

/// The facade's.
pub type Arc<T> = sync::Arc<T>;
/// The facade's.
pub type AtomicPtr<T> = sync::AtomicPtr<T>;
/// The facade's.
pub type AtomicU32 = sync::AtomicU32;
/// The facade's.
pub type AtomicUsize = sync::AtomicUsize;
/// The facade's.
pub type Condvar = sync::Condvar;
/// The facade's.
pub type Instant = sync::Instant;
/// The facade's.
pub type Mutex<T> = sync::Mutex<T>;
/// The facade's.
pub type UnsafeCell<T> = sync::UnsafeCell<T>;

/// A load-acquire of a pointer that may be null and that decides something.
#[inline(always)]
pub fn look_at<T>(pointer: &AtomicPtr<T>) -> *mut T {
    sync::look_at(pointer)
}

/// A store-release of a pointer that others may [`look_at`].
#[inline(always)]
pub fn set_to<T>(pointer: &AtomicPtr<T>, value: *mut T) {
    sync::set_to(pointer, value);
}

/// One turn of a busy wait.
#[inline(always)]
pub fn spin_loop() {
    sync::spin_loop();
}

/// Memory of which every page was written, and that is freed with this.
pub struct Buffer(mem::buffer::Buffer);

impl Buffer {
    /// `count` elements of `stride` bytes, the first aligned to `align`; the contents are unspecified.
    ///
    /// # Errors
    /// Too many bytes, or no memory.
    pub fn new(count: usize, stride: usize, align: usize) -> Result<Self, ChannelError> {
        mem::buffer::Buffer::new(count, stride, align).map(Self)
    }

    /// Where the first element lies.
    #[inline(always)]
    pub fn start(&self) -> *mut u8 {
        self.0.start()
    }
}

/// Where one thread sleeps until another notifies it, or sooner for no reason. A notification that came before counts.
pub struct Token(wait::Token);

impl Token {
    /// A token that was not notified.
    #[allow(clippy::new_without_default, reason = "as little as is needed")]
    pub fn new() -> Self {
        Self(wait::Token::new())
    }

    /// Sleeps, at most so long.
    pub fn wait(&self, timeout: Option<Duration>) {
        self.0.wait(timeout);
    }

    /// Wakes the thread that sleeps here, or spares the next one its sleep.
    pub fn notify(&self) {
        self.0.notify();
    }
}
