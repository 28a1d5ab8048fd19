//! Fragments, TCP streams and the conversations of a partition: every rule, properties against plain references, bounds
//! under floods, and real captures.

mod bounds;
mod captures;
#[path = "../support/captures_folder.rs"]
mod captures_folder;
mod defrag;
mod properties;
mod support;
mod tcp;
mod udp;
