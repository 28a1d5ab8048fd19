//! TLS: hellos over records and segments, gaps, and the published fingerprints.

use crate::support::{C, S, Step, data, run};
use corelane_net::conversation::Side;
use corelane_net::protocol::tls::{ClientHello, ServerHello};
use corelane_net::protocol::{Carrier, Event};

/// Bytes behind their length in so many bytes.
fn counted<const N: usize>(bytes: &[u8]) -> Vec<u8> {
    let mut whole = bytes.len().to_be_bytes()[8 - N..].to_vec();
    whole.extend_from_slice(bytes);
    whole
}

fn words(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

pub(crate) fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [kind.to_be_bytes().to_vec(), counted::<2>(content)].concat()
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [vec![kind, 3, 1], counted::<2>(content)].concat()
}

fn message(kind: u8, content: &[u8]) -> Vec<u8> {
    [vec![kind], counted::<3>(content)].concat()
}

pub(crate) fn hello(version: u16, ciphers: &[u16], extensions: &[Vec<u8>]) -> Vec<u8> {
    let content = [
        version.to_be_bytes().to_vec(),
        vec![7; 32],
        counted::<1>(&[9; 32]),
        counted::<2>(&words(ciphers)),
        counted::<1>(&[0]),
        counted::<2>(&extensions.concat()),
    ];
    message(1, &content.concat())
}

fn names(names: &[&[u8]]) -> Vec<u8> {
    extension(16, &counted::<2>(&names.iter().flat_map(|name| counted::<1>(name)).collect::<Vec<_>>()))
}

pub(crate) fn host(name: &str) -> Vec<u8> {
    extension(0, &counted::<2>(&[vec![0], counted::<2>(name.as_bytes())].concat()))
}

fn signatures(values: &[u16]) -> Vec<u8> {
    extension(13, &counted::<2>(&words(values)))
}

pub(crate) fn versions(values: &[u16]) -> Vec<u8> {
    extension(43, &counted::<1>(&words(values)))
}

const CIPHERS: [u16; 16] = [
    0x4a4a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d,
    0x002f, 0x0035,
];
const SIGNATURES: [u16; 8] = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];

/// The random bytes of a ServerHello that asks for another ClientHello.
pub(crate) const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// The ClientHello of the example in the description of JA4, with values of GREASE where browsers put them.
pub(crate) fn example(first_protocol: &[u8]) -> Vec<u8> {
    let empty = |kind: u16| extension(kind, &[]);
    let extensions = [
        empty(0x1a1a),
        extension(0x001b, &[2, 0, 2]),
        host("example.org"),
        extension(0x0033, &counted::<2>(&[0x2a, 0x2a, 0, 1, 0])),
        names(&[first_protocol, b"http/1.1"]),
        empty(0x4469),
        empty(0x0017),
        extension(0x002d, &[1, 1]),
        signatures(&SIGNATURES),
        extension(0x0005, &[1, 0, 0, 0, 0]),
        empty(0x0023),
        empty(0x0012),
        versions(&[0x3a3a, 0x0304, 0x0303]),
        extension(0xff01, &[0]),
        extension(0x000b, &[1, 0]),
        extension(0x000a, &counted::<2>(&words(&[0x2a2a, 29, 23]))),
        extension(0x0015, &[0; 30]),
        extension(0x5a5a, &[0]),
    ];
    hello(0x0303, &CIPHERS, &extensions)
}

/// A record with a whole ClientHello.
pub(crate) fn client_hello() -> Vec<u8> {
    record(22, &example(b"h2"))
}

pub(crate) fn server_hello(version: u16, cipher: u16, random: &[u8; 32], extensions: &[Vec<u8>]) -> Vec<u8> {
    let content = [
        version.to_be_bytes().to_vec(),
        random.to_vec(),
        counted::<1>(&[9; 32]),
        cipher.to_be_bytes().to_vec(),
        vec![0],
        counted::<2>(&extensions.concat()),
    ];
    message(2, &content.concat())
}

/// A record with a whole ServerHello.
pub(crate) fn server_hello_record() -> Vec<u8> {
    record(22, &server_hello(0x0303, 0xc02f, &[3; 32], &[]))
}

fn hellos(steps: &[(Side, Step)]) -> (Vec<ClientHello>, Vec<ServerHello>) {
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    for event in run(Carrier::Stream, steps) {
        match event {
            Event::ClientHello(hello) => clients.push(*hello),
            Event::ServerHello(hello) => servers.push(*hello),
            _ => {}
        }
    }
    (clients, servers)
}

fn ja4(message: &[u8]) -> String {
    let (clients, _) = hellos(&[(C, data(record(22, message)))]);
    clients[0].ja4.as_deref().unwrap().to_owned()
}

#[test]
fn a_client_hello_says_what_it_offers() {
    let (clients, servers) = hellos(&[(C, data(client_hello()))]);
    let [hello] = &clients[..] else { panic!("{clients:?}") };
    assert!(servers.is_empty());
    assert_eq!(hello.server_name.as_deref(), Some("example.org"));
    assert_eq!(hello.protocols.iter().map(|name| &**name).collect::<Vec<_>>(), ["h2", "http/1.1"]);
    assert_eq!((hello.legacy_version, &hello.versions[..]), (0x0303, &[0x0304, 0x0303][..]));
    assert_eq!(hello.ciphers, CIPHERS);
    assert_eq!(hello.signatures, SIGNATURES);
    assert_eq!((hello.extensions.len(), hello.extensions[1], hello.client), (18, 0x001b, C));
}

/// A name that is none of DNS would be kept as long as its answer is awaited, and written.
#[test]
fn of_a_name_as_many_bytes_are_kept_as_dns_has() {
    for (length, kept) in [(255, 255), (256, 255), (16_000, 255)] {
        let name = "\u{1}".repeat(length);
        let (clients, _) = hellos(&[(C, data(record(22, &hello(0x0303, &CIPHERS, &[host(&name)]))))]);
        assert_eq!(clients[0].server_name.as_deref(), Some(&name[..kept]));
    }
    // A letter that is cut is none.
    let (clients, _) = hellos(&[(C, data(record(22, &hello(0x0303, &CIPHERS, &[host(&"é".repeat(200))]))))]);
    assert_eq!(clients[0].server_name.as_deref(), Some(&*("\\xc3\\xa9".repeat(127) + "\\xc3")));
}

/// From the description of JA4 (technical_details/JA4.md) and from the expected outputs in FoxIO's repository for the
/// same client with other protocol names.
#[test]
fn the_published_fingerprints() {
    assert_eq!(ja4(&example(b"h2")), "t13d1516h2_8daaf6152771_e5627efa2ab1");
    assert_eq!(ja4(&example(b"http/1.1")), "t13d1516h1_8daaf6152771_e5627efa2ab1");
    // The same extensions without signature algorithms have a published hash too, but 000d is in its list: only an
    // empty extension gives that.
    let ciphers = &[
        0x1301, 0x1303, 0x1302, 0xc02b, 0xc02f, 0xcca9, 0xcca8, 0xc02c, 0xc030, 0xc00a, 0xc009, 0xc013, 0xc014, 0x009c,
        0x009d, 0x002f, 0x0035,
    ];
    let signature = [0x0403, 0x0503, 0x0603, 0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601, 0x0203, 0x0201];
    let empty = |kind: u16| extension(kind, &[]);
    let firefox = hello(
        0x0303,
        ciphers,
        &[
            host("contile.services.mozilla.com"),
            empty(0x17),
            extension(0xff01, &[0]),
            extension(0x0a, &counted::<2>(&words(&[29]))),
            extension(0x0b, &[1, 0]),
            empty(0x23),
            names(&[b"h2"]),
            extension(5, &[1, 0, 0, 0, 0]),
            extension(0x22, &[0, 2, 4, 3]),
            extension(0x33, &counted::<2>(&[])),
            versions(&[0x0304, 0x0303]),
            signatures(&signature),
            extension(0x2d, &[1, 1]),
            extension(0x1c, &[0x40, 1]),
            extension(0x15, &[0]),
        ],
    );
    assert_eq!(ja4(&firefox), "t13d1715h2_5b57614c22b0_3d5424432f57");
}

/// The examples of its description, and values of GREASE, which are left out.
#[test]
fn the_older_fingerprint() {
    let ja3 = |message: &[u8]| {
        let (clients, _) = hellos(&[(C, data(record(22, message)))]);
        let ja3 = clients[0].ja3().unwrap();
        (ja3.string, ja3.hash)
    };
    let ciphers = [47, 53, 5, 10, 49161, 49162, 49171, 49172, 50, 56, 19, 4];
    let groups = extension(10, &counted::<2>(&words(&[23, 24, 25])));
    let first =
        ("769,47-53-5-10-49161-49162-49171-49172-50-56-19-4,0-10-11,23-24-25,0", "ada70206e40642a3e4461f35503241d5");
    let message = hello(0x0301, &ciphers, &[host("a"), groups, extension(11, &[1, 0])]);
    assert_eq!(ja3(&message), (first.0.into(), first.1.into()));
    let greased = [
        extension(0x1a1a, &[]),
        host("a"),
        extension(10, &counted::<2>(&words(&[0x2a2a, 23, 24, 25]))),
        extension(11, &[1, 0]),
        extension(0xbaba, &[0]),
    ];
    let ciphers: Vec<u16> = [0xcaca].into_iter().chain(ciphers).collect();
    assert_eq!(ja3(&hello(0x0301, &ciphers, &greased)), (first.0.into(), first.1.into()));
    let second = ("769,4-5-10-9-100-98-3-6-19-18-99,,,", "de350869b8c85de67a350c8d186f11e6");
    let message = hello(0x0301, &[4, 5, 10, 9, 100, 98, 3, 6, 19, 18, 99], &[]);
    assert_eq!(ja3(&message), (second.0.into(), second.1.into()));
    let answer = [65281, 0, 11, 35, 5, 16].map(|kind| extension(kind, &[]));
    let (_, servers) = hellos(&[(S, data(record(22, &server_hello(0x0301, 47, &[3; 32], &answer))))]);
    let ja3s = servers[0].ja3s();
    assert_eq!((&*ja3s.string, &*ja3s.hash), ("769,47,65281-0-11-35-5-16", "836ce314215654b5b1f85f97c73e506f"));
    // The version of both is that of the head.
    let (_, servers) =
        hellos(&[(S, data(record(22, &server_hello(0x0303, 0x1301, &[3; 32], &[extension(43, &[3, 4])]))))]);
    assert_eq!(servers[0].ja3s().string, "771,4865,43");
}

#[test]
fn an_encrypted_hello_is_marked() {
    let is_ech = |content: &[u8]| {
        let message = hello(0x0303, &CIPHERS, &[host("public.example"), extension(0xfe0d, content)]);
        let (clients, _) = hellos(&[(C, data(record(22, &message)))]);
        assert_eq!(clients[0].server_name.as_deref(), Some("public.example"));
        clients[0].is_ech
    };
    let outer = [&[0, 0, 1, 0, 1, 7][..], &counted::<2>(&[9; 32]), &counted::<2>(&[8; 144])].concat();
    assert_eq!([is_ech(&outer), is_ech(&[1]), is_ech(&[])], [true, false, false]);
}

#[test]
fn the_two_characters_of_a_protocol_name() {
    // The table of the description.
    #[rustfmt::skip]
    let table: [(&[u8], &str); 10] = [
        (b"h2", "h2"), (b"x", "xx"), (&[0xab], "ab"), (&[0x20], "20"), (&[0xab, 0xcd], "ad"), (&[0x20, 0x61], "21"), (&[0x30, 0xab], "3b"),
        (&[0x61, 0x20], "60"), (&[0x30, 0x31, 0xab, 0xcd], "3d"), (&[0x30, 0xab, 0xcd, 0x31], "01"),
    ];
    for (name, expected) in table {
        assert_eq!(&ja4(&hello(0x0303, &[1], &[names(&[name])]))[8..10], expected, "{name:x?}");
    }
    assert_eq!(&ja4(&hello(0x0303, &[1], &[]))[8..10], "00");
    assert_eq!(&ja4(&hello(0x0303, &[1], &[names(&[])]))[8..10], "00");
}

#[test]
fn fingerprints_of_little() {
    assert_eq!(ja4(&hello(0x0301, &[0x0a0a], &[])), "t10i000000_000000000000_000000000000");
    assert_eq!(&ja4(&hello(0x0302, &[0x00ff, 0x5600], &[host("a")]))[..10], "t11d020100");
    assert_eq!(&ja4(&hello(0x0300, &(0..120).collect::<Vec<_>>(), &[]))[..10], "ts3i990000");
    assert_eq!(&ja4(&hello(0x0303, &[1], &[versions(&[0x0a0a, 0x7f17])]))[..3], "t00");
}

#[test]
fn a_server_hello_says_what_was_chosen() {
    let old = server_hello(0x0303, 0xc02f, &[3; 32], &[names(&[b"http/1.1"])]);
    let new = server_hello(0x0303, 0x1301, &[3; 32], &[extension(43, &[3, 4])]);
    let (_, servers) = hellos(&[(C, data(client_hello())), (S, data(record(22, &old)))]);
    assert_eq!(
        (servers[0].version, servers[0].cipher, servers[0].protocol.as_deref()),
        (0x0303, 0xc02f, Some("http/1.1"))
    );
    let (_, servers) = hellos(&[(S, data(record(22, &new))), (C, data(client_hello()))]);
    assert_eq!(
        (servers[0].version, servers[0].cipher, servers[0].server, servers[0].is_retry),
        (0x0304, 0x1301, S, false)
    );
}

#[test]
fn old_clients_begin_in_the_form_of_ssl_2() {
    let lists = [vec![0, 12, 0, 0, 0, 16], vec![0, 0, 0x35, 7, 0, 0xc0, 0, 0x13, 1, 0, 0, 0xff], vec![9; 16]].concat();
    let hello = [counted::<2>(&[vec![1, 3, 1], lists].concat()), record(20, &[1])].concat();
    let hello = [&[hello[0] | 0x80], &hello[1..]].concat();
    let server = record(22, &server_hello(0x0301, 0x35, &[1; 32], &[]));
    let (clients, servers) = hellos(&[(C, data(&hello)), (S, data(server))]);
    let [client] = &clients[..] else { panic!("{clients:?}") };
    assert_eq!((client.legacy_version, &client.ciphers[..], &client.ja4), (0x0301, &[0x35, 0x1301, 0xff][..], &None));
    assert_eq!(servers.len(), 1);
    // A length that its lists do not have.
    let wrong = [&hello[..1], &[hello[1] + 1], &hello[2..], &[0]].concat();
    assert_eq!(hellos(&[(C, data(wrong))]).0.len(), 0);
}

#[test]
fn a_retry_brings_a_second_client_hello() {
    let retry = server_hello(0x0303, 0x1301, &RETRY, &[extension(43, &[3, 4])]);
    let (clients, servers) = hellos(&[
        (C, data(client_hello())),
        (S, data(record(22, &retry))),
        (C, data([record(20, &[1]), client_hello()].concat())),
    ]);
    assert_eq!((clients.len(), servers.len(), servers[0].is_retry), (2, 1, true));
}

#[test]
fn a_hello_may_lie_in_several_records_and_a_record_hold_several_messages() {
    let message = example(b"h2");
    let answer = server_hello(0x0303, 1, &[1; 32], &[]);
    for length in [1, 2, 5, 6, 50] {
        let cut = |message: &[u8]| message.chunks(length).flat_map(|part| record(22, part)).collect::<Vec<u8>>();
        let steps = [(C, data(cut(&message))), (S, data(cut(&answer)))];
        for steps in [&steps[..], &steps[..1], &steps[1..]] {
            let (clients, servers) = hellos(steps);
            assert_eq!(clients.len() + servers.len(), steps.len(), "{length}");
        }
    }
    // Nothing of a hello is behind the first record.
    assert_eq!(run(Carrier::Stream, &[(C, data([record(22, &[1, 0, 0]), record(23, b"abc")].concat()))]), []);
    let hello = server_hello(0x0303, 1, &[1; 32], &[]);
    let together = [crate::tls::message(0, b""), crate::tls::message(11, &[0; 700]), hello.clone()].concat();
    // The first record begins with a ServerHello, so that it is known as TLS.
    let (_, servers) = hellos(&[(S, data([record(22, &hello), record(22, &together)].concat()))]);
    assert_eq!(servers.len(), 2);
}

#[test]
fn nothing_is_read_behind_application_data_or_of_a_wrong_record() {
    for wrong in [record(23, b"abc"), record(99, b"abc"), [22, 9, 9, 0, 1, 0].to_vec(), [22, 3, 3, 0xff, 0xff].to_vec()]
    {
        let (clients, _) = hellos(&[(C, data([client_hello(), wrong, client_hello()].concat()))]);
        assert_eq!(clients.len(), 1);
    }
}

#[test]
fn a_gap_inside_a_record_is_skipped() {
    let certificate = record(22, &message(11, &[0; 600]));
    let hello = record(22, &server_hello(0x0303, 1, &[1; 32], &[]));
    let steps = [
        (C, data(client_hello())),
        (S, data(&certificate[..100])),
        (S, Step::Gap(400)),
        (S, data(&certificate[500..])),
        (S, data(&hello)),
    ];
    assert_eq!(hellos(&steps).1.len(), 1);
    let to_the_end = [
        (C, data(client_hello())),
        (S, data(&certificate[..100])),
        (S, Step::Gap(certificate.len() as u64 - 100)),
        (S, data(&hello)),
    ];
    assert_eq!(hellos(&to_the_end).1.len(), 1);
    let beyond = [(C, data(client_hello())), (S, data(&certificate[..100])), (S, Step::Gap(9_000)), (S, data(&hello))];
    assert_eq!(hellos(&beyond).1.len(), 0);
    // A hello that a gap has hit is not made of what is left.
    let hit = [(C, data(client_hello())), (S, data(&hello[..20])), (S, Step::Gap(10)), (S, data(&hello[30..]))];
    assert_eq!(hellos(&hit).1.len(), 0);
}

#[test]
fn a_hello_that_is_too_long_is_stepped_over() {
    let padded = hello(0x0303, &CIPHERS, &[extension(21, &vec![0; 60_000])]);
    let records: Vec<u8> = padded.chunks(16_384).flat_map(|part| record(22, part)).collect();
    let (clients, _) = hellos(&[(C, data([records, client_hello()].concat()))]);
    assert_eq!(clients.len(), 1);
}
