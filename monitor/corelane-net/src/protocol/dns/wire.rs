//! The form of a DNS message on the wire: header, names, records (RFC 1035, section 4.1).

use crate::protocol::text::Text;
use crate::protocol::wire::Fields;

/// The most bytes of a name's labels with their lengths, without the root's (RFC 1035, 3.1: 255 with it).
const LABELS: usize = 254;
/// The most pointers that a name may follow: an encoder needs one for each label at most, and few names have more.
const POINTERS: usize = 32;

/// The place of the next field in a message, and where it must end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    message: &'a [u8],
    at: usize,
}

/// A record. Its data is yet to be read.
pub(super) struct RawRecord<'a> {
    pub(super) name: Text,
    pub(super) kind: u16,
    pub(super) class: u16,
    pub(super) ttl: u32,
    /// The message up to the end of the data, at the data's start.
    pub(super) data: Place<'a>,
}

impl<'a> Place<'a> {
    pub(super) fn new(message: &'a [u8], at: usize) -> Self {
        Self { message, at: at.min(message.len()) }
    }

    /// The bytes from here on.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.message[self.at..]
    }

    /// What `read` takes from the rest.
    pub(super) fn fields<T>(&mut self, read: impl FnOnce(&mut Fields<'a>) -> Option<T>) -> Option<T> {
        let mut fields = Fields(self.rest());
        let value = read(&mut fields)?;
        self.at = self.message.len() - fields.0.len();
        Some(value)
    }

    /// Steps over the labels of a name, which go to `name`, up to its end or behind a pointer, whose target is given.
    pub(super) fn labels(&mut self, name: &mut Name) -> Result<Option<usize>, Broken> {
        loop {
            let &first = self.rest().first().ok_or(Broken::Cut)?;
            match first {
                0 => {
                    self.at += 1;
                    return Ok(None);
                }
                1..=63 => {
                    let length = 1 + usize::from(first);
                    let room = name.room(length).ok_or(Broken::Wrong)?;
                    room.copy_from_slice(self.rest().get(..length).ok_or(Broken::Cut)?);
                    self.at += length;
                }
                0xc0.. => {
                    let &second = self.rest().get(1).ok_or(Broken::Cut)?;
                    self.at += 2;
                    return Ok(Some(usize::from(first & 0x3f) << 8 | usize::from(second)));
                }
                _ => return Err(Broken::Wrong),
            }
        }
    }

    /// A name, as it is written.
    pub(super) fn name(&mut self) -> Option<Text> {
        let mut name = Name::new();
        let mut pointer = self.labels(&mut name).ok()?;
        let mut part = *self;
        let mut pointers = 0;
        while let Some(target) = pointer {
            // Only what came before can be pointed at.
            if target >= part.at - 2 || pointers == POINTERS {
                return None;
            }
            pointers += 1;
            part.at = target;
            pointer = part.labels(&mut name).ok()?;
        }
        Some(name.into_text())
    }

    /// A question: its name, type and class.
    pub(super) fn question(&mut self) -> Option<(Text, u16, u16)> {
        let name = self.name()?;
        self.fields(|fields| Some((name, fields.u16()?, fields.u16()?)))
    }

    /// Steps over a question. A pointer in it is not followed: there may be thousands.
    pub(super) fn skip_question(&mut self) -> Option<()> {
        self.labels(&mut Name::new()).ok()?;
        self.fields(Fields::u32).map(drop)
    }

    pub(super) fn record(&mut self) -> Option<RawRecord<'a>> {
        let name = self.name()?;
        let (kind, class, ttl) = self.fields(|fields| Some((fields.u16()?, fields.u16()?, fields.u32()?)))?;
        let length = self.fields(Fields::counted_by_u16)?.len();
        let data = Self { message: &self.message[..self.at], at: self.at - length };
        Some(RawRecord { name, kind, class, ttl, data })
    }
}

/// Why labels end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The bytes end first.
    Cut,
    /// They are no name, or too long for one.
    Wrong,
}

/// A name's labels, each behind its length.
#[derive(Debug)]
pub(super) struct Name {
    labels: [u8; LABELS],
    length: usize,
}

impl Name {
    pub(super) fn new() -> Self {
        Self { labels: [0; LABELS], length: 0 }
    }

    /// Room for a label with its length, unless the name gets too long.
    fn room(&mut self, length: usize) -> Option<&mut [u8]> {
        let from = self.length;
        let room = self.labels.get_mut(from..from + length)?;
        self.length = from + length;
        Some(room)
    }

    /// The name without the dot at the end, unless it is the root.
    fn into_text(mut self) -> Text {
        if self.length == 0 {
            return ".".into();
        }
        let mut at = 0;
        while at < self.length {
            let end = at + 1 + usize::from(self.labels[at]);
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            if !self.labels[at + 1..end].iter().all(plain) {
                return self.escaped(at);
            }
            self.labels[at] = b'.';
            at = end;
        }
        // All bytes are ASCII.
        str::from_utf8(&self.labels[1..self.length]).unwrap_or_default().into()
    }

    /// The same of a name with bytes that are unusual in one, where labels before `odd` have a dot for their length
    /// (RFC 4343, 2.1: a backslash before a byte that has a meaning, or before three decimal digits).
    #[cold]
    fn escaped(&self, odd: usize) -> Text {
        let mut text = Vec::with_capacity(4 * self.length);
        text.extend_from_slice(self.labels[..odd].get(1..).unwrap_or_default());
        let mut at = odd;
        while at < self.length {
            if at > 0 {
                text.push(b'.');
            }
            let end = at + 1 + usize::from(self.labels[at]);
            for &byte in &self.labels[at + 1..end] {
                match byte {
                    b' ' | b'.' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
                    0x21..=0x7e => text.push(byte),
                    _ => text.extend_from_slice(&[b'\\', byte / 100 + b'0', byte / 10 % 10 + b'0', byte % 10 + b'0']),
                }
            }
            at = end;
        }
        // All bytes are ASCII.
        str::from_utf8(&text).unwrap_or_default().into()
    }
}
