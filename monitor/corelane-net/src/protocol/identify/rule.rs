//! What a rule sees and returns.

use crate::protocol::Protocol;

/// The most bytes of a side that are examined.
pub const PREFIX: usize = 4096;

/// The end that a side is, where its bytes show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum Speaker {
    Client,
    Server,
    Either,
}

/// The verdict of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum Says {
    Yes(Protocol, &'static str, Speaker),
    No,
    /// These bytes do not decide.
    More,
    /// These first bytes are of no protocol: those behind them are to be judged instead. Only of streams.
    Behind(usize),
}

/// The bytes that a rule over a stream examines.
#[derive(Clone, Copy)]
pub(in crate::protocol) struct Seen<'a> {
    pub(in crate::protocol) own: &'a [u8],
    /// The bytes of the other side so far.
    pub(in crate::protocol) other: &'a [u8],
}

/// Whether `bytes` start with `magic`, or may still do so.
pub(in crate::protocol) fn starts(bytes: &[u8], magic: &[u8]) -> Says {
    let common = bytes.len().min(magic.len());
    match bytes[..common] == magic[..common] {
        false => Says::No,
        true if common < magic.len() => Says::More,
        true => Says::Yes(Protocol::Http1, "", Speaker::Either),
    }
}

/// The first line without its end, once the end is there.
pub(in crate::protocol) fn first_line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    Some(bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]))
}
