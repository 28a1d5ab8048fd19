//! Conversations: joins the packets of two ends and puts their bytes in order.
//!
//! [`Conversations`] holds the conversations of one partition, within a budget of bytes. Its input is packets, and
//! marks in time. It hands the bytes of each side, in order, to an [`Application`], and each conversation that is over
//! to an [`Observer`].
//!
//! The packets of a conversation have the protocol, both ends with their ports, and the
//! [VLANs](crate::decode::Vlans) in common. Networks may use the same addresses in several VLANs.
//!
//! # What begins a conversation
//!
//! - UDP: any datagram.
//! - TCP: a SYN-ACK, since it shows both a SYN and a host that answers it.
//! - TCP: a segment with payload. It belongs to a connection that is picked up in its middle.
//! - Nothing else. FIN, RST and bare ACK of no conversation are strays: they are counted and dropped.
//!
//! A SYN begins no conversation. It leaves a trace among the last SYNs of its partition: its time, its sequence number
//! and its bytes. If the connection comes about, they become part of its conversation. If not, later SYNs overwrite the
//! trace.
//!
//! Payload on a SYN (TCP Fast Open) is taken as far as the conversation's first packet shows that the other end took
//! it.
//!
//! # What ends it
//!
//! - FIN from both ends, in the order of their bytes, or an RST whose sequence number is the next one, closes a
//!   conversation. A closed one still takes stragglers for some seconds.
//! - A SYN ends a closed conversation. A SYN-ACK that answers a new SYN ends one in any state.
//! - Otherwise a conversation is over when no packet of it comes for too long, when its memory is needed, or when the
//!   capture ends.
//!
//! # Example
//!
//! ```
//! use corelane_net::conversation::{Application, Conversation, Conversations, Ending, Limits, Observer, Side};
//! # use corelane_net::decode::{Packet, UDP, Vlans, mapped};
//!
//! struct Length(usize);
//!
//! impl Application for Length {
//!     type Found = ();
//!     fn data(&mut self, _: Side, _: u64, bytes: &[u8], (): &mut ()) {
//!         self.0 += bytes.len();
//!     }
//!     fn gap(&mut self, _: Side, _: u64, _: u64, (): &mut ()) {}
//!     fn end(&mut self, _: Side, _: u64, (): &mut ()) {}
//!     fn heap_bytes(&self) -> usize {
//!         0
//!     }
//! }
//!
//! struct Print;
//!
//! impl Observer<Length> for Print {
//!     fn begin(&mut self, _: &Conversation) -> Option<Length> {
//!         Some(Length(0))
//!     }
//!     fn over(&mut self, conversation: &Conversation, ending: &Ending, length: Option<Length>, (): &mut ()) {
//!         let (from, to) = (conversation.end(Side::Originator), conversation.end(Side::Responder));
//!         println!("{from} > {to}: {} bytes, {:?}", length.map_or(0, |length| length.0), ending.reason);
//!     }
//! }
//!
//! # let packet = Packet { time_ns: 1, wire_len: 60, frames: 1, source: mapped(1), destination: mapped(2),
//! #     source_port: 5,
//! #     destination_port: 53, protocol: UDP, flags: 0, sequence: 0, acknowledgment: 0, payload: b"question", cut: 0,
//! #     outermost: b"", vlans: Vlans::NONE };
//! let mut conversations = Conversations::new(&Limits::default());
//! conversations.packet(&packet, &mut Print);
//! assert_eq!(conversations.len(), 1);
//! conversations.finish(&mut Print);
//! ```
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `partition.rs` | fragments and conversations together |
//! | `table.rs`, `index.rs`, `segments.rs` | the table: beginnings, expiry, eviction; its index; its memory |
//! | `entry.rs`, `key.rs`, `side.rs` | the state of a conversation; the key of a packet; the two ends |
//! | `stream.rs` | the bytes of one side of a TCP connection, put in order |
//! | `syns.rs` | the traces of the last SYNs |
//! | `application.rs`, `observer.rs` | the traits that a protocol and the owner of the records implement |
//! | `limits.rs` | the limits of a partition, and its counts |

mod application;
mod entry;
mod index;
mod key;
mod limits;
mod observer;
mod partition;
mod segments;
mod side;
mod stream;
mod syns;
mod table;

pub use application::Application;
pub use entry::{Conversation, Ending, Reason, State};
pub use limits::{Counts, LEAST_BYTES, Limits, PIECE_OVERHEAD};
pub use observer::Observer;
pub use partition::Partition;
pub use side::Side;
pub use table::Conversations;
