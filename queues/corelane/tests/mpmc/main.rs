//! The contract every shared channel keeps, proven from outside: one suite, run over each design of `corelane::mpmc`
//! and over lanes. What lanes alone promise is in `lane_by_lane.rs`.
//!
//! A new design is one more line in `support/designs.rs`; a new test is a function generic over [`case::Shared`] and
//! its name in one of the lists.

#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[macro_use]
#[path = "../support/designs.rs"]
mod designs;
#[macro_use]
#[path = "../support/suite.rs"]
mod suite;

mod calls;
mod case;
#[path = "../support/channel.rs"]
mod channel;
#[path = "../support/cpu_time.rs"]
mod cpu_time;
mod drops;
mod handles;
#[path = "../support/histories.rs"]
mod histories;
mod history;
mod items;
mod lane_by_lane;
mod order;
mod queues;
#[path = "../support/random.rs"]
mod random;
mod sequences;
#[path = "../support/sequences.rs"]
mod sequences_judge;
#[path = "../support/stops.rs"]
mod stops;
#[path = "../support/tracked.rs"]
mod tracked;
mod waiting;
#[path = "../support/watchdog.rs"]
mod watchdog;

/// What all keep, and these of some.
macro_rules! suite_of {
    ($name:ident, $channel:ty, { $($more:tt)* }) => {
        mod $name {
            type This = $channel;

            tests! {
                calls {
                    every_call_is_there
                    capacity_zero_and_absurd_ones_are_refused
                    debug_shows_no_item
                }
                order {
                    every_kind_of_push_and_pop_mixes
                    a_push_that_returned_is_found
                }
                waiting {
                    every_strategy_hands_over
                    a_sleeping_pop_is_woken_by_everything
                    a_sleeping_push_is_woken_by_everything
                    a_batch_larger_than_the_queue_waits_for_room
                    time_outs_are_not_early
                    no_wake_up_is_lost_among_many
                    an_idle_wait_sleeps
                    a_woken_thread_that_panics_wakes_another
                }
                items {
                    items_of_every_size_come_out_as_they_went_in
                    zero_sized_items_are_counted
                    items_need_not_be_shareable
                }
                sequences {
                    random_sequences_are_answered_as_by_a_deque
                }
                history {
                    single_calls_are_linearizable
                    batches_are_linearizable
                    waiting_calls_are_linearizable
                }
                handles {
                    the_last_sender_closes
                    the_last_receiver_closes
                    any_handle_may_close
                    waiting_receivers_are_told
                    waiting_senders_are_told
                    a_thread_that_panics_lets_its_handle_go
                    an_iterator_is_a_handle
                }
                drops {
                    what_is_left_inside_is_dropped_once
                    what_is_inside_goes_with_the_last_receiver
                    a_push_beside_the_last_receiver_leaves_nothing
                    refused_items_are_the_callers
                }
                $($more)*
            }
        }
    };
}

macro_rules! suite {
    ($name:ident, $design:ident, $flags:tt) => {
        suite_of!($name, corelane::mpmc::$design, {
            queues {
                what_is_counted
                a_pop_that_returned_leaves_room
            }
        });
    };
}
shared_designs!(suite);
suite_of!(lanes, crate::case::Lanes, {});
