//! MCRingBuffer, Figure 11, and B-Queue, Tables 2 and 3, by an emulator that counts the lines that move.

use crate::coherence::{Figures, Part, TURNS};
use crate::measure::Metric;
use crate::plan::{Axis, Experiment, Parameter, Plan, Scale, View};
use crate::setting::Setting;
use std::rc::Rc;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cache-lines",
    title: "cache lines that move from thread to thread, counted in an emulator",
    repeats: "MCRingBuffer, section II-D, Evaluation 4, Figure 11; B-Queue, sections 5.2 and 5.3, Tables 2 and 3",
    about: "A directory of 64-byte lines in an emulator (corelane-bench coherence) says which lines other threads \
            took, on any machine and without hardware counters. Its caches have no end and no levels: it says nothing \
            of L1 against L2 and L3, of what falls out for want of room, or of prefetching. The papers' counters saw \
            all of that. The threads take turns of so many items, so the counts repeat exactly: turns of one are a \
            consumer at the producer's heels, long ones fill and drain the queue. At once is both together, as the \
            papers measure, but in the emulator's time. Figure 11 counts each line that comes to a thread, and each \
            write that takes others their copies. The tables are of all accesses that the compiler left in both loops, \
            so how many there are is its affair; Table 3 is of an application in the paper, and of bare queues here.",
    parameters: &[
        Parameter { name: "item", here: "8 bytes", paper: Some("8 bytes") },
        Parameter {
            name: "capacity and batch",
            here: "2000 and 50; 2048 and 256",
            paper: Some("2,000 and 50; 2,048 and 256"),
        },
        Parameter {
            name: "slip of FastForward",
            here: "as its paper suggests; time in the emulator is not a processor's",
            paper: Some("none; tuned"),
        },
        Parameter {
            name: "event",
            here: "a line changes hands",
            paper: Some("MEM_LOAD_RETIRED.L2_LINE_MISS; OProfile, by who served it"),
        },
        Parameter {
            name: "Table 3",
            here: "one thread puts into seven queues, seven take",
            paper: Some("seven queues of a TCP stack"),
        },
        Parameter {
            name: "rounds",
            here: "in turns one, after warm-up; at once 7, medians",
            paper: Some("5 trials; 30 trials; averages"),
        },
    ],
    plan,
};

const LINES: View =
    View { id: "", label: "lines an item", metric: Metric::Values, scale: Scale::Linear, higher_is_better: false };
const SERVED: View = View { label: "% of accesses that another thread's cache serves", ..LINES };

fn plan(plan: &mut Plan) {
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
