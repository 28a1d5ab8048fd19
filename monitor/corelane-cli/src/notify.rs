//! Messages to systemd: that the service is ready, reloads, stops, and is alive. Elsewhere there are none.

use nix::time::{ClockId, clock_gettime};
use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// How long a message may wait for a busy service manager.
const PATIENCE: Duration = Duration::from_secs(1);

/// The socket of the service manager, if systemd listens.
#[derive(Debug, Default)]
pub(crate) struct Notify {
    socket: Option<UnixDatagram>,
    watchdog: Option<Watchdog>,
}

#[derive(Debug)]
struct Watchdog {
    /// Half of the time after which the service manager takes the process for dead.
    interval: Duration,
    next: Instant,
}

impl Notify {
    /// Connects to the socket that the environment names; without a name every call does nothing. This has to come
    /// before the process is confined: a confined one reaches no new socket.
    ///
    /// # Errors
    ///
    /// A socket that cannot be reached, with its name. The service manager gets no messages then.
    pub(crate) fn from_environment() -> io::Result<Self> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> io::Result<Self> {
        let Some(name) = variable("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Ok(Notify::default());
        };
        let connect = || {
            let address = match name.as_bytes() {
                [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
                [b'/', ..] => SocketAddr::from_pathname(&name)?,
                _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "neither a path nor an abstract name")),
            };
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&address)?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Ok(socket)
        };
        let socket = connect().map_err(|error: io::Error| {
            io::Error::new(error.kind(), format!("NOTIFY_SOCKET={}: {error}", name.display()))
        })?;
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let is_meant = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let limit = number("WATCHDOG_USEC").filter(|&limit| is_meant && limit > 0);
        let watchdog = limit.map(|limit| Watchdog { interval: Duration::from_micros(limit / 2), next: Instant::now() });
        Ok(Notify { socket: Some(socket), watchdog })
    }

    /// Whether a service manager listens.
    pub(crate) fn is_connected(&self) -> bool {
        self.socket.is_some()
    }

    /// Says that the service does its work, or does it again after [`reloading`](Notify::reloading), and how it is, in
    /// a line.
    ///
    /// # Errors
    ///
    /// As for all messages, those of the socket; a service that runs has no use for them but to say so.
    pub(crate) fn ready(&self, status: &str) -> io::Result<()> {
        self.send(&format!("READY=1\nSTATUS={}", one_line(status)))
    }

    /// Says how the service is, in a line.
    ///
    /// # Errors
    ///
    /// Those of [`ready`](Notify::ready).
    pub(crate) fn status(&self, status: &str) -> io::Result<()> {
        self.send(&format!("STATUS={}", one_line(status)))
    }

    /// Says that the service reloads, as it was asked to by SIGHUP. [`ready`](Notify::ready) has to follow.
    ///
    /// # Errors
    ///
    /// Those of [`ready`](Notify::ready).
    pub(crate) fn reloading(&self) -> io::Result<()> {
        if !self.is_connected() {
            return Ok(());
        }
        // By its time the service manager distinguishes this reload from an earlier one.
        let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC)?);
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_micros()))
    }

    /// Says that the service ends, which may take it a while.
    ///
    /// # Errors
    ///
    /// Those of [`ready`](Notify::ready).
    pub(crate) fn stopping(&self) -> io::Result<()> {
        self.send("STOPPING=1")
    }

    /// Says that the service is alive, if the service manager asked for that and it is time to. For the thread
    /// whose hanging would be the fault, several times a second.
    ///
    /// # Errors
    ///
    /// Those of [`ready`](Notify::ready).
    pub(crate) fn alive(&mut self, now: Instant) -> io::Result<()> {
        match &mut self.watchdog {
            Some(watchdog) if now >= watchdog.next => {
                watchdog.next = now + watchdog.interval;
                self.send("WATCHDOG=1")
            }
            _ => Ok(()),
        }
    }

    fn send(&self, message: &str) -> io::Result<()> {
        self.socket.as_ref().map_or(Ok(()), |socket| socket.send(message.as_bytes()).map(drop))
    }
}

/// A line feed would begin another message.
fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service manager's socket, and what names it.
    fn manager(name: &str) -> (UnixDatagram, OsString, Option<tempfile::TempDir>) {
        let unique = format!("corelane-notify-{name}-{}", std::process::id());
        if name == "abstract" {
            let address = SocketAddr::from_abstract_name(&unique).unwrap();
            return (UnixDatagram::bind_addr(&address).unwrap(), format!("@{unique}").into(), None);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(unique);
        (UnixDatagram::bind(&path).unwrap(), path.into(), Some(folder))
    }

    fn received(manager: &UnixDatagram) -> Option<String> {
        let mut bytes = [0; 4096];
        manager.set_nonblocking(true).unwrap();
        let length = manager.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
    }

    #[test]
    fn messages_arrive_at_both_kinds_of_sockets() {
        for kind in ["path", "abstract"] {
            let (manager, socket, _folder) = manager(kind);
            let mut notify = Notify::from_variables(|name| (name == "NOTIFY_SOCKET").then(|| socket.clone())).unwrap();
            assert!(notify.is_connected());
            notify.ready("capturing on eth0\nREADY=0").unwrap();
            assert_eq!(received(&manager).unwrap(), "READY=1\nSTATUS=capturing on eth0 READY=0");
            notify.status("3 alerts").unwrap();
            assert_eq!(received(&manager).unwrap(), "STATUS=3 alerts");
            let monotonic = || Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap()).as_micros();
            let before = monotonic();
            notify.reloading().unwrap();
            let message = received(&manager).unwrap();
            let time = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().parse::<u128>().unwrap();
            assert!((before..=monotonic()).contains(&time), "{message}");
            notify.stopping().unwrap();
            assert_eq!(received(&manager).unwrap(), "STOPPING=1");
            notify.alive(Instant::now() + Duration::from_secs(3600)).unwrap();
            assert_eq!(received(&manager), None, "no watchdog was wanted");
        }
    }

    #[test]
    fn the_watchdog_hears_twice_within_its_time() {
        let (manager, socket, _folder) = manager("watchdog");
        let with = |limit: &'static str, pid: Option<u32>| {
            let variable = |name: &str| match name {
                "NOTIFY_SOCKET" => Some(socket.clone()),
                "WATCHDOG_USEC" => Some(limit.into()),
                "WATCHDOG_PID" => pid.map(|pid| pid.to_string().into()),
                _ => None,
            };
            Notify::from_variables(variable).unwrap()
        };
        for pid in [None, Some(std::process::id())] {
            let mut notify = with("3000000", pid);
            let start = Instant::now();
            for (milliseconds, is_due) in
                [(0, true), (1, false), (1499, false), (1500, true), (2999, false), (3000, true)]
            {
                notify.alive(start + Duration::from_millis(milliseconds)).unwrap();
                assert_eq!(received(&manager).as_deref(), is_due.then_some("WATCHDOG=1"), "{milliseconds}");
            }
        }
        for (limit, pid) in [("3000000", Some(1)), ("0", None), ("soon", None)] {
            let mut notify = with(limit, pid);
            notify.alive(Instant::now()).unwrap();
            assert_eq!(received(&manager), None, "{limit} {pid:?}");
        }
    }

    #[test]
    fn without_a_service_manager_nothing_happens() {
        for socket in [None, Some("")] {
            let variable = |name: &str| socket.filter(|_| name == "NOTIFY_SOCKET").map(OsString::from);
            let mut notify = Notify::from_variables(variable).unwrap();
            assert!(!notify.is_connected());
            notify.ready("ready").unwrap();
            notify.reloading().unwrap();
            notify.stopping().unwrap();
            notify.alive(Instant::now()).unwrap();
        }
    }

    #[test]
    fn a_socket_that_is_not_there_is_named() {
        for wrong in ["/no/such/socket", "@corelane no such socket", "relative", "vsock:2:1234"] {
            let error = Notify::from_variables(|name| (name == "NOTIFY_SOCKET").then(|| wrong.into())).unwrap_err();
            assert!(error.to_string().starts_with(&format!("NOTIFY_SOCKET={wrong}: ")), "{error}");
        }
    }
}
