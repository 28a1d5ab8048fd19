//! The terminal: taken while the screen is shown, given back whatever ends it; keys to changes of the view.

use super::draw::{View, draw};
use super::filter::Filter;
use super::model::{Model, State};
use crate::interrupt::Interrupt;
use crate::replay::Pace;
#[cfg(target_os = "linux")]
use nix::sys::signal::{Signal, kill};
#[cfg(target_os = "linux")]
use nix::unistd::Pid;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::crossterm::{cursor, execute};
use std::io::{self, BufWriter, Stdout, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

/// The longest time between two looks at the model and at signals.
const LOOK: Duration = Duration::from_millis(200);

/// How long the terminal may take to be given back after a signal.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether the terminal is the screen's. A panic gives it back before its message comes.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while the screen has it.
struct Taken(Terminal<CrosstermBackend<BufWriter<Stdout>>>);

impl Taken {
    fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        begin().and_then(|()| Terminal::new(CrosstermBackend::new(out))).map(Taken).inspect_err(|_| give_back())
    }

    /// Stops the process as Ctrl-Z does elsewhere, and goes on when it is continued.
    #[cfg(unix)]
    fn suspend(&mut self) -> io::Result<()> {
        give_back();
        // All of a pipeline, or its shell would wait for the others.
        #[cfg(target_os = "linux")]
        let stopped = kill(Pid::from_raw(0), Signal::SIGTSTP).is_ok();
        #[cfg(not(target_os = "linux"))]
        let stopped = false;
        if !stopped {
            signal_hook::low_level::raise(signal_hook::consts::SIGTSTP)?;
        }
        begin()?;
        self.0.clear()
    }
}

fn begin() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Makes the terminal as it was, if it is not yet.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs nothing.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

/// The model, for the run and for the screen.
pub(crate) type Shared = Arc<Mutex<Model>>;

/// Shows the model until the user or a signal ends that, or the run has failed.
///
/// # Errors
///
/// Those of the terminal.
pub(super) fn show(shared: &Shared, pace: Option<&Pace>, interrupt: &Interrupt, color: bool) -> io::Result<()> {
    let mut terminal = Taken::take()?;
    insist(interrupt);
    let mut screen = Screen { view: View::of(&lock(shared), color), pace, frozen: None };
    let mut drawn = None;
    // A panic elsewhere has given the terminal back.
    while !interrupt.is_set() && TAKEN.load(Ordering::SeqCst) {
        screen.view.replay = pace.map(Pace::state);
        // The clock of a replay that waits moves though nothing comes.
        let second = screen.view.replay.and_then(|(_, at, _)| at).map(|at| at / 1_000_000_000);
        let (version, state) = {
            let model = lock(shared);
            (model.version, model.state)
        };
        if state == State::Failed {
            return Ok(());
        }
        let now = (version, second);
        if drawn.is_none_or(|drawn| drawn != now && screen.frozen.is_none()) {
            drawn = Some(now);
            // The model is drawn into memory under its lock, and what has changed is written without it.
            terminal.0.draw(|frame| {
                let model = lock(shared);
                let Screen { view, frozen, .. } = &mut screen;
                let shown = frozen.as_deref().unwrap_or(&model);
                if let Some(cursor) = draw(frame.area(), frame.buffer_mut(), shown, view) {
                    frame.set_cursor_position(cursor);
                }
            })?;
        }
        let mut patience = LOOK;
        // All keys at hand at once: a key that is held must not queue up drawings.
        while event::poll(patience)? {
            patience = Duration::ZERO;
            drawn = None;
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match screen.key(key, shared) {
                Then::GoOn => {}
                Then::End => return Ok(()),
                #[cfg(unix)]
                Then::Stop => terminal.suspend()?,
                #[cfg(not(unix))]
                Then::Stop => {}
                Then::Redraw => terminal.0.clear()?,
            }
        }
    }
    Ok(())
}

/// Ends the process some time after a signal, if the terminal takes nothing more: writing to it may wait for ever.
fn insist(interrupt: &Interrupt) {
    let interrupt = interrupt.clone();
    let watch = move || {
        while !interrupt.is_set() {
            if !TAKEN.load(Ordering::SeqCst) {
                return;
            }
            thread::sleep(LOOK);
        }
        thread::sleep(PATIENCE);
        if TAKEN.load(Ordering::SeqCst) {
            let _ = disable_raw_mode();
            std::process::exit(1);
        }
    };
    // Without it a terminal like that holds the process up.
    let _ = thread::Builder::new().name("end".to_owned()).spawn(watch);
}

fn lock(shared: &Shared) -> MutexGuard<'_, Model> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a key leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    End,
    Stop,
    Redraw,
}

/// What one looks at, and what the keys change.
struct Screen<'a> {
    view: View,
    pace: Option<&'a Pace>,
    /// The model as it was when the screen was stopped.
    frozen: Option<Box<Model>>,
}

impl Screen<'_> {
    fn key(&mut self, key: KeyEvent, shared: &Shared) -> Then {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Then::End,
                KeyCode::Char('z') => Then::Stop,
                KeyCode::Char('l') => Then::Redraw,
                _ => Then::GoOn,
            };
        }
        if key.modifiers.contains(KeyModifiers::ALT) && key.code != KeyCode::Esc {
            // A terminal sends the same for Escape and this key, one right after the other.
            self.key(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE), shared);
        }
        if self.view.writes.is_some() {
            self.write(key.code);
            return Then::GoOn;
        }
        let view = &mut self.view;
        match key.code {
            KeyCode::Char('q') => return Then::End,
            KeyCode::Char('?') => view.helps = !view.helps,
            KeyCode::Char('/') => (view.writes, view.filter) = (Some(String::new()), Filter::default()),
            KeyCode::Char(' ' | 'p') => self.pause(shared),
            KeyCode::Char('<') => self.pace.iter().for_each(|pace| pace.multiply(0.5)),
            KeyCode::Char('>') => self.pace.iter().for_each(|pace| pace.multiply(2.0)),
            KeyCode::Char('n') => self.pace.iter().for_each(|pace| pace.skip()),
            KeyCode::Esc if view.helps => view.helps = false,
            KeyCode::Esc if view.host.is_some() => view.host = None,
            KeyCode::Esc => view.filter = Filter::default(),
            KeyCode::Tab => view.turn(1),
            KeyCode::BackTab => view.turn(view.panels.len() - 1),
            KeyCode::Char(digit @ '1'..='9') => {
                if let Some(&panel) = view.panels.get(digit as usize - '1' as usize) {
                    view.focus = panel;
                }
            }
            KeyCode::Char('s') => {
                self.with_model(shared, |view, model| view.reorder(model));
            }
            KeyCode::Up | KeyCode::Char('k') => self.go(-1, shared),
            KeyCode::Down | KeyCode::Char('j') => self.go(1, shared),
            KeyCode::PageUp => self.go(-(self.view.page.max(1) as isize), shared),
            KeyCode::PageDown => self.go(self.view.page.max(1) as isize, shared),
            KeyCode::Home => self.go(isize::MIN, shared),
            KeyCode::End => self.go(isize::MAX, shared),
            KeyCode::Enter if view.host.is_none() => {
                self.with_model(shared, |view, model| {
                    let host = view.row(model).and_then(|row| row.host(model));
                    (view.host, view.scrolled) = (host, 0);
                });
            }
            _ => {}
        }
        Then::GoOn
    }

    /// A key while the filter is being written. What is written counts at once.
    fn write(&mut self, key: KeyCode) {
        let view = &mut self.view;
        let Some(text) = &mut view.writes else { return };
        match key {
            KeyCode::Char(letter) => text.push(letter),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Esc => text.clear(),
            _ => {}
        }
        view.filter = Filter::of(text);
        if matches!(key, KeyCode::Enter | KeyCode::Esc) {
            view.writes = None;
        }
    }

    fn go(&mut self, by: isize, shared: &Shared) {
        if self.view.host.is_some() {
            let by = by.clamp(-30_000, 30_000) as i16;
            self.view.scrolled = self.view.scrolled.saturating_add_signed(by);
            return;
        }
        self.with_model(shared, |view, model| view.go(by, model));
    }

    fn pause(&mut self, shared: &Shared) {
        self.frozen = match self.frozen {
            None => Some(Box::new(lock(shared).clone())),
            Some(_) => None,
        };
        self.view.is_paused = self.frozen.is_some();
        self.pace.iter().for_each(|pace| pace.pause(self.frozen.is_some()));
    }

    /// Does something with the model that is shown.
    fn with_model<R>(&mut self, shared: &Shared, act: impl FnOnce(&mut View, &Model) -> R) -> R {
        match &self.frozen {
            Some(frozen) => act(&mut self.view, frozen),
            None => act(&mut self.view, &lock(shared)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::Panel;
    use super::*;
    use corelane_monitor::Report;

    fn press(screen: &mut Screen<'_>, shared: &Shared, keys: &str) -> Then {
        let mut then = Then::GoOn;
        for key in keys.chars() {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\u{1b}' => KeyCode::Esc,
                '\u{8}' => KeyCode::Backspace,
                '\t' => KeyCode::Tab,
                key => KeyCode::Char(key),
            };
            then = screen.key(KeyEvent::new(code, KeyModifiers::NONE), shared);
        }
        then
    }

    #[test]
    fn keys_change_the_view() {
        let shared = Shared::default();
        let mut screen = Screen { view: View::new(false), pace: None, frozen: None };
        press(&mut screen, &shared, "/porx\u{8}t:4");
        assert_eq!((screen.view.filter.text(), screen.view.writes.as_deref()), ("port:4", Some("port:4")));
        // While it is written, keys are letters.
        assert_eq!(press(&mut screen, &shared, "q"), Then::GoOn);
        press(&mut screen, &shared, "\u{8}\n");
        assert_eq!((screen.view.filter.text(), screen.view.writes.as_deref()), ("port:4", None));
        press(&mut screen, &shared, "?");
        assert!(screen.view.helps);
        press(&mut screen, &shared, "\u{1b}");
        assert!(!screen.view.helps && !screen.view.filter.is_empty(), "one at a time");
        press(&mut screen, &shared, "\u{1b}");
        assert!(screen.view.filter.is_empty());
        assert_eq!(screen.view.focus, Panel::Alerts);
        press(&mut screen, &shared, "\t\t\t");
        assert_eq!(screen.view.focus, Panel::Names);
        press(&mut screen, &shared, "/port:5\n");
        assert_eq!(screen.view.filter.text(), "port:5", "a filter begins anew");
        press(&mut screen, &shared, "\u{1b}");
        press(&mut screen, &shared, "3ss");
        assert_eq!(
            (screen.view.focus, screen.view.orders),
            (Panel::Conversations, [None, None, Some(2), None, None, None])
        );
        assert_eq!(press(&mut screen, &shared, "q"), Then::End);
        let control = |key| KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
        assert_eq!(screen.key(control('c'), &shared), Then::End);
        assert_eq!(screen.key(control('z'), &shared), Then::Stop);
        assert_eq!(screen.key(control('l'), &shared), Then::Redraw);
        // Escape and `?`.
        screen.view.host = Some([10, 0, 0, 1].into());
        screen.key(KeyEvent::new(KeyCode::Char('?'), KeyModifiers::ALT), &shared);
        assert!(screen.view.helps && screen.view.host.is_none());
    }

    #[test]
    fn a_screen_that_is_stopped_stays_as_it_is_while_the_run_goes_on() {
        let shared = Shared::default();
        let pace = Pace::new(1.0);
        let mut screen = Screen { view: View::new(false), pace: Some(&pace), frozen: None };
        press(&mut screen, &shared, " ");
        let mut report = Report::default();
        (report.packets, report.times) = (5, Some((0, 0)));
        lock(&shared).step(&report, None, None);
        assert_eq!(screen.with_model(&shared, |_, model| model.wire.total.packets), 0);
        press(&mut screen, &shared, " ");
        assert_eq!(screen.with_model(&shared, |_, model| model.wire.total.packets), 5);
        press(&mut screen, &shared, ">>");
        assert!((pace.state().0 - 4.0).abs() < 1e-9);
    }

    /// Not a test by itself: it is run on a terminal by the one below.
    #[test]
    #[ignore = "the other one runs it"]
    fn panics_while_the_screen_is_shown() {
        let shared = Shared::default();
        lock(&shared).what = "breaks-soon".to_owned();
        let breaks = std::thread::spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            panic!("broken on purpose");
        });
        show(&shared, None, &Interrupt::default(), true).unwrap();
        assert!(breaks.join().is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_panic_gives_the_terminal_back_before_its_message() {
        use std::process::{Command, Stdio};
        let program = std::env::current_exe().unwrap();
        let name = "top::screen::tests::panics_while_the_screen_is_shown";
        let run = format!(
            "stty rows 24 columns 80; stty -a; {} --ignored --exact {name} --nocapture; stty -a",
            program.display()
        );
        // A terminal of its own; what is written to it comes out of the program.
        let output = Command::new("script")
            .args(["--quiet", "--return", "--command", &run, "/dev/null"])
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null())
            .output();
        let Ok(output) = output else {
            use std::io::Write;
            let _ = writeln!(io::stderr(), "SKIPPED: there is no `script` to make a terminal with");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let [shown, left, said] = ["breaks-soon", "\u{1b}[?1049l", "broken on purpose"].map(|part| text.find(part));
        assert!(shown.is_some() && shown < left && left < said, "{shown:?} {left:?} {said:?} {text}");
        let modes: Vec<_> = text.lines().filter(|line| line.contains("icanon")).map(str::trim).collect();
        assert!(modes.len() == 2 && modes[0] == modes[1] && !modes[0].contains("-icanon"), "{modes:?} {text}");
    }
}
