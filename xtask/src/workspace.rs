//! The parts that every command uses: its workspace and its result.

use std::path::{Path, PathBuf};

/// The result of a command. An error is one sentence for the terminal.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}
