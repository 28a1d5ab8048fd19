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
