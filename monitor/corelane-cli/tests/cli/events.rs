//! The second analysis: events, and the table of protocols.

use crate::support::{Folder, corelane, finish, generated, gzip, monitor, run, run_with_stdin};
use corelane_net::protocol::fuzz::initial;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

/// The server's port, whether the client sends it, sequence number, acknowledgment, flags, payload.
type Segment<'a> = (u16, bool, u32, u32, u8, &'a [u8]);

/// A connection with one request and its response, version lines of SSH, and a DNS query without an answer. Link type
/// 101, raw IP.
fn conversations() -> Vec<u8> {
    let request = b"GET /x HTTP/1.1\r\nHost: example.com\r\n\r\n";
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let (asked, answered) = (1 + request.len() as u32, 501 + response.len() as u32);
    let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01";
    let (http, ssh) = (8080, 2222);
    let segments: [Segment; 8] = [
        (http, true, 0, 0, 0x02, b""),
        (http, false, 500, 1, 0x12, b""),
        (http, true, 1, 501, 0x18, request),
        (http, false, 501, asked, 0x18, response),
        (http, true, asked, answered, 0x11, b""),
        (http, false, answered, asked + 1, 0x11, b""),
        (ssh, true, 1, 1, 0x19, b"SSH-2.0-asks\r\n"),
        (ssh, false, 1, 15, 0x19, b"SSH-2.0-answers\r\n"),
    ];
    let mut packets = Vec::new();
    for (port, from_client, sequence, acknowledgment, flags, payload) in segments {
        let ports: (u16, u16) = if from_client { (40_000, port) } else { (port, 40_000) };
        let mut segment = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
        segment.extend(sequence.to_be_bytes());
        segment.extend(acknowledgment.to_be_bytes());
        segment.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
        segment.extend(payload);
        packets.push((from_client, 6, segment));
    }
    packets.push((true, 17, datagram(40_001, 53, query)));
    capture(packets)
}

fn datagram(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    [&source.to_be_bytes()[..], &destination.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload].concat()
}

/// Packets, one a second: whether from the client, the protocol, and what is behind the IP header.
fn capture(packets: Vec<(bool, u8, Vec<u8>)>) -> Vec<u8> {
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];
    let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    for (number, (from_client, protocol, transport)) in packets.into_iter().enumerate() {
        let (source, destination) = if from_client { (client, server) } else { (server, client) };
        let length = 20 + transport.len() as u16;
        capture.extend((1_700_000_000 + number as u32).to_le_bytes());
        capture.extend(0_u32.to_le_bytes());
        capture.extend([u32::from(length).to_le_bytes(); 2].concat());
        capture.extend([0x45, 0, (length >> 8) as u8, length as u8, 0, 0, 0, 0, 64, protocol, 0, 0]);
        capture.extend(source);
        capture.extend(destination);
        capture.extend(transport);
    }
    capture
}

fn file(folder: &Folder) -> PathBuf {
    folder.file("talk.pcap", conversations())
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The same, with an IPv4 header more in front of each packet.
fn tunnelled(capture: &[u8]) -> Vec<u8> {
    let (head, mut rest) = capture.split_at(24);
    let mut tunnelled = head.to_vec();
    while let Some((header, records)) = rest.split_at_checked(16).filter(|(header, _)| !header.is_empty()) {
        let length = u32::from_le_bytes(header[8..12].try_into().unwrap());
        let (packet, behind) = records.split_at(length as usize);
        tunnelled.extend(&header[..8]);
        tunnelled.extend([(length + 20).to_le_bytes(); 2].concat());
        let (from, to) = (packet[15], packet[19]);
        tunnelled.extend([0x45, 0, 0, length as u8 + 20, 0, 0, 0, 0, 64, 4, 0, 0, 192, 0, 2, from, 192, 0, 2, to]);
        tunnelled.extend(packet);
        rest = behind;
    }
    tunnelled
}

#[test]
fn tunnels_are_opened_for_events_unless_they_are_not_wanted() {
    let folder = Folder::new();
    let file = folder.file("tunnel.pcap", tunnelled(&conversations()));
    let of = |options: &[&str]| run(corelane(["monitor"]).args(options).arg(&file)).code(0).silent().stdout;
    let opened = events(&of(&["--eve", "-"]));
    let types: Vec<&str> = opened.iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    assert_eq!(types, ["http", "ssh", "dns", "flow", "flow", "flow", "stats"]);
    assert!(opened[..6].iter().all(|event| event["tunnel"]["src_ip"] == "192.0.2.1"));
    assert_eq!(opened[6]["stats"]["corelane"]["tunnels"]["opened"], 9);
    let closed = events(&of(&["--eve", "-", "--tunnels=off"]));
    assert_eq!(closed.len(), 1);
    assert!(closed[0]["stats"]["corelane"]["tunnels"].is_null());
    let report = |options: &[&str]| serde_json::from_str::<Value>(&of(options)).unwrap();
    let (outside, inside) = (report(&["--format", "json"]), report(&["--format", "json", "--tunnels"]));
    assert_eq!((&outside["flows"], outside.get("tunnels")), (&0.into(), None));
    assert_eq!((&inside["flows"], &inside["tunnels"]["opened"]), (&3.into(), &9.into()));
    assert!(of(&["--protocols"]).contains("tunnelled"));
}

#[test]
fn events_go_to_the_standard_output_instead_of_the_report() {
    let folder = Folder::new();
    let outcome = run(corelane(["monitor", "--eve", "-"]).arg(file(&folder))).code(0).silent();
    let events = events(&outcome.stdout);
    let types: Vec<&str> = events.iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    assert_eq!(types, ["http", "ssh", "dns", "flow", "flow", "flow", "stats"]);
    let http = &events[0];
    assert_eq!((&http["src_ip"], &http["dest_port"], &http["pcap_cnt"]), (&"10.0.0.1".into(), &8080.into(), &4.into()));
    assert_eq!((&http["http"]["hostname"], &http["http"]["status"]), (&"example.com".into(), &200.into()));
    assert_eq!(http["timestamp"], "2023-11-14T22:13:23.000000+0000");
    assert!(http["community_id"].as_str().unwrap().starts_with("1:"));
    assert_eq!(events[1]["ssh"]["server"]["software_version"], "answers");
    assert_eq!(events[2]["dns"]["queries"][0]["rrname"], "example.org");
    let flow = events.iter().find(|event| event["event_type"] == "flow" && event["dest_port"] == 8080).unwrap();
    assert_eq!(flow["flow_id"], http["flow_id"]);
    assert_eq!((&flow["app_proto"], &flow["flow"]["state"]), (&"http".into(), &"closed".into()));
    assert_eq!(flow["flow"]["pkts_toserver"], 3);
    let stats = &events[6]["stats"];
    assert_eq!((&stats["decoder"]["pkts"], &stats["flow"]["total"]), (&9.into(), &3.into()));
    assert_eq!((&stats["app_layer"]["tx"]["http"], &stats["app_layer"]["tx"]["ssh"]), (&1.into(), &1.into()));

    // Both reports in one place would be neither.
    let outcome = run(corelane(["monitor", "--format", "json", "--eve", "-"]).arg(file(&folder))).code(2);
    outcome.one_line(&["cannot both go to the standard output"]);
}

/// A ClientHello of QUIC, decrypted, in an event of its own type.
#[test]
fn quic_is_told_by_its_hello() {
    let content = [b"\x01\0\0\x29\x03\x03", &[7; 32][..], b"\0\0\x02\x13\x01\x01\0"].concat();
    let hello = [&[6, 0, content.len() as u8], &content[..], &[0; 1100]].concat();
    let packet = initial(1, b"original", true, [b"original", b""], b"", 0, &hello);
    let folder = Folder::new();
    let file = folder.file("quic.pcap", capture(vec![(true, 17, datagram(40_002, 443, &packet))]));
    let outcome = run(corelane(["monitor", "--eve", "-", "--eve-types", "quic,tls,flow,stats"]).arg(&file));
    let events = events(&outcome.code(0).silent().stdout);
    let types: Vec<&str> = events.iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    assert_eq!(types, ["quic", "flow", "stats"]);
    assert_eq!((&events[0]["quic"]["version"], &events[1]["app_proto"]), (&"1".into(), &"quic".into()));
    assert_eq!(events[0]["quic"]["ja4"], "q12i010000_0f2cb44170f4_000000000000");
    assert_eq!(events[2]["stats"]["app_layer"]["tx"]["quic"], 1);
    let outcome = run(corelane(["monitor", "--protocols"]).arg(&file)).code(0).silent();
    assert!(outcome.stdout.contains("1 ClientHello, 0 ServerHellos"), "{}", outcome.stdout);
}

#[test]
fn the_types_of_events_can_be_chosen() {
    let folder = Folder::new();
    for (types, expected) in
        [("http", vec!["http"]), ("dns,stats", vec!["dns", "stats"]), ("ssh", vec!["ssh"]), ("alert", vec![])]
    {
        let outcome =
            run(corelane(["monitor", "--eve", "-", "--eve-types", types]).arg(file(&folder))).code(0).silent();
        let found: Vec<Value> = events(&outcome.stdout).into_iter().map(|event| event["event_type"].clone()).collect();
        assert_eq!(found, expected);
    }
    for wrong in [&["--eve", "-", "--eve-types", "htp"][..], &["--eve-types", "http"]] {
        assert!(run(corelane(["monitor"]).args(wrong).arg(file(&folder))).code(2).stderr.contains("--eve"));
    }
}

#[test]
fn the_json_report_is_the_same_with_events_beside_it() {
    let folder = Folder::new();
    let trace = folder.file("trace.pcap", &generated(50_000).0);
    let alone = monitor(&[&trace], &[]).code(0).silent();
    let mut texts = Vec::new();
    for (analyzers, way) in [("0", None), ("1", None), ("3", None), ("2", Some("--mmap")), ("2", Some("--preload"))] {
        let eve = folder.path("eve.json");
        let options = ["--eve", eve.to_str().unwrap(), "--protocols", "--analyzers", analyzers];
        let options: Vec<_> = options.into_iter().chain(way).collect();
        assert_eq!(monitor(&[&trace], &options).code(0).silent().stdout, alone.stdout);
        texts.push(fs::read_to_string(&eve).unwrap());
    }
    assert!(texts.iter().all(|text| text.len() > 100_000 && *text == texts[0]));
    // As a file, so through a pipe, and unpacked on the way.
    let capture = fs::read(&trace).unwrap();
    for bytes in [gzip(&capture), capture] {
        let outcome = run_with_stdin(&mut corelane(["monitor", "--eve", "-", "-"]), &bytes).code(0).silent();
        assert!(outcome.stdout == texts[0]);
    }
}

#[test]
fn several_files_give_the_events_of_one() {
    let folder = Folder::new();
    let (capture, _) = generated(50_000);
    let length = |at: usize| u32::from_le_bytes(*capture[at + 8..].first_chunk().unwrap()) as usize;
    let middle = (0..20_000).fold(24, |at, _| at + 16 + length(at));
    let parts = [capture[..middle].to_vec(), [&capture[..24], &capture[middle..]].concat()];
    let whole = folder.file("whole.pcap", &capture);
    let [first, second] = [folder.file("first.pcap", &parts[0]), folder.file("second.pcap", &parts[1])];
    let expected = run(corelane(["monitor", "--eve", "-", "--analyzers", "0"]).arg(&whole)).code(0).silent().stdout;
    assert!(expected.len() > 100_000);
    for way in [&["--analyzers", "1"][..], &["--analyzers", "3"], &["--mmap"], &["--preload"]] {
        let outcome = run(corelane(["monitor", "--eve", "-"]).args(way).args([&first, &second])).code(0).silent();
        assert!(outcome.stdout == expected, "{way:?}");
    }
}

#[test]
fn the_summary_tells_the_protocols() {
    let folder = Folder::new();
    let outcome = run(corelane(["monitor", "--protocols"]).arg(file(&folder))).code(0).silent();
    for part in ["Protocols\n", "http ", "1 request, 1 response\n", "1 query, 0 responses\n", "1 handshake\n"] {
        assert!(outcome.stdout.contains(part), "{part} is not in {}", outcome.stdout);
    }
}

#[test]
fn protocols_that_nobody_would_see_are_refused() {
    let folder = Folder::new();
    let (file, eve) = (file(&folder), folder.path("eve.json"));
    let eve = eve.to_str().unwrap();
    for options in [&["--protocols"][..], &["--protocols", "--eve", eve, "--eve-types", "alert"]] {
        let outcome = monitor(&[&file], options).code(2).one_line(&["--protocols is shown in text only", "--eve"]);
        assert_eq!(outcome.stdout, "");
    }
    monitor(&[&file], &["--protocols", "--eve", eve]).code(0).silent();
}

#[test]
fn a_reader_of_events_may_go_away() {
    let folder = Folder::new();
    let trace = folder.file("trace.pcap", &generated(400_000).0);
    let mut child = corelane(["monitor", "--eve", "-"]).arg(&trace).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(serde_json::from_str::<Value>(&line).is_ok());
    finish(child).code(0).silent();
}

#[test]
fn damage_costs_what_is_damaged() {
    let folder = Folder::new();
    let mut bytes = conversations();
    bytes.truncate(bytes.len() - 5);
    let cut = folder.file("cut.pcap", &bytes);
    let outcome = run(corelane(["monitor", "--eve", "-"]).arg(&cut)).code(1);
    let found: Vec<Value> = events(&outcome.stdout).into_iter().map(|event| event["event_type"].clone()).collect();
    assert_eq!(found, ["http", "ssh", "flow", "flow", "stats"]);
}

#[test]
fn a_limit_of_memory_is_heard() {
    let folder = Folder::new();
    let file = file(&folder);
    for (options, least) in [(&["--protocols"][..], "at least 192M"), (&[], "at least 64M")] {
        let outcome = run(corelane(["monitor", "--memory-limit", "1M", "--analyzers", "1"]).args(options).arg(&file));
        outcome.code(2).one_line(&["--memory-limit: too little", least]);
    }
    let command = ["monitor", "--eve", "-", "--eve-types", "http,dns,flow"];
    let free = run(corelane(command).arg(&file)).code(0);
    let within = run(corelane(command).args(["--memory-limit", "256M"]).arg(&file)).code(0);
    assert_eq!(within.stdout, free.stdout);

    // More flows than the least limit has room for.
    let many = folder.path("many.pcap");
    run(corelane(["gen", "--packets", "200k"]).arg(&many)).code(0);
    let outcome = monitor(&[&many], &["--memory-limit", "64M"]).code(1);
    let outcome = outcome.one_line(&["--memory-limit: no room for ", " packets of flows, ", "may be incomplete"]);
    assert_eq!(outcome.packets(), 200_000);
}
