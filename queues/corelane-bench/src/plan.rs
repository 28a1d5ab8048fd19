//! The plan of an experiment: panels of cases.

use crate::contenders::many::Many;
use crate::contenders::{Kind, Queue, fast_forward_tuned};
use crate::item::Item;
use crate::measure::{Metric, Outcome};
use crate::roofline;
use crate::setting::Setting;
use crate::slip;
use crate::topology::{Cpu, Place};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scale {
    Linear,
    /// By powers of ten.
    Log,
    /// By powers of two.
    Log2,
    /// For percentiles: the distance from 90 to 99, and from 99 to 99.9, is that from 0 to 90.
    Nines,
}

/// The quantity that varies within a panel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) scale: Scale,
}

/// A value derived from a panel's readings. Each view is a plot and a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Distinguishes the views of one panel. Empty if there is only one.
    pub(crate) id: &'static str,
    /// The label of the y axis, with its unit.
    pub(crate) label: &'static str,
    pub(crate) metric: Metric,
    pub(crate) scale: Scale,
    pub(crate) higher_is_better: bool,
}

impl View {
    pub(crate) const MILLION_PER_SECOND: View = View {
        id: "",
        label: "M items/s",
        metric: Metric::MillionPerSecond,
        scale: Scale::Linear,
        higher_is_better: true,
    };
    pub(crate) const CYCLES: View = View {
        id: "",
        label: "cycles an operation",
        metric: Metric::CyclesEach,
        scale: Scale::Linear,
        higher_is_better: false,
    };
    pub(crate) const NANOSECONDS: View =
        View { id: "", label: "ns", metric: Metric::NanosecondsEach, scale: Scale::Linear, higher_is_better: false };
    /// Nanoseconds at each percentile.
    pub(crate) const PERCENTILES: View =
        View { id: "", label: "ns", metric: Metric::Values, scale: Scale::Log, higher_is_better: false };
    pub(crate) const CPU_NANOSECONDS: View = View {
        id: "cpu",
        label: "CPU ns an item, all threads",
        metric: Metric::CpuNanosecondsEach,
        scale: Scale::Log,
        higher_is_better: false,
    };

    /// Nanoseconds for each item that goes from one thread to another, and its CPU time.
    pub(crate) const NANOSECONDS_A_TRANSFER: View =
        View { label: "ns a transfer", scale: Scale::Log, ..View::NANOSECONDS };
    pub(crate) const CPU_NANOSECONDS_A_TRANSFER: View = View { label: "CPU ns a transfer", ..View::CPU_NANOSECONDS };
    /// Jobs done, the CPU time of all threads for a job, and the context switches.
    pub(crate) const MILLION_JOBS: View = View { label: "M jobs/s", scale: Scale::Log, ..View::MILLION_PER_SECOND };
    pub(crate) const CPU_NANOSECONDS_A_JOB: View = View { label: "CPU ns a job, all threads", ..View::CPU_NANOSECONDS };
    pub(crate) const SWITCHES: View = View {
        id: "switches",
        label: "context switches/s",
        metric: Metric::SwitchesPerSecond,
        scale: Scale::Log,
        higher_is_better: false,
    };
    /// The share of one core that idle waiting threads use.
    pub(crate) const PERCENT_OF_A_CORE: View =
        View { id: "", label: "% of a core", metric: Metric::Values, scale: Scale::Log, higher_is_better: false };

    pub(crate) const fn scale(self, scale: Scale) -> View {
        View { scale, ..self }
    }
}

/// The code that runs a case.
pub(crate) type Run = Box<dyn Fn(&Setting) -> Outcome>;

/// One contender at one point, or at several points that one run measures.
pub(crate) struct Case {
    pub(crate) series: String,
    pub(crate) kind: Kind,
    pub(crate) xs: Vec<f64>,
    /// The fewest items of a sample: far above the capacity.
    pub(crate) least: u64,
    pub(crate) run: Run,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("series", &self.series).field("xs", &self.xs).finish_non_exhaustive()
    }
}

/// Cases that are compared with each other.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) x: Option<Axis>,
    pub(crate) views: Vec<View>,
    /// The CPUs of the producer and the consumer.
    pub(crate) cpus: [Option<Cpu>; 2],
    /// Whether to read hardware counters.
    pub(crate) counting: bool,
    pub(crate) cases: Vec<Case>,
    /// Contenders that are not in the panel, and the reasons.
    pub(crate) left_out: Vec<(String, String)>,
}

impl Panel {
    /// Adds a view of the same readings.
    pub(crate) fn view(&mut self, view: View) -> &mut Self {
        self.views.push(view);
        self
    }

    /// Records why a contender is not in the panel.
    pub(crate) fn leave_out(&mut self, series: impl Into<String>, reason: impl Into<String>) {
        self.left_out.push((series.into(), reason.into()));
    }

    /// Adds any case.
    pub(crate) fn case(
        &mut self,
        series: impl Into<String>,
        kind: Kind,
        xs: &[f64],
        least: u64,
        run: impl Fn(&Setting) -> Outcome + 'static,
    ) {
        self.cases.push(Case { series: series.into(), kind, xs: xs.to_vec(), least, run: Box::new(run) });
    }

    /// Adds a case for each of these queues.
    pub(crate) fn queues<T: Item>(
        &mut self,
        queues: impl IntoIterator<Item = Queue<T>>,
        xs: &[f64],
        least: u64,
        run: impl Fn(&Queue<T>, &Setting) -> Outcome + Clone + 'static,
    ) {
        for queue in queues {
            let run = run.clone();
            self.case(queue.name.clone(), queue.kind, xs, least, move |setting| run(&queue, setting));
        }
    }

    /// One call an item on both sides.
    pub(crate) fn one_by_one<T: Item>(&mut self, queues: impl IntoIterator<Item = Queue<T>>, x: f64, capacity: usize) {
        let run = move |queue: &Queue<T>, setting: &Setting| queue.runs.one_by_one(setting, capacity);
        self.queues(queues, &[x], far_above(capacity), run);
    }

    /// From many threads to many, as far as the contenders allow.
    pub(crate) fn hand_over(&mut self, queues: &[Many], x: f64, putters: usize, takers: usize) {
        for queue in queues {
            if takers > 1 && queue.has_one_taker {
                let name = format!("{} to several", queue.name);
                if self.left_out.iter().all(|(known, _)| *known != name) {
                    self.leave_out(name, "has one receiver");
                }
                continue;
            }
            let runs = queue.runs.clone();
            let run = move |setting: &Setting| runs.hand_over(setting, putters, takers);
            self.case(queue.name, queue.kind, &[x], 1000, run);
        }
    }

    /// FastForward with a slip tuned for one queue on these CPUs.
    pub(crate) fn tuned_fast_forward(&mut self, x: f64, capacity: usize) {
        self.case(slip::TUNED, Kind::Paper, &[x], far_above(capacity), move |setting| {
            fast_forward_tuned(slip::for_one_queue(setting, capacity)).runs.one_by_one(setting, capacity)
        });
    }

    /// The lower limit of round trips: the bare machine.
    pub(crate) fn raw_ping_pong(&mut self, x: f64) {
        self.case(roofline::PING_PONG, Kind::Roofline, &[x], 2000, roofline::ping_pong);
    }

    /// The upper limit of rates: the bare machine.
    pub(crate) fn raw_streaming<T: Item>(&mut self, x: f64) {
        self.case(roofline::STREAMING, Kind::Roofline, &[x], 100_000, roofline::streaming::<T>);
    }
}

/// Many laps of the ring.
pub(crate) fn far_above(capacity: usize) -> u64 {
    (50 * capacity as u64).max(20_000)
}

/// The panels of an experiment on this machine.
#[derive(Debug)]
pub(crate) struct Plan {
    places: Vec<Place>,
    pub(crate) panels: Vec<Panel>,
    /// Facts about this machine or run that a reader of the result needs.
    pub(crate) notes: Vec<String>,
    /// Notes that measurements add.
    pub(crate) found: Rc<RefCell<Vec<String>>>,
}

impl Plan {
    /// An empty plan for these kinds of CPU pairs.
    pub(crate) fn new(places: Vec<Place>) -> Self {
        Plan { places, panels: Vec::new(), notes: Vec::new(), found: Rc::default() }
    }

    /// One pair of CPUs of every kind the machine has, nearest first. On a machine with one CPU, one `None`: both
    /// threads then share that CPU.
    pub(crate) fn each_place(&self) -> Vec<Option<Place>> {
        if self.places.is_empty() { vec![None] } else { self.places.iter().copied().map(Some).collect() }
    }

    /// The pair for experiments that do not compare places: the nearest pair of two cores.
    pub(crate) fn usual_place(&self) -> Option<Place> {
        use crate::topology::Near;
        self.places.iter().find(|place| place.near != Near::Core).or(self.places.first()).copied()
    }

    /// Adds a panel at one pair of CPUs. Without a pair, both threads share the only CPU.
    pub(crate) fn panel(
        &mut self,
        id: impl Into<String>,
        title: impl Into<String>,
        place: Option<Place>,
        x: Option<Axis>,
        view: View,
    ) -> &mut Panel {
        let (mut id, mut title) = (id.into(), title.into());
        if let Some(place) = place {
            id = format!("{id}.{}", place.near.id());
            title = format!("{title}; {}", place.near.label());
        }
        let cpus = match place {
            Some(Place { cpus: [a, b], .. }) => [Some(a), Some(b)],
            None => [None, None],
        };
        self.panel_on(id, title, cpus, x, view)
    }

    /// Adds a panel at any CPUs.
    pub(crate) fn panel_on(
        &mut self,
        id: impl Into<String>,
        title: impl Into<String>,
        cpus: [Option<Cpu>; 2],
        x: Option<Axis>,
        view: View,
    ) -> &mut Panel {
        self.panels.push(Panel {
            id: id.into(),
            title: title.into(),
            x,
            views: vec![view],
            cpus,
            counting: false,
            cases: Vec::new(),
            left_out: Vec::new(),
        });
        self.panels.last_mut().expect("just pushed")
    }
}
