//! TLS: what the two hellos say in the clear.
//!
//! 1. A stream is a sequence of records: kind, version and length in five bytes, then the content. The five bytes are
//!    put together over pieces.
//! 2. The contents of handshake records are a stream of their own: messages of a kind and a length, of which one may
//!    lie in several records, and one record may hold several.
//! 3. Of a ClientHello and a ServerHello the whole message is kept and read by the crate `tls-parser`. All other
//!    messages are stepped over by their length.
//! 4. Old clients begin with a ClientHello in the form of SSL 2, which is a record of its own form: a length in two
//!    bytes, the kind, the version, and three lists with their lengths in front. It has no extensions, and JA4 says
//!    nothing of it.
//! 5. A side is done with its first record of application data, or of a length or kind that cannot be, or after
//!    [`RECORDS`] bytes. Behind ChangeCipherSpec messages are encrypted, and only a second ClientHello is expected,
//!    which the server may have asked for.
//!
//! The fingerprint is JA4, by FoxIO's published description; `ja4` in `parser.rs` says how it is made.
//!
//! # Gaps
//!
//! A gap inside a record is skipped by the record's length, and the message it hit is lost, as are those that follow in
//! its record. Any other gap ends the side.
//!
//! # Bounds
//!
//! A hello has at most [`HELLO`] bytes, so a side keeps as much.

mod hello;
mod parser;

pub use hello::{ClientHello, ServerHello, version_name};
pub(super) use parser::Tls;
pub use parser::{HELLO, MOST, PROTOCOLS, RECORDS};
