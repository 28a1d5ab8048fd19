//! The cost of finding the first ready end of many.

use crate::contender::Kind;
use crate::measure::{Outcome, by_crossbeam, by_hand, by_select};
use crate::plan::{Axis, Experiment, Parameter, Plan, Scale, View};
use crate::setting::Setting;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "select",
    title: "one ready queue among many: a select, and a loop of try_pop by hand",
    repeats: "no paper: what a wait for many ends costs where there is something to do",
    about: "One thread pushes an item to one of the queues, in an order without a pattern, finds it and takes it. By \
            hand it looks at one lane after the other, from behind the last that had an item. A select does the same \
            through one virtual call an end, and names the end, which is then popped from. crossbeam's Select is made \
            once and begins at a random channel.",
    parameters: &[
        Parameter { name: "item", here: "8 bytes", paper: None },
        Parameter { name: "capacity", here: "64", paper: None },
        Parameter { name: "queues", here: "2 to 64", paper: None },
    ],
    plan,
};

fn plan(plan: &mut Plan) {
    let place = plan.usual_place();
    let axis = Axis { label: "queues", scale: Scale::Log2 };
    let view = View { label: "ns an item", scale: Scale::Log, ..View::NANOSECONDS };
    let panel = plan.panel("ready", "one of them is ready", place, Some(axis), view);
    for queues in [2, 4, 8, 16, 32, 64] {
        let mut case = |name, kind, run: fn(&Setting, usize) -> Outcome| {
            panel.case(name, kind, &[queues as f64], 1_000, move |setting| run(setting, queues));
        };
        case("Select", Kind::Corelane, by_select);
        case("try_pop by hand", Kind::Corelane, by_hand);
        case("crossbeam Select", Kind::Crate, by_crossbeam);
    }
}
