//! The rows of the table: which tests are about which queue.
//!
//! A new queue gets a row here and a file of [mutants](crate::mutants).

use crate::Result;
use crate::cargo::Tests;

/// A queue, and its tests as [`Tests`] reads them; empty where there are none.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) family: &'static str,
    /// The contract, and whatever else runs on real threads.
    contract: &'static str,
    /// Random sequences of calls against a model.
    fuzzed: &'static str,
    /// Recorded histories of several threads, judged by a checker of linearizability.
    histories: &'static str,
    models: &'static str,
}

const SPSC: &str = "one producer, one consumer";
const MPMC: &str = "any number of both";
const HANDOFF: &str = "hand-off";
const ABOVE: &str = "above the queues";

/// In the table's order.
pub(crate) const ROWS: [Row; 23] = [
    spsc("lane", "contract lane::", "contract lane::model::", "loom lane::"),
    spsc("linked", "contract linked", "properties a_linked_queue what_is_left", "loom linked:: segments::"),
    spsc("stream", "stream", "properties a_stream", "loom streams::"),
    spsc("fastflow", "fastflow", "", "loom fastflow::"),
    spsc("locked", "contract locked", "contract locked::model::", "loom locked::"),
    spsc("lamport", "contract lamport", "contract lamport::model::", "loom lamport::"),
    spsc("fastforward", "contract fastforward", "contract fastforward::model::", "loom fastforward::"),
    spsc("multiline", "contract multiline", "contract multiline::model::", "loom multiline::"),
    spsc("mcring", "contract mcring", "contract mcring::model::", "loom mcring::"),
    spsc("bqueue", "contract bqueue", "contract bqueue::model::", "loom bqueue::"),
    // How both ends of all of these wait and close: the models are theirs.
    spsc("handle", "", "", ""),
    mpmc("ticket", "mpmc ticket::", "mpmc ticket::history::", "loom_mpmc ticket::"),
    mpmc("michael_scott", "mpmc michael_scott::", "mpmc michael_scott::history::", "loom_mpmc michael_scott::"),
    mpmc("two_lock", "mpmc two_lock::", "mpmc two_lock::history::", "loom_mpmc two_lock::"),
    mpmc("condvar", "mpmc condvar::", "mpmc condvar::history::", "loom_mpmc condvar::"),
    mpmc("busy_wait", "mpmc busy_wait::", "mpmc busy_wait::history::", "loom_mpmc busy_wait::"),
    // How threads sleep at all of these.
    mpmc("sleepers", "", "", ""),
    other("dual_queue", HANDOFF, "handoff fair::", "loom_handoff fair::"),
    other("dual_stack", HANDOFF, "handoff unfair:: eliminating::", "loom_handoff unfair:: eliminating::"),
    other("transfer", HANDOFF, "handoff transfer::", "loom_handoff transfer::"),
    other("exchanger", HANDOFF, "handoff exchanger::", "loom_handoff exchanger::"),
    other("fanout", ABOVE, "fanout", "loom_fanout"),
    other("pool", ABOVE, "pool", "loom_pool"),
];

const fn spsc(name: &'static str, contract: &'static str, fuzzed: &'static str, models: &'static str) -> Row {
    Row { name, family: SPSC, contract, fuzzed, histories: "", models }
}

const fn mpmc(name: &'static str, contract: &'static str, histories: &'static str, models: &'static str) -> Row {
    Row { name, family: MPMC, contract, fuzzed: "", histories, models }
}

const fn other(name: &'static str, family: &'static str, contract: &'static str, models: &'static str) -> Row {
    Row { name, family, contract, fuzzed: "", histories: "", models }
}

/// What tests are run for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Contract,
    Fuzzed,
    Histories,
    Models,
    Scenarios,
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
        };
        if text.is_empty() { Ok(None) } else { Tests::parse(text).map(Some) }
    }

    /// Shuttle's larger cases: the modules whose names begin with its own, of a row that has tests at all.
    fn scenarios(&self) -> Option<String> {
        match self.name {
            "pool" => Some("shuttle_pool".to_owned()),
            name => (!self.contract.is_empty()).then(|| format!("shuttle {name}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_tests_that_can_be_read() {
        for row in &ROWS {
            for kind in [Kind::Contract, Kind::Fuzzed, Kind::Histories, Kind::Models, Kind::Scenarios] {
                row.tests(kind).unwrap();
            }
        }
    }
}
