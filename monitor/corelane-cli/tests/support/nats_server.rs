//! A NATS server, which the test starts on a port of its own.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a start may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A TCP port of the loopback address that is free now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A NATS server with JetStream.
pub(crate) struct Server {
    program: PathBuf,
    pub(crate) port: u16,
    store: PathBuf,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Server {
    /// Starts one that stores in this folder, with these options; says that there is none otherwise.
    pub(crate) fn start(store: &Path, arguments: &[&str]) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
        let Some(program) = folders.find_map(|folder| Some(folder.join("nats-server")).filter(|path| path.is_file()))
        else {
            // Not through `eprintln!`, which a passing test swallows.
            let _ = std::io::stderr().write_all(b"SKIPPED: there is no nats-server in PATH or /usr/sbin\n");
            return None;
        };
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let mut server = Server { program, port: 0, store: store.to_owned(), arguments, child: None };
        // Another program may take a port between the two.
        for _ in 0..10 {
            server.port = free_port();
            if server.run() {
                return Some(server);
            }
        }
        panic!("nats-server does not start");
    }

    fn run(&mut self) -> bool {
        let mut command = Command::new(&self.program);
        command
            .args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "-js", "-sd"])
            .arg(&self.store)
            .args(&self.arguments);
        let said = OpenOptions::new().append(true).create(true).open(self.said()).expect("a temporary file");
        let mut child = command.stdout(Stdio::null()).stderr(said).spawn().expect("it starts");
        let end = Instant::now() + LIMIT;
        while Instant::now() < end && child.try_wait().unwrap().is_none() {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                self.child = Some(child);
                return true;
            }
            sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        let _ = child.wait();
        false
    }

    /// The file of what it says.
    fn said(&self) -> PathBuf {
        self.store.with_extension("said")
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    #[track_caller]
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.run(), "nats-server does not start again");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let ended = self.child.as_mut().map(|child| child.try_wait());
            let said = fs::read_to_string(self.said()).unwrap_or_default();
            eprintln!("nats-server: {ended:?}: {said}");
        }
        self.kill();
    }
}
