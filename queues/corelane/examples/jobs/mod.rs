//! The parts of `job_server` and `job_client`: what they say to each other, the server, the load. A folder of the
//! examples and no crate, as no other crate needs it; the tests include it, too.

#![allow(dead_code, unreachable_pub)] // Each program uses its half.

pub mod load;
pub mod protocol;
pub mod server;
