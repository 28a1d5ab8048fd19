//! QUIC: reads the two hellos, which are encrypted with keys that everyone can derive.
//!
//! 1. A datagram holds one packet or several. Those with a long header state their version, two connection IDs and
//!    their length (`header.rs`). Only Initial packets are decrypted, of version 1 (RFC 9000), version 2
//!    (RFC 9369) and late drafts. All other packets have keys of the two ends and are stepped over. So are odd ones
//!    whose length fits, and Initial packets with another destination than the datagram's first packet.
//! 2. The keys of Initial packets follow from the version and the destination ID in the client's first packet
//!    (`keys.rs`). A packet whose tag is right under the keys of its own destination is such a first packet: a
//!    beginning. It shows which side is the client. Before that nothing of the server can be read.
//! 3. Behind a Retry the client's destination is an ID that the server has chosen, and the keys are new. So a packet of
//!    the client that the known keys do not open is tried once with those of its own destination. Where they open it
//!    there is another beginning. The client then sends the same ClientHello again; it is reported once, as its SHA-256
//!    is the same.
//! 4. Two beginnings are kept, each with its own pieces, as any sender can make one. A third one takes the place of the
//!    newer, or of the older where the newer has a whole hello.
//! 5. The CRYPTO frames of each side's Initial packets are one stream of TLS messages. The pieces may come in any
//!    order, over any packets and datagrams (`pieces.rs`); of what has come twice the first counts.
//! 6. A whole ClientHello or ServerHello is read as in [`tls`](super::tls). A server that has another version may
//!    answer in that one (RFC 9368); its keys follow from the same ID, and the client goes on in it.
//! 7. The server's side is over at its ServerHello, unless it asks for another ClientHello. The protocol that it has
//!    chosen, its certificate and all that follows are encrypted for the two ends. The client's side is over then too,
//!    or at its whole hello if that comes later, as in a capture out of order.
//!
//! The Retry packet itself and its tag are not checked. The client's next packet names the new ID, and its own tag
//! proves it: that a Retry was lost or forged changes nothing. A version negotiation only identifies the protocol: the
//! client's first packet of another version is a beginning, also under the ID that it had chosen before.
//!
//! # Which side is the client
//!
//! The keys are no secret, so a server can seal a packet as a client does. Until a whole ClientHello has been read each
//! side may make a beginning. Of two from both sides a third one takes the place of that of its own side. The first
//! whole ClientHello decides. So a server does not hide the client by such packets; but one that sends a whole
//! ClientHello before its client's is whole is taken for the client.
//!
//! # Gaps
//!
//! A hole in a stream waits for a repetition. There are no events of a hello that stays incomplete. A conversation that
//! is picked up after the client's first packets gives no events. A hello whose pieces come between those of two other
//! beginnings may be lost.
//!
//! # Bounds
//!
//! Of each beginning a side keeps at most a hello of [`HELLO`](super::tls::HELLO) bytes, in at most [`PIECES`] pieces.
//! What is further ahead is dropped. A side is done after [`DATAGRAMS`] datagrams, [`INITIALS`] Initial packets, opened
//! or not, or [`BYTES`] bytes of them; at a message that is no hello, too long or wrong, or the piece that would be one
//! too many, where there is no other beginning, which would stay; and after [`HELLOS`] hellos.
//!
//! What is strange does not count there, but has a budget of its own, of the same size, that ends the side too: Initial
//! packets that no key has opened and whose destination is none that keys came from, and datagrams with nothing else,
//! such as those without a long header.
//!
//! In a datagram at most [`COALESCED`] packets are looked at, in a packet [`FRAMES`] frames, where a run of padding and
//! PINGs is one. An Initial packet is tried with at most three keys: of two beginnings, and of its own destination.
//!
//! # Crates that it uses
//!
//! `aes`, `aes-gcm` and `hkdf`, of the same family as `sha2`, which is there for the fingerprint. They are Rust alone,
//! and use the processor's instructions for AES where it has them. `ring` is C and assembly, to be built for every
//! target, and would hash with code of its own beside `sha2`.

mod header;
mod keys;
mod parser;
pub(super) mod pieces;
mod rule;

pub(super) use keys::Keys;
pub(super) use parser::Quic;
pub use parser::{BYTES, COALESCED, DATAGRAMS, FRAMES, HELLOS, INITIALS, MOST};
pub use pieces::PIECES;
pub(super) use rule::packet;
