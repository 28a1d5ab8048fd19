//! The analysis from outside: hand-made packets in, reports out.

mod blocks;
mod captures;
#[path = "../../../corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;
#[path = "../continuous/choices.rs"]
mod choices;
mod contract;
mod equivalence;
mod fragments;
mod outputs;
mod packets;
mod pinned;
mod probes;
mod reference;
#[allow(dead_code, reason = "not all are needed everywhere")]
#[path = "../support/runs.rs"]
mod runs;
mod sweeps;
mod tunnelled;
