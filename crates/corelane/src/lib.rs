//! corelane
