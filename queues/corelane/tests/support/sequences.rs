//! Sequences of calls that proptest thinks of, and makes smaller where one fails.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestRunner};

/// Judges so many sequences, and says so.
pub(crate) fn judge<S: Strategy>(count: u32, sequences: &S, judge: impl Fn(S::Value)) {
    println!("{count} sequences judged");
    // A sequence that failed is printed in the smallest form that was found, as what the test is about; no file is kept
    // of it.
    let config = Config { cases: count, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(sequences, |sequence| {
        judge(sequence);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
