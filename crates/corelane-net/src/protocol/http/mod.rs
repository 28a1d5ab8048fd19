//! HTTP/1: requests, responses, and which response belongs to which request.
//!
//! Each side of the connection is read by itself:
//!
//! 1. A start line is looked for, line by line. What stands in front of it is skipped: empty lines, or more of a body
//!    than its head said.
//! 2. The head up to its empty line is put together and read by the crate `httparse`.
//! 3. The head says how long the body is: none (1xx, 204, 304, a response to HEAD), so many bytes, chunks, or until the
//!    connection ends. The body is only counted. A request that expects 100 and gets a refusal before its body began
//!    has no body.
//! 4. Back to 1, for the next of the connection.
//!
//! Requests wait in a queue, and each response belongs to the first that has none yet. A response 1xx belongs to no
//! request and is counted at the response that follows. After 101, and after a CONNECT that was accepted, what follows
//! is not HTTP, and is looked at anew.
//!
//! # Gaps
//!
//! A gap that ends inside a body of known length, or inside a chunk, is skipped by that length, and one in a body that
//! lasts until the end is part of it. Any other gap loses the place, and 1 finds it again, also in the middle of a
//! line, as bodies need not end with one. What a gap hid where a start line or a head was due is not known, so the
//! least is assumed:
//!
//! - Of responses one is lost, and its request has none, if a further request waits to take the response behind the
//!   gap. If only one request waits, the response behind the gap is its own.
//! - Of requests one is lost, and a place is kept for its response.
//!
//! A response that comes before its request is kept, as a gap holds back only its own side. A request that comes with
//! the end of such a gap takes it. Any other request was sent later, so it does not.
//!
//! # Bounds
//!
//! A head has at most [`HEAD`] bytes and [`HEADERS`] headers, a header that is kept [`VALUE`] bytes. [`PIPELINE`]
//! exchanges wait at most, and they hold at most [`WAITING`] bytes; beyond that the oldest goes out as it is.

mod exchange;
mod parser;

pub use exchange::{Body, Exchange, Request, Response};
pub(super) use parser::Http;
pub use parser::{HEAD, HEADERS, MOST, PIPELINE, URL, VALUE, WAITING};
