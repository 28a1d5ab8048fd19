//! Queues whose threads fail: they end by a panic, are stopped in the middle of a call, get no memory, or are far more
//! than there are CPUs.
//!
//! A new design is one more line in `support/designs.rs`, a fan-out one more `suite_` line at the end of this file; a
//! new test is a function generic over the family's `Case`, and its name in the family's list. A test that hangs ends
//! the process and is named.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]
#![allow(clippy::type_complexity, reason = "a pair of handles is what the reader looks for")]

mod book;
mod crowds;
#[macro_use]
#[path = "../support/designs.rs"]
mod designs;
mod dispatch_panics;
mod ending;
mod fuse;
mod handoff_panics;
#[cfg(all(target_os = "linux", not(miri)))]
mod hangs;
#[path = "../support/meeting.rs"]
mod meeting;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod memory;
mod mpmc_panics;
mod panics;
#[path = "../support/random.rs"]
mod random;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod stopped;
mod stream_panics;
#[macro_use]
#[path = "../support/suite.rs"]
mod suite;
#[path = "../support/watchdog.rs"]
mod watchdog;

/// A design of `spsc` with its options.
pub(crate) trait Case: Send + Sync + 'static {
    type Options: Clone + Default;
    type Design: corelane::spsc::Design<book::Item, Tuning = Self::Options>
        + corelane::spsc::Design<u64, Tuning = Self::Options>;
    /// Whether its `try_` calls go on while a thread is stopped in the middle of one.
    const GOES_ON: bool;
    const BOUNDED: bool;

    /// Its options for a capacity; `keeps` segments where it has some.
    fn tuning(capacity: usize, keeps: usize) -> Self::Options;
}

/// A design of `mpmc`.
pub(crate) trait Shared: Send + Sync + 'static {
    type Design: corelane::mpmc::Design<book::Item> + corelane::mpmc::Design<u64> + corelane::mpmc::Design<()>;
    const BOUNDED: bool;
    /// Whether calls of other threads succeed while one is stopped in the middle of one.
    const LOCK_FREE: bool;
    /// Whether `try_` calls wait for a thread that is stopped in the middle of one.
    const BLOCKS: bool;
}

/// A job that takes a while to copy.
pub(crate) type Long = [u64; 256];

/// A kind of queue under a fan-out.
pub(crate) trait Fans: 'static {
    type Options: Clone + Default + std::fmt::Debug + Send;
    type Queue: corelane::dispatch::Queue<book::Item, Tuning = Self::Options>
        + corelane::dispatch::Queue<u64, Tuning = Self::Options>
        + corelane::dispatch::Queue<Long, Tuning = Self::Options>;
}

macro_rules! suite_of_spsc {
    (linked, $design:ident, $flags:tt) => {
        suite_of_spsc!(@ linked, $design, $flags, |capacity, keeps| {
            linked::Tuning::new().segment(capacity).cached(keeps)
        });
    };
    ($name:ident, $design:ident, $flags:tt) => {
        suite_of_spsc!(@ $name, $design, $flags, |_, _| Default::default());
    };
    (@ $name:ident, $design:ident, [$bound:ident $stopped:ident $($slices:tt)*], $tuning:expr) => {
        mod $name {
            use corelane::spsc::*;

            pub(super) struct This;

            impl crate::Case for This {
                type Options = <$design as Design<u64>>::Tuning;
                type Design = $design;
                const GOES_ON: bool = says!($stopped);
                const BOUNDED: bool = says!($bound);

                fn tuning(capacity: usize, keeps: usize) -> Self::Options {
                    let tuning: fn(usize, usize) -> Self::Options = $tuning;
                    tuning(capacity, keeps)
                }
            }

            tests! {
                panics {
                    a_producer_ends_anywhere
                    a_producer_goes_on_after_a_panic_anywhere
                    a_consumer_ends_anywhere
                    a_consumer_goes_on_after_a_panic_anywhere
                }
                crowds {
                    thirty_two_pairs_on_two_cpus
                }
            }
            #[cfg(target_os = "linux")]
            tests! {
                stopped {
                    a_stopped_producer_strands_nothing
                    a_stopped_consumer_leaves_all_room_but_the_lag
                    signals_end_no_wait
                }
            }
        }
    };
}

/// Beside a stopped thread, calls of some wait for it.
macro_rules! suite_of_mpmc {
    ($name:ident, $design:ident, [$bound:ident $sleeps:ident $places:ident $stopped:ident]) => {
        mod $name {
            pub(super) struct This;

            impl crate::Shared for This {
                type Design = corelane::mpmc::$design;
                const BOUNDED: bool = says!($bound);
                const LOCK_FREE: bool = says!($stopped);
                const BLOCKS: bool = says!(@blocks $stopped);
            }

            tests! {
                mpmc_panics {
                    a_thread_ends_anywhere
                    a_batch_that_panics_leaves_the_rest_in_the_vector
                    a_vector_that_cannot_grow_takes_nothing
                }
                crowds {
                    sixty_four_threads_on_two_cpus
                }
            }
            #[cfg(target_os = "linux")]
            tests! {
                stopped {
                    try_calls_return_beside_a_stopped_thread
                }
            }
        }
    };
}

macro_rules! suite_of_dispatch {
    ($name:ident, $design:ty $(, $more:ident)?) => {
        mod $name {
            pub(super) struct This;

            impl crate::Fans for This {
                type Options = <$design as corelane::dispatch::Queue<u64>>::Tuning;
                type Queue = $design;
            }

            tests! {
                dispatch_panics {
                    a_dispatcher_ends_anywhere
                    a_dispatcher_goes_on_after_a_panic_anywhere
                    a_worker_ends_anywhere
                }
            }
            $(#[cfg(target_os = "linux")]
            $more! {
                stopped {
                    what_a_stopped_dispatcher_has_dispatched_is_there
                    a_stopped_worker_leaves_the_jobs_to_others
                }
            })?
        }
    };
}

macro_rules! suite_of_handoff {
    ($name:ident, $meeting:ident) => {
        mod $name {
            pub(super) use crate::handoff_panics::$meeting as This;

            tests! {
                handoff_panics {
                    a_thread_ends_anywhere
                }
            }
            #[cfg(target_os = "linux")]
            tests! {
                stopped {
                    others_meet_beside_a_stopped_thread
                }
            }
        }
    };
}

designs!(suite_of_spsc);
shared_designs!(suite_of_mpmc);
// Its calls go on, but a stopped one keeps the places and the items that it has drawn: in a batch, all of a small
// queue.
// Asks the allocator for each item, which has locks that a stopped thread may hold.
suite_of_dispatch!(fan_out_of_lanes, corelane::spsc::Lane, tests);
suite_of_dispatch!(fan_out_of_tickets, corelane::dispatch::Mpmc<corelane::mpmc::Ticket>, tests);
suite_of_handoff!(fair, Fair);
suite_of_handoff!(unfair, Unfair);
suite_of_handoff!(eliminating, Eliminating);
suite_of_handoff!(transfer, Transfer);
