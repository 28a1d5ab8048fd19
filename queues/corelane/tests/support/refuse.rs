//! System calls that a test refuses to its own thread.

/// Lets membarrier fail, as on a kernel that does not know it, for this thread and those it starts. False if that is
/// not allowed.
pub(crate) fn membarrier() -> bool {
    const LOAD_NUMBER: libc::sock_filter = libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    const IF_MEMBARRIER: libc::sock_filter =
        libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: libc::SYS_membarrier as u32 };
    const REFUSE: libc::sock_filter =
        libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32 };
    const ALLOW: libc::sock_filter = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let mut filter = [LOAD_NUMBER, IF_MEMBARRIER, REFUSE, ALLOW];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its length are right, and both live as long as the calls; the kernel checks the rest.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
            && libc::syscall(libc::SYS_membarrier, 0, 0, 0) == -1
    }
}
