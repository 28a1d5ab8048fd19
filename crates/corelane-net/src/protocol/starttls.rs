//! STARTTLS: watches a dialogue of lines until both ends agree to go on with TLS.
//!
//! 1. The client's lines are commands. One of them asks for TLS ([`WORDS`]). What the client sends behind it is held
//!    until the answer: it is TLS if the server agrees, and more commands if it refuses.
//! 2. The server's lines are answers. An answer of several lines counts at its last one. Answers are not counted, as
//!    what agrees is no answer to any other command that may be sent before it; of POP3, to none that is usual there.
//! 3. The content of a mail is no command: behind DATA until a line with a dot alone, and the bytes that BDAT counts.
//! 4. A side's end, a gap behind its first byte, or [`WATCHED`] bytes end the watch.
//!
//! # Bounds
//!
//! Of each line [`LINE`] bytes are kept, and behind a command that asks for TLS at most [`HELD`] bytes.

use super::identify::Protocol;
use crate::conversation::Side;

/// The bytes of a line that are kept.
pub(super) const LINE: usize = 512;
/// The most bytes of the client that wait for an answer.
pub(super) const HELD: usize = 16 << 10;
/// The most bytes of a side that are watched.
pub(super) const WATCHED: usize = 64 << 10;
/// The most bytes on the heap of a connection, in buffers that reserve up to twice the bytes that they need.
pub(super) const MOST: usize = 2 * (HELD + 3 * LINE);

/// The words with which a protocol changes to TLS.
#[derive(Debug)]
struct Words {
    protocol: Protocol,
    /// The commands that ask for it.
    asking: &'static [&'static str],
    /// Whether a tag comes before each command and its answer.
    is_tagged: bool,
    /// The beginnings of answers that agree and that refuse.
    agreeing: &'static str,
    refusing: &'static [&'static str],
}

/// The protocols: RFC 3207, RFC 4217, RFC 2595 and RFC 3501. `AUTH SSL` is older than any of them.
static WORDS: [Words; 4] = [
    Words { protocol: Protocol::Smtp, asking: &["STARTTLS"], is_tagged: false, agreeing: "220", refusing: &["4", "5"] },
    Words {
        protocol: Protocol::Ftp,
        asking: &["AUTH TLS", "AUTH SSL", "AUTH TLS-C", "AUTH TLS-P"],
        is_tagged: false,
        agreeing: "234",
        refusing: &["4", "5"],
    },
    Words { protocol: Protocol::Pop3, asking: &["STLS"], is_tagged: false, agreeing: "+OK", refusing: &["-ERR"] },
    Words {
        protocol: Protocol::Imap,
        asking: &["STARTTLS"],
        is_tagged: true,
        agreeing: "OK",
        refusing: &["NO", "BAD"],
    },
];

/// The dialogue of one connection.
#[derive(Debug)]
pub(super) struct Starttls {
    words: &'static Words,
    client: Side,
    lines: [Line; 2],
    asked: Asked,
    /// The tag of the command that asked.
    tag: Vec<u8>,
    /// What the client sent behind the command that asked.
    held: Vec<u8>,
    mail: Mail,
    /// Bytes of a part of a mail that are still to come.
    part: u64,
    /// The code of an answer whose last line has not come.
    code: Option<[u8; 3]>,
    agreed: bool,
    is_over: bool,
}

/// The line of a side, as far as it has come.
#[derive(Debug, Default)]
struct Line {
    kept: Vec<u8>,
    /// Bytes of the side so far; those that were held and turned out to be commands count twice.
    seen: usize,
}

/// Whether the client has asked for TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    No,
    /// It waits for the answer.
    Waiting,
    /// A refusal came, which may have been the answer to an earlier command.
    Doubtful,
}

/// The place of the client's bytes in a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mail {
    No,
    /// DATA was sent.
    Wanted,
    /// A refusal came, which may have been the answer to an earlier command.
    Doubtful,
    /// The server takes the mail.
    Inside,
}

impl Starttls {
    /// A watch over a protocol, if it is one that changes to TLS.
    pub(super) fn new(protocol: Protocol, client: Side) -> Option<Self> {
        let words = WORDS.iter().find(|words| words.protocol == protocol)?;
        Some(Self {
            words,
            client,
            lines: Default::default(),
            asked: Asked::No,
            tag: Vec::new(),
            held: Vec::new(),
            mail: Mail::No,
            part: 0,
            code: None,
            agreed: false,
            is_over: false,
        })
    }

    /// Takes the next bytes of a side. The result says how many of them the dialogue has used: those behind it are
    /// TLS, once the server has agreed.
    pub(super) fn data(&mut self, side: Side, bytes: &[u8]) -> usize {
        let mut used = 0;
        while used < bytes.len() && !self.is_over() {
            let left = WATCHED.saturating_sub(self.lines[side.index()].seen);
            let here = &bytes[used..];
            used += self.step(side, &here[..here.len().min(left)]);
            self.is_over |= left == 0;
        }
        used
    }

    /// Takes a gap. In front of a side's first byte it hides nothing that is known to be there.
    pub(super) fn gap(&mut self, side: Side) {
        self.is_over |= self.lines[side.index()].seen > 0;
    }

    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// Whether TLS follows.
    pub(super) fn agreed(&self) -> bool {
        self.agreed
    }

    /// Whether no more bytes are of use here.
    pub(super) fn is_over(&self) -> bool {
        self.is_over || self.agreed
    }

    /// Takes the bytes of a side that it has kept and that are not the dialogue's.
    pub(super) fn take_rest(&mut self, side: Side) -> Vec<u8> {
        if side != self.client {
            return Vec::new();
        }
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { std::mem::take(&mut self.lines[side.index()].kept) } else { held }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let lines: usize = self.lines.iter().map(|line| line.kept.capacity()).sum();
        lines + self.held.capacity() + self.tag.capacity()
    }

    /// Takes some bytes of a side, at most up to the end of a line, and returns their number.
    fn step(&mut self, side: Side, bytes: &[u8]) -> usize {
        let is_client = side == self.client;
        let line = &mut self.lines[side.index()];
        if is_client && self.asked == Asked::Waiting {
            line.seen += bytes.len();
            let room = HELD - self.held.len();
            self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
            self.is_over |= bytes.len() > room;
            return bytes.len();
        }
        if is_client && self.part > 0 {
            let taken = bytes.len().min(usize::try_from(self.part).unwrap_or(usize::MAX));
            line.seen += taken;
            self.part -= taken as u64;
            return taken;
        }
        let end = memchr::memchr(b'\n', bytes);
        let taken = end.map_or(bytes.len(), |end| end + 1);
        line.seen += taken;
        let room = LINE - line.kept.len();
        line.kept.extend_from_slice(&bytes[..taken.min(room)]);
        if end.is_some() {
            let whole = std::mem::take(&mut line.kept);
            let text = whole.trim_ascii_end();
            if is_client { self.command(text) } else { self.answer(text) }
        }
        taken
    }

    /// Takes a line of the client, without its end.
    fn command(&mut self, line: &[u8]) {
        let is_smtp = self.words.protocol == Protocol::Smtp;
        if matches!(self.mail, Mail::Wanted | Mail::Inside) {
            if line == b"." {
                self.mail = Mail::No;
            }
            return;
        }
        self.mail = Mail::No;
        let (tag, word) = match self.words.is_tagged {
            true => line.split_at(memchr::memchr(b' ', line).map_or(0, |space| space + 1)),
            false => (&[][..], line),
        };
        let is = |name: &&str| word.eq_ignore_ascii_case(name.as_bytes());
        if self.words.asking.iter().any(is) && (!self.words.is_tagged || tag.len() > 1) {
            self.asked = Asked::Waiting;
            self.tag = tag.to_vec();
        } else if is_smtp && is(&"DATA") {
            self.mail = Mail::Wanted;
        } else if is_smtp && word.len() > 5 && word[..5].eq_ignore_ascii_case(b"BDAT ") {
            let count = word[5..].split(|&byte| byte == b' ').next().and_then(|count| std::str::from_utf8(count).ok());
            self.part = count.and_then(|count| count.parse().ok()).unwrap_or(0);
        }
    }

    /// Takes a line of the server, without its end.
    fn answer(&mut self, line: &[u8]) {
        let answer = match self.words.protocol {
            Protocol::Smtp | Protocol::Ftp => match self.last_line(line) {
                true => line,
                false => return,
            },
            _ => match line.strip_prefix(&self.tag[..]) {
                Some(answer) => answer,
                None => return,
            },
        };
        let refuses = self.words.refusing.iter().any(|word| begins(answer, word));
        if self.asked != Asked::No && begins(answer, self.words.agreeing) {
            self.agreed = true;
        } else if self.asked == Asked::Waiting && refuses {
            self.asked = Asked::Doubtful;
            let held = std::mem::take(&mut self.held);
            let mut at = 0;
            while at < held.len() && !self.is_over {
                at += self.step(self.client, &held[at..]);
            }
        }
        match self.mail {
            Mail::Wanted | Mail::Doubtful if answer.starts_with(b"354") => self.mail = Mail::Inside,
            Mail::Wanted if refuses => self.mail = Mail::Doubtful,
            _ => {}
        }
    }

    /// Whether a line with a code is the last one of its answer.
    fn last_line(&mut self, line: &[u8]) -> bool {
        let Some((code, rest)) = line.split_first_chunk::<3>() else {
            return false;
        };
        let is_code = code.iter().all(u8::is_ascii_digit) && self.code.is_none_or(|begun| begun == *code);
        match rest.first() {
            _ if !is_code => false,
            Some(b'-') => {
                self.code = Some(*code);
                false
            }
            Some(b' ') | None => {
                self.code = None;
                true
            }
            Some(_) => false,
        }
    }
}

/// Whether an answer begins with a word, in any case.
fn begins(answer: &[u8], word: &str) -> bool {
    answer.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word.as_bytes()))
}
