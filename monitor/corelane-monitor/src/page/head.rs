//! The beginning of a page: the answer in a few sentences, and what was captured.

use super::html::{Html, html};
use super::scans::sentence;
use super::tables::More;
use super::widgets::{address, by_host, fates, key};
use super::{PARTS, Sight};
use crate::facts::{HostName, Name, NameKind, Talked, series_of};
use crate::summary::{bytes, duration, grouped, plural};
use crate::time::Timestamp;
use corelane_net::protocol::Protocol;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Scanners that the first sentences name.
const SCANNERS: usize = 4;
/// Names that a sentence has.
const NAMES: usize = 4;
/// Files that are named.
const FILES: usize = 20;
/// What accepts SYNs and RSTs. `tcp[...]` is IPv4's alone.
const ATTEMPTS: &str = "tcp[tcpflags] & (tcp-syn|tcp-rst) != 0 or (ip6 proto 6 and ip6[53] & 6 != 0)";

impl Sight<'_> {
    /// Whether a table of the facts was full.
    pub(super) fn is_cut(&self, table: &str) -> bool {
        self.facts.cut.contains(&table)
    }

    /// How many more rows there were than those that are listed from a table.
    pub(super) fn more(&self, count: u64, table: &str) -> More {
        (count, self.is_cut(table))
    }

    /// What the page calls the captures.
    pub(super) fn name(&self) -> String {
        match &self.origin.files[..] {
            _ if self.origin.is_demo => "demo".to_owned(),
            [] => "capture".to_owned(),
            [file] if file == "-" => "standard input".to_owned(),
            [file] => base(file).to_owned(),
            [file, others @ ..] => format!("{} and {}", base(file), plural(others.len() as u64, "other file")),
        }
    }
}

/// The name of a file, without its folder.
fn base(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

pub(super) fn write(page: &mut Html, sight: &Sight<'_>) {
    html!(page, "<h1>" {sight.name()} "</h1><p class=\"soft\">");
    match sight.report.times {
        Some((first, last)) => html!(page, {Timestamp::of(first).human()} " to " {Timestamp::of(last).human()} " UTC, "
            {duration(last - first)} "; " {plural(sight.report.packets, "packet")} ", " {bytes(sight.report.bytes)}),
        None => html!(page, "No packets."),
    }
    html!(page, "</p><div class=\"lead\">");
    scanned(page, sight);
    said(page, sight);
    page.raw("</div>");
    bar(page);
    captured(page, sight);
}

/// Says who scanned whom and what was open.
fn scanned(page: &mut Html, sight: &Sight<'_>) {
    let facts = sight.facts;
    let scanners = facts.scanners.len() as u64 + facts.more_scanners;
    let scans = facts.stories.len() as u64 + facts.more_stories;
    if scanners == 0 {
        page.raw("<p>No scans found; <a href=\"#scans\">what would be one</a>.</p>");
        return;
    }
    let is_cut = facts.more_scanners > 0
        || facts.may_lack_answers
        || facts.scanners.iter().any(|scanner| scanner.details.more_open);
    let open = by_host(facts.scanners.iter().flat_map(|scanner| &scanner.details.open));
    html!(page, "<p><span class=\"bad\">" {plural(scanners, "host")} " ran " {plural(scans, "scan")} "</span>; ");
    match open.len() as u64 {
        0 if is_cut => html!(page, "nothing was seen open, as far as was kept."),
        0 => html!(page, "nothing was seen open."),
        hosts => html!(page, "<span class=\"bad\">open ports</span> were found on "
            {if is_cut { "at least " } else { "" }} {plural(hosts, "host")} "."),
    }
    html!(page, "</p><ul>");
    for scanner in facts.scanners.iter().take(SCANNERS) {
        page.raw("<li>");
        address(page, scanner.source);
        sentence(page, sight, scanner);
        page.raw("</li>");
    }
    if let more @ 1.. = scanners.saturating_sub(SCANNERS as u64) {
        html!(page, "<li>and " {plural(more, "other scanner")} ", see <a href=\"#scans\">Scans</a></li>");
    }
    page.raw("</ul>");
}

/// A protocol with names.
struct Named {
    protocol: &'static str,
    kind: NameKind,
    /// What may have a name, and how many of these there were.
    unit: &'static str,
    count: u64,
    /// What its conversations were identified as.
    protocols: &'static [Protocol],
}

/// Says which names were asked for.
fn said(page: &mut Html, sight: &Sight<'_>) {
    use Protocol::{Dns, Http1, Http2, Quic, Tls};
    let seen = &sight.findings.seen;
    let hellos = seen.client_hellos + seen.quic_client_hellos;
    let queries = seen.dns_queries.iter().sum();
    let named = |protocol, kind, unit, count, protocols| Named { protocol, kind, unit, count, protocols };
    let (there, absent): (Vec<_>, Vec<_>) = [
        named("HTTP", NameKind::Http, "request", seen.http_requests, &[Http1, Http2]),
        named("TLS", NameKind::Tls, "hello", hellos, &[Tls, Quic]),
        named("DNS", NameKind::Dns, "query", queries, &[Dns]),
    ]
    .into_iter()
    .partition(|named| sight.findings.protocols.keys().any(|(protocol, _)| named.protocols.contains(protocol)));
    if !there.is_empty() {
        page.raw("<ul>");
        there.iter().for_each(|named| asked(page, sight, named));
        page.raw("</ul>");
    }
    match &absent.iter().map(|named| named.protocol).collect::<Vec<_>>()[..] {
        [] => {}
        [one] => html!(page, "<p>No " {one} " seen.</p>"),
        [others @ .., last] => html!(page, "<p>No " {others.join(", ")} " or " {last} " seen.</p>"),
    }
}

/// Says who asked for which names by a protocol, and how often there was none.
fn asked(page: &mut Html, sight: &Sight<'_>, named: &Named) {
    let Named { protocol, kind, unit, count: all, protocols } = *named;
    let names = &sight.facts.names[kind as usize];
    let count = names.len() as u64 + sight.facts.more_names[kind as usize];
    let is_cut = sight.is_cut(kind.table());
    html!(page, "<li>" {protocol} ": ");
    if count == 0 {
        match all {
            0 => html!(page, "no " {unit} " seen"),
            all => html!(page, {plural(all, unit)} ", none with a name"),
        }
        let is_one = |talked: &&Talked| protocols.iter().any(|&protocol| talked.series == series_of(protocol));
        if let Some(Talked { ends: [client, server], .. }) = sight.facts.conversations.iter().find(is_one) {
            page.raw("; most bytes between ");
            address(page, client.ip());
            page.raw(" and ");
            address(page, server.ip());
        }
        page.raw("</li>");
        return;
    }
    let is_all = !is_cut && count == names.len() as u64;
    clients(page, names, unit, !is_all);
    html!(page, " asked for " {if is_cut { "at least " } else { "" }} {plural(count, "name")} ", most often ");
    for (number, (name, entry)) in names.iter().take(NAMES).enumerate() {
        let times = if number > 0 { grouped(entry.count) } else { plural(entry.count, unit) };
        html!(page, {if number > 0 { ", " } else { "" }} "<b>" {name} "</b>&nbsp;(" {times} ")");
    }
    let unnamed = all.saturating_sub(names.iter().map(|(_, name)| name.count).sum());
    if is_all && unnamed > 0 {
        html!(page, "; " {plural(unnamed, &format!("more {unit}"))} " without a name");
    }
    page.raw("</li>");
}

/// Writes the hosts that asked for any of these names, and how often: each of a few, or the busiest of many. `is_cut`
/// says that there were more names than these.
fn clients(page: &mut Html, names: &[(HostName, Name)], unit: &str, is_cut: bool) {
    let mut counts = BTreeMap::<IpAddr, u64>::new();
    for (host, count) in names.iter().flat_map(|(_, name)| name.clients.items()) {
        *counts.entry(host).or_default() += count;
    }
    let more = is_cut || names.iter().any(|(_, name)| name.clients.has_more());
    let mut hosts: Vec<_> = counts.into_iter().collect();
    hosts.sort_by_key(|&(host, count)| (Reverse(count), host));
    let least = if more { "at least " } else { "" };
    let is_few = hosts.len() <= 2 && !more;
    if !is_few {
        html!(page, {plural(hosts.len() as u64, "host")} {if more { " or more" } else { "" }} ", ");
    }
    for (number, &(host, count)) in hosts.iter().take(if is_few { 2 } else { 1 }).enumerate() {
        html!(page, { if number > 0 { " and " } else { "" } });
        address(page, host);
        html!(page, " (" {least} {plural(count, unit)} ")");
    }
    if !is_few {
        page.raw(" most often,");
    }
}

/// The bar of links, with the filter.
fn bar(page: &mut Html) {
    page.raw("<div class=\"bar\"><nav aria-label=\"Parts\">");
    for (id, name) in PARTS {
        html!(page, "<a href=\"#" {id} "\">" {name} "</a>");
    }
    page.raw(
        "</nav><form class=\"script\" role=\"search\"><label for=\"q\">Filter</label>\
         <input id=\"q\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\" \
         placeholder=\"ip:10.0.0.0/8 port:443 sni:example proto:tls word\">\
         <button type=\"reset\">Clear</button>\
         <span id=\"count\" class=\"soft\" aria-live=\"polite\"></span></form></div>",
    );
}

fn captured(page: &mut Html, sight: &Sight<'_>) {
    let (report, findings, commands) = (sight.report, sight.findings, &sight.commands);
    page.raw("<h2 id=\"capture\">Capture</h2><dl>");
    let all = commands.packets("");
    let seconds = report.times.map_or(0.0, |(first, last)| (last - first) as f64 / 1e9);
    fact(page, "Packets", &grouped(report.packets), Some(&all));
    fact(page, "Bytes on the wire", &bytes(report.bytes), Some(&all));
    if let Some((first, last)) = report.times {
        fact(page, "Time span", &duration(last - first), None);
    }
    if seconds >= 1.0 {
        let rate = |count: u64| count as f64 / seconds;
        fact(page, "Packets a second", &grouped(rate(report.packets) as u64), None);
        fact(page, "Bytes a second", &bytes(rate(report.bytes) as u64), None);
    }
    let conversations = sight.facts.conversations.len() as u64 + sight.facts.more_conversations;
    fact(page, "Conversations", &grouped(conversations), Some(&commands.events("flow", "")));
    let attempts = commands.attempts(ATTEMPTS, "");
    fact(page, "Failed TCP attempts", &failed(sight), Some(&attempts));
    let counts = &findings.conversations;
    let missing = |count: u64, bytes_of: u64| format!("{} ({})", grouped(count), bytes(bytes_of));
    let refused = report.refused.flow_packets + report.refused.attempts + report.refused.source_packets;
    let tunnels = report.tunnels.unwrap_or_default();
    for (name, count, text) in [
        ("Gaps in streams", counts.gaps, missing(counts.gaps, counts.gap_bytes)),
        ("Began before the capture", counts.midstream, String::new()),
        ("Malformed packets", report.malformed, String::new()),
        ("ARP packets", report.arp, String::new()),
        ("Neither IP nor ARP", report.undecoded - report.arp, String::new()),
        ("Tunnelled packets", tunnels.opened, String::new()),
        ("Tunnels not opened", tunnels.too_deep + tunnels.fragmented, String::new()),
        ("Given up for memory", counts.evicted + findings.fragments.evicted, String::new()),
        ("Refused by the memory limit", refused, String::new()),
    ] {
        if count > 0 {
            let text = if text.is_empty() { grouped(count) } else { text };
            fact(page, name, &text, Some(&commands.events("stats", "")));
        }
    }
    page.raw("</dl>");
    match &sight.origin.files[..] {
        [] => {}
        [file] => html!(page, "<p class=\"soft\">File: " {file} "</p>"),
        files => {
            html!(page, "<p class=\"soft\">Files, as one capture: " {files[..files.len().min(FILES)].join(", ")});
            if let more @ 1.. = files.len().saturating_sub(FILES) {
                html!(page, " and " {plural(more as u64, "other file")});
            }
            page.raw("</p>");
        }
    }
    if commands.has_files {
        page.raw("<p class=\"soft\">In commands, $FILES stands for what was captured: set it to the names.</p>");
    }
    if commands.has_filter {
        page.raw(
            "<p class=\"soft\">In commands, $FILTER stands for what this run was filtered by: set it to that.</p>",
        );
    }
    if !sight.facts.cut.is_empty() {
        html!(page, "<p class=\"soft\">Not all could be kept of: " {sight.facts.cut.join(", ")}
            ". So their counts are lower bounds, and what was seen least is missing in part.</p>");
    }
    match sight.clock.date() {
        Some(date) if report.times.is_some() => html!(page, "<p class=\"soft\">All times are UTC, " {date} "."),
        _ => html!(page, "<p class=\"soft\">All times are UTC."),
    }
    page.raw(
        "<span class=\"screen\"> An underlined number opens the command that shows what is behind it\
         <span class=\"script\">, and copies it</span>.</span></p>",
    );
}

fn failed(sight: &Sight<'_>) -> String {
    let report = sight.report;
    let failed = grouped(report.failed_attempts);
    match report.failed_attempts {
        0 => failed,
        _ => format!("{failed} ({})", fates(report.rejected, report.unanswered)),
    }
}

fn fact(page: &mut Html, name: &'static str, value: &str, command: Option<&str>) {
    html!(page, "<div><dt>" {name} "</dt><dd>");
    match command {
        Some(command) => key(page, value, command),
        None => html!(page, { value }),
    }
    page.raw("</dd></div>");
}
