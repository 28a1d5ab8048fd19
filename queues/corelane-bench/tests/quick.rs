//! The tool as a user runs it, with the smallest effort.

use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corelane-bench")).args(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn names() -> Vec<String> {
    let list = text(&bench(&["list"]).stdout);
    list.lines().filter(|line| !line.starts_with(' ')).map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn the_list_says_what_each_experiment_repeats() {
    let list = text(&bench(&["list"]).stdout);
    assert!(names().contains(&"peers".to_owned()), "{list}");
    assert_eq!(list.lines().filter(|line| line.trim_start().starts_with("repeats ")).count(), names().len(), "{list}");
}

#[test]
fn an_unknown_experiment_is_one_clear_error() {
    let output = bench(&["run", "peerz", "--quick"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("'peerz'") && error.contains("peers") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_is_measured() {
    let output = bench(&["run", "peers", "--quick", "--json", "/nonexistent/file.json"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("/nonexistent/file.json"));
    assert!(output.stdout.is_empty());
}

/// With `--help` behind it the program does nothing, unless it does not know what is before. It does not look at names.
#[test]
fn every_command_of_the_documents_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let experiments = names();
    let mut commands = 0;
    for page in
        ["README.md", "CONTRIBUTING.md", "docs/benchmarks.md", "docs/bugs.md", "queues/corelane-bench/README.md"]
    {
        let page_text = std::fs::read_to_string(root.join(page)).unwrap();
        for begin in ["corelane-bench -- ", "corelane-bench "] {
            for (at, _) in page_text.match_indices(begin) {
                let command = page_text[at + begin.len()..].split(['\n', '`', '#', ')']).next().unwrap();
                let words: Vec<&str> = command.split_whitespace().collect();
                // Not that of `cargo run -p corelane-bench -- `, once more.
                if words.first() == Some(&"--") || !page_text[..at].ends_with(['`', ' ', '\n']) {
                    continue;
                }
                let is_known = |name: &&str| experiments.iter().any(|experiment| experiment == name);
                let unknown = words[1..]
                    .iter()
                    .filter(|word| words[0] == "run" && !word.starts_with('-'))
                    .find(|word| !is_known(word) && !word.ends_with(".json"));
                assert_eq!(unknown, None, "{page}: {command}");
                let output = bench(&words.iter().copied().chain(["--help"]).collect::<Vec<_>>());
                assert!(output.status.success(), "{page}: {command}: {}", text(&output.stderr));
                commands += 1;
            }
        }
    }
    assert!(commands > 8, "{commands}");
}

/// Every experiment, all of its contenders: each has its samples, or what stopped it, or why it is not there.
#[test]
fn every_experiment_runs_and_every_contender_has_a_result() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("quick.json");
    // Live capture has a test of its own, beside this one.
    let names: Vec<_> = names().into_iter().filter(|name| name != "live").collect();
    let mut words = vec!["run", "--quick", "--json", file.to_str().unwrap()];
    words.extend(names.iter().map(String::as_str));
    let output = bench(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let records: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let ran: Vec<_> = records.iter().map(|record| record["experiment"].as_str().unwrap()).collect();
    assert_eq!(ran, names);
    for record in &records {
        let name = &record["experiment"];
        assert_eq!(record["quick"], true);
        assert!(!record["machine"]["cpu"].as_str().unwrap().is_empty());
        let panels = record["panels"].as_array().unwrap();
        assert!(!panels.is_empty(), "{name}");
        for panel in panels {
            let series = panel["series"].as_array().unwrap();
            let left_out = panel["left_out"].as_array().unwrap();
            assert!(!series.is_empty() || !left_out.is_empty(), "{name} {}", panel["id"]);
            for series in series {
                for point in series["points"].as_array().unwrap() {
                    let samples = point["samples"].as_array().unwrap();
                    let place = format!("{name} {} {} {}", panel["id"], series["name"], point["x"]);
                    assert!(samples.len() == 1 || !point["stopped"].is_null(), "{place}");
                    for sample in samples {
                        let value = sample["value"].as_f64().unwrap_or_else(|| panic!("{place} has a value"));
                        // It may be that no attempt failed, that no thread gave up its CPU, or that calls took less
                        // than a clock sees.
                        let label = panel["y"]["label"].as_str().unwrap();
                        let may_be_none = value == 0.0
                            && ["context switches", "failed", "CPU µs inside"].iter().any(|part| label.contains(part));
                        assert!(value > 0.0 || may_be_none, "{place}: {value}");
                    }
                }
            }
            for left_out in left_out {
                assert!(!left_out["reason"].as_str().unwrap().is_empty());
            }
            // The monitor carries out each of its plans, also after one that pins; the papers' application runs over
            // every ring, with counters where there are any; lines are counted where there has to be an emulator.
            let emulator = std::env::var_os("CORELANE_EMULATOR").is_some_and(|it| it == "required");
            let has_all = name == "monitor-rate"
                || name == "application" && panel["id"] != "pipelines.l1"
                || name == "cache-lines" && emulator;
            assert!(!has_all || left_out.is_empty(), "{left_out:?}");
        }
    }

    let output = bench(&["report", directory.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(directory.path().join("report.html")).unwrap();
    // What the page draws is in it, and nothing is fetched.
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["records"], Value::from(records));
    assert_eq!(data["beside"].as_array().unwrap().len(), names.len());
    for outside in ["http:", "https:", "src=", "<link", "<img", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// Runs the experiment `live` with this search path for programs, if one is given.
fn live(path: Option<&str>) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("live.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_corelane-bench"));
    command.args(["run", "live", "--quick", "--json"]).arg(&file).envs(path.map(|path| ("PATH", path)));
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let records: Vec<Value> = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    records.into_iter().next().unwrap()
}

/// Why nothing was captured at all, if that is so.
fn refusal(record: &Value) -> Option<String> {
    let left_out = record["panels"][0]["left_out"].as_array().unwrap();
    let all = left_out.iter().find(|left_out| left_out["name"] == "all")?;
    Some(all["reason"].as_str().unwrap().to_owned()).filter(|reason| reason.starts_with("needs "))
}

#[test]
fn live_capture_is_measured_where_it_is_allowed() {
    let record = live(None);
    if let Some(reason) = refusal(&record) {
        // Not through `eprintln!`, which a passing test swallows.
        let _ = writeln!(io::stderr(), "SKIPPED: the experiment `live` {reason}");
        return;
    }
    for panel in record["panels"].as_array().unwrap() {
        let series = panel["series"].as_array().unwrap();
        let left_out = panel["left_out"].as_array().unwrap();
        // On a busy machine a reader may be late.
        let late = left_out.iter().filter(|left_out| left_out["reason"].as_str().unwrap().starts_with("it keeps up "));
        assert_eq!((series.len() + left_out.len(), late.count()), (6, left_out.len()), "{panel:#}");
        assert!(!series.is_empty(), "{panel:#}");
        for series in series {
            let samples = series["points"][0]["samples"].as_array().unwrap();
            assert!(samples.len() == 1 && samples[0]["items"].as_u64().unwrap() > 0, "{series:#}");
        }
    }
}

#[test]
fn live_capture_says_what_it_needs_and_ends_well() {
    let record = live(Some("/nonexistent"));
    let reason = refusal(&record).expect("nothing can be captured without programs");
    assert!(reason.contains(if cfg!(target_os = "linux") { "unshare" } else { "Linux" }), "{reason}");
    let panels = record["panels"].as_array().unwrap();
    assert!(panels.iter().all(|panel| panel["left_out"][0]["reason"] == *reason && panel["series"][0].is_null()));
}

#[test]
fn a_directory_without_results_is_one_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let output = bench(&["report", path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no results"), "{}", text(&output.stderr));
    std::fs::write(directory.path().join("a.json"), "[{}]").unwrap();
    let output = bench(&["report", path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("a.json"), "{}", text(&output.stderr));
}
