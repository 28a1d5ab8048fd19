//! FastFlow's queue and the synchronous queues under many schedules that are drawn, at real sizes. Runs with
//! `cargo shuttle -p corelane-papers --test shuttle`; see `crates/corelane/tests/shuttle` for how many schedules,
//! which, and what they cannot show.

#[path = "../../../corelane/tests/support/counted.rs"]
mod counted;
mod fastflow;
mod handoff;
#[path = "../../../corelane/tests/support/schedules.rs"]
mod schedules;
#[path = "../../../corelane/tests/support/shared.rs"]
mod shared;

pub(crate) use counted::{Item, Ledger};
pub(crate) use schedules::{draw, explore, one_of};
pub(crate) use shared::soon;
