//! Where sensors and aggregators meet, and their processes.

use crate::exposition::{Samples, parse_metrics};
use crate::program::{Folder, corelane, end};
use corelane_monitor::sensors::shard_of;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) use crate::lines::assert_same;
pub(crate) use crate::nats_server::{Server, free_port};

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Waits until something is there.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "it does not come: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// What carries the batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Files,
    Nats,
}

/// Where sensors and aggregators meet.
pub(crate) struct Site {
    /// It goes before the folder, which has what it said.
    pub(crate) server: Option<Server>,
    pub(crate) folder: Folder,
    /// The port through which the server is reached, if it is not its own.
    pub(crate) through: Option<u16>,
}

impl Site {
    /// `None` if there is no server for it, which was said then.
    pub(crate) fn new(carrier: Carrier) -> Option<Self> {
        let folder = Folder::new();
        for name in ["batches", "store"] {
            fs::create_dir(folder.path(name)).expect("a temporary folder");
        }
        let server = match carrier {
            Carrier::Files => None,
            Carrier::Nats => Some(Server::start(&folder.path("store"), &[])?),
        };
        Some(Site { folder, server, through: None })
    }

    /// What `--publish` and `--from` are given.
    pub(crate) fn place(&self) -> String {
        match &self.server {
            None => format!("file:{}", self.folder.path("batches").display()),
            Some(server) => format!("nats://127.0.0.1:{}", self.through.unwrap_or(server.port)),
        }
    }

    /// The folder that holds the folders of the sensors' logs.
    pub(crate) fn batches(&self) -> PathBuf {
        self.folder.path("batches")
    }

    /// A sensor of this name over a capture, which is not started yet.
    pub(crate) fn sensor(&self, name: &str, capture: &Path) -> Process {
        let mut process = Process::new(name, self.folder.path(&format!("{name}.said")));
        process.add(["monitor", "--quiet", "--continuous", "--tunnels=off", "--sensor", name, "--publish"]);
        process.add([self.place()]);
        if self.server.is_some() {
            process.add([OsString::from("--spool"), self.batches().into()]);
        }
        process.add([capture]);
        process
    }

    /// An aggregator of these shards, which is not started yet. It waits for these sensors; for all, if there are none.
    pub(crate) fn aggregator(&self, shards: &RangeInclusive<u8>, sensors: &[String]) -> Process {
        let shards = format!("{}-{}", shards.start(), shards.end());
        let mut process = Process::new(&shards, self.folder.path(&format!("{shards}.said")));
        process.add(["aggregate", "--from", &self.place(), "--shards", &shards]);
        if !sensors.is_empty() {
            process.add(["--expect", &sensors.join(",")]);
        }
        process.add([OsString::from("--eve"), self.events(&shards).into()]);
        process
    }

    /// What the aggregator of these shards has written.
    pub(crate) fn events(&self, shards: &str) -> PathBuf {
        self.folder.path(&format!("{shards}.json"))
    }
}

/// A process of the program that may be started again and again.
pub(crate) struct Process {
    pub(crate) name: String,
    arguments: Vec<OsString>,
    said: PathBuf,
    child: Option<Child>,
}

impl Process {
    fn new(name: &str, said: PathBuf) -> Self {
        Process { name: name.to_owned(), arguments: Vec::new(), said, child: None }
    }

    pub(crate) fn add<S: Into<OsString>>(&mut self, arguments: impl IntoIterator<Item = S>) -> &mut Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Gives it this argument for that.
    pub(crate) fn replace(&mut self, from: &Path, to: &Path) {
        self.arguments.iter_mut().filter(|argument| **argument == *from.as_os_str()).for_each(|it| *it = to.into());
    }

    /// Starts it, if it does not run.
    pub(crate) fn start(&mut self) -> &mut Self {
        if self.child.is_none() {
            let said = OpenOptions::new().append(true).create(true).open(&self.said).expect("a temporary file");
            let child = corelane(&self.arguments).stdout(Stdio::null()).stderr(Stdio::from(said)).spawn();
            self.child = Some(child.expect("it starts"));
        }
        self
    }

    /// Starts it on a pipe.
    pub(crate) fn start_on_pipe(&mut self) -> ChildStdin {
        let said = File::create(&self.said).expect("a temporary file");
        let child = corelane(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(said).spawn();
        self.child.insert(child.expect("it starts")).stdin.take().expect("it was piped")
    }

    /// Its number, if it was started.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Sends it a signal, if it was started.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            // One that has ended is still there until it is waited for.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// Waits until it has said this.
    #[track_caller]
    pub(crate) fn wait_until_said(&self, what: &str) {
        wait_for(&format!("{what:?} of {}: {}", self.name, self.said()), || self.said().contains(what).then_some(()));
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// What it has said, in all its runs.
    #[track_caller]
    pub(crate) fn said(&self) -> String {
        let said = fs::read_to_string(&self.said).unwrap_or_default();
        assert!(!said.contains("panicked"), "{}: {said}", self.name);
        said
    }

    /// Waits for its end. Gives its exit code.
    #[track_caller]
    pub(crate) fn end(&mut self) -> Option<i32> {
        let mut child = self.child.take().expect("it was started");
        let Some(status) = end(&mut child) else { panic!("{} still runs: {}", self.name, self.said()) };
        self.said();
        status.code()
    }

    /// Waits for its end, which has to be a good one.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        let code = self.end();
        assert_eq!(code, Some(0), "{}: {}", self.name, self.said());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts those that do not run.
pub(crate) fn start(processes: &mut [Process]) {
    for process in processes {
        process.start();
    }
}

/// The names of so many sensors.
pub(crate) fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("sensor-{number}")).collect()
}

/// The shards of each of so many aggregators.
pub(crate) fn ranges(count: usize) -> Vec<RangeInclusive<u8>> {
    let begin = |number: usize| number * 256 / count;
    (0..count).map(|number| begin(number) as u8..=(begin(number + 1) - 1) as u8).collect()
}

/// The lines of a file of events that are of this type. No line may be torn.
#[track_caller]
pub(crate) fn events(path: &Path, of: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(text.is_empty() || text.ends_with('\n'), "{} is torn", path.display());
    for line in text.lines() {
        assert!(line.starts_with('{') && line.ends_with('}'), "{}: torn: {line}", path.display());
    }
    let of = format!("\"event_type\":\"{of}\"");
    text.lines().filter(|line| line.contains(&of)).map(str::to_owned).collect()
}

/// How many alerts are in a file of events that is being written.
pub(crate) fn alerts_so_far(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.matches("\"event_type\":\"alert\"").count())
}

/// The alerts of one monitor over a whole capture.
#[track_caller]
pub(crate) fn whole(capture: &Path, options: &[&str], folder: &Folder) -> Vec<String> {
    let eve = folder.path("whole.json");
    let mut command = corelane(["monitor", "--quiet", "--continuous", "--tunnels=off", "--eve"]);
    let status = command.arg(&eve).args(options).arg(capture).stdout(Stdio::null()).stderr(Stdio::null()).status();
    // 1 is a capture that is damaged in its middle or at its end.
    assert!(matches!(status.expect("it starts").code(), Some(0 | 1)), "{}", capture.display());
    let alerts = events(&eve, "alert");
    fs::remove_file(&eve).expect("it is there");
    alerts
}

/// Those of these alerts whose source is in these shards.
pub(crate) fn of_shards(alerts: &[String], shards: &RangeInclusive<u8>) -> Vec<String> {
    let is_of = |alert: &&String| {
        let value: serde_json::Value = serde_json::from_str(alert).expect("JSON");
        let source: IpAddr = value["src_ip"].as_str().expect("a source").parse().expect("an address");
        shards.contains(&shard_of(source))
    };
    alerts.iter().filter(is_of).cloned().collect()
}

/// A capture of the program's own generator.
#[track_caller]
pub(crate) fn generate(path: &Path, options: &[&str]) {
    let mut command = corelane(["gen", "--quiet"]);
    let output = command.arg(path).args(options).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(File::open(path).is_ok());
}

/// The status and the body that an aggregator's port answers for this path; an error while it does not listen.
pub(crate) fn get(port: u16, path: &str) -> std::io::Result<(u16, String)> {
    let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    client.set_read_timeout(Some(LIMIT))?;
    write!(client, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|head| head.get(..3)?.parse().ok());
    Ok((status.unwrap_or_else(|| panic!("{head}")), body.to_owned()))
}

/// What the port of an aggregator's metrics says; nothing while it does not listen.
pub(crate) fn scrape(port: u16) -> Samples {
    let Ok((status, body)) = get(port, "/metrics") else { return Samples::new() };
    assert_eq!(status, 200);
    parse_metrics(&body)
}

/// The value of a sample, with a label of this value if it has any; 0 where there is none.
pub(crate) fn value(samples: &Samples, name: &str, label: &str) -> u64 {
    let is_it = |of: &str, labels: &[(String, String)]| {
        of.strip_prefix("corelane_") == Some(name)
            && (labels.is_empty() || labels.iter().any(|(_, value)| value == label))
    };
    samples.iter().find(|((of, labels), _)| is_it(of, labels)).map_or(0, |(_, &value)| value as u64)
}
