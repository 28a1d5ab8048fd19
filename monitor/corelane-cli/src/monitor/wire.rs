//! An interface as a source of records.

use super::service::Shared;
use crate::args::{Capture, OnOff};
use crate::exit::{Exit, complain, refused};
use crate::input::{Fault, Watch};
use crate::interrupt::Requests;
use crate::output::{Condition, Output};
use crate::tap::{Copy, CopyEnd, Tap};
use corelane_monitor::{Silence, Source, Steps};
use corelane_net::capture::filter::Filter;
use corelane_net::capture::live::{Live, LiveError, News, Options, interfaces};
use corelane_net::capture::{LinkType, Record};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest wait for a record, before signals and the clock are looked at. The kernel hands over blocks more often,
/// so an interface with traffic wakes the reader once a block, and a silent one seldom.
const PATIENCE: Duration = Duration::from_millis(250);
/// The time between two looks at the counts of the kernel.
const LOOK: Duration = Duration::from_millis(100);
/// The time between two messages about dropped frames.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// How long the capture goes on after the interrupt, if the kernel refuses to end it.
const INSIST: Duration = Duration::from_secs(2);

/// An interface that is captured until the interrupt.
#[derive(Debug)]
pub(crate) struct Wire {
    live: Live,
    tap: Tap,
    watch: Watch,
    requests: Requests,
    /// Whether the process gives up the right to open the interface again.
    drops_all: bool,
    shared: Shared,
    /// The number of this ring among those of the interface. The first one logs what all of them receive.
    ring: usize,
    is_up: bool,
    looked: Instant,
    drops: Arc<Mutex<Drops>>,
    /// The last message about an error.
    failed: Option<Instant>,
    /// When the interrupt was seen.
    stopping: Option<Instant>,
    is_stopped: bool,
    /// The kernel refused to end the capture: what waits in the ring is left there.
    is_cut: bool,
    is_finished: bool,
    last_ns: Option<u64>,
}

/// The dropped frames of all rings of an interface, and what was logged about them.
#[derive(Debug)]
struct Drops {
    of_ring: Vec<u64>,
    /// The last message, and how many frames it and those before were about.
    reported: Option<Instant>,
    reported_drops: u64,
}

impl Drops {
    fn of(rings: usize) -> Self {
        Drops { of_ring: vec![0; rings], reported: None, reported_drops: 0 }
    }

    /// Takes the count of a ring. The result is set if a message is due: about so many frames more.
    fn count(&mut self, ring: usize, dropped: u64) -> Option<u64> {
        self.of_ring[ring] = dropped;
        let more = self.of_ring.iter().sum::<u64>().saturating_sub(self.reported_drops);
        let is_due = more > 0 && self.reported.is_none_or(|reported| reported.elapsed() >= REPORT_INTERVAL);
        is_due.then(|| {
            (self.reported, self.reported_drops) = (Some(Instant::now()), self.reported_drops + more);
            more
        })
    }
}

/// Lists the interfaces.
pub(super) fn list() -> Exit {
    let all = match interfaces() {
        Ok(all) => all,
        Err(error) => return refused(format_args!("--interfaces: {error}")),
    };
    let width = all.iter().map(|interface| interface.name.len()).max().unwrap_or(0);
    let written = Output::stdout().write(|out| {
        for interface in &all {
            let state = match (interface.is_up, interface.is_loopback) {
                (false, _) => "down",
                (true, true) => "up, loopback",
                (true, false) => "up",
            };
            let kind = match interface.link {
                Some(LinkType::ETHERNET) => "Ethernet",
                Some(_) => "IP",
                None => "of a kind that cannot be captured",
            };
            writeln!(out, "{:width$}  {state}, {kind}, packets of up to {} bytes", interface.name, interface.mtu)?;
        }
        Ok(())
    });
    written.unwrap_or_else(refused)
}

/// A ring as the options ask for it. The kernel runs the filter.
pub(super) fn options(capture: &Capture, filter: Option<&Filter>) -> Options {
    Options::default()
        .snaplen(capture.snaplen)
        .ring_bytes(usize::try_from(capture.ring_size).unwrap_or(usize::MAX))
        .promiscuous(capture.promiscuous == OnOff::On)
        .filter(filter.map(|filter| filter.instructions().to_vec()))
}

/// Why the size of a ring that was asked for is none, if it is not. The library would round it up.
pub(super) fn check_ring(capture: &Capture, options: &Options) -> Result<(), String> {
    let least = options.least_ring_bytes();
    if capture.ring_size < least as u64 {
        let (size, snaplen) = (capture.ring_size, capture.snaplen);
        return Err(format!(
            "--ring-size: {size} bytes are too few for two blocks of frames of {snaplen} bytes; give at least {least} \
             bytes, or a smaller --snaplen"
        ));
    }
    Ok(())
}

impl Wire {
    /// The rings of an interface, which share the copy.
    pub(super) fn all(
        rings: Vec<Live>,
        copy: Option<Copy>,
        watch: &Watch,
        requests: &Requests,
        drops_all: bool,
    ) -> Vec<Self> {
        let mut copies = match copy {
            Some(copy) if rings.len() == 1 => vec![CopyEnd::own(copy)],
            Some(copy) => CopyEnd::shared(copy, rings.len()),
            None => Vec::new(),
        }
        .into_iter();
        let drops = Arc::new(Mutex::new(Drops::of(rings.len())));
        let wires = rings.into_iter().enumerate().map(|(ring, live)| {
            let tap = Tap { filter: None, copy: copies.next(), steps: Some(Steps::new()) };
            Wire::new(live, tap, watch, requests, drops_all, ring, Arc::clone(&drops))
        });
        wires.collect()
    }

    fn new(
        live: Live,
        tap: Tap,
        watch: &Watch,
        requests: &Requests,
        drops_all: bool,
        ring: usize,
        drops: Arc<Mutex<Drops>>,
    ) -> Self {
        let shared = Shared::default();
        let mut wire = Wire {
            live,
            tap,
            watch: watch.clone(),
            requests: requests.clone(),
            drops_all,
            shared,
            ring,
            is_up: true,
            looked: Instant::now(),
            drops,
            failed: None,
            stopping: None,
            is_stopped: false,
            is_cut: false,
            is_finished: false,
            last_ns: None,
        };
        wire.look(None);
        wire
    }

    pub(super) fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// Reads the kernel's counts, and publishes them. `last_ns` is the time of the record that was read
    /// last just now.
    fn look(&mut self, last_ns: Option<u64>) {
        self.looked = Instant::now();
        let counts = self.live.statistics();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // It may wait for a disk, and those that want the facts must not.
        let copy = self.tap.copy.as_ref().map(|copy| copy.condition());
        let mut facts = self.shared.lock();
        if facts.capture.interface.is_empty() {
            facts.capture.interface = self.live.interface().to_owned();
        }
        facts.is_up = self.is_up;
        facts.capture.kernel_packets = counts.received;
        facts.capture.kernel_drops = counts.dropped;
        facts.capture.freezes = counts.freezes;
        facts.capture.truncated = counts.truncated;
        facts.last_ns = self.last_ns;
        facts.lag = last_ns.map_or(Duration::ZERO, |last_ns| now.saturating_sub(Duration::from_nanos(last_ns)));
        facts.copy = copy;
        drop(facts);
        let more = self.drops.lock().unwrap_or_else(PoisonError::into_inner).count(self.ring, counts.dropped);
        if let Some(more) = more {
            complain(format_args!(
                "{}: {more} packets were dropped, as the analysis is slower than they come; a larger --ring-size, more \
                 --analyzers or a --filter-program may help",
                self.live.interface()
            ));
        }
    }

    fn log_news(&mut self) {
        while let Some(news) = self.live.take_news() {
            self.is_up = matches!(news, News::Up | News::Back);
            let interface = self.live.interface();
            match news {
                _ if self.ring > 0 => {}
                // The system's own reason is that it has no such call.
                News::Refused(_) if self.drops_all => complain(format_args!(
                    "{interface}: the interface is back, but --drop-all has dropped the capability to open it; restart \
                     the run"
                )),
                news => complain(format_args!("{interface}: {news}")),
            }
        }
    }

    /// Logs an error, after which the capture goes on.
    fn fails(&mut self, error: &LiveError) {
        if self.failed.is_none_or(|failed| failed.elapsed() >= REPORT_INTERVAL) {
            self.failed = Some(Instant::now());
            complain(format_args!("{}: {error}; the capture goes on", self.live.interface()));
        }
        thread::sleep(PATIENCE);
    }

    /// Ends the capture. If the kernel refuses, that is tried again, but not for ever: the run has to end.
    fn stop(&mut self) {
        let since = *self.stopping.get_or_insert_with(Instant::now);
        let Err(error) = self.live.stop() else { return self.is_stopped = true };
        if since.elapsed() < INSIST {
            return self.fails(&error);
        }
        self.is_cut = true;
        let (left, interface) = (self.live.statistics().in_ring(), self.live.interface());
        complain(format_args!("{interface}: {error}; the run ends anyway, without {left} packets in the ring"));
    }

    /// Ends the copy, and gives the last counts; says how the copy is, if there is one. To be called also if the
    /// analysis ended before the capture.
    pub(super) fn finish(&mut self) -> Option<Condition> {
        if !std::mem::replace(&mut self.is_finished, true) {
            let counts = self.live.statistics();
            self.tap.finish(Some((counts.received, counts.dropped)));
        }
        // Again at the second call: meanwhile the others that share the copy may have ended too.
        self.look(None);
        self.tap.copy.as_ref().map(|copy| copy.condition())
    }
}

impl Source for Wire {
    type Error = Fault;

    #[inline]
    fn read(&mut self, max: usize, mut sink: impl FnMut(Record<'_>)) -> Result<usize, Fault> {
        if self.watch.interrupt.is_set() && !self.is_stopped && !self.is_cut {
            self.stop();
        }
        if self.is_cut {
            return Ok(0);
        }
        let (tap, mut last_ns) = (&mut self.tap, None);
        let read = if tap.wait_for_room(PATIENCE) {
            self.live.read(max, PATIENCE, |record| {
                if let Some(record) = tap.take(record) {
                    last_ns = Some(record.time_ns);
                    sink(record);
                }
            })
        } else {
            // What comes waits in the ring, and lags.
            last_ns = self.last_ns;
            Ok(0)
        };
        let read = read.unwrap_or_else(|error| {
            self.fails(&error);
            0
        });
        self.tap.rest(self.requests.reopens());
        self.log_news();
        self.last_ns = last_ns.or(self.last_ns);
        if self.looked.elapsed() >= LOOK {
            self.look(last_ns);
        }
        Ok(read)
    }

    fn silence(&mut self) -> Silence {
        if self.is_cut || self.is_stopped && self.live.is_drained() {
            self.finish();
            return Silence::End { time_ns: self.tap.begun_ns() };
        }
        // If a frame has come meanwhile, no time passes.
        let time_ns = self.live.quiet_since().unwrap_or(0);
        self.tap.pass(time_ns);
        Silence::Pause { time_ns }
    }
}
