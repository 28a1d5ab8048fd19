//! The CPUs, the caches that pairs of them share, and pinning.

use core_affinity::CoreId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::sync::OnceLock;

/// A CPU by the system's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Cpu(pub(crate) usize);

/// How near two CPUs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Near {
    /// One core runs both.
    Core,
    /// They share a level-2 cache: the "sibling cores" of the papers' older machines.
    L2,
    /// They share a level-3 cache.
    L3,
    /// They share a package, but no cache that the system reports.
    Package,
    /// Two packages.
    Machine,
    /// The system does not say.
    Unknown,
}

impl Near {
    /// For people.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Near::Core => "two threads of one core",
            Near::L2 => "cores that share L2",
            Near::L3 => "cores that share L3",
            Near::Package => "cores of one package",
            Near::Machine => "cores of two packages",
            Near::Unknown => "two CPUs",
        }
    }

    /// For names.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Near::Core => "core",
            Near::L2 => "l2",
            Near::L3 => "l3",
            Near::Package => "package",
            Near::Machine => "machine",
            Near::Unknown => "unknown",
        }
    }
}

/// A pair of CPUs to measure on, the first of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// What the two share.
    pub(crate) near: Near,
    /// The producer's CPU and the consumer's.
    pub(crate) cpus: [Cpu; 2],
}

/// A cache and the CPUs that share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cache {
    pub(crate) level: u32,
    /// Data, Instruction or Unified.
    pub(crate) kind: String,
    pub(crate) size: String,
    pub(crate) line: u32,
    pub(crate) cpus: String,
}

/// The CPUs that this process may use, taken from the first thread that asks. That is the planning thread, which is
/// never pinned.
pub(crate) fn cpus() -> &'static [Cpu] {
    static CPUS: OnceLock<Vec<Cpu>> = OnceLock::new();
    CPUS.get_or_init(|| {
        let mut cpus: Vec<_> =
            core_affinity::get_core_ids().unwrap_or_default().iter().map(|core| Cpu(core.id)).collect();
        cpus.sort_unstable();
        cpus
    })
}

/// Pins the calling thread. False if the system does not allow it.
pub(crate) fn pin(cpu: Cpu) -> bool {
    core_affinity::set_for_current(CoreId { id: cpu.0 })
}

/// Whether the system allows pinning. Tried in a thread that ends with the test, because no call here undoes a pin.
pub(crate) fn can_pin() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let Some(first) = cpus().first().copied() else { return false };
        std::thread::spawn(move || pin(first)).join().unwrap_or(false)
    })
}

/// One pair of CPUs of every kind this machine has, nearest first. Empty on a machine with one CPU.
pub(crate) fn places() -> Vec<Place> {
    let cpus = cpus();
    let mut places: Vec<Place> = Vec::new();
    for (i, &a) in cpus.iter().enumerate() {
        for &b in &cpus[i + 1..] {
            let near = nearness(a, b);
            if places.iter().all(|place| place.near != near) {
                places.push(Place { near, cpus: [a, b] });
            }
        }
    }
    places.sort_by_key(|place| place.near);
    places
}

fn nearness(a: Cpu, b: Cpu) -> Near {
    let shared = |file: &str| shared_list(a, file).map(|cpus| cpus.contains(&b.0));
    if shared("topology/thread_siblings_list") == Some(true) {
        return Near::Core;
    }
    for cache in 0..8 {
        let Some(level) = read(&format!("/sys/devices/system/cpu/cpu{}/cache/index{cache}/level", a.0)) else {
            continue;
        };
        let near = match level.as_str() {
            "2" => Near::L2,
            "3" => Near::L3,
            _ => continue,
        };
        if shared(&format!("cache/index{cache}/shared_cpu_list")) == Some(true) {
            return near;
        }
    }
    let package = |cpu: Cpu| read(&format!("/sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu.0));
    match (package(a), package(b)) {
        (Some(a), Some(b)) if a == b => Near::Package,
        (Some(_), Some(_)) => Near::Machine,
        _ => Near::Unknown,
    }
}

fn shared_list(cpu: Cpu, file: &str) -> Option<BTreeSet<usize>> {
    parse_list(&read(&format!("/sys/devices/system/cpu/cpu{}/{file}", cpu.0))?)
}

/// Parses a list as the kernel writes it: `0-3,8,10-11`.
fn parse_list(list: &str) -> Option<BTreeSet<usize>> {
    let mut cpus = BTreeSet::new();
    for part in list.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('-') {
            Some((first, last)) => cpus.extend(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?),
            None => _ = cpus.insert(part.parse().ok()?),
        }
    }
    Some(cpus)
}

/// Every cache of the CPUs this process may run on, once.
pub(crate) fn caches() -> Vec<Cache> {
    let mut caches: Vec<Cache> = Vec::new();
    for cpu in cpus() {
        for index in 0..8 {
            let file = |name: &str| read(&format!("/sys/devices/system/cpu/cpu{}/cache/index{index}/{name}", cpu.0));
            let (Some(level), Some(kind)) = (file("level"), file("type")) else { continue };
            let cache = Cache {
                level: level.parse().unwrap_or(0),
                kind,
                size: file("size").unwrap_or_default(),
                line: file("coherency_line_size").and_then(|line| line.parse().ok()).unwrap_or(0),
                cpus: file("shared_cpu_list").unwrap_or_default(),
            };
            if !caches.contains(&cache) {
                caches.push(cache);
            }
        }
    }
    caches
}

pub(crate) fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0-3,8,10-11"), Some(BTreeSet::from([0, 1, 2, 3, 8, 10, 11])));
        assert_eq!(parse_list("5"), Some(BTreeSet::from([5])));
        assert_eq!(parse_list(""), Some(BTreeSet::new()));
        assert_eq!(parse_list("0-x"), None);
    }

    #[test]
    fn every_kind_of_pair_appears_once() {
        let places = places();
        assert_eq!(places.is_empty(), cpus().len() < 2);
        for (i, place) in places.iter().enumerate() {
            assert_ne!(place.cpus[0], place.cpus[1]);
            assert!(places[..i].iter().all(|earlier| earlier.near < place.near));
        }
    }
}
