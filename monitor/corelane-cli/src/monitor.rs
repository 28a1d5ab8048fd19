//! `corelane monitor`: makes a report of captures.

mod outputs;
mod publish;
mod service;
mod usage;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
use crate::args::{Capture, Endless, Format, MonitorArguments, OnOff};
#[cfg(target_os = "linux")]
use crate::confine::{self, Confinement, Given, Inherited, Keeps};
use crate::demo::{self, Demo};
use crate::exit::{Exit, complain, refused};
use crate::input::{Fault, Inputs, ReadMode, Watch};
use crate::interrupt::Interrupt;
#[cfg(target_os = "linux")]
use crate::interrupt::Requests;
#[cfg(target_os = "linux")]
use crate::metrics::{self, Listener};
#[cfg(target_os = "linux")]
use crate::notify::Notify;
use crate::output::{Condition, How, is_standard, set_mode};
#[cfg(target_os = "linux")]
use crate::output::{folders, is_descriptor};
use crate::progress::{Gauge, Meter, ProgressKind};
use crate::replay::Replay;
#[cfg(target_os = "linux")]
use crate::sensors::Place;
use crate::tap::{Copy, CopyEnd, Tap};
use corelane_monitor::{
    Continuous, Counting, Found, Ignored, Inspection, Job, Observer, Plan, PlanError, Refused, Report, Settings,
    Silence, Source, Steps, Timing, limit_memory,
};
#[cfg(feature = "libpcap")]
use corelane_net::capture::LinkType;
use corelane_net::capture::filter::Filter;
#[cfg(target_os = "linux")]
use corelane_net::capture::live::Live;
use corelane_net::capture::{Memory, Record};
use std::hash::{BuildHasher, RandomState};
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

#[cfg(feature = "top")]
pub(crate) use outputs::Screen;
pub(crate) use outputs::{Analysed, Outputs};
use outputs::{User, open};
use publish::Publisher;
#[cfg(target_os = "linux")]
use service::Service;
use usage::{cpu_time, peak_memory};
#[cfg(target_os = "linux")]
use wire::Wire;

/// The limit of memory of a run on an interface, if none is given.
const LIVE_MEMORY: u64 = 1 << 30;

#[cfg(not(target_os = "linux"))]
const ONLY_ON_LINUX: &str = "-i and --interfaces need Linux; elsewhere pipe from a capture program: `tcpdump -w - | …`";

/// Runs the command.
pub(crate) fn run(arguments: &MonitorArguments, interrupt: &Interrupt) -> Exit {
    if arguments.capture.interfaces {
        #[cfg(target_os = "linux")]
        return wire::list();
        #[cfg(not(target_os = "linux"))]
        return refused(ONLY_ON_LINUX);
    }
    // This comes before a long input is loaded for nothing.
    let mut job = match prepare(arguments) {
        Ok(job) => job,
        Err(refusal) => return refused(refusal),
    };
    set_mode(arguments.outputs.output_mode);
    let opened = Start::of(arguments).and_then(|start| {
        let publisher = start.as_user(|| Publisher::open(arguments, &job.settings, interrupt))??;
        let mut outputs = Outputs::open(arguments, start.user.as_ref(), interrupt)?;
        outputs.publisher = publisher;
        Ok((start, outputs))
    });
    let (mut start, mut outputs) = match opened {
        Ok(opened) => opened,
        Err(refusal) => return refused(refusal).and(interrupt.exit()),
    };
    let quiet = arguments.outputs.quiet;
    let watch = Watch { interrupt: interrupt.clone(), gauge: Arc::new(Gauge::default()) };
    if !arguments.demo {
        let inputs = match inputs(arguments, start, job.settings.seed, &watch, &mut outputs) {
            Ok(inputs) => inputs,
            Err(refusal) => return refused(refusal).and(interrupt.exit()),
        };
        let analysed = analyse(inputs, &mut job, &mut outputs, &watch, quiet);
        return analysed.map_or(Exit::Failed, |analysed| analysed.exit.and(outputs.write(&analysed)));
    }
    if let Err(refusal) = start.confine_files(arguments) {
        return refused(refusal);
    }
    let meter = Meter::start("Generating", ProgressKind::Packets, Some(demo::PACKETS), &watch.gauge, quiet);
    let made = Demo::make(&watch);
    drop(meter);
    let (reader, planted) = match made {
        Ok(Some(Demo { reader, planted })) => (reader, planted),
        Ok(None) => {
            complain("interrupted before the analysis began: there is no report");
            return interrupt.exit();
        }
        Err(error) => return refused(format_args!("demo: {error}")),
    };
    let watch = Watch { interrupt: interrupt.clone(), gauge: Arc::new(Gauge::default()) };
    let inputs = vec![Input::Files(Box::new(Inputs::of("demo", reader, &watch).with_seed(arguments.spread.seed)))];
    let Some(analysed) = analyse(inputs, &mut job, &mut outputs, &watch, quiet) else { return Exit::Failed };
    let exit = analysed.exit.and(outputs.write(&analysed));
    if exit != Exit::Done {
        return exit;
    }
    match demo::verdict(&planted, &job.settings, &analysed.report) {
        Ok(news) => outputs.remark(&format!("Demo: {news}.")),
        Err(wrong) => {
            complain(format_args!("demo: {wrong}; please report this as a bug"));
            Exit::Partial
        }
    }
}

/// What the options ask for, or why that cannot be done.
pub(crate) fn prepare(arguments: &MonitorArguments) -> Result<Job, String> {
    if let Some(refusal) = without_effect(arguments).or_else(|| needs_a_whole_capture(arguments)) {
        return Err(refusal.to_owned());
    }
    if arguments.files.iter().filter(|file| is_standard(file)).count() > 1 {
        return Err("-: the standard input can be read once only; give it once".to_owned());
    }
    outputs::check(arguments)?;
    publish::folder(arguments)?;
    let (mut settings, mut inspection) = (settings(arguments), inspection(arguments));
    let plan = plan(arguments, inspection.payload);
    let limit = arguments.capture.interface.as_ref().map(|_| LIVE_MEMORY);
    if let Some(limit) = arguments.spread.memory_limit.or(limit)
        && let Err(least) = limit_memory(limit, &plan, &mut settings, Some(&mut inspection).filter(|it| it.payload))
    {
        let least = least.div_ceil(1 << 20);
        return Err(format!("--memory-limit: too little for these options; give at least {least}M"));
    }
    plan.check().map_err(with_option)?;
    Ok(Job { settings, plan, inspection, continuous: continuous(arguments) })
}

fn settings(arguments: &MonitorArguments) -> Settings {
    let (detection, outputs) = (&arguments.detection, &arguments.outputs);
    let is_live = arguments.capture.interface.is_some();
    let looks_inside = outputs.protocols || outputs.eve.is_some() || outputs.html.is_some();
    let opens_tunnels = (looks_inside || is_live) && arguments.capture.rings.get() == 1;
    let from = detection.ignore_source.iter().copied().map(Ignored::from);
    let to = detection.ignore_target.iter().copied().map(Ignored::to);
    Settings {
        syn_timeout_ns: u64::try_from(detection.syn_timeout.as_nanos()).unwrap_or(u64::MAX),
        vertical_threshold: detection.vertical_threshold,
        horizontal_threshold: detection.horizontal_threshold,
        ignored: from.chain(to).chain(detection.ignore.iter().copied()).collect(),
        probes: outputs.format == Format::Text
            || outputs.probes
            || outputs.eve.is_some()
            || outputs.html.is_some()
            || arguments.publishing.publish.is_some(),
        tunnels: detection.tunnels.map_or(opens_tunnels, |switch| switch == OnOff::On),
        counting: outputs.count_sources.map(|every| Counting { every, top: outputs.top }),
        table_bytes: None,
        // A sender that knew it could fill the memory of one partition.
        seed: arguments.spread.seed.unwrap_or_else(|| if is_live { RandomState::new().hash_one(0) } else { 0 }),
        // Only the text has them.
        top: if outputs.format == Format::Text { outputs.top } else { 0 },
    }
}

fn plan(arguments: &MonitorArguments, payload: bool) -> Plan {
    let spread = &arguments.spread;
    Plan {
        analyzers: spread.analyzers.map_or_else(|| Plan::fastest_analyzers(payload), usize::from),
        cpus: spread.cpus.as_ref().map_or_else(Vec::new, |cpus| cpus.0.clone()),
        ..Plan::default()
    }
}

fn read_mode(arguments: &MonitorArguments) -> ReadMode {
    match &arguments.spread {
        spread if spread.preload => ReadMode::Preload,
        spread if spread.mmap => ReadMode::Map,
        _ => ReadMode::Read,
    }
}

/// The filter that the options name, if they do.
fn filter(capture: &Capture) -> Result<Option<Filter>, String> {
    #[cfg(feature = "libpcap")]
    if let Some(expression) = &capture.filter {
        let compiled = match &capture.interface {
            Some(interface) => Filter::compile_live(expression, interface, capture.snaplen),
            None => Filter::compile(expression, LinkType::ETHERNET, capture.snaplen),
        };
        return compiled.map(Some).map_err(|error| format!("--filter: {error}"));
    }
    let Some(path) = &capture.filter_program else { return Ok(None) };
    let refusal = |error| format!("--filter-program {}: {error}", path.display());
    let filter = Filter::read(path).map_err(refusal)?;
    if capture.interface.is_none() {
        filter.check_files().map_err(refusal)?;
    }
    Ok(Some(filter))
}

/// What is opened before any output: a run that is refused for it makes and empties no file.
pub(crate) struct Start {
    #[cfg(target_os = "linux")]
    inherited: Inherited,
    user: Option<User>,
    filter: Option<Filter>,
    /// For a run on an interface.
    #[cfg(target_os = "linux")]
    live: Option<LiveStart>,
}

#[cfg(target_os = "linux")]
struct LiveStart {
    notify: Notify,
    listener: Option<Listener>,
    rings: Vec<Live>,
}

impl Start {
    pub(crate) fn of(arguments: &MonitorArguments) -> Result<Self, String> {
        let filter = filter(&arguments.capture)?;
        Ok(Start {
            #[cfg(target_os = "linux")]
            inherited: Inherited::find(),
            user: user(arguments)?,
            #[cfg(target_os = "linux")]
            live: LiveStart::of(arguments, filter.as_ref())?,
            filter,
        })
    }

    /// Gives up what the run does not need. All is open by then, but for captures that are read, and no thread runs.
    #[cfg(target_os = "linux")]
    fn confine(&mut self, arguments: &MonitorArguments) -> Result<Given, String> {
        let inherited = std::mem::take(&mut self.inherited);
        let confinement = confinement(arguments, self.user.take(), inherited);
        let folders = confinement.folders_rw.clone();
        let given = confinement.apply().map_err(|error| error.to_string())?;
        for (folder, error) in folders.iter().filter_map(|folder| Some((folder, confine::may_create(folder).err()?))) {
            complain(format_args!(
                "{}: no file can be created there any more: {error}; the outputs will not be opened again after a \
                 rotation; let the user of the run write in that folder",
                folder.display()
            ));
        }
        Ok(given)
    }

    /// The same for a run without an interface, which does not say what it has given up.
    pub(crate) fn confine_files(&mut self, arguments: &MonitorArguments) -> Result<(), String> {
        #[cfg(target_os = "linux")]
        self.confine(arguments)?;
        let _ = arguments;
        Ok(())
    }

    /// Acts as the user that the process becomes, if the options name one.
    fn as_user<T>(&self, act: impl FnOnce() -> T) -> Result<T, String> {
        #[cfg(target_os = "linux")]
        if let Some(user) = &self.user {
            return user.act(act).map_err(|refusal| refusal.to_string());
        }
        Ok(act())
    }
}

#[cfg(target_os = "linux")]
impl LiveStart {
    fn of(arguments: &MonitorArguments, filter: Option<&Filter>) -> Result<Option<Self>, String> {
        let capture = &arguments.capture;
        let Some(interface) = &capture.interface else { return Ok(None) };
        let notify = Notify::from_environment().map_err(|error| format!("NOTIFY_SOCKET: {error}"))?;
        let listener = metrics::listener(arguments.endless.metrics.as_deref())?;
        let headers_only = capture.write.is_none() && !needs_payload(arguments);
        let options = wire::options(capture, filter).headers_only(headers_only);
        wire::check_ring(capture, &options)?;
        let rings = Live::open_rings(interface, &options, capture.rings).map_err(|error| error.to_string())?;
        Ok(Some(LiveStart { notify, listener, rings }))
    }
}

/// The user that the process becomes, if the options name one that it can become.
fn user(arguments: &MonitorArguments) -> Result<Option<User>, String> {
    #[cfg(target_os = "linux")]
    if let Some(name) = &arguments.endless.user {
        let user = User::find(name).and_then(|user| user.act(|| ()).map(|()| user));
        return user.map(Some).map_err(|refusal| refusal.to_string());
    }
    let _ = arguments;
    Ok(None)
}

/// What is analysed, opened as far as that is possible before the analysis begins. Only an interface may be several.
pub(crate) fn inputs(
    arguments: &MonitorArguments,
    mut start: Start,
    seed: u64,
    watch: &Watch,
    outputs: &mut Outputs,
) -> Result<Vec<Input>, String> {
    let capture = &arguments.capture;
    // What a pipe has brought is gone, as what was on a wire is; from files the same run makes the copy again.
    let is_gone = capture.interface.is_some() || arguments.files.iter().any(|file| is_standard(file));
    let how = if is_gone { How::Apart } else { How::Replace };
    let copy = capture.write.as_ref().map(|path| open(path, start.user.as_ref(), how, &watch.interrupt)).transpose()?;
    start.as_user(|| outputs.publisher.iter_mut().try_for_each(Publisher::begin))??;
    let Some(interface) = &capture.interface else {
        start.confine_files(arguments)?;
        outputs.publisher.iter_mut().try_for_each(Publisher::start)?;
        let copy = copy.map(|output| Copy::to(output, capture.snaplen));
        let tap =
            Tap { filter: start.filter, copy: copy.map(CopyEnd::own), steps: arguments.is_endless().then(Steps::new) };
        return Ok(vec![Input::Files(Box::new(
            Inputs::new(&arguments.files, read_mode(arguments), watch).through(tap).with_seed(arguments.spread.seed),
        ))]);
    };
    #[cfg(not(target_os = "linux"))]
    return Err(format!("{interface}: {ONLY_ON_LINUX}"));
    #[cfg(target_os = "linux")]
    {
        // A terminal that closes ends a run on its screen, as others.
        let requests = if outputs.screen.is_some() { Ok(Requests::default()) } else { Requests::install() };
        let requests = requests.map_err(|error| format!("signals: {error}"))?;
        // From here on nothing can be opened but in the folders of the outputs.
        let given = start.confine(arguments)?;
        let Some(LiveStart { notify, listener, rings }) = start.live else { unreachable!("there is an interface") };
        outputs.publisher.iter_mut().try_for_each(Publisher::start)?;
        let copy =
            copy.map(|output| Copy::of_interface(output, capture.snaplen, interface.clone(), rings[0].link(), seed));
        let wires = Wire::all(rings, copy, watch, &requests, arguments.endless.drop_all);
        let protections = given.protections().map(|(name, protection)| (name, protection.to_string())).to_vec();
        let every = arguments.endless.stats_interval.as_secs();
        let facts = wires.iter().map(Wire::shared).collect();
        let conditions = outputs.conditions();
        let service = Service::start(&requests, facts, every, &conditions, listener, protections, notify);
        let service = service.map_err(|error| format!("--metrics: {error}"))?;
        if !arguments.outputs.quiet {
            complain(format_args!("capturing from {interface}; {given}"));
            if let Some(address) = service.address() {
                complain(format_args!("metrics at http://{address}/metrics, health at http://{address}/healthz"));
            }
        }
        outputs.service = Some(service);
        Ok(wires.into_iter().map(|wire| Input::Wire(Box::new(wire))).collect())
    }
}

/// What the process keeps once everything is open.
#[cfg(target_os = "linux")]
fn confinement(arguments: &MonitorArguments, user: Option<User>, inherited: Inherited) -> Confinement {
    let is_live = arguments.capture.interface.is_some();
    // Outputs are opened again on an interface alone.
    let outputs = [&arguments.outputs.eve, &arguments.capture.write];
    let mut folders_rw = folders(outputs.into_iter().flatten().filter(|_| is_live));
    let publishing = &arguments.publishing;
    let log = publish::folder(arguments).ok().flatten().zip(publishing.sensor.as_ref());
    folders_rw.extend(log.map(|(folder, sensor)| folder.join(sensor.as_str())));
    // Captures are opened one after the other.
    let mut readable: Vec<_> = arguments.files.iter().filter(|file| !is_standard(file)).cloned().collect();
    let inherited = if readable.iter().any(|file| is_descriptor(file)) { Inherited::default() } else { inherited };
    let servers = matches!(publish::place(arguments), Ok(Some(Place::Nats(_))));
    if servers {
        readable.extend(publishing.connection.readable());
    }
    // A screen has its keys from there, if they are not the standard input.
    let writable = if arguments.outputs.screen { vec![PathBuf::from("/dev/tty")] } else { Vec::new() };
    let writing = !is_live && publishing.publish.is_some();
    let keeps = Keeps { net_raw: is_live && !arguments.endless.drop_all, reading: !is_live, writing, servers };
    Confinement { user, folders_rw, readable, writable, keeps, inherited }
}

/// The settings of the second analysis.
fn inspection(arguments: &MonitorArguments) -> Inspection {
    let outputs = &arguments.outputs;
    let facts = outputs.html.is_some() || outputs.screen;
    Inspection {
        events: arguments.events(),
        attempts: outputs.eve_attempts == OnOff::On,
        payload: needs_payload(arguments),
        facts,
        ..Inspection::default()
    }
}

/// Whether anything asks for more of packets than their headers, but for a copy of them.
fn needs_payload(arguments: &MonitorArguments) -> bool {
    let outputs = &arguments.outputs;
    outputs.protocols || arguments.events().need_inspection() || outputs.html.is_some() || outputs.screen
}

/// The settings of time, if the analysis goes on.
fn continuous(arguments: &MonitorArguments) -> Option<Continuous> {
    let Endless { forget, suppress, stats_interval, .. } = &arguments.endless;
    let is_live = arguments.capture.interface.is_some();
    // The metrics of an interface, and the report by a signal, are of the last second.
    let snapshot_s = if is_live { 1 } else { stats_interval.as_secs() };
    let continuous = Continuous {
        forget_s: forget.as_secs(),
        suppress_s: suppress.as_secs(),
        snapshot_s,
        reports: arguments.publishing.publish.is_some(),
        ready_bytes: if is_live { Continuous::READY } else { 0 },
    };
    arguments.is_endless().then_some(continuous)
}

/// The reason why an option cannot be had together with an analysis that goes on, if there is one.
fn needs_a_whole_capture(arguments: &MonitorArguments) -> Option<&'static str> {
    if !arguments.is_endless() {
        return None;
    }
    if arguments.detection.tunnels == Some(OnOff::On) && arguments.capture.rings.get() > 1 {
        return Some(
            "--tunnels needs one ring: the kernel spreads packets by their outer addresses; leave out --rings",
        );
    }
    if arguments.outputs.html.is_some() {
        return Some(
            "--html needs a whole capture, and --continuous and -i forget; leave it out, or --write a capture first",
        );
    }
    let counts = arguments.outputs.count_sources.is_some();
    counts.then_some("--count-sources needs a whole capture, and --continuous forgets; leave out one of them")
}

/// The reason why an option would have no effect, if there is one.
fn without_effect(arguments: &MonitorArguments) -> Option<&'static str> {
    let outputs = &arguments.outputs;
    (outputs.protocols && outputs.format == Format::Json && !arguments.events().need_inspection())
        .then_some("--protocols is shown in text only; use --eve for machines, or leave out --format json")
}

/// The message why the plan cannot be carried out, with the option that asked for it.
fn with_option(error: PlanError) -> String {
    let option = match error {
        PlanError::TooManyAnalyzers | PlanError::Queue(_) => "--analyzers",
        PlanError::NoSuchCpu(_) => "--cpus",
    };
    format!("{option}: {error}")
}

/// What is analysed.
pub(crate) enum Input {
    Files(Box<Inputs>),
    Replay(Box<Replay>),
    #[cfg(target_os = "linux")]
    Wire(Box<Wire>),
}

impl Input {
    /// The same, with captures played as fast as they were recorded.
    #[cfg(feature = "top")]
    pub(crate) fn played(self, play: impl FnOnce(Inputs) -> Replay) -> Self {
        match self {
            Input::Files(inputs) => Input::Replay(Box::new(play(*inputs))),
            other => other,
        }
    }

    fn files(&mut self) -> Option<&mut Inputs> {
        match self {
            Input::Files(inputs) => Some(inputs),
            Input::Replay(replay) => Some(&mut replay.inputs),
            #[cfg(target_os = "linux")]
            Input::Wire(_) => None,
        }
    }

    fn size(&self) -> Option<u64> {
        match self {
            Input::Files(inputs) => inputs.size(),
            Input::Replay(replay) => replay.inputs.size(),
            #[cfg(target_os = "linux")]
            Input::Wire(_) => None,
        }
    }

    /// Ends the input, which the analysis may have left before its end; ends the copy, if there is one, and says how
    /// that is.
    fn finish(&mut self) -> Option<Condition> {
        match self {
            Input::Files(inputs) => inputs.finish_copy(),
            Input::Replay(replay) => replay.inputs.finish_copy(),
            #[cfg(target_os = "linux")]
            Input::Wire(wire) => wire.finish(),
        }
    }

    fn is_wire(&self) -> bool {
        !matches!(self, Input::Files(_) | Input::Replay(_))
    }

    fn is_preloaded(&self) -> bool {
        matches!(self, Input::Files(inputs) if inputs.is_preloaded())
    }
}

impl Source for Input {
    type Error = Fault;

    #[inline]
    fn read(&mut self, max: usize, sink: impl FnMut(Record<'_>)) -> Result<usize, Fault> {
        match self {
            Input::Files(inputs) => inputs.read(max, sink),
            Input::Replay(replay) => replay.read(max, sink),
            #[cfg(target_os = "linux")]
            Input::Wire(wire) => wire.read(max, sink),
        }
    }

    fn silence(&mut self) -> Silence {
        match self {
            Input::Files(inputs) => inputs.silence(),
            Input::Replay(replay) => replay.silence(),
            #[cfg(target_os = "linux")]
            Input::Wire(wire) => wire.silence(),
        }
    }

    fn memory(&mut self) -> Option<&Memory> {
        match self {
            Input::Files(inputs) => inputs.memory(),
            // Records that wait are copied.
            Input::Replay(_) => None,
            #[cfg(target_os = "linux")]
            Input::Wire(_) => None,
        }
    }
}

/// Runs the analysis, and logs faults of the input. `None` if no input could be read.
pub(crate) fn analyse(
    mut inputs: Vec<Input>,
    job: &mut Job,
    outputs: &mut Outputs,
    watch: &Watch,
    quiet: bool,
) -> Option<Analysed> {
    let is_partial = AtomicBool::new(false);
    let report_fault = |meter: &Meter, fault: Fault| {
        meter.suspend(|| complain(&fault));
        is_partial.fetch_or(fault.is_loss(), Relaxed);
    };
    let size = |inputs: &[Input]| inputs.iter().map(Input::size).sum();
    let meter = if inputs.iter().any(Input::is_preloaded) {
        Meter::start("Loading", ProgressKind::Bytes, size(&inputs), &watch.gauge, quiet)
    } else {
        // A pipe may take long to send its first byte.
        Meter::start("Waiting", ProgressKind::Time, None, &watch.gauge, quiet)
    };
    let mut begun = Ok(());
    if let Some(files) = inputs.first_mut().and_then(Input::files) {
        let readable = files.open();
        files.faults().for_each(|fault| report_fault(&meter, fault));
        if !readable && !files.was_cut_short() {
            return None;
        }
        job.settings.seed = files.seed();
        begun = files.begin_copy();
    }
    drop(meter);
    if let Err(error) = begun.and_then(|()| outputs.begin()) {
        complain(error);
        return None;
    }
    let kind = if inputs.iter().any(|input| input.is_wire()) { ProgressKind::Wire } else { ProgressKind::Captures };
    let meter = Meter::start("Analysing", kind, size(&inputs), &watch.gauge, quiet);
    let (start, cpu_start) = (Instant::now(), cpu_time());
    let progress = &watch.gauge.packets;
    let sources: Vec<_> = inputs.iter_mut().collect();
    let damage = &|_, fault| report_fault(&meter, fault);
    let found = &mut |found: Found<'_>| outputs.found(&found, progress, |write| meter.suspend(write));
    let observer = Observer { progress, damage, found };
    let found = if sources.len() > 1 { job.run_rings(sources, observer) } else { job.run(sources, observer) };
    let timing =
        Timing { wall: start.elapsed(), cpu: cpu_time().saturating_sub(cpu_start), peak_memory: peak_memory() };
    drop(meter);
    let mut exit = if is_partial.into_inner() { Exit::Partial } else { Exit::Done };
    if let Some(files) = inputs.first_mut().and_then(Input::files)
        && files.was_cut_short()
        && outputs.screen.is_none()
    {
        exit = watch.interrupt.exit();
        complain("interrupted: the report has what was found so far");
    }
    // Several rings share a copy, which has ended when the last of them has.
    let mut copy = None;
    for input in &mut inputs {
        copy = input.finish();
    }
    if let Some(Condition { dropped, error, .. }) = copy
        && (dropped > 0 || error.is_some())
    {
        let error = error.unwrap_or_else(|| "there was no room for them for a while".to_owned());
        complain(format_args!("--write: {dropped} packets could not be written: {error}"));
        exit = exit.and(Exit::Partial);
    }
    match found {
        Ok((mut report, findings)) => {
            let findings = job.inspection.payload.then_some(findings);
            report.capture = outputs.service.as_ref().map(|service| service.captured(&outputs.conditions()));
            if let Some(missing) = missing(&report) {
                complain(missing);
                exit = exit.and(Exit::Partial);
            }
            Some(Analysed { report, findings, timing, exit })
        }
        Err(error) => {
            complain(with_option(error));
            None
        }
    }
}

/// A message about the packets and attempts that a limit of memory left out, if there were any.
fn missing(report: &Report) -> Option<String> {
    let Refused { flow_packets, attempts, source_packets } = report.refused;
    (!report.refused.is_empty()).then(|| {
        format!(
            "--memory-limit: no room for {flow_packets} packets of flows, {attempts} attempts and {source_packets} \
             packets of sources: scans and totals may be incomplete; a higher limit holds more"
        )
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use clap::Parser;
    use std::path::Path;

    #[test]
    fn only_folders_of_files_are_left_open() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("copy");
        std::fs::write(&file, "").unwrap();
        let allowed = |eve: &Path| {
            let arguments = ["corelane", "monitor", "-i", "lo", "--write"].map(Path::new);
            let arguments = arguments.into_iter().chain([file.as_path(), Path::new("--eve"), eve]);
            let Command::Monitor(arguments) = Arguments::parse_from(arguments).command else { panic!() };
            confinement(&arguments, None, Inherited::default()).folders_rw
        };
        let inside = folder.path().canonicalize().unwrap();
        for device in ["-", "/dev/null", "/dev/full", "/dev/stdout"] {
            assert_eq!(allowed(Path::new(device)), [&*inside], "{device}");
        }
        assert_eq!(allowed(&file), [&*inside]);
        // Where the file is, and not where a link to it is.
        let links = tempfile::tempdir().unwrap();
        let link = links.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(allowed(&link), [&*inside]);
    }
}
