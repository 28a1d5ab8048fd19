//! Scrapes of a run under load.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::exposition::{Samples, parse_metrics};
use crate::net::{PATIENCE, Sender, inside, skip};
use crate::support::{
    Folder, Live, labelled, pair, query, query_of, sample, segment, sending, stats, under_load, wait_for,
};

/// Fails if a counter has fallen or is gone.
#[track_caller]
fn assert_rising(before: &Samples, after: &Samples) {
    for (key, value) in before.iter().filter(|((name, _), _)| name.ends_with("_total")) {
        let now = after.get(key).unwrap_or_else(|| panic!("{key:?} is gone"));
        assert!(now >= value, "{key:?} has fallen from {value} to {now}");
    }
}

#[test]
fn scrapes_under_load_are_sound_and_counters_never_fall() {
    inside("metrics::scrapes_under_load_are_sound_and_counters_never_fall", || {
        let folder = Folder::new();
        let (eve, tee) = (folder.path("eve.json"), folder.path("tee.pcapng"));
        pair(0);
        let live =
            Live::start(0, ["--eve", eve.to_str().unwrap(), "--write", tee.to_str().unwrap(), "--syn-timeout", "0.5"]);
        let load = |sender: &Sender, call: u32| {
            for number in 50 * call..50 * call + 50 {
                sender.send(&query(number));
                sender.send(&segment(1, 2 + number % 1000, [4000, number as u16], 0x02));
            }
            thread::sleep(Duration::from_millis(5));
        };
        let (calls, text) = under_load(0, load, || {
            let mut before = live.scrape();
            // Until the numbers of some steps were seen, and alerts among them.
            let (start, mut scrapes, mut steps) = (Instant::now(), 0, 0);
            loop {
                let text = live.get("/metrics").1;
                let samples = parse_metrics(&text);
                assert_rising(&before, &samples);
                steps += usize::from(sample(&samples, "bytes_total") > sample(&before, "bytes_total"));
                scrapes += 1;
                if steps >= 3 && labelled(&samples, "alerts_total", "syn") > 0.0 {
                    return text;
                }
                assert!(start.elapsed() < PATIENCE, "{steps} steps and no alerts in {scrapes} scrapes");
                before = samples;
            }
        });
        let sent = 100 * calls;
        check(&text);
        live.wait_until_received(sent as usize);
        let samples = live.scrape();
        assert_eq!(sample(&samples, "capture_packets_total"), f64::from(sent));
        assert!(labelled(&samples, "events_total", "dns") > 0.0 && sample(&samples, "conversations") > 0.0);
        assert!(labelled(&samples, "output_errors_total", "events") == 0.0);
        let fill = samples.iter().find(|((name, _), _)| name == "corelane_queue_fill_ratio").expect("a fill");
        assert_eq!(fill.0.1, [("stage".to_owned(), "analyzers".to_owned())]);
        assert!((0.0..=1.0).contains(fill.1), "{fill:?}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let last = sample(&samples, "last_packet_timestamp_seconds");
        assert!(last <= now && last > now - 60.0, "{last} at {now}");
        let report = live.stop().code(0).json();
        assert_eq!(report["packets"], sent);
    });
}

/// Each of three rings has its turn to be the only one with packets.
#[test]
fn numbers_come_whichever_ring_has_packets() {
    inside("metrics::numbers_come_whichever_ring_has_packets", || {
        for host in [1, 2, 3] {
            let folder = Folder::new();
            let eve = folder.path("eve.json");
            pair(host as u16);
            let options = ["--rings", "3", "--stats-interval", "1s", "--eve", eve.to_str().unwrap()];
            let live = Live::start(host as u16, options);
            sending(host as u16, |sender| (0..10).for_each(|number| sender.send(&query_of(host, number))));
            let bytes = 10.0 * query_of(host, 0).len() as f64;
            wait_for("its bytes", || (sample(&live.scrape(), "bytes_total") == bytes).then_some(()));
            assert_eq!(labelled(&live.scrape(), "events_total", "dns"), 10.0);
            let whole = || stats(&eve).into_iter().find(|stats| stats["decoder"]["pkts"] == 10);
            let stats = wait_for("statistics", whole);
            assert_eq!(stats["capture"]["kernel_packets"], 10, "{stats}");
            live.stop().code(0).silent();
        }
    });
}

/// The rules for Prometheus in a document.
#[track_caller]
fn rules(document: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let text = std::fs::read_to_string(path).unwrap();
    let begun = text.split_once("```yaml\ngroups:\n").expect("rules").1;
    format!("groups:\n{}", begun.split_once("```").expect("their end").0)
}

/// The metrics that rules name.
fn named(rules: &str) -> Vec<&str> {
    let words = rules.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    words.filter(|word| word.starts_with("corelane_")).collect()
}

/// A tap that gives nothing is what an operator has to hear of, so the rules know it from the first scrape on.
#[test]
fn the_rules_of_the_documents_know_a_tap_that_gives_nothing() {
    inside("metrics::the_rules_of_the_documents_know_a_tap_that_gives_nothing", || {
        let folder = Folder::new();
        let path = |name| folder.path(name).display().to_string();
        pair(0);
        let live = Live::start(0, ["--eve", &path("eve.json"), "--write", &path("tee.pcapng")]);
        let text = live.get("/metrics").1;
        live.stop().code(0);
        let samples = parse_metrics(&text);
        let rules = rules("live.md");
        let mut of_rules = named(&rules);
        of_rules.sort_unstable();
        of_rules.dedup();
        assert!(of_rules.len() >= 6, "{of_rules:?}");
        for name in &of_rules {
            let all: Vec<_> = samples.iter().filter(|((of, _), _)| of == name).collect();
            assert!(!all.is_empty() && all.iter().all(|&(_, &value)| value == 0.0), "{name}: {all:?}");
        }
        for output in ["events", "copy"] {
            let is_it = |labels: &[(String, String)]| labels.iter().any(|(_, value)| value == output);
            assert!(
                samples.keys().any(|(of, labels)| of == "corelane_output_errors_total" && is_it(labels)),
                "{output}"
            );
        }

        // What Prometheus makes of it in ten minutes: one alert, and no other.
        let number = |(labels, value): (&[(String, String)], f64), name: &str| {
            let labels: Vec<_> = labels.iter().map(|(label, of)| format!("{label}=\"{of}\"")).collect();
            format!("      - series: '{name}{{{}}}'\n        values: '{value}x20'\n", labels.join(","))
        };
        let of_rules = samples.iter().filter(|((of, _), _)| of_rules.contains(&of.as_str()));
        let series: String = of_rules.map(|((of, labels), &value)| number((labels, value), of)).collect();
        let nothing =
            |alert: &str| format!("      - eval_time: 10m\n        alertname: {alert}\n        exp_alerts: []\n");
        let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
        let silent: String = alerts.filter(|alert| *alert != "CorelaneSeesNothing").map(nothing).collect();
        let test = format!(
            "rule_files: [rules.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n      - \
             series: 'up{{job=\"corelane\"}}'\n        values: '1x20'\n{series}    alert_rule_test:\n{silent}      - \
             eval_time: 10m\n        alertname: CorelaneSeesNothing\n        exp_alerts: [{{}}]\n"
        );
        folder.file("rules.yml", &rules);
        let test = folder.file("test.yml", test);
        let Ok(output) = Command::new("promtool").args(["test", "rules"]).arg(&test).output() else {
            return skip("promtool is not installed");
        };
        assert!(output.status.success(), "{output:?}\n{}", std::fs::read_to_string(test).unwrap());
    });
}

/// Asks Prometheus' own tool.
fn check(text: &str) {
    let child =
        Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return skip("promtool is not installed") };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}\n{text}");
}
