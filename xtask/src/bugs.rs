//! `docs/bugs.md`, the list of bugs of other queues: every test and every hand-made fault that it names must exist.

use crate::mutants;
use crate::workspace::root;
use std::fs;
use std::path::{Path, PathBuf};

/// The names of tests and of hand-made faults between backquotes.
fn names(page: &str) -> (Vec<&str>, Vec<&str>) {
    let is_word = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c))
    };
    let entries = page.lines().filter(|line| line.starts_with("- ") || line.starts_with("  "));
    let code = entries.flat_map(|line| line.split('`').skip(1).step_by(2));
    let code: Vec<_> = code.collect();
    let of = |by: &str| code.iter().copied().filter(|name| name.contains(by) && name.split(by).all(is_word)).collect();
    (of("::"), of("/"))
}

/// The files of a test target, and the tests' crate.
fn files(root: &Path, target: &str) -> Vec<PathBuf> {
    let tests = match target {
        "pool" => root.join("queues/corelane-pool/tests/conformance"),
        "pool_loom" => root.join("queues/corelane-pool/tests/loom"),
        _ => {
            let of = |package: &str| root.join("queues").join(package).join("tests").join(target);
            let own = of("corelane");
            if own.exists() || own.with_extension("rs").exists() { own } else { of("corelane-papers") }
        }
    };
    match fs::read_dir(&tests) {
        Ok(files) => files.map(|file| file.unwrap().path()).collect(),
        Err(_) => vec![tests.with_extension("rs")],
    }
}

/// Whether a target has such a test, in the module's file or in that of the whole target. The test must run: by an
/// attribute, or by its name in a list.
fn exists(root: &Path, name: &str) -> bool {
    let words: Vec<_> = name.split("::").collect();
    let (target, test) = (words[0], words[words.len() - 1]);
    let modules = &words[1..words.len() - 1];
    let files = files(root, target);
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap_or_default();
    let whole: String = files.iter().map(text).collect();
    let own = match modules.first() {
        Some(module) if files.len() > 1 => {
            files.iter().filter(|file| file.file_stem().is_some_and(|stem| stem == *module)).map(text).collect()
        }
        Some(module) if !whole.contains(&format!("mod {module} ")) => return false,
        _ => whole.clone(),
    };
    let written = own.contains(&format!("fn {test}("))
        || own.contains(&format!("fn {test}<"))
        || own.contains(&format!("fn {test}!("));
    let runs = own.contains(&format!("#[test]\n    fn {test}("))
        || own.contains(&format!("#[test]\nfn {test}("))
        || whole.lines().any(|line| line.trim().trim_end_matches(',') == test);
    written && runs
}

#[test]
fn what_the_list_of_bugs_names_exists() {
    let root = root();
    let page = fs::read_to_string(root.join("docs/bugs.md")).unwrap();
    let (tests, faults) = names(&page);
    assert!(tests.len() > 100 && faults.len() > 10, "{} tests, {} faults", tests.len(), faults.len());
    let missing: Vec<_> = tests.into_iter().filter(|test| !exists(&root, test)).collect();
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
    let known: Vec<_> = mutants::all().unwrap().into_iter().map(|mutant| mutant.name).collect();
    let missing: Vec<_> = faults.into_iter().filter(|fault| !known.iter().any(|name| name == fault)).collect();
    assert!(missing.is_empty(), "no such faults: {missing:#?}");
}

/// The entries of the list, each joined to one line with everything below it.
fn entries(page: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in page.lines() {
        if line.starts_with("- ") {
            entries.push(line.to_owned());
        } else if let (Some(entry), true) = (entries.last_mut(), line.starts_with("  ")) {
            entry.push(' ');
            entry.push_str(line.trim_start());
        }
    }
    entries
}

/// Every entry has a test or a reason.
#[test]
fn each_entry_of_the_list_has_a_test_or_a_reason() {
    let page = fs::read_to_string(root().join("docs/bugs.md")).unwrap();
    let entries = entries(&page);
    assert!(entries.len() > 100, "{} entries", entries.len());
    for entry in entries {
        let (tests, faults) = names(&entry);
        assert!(
            !tests.is_empty() || !faults.is_empty() || entry.contains("Cannot ") || entry.contains("a test of its own"),
            "{entry}"
        );
    }
}

#[test]
fn a_test_that_is_not_there_is_missed() {
    let root = root();
    for name in ["contract::closing::closing_at_every_fill", "barrier::a_consumer_that_sleeps"] {
        assert!(exists(&root, name), "{name}");
    }
    for name in ["contract::closing::nothing", "contract::order::closing_at_every_fill", "loom::lane::fill", "no::test"]
    {
        assert!(!exists(&root, name), "{name}");
    }
}
