//! `corelane monitor -i` as a whole: the program runs on virtual interfaces, and what it writes and serves is looked
//! at. Each test runs in a process, a network namespace and a mount namespace of its own, which end with it. Without
//! the right to make those, or without `ip` and `unshare`, a test says that it is skipped.

#![cfg(target_os = "linux")]

mod alerts;
#[path = "../../../corelane-net/tests/support/captures_folder.rs"]
mod captures_folder;
mod drops;
mod endure;
mod errors;
#[path = "../../src/metrics/tests/exposition.rs"]
mod exposition;
#[path = "../support/lines.rs"]
mod lines;
mod metrics;
mod mutated;
#[path = "../../../corelane-net/tests/live/support.rs"]
#[allow(dead_code, reason = "it is shared with the tests of the capture, which use all of it")]
mod net;
mod nmap;
mod outputs;
mod privileges;
#[path = "../support/program.rs"]
mod program;
#[path = "../../../../queues/corelane/tests/support/random.rs"]
#[allow(dead_code, reason = "it is shared with the tests of the queues, which also pause")]
mod random;
mod same;
mod support;
