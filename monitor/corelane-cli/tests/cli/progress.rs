//! The progress bar, on a terminal.

use crate::support::{Folder, Pcap, syn};
use crate::terminal::{Terminal, quoted};

#[test]
fn several_files_say_which_of_them_is_read_and_how_much_was() {
    let folder = Folder::new();
    let capture = || Pcap::new(65535, 101).record(1_700_000_000, 40, &syn(80)).0;
    let (first, second) =
        (quoted(&folder.file("first.pcap", capture())), quoted(&folder.file("second.pcap", capture())));
    let program = env!("CARGO_BIN_EXE_corelane");
    // The second one comes through a pipe that stays open.
    let pipe = format!("mkfifo pipe; (cat {second}; sleep 600) > pipe & {program} monitor {first} pipe");
    let Some(terminal) = Terminal::start((100, 60), &pipe) else { return };
    terminal.wait_for(&["Analysing 2 of 2", "2   packets"]);
    terminal.press(&["C-c"]);
    terminal.wait_for(&["interrupted: the report has what was found so far", "ENDED 130"]);
}

/// An interface has no size, and what passes has.
#[test]
fn a_run_on_an_interface_shows_the_bytes_that_pass() {
    let send = "for i in 1 2 3 4 5 6 7 8 9 10; do printf %0980d 0 > /dev/udp/127.0.0.1/9; sleep 0.3; done";
    let run = format!("ip link set lo up && (sleep 1; {send}) & exec {} monitor -i lo", env!("CARGO_BIN_EXE_corelane"));
    let Some(terminal) = Terminal::start((100, 60), &format!("unshare --net bash -c '{run}'")) else { return };
    // Ten datagrams of 1,008 bytes, and as many messages that the port is closed.
    let text = terminal.wait(|text| text.contains("ENDED") || text.contains("20   packets"));
    if text.contains("unshare failed") {
        return crate::support::skipped("a network namespace cannot be made");
    }
    let line = text.lines().find(|line| line.contains("Analysing")).expect("the progress");
    let (read, _) = line.split_once("kB").unwrap_or_else(|| panic!("{line}"));
    let kilobytes: f64 = read.split_whitespace().next_back().unwrap().parse().unwrap();
    assert!((10.0..40.0).contains(&kilobytes), "{line}");
    terminal.press(&["C-c"]);
    terminal.ended(0);
}
