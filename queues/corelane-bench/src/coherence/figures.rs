//! The papers' figures that a directory of cache lines can repeat, for the experiment `cache-lines`.

use super::cases::{self, Amount, Case, FREE, Part};
use super::counts;
use super::emulator::Emulator;
use crate::contenders::{Kind, Unable};
use crate::measure::{Failure, Outcome, Reading};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The counts, and how long counting took.
type Counted = (counts::Reading, Duration);

/// Counts the figures' cases, in an emulator that is started for the first of them.
pub(crate) struct Figures {
    cases: Vec<Case>,
    emulator: OnceCell<Result<Emulator, Unable>>,
    known: RefCell<BTreeMap<(usize, bool), Counted>>,
}

impl Figures {
    pub(crate) fn new() -> Self {
        Figures { cases: cases::all(), emulator: OnceCell::new(), known: RefCell::default() }
    }

    /// The queues of a figure.
    pub(crate) fn queues(&self, part: Part) -> Vec<(String, Kind)> {
        let of_it = self.cases.iter().filter(|case| case.part == part);
        let mut queues: Vec<_> = of_it.map(|case| (case.queue.clone(), case.kind)).collect();
        queues.dedup();
        queues
    }

    /// Counts a queue in turns: a value for each of `TURNS`. Counted once, because the counts repeat exactly.
    pub(crate) fn in_turns(&self, part: Part, queue: &str, quick: bool) -> Outcome {
        self.reading(|case| case.part == part && case.run != FREE, queue, quick, false)
    }

    /// Counts both threads of a queue at once. These counts depend on time, so they are counted in each round, or once
    /// if the run only checks that the case works.
    pub(crate) fn at_once(&self, part: Part, queue: &str, quick: bool) -> Outcome {
        self.reading(|case| case.part == part && case.run == FREE, queue, quick, !quick)
    }

    /// The counts of a queue. Counts that repeat exactly are taken for all queues together, several at a time.
    fn reading(&self, of_figure: impl Fn(&Case) -> bool, queue: &str, quick: bool, anew: bool) -> Outcome {
        let numbers = |is_wanted: &dyn Fn(&Case) -> bool| -> Vec<usize> {
            (0..self.cases.len()).filter(|&case| of_figure(&self.cases[case]) && is_wanted(&self.cases[case])).collect()
        };
        let wanted = numbers(&|case| case.queue == queue);
        if anew {
            self.count(&wanted, quick)?;
        } else if wanted.iter().any(|&case| !self.known.borrow().contains_key(&(case, quick))) {
            self.count(&numbers(&|_| true), quick)?;
        }
        let known = self.known.borrow();
        let counted: Vec<_> = wanted.iter().map(|&case| (&self.cases[case], &known[&(case, quick)])).collect();
        Ok(Reading {
            items: counted.iter().map(|(_, (counted, _))| counted.items).sum(),
            wall: counted.iter().map(|(_, (_, took))| *took).sum(),
            cpu: Duration::ZERO,
            full: 0,
            empty: 0,
            counts: None,
            values: counted.iter().map(|(case, (counted, _))| value(case, counted)).collect(),
        })
    }

    fn count(&self, cases: &[usize], quick: bool) -> Result<(), Failure> {
        let prepare = || Emulator::prepare().map_err(|missing| Unable::because(missing.0));
        let emulator = self.emulator.get_or_init(prepare).as_ref().map_err(Unable::clone)?;
        let amount = if quick { Amount::Quick } else { Amount::Full };
        let begun = Instant::now();
        let counted = emulator.count(&self.cases, cases, amount).map_err(Unable::because)?;
        let each = begun.elapsed() / cases.len() as u32;
        self.known.borrow_mut().extend(counted.into_iter().map(|(case, counted)| ((case, quick), (counted, each))));
        Ok(())
    }
}

/// Figure 11 shows lines moved an item, and the writes by which other threads lose a copy. The tables show how many of
/// 100 accesses another thread's cache serves.
fn value(case: &Case, counted: &counts::Reading) -> f64 {
    match case.part {
        Part::Table2 | Part::Table3 => 100.0 * counted.moved() as f64 / counted.accesses() as f64,
        _ => {
            let per = counted.per_item(case.putters);
            per.out + per.back + per.upgrades
        }
    }
}
