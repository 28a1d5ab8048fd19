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
    /// The time when its head was complete, or as complete as it came, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The method, such as GET.
    pub method: Text,
    /// The target, as it was sent.
    pub url: Text,
    /// The version, such as HTTP/1.1; empty if there is none.
    pub version: Text,
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

impl Request {
    /// The host in its two parts: of the target if that names one, else of the header Host (RFC 9112, 3.2.2). A port
    /// that is none is a part of the name.
    pub fn host_and_port(&self) -> Option<(&str, Option<u16>)> {
        self.authority().or(self.host.as_deref()).map(host_and_port)
    }

    /// The authority of a target in absolute form or, of CONNECT, in authority form.
    fn authority(&self) -> Option<&str> {
        if &*self.method == "CONNECT" {
            return Some(&self.url);
        }
        let (scheme, rest) = self.url.split_once("://")?;
        if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            return None;
        }
        let authority = rest.split(['/', '?', '#']).next()?;
        let host = authority.rsplit('@').next()?;
        (!host.is_empty()).then_some(host)
    }
}

fn host_and_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if name.ends_with(']') || !name.contains(':') => {
            port.parse().map_or((host, None), |port| (name, Some(port)))
        }
        _ => (host, None),
    }
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The time when its head was complete, or as complete as it came, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The time of the last bytes of its body, in nanoseconds since the epoch.
    pub end_ns: u64,
    /// The status, such as 200; 0 if it is no number.
    pub status: u16,
    /// The status as it was sent, if it is not a number from 100 to 999.
    pub status_text: Option<Text>,
    /// The words behind the status.
    pub reason: Text,
    /// The version, such as HTTP/1.1.
    pub version: Text,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_no_part_of_a_host_name() {
        for (host, name, port) in [
            ("example.com", "example.com", None),
            ("example.com:8080", "example.com", Some(8080)),
            ("[2001:db8::1]:80", "[2001:db8::1]", Some(80)),
            ("[2001:db8::1]", "[2001:db8::1]", None),
            ("2001:db8::1", "2001:db8::1", None),
            ("example.com:", "example.com:", None),
            ("example.com:99999", "example.com:99999", None),
        ] {
            assert_eq!(host_and_port(host), (name, port));
        }
    }
}
