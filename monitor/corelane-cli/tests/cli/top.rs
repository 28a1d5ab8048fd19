//! `corelane top` on a terminal: what it shows, what keys do, and how it leaves the terminal.

use crate::support::{Folder, Pcap, captures, corelane, run, syn};
use crate::terminal::{Terminal, quoted};
use std::path::Path;
use std::process::{Command, Stdio};

/// What someone wants to know at a glance, in three sizes of a terminal.
#[test]
fn a_capture_is_understood_at_a_glance() {
    let Some(captures) = captures() else { return };
    let scan = quoted(&captures.join("scan-connect-retries.pcap"));
    let http = quoted(&captures.join("http-mixed.pcap"));
    for size in [(80, 24), (120, 40), (200, 60)] {
        let Some(terminal) = Terminal::top(size, "", &format!("--speed max {scan}")) else { return };
        let scan = "192.168.1.10 scans 995 TCP ports of 192.168.1.25, open: 135, 139,";
        let text = terminal.wait_for(&["end, 2", "Alerts 1", scan, "none\n"]);
        let words = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("5000; until\u{a0}19:21:31"),
            "where its panel is narrow it goes on in the next line: {text}"
        );
        assert!(text.lines().next().unwrap().starts_with("corelane top scan-connect-retries.pcap"), "{text}");
        for title in ["Talkers", "Conversations", "Names"] {
            assert!(text.contains(title), "{title}: {text}");
        }
        terminal.press(&["q"]);
        terminal.ended(0);
        let terminal = Terminal::top(size, "", &format!("--speed max {http}")).unwrap();
        terminal.wait_for(&["end, 2", "27 by bytes", "80, www.ynet.co.il"]);
        terminal.press(&["/"]);
        terminal.press(&["proto:http"]);
        terminal.press(&["Enter", "4"]);
        terminal.wait_for(&["/proto:http", "http www.calcalist.co.il"]);
    }
}

/// Scans are those of `monitor`, each as large: what was tried again does not count, as far as that is known.
#[test]
fn alerts_are_those_of_the_monitor() {
    let Some(captures) = captures() else { return };
    for (name, alerts) in [("scan-connect-retries.pcap", 1), ("scan-network-sweep.pcap", 11)] {
        let file = captures.join(name);
        let scans = run(corelane(["monitor", "--eve", "-", "--eve-types", "alert"]).arg(&file)).code(0).stdout;
        let scans: Vec<_> =
            scans.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).collect();
        assert_eq!(scans.len(), alerts);
        let Some(terminal) = Terminal::top((129, 60), "", &format!("--speed max {}", quoted(&file))) else { return };
        terminal.press(&["1"]);
        let text = terminal.wait_for(&["end, 2", &format!("Alerts {alerts}")]);
        for scan in scans {
            let carrier = scan["proto"].as_str().unwrap();
            let (before, behind) = match scan["dest_ip"].as_str() {
                Some(target) => (String::new(), format!(" {carrier} ports of {target}")),
                None if scan["dest_port"].is_null() => (String::new(), " hosts by ping".to_owned()),
                None => (format!("{carrier} port {} of ", scan["dest_port"]), " hosts".to_owned()),
            };
            let before = format!(" {} scans {before}", scan["src_ip"].as_str().unwrap());
            let count = text.lines().find_map(|line| {
                let (count, rest) = line.split_once(&before)?.1.split_once(&behind)?;
                (!rest.starts_with(|next: char| next.is_ascii_digit())).then(|| count.replace(',', ""))
            });
            let expected = scan["scan"]["count"].as_u64().unwrap();
            let count = count.unwrap_or_else(|| panic!("{scan}: {text}"));
            match count.strip_suffix('+').map(|count| count.parse::<u64>().unwrap()) {
                None => assert_eq!(count, expected.to_string(), "{text}"),
                // Some of what was tried later was new.
                Some(least) => assert!(least <= expected && least + 2 >= expected, "{scan}: {text}"),
            }
        }
    }
}

/// The picture in the documents; if this fails, `cargo xtask pictures` makes it anew.
#[test]
fn a_picture_of_today() {
    let Some(captures) = captures() else { return };
    let file = quoted(&captures.join("scan-network-sweep.pcap"));
    let Some(terminal) = Terminal::top((100, 30), "", &format!("--speed max {file}")) else { return };
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
    let Some(terminal) = Terminal::top((100, 30), "", &format!("--speed max {file}")) else { return };
    terminal.wait_for(&["end, "]);
    terminal.press(&["?"]);
    terminal.wait_for(&["Keys and words"]);
    terminal.press(&["Escape"]);
    terminal.press(&["/"]);
    terminal.press(&["proto:nothing"]);
    terminal.wait_for(&["/proto:nothing", "none that the filter lets through", "in all, unfiltered: "]);
    terminal.press(&["Escape"]);
    terminal.wait(|text| !text.contains("lets through"));
    terminal.press(&["2", "Down", "Enter"]);
    terminal.wait_for(&["received", "conversations 132", "Reached\n"]);
    terminal.press(&["Escape"]);
    terminal.press(&["s"]);
    terminal.wait_for(&["Talkers 27 by conversations"]);
    terminal.press(&["Space"]);
    terminal.wait_for(&["PAUSED"]);
    // The window of a terminal may change at any time.
    assert!(terminal.tmux().args(["resize-window", "-x", "150", "-y", "45"]).status().unwrap().success());
    terminal.wait(|text| text.lines().any(|line| line.contains("Talkers") && line.contains("Alerts")));
    terminal.press(&["C-c"]);
    terminal.ended(0);
}

/// Two hosts asked for the same names; the filter is that of the page.
#[test]
fn a_host_has_its_own_requests_and_a_scan_what_it_found_open() {
    let Some(captures) = captures() else { return };
    let file = quoted(&captures.join("http-mixed.pcap"));
    for (host, count) in [("10.0.0.4", "1×"), ("10.0.0.6", "2×")] {
        let Some(terminal) = Terminal::top((100, 200), "", &format!("--speed max {file}")) else { return };
        terminal.wait_for(&["end, "]);
        terminal.press(&["/"]);
        terminal.press(&[&format!("ip:{host}")]);
        terminal.press(&["Enter", "2", "Enter"]);
        terminal.wait_for(&["Asked for", &format!("http www.calcalist.co.il, {count}\n")]);
    }
    let file = quoted(&captures.join("scan-network-sweep.pcap"));
    let terminal = Terminal::top((129, 30), "", &format!("--speed max {file}")).unwrap();
    terminal.wait_for(&["end, ", "1 Alerts 11", "2 Talkers", "columns: the last "]);
    terminal.press(&["/"]);
    terminal.press(&["port:443"]);
    let text = terminal.wait_for(&["1 Alerts 3"]);
    assert_eq!(text.lines().filter(|line| line.contains(" scans ") && line.contains("443")).count(), 3, "{text}");
}

#[test]
fn a_replay_takes_its_time_and_keys_change_it() {
    let folder = Folder::new();
    let seconds = [0, 100, 10_000, 20_000].into_iter();
    let file = seconds.fold(Pcap::new(65535, 101), |file, second| file.record(1_700_000_000 + second, 40, &syn(80)));
    let file = quoted(&folder.file("slow.pcap", file.0));
    let Some(terminal) = Terminal::top((80, 24), "", &file) else { return };
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
    for signal in ["-TERM", "-INT", "-HUP", "-QUIT"] {
        let Some(terminal) = Terminal::top((80, 24), "", &file) else { return };
        terminal.wait_for(&["packets/s", "in all"]);
        let program = terminal.program();
        // Twice, as one who does not wait.
        for _ in 0..2 {
            let _ = Command::new("kill").args([signal, &program]).stderr(Stdio::null()).status().unwrap();
        }
        terminal.ended(0);
    }
}

#[test]
fn what_is_wrong_is_said_on_the_screen_and_after_it() {
    let folder = Folder::new();
    let mut damaged = Pcap::new(65535, 101).record(1_700_000_000, 40, &syn(80)).0;
    damaged.extend([7; 9]);
    let file = quoted(&folder.file("damaged.pcap", damaged));
    let Some(terminal) = Terminal::top((120, 24), "", &format!("--speed max {file}")) else { return };
    terminal.wait_for(&["end, ", "damaged.pcap: "]);
    terminal.press(&["q"]);
    let text = terminal.ended(1);
    assert!(text.contains("corelane: ") && text.contains("damaged.pcap: "), "{text}");
    // Nothing is drawn where nothing can be read.
    let terminal = Terminal::top((120, 24), "", "nothing.pcap").unwrap();
    assert!(terminal.ended(2).contains("nothing.pcap: "));
}

/// What sends a capture may have to ask for something first, on the same terminal.
#[test]
fn a_pipe_has_the_terminal_until_its_first_byte() {
    let folder = Folder::new();
    let file = quoted(&folder.file("one.pcap", Pcap::new(65535, 101).record(1_700_000_000, 40, &syn(80)).0));
    let program = env!("CARGO_BIN_EXE_corelane");
    let ask = format!("bash -c 'read -r word </dev/tty; echo \"got $word\" >&2; cat {}'", file.trim_matches('\''));
    let Some(terminal) = Terminal::start((80, 24), &format!("{ask} | {program} top -")) else { return };
    terminal.wait_for(&["BEFORE"]);
    terminal.press(&["secret", "Enter"]);
    terminal.wait_for(&["corelane top standard input", "in all 1 packets", "end, 2023-11-14"]);
    terminal.press(&["q"]);
    assert!(terminal.ended(0).contains("got secret"));
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
        let Some(terminal) = Terminal::top((120, 24), variables, &format!("--speed max {file}")) else { return };
        terminal.wait_for(&["end, ", "[2j"]);
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
    for other in [
        &["x.pcap"][..],
        &["--demo"],
        &["-i", "eth0"],
        &["--speed", "2"],
        &["--filter-program", "x"],
        &["--analyzers", "1"],
        &["--syn-timeout", "1"],
        &["--tunnels"],
        &["--ignore-source", "10.0.0.1"],
        &["--ignore-target", "10.0.0.1"],
    ] {
        let refused = run(corelane(["top", "--from", "file:x"]).args(other)).code(2);
        assert!(refused.stderr.contains("cannot be used with"), "{other:?}: {}", refused.stderr);
    }
    run(&mut corelane(["top", "--sensor-timeout", "1s", "x.pcap"])).code(2);
    let help = run(&mut corelane(["top", "--help"])).code(0).silent().stdout;
    assert!(help.contains("corelane top capture.pcap") && help.contains("Keys:"), "{help}");
}

/// Sensors over a folder, which are told and stay as they are.
#[test]
fn many_sensors_are_shown_with_their_scans() {
    let folder = Folder::new();
    let capture = folder.path("made.pcap");
    let planted = ["-n", "20k", "--vertical-scans", "3", "--horizontal-scans", "2", "--quiet"];
    run(corelane(["gen"]).arg(&capture).args(planted)).code(0);
    let place = format!("file:{}", folder.path("logs").display());
    for name in ["north", "south"] {
        let monitor = ["monitor", "--quiet", "--continuous", "--publish", &place, "--sensor", name];
        run(corelane(monitor).arg(&capture)).code(0);
    }
    let arguments = format!("--sensor-timeout 1s --from {}", quoted(Path::new(&place)));
    for size in [(80, 24), (140, 40)] {
        let Some(terminal) = Terminal::top(size, "", &arguments) else { return };
        let text = terminal.wait_for(&["1 Alerts 5", "2 sensors, ", "2 Sensors 2", "3 Sources", " seen by"]);
        assert!(text.starts_with("corelane top file:"), "{text}");
        for name in ["north", "south"] {
            assert!(text.lines().any(|line| line.starts_with(name) && line.contains(" ended ")), "{text}");
        }
        terminal.press(&["3", "Enter"]);
        terminal.wait_for(&["seen by       north, south"]);
        terminal.press(&["q"]);
        terminal.ended(0);
    }
}

#[test]
fn a_place_that_is_not_there_is_refused_and_a_server_is_waited_for() {
    for (place, why) in [
        ("file:nothing", "--from file:nothing: there is no such folder"),
        ("ftp://hub", "--from: it has to begin with file:"),
        ("nats://me:secret@hub:4222", "--from: a command line is no place for a password"),
    ] {
        let Some(terminal) = Terminal::top((100, 24), "", &format!("--from {place}")) else { return };
        let text = terminal.ended(2);
        assert!(text.contains(&format!("corelane: {why}")) && !text.contains("secret"), "{text}");
    }
    // Nothing listens at the port of the discard service.
    let terminal = Terminal::top((100, 24), "", "--from nats://127.0.0.1:9").unwrap();
    terminal.wait_for(&["opening", "nats://127.0.0.1:9 is not connected: "]);
    terminal.press(&["q"]);
    terminal.ended(0);
}
