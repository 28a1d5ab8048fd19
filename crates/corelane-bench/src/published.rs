//! The numbers the papers print, and what ours are beside them.

use crate::record::{PanelRecord, Record};
use crate::stats::{Summary, short};
use crate::topology::{Near, Place};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Everything in `data/published.toml`.
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
    /// Section, evaluation, table.
    pub(crate) place: String,
    /// As printed, with its unit.
    pub(crate) printed: String,
    /// What it is the number of.
    pub(crate) says: String,
    /// The machine, where the paper has several.
    #[serde(default)]
    pub(crate) machine: Option<String>,
    /// The experiment that repeats it …
    #[serde(default)]
    pub(crate) experiment: Option<String>,
    /// … or why none does.
    #[serde(default)]
    pub(crate) not_repeated: Option<String>,
    /// Where in the experiment's result ours is; none where the experiment gives the picture and not the number.
    #[serde(default)]
    pub(crate) ours: Option<Ours>,
}

/// How to find our number in a record.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ours {
    /// A panel, without the kind of CPU pair.
    pub(crate) panel: String,
    /// The kind of CPU pair; the usual one if absent.
    #[serde(default)]
    pub(crate) pair: Option<Pair>,
    /// A series.
    pub(crate) of: String,
    /// The series it is compared with.
    #[serde(default)]
    pub(crate) over: Option<String>,
    /// At one x, or over all of them.
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

/// What is made of the medians.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Show {
    /// `of` itself.
    Value,
    /// `of` as so many times `over`.
    Times,
    /// By how many percent `of` is more than `over`.
    PercentMore,
    /// By how many percent `of` is less than `over`.
    PercentLess,
    /// By how much `of` is more than `over`.
    Difference,
}

impl Published {
    /// The data file, which is part of the program.
    pub(crate) fn load() -> Self {
        toml::from_str(include_str!("../data/published.toml")).expect("data/published.toml is checked by a test")
    }
}

impl Ours {
    /// Our number in this record, as text; or why there is none.
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
            Show::Times => "×".to_owned(),
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
        let median = |series: &str| {
            let Some(point) = panel.point(series, x) else {
                let left_out = panel.left_out.iter().find(|left_out| left_out.name == series);
                return Err(left_out.map_or(format!("{series} was not measured"), |left_out| left_out.reason.clone()));
            };
            if let Some(stopped) = &point.stopped {
                return Err(format!("{series} {stopped}"));
            }
            Ok(point.summary().map(|summary| summary.median).unwrap_or(f64::NAN))
        };
        let of = median(&self.of)?;
        let over = match (&self.over, self.show) {
            (_, Show::Value) => 1.0,
            (Some(over), _) => median(over)?,
            (None, _) => return Err("nothing to compare with is named".to_owned()),
        };
        Ok(match self.show {
            Show::Value => of,
            Show::Times => of / over,
            Show::PercentMore => (of / over - 1.0) * 100.0,
            Show::PercentLess => (1.0 - of / over) * 100.0,
            Show::Difference => of - over,
        })
    }
}
