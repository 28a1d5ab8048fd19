//! Text of a conversation, to be printed.

/// Bytes as text: what is not UTF-8 is replaced.
pub(super) fn printable(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}
