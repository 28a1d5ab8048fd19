//! The engine of a folder: sensors and aggregators of one machine, without a server.
//!
//! `DIR/SENSOR/…` are the sensors' logs, `DIR/aggregators/A-B.snapshot` the snapshots. The position is, for each
//! sensor, an epoch and the next sequence in it.
//!
//! A folder has no bell: what comes is looked for every 50 ms.

use super::engine::{
    Engine, EngineError, FRESH, Positions, Read, Snapshot, cover_all, put_positions, read_position, read_snapshot,
    shards_name, shards_of, snapshot_head, take_positions,
};
use super::log::{AGGREGATORS, Log, create_folders, entries, is_sensor_name, private, trim};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long after it found nothing the engine looks again.
const POLL: Duration = Duration::from_millis(50);

/// Batches of one sensor after which it is another's turn.
const TURN: u32 = 64;

/// The first byte of a position: which engine's it is, and its version.
const POSITION: u8 = b'f';

/// The engine of a folder.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
    /// Where sensors begin that have not been seen yet.
    begin: Positions,
    sensors: BTreeMap<String, Log>,
    /// The sensor whose turn it is, and how many batches it had.
    turn: (String, u32),
    /// When the engine last found nothing more.
    caught_up_at: Option<Instant>,
}

impl Files {
    /// The engine of this folder, which sensors make if it is not there.
    pub(crate) fn new(folder: &Path) -> Self {
        Files {
            folder: folder.into(),
            begin: Positions::new(),
            sensors: BTreeMap::new(),
            turn: (String::new(), 0),
            caught_up_at: None,
        }
    }

    /// Makes readers for the sensors that have come.
    fn discover(&mut self) -> Result<(), EngineError> {
        let names = entries(&self.folder).map_err(|error| EngineError::Io(self.folder.clone(), error))?;
        for name in names {
            if is_sensor_name(&name) && !self.sensors.contains_key(&name) && self.folder.join(&name).is_dir() {
                let log = Log::open(&self.folder, &name, self.begin.get(&name).copied());
                self.sensors.insert(name, log);
            }
        }
        Ok(())
    }

    /// The next batch of any sensor: of the one whose turn it is, if there is one.
    fn look(&mut self) -> Result<Option<Vec<u8>>, EngineError> {
        let (turn, count) = &mut self.turn;
        if *count == TURN {
            turn.push('\0');
            *count = 0;
        }
        let (before, from) = (self.sensors.range::<String, _>(..&*turn), self.sensors.range::<String, _>(&*turn..));
        let names = from.chain(before).map(|(name, _)| name.clone()).collect::<Vec<_>>();
        for name in names {
            let log = self.sensors.get_mut(&name).expect("it is one of them");
            let next = log.next().map_err(|error| EngineError::Io(self.folder.join(&name), error))?;
            if let Some(batch) = next {
                let count = if self.turn.0 == name { self.turn.1 + 1 } else { 1 };
                self.turn = (name, count);
                return Ok(Some(batch.bytes));
            }
        }
        Ok(None)
    }

    fn snapshot_path(&self, shards: &RangeInclusive<u8>) -> PathBuf {
        self.folder.join(AGGREGATORS).join(format!("{}.snapshot", shards_name(shards)))
    }

    /// The shards of all stored snapshots.
    fn snapshots(&self) -> Result<Vec<RangeInclusive<u8>>, EngineError> {
        let folder = self.folder.join(AGGREGATORS);
        let names = entries(&folder).map_err(|error| EngineError::Io(folder, error))?;
        Ok(names.iter().filter_map(|name| name.strip_suffix(".snapshot").and_then(shards_of)).collect())
    }

    /// Removes the batches that no stored snapshot needs, if those cover all shards.
    fn trim(&self) -> Result<(), EngineError> {
        let mut stored = Vec::new();
        for shards in self.snapshots()? {
            let path = self.snapshot_path(&shards);
            let position = File::open(&path).and_then(|mut file| read_position(&mut file));
            let position = position.map_err(|error| EngineError::Io(path.clone(), error))?;
            // What a damaged one needs is not known.
            let positions = position.and_then(|position| decode(&position));
            let positions = positions.ok_or_else(|| EngineError::Snapshot(path.display().to_string()))?;
            stored.push((shards, positions));
        }
        if !cover_all(stored.iter().map(|(shards, _)| shards)) {
            return Ok(());
        }
        for sensor in self.sensors.keys() {
            let least = stored.iter().map(|(_, positions)| positions.get(sensor)).min().flatten();
            let Some((epoch, last)) = least.and_then(|&(epoch, next)| Some((epoch, next.checked_sub(1)?))) else {
                continue;
            };
            let folder = self.folder.join(sensor);
            trim(&folder, epoch, last).map_err(|error| EngineError::Io(folder, error))?;
        }
        Ok(())
    }
}

impl Files {
    /// Makes the folder of the snapshots.
    pub(crate) fn prepare(folder: &Path) -> Result<(), EngineError> {
        let folder = folder.join(AGGREGATORS);
        create_folders(&folder).map_err(|error| EngineError::Io(folder, error))
    }
}

impl Engine for Files {
    fn load(&mut self, shards: RangeInclusive<u8>) -> Result<Option<Snapshot>, EngineError> {
        let path = self.snapshot_path(&shards);
        match fs::read(&path) {
            Ok(stored) => {
                let snapshot = read_snapshot(stored);
                snapshot.map(Some).ok_or_else(|| EngineError::Snapshot(path.display().to_string()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EngineError::Io(path, error)),
        }
    }

    fn stored(&mut self) -> Result<Vec<RangeInclusive<u8>>, EngineError> {
        self.snapshots()
    }

    fn least(&self, positions: &[&[u8]]) -> Result<Option<Vec<u8>>, EngineError> {
        let positions = positions.iter().map(|position| decode(position).ok_or(EngineError::Position));
        let positions = positions.collect::<Result<Vec<_>, _>>()?;
        let Some((first, others)) = positions.split_first() else { return Ok(None) };
        // A sensor that one of them has not read is read from its oldest batch.
        let least = first.iter().filter_map(|(name, place)| {
            let all = others.iter().map(|positions| positions.get(name)).collect::<Option<Vec<_>>>()?;
            Some((name.clone(), all.into_iter().chain([place]).copied().min()?))
        });
        Ok(Some(encode(&least.collect())))
    }

    fn begin(&mut self, position: Option<&[u8]>) -> Result<(), EngineError> {
        self.begin = match position {
            Some(position) => decode(position).ok_or(EngineError::Position)?,
            None => Positions::new(),
        };
        self.sensors.clear();
        self.caught_up_at = None;
        Ok(())
    }

    fn next(&mut self, wait: Duration) -> Result<Read, EngineError> {
        let end = Instant::now() + wait;
        loop {
            let began = Instant::now();
            if let Some(batch) = self.look()? {
                return Ok(Read::Batch(batch));
            }
            let known = self.sensors.len();
            self.discover()?;
            if self.sensors.len() > known {
                continue;
            }
            self.caught_up_at = Some(began);
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Read::Nothing);
            }
            std::thread::sleep(left.min(POLL));
        }
    }

    fn sensor(&self) -> &str {
        &self.turn.0
    }

    fn position(&self) -> Vec<u8> {
        let mut positions = self.begin.clone();
        let read = self.sensors.iter().filter_map(|(name, log)| Some((name.clone(), log.position()?)));
        positions.extend(read);
        encode(&positions)
    }

    fn is_caught_up(&self) -> bool {
        self.caught_up_at.is_some_and(|at| at.elapsed() < FRESH)
    }

    fn store(&mut self, shards: RangeInclusive<u8>, snapshot: &[u8]) -> Result<(), EngineError> {
        let path = self.snapshot_path(&shards);
        let beside = path.with_extension("new");
        let head = snapshot_head(&self.position(), snapshot);
        let folder = self.folder.join(AGGREGATORS);
        let store = || {
            create_folders(&folder)?;
            let mut file = private().write(true).create(true).truncate(true).open(&beside)?;
            file.write_all(&head)?;
            file.write_all(snapshot)?;
            // The batches before it go next, and would not come back after a power loss.
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            #[cfg(unix)]
            File::open(&folder)?.sync_all()?;
            Ok(())
        };
        if let Err(error) = store() {
            let _ = fs::remove_file(&beside);
            return Err(EngineError::Io(path, error));
        }
        self.trim()
    }

    fn damaged(&self) -> u64 {
        self.sensors.values().map(Log::damaged).sum()
    }
}

fn encode(positions: &Positions) -> Vec<u8> {
    let mut bytes = vec![POSITION];
    put_positions(&mut bytes, positions);
    bytes
}

fn decode(position: &[u8]) -> Option<Positions> {
    let (&POSITION, rest) = position.split_first()? else { return None };
    take_positions(rest)
}

#[cfg(test)]
mod tests {
    use super::super::log::segments;
    use super::super::spool::{Full, LEAST_BYTES, Spool};
    use super::*;

    fn spool(folder: &Path, sensor: &str) -> Spool {
        let mut spool = Spool::open(folder, sensor, LEAST_BYTES, Full::DropOldest).unwrap();
        spool.begin(spool.last().map_or(1, |last| last.0 + 1)).unwrap();
        spool
    }

    fn read(engine: &mut Files) -> Vec<String> {
        let next = || match engine.next(Duration::ZERO).unwrap() {
            Read::Batch(batch) => Some(String::from_utf8_lossy(&batch).trim_end_matches('.').into()),
            Read::Nothing => None,
        };
        std::iter::from_fn(next).collect()
    }

    /// A batch that fills a segment.
    fn long(name: &str) -> Vec<u8> {
        [name.as_bytes(), &[b'.'; 200_000]].concat()
    }

    #[test]
    fn batches_of_all_sensors_come_in_their_order_and_positions_go_on_there() {
        let folder = tempfile::tempdir().unwrap();
        let mut engine = Files::new(&folder.path().join("not yet"));
        assert_eq!(engine.next(Duration::ZERO).unwrap(), Read::Nothing);
        let mut engine = Files::new(folder.path());
        engine.begin(None).unwrap();
        assert!(!engine.is_caught_up());
        let (mut a, mut b) = (spool(folder.path(), "a"), spool(folder.path(), "b"));
        for number in 0..3 {
            a.append(format!("a{number}").as_bytes()).unwrap();
            b.append(format!("b{number}").as_bytes()).unwrap();
        }
        assert_eq!(engine.next(Duration::ZERO).unwrap(), Read::Batch(b"a0".to_vec()));
        assert!(!engine.is_caught_up());
        let position = engine.position();
        let sorted = |mut batches: Vec<String>| {
            batches.sort_unstable();
            batches
        };
        assert_eq!(sorted(read(&mut engine)), ["a1", "a2", "b0", "b1", "b2"]);
        assert!(engine.is_caught_up());
        // Another that comes later, and a new epoch of one that was there.
        spool(folder.path(), "c").append(b"c0").unwrap();
        drop(a);
        spool(folder.path(), "a").append(b"a3").unwrap();
        assert_eq!(sorted(read(&mut engine)), ["a3", "c0"]);

        let mut other = Files::new(folder.path());
        other.begin(Some(&position)).unwrap();
        assert_eq!(other.position(), position);
        assert_eq!(sorted(read(&mut other)), ["a1", "a2", "a3", "b0", "b1", "b2", "c0"]);
        assert_eq!((other.position(), other.damaged()), (engine.position(), 0));
        other.begin(Some(&engine.position())).unwrap();
        assert_eq!((read(&mut other), other.position()), (Vec::<String>::new(), engine.position()));
    }

    #[test]
    fn a_sensor_with_much_to_say_does_not_silence_the_others() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            let mut spool = spool(folder.path(), name);
            for _ in 0..1000 {
                spool.append(name.as_bytes()).unwrap();
            }
        }
        let mut engine = Files::new(folder.path());
        let found = read(&mut engine);
        assert_eq!(found.len(), 3000);
        for name in ["a", "b", "c"] {
            let first = found.iter().position(|found| found == name).unwrap();
            assert!(first < 3 * TURN as usize, "{name} first at {first}");
        }
    }

    #[test]
    fn a_batch_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let mut engine = Files::new(folder.path());
        std::thread::scope(|scope| {
            scope.spawn(|| spool(folder.path(), "a").append(b"late").unwrap());
            assert_eq!(engine.next(Duration::from_secs(60)).unwrap(), Read::Batch(b"late".to_vec()));
        });
        let begin = Instant::now();
        assert_eq!(engine.next(Duration::from_millis(120)).unwrap(), Read::Nothing);
        assert!(begin.elapsed() >= Duration::from_millis(120));
    }

    #[test]
    fn a_reader_that_did_not_look_is_not_caught_up() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = spool(folder.path(), "a");
        let mut engine = Files::new(folder.path());
        assert_eq!(engine.next(Duration::ZERO).unwrap(), Read::Nothing);
        assert!(engine.is_caught_up());
        spool.append(b"1").unwrap();
        spool.append(b"2").unwrap();
        std::thread::sleep(FRESH);
        assert!(!engine.is_caught_up());
        engine.next(Duration::ZERO).unwrap();
        assert!(!engine.is_caught_up());
        engine.next(Duration::ZERO).unwrap();
        assert_eq!(engine.next(Duration::ZERO).unwrap(), Read::Nothing);
        assert!(engine.is_caught_up());
    }

    #[test]
    fn snapshots_come_back_with_their_positions() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = spool(folder.path(), "a");
        let mut engine = Files::new(folder.path());
        assert_eq!(engine.load(0..=255).unwrap(), None);
        for number in 0..3u8 {
            spool.append(&[number]).unwrap();
            engine.next(Duration::ZERO).unwrap();
            engine.store(3..=7, &vec![number; 100_000 * usize::from(number)]).unwrap();
            let snapshot = engine.load(3..=7).unwrap().unwrap();
            assert_eq!(snapshot.position, engine.position());
            assert_eq!(snapshot.bytes, vec![number; 100_000 * usize::from(number)]);
        }
        assert_eq!(engine.load(3..=8).unwrap(), None);
        assert_eq!(engine.stored().unwrap(), [3..=7]);
        assert_eq!(entries(&folder.path().join(AGGREGATORS)).unwrap(), ["3-7.snapshot"]);
        fs::write(folder.path().join(AGGREGATORS).join("3-7.snapshot"), "not one").unwrap();
        let error = engine.load(3..=7).unwrap_err();
        assert!(error.to_string().contains("3-7.snapshot is damaged"), "{error}");
        assert!(engine.store(0..=2, b"").is_err(), "what it needs is not known");
        assert_eq!(engine.load(0..=2).unwrap().unwrap().bytes, b"");
    }

    #[test]
    fn the_least_position_has_each_sensor_where_the_last_of_all_was() {
        let engine = Files::new(Path::new("nowhere"));
        let position = |sensors: &[(&str, (u64, u64))]| {
            encode(&sensors.iter().map(|&(name, place)| (name.to_owned(), place)).collect())
        };
        let (low, high) = (position(&[("a", (1, 9)), ("b", (2, 1)), ("c", (1, 1))]), position(&[("b", (1, 5))]));
        assert_eq!(engine.least(&[&low]).unwrap(), Some(low.clone()));
        assert_eq!(
            engine.least(&[&low, &high]).unwrap(),
            Some(position(&[("b", (1, 5))])),
            "no batch of a and c is seen"
        );
        assert_eq!(engine.least(&[]).unwrap(), None);
        assert!(matches!(engine.least(&[&low, b"n"]), Err(EngineError::Position)));
    }

    #[test]
    fn what_no_snapshot_needs_goes_once_all_shards_are_covered() {
        let folder = tempfile::tempdir().unwrap();
        let mut spools = ["a", "b"].map(|name| spool(folder.path(), name));
        for spool in &mut spools {
            for number in 0..5 {
                spool.append(&long(&number.to_string())).unwrap();
            }
        }
        let left = || {
            let segments = ["a", "b"].map(|name| segments(&folder.path().join(name)).unwrap());
            segments.map(|segments| segments.iter().map(|segment| segment.first).collect::<Vec<_>>())
        };
        let engines = || {
            let mut engine = Files::new(folder.path());
            engine.begin(None).unwrap();
            engine
        };
        let (mut low, mut high) = (engines(), engines());
        assert_eq!(read(&mut low).len(), 10);
        low.store(0..=127, b"low").unwrap();
        assert_eq!(left(), [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]);
        for _ in 0..3 {
            high.next(Duration::ZERO).unwrap();
        }
        high.store(129..=255, b"high").unwrap();
        assert_eq!(left(), [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]], "128 has none");
        high.store(128..=255, b"high").unwrap();
        assert_eq!(left(), [&[3, 4][..], &[0, 1, 2, 3, 4]], "the least of all, and nothing of b was read");
        read(&mut high);
        high.store(128..=255, b"high").unwrap();
        assert_eq!(left(), [&[3, 4][..], &[0, 1, 2, 3, 4]], "129-255 is there still");
        high.store(129..=255, b"high").unwrap();
        assert_eq!(left(), [[4], [4]]);
        // Sensors go on, and so does a reader with an old position.
        spools[0].append(b"next").unwrap();
        assert_eq!(read(&mut low), ["next"]);
    }

    #[test]
    fn positions_that_are_none_are_refused() {
        let mut engine = Files::new(Path::new("nowhere"));
        let position = encode(&Positions::from([("a".into(), (1, 2)), ("b-c".into(), (3, u64::MAX))]));
        assert_eq!(decode(&position).unwrap().len(), 2);
        engine.begin(Some(&position)).unwrap();
        assert_eq!(engine.position(), position);
        for length in 0..position.len() {
            let is_whole = length == 1 || length == 1 + 1 + 1 + 16;
            assert_eq!(engine.begin(Some(&position[..length])).is_ok(), is_whole, "{length}");
        }
        for other in [&b"n\0\0"[..], b"f\x01/\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"] {
            assert!(matches!(engine.begin(Some(other)), Err(EngineError::Position)));
        }
    }
}
