//! How many stages there are, and their CPUs.

use crate::slot::PARTITIONS;
use core_affinity::CoreId;
use corelane::error::ChannelError;
use std::collections::HashSet;
use std::fmt;
use std::thread;

/// The number of stages and their CPUs. The report does not depend on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of SubAnalyzers; with 0 one thread does everything, without queues.
    pub analyzers: usize,
    /// The CPUs to which the stages are pinned: Dispatcher, SubAnalyzers, MainAnalyzer, in this order. The list starts
    /// over when it is used up. An empty list leaves the stages to the kernel.
    pub cpus: Vec<usize>,
    /// For tests: the capacity of each queue, in slots or in state reports.
    #[doc(hidden)]
    pub capacity: usize,
    /// For tests: partitions move to and fro all the time, whatever the load.
    #[doc(hidden)]
    pub restless: bool,
}

impl Plan {
    /// The most SubAnalyzers, since each owns at least one partition.
    pub const MOST_ANALYZERS: usize = PARTITIONS;
    /// The capacity of a queue in slots: a quarter of a megabyte, which both cores keep at hand. With 2,000 slots the
    /// Dispatcher sleeps more often, and each wake-up is a system call of the SubAnalyzer.
    pub(crate) const CAPACITY: usize = 8192;

    /// The fastest number of SubAnalyzers. If [payload](crate::Inspection::payload) is inspected it is one for every
    /// CPU, since the Dispatcher then needs little of its CPU. Otherwise it is one for every CPU but one, and at least
    /// one, since the Dispatcher needs about half of its CPU and analyses in the rest.
    pub fn fastest_analyzers(payload: bool) -> usize {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let reading = if payload { 0 } else { 1 };
        (cpus - reading).clamp(1, Plan::MOST_ANALYZERS)
    }

    /// Checks the number of SubAnalyzers and the CPUs.
    ///
    /// # Errors
    /// If the plan cannot be carried out.
    pub fn check(&self) -> Result<(), PlanError> {
        self.pins().map(drop)
    }

    /// Checks the plan, and finds its CPUs.
    pub(crate) fn pins(&self) -> Result<Pins, PlanError> {
        if self.analyzers > Plan::MOST_ANALYZERS {
            return Err(PlanError::TooManyAnalyzers);
        }
        Pins::new(&self.cpus)
    }

    /// Whether and how partitions move: not without a CPU for each stage that analyses.
    pub(crate) fn sharing(&self) -> Sharing {
        let cpus = match self.cpus.len() {
            0 => thread::available_parallelism().map_or(1, usize::from),
            // The CPUs of the Dispatcher and the SubAnalyzers; the MainAnalyzer has little to do.
            _ => self.cpus.iter().cycle().take(1 + self.analyzers).collect::<HashSet<_>>().len(),
        };
        if self.restless {
            Sharing::Restless
        } else if cpus <= self.analyzers {
            Sharing::Fixed
        } else {
            Sharing::Even
        }
    }
}

/// Whether partitions move while packets flow. The report does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// The Dispatcher takes partitions over while it would only wait, and gives them back when it is the slower stage.
    Even,
    /// Each SubAnalyzer keeps its part, and the Dispatcher analyses nothing. Where the Dispatcher and the SubAnalyzers
    /// do not each have a CPU, the Dispatcher waits for a CPU that other stages use.
    Fixed,
    /// For tests: partitions move to and fro all the time, whatever the load.
    Restless,
}

impl Sharing {
    /// Records between two looks at the time.
    pub(crate) fn period(self) -> u64 {
        match self {
            Sharing::Even => 1 << 16,
            Sharing::Fixed => u64::MAX,
            Sharing::Restless => 1,
        }
    }

    /// The most records to read at once.
    pub(crate) fn read(self) -> usize {
        match self {
            Sharing::Even | Sharing::Fixed => 4096,
            Sharing::Restless => 61,
        }
    }
}

impl Default for Plan {
    /// The plan for a run that inspects no payload.
    fn default() -> Self {
        Plan { analyzers: Plan::fastest_analyzers(false), cpus: Vec::new(), capacity: Plan::CAPACITY, restless: false }
    }
}

/// Why a plan cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// More SubAnalyzers than partitions.
    TooManyAnalyzers,
    /// A queue that cannot be made.
    Queue(ChannelError),
    /// A CPU that this process may not run on.
    NoSuchCpu(usize),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::TooManyAnalyzers => write!(f, "the plan has too many analyzers: give at most {PARTITIONS}"),
            PlanError::Queue(error) => error.fmt(f),
            PlanError::NoSuchCpu(cpu) => {
                write!(f, "CPU {cpu} is not there or not allowed for this process; choose another")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// The CPUs of the stages.
pub(crate) struct Pins(Vec<CoreId>);

impl Pins {
    pub(crate) fn new(cpus: &[usize]) -> Result<Self, PlanError> {
        if cpus.is_empty() {
            return Ok(Pins(Vec::new()));
        }
        let all = core_affinity::get_core_ids().unwrap_or_default();
        let find = |&cpu| all.iter().find(|core| core.id == cpu).copied().ok_or(PlanError::NoSuchCpu(cpu));
        Ok(Pins(cpus.iter().map(find).collect::<Result<_, _>>()?))
    }

    /// Pins the calling thread, stage number `stage`.
    pub(crate) fn pin(&self, stage: usize) {
        if !self.0.is_empty() {
            core_affinity::set_for_current(self.0[stage % self.0.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_move_only_if_each_stage_that_analyses_has_a_cpu() {
        let sharing = |analyzers, cpus: &[usize]| Plan { analyzers, cpus: cpus.to_vec(), ..Plan::default() }.sharing();
        for (analyzers, cpus) in [(2, &[0, 1, 2][..]), (2, &[5, 1, 2, 3]), (1, &[0, 1]), (1, &[0, 1, 1])] {
            assert_eq!(sharing(analyzers, cpus), Sharing::Even, "{analyzers} {cpus:?}");
        }
        // The third CPU is the last stage's alone, or no stage's.
        for (analyzers, cpus) in
            [(2, &[0, 0, 1, 2][..]), (1, &[0, 0, 1]), (1, &[3]), (3, &[0, 1, 2]), (1, &[0, 0, 0, 1, 2])]
        {
            assert_eq!(sharing(analyzers, cpus), Sharing::Fixed, "{analyzers} {cpus:?}");
        }
    }
}
