//! Snapshots of the sources as they are, committed or not, as git's trees.

use crate::workspace::{Result, root};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;

/// What the tests of queues depend on. `coherence` belongs to the benchmarks' crate.
const JUDGED: [&str; 6] = [
    "Cargo.toml",
    "Cargo.lock",
    "queues/corelane",
    "queues/corelane-bench",
    "queues/corelane-papers",
    "queues/corelane-pool",
];

/// Calls git in the workspace, with an index of its own. Returns its output.
fn git(index: &Path, tree: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    output(command.args(arguments).current_dir(root()).env("GIT_INDEX_FILE", index).env("GIT_WORK_TREE", tree))
}

/// Runs a command, and returns what it wrote. If the command fails, that is an error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| format!("{command:?} cannot be started: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{command:?} ended with {}: {}", output.status, text(&output.stderr)))
    }
}

/// The sources, as a tree of git's.
fn snapshot() -> Result<String> {
    let index = root().join(format!("target/evidence/index-{}", std::process::id()));
    let made = std::fs::create_dir_all(root().join("target/evidence"));
    made.map_err(|error| format!("target/evidence cannot be created: {error}"))?;
    let tree = git(&index, &root(), &["add", "--all"]).and_then(|_| git(&index, &root(), &["write-tree"]));
    let _ = std::fs::remove_file(&index);
    tree
}

/// A digest of the sources that the tests of queues depend on, but for their documents.
pub(crate) fn digest() -> Result<String> {
    let tree = snapshot()?;
    let files = git(Path::new("index"), &root(), &[&["ls-tree", "-r", &tree, "--"], &JUDGED[..]].concat())?;
    Ok(hash(&files.lines().filter(|file| !file.ends_with(".md")).collect::<Vec<_>>()))
}

pub(crate) fn hash(value: &impl Hash) -> String {
    let mut hash = DefaultHasher::new();
    value.hash(&mut hash);
    format!("{:016x}", hash.finish())
}

/// Makes a directory a copy of the sources. Files that are equal are left alone, so that builds there are incremental.
pub(crate) fn copy(to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).map_err(|error| format!("{}: cannot be created: {error}", to.display()))?;
    git(&to.with_extension("index"), to, &["read-tree", "-u", "--reset", &snapshot()?]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_copy_is_what_is_written_and_no_more() {
        let copied = root().join(format!("target/evidence/copy-{}", std::process::id()));
        let read = |file: &str| fs::read_to_string(copied.join(file));
        copy(&copied).unwrap();
        let file = "queues/corelane/src/lib.rs";
        let same = fs::read_to_string(root().join(file)).unwrap();
        assert_eq!(read(file).unwrap(), same);
        // What an interrupted run has left there.
        fs::write(copied.join(file), "a fault").unwrap();
        copy(&copied).unwrap();
        assert_eq!(read(file).unwrap(), same);
        fs::remove_file(copied.with_extension("index")).unwrap();
        fs::remove_dir_all(copied).unwrap();
    }
}
