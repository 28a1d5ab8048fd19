//! What an experiment measures: panels of cases.

use crate::contender::{Batches, Kind, ManyToMany, Pair, Waits};
use crate::contenders::FastForwardTuned;
use crate::item::Item;
use crate::measure::{self, AGES, Metric, Outcome, PERCENTILES, Pace, Rate};
use crate::roofline;
use crate::setting::Setting;
use crate::slip;
use crate::topology::{Cpu, Place};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One of the papers' experiments, or one of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Experiment {
    pub(crate) name: &'static str,
    /// One line.
    pub(crate) title: &'static str,
    /// Paper, section, figure or table.
    pub(crate) repeats: &'static str,
    /// What to look for in the result, and what a reader may wonder about.
    pub(crate) about: &'static str,
    pub(crate) parameters: &'static [Parameter],
    /// Fills in the panels.
    pub(crate) plan: fn(&mut Plan),
}

/// A fixed value of an experiment and where it is from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) here: &'static str,
    /// What the paper has; `None` for values that the paper does not give, which are ours.
    pub(crate) paper: Option<&'static str>,
}

/// How an axis is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scale {
    Linear,
    /// By powers of ten.
    Log,
    /// By powers of two.
    Log2,
    /// For percentiles: 90, 99, 99.9 are as far apart as 0 and 90.
    Nines,
}

/// What varies within a panel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) label: &'static str,
    pub(crate) scale: Scale,
}

/// What is made of a panel's readings; each view is a plot and a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Distinguishes the views of one panel; empty for the only one.
    pub(crate) id: &'static str,
    /// Label of the y axis, with the unit.
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

    /// Nanoseconds for each item that goes from one thread to another, and CPU time for it.
    pub(crate) const NANOSECONDS_A_TRANSFER: View =
        View { label: "ns a transfer", scale: Scale::Log, ..View::NANOSECONDS };
    pub(crate) const CPU_NANOSECONDS_A_TRANSFER: View = View { label: "CPU ns a transfer", ..View::CPU_NANOSECONDS };
    /// Jobs that are done, what they take of all threads' CPU time, and how often those change places.
    pub(crate) const MILLION_JOBS: View = View { label: "M jobs/s", scale: Scale::Log, ..View::MILLION_PER_SECOND };
    pub(crate) const CPU_NANOSECONDS_A_JOB: View = View { label: "CPU ns a job, all threads", ..View::CPU_NANOSECONDS };
    pub(crate) const SWITCHES: View = View {
        id: "switches",
        label: "context switches/s",
        metric: Metric::SwitchesPerSecond,
        scale: Scale::Log,
        higher_is_better: false,
    };
    /// What waits and has nothing to do takes of one core.
    pub(crate) const PERCENT_OF_A_CORE: View =
        View { id: "", label: "% of a core", metric: Metric::Values, scale: Scale::Log, higher_is_better: false };

    pub(crate) const fn scale(self, scale: Scale) -> View {
        View { scale, ..self }
    }
}

/// How a case is run.
pub(crate) type Run = Box<dyn Fn(&Setting) -> Outcome>;

/// One contender at one point, or at several that one run gives.
pub(crate) struct Case {
    pub(crate) series: String,
    pub(crate) kind: Kind,
    pub(crate) xs: Vec<f64>,
    /// The fewest items that make a sample: far above the capacity.
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
    /// The producer's CPU and the consumer's.
    pub(crate) cpus: [Option<Cpu>; 2],
    /// Whether to read hardware counters.
    pub(crate) counting: bool,
    pub(crate) cases: Vec<Case>,
    /// Contenders that are not here, and why.
    pub(crate) left_out: Vec<(String, String)>,
}

impl Panel {
    /// Adds a view of the same readings.
    pub(crate) fn view(&mut self, view: View) -> &mut Self {
        self.views.push(view);
        self
    }

    /// Says why a contender is not here.
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

    /// One call an item on both sides.
    pub(crate) fn one_by_one<P: Pair<T>, T: Item>(&mut self, x: f64, capacity: usize) {
        let run = move |setting: &Setting| measure::one_by_one::<P, T>(setting, capacity);
        self.case(P::name(), P::KIND, &[x], far_above(capacity), run);
    }

    /// Slices of `BATCH` on both sides.
    pub(crate) fn in_batches<P: Batches<T>, T: Item, const BATCH: usize>(&mut self, x: f64, capacity: usize) {
        let run = move |setting: &Setting| measure::in_batches::<P, T, BATCH>(setting, capacity);
        self.case(P::name(), P::KIND, &[x], far_above(capacity), run);
    }

    /// One item there and back.
    pub(crate) fn round_trip<P: Pair<T>, T: Item>(&mut self, x: f64, capacity: usize) {
        let run = move |setting: &Setting| measure::round_trip::<P, T>(setting, capacity);
        self.case(P::name(), P::KIND, &[x], 2000, run);
    }

    /// One-way latency of items that come at set times; the x are the percentiles.
    pub(crate) fn paced<P: Pair<u64>>(&mut self, capacity: usize, pace: Pace) {
        let run = move |setting: &Setting| measure::paced::<P>(setting, capacity, pace);
        self.case(P::name(), P::KIND, &PERCENTILES, far_above(capacity), run);
    }

    /// How old items are at a rate; the x are the percentiles.
    pub(crate) fn aged<P: Pair<u64>>(&mut self, capacity: usize, rate: impl Fn(&Setting) -> Rate + 'static) {
        let run = move |setting: &Setting| measure::aged::<P>(setting, capacity, rate(setting));
        self.case(P::name(), P::KIND, &AGES, far_above(capacity), run);
    }

    /// Several queues whose ends wait as the contender does.
    pub(crate) fn waiting<P: Waits<T>, T: Item>(&mut self, x: f64, capacity: usize, pairs: usize) {
        let run = move |setting: &Setting| measure::waiting::<P, T>(setting, capacity, pairs);
        self.case(P::name(), P::KIND, &[x], far_above(capacity) * pairs as u64, run);
    }

    /// Several queues whose ends give up their time slice when they cannot go on.
    pub(crate) fn yielding<P: Pair<T>, T: Item>(&mut self, x: f64, capacity: usize, pairs: usize) {
        let run = move |setting: &Setting| measure::yielding::<P, T>(setting, capacity, pairs);
        let name = format!("{} + yield", P::name());
        self.case(name, P::KIND, &[x], far_above(capacity) * pairs as u64, run);
    }

    /// From many threads to many, as far as the contender can.
    pub(crate) fn hand_over<M: ManyToMany>(&mut self, x: f64, putters: usize, takers: usize) {
        if takers > 1 && M::ONE_TAKER {
            let name = format!("{} to several", M::name());
            if self.left_out.iter().all(|(known, _)| *known != name) {
                self.leave_out(name, "has one receiver");
            }
            return;
        }
        let run = move |setting: &Setting| measure::hand_over::<M>(setting, putters, takers);
        self.case(M::name(), M::KIND, &[x], 1000, run);
    }

    /// FastForward with a slip that was tuned for one queue here.
    pub(crate) fn tuned_fast_forward(&mut self, x: f64, capacity: usize) {
        self.case(<FastForwardTuned as Pair<u64>>::name(), Kind::Paper, &[x], far_above(capacity), move |setting| {
            FastForwardTuned::slip(slip::for_one_queue(setting, capacity));
            measure::one_by_one::<FastForwardTuned, u64>(setting, capacity)
        });
    }

    /// The floor of round trips.
    pub(crate) fn raw_ping_pong(&mut self, x: f64) {
        self.case(roofline::PING_PONG, Kind::Roofline, &[x], 2000, roofline::ping_pong);
    }

    /// The ceiling of rates.
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
    /// What a reader of the result has to know about this machine or run.
    pub(crate) notes: Vec<String>,
}

impl Plan {
    /// Nothing yet, on these kinds of CPU pairs.
    pub(crate) fn new(places: Vec<Place>) -> Self {
        Plan { places, panels: Vec::new(), notes: Vec::new() }
    }

    /// One pair of CPUs of every kind the machine has, nearest first. Without any, one `None`: both threads then have
    /// the only CPU there is.
    pub(crate) fn each_place(&self) -> Vec<Option<Place>> {
        if self.places.is_empty() { vec![None] } else { self.places.iter().copied().map(Some).collect() }
    }

    /// The pair that experiments use which are about something else than places: the nearest of two cores.
    pub(crate) fn usual_place(&self) -> Option<Place> {
        use crate::topology::Near;
        self.places.iter().find(|place| place.near != Near::Core).or(self.places.first()).copied()
    }

    /// Adds a panel at one pair of CPUs; without one, both threads have the only CPU there is.
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
