//! The content of a request and its response.

use crate::conversation::Side;

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
    pub method: Box<str>,
    /// The target, as it was sent.
    pub url: Box<str>,
    /// The version's second number: 0 or 1.
    pub version: u8,
    /// The header Host.
    pub host: Option<Box<str>>,
    /// The header User-Agent.
    pub user_agent: Option<Box<str>>,
    /// The header Referer.
    pub referer: Option<Box<str>>,
    /// The header Content-Type.
    pub content_type: Option<Box<str>>,
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
    pub reason: Box<str>,
    /// The version's second number: 0 or 1.
    pub version: u8,
    /// The header Content-Type.
    pub content_type: Option<Box<str>>,
    /// The header Location.
    pub location: Option<Box<str>>,
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
        let optional = [&self.host, &self.user_agent, &self.referer, &self.content_type];
        self.method.len() + self.url.len() + optional.iter().copied().map(optional_len).sum::<usize>()
    }
}

impl Response {
    pub(super) fn heap_bytes(&self) -> usize {
        self.reason.len() + optional_len(&self.content_type) + optional_len(&self.location)
    }
}

fn optional_len(text: &Option<Box<str>>) -> usize {
    text.as_ref().map_or(0, |text| text.len())
}
