//! HTTP/1: reads requests and responses, and pairs them.
//!
//! Each side of the connection is read by itself:
//!
//! 1. The parser searches for a start line, line by line. It skips the bytes in front of it: empty lines, or more of a
//!    body than its head stated.
//! 2. The head is collected up to its empty line, and read as lenient servers do (RFC 9112, 3 to 5): words that any
//!    space divides, any version or none, spaces around a header's name, folds. No crate for heads reads these. Of a
//!    head whose end is missing the whole lines count.
//! 3. The head gives the length of the body: none (1xx, 204, 304, a response to HEAD), a number of bytes, chunks, or
//!    everything until the connection ends. The body is only counted. A request that expects 100 and gets a refusal
//!    before its body began has no body.
//! 4. The parser goes back to 1 for the next message of the connection.
//!
//! Requests wait in a queue, and a response belongs to the first request that has none yet. A response 1xx is
//! counted at the response that follows, and is itself the response where the server ends without another one. After
//! 101, and after a CONNECT that was accepted, the bytes that follow are not HTTP, and are identified anew.
//!
//! # Gaps
//!
//! A gap that ends inside a body of known length, or inside a chunk, is skipped by that length. A gap in a body that
//! lasts until the end is part of the body. Any other gap loses the place, and step 1 finds it again, also in the
//! middle of a line, as bodies need not end with a line. If a start line or a head was due, the content of the gap is
//! not known, so the least is assumed:
//!
//! - In responses, one response is lost and its request has none, if a further request waits to take the response
//!   behind the gap. If only one request waits, the response behind the gap belongs to it.
//! - In requests, one request is lost, and a place is kept for its response.
//!
//! A response that comes before its request is kept, as a gap holds back only its own side. A request that comes at the
//! end of such a gap takes it, and so does one that the response's packet acknowledged, or that was under way. Any
//! other request was sent later, and does not take it.
//!
//! # Bounds
//!
//! A head has at most [`HEAD`] bytes; a kept header has at most [`VALUE`] bytes. At most
//! [`PIPELINE`] exchanges wait, and they hold at most [`WAITING`] bytes; beyond that the oldest is reported as it is.

mod exchange;
mod parser;
mod queue;
mod rule;

pub use exchange::{Body, Exchange, Request, Response};
pub(super) use parser::Http;
pub use parser::{HEAD, MOST, PIPELINE, URL, VALUE, WAITING};
pub(super) use rule::{request, status};
