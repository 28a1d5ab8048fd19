//! Each protocol by its content, what is nearly one, and the bounds of looking.

use crate::support::{C, S, Step, data, identified, run};
use corelane_net::conversation::{Application, Side};
use corelane_net::protocol::{Carrier, Event, Protocol, Session};

/// What a stream of the originator alone is, with the evidence and the client.
fn stream(bytes: impl AsRef<[u8]>) -> Option<(Protocol, &'static str, Option<Side>)> {
    identified(Carrier::Stream, &[(C, data(bytes))]).map(|found| (found.protocol, found.evidence, found.client))
}

fn datagram(bytes: impl AsRef<[u8]>) -> Option<(Protocol, &'static str, Option<Side>)> {
    identified(Carrier::Datagrams, &[(C, data(bytes))]).map(|found| (found.protocol, found.evidence, found.client))
}

#[test]
fn streams_are_known_by_their_first_bytes() {
    use Protocol::*;
    #[rustfmt::skip]
    let table: &[(&[u8], Protocol, &str, Option<Side>)] = &[
        (b"GET / HTTP/1.1\r\n", Http1, "HTTP/1 request line", Some(C)),
        (b"\r\nX-OWN /a HTTP/1.0\n", Http1, "HTTP/1 request line", Some(C)),
        (b"HTTP/1.1 200 OK\r\n", Http1, "HTTP/1 status line", Some(S)),
        (b"HTTP/1.0 404\r\n", Http1, "HTTP/1 status line", Some(S)),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Http2, "HTTP/2 connection preface", Some(C)),
        (b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64", Http2, "HTTP/2 SETTINGS frame", Some(S)),
        (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", Tls, "TLS record, ClientHello", Some(C)),
        (b"\x16\x03\x03\0\x7a\x02\0\0\x76\x03\x03", Tls, "TLS record, ServerHello", Some(S)),
        (b"\x17\x03\x03\x01\0", Tls, "TLS record, application data", None),
        (b"\x14\x03\x03\0\x01\x01", Tls, "TLS record, ChangeCipherSpec", None),
        (b"\x80\x32\x01\x03\x03\0\x09\0\0\0\x20", Tls, "SSL 2 record, ClientHello", Some(C)),
        (b"\x15\x03\x01\0\x02\x02\x28", Tls, "TLS record, alert", None),
        (b"SSH-2.0-OpenSSH_9.6\r\n", Ssh, "SSH version banner", None),
        (b"\x13BitTorrent protocol", BitTorrent, "BitTorrent handshake", None),
        (b"\0\0\0\x90\xfeSMB", Smb, "SMB 2 header", None),
        (b"\0\0\0\x2f\xffSMBr", Smb, "SMB 1 header", None),
        (b"\0\0\0\x90\xfdSMB", Smb, "SMB 3 header, encrypted", None),
        (b"220 mail.example ESMTP\r\n", Smtp, "SMTP greeting", Some(S)),
        (b"220-Welcome to our FTP\r\n", Ftp, "FTP greeting", Some(S)),
        (b"EHLO there\r\n", Smtp, "SMTP command EHLO or HELO", Some(C)),
        (b"+OK ready\r\n", Pop3, "POP3 greeting", Some(S)),
        (b"* OK [CAPABILITY] ready\r\n", Imap, "IMAP greeting", Some(S)),
        (b"\xff\xfd\x18\xff\xfb\x20", Telnet, "Telnet option negotiation", None),
        (b"\0\x1d\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01", Dns, "DNS query behind its length", Some(C)),
        (b"\0\x03\0\x08\x21\x12\xa4\x42abcdefghijkl\0\x19\0\x04", Stun, "STUN request", Some(C)),
    ];
    for &(bytes, protocol, evidence, client) in table {
        assert_eq!(stream(bytes), Some((protocol, evidence, client)), "{}", bytes.escape_ascii());
        // A byte less is not enough for a verdict, and no wrong one either, where the whole is the shortest form.
        for length in 0..bytes.len() {
            let shorter = stream(&bytes[..length]);
            assert!(shorter.is_none_or(|found| found.0 == protocol), "{} {shorter:?}", bytes[..length].escape_ascii());
        }
    }
}

#[test]
fn what_is_nearly_a_protocol_is_none() {
    #[rustfmt::skip]
    let table: &[&[u8]] = &[
        b"PRI * HTTP/2.0\r\n", b"GET / RTSP/1.0\r\n", b"INVITE sip:a@b SIP/2.0\r\n", b"GET key\r\n",
        b"HTTP/1.1 abc\r\n", b"HTTP/1.1\r\n", b"RTSP/1.0 200 OK\r\n",
        b"\x16\x03\x05\0\x40\x01\0\0\x3c\x03\x03", b"\x16\x03\x01\0\x40\x63\0\0\x3c\x03\x03", b"\x16\x03\x01\0\x40\x01\0\0\x02\x03\x03",
        b"\x17\x03\0\x01\0\0", b"\x17\x03\x03\xff\xff", b"\x14\x03\x03\0\x02\x01\x01",
        b"\x80\x32\x01\x03\x03\0\x08\0\0\0\x21", b"\x80\x32\x02\x03\x03\0\x09\0\0\0\x20", b"\x80\x32\x01\x03\x03\0\x09\0\x01\0\x1f",
        b"SSH-9.9-x\r\n", b"\x13BitTorrent protokol", b"\0\0\0\x90\xfeSMX1234",
        b"230 ok\r\n", b"* BYE\r\n", b"+OKAY\r\n", b"\xff\xfd\x18abc", b"\xff\xff\xff\xff\xff\xff",
        b"\0\0\x05\x04\0\0\0\0\0\0\x03\0\0\0", b"\0\0\x06\x04\0\0\0\0\x01\0\x03\0\0\0\x64", b"\0\0\x06\x04\0\0\0\0\0\x77\x03\0\0\0\x64",
        b"\0\x1d\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x77",
        b"\0\x1d\x12\x34\x19\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01",
        b"hello, world\r\n", &[0; 64], &[0xff; 64],
    ];
    for bytes in table {
        assert_eq!(stream(bytes), None, "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_greeting_that_says_nothing_is_known_by_the_answer() {
    let greeted = |word: &str| identified(Carrier::Stream, &[(S, data("220 ready\r\n")), (C, data(word))]);
    let found = greeted("USER anonymous\r\n").unwrap();
    assert_eq!((found.protocol, found.client), (Protocol::Ftp, Some(C)));
    assert_eq!(greeted("EHLO a\r\n").unwrap().protocol, Protocol::Smtp);
    assert_eq!(greeted("mail from:<a@b>\r\n").unwrap().protocol, Protocol::Smtp);
    assert_eq!(greeted("something else\r\n"), None);
    // Without the greeting, by the answer to the word.
    let asked = |answer: &str| identified(Carrier::Stream, &[(C, data("USER joe\r\n")), (S, data(answer))]);
    assert_eq!(asked("331 password?\r\n").unwrap().protocol, Protocol::Ftp);
    assert_eq!(asked("+OK\r\n").unwrap().protocol, Protocol::Pop3);
    assert_eq!(asked("what?\r\n"), None);
}

#[test]
fn smb_behind_the_request_of_a_netbios_session() {
    let mut session = vec![0x81, 0, 0, 68];
    session.extend([b'A'; 68]);
    session.extend(b"\0\0\0\x2f\xffSMBr");
    assert_eq!(stream(session).unwrap().0, Protocol::Smb);
    assert_eq!(stream(b"\x82\0\0\0\0\0\0\x2f\xffSMBr").unwrap().0, Protocol::Smb);
}

fn quic(first: u8, version: u32, length: usize) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    packet.extend([8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0]);
    let rest = length - packet.len() - 2;
    packet.extend([0x40 | (rest >> 8) as u8, rest as u8]);
    packet.resize(length, 0xaa);
    packet
}

/// Bytes that look random, the same for each seed.
fn noise(seed: u64) -> impl Iterator<Item = u8> {
    let mut state = seed;
    std::iter::from_fn(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(((mixed ^ mixed >> 31) >> 24) as u8)
    })
}

fn wireguard(kind: u8, length: usize) -> Vec<u8> {
    let mut message: Vec<u8> = [kind, 0, 0, 0].into_iter().chain(noise(u64::from(kind))).take(length).collect();
    match kind {
        // No cookie is known.
        1 | 2 => message[length - 16..].fill(0),
        // The counter.
        4 => message[9..16].fill(0),
        _ => {}
    }
    message
}

/// An answer of a server of this stratum that sends these seconds; a refusal, if the stratum is zero.
fn ntp_server(stratum: u8, seconds: [u8; 4]) -> Vec<u8> {
    let mut ntp = vec![0; 48];
    ntp[..4].copy_from_slice(&[if stratum == 0 { 0xe4 } else { 0x24 }, stratum, 6, 0xe9]);
    ntp[5] = 1;
    ntp[12..16].copy_from_slice(b"RATE");
    ntp[40..44].copy_from_slice(&seconds);
    ntp
}

#[test]
fn datagrams_are_known_one_by_one() {
    use Protocol::*;
    let mut dhcp = vec![0; 244];
    dhcp[..4].copy_from_slice(&[1, 1, 6, 0]);
    dhcp[236..240].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
    let mut ntp = vec![0; 48];
    ntp[0] = 0x23;
    ntp[40] = 0xe9;
    let mut hidden = ntp.clone();
    hidden[3] = 32;
    let [served, refused] = [ntp_server(2, [0xe9, 1, 2, 3]), ntp_server(0, [3, 2, 1, 0])];
    let mut monlist = vec![0; 48];
    monlist[..4].copy_from_slice(&[0x17, 0, 3, 42]);
    let mut micro = vec![0; 20];
    micro[0] = 0x41;
    micro[3] = 77;
    micro[17] = 1;
    let netbios =
        [b"\x12\x34\x01\x10\0\x01\0\0\0\0\0\0\x20".to_vec(), vec![b'C'; 32], b"\0\0\x20\0\x01".to_vec()].concat();
    let [initiation, response] = [wireguard(1, 148), wireguard(2, 92)];
    let [cookie, keepalive] = [wireguard(3, 64), wireguard(4, 32)];
    #[rustfmt::skip]
    let table: &[(&[u8], Protocol, &str, Option<Side>)] = &[
        (b"\0\x01\0\0\x21\x12\xa4\x42abcdefghijkl", Stun, "STUN request", Some(C)),
        (b"\0\x11\0\0\x21\x12\xa4\x42abcdefghijkl", Stun, "STUN indication", None),
        (b"\x01\x01\0\x0c\x21\x12\xa4\x42abcdefghijkl\0\x20\0\x05\0\x01abc\0\0\0", Stun, "STUN success response", Some(S)),
        (b"\x01\x11\0\0\x21\x12\xa4\x42abcdefghijkl", Stun, "STUN error response", Some(S)),
        (&initiation, Wireguard, "WireGuard handshake initiation", Some(C)),
        (&response, Wireguard, "WireGuard handshake response", Some(S)),
        (&cookie, Wireguard, "WireGuard cookie reply", None),
        (&keepalive, Wireguard, "WireGuard transport data", None),
        (&dhcp, Dhcp, "DHCP request with its cookie", Some(C)),
        (&ntp, Ntp, "NTP client mode", Some(C)),
        (&hidden, Ntp, "NTP client mode", Some(C)),
        (&served, Ntp, "NTP server mode", Some(S)),
        (&refused, Ntp, "NTP server mode", Some(S)),
        (b"\x97\0\x03\x2a\x40\0\0\0", Ntp, "NTP private mode, response", Some(S)),
        // A scanner's request for the list of clients, as masscan sends it, and the first bytes of an answer.
        (&monlist, Ntp, "NTP private mode, request", Some(C)),
        (b"\xd7\0\x03\x2a\0\x02\0\x08aaaaaaaabbbbbbbb", Ntp, "NTP private mode, response", Some(S)),
        (b"\x16\x02\0\x01\0\0\0\0\0\0\0\0", Ntp, "NTP control mode, query", Some(C)),
        (b"\x16\x82\0\x01\x06\x15\0\0\0\0\0\x05a=\"b\"\0\0\0", Ntp, "NTP control mode, response", Some(S)),
        (&quic(0xc3, 1, 1200), Quic, "QUIC Initial packet", None),
        (&quic(0xd3, 0x6b33_43cf, 1200), Quic, "QUIC Initial packet", None),
        (&quic(0xc3, 0xff00_001d, 1200), Quic, "QUIC Initial packet", None),
        (b"\xf0\0\0\0\x01\0\x01yaaaaaaaaaaaaaaaaa", Quic, "QUIC Retry packet", Some(S)),
        (b"\xc0\x6b\x33\x43\xcf\0\x01yaaaaaaaaaaaaaaaaa", Quic, "QUIC Retry packet", Some(S)),
        (b"\xc0\0\0\0\x01\0\x01y\0\x11aaaaaaaaaaaaaaaaa", Quic, "QUIC Initial packet, short", None),
        (b"\xe0\0\0\0\x01\0\x01y\x11aaaaaaaaaaaaaaaaa", Quic, "QUIC long header", None),
        (b"\xf0\x6b\x33\x43\xcf\0\x01y\x11aaaaaaaaaaaaaaaaa", Quic, "QUIC long header", None),
        (b"\x80\0\0\0\0\x01x\x01y\0\0\0\x01", Quic, "QUIC version negotiation", Some(S)),
        (b"d1:ad2:id20:aaaaaaaaaaaaaaaaaaaae1:q4:ping1:t2:aa1:y1:qe", BitTorrent, "BitTorrent table, query", Some(C)),
        (b"d1:rd2:id20:aaaaaaaaaaaaaaaaaaaae1:t2:aa1:y1:re", BitTorrent, "BitTorrent table, response", Some(S)),
        (&micro, BitTorrent, "µTP packet SYN", Some(C)),
        (&netbios, NetbiosNames, "NetBIOS name query", Some(C)),
        (b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01", Dns, "DNS query", Some(C)),
        (b"\x12\x34\x81\x80\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01", Dns, "DNS response", Some(S)),
        (b"\x12\x34\x10\0\0\0\0\0\0\0\0\0", Dns, "DNS query", Some(C)),
        // Its pointer leads forward, to a byte that happens to be a root.
        (b"\x0a\xb1\x01 \0\x01\0\0\0\0\0\0\x07version\x04bind\xc0\x1b\0\x10\0\x03", Dns, "DNS query", Some(C)),
        (b"\x14\xfe\xfd\0\0\0\0\0\0\0\x04\0\x01\x01", Dtls, "DTLS record, ChangeCipherSpec", None),
        (b"\x15\xfe\xff\0\0\0\0\0\0\0\x04\0\x02\x02\x28", Dtls, "DTLS record, alert", None),
        (b"\x17\xfe\xfd\0\x01\0\0\0\0\0\x04\0\x11aaaaaaaaaaaaaaaaa", Dtls, "DTLS record, application data", None),
        // Multicast DNS: no host asked.
        (b"\0\0\x84\0\0\0\0\x01\0\0\0\0\x01a\x05local\0\0\x01\x80\x01\0\0\0\x78\0\x04\x0a\0\0\x01", Dns, "DNS response", Some(S)),
    ];
    for &(bytes, protocol, evidence, client) in table {
        assert_eq!(datagram(bytes), Some((protocol, evidence, client)), "{}", bytes.escape_ascii());
        for length in 0..bytes.len() {
            assert!(
                datagram(&bytes[..length]).is_none_or(|found| found.0 == protocol),
                "{length} of {}",
                bytes.escape_ascii()
            );
        }
    }
}

#[test]
fn datagrams_that_are_nearly_a_protocol_are_none() {
    let mut ntp = vec![0; 48];
    ntp[0] = 0x23;
    assert_eq!(datagram(&ntp), None, "nothing was transmitted");
    ntp[40] = 1;
    ntp[1] = 17;
    assert_eq!(datagram(&ntp), None, "no stratum");
    let ntp = |at: usize, byte: u8, why: &str| {
        let mut ntp = ntp_server(2, [0xe9, 1, 2, 3]);
        ntp[at] = byte;
        assert_eq!(datagram(ntp), None, "{why}");
    };
    ntp(1, 0, "a server without a stratum");
    ntp(3, 32, "a server that hides its precision");
    ntp(5, 16, "a long delay");
    ntp(8, 1, "a long dispersion");
    ntp(40, 0x80, "the year 1968");
    assert_eq!(datagram(b"\x17\0\x03\x2e\0\0\0\0"), None, "no request");
    assert_eq!(datagram(b"\x17\0\0\x2a\0\0\0\0"), None, "no implementation");
    assert_eq!(datagram(b"\x17\0\x03\x2a\0\0\0\0aaaa"), None, "a length that is not in use");
    assert_eq!(datagram(b"\x97\0\x03\x2a\0\0\0\0"), None, "a response without items and without an error");
    assert_eq!(datagram(b"\x16\x02\0\0\0\0\0\0\0\0\0\0"), None, "no number");
    assert_eq!(datagram(b"\x17\0\x03\x2a\0\x02\0\x08aaaa"), None, "items that do not fit");
    assert_eq!(datagram(b"\x16\x02\0\x01\0\0\0\0\0\0\0\x08aaaa"), None, "bytes that are not there");
    assert_eq!(datagram(b"\x16\x0d\0\x01\0\0\0\0\0\0\0\0"), None, "no operation");
    let stun = b"\x01\x01\0\x08\x21\x12\xa4\x42abcdefghijkl\0\x20\0\x04abcd";
    assert!(datagram(stun).is_some());
    for (at, byte, why) in
        [(0, 0x81, "the first bits"), (7, 0x43, "the cookie"), (3, 7, "words"), (23, 5, "an attribute")]
    {
        let mut wrong = stun.to_vec();
        wrong[at] = byte;
        assert_eq!((datagram(&wrong), stream(&wrong)), (None, None), "{why}");
    }
    assert_eq!(datagram([&stun[..], &[0; 4]].concat()), None, "longer than it says");
    for (kind, length) in [(1, 149), (2, 91), (3, 80), (4, 16), (4, 40), (5, 64)] {
        assert_eq!(datagram(&wireguard(kind, length.max(32))[..length]), None, "{kind} of {length}");
    }
    for (kind, length) in [(1, 148), (2, 92), (3, 64), (4, 32), (4, 1024)] {
        assert_eq!(datagram([vec![kind, 0, 0, 0, 9], vec![0; length - 5]].concat()), None, "{kind} of zeros");
        let text = "The quick brown fox jumps over the lazy dog. ".repeat(30);
        let text = [&wireguard(kind, length)[..16], &text.as_bytes()[..length - 16]].concat();
        assert_eq!(datagram(text), None, "{kind} of text");
        let parts: &[usize] = match kind {
            1 => &[8, 24, 40, 88, 116],
            2 => &[16, 28, 44, 60],
            3 => &[8, 32],
            _ => &[16, length - 16],
        };
        for &part in parts {
            let mut message = wireguard(kind, length);
            assert!(datagram(&message).is_some(), "{kind}");
            message[part..part + 16].fill(0);
            assert_eq!(datagram(message), None, "{kind} with zeros at {part}");
        }
    }
    let mut message = wireguard(4, 64);
    message[4..8].fill(0);
    assert_eq!(datagram(&message), None, "for no receiver");
    message[4..8].fill(9);
    message[12] = 1;
    assert_eq!(datagram(&message), None, "a counter that is too high");
    let mut dhcp = vec![0; 244];
    dhcp[..4].copy_from_slice(&[3, 1, 6, 0]);
    dhcp[236..240].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
    assert_eq!(datagram(&dhcp), None, "neither request nor reply");
    assert_eq!(datagram(quic(0xc3, 0x0a0a_0a0a, 1200)), None, "a version that is not in use");
    assert_eq!(datagram(&quic(0xc3, 1, 1200)[..1199]), None, "longer than it is");
    assert_eq!(datagram(quic(0x83, 1, 1200)), None, "the fixed bit");
    assert_eq!(datagram(b"d1:ad2:id20:aaaaaaaaaaaaaaaaaaaae1:q4:ping1:t2:aa1:y1:q"), None, "not closed");
}

/// QUIC's short headers look like this, and anything that is encrypted.
#[test]
fn random_datagrams_are_nothing() {
    let mut bytes = noise(7);
    let mut counts = std::collections::BTreeMap::<_, u32>::new();
    for round in 0..200_000 {
        let length = 48 + 4 * (round % 65);
        let mut message: Vec<u8> = bytes.by_ref().take(length).collect();
        message[0] = 0x40 | message[0] & 0x3f;
        let mut session = Session::new(Carrier::Datagrams);
        session.data(C, 0, &message, &mut Vec::new());
        if let Some(protocol) = session.protocol() {
            *counts.entry(protocol.name()).or_default() += 1;
        }
    }
    assert_eq!(counts, Default::default());
}

#[test]
fn a_few_datagrams_are_looked_at_and_no_more() {
    let query = data(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01");
    let after = |others: usize| {
        let mut steps = vec![(C, data("?")); others];
        steps.push((C, query.clone()));
        identified(Carrier::Datagrams, &steps)
    };
    assert_eq!(after(3).unwrap().protocol, Protocol::Dns);
    assert_eq!(after(4), None);
}

#[test]
fn a_datagram_that_is_read_replaces_what_is_not() {
    let stun = data(b"\0\x01\0\0\x21\x12\xa4\x42abcdefghijkl");
    let query = data(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01");
    let names = |steps: &[(Side, Step)]| {
        let name = |event: &Event| match event {
            Event::Identified(found) => found.protocol.name(),
            Event::Dns(_) => "message",
            _ => "other",
        };
        run(Carrier::Datagrams, steps).iter().map(name).collect::<Vec<_>>()
    };
    let initial = data(quic(0xc3, 1, 1200));
    assert_eq!(names(&[(C, stun.clone()), (S, initial.clone())]), ["stun", "quic"]);
    assert_eq!(names(&[(C, data("?")), (C, stun.clone()), (C, query.clone())]), ["stun", "dns", "message"]);
    assert_eq!(names(&[(C, stun.clone()), (C, data(ntp_server(2, [0xe9; 4])))]), ["stun"], "neither is read");
    let netbios =
        [b"\x12\x34\x01\x10\0\x01\0\0\0\0\0\0\x20".to_vec(), vec![b'C'; 32], b"\0\0\x20\0\x01".to_vec()].concat();
    assert_eq!(names(&[(C, data(netbios)), (C, query.clone())]), ["netbios-ns"], "it may be damaged");
    // As many datagrams are judged as of a conversation that is not known, and more of STUN.
    let after = |first: &Step, others: usize, side| {
        names(&[vec![(C, first.clone()); others], vec![(side, query.clone())]].concat()).len()
    };
    let ntp = data(ntp_server(2, [0xe9; 4]));
    assert_eq!((after(&ntp, 3, C), after(&ntp, 4, C), after(&ntp, 4, S)), (3, 1, 3));
    assert_eq!((after(&stun, 15, C), after(&stun, 16, C), after(&stun, 16, S)), (3, 1, 3));

    let mut session = Session::new(Carrier::Datagrams);
    for side in [C, S] {
        for _ in 0..16 {
            assert!(session.wants(side));
            session.data(side, 0, b"\0\x01\0\0\x21\x12\xa4\x42abcdefghijkl", &mut Vec::new());
            assert_eq!(session.heap_bytes(), 0);
        }
        assert_eq!((session.wants(C), session.wants(S)), (false, side == C));
    }
}

#[test]
fn a_long_request_line_is_known_by_its_first_part() {
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(9000));
    let found = identified(Carrier::Stream, &[(C, data(&long))]).unwrap();
    assert_eq!(found.evidence, "HTTP/1 request line, its first 4 KiB");
    assert_eq!(crate::support::shorts(&[(C, data(&long))]).len(), 1);
}

#[test]
fn a_side_that_is_nothing_does_not_hide_what_the_other_is() {
    let steps = [(C, data([0x99; 6000])), (S, data("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))];
    assert_eq!(identified(Carrier::Stream, &steps).unwrap().protocol, Protocol::Http1);
}

#[test]
fn a_gap_is_a_new_start() {
    let steps = [(C, data("nothing that is known")), (C, Step::Gap(10)), (C, data("GET / HTTP/1.1\r\n\r\n"))];
    assert_eq!(crate::support::shorts(&steps), ["GET / 0 > -"]);
}

#[test]
fn what_is_hopeless_wants_no_more() {
    let mut session = Session::new(Carrier::Stream);
    let mut events = Vec::new();
    assert!(session.wants(C) && session.wants(S));
    session.data(C, 0, &[0x99; 100], &mut events);
    assert!(session.wants(C) && session.wants(S), "the other side may still tell");
    session.data(S, 0, &[0x99; 100], &mut events);
    assert!(!session.wants(C) && !session.wants(S) && session.heap_bytes() == 0);

    let mut alone = Session::new(Carrier::Stream);
    alone.data(C, 0, &[0x99; 70_000], &mut events);
    assert!(!alone.wants(C), "the other side says nothing");

    let mut known = Session::new(Carrier::Stream);
    known.data(C, 0, b"\x13BitTorrent protocol", &mut events);
    assert!(!known.wants(C) && !known.wants(S));
}

#[test]
fn evidence_can_be_printed() {
    let events = run(Carrier::Stream, &[(C, data("SSH-2.0-x\r\n"))]);
    let corelane_net::protocol::Event::Identified(found) = &events[0] else { panic!() };
    assert_eq!(found.to_string(), "ssh (SSH version banner)");
}
