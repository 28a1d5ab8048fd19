//! The content of a request and its response.

use crate::conversation::Side;
use crate::protocol::Text;

/// A request and its response; one of them may not have been seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Its number within the connection, from 0, in the order in which exchanges are reported.
    pub number: u64,
    /// The side that asks.
    pub client: Side,
    /// The request.
    pub request: Option<Request>,
    /// The response.
    pub response: Option<Response>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The time when its head was complete, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The method, such as GET.
    pub method: Text,
    /// The target, as it was sent.
    pub url: Text,
    /// The version's second number: 0 or 1.
    pub version: u8,
    /// The header Host.
    pub host: Option<Text>,
    /// The header User-Agent.
    pub user_agent: Option<Text>,
    /// The header Referer.
    pub referer: Option<Text>,
    /// The header Content-Type.
    pub content_type: Option<Text>,
    /// The body.
    pub body: Body,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The time when its head was complete, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The time of the last bytes of its body, in nanoseconds since the epoch.
    pub end_ns: u64,
    /// The status, such as 200.
    pub status: u16,
    /// The words behind the status.
    pub reason: Text,
    /// The version's second number: 0 or 1.
    pub version: u8,
    /// The header Content-Type.
    pub content_type: Option<Text>,
    /// The header Location.
    pub location: Option<Text>,
    /// The number of responses 1xx before it.
    pub interim: u32,
    /// The body.
    pub body: Body,
}

/// The facts about a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Bytes that were seen, without the sizes of chunks.
    pub bytes: u64,
    /// Bytes that a gap has hidden.
    pub missing: u64,
    /// Whether its end was reached.
    pub is_whole: bool,
}

impl Exchange {
    /// The bytes that it holds outside of itself.
    pub fn heap_bytes(&self) -> usize {
        self.request.as_ref().map_or(0, Request::heap_bytes) + self.response.as_ref().map_or(0, Response::heap_bytes)
    }
}

impl Request {
    pub(super) fn heap_bytes(&self) -> usize {
        let headers = [&self.host, &self.user_agent, &self.referer, &self.content_type];
        self.method.heap_bytes() + self.url.heap_bytes() + heap_bytes(headers)
    }
}

impl Response {
    pub(super) fn heap_bytes(&self) -> usize {
        self.reason.heap_bytes() + heap_bytes([&self.content_type, &self.location])
    }
}

fn heap_bytes<const N: usize>(texts: [&Option<Text>; N]) -> usize {
    texts.into_iter().flatten().map(Text::heap_bytes).sum()
}
