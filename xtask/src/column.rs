//! The columns of the table: the tools under which a queue's tests run, and what each of them can and cannot prove
//! (also in `--help`).

use crate::rows::Kind;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Column {
    /// The contract's suite, on real threads: it proves only the interleavings and orderings that this processor shows
    Contract,
    /// Random sequences of calls of one thread against a model: proves nothing about threads
    Fuzzed,
    /// Recorded histories of several threads, judged by a checker of linearizability (`todc-utils`): a history that a
    /// queue never showed is not judged
    Histories,
    /// Loom, every interleaving of small cases: shows no load that is reordered behind a later store, no time, and no
    /// missing asymmetric barrier, which is modelled by fences
    Loom,
    /// Shuttle, drawn schedules of larger cases: a sample in which all accesses have one order
    Shuttle,
    /// ThreadSanitizer, with an instrumented standard library: finds races of these runs, ignores stand-alone fences
    ThreadSanitizer,
    /// AddressSanitizer and its leak check, with an instrumented standard library: sees no read of memory that was
    /// never written, and no slot that is used while the buffer around it lives
    AddressSanitizer,
    /// Another processor, emulated: alignment and atomic instructions, but no weak ordering
    Aarch64,
    /// Miri, what Rust's rules call undefined, by stacked and by tree borrows: few items, no membarrier
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
