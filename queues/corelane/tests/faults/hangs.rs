//! What is said of a test that hangs.

use std::hint::black_box;
use std::process::Command;
use std::sync::Barrier;
use std::thread;

#[inline(never)]
fn sleeps_for_ever() {
    loop {
        thread::park();
    }
}

#[inline(never)]
fn spins_for_ever() {
    while black_box(true) {}
}

/// Run by the next one, in a process of its own.
#[test]
#[ignore = "it hangs"]
fn a_test_that_hangs() {
    let both = Barrier::new(2);
    thread::scope(|scope| {
        thread::Builder::new()
            .name("the other".into())
            .spawn_scoped(scope, || {
                both.wait();
                spins_for_ever();
            })
            .unwrap();
        both.wait();
        crate::watchdog::guard(sleeps_for_ever);
    });
}

/// By each thread's name, and by where it is.
#[test]
fn a_test_that_hangs_says_what_each_thread_did() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["hangs::a_test_that_hangs", "--exact", "--ignored"]).env("CORELANE_TEST_PATIENCE", "0");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for part in ["a_test_that_hangs hangs", "sleeps_for_ever", "the other (", "spins_for_ever"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
