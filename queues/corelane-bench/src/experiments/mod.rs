//! The experiments, a file each.

mod application;
mod attempts;
mod cache_lines;
mod cache_misses;
mod capacity;
mod client_server;
mod crowd;
mod deadlock;
mod dispatch;
mod element_size;
mod elimination;
mod fan;
mod fastforward;
mod handoff;
mod live;
mod messages;
mod monitor_rate;
mod params;
mod peak;
mod peers;
pub(crate) mod policies;
mod pool;
mod ring;
mod round_trip;
mod select;
mod shared_core;
mod spin;
pub(crate) mod spinning;
mod transfer;

use crate::plan::Experiment;

/// Every experiment, in the order of the report.
pub(crate) const ALL: &[Experiment] = &[
    peers::EXPERIMENT,
    round_trip::EXPERIMENT,
    element_size::EXPERIMENT,
    capacity::EXPERIMENT,
    fastforward::EXPERIMENT,
    peak::EXPERIMENT,
    params::EXPERIMENT,
    policies::EXPERIMENT,
    fan::EXPERIMENT,
    deadlock::EXPERIMENT,
    cache_misses::EXPERIMENT,
    cache_lines::EXPERIMENT,
    ring::EXPERIMENT,
    messages::EXPERIMENT,
    application::EXPERIMENT,
    monitor_rate::EXPERIMENT,
    live::EXPERIMENT,
    shared_core::EXPERIMENT,
    spin::EXPERIMENT,
    select::EXPERIMENT,
    handoff::EXPERIMENT,
    transfer::EXPERIMENT,
    elimination::EXPERIMENT,
    crowd::EXPERIMENT,
    spinning::EXPERIMENT,
    pool::EXPERIMENT,
    dispatch::EXPERIMENT,
    attempts::EXPERIMENT,
    client_server::EXPERIMENT,
];
