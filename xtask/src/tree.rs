//! A copy of the sources that can be changed and built while the sources themselves stay unchanged.

use crate::workspace::Result;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The parts of the workspace that its tests need.
const PARTS: [&str; 6] = ["Cargo.toml", "Cargo.lock", "crates", "xtask", "README.md", "ARCHITECTURE.md"];

/// The parts on which the tests of queues depend. `coherence` belongs to the benchmarks' crate.
const JUDGED: [&str; 15] = [
    "Cargo.toml",
    "Cargo.lock",
    "crates/corelane",
    "crates/corelane-papers",
    "crates/corelane-pool",
    "crates/corelane-bench/coherence",
    "crates/corelane-bench/data",
    "crates/corelane-bench/src/coherence",
    "crates/corelane-bench/src/contender.rs",
    "crates/corelane-bench/src/contenders",
    "crates/corelane-bench/src/item.rs",
    "crates/corelane-bench/src/measure/crowd.rs",
    "crates/corelane-bench/src/raw.rs",
    "crates/corelane-bench/src/scale.rs",
    "crates/corelane-bench/tests/coherence.rs",
];

/// Copies the workspace's sources to a directory. Equal files there are left alone, so that builds there are
/// incremental. Files that exist only there are deleted.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut files = BTreeSet::new();
    for part in PARTS {
        list(from, &from.join(part), &mut files)?;
    }
    let mut old = BTreeSet::new();
    for part in PARTS {
        if to.join(part).exists() {
            list(to, &to.join(part), &mut old)?;
        }
    }
    for gone in old.difference(&files) {
        fs::remove_file(to.join(gone)).map_err(|error| failed(gone, &error))?;
    }
    for file in &files {
        let content = fs::read(from.join(file)).map_err(|error| failed(file, &error))?;
        write(&to.join(file), &content)?;
    }
    Ok(())
}

/// A digest of the sources on which tests of queues depend.
pub(crate) fn digest(root: &Path) -> Result<String> {
    let mut files = BTreeSet::new();
    for part in JUDGED {
        list(root, &root.join(part), &mut files)?;
    }
    files.retain(|file| file.extension() != Some(OsStr::new("md")));
    let mut hash = DefaultHasher::new();
    for file in &files {
        let content = fs::read(root.join(file)).map_err(|error| failed(file, &error))?;
        (file, content).hash(&mut hash);
    }
    Ok(format!("{:016x}", hash.finish()))
}

/// The present commit, with a `+` if anything except the documents was changed since.
pub(crate) fn commit(root: &Path) -> Result<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root).output();
        let output = output.map_err(|error| format!("git cannot be started: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(format!("git has failed: {}", text(&output.stderr)))
        }
    };
    let changed = git(&["status", "--porcelain", "--", ".", ":(exclude)docs"])?;
    Ok(git(&["rev-parse", "--short=9", "HEAD"])? + if changed.is_empty() { "" } else { "+" })
}

/// Writes a file unless it has these contents already.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    let directory = path.parent().expect("a file lies somewhere");
    fs::create_dir_all(directory).and_then(|()| fs::write(path, content)).map_err(|error| failed(path, &error))
}

fn list(root: &Path, path: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.insert(path.strip_prefix(root).expect("it lies below").to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(|error| failed(path, &error))? {
        let path = entry.map_err(|error| failed(path, &error))?.path();
        if path.file_name() != Some(OsStr::new("target")) {
            list(root, &path, files)?;
        }
    }
    Ok(())
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: cannot be read or written: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_tests_of_queues_depend_on_are_told_from_others() {
        let root = std::env::temp_dir().join(format!("corelane-tree-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let (from, to) = (root.join("from"), root.join("to"));
        let change = |file: &str, text: &str| write(&from.join(file), text.as_bytes()).unwrap();
        for part in PARTS {
            let is_file = part.contains('.');
            change(&if is_file { part.to_owned() } else { format!("{part}/file") }, "a");
        }
        for part in JUDGED {
            change(&if part.contains('.') { part.to_owned() } else { format!("{part}/file") }, "a");
        }
        let sources = || {
            copy(&from, &to).unwrap();
            digest(&from).unwrap()
        };
        let mut last = sources();
        for (file, is_judged) in [
            ("Cargo.lock", true),
            ("crates/corelane/src/a.rs", true),
            ("crates/corelane-papers/src/a.rs", true),
            ("crates/corelane-pool/src/a.rs", true),
            ("crates/corelane-bench/tests/coherence.rs", true),
            ("crates/corelane-bench/src/experiments/a.rs", false),
            ("crates/corelane-net/src/a.rs", false),
            ("README.md", false),
            ("crates/corelane/README.md", false),
        ] {
            change(file, "b");
            let now = sources();
            assert_eq!(now != last, is_judged, "{file}");
            assert_eq!(fs::read_to_string(to.join(file)).unwrap(), "b");
            last = now;
        }
        fs::remove_dir_all(root).unwrap();
    }
}
