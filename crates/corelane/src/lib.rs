//! Queues between cores.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod error;
mod prefetch;
pub mod spsc;
mod sync;
pub mod wait;

pub use prefetch::prefetch_read;
