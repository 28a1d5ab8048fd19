//! The rows of the table: which tests belong to which queue.
//!
//! A new queue gets a row here and a file of [mutants](crate::mutant).

use crate::cargo::Tests;
use crate::workspace::Result;

/// A queue and its tests, in the form that [`Tests`] parses. A text is empty if there are no such tests.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) family: &'static str,
    /// The contract, and all other tests on real threads.
    contract: &'static str,
    /// Random sequences of calls, checked against a model.
    fuzzed: &'static str,
    /// Recorded histories of several threads, judged by a checker of linearizability.
    histories: &'static str,
    models: &'static str,
}

const SPSC: &str = "one producer, one consumer";
const MPMC: &str = "any number of both";
const HANDOFF: &str = "hand-off";
const ABOVE: &str = "above the queues";

/// The rows, in the order of the table.
pub(crate) const ROWS: [Row; 27] = [
    spsc(
        "lane",
        [
            "contract lane:: lane_compact::",
            "contract lane:: lane_compact:: +::model::",
            "contract lane:: lane_compact:: +::history::",
            "loom lane:: tight:: threes:: runs::",
        ],
    ),
    spsc(
        "linked",
        [
            "contract linked",
            "properties a_linked_queue what_is_left",
            "contract linked +::history::",
            "loom linked:: segments::",
        ],
    ),
    spsc("stream", ["stream", "properties a_stream", "stream histories_", "loom streams::"]),
    spsc("fastflow", ["fastflow", "fastflow random_sequences", "fastflow histories_", "loom_baselines fastflow::"]),
    spsc(
        "locked",
        ["contract locked", "contract locked:: +::model::", "contract locked +::history::", "loom locked::"],
    ),
    spsc(
        "lamport",
        ["contract lamport", "contract lamport:: +::model::", "contract lamport +::history::", "loom lamport::"],
    ),
    spsc(
        "fastforward",
        [
            "contract fastforward",
            "contract fastforward +::model::",
            "contract fastforward +::history::",
            "loom fastforward::",
        ],
    ),
    spsc(
        "multiline",
        ["contract multiline", "contract multiline +::model::", "contract multiline +::history::", "loom multiline::"],
    ),
    spsc("mcring", ["contract mcring", "contract mcring +::model::", "contract mcring +::history::", "loom mcring::"]),
    spsc("bqueue", ["contract bqueue", "contract bqueue +::model::", "contract bqueue +::history::", "loom bqueue::"]),
    // How both ends of all SPSC queues wait and close. The models of those queues cover it.
    spsc("handle", [""; 4]),
    mpmc("ticket", ["mpmc ticket::", "mpmc ticket::sequences::", "mpmc ticket::history::", "loom_mpmc ticket::"]),
    mpmc("scq", ["mpmc scq::", "mpmc scq::sequences::", "mpmc scq::history::", "loom_mpmc scq::"]),
    mpmc(
        "michael_scott",
        [
            "mpmc michael_scott::",
            "mpmc michael_scott::sequences::",
            "mpmc michael_scott::history::",
            "loom_mpmc michael_scott::",
        ],
    ),
    mpmc(
        "two_lock",
        ["mpmc two_lock::", "mpmc two_lock::sequences::", "mpmc two_lock::history::", "loom_mpmc two_lock::"],
    ),
    mpmc("condvar", ["mpmc condvar::", "mpmc condvar::sequences::", "mpmc condvar::history::", "loom_mpmc condvar::"]),
    mpmc(
        "busy_wait",
        ["mpmc busy_wait::", "mpmc busy_wait::sequences::", "mpmc busy_wait::history::", "loom_mpmc busy_wait::"],
    ),
    // Items have an order for each producer only, so the histories are judged lane by lane.
    mpmc("lanes", ["lanes", "", "lanes history::", "loom_lanes"]),
    // How threads sleep in all MPMC queues.
    mpmc("sleepers", [""; 4]),
    // How the handles of all MPMC queues close them.
    mpmc("senders", [""; 4]),
    handoff(
        "dual_queue",
        ["handoff fair::", "handoff fair::sequences::", "handoff fair::history::", "loom_handoff fair::"],
    ),
    handoff(
        "dual_stack",
        [
            "handoff unfair:: eliminating::",
            "handoff unfair:: eliminating:: +::sequences::",
            "handoff unfair:: eliminating:: +::history::",
            "loom_handoff unfair:: eliminating::",
        ],
    ),
    handoff(
        "transfer",
        ["handoff transfer::", "handoff sequences::a_transfer", "handoff history::transfer", "loom_handoff transfer::"],
    ),
    // One thread alone exchanges nothing, so there are no sequences.
    handoff("exchanger", ["handoff exchanger::", "", "handoff history::exchanger", "loom_handoff exchanger::"]),
    // A select waits on ends of all families.
    above("select", ["select", "", "", "loom_select"]),
    above("dispatch", ["dispatch", "dispatch +sequences::random", "dispatch +::history::histories", "loom_dispatch"]),
    // Only the pool's threads call its queue, and callers see only the results of tasks. So there are no sequences and
    // no histories.
    above("pool", ["pool", "", "", "loom_pool"]),
];

/// Tests that Miri does not run, by words in the names of a target's tests. Miri takes a thousand times as long as the
/// machine, so thousands of items, histories or races take minutes. The cost of a sleeping thread is no question for
/// Miri, either. A test that is made smaller for Miri, by `cfg!(miri)`, leaves the list.
const TOO_LONG: [(&str, &str); 9] = [
    (
        "contract",
        "-::order:: -::ring:: -::model:: -::history:: -::capacity:: -random_calls -len_is_a_bound -races \
         -every_ -gets_exactly -just_before -what_is_left -stream -slices_go -slices_larger -serves_many \
         -no_wake_up -many_items -far_ahead -own_memory -items_are_aligned -the_whole_capacity -wrap_around \
         -never_full -panicking_drain -panicking_drop_leaves -sleeps",
    ),
    (
        "stream",
        "-random_calls -histories -races -no_wake_up -stream_between -every_length -a_limit_is_kept \
         -gets_exactly",
    ),
    ("fastflow", "-random -histories"),
    (
        "mpmc",
        "-::order:: -::sequences:: -::history:: -random_calls -races -every_ -what_is_left -a_thread_ \
         -it_is_a_queue -wrap_around -no_wake_up -time_outs -between_threads -own_memory -larger_than \
         -zero_sized -what_is_counted -sleeps",
    ),
    (
        "lanes",
        "-order:: -history:: -no_wake_up -wake_ups -every_strategy -a_close_races -is_dropped_once -a_select_passes",
    ),
    (
        "handoff",
        "-::stress:: -::memory:: -::sequences:: -::history:: -s16_ -s25_ -s29_ -s30_ -the_middle -puts_before \
         -q1_ -q11_ -memory_is -no_try_take -nobody_takes -against_traffic -came_before -many_threads -give_up \
         -sleeps",
    ),
    (
        "dispatch",
        "-history:: -sequences:: -stranding:: -each_job -order_under_load -keep_their_order -comes_back \
         -hears_of_a_leave -slices_and_batches -jobs_and_results -from_all_workers -keys_from_all -a_key_ \
         -what_is_not_dispatched \
         -keys_are_spread -leave_moves",
    ),
    ("select", "-several_selects -both_directions -of_two_wake_ups"),
    // One of these tests starts another program, and Miri cannot.
    (
        "pool",
        "-every_task -one_thread_runs -p19_ -p1_ -p8_ -p15_now -p11_a_pool_grows -p11_many -p13_ -p16_ -p22_ \
         -p2_a_slow_start -p18_hooks_may -caller_runs -many_blocked -the_bound -a_panic_comes -scopes_nest",
    ),
];

const fn spsc(name: &'static str, tests: [&'static str; 4]) -> Row {
    row(name, SPSC, tests)
}

const fn mpmc(name: &'static str, tests: [&'static str; 4]) -> Row {
    row(name, MPMC, tests)
}

const fn handoff(name: &'static str, tests: [&'static str; 4]) -> Row {
    row(name, HANDOFF, tests)
}

const fn above(name: &'static str, tests: [&'static str; 4]) -> Row {
    row(name, ABOVE, tests)
}

/// Makes a row from its tests, in the order of the fields.
const fn row(name: &'static str, family: &'static str, tests: [&'static str; 4]) -> Row {
    let [contract, fuzzed, histories, models] = tests;
    Row { name, family, contract, fuzzed, histories, models }
}

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
        let text = match kind {
            Kind::Contract => self.contract,
            Kind::Fuzzed => self.fuzzed,
            Kind::Histories => self.histories,
            Kind::Models => self.models,
            Kind::Scenarios => return self.scenarios().map(|text| Tests::parse(&text)).transpose(),
            Kind::Interpreted => return self.interpreted().map(|text| Tests::parse(&text)).transpose(),
        };
        if text.is_empty() { Ok(None) } else { Tests::parse(text).map(Some) }
    }

    /// Shuttle's larger cases, for a row that has tests at all: the modules whose names begin with the row's name.
    fn scenarios(&self) -> Option<String> {
        match self.name {
            "fastflow" => Some("shuttle_papers fastflow".to_owned()),
            "pool" => Some("shuttle_pool".to_owned()),
            // Loom has models of select. One of shuttle's hand-off scenarios has a select.
            "select" => None,
            // With `::`, so that the modules of `lanes` are not included.
            "lane" => Some("shuttle lane::".to_owned()),
            name => (!self.contract.is_empty()).then(|| format!("shuttle {name}")),
        }
    }

    /// The contract's tests without those that take too long.
    fn interpreted(&self) -> Option<String> {
        let target = self.contract.split(' ').next()?;
        let (_, words) = TOO_LONG.iter().find(|(name, _)| *name == target)?;
        Some(format!("{} {words}", self.contract))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_tests_that_can_be_read() {
        for row in &ROWS {
            for kind in
                [Kind::Contract, Kind::Fuzzed, Kind::Histories, Kind::Models, Kind::Scenarios, Kind::Interpreted]
            {
                row.tests(kind).unwrap();
            }
        }
    }
}
