//! What is found is what is there.

use crate::support::{Folder, captures, compact, corelane, generated, gzip, monitor, run, run_with_stdin};
use std::fs;

/// The document of `expected-portscans.jsonl` without its file name, which is its first key.
fn report_of(line: &str) -> (String, String) {
    let line = compact(line);
    let rest = line.strip_prefix(r#"{"file":""#).expect("the file first");
    let (file, report) = rest.split_once(r#"","#).expect("more keys");
    (file.to_owned(), format!("{{{report}\n"))
}

#[test]
fn every_capture_gives_the_expected_document() {
    let Some(folder) = captures() else { return };
    let expected = fs::read_to_string(folder.join("expected-portscans.jsonl")).expect("the expected reports");
    let mut checked = 0;
    for (file, report) in expected.lines().map(report_of) {
        let outcome = monitor(&[&folder.join(&file)], &[]);
        // Byte for byte: keys, their order, values.
        assert_eq!(outcome.stdout, report, "{file}");
        let is_cut = file == "file-cut-http.pcap";
        assert_eq!(outcome.code, Some(i32::from(is_cut)), "{file}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.is_empty(), !is_cut, "{file}: {}", outcome.stderr);
        checked += 1;
    }
    assert!(checked >= 30, "only {checked} captures");
}

#[test]
fn a_generated_capture_gives_exactly_its_scans_however_it_comes() {
    let (capture, truth) = generated(60_000);
    assert!(truth.contains("vertical") && truth.contains("horizontal"), "{truth}");
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &capture);
    let from_file = monitor(&[&file], &[]).code(0).silent();
    assert_eq!(from_file.packets(), 60_000);
    assert!(from_file.stdout.ends_with(&format!("\"alerts\":{truth}}}\n")), "{}", from_file.stdout);
    let packed = gzip(&capture);
    let mut documents = vec![monitor(&[&file], &["--preload"])];
    documents.push(monitor(&[&folder.file("trace", &packed)], &[]));
    documents.push(monitor(&[&folder.file("trace", &packed)], &["--preload"]));
    for options in [&[][..], &["--preload"]] {
        for bytes in [&capture, &packed] {
            let mut command = corelane(["monitor", "--format", "json", "-"]);
            documents.push(run_with_stdin(command.args(options), bytes));
        }
    }
    for document in documents {
        assert_eq!(document.code(0).silent().stdout, from_file.stdout);
    }
}

#[test]
fn several_files_are_one_capture() {
    let (capture, _) = generated(20_000);
    let folder = Folder::new();
    let whole = monitor(&[&folder.file("whole.pcap", &capture)], &[]).code(0).stdout;
    // Cut between two records: 16 bytes of header, of which 8 to 12 are the length of what follows.
    let mut at = 24;
    while at < capture.len() / 3 {
        at += 16 + u32::from_le_bytes(capture[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    let first = folder.file("first.pcap", &capture[..at]);
    let second = folder.file("second.pcap.gz", &gzip(&[&capture[..24], &capture[at..]].concat()));
    for options in crate::support::WAYS {
        assert_eq!(monitor(&[&first, &second], options).code(0).silent().stdout, whole, "{options:?}");
    }
    let mut command = corelane(["monitor", "--format", "json"]);
    command.arg(&first).arg("-");
    assert_eq!(run_with_stdin(&mut command, &fs::read(&second).unwrap()).code(0).stdout, whole);
}

#[test]
fn a_record_without_a_time_takes_the_last_one_of_the_file_before() {
    use crate::support::{Pcap, block, section, syn};
    let folder = Folder::new();
    let timed = folder.file("timed.pcap", &Pcap::new(100, 101).record(1000, 40, &syn(1)).0);
    // A simple packet has only a length.
    let interface = block(1, &[101, 0, 0, 0, 0, 0, 0, 0]);
    let simple = block(3, &[&40_u32.to_le_bytes()[..], &syn(2)].concat());
    let timeless = folder.file("timeless.pcapng", &[section(), interface, simple].concat());
    for options in crate::support::WAYS {
        let summary = run(corelane(["monitor"]).args(options).args([&timed, &timeless])).code(0).silent().stdout;
        assert!(summary.contains("0.000 s  from 1970-01-01 00:16:40.000 UTC"), "{options:?}: {summary}");
    }
}

#[test]
fn the_options_of_detection_are_heard() {
    use crate::support::{Pcap, syn};
    let mut pcap = Pcap::new(100, 101);
    for port in 1..=25 {
        pcap = pcap.record(u32::from(port), 40, &syn(port));
    }
    let file = Folder::new();
    let file = (file.file("a.pcap", &pcap.0), file);
    let alerts = |options: &[&str]| monitor(&[&file.0], options).code(0).json()["alerts"].clone();
    let time = |options: &[&str]| alerts(options)[0]["time_ns"].as_u64().expect("a scan") / 1_000_000;
    // The 21st failure: opened at 21 s.
    assert_eq!(time(&[]), 24_000);
    assert_eq!(time(&["--syn-timeout", "0.5"]), 21_500);
    assert_eq!(time(&["--syn-timeout", "100"]), 25_000);
    assert_eq!(time(&["--rule", "paper"]), 21_000);
    assert_eq!(time(&["--vertical-threshold", "9"]), 13_000);
    assert_eq!(alerts(&["--vertical-threshold", "25"]).as_array().map(Vec::len), Some(0));
    assert_eq!(alerts(&["--horizontal-threshold", "0"]).as_array().map(Vec::len), Some(26));
}
