//! The engine of a NATS server: an aggregator's messages and snapshots.

use super::super::engine::{
    Engine, EngineError, FRESH, Positions, Read, SNAPSHOT_HEADER, Snapshot, cover_all, put_positions, read_snapshot,
    shards_name, shards_of, snapshot_head, take_positions,
};
use super::super::log::is_sensor_name;
use super::{
    AFTER, BATCH, BUCKET, BUCKET_STREAM, Driver, LOST, Link, NatsError, NatsOptions, PATIENCE, Pause, Server, down,
    existing, existing_or_made, parse_batch_header, up,
};
use crate::sensor_input::{latest_epoch, now_ns};
use async_nats::jetstream;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::object_store::{self, GetErrorKind, InfoErrorKind, ObjectInfo, ObjectMetadata, ObjectStore};
use async_nats::jetstream::stream::StorageType;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE as URL_SAFE;
use futures_util::StreamExt;
use std::collections::HashSet;
use std::fmt::{self, Debug};
use std::io;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Messages that the server is asked for at a time, and as many may wait here.
const AHEAD: usize = 64;

/// How long such a request lasts if nothing comes.
const REQUEST: Duration = Duration::from_secs(5);

/// How long after the last request the server forgets the reader.
const FORGET: Duration = Duration::from_secs(60);

/// How often it is asked how far the reader is behind.
const MEASURE: Duration = Duration::from_millis(250);

/// Why a run ends with the reader.
const ENDED: &str = "the aggregator has ended";

/// How long a snapshot may take, beside what its length takes.
const SNAPSHOT: Duration = Duration::from_secs(30);

/// The slowest that a snapshot may go, in bytes a second.
const SNAPSHOT_RATE: u64 = 1 << 20;

/// The longest snapshot that is read.
const MOST_SNAPSHOT: usize = 16 << 30;

/// So long nothing was added to parts of a snapshot that will not be whole any more.
const SWEEP: Duration = Duration::from_secs(60);

/// Sensors of which it is known where they are, between two calls of [`retain`](Engine::retain). Those beyond are read
/// without it.
const MOST_SENSORS: usize = 10_000;

/// The first byte of a position: which engine's it is, and its version.
const POSITION: u8 = b'n';

/// The engine of a NATS server.
pub(crate) struct Nats {
    server: Server,
    link: watch::Receiver<Link>,
    items: mpsc::Receiver<Item>,
    pump: Option<JoinHandle<()>>,
    progress: Arc<Mutex<Progress>>,
    /// The run that the last message came in, and its number in it.
    read: (u64, u64),
    place: Place,
    /// As whose it came.
    sensor: String,
    /// The last batch of each sensor.
    sensors: Positions,
    damaged: u64,
    /// How old parts of a snapshot have to be to be removed when the next one is stored, if they have yet to be.
    pub(super) sweeps: Option<Duration>,
    driver: Driver,
}

/// A place in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    /// When the stream was made, in nanoseconds since 1970.
    created: i64,
    /// The sequence of the last message that was read.
    sequence: u64,
}

impl Place {
    /// Whether it is in the stream that was made then: another of the same name counts from 1 again.
    ///
    /// While a cluster of nats-server 2.9.10 makes a stream, one of its servers says when its own copy was made, not
    /// when the stream was.
    fn is_in(&self, created: i64) -> bool {
        u128::from(self.created.abs_diff(created)) < PATIENCE.as_nanos()
    }
}

/// What comes from the server.
enum Item {
    /// A run began.
    Run(u64),
    /// A message, and its number in the run.
    Message { count: u64, place: Place, message: Box<async_nats::Message> },
}

/// How far the reader is behind. What is in the stream now cannot be known, but what was there a moment ago.
#[derive(Debug, Default)]
struct Progress {
    /// The run in which messages come, or 0 while there is none.
    run: u64,
    /// So many messages the run had brought and had yet to bring, at that time.
    goal: Option<(u64, Instant)>,
    /// All that was in the stream at that time has been read.
    read_at: Option<Instant>,
    /// Why the last run ended, if no other has begun.
    problem: Option<String>,
}

impl Debug for Nats {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Nats").field("url", &self.server.url).field("place", &self.place).finish_non_exhaustive()
    }
}

impl Nats {
    /// Begins to connect to the server; `url` is that of a [`Place`](crate::sensors::Place).
    ///
    /// # Errors
    ///
    /// Options or files that cannot be used. A server that cannot be reached is none.
    pub(crate) fn new(url: &str, options: &NatsOptions) -> Result<Self, NatsError> {
        Nats::connect(options.resolve(url, "aggregate".to_owned())?)
    }

    /// The same for one that only looks: it makes neither stream nor object store, and waits for a stream that is not
    /// there.
    ///
    /// # Errors
    ///
    /// As above.
    pub(crate) fn that_looks(url: &str, options: &NatsOptions) -> Result<Self, NatsError> {
        Nats::connect(Server { is_looked_at: true, ..options.resolve(url, "top".to_owned())? })
    }

    fn connect(server: Server) -> Result<Self, NatsError> {
        let driver = Driver::start()?;
        let (link, seen) = watch::channel(Link::Down("no answer yet".into()));
        driver.handle.spawn(server.clone().keep(link));
        Ok(Nats {
            server,
            link: seen,
            items: mpsc::channel(1).1,
            pump: None,
            progress: Arc::default(),
            read: (0, 0),
            place: Place::default(),
            sensor: String::new(),
            sensors: Positions::new(),
            damaged: 0,
            sweeps: Some(SWEEP),
            driver,
        })
    }

    /// Whether there is a connection. While there is none, a sensor's silence means nothing.
    pub(crate) fn is_connected(&self) -> bool {
        matches!(&*self.link.borrow(), Link::Up(..))
    }

    /// Why there is no connection; `None` if there is one.
    pub(crate) fn error(&self) -> Option<String> {
        match &*self.link.borrow() {
            Link::Up(..) => None,
            Link::Down(why) => Some(why.clone()),
        }
    }

    /// The batch of an item, if it has one and it is its turn.
    fn take(&mut self, item: Item) -> Option<Vec<u8>> {
        let (count, place, message) = match item {
            Item::Run(run) => {
                self.read = (run, 0);
                return None;
            }
            Item::Message { count, place, message } => (count, place, message),
        };
        self.read.1 = count;
        if place != (Place { sequence: self.place.sequence.wrapping_add(1), ..self.place }) {
            // What is missing was removed, and will not come again.
            self.sensors.clear();
        }
        self.place = place;
        self.sensor = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
        let header = |name| message.headers.as_ref().and_then(|headers| headers.get(name));
        // One without headers is not from this program's sensors; what is in it the aggregator finds out.
        if let Some(batch) = header(BATCH) {
            let after = header(AFTER).map(|after| parse_batch_header(after.as_str()));
            let sensor = message.subject.rsplit('.').next().filter(|sensor| is_sensor_name(sensor));
            let (Some(batch), true, Some(sensor)) = (parse_batch_header(batch.as_str()), after != Some(None), sensor)
            else {
                self.damaged += 1;
                return None;
            };
            let last = self.sensors.get(sensor).copied();
            if last.is_some_and(|last| after.flatten() > Some(last)) {
                return None;
            }
            // One that is far ahead does not count. If it were the last, no gap would be seen any more.
            let is_ahead = batch.0 > latest_epoch(now_ns());
            if !is_ahead && (last.is_some() || self.sensors.len() < MOST_SENSORS) {
                self.sensors.insert(sensor.into(), last.max(Some(batch)).expect("one is there"));
            }
        }
        Some(message.payload.into())
    }

    /// Does something over the connection, which it waits for a little. `bytes` say how long it may take.
    fn ask<T>(
        &self,
        bytes: usize,
        ask: impl AsyncFnOnce(jetstream::Context) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let mut link = self.link.clone();
        let most = SNAPSHOT + Duration::from_secs(bytes as u64 / SNAPSHOT_RATE);
        let answer = self.driver.handle.block_on(async {
            let (number, context) = timeout(PATIENCE, up(&mut link)).await.ok()??;
            tokio::select! {
                answer = timeout(most, ask(context)) => Some(answer),
                _ = down(&mut link, number) => None,
            }
        });
        let disconnected = |why: &str| Err(EngineError::Disconnected(self.server.url.clone(), why.into()));
        match answer {
            Some(Ok(answer)) => answer,
            Some(Err(_)) => disconnected("there was no answer in time"),
            None => disconnected(self.error().as_deref().unwrap_or(LOST)),
        }
    }

    fn object(&self, shards: &RangeInclusive<u8>) -> String {
        format!("{}.{}", self.server.options.prefix, shards_name(shards))
    }

    /// The stored snapshots: their shards and, in their descriptions, their places. Then the names of the parts of all
    /// that is stored, those of other prefixes among them.
    async fn list(
        &self,
        context: &jetstream::Context,
        snapshots: &ObjectStore,
    ) -> Result<(Vec<(RangeInclusive<u8>, ObjectInfo)>, HashSet<String>), EngineError> {
        let failed = |error: String| EngineError::Server("list the snapshots", error);
        let (mut stored, mut parts) = (Vec::new(), HashSet::new());
        for subject in subjects(context, "M").await.map_err(failed)? {
            let Some(name) = subject.rsplit('.').next().and_then(decode_name) else { continue };
            let object = match snapshots.info(&name).await {
                Ok(object) if object.deleted => continue,
                Err(error) if error.kind() == InfoErrorKind::NotFound => continue,
                object => object.map_err(|error| failed(error.to_string()))?,
            };
            parts.insert(object.nuid.clone());
            let name = name.strip_prefix(&self.server.options.prefix).and_then(|name| name.strip_prefix('.'));
            stored.extend(name.and_then(shards_of).map(|shards| (shards, object)));
        }
        Ok((stored, parts))
    }

    /// Removes the messages that no stored snapshot needs, if those cover all shards.
    async fn purge(&self, context: &jetstream::Context, snapshots: &ObjectStore) -> Result<(), EngineError> {
        let failed = |error| EngineError::Server("remove what is left of snapshots", error);
        // First: what is whole by the time of the list is in it.
        let parts = match self.sweeps {
            Some(_) => subjects(context, "C").await.map_err(failed)?,
            None => Vec::new(),
        };
        let (objects, whole) = self.list(context, snapshots).await?;
        if let Some(age) = self.sweeps {
            sweep(context, &parts, &whole, age).await.map_err(failed)?;
        }
        let mut stored = Vec::new();
        for (shards, object) in objects {
            // What one without a place needs is not known.
            let place = object.description.as_deref().and_then(parse_place);
            let place = place.ok_or_else(|| EngineError::Snapshot(format!("{BUCKET}/{}", object.name)))?;
            stored.push((shards, place));
        }
        let are_in_this_stream = stored.iter().all(|(_, place)| place.is_in(self.place.created));
        if !cover_all(stored.iter().map(|(shards, _)| shards)) || !are_in_this_stream {
            return Ok(());
        }
        let Some(least) = stored.iter().map(|(_, place)| place.sequence).min().filter(|&least| least > 0) else {
            return Ok(());
        };
        let failed = |error: String| EngineError::Server("remove old batches", error);
        let stream = self.server.stream(context).await.map_err(failed)?;
        if stream.cached_info().state.first_sequence <= least {
            stream.purge().sequence(least + 1).await.map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }
}

impl Engine for Nats {
    fn load(&mut self, shards: RangeInclusive<u8>) -> Result<Option<Snapshot>, EngineError> {
        let name = self.object(&shards);
        self.ask(MOST_SNAPSHOT, async |context| {
            let failed = |error: String| EngineError::Server("load the snapshot", error);
            let snapshots = snapshots(&context, self.server.replicas()).await.map_err(failed)?;
            let mut object = match snapshots.get(&name).await {
                Ok(object) => object,
                Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(failed(error.to_string())),
            };
            let size = object.info().size;
            let damaged = || EngineError::Snapshot(format!("{BUCKET}/{name}"));
            if !(SNAPSHOT_HEADER..=MOST_SNAPSHOT).contains(&size) {
                return Err(damaged());
            }
            let mut stored = Vec::new();
            let read = async {
                // Of one that is replaced meanwhile the rest may never come.
                let patience = if self.server.is_looked_at { PATIENCE } else { SNAPSHOT };
                while timeout(patience, object.read_buf(&mut stored)).await?? > 0 {}
                io::Result::Ok(())
            };
            let most = SNAPSHOT + Duration::from_secs(size as u64 / SNAPSHOT_RATE);
            match timeout(most, read).await {
                Ok(read) => read.map_err(|error| failed(error.to_string()))?,
                Err(_) => return Err(failed("it did not come in time".into())),
            };
            read_snapshot(stored).map(Some).ok_or_else(damaged)
        })
    }

    fn stored(&mut self) -> Result<Vec<RangeInclusive<u8>>, EngineError> {
        self.ask(0, async |context| {
            let failed = |error: String| EngineError::Server("list the snapshots", error);
            if existing(&context, BUCKET_STREAM).await.map_err(failed)?.is_none() {
                return Ok(Vec::new());
            }
            let snapshots = snapshots(&context, self.server.replicas()).await.map_err(failed)?;
            Ok(self.list(&context, &snapshots).await?.0.into_iter().map(|(shards, _)| shards).collect())
        })
    }

    fn least(&self, positions: &[&[u8]]) -> Result<Option<Vec<u8>>, EngineError> {
        let mut least: Option<(Place, &[u8])> = None;
        for &position in positions {
            let (place, _) = decode(position).ok_or(EngineError::Position)?;
            match least {
                // Of two streams one is no more. What is known of the other is not worth to be found out.
                Some((other, _)) if !other.is_in(place.created) => return Ok(None),
                Some((other, _)) if other.sequence <= place.sequence => {}
                _ => least = Some((place, position)),
            }
        }
        Ok(least.map(|(_, position)| position.to_vec()))
    }

    fn begin(&mut self, position: Option<&[u8]>) -> Result<(), EngineError> {
        let (place, sensors) = match position {
            Some(position) => decode(position).ok_or(EngineError::Position)?,
            None => (Place::default(), Positions::new()),
        };
        if let Some(pump) = self.pump.take() {
            pump.abort();
        }
        let (to, items) = mpsc::channel(AHEAD);
        self.progress = Arc::default();
        let pump = Pump {
            server: self.server.clone(),
            link: self.link.clone(),
            progress: Arc::clone(&self.progress),
            place,
            to,
        };
        self.pump = Some(self.driver.handle.spawn(pump.run()));
        (self.place, self.sensors, self.items, self.read) = (place, sensors, items, (0, 0));
        Ok(())
    }

    fn next(&mut self, wait: Duration) -> Result<Read, EngineError> {
        if self.pump.is_none() {
            self.begin(None)?;
        }
        let end = Instant::now() + wait;
        loop {
            let item = match self.items.try_recv() {
                Ok(item) => item,
                Err(_) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Ok(Read::Nothing);
                    }
                    let items = &mut self.items;
                    match self.driver.handle.block_on(async { timeout(left, items.recv()).await }) {
                        Ok(Some(item)) => item,
                        Ok(None) | Err(_) => return Ok(Read::Nothing),
                    }
                }
            };
            if let Some(batch) = self.take(item) {
                return Ok(Read::Batch(batch));
            }
        }
    }

    fn sensor(&self) -> &str {
        &self.sensor
    }

    fn position(&self) -> Vec<u8> {
        let mut bytes = vec![POSITION];
        bytes.extend_from_slice(&self.place.created.to_le_bytes());
        bytes.extend_from_slice(&self.place.sequence.to_le_bytes());
        put_positions(&mut bytes, &self.sensors);
        bytes
    }

    fn is_caught_up(&self) -> bool {
        let mut progress = lock(&self.progress);
        if progress.run == 0 || progress.run != self.read.0 || !self.is_connected() {
            return false;
        }
        if let Some((_, at)) = progress.goal.take_if(|(count, _)| self.read.1 >= *count) {
            progress.read_at = Some(at);
        }
        progress.read_at.is_some_and(|at| at.elapsed() < FRESH)
    }

    fn store(&mut self, shards: RangeInclusive<u8>, snapshot: &[u8]) -> Result<(), EngineError> {
        let head = snapshot_head(&self.position(), snapshot);
        let object = ObjectMetadata {
            name: self.object(&shards),
            description: Some(format!("{} {}", self.place.created, self.place.sequence)),
            ..ObjectMetadata::default()
        };
        let stored = self.ask(snapshot.len(), async |context| {
            let failed = |error: String| EngineError::Server("store the snapshot", error);
            let snapshots = snapshots(&context, self.server.replicas()).await.map_err(failed)?;
            again(async || {
                let put = snapshots.put(object.clone(), &mut (&head[..]).chain(snapshot)).await;
                put.map(drop).map_err(|error| error.to_string())
            })
            .await
            .map_err(failed)?;
            self.purge(&context, &snapshots).await
        });
        // One that failed may have left parts as well.
        self.sweeps = stored.is_err().then(|| self.sweeps.unwrap_or(SWEEP));
        stored
    }

    fn retain(&mut self, is_known: &dyn Fn(&str) -> bool) {
        self.sensors.retain(|sensor, _| is_known(sensor));
    }

    fn damaged(&self) -> u64 {
        self.damaged
    }

    fn problem(&self) -> Option<String> {
        match self.error() {
            Some(why) => Some(format!("{} is not connected: {why}", self.server.url)),
            None => lock(&self.progress).problem.clone(),
        }
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        if let Some(pump) = self.pump.take() {
            pump.abort();
        }
    }
}

/// Where the snapshots are; it is made if it is not there. Another aggregator may make it at the same time.
async fn snapshots(context: &jetstream::Context, replicas: usize) -> Result<ObjectStore, String> {
    let config = || object_store::Config {
        bucket: BUCKET.into(),
        max_bytes: -1,
        storage: StorageType::File,
        num_replicas: replicas,
        ..object_store::Config::default()
    };
    again(async || {
        existing_or_made(context, BUCKET_STREAM, async || {
            context.create_object_store(config()).await.map(drop).map_err(|error| error.to_string())
        })
        .await?;
        context.get_object_store(BUCKET).await.map_err(|error| error.to_string())
    })
    .await
}

/// Tries something for a second, as a server refuses it while it makes what is needed for it.
async fn again<T>(mut ask: impl AsyncFnMut() -> Result<T, String>) -> Result<T, String> {
    let end = Instant::now() + Duration::from_secs(1);
    loop {
        match ask().await {
            Err(_) if Instant::now() < end => tokio::time::sleep(Duration::from_millis(50)).await,
            answer => return answer,
        }
    }
}

/// The subjects of what is stored of a kind: `M` are the snapshots, `C` their parts. The object store's own listing
/// waits for messages that are counted first, and for ever for one that another aggregator replaces meanwhile.
async fn subjects(context: &jetstream::Context, kind: &str) -> Result<Vec<String>, String> {
    let stream = context.get_stream(BUCKET_STREAM).await.map_err(|error| error.to_string())?;
    let found = stream.info_with_subjects(format!("$O.{BUCKET}.{kind}.>")).await;
    let mut found = found.map_err(|error| error.to_string())?;
    let mut subjects = Vec::new();
    while let Some(subject) = found.next().await {
        subjects.push(subject.map_err(|error| error.to_string())?.0);
    }
    Ok(subjects)
}

/// Removes those of these parts of snapshots that were never whole, as of an aggregator that was killed while it stored
/// one. `whole` names the others. What another aggregator stores right now is younger than `age`.
async fn sweep(
    context: &jetstream::Context,
    parts: &[String],
    whole: &HashSet<String>,
    age: Duration,
) -> Result<(), String> {
    let stream = context.get_stream(BUCKET_STREAM).await.map_err(|error| error.to_string())?;
    let last_ns = async |subject: &str| {
        let last = stream.get_last_raw_message_by_subject(subject).await.map_err(|error| error.to_string())?;
        Ok::<_, String>(last.time.unix_timestamp_nanos())
    };
    // By the server's clock alone.
    let old_ns = last_ns(&format!("$O.{BUCKET}.M.>")).await? - age.as_nanos() as i128;
    for subject in parts {
        let is_whole = subject.rsplit('.').next().is_none_or(|part| whole.contains(part));
        // One that is gone by now was replaced.
        if !is_whole && last_ns(subject).await.is_ok_and(|last_ns| last_ns < old_ns) {
            stream.purge().filter(subject).await.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// The name of an object in its subject.
fn decode_name(encoded: &str) -> Option<String> {
    String::from_utf8(URL_SAFE.decode(encoded).ok()?).ok()
}

/// The place in a snapshot's description.
fn parse_place(text: &str) -> Option<Place> {
    let (created, sequence) = text.split_once(' ')?;
    Some(Place { created: created.parse().ok()?, sequence: sequence.parse().ok()? })
}

fn decode(position: &[u8]) -> Option<(Place, Positions)> {
    let (&POSITION, rest) = position.split_first()? else { return None };
    let (created, rest) = rest.split_first_chunk()?;
    let (sequence, rest) = rest.split_first_chunk()?;
    let place = Place { created: i64::from_le_bytes(*created), sequence: u64::from_le_bytes(*sequence) };
    Some((place, take_positions(rest)?))
}

/// What brings the messages, run by run: a run ends with an error or with its connection.
struct Pump {
    server: Server,
    link: watch::Receiver<Link>,
    progress: Arc<Mutex<Progress>>,
    place: Place,
    to: mpsc::Sender<Item>,
}

impl Pump {
    async fn run(mut self) {
        let mut pause = Pause::default();
        for run in 1.. {
            let Some((number, context)) = up(&mut self.link).await else { return };
            let before = self.place;
            let mut link = self.link.clone();
            let ended = tokio::select! {
                ended = self.read(&context, run) => ended,
                why = down(&mut link, number) => Err(why),
            };
            *lock(&self.progress) = Progress { problem: ended.err(), ..Progress::default() };
            if self.to.is_closed() {
                return;
            }
            if self.place != before {
                pause = Pause::default();
            }
            pause.wait().await;
        }
    }

    /// Reads behind the place until something is wrong.
    async fn read(&mut self, context: &jetstream::Context, run: u64) -> Result<(), String> {
        let stream = self.server.stream(context).await?;
        let info = stream.cached_info();
        let created = i64::try_from(info.created.unix_timestamp_nanos()).unwrap_or(i64::MAX);
        // Another stream, or one that lost its end with a machine's power: what was read is repeated at worst.
        if !self.place.is_in(created) || self.place.sequence > info.state.last_sequence {
            self.place = Place { created, sequence: 0 };
        }
        let consumer = stream
            .create_consumer(pull::Config {
                deliver_policy: match self.place.sequence {
                    0 => DeliverPolicy::All,
                    sequence => DeliverPolicy::ByStartSequence { start_sequence: sequence.saturating_add(1) },
                },
                // Nothing is acknowledged: the position is in the snapshots.
                ack_policy: AckPolicy::None,
                inactive_threshold: FORGET,
                memory_storage: true,
                ..pull::Config::default()
            })
            .await
            .map_err(|error| error.to_string())?;
        self.to.send(Item::Run(run)).await.map_err(|_| ENDED)?;
        *lock(&self.progress) = Progress { run, ..Progress::default() };
        let progress = Arc::clone(&self.progress);
        tokio::select! {
            ended = self.forward(&consumer) => ended,
            ended = measure(consumer.clone(), &progress) => ended,
        }
    }

    /// Hands on the messages of a consumer.
    async fn forward(&mut self, consumer: &PullConsumer) -> Result<(), String> {
        let mut count = 0;
        loop {
            let request = consumer.batch().max_messages(AHEAD).expires(REQUEST);
            let mut messages = request.messages().await.map_err(|error| error.to_string())?;
            while let Some(message) = messages.next().await {
                let message = message.map_err(|error| error.to_string())?;
                let info = message.info().map_err(|error| error.to_string())?;
                let place = Place { sequence: info.stream_sequence, ..self.place };
                count += 1;
                if info.consumer_sequence != count {
                    return Err(format!("message {} came as the {count}th", info.consumer_sequence));
                }
                let message = Box::new(message.split().0);
                self.to.send(Item::Message { count, place, message }).await.map_err(|_| ENDED)?;
                self.place = place;
            }
        }
    }
}

/// Asks again and again how much is in the stream that has not been read.
async fn measure(mut consumer: PullConsumer, progress: &Mutex<Progress>) -> Result<(), String> {
    loop {
        // One that the reader was not yet at says nothing new, unless what it counted was removed since.
        let is_due = lock(progress).goal.is_none_or(|(_, at)| at.elapsed() > 2 * FRESH);
        if is_due {
            let at = Instant::now();
            let info = consumer.info().await.map_err(|error| error.to_string())?;
            lock(progress).goal = Some((info.delivered.consumer_sequence + info.num_pending, at));
        }
        tokio::time::sleep(MEASURE).await;
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::batch_header;
    use super::*;

    #[test]
    fn positions_come_back_and_others_are_refused() {
        let place = Place { created: i64::MIN, sequence: u64::MAX };
        let sensors = Positions::from([("a".into(), (1, 2))]);
        let mut bytes = vec![POSITION];
        bytes.extend_from_slice(&place.created.to_le_bytes());
        bytes.extend_from_slice(&place.sequence.to_le_bytes());
        let head = bytes.len();
        put_positions(&mut bytes, &sensors);
        assert_eq!(decode(&bytes), Some((place, sensors)));
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]).is_some(), length == head, "{length}");
        }
        assert_eq!(decode(b"f"), None);
        assert_eq!(parse_place("-5 7"), Some(Place { created: -5, sequence: 7 }));
        for text in ["", "5", "5 ", "5 -7", "x 7"] {
            assert_eq!(parse_place(text), None, "{text}");
        }
    }

    #[test]
    fn a_stream_is_the_same_whichever_server_of_a_cluster_says_when_it_was_made() {
        let (second, place) = (1_000_000_000, |created| Place { created, sequence: 100 });
        for (created, other, is_same) in [(0, second / 100, true), (second / 100, 0, true), (0, 6 * second, false)] {
            assert_eq!(place(created).is_in(other), is_same, "{created} {other}");
        }
        assert!(!place(i64::MIN).is_in(i64::MAX));
    }

    #[test]
    fn names_are_decoded() {
        for (encoded, name) in
            [("", ""), ("Zg==", "f"), ("MTI=", "12"), ("Zm9v", "foo"), ("w7_Dvj8-", "\u{ff}\u{fe}?>")]
        {
            assert_eq!(decode_name(encoded).as_deref(), Some(name), "{encoded}");
        }
        assert_eq!(decode_name("Y29yZWxhbmUuMC0yNTU=").as_deref(), Some("corelane.0-255"));
        for encoded in ["Zm9/", "Zm 9", "_w=="] {
            assert_eq!(decode_name(encoded), None, "{encoded}");
        }
    }

    #[test]
    fn headers_come_back() {
        let batch = (u64::MAX, 0);
        assert_eq!(parse_batch_header(&batch_header(batch)), Some(batch));
        for text in ["", ".", "1", "1.", ".1", "1.x", "1.2.3", "-1.2"] {
            assert_eq!(parse_batch_header(text), None, "{text}");
        }
    }
}
