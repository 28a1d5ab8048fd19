//! The analysis from outside: hand-made packets in, reports out.

mod captures;
mod contract;
mod equivalence;
mod outputs;
mod packets;
mod pinned;
mod probes;
mod reference;
