//! `tls`: a ClientHello and its ServerHello, either of which may not have been seen.

use super::json::{Object, key, number, text};
use super::{Events, Header, Message, quic};
use corelane_net::conversation::Side;
use corelane_net::protocol::tls::{ClientHello, ServerHello};
use std::borrow::Cow;

/// The hellos of a handshake, over TCP or in QUIC. One of them is there.
pub(crate) struct Hellos<'a> {
    pub(crate) client: Option<&'a ClientHello>,
    pub(crate) server: Option<&'a ServerHello>,
}

impl Message for Hellos<'_> {
    fn event_type(&self) -> Events {
        let quic = self.client.map(|hello| hello.quic).or(self.server.map(|hello| hello.quic)).flatten();
        if quic.is_some() { Events::QUIC } else { Events::TLS }
    }

    fn from(&self) -> Side {
        let client = self.client.map(|hello| hello.client).or(self.server.map(|hello| hello.server.other()));
        client.unwrap_or(Side::Originator)
    }

    /// The clock of the capture may have gone back between the two.
    fn time_ns(&self) -> u64 {
        let times = [self.client.map(|hello| hello.time_ns), self.server.map(|hello| hello.time_ns)];
        times.into_iter().flatten().max().unwrap_or(0)
    }

    fn write(&self, line: &mut Vec<u8>, header: &Header<'_>) {
        let write = if self.event_type() == Events::QUIC { quic::write } else { write };
        write(line, header, self.client, self.server);
    }
}

fn write(line: &mut Vec<u8>, header: &Header<'_>, client: Option<&ClientHello>, server: Option<&ServerHello>) {
    // What a client offers is not what is spoken.
    let version = server.map_or(0, |hello| hello.version);
    header.line(line, "tls", |event| {
        event.object(key!("tls"), |tls| {
            tls.some_text(key!("sni"), client.and_then(|hello| hello.server_name.as_deref()));
            tls.text(key!("version"), &version_name(version));
            tls.some_text(key!("ja4"), client.and_then(|hello| hello.ja4.as_deref()));
            write_ja3(tls, client, server);
            tls.flag(key!("ech"), client.is_some_and(|hello| hello.is_ech));
            let protocols = client.map_or(&[][..], |hello| &hello.protocols);
            tls.some_list(key!("client_alpns"), protocols, |out, name| text(out, name));
            tls.some_list(key!("server_alpns"), server.and_then(|hello| hello.protocol.as_deref()), text);
            if let Some(hello) = client {
                tls.object(key!("client_handshake"), |handshake| {
                    handshake.number(key!("version"), hello.legacy_version);
                    for (key, list) in [
                        (key!("ciphers"), &hello.ciphers),
                        (key!("exts"), &hello.extensions),
                        (key!("sig_algs"), &hello.signatures),
                    ] {
                        handshake.list(key, &**list, |out, &value| number(out, value.into()));
                    }
                });
            }
            if let Some(hello) = server {
                tls.object(key!("server_handshake"), |handshake| {
                    handshake.number(key!("version"), hello.version);
                    handshake.number(key!("cipher"), hello.cipher);
                });
            }
        });
    });
}

/// Writes the fingerprints of both, as in the events of QUIC.
pub(super) fn write_ja3(object: &mut Object<'_>, client: Option<&ClientHello>, server: Option<&ServerHello>) {
    let of_both = [(key!("ja3"), client.and_then(ClientHello::ja3)), (key!("ja3s"), server.map(ServerHello::ja3s))];
    for (key, ja3) in of_both {
        if let Some(ja3) = ja3 {
            object.object(key, |fields| {
                fields.text(key!("hash"), &ja3.hash);
                fields.text(key!("string"), &ja3.string);
            });
        }
    }
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
        // Suricata knows none of DTLS.
        0xfeff => "DTLS 1.0".into(),
        0xfefd => "DTLS 1.2".into(),
        0xfefc => "DTLS 1.3".into(),
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

    /// Lists of a hello stay where they are empty; names that were not given do not.
    #[test]
    fn a_handshake_is_written_in_full() {
        let hello = ClientHello {
            time_ns: 0,
            client: Side::Originator,
            quic: None,
            legacy_version: 0x0301,
            versions: vec![],
            server_name: None,
            protocols: vec!["h2".into(), "a\"b".into()],
            ciphers: vec![5, 47],
            extensions: vec![],
            signatures: vec![],
            groups: vec![],
            point_formats: vec![],
            ja4: None,
            is_ech: false,
        };
        let header = Header::example();
        let mut line = Vec::new();
        write(&mut line, &header, Some(&hello), None);
        let expected = concat!(
            r#"{"timestamp":"2023-11-14T22:13:20.123456+0000","flow_id":7,"pcap_cnt":9,"event_type":"tls","#,
            r#""src_ip":"10.0.0.1","src_port":1234,"dest_ip":"10.0.0.2","dest_port":443,"proto":"TCP","ip_v":4,"#,
            r#""community_id":"1:x=","tls":{"version":"UNDETERMINED","client_alpns":["h2","a\"b"],"#,
            r#""client_handshake":{"version":769,"ciphers":[5,47],"exts":[],"sig_algs":[]}}}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

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
            (0xfefc, "DTLS 1.3"),
            (0xfefd, "DTLS 1.2"),
            (0xfeff, "DTLS 1.0"),
            (0xfefe, "0xfefe"),
        ] {
            assert_eq!(version_name(version), name);
        }
    }
}
