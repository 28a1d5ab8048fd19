//! The kept counts, `data/coherence.toml`, and the differences from them.

use super::cases::Case;
use super::counts::PerItem;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How many lines an item a count may be off. The counts repeat exactly, so this is less than one line in a lap of the
/// ring.
const TOLERANCE: f64 = 0.0006;

/// A queue's runs by their names: out, back, upgrades.
type Runs = BTreeMap<String, [f64; 3]>;

/// The contents of `data/coherence.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Stored(BTreeMap<String, Runs>);

fn run(case: &Case) -> String {
    format!("{}; {} bytes", case.run, case.bytes)
}

impl Stored {
    /// Reads the data file, which is part of the program.
    pub(crate) fn load() -> Self {
        toml::from_str(include_str!("../../data/coherence.toml")).expect("data/coherence.toml is checked by a test")
    }

    /// The differences from the file, a line for each.
    pub(crate) fn differences(&self, counted: &[(&Case, PerItem)]) -> Vec<String> {
        let mut differences = Vec::new();
        let mut rest = self.clone();
        for (case, now) in counted {
            let name = format!("{}: {}", case.queue, run(case));
            let kept = rest.0.get_mut(&case.queue).and_then(|runs| runs.remove(&run(case)));
            let Some(kept) = kept else {
                differences.push(format!("{name}: not in data/coherence.toml"));
                continue;
            };
            for (what, kept, now) in
                [("out", kept[0], now.out), ("back", kept[1], now.back), ("upgrades", kept[2], now.upgrades)]
            {
                // The count of no items is not a number, so it differs.
                if now.is_nan() || (kept - now).abs() > TOLERANCE {
                    differences.push(format!("{name}: {what} {kept:.4} lines an item, now {now:.4}"));
                }
            }
        }
        let gone = rest.0.iter().flat_map(|(queue, runs)| runs.keys().map(move |run| (queue, run)));
        differences.extend(gone.map(|(queue, run)| format!("{queue}: {run}: in data/coherence.toml only")));
        differences
    }

    /// Writes these counts in the format of the file.
    pub(crate) fn render(counted: &[(&Case, PerItem)]) -> String {
        let mut out = "\
# Cache lines that move, an item: out to the threads that take, back to those that put, and upgrades, writes to a line that others hold too. Of
# requests that wait: all remote accesses of one that asks so many times between any two things that others do. A count may be off by
# {TOLERANCE} lines an item, less than one line in a lap of the ring.
# `corelane-bench coherence --check` compares with it; `corelane-bench coherence --write FILE` makes it anew.
"
        .replace("{TOLERANCE}", &TOLERANCE.to_string());
        let mut queues: Vec<&str> = counted.iter().map(|(case, _)| &*case.queue).collect();
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            let _ = write!(out, "\n[{queue:?}]\n");
            for (case, PerItem { out: there, back, upgrades }) in counted.iter().filter(|(case, _)| case.queue == queue)
            {
                let _ = writeln!(out, "{:?} = [{there:.4}, {back:.4}, {upgrades:.4}]", run(case));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases::{self, Part};
    use super::*;

    #[test]
    fn one_more_line_is_a_difference() {
        let all = cases::all();
        let case = &all[0];
        let kept = PerItem { out: 1.0, back: 0.25, upgrades: 0.0 };
        let stored: Stored = toml::from_str(&Stored::render(&[(case, kept)])).unwrap();
        assert!(stored.differences(&[(case, kept)]).is_empty());
        // One line a lap of 1024 items is enough to differ.
        for more in [1.0, 1.0 / 1024.0] {
            for now in [
                PerItem { out: kept.out + more, ..kept },
                PerItem { back: kept.back + more, ..kept },
                PerItem { upgrades: kept.upgrades + more, ..kept },
            ] {
                assert_eq!(stored.differences(&[(case, now)]).len(), 1);
            }
        }
        let nothing = PerItem { out: f64::NAN, back: f64::NAN, upgrades: f64::NAN };
        assert_eq!(stored.differences(&[(case, nothing)]).len(), 3);
        assert!(stored.differences(&[])[0].contains("only"));
        assert!(Stored::default().differences(&[(case, kept)])[0].contains("not in"));
    }

    #[test]
    fn the_lane_moves_few_lines_more_than_its_payload_fills() {
        let Stored(kept) = Stored::load();
        let mut compared = 0;
        for case in cases::all().iter().filter(|case| case.queue == "lane" && case.run.starts_with("filled")) {
            let [out, ..] = kept["lane"][&run(case)];
            let fills = case.bytes as f64 / 64.0;
            assert!(out <= 1.25 * fills, "{}: {out} lines an item, which fills {fills}", run(case));
            compared += 1;
        }
        assert!(compared >= 11, "{compared}");
    }

    #[test]
    fn every_queue_of_ours_is_kept() {
        let Stored(mut kept) = Stored::load();
        for case in cases::all().iter().filter(|case| matches!(case.part, Part::Table | Part::FollowUps)) {
            if case.is_kept() {
                let runs = kept.get_mut(&case.queue).unwrap_or_else(|| panic!("{} is kept", case.queue));
                assert!(runs.remove(&run(case)).is_some(), "{} {}", case.queue, run(case));
            }
        }
        assert!(kept.values().all(BTreeMap::is_empty), "{kept:?}");
    }
}
