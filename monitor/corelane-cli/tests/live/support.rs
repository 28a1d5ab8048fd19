//! The program on an interface, what it says meanwhile, and frames for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::exposition::{Samples, parse_metrics};
use crate::net::{PATIENCE, Sender, frame, ip, quiet};

pub(crate) use crate::lines::assert_same;
pub(crate) use crate::program::{Folder, Outcome, corelane, run};

/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(10);

/// Analyses captures as an interface would, with tunnels unless it is said; the events but `stats`, which count the
/// capture itself.
#[track_caller]
pub(crate) fn replay(tees: &[PathBuf], eve: &Path, options: &[&str]) -> Vec<String> {
    let mut command = corelane(["monitor", "--quiet", "--continuous"]);
    if !options.contains(&"--memory-limit") {
        command.args(["--memory-limit", "1G"]);
    }
    if !options.contains(&"--tunnels=off") {
        command.arg("--tunnels");
    }
    command.arg("--eve");
    run(command.arg(eve).args(options).args(tees)).code(0).silent();
    let found = events(eve);
    std::fs::remove_file(eve).unwrap();
    found
}

/// The lines of a file of events, each whole, but for `stats`.
#[track_caller]
pub(crate) fn events(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(text.is_empty() || text.ends_with('\n'), "{} is torn", path.display());
    text.lines().filter(|line| !line.contains("\"event_type\":\"stats\"")).map(str::to_owned).collect()
}

/// The events of several rings, and of one that is compared with them: without what may differ, in an order of their
/// own. All else stays as it was written.
#[track_caller]
fn of_rings(events: &[String]) -> Vec<String> {
    let mut events: Vec<_> = events.iter().map(|event| without(&without(event, "flow_id"), "pcap_cnt")).collect();
    events.sort_unstable();
    events
}

/// The line without a number of this name, if it has one.
fn without(line: &str, name: &str) -> String {
    let Some((before, behind)) = line.split_once(&format!("\"{name}\":")) else { return line.to_owned() };
    let (number, behind) = behind.split_once(',').expect("something follows");
    assert!(number.parse::<u64>().is_ok(), "{name} {number}");
    format!("{before}{behind}")
}

/// The `stats` events of a file.
#[track_caller]
pub(crate) fn stats(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let lines = whole.lines().filter(|line| line.contains("\"event_type\":\"stats\""));
    lines.map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["stats"].take()).collect()
}

/// Compares events of so many rings with those of one.
#[track_caller]
pub(crate) fn assert_same_of(rings: u16, found: &[String], expected: &[String], what: &str) {
    match rings {
        1 => assert_same(found, expected, what),
        _ => assert_same(&of_rings(found), &of_rings(expected), what),
    }
}

/// Waits until something is there.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "it does not come: {what}");
        thread::sleep(LOOK);
    }
}

/// What comes out of a pipe, as far as it has come.
struct Heard {
    text: Arc<Mutex<String>>,
    thread: JoinHandle<()>,
}

impl Heard {
    fn start(pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&text);
        let thread = thread::spawn(move || {
            for line in BufReader::new(pipe).lines() {
                heard.lock().unwrap().extend([&line.expect("UTF-8"), "\n"]);
            }
        });
        Self { text, thread }
    }

    fn so_far(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// Waits until there will be no more.
    fn all(self) -> String {
        self.thread.join().unwrap();
        self.text.lock().unwrap().clone()
    }
}

/// The program on an interface. It is killed when a test fails before its end.
pub(crate) struct Live {
    child: Child,
    address: SocketAddr,
    stdout: Option<Heard>,
    stderr: Option<Heard>,
}

impl Live {
    /// Starts it on `b{number}`, with a JSON report unless it is said, and waits until it captures.
    #[track_caller]
    pub(crate) fn start<'a>(number: u16, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        Self::start_beside(0, number, arguments)
    }

    /// The same, where so many others of these are on the interface.
    #[track_caller]
    pub(crate) fn start_beside<'a>(others: u16, number: u16, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        Self::start_by(&mut corelane(None::<&str>), others, number, arguments)
    }

    /// The same by a command that takes the program's arguments.
    #[track_caller]
    pub(crate) fn start_by<'a>(
        command: &mut Command,
        others: u16,
        number: u16,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let arguments: Vec<_> = arguments.into_iter().collect();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9100 + 100 * others + number));
        command.args(["monitor", "--quiet", "-i", &format!("b{number}"), "--metrics", &address.to_string()]);
        if !arguments.contains(&"--format") {
            command.args(["--format", "json"]);
        }
        let mut child = command.args(arguments).spawn().expect("the program starts");
        let stdout = child.stdout.take().map(Heard::start);
        let stderr = child.stderr.take().map(Heard::start);
        let mut live = Self { child, address, stdout, stderr };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            let has_ended = live.child.try_wait().expect("a child").is_some();
            assert!(!has_ended && start.elapsed() < PATIENCE, "it does not start: {}", live.said());
            thread::sleep(LOOK);
        }
        // It listens early, and answers once everything is open.
        live.get("/healthz");
        live
    }

    /// The process's number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it runs");
    }

    /// What it has said on the standard error.
    pub(crate) fn said(&self) -> String {
        self.stderr.as_ref().expect("it runs").so_far()
    }

    /// What it has written to the standard output.
    pub(crate) fn written(&self) -> String {
        self.stdout.as_ref().expect("it runs").so_far()
    }

    /// How often it has said this.
    pub(crate) fn times_said(&self, what: &str) -> usize {
        self.said().matches(what).count()
    }

    #[track_caller]
    pub(crate) fn wait_until_said(&self, what: &str) {
        wait_for(what, || (self.times_said(what) > 0).then_some(()));
    }

    /// The status and the body of an answer over HTTP.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut client = TcpStream::connect(self.address).expect("it listens");
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head["HTTP/1.1 ".len()..][..3].parse().expect("a status"), body.to_owned())
    }

    #[track_caller]
    pub(crate) fn scrape(&self) -> Samples {
        let (status, text) = self.get("/metrics");
        assert_eq!(status, 200);
        parse_metrics(&text)
    }

    /// Waits until so many packets have passed the filter.
    #[track_caller]
    pub(crate) fn wait_until_received(&self, packets: usize) {
        let what = format!("{packets} packets; {}", self.said());
        wait_for(&what, || (sample(&self.scrape(), "capture_packets_total") >= packets as f64).then_some(()));
    }

    /// Waits for the answer of `/healthz`; gives the document.
    #[track_caller]
    pub(crate) fn wait_until_health(&self, status: u16) -> String {
        wait_for(&format!("health {status}: {}", self.said()), || {
            let (found, body) = self.get("/healthz");
            (found == status).then_some(body)
        })
    }

    /// Ends it as a service is ended.
    #[track_caller]
    pub(crate) fn stop(self) -> Outcome {
        self.signal(Signal::TERM);
        self.finish()
    }

    #[track_caller]
    pub(crate) fn finish(mut self) -> Outcome {
        let status = wait_for(&format!("its end; {}", self.said()), || self.child.try_wait().expect("a child"));
        let [stdout, stderr] = [self.stdout.take(), self.stderr.take()].map(|heard| heard.expect("once").all());
        Outcome::new(status.code(), stdout, stderr)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of a family with one sample at most; 0 before there is one.
pub(crate) fn sample(samples: &Samples, name: &str) -> f64 {
    let mut values = samples.iter().filter(|((of, _), _)| of.strip_prefix("corelane_") == Some(name));
    values.next().map_or(0.0, |(_, &value)| value)
}

/// The value of a sample with a label of this value.
pub(crate) fn labelled(samples: &Samples, name: &str, label: &str) -> f64 {
    let is_it = |of: &str, labels: &[(String, String)]| {
        of.strip_prefix("corelane_") == Some(name) && labels.iter().any(|(_, value)| value == label)
    };
    samples.iter().find(|((of, labels), _)| is_it(of, labels)).map_or(0.0, |(_, &value)| value)
}

/// Makes the pair `a{number}` and `b{number}`, both up, and `lo` for the metrics.
pub(crate) fn pair(number: u16) {
    quiet();
    ip("link set lo up");
    ip(&format!("link add a{number} mtu 65535 type veth peer name b{number} mtu 65535"));
    ip(&format!("link set a{number} up"));
    ip(&format!("link set b{number} up"));
    // The kernel says a little later that there is a carrier, and drops what is sent before.
    for end in ["a", "b"] {
        let state = format!("/sys/class/net/{end}{number}/operstate");
        wait_for("a carrier", || std::fs::read_to_string(&state).is_ok_and(|state| state == "up\n").then_some(()));
    }
}

/// Runs `send` with a sender on `a{number}`, in a thread of its own, as a sender keeps its thread on one CPU.
pub(crate) fn sending<T: Send>(number: u16, send: impl FnOnce(&Sender) -> T + Send) -> T {
    let body = || send(&Sender::new(&format!("a{number}")));
    thread::scope(|scope| scope.spawn(body).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs `meanwhile` while `send` is called again and again, in a thread of its own, with the number of calls before.
/// Gives that number at the end.
pub(crate) fn under_load<T>(
    number: u16,
    send: impl Fn(&Sender, u32) + Send + Sync,
    meanwhile: impl FnOnce() -> T,
) -> (u32, T) {
    /// Ends the load also when a test fails.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let load = scope.spawn(move || {
            sending(number, |sender| {
                let mut calls = 0;
                while !is_over.load(Ordering::Relaxed) {
                    send(sender, calls);
                    calls += 1;
                }
                calls
            })
        });
        let end = End(is_over);
        let done = meanwhile();
        drop(end);
        (load.join().unwrap(), done)
    })
}

/// An IPv4 packet in a frame.
pub(crate) fn ipv4(source: u32, destination: u32, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend(source.to_be_bytes());
    packet.extend(destination.to_be_bytes());
    packet.extend(payload);
    frame(&[8, 0], &packet)
}

/// A query of DNS for a name with this number. Each is an event of its own.
pub(crate) fn query(number: u32) -> Vec<u8> {
    query_of(1, number)
}

/// The same, of the host 10.0.0.`host`.
pub(crate) fn query_of(host: u32, number: u32) -> Vec<u8> {
    let name = format!("{number:08}");
    let mut message = vec![(number >> 8) as u8, number as u8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, name.len() as u8];
    message.extend(name.as_bytes());
    message.extend(b"\x07example\0\0\x01\0\x01");
    // From few ports, so that there are not many flows.
    let mut datagram = (40_000 + (number % 50) as u16).to_be_bytes().to_vec();
    datagram.extend(53_u16.to_be_bytes());
    datagram.extend((8 + message.len() as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(message);
    ipv4(0x0a00_0000 + host, 0x0a00_0002, 17, &datagram)
}

/// A TCP segment without payload: a SYN, or what follows one. One with an ACK acknowledges a SYN of the other end.
pub(crate) fn segment(source: u32, destination: u32, ports: [u16; 2], flags: u8) -> Vec<u8> {
    let mut header = ports.map(u16::to_be_bytes).concat();
    let (sequence, acknowledged) = (if flags & 0x02 == 0 { 2 } else { 1 }, if flags & 0x10 == 0 { 0 } else { 2 });
    header.extend([0, 0, 0, sequence, 0, 0, 0, acknowledged, 0x50, flags, 4, 0, 0, 0, 0, 0]);
    ipv4(source, destination, 6, &header)
}
