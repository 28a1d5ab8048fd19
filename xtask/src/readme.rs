//! The examples of the repository's README, as tests.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
