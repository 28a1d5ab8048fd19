//! What threads and sets leave behind that have slept: memory and descriptors within bounds, also in processes that
//! were forked. Each test in a process of its own, where no other test makes or takes what is counted.
#![cfg(all(feature = "std", not(any(corelane_loom, corelane_shuttle, miri))))]

#[path = "support/allocator.rs"]
mod allocator;

use allocator::CALLS;
use corelane::mpmc;
use corelane::wait::Park;
use std::cell::Cell;
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use std::thread;
use std::time::Duration;

/// Runs the test of this name in a new process.
fn alone(name: &str, test: impl FnOnce()) {
    const MARK: &str = "CORELANE_PLACES";
    if std::env::var_os(MARK).is_some() {
        return test();
    }
    let program = std::env::current_exe().unwrap();
    let status = Command::new(program).args([name, "--exact", "--nocapture"]).env(MARK, "1").status().unwrap();
    assert!(status.success(), "{status}");
}

static QUEUE: LazyLock<mpmc::Queue<u32, mpmc::Ticket, Park>> =
    LazyLock::new(|| mpmc::ticket::queue_with(4, mpmc::Options::new().wait(Park)).unwrap());

fn sleep() {
    QUEUE.pop_timeout(Duration::from_micros(1)).unwrap_err();
}

/// Says how often ten waits in a thread-local's destructor have asked for memory.
struct Late;

static ASKED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

impl Drop for Late {
    fn drop(&mut self) {
        let before = CALLS.get();
        (0..10).for_each(|_| sleep());
        let asked = CALLS.get() - before;
        ASKED.lock().unwrap().push(asked);
    }
}

#[test]
fn a_wait_at_the_end_of_a_thread_leaves_nothing() {
    thread_local! {
        // Registered before the place to sleep is, and so destroyed after it.
        static LATE: Late = const { Late };
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    alone("a_wait_at_the_end_of_a_thread_leaves_nothing", || {
        for _ in 0..3 {
            let thread = thread::spawn(|| {
                LATE.with(|_| NUMBER.set(1));
                sleep();
            });
            thread.join().unwrap();
        }
        // The first may make a place, and room for it among the unused ones.
        assert_eq!(ASKED.lock().unwrap()[1..], [0, 0]);
    });
}

#[cfg(target_os = "linux")]
mod descriptors {
    use super::*;
    use corelane::spsc;
    use corelane::wait::{Readable, Select};
    use std::os::unix::net::UnixStream;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Instant;

    fn open() -> usize {
        std::fs::read_dir("/proc/self/fd").unwrap().count()
    }

    const SHORT: Duration = Duration::from_micros(100);

    #[test]
    fn sets_that_are_gone_leave_one_descriptor_a_thread() {
        alone("descriptors::sets_that_are_gone_leave_one_descriptor_a_thread", || {
            let (a, _b) = UnixStream::pair().unwrap();
            let before = open();
            let mut sets: Vec<_> = (0..300).map(|_| Select::with(Park)).collect();
            for set in &mut sets {
                set.add(Readable::new(&a));
                assert_eq!(set.wait_timeout(SHORT), None);
            }
            // Nor do those that are there.
            assert!(open() <= before + 1, "{} instead of {before}", open());
            drop(sets);
            assert!(open() <= before + 1, "{} instead of {before}", open());
        });
    }

    #[test]
    fn threads_that_are_gone_leave_no_descriptor() {
        alone("descriptors::threads_that_are_gone_leave_no_descriptor", || {
            let (a, _b) = UnixStream::pair().unwrap();
            let (before, together, counted) = (open(), Barrier::new(50), AtomicUsize::new(0));
            for _ in 0..2 {
                thread::scope(|scope| {
                    let threads = [(); 50].map(|()| {
                        scope.spawn(|| {
                            let mut set = Select::with(Park);
                            set.add(Readable::new(&a));
                            // Long enough to fall asleep beside busy programs.
                            assert_eq!(set.wait_timeout(500 * SHORT), None);
                            if together.wait().is_leader() {
                                counted.store(open(), Relaxed);
                            }
                            together.wait();
                        })
                    });
                    // The end of the scope comes before that of their thread-locals.
                    threads.into_iter().for_each(|thread| thread.join().unwrap());
                });
                assert_eq!((counted.load(Relaxed), open()), (before + 50, before));
            }
        });
    }

    /// How often this thread has gone to sleep.
    fn sleeps() -> libc::c_long {
        // SAFETY: zeroes are a value of it, and the call writes nothing else.
        unsafe {
            let mut usage: libc::rusage = core::mem::zeroed();
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage), 0);
            usage.ru_nvcsw
        }
    }

    const PATIENCE: Duration = Duration::from_secs(10);

    /// So many waits in `poll` that a push ends.
    fn waits(rounds: u16) {
        let (mut out, inn) = spsc::channel::<Instant>(1);
        let (_keep, quiet) = UnixStream::pair().unwrap();
        let pusher = thread::spawn(move || {
            for _ in 0..rounds {
                thread::sleep(Duration::from_micros(300));
                out.push(Instant::now()).unwrap();
            }
        });
        let mut select = Select::with(Park);
        let items = select.add(inn);
        select.add(Readable::new(quiet));
        for _ in 0..rounds {
            while select[items].try_pop().is_err() {
                assert!(select.wait_timeout(PATIENCE).is_some(), "a wake-up was lost");
            }
        }
        pusher.join().unwrap();
    }

    /// One that has slept in `poll` forks. While it sleeps there again, the child is woken there many times: the two
    /// take no wake-ups from each other, and do not wake each other.
    #[test]
    fn a_child_sleeps_at_a_place_of_its_own() {
        const ROUNDS: u16 = 300;
        alone("descriptors::a_child_sleeps_at_a_place_of_its_own", || {
            waits(3);
            let (quiet, over) = UnixStream::pair().unwrap();
            // SAFETY: the other threads of this process wait, and hold no lock; the child ends by `_exit`.
            match unsafe { libc::fork() } {
                0 => {
                    let code = std::panic::catch_unwind(|| waits(ROUNDS)).is_err();
                    drop(over);
                    // SAFETY: it does not return.
                    unsafe { libc::_exit(code.into()) }
                }
                child => {
                    drop(over);
                    let (_out, inn) = spsc::channel::<u32>(1);
                    let mut select = Select::with(Park);
                    select.add(inn);
                    let end = select.add(Readable::new(quiet));
                    let before = sleeps();
                    // The child's end closes the other half.
                    assert_eq!(select.wait_timeout(4 * PATIENCE).unwrap(), end);
                    let slept = sleeps() - before;
                    let mut status = 0;
                    // SAFETY: the call writes the status.
                    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                    assert_eq!(status, 0, "the child lost a wake-up");
                    assert!(slept < libc::c_long::from(ROUNDS) / 10, "the child woke its parent: {slept} sleeps");
                }
            }
        });
    }

    /// There is none to be woken by in `poll`: such a wait looks again each millisecond.
    #[test]
    fn a_process_without_a_descriptor_to_spare_waits_as_well() {
        alone("descriptors::a_process_without_a_descriptor_to_spare_waits_as_well", || {
            let (mut out, inn) = spsc::channel::<u32>(1);
            let ((far, near), (_far, other)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
            let mut all = Vec::new();
            let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
            // SAFETY: the call reads the limit.
            assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
            while let Ok(one) = near.try_clone() {
                all.push(one);
            }
            let mut select = Select::with(Park);
            let (items, end) = (select.add(inn), select.add(Readable::new(&near)));
            let before = Instant::now();
            assert_eq!(select.wait_timeout(Duration::from_millis(20)), None);
            assert!(before.elapsed() >= Duration::from_millis(20));
            let pusher = thread::spawn(move || {
                thread::sleep(Duration::from_millis(20));
                out.push(7).unwrap();
                out
            });
            assert_eq!(select.wait().unwrap(), items);
            assert_eq!(select[items].try_pop(), Ok(7));
            drop(far);
            assert_eq!(select.wait().unwrap(), end);
            // It sleeps as others do once there is one.
            all.clear();
            let before = sleeps();
            select.remove(end).unwrap();
            select.add(Readable::new(&other));
            assert_eq!(select.wait_timeout(Duration::from_millis(100)), None);
            assert!(sleeps() - before < 50);
            drop(pusher.join().unwrap());
        });
    }
}
