//! `--publish`: a sensor's state reports, batch by batch, into its log.
//!
//! A sensor that reads captures makes the same batches each time. So one that was killed begins anew, and what its log
//! has already is not written again. One on an interface begins a new epoch, and the aggregator says which seconds it
//! has lost.

use crate::args::MonitorArguments;
use crate::exit::{Exit, complain};
use crate::interrupt::Interrupt;
use crate::output::{Condition, is_standard};
use crate::sensors::{Full, NatsOptions, Place, Sender, Spool, SpoolError, write_private};
use corelane_monitor::sensors::{Header, encode};
use corelane_monitor::{STEP_NS, Settings, StateReport, Through};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often it is tried again to write to a log that is full.
const RETRY: Duration = Duration::from_millis(100);
/// How long an interface's sensor waits for the server at its end; the rest is sent by the next start.
const PATIENCE: Duration = Duration::from_secs(3);
/// The file beside the log that says what its last epoch is of.
const RUN: &str = "run";

/// The sending side of a monitor.
pub(crate) struct Publisher {
    spool: Spool,
    header: Header,
    /// The batches with lower sequences are in the log already.
    known: u64,
    is_live: bool,
    run: Run,
    /// Whether the run is not in the log yet.
    is_new: bool,
    /// Whether a signal has ended it before all of the captures was in the log.
    is_cut: bool,
    server: Option<Server>,
    condition: Condition,
    interrupt: Interrupt,
}

/// A server, and the thread that sends to it once it is started.
struct Server {
    url: String,
    options: NatsOptions,
    folder: PathBuf,
    sender: Option<Sender>,
}

/// Where batches go, if they are to go anywhere.
pub(crate) fn place(arguments: &MonitorArguments) -> Result<Option<Place>, String> {
    let place =
        arguments.publishing.publish.as_ref().map(|place| place.parse().map_err(|error| format!("--publish: {error}")));
    place.transpose()
}

/// The folder of a sensor's log, if it is to have one.
pub(crate) fn folder(arguments: &MonitorArguments) -> Result<Option<PathBuf>, String> {
    match (place(arguments)?, &arguments.publishing.spool) {
        (None, _) => Ok(None),
        (Some(Place::Files(folder)), None) => Ok(Some(folder)),
        (Some(Place::Files(_)), Some(_)) => {
            Err("--spool is for NATS servers; with file:DIR the batches wait in that folder".to_owned())
        }
        (Some(Place::Nats(_)), Some(folder)) => Ok(Some(folder.clone())),
        (Some(Place::Nats(_)), None) => {
            Err("--publish to a NATS server needs --spool DIR, where batches wait until the server has them".to_owned())
        }
    }
}

impl Publisher {
    /// Opens the log, and decides which run this is. The log holds nothing of it before it [begins](Publisher::begin).
    pub(super) fn open(
        arguments: &MonitorArguments,
        settings: &Settings,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, String> {
        let publishing = &arguments.publishing;
        let (Some(folder), Some(place), Some(sensor)) = (folder(arguments)?, place(arguments)?, &publishing.sensor)
        else {
            return Ok(None);
        };
        let is_live = arguments.capture.interface.is_some() || arguments.files.iter().any(|file| is_standard(file));
        let full = if is_live { Full::DropOldest } else { Full::Wait };
        let refusal = |error: SpoolError| format!("--publish: {error}");
        let spool = Spool::open(&folder, sensor.as_str(), publishing.spool_size, full).map_err(refusal)?;
        let path = folder.join(sensor.as_str()).join(RUN);
        let description = if is_live { "an interface".to_owned() } else { description(arguments, settings)? };
        let before = Run::read(&path).filter(|run| spool.last().is_some_and(|(epoch, _)| epoch == run.epoch));
        let mut run = Run { path, epoch: 0, is_done: is_live, description };
        let (known, is_new) = match (before, spool.last()) {
            (Some(before), Some((epoch, sequence))) if !is_live && before.description == run.description => {
                (run.epoch, run.is_done) = (epoch, before.is_done);
                (sequence + 1, false)
            }
            // All of it would count again, at later times than its own.
            (Some(before), _) if !is_live && !before.is_done => {
                return Err(format!(
                    "--publish: the log of sensor {sensor} holds a run over other captures, or by other options, that has \
                     not ended; start that one again to its end, or name another --sensor"
                ));
            }
            (_, last) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
                run.epoch = last.map_or(now, |(epoch, _)| now.max(epoch + 1));
                (0, true)
            }
        };
        let header = Header {
            sensor: sensor.clone(),
            epoch: run.epoch,
            sequence: 0,
            before: 0,
            since_ns: 0,
            begun_ns: 0,
            more: false,
            is_last: false,
        };
        let server = match place {
            Place::Files(_) => None,
            Place::Nats(url) => {
                let options = NatsOptions::new(&publishing.connection);
                options.check(&url).map_err(|error| format!("--publish: {error}"))?;
                publishing.connection.warn();
                Some(Server { url, options, folder, sender: None })
            }
        };
        let (condition, interrupt) = (Condition::default(), interrupt.clone());
        Ok(Some(Publisher { spool, header, known, is_live, run, is_new, is_cut: false, server, condition, interrupt }))
    }

    /// Begins the run in the log, if it is not there yet, once nothing else can refuse it.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.is_new) {
            self.spool.begin(self.run.epoch).map_err(|error| format!("--publish: {error}"))?;
            self.run.write().map_err(|error| format!("--publish: {}: {error}", self.run.path.display()))?;
        }
        Ok(())
    }

    /// Begins to send, once the process has the rights that it keeps.
    pub(super) fn start(&mut self) -> Result<(), String> {
        if let Some(Server { url, options, folder, sender }) = &mut self.server {
            let started = Sender::start(url, options, folder, self.header.sensor.as_str());
            *sender = Some(started.map_err(|error| format!("--publish: {error}"))?);
        }
        Ok(())
    }

    /// Takes the reports of steps that are over. `is_cut` says that the run ends before its captures do.
    pub(super) fn step(
        &mut self,
        begun_ns: u64,
        reports: &[StateReport],
        through: &[Through],
        is_last: bool,
        is_cut: bool,
    ) {
        // What was cut short goes on in the next run. After a signal nothing may follow a batch that found no room.
        if !self.is_live && (self.interrupt.is_set() || is_last && is_cut) {
            self.is_cut |= !self.run.is_done;
            return;
        }
        let mut reports = reports.to_vec();
        if is_last && self.is_live {
            // What was open when the capture ended has not failed.
            reports.retain(|report| report.time_ns() <= begun_ns);
        }
        let header = &mut self.header;
        if header.since_ns == 0 {
            let first_ns = reports.iter().map(StateReport::time_ns).min().unwrap_or(begun_ns);
            header.since_ns = begun_ns.saturating_sub(STEP_NS).min(first_ns);
        }
        (header.begun_ns, header.is_last) = (begun_ns, is_last);
        let mut batches = Vec::new();
        encode(header, &mut reports, through, |header, batch| batches.push((header.sequence, batch.to_vec())));
        for (sequence, batch) in batches {
            if sequence >= self.known && !self.append(&batch) {
                // The next batch takes its number, and says how many reports are missing.
                self.header.sequence = sequence;
                return;
            }
        }
        if is_last && !self.is_live {
            self.run.is_done = true;
            if let Err(error) = self.run.write() {
                complain(format_args!("--publish: {}: {error}", self.run.path.display()));
            }
        }
    }

    /// Writes a batch. Says whether it is in the log.
    fn append(&mut self, batch: &[u8]) -> bool {
        loop {
            match self.spool.append(batch) {
                Ok(dropped) => {
                    self.condition.dropped += dropped;
                    self.condition.error = None;
                    return true;
                }
                Err(error) => {
                    let error = error.to_string();
                    if self.condition.error.as_ref() != Some(&error) {
                        complain(format_args!("--publish: {error}"));
                    }
                    (self.condition.errors, self.condition.error) = (self.condition.errors + 1, Some(error));
                    if self.is_live || self.interrupt.is_set() {
                        // Of captures the next run makes it again.
                        self.condition.dropped += u64::from(self.is_live);
                        self.is_cut = !self.is_live;
                        return false;
                    }
                    thread::sleep(RETRY);
                }
            }
        }
    }

    /// How it is.
    pub(super) fn condition(&self) -> Condition {
        let state = self.server.as_ref().and_then(|server| server.sender.as_ref()).map(Sender::state);
        let error = self.condition.error.clone().or_else(|| state.and_then(|state| state.error));
        Condition { error, ..self.condition.clone() }
    }

    /// Waits until a server has all, if there is one: of captures as long as it takes. Says what is left, and how the
    /// run ends for it.
    pub(super) fn finish(self) -> Option<(String, Exit)> {
        let Condition { dropped, .. } = self.condition;
        let mut left =
            (dropped > 0).then(|| format!("--publish: {dropped} batches were lost, as there was no room for them"));
        if self.is_cut {
            left = Some("--publish: not all batches are in the log; the next start of this sensor goes on".to_owned());
        }
        if let Some(sender) = self.server.and_then(|server| server.sender) {
            let start = Instant::now();
            let mut is_reported = false;
            let is_done = |sender: &Sender| sender.state().acknowledged >= self.spool.last();
            let goes_on = || if self.is_live { start.elapsed() < PATIENCE } else { !self.interrupt.is_set() };
            while !is_done(&sender) && goes_on() {
                if !is_reported && start.elapsed() > PATIENCE {
                    is_reported = true;
                    let error = sender.state().error.unwrap_or_else(|| "it is slow".to_owned());
                    complain(format_args!(
                        "--publish: waiting for the server: {error}; Ctrl-C leaves the rest for later"
                    ));
                }
                thread::sleep(Duration::from_millis(20));
            }
            let has_all = is_done(&sender);
            // The last state is asked for once more. A connection that is lost by then is no longer needed.
            if !sender.finish(RETRY) && !has_all {
                let rest =
                    "--publish: the server does not have all batches; the next start of this sensor sends the rest";
                left = left.or_else(|| Some(rest.to_owned()));
            }
        }
        // A signal is how a run on an interface ends; of captures it leaves a part.
        let signal = if self.is_live { Exit::Done } else { self.interrupt.exit() };
        left.map(|left| (left, Exit::Partial.and(signal)))
    }
}

/// All that the batches of a run depend on.
fn description(arguments: &MonitorArguments, settings: &Settings) -> Result<String, String> {
    let mut text = format!("{} {settings:?} {:?}\n", env!("CARGO_PKG_VERSION"), arguments.endless.forget);
    let capture = &arguments.capture;
    if let Some(path) = &capture.filter_program {
        let program = fs::read(path).map_err(|error| format!("--filter-program {}: {error}", path.display()))?;
        let _ = writeln!(text, "filter {program:?}");
    }
    if let Some(filter) = &capture.filter {
        let _ = writeln!(text, "filter {filter:?}");
    }
    for file in arguments.files.iter().filter(|file| !is_standard(file)) {
        // What cannot be looked at is said when it is read.
        let facts = fs::metadata(file).and_then(|facts| Ok((facts.len(), facts.modified()?))).ok();
        let _ = writeln!(text, "{:?} {facts:?}", fs::canonicalize(file).unwrap_or_else(|_| file.clone()));
    }
    Ok(text)
}

/// What the last epoch of a log is of.
struct Run {
    path: PathBuf,
    epoch: u64,
    /// Whether all of it is in the log.
    is_done: bool,
    description: String,
}

impl Run {
    fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let (head, description) = text.split_once('\n')?;
        let (epoch, state) = head.split_once(' ')?;
        let (epoch, is_done) = (epoch.parse().ok()?, state == "done");
        Some(Run { path: path.to_owned(), epoch, is_done, description: description.to_owned() })
    }

    fn write(&self) -> std::io::Result<()> {
        let new = self.path.with_extension("new");
        let state = if self.is_done { "done" } else { "begun" };
        write_private(&new, format!("{} {state}\n{}", self.epoch, self.description))?;
        fs::rename(new, &self.path)
    }
}
