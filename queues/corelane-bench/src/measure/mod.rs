//! The measured loops, compiled anew for every contender.
//!
//! In each loop a thread has its handles in local variables, as a user's thread would. They do not stay behind the box
//! that brought the thread its work.
//!
//! | file | what |
//! |---|---|
//! | `queue.rs` | what is measured of a queue from one producer to one consumer, as an object |
//! | `stream.rs`, `latency.rs`, `fan.rs`, `ring.rs` | its loops |
//! | `reading.rs`, `tally.rs` | what a measurement gives; what threads that do jobs keep |
//! | `jobs.rs`, `client_server.rs` | jobs from a dispatcher to its workers |
//! | one file each | the loops of other contenders, by the experiment that needs them |

mod arrivals;
mod client_server;
mod fan;
mod handoff;
mod jobs;
mod latency;
mod messages;
mod pool;
mod queue;
mod reading;
mod ring;
mod stream;
mod tally;

pub(crate) use arrivals::arrivals;
pub(crate) use client_server::{Clients, attempts_of_a_server, client_server};
pub(crate) use fan::Drain;
pub(crate) use handoff::{hand_over, idle};
pub(crate) use jobs::{Arrangement, Job, attempts, dispatch, values};
pub(crate) use latency::{AGES, PERCENTILES, Pace};
pub(crate) use messages::{Receives, Sends, message_ring, messages};
pub(crate) use pool::{Task, idle_pool, tasks};
pub(crate) use queue::{Boxed, Made, Runs, Slices, Streams, Words};
pub(crate) use reading::{Failure, Metric, Outcome, Reading};
pub(crate) use tally::{Clock, Jobs};
