//! Memory below every family: buffers, segments, nodes' links, and what sees to it that nothing is lost or dropped
//! twice.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `buffer.rs` | memory that is allocated fallibly and touched at once |
//! | `segments.rs` | memory that is linked, left and used again |
//! | `link.rs` | links to nodes, with a count of changes |
//! | `moving.rs` | items on their way out of a vector |

pub(crate) mod buffer;
#[cfg(any(target_has_atomic = "64", feature = "portable-atomic"))]
pub(crate) mod link;
pub(crate) mod moving;
pub(crate) mod segments;
