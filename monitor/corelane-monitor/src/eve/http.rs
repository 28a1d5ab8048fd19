//! `http`: a request and its response, either of which may not have been seen.

use super::json::key;
use super::{Events, Header, Message, Seen};
use corelane_net::conversation::Side;
use corelane_net::protocol::http::{Exchange, Request};

impl Message for Exchange {
    fn event_type(&self) -> Events {
        Events::HTTP
    }

    fn from(&self) -> Side {
        self.client
    }

    fn time_ns(&self) -> u64 {
        let request_ns = self.request.as_ref().map_or(0, |request| request.time_ns);
        self.response.as_ref().map_or(request_ns, |response| response.end_ns)
    }

    fn count(&self, seen: &mut Seen, _is_tcp: bool) {
        seen.http_requests += u64::from(self.request.is_some());
        if let Some(response) = &self.response {
            seen.http_responses += 1;
            seen.http_interim += u64::from(response.interim);
        }
    }

    fn write(&self, line: &mut Vec<u8>, header: &Header<'_>) {
        write(line, header, self);
    }
}

fn write(line: &mut Vec<u8>, header: &Header<'_>, exchange: &Exchange) {
    let (request, response) = (exchange.request.as_ref(), exchange.response.as_ref());
    let (hostname, http_port) = request.and_then(Request::host_and_port).unzip();
    let version = request.map(|request| &*request.version).or(response.map(|response| &*response.version));
    header.line(line, "http", |event| {
        event.number(key!("tx_id"), exchange.number);
        event.object(key!("http"), |http| {
            http.some_text(key!("hostname"), hostname);
            http.some_number(key!("http_port"), http_port.flatten());
            http.some_text(key!("url"), request.map(|request| &*request.url));
            http.some_text(key!("http_user_agent"), request.and_then(|request| request.user_agent.as_deref()));
            let content_type = response.and_then(|response| response.content_type.as_deref());
            http.some_text(key!("http_content_type"), content_type.map(without_parameters));
            http.some_text(key!("http_refer"), request.and_then(|request| request.referer.as_deref()));
            http.some_text(key!("http_method"), request.map(|request| &*request.method));
            http.some_text(key!("protocol"), version.filter(|version| !version.is_empty()));
            let status = response.map(|response| response.status);
            http.some_number(key!("status"), status.filter(|&status| status != 0));
            http.some_text(key!("status_string"), response.and_then(|response| response.status_text.as_deref()));
            http.some_text(key!("redirect"), response.and_then(|response| response.location.as_deref()));
            http.number(key!("length"), response.map_or(0, |response| response.body.bytes));
        });
    });
}

/// `text/html` of `text/html; charset=utf-8`.
fn without_parameters(content_type: &str) -> &str {
    content_type.split_once(';').map_or(content_type, |(kind, _)| kind)
}
