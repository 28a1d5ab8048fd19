//! `tls`: a ClientHello and its ServerHello, either of which may not have been seen.

use super::{Header, end, key};
use corelane_net::protocol::tls::{ClientHello, ServerHello};
use serde::Serialize;
use std::borrow::Cow;

#[derive(Serialize)]
struct Fields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    sni: Option<&'a str>,
    version: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ja4: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    client_alpns: &'a [Box<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    server_alpns: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_handshake: Option<ClientHandshake<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_handshake: Option<ServerHandshake>,
}

#[derive(Serialize)]
struct ClientHandshake<'a> {
    version: u16,
    ciphers: &'a [u16],
    exts: &'a [u16],
    sig_algs: &'a [u16],
}

#[derive(Serialize)]
struct ServerHandshake {
    version: u16,
    cipher: u16,
}

/// Writes the event.
pub(crate) fn write(
    line: &mut Vec<u8>,
    header: &Header<'_>,
    client: Option<&ClientHello>,
    server: Option<&ServerHello>,
) {
    let version = server.map(|hello| hello.version).or(client.map(|hello| hello.legacy_version));
    let fields = Fields {
        sni: client.and_then(|hello| hello.server_name.as_deref()),
        version: version_name(version.unwrap_or(0)),
        ja4: client.and_then(|hello| hello.ja4.as_deref()),
        client_alpns: client.map_or(&[], |hello| &hello.protocols),
        server_alpns: server.and_then(|hello| hello.protocol.as_deref()).map(|name| [name]),
        client_handshake: client.map(|hello| ClientHandshake {
            version: hello.legacy_version,
            ciphers: &hello.ciphers,
            exts: &hello.extensions,
            sig_algs: &hello.signatures,
        }),
        server_handshake: server.map(|hello| ServerHandshake { version: hello.version, cipher: hello.cipher }),
    };
    header.begin(line, "tls");
    key(line, "tls", &fields);
    end(line);
}

/// A version as Suricata writes it, in which 0 is none.
fn version_name(version: u16) -> Cow<'static, str> {
    match version {
        0 => "UNDETERMINED".into(),
        0x0200 => "SSLv2".into(),
        0x0300 => "SSLv3".into(),
        0x0301 => "TLSv1".into(),
        0x0302 => "TLS 1.1".into(),
        0x0303 => "TLS 1.2".into(),
        0x0304 => "TLS 1.3".into(),
        // Drafts, also one company's own.
        0x7f01 => "TLS 1.3 draft-<16".into(),
        0x7f10..=0x7f1c => format!("TLS 1.3 draft-{}", version & 0xff).into(),
        0xfb14..=0xfb17 | 0xfb1a => format!("TLS 1.3 draft-{}-fb", version & 0xff).into(),
        _ => format!("{version:#06x}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_written_as_suricata_does() {
        for (version, name) in [
            (0x0000, "UNDETERMINED"),
            (0x0002, "0x0002"),
            (0x0200, "SSLv2"),
            (0x0300, "SSLv3"),
            (0x0301, "TLSv1"),
            (0x0302, "TLS 1.1"),
            (0x0303, "TLS 1.2"),
            (0x0304, "TLS 1.3"),
            (0x0305, "0x0305"),
            (0x7f01, "TLS 1.3 draft-<16"),
            (0x7f10, "TLS 1.3 draft-16"),
            (0x7f1c, "TLS 1.3 draft-28"),
            (0x7f1d, "0x7f1d"),
            (0xfb14, "TLS 1.3 draft-20-fb"),
            (0xfb17, "TLS 1.3 draft-23-fb"),
            (0xfb18, "0xfb18"),
            (0xfb1a, "TLS 1.3 draft-26-fb"),
            (0xfeff, "0xfeff"),
        ] {
            assert_eq!(version_name(version), name);
        }
    }
}
