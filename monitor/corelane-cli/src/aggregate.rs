//! `corelane aggregate`: the scans of many sensors.
//!
//! One thread takes batches from the engine, lets steps end, writes what is found and stores snapshots. After it was
//! killed it goes on from the last snapshot, and reports again what it has reported since then. What a file of events
//! holds already of that is known (`output`), so nothing is in it twice.

mod output;

use crate::args::AggregateArguments;
#[cfg(target_os = "linux")]
use crate::confine::Inherited;
use crate::exit::{Exit, complain, refused};
use crate::interrupt::{Interrupt, Requests};
use crate::metrics::{self, Listener, Metrics, OutputState, Sensors};
use crate::sensor_input::{self, AT_ONCE, Clocks, Purpose, Refusals, Silence, WAIT};
use crate::sensors::{Engine, EngineError, Read, shards_name};
use corelane_monitor::sensors::{Aggregator, Batch};
use corelane_monitor::{Continuous, Settings};
use output::NewsOutput;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the numbers are updated.
const NUMBERS: Duration = Duration::from_secs(1);
/// The pause between two snapshots is at least so many times as long as the last took.
const PAUSES: u32 = 20;

/// Runs the command.
pub(crate) fn run(arguments: &AggregateArguments, interrupt: &Interrupt) -> Exit {
    match Run::open(arguments, interrupt) {
        Ok(Some(mut run)) => run.go(arguments, interrupt).unwrap_or_else(refused),
        Ok(None) => Exit::Done,
        Err(refusal) => refused(refusal).and(interrupt.exit()),
    }
}

/// An aggregator at work.
struct Run {
    engine: Box<dyn Engine>,
    aggregator: Option<Aggregator>,
    output: NewsOutput,
    requests: Requests,
    reopens: usize,
    silence: Silence,
    /// When all batches were read for the first time.
    caught_up: Option<Instant>,
    clocks: Clocks,
    refusals: Refusals,
    /// Whether there is something that the last snapshot does not have.
    is_new: bool,
    /// When the last snapshot was stored, and how long that took.
    stored: (Instant, Duration),
    numbers: Arc<Mutex<Sensors>>,
    _metrics: Option<Metrics>,
}

/// The tables' limit by which groups have three quarters of `--memory-limit`, and what waits for sensors a quarter.
pub(crate) fn table_bytes(memory_limit: u64) -> Option<u64> {
    Some(memory_limit.saturating_mul(3))
}

/// The aggregator's state in a stored snapshot.
pub(crate) fn state_of(snapshot: &[u8]) -> &[u8] {
    output::split(snapshot).unwrap_or_default().1
}

/// Asks the engine, retrying while its server cannot be reached; `None` after a signal.
fn wait_for<T>(
    interrupt: &Interrupt,
    mut ask: impl FnMut() -> Result<T, EngineError>,
) -> Result<Option<T>, EngineError> {
    let mut is_reported = false;
    while !interrupt.is_set() {
        match ask() {
            Err(error @ EngineError::Disconnected(..)) => {
                if !std::mem::replace(&mut is_reported, true) {
                    complain(format_args!("--from: {error}; retrying"));
                }
            }
            answer => return answer.map(Some),
        }
    }
    Ok(None)
}

impl Run {
    /// Opens all, and goes on from the last snapshot, if there is one. Retries a server that cannot be reached
    /// until a signal comes.
    fn open(arguments: &AggregateArguments, interrupt: &Interrupt) -> Result<Option<Self>, String> {
        let settings = Settings {
            vertical_threshold: arguments.vertical_threshold,
            horizontal_threshold: arguments.horizontal_threshold,
            table_bytes: table_bytes(arguments.memory_limit),
            ..Settings::default()
        };
        let continuous = Continuous {
            forget_s: arguments.forget.as_secs(),
            suppress_s: arguments.suppress.as_secs(),
            ..Continuous::default()
        };
        let mut aggregator =
            Aggregator::new(&settings, &continuous, arguments.shards.clone(), arguments.expect.iter().cloned());
        crate::output::set_mode(arguments.output_mode);
        #[cfg(target_os = "linux")]
        let inherited = crate::confine::Inherited::find();
        let listener = metrics::listener(arguments.metrics.as_deref())?;
        #[cfg(target_os = "linux")]
        let protections = confine(arguments, inherited)?;
        #[cfg(not(target_os = "linux"))]
        let protections = Vec::new();
        let mut engine = sensor_input::engine(&arguments.from, &arguments.connection, Purpose::Aggregate)?;
        let from = |error: EngineError| format!("--from {}: {error}", arguments.from);
        let Some(snapshot) = wait_for(interrupt, || engine.load(arguments.shards.clone())).map_err(from)? else {
            return Ok(None);
        };
        let mut written = 0;
        if let Some(snapshot) = &snapshot {
            let (length, state) = output::split(&snapshot.bytes).unwrap_or_default();
            written = length;
            aggregator.restore(state).map_err(|error| {
                let shards = shards_name(&arguments.shards);
                format!("the state of shards {shards} cannot be restored: {error}; give the same options, or remove it")
            })?;
        }
        engine.begin(snapshot.as_ref().map(|snapshot| &snapshot.position[..])).map_err(from)?;
        let output = NewsOutput::open(arguments.eve.as_deref(), snapshot.is_some().then_some(written), interrupt)?;
        let requests = requests().map_err(|error| format!("signals: {error}"))?;
        let numbers = Arc::new(Mutex::new(Sensors { protections, ..Sensors::default() }));
        let seen = Arc::clone(&numbers);
        let serve =
            |listener: Listener| listener.serve(move || seen.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let metrics = listener.map(serve).transpose().map_err(|error| format!("--metrics: {error}"))?;
        if let Some(metrics) = &metrics {
            complain(format_args!("metrics at http://{0}/metrics, health at http://{0}/healthz", metrics.address()));
        }
        let mut run = Run {
            engine,
            aggregator: Some(aggregator),
            output,
            requests,
            reopens: 0,
            silence: Silence::default(),
            caught_up: None,
            clocks: Clocks::default(),
            refusals: Refusals::default(),
            is_new: false,
            stored: (Instant::now(), Duration::ZERO),
            numbers,
            _metrics: metrics,
        };
        // One that is killed before the next snapshot finds by this what it has reported.
        if snapshot.is_none() && wait_for(interrupt, || run.save(arguments)).map_err(from)?.is_none() {
            return Ok(None);
        }
        run.update_numbers();
        Ok(Some(run))
    }

    fn go(&mut self, arguments: &AggregateArguments, interrupt: &Interrupt) -> Result<Exit, String> {
        let mut numbered = Instant::now();
        while !interrupt.is_set() && !self.output.is_gone {
            self.take(arguments)?;
            // Before lines are forgotten that this reports again.
            if self.aggregator().have_all_ended() && arguments.until_ended {
                let Some(aggregator) = self.aggregator.take() else { break };
                aggregator.finish(|news| self.output.write(&news));
                return Ok(self.output.finish());
            }
            let now = Instant::now();
            self.look_at_clock(now, arguments);
            if now - numbered >= NUMBERS {
                numbered = now;
                self.forget_sensors();
                self.update_numbers();
            }
            let reopens = self.requests.reopens();
            if reopens != self.reopens {
                self.reopens = reopens;
                // What was reported so far is in the old file, and is not to be repeated in the new one.
                self.store(arguments);
                self.output.reopen();
                self.store(arguments);
            }
            let (stored, took) = self.stored;
            if self.is_new && now - stored >= arguments.snapshot_interval.max(PAUSES * took) {
                self.store(arguments);
            }
        }
        if !self.output.is_gone {
            self.store(arguments);
        }
        Ok(self.output.finish())
    }

    fn aggregator(&self) -> &Aggregator {
        self.aggregator.as_ref().unwrap_or_else(|| unreachable!("it is taken at the end alone"))
    }

    /// Takes some batches, and lets the steps end that they end.
    fn take(&mut self, arguments: &AggregateArguments) -> Result<(), String> {
        let Run { engine, aggregator: Some(aggregator), output, silence, clocks, refusals, .. } = self else {
            return Ok(());
        };
        let mut left_out = false;
        for number in 0..AT_ONCE {
            let wait = if number == 0 { WAIT } else { Duration::ZERO };
            let batch = match engine.next(wait).map_err(|error| error.to_string())? {
                Read::Batch(batch) => batch,
                Read::Nothing => break,
            };
            self.is_new = true;
            let here_ns = sensor_input::now_ns();
            match aggregator.take(&batch, engine.sensor(), sensor_input::latest_ns(here_ns), |news| output.write(&news))
            {
                Ok(Batch { header, .. }) => {
                    clocks.look(&header, here_ns, Instant::now()).iter().for_each(|news| output.write(news));
                    silence.received(header.sensor);
                }
                Err(refusal) => refusals.count(&refusal),
            }
            if aggregator.advance(|news| output.write(&news)) {
                left_out = true;
                break;
            }
        }
        output.flush();
        if left_out {
            self.store(arguments);
            self.end_steps(arguments);
        }
        Ok(())
    }

    /// Leaves out sensors that have been silent or behind for too long.
    fn look_at_clock(&mut self, now: Instant, arguments: &AggregateArguments) {
        let timeout = arguments.sensor_timeout;
        let Run { engine, aggregator: Some(aggregator), output, silence, .. } = self else { return };
        let present: Vec<_> = aggregator.sensors().filter(|sensor| sensor.is_present).collect();
        let out = silence.look((now, sensor_input::now_ns()), engine.is_caught_up(), timeout, &present);
        for (sensor, behind_ns) in &out {
            aggregator.leave_out(sensor, *behind_ns, |news| output.write(&news));
        }
        // What those that were left out have held back is reported, though there are no others.
        let goes_on = silence.is_total(timeout, now) && aggregator.go_on_alone();
        if !out.is_empty() || goes_on {
            // What the clock has decided is not decided again after a restart.
            self.store(arguments);
            self.is_new = true;
        }
        self.end_steps(arguments);
        if self.silence.is_caught_up_for(Duration::ZERO, now) {
            let since = *self.caught_up.get_or_insert(now);
            self.output.forget_known(now - since >= 2 * timeout);
        }
        self.output.flush();
    }

    /// Lets steps end.
    fn end_steps(&mut self, arguments: &AggregateArguments) {
        while let Run { aggregator: Some(aggregator), output, .. } = self
            && aggregator.advance(|news| output.write(&news))
        {
            // Which sensors are left out for want of room is not decided again after a restart.
            self.store(arguments);
        }
    }

    /// Stores the state, if that is possible.
    fn store(&mut self, arguments: &AggregateArguments) {
        let begin = Instant::now();
        let saved = self.save(arguments);
        // One that failed says nothing about the next.
        let took = saved.as_ref().map_or(Duration::ZERO, |()| begin.elapsed());
        self.stored = (Instant::now(), took);
        match saved {
            Ok(()) => self.output.problem = None,
            Err(error) => {
                let error = format!("the state cannot be stored: {error}");
                if self.output.problem.as_ref() != Some(&error) {
                    complain(&error);
                }
                self.output.problem = Some(error);
            }
        }
    }

    /// Stores the state, if all that was reported is written.
    fn save(&mut self, arguments: &AggregateArguments) -> Result<(), EngineError> {
        let Some(written) = self.output.written() else { return Ok(()) };
        let snapshot = output::join(written, &self.aggregator().snapshot());
        self.engine.store(arguments.shards.clone(), &snapshot)?;
        self.is_new = false;
        Ok(())
    }

    /// Forgets sensors of which the aggregator has forgotten or refused all.
    fn forget_sensors(&mut self) {
        let Run { engine, aggregator: Some(aggregator), silence, clocks, .. } = self else { return };
        let is_known = |sensor: &str| aggregator.knows(sensor);
        engine.retain(&is_known);
        silence.retain(is_known);
        clocks.retain(is_known);
    }

    fn update_numbers(&self) {
        let aggregator = self.aggregator();
        let [syn, probe] = aggregator.found();
        let refused = self.refusals.0.iter().map(|(&reason, &count)| (reason.into(), count));
        let damaged = ("damaged record".into(), self.engine.damaged());
        let numbers = Sensors {
            updated: Some(Instant::now()),
            sensors: aggregator.sensors().collect(),
            begun_ns: aggregator.begun_ns(),
            groups: aggregator.groups(),
            waiting: aggregator.waiting(),
            evicted: aggregator.evicted(),
            refused: refused.chain([damaged]).collect(),
            alerts: vec![("syn".into(), syn), ("probe".into(), probe)],
            outputs: self.output.condition().iter().map(|(name, condition)| OutputState::of(name, condition)).collect(),
            problem: self.output.problem.clone().or_else(|| self.engine.problem()),
            protections: Vec::new(),
        };
        let mut shown = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let protections = std::mem::take(&mut shown.protections);
        *shown = Sensors { protections, ..numbers };
    }
}

/// Gives up what the run does not need, before the first thread. Says what of it the kernel gave.
#[cfg(target_os = "linux")]
fn confine(arguments: &AggregateArguments, inherited: Inherited) -> Result<Vec<(&'static str, String)>, String> {
    use crate::output::{is_descriptor, is_standard, place_of};
    let mut confinement = sensor_input::confinement(&arguments.from, &arguments.connection, Purpose::Aggregate)?;
    if let Some(eve) = arguments.eve.as_ref().filter(|eve| !is_standard(eve)) {
        match place_of(eve) {
            // It is opened later, and again after a rotation.
            Some(folder) if !is_descriptor(eve) => confinement.folders_rw.push(folder),
            _ => confinement.writable.push(eve.clone()),
        }
    }
    if !arguments.eve.as_deref().is_some_and(is_descriptor) {
        confinement.inherited = inherited;
    }
    let given = confinement.apply().map_err(|error| error.to_string())?;
    Ok(given.protections().map(|(name, protection)| (name, protection.to_string())).to_vec())
}

/// The signals of a service, where there are any.
fn requests() -> io::Result<Requests> {
    #[cfg(unix)]
    return Requests::install();
    #[cfg(not(unix))]
    Ok(Requests::default())
}
