//! SSH: reads the version lines and the offers of algorithms, which are in the clear.
//!
//! 1. Each side sends a line `SSH-protocol-software comments` (RFC 4253, section 4.2). Lines in front of it, which a
//!    server may send, are skipped, at most [`BEFORE`] bytes.
//! 2. Behind it come packets: a length, the length of the padding, the kind. The first one that is not to be ignored
//!    is KEXINIT, with the algorithms that the side offers. It is kept whole until it is read.
//! 3. Of the packets behind KEXINIT only the kind is of interest. It shows which side is the client, whichever side
//!    opened the connection. So does a name in KEXINIT that only one of them uses.
//! 4. The session makes one [`Handshake`]: when the facts of both sides are complete and the client is known, or when
//!    no more can come.
//!
//! A side is done when its part is read, when its bytes are something else, and at a gap. SSH 1 has no KEXINIT, so
//! where a side speaks nothing else both are done behind their version lines. Of the key exchange by RSA alone (RFC
//! 4432), which hardly any program offers first, the server sends the first message and is taken for the client, unless
//! a name shows it.
//!
//! The fingerprints are HASSH and HASSH server, by Salesforce's published description: the MD5 of the names of the
//! algorithms, in the side's order, for key exchange, encryption, authentication and compression, of the direction in
//! which that side sends.
//!
//! # Bounds
//!
//! A packet has at most [`PACKET`] bytes, so a side keeps at most as many, and its version line.

mod handshake;
mod parser;

pub use handshake::{Handshake, Hassh, Peer};
pub use parser::{BEFORE, LINE, MOST, PACKET, PACKETS};
pub(super) use parser::{Ssh, banner};
