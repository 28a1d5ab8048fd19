//! What the other files of this suite need of the system, and its one file with `unsafe` code: a thread that is stopped
//! in the middle of whatever it does, by a signal whose handler does not return until it is told to; two CPUs for all
//! threads; a limit of memory.

use std::cell::Cell;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, Once};

const RUNS: u32 = 0;
const STOPPED: u32 = 1;

/// A thread that can be stopped.
pub(crate) struct Stop {
    /// While it can be: its `pthread_t`, which is a number or a pointer.
    thread: Mutex<Option<usize>>,
    /// A signal is on its way.
    sent: AtomicBool,
    state: AtomicU32,
}

thread_local! {
    /// This thread's, while it can be stopped.
    static MINE: Cell<*const Stop> = const { Cell::new(null()) };
}

extern "C" fn handle(_: libc::c_int) {
    let stop = MINE.get();
    if stop.is_null() {
        return;
    }
    // SAFETY: the thread is within `run`, which borrows it, and leaves that only after it has handled every signal that
    // was sent.
    let stop = unsafe { &*stop };
    stop.state.store(STOPPED, SeqCst);
    stop.sent.store(false, SeqCst);
    while stop.state.load(SeqCst) == STOPPED {
        // Changes no errno of the code that was interrupted: it cannot fail. SAFETY: it may be called in a handler.
        unsafe { libc::sched_yield() };
    }
}

impl Stop {
    pub(crate) fn new() -> Self {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            // SAFETY: all zeros are an action without flags and without other signals blocked, and the handler does
            // nothing that a handler must not. Without SA_RESTART, so that system calls are interrupted.
            let installed = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handle as extern "C" fn(libc::c_int) as libc::sighandler_t;
                libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut())
            };
            assert_eq!(installed, 0, "a handler for SIGUSR1");
        });
        Self { thread: Mutex::new(None), sent: AtomicBool::new(false), state: AtomicU32::new(RUNS) }
    }

    /// Runs something in this thread, which may be stopped meanwhile.
    pub(crate) fn run<R>(&self, run: impl FnOnce() -> R) -> R {
        /// By a panic, too.
        struct AtTheEnd<'a>(&'a Stop);

        impl Drop for AtTheEnd<'_> {
            fn drop(&mut self) {
                *self.0.thread.lock().unwrap() = None;
                while self.0.sent.load(SeqCst) {
                    std::thread::yield_now();
                }
                MINE.set(null());
            }
        }

        MINE.set(self);
        let _at_the_end = AtTheEnd(self);
        // SAFETY: always.
        *self.thread.lock().unwrap() = Some(unsafe { libc::pthread_self() } as usize);
        run()
    }

    /// Stops the thread where it is. False if it does not run, yet or any more.
    pub(crate) fn stop(&self) -> bool {
        {
            let thread = self.thread.lock().unwrap();
            let Some(thread) = *thread else { return false };
            self.sent.store(true, SeqCst);
            // SAFETY: it cannot have ended as long as the lock is held.
            assert_eq!(unsafe { libc::pthread_kill(thread as libc::pthread_t, libc::SIGUSR1) }, 0);
        }
        while self.state.load(SeqCst) != STOPPED {
            std::thread::yield_now();
        }
        true
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.state.store(RUNS, SeqCst);
    }
}

/// Keeps this thread and those that it starts to two CPUs, if it may run on so many.
pub(crate) fn keep_to_two_cpus() {
    // SAFETY: a set of no CPUs is all zeros; the sets and their size are right, and live as long as the calls.
    unsafe {
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        let mut two = all;
        let size = size_of::<libc::cpu_set_t>();
        assert_eq!(libc::sched_getaffinity(0, size, &raw mut all), 0);
        let cpus = (0..libc::CPU_SETSIZE as usize).filter(|&cpu| libc::CPU_ISSET(cpu, &all));
        cpus.take(2).for_each(|cpu| libc::CPU_SET(cpu, &mut two));
        assert_eq!(libc::sched_setaffinity(0, size, &raw const two), 0);
    }
}

/// Lets the process have so many more bytes of address space than it has now.
#[cfg(target_pointer_width = "64")]
pub(crate) fn limit_memory(more: u64) {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages: u64 = status.split(' ').next().expect("its first number").parse().expect("a number");
    // SAFETY: always.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives as long as the calls.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &raw mut limit), 0);
        limit.rlim_cur = limit.rlim_max.min(pages * page + more);
        assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &raw const limit), 0);
    }
}
