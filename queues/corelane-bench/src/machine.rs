//! The facts beside the code on which a figure depends: the machine, the system, the compiler and the commit.

use crate::rig::tick_rate;
use crate::topology::{self, Cache, Place, read};
use serde::{Deserialize, Serialize};

/// The facts kept with every result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The system's name for it, with family, model and stepping if the system tells.
    pub(crate) cpu: String,
    pub(crate) architecture: String,
    /// CPUs this process may use, by number.
    pub(crate) cpus: Vec<usize>,
    /// CPUs of the whole system.
    pub(crate) online: String,
    pub(crate) caches: Vec<Cache>,
    /// One pair of CPUs of each kind, and the cache they share.
    pub(crate) places: Vec<Place>,
    /// The CPUs are threads of a hypervisor, which may move them.
    pub(crate) virtual_machine: bool,
    pub(crate) system: String,
    pub(crate) kernel: String,
    /// The frequency governor of the first CPU.
    pub(crate) governor: String,
    /// Whether threads can be pinned. If they can, all are.
    pub(crate) pinned: bool,
    /// The rate of the counter in which "cycles" are counted.
    pub(crate) counter_hz: f64,
    /// Whether the system says that the counter has a constant rate and agrees between CPUs.
    pub(crate) counter_constant: bool,
    /// Hardware counters, or why there are none.
    pub(crate) counters: Result<(), String>,
    pub(crate) compiler: String,
    /// Profile and flags.
    pub(crate) build: String,
    pub(crate) commit: String,
}

impl Machine {
    /// Collects the facts.
    pub(crate) fn look() -> Self {
        let info = read("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            info.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            })
        };
        let flags = field("flags").or_else(|| field("Features")).unwrap_or_default();
        let has = |flag: &str| flags.split(' ').any(|has| has == flag);
        let mut cpu = field("model name").or_else(|| field("CPU part")).unwrap_or_else(|| "unknown".to_owned());
        if let (Some(family), Some(model), Some(stepping)) = (field("cpu family"), field("model"), field("stepping")) {
            cpu = format!("{cpu} (family {family}, model {model}, stepping {stepping})");
        }
        let cpus: Vec<_> = topology::cpus().iter().map(|cpu| cpu.0).collect();
        let governor = cpus
            .first()
            .and_then(|cpu| read(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")))
            .unwrap_or_else(|| "not shown by the system".to_owned());
        Machine {
            cpu,
            architecture: std::env::consts::ARCH.to_owned(),
            cpus,
            online: read("/sys/devices/system/cpu/online").unwrap_or_else(|| "unknown".to_owned()),
            caches: topology::caches(),
            places: topology::places(),
            virtual_machine: has("hypervisor"),
            system: std::env::consts::OS.to_owned(),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
            governor,
            pinned: topology::can_pin(),
            counter_hz: tick_rate(),
            counter_constant: cfg!(target_arch = "aarch64") || has("constant_tsc") && has("nonstop_tsc"),
            counters: crate::counters::available(),
            compiler: env!("BENCH_COMPILER").to_owned(),
            build: env!("BENCH_BUILD").to_owned(),
            commit: env!("BENCH_COMMIT").to_owned(),
        }
    }

    /// A few lines for the terminal.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{}, {} CPUs{}, kernel {}",
            self.cpu,
            self.cpus.len(),
            if self.virtual_machine { " of a virtual machine" } else { "" },
            self.kernel
        )];
        for place in &self.places {
            let [a, b] = place.cpus;
            lines.push(format!("CPUs {} and {}: {}", a.0, b.0, place.near.label()));
        }
        lines.push(format!(
            "threads {}, governor: {}, counters: {}",
            if self.pinned { "pinned" } else { "not pinned" },
            self.governor,
            match &self.counters {
                Ok(()) => "yes",
                Err(reason) => reason,
            }
        ));
        lines.push(format!("{}, {}, commit {}", self.compiler, self.build, self.commit));
        lines
    }
}
