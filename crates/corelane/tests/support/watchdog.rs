//! Turns a hang into a failure: a test that takes too long ends the process, by name.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Far beyond what any test takes, on a busy machine too; `CORELANE_TEST_PATIENCE` times as long where code runs
/// slowly, as under an emulator.
fn limit() -> Duration {
    let patience = std::env::var("CORELANE_TEST_PATIENCE").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    Duration::from_secs(60) * patience
}

/// Runs a test; aborts the process if it is not over in time.
pub(crate) fn guard(test: impl FnOnce()) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let (over, is_over) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let limit = limit();
        if is_over.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            // The print macros are captured, and lost with the process.
            let _ = writeln!(std::io::stderr(), "\n{name} hangs: not over after {limit:?}");
            std::process::abort();
        }
    });
    test();
    drop(over);
    watch.join().expect("the watchdog only waits");
}
