//! The experiments, a file each.

mod element_size;
mod peers;
mod round_trip;
mod shared_core;

use crate::plan::Experiment;

/// Every experiment, in the order of the report.
pub(crate) const ALL: &[Experiment] =
    &[peers::EXPERIMENT, round_trip::EXPERIMENT, element_size::EXPERIMENT, shared_core::EXPERIMENT];
