//! Runs of the binary on a terminal.

use crate::support::{Folder, skipped};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A terminal of tmux, with a shell that runs one command and then says how it ended.
pub(crate) struct Terminal {
    folder: Folder,
}

impl Terminal {
    /// `corelane top` with these arguments; `None` where there is no tmux.
    pub(crate) fn top(size: (u16, u16), variables: &str, arguments: &str) -> Option<Self> {
        Self::start(size, &format!("{variables} '{}' top {arguments}", env!("CARGO_BIN_EXE_corelane")))
    }

    /// `None` where there is no tmux.
    pub(crate) fn start(size: (u16, u16), command: &str) -> Option<Self> {
        let terminal = Terminal { folder: Folder::new() };
        let command = format!(
            "cd '{}'; echo BEFORE; {command}; echo \"ENDED $?\"; stty -a | grep -o '.icanon'; sleep 600",
            terminal.folder.path("").display(),
        );
        let (width, height) = (size.0.to_string(), size.1.to_string());
        let started = terminal
            .tmux()
            .args(["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, &command])
            .output();
        let Ok(started) = started else {
            skipped("there is no tmux to make a terminal with");
            return None;
        };
        assert!(started.status.success(), "{started:?}");
        Some(terminal)
    }

    pub(crate) fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").env_remove("TMUX");
        command.arg("-S").arg(self.folder.path("tmux"));
        command
    }

    pub(crate) fn text(&self, options: &[&str]) -> String {
        let output = self.tmux().args(["capture-pane", "-p"]).args(options).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the screen is as it should be, and returns it. Two looks have to find the same: as tmux reads in
    /// pieces, one may find half of a drawing.
    #[track_caller]
    pub(crate) fn wait(&self, is_right: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        let mut before = String::new();
        loop {
            let text = self.text(&[]);
            if text == before && is_right(&text) {
                return text;
            }
            before.clone_from(&text);
            assert!(start.elapsed() < Duration::from_secs(120), "{text}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, parts: &[&str]) -> String {
        self.wait(|text| parts.iter().all(|part| text.contains(part)))
    }

    pub(crate) fn press(&self, keys: &[&str]) {
        assert!(self.tmux().arg("send-keys").args(keys).status().unwrap().success());
    }

    /// Waits until the program has ended with this code, and the terminal is as it was.
    #[track_caller]
    pub(crate) fn ended(&self, code: i32) -> String {
        let text = self.wait_for(&["ENDED", "icanon"]);
        assert!(text.contains("BEFORE") && text.contains(&format!("ENDED {code}\n icanon")), "{text}");
        text
    }

    pub(crate) fn program(&self) -> String {
        let panes = self.tmux().args(["list-panes", "-F", "#{pane_pid}"]).output().unwrap();
        let shell = String::from_utf8(panes.stdout).unwrap();
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        std::fs::read_to_string(children).unwrap().trim().to_owned()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").output();
    }
}

/// For a shell.
pub(crate) fn quoted(path: &std::path::Path) -> String {
    format!("'{}'", path.display())
}
