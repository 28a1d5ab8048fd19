//! Conversations: the packets of two ends put together, and their bytes in order.
//!
//! [`Conversations`] holds those of one partition, within a budget of bytes. It is given packets and marks in time; it
//! gives an [`Application`] the bytes of each side in order, and an [`Observer`] each conversation when it is over.
//!
//! # What begins a conversation
//!
//! - UDP: any datagram.
//! - TCP: a SYN-ACK, as it shows that there were both a SYN and a host that answers it; or a segment with payload, a
//!   connection picked up in its middle.
//! - Nothing else. A SYN leaves a trace among the last few hundred of its partition, no conversation: its time, its
//!   sequence number and its bytes are the connection's if there comes to be one, and are overwritten by other SYNs if
//!   not. FIN, RST and bare ACK of no conversation are strays, which are counted.
//!
//! Payload on a SYN is not taken before it comes again, or is a gap if it does not (TCP Fast Open).
//!
//! # What ends it
//!
//! FIN from both ends, in the order of their bytes, or an RST whose sequence number can be of this connection: then it
//! is closed, and takes stragglers for some seconds. A SYN ends a closed one, and a SYN-ACK that answers a new SYN ends
//! one in any state. Else it is over when nothing comes for too long, when its memory is needed, or with the capture.
//!
//! # Example
//!
//! ```
//! use corelane_net::conversation::{Application, Conversation, Conversations, Ending, Limits, Observer, Side};
//! # use corelane_net::decode::{Packet, UDP, mapped};
//!
//! struct Length(usize);
//!
//! impl Application for Length {
//!     fn data(&mut self, _: Side, _: u64, bytes: &[u8]) {
//!         self.0 += bytes.len();
//!     }
//!     fn gap(&mut self, _: Side, _: u64, _: u64) {}
//!     fn end(&mut self, _: Side, _: u64) {}
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
//!     fn over(&mut self, conversation: &Conversation, ending: &Ending, length: Option<Length>) {
//!         let (from, to) = (conversation.end(Side::Originator), conversation.end(Side::Responder));
//!         println!("{from} > {to}: {} bytes, {:?}", length.map_or(0, |length| length.0), ending.reason);
//!     }
//! }
//!
//! # let packet = Packet { time_ns: 1, wire_len: 60, frames: 1, source: mapped(1), destination: mapped(2),
//! #     source_port: 5,
//! #     destination_port: 53, protocol: UDP, flags: 0, sequence: 0, acknowledgment: 0, payload: b"question", cut: 0 };
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
//! | `table.rs`, `index.rs`, `segments.rs` | the table: beginnings, expiry, eviction; where one is found and lies |
//! | `entry.rs`, `key.rs`, `side.rs` | what is kept of one; which one a packet belongs to; its two ends |
//! | `stream.rs` | the bytes of one side of a TCP connection, put in order |
//! | `syns.rs` | the traces of the last SYNs |
//! | `application.rs`, `observer.rs` | the seams: what a protocol gets; what is told of conversations |
//! | `limits.rs` | what a partition may hold, and what is counted |

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
