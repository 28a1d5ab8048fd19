//! What a run has used.

use cpu_time::ProcessTime;
use std::time::Duration;

/// The processor time of all threads of the process; zero if the system does not report it.
pub(super) fn cpu_time() -> Duration {
    ProcessTime::try_now().map_or(Duration::ZERO, |time| time.as_duration())
}

/// The most memory that the process had at one time, in bytes, if the system reports it.
pub(super) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}
