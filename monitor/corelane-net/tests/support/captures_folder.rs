//! Where real captures are, for the tests of all crates.

use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder named by CORELANE_CAPTURES, else the one beside the workspace; relative names begin at the workspace.
/// `None` if there is none with the files that say what is in its captures: that the test is skipped was said then.
pub(crate) fn captures() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = workspace.join(std::env::var_os("CORELANE_CAPTURES").unwrap_or_else(|| "../shared/captures".into()));
    let missing = ["expected-portscans.jsonl", "TRUTH.json"].into_iter().find(|name| !folder.join(name).is_file());
    if let Some(missing) = missing {
        // Not through `eprintln!`, which a passing test swallows.
        let said =
            format!("SKIPPED: no {missing} in {}; set CORELANE_CAPTURES to test with captures\n", folder.display());
        let _ = std::io::stderr().write_all(said.as_bytes());
        return None;
    }
    Some(folder)
}
