//! The command line.

use crate::exit::left_out;
use crate::sensors::{Connection, is_sensor_name};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum, ValueHint};
use corelane_monitor::eve::Events;
use corelane_monitor::sensors::SensorName;
use corelane_monitor::{Ignored, Network, Plan};
use corelane_net::synth::Config;
use std::num::{NonZeroU16, NonZeroU64};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

#[cfg(feature = "manual")]
use clap_complete::Shell;
/// In place of those shells that there are completions for.
#[cfg(not(feature = "manual"))]
type Shell = String;

/// Analyses network captures on many cores, joined by fast queues.
#[derive(Debug, Parser)]
#[command(
    name = "corelane",
    version,
    arg_required_else_help = true,
    after_help = "\
Exit codes: 0 done; 1 something is missing of the input or the output; 2 wrong usage or nothing
readable; 130 after Ctrl-C."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Monitor(Box<MonitorArguments>),
    Top(Box<TopArguments>),
    Aggregate(Box<AggregateArguments>),
    Gen(GenArguments),
    /// Writes a script that completes commands in a shell
    #[cfg_attr(not(feature = "manual"), doc = "(not in this build: feature `manual`)")]
    #[command(
        after_help = "Example:\n  corelane completions bash > ~/.local/share/bash-completion/completions/corelane"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Writes a man page
    #[cfg_attr(not(feature = "manual"), doc = "(not in this build: feature `manual`)")]
    #[command(after_help = "\
Examples:
  corelane man > ~/.local/share/man/man1/corelane.1
  corelane man monitor > ~/.local/share/man/man1/corelane-monitor.1")]
    Man {
        /// The command to describe [default: the program as a whole]
        #[arg(value_parser = ["monitor", "top", "aggregate", "gen", "completions", "man"])]
        command: Option<String>,
    },
}

const MONITOR_EXAMPLES: &str = "\
Examples:
  corelane monitor capture.pcap               what is in it, and which hosts scan;
                                              a file of any size, block by block
  corelane monitor --demo                     a first look, needs no capture
  corelane monitor mon.pcap.gz tue.pcapng     several files are one capture
  tcpdump -w - | corelane monitor -           until Ctrl-C
  corelane monitor -i eth0                    an interface, until Ctrl-C
  corelane monitor -i eth0 --eve eve.json --metrics 9477
                                              the same with events and metrics
  corelane monitor --protocols capture.pcap   and its protocols
  corelane monitor --html page.html capture.pcap   and a page to look at
  corelane monitor --format json capture.pcap | jq .alerts
  corelane monitor --eve - capture.pcap | jq 'select(.event_type == \"http\").http'
  corelane monitor --timing time.json capture.pcap   what it took, for a program";

const MONITOR_CODES: &str = "\
Exit codes:
    0  done, also if the reader of the output has gone away, or if Ctrl-C
       or SIGTERM ended a run on an interface
    1  some input is missing or damaged, or found no room in --memory-limit:
       a warning says what, the rest is reported; or some output could not
       be written
    2  wrong usage, or nothing could be read
  130  ended by Ctrl-C, or 143 by SIGTERM, before all captures were read and
       published, after a report of what was found; a second one ends at once";

/// Finds connections, port scans and protocols in captures and on an interface.
///
/// Reads pcap and pcapng, also packed by gzip or zstd, or an interface, and spreads the packets over many cores. The
/// report is the same for any number of analyzers.
#[derive(Args, Debug)]
#[command(
    group(ArgGroup::new("endless").args(["interface", "continuous"]).multiple(true)),
    override_usage = "corelane monitor [OPTIONS] FILE...
       corelane monitor [OPTIONS] -i IFACE
       corelane monitor [OPTIONS] --demo",
    after_help = MONITOR_EXAMPLES,
    after_long_help = format!("{MONITOR_EXAMPLES}\n\n{MONITOR_CODES}"),
)]
pub(crate) struct MonitorArguments {
    /// Captures, one after the other; `-` is the standard input
    #[cfg_attr(not(feature = "zstd"), doc = "(zstd is not in this build: feature `zstd`)")]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath,
        required_unless_present_any = ["demo", "interface", "interfaces"])]
    pub(crate) files: Vec<PathBuf>,

    /// Analyses 2,000,000 synthetic packets, and checks that exactly the planted scans are found
    #[arg(long, conflicts_with = "files")]
    pub(crate) demo: bool,

    #[command(flatten)]
    pub(crate) capture: Capture,

    #[command(flatten)]
    pub(crate) endless: Endless,

    #[command(flatten)]
    pub(crate) publishing: Publishing,

    #[command(flatten)]
    pub(crate) detection: Detection,

    #[command(flatten)]
    pub(crate) spread: Spread,

    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// What is captured, and what of it is analysed.
#[derive(Args, Debug)]
#[command(next_help_heading = "Capture")]
#[group(skip)]
pub(crate) struct Capture {
    /// Analyses what an interface sees, until Ctrl-C; implies --continuous, --tunnels and --memory-limit 1G
    #[arg(short, long, value_name = "IFACE", conflicts_with_all = ["files", "demo", "preload", "mmap"])]
    pub(crate) interface: Option<String>,

    /// Lists the interfaces of this machine
    #[arg(long, conflicts_with_all = ["files", "demo", "interface"])]
    pub(crate) interfaces: bool,

    /// Analyses only packets that this program accepts: what `tcpdump -ddd EXPRESSION` prints. On an interface the
    /// kernel runs it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "demo")]
    pub(crate) filter_program: Option<PathBuf>,

    /// Analyses only packets that this expression of tcpdump's language accepts
    #[cfg_attr(not(feature = "libpcap"), doc = "(not in this build: feature `libpcap`)")]
    #[arg(long, value_name = "EXPRESSION", value_parser = expression, conflicts_with_all = ["demo", "filter_program"])]
    pub(crate) filter: Option<String>,

    /// Writes the packets that are analysed, as pcapng. Of files a copy that is there is replaced; of an interface or
    /// the standard input it stays, and the next has the time in its name
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "demo")]
    pub(crate) write: Option<PathBuf>,

    /// The most bytes to capture of a packet
    #[arg(long, value_name = "BYTES", default_value = "256K", value_parser = memory_u32,
        requires = "interface", conflicts_with_all = ["files", "demo"])]
    pub(crate) snaplen: u32,

    /// The kernel's buffer for captured packets, at least 1M by the default --snaplen; what does not fit is dropped and
    /// counted
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = memory,
        requires = "interface", conflicts_with_all = ["files", "demo"])]
    pub(crate) ring_size: u64,

    /// Rings that share the packets, each with a thread that reads and at least one that analyses; 1 is fast enough for
    /// most. With more, packets are numbered and flows named differently, and tunnels are not opened
    #[arg(long, value_name = "N", default_value = "1", value_parser = rings,
        requires = "interface", conflicts_with_all = ["files", "demo"])]
    pub(crate) rings: NonZeroU16,

    /// Captures packets to other machines too
    #[arg(long, value_enum, value_name = "ON|OFF", num_args = 0..=1, require_equals = true,
        default_value = "on", default_missing_value = "on",
        requires = "interface", conflicts_with_all = ["files", "demo"])]
    pub(crate) promiscuous: OnOff,
}

/// Analysis that goes on.
#[derive(Args, Debug)]
#[command(next_help_heading = "Day and night")]
#[group(skip)]
pub(crate) struct Endless {
    /// Analyses captures as if they came from an interface: reports scans as they are found, and forgets what is over
    #[arg(long, conflicts_with_all = ["demo", "interfaces"])]
    pub(crate) continuous: bool,

    /// How long a failed attempt or probe counts, with --continuous; s, m, h and d may follow
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = span, requires = "endless")]
    pub(crate) forget: Duration,

    /// Suppresses repeated alerts of a scan for this long; then reports its end, or alerts again while it goes on
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span, requires = "endless")]
    pub(crate) suppress: Duration,

    /// How often an event with statistics is written, with --continuous
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span, requires = "endless")]
    pub(crate) stats_interval: Duration,

    /// Serves `/metrics` for Prometheus and `/healthz`; a port alone is on the loopback address
    #[cfg_attr(not(feature = "metrics"), doc = "(not in this build: feature `metrics`)")]
    #[arg(long, value_name = "[ADDR:]PORT",
        requires = "interface", conflicts_with_all = ["files", "demo"])]
    pub(crate) metrics: Option<String>,

    /// The user to become once everything is open, if started as root
    #[arg(long, value_name = "NAME",
        requires = "interface", conflicts_with_all = ["files", "demo"])]
    pub(crate) user: Option<String>,

    /// Drops all capabilities once everything is open, also the one that reopens the interface when it was deleted and
    /// created again
    #[arg(long, requires = "interface", conflicts_with_all = ["files", "demo"])]
    pub(crate) drop_all: bool,
}

/// What is sent to an aggregator.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Many sensors (with `corelane aggregate`)")]
#[group(skip)]
pub(crate) struct Publishing {
    /// Sends failed attempts and probes there, with --continuous or -i: `file:DIR`, a folder of this machine, or
    /// `nats://HOST:PORT` or `tls://HOST:PORT`, NATS servers with JetStream, several of a cluster by commas
    #[cfg_attr(not(feature = "nats"), doc = "(servers are not in this build: feature `nats`)")]
    #[arg(long, value_name = "PLACE", requires_all = ["endless", "sensor"])]
    pub(crate) publish: Option<String>,

    /// The name of this sensor, unique among all: letters, digits, `-` and `_`
    #[arg(long, value_name = "NAME", value_parser = sensor, requires = "publish")]
    pub(crate) sensor: Option<SensorName>,

    /// The folder that keeps batches until a NATS server has them, also over a restart
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "publish")]
    pub(crate) spool: Option<PathBuf>,

    /// Limit of the spool in bytes; K, M and G may follow. When it is full, a run on an interface drops the oldest
    /// batches and logs it, and a run over captures waits
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = memory, requires = "publish")]
    pub(crate) spool_size: u64,

    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[cfg(feature = "top")]
impl Default for MonitorArguments {
    /// As the command line has them.
    fn default() -> Self {
        match Arguments::parse_from(["corelane", "monitor", "--demo"]).command {
            Command::Monitor(arguments) => *arguments,
            _ => unreachable!("the command is `monitor`"),
        }
    }
}

impl MonitorArguments {
    /// The events that are written.
    pub(crate) fn events(&self) -> Events {
        let outputs = &self.outputs;
        match outputs.eve_types.iter().copied().reduce(|some, more| some | more) {
            _ if outputs.eve.is_none() => Events::NONE,
            Some(events) => events,
            None => Events::ALL,
        }
    }

    /// Whether the analysis goes on.
    pub(crate) fn is_endless(&self) -> bool {
        self.endless.continuous || self.capture.interface.is_some()
    }
}

/// What counts as a scan.
#[derive(Args, Debug)]
#[command(next_help_heading = "Detection")]
pub(crate) struct Detection {
    /// An attempt without an answer for so long has failed
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) syn_timeout: Duration,

    /// A vertical scan is more than so many failed ports of one host
    #[arg(long, value_name = "PORTS", default_value_t = 20, value_parser = whole::<u64>)]
    pub(crate) vertical_threshold: u64,

    /// A horizontal scan is more than so many failed hosts on one port
    #[arg(long, value_name = "HOSTS", default_value_t = 20, value_parser = whole::<u64>)]
    pub(crate) horizontal_threshold: u64,

    /// Opens tunnels (VXLAN, Geneve, GRE, ERSPAN, GTP-U, L2TP, Teredo, EtherIP, MPLS over UDP, IP in IP): a packet is
    /// what its innermost IP header says, not its outermost [default: on with --protocols, --eve, --html and -i, else
    /// off]
    #[arg(long, value_enum, value_name = "ON|OFF", num_args = 0..=1, require_equals = true,
        default_missing_value = "on")]
    pub(crate) tunnels: Option<OnOff>,

    /// Ignores attempts and probes from these addresses; may be repeated. Their packets and flows still count
    #[arg(long, value_name = "ADDR[/PREFIX]")]
    pub(crate) ignore_source: Vec<Network>,

    /// Ignores attempts and probes to these addresses; may be repeated
    #[arg(long, value_name = "ADDR[/PREFIX]")]
    pub(crate) ignore_target: Vec<Network>,

    /// Ignores attempts and probes of which all is true that is named: `from=10.0.0.5,port=9100`, `port=161`,
    /// `from=10.0.0.5,to=10.9.0.0/16`; may be repeated
    #[arg(long, value_name = "RULE")]
    pub(crate) ignore: Vec<Ignored>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    /// Yes
    On,
    /// No
    Off,
}

/// How the work is spread.
#[derive(Args, Debug)]
#[command(next_help_heading = "Speed (the report does not depend on it)")]
pub(crate) struct Spread {
    /// Threads that analyse, beside one that reads; 0: one thread does it all [default: CPUs - 1; as many as CPUs
    /// where --protocols, --eve or --html inspects payload]
    #[arg(long, value_name = "N", value_parser = analyzers)]
    pub(crate) analyzers: Option<u16>,

    /// Limit of memory in bytes, without rings and captures that are preloaded or mapped; K, M and G may follow. At the
    /// limit the oldest conversations and fragments are evicted. New attempts and flows are not counted, or with
    /// --continuous take the place of old ones: the report says how many
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    pub(crate) memory_limit: Option<u64>,

    /// A number that says which address pairs share memory. What a memory limit evicts depends on it, and `flow_id` and
    /// the order of events of one moment [default: of a copy by --write that of its run; else drawn on an interface,
    /// and 0 for files]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    /// Pins the threads to these CPUs, for example 0,2-3
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) cpus: Option<Cpus>,

    /// Reads all input into memory before the clock starts
    #[arg(long)]
    pub(crate) preload: bool,

    /// Maps files instead of reading them. No process may write to one or shorten it meanwhile: of a file that changes
    /// the report may be anything, and when one gets shorter the system kills the run
    #[arg(long, conflicts_with = "preload")]
    pub(crate) mmap: bool,
}

/// What is shown where.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct Outputs {
    /// How to write the report
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Adds scans by other probes (UDP, ping, ARP, FIN, NULL, ...) to the JSON report, as `probe_scans`; text and EVE
    /// have them anyway
    #[arg(long)]
    pub(crate) probes: bool,

    /// How many of the busiest conversations, hosts and sources to list
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<usize>)]
    pub(crate) top: usize,

    /// Counts what each source sent and began, reported up for every so many bytes that it sends; k, M and G may
    /// follow. Lists those that sent most, as `sources` in JSON
    #[arg(long, value_name = "BYTES", value_parser = some)]
    pub(crate) count_sources: Option<NonZeroU64>,

    /// Inspects payload too: identifies protocols, and parses HTTP, TLS, QUIC, SSH and DNS. In text only; for programs
    /// there is --eve
    #[arg(long)]
    pub(crate) protocols: bool,

    /// Writes events in Suricata's EVE format, one JSON document a line; `-`: instead of the report
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) eve: Option<PathBuf>,

    /// Writes a page to look at in a browser, from disk and without a network: scans and what they found open, a
    /// timeline, hosts, names, protocols; `-`: instead of the report
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Which events; with `alert` alone payload is not inspected [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = events(), requires = "eve")]
    pub(crate) eve_types: Vec<Events>,

    /// Whether connections that were refused or not answered are `flow` events too; in a flood each SYN is one
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = OnOff::On, requires = "eve")]
    pub(crate) eve_attempts: OnOff,

    /// Writes how long it took, as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) timing: Option<PathBuf>,

    /// The rights of the files that outputs make, in octal, such as 640; those that are there keep theirs [default: 666
    /// without the bits of the umask]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) output_mode: Option<u16>,

    /// Shows no progress bar; there is none where the standard error is not a terminal
    #[arg(short, long, visible_alias = "no-progress")]
    pub(crate) quiet: bool,

    /// Whether a screen takes the place of all these
    #[arg(skip)]
    pub(crate) screen: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people
    Text,
    /// One document, the same for any spread of the work
    Json,
}

/// Shows live traffic: rates, scans, talkers, conversations, names; or what many sensors report.
#[cfg_attr(not(feature = "top"), doc = "(not in this build: feature `top`)")]
///
/// Draws on the terminal what an interface sees, or a capture as it was recorded. Scans are reported as by
/// `corelane monitor --continuous`. Nothing is lost to a slow terminal. With --from it shows what monitors send with
/// `--publish`, and the scans over all of them as `corelane aggregate` reports them; it changes nothing there.
#[derive(Args, Debug)]
#[command(
    override_usage = "corelane top [OPTIONS] -i IFACE
       corelane top [OPTIONS] FILE...
       corelane top [OPTIONS] --from PLACE
       corelane top [OPTIONS] --demo",
    after_help = "\
Examples:
  corelane top -i eth0                     the traffic of an interface, until q
  corelane top capture.pcap                as it was recorded
  corelane top --speed 60 capture.pcap     an hour in a minute
  corelane top --speed max capture.pcap    its end at once
  ssh gate 'tcpdump -U -w - not port 22' | corelane top -
  corelane top --from nats://hub:4222      the sensors that publish there, and their scans

Keys: Tab panel, arrows select, Enter details of a host, s order, / filter, Space pause,
q quit, ? all keys. A filter has the words of the page that `monitor --html` makes:
ip:10.0.0.0/8 port:443 sni:example proto:dns, or any word.

Exit codes: 0 done, also by q, Ctrl-C or SIGTERM; 1 some input is missing or damaged; 2 wrong usage,
or nothing could be read."
)]
pub(crate) struct TopArguments {
    /// Captures, one after the other; `-` is the standard input
    #[cfg_attr(not(feature = "zstd"), doc = "(zstd is not in this build: feature `zstd`)")]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath,
        required_unless_present_any = ["demo", "interface", "from"])]
    pub(crate) files: Vec<PathBuf>,

    /// Plays 2,000,000 synthetic packets with some scans
    #[arg(long, conflicts_with = "files")]
    pub(crate) demo: bool,

    /// Captures from an interface
    #[arg(short, long, value_name = "IFACE", conflicts_with_all = ["files", "demo"])]
    pub(crate) interface: Option<String>,

    /// The speed at which a capture is played, relative to its recording: a number, or `max` for no waiting [default: 1
    /// for files, `max` for pipes]
    #[arg(long, value_name = "TIMES", value_parser = speed, conflicts_with = "interface")]
    pub(crate) speed: Option<f64>,

    /// Shows only packets that this program accepts: what `tcpdump -ddd EXPRESSION` prints
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "demo")]
    pub(crate) filter_program: Option<PathBuf>,

    /// Shows only packets that this expression of tcpdump's language accepts
    #[cfg_attr(not(feature = "libpcap"), doc = "(not in this build: feature `libpcap`)")]
    #[arg(
        long,
        value_name = "EXPRESSION",
        value_parser = expression,
        conflicts_with_all = ["demo", "filter_program", "from"]
    )]
    pub(crate) filter: Option<String>,

    /// The kernel's buffer for captured packets
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = memory, requires = "interface")]
    pub(crate) ring_size: u64,

    /// The user to become once everything is open, if started as root
    #[arg(long, value_name = "NAME", requires = "interface")]
    pub(crate) user: Option<String>,

    /// How long a failed attempt or probe counts; s, m, h and d may follow
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = span)]
    pub(crate) forget: Duration,

    /// Threads that analyse, beside one that reads; 0: one thread does it all [default: as many as CPUs]
    #[arg(long, value_name = "N", value_parser = analyzers)]
    pub(crate) analyzers: Option<u16>,

    /// Limit of memory in bytes; K, M and G may follow
    #[arg(long, value_name = "BYTES", default_value = "2G", value_parser = memory)]
    pub(crate) memory_limit: u64,

    #[command(flatten)]
    pub(crate) detection: Detection,

    #[command(flatten)]
    pub(crate) watching: Watching,
}

/// What is shown of many sensors.
#[derive(Args, Debug)]
#[command(next_help_heading = "Many sensors (with `corelane monitor --publish`)")]
#[group(skip)]
pub(crate) struct Watching {
    /// Shows what sensors publish there: `file:DIR`, `nats://HOST:PORT` or `tls://HOST:PORT`. Thresholds and --forget
    /// count for shards of which no aggregator has stored its state
    #[cfg_attr(not(feature = "nats"), doc = "(servers are not in this build: feature `nats`)")]
    // As text, since an error of the parser would show a password that should not be there.
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["files", "demo", "interface", "speed", "filter_program",
        "analyzers", "syn_timeout", "tunnels", "ignore_source", "ignore_target", "ignore"])]
    pub(crate) from: Option<String>,

    /// Leaves out a sensor that was silent for this long, until it has caught up
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = span, requires = "from")]
    pub(crate) sensor_timeout: Duration,

    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl TopArguments {
    /// The options of `monitor` for the same analysis on a screen. Those that `top` lacks are as they are by default.
    #[cfg(feature = "top")]
    pub(crate) fn monitor(self) -> MonitorArguments {
        let TopArguments { files, demo, interface, filter_program, filter, ring_size, user, forget, .. } = self;
        let mut monitor = MonitorArguments { files, demo, detection: self.detection, ..MonitorArguments::default() };
        monitor.capture = Capture { interface, filter_program, filter, ring_size, ..monitor.capture };
        let stats_interval = Duration::from_secs(1);
        monitor.endless = Endless { continuous: true, forget, user, stats_interval, ..monitor.endless };
        let memory_limit = Some(self.memory_limit);
        monitor.spread = Spread { analyzers: self.analyzers, memory_limit, ..monitor.spread };
        monitor.outputs =
            Outputs { probes: true, top: 0, protocols: true, quiet: true, screen: true, ..monitor.outputs };
        monitor
    }
}

/// Finds scans over many sensors.
///
/// Joins what monitors send with `--publish`, and reports the scans that one monitor would find if it saw all their
/// packets. Stopped at any time, it resumes where it was.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  corelane monitor -i eth0 --publish file:/var/lib/corelane --sensor eth0
  corelane aggregate --from file:/var/lib/corelane --eve alerts.json
                                           two interfaces of this machine, or more
  corelane aggregate --from nats://hub:4222 --expect north,south --eve alerts.json
                                           two sites; no step ends without both
  corelane aggregate --from nats://hub:4222 --shards 0-127 --eve half.json
                                           one of two aggregators that share the work

Exit codes: 0 done, also by SIGTERM or Ctrl-C; 1 some output is missing; 2 wrong usage, or nothing
could be read.")]
pub(crate) struct AggregateArguments {
    /// Where the sensors publish: `file:DIR`, `nats://HOST:PORT` or `tls://HOST:PORT`
    #[cfg_attr(not(feature = "nats"), doc = "(servers are not in this build: feature `nats`)")]
    // As text, since an error of the parser would show a password that should not be there.
    #[arg(long, value_name = "PLACE")]
    pub(crate) from: String,

    /// The shards of sources, 0 to 255, that this aggregator takes; others take the rest
    #[arg(long, value_name = "A-B", default_value = "0-255", value_parser = shards)]
    pub(crate) shards: Shards,

    /// The names of all sensors: no step ends without them, and others are refused [default: every sensor that sends]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = sensor)]
    pub(crate) expect: Vec<SensorName>,

    /// Leaves out a sensor that was silent for this long, until it has caught up
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = span)]
    pub(crate) sensor_timeout: Duration,

    /// Ends when the runs of all sensors have ended, as runs over captures do, and reports what a monitor does at its
    /// end
    #[arg(long)]
    pub(crate) until_ended: bool,

    /// A vertical scan is more than so many failed ports of one host
    #[arg(long, value_name = "PORTS", default_value_t = 20, value_parser = whole::<u64>)]
    pub(crate) vertical_threshold: u64,

    /// A horizontal scan is more than so many failed hosts on one port
    #[arg(long, value_name = "HOSTS", default_value_t = 20, value_parser = whole::<u64>)]
    pub(crate) horizontal_threshold: u64,

    /// How long a failed attempt or probe counts; s, m, h and d may follow
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = span)]
    pub(crate) forget: Duration,

    /// Suppresses repeated alerts of a scan for this long; then reports its end, or alerts again while it goes on
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span)]
    pub(crate) suppress: Duration,

    /// Limit of memory for groups of failures, and for failures that wait for a sensor that is behind; K, M and G may
    /// follow. At the limit the oldest groups are evicted and counted, and the sensor is left out and logged
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = memory)]
    pub(crate) memory_limit: u64,

    /// How often the state is stored, to resume from after a restart; a large one is stored less often, so that storing
    /// takes at most a twentieth of the time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub(crate) snapshot_interval: Duration,

    /// Writes scans and changes of sensors in Suricata's EVE format [default: scans as text to the standard
    /// output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) eve: Option<PathBuf>,

    /// The rights of the file of events, in octal, such as 640; one that is there keeps its own [default: 666 without
    /// the bits of the umask]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) output_mode: Option<u16>,

    /// Serves `/metrics` for Prometheus and `/healthz`; a port alone is on the loopback address
    #[cfg_attr(not(feature = "metrics"), doc = "(not in this build: feature `metrics`)")]
    #[arg(long, value_name = "[ADDR:]PORT")]
    pub(crate) metrics: Option<String>,

    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Writes a synthetic capture with planted port scans.
///
/// Heavy-tailed conversations between many hosts over IPv4 and IPv6, as pcap. The same options give the same bytes. An
/// OUT that exists is overwritten; one that cannot be completed is removed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  corelane gen trace.pcap -n 82M --truth scans.json   the paper's trace size
  corelane gen - --seed 7 | corelane monitor -
  corelane gen - | gzip > trace.pcap.gz")]
pub(crate) struct GenArguments {
    /// The capture to write; `-` is the standard output
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) out: PathBuf,

    /// How many packets; k, M and G may follow
    #[arg(short = 'n', long, value_name = "N", default_value = "2M", value_parser = count)]
    pub(crate) packets: u64,

    /// How many hosts talk; k and M may follow
    #[arg(long, value_name = "N", default_value = "50k", value_parser = count_u32)]
    pub(crate) hosts: u32,

    /// Chooses one of many captures alike
    #[arg(long, value_name = "N", default_value_t = Config::default().seed, value_parser = whole::<u64>)]
    pub(crate) seed: u64,

    /// Bytes kept of each packet; 0 keeps its headers only
    #[arg(long, value_name = "BYTES", default_value_t = Config::HEADERS_ONLY, value_parser = whole::<u32>)]
    pub(crate) snaplen: u32,

    /// Packets a second of captured time [default: as in the paper's trace, 22,778]
    #[arg(long, value_name = "N", value_parser = count_u32)]
    pub(crate) rate: Option<u32>,

    /// Vertical scans to plant
    #[arg(long, value_name = "N", default_value_t = Config::default().vertical_scans, value_parser = whole::<u32>)]
    pub(crate) vertical_scans: u32,

    /// Horizontal scans to plant
    #[arg(long, value_name = "N", default_value_t = Config::default().horizontal_scans, value_parser = whole::<u32>)]
    pub(crate) horizontal_scans: u32,

    /// Scans by FIN, NULL, Xmas, UDP, SYN+FIN and FIN+PSH probes to plant, the kinds by turns
    #[arg(long, value_name = "N", default_value_t = Config::default().probe_scans, value_parser = whole::<u32>)]
    pub(crate) probe_scans: u32,

    /// Writes the scans that a monitor has to find, in the shape of its report's `alerts` and `probe_scans`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) truth: Option<PathBuf>,

    /// Shows no progress bar; there is none where the standard error is not a terminal
    #[arg(short, long, visible_alias = "no-progress")]
    pub(crate) quiet: bool,
}

fn analyzers(text: &str) -> Result<u16, String> {
    let number = whole::<u16>(text).ok().filter(|&number| usize::from(number) <= Plan::MOST_ANALYZERS);
    number.ok_or_else(|| format!("not a whole number from 0 to {}", Plan::MOST_ANALYZERS))
}

/// The number's own parser, whose error says only "invalid digit found in string", with a better message.
fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "not a whole number, or too large; give one such as 20".to_owned())
}

/// An expression of tcpdump's language, if this program can compile one.
fn expression(text: &str) -> Result<String, String> {
    match cfg!(feature = "libpcap") {
        true => Ok(text.to_owned()),
        false => Err("--filter-program takes what `tcpdump -ddd EXPRESSION` prints; ".to_owned()
            + &left_out("libpcap", "libpcap")),
    }
}

/// A speed; `max` is an infinite one.
fn speed(text: &str) -> Result<f64, String> {
    if text == "max" {
        return Ok(f64::INFINITY);
    }
    let (least, most) = SPEEDS;
    let speed = text.parse().ok().filter(|speed| (least..=most).contains(speed));
    speed.ok_or_else(|| format!("not a number from {least} to {most}, nor `max`; give one such as 10 or 0.5"))
}

/// The rights of a file, which its owner has to be able to read and write: what was torn is looked for in it.
fn mode(text: &str) -> Result<u16, String> {
    let mode = u16::from_str_radix(text, 8).ok().filter(|mode| mode & !0o666 == 0 && mode & 0o600 == 0o600);
    mode.ok_or_else(|| "not the rights of a file, of which its owner has 6; give them in octal, such as 640".to_owned())
}

fn events() -> impl TypedValueParser<Value = Events> {
    PossibleValuesParser::new(Events::NAMES.map(|(name, _)| name)).try_map(|name| name.parse::<Events>())
}

/// A time in whole seconds, of at least one.
fn span(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 60 * 60),
        Some((at, 'd')) => (&text[..at], 24 * 60 * 60),
        _ => (text, 1),
    };
    let wrong = || "not a whole number of at least 1, with s, m, h or d for its unit; give one such as 90s or 15m";
    let number = digits.parse::<u32>().ok().filter(|&number| number > 0).ok_or_else(wrong)?;
    Ok(Duration::from_secs(u64::from(number) * unit))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds; give one such as 3 or 0.5")?;
    // The most seconds that a pcap file can count.
    if !(0.0..=f64::from(u32::MAX)).contains(&seconds) {
        return Err(format!("out of range; give 0 to {} seconds", u32::MAX));
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn sensor(text: &str) -> Result<SensorName, String> {
    let name: SensorName = text.parse()?;
    if !is_sensor_name(name.as_str()) {
        return Err("not for a sensor: a folder beside those of sensors has this name".to_owned());
    }
    Ok(name)
}

/// A range of shards.
pub(crate) type Shards = RangeInclusive<u8>;

fn shards(text: &str) -> Result<Shards, String> {
    let range = text.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    let range = range.filter(|(first, last): &(u8, u8)| first <= last).map(|(first, last)| first..=last);
    range.ok_or_else(|| "not a range of shards from 0 to 255; give one such as 0-127".to_owned())
}

/// A list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cpus(pub(crate) Vec<usize>);

/// The slowest and the fastest speed of a replay.
pub(crate) const SPEEDS: (f64, f64) = (0.001, 1e6);

/// More than there are CPUs for.
const MOST_RINGS: u16 = 64;

/// No system numbers its CPUs beyond this.
const MOST_CPUS: usize = 1 << 16;

fn cpus(text: &str) -> Result<Cpus, String> {
    let number = |text: &str| match text.trim().parse::<usize>() {
        Ok(cpu) if cpu < MOST_CPUS => Ok(cpu),
        _ => Err(format!("'{text}' is not a CPU number below {MOST_CPUS}; give a list such as 0,2-3")),
    };
    let mut list = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => list.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(format!("'{part}' runs backwards; give the lower CPU first"));
                }
                list.extend(first..=last);
            }
        }
    }
    Ok(Cpus(list))
}

/// Suffixes are powers of 1024, as usual for memory.
fn memory(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: u64 =
        digits.replace('_', "").parse().map_err(|_| "not a number of bytes; give one such as 512M or 2G")?;
    number.checked_mul(1 << shift).ok_or_else(|| "too large; give fewer bytes than 2^64".to_owned())
}

fn rings(text: &str) -> Result<NonZeroU16, String> {
    let number = whole::<NonZeroU16>(text).ok().filter(|number| number.get() <= MOST_RINGS);
    number.ok_or_else(|| format!("not a whole number from 1 to {MOST_RINGS}"))
}

fn memory_u32(text: &str) -> Result<u32, String> {
    u32::try_from(memory(text)?).map_err(|_| "too large; give fewer bytes than 2^32".to_owned())
}

fn count(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        Some((at, 'g' | 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u64 =
        digits.replace('_', "").parse().map_err(|_| "not a whole number; give one such as 500, 50k or 2M")?;
    number.checked_mul(unit).ok_or_else(|| "too large; give less than 2^64".to_owned())
}

fn some(text: &str) -> Result<NonZeroU64, String> {
    NonZeroU64::new(count(text)?).ok_or_else(|| "too small; give at least 1".to_owned())
}

fn count_u32(text: &str) -> Result<u32, String> {
    u32::try_from(count(text)?).map_err(|_| "too large; give less than 2^32".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_libraries() {
        let Command::Monitor(monitor) = Arguments::parse_from(["corelane", "monitor", "-"]).command else { panic!() };
        let settings = corelane_monitor::Settings::default();
        assert_eq!(monitor.detection.syn_timeout, Duration::from_nanos(settings.syn_timeout_ns));
        assert_eq!(monitor.detection.vertical_threshold, settings.vertical_threshold);
        assert_eq!(monitor.detection.horizontal_threshold, settings.horizontal_threshold);
        assert_eq!(monitor.outputs.top, settings.top);
        let Command::Gen(gen_) = Arguments::parse_from(["corelane", "gen", "-"]).command else { panic!() };
        assert_eq!((gen_.packets, gen_.hosts), (Config::default().packets, Config::default().hosts));
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(cpus("0,2-3"), Ok(Cpus(vec![0, 2, 3])));
        assert_eq!(cpus("7"), Ok(Cpus(vec![7])));
        for wrong in ["", "a", "1,", "3-1", "-1", "1-", "99999999"] {
            assert!(cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_and_seconds() {
        for (text, value) in [("0", 0), ("2_000", 2_000), ("3k", 3_000), ("82M", 82_000_000), ("1g", 1_000_000_000)] {
            assert_eq!(count(text), Ok(value));
        }
        for wrong in ["", "k", "1.5M", "-1", "1kk", "99999999999G", "ü"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        assert_eq!(some("1M").map(NonZeroU64::get), Ok(1_000_000));
        assert!(some("0").is_err() && some("").is_err());
        assert_eq!((memory("512M"), memory("7")), (Ok(512 << 20), Ok(7)));
        assert!(memory("1T").is_err() && memory("99999999999G").is_err());
        for (text, value) in [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86_400)] {
            assert_eq!(span(text), Ok(Duration::from_secs(value)));
        }
        for wrong in ["", "m", "0", "1.5m", "-1s", "1w", "5000000000"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
        assert_eq!([mode("640"), mode("0600"), mode("666")], [Ok(0o640), Ok(0o600), Ok(0o666)]);
        for wrong in ["", "rw", "44", "440", "755", "1666", "690", "-640"] {
            assert!(mode(wrong).is_err(), "{wrong}");
        }
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!([speed("10"), speed("0.5"), speed("max")], [Ok(10.0), Ok(0.5), Ok(f64::INFINITY)]);
        for wrong in ["", "0", "-1", "NaN", "inf", "1e12", "fast"] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "x", "-1", "NaN", "inf", "1e12"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
