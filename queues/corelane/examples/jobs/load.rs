//! The load: many clients, each of which sends a batch, waits for its acknowledgement, and sends the next.

use super::protocol::{Answer, Frames, Request, write_request};
use std::io::{self, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::sync::{RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How much. The defaults are a third of the paper's Table 3, which has three machines of such clients.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub clients: usize,
    pub requests: usize,
    /// Jobs in a request.
    pub batch: usize,
    /// Turns of a loop in a job.
    pub size: u32,
}

impl Default for Load {
    fn default() -> Self {
        Self { clients: 300, requests: 80, batch: 150, size: 10 }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The times from a request to its acknowledgement, in order of length.
    pub latencies: Vec<Duration>,
    /// From the first request to the last acknowledgement.
    pub elapsed: Duration,
    /// The average of the times that a client took for all of its requests: what the paper's table shows.
    pub client: Duration,
    /// What went wrong, by client.
    pub failures: Vec<(usize, String)>,
}

impl Outcome {
    /// The time that this part of the requests did not exceed.
    pub fn quantile(&self, part: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((last as f64 * part).round() as usize).copied().unwrap_or_default()
    }
}

/// Runs the load. All clients are connected before the first request is sent.
pub fn run(address: SocketAddr, load: Load) -> io::Result<Outcome> {
    // Whether it takes place, once that can be read.
    let gate = RwLock::new(true);
    let (connected, connections) = mpsc::channel();
    thread::scope(|scope| {
        let mut open = gate.write().expect("no thread panics with it");
        let mut threads = Vec::with_capacity(load.clients);
        for _ in 0..load.clients {
            let (gate, connected) = (&gate, connected.clone());
            let body = move || {
                let stream = connect(address);
                let _ = connected.send(());
                let mut latencies = Vec::with_capacity(load.requests);
                if !*gate.read().expect("no thread panics with it") {
                    return (latencies, None);
                }
                let done = stream.and_then(|stream| client(&stream, load, &mut latencies));
                (latencies, done.err())
            };
            match thread::Builder::new().stack_size(128 * 1024).spawn_scoped(scope, body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    *open = false;
                    return Err(error);
                }
            }
        }
        connections.iter().take(load.clients).for_each(drop);
        // Before the gate opens: the first may be through it, and done, when this thread goes on.
        let start = Instant::now();
        drop(open);
        let mut outcome = Outcome {
            latencies: Vec::with_capacity(load.clients * load.requests),
            elapsed: Duration::ZERO,
            client: Duration::ZERO,
            failures: Vec::new(),
        };
        for (number, thread) in threads.into_iter().enumerate() {
            let (latencies, failure) = thread.join().expect("a client does not panic");
            outcome.client += latencies.iter().sum::<Duration>() / load.clients.max(1) as u32;
            outcome.latencies.extend(latencies);
            outcome.failures.extend(failure.map(|error| (number, error.to_string())));
        }
        outcome.elapsed = start.elapsed();
        outcome.latencies.sort_unstable();
        Ok(outcome)
    })
}

/// With many clients at once the server's queue of connections may be full for a while.
fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let mut tries = 0;
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) if tries == 10 || error.kind() == io::ErrorKind::ConnectionRefused => return Err(error),
            Err(_) => {
                tries += 1;
                thread::sleep(Duration::from_millis(20 * tries));
            }
        }
    }
}

fn client(stream: &TcpStream, load: Load, latencies: &mut Vec<Duration>) -> io::Result<()> {
    let mut answers = Frames::new(BufReader::with_capacity(256, stream));
    let mut to = stream;
    let jobs = vec![load.size; load.batch];
    for number in 0..load.requests as u64 {
        let request = Request::Batch { number, jobs: jobs.clone() };
        let since = Instant::now();
        write_request(&mut to, &request)?;
        match answers.answer() {
            Ok(Answer::Done { number: of, jobs }) if of == number && jobs as usize == load.batch => {
                latencies.push(since.elapsed());
            }
            Ok(Answer::Refused(text)) => return Err(io::Error::other(format!("batch {number} was refused: {text}"))),
            Ok(other) => {
                return Err(io::Error::other(format!(
                    "batch {number} was answered by {other:?}; is this a job_server?"
                )));
            }
            Err(end) => return Err(io::Error::other(end.to_string())),
        }
    }
    Ok(())
}

/// Tells a server to stop.
pub fn stop(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    write_request(&mut stream, &Request::Stop)
}
