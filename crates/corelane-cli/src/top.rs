//! `corelane top`: what passes now, on a terminal. The same analysis as that of `corelane monitor`, with a screen for
//! its output.
//!
//! | file | what |
//! |---|---|
//! | `top/model.rs` | the facts of each step, added up |
//! | `top/draw.rs`, `top/text.rs`, `top/filter.rs` | the screen of a model; its texts; the filter |
//! | `top/screen.rs` | the terminal and the keys |
//! | `top/pace.rs` | captures played as they were recorded |

mod draw;
mod filter;
mod model;
mod pace;
mod screen;
mod text;

pub(crate) use pace::Replay;

use crate::args::TopArguments;
use crate::demo::Demo;
use crate::exit::{Exit, complain, divert, refused};
use crate::input::{Inputs, Watch};
use crate::interrupt::Interrupt;
use crate::monitor::{self, Analysed, Input, Outputs, Start};
use crate::progress::{Gauge, color};
use corelane_monitor::{Captured, Findings, Found, Report};
use model::{Model, State};
use pace::Pace;
use screen::{Shared, show};
use std::io::{self, IsTerminal};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The model of a screen, for the run that fills it.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    model: Shared,
    /// Told when the run has begun, or is over.
    told: Arc<Condvar>,
}

impl Screen {
    fn new(model: Model) -> Self {
        Screen { model: Arc::new(Mutex::new(model)), told: Arc::default() }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        self.model().set(state);
        self.told.notify_all();
    }

    /// The analysis begins: from here on there is something to show.
    pub(crate) fn begin(&self) {
        self.set(State::Running);
    }

    /// Takes what the analysis has found.
    pub(crate) fn found(&self, found: &Found<'_>, captured: impl FnOnce() -> Option<Captured>) {
        match found {
            Found::Lines(_) => {}
            Found::Scan(event) => self.model().scan(event),
            Found::Snapshot(report, findings) => self.step(report, Some(findings), captured().as_ref()),
        }
    }

    fn step(&self, report: &Report, findings: Option<&Findings>, captured: Option<&Captured>) {
        let facts = findings.and_then(|findings| findings.facts.as_deref());
        self.model().step(report, facts, captured);
    }
}

/// Runs the command.
pub(crate) fn run(arguments: TopArguments, interrupt: &Interrupt) -> Exit {
    if !io::stdout().is_terminal() {
        return refused("top needs a terminal to draw on; `corelane monitor` writes to files and pipes");
    }
    let model = Model::new(what(&arguments), arguments.interface.is_some());
    let is_played = arguments.interface.is_none() && arguments.speed.is_finite();
    let pace = is_played.then(|| Pace::new(arguments.speed));
    let monitor = arguments.monitor();
    let (task, start) = match monitor::prepare(&monitor).and_then(|task| Ok((task, Start::of(&monitor)?))) {
        Ok(prepared) => prepared,
        Err(refusal) => return refused(refusal),
    };
    let screen = Screen::new(model);
    let mut outputs = Outputs::on_screen(screen.clone());
    let watch = Watch { interrupt: interrupt.clone(), gauge: Arc::new(Gauge::default()) };
    let inputs = if monitor.demo {
        match Demo::make(&watch) {
            Ok(Some(demo)) => Ok(vec![Input::Files(Box::new(Inputs::of("demo", demo.reader, &watch)))]),
            Ok(None) => return interrupt.exit(),
            Err(error) => Err(format!("demo: {error}")),
        }
    } else {
        monitor::inputs(&monitor, start, &watch, &mut outputs)
    };
    let mut inputs = match inputs {
        Ok(inputs) => inputs,
        Err(refusal) => return refused(refusal),
    };
    if let Some(pace) = &pace {
        inputs =
            inputs.into_iter().map(|input| input.played(|files| Replay::new(files, pace.clone(), &watch))).collect();
    }
    let analyse = || {
        let analysed = monitor::analyse(inputs, task.task(), &mut outputs, &watch, true);
        let Some(Analysed { report, findings, exit, .. }) = analysed else {
            screen.set(State::Failed);
            return Exit::Failed;
        };
        screen.step(&report, findings.as_ref(), report.capture.as_ref());
        screen.set(State::Over);
        exit
    };
    let exit = thread::scope(|scope| {
        let analysis = thread::Builder::new().name("analysis".to_owned()).spawn_scoped(scope, analyse);
        let analysis = match analysis {
            Ok(analysis) => analysis,
            Err(error) => return refused(format_args!("no thread for the analysis: {error}")),
        };
        let shown = match has_begun(&screen) {
            true => {
                let said = divert({
                    let screen = screen.clone();
                    move |message| screen.model().message(message)
                });
                let shown = show(&screen.model, pace.as_ref(), interrupt, color(true));
                drop(said);
                shown
            }
            false => Ok(()),
        };
        interrupt.end();
        let exit = match analysis.join() {
            Ok(exit) => exit,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if let Err(error) = shown {
            return refused(format_args!("the terminal: {error}"));
        }
        // It was ended by the user, or it is over.
        if matches!(exit, Exit::Signal(_)) { Exit::Done } else { exit }
    });
    // What was said on the screen is gone with it.
    screen.model().messages.iter().for_each(complain);
    exit
}

/// Waits until there is something to show. Says whether there is.
fn has_begun(screen: &Screen) -> bool {
    // A pipe may take long to send its first byte: then that is shown.
    let patience = Duration::from_millis(300);
    let waits = |model: &mut Model| model.state == State::Opening;
    let waited = screen.told.wait_timeout_while(screen.model(), patience, waits);
    let (model, _) = waited.unwrap_or_else(PoisonError::into_inner);
    model.state != State::Failed
}

fn what(arguments: &TopArguments) -> String {
    match (&arguments.interface, &arguments.files[..]) {
        (Some(interface), _) => interface.clone(),
        (None, [file]) if file.as_os_str() == "-" => "standard input".to_owned(),
        (None, [file]) => file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        (None, []) => "--demo".to_owned(),
        (None, files) => format!("{} captures", files.len()),
    }
}
