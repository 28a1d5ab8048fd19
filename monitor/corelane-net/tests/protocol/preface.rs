//! Prefaces: what follows them is identified anew, and what is none stays what it is.

use crate::starttls::names;
use crate::support::{C, S, Step, data, identified, run};
use crate::tls::{client_hello, server_hello_record};
use corelane_net::conversation::Side;
use corelane_net::protocol::fuzz::parsers;
use corelane_net::protocol::{Carrier, Event, Protocol};

const ASKS_TLS: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";
const ASKS_GSS: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x30";
const LDAP_ASKS: &[u8] = b"0\x1d\x02\x01\x07w\x18\x80\x161.3.6.1.4.1.1466.20037";
const LDAP_SEARCH: &[u8] =
    b"0\x25\x02\x01\x02c\x20\x04\0\x0a\x01\0\x0a\x01\0\x02\x01\0\x02\x01\0\x01\x01\0\x87\x0bobjectClass0\0";
const RDP_ASKS: &[u8] = b"\x03\0\0\x2a\x25\xe0\0\0\0\0\0Cookie: mstshash=user\r\n\x01\0\x08\0\x03\0\0\0";
const STREAM: &[u8] = b"<?xml version='1.0'?>\n<stream:stream to='a' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";

fn rdp_agrees(chosen: u8) -> Vec<u8> {
    [b"\x03\0\0\x13\x0e\xd0\0\0\x12\x34\0\x02\x09\x08\0".as_slice(), &[chosen, 0, 0, 0]].concat()
}

fn ldap_answers(id: u8, code: u8) -> Vec<u8> {
    // In the long form, as some servers write lengths.
    let head = [0x30, 0x84, 0, 0, 0, 0x10, 2, 1, id, 0x78, 0x84, 0, 0, 0, 7, 10, 1, code];
    [&head[..], b"\x04\0\x04\0"].concat()
}

fn mysql_greeting(capabilities: u16) -> Vec<u8> {
    let [low, high] = capabilities.to_le_bytes();
    let rest = [&[low, high, 0x21, 2, 0, 0xff, 0xc1, 0x15][..], &[0; 10], b"cccccccccccc\0mysql_native_password\0"];
    let message = [&b"\x0a8.0.36\0\x09\0\0\0aaaabbbb\0"[..], &rest.concat()].concat();
    [&[message.len() as u8, 0, 0, 0][..], &message].concat()
}

fn mysql_asks() -> Vec<u8> {
    [&b"\x20\0\0\x01\x85\xae\xff\x19\0\0\0\x01\xff"[..], &[0; 23]].concat()
}

/// The dialogue with both hellos behind it.
fn with_hellos(steps: &[(Side, &[u8])]) -> Vec<(Side, Step)> {
    let steps = steps.iter().map(|&(side, bytes)| (side, data(bytes)));
    steps.chain([(C, data(client_hello())), (S, data(server_hello_record()))]).collect()
}

/// What is found with the dialogue and both hellos.
fn found(steps: &[(Side, &[u8])]) -> Vec<&'static str> {
    names(&with_hellos(steps))
}

type Dialogue = Vec<(Side, Vec<u8>)>;

/// Dialogues at whose end TLS begins.
fn agreed() -> Vec<(&'static str, Dialogue)> {
    let dialogue = |steps: &[(Side, &[u8])]| steps.iter().map(|&(side, bytes)| (side, bytes.to_vec())).collect();
    let socks4a = b"\x04\x01\x01\xbb\0\0\0\x07me\0inner.example\0";
    let named = b"\x05\x01\0\x03\x05a.org\x01\xbb";
    let closed = b"<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'></proceed>";
    vec![
        ("pgsql", dialogue(&[(C, ASKS_TLS), (S, b"S")])),
        ("pgsql", dialogue(&[(C, ASKS_GSS), (S, b"N"), (C, ASKS_TLS), (S, b"S")])),
        ("mysql", dialogue(&[(S, &mysql_greeting(0xffff)), (C, &mysql_asks())])),
        ("rdp", dialogue(&[(C, RDP_ASKS), (S, &rdp_agrees(1))])),
        ("rdp", dialogue(&[(C, b"\x03\0\0\x13\x0e\xe0\0\0\0\0\0\x01\0\x08\0\x0b\0\0\0"), (S, &rdp_agrees(8))])),
        ("ldap", dialogue(&[(C, LDAP_ASKS), (S, &ldap_answers(7, 0))])),
        ("ldap", dialogue(&[(C, LDAP_SEARCH), (S, &ldap_answers(2, 0)), (C, LDAP_ASKS), (S, &ldap_answers(7, 0))])),
        ("ldap", dialogue(&[(C, LDAP_ASKS), (S, &ldap_answers(7, 52)), (C, LDAP_ASKS), (S, &ldap_answers(7, 0))])),
        ("jabber", dialogue(&[(C, STREAM), (S, b"<stream:features/>"), (C, b"<starttls/>"), (S, b"<proceed/>")])),
        ("jabber", dialogue(&[(C, STREAM), (C, b"<starttls a='b'></starttls>"), (S, closed)])),
        (
            "jabber",
            dialogue(&[
                (C, STREAM),
                (C, b"<starttls />"),
                (S, b"<failure/>"),
                (C, b"<starttls/>"),
                (S, b"<proceed />"),
            ]),
        ),
        ("socks", dialogue(&[(C, b"\x05\x01\0"), (S, b"\x05\0"), (C, named), (S, b"\x05\0\0\x01\0\0\0\0\0\0")])),
        (
            "socks",
            dialogue(&[
                (C, b"\x05\x02\0\x02"),
                (S, b"\x05\x02"),
                (C, b"\x01\x02me\x03key"),
                (S, b"\x01\0"),
                (C, b"\x05\x01\0\x01\x0a\0\0\x01\x01\xbb"),
                (S, b"\x05\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb"),
            ]),
        ),
        ("socks", dialogue(&[(C, b"\x04\x01\x01\xbb\x0a\0\0\x01\0"), (S, b"\0\x5a\0\0\0\0\0\0")])),
        ("socks", dialogue(&[(C, socks4a), (S, b"\0\x5a\x01\xbb\x0a\0\0\x01")])),
    ]
}

fn borrowed(steps: &[(Side, Vec<u8>)]) -> Vec<(Side, &[u8])> {
    steps.iter().map(|(side, bytes)| (*side, &bytes[..])).collect()
}

#[test]
fn tls_follows_a_preface_that_is_agreed_on() {
    for (name, steps) in agreed() {
        assert_eq!(found(&borrowed(&steps)), [name, "tls", "hello", "answer"], "{steps:x?}");
    }
}

#[test]
fn a_hello_may_come_before_the_answer() {
    for (name, mut steps) in agreed().into_iter().filter(|(name, _)| *name != "mysql") {
        let last = steps.len() - 1;
        assert_eq!(steps[last].0, S);
        steps[last].1.extend(server_hello_record());
        steps[last - 1].1.extend(client_hello());
        let steps: Vec<_> = steps.into_iter().map(|(side, bytes)| (side, data(bytes))).collect();
        assert_eq!(names(&steps), [name, "tls", "hello", "answer"], "{steps:x?}");
    }
}

#[test]
fn a_refusal_is_no_preface() {
    type Steps<'a> = &'a [(Side, &'a [u8])];
    let refused: [(&str, Steps<'_>); 11] = [
        ("pgsql", &[(C, ASKS_TLS), (S, b"N")]),
        ("pgsql", &[(C, ASKS_GSS), (S, b"G")]),
        ("pgsql", &[(C, b"\0\0\0\x20\0\x03\0\0user\0joe\0"), (S, b"S")]),
        ("mysql", &[(S, &mysql_greeting(0xf7ff)), (C, &mysql_asks())]),
        ("mysql", &[(S, &mysql_greeting(0xffff)), (C, b"\x20\0\0\x01\x85\xa6\xff\x19aaaaaaaaaaaaaaaaaaaaaaaaaaaa")]),
        ("rdp", &[(C, RDP_ASKS), (S, &rdp_agrees(0))]),
        ("ldap", &[(C, LDAP_ASKS), (S, &ldap_answers(7, 2))]),
        ("ldap", &[(C, LDAP_ASKS), (S, &ldap_answers(8, 0))]),
        ("jabber", &[(C, STREAM), (C, b"<starttls/>"), (S, b"<failure/>")]),
        ("socks", &[(C, b"\x05\x01\0"), (S, b"\x05\xff")]),
        ("socks", &[(C, b"\x04\x01\x01\xbb\x0a\0\0\x01\0"), (S, b"\0\x5b\0\0\0\0\0\0")]),
    ];
    for (name, steps) in refused {
        let found = found(steps);
        assert_eq!(found, [name], "{steps:x?}");
    }
}

#[test]
fn http_follows_socks() {
    let connect: [(Side, Step); 6] = [
        (C, data(b"\x05\x01\0")),
        (S, data(b"\x05\0")),
        (C, data(b"\x05\x01\0\x01\xc6\x33\x64\x4d\0\x50")),
        (S, data(b"\x05\0\0\x01\0\0\0\0\0\0")),
        (C, data("GET /x HTTP/1.1\r\n\r\n")),
        (S, data("HTTP/1.1 204 No\r\n\r\n")),
    ];
    assert_eq!(crate::support::shorts(&connect), ["GET /x 0 > 204 0"]);
}

#[test]
fn a_gap_may_hide_the_answer() {
    // SOCKS is known by its first answer alone.
    let has_other = |(name, steps): &(&str, Vec<_>)| *name != "mysql" && (*name != "socks" || steps.len() > 2);
    for (name, steps) in agreed().into_iter().filter(has_other) {
        let mut steps: Vec<_> = with_hellos(&borrowed(&steps));
        let answer = steps.len() - 3;
        let (side, Step::Data(bytes)) = steps[answer].clone() else { panic!() };
        steps[answer] = (side, Step::Gap(bytes.len() as u64));
        let with_gap = names(&steps);
        assert_eq!(with_gap, [name, "tls", "hello", "answer"], "{steps:x?}");
        // Of one side alone the capture has the hello at its end.
        let one: Vec<_> = steps.iter().filter(|(side, _)| *side == C).cloned().collect();
        if one.len() == 2 {
            assert_eq!(names(&one), [name, "tls", "hello"]);
        }
    }
}

#[test]
fn what_proxies_put_in_front_is_stepped_over() {
    let lines = [
        "PROXY TCP4 203.0.113.9 198.51.100.20 4000 443\r\n",
        "PROXY TCP6 ::1 2001:db8::1 1 2\r\n",
        "PROXY UNKNOWN\r\n",
    ];
    let binary = [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x10"[..], &[1; 16]].concat();
    for header in lines.map(str::as_bytes).into_iter().chain([&binary[..], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"]) {
        assert_eq!(found(&[(C, header)]), ["tls", "hello", "answer"], "{}", header.escape_ascii());
        let together = [header, &client_hello()].concat();
        assert_eq!(names(&[(C, data(together)), (S, data(server_hello_record()))]), ["tls", "hello", "answer"]);
        let twice = [header, header, b"GET / HTTP/1.1\r\n\r\n"].concat();
        assert_eq!(crate::support::shorts(&[(C, data(twice))]), ["GET / 0 > -"]);
        // A preface may follow.
        assert_eq!(found(&[(C, header), (C, ASKS_TLS), (S, b"S")]), ["pgsql", "tls", "hello", "answer"]);
    }
    for wrong in
        ["PROXY TCP4 ::1 ::1 4 5\r\n", "PROXY TCP4 1.2.3.4 1.2.3.4 4\r\n", "PROXY TCP5 1.2.3.4 1.2.3.4 4 5\r\n"]
    {
        let steps = [(C, data([wrong.as_bytes(), &client_hello()].concat()))];
        assert_eq!(names(&steps), [""; 0], "{wrong}");
    }
}

#[test]
fn an_answer_may_be_recorded_first() {
    // The messages of LDAP have numbers, and no order.
    let of_two = |(name, steps): &(&str, Vec<_>)| steps.len() == 2 && *name != "ldap";
    for (name, mut steps) in agreed().into_iter().filter(of_two) {
        steps.swap(0, 1);
        assert_eq!(found(&borrowed(&steps)), [name, "tls", "hello", "answer"], "{steps:x?}");
    }
}

#[test]
fn an_agreement_may_be_the_first_that_was_captured() {
    for answer in [&b"S"[..], b"\x05\0\0\x01\0\0\0\0\0\0", b"\0\x5a\0\0\0\0\0\0", b"go\r\n"] {
        assert_eq!(found(&[(S, answer)]), ["tls", "hello", "answer"], "{answer:x?}");
    }
}

#[test]
fn nearly_a_preface_is_none() {
    let other = |byte: &[u8], at: usize, value: u8| {
        let mut bytes = byte.to_vec();
        bytes[at] = value;
        bytes
    };
    let greeting = mysql_greeting(0xffff);
    let filler = greeting.len() - 13 - 22 - 10 - 8 - 1;
    #[rustfmt::skip]
    let wrong = [
        other(ASKS_TLS, 7, 0x32), other(ASKS_TLS, 3, 9), b"\0\0\0\x20\0\x03\0\0name\0joe\0".to_vec(),
        other(&greeting, 4, 9), other(&greeting, 3, 1), other(&greeting, 5, b'x'), other(&greeting, filler, 1),
        other(RDP_ASKS, 5, 0xf0), other(RDP_ASKS, 3, 0x30), other(RDP_ASKS, 10, 0x20), other(RDP_ASKS, 11, b'D'),
        // S7, which is over X.224 too.
        b"\x03\0\0\x16\x11\xe0\0\0\0\x01\0\xc0\x01\x0a\xc1\x02\x01\0\xc2\x02\x01\x02".to_vec(),
        other(LDAP_ASKS, 1, 0x1c), other(LDAP_ASKS, 2, 4), other(LDAP_ASKS, 5, 0x76), other(LDAP_ASKS, 9, b'x'),
        // SNMP and a certificate.
        b"0\x29\x02\x01\x01\x04\x06public\xa0\x1c\x02\x04\0\0\0\0\x02\x01\0\x02\x01\0".to_vec(),
        b"0\x82\x03\x11\x30\x82\x02\x39\xa0\x03\x02\x01\x02".to_vec(),
        other(STREAM, 22, b'['), b"<?xml version='1.0'?><a xmlns='http://etherx.jabber.org/streams'>".to_vec(),
        b"<stream:stream xmlns:stream='http://example.org'>".to_vec(),
    ];
    for bytes in wrong {
        assert_eq!(names(&[(C, data(&bytes))]), [""; 0], "{}", bytes.escape_ascii());
        assert_eq!(names(&[(C, data(&bytes)), (S, data([0x99; 9]))]), [""; 0]);
    }
    // SOCKS has little evidence, so that both sides have to fit.
    for (asks, answers) in [
        (&b"\x05\x01\0"[..], &b"\x05\x02"[..]),
        (b"\x05\x01\x0a", b"\x05\0"),
        (b"\x05\0", b"\x05\0"),
        (b"\x05\x01\0", b"\x06\0"),
        (b"\x05\x01\0", b""),
        (b"\x04\x03\0\x50\x0a\0\0\x01\0", b"\0\x5a\0\0\0\0\0\0"),
        (b"\x04\x01\0\0\x0a\0\0\x01\0", b"\0\x5a\0\0\0\0\0\0"),
        (b"\x04\x01\0\x50\x0a\0\0\x01\xff\0", b"\0\x5a\0\0\0\0\0\0"),
        (b"\x04\x01\0\x50\x0a\0\0\x01\0", b"\0\x59\0\0\0\0\0\0"),
    ] {
        let steps = [(C, data(asks)), (S, data(answers))];
        let steps: Vec<_> =
            steps.into_iter().filter(|(_, step)| !matches!(step, Step::Data(bytes) if bytes.is_empty())).collect();
        assert_eq!(names(&steps), [""; 0], "{asks:x?} {answers:x?}");
    }
}

/// Messages of DNS over TCP whose length begins like a request of SOCKS, and an answer of it.
#[test]
fn rules_that_wait_do_not_hide_dns() {
    for length in [0x0401_u16, 0x0501, 0x0502, 0x005a] {
        for id in [[0, 0], [0, 2], [0x12, 0x34]] {
            let mut message =
                [&length.to_be_bytes()[..], &id, b"\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01"].concat();
            message.resize(2 + usize::from(length), 0);
            let found = identified(Carrier::Stream, &[(C, data(message))]);
            assert_eq!(found.map(|found| found.protocol), Some(Protocol::Dns), "{length:x} {id:?}");
        }
    }
}

#[test]
fn what_waits_is_bounded() {
    // More than is held comes before the answer: it is looked at anew.
    let long = vec![0x99; 9 << 10];
    let steps = [(C, data(ASKS_TLS)), (C, data(&long)), (S, data("S"))];
    assert_eq!(names(&steps), ["pgsql"]);
    let steps = [(C, data(ASKS_TLS)), (C, data([client_hello(), long].concat()))];
    assert_eq!(names(&steps), ["pgsql", "tls", "hello"]);
    // A dialogue that goes on and on.
    let searches =
        |count: usize| found(&[(C, &LDAP_SEARCH.repeat(count)), (C, LDAP_ASKS), (S, &ldap_answers(7, 0))]).len();
    assert_eq!((searches(1000), searches(3000)), (4, 1));
    // An entry that is longer than what is held is stepped over, also by a gap.
    let entry = [&b"0\x82\x50\x00\x02\x01\x02d\x82\x4f\xf9"[..], &[7; 0x4ff9]].concat();
    let entry = &entry[..];
    assert_eq!(found(&[(C, LDAP_SEARCH), (S, entry), (C, LDAP_ASKS), (S, &ldap_answers(7, 0))]).len(), 4);
    let mut steps = with_hellos(&[(C, LDAP_SEARCH), (S, &entry[..100]), (C, LDAP_ASKS), (S, &ldap_answers(7, 0))]);
    steps.insert(2, (S, Step::Gap(entry.len() as u64 - 100)));
    assert_eq!(names(&steps).len(), 4);
}

/// Every protocol with a preface has an example that changes to TLS.
#[test]
fn the_client_is_known() {
    for (name, steps) in agreed() {
        let steps: Vec<_> = steps.iter().map(|(side, bytes)| (side.other(), data(bytes))).collect();
        let found = run(Carrier::Stream, &steps).into_iter().find_map(|event| match event {
            Event::Identified(found) => Some((found.protocol.name(), found.client)),
            _ => None,
        });
        assert_eq!(found, Some((name, Some(S))));
        assert!(parsers().any(|parser| parser.protocol.name() == name));
    }
}
