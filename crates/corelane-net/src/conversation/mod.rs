//! Conversations: the packets of two ends put together, and their bytes in order.

mod sink;

pub use sink::{Application, Side};
