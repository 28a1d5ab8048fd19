//! The report: one HTML page of all results in a directory, which a script in the page draws from their JSON. It loads
//! nothing from elsewhere. `markdown.rs` has the tables for those that read the repository.

mod markdown;

pub(crate) use markdown::shown;

use crate::experiments;
use crate::published::Published;
use crate::record::{FORMAT, Record};
use serde_json::json;
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
    let experiments = experiments::all();
    for experiment in &experiments {
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
    let unknown = |record: &&Record| experiments.iter().all(|known| known.name != record.experiment);
    latest.extend(records.iter().filter(unknown));
    latest
}

/// Makes the page. Of several runs of an experiment on one machine it shows the last.
fn render(records: &[Record]) -> String {
    let published = Published::load();
    let latest = latest(records);
    let data = json!({
        "machines": latest.iter().map(|record| record.machine.lines()).collect::<Vec<_>>(),
        "beside": latest.iter().map(|record| published.beside(record)).collect::<Vec<_>>(),
        "papers": published.papers.iter().map(|(name, paper)| json!({
            "title": paper.title,
            "setup": format!("{}. {}", paper.authors, paper.setup),
            "numbers": published.rows(name),
        })).collect::<Vec<_>>(),
        "records": latest,
    });
    // No text may end the element that it is in.
    include_str!("page.html").replace("__DATA__", &data.to_string().replace('<', "\\u003c"))
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
    fn days_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (1_709_164_800, "2024-02-29"),
            (1_735_689_599, "2024-12-31"),
            (1_795_564_800, "2026-11-25"),
        ] {
            assert_eq!(day(seconds), text);
        }
    }
}
