//! The monitor.
