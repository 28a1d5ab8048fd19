//! Ends that tasks wait for, over every design and on every executor at hand: what arrives, which task is woken how
//! often, and what a dropped future loses.
//!
//! A new design is one more line in the lists at the end of this file. A test that hangs ends the process and is named.

// Guards have no destructor by design; that they are dropped is what some tests are about.
// What a call returns is let go by `drop` where a closure is to return nothing.
#![allow(clippy::drop_non_drop, clippy::type_complexity, dropping_copy_types)]
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[macro_use]
#[path = "../support/designs.rs"]
mod designs;

mod adapters;
mod calling;
mod cancel;
#[path = "../support/channel.rs"]
mod channel;
mod closing;
mod crossing;
mod dispatch;
mod executors;
mod panicking;
mod select;
mod support;
mod turning;
mod waking;
#[macro_use]
#[path = "../support/suite.rs"]
mod suite;
#[path = "../support/watchdog.rs"]
mod watchdog;

/// Tests of a design on each executor: what crosses, which side loses a race.
macro_rules! on_executors {
    ($($executor:ident)+) => {
        tests_on_executors! { $($executor)+ => {
            crossing {
                items_in_order
                batches_in_order
                a_thread_feeds_a_task
                a_task_feeds_a_thread
            }
            cancel {
                pops_that_lose_a_race
                pushes_that_lose_a_race
            }
            adapters {
                forwarded_through_two_queues
            }
            waking {
                an_idle_task_is_not_polled
            }
        } }
    };
}

macro_rules! tests_on_executors {
    ($($executor:ident)+ => $tests:tt) => {
        $(tests_on_executors! { @ $executor $tests })+
    };
    (@ $executor:ident { $($family:ident { $($test:ident)+ })+ }) => {
        #[allow(non_snake_case, reason = "the executor's name")]
        mod $executor {
            $(mod $family {
                $(#[test]
                fn $test() {
                    use crate::executors::$executor;
                    crate::watchdog::guard(|| crate::$family::$test::<super::super::This, $executor>());
                })+
            })+
        }
    };
}

/// What needs no executor, nor a bound.
macro_rules! suite {
    (lane, $design:ident, $flags:tt) => {
        suite! { @ lane $design bounded!(); on_executors!(TokioThread TokioThreads FuturesThread FuturesThreads); }
    };
    ($name:ident, $design:ident, [bounded $($flags:tt)*]) => {
        suite! { @ $name $design bounded!(); tests_on_executors!(TokioThreads => { crossing { items_in_order } }); }
    };
    ($name:ident, $design:ident, [unbounded $($flags:tt)*]) => {
        suite! { @ $name $design on_executors!(TokioThreads FuturesThread); }
    };
    (@ $name:ident $design:ident $($rest:ident!($($arguments:tt)*);)*) => {
        mod $name {
            type This = corelane::spsc::$design;

            tests! {
                calling {
                    a_consumers_waker
                }
                cancel {
                    a_dropped_pop_takes_nothing
                }
                closing {
                    a_consumer_that_waits_learns_that_the_producer_left
                    a_consumer_that_waits_learns_of_a_close
                    what_is_inside_is_popped_first
                    the_last_item_and_the_end
                }
                turning {
                    what_is_inside_stays
                    debug_needs_nothing_of_the_item
                }
                waking {
                    one_wait_costs_one_wake_up
                    the_last_task_is_woken
                    wakers_do_not_grow
                    an_end_that_goes_lets_its_waker_go
                    a_waker_may_drop_the_other_end
                    a_turn_for_others
                }
                adapters {
                    a_sink_takes_what_it_was_ready_for
                    a_sink_gives_back_what_is_refused
                    a_closed_sink_ends_its_stream
                    a_stream_ends_once
                }
            }
            $($rest!($($arguments)*);)*
        }
    };
}

/// What needs a queue that can be full.
macro_rules! bounded {
    () => {
        mod bounded {
            type This = super::This;

            tests! {
                calling {
                    a_producers_waker
                }
                cancel {
                    a_dropped_push_gives_its_item_back
                    a_dropped_reservation_takes_no_slot
                    every_point_of_a_stream
                }
                closing {
                    a_producer_that_waits_learns_that_the_consumer_left
                    a_producer_that_waits_learns_of_a_close
                }
                turning {
                    an_end_becomes_a_threads_again
                    a_threads_wait_that_panicked_is_forgotten
                }
                waking {
                    only_waits_are_counted
                }
                adapters {
                    a_sink_that_is_not_ready_panics
                }
            }
        }
    };
}

// The waiting is the same for every design, so one goes through all executors.
designs!(suite);

/// A fan-out over a design: what needs no bound, and no executor.
macro_rules! fan_out {
    ($($name:ident: $design:ty { $($rest:ident!($($arguments:tt)*);)* })+) => {
        mod fanning {
            $(mod $name {
                type This = $design;

                tests! {
                    calling {
                        a_workers_waker
                        a_dispatchers_waker
                        a_dispatchers_waker_when_a_worker_leaves
                    }
                    dispatch {
                        a_dropped_pop_takes_nothing
                        a_worker_that_waits_learns_of_the_end
                        a_worker_that_waits_gets_a_turn
                        a_worker_that_leaves_lets_go_of_its_task
                        a_turn_for_others
                    }
                }
                $($rest!($($arguments)*);)*
            })+
        }
    };
}

macro_rules! bounded_fan_out {
    () => {
        mod bounded {
            type This = super::This;

            tests! {
                dispatch {
                    a_dropped_dispatch_gives_its_job_back
                    each_queue_wakes_a_dispatcher_once
                    a_reservation_takes_no_room
                    reserved_room_stays
                    a_leave_wakes_a_dispatcher_that_waits
                    a_panic_surfaces
                    a_key_waits_for_its_worker
                    join_waits_for_the_last_worker
                    a_dropped_join_gives_back_what_came_back
                    ends_become_threads_again
                    a_sink_and_a_stream
                    every_point_of_a_stream
                }
            }
        }
    };
}

fan_out! {
    lane: corelane::spsc::Lane {
        bounded_fan_out!();
        tests_on_executors!(TokioThread TokioThreads FuturesThread FuturesThreads => {
            dispatch { jobs_in_order dispatches_that_lose_a_race }
        });
    }
    mcring: corelane::spsc::McRing {
        bounded_fan_out!();
        tests_on_executors!(TokioThreads FuturesThreads => { dispatch { jobs_in_order dispatches_that_lose_a_race } });
    }
    linked: corelane::spsc::Linked {
        tests_on_executors!(TokioThreads FuturesThread => { dispatch { jobs_in_order } });
    }
    ticket: corelane::dispatch::Mpmc<corelane::mpmc::Ticket> {
        bounded_fan_out!();
        tests_on_executors!(TokioThreads FuturesThreads => {
            dispatch { jobs_in_order dispatches_that_lose_a_race }
        });
    }
    condvar: corelane::dispatch::Mpmc<corelane::mpmc::Condvar> {
        tests_on_executors!(TokioThreads => { dispatch { jobs_in_order } });
    }
    two_lock: corelane::dispatch::Mpmc<corelane::mpmc::TwoLock> {
        tests_on_executors!(TokioThreads => { dispatch { jobs_in_order } });
    }
}

macro_rules! shared {
    ($name:ident, $design:ident, $flags:tt) => {
        mod $name {
            type This = corelane::mpmc::$design;

            tests! {
                calling {
                    every_call_of_a_channel
                }
            }
        }
    };
}

mod shared {
    shared_designs!(shared);

    mod lanes {
        type This = crate::channel::Lanes;

        tests! {
            calling {
                every_call_of_a_channel
            }
        }
    }
}
