#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| corelane_net::protocol::fuzz::tunnels(bytes));
