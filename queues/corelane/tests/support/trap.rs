//! System calls of one thread that a test counts, answers in the kernel's place, or holds.

use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// One system call of the thread that set it.
pub(crate) struct Trap {
    calls: AtomicUsize,
    holds: AtomicBool,
    answer: libc::c_long,
}

std::thread_local! {
    static TRAP: Cell<Option<&'static Trap>> = const { Cell::new(None) };
}

impl Trap {
    /// From now on this call of this thread is counted and gets this answer: 0, or an error number below 0. To the
    /// threads that it starts the call is unknown. None where that cannot be done. A thread sets one, once.
    pub(crate) fn set(call: libc::c_long, answer: libc::c_long) -> Option<&'static Self> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // SAFETY: a zeroed action is one; the handler touches atomics, a thread's cell without a destructor, and
            // its own frame.
            unsafe {
                let mut action: libc::sigaction = core::mem::zeroed();
                action.sa_sigaction = answer_call as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO;
                assert_eq!(libc::sigaction(libc::SIGSYS, &raw const action, core::ptr::null_mut()), 0);
            }
        });
        let trap: &'static Self =
            Box::leak(Box::new(Self { calls: AtomicUsize::new(0), holds: AtomicBool::new(false), answer }));
        TRAP.set(Some(trap));
        let filter = |code, jf, k| libc::sock_filter { code, jt: 0, jf, k };
        let mut filter = [
            // Loads the call's number; skips the trap if it is another; traps; allows.
            filter(0x20, 0, 0),
            filter(0x15, 1, call as u32),
            filter(0x06, 0, libc::SECCOMP_RET_TRAP),
            filter(0x06, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
        // SAFETY: the program and its length are right, and both live as long as the calls; the kernel checks the rest.
        let is_set = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))
            && unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                    && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
            };
        is_set.then_some(trap)
    }

    /// How often the call was made.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(SeqCst)
    }

    /// The next call does not return before it is let go.
    pub(crate) fn hold(&self) {
        self.holds.store(true, SeqCst);
    }

    pub(crate) fn let_go(&self) {
        self.holds.store(false, SeqCst);
    }
}

extern "C" fn answer_call(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let answer = match TRAP.get() {
        Some(trap) => {
            trap.calls.fetch_add(1, SeqCst);
            while trap.holds.load(SeqCst) {
                // SAFETY: no memory is involved.
                unsafe { libc::usleep(100) };
            }
            trap.answer
        }
        // A thread that such a one has started.
        None => -libc::c_long::from(libc::ENOSYS),
    };
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the kernel gives the handler its thread's context, whose register for the answer is ours to write.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        (*context).uc_mcontext.gregs[libc::REG_RAX as usize] = answer;
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        (*context).uc_mcontext.regs[0] = answer as u64;
    }
    let _ = (context, answer);
}

/// Says that a test is not run, whatever the harness captures.
pub(crate) fn skipped() {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED: this process may not set a filter for system calls");
}
