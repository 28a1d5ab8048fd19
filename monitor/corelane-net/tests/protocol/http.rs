//! HTTP/1: framing, pairing, gaps, bounds.

use crate::support::{C, S, Step, data, exchanges, identified, run, short, shorts};
use corelane_net::conversation::{Application, Side};
use corelane_net::protocol::{Carrier, Detail, Event, Protocol, Session};

fn get(url: &str) -> Step {
    data(format!("GET {url} HTTP/1.1\r\nHost: h\r\n\r\n"))
}

fn ok(body: &str) -> Step {
    data(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}

#[test]
fn an_exchange_has_what_both_heads_say() {
    let found = exchanges(&[
        (
            C,
            data(
                "POST /form?a=b HTTP/1.1\r\nHost: example.org\r\nUser-Agent: curl/8\r\nreferer: http://x/\r\n\
                 Content-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc",
            ),
        ),
        (
            S,
            data(
                "HTTP/1.0 302 Moved here\r\nContent-Type: text/html\r\nLocation: /there\r\nContent-Length: 4\r\n\r\nab",
            ),
        ),
        (S, data("cd")),
    ]);
    let [exchange] = &found[..] else { panic!("{found:?}") };
    assert_eq!((exchange.number, exchange.client), (0, C));
    let request = exchange.request.as_ref().unwrap();
    assert_eq!((&*request.method, &*request.url, &*request.version), ("POST", "/form?a=b", "HTTP/1.1"));
    assert_eq!(request.host.as_deref(), Some("example.org"));
    assert_eq!(request.user_agent.as_deref(), Some("curl/8"));
    assert_eq!(request.referer.as_deref(), Some("http://x/"));
    assert_eq!(request.content_type.as_deref(), Some("text/plain"));
    assert_eq!((request.time_ns, request.body.bytes, request.body.is_whole), (0, 3, true));
    let response = exchange.response.as_ref().unwrap();
    assert_eq!((response.status, &*response.reason, &*response.version), (302, "Moved here", "HTTP/1.0"));
    assert_eq!(response.content_type.as_deref(), Some("text/html"));
    assert_eq!(response.location.as_deref(), Some("/there"));
    assert_eq!((response.time_ns, response.end_ns, response.body.bytes), (1, 2, 4));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let found = shorts(&[
        (C, data("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nHEAD /3 HTTP/1.1\r\n\r\nGET /4 HTTP/1.1\r\n\r\n")),
        (S, data("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\n22")),
        (S, data("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n4444")),
    ]);
    assert_eq!(found, ["GET /1 0 > 200 1", "GET /2 0 > 404 2", "HEAD /3 0 > 200 0", "GET /4 0 > 200 4"]);
}

#[test]
fn chunks_are_counted_without_their_sizes() {
    let found = shorts(&[
        (
            C,
            data(
                "POST /1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nA;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
            ),
        ),
        (C, get("/2")),
        (S, data("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0005 \r\nabcde\r\n000\r\n\r\n")),
        (S, data("HTTP/1.1 204 None\r\n\r\n")),
    ]);
    assert_eq!(found, ["POST /1 12 > 200 5", "GET /2 0 > 204 0"]);
}

#[test]
fn a_size_that_is_none_loses_the_place_and_the_next_head_finds_it() {
    for size in ["x", "", "ffffffffffffffff"] {
        let found = shorts(&[
            (C, get("/1")),
            (S, data(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\nabc"))),
            (C, get("/2")),
            (S, ok("12")),
        ]);
        assert_eq!(found, ["GET /1 0 > 200 0~", "GET /2 0 > 200 2"], "{size:?}");
    }
}

#[test]
fn responses_without_a_body_have_none_whatever_they_say() {
    for status in ["204 x", "304 x"] {
        let response = data(format!("HTTP/1.1 {status}\r\nContent-Length: 7\r\n\r\n"));
        let found = shorts(&[(C, get("/1")), (S, response), (C, get("/2")), (S, ok("z"))]);
        assert_eq!(found, [format!("GET /1 0 > {} 0", &status[..3]), "GET /2 0 > 200 1".to_owned()]);
    }
}

#[test]
fn continue_belongs_to_the_response_behind_it() {
    let found = exchanges(&[
        (C, data("PUT /1 HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")),
        (S, data("HTTP/1.1 100 Continue\r\n\r\n")),
        (C, data("ab")),
        (S, data("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n")),
        (S, ok("")),
    ]);
    assert_eq!(found.iter().map(short).collect::<Vec<_>>(), ["PUT /1 2 > 200 0"]);
    assert_eq!(found[0].response.as_ref().unwrap().interim, 2);
}

/// A server that ends, or that asks for a body which never comes.
#[test]
fn the_last_interim_response_is_told_where_no_other_follows() {
    let ask = || data("PUT /1 HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    let interim = |status: &str| data(format!("HTTP/1.1 {status}\r\nContent-Type: a/b\r\n\r\n"));
    let found = exchanges(&[(C, ask()), (S, interim("100 Continue")), (S, interim("102 Processing")), (S, Step::End)]);
    assert_eq!(found.iter().map(short).collect::<Vec<_>>(), ["PUT /1 0~ > 102 0"]);
    let response = found[0].response.as_ref().unwrap();
    assert_eq!((response.interim, &*response.reason, response.time_ns), (1, "Processing", 2));
    assert_eq!(response.content_type.as_deref(), Some("a/b"));
    // Bytes behind it are no body.
    let body = data("HTTP/1.1 100 ok\r\nContent-Length: 4\r\n\r\nabcd");
    assert_eq!(shorts(&[(C, get("/1")), (S, body)]), ["GET /1 0 > 100 0"]);
    // The requests behind the one that it is for have none, and one that is answered has its own.
    let found = shorts(&[(C, get("/1")), (C, get("/2")), (S, interim("103 Hints"))]);
    assert_eq!(found, ["GET /1 0 > 103 0", "GET /2 0 > -"]);
    let found = shorts(&[(C, get("/1")), (S, interim("103 Hints")), (S, ok("a")), (C, get("/2")), (S, Step::End)]);
    assert_eq!(found, ["GET /1 0 > 200 1", "GET /2 0 > -"]);
    // One whose request was not seen is told, too.
    assert_eq!(shorts(&[(S, interim("100 Continue")), (S, Step::End)]), ["- > 100 0"]);
}

#[test]
fn a_body_that_was_refused_is_not_waited_for() {
    let found = shorts(&[
        (C, data("PUT /1 HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")),
        (S, data("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n")),
        (C, get("/2")),
        (S, ok("")),
    ]);
    assert_eq!(found, ["PUT /1 0~ > 417 0", "GET /2 0 > 200 0"]);
}

#[test]
fn a_response_may_come_before_the_request_is_over() {
    let found = shorts(&[
        (C, data("PUT /1 HTTP/1.1\r\nContent-Length: 4\r\n\r\nab")),
        (S, ok("no")),
        (C, data("cd")),
        (C, get("/2")),
        (S, ok("")),
    ]);
    assert_eq!(found, ["PUT /1 4 > 200 2", "GET /2 0 > 200 0"]);
}

#[test]
fn a_body_of_no_length_lasts_until_the_end() {
    let head = "HTTP/1.0 200 OK\r\n\r\n";
    assert_eq!(shorts(&[(C, get("/")), (S, data(head)), (S, data("abc")), (S, Step::End)]), ["GET / 0 > 200 3"]);
    // A coding that is not chunked has no length either, whatever is stated.
    let coded = "HTTP/1.0 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\n";
    assert_eq!(shorts(&[(C, get("/")), (S, data(coded)), (S, data("abc"))]), ["GET / 0 > 200 3"]);
}

#[test]
fn an_end_inside_a_body_cuts_it() {
    let cut = data("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    assert_eq!(shorts(&[(C, get("/")), (S, cut)]), ["GET / 0 > 200 3~"]);
    let cut = data("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc");
    assert_eq!(shorts(&[(C, cut)]), ["POST / 3~ > -"]);
}

#[test]
fn what_is_not_answered_is_reported_at_the_end() {
    let found = shorts(&[(C, get("/1")), (C, get("/2")), (S, ok("")), (S, Step::End), (C, get("/3"))]);
    assert_eq!(found, ["GET /1 0 > 200 0", "GET /2 0 > -", "GET /3 0 > -"]);
}

#[test]
fn a_connection_may_be_picked_up_at_a_response() {
    let found = shorts(&[(S, ok("abc")), (C, get("/2")), (S, ok("d"))]);
    assert_eq!(found, ["- > 200 3", "GET /2 0 > 200 1"]);
    // Even if the end that was seen first is the server.
    let found = exchanges(&[(C, ok("abc")), (S, get("/2")), (C, ok("d"))]);
    assert_eq!(found.iter().map(short).collect::<Vec<_>>(), ["- > 200 3", "GET /2 0 > 200 1"]);
    assert!(found.iter().all(|exchange| exchange.client == S));
}

/// As servers do where a client opens a connection ahead and does not use it.
#[test]
fn a_response_behind_the_end_of_the_client_is_told_without_a_request() {
    let refusal = || data("HTTP/1.0 408 Timeout\r\n\r\nslow");
    assert_eq!(shorts(&[(C, Step::End), (S, refusal()), (S, Step::End)]), ["- > 408 4"]);
    let found = shorts(&[(C, get("/1")), (C, Step::End), (S, ok("a")), (S, ok("bc")), (S, refusal())]);
    assert_eq!(found, ["GET /1 0 > 200 1", "- > 200 2", "- > 408 4"]);
}

#[test]
fn a_gap_in_a_body_is_skipped_by_its_length() {
    let found = shorts(&[
        (C, get("/1")),
        (S, data("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab")),
        (S, Step::Gap(5)),
        (C, get("/2")),
        (S, data("xyzHTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n12")),
        (S, Step::Gap(4)),
        (S, data("345\r\n0\r\n\r\n")),
    ]);
    assert_eq!(found, ["GET /1 0 > 200 5-5", "GET /2 0 > 404 5-4"]);
}

#[test]
fn a_gap_up_to_the_very_end_of_a_body_ends_it() {
    let found = shorts(&[
        (C, get("/1")),
        (S, data("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")),
        (S, Step::Gap(5)),
        (C, get("/2")),
        (S, data("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n")),
        (S, Step::Gap(5)),
        (S, data("\r\n0\r\n\r\n")),
    ]);
    assert_eq!(found, ["GET /1 0 > 200 0-5", "GET /2 0 > 200 0-5"]);
}

#[test]
fn a_gap_behind_chunks_is_searched_for_the_next_head() {
    let found = shorts(&[
        (C, get("/1")),
        (S, data("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n12")),
        (S, Step::Gap(40)),
        // The rest of a chunk without a line end.
        (S, data("of a body\nHTTP/9.1 600 X\nother}HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx")),
        (C, get("/2")),
        (S, ok("z")),
    ]);
    // The second response came before the second request was sent.
    assert_eq!(found, ["GET /1 0 > 200 2-40~", "- > 404 1", "GET /2 0 > 200 1"]);
    let found = shorts(&[
        (C, get("/1")),
        (C, get("/2")),
        (S, data("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n12")),
        (S, Step::Gap(40)),
        (S, data("of a bodyHTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx")),
    ]);
    assert_eq!(found, ["GET /1 0 > 200 2-40~", "GET /2 0 > 404 1"]);
}

#[test]
fn a_lost_response_leaves_its_request_without() {
    // The gap shows when the next response comes, and by then the next request has come.
    let found = shorts(&[
        (C, get("/1")),
        (S, ok("a")),
        (C, get("/2")),
        (C, get("/3")),
        (S, Step::Gap(100)),
        (S, ok("ccc")),
        (C, get("/4")),
        (S, ok("dddd")),
    ]);
    assert_eq!(found, ["GET /1 0 > 200 1", "GET /2 0 > -", "GET /3 0 > 200 3", "GET /4 0 > 200 4"]);
}

#[test]
fn a_gap_in_a_head_finds_the_next_head() {
    let found = shorts(&[
        (C, get("/1")),
        (C, get("/2")),
        (S, data("HTTP/1.1 200 OK\r\nContent-Le")),
        (S, Step::Gap(10)),
        (S, data("pe: text/html\r\n\r\n<html>\r\n")),
        (S, ok("22")),
    ]);
    assert_eq!(found, ["GET /1 0 > 200 0~", "GET /2 0 > 200 2"]);
}

#[test]
fn the_only_request_takes_the_response_behind_a_gap() {
    let found = shorts(&[(C, get("/1")), (S, ok("a")), (C, get("/2")), (S, Step::Gap(3)), (S, ok("bb"))]);
    assert_eq!(found, ["GET /1 0 > 200 1", "GET /2 0 > 200 2"]);
}

#[test]
fn a_lost_request_keeps_a_place_for_its_response() {
    let found = shorts(&[
        (C, get("/1")),
        (S, ok("a")),
        (C, Step::Gap(20)),
        (C, data(" lost: yes\r\n\r\n{\"a\":1}GET /3 HTTP/1.1\r\n\r\n")),
        (S, ok("bb")),
        (S, ok("ccc")),
    ]);
    assert_eq!(found, ["GET /1 0 > 200 1", "- > 200 2", "GET /3 0 > 200 3"]);
}

#[test]
fn a_gap_that_held_requests_back_does_not_shift_the_pairs() {
    // The server's side went on while the client's waited for a segment that never came.
    let found = shorts(&[
        (C, get("/1")),
        (S, ok("a")),
        (S, ok("bb")),
        (S, ok("ccc")),
        (C, Step::Gap(40)),
        (C, get("/4")),
        (S, ok("dddd")),
    ]);
    assert_eq!(found, ["GET /1 0 > 200 1", "- > 200 2", "- > 200 3", "GET /4 0 > 200 4"]);
}

/// Its packet acknowledged them, so that they were sent before.
#[test]
fn requests_that_were_recorded_behind_their_responses_take_them() {
    use corelane_net::protocol::Session;
    let mut session = Session::new(Carrier::Stream);
    let mut events = Vec::new();
    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    session.data(S, 0, ok, &mut events);
    session.answered_early(S);
    session.data(S, 1, ok, &mut events);
    session.answered_early(S);
    session.data(C, 2, b"GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n", &mut events);
    session.data(S, 3, ok, &mut events);
    session.data(C, 4, b"GET /later HTTP/1.1\r\n\r\n", &mut events);
    for side in Side::BOTH {
        session.end(side, 5, &mut events);
    }
    let exchange = |event: &Event| match event {
        Event::Http(exchange) => Some(short(exchange)),
        _ => None,
    };
    let found: Vec<_> = events.iter().filter_map(exchange).collect();
    assert_eq!(found, ["GET /1 0 > 200 1", "GET /2 0 > 200 1", "- > 200 1", "GET /later 0 > -"]);
}

#[test]
fn the_requests_that_come_with_the_end_of_a_gap_take_the_responses_that_waited() {
    use corelane_net::protocol::Session;
    let mut session = Session::new(Carrier::Stream);
    let mut events = Vec::new();
    let ok = |len: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {len}\r\n\r\n{}", "x".repeat(len)).into_bytes();
    session.data(C, 0, b"GET /1 HTTP/1.1\r\n\r\n", &mut events);
    session.data(S, 1, &ok(1), &mut events);
    session.data(S, 2, &ok(2), &mut events);
    session.data(S, 3, &ok(3), &mut events);
    session.gap(C, 4, 18, &mut events);
    session.data(C, 4, b"GET /3 HTTP/1.1\r\n\r\n", &mut events);
    session.data(C, 5, b"GET /4 HTTP/1.1\r\n\r\n", &mut events);
    session.data(S, 6, &ok(4), &mut events);
    let found: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Http(exchange) => Some(short(exchange)),
            _ => None,
        })
        .collect();
    assert_eq!(found, ["GET /1 0 > 200 1", "- > 200 2", "GET /3 0 > 200 3", "GET /4 0 > 200 4"]);
}

#[test]
fn a_body_longer_than_stated_is_not_taken_for_a_head() {
    let found = shorts(&[
        (C, get("/1")),
        (S, data("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcdef")),
        (C, get("/2")),
        (S, ok("z")),
    ]);
    assert_eq!(found, ["GET /1 0 > 200 2", "GET /2 0 > 200 1"]);
}

#[test]
fn a_connect_that_is_accepted_hides_what_is_inside() {
    let hello = crate::tls::client_hello();
    let steps = [
        (C, data("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n")),
        (S, data("HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n")),
        (C, data(&hello)),
    ];
    let events = run(Carrier::Stream, &steps);
    let names: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::Identified(found) => found.protocol.name(),
            Event::Http(_) => "exchange",
            Event::ClientHello(_) => "hello",
            _ => "other",
        })
        .collect();
    assert_eq!(names, ["http", "exchange", "tls", "hello"]);
    // One that is refused does not.
    let refused = [
        (C, data("CONNECT h:443 HTTP/1.1\r\n\r\n")),
        (S, data("HTTP/1.1 407 Who?\r\nContent-Length: 2\r\n\r\nno")),
        (C, get("/")),
    ];
    assert_eq!(shorts(&refused), ["CONNECT h:443 0 > 407 2", "GET / 0 > -"]);
}

#[test]
fn an_upgrade_ends_http() {
    let steps = [
        (C, data("GET /chat HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")),
        (S, data("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n\r\n\x01\x02GET / HTTP/1.1\r\n\r\n")),
        (C, data("\u{81}GET / HTTP/1.1\r\n\r\n")),
    ];
    assert_eq!(shorts(&steps), ["GET /chat 0 > 101 0"]);
    let http2 = [
        (C, data("GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n")),
        (S, data("HTTP/1.1 101 Switching\r\n\r\n")),
        (C, data("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
    ];
    let last = run(Carrier::Stream, &http2).pop();
    assert!(matches!(last, Some(Event::Identified(found)) if found.protocol == Protocol::Http2), "{last:?}");
}

#[test]
fn numbers_go_on_behind_a_tunnel() {
    let steps = [
        (C, get("/before")),
        (S, ok("0")),
        (C, data("CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n")),
        (S, data("HTTP/1.1 200 OK\r\n\r\n")),
        (C, get("/1")),
        (S, ok("a")),
        (C, data("GET /chat HTTP/1.1\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")),
        (S, data("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n")),
        (C, get("/2")),
        (S, ok("b")),
    ];
    let found = exchanges(&steps);
    let numbers: Vec<_> = found.iter().map(|exchange| exchange.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4], "{:?}", shorts(&steps));
    // Also where what comes behind was there before the answer, and where one side's rest comes before the other is
    // told the end.
    let early = [
        (C, data("CONNECT h:80 HTTP/1.1\r\n\r\nGET /1 HTTP/1.1\r\n\r\n")),
        (S, data("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")),
        (C, get("/2")),
        (S, ok("b")),
    ];
    let numbers: Vec<_> = exchanges(&early).iter().map(|exchange| exchange.number).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "{:?}", shorts(&early));
    assert!(numbers.len() >= 2, "{:?}", shorts(&early));
}

#[test]
fn what_came_before_the_verdict_has_its_time() {
    let found = exchanges(&[(C, data("\r\n")), (C, data("GET / HT")), (C, data("TP/1.1\r\n\r\n")), (S, ok(""))]);
    assert_eq!(found[0].request.as_ref().unwrap().time_ns, 2);
}

#[test]
fn lines_may_end_without_a_carriage_return() {
    let found =
        shorts(&[(C, data("\n\nGET / HTTP/1.0\nHost: h\n\n")), (S, data("HTTP/1.0 200\nContent-Length: 1\n\nx"))]);
    assert_eq!(found, ["GET / 0 > 200 1"]);
}

#[test]
fn a_head_that_is_too_long_counts_as_far_as_its_lines_are_whole() {
    let long = format!("GET /1 HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "y".repeat(70_000));
    let found = shorts(&[(C, data(long)), (C, get("/2")), (S, ok("a")), (S, ok("bb"))]);
    assert_eq!(found, ["GET /1 0~ > 200 1", "GET /2 0 > 200 2"]);
    let many = format!("GET /1 HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(200));
    let found = shorts(&[(C, data(many)), (C, get("/2")), (S, ok("a")), (S, ok("bb"))]);
    assert_eq!(found, ["GET /1 0 > 200 1", "GET /2 0 > 200 2"]);
}

#[test]
fn a_request_line_that_is_too_long_keeps_a_place_for_its_response() {
    let longer = format!("GET /{} HTTP/1.1\r\n\r\n", "u".repeat(20_000));
    let found =
        shorts(&[(C, get("/1")), (C, data(longer)), (C, get("/3")), (S, ok("a")), (S, ok("bb")), (S, ok("ccc"))]);
    assert_eq!(found, ["GET /1 0 > 200 1", "- > 200 2", "GET /3 0 > 200 3"]);
}

/// As the first of a connection, which is identified by it, and as a later one.
#[test]
fn request_lines_are_read_as_lenient_servers_do() {
    let lines: [(&[u8], [&str; 3]); 25] = [
        (b"GET /a b HTTP/1.1", ["GET", "/a", "HTTP/1.1"]),
        (b"GET /cgi;cat /etc/passwd|?x=1 HTTP/1.0", ["GET", "/cgi;cat", "HTTP/1.0"]),
        (b"GET  /a  HTTP/1.1", ["GET", "/a", "HTTP/1.1"]),
        (b"GET /a HTTP/1.1  ", ["GET", "/a", "HTTP/1.1"]),
        (b"GET /a HTTP/1.1\t", ["GET", "/a", "HTTP/1.1"]),
        (b" GET /a HTTP/1.1", ["GET", "/a", "HTTP/1.1"]),
        (b"\tGET /a HTTP/1.1", ["GET", "/a", "HTTP/1.1"]),
        (b"GET\t/a\tHTTP/1.1", ["GET", "/a", "HTTP/1.1"]),
        (b"GET /a\tb HTTP/1.1", ["GET", "/a\tb", "HTTP/1.1"]),
        (b"GET \x0b/a\x0cHTTP/1.1", ["GET", "/a", "HTTP/1.1"]),
        ("GET /ä HTTP/1.1".as_bytes(), ["GET", "/ä", "HTTP/1.1"]),
        (b"GET /\xe4\xff HTTP/1.1", ["GET", "/\\xe4\\xff", "HTTP/1.1"]),
        (b"GET /a\0b HTTP/1.1", ["GET", "/a\0b", "HTTP/1.1"]),
        (b"GET /a\x7f HTTP/1.1", ["GET", "/a\x7f", "HTTP/1.1"]),
        (b"GET /a HTTP/1.2", ["GET", "/a", "HTTP/1.2"]),
        (b"GET /a HTTP/2.0", ["GET", "/a", "HTTP/2.0"]),
        (b"GET /a HTTP/1.10", ["GET", "/a", "HTTP/1.10"]),
        (b"GET /a http/1.1", ["GET", "/a", "http/1.1"]),
        (b"GET /a HTTP", ["GET", "/a", "HTTP"]),
        (b"GET /a", ["GET", "/a", ""]),
        (b"GET /a ", ["GET", "/a", ""]),
        // Without a target, what stands in its place is logged, as by Suricata.
        (b"GET HTTP/1.1", ["GET", "HTTP/1.1", ""]),
        (b"POST  http/1.0 ", ["POST", "http/1.0", ""]),
        (b"GET\tHTTP/2", ["GET", "HTTP/2", ""]),
        (b"ODD odd HTTP/9", ["ODD", "odd", "HTTP/9"]),
    ];
    for (line, words) in lines {
        // An unknown method has to look more like one at first.
        let first = if line.starts_with(b"ODD") { None } else { Some("") };
        for before in first.into_iter().chain(["GET /first HTTP/1.1\r\nHost: h\r\n\r\n"]) {
            let sent = [before.as_bytes(), line, b"\r\nHost: odd\r\nContent-Length: 2\r\n\r\nab"].concat();
            let found = exchanges(&[(C, data(sent)), (C, get("/last")), (S, ok("")), (S, ok("1")), (S, ok("22"))]);
            let at = usize::from(!before.is_empty());
            let request = found[at].request.as_ref().unwrap_or_else(|| panic!("{}", line.escape_ascii()));
            assert_eq!([&*request.method, &*request.url, &*request.version], words, "{}", line.escape_ascii());
            assert_eq!(request.host.as_deref(), Some("odd"), "{}", line.escape_ascii());
            assert_eq!(request.body.bytes, 2);
            assert_eq!(found[at].response.as_ref().unwrap().body.bytes, at as u64);
            assert_eq!(short(&found[at + 1]), format!("GET /last 0 > 200 {}", at + 1));
        }
    }
}

#[test]
fn other_protocols_lines_are_no_requests() {
    for line in [
        "OPTIONS sip:a@b SIP/2.0",
        "OPTIONS rtsp://h/a RTSP/1.0",
        "OPTIONS / RTSP/1.0",
        "GET key",
        "SEARCH ALL",
        "get /lower",
        "LOCK",
        "a b c d",
        "COPY 1:2 folder",
        "ODD HTTP/1.1",
        "GET HTTPS",
        "GET",
    ] {
        let found = identified(Carrier::Stream, &[(C, data(format!("{line}\r\nHost: h\r\n\r\n")))]);
        assert!(found.is_none_or(|found| found.protocol != Protocol::Http1), "{line}");
    }
}

/// Behind a whole exchange, and as what is seen first of a connection.
#[test]
fn status_lines_are_read_as_lenient_clients_do() {
    for (line, status, text, version) in [
        ("HTTP/2.0 200 ok", 200, None, "HTTP/2.0"),
        ("HTTP/1.2 200 ok", 200, None, "HTTP/1.2"),
        ("http/1.1 200 ok", 200, None, "http/1.1"),
        ("HTTP/1.1  200  ok", 200, None, "HTTP/1.1"),
        ("HTTP/1.1\t200\tok", 200, None, "HTTP/1.1"),
        ("HTTP/1.1 200", 200, None, "HTTP/1.1"),
        ("HTTP/1.1 200 ", 200, None, "HTTP/1.1"),
        ("HTTP/1.1 0200 ok", 200, None, "HTTP/1.1"),
        ("HTTP/1.1 2000 ok", 2000, Some("2000"), "HTTP/1.1"),
        ("HTTP/1.1 20 ok", 20, Some("20"), "HTTP/1.1"),
        ("HTTP/1.1 200ok", 0, Some("200ok"), "HTTP/1.1"),
        ("HTTP/1.1 99999 ok", 0, Some("99999"), "HTTP/1.1"),
        ("HTTP/1.1 2\u{e4}0 ok", 0, Some("2\u{e4}0"), "HTTP/1.1"),
    ] {
        let answer = data(format!("{line}\r\nContent-Length: 2\r\n\r\nab"));
        let steps = [(C, get("/1")), (S, answer), (C, get("/2")), (S, ok("z"))];
        for steps in [&steps[..], &steps[1..]] {
            let found = exchanges(steps);
            let response = found[0].response.as_ref().unwrap_or_else(|| panic!("{line}"));
            assert_eq!((response.status, response.status_text.as_deref()), (status, text), "{line}");
            assert_eq!((&*response.version, response.body.bytes), (version, 2), "{line}");
            assert_eq!(short(&found[1]), "GET /2 0 > 200 1", "{line}");
        }
    }
    // What says no status is a response only where one is due.
    let silent = data("HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    let found = shorts(&[(C, get("/1")), (S, silent), (C, get("/2")), (S, ok("z"))]);
    assert_eq!(found, ["GET /1 0 > 0 0", "GET /2 0 > 200 1"]);
}

/// One that cannot be read at all takes no other's place.
#[test]
fn a_response_is_never_given_to_another_request() {
    for odd in ["XTTP/1.1 200 ok\r\nContent-Length: 2\r\n\r\nab", "<html>\r\n</html>", "\0\0\0\r\n"] {
        let found = shorts(&[(C, get("/1")), (S, data(odd)), (C, get("/2")), (S, ok("zz")), (C, get("/3"))]);
        assert_eq!(found, ["GET /1 0 > -", "GET /2 0 > 200 2", "GET /3 0 > -"], "{odd}");
    }
    // Without another request the response behind it is the answer.
    let found = shorts(&[(C, get("/1")), (S, data("odd\r\n")), (S, ok("zz"))]);
    assert_eq!(found, ["GET /1 0 > 200 2"]);
}

#[test]
fn headers_are_read_as_lenient_servers_do() {
    for header in [
        "Host : there",
        "Host\t:\tthere ",
        "HOST:there",
        "Host:\r\n there",
        "Host:\r\n\tthere\r\n ",
        " Host: there",
        "no colon\r\nHost: there",
        ": no name\r\nHost: there",
        "\u{ff}: x\r\nHost: there",
        "(odd): x\r\nHost: there",
        "X: a\r\n Host: folded\r\nHost: there",
    ] {
        let found = exchanges(&[(C, data(format!("GET / HTTP/1.1\r\n{header}\r\nReferer: r\r\n\r\n")))]);
        let request = found[0].request.as_ref().unwrap_or_else(|| panic!("{header:?}"));
        assert_eq!([request.host.as_deref(), request.referer.as_deref()], [Some("there"), Some("r")], "{header:?}");
        let answer = header.replace("Host", "Location").replace("HOST", "LOCATION");
        let found = exchanges(&[(S, data(format!("HTTP/1.1 302 No\r\n{answer}\r\nContent-Length: 0\r\n\r\n")))]);
        assert_eq!(found[0].response.as_ref().unwrap().location.as_deref(), Some("there"), "{answer:?}");
    }
    let folded = exchanges(&[(C, data("GET / HTTP/1.1\r\nUser-Agent: a\r\n  b\n\tc \r\nHost: h\r\n\r\n"))]);
    assert_eq!(folded[0].request.as_ref().unwrap().user_agent.as_deref(), Some("a b c"));
}

#[test]
fn the_host_of_the_target_counts_before_the_header() {
    for (line, host) in [
        ("GET / HTTP/1.1", ("header", Some(1))),
        ("GET http://there/a?b HTTP/1.1", ("there", None)),
        ("GET HTTP://user:word@there:80?b HTTP/1.1", ("there", Some(80))),
        ("GET http:///a HTTP/1.1", ("header", Some(1))),
        ("GET /?url=http://there/ HTTP/1.1", ("header", Some(1))),
        ("CONNECT there:443 HTTP/1.1", ("there", Some(443))),
    ] {
        let found = exchanges(&[(C, data(format!("{line}\r\nHost: header:1\r\n\r\n")))]);
        assert_eq!(found[0].request.as_ref().unwrap().host_and_port(), Some(host), "{line}");
    }
}

/// The whole lines of a head that a gap, a snaplen or the end cuts.
#[test]
fn a_head_without_its_end_counts_as_far_as_its_lines_are_whole() {
    let request = "GET /cut HTTP/1.1\r\nHost: h\r\nReferer: r\r\n\r\n";
    let response = "HTTP/1.1 302 Found\r\nLocation: there\r\nContent-Type: x\r\n\r\n";
    for cut in 1..request.len() {
        let (seen, line) = (&request[..cut], request.find('\n').unwrap() + 1);
        let gap = vec![(C, data(seen)), (C, Step::Gap(200)), (S, ok("a")), (C, get("/2")), (S, ok("bb"))];
        let ended = vec![(C, data(seen)), (S, ok("a"))];
        for (behind, steps) in [(1, &gap), (0, &ended)] {
            let found = exchanges(steps);
            let first = found[0].request.as_ref();
            assert_eq!(first.is_some(), cut >= line, "{seen:?}");
            let Some(first) = first else { continue };
            assert_eq!((&*first.url, first.body.is_whole), ("/cut", false));
            assert_eq!(first.host.is_some(), seen.contains("h\r\n"), "{seen:?}");
            assert_eq!(first.referer.is_some(), seen.contains("r\r\n"), "{seen:?}");
            assert_eq!(found[0].response.as_ref().map(|response| response.body.bytes), Some(1), "{seen:?}");
            assert_eq!(found[1..].iter().map(short).collect::<Vec<_>>(), &["GET /2 0 > 200 2"][..behind]);
        }
    }
    for cut in 1..response.len() {
        let (seen, line) = (&response[..cut], response.find('\n').unwrap() + 1);
        let gap = vec![(C, get("/1")), (S, data(seen)), (S, Step::Gap(9)), (C, get("/2")), (S, ok("bb"))];
        let ended = vec![(C, get("/1")), (S, data(seen))];
        for steps in [&gap, &ended] {
            let found = exchanges(steps);
            let first = found[0].response.as_ref();
            assert_eq!(first.is_some(), cut >= line, "{seen:?}");
            let Some(first) = first else { continue };
            assert_eq!((first.status, first.body.is_whole), (302, false));
            assert_eq!(first.location.is_some(), seen.contains("there\r\n"), "{seen:?}");
            assert_eq!(first.content_type.is_some(), seen.contains("x\r\n"), "{seen:?}");
            assert!(found[1..].iter().all(|exchange| short(exchange) == "GET /2 0 > 200 2"));
            assert_eq!(found.len(), if steps.len() > 2 { 2 } else { 1 });
        }
    }
}

/// Packets overtake each other, and a server may answer before it has the whole request.
#[test]
fn a_response_beside_a_request_that_is_under_way_belongs_to_it() {
    let found = shorts(&[(C, data("GET /1 HTTP/1.1\r\nHo")), (S, ok("a")), (C, data("st: h\r\n\r\n")), (C, get("/2"))]);
    assert_eq!(found, ["GET /1 0 > 200 1", "GET /2 0 > -"]);
}

#[test]
fn long_values_are_cut() {
    let url = format!("/{}", "u".repeat(12_000));
    let agent = "a".repeat(5_000);
    let found = exchanges(&[(C, data(format!("GET {url} HTTP/1.1\r\nUser-Agent: {agent}\r\n\r\n")))]);
    let request = found[0].request.as_ref().unwrap();
    assert_eq!((request.url.len(), request.user_agent.as_ref().unwrap().len()), (8 << 10, 1024));
}

#[test]
fn of_two_lengths_the_first_counts_and_chunks_before_both() {
    let first = data("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 5\r\n\r\nab");
    assert_eq!(shorts(&[(C, get("/1")), (S, first), (C, get("/2")), (S, ok(""))])[0], "GET /1 0 > 200 2");
    let both = data("HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
    assert_eq!(shorts(&[(C, get("/1")), (S, both), (C, get("/2")), (S, ok(""))])[0], "GET /1 0 > 200 1");
}

#[test]
fn a_pipeline_without_end_goes_out_at_its_bound() {
    let mut session = corelane_net::protocol::Session::new(Carrier::Stream);
    let mut events = Vec::new();
    for _ in 0..5000 {
        session.data(C, 0, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &mut events);
        assert!(session.heap_bytes() < corelane_net::protocol::http::MOST);
    }
    let reported = events.iter().filter(|event| matches!(event, Event::Http(_))).count();
    assert_eq!(reported, 5000 - corelane_net::protocol::http::PIPELINE);
}

/// What waits for its response is bounded by its texts, which are not kept where events are only counted.
#[test]
fn the_bound_of_what_waits_does_not_depend_on_the_detail() {
    let counts = |detail| {
        let (mut session, mut events) = (Session::with(Carrier::Stream, detail), Vec::new());
        for _ in 0..80 {
            session.data(C, 0, format!("HEAD /{} HTTP/1.1\r\n\r\n", "u".repeat(8000)).as_bytes(), &mut events);
        }
        for _ in 0..80 {
            session.data(S, 1, b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", &mut events);
        }
        let sides = |event: &Event| match event {
            Event::Http(exchange) => Some((exchange.request.is_some(), exchange.response.is_some())),
            _ => None,
        };
        events.iter().filter_map(sides).collect::<Vec<_>>()
    };
    let full = counts(Detail::Full);
    let answered = full.iter().filter(|(_, answered)| *answered).count();
    assert!(answered < 80, "{answered}: some are given up");
    assert_eq!(full, counts(Detail::Counts));
}
