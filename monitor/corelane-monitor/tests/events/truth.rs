//! Real captures: the events against what tshark counted.

use crate::captures_folder::captures;
use crate::support::{of, plan};
use corelane_monitor::Inspection;
use corelane_net::capture::{Options, Reader};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// File, field, tshark's count, ours. `docs/protocols.md` has the reasons.
const DIFFERENT: &[(&str, &str, u64, u64)] = &[
    ("scan-masscan-udp.pcap", "dns_qnames", 1, 0),
    ("scan-network-sweep.pcap", "dns_queries", 6, 7),
    ("scan-network-sweep.pcap", "dns_qnames", 1, 2),
    ("control-p2p-gnutella.pcap", "http_requests", 0, 5),
    ("control-p2p-gnutella.pcap", "http_responses", 0, 5),
    ("http-mixed.pcap", "http_responses", 336, 338),
    ("malformed-fuzz-be.pcap", "dns_queries", 255, 206),
    ("malformed-fuzz-be.pcap", "dns_responses", 49, 41),
    ("malformed-fuzz-be.pcap", "dns_qnames", 68, 60),
];

#[derive(Default)]
struct Found {
    counts: BTreeMap<&'static str, u64>,
    hosts: BTreeSet<String>,
    names: BTreeSet<String>,
    questions: BTreeSet<String>,
    quic_names: Vec<String>,
}

impl Found {
    fn count(&mut self, name: &'static str, whether: bool) {
        *self.counts.entry(name).or_default() += u64::from(whether);
    }

    fn event(&mut self, event: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match event["event_type"].as_str().expect("a type") {
            "http" => {
                let http = &event["http"];
                self.count("http_requests", http["http_method"].is_string());
                self.count("http_responses", http["status"].is_u64());
                let port = http["http_port"].as_u64().map(|port| format!(":{port}")).unwrap_or_default();
                self.hosts.extend(text(&http["hostname"]).map(|host| host + &port));
            }
            "tls" => {
                let tls = &event["tls"];
                self.count("tls_client_hello", tls["client_handshake"].is_object());
                self.count("tls_server_hello", tls["server_handshake"].is_object());
                self.names.extend(text(&tls["sni"]));
            }
            "quic" => {
                let quic = &event["quic"];
                self.count("quic", true);
                self.count("quic_client_hello", quic["extensions"].is_array());
                self.count("quic_server_hello", quic["server_handshake"].is_object());
                self.quic_names.extend(text(&quic["sni"]));
            }
            "dns" => {
                let dns = &event["dns"];
                self.count("dns_queries", dns["type"] == "request");
                self.count("dns_responses", dns["type"] == "response");
                let queries = dns["queries"].as_array().into_iter().flatten();
                self.questions.extend(queries.filter_map(|query| text(&query["rrname"])));
            }
            // Compared in `wire.rs`; what tshark counts here are packets.
            "ssh" => self.count("ssh", true),
            "flow" => self.count("flows", event["tcp"]["conn_state"].is_null()),
            other => panic!("{other}"),
        }
    }
}

#[test]
fn the_events_count_what_tshark_counted_but_for_what_is_explained() {
    let Some(folder) = captures() else { return };
    let truth = fs::read_to_string(folder.join("TRUTH.json")).expect("the truth");
    let truth: Value = serde_json::from_str(&truth).expect("JSON");
    let mut wrong = Vec::new();
    let mut compared = BTreeSet::new();
    for file in truth.as_array().expect("a list") {
        let name = file["file"].as_str().expect("a name");
        let reader = Reader::open(&folder.join(name), &Options::default()).expect("a capture");
        let run = of(reader, &Inspection::default(), &plan(2, 64));
        let mut found = Found::default();
        run.events().for_each(|event| found.event(&event));
        assert_eq!(
            found.counts.get("flows").copied().unwrap_or(0),
            run.findings.conversations.conversations,
            "{name}: each conversation has one event"
        );
        let counted = |field: &str| match field {
            "http_hosts" => found.hosts.len() as u64,
            "dns_qnames" => found.questions.len() as u64,
            "sni_distinct" => found.names.len() as u64,
            field => found.counts.get(field).copied().unwrap_or(0),
        };
        for field in [
            "http_requests",
            "http_responses",
            "http_hosts",
            "tls_client_hello",
            "tls_server_hello",
            "sni_distinct",
            "dns_queries",
            "dns_responses",
            "dns_qnames",
        ] {
            let theirs = file["tshark"][field].as_u64().unwrap_or(0);
            let known = DIFFERENT.iter().find(|known| known.0 == name && known.1 == field);
            compared.insert((name.to_owned(), field));
            let ours = counted(field);
            if (theirs, ours) != known.map_or((theirs, theirs), |known| (known.2, known.3)) {
                wrong.push(format!("{name} {field}: tshark {theirs}, ours {ours}"));
            }
        }
    }
    for (name, field, ..) in DIFFERENT {
        assert!(compared.contains(&((*name).to_owned(), *field)), "{name} {field} is explained but not compared");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_lost_response_costs_one_response() {
    let Some(folder) = captures() else { return };
    let file = folder.join("http-1000-requests-gap.pcap.gz");
    let reader = Reader::open(&file, &Options::default()).expect("a capture");
    let run = of(reader, &Inspection::default(), &plan(1, 64));
    let http: Vec<Value> = run.events().filter(|event| event["event_type"] == "http").collect();
    let has = |field: &str| http.iter().filter(|event| !event["http"][field].is_null()).count();
    assert_eq!((has("http_method"), has("status")), (1000, 999));
    let flow = run.events().find(|event| event["event_type"] == "flow").expect("a flow");
    assert_eq!((&flow["app_proto"], &flow["flow"]["tx_cnt"]), (&Value::from("http"), &Value::from(1000)));
    assert!(http.iter().all(|event| event["flow_id"] == flow["flow_id"]));
}

/// Each connection is one event. One has no answer, and one, of version 2, asks for no name.
#[test]
fn quic_is_one_event_a_connection() {
    let Some(folder) = captures().map(|folder| folder.join("wire")).filter(|folder| folder.join("TRUTH.json").exists())
    else {
        return;
    };
    let truth = fs::read_to_string(folder.join("TRUTH.json")).expect("the truth");
    let truth: Value = serde_json::from_str(&truth).expect("JSON");
    let mut files = 0;
    for file in truth.as_array().expect("a list") {
        let name = file["file"].as_str().expect("a name");
        if !name.starts_with("quic-") {
            continue;
        }
        files += 1;
        let reader = Reader::open(&folder.join(name), &Options::default()).expect("a capture");
        let run = of(reader, &Inspection::default(), &plan(2, 64));
        let mut found = Found::default();
        run.events().for_each(|event| found.event(&event));
        let answers = u64::from(name != "quic-multiple-initial-fragmented-crypto.pcap");
        let counts = ["quic", "quic_client_hello", "quic_server_hello", "flows"].map(|name| found.counts[name]);
        assert_eq!(counts, [1, 1, answers, 1], "{name}");
        assert_eq!(Value::from(found.quic_names), file["quic_sni"], "{name}");
        let event = run.events().find(|event| event["event_type"] == "quic").expect("an event");
        let version = if name == "quic-quicv2-http3-443.pcap" { "6b3343cf" } else { "1" };
        assert_eq!((&event["quic"]["version"], &event["proto"]), (&version.into(), &"UDP".into()), "{name}");
        assert_eq!(event["dest_port"], 443, "{name}: the client is the source");
        let seen = run.findings.seen;
        let [quic, tls] = ["quic", "tls"].map(|of| seen.by_type().find(|(name, _)| *name == of).unwrap().1);
        assert_eq!((quic, seen.quic_client_hellos, seen.quic_server_hellos, tls), (1, 1, answers, 0));
    }
    assert_eq!(files, 7);
}
