//! The parser of HTTP/1.

use memchr::memchr;

use super::exchange::{Body, Exchange, Request, Response};
use super::queue::{Queue, Waiting};
use super::rule::{METHODS, Place, find_request, find_status, request_line, status_line};
use crate::conversation::Side;
use crate::protocol::parser::{Parser, Start};
use crate::protocol::text::printable;
use crate::protocol::{Carrier, Detail, Event, Protocol, Text};

/// Bytes of a head.
pub const HEAD: usize = 64 << 10;
/// Bytes that are kept of a header's value, and of a reason.
pub const VALUE: usize = 1024;
/// Bytes that are kept of a URL.
pub const URL: usize = 8 << 10;
/// Exchanges of a connection that wait.
pub const PIPELINE: usize = 1024;
/// Bytes that they hold.
pub const WAITING: usize = 256 << 10;
/// The longest line in which a start line is looked for after a gap.
const LINE: usize = 16 << 10;
/// Bytes on the heap that a connection never exceeds: what waits and the exchange that comes in, two heads, and the
/// queue itself. Buffers that grow reserve up to twice of what they need.
pub const MOST: usize = WAITING + 2 * EXCHANGE + 4 * HEAD + 2 * PIPELINE * size_of::<Waiting>();
/// Texts of one exchange at most. A byte that is no text takes four.
const EXCHANGE: usize = 4 * (URL + 16 * VALUE);
/// Digits of a chunk's size.
const DIGITS: u8 = 15;

/// The HTTP of one connection.
#[derive(Debug)]
pub(in crate::protocol) struct Http {
    client: Side,
    detail: Detail,
    halves: [Half; 2],
    /// Exchanges that are not over.
    waiting: Queue,
    /// Bytes of their texts, kept or not, so that no less detail changes what is reported.
    held: usize,
    number: u64,
    /// The last of the responses 1xx since the last other one, and its bytes: it is told if no other follows.
    interim: Option<Box<(Response, usize)>>,
    /// The time of the last gap of the client: requests of this time were held back by it.
    held_back_ns: Option<u64>,
    /// The response in front of the first request waiting was lost, perhaps.
    response_lost: bool,
    is_tunnel: bool,
}

/// One side's bytes.
#[derive(Debug)]
struct Half {
    state: State,
    /// A head, or a line that may be a start line, as far as it is there.
    buffer: Vec<u8>,
    /// Bytes of the buffer that hold no empty line.
    scanned: usize,
    ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A start line is next. If the place is lost, something else came since the last message, and was counted.
    Start { lost: bool },
    /// A head, its start line is in the buffer.
    Head,
    /// This many bytes of a body.
    Body { left: u64 },
    /// The size of a chunk.
    Size { value: u64, digits: u8, extension: bool },
    /// This many bytes of a chunk, then a line end.
    Chunk { left: u64 },
    /// The line end behind a chunk.
    ChunkEnd,
    /// The headers behind the last chunk: whether the line so far is empty.
    Trailer { empty: bool },
    /// A body until the connection ends.
    UntilEnd,
}

/// How long a body is.
enum Framing {
    None,
    Length(u64),
    Chunks,
    UntilEnd,
}

impl Parser for Http {
    const CARRIERS: &'static [Carrier] = &[Carrier::Stream];
    const MOST: usize = MOST;
    const HOLDS: &'static str = "256 KiB of waiting requests, at most 1024 of them; a head of 64 KiB a side";

    fn new(_protocol: Protocol, start: Start) -> Self {
        let half = || Half { state: State::Start { lost: false }, buffer: Vec::new(), scanned: 0, ended: false };
        Self {
            client: start.client,
            detail: start.detail,
            halves: [half(), half()],
            waiting: Queue::default(),
            held: 0,
            number: start.exchanges,
            interim: None,
            held_back_ns: None,
            response_lost: false,
            is_tunnel: false,
        }
    }

    fn data(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) -> Option<usize> {
        let mut used = 0;
        while used < bytes.len() && !self.is_tunnel {
            used += self.step(side, time_ns, &bytes[used..], out);
        }
        self.is_tunnel.then_some(used)
    }

    fn gap(&mut self, side: Side, time_ns: u64, missing: u64, out: &mut Vec<Event>) {
        let half = &mut self.halves[side.index()];
        match half.state {
            State::Body { left } if missing <= left => {
                half.state = State::Body { left: left - missing };
                self.count(side, 0, missing);
                if missing == left {
                    self.body_over(side, time_ns, true, out);
                }
            }
            State::Chunk { left } if missing <= left => {
                half.state = if missing == left { State::ChunkEnd } else { State::Chunk { left: left - missing } };
                self.count(side, 0, missing);
            }
            State::UntilEnd => self.count(side, 0, missing),
            State::Body { left } => {
                self.count(side, 0, left);
                self.body_over(side, time_ns, true, out);
                self.halves[side.index()].state = State::Start { lost: true };
                self.start_lost(side, time_ns, out);
            }
            State::Chunk { .. } | State::ChunkEnd | State::Size { .. } | State::Trailer { .. } => {
                self.count(side, 0, missing);
                self.lose(side, time_ns, out);
                if side == self.client {
                    self.held_back_ns = Some(time_ns);
                }
            }
            State::Start { lost } => {
                half.buffer = Vec::new();
                half.state = State::Start { lost: true };
                if !lost {
                    self.start_lost(side, time_ns, out);
                }
            }
            State::Head => {
                let head = std::mem::take(&mut half.buffer);
                self.read_part(side, time_ns, &head, out);
                if side == self.client {
                    self.held_back_ns = Some(time_ns);
                }
            }
        }
    }

    fn answered_early(&mut self, side: Side) {
        if side != self.client {
            self.waiting.sent_before();
        }
    }

    fn end(&mut self, side: Side, time_ns: u64, out: &mut Vec<Event>) {
        let half = &mut self.halves[side.index()];
        half.ended = true;
        let buffer = std::mem::take(&mut half.buffer);
        match half.state {
            State::UntilEnd => self.body_over(side, time_ns, true, out),
            State::Start { .. } => {}
            State::Head => self.read_part(side, time_ns, &buffer, out),
            _ => self.body_over(side, time_ns, false, out),
        }
        if side == self.client {
            self.waiting.all_asked();
        } else {
            if let Some(interim) = self.interim.take() {
                let (mut response, held) = *interim;
                response.body.is_whole = true;
                let at = self.answered(out);
                self.waiting[at].response = Some(response);
                self.waiting[at].texts += held;
            }
            self.waiting.all_answered();
        }
        self.flush(out);
    }

    fn wants(&self, _side: Side) -> bool {
        true
    }

    fn heap_bytes(&self) -> usize {
        self.held + self.waiting.heap_bytes() + self.halves.iter().map(|half| half.buffer.capacity()).sum::<usize>()
    }

    fn take_rest(&mut self, side: Side) -> Vec<u8> {
        std::mem::take(&mut self.halves[side.index()].buffer)
    }

    /// The number of the next exchange.
    fn exchanges(&self) -> u64 {
        self.number
    }

    fn example(_protocol: Protocol) -> Vec<(Side, Vec<u8>)> {
        let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        vec![(Side::Originator, request), (Side::Responder, b"HTTP/1.1 204 No\r\n\r\n".to_vec())]
    }
}

impl Http {
    /// Takes one thing from bytes that are there, at least one byte.
    fn step(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) -> usize {
        let half = &mut self.halves[side.index()];
        match half.state {
            State::Start { lost } => self.start_line(side, time_ns, lost, bytes, out),
            State::Head => self.head(side, time_ns, bytes, out),
            State::Body { left } => {
                let taken = left.min(bytes.len() as u64);
                half.state = State::Body { left: left - taken };
                self.count(side, taken, 0);
                if taken == left {
                    self.body_over(side, time_ns, true, out);
                }
                taken as usize
            }
            State::UntilEnd => {
                self.count(side, bytes.len() as u64, 0);
                bytes.len()
            }
            State::Size { value, digits, extension } => {
                half.state = match bytes[0] {
                    b'\n' if digits == 0 => return self.lose(side, time_ns, out),
                    b'\n' if value == 0 => State::Trailer { empty: true },
                    b'\n' => State::Chunk { left: value },
                    _ if extension => half.state,
                    byte if byte.is_ascii_hexdigit() && digits < DIGITS => {
                        let digit = (byte as char).to_digit(16).unwrap_or(0);
                        State::Size { value: value << 4 | u64::from(digit), digits: digits + 1, extension }
                    }
                    b';' | b' ' | b'\t' | b'\r' if digits > 0 => State::Size { value, digits, extension: true },
                    _ => return self.lose(side, time_ns, out),
                };
                1
            }
            State::Chunk { left } => {
                let taken = left.min(bytes.len() as u64);
                half.state = if taken == left { State::ChunkEnd } else { State::Chunk { left: left - taken } };
                self.count(side, taken, 0);
                taken as usize
            }
            State::ChunkEnd => {
                half.state = match bytes[0] {
                    b'\r' => State::ChunkEnd,
                    b'\n' => State::Size { value: 0, digits: 0, extension: false },
                    _ => return self.lose(side, time_ns, out),
                };
                1
            }
            State::Trailer { empty } => {
                match bytes[0] {
                    b'\n' if empty => self.body_over(side, time_ns, true, out),
                    b'\n' => half.state = State::Trailer { empty: true },
                    b'\r' => {}
                    _ => half.state = State::Trailer { empty: false },
                }
                1
            }
        }
    }

    /// The framing of a body makes no sense: it is over, and the next start line has to be searched for. No byte was
    /// taken by that.
    fn lose(&mut self, side: Side, time_ns: u64, out: &mut Vec<Event>) -> usize {
        self.body_over(side, time_ns, false, out);
        self.halves[side.index()].state = State::Start { lost: true };
        0
    }

    /// Looks for a start line, line by line.
    fn start_line(&mut self, side: Side, time_ns: u64, lost: bool, bytes: &[u8], out: &mut Vec<Event>) -> usize {
        let is_client = side == self.client;
        let half = &mut self.halves[side.index()];
        if half.buffer.is_empty() && matches!(bytes[0], b'\r' | b'\n') {
            return 1;
        }
        let end = memchr(b'\n', bytes).map(|end| end + 1);
        let taken = end.unwrap_or(bytes.len()).min(LINE - half.buffer.len());
        let whole_line = end == Some(taken);
        // Most lines are in one piece.
        let kept;
        let in_one_piece = half.buffer.is_empty() && whole_line;
        let line = if in_one_piece {
            &bytes[..taken]
        } else {
            half.buffer.extend_from_slice(&bytes[..taken]);
            if !whole_line && half.buffer.len() < LINE {
                return taken;
            }
            kept = std::mem::take(&mut half.buffer);
            &kept
        };
        let place = if lost { Place::Lost } else { Place::Next };
        let found = match whole_line {
            true if is_client => find_request(without_line_end(line), place),
            true => find_status(without_line_end(line), place),
            false => None,
        };
        if found != Some(0) {
            half.state = State::Start { lost: true };
        }
        match found {
            Some(at) => {
                // Most heads are too.
                let head = if in_one_piece {
                    head_length(&bytes[at..bytes.len().min(at + HEAD)], taken - at - 1)
                } else {
                    None
                };
                if head.is_none() {
                    half.buffer = line[at..].to_vec();
                    half.scanned = half.buffer.len() - 1;
                    half.state = State::Head;
                }
                if at > 0 && !lost {
                    self.passed_over(side);
                }
                if let Some(length) = head {
                    self.read_head(side, time_ns, &bytes[at..at + length], out);
                    return at + length;
                }
            }
            // Longer than any start line that is read. The beginning of another one may be in it.
            None if !whole_line => {
                let was_request = is_client && METHODS.iter().any(|method| begins(line, method));
                half.buffer = line[LINE / 2..].to_vec();
                match () {
                    () if lost => {}
                    () if was_request => self.start_lost(side, time_ns, out),
                    () => self.passed_over(side),
                }
            }
            None if !lost => self.passed_over(side),
            None => {}
        }
        taken
    }

    /// Bytes that are no message came where one was due. They are more of a body than its head stated, or, if one
    /// request waits, its response, which cannot be read. The response behind them shows which.
    fn passed_over(&mut self, side: Side) {
        if side != self.client && self.waiting.open().is_some_and(|open| open + 1 == self.waiting.len()) {
            self.response_lost = true;
        }
    }

    /// A head, whose start line is in the buffer.
    fn head(&mut self, side: Side, time_ns: u64, bytes: &[u8], out: &mut Vec<Event>) -> usize {
        let half = &mut self.halves[side.index()];
        let before = half.buffer.len();
        let bytes = &bytes[..bytes.len().min(HEAD - before)];
        // An empty line may begin in the buffer: then it ends in the first two bytes of what is new. No more is copied
        // than belongs to this head, as a piece may hold many.
        let seam = bytes.len().min(2);
        half.buffer.extend_from_slice(&bytes[..seam]);
        let in_buffer = head_length(&half.buffer, half.scanned).map(|length| length - before);
        let end = in_buffer.or_else(|| {
            let end = head_length(bytes, 0);
            half.buffer.extend_from_slice(&bytes[seam..end.unwrap_or(bytes.len())]);
            end
        });
        let Some(end) = end else {
            half.scanned = half.buffer.len().saturating_sub(2).max(half.scanned);
            if half.buffer.len() == HEAD {
                let head = std::mem::take(&mut half.buffer);
                self.read_part(side, time_ns, &head, out);
            }
            return bytes.len();
        };
        let mut head = std::mem::take(&mut half.buffer);
        head.truncate(before + end);
        self.read_head(side, time_ns, &head, out);
        end
    }

    /// A head with all its lines.
    fn read_head(&mut self, side: Side, time_ns: u64, head: &[u8], out: &mut Vec<Event>) {
        self.halves[side.index()].state = State::Start { lost: false };
        if side == self.client {
            let (request, head) = read_request(head, time_ns, self.detail);
            self.request(side, request, head, out);
        } else {
            let (response, head) = read_response(head, time_ns, self.detail);
            self.response(side, response, &head, out);
        }
    }

    /// A head whose end was not seen: its whole lines count. What follows it is not known.
    #[cold]
    fn read_part(&mut self, side: Side, time_ns: u64, head: &[u8], out: &mut Vec<Event>) {
        let lines = memchr::memrchr(b'\n', head).map_or(0, |end| end + 1);
        if side == self.client {
            let (request, head) = read_request(&head[..lines], time_ns, self.detail);
            self.request(side, request, RequestHead { framing: Framing::UntilEnd, ..head }, out);
        } else {
            let (response, mut head) = read_response(&head[..lines], time_ns, self.detail);
            head.length = None;
            self.response(side, response, &head, out);
        }
        self.body_over(side, time_ns, false, out);
        self.halves[side.index()].state = State::Start { lost: true };
    }

    fn request(&mut self, side: Side, request: Request, head: RequestHead, out: &mut Vec<Event>) {
        let time_ns = request.time_ns;
        let at = match self.waiting.early() {
            Some(early) if self.held_back_ns == Some(time_ns) || self.waiting[early].is_early => early,
            _ => {
                // Responses that came before this request was sent.
                self.waiting.all_asked();
                self.flush(out);
                self.push(Waiting::default(), out);
                self.waiting.len() - 1
            }
        };
        let exchange = self.waiting.ask(at);
        exchange.request = Some(request);
        exchange.expects = head.expects;
        exchange.texts += head.texts;
        self.held += head.texts;
        self.begin_body(side, time_ns, head.framing, out);
    }

    fn response(&mut self, side: Side, mut response: Response, head: &ResponseHead, out: &mut Vec<Event>) {
        let time_ns = response.time_ns;
        if let Some(interim) = self.interim.take() {
            response.interim = interim.0.interim + 1;
            self.held -= interim.1;
        }
        if (100..200).contains(&response.status) && response.status != 101 {
            let held = size_of::<(Response, usize)>() + head.texts;
            self.held += held;
            self.interim = Some(Box::new((response, held)));
            return;
        }
        if std::mem::take(&mut self.response_lost)
            && let Some(lost) = self.waiting.open()
            && lost + 1 < self.waiting.len()
        {
            self.waiting[lost].answered = true;
        }
        let at = self.answered(out);
        let exchange = &mut self.waiting[at];
        let method = exchange.request.as_ref().map_or("", |request| &request.method);
        let accepted = method == "CONNECT" && (200..300).contains(&response.status);
        let framing = match response.status {
            101 | 204 | 304 => Framing::None,
            _ if accepted || method == "HEAD" => Framing::None,
            _ if head.chunked => Framing::Chunks,
            _ if head.coded => Framing::UntilEnd,
            _ => head.length.map_or(Framing::UntilEnd, Framing::Length),
        };
        self.is_tunnel = accepted || response.status == 101;
        let refused = exchange.expects
            && !exchange.asked
            && response.status >= 300
            && exchange.request.as_ref().is_some_and(|request| request.body == Body::default());
        exchange.response = Some(response);
        exchange.texts += head.texts;
        self.held += head.texts;
        if refused {
            self.body_over(side.other(), time_ns, false, out);
        }
        self.begin_body(side, time_ns, framing, out);
    }

    /// The place of the exchange that a response belongs to.
    fn answered(&mut self, out: &mut Vec<Event>) -> usize {
        self.waiting.open().unwrap_or_else(|| {
            let client = &self.halves[self.client.index()];
            let (is_early, asked) = (client.state == State::Head, client.ended);
            self.push(Waiting { is_early, asked, ..Waiting::default() }, out);
            self.waiting.len() - 1
        })
    }

    fn begin_body(&mut self, side: Side, time_ns: u64, framing: Framing, out: &mut Vec<Event>) {
        self.halves[side.index()].state = match framing {
            Framing::None | Framing::Length(0) => {
                self.body_over(side, time_ns, true, out);
                return;
            }
            Framing::Length(left) => State::Body { left },
            Framing::Chunks => State::Size { value: 0, digits: 0, extension: false },
            Framing::UntilEnd => State::UntilEnd,
        };
    }

    fn body(&mut self, side: Side) -> Option<&mut Body> {
        let is_client = side == self.client;
        let exchange = self.waiting.current(is_client)?;
        if is_client {
            exchange.request.as_mut().map(|request| &mut request.body)
        } else {
            exchange.response.as_mut().map(|response| &mut response.body)
        }
    }

    fn count(&mut self, side: Side, bytes: u64, missing: u64) {
        if let Some(body) = self.body(side) {
            body.bytes += bytes;
            body.missing += missing;
        }
    }

    /// A message is over, with its body or without.
    fn body_over(&mut self, side: Side, time_ns: u64, is_whole: bool, out: &mut Vec<Event>) {
        self.halves[side.index()].state = State::Start { lost: false };
        if let Some(body) = self.body(side) {
            body.is_whole = is_whole;
        }
        let is_client = side == self.client;
        if let Some(exchange) = self.waiting.current(is_client) {
            if is_client {
                exchange.asked = true;
            } else {
                exchange.answered = true;
                if let Some(response) = &mut exchange.response {
                    response.end_ns = time_ns;
                }
            }
        }
        self.flush(out);
    }

    /// A start line, or the head behind it, was lost.
    fn start_lost(&mut self, side: Side, time_ns: u64, out: &mut Vec<Event>) {
        if side != self.client {
            self.response_lost = true;
            return;
        }
        self.held_back_ns = Some(time_ns);
        match self.waiting.early() {
            Some(early) => self.waiting[early].asked = true,
            None => self.push(Waiting { asked: true, ..Waiting::default() }, out),
        }
        self.flush(out);
    }

    fn push(&mut self, exchange: Waiting, out: &mut Vec<Event>) {
        while self.waiting.len() >= PIPELINE || (self.held > WAITING && self.waiting.len() > 1) {
            let first = self.waiting.pop_front().expect("more than one waits");
            self.report(first, out);
        }
        self.waiting.push_back(exchange);
    }

    /// Reports what is over, in order.
    fn flush(&mut self, out: &mut Vec<Event>) {
        let server_ended = self.halves[self.client.other().index()].ended;
        while let Some(first) =
            self.waiting.pop_if(|first| first.asked && (first.answered || (server_ended && first.response.is_none())))
        {
            self.report(first, out);
        }
    }

    fn report(&mut self, exchange: Waiting, out: &mut Vec<Event>) {
        self.held -= exchange.texts;
        // A place that was kept for what was lost, and nothing came.
        if exchange.request.is_none() && exchange.response.is_none() {
            return;
        }
        let (number, client) = (self.number, self.client);
        self.number += 1;
        let Waiting { request, response, .. } = exchange;
        out.push(Event::Http(Box::new(Exchange { number, client, request, response })));
    }
}

/// Whether a line begins with this method.
fn begins(line: &[u8], method: &[u8]) -> bool {
    line.strip_prefix(method).is_some_and(|rest| rest.first() == Some(&b' '))
}

fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The length of a head with the empty line at its end, searched for from `from` on.
fn head_length(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += memchr(b'\n', bytes.get(at..)?)?;
        match bytes.get(at + 1..)? {
            [b'\n', ..] => return Some(at + 2),
            [b'\r', b'\n', ..] => return Some(at + 3),
            _ => at += 1,
        }
    }
}

fn cut(value: &[u8]) -> &[u8] {
    &value[..value.len().min(VALUE)]
}

/// What a request's head states about the bytes behind it.
struct RequestHead {
    framing: Framing,
    /// The client sends the body when the server asks for it.
    expects: bool,
    /// Bytes of all texts.
    texts: usize,
}

/// Cuts a head, or its whole lines, into its start line and its headers: name, and value with its folds.
fn lines_of(head: &[u8]) -> (&[u8], impl Iterator<Item = (&[u8], &[u8])>) {
    let end = memchr(b'\n', head).map_or(head.len(), |end| end + 1);
    let (start, mut rest) = head.split_at(end);
    let headers = std::iter::from_fn(move || {
        loop {
            let mut end = memchr(b'\n', rest)? + 1;
            // A line that begins with space goes on with the value before it (RFC 9112, 5.2).
            while matches!(rest.get(end), Some(b' ' | b'\t')) {
                end += memchr(b'\n', &rest[end..])? + 1;
            }
            let (header, behind) = rest.split_at(end);
            rest = behind;
            if let Some(colon) = memchr(b':', header) {
                return Some((header[..colon].trim_ascii(), header[colon + 1..].trim_ascii()));
            }
        }
    });
    (without_line_end(start), headers)
}

fn read_request(head: &[u8], time_ns: u64, detail: Detail) -> (Request, RequestHead) {
    let (start, headers) = lines_of(head);
    let line = request_line(start);
    let mut texts = line.method.len();
    let mut request = Request {
        time_ns,
        method: printable(line.method),
        url: detail.text(&line.target[..line.target.len().min(URL)], &mut texts),
        version: detail.text(cut(line.version), &mut texts),
        host: None,
        user_agent: None,
        referer: None,
        content_type: None,
        body: Body::default(),
    };
    let mut length = None;
    let mut chunked = false;
    let mut expects = false;
    for (name, value) in headers {
        let kept = match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => &mut request.host,
            10 if name.eq_ignore_ascii_case(b"user-agent") => &mut request.user_agent,
            7 if name.eq_ignore_ascii_case(b"referer") => &mut request.referer,
            12 if name.eq_ignore_ascii_case(b"content-type") => &mut request.content_type,
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                length = length.or(content_length(value));
                continue;
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                chunked = is_chunked(value);
                continue;
            }
            6 if name.eq_ignore_ascii_case(b"expect") => {
                expects = value.eq_ignore_ascii_case(b"100-continue");
                continue;
            }
            _ => continue,
        };
        // Of several the first counts.
        kept.get_or_insert_with(|| text(value, detail, &mut texts));
    }
    let framing = match length {
        _ if line.method == b"CONNECT" => Framing::None,
        _ if chunked => Framing::Chunks,
        Some(length) => Framing::Length(length),
        None => Framing::None,
    };
    (request, RequestHead { framing, expects, texts })
}

/// What a response's head states about its body.
struct ResponseHead {
    length: Option<u64>,
    /// In chunks.
    chunked: bool,
    /// In a coding, chunks or another one.
    coded: bool,
    /// Bytes of all texts.
    texts: usize,
}

fn read_response(head: &[u8], time_ns: u64, detail: Detail) -> (Response, ResponseHead) {
    let (start, headers) = lines_of(head);
    let line = status_line(start);
    let mut texts = 0;
    let status = digits(line.status).and_then(|status| status.try_into().ok());
    let mut response = Response {
        time_ns,
        end_ns: time_ns,
        status: status.unwrap_or(0),
        status_text: match status {
            Some(100..=999) => None,
            _ => Some(text(line.status, detail, &mut texts)),
        },
        reason: detail.text(cut(line.reason), &mut texts),
        version: detail.text(cut(line.version), &mut texts),
        content_type: None,
        location: None,
        interim: 0,
        body: Body::default(),
    };
    let mut body = ResponseHead { length: None, chunked: false, coded: false, texts: 0 };
    for (name, value) in headers {
        let kept = match name.len() {
            12 if name.eq_ignore_ascii_case(b"content-type") => &mut response.content_type,
            8 if name.eq_ignore_ascii_case(b"location") => &mut response.location,
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                body.length = body.length.or(content_length(value));
                continue;
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                body.coded = !value.eq_ignore_ascii_case(b"identity");
                body.chunked = is_chunked(value);
                continue;
            }
            _ => continue,
        };
        kept.get_or_insert_with(|| text(value, detail, &mut texts));
    }
    body.texts = texts;
    (response, body)
}

/// The text of a header's value, a space for each fold.
fn text(value: &[u8], detail: Detail, length: &mut usize) -> Text {
    match memchr(b'\n', value) {
        None => detail.text(cut(value), length),
        Some(_) => {
            let lines: Vec<_> = value.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).collect();
            detail.text(cut(&lines.join(&b' ')), length)
        }
    }
}

/// The number of a Content-Length. Of a list, which a proxy may make of several equal headers, the first.
fn content_length(value: &[u8]) -> Option<u64> {
    digits(value.split(|&byte| byte == b',').next()?.trim_ascii())
}

fn digits(number: &[u8]) -> Option<u64> {
    if number.is_empty() || number.len() > 18 || !number.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(number).ok()?.parse().ok()
}

/// Whether the last coding is chunked.
fn is_chunked(value: &[u8]) -> bool {
    let last = value.rsplit(|&byte| byte == b',').next().unwrap_or_default().trim_ascii();
    last.eq_ignore_ascii_case(b"chunked")
}
