//! What a confined process can still do, and what it cannot. Confinement is for good, so every case runs in a process
//! of its own: this program again, with the case's name.

#[cfg(target_os = "linux")]
#[path = "../src/confine.rs"]
#[allow(dead_code, unreachable_pub, reason = "a module of the program")]
mod confine;

#[cfg(target_os = "linux")]
fn main() {
    cases::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("SKIPPED: confinement is Linux's");
}

#[cfg(target_os = "linux")]
mod cases {
    use crate::confine::{Confinement, Given, Inherited, Keeps, Protection, Refusal, User, may_create};
    use corelane::spsc;
    use corelane_monitor::eve::Events;
    use corelane_monitor::{Found, Inspection, Job, Observer, Plan, Progress, Settings};
    use corelane_net::capture::Reader;
    use corelane_net::synth::{self, Config};
    use landlock::{AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
    use nix::errno::Errno;
    use nix::sched::{CloneFlags, unshare};
    use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
    use nix::unistd::{Gid, Uid, setgroups, setuid};
    use std::ffi::OsStr;
    use std::fs::{self, File, OpenOptions};
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::IntoRawFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::{Condvar, Mutex, mpsc};
    use std::time::Duration;
    use std::{io, thread};

    /// The user that owns nothing, on every system.
    const USER: &str = "nobody";

    /// Whom a case starts as.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum As {
        Root,
        Nobody,
    }

    type Case = (&'static str, As, fn(&Path));

    const CASES: &[Case] = &[
        ("root_becomes_another_user_and_gives_up_all", As::Root, gives_up_all),
        ("the_right_to_capture_can_be_kept", As::Root, keeps_net_raw),
        ("root_without_a_user_gives_up_the_rest", As::Root, stays_root),
        ("root_by_its_name_is_still_root", As::Root, root_by_name),
        ("a_user_gives_up_what_it_has", As::Nobody, a_user),
        ("outputs_are_opened_as_another_user_and_root_comes_back", As::Root, acts_as_a_user),
        ("what_was_inherited_is_closed", As::Root, closes_what_it_inherited),
        ("root_may_read_captures_of_others", As::Root, reads_of_others),
        ("what_others_listen_on_is_out_of_reach", As::Root, reaches_nobody),
        ("the_program_still_works", As::Root, works),
        ("an_analysis_finds_the_same", As::Root, analyses),
        ("outputs_are_rotated", As::Root, rotates),
        ("what_the_kernel_lacks_is_said", As::Root, lacks),
        ("threads_are_refused", As::Nobody, threads),
        ("only_root_becomes_another_user", As::Nobody, not_root),
        ("a_folder_has_to_be_there", As::Nobody, no_folder),
        ("a_user_has_to_be_there", As::Nobody, no_user),
    ];

    pub(crate) fn main() {
        let arguments: Vec<_> = std::env::args_os().skip(1).collect();
        if arguments.first().is_some_and(|first| first == "--case") {
            let name = &arguments[1];
            let (.., case) = CASES.iter().find(|(known, ..)| OsStr::new(known) == name).expect("a case");
            return case(Path::new(&arguments[2]));
        }
        if arguments.iter().any(|argument| argument == "--list") {
            CASES.iter().for_each(|(name, ..)| println!("{name}: test"));
            return;
        }
        let filters: Vec<_> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
        let filters: Vec<_> = filters.into_iter().filter(|argument| !argument.starts_with('-')).collect();
        let chosen: Vec<_> =
            CASES.iter().filter(|(name, ..)| filters.is_empty() || filters.iter().any(|f| name.contains(f))).collect();
        println!("\nrunning {} tests", chosen.len());
        let mut failed = 0;
        let mut ignored = 0;
        for (name, of, _) in &chosen {
            if !Uid::effective().is_root() {
                println!("test {name} ... SKIPPED: only root can start processes of other users");
                ignored += 1;
                continue;
            }
            let is_well = run(name, *of);
            println!("test {name} ... {}", if is_well { "ok" } else { "FAILED" });
            failed += usize::from(!is_well);
        }
        let passed = chosen.len() - failed - ignored;
        let result = if failed == 0 { "ok" } else { "FAILED" };
        println!("\ntest result: {result}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured");
        if failed > 0 {
            std::process::exit(101);
        }
    }

    /// Runs a case with two folders: `inside`, which it may allow, and `outside`. Both are open to all users.
    fn run(name: &str, of: As) -> bool {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        open(folder.path());
        for name in ["inside", "outside"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            open(&folder.path().join(name));
            fs::write(folder.path().join(name).join("old"), "old\n").unwrap();
            fs::set_permissions(folder.path().join(name).join("old"), fs::Permissions::from_mode(0o666)).unwrap();
        }
        // Another user need not reach the folder in which this program was built.
        let program = folder.path().join("program");
        fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let mut command = Command::new(program);
        command.arg("--case").arg(name).arg(folder.path()).stdin(Stdio::null()).current_dir(folder.path());
        if of == As::Nobody {
            let (uid, gid) = ids();
            command.uid(uid).gid(gid);
        }
        let output = command.output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        said.lines().filter(|line| line.starts_with("SKIPPED")).for_each(|line| println!("{line}"));
        if !output.status.success() {
            println!("{}{}", String::from_utf8_lossy(&output.stdout), said);
        }
        output.status.success()
    }

    fn confinement(folder: &Path) -> Confinement {
        Confinement { folders_rw: vec![folder.join("inside")], ..Confinement::default() }
    }

    /// The numbers of the user and its group.
    fn ids() -> (u32, u32) {
        let user = nix::unistd::User::from_name(USER).unwrap().expect("a user");
        (user.uid.as_raw(), user.gid.as_raw())
    }

    fn as_nobody(folder: &Path) -> Confinement {
        Confinement { user: Some(User::find(USER).expect("a user")), ..confinement(folder) }
    }

    /// A line of the kernel's facts about this process or thread.
    fn holds(protection: &Protection) -> bool {
        matches!(protection, Protection::Holds(_))
    }

    fn status_of(of: &str, field: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{of}/status")).expect("readable also when confined");
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).expect("a field");
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn status(field: &str) -> String {
        status_of("self", field)
    }

    /// The inheritable, permitted, effective, bounding and ambient capabilities, in the kernel's order.
    fn capability_sets() -> [u64; 5] {
        let status = fs::read_to_string("/proc/self/status").expect("readable also when confined");
        let sets = status.lines().filter_map(|line| line.strip_prefix("Cap")?.split_once(":\t"));
        let sets: Vec<_> = sets.map(|(_, set)| u64::from_str_radix(set, 16).unwrap()).collect();
        sets.try_into().expect("five sets")
    }

    const NET_RAW: u64 = 1 << 13;

    fn append(path: impl AsRef<Path>) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).open(path)
    }

    /// Confines this process. The kernel's Landlock must not be left out.
    fn apply(confinement: Confinement) -> Given {
        let kernel = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let is_there = kernel.handle_access(AccessFs::Execute).and_then(|ruleset| ruleset.create()).is_ok();
        let given = confinement.apply().unwrap();
        assert_eq!(holds(&given.landlock), is_there, "{given}");
        given
    }

    /// What holds after every confinement.
    fn check_confined(given: &Given, folder: &Path) {
        println!("{given}");
        assert_eq!(status("NoNewPrivs"), "1");
        assert!(holds(&given.no_new_privileges));
        let has_filter = status("Seccomp") == "2";
        assert_eq!(holds(&given.seccomp), has_filter, "{given}");
        if has_filter {
            check_calls();
            check_memory();
        } else {
            eprintln!("SKIPPED: the kernel gives no seccomp: {given}");
        }
        if holds(&given.landlock) {
            check_files(folder);
        } else {
            eprintln!("SKIPPED: the kernel gives no Landlock: {given}");
        }
        assert!(fs::read_dir("/sys/class/net").unwrap().count() > 0);
        assert!(fs::read_to_string("/sys/class/net/lo/operstate").is_ok());
    }

    fn check_calls() {
        // With capabilities alone these would be EPERM, and the first none at all.
        let child = Command::new("/bin/true").spawn().map(|mut child| child.wait());
        assert_eq!(child.unwrap_err().raw_os_error(), Some(Errno::ENOSYS as i32));
        let error = Command::new("/bin/true").exec();
        assert_eq!(error.raw_os_error(), Some(Errno::ENOSYS as i32));
        assert_eq!(setuid(Uid::from_raw(0)), Err(Errno::ENOSYS));
        assert_eq!(unshare(CloneFlags::CLONE_NEWUSER), Err(Errno::ENOSYS));
        assert_eq!(nix::unistd::chroot("/"), Err(Errno::ENOSYS));
        assert_eq!(nix::mount::umount("/proc"), Err(Errno::ENOSYS));
        assert_eq!(nix::sys::ptrace::traceme(), Err(Errno::ENOSYS));
        let kinds = [
            (AddressFamily::Unix, SockType::Stream),
            (AddressFamily::Unix, SockType::Datagram),
            (AddressFamily::Unix, SockType::SeqPacket),
            (AddressFamily::Inet, SockType::Stream),
            (AddressFamily::Inet, SockType::Datagram),
            (AddressFamily::Inet6, SockType::Stream),
            (AddressFamily::Inet6, SockType::Datagram),
            (AddressFamily::Vsock, SockType::Stream),
            (AddressFamily::Alg, SockType::SeqPacket),
            (AddressFamily::Inet, SockType::Raw),
            (AddressFamily::Inet6, SockType::Raw),
        ];
        for (family, kind) in kinds {
            let refused = socket(family, kind, SockFlag::SOCK_CLOEXEC, None).map(drop);
            assert_eq!(refused, Err(Errno::ENOSYS), "{family:?} {kind:?}");
        }
        let netlink =
            |protocol| socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol).map(drop);
        for protocol in [
            SockProtocol::NetlinkRoute,
            SockProtocol::NetlinkNetFilter,
            SockProtocol::NetlinkAudit,
            SockProtocol::NetlinkSockDiag,
        ] {
            assert_eq!(netlink(protocol), Err(Errno::ENOSYS), "{protocol:?}");
        }
    }

    /// Code that is written can never run.
    fn check_memory() {
        use nix::libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE, mmap, mprotect};
        let page = |protection| {
            // SAFETY: a new page, which nothing refers to.
            let page = unsafe { mmap(std::ptr::null_mut(), 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
            if page == MAP_FAILED { Err(Errno::last()) } else { Ok(page) }
        };
        for protection in [PROT_EXEC, PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC] {
            assert_eq!(page(protection), Err(Errno::ENOSYS), "{protection}");
        }
        let written = page(PROT_READ | PROT_WRITE).expect("memory");
        // SAFETY: the page is there, and stays.
        let changed = |protection| Errno::result(unsafe { mprotect(written, 4096, protection) }).map(drop);
        assert_eq!(changed(PROT_READ | PROT_EXEC), Err(Errno::ENOSYS));
        assert_eq!(changed(PROT_READ), Ok(()));
    }

    fn check_files(folder: &Path) {
        let (inside, outside) = (folder.join("inside"), folder.join("outside"));
        let denied = |result: io::Result<File>| {
            assert_eq!(result.map(drop).map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied));
        };
        // The user may do all of this, but for Landlock.
        denied(File::open(outside.join("old")));
        denied(append(outside.join("old")));
        denied(append(outside.join("new")));
        denied(File::open("/etc/passwd"));
        denied(File::open("/"));
        denied(File::open(inside.join("../outside/old")));
        assert!(fs::rename(inside.join("old"), outside.join("new")).is_err());
        assert!(fs::create_dir(inside.join("folder")).is_err(), "files only");
        assert!(std::os::unix::fs::symlink("/etc/passwd", inside.join("link")).is_err());
        assert_eq!(fs::read(inside.join("old")).unwrap(), b"old\n");
        append(inside.join("new")).unwrap().write_all(b"new\n").unwrap();
        fs::rename(inside.join("new"), inside.join("newer")).unwrap();
        let file = append(inside.join("new")).unwrap();
        (&file).write_all(b"a line and a torn one").unwrap();
        file.set_len(6).unwrap();
        assert_eq!(fs::read(inside.join("new")).unwrap(), b"a line");
        fs::remove_file(inside.join("newer")).unwrap();
    }

    fn gives_up_all(folder: &Path) {
        let (uid, gid) = ids();
        // Root may be a member of others' groups.
        setgroups(&[Gid::from_raw(0), Gid::from_raw(4)]).unwrap();
        // Open before, and usable after.
        let mut before = append(folder.join("outside/log")).unwrap();
        let secret = folder.join("inside/secret");
        fs::write(&secret, "root's").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let given = apply(as_nobody(folder));
        assert_eq!(status("Uid"), [uid; 4].map(|uid| uid.to_string()).join(" "));
        assert_eq!(status("Gid"), [gid; 4].map(|gid| gid.to_string()).join(" "));
        assert_eq!(status("Groups"), gid.to_string());
        assert_eq!(capability_sets(), [0; 5]);
        assert_eq!(given.user, Protection::Holds(format!("{USER} (uid {uid}, gid {gid})")));
        assert_eq!(given.capabilities, Protection::Holds("none".to_owned()));
        check_confined(&given, folder);
        assert_eq!(File::open(&secret).unwrap_err().kind(), ErrorKind::PermissionDenied);
        let packets = socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), None).map(drop);
        assert!(packets.is_err());
        before.write_all(b"still open\n").unwrap();
    }

    fn keeps_net_raw(folder: &Path) {
        let given = apply(Confinement { keeps: Keeps { net_raw: true, ..Keeps::default() }, ..as_nobody(folder) });
        assert_eq!(capability_sets(), [0, NET_RAW, NET_RAW, 0, 0]);
        assert_eq!(given.capabilities, Protection::Holds("CAP_NET_RAW".to_owned()));
        check_confined(&given, folder);
        socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None).unwrap();
        // In threads that start later, too.
        let has_it = thread::spawn(|| status_of("thread-self", "CapEff")).join().unwrap();
        assert_eq!(u64::from_str_radix(&has_it, 16), Ok(NET_RAW));
    }

    fn stays_root(folder: &Path) {
        let given = apply(confinement(folder));
        assert_eq!(status("Uid"), "0 0 0 0");
        assert!(!holds(&given.user) && given.to_string().contains("user: not given: still root"), "{given}");
        assert_eq!(capability_sets(), [0; 5]);
        check_confined(&given, folder);
    }

    fn a_user(folder: &Path) {
        let bounding = capability_sets()[3];
        let given = apply(Confinement { keeps: Keeps { net_raw: true, ..Keeps::default() }, ..confinement(folder) });
        // There was nothing to keep, and no right to lower the bound of what is executed, which is nothing.
        assert_eq!(capability_sets(), [0, 0, 0, bounding, 0]);
        assert!(holds(&given.user));
        assert_eq!(given.capabilities, Protection::Holds("none; bounding set kept, as without CAP_SETPCAP".to_owned()));
        check_confined(&given, folder);
    }

    fn root_by_name(folder: &Path) {
        let given = apply(Confinement { user: Some(User::find("root").unwrap()), ..confinement(folder) });
        assert!(given.to_string().contains("user: not given: still root"), "{given}");
    }

    /// As for opening the outputs, before all else is given up.
    fn acts_as_a_user(folder: &Path) {
        setgroups(&[Gid::from_raw(0), Gid::from_raw(4)]).unwrap();
        let rights = || ["Uid", "Gid", "Groups"].map(status);
        let before = (rights(), capability_sets());
        let (inside, secret) = (folder.join("inside"), folder.join("secret"));
        fs::write(&secret, "root's").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let done = User::find(USER).unwrap().act(|| {
            append(inside.join("new")).unwrap();
            std::os::unix::fs::symlink(&secret, inside.join("link")).unwrap();
            (rights(), append(inside.join("link")).unwrap_err().kind(), may_create(&inside), may_create(Path::new("/")))
        });
        let (uid, gid) = ids();
        let during = [format!("0 {uid} 0 {uid}"), format!("0 {gid} 0 {gid}"), gid.to_string()];
        assert_eq!(done.unwrap(), (during, ErrorKind::PermissionDenied, Ok(()), Err(Errno::EACCES)));
        assert_eq!((rights(), capability_sets()), before);
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&fs::metadata(inside.join("new")).unwrap()), uid);
        assert_eq!(may_create(Path::new("/")), Ok(()));
    }

    fn closes_what_it_inherited(folder: &Path) {
        let theirs = [File::open("/etc/passwd").unwrap(), append(folder.join("outside/log")).unwrap()];
        let theirs = theirs.map(IntoRawFd::into_raw_fd);
        let inherited = Inherited::find();
        let mut ours = append(folder.join("inside/log")).unwrap();
        apply(Confinement { inherited, ..as_nobody(folder) });
        for number in theirs {
            assert!(fs::read_link(format!("/proc/self/fd/{number}")).is_err(), "{number}");
        }
        ours.write_all(b"still open\n").unwrap();
        for number in 0..3 {
            fs::read_link(format!("/proc/self/fd/{number}")).expect("a standard one");
        }
    }

    /// Root's files of any user, but only the ones that are named.
    fn reads_of_others(folder: &Path) {
        let (uid, gid) = ids();
        let [named, other] = ["outside/capture", "outside/other"].map(|name| folder.join(name));
        for path in [&named, &other] {
            fs::write(path, "a capture").unwrap();
            std::os::unix::fs::chown(path, Some(uid), Some(gid)).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let keeps = Keeps { reading: true, ..Keeps::default() };
        let given = apply(Confinement { keeps, readable: vec![named.clone()], ..confinement(folder) });
        assert_eq!(given.capabilities, Protection::Holds("CAP_DAC_READ_SEARCH".to_owned()));
        check_confined(&given, folder);
        assert_eq!(fs::read_to_string(&named).unwrap(), "a capture");
        if holds(&given.landlock) {
            assert_eq!(File::open(&other).unwrap_err().kind(), ErrorKind::PermissionDenied);
            assert_eq!(append(&named).unwrap_err().kind(), ErrorKind::PermissionDenied);
        }
    }

    /// Sockets that only root may write to, and servers of this machine and of others.
    fn reaches_nobody(folder: &Path) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let path = folder.join("inside/socket");
        let local = UnixDatagram::bind(&path).unwrap();
        local.set_nonblocking(true).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        // A socket of the service manager, which is open from before, leads there and nowhere else.
        let manager = UnixDatagram::bind(folder.join("inside/manager")).unwrap();
        let notify = UnixDatagram::unbound().unwrap();
        notify.connect(folder.join("inside/manager")).unwrap();
        let given = apply(confinement(folder));
        check_confined(&given, folder);
        if !holds(&given.seccomp) {
            return;
        }
        assert!(TcpStream::connect(listener.local_addr().unwrap()).is_err());
        assert!(UnixDatagram::unbound().is_err());
        assert!(UdpSocket::bind("127.0.0.1:0").is_err());
        assert_eq!(notify.send_to(b"x", &path).unwrap_err().raw_os_error(), Some(Errno::ENOSYS as i32));
        assert_eq!(notify.connect(&path).unwrap_err().raw_os_error(), Some(Errno::ENOSYS as i32));
        assert_eq!(local.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
        notify.send(b"READY=1").unwrap();
        let mut heard = [0; 8];
        assert_eq!(manager.recv(&mut heard).unwrap(), 7);
    }

    /// What the monitor does all day, with a server.
    fn works(folder: &Path) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // As a service manager's socket may be: it hears those that were connected to it before.
        let name = SocketAddr::from_abstract_name(format!("corelane-{}", std::process::id())).unwrap();
        let manager = UnixDatagram::bind_addr(&name).unwrap();
        let [connected, late] = [(); 2].map(|()| UnixDatagram::unbound().unwrap());
        connected.connect_addr(&name).unwrap();
        let keeps = Keeps { servers: true, ..Keeps::default() };
        let given = apply(Confinement { keeps, ..as_nobody(folder) });
        connected.send(b"READY=1").unwrap();
        let mut heard = [0; 16];
        assert_eq!(manager.recv(&mut heard).unwrap(), 7);
        if given.landlock.to_string().starts_with("all rules") {
            assert_eq!(late.connect_addr(&name).unwrap_err().kind(), ErrorKind::PermissionDenied);
            // A port would let another program take this one's place.
            assert_eq!(TcpListener::bind("127.0.0.1:0").map(drop).unwrap_err().kind(), ErrorKind::PermissionDenied);
        }
        // By what a server's addresses are sorted.
        let route = Some(SockProtocol::NetlinkRoute);
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, route).expect("the list of interfaces");
        if holds(&given.seccomp) {
            assert!(UnixDatagram::unbound().is_err());
            check_memory();
        }
        let filters = status("Seccomp");
        // Threads that park, and are woken through the queues.
        let (mut producer, mut consumer) = spsc::channel::<u64>(64);
        let (sum, seccomp) = thread::scope(|scope| {
            let consumer = thread::Builder::new().name("consumer".to_owned()).spawn_scoped(scope, move || {
                let mut sum = 0;
                while let Ok(item) = consumer.pop() {
                    sum += item;
                }
                (sum, status_of("thread-self", "Seccomp"))
            });
            for item in 0..100_000 {
                producer.push(item).unwrap();
                if item % 10_000 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            drop(producer);
            consumer.unwrap().join().unwrap()
        });
        assert_eq!((sum, seccomp), (4_999_950_000, filters), "{given}");
        let (lock, event) = (Mutex::new(()), Condvar::new());
        let waited = event.wait_timeout(lock.lock().unwrap(), Duration::from_millis(1)).unwrap();
        assert!(waited.1.timed_out());
        let (sender, receiver) = mpsc::channel::<u8>();
        assert!(receiver.recv_timeout(Duration::from_millis(1)).is_err());
        drop(sender);
        // Metrics and what is sent away.
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut client, _) = listener.accept().unwrap();
                client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                client.write_all(b"answer").unwrap();
            });
            let mut answer = String::new();
            TcpStream::connect(address).unwrap().read_to_string(&mut answer).unwrap();
            assert_eq!(answer, "answer");
        });
        UdpSocket::bind("127.0.0.1:0").unwrap().set_nonblocking(true).unwrap();
        // Memory in large pieces, given back and taken again.
        for _ in 0..4 {
            let mut large = vec![1_u8; 32 << 20];
            large.resize(64 << 20, 2);
            assert_eq!(large.iter().map(|&byte| u64::from(byte)).sum::<u64>(), 96 << 20);
        }
        assert!(thread::available_parallelism().is_ok());
        assert!(thread::spawn(|| panic!("as a thread may")).join().is_err());
        println!("{}", io::IsTerminal::is_terminal(&io::stdout()));
    }

    /// With the queues, threads and memory of a real run, pinned to CPUs and not.
    fn analyses(folder: &Path) {
        let config = Config { packets: 100_000, hosts: 500, ..Config::default() };
        let capture = synth::capture(config).unwrap();
        let mut log = append(folder.join("inside/eve.json")).unwrap();
        let expected = events(capture.clone(), &Plan { analyzers: 0, ..Plan::default() });
        apply(confinement(folder));
        for cpus in [vec![], vec![0]] {
            let found = events(capture.clone(), &Plan { analyzers: 2, cpus, ..Plan::default() });
            assert!(found == expected);
        }
        log.write_all(&expected).unwrap();
    }

    fn events(capture: Vec<u8>, plan: &Plan) -> Vec<u8> {
        let mut events = Vec::new();
        let inspection = Inspection { events: Events::ALL, ..Inspection::default() };
        let job = Job { settings: Settings::default(), plan: plan.clone(), inspection, continuous: None };
        let damage = &|_, error| panic!("{error}");
        let found = &mut |found: Found<'_>| {
            if let Found::Lines(lines) = found {
                events.extend_from_slice(lines);
            }
        };
        let observer = Observer { progress: &Progress::new(), damage, found };
        job.run([Reader::from_bytes(capture).unwrap()], observer).unwrap();
        assert!(!events.is_empty());
        events
    }

    /// As logrotate does: the file goes away under another name, and comes again under its own.
    fn rotates(folder: &Path) {
        let path = folder.join("inside/eve.json");
        let mut file = User::find(USER).unwrap().act(|| append(&path)).unwrap().unwrap();
        apply(as_nobody(folder));
        for turn in 0..3 {
            writeln!(file, "line {turn}").unwrap();
            fs::rename(&path, folder.join(format!("inside/eve.json.{turn}"))).unwrap();
            file = append(&path).unwrap();
        }
        for turn in 0..3 {
            let part = fs::read_to_string(folder.join(format!("inside/eve.json.{turn}"))).unwrap();
            assert_eq!(part, format!("line {turn}\n"));
        }
    }

    /// A second confinement meets a kernel that has nothing of all this any more.
    fn lacks(folder: &Path) {
        if !holds(&as_nobody(folder).apply().unwrap().seccomp) {
            return;
        }
        let given = confinement(folder).apply().unwrap();
        for (name, protection) in given.protections() {
            assert_eq!(holds(protection), name == "user", "{name}: {protection}");
        }
        assert!(given.to_string().contains("; landlock: not given: "), "{given}");
    }

    fn threads(folder: &Path) {
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || stopped.recv());
        assert!(matches!(confinement(folder).apply(), Err(Refusal::Threads(2))));
        drop(stop);
        thread.join().unwrap().unwrap_err();
        assert_eq!(status("NoNewPrivs"), "0", "nothing has begun");
    }

    fn not_root(folder: &Path) {
        let refusal = as_nobody(folder).apply().unwrap_err();
        assert!(matches!(refusal, Refusal::NotRoot(_)));
        assert!(matches!(User::find(USER).unwrap().act(|| ()), Err(Refusal::NotRoot(_))));
        assert!(refusal.to_string().starts_with("--user nobody: only root "), "{refusal}");
    }

    fn no_folder(folder: &Path) {
        for wrong in ["missing", "inside/old"] {
            let folders_rw = vec![folder.join("inside"), folder.join(wrong)];
            let refusal = Confinement { folders_rw, ..Confinement::default() }.apply().unwrap_err();
            assert!(matches!(&refusal, Refusal::Folder(path, _) if path.ends_with(wrong)), "{refusal}");
        }
        // The folder of a bare name is the current one.
        Confinement { folders_rw: vec![PathBuf::new()], ..Confinement::default() }.apply().unwrap();
        append("inside/new").unwrap();
    }

    fn no_user(_: &Path) {
        let refusal = User::find("no such user").unwrap_err().to_string();
        assert!(refusal.contains("there is no such user"), "{refusal}");
        assert!(User::find("a\0b").is_err());
    }
}
