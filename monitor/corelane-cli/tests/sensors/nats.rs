//! A client of a NATS server, by hand: it can send what the program never would.

use crate::site::LIMIT;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

pub(crate) struct Client(RefCell<BufReader<TcpStream>>);

impl Client {
    #[track_caller]
    pub(crate) fn connect(port: u16) -> Self {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let client = Client(RefCell::new(BufReader::new(stream)));
        assert!(client.line().starts_with("INFO "));
        client.send(b"CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nSUB inbox 1\r\n");
        client
    }

    pub(crate) fn send(&self, bytes: &[u8]) {
        self.0.borrow().get_ref().write_all(bytes).expect("it listens");
    }

    /// The next line that is no ping.
    #[track_caller]
    fn line(&self) -> String {
        loop {
            let mut line = String::new();
            self.0.borrow_mut().read_line(&mut line).expect("an answer");
            match line.trim_end() {
                "PING" => self.send(b"PONG\r\n"),
                line => return line.to_owned(),
            }
        }
    }

    /// The answer to a request.
    #[track_caller]
    pub(crate) fn ask(&self, subject: &str, headers: Option<&str>, body: &[u8]) -> String {
        let mut bytes = Vec::new();
        message(subject, "inbox ", headers, body, &mut bytes);
        self.send(&bytes);
        let line = self.line();
        assert!(line.starts_with("MSG ") || line.starts_with("HMSG "), "{line}");
        let length: usize = line.rsplit(' ').next().and_then(|length| length.parse().ok()).expect("a length");
        let mut answer = vec![0; length + 2];
        self.0.borrow_mut().read_exact(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Stores a message in the stream.
    #[track_caller]
    pub(crate) fn publish(&self, subject: &str, headers: Option<&str>, body: &[u8]) {
        let answer = self.ask(subject, headers, body);
        assert!(answer.contains("\"seq\""), "{answer}");
    }

    /// Makes the stream of the batches, of so many messages at most; -1 is without a bound.
    #[track_caller]
    pub(crate) fn make_stream(&self, most_messages: i64) {
        let config = format!(
            "{{\"name\":\"corelane-batches\",\"subjects\":[\"corelane.batches.*\"],\"retention\":\"limits\",\
             \"discard\":\"new\",\"storage\":\"file\",\"max_bytes\":-1,\"max_msgs\":{most_messages},\
             \"max_consumers\":-1,\"num_replicas\":1}}"
        );
        let answer = self.ask("$JS.API.STREAM.CREATE.corelane-batches", None, config.as_bytes());
        assert!(!answer.contains("\"error\""), "{answer}");
    }
}

/// Appends the bytes of a message. `reply` is where the answer goes and a blank, or nothing.
pub(crate) fn message(subject: &str, reply: &str, headers: Option<&str>, body: &[u8], bytes: &mut Vec<u8>) {
    let head = headers.map_or(String::new(), |headers| format!("NATS/1.0\r\n{headers}\r\n\r\n"));
    let line = match headers {
        None => format!("PUB {subject} {reply}{}\r\n", body.len()),
        Some(_) => format!("HPUB {subject} {reply}{} {}\r\n", head.len(), head.len() + body.len()),
    };
    for part in [line.as_bytes(), head.as_bytes(), body, b"\r\n"] {
        bytes.extend_from_slice(part);
    }
}
