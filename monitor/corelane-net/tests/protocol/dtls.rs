//! DTLS: hellos in fragments, with cookies, repeated, and behind STUN.

use crate::support::{C, S, Step, data, run};
use crate::tls::{RETRY, extension, host, versions};
use corelane_net::conversation::{Application, Side};
use corelane_net::protocol::fuzz::parsers;
use corelane_net::protocol::tls::{ClientHello, ServerHello};
use corelane_net::protocol::{Carrier, Event, Protocol, Session};

const V1: u16 = 0xfeff;
const V2: u16 = 0xfefd;

fn record(kind: u8, version: u16, epoch: u16, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    [&[kind][..], &version.to_be_bytes(), &epoch.to_be_bytes(), &[0, 0, 0, 0, 0, 5], &length, content].concat()
}

/// A fragment of a message.
fn fragment(kind: u8, number: u16, message: &[u8], part: std::ops::Range<usize>) -> Vec<u8> {
    let three = |value: usize| (value as u32).to_be_bytes()[1..].to_vec();
    let head = [vec![kind], three(message.len()), number.to_be_bytes().to_vec(), three(part.start), three(part.len())];
    [&head.concat(), &message[part]].concat()
}

fn whole(kind: u8, number: u16, message: &[u8]) -> Vec<u8> {
    record(22, V1, 0, &fragment(kind, number, message, 0..message.len()))
}

fn client(cookie: &[u8], extensions: &[Vec<u8>]) -> Vec<u8> {
    let extensions = extensions.concat();
    let head = [&V2.to_be_bytes()[..], &[7; 32], &[0, cookie.len() as u8], cookie, b"\0\x04\xc0\x2b\x13\x01\x01\0"];
    [&head.concat(), &(extensions.len() as u16).to_be_bytes()[..], &extensions].concat()
}

fn server(version: u16, random: &[u8; 32], extensions: &[Vec<u8>]) -> Vec<u8> {
    let extensions = extensions.concat();
    let length = (extensions.len() as u16).to_be_bytes();
    [&version.to_be_bytes()[..], random, &[0, 0xc0, 0x2b, 0], &length, &extensions].concat()
}

fn hellos(steps: &[(Side, Step)]) -> (Vec<ClientHello>, Vec<ServerHello>) {
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    for event in run(Carrier::Datagrams, steps) {
        match event {
            Event::ClientHello(hello) => clients.push(*hello),
            Event::ServerHello(hello) => servers.push(*hello),
            _ => {}
        }
    }
    (clients, servers)
}

#[test]
fn a_handshake_with_a_cookie_has_one_hello_of_each_side() {
    let asks = [host("a.example"), extension(16, b"\0\x03\x02h2")];
    let wants_cookie = [&V1.to_be_bytes()[..], &[4, 1, 2, 3, 4]].concat();
    let flight = [whole(2, 1, &server(V2, &[3; 32], &[])), whole(11, 2, &[0; 900])].concat();
    let steps = [
        (C, data(whole(1, 0, &client(b"", &asks)))),
        (S, data(whole(3, 0, &wants_cookie))),
        (C, data(whole(1, 1, &client(&[1, 2, 3, 4], &asks)))),
        (S, data(&flight)),
        // Both were sent once more.
        (C, data(whole(1, 1, &client(&[1, 2, 3, 4], &asks)))),
        (S, data(&flight)),
        (C, data(record(23, V2, 1, &[8; 40]))),
    ];
    let (clients, servers) = hellos(&steps);
    let ([client], [server]) = (&clients[..], &servers[..]) else { panic!("{clients:?} {servers:?}") };
    assert_eq!((client.server_name.as_deref(), client.client, client.time_ns), (Some("a.example"), C, 0));
    assert_eq!((client.legacy_version, &client.ciphers[..], client.is_dtls()), (V2, &[0xc02b, 0x1301][..], true));
    assert_eq!(client.ja4.as_deref().map(|ja4| &ja4[..10]), Some("dd2d0202h2"));
    assert_eq!((server.version, server.cipher, server.is_dtls()), (V2, 0xc02b, true));
    // Whichever way round, and of any of its parts.
    for (number, (_, step)) in steps.iter().enumerate() {
        let found = run(Carrier::Datagrams, &[(S, step.clone())]);
        let [Event::Identified(found), ..] = &found[..] else { panic!("{number}") };
        let client = [Some(S), Some(C), Some(S), Some(C), Some(S), Some(C), None][number];
        assert_eq!((found.protocol, found.client), (Protocol::Dtls, client), "{number}");
    }
}

#[test]
fn the_newest_version_is_in_an_extension() {
    let asks = whole(1, 0, &client(b"", &[versions(&[0xfefc, 0xfefd])]));
    let chosen = [extension(43, &[0xfe, 0xfc])];
    let retry = whole(2, 0, &server(V2, &RETRY, &chosen));
    let answer = [whole(2, 1, &server(V2, &[3; 32], &chosen)), vec![0x2f, 1, 2, 0, 9, 9, 9, 9]].concat();
    let again = whole(1, 1, &client(b"", &[versions(&[0xfefc, 0xfefd]), extension(44, &[0, 1, 9])]));
    let (clients, servers) = hellos(&[(C, data(asks)), (S, data(retry)), (C, data(again)), (S, data(answer))]);
    assert_eq!(clients[0].ja4.as_deref().map(|ja4| &ja4[..3]), Some("dd3"));
    assert_eq!(clients.len(), 2);
    assert_eq!(
        servers.iter().map(|hello| (hello.version, hello.is_retry)).collect::<Vec<_>>(),
        [(0xfefc, true), (0xfefc, false)]
    );
}

#[test]
fn fragments_come_in_any_order_and_twice() {
    let message = client(b"cookie", &[host("fragments.example"), extension(21, &[0; 300])]);
    let cuts = [0, 100, 200, 300, message.len()];
    let parts: Vec<_> = cuts.windows(2).map(|cut| fragment(1, 3, &message, cut[0]..cut[1])).collect();
    let one = |order: &[usize]| {
        let first = (C, data(whole(3, 0, b"\xfe\xff\0")));
        let steps = order.iter().map(|&at| (S, data(record(22, V1, 0, &parts[at]))));
        hellos(&[first].into_iter().chain(steps).collect::<Vec<_>>()).0
    };
    for order in [&[0, 1, 2, 3][..], &[3, 1, 1, 2, 0], &[2, 0, 3, 3, 1, 2]] {
        let found = one(order);
        assert_eq!(
            found.iter().map(|hello| (hello.server_name.as_deref(), hello.client)).collect::<Vec<_>>(),
            [(Some("fragments.example"), S)]
        );
    }
    assert_eq!(one(&[0, 1, 3]), []);
    // Several in a record.
    assert_eq!(hellos(&[(C, data(record(22, V2, 0, &parts.concat())))]).0.len(), 1);
    // Another message with the same number begins anew.
    let other = fragment(1, 3, &message[..150], 0..100);
    let steps = [&parts[0], &parts[1], &other, &parts[2], &parts[3]];
    let steps: Vec<_> = steps.iter().map(|part| (C, data(record(22, V1, 0, part)))).collect();
    assert_eq!(hellos(&steps).0, []);
}

#[test]
fn stun_comes_in_front_and_among_them() {
    let stun = data(b"\0\x01\0\0\x21\x12\xa4\x42abcdefghijkl");
    let mut steps: Vec<_> = (0..6).flat_map(|_| [(C, stun.clone()), (S, stun.clone())]).collect();
    steps.push((S, data(whole(1, 0, &client(b"", &[])))));
    steps.push((S, stun));
    steps.push((C, data(whole(2, 0, &server(V2, &[3; 32], &[])))));
    let events = run(Carrier::Datagrams, &steps);
    let name = |event: &Event| match event {
        Event::Identified(found) => found.protocol.name(),
        Event::ClientHello(_) => "hello",
        Event::ServerHello(_) => "answer",
        _ => "other",
    };
    assert_eq!(events.iter().map(name).collect::<Vec<_>>(), ["stun", "dtls", "hello", "answer"]);
}

#[test]
fn what_is_nearly_dtls_is_none() {
    let hello = whole(1, 0, &client(b"", &[]));
    let is_known = |bytes: &[u8]| !run(Carrier::Datagrams, &[(C, data(bytes))]).is_empty();
    assert!(is_known(&hello));
    // Kind, version, length; message, place, length, version.
    for (at, value) in [(0, 24), (1, 3), (2, 0xfe), (12, 0xff), (13, 5), (20, 1), (16, 0), (25, 3), (26, 0)] {
        let mut wrong = hello.clone();
        wrong[at] = value;
        assert!(!is_known(&wrong), "{at}");
    }
    let encrypted = record(23, V2, 1, &[8; 40]);
    assert!(is_known(&encrypted) && is_known(&[&encrypted[..], &encrypted].concat()));
    assert!(!is_known(&[&encrypted[..], b"x"].concat()) && !is_known(&encrypted[..52]));
    assert!(!is_known(&record(23, V2, 0, &[8; 40])) && !is_known(&record(23, V2, 1, &[8; 16])));
    assert!(!is_known(&record(20, V2, 0, &[2])) && !is_known(&record(21, V2, 0, &[3, 1])));
}

#[test]
fn a_flood_is_bounded() {
    let most = parsers().find(|parser| parser.protocol == Protocol::Dtls).unwrap().most;
    let mut session = Session::new(Carrier::Datagrams);
    let mut events = Vec::new();
    let long = vec![9; 32 << 10];
    for number in 0..70_u16 {
        assert_eq!(session.wants(C), number < 64);
        let part = usize::from(number % 65) * 500;
        let begin = fragment(1, 0, &long, part..(part + 200).min(long.len()));
        let hello = [&hello_head()[..], &record(22, V1, 0, &begin)].concat();
        session.data(C, 0, &hello, &mut events);
        assert!(session.heap_bytes() <= most + 2048, "{}", session.heap_bytes());
    }
    // Hellos that differ.
    let mut session = Session::new(Carrier::Datagrams);
    events.clear();
    let hellos = (0..16).map(|number| whole(1, number, &client(b"", &[extension(number, &[])])));
    session.data(C, 0, &hellos.flatten().collect::<Vec<_>>(), &mut events);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::ClientHello(_))).count(), 4);
    assert!(!session.wants(C) && session.wants(S));
}

/// A request for a cookie, by which the datagram is known.
fn hello_head() -> Vec<u8> {
    whole(3, 0, b"\xfe\xff\0")
}
