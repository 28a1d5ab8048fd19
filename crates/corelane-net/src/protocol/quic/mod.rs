//! QUIC: reads the two hellos, which are encrypted with keys that everyone can derive.
//!
//! 1. A datagram holds one packet or several. Those with a long header say their version, two connection IDs and their
//!    length (`header.rs`). Only Initial packets of the versions 1 (RFC 9000) and 2 (RFC 9369) are decrypted. All other
//!    packets have keys of the two ends and are stepped over. Drafts are identified, not read.
//! 2. The keys of Initial packets follow from the version and the destination ID in the client's first packet
//!    (`keys.rs`). A packet whose tag is right under the keys of its own destination is such a first packet, and shows
//!    which side is the client. Before that nothing of the server can be read.
//! 3. Behind a Retry the client's destination is an ID that the server has chosen, and the keys are new. So a packet of
//!    the client that the known keys do not open is tried once with those of its own destination. Where they open it
//!    all begins anew, but the same ClientHello, which then comes again, is told once.
//! 4. The CRYPTO frames of each side's Initial packets are one stream of TLS messages. The pieces may come in any
//!    order, over any packets and datagrams (`pieces.rs`); of what has come twice the first counts.
//! 5. A whole ClientHello or ServerHello is read as in [`tls`](super::tls). A server that has another version may
//!    answer in that one (RFC 9368); its keys follow from the same ID.
//! 6. All is over at the ServerHello, unless it asks for another ClientHello. The protocol that the server has chosen,
//!    its certificate and all that follows are encrypted for the two ends.
//!
//! The Retry packet itself and its tag are not checked. The client's next packet names the new ID, and its own tag
//! proves it: that a Retry was lost or forged changes nothing. A version negotiation only identifies the protocol: the
//! client begins anew, and its new first packet is read as in step 3.
//!
//! # Gaps
//!
//! A hole in a stream waits for a repetition. There are no events of a hello that stays incomplete. A conversation that
//! is picked up after the client's first packets gives no events.
//!
//! # Bounds
//!
//! A side keeps at most a hello of [`HELLO`](super::tls::HELLO) bytes, in at most [`PIECES`] pieces. What is further
//! ahead is dropped. A side is done after [`DATAGRAMS`] datagrams, [`INITIALS`] Initial packets, opened or not, or
//! [`BYTES`] bytes of them; at a message that is no hello, too long or wrong; at the piece that would be one too many;
//! and after [`HELLOS`] hellos. In a datagram at most [`COALESCED`] packets are looked at, in a packet [`FRAMES`]
//! frames. An Initial packet is tried with at most two keys.
//!
//! # Crates that it uses
//!
//! `aes`, `aes-gcm` and `hkdf`, of the same family as `sha2`, which is there for the fingerprint. They are Rust alone,
//! and use the processor's instructions for AES where it has them. `ring` is C and assembly, to be built for every
//! target, and would hash with code of its own beside `sha2`.

mod header;
mod keys;
mod parser;
mod pieces;

pub(super) use header::{Kind, long};
pub(super) use keys::Keys;
pub(super) use parser::Quic;
pub use parser::{BYTES, COALESCED, DATAGRAMS, FRAMES, HELLOS, INITIALS, MOST};
pub use pieces::PIECES;
