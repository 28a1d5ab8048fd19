//! The job server of the examples, end to end, on ports of the loopback device.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[path = "../examples/jobs/mod.rs"]
mod jobs;
#[path = "support/watchdog.rs"]
mod watchdog;

use jobs::load::{self, Load};
use jobs::protocol::{Answer, End, Frames, LONGEST, MOST_JOBS, Request, write_request};
use jobs::server::{Config, Server, Totals};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use watchdog::guard;

type Lines = Arc<Mutex<Vec<String>>>;

fn start(config: Config) -> (Server, Lines) {
    let lines = Lines::default();
    let log = lines.clone();
    let server = Server::start("127.0.0.1:0", config, move |line| log.lock().unwrap().push(line)).unwrap();
    (server, lines)
}

fn stop(server: Server) -> Totals {
    server.stopper().stop();
    server.join()
}

fn batch(number: u64, jobs: &[u32]) -> Request {
    Request::Batch { number, jobs: jobs.to_vec() }
}

/// A connection, and the answers that come through it.
fn client(server: &Server) -> (TcpStream, Frames<TcpStream>) {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    (stream.try_clone().unwrap(), Frames::new(stream))
}

/// Until something has happened for which there is no wait.
fn until(mut happened: impl FnMut() -> bool) {
    while !happened() {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn batches_are_acknowledged_when_they_are_done() {
    guard(|| {
        let (server, lines) = start(Config { piece: 4, ..Config::default() });
        let (mut to, mut from) = client(&server);
        // One piece, several, and the most there can be; several on their way at once.
        for (number, jobs) in [(7, 1), (8, 4), (9, 5), (10, 150), (u64::MAX, MOST_JOBS)] {
            write_request(&mut to, &batch(number, &vec![1; jobs])).unwrap();
            assert_eq!(from.answer().unwrap(), Answer::Done { number, jobs: jobs as u32 });
        }
        (0..50).for_each(|number| write_request(&mut to, &batch(number, &[3; 10])).unwrap());
        let mut done = (0..50).map(|_| from.answer().unwrap()).collect::<Vec<_>>();
        done.sort_by_key(
            |answer| if let Answer::Done { number, .. } = answer { *number } else { panic!("{answer:?}") },
        );
        assert!((0..50).map(|number| Answer::Done { number, jobs: 10 }).eq(done));
        let totals = stop(server);
        let jobs = 160 + MOST_JOBS as u64 + 500;
        assert_eq!(totals, Totals { clients: 1, batches: 55, jobs, lost: 0, refused: 0 });
        assert!(matches!(from.answer(), Err(End::Closed)));
        assert!(lines.lock().unwrap().is_empty(), "{lines:?}");
    });
}

#[test]
fn the_load_is_done_and_counted() {
    guard(|| {
        let (server, lines) = start(Config::default());
        let load = Load { clients: 60, requests: 20, batch: 150, size: 10 };
        let outcome = load::run(server.address(), load).unwrap();
        assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
        assert_eq!(outcome.latencies.len(), 1_200);
        assert!(outcome.latencies.is_sorted());
        assert!(outcome.quantile(0.0) <= outcome.quantile(0.5) && outcome.quantile(0.99) <= outcome.quantile(1.0));
        assert_eq!(outcome.quantile(1.0), outcome.latencies[1_199]);
        assert!(outcome.client <= outcome.elapsed);
        load::stop(server.address()).unwrap();
        let totals = server.join();
        assert_eq!(totals, Totals { clients: 61, batches: 1_200, jobs: 180_000, lost: 0, refused: 0 });
        let lines = lines.lock().unwrap();
        assert!(lines.len() == 1 && lines[0].ends_with(": stop"), "{lines:?}");
    });
}

/// Each is refused with one line that names the client and the place, and no other client notices.
#[test]
fn bad_frames_are_refused() {
    guard(|| {
        let (server, lines) = start(Config::default());
        let (mut good, mut good_from) = client(&server);
        let frame = |length: u32, rest: &[u8]| [&length.to_le_bytes(), rest].concat();
        let batch_of_1 = [&[1][..], &[0; 8], &[9, 0, 0, 0]].concat();
        let whole = frame(13, &batch_of_1);
        let long = LONGEST as u32 + 1;
        let cases: [(Vec<u8>, String); 9] = [
            (frame(0, &[]), format!("a length of 0, which is not from 1 to {LONGEST}")),
            (frame(long, &[]), format!("a length of {long}, which is not from 1 to {LONGEST}")),
            (frame(u32::MAX, &[]), format!("a length of {}, which is not from 1 to {LONGEST}", u32::MAX)),
            (frame(1, &[3]), "the kind is 3, not 1 or 2".into()),
            (frame(1, &[1]), "a batch has 1 bytes, not 9 and 4 for each job".into()),
            (frame(12, &batch_of_1[..12]), "a batch has 12 bytes, not 9 and 4 for each job".into()),
            (frame(9, &batch_of_1[..9]), "a batch has no jobs".into()),
            (frame(2, &[2, 0]), "a stop has 2 bytes, not 1".into()),
            (b"GET / HTTP/1.1\r\n".to_vec(), format!("a length of 542393671, which is not from 1 to {LONGEST}")),
        ];
        for (count, (bytes, what)) in (1..).zip(&cases) {
            for prefix in [0, 2] {
                lines.lock().unwrap().clear();
                let (mut to, mut from) = client(&server);
                (0..prefix).for_each(|_| to.write_all(&whole).unwrap());
                to.write_all(bytes).unwrap();
                let expected = format!("bad frame at byte {}: {what}", prefix * whole.len());
                // What came before it is done.
                let mut answers = Vec::new();
                let end = loop {
                    match from.answer() {
                        Ok(answer) => answers.push(answer),
                        Err(end) => break end,
                    }
                };
                let refused = answers.iter().filter(|answer| **answer == Answer::Refused(expected.clone())).count();
                assert_eq!(refused, 1, "{answers:?}");
                assert_eq!(answers.len(), prefix + 1, "{answers:?}");
                drop(end);
                let expected = format!("client {}: {expected}", to.local_addr().unwrap());
                assert_eq!(*lines.lock().unwrap(), [expected]);
            }
            write_request(&mut good, &batch(count, &[1])).unwrap();
            assert_eq!(good_from.answer().unwrap(), Answer::Done { number: count, jobs: 1 });
        }
        assert_eq!(stop(server).refused, 2 * cases.len() as u64);
    });
}

#[test]
fn a_client_that_vanishes_within_a_frame_is_reported() {
    guard(|| {
        let (server, lines) = start(Config::default());
        for (bytes, what) in [
            (&[13, 0][..], "bad frame at byte 0: it ends inside the 4 bytes of its length"),
            (&[13, 0, 0, 0, 1, 0], "bad frame at byte 0: it ends after 2 of 13 bytes"),
        ] {
            let (mut to, _from) = client(&server);
            to.write_all(bytes).unwrap();
            to.shutdown(Shutdown::Write).unwrap();
            until(|| !lines.lock().unwrap().is_empty());
            let expected = format!("client {}: {what}", to.local_addr().unwrap());
            assert_eq!(lines.lock().unwrap().drain(..).collect::<Vec<_>>(), [expected]);
        }
        stop(server);
    });
}

/// Its jobs are done, its acknowledgements are lost, and the others get theirs.
#[test]
fn a_client_that_vanishes_mid_batch_disturbs_nobody() {
    guard(|| {
        let (server, _) = start(Config::default());
        for _ in 0..20 {
            let (mut to, from) = client(&server);
            (0..10).for_each(|number| write_request(&mut to, &batch(number, &[100_000; 10])).unwrap());
            drop((to, from));
        }
        let (mut to, mut from) = client(&server);
        write_request(&mut to, &batch(5, &[1])).unwrap();
        assert_eq!(from.answer().unwrap(), Answer::Done { number: 5, jobs: 1 });
        let totals = stop(server);
        assert_eq!(totals.clients, 21);
        // Whatever had been read of the others was done.
        assert_eq!(totals.jobs, (totals.batches - 1) * 10 + 1);
    });
}

#[test]
fn a_client_may_close_its_half_and_gets_its_answers() {
    guard(|| {
        let (server, lines) = start(Config::default());
        let (mut to, mut from) = client(&server);
        (0..5).for_each(|number| write_request(&mut to, &batch(number, &[1_000_000; 5])).unwrap());
        to.shutdown(Shutdown::Write).unwrap();
        (0..5).for_each(|_| assert!(matches!(from.answer().unwrap(), Answer::Done { jobs: 5, .. })));
        // And then the connection is over: no thread keeps it.
        assert!(matches!(from.answer(), Err(End::Closed)));
        assert_eq!(stop(server).batches, 5);
        assert!(lines.lock().unwrap().is_empty());
    });
}

/// What was taken is acknowledged, each batch at most once, and then the connections end.
#[test]
fn a_stop_under_load_drains() {
    guard(|| {
        let (server, lines) = start(Config { backlog: 4, capacity: 2, ..Config::default() });
        let stopper = server.stopper();
        let clients = 8;
        let began = &AtomicBool::new(false);
        let acknowledged = thread::scope(|scope| {
            let threads = (0..clients).map(|_| {
                let (mut to, mut from) = client(&server);
                let connection = to.try_clone().unwrap();
                scope.spawn(move || {
                    scope.spawn(move || {
                        (0..).take_while(|&number| write_request(&mut to, &batch(number, &[1_000; 50])).is_ok()).count()
                    });
                    let mut seen = std::collections::HashSet::new();
                    while let Ok(answer) = from.answer() {
                        let Answer::Done { number, jobs: 50 } = answer else { panic!("{answer:?}") };
                        assert!(seen.insert(number));
                        began.store(true, SeqCst);
                    }
                    // A client that sees the end sends no more.
                    let _ = connection.shutdown(Shutdown::Both);
                    seen.len() as u64
                })
            });
            let threads = threads.collect::<Vec<_>>();
            while !began.load(SeqCst) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(100));
            let since = Instant::now();
            stopper.stop();
            stopper.stop();
            let totals = server.join();
            assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
            let acknowledged = threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>();
            assert_eq!(totals.jobs, totals.batches * 50);
            assert_eq!((totals.lost, totals.refused), (0, 0));
            assert!(totals.batches > 0);
            (acknowledged, totals.batches)
        });
        assert_eq!(acknowledged.0, acknowledged.1);
        assert!(lines.lock().unwrap().is_empty(), "{lines:?}");
    });
}

#[test]
fn a_stop_of_an_idle_server_ends_it() {
    guard(|| {
        let (server, _) = start(Config::default());
        let (mut to, mut from) = client(&server);
        // So that it was taken, and not only connected.
        write_request(&mut to, &batch(1, &[1])).unwrap();
        from.answer().unwrap();
        let address = server.address();
        assert_eq!(stop(server).batches, 1);
        assert!(matches!(from.answer(), Err(End::Closed)));
        assert!(TcpStream::connect(address).is_err());
    });
}

#[test]
fn too_many_clients_are_refused() {
    guard(|| {
        let (server, lines) = start(Config { clients: 2, ..Config::default() });
        let mut there = [client(&server), client(&server)];
        for (to, from) in &mut there {
            write_request(to, &batch(1, &[1])).unwrap();
            from.answer().unwrap();
        }
        let (_to, mut from) = client(&server);
        assert_eq!(from.answer().unwrap(), Answer::Refused("2 clients are served already".into()));
        assert!(matches!(from.answer(), Err(End::Closed)));
        until(|| lines.lock().unwrap().len() == 1);
        // When one has gone there is room again.
        let [_, (to, mut from)] = there;
        to.shutdown(Shutdown::Write).unwrap();
        assert!(matches!(from.answer(), Err(End::Closed)));
        until(|| {
            let (mut to, mut from) = client(&server);
            write_request(&mut to, &batch(2, &[1])).is_ok() && matches!(from.answer(), Ok(Answer::Done { .. }))
        });
        stop(server);
    });
}

#[test]
fn every_frame_reads_as_it_was_written() {
    let requests = [batch(0, &[0]), batch(u64::MAX, &[u32::MAX; MOST_JOBS]), Request::Stop, batch(3, &[1, 2, 3])];
    let mut bytes = Vec::new();
    requests.iter().for_each(|request| write_request(&mut bytes, request).unwrap());
    /// One byte at a time, as a network may.
    struct Slow<'a>(&'a [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let few = buffer.len().min(1 + self.0.len() % 3);
            self.0.read(&mut buffer[..few])
        }
    }
    let mut frames = Frames::new(Slow(&bytes));
    for request in requests {
        assert_eq!(frames.request().unwrap(), request);
    }
    assert!(matches!(frames.request(), Err(End::Closed)));
}
