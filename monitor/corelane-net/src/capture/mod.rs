//! Captures: reading and writing pcap and pcapng, packet filters, and capturing from an interface of Linux.
//!
//! [`Reader`] walks a capture record by record. Files and pipes, packed or not, are read through blocks of memory, and
//! records are lent from those. A block has a megabyte, or more for a record that is longer. All blocks together never
//! exceed 24 MiB, beside those that clones of [`Memory`] hold. The walk is compiled once for each byte order and header
//! shape. It finds some records at a time, which the caller's closure then gets.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `reader.rs`, `step.rs` | the reader over an input and a format; the result of a walk |
//! | `pcap.rs`, `pcapng.rs`, `order.rs` | the formats; byte orders as types |
//! | `input.rs`, `memory.rs`, `map.rs` | the sources of bytes; the memory of records; mapped files |
//! | `record.rs`, `error.rs`, `write.rs` | frames; errors and warnings; the writers of both formats |
//! | `live.rs`, `live/` | an interface, its state and its statistics; the ring that the kernel fills (Linux) |
//! | `filter.rs` | classic BPF programs: checked for the kernel, run over files |

mod error;
pub mod filter;
mod input;
#[cfg(target_os = "linux")]
pub mod live;
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
