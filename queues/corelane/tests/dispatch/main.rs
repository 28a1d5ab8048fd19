//! What `corelane::dispatch` promises, from outside: one suite, run over several designs.
//!
//! A test is a function generic over [`Case`] and its name in one of the lists. A test that hangs ends the process and
//! is named.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]
#![allow(clippy::type_complexity)]

#[macro_use]
#[path = "../support/designs.rs"]
mod designs;

mod accounting;
#[path = "../support/histories.rs"]
mod histories;
mod history;
mod membership;
mod panics;
mod pressure;
#[path = "../support/random.rs"]
mod random;
mod results;
mod routes;
mod sequences;
#[path = "../support/sequences.rs"]
mod sequences_judge;
mod stranding;
#[macro_use]
#[path = "../support/suite.rs"]
mod suite;
#[path = "../support/watchdog.rs"]
mod watchdog;

use corelane::dispatch::{Builder, Dispatcher, Queue, Route, Worker};
use corelane::wait::{Adaptive, Strategy};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Tells late from never: there is no telling how late a call may end on a busy machine. The watchdog is more patient.
const SLACK: Duration = Duration::from_secs(30);

/// A kind of queue under test.
pub(crate) trait Case: 'static {
    type Options: Clone + Default + std::fmt::Debug + Send;
    type Queue: Queue<u64, Tuning = Self::Options>
        + Queue<(u64, u64), Tuning = Self::Options>
        + Queue<Item, Tuning = Self::Options>;
}

pub(crate) type Tx<T, C, R, W = Adaptive> = Dispatcher<T, <C as Case>::Queue, W, R>;
pub(crate) type Rx<T, C, W = Adaptive> = Worker<T, <C as Case>::Queue, W>;

/// Builds a fan-out over the case's queues with their defaults.
pub(crate) fn build<C: Case, T: Send, W: Strategy, R: Route<T>>(
    builder: Builder<C::Options, W, R>,
) -> (Tx<T, C, R, W>, Vec<Rx<T, C, W>>)
where
    C::Queue: Queue<T, Tuning = C::Options>,
{
    builder.build_any().unwrap()
}

/// What is in a worker's queue now.
pub(crate) fn drain<T: Send, C: Case, W: Strategy>(worker: &mut Rx<T, C, W>) -> Vec<T>
where
    C::Queue: Queue<T>,
{
    std::iter::from_fn(|| worker.try_pop().ok()).collect()
}

/// Counts the drops of items.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drops(Arc<AtomicUsize>);

impl Drops {
    pub(crate) fn item(&self, number: u64) -> Item {
        Item { number, drops: self.clone() }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) number: u64,
    drops: Drops,
}

impl Drop for Item {
    fn drop(&mut self) {
        self.drops.0.fetch_add(1, Relaxed);
    }
}

/// The tests that need no bound, over a design: `suite_of_unbounded!(name, Design)`.
macro_rules! suite_of_unbounded {
    ($name:ident, $design:ty $(, $more:ident)?) => {
        mod $name {
            pub(super) struct This;

            impl crate::Case for This {
                type Options = <$design as corelane::dispatch::Queue<u64>>::Tuning;
                type Queue = $design;
            }

            tests! {
                routes {
                    round_robin_goes_by_batches
                    slices_go_by_batches
                    a_sleeping_worker_gets_what_another_has_no_time_for
                    a_key_has_one_worker_and_its_order
                    a_leave_moves_the_keys_of_that_worker_only
                    least_loaded_prefers_an_empty_worker
                }
                stranding {
                    a_partial_batch_reaches_a_worker_that_waits
                    taking_waits_for_one_and_takes_what_is_there
                    timed_pops_end
                }
                membership {
                    join_waits_for_all
                }
                panics {
                    a_panic_surfaces_with_its_payload
                    join_reports_panics
                }
                accounting {
                    keys_keep_their_order_under_load
                }
            }

            $($more!();)?
        }
    };
}

/// The tests that need a bound, beside the others.
macro_rules! bounded {
    () => {
        mod bounded {
            use super::This;

            tests! {
                routes {
                    keys_are_spread_over_all_workers
                    a_join_takes_keys_from_all_and_moves_no_other
                    least_loaded_takes_turns_among_equals
                }
                pressure {
                    a_dispatch_that_never_parks_waits_for_a_batch
                    timed_dispatches_are_not_early
                    a_key_that_waits_hears_of_a_leave
                    what_is_not_dispatched_is_left
                    nobody_there
                }
                membership {
                    jobs_of_one_key_keep_their_order_over_leaves
                    what_is_pushed_after_a_leave_comes_back
                }
                panics {
                    a_panic_outside_of_run_surfaces
                    a_panic_without_a_dispatcher_goes_on
                    a_waiting_dispatch_hears_of_a_panic
                }
                accounting {
                    each_job_is_dropped_once
                }
                history {
                    histories_are_linearizable
                }
                sequences {
                    random_sequences_are_answered_as_by_lists
                }
                results {
                    nobody_is_starved
                    a_collector_waits
                    a_producer_that_is_gone_is_forgotten
                }
            }
        }
    };
}

/// The tests of having none.
macro_rules! unbounded {
    () => {
        mod unbounded {
            use super::This;

            tests! {
                history {
                    histories_without_a_bound_are_linearizable
                }
                sequences {
                    random_sequences_without_a_bound_are_answered_as_by_lists
                }
            }
        }
    };
}

/// The whole suite over a design: `suite!(name, Design)`.
macro_rules! suite_of_spsc {
    ($name:ident, $design:ident, [bounded $($flags:tt)*]) => {
        suite_of_unbounded!($name, corelane::spsc::$design, bounded);
    };
    ($name:ident, $design:ident, [unbounded $($flags:tt)*]) => {
        suite_of_unbounded!($name, corelane::spsc::$design, unbounded);
    };
}
designs!(suite_of_spsc);

macro_rules! suite_of_mpmc {
    ($name:ident, $design:ident, [bounded $($flags:tt)*]) => {
        suite_of_unbounded!($name, corelane::dispatch::Mpmc<corelane::mpmc::$design>, bounded);
    };
    ($name:ident, $design:ident, [unbounded $($flags:tt)*]) => {
        suite_of_unbounded!($name, corelane::dispatch::Mpmc<corelane::mpmc::$design>, unbounded);
    };
}
shared_designs!(suite_of_mpmc);
