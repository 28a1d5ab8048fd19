//! FastFlow's queue and the synchronous queues under many schedules that are drawn, at real sizes. Runs with
//! `cargo shuttle -p corelane-papers --test shuttle`; see `queues/corelane/tests/shuttle` for how many schedules,
//! which, and what they cannot show, and for `cargo xtask soak`, which runs them on real threads.

#[cfg_attr(corelane_shuttle, path = "../../../corelane/tests/support/counted.rs")]
#[cfg_attr(not(corelane_shuttle), path = "../../../corelane/tests/support/tallied.rs")]
mod counted;
mod fastflow;
mod handoff;
#[cfg_attr(corelane_shuttle, path = "../../../corelane/tests/support/schedules.rs")]
#[cfg_attr(not(corelane_shuttle), path = "../../../corelane/tests/support/soak.rs")]
mod schedules;
#[path = "../../../corelane/tests/support/shared.rs"]
mod shared;
#[cfg(not(corelane_shuttle))]
#[path = "../../../corelane/tests/support/watchdog.rs"]
mod watchdog;

pub(crate) use counted::Item;
pub(crate) use schedules::{draw, many, one_of, thread};
pub(crate) use shared::{explore, in_time};
