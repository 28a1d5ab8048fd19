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
#[path = "../support/meeting.rs"]
mod meeting;
mod memory;
#[path = "../support/random.rs"]
mod random;
mod sequences;
#[path = "../support/sequences.rs"]
mod sequences_judge;
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
        s6_a_put_ends_when_its_item_is_taken
        s28_items_of_any_kind
    }
    timed {
        a_timed_put_and_a_timed_take_wait_their_time
        a_timed_wait_sleeps
    }
    cancel {
        s5_a_put_that_waits_is_cancelled
        s17_a_match_goes_before_a_cancellation_and_that_before_the_time
        s18_takes_with_and_without_a_time_are_cancelled
    }
    close {
        s26_close_wakes_all_puts_with_their_items
        s26_close_wakes_all_takes
        s26_calls_after_the_close_fail
    }
    memory {
        s20_many_takes_behind_a_take_that_waits
        s21_many_puts_behind_a_put_that_waits
        nodes_of_matched_requests_are_used_again
        threads_that_come_at_once_make_no_node_too_many
        s21_cancellations_in_the_middle_of_a_thousand
        forgotten_tickets_drop_their_items_with_the_queue
        a_panicking_drop_leaves_the_queue_whole
    }
    history {
        calls_are_linearizable
        tickets_are_linearizable
    }
    sequences {
        random_sequences_are_answered_as_by_a_list
    }
    tickets {
        a_ticket_waits_in_another_thread
        a_spent_ticket_panics
        s29_two_selects_on_the_same_pair
        a_select_ends_with_its_limit
    }
}
