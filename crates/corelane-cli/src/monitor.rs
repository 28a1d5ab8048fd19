//! `corelane monitor`: captures in, a report out.

use crate::args::{Format, MonitorArguments};
use crate::demo::{self, Demo};
use crate::exit::{Exit, complain, refused};
use crate::input::{Fault, Inputs, Watch};
use crate::interrupt::Interrupt;
use crate::output::{Output, OutputError, same_file};
use crate::progress::{Gauge, Meter, Shows, color};
use corelane_monitor::{Plan, PlanError, Progress, Report, Settings, Style, Timing};
use cpu_time::ProcessTime;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs the command.
pub(crate) fn run(arguments: &MonitorArguments, interrupt: &Interrupt) -> Exit {
    let (settings, plan) = (settings(arguments), plan(arguments));
    // Before a long input is loaded for nothing.
    if let Err(error) = check(&settings, &plan) {
        return refused(error);
    }
    let outputs = match Outputs::create(arguments) {
        Ok(outputs) => outputs,
        Err(refusal) => return refused(refusal),
    };
    let quiet = arguments.outputs.quiet;
    let watch = Watch { interrupt: interrupt.clone(), gauge: Arc::new(Gauge::default()) };
    if !arguments.demo {
        let inputs = Inputs::new(&arguments.files, arguments.spread.preload, &watch);
        let analysed = analyse(inputs, &settings, &plan, &watch, quiet);
        return analysed.map_or(Exit::Failed, |(report, timing, exit)| exit.and(outputs.write(&report, &timing)));
    }
    let meter = Meter::start("Generating", Shows::Packets, Some(demo::PACKETS), &watch.gauge, quiet);
    let made = Demo::make(&watch);
    drop(meter);
    let (reader, planted) = match made {
        Ok(Some(Demo { reader, planted })) => (reader, planted),
        Ok(None) => {
            complain("interrupted: nothing was found so far");
            return interrupt.exit();
        }
        Err(error) => return refused(error),
    };
    let watch = Watch { interrupt: interrupt.clone(), gauge: Arc::new(Gauge::default()) };
    let inputs = Inputs::of("demo", reader, &watch);
    let Some((report, timing, exit)) = analyse(inputs, &settings, &plan, &watch, quiet) else { return Exit::Failed };
    let exit = exit.and(outputs.write(&report, &timing));
    if exit != Exit::Done {
        return exit;
    }
    match demo::verdict(&planted, &settings, &report) {
        Ok(news) => outputs.remark(&format!("Demo: {news}.")),
        Err(wrong) => {
            complain(format_args!("demo: {wrong}"));
            Exit::Partial
        }
    }
}

fn settings(arguments: &MonitorArguments) -> Settings {
    let detection = &arguments.detection;
    Settings {
        syn_timeout_ns: u64::try_from(detection.syn_timeout.as_nanos()).unwrap_or(u64::MAX),
        vertical_threshold: detection.vertical_threshold,
        horizontal_threshold: detection.horizontal_threshold,
        rule: detection.rule.into(),
        // They are in the text only.
        top: if arguments.outputs.format == Format::Text { arguments.outputs.top } else { 0 },
    }
}

fn plan(arguments: &MonitorArguments) -> Plan {
    let (spread, default) = (&arguments.spread, Plan::default());
    Plan {
        analyzers: spread.analyzers.map_or(default.analyzers, usize::from),
        queue: spread.queue,
        capacity: spread.queue_capacity,
        batch: spread.queue_batch,
        sharing: spread.sharing.into(),
        cpus: spread.cpus.as_ref().map_or_else(Vec::new, |cpus| cpus.0.clone()),
    }
}

/// Whether the plan can be carried out: tried on an empty capture.
fn check(settings: &Settings, plan: &Plan) -> Result<(), PlanError> {
    corelane_monitor::run::<Inputs>([], settings, plan, &Progress::new(), |_, _| {}).map(drop)
}

/// Runs the analysis and tells what is wrong with the input. `None` if nothing of it could be read.
fn analyse(
    mut inputs: Inputs,
    settings: &Settings,
    plan: &Plan,
    watch: &Watch,
    quiet: bool,
) -> Option<(Report, Timing, Exit)> {
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
        // Pipes may take their time before the first byte.
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
    let report = corelane_monitor::run([&mut inputs], settings, plan, &watch.gauge.packets, |_, fault| {
        tell(&meter, fault);
    });
    let timing = Timing { wall: start.elapsed(), cpu: cpu_time().saturating_sub(cpu_start) };
    drop(meter);
    if inputs.was_cut_short() {
        exit = watch.interrupt.exit();
        complain("interrupted: this is what was found so far");
    }
    match report {
        Ok(report) => Some((report, timing, exit)),
        Err(error) => {
            complain(error);
            None
        }
    }
}

/// Of all threads of the process; zero where the system does not tell.
fn cpu_time() -> Duration {
    ProcessTime::try_now().map_or(Duration::ZERO, |time| time.as_duration())
}

/// Everything that is written, open before the analysis begins.
struct Outputs {
    format: Format,
    report: Output,
    eve: Option<Output>,
    timing: Option<Output>,
}

impl Outputs {
    fn create(arguments: &MonitorArguments) -> Result<Self, String> {
        let create = |path: &Option<PathBuf>| {
            let Some(path) = path else { return Ok(None) };
            if arguments.files.iter().any(|file| same_file(file, path)) {
                return Err(format!("{}: is an input, and would be overwritten", path.display()));
            }
            Output::create(path).map(Some).map_err(|error| error.to_string())
        };
        Ok(Outputs {
            format: arguments.outputs.format,
            report: Output::stdout(),
            eve: create(&arguments.outputs.eve)?,
            timing: create(&arguments.outputs.timing)?,
        })
    }

    /// Writes everything. What cannot be written does not keep the rest from being written.
    fn write(&self, report: &Report, timing: &Timing) -> Exit {
        let written = |written: Result<Exit, OutputError>| {
            written.unwrap_or_else(|error| {
                complain(error);
                Exit::Partial
            })
        };
        let mut exit = written(self.report.write(|out| match self.format {
            Format::Json => report.write_json(out),
            Format::Text => report.write_summary(timing, Style { color: color(io::stdout().is_terminal()) }, out),
        }));
        if let Some(eve) = &self.eve {
            exit = exit.and(written(eve.write(|out| report.write_eve(out))));
        }
        if let Some(file) = &self.timing {
            exit = exit.and(written(file.write(|out| report.write_timing(timing, out))));
        }
        exit
    }

    /// Says one thing more below the report, or beside it if that is for machines.
    fn remark(&self, what: &str) -> Exit {
        match self.format {
            Format::Text => self.report.write(|out| writeln!(out, "\n{what}")).unwrap_or(Exit::Partial),
            Format::Json => {
                complain(what);
                Exit::Done
            }
        }
    }
}
