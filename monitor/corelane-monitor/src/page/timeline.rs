//! Pictures of the whole capture over time.

use super::Sight;
use super::html::{Html, html};
use super::picture::{Series, bars, highest};
use crate::facts::{Bin, SERIES};
use crate::summary::{bytes, duration, grouped, plural};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Series of conversations that have a colour of their own; the rest is one.
const PROTOCOLS: usize = 5;
/// The classes of colours; `OTHERS` is that of what has none of its own.
const CLASSES: [&str; 12] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11"];
const OTHERS: &str = CLASSES[7];

/// The colour of a series, the same on every page. There are fewer colours than protocols: those that are seldom seen
/// share some.
fn class(name: &str) -> &'static str {
    const OWN: [(&str, usize); 12] = [
        ("TCP", 0),
        ("UDP", 1),
        ("other", 2),
        ("tls", 0),
        ("http", 1),
        ("unknown", 2),
        ("dns", 3),
        ("quic", 4),
        ("ssh", 5),
        ("no payload", 6),
        ("smb", 9),
        ("ntp", 10),
    ];
    if name == "others" {
        return OTHERS;
    }
    let own = OWN.iter().find(|(of, _)| *of == name).map(|&(_, place)| place);
    let place = SERIES.iter().position(|of| *of == name).unwrap_or(0);
    CLASSES[own.unwrap_or(8 + place % 4)]
}

pub(super) fn write(page: &mut Html, sight: &Sight<'_>) {
    let timeline = &sight.facts.timeline;
    let bins = timeline.bins();
    page.raw("<h2 id=\"timeline\">Timeline</h2>");
    if bins.is_empty() {
        page.raw("<p>No packets with an IP header.</p>");
        return;
    }
    let (first, begin) = (sight.clock.begin_millis(), timeline.begin_ns());
    let width = timeline.width_ns();
    html!(page, "<p class=\"soft\">Each bar is " {duration(width)} ". <span class=\"script screen\">Drag over the \
        picture, or focus it and use the arrow keys (with Shift to widen), to see below only what happened in that \
        time. </span><span id=\"from\" aria-live=\"polite\"></span></p>\
        <div id=\"time\" class=\"time\" tabindex=\"0\" role=\"group\" \
        aria-label=\"Timeline: arrow keys select a time, Escape ends it\" data-begin=\"" {first} "\" data-first=\""
        {(begin / 1_000_000) as i64 - first as i64} "\" data-width=\"" {width / 1_000_000}
        "\" data-bins=\"" {bins.len()} "\">");
    let transports = ["TCP", "UDP", "other"];
    let values = |of: fn(&Bin) -> &[u64; 3], place: usize| bins.iter().map(|bin| of(bin)[place]).collect::<Vec<_>>();
    let series = |of: fn(&Bin) -> &[u64; 3]| -> Vec<_> {
        transports.into_iter().enumerate().map(|(place, name)| (name, values(of, place))).collect()
    };
    chart(page, "Bytes", bytes, series(|bin| &bin.bytes));
    chart(page, "Packets", grouped, series(|bin| &bin.packets));
    chart(page, "New conversations", grouped, conversations(bins));
    let middle = begin.saturating_add(width.saturating_mul(bins.len() as u64) / 2);
    let last = begin.saturating_add(width.saturating_mul(bins.len() as u64));
    html!(page, "<div class=\"brush\" hidden></div><div class=\"scale\"><span>"
        {sight.clock.time(begin)} "</span><span>"
        {sight.clock.time(middle)} "</span><span>" {sight.clock.time(last)} "</span></div></div>");
}

/// The conversations of the most frequent protocols, and those of all others. Of two that share a colour the less
/// frequent one is among the others.
fn conversations(bins: &[Bin]) -> Vec<(&'static str, Vec<u64>)> {
    let values = |place: usize| bins.iter().map(|bin| u64::from(bin.conversations[place])).collect::<Vec<_>>();
    let mut series: Vec<_> = SERIES.into_iter().enumerate().map(|(place, name)| (name, values(place))).collect();
    series.retain(|(_, values)| values.iter().any(|&value| value > 0));
    series.sort_by_key(|(_, values)| Reverse(values.iter().sum::<u64>()));
    let (most, mut taken) = (if series.len() > PROTOCOLS + 1 { PROTOCOLS } else { series.len() }, BTreeSet::new());
    let (mut series, rest): (Vec<_>, Vec<_>) =
        series.into_iter().partition(|(name, _)| taken.len() < most && taken.insert(class(name)));
    if !rest.is_empty() {
        let mut sum = vec![0; bins.len()];
        rest.iter().for_each(|(_, values)| sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value));
        series.push(("others", sum));
    }
    series
}

fn chart(page: &mut Html, name: &'static str, text: fn(u64) -> String, series: Vec<(&'static str, Vec<u64>)>) {
    let series: Vec<_> = series.into_iter().filter(|(_, values)| values.iter().any(|&value| value > 0)).collect();
    let (names, drawn): (Vec<_>, Vec<_>) =
        series.into_iter().map(|(name, values)| (name, Series { class: class(name), values })).unzip();
    html!(page, "<figure><figcaption><b>" {name} "</b> up to " {text(highest(&drawn))} " a bar");
    for (protocol, Series { class, values }) in names.into_iter().zip(&drawn) {
        html!(page, "<span class=\"key " {*class} "\">" {protocol} " " {text(values.iter().sum())} "</span>");
    }
    page.raw("</figcaption>");
    bars(page, &format!("{name} over time, {}", plural(drawn.len() as u64, "series")), &drawn);
    page.raw("</figure>");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins(counts: &[(&str, u32)]) -> Vec<Bin> {
        let mut bin = Bin::default();
        for (name, count) in counts {
            let place = SERIES.iter().position(|of| of == name).expect("a series");
            bin.conversations[place] = *count;
        }
        vec![bin]
    }

    #[test]
    fn a_protocol_has_one_colour_whatever_else_there_is() {
        let shown = |counts: &[(&str, u32)]| -> Vec<_> {
            conversations(&bins(counts)).into_iter().map(|(name, values)| (name, class(name), values[0])).collect()
        };
        assert_eq!(shown(&[("dns", 1)]), [("dns", "c3", 1)]);
        assert_eq!(shown(&[("dns", 1), ("tls", 9)]), [("tls", "c0", 9), ("dns", "c3", 1)]);
        // Each colour is there once, and nothing is left out.
        for some in SERIES.windows(7) {
            let counts: Vec<_> = some.iter().zip(1..).map(|(name, count)| (*name, count)).collect();
            let shown = shown(&counts);
            let classes: BTreeSet<_> = shown.iter().map(|(_, class, _)| class).collect();
            assert_eq!(
                (classes.len(), shown.iter().map(|(.., count)| count).sum::<u64>()),
                (shown.len(), 28),
                "{shown:?}"
            );
            assert!(shown.len() <= PROTOCOLS + 1);
        }
        let unshared: BTreeSet<_> =
            ["http", "tls", "dns", "quic", "ssh", "unknown", "no payload", "others"].map(class).into();
        assert_eq!(unshared.len(), 8);
    }
}
