//! Events of hand-made packets: of SSH, which also captures give, of TLS behind STARTTLS, and flows.

use crate::captures_folder::captures;
use crate::support::{of, of_bytes, plan};
use corelane_monitor::Inspection;
use corelane_net::capture::{Options, Reader};
use serde_json::{Value, json};

/// A TCP connection from 10.0.0.1 to 10.0.0.2 as raw IP; each piece is a segment of the client (true) or the server.
fn connection(port: u16, pieces: &[(bool, &[u8])]) -> Vec<u8> {
    connection_at(port, pieces, |number| 1_700_000_000 + number)
}

/// The same with the second of each packet.
fn connection_at(port: u16, pieces: &[(bool, &[u8])], second: impl Fn(u32) -> u32) -> Vec<u8> {
    let opening: [(bool, u8, &[u8]); 3] = [(true, 0x02, b""), (false, 0x12, b""), (true, 0x10, b"")];
    let talk = pieces.iter().map(|&(from_client, bytes)| (from_client, 0x18, bytes));
    let closing: [(bool, u8, &[u8]); 2] = [(true, 0x11, b""), (false, 0x11, b"")];
    segments(port, opening.into_iter().chain(talk).chain(closing), second)
}

/// Segments with their flags, each with the number behind those before.
fn segments<'a>(
    port: u16,
    segments: impl IntoIterator<Item = (bool, u8, &'a [u8])>,
    second: impl Fn(u32) -> u32,
) -> Vec<u8> {
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0];
    let mut next = [100_u32, 500];
    for (number, (from_client, flags, bytes)) in segments.into_iter().enumerate() {
        let (from, to) = if from_client { (0, 1) } else { (1, 0) };
        let mut segment = [[40_000, port][from].to_be_bytes(), [40_000, port][to].to_be_bytes()].concat();
        segment.extend(next[from].to_be_bytes());
        segment.extend(next[to].to_be_bytes());
        segment.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
        segment.extend(bytes);
        next[from] += bytes.len() as u32 + u32::from(flags & 3 != 0);
        let length = 20 + segment.len() as u16;
        capture.extend(second(number as u32).to_le_bytes());
        capture.extend(0_u32.to_le_bytes());
        capture.extend([u32::from(length).to_le_bytes(); 2].concat());
        capture.extend([0x45, 0, (length >> 8) as u8, length as u8, 0, 0, 0, 0, 64, 6, 0, 0]);
        capture.extend([10, 0, 0, 1 + from as u8, 10, 0, 0, 1 + to as u8]);
        capture.extend(segment);
    }
    capture
}

fn events(capture: &[u8]) -> Vec<Value> {
    of_bytes(capture, &Inspection::default(), &plan(1, 64)).events().collect()
}

/// A record with a ClientHello of one cipher suite and no extensions.
fn client_hello() -> Vec<u8> {
    let content = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
    let message = [&[1, 0, 0, content.len() as u8][..], &content].concat();
    [&[22, 3, 1, 0, message.len() as u8][..], &message].concat()
}

/// A record with a ServerHello that takes it.
fn server_hello() -> Vec<u8> {
    let content = [&[3, 3][..], &[8; 32], &[0, 0x13, 1, 0]].concat();
    let message = [&[2, 0, 0, content.len() as u8][..], &content].concat();
    [&[22, 3, 3, 0, message.len() as u8][..], &message].concat()
}

#[test]
fn a_connection_of_ssh_has_one_event() {
    let pieces: [(bool, &[u8]); 2] = [(false, b"Hello\r\nSSH-2.0-server\r\n"), (true, b"SSH-2.0-client note\r\n")];
    let found = events(&connection(2222, &pieces));
    let [ssh, flow] = &found[..] else { panic!("{found:?}") };
    assert_eq!(ssh["event_type"], "ssh");
    let side = |name: &str| json!({ "proto_version": "2.0", "software_version": name });
    assert_eq!(ssh["ssh"], json!({ "client": side("client"), "server": side("server") }));
    assert_eq!((&ssh["src_port"], &ssh["pcap_cnt"]), (&json!(40_000), &json!(7)), "the end of the last side made it");
    assert_eq!(ssh["timestamp"], "2023-11-14T22:13:24.000000+0000", "the last that was told");
    assert_eq!((&flow["app_proto"], &flow["flow"]["tx_cnt"]), (&json!("ssh"), &json!(1)));
    assert_eq!(flow.get("app_proto_orig"), None);
}

#[test]
fn attempts_that_led_to_nothing_are_flows_unless_they_are_not_wanted() {
    let capture = |answer: Option<u8>| {
        let answer = answer.map(|flags| (false, flags, &b""[..]));
        segments(80, [(true, 2, &b""[..])].into_iter().chain(answer), |number| 1_700_000_000 + number)
    };
    for (answer, state, tcp_state, word, reason, packets) in [
        (None, "new", "syn_sent", json!("S0"), "timeout", 0),
        (Some(0x14), "closed", "closed", json!("REJ"), "timeout", 1),
        (Some(0x12), "new", "syn_recv", json!(null), "shutdown", 1),
    ] {
        let capture = capture(answer);
        let found = events(&capture);
        let [flow] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&flow["src_ip"], &flow["dest_port"]), (&json!("10.0.0.1"), &json!(80)));
        assert_eq!((&flow["flow"]["state"], &flow["flow"]["reason"]), (&json!(state), &json!(reason)));
        assert_eq!((&flow["tcp"]["state"], &flow["tcp"]["conn_state"]), (&json!(tcp_state), &word));
        assert_eq!((&flow["flow"]["pkts_toclient"], flow.get("app_proto")), (&json!(packets), None));
        let inspection = Inspection { attempts: false, ..Inspection::default() };
        let run = of_bytes(&capture, &inspection, &plan(1, 64));
        assert_eq!(run.events().count(), usize::from(word.is_null()));
    }
}

/// An announcement of multicast DNS is a response without a question.
#[test]
fn a_group_of_hosts_is_no_client() {
    let mut capture = connection(80, &[])[..24].to_vec();
    let response = b"\0\0\x84\0\0\0\0\x01\0\0\0\0\x01a\x05local\0\0\x01\x80\x01\0\0\0\x78\0\x04\x0a\0\0\x01";
    let length = 28 + response.len() as u8;
    capture.extend([0; 8].into_iter().chain([length, 0, 0, 0, length, 0, 0, 0]));
    capture.extend([0x45, 0, 0, length, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 224, 0, 0, 251]);
    capture.extend([0x14, 0xe9, 0x14, 0xe9, 0, length - 20, 0, 0]);
    capture.extend(response);
    let found = events(&capture);
    let [dns, flow] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&dns["event_type"], &flow["app_proto"]), (&json!("dns"), &json!("dns")));
    assert_eq!((&flow["src_ip"], &flow["flow"]["pkts_toserver"]), (&json!("10.0.0.1"), &json!(1)));
}

#[test]
fn a_flow_that_changes_to_tls_says_what_it_was() {
    let hello = client_hello();
    let pieces: [(bool, &[u8]); 6] = [
        (false, b"220 mail.example ESMTP\r\n"),
        (true, b"EHLO a\r\n"),
        (false, b"250-mail.example\r\n250 STARTTLS\r\n"),
        (true, b"STARTTLS\r\n"),
        (false, b"220 go\r\n"),
        (true, &hello),
    ];
    let found = events(&connection(25, &pieces));
    let [tls, flow] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&tls["event_type"], &tls["tls"]["client_handshake"]["ciphers"]), (&json!("tls"), &json!([0x1301])));
    assert_eq!((&flow["app_proto"], &flow["app_proto_orig"]), (&json!("tls"), &json!("smtp")));
    assert_eq!(tls["flow_id"], flow["flow_id"]);
}

#[test]
fn the_protocol_before_is_that_of_the_last_change() {
    let hello = client_hello();
    let pieces: [(bool, &[u8]); 6] = [
        (true, b"CONNECT mail.example:25 HTTP/1.1\r\nHost: mail.example\r\n\r\n"),
        (false, b"HTTP/1.1 200 OK\r\n\r\n"),
        (false, b"220 mail.example ESMTP\r\n250 STARTTLS\r\n"),
        (true, b"EHLO a\r\nSTARTTLS\r\n"),
        (false, b"220 go\r\n"),
        (true, &hello),
    ];
    let found = events(&connection(3128, &pieces));
    let flow = found.last().expect("a flow");
    assert_eq!((&flow["app_proto"], &flow["app_proto_orig"]), (&json!("tls"), &json!("smtp")));
}

#[test]
fn the_end_that_sends_a_client_hello_is_the_client() {
    let (hello, answer) = (client_hello(), server_hello());
    // The end that was connected to asks for TLS, behind a record that does not tell who is who.
    let pieces: [(bool, &[u8]); 3] = [(false, &[21, 3, 3, 0, 2, 1, 0]), (false, &hello), (true, &answer)];
    let found = events(&connection(990, &pieces));
    let [tls, flow] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&tls["src_port"], &flow["src_port"]), (&json!(990), &json!(990)));
}

#[test]
fn an_answer_that_was_recorded_first_waits_for_its_question() {
    let (hello, answer) = (client_hello(), server_hello());
    let data: &[u8] = &[23, 3, 3, 0, 1, 7];
    let of = |pieces: &[(bool, &[u8])]| {
        let found = events(&connection(443, pieces));
        let tls = found.iter().filter(|event| event["event_type"] == "tls");
        let halves = |event: &Value| {
            let side = |name: &str| event["tls"].get(name).is_some();
            (side("client_handshake"), side("server_handshake"), event["pcap_cnt"].as_u64())
        };
        (tls.map(halves).collect::<Vec<_>>(), found.last().expect("a flow")["flow"]["tx_cnt"].as_u64())
    };
    assert_eq!(of(&[(false, &answer), (true, &hello)]), (vec![(true, true, Some(5))], Some(1)));
    // The server goes on with what it encrypts.
    let flight = [&answer[..], data].concat();
    assert_eq!(of(&[(false, &flight), (false, data), (true, &hello)]), (vec![(true, true, Some(6))], Some(1)));
    // The client's was not captured: its first record, or the end, shows it.
    assert_eq!(of(&[(false, &answer), (true, data)]), (vec![(false, true, Some(4))], Some(1)));
    assert_eq!(of(&[(false, &answer)]), (vec![(false, true, Some(4))], Some(1)));
    // Two answers, and a question that has one already.
    let twice = of(&[(false, &answer), (false, &answer), (true, &hello), (true, &hello)]);
    assert_eq!(twice.0, [(false, true, Some(4)), (true, true, Some(6)), (true, false, Some(7))]);
}

#[test]
fn hellos_of_dtls_have_an_event_of_tls() {
    let mut capture = connection(443, &[])[..24].to_vec();
    let hello = [&[0xfe, 0xfd][..], &[7; 32], &[0, 0, 0, 2, 0xc0, 0x2b, 1, 0]].concat();
    let answer = [&[0xfe, 0xfd][..], &[8; 32], &[0, 0xc0, 0x2b, 0]].concat();
    for (from, kind, content) in [(1, 1, &hello), (2, 2, &answer)] {
        let length = content.len() as u8;
        let message = [&[kind, 0, 0, length, 0, 0, 0, 0, 0, 0, 0, length][..], content].concat();
        let record = [&[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, length + 12][..], &message].concat();
        let ports = if from == 1 { [156, 64, 1, 187] } else { [1, 187, 156, 64] };
        let size = record.len() as u8;
        let addresses = [10, 0, 0, from, 10, 0, 0, 3 - from];
        let head = [&[0x45, 0, 0, size + 28, 0, 0, 0, 0, 64, 17, 0, 0][..], &addresses, &ports].concat();
        let frame = [&head[..], &[0, size + 8, 0, 0], &record].concat();
        capture.extend([1_700_000_000_u32.to_le_bytes(), [0; 4]].concat());
        capture.extend([(frame.len() as u32).to_le_bytes(); 2].concat());
        capture.extend(frame);
    }
    let found = events(&capture);
    let [tls, flow] = &found[..] else { panic!("{found:?}") };
    let of = (&tls["event_type"], &tls["proto"], &tls["tls"]["version"], &tls["tls"]["server_handshake"]["cipher"]);
    assert_eq!(of, (&json!("tls"), &json!("UDP"), &json!("DTLS 1.2"), &json!(0xc02b)));
    assert_eq!((&flow["app_proto"], &flow["flow"]["tx_cnt"]), (&json!("dtls"), &json!(1)));
}

#[test]
fn the_later_hello_gives_the_time() {
    let (hello, answer) = (client_hello(), server_hello());
    let pieces: [(bool, &[u8]); 2] = [(true, &hello), (false, &answer)];
    for (step, time) in [(1_i64, "2023-11-14T22:13:24.000000+0000"), (-1, "2023-11-14T22:13:17.000000+0000")] {
        let capture = connection_at(443, &pieces, |number| (1_700_000_000 + step * i64::from(number)) as u32);
        let found = events(&capture);
        let tls: Vec<&Value> = found.iter().filter(|event| event["event_type"] == "tls").collect();
        let [tls] = &tls[..] else { panic!("{found:?}") };
        assert_eq!(tls["timestamp"], time, "{tls}");
    }
}

/// Each has one connection: the client's port and software, the server's software, and their HASSH as
/// `protocol/captures.rs` of `corelane-net` has them.
#[test]
fn captures_of_ssh_give_both_sides() {
    let Some(folder) = captures().map(|folder| folder.join("wire")).filter(|wire| wire.is_dir()) else { return };
    for (name, port, client, server) in [
        ("ssh-on-port-80.pcap", 49_656, ["OpenSSH_5.2", "21b45"], ["OpenSSH_5.8p1", "60205"]),
        // The server opened it.
        ("ssh-reverse-ssh.pcap", 22, ["AsyncSSH_2.8.1", "18f36"], ["dropbear_2018.76", "413e6"]),
        ("ssh-server-pre-banner-data.pcap", 55_343, ["OpenSSH_9.7", "7994d"], ["OpenSSH_9.2p1", "425d2"]),
        ("ssh-single-conn.pcap", 49_244, ["OpenSSH_3.8.1p1", "c4fd9"], ["OpenSSH_3.9p1", "f430c"]),
        ("ssh-version_199.pcap", 59_139, ["Cisco-1.25", "3cc67"], ["Cisco-1.25", "3cc67"]),
    ] {
        let reader = Reader::open(&folder.join(name), &Options::default()).expect("a capture");
        let run = of(reader, &Inspection::default(), &plan(2, 64));
        let found: Vec<Value> = run.events().collect();
        let [ssh, flow] = &found[..] else { panic!("{name}: {found:?}") };
        for (side, [software, hash]) in [("client", client), ("server", server)] {
            let side = &ssh["ssh"][side];
            assert_eq!(side["software_version"], software, "{name}");
            assert!(side["hassh"]["hash"].as_str().is_some_and(|whole| whole.starts_with(hash)), "{name}");
            assert!(side["hassh"]["string"].as_str().is_some_and(|text| text.matches(';').count() == 3), "{name}");
        }
        assert_eq!((&ssh["src_port"], &flow["src_port"]), (&json!(port), &json!(port)), "{name}");
        assert!(run.findings.seen.by_type().any(|of| of == ("ssh", 1)) && ssh["pcap_cnt"].is_u64(), "{name}");
    }
}
