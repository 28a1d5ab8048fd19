//! The contract every queue of `corelane::spsc` keeps, proven from outside: one suite, run over every design.
//!
//! A new design is one more line in `support/designs.rs`; a new test is a function generic over [`case::Case`] and
//! its name in one of the lists. A test that hangs ends the process and is named, see [`watchdog`].

// Guards have no destructor by design; that they are dropped or forgotten is what some tests are about.
#![allow(clippy::drop_non_drop, clippy::forget_non_drop, clippy::type_complexity)]
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

mod batches;
mod capacity;
mod case;
mod closing;
mod construction;
#[macro_use]
#[path = "../support/designs.rs"]
mod designs;
mod drops;
mod errors;
#[path = "../support/first.rs"]
mod first;
mod guards;
mod handles;
#[path = "../support/histories.rs"]
mod histories;
mod history;
mod items;
mod model;
#[path = "../support/one_to_one.rs"]
mod one_to_one;
mod order;
#[path = "../support/random.rs"]
mod random;
mod room;
#[path = "../support/scaled.rs"]
mod scaled;
mod select;
mod slices;
mod stats;
#[path = "../support/tracked.rs"]
mod tracked;
mod unbounded;
mod waiting;
#[macro_use]
#[path = "../support/suite.rs"]
mod suite;
#[path = "../support/watchdog.rs"]
mod watchdog;

macro_rules! case {
    ($design:ty, $tuning:expr) => {
        pub(super) struct This;

        impl crate::case::Case for This {
            type Design = $design;
            type Options = <$design as Design<u64>>::Tuning;

            fn tuning(capacity: usize) -> Self::Options {
                let tuning: fn(usize) -> Self::Options = $tuning;
                tuning(capacity)
            }
        }
    };
}

/// The tests of where items go, for a design with options: `suite_of_paths!(name, Design, |capacity| Tuning::new())`.
macro_rules! suite_of_paths {
    ($name:ident, $design:ty, $tuning:expr) => {
        suite_of! { $name, $design, $tuning => paths bounded_paths }
    };
}

/// The whole suite, for a design with its defaults, `suite!(name, Design)`, or with options: `suite!(name, Design,
/// |capacity| ..)`.
macro_rules! suite {
    ($name:ident, $design:ty) => {
        suite!($name, $design, |_| Default::default());
    };
    ($name:ident, $design:ty, $tuning:expr) => {
        suite_of! { $name, $design, $tuning => paths bounded_paths promises bounded_promises }
    };
}

/// The tests of many items in place, for a design that has them side by side: `suite_of_slices!(name, Design)`.
macro_rules! suite_of_slices {
    ($name:ident, $design:ty) => {
        suite_of! { $name, $design, |_| Default::default() => in_place }
    };
}

/// The tests that need no bound, and those of its absence: `suite_of_unbounded!(name, Design, |capacity|
/// Tuning::new())`.
macro_rules! suite_of_unbounded {
    ($name:ident, $design:ty, $tuning:expr) => {
        suite_of! { $name, $design, $tuning => paths promises unbounded_promises }
    };
}

macro_rules! suite_of {
    ($name:ident, $design:ty, $tuning:expr => $($tests:ident)+) => {
        mod $name {
            use corelane::spsc::*;

            case!($design, $tuning);
            $($tests!();)+
        }
    };
}

macro_rules! paths {
    () => {
        tests! {
            order {
                every_kind_of_push_and_pop_mixes_in_order
                empty_never_hides_an_item_whose_push_returned
            }
            model {
                random_calls_behave_like_a_deque
                random_calls_behave_like_a_deque_across_the_wrap_around
            }
            history {
                histories_are_linearizable
            }
            batches {
                a_batch_of_nothing_pushes_nothing
                batches_that_wait_are_whole
                a_panicking_drain_leaves_what_it_was_not_given
            }
        }
    };
}

macro_rules! bounded_paths {
    () => {
        mod bounded {
            use super::This;

            tests! {
                order {
                    full_never_hides_a_slot_whose_pop_returned
                }
                batches {
                    what_is_not_pushed_is_left
                    slices_larger_than_the_queue_go_in_part
                    slices_go_in_and_out_at_every_offset
                    slices_go_out_in_parts
                }
            }
        }

        tests! {
            capacity {
                holds_its_capacity_and_no_more
                full_comes_early_by_the_release_lag_at_most
                release_lag_is_small
                drained_to_empty_it_takes_its_capacity_again
            }
        }
    };
}

macro_rules! promises {
    () => {
        tests! {
            items {
                every_item_comes_out_as_it_went_in
                zero_sized_items_are_counted
            }
            drops {
                what_is_left_inside_is_dropped_once
                what_is_left_inside_is_dropped_once_across_the_wrap_around
                a_panicking_drop_leaves_no_other_item_behind
                a_popped_item_is_the_callers
                what_is_inside_goes_with_the_consumer
            }
            guards {
                a_reservation_is_filled_in_place
                a_reservation_made_before_the_close_gives_the_item_back
                a_released_item_is_dropped_once
            }
            closing {
                closing_at_every_fill
                a_close_races_pushes
            }
            waiting {
                every_strategy_hands_over_with_pauses
                a_parked_consumer_is_woken
                time_outs_are_not_early
                no_wake_up_is_lost
            }
            select {
                the_first_ready_end_is_named
                sleeps_once_for_many_queues
                wakes_for_a_close
                times_out
            }
            handles {
                debug_needs_nothing_of_the_item
            }
        }
    };
}

macro_rules! bounded_promises {
    () => {
        tests! {
            construction {
                capacity_zero_is_refused
                absurd_capacities_are_refused
                channel_panics_with_the_error
            }
            stats {
                single_calls_are_counted
                batches_are_counted
                only_waits_that_wait_are_counted
                what_is_refused_is_not_counted
                full_is_counted_only_if_an_item_was_refused
            }
            room {
                is_there_at_once_where_slots_are_free
                comes_when_so_many_slots_are_free
                beyond_the_capacity_panics
                a_wait_that_panics_is_forgotten
            }
        }

        mod full {
            use super::This;

            tests! {
                waiting {
                    a_parked_producer_is_woken
                }
                select {
                    producers_and_consumers_mix
                }
            }
        }
    };
}

macro_rules! unbounded_promises {
    () => {
        tests! {
            unbounded {
                it_is_never_full
                what_is_inside_is_counted
            }
        }
    };
}

macro_rules! in_place {
    () => {
        tests! {
            slices {
                slices_stream_in_place
                all_free_slots_are_reserved_but_for_the_end_of_memory
                a_slice_committed_after_the_close_is_dropped
                released_slices_are_dropped_once
                a_panicking_drop_releases_its_whole_slice
                more_than_there_is_panics
            }
        }
    };
}

/// A design's suites, by its line in the list.
macro_rules! suites {
    (linked, $design:ident, $flags:tt) => {
        suite_of_unbounded!(linked, $design, |capacity| linked::Tuning::new().segment(capacity).cached(1));
    };
    ($name:ident, $design:ident, [unbounded $stopped:ident]) => {
        suite_of_unbounded!($name, $design, |_| Default::default());
    };
    ($name:ident, $design:ident, [bounded $stopped:ident]) => {
        suite!($name, $design);
    };
    ($name:ident, $design:ident, [bounded $stopped:ident slices($slices:ident)]) => {
        suite!($name, $design);
        suite_of_slices!($slices, $design);
    };
}
designs!(suites);

/// A design of the library that is not in the list here does not compile.
mod listed {
    trait Listed {}

    macro_rules! listed {
        ($name:ident, $design:ident, $flags:tt) => {
            impl Listed for corelane::spsc::$design {}
        };
    }
    designs!(listed);

    macro_rules! all {
        ($($module:ident::$design:ident,)+) => {
            const _: () = {
                const fn is_listed<D: Listed>() {}
                $(is_listed::<corelane::spsc::$design>();)+
            };
        };
    }
    corelane::each_design!(all);
}

suite!(lane_compact, Lane, |_| lane::Tuning::new().compact());
suite!(lane_by_single_blocks, Lane, |_| lane::Tuning::new().take(1).release(1).slip(0));
suite!(lane_by_the_capacity, Lane, |capacity| lane::Tuning::new()
    .take(usize::MAX)
    .release(usize::MAX)
    .slip(capacity as u32));
suite_of_unbounded!(linked_by_one_line, Linked, |_| linked::Tuning::new().segment(1).cached(3));
suite_of_unbounded!(linked_far_ahead, Linked, |_| linked::Tuning::new()
    .segment(2000)
    .lane(lane::Tuning::new().take(usize::MAX).slip(0)));
suite_of_paths!(mcring_without_batches, McRing, |_| mcring::Tuning::new().batch(1));
suite_of_paths!(mcring_in_batches_of_the_capacity, McRing, |capacity| mcring::Tuning::new().batch(capacity));
suite_of_paths!(bqueue_without_backtracking, BQueue, |capacity| bqueue::Tuning::new()
    .batch_size(capacity)
    .ticks(10)
    .backtracking(bqueue::Backtracking::None));
suite_of_paths!(bqueue_plain, BQueue, |capacity| bqueue::Tuning::new()
    .batch_size(capacity.div_ceil(3))
    .backtracking(bqueue::Backtracking::Plain));
suite_of_paths!(bqueue_far_ahead, BQueue, |capacity| bqueue::Tuning::new()
    .batch_size(1)
    .batch_max(capacity)
    .increment(1000));
suite_of_paths!(multiline_by_one_line, MultiLine, |_| multiline::Tuning::new().lines(1));
suite_of_paths!(multiline_by_the_capacity, MultiLine, |capacity| multiline::Tuning::new().lines(capacity));
suite_of_paths!(fastforward_without_slips, FastForward, |_| fastforward::Tuning::new().danger(0));
suite_of_paths!(fastforward_slipping_for_the_capacity, FastForward, |capacity| fastforward::Tuning::new()
    .good(capacity)
    .danger(capacity)
    .avg_time(u32::MAX)
    .interval(1));
suite_of_paths!(fastforward_slipping_without_time, FastForward, |capacity| fastforward::Tuning::new()
    .good(capacity)
    .danger(1 + capacity / 2)
    .avg_time(0)
    .interval(1));
