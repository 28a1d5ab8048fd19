//! What live capture costs.

use crate::contender::{Kind, Unable};
use crate::live::{Best, Contender, Host, Order, Played, Search, Traffic, highest};
use crate::measure::{Failure, Metric, Outcome, Reading};
use crate::plan::{Experiment, Parameter, Plan, Scale, View};
use crate::setting::Setting;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "live",
    title: "what live capture costs: CPU time a packet, and the highest rate without a drop",
    repeats: "no paper: this library's own ring",
    about: "One thread sends frames on an interface of a pair, from a CPU of its own, and a contender captures from \
            the other one: a reader that only counts frames and bytes, or the monitor as `corelane monitor -i` runs \
            it. Namespaces of its own keep all other frames away. CPU time is that of the process without the \
            sender's thread. What the kernel does for a frame, down to the copy into the ring, it does in the \
            sender's call, so it counts to no contender. It is measured at a rate at which nothing is dropped, when \
            the contender has been running for a while. The highest rate is found by doubling and bisection: every \
            frame reaches the reader, and when the sender stops the reader is at most a tenth of a second and a block \
            of the ring behind, as the ring would hide for a while that it is too slow. Offered is what was sent \
            then, reached what was read until the sender stopped. Where the sender is not faster, a note says so, and \
            CPU/wall how busy the contender was. Its frames are new conversations in each pass. With --eve, payload \
            is looked into and all events are written, to nowhere. Without, the kernel copies the headers of most \
            frames only, as it does for one of the readers that count.",
    parameters: &[
        Parameter { name: "interfaces", here: "a veth pair, MTU 65,535, no IPv6", paper: None },
        Parameter { name: "ring", here: "64 MiB, blocks of 8 MiB, 200 ms", paper: None },
        Parameter {
            name: "sender",
            here: "one thread, up to 64 frames a call, a call at least every 100 µs",
            paper: None,
        },
        Parameter { name: "CPUs", here: "the first for the sender, the others for the contender", paper: None },
        Parameter { name: "scans", here: "250,000 whole frames of `corelane gen`, in a circle", paper: None },
        Parameter {
            name: "conversations",
            here: "15,000, about 250,000 frames, in a circle: half HTTP, a quarter each TLS and DNS",
            paper: None,
        },
        Parameter { name: "CPU time", here: "2 s after 0.5 s, at 100,000 packets a second", paper: None },
        Parameter { name: "rates", here: "2 s each; to within 5 %, after the first round 3 %", paper: None },
        Parameter { name: "memory", here: "as under --memory-limit 1G", paper: None },
    ],
    plan,
};

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

fn plan(plan: &mut Plan) {
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
