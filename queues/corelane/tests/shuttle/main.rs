//! The queues under many schedules that are drawn, at sizes that loom cannot reach: real capacities, blocks and
//! segments, several producers and consumers, hundreds of items. Runs with
//! `cargo shuttle -p corelane --test shuttle`;
//! `CORELANE_SCHEDULES=1000` runs more of them, `SHUTTLE_RANDOM_SEED=7` others. Without shuttle the same scenarios
//! run on real threads for as long as one likes: `cargo xtask soak`, see `support/soak.rs`.
//!
//! A scenario is a function generic over the design and its name in one of the lists. It draws its sizes and the calls
//! it makes, so that each schedule is also a case of its own. Every item must come once, in order, and be dropped once.
//! Threads that wait for each other for ever are a deadlock, which shuttle reports; and where a lost wake-up would be
//! made good by the next item, the scenario waits for an answer before it sends one.
//!
//! What shuttle cannot show: it knows one order of all accesses, so an ordering that is too weak, or a barrier that is
//! missing, is loom's to find. And it samples: what takes many events in one certain order it may miss. What it knows
//! of time, and of memory that two threads access at once, `src/sync/model.rs` says.
// Guards are dropped by name.
#![allow(clippy::drop_non_drop)]

#[macro_use]
#[path = "../support/designs.rs"]
mod designs;

#[path = "../support/channel.rs"]
mod channel;
#[cfg_attr(corelane_shuttle, path = "../support/counted.rs")]
#[cfg_attr(not(corelane_shuttle), path = "../support/tallied.rs")]
mod counted;
mod dispatch;
mod exchanger;
#[path = "../support/first.rs"]
mod first;
mod handoff;
#[path = "../support/meeting.rs"]
mod meeting;
mod mpmc;
#[cfg_attr(corelane_shuttle, path = "../support/schedules.rs")]
#[cfg_attr(not(corelane_shuttle), path = "../support/soak.rs")]
mod schedules;
#[path = "../support/shared.rs"]
mod shared;
mod spsc;
mod stream;
#[cfg(not(corelane_shuttle))]
#[path = "../support/watchdog.rs"]
mod watchdog;

pub(crate) use counted::Item;
pub(crate) use schedules::{draw, many, one_of, sync, thread};
pub(crate) use shared::{EACH, explore, in_time, soon};

use corelane::wait::{Adaptive, Next, Park, SpinPark, Strategy, WaitState, Yield};

/// Every way to wait, in one type, so that each scenario is compiled once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    Adaptive,
    Park,
    SpinPark(u32),
    Yield,
}

impl Strategy for Wait {
    fn next(&self, state: &mut WaitState) -> Next {
        match *self {
            Self::Adaptive => Adaptive.next(state),
            Self::Park => Park.next(state),
            Self::SpinPark(looks) => SpinPark::new(looks).next(state),
            Self::Yield => Yield.next(state),
        }
    }
}

/// Looks a few times before it parks, or none. Shuttle knows no time, which the other ways need.
pub(crate) fn wait() -> Wait {
    let few = Wait::SpinPark(draw(0..4) as u32);
    if cfg!(corelane_shuttle) {
        few
    } else {
        one_of(&[few, Wait::SpinPark(100), Wait::Park, Wait::Adaptive, Wait::Yield])
    }
}

/// A test for every scenario of a family and member.
macro_rules! suites {
    ($family:ident: $($name:ident: $member:ty),+ $(,)? => $scenarios:tt) => {
        $(mod $name {
            suites!(@ $family, $member, $scenarios);
        })+
    };
    (@ $family:ident, $member:ty, { $($scenario:ident)+ }) => {
        $(#[test]
        fn $scenario() {
            crate::$family::$scenario::<$member>();
        })+
    };
}

/// A design's suite, by its line in the list.
macro_rules! suite_of_spsc {
    ($name:ident, $design:ident, $flags:tt) => {
        suites! {
            spsc: $name: corelane::spsc::$design => {
                items_come_once_and_in_order
                time_outs_lose_nothing
                slices_come_in_order
                questions_are_answered
                the_consumer_closes_in_midstream
                the_consumer_goes_in_midstream
                answers_are_true
                one_sleep_serves_several_queues
            }
        }
    };
}
designs!(suite_of_spsc);

macro_rules! suite_of_mpmc {
    ($name:ident, $design:ident, $flags:tt) => {
        suite_of_channel!($name, corelane::mpmc::$design, room_that_meets_a_time_out_is_not_lost answers_are_true);
    };
}

macro_rules! suite_of_channel {
    ($name:ident, $channel:ty, $($more:ident)+) => {
        suites! {
            mpmc: $name: $channel => {
                items_come_once_and_in_order
                time_outs_lose_nothing
                a_close_in_midstream
                questions_are_answered
                a_wake_up_that_meets_a_time_out_is_not_lost
                a_batch_wakes_as_many_as_it_is_for
                a_close_wakes_all
                handles_go_in_midstream
                $($more)+
            }
        }
    };
}

shared_designs!(suite_of_mpmc);
suite_of_channel!(lanes, crate::channel::Lanes, a_batch_beside_a_lane_that_ends);

suites! {
    handoff:
    dual_queue: crate::handoff::Fair,
    dual_stack: crate::handoff::Unfair,
    dual_stack_with_elimination: crate::handoff::Eliminating,
    => {
        items_come_once_and_in_order
        as_many_puts_as_takes
        a_close_in_midstream
        one_that_stays_is_found
        a_select_misses_nothing
    }
}

suites! {
    handoff: transfer: crate::handoff::Transfer => {
        items_come_once_and_in_order
        a_close_in_midstream
        one_that_stays_is_found
        a_select_misses_nothing
        a_close_sends_away_who_waits
        no_try_take_misses_an_item
    }
}
