//! Records what each thread does, so that a thread that sleeps for ever is reported together with all others.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// No call and no pause of an episode takes this long on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// No whole episode takes this long. This limit catches threads that go round in circles.
const LONGEST: Duration = Duration::from_secs(90);

/// The current action of a thread.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Doing {
    Begins,
    Pauses,
    Pushes,
    TriesToPush,
    PushesInTime,
    PushesABatch,
    Reserves,
    WaitsForRoom,
    Pops,
    TriesToPop,
    PopsInTime,
    PopsABatch,
    Peeks,
    WaitsForAnItem,
    Exchanges,
    Closes,
    Leaves,
    Joins,
}

const NAMES: [&str; 18] = [
    "begins",
    "pauses",
    "pushes",
    "tries to push",
    "pushes in time",
    "pushes a batch",
    "reserves",
    "waits for room",
    "pops",
    "tries to pop",
    "pops in time",
    "pops a batch",
    "peeks",
    "waits for an item",
    "exchanges",
    "closes",
    "leaves",
    "joins",
];

/// A thread of an episode. It is written with plain stores, which order no access that a queue should order.
pub(crate) struct Place {
    name: &'static str,
    thread: String,
    doing: AtomicU8,
    steps: AtomicU64,
    is_over: AtomicBool,
}

impl Place {
    /// Must be called before each call of a queue.
    pub(crate) fn now(&self, doing: Doing) {
        self.doing.store(doing as u8, Relaxed);
        self.steps.store(self.steps.load(Relaxed) + 1, Relaxed);
    }
}

/// The current episode.
pub(crate) struct Watch(Mutex<Current>);

#[derive(Default)]
struct Current {
    what: Option<String>,
    places: Vec<Arc<Place>>,
}

/// A thread's place. Its drop marks the thread as over.
pub(crate) struct At(Arc<Place>);

impl std::ops::Deref for At {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Drop for At {
    fn drop(&mut self) {
        self.0.is_over.store(true, Relaxed);
    }
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn begin(&self, what: String) {
        *self.current() = Current { what: Some(what), places: Vec::new() };
    }

    pub(crate) fn end(&self) {
        *self.current() = Current::default();
    }

    /// Makes a place for the calling thread in the episode.
    pub(crate) fn place(&self, name: &'static str) -> At {
        let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        let place = Arc::new(Place {
            name,
            thread: thread.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            doing: AtomicU8::new(Doing::Begins as u8),
            steps: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        self.current().places.push(place.clone());
        At(place)
    }

    /// The episode, and a number that changes with every step of it.
    fn steps(&self) -> (Option<String>, u64) {
        let current = self.current();
        let steps = current.places.iter().map(|place| place.steps.load(Relaxed)).sum();
        (current.what.clone(), steps)
    }

    fn report(&self) -> String {
        let current = self.current();
        let what = current.what.as_deref().unwrap_or("-");
        let mut text =
            format!("{what}: nobody has made a step for {PATIENCE:?}, or it is not over after {LONGEST:?}\n");
        for place in &current.places {
            let over = if place.is_over.load(Relaxed) { ", and is over" } else { "" };
            let doing = NAMES[place.doing.load(Relaxed) as usize];
            let _ = writeln!(text, "  {} {doing}{over}, {} steps", place.name, place.steps.load(Relaxed));
            // The thread's place in the kernel, if that may be read.
            for file in ["syscall", "wchan", "stack"] {
                let found = std::fs::read_to_string(format!("/proc/self/task/{}/{file}", place.thread));
                let _ = found.map(|found| writeln!(text, "    {file}: {}", found.trim().replace('\n', "\n      ")));
            }
        }
        text
    }
}

/// Watches in a thread of its own, and ends the process if an episode stands still.
pub(crate) fn start(watch: &Arc<Watch>) {
    let watch = watch.clone();
    std::thread::spawn(move || {
        let mut last = (None, 0);
        let (mut step, mut beginning) = (Instant::now(), Instant::now());
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let now = watch.steps();
            if now.0 != last.0 || now.0.is_none() {
                beginning = Instant::now();
            }
            if now != last || now.0.is_none() {
                step = Instant::now();
            }
            last = now;
            if step.elapsed() > PATIENCE || beginning.elapsed() > LONGEST {
                eprintln!("\nerror: {}", watch.report());
                std::process::exit(1);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_who_stands_where() {
        let watch = Watch::new();
        watch.begin("lane".into());
        let at = watch.place("producer");
        at.now(Doing::PushesInTime);
        let before = watch.steps();
        at.now(Doing::Pushes);
        assert_ne!(watch.steps(), before);
        let report = watch.report();
        assert!(report.contains("lane: nobody") && report.contains("producer pushes, 2 steps"), "{report}");
        drop(at);
        assert!(watch.report().contains("producer pushes, and is over"));
        assert_eq!(NAMES[Doing::Joins as usize], "joins");
    }
}
