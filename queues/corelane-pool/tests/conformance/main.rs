//! The behaviours of the thread pool, by the names they have in the conformance list of the java.util.concurrent test
//! suites and their like: P1 to P22, over every way to queue where it applies. P24 to P27 are the models of
//! `tests/loom.rs`, which have P13 and P16, too; P19 is `tasks_begin_together` of `tests/shuttle.rs`, P17 in
//! `p4_return`. A test that hangs ends the process and is named.
//!
//! | id | not applicable, because |
//! |---|---|
//! | P5, tasks dropped by `CallerRuns` after a shutdown | then every policy returns the task: nothing is lost |
//! | P6, interrupting | no thread can be interrupted; there is a token, in an example |
//! | P10, a negative keep-alive time | a `Duration` is not negative |
//! | P23 | neither priorities nor expiry |
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

mod errors;
mod execution;
mod failures;
mod growth;
mod lifecycle;
mod panics;
mod rejection;
mod scopes;
mod support;
#[path = "../../../corelane/tests/support/watchdog.rs"]
mod watchdog;

macro_rules! suite {
    ($($family:ident { $($test:ident)+ })+) => {
        $(mod $family {
            $(#[test]
            fn $test() {
                crate::watchdog::guard(crate::$family::$test);
            })+
        })+
    };
}

mod suite {
    suite! {
        execution {
            p1_tasks_run_and_handles_have_their_results
            p1_unclaimed_payloads_are_dropped
            p1_an_unclaimed_panic_keeps_no_hook
            p8_counts_are_never_too_high
            one_thread_runs_tasks_in_order
            every_task_runs_once_or_comes_back
            waits_are_measured_if_asked_for
        }
        growth {
            p2_a_thread_is_started_only_when_none_waits
            p2_a_slow_start_starts_no_others
            p2_p3_a_thread_is_used_again_or_the_core_comes_first
            p9_threads_are_started_before_their_tasks
            p11_a_pool_grows_and_shrinks_at_work
            p11_a_pool_grows_for_what_waits
            p12_a_pool_shrinks_to_its_core
            p14_low_load_shrinks_a_pool_that_has_grown
            p22_an_idle_pool_uses_no_cpu
        }
        rejection {
            p4_return
            p4_discard
            p4_try_calls_return_at_once
            p4_block_until_the_time_is_up
            p4_block_until_the_time_is_up_beside_a_start
            p4_blocked_callers_are_sent_away
            the_bound_is_exact
        }
        lifecycle {
            p5_after_a_shutdown_nothing_is_accepted_and_all_is_done
            p6_shutdown_now_returns_what_has_not_begun
            p7_await_termination
            p18_names_and_stacks
            p20_dropping_the_last_handle_joins_or_detaches
            p20_a_task_drops_the_last_handle
            p20_a_thread_that_has_left_does_not_wait
            p20_a_start_that_joins_a_task_panics
            p20_a_start_brings_tasks
            p20_starts_of_two_pools_bring_tasks_to_each_other
            p21_thread_locals_are_dropped_when_join_returns
            p21_a_task_that_goes_with_its_worker_is_dropped_when_join_returns
            a_pool_without_threads_terminates
            what_the_pool_calls_may_call_the_pool
        }
        scopes {
            scopes_wait_for_tasks_that_others_have_begun
            scopes_nest_in_a_pool_of_one_thread
            scopes_need_no_thread
            tasks_do_not_run_while_their_scope_unwinds
            what_is_left_of_a_scope_does_nothing
        }
        failures {
            p15_the_first_start_fails
            p15_a_worker_that_is_lost_is_replaced_once
            p15_a_worker_is_run_too_late
            p15_a_thread_that_is_left_relies_on_no_start
        }
        errors {
            p10_bad_settings_are_refused
            panics_name_the_callers_line
            errors_read_well_in_a_log
        }
        panics {
            the_table_is_true
        }
    }
}
