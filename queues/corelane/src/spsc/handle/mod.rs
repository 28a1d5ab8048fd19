//! The contract, written once over every [`Design`](super::Design): waiting, time-outs, batches, in-place access,
//! closing. How a queue is closed is in [`end`](crate::end), how a thread waits in [`wait`](crate::wait).
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `producer.rs`, `consumer.rs` | the two ends, their guards and iterators |
//! | `options.rs` | how a queue is made |

mod consumer;
mod options;
mod producer;

pub use consumer::{Consumer, IntoIter, Iter, Peeked};
pub use options::{Options, any_channel, channel_with};
pub use producer::{Producer, Reserved};

use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr;

/// Makes a handle `Send` and not `Sync`, whatever its half of the algorithm is.
type NotSync = PhantomData<Cell<()>>;

/// Calls a cold function with the handle in another place, and puts it back.
///
/// A loop keeps a handle's state in registers as long as no call in it gets the handle's address. A store to memory for
/// every item would keep the processor from joining the two stores that the item itself takes.
///
/// Use it only for what waits or fails: all of the handle comes back as if changed. Used after each publication, that
/// took the registers of the caller's own counter.
#[inline(always)]
fn aside<H, R>(handle: &mut H, cold: impl FnOnce(&mut H) -> R) -> R {
    /// Puts it back when `cold` panics, too.
    struct Back<H> {
        home: *mut H,
        away: *const H,
    }
    impl<H> Drop for Back<H> {
        #[inline(always)]
        fn drop(&mut self) {
            // SAFETY: both are a whole handle's memory; the one that is overwritten is a stale copy that is not used
            // any more.
            unsafe { self.home.copy_from_nonoverlapping(self.away, 1) };
        }
    }
    #[cold]
    #[inline(never)]
    fn call<H, R>(handle: &mut H, cold: impl FnOnce(&mut H) -> R) -> R {
        cold(handle)
    }
    // SAFETY: the handle is borrowed for as long as there are two copies; only the one away is used, and none is
    // dropped.
    let mut away = ManuallyDrop::new(unsafe { ptr::read(handle) });
    let away: *mut H = &mut *away;
    let _back = Back { home: handle, away };
    // SAFETY: a valid handle, reached by nothing else until `_back` is dropped.
    call(unsafe { &mut *away }, cold)
}
