//! What every command has: the workspace that it works on, and what it comes to.

use std::path::{Path, PathBuf};

/// What a command comes to: an error is one sentence for the terminal.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}
