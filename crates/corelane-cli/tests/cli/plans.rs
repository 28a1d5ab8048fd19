//! The report does not depend on how the work is spread. A few plans through the binary; `corelane-monitor` tests all.

use crate::support::{Folder, captures, corelane, generated, monitor, run};
use std::path::Path;

fn check(file: &Path) {
    let alone = monitor(&[file], &["--analyzers", "0"]).code(0).stdout;
    for (analyzers, queue, capacity, more) in [
        ("1", "lane", "2", &[][..]),
        ("2", "bqueue", "64", &["--queue-batch", "16"]),
        ("3", "mcring", "2048", &["--queue-batch", "50"]),
        ("7", "lamport", "2", &["--preload"]),
        ("2", "locked", "64", &["--mmap"]),
        ("1", "fastforward", "100", &[]),
        ("4", "multiline", "2000", &["--preload"]),
        ("16", "lane", "2048", &["--cpus", "0"]),
        ("256", "bqueue", "2", &[]),
    ] {
        let options = ["--analyzers", analyzers, "--queue", queue, "--queue-capacity", capacity];
        let document = monitor(&[file], &[&options[..], more].concat()).code(0).silent().stdout;
        assert_eq!(document, alone, "{options:?} {more:?}");
    }
}

#[test]
fn a_generated_capture() {
    let folder = Folder::new();
    check(&folder.file("trace.pcap", &generated(10_000).0));
}

#[test]
fn a_real_capture() {
    let Some(folder) = captures() else { return };
    check(&folder.join("flags-matrix.pcap"));
}

#[test]
fn a_plan_that_cannot_be_carried_out_is_refused_before_anything_is_read() {
    for (options, parts) in [
        (&["--queue-batch", "4"][..], &["lane", "batch"][..]),
        (&["--queue", "multiline", "--queue-batch", "4"], &["multiline", "batch"]),
        (&["--queue", "mcring", "--queue-batch", "0"], &["batch"]),
        (&["--queue", "bqueue", "--queue-capacity", "8", "--queue-batch", "9"], &["batch"]),
        (&["--queue-capacity", "0"], &["capacity"]),
        (&["--queue-capacity", "18446744073709551615"], &["large"]),
        (&["--cpus", "65535"], &["65535"]),
    ] {
        // The input is missing too, but that is not what is told.
        let outcome = monitor(&[Path::new("/no/such/file")], options).code(2).one_line(parts);
        assert_eq!(outcome.stdout, "");
    }
    for options in [&["--analyzers", "257"][..], &["--queue", "pigeon"], &["--cpus", "3-1"], &["--syn-timeout", "-1"]] {
        let outcome = monitor(&[Path::new("-")], options).code(2);
        assert!(outcome.stdout.is_empty() && outcome.stderr.starts_with("error: "), "{outcome:?}");
    }
    run(&mut corelane(["monitor"])).code(2);
    run(&mut corelane(["monitor", "--demo", "file.pcap"])).code(2);
    run(&mut corelane(["monitor", "--mmap", "--preload", "file.pcap"])).code(2);
}
