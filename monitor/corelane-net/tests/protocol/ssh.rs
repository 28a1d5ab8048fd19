//! SSH: version lines, offers, fingerprints, and which side is the client.

use crate::support::{C, S, Step, data, run};
use corelane_net::conversation::{Application, Side};
use corelane_net::protocol::ssh::{BEFORE, Handshake, LINE, PACKET, PACKETS, Peer};
use corelane_net::protocol::{Carrier, Event, Session};

/// A packet with the least padding that fits blocks of eight bytes.
fn packet(payload: &[u8]) -> Vec<u8> {
    let padding = 4 + (8 - (payload.len() + 9) % 8) % 8;
    let mut packet = ((payload.len() + padding + 1) as u32).to_be_bytes().to_vec();
    packet.push(padding as u8);
    packet.extend(payload);
    packet.resize(packet.len() + padding, 0);
    packet
}

/// KEXINIT with lists for key exchange, host key, and both directions of encryption, authentication, compression.
pub(crate) fn kexinit(lists: [&str; 8]) -> Vec<u8> {
    let mut payload = vec![20];
    payload.extend([7; 16]);
    for list in lists.iter().chain(&["", ""]) {
        payload.extend((list.len() as u32).to_be_bytes());
        payload.extend(list.as_bytes());
    }
    payload.extend([0; 5]);
    packet(&payload)
}

const LISTS: [&str; 8] = ["k1,k2", "h", "e-there", "e-back", "m-there", "m-back", "c-there", "c-back"];

fn handshake(steps: &[(Side, Step)]) -> Option<Handshake> {
    let mut handshakes = run(Carrier::Stream, steps).into_iter().filter_map(|event| match event {
        Event::Ssh(handshake) => Some(*handshake),
        _ => None,
    });
    let first = handshakes.next();
    assert_eq!(handshakes.next(), None, "a connection has one event");
    first
}

fn said(peer: &Option<Peer>) -> (&str, &str) {
    peer.as_ref().map_or(("", ""), |peer| (&*peer.protocol, &*peer.software))
}

fn text(peer: &Option<Peer>) -> Option<&str> {
    Some(&*peer.as_ref()?.hassh.as_ref()?.text)
}

fn hash(peer: &Option<Peer>) -> &str {
    &peer.as_ref().unwrap().hassh.as_ref().unwrap().hash
}

/// The example of the description (README.md of salesforce/hassh), and its hash.
#[test]
fn the_published_fingerprint() {
    let exchange = "curve25519-sha256@libssh.org,diffie-hellman-group-exchange-sha256,ecdh-sha2-nistp521,\
        ecdh-sha2-nistp384,ecdh-sha2-nistp256,diffie-hellman-group-exchange-sha1,diffie-hellman-group1-sha1,\
        diffie-hellman-group14-sha1,diffie-hellman-group14-sha256,diffie-hellman-group15-sha512,\
        diffie-hellman-group16-sha512,diffie-hellman-group17-sha512,diffie-hellman-group18-sha512,\
        diffie-hellman-group14-sha256@ssh.com,diffie-hellman-group15-sha256,diffie-hellman-group15-sha256@ssh.com,\
        diffie-hellman-group15-sha384@ssh.com,diffie-hellman-group16-sha256,diffie-hellman-group16-sha384@ssh.com,\
        diffie-hellman-group16-sha512@ssh.com,diffie-hellman-group18-sha512@ssh.com";
    let encryption = "aes128-cbc,aes128-ctr,aes192-cbc,aes192-ctr,aes256-cbc,aes256-ctr,blowfish-cbc,blowfish-ctr,\
        cast128-cbc,cast128-ctr,idea-cbc,idea-ctr,serpent128-cbc,serpent128-ctr,serpent192-cbc,serpent192-ctr,\
        serpent256-cbc,serpent256-ctr,3des-cbc,3des-ctr,twofish128-cbc,twofish128-ctr,twofish192-cbc,twofish192-ctr,\
        twofish256-cbc,twofish256-ctr,twofish-cbc,arcfour,arcfour128,arcfour256";
    let mac = "hmac-sha1,hmac-sha1-96,hmac-md5,hmac-md5-96,hmac-sha2-256,hmac-sha2-512";
    let lists = [exchange, "h", encryption, "other", mac, "other", "zlib@openssh.com,zlib,none", "other"];
    let found = handshake(&[
        (C, data("SSH-2.0-Cyberduck/6.7.1.28683 (Mac OS X/10.13.6) (x86_64)\r\n")),
        (C, data(kexinit(lists))),
    ]);
    let found = found.unwrap();
    assert_eq!(said(&found.client), ("2.0", "Cyberduck/6.7.1.28683"));
    assert_eq!(hash(&found.client), "8a8ae540028bf433cd68356c1b9e8d5b");
    assert_eq!(found.server, None);
}

#[test]
fn each_side_is_told_by_the_lists_of_its_direction() {
    let steps = [
        (S, data("Hello!\r\n SSH-2.0-no\nSSH-1.99-b comment\n")),
        (C, data("SSH-2.0-a-b\r\n")),
        (C, data([packet(&[2, 0, 0, 0, 0]), kexinit(LISTS)].concat())),
        (S, data(kexinit(LISTS))),
        (C, data(packet(&[30, 1, 2, 3]))),
        (S, data("never looked at")),
    ];
    let found = handshake(&steps).unwrap();
    assert_eq!((said(&found.client), said(&found.server)), (("2.0", "a-b"), ("1.99", "b")));
    assert_eq!(text(&found.client), Some("k1,k2;e-there;m-there;c-there"));
    assert_eq!(text(&found.server), Some("k1,k2;e-back;m-back;c-back"));
    assert_eq!((found.client_side, found.time_ns), (C, 4));
    // What is known is told at once, and nothing is kept.
    let mut session = Session::new(Carrier::Stream);
    let mut events = Vec::new();
    for (side, step) in &steps[..5] {
        let Step::Data(bytes) = step else { panic!() };
        assert!(session.wants(*side) && events.len() < 2);
        session.data(*side, 0, bytes, &mut events);
    }
    assert!(events.len() == 2 && !session.wants(C) && !session.wants(S) && session.heap_bytes() == 0);
}

#[test]
fn the_client_is_the_side_that_acts_as_one() {
    let begin = |from: Side, exchange: &str| {
        let lists = [exchange, "", "x", "y", "x", "y", "x", "y"];
        vec![
            (C, data("SSH-2.0-opened\n")),
            (S, data("SSH-2.0-answered\n")),
            (from, data(kexinit(lists))),
            (from.other(), data(kexinit(LISTS))),
        ]
    };
    let client = |steps: Vec<(Side, Step)>| handshake(&steps).map(|found| found.client_side);
    assert_eq!(client(begin(S, "a,ext-info-c")), Some(S));
    assert_eq!(client(begin(C, "a,kex-strict-s-v00@openssh.com")), Some(S));
    assert_eq!(client(begin(C, "a")), Some(C), "the one that opened, where nothing shows it");
    for (kind, of_client) in [(30, true), (31, false), (32, true), (33, false), (34, true)] {
        for side in Side::BOTH {
            let mut steps = begin(C, "a");
            steps.push((side, data(packet(&[kind, 0]))));
            assert_eq!(client(steps), Some(if of_client { side } else { side.other() }), "{kind}");
        }
    }
    // With GSS the server sends 32 and 34.
    for (kind, client_side) in [(30, S), (31, C), (32, C), (33, C), (34, C)] {
        for exchange in ["gss-group14-sha256-x==,a", "a,gss-group14-sha256-x=="] {
            let mut steps = begin(S, exchange);
            steps.push((S, data(packet(&[kind, 0]))));
            assert_eq!(client(steps), Some(client_side), "{kind} with {exchange}");
        }
    }
}

#[test]
fn what_is_seen_of_one_side_is_told_without_the_other() {
    // A gap ends a side, an end tells what there is.
    let lost = [
        (S, data("SSH-2.0-b\r\n")),
        (S, Step::Gap(9)),
        (S, data(kexinit(LISTS))),
        (C, data("SSH-2.0-a\r\n")),
        (C, data(kexinit(LISTS))),
    ];
    let found = handshake(&lost).unwrap();
    assert_eq!((said(&found.client), said(&found.server)), (("2.0", "a"), ("2.0", "b")));
    assert!(text(&found.client).is_some() && text(&found.server).is_none());
    let picked_up = [(C, data("?")), (C, Step::Gap(9)), (C, data("SSH-2.0-a\r\n")), (C, data(kexinit(LISTS)))];
    assert!(text(&handshake(&picked_up).unwrap().client).is_some(), "a gap before the first line");
    // Of SSH 1 there is no more than the version.
    for (client, server) in [("1.5", "1.5"), ("1.5", "1.99"), ("1.99", "1.5")] {
        let old = [(S, data(format!("SSH-{server}-b\n"))), (C, data(format!("SSH-{client}-a\n")))];
        let found = handshake(&old).unwrap();
        assert_eq!((said(&found.client), said(&found.server)), ((client, "a"), (server, "b")));
        let mut session = Session::new(Carrier::Stream);
        for (side, step) in &old {
            let Step::Data(bytes) = step else { panic!() };
            session.data(*side, 0, bytes, &mut Vec::new());
        }
        assert!(!session.wants(C) && !session.wants(S));
    }
}

#[test]
fn what_is_too_long_or_no_packet_ends_a_side() {
    let after = |bytes: &[u8]| {
        let steps = [(C, data("SSH-2.0-a\r\n")), (C, data(bytes)), (C, data(kexinit(LISTS)))];
        text(&handshake(&steps).unwrap().client).is_some()
    };
    assert!(after(b"") && after(&packet(&[4, 1]).repeat(usize::from(PACKETS) - 1)));
    assert!(!after(&packet(&[4, 1]).repeat(usize::from(PACKETS))));
    assert!(!after(&packet(&[21])), "another message than KEXINIT");
    assert!(!after(&[0, 0, 0, 1, 0, 20]), "no room for its kind");
    assert!(!after(&[0, 0, 0, 20, 19, 20]), "all of it is padding");
    let whole = |length: usize| {
        let list = "x".repeat(length);
        let mut lists = LISTS;
        lists[1] = &list;
        let packet = kexinit(lists);
        let long = packet.len() > PACKET;
        let found = handshake(&[(C, data("SSH-2.0-a\r\n")), (C, data(packet))]).unwrap();
        (text(&found.client).is_some(), long)
    };
    assert_eq!((whole(PACKET - 200), whole(PACKET)), ((true, false), (false, true)));
    let mut odd = LISTS;
    odd[4] = "m\u{e9}";
    assert!(text(&handshake(&[(C, data("SSH-2.0-a\r\n")), (C, data(kexinit(odd)))]).unwrap().client).is_none());

    let software = "x".repeat(LINE - 10);
    assert!(handshake(&[(C, data(format!("SSH-2.0-{software}\r\n")))]).is_some());
    assert!(handshake(&[(C, data(format!("SSH-2.0-{software}x\r\n")))]).is_none());
    let server = |before: usize| {
        let steps = [(C, data("SSH-2.0-a\n")), (S, data("x".repeat(before - 1) + "\nSSH-2.0-b\n"))];
        handshake(&steps).unwrap().server.is_some()
    };
    assert!(server(BEFORE) && !server(BEFORE + 1));
}
