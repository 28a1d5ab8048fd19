//! Text of a conversation, for printing.

/// Bytes as text; bytes that are not UTF-8 are replaced.
pub(super) fn printable(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}
