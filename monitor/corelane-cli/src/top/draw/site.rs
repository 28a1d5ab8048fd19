//! What the screen shows of many sensors: the right end of the first line, columns, and the panels Sensors and Sources.

use super::{BOLD, Column, FROM, Help, MORE, PLAIN, Subject, View, in_all, line, list, spark, totals};
use crate::top::filter::Filter;
use crate::top::model::{Model, Presence, Site, Source, State};
use crate::top::text::{clock, moment, short, span};
use corelane_monitor::sensors::SensorName;
use corelane_monitor::{STEP_NS, Timestamp, grouped};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::cmp::Reverse;
use std::net::IpAddr;

/// A sensor that is so far behind has not the time but the date up to which it has come.
const DAY_NS: u64 = 24 * 3600 * STEP_NS;

/// Keys and words of many sensors, behind those of every screen.
pub(super) const HELP: [Help; 12] = [
    ("", "any other word looks at all of a row, and at a source's sensors"),
    ("Space", "stops the screen; the sensors go on"),
    ("", ""),
    ("first line", "up to when all sensors have sent: alerts are known up to there"),
    FROM,
    MORE,
    ("columns", "a second of the sensors' time each, the latest at the right"),
    ("up to", "how far a sensor is by its own time; lag: behind the clock"),
    ("sent", "failed attempts and probes, and UDP ports that answered"),
    ("late, lost", "of those: came after their time was over; never came"),
    ("failed/s", "the mean of the last four seconds"),
    ("k, M, G", "thousands, millions, thousands of millions"),
];

/// How many sensors there are, and up to when all is over.
pub(super) fn header(model: &Model) -> String {
    let Some(site) = &model.site else { return String::new() };
    let mut said = match site.sensors.len() {
        0 if model.state == State::Opening => "opening".to_owned(),
        0 => "no sensors yet".to_owned(),
        1 => "1 sensor".to_owned(),
        many => format!("{} sensors", grouped(many as u64)),
    };
    let left_out = site.sensors.values().filter(|sensor| sensor.presence() == Presence::LeftOut).count();
    if left_out > 0 {
        said = format!("{said}, {} left out", grouped(left_out as u64));
    }
    match site.over_ns {
        0 => said,
        over_ns => format!("{said}, {} UTC", moment(over_ns)),
    }
}

/// Columns of failed attempts, and below them what is known of all sensors, or why nothing comes.
pub(super) fn columns(area: Rect, buffer: &mut Buffer, site: &Site, view: &View) {
    let upper = Rect { height: area.height.saturating_sub(1), ..area };
    let label = format!("{:>6} failed/s  ", short(site.rate()));
    let seconds = spark(upper, buffer, &label, BOLD, site.seconds());
    let line = Rect { y: area.bottom() - 1, height: 1, ..area };
    match &site.problem {
        Some(problem) => totals(line, buffer, problem, view.alarm(), 0, view),
        None => totals(line, buffer, &sums(site, view), view.dim(), seconds, view),
    }
}

fn sums(site: &Site, view: &View) -> String {
    let sent = site.sensors.values().map(|sensor| sensor.counts.reports).sum();
    let mut text = format!("{} {} sent", in_all(view), grouped(sent));
    if !site.is_caught_up {
        text.push_str(", reading what is there");
    }
    if site.waiting > 0 {
        text = format!("{text}, {} wait until their step is over", grouped(site.waiting));
    }
    if site.refused > 0 {
        text = format!("{text}, {} batches refused", grouped(site.refused));
    }
    text
}

pub(super) fn sensors(model: &Model, filter: &Filter, order: &str) -> Vec<Subject> {
    let Some(site) = &model.site else { return Vec::new() };
    let sensors = site.sensors.iter().filter(|(_, sensor)| filter.fits(|| sensor.subject()));
    let mut sensors: Vec<_> = sensors
        .map(|(name, sensor)| {
            // Those that never sent anything are furthest behind.
            let lag_ns = site.lag_ns(sensor).unwrap_or(u64::MAX);
            let weight = match order {
                "lag" => (Reverse(sensor.presence()), lag_ns),
                "rate" => (Reverse(Presence::LeftOut), sensor.rate()),
                "sent" => (Reverse(Presence::LeftOut), sensor.counts.reports),
                _ => (Reverse(Presence::LeftOut), 0),
            };
            (Reverse(weight), name)
        })
        .collect();
    sensors.sort_unstable();
    sensors.into_iter().map(|(_, name)| Subject::Sensor(name.clone())).collect()
}

pub(super) fn sources(model: &Model, filter: &Filter, order: &str) -> Vec<Subject> {
    let Some(site) = &model.site else { return Vec::new() };
    let sources = site.sources.iter().filter(|(address, source)| filter.fits(|| source.subject(**address)));
    let mut sources: Vec<_> = sources
        .map(|(address, source)| {
            let weight = match order {
                "rate" => (source.rate(site.now), source.failures),
                "failures" => (source.failures, 0),
                "latest" => (source.last_ns, source.failures),
                _ => (0, 0),
            };
            (Reverse(weight), *address)
        })
        .collect();
    sources.sort_unstable();
    sources.into_iter().map(|(_, address)| Subject::Source(address)).collect()
}

pub(super) fn sensor_columns(first: u16) -> Vec<Column> {
    vec![
        ("sensor", first.clamp(10, 24), false),
        ("state", 8, false),
        ("up to", 10, false),
        ("lag", 7, true),
        ("failed/s", 8, true),
        ("sent", 5, true),
        ("late", 5, true),
        ("lost", 5, true),
    ]
}

pub(super) fn source_columns(first: u16) -> Vec<Column> {
    vec![("source", first.max(15), false), ("failed/s", 8, true), ("failures", 8, true), ("seen by", 0, false)]
}

pub(super) fn sensor_cells(model: &Model, view: &View, name: &SensorName) -> Vec<(String, Style)> {
    let Some((site, sensor)) = model.site.as_ref().and_then(|site| Some((site, site.sensors.get(name)?))) else {
        return Vec::new();
    };
    let (presence, lag_ns) = (sensor.presence(), site.lag_ns(sensor));
    let style = match presence {
        Presence::LeftOut => view.alarm(),
        Presence::Present => PLAIN,
        Presence::Ended => view.dim(),
    };
    let state = if presence == Presence::Present && lag_ns.is_none() { "awaited" } else { presence.name() };
    let up_to = match lag_ns {
        None => "-".to_owned(),
        Some(DAY_NS..) => Timestamp::of(sensor.counts.begun_ns).date(),
        Some(_) => clock(sensor.counts.begun_ns),
    };
    let lag = match lag_ns {
        Some(lag_ns) if presence != Presence::Ended => span(lag_ns / STEP_NS),
        _ => "-".to_owned(),
    };
    let lost = match sensor.lost {
        (0, false) => "0".to_owned(),
        (0, true) => "some".to_owned(),
        (known, more) => format!("{}{}", short(known), if more { "+" } else { "" }),
    };
    let lost_style = if sensor.lost == (0, false) { PLAIN } else { view.found() };
    vec![
        (name.to_string(), style),
        (state.to_owned(), style),
        (up_to, PLAIN),
        (lag, PLAIN),
        (short(sensor.rate()), PLAIN),
        (short(sensor.counts.reports), PLAIN),
        (short(sensor.counts.late), PLAIN),
        (lost, lost_style),
    ]
}

pub(super) fn source_cells(model: &Model, address: IpAddr) -> Vec<(String, Style)> {
    let Some((site, source)) = model.site.as_ref().and_then(|site| Some((site, site.sources.get(&address)?))) else {
        return Vec::new();
    };
    [address.to_string(), short(source.rate(site.now)), short(source.failures), seen_by(source)]
        .map(|text| (text, PLAIN))
        .to_vec()
}

fn seen_by(source: &Source) -> String {
    let (sensors, more) = &source.sensors;
    format!("{}{}", list(sensors.iter().map(SensorName::to_string)), if *more { " and more" } else { "" })
}

/// All that is known of a source but its scans.
pub(super) fn details(site: &Site, view: &View, address: IpAddr) -> Vec<(String, Style)> {
    let Some(source) = site.sources.get(&address) else {
        return vec![("no failure of this host was reported since the start".to_owned(), view.dim())];
    };
    let rate = short(source.rate(site.now));
    vec![
        line("failures", &format!("{}, now {rate} a second", grouped(source.failures))),
        line("the latest", &format!("{} UTC", moment(source.last_ns))),
        line("seen by", &seen_by(source)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{drawn, found};
    use super::super::{Panel, View};
    use super::*;
    use crate::top::model::batches::{counts, made};
    use corelane_monitor::Alert;
    use corelane_monitor::sensors::{Batch, SensorCounts};

    /// A sensor that is ahead, one that is behind, one that is left out, one that never sent, and one that has ended.
    fn model() -> Model {
        let mut model = Model::of_sensors("nats://hub:4222".to_owned());
        model.set(State::Running);
        let site = model.site.as_mut().unwrap();
        site.is_caught_up = true;
        site.over_ns = 3700 * STEP_NS;
        site.waiting = 12;
        for (sensor, second, source, count) in
            [("north", 3719, 9, 40), ("north", 3720, 9, 8), ("south", 3700, 9, 4), ("south", 3699, 7, 20)]
        {
            let batch = made(sensor, second).batch([10, 0, 0, source], 0..count);
            let Batch { header, reports, .. } = Batch::decode(&batch, &(0..=255)).unwrap();
            site.reports(&header, &reports);
        }
        let out = SensorCounts { is_present: false, late: 7, ..counts("west", 3600, 1234) };
        let ended = SensorCounts { is_present: false, has_ended: true, ..counts("lab", 3000, 5) };
        site.come([counts("north", 3721, 123_456), counts("south", 3701, 24), out, counts("east", 0, 0), ended]);
        site.lost(&"west".parse().unwrap(), Some(5));
        site.lost(&"west".parse().unwrap(), None);
        let source = [10, 0, 0, 9].into();
        let scan = Alert::Vertical { source, destination: [10, 0, 0, 5].into(), count: 52, time_ns: 3699 * STEP_NS };
        model.scan(&found(None, scan));
        model
    }

    #[test]
    fn the_screen_of_many_sensors() {
        let expected = "\
corelane top nats://hub:4222      5 sensors, 1 left out, 1970-01-01 01:01:40 UTC
                                                                              █
    18 failed/s                                           █▂                  █▄
in all 124,719 sent, 12 wait until their step is over     columns: the last 22 s
1 Alerts 1 by latest ───────────────────────────────────────────────────────────
from UTC who scans what: counts are of failures, open is what answered
01:01:37 10.0.0.9 scans 52+ TCP ports of 10.0.0.5

2 Sensors 5 by lag ─────────────────────────────────────────────────────────────
sensor     state    up to          lag failed/s  sent  late  lost
west       left out 01:00:00     2 min        0  1.2k     7    5+
east       awaited  -                -        0     0     0     0
south      present  01:01:41      20 s        6    24     0     0
north      present  01:02:01       0 s       12  123k     0     0
lab        ended    00:50:00         -        0     5     0     0




3 Sources 2 by rate ────────────────────────────────────────────────────────────
source          failed/s failures seen by
10.0.0.9              52       52 north, south
10.0.0.7              20       20 south
Tab panel  ↑↓ select  Enter host  s sort  / filter  Space pause  q quit  ? help";
        let model = model();
        assert_eq!(drawn(80, 24, &model, &mut View::of(&model, false)).join("\n"), expected);
    }

    #[test]
    fn a_wide_screen_has_sensors_and_sources_beside_alerts() {
        let model = model();
        let lines = drawn(140, 40, &model, &mut View::of(&model, false));
        assert!(lines.iter().any(|line| line.contains("2 Sensors 5") && line.contains("1 Alerts 1")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("3 Sources 2")), "{lines:#?}");
        for (width, height) in [(0, 0), (39, 9), (40, 10), (80, 12), (500, 200)] {
            let mut view = View::of(&model, true);
            for page in 0..3 {
                (view.helps, view.host) = (page == 1, (page == 2).then(|| [10, 0, 0, 9].into()));
                drawn(width, height, &model, &mut view);
            }
        }
    }

    #[test]
    fn why_nothing_comes_is_said_instead_of_sums() {
        let mut model = Model::of_sensors("nats://hub:4222".to_owned());
        model.site.as_mut().unwrap().problem = Some("nats://hub:4222 is not connected: refused".to_owned());
        let lines = drawn(80, 24, &model, &mut View::of(&model, false));
        assert!(lines[0].ends_with("opening"), "{lines:#?}");
        assert!(lines.iter().any(|line| line == "nats://hub:4222 is not connected: refused"), "{lines:#?}");
    }

    #[test]
    fn what_became_of_a_sensor_is_said_for_a_while() {
        let mut model = model();
        model.site.as_mut().unwrap().now = 100;
        model.message("sensor west: left out, as it is silent");
        let last = |model: &Model| drawn(80, 24, model, &mut View::of(model, false))[23].clone();
        assert!(last(&model).starts_with("sensor west: left out"), "{}", last(&model));
        model.site.as_mut().unwrap().now = 160;
        assert!(last(&model).starts_with("Tab panel"), "{}", last(&model));
    }

    #[test]
    fn rows_are_in_the_orders_that_are_named_and_the_filter_knows_names_and_addresses() {
        let model = model();
        let mut view = View::of(&model, false);
        let mut first = Vec::new();
        for panel in [Panel::Sensors, Panel::Sources] {
            for order in 0..panel.orders().len() {
                view.orders[panel as usize] = Some(order);
                first.push(match &view.rows(panel, &model)[0] {
                    Subject::Sensor(name) => name.to_string(),
                    Subject::Source(address) => address.to_string(),
                    other => panic!("{other:?}"),
                });
            }
        }
        assert_eq!(first, ["west", "north", "north", "east", "10.0.0.9", "10.0.0.9", "10.0.0.9", "10.0.0.7"]);
        let rows = |filter: &str| {
            let view = View { filter: Filter::of(filter), ..View::of(&model, false) };
            view.panels.iter().map(|&panel| view.rows(panel, &model).len()).collect::<Vec<_>>()
        };
        assert_eq!([rows("north"), rows("left"), rows("ip:10.0.0.7")], [[0, 1, 1], [0, 1, 0], [0, 0, 1]]);
    }

    #[test]
    fn details_of_a_source_name_the_sensors_that_saw_it() {
        let model = model();
        let mut view = View { host: Some([10, 0, 0, 9].into()), ..View::of(&model, false) };
        let lines = drawn(80, 24, &model, &mut view).join("\n");
        for part in ["failures      52, now", "seen by       north, south", "10.0.0.9 scans 52+ TCP ports of 10.0.0.5"]
        {
            assert!(lines.contains(part), "{part}: {lines}");
        }
    }
}
