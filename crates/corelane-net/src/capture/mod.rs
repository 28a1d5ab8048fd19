//! Capture files: reading pcap and pcapng, writing pcap.
//!
//! [`Reader`] walks a capture record by record. Files and pipes, packed or not, pass through blocks of memory, from
//! which records are lent: a megabyte, more only for records that are longer, and beside what clones of [`Memory`] hold
//! never more than 24 MiB. The walk is compiled once for each byte order and header shape, and the caller's closure is
//! inlined into it.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `reader.rs`, `step.rs` | the reader over an input and a format; what a format tells it |
//! | `pcap.rs`, `pcapng.rs`, `order.rs` | the formats; byte orders as types |
//! | `input.rs`, `memory.rs`, `map.rs` | where bytes come from; what records are lent from; mapped files |
//! | `record.rs`, `error.rs`, `write.rs` | frames; what can be wrong; writing pcap |

mod error;
mod input;
mod map;
mod memory;
mod order;
mod pcap;
mod pcapng;
mod reader;
mod record;
mod step;
pub mod write;

pub use error::{Compression, OpenError, Part, Place, ReadError, SkipReason, Warning};
pub use memory::Memory;
pub use reader::{Options, Reader};
pub use record::{LinkType, Record};
