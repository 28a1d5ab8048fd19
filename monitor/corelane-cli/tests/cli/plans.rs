//! The report does not depend on how the work is spread. A few plans through the binary; `corelane-monitor` tests all.

use crate::support::{Folder, captures, corelane, generated, monitor, run};
use std::path::Path;

fn check(file: &Path) {
    let alone = monitor(&[file], &["--analyzers", "0"]).code(0).stdout;
    for (analyzers, more) in
        [("1", &[][..]), ("2", &["--mmap"]), ("3", &[]), ("4", &["--preload"]), ("16", &["--cpus", "0"]), ("256", &[])]
    {
        let document = monitor(&[file], &[&["--analyzers", analyzers], more].concat()).code(0).silent().stdout;
        assert_eq!(document, alone, "{analyzers} {more:?}");
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
    // The input is missing too, but that is not what is reported.
    let outcome = monitor(&[Path::new("/no/such/file")], &["--cpus", "65535"]).code(2).one_line(&["--cpus", "65535"]);
    assert_eq!(outcome.stdout, "");
    for options in [["--analyzers", "257"], ["--cpus", "3-1"], ["--syn-timeout", "-1"]] {
        let outcome = monitor(&[Path::new("-")], &options).code(2);
        assert!(outcome.stdout.is_empty() && outcome.stderr.starts_with("error: "), "{outcome:?}");
    }
    run(&mut corelane(["monitor"])).code(2);
    run(&mut corelane(["monitor", "--demo", "file.pcap"])).code(2);
    run(&mut corelane(["monitor", "--mmap", "--preload", "file.pcap"])).code(2);
}
