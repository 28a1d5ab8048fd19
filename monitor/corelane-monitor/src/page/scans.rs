//! Scanners, their scans, and pictures of what they tried.

use super::Sight;
use super::format::{by, ports, rate};
use super::html::{Html, html};
use super::picture::{Series, bars, cells};
use super::tables::{Column, begin, end, row};
use super::widgets::{address, fates, key, open};
use crate::facts::{Attempts, COLUMNS, Row, ScanDetails, Scanner, Span, Story, Tries};
use crate::probe::Probe;
use crate::report::Alert;
use crate::summary::{duration, grouped, plural};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Scanners with a card.
const CARDS: usize = 12;
/// Scanners with a picture of their targets.
const MATRICES: usize = 6;
/// Rows of such a picture.
const ROWS: usize = 40;
/// Bars of a picture of attempts.
const BARS: usize = 120;
/// Open ports that a sentence names, and a row.
const OPEN: [usize; 2] = [12, 6];

/// Says what a scanner did.
pub(super) fn sentence(page: &mut Html, sight: &Sight<'_>, scanner: &Scanner) {
    let details = &scanner.details;
    let probes: Vec<_> = scanner.probes.iter().map(|probe| by(*probe)).collect();
    page.raw(" scanned ");
    let stories = || sight.facts.stories.iter().filter(|story| story.scan.source() == scanner.source);
    // How much the largest of these tried.
    let most = |of: &dyn Fn(&Story) -> bool| {
        let counts = stories()
            .filter(|story| of(story))
            .map(|story| (story.scan.count() + story.details.answered, story.scan.unit(story.probe)));
        counts.max().map(|(count, unit)| plural(count, unit))
    };
    let has_port = |story: &Story| story.probe.is_none_or(Probe::has_port);
    let hosts: BTreeSet<_> = stories().filter_map(|story| vertical(&story.scan)).collect();
    let mut and = "";
    if let Some(most) = most(&|story| vertical(&story.scan).is_some()) {
        match hosts.first() {
            Some(host) if hosts.len() == 1 => {
                html!(page, {most} " of ");
                address(page, *host);
            }
            _ => html!(page, "up to " {most} " of " {plural(hosts.len() as u64, "host")}),
        }
        and = ", and ";
    }
    let across: BTreeSet<_> =
        stories().filter(|story| has_port(story)).filter_map(|story| horizontal(&story.scan)).collect();
    if let Some(most) = most(&|story| has_port(story) && horizontal(&story.scan).is_some()) {
        let (s, up_to) = if across.len() == 1 { ("", "") } else { ("s", "up to ") };
        html!(page, {and} "port" {s} " " {list(across.iter())} " of " {up_to} {most});
        and = ", and ";
    }
    if let Some(most) = most(&|story| !has_port(story)) {
        html!(page, {and} {most});
        and = ", and ";
    }
    if and.is_empty() {
        html!(page, {plural(scanner.ports, "port")} " of " {plural(scanner.rows.len() as u64, "host")});
    }
    let Span(first, last) = details.span;
    html!(page, " (" {probes.join(", ")} ") from " {sight.clock.time(first)} " to " {sight.clock.time(last)});
    let (Span(begin, end), _) = details.most();
    if end.saturating_sub(begin) < last.saturating_sub(first) / 2 {
        html!(page, ", most of it in " {duration(end - begin)} " from " {sight.clock.time(begin)});
    }
    page.raw("; ");
    if details.open.is_empty() {
        html!(page, "nothing was seen open.");
        return;
    }
    html!(page, "<span class=\"bad\">open</span>: ");
    open(page, details, OPEN[0]);
    page.raw(".");
}

fn vertical(scan: &Alert) -> Option<IpAddr> {
    scan.destination()
}

fn horizontal(scan: &Alert) -> Option<u16> {
    scan.port()
}

/// A list of ports that is not too long.
fn list<'a>(all: impl Iterator<Item = &'a u16> + Clone) -> String {
    let shown = ports(all.clone().take(OPEN[0]).copied());
    if all.count() > OPEN[0] { format!("{shown}, …") } else { shown }
}

pub(super) fn write(page: &mut Html, sight: &Sight<'_>) {
    let facts = sight.facts;
    page.raw(
        "<h2 id=\"scans\">Scans</h2><p class=\"soft\">Looked for: attempts to connect by TCP, and probes by UDP and by \
         odd flags (FIN, NULL, Xmas and others), by SCTP, and sweeps by ping and by ARP.</p>",
    );
    if facts.stories.is_empty() {
        page.raw(
            "<p>None found: no source failed at many ports of one host, or at one port of many hosts. A scan of few \
             ports, one from many sources, or one of which most attempts were answered is not found.</p>",
        );
        return;
    }
    page.raw("<div class=\"cards\">");
    for scanner in facts.scanners.iter().take(CARDS) {
        card(page, sight, scanner);
    }
    page.raw("</div>");
    let cards = facts.scanners.len().min(CARDS) as u64;
    if let more @ 1.. = facts.scanners.len() as u64 + facts.more_scanners - cards {
        html!(page, "<p class=\"soft\">And " {plural(more, "other scanner")} ".</p>");
    }
    if facts.may_lack_answers {
        page.raw("<p class=\"soft\">So many attempts were answered that what was open may be incomplete.</p>");
    }
    table(page, sight);
}

fn card(page: &mut Html, sight: &Sight<'_>, scanner: &Scanner) {
    let details = &scanner.details;
    html!(page, "<section class=\"card\"><h3>");
    address(page, scanner.source);
    html!(page, "</h3><p>It");
    sentence(page, sight, scanner);
    let [vertical, horizontal] = scanner.scans;
    let scans = [(vertical, "vertical scan"), (horizontal, "horizontal scan")];
    let scans: Vec<_> =
        scans.iter().filter(|(count, _)| *count > 0).map(|(count, name)| plural(*count, name)).collect();
    html!(page, "</p><p class=\"soft\">" {scans.join(", ")} "; ");
    failures(page, sight, scanner);
    page.raw("</p>");
    attempts(page, &format!("Attempts of {} over time", scanner.source), &details.attempts);
    scale(page, sight, details.span);
    page.raw("</section>");
}

/// Says how often a scanner failed: by SYNs, as the whole capture counts them, and by other probes.
fn failures(page: &mut Html, sight: &Sight<'_>, scanner: &Scanner) {
    let (details, source) = (&scanner.details, scanner.source);
    let write = |page: &mut Html, text: &str, protocol: &str| {
        let condition = match protocol {
            "tcp" | "udp" => format!(".src_ip == \"{source}\" and .proto == \"{}\"", protocol.to_ascii_uppercase()),
            _ => format!(".src_ip == \"{source}\""),
        };
        key(page, text, &sight.commands.attempts(&format!("{protocol} and host {source}"), &condition));
    };
    let attempts = details.failed - details.probes;
    if attempts > 0 {
        write(page, &plural(attempts, "failed TCP attempt"), "tcp");
        let end = if details.probes > 0 { "; " } else { "" };
        html!(page, " (" {fates(details.rejected, attempts - details.rejected)} ")" {end});
    }
    if details.probes > 0 {
        let kinds: Vec<_> = scanner.probes.iter().flatten().copied().collect();
        let protocols: BTreeSet<_> = kinds.iter().map(|&kind| filter(Some(kind), source)).collect();
        let protocols = Vec::from_iter(protocols);
        let protocol = match protocols[..] {
            [one] => one.to_owned(),
            _ => format!("({})", protocols.join(" or ")),
        };
        write(page, &plural(details.probes, "failed probe"), &protocol);
        let kinds: Vec<_> = kinds.iter().map(Probe::to_string).collect();
        html!(page, " by " {kinds.join(", ")});
    }
}

/// What tcpdump calls the protocol of these probes.
fn filter(probe: Option<Probe>, source: IpAddr) -> &'static str {
    match (probe, source) {
        (Some(Probe::Udp), _) => "udp",
        (Some(Probe::Ping), IpAddr::V4(_)) => "icmp",
        (Some(Probe::Ping), IpAddr::V6(_)) => "icmp6",
        (Some(Probe::Arp), _) => "arp",
        (Some(Probe::Protocol), IpAddr::V4(_)) => "ip",
        (Some(Probe::Protocol), IpAddr::V6(_)) => "ip6",
        (Some(Probe::Sctp), _) => "sctp",
        _ => "tcp",
    }
}

/// What became of the attempts of a scan that failed, unless any such segment has failed.
fn fates_of(probe: Option<Probe>, details: &ScanDetails) -> Vec<String> {
    match probe {
        None => {
            let fates = [(details.rejected, "rejected"), (details.failed - details.rejected, "unanswered")];
            fates
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, fate)| format!("{} {fate}", grouped(*count)))
                .collect()
        }
        Some(Probe::Udp) => vec!["no data back".to_owned()],
        Some(Probe::Ping | Probe::Arp | Probe::Sctp) => vec![format!("{} answered", grouped(details.answered))],
        Some(_) => Vec::new(),
    }
}

fn attempts(page: &mut Html, label: &str, attempts: &Attempts) {
    let attempts = attempts.within(BARS);
    let series = |class, of: fn(&Tries) -> u32| Series {
        class,
        values: attempts.bins().iter().map(|tries| u64::from(of(tries))).collect(),
    };
    bars(page, label, &[series("open", |tries| tries.answered), series("failed", |tries| tries.failed)]);
}

fn scale(page: &mut Html, sight: &Sight<'_>, Span(first, last): Span) {
    html!(page, "<div class=\"scale\"><span>" {sight.clock.time(first)} "</span><span>"
        {sight.clock.time(last)} "</span></div>");
}

fn table(page: &mut Html, sight: &Sight<'_>) {
    const COLUMNS: [Column; 10] = [
        ("Scanner", ""),
        ("Scan", ""),
        ("Target", ""),
        ("Failed", "r"),
        ("Open", ""),
        ("Mostly from", ""),
        ("Took", "r"),
        ("First", ""),
        ("Last", ""),
        ("Attempts", ""),
    ];
    let facts = sight.facts;
    let mut stories: Vec<_> = facts.stories.iter().collect();
    stories.sort_by_key(|story| (story.scan.order(), story.probe));
    page.raw(
        "<p class=\"soft\">Each port of a host counts once, without retries. “TCP” is by attempts to connect, \
         half-open or not: failed if an RST came or no answer. A UDP probe failed if no datagram came back, refused \
         or lost; one by odd flags whatever came. “Open” is what answered; what failed first and answered \
         later is only among the ports served. “Mostly” is the shortest time that holds nine of ten attempts, \
         answered ones too; “First” and “Last” are of all.</p>",
    );
    begin(page, &COLUMNS, "Scans in order of time", stories.len(), (facts.more_stories, false));
    for story in stories {
        let Story { scan, probe, details } = story;
        row(page, sight, details.span);
        page.raw("<td>");
        address(page, scan.source());
        html!(page, "</td><td class=\"w\">" {scan.kind()} " " {by(*probe)} "</td>");
        let protocol = filter(*probe, scan.source());
        let carrier = probe.map_or("TCP", |probe| probe.carrier(scan.source().is_ipv6()));
        let condition = format!(".src_ip == \"{}\" and .proto == \"{carrier}\"", scan.source());
        let (filter, condition) = match *scan {
            Alert::Vertical { source, destination, .. } => {
                page.raw("<td class=\"w\">");
                address(page, destination);
                let condition = format!("{condition} and .dest_ip == \"{destination}\"");
                (format!("{protocol} and host {source} and host {destination}"), condition)
            }
            Alert::Horizontal { source, .. } if probe.is_some_and(|probe| !probe.has_port()) => {
                page.raw("<td class=\"w\">many hosts");
                (format!("host {source} and {protocol}"), condition)
            }
            Alert::Horizontal { source, port, .. } => {
                html!(page, "<td class=\"w\" data-v=\"" {port} "\">port <i>" {port} "</i>");
                (format!("host {source} and {protocol} port {port}"), format!("{condition} and .dest_port == {port}"))
            }
            Alert::Block { source, .. } => {
                page.raw("<td class=\"w\">several hosts");
                (format!("host {source} and {protocol}"), condition)
            }
        };
        html!(page, "</td><td class=\"r\" data-v=\"" {scan.count()} "\">");
        key(page, &plural(scan.count(), scan.unit(*probe)), &sight.commands.attempts(&filter, &condition));
        for fate in fates_of(*probe, details) {
            html!(page, "<br><span class=\"soft\">" {fate} "</span>");
        }
        // All that are kept, for the filter: not all of them are shown.
        let mut found: Vec<_> = details.open.iter().map(|open| open.port.number).collect();
        found.sort_unstable();
        html!(page, "</td><td data-p=\"" {ports(found)} "\">");
        match details.open.is_empty() {
            true => html!(page, "none seen"),
            false => open(page, details, OPEN[1]),
        }
        let (Span(begin, end), count) = details.most();
        let took = end.saturating_sub(begin);
        html!(page, "</td><td class=\"w\">" {sight.clock.time(begin)}
            "</td><td class=\"r\" data-v=\"" {took / 1_000_000} "\">" {duration(took)});
        // Between so many there is one fewer.
        if let Some(rate) = rate(count.saturating_sub(1), took) {
            html!(page, "<br><span class=\"soft\">" {rate} "</span>");
        }
        page.raw("</td>");
        let Span(first, last) = details.span;
        for time in [first, last] {
            html!(page, "<td class=\"w\">" {sight.clock.time(time)} "</td>");
        }
        page.raw("<td>");
        attempts(page, "Attempts over time", &details.attempts);
        page.raw("</td></tr>");
    }
    end(page);
}

/// Writes for each scanner what it tried: hosts by ports.
pub(super) fn write_matrices(page: &mut Html, sight: &Sight<'_>) {
    page.raw("<h2 id=\"matrix\">Scanners by target and port</h2>");
    if sight.facts.scanners.is_empty() {
        page.raw("<p>No scanners.</p>");
        return;
    }
    page.raw(
        "<p class=\"soft\">A row is a host, from left to right its ports; one half for ports below 1024, the other for \
         those above. A line across is a vertical scan, a line down a horizontal one. \
         <span class=\"key failed\">failed</span> <span class=\"key open\">open</span></p>",
    );
    for scanner in sight.facts.scanners.iter().filter(|scanner| !scanner.rows.is_empty()).take(MATRICES) {
        let rows = rows(scanner);
        html!(page, "<figure><figcaption>" {scanner.source} " tried "
            {plural(scanner.rows.len() as u64, "host")} {if scanner.more_rows { " or more" } else { "" }}
            "</figcaption><div class=\"matrix\"><ol aria-hidden=\"true\">");
        for (name, _) in &rows {
            html!(page, "<li>" {name} "</li>");
        }
        page.raw("</ol>");
        let bits: Vec<_> = rows.iter().map(|(_, row)| [row.failed, row.open]).collect();
        cells(page, &format!("Hosts and ports that {} tried", scanner.source), COLUMNS, &bits);
        page.raw(
            "<div class=\"scale\"><span>port 0</span><span>512</span><span>1024</span><span>33k</span>\
             <span>65535</span></div></div></figure>",
        );
    }
}

/// The rows of a picture: a host each, or several hosts in a row.
fn rows(scanner: &Scanner) -> Vec<(String, Row)> {
    let bits = |row: &Row| (row.open.count_ones(), row.failed.count_ones());
    let mut by_bits: Vec<_> = scanner.rows.iter().map(|(host, row)| (Reverse(bits(row)), *host)).collect();
    by_bits.sort_unstable();
    // Those with a line of their own.
    let own: BTreeSet<_> =
        by_bits.iter().take(ROWS / 2).filter(|(bits, _)| bits.0 > (0, 4)).map(|(_, host)| *host).collect();
    let size = (scanner.rows.len() - own.len()).div_ceil(ROWS - 2 * own.len().min(ROWS / 2 - 5)).max(1);
    let mut rows: Vec<(Vec<IpAddr>, Row)> = Vec::new();
    for (host, row) in &scanner.rows {
        match rows.last_mut() {
            Some((hosts, sum)) if hosts.len() < size && !own.contains(host) && !own.contains(&hosts[0]) => {
                hosts.push(*host);
                *sum = Row { failed: sum.failed | row.failed, open: sum.open | row.open };
            }
            _ => rows.push((vec![*host], *row)),
        }
    }
    let name = |hosts: &[IpAddr]| match hosts {
        [first, .., last] => format!("{first} – {last}"),
        hosts => hosts.iter().map(ToString::to_string).collect(),
    };
    rows.into_iter().map(|(hosts, row)| (name(&hosts), row)).collect()
}
