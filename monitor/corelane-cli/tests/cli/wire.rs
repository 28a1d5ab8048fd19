//! Ends of runs on an interface: the loopback interface of a network namespace that ends with the run.

use crate::support::{Folder, corelane, finish, skipped};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Starts a run on `lo`, and waits until it captures; `None` after saying that the test is skipped.
fn start(options: &[&str], folder: &Path) -> Option<Child> {
    let is_root = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    if !is_root.is_ok_and(|status| status.success()) {
        skipped("a network namespace cannot be made");
        return None;
    }
    let run = corelane(["monitor", "-i", "lo"].iter().chain(options));
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""]);
    command.arg(run.get_program()).args(run.get_args()).current_dir(folder);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("it has started before");
    let mut line = Vec::new();
    // Byte by byte, so that what follows is still there for `finish`.
    let stderr = child.stderr.as_mut().expect("piped");
    BufReader::with_capacity(1, stderr).read_until(b'\n', &mut line).expect("readable");
    let line = String::from_utf8_lossy(&line);
    assert!(line.contains("capturing from lo"), "{line}");
    Some(child)
}

/// Runs a shell script in the network namespace of a run.
fn within(child: &Child, script: &str) -> bool {
    let mut command = Command::new("nsenter");
    command.arg("--net").arg("--target").arg(child.id().to_string()).args(["sh", "-c", script]);
    command.status().expect("nsenter is where unshare is").success()
}

/// Packets to a port without a listener.
const SEND: &str = "for i in 1 2 3 4 5; do echo x > /dev/udp/127.0.0.1/9; done";

fn send(child: &Child) {
    assert!(within(child, &format!("exec bash -c '{SEND}'")));
}

fn terminate(child: &Child) {
    assert!(Command::new("kill").arg(child.id().to_string()).status().expect("kill is there").success());
}

#[test]
fn a_run_ends_even_if_the_kernel_refuses_to_end_the_capture() {
    let folder = Folder::new();
    let Some(child) = start(&["--eve", "eve.json"], &folder.path("")) else { return };
    // Without this memory no program can be attached to a socket, not even one that lets nothing through.
    if within(&child, "echo 0 > /proc/sys/net/core/optmem_max") {
        terminate(&child);
        let outcome = finish(child).code(0);
        assert!(outcome.stderr.contains("SO_ATTACH_FILTER"), "{outcome:?}");
        assert!(outcome.stderr.contains("the run ends anyway, without 0 packets in the ring"), "{outcome:?}");
        assert!(outcome.stdout.contains("Scans\n"), "{outcome:?}");
    } else {
        terminate(&child);
        finish(child).code(0);
        skipped("this kernel has one limit for all network namespaces");
    }
}

/// The last block is what a replay takes for the end.
#[test]
fn a_run_whose_reader_has_gone_ends_its_copy() {
    let folder = Folder::new();
    let options = ["--eve", "-", "--stats-interval", "1", "--write", "copy.pcapng"];
    let Some(mut child) = start(&options, &folder.path("")) else { return };
    let mut first = [0];
    send(&child);
    child.stdout.take().expect("piped").read_exact(&mut first).expect("an event");
    // Later events find no reader.
    while child.try_wait().expect("a child").is_none() {
        // It may end in between, and its network with it.
        let _ = within(&child, &format!("exec bash -c '{SEND}'"));
    }
    finish(child).code(0);
    let copy = std::fs::read(folder.path("copy.pcapng")).unwrap();
    let mut kinds = Vec::new();
    let mut rest = &copy[..];
    while let [a, b, c, d, e, f, g, h, ..] = *rest {
        kinds.push(u32::from_le_bytes([a, b, c, d]));
        rest = &rest[u32::from_le_bytes([e, f, g, h]) as usize..];
    }
    let (statistics, packet) = (5, 6);
    assert!(kinds.contains(&packet), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&statistics), "{kinds:?}");
}
