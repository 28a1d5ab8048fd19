//! The measured loops, each compiled anew for every contender.
//!
//! In each loop a thread has its handles in local variables, as a user's thread would. They do not stay behind the box
//! that brought the thread its work.
//!
//! # Where things are
//!
//! | file | what |
//! |---|---|
//! | `pair.rs`, `reading.rs` | a queue for a measurement; what one gives |
//! | `tally.rs` | what threads that hand out or do jobs keep |
//! | one file each | the loops, by the experiment that needs them |

mod aged;
mod arrivals;
mod attempts;
mod batches;
mod client_server;
mod crowd;
mod dispatch;
mod exchange;
mod fan;
mod first;
mod handoff;
mod loaded;
mod messages;
mod paced;
mod pair;
mod pool;
mod reading;
mod ring;
mod round_trip;
mod stream;
mod tally;
mod waiting;

pub(crate) use aged::{AGES, Rate, aged};
pub(crate) use arrivals::arrivals;
pub(crate) use attempts::{attempts, attempts_of_a_server, values};
pub(crate) use batches::in_batches;
pub(crate) use client_server::{Clients, client_server};
pub(crate) use crowd::{RUN, alone, pauses, there_and_back};
pub(crate) use dispatch::dispatch;
pub(crate) use exchange::exchange;
pub(crate) use fan::{Drain, fan};
pub(crate) use first::{by_crossbeam, by_hand, by_select};
pub(crate) use handoff::{hand_over, idle};
pub(crate) use loaded::loaded;
pub(crate) use messages::{message_ring, messages};
pub(crate) use paced::{PERCENTILES, Pace, lone, paced};
pub(crate) use pool::{idle_pool, tasks};
pub(crate) use reading::{Failure, Metric, Outcome, Reading};
pub(crate) use ring::ring;
pub(crate) use round_trip::round_trip;
pub(crate) use stream::one_by_one;
pub(crate) use waiting::{waiting, yielding};
