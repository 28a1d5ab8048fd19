//! The content of the hellos.

use crate::conversation::Side;
use crate::protocol::Text;
use crate::protocol::text::hex;
use md5::{Digest, Md5};
use std::fmt::Write;

/// The content of a ClientHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// The time of its last byte, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The side that sent it.
    pub client: Side,
    /// The version of QUIC that carried it: 1, 0x6b3343cf for version 2, or that of a draft. None over TCP.
    pub quic: Option<u32>,
    /// The version in its head: 0x0303 for TLS 1.2 and everything newer.
    pub legacy_version: u16,
    /// The versions it offers in an extension, in its order, without GREASE values.
    pub versions: Vec<u16>,
    /// The host it wants to reach (SNI), of a longer one the first 255 bytes.
    pub server_name: Option<Text>,
    /// The protocols it offers (ALPN), in its order.
    pub protocols: Vec<Text>,
    /// The cipher suites, in its order, with GREASE values.
    pub ciphers: Vec<u16>,
    /// The kinds of its extensions, in its order, with GREASE values.
    pub extensions: Vec<u16>,
    /// The signature algorithms, in its order, with GREASE values.
    pub signatures: Vec<u16>,
    /// The groups for the key exchange, in its order, with GREASE values.
    pub groups: Vec<u16>,
    /// The formats of points on curves, in its order.
    pub point_formats: Vec<u8>,
    /// The JA4 fingerprint. A hello in the form of SSL 2 has none.
    pub ja4: Option<Text>,
    /// Whether it is the outer hello of Encrypted Client Hello, whose server name stands for another one. A client that
    /// has none to hide may send bytes that look the same.
    pub is_ech: bool,
}

/// The content of a ServerHello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHello {
    /// The time of its last byte, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The side that sent it.
    pub server: Side,
    /// The version of QUIC that carried it, as of a ClientHello.
    pub quic: Option<u32>,
    /// The version in its head: 0x0303 for TLS 1.2 and everything newer.
    pub legacy_version: u16,
    /// The version that was chosen: 0x0303 for TLS 1.2, 0x0304 for 1.3.
    pub version: u16,
    /// The cipher suite.
    pub cipher: u16,
    /// The kinds of its extensions, in its order.
    pub extensions: Vec<u16>,
    /// The protocol that was chosen, if it is in the clear (TLS 1.3 encrypts it).
    pub protocol: Option<Text>,
    /// Whether it asks for another ClientHello.
    pub is_retry: bool,
}

impl ClientHello {
    /// Whether it is of DTLS.
    pub fn is_dtls(&self) -> bool {
        is_dtls(self.legacy_version)
    }

    /// Its JA3, by the description of the authors (github.com/salesforce/ja3). A hello in the form of SSL 2 has none.
    pub fn ja3(&self) -> Option<Ja3> {
        self.ja4.as_ref()?;
        let formats: Vec<u16> = self.point_formats.iter().copied().map(u16::from).collect();
        Some(Ja3::new([&[self.legacy_version], &self.ciphers, &self.extensions, &self.groups, &formats]))
    }

    /// The bytes it holds outside of itself.
    pub fn heap_bytes(&self) -> usize {
        let numbers = [&self.versions, &self.ciphers, &self.extensions, &self.signatures, &self.groups];
        2 * numbers.iter().map(|numbers| numbers.capacity()).sum::<usize>()
            + self.point_formats.capacity()
            + self.protocols.capacity() * size_of::<Text>()
            + self.protocols.iter().map(|name| name.heap_bytes()).sum::<usize>()
            + self.server_name.as_ref().map_or(0, |name| name.heap_bytes())
            + self.ja4.as_ref().map_or(0, |ja4| ja4.heap_bytes())
    }
}

impl ServerHello {
    /// Whether it is of DTLS.
    pub fn is_dtls(&self) -> bool {
        is_dtls(self.legacy_version)
    }

    /// Its JA3S.
    pub fn ja3s(&self) -> Ja3 {
        Ja3::new([&[self.legacy_version], &[self.cipher], &self.extensions])
    }

    /// The bytes it holds outside of itself.
    pub fn heap_bytes(&self) -> usize {
        2 * self.extensions.capacity() + self.protocol.as_ref().map_or(0, |name| name.heap_bytes())
    }
}

/// A JA3 fingerprint, of a client or of a server (JA3S).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ja3 {
    /// Lists of decimal numbers.
    pub string: String,
    /// Its MD5, in hexadecimal.
    pub hash: String,
}

impl Ja3 {
    /// The lists without GREASE values: numbers with `-` between them, lists with `,`.
    fn new<const N: usize>(lists: [&[u16]; N]) -> Self {
        let mut string = String::with_capacity(256);
        for (place, list) in lists.into_iter().enumerate() {
            string.extend((place > 0).then_some(','));
            for (place, value) in list.iter().filter(|&&value| !is_grease(value)).enumerate() {
                string.extend((place > 0).then_some('-'));
                let _ = write!(string, "{value}");
            }
        }
        let mut hash = String::with_capacity(32);
        hex(&mut hash, &Md5::digest(string.as_bytes()));
        Self { string, hash }
    }
}

/// Whether a value is GREASE: reserved, so that no implementation relies on knowing all values (RFC 8701).
pub(super) fn is_grease(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}

/// Whether a version is of DTLS: the ones' complement of 1.0 and so on.
pub(super) fn is_dtls(version: u16) -> bool {
    version >> 8 == 0xfe
}

/// A version as it is written, such as `TLS 1.2`.
pub fn version_name(version: u16) -> &'static str {
    match version {
        0x0300 => "SSLv3",
        0x0301 => "TLS 1.0",
        0x0302 => "TLS 1.1",
        0x0303 => "TLS 1.2",
        0x0304 => "TLS 1.3",
        0xfeff => "DTLS 1.0",
        0xfefd => "DTLS 1.2",
        0xfefc => "DTLS 1.3",
        _ => "unknown",
    }
}
