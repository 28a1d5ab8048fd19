//! `corelane monitor`: makes a report of captures.

use crate::args::{Endless, Format, MonitorArguments, RuleName, Whether};
use crate::demo::{self, Demo};
use crate::exit::{Exit, complain, refused};
use crate::input::{Fault, Inputs, Watch, Way};
use crate::interrupt::Interrupt;
use crate::output::{Output, OutputError, Stream, is_one_output, is_standard, same_file};
use crate::progress::{Gauge, Meter, Shows, color};
use corelane::error::ChannelError;
use corelane_monitor::eve::{self, Events};
use corelane_monitor::{
    Continuous, Counting, Findings, Found, Ignored, Inspection, Plan, PlanError, Progress, Refused, Report, Settings,
    Style, Timing, limit_memory,
};
use cpu_time::ProcessTime;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs the command.
pub(crate) fn run(arguments: &MonitorArguments, interrupt: &Interrupt) -> Exit {
    if let Some(refusal) = fruitless(arguments).or_else(|| needs_a_whole_capture(arguments)) {
        return refused(refusal);
    }
    if arguments.files.iter().filter(|file| is_standard(file)).count() > 1 {
        return refused("-: the standard input can be read once only; give it once");
    }
    let (mut settings, mut inspection) = (settings(arguments), inspection(arguments));
    let plan = plan(arguments, inspection.is_some());
    if let Some(limit) = arguments.spread.memory_limit
        && let Err(least) = limit_memory(limit, &plan, &mut settings, inspection.as_mut().filter(|it| it.payload))
    {
        let least = least.div_ceil(1 << 20);
        return refused(format_args!("--memory-limit: too little for these options; give at least {least}M"));
    }
    // This comes before a long input is loaded for nothing.
    if let Err(error) = check(&settings, &plan) {
        return refused(with_option(error));
    }
    let continuous = continuous(arguments);
    let mut outputs = match Outputs::create(arguments) {
        Ok(outputs) => outputs,
        Err(refusal) => return refused(refusal),
    };
    let quiet = arguments.outputs.quiet;
    let watch = Watch { interrupt: interrupt.clone(), gauge: Arc::new(Gauge::default()) };
    if !arguments.demo {
        let inputs = Inputs::new(&arguments.files, way(arguments), &watch);
        let inspection = inspection.as_ref();
        let task = Task { settings: &settings, continuous: continuous.as_ref(), inspection, plan: &plan };
        let analysed = analyse(inputs, task, &mut outputs, &watch, quiet);
        return analysed.map_or(Exit::Failed, |analysed| analysed.exit.and(outputs.write(&analysed)));
    }
    let meter = Meter::start("Generating", Shows::Packets, Some(demo::PACKETS), &watch.gauge, quiet);
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
    let inputs = Inputs::of("demo", reader, &watch);
    let task = Task { settings: &settings, continuous: None, inspection: inspection.as_ref(), plan: &plan };
    let Some(analysed) = analyse(inputs, task, &mut outputs, &watch, quiet) else { return Exit::Failed };
    let exit = analysed.exit.and(outputs.write(&analysed));
    if exit != Exit::Done {
        return exit;
    }
    match demo::verdict(&planted, &settings, &analysed.report) {
        Ok(news) => outputs.remark(&format!("Demo: {news}.")),
        Err(wrong) => {
            complain(format_args!("demo: {wrong}; please report this as a bug"));
            Exit::Partial
        }
    }
}

fn settings(arguments: &MonitorArguments) -> Settings {
    let (detection, outputs) = (&arguments.detection, &arguments.outputs);
    Settings {
        syn_timeout_ns: u64::try_from(detection.syn_timeout.as_nanos()).unwrap_or(u64::MAX),
        vertical_threshold: detection.vertical_threshold,
        horizontal_threshold: detection.horizontal_threshold,
        rule: detection.rule.into(),
        ignored: Ignored { sources: detection.ignore_source.clone(), targets: detection.ignore_target.clone() },
        probes: outputs.format == Format::Text || outputs.probes || outputs.eve.is_some(),
        tunnels: detection.tunnels.map_or(outputs.protocols || outputs.eve.is_some(), |whether| whether == Whether::On),
        counting: outputs.count_sources.map(|every| Counting { every, top: outputs.top }),
        table_bytes: None,
        // Only the text has them.
        top: if outputs.format == Format::Text { outputs.top } else { 0 },
    }
}

fn plan(arguments: &MonitorArguments, payload: bool) -> Plan {
    let spread = &arguments.spread;
    Plan {
        analyzers: spread.analyzers.map_or_else(|| Plan::fastest_analyzers(payload), usize::from),
        queue: spread.queue,
        capacity: spread.queue_capacity,
        batch: spread.queue_batch,
        sharing: spread.sharing.into(),
        cpus: spread.cpus.as_ref().map_or_else(Vec::new, |cpus| cpus.0.clone()),
    }
}

/// The way in which the files are read.
fn way(arguments: &MonitorArguments) -> Way {
    match &arguments.spread {
        spread if spread.preload => Way::Preload,
        spread if spread.mmap => Way::Map,
        _ => Way::Read,
    }
}

/// The settings of the second analysis, if the options ask for it.
fn inspection(arguments: &MonitorArguments) -> Option<Inspection> {
    let outputs = &arguments.outputs;
    let events = events(arguments);
    let payload = outputs.protocols || events.need_inspection();
    let inspection = Inspection { events, payload, ..Inspection::default() };
    (payload || arguments.endless.is_on()).then_some(inspection)
}

/// The settings of time, if the analysis goes on.
fn continuous(arguments: &MonitorArguments) -> Option<Continuous> {
    let Endless { forget, suppress, stats_interval, .. } = &arguments.endless;
    let continuous =
        Continuous { forget_s: forget.as_secs(), suppress_s: suppress.as_secs(), snapshot_s: stats_interval.as_secs() };
    arguments.endless.is_on().then_some(continuous)
}

/// The reason why an option cannot be had together with an analysis that goes on, if there is one.
fn needs_a_whole_capture(arguments: &MonitorArguments) -> Option<&'static str> {
    if !arguments.endless.is_on() {
        return None;
    }
    if arguments.detection.rule == RuleName::Paper {
        return Some("--rule paper needs a whole capture, and --continuous forgets; leave out one of them");
    }
    let counts = arguments.outputs.count_sources.is_some();
    counts.then_some("--count-sources needs a whole capture, and --continuous forgets; leave out one of them")
}

/// The reason why an option would have no effect, if there is one.
fn fruitless(arguments: &MonitorArguments) -> Option<&'static str> {
    let outputs = &arguments.outputs;
    (outputs.protocols && outputs.format == Format::Json && !events(arguments).need_inspection())
        .then_some("--protocols is shown in text only; use --eve for machines, or leave out --format json")
}

/// The events that are written.
fn events(arguments: &MonitorArguments) -> Events {
    let outputs = &arguments.outputs;
    match outputs.eve_types.iter().copied().reduce(|some, more| some | more) {
        _ if outputs.eve.is_none() => Events::NONE,
        Some(events) => events,
        None => Events::ALL,
    }
}

/// Checks the plan by a run over no captures.
fn check(settings: &Settings, plan: &Plan) -> Result<(), PlanError> {
    corelane_monitor::run::<Inputs>([], settings, plan, &Progress::new(), |_, _| {}).map(drop)
}

/// The message why the plan cannot be carried out, with the option that asked for it.
fn with_option(error: PlanError) -> String {
    let option = match error {
        PlanError::TooManyAnalyzers => "--analyzers",
        PlanError::NoBatch(_) | PlanError::Queue(ChannelError::BadBatch) => "--queue-batch",
        PlanError::Queue(_) => "--queue-capacity",
        PlanError::NoSuchCpu(_) => "--cpus",
    };
    format!("{option}: {error}")
}

/// The work on the inputs.
#[derive(Clone, Copy)]
struct Task<'a> {
    settings: &'a Settings,
    /// The settings of time, if the analysis goes on.
    continuous: Option<&'a Continuous>,
    inspection: Option<&'a Inspection>,
    plan: &'a Plan,
}

/// The results.
struct Analysed {
    report: Report,
    findings: Option<Findings>,
    timing: Timing,
    exit: Exit,
}

/// Runs the analysis, and tells the user about faults of the input. `None` if no input could be read.
fn analyse(mut inputs: Inputs, task: Task<'_>, outputs: &mut Outputs, watch: &Watch, quiet: bool) -> Option<Analysed> {
    let mut exit = Exit::Done;
    let mut tell = |meter: &Meter, fault: Fault| {
        meter.suspend(|| complain(&fault));
        if fault.is_loss() {
            exit = Exit::Partial;
        }
    };
    let meter = if inputs.is_preloaded() {
        Meter::start("Loading", Shows::Bytes, inputs.size(), &watch.gauge, quiet)
    } else {
        // A pipe may take long to send its first byte.
        Meter::start("Waiting", Shows::Time, None, &watch.gauge, quiet)
    };
    let readable = inputs.open();
    inputs.faults().for_each(|fault| tell(&meter, fault));
    drop(meter);
    if !readable && !inputs.was_cut_short() {
        return None;
    }
    let meter = Meter::start("Analysing", Shows::Packets, inputs.size(), &watch.gauge, quiet);
    let (start, cpu_start) = (Instant::now(), cpu_time());
    let progress = &watch.gauge.packets;
    let mut damage = |_, fault| tell(&meter, fault);
    let Task { settings, continuous, inspection, plan } = task;
    let sources = [&mut inputs];
    let found = match (continuous, inspection) {
        (_, None) => corelane_monitor::run(sources, settings, plan, progress, &mut damage).map(|report| (report, None)),
        (None, Some(inspection)) => {
            let out = |lines: &[u8]| outputs.events(lines, progress);
            corelane_monitor::inspect(sources, settings, inspection, plan, progress, &mut damage, out)
                .map(|(report, findings)| (report, Some(findings)))
        }
        (Some(continuous), Some(inspection)) => {
            let out = |found: Found<'_>| outputs.found(&found, progress, |write| meter.suspend(write));
            corelane_monitor::watch(sources, settings, continuous, inspection, plan, progress, &mut damage, out)
                .map(|(report, findings)| (report, inspection.payload.then_some(findings)))
        }
    };
    let timing =
        Timing { wall: start.elapsed(), cpu: cpu_time().saturating_sub(cpu_start), peak_memory: peak_memory() };
    drop(meter);
    if inputs.was_cut_short() {
        exit = watch.interrupt.exit();
        complain("interrupted: the report has what was found so far");
    }
    match found {
        Ok((report, findings)) => {
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

/// The processor time of all threads of the process; zero if the system does not tell.
fn cpu_time() -> Duration {
    ProcessTime::try_now().map_or(Duration::ZERO, |time| time.as_duration())
}

/// The most memory that the process had at one time, in bytes, if the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// All outputs, opened before the analysis begins.
struct Outputs {
    format: Format,
    probes: bool,
    /// `None` if another output takes its place.
    report: Option<Output>,
    eve: Option<Eve>,
    timing: Option<Output>,
    /// Whether scans were written where the report goes.
    has_told: bool,
}

/// The output of events, and their kinds.
struct Eve {
    stream: Stream,
    events: Events,
    is_stdout: bool,
}

impl Outputs {
    fn create(arguments: &MonitorArguments) -> Result<Self, String> {
        let (eve, timing) = (&arguments.outputs.eve, &arguments.outputs.timing);
        // This check comes before any of the files is emptied.
        for path in [eve, timing].into_iter().flatten() {
            if arguments.files.iter().any(|file| same_file(file, path)) {
                return Err(format!("{}: is an input and would be overwritten; choose another file", path.display()));
            }
        }
        if let (Some(eve), Some(timing)) = (eve, timing)
            && is_one_output(eve, timing)
        {
            return Err(format!("{}: cannot hold both the events and the timing; choose two files", timing.display()));
        }
        let create = |path: &Option<PathBuf>| {
            let Some(path) = path else { return Ok(None) };
            Output::create(path).map(Some).map_err(|error| error.to_string())
        };
        let format = arguments.outputs.format;
        let eve = create(eve)?;
        let taken = eve.as_ref().is_some_and(Output::is_stdout);
        if taken && format == Format::Json {
            return Err(
                "--eve -: the events and the JSON report cannot both go to the standard output; name a file".to_owned()
            );
        }
        let eve = eve.map(|output| Eve {
            is_stdout: output.is_stdout(),
            stream: output.into_stream(),
            events: events(arguments),
        });
        Ok(Outputs {
            format,
            probes: arguments.outputs.probes,
            report: (!taken).then(Output::stdout),
            eve,
            timing: create(timing)?,
            has_told: false,
        })
    }

    /// Writes events while the analysis runs. When their reader has gone, and there is no other output, the analysis
    /// ends.
    fn events(&mut self, lines: &[u8], progress: &Progress) {
        if let Some(eve) = &mut self.eve
            && !eve.stream.put(lines)
            && eve.is_stdout
        {
            progress.stop();
        }
    }

    /// Writes what an analysis that goes on has found. What goes where the progress is shown is written by `beside`.
    fn found(&mut self, found: &Found<'_>, progress: &Progress, mut beside: impl FnMut(&mut dyn FnMut())) {
        match found {
            Found::Lines(lines) => self.events(lines, progress),
            Found::Scan(scan) => match (&mut self.eve, &self.report) {
                (Some(eve), _) if eve.events.has(Events::ALERT) => {
                    // Writes to the stream never fail: `finish` returns the error.
                    let _ = eve::write_scan(scan, &mut eve.stream);
                }
                (None, Some(report)) if self.format == Format::Text => {
                    // If the report cannot be written, its end says so.
                    beside(&mut || drop(report.write(|out| writeln!(out, "{scan}"))));
                    self.has_told = true;
                }
                _ => {}
            },
            Found::Snapshot(report, findings) => {
                if let Some(eve) = self.eve.as_mut().filter(|eve| eve.events.has(Events::STATS)) {
                    let _ = eve::write_stats(report, findings, &mut eve.stream);
                }
            }
        }
    }

    /// Writes all outputs. If one cannot be written the others still are.
    fn write(&mut self, analysed: &Analysed) -> Exit {
        let Analysed { report, findings, timing, .. } = analysed;
        let written = |written: Result<Exit, OutputError>| {
            written.unwrap_or_else(|error| {
                complain(error);
                Exit::Partial
            })
        };
        let mut exit = Exit::Done;
        if let Some(output) = &self.report {
            exit = written(output.write(|out| {
                if self.has_told {
                    writeln!(out)?;
                }
                let style = Style { color: color(io::stdout().is_terminal()) };
                match (self.format, findings) {
                    (Format::Json, _) if self.probes => report.write_json_with_probes(out),
                    (Format::Json, _) => report.write_json(out),
                    (Format::Text, None) => report.write_summary(timing, style, out),
                    (Format::Text, Some(findings)) => {
                        report.write_summary(timing, style, &mut *out)?;
                        findings.write_summary(style, out)
                    }
                }
            }));
        }
        if let Some(eve) = self.eve.take() {
            exit = exit.and(written(eve.finish(report, findings.as_ref())));
        }
        if let Some(file) = &self.timing {
            exit = exit.and(written(file.write(|out| report.write_timing(timing, out))));
        }
        exit
    }

    /// Writes a remark below the report, or beside it if the report is for machines.
    fn remark(&self, what: &str) -> Exit {
        match &self.report {
            Some(report) if self.format == Format::Text => {
                report.write(|out| writeln!(out, "\n{what}")).unwrap_or(Exit::Partial)
            }
            _ => {
                complain(what);
                Exit::Done
            }
        }
    }
}

impl Eve {
    /// Writes the events that are known only at the end.
    fn finish(mut self, report: &Report, findings: Option<&Findings>) -> Result<Exit, OutputError> {
        // Writes to the stream never fail: `finish` returns the error.
        // Where the analysis goes on they were written as they came.
        if self.events.has(Events::ALERT) && report.scans.is_none() {
            let _ = report.write_eve(&mut self.stream);
        }
        if self.events.has(Events::STATS)
            && let Some(findings) = findings
        {
            let _ = eve::write_stats(report, findings, &mut self.stream);
        }
        self.stream.finish()
    }
}
