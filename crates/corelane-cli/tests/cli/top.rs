//! `corelane top` on a terminal: what it shows, what keys do, and how it leaves the terminal.

use crate::support::{Folder, Pcap, captures, corelane, run, skipped, syn};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A terminal of tmux, with a shell that runs one command and then says how it ended.
struct Terminal {
    folder: Folder,
}

impl Terminal {
    /// `None` where there is no tmux.
    fn start(size: (u16, u16), variables: &str, arguments: &str) -> Option<Self> {
        let terminal = Terminal { folder: Folder::new() };
        let command = format!(
            "cd '{}'; echo BEFORE; {variables} '{}' top {arguments}; echo \"ENDED $?\"; stty -a | grep -o '.icanon'; sleep 600",
            terminal.folder.path("").display(),
            env!("CARGO_BIN_EXE_corelane"),
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

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").env_remove("TMUX");
        command.arg("-S").arg(self.folder.path("tmux"));
        command
    }

    fn text(&self, options: &[&str]) -> String {
        let output = self.tmux().args(["capture-pane", "-p"]).args(options).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the screen is as it should be, and returns it.
    #[track_caller]
    fn wait(&self, is_right: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let text = self.text(&[]);
            if is_right(&text) {
                return text;
            }
            assert!(start.elapsed() < Duration::from_secs(120), "{text}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn wait_for(&self, parts: &[&str]) -> String {
        self.wait(|text| parts.iter().all(|part| text.contains(part)))
    }

    fn press(&self, keys: &[&str]) {
        assert!(self.tmux().arg("send-keys").args(keys).status().unwrap().success());
    }

    /// Waits until the program has ended with this code, and the terminal is as it was.
    #[track_caller]
    fn ended(&self, code: i32) -> String {
        let text = self.wait_for(&["ENDED", "icanon"]);
        assert!(text.contains("BEFORE") && text.contains(&format!("ENDED {code}\n icanon")), "{text}");
        text
    }

    fn program(&self) -> String {
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

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

/// What someone wants to know at a glance, in three sizes of a terminal.
#[test]
fn a_capture_is_understood_at_a_glance() {
    let Some(captures) = captures() else { return };
    let scan = quoted(&captures.join("scan-connect-retries.pcap"));
    let http = quoted(&captures.join("http-mixed.pcap"));
    for size in [(80, 24), (120, 40), (200, 60)] {
        let Some(terminal) = Terminal::start(size, "", &format!("--speed max {scan}")) else { return };
        let text = terminal.wait_for(&["end, ", "Alerts 1", "192.168.1.10 tried", "ports of 192.168.1.25", "open: "]);
        assert!(text.lines().next().unwrap().starts_with("corelane top scan-connect-retries.pcap"), "{text}");
        for title in ["Talkers", "Conversations", "Names"] {
            assert!(text.contains(title), "{title}: {text}");
        }
        terminal.press(&["q"]);
        terminal.ended(0);
        let terminal = Terminal::start(size, "", &format!("--speed max {http}")).unwrap();
        terminal.wait_for(&["end, ", "http"]);
    }
}

/// The picture in the documents; if this fails, `cargo xtask pictures` makes it anew.
#[test]
fn a_picture_of_today() {
    let Some(captures) = captures() else { return };
    let file = quoted(&captures.join("scan-network-sweep.pcap"));
    let Some(terminal) = Terminal::start((100, 30), "", &format!("--speed max {file}")) else { return };
    let text = terminal.wait_for(&["end, "]);
    let picture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/top.svg");
    let picture = std::fs::read_to_string(picture).unwrap();
    let lines = picture.lines().filter(|line| line.starts_with("<text")).map(|line| {
        // Without the tags.
        line.split('<').map(|piece| piece.split_once('>').map_or("", |(_, text)| text)).collect::<String>()
    });
    let drawn: Vec<_> = lines.map(|line| line.replace("&gt;", ">").trim_end().to_owned()).collect();
    assert_eq!(drawn, text.lines().map(str::trim_end).collect::<Vec<_>>());
}

#[test]
fn keys_choose_what_is_shown() {
    let Some(captures) = captures() else { return };
    let file = quoted(&captures.join("http-mixed.pcap"));
    let Some(terminal) = Terminal::start((100, 30), "", &format!("--speed max {file}")) else { return };
    terminal.wait_for(&["end, "]);
    terminal.press(&["?"]);
    terminal.wait_for(&["Keys and words"]);
    terminal.press(&["Escape"]);
    terminal.press(&["/"]);
    terminal.press(&["proto:nothing"]);
    terminal.wait_for(&["/proto:nothing", "none that the filter lets through"]);
    terminal.press(&["Escape"]);
    terminal.wait(|text| !text.contains("lets through"));
    terminal.press(&["2", "Down", "Enter"]);
    terminal.wait_for(&["received", "Conversations\n"]);
    terminal.press(&["Escape"]);
    terminal.press(&["s"]);
    terminal.wait_for(&["by bytes"]);
    terminal.press(&["Space"]);
    terminal.wait_for(&["PAUSED"]);
    // The window of a terminal may change at any time.
    assert!(terminal.tmux().args(["resize-window", "-x", "150", "-y", "45"]).status().unwrap().success());
    terminal.wait(|text| text.lines().any(|line| line.contains("Talkers") && line.contains("Alerts")));
    terminal.press(&["C-c"]);
    terminal.ended(0);
}

#[test]
fn a_replay_takes_its_time_and_keys_change_it() {
    let folder = Folder::new();
    let seconds = [0, 100, 10_000, 20_000].into_iter();
    let file = seconds.fold(Pcap::new(65535, 101), |file, second| file.record(1_700_000_000 + second, 40, &syn(80)));
    let file = quoted(&folder.file("slow.pcap", file.0));
    let Some(terminal) = Terminal::start((80, 24), "", &file) else { return };
    terminal.wait_for(&["in all 1 packets", "quiet for 9"]);
    terminal.press(&["n"]);
    terminal.wait_for(&["in all 2 packets", "quiet for 2 h"]);
    for _ in 0..20 {
        terminal.press(&[">"]);
    }
    terminal.wait_for(&["in all 4 packets", "end, "]);
    terminal.press(&["q"]);
    terminal.ended(0);
}

#[test]
fn signals_end_it_and_the_terminal_is_as_it_was() {
    let Some(captures) = captures() else { return };
    let file = quoted(&captures.join("http-mixed.pcap"));
    for signal in ["-TERM", "-INT"] {
        let Some(terminal) = Terminal::start((80, 24), "", &file) else { return };
        terminal.wait_for(&["packets/s", "in all"]);
        assert!(Command::new("kill").args([signal, &terminal.program()]).status().unwrap().success());
        terminal.ended(0);
    }
}

#[test]
fn what_is_wrong_is_said_on_the_screen_and_after_it() {
    let folder = Folder::new();
    let mut damaged = Pcap::new(65535, 101).record(1_700_000_000, 40, &syn(80)).0;
    damaged.extend([7; 9]);
    let file = quoted(&folder.file("damaged.pcap", damaged));
    let Some(terminal) = Terminal::start((120, 24), "", &format!("--speed max {file}")) else { return };
    terminal.wait_for(&["end, ", "damaged.pcap: "]);
    terminal.press(&["q"]);
    let text = terminal.ended(1);
    assert!(text.contains("corelane: ") && text.contains("damaged.pcap: "), "{text}");
    // Nothing is drawn where nothing can be read.
    let terminal = Terminal::start((120, 24), "", "nothing.pcap").unwrap();
    assert!(terminal.ended(2).contains("nothing.pcap: "));
}

/// A name in a DNS query is not a command to the terminal, and without colours there are none.
#[test]
fn hostile_names_are_text_and_colours_can_be_off() {
    let folder = Folder::new();
    let mut query =
        vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0, 53, 0, 0, 0, 0];
    query.extend(b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x0cx\x1b[2J\x1b]0;hi\x07\0\0\x01\0\x01");
    let length = query.len() as u16;
    query[2..4].copy_from_slice(&length.to_be_bytes());
    query[24..26].copy_from_slice(&(length - 20).to_be_bytes());
    let file = Pcap::new(65535, 101).record(1_700_000_000, query.len() as u32, &query).0;
    let file = quoted(&folder.file("name.pcap", file));
    for (variables, has_colors) in [("", true), ("NO_COLOR=1", false)] {
        let Some(terminal) = Terminal::start((120, 24), variables, &format!("--speed max {file}")) else { return };
        terminal.wait_for(&["end, ", "[2J"]);
        let text = terminal.text(&["-e"]);
        let colors = text.split("\x1b[").skip(1).filter_map(|piece| piece.split_once('m')).any(|(codes, _)| {
            codes
                .split(';')
                .any(|code| code.len() >= 2 && (code.starts_with('3') || code.starts_with('9')) && code != "39")
        });
        assert_eq!(colors, has_colors, "{text:?}");
    }
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    run(&mut corelane(["top", "--demo"])).code(2).one_line(&["top needs a terminal"]);
    run(&mut corelane(["top"])).code(2);
    run(&mut corelane(["top", "--speed", "0", "x.pcap"])).code(2);
    let help = run(&mut corelane(["top", "--help"])).code(0).silent().stdout;
    assert!(help.contains("corelane top capture.pcap") && help.contains("Keys:"), "{help}");
}
