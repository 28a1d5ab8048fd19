//! The binary `corelane`.

fn main() {}
