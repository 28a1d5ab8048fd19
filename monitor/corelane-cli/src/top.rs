//! `corelane top`: what passes now, on a terminal. The same analysis as that of `corelane monitor`, with a screen for
//! its output.
//!
//! | file | what |
//! |---|---|
//! | `top/model.rs`, `top/model/site.rs` | the facts of each step, added up; those of many sensors |
//! | `top/draw.rs`, `top/draw/site.rs` | the screen of a model; what it shows of many sensors |
//! | `top/text.rs`, `top/filter.rs` | its texts; the filter |
//! | `top/screen.rs` | the terminal and the keys |
//! | `top/sensors.rs` | the run over many sensors, with `--from` |

mod draw;
mod filter;
mod model;
mod screen;
mod sensors;
mod text;

use crate::args::TopArguments;
use crate::demo::Demo;
use crate::exit::{Exit, complain, divert, refused};
use crate::input::{Inputs, Watch};
use crate::interrupt::Interrupt;
use crate::monitor::{self, Analysed, Input, Outputs, Screen, Start};
use crate::output::is_standard;
use crate::progress::{Gauge, color};
use crate::replay::{Pace, Replay};
use corelane_monitor::{Captured, Findings, Found, Report};
use model::{Model, State};
use screen::{Shared, show};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the analysis may take to end once the screen is closed.
const GRACE: Duration = Duration::from_secs(2);

/// The model of a screen, for the run that fills it.
#[derive(Clone, Debug)]
pub(crate) struct ModelScreen {
    model: Shared,
    /// Notified when the run has begun, or is over.
    changed: Arc<Condvar>,
}

impl ModelScreen {
    fn new(model: Model) -> Self {
        ModelScreen { model: Arc::new(Mutex::new(model)), changed: Arc::default() }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        self.model().set(state);
        self.changed.notify_all();
    }

    fn step(&self, report: &Report, findings: Option<&Findings>, captured: Option<&Captured>) {
        let facts = findings.and_then(|findings| findings.facts.as_deref());
        self.model().step(report, facts, captured);
    }
}

impl Screen for ModelScreen {
    fn begin(&self) {
        self.set(State::Running);
    }

    fn found(&self, found: &Found<'_>, captured: &dyn Fn() -> Option<Captured>) {
        match found {
            Found::Lines(_) | Found::Step { .. } => {}
            Found::Scan(event) => self.model().scan(event),
            Found::Snapshot(report, findings) => self.step(report, Some(findings), captured().as_ref()),
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: TopArguments, interrupt: &Interrupt) -> Exit {
    if !io::stdout().is_terminal() {
        return refused("top needs a terminal to draw on; `corelane monitor` writes to files and pipes");
    }
    // Once an interface is open no other terminal can be.
    if arguments.interface.is_some() && !io::stdin().is_terminal() {
        return refused("top -i needs a terminal for its keys, and the standard input is none");
    }
    if let Some(from) = &arguments.watching.from {
        return sensors::run(from, &arguments, interrupt);
    }
    let model = Model::new(what(&arguments), arguments.interface.is_some());
    let is_live = arguments.interface.is_some();
    let pace = speed(&arguments).filter(|speed| speed.is_finite()).map(Pace::new);
    let monitor = arguments.monitor();
    let (mut job, mut start) = match monitor::prepare(&monitor).and_then(|job| Ok((job, Start::of(&monitor)?))) {
        Ok(prepared) => prepared,
        Err(refusal) => return refused(refusal),
    };
    let screen = ModelScreen::new(model);
    let mut outputs = Outputs::on_screen(screen.clone());
    let watch = Watch { interrupt: interrupt.clone(), gauge: Arc::new(Gauge::default()) };
    let inputs = if monitor.demo {
        if let Err(refusal) = start.confine_files(&monitor) {
            return refused(refusal);
        }
        match Demo::make(&watch) {
            Ok(Some(demo)) => Ok(vec![Input::Files(Box::new(Inputs::of("demo", demo.reader, &watch)))]),
            Ok(None) => return interrupt.exit(),
            Err(error) => Err(format!("demo: {error}")),
        }
    } else {
        monitor::inputs(&monitor, start, job.settings.seed, &watch, &mut outputs)
    };
    let mut inputs = match inputs {
        Ok(inputs) => inputs,
        Err(refusal) => return refused(refusal),
    };
    if let Some(pace) = &pace {
        inputs =
            inputs.into_iter().map(|input| input.played(|files| Replay::new(files, pace.clone(), &watch))).collect();
    }
    on_screen(&screen, is_live, pace.as_ref(), interrupt, || {
        let Analysed { report, findings, exit, .. } = monitor::analyse(inputs, &mut job, &mut outputs, &watch, true)?;
        screen.step(&report, findings.as_ref(), report.capture.as_ref());
        Some(exit)
    })
}

/// Shows the screen while a thread fills its model: until that fails, which gives no exit, or the user or a signal ends
/// it.
fn on_screen(
    screen: &ModelScreen,
    is_live: bool,
    pace: Option<&Pace>,
    interrupt: &Interrupt,
    analyse: impl FnOnce() -> Option<Exit> + Send,
) -> Exit {
    let analyse = || {
        let _panic = OnPanic(screen);
        let exit = analyse();
        screen.set(if exit.is_some() { State::Over } else { State::Failed });
        exit.unwrap_or(Exit::Failed)
    };
    // From the first on, as the analysis may be ahead of the screen.
    let said = divert({
        let screen = screen.clone();
        move |message| screen.model().message(message)
    });
    let exit = thread::scope(|scope| {
        let analysis = thread::Builder::new().name("analysis".to_owned()).spawn_scoped(scope, analyse);
        let analysis = match analysis {
            Ok(analysis) => analysis,
            Err(error) => return refused(format_args!("no thread for the analysis: {error}")),
        };
        let _end = End(interrupt);
        let shown = match has_begun(screen, is_live, interrupt) {
            true => show(&screen.model, pace, interrupt, color(true)),
            false => Ok(()),
        };
        interrupt.end();
        let end = Instant::now() + GRACE;
        while !analysis.is_finished() {
            if Instant::now() > end {
                // It waits for a server, and there is nothing that it has to write.
                std::process::exit(0);
            }
            thread::sleep(GRACE / 200);
        }
        let exit = match analysis.join() {
            Ok(exit) => exit,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if let Err(error) = shown {
            return refused(format_args!("the terminal: {error}"));
        }
        exit
    });
    drop(said);
    // What was said on the screen is gone with it.
    screen.model().messages.iter().for_each(complain);
    exit
}

/// Ends the screen when the analysis panics.
struct OnPanic<'a>(&'a ModelScreen);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.set(State::Failed);
        }
    }
}

/// Ends the run when the screen ends, whatever ends it.
struct End<'a>(&'a Interrupt);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Waits until there is something to show. Says whether there is.
fn has_begun(screen: &ModelScreen, is_live: bool, interrupt: &Interrupt) -> bool {
    const LOOK: Duration = Duration::from_millis(100);
    let mut model = screen.model();
    // What sends the first byte through a pipe may have something to ask on this terminal.
    while model.state == State::Opening && !is_live && !interrupt.is_set() {
        (model, _) = screen.changed.wait_timeout(model, LOOK).unwrap_or_else(PoisonError::into_inner);
    }
    model.state != State::Failed && !interrupt.is_set()
}

/// How many times as fast as it was recorded the input is played. What comes through a pipe has its own pace.
fn speed(arguments: &TopArguments) -> Option<f64> {
    let is_file = |file: &PathBuf| !is_standard(file) && fs::metadata(file).map_or(true, |facts| facts.is_file());
    match arguments.speed {
        _ if arguments.interface.is_some() => None,
        None => arguments.files.iter().all(is_file).then_some(1.0),
        speed => speed,
    }
}

fn what(arguments: &TopArguments) -> String {
    match (&arguments.interface, &arguments.files[..]) {
        (Some(interface), _) => interface.clone(),
        (None, [file]) if is_standard(file) => "standard input".to_owned(),
        (None, [file]) => file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        (None, []) => "--demo".to_owned(),
        (None, files) => format!("{} captures", files.len()),
    }
}
