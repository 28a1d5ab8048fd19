//! The behaviours every synchronous queue keeps, by the names they have in the conformance list of the
//! java.util.concurrent test suites and their regression tests: S1 to S30 for the synchronous queues, fair, unfair and
//! with elimination; Q1 to Q12 for the transfer queue; X1 to X6 for the exchanger. A test that hangs ends the process
//! and is named.
//!
//! | id | not applicable, because |
//! |---|---|
//! | S12 | there is nothing to peek at, to iterate or to remove: a synchronous queue has no such methods |
//! | S22, in unfair mode | the order of a stack is no promise; it is checked as what it does without contention |
//! | Q12, removal and iteration | no such methods; that a withdrawn last item is no obstacle is tested |
//! | S29, a thread that selects a put and a take of one queue | requests come in turn, each a partner to any |
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

mod cancel;
mod close;
#[path = "../support/cpu_time.rs"]
mod cpu_time;
mod exchanger;
#[path = "../support/first.rs"]
mod first;
#[path = "../support/histories.rs"]
mod histories;
mod history;
mod memory;
mod order;
#[path = "../support/random.rs"]
mod random;
mod sequences;
#[path = "../support/sequences.rs"]
mod sequences_judge;
mod stress;
mod support;
mod tickets;
mod timed;
mod transfer;
mod untimed;
#[path = "../support/watchdog.rs"]
mod watchdog;

macro_rules! suite {
    ($($family:ident { $($test:ident)+ })+) => {
        suite!(@mode fair, Fair, $($family { $($test)+ })+);
        suite!(@mode unfair, Unfair, $($family { $($test)+ })+);
        suite!(@mode eliminating, Eliminating, $($family { $($test)+ })+);
    };
    (@mode $name:ident, $mode:ident, $($family:ident { $($test:ident)+ })+) => {
        mod $name {
            $(mod $family {
                $(#[test]
                fn $test() {
                    crate::watchdog::guard(|| crate::$family::$test(crate::support::Mode::$mode));
                })+
            })+
        }
    };
}

suite! {
    untimed {
        s1_a_new_queue_is_empty
        s2_a_try_put_without_a_taker_returns_its_item
        s3_a_batch_stops_at_the_first_refusal
        s6_a_put_ends_when_its_item_is_taken
        s9_a_try_take_without_a_putter_finds_nothing
        s13_a_try_put_fails_and_a_timed_put_meets_a_take
        s14_a_try_take_fails_and_a_timed_take_meets_a_put
        s15_a_batch_releases_the_puts_that_wait
        s28_items_of_any_kind
        s28_a_queue_travels_through_a_queue
        s28_a_taker_puts_before_it_takes_again
        s30_what_came_before_is_visible_on_both_sides
    }
    timed {
        s7_a_timed_put_waits_its_time
        s9_a_timed_take_of_zero_does_not_wait
        s10_a_timed_take_waits_its_time
        s11_a_take_that_timed_out_is_followed_by_one_that_succeeds
        s16_a_match_beats_the_time_out
        a_deadline_that_has_passed_still_finds_a_partner
        a_timed_wait_sleeps
    }
    cancel {
        s4_a_put_that_is_cancelled_before_returns_its_item
        s5_a_put_that_waits_is_cancelled
        s8_a_timed_put_is_cancelled
        s17_a_match_goes_before_a_cancellation_and_that_before_the_time
        s18_takes_with_and_without_a_time_are_cancelled
        s25_all_pairs_but_one_are_cancelled
        one_token_for_many_waits
    }
    close {
        s26_close_wakes_all_puts_with_their_items
        s26_close_wakes_all_takes
        s26_calls_after_the_close_fail
        s26_close_against_traffic
    }
    memory {
        s19_no_item_stays_behind
        s20_a_million_takes_behind_a_take_that_waits
        s21_a_million_puts_behind_a_put_that_waits
        nodes_of_matched_requests_are_used_again
        threads_that_come_at_once_make_no_node_too_many
        s21_cancellations_in_the_middle_of_a_thousand
        s27_every_item_is_dropped_once
        forgotten_tickets_drop_their_items_with_the_queue
        a_panicking_drop_leaves_the_queue_whole
    }
    order {
        s22_the_order_of_those_that_wait
        s22_the_order_of_takes_that_wait
        the_middle_leaves_the_order_alone
    }
    history {
        calls_are_linearizable
        tickets_are_linearizable
    }
    sequences {
        random_sequences_are_answered_as_by_a_list
    }
    stress {
        s23_each_item_once_between_many_threads
        s24_times_adapt
        many_more_threads_than_cores
        puts_and_takes_that_give_up_and_come_again
    }
    tickets {
        a_ticket_keeps_its_place
        a_ticket_is_decided_without_its_owner
        an_abort_withdraws_or_is_the_last_followup
        a_dropped_ticket_is_aborted
        a_ticket_waits_in_another_thread
        a_matched_ticket_stays_matched_when_the_queue_is_closed
        a_spent_ticket_panics
        s29_tickets_of_one_thread_in_two_queues
        s29_two_selects_on_the_same_pair
        s29_a_select_over_many_queues
        a_select_ends_with_its_limit
        a_ticket_waits_alone_after_a_select
    }
}
