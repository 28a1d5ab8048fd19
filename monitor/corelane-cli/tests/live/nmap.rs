//! What is found of the scans of nmap: one of each type, against a host and a net without hosts. The table of
//! `docs/live.md` comes from here.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::net::{inside, ip, skip};
use crate::support::{Folder, Live, wait_for};

/// How the targets of a scan are reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    /// A host whose ports are closed.
    Host,
    /// The same over IPv6.
    Host6,
    /// A net behind that host, where nothing answers.
    Net,
    /// Addresses of the link without hosts.
    Link,
}

/// Options of nmap, where to, and what a scan is found as: the kind of its probes and its kind, or why it is not.
type Scan = (&'static str, To, Result<&'static str, &'static str>);

const SCANS: [Scan; 40] = [
    ("-sS -p 1-60", To::Host, Ok("syn vertical")),
    ("-sS -p 445", To::Net, Ok("syn horizontal")),
    ("-sT -p 1-60", To::Host, Ok("syn vertical")),
    ("-sF -p 1-60", To::Host, Ok("fin vertical")),
    ("-sN -p 1-60", To::Host, Ok("null vertical")),
    ("-sX -p 1-60", To::Host, Ok("xmas vertical")),
    ("-sA -p 1-60", To::Host, Ok("ack vertical")),
    ("-sW -p 1-60", To::Host, Ok("ack vertical")),
    ("-sM -p 1-60", To::Host, Ok("ack vertical")),
    ("-sS --scanflags PSH -p 1-60", To::Host, Ok("odd vertical")),
    ("-sS --scanflags URG -p 1-60", To::Host, Ok("odd vertical")),
    ("-sS --scanflags SYNFIN -p 1-60", To::Host, Ok("synfin vertical")),
    ("-sU --max-retries 0 -p 1000-1059", To::Host, Ok("udp vertical")),
    ("-sU --max-retries 0 -p 161", To::Net, Ok("udp horizontal")),
    ("-sO --max-retries 0", To::Host, Ok("protocol vertical")),
    ("-sY -p 1-60", To::Host, Ok("sctp vertical")),
    ("-sZ --max-retries 0 -p 1-60", To::Host, Ok("sctp vertical")),
    ("-sY --max-retries 0 -p 36412", To::Net, Ok("sctp horizontal")),
    ("-sn -PE", To::Net, Ok("ping horizontal")),
    ("-sn -PP", To::Net, Ok("ping horizontal")),
    ("-sn -PM", To::Net, Ok("ping horizontal")),
    ("-sn -PR", To::Link, Ok("arp horizontal")),
    ("-sn -PS443", To::Net, Ok("syn horizontal")),
    ("-sn -PA443", To::Net, Err("ACK segments to many hosts look like connections that are aborted")),
    ("-sn -PU40125", To::Net, Ok("udp horizontal")),
    ("-sS -f -p 1-60", To::Host, Ok("syn vertical")),
    ("-sS -ff -p 1-60", To::Host, Ok("syn vertical")),
    ("-sS -D 10.0.0.201,10.0.0.202 -p 1-60", To::Host, Ok("syn vertical")),
    ("-sS -T2 -p 1-30", To::Host, Ok("syn vertical")),
    ("-sS -g 53 -p 1-60", To::Host, Ok("syn vertical")),
    ("-sS --badsum -p 1-60", To::Host, Ok("syn vertical")),
    ("-sS --data-length 30 -p 1-60", To::Host, Ok("syn vertical")),
    ("-sS -p 1-20", To::Host, Err("no more than the threshold of ports")),
    ("-6 -sS -p 1-60", To::Host6, Ok("syn vertical")),
    ("-6 -sF -p 1-60", To::Host6, Ok("fin vertical")),
    ("-6 -sX -p 1-60", To::Host6, Ok("xmas vertical")),
    ("-6 -sA -p 1-60", To::Host6, Ok("ack vertical")),
    ("-6 -sU --max-retries 0 -p 1000-1059", To::Host6, Ok("udp vertical")),
    ("-6 -sO --max-retries 0 -p 61-130", To::Host6, Ok("protocol vertical")),
    ("-6 -sY -p 1-60", To::Host6, Ok("sctp vertical")),
];

/// A process that holds a network namespace, for the host that is scanned.
struct Target(Child);

impl Target {
    fn start() -> Self {
        let target = Target(Command::new("unshare").args(["--net", "sleep", "1000"]).spawn().expect("`unshare`"));
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        let its = format!("/proc/{}/ns/net", target.0.id());
        wait_for("a namespace", || fs::read_link(&its).is_ok_and(|it| it != own).then_some(()));
        target
    }

    /// Runs `ip` there.
    fn ip(&self, words: &str) {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.0.id().to_string(), "ip"]).args(words.split_whitespace());
        let output = command.output().expect("`nsenter`");
        assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The source of the scan of this number, so that each is told apart.
fn source(number: usize, to: To) -> String {
    if to == To::Host6 { format!("fd00::1:{}", number + 10) } else { format!("10.0.0.{}", number + 10) }
}

fn nmap(number: usize, (options, to, _): Scan) -> Child {
    let target = match to {
        To::Host => "10.0.0.2",
        To::Host6 => "fd00::2",
        To::Net => "10.1.0.0/26",
        To::Link => "10.0.0.100-160",
    };
    let mut command = Command::new("nmap");
    command.args(["-n", "-e", "b0", "--max-rtt-timeout", "200ms", "-S", &source(number, to)]);
    if !options.contains("-sn") {
        command.arg("-Pn");
    }
    command.args(options.split(' ')).arg(target).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("`nmap`")
}

/// Kind of probes and kind of scan.
fn name(alert: &Value) -> String {
    let scan = &alert["scan"];
    let probe = scan["probe"].as_str().unwrap_or("syn");
    format!("{probe} {}", scan["kind"].as_str().unwrap_or_default())
}

#[test]
fn scan_types_of_nmap_are_found_as_the_table_says() {
    const NAME: &str = "nmap::scan_types_of_nmap_are_found_as_the_table_says";
    if Command::new("nmap").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip(&format!("{NAME}: there is no program `nmap`"));
    }
    inside(NAME, run);
}

fn run() {
    let target = Target::start();
    ip("link set lo up");
    ip("link add b0 type veth peer name a0");
    ip(&format!("link set a0 netns {}", target.0.id()));
    for words in ["link set b0 up", "address add 10.0.0.1/24 dev b0", "address add fd00::1/64 dev b0 nodad"] {
        ip(words);
    }
    for words in ["link set a0 up", "address add 10.0.0.2/24 dev a0", "address add fd00::2/64 dev a0 nodad"] {
        target.ip(words);
    }
    let state = "/sys/class/net/b0/operstate";
    wait_for("a carrier", || fs::read_to_string(state).is_ok_and(|state| state == "up\n").then_some(()));
    ip("route add 10.1.0.0/24 via 10.0.0.2");
    // It does not answer there.
    target.ip("route add blackhole 10.1.0.0/24");
    for (number, (_, to, _)) in SCANS.into_iter().enumerate() {
        let (length, nodad) = if to == To::Host6 { (64, " nodad") } else { (24, "") };
        ip(&format!("address add {}/{length} dev b0{nodad}", source(number, to)));
    }
    let folder = Folder::new();
    let eve = folder.path("eve.json");
    let live = Live::start(0, ["--eve", eve.to_str().unwrap(), "--eve-types", "alert"]);
    let started: Vec<_> =
        SCANS.into_iter().enumerate().map(|(number, scan)| (Instant::now(), nmap(number, scan))).collect();
    let mut found: Vec<Option<(String, Duration)>> = vec![None; SCANS.len()];
    let mut ended: Option<Instant> = None;
    let mut started: Vec<_> = started.into_iter().map(|(start, child)| (start, Some(child))).collect();
    // What asks fails a minute after it asked.
    while ended.is_none_or(|ended| ended.elapsed() < Duration::from_secs(64)) {
        thread::sleep(Duration::from_millis(100));
        let text = fs::read_to_string(&eve).unwrap();
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        for alert in whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")) {
            let is_of = |&(number, (_, to, _)): &(usize, Scan)| alert["src_ip"] == source(number, to);
            // By connections, nmap chooses no source.
            let number = match alert["src_ip"].as_str() {
                Some("10.0.0.1") => SCANS.iter().position(|(options, ..)| options.starts_with("-sT")),
                _ => SCANS.into_iter().enumerate().find(is_of).map(|(number, _)| number),
            };
            if let Some(number) = number.filter(|&number| found[number].is_none()) {
                found[number] = Some((name(&alert), started[number].0.elapsed()));
            }
        }
        for (number, (_, running)) in started.iter_mut().enumerate() {
            if running.as_mut().is_some_and(|child| child.try_wait().expect("a child").is_some()) {
                let output = running.take().expect("it ran").wait_with_output().expect("its output");
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{}: {said}", SCANS[number].0);
            }
        }
        if ended.is_none() && started.iter().all(|(_, running)| running.is_none()) {
            ended = Some(Instant::now());
        }
        if found.iter().zip(SCANS).all(|(found, scan)| found.is_some() || scan.2.is_err()) && ended.is_some() {
            break;
        }
    }
    live.stop().code(0);
    let mut wrong = Vec::new();
    let mut rows = String::from("| nmap | of | found as | seconds after its start |\n|---|---|---|---:|\n");
    for (found, (options, to, expected)) in found.into_iter().zip(SCANS) {
        let is = found.as_ref().map(|(name, _)| name.as_str());
        if is != expected.ok() {
            wrong.push(format!("{options}: {is:?}, not {expected:?}"));
        }
        let of = match to {
            To::Host | To::Host6 => "a host",
            To::Net => "a net without hosts",
            To::Link => "addresses of the link without hosts",
        };
        let row = match found {
            Some((name, after)) => format!("{name} | {}", after.as_secs() + 1),
            None => format!("not found: {} |", expected.err().unwrap_or("unknown")),
        };
        rows += &format!("| `{options}` | {of} | {row} |\n");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    documented(&rows);
}

/// Writes the table where that is asked for. Else its rows have to be there, whatever the seconds.
fn documented(rows: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/live.md");
    let page = fs::read_to_string(&path).unwrap();
    let [begin, end] = ["<!-- nmap's types -->\n", "<!-- end of nmap's types -->\n"];
    let (before, rest) = page.split_once(begin).expect("a begin");
    let (there, after) = rest.split_once(end).expect("an end");
    if std::env::var_os("CORELANE_WRITE").is_some() {
        return fs::write(path, [before, begin, rows, end, after].concat()).unwrap();
    }
    let without_seconds = |rows: &str| {
        rows.lines()
            .filter_map(|row| row.strip_suffix(" |")?.rsplit_once('|'))
            .map(|row| row.0.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(without_seconds(there), without_seconds(rows), "write docs/live.md by CORELANE_WRITE=1 and this test");
}
