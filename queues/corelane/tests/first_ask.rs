//! What a process finds out once about its machine, no thread waits for another to find out: the first one that asks is
//! stopped in its call. One test, as the answer is remembered for the process.
#![cfg(all(target_os = "linux", not(any(corelane_loom, corelane_shuttle, miri))))]

#[path = "support/trap.rs"]
mod trap;

use corelane::spsc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use trap::{Trap, skipped};

/// No thread waits so long but for one that is stopped.
const LONG: Duration = Duration::from_secs(20);

#[test]
fn threads_wait_for_no_other_ones_first_ask() {
    let (stopped, is_stopped) = mpsc::channel();
    let first = thread::spawn(move || {
        let (_producer, mut consumer) = spsc::channel::<u64>(1);
        // The list of CPUs is a file.
        let Some(trap) = Trap::set(libc::SYS_openat, -libc::c_long::from(libc::EACCES)) else { return skipped() };
        trap.hold();
        stopped.send(trap).unwrap();
        let _ = consumer.pop_timeout(Duration::from_millis(1));
    });
    let Ok(trap) = is_stopped.recv() else { return first.join().unwrap() };
    while trap.calls() == 0 && !first.is_finished() {
        thread::yield_now();
    }
    let (done, is_done) = mpsc::channel();
    let second = thread::spawn(move || {
        let (_producer, mut consumer) = spsc::channel::<u64>(1);
        let timed_out = consumer.pop_timeout(Duration::from_millis(1)).is_err();
        done.send(timed_out).unwrap();
    });
    let returned = is_done.recv_timeout(LONG);
    trap.let_go();
    first.join().unwrap();
    second.join().unwrap();
    assert_eq!(returned, Ok(true), "a thread waits for one that is stopped in its call");
}
