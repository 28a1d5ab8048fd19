//! The contract every queue of `corelane::mpmc` keeps, proven from outside: one suite, run over every design.
//!
//! A new design is one more `suite!` line at the end of this file; a new test is a function generic over [`case::Case`]
//! and its name in the list. A test that hangs ends the process and is named.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

mod batches;
mod calls;
mod case;
mod closing;
#[path = "../support/cpu_time.rs"]
mod cpu_time;
mod drops;
mod handles;
#[path = "../support/histories.rs"]
mod histories;
mod history;
mod items;
mod order;
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
#[macro_use]
#[path = "../support/suite.rs"]
mod suite;
#[path = "../support/watchdog.rs"]
mod watchdog;

/// The whole suite for a design: `suite!(name, Design, has a bound, sleeps, and whether it works by places)`.
macro_rules! suite {
    ($name:ident, $design:ident, $bounded:literal, $sleeps:literal $(, $by_places:literal)?) => {
        mod $name {
            pub(super) struct This;

            impl crate::case::Case for This {
                type Design = corelane::mpmc::$design;
                const BOUNDED: bool = $bounded;
                const SLEEPS: bool = $sleeps;
                $(const BY_PLACES: bool = $by_places;)?
            }

            tests! {
                calls {
                    it_is_a_queue
                    a_full_queue_refuses
                    an_item_comes_back
                    random_calls_behave_like_a_deque
                    positions_wrap_around
                    capacity_zero_and_absurd_ones_are_refused
                    what_is_counted
                    a_thread_pops_what_it_pushed
                    a_thread_pushes_where_it_popped
                    debug_shows_no_item
                }
                batches {
                    a_batch_goes_in_order
                    what_does_not_fit_stays_in_the_vector
                    a_pop_takes_at_most_max_and_appends
                    nothing_is_a_batch_too
                    a_batch_larger_than_the_queue_waits_for_room
                    an_iterator_that_panics_has_pushed_nothing
                    an_iterator_may_use_the_queue
                    batches_meet_the_wrap_around
                    a_batch_against_the_close
                }
                order {
                    single_items_between_many_threads
                    batches_between_many_threads
                    try_calls_between_many_threads
                    singles_and_batches_mix
                    a_push_that_returned_is_found
                    a_pop_that_returned_leaves_room
                    len_is_never_more_than_the_capacity
                }
                closing {
                    what_is_inside_is_drained
                    pushes_come_back
                    parked_pops_are_woken
                    parked_pushes_are_woken
                    a_close_races_pushes_and_pops
                    a_close_races_batches
                    closing_twice_changes_nothing
                }
                waiting {
                    every_strategy_hands_over
                    a_sleeping_pop_is_woken_by_everything
                    a_sleeping_push_is_woken_by_everything
                    one_batch_wakes_all_it_has_items_for
                    one_batch_makes_room_for_all
                    timed_pops_are_not_early
                    timed_pushes_are_not_early
                    timed_waits_end_by_success
                    no_wake_up_is_lost
                    no_wake_up_is_lost_among_many
                    wake_ups_survive_time_outs
                    an_idle_wait_sleeps
                }
                items {
                    items_of_every_size_come_out_as_they_went_in
                    zero_sized_items_are_counted
                    items_need_not_be_shareable
                    items_that_own_memory_cross_threads
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
                    every_call_is_there
                    the_last_sender_closes
                    the_last_receiver_closes
                    any_handle_may_close
                    waiting_receivers_are_told
                    waiting_senders_are_told
                    a_thread_that_panics_lets_its_handle_go
                    iterators_end_with_the_queue
                    an_iterator_is_a_handle
                    handles_come_and_go
                    no_push_is_refused_by_the_drop_of_a_sender
                    each_item_is_dropped_once_when_receivers_go
                    the_queue_goes_with_the_last_handle
                    what_is_inside_goes_with_the_last_receiver
                    a_push_beside_the_last_receiver_leaves_nothing
                    handles_can_be_sent_and_shared
                    handles_count_for_a_queue_that_counts
                    bad_capacities_are_refused_with_no_handle
                    debug_of_a_handle_shows_no_item
                }
                drops {
                    what_is_left_inside_is_dropped_once
                    a_panicking_drop_leaves_no_other_item_behind
                    refused_items_are_the_callers
                    each_item_is_dropped_once_between_threads
                }
            }
        }
    };
}

suite!(ticket, Ticket, true, true);
suite!(scq, Scq, true, true, true);
suite!(michael_scott, MichaelScott, false, true);
suite!(two_lock, TwoLock, false, true);
suite!(condvar, Condvar, true, true);
suite!(busy_wait, BusyWait, true, false);
