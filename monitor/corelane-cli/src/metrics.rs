//! `/metrics` and `/healthz` over HTTP, for Prometheus and whatever watches a service. Those of an aggregator are in
//! `metrics/sensors.rs`, the text of both in `metrics/text.rs`.
//!
//! Threads of its own answer from a copy of the run's last numbers: a scrape costs the run a lock that is held for the
//! exchange of a pointer. A client is given up after four seconds, or when there are 64 newer ones, so that none holds
//! up others.

mod sensors;
#[cfg(feature = "metrics")]
mod text;
#[cfg(not(feature = "metrics"))]
#[path = "metrics/no_text.rs"]
mod text;

use self::text::{CONTENT_TYPE, Collected, metrics};
use crate::exit::left_out;
use crate::output::Condition;
use httparse::Status;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The longest request, in bytes.
const MOST_REQUEST: usize = 8 << 10;

/// Headers of a request.
const MOST_HEADERS: usize = 64;

/// How long a client has to send its request, and as long again to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Clients at a time. A newer one takes the place of the oldest, which either says nothing or takes nothing.
const MOST_CLIENTS: usize = 64;

/// Bytes of a thread's stack that answers.
const STACK: usize = 256 << 10;

/// A run without progress for so long hangs.
const STALE: Duration = Duration::from_secs(60);

pub(crate) use sensors::Sensors;

/// What is served.
pub(crate) trait Served: Collected {
    /// What is wrong, a sentence each.
    fn problems(&self) -> Vec<String>;

    /// The protections of the process, and what the kernel gave of each.
    fn protections(&self) -> &[(&'static str, String)] {
        &[]
    }
}

/// The document of `/healthz`, and whether all is well.
fn health(served: &impl Served) -> (String, bool) {
    let problems = served.problems();
    let is_well = problems.is_empty();
    let protections: Vec<_> = served
        .protections()
        .iter()
        .map(|(name, given)| format!("{}:{}", Value::from(*name), Value::from(given.as_str())))
        .collect();
    let json = format!(
        "{{\"status\":\"{}\",\"problems\":{},\"version\":{},\"protections\":{{{}}}}}\n",
        if is_well { "ok" } else { "failing" },
        Value::from(problems),
        Value::from(env!("CARGO_PKG_VERSION")),
        protections.join(",")
    );
    (json, is_well)
}

/// That a run has had no progress for too long, if so.
fn stale(updated: Option<Instant>) -> Option<String> {
    let age = updated.map(|updated| updated.elapsed()).filter(|&age| age > STALE)?;
    Some(format!("no progress for {} s", age.as_secs()))
}

/// The errors of outputs.
fn failing(outputs: &[OutputState]) -> impl Iterator<Item = String> {
    let failing = outputs.iter().filter_map(|output| Some((&output.name, output.error.as_ref()?)));
    failing.map(|(name, error)| format!("output {name}: {error}"))
}

/// Numbers by the value of a label.
pub(crate) type By<N = u64> = Vec<(Cow<'static, str>, N)>;

/// The numbers of a run. Totals are since its start, and never fall.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// When the run published this; `None` if its age does not matter.
    pub(crate) updated: Option<Instant>,
    pub(crate) interfaces: Vec<Interface>,
    /// Bytes of the packets that were analysed, as on the wire.
    pub(crate) bytes: u64,
    /// The time from a packet's arrival to its analysis, of the last one.
    pub(crate) packet_lag: Duration,
    /// The time of the last packet, in nanoseconds since the epoch.
    pub(crate) last_packet_ns: Option<u64>,
    /// Open conversations.
    pub(crate) conversations: u64,
    /// Groups of failures that may become scans.
    pub(crate) scan_groups: u64,
    /// Bytes of memory, by part.
    pub(crate) memory: By,
    /// What a limit of memory refused, by part.
    pub(crate) refused: By,
    /// What gave way to something newer, by reason.
    pub(crate) evicted: By,
    /// Alerts, by kind.
    pub(crate) alerts: By,
    /// Events that were written, by type.
    pub(crate) events: By,
    pub(crate) outputs: Vec<OutputState>,
    /// How full the queues before each stage are, from 0 to 1.
    pub(crate) queue_fill: By<f64>,
    /// What else is wrong, a sentence each.
    pub(crate) problems: Vec<String>,
    /// The protections of the process, and what the kernel gave of each.
    pub(crate) protections: Vec<(&'static str, String)>,
}

/// The capture from one interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) is_up: bool,
    /// Packets that passed the filter, those included that were dropped.
    pub(crate) packets: u64,
    /// Packets that found the ring full.
    pub(crate) drops: u64,
    /// How often the ring was full.
    pub(crate) freezes: u64,
    /// Packets longer than what the ring takes of one.
    pub(crate) truncated: u64,
}

/// An output of the run.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputState {
    pub(crate) name: String,
    /// Attempts to write that have failed.
    pub(crate) errors: u64,
    /// Lines or records that were lost.
    pub(crate) dropped: u64,
    /// The error of the last attempt, if it failed.
    pub(crate) error: Option<String>,
}

impl OutputState {
    /// An output of this name in this condition.
    pub(crate) fn of(name: &str, condition: &Condition) -> Self {
        let Condition { errors, dropped, error } = condition.clone();
        OutputState { name: name.to_owned(), errors, dropped, error }
    }
}

impl Served for Snapshot {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<_> = stale(self.updated).into_iter().collect();
        let down = self.interfaces.iter().filter(|interface| !interface.is_up);
        problems.extend(down.map(|interface| format!("interface {} is down", interface.name)));
        problems.extend(failing(&self.outputs));
        problems.extend(self.problems.iter().cloned());
        problems
    }

    fn protections(&self) -> &[(&'static str, String)] {
        &self.protections
    }
}

/// Reads the address of an option: `ADDR:PORT`, or `:PORT` or `PORT` of this machine alone.
///
/// # Errors
///
/// A sentence for the user.
fn address(text: &str) -> Result<SocketAddr, String> {
    if cfg!(not(feature = "metrics")) {
        return Err(left_out("`--metrics`", "metrics"));
    }
    let port = text.strip_prefix(':').unwrap_or(text);
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let address =
        if is_port { port.parse().ok().map(|port| (Ipv4Addr::LOCALHOST, port).into()) } else { text.parse().ok() };
    address.ok_or_else(|| {
        "not an IP address and a port; give them such as 127.0.0.1:9100 or [::1]:9100, or a port of this machine".into()
    })
}

/// Listens at the address that `--metrics` names, if it is given.
///
/// # Errors
///
/// A sentence for the user.
pub(crate) fn listener(option: Option<&str>) -> Result<Option<Listener>, String> {
    let Some(text) = option else { return Ok(None) };
    let address = address(text).map_err(|error| format!("--metrics {text}: {error}"))?;
    Listener::bind(address).map(Some).map_err(|error| format!("--metrics {error}"))
}

/// A listening socket whose requests are not answered yet. It takes rights that a confined process no longer has, while
/// threads are only started by a confined one.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on an address; the system chooses a port in place of 0.
    ///
    /// # Errors
    ///
    /// The system's, with a text that names the address and says what to do.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let bound =
            TcpListener::bind(address).and_then(|socket| Ok(Listener { address: socket.local_addr()?, socket }));
        bound.map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => "another program has it; choose another port",
                io::ErrorKind::AddrNotAvailable => "no interface has this address; choose one that `ip address` shows",
                io::ErrorKind::PermissionDenied => "ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one",
                _ => "choose another address",
            };
            io::Error::new(error.kind(), format!("{address}: metrics cannot be offered there: {error}; {advice}"))
        })
    }

    /// Starts the thread that listens, and that starts one for each client. They answer by what `source` returns at
    /// each request.
    ///
    /// # Errors
    ///
    /// The system's, if it gives no thread.
    pub(crate) fn serve<S: Served>(self, source: impl Fn() -> S + Send + Sync + 'static) -> io::Result<Metrics> {
        let Listener { socket, address } = self;
        let (ending, source) = (Arc::new(AtomicBool::new(false)), Arc::new(source));
        let is_ending = Arc::clone(&ending);
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let mut clients: VecDeque<Client> = VecDeque::with_capacity(MOST_CLIENTS);
            while !is_ending.load(Ordering::Acquire) {
                let accepted = socket.accept().and_then(|(socket, _)| Client::start(socket, &source));
                clients.retain(|client| !client.thread.is_finished());
                if clients.len() == MOST_CLIENTS
                    && let Some(oldest) = clients.pop_front()
                {
                    oldest.hang_up(Shutdown::Both);
                }
                match accepted {
                    Ok(client) => clients.push_back(client),
                    // Without file descriptors, for one, this fails at once, and again.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
            // What was asked is answered, and no more is read.
            clients.iter().for_each(|client| client.hang_up(Shutdown::Read));
            clients.into_iter().for_each(|client| drop(client.thread.join()));
        })?;
        Ok(Metrics { address, ending, thread: Some(thread) })
    }
}

/// A client whose request is read or answered.
struct Client {
    /// Its thread's, which closes it.
    socket: Weak<TcpStream>,
    thread: JoinHandle<()>,
}

impl Client {
    fn start<S: Served>(socket: TcpStream, source: &Arc<impl Fn() -> S + Send + Sync + 'static>) -> io::Result<Self> {
        let (own, source) = (Arc::new(socket), Arc::clone(source));
        let socket = Arc::downgrade(&own);
        // A client that goes away has seen enough.
        let body = move || drop(answer(&own, &*source));
        let thread = thread::Builder::new().name("client".to_owned()).stack_size(STACK).spawn(body)?;
        Ok(Client { socket, thread })
    }

    /// Ends the waits of its thread, and so the thread. An error means that the client has gone.
    fn hang_up(&self, how: Shutdown) {
        if let Some(socket) = self.socket.upgrade() {
            let _ = socket.shutdown(how);
        }
    }
}

/// The server. It ends when this is dropped, at the latest after the requests that it is answering.
#[derive(Debug)]
pub(crate) struct Metrics {
    address: SocketAddr,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    /// The address, with the port that the system chose.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        let mut address = self.address;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        // Nothing else ends the thread's wait. If that fails, the thread ends with the process.
        if TcpStream::connect_timeout(&address, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// What goes back to a client.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Answer {
    fn error(status: &'static str, why: &str) -> Self {
        Answer { status, kind: "text/plain; charset=utf-8", body: format!("{why}\n") }
    }
}

fn answer<S: Served>(mut client: &TcpStream, source: &impl Fn() -> S) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut request = vec![0; MOST_REQUEST];
    let mut length = 0;
    let (answer, is_head) = loop {
        if length == request.len() {
            break (Answer::error("400 Bad Request", "The request is longer than 8 KiB."), false);
        }
        client.set_read_timeout(Some(left(deadline)?))?;
        let read = match client.read(&mut request[length..]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if read == 0 {
            if length == 0 {
                return Ok(());
            }
            break (Answer::error("400 Bad Request", "The request ends early."), false);
        }
        length += read;
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(&request[..length]) {
            Ok(Status::Partial) => {}
            Ok(Status::Complete(_)) => {
                let (method, path) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
                break (respond(method, path, source), method == "HEAD");
            }
            Err(error) => break (Answer::error("400 Bad Request", &format!("Not a request: {error}.")), false),
        }
    };
    let Answer { status, kind, body } = answer;
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         {allow}Connection: close\r\n\r\n",
        body.len()
    );
    let deadline = Instant::now() + PATIENCE;
    send(client, head.as_bytes(), deadline)?;
    if !is_head {
        send(client, body.as_bytes(), deadline)?;
    }
    client.shutdown(Shutdown::Write)?;
    // Closing a socket with unread bytes resets the connection, and the client might lose the answer.
    let mut rest = MOST_REQUEST;
    while !status.starts_with("200") && rest > 0 {
        client.set_read_timeout(Some(left(deadline)?))?;
        match client.read(&mut request)? {
            0 => break,
            read => rest = rest.saturating_sub(read),
        }
    }
    Ok(())
}

fn respond<S: Served>(method: &str, path: &str, source: &impl Fn() -> S) -> Answer {
    match path_of(path) {
        "/metrics" | "/healthz" if !matches!(method, "GET" | "HEAD") => {
            Answer::error("405 Method Not Allowed", "GET and HEAD are answered.")
        }
        "/metrics" => Answer { status: "200 OK", kind: CONTENT_TYPE, body: metrics(source()) },
        "/healthz" => {
            let (body, is_well) = health(&source());
            let status = if is_well { "200 OK" } else { "503 Service Unavailable" };
            Answer { status, kind: "application/json", body }
        }
        _ => Answer::error("404 Not Found", "There are /metrics and /healthz."),
    }
}

/// The path of a request's target, which may be a whole URL: a server has to take what is sent to proxies.
fn path_of(target: &str) -> &str {
    let path = match target.split_at_checked("http://".len()) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// Writes all bytes before the deadline, however slowly the client takes them.
fn send(mut client: &TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        client.set_write_timeout(Some(left(deadline)?))?;
        match client.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    // A time-out of zero would be none.
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(all(test, feature = "metrics"))]
mod tests;
