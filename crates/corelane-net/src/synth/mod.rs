//! Synthetic traffic with known truth.
