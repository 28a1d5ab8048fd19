//! The papers' application: MCRingBuffer's Figure 13, and B-Queue's Figures 11 and 12 with its Table 3.

use crate::application::layers::Layers;
use crate::application::portscans::Portscans;
use crate::application::{Application, Trace, alone, checked};
use crate::contenders::{Kind, Unable};
use crate::measure::{Failure, Metric};
use crate::plan::{Axis, Panel, Plan, Scale, View};
use crate::setting::Setting;
use crate::topology::cpus;
use corelane_net::synth::{Config, Conversations, capture};
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

/// The packets and the conversations.
const PACKETS: u64 = 2_000_000;
const QUICK_PACKETS: u64 = 3_000;
const CONVERSATIONS: u64 = 60_000;
const QUICK_CONVERSATIONS: u64 = 50;
/// Slots of a ring: in III-B1, and in section 5.3.
const PORTSCANS: usize = 2000;
const LAYERS: usize = 2048;

pub(super) fn plan(plan: &mut Plan) {
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
    (1..=5).for_each(|subs| at(panel, &made, subs, PORTSCANS));

    let title = "port scans and the counts of III-A3, two SubAnalyzers";
    let panel = plan.panel_on("counts", title, [None, None], None, rate);
    at(panel, &portscans(true), 2, PORTSCANS);

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
    (1..=7).for_each(|stages| at(panel, &made, stages, LAYERS));
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

/// Adds every ring at one number of SubAnalyzers, and one thread.
fn at<A: Application>(panel: &mut Panel, made: &Rc<Made<A>>, subs: usize, capacity: usize) {
    for ring in A::rings() {
        let made = made.clone();
        panel.case(ring.name.clone(), ring.kind, &[subs as f64], 1, move |setting: &Setting| {
            let (app, expected) = made.get(setting)?;
            checked(app, &ring, setting, subs, capacity, expected)
        });
    }
    let made = made.clone();
    panel.case("single-threaded", Kind::Roofline, &[subs as f64], 1, move |setting: &Setting| {
        let (app, expected) = made.get(setting)?;
        let (answer, reading) = alone(app, setting)?;
        if answer == *expected { Ok(reading) } else { Err(Unable::because("gives two answers").into()) }
    });
}
