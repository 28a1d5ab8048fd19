//! Real captures against what tshark found in them.
//!
//! `TRUTH.json` beside the captures has tshark's counts. Where ours differ, [`DIFFERENT`] says how and why;
//! `docs/protocols.md` has the same as a table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use corelane_net::capture::{Options, Reader};
use corelane_net::conversation::{Conversation, Ending, Limits, Observer, Partition};
use corelane_net::decode::{Tunnel, datagram};
use corelane_net::defrag;
use corelane_net::protocol::{Carrier, Event, Session};

use crate::captures_folder::captures;

/// File, field, tshark's count, ours. The reasons are in `docs/protocols.md`.
const DIFFERENT: &[(&str, &str, u64, u64)] = &[
    ("scan-masscan-udp.pcap", "dns_qnames", 1, 0),
    ("scan-network-sweep.pcap", "dns_queries", 6, 7),
    ("scan-network-sweep.pcap", "dns_qnames", 1, 2),
    ("control-p2p-gnutella.pcap", "http_requests", 0, 5),
    ("control-p2p-gnutella.pcap", "http_responses", 0, 5),
    ("http-mixed.pcap", "http_responses", 336, 338),
    ("malformed-fuzz-be.pcap", "dns_queries", 255, 207),
    ("malformed-fuzz-be.pcap", "dns_responses", 49, 41),
    ("malformed-fuzz-be.pcap", "dns_qnames", 68, 61),
];

/// Counts of a capture, by tshark's names.
#[derive(Default)]
struct Found {
    counts: BTreeMap<&'static str, u64>,
    methods: BTreeMap<String, u64>,
    hosts: BTreeSet<String>,
    names: Vec<String>,
    quic_names: Vec<String>,
    /// ClientHellos and ServerHellos in QUIC.
    quic: [u64; 2],
    questions: BTreeSet<String>,
    /// Of the client and of the server of each connection: protocol, software, HASSH.
    ssh: Vec<[Option<[String; 3]>; 2]>,
}

impl Found {
    fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Identified(found) if matches!(found.protocol.name(), "ntp" | "stun" | "wireguard") => {
                self.count(found.protocol.name());
            }
            Event::Http(exchange) => {
                if let Some(request) = &exchange.request {
                    self.count("http_requests");
                    *self.methods.entry(request.method.to_string()).or_default() += 1;
                    self.hosts.extend(request.host.as_deref().map(str::to_owned));
                }
                if let Some(response) = &exchange.response {
                    self.count("http_responses");
                    *self.counts.entry("http_responses").or_default() += u64::from(response.interim);
                }
            }
            Event::ClientHello(hello) if hello.quic.is_some() => {
                self.quic[0] += 1;
                self.quic_names.extend(hello.server_name.map(String::from));
            }
            Event::ServerHello(hello) if hello.quic.is_some() => self.quic[1] += 1,
            Event::ClientHello(hello) if hello.is_dtls() => self.count("dtls_client_hello"),
            Event::ServerHello(hello) if hello.is_dtls() => self.count("dtls_server_hello"),
            Event::ClientHello(hello) => {
                self.count("tls_client_hello");
                self.names.extend(hello.server_name.map(String::from));
            }
            Event::ServerHello(_) => {
                self.count("tls_server_hello");
            }
            Event::Dns(message) => {
                self.count(if message.is_response() { "dns_responses" } else { "dns_queries" });
                self.questions.extend(message.questions.iter().map(|question| question.name.to_string()));
            }
            Event::Ssh(handshake) => self.ssh.push([handshake.client, handshake.server].map(|peer| {
                let peer = peer?;
                let hash = peer.hassh.map(|hassh| hassh.hash).unwrap_or_default();
                Some([peer.protocol, peer.software, hash].map(String::from))
            })),
            _ => {}
        }
    }
}

impl Observer<Session> for Found {
    fn begin(&mut self, conversation: &Conversation) -> Option<Session> {
        Some(Session::new(if conversation.is_tcp() { Carrier::Stream } else { Carrier::Datagrams }))
    }

    fn progress(&mut self, _: &Conversation, _: &mut Session, _: Option<&Tunnel>, found: &mut Vec<Event>) {
        found.drain(..).for_each(|event| self.event(event));
    }

    fn over(&mut self, _: &Conversation, _: &Ending, _: Option<Session>, found: &mut Vec<Event>) {
        found.drain(..).for_each(|event| self.event(event));
    }
}

fn read(file: &Path) -> Found {
    let mut reader = Reader::open(file, &Options::default()).unwrap();
    let mut found = Found::default();
    let mut partition = Partition::new(&Limits::new(64 << 20), &defrag::Limits::default());
    let mut buffer = Vec::new();
    loop {
        let read = reader.read(1 << 16, |record| {
            if let Ok(datagram) = datagram(&record) {
                partition.datagram(record.time_ns, record.wire_len, &datagram, &mut buffer, &mut found);
            }
        });
        if matches!(read, Ok(0)) {
            break;
        }
    }
    partition.finish(&mut found);
    found
}

/// What both sides of the SSH connections say: client, server, each with its HASSH. Computed from the packets with
/// Python's hashlib; the version lines are tshark's (`TRUTH.json` in `wire`) where it lists them.
///
/// - ssh-on-port-80: tshark takes the port for HTTP and lists none.
/// - ssh-server-pre-banner-data: tshark does not find the server's line behind the 35 lines in front of it, which RFC
///   4253, section 4.2, allows.
/// - ssh-reverse-ssh: the connection was opened by the server, which answers the key exchange.
#[rustfmt::skip]
const SSH: [(&str, [&str; 3], [&str; 3]); 5] = [
    ("ssh-on-port-80.pcap", ["2.0", "OpenSSH_5.2", "21b457a327ce7a2d4fce5ef2c42400bd"],
        ["2.0", "OpenSSH_5.8p1", "60205d0b53ffd441ead5c43b5a6f1bc7"]),
    ("ssh-reverse-ssh.pcap", ["2.0", "AsyncSSH_2.8.1", "18f369389d126cfeecade20e1ea5ff9b"],
        ["2.0", "dropbear_2018.76", "413e646031ea5204c5ec2fe2d5b7946e"]),
    ("ssh-server-pre-banner-data.pcap", ["2.0", "OpenSSH_9.7", "7994d3e86b804f8317899f8b2eeb1059"],
        ["2.0", "OpenSSH_9.2p1", "425d29fe50d8e4f5e37efb6e24bcf660"]),
    ("ssh-single-conn.pcap", ["2.0", "OpenSSH_3.8.1p1", "c4fd9343cba76d12f0dd523fbe7c4da1"],
        ["1.99", "OpenSSH_3.9p1", "f430cd6761697a6a658ee1d45ed22e49"]),
    ("ssh-version_199.pcap", ["1.99", "Cisco-1.25", "3cc67862bceac0f334c62ad1b76895b4"],
        ["2.0", "Cisco-1.25", "3cc67862bceac0f334c62ad1b76895b4"]),
];

#[test]
fn ssh_connections_say_what_tshark_lists_and_what_it_overlooks() {
    let Some(folder) = captures().map(|folder| folder.join("wire")).filter(|wire| wire.join("TRUTH.json").exists())
    else {
        return;
    };
    let truth = std::fs::read_to_string(folder.join("TRUTH.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
    for (name, client, server) in SSH {
        let found = read(&folder.join(name)).ssh;
        assert_eq!(found, [[client, server].map(|side| Some(side.map(str::to_owned)))], "{name}");
        let file = truth.as_array().unwrap().iter().find(|file| file["file"] == name).unwrap();
        for line in file["ssh"].as_array().unwrap() {
            let line = line.as_str().unwrap();
            let has = |side: [&str; 3]| line == format!("SSH-{}-{}", side[0], side[1]);
            assert!(has(client) || has(server), "{name}: {line}");
        }
    }
}

#[test]
fn the_protocol_counts_are_those_of_tshark_but_for_what_is_explained() {
    let Some(folder) = captures() else {
        return;
    };
    let truth = std::fs::read_to_string(folder.join("TRUTH.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
    let mut wrong = Vec::new();
    let mut compared = BTreeSet::new();
    for file in truth.as_array().unwrap() {
        let name = file["file"].as_str().unwrap();
        let theirs = &file["tshark"];
        let found = read(&folder.join(name));
        let counted = |field: &str| found.counts.get(field).copied().unwrap_or(0);
        let fields =
            ["http_requests", "http_responses", "tls_client_hello", "tls_server_hello", "dns_queries", "dns_responses"];
        let mut pairs: Vec<(&str, u64, u64)> =
            fields.iter().map(|&field| (field, theirs[field].as_u64().unwrap_or(0), counted(field))).collect();
        pairs.push(("http_hosts", theirs["http_hosts"].as_u64().unwrap_or(0), found.hosts.len() as u64));
        pairs.push(("dns_qnames", theirs["dns_qnames"].as_u64().unwrap_or(0), found.questions.len() as u64));
        pairs.push(("sni_distinct", theirs["sni_distinct"].as_u64().unwrap_or(0), {
            found.names.iter().collect::<BTreeSet<_>>().len() as u64
        }));
        // tshark counts packets; each of these conversations has one.
        for (ours, name) in [("ntp", "ntp"), ("stun", "stun"), ("wireguard", "wg")] {
            pairs.push((ours, theirs["protocols"][name].as_u64().unwrap_or(0), counted(ours)));
        }
        for (field, theirs, ours) in pairs {
            let known = DIFFERENT.iter().find(|known| known.0 == name && known.1 == field);
            compared.insert((name.to_owned(), field.to_owned()));
            let expected = known.map_or((theirs, theirs), |known| (known.2, known.3));
            if (theirs, ours) != expected {
                wrong.push(format!("{name} {field}: tshark {theirs}, ours {ours}, expected {expected:?}"));
            }
        }
        let methods: BTreeMap<String, u64> =
            serde_json::from_value(theirs.get("http_methods").cloned().unwrap_or_else(|| serde_json::json!({})))
                .unwrap();
        if methods != found.methods && !DIFFERENT.iter().any(|known| known.0 == name && known.1 == "http_requests") {
            wrong.push(format!("{name} methods: tshark {methods:?}, ours {:?}", found.methods));
        }
    }
    for (name, field, ..) in DIFFERENT {
        assert!(
            compared.contains(&((*name).to_owned(), (*field).to_owned())),
            "{name} {field} is explained but not compared"
        );
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Each has one ClientHello. One has no answer: the client closes. That of version 2, which tshark 4.0 does not know,
/// asks for no name.
#[test]
fn the_names_in_quic_are_those_of_tshark() {
    let Some(folder) = captures().map(|folder| folder.join("wire")).filter(|folder| folder.join("TRUTH.json").exists())
    else {
        return;
    };
    let truth = std::fs::read_to_string(folder.join("TRUTH.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&truth).unwrap();
    let mut wrong = Vec::new();
    for file in truth.as_array().unwrap() {
        let name = file["file"].as_str().unwrap();
        if !name.starts_with("quic-") {
            continue;
        }
        let found = read(&folder.join(name));
        let names: Vec<String> = serde_json::from_value(file["quic_sni"].clone()).unwrap();
        let answers = u64::from(name != "quic-multiple-initial-fragmented-crypto.pcap");
        if found.quic_names != names || found.quic != [1, answers] || found.counts.contains_key("tls_client_hello") {
            wrong.push(format!("{name}: {names:?}, ours {:?} of {:?}", found.quic_names, found.quic));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
