//! The columns of the table: the tools under which a queue's tests run, and what each of them can and cannot prove.

use crate::rows::Kind;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Column {
    /// The contract's suite, on real threads
    Contract,
    /// Random sequences of calls against a model
    Fuzzed,
    /// Recorded histories, judged by a checker of linearizability
    Histories,
    /// Loom: every interleaving of small cases
    Loom,
    /// Shuttle: drawn schedules of larger cases
    Shuttle,
    /// ThreadSanitizer, with an instrumented standard library
    ThreadSanitizer,
    /// AddressSanitizer and its leak check, with an instrumented standard library
    AddressSanitizer,
    /// Another processor, emulated
    Aarch64,
    /// Miri: what Rust's rules call undefined, by an interpreter
    Miri,
}

impl Column {
    pub(crate) const ALL: [Self; 9] = [
        Self::Contract,
        Self::Fuzzed,
        Self::Histories,
        Self::Loom,
        Self::Shuttle,
        Self::ThreadSanitizer,
        Self::AddressSanitizer,
        Self::Aarch64,
        Self::Miri,
    ];

    /// Its name in the records.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Fuzzed => "fuzzed",
            Self::Histories => "histories",
            Self::Loom => "loom",
            Self::Shuttle => "shuttle",
            Self::ThreadSanitizer => "thread-sanitizer",
            Self::AddressSanitizer => "address-sanitizer",
            Self::Aarch64 => "aarch64",
            Self::Miri => "miri",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Fuzzed => "fuzzed",
            Self::Histories => "histories",
            Self::Loom => "loom",
            Self::Shuttle => "shuttle",
            Self::ThreadSanitizer => "TSan",
            Self::AddressSanitizer => "ASan",
            Self::Aarch64 => "aarch64",
            Self::Miri => "Miri",
        }
    }

    pub(crate) fn command(self) -> String {
        format!("cargo xtask run {}", self.key())
    }

    /// A text that says what the column proves and what it does not.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Contract => {
                "The promises of the queue's family, one suite over all its members, on real threads; for a queue
  with options the suite runs over several of them. It proves what it saw: the interleavings and the orderings that
  this processor shows are few."
            }
            Self::Fuzzed => {
                "Random sequences of calls of one thread, each answered as a simple model would. Made smaller where
  they fail (proptest), or from fixed seeds. The figures are tests, and sequences. It says nothing of threads."
            }
            Self::Histories => {
                "Several threads note when each call began and ended and what it answered; the checker of the crate
  `todc-utils` (Wing and Gong's, with Lowe's memory) looks for an order of the calls that a sequential queue would
  answer so. At a hand-off puts and takes are paired by item first, and must overlap; then each request is two
  calls, the asking and the answer (`tests/handoff/history.rs`); an exchange is one, of both. The figures are tests,
  and histories. A history that a queue never showed is not judged."
            }
            Self::Loom => {
                "Every interleaving of small cases, and every value a load may see, with at most so many preemptions an
  execution; the figures are models, executions explored, and the bound on preemptions. It does not show loads that
  are reordered behind later stores, nor time, nor what is larger than the models; the asymmetric barrier is
  modelled by fences, and by less."
            }
            Self::Shuttle => {
                "Schedules of larger cases, at real sizes: several threads on each side, hundreds of items, calls and
  sizes drawn anew for each. Half of them change threads at random, half by PCT, in which a bug that takes three
  events in a certain order has a known chance. The figures are scenarios, and schedules. It is a sample, and
  all accesses have one order: what a weaker one shows is loom's to find. Timed waits may end at any moment; two
  accesses to memory at once are a race. `CORELANE_SCHEDULES` and `SHUTTLE_RANDOM_SEED` draw others."
            }
            Self::ThreadSanitizer => {
                "ThreadSanitizer: the contract's tests with every access watched, also of the standard library. Two
  that no
  synchronization orders are a race. It knows what happened in these runs only, and does not know stand-alone
  fences: no queue here orders its items by one."
            }
            Self::AddressSanitizer => {
                "AddressSanitizer and its leak check: the contract's tests with every access checked: what is out of
  bounds, freed, or left at the end. It does not see memory that was never written, nor a slot that is used while
  the buffer around it lives."
            }
            Self::Aarch64 => {
                "The contract's tests, compiled for that processor and emulated on this one: alignment, the width of
  things, the atomic instructions. It does not show weak ordering: the emulator runs on a processor that hardly
  reorders. Loom does."
            }
            Self::Miri => {
                "Those of the contract's tests that an interpreter gets through, by the language's rules: races, memory
  that was never written, freed or leaked, and pointers that are used against the borrow that they came of, by
  stacked borrows and by tree borrows. A load may see an older value. Tests of closing have three more seeds, which
  are other schedules. It is a sample of few items, and shows no membarrier."
            }
        }
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Fuzzed => Kind::Fuzzed,
            Self::Histories => Kind::Histories,
            Self::Loom => Kind::Models,
            Self::Miri => Kind::Interpreted,
            Self::Shuttle => Kind::Scenarios,
            _ => Kind::Contract,
        }
    }
}
