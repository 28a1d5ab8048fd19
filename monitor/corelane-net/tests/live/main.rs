//! Live capture between virtual interfaces. Each test runs in a process, a network namespace and a mount namespace of
//! its own, which end with it. Without the right to make those, or without `ip` and `unshare`, a test says that it is
//! skipped.

#![cfg(target_os = "linux")]

mod errors;
mod frames;
mod rings;
mod state;
mod support;
