//! The outputs of `corelane monitor`, opened before the analysis begins.

use super::publish::Publisher;
use super::service::Service;
use crate::args::{Capture, Format, MonitorArguments};
#[cfg(target_os = "linux")]
pub(super) use crate::confine::User;
use crate::exit::{Exit, complain};
use crate::interrupt::Interrupt;
use crate::output::{Condition, How, Output, OutputError, Stream, Units, is_descriptor, is_one_output, is_standard};
use crate::progress::color;
use corelane_monitor::eve::{self, Events};
use corelane_monitor::{Captured, Findings, Found, Origin, Progress, Report, Style, Timing};
use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// All outputs, opened before the analysis begins.
pub(crate) struct Outputs {
    format: Format,
    probes: bool,
    /// `None` if another output takes its place.
    report: Option<Output>,
    eve: Option<Eve>,
    timing: Option<Output>,
    /// The page, and what it is about.
    html: Option<(Output, Origin)>,
    /// Whether scans were written where the report goes.
    has_scans: bool,
    /// If this is a sensor.
    pub(super) publisher: Option<Publisher>,
    /// For a run on an interface.
    pub(super) service: Option<Service>,
    /// If a screen takes the place of the others.
    pub(super) screen: Option<Box<dyn Screen>>,
    /// Requests to open the outputs again that were followed.
    reopens: usize,
}

/// What shows a run instead of all outputs.
pub(crate) trait Screen: Send {
    /// The analysis begins: from here on there is something to show.
    fn begin(&self);
    /// Takes what the analysis has found; `captured` has the counts of an interface.
    fn found(&self, found: &Found<'_>, captured: &dyn Fn() -> Option<Captured>);
}

/// The results.
pub(crate) struct Analysed {
    pub(crate) report: Report,
    pub(crate) findings: Option<Findings>,
    pub(super) timing: Timing,
    pub(crate) exit: Exit,
}

/// There is no other user elsewhere.
#[cfg(not(target_os = "linux"))]
pub(super) type User = std::convert::Infallible;

/// Opens an output as the user that the process becomes would: so it is that user's, may be opened again later, and a
/// link leads to no file of others. What the process was given open is opened as it was given.
pub(super) fn open(path: &Path, user: Option<&User>, how: How, interrupt: &Interrupt) -> Result<Output, String> {
    let open = || Output::open(path, how, interrupt);
    let user = user.filter(|_| !is_standard(path) && !is_descriptor(path));
    #[cfg(target_os = "linux")]
    if let Some(user) = user {
        let opened = user.act(open).map_err(|refusal| refusal.to_string())?;
        return opened.map_err(|error| format!("--user {user}: {error}"));
    }
    let _ = user;
    open().map_err(|error| error.to_string())
}

/// The output of events, and their kinds.
struct Eve {
    stream: Stream,
    events: Events,
    is_stdout: bool,
}

/// Whether each output may go where the options say.
pub(super) fn check(arguments: &MonitorArguments) -> Result<(), String> {
    let crate::args::Outputs { eve, timing, html, format, .. } = &arguments.outputs;
    let copy = &arguments.capture.write;
    for path in [eve, timing, html, copy].into_iter().flatten() {
        // An input that is not there yet, too: it would be when its turn comes.
        if arguments.files.iter().any(|file| !is_standard(file) && is_one_output(file, path)) {
            return Err(format!("{}: is an input and would be overwritten; choose another file", path.display()));
        }
    }
    for (one, other, both) in [
        (eve, timing, "the events and the timing"),
        (eve, copy, "the events and the packets"),
        (timing, copy, "the timing and the packets"),
        (html, eve, "the page and the events"),
        (html, timing, "the page and the timing"),
        (html, copy, "the page and the packets"),
    ] {
        if let (Some(one), Some(other)) = (one, other)
            && is_one_output(one, other)
        {
            return Err(format!("{}: cannot hold both {both}; choose two files", other.display()));
        }
    }
    match taken(arguments) {
        Some(taken) if *format == Format::Json => {
            Err(format!("{taken} and the JSON report cannot both go to the standard output; name a file"))
        }
        _ => Ok(()),
    }
}

/// What takes the report's place on the standard output.
fn taken(arguments: &MonitorArguments) -> Option<&'static str> {
    let is_standard = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| is_standard(path));
    if is_standard(&arguments.outputs.eve) {
        Some("--eve -: the events")
    } else if is_standard(&arguments.outputs.html) {
        Some("--html -: the page")
    } else {
        is_standard(&arguments.capture.write).then_some("--write -: the packets")
    }
}

impl Outputs {
    /// Opens the outputs, with the rights of the user that the process becomes, and empties none of them.
    pub(super) fn open(
        arguments: &MonitorArguments,
        user: Option<&User>,
        interrupt: &Interrupt,
    ) -> Result<Self, String> {
        let taken = taken(arguments).is_some();
        let is_live = arguments.capture.interface.is_some();
        // What a service writes survives its restart.
        let how = if is_live { How::Append } else { How::Replace };
        let create = |path: &Option<PathBuf>| path.as_ref().map(|path| open(path, user, how, interrupt)).transpose();
        let crate::args::Outputs { eve, timing, html, .. } = &arguments.outputs;
        let (eve, timing, html) = (create(eve)?, create(timing)?, create(html)?);
        let eve = eve.map(|output| Eve {
            is_stdout: output.is_stdout(),
            stream: if is_live { output.into_stream().enduring(Units::Lines) } else { output.into_stream() },
            events: arguments.events(),
        });
        Ok(Outputs {
            format: arguments.outputs.format,
            probes: arguments.outputs.probes,
            report: (!taken).then(Output::stdout),
            eve,
            timing,
            html: html.map(|output| (output, origin(arguments))),
            has_scans: false,
            publisher: None,
            service: None,
            screen: None,
            reopens: 0,
        })
    }

    /// A screen alone.
    #[cfg(feature = "top")]
    pub(crate) fn on_screen(screen: impl Screen + 'static) -> Self {
        Outputs {
            format: Format::Text,
            probes: true,
            report: None,
            eve: None,
            timing: None,
            html: None,
            has_scans: false,
            publisher: None,
            service: None,
            screen: Some(Box::new(screen)),
            reopens: 0,
        }
    }

    /// Empties the files that are written anew, once nothing can refuse the run any more.
    pub(super) fn begin(&self) -> Result<(), OutputError> {
        self.screen.iter().for_each(|screen| screen.begin());
        let eve = self.eve.iter().map(|eve| eve.stream.output());
        let html = self.html.iter().map(|(html, _)| html);
        eve.chain(&self.timing).chain(html).try_for_each(Output::begin)
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

    /// Writes what an analysis has found so far. What goes where the progress is shown is written by `beside`.
    pub(super) fn found(&mut self, found: &Found<'_>, progress: &Progress, mut beside: impl FnMut(&mut dyn FnMut())) {
        if let Some(screen) = &self.screen {
            return screen.found(found, &|| self.service.as_ref().map(|service| service.captured(&[])));
        }
        match found {
            Found::Lines(lines) => {
                if lines.is_empty() {
                    self.follow(progress);
                }
                self.events(lines, progress);
            }
            Found::Scan(scan) => {
                if let Some(eve) = self.eve.as_mut().filter(|eve| eve.events.has(Events::ALERT)) {
                    // Writes to the stream never fail: `finish` returns the error.
                    let _ = eve::write_scan(scan, &mut eve.stream);
                }
                if let Some(report) = self.report.as_ref().filter(|_| self.format == Format::Text) {
                    // If the report cannot be written, its end says so.
                    beside(&mut || drop(report.write(|out| writeln!(out, "{scan}"))));
                    self.has_scans = true;
                }
            }
            Found::Step { begun_ns, reports, through, is_last } => {
                if let Some(publisher) = &mut self.publisher {
                    publisher.step(*begun_ns, reports, through, *is_last, progress.is_stopped());
                }
            }
            Found::Snapshot(report, findings) => {
                let outputs = self.conditions();
                let mut own = None;
                if let Some(service) = &mut self.service {
                    let capture = Some(service.captured(&outputs));
                    let report = own.insert(Report { capture, ..(*report).clone() });
                    if !service.snapshot(report, findings, &outputs, progress.take_queue_fill()) {
                        return;
                    }
                }
                let report = own.as_ref().unwrap_or(report);
                if let Some(eve) = self.eve.as_mut().filter(|eve| eve.events.has(Events::STATS)) {
                    let _ = eve::write_stats(report, findings, &mut eve.stream);
                }
            }
        }
    }

    /// Opens the outputs again, and writes a first report, if that was asked for.
    fn follow(&mut self, progress: &Progress) {
        let Some(service) = &mut self.service else { return };
        service.alive();
        service.follow(progress.packets());
        let reopens = service.requests.reopens();
        if reopens != self.reopens {
            self.reopens = reopens;
            let eve = &mut self.eve;
            service.reload(|| eve.iter_mut().for_each(|eve| eve.stream.reopen()));
        }
    }

    /// The outputs that outlive errors, and how they are.
    pub(super) fn conditions(&self) -> Vec<(String, Condition)> {
        let events = self.eve.iter().map(|eve| ("events".to_owned(), eve.stream.condition()));
        events.chain(self.publisher.iter().map(|publisher| ("batches".to_owned(), publisher.condition()))).collect()
    }

    /// Writes all outputs. If one cannot be written the others still are.
    pub(super) fn write(&mut self, analysed: &Analysed) -> Exit {
        let Analysed { report, findings, timing, .. } = analysed;
        self.service.iter().for_each(Service::stopping);
        let written = |written: Result<Exit, OutputError>| {
            written.unwrap_or_else(|error| {
                complain(error);
                Exit::Partial
            })
        };
        let mut exit = Exit::Done;
        if let Some(output) = &self.report {
            exit = written(output.write(|out| {
                if self.has_scans {
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
        if let Some((left, end)) = self.publisher.take().and_then(Publisher::finish) {
            complain(left);
            exit = exit.and(end);
        }
        if let (Some((file, origin)), Some(findings)) = (&self.html, findings) {
            exit = exit.and(written(file.write(|out| findings.write_page(report, origin, out))));
        }
        exit
    }

    /// Writes a remark below the report, or beside it if the report is for machines.
    pub(super) fn remark(&self, what: &str) -> Exit {
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
            let mut report = Cow::Borrowed(report);
            // On an interface time passes though no packet came.
            if report.capture.is_some() && report.times.is_none() {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
                let now = u64::try_from(now).unwrap_or(u64::MAX);
                report.to_mut().times = Some((now, now));
            }
            let _ = eve::write_stats(&report, findings, &mut self.stream);
        }
        let dropped = self.stream.condition().dropped;
        let finished = self.stream.finish()?;
        if dropped > 0 {
            complain(format_args!("--eve: {dropped} events could not be written, as there was no room for them"));
        }
        Ok(finished)
    }
}

/// What a page is about.
fn origin(arguments: &MonitorArguments) -> Origin {
    let files = arguments.files.iter().map(|file| file.display().to_string()).collect();
    let Capture { filter, filter_program, .. } = &arguments.capture;
    let program = filter_program.as_ref().map(|path| ("--filter-program", path.display().to_string()));
    let filter = filter.clone().map(|expression| ("--filter", expression)).or(program);
    Origin { files, is_demo: arguments.demo, filter }
}
