//! One run: all that it depends on, and where all goes that it finds.

use crate::continuous::Continuous;
use crate::findings::Findings;
use crate::inspect::{Found, Inspection};
use crate::plan::{Plan, PlanError};
use crate::report::Report;
use crate::settings::Settings;
use crate::source::{Progress, Source};

/// A run. What it finds depends on all of this but the plan.
#[derive(Clone, Debug)]
pub struct Job {
    /// The scan detector's settings. Without an end [`counting`](Settings::counting) and [`top`](Settings::top), which
    /// need a whole capture, are not heeded.
    pub settings: Settings,
    /// The number of stages, and their CPUs.
    pub plan: Plan,
    /// What is looked for in conversations, if their [payload](Inspection::payload) is.
    pub inspection: Inspection,
    /// The settings of time, if the run goes on [without an end](Job::run).
    pub continuous: Option<Continuous>,
}

/// Where all goes that a run finds.
pub struct Observer<'a, E> {
    /// How far the run is, from 0 on. It ends early, with the results so far, when this says stop.
    pub progress: &'a Progress,
    /// Gets each error, with the number of the source it is in. The report covers everything that was whole. Several
    /// [rings](Job::run_rings) may call it at a time.
    pub damage: &'a (dyn Fn(usize, E) + Sync),
    /// Gets events, scans and numbers as they come; in a thread of its own if the plan has any.
    pub found: &'a mut (dyn FnMut(Found<'_>) + Send),
}

impl<E> std::fmt::Debug for Observer<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("progress", self.progress).finish_non_exhaustive()
    }
}

impl Job {
    /// The scan detector alone, over captures that end.
    pub fn scans(settings: Settings, plan: Plan) -> Self {
        let inspection = Inspection { payload: false, ..Inspection::default() };
        Job { settings, plan, inspection, continuous: None }
    }

    /// Runs over the records of all sources, as one capture in this order. Sources are read in the calling thread
    /// unless the plan names CPUs. The calling thread itself is never pinned.
    ///
    /// With [`continuous`](Job::continuous) the records may come for months: from an interface, or from captures as if
    /// they came from one. Then time passes in [`Steps`](crate::Steps), and nothing is kept for ever: conversations and
    /// flows end when they are silent, failures are forgotten, and scans are reported at once. So memory does not grow
    /// with time. Flows and scans differ from those of a whole capture where something was forgotten, and the report
    /// counts flows as begun and has no address pairs.
    ///
    /// Events come by packet; without an end the scans of a step come at its end, behind all that its end has brought
    /// about. The alerts and statistics that follow from the report are written by [`eve`](crate::eve).
    ///
    /// # Errors
    /// If the plan cannot be carried out; then nothing was read.
    ///
    /// # Panics
    /// If a stage panics, with its panic.
    pub fn run<S: Source>(
        &self,
        sources: impl IntoIterator<Item = S> + Send,
        observer: Observer<'_, S::Error>,
    ) -> Result<(Report, Findings), PlanError> {
        crate::inspect::start(self, vec![sources], observer)
    }

    /// The same over the rings of one interface, each read in a thread of its own by a Dispatcher with stages of its
    /// own: at least one, and their share of [`Plan::analyzers`]. No address pair may be in two rings. Without rings
    /// there are no packets.
    ///
    /// A step is over for scans when all rings have passed it. The events are those of one ring, but for their order,
    /// the numbers of packets and the names of flows. Errors come with the number of the source, which is always 0.
    ///
    /// # Errors
    /// As [`run`](Job::run).
    ///
    /// # Panics
    /// As [`run`](Job::run).
    pub fn run_rings<S: Source + Send>(
        &self,
        rings: Vec<S>,
        observer: Observer<'_, S::Error>,
    ) -> Result<(Report, Findings), PlanError> {
        let mut rings: Vec<_> = rings.into_iter().map(Some).collect();
        if rings.is_empty() {
            rings.push(None);
        }
        crate::inspect::start(self, rings, observer)
    }
}
