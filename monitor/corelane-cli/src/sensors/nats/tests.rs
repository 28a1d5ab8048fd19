//! Both ends with a real server, which each test starts on a port and in a folder of its own.

#[path = "../../../tests/support/nats_server.rs"]
mod nats_server;

use super::super::engine::{Engine, EngineError, Read};
use super::super::log::segments;
use super::super::spool::{Full, LEAST_BYTES, Spool, SpoolError};
use super::*;
use futures_util::StreamExt;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A NATS server with JetStream, which ends with the test.
struct TestServer {
    process: nats_server::Server,
    /// It goes after the process, whose store and words it has.
    _folder: tempfile::TempDir,
}

impl TestServer {
    /// Starts one; says that there is none otherwise.
    fn start(arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let process = nats_server::Server::start(&folder.path().join("store"), arguments)?;
        Some(TestServer { process, _folder: folder })
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.process.port)
    }

    fn reader(&self) -> Nats {
        let mut reader = Nats::new(&self.url(), &NatsOptions::default()).unwrap();
        reader.begin(None).unwrap();
        reader
    }

    fn sender(&self, folder: &Path, sensor: &str) -> Sender {
        Sender::start(&self.url(), &NatsOptions::default(), folder, sensor).unwrap()
    }
}

/// Another client of the server.
struct Client {
    context: jetstream::Context,
    driver: Driver,
}

impl Client {
    fn connect(server: &TestServer) -> Self {
        let driver = Driver::start().unwrap();
        let connect = async { async_nats::connect(server.url()).await.unwrap() };
        let context = driver.handle.block_on(async { jetstream::new(connect.await) });
        Client { context, driver }
    }

    fn publish(&self, subject: &str, headers: &[(&str, &str)], bytes: &[u8]) {
        let mut map = async_nats::HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, *value);
        }
        let bytes = bytes.to_vec().into();
        self.driver.handle.block_on(async {
            self.context.publish_with_headers(subject.to_string(), map, bytes).await.unwrap().await.unwrap();
        });
    }

    fn state(&self) -> async_nats::jetstream::stream::State {
        self.driver
            .handle
            .block_on(async { self.context.get_stream("corelane-batches").await.unwrap().cached_info().state.clone() })
    }

    fn purge(&self) {
        self.driver.handle.block_on(async {
            self.context.get_stream("corelane-batches").await.unwrap().purge().await.unwrap();
        });
    }
}

fn spool(folder: &Path, sensor: &str) -> Spool {
    let mut spool = Spool::open(folder, sensor, 64 << 20, Full::Wait).unwrap();
    if spool.last().is_none() {
        spool.begin(1).unwrap();
    }
    spool
}

fn append(spool: &mut Spool, numbers: std::ops::Range<u64>) {
    for number in numbers {
        spool.append(&number.to_le_bytes()).unwrap();
    }
}

fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_true() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The next batch as bytes.
fn next(reader: &mut Nats) -> Vec<u8> {
    match reader.next(LIMIT).unwrap() {
        Read::Batch(batch) => batch,
        Read::Nothing => panic!("nothing came: {:?}", reader.error()),
    }
}

/// The sequence of the message that was read last.
fn sequence(reader: &Nats) -> u64 {
    u64::from_le_bytes(reader.position()[9..17].try_into().unwrap())
}

/// Reads all that is in the stream.
fn read_bytes(server: &TestServer, reader: &mut Nats) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let end = Instant::now() + LIMIT;
    let state = Client::connect(server).state();
    while state.messages > 0 && sequence(reader) < state.last_sequence {
        assert!(Instant::now() < end, "{:?}", reader.error());
        if let Read::Batch(batch) = reader.next(Duration::from_millis(10)).unwrap() {
            found.push(batch);
        }
    }
    found
}

/// The numbers of all batches in the stream, as often as they come.
fn read_all(server: &TestServer, reader: &mut Nats) -> Vec<u64> {
    let numbers = read_bytes(server, reader).into_iter().map(|batch| u64::from_le_bytes(batch.try_into().unwrap()));
    numbers.collect()
}

/// Waits until the reader has made the stream, and knows that there is nothing in it.
fn wait_for_nothing(reader: &mut Nats) {
    wait_until("the stream is made", || {
        assert_eq!(reader.next(Duration::from_millis(5)).unwrap(), Read::Nothing);
        reader.is_caught_up()
    });
}

/// Checks that nothing is missing and nothing comes before its turn, but for what comes again.
fn check_order(found: &[u64], count: u64) {
    let mut next = 0;
    for &number in found {
        assert!(number <= next, "{number} came where {next} was missing");
        next = next.max(number + 1);
    }
    assert_eq!(next, count);
}

#[test]
fn batches_go_over_a_server_in_their_order() {
    let Some(server) = TestServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut reader = server.reader();
    wait_for_nothing(&mut reader);
    let mut a = spool(folder.path(), "a");
    append(&mut a, 0..1000);
    let sender = server.sender(folder.path(), "a");
    check_order(
        &(0..1000).map(|_| u64::from_le_bytes(next(&mut reader).try_into().unwrap())).collect::<Vec<_>>(),
        1000,
    );
    append(&mut a, 1000..3000);
    assert!(sender.finish(LIMIT));
    let position = reader.position();
    let found = read_all(&server, &mut reader);
    assert_eq!(found, (1000..3000).collect::<Vec<_>>());
    // Another that goes on at a position, and one that begins anew.
    let mut other = server.reader();
    other.begin(Some(&position)).unwrap();
    assert_eq!(read_all(&server, &mut other), found);
    assert_eq!(other.position(), reader.position());
    other.begin(None).unwrap();
    assert_eq!(read_all(&server, &mut other), (0..3000).collect::<Vec<_>>());
    assert_eq!((other.damaged(), other.position()), (0, reader.position()));
    assert!(matches!(other.begin(Some(b"f")), Err(EngineError::Position)));
    // The spool is trimmed; a sender that starts again does not send anything twice.
    let sender = server.sender(folder.path(), "a");
    append(&mut a, 3000..3001);
    assert!(sender.finish(LIMIT));
    assert_eq!(read_all(&server, &mut reader), [3000]);
    assert_eq!(Client::connect(&server).state().messages, 3001);
}

#[test]
fn the_longest_batches_of_several_sensors_and_the_trimmed_spool() {
    let Some(server) = TestServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut reader = server.reader();
    let mut ends = Vec::new();
    for name in ["a", "b_2", "C-3"] {
        let mut spool = Spool::open(folder.path(), name, 8 << 20, Full::Wait).unwrap();
        spool.begin(9).unwrap();
        ends.push((spool, server.sender(folder.path(), name)));
    }
    for round in 0..24_u8 {
        for (number, (spool, _)) in (0..).zip(&mut ends) {
            let batch = vec![round * 3 + number; super::super::log::MOST_BATCH];
            // The spool has room for 15, so the rest can only go once some are acknowledged.
            wait_until("room", || match spool.append(&batch) {
                Ok(_) => true,
                Err(SpoolError::Full) => false,
                Err(error) => panic!("{error}"),
            });
        }
    }
    let mut found = (0..72).map(|_| next(&mut reader)).collect::<Vec<_>>();
    found.sort_unstable();
    for (number, batch) in (0..).zip(found) {
        assert!(batch == vec![number; super::super::log::MOST_BATCH], "{number}");
    }
    for (spool, sender) in ends {
        let state = sender.state();
        assert!(state.is_connected, "{state:?}");
        assert!(sender.finish(LIMIT));
        assert_eq!(spool.last(), Some((9, 23)));
        let last = segments(&folder.path().join("a")).unwrap();
        assert_eq!(last.len(), 1, "{last:?}");
    }
}

#[test]
fn a_server_that_comes_later_or_is_killed_delays_and_loses_nothing() {
    let Some(mut server) = TestServer::start(&[]) else { return };
    server.process.kill();
    let folder = tempfile::tempdir().unwrap();
    let mut reader = server.reader();
    let sender = server.sender(folder.path(), "a");
    let mut spool = spool(folder.path(), "a");
    wait_until("an error is said", || sender.state().error.is_some_and(|error| !error.contains("not connected yet")));
    assert!(!reader.is_connected() && !reader.is_caught_up() && !sender.state().is_connected);
    server.process.restart();

    let count = 20_000;
    let mut found = Vec::new();
    let is_written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            append(&mut spool, 0..count);
            is_written.store(true, Ordering::Release);
        });
        for round in 1..=4 {
            // It is killed while much is under way.
            let end = Instant::now() + LIMIT;
            while (found.len() as u64) < round * count / 10 {
                assert!(Instant::now() < end, "{} {:?} {:?}", found.len(), reader.error(), sender.state());
                if let Read::Batch(batch) = reader.next(Duration::from_millis(50)).unwrap() {
                    found.push(u64::from_le_bytes(batch.try_into().unwrap()));
                }
            }
            server.process.kill();
            wait_until("the reader says so", || !reader.is_connected());
            assert!(!reader.is_caught_up());
            server.process.restart();
        }
    });
    assert!(is_written.load(Ordering::Acquire));
    let state = sender.state();
    assert!(sender.finish(LIMIT), "{state:?}");
    found.extend(read_all(&server, &mut reader));
    check_order(&found, count);
    assert!(state.retries >= 1, "{state:?}");
    // A reader that sees the whole history at once.
    check_order(&read_all(&server, &mut server.reader()), count);
}

#[test]
fn what_does_not_fit_into_the_stream_waits_in_the_spool() {
    let Some(server) = TestServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = NatsOptions { stream_bytes: Some(1 << 20), ..NatsOptions::default() };
    let mut spool = spool(folder.path(), "a");
    let sender = Sender::start(&server.url(), &options, folder.path(), "a").unwrap();
    for number in 0..20_u8 {
        spool.append(&[number; 100_000]).unwrap();
    }
    wait_until("it is said", || sender.state().error.is_some_and(|error| error.contains("maximum bytes")));
    let state = sender.state();
    assert!(state.is_connected && state.batches < 11, "{state:?}");
    let mut reader = server.reader();
    let mut found = Vec::new();
    let client = Client::connect(&server);
    // Two times is not enough for all.
    for _ in 0..3 {
        let kept = client.state().messages;
        for _ in 0..kept {
            found.push(next(&mut reader)[0]);
        }
        client.purge();
        let before = sender.state().batches;
        wait_until("it goes on", || sender.state().batches > before || before == 20);
        wait_until("it is full again", || {
            let state = sender.state();
            state.batches == 20 || state.error.is_some()
        });
    }
    assert!(sender.finish(LIMIT));
    while let Read::Batch(batch) = reader.next(Duration::from_millis(200)).unwrap() {
        found.push(batch[0]);
    }
    check_order(&found.iter().map(|&number| u64::from(number)).collect::<Vec<_>>(), 20);
}

#[test]
fn a_sender_that_is_told_to_finish_without_a_server_says_that_it_could_not() {
    let folder = tempfile::tempdir().unwrap();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    append(&mut spool(folder.path(), "a"), 0..1);
    let url = format!("nats://127.0.0.1:{port}");
    let sender = Sender::start(&url, &NatsOptions::default(), folder.path(), "a").unwrap();
    assert!(!sender.finish(Duration::from_millis(300)));
    let mut reader = Nats::new(&url, &NatsOptions::default()).unwrap();
    assert_eq!(reader.next(Duration::from_millis(10)).unwrap(), Read::Nothing);
    assert!(!reader.is_caught_up());
    assert!(matches!(reader.load(0..=255), Err(EngineError::Disconnected(..))));
}

#[test]
fn a_token_lets_in_and_a_wrong_one_does_not() {
    let Some(server) = TestServer::start(&["--auth", "right"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut spool = spool(folder.path(), "a");
    append(&mut spool, 0..3);
    for token in [None, Some("wrong".to_string())] {
        let options = NatsOptions { token, ..NatsOptions::default() };
        let sender = Sender::start(&server.url(), &options, folder.path(), "a").unwrap();
        wait_until("it is refused", || {
            sender.state().error.is_some_and(|error| error.to_lowercase().contains("authorization"))
        });
        assert!(!sender.finish(Duration::ZERO));
    }
    let options = NatsOptions { token: Some("right".into()), ..NatsOptions::default() };
    assert!(!format!("{options:?}").contains("right"));
    assert!(Sender::start(&server.url(), &options, folder.path(), "a").unwrap().finish(LIMIT));
    let mut reader = Nats::new(&server.url(), &options).unwrap();
    for number in 0..3_u64 {
        assert_eq!(next(&mut reader), number.to_le_bytes());
    }
}

/// All are connected to the one that is killed.
#[test]
fn a_cluster_goes_on_without_one_of_its_servers() {
    let ports: Vec<_> = (0..3).map(|_| nats_server::free_port()).collect();
    let routes: Vec<_> = ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
    let start = |number: usize| {
        let name = number.to_string();
        let arguments =
            ["--name", &name, "--cluster_name", "c", "--cluster", &routes[number], "--routes", &routes.join(",")];
        TestServer::start(&arguments)
    };
    let Some(mut servers) = (0..3).map(start).collect::<Option<Vec<_>>>() else { return };
    let url = servers.iter().map(TestServer::url).collect::<Vec<_>>().join(",");
    let folder = tempfile::tempdir().unwrap();
    let mut a = spool(folder.path(), "a");
    let sender = Sender::start(&url, &NatsOptions::default(), folder.path(), "a").unwrap();
    let mut reader = Nats::new(&url, &NatsOptions::default()).unwrap();
    let mut read = 0_u64;
    let mut go_on = |reader: &mut Nats, count: u64| {
        append(&mut a, read..read + count);
        read += count;
        let end = Instant::now() + LIMIT;
        let mut found = Vec::new();
        while found.len() < count as usize {
            assert!(Instant::now() < end, "{:?}, {:?}", reader.problem(), sender.state());
            if let Read::Batch(batch) = reader.next(Duration::from_millis(100)).unwrap() {
                found.push(u64::from_le_bytes(batch.try_into().unwrap()));
            }
        }
        assert_eq!(found, (read - count..read).collect::<Vec<_>>());
    };
    go_on(&mut reader, 100);
    let client = Client::connect(&servers[1]);
    let replicas = client.driver.handle.block_on(async {
        client.context.get_stream("corelane-batches").await.unwrap().cached_info().config.num_replicas
    });
    assert_eq!(replicas, 3);
    // The first that was named, so all are connected to it.
    servers[0].process.kill();
    go_on(&mut reader, 100);
    assert!(sender.finish(LIMIT));
}

/// Certificates of an authority of its own, for the server and for clients.
fn certificates(folder: &Path, clients: &[&str]) -> bool {
    let script = "set -e
        request() { openssl req -newkey rsa:2048 -nodes -keyout $1.key -subj /CN=$1 -out $1.csr; }
        openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -subj /CN=authority -out ca.pem -days 2
        for name in server $@; do
            request $name
            echo subjectAltName=DNS:localhost,IP:127.0.0.1 > names
            openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names \\
                -out $name.pem
        done";
    let mut command = Command::new("sh");
    let status = command
        .args(["-c", script, "sh"])
        .args(clients)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let is_made = status.is_ok_and(|status| status.success());
    if !is_made {
        eprintln!("SKIPPED: there is no openssl to make certificates with");
    }
    is_made
}

#[test]
fn tls_with_certificates_of_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    if !certificates(folder.path(), &["client"]) {
        return;
    }
    let file = |name: &str| folder.path().join(name);
    let arguments = ["--tlsverify", "--tlscert", "server.pem", "--tlskey", "server.key", "--tlscacert", "ca.pem"];
    let arguments = arguments.map(|argument| match argument.starts_with("--") {
        true => argument.to_string(),
        false => file(argument).display().to_string(),
    });
    let Some(server) = TestServer::start(&arguments.each_ref().map(String::as_str)) else { return };
    append(&mut spool(folder.path(), "a"), 0..3);
    let url = server.url().replace("nats:", "tls:");
    let right = NatsOptions {
        root_certificates: Some(file("ca.pem")),
        client_certificate: Some((file("client.pem"), file("client.key"))),
        ..NatsOptions::default()
    };
    for wrong in [
        NatsOptions::default(),
        NatsOptions { root_certificates: None, ..right.clone() },
        NatsOptions { client_certificate: None, ..right.clone() },
    ] {
        let sender = Sender::start(&url, &wrong, folder.path(), "a").unwrap();
        wait_until("it is refused", || sender.state().error.is_some_and(|error| error != "not connected yet"));
        assert_eq!((sender.state().is_connected, sender.state().batches), (false, 0));
        assert!(!sender.finish(Duration::ZERO));
    }
    assert!(Sender::start(&url, &right, folder.path(), "a").unwrap().finish(LIMIT));
    let mut reader = Nats::new(&url, &right).unwrap();
    reader.begin(None).unwrap();
    for number in 0..3_u64 {
        assert_eq!(next(&mut reader), number.to_le_bytes());
    }
}

#[test]
fn options_that_cannot_be_used_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let refused =
        |options: NatsOptions| Nats::new("nats://127.0.0.1:1", &options).expect_err("it cannot be used").to_string();
    let missing = folder.path().join("missing");
    let other = folder.path().join("other");
    fs::write(&other, "secret").unwrap();
    for options in [
        NatsOptions { credentials: Some(missing.clone()), ..NatsOptions::default() },
        NatsOptions { root_certificates: Some(missing.clone()), ..NatsOptions::default() },
        NatsOptions { client_certificate: Some((other.clone(), missing.clone())), ..NatsOptions::default() },
    ] {
        assert!(refused(options).starts_with(&missing.display().to_string()));
    }
    let error = refused(NatsOptions { credentials: Some(other.clone()), ..NatsOptions::default() });
    assert!(error.contains("no credentials file") && !error.contains("secret"), "{error}");
    let both = NatsOptions { credentials: Some(other), token: Some("t".into()), ..NatsOptions::default() };
    assert!(refused(both).contains("two identities"));
    for prefix in ["", "a.b", "a b", "*", &"a".repeat(33)] {
        let error = refused(NatsOptions { prefix: prefix.into(), ..NatsOptions::default() });
        assert!(error.contains("cannot be a prefix"), "{error}");
    }
}

#[test]
fn hostile_messages_are_counted_or_handed_on_and_disturb_nothing() {
    let Some(server) = TestServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut reader = server.reader();
    wait_for_nothing(&mut reader);
    let client = Client::connect(&server);
    let mut a = spool(folder.path(), "a");
    append(&mut a, 0..1);
    assert!(server.sender(folder.path(), "a").finish(LIMIT));
    assert_eq!(next(&mut reader), 0_u64.to_le_bytes());
    client.publish("corelane.batches.a", &[], b"no headers");
    assert_eq!(next(&mut reader), b"no headers");
    let damaged: &[&[(&str, &str)]] =
        &[&[(BATCH, "")], &[(BATCH, "1")], &[(BATCH, "1.2"), (AFTER, "x")], &[(BATCH, "99999999999999999999.0")]];
    for headers in damaged {
        client.publish("corelane.batches.a", headers, b"damaged");
    }
    client.publish("corelane.batches.*not*", &[(BATCH, "1.1")], b"damaged");
    // Behind a gap, and far ahead.
    client.publish("corelane.batches.a", &[(BATCH, "1.7"), (AFTER, "1.6")], b"behind a gap");
    client.publish("corelane.batches.a", &[(BATCH, &format!("{0}.{0}", u64::MAX))], b"");
    assert_eq!(next(&mut reader), b"");
    client.publish("corelane.batches.a", &[(BATCH, "1.9"), (AFTER, "1.8")], b"behind a gap still");
    append(&mut a, 1..300);
    assert!(server.sender(folder.path(), "a").finish(LIMIT));
    assert_eq!(read_all(&server, &mut reader), (1..300).collect::<Vec<_>>());
    assert_eq!(reader.damaged(), damaged.len() as u64 + 1);
    // A name that no one wants to know takes nothing for long.
    client.publish("corelane.batches.stranger", &[(BATCH, "1.1")], b"");
    assert_eq!(next(&mut reader), b"");
    let has_stranger = |reader: &Nats| reader.position().windows(8).any(|name| name == b"stranger");
    assert!(has_stranger(&reader));
    reader.retain(&|sensor| sensor == "a");
    assert!(!has_stranger(&reader));
}

#[test]
fn what_comes_out_of_order_is_skipped_until_it_comes_again() {
    let Some(server) = TestServer::start(&[]) else { return };
    let mut reader = server.reader();
    wait_for_nothing(&mut reader);
    let client = Client::connect(&server);
    let publish = |batch: u64, is_after: bool| {
        let mut headers = vec![(BATCH, format!("1.{batch}"))];
        if is_after {
            headers.push((AFTER, format!("1.{}", batch - 1)));
        }
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>();
        client.publish("corelane.batches.a", &headers, &batch.to_le_bytes());
    };
    publish(0, false);
    publish(1, true);
    // 2 was refused.
    publish(3, true);
    assert_eq!((next(&mut reader), next(&mut reader)), (0_u64.to_le_bytes().to_vec(), 1_u64.to_le_bytes().to_vec()));
    let early = reader.position();
    publish(4, true);
    publish(2, false);
    publish(3, true);
    publish(3, true);
    publish(4, true);
    assert_eq!(read_all(&server, &mut reader), [2, 3, 3, 4]);
    // Where it had got to is in the position.
    reader.begin(Some(&early)).unwrap();
    assert_eq!(read_all(&server, &mut reader), [2, 3, 3, 4]);
    // A reader that begins behind what was removed takes what is there.
    client.purge();
    publish(6, true);
    assert_eq!(read_all(&server, &mut server.reader()), [6]);
    reader.begin(Some(&early)).unwrap();
    assert_eq!(read_all(&server, &mut reader), [6]);
}

#[test]
fn snapshots_come_back_and_batches_go_once_all_shards_have_one() {
    let Some(mut server) = TestServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut a = spool(folder.path(), "a");
    append(&mut a, 0..10);
    assert!(server.sender(folder.path(), "a").finish(LIMIT));
    let client = Client::connect(&server);
    let (mut low, mut high) = (server.reader(), server.reader());
    assert_eq!(low.load(0..=127).unwrap(), None);
    assert_eq!(read_all(&server, &mut low).len(), 10);
    let state = (0..1_500_000_u32).map(|number| (number % 251) as u8).collect::<Vec<_>>();
    low.store(0..=127, b"old").unwrap();
    low.store(0..=127, &state).unwrap();
    for _ in 0..4 {
        next(&mut high);
    }
    high.store(129..=255, b"").unwrap();
    assert_eq!(client.state().first_sequence, 1, "128 has none");
    high.store(128..=255, b"high").unwrap();
    assert_eq!(client.state().first_sequence, 5, "the least of all");
    read_all(&server, &mut high);
    high.store(128..=255, b"higher").unwrap();
    assert_eq!(client.state().first_sequence, 5, "129-255 is there still");
    high.store(129..=255, b"").unwrap();
    assert_eq!(client.state().messages, 0);

    server.process.kill();
    let position = low.position();
    drop(low);
    server.process.restart();
    let mut low = Nats::new(&server.url(), &NatsOptions::default()).unwrap();
    let snapshot = low.load(0..=127).unwrap().unwrap();
    assert!(snapshot.bytes == state && snapshot.position == position);
    assert_eq!(low.load(128..=255).unwrap().unwrap().bytes, b"higher");
    assert_eq!(low.load(0..=255).unwrap(), None);
    low.begin(Some(&snapshot.position)).unwrap();
    append(&mut a, 10..12);
    assert!(server.sender(folder.path(), "a").finish(LIMIT));
    assert_eq!(read_all(&server, &mut low), [10, 11]);
}

/// What a scripted server says of a stream.
#[derive(Clone, Copy)]
enum Told {
    Missing,
    BeingMade,
    Made,
}

const SCRIPTED_SERVER: &str = r#"INFO {"server_id":"x","version":"2.9.10","headers":true,"max_payload":1048576}"#;
const NO_STREAM: &str = r#"{"error":{"code":404,"err_code":10059,"description":"stream not found"}}"#;
const NO_MESSAGE: &str = r#"{"error":{"code":404,"err_code":10037,"description":"no message found"}}"#;
const STREAM: &str = r#"{"config":{"name":"x","discard":"old","retention":"limits","storage":"file","num_replicas":1},
    "created":"CREATED","state":{"messages":0,"bytes":0,"first_seq":0,"first_ts":"CREATED","last_seq":0,
    "last_ts":"CREATED","consumer_count":0}}"#;

/// Answers one client's requests, and gives what was asked for. `told` is what it says of the stream, first to last.
fn answer(listener: &TcpListener, mut told: &[Told]) -> io::Result<Vec<String>> {
    let mut client = BufReader::new(listener.accept()?.0);
    let (mut inbox, mut asked, mut line) = (String::new(), Vec::new(), String::new());
    writeln!(client.get_ref(), "{SCRIPTED_SERVER}\r")?;
    while client.read_line(&mut line)? > 0 {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["PING"] => writeln!(client.get_ref(), "PONG\r")?,
            ["SUB", _, id] => inbox = id.into(),
            ["PUB", subject, reply, length] => {
                client.read_exact(&mut vec![0; length.parse::<usize>().unwrap() + 2])?;
                let request = subject.trim_start_matches("$JS.API.STREAM.");
                let is_info = request.starts_with("INFO");
                let body = match told[0] {
                    _ if request.starts_with("MSG") => NO_MESSAGE.into(),
                    Told::Missing if is_info => NO_STREAM.into(),
                    Told::Missing | Told::BeingMade => STREAM.replace("CREATED", "0001-01-01T00:00:00Z"),
                    Told::Made => STREAM.replace("CREATED", "2024-01-01T00:00:00Z"),
                };
                if is_info && told.len() > 1 {
                    told = &told[1..];
                }
                asked.push(request.into());
                write!(client.get_ref(), "MSG {reply} {inbox} {}\r\n{body}\r\n", body.len())?;
            }
            _ => {}
        }
        line.clear();
    }
    Ok(asked)
}

/// A message of it is what nats-server 2.9.10 crashes by.
#[test]
fn nothing_is_asked_of_a_stream_that_is_being_made() {
    use Told::{BeingMade, Made, Missing};
    for (told, expected) in [
        (&[BeingMade, BeingMade, Made][..], "INFO INFO INFO INFO MSG"),
        (&[Missing, BeingMade, Made], "INFO CREATE INFO INFO INFO MSG"),
    ] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let asked = std::thread::scope(|scope| {
            let server = scope.spawn(|| answer(&listener, told).unwrap());
            assert_eq!(Nats::new(&url, &NatsOptions::default()).unwrap().load(0..=255).unwrap(), None);
            server.join().unwrap()
        });
        assert!(asked.iter().all(|request| request.contains(".OBJ_corelane-snapshots")), "{asked:?}");
        let kinds: Vec<_> = asked.iter().map(|request| request.split('.').next().unwrap()).collect();
        assert_eq!(kinds.join(" "), expected);
    }
}

/// Else a sensor of the wrong name would say that its server is slow.
#[test]
fn rights_that_are_missing_are_said_by_the_servers_words() {
    let folder = tempfile::tempdir().unwrap();
    let rights = folder.path().join("rights.conf");
    let user = "{ user: any, password: any, permissions: { publish: { deny: [\"corelane.batches.b\"] } } }";
    fs::write(&rights, format!("authorization {{ users = [{user}] }}\nno_auth_user: any\n")).unwrap();
    let Some(server) = TestServer::start(&["-c", rights.to_str().unwrap()]) else { return };
    for name in ["a", "b"] {
        append(&mut spool(folder.path(), name), 0..3);
    }
    let sender = server.sender(folder.path(), "b");
    wait_until("it is refused", || {
        let error = sender.state().error;
        error.is_some_and(|error| error.contains("Permissions Violation") && error.contains("corelane.batches.b"))
    });
    assert_eq!(sender.state().batches, 0);
    assert!(server.sender(folder.path(), "a").finish(LIMIT), "others are let in");
}

/// The rights of a program as docs/sensors.md has them: what it may subscribe to, and publish to.
fn documented(program: &str) -> [Vec<String>; 2] {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sensors.md")).unwrap();
    let (_, item) = text.split_once(&format!("\n- {program} may subscribe to ")).unwrap();
    let (item, _) = item.split_once(".\n").unwrap();
    let (subscribe, publish) = item.split_once("publish to").unwrap();
    [subscribe, publish].map(|rights| rights.split('`').skip(1).step_by(2).map(str::to_owned).collect())
}

/// With the rights of the documents all do their work, and no sensor reads or writes what is another's.
#[test]
fn the_rights_that_are_documented_are_enough_and_no_sensor_has_a_part_in_those_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["north", "evil", "aggregate", "top"];
    if !certificates(folder.path(), &names) {
        return;
    }
    let file = |name: &str| folder.path().join(name);
    let users = names.map(|name| {
        let rights = match name {
            "north" => documented("The sensor `north`"),
            "evil" => documented("The sensor `north`")
                .map(|rights| rights.into_iter().map(|right| right.replace("north", "evil")).collect()),
            name => documented(&format!("`{name}`")),
        };
        let [subscribe, publish] = rights.map(|rights| format!("{{ allow: {rights:?} }}"));
        format!("{{ user: \"CN={name}\", permissions: {{ subscribe: {subscribe}, publish: {publish} }} }}")
    });
    let path = |name: &str| file(name).display().to_string();
    let (certificate, key, authority) = (path("server.pem"), path("server.key"), path("ca.pem"));
    let tls = format!("cert_file: {certificate:?}, key_file: {key:?}, ca_file: {authority:?}, verify_and_map: true");
    let config = file("rights.conf");
    fs::write(&config, format!("tls {{ {tls} }}\nauthorization {{ users: [{}] }}\n", users.join(", "))).unwrap();
    let Some(server) = TestServer::start(&["-c", config.to_str().unwrap()]) else { return };
    let url = server.url().replace("nats:", "tls:");
    let options = |name: &str| NatsOptions {
        root_certificates: Some(file("ca.pem")),
        client_certificate: Some((file(&format!("{name}.pem")), file(&format!("{name}.key")))),
        ..NatsOptions::default()
    };
    let mut aggregator = Nats::new(&url, &options("aggregate")).unwrap();
    aggregator.begin(None).unwrap();
    wait_for_nothing(&mut aggregator);

    // What comes to an inbox of whatever name, and what is sent to a subject of whatever name.
    let (events, seen) = std::sync::mpsc::channel();
    let driver = Driver::start().unwrap();
    // Subscriptions end in a task.
    let _inside = driver.handle.enter();
    let evil = driver.handle.block_on(async {
        let connect = async_nats::ConnectOptions::new()
            .add_root_certificates(file("ca.pem"))
            .add_client_certificate(file("evil.pem"), file("evil.key"))
            .event_callback(move |event| {
                let _ = events.send(event.to_string());
                std::future::ready(())
            });
        let evil = connect.connect(&url).await.unwrap();
        let mut spied = Vec::new();
        for subject in ["_INBOX.>", "_INBOX.corelane.>", "_INBOX.corelane.aggregate.>", "corelane.>", "$JS.>", ">"] {
            spied.push(evil.subscribe(subject).await.unwrap());
        }
        for subject in ["corelane.batches.north", "$JS.API.STREAM.PURGE.corelane-batches", "$O.corelane-snapshots.M.x"]
        {
            evil.publish(subject, "forged".into()).await.unwrap();
        }
        evil.flush().await.unwrap();
        (evil, spied)
    });
    let is_refused = |event: &String| event.to_lowercase().contains("permissions violation");
    let events = std::iter::repeat_with(|| seen.recv_timeout(LIMIT).unwrap());
    assert_eq!(events.filter(is_refused).take(9).count(), 9, "all that it has tried");

    append(&mut spool(folder.path(), "north"), 0..100);
    assert!(Sender::start(&url, &options("north"), folder.path(), "north").unwrap().finish(LIMIT));
    for number in 0..100_u64 {
        assert_eq!(next(&mut aggregator), number.to_le_bytes());
    }
    // Long enough for flow control.
    let state = vec![7; 24 << 20];
    aggregator.store(0..=127, &state).unwrap();
    aggregator.store(128..=255, b"high").unwrap();
    assert_eq!(aggregator.load(0..=127).unwrap().unwrap().bytes, state);
    append(&mut spool(folder.path(), "north"), 100..200);
    assert!(Sender::start(&url, &options("north"), folder.path(), "north").unwrap().finish(LIMIT));
    let mut top = Nats::that_looks(&url, &options("top")).unwrap();
    let mut stored = top.stored().unwrap();
    stored.sort_by_key(|shards| *shards.start());
    assert_eq!(stored, [0..=127, 128..=255]);
    let snapshot = top.load(0..=127).unwrap().unwrap();
    assert_eq!(snapshot.bytes, state);
    top.begin(Some(&snapshot.position)).unwrap();
    for number in 100..200_u64 {
        assert_eq!(next(&mut top), number.to_le_bytes());
    }
    wait_until("all is read", || {
        assert_eq!(top.next(Duration::from_millis(5)).unwrap(), Read::Nothing);
        top.is_caught_up()
    });
    assert_eq!((aggregator.error(), top.error()), (None, None), "nothing that they did was refused");
    let spied = driver.handle.block_on(async {
        let (_evil, spied) = evil;
        let mut messages = Vec::new();
        for mut subscription in spied {
            while let Ok(Some(message)) = tokio::time::timeout(Duration::from_millis(50), subscription.next()).await {
                messages.push(message.subject.to_string());
            }
        }
        messages
    });
    assert_eq!(spied, [] as [String; 0]);
}

/// An aggregator was killed while it stored its state.
#[test]
fn parts_of_a_snapshot_that_is_not_whole_are_removed_once_they_are_old() {
    let Some(server) = TestServer::start(&[]) else { return };
    let (mut low, mut high) = (server.reader(), server.reader());
    let client = Client::connect(&server);
    let parts = || {
        client.driver.handle.block_on(async {
            let stream = client.context.get_stream("OBJ_corelane-snapshots").await.unwrap();
            let subjects = stream.info_with_subjects("$O.corelane-snapshots.C.>").await.unwrap();
            subjects.count().await
        })
    };
    low.store(0..=127, b"low").unwrap();
    client.publish("$O.corelane-snapshots.C.torn", &[], b"part");
    high.store(128..=255, b"high").unwrap();
    assert_eq!(parts(), 3, "another aggregator may be at it");
    high.sweeps = Some(Duration::ZERO);
    high.store(128..=255, b"higher").unwrap();
    assert_eq!((parts(), high.sweeps), (2, None));
    assert_eq!(low.load(0..=127).unwrap().unwrap().bytes, b"low");
    assert_eq!(low.load(128..=255).unwrap().unwrap().bytes, b"higher");
}

/// It waits for what is missing, and what it reads and loads stays as it was.
#[test]
fn a_reader_that_looks_makes_and_removes_nothing() {
    let Some(server) = TestServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let client = Client::connect(&server);
    let streams = || {
        let names = client.context.stream_names();
        let mut names: Vec<_> = client.driver.handle.block_on(names.map(Result::unwrap).collect());
        names.sort_unstable();
        names
    };
    let mut looks = Nats::that_looks(&server.url(), &NatsOptions::default()).unwrap();
    wait_until("it is connected", || looks.problem().is_none());
    assert_eq!(looks.stored().unwrap(), []);
    looks.begin(None).unwrap();
    wait_until("it says what is missing", || {
        assert_eq!(looks.next(Duration::from_millis(5)).unwrap(), Read::Nothing);
        looks.problem().is_some_and(|problem| problem == "there is no stream corelane-batches yet")
    });
    assert!(!looks.is_caught_up());
    assert_eq!(streams(), Vec::<String>::new());

    let mut a = spool(folder.path(), "a");
    append(&mut a, 0..10);
    assert!(server.sender(folder.path(), "a").finish(LIMIT));
    assert_eq!(looks.stored().unwrap(), []);
    assert_eq!(streams(), ["corelane-batches"]);
    for number in 0..10_u64 {
        assert_eq!(next(&mut looks), number.to_le_bytes());
    }
    wait_until("it has read all", || looks.is_caught_up());
    assert_eq!(looks.problem(), None);

    let (mut low, mut high) = (server.reader(), server.reader());
    for _ in 0..4 {
        next(&mut low);
    }
    next(&mut high);
    low.store(0..=127, b"low").unwrap();
    high.store(128..=254, b"high").unwrap();
    let before = client.state();
    let stored = looks.stored().unwrap();
    assert_eq!((stored.len(), stored.contains(&(0..=127)), stored.contains(&(128..=254))), (2, true, true));
    let snapshots: Vec<_> = stored.into_iter().map(|shards| looks.load(shards).unwrap().unwrap().position).collect();
    let least = looks.least(&snapshots.iter().map(|position| &position[..]).collect::<Vec<_>>()).unwrap();
    assert_eq!(least, Some(high.position()));
    looks.begin(least.as_deref()).unwrap();
    assert_eq!(read_all(&server, &mut looks), (1..10).collect::<Vec<_>>());
    let after = client.state();
    assert_eq!((after.messages, after.first_sequence, streams().len()), (before.messages, before.first_sequence, 2));
}

#[test]
fn a_stream_that_was_made_anew_is_read_from_its_beginning() {
    let Some(server) = TestServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut a = spool(folder.path(), "a");
    append(&mut a, 0..10);
    assert!(server.sender(folder.path(), "a").finish(LIMIT));
    let mut reader = server.reader();
    assert_eq!(read_all(&server, &mut reader).len(), 10);
    let client = Client::connect(&server);
    client.driver.handle.block_on(async { client.context.delete_stream("corelane-batches").await.unwrap() });
    append(&mut a, 10..12);
    assert!(server.sender(folder.path(), "a").finish(LIMIT));
    assert_eq!((next(&mut reader), next(&mut reader)), (10_u64.to_le_bytes().to_vec(), 11_u64.to_le_bytes().to_vec()));
}

#[test]
fn the_bound_of_the_least_spool_is_enough() {
    let Some(server) = TestServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::open(folder.path(), "a", LEAST_BYTES, Full::DropOldest).unwrap();
    spool.begin(1).unwrap();
    // More than it holds before there is a sender: what is left goes, and the gap is no error.
    let dropped = (0..100).map(|_| spool.append(&[7; 100_000]).unwrap()).sum::<u64>();
    assert!(server.sender(folder.path(), "a").finish(LIMIT));
    assert_eq!(read_bytes(&server, &mut server.reader()).len() as u64, 100 - dropped);
}

#[test]
fn a_reader_is_caught_up_while_it_reads_what_comes() {
    let Some(server) = TestServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut reader = server.reader();
    assert!(!reader.is_caught_up());
    wait_for_nothing(&mut reader);
    let mut a = spool(folder.path(), "a");
    let sender = server.sender(folder.path(), "a");
    append(&mut a, 0..300);
    wait_until("it falls behind", || !reader.is_caught_up());
    // More than it reads ahead: some are on the server still.
    for _ in 0..299 {
        next(&mut reader);
    }
    assert!(!reader.is_caught_up());
    next(&mut reader);
    wait_until("it knows that this was the last", || reader.is_caught_up());
    // It stays so without a batch for longer than its knowledge lasts.
    let end = Instant::now() + 2 * super::super::engine::FRESH;
    while Instant::now() < end {
        assert_eq!(reader.next(Duration::from_millis(100)).unwrap(), Read::Nothing);
        assert!(reader.is_caught_up());
    }
    assert!(sender.finish(LIMIT));
}

/// The same as of a network that is cut: the connection stays, and nothing comes.
#[test]
#[ignore = "takes half a minute"]
fn a_server_that_hangs_is_noticed_and_an_aggregator_that_hangs_loses_nothing() {
    let Some(server) = TestServer::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut reader = server.reader();
    wait_for_nothing(&mut reader);
    let mut a = spool(folder.path(), "a");
    let sender = server.sender(folder.path(), "a");
    append(&mut a, 0..1000);
    // Longer than a request lasts, and than the client waits for its end.
    std::thread::sleep(2 * Duration::from_secs(5));
    let mut found = (0..500).map(|_| u64::from_le_bytes(next(&mut reader).try_into().unwrap())).collect::<Vec<_>>();

    let pid = nix::unistd::Pid::from_raw(server.process.id().try_into().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
    append(&mut a, 1000..2000);
    let stopped = Instant::now();
    wait_until("it is noticed", || !reader.is_connected() && !sender.state().is_connected);
    assert!(stopped.elapsed() < Duration::from_secs(30) && !reader.is_caught_up());
    eprintln!("noticed after {:?}: {:?} {:?}", stopped.elapsed(), reader.error(), sender.state());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
    assert!(sender.finish(LIMIT));
    found.extend(read_all(&server, &mut reader));
    check_order(&found, 2000);
}
