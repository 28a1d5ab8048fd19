//! Cache lines that move, as the tool counts them in its emulator.

use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corelane-bench")).args(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// What the tool says with these arguments; `None` if there is no emulator, and that is allowed.
fn emulated(args: &[&str]) -> Option<Output> {
    let output = bench(args);
    if output.status.code() == Some(3) && std::env::var_os("CORELANE_EMULATOR").is_none_or(|it| it != "required") {
        eprintln!("SKIPPED: {}", text(&output.stderr));
        return None;
    }
    Some(output)
}

#[test]
fn every_queue_moves_the_lines_that_it_moved_before() {
    let Some(output) = emulated(&["coherence", "--check"]) else { return };
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// What the directory has to say of words that one thread writes and another reads is known.
#[test]
fn the_directory_counts_bare_words_right() {
    let Some(output) = emulated(&["coherence", "bare words", "--regions"]) else { return };
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("  bare words")).collect();
    // A line of eight words there for each eight, and what its writer takes back is an upgrade; one word the same each
    // time.
    for (row, figures) in rows.iter().zip([["0.1250", "0.0000", "0.1250"], ["1.0000", "0.0000", "1.0000"]]) {
        let words: Vec<&str> = row.split_whitespace().skip(2).take(3).collect();
        assert_eq!(words, figures, "{table}");
    }
    assert_eq!(rows.len(), 2, "{table}");
    // The reading thread reads, the writing one upgrades, in the words' memory and nowhere else.
    for (thread, does) in [("thread 0 (puts )", "upgrades 0.1250"), ("thread 1 (takes)", "reads 0.1250")] {
        let line = table.lines().find(|line| line.contains(thread) && line.contains("8192 bytes"));
        assert!(line.is_some_and(|line| line.contains(does)), "{table}");
    }
    assert!(!table.contains("elsewhere"), "{table}");
}

#[test]
fn an_unknown_queue_is_one_clear_error() {
    let output = bench(&["coherence", "lain"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("'lain'") && error.contains("'lane'") && error.lines().count() == 1, "{error}");
}
