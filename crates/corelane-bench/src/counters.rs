//! Hardware counters of a thread, where the machine has them.

use serde::{Deserialize, Serialize};

/// What the counters said, each where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Retired instructions.
    pub(crate) instructions: Option<u64>,
    /// Core cycles, which follow the core's frequency.
    pub(crate) cycles: Option<u64>,
    /// Reads of the level-1 data cache.
    pub(crate) l1_reads: Option<u64>,
    /// Those that missed it.
    pub(crate) l1_misses: Option<u64>,
    /// Reads that missed the last level of cache.
    pub(crate) llc_misses: Option<u64>,
}

impl Counts {
    /// The sum of two threads' counts; of what both counted.
    pub(crate) fn plus(self, other: Counts) -> Counts {
        let add = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Counts {
            instructions: add(self.instructions, other.instructions),
            cycles: add(self.cycles, other.cycles),
            l1_reads: add(self.l1_reads, other.l1_reads),
            l1_misses: add(self.l1_misses, other.l1_misses),
            llc_misses: add(self.llc_misses, other.llc_misses),
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{Counters, available};

#[cfg(target_os = "linux")]
mod linux {
    use super::Counts;
    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware};
    use perf_event::{Builder, Counter};
    use std::io;

    /// The counters of the thread that opened them.
    #[derive(Debug)]
    pub(crate) struct Counters {
        instructions: Option<Counter>,
        cycles: Option<Counter>,
        l1_reads: Option<Counter>,
        l1_misses: Option<Counter>,
        llc_misses: Option<Counter>,
    }

    fn open(event: impl Event) -> io::Result<Counter> {
        Builder::new(event).build()
    }

    fn cache(which: CacheId, result: CacheResult) -> Cache {
        Cache { which, operation: CacheOp::READ, result }
    }

    /// Whether there are any, or why not.
    pub(crate) fn available() -> Result<(), String> {
        open(Hardware::INSTRUCTIONS).map(drop).map_err(|error| format!("none: {error}"))
    }

    impl Counters {
        /// Opens those that there are, for the calling thread.
        pub(crate) fn open() -> Self {
            Counters {
                instructions: open(Hardware::INSTRUCTIONS).ok(),
                cycles: open(Hardware::CPU_CYCLES).ok(),
                l1_reads: open(cache(CacheId::L1D, CacheResult::ACCESS)).ok(),
                l1_misses: open(cache(CacheId::L1D, CacheResult::MISS)).ok(),
                llc_misses: open(cache(CacheId::LL, CacheResult::MISS)).ok(),
            }
        }

        fn all(&mut self) -> impl Iterator<Item = &mut Counter> {
            [&mut self.instructions, &mut self.cycles, &mut self.l1_reads, &mut self.l1_misses, &mut self.llc_misses]
                .into_iter()
                .flatten()
        }

        pub(crate) fn start(&mut self) {
            for counter in self.all() {
                let _ = counter.enable();
            }
        }

        pub(crate) fn stop(&mut self) -> Counts {
            for counter in self.all() {
                let _ = counter.disable();
            }
            // More events than the CPU has counters take turns: scaled to the whole time.
            let read = |counter: &mut Option<Counter>| {
                let counted = counter.as_mut()?.read_count_and_time().ok()?;
                if counted.time_running == 0 {
                    return None;
                }
                let share = counted.time_enabled as f64 / counted.time_running as f64;
                Some((counted.count as f64 * share) as u64)
            };
            Counts {
                instructions: read(&mut self.instructions),
                cycles: read(&mut self.cycles),
                l1_reads: read(&mut self.l1_reads),
                l1_misses: read(&mut self.l1_misses),
                llc_misses: read(&mut self.llc_misses),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Counters, available};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::Counts;

    #[derive(Debug)]
    pub(crate) struct Counters;

    pub(crate) fn available() -> Result<(), String> {
        Err("none: read on Linux only".to_owned())
    }

    impl Counters {
        pub(crate) fn open() -> Self {
            Counters
        }

        pub(crate) fn start(&mut self) {}

        pub(crate) fn stop(&mut self) -> Counts {
            Counts::default()
        }
    }
}
