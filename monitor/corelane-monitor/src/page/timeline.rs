//! Pictures of the whole capture over time.

use super::Sight;
use super::html::{Html, html};
use super::picture::{Series, bars, highest};
use crate::facts::{Bin, SERIES};
use crate::summary::{bytes, duration, grouped, plural};
use std::cmp::Reverse;

/// Series of conversations that have a colour of their own; the rest is one.
const PROTOCOLS: usize = 5;
const CLASSES: [&str; 6] = ["c0", "c1", "c2", "c3", "c4", "c5"];

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

/// The conversations of the most frequent protocols, and those of all others.
fn conversations(bins: &[Bin]) -> Vec<(&'static str, Vec<u64>)> {
    let values = |place: usize| bins.iter().map(|bin| u64::from(bin.conversations[place])).collect::<Vec<_>>();
    let mut series: Vec<_> = SERIES.into_iter().enumerate().map(|(place, name)| (name, values(place))).collect();
    series.retain(|(_, values)| values.iter().any(|&value| value > 0));
    series.sort_by_key(|(_, values)| Reverse(values.iter().sum::<u64>()));
    if series.len() > PROTOCOLS + 1 {
        let rest = series.split_off(PROTOCOLS);
        let mut sum = vec![0; bins.len()];
        rest.iter().for_each(|(_, values)| sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value));
        series.push(("others", sum));
    }
    series
}

fn chart(page: &mut Html, name: &'static str, text: fn(u64) -> String, series: Vec<(&'static str, Vec<u64>)>) {
    let series: Vec<_> = series.into_iter().filter(|(_, values)| values.iter().any(|&value| value > 0)).collect();
    let (names, drawn): (Vec<_>, Vec<_>) =
        series.into_iter().zip(CLASSES).map(|((name, values), class)| (name, Series { class, values })).unzip();
    html!(page, "<figure><figcaption><b>" {name} "</b> up to " {text(highest(&drawn))} " a bar");
    for (protocol, Series { class, values }) in names.into_iter().zip(&drawn) {
        html!(page, "<span class=\"key " {*class} "\">" {protocol} " " {text(values.iter().sum())} "</span>");
    }
    page.raw("</figcaption>");
    bars(page, &format!("{name} over time, {}", plural(drawn.len() as u64, "series")), &drawn);
    page.raw("</figure>");
}
