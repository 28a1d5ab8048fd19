//! Counts of a thread beside its time: by the hardware, if the machine allows it, and by the system.

use serde::{Deserialize, Serialize};

/// The values of the counters, where there are any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Retired instructions.
    pub(crate) instructions: Option<u64>,
    /// Core cycles, which follow the core's frequency.
    pub(crate) cycles: Option<u64>,
    /// Reads of the level-1 data cache.
    pub(crate) l1_reads: Option<u64>,
    /// Reads of the level-1 data cache that missed it.
    pub(crate) l1_misses: Option<u64>,
    /// Reads that missed the last level of cache.
    pub(crate) llc_misses: Option<u64>,
    /// Context switches because the thread slept.
    pub(crate) voluntary_switches: Option<u64>,
    /// Context switches because another thread got the CPU. Linux counts yields here.
    pub(crate) involuntary_switches: Option<u64>,
}

impl Counts {
    /// All context switches.
    pub(crate) fn switches(&self) -> Option<u64> {
        Some(self.voluntary_switches? + self.involuntary_switches?)
    }

    /// The sum of two threads' counts, for the values that both have.
    pub(crate) fn plus(self, other: Counts) -> Counts {
        let add = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        Counts {
            instructions: add(self.instructions, other.instructions),
            cycles: add(self.cycles, other.cycles),
            l1_reads: add(self.l1_reads, other.l1_reads),
            l1_misses: add(self.l1_misses, other.l1_misses),
            llc_misses: add(self.llc_misses, other.llc_misses),
            voluntary_switches: add(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: add(self.involuntary_switches, other.involuntary_switches),
        }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{Counters, available};

#[cfg(target_os = "linux")]
mod linux {
    use super::Counts;
    use crate::topology;
    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware};
    use perf_event::{Builder, Counter};
    use std::io;

    /// The counters of the thread that opened them: instructions, cycles, reads of L1 and those that missed it, and
    /// reads that missed the last level.
    #[derive(Debug)]
    pub(crate) struct Counters {
        hardware: [Option<Counter>; 5],
        /// The thread's context switches when it started.
        switches: Option<[u64; 2]>,
    }

    /// The context switches of the calling thread so far, voluntary and involuntary.
    fn switches() -> Option<[u64; 2]> {
        let status = topology::read("/proc/thread-self/status")?;
        let count = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Some([count("voluntary_ctxt_switches:")?, count("nonvoluntary_ctxt_switches:")?])
    }

    fn open(event: impl Event) -> io::Result<Counter> {
        Builder::new(event).build()
    }

    fn cache(which: CacheId, result: CacheResult) -> Cache {
        Cache { which, operation: CacheOp::READ, result }
    }

    /// Whether there are any counters, or why not.
    pub(crate) fn available() -> Result<(), String> {
        open(Hardware::INSTRUCTIONS).map(drop).map_err(|error| format!("none: {error}"))
    }

    impl Counters {
        /// Opens the available counters, for the calling thread.
        pub(crate) fn open() -> Self {
            let hardware = [
                open(Hardware::INSTRUCTIONS).ok(),
                open(Hardware::CPU_CYCLES).ok(),
                open(cache(CacheId::L1D, CacheResult::ACCESS)).ok(),
                open(cache(CacheId::L1D, CacheResult::MISS)).ok(),
                open(cache(CacheId::LL, CacheResult::MISS)).ok(),
            ];
            Counters { hardware, switches: None }
        }

        pub(crate) fn start(&mut self) {
            self.switches = switches();
            self.hardware.iter_mut().flatten().for_each(|counter| _ = counter.enable());
        }

        pub(crate) fn stop(&mut self) -> Counts {
            self.hardware.iter_mut().flatten().for_each(|counter| _ = counter.disable());
            let [voluntary_switches, involuntary_switches] = [0, 1].map(|kind| Some((self.switches?)[kind]));
            let after = switches();
            let since = |before: Option<u64>, kind: usize| Some(after?[kind] - before?);
            // More events than the CPU has counters take turns, so each value is scaled to the whole time.
            let read = |counter: &mut Option<Counter>| {
                let counted = counter.as_mut()?.read_count_and_time().ok()?;
                let share = counted.time_enabled as f64 / counted.time_running as f64;
                (counted.time_running != 0).then_some((counted.count as f64 * share) as u64)
            };
            let [instructions, cycles, l1_reads, l1_misses, llc_misses] = self.hardware.each_mut().map(read);
            Counts {
                instructions,
                cycles,
                l1_reads,
                l1_misses,
                llc_misses,
                voluntary_switches: since(voluntary_switches, 0),
                involuntary_switches: since(involuntary_switches, 1),
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::thread::sleep;
        use std::time::Duration;

        #[test]
        fn a_thread_that_sleeps_switches() {
            let mut counters = Counters::open();
            let mut sleeps = || {
                counters.start();
                (0..20).for_each(|_| sleep(Duration::from_micros(100)));
                let counts = counters.stop();
                assert!(counts.switches() >= counts.voluntary_switches, "{counts:?}");
                counts.voluntary_switches.expect("they are counted")
            };
            // In rare cases the time is up before the thread sleeps. Then there is no switch.
            assert!((0..10).any(|_| (20..200).contains(&sleeps())));
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
