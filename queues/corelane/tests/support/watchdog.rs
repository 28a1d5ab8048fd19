//! Turns a hang into a failure: a test that takes too long ends the process, by name, and says what each thread did.

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
            #[cfg(all(target_os = "linux", not(miri)))]
            threads::tell();
            std::process::abort();
        }
    });
    test();
    drop(over);
    watch.join().expect("the watchdog only waits");
}

/// What each thread of the process does, as far as the system and its stack say.
#[cfg(all(target_os = "linux", not(miri)))]
mod threads {
    use std::backtrace::Backtrace;
    use std::io::Write;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    /// How many have shown their stacks.
    static SHOWN: AtomicUsize = AtomicUsize::new(0);

    /// A thread that was interrupted in the allocator may wait for itself here. The watchdog is not, and goes on.
    extern "C" fn show(_: libc::c_int) {
        let _ = writeln!(std::io::stderr(), "{}", Backtrace::force_capture());
        SHOWN.fetch_add(1, SeqCst);
    }

    pub(super) fn tell() {
        // SAFETY: the signal is used for nothing else, and the handler is a function of the right type.
        unsafe { libc::signal(libc::SIGUSR2, show as *const () as libc::sighandler_t) };
        // SAFETY: the call has no arguments.
        let own = unsafe { libc::syscall(libc::SYS_gettid) };
        let mut told = Vec::new();
        for thread in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let read = |what| std::fs::read_to_string(thread.path().join(what)).unwrap_or_default();
            let Ok(id) = thread.file_name().to_string_lossy().parse::<libc::c_long>() else { continue };
            let (stat, name) = (read("stat"), read("comm"));
            let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('?');
            let (place, call) = (read("wchan"), read("syscall"));
            let line = format!("{} ({id}): {state}, in {place}, call {}", name.trim(), call.trim());
            if id != own {
                told.push((id, line));
            }
        }
        // No allocation from here on: an interrupted thread may keep the allocator to itself.
        for &(id, ref line) in &told {
            let _ = writeln!(std::io::stderr(), "\n{line}");
            let shown = SHOWN.load(SeqCst);
            // SAFETY: plain numbers; a thread that has ended since is an error.
            let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), id, libc::SIGUSR2) };
            for _ in 0..100 {
                if sent != 0 || SHOWN.load(SeqCst) != shown {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}
