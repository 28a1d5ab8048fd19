//! `quic`: a ClientHello in QUIC and its ServerHello, either of which may not have been seen.

use super::json::{key, object, text};
use super::{Header, tls};
use corelane_net::protocol::tls::{ClientHello, ServerHello};

const SERVER_NAME: u16 = 0;
const PROTOCOL_NAMES: u16 = 16;

/// Writes the event.
pub(super) fn write(
    line: &mut Vec<u8>,
    header: &Header<'_>,
    client: Option<&ClientHello>,
    server: Option<&ServerHello>,
) {
    let version = server.and_then(|hello| hello.quic).or(client.and_then(|hello| hello.quic));
    header.line(line, "quic", |event| {
        event.object(key!("quic"), |quic| {
            quic.text(key!("version"), &format!("{:x}", version.unwrap_or(0)));
            if let Some(hello) = client {
                quic.some_text(key!("sni"), hello.server_name.as_deref());
                quic.some_text(key!("ja4"), hello.ja4.as_deref());
                quic.flag(key!("ech"), hello.is_ech);
                quic.some_list(key!("extensions"), &hello.extensions, |out, &kind| extension(out, kind, hello));
            }
            tls::write_ja3(quic, client, server);
            if let Some(hello) = server {
                quic.object(key!("server_handshake"), |handshake| {
                    handshake.number(key!("version"), hello.version);
                    handshake.number(key!("cipher"), hello.cipher);
                });
            }
        });
    });
}

/// An extension of the hello. Of two there are values: the server's name, and the protocols.
fn extension(out: &mut Vec<u8>, kind: u16, hello: &ClientHello) {
    object(out, |extension| {
        extension.some_text(key!("name"), name(kind));
        extension.number(key!("type"), kind);
        match kind {
            SERVER_NAME => extension.some_list(key!("values"), hello.server_name.as_deref(), text),
            PROTOCOL_NAMES => extension.some_list(key!("values"), &hello.protocols, |out, name| text(out, name)),
            _ => {}
        }
    });
}

/// The registered name of an extension that clients of QUIC send, or used to send over TCP.
fn name(kind: u16) -> Option<&'static str> {
    Some(match kind {
        SERVER_NAME => "server_name",
        1 => "max_fragment_length",
        5 => "status_request",
        10 => "supported_groups",
        11 => "ec_point_formats",
        13 => "signature_algorithms",
        14 => "use_srtp",
        15 => "heartbeat",
        PROTOCOL_NAMES => "alpn",
        17 => "status_request_v2",
        18 => "signed_certificate_timestamp",
        19 => "client_certificate_type",
        20 => "server_certificate_type",
        21 => "padding",
        22 => "encrypt_then_mac",
        23 => "extended_master_secret",
        24 => "token_binding",
        25 => "cached_info",
        27 => "compress_certificate",
        28 => "record_size_limit",
        34 => "delegated_credentials",
        35 => "session_ticket",
        41 => "pre_shared_key",
        42 => "early_data",
        43 => "supported_versions",
        44 => "cookie",
        45 => "psk_key_exchange_modes",
        47 => "certificate_authorities",
        48 => "oid_filters",
        49 => "post_handshake_auth",
        50 => "signature_algorithms_cert",
        51 => "key_share",
        // Drafts have another number.
        57 | 0xffa5 => "quic_transport_parameters",
        0xfe0d => "encrypted_client_hello",
        0xff01 => "renegotiation_info",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelane_net::conversation::Side;

    #[test]
    fn a_handshake_is_written_as_suricata_does_with_the_answer_behind() {
        let client = ClientHello {
            time_ns: 0,
            client: Side::Originator,
            quic: Some(1),
            legacy_version: 0x0303,
            versions: vec![0x0304],
            server_name: Some("a.example".into()),
            protocols: vec!["h3".into(), "a\"b".into()],
            ciphers: vec![0x1301],
            extensions: vec![0x1a1a, 0, 16, 51],
            signatures: vec![],
            groups: vec![0x1a1a, 29, 23],
            point_formats: vec![0],
            ja4: Some("q13d0103h3_x_y".into()),
            is_ech: true,
        };
        let server = ServerHello {
            time_ns: 0,
            server: Side::Responder,
            quic: Some(0x6b33_43cf),
            legacy_version: 0x0303,
            version: 0x0304,
            cipher: 0x1301,
            extensions: vec![51, 43],
            protocol: None,
            is_retry: false,
        };
        let header = Header { is_tcp: false, ..Header::example() };
        let begin = concat!(
            r#"{"timestamp":"2023-11-14T22:13:20.123456+0000","flow_id":7,"pcap_cnt":9,"event_type":"quic","#,
            r#""src_ip":"10.0.0.1","src_port":1234,"dest_ip":"10.0.0.2","dest_port":443,"proto":"UDP","ip_v":4,"#,
            r#""community_id":"1:x=","quic":{"version":"#,
        );
        let asked = concat!(
            r#","sni":"a.example","ja4":"q13d0103h3_x_y","ech":true,"extensions":[{"type":6682},"#,
            r#"{"name":"server_name","type":0,"values":["a.example"]},"#,
            r#"{"name":"alpn","type":16,"values":["h3","a\"b"]},{"name":"key_share","type":51}]"#,
        );
        let ja3 = r#","ja3":{"hash":"1d569708e9bd1b341d827479d3812945","string":"771,4865,0-16-51,29-23,0"}"#;
        let ja3s = r#","ja3s":{"hash":"eb1d94daa7e0344597e756a1fb6e7054","string":"771,4865,51-43"}"#;
        let answered = r#","server_handshake":{"version":772,"cipher":4865}"#;
        for (client, server, expected) in [
            (Some(&client), None, [r#""1""#, asked, ja3, "", ""]),
            (None, Some(&server), [r#""6b3343cf""#, "", "", ja3s, answered]),
            (Some(&client), Some(&server), [r#""6b3343cf""#, asked, ja3, ja3s, answered]),
        ] {
            let mut line = Vec::new();
            write(&mut line, &header, client, server);
            assert_eq!(String::from_utf8(line).unwrap(), format!("{begin}{}}}}}\n", expected.concat()));
        }
    }
}
