//! `corelane top --from`: what many sensors report, and the scans over all of them.
//!
//! It is an aggregator that only looks: it stores no state, removes no batch and makes nothing on a server. It begins
//! where the aggregators' stored states are, so it knows what they know. Each of these states is an aggregator here,
//! and each gets all batches behind the least of their positions; what one knows already it drops. Shards without a
//! state get an aggregator by the options, and then all is read from the oldest batch that is there.

use super::model::{Model, Site};
use super::{ModelScreen, on_screen};
use crate::aggregate::{state_of, table_bytes};
use crate::args::TopArguments;
use crate::exit::{Exit, complain, refused};
use crate::interrupt::Interrupt;
use crate::monitor::Screen;
use crate::sensor_input::{self, AT_ONCE, Clocks, Purpose, Refusals, Silence, WAIT};
use crate::sensors::{Engine, EngineError, Read, shards_name};
use corelane_monitor::sensors::{Aggregator, Batch, News, Refusal, SensorNews};
use corelane_monitor::{Continuous, Settings};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

/// How often the screen is updated.
const UPDATE: Duration = Duration::from_millis(250);
/// Failures that wait at the beginning, after which steps end though not all is read. They take 44 bytes each.
const MOST_WAITING: u64 = 1_000_000;
/// How often the states are loaded, where something is missing behind them.
const TRIES: u32 = 3;

/// Runs the command.
pub(super) fn run(from: &str, arguments: &TopArguments, interrupt: &Interrupt) -> Exit {
    #[cfg(target_os = "linux")]
    if let Err(refusal) = confine(from, arguments) {
        return refused(refusal);
    }
    let engine = match sensor_input::engine(from, &arguments.watching.connection, Purpose::Look) {
        Ok(engine) => engine,
        Err(refusal) => return refused(refusal),
    };
    let screen = ModelScreen::new(Model::of_sensors(from.to_owned()));
    let look = Look::new(engine, Options::of(arguments), screen.clone());
    on_screen(&screen, true, None, interrupt, || {
        look.go(interrupt).inspect_err(|error| complain(format_args!("--from {from}: {error}"))).ok()
    })
}

/// Gives up what a look does not need, before the first thread.
#[cfg(target_os = "linux")]
fn confine(from: &str, arguments: &TopArguments) -> Result<(), String> {
    let mut confinement = sensor_input::confinement(from, &arguments.watching.connection, Purpose::Look)?;
    confinement.writable.push("/dev/tty".into());
    confinement.inherited = crate::confine::Inherited::find();
    confinement.apply().map(drop).map_err(|error| error.to_string())
}

/// What the options say where no stored state does.
#[derive(Clone, Debug, Default)]
struct Options {
    settings: Settings,
    continuous: Continuous,
    memory_limit: u64,
    sensor_timeout: Duration,
}

impl Options {
    fn of(arguments: &TopArguments) -> Self {
        Options {
            settings: Settings {
                vertical_threshold: arguments.detection.vertical_threshold,
                horizontal_threshold: arguments.detection.horizontal_threshold,
                ..Settings::default()
            },
            continuous: Continuous { forget_s: arguments.forget.as_secs(), ..Continuous::default() },
            memory_limit: arguments.memory_limit,
            sensor_timeout: arguments.watching.sensor_timeout,
        }
    }

    /// The settings for some of the shards, which get their share of the memory.
    fn settings(&self, shards: &RangeInclusive<u8>) -> Settings {
        let memory_limit = self.memory_limit / 256 * shards.clone().count() as u64;
        Settings { table_bytes: table_bytes(memory_limit), ..self.settings.clone() }
    }
}

/// Aggregators that only look.
struct Look {
    engine: Box<dyn Engine>,
    options: Options,
    screen: ModelScreen,
    /// Those that share the shards.
    parts: Vec<Aggregator>,
    silence: Silence,
    clocks: Clocks,
    refusals: Refusals,
    /// Whether all was read that was there at the beginning.
    has_caught_up: bool,
    /// How often it may yet begin anew.
    tries: u32,
    begun: Instant,
    updated: Option<Instant>,
}

impl Look {
    fn new(engine: Box<dyn Engine>, options: Options, screen: ModelScreen) -> Self {
        Look {
            engine,
            options,
            screen,
            parts: Vec::new(),
            silence: Silence::default(),
            clocks: Clocks::default(),
            refusals: Refusals::default(),
            has_caught_up: false,
            tries: TRIES,
            begun: Instant::now(),
            updated: None,
        }
    }

    /// Looks until a signal comes.
    fn go(mut self, interrupt: &Interrupt) -> Result<Exit, EngineError> {
        let mut is_open = false;
        while !interrupt.is_set() {
            if is_open {
                is_open = self.take()?;
                let now = Instant::now();
                self.look_at_clock(now);
                self.update(now);
            } else {
                is_open = self.open()?;
            }
        }
        Ok(Exit::Done)
    }

    /// Begins, if the server can be reached; waits a little otherwise. Says whether it has begun.
    fn open(&mut self) -> Result<bool, EngineError> {
        let (problem, pause) = match self.engine.problem() {
            Some(problem) => (problem, WAIT),
            None => match self.load() {
                Ok(()) => return Ok(true),
                // What the server cannot do now it may be able to later.
                Err(error @ (EngineError::Disconnected(..) | EngineError::Server(..))) => (error.to_string(), 5 * WAIT),
                Err(error) => return Err(error),
            },
        };
        let mut model = self.screen.model();
        model.version += 1;
        model.site.iter_mut().for_each(|site| site.problem = Some(problem.clone()));
        drop(model);
        thread::sleep(pause);
        Ok(false)
    }

    /// Makes the aggregators, and begins to read where they are.
    fn load(&mut self) -> Result<(), EngineError> {
        let mut stored = Vec::new();
        for shards in self.engine.stored()? {
            match self.stored(&shards) {
                Ok(part) => stored.extend(part),
                Err(error @ EngineError::Disconnected(..)) => return Err(error),
                Err(error) => complain(format_args!("shards {} without their state: {error}", shards_name(&shards))),
            }
        }
        let (chosen, left) = choose(stored);
        let position = match &left[..] {
            [] => self.engine.least(&chosen.iter().map(|(_, position)| &position[..]).collect::<Vec<_>>())?,
            _ => None,
        };
        self.engine.begin(position.as_deref())?;
        self.tries = if chosen.is_empty() { 0 } else { self.tries.saturating_sub(1) };
        let fresh =
            left.into_iter().map(|it| Aggregator::new(&self.options.settings(&it), &self.options.continuous, it, []));
        self.parts = chosen.into_iter().map(|(part, _)| part).chain(fresh).collect();
        self.show_what_goes_on();
        Ok(())
    }

    /// What is stored of these shards.
    fn stored(&mut self, shards: &RangeInclusive<u8>) -> Result<Option<Stored>, EngineError> {
        let mut tries = 0..TRIES;
        let snapshot = loop {
            match self.engine.load(shards.clone()) {
                // Its aggregator may have stored another one meanwhile.
                Err(EngineError::Server(..) | EngineError::Snapshot(_)) if tries.next().is_some() => {}
                loaded => break loaded?,
            }
        };
        let Some(snapshot) = snapshot else { return Ok(None) };
        let part = Aggregator::of_snapshot(state_of(&snapshot.bytes), &self.options.settings(shards));
        let part = part.ok().filter(|part| part.shards() == *shards);
        let part = part.ok_or_else(|| EngineError::Snapshot(shards_name(shards)))?;
        Ok(Some((part, snapshot.position)))
    }

    /// Shows the scans that are known from the beginning, and nothing else.
    fn show_what_goes_on(&self) {
        let mut scans: Vec<_> = self.parts.iter().flat_map(Aggregator::going_on).collect();
        scans.sort_by_key(|event| event.scan.time_ns());
        let mut model = self.screen.model();
        (model.site, model.alerts) = (Some(Site::default()), 0);
        model.scans.clear();
        scans.iter().for_each(|event| model.scan(event));
        drop(model);
        self.screen.begin();
    }

    /// Takes some batches. Says whether to go on; if not, something is missing behind the states that were loaded.
    fn take(&mut self) -> Result<bool, EngineError> {
        for number in 0..AT_ONCE {
            let wait = if number == 0 { WAIT } else { Duration::ZERO };
            let Read::Batch(batch) = self.engine.next(wait)? else { break };
            let news = self.receive(&batch);
            let is_lost = |news: &News| matches!(news, News::Sensor(it) if matches!(it.news, SensorNews::Lost { .. }));
            // If aggregators store new states while the old ones are loaded, what was between them may be removed.
            if self.tries > 0 && !self.has_caught_up && news.iter().any(is_lost) {
                return Ok(false);
            }
            self.show(&news);
        }
        // Where no state says which sensors there are, those that are read first would make the others late.
        if self.has_caught_up || self.waiting() >= MOST_WAITING {
            let mut news = Vec::new();
            for part in &mut self.parts {
                while part.advance(|it| news.push(it)) {}
            }
            self.show(&news);
        }
        Ok(true)
    }

    fn waiting(&self) -> u64 {
        self.parts.iter().map(Aggregator::waiting).sum()
    }

    /// Gives a batch to all parts.
    fn receive(&mut self, batch: &[u8]) -> Vec<News> {
        let here_ns = sensor_input::now_ns();
        let mut news = Vec::new();
        let (mut is_new, mut refusal) = (false, None);
        for part in &mut self.parts {
            let mut said = Vec::new();
            match part.take(batch, self.engine.sensor(), sensor_input::latest_ns(here_ns), |it| said.push(it)) {
                Ok(Batch { header, reports, .. }) => {
                    // All that take it say the same of its sensor.
                    if !is_new {
                        news.append(&mut said);
                        news.extend(self.clocks.look(&header, here_ns, Instant::now()));
                    }
                    is_new = true;
                    self.screen.model().reports(&header, &reports);
                    self.silence.received(header.sensor);
                }
                Err(Refusal::Again) => {}
                Err(other) => refusal = Some(other),
            }
        }
        if let Some(refusal) = refusal {
            self.refusals.count(&refusal);
        }
        news
    }

    /// Leaves out sensors that have been silent or behind for too long.
    fn look_at_clock(&mut self, now: Instant) {
        let timeout = self.options.sensor_timeout;
        let is_caught_up = self.engine.is_caught_up();
        self.has_caught_up |= is_caught_up;
        let present = self.parts.iter().flat_map(Aggregator::sensors).filter(|sensor| sensor.is_present);
        let present: BTreeMap<_, _> = present.map(|it| (it.sensor.clone(), it)).collect();
        let present: Vec<_> = present.into_values().collect();
        let out = self.silence.look((now, sensor_input::now_ns()), is_caught_up, timeout, &present);
        let is_silent = self.silence.is_total(timeout, now);
        let mut news = Vec::new();
        for (number, part) in self.parts.iter_mut().enumerate() {
            for (sensor, behind_ns) in &out {
                part.leave_out(sensor, *behind_ns, |it| news.extend((number == 0).then_some(it)));
            }
            let goes_on = is_silent && part.go_on_alone();
            while (goes_on || !out.is_empty()) && part.advance(|it| news.push(it)) {}
        }
        self.show(&news);
    }

    fn show(&self, news: &[News]) {
        for news in news {
            match news {
                News::Scan(event) => self.screen.model().scan(event),
                News::Sensor(event) => {
                    let is_lost = match event.news {
                        SensorNews::Lost { reports, .. } => {
                            self.screen.model().site.iter_mut().for_each(|site| site.lost(&event.sensor, reports));
                            true
                        }
                        _ => false,
                    };
                    // What became of sensors long ago is in their panel.
                    if is_lost || self.has_caught_up {
                        complain(event);
                    }
                }
            }
        }
    }

    /// Updates the screen, from time to time.
    fn update(&mut self, now: Instant) {
        if self.updated.is_some_and(|updated| now - updated < UPDATE) {
            return;
        }
        self.updated = Some(now);
        let (refused, waiting) = (self.refusals.0.values().sum::<u64>(), self.waiting());
        let mut model = self.screen.model();
        model.version += 1;
        let Some(site) = &mut model.site else { return };
        site.over_ns = self.parts.iter().map(Aggregator::begun_ns).min().unwrap_or(0);
        site.problem = self.engine.problem();
        site.is_caught_up = self.has_caught_up && self.engine.is_caught_up();
        site.waiting = waiting;
        site.refused = refused + self.engine.damaged();
        site.now = (now - self.begun).as_secs();
        let is_known = |sensor: &str| self.parts.iter().any(|part| part.knows(sensor));
        self.engine.retain(&is_known);
        self.silence.retain(is_known);
        self.clocks.retain(is_known);
        site.come(self.parts.iter().flat_map(Aggregator::sensors));
        site.clock(sensor_input::now_ns());
    }
}

/// The aggregator of a stored state, and its position.
type Stored = (Aggregator, Vec<u8>);

/// Of stored states that have a shard in common the one that has come furthest: the others are left over from other
/// shards. And the shards that no state has.
fn choose(mut stored: Vec<Stored>) -> (Vec<Stored>, Vec<RangeInclusive<u8>>) {
    stored.sort_by_key(|(part, _)| Reverse(part.begun_ns()));
    let mut covered = [false; 256];
    stored.retain(|(part, _)| {
        let shards = part.shards();
        let own = &mut covered[usize::from(*shards.start())..=usize::from(*shards.end())];
        let is_free = !own.contains(&true);
        if is_free {
            own.fill(true);
        }
        is_free
    });
    let shards: Vec<u8> = (0..=255).filter(|&shard| !covered[usize::from(shard)]).collect();
    let left = shards.chunk_by(|a, b| a + 1 == *b).map(|range| range[0]..=range[range.len() - 1]).collect();
    (stored, left)
}

#[cfg(test)]
mod tests {
    use super::super::model::batches::{Made, made};
    use super::*;
    use crate::sensors::{Files, Full, Spool};
    use corelane_monitor::STEP_NS;
    use std::collections::BTreeMap;
    use std::fs;
    use std::net::IpAddr;
    use std::path::{Path, PathBuf};

    const SCANNER: [u8; 4] = [10, 0, 0, 9];

    /// Two sensors, of which neither sees enough of a scan.
    struct Place {
        folder: tempfile::TempDir,
        sensors: Vec<(Made, Spool)>,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let sensors = ["a", "b"].map(|name| {
                let mut spool = Spool::open(folder.path(), name, 64 << 20, Full::DropOldest).unwrap();
                spool.begin(1).unwrap();
                (made(name, 100), spool)
            });
            Place { sensors: sensors.into(), folder }
        }

        /// The next second, in which each sees so many more ports of the scan.
        fn second(&mut self, ports: u16) {
            for (number, (made, spool)) in (0..).zip(&mut self.sensors) {
                let first = (made.second as u16) * 100 + number * 50;
                spool.append(&made.batch(SCANNER, first..first + ports)).unwrap();
            }
        }

        fn look(&self) -> Look {
            let options =
                Options { memory_limit: 1 << 30, sensor_timeout: Duration::from_secs(30), ..Options::default() };
            let screen = ModelScreen::new(Model::of_sensors("file:".to_owned()));
            Look::new(Box::new(Files::new(self.folder.path())), options, screen)
        }

        /// An aggregator of these shards reads all that is there, and stores its state.
        fn aggregate(&self, shards: RangeInclusive<u8>) {
            let mut engine = Files::new(self.folder.path());
            engine.begin(None).unwrap();
            let expected = ["a", "b"].map(|name| name.parse().unwrap());
            let mut aggregator =
                Aggregator::new(&Settings::default(), &Continuous::default(), shards.clone(), expected);
            while let Read::Batch(batch) = engine.next(Duration::ZERO).unwrap() {
                aggregator.take(&batch, engine.sensor(), u64::MAX, drop).unwrap();
                aggregator.advance(drop);
            }
            engine.store(shards, &[&[0; 8][..], &aggregator.snapshot()].concat()).unwrap();
        }

        /// Every file with its content and the time when it was changed.
        fn files(&self) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)> {
            fn list(folder: &Path, files: &mut BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime)>) {
                for entry in fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    let changed = fs::metadata(&path).unwrap().modified().unwrap();
                    if path.is_dir() {
                        files.insert(path.clone(), (Vec::new(), changed));
                        list(&path, files);
                    } else {
                        files.insert(path.clone(), (fs::read(&path).unwrap(), changed));
                    }
                }
            }
            let mut files = BTreeMap::new();
            list(self.folder.path(), &mut files);
            files
        }
    }

    /// Reads all that is there, and updates the screen.
    fn read(look: &mut Look) {
        while !look.engine.is_caught_up() {
            assert!(look.take().unwrap());
        }
        look.look_at_clock(Instant::now());
        assert!(look.take().unwrap());
        look.update(Instant::now() + UPDATE);
    }

    /// Time and count of each scan that is shown.
    fn scans(look: &Look) -> Vec<(u64, u64)> {
        let scan = |event: &corelane_monitor::ScanEvent| (event.scan.time_ns() / STEP_NS, event.scan.count());
        look.screen.model().scans.iter().map(scan).collect()
    }

    #[test]
    fn it_knows_what_an_aggregator_knows_and_changes_nothing() {
        let mut place = Place::new();
        for ports in [15, 3, 0] {
            place.second(ports);
        }
        place.aggregate(0..=255);
        place.second(4);
        place.second(0);
        let files = place.files();
        let mut look = place.look();
        look.load().unwrap();
        assert_eq!(scans(&look), [(100, 36)], "it goes on, and so many have failed so far");
        read(&mut look);
        assert_eq!(scans(&look), [(100, 36)], "it is reported once");
        let model = look.screen.model();
        let site = model.site.as_ref().unwrap();
        assert_eq!(site.sensors.values().map(|it| it.counts.reports).collect::<Vec<_>>(), [22, 22]);
        assert_eq!((site.over_ns, site.waiting, site.refused), (105 * STEP_NS, 0, 0));
        assert_eq!(site.sources[&IpAddr::from(SCANNER)].failures, 8, "since it began");
        assert!(site.is_caught_up);
        drop(model);
        drop(look);
        assert_eq!(place.files(), files);
    }

    #[test]
    fn without_a_state_it_reads_all_that_is_there() {
        let mut place = Place::new();
        for ports in [15, 3, 0] {
            place.second(ports);
        }
        let mut look = place.look();
        look.load().unwrap();
        read(&mut look);
        assert_eq!(scans(&look), [(100, 21)]);
        // The same where the source's shard has no state, and another one has.
        let shard = corelane_monitor::sensors::shard_of(SCANNER.into());
        assert!(shard < 255);
        place.aggregate(shard + 1..=255);
        let mut look = place.look();
        look.load().unwrap();
        read(&mut look);
        assert_eq!((scans(&look), look.parts.len()), (vec![(100, 21)], 2));
        assert_eq!(look.screen.model().site.as_ref().unwrap().sources[&IpAddr::from(SCANNER)].failures, 36);
    }

    #[test]
    fn states_are_loaded_again_if_batches_behind_them_were_removed_meanwhile() {
        let mut place = Place::new();
        place.second(1);
        place.aggregate(0..=255);
        let mut look = place.look();
        look.load().unwrap();
        place.sensors[0].0.miss();
        place.second(1);
        assert!(!look.take().unwrap());
        place.aggregate(0..=255);
        place.second(1);
        look.load().unwrap();
        read(&mut look);
        let model = look.screen.model();
        assert!(model.site.as_ref().unwrap().sensors.values().all(|it| it.lost == (0, false)));
        drop(model);
        // What is missing for good is said at last.
        place.sensors[0].0.miss();
        place.second(1);
        let mut look = place.look();
        for _ in 0..TRIES - 1 {
            look.load().unwrap();
            assert!(!look.take().unwrap());
        }
        look.load().unwrap();
        read(&mut look);
        let model = look.screen.model();
        assert_eq!(model.site.as_ref().unwrap().sensors.values().map(|it| it.lost.0).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn of_states_that_overlap_the_one_that_has_come_furthest_counts() {
        let part = |shards: RangeInclusive<u8>, second: u64| {
            let mut part = Aggregator::new(&Settings::default(), &Continuous::default(), shards, []);
            part.take(&made("a", second).batch(SCANNER, 0..0), "a", u64::MAX, drop).unwrap();
            part.advance(drop);
            (part, Vec::new())
        };
        let chosen = |stored| {
            let (chosen, left) = choose(stored);
            (chosen.iter().map(|(part, _)| part.shards()).collect::<Vec<_>>(), left)
        };
        let stored = vec![part(0..=255, 100), part(0..=127, 200), part(128..=255, 199)];
        assert_eq!(chosen(stored), (vec![0..=127, 128..=255], vec![]));
        assert_eq!(
            chosen(vec![part(3..=7, 1), part(9..=254, 2)]),
            (vec![9..=254, 3..=7], vec![0..=2, 8..=8, 255..=255])
        );
        assert_eq!(chosen(vec![]), (vec![], vec![0..=255]));
    }
}
