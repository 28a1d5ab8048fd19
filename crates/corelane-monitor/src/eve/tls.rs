//! `tls`: a ClientHello and its ServerHello, either of which may not have been seen.

use super::{Header, end, key};
use corelane_net::protocol::tls::{ClientHello, ServerHello, version_name};
use serde::Serialize;

#[derive(Serialize)]
struct Fields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    sni: Option<&'a str>,
    version: &'static str,
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
        version: match version.map_or("unknown", version_name) {
            "unknown" => "UNDETERMINED",
            name => name,
        },
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
