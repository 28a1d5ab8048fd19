//! TLS: reads the two hellos, which are in the clear.
//!
//! 1. A stream is a sequence of records: kind, version and length in five bytes, then the content. The five bytes are
//!    collected over pieces.
//! 2. The contents of handshake records are a stream of their own, of messages with a kind and a length. A message may
//!    lie in several records, and a record may hold several messages.
//! 3. A ClientHello and a ServerHello are kept whole, then read. All other messages are skipped by their length.
//! 4. Old clients begin with a ClientHello in the form of SSL 2. It is a record of its own form: a length in two bytes,
//!    the kind, the version, and three lists, whose lengths come first. It has no extensions, and JA4 does not cover
//!    it.
//! 5. A side is done at its first record of application data, at a record with an impossible length or kind, or after
//!    [`RECORDS`] bytes. Messages behind ChangeCipherSpec are encrypted. Only a second ClientHello is expected there,
//!    as the server may have asked for it.
//!
//! The fingerprints are JA4, by FoxIO's published description (`ja4` in `parser.rs` has the steps), and JA3, which is
//! made where it is asked for.
//!
//! # Gaps
//!
//! A gap inside a record is skipped by the record's length. The message that it hits is lost, and so are those that
//! follow in its record. Any other gap ends the side.
//!
//! # Bounds
//!
//! A hello has at most [`HELLO`] bytes, so a side keeps at most as many.

mod hello;
mod parser;
mod rule;

pub use hello::{ClientHello, Ja3, ServerHello, version_name};
pub use parser::{HELLO, MOST, PROTOCOLS, RECORDS};
pub(super) use parser::{Tls, client_hello, server_hello};
pub(super) use rule::{record, ssl2_hello};
