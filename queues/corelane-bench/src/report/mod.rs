//! The report: one HTML page of all results in a directory. It has no scripts and loads nothing from elsewhere.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `html.rs`, `plot.rs`, `scale.rs` | the page; plots as SVG; axes |
//! | `markdown.rs` | tables for those that read the repository |

mod html;
mod markdown;
mod plot;
mod scale;

use crate::machine::Machine;
use crate::published::{Number, Ours, Published};
use crate::record::{FORMAT, PanelRecord, Record};
use crate::stats::short;
use crate::table::cpu_per_wall;
use html::{STYLE, escape};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the page of this directory's results into the directory. Returns its path and how many results it shows.
pub(crate) fn write(directory: &Path) -> Result<(PathBuf, usize), String> {
    let records = read(directory)?;
    let page = directory.join("report.html");
    save(&page, &render(&records))?;
    Ok((page, records.len()))
}

/// The name of the file of tables.
const SUMMARY: &str = "summary.md";

/// Writes the tables of this directory's results into the directory. Returns their path and how many results they show.
pub(crate) fn write_markdown(directory: &Path) -> Result<(PathBuf, usize), String> {
    let records = read(directory)?;
    let page = directory.join(SUMMARY);
    save(&page, &markdown::render(&records))?;
    Ok((page, records.len()))
}

/// Makes the tables of a page of prose anew, of results in this directory's directories.
pub(crate) fn write_page(directory: &Path, page: &Path) -> Result<(), String> {
    let text = fs::read_to_string(page).map_err(|error| format!("{}: cannot be read: {error}", page.display()))?;
    save(page, &markdown::fill(&text, directory)?)
}

/// Writes one plot of this directory's results as an SVG file that needs no page. `name` is an experiment and one of
/// its panels, such as `peers/one.l3`.
pub(crate) fn write_plot(directory: &Path, name: &str, file: &Path) -> Result<(), String> {
    let records = read(directory)?;
    let mut known = Vec::new();
    for record in latest(&records) {
        for panel in record.panels.iter().filter(|panel| !panel.series.is_empty()) {
            let of_it = format!("{}/{}", record.experiment, panel.id);
            if of_it == name {
                return save(file, &plot::alone(panel));
            }
            known.push(of_it);
        }
    }
    Err(format!("no plot is called '{name}'; choose one of {}", known.join(", ")))
}

fn save(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| crate::unwritable(file, &error))
}

/// Reads every record of every JSON file in the directory.
fn read(directory: &Path) -> Result<Vec<Record>, String> {
    let problem = |path: &Path, what: &str| format!("{}: {what}", path.display());
    let unreadable =
        |path: &Path, error: std::io::Error| problem(path, &format!("cannot be read: {error}; check its name"));
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| unreadable(directory, error))? {
        let path = entry.map_err(|error| unreadable(directory, error))?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    let mut records = Vec::new();
    for path in files {
        let bytes = fs::read(&path).map_err(|error| unreadable(&path, error))?;
        let of_file: Vec<Record> = serde_json::from_slice(&bytes)
            .map_err(|error| problem(&path, &format!("was not written by `run --json`: {error}; move it away")))?;
        if let Some(record) = of_file.iter().find(|record| record.format != FORMAT) {
            let what = format!("has format {}, but this program reads {FORMAT}; measure again", record.format);
            return Err(problem(&path, &what));
        }
        records.extend(of_file);
    }
    if records.is_empty() {
        return Err(problem(directory, "there are no results in it; write some by `run --json`"));
    }
    Ok(records)
}

/// Keeps the last of several runs of an experiment on one machine, in the order of the experiments.
fn latest(records: &[Record]) -> Vec<&Record> {
    let mut latest: Vec<&Record> = Vec::new();
    for experiment in crate::experiments::ALL {
        let mut of_it: Vec<&Record> = records.iter().filter(|record| record.experiment == experiment.name).collect();
        of_it.sort_by_key(|record| std::cmp::Reverse(record.started));
        let mut machines: Vec<&str> = Vec::new();
        for record in of_it {
            if !machines.contains(&record.machine.cpu.as_str()) {
                machines.push(&record.machine.cpu);
                latest.push(record);
            }
        }
    }
    // Results of experiments that this version does not know are shown as well.
    let unknown = |record: &&Record| crate::experiments::ALL.iter().all(|known| known.name != record.experiment);
    latest.extend(records.iter().filter(unknown));
    latest
}

/// Makes the page. Of several runs of an experiment on one machine it shows the last, and tells how well they agree.
fn render(records: &[Record]) -> String {
    let published = Published::load();
    let latest = latest(records);
    let mut out = String::new();
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>corelane, \
         measured</title><style>{STYLE}</style></head><body>\n<h1>corelane, measured</h1>\n<p class=\"soft\">The \
         papers' evaluations of queues between cores, repeated beside the crates people use today. Every contender \
         runs in the same process, in an order that rotates from round to round, with its threads pinned where the \
         system allows; dots are medians, bars go from the least to the most. Dashed lines are designs exactly as \
         their papers print them, dotted ones what the bare machine can do.</p>\n"
    );
    if records.iter().any(|record| record.quick) {
        out += "<p class=\"warn\">There are quick runs among these, which only see that everything runs: their figures \
                mean nothing.</p>\n";
    }
    machines(&mut out, &latest);
    out += "<nav><ul>\n";
    for (i, record) in latest.iter().enumerate() {
        let _ = writeln!(
            out,
            "<li><a href=\"#e{i}\">{}</a> <span class=\"soft\">{}</span></li>",
            escape(&record.experiment),
            escape(&record.title)
        );
    }
    out += "<li><a href=\"#published\">every number the papers print</a></li></ul></nav>\n";
    for (i, record) in latest.iter().enumerate() {
        experiment(&mut out, i, record, records, &published);
    }
    every_number(&mut out, &published);
    out += "</body></html>\n";
    out
}

/// The experiments measured at one commit.
type Commit<'a> = (&'a str, Vec<&'a str>);

/// The facts of each machine, once, and the experiments measured there.
fn machines(out: &mut String, records: &[&Record]) {
    let mut seen: Vec<(&Machine, Vec<Commit>)> = Vec::new();
    for record in records {
        // Each run measures the counter's rate anew, so it is printed to 10 MHz.
        let rate = |machine: &Machine| (machine.counter_hz / 1e7).round();
        let facts = |machine: &Machine| Machine { commit: String::new(), counter_hz: rate(machine), ..machine.clone() };
        let same = |machine: &Machine| facts(machine) == facts(&record.machine);
        let at = seen.iter().position(|(machine, _)| same(machine)).unwrap_or_else(|| {
            seen.push((&record.machine, Vec::new()));
            seen.len() - 1
        });
        let commits = &mut seen[at].1;
        match commits.iter_mut().find(|(commit, _)| *commit == record.machine.commit) {
            Some((_, experiments)) => experiments.push(&record.experiment),
            None => commits.push((&record.machine.commit, vec![&record.experiment])),
        }
    }
    for (machine, commits) in seen {
        out.push_str("<table>\n");
        let mut row = |name: &str, value: &str| {
            let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", escape(value));
        };
        row("processor", &machine.cpu);
        let kind = if machine.virtual_machine { ", of a virtual machine that may move them" } else { "" };
        row("CPUs used", &format!("{}{kind}", machine.cpus.len()));
        for place in &machine.places {
            let [a, b] = place.cpus;
            row("", &format!("{} and {}: {}", a.0, b.0, place.near.label()));
        }
        let caches: Vec<_> = machine
            .caches
            .iter()
            .filter(|cache| cache.kind != "Instruction")
            .map(|cache| format!("L{} {} (CPUs {})", cache.level, cache.size, cache.cpus))
            .collect();
        row("caches", &caches.join(", "));
        row("system", &format!("{} {}, governor: {}", machine.system, machine.kernel, machine.governor));
        row("threads", if machine.pinned { "pinned" } else { "not pinned: the system does not let us" });
        let rate = machine.counter_hz / 1e9;
        let constant = if machine.counter_constant { "constant" } else { "not known to be constant" };
        row("a cycle", &format!("of the counter: {rate:.2} GHz, {constant}"));
        row("hardware counters", machine.counters.as_ref().map_or_else(String::as_str, |()| "yes"));
        row("built by", &format!("{}, {}", machine.compiler, machine.build));
        for (i, (commit, experiments)) in commits.iter().enumerate() {
            row(if i == 0 { "commit" } else { "" }, &format!("{commit}: {}", experiments.join(", ")));
        }
        out.push_str("</table>\n");
    }
}

fn experiment(out: &mut String, i: usize, record: &Record, all: &[Record], published: &Published) {
    let _ = write!(
        out,
        "<h2 id=\"e{i}\">{}: {}</h2>\n<p class=\"soft\">Repeats {}. {} rounds, about {} ms a sample, {}, {:.0} s in \
         all.</p>\n<p>{}</p>\n",
        escape(&record.experiment),
        escape(&record.title),
        escape(&record.repeats),
        record.rounds,
        short(record.sample_seconds * 1e3),
        date(record.started),
        record.seconds,
        escape(&record.about)
    );
    for note in &record.notes {
        let _ = writeln!(out, "<p class=\"warn\">{}</p>", escape(note));
    }
    out.push_str("<details><summary>Parameters</summary><div class=\"scroll\"><table>\n");
    out.push_str("<tr><th></th><th>here</th><th>in the paper</th></tr>\n");
    for parameter in &record.parameters {
        let paper = parameter.paper.as_deref().map_or("<i>ours</i>".to_owned(), escape);
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{paper}</td></tr>",
            escape(&parameter.name),
            escape(&parameter.here)
        );
    }
    out.push_str("</table></div></details>\n");
    for panel in &record.panels {
        figure(out, panel);
    }
    beside(out, record, published);
    agreement(out, record, all);
}

fn figure(out: &mut String, panel: &PanelRecord) {
    let _ = write!(out, "<h3>{}</h3>\n<figure>{}", escape(&panel.title), plot::panel(panel));
    if !panel.left_out.is_empty() {
        let reasons: Vec<_> =
            panel.left_out.iter().map(|left_out| format!("{}: {}", left_out.name, left_out.reason)).collect();
        let _ = write!(out, "<figcaption>Not shown: {}.</figcaption>", escape(&reasons.join("; ")));
    }
    out.push_str("</figure>\n");
    let _ = write!(
        out,
        "<details><summary>Figures</summary><div class=\"scroll\"><table>\n<tr><th></th>{}<th class=\"n\">{}</th><th \
         class=\"n\">least</th><th class=\"n\">most</th><th class=\"n\">samples</th><th class=\"n\">items a \
         sample</th><th class=\"n\">CPUs busy</th><th class=\"n\">full, % of items</th><th class=\"n\">empty, % of \
         items</th></tr>\n",
        panel.x.as_ref().map_or(String::new(), |axis| format!("<th class=\"n\">{}</th>", escape(&axis.label))),
        escape(&panel.y.label)
    );
    for x in panel.xs() {
        for (series, point) in panel.ranked(x) {
            let _ = write!(out, "<tr><td>{}</td>", escape(&series.name));
            if panel.x.is_some() {
                let _ = write!(out, "<td class=\"n\">{x}</td>");
            }
            match (point.summary(), &point.stopped) {
                (Some(summary), None) => {
                    let items: f64 = point.samples.iter().map(|sample| sample.items as f64).sum();
                    let percent = |tries: u64| short(tries as f64 / items * 100.0);
                    let cells = [
                        short(summary.median),
                        short(summary.least),
                        short(summary.most),
                        point.samples.len().to_string(),
                        short(items / point.samples.len() as f64),
                        short(cpu_per_wall(point)),
                        percent(point.samples.iter().map(|sample| sample.full).sum()),
                        percent(point.samples.iter().map(|sample| sample.empty).sum()),
                    ];
                    for cell in cells {
                        let _ = write!(out, "<td class=\"n\">{cell}</td>");
                    }
                }
                (_, stopped) => {
                    let _ = write!(
                        out,
                        "<td colspan=\"8\" class=\"warn\">{}</td>",
                        escape(stopped.as_deref().unwrap_or("no samples"))
                    );
                }
            }
            out.push_str("</tr>\n");
        }
    }
    out.push_str("</table></div></details>\n");
}

/// The papers' numbers beside ours.
fn beside(out: &mut String, record: &Record, published: &Published) {
    let all =
        published.numbers.iter().flat_map(|number| number.repeated().map(move |(name, ours)| (number, name, ours)));
    let numbers: Vec<(&Number, Option<&Ours>)> =
        all.filter(|(_, name, _)| *name == record.experiment).map(|(number, _, ours)| (number, ours)).collect();
    if numbers.is_empty() {
        return;
    }
    out.push_str("<h3>Published, and here</h3>\n");
    let mut papers: Vec<&str> = numbers.iter().map(|(number, _)| number.paper.as_str()).collect();
    papers.dedup();
    for name in papers {
        let paper = &published.papers[name];
        let _ = writeln!(out, "<p class=\"soft\">{}: {}</p>", escape(&paper.title), escape(&paper.setup));
    }
    out.push_str(
        "<div class=\"scroll\"><table>\n<tr><th></th><th class=\"n\">published</th><th class=\"n\">here</th><th>place</th></tr>\n",
    );
    for (number, ours) in numbers {
        let ours = match ours {
            None => "see the plot".to_owned(),
            Some(ours) => match ours.find(record) {
                Ok(value) => format!("<b>{}</b>", escape(&value)),
                Err(reason) => format!("<span class=\"soft\">{}</span>", escape(&reason)),
            },
        };
        let machine = number.machine.as_ref().map_or(String::new(), |machine| format!(", {machine}"));
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{ours}</td><td class=\"soft\">{}</td></tr>",
            escape(&number.says),
            escape(&number.printed),
            escape(&format!("{}{machine}", number.place))
        );
    }
    out.push_str("</table></div>\n");
}

/// How well an earlier run on the same machine agrees: whether contenders that differ by more than 20 % have the same
/// order.
fn agreement(out: &mut String, record: &Record, all: &[Record]) {
    let same = |other: &&Record| {
        other.experiment == record.experiment
            && other.machine.cpu == record.machine.cpu
            && other.started != record.started
            && !other.quick
            && !record.quick
    };
    for other in all.iter().filter(same) {
        let (agree, differ) = compare(record, other);
        if agree + differ.len() == 0 {
            continue;
        }
        let _ = write!(
            out,
            "<details><summary>Beside the run of {}: of {} pairs that differ by more than 20 %, {} have the same order \
             there</summary><ul>",
            date(other.started),
            agree + differ.len(),
            agree
        );
        for difference in differ {
            let _ = write!(out, "<li>{}</li>", escape(&difference));
        }
        out.push_str("</ul></details>\n");
    }
}

/// Compares the pairs of contenders that differ by more than 20 % in one run with another run. Returns how many have
/// the same order there, and which pairs have not.
fn compare(record: &Record, other: &Record) -> (usize, Vec<String>) {
    let (mut agree, mut differ) = (0, Vec::new());
    for panel in &record.panels {
        let Some(other) = other.panels.iter().find(|other| other.id == panel.id) else { continue };
        for x in panel.xs() {
            let median = |panel: &PanelRecord, name: &str| Some(panel.point(name, x)?.summary()?.median);
            for (i, a) in panel.series.iter().enumerate() {
                for b in &panel.series[i + 1..] {
                    let (Some(a1), Some(b1), Some(a2), Some(b2)) = (
                        median(panel, &a.name),
                        median(panel, &b.name),
                        median(other, &a.name),
                        median(other, &b.name),
                    ) else {
                        continue;
                    };
                    if a1.max(b1) <= 1.2 * a1.min(b1) {
                        continue;
                    }
                    if (a1 < b1) == (a2 < b2) {
                        agree += 1;
                    } else {
                        differ.push(format!(
                            "{}, {} and {}: {} and {} here, {} and {} there",
                            panel.title,
                            a.name,
                            b.name,
                            short(a1),
                            short(b1),
                            short(a2),
                            short(b2)
                        ));
                    }
                }
            }
        }
    }
    (agree, differ)
}

/// All tables and figures that the papers print, and where each is repeated.
fn every_number(out: &mut String, published: &Published) {
    out.push_str("<h2 id=\"published\">Every number the papers print</h2>\n");
    for (name, paper) in &published.papers {
        let _ = write!(
            out,
            "<h3>{}</h3>\n<p class=\"soft\">{}. {}</p>\n<div class=\"scroll\"><table>\n\
             <tr><th class=\"n\">published</th><th></th><th>place</th><th>repeated by</th></tr>\n",
            escape(&paper.title),
            escape(&paper.authors),
            escape(&paper.setup)
        );
        for number in published.numbers.iter().filter(|number| number.paper == *name) {
            let repeated = match &number.not_repeated {
                None => escape(&number.repeated().map(|(experiment, _)| experiment).collect::<Vec<_>>().join(", ")),
                Some(reason) => format!("<span class=\"soft\">not: {}</span>", escape(reason)),
            };
            let machine = number.machine.as_ref().map_or(String::new(), |machine| format!(", {machine}"));
            let _ = writeln!(
                out,
                "<tr><td class=\"n\">{}</td><td>{}</td><td class=\"soft\">{}</td><td>{repeated}</td></tr>",
                escape(&number.printed),
                escape(&number.says),
                escape(&format!("{}{machine}", number.place))
            );
        }
        out.push_str("</table></div>\n");
    }
}

/// The day and time, UTC.
fn date(seconds: u64) -> String {
    format!("{} {:02}:{:02} UTC", day(seconds), seconds / 3600 % 24, seconds / 60 % 60)
}

/// The day, UTC.
fn day(seconds: u64) -> String {
    let days = seconds / 86_400;
    // Days since 1 March of year 0, in cycles of 400 years of 146,097 days. A year begins in March here, so a leap day
    // is the last day of its year.
    let since = days + 719_468;
    let (cycle, day) = (since / 146_097, since % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, cycle * 400 + year) } else { (month - 9, cycle * 400 + year + 1) };
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_164_800, "2024-02-29 00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (1_795_263_660, "2026-11-21 12:21 UTC"),
            (1_795_564_800, "2026-11-25 00:00 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }
}
