//! What live capture costs.

use crate::contenders::{Kind, Unable};
use crate::live::{Best, Contender, Host, Order, Played, Search, Traffic, highest};
use crate::measure::{Failure, Metric, Outcome, Reading};
use crate::plan::{Plan, Scale, View};
use crate::setting::Setting;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Packets a second at which CPU time is measured.
const RATE: f64 = 100_000.0;
const QUICK_RATE: f64 = 20_000.0;
/// The monitor has begun, and its tables are warm. Then whole seconds: the monitor does some work once in each.
const WARM: Duration = Duration::from_millis(500);
const WINDOW: Duration = Duration::from_secs(2);
const QUICK: Duration = Duration::from_millis(100);
/// The first search begins with the rate of the other measurement, each later one where the one before has ended.
const FIRST: Search = Search { first: RATE, step: 2.0, near: 1.05, most: 20 };
const QUICK_SEARCH: Search = Search { first: QUICK_RATE, most: 1, ..FIRST };
/// The step and the end of a later search.
const LATER_STEP: f64 = 1.15;
const LATER_NEAR: f64 = 1.03;
/// How often CPU time is measured anew because frames were lost, before that is said.
const ATTEMPTS: usize = 3;

/// The positions of the values of a search.
const REACHED: usize = 0;
const OFFERED: usize = 1;

const CONTENDERS: [(&str, Kind, Contender); 6] = [
    ("a reader that only counts", Kind::Roofline, Contender::Counting { headers_only: false }),
    ("the same, of headers", Kind::Roofline, Contender::Counting { headers_only: true }),
    ("0 analyzers", Kind::Corelane, Contender::Monitor { analyzers: 0, eve: false }),
    ("0 analyzers, --eve", Kind::Corelane, Contender::Monitor { analyzers: 0, eve: true }),
    ("1 analyzer", Kind::Corelane, Contender::Monitor { analyzers: 1, eve: false }),
    ("2 analyzers", Kind::Corelane, Contender::Monitor { analyzers: 2, eve: false }),
];
const TRAFFICS: [(&str, Traffic); 2] = [("scans", Traffic::Scans), ("conversations", Traffic::Conversations)];

pub(super) fn plan(plan: &mut Plan) {
    let (host, notes) = (Rc::new(Host::default()), plan.found.clone());
    for (traffic_name, traffic) in TRAFFICS {
        let view = View { label: "CPU ns a packet, the receiver", scale: Scale::Linear, ..View::CPU_NANOSECONDS };
        let title = format!("{traffic_name}, CPU time at a fixed rate");
        let panel = plan.panel_on(format!("cpu.{traffic_name}"), title, [None; 2], None, View { id: "", ..view });
        for (name, kind, contender) in CONTENDERS {
            let host = host.clone();
            panel.case(name, kind, &[0.0], 1, move |setting: &Setting| {
                cpu_time(&host, contender, traffic, setting.quick)
            });
        }
    }
    for (traffic_name, traffic) in TRAFFICS {
        let view = View { label: "M packets/s reached", metric: Metric::Value(REACHED), ..View::MILLION_PER_SECOND };
        let title = format!("{traffic_name}, the highest rate without a drop");
        let panel = plan.panel_on(format!("rate.{traffic_name}"), title, [None; 2], None, view);
        panel.view(View {
            id: "offered",
            label: "M packets/s offered",
            metric: Metric::Value(OFFERED),
            ..View::MILLION_PER_SECOND
        });
        for (name, kind, contender) in CONTENDERS {
            let (host, notes, known) = (host.clone(), notes.clone(), Cell::new(None));
            panel.case(name, kind, &[0.0], 1, move |setting: &Setting| {
                let note = |note: &str| add(&notes, format!("{name}, {traffic_name}: {note}"));
                highest_rate(&host, contender, traffic, setting.quick, &known, note)
            });
        }
    }
}

/// Adds a note, unless it is there already.
fn add(notes: &RefCell<Vec<String>>, note: String) {
    let mut notes = notes.borrow_mut();
    if !notes.contains(&note) {
        notes.push(note);
    }
}

fn reading(played: &Played, values: Vec<f64>) -> Reading {
    Reading { items: played.read, wall: played.wall, cpu: played.cpu, full: 0, empty: 0, counts: None, values }
}

fn cpu_time(host: &Host, contender: Contender, traffic: Traffic, quick: bool) -> Outcome {
    let (rate, warm, window) = if quick { (QUICK_RATE, QUICK, QUICK) } else { (RATE, WARM, WINDOW) };
    let order = Order { contender, traffic, rate, warm, window };
    let mut played = host.play(&order, quick)?;
    for _ in 1..ATTEMPTS {
        if played.keeps_up() {
            break;
        }
        played = host.play(&order, quick)?;
    }
    if !played.keeps_up() {
        return Err(Unable::because(format!(
            "it keeps up with no {rate} packets a second: of {} packets {} were dropped and {} lost before the ring, \
             and {} waited at the end",
            played.all_sent,
            played.dropped,
            played.lost(),
            played.behind
        ))
        .into());
    }
    Ok(reading(&played, Vec::new()))
}

/// The values are millions of packets a second. `known` is the rate that the search before has found.
fn highest_rate(
    host: &Host,
    contender: Contender,
    traffic: Traffic,
    quick: bool,
    known: &Cell<Option<f64>>,
    note: impl Fn(&str),
) -> Outcome {
    let search = match known.get() {
        _ if quick => QUICK_SEARCH,
        Some(first) => Search { first, step: LATER_STEP, near: LATER_NEAR, ..FIRST },
        None => FIRST,
    };
    let (warm, window) = if quick { (Duration::ZERO, QUICK) } else { (Duration::ZERO, WINDOW) };
    let best = highest(&search, |rate| {
        let played = host.play(&Order { contender, traffic, rate, warm, window }, quick)?;
        if played.lost() > 0 {
            note("at some rate the kernel lost packets on their way to the ring, which counts as a drop");
        }
        Ok::<_, Failure>(played)
    })?;
    let Some(Best { played, is_senders }) = best else {
        return Err(
            Unable::because(format!("it keeps up with no rate from {} packets a second down", search.first)).into()
        );
    };
    if is_senders {
        note("the sender is the limit, and was at its top speed when nothing was dropped");
    }
    known.set(Some(played.offered()));
    Ok(reading(&played, vec![played.reached() / 1e6, played.offered() / 1e6]))
}
