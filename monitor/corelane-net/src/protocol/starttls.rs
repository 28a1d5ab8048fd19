//! STARTTLS: watches a dialogue of lines until both ends agree to go on with TLS.
//!
//! 1. The client's lines are commands. One of them asks for TLS ([`WORDS`]). What the client sends behind it is held
//!    until the answer: it is TLS if the server agrees, and more commands if it refuses.
//! 2. The server's lines are answers. An answer of several lines counts at its last one.
//! 3. POP3 has one word for every agreement, so commands that wait are counted, and each status line answers one. IMAP
//!    has tags. The words of SMTP and FTP answer no other command, but for SMTP's greeting.
//! 4. A refusal in SMTP and FTP may answer an earlier command. An agreement still counts until the next command.
//! 5. Content is no command: a mail behind DATA until a line with a dot alone, the bytes that BDAT counts, and the
//!    literals of IMAP.
//! 6. A side's end, a gap behind its first byte, or [`WATCHED`] bytes end the watch.
//!
//! # Bounds
//!
//! Of each line [`LINE`] bytes are kept, and behind commands that ask for TLS at most [`HELD`] bytes. Each held byte is
//! read once more at most.

use super::parser::{Parser, Start};
use super::{Carrier, Event, Protocol};
use crate::conversation::Side;

/// The bytes of a line that are kept.
pub(super) const LINE: usize = 512;
/// The most bytes of the client that wait for an answer.
pub(super) const HELD: usize = 16 << 10;
/// The most commands of POP3 that wait for an answer.
const WAITING: u32 = u64::BITS;
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
    /// What the client sent behind a command that asked, and how much of it turned out to be commands.
    held: Vec<u8>,
    replayed: usize,
    mail: Mail,
    /// The code of an answer whose last line has not come.
    code: Option<[u8; 3]>,
    /// An answer, or a gap in front of the first one, has come.
    is_greeted: bool,
    pop3: Pop3,
    agreed: bool,
    is_over: bool,
}

/// The line of a side, as far as it has come.
#[derive(Debug, Default)]
struct Line {
    kept: Vec<u8>,
    /// Bytes of the side so far.
    seen: usize,
    /// Bytes of content that are still to come, and whether some have come.
    content: u64,
    has_content: bool,
    /// The line goes on behind a literal.
    goes_on: bool,
}

/// The commands of POP3 that wait for their answers.
#[derive(Debug, Default)]
struct Pop3 {
    waiting: u32,
    /// A bit for each command, the oldest lowest: a list follows its agreement.
    lists: u64,
    in_list: bool,
}

/// Whether the client has asked for TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    No,
    /// It waits for the answer.
    Waiting,
    /// A refusal came, which may have been the answer to an earlier command.
    MaybeRefused,
}

/// The place of the client's bytes in a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mail {
    No,
    /// DATA was sent.
    Wanted,
    /// A refusal came, which may have been the answer to an earlier command.
    MaybeRefused,
    /// The server takes the mail.
    Inside,
}

impl Starttls {
    /// Whether no more bytes are of use here.
    fn is_done(&self) -> bool {
        self.is_over || self.agreed
    }

    /// Takes some bytes of a side, at most up to the end of a line, and returns their number.
    fn step(&mut self, side: Side, bytes: &[u8]) -> usize {
        let is_client = side == self.client;
        if is_client && self.asked == Asked::Waiting {
            let room = HELD - self.held.len();
            self.held.extend_from_slice(&bytes[..bytes.len().min(room)]);
            self.is_over |= bytes.len() > room;
            return bytes.len();
        }
        let line = &mut self.lines[side.index()];
        if line.content > 0 {
            let taken = bytes.len().min(usize::try_from(line.content).unwrap_or(usize::MAX));
            line.content -= taken as u64;
            line.has_content = true;
            return taken;
        }
        let end = memchr::memchr(b'\n', bytes);
        let taken = end.map_or(bytes.len(), |end| end + 1);
        let room = LINE - line.kept.len();
        line.kept.extend_from_slice(&bytes[..taken.min(room)]);
        if end.is_some() {
            let whole = std::mem::take(&mut line.kept);
            self.line(side, whole.trim_ascii_end());
        }
        taken
    }

    /// Takes a line, without its end.
    fn line(&mut self, side: Side, text: &[u8]) {
        let is_client = side == self.client;
        let line = &mut self.lines[side.index()];
        line.has_content = false;
        let went_on = std::mem::take(&mut line.goes_on);
        // A server's text may end in the same way, but its literals are in lines without a tag.
        if self.words.is_tagged
            && (is_client || went_on || text.starts_with(b"* "))
            && let Some(length) = literal(text)
        {
            line.content = length;
            line.goes_on = true;
        }
        match is_client {
            _ if went_on => {}
            true => self.command(text),
            false => self.answer(text),
        }
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
        let (tag, command) = match self.words.is_tagged {
            true => line.split_at(memchr::memchr(b' ', line).unwrap_or(0)),
            false => (&[][..], line),
        };
        if self.words.protocol == Protocol::Pop3 {
            self.is_over |= !self.pop3.command(command);
        }
        if !self.words.is_tagged || tag == self.tag {
            // The answer to this one is not the answer to the one that was refused.
            self.asked = Asked::No;
        }
        if command.is_empty() {
            return;
        }
        if self.words.asking.iter().any(|asking| is(command, asking)) && (!self.words.is_tagged || !tag.is_empty()) {
            self.asked = Asked::Waiting;
            self.tag = tag.to_vec();
        } else if is_smtp && is(command, "DATA") {
            self.mail = Mail::Wanted;
        } else if is_smtp {
            let mut words = words(command);
            if words.next().is_some_and(|word| is(word, "BDAT")) {
                let count = words.next().and_then(|count| std::str::from_utf8(count).ok());
                self.lines[self.client.index()].content = count.and_then(|count| count.parse().ok()).unwrap_or(0);
            }
        }
    }

    /// Takes a line of the server, without its end.
    fn answer(&mut self, line: &[u8]) {
        let (answer, is_own) = match self.words.protocol {
            Protocol::Smtp | Protocol::Ftp => match self.last_line(line) {
                true => (line, true),
                false => return,
            },
            Protocol::Pop3 => match self.pop3.answer(line) {
                true => (line, self.pop3.waiting == 0),
                false => return,
            },
            _ => {
                let (tag, answer) = line.split_at(memchr::memchr(b' ', line).unwrap_or(0));
                if matches!(tag, b"" | b"*" | b"+") {
                    return;
                }
                (answer.trim_ascii_start(), tag == self.tag)
            }
        };
        let is_greeting = !std::mem::replace(&mut self.is_greeted, true) && self.words.protocol == Protocol::Smtp;
        let agrees = begins(answer, self.words.agreeing);
        let refuses = self.words.refusing.iter().any(|word| begins(answer, word));
        let own = &mut self.lines[self.client.index()];
        if refuses && !own.has_content {
            // The server does not take the content, and none has come.
            own.content = 0;
            own.goes_on = false;
        }
        if self.asked != Asked::No && agrees && is_own && !is_greeting {
            self.agreed = true;
        } else if self.asked != Asked::No && refuses && is_own {
            self.asked = match self.words.protocol {
                Protocol::Smtp | Protocol::Ftp => Asked::MaybeRefused,
                _ => Asked::No,
            };
            self.replay();
        } else if self.asked == Asked::Waiting && !is_own && self.words.is_tagged && (agrees || refuses) {
            // It may be the answer to what is held, and the server may never answer what asked.
            if self.replayed < self.held.len() {
                self.asked = Asked::MaybeRefused;
                self.replay();
            }
        }
        match self.mail {
            Mail::Wanted | Mail::MaybeRefused if answer.starts_with(b"354") => self.mail = Mail::Inside,
            Mail::Wanted if refuses => self.mail = Mail::MaybeRefused,
            _ => {}
        }
    }

    /// Takes what was held as commands, up to one that asks for TLS again.
    fn replay(&mut self) {
        let held = std::mem::take(&mut self.held);
        while self.replayed < held.len() && self.asked != Asked::Waiting && !self.is_over {
            self.replayed += self.step(self.client, &held[self.replayed..]);
        }
        if self.replayed < held.len() {
            self.held = held;
        } else {
            self.replayed = 0;
        }
    }

    /// Whether a line with a code is the last one of its answer.
    fn last_line(&mut self, line: &[u8]) -> bool {
        let Some((code, rest)) = line.split_first_chunk::<3>() else {
            return false;
        };
        // FTP allows lines with other codes inside an answer, SMTP does not.
        let is_free = self.words.protocol == Protocol::Smtp || self.code.is_none_or(|begun| begun == *code);
        let is_code = is_free && code.iter().all(u8::is_ascii_digit);
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

impl Parser for Starttls {
    const CARRIERS: &'static [Carrier] = &[Carrier::Stream];
    const MOST: usize = MOST;
    const HOLDS: &'static str = "what waits for the server's answer, and a line a side";

    fn new(protocol: Protocol, start: Start) -> Self {
        Self {
            words: WORDS.iter().find(|words| words.protocol == protocol).unwrap_or(&WORDS[0]),
            client: start.client,
            lines: Default::default(),
            asked: Asked::No,
            tag: Vec::new(),
            held: Vec::new(),
            replayed: 0,
            mail: Mail::No,
            code: None,
            is_greeted: false,
            pop3: Pop3::default(),
            agreed: false,
            is_over: false,
        }
    }

    /// What is behind the bytes of the dialogue is TLS, once the server has agreed.
    fn data(&mut self, side: Side, _time_ns: u64, bytes: &[u8], _out: &mut Vec<Event>) -> Option<usize> {
        let mut used = 0;
        while used < bytes.len() && !self.is_done() {
            let left = WATCHED.saturating_sub(self.lines[side.index()].seen);
            let here = &bytes[used..];
            let taken = self.step(side, &here[..here.len().min(left)]);
            self.lines[side.index()].seen += taken;
            used += taken;
            self.is_over |= left == 0;
        }
        self.agreed.then_some(used)
    }

    /// In front of a side's first byte a gap hides nothing that is known to be there.
    fn gap(&mut self, side: Side, _time_ns: u64, _missing: u64, _out: &mut Vec<Event>) {
        self.is_over |= self.lines[side.index()].seen > 0;
        self.is_greeted |= side != self.client;
    }

    fn end(&mut self, _side: Side, _time_ns: u64, _out: &mut Vec<Event>) {
        self.is_over = true;
    }

    fn wants(&self, _side: Side) -> bool {
        !self.is_done()
    }

    fn is_over(&self) -> bool {
        self.is_done()
    }

    fn take_rest(&mut self, side: Side) -> Vec<u8> {
        if side != self.client {
            return Vec::new();
        }
        let held = self.held.split_off(self.replayed);
        if held.is_empty() { std::mem::take(&mut self.lines[side.index()].kept) } else { held }
    }

    fn heap_bytes(&self) -> usize {
        let lines: usize = self.lines.iter().map(|line| line.kept.capacity()).sum();
        lines + self.held.capacity() + self.tag.capacity()
    }

    fn example(protocol: Protocol) -> Vec<(Side, Vec<u8>)> {
        let (greeting, command, answer) = match protocol {
            Protocol::Ftp => ("220 FTP\r\n", "AUTH TLS\r\n", "234 go\r\n"),
            Protocol::Pop3 => ("+OK\r\n", "STLS\r\n", "+OK\r\n"),
            Protocol::Imap => ("* OK a\r\n", "a STARTTLS\r\n", "a OK\r\n"),
            _ => ("220 SMTP\r\n", "STARTTLS\r\n", "220 go\r\n"),
        };
        let [server, client] = [Side::Responder, Side::Originator];
        let dialogue = [(server, greeting), (client, command), (server, answer)];
        dialogue
            .map(|(side, line)| (side, line.into()))
            .into_iter()
            .chain(super::tls::Tls::example(Protocol::Tls))
            .collect()
    }
}

impl Pop3 {
    /// Takes a command. Returns whether there was room for it.
    fn command(&mut self, command: &[u8]) -> bool {
        if self.waiting == WAITING {
            return false;
        }
        let mut words = words(command);
        let word = words.next().unwrap_or_default();
        let lists = ["RETR", "TOP", "CAPA"].iter().any(|name| is(word, name))
            // With a word behind them these ask for less.
            || ["LIST", "UIDL", "AUTH"].iter().any(|name| is(word, name)) && words.next().is_none();
        self.lists |= u64::from(lists) << self.waiting;
        self.waiting += 1;
        true
    }

    /// Takes a line of the server. Returns whether it answers a command.
    fn answer(&mut self, line: &[u8]) -> bool {
        if self.in_list {
            self.in_list = line != b".";
            return false;
        }
        let agrees = begins(line, "+OK");
        // A plus alone asks for more of a command, which comes as another line.
        let goes_on = line == b"+" || line.starts_with(b"+ ");
        if self.waiting == 0 || !(agrees || goes_on || begins(line, "-ERR")) {
            return false;
        }
        self.in_list = agrees && self.lists & 1 == 1;
        self.lists >>= 1;
        self.waiting -= 1;
        true
    }
}

/// The words of a command. Runs of spaces count as one.
fn words(command: &[u8]) -> impl Iterator<Item = &[u8]> {
    command.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

/// Whether a command has these words, in any case.
fn is(command: &[u8], name: &str) -> bool {
    let mut words = words(command);
    let mut same = |name: &str| words.next().is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    name.split(' ').all(&mut same) && words.next().is_none()
}

/// Whether an answer begins with a word, in any case.
fn begins(answer: &[u8], word: &str) -> bool {
    answer.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word.as_bytes()))
}

/// The length of the literal of IMAP that follows a line: `{5}`, or `{5+}` where the client does not wait.
fn literal(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"}")?;
    let line = line.strip_suffix(b"+").unwrap_or(line);
    let begin = memchr::memrchr(b'{', line)? + 1;
    std::str::from_utf8(&line[begin..]).ok()?.parse().ok()
}
