//! The screen: a line about the run, rates, panels, and a line of keys. What is drawn is a function of the model and of
//! the view, so tests look at it without a terminal.
//!
//! A panel is a variant of [`Panel`] in one of its lists; the compiler then asks for its title, orders, rows, columns
//! and cells. Those of many sensors are in `draw/site.rs`.

mod site;

use super::filter::Filter;
use super::model::{Conversation, Ends, Host, KINDS, Model, Name, State};
use super::text::{self, clock, moment, short, span};
use corelane_monitor::facts::Service;
use corelane_monitor::sensors::SensorName;
use corelane_monitor::{Alert, Probe, ScanEvent, ScanState, grouped};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use ratatui::widgets::{RenderDirection, Sparkline, Widget};
use std::cmp::Reverse;
use std::net::{IpAddr, SocketAddr};

/// A panel of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Panel {
    Alerts,
    Hosts,
    Conversations,
    Names,
    Sensors,
    Sources,
}

/// The number of all panels.
const PANELS: usize = Panel::Sources as usize + 1;

impl Panel {
    /// Those of what passes here.
    const OF_WIRE: &[Panel] = &[Panel::Alerts, Panel::Hosts, Panel::Conversations, Panel::Names];
    /// Those of many sensors.
    const OF_SITE: &[Panel] = &[Panel::Alerts, Panel::Sensors, Panel::Sources];

    /// Whether it is at the right of a wide screen.
    fn is_right(self) -> bool {
        matches!(self, Panel::Alerts | Panel::Names)
    }

    fn title(self) -> &'static str {
        match self {
            Panel::Alerts => "Alerts",
            Panel::Hosts => "Talkers",
            Panel::Conversations => "Conversations",
            Panel::Names => "Names",
            Panel::Sensors => "Sensors",
            Panel::Sources => "Sources",
        }
    }

    /// The orders in which its rows can be; the first is the usual one.
    pub(super) fn orders(self) -> &'static [&'static str] {
        match self {
            Panel::Alerts => &["latest", "size"],
            Panel::Hosts => &["rate", "bytes", "conversations", "address"],
            Panel::Conversations => &["rate", "bytes", "latest"],
            Panel::Names => &["latest", "count", "name"],
            Panel::Sensors => &["lag", "rate", "sent", "name"],
            Panel::Sources => &["rate", "failures", "latest", "address"],
        }
    }
}

/// What one looks at, and how.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Those that there are, in the order of their keys.
    pub(super) panels: &'static [Panel],
    pub(super) focus: Panel,
    /// The place in the panel's orders, if one was chosen.
    pub(super) orders: [Option<usize>; PANELS],
    /// The selected row of each panel, by what it is about.
    pub(super) selected: [Option<Subject>; PANELS],
    pub(super) filter: Filter,
    /// The filter that is being written.
    pub(super) writes: Option<String>,
    /// The host whose details are shown, and how far down.
    pub(super) host: Option<IpAddr>,
    pub(super) scrolled: u16,
    pub(super) helps: bool,
    pub(super) is_paused: bool,
    /// Whether there may be colours.
    pub(super) color: bool,
    /// How the replay is, if it is one: its speed, where it is, and what it waits for.
    pub(super) replay: Option<(f64, Option<u64>, Option<u64>)>,
    /// The rows that fit into the panel with the focus, as of the last drawing.
    pub(super) page: usize,
}

/// What a row is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Scan(IpAddr, u64, Option<IpAddr>, Option<u16>),
    Host(IpAddr),
    Conversation(Ends),
    Name(usize, String),
    Sensor(SensorName),
    Source(IpAddr),
}

impl Subject {
    /// The host that the details of this row are about.
    pub(super) fn host(&self, model: &Model) -> Option<IpAddr> {
        match self {
            Subject::Scan(source, ..) => Some(*source),
            Subject::Host(host) | Subject::Source(host) => Some(*host),
            Subject::Conversation((client, ..)) => Some(client.ip()),
            Subject::Name(kind, name) => {
                let (host, _) = model.wire.names.get(&(*kind, name.clone()))?.clients.first()?;
                Some(*host)
            }
            Subject::Sensor(_) => None,
        }
    }
}

impl View {
    pub(super) fn of(model: &Model, color: bool) -> Self {
        match model.site {
            None => View::new(color),
            Some(_) => View { panels: Panel::OF_SITE, focus: Panel::Sensors, ..View::new(color) },
        }
    }

    pub(super) fn new(color: bool) -> Self {
        View {
            panels: Panel::OF_WIRE,
            focus: Panel::Alerts,
            orders: [None; PANELS],
            selected: [const { None }; PANELS],
            filter: Filter::default(),
            writes: None,
            host: None,
            scrolled: 0,
            helps: false,
            is_paused: false,
            color,
            replay: None,
            page: 0,
        }
    }

    /// Gives the focus to the panel that is so many further on.
    pub(super) fn turn(&mut self, by: usize) {
        let place = self.panels.iter().position(|&panel| panel == self.focus).unwrap_or(0);
        self.focus = self.panels[(place + by) % self.panels.len()];
    }

    /// The place in the panel's orders. At the end of a capture rates say nothing, and totals are in their place.
    fn order(&self, panel: Panel, model: &Model) -> usize {
        let usual = usize::from(model.state == State::Over && panel.orders()[0] == "rate");
        self.orders[panel as usize].unwrap_or(usual)
    }

    /// Goes on to the next order of the panel with the focus.
    pub(super) fn reorder(&mut self, model: &Model) {
        let next = (self.order(self.focus, model) + 1) % self.focus.orders().len();
        self.orders[self.focus as usize] = Some(next);
    }

    /// The rows of a panel that the filter lets through, in order.
    pub(super) fn rows(&self, panel: Panel, model: &Model) -> Vec<Subject> {
        let (filter, order) = (&self.filter, panel.orders()[self.order(panel, model)]);
        match panel {
            Panel::Alerts => {
                let subject = |event: &ScanEvent| model.subject_of(event, &story(event, model).0);
                let mut scans: Vec<_> = model.scans.iter().filter(|event| filter.fits(|| subject(event))).collect();
                if order == "size" {
                    scans.sort_by_key(|event| Reverse(event.distinct));
                }
                scans.into_iter().map(subject_of).collect()
            }
            Panel::Hosts => {
                let hosts = model.wire.hosts.iter().filter(|(address, host)| filter.fits(|| host.subject(**address)));
                let mut hosts: Vec<_> = hosts
                    .map(|(address, host)| {
                        let rate = host.out.rate(model.wire.second) + host.into.rate(model.wire.second);
                        let weight = match order {
                            "rate" => (rate, host.sent + host.received),
                            "bytes" => (host.sent + host.received, 0),
                            "conversations" => (host.conversations, 0),
                            _ => (0, 0),
                        };
                        (Reverse(weight), *address)
                    })
                    .collect();
                hosts.sort_unstable();
                hosts.into_iter().map(|(_, address)| Subject::Host(address)).collect()
            }
            Panel::Conversations => {
                let all =
                    model.wire.conversations.iter().filter(|(ends, counted)| filter.fits(|| counted.subject(**ends)));
                let mut all: Vec<_> = all
                    .map(|(ends, counted)| {
                        let bytes = counted.bytes.iter().sum();
                        let weight = match order {
                            "rate" => (counted.recent.rate(model.wire.second), bytes),
                            "bytes" => (bytes, 0),
                            _ => (counted.last_ns, 0),
                        };
                        (Reverse(weight), *ends)
                    })
                    .collect();
                all.sort_unstable();
                all.into_iter().map(|(_, ends)| Subject::Conversation(ends)).collect()
            }
            Panel::Names => {
                let names = model
                    .wire
                    .names
                    .iter()
                    .filter(|((kind, name), counted)| filter.fits(|| counted.subject(*kind, name)));
                let mut names: Vec<_> = names
                    .map(|((kind, name), counted)| {
                        let weight = match order {
                            "latest" => (counted.last_ns, counted.count),
                            "count" => (counted.count, counted.answers),
                            _ => (0, 0),
                        };
                        (Reverse(weight), name, *kind)
                    })
                    .collect();
                names.sort_unstable();
                names.into_iter().map(|(_, name, kind)| Subject::Name(kind, name.clone())).collect()
            }
            Panel::Sensors => site::sensors(model, filter, order),
            Panel::Sources => site::sources(model, filter, order),
        }
    }

    /// The selected row of the panel with the focus, or its first one.
    pub(super) fn row(&self, model: &Model) -> Option<Subject> {
        let rows = self.rows(self.focus, model);
        let selected = self.selected[self.focus as usize].as_ref();
        selected.filter(|selected| rows.contains(selected)).cloned().or_else(|| rows.into_iter().next())
    }

    /// Selects the row that is so many below the selected one of the panel with the focus.
    pub(super) fn go(&mut self, by: isize, model: &Model) {
        let rows = self.rows(self.focus, model);
        let selected = &mut self.selected[self.focus as usize];
        let place = selected.as_ref().and_then(|selected| rows.iter().position(|row| row == selected));
        let last = rows.len().saturating_sub(1);
        let place = match place {
            Some(place) => place.saturating_add_signed(by).min(last),
            None if by == isize::MAX || by < 0 && by != isize::MIN => last,
            None => 0,
        };
        *selected = rows.into_iter().nth(place);
    }

    fn dim(&self) -> Style {
        if self.color { Style::new().fg(Color::DarkGray) } else { Style::new().add_modifier(Modifier::DIM) }
    }

    fn alarm(&self) -> Style {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        if self.color { bold.fg(Color::Red) } else { bold }
    }

    fn found(&self) -> Style {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        if self.color { bold.fg(Color::Yellow) } else { bold }
    }
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const PLAIN: Style = Style::new();
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

fn subject_of(event: &ScanEvent) -> Subject {
    let alert = &event.scan;
    Subject::Scan(alert.source(), alert.time_ns(), alert.destination(), alert.port())
}

/// The least width and height of a screen.
pub(super) const LEAST: (u16, u16) = (40, 10);
/// The width from which panels stand side by side.
const WIDE: u16 = 130;

/// Draws the screen, and says where the cursor is to be shown, if it is.
pub(super) fn draw(area: Rect, buffer: &mut Buffer, model: &Model, view: &mut View) -> Option<Position> {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        put(buffer, area, 0, "corelane top: the window is too small", PLAIN);
        return None;
    }
    let (head, rest) = cut(area, 1);
    let (body, foot) = cut(rest, rest.height - 1);
    header(head, buffer, model, view);
    let cursor = footer(foot, buffer, model, view);
    if view.helps {
        help(body, buffer, view);
        return cursor;
    }
    let lines = if body.height >= 32 { 4 } else { 2 };
    let (rates, body) = cut(body, lines + 1);
    sparklines(rates, buffer, model, view);
    if let Some(host) = view.host {
        details(body, buffer, model, view, host);
    } else if area.width >= WIDE {
        let (left, right) = halves(body);
        let (rights, lefts): (Vec<_>, Vec<_>) = view.panels.iter().copied().partition(|panel| panel.is_right());
        stack(left, buffer, model, view, &lefts);
        stack(right, buffer, model, view, &rights);
    } else {
        let panels = view.panels;
        stack(body, buffer, model, view, panels);
    }
    cursor
}

/// The first lines of an area, and the others.
fn cut(area: Rect, lines: u16) -> (Rect, Rect) {
    let lines = lines.min(area.height);
    (Rect { height: lines, ..area }, Rect { y: area.y + lines, height: area.height - lines, ..area })
}

fn halves(area: Rect) -> (Rect, Rect) {
    let left = (area.width - 2) * 11 / 20;
    (Rect { width: left, ..area }, Rect { x: area.x + left + 2, width: area.width - 2 - left, ..area })
}

/// Writes into a line of an area; `…` stands for what does not fit. The result is the column behind it.
fn put(buffer: &mut Buffer, area: Rect, column: u16, text: &str, style: Style) -> u16 {
    if area.height == 0 || column >= area.width {
        return column;
    }
    let room = usize::from(area.width - column);
    let (mut x, y) = (area.x + column, area.y);
    if Span::raw(text).width() <= room {
        (x, _) = buffer.set_stringn(x, y, text, room, style);
    } else {
        (x, _) = buffer.set_stringn(x, y, text, room - 1, style);
        (x, _) = buffer.set_stringn(x, y, "…", 1, style);
    }
    x - area.x
}

/// Writes at the right end of a line.
fn put_right(buffer: &mut Buffer, area: Rect, text: &str, style: Style) -> u16 {
    let width = u16::try_from(text.chars().count()).unwrap_or(u16::MAX).min(area.width);
    put(buffer, area, area.width - width, text, style);
    area.width - width
}

fn header(area: Rect, buffer: &mut Buffer, model: &Model, view: &View) {
    let right = match (model.wire.times, model.state) {
        _ if model.site.is_some() => site::header(model),
        (_, State::Opening) => "opening".to_owned(),
        (None, State::Over | State::Failed) => "end, no packets".to_owned(),
        (None, _) => "no packets yet".to_owned(),
        (Some((first, last)), state) => {
            let now = match view.replay {
                Some((_, at, _)) => at.filter(|_| state == State::Running),
                None => model.wire.now_ns().filter(|_| model.is_live),
            };
            let last = now.unwrap_or(last);
            let over = if state == State::Over { "end, " } else { "" };
            format!("{over}{} UTC, {}", moment(last), span(last.saturating_sub(first) / 1_000_000_000))
        }
    };
    let at = put_right(buffer, area, &right, PLAIN);
    let left = Rect { width: at.saturating_sub(1), ..area };
    let at = put(buffer, left, 0, "corelane top ", BOLD);
    let at = put(buffer, left, at, &text::clean(&model.what), PLAIN);
    if let Some((speed, _, _)) = view.replay
        && model.state != State::Over
        && (speed - 1.0).abs() > 1e-9
    {
        put(buffer, left, at + 1, &times(speed), view.dim());
    }
}

/// A speed: `×4`, `×1/8`.
fn times(speed: f64) -> String {
    if speed >= 1.0 { format!("×{}", rounded(speed)) } else { format!("×1/{}", rounded(1.0 / speed)) }
}

fn rounded(value: f64) -> String {
    if value >= 10.0 || (value - value.round()).abs() < 0.05 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn footer(area: Rect, buffer: &mut Buffer, model: &Model, view: &View) -> Option<Position> {
    if let Some(writes) = &view.writes {
        let at = put(buffer, area, 0, "/", BOLD);
        let at = put(buffer, area, at, writes, PLAIN);
        let hint = "  ip: port: sni: proto: or any word; Enter, Esc";
        if let Some(unknown) = unknown_key(view) {
            put(buffer, area, at + 2, &unknown, view.alarm());
        } else if usize::from(at) + hint.len() < usize::from(area.width) {
            put(buffer, area, at, hint, view.dim());
        }
        return Some(Position { x: area.x + at.min(area.width - 1), y: area.y });
    }
    let mut at = 0;
    let mut say = |text: &str, style| {
        let begin = if at == 0 { 0 } else { at + 2 };
        at = put(buffer, area, begin, text, style);
    };
    if view.is_paused {
        say("PAUSED", REVERSED);
    }
    if !view.filter.is_empty() {
        say(&format!("/{}", view.filter.text()), BOLD);
    }
    if let Some(unknown) = unknown_key(view) {
        say(&unknown, view.alarm());
    }
    let waits = view.replay.and_then(|(_, at, next)| {
        let wait = next?.saturating_sub(at?) / 1_000_000_000;
        (wait >= 5 && model.state == State::Running).then(|| format!("quiet for {}: n goes on", span(wait)))
    });
    if let Some(waits) = waits {
        say(&waits, PLAIN);
    }
    if let Some(message) = model.said() {
        say(message, view.found());
    }
    let keys = if view.host.is_some() {
        "Esc back  ↑↓ scroll  q quit  ? help"
    } else {
        "Tab panel  ↑↓ select  Enter host  s sort  / filter  Space pause  q quit  ? help"
    };
    say(keys, view.dim());
    None
}

/// That the filter has a key that there is not.
fn unknown_key(view: &View) -> Option<String> {
    let key = view.filter.unknown()?;
    Some(format!("{key}: is no key; there are ip: port: sni: proto:"))
}

/// What sums above the panels begin with.
fn in_all(view: &View) -> &'static str {
    if view.filter.is_empty() { "in all" } else { "in all, unfiltered:" }
}

/// Columns of rates, and below them what there was in all, and over how long the columns go.
fn sparklines(area: Rect, buffer: &mut Buffer, model: &Model, view: &View) {
    if let Some(site) = &model.site {
        site::columns(area, buffer, site, view);
        return;
    }
    let last = model.wire.seconds.back().copied().unwrap_or_default();
    let (upper, lower) = cut(area, area.height.saturating_sub(1) / 2 + area.height.saturating_sub(1) % 2);
    let label = format!("{:>6} packets/s ", short(last.packets));
    let bits = format!("{:>6} bit/s     ", short(last.bytes.saturating_mul(8)));
    let lower = Rect { height: lower.height.saturating_sub(1), ..lower };
    let seconds = spark(upper, buffer, &label, BOLD, model.wire.seconds.iter().map(|second| second.packets));
    if model.is_live {
        let style = if last.drops > 0 { view.alarm() } else { BOLD };
        let label = format!("{:>6} dropped/s ", short(last.drops));
        spark(lower, buffer, &label, style, model.wire.seconds.iter().map(|second| second.drops));
    } else {
        spark(lower, buffer, &bits, BOLD, model.wire.seconds.iter().map(|second| second.bytes));
    }
    let total = Rect { y: area.bottom() - 1, height: 1, ..area };
    let dropped = match model.wire.total.drops {
        0 if model.is_live => ", none dropped".to_owned(),
        0 => String::new(),
        drops => format!(", {} dropped", grouped(drops)),
    };
    let mut rate = String::new();
    if model.is_live {
        rate = format!(", {} bit/s", short(last.bytes.saturating_mul(8)));
    }
    let text = format!(
        "{} {} packets, {}B{rate}{dropped}",
        in_all(view),
        grouped(model.wire.total.packets),
        short(model.wire.total.bytes)
    );
    let style = if model.wire.total.drops > 0 { view.alarm() } else { view.dim() };
    totals(total, buffer, &text, style, seconds, view);
}

/// The line below the columns: a text and, if there is room, over how long they go.
fn totals(area: Rect, buffer: &mut Buffer, text: &str, style: Style, seconds: usize, view: &View) {
    let at = put(buffer, area, 0, text, style);
    let axis = format!("columns: the last {seconds} s");
    if seconds > 0 && usize::from(at) + 2 + axis.len() <= usize::from(area.width) {
        put_right(buffer, area, &axis, view.dim());
    }
}

/// A label, and columns as high as the values are; the latest is at the right end. The result is how many there are.
fn spark(
    area: Rect,
    buffer: &mut Buffer,
    label: &str,
    style: Style,
    values: impl DoubleEndedIterator<Item = u64>,
) -> usize {
    if area.height == 0 {
        return 0;
    }
    let line = Rect { y: area.bottom() - 1, height: 1, ..area };
    let begin = put(buffer, line, 0, label, style);
    let width = usize::from(area.width.saturating_sub(begin));
    let values: Vec<u64> = values.rev().take(width).collect();
    let (most, levels) = (values.iter().copied().max().unwrap_or(0).max(1), u64::from(area.height) * 8);
    // Anything at all is seen.
    let level = |&value: &u64| (u128::from(value) * u128::from(levels)).div_ceil(u128::from(most)) as u64;
    let columns = Sparkline::default().data(values.iter().map(level)).max(levels);
    let room = Rect { x: area.x + begin, width: width as u16, ..area };
    columns.direction(RenderDirection::RightToLeft).render(room, buffer);
    values.len()
}

/// Panels one below the other. The one with the focus has twice the room of another. Lines that a panel has no rows for
/// go to those that have more rows.
fn stack(area: Rect, buffer: &mut Buffer, model: &Model, view: &mut View, panels: &[Panel]) {
    let has_focus = |panel: Panel| panel == if panels.contains(&view.focus) { view.focus } else { panels[0] };
    let parts = panels.len() as u16 + 1;
    let mut heights: Vec<_> = panels
        .iter()
        .map(
            |&panel| {
                if has_focus(panel) { area.height - (parts - 2) * (area.height / parts) } else { area.height / parts }
            },
        )
        .collect();
    let rows: Vec<_> = panels.iter().map(|&panel| view.rows(panel, model)).collect();
    let needs: Vec<_> = rows.iter().zip(panels).map(|(rows, &panel)| need(area, model, panel, rows)).collect();
    let first = panels.iter().position(|&panel| panel == Panel::Alerts);
    share(&mut heights, &needs, first);
    let mut rest = area;
    for ((&panel, height), rows) in panels.iter().zip(heights).zip(rows) {
        let own;
        (own, rest) = cut(rest, height);
        draw_panel(own, buffer, model, view, panel, &rows);
    }
}

/// The lines of a panel that shows all of these rows below its titles, or the word that there are none: at most two
/// more than the area has.
fn need(area: Rect, model: &Model, panel: Panel, rows: &[Subject]) -> u16 {
    let height = usize::from(area.height);
    let lines: usize = match panel {
        Panel::Alerts => rows.iter().take(height).map(|row| wrapped(row, model, area.width, height).len()).sum(),
        _ => rows.len(),
    };
    2 + lines.min(height) as u16
}

/// Gives lines of panels that have more than they need to those that need more: to the `first` one as many as it needs,
/// then one after the other to the lowest.
fn share(heights: &mut [u16], needs: &[u16], first: Option<usize>) {
    let all = 0..heights.len();
    loop {
        let spare = |&panel: &usize| heights[panel].saturating_sub(needs[panel]);
        let from = all.clone().filter(|panel| spare(panel) > 0).max_by_key(spare);
        let lacks = |&panel: &usize| heights[panel] < needs[panel];
        let to = first.filter(lacks).or_else(|| all.clone().filter(lacks).min_by_key(|&panel| heights[panel]));
        let (Some(from), Some(to)) = (from, to) else { return };
        heights[from] -= 1;
        heights[to] += 1;
    }
}

/// The width of a time of day.
const TIME: u16 = 8;

/// A column: its title, its width, and whether it is one of numbers. One of width 0 takes the room that is left.
type Column = (&'static str, u16, bool);

/// The columns of a panel; `first` is the width of the widest first cell that is seen.
fn columns(panel: Panel, first: u16) -> Vec<Column> {
    match panel {
        Panel::Alerts => {
            vec![("from UTC", TIME, false), ("who scans what: counts are of failures, open is what answered", 0, false)]
        }
        Panel::Hosts => vec![
            ("host", first.max(15), false),
            ("out bit/s", 9, true),
            ("in bit/s", 8, true),
            ("bytes", 5, true),
            ("conv.", 5, true),
            ("answers at, names", 0, false),
        ],
        Panel::Conversations => {
            vec![("client → server", 0, false), ("protocol", 10, false), ("bit/s", 5, true), ("bytes", 5, true)]
        }
        Panel::Names => {
            vec![
                ("last UTC", TIME, false),
                ("", 4, false),
                ("name", 0, false),
                ("count", 5, true),
                ("clients", 18, false),
            ]
        }
        Panel::Sensors => site::sensor_columns(first),
        Panel::Sources => site::source_columns(first),
    }
}

fn draw_panel(area: Rect, buffer: &mut Buffer, model: &Model, view: &mut View, panel: Panel, rows: &[Subject]) {
    let has_focus = view.focus == panel;
    let (title, rest) = cut(area, 1);
    // The number is that of its key.
    let key = view.panels.iter().position(|&other| other == panel).map_or(0, |place| place + 1);
    let name = format!("{key} {}", panel.title());
    let mut at = put(buffer, title, 0, &name, if has_focus { REVERSED } else { BOLD });
    let count = match panel {
        Panel::Alerts if view.filter.is_empty() => model.alerts,
        _ => rows.len() as u64,
    };
    let is_cut = match panel {
        Panel::Alerts | Panel::Sensors => false,
        Panel::Sources => model.site.as_ref().is_some_and(|site| site.is_cut),
        Panel::Hosts => model.wire.is_cut[0],
        Panel::Conversations => model.wire.is_cut[1],
        Panel::Names => model.wire.is_cut[2],
    };
    let more = if is_cut { "+" } else { "" };
    let order = panel.orders()[view.order(panel, model)];
    let but = if matches!(panel, Panel::Hosts | Panel::Conversations) { ", without failed attempts" } else { "" };
    at = put(buffer, title, at, &format!(" {}{more} by {order}{but} ", grouped(count)), view.dim());
    let rule = "─".repeat(usize::from(title.width.saturating_sub(at)));
    put(buffer, title, at, &rule, view.dim());
    if rows.is_empty() {
        let nothing = match model.state {
            _ if !view.filter.is_empty() => "none that the filter lets through",
            State::Over => "none",
            _ => "none so far",
        };
        put(buffer, rest, 0, nothing, view.dim());
        return;
    }
    let (head, rest) = cut(rest, u16::from(rest.height > 1));
    let height = usize::from(rest.height);
    let selected = view.selected[panel as usize].as_ref();
    let place = selected.and_then(|selected| rows.iter().position(|row| row == selected));
    // The selected row has all its lines, and others where lines are free.
    let lines = |row: &Subject, most: usize| match panel {
        Panel::Alerts => wrapped(row, model, rest.width, most),
        _ => Vec::new(),
    };
    let tall = place.map_or(1, |place| lines(&rows[place], height).len().max(1));
    let first = place.map_or(0, |place| (place + tall).saturating_sub(height));
    let seen: Vec<_> = rows.iter().skip(first).take((height + 1).saturating_sub(tall)).collect();
    let mut free = (height + 1).saturating_sub(seen.len() + tall);
    if has_focus {
        view.page = seen.len().max(1);
    }
    let below = rows.len() - first - seen.len();
    if below > 0 {
        put_right(buffer, title, &format!(" ↓ {} more", grouped(below as u64)), view.dim());
    }
    let seen: Vec<_> = seen.into_iter().map(|row| (row, cells(row, model, view))).collect();
    let widest = seen.iter().filter_map(|(_, cells)| cells.first()).map(|(text, _)| text.len()).max().unwrap_or(0);
    let columns = columns(panel, u16::try_from(widest).unwrap_or(u16::MAX));
    let titles: Vec<_> = columns.iter().map(|&(title, ..)| (title.to_owned(), view.dim())).collect();
    draw_row(head, buffer, &columns, &titles, None);
    let mut below = rest;
    for (number, (row, mut cells)) in seen.into_iter().enumerate() {
        let is_selected = place == Some(first + number);
        let style = (has_focus && is_selected).then_some(REVERSED);
        let lines = lines(row, if is_selected { tall } else { 1 + free });
        if !is_selected {
            free -= lines.len().saturating_sub(1);
        }
        let mut line;
        (line, below) = cut(below, 1);
        let mut lines = lines.into_iter();
        if let (Some((text, _)), Some(first)) = (cells.last_mut(), lines.next()) {
            *text = first;
        }
        draw_row(line, buffer, &columns, &cells, style);
        let colors = cells.last().map_or(PLAIN, |&(_, style)| style);
        for text in lines {
            (line, below) = cut(below, 1);
            put(buffer, line, TIME + 1, &text, colors);
            buffer.set_style(line, style.unwrap_or(PLAIN));
        }
    }
}

fn draw_row(line: Rect, buffer: &mut Buffer, columns: &[Column], cells: &[(String, Style)], all: Option<Style>) {
    let fixed: u16 = columns.iter().map(|&(_, width, _)| width + 1).sum::<u16>() - 1;
    // Of the last columns only as many as there is room for.
    let is_last = columns.last().is_some_and(|&(_, width, _)| width == 0);
    let flexible = line.width.saturating_sub(fixed).max(if is_last { 0 } else { line.width.min(20) });
    let mut at = 0;
    for (&(_, width, is_number), (text, style)) in columns.iter().zip(cells) {
        let width = if width == 0 { flexible } else { width };
        if at >= line.width {
            break;
        }
        let cell = Rect { x: line.x + at, width: width.min(line.width - at), ..line };
        if is_number {
            put_right(buffer, cell, text, *style);
        } else {
            put(buffer, cell, 0, text, *style);
        }
        at += width + 1;
    }
    if let Some(style) = all {
        buffer.set_style(line, style);
    }
}

fn cells(row: &Subject, model: &Model, view: &View) -> Vec<(String, Style)> {
    let plain = |text: String| (text, PLAIN);
    match row {
        Subject::Scan(..) => scan_of(row, model).map_or_else(Vec::new, |event| {
            let (text, opened) = story(event, model);
            let style = if opened { view.alarm() } else { view.found() };
            vec![plain(clock(event.first_ns)), (text, style)]
        }),
        Subject::Host(address) => {
            let Some(host) = model.wire.hosts.get(address) else { return Vec::new() };
            let second = model.wire.second;
            vec![
                plain(address.to_string()),
                plain(short(host.out.rate(second) * 8)),
                plain(short(host.into.rate(second) * 8)),
                plain(short(host.sent + host.received)),
                plain(short(host.conversations)),
                plain(serves(host)),
            ]
        }
        Subject::Conversation(ends) => {
            let Some(counted) = model.wire.conversations.get(ends) else { return Vec::new() };
            let (client, server, is_tcp) = *ends;
            let protocol = match counted.protocol {
                "unknown" | "no payload" => if is_tcp { "tcp" } else { "udp" }.to_owned(),
                protocol => protocol.to_owned(),
            };
            let mut between = format!("{client} → {server}");
            if let Some(name) = &counted.name {
                between = format!("{between} {name}");
            }
            vec![
                plain(between),
                plain(protocol),
                plain(short(counted.recent.rate(model.wire.second) * 8)),
                plain(short(counted.bytes.iter().sum())),
            ]
        }
        Subject::Name(kind, name) => {
            let Some(counted) = model.wire.names.get(&(*kind, name.clone())) else { return Vec::new() };
            vec![
                plain(clock(counted.last_ns)),
                (KINDS[*kind].to_owned(), view.dim()),
                plain(name.clone()),
                plain(short(counted.count)),
                plain(list(counted.clients.iter().map(|(host, _)| host.to_string()))),
            ]
        }
        Subject::Sensor(sensor) => site::sensor_cells(model, view, sensor),
        Subject::Source(address) => site::source_cells(model, *address),
    }
}

fn scan_of<'a>(row: &Subject, model: &'a Model) -> Option<&'a ScanEvent> {
    model.scans.iter().find(|event| subject_of(event) == *row)
}

/// The lines of a scan's text, behind its time, in a panel of this width.
fn wrapped(row: &Subject, model: &Model, width: u16, most: usize) -> Vec<String> {
    let text = scan_of(row, model).map(|event| story(event, model).0).unwrap_or_default();
    wrap(&text, usize::from(width.saturating_sub(TIME + 1)), most)
}

/// Breaks a text at its spaces, into so many lines at most. All but the first are indented; the last one has the rest,
/// and may be too long.
fn wrap(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(' ') {
        let count = lines.len();
        let line = &mut lines[count - 1];
        if count < most && !line.is_empty() && line.chars().count() + word.trim_end().chars().count() > width {
            line.truncate(line.trim_end().len());
            lines.push(format!("  {word}"));
        } else {
            line.push_str(word);
        }
    }
    lines
}

/// What happened, and whether anything answered.
fn story(event: &ScanEvent, model: &Model) -> (String, bool) {
    let carrier = event.probe.map_or("TCP", |probe| probe.carrier(event.scan.source().is_ipv6()));
    let is_named = |probe: &Probe| !matches!(probe, Probe::Udp | Probe::Protocol | Probe::Sctp);
    let by = event.probe.filter(is_named).map_or(String::new(), |probe| format!(" by {probe}"));
    let unit = event.scan.unit(event.probe);
    // What failed again may be what had failed before, and is not counted.
    let is_all = event.state != ScanState::Found && event.distinct == event.scan.count();
    let count = format!("{}{}", grouped(event.distinct), if is_all { "" } else { "+" });
    let mut text = match event.scan {
        Alert::Vertical { source, destination, .. } => {
            format!("{source} scans {count} {carrier} {unit}s of {destination}{by}")
        }
        Alert::Horizontal { source, .. } if event.probe.is_some_and(|probe| !probe.has_port()) => {
            format!("{source} scans {count} hosts{by}")
        }
        Alert::Horizontal { source, port, .. } => {
            format!("{source} scans {carrier} port {port} of {count} hosts{by}")
        }
        Alert::Block { source, .. } => format!("{source} scans {count} {carrier} ports of several hosts{by}"),
    };
    let (answers, are_more) = model.answers(event);
    if !answers.is_empty() {
        let open = match event.scan {
            Alert::Vertical { .. } => list(answers.iter().map(|service| text::port(service.port))),
            Alert::Horizontal { .. } | Alert::Block { .. } => {
                list(answers.iter().map(|service| service.host.to_string()))
            }
        };
        text = format!("{text}, open: {open}{}", if are_more { " and more" } else { "" });
    }
    if let ScanState::Ended { last_ns } = event.state {
        // No line is broken in it.
        text = format!("{text}; until\u{a0}{}", clock(last_ns));
    }
    (text, !answers.is_empty())
}

fn serves(host: &Host) -> String {
    let ports = host.ports.iter().map(|&port| text::port(port));
    list(ports.chain(host.names.iter().cloned()))
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join(", ")
}

/// All that is known of a host.
fn details(area: Rect, buffer: &mut Buffer, model: &Model, view: &mut View, address: IpAddr) {
    let lines = details_of(model, view, address, area.width);
    let most = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_sub(area.height);
    view.scrolled = view.scrolled.min(most);
    view.page = usize::from(area.height.max(1));
    let mut seen: Vec<_> = lines.into_iter().skip(view.scrolled.into()).collect();
    let height = usize::from(area.height);
    if seen.len() > height && height > 1 {
        let below = grouped((seen.len() - (height - 1)) as u64);
        seen.truncate(height - 1);
        seen.push((format!("↓ {below} more lines"), view.dim()));
    }
    for (number, (text, style)) in seen.iter().take(height).enumerate() {
        put(buffer, Rect { y: area.y + number as u16, height: 1, ..area }, 0, text, *style);
    }
}

/// Names and conversations that the details of a host list.
const ASKED: usize = 100;
const OWN: usize = 100;

/// A line of details.
fn line(what: &str, text: &str) -> (String, Style) {
    (format!("{what:<14}{text}"), PLAIN)
}

fn details_of(model: &Model, view: &View, address: IpAddr, width: u16) -> Vec<(String, Style)> {
    let mut lines = vec![(address.to_string(), REVERSED)];
    if let Some(site) = &model.site {
        lines.extend(site::details(site, view, address));
        lines.extend(scans_of(model, view, address, width));
        return lines;
    }
    let Some(host) = model.wire.hosts.get(&address) else {
        lines.push(("no conversation of this host is known".to_owned(), view.dim()));
        lines.extend(scans_of(model, view, address, width));
        return lines;
    };
    let rate = |recent: &super::model::Recent| format!("{} bit/s", short(recent.rate(model.wire.second) * 8));
    let times = format!("{} to {} UTC", clock(host.first_ns), clock(host.last_ns));
    lines.push(line("seen", &format!("{times}, without failed attempts, as in what follows")));
    lines.push(line("sent", &format!("{}B, now {}", short(host.sent), rate(&host.out))));
    lines.push(line("received", &format!("{}B, now {}", short(host.received), rate(&host.into))));
    lines.push(line("conversations", &grouped(host.conversations)));
    if !host.protocols.is_empty() {
        lines.push(line("spoke", &host.protocols.join(", ")));
    }
    if !host.ports.is_empty() {
        lines.push(line("answers at", &list(host.ports.iter().map(|&port| text::port(port)))));
    }
    if !host.names.is_empty() {
        lines.push(line("names", &host.names.join(", ")));
    }
    let mut section = |title: &str, rows: Vec<(String, Style)>| {
        if !rows.is_empty() {
            lines.push((String::new(), PLAIN));
            lines.push((title.to_owned(), BOLD));
            lines.extend(rows);
        }
    };
    section("Scans", scans_of(model, view, address, width));
    let mut reached = host.reached.clone();
    reached.sort_unstable();
    let service = |service: &Service| {
        let carrier = if service.port.is_tcp { "" } else { "/udp" };
        (format!("{}{carrier}", SocketAddr::new(service.host, service.port.number)), PLAIN)
    };
    let mut rows: Vec<_> = reached.iter().map(service).collect();
    if host.reached_more {
        rows.push(("and more".to_owned(), view.dim()));
    }
    section("Reached", rows);
    let rest = |count: usize, most: usize| {
        let more = count.saturating_sub(most);
        (more > 0).then(|| (format!("and {} more", grouped(more as u64)), view.dim()))
    };
    let of_host = |counted: &Name| counted.clients.iter().find(|(host, _)| *host == address).map(|&(_, count)| count);
    let asked =
        model.wire.names.iter().filter_map(|((kind, name), counted)| Some((of_host(counted)?, *kind, name, counted)));
    let mut asked: Vec<_> = asked.collect();
    asked.sort_by_key(|&(count, kind, name, _)| (Reverse(count), name, kind));
    let shown = asked.iter().take(ASKED).map(|&(count, kind, name, counted)| asked_line(kind, name, count, counted));
    section("Asked for", shown.chain(rest(asked.len(), ASKED)).collect());
    let own = model.wire.conversations.iter().filter(|((a, b, _), _)| a.ip() == address || b.ip() == address);
    let mut own: Vec<_> = own.collect();
    own.sort_by_key(|(ends, counted)| (Reverse(counted.bytes.iter().sum::<u64>()), **ends));
    let count = own.len();
    section("Conversations", own.into_iter().take(OWN).map(conversation_line).chain(rest(count, OWN)).collect());
    lines
}

/// Lines of the scans by a host, or of one host.
fn scans_of(model: &Model, view: &View, address: IpAddr, width: u16) -> Vec<(String, Style)> {
    let concerns = move |event: &&ScanEvent| {
        let alert = &event.scan;
        alert.source() == address || matches!(alert, Alert::Vertical { destination, .. } if *destination == address)
    };
    let scans = model.scans.iter().filter(concerns);
    let text = |event: &ScanEvent| format!("{} {}", clock(event.first_ns), story(event, model).0);
    let lines = scans.flat_map(|event| wrap(&text(event), usize::from(width), usize::MAX));
    lines.map(|text| (text, view.found())).collect()
}

/// A name, and how often this host asked for it.
fn asked_line(kind: usize, name: &str, count: u64, counted: &Name) -> (String, Style) {
    let times = match count {
        // The question was not seen.
        0 if counted.count == 0 => "answered".to_owned(),
        _ => format!("{}{}×", grouped(count), if counted.clients_more { "+" } else { "" }),
    };
    (format!("{:<5}{name}, {times}", KINDS[kind]), PLAIN)
}

fn conversation_line((&(client, server, is_tcp), counted): (&Ends, &Conversation)) -> (String, Style) {
    let carrier = if is_tcp { "tcp" } else { "udp" };
    let name = counted.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    let bytes = short(counted.bytes.iter().sum());
    (format!("{client} → {server} {carrier} {} {bytes}B{name}", counted.protocol), PLAIN)
}

type Help = (&'static str, &'static str);

const KEYS: [Help; 9] = [
    ("Tab, digits", "the next panel, or this one: it gets the most room"),
    ("↑ ↓ PgUp PgDn", "select a row, also j, k, Home, End"),
    ("Enter", "details of the host of the selected row"),
    ("Esc", "leaves the details, or ends the filter"),
    ("s", "another order of the panel"),
    ("?", "this page"),
    ("q, Ctrl-C", "ends"),
    ("/", "a filter, of words that all have to fit:"),
    ("", "ip:10.0.0.0/8  ip:10.1.  port:443  sni:example  proto:dns"),
];

/// Words of scans.
const FROM: Help = ("from, until", "first failure, and last that was new for --forget; UDP: sent");
const MORE: Help = ("999+ ports", "failed at least: it goes on, or tried some again after --forget");

/// Keys and words of what passes here.
const OF_WIRE: [Help; 12] = [
    ("", "any other word looks at all of a row, and at what was open"),
    ("Space", "stops the screen; a replay stops too, a capture goes on"),
    ("< >", "half the speed of a replay, and twice"),
    ("n", "goes to the next packet of a replay"),
    ("", ""),
    FROM,
    MORE,
    ("open", "what answered, 64 at most; pings are not looked at"),
    ("bytes, conv.", "without failed attempts; the columns and sums above have all"),
    ("columns", "a second each, the latest at the right"),
    ("bit/s", "the mean of the last four seconds of the capture"),
    ("k, M, G", "thousands, millions, thousands of millions"),
];

fn help(area: Rect, buffer: &mut Buffer, view: &View) {
    put(buffer, area, 0, "Keys and words", BOLD);
    let own = if view.panels == Panel::OF_SITE { &site::HELP[..] } else { &OF_WIRE };
    for (number, (key, text)) in KEYS.iter().chain(own).enumerate() {
        let (_, rest) = cut(area, number as u16 + 1);
        put(buffer, rest, 0, key, BOLD);
        put(buffer, rest, 16, text, if key.is_empty() { view.dim() } else { PLAIN });
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Recent, Second};
    use super::*;
    use corelane_monitor::facts::Port;

    const SECOND: u64 = 1_000_000_000;

    fn tcp(number: u16) -> Port {
        Port { is_tcp: true, number }
    }

    /// A scanner, its target, and one that browses.
    fn model() -> Model {
        let [scanner, target, client] = ["10.0.0.9", "10.0.0.5", "2001:db8::7"].map(|text| text.parse().unwrap());
        let server: IpAddr = "2001:db8::80".parse().unwrap();
        let mut model = Model::new("eth0".to_owned(), true);
        model.set(State::Running);
        model.wire.times = Some((0, 3723 * SECOND));
        model.wire.second = 3;
        model.wire.seconds = [100, 0, 1, 4000].map(|packets| Second { packets, bytes: 500 * packets, drops: 0 }).into();
        model.wire.total = Second { packets: 4101, bytes: 2_050_500, drops: 0 };
        let host = |sent, received, conversations| Host { sent, received, conversations, ..Host::default() };
        let reached = [tcp(22), tcp(80)].map(|port| Service { host: target, port }).to_vec();
        model.wire.hosts.insert(scanner, Host { reached, ..host(6000, 1200, 2) });
        model.wire.hosts.insert(target, Host { ports: vec![tcp(22), tcp(80)], ..host(1200, 6000, 2) });
        let mut out = Recent::default();
        out.add(3, 4000);
        model.wire.hosts.insert(client, Host { out, ..host(1000, 2_000_000, 1) });
        let names = vec!["www.example.com".to_owned()];
        model
            .wire
            .hosts
            .insert(server, Host { ports: vec![tcp(443)], names: names.clone(), ..host(2_000_000, 1000, 1) });
        let ends = (std::net::SocketAddr::new(client, 50_000), std::net::SocketAddr::new(server, 443), true);
        let counted = Conversation {
            bytes: [1000, 2_000_000],
            protocol: "tls",
            name: Some(names[0].clone()),
            ..Conversation::default()
        };
        model.wire.conversations.insert(ends, counted);
        let name = Name { count: 1, last_ns: 3722 * SECOND, clients: vec![(client, 1)], ..Name::default() };
        model.wire.names.insert((1, names[0].clone()), name);
        let alert = Alert::Vertical { source: scanner, destination: target, count: 21, time_ns: 3700 * SECOND };
        model.scan(&found(None, alert));
        let alert = Alert::Horizontal { source: scanner, port: 53, count: 21, time_ns: 3710 * SECOND };
        model.scan(&found(Some(Probe::Udp), alert));
        model
    }

    /// A scan that has just been found, two seconds after its first failure.
    pub(super) fn found(probe: Option<Probe>, scan: Alert) -> ScanEvent {
        let (first_ns, distinct) = (scan.time_ns().saturating_sub(2 * SECOND), scan.count());
        ScanEvent { probe, scan, first_ns, distinct, tunnel: None, state: ScanState::Found }
    }

    /// That scan, over at this time, with so many failures, of which so many are of different ports.
    fn over(event: &ScanEvent, last_s: u64, failures: u64, distinct: u64) -> ScanEvent {
        let mut scan = event.scan.clone();
        let (Alert::Vertical { count, .. } | Alert::Horizontal { count, .. } | Alert::Block { count, .. }) = &mut scan;
        *count = failures;
        ScanEvent { scan, distinct, state: ScanState::Ended { last_ns: last_s * SECOND }, ..event.clone() }
    }

    pub(super) fn drawn(width: u16, height: u16, model: &Model, view: &mut View) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        draw(area, &mut buffer, model, view);
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_screen_of_a_small_terminal() {
        let expected = "\
corelane top eth0                                1970-01-01 01:02:03 UTC, 62 min
  4.0k packets/s                                                            ▁ ▁█
     0 dropped/s
in all 4,101 packets, 2.1MB, 16M bit/s, none dropped       columns: the last 4 s
1 Alerts 2 by latest ───────────────────────────────────────────────────────────
from UTC who scans what: counts are of failures, open is what answered
01:01:48 10.0.0.9 scans UDP port 53 of 21+ hosts
01:01:38 10.0.0.9 scans 21+ TCP ports of 10.0.0.5, open: 22, 80



2 Talkers 4 by rate, without failed attempts ───────────────────────────────────
host            out bit/s in bit/s bytes conv. answers at, names
2001:db8::7          8.0k        0  2.0M     1
2001:db8::80            0        0  2.0M     1 443, www.example.com
10.0.0.5                0        0  7.2k     2 22, 80
10.0.0.9                0        0  7.2k     2
3 Conversations 1 by rate, without failed attempts ─────────────────────────────
client → server                                           protocol   bit/s bytes
[2001:db8::7]:50000 → [2001:db8::80]:443 www.example.com  tls            0  2.0M
4 Names 1 by latest ────────────────────────────────────────────────────────────
last UTC      name                                      count clients
01:02:02 tls  www.example.com                               1 2001:db8::7
Tab panel  ↑↓ select  Enter host  s sort  / filter  Space pause  q quit  ? help";
        assert_eq!(drawn(80, 24, &model(), &mut View::new(false)).join("\n"), expected);
    }

    #[test]
    fn every_size_has_what_fits() {
        let model = model();
        for (width, height) in [(0, 0), (1, 1), (39, 9), (40, 10), (80, 24), (129, 60), (130, 30), (500, 200)] {
            for &focus in Panel::OF_WIRE {
                let mut view = View { focus, ..View::new(false) };
                let lines = drawn(width, height, &model, &mut view);
                let panels =
                    lines.iter().flat_map(|line| Panel::OF_WIRE.iter().filter(|panel| line.contains(panel.title())));
                let is_large = width >= LEAST.0 && height >= LEAST.1;
                assert_eq!(panels.count(), if is_large { 4 } else { 0 }, "{width} x {height}: {lines:#?}");
                for page in [&mut view.helps, &mut view.is_paused] {
                    *page = true;
                }
                drawn(width, height, &model, &mut view);
            }
        }
        let wide = drawn(150, 40, &model, &mut View::new(false));
        assert!(wide.iter().any(|line| line.contains("Talkers") && line.contains("Alerts")), "{wide:#?}");
    }

    #[test]
    fn details_say_all_that_is_known_of_a_host() {
        let model = model();
        let of = |address: &str| {
            let mut view = View { host: Some(address.parse().unwrap()), ..View::new(false) };
            drawn(100, 60, &model, &mut view).join("\n")
        };
        let scanner = of("10.0.0.9");
        for part in
            ["scans 21+ TCP ports of 10.0.0.5, open: 22, 80", "UDP port 53 of", "Reached\n10.0.0.5:22\n10.0.0.5:80"]
        {
            assert!(scanner.contains(part), "{part}: {scanner}");
        }
        let target = of("10.0.0.5");
        assert!(target.contains("answers at    22, 80") && target.contains("ports of 10.0.0.5"), "{target}");
        let client = of("2001:db8::7");
        for part in ["Asked for\ntls  www.example.com, 1×", "[2001:db8::80]:443 tcp tls 2.0MB www.example.com"] {
            assert!(client.contains(part), "{part}: {client}");
        }
        assert!(of("192.0.2.1").contains("no conversation of this host is known"));
    }

    /// A host has its own share of a name that others ask for too, and what does not fit is counted.
    #[test]
    fn details_count_what_the_host_itself_asked_for() {
        let [client, other]: [IpAddr; 2] = ["10.0.0.6", "10.0.0.4"].map(|text| text.parse().unwrap());
        let mut model = model();
        model.wire.hosts.insert(client, Host::default());
        model.wire.hosts.insert(other, Host::default());
        let both = Name { count: 3, clients: vec![(client, 1), (other, 2)], ..Name::default() };
        model.wire.names.insert((0, "www.example.net".to_owned()), both.clone());
        model.wire.names.insert((0, "busy.example.net".to_owned()), Name { clients_more: true, ..both });
        let answered = Name { answers: 3, clients: vec![(client, 0)], ..Name::default() };
        model.wire.names.insert((2, "late.example.net".to_owned()), answered);
        let of = |model: &Model, address| -> Vec<String> {
            let lines = details_of(model, &View::new(false), address, 80).into_iter().map(|(line, _)| line);
            lines.skip_while(|line| line != "Asked for").skip(1).take_while(|line| !line.is_empty()).collect()
        };
        assert_eq!(of(&model, other), ["http busy.example.net, 2+×", "http www.example.net, 2×"]);
        let of_client = ["http busy.example.net, 1+×", "http www.example.net, 1×", "dns  late.example.net, answered"];
        assert_eq!(of(&model, client), of_client);
        // The panel counts questions, too.
        let mut view = View { focus: Panel::Names, filter: Filter::of("late"), ..View::new(false) };
        let lines = drawn(80, 24, &model, &mut view);
        let line = lines.iter().find(|line| line.contains("late.example.net")).unwrap();
        assert!(line.ends_with("0 10.0.0.6"), "{line}");
        for number in 0..ASKED {
            let own = Name { count: 1, clients: vec![(client, 1)], ..Name::default() };
            model.wire.names.insert((2, format!("{number}.example.org")), own);
        }
        let lines = of(&model, client);
        assert_eq!((lines.len(), &*lines[ASKED]), (ASKED + 1, "and 3 more"));
        let mut view = View { host: Some(client), ..View::new(false) };
        let last = |view: &mut View| drawn(80, 24, &model, view)[22].clone();
        let whole = details_of(&model, &view, client, 80).len();
        assert_eq!(last(&mut view), format!("↓ {} more lines", whole - 18), "a line of 19 says it");
        view.scrolled = u16::MAX;
        assert_eq!(last(&mut view), "and 3 more");
    }

    #[test]
    fn the_filter_finds_what_a_scan_found_open_and_the_words_of_its_row() {
        let model = model();
        let alerts = |filter: &str| {
            let view = View { filter: Filter::of(filter), ..View::new(false) };
            view.rows(Panel::Alerts, &model).len()
        };
        let found = ["port:22", "port:53", "port:23", "scans", "hosts", "OPEN", "closed", "ip:10.0.0.5"].map(alerts);
        assert_eq!(found, [1, 1, 0, 2, 1, 1, 0, 1]);
    }

    #[test]
    fn a_scan_says_how_many_failed_and_in_what_time() {
        let mut model = model();
        let [horizontal, vertical] = [0, 1].map(|place| model.scans[place].clone());
        let xmas = ScanEvent { probe: Some(Probe::Xmas), ..vertical.clone() };
        model.scan(&xmas);
        // 400 more failures were of ports that had failed before, or of others.
        model.scan(&over(&vertical, 3820, 1400, 1000));
        model.scan(&over(&horizontal, 3720, 231, 231));
        let texts: Vec<_> = model.scans.iter().map(|event| story(event, &model).0).collect();
        let expected = [
            "10.0.0.9 scans 21+ TCP ports of 10.0.0.5 by Xmas",
            "10.0.0.9 scans UDP port 53 of 231 hosts; until\u{a0}01:02:00",
            "10.0.0.9 scans 1,000+ TCP ports of 10.0.0.5, open: 22, 80; until\u{a0}01:03:40",
        ];
        assert_eq!(texts, expected);
        let mut view = View::new(false);
        view.orders[Panel::Alerts as usize] = Some(1);
        let largest = view.rows(Panel::Alerts, &model).swap_remove(0);
        assert_eq!(largest, subject_of(&vertical));
    }

    /// A scanner that found much open, and others.
    fn much_open() -> Model {
        let mut model = model();
        let [scanner, target]: [IpAddr; 2] = ["10.0.0.9", "10.0.0.5"].map(|text| text.parse().unwrap());
        let reached = (1020..1036).map(|number| Service { host: target, port: tcp(number) }).collect();
        model.wire.hosts.get_mut(&scanner).unwrap().reached = reached;
        model
    }

    #[test]
    fn what_was_open_goes_on_in_lines_that_are_free() {
        let mut model = much_open();
        let alerts = |model: &Model, view: &mut View, height| -> Vec<String> {
            let lines = drawn(80, height, model, view);
            let behind = lines.into_iter().skip_while(|line| !line.starts_with("from UTC")).skip(1);
            behind.take_while(|line| !line.is_empty() && !line.starts_with("2 Talkers")).collect()
        };
        let all = [
            "01:01:48 10.0.0.9 scans UDP port 53 of 21+ hosts",
            "01:01:38 10.0.0.9 scans 21+ TCP ports of 10.0.0.5, open: 1020, 1021, 1022, 1023,",
            "           1024, 1025, 1026, 1027, 1028, 1029, 1030, 1031, 1032, 1033, 1034,",
            "           1035",
        ];
        assert_eq!(alerts(&model, &mut View::new(false), 24), all);
        // Where there are more scans than lines, that of the selected one alone.
        for port in 1..=60 {
            let source = [10, 0, 0, 9].into();
            model.scan(&found(Some(Probe::Udp), Alert::Horizontal { source, port, count: 21, time_ns: 3720 * SECOND }));
        }
        let lines = alerts(&model, &mut View::new(false), 24);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.contains(" scans UDP ")), "{lines:#?}");
        let mut view = View::new(false);
        view.go(-1, &model);
        let lines = alerts(&model, &mut view, 24);
        assert_eq!(lines[lines.len() - 3..], all[1..]);
        assert!(lines.len() > 4, "{lines:#?}");
        // A window as low as may be has a line for it.
        assert!(drawn(40, 10, &model, &mut view).iter().any(|line| line.starts_with("01:01:38 10.0.0.9 scans 21+")));
        view.go(-1, &model);
        assert!(!alerts(&model, &mut view, 24).concat().contains("1035"));
    }

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrap("one, two, three", 80, 9), ["one, two, three"]);
        assert_eq!(wrap("one, two, three", 9, 9), ["one, two,", "  three"]);
        assert_eq!(wrap("one, two, three", 8, 2), ["one,", "  two, three"]);
        assert_eq!(wrap("one, two, three", 1, 9), ["one,", "  two,", "  three"]);
        assert_eq!(wrap("one, two", 1, 0), ["one, two"]);
    }

    /// At its end a capture has no rates.
    #[test]
    fn the_end_is_in_the_order_of_totals_and_has_no_so_far() {
        let mut model = model();
        model.wire.names.clear();
        let title = |model: &Model, view: &mut View| drawn(80, 24, model, view).concat();
        let mut view = View { focus: Panel::Hosts, ..View::new(false) };
        let text = title(&model, &mut view);
        assert!(text.contains("2 Talkers 4 by rate") && text.contains("none so far"), "{text}");
        model.set(State::Over);
        let text = title(&model, &mut view);
        assert!(text.contains("2 Talkers 4 by bytes") && text.contains("3 Conversations 1 by bytes"), "{text}");
        assert!(text.contains("4 Names 0 by latest") && text.contains("none ") && !text.contains("so far"), "{text}");
        // The next one, and round to that by rate: which stays, as it was chosen.
        let orders = [0; 4].map(|_| {
            view.reorder(&model);
            Panel::Hosts.orders()[view.order(Panel::Hosts, &model)]
        });
        assert_eq!(orders, ["conversations", "address", "rate", "bytes"]);
    }

    #[test]
    fn a_filter_says_what_it_leaves_alone_and_that_a_key_is_none() {
        let model = model();
        let text = |filter: &str, writes: Option<&str>| {
            let writes = writes.map(str::to_owned);
            let mut view = View { filter: Filter::of(filter), writes, ..View::new(false) };
            drawn(80, 24, &model, &mut view)
        };
        assert!(text("", None)[3].starts_with("in all 4,101 packets"));
        assert!(text("port:1", None)[3].starts_with("in all, unfiltered: 4,101 packets"));
        let no_key = "foo: is no key; there are ip: port: sni: proto:";
        assert!(text("foo:bar", None)[23].starts_with(&format!("/foo:bar  {no_key}  ")));
        assert_eq!(text("foo:bar", Some("foo:bar"))[23], format!("/foo:bar  {no_key}"));
        assert!(!text("port:1", None)[23].contains("is no key"));
        assert_eq!(text("port:1", Some("port:1"))[23], "/port:1  ip: port: sni: proto: or any word; Enter, Esc");
    }

    /// The help has a line for each of its words in a small terminal.
    #[test]
    fn the_help_fits_a_small_terminal() {
        for own in [&OF_WIRE[..], &site::HELP] {
            assert!(1 + KEYS.len() + own.len() <= 22);
            assert!(KEYS.iter().chain(own).all(|(_, text)| text.chars().count() <= 80 - 16), "{own:?}");
        }
    }

    #[test]
    fn lines_without_rows_go_to_the_panel_that_needs_them() {
        let mut heights = [5, 10, 5, 5];
        share(&mut heights, &[11, 3, 4000, 3], Some(0));
        assert_eq!(heights, [11, 3, 8, 3]);
        share(&mut heights, &[2, 2, 2, 2], None);
        assert_eq!(heights, [11, 3, 8, 3], "none needs more");
        share(&mut heights, &[1, 30, 30, 30], None);
        assert_eq!(heights, [1, 8, 8, 8]);
        // Ten alerts are seen, as there are few talkers.
        let mut model = model();
        for port in 1..=8 {
            let scan = Alert::Horizontal { source: [10, 0, 0, 9].into(), port, count: 21, time_ns: 0 };
            model.scan(&found(None, scan));
        }
        let lines = drawn(80, 30, &model, &mut View::new(false));
        assert_eq!(lines.iter().filter(|line| line.contains("10.0.0.9 scans ")).count(), 10, "{lines:#?}");
        assert_eq!(lines.len(), 30);
        assert!(lines.iter().any(|line| line.contains("4 Names 1")), "{lines:#?}");
    }

    #[test]
    fn the_selected_row_is_seen_and_stays_selected_where_rows_move() {
        let mut model = model();
        for number in 0..100_u8 {
            let host = Host { sent: 10_000 - u64::from(number), ..Host::default() };
            model.wire.hosts.insert(IpAddr::from([192, 0, 2, number]), host);
        }
        let mut view = View { focus: Panel::Hosts, ..View::new(false) };
        view.orders[Panel::Hosts as usize] = Some(1);
        view.go(0, &model);
        view.go(50, &model);
        let selected = view.selected[Panel::Hosts as usize].clone().unwrap();
        let Subject::Host(address) = selected else { panic!("{selected:?}") };
        assert!(drawn(80, 24, &model, &mut view).iter().any(|line| line.starts_with(&address.to_string())));
        model.wire.hosts.get_mut(&address).unwrap().sent = 1 << 40;
        view.go(0, &model);
        assert_eq!(view.selected[Panel::Hosts as usize], Some(Subject::Host(address)));
        view.go(isize::MAX, &model);
        assert_eq!(view.selected[Panel::Hosts as usize], view.rows(Panel::Hosts, &model).pop());
        view.go(isize::MIN, &model);
        assert_eq!(view.selected[Panel::Hosts as usize], Some(Subject::Host(address)));
        view.filter = Filter::of("ip:10.0.0.0/8");
        assert_eq!(view.rows(Panel::Hosts, &model).len(), 2);
        view.filter = Filter::of("nothing");
        view.go(1, &model);
        assert_eq!(view.selected[Panel::Hosts as usize], None);
    }

    #[test]
    fn a_row_that_is_not_seen_is_not_opened() {
        let model = model();
        let mut view = View { focus: Panel::Hosts, ..View::new(false) };
        view.go(isize::MAX, &model);
        let last = view.row(&model);
        view.filter = Filter::of("2001:db8::80");
        assert_eq!(view.row(&model), Some(Subject::Host("2001:db8::80".parse().unwrap())));
        view.filter = Filter::default();
        assert_eq!(view.row(&model), last, "it is selected still");
        assert_ne!(last, view.rows(Panel::Hosts, &model).into_iter().next());
        // Without a selection the keys begin at the ends that they are named by.
        for (by, place) in [(isize::MIN, 0), (isize::MAX, 3), (-1, 3), (1, 0)] {
            view.selected[Panel::Hosts as usize] = None;
            view.go(by, &model);
            assert_eq!(view.row(&model).as_ref(), view.rows(Panel::Hosts, &model).get(place), "{by}");
        }
    }

    #[test]
    fn what_is_cut_does_not_look_whole() {
        let mut model = model();
        let scanner: IpAddr = "10.0.0.9".parse().unwrap();
        let host = model.wire.hosts.get_mut(&scanner).unwrap();
        host.reached = (1020..1080).map(|number| Service { host: [10, 0, 0, 5].into(), port: tcp(number) }).collect();
        host.reached_more = true;
        let long: IpAddr = "2001:db8:1111:2222:3333:4444:5555:6666".parse().unwrap();
        model.wire.hosts.insert(long, Host { sent: 1 << 40, ports: vec![tcp(1025)], ..Host::default() });
        let lines = drawn(80, 24, &model, &mut View { focus: Panel::Hosts, ..View::new(false) });
        assert!(lines.iter().any(|line| line.starts_with("           1035,") && line.ends_with('…')), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with(&long.to_string())), "{lines:#?}");
        assert!(
            details_of(&model, &View::new(false), scanner, 2000).iter().any(|(line, _)| line.contains("1079 and more"))
        );
    }

    #[test]
    fn orders_are_those_that_are_named() {
        let model = model();
        let mut view = View::new(false);
        let mut first = Vec::new();
        for order in 0..Panel::Hosts.orders().len() {
            view.orders[Panel::Hosts as usize] = Some(order);
            first.push(view.rows(Panel::Hosts, &model)[0].host(&model).unwrap().to_string());
        }
        assert_eq!(first, ["2001:db8::7", "2001:db8::7", "10.0.0.5", "10.0.0.5"]);
    }
}
