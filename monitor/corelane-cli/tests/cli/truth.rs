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
    for options in [&[][..], &["--preload"], &["--mmap"]] {
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
fn scans_by_other_probes_are_told_in_the_text_and_eve_and_in_json_if_asked() {
    let Some(folder) = captures() else { return };
    let out = Folder::new();
    let eve = out.path("eve.json");
    let report = "{\"probe\":\"xmas\",\"kind\":\"vertical\",\"source\":\"192.168.1.10\",\"destination\":\"192.168.1.25\",\"count\":1000,";
    let file = folder.join("scan-xmas.pcap");
    let text = run(corelane(["monitor", "--eve-types", "alert", "--eve"]).arg(&eve).arg(&file)).code(0).silent().stdout;
    assert!(text.contains("Vertical Xmas scans (1)\n"), "{text}");
    let alerts = fs::read_to_string(&eve).unwrap();
    assert!(alerts.lines().count() == 1 && alerts.contains("CORELANE SCAN vertical TCP Xmas scan"), "{alerts}");
    let plain = monitor(&[&file], &[]).code(0).stdout;
    let asked = monitor(&[&file], &["--probes"]).code(0).stdout;
    let (start, scans) = asked.split_once(",\"probe_scans\":[").expect("the key");
    assert_eq!(format!("{start}}}\n"), plain);
    assert!(scans.starts_with(report), "{scans}");
    // EVE alone does not bring them into the document.
    assert_eq!(monitor(&[&file], &["--eve-types", "alert", "--eve", eve.to_str().unwrap()]).code(0).stdout, plain);
    assert_eq!(fs::read_to_string(&eve).unwrap(), alerts);
}

#[test]
fn sources_are_counted_if_asked_and_the_same_for_any_spread() {
    let (capture, _) = generated(30_000);
    let folder = Folder::new();
    let file = folder.file("trace.pcap", &capture);
    let plain = monitor(&[&file], &[]).code(0).stdout;
    let counted = monitor(&[&file], &["--count-sources", "100k", "--top", "4"]).code(0).silent();
    let sources = counted.json()["sources"].clone();
    let bytes: Vec<_> = sources.as_array().unwrap().iter().map(|counts| counts["bytes"].as_u64().unwrap()).collect();
    assert!(bytes.len() == 4 && bytes.is_sorted_by(|more, less| more >= less) && bytes[3] > 0, "{sources}");
    assert!(counted.stdout.starts_with(plain.strip_suffix("}\n").unwrap()));
    for options in crate::support::WAYS {
        for every in ["1", "1M", "18446744073G"] {
            let options = [options, &["--count-sources", every, "--top", "4"]].concat();
            assert_eq!(monitor(&[&file], &options).code(0).silent().stdout, counted.stdout, "{options:?}");
        }
    }
    let text = run(corelane(["monitor", "--count-sources", "1G"]).arg(&file)).code(0).silent().stdout;
    assert!(text.contains("\nTop sources\n") && text.contains("connections begun"), "{text}");
    for wrong in ["0", "x", ""] {
        let outcome = monitor(&[&file], &["--count-sources", wrong]).code(2);
        assert!(outcome.stderr.starts_with("error: ") && outcome.stderr.contains("--count-sources"), "{outcome:?}");
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
    let second = folder.file("second.pcap.gz", gzip(&[&capture[..24], &capture[at..]].concat()));
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
    let timeless = folder.file("timeless.pcapng", [section(), interface, simple].concat());
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
    assert_eq!(time(&["--vertical-threshold", "9"]), 13_000);
    assert_eq!(alerts(&["--vertical-threshold", "25"]).as_array().map(Vec::len), Some(0));
    assert_eq!(alerts(&["--horizontal-threshold", "0"]).as_array().map(Vec::len), Some(26));
    let scans = |options: &[&str]| alerts(options).as_array().map(Vec::len);
    assert_eq!(scans(&["--ignore-source", "10.0.0.1"]), Some(0));
    assert_eq!(scans(&["--ignore-target", "192.168.0.0/16", "--ignore-target", "10.0.0.2/31"]), Some(0));
    assert_eq!(
        scans(&["--ignore-source", "10.0.0.2", "--ignore-target", "10.0.0.1", "--ignore-source", "::/0"]),
        Some(1)
    );
}
