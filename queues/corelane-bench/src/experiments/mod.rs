//! The experiments: a function that fills a plan for each, and its texts in `data/experiments.toml`.

mod application;
mod cache_lines;
mod jobs;
mod live;
mod messages;
mod monitor_rate;
mod queues;
mod spin;
mod threads;

use crate::plan::Plan;
use crate::record::ParameterRecord;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One of the papers' experiments, or one of ours.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    pub(crate) name: &'static str,
    pub(crate) texts: Texts,
    /// Fills in the panels.
    pub(crate) plan: fn(&mut Plan),
}

/// What a reader has to know.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Texts {
    /// In one line.
    pub(crate) title: String,
    /// Paper, section, figure or table.
    pub(crate) repeats: String,
    /// What the result shows, and answers to a reader's likely questions.
    pub(crate) about: String,
    /// Values that do not change: the name, what it is here, and what in the paper, if that says it.
    pub(crate) fixed: Vec<Vec<String>>,
}

impl Texts {
    /// The values that do not change, for a record.
    pub(crate) fn parameters(&self) -> Vec<ParameterRecord> {
        let part = |line: &[String], i: usize| line.get(i).cloned();
        let record = |line: &Vec<String>| ParameterRecord {
            name: part(line, 0).unwrap_or_default(),
            here: part(line, 1).unwrap_or_default(),
            paper: part(line, 2),
        };
        self.fixed.iter().map(record).collect()
    }
}

type Line = (&'static str, fn(&mut Plan));

/// Every experiment, in the order of the report.
const ALL: &[Line] = &[
    ("peers", queues::peers),
    ("round-trip", queues::round_trip),
    ("element-size", queues::element_size),
    ("capacity", queues::capacity),
    ("fastforward", queues::fastforward),
    ("peak", queues::peak),
    ("params", queues::params),
    ("policies", queues::policies),
    ("fan", queues::fan),
    ("deadlock", queues::deadlock),
    ("cache-misses", queues::cache_misses),
    ("cache-lines", cache_lines::plan),
    ("ring", messages::ring),
    ("messages", messages::messages),
    ("application", application::plan),
    ("monitor-rate", monitor_rate::plan),
    ("live", live::plan),
    ("shared-core", queues::shared_core),
    ("spin", spin::plan),
    ("handoff", threads::handoff),
    ("transfer", threads::transfer),
    ("crowd", threads::crowd),
    ("pool", threads::pool),
    ("dispatch", jobs::dispatch),
    ("attempts", jobs::attempts),
    ("client-server", jobs::client_server),
];

/// Every experiment with its texts.
pub(crate) fn all() -> Vec<Experiment> {
    let mut texts: BTreeMap<String, Texts> = toml::from_str(include_str!("../../data/experiments.toml"))
        .expect("data/experiments.toml is checked by a test");
    let experiment = |&(name, plan): &Line| {
        let texts = texts.remove(name).unwrap_or_else(|| panic!("data/experiments.toml has no {name}"));
        Experiment { name, texts, plan }
    };
    let all = ALL.iter().map(experiment).collect();
    assert!(texts.is_empty(), "no experiments: {:?}", texts.keys());
    all
}
