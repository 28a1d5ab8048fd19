//! The server: which thread reads, which dispatches, which work, and how it ends.
//!
//! 1. A thread for each client reads its frames and checks them. It waits in `read` and needs little: 900 of them are
//!    no burden, and none needs an event loop. A batch goes to the dispatcher through one bounded queue ([`mpmc`]):
//!    when that is full the thread waits, and TCP holds the client back.
//! 2. The dispatcher cuts batches into pieces and hands them to the workers ([`dispatch`](corelane::dispatch)), to the
//!    one with the least to do.
//! 3. A worker does the jobs of a piece. The worker that does the last piece of a batch acknowledges the batch.
//! 4. To stop, the queue is closed: what is read from now on goes nowhere. The dispatcher drains it and joins the
//!    workers, and what was in it is acknowledged. Only then does the server close its half of each connection, and
//!    reads on until the client has closed its own: where something has come that is not read, TCP ends a connection by
//!    a reset, and throws away what has not reached the client. After half a second it does not wait for clients any
//!    more.

use super::protocol::{Answer, End, Frames, Request, write_answer};
use corelane::dispatch::{Builder, LeastLoaded};
use corelane::{error::DispatchError, mpmc};
use std::collections::HashMap;
use std::hint::black_box;
use std::io::{self, BufReader};
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How the server works.
#[derive(Clone, Debug)]
pub struct Config {
    pub workers: usize,
    /// Pieces in the queue of a worker.
    pub capacity: usize,
    /// Jobs that are dispatched together: as many go to one worker.
    pub piece: usize,
    /// Clients at a time; any more are refused.
    pub clients: usize,
    /// Batches that were read and are not dispatched.
    pub backlog: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { workers: 3, capacity: 256, piece: 150, clients: 2000, backlog: 1024 }
    }
}

/// What the server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub clients: u64,
    pub batches: u64,
    pub jobs: u64,
    /// Batches that were done and whose client was gone by then.
    pub lost: u64,
    /// Clients that sent what is no frame.
    pub refused: u64,
}

/// How long a client is waited for that does not take its answers, or that does not end when the server does.
const PATIENCE: Duration = Duration::from_millis(500);
/// A thread that reads frames needs no more.
const STACK: usize = 128 * 1024;

struct Client {
    address: SocketAddr,
    /// To be written to by the thread that acknowledges.
    answers: Mutex<TcpStream>,
    /// The same connection, to be shut down at any time.
    connection: TcpStream,
}

impl Client {
    /// Sends an answer. A client that is gone, or takes none for too long, gets no more.
    fn answer(&self, answer: &Answer) -> bool {
        let sent = write_answer(&mut *locked(&self.answers), answer).is_ok();
        if !sent {
            let _ = self.connection.shutdown(Shutdown::Both);
        }
        sent
    }
}

/// A batch on its way.
struct Batch {
    client: Arc<Client>,
    number: u64,
    jobs: Vec<u32>,
    /// Pieces that are not done.
    left: AtomicUsize,
}

/// Some jobs of a batch.
struct Piece {
    batch: Arc<Batch>,
    from: usize,
    to: usize,
}

type Log = dyn Fn(String) + Send + Sync;

struct Shared {
    address: SocketAddr,
    stopping: AtomicBool,
    clients: Mutex<HashMap<u64, Arc<Client>>>,
    queue: mpmc::Queue<Batch>,
    log: Box<Log>,
    batches: AtomicU64,
    jobs: AtomicU64,
    lost: AtomicU64,
    refused: AtomicU64,
}

/// What is under these locks is whole at any time.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Acquire)
    }

    fn stop(&self) {
        if self.stopping.swap(true, AcqRel) {
            return;
        }
        // The thread that waits for clients is to see it.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            let any_v4 = address.is_ipv4();
            address.set_ip(if any_v4 { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    }
}

/// A server at work.
pub struct Server {
    shared: Arc<Shared>,
    thread: JoinHandle<Totals>,
}

/// Stops a server from anywhere.
#[derive(Clone)]
pub struct Stopper(Arc<Shared>);

impl Stopper {
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Server {
    /// Listens and works until it is stopped. What is to be known is said to `log`, a line at a time.
    pub fn start(
        at: impl ToSocketAddrs,
        config: Config,
        log: impl Fn(String) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let listener = TcpListener::bind(at)?;
        let (dispatcher, workers) = Builder::new(config.workers)
            .capacity(config.capacity)
            .route(LeastLoaded::new())
            .build::<Piece>()
            .map_err(invalid)?;
        let shared = Arc::new(Shared {
            address: listener.local_addr()?,
            stopping: AtomicBool::new(false),
            clients: Mutex::new(HashMap::new()),
            queue: mpmc::try_queue(config.backlog).map_err(invalid)?,
            log: Box::new(log),
            batches: AtomicU64::new(0),
            jobs: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        for worker in workers {
            let shared = shared.clone();
            let name = format!("worker {}", worker.number());
            let work = move || worker.run(|worker| worker.jobs().for_each(|piece| work(&shared, &piece)));
            thread::Builder::new().name(name).spawn(work)?;
        }
        let dispatch = {
            let (shared, piece) = (shared.clone(), config.piece.max(1));
            thread::Builder::new().name("dispatcher".into()).spawn(move || dispatch(&shared, dispatcher, piece))?
        };
        let thread = {
            let shared = shared.clone();
            let body = move || accept(&shared, &listener, config.clients, dispatch);
            thread::Builder::new().name("accept".into()).spawn(body)?
        };
        Ok(Self { shared, thread })
    }

    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(self.shared.clone())
    }

    /// Waits until the server has stopped.
    pub fn join(self) -> Totals {
        self.thread.join().expect("the server does not panic")
    }
}

/// Takes clients until the server stops, and sees to its end.
fn accept(shared: &Arc<Shared>, listener: &TcpListener, most: usize, dispatcher: JoinHandle<()>) -> Totals {
    let mut readers: Vec<JoinHandle<()>> = Vec::new();
    let mut count = 0;
    while !shared.is_stopping() {
        let (stream, address) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, for one: it may pass.
                (shared.log)(format!("cannot take a client: {error}"));
                thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        readers.retain(|reader| !reader.is_finished());
        match welcome(shared, stream, address, most, count) {
            Ok(Some(reader)) => {
                count += 1;
                readers.push(reader);
            }
            Ok(None) => {}
            Err(error) => (shared.log)(format!("client {address}: {error}")),
        }
    }
    shared.queue.close();
    let _ = dispatcher.join();
    // All that was in the queue is answered.
    let clients = mem::take(&mut *locked(&shared.clients));
    let end = |how| clients.values().for_each(|client| _ = client.connection.shutdown(how));
    end(Shutdown::Write);
    let since = Instant::now();
    while since.elapsed() < PATIENCE && !readers.iter().all(JoinHandle::is_finished) {
        thread::sleep(Duration::from_millis(1));
    }
    end(Shutdown::Both);
    for reader in readers {
        let _ = reader.join();
    }
    let of = |count: &AtomicU64| count.load(Relaxed);
    Totals {
        clients: count,
        batches: of(&shared.batches),
        jobs: of(&shared.jobs),
        lost: of(&shared.lost),
        refused: of(&shared.refused),
    }
}

/// Starts a thread for a new client, unless there are too many or the server stops.
fn welcome(
    shared: &Arc<Shared>,
    stream: TcpStream,
    address: SocketAddr,
    most: usize,
    number: u64,
) -> io::Result<Option<JoinHandle<()>>> {
    // An answer is one small write, and wanted at once.
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let client =
        Arc::new(Client { address, answers: Mutex::new(stream.try_clone()?), connection: stream.try_clone()? });
    {
        let mut clients = locked(&shared.clients);
        if shared.is_stopping() {
            return Ok(None);
        }
        if clients.len() >= most {
            client.answer(&Answer::Refused(format!("{most} clients are served already")));
            return Err(io::Error::other(format!("refused, {most} clients are served already")));
        }
        clients.insert(number, client.clone());
    }
    let reading = shared.clone();
    let read = move || read(&reading, stream, &client, number);
    let spawned = thread::Builder::new().name("client".into()).stack_size(STACK).spawn(read);
    spawned.map(Some).inspect_err(|_| {
        locked(&shared.clients).remove(&number);
    })
}

/// Reads a client's frames until it is gone, sends what is none, or the server stops.
fn read(shared: &Arc<Shared>, stream: TcpStream, client: &Arc<Client>, number: u64) {
    let mut frames = Frames::new(BufReader::with_capacity(4096, stream));
    while !shared.is_stopping() {
        match frames.request() {
            Ok(Request::Batch { number, jobs }) => {
                let batch = Batch { client: client.clone(), number, jobs, left: AtomicUsize::new(0) };
                if shared.queue.push(batch).is_err() {
                    break;
                }
            }
            Ok(Request::Stop) => {
                (shared.log)(format!("client {}: stop", client.address));
                shared.stop();
            }
            Err(End::Closed) => break,
            // As the server ends the connection.
            Err(_) if shared.is_stopping() => break,
            Err(end) => {
                (shared.log)(format!("client {}: {end}", client.address));
                if matches!(end, End::Bad { .. }) {
                    shared.refused.fetch_add(1, Relaxed);
                    client.answer(&Answer::Refused(end.to_string()));
                }
                break;
            }
        }
    }
    if shared.is_stopping() {
        // To be answered still, and read to its end meanwhile.
        let _ = io::copy(&mut &client.connection, &mut io::sink());
    } else if locked(&shared.clients).remove(&number).is_some() {
        // What is on its way is still answered if the client has only closed its own half.
        let _ = client.connection.shutdown(Shutdown::Read);
    }
}

type Dispatcher = corelane::dispatch::Dispatcher<Piece, corelane::spsc::Lane, corelane::wait::Adaptive, LeastLoaded>;

/// Hands out batches until the queue is closed and drained, and waits for the workers.
fn dispatch(shared: &Arc<Shared>, mut dispatcher: Dispatcher, most: usize) {
    let mut batches = Vec::new();
    while shared.queue.pop_batch(&mut batches, 64).is_ok() {
        for batch in batches.drain(..) {
            let jobs = batch.jobs.len();
            batch.left.store(jobs.div_ceil(most), Relaxed);
            let batch = Arc::new(batch);
            for from in (0..jobs).step_by(most) {
                let piece = Piece { batch: batch.clone(), from, to: jobs.min(from + most) };
                hand_out(shared, &mut dispatcher, piece);
            }
        }
    }
    if let Err(unfinished) = dispatcher.join() {
        (shared.log)(unfinished.to_string());
    }
}

fn hand_out(shared: &Shared, dispatcher: &mut Dispatcher, piece: Piece) {
    let mut piece = piece;
    loop {
        match dispatcher.dispatch(piece) {
            Ok(()) => return,
            Err(DispatchError::Panicked(back)) => {
                piece = back;
                if let Some(panic) = dispatcher.take_panic() {
                    (shared.log)(panic.to_string());
                }
            }
            Err(_) => {
                (shared.log)("no worker is left: start the server again".into());
                return shared.stop();
            }
        }
    }
}

/// Does some jobs, and acknowledges the batch if they were the last of it.
fn work(shared: &Shared, piece: &Piece) {
    for &turns in &piece.batch.jobs[piece.from..piece.to] {
        (0..turns).for_each(|turn| {
            black_box(turn);
        });
    }
    // The worker that does the last piece has seen the others done.
    if piece.batch.left.fetch_sub(1, AcqRel) == 1 {
        let batch = &piece.batch;
        let jobs = batch.jobs.len() as u32;
        shared.batches.fetch_add(1, Relaxed);
        shared.jobs.fetch_add(u64::from(jobs), Relaxed);
        if !batch.client.answer(&Answer::Done { number: batch.number, jobs }) {
            shared.lost.fetch_add(1, Relaxed);
        }
    }
}
