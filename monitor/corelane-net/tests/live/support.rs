//! Namespaces, virtual interfaces, frames, and a sender.

use std::fs::File;
use std::io::{self, Write};
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use corelane_net::capture::Record;
use corelane_net::capture::live::{Live, News, Options};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

/// Set in the process that has namespaces of its own.
const INSIDE: &str = "CORELANE_LIVE_INSIDE";
/// Longer than anything here takes; what lasts so long hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const WAIT: Duration = Duration::from_millis(100);

pub(crate) fn skip(why: &str) {
    // Not through `eprintln!`, which a passing test swallows.
    let _ = writeln!(io::stderr(), "SKIPPED: {why}");
}

/// Runs `test` in namespaces of its own: this program anew, with that test alone. `name` is the test's path.
pub(crate) fn inside(name: &str, test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return test();
    }
    for tool in ["unshare", "ip"] {
        let found = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_err() {
            return skip(&format!("{name}: there is no program `{tool}`"));
        }
    }
    // `/sys` shows the interfaces of the namespace in which it was mounted.
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "sh", "-c", "mount -t sysfs sysfs /sys && exec \"$@\"", "sh"]);
        command
    };
    let probe = unshare().args(["ip", "link", "add", "type", "veth"]).output().expect("it was found");
    if !probe.status.success() {
        let why = String::from_utf8_lossy(&probe.stderr);
        return skip(&format!("{name}: no virtual interfaces in a namespace: {}", why.trim()));
    }
    let program = std::env::current_exe().expect("this program has a path");
    let output = unshare()
        .arg(program)
        .args(["--exact", name, "--nocapture", "--include-ignored"])
        .env(INSIDE, "1")
        .output()
        .expect("`unshare` was found");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
    for line in err.lines() {
        if line.starts_with("SKIPPED") {
            let _ = writeln!(io::stderr(), "{line}");
        } else {
            eprintln!("{line}");
        }
    }
}

/// Runs `ip` with these words.
pub(crate) fn ip(words: &str) {
    let output = Command::new("ip").args(words.split_whitespace()).output().expect("`ip` was found");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Keeps packets of the kernel's own out of the frames.
pub(crate) fn quiet() {
    for which in ["all", "default"] {
        // Without IPv6 there is nothing to switch off.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6"), "1");
    }
}

/// Makes the pair `a0` and `b0`, both up.
pub(crate) fn pair() {
    quiet();
    ip("link add a0 mtu 65535 type veth peer name b0 mtu 65535");
    ip("link set a0 up");
    ip("link set b0 up");
}

/// Sends frames on an interface, in order.
pub(crate) struct Sender(Socket);

impl Sender {
    /// The thread stays on one CPU from now on: each CPU delivers its own frames.
    pub(crate) fn new(interface: &str) -> Self {
        let allowed = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap();
        let mut one = CpuSet::new();
        one.set(first);
        sched_setaffinity(None, &one).unwrap();
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0))).unwrap();
        let index = rustix::net::netdevice::name_to_index(&socket, interface).unwrap();
        let mut storage = SockAddrStorage::zeroed();
        // SAFETY: `sockaddr_ll` is an address type of this system made of numbers; family and length say what it is.
        let address = unsafe {
            let address = storage.view_as::<libc::sockaddr_ll>();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_ifindex = index as i32;
            SockAddr::new(storage, size_of::<libc::sockaddr_ll>() as u32)
        };
        socket.bind(&address).unwrap();
        Self(socket)
    }

    pub(crate) fn send(&self, frame: &[u8]) {
        assert_eq!(self.0.send(frame).unwrap(), frame.len());
    }
}

/// An interface `t0` without link header, set up; what is written to the file arrives on it. Its frames are said to be
/// of the kernel's hardware type `kind`. `None` if this system makes no such interfaces.
pub(crate) fn tunnel(kind: u16) -> Option<File> {
    let file = File::options().read(true).write(true).open("/dev/net/tun").ok()?;
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI) as i16 };
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru };
    (request.ifr_name[0], request.ifr_name[1]) = (b't' as libc::c_char, b'0' as libc::c_char);
    // SAFETY: the kernel reads and writes inside `request`; the second call takes a number.
    let made = unsafe {
        libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) == 0
            && libc::ioctl(file.as_raw_fd(), libc::TUNSETLINK as _, libc::c_int::from(kind)) == 0
    };
    made.then(|| ip("link set t0 up"))?;
    Some(file)
}

/// An Ethernet frame: addresses, then tags with the EtherType, then the payload.
pub(crate) fn frame(tags: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], tags, payload].concat()
}

/// An IPv4 packet in a frame. `number` comes last.
pub(crate) fn ipv4(source: u32, destination: u32, protocol: u8, number: u32) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 60, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend(source.to_be_bytes());
    packet.extend(destination.to_be_bytes());
    packet.resize(56, 0);
    packet.extend(number.to_be_bytes());
    frame(&[8, 0], &packet)
}

/// The number that [`ipv4`] was given.
pub(crate) fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(*frame.last_chunk().unwrap())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) time_ns: u64,
    pub(crate) wire_len: u32,
    pub(crate) link: u32,
    pub(crate) data: Vec<u8>,
}

impl From<Record<'_>> for Owned {
    fn from(record: Record<'_>) -> Self {
        Self { time_ns: record.time_ns, wire_len: record.wire_len, link: record.link.0, data: record.data.to_vec() }
    }
}

/// A ring of 16 blocks with a short time-out.
pub(crate) fn options() -> Options {
    Options::default().ring_bytes(8 << 20).block_timeout(Duration::from_millis(20))
}

/// Reads `count` frames, no fewer.
pub(crate) fn read(live: &mut Live, count: usize) -> Vec<Owned> {
    let (start, mut records) = (Instant::now(), Vec::new());
    while records.len() < count {
        live.read(count - records.len(), WAIT, |record| records.push(Owned::from(record))).unwrap();
        assert!(start.elapsed() < PATIENCE, "only {} of {count} frames came", records.len());
    }
    records
}

/// Stops and reads what is left. The statistics are final then.
pub(crate) fn drain(live: &mut Live) -> Vec<Owned> {
    live.stop().unwrap();
    let (start, mut records) = (Instant::now(), Vec::new());
    while !live.is_drained() {
        live.read(7, WAIT, |record| records.push(Owned::from(record))).unwrap();
        assert!(start.elapsed() < PATIENCE, "it does not drain: {:?}", live.statistics());
    }
    assert_eq!(live.statistics().in_ring(), 0);
    records
}

/// Waits for the next news, which no frame may precede.
pub(crate) fn news(live: &mut Live) -> News {
    let start = Instant::now();
    loop {
        if let Some(news) = live.take_news() {
            return news;
        }
        live.read(1, WAIT, |record| panic!("a frame: {record:?}")).unwrap();
        assert!(start.elapsed() < PATIENCE, "no news came");
    }
}

/// Reads for this time. Neither frames nor news may come.
pub(crate) fn nothing(live: &mut Live, time: Duration) {
    live.read(1, time, |record| panic!("a frame: {record:?}")).unwrap();
    if let Some(news) = live.take_news() {
        panic!("{news}");
    }
}
