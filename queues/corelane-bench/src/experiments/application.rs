//! The papers' application: MCRingBuffer's Figure 13, and B-Queue's Figures 11 and 12 with its Table 3.

use crate::application::layers::{Layers, each_ring_of_layers};
use crate::application::portscans::{Portscans, each_ring_of_portscans};
use crate::application::{Application, EachRing, Trace, alone, checked};
use crate::contender::{Kind, Pair, Unable};
use crate::contenders::FastForwardTuned;
use crate::measure::{Failure, Metric};
use crate::plan::{Axis, Experiment, Panel, Parameter, Plan, Scale, View};
use crate::setting::Setting;
use crate::slip;
use crate::topology::cpus;
use corelane_net::synth::{Config, Conversations, capture};
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "application",
    title: "packets a second of the papers' application, by number of SubAnalyzers or application stages",
    repeats: "MCRingBuffer, section III, Figures 12 and 13; B-Queue, section 5.3, Figures 11 and 12, Table 3",
    about: "A program of its own, as the papers describe it: a Dispatcher decodes packets and inserts each as an \
            element into a ring, SubAnalyzers analyse them, a MainAnalyzer collects their reports. It runs over every \
            printed ring and every safe design. The first plot is the MCRingBuffer paper's: both kinds of port scans, \
            a state report for each first SYN and SYN-ACK of a connection attempt. The second adds the counts of \
            III-A3: a report when a host begins a connection or that is released, and for every 16 KiB that it sends. \
            The others are the B-Queue paper's: application stages put conversations together, tell their protocols \
            by content, and read HTTP, TLS and DNS. FastForward and B-Queue carry words, so in the first two plots \
            they carry pointers to memory beside the ring. The answer of every run must be that of one thread, else \
            there is no figure. MCRingBuffer without a timer keeps up to a batch of elements until more come or the \
            trace ends, and does not hang here, as the paper found. The single-threaded version has no ring, and is \
            measured beside each column. Two more threads than SubAnalyzers run: where there are fewer CPUs than \
            that, threads share them, and more SubAnalyzers cannot be faster.",
    parameters: &[
        Parameter {
            name: "packets",
            here: "2 million, generated, of headers",
            paper: Some("82 million, headers of a wireless network"),
        },
        Parameter { name: "capacity", here: "2000", paper: Some("2,000") },
        Parameter {
            name: "batch",
            here: "MCRingBuffer: 50 to SubAnalyzers, 1 from them",
            paper: Some("50 to SubAnalyzers, 1 from them"),
        },
        Parameter { name: "thresholds", here: "20", paper: Some("20") },
        Parameter { name: "SubAnalyzers", here: "1 to 5", paper: Some("1 to 5") },
        Parameter { name: "cores", here: "left to the kernel", paper: Some("8, left to the kernel") },
        Parameter { name: "rounds", here: "7, medians", paper: Some("10 trials, averages") },
        Parameter {
            name: "conversations",
            here: "60,000, about a million packets, generated: half HTTP, a quarter each TLS and DNS",
            paper: None,
        },
        Parameter { name: "application stages", here: "1 to 7", paper: Some("B-Queue: 1 to 7 queues") },
        Parameter {
            name: "queues of application stages",
            here: "2048 slots, MCRingBuffer and B-Queue: batch 256, there and back",
            paper: Some("B-Queue: 2,048, batch 256"),
        },
        Parameter {
            name: "cores of application stages",
            here: "one for each thread, if there are enough; else left to the kernel",
            paper: Some("B-Queue: one for each thread"),
        },
        Parameter {
            name: "FastForward's slip",
            here: "tuned for one queue on this machine",
            paper: Some("B-Queue: tuned manually in each experiment"),
        },
        Parameter {
            name: "a thread that waits",
            here: "polls; where there are fewer CPUs than threads, it yields after 64 failed polls",
            paper: Some("polls"),
        },
    ],
    plan,
};

/// The packets and the conversations.
const PACKETS: u64 = 2_000_000;
const QUICK_PACKETS: u64 = 3_000;
const CONVERSATIONS: u64 = 60_000;
const QUICK_CONVERSATIONS: u64 = 50;
/// Slots of a ring: in III-B1, and in section 5.3.
const PORTSCANS: usize = 2000;
const LAYERS: usize = 2048;

fn plan(plan: &mut Plan) {
    let here = cpus().len();
    if here < 9 {
        plan.notes.push(format!("The application has 3 to 9 threads, this machine {here} CPUs."));
    }
    let rate = View { label: "M packets/s", ..View::MILLION_PER_SECOND };
    let traffic: Rc<OnceCell<Arc<Trace>>> = Rc::default();
    let portscans = |counts| {
        let traffic = traffic.clone();
        Made::new(move |quick| {
            let packets = if quick { QUICK_PACKETS } else { PACKETS };
            let make = || {
                let config = Config { packets, ..Config::default() };
                Arc::new(Trace::generated(capture(config).expect("a valid configuration")))
            };
            Portscans { trace: traffic.get_or_init(make).clone(), counts }
        })
    };

    let axis = Axis { label: "SubAnalyzers", scale: Scale::Linear };
    let panel = plan.panel_on("rate", "port scans", [None, None], Some(axis), rate);
    let made = portscans(false);
    for subs in 1..=5 {
        at(panel, &made, subs, PORTSCANS, |adds| each_ring_of_portscans(adds));
    }

    let title = "port scans and the counts of III-A3, two SubAnalyzers";
    let panel = plan.panel_on("counts", title, [None, None], None, rate);
    at(panel, &portscans(true), 2, PORTSCANS, |adds| each_ring_of_portscans(adds));

    let axis = Axis { label: "application stages", scale: Scale::Linear };
    let panel = plan.panel_on("pipelines", "layers 2 to 7 of conversations", [None, None], Some(axis), rate);
    panel.counting = true;
    panel.view(View { id: "cycles", label: "cycles a packet", ..View::CYCLES });
    panel.view(View { label: "CPU ns a packet, all threads", scale: Scale::Linear, ..View::CPU_NANOSECONDS });
    panel.view(View { id: "l1", label: "% of level-1 reads that hit", metric: Metric::L1HitPercent, ..rate });
    let made = Made::new(|quick| {
        let conversations = if quick { QUICK_CONVERSATIONS } else { CONVERSATIONS };
        Layers { trace: Trace::generated(Conversations { seed: 1, conversations, trouble: 5, spoofed: 0 }.capture()) }
    });
    for stages in 1..=7 {
        at(panel, &made, stages, LAYERS, |adds| each_ring_of_layers(adds));
    }
}

/// An application, and the answer of one thread.
type Answered<A> = (Arc<A>, <A as Application>::Answer);

/// An application over its trace, made by the first measurement.
struct Made<A: Application> {
    make: Box<dyn Fn(bool) -> A>,
    made: OnceCell<Result<Answered<A>, Failure>>,
}

impl<A: Application> Made<A> {
    fn new(make: impl Fn(bool) -> A + 'static) -> Rc<Self> {
        Rc::new(Made { make: Box::new(make), made: OnceCell::new() })
    }

    fn get(&self, setting: &Setting) -> Result<&Answered<A>, Failure> {
        let make = || {
            let app = Arc::new((self.make)(setting.quick));
            let (answer, _) = alone(&app, setting)?;
            Ok((app, answer))
        };
        self.made.get_or_init(make).as_ref().map_err(Clone::clone)
    }
}

/// Adds a case for each ring.
struct Adds<'a, A: Application> {
    panel: &'a mut Panel,
    made: &'a Rc<Made<A>>,
    subs: usize,
    capacity: usize,
}

/// Adds every ring at one number of SubAnalyzers, and one thread.
fn at<A: Application>(
    panel: &mut Panel,
    made: &Rc<Made<A>>,
    subs: usize,
    capacity: usize,
    each_ring: impl FnOnce(&mut Adds<'_, A>),
) {
    each_ring(&mut Adds { panel, made, subs, capacity });
    let made = made.clone();
    panel.case("single-threaded", Kind::Roofline, &[subs as f64], 1, move |setting: &Setting| {
        let (app, expected) = made.get(setting)?;
        let (answer, reading) = alone(app, setting)?;
        if answer == *expected { Ok(reading) } else { Err(Unable::because("gives two answers").into()) }
    });
}

impl<A: Application> EachRing<A> for Adds<'_, A> {
    fn ring<P: Pair<A::Packet>, R: Pair<A::Report>>(&mut self) {
        let Adds { panel, made, subs, capacity } = self;
        let (made, subs, capacity) = (made.clone(), *subs, *capacity);
        panel.case(P::name(), P::KIND, &[subs as f64], 1, move |setting: &Setting| {
            FastForwardTuned::slip(slip::for_one_queue(setting, capacity));
            let (app, expected) = made.get(setting)?;
            checked::<A, P, R>(app, setting, subs, capacity, expected)
        });
    }
}
