//! The side that says what is played. It starts the other one when it is first needed.

use super::{Order, Played};
use crate::contenders::Unable;
use crate::measure::Failure;
use crate::rig::Stop;
use std::cell::{OnceCell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

pub(super) const ONLY_LINUX: &str = "needs Linux: only there are interfaces captured from";
/// What the other side says when it may be told what to play.
pub(super) const READY: &str = "ready";
/// What lasts so much longer than it should hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The process in namespaces of its own, for all contenders.
#[derive(Debug, Default)]
pub(crate) struct Host(OnceCell<Result<RefCell<Guest>, Unable>>);

#[derive(Debug)]
struct Guest {
    child: Child,
    /// `None` once it is to end.
    orders: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Host {
    /// Plays an order, in the same process as all others. It is quick if the first one is.
    pub(crate) fn play(&self, order: &Order, quick: bool) -> Result<Played, Failure> {
        let guest = self.0.get_or_init(|| Guest::start(quick).map(RefCell::new).map_err(Unable::because));
        let guest = guest.as_ref().map_err(|unable| Failure::from(unable.clone()))?;
        guest.borrow_mut().play(order)
    }
}

impl Guest {
    fn start(quick: bool) -> Result<Self, String> {
        if !cfg!(target_os = "linux") {
            return Err(ONLY_LINUX.to_owned());
        }
        let refuse = |why: String| format!("needs root, network namespaces and the programs unshare and ip: {why}");
        // Tried first, as the message of `ip` says best what is missing.
        let tried = in_namespaces(&["ip", "link", "add", "type", "veth"]).stdin(Stdio::null()).output();
        let tried = tried.map_err(|error| refuse(format!("unshare: {error}")))?;
        if !tried.status.success() {
            let error = String::from_utf8_lossy(&tried.stderr);
            return Err(refuse(error.lines().collect::<Vec<_>>().join("; ")));
        }
        let program = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
        let program = program.to_str().ok_or("this program's path is not UTF-8")?;
        let mut words = vec![program, "live-guest"];
        words.extend(quick.then_some("--quick"));
        let mut child = in_namespaces(&words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| refuse(format!("unshare: {error}")))?;
        let orders = child.stdin.take();
        let out = child.stdout.take().ok_or("it has no output")?;
        let (tx, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if tx.send(line).is_err() {
                    break;
                }
            }
        });
        let mut guest = Guest { child, orders, lines };
        match guest.line(PATIENCE) {
            Ok(line) if line == READY => Ok(guest),
            Ok(line) => Err(format!("the process in the namespaces said: {line}")),
            Err(failure) => Err(failure.to_string()),
        }
    }

    /// The next line, which may take as long as this.
    fn line(&mut self, patience: Duration) -> Result<String, Failure> {
        self.lines.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                self.orders = None;
                let _ = self.child.kill();
                Stop::Hangs(patience).into()
            }
            RecvTimeoutError::Disconnected => Self::ended(),
        })
    }

    fn ended() -> Failure {
        Unable::because("the process in the namespaces has ended; see what it says on the standard error").into()
    }

    fn play(&mut self, order: &Order) -> Result<Played, Failure> {
        let unreadable = |error: serde_json::Error| Failure::from(Unable::because(format!("not understood: {error}")));
        let order_line = serde_json::to_string(order).map_err(unreadable)? + "\n";
        let orders = self.orders.as_mut().ok_or_else(Self::ended)?;
        orders.write_all(order_line.as_bytes()).and_then(|()| orders.flush()).map_err(|_| Self::ended())?;
        let line = self.line(PATIENCE + order.warm + order.window)?;
        let played: Result<Played, String> = serde_json::from_str(&line).map_err(unreadable)?;
        played.map_err(|error| Unable::because(error).into())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // The end of its input is the end of it.
        self.orders = None;
        let _ = self.child.wait();
    }
}

/// A program with namespaces for interfaces and mounts of its own. `/sys` shows the interfaces of the namespace in
/// which it was mounted.
fn in_namespaces(words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", "mount -t sysfs sysfs /sys && exec \"$@\"", "sh"]).args(words);
    command
}
