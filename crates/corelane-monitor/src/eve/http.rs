//! `http`: a request and its response, either of which may not have been seen.

use super::{Header, end, key};
use corelane_net::protocol::http::Exchange;
use serde::Serialize;

#[derive(Serialize)]
struct Fields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    hostname: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_content_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_refer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: Option<&'a str>,
    length: u64,
}

/// Writes the event.
pub(crate) fn write(line: &mut Vec<u8>, header: &Header<'_>, exchange: &Exchange) {
    let (request, response) = (exchange.request.as_ref(), exchange.response.as_ref());
    let (hostname, http_port) = match request.and_then(|request| request.host.as_deref()) {
        Some(host) => host_and_port(host),
        None => (None, None),
    };
    let version = request.map(|request| request.version).or(response.map(|response| response.version));
    let fields = Fields {
        hostname,
        http_port,
        url: request.map(|request| &*request.url),
        http_user_agent: request.and_then(|request| request.user_agent.as_deref()),
        http_content_type: response.and_then(|response| response.content_type.as_deref()).map(without_parameters),
        http_refer: request.and_then(|request| request.referer.as_deref()),
        http_method: request.map(|request| &*request.method),
        protocol: version.map(|version| if version == 0 { "HTTP/1.0" } else { "HTTP/1.1" }),
        status: response.map(|response| response.status),
        redirect: response.and_then(|response| response.location.as_deref()),
        length: response.map_or(0, |response| response.body.bytes),
    };
    header.begin(line, "http");
    key(line, "tx_id", &exchange.number);
    key(line, "http", &fields);
    end(line);
}

/// A header Host, or what there is instead, in its two parts.
fn host_and_port(host: &str) -> (Option<&str>, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if name.ends_with(']') || !name.contains(':') => match port.parse() {
            Ok(port) => (Some(name), Some(port)),
            Err(_) => (Some(host), None),
        },
        _ => (Some(host), None),
    }
}

/// `text/html` of `text/html; charset=utf-8`.
fn without_parameters(content_type: &str) -> &str {
    content_type.split_once(';').map_or(content_type, |(kind, _)| kind)
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
            assert_eq!(host_and_port(host), (Some(name), port));
        }
    }
}
