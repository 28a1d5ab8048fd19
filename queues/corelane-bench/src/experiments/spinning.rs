//! The cost of calls of queues between any number of threads whose threads spin.

use crate::contender::{Kind, ManyToMany};
use crate::contenders::each_crowd;
use crate::measure;
use crate::plan::{Experiment, Parameter, Plan, View};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "spinning",
    title: "queues between any number of threads, which spin",
    repeats: "no paper: what the model of `corelane-bench scale` is made from, and what it is compared with",
    about: "One thread alone fills a queue by half and drains it: the calls without any transfer between caches. Two \
            threads: one puts, one takes. Threads of this library spin, but for `condvar`, which has its own way to \
            wait; crates wait as they do.",
    parameters: &[
        Parameter { name: "item", here: "8 bytes", paper: None },
        Parameter { name: "capacity", here: "1024", paper: None },
    ],
    plan,
};

/// The beginnings of the panels' ids.
pub(crate) const ALONE: &str = "alone";
pub(crate) const PAIR: &str = "pair";
/// The series of pauses, beside those of calls.
pub(crate) const PAUSE: &str = "a pause";

const LEAST: u64 = 20_000;

fn plan(plan: &mut Plan) {
    let place = plan.usual_place();
    let panel = plan.panel(ALONE, "one thread alone", place, None, View::NANOSECONDS);
    each_crowd!(M => panel.case(M::name(), M::KIND, &[1.0], LEAST, measure::alone::<M>));
    panel.case(PAUSE, Kind::Roofline, &[1.0], LEAST, measure::pauses);
    for place in plan.each_place() {
        let panel = plan.panel(PAIR, "one thread puts, one takes", place, None, View::NANOSECONDS_A_TRANSFER);
        each_crowd!(M => if M::KIND != Kind::Roofline { panel.hand_over::<M>(1.0, 1, 1) });
    }
}
