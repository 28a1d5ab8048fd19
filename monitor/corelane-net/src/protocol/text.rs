//! Text of a conversation, for printing.

use std::fmt;
use std::ops::Deref;

/// The bytes that fit into a [`Text`] itself.
const INLINE: usize = 30;

/// Text that needs no memory of its own if it is short, as most are: methods, hosts, kinds of content, names.
///
/// ```
/// use corelane_net::protocol::Text;
///
/// let text = Text::from("example.org");
/// assert_eq!((&*text, text.heap_bytes(), size_of::<Text>()), ("example.org", 0, 32));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Place);

/// A text of one length is always in the same place, so that equal texts have equal places.
#[derive(Clone, PartialEq, Eq)]
enum Place {
    /// The rest of the bytes is zeros.
    Inline {
        len: u8,
        bytes: [u8; INLINE],
    },
    Heap(Box<str>),
}

impl Text {
    /// The bytes that it holds outside of itself.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Place::Inline { .. } => 0,
            Place::Heap(text) => text.len(),
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Self(Place::Inline { len: 0, bytes: [0; INLINE] })
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            // It was made of a whole text, so this never fails.
            Place::Inline { len, bytes } => str::from_utf8(&bytes[..usize::from(*len)]).unwrap_or_default(),
            Place::Heap(text) => text,
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        if text.len() > INLINE {
            return Self(Place::Heap(text.into()));
        }
        let mut bytes = [0; INLINE];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self(Place::Inline { len: text.len() as u8, bytes })
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        match text.0 {
            Place::Heap(text) => text.into(),
            inline @ Place::Inline { .. } => (*Text(inline)).to_owned(),
        }
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

/// How much of the messages of HTTP, TLS over TCP, and DNS is kept in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// All that is read.
    #[default]
    Full,
    /// No texts and no lists, for a caller that only counts. Of HTTP the methods stay, and other texts are empty.
    /// Hellos have neither names nor a fingerprint. Messages of DNS have the facts of their headers, and belong to no
    /// transaction. The same events come at the same places, unless memory gets short: less is held.
    Counts,
}

impl Detail {
    /// Bytes as text, if they are kept. Adds the text's length, kept or not.
    pub(super) fn text(self, bytes: &[u8], length: &mut usize) -> Text {
        let text = match self {
            Self::Full => printable(bytes),
            Self::Counts => {
                *length += str::from_utf8(bytes).map_or_else(|_| printable(bytes).len(), str::len);
                return Text::default();
            }
        };
        *length += text.len();
        text
    }
}

/// Bytes as text. Of bytes that are not UTF-8 all beyond ASCII are written as `\xff`, as in Suricata: four for one.
pub(super) fn printable(bytes: &[u8]) -> Text {
    match str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => (&*escaped(bytes)).into(),
    }
}

#[cold]
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(4 * bytes.len());
    for &byte in bytes {
        if byte.is_ascii() {
            text.push(byte.into());
        } else {
            text.push_str("\\x");
            hex(&mut text, &[byte]);
        }
    }
    text
}

/// A hexadecimal digit.
pub(super) fn digit(value: u8) -> char {
    char::from_digit((value & 0xf).into(), 16).unwrap_or('0')
}

/// Appends two digits for each byte.
pub(super) fn hex(text: &mut String, bytes: &[u8]) {
    text.extend(bytes.iter().flat_map(|byte| [byte >> 4, *byte].map(digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_come_back() {
        for length in [0, 1, INLINE - 1, INLINE, INLINE + 1, 1000] {
            let text = "x".repeat(length);
            let kept = Text::from(&*text);
            assert_eq!((&*kept, kept.clone() == kept), (&*text, true));
            assert_eq!(kept.heap_bytes(), if length > INLINE { length } else { 0 });
            assert_ne!(kept, Text::from(&*format!("{text}x")));
        }
        // The end of what fits, in the middle of a letter.
        let text = format!("{}ü", "x".repeat(INLINE - 1));
        assert_eq!((&*Text::from(&*text), Text::from(&*text).heap_bytes()), (&*text, text.len()));
        assert_eq!(&*printable(b"a\xffb\xc3\xa4"), "a\\xffb\\xc3\\xa4");
        assert_eq!(&*printable("a\0ä".as_bytes()), "a\0ä");
        assert_eq!([String::from(Text::from("a")), String::from(Text::from(&*text))], ["a", &*text]);
        assert_eq!(format!("{:?} {0}", Text::from("a")), "\"a\" a");
    }
}
