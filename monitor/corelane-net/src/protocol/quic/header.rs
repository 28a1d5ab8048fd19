//! Long headers: what is in front of a packet while there are no keys that only the two ends have.

/// The version of RFC 9000.
pub(super) const V1: u32 = 1;
/// The version of RFC 9369.
pub(super) const V2: u32 = 0x6b33_43cf;
/// Three versions of Facebook's, of draft 22 and of draft 27, and for trials of the latter.
pub(super) const MVFST_22: u32 = 0xface_b001;
pub(super) const MVFST_27: u32 = 0xface_b002;
pub(super) const MVFST_TRIAL: u32 = 0xface_b00e;
/// Two versions of Google's with TLS, which came before drafts 27 and 29 and are like them but for their keys.
pub(super) const T050: u32 = u32::from_be_bytes(*b"T050");
pub(super) const T051: u32 = u32::from_be_bytes(*b"T051");
/// The longest connection ID.
pub(super) const LONGEST_ID: usize = 20;
/// The least that a packet has behind its header: a packet number and the authentication tag.
const LEAST: usize = 17;

/// The kind of a packet with a long header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum Kind {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    Negotiation,
}

/// A packet with a long header whose lengths fit.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Long<'a> {
    pub(in crate::protocol) kind: Kind,
    /// The fixed bit is set. Ends that agreed on it may clear it (RFC 9287).
    pub(in crate::protocol) is_fixed: bool,
    /// It has room for a packet number and a tag, if it has them.
    pub(in crate::protocol) is_long_enough: bool,
    pub(super) version: u32,
    /// The ID that its receiver has.
    pub(in crate::protocol) destination: &'a [u8],
    /// All its bytes.
    pub(super) packet: &'a [u8],
    /// Where its packet number is, if it has one.
    pub(super) number_at: usize,
    /// The bytes behind it: the next packet of the datagram, or padding.
    pub(super) rest: &'a [u8],
}

/// The packet that a datagram, or the rest of one, begins with: of a version that is known, or a version negotiation
/// that lists one. A packet that is odd, but whose length fits, does not hide those behind it.
pub(in crate::protocol) fn long(bytes: &[u8]) -> Option<Long<'_>> {
    let [first, v0, v1, v2, v3, behind @ ..] = bytes else {
        return None;
    };
    if first & 0x80 == 0 {
        return None;
    }
    let version = u32::from_be_bytes([*v0, *v1, *v2, *v3]);
    let (destination, behind) = id(behind)?;
    let (_, behind) = id(behind)?;
    let is_fixed = first & 0x40 != 0;
    let one = |kind, is_long_enough, packet, number_at, rest| Long {
        kind,
        is_fixed,
        is_long_enough,
        version,
        destination,
        packet,
        number_at,
        rest,
    };
    let alone = |kind, is_long_enough| one(kind, is_long_enough, bytes, 0, &[]);
    let kind = match version {
        // Only a list of versions follows.
        0 => {
            let (versions, rest) = behind.as_chunks::<4>();
            let listed = versions.iter().any(|&version| is_known(u32::from_be_bytes(version)));
            return (rest.is_empty() && listed).then(|| alone(Kind::Negotiation, true));
        }
        // Version 2 numbers its packets anew.
        V2 => (first >> 4).wrapping_sub(1) & 3,
        _ if is_known(version) => first >> 4 & 3,
        _ => return None,
    };
    let (kind, behind) = match kind {
        0 => {
            let (token, behind) = variable(behind)?;
            (Kind::Initial, behind.get(usize::try_from(token).ok()?..)?)
        }
        1 => (Kind::ZeroRtt, behind),
        2 => (Kind::Handshake, behind),
        // It has no length, only a token and a tag.
        _ => return Some(alone(Kind::Retry, behind.len() >= LEAST)),
    };
    let (length, behind) = variable(behind)?;
    let length = usize::try_from(length).ok()?;
    let number_at = bytes.len() - behind.len();
    let (packet, rest) = bytes.split_at_checked(number_at.checked_add(length)?)?;
    Some(one(kind, length >= LEAST, packet, number_at, rest))
}

fn is_known(version: u32) -> bool {
    matches!(version, V1 | V2 | 0xff00_0017..=0xff00_0022 | MVFST_22 | MVFST_27 | MVFST_TRIAL | T050 | T051)
}

/// A connection ID behind its length, and the bytes behind it.
fn id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    let length = usize::from(length);
    if length > LONGEST_ID { None } else { rest.split_at_checked(length) }
}

/// A number of one, two, four or eight bytes, and the bytes behind it.
pub(super) fn variable(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let &first = bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = number[1..].iter().fold(u64::from(first & 0x3f), |value, &byte| value << 8 | u64::from(byte));
    Some((value, rest))
}
