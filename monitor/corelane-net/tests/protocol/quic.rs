//! QUIC: the published packets, hellos in pieces, Retry, other versions, and floods.

use crate::support::{C, S, Step, data, run};
use crate::tls::{RETRY, example, extension, server_hello};
use corelane_net::conversation::{Application, Side};
use corelane_net::protocol::fuzz::{greased, initial};
use corelane_net::protocol::quic::{BYTES, COALESCED, DATAGRAMS, FRAMES, HELLOS, INITIALS, MOST, PIECES};
use corelane_net::protocol::tls::{ClientHello, HELLO, ServerHello};
use corelane_net::protocol::{Carrier, Event, Protocol, Session};
use proptest::collection::vec;
use proptest::prelude::*;

const V2: u32 = 0x6b33_43cf;
const ID: &[u8] = b"original";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// A CRYPTO frame, its numbers in four bytes each.
fn crypto(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let number = |value: usize| (value as u32 | 0x8000_0000).to_be_bytes();
    [&[6], &number(offset)[..], &number(bytes.len()), bytes].concat()
}

/// A client's Initial packet, padded as its datagram has to be.
fn client(number: u64, mut frames: Vec<u8>) -> Vec<u8> {
    frames.resize(frames.len().max(1200), 0);
    initial(1, ID, true, [ID, b"c"], b"", number, &frames)
}

fn server(number: u64, frames: &[u8]) -> Vec<u8> {
    initial(1, ID, false, [b"c", b"server"], b"", number, frames)
}

fn answer() -> Vec<u8> {
    server_hello(0x0303, 0x1301, &[3; 32], &[extension(43, &[3, 4])])
}

fn hellos(steps: &[(Side, Step)]) -> (Vec<ClientHello>, Vec<ServerHello>) {
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    for event in run(Carrier::Datagrams, steps) {
        match event {
            Event::ClientHello(hello) => clients.push(*hello),
            Event::ServerHello(hello) => servers.push(*hello),
            Event::Identified(found) => assert_eq!(found.protocol, Protocol::Quic),
            other => panic!("{other:?}"),
        }
    }
    (clients, servers)
}

/// Gives the datagrams of a side to a session, and checks what it holds.
fn feed(session: &mut Session, side: Side, datagrams: impl IntoIterator<Item = Vec<u8>>) -> Vec<Event> {
    let mut events = Vec::new();
    for datagram in datagrams {
        session.data(side, 0, &datagram, &mut events);
        assert!(session.heap_bytes() <= MOST + 2048, "{}", session.heap_bytes());
    }
    events
}

/// The content of the client's packet in both appendices.
const CONTENT: &str = "
    060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c00000413011302010000c0000000
    10000e00000b6578616d706c652e636f6dff01000100000a00080006001d0017001800100007000504616c706e0005000501000000000033
    00260024001d00209370b2c9caa47fbabaf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e040305
    0306030203080408050806002d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ffff08011001048000
    75300901100f088394c8f03e51570806048000ffff";

/// RFC 9001, A.2 and A.3; RFC 9369, A.2 and A.3: version, how the client's packet begins and ends, the server's packet.
/// The tag at the end covers the whole packet.
const PUBLISHED: [(u32, &str, &str, &str); 2] = [
    (
        1,
        "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11",
        "7e78bfe706ca4cf5e9c5453e9f7cfd2b8b4c8d169a44e55c88d4a9a7f9474241e221af44860018ab0856972e194cd934",
        "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf7
         3c3ec2493a1839b3dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84022f8ef4cdd93795d77d06edbb7aaf2f
         58891850abbdca3d20398c276456cbc42158407dd074ee",
    ),
    (
        V2,
        "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485",
        "9a37ddec600545473cfb5a05e08d0b209973b2172b4d21fb69745a262ccde96ba18b2faa745b6fe189cf772a9f84cbfc",
        "dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698baeea26b91eb761d9b89237bbf87263017915358230035f7
         fd3945d88965cf17f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e42757507698075b2c984c707f0a0812d8cd5a6881eaf21ce
         da98f4bd23f6fe1a3e2c43edd9ce7ca84bed8521e2e140",
    ),
];

#[test]
fn the_published_packets() {
    let mut content = hex(CONTENT);
    content.resize(1162, 0);
    let id = hex("8394c8f03e515708");
    for (version, begin, end, answer) in PUBLISHED {
        let packet = initial(version, &id, true, [&id, b""], b"", 2, &content);
        assert!(packet.len() == 1200 && packet.starts_with(&hex(begin)) && packet.ends_with(&hex(end)));
        let (clients, servers) = hellos(&[(C, data(&packet)), (S, data(hex(answer)))]);
        let ([client], [server]) = (&clients[..], &servers[..]) else { panic!("{clients:?} {servers:?}") };
        assert_eq!(client.server_name.as_deref(), Some("example.com"));
        assert_eq!((client.client, client.quic, &client.ciphers[..]), (C, Some(version), &[0x1301, 0x1302][..]));
        assert_eq!(client.protocols, ["alpn".into()]);
        assert_eq!(client.ja4.as_deref().map(|ja4| &ja4[..10]), Some("q13d0211an"));
        assert_eq!((server.server, server.quic, server.cipher, server.version), (S, Some(version), 0x1301, 0x0304));
        // A bit of the header or of the content that is not what was sent.
        for at in [0, 15, 16, 17, 18, 40, 1199] {
            let mut wrong = packet.clone();
            wrong[at] ^= 1;
            assert_eq!(hellos(&[(C, data(wrong))]).0, [], "{at}");
        }
    }
}

/// Salts of drafts are tested beside their keys.
#[test]
fn drafts_are_read() {
    let versions = (0xff00_0017..=0xff00_0022).chain([0xface_b001, 0xface_b002, 0xface_b00e, 0x5430_3530, 0x5430_3531]);
    for version in versions {
        let mut content = crypto(0, &example(b"h3-29"));
        content.resize(1200, 0);
        let asks = initial(version, ID, true, [ID, b"c"], b"", 0, &content);
        let answers = initial(version, ID, false, [b"c", b"s"], b"", 0, &crypto(0, &answer()));
        let (clients, servers) = hellos(&[(C, data(asks)), (S, data(answers))]);
        let found = (clients[0].quic, clients[0].server_name.as_deref(), servers[0].quic);
        assert_eq!(found, (Some(version), Some("example.org"), Some(version)));
    }
}

/// FoxIO's description: all is as over TCP but for the first letter.
#[test]
fn the_fingerprint_says_quic() {
    let (clients, _) = hellos(&[(C, data(client(0, crypto(0, &example(b"h3")))))]);
    assert_eq!(clients[0].ja4.as_deref(), Some("q13d1516h3_8daaf6152771_e5627efa2ab1"));
}

#[test]
fn behind_both_hellos_nothing_is_wanted() {
    let mut session = Session::new(Carrier::Datagrams);
    let events = feed(&mut session, C, [client(0, crypto(0, &example(b"h3")))]);
    assert!(events.len() == 2 && session.wants(C) && session.wants(S));
    let events = feed(&mut session, S, [server(0, &crypto(0, &answer().repeat(2)))]);
    assert!(matches!(events[..], [Event::ServerHello(_)]));
    assert!(!session.wants(C) && !session.wants(S) && session.heap_bytes() == 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// In any pieces, twice or overlapping, in any order, over any packets and datagrams.
    #[test]
    fn a_hello_may_be_cut_in_any_way(
        cuts in vec((0..700_usize, 0..90_usize), 0..40),
        order in any::<u64>(),
        packets in vec(1..9_usize, 30),
        datagrams in vec(1..4_usize, 30),
        filling in vec(prop::sample::select(vec![vec![], vec![1], vec![0; 9], vec![2, 5, 0, 1, 1, 0, 0]]), 30),
    ) {
        let hello = example(b"h3");
        // The whole hello in steps, and pieces from anywhere.
        let whole = (0..hello.len()).step_by(97).map(|at| (at, 97));
        let mut pieces: Vec<_> = whole.chain(cuts).collect();
        let mut random = order;
        for at in (1..pieces.len()).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            pieces.swap(at, (random >> 33) as usize % (at + 1));
        }
        let mut pieces = pieces.into_iter().map(|(at, length)| {
            let at = at.min(hello.len());
            crypto(at, &hello[at..hello.len().min(at + length)])
        });
        let sealed: Vec<_> = packets.iter().zip(filling).zip(0_u64..).map(|((&count, filling), number)| {
            let mut frames: Vec<u8> = pieces.by_ref().take(count).flatten().collect();
            frames.extend(filling);
            initial(1, ID, true, [ID, b"c"], b"token", number, &frames)
        }).collect();
        prop_assume!(pieces.next().is_none());
        let mut sealed = sealed.into_iter().peekable();
        let mut session = Session::new(Carrier::Datagrams);
        let mut events = Vec::new();
        for count in datagrams {
            events.extend(feed(&mut session, C, [sealed.by_ref().take(count).flatten().collect()]));
        }
        events.extend(feed(&mut session, C, sealed));
        let hellos: Vec<_> = events.into_iter().filter_map(|event| match event {
            Event::ClientHello(hello) => Some(*hello),
            _ => None,
        }).collect();
        let (mut expected, _) = self::hellos(&[(C, data(client(0, crypto(0, &hello))))]);
        expected[0].time_ns = 0;
        prop_assert_eq!(hellos, expected);
    }
}

#[test]
fn of_what_has_come_twice_the_first_counts() {
    let hello = example(b"h3");
    let at = hello.windows(11).position(|bytes| bytes == b"example.org").unwrap();
    let mut other = hello.clone();
    other[at..at + 11].copy_from_slice(b"example.com");
    let steps = [(C, data(client(0, crypto(at, &hello[at..at + 11])))), (C, data(client(1, crypto(0, &other))))];
    assert_eq!(hellos(&steps).0[0].server_name.as_deref(), Some("example.org"));
}

/// Some clients begin with a random number. Only its low bits are sent.
#[test]
fn packet_numbers_go_on() {
    let (first, rest) = (crypto(0, &example(b"h3")[..100]), crypto(100, &example(b"h3")[100..]));
    let steps = [(C, data(client(0xffff_fff0, first))), (C, data(client(0x1_0000_0002, rest)))];
    assert_eq!(hellos(&steps).0.len(), 1);
}

#[test]
fn a_server_does_not_become_the_client() {
    let forged = initial(1, b"forged", true, [b"forged", b"x"], b"", 0, &crypto(0, &example(b"h3")));
    let steps = [
        (C, data(client(0, crypto(0, &example(b"h3"))))),
        (S, data(forged)),
        (S, data(server(0, &crypto(0, &answer())))),
    ];
    let (clients, servers) = hellos(&steps);
    assert_eq!((clients.len(), servers.len()), (1, 1));
}

#[test]
fn behind_a_retry_the_hello_is_told_once() {
    let hello = example(b"h3");
    for length in 0..=20 {
        let id = &b"chosen by the server"[..length];
        let first = client(0, crypto(0, &hello));
        let retry = [b"\xf0\0\0\0\x01\x01c", &[length as u8][..], id, b"token", &[0; 16]].concat();
        let second = |version, hello: &[u8]| {
            initial(version, id, true, [id, b"c"], &[7; 99], 1, &[crypto(0, hello), vec![0; 900]].concat())
        };
        let answered = initial(1, id, false, [b"c", b"other"], b"", 0, &crypto(0, &answer()));
        let told = |steps: &[(Side, &[u8])]| {
            let steps: Vec<_> = steps.iter().map(|(side, bytes)| (*side, data(bytes))).collect();
            let (clients, servers) = hellos(&steps);
            (clients.len(), servers.len())
        };
        let all = [(C, &first[..]), (S, &retry), (C, &second(1, &hello)), (S, &answered)];
        assert_eq!(told(&all), (1, 1), "{length}");
        assert_eq!(told(&[all[0], all[2], all[3]]), (1, 1), "the Retry was lost");
        assert_eq!(told(&[all[2], all[3]]), (1, 1), "picked up behind it");
        // The first hello had not come as a whole.
        assert_eq!(told(&[(C, &client(0, crypto(0, &hello[..200]))), all[2], all[3]]), (1, 1));
        // A retry that is none changes nothing, as the client goes on with its first ID.
        assert_eq!(told(&[all[0], all[1], (S, &server(0, &crypto(0, &answer())))]), (1, 1));
        // Behind a version negotiation the client begins anew, with another hello.
        let negotiation = b"\x80\0\0\0\0\x01c\x08original\x6b\x33\x43\xcf";
        let other = crate::tls::hello(0x0303, &[0x1301], &[]);
        let again: Vec<u8> = other.iter().enumerate().map(|(at, &byte)| if at == 9 { 1 } else { byte }).collect();
        assert_eq!(told(&[all[0], (S, negotiation), (C, &second(V2, &again))]), (2, 0));
    }
}

/// The sender chooses the random bytes, so they do not tell that a hello has come before.
#[test]
fn another_hello_with_the_same_random_is_told() {
    let hello = example(b"h3");
    let mut other = hello.clone();
    let at = hello.windows(11).position(|bytes| bytes == b"example.org").unwrap();
    other[at..at + 11].copy_from_slice(b"example.com");
    let (clients, _) = hellos(&[(C, data(client(0, crypto(0, &hello)))), (C, data(begun(b"second..", &other)))]);
    let names: Vec<_> = clients.iter().filter_map(|hello| hello.server_name.as_deref()).collect();
    assert_eq!(names, ["example.org", "example.com"]);
}

/// A client's first packet under this ID.
fn begun(id: &[u8], hello: &[u8]) -> Vec<u8> {
    initial(1, id, true, [id, b"c"], b"", 0, &crypto(0, hello))
}

/// A valid packet under another ID does not cost what came before.
#[test]
fn a_decoy_erases_nothing() {
    let hello = example(b"h3");
    let first = client(0, crypto(0, &hello[..100]));
    let rest = client(1, crypto(100, &hello[100..]));
    let whole = client(0, crypto(0, &hello));
    let answered = (S, data(server(0, &crypto(0, &answer()))));
    let decoy = |id: &[u8], frames: &[u8]| initial(1, id, true, [id, b"c"], b"", 0, &[frames, &[0; 30]].concat());
    let told = |clients: &[&[u8]]| {
        let steps: Vec<_> = clients.iter().map(|bytes| (C, data(bytes))).chain([answered.clone()]).collect();
        let (clients, servers) = hellos(&steps);
        (clients.len(), servers.len())
    };
    // A PING, a piece, and a message that is none.
    for frames in [vec![1], crypto(50, b"x"), crypto(0, &[2, 0, 0, 0])] {
        let (one, two) = (decoy(b"decoy...", &frames), decoy(b"another.", &frames));
        assert_eq!(told(&[&first, &one, &rest]), (1, 1), "{frames:x?}");
        assert_eq!(told(&[&first, &one, &two, &rest]), (1, 1), "{frames:x?}");
        // A message that is none, under the only ID so far, ends the side.
        let is_message = frames.len() > 10 && frames[9] == 2;
        assert_eq!(told(&[&one, &first, &rest]), if is_message { (0, 0) } else { (1, 1) }, "in front");
        assert_eq!(told(&[&first, &rest, &one, &two]), (1, 1), "behind");
        assert_eq!(told(&[&[&first[..], &one, &rest].concat()]), (1, 1), "in a datagram");
    }
    // In a datagram another destination is not read, whatever it holds (RFC 9000, 12.2).
    assert_eq!(told(&[&[&first[..], &begun(b"decoy...", &hello), &rest].concat()]), (1, 1));
    // The first hello comes again behind a Retry's, and the server answers to the latter.
    let retried = begun(b"retried.", &hello);
    let other = initial(1, b"retried.", false, [b"c", b"s"], b"", 0, &crypto(0, &answer()));
    let (clients, servers) =
        hellos(&[(C, data(&whole)), (C, data(retried)), (C, data(&whole)), (C, data(&first)), (S, data(other))]);
    assert_eq!((clients.len(), servers.len()), (1, 1));
}

/// Until a whole ClientHello has come either side may be the client.
#[test]
fn a_server_does_not_hide_the_client() {
    let hello = example(b"h3");
    let junk = (C, data(b"\xe0\0\0\0\x01\0\0\x11aaaaaaaaaaaaaaaaa"));
    let answered = (S, data(server(0, &crypto(0, &answer()))));
    let (first, rest) = (client(0, crypto(0, &hello[..100])), client(1, crypto(100, &hello[100..])));
    let (first, rest) = ((C, data(first)), (C, data(rest)));
    for frames in [vec![1; 20], crypto(0, &hello[..200])] {
        let forged = |id: &[u8]| (S, data(initial(1, id, true, [id, b"x"], b"", 0, &frames)));
        let (one, two) = (forged(b"forged.."), forged(b"another."));
        for steps in [
            vec![&junk, &one, &first, &rest],
            vec![&junk, &first, &one, &rest],
            vec![&junk, &first, &rest, &one],
            vec![&junk, &one, &two, &first, &rest],
            vec![&junk, &one, &first, &two, &rest],
        ] {
            let steps: Vec<_> = steps.into_iter().chain([&answered]).cloned().collect();
            let (clients, servers) = hellos(&steps);
            assert_eq!((clients.len(), servers.len()), (1, 1), "{steps:?}");
            assert_eq!((clients[0].client, servers[0].server), (C, S));
        }
    }
}

/// A client whose version the server has not may keep the ID that it has chosen.
#[test]
fn another_version_begins_anew() {
    let hello = example(b"h3");
    let other = crate::tls::hello(0x0303, &[0x1301], &[]);
    let negotiation = (S, data(b"\x80\0\0\0\0\x01c\x08original\x6b\x33\x43\xcf"));
    let second = |hello: &[u8]| (C, data(initial(V2, ID, true, [ID, b"c"], b"", 0, &crypto(0, hello))));
    let answered = (S, data(initial(V2, ID, false, [b"c", b"s"], b"", 0, &crypto(0, &answer()))));
    for first in [&hello[..], &hello[..200]] {
        let first = (C, data(client(0xffff_0000, crypto(0, first))));
        let (clients, servers) = hellos(&[first, negotiation.clone(), second(&other), answered.clone()]);
        assert_eq!(clients.last().map(|hello| hello.quic), Some(Some(V2)));
        assert_eq!((clients.len() + usize::from(clients.len() == 1), servers.len()), (2, 1));
    }
    // The same hello is told once, and a packet of another version does not cost what came before.
    let steps = [(C, data(client(0, crypto(0, &hello)))), negotiation, second(&hello)];
    assert_eq!(hellos(&steps).0.len(), 1);
    let decoy = (C, data(initial(V2, ID, true, [ID, b"c"], b"", 0, &[1; 20])));
    let (first, rest) = (client(0, crypto(0, &hello[..100])), client(1, crypto(100, &hello[100..])));
    assert_eq!(hellos(&[(C, data(first)), decoy, (C, data(rest))]).0.len(), 1);
    // A client that follows its server to another version goes on, with the ID that the server has.
    let asked = server_hello(0x0303, 0x1301, &RETRY, &[extension(43, &[3, 4])]);
    let (clients, servers) = hellos(&[
        (C, data(client(0, crypto(0, &hello)))),
        (S, data(initial(V2, ID, false, [b"c", b"s"], b"", 0, &crypto(0, &asked)))),
        (C, data(initial(V2, ID, true, [b"s", b"c"], b"", 1, &crypto(hello.len(), &hello)))),
    ]);
    assert_eq!((clients.len(), servers.len(), clients[1].quic), (2, 1, Some(V2)));
}

/// In a capture out of order the answer may come in front of the rest of the question.
#[test]
fn an_answer_does_not_end_half_a_hello() {
    let hello = example(b"h3");
    let mut session = Session::new(Carrier::Datagrams);
    feed(&mut session, C, [client(0, crypto(0, &hello[..100]))]);
    let events = feed(&mut session, S, [server(0, &crypto(0, &answer()))]);
    assert!(matches!(events[..], [Event::ServerHello(_)]) && session.wants(C) && !session.wants(S));
    let events = feed(&mut session, C, [client(1, crypto(100, &hello[100..]))]);
    assert!(matches!(events[..], [Event::ClientHello(_)]) && !session.wants(C) && session.heap_bytes() == 0);
}

/// What is strange has a budget of its own.
#[test]
fn strange_datagrams_do_not_hide_a_hello() {
    let hello = example(b"h3");
    let first = client(0, crypto(0, &hello[..100]));
    let rest = client(1, crypto(100, &hello[100..]));
    let wrong = initial(1, b"another", true, [b"strange.", b"c"], b"", 0, &[0; 20]);
    let large = initial(1, b"another", true, [b"strange.", b"c"], b"", 0, &[0; 40_000]);
    // Short headers, a Handshake packet of the server's ID, packets that no key opens.
    for strange in [&b"\x40short"[..], b"", b"\xe0\0\0\0\x01\0\0\x11aaaaaaaaaaaaaaaaa", &wrong] {
        let most = usize::from(DATAGRAMS) - 1;
        let mut session = Session::new(Carrier::Datagrams);
        let mut events = feed(&mut session, C, [first.clone()]);
        events.extend(feed(&mut session, C, vec![strange.to_vec(); most]));
        assert!(session.wants(C));
        events.extend(feed(&mut session, C, vec![client(2, vec![1]); most - 1]));
        events.extend(feed(&mut session, C, [rest.clone()]));
        assert!(matches!(events[..], [Event::Identified(_), Event::ClientHello(_)]), "{strange:x?}");
    }
    let mut session = Session::new(Carrier::Datagrams);
    let mut events = feed(&mut session, C, [first, large.clone(), large.clone(), large.clone()]);
    events.extend(feed(&mut session, C, [client(1, vec![1; 60_000]), client(2, vec![1; 60_000]), rest]));
    assert!(matches!(events[..], [Event::Identified(_), Event::ClientHello(_)]) && session.wants(C));
    feed(&mut session, C, [large]);
    assert!(!session.wants(C));
}

/// A packet too short for a number and a tag, and one whose fixed bit is clear.
#[test]
fn an_odd_packet_does_not_hide_those_behind_it() {
    let odd = |first: u8, length: u8| {
        [&[first], &b"\0\0\0\x01\x08original\x01c"[..], &[length], &vec![9; length.into()]].concat()
    };
    let hello = initial(1, ID, true, [ID, b"c"], b"", 0, &crypto(0, &example(b"h3")));
    let initial = [b"\xc0\0\0\0\x01\x08original\x01c\0\x10", &[9; 16][..]].concat();
    for packet in [odd(0xe0, 16), odd(0xe0, 0), odd(0xa0, 20), odd(0x90, 20), initial] {
        // The session has to know the protocol before.
        let steps = [(C, data(odd(0xe0, 20))), (C, data([&packet[..], &hello].concat()))];
        assert_eq!(hellos(&steps).0.len(), 1, "{packet:x?}");
    }
    assert!(run(Carrier::Datagrams, &[(C, data(odd(0xa0, 20))), (C, data(odd(0xe0, 16)))]).is_empty());
    // Ends that agreed on it clear the bit (RFC 9287), which the tag covers.
    let greased = greased(ID, 0, &crypto(0, &example(b"h3")));
    assert_eq!(hellos(&[(C, data(odd(0xe0, 20))), (C, data(greased))]).0.len(), 1);
}

#[test]
fn a_server_may_ask_for_another_hello() {
    let hello = example(b"h3");
    let asked = server_hello(0x0303, 0x1301, &RETRY, &[extension(43, &[3, 4])]);
    let (clients, servers) = hellos(&[
        (C, data(client(0, crypto(0, &hello)))),
        (S, data(server(0, &crypto(0, &asked)))),
        (C, data(client(1, crypto(hello.len(), &hello)))),
        (S, data(server(1, &crypto(asked.len(), &answer())))),
    ]);
    assert_eq!((clients.len(), servers.len(), servers[0].is_retry, servers[1].is_retry), (2, 2, true, false));
}

/// RFC 9368: the answer comes in another version, with keys of the same ID.
#[test]
fn a_server_may_answer_in_another_version() {
    let steps = [
        (C, data(client(0, crypto(0, &example(b"h3"))))),
        (S, data(initial(V2, ID, false, [b"c", b"s"], b"", 0, &crypto(0, &answer())))),
    ];
    let (clients, servers) = hellos(&steps);
    assert_eq!((clients[0].quic, servers[0].quic), (Some(1), Some(V2)));
}

#[test]
fn other_packets_of_a_datagram_are_stepped_over() {
    // 0-RTT and Handshake, each with 20 bytes behind its length.
    let long = |first: u8| [&[first], &b"\0\0\0\x01\x08original\x01c\x14"[..], &[9; 20]].concat();
    let hello = initial(1, ID, true, [ID, b"c"], b"", 0, &crypto(0, &example(b"h3")));
    let together = [long(0xd0), long(0xe0), hello.clone(), vec![0; 50]].concat();
    assert_eq!(hellos(&[(C, data(together))]).0.len(), 1);
    // Behind a packet without a length, and behind the most that are looked at, there is nothing.
    let short = [&[0x40], &hello[..]].concat();
    assert_eq!(hellos(&[(C, data(long(0xd0))), (C, data(short))]).0, []);
    let at = |before: usize| hellos(&[(C, data([long(0xd0).repeat(before), hello.clone()].concat()))]).0.len();
    assert_eq!((at(COALESCED - 1), at(COALESCED)), (1, 0));
}

#[test]
fn the_middle_of_a_connection_says_nothing() {
    let mut session = Session::new(Carrier::Datagrams);
    let events = feed(&mut session, S, [server(0, &crypto(0, &answer()))]);
    assert!(matches!(events[..], [Event::Identified(_)]));
    // The client has taken the server's ID.
    let late = initial(1, ID, true, [b"server", b"c"], b"", 1, &[2, 0, 0, 0, 0]);
    assert!(feed(&mut session, C, [late]).is_empty() && session.wants(C) && session.wants(S));
}

/// Frames that lie, and frames that no Initial packet has: what was before them counts, and what comes later.
#[test]
fn a_wrong_frame_costs_the_rest_of_its_packet() {
    let hello = example(b"h3");
    for wrong in [
        &b"\x06\0\x7f\xff"[..],
        b"\x06\xff\xff\xff\xff\xff\xff\xff\xff\x01a\x08",
        b"\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x02\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0",
        b"\x03\0\0\0\0\0",
        b"\x1c\0\0\0",
        b"\x08",
        b"\xc0",
    ] {
        let (first, rest) = hello.split_at(100);
        let lost = [&crypto(0, first)[..], wrong, &crypto(100, rest)].concat();
        let steps = [(C, data(client(0, lost))), (C, data(client(1, crypto(100, rest))))];
        assert_eq!(hellos(&steps).0.iter().map(|hello| hello.time_ns).collect::<Vec<_>>(), [1], "{wrong:x?}");
    }
    let ack = b"\x02\0\0\0\0";
    let many = [ack.repeat(FRAMES - 1), crypto(0, &hello)].concat();
    assert_eq!(hellos(&[(C, data(client(0, many.clone())))]).0.len(), 1);
    assert_eq!(hellos(&[(C, data(client(0, [&ack[..], &many].concat())))]).0.len(), 0);
    // Padding, PINGs, and both mixed.
    for run in [vec![0; 40_000], vec![1; 40_000], [1, 0, 0].repeat(9000)] {
        assert_eq!(hellos(&[(C, data(client(0, [run, crypto(0, &hello)].concat())))]).0.len(), 1);
    }
}

/// What a side may cost: each of these ends it.
#[test]
fn a_flood_is_given_up() {
    let over = |datagrams: Vec<Vec<u8>>| {
        let mut session = Session::new(Carrier::Datagrams);
        let count = datagrams.len();
        let mut events = feed(&mut session, C, datagrams[..count - 1].to_vec());
        assert!(session.wants(C), "one before the last");
        events.extend(feed(&mut session, C, datagrams[count - 1..].to_vec()));
        assert!(!session.wants(C) && session.wants(S));
        events.len() - 1
    };
    let initials = usize::from(INITIALS);
    // Packets that no key opens, several in a datagram; valid ones without a hello; packets that are no Initials.
    let wrong = initial(1, b"another", true, [ID, b"c"], b"", 0, &[0; 20]);
    assert_eq!(over([vec![wrong.repeat(4); initials / 4], vec![wrong.clone()]].concat()), 0);
    assert_eq!(over(vec![client(0, vec![1]); usize::from(DATAGRAMS)]), 0);
    assert_eq!(over(vec![b"\xe0\0\0\0\x01\0\0\x11aaaaaaaaaaaaaaaaa".to_vec(); usize::from(DATAGRAMS)]), 0);
    assert_eq!(over(vec![client(0, vec![1; 60_000]); BYTES / 60_000 + 1]), 0);
    // One run of bytes too many.
    let run = |at: usize| crypto(3 * at, b"x");
    let most = client(0, (1..=PIECES).flat_map(run).collect());
    assert_eq!(over(vec![most, client(1, crypto(4, b"x")), client(2, run(0))]), 0);
    // Hellos that are too long, another message, one that is none.
    for content in [[1, 0, 0x80, 1], [1, 1, 0, 0], [2, 0, 0, 0], [1, 0, 0, 0]] {
        assert_eq!(over(vec![client(0, crypto(0, &content))]), 0);
    }
    // A packet of nothing but hellos.
    assert_eq!(over(vec![client(0, crypto(0, &example(b"h3").repeat(9)))]), usize::from(HELLOS));
}

#[test]
fn the_longest_hello_is_read() {
    let extensions = [extension(21, &vec![0; HELLO - 100]), extension(16, b"\0\x03\x02h3")];
    let hello = crate::tls::hello(0x0303, &[0x1301], &extensions);
    assert!(hello.len() > HELLO - 100 && hello.len() < HELLO);
    let mut pieces: Vec<_> = hello.chunks(1000).enumerate().map(|(at, piece)| crypto(1000 * at, piece)).collect();
    pieces.reverse();
    let mut session = Session::new(Carrier::Datagrams);
    let datagrams = pieces.into_iter().zip(0..).map(|(piece, number)| client(number, piece));
    assert_eq!(feed(&mut session, C, datagrams).len(), 2);
}
