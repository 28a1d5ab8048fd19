//! The tables of hosts, conversations, names, fingerprints, protocols and unknown payload.

use super::Sight;
use super::html::{Html, html};
use super::tables::{Column, NO_MORE, begin, end, hosts, number, row};
use super::widgets::{address, key};
use crate::facts::{Few, Host, HostName, Name, NameKind, Port, SERIES, Span, Talked, Tally};
use crate::summary::{bytes, grouped};
use corelane_net::conversation::State;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

/// Clients of a name that are written out.
const CLIENTS: usize = 3;

pub(super) fn write(page: &mut Html, sight: &Sight<'_>) {
    write_hosts(page, sight);
    write_conversations(page, sight);
    page.raw(
        "<h2 id=\"names\">Names</h2><p class=\"soft\">What came once at most is marked as rare, \
         if it is less than half of its table.</p>",
    );
    write_names(page, sight, NameKind::Http, "Hosts of HTTP requests");
    write_names(page, sight, NameKind::Tls, "Servers named in TLS and QUIC");
    write_names(page, sight, NameKind::Dns, "Names asked for in DNS");
    write_fingerprints(page, sight);
    write_protocols(page, sight);
    write_unknown(page, sight);
}

fn write_hosts(page: &mut Html, sight: &Sight<'_>) {
    const COLUMNS: [Column; 9] = [
        ("Host", ""),
        ("Bytes", "r"),
        ("Sent", "r"),
        ("Received", "r"),
        ("Conversations", "r"),
        ("Served", "r"),
        ("Ports served", ""),
        ("Protocols", ""),
        ("Names served", ""),
    ];
    let facts = sight.facts;
    page.raw("<h2 id=\"hosts\">Hosts</h2>");
    let scanners: BTreeSet<_> = facts.scanners.iter().map(|scanner| scanner.source).collect();
    begin(
        page,
        &COLUMNS,
        "Hosts with conversations, by bytes",
        facts.hosts.len(),
        sight.more(facts.more_hosts, "hosts"),
    );
    for (ip, host) in &facts.hosts {
        row(page, sight, host.span);
        page.raw("<td class=\"w\">");
        address(page, *ip);
        if scanners.contains(ip) {
            page.raw(" <mark>scanner</mark>");
        }
        let Host { sent, received, conversations, served, .. } = host;
        page.raw("</td>");
        number(page, sent + received, &bytes(sent + received));
        number(page, *sent, &bytes(*sent));
        number(page, *received, &bytes(*received));
        // tcpdump would also show attempts that were refused, which are no conversations.
        html!(page, "<td class=\"r\" data-v=\"" {*conversations} "\">");
        let condition = format!("[.src_ip, .dest_ip] | index(\"{ip}\")");
        key(page, &grouped(u64::from(*conversations)), &sight.commands.events("flow", &condition));
        page.raw("</td>");
        let text = if *served > 0 { grouped(u64::from(*served)) } else { String::new() };
        number(page, u64::from(*served), &text);
        page.raw("<td>");
        let mut known: Vec<_> = host.ports().collect();
        known.sort_unstable_by_key(|port| (port.number, port.is_tcp));
        for (place, port) in known.iter().enumerate() {
            html!(page, {if place > 0 { ", " } else { "" }} "<i>" {port.number} "</i>");
            html!(page, { if port.is_tcp { "" } else { "/udp" } });
        }
        html!(page, {if host.has_more_ports() { ", …" } else { "" }} "</td><td class=\"o\">");
        let protocols: Vec<_> = host.protocols().map(corelane_net::protocol::Protocol::name).collect();
        html!(page, {protocols.join(", ")} "</td><td class=\"n\">");
        let names = host.names();
        html!(page, {names.items().join(", ")} {if names.has_more() { ", …" } else { "" }});
        page.raw("</td></tr>");
    }
    end(page);
}

/// The text of a protocol's place among the series.
fn protocol(series: usize) -> &'static str {
    SERIES.get(series).copied().unwrap_or("unknown")
}

fn write_conversations(page: &mut Html, sight: &Sight<'_>) {
    const COLUMNS: [Column; 9] = [
        ("Client", ""),
        ("Server", ""),
        ("Protocol", ""),
        ("Bytes", "r"),
        ("Sent", "r"),
        ("Received", "r"),
        ("Packets", "r"),
        ("From", ""),
        ("Name", ""),
    ];
    let facts = sight.facts;
    page.raw("<h2 id=\"conversations\">Conversations</h2>");
    begin(page, &COLUMNS, "Conversations by bytes", facts.conversations.len(), (facts.more_conversations, false));
    for conversation in &facts.conversations {
        let Talked { ends: [client, server], bytes: [sent, received], packets, times, is_tcp, .. } = conversation;
        let Talked { vlans, series, state, name, .. } = conversation;
        row(page, sight, Span(times.0, times.1));
        socket(page, *client);
        socket(page, *server);
        let transport = if *is_tcp { "tcp" } else { "udp" };
        html!(page, "<td class=\"w o\">" {protocol(*series)} ", " {transport});
        html!(page, { if *state == State::New { ", one-sided" } else { "" } });
        for (place, vlan) in vlans.numbers().enumerate() {
            html!(page, {if place == 0 { ", VLAN " } else { ", " }} {vlan});
        }
        html!(page, "</td><td class=\"r\" data-v=\"" {sent + received} "\">");
        let [filter, condition] = between(transport, *client, *server);
        key(page, &bytes(sent + received), &sight.commands.traffic(&filter, &condition, *vlans));
        page.raw("</td>");
        number(page, *sent, &bytes(*sent));
        number(page, *received, &bytes(*received));
        let packets = packets[0] + packets[1];
        number(page, packets, &grouped(packets));
        html!(page, "<td class=\"w\">" {sight.clock.time(times.0)} "</td><td class=\"n\">"
            {name.as_deref().unwrap_or("")}
            "</td></tr>");
    }
    end(page);
}

/// What accepts the packets, and what the flows, between these ends.
fn between(transport: &str, client: SocketAddr, server: SocketAddr) -> [String; 2] {
    let ends = [(client, server), (server, client)];
    let packets = ends.map(|(from, to)| {
        let ([from_ip, to_ip], [from, to]) = ([from.ip(), to.ip()], [from.port(), to.port()]);
        format!("src host {from_ip} and src port {from} and dst host {to_ip} and dst port {to}")
    });
    let flows = ends.map(|(from, to)| format!("[\"{}\",{},\"{}\",{}]", from.ip(), from.port(), to.ip(), to.port()));
    let proto = transport.to_ascii_uppercase();
    [
        format!("{transport} and (({}) or ({}))", packets[0], packets[1]),
        format!(
            ".proto == \"{proto}\" and ([.src_ip,.src_port,.dest_ip,.dest_port] | . == {} or . == {})",
            flows[0], flows[1]
        ),
    ]
}

fn socket(page: &mut Html, end: SocketAddr) {
    page.raw("<td class=\"w\">");
    address(page, end.ip());
    html!(page, "<i>:" {end.port()} "</i></td>");
}

/// Writes addresses, the first ones if there are many.
fn addresses<const N: usize>(page: &mut Html, list: &Few<IpAddr, N>) {
    let mut all: Vec<_> = list.items().iter().map(|&host| (host, 0)).collect();
    all.sort_unstable();
    listed(page, &all, list.has_more());
}

/// Writes the clients of a name, and how often each asked if there are several; the busiest ones come first.
fn clients<const N: usize>(page: &mut Html, list: &Tally<IpAddr, N>) {
    let mut all: Vec<_> = list.items().collect();
    all.sort_unstable_by_key(|&(host, count)| (Reverse(count), host));
    if let [(_, count)] = &mut all[..] {
        // The number is in the row.
        *count = 0;
    }
    listed(page, &all, list.has_more());
}

/// Writes the first of these addresses, with their counts if there are any.
fn listed(page: &mut Html, all: &[(IpAddr, u64)], has_more: bool) {
    for (place, &(host, count)) in all.iter().take(CLIENTS).enumerate() {
        html!(page, { if place > 0 { ", " } else { "" } });
        address(page, host);
        if count > 0 {
            html!(page, "&nbsp;(" {grouped(count)} {if has_more { "+" } else { "" }} ")");
        }
    }
    if all.len() > CLIENTS || has_more {
        html!(page, ", … (" {hosts(all.len(), has_more)} ")");
    }
}

fn write_names(page: &mut Html, sight: &Sight<'_>, kind: NameKind, caption: &'static str) {
    const HTTP: [Column; 5] = [("Name", ""), ("Requests", "r"), ("By", ""), ("At", ""), ("First", "")];
    const TLS: [Column; 5] = [("Name", ""), ("Hellos", "r"), ("By", ""), ("At", ""), ("First", "")];
    const DNS: [Column; 7] = [
        ("Name", ""),
        ("Queries", "r"),
        ("Answers", "r"),
        ("No such name", "r"),
        ("By", ""),
        ("At", ""),
        ("First", ""),
    ];
    let names = &sight.facts.names[kind as usize];
    if names.is_empty() {
        html!(page, "<p class=\"soft\">" {caption} ": none.</p>");
        return;
    }
    let columns = match kind {
        NameKind::Http => &HTTP[..],
        NameKind::Tls => &TLS,
        NameKind::Dns => &DNS,
    };
    begin(page, columns, caption, names.len(), sight.more(sight.facts.more_names[kind as usize], kind.table()));
    let rare = Rare::among(names.iter().map(|(_, entry)| entry.count));
    for (name, entry) in names {
        write_name(page, sight, kind, name, entry, rare);
    }
    end(page);
}

/// Whether it says something of an entry that it came once, or was only answered: where few of its table did.
#[derive(Clone, Copy, Debug)]
struct Rare(bool);

impl Rare {
    fn among(counts: impl ExactSizeIterator<Item = u64>) -> Self {
        let all = counts.len();
        Rare(2 * counts.filter(|&count| count <= 1).count() < all)
    }

    fn mark(self, page: &mut Html, count: u64) {
        if self.0 && count <= 1 {
            page.raw("<mark>rare</mark>");
        }
    }
}

fn write_name(page: &mut Html, sight: &Sight<'_>, kind: NameKind, name: &HostName, entry: &Name, rare: Rare) {
    let (types, places, protocol) = match kind {
        NameKind::Http => ("http", ".http.hostname", "http"),
        NameKind::Tls => ("tls,quic", ".tls.sni, .quic.sni", "tls"),
        NameKind::Dns => ("dns", "select(.dns.type == \"request\").dns.queries[].rrname", "dns"),
    };
    row(page, sight, entry.span);
    html!(page, "<td><span class=\"n\">" {name} "</span>");
    rare.mark(page, entry.count);
    html!(page, "<span class=\"o\" hidden>" {protocol} "</span></td><td class=\"r\" data-v=\"" {entry.count} "\">");
    key(page, &grouped(entry.count), &sight.commands.events_of_name(types, places, name));
    page.raw("</td>");
    if kind == NameKind::Dns {
        number(page, entry.answers, &grouped(entry.answers));
        number(page, entry.unknown, &grouped(entry.unknown));
    }
    page.raw("<td>");
    clients(page, &entry.clients);
    page.raw("</td><td>");
    addresses(page, &entry.servers);
    html!(page, "</td><td class=\"w\">" {sight.clock.time(entry.span.0)} "</td></tr>");
}

fn write_fingerprints(page: &mut Html, sight: &Sight<'_>) {
    const COLUMNS: [Column; 5] = [("JA4", ""), ("Hellos", "r"), ("By", ""), ("Named", ""), ("First", "")];
    let facts = sight.facts;
    if facts.fingerprints.is_empty() {
        page.raw("<p class=\"soft\">Fingerprints of TLS clients (JA4): none.</p>");
        return;
    }
    let more = sight.more(facts.more_fingerprints, "fingerprints");
    begin(page, &COLUMNS, "Fingerprints of TLS and QUIC clients (JA4)", facts.fingerprints.len(), more);
    let rare = Rare::among(facts.fingerprints.iter().map(|(_, entry)| entry.count));
    for (ja4, entry) in &facts.fingerprints {
        row(page, sight, entry.span);
        html!(page, "<td class=\"mono\">" {ja4});
        rare.mark(page, entry.count);
        html!(page, "<span class=\"o\" hidden>tls</span></td><td class=\"r\" data-v=\"" {entry.count} "\">");
        key(page, &grouped(entry.count), &sight.commands.events_of_name("tls,quic", ".tls.ja4, .quic.ja4", ja4));
        page.raw("</td><td>");
        addresses(page, &entry.clients);
        html!(page, "</td><td class=\"n\">" {entry.names.items().join(", ")}
            {if entry.names.has_more() { ", …" } else { "" }} "</td><td class=\"w\">" {sight.clock.time(entry.span.0)}
            "</td></tr>");
    }
    end(page);
}

fn write_protocols(page: &mut Html, sight: &Sight<'_>) {
    const COLUMNS: [Column; 5] =
        [("Protocol", ""), ("Conversations", "r"), ("Packets", "r"), ("Bytes", "r"), ("Evidence", "")];
    page.raw("<h2 id=\"protocols\">Protocols by evidence</h2>");
    let findings = sight.findings;
    let evidence = |protocol| {
        let mut text = String::new();
        for evidence in sight.facts.evidence.iter().filter(|evidence| evidence.protocol == protocol) {
            let comma = if text.is_empty() { "" } else { ", " };
            // A String takes everything.
            let _ = write!(text, "{comma}{} ({})", evidence.text, grouped(evidence.count));
        }
        text
    };
    let rest =
        [("unknown", &findings.unidentified, "payload of no known protocol"), ("none", &findings.silent, "no payload")];
    let known = findings
        .protocols
        .iter()
        .map(|(&(protocol, is_tcp), volume)| (protocol.name(), is_tcp, *volume, evidence(protocol), protocol.name()));
    let rest = rest.into_iter().flat_map(|(name, volumes, what)| {
        let app = if name == "unknown" { "failed" } else { "" };
        [true, false].map(|is_tcp| (name, is_tcp, volumes[usize::from(is_tcp)], what.to_owned(), app))
    });
    let mut all: Vec<_> = known.chain(rest).filter(|(_, _, volume, ..)| volume.flows > 0).collect();
    all.sort_by_key(|(name, is_tcp, volume, ..)| (Reverse(volume.bytes), *name, *is_tcp));
    begin(page, &COLUMNS, "Protocols, by content and never by port", all.len(), NO_MORE);
    for (name, is_tcp, volume, text, app) in all {
        let transport = if is_tcp { "TCP" } else { "UDP" };
        html!(page, "<tr><td class=\"w\"><span class=\"o\">" {name} "</span> over <span class=\"o\">" {transport}
            "</span></td><td class=\"r\" data-v=\"" {volume.flows} "\">");
        let condition = match app {
            "" => format!(".app_proto == null and .proto == \"{transport}\""),
            app => format!(".app_proto == \"{app}\" and .proto == \"{transport}\""),
        };
        key(page, &grouped(volume.flows), &sight.commands.events("flow", &condition));
        page.raw("</td>");
        number(page, volume.packets, &grouped(volume.packets));
        number(page, volume.bytes, &bytes(volume.bytes));
        html!(page, "<td>" {text} "</td></tr>");
    }
    end(page);
}

fn write_unknown(page: &mut Html, sight: &Sight<'_>) {
    const COLUMNS: [Column; 5] =
        [("Port", ""), ("Conversations", "r"), ("Bytes", "r"), ("For example", ""), ("First bytes", "")];
    page.raw("<h2 id=\"unknown\">Unknown payload</h2>");
    let facts = sight.facts;
    if facts.unknown.is_empty() {
        page.raw("<p>None: all payload is of a known protocol.</p>");
        return;
    }
    let more = sight.more(facts.more_unknown, "ports with unknown payload");
    begin(page, &COLUMNS, "Payload of no known protocol, by the responder's port", facts.unknown.len(), more);
    for (Port { is_tcp, number: port }, entry) in &facts.unknown {
        row(page, sight, entry.span);
        let transport = if *is_tcp { "tcp" } else { "udp" };
        html!(page, "<td class=\"w\" data-v=\"" {port} "\"><i>" {port} "</i>/" {transport}
            "<span class=\"o\" hidden>unknown " {transport} "</span></td>");
        html!(page, "<td class=\"r\" data-v=\"" {entry.conversations} "\">");
        let proto = transport.to_ascii_uppercase();
        let condition = format!(".app_proto == \"failed\" and .proto == \"{proto}\" and .dest_port == {port}");
        key(page, &grouped(entry.conversations), &sight.commands.events("flow", &condition));
        page.raw("</td>");
        number(page, entry.bytes, &bytes(entry.bytes));
        page.raw("<td class=\"w\">");
        if let Some((client, server)) = entry.example {
            address(page, client);
            page.raw(" to ");
            address(page, server);
        }
        page.raw("</td><td class=\"mono\">");
        let shown: String =
            entry.first.iter().map(|&byte| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' }).collect();
        let mut hex = String::new();
        for byte in &entry.first {
            // A String takes everything.
            let _ = write!(hex, "{byte:02x}");
        }
        html!(page, {hex} " " {shown} "</td></tr>");
    }
    end(page);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_is_what_few_are() {
        for (counts, is_said) in
            [(&[1, 1, 1][..], false), (&[1], false), (&[9, 1], false), (&[9, 2, 1], true), (&[9, 0, 1], false)]
        {
            assert_eq!(Rare::among(counts.iter().copied()).0, is_said, "{counts:?}");
        }
    }
}
