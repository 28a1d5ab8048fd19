//! Tables that can be put in order and filtered.

use super::Sight;
use super::format::more;
use super::html::{Html, html};
use crate::facts::Span;
use crate::summary::{grouped, plural};

/// The name of a column, and its class: `r` for numbers.
pub(super) type Column = (&'static str, &'static str);

/// How many rows a table would have beside its own, and whether there may be more.
pub(super) type More = (u64, bool);

pub(super) const NO_MORE: More = (0, false);

/// Begins a table of so many rows. Few of them may be seen at once.
pub(super) fn begin(page: &mut Html, columns: &[Column], caption: &'static str, rows: usize, (count, is_least): More) {
    html!(page, "<div class=\"t\" tabindex=\"0\" role=\"region\" aria-label=\"" {caption}
        "\"><table><caption>" {caption} " (" {grouped(rows as u64)} ")");
    if count > 0 || is_least {
        html!(page, ";" {more(count, is_least)});
    }
    page.raw("</caption><thead><tr>");
    for (name, class) in columns {
        html!(page, "<th scope=\"col\" class=\"" {*class} "\"><button>" {*name} "</button></th>");
    }
    page.raw("</tr></thead><tbody>");
}

/// Begins a row of something that happened in this time.
pub(super) fn row(page: &mut Html, sight: &Sight<'_>, Span(first, last): Span) {
    html!(page, "<tr data-t=\"" {sight.clock.millis(first)} " " {sight.clock.millis(last)} "\">");
}

pub(super) fn end(page: &mut Html) {
    page.raw("</tbody></table></div>");
}

/// A cell with a number that counts as `value`.
pub(super) fn number(page: &mut Html, value: u64, text: &str) {
    html!(page, "<td class=\"r\" data-v=\"" {value} "\">" {text} "</td>");
}

/// How many hosts these are.
pub(super) fn hosts(count: usize, more: bool) -> String {
    if more { format!("more than {}", grouped(count as u64)) } else { plural(count as u64, "host") }
}
