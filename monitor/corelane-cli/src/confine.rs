//! Least privilege: what the process no longer needs once everything is open is given up for good.
//!
//! All commands read what strangers send. Whatever a packet, a capture or a batch might bring one to do, it can then
//! read its inputs, write in the folders of its outputs and answer on its sockets, and nothing else: no other file,
//! program, process, kind of socket, or server, unless one was named. And no memory that it has written can run.
//!
//! | protection | what it takes away |
//! |---|---|
//! | user and groups | root's files and processes |
//! | inherited files | those that the run was started with and has no use for |
//! | capabilities | all, in all five sets, but what [`Keeps`] says |
//! | no new privileges | set-user-ID programs and file capabilities |
//! | Landlock | files outside the folders, TCP to others and new ports, others' signals and abstract sockets |
//! | seccomp | system calls that the program does not make, such as `execve`, `ptrace`, `mount` and `bpf` |
//! | the same | new local sockets, as that of the service manager is connected by then; executable memory |
//!
//! All but the first two are best effort: what the kernel lacks is said, and the rest holds.
//!
//! # Why the system calls are a list of allowed ones
//!
//! A list of forbidden ones never ends: the kernel gets new calls, and x86-64 has a second set of numbers for the old
//! ones. An allowed list usually breaks when a new libc makes a new call. Here such a call gets `ENOSYS`, an old
//! kernel's answer, for which every libc has a fallback. So the list holds what the program and libc need by any
//! kernel, not what one libc was seen to do; a group of calls is in it as a whole. Refused calls never kill: a monitor
//! that cannot do one thing does the others, and says so.

use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{
    AccessFlags, Gid, Uid, getgrouplist, getgroups, getresgid, getresuid, setegid, seteuid, setgroups, setresgid,
    setresuid,
};
use std::ffi::CString;
use std::fmt;
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// What a process keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Confinement {
    /// The user to become; `None` stays.
    pub(crate) user: Option<User>,
    /// The folders in which files may be read, created, written, truncated, renamed and removed. They have to exist.
    pub(crate) folders_rw: Vec<PathBuf>,
    /// Files and folders that may be read besides, those of them that are there.
    pub(crate) readable: Vec<PathBuf>,
    /// Files, devices and pipes that may be read and written, likewise.
    pub(crate) writable: Vec<PathBuf>,
    /// What few runs need.
    pub(crate) keeps: Keeps,
    /// What is closed.
    pub(crate) inherited: Inherited,
}

/// What only some runs keep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keeps {
    /// CAP_NET_RAW and packet sockets, so that an interface can be opened again.
    pub(crate) net_raw: bool,
    /// CAP_DAC_READ_SEARCH, as root opens captures of others one after the other. Landlock says which.
    pub(crate) reading: bool,
    /// CAP_DAC_OVERRIDE, as root's aggregator reads and removes batches of sensors of other users.
    pub(crate) writing: bool,
    /// Connections to servers, and what it takes to find them by name.
    pub(crate) servers: bool,
}

/// Files and sockets that the process was started with, but for the standard ones. Some of them may be opened anew by
/// their number, as the outputs of a shell's `>(…)` are; after that they are a way out of the confinement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inherited(Vec<RawFd>);

impl Inherited {
    /// Looks for them. This has to come before the process opens anything that it keeps. None are found where `/proc`
    /// is missing.
    pub(crate) fn find() -> Self {
        let Ok(entries) = fs::read_dir("/proc/self/fd") else { return Inherited::default() };
        let all = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut others: Vec<RawFd> = all.filter(|&number| number > 2).collect();
        // The list itself was open, and is no longer.
        others.retain(|number| fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok());
        Inherited(others)
    }

    fn close(self) {
        // What the process opened since has other numbers. An error of closing is the giver's.
        for number in self.0 {
            let _ = nix::unistd::close(number);
        }
    }
}

/// A user and its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    name: String,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

/// Why a process could not be confined. It has to end then.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// There is no such user, or the system does not know.
    NoSuchUser(String, Errno),
    /// Only root becomes another user.
    NotRoot(String),
    /// A step of becoming that user failed.
    User(String, &'static str, Errno),
    /// A folder that cannot be allowed.
    Folder(PathBuf, String),
    /// Other threads would keep what they have.
    Threads(usize),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoSuchUser(name, Errno::UnknownErrno) => {
                write!(f, "--user {name}: there is no such user; create it, or name another one")
            }
            Refusal::NoSuchUser(name, error) => write!(f, "--user {name}: the user cannot be looked up: {error}"),
            Refusal::NotRoot(name) => {
                write!(f, "--user {name}: only root can become another user; start as root, or leave the option out")
            }
            Refusal::User(name, step, error) => write!(f, "--user {name}: {step} failed: {error}"),
            Refusal::Folder(path, error) => {
                write!(f, "{}: the folder of an output cannot be used: {error}", path.display())
            }
            Refusal::Threads(number) => write!(
                f,
                "the process has {number} threads, of which only one would give up its rights; please report this as a bug"
            ),
        }
    }
}

impl std::error::Error for Refusal {}

impl User {
    /// Looks a user up by name, with all its groups.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoSuchUser`].
    pub(crate) fn find(name: &str) -> Result<Self, Refusal> {
        let missing = |error| Refusal::NoSuchUser(name.to_owned(), error);
        let entry = nix::unistd::User::from_name(name).map_err(missing)?.ok_or(missing(Errno::UnknownErrno))?;
        let of_name = CString::new(name).map_err(|_| missing(Errno::EINVAL))?;
        let groups = getgrouplist(&of_name, entry.gid).map_err(missing)?;
        Ok(User { name: name.to_owned(), uid: entry.uid, gid: entry.gid, groups })
    }

    /// Acts with the rights of this user, and with root's again after that.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotRoot`] and [`Refusal::User`]. After the second one the process has to end.
    pub(crate) fn act<R>(&self, act: impl FnOnce() -> R) -> Result<R, Refusal> {
        let root = Uid::effective();
        if !root.is_root() {
            return Err(Refusal::NotRoot(self.name.clone()));
        }
        let failed = |step| move |error| Refusal::User(self.name.clone(), step, error);
        let (groups, gid) = (getgroups().map_err(failed("getgroups"))?, Gid::effective());
        setgroups(&self.groups).map_err(failed("setgroups"))?;
        setegid(self.gid).map_err(failed("setegid"))?;
        // The capabilities that open all files go, and come again, with the user.
        seteuid(self.uid).map_err(failed("seteuid"))?;
        let done = act();
        seteuid(root).map_err(failed("seteuid"))?;
        setegid(gid).map_err(failed("setegid"))?;
        setgroups(&groups).map_err(failed("setgroups"))?;
        Ok(done)
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Whether files can be created in a folder.
///
/// # Errors
///
/// Why not.
pub(crate) fn may_create(folder: &Path) -> Result<(), Errno> {
    nix::unistd::eaccess(folder, AccessFlags::W_OK | AccessFlags::X_OK)
}

/// What the process has given up, and what the kernel did not allow it to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) user: Protection,
    pub(crate) capabilities: Protection,
    pub(crate) no_new_privileges: Protection,
    pub(crate) landlock: Protection,
    pub(crate) seccomp: Protection,
}

/// One of the protections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// It holds; what it is exactly.
    Holds(String),
    /// It does not, or not all of it; why.
    Lacks(String),
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protection::Holds(what) => f.write_str(what),
            Protection::Lacks(why) => write!(f, "not given: {why}"),
        }
    }
}

impl Given {
    /// The protections by name.
    pub(crate) fn protections(&self) -> [(&'static str, &Protection); 5] {
        [
            ("user", &self.user),
            ("capabilities", &self.capabilities),
            ("no_new_privileges", &self.no_new_privileges),
            ("landlock", &self.landlock),
            ("seccomp", &self.seccomp),
        ]
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, protection)) in self.protections().into_iter().enumerate() {
            write!(f, "{}{name}: {protection}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl Confinement {
    /// Gives up everything else, for good. This has to come after all files, sockets and interfaces are open, and
    /// before the first thread is started: the kernel takes most of it from one thread only, and threads inherit it.
    ///
    /// Files outside the folders cannot be opened from then on, the program's own included: a backtrace has no lines.
    ///
    /// # Errors
    ///
    /// [`Refusal`]. The process may have given up a part by then, and has to end.
    pub(crate) fn apply(self) -> Result<Given, Refusal> {
        if let Ok(tasks) = fs::read_dir("/proc/self/task") {
            let threads = tasks.count();
            if threads > 1 {
                return Err(Refusal::Threads(threads));
            }
        }
        // The user may have no way to the folders but the one through their files.
        let ruleset = ruleset(&self)?;
        self.inherited.close();
        let capabilities = Capabilities::begin(self.keeps);
        let user = match &self.user {
            Some(user) => become_user(user, self.keeps)?,
            None if Uid::effective().is_root() => still_root(),
            None => Protection::Holds(format!("uid {}", Uid::effective())),
        };
        let capabilities = capabilities.end();
        let no_new_privileges = match prctl::set_no_new_privs() {
            Ok(()) => Protection::Holds("yes".to_owned()),
            Err(error) => Protection::Lacks(error.to_string()),
        };
        let landlock = restrict(ruleset);
        // It comes last, as it forbids the others.
        let seccomp = calls::restrict(self.keeps);
        Ok(Given { user, capabilities, no_new_privileges, landlock, seccomp })
    }
}

fn still_root() -> Protection {
    Protection::Lacks("still root; --user NAME names another".to_owned())
}

fn become_user(user: &User, keeps: Keeps) -> Result<Protection, Refusal> {
    let User { name, uid, gid, groups } = user;
    if !Uid::effective().is_root() {
        return Err(Refusal::NotRoot(name.clone()));
    }
    let failed = |step| move |error| Refusal::User(name.clone(), step, error);
    // Without this the change of user would take all capabilities. It is over with the next program.
    prctl::set_keepcaps(keeps.net_raw).map_err(failed("keeping CAP_NET_RAW"))?;
    // The groups come first: the user may not change them.
    setgroups(groups).map_err(failed("setgroups"))?;
    setresgid(*gid, *gid, *gid).map_err(failed("setresgid"))?;
    setresuid(*uid, *uid, *uid).map_err(failed("setresuid"))?;
    let (users, of) = (getresuid().map_err(failed("getresuid"))?, getresgid().map_err(failed("getresgid"))?);
    if [users.real, users.effective, users.saved] != [*uid; 3] || [of.real, of.effective, of.saved] != [*gid; 3] {
        return Err(Refusal::User(name.clone(), "becoming that user for good", Errno::EPERM));
    }
    prctl::set_keepcaps(false).map_err(failed("forgetting other capabilities"))?;
    if uid.is_root() {
        return Ok(still_root());
    }
    Ok(Protection::Holds(format!("{name} (uid {uid}, gid {gid})")))
}

/// The capabilities on their way down.
struct Capabilities {
    kept: caps::CapsHashSet,
    bounding: Result<(), caps::errors::CapsError>,
}

impl Capabilities {
    /// Takes what needs the right to do so, before that is gone with the user.
    fn begin(keeps: Keeps) -> Self {
        use caps::{CapSet, Capability};
        let wanted = [
            (keeps.net_raw, Capability::CAP_NET_RAW),
            (keeps.reading, Capability::CAP_DAC_READ_SEARCH),
            (keeps.writing, Capability::CAP_DAC_OVERRIDE),
        ];
        let is_there = |capability| caps::has_cap(None, CapSet::Permitted, capability).unwrap_or(false);
        let kept = wanted.into_iter().filter(|&(is_wanted, capability)| is_wanted && is_there(capability));
        let kept = kept.map(|(_, capability)| capability).collect();
        Capabilities { kept, bounding: caps::clear(None, CapSet::Bounding) }
    }

    fn end(self) -> Protection {
        use caps::CapSet;
        let none = caps::CapsHashSet::new();
        let dropped = caps::set(None, CapSet::Effective, &self.kept)
            .and_then(|()| caps::set(None, CapSet::Permitted, &self.kept))
            .and_then(|()| caps::set(None, CapSet::Inheritable, &none));
        // Ambient capabilities are inheritable ones, so they went with those; kernels before 4.3 have none.
        let left = caps::read(None, CapSet::Ambient).is_ok_and(|ambient| !ambient.is_empty());
        let kept = match self.kept.iter().next() {
            None => "none".to_owned(),
            Some(_) => self.kept.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        };
        match (dropped, self.bounding) {
            (Err(error), _) => Protection::Lacks(error.to_string()),
            (Ok(()), _) if left => Protection::Lacks("ambient capabilities are left".to_owned()),
            // The set bounds what programs that are executed get; there are none, by no new privileges.
            (Ok(()), Err(_)) => Protection::Holds(format!("{kept}; bounding set kept, as without CAP_SETPCAP")),
            (Ok(()), Ok(())) => Protection::Holds(kept),
        }
    }
}

/// The newest interface of Landlock whose rules are applied. A newer one may refuse what is needed.
const LANDLOCK: ABI = ABI::V6;

/// What it takes to find a server by its name, and to know its certificate.
pub(crate) const TO_CONNECT: [&str; 4] = ["/etc", "/run/systemd/resolve", "/usr/share/ca-certificates", "/usr/lib/ssl"];

/// What any run reads besides: the interfaces, whose entries lead to devices, and the process's own state.
const READABLE: [&str; 3] = ["/sys/class/net", "/sys/devices", "/proc/self"];

/// Makes the rules of files. The folders are opened now: later their paths may be closed to the process.
fn ruleset(confinement: &Confinement) -> Result<Result<RulesetCreated, RulesetError>, Refusal> {
    let Confinement { folders_rw, readable, writable, keeps, .. } = confinement;
    // Truncation destroys as much as removal.
    let written = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::RemoveFile;
    let mut open = Vec::new();
    for folder in folders_rw {
        // The folder of a bare name.
        let path = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let refused = |error: String| Refusal::Folder(path.to_owned(), error);
        if !fs::metadata(path).map_err(|error| refused(error.to_string()))?.is_dir() {
            return Err(refused("not a folder".to_owned()));
        }
        open.push((PathFd::new(path).map_err(|error| refused(error.to_string()))?, written));
    }
    // What is not there need not be read.
    let readable = READABLE.iter().map(Path::new).chain(readable.iter().map(PathBuf::as_path));
    open.extend(readable.filter_map(|path| {
        let access = if path.is_dir() { AccessFs::ReadFile | AccessFs::ReadDir } else { AccessFs::ReadFile.into() };
        Some((PathFd::new(path).ok()?, access))
    }));
    let both = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    open.extend(writable.iter().filter_map(|path| Some((PathFd::new(path).ok()?, both))));
    // Names may be asked for by TCP, and a cluster has servers at other ports.
    let tcp = if keeps.servers { AccessNet::BindTcp.into() } else { AccessNet::BindTcp | AccessNet::ConnectTcp };
    let create = || {
        let mut ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(LANDLOCK))?
            .handle_access(tcp)?
            .scope(Scope::AbstractUnixSocket | Scope::Signal)?
            .create()?;
        for (folder, access) in open {
            ruleset = ruleset.add_rule(PathBeneath::new(folder, access))?;
        }
        Ok(ruleset)
    };
    Ok(create())
}

fn restrict(ruleset: Result<RulesetCreated, RulesetError>) -> Protection {
    let restricted = ruleset.and_then(RulesetCreated::restrict_self);
    match restricted {
        Err(error) => Protection::Lacks(error.to_string()),
        Ok(status) => match (status.landlock, status.ruleset) {
            (LandlockStatus::NotImplemented, _) => Protection::Lacks("the kernel has no Landlock".to_owned()),
            (LandlockStatus::NotEnabled, _) => Protection::Lacks("Landlock is not enabled in this kernel".to_owned()),
            (_, RulesetStatus::NotEnforced) => Protection::Lacks("the kernel enforces none of the rules".to_owned()),
            (LandlockStatus::Available { effective_abi, .. }, RulesetStatus::FullyEnforced) => {
                Protection::Holds(format!("all rules, by ABI {}", effective_abi as i32))
            }
            (LandlockStatus::Available { effective_abi, .. }, RulesetStatus::PartiallyEnforced) => {
                Protection::Holds(format!("the rules that ABI {} knows", effective_abi as i32))
            }
        },
    }
}

/// The system calls.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod calls {
    use super::{Keeps, Protection};
    use nix::libc;
    use seccompiler::{
        BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };
    use std::collections::BTreeMap;

    /// Calls that are allowed with any arguments. Newer calls have the same numbers everywhere, and libc may not name
    /// them.
    const ALLOWED: &[&[libc::c_long]] = &[
        // Files. Which ones is Landlock's to say.
        &[
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_readv,
            libc::SYS_writev,
            libc::SYS_pread64,
            libc::SYS_pwrite64,
            libc::SYS_preadv,
            libc::SYS_pwritev,
            libc::SYS_lseek,
            libc::SYS_openat,
            437, // openat2
            libc::SYS_close,
            436, // close_range
            libc::SYS_fstat,
            libc::SYS_newfstatat,
            libc::SYS_statx,
            libc::SYS_statfs,
            libc::SYS_fstatfs,
            libc::SYS_truncate,
            libc::SYS_ftruncate,
            libc::SYS_fallocate,
            libc::SYS_fsync,
            libc::SYS_fdatasync,
            libc::SYS_fcntl,
            libc::SYS_flock,
            libc::SYS_getdents64,
            libc::SYS_getcwd,
            libc::SYS_readlinkat,
            libc::SYS_faccessat,
            439, // faccessat2
            libc::SYS_unlinkat,
            libc::SYS_renameat,
            libc::SYS_renameat2,
            libc::SYS_umask,
            libc::SYS_dup,
            libc::SYS_dup3,
            libc::SYS_pipe2,
            libc::SYS_sendfile,
            libc::SYS_splice,
            libc::SYS_copy_file_range,
            libc::SYS_fadvise64,
        ],
        #[cfg(target_arch = "x86_64")]
        &[
            libc::SYS_open,
            libc::SYS_stat,
            libc::SYS_lstat,
            libc::SYS_access,
            libc::SYS_readlink,
            libc::SYS_unlink,
            libc::SYS_rename,
            libc::SYS_dup2,
            libc::SYS_pipe,
            libc::SYS_getdents,
        ],
        // Memory; `mmap` and `mprotect` are below.
        &[
            libc::SYS_brk,
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_madvise,
            libc::SYS_msync,
            libc::SYS_mlock,
            libc::SYS_munlock,
            libc::SYS_mincore,
        ],
        // Threads; `clone` is below.
        &[
            libc::SYS_futex,
            449, // futex_waitv
            454, // futex_wake
            455, // futex_wait
            456, // futex_requeue
            libc::SYS_membarrier,
            libc::SYS_rseq,
            libc::SYS_set_robust_list,
            libc::SYS_get_robust_list,
            libc::SYS_set_tid_address,
            libc::SYS_getpid,
            libc::SYS_gettid,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_sched_yield,
            libc::SYS_sched_getaffinity,
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_getparam,
            libc::SYS_sched_getscheduler,
            libc::SYS_getcpu,
        ],
        #[cfg(target_arch = "x86_64")]
        &[libc::SYS_arch_prctl],
        // Signals. Landlock and the user bound whom `tgkill` reaches; `abort` and `raise` need it.
        &[
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_rt_sigpending,
            libc::SYS_rt_sigsuspend,
            libc::SYS_rt_sigtimedwait,
            libc::SYS_sigaltstack,
            libc::SYS_restart_syscall,
            libc::SYS_tgkill,
            libc::SYS_tkill,
        ],
        // Time.
        &[
            libc::SYS_clock_gettime,
            libc::SYS_clock_getres,
            libc::SYS_clock_nanosleep,
            libc::SYS_nanosleep,
            libc::SYS_gettimeofday,
            libc::SYS_times,
            libc::SYS_getrusage,
            libc::SYS_timerfd_create,
            libc::SYS_timerfd_settime,
            libc::SYS_timerfd_gettime,
        ],
        #[cfg(target_arch = "x86_64")]
        &[libc::SYS_time],
        // Waits.
        &[
            libc::SYS_ppoll,
            libc::SYS_pselect6,
            libc::SYS_epoll_create1,
            libc::SYS_epoll_ctl,
            libc::SYS_epoll_pwait,
            441, // epoll_pwait2
            libc::SYS_eventfd2,
        ],
        #[cfg(target_arch = "x86_64")]
        &[libc::SYS_poll, libc::SYS_select, libc::SYS_epoll_wait, libc::SYS_epoll_create, libc::SYS_eventfd],
        // Sockets that are there; new ones and their ways out are below. A pair is of this process alone.
        &[
            libc::SYS_socketpair,
            libc::SYS_accept,
            libc::SYS_accept4,
            libc::SYS_getsockname,
            libc::SYS_getpeername,
            libc::SYS_recvfrom,
            libc::SYS_recvmsg,
            libc::SYS_recvmmsg,
            libc::SYS_shutdown,
            libc::SYS_setsockopt,
            libc::SYS_getsockopt,
        ],
        // Facts.
        &[
            libc::SYS_uname,
            libc::SYS_sysinfo,
            libc::SYS_getrandom,
            libc::SYS_getuid,
            libc::SYS_geteuid,
            libc::SYS_getgid,
            libc::SYS_getegid,
            libc::SYS_getppid,
            libc::SYS_getresuid,
            libc::SYS_getresgid,
            libc::SYS_capget,
            libc::SYS_getrlimit,
        ],
    ];

    /// Kinds of sockets to servers: TCP, and UDP for their names.
    const SOCKETS: [(libc::c_int, libc::c_int); 4] = [
        (libc::AF_INET, libc::SOCK_STREAM),
        (libc::AF_INET, libc::SOCK_DGRAM),
        (libc::AF_INET6, libc::SOCK_STREAM),
        (libc::AF_INET6, libc::SOCK_DGRAM),
    ];
    /// Kinds of sockets to the kernel. They are for its list of interfaces and addresses only, by which a server's
    /// addresses are sorted: the other protocols lead to large parts of it that no monitor needs.
    const NETLINK: [libc::c_int; 2] = [libc::SOCK_RAW, libc::SOCK_DGRAM];

    /// Forbids all other calls.
    pub(super) fn restrict(keeps: Keeps) -> Protection {
        let applied = program(keeps)
            .map_err(seccompiler::Error::from)
            .and_then(|(program, calls)| seccompiler::apply_filter_all_threads(&program).map(|()| calls));
        match applied {
            Ok(calls) => Protection::Holds(format!("{calls} system calls are left")),
            Err(error) => Protection::Lacks(error.to_string()),
        }
    }

    /// The filter, and how many calls it lets through.
    pub(super) fn program(keeps: Keeps) -> Result<(BpfProgram, usize), BackendError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        for &call in ALLOWED.iter().copied().flatten() {
            rules.insert(call, Vec::new());
        }
        let mut kinds = if keeps.servers { SOCKETS.to_vec() } else { Vec::new() };
        if keeps.net_raw {
            kinds.extend([(libc::AF_PACKET, libc::SOCK_RAW), (libc::AF_PACKET, libc::SOCK_DGRAM)]);
        }
        // The kind has flags beside it.
        let is_kind = SeccompCmpOp::MaskedEq(0xf);
        for (domain, kind) in kinds {
            let rule = [when(0, SeccompCmpOp::Eq, domain as u64)?, when(1, is_kind.clone(), kind as u64)?];
            rules.entry(libc::SYS_socket).or_default().push(SeccompRule::new(rule.into())?);
            rules.insert(libc::SYS_bind, Vec::new());
        }
        if keeps.servers {
            for kind in NETLINK {
                let rule = [
                    when(0, SeccompCmpOp::Eq, libc::AF_NETLINK as u64)?,
                    when(1, is_kind.clone(), kind as u64)?,
                    when(2, SeccompCmpOp::Eq, libc::NETLINK_ROUTE as u64)?,
                ];
                rules.entry(libc::SYS_socket).or_default().push(SeccompRule::new(rule.into())?);
            }
            for call in [libc::SYS_connect, libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg] {
                rules.insert(call, Vec::new());
            }
        } else {
            // To where the socket is connected, and to no other address.
            let nowhere = SeccompCondition::new(4, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
            rules.insert(libc::SYS_sendto, vec![SeccompRule::new(vec![nowhere])?]);
        }
        // All code is there by now. Memory that is written cannot be executed, nor can a file that was.
        let executes = libc::PROT_EXEC as u64;
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            let not_executable = when(2, SeccompCmpOp::MaskedEq(executes), 0)?;
            rules.insert(call, vec![SeccompRule::new(vec![not_executable])?]);
        }
        // Threads, but no processes. The arguments of `clone3` are out of reach, so libc has to do without it.
        let thread = libc::CLONE_THREAD as u64;
        let is_thread = SeccompRule::new(vec![when(0, SeccompCmpOp::MaskedEq(thread), thread)?])?;
        rules.insert(libc::SYS_clone, vec![is_thread]);
        // These two put characters into the input of a terminal, from which a shell reads them later.
        let (tiocsti, tioclinux) = (0x5412, 0x541c);
        let harmless = [when(1, SeccompCmpOp::Ne, tiocsti)?, when(1, SeccompCmpOp::Ne, tioclinux)?];
        rules.insert(libc::SYS_ioctl, vec![SeccompRule::new(harmless.into())?]);
        // Names of threads and memory. Limits are read only: a null pointer brings no new one.
        for option in [libc::PR_SET_NAME, libc::PR_GET_NAME, libc::PR_SET_VMA] {
            let rule = SeccompRule::new(vec![when(0, SeccompCmpOp::Eq, option as u64)?])?;
            rules.entry(libc::SYS_prctl).or_default().push(rule);
        }
        let no_new_limit = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)?;
        rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![no_new_limit])?]);

        let calls = rules.len();
        let unknown = SeccompAction::Errno(libc::ENOSYS as u32);
        let filter = SeccompFilter::new(rules, unknown, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?;
        Ok((filter.try_into()?, calls))
    }

    fn when(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod calls {
    pub(super) fn restrict(_keeps: super::Keeps) -> super::Protection {
        super::Protection::Lacks("there is no list of system calls for this processor".to_owned())
    }
}
