//! The small parts of a page that several of its tables and sentences have.

use super::format::{more, ports};
use super::html::{Html, html};
use crate::facts::{Opened, Port, ScanDetails};
use crate::summary::grouped;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The ports of each host, those of TCP first.
pub(super) fn by_host<'a>(open: impl Iterator<Item = &'a Opened>) -> BTreeMap<IpAddr, Vec<Port>> {
    let mut hosts = BTreeMap::<IpAddr, Vec<Port>>::new();
    open.for_each(|open| hosts.entry(open.host).or_default().push(open.port));
    hosts.values_mut().for_each(|ports| {
        ports.sort_unstable_by_key(|port| (!port.is_tcp, port.number));
        ports.dedup();
    });
    hosts
}

/// Ports, those of UDP marked as such.
pub(super) fn ports_of(all: &[Port]) -> String {
    let of = |is_tcp| ports(all.iter().filter(|port| port.is_tcp == is_tcp).map(|port| port.number));
    match [of(true), of(false)] {
        [tcp, udp] if udp.is_empty() => tcp,
        [tcp, udp] if tcp.is_empty() => format!("UDP {udp}"),
        [tcp, udp] => format!("{tcp}, UDP {udp}"),
    }
}

/// What became of attempts that failed.
pub(super) fn fates(rejected: u64, unanswered: u64) -> String {
    format!("{} rejected, {} unanswered", grouped(rejected), grouped(unanswered))
}

/// A number with the command that shows what it counts.
pub(super) fn key(page: &mut Html, number: &str, command: &str) {
    // The page only grows, so no place comes twice.
    let id = format!("k{}", page.as_bytes().len());
    html!(page, "<button class=\"k\" popovertarget=\"" {&id} "\">" {number} "</button><code popover id=\"" {&id} "\">"
        {command} "</code>");
}

/// What a scan found open, host by host, at most so many ports in all.
pub(super) fn open(page: &mut Html, details: &ScanDetails, most: usize) {
    let rest = |page: &mut Html, shown: usize| {
        if let left @ 1.. = details.answered.saturating_sub(shown as u64) {
            html!(page, { more(left, false) });
        }
    };
    let hosts = by_host(details.open.iter());
    let found: BTreeSet<_> = details.open.iter().map(|open| open.port).collect();
    if let Some(port) = found.first().filter(|_| found.len() == 1 && hosts.len() > 1) {
        html!(page, "port <b>" {ports_of(&[*port])} "</b> of ");
        // Addresses are longer than ports.
        for (number, host) in hosts.keys().take(most / 2).enumerate() {
            html!(page, { if number > 0 { ", " } else { "" } });
            address(page, *host);
        }
        return rest(page, hosts.len().min(most / 2));
    }
    let mut left = most;
    for (number, (host, open)) in hosts.iter().enumerate() {
        let shown = &open[..open.len().min(left)];
        if shown.is_empty() {
            break;
        }
        left -= shown.len();
        html!(page, { if number > 0 { "; " } else { "" } });
        address(page, *host);
        html!(page, " port" {if open.len() == 1 { " " } else { "s " }} "<b>" {ports_of(shown)} "</b>");
    }
    rest(page, most - left);
}

/// An address, which filters the page by itself.
pub(super) fn address(page: &mut Html, address: IpAddr) {
    html!(page, "<a href=\"#ip:" {address} "\">" {address} "</a>");
}
