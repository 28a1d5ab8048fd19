//! `ssh`: what the two sides say before they encrypt, either of which may not have been seen.

use super::json::key;
use super::{Events, Header, Message};
use corelane_net::conversation::Side;
use corelane_net::protocol::ssh::{Handshake, Peer};

impl Message for Handshake {
    fn event_type(&self) -> Events {
        Events::SSH
    }

    fn from(&self) -> Side {
        self.client_side
    }

    fn client(&self) -> Option<Side> {
        Some(self.client_side)
    }

    fn time_ns(&self) -> u64 {
        self.time_ns
    }

    fn write(&self, line: &mut Vec<u8>, header: &Header<'_>) {
        write(line, header, self);
    }
}

fn write(line: &mut Vec<u8>, header: &Header<'_>, handshake: &Handshake) {
    header.line(line, "ssh", |event| {
        event.object(key!("ssh"), |ssh| {
            for (name, peer) in [(key!("client"), &handshake.client), (key!("server"), &handshake.server)] {
                let Some(Peer { protocol, software, hassh }) = peer else {
                    continue;
                };
                ssh.object(name, |peer| {
                    peer.text(key!("proto_version"), protocol);
                    peer.some_text(key!("software_version"), Some(&**software).filter(|name| !name.is_empty()));
                    if let Some(hassh) = hassh {
                        peer.object(key!("hassh"), |fields| {
                            fields.text(key!("hash"), &hassh.hash);
                            fields.text(key!("string"), &hassh.text);
                        });
                    }
                });
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use corelane_net::protocol::ssh::Hassh;

    #[test]
    fn a_side_is_written_as_far_as_it_was_seen() {
        let peer = |software: &str, hassh| Peer { protocol: "2.0".into(), software: software.into(), hassh };
        let hassh = Hassh { hash: "00ff".into(), text: "k;e,\"f;m;c".into() };
        let handshake = Handshake {
            time_ns: 0,
            client_side: Side::Originator,
            client: Some(peer("OpenSSH_9.7", Some(hassh))),
            server: Some(peer("", None)),
        };
        let header = Header { number: None, ..Header::example() };
        let mut line = Vec::new();
        write(&mut line, &header, &handshake);
        let expected = concat!(
            r#"{"timestamp":"2023-11-14T22:13:20.123456+0000","flow_id":7,"event_type":"ssh","#,
            r#""src_ip":"10.0.0.1","src_port":1234,"dest_ip":"10.0.0.2","dest_port":443,"proto":"TCP","ip_v":4,"#,
            r#""community_id":"1:x=","ssh":{"client":{"proto_version":"2.0","software_version":"OpenSSH_9.7","#,
            r#""hassh":{"hash":"00ff","string":"k;e,\"f;m;c"}},"server":{"proto_version":"2.0"}}}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }
}
