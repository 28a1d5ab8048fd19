//! The rows of the table: which tests belong to which queue.
//!
//! A new family gets a row here; a design that is listed in `designs.rs` has one. Each has a directory of
//! [mutants](crate::mutants).

#[macro_use]
#[path = "../../queues/corelane/tests/support/designs.rs"]
mod designs;

use crate::cargo::Tests;
use crate::workspace::Result;

/// A queue and its tests, in the form that [`Tests`] parses, where `%` stands for the queue's name. A text is empty if
/// there are no such tests. In this order:
/// - the contract, and all other tests on real threads;
/// - random sequences of calls, checked against a model;
/// - recorded histories of several threads, judged by a checker of linearizability;
/// - models.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    tests: [&'static str; 4],
}

const fn row(name: &'static str, tests: [&'static str; 4]) -> Row {
    Row { name, tests }
}

const SPSC: [&str; 4] = ["contract %", "contract % +::model::", "contract % +::history::", "loom %::"];
const MPMC: [&str; 4] = ["mpmc %::", "mpmc %::sequences::", "mpmc %::history::", "loom_mpmc %::"];

#[rustfmt::skip]
const OWN: [Row; 15] = [
    row("lane", ["contract lane:: lane_compact::", "contract lane:: lane_compact:: +::model::",
        "contract lane:: lane_compact:: +::history::", "loom lane:: tight:: threes:: runs::"]),
    row("linked", ["contract linked", "properties a_linked_queue what_is_left", "contract linked +::history::",
        "loom linked:: segments::"]),
    row("stream", ["stream", "properties a_stream", "stream histories_", "loom streams::"]),
    row("fastflow", ["fastflow", "fastflow random_sequences", "fastflow histories_", "loom_baselines fastflow::"]),
    // How both ends of all SPSC queues wait and close. The models of those queues cover it.
    row("handle", [""; 4]),
    // Items have an order for each producer only, so the histories are judged lane by lane.
    row("lanes", ["mpmc lanes:: lane_by_lane::", "mpmc %::sequences::", "mpmc %::history::", "loom_%"]),
    // How threads sleep in all MPMC queues.
    row("sleepers", [""; 4]),
    // How the handles of all MPMC queues close them.
    row("senders", [""; 4]),
    row("dual_queue", ["handoff fair::", "handoff fair::sequences::", "handoff fair::history::",
        "loom_handoff fair::"]),
    row("dual_stack", ["handoff unfair:: eliminating::", "handoff unfair:: eliminating:: +::sequences::",
        "handoff unfair:: eliminating:: +::history::", "loom_handoff unfair:: eliminating::"]),
    row("transfer", ["handoff %::", "handoff sequences::a_%", "handoff history::%", "loom_handoff %::"]),
    // One thread alone exchanges nothing, so there are no sequences.
    row("exchanger", ["handoff %::", "", "handoff history::%", "loom_handoff %::"]),
    // A select waits on ends of all families.
    row("select", ["select", "", "", "loom_select"]),
    row("dispatch", ["%", "% +sequences::random", "% +::history::histories", "loom_%"]),
    // Only the pool's threads call its queue, and callers see only the results of tasks. So there are no sequences and
    // no histories.
    row("pool", ["pool", "", "", "loom_pool"]),
];

/// All rows: those above, and the usual one of each other design.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = Vec::from(OWN);
    let mut design = |name, tests: [&'static str; 4]| {
        if !rows.iter().any(|row| row.name == name) {
            rows.push(row(name, tests));
        }
    };
    macro_rules! spsc {
        ($name:ident, $($rest:tt)+) => {
            design(stringify!($name), SPSC)
        };
    }
    macro_rules! mpmc {
        ($name:ident, $($rest:tt)+) => {
            design(stringify!($name), MPMC)
        };
    }
    designs!(spsc);
    shared_designs!(mpmc);
    rows
}

/// The rows of these names, or all.
pub(crate) fn named(names: &[String]) -> Result<Vec<Row>> {
    let mut rows = all();
    if let Some(name) = names.iter().find(|name| !rows.iter().any(|row| row.name == **name)) {
        let known = rows.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
        return Err(format!("there is no row `{name}`; choose from {known}"));
    }
    rows.retain(|row| names.is_empty() || names.iter().any(|name| name == row.name));
    Ok(rows)
}

/// Tests that Miri does not run, by words in the names of a target's tests. Miri takes a thousand times as long as the
/// machine, so thousands of items, histories or races take minutes. The cost of a sleeping thread is no question for
/// Miri, either. A test that is made smaller for Miri, by `cfg!(miri)`, leaves the list. Races of a close stay in it:
/// they rest on the membarrier of real threads, and Miri has none.
const TOO_LONG: [(&str, &str); 7] = [
    (
        "contract",
        "-::order:: -::model:: -::history:: -::capacity:: -races -every_ -what_is_left -stream -slices_go \
         -slices_larger -no_wake_up -never_full -panicking_drain -panicking_drop_leaves -zero_sized -sleeps",
    ),
    ("stream", "-races -histories -no_wake_up -every_length -a_limit_is_kept -gets_exactly"),
    ("fastflow", "-random -histories"),
    (
        "mpmc",
        "-::order:: -::sequences:: -::history:: -races -every_ -what_is_left -a_thread_ -a_pop_that -no_wake_up \
         -time_outs -larger_than -zero_sized -what_is_counted -sleeps",
    ),
    ("handoff", "-::memory:: -::sequences:: -::history:: -s29_ -memory_is -nobody_takes -sleeps"),
    (
        "dispatch",
        "-history:: -sequences:: -stranding:: -order_under_load -keep_their_order -comes_back -hears_of_a_leave \
         -keys_from_all -a_key_ -what_is_not_dispatched -keys_are_spread -leave_moves",
    ),
    // One of these tests starts another program, and Miri cannot.
    ("pool", "-every_task -one_thread_runs -p1_ -p8_ -p11_a_pool_grows -p22_ -p2_a_slow_start -the_bound -scopes_nest"),
];

/// The purpose of a row's tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Contract,
    Fuzzed,
    Histories,
    Models,
    Scenarios,
    Interpreted,
}

impl Row {
    /// The row's tests of a kind, if it has any.
    pub(crate) fn tests(&self, kind: Kind) -> Result<Option<Tests>> {
        let [contract, fuzzed, histories, models] = self.tests.map(|tests| tests.replace('%', self.name));
        let text = match kind {
            Kind::Contract => contract,
            Kind::Fuzzed => fuzzed,
            Kind::Histories => histories,
            Kind::Models => models,
            _ if contract.is_empty() => contract,
            Kind::Scenarios => match self.name {
                "fastflow" => "shuttle_papers fastflow".to_owned(),
                "pool" => "shuttle_pool".to_owned(),
                // Loom has models of select. One of shuttle's hand-off scenarios has a select.
                "select" => String::new(),
                // With `::`, so that the modules of `lanes` are not included.
                "lane" => "shuttle lane::".to_owned(),
                name => format!("shuttle {name}"),
            },
            // Without those that take too long.
            Kind::Interpreted => {
                let target = contract.split(' ').next().expect("it is not empty");
                let words = TOO_LONG.iter().find(|(name, _)| *name == target).map_or("", |(_, words)| words);
                format!("{contract} {words}")
            }
        };
        if text.is_empty() { Ok(None) } else { Tests::parse(&text).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_tests_that_can_be_read() {
        for row in all() {
            for kind in
                [Kind::Contract, Kind::Fuzzed, Kind::Histories, Kind::Models, Kind::Scenarios, Kind::Interpreted]
            {
                row.tests(kind).unwrap();
            }
        }
    }
}
