//! Queues between cores.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod prefetch;
mod sync;

pub use prefetch::prefetch_read;
