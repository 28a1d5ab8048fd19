//! The report for people: aligned tables, large numbers in groups of three.

use crate::continuous::{ScanEvent, ScanState};
use crate::probe::Probe;
use crate::report::{Alert, Evicted, Report, SourceCounts, Timing, Tunnels};
use crate::room::Refused;
use crate::steps::Jumps;
use crate::talkers::{Pair, Talker, Volume};
use crate::time::Timestamp;
use corelane_net::defrag;
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::net::Ipv6Addr;

/// The most scans of a kind that are listed; the outputs for machines have them all.
const SCANS: usize = 50;

/// The style of a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether to emphasize by terminal escape sequences.
    pub color: bool,
}

impl Report {
    /// Writes the report for people to read.
    pub fn write_summary(&self, timing: &Timing, style: Style, mut out: impl Write) -> io::Result<()> {
        let mut page = Page { out: &mut out, style, begun: false };
        page.heading("Capture")?;
        page.table(None, &self.capture_rows())?;
        page.heading("Speed")?;
        page.table(None, &self.speed_rows(timing))?;
        self.write_analyzers(&mut page)?;
        self.write_scans(&mut page)?;
        self.write_sources(&mut page)?;
        write_talkers(&mut page, "Top conversations", "between", &self.conversations, |Pair(a, b)| {
            format!("{a} - {b}")
        })?;
        write_talkers(&mut page, "Top hosts", "host", &self.hosts, ToString::to_string)
    }

    fn capture_rows(&self) -> Vec<Vec<Cell>> {
        let mut rows = vec![
            row([left("packets"), number(self.packets), left(format!("{} on the wire", bytes(self.bytes)))]),
            row([left("TCP packets"), number(self.tcp)]),
            row([
                left("flows"),
                number(self.flows),
                left(self.pairs.map_or_else(String::new, |pairs| format!("in {}", plural(pairs, "address pair")))),
            ]),
        ];
        if !self.refused.is_empty() {
            let Refused { flow_packets, attempts, source_packets } = self.refused;
            let missed = format!(
                "packets of flows, {} and {} without room",
                plural(attempts, "attempt"),
                plural(source_packets, "source packet")
            );
            rows.push(row([left("memory limit"), number(flow_packets), left(missed)]));
        }
        if let Some(capture) = &self.capture {
            let from = format!("from {}", capture.interface);
            rows.push(row([left("received"), number(capture.kernel_packets), left(from)]));
            let freezes = format!("the ring was full {}", plural(capture.freezes, "time"));
            for (name, count, what) in [
                ("dropped", capture.kernel_drops, freezes.as_str()),
                ("truncated", capture.truncated, "longer than what is captured of a packet"),
                ("output errors", capture.output_errors, "attempts to write that failed"),
                ("output lost", capture.output_dropped, "lines and records that could not be written"),
            ] {
                if count > 0 || name == "dropped" {
                    rows.push(row([left(name), number(count), left(what)]));
                }
            }
        }
        let Evicted { flows, failures, groups } = self.evicted;
        for (count, what) in [
            (flows, "flows given up for the memory that others needed"),
            (failures, "attempts and probes given up likewise"),
            (groups, "groups of failures given up likewise: scans may be missing"),
        ] {
            if count > 0 {
                rows.push(row([left("memory limit"), number(count), left(what)]));
            }
        }
        if self.malformed > 0 {
            rows.push(row([left("malformed"), number(self.malformed), left("a header is wrong or cut")]));
        }
        for (name, count, what) in [
            ("ARP", self.arp, "addresses that were asked for and told on the link"),
            ("undecoded", self.undecoded - self.arp, "neither IP nor ARP"),
        ] {
            if count > 0 {
                rows.push(row([left(name), number(count), left(what)]));
            }
        }
        let defrag::Counts { evicted, too_many_pieces, timed_out, malformed, cut, refused, .. } = self.fragments;
        for (name, count, what) in [
            ("fragments", self.fragments.fragments, format!("of {}", plural(self.fragments.whole, "whole datagram"))),
            ("not whole", evicted + too_many_pieces + timed_out, "datagrams that lack fragments".to_owned()),
            ("bad fragments", malformed + cut + refused, "wrong, cut, or of a datagram with overlaps".to_owned()),
        ] {
            if count > 0 {
                rows.push(row([left(name), number(count), left(what)]));
            }
        }
        let Jumps { ahead, set_back, .. } = self.jumps;
        for (name, count, what) in [
            ("far ahead", ahead, "packets whose times are not believed"),
            ("set back", set_back, "times that the clock went back"),
        ] {
            if count > 0 {
                rows.push(row([left(name), number(count), left(what)]));
            }
        }
        let Tunnels { opened, too_deep, fragmented } = self.tunnels.unwrap_or_default();
        for (name, count, what) in [
            ("tunnelled", opened, "the innermost packet counts"),
            ("too deep", too_deep, "tunnels in tunnels that were not opened"),
            ("in fragments", fragmented, "tunnels that came in fragments, and were not opened"),
        ] {
            if count > 0 {
                rows.push(row([left(name), number(count), left(what)]));
            }
        }
        let how = format!("{} rejected, {} unanswered", grouped(self.rejected), grouped(self.unanswered));
        rows.push(row([left("failed attempts"), number(self.failed_attempts), left(how)]));
        if let Some((first, last)) = self.times {
            let span = format!("from {} UTC", Timestamp::of(first).human());
            rows.push(row([left("time span"), right(duration(last - first)), left(span)]));
        }
        rows
    }

    fn speed_rows(&self, timing: &Timing) -> Vec<Vec<Cell>> {
        let seconds = |time: std::time::Duration| right(format!("{:.3} s", time.as_secs_f64()));
        let mut rows = vec![
            row([left("wall time"), seconds(timing.wall)]),
            row([left("CPU time"), seconds(timing.cpu)]),
            row([left("packets/s"), right(scaled(timing.per_second(self.packets), ""))]),
            row([left("bits/s"), right(scaled(timing.per_second(self.bytes) * 8.0, "bit"))]),
        ];
        rows.extend(timing.peak_memory.map(|peak| row([left("peak memory"), right(bytes(peak))])));
        rows
    }

    fn write_analyzers<W: Write>(&self, page: &mut Page<'_, W>) -> io::Result<()> {
        if self.analyzer_packets.len() < 2 && self.dispatcher_packets == 0 {
            return Ok(());
        }
        let stages = (self.analyzer_packets.iter().enumerate())
            .map(|(number, &packets)| (format!("SubAnalyzer {number}"), packets))
            .chain((self.dispatcher_packets > 0).then(|| ("Dispatcher".into(), self.dispatcher_packets)));
        let total = self.analyzer_packets.iter().sum::<u64>() + self.dispatcher_packets;
        let rows: Vec<_> = stages
            .map(|(stage, packets)| {
                let share = if total == 0 { 0.0 } else { packets as f64 * 100.0 / total as f64 };
                row([left(stage), number(packets), right(format!("{share:.1} %"))])
            })
            .collect();
        page.heading("Analysis")?;
        page.table(Some(row([left("stage"), right("packets"), right("share")])), &rows)
    }

    fn write_sources<W: Write>(&self, page: &mut Page<'_, W>) -> io::Result<()> {
        let Some(sources) = self.sources.as_ref().filter(|sources| !sources.is_empty()) else { return Ok(()) };
        let row_of =
            |counts: &SourceCounts| row([left(counts.source), right(bytes(counts.bytes)), number(counts.connections)]);
        page.heading("Top sources")?;
        let head = row([left("source"), right("bytes sent"), right("connections begun")]);
        page.table(Some(head), &sources.iter().map(row_of).collect::<Vec<_>>())
    }

    /// Writes a table for each kind. It is narrow enough for two IPv6 addresses in 80 columns, if everything happens in
    /// one day.
    fn write_scans<W: Write>(&self, page: &mut Page<'_, W>) -> io::Result<()> {
        if self.alerts.is_empty() && self.probe_scans.is_empty() {
            page.heading("Scans")?;
            return writeln!(page.out, "  none found");
        }
        let all = || self.alerts.iter().chain(self.probe_scans.iter().map(|found| &found.scan));
        let times = || all().map(|alert| Timestamp::of(alert.time_ns()));
        let day = times().next().map(|first| first.date()).filter(|day| times().all(|time| time.date() == *day));
        let kinds = [("vertical", "host"), ("horizontal", "port"), ("block", "")];
        let probes = std::iter::once(None).chain(Probe::ALL.map(Some));
        for (probe, (kind, target)) in probes.flat_map(|probe| kinds.map(|kind| (probe, kind))) {
            let of_kind = || {
                let by_syn = self.alerts.iter().filter(move |_| probe.is_none());
                let by_probe = self.probe_scans.iter().filter(move |found| Some(found.probe) == probe);
                by_syn.chain(by_probe.map(|found| &found.scan)).filter(move |alert| alert.kind() == kind)
            };
            let count = of_kind().count();
            let Some(unit) = of_kind().next().map(|scan| plural(2, scan.unit(probe)).replacen("2 ", "", 1)) else {
                continue;
            };
            let has_port = probe.is_none_or(Probe::has_port);
            let target = if has_port { target } else { "" };
            let row_of = |alert: &Alert| {
                let time = Timestamp::of(alert.time_ns());
                let target = match alert {
                    Alert::Vertical { destination, .. } => left(destination),
                    Alert::Horizontal { port, .. } if has_port => right(port),
                    Alert::Horizontal { .. } | Alert::Block { .. } => left(""),
                };
                let time = if day.is_some() { time.time() } else { format!("{} {}", time.date(), time.time()) };
                row([left(time), left(alert.source()), target, number(alert.count())])
            };
            let rows: Vec<_> = of_kind().take(SCANS).map(row_of).collect();
            let by = probe.map_or_else(String::new, |probe| format!("{probe} "));
            page.heading(&format!("{}{} {by}scans ({})", kind[..1].to_uppercase(), &kind[1..], grouped(count as u64)))?;
            let when = day.as_deref().unwrap_or("time (UTC)");
            page.table(Some(row([left(when), left("source"), left(target), right(unit)])), &rows)?;
            if let more @ 1.. = count.saturating_sub(SCANS) {
                let whole = if probe.is_none() { "JSON report" } else { "EVE alerts" };
                writeln!(page.out, "  and {} more, all of which are in the {whole}", grouped(more as u64))?;
            }
        }
        Ok(())
    }
}

/// One line for people: when it was found, by whom, of what.
impl Display for ScanEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Timestamp::of(self.scan.time_ns());
        let (source, count) = (self.scan.source(), self.scan.count());
        let probe = self.probe.map_or_else(|| "SYN".to_owned(), |probe| probe.to_string());
        write!(f, "{} {} {} {probe} scan ", time.date(), time.time(), self.scan.kind())?;
        match self.scan {
            Alert::Vertical { destination, .. } => write!(f, "of {destination} ")?,
            Alert::Horizontal { port, .. } if self.probe.is_none_or(Probe::has_port) => write!(f, "of port {port} ")?,
            Alert::Horizontal { .. } | Alert::Block { .. } => {}
        }
        write!(f, "by {source}")?;
        if let Some(tunnel) = &self.tunnel {
            let [from, to] = [tunnel.source, tunnel.destination].map(|it| Ipv6Addr::from_bits(it).to_canonical());
            write!(f, " in a tunnel from {from} to {to}")?;
        }
        match self.state {
            ScanState::Found => write!(f, ": {} so far", plural(count, self.scan.unit(self.probe))),
            ScanState::Ended { last_ns } => {
                let last = Timestamp::of(last_ns);
                write!(f, ": {} until {} {}", plural(count, "failure"), last.date(), last.time())
            }
        }
    }
}

fn write_talkers<W: Write, I>(
    page: &mut Page<'_, W>,
    heading: &str,
    who: &str,
    talkers: &[Talker<I>],
    name: impl Fn(&I) -> String,
) -> io::Result<()> {
    if talkers.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = (talkers.iter())
        .map(|talker| {
            let Volume { flows, packets, bytes: of_them } = talker.volume;
            row([left(name(&talker.id)), right(bytes(of_them)), number(packets), number(flows)])
        })
        .collect();
    page.heading(heading)?;
    page.table(Some(row([left(who), right("bytes"), right("packets"), right("flows")])), &rows)
}

pub(crate) struct Cell {
    text: String,
    right: bool,
}

pub(crate) fn left(text: impl Display) -> Cell {
    Cell { text: text.to_string(), right: false }
}

pub(crate) fn right(text: impl Display) -> Cell {
    Cell { text: text.to_string(), right: true }
}

pub(crate) fn number(value: u64) -> Cell {
    right(grouped(value))
}

pub(crate) fn row<const N: usize>(cells: [Cell; N]) -> Vec<Cell> {
    cells.into()
}

pub(crate) struct Page<'a, W> {
    pub(crate) out: &'a mut W,
    pub(crate) style: Style,
    /// Whether text is on it already.
    pub(crate) begun: bool,
}

impl<W: Write> Page<'_, W> {
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            writeln!(self.out)?;
        }
        if self.style.color { writeln!(self.out, "\x1b[1m{text}\x1b[0m") } else { writeln!(self.out, "{text}") }
    }

    pub(crate) fn table(&mut self, head: Option<Vec<Cell>>, rows: &[Vec<Cell>]) -> io::Result<()> {
        let mut widths = Vec::new();
        for row in head.iter().chain(rows) {
            for (column, cell) in row.iter().enumerate() {
                if column == widths.len() {
                    widths.push(0);
                }
                widths[column] = widths[column].max(cell.text.len());
            }
        }
        let line = |row: &Vec<Cell>| {
            let mut line = String::new();
            for (cell, &width) in row.iter().zip(&widths) {
                let text = &cell.text;
                line += &if cell.right { format!("  {text:>width$}") } else { format!("  {text:<width$}") };
            }
            line.truncate(line.trim_end().len());
            line
        };
        if let Some(head) = &head {
            let (dim, plain) = if self.style.color { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
            writeln!(self.out, "{dim}{}{plain}", line(head))?;
        }
        for row in rows {
            writeln!(self.out, "{}", line(row))?;
        }
        Ok(())
    }
}

/// Formats 1234567 as 1,234,567.
/// A number with its digits in groups of three: `1,234,567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub(crate) fn plural(count: u64, one: &str) -> String {
    match one.strip_suffix('y') {
        Some(stem) if count != 1 => format!("{} {stem}ies", grouped(count)),
        _ => format!("{} {one}{}", grouped(count), if count == 1 { "" } else { "s" }),
    }
}

/// Three or four digits and a decimal prefix.
fn scaled(value: f64, unit: &str) -> String {
    let mut value = value;
    let mut prefix = "";
    for larger in ["k", "M", "G", "T", "P", "E"] {
        if value < 999.95 {
            break;
        }
        value /= 1000.0;
        prefix = larger;
    }
    let digits = usize::from(!prefix.is_empty() && value < 99.95) + usize::from(!prefix.is_empty() && value < 9.995);
    format!("{value:.digits$} {prefix}{unit}").trim_end().to_owned()
}

pub(crate) fn bytes(count: u64) -> String {
    scaled(count as f64, "B")
}

pub(crate) fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    if days > 0 {
        format!("{} d {hours} h", grouped(days))
    } else if hours > 0 {
        format!("{hours} h {minutes} min")
    } else if minutes > 0 {
        format!("{minutes} min {} s", seconds % 60)
    } else {
        format!("{:.3} s", ns as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        for (value, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(value), text);
        }
        assert_eq!(plural(1, "port"), "1 port");
        assert_eq!(plural(1200, "port"), "1,200 ports");
        assert_eq!((plural(1, "query"), plural(2, "query")), ("1 query".into(), "2 queries".into()));
        for (value, text) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (999.96, "1.00 kB"),
            (1000.0, "1.00 kB"),
            (56_789.0, "56.8 kB"),
            (567_890_123.0, "568 MB"),
            (1.85e19, "18.5 EB"),
        ] {
            assert_eq!(scaled(value, "B"), text);
        }
        assert_eq!(scaled(1.234e7, ""), "12.3 M");
        for (ns, text) in [
            (0, "0.000 s"),
            (59_999_000_000, "59.999 s"),
            (61_000_000_000, "1 min 1 s"),
            (3_660_000_000_000, "1 h 1 min"),
            (86_400_000_000_000 * 1000, "1,000 d 0 h"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }
}
