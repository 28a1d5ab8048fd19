//! A server on localhost whose pool grows with the load and shrinks after it:
//! `cargo run --profile dist -p corelane-pool --example server` serves until it is stopped; with `-- --demo` it drives
//! itself, and ends.
//!
//! A request is a line: `short`, `long` (a tenth of a second of waiting, as for a disk or another server) or `sum N`.
//! The answer is a line. Every connection is one task; the sums of a request go to the same pool as tasks of a scope.

use corelane_pool::ThreadPool;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn answer(pool: &ThreadPool, request: &str) -> String {
    match request.split_once(' ') {
        None if request == "short" => "done".into(),
        None if request == "long" => {
            std::thread::sleep(Duration::from_millis(100));
            "done".into()
        }
        Some(("sum", n)) => match n.parse::<u64>() {
            Ok(n) => {
                let (mut low, mut high) = (0, 0);
                pool.scope(|scope| {
                    scope.spawn(|| low = (0..n / 2).fold(0, u64::wrapping_add));
                    scope.spawn(|| high = (n / 2..n).fold(0, u64::wrapping_add));
                });
                low.wrapping_add(high).to_string()
            }
            Err(error) => format!("error: '{n}' is not a number: {error}"),
        },
        _ => "error: unknown request; send short, long or sum N".into(),
    }
}

fn serve_connection(pool: &ThreadPool, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let answer = answer(pool, line?.trim()) + "\n";
        writer.write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// Hands every connection to the pool, until `stop` is set.
fn serve(pool: &ThreadPool, listener: &TcpListener, stop: &AtomicBool) -> io::Result<()> {
    for stream in listener.incoming() {
        if stop.load(SeqCst) {
            break;
        }
        let (stream, inner) = (stream?, pool.clone());
        let task = move || {
            if let Err(error) = serve_connection(&inner, stream) {
                eprintln!("a connection ended: {error}");
            }
        };
        if let Err(rejected) = pool.execute(task) {
            // The connection is closed by the drop of its task.
            eprintln!("{rejected}");
        }
    }
    Ok(())
}

/// Prints how many threads there are, whenever that has changed.
fn watch(pool: &ThreadPool, stop: &AtomicBool) {
    let start = Instant::now();
    let mut seen = usize::MAX;
    while !stop.load(SeqCst) {
        let counts = pool.counts();
        if counts.threads != seen {
            seen = counts.threads;
            let bar = "#".repeat(counts.threads);
            let seconds = start.elapsed().as_secs_f64();
            println!("{seconds:7.3} s  {:3} threads, {:3} busy  {bar}", counts.threads, counts.active);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One client: a connection, a request, an answer, so many times.
fn ask(address: SocketAddr, request: &str, times: usize) -> io::Result<()> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    let line = format!("{request}\n");
    for _ in 0..times {
        writer.write_all(line.as_bytes())?;
        let mut answer = String::new();
        reader.read_line(&mut answer)?;
        if answer.is_empty() || answer.starts_with("error") {
            return Err(io::Error::other(format!("answered {answer:?} to {request:?}")));
        }
    }
    Ok(())
}

/// So many clients at once.
fn clients(address: SocketAddr, count: usize, request: &str, times: usize) -> io::Result<()> {
    let start = Instant::now();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..count).map(|_| scope.spawn(|| ask(address, request, times))).collect();
        clients.into_iter().try_for_each(|client| client.join().expect("a client does not panic"))
    })?;
    println!("           {count} clients, {times} times {request:?} each: {:.3} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn drive(address: SocketAddr, pool: &ThreadPool) -> io::Result<()> {
    println!("-- one client after the other: a thread, or two while one of them closes its connection");
    for _ in 0..50 {
        ask(address, "short", 10)?;
    }
    println!("-- a few at once, and some arithmetic");
    clients(address, 4, "short", 500)?;
    clients(address, 2, "sum 1000000", 100)?;
    println!("-- many long ones at once: a thread each, so all take as long as one");
    clients(address, 24, "long", 3)?;
    println!("-- hardly anything for a second: the same threads again and again, the others leave");
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        ask(address, "short", 1)?;
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("-- nothing");
    std::thread::sleep(Duration::from_millis(800));
    let counts = pool.counts();
    println!(
        "{} connections, at most {} threads, {} at the end, {} panics",
        counts.completed, counts.largest, counts.threads, counts.panicked
    );
    Ok(())
}

fn main() -> io::Result<()> {
    let demo = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [demo] if demo == "--demo" => true,
        _ => {
            eprintln!("usage: server [--demo]");
            std::process::exit(2);
        }
    };
    let pool = ThreadPool::builder()
        .name("server")
        .max_threads(64)
        .keep_alive(Duration::from_millis(if demo { 500 } else { 10_000 }))
        .build()
        .expect("valid settings");
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    println!("listening on {address}");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(&pool, &listener, &stop));
        let watcher = scope.spawn(|| watch(&pool, &stop));
        let driven = if demo { drive(address, &pool) } else { server.join().expect("the server does not panic") };
        stop.store(true, SeqCst);
        if demo {
            // The listener wakes up for one more connection, and stops.
            TcpStream::connect(address)?;
        }
        watcher.join().expect("the watcher does not panic");
        driven
    })
}
