//! Jobs that clients send over TCP: a dispatcher, workers, and an acknowledgement for each request.
//!
//! Protocol and load are those of the example `job_server`. The server differs: the example's dispatcher has a fan-out,
//! and here the queues vary. As in the example, a thread for each client reads its requests and passes them to the
//! dispatcher through one queue, the same for all contenders.

#[path = "../../../corelane/examples/jobs/mod.rs"]
mod jobs;

use super::jobs::{Arrangement, Job, count_up};
use super::reading::{Failure, Outcome, Reading};
use super::tally::{Clock, Jobs, Part, Tally, cpu_of_a_job};
use crate::contenders::Unable;
use crate::contenders::jobs::Dispatch;
use crate::rig::{self, Stop, Took, Work};
use crate::setting::Setting;
use crate::topology::{self, Cpu};
use corelane::mpmc;
use cpu_time::ThreadTime;
use jobs::load::{self, Load};
use jobs::protocol::{Answer, Frames, Request, write_answer};
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How many clients there are, and what each of them sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clients {
    pub(crate) clients: usize,
    /// Requests of each client.
    pub(crate) requests: usize,
    /// Jobs in a request.
    pub(crate) batch: usize,
    pub(crate) turns: u32,
}

/// The load of a quick run.
const QUICK_CLIENTS: usize = 6;
const QUICK_REQUESTS: usize = 2;
/// Open files beyond two for each client.
const OTHER_FILES: usize = 64;
/// How long all clients may take to connect.
const PATIENCE: Duration = Duration::from_secs(30);
/// The stack of a thread that reads requests.
const STACK: usize = 128 * 1024;

/// A client, as the server sees it. It has one request at a time.
#[derive(Debug)]
struct Client {
    stream: TcpStream,
    /// The number of the client's request, and how many of its jobs are not done.
    number: AtomicU64,
    left: AtomicU32,
    jobs: AtomicU32,
}

impl Client {
    /// Counts a job of the client's request as done. After the last one, sends the acknowledgement.
    #[inline(always)]
    fn is_done(&self) -> bool {
        // The worker that does the last job has seen the others done, and the request.
        self.left.fetch_sub(1, AcqRel) == 1
    }

    fn acknowledge(&self) {
        let answer = Answer::Done { number: self.number.load(Relaxed), jobs: self.jobs.load(Relaxed) };
        // If the client is gone, the load reports that itself.
        let _ = write_answer(&mut &self.stream, &answer);
    }
}

/// The requests on their way to the dispatcher: the client's place, and the turns of each job.
type Requests = mpmc::Queue<(u32, Vec<u32>)>;

/// The threads that read requests.
type Readers = Vec<JoinHandle<()>>;

/// Closes the queue when its last handle is dropped.
#[derive(Debug)]
struct Closing(Arc<Requests>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The results of a run.
#[derive(Debug)]
struct Served {
    took: Took,
    requests: u64,
    /// The average time of a request, as its client sees it.
    latency: Duration,
    /// CPU time of the dispatcher and the workers, in this order.
    parts: Vec<Part>,
}

/// Lets clients send requests. Each client sends its next request when the last one is acknowledged. The value is the
/// average time of a request in milliseconds. CPU time and context switches are those of the dispatcher and the
/// workers.
pub(crate) fn client_server(
    setting: &Setting,
    contender: &Dispatch,
    arrangement: Arrangement,
    workers: usize,
    clients: Clients,
) -> Outcome {
    let requests = (setting.count as usize / clients.clients).clamp(1, clients.requests);
    let served = serve(setting, contender, arrangement, workers, Clients { requests, ..clients })?;
    let values = vec![served.latency.as_secs_f64() * 1e3];
    Ok(Reading { values, ..Reading::new(served.requests, served.took) })
}

/// The counts and the CPU time of the calls of the queues of such a server.
pub(crate) fn attempts_of_a_server(
    setting: &Setting,
    contender: &Dispatch,
    arrangement: Arrangement,
    workers: usize,
    clients: Clients,
) -> Outcome {
    assert!(arrangement.per_worker);
    let served = serve(setting, contender, arrangement, workers, clients)?;
    Ok(Reading { values: count_up(&served.parts), ..Reading::new(served.requests, served.took) })
}

/// Runs a server and its clients.
fn serve(
    setting: &Setting,
    contender: &Dispatch,
    arrangement: Arrangement,
    workers: usize,
    clients: Clients,
) -> Result<Served, Failure> {
    let Clients { clients, requests, batch, turns } = clients;
    let (clients, requests) =
        if setting.quick { (clients.min(QUICK_CLIENTS), QUICK_REQUESTS) } else { (clients, requests) };
    if let Some(reason) = too_few_files(clients) {
        return Err(Unable::because(reason).into());
    }
    let failed = |error: io::Error| Failure::Unable(Unable::because(format!("{clients} clients: {error}")));
    let (dispatcher, workers) = (contender.start)(arrangement, workers)?;

    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let load = Load { clients, requests, batch, size: turns };
    let load = thread::spawn(move || load::run(address, load));
    let queue = Arc::new(mpmc::try_queue(clients).map_err(|error| Unable::because(error.to_string()))?);
    let (table, readers) = accept(&listener, clients, &queue, &load).map_err(failed)?;
    let table = Arc::new(table);

    let mut work: Vec<(Option<Cpu>, Work<Part>)> = Vec::new();
    let hand_out: Work<Part> = Box::new(move |side| {
        let (mut tally, mut clock) = (Tally::default(), Clock::new());
        side.start()?;
        let next = &mut |jobs: &mut Vec<Job>| {
            let Ok((client, turns)) = queue.pop() else { return false };
            jobs.extend(turns.into_iter().map(|turns| Job { turns, number: client }));
            jobs.iter().for_each(|job| tally.add(*job));
            true
        };
        if !dispatcher.hand_out(next, Some(&mut clock)) {
            return Err(Stop::Elsewhere);
        }
        side.stop();
        Ok(Part { tally, inside: clock.sum, ..Part::default() })
    });
    work.push((setting.cpus[0], hand_out));
    for worker in workers {
        let table = table.clone();
        let work_on: Work<Part> = Box::new(move |side| {
            let a_job = cpu_of_a_job(turns);
            let mut answers = Clock::new();
            let after = &mut |job: Job| {
                let client = &table[job.number as usize];
                if client.is_done() {
                    answers.time(|| client.acknowledge());
                }
            };
            let mut jobs = Jobs { after: Some(after), ..Jobs::default() };
            side.start()?;
            let start = ThreadTime::now();
            let stats = worker.work(&mut jobs);
            let cpu = start.elapsed();
            side.stop();
            let tally = jobs.tally;
            let outside = Duration::from_secs_f64(a_job * tally.jobs() as f64) + answers.sum + answers.cost();
            Ok(Part { tally, inside: cpu.saturating_sub(outside), stats })
        });
        work.push((setting.cpus[1], work_on));
    }
    let (parts, took) = rig::run(setting, work)?;
    for reader in readers {
        let _ = reader.join();
    }
    let outcome = load.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(failed)?;
    if let Some((client, why)) = outcome.failures.first() {
        return Err(Unable::because(format!("client {client}: {why}")).into());
    }
    parts[0].tally.check(parts[1..].iter().map(|part| part.tally))?;
    Ok(Served {
        took,
        requests: outcome.latencies.len() as u64,
        latency: outcome.client / requests.max(1) as u32,
        parts,
    })
}

/// Accepts all clients, and starts a thread for each that reads its requests. The queue is closed when all clients are
/// gone.
fn accept<R>(
    listener: &TcpListener,
    clients: usize,
    queue: &Arc<Requests>,
    load: &JoinHandle<R>,
) -> io::Result<(Vec<Arc<Client>>, Readers)> {
    listener.set_nonblocking(true)?;
    let closing = Arc::new(Closing(queue.clone()));
    let start = Instant::now();
    let (mut table, mut readers) = (Vec::with_capacity(clients), Vec::with_capacity(clients));
    while table.len() < clients {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_nodelay(true)?;
                let (number, left, jobs) = Default::default();
                let client = Arc::new(Client { stream, number, left, jobs });
                let (place, closing) = (table.len() as u32, closing.clone());
                table.push(client.clone());
                let read = move || read(&client, place, &closing.0);
                readers.push(thread::Builder::new().stack_size(STACK).spawn(read)?);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // A client that the load could not connect never comes.
                if load.is_finished() || start.elapsed() > PATIENCE {
                    return Err(io::Error::other(format!("only {} of them connected", table.len())));
                }
                thread::sleep(Duration::from_micros(200));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((table, readers))
}

/// Passes a client's requests on until the client is gone.
fn read(client: &Client, place: u32, queue: &Requests) {
    let mut frames = Frames::new(BufReader::with_capacity(4096, &client.stream));
    while let Ok(Request::Batch { number, jobs }) = frames.request() {
        client.number.store(number, Relaxed);
        client.jobs.store(jobs.len() as u32, Relaxed);
        client.left.store(jobs.len() as u32, Relaxed);
        // The queue's synchronization publishes these stores together with the request.
        if queue.push((place, jobs)).is_err() {
            break;
        }
    }
}

/// Why this many clients cannot be served, if the limit of open files is too low.
fn too_few_files(clients: usize) -> Option<String> {
    let limits = topology::read("/proc/self/limits")?;
    lacks(&limits, 2 * clients + OTHER_FILES)
}

/// The fault of these limits, in Linux's format, for a process that needs this many files.
fn lacks(limits: &str, files: usize) -> Option<String> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let limit: usize = line.split_whitespace().next()?.parse().ok()?;
    (limit < files)
        .then(|| format!("needs {files} open files, and the limit is {limit}: run it after `ulimit -n {files}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::jobs::{counting, crossbeam, lanes_adapt};
    use crate::measure::values::{ENQUEUE, ENQUEUE_FAILED};

    const SETTING: Setting =
        Setting { cpus: [None; 2], bound: Duration::from_secs(1), count: 60, counting: false, quick: false };
    const CLIENTS: Clients = Clients { clients: 20, requests: 80, batch: 30, turns: 10 };

    #[test]
    fn every_request_is_acknowledged() {
        let arrangement = Arrangement { per_worker: true, batched: true, batch: 30 };
        let reading = client_server(&SETTING, &lanes_adapt(), arrangement, 3, CLIENTS).expect("it comes to its end");
        assert_eq!(reading.items, 20 * 3);
        // All workers may do jobs of one request.
        let arrangement = Arrangement { per_worker: false, batched: false, batch: 30 };
        let served = serve(&SETTING, &crossbeam(), arrangement, 3, Clients { requests: 4, ..CLIENTS });
        let served = served.expect("it comes to its end");
        assert_eq!((served.requests, served.parts.len()), (20 * 4, 4));
        assert!(served.latency > Duration::ZERO && served.parts.iter().any(|part| part.inside > Duration::ZERO));
    }

    #[test]
    fn every_queue_of_a_server_counts_too() {
        let arrangement = Arrangement { per_worker: true, batched: false, batch: 30 };
        for queue in counting() {
            let clients = Clients { clients: 5, requests: 4, ..CLIENTS };
            let reading = attempts_of_a_server(&SETTING, &queue, arrangement, 3, clients).expect("it comes to its end");
            assert_eq!(reading.items, 20);
            let put = reading.values[ENQUEUE] - reading.values[ENQUEUE_FAILED];
            assert_eq!(put, 600.0, "{}", queue.name(false));
        }
    }

    #[test]
    fn a_limit_of_files_that_is_too_low_is_one_clear_error() {
        let limits = |soft: &str| {
            format!(
                "Limit  Soft Limit  Hard Limit  Units\nMax open files            {soft}                 4096                 files\n"
            )
        };
        let reason = lacks(&limits("1024"), 1864).expect("it is too low");
        assert_eq!(reason, "needs 1864 open files, and the limit is 1024: run it after `ulimit -n 1864`");
        assert_eq!(lacks(&limits("1864"), 1864), None);
        assert_eq!(lacks(&limits("unlimited"), 1864), None);
        assert_eq!(lacks("", 1864), None);
    }
}
