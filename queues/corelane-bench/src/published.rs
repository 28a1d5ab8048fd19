//! The numbers that the papers print, and our numbers beside them.

use crate::record::{PanelRecord, Record};
use crate::stats::{Summary, short};
use crate::topology::{Near, Place};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The contents of `data/published.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    pub(crate) papers: BTreeMap<String, Paper>,
    #[serde(rename = "number")]
    pub(crate) numbers: Vec<Number>,
}

/// A paper and the machines it measured on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paper {
    pub(crate) title: String,
    pub(crate) authors: String,
    pub(crate) setup: String,
}

/// A number, or a range, that a paper prints.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Number {
    pub(crate) paper: String,
    /// Section, evaluation or table.
    pub(crate) place: String,
    /// The number as printed, with its unit.
    pub(crate) printed: String,
    /// The quantity that the number measures.
    pub(crate) says: String,
    /// The machine, if the paper has several.
    #[serde(default)]
    pub(crate) machine: Option<String>,
    /// The experiment that repeats the number …
    #[serde(default)]
    pub(crate) experiment: Option<String>,
    /// … or the reason why none does.
    #[serde(default)]
    pub(crate) not_repeated: Option<String>,
    /// The place of our number in the experiment's result. None if the experiment repeats the picture and not the
    /// number.
    #[serde(default)]
    pub(crate) ours: Option<Ours>,
    /// A second experiment that repeats the number by other means.
    #[serde(default)]
    pub(crate) also: Option<Also>,
}

/// An experiment, and the place of our number in its result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Also {
    pub(crate) experiment: String,
    pub(crate) ours: Ours,
}

/// How to find our number in a record.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ours {
    /// The panel, without the kind of CPU pair.
    pub(crate) panel: String,
    /// The kind of CPU pair; the usual one if absent.
    #[serde(default)]
    pub(crate) pair: Option<Pair>,
    /// The series.
    pub(crate) of: String,
    /// The series it is compared with.
    #[serde(default)]
    pub(crate) over: Option<String>,
    /// The x of the number. Without it, all of them.
    #[serde(default)]
    pub(crate) x: Option<f64>,
    pub(crate) show: Show,
}

/// The papers' words for kinds of CPU pairs.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pair {
    /// The nearest two cores: "sibling", "on die".
    Near,
    /// The farthest: "non-sibling", "cross die".
    Far,
}

/// The value derived from the medians.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Show {
    /// `of` itself.
    Value,
    /// `of` as a multiple of `over`.
    Times,
    /// By how many percent `of` is more than `over`.
    PercentMore,
    /// By how many percent `of` is less than `over`.
    PercentLess,
    /// By how much `of` is more than `over`.
    Difference,
    /// `of` as a multiple of its value at the least x.
    Growth,
}

impl Number {
    /// The experiments that repeat the number, and the places of ours in their results.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = (&str, Option<&Ours>)> {
        let first = self.experiment.as_deref().map(|experiment| (experiment, self.ours.as_ref()));
        first.into_iter().chain(self.also.iter().map(|also| (&*also.experiment, Some(&also.ours))))
    }

    /// Its place, and the machine.
    fn whole_place(&self) -> String {
        [Some(&self.place), self.machine.as_ref()].into_iter().flatten().cloned().collect::<Vec<_>>().join(", ")
    }
}

impl Published {
    /// Reads the data file, which is part of the program.
    pub(crate) fn load() -> Self {
        toml::from_str(include_str!("../data/published.toml")).expect("data/published.toml is checked by a test")
    }
}

impl Published {
    /// The numbers that this experiment repeats: what each says, as printed, ours, and its place.
    pub(crate) fn beside(&self, record: &Record) -> Vec<[String; 4]> {
        let repeated = |number| Number::repeated(number).map(move |(name, ours)| (number, name, ours));
        let of_it = self.numbers.iter().flat_map(repeated).filter(|(_, name, _)| *name == record.experiment);
        let row = |(number, _, ours): (&Number, _, Option<&Ours>)| {
            let here = ours.map_or(Ok("see the plot".to_owned()), |ours| ours.find(record));
            let paper = &self.papers[&number.paper].title;
            let here = here.unwrap_or_else(|reason| reason);
            [number.says.clone(), number.printed.clone(), here, format!("{paper}: {}", number.whole_place())]
        };
        of_it.map(row).collect()
    }

    /// All numbers of a paper: as printed, what each says, its place, and which experiments repeat it.
    pub(crate) fn rows(&self, paper: &str) -> Vec<[String; 4]> {
        let of_it = self.numbers.iter().filter(|number| number.paper == paper);
        let row = |number: &Number| {
            let repeated = match &number.not_repeated {
                None => number.repeated().map(|(experiment, _)| experiment).collect::<Vec<_>>().join(", "),
                Some(reason) => format!("not: {reason}"),
            };
            [number.printed.clone(), number.says.clone(), number.whole_place(), repeated]
        };
        of_it.map(row).collect()
    }
}

impl Ours {
    /// Our number in this record, as text, or the reason why there is none.
    pub(crate) fn find(&self, record: &Record) -> Result<String, String> {
        let panel = self.panel(record)?;
        let xs = match self.x {
            Some(x) => vec![x],
            None => panel.xs(),
        };
        let mut values = Vec::new();
        let mut reason = format!("{} was not measured", self.of);
        for x in xs {
            match self.at(panel, x) {
                Ok(value) => values.push(value),
                Err(why) => reason = why,
            }
        }
        let Some(Summary { least, most, .. }) = Summary::of(values) else { return Err(reason) };
        let unit = match self.show {
            Show::Value | Show::Difference => String::new(),
            Show::Times | Show::Growth => "×".to_owned(),
            Show::PercentMore | Show::PercentLess => " %".to_owned(),
        };
        Ok(if short(least) == short(most) {
            format!("{}{unit}", short(least))
        } else {
            format!("{} to {}{unit}", short(least), short(most))
        })
    }

    fn panel<'a>(&self, record: &'a Record) -> Result<&'a PanelRecord, String> {
        let places: Vec<&Place> = record.machine.places.iter().filter(|place| place.near != Near::Core).collect();
        let id = match (self.pair, places.first(), places.last()) {
            (Some(Pair::Far), Some(near), Some(far)) if near.near == far.near => {
                return Err("this machine has no such pair of cores".to_owned());
            }
            (Some(Pair::Far), _, Some(far)) => format!("{}.{}", self.panel, far.near.id()),
            (_, Some(near), _) => format!("{}.{}", self.panel, near.near.id()),
            (_, None, _) => self.panel.clone(),
        };
        let panels = || record.panels.iter();
        panels()
            .find(|panel| panel.id == id)
            .or_else(|| panels().find(|panel| panel.id == self.panel))
            .ok_or_else(|| format!("there is no panel '{id}'"))
    }

    fn at(&self, panel: &PanelRecord, x: f64) -> Result<f64, String> {
        let median = |series: &str, x: f64| {
            let Some(point) = panel.point(series, x) else {
                let left_out = panel.left_out.iter().find(|left_out| left_out.name == series);
                return Err(left_out.map_or(format!("{series} was not measured"), |left_out| left_out.reason.clone()));
            };
            if let Some(stopped) = &point.stopped {
                return Err(format!("{series} {stopped}"));
            }
            Ok(point.summary().map(|summary| summary.median).unwrap_or(f64::NAN))
        };
        let of = median(&self.of, x)?;
        let over = match (&self.over, self.show) {
            (_, Show::Value) => 1.0,
            (_, Show::Growth) => median(&self.of, panel.xs().first().copied().unwrap_or(x))?,
            (Some(over), _) => median(over, x)?,
            (None, _) => return Err("nothing to compare with is named".to_owned()),
        };
        Ok(match self.show {
            Show::Value => of,
            Show::Times | Show::Growth => of / over,
            Show::PercentMore => (of / over - 1.0) * 100.0,
            Show::PercentLess => (1.0 - of / over) * 100.0,
            Show::Difference => of - over,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;
    use crate::plan::Plan;
    use crate::topology::Cpu;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    #[test]
    fn every_number_is_repeated_or_says_why_not() {
        let (published, experiments) = (Published::load(), experiments::all());
        for number in &published.numbers {
            let name = format!("{} {} {}", number.paper, number.place, number.printed);
            assert!(published.papers.contains_key(&number.paper), "{name}");
            assert!(number.experiment.is_some() != number.not_repeated.is_some(), "{name}");
            for (experiment, _) in number.repeated() {
                let known = experiments.iter().find(|known| known.name == experiment);
                assert!(known.is_some(), "{name}: no experiment {experiment}");
            }
            assert!((number.ours.is_none() && number.also.is_none()) || number.experiment.is_some(), "{name}");
        }
    }

    #[test]
    fn every_experiment_that_repeats_a_paper_has_its_numbers() {
        let published = Published::load();
        for experiment in experiments::all() {
            let repeats_a_paper = !experiment.texts.repeats.starts_with("no paper");
            let numbers =
                published.numbers.iter().flat_map(Number::repeated).filter(|(name, _)| *name == experiment.name);
            // Figure 5 has no numbers: a design either hangs or does not.
            let has_none = experiment.name == "deadlock";
            assert_eq!(numbers.count() > 0, repeats_a_paper && !has_none, "{}", experiment.name);
        }
    }

    /// Every experiment measures the numbers that the report shows beside published ones.
    #[test]
    fn every_number_of_ours_is_measured() {
        let experiments = experiments::all();
        let place = |near| Place { near, cpus: [Cpu(0), Cpu(1)] };
        let published = Published::load();
        let repeated = |number| Number::repeated(number).map(move |(name, ours)| (number, name, ours));
        for (number, name, ours) in published.numbers.iter().flat_map(repeated) {
            let Some(ours) = ours else { continue };
            let experiment = experiments.iter().find(|known| known.name == name).unwrap();
            let mut plan = Plan::new(vec![place(Near::L3), place(Near::Machine)]);
            (experiment.plan)(&mut plan);
            let ids = match ours.pair {
                Some(Pair::Far) => [format!("{}.machine", ours.panel), ours.panel.clone()],
                _ => [format!("{}.l3", ours.panel), ours.panel.clone()],
            };
            let shows = |panel: &&crate::plan::Panel| {
                panel.views.iter().any(|view| match view.id {
                    "" => ids.contains(&panel.id),
                    id => ids.contains(&format!("{}.{id}", panel.id)),
                })
            };
            let panel = plan.panels.iter().find(shows);
            let panel = panel.unwrap_or_else(|| panic!("{name} has no panel {}", ours.panel));
            for series in [Some(&ours.of), ours.over.as_ref()].into_iter().flatten() {
                let measured = panel
                    .cases
                    .iter()
                    .any(|case| case.series == *series && ours.x.is_none_or(|x| case.xs.contains(&x)));
                let left_out = panel.left_out.iter().any(|(name, _)| name == series);
                assert!(measured || left_out, "{name} {} has no '{series}' at {:?}", panel.id, ours.x);
            }
            assert_eq!(
                ours.over.is_none(),
                matches!(ours.show, Show::Value | Show::Growth),
                "{name} {}: what to compare with",
                number.says
            );
        }
    }

    /// The text of a paper, if it is at hand. We may not keep it in the repository.
    fn text(file: &str) -> Option<String> {
        let directory = std::env::var_os("CORELANE_PAPERS")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/papers"), PathBuf::from);
        let text = std::fs::read_to_string(directory.join(file)).ok();
        if text.is_none() {
            eprintln!("skipped: {file} is not in {}", directory.display());
        }
        text
    }

    /// The numbers right before each of these signs. `2.6–3.3×` has two of them.
    fn numbers_before(text: &str, signs: &[&str]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for sign in signs {
            for (at, _) in text.match_indices(sign) {
                let before = text[..at].trim_end_matches([' ', '$']);
                let start = before
                    .char_indices()
                    .rev()
                    .find(|(_, c)| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '–')))
                    .map_or(0, |(i, c)| i + c.len_utf8());
                let parts = before[start..].split('–').map(|part| part.trim_matches(['.', ',']));
                found.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
            }
        }
        found
    }

    fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
        let start = text.find(from).unwrap_or_else(|| panic!("the text has '{from}'"));
        let end = text[start..].find(to).unwrap_or_else(|| panic!("the text has '{to}'"));
        &text[start..start + end]
    }

    /// The numbers that the data file has of a paper.
    fn listed(paper: &str) -> BTreeSet<String> {
        let numbers = Published::load().numbers;
        let words = numbers.iter().filter(|number| number.paper == paper).flat_map(|number| {
            number.printed.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ','))).map(str::to_owned)
        });
        words.filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn numbers_are_found_in_text() {
        let text = "gains are 2.6–3.3× and 1.4–1.6 \\times, up to $5\\times$; 88% of 1,000 cycles.";
        let expected = ["2.6", "3.3", "1.4", "1.6", "5", "88", "1,000"].map(str::to_owned);
        assert_eq!(numbers_before(text, &["×", "\\times", "%", " cycles"]), BTreeSet::from(expected));
    }

    #[test]
    fn all_of_the_mcringbuffer_paper_is_listed() {
        let Some(text) = text("mcringbuffer.txt") else { return };
        let listed = listed("mcringbuffer");
        let results = between(&text, "Evaluation metrics:", "IV. RELATED WORK");
        let found = numbers_before(results, &["×", "\\times", "%", " seconds"]);
        assert!(found.len() > 20, "{found:?}");
        let missing: Vec<_> = found.difference(&listed).collect();
        assert!(missing.is_empty(), "{missing:?}");
        let beginning = between(&text, "Abstract", "II. MCRINGBUFFER");
        assert!(numbers_before(beginning, &["×", "\\times"]).is_subset(&listed));
    }

    #[test]
    fn all_of_the_b_queue_paper_is_listed() {
        let Some(text) = text("b-queue.txt") else { return };
        let listed = listed("b-queue");
        let mut found =
            numbers_before(&text, &["%", " CPU cycles", " cycles on", "+ cycles", "cycles/datum", " nanoseconds"]);
        // Table 1 has one number a line.
        let table = between(&text, "Table 1: Peak performance", "(b) Cross die");
        found
            .extend(table.lines().filter(|line| line.trim().parse::<u32>().is_ok()).map(|line| line.trim().to_owned()));
        // These are parameters and examples, not results: ticks, a workload.
        for parameter in ["2,000", "3,200"] {
            found.remove(parameter);
        }
        assert!(found.len() > 40, "{found:?}");
        let missing: Vec<_> = found.difference(&listed).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// In its tables, and ratios such as 2.5:1.
    #[test]
    fn all_of_the_batch_queues_paper_is_listed() {
        let Some(text) = text("per-thread-batch-queues.txt") else { return };
        let numbers = Published::load().numbers;
        let of_it = numbers.iter().filter(|number| number.paper == "per-thread-batch-queues");
        let first_word = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        let listed: BTreeSet<_> = of_it.map(|number| first_word(&number.printed)).collect();
        let mut found = BTreeSet::new();
        for line in between(&text, "4.2.1 Single Element", "6.0 FUTURE WORK").lines() {
            let mut row = line.split('\t');
            if row.next().is_some_and(|name| name.ends_with('Q')) {
                found.extend(row.map(str::to_owned));
            }
            let words = line.split(' ').map(|word| word.trim_end_matches(['.', ',']));
            let is_ratio = |word: &&str| word.split(':').all(|part| part.parse::<f64>().is_ok()) && word.contains(':');
            found.extend(words.filter(is_ratio).map(str::to_owned));
        }
        assert!(found.len() > 70, "{found:?}");
        let missing: Vec<_> = found.difference(&listed).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    /// That paper writes some numbers as words, which follow these.
    #[test]
    fn all_of_the_synchronous_queues_paper_is_listed() {
        let Some(text) = text("scalable-synchronous-queues.txt") else { return };
        let is_number = |word: &&str| {
            matches!(*word, "two" | "three" | "ten" | "twice") || word.parse::<u32>().is_ok_and(|number| number < 100)
        };
        let words = |text: &str| -> BTreeSet<String> {
            text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_number).map(str::to_owned).collect()
        };
        let numbers = Published::load().numbers;
        let listed: BTreeSet<_> = numbers
            .iter()
            .filter(|number| number.paper == "synchronous-queues")
            .flat_map(|number| words(&number.printed))
            .collect();
        let text = text.replace("Java SE 5.0", "Java");
        let results = between(&text, "4. EXPERIMENTAL RESULTS", "More recently");
        let mut found = BTreeSet::new();
        for part in [between(&text, "Abstract", "1. INTRODUCTION"), results] {
            // A number belongs to the same sentence.
            for sign in ["factor of", "factors of", "factors of\n", "taking", "incurs"] {
                for (at, _) in part.match_indices(sign) {
                    let sentence = &part[at..];
                    found.extend(words(&sentence[..sentence.find([';', ':', '.']).unwrap_or(sentence.len())]));
                }
            }
        }
        assert!(found.len() >= 8, "{found:?}");
        let missing: Vec<_> = found.difference(&listed).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
