//! The binary as users run it.

mod bad_input;
mod browser;
#[path = "../../../corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;
mod commands;
mod events;
mod files;
mod html;
mod interrupt;
mod output;
mod page_commands;
mod page_limits;
mod plans;
#[path = "../support/program.rs"]
mod program;
#[cfg(target_os = "linux")]
mod progress;
#[cfg(target_os = "linux")]
mod service;
mod support;
mod tap;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod top;
mod truth;
#[cfg(target_os = "linux")]
mod wire;
