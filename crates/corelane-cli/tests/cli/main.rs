//! The binary as users run it.

mod bad_input;
mod commands;
mod events;
mod files;
mod interrupt;
mod output;
mod plans;
#[cfg(target_os = "linux")]
mod service;
mod support;
mod tap;
mod truth;
#[cfg(target_os = "linux")]
mod wire;
