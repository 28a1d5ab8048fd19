//! Memory below every family: buffers, segments, nodes' links, and what sees to it that nothing is lost or dropped twice.

pub(crate) mod buffer;
#[cfg(target_has_atomic = "64")]
pub(crate) mod link;
pub(crate) mod moving;
pub(crate) mod segments;
