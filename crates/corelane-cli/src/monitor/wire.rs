//! An interface as a source of records.

use super::service::Shared;
use crate::args::{Capture, Whether};
use crate::exit::{Exit, complain, refused};
use crate::input::{Fault, Watch};
use crate::interrupt::Requests;
use crate::output::{Condition, Output};
use crate::tap::{Copy, CopyEnd, Tap};
use corelane_monitor::{Silence, Source, Steps};
use corelane_net::capture::filter::Filter;
use corelane_net::capture::live::{Live, LiveError, News, Options, interfaces};
use corelane_net::capture::{LinkType, Record};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest wait for a record, before signals and the clock are looked at.
const PATIENCE: Duration = Duration::from_millis(50);
/// The time between two looks at the counts of the kernel.
const LOOK: Duration = Duration::from_millis(100);
/// The time between two messages about dropped frames.
const TELL: Duration = Duration::from_secs(60);
/// How long the capture goes on after the interrupt, if the kernel refuses to end it.
const INSIST: Duration = Duration::from_secs(2);

/// An interface that is captured until the interrupt.
#[derive(Debug)]
pub(super) struct Wire {
    live: Live,
    tap: Tap,
    watch: Watch,
    requests: Requests,
    shared: Shared,
    /// Whether it tells what all rings of the interface hear.
    is_first: bool,
    is_up: bool,
    looked: Instant,
    /// The last message about dropped frames, and how many there were then.
    told: Option<Instant>,
    told_drops: u64,
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

impl Wire {
    /// Opens the rings of an interface. The kernel runs the filter, and the rings share the copy, which `copy` creates
    /// for frames of this link type once the interface is open.
    pub(super) fn open(
        name: &str,
        capture: &Capture,
        filter: Option<&Filter>,
        copy: impl FnOnce(LinkType) -> Result<Option<Copy>, String>,
        watch: &Watch,
        requests: &Requests,
    ) -> Result<Vec<Self>, String> {
        let options = Options::default()
            .snaplen(capture.snaplen)
            .ring_bytes(usize::try_from(capture.ring_size).unwrap_or(usize::MAX))
            .promiscuous(capture.promiscuous == Whether::On)
            .filter(filter.map(|filter| filter.instructions().to_vec()));
        let rings = Live::open_rings(name, &options, capture.rings).map_err(|error| error.to_string())?;
        let mut copies = match copy(rings[0].link())? {
            Some(copy) if rings.len() == 1 => vec![CopyEnd::own(copy)],
            Some(copy) => CopyEnd::shared(copy, rings.len()),
            None => Vec::new(),
        }
        .into_iter();
        let wires = rings.into_iter().enumerate().map(|(number, live)| {
            let tap = Tap { filter: None, copy: copies.next(), steps: Some(Steps::new()) };
            Wire::new(live, tap, watch, requests, number == 0)
        });
        Ok(wires.collect())
    }

    fn new(live: Live, tap: Tap, watch: &Watch, requests: &Requests, is_first: bool) -> Self {
        let shared = Shared::default();
        let mut wire = Wire {
            live,
            tap,
            watch: watch.clone(),
            requests: requests.clone(),
            shared,
            is_first,
            is_up: true,
            looked: Instant::now(),
            told: None,
            told_drops: 0,
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

    /// How the copy is, if there is one, of which this ring's share has ended.
    pub(super) fn finish_copy(&mut self) -> Option<Condition> {
        self.finish();
        self.tap.copy.as_ref().map(|copy| copy.condition())
    }

    pub(super) fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// Looks at the kernel's counts, and tells all who want to know. `last_ns` is the time of the record that was read
    /// last just now.
    fn look(&mut self, last_ns: Option<u64>) {
        self.looked = Instant::now();
        let counts = self.live.statistics();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
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
        facts.copy = self.tap.copy.as_ref().map(|copy| copy.condition());
        drop(facts);
        if counts.dropped > self.told_drops && self.told.is_none_or(|told| told.elapsed() >= TELL) {
            let more = counts.dropped - self.told_drops;
            complain(format_args!(
                "{}: {more} packets were dropped, as the analysis is slower than they come; a larger --ring-size, more \
                 --analyzers or a --filter may help",
                self.live.interface()
            ));
            (self.told, self.told_drops) = (Some(self.looked), counts.dropped);
        }
    }

    fn hear(&mut self) {
        while let Some(news) = self.live.take_news() {
            self.is_up = matches!(news, News::Up | News::Back);
            if self.is_first {
                complain(format_args!("{}: {news}", self.live.interface()));
            }
        }
    }

    /// Tells of an error, after which the capture goes on.
    fn fails(&mut self, error: &LiveError) {
        if self.failed.is_none_or(|failed| failed.elapsed() >= TELL) {
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
        complain(format_args!("{interface}: {error}; the run ends all the same, without {left} packets in the ring"));
    }

    /// Ends the copy, and gives the last counts. To be called also if the analysis ended before the capture.
    pub(super) fn finish(&mut self) {
        if std::mem::replace(&mut self.is_finished, true) {
            return;
        }
        let counts = self.live.statistics();
        self.tap.finish(Some((counts.received, counts.dropped)));
        self.look(None);
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
        let read = self.live.read(max, PATIENCE, |record| {
            if let Some(record) = tap.take(record) {
                last_ns = Some(record.time_ns);
                sink(record);
            }
        });
        let read = read.unwrap_or_else(|error| {
            self.fails(&error);
            0
        });
        self.tap.rest(self.requests.reopens());
        self.hear();
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
