//! A connection to a NATS server: kept, lost, and made again; and what is on the server.
//!
//! | on the server | what |
//! |---|---|
//! | stream `PREFIX-batches` | the messages of all sensors, one a batch, on `PREFIX.batches.SENSOR` |
//! | object store `corelane-snapshots` | the aggregators' snapshots, `PREFIX.A-B` |
//!
//! The stream is made by whom it is missing first: in files, with a bound or without one, and refusing what is beyond
//! it, so that nothing goes unread. One that is there is used as it is. A reader that only looks makes nothing.
//!
//! # Order
//!
//! A sensor has many messages under way. If one is refused and a later one is not, or a message of a lost connection
//! comes late, the stream has a sensor's batches out of order. So each message says which it is and which one was sent
//! before it, and the sender goes back to the first that was not acknowledged, as in the protocol Go-Back-N. A reader
//! skips what comes behind a gap: it will come again.
//!
//! | header | value |
//! |---|---|
//! | `Corelane-Batch` | epoch and sequence, decimal, with a point between them |
//! | `Corelane-After` | those of the message before it; missing where the sender began anew, at what no server has |
//!
//! # Inboxes
//!
//! The server answers in `_INBOX.PREFIX.` and `sensor.NAME`, `aggregate` or `top`, so that rights may keep them apart.
//!
//! There is no asynchronous code outside of this module: each end has a thread that drives its connection.

mod reader;
mod sender;
#[cfg(test)]
mod tests;

pub(crate) use self::{reader::Nats, sender::Sender};

use super::Engine;
use super::connection::Connection;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{ContextBuilder, GetStreamErrorKind};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::{ConnectOptions, Event, jetstream};
use std::fmt::{self, Debug};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};

/// How long the server may take to answer or acknowledge.
const PATIENCE: Duration = Duration::from_secs(5);

/// A silent connection is asked for a sign of life this often. After three without an answer it is lost: well within
/// the time after which an aggregator leaves a silent sensor out.
const PING: Duration = Duration::from_secs(5);

/// The pauses between attempts, each twice the one before.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The environment variable of the token.
const TOKEN: &str = "CORELANE_NATS_TOKEN";

/// Why there is no connection any longer, where the server has not said why.
const LOST: &str = "the connection was lost";

/// The object store of the snapshots, and its stream.
const BUCKET: &str = "corelane-snapshots";
const BUCKET_STREAM: &str = "OBJ_corelane-snapshots";

/// The header with a batch's epoch and sequence.
const BATCH: &str = "Corelane-Batch";

/// The header with those of the batch that was sent before it.
const AFTER: &str = "Corelane-After";

/// The engine of a server. One that only looks makes nothing there.
///
/// # Errors
///
/// Options or files that cannot be used. A server that cannot be reached is none.
pub(crate) fn engine(url: &str, options: &NatsOptions, only_looks: bool) -> Result<Box<dyn Engine>, NatsError> {
    Ok(Box::new(if only_looks { Nats::that_looks(url, options) } else { Nats::new(url, options) }?))
}

/// How to reach a NATS server, and how to be let in.
#[derive(Clone)]
pub(crate) struct NatsOptions {
    /// What the names of subjects, stream and snapshots begin with: 1 to 32 of `A`-`Z`, `a`-`z`, `0`-`9`, `_`, `-`.
    pub(crate) prefix: String,
    /// A credentials file: a token of a user, and the seed of its key.
    pub(crate) credentials: Option<PathBuf>,
    /// A token.
    pub(crate) token: Option<String>,
    /// Certificates that a TLS server's has to come from, in PEM; without it those of the system.
    pub(crate) root_certificates: Option<PathBuf>,
    /// A certificate and its key, in PEM, for a server that wants to see one.
    pub(crate) client_certificate: Option<(PathBuf, PathBuf)>,
    /// The bound of the stream in bytes, if this program makes it.
    pub(crate) stream_bytes: Option<u64>,
}

impl Default for NatsOptions {
    fn default() -> Self {
        NatsOptions {
            prefix: "corelane".into(),
            credentials: None,
            token: None,
            root_certificates: None,
            client_certificate: None,
            stream_bytes: None,
        }
    }
}

/// Without the secret.
impl Debug for NatsOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NatsOptions")
            .field("prefix", &self.prefix)
            .field("credentials", &self.credentials)
            .field("token", &self.token.as_ref().map(|_| ".."))
            .field("root_certificates", &self.root_certificates)
            .field("client_certificate", &self.client_certificate)
            .field("stream_bytes", &self.stream_bytes)
            .finish()
    }
}

impl NatsOptions {
    /// These options, with the token of the environment variable `CORELANE_NATS_TOKEN`, if there is one.
    pub(crate) fn new(connection: &Connection) -> Self {
        NatsOptions {
            credentials: connection.nats_credentials.clone(),
            token: std::env::var(TOKEN).ok().filter(|token| !token.is_empty()),
            root_certificates: connection.nats_ca.clone(),
            client_certificate: connection.nats_cert.clone().zip(connection.nats_key.clone()),
            ..NatsOptions::default()
        }
    }

    /// Says what is wrong before anything is opened.
    pub(crate) fn check(&self, url: &str) -> Result<(), NatsError> {
        self.resolve(url, String::new()).map(drop)
    }

    /// Checks the names and the files, which are read once here: so that what is wrong is said at once, and not by a
    /// thread later. `role` is what connects, of which there may be rights: the name of its inbox.
    fn resolve(&self, url: &str, role: String) -> Result<Server, NatsError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !(1..=32).contains(&self.prefix.len()) || !self.prefix.bytes().all(is_plain) {
            return Err(NatsError::Prefix(self.prefix.clone()));
        }
        if self.token.is_some() && self.credentials.is_some() {
            return Err(NatsError::TwoIdentities);
        }
        let read = |path: &PathBuf| fs::read_to_string(path).map_err(|error| NatsError::Io(path.clone(), error));
        let mut files = self.root_certificates.iter().chain(self.client_certificate.iter().flat_map(|(a, b)| [a, b]));
        files.try_for_each(|path| read(path).map(drop))?;
        let mut options = ConnectOptions::new();
        if let Some(path) = &self.credentials {
            // Its error may quote the file.
            options = options.credentials(&read(path)?).map_err(|_| NatsError::Credentials(path.clone()))?;
        }
        drop(options);
        let credentials = self.credentials.as_ref().map(read).transpose()?;
        Ok(Server { url: url.into(), options: self.clone(), credentials, role, is_looked_at: false })
    }
}

/// Why no connection can be tried.
#[derive(Debug)]
pub(crate) enum NatsError {
    /// A prefix that cannot be.
    Prefix(String),
    /// A token and a credentials file.
    TwoIdentities,
    /// A file that is no credentials file.
    Credentials(PathBuf),
    /// A file that cannot be read.
    Io(PathBuf, io::Error),
    /// No thread, or nothing to wait with, can be had.
    Thread(io::Error),
}

impl fmt::Display for NatsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NatsError::Prefix(prefix) => {
                write!(out, "{prefix:?} cannot be a prefix: it has 1 to 32 letters, digits, _ or -")
            }
            NatsError::TwoIdentities => write!(out, "a credentials file and {TOKEN} are two identities: give one"),
            NatsError::Credentials(path) => write!(out, "{} is no credentials file", path.display()),
            NatsError::Io(path, error) => write!(out, "{}: {error}", path.display()),
            NatsError::Thread(error) => write!(out, "no thread for the connection: {error}"),
        }
    }
}

impl std::error::Error for NatsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            NatsError::Io(_, error) | NatsError::Thread(error) => Some(error),
            _ => None,
        }
    }
}

/// A server, and what it takes to be let in.
#[derive(Clone)]
struct Server {
    url: String,
    options: NatsOptions,
    credentials: Option<String>,
    role: String,
    /// Whether nothing is to be made on it.
    is_looked_at: bool,
}

impl Server {
    fn batches(&self, sensor: &str) -> String {
        format!("{}.batches.{sensor}", self.options.prefix)
    }

    /// The URLs of the servers.
    fn urls(&self) -> Vec<&str> {
        self.url.split(',').collect()
    }

    /// How often the servers hold what is made. A cluster that is to go on without one of them has three.
    fn replicas(&self) -> usize {
        if self.urls().len() < 3 { 1 } else { 3 }
    }

    /// Connects once. `lost` receives why the connection is no more, or good for nothing.
    async fn connect(&self, url: &str, lost: watch::Sender<Option<String>>) -> Result<jetstream::Context, String> {
        let mut options = ConnectOptions::new()
            .name(concat!("corelane ", env!("CARGO_PKG_VERSION")))
            .connection_timeout(PATIENCE)
            .ping_interval(PING)
            // One for each program: of an inbox that all may read, each would read what others are sent.
            .custom_inbox_prefix(format!("_INBOX.{}.{}", self.options.prefix, self.role))
            // A lost connection is lost: what was in it must not come out of another.
            .max_reconnects(1)
            .ignore_discovered_servers()
            .event_callback(move |event| {
                let why = match event {
                    Event::Disconnected | Event::Closed => Some(LOST.to_owned()),
                    // As of rights that are missing.
                    Event::ServerError(error) => Some(error.to_string()),
                    _ => None,
                };
                lost.send_if_modified(|lost| {
                    why.is_some() && lost.is_none() && {
                        *lost = why;
                        true
                    }
                });
                std::future::ready(())
            });
        if let Some(credentials) = &self.credentials {
            options = options.credentials(credentials).map_err(|_| "the credentials cannot be used".to_string())?;
        }
        if let Some(token) = &self.options.token {
            options = options.token(token.clone());
        }
        if let Some(path) = &self.options.root_certificates {
            options = options.add_root_certificates(path.clone());
        }
        // Without this, what stands between could ask for the token in the clear.
        if self.options.root_certificates.is_some() || self.options.client_certificate.is_some() {
            options = options.require_tls(true);
        }
        if let Some((certificate, key)) = &self.options.client_certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
        let client = options.connect(url).await.map_err(|error| error.to_string())?;
        Ok(ContextBuilder::new().timeout(PATIENCE).build(client))
    }

    /// Connects again and again, to each server in turn, and says how it is.
    async fn keep(self, link: watch::Sender<Link>) {
        let mut pause = Pause::default();
        let urls = self.urls();
        for (number, url) in (1..).zip(urls.iter().cycle()) {
            let (lost, mut is_lost) = watch::channel(None);
            match self.connect(url, lost).await {
                Ok(context) => {
                    let since = Instant::now();
                    link.send_replace(Link::Up(number, Box::new(context)));
                    let why = is_lost.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
                    link.send_replace(Link::Down(why.unwrap_or_else(|| LOST.to_owned())));
                    if since.elapsed() > PAUSES.1 {
                        pause = Pause::default();
                    }
                }
                Err(error) => {
                    let of_one = if urls.len() > 1 { format!("{url}: ") } else { String::new() };
                    link.send_replace(Link::Down(of_one + &error));
                    if number % urls.len() as u64 > 0 {
                        continue;
                    }
                }
            }
            pause.wait().await;
        }
    }

    /// The stream, which is made if it is not there.
    async fn stream(&self, context: &jetstream::Context) -> Result<stream::Stream, String> {
        let name = format!("{}-batches", self.options.prefix);
        let config = || stream::Config {
            name: name.clone(),
            subjects: vec![self.batches("*")],
            retention: RetentionPolicy::Limits,
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            max_bytes: self.options.stream_bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
            max_messages: -1,
            max_messages_per_subject: -1,
            max_consumers: -1,
            num_replicas: self.replicas(),
            ..stream::Config::default()
        };
        existing_or_made(context, &name, async || {
            if self.is_looked_at {
                return Err(format!("there is no stream {name} yet"));
            }
            context.create_stream(config()).await.map(drop).map_err(|error| format!("{name}: {error}"))
        })
        .await
    }
}

/// A stream, which is made if it is not there.
async fn existing_or_made(
    context: &jetstream::Context,
    name: &str,
    make: impl AsyncFnOnce() -> Result<(), String>,
) -> Result<stream::Stream, String> {
    if let Some(stream) = existing(context, name).await? {
        return Ok(stream);
    }
    make().await?;
    // Another may have begun to make it.
    existing(context, name).await?.ok_or_else(|| format!("{name} was removed as soon as it was made"))
}

/// A stream, if it is there; one that is being made is waited for.
async fn existing(context: &jetstream::Context, name: &str) -> Result<Option<stream::Stream>, String> {
    let end = Instant::now() + PATIENCE;
    loop {
        match context.get_stream(name).await {
            // As nats-server 2.9.10 says of one that has no store yet; it crashes if a message of that one is wanted.
            Ok(stream) if stream.cached_info().created.year() == 1 => {
                if Instant::now() > end {
                    return Err(format!("{name} is still being made"));
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(stream) => return Ok(Some(stream)),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    return Ok(None);
                }
                _ => return Err(format!("{name}: {error}")),
            },
        }
    }
}

/// How a connection is.
#[derive(Clone)]
enum Link {
    /// Not there, and why.
    Down(String),
    /// The number of the connection, and what goes over it.
    Up(u64, Box<jetstream::Context>),
}

/// Waits until there is a connection.
async fn up(link: &mut watch::Receiver<Link>) -> Option<(u64, jetstream::Context)> {
    match &*link.wait_for(|link| matches!(link, Link::Up(..))).await.ok()? {
        Link::Up(number, context) => Some((*number, (**context).clone())),
        Link::Down(_) => None,
    }
}

/// Waits until that connection is no more. Gives the reason.
async fn down(link: &mut watch::Receiver<Link>, number: u64) -> String {
    match link.wait_for(|link| !matches!(link, Link::Up(other, _) if *other == number)).await.as_deref() {
        Ok(Link::Down(why)) => why.clone(),
        _ => LOST.to_owned(),
    }
}

/// A pause that grows.
struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Pause(PAUSES.0)
    }
}

impl Pause {
    async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(PAUSES.1);
    }
}

/// The thread that drives a connection, and all that waits on it. It ends when this is dropped.
struct Driver {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    fn start() -> Result<Self, NatsError> {
        // The one thread more is for names and certificates.
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
        let runtime = runtime.map_err(NatsError::Thread)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let drive = move || {
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("nats".into()).spawn(drive).map_err(NatsError::Thread)?;
        Ok(Driver { handle, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An epoch and a sequence as a header has them.
fn batch_header((epoch, sequence): (u64, u64)) -> String {
    format!("{epoch}.{sequence}")
}

/// The epoch and the sequence of a header.
fn parse_batch_header(value: &str) -> Option<(u64, u64)> {
    let (epoch, sequence) = value.split_once('.')?;
    Some((epoch.parse().ok()?, sequence.parse().ok()?))
}
