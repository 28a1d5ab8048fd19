//! What lies between a capture and its analysis: `--write` and `--filter-program`, on files.

use crate::support::{Folder, captures, corelane, generated, gzip, run, skipped};
use corelane_net::capture::{Options, Reader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The events of a run, byte for byte.
#[track_caller]
fn events(folder: &Folder, files: &[&Path], options: &[&str]) -> String {
    let eve = folder.path("eve.json");
    run(corelane(["monitor", "--quiet", "--eve"]).arg(&eve).args(options).args(files)).code(0).silent();
    std::fs::read_to_string(eve).unwrap()
}

/// The same but for `stats`: when a run without an end has them depends on how it was asked.
#[track_caller]
fn continuous(folder: &Folder, files: &[&Path], options: &[&str]) -> Vec<String> {
    let all = events(folder, files, &[&["--continuous"], options].concat());
    all.lines().filter(|line| !line.contains("\"event_type\":\"stats\"")).map(str::to_owned).collect()
}

fn packets(path: &Path) -> usize {
    let mut reader = Reader::open(path, &Options::default()).unwrap();
    let mut packets = 0;
    while let 1.. = reader.read(1000, |_| packets += 1).unwrap() {}
    packets
}

#[test]
fn a_copy_gives_the_events_of_what_was_copied() {
    let folder = Folder::new();
    let (capture, _) = generated(60_000);
    let plain = folder.file("a.pcap", &capture);
    let packed = folder.file("a.pcap.gz", gzip(&capture));
    let copy = folder.path("copy.pcapng");
    let write = copy.to_str().unwrap();
    for (number, file) in [&plain, &packed].into_iter().enumerate() {
        let expected = continuous(&folder, &[file], &["--write", write, "--analyzers", "2"]);
        assert!(expected.iter().any(|line| line.contains("\"alert\"")), "{} events", expected.len());
        assert_eq!(packets(&copy), 60_000);
        for analyzers in ["0", "3"] {
            assert_eq!(continuous(&folder, &[&copy], &["--analyzers", analyzers]), expected, "{number} {analyzers}");
        }
        // Nothing depends on being copied.
        assert_eq!(continuous(&folder, &[file], &[]), expected);
        // Nor on steps.
        let expected = events(&folder, &[file], &["--write", write]);
        assert_eq!(events(&folder, &[&copy], &[]), expected);
    }
    // A copy of a copy, and of two captures.
    let again = folder.path("again.pcapng");
    let expected = continuous(&folder, &[&copy, &plain], &["--write", again.to_str().unwrap()]);
    assert_eq!(continuous(&folder, &[&again], &[]), expected);
}

/// Flows are named by partition, so their names show the seed.
#[test]
fn a_copy_has_the_seed_of_its_run() {
    let folder = Folder::new();
    let capture = folder.file("a.pcap", &generated(20_000).0);
    let copies = [folder.path("copy.pcapng"), folder.path("copy of it.pcapng")];
    let [copy, again] = copies.each_ref().map(|path| path.to_str().unwrap());
    let with_seed = continuous(&folder, &[&capture], &["--seed", "7", "--write", copy]);
    let without = continuous(&folder, &[&capture], &[]);
    assert_ne!(with_seed, without);
    assert_eq!(continuous(&folder, &[&copies[0]], &["--write", again]), with_seed);
    assert_eq!(
        continuous(&folder, &[&copies[1], &capture], &[])[..with_seed.len() / 2],
        with_seed[..with_seed.len() / 2]
    );
    assert_eq!(continuous(&folder, &[&copies[1]], &["--seed", "0"]), without);
    // Nothing was evicted: the same events.
    let sorted = |lines: &[String]| {
        let mut lines: Vec<_> = lines
            .iter()
            .map(|line| line.split_once("\"flow_id\":").map_or("", |(_, rest)| &rest[rest.find(',').unwrap()..]))
            .map(str::to_owned)
            .collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&with_seed), sorted(&without));
}

/// What `tcpdump` prints for an expression, or `None` after saying that the test is skipped.
fn tcpdump(arguments: &[&str], capture: &Path) -> Option<Vec<u8>> {
    let output = Command::new("tcpdump").arg("-r").arg(capture).args(arguments).stderr(Stdio::piped()).output();
    let Ok(output) = output else {
        skipped("tcpdump is not installed");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(output.stdout)
}

#[test]
fn a_filter_chooses_what_tcpdump_does() {
    let Some(captures) = captures() else { return };
    let capture = captures.join("http-mixed.pcap");
    let folder = Folder::new();
    let (program, copy) = (folder.path("program"), folder.path("copy.pcapng"));
    for expression in ["udp port 53", "tcp and not port 80", "ip6", "greater 1000"] {
        let Some(code) = tcpdump(&["-ddd", expression], &capture) else { return };
        std::fs::write(&program, code).unwrap();
        let chosen = folder.path("chosen.pcap");
        tcpdump(&["-w", chosen.to_str().unwrap(), expression], &capture);
        let options = ["--filter-program", program.to_str().unwrap(), "--write", copy.to_str().unwrap()];
        let found = continuous(&folder, &[&capture], &options);
        assert_eq!(found, continuous(&folder, &[&chosen], &[]), "{expression}");
        assert_eq!(packets(&copy), packets(&chosen), "{expression}");
        assert_eq!(found, continuous(&folder, &[&copy], &[]), "{expression}");
    }
}

#[test]
fn a_copy_of_nothing_is_a_capture() {
    let folder = Folder::new();
    let capture = folder.file("a.pcap", &generated(1000).0);
    let program = folder.file("none", b"1\n6 0 0 0\n");
    let copy: PathBuf = folder.path("copy.pcapng");
    let options = ["--filter-program", program.to_str().unwrap(), "--write", copy.to_str().unwrap()];
    let expected = events(&folder, &[&capture], &options);
    assert_eq!(packets(&copy), 0);
    assert_eq!(events(&folder, &[&copy], &[]), expected);
}

#[test]
fn a_copy_can_go_to_the_standard_output_in_place_of_the_report() {
    let folder = Folder::new();
    let capture = folder.file("a.pcap", &generated(1000).0);
    let output = corelane(["monitor", "--write", "-"]).arg(&capture).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let copy = folder.file("copy.pcapng", &output.stdout);
    assert_eq!(packets(&copy), 1000);
    assert_eq!(events(&folder, &[&copy], &[]), events(&folder, &[&capture], &[]));
    let json = ["monitor", "--write", "-", "--format", "json"];
    run(corelane(json).arg(&capture)).code(2).one_line(&["--write -", "name a file"]);
    let both = ["monitor", "--write", "-", "--eve", "-"];
    run(corelane(both).arg(&capture)).code(2).one_line(&["-", "choose two files"]);
}

#[test]
fn a_copy_that_cannot_be_written_is_said() {
    let folder = Folder::new();
    let capture = folder.file("a.pcap", &generated(1000).0);
    let nowhere = folder.path("no/such/folder");
    let copy_to = |path: &Path| run(corelane(["monitor", "--format", "json", "--write"]).arg(path).arg(&capture));
    copy_to(&nowhere).code(2).one_line(&["no/such/folder"]);
    copy_to(&capture).code(2).one_line(&["is an input"]);
    if Path::new("/dev/full").exists() {
        let outcome = copy_to(Path::new("/dev/full")).code(1);
        let said: Vec<_> = outcome.stderr.lines().collect();
        assert!(
            said[0].starts_with("corelane: /dev/full: cannot be written: No space left"),
            "when it happens: {said:?}"
        );
        assert!(said[1].starts_with("corelane: --write: 1000 packets could not be written: No space left"), "{said:?}");
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(outcome.packets(), 1000, "the report is whole");
    }
}
