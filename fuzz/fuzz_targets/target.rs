//! Any target of `corelane_net::protocol::fuzz`, by the variable `TARGET`.
#![no_main]

use corelane_net::protocol::fuzz::{Target, targets};
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("TARGET").unwrap_or_default();
    let names = || targets().map(Target::name).collect::<Vec<_>>().join(", ");
    targets().find(|target| target.name() == name).unwrap_or_else(|| panic!("set TARGET to one of {}", names()))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET.run(bytes));
