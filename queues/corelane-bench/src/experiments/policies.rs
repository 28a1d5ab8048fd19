//! The tuning of a lane's consumer between two runs of blocks, one value after the other.

use crate::contender::Kind;
use crate::contenders::LaneTuned;
use crate::item::Block;
use crate::measure::{Metric, Outcome, Rate, aged, in_batches, one_by_one};
use crate::plan::{Axis, Experiment, Parameter, Plan, Scale, View, far_above};
use crate::setting::Setting;
use corelane::spsc::lane::Tuning;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "policies",
    title: "what a lane does between two runs of blocks: the values of its tuning, one by one",
    repeats: "no paper: which policy is best depends on the machine",
    about: "Each panel varies one value and leaves the others at their defaults. Rates are of the same loops as in \
            `peers`, and of items of 64 bytes, whose blocks are of several lines; an age is from the push of an item \
            to its pop, at half the rate of the loop without a pace. `corelane-bench tune` runs this and names the \
            best.",
    parameters: &[
        Parameter { name: "item", here: "8 bytes; 64", paper: None },
        Parameter { name: "capacity", here: "2048", paper: None },
    ],
    plan,
};

const CAPACITY: usize = 2048;

/// A value of a tuning.
#[derive(Debug)]
pub(crate) struct Knob {
    /// The name of the call that sets it. The panels' ids begin with it.
    pub(crate) name: &'static str,
    label: &'static str,
    pub(crate) values: &'static [u32],
    /// The default for items of 8 bytes, among the values.
    pub(crate) default: u32,
    set: fn(Tuning, u32) -> Tuning,
}

pub(crate) const KNOBS: &[Knob] = &[
    Knob {
        name: "take",
        label: "blocks taken at once",
        values: &[8, 16, 32, 64, 128],
        default: 32,
        set: |tuning, blocks| tuning.take(blocks as usize),
    },
    Knob {
        name: "release",
        label: "blocks given back at once",
        values: &[4, 8, 16, 32],
        default: 32,
        set: |tuning, blocks| tuning.release(blocks as usize),
    },
    Knob { name: "slip", label: "looks of a slip", values: &[0, 5, 10, 20, 40], default: 40, set: Tuning::slip },
];

/// The series of a panel of rates, [`RATES`] first: the name and the measurement.
type Loop = (&'static str, fn(&Setting) -> Outcome);
const LOOPS: [Loop; 4] = [
    ("8 bytes, one by one", |setting| one_by_one::<LaneTuned, u64>(setting, CAPACITY)),
    ("8 bytes, batches of 16", |setting| in_batches::<LaneTuned, u64, 16>(setting, CAPACITY)),
    ("8 bytes, batches of 64", |setting| in_batches::<LaneTuned, u64, 64>(setting, CAPACITY)),
    ("64 bytes, one by one", |setting| one_by_one::<LaneTuned, Block<8>>(setting, CAPACITY)),
];
/// How many series of a panel decide about a policy: those of 8 bytes, because larger items have another default for
/// one value.
pub(crate) const RATES: usize = 3;

/// The beginning of the id of a panel whose values are ages, not rates.
pub(crate) const AGES: &str = "age";

fn plan(plan: &mut Plan) {
    for place in plan.each_place() {
        for knob in KNOBS {
            let axis = Axis { label: knob.label, scale: Scale::Linear };
            let title = format!("rate by {}", knob.label);
            let panel = plan.panel(knob.name, title, place, Some(axis), View::MILLION_PER_SECOND);
            for &value in knob.values {
                for (name, measure) in LOOPS {
                    panel.case(name, Kind::Corelane, &[f64::from(value)], far_above(CAPACITY), move |setting| {
                        LaneTuned::tuning((knob.set)(Tuning::new(), value));
                        measure(setting)
                    });
                }
            }
        }
        let knob = KNOBS.last().expect("there are some");
        let axis = Axis { label: knob.label, scale: Scale::Linear };
        let view = View { metric: Metric::Value(0), ..View::NANOSECONDS };
        let title = format!("median age at half the rate, by {}", knob.label);
        let panel = plan.panel(format!("{AGES}-{}", knob.name), title, place, Some(axis), view);
        for &value in knob.values {
            panel.case("8 bytes", Kind::Corelane, &[f64::from(value)], far_above(CAPACITY), move |setting| {
                LaneTuned::tuning((knob.set)(Tuning::new(), value));
                aged::<LaneTuned>(setting, CAPACITY, Rate::OfItsPeak(0.5))
            });
        }
    }
}
