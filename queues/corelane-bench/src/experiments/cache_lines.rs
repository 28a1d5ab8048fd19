//! MCRingBuffer, Figure 11, and B-Queue, Tables 2 and 3, by an emulator that counts the lines that move.

use crate::coherence::{Figures, Part, TURNS};
use crate::measure::Metric;
use crate::plan::{Axis, Plan, Scale, View};
use crate::setting::Setting;
use std::rc::Rc;

const LINES: View =
    View { id: "", label: "lines an item", metric: Metric::Values, scale: Scale::Linear, higher_is_better: false };
const SERVED: View = View { label: "% of accesses that another thread's cache serves", ..LINES };

pub(super) fn plan(plan: &mut Plan) {
    let figures = Rc::new(Figures::new());
    for (part, id, title, view) in [
        (Part::Figure11, "figure-11", "MCRingBuffer, Figure 11", LINES),
        (Part::Table2, "table-2", "B-Queue, Table 2", SERVED),
        (Part::Table3, "table-3", "B-Queue, Table 3", SERVED),
    ] {
        let axis = Axis { label: "items a turn", scale: Scale::Log };
        let panel = plan.panel_on(id, format!("{title}, in turns"), [None; 2], Some(axis), view);
        for (queue, kind) in figures.queues(part) {
            let (figures, name) = (figures.clone(), queue.clone());
            let run = move |setting: &Setting| figures.in_turns(part, &queue, setting.quick);
            panel.case(name, kind, &TURNS.map(|turn| turn as f64), 1, run);
        }
        if part == Part::Table3 {
            continue;
        }
        let panel = plan.panel_on(format!("{id}-at-once"), format!("{title}, at once"), [None; 2], None, view);
        for (queue, kind) in figures.queues(part) {
            let (figures, name) = (figures.clone(), queue.clone());
            let run = move |setting: &Setting| figures.at_once(part, &queue, setting.quick);
            panel.case(name, kind, &[0.0], 1, run);
        }
    }
}
