//! From a log to the stream: a sensor's thread that sends until all is acknowledged.

use super::super::log::{Log, is_sensor_name, trim, trimmed};
use super::{AFTER, BATCH, Driver, Link, NatsError, NatsOptions, Pause, Server, batch_header, down, up};
use async_nats::HeaderMap;
use async_nats::jetstream;
use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::publish::PublishAck;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::future::IntoFuture;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// Messages that may be unacknowledged.
const WINDOW: usize = 256;

/// Bytes that may be; one message may be, whatever its length.
const WINDOW_BYTES: usize = 8 << 20;

/// How often a log that was at its end is looked at again.
const POLL: Duration = Duration::from_millis(50);

/// How often the log is trimmed.
const TRIM: Duration = Duration::from_secs(1);

/// How a sender is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderState {
    /// Whether there is a connection to the server.
    pub(crate) is_connected: bool,
    /// The epoch and the sequence of the last batch that the server acknowledged with all before it; `None` if this
    /// sensor never had one.
    pub(crate) acknowledged: Option<(u64, u64)>,
    /// Batches that were acknowledged since the start.
    pub(crate) batches: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// How often the sender had to go back to the first that was not acknowledged.
    pub(crate) retries: u64,
    /// Records of the log that could not be read.
    pub(crate) damaged: u64,
    /// Why nothing is acknowledged; `None` while all is well.
    pub(crate) error: Option<String>,
}

/// Sends the log of a sensor, in a thread of its own, and trims it. It never gives up.
///
/// Dropping it stops it at once; what was not acknowledged is sent by the next one.
pub(crate) struct Sender {
    state: Arc<Mutex<SenderState>>,
    link: watch::Receiver<Link>,
    finish: watch::Sender<Option<Instant>>,
    task: JoinHandle<bool>,
    driver: Driver,
}

impl Debug for Sender {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Sender").field(&self.state()).finish()
    }
}

impl Sender {
    /// Begins to send what is, and comes to be, in the log of `sensor` in `folder`. `url` is that of a
    /// [`Place`](crate::sensors::Place).
    ///
    /// # Errors
    ///
    /// Options or files that cannot be used. A server that cannot be reached is none: [`state`](Sender::state) says so.
    pub(crate) fn start(url: &str, options: &NatsOptions, folder: &Path, sensor: &str) -> Result<Sender, NatsError> {
        assert!(is_sensor_name(sensor), "the spool has refused it");
        let server = options.resolve(url, format!("sensor.{sensor}"))?;
        let driver = Driver::start()?;
        let (link, seen) = watch::channel(Link::Down("not connected yet".into()));
        let (finish, is_finishing) = watch::channel(None);
        let acknowledged = trimmed(&folder.join(sensor));
        let state = Arc::new(Mutex::new(SenderState { acknowledged, ..SenderState::default() }));
        let work = Work {
            server: server.clone(),
            folder: folder.into(),
            sensor: sensor.into(),
            link: seen.clone(),
            finish: is_finishing,
            state: Arc::clone(&state),
            trimmed: acknowledged,
        };
        driver.handle.spawn(server.keep(link));
        let task = driver.handle.spawn(work.run());
        Ok(Sender { state, link: seen, finish, task, driver })
    }

    /// How it is, now.
    pub(crate) fn state(&self) -> SenderState {
        let mut state = lock(&self.state).clone();
        match &*self.link.borrow() {
            Link::Up(..) => state.is_connected = true,
            Link::Down(why) => state.error = Some(why.clone()),
        }
        state
    }

    /// Waits until all that the log holds now is acknowledged, but not longer than this, and stops. Says whether it
    /// was; the rest stays in the log for the next start.
    pub(crate) fn finish(self, wait: Duration) -> bool {
        self.finish.send_replace(Some(Instant::now() + wait));
        self.driver.handle.block_on(self.task).unwrap_or(false)
    }
}

fn lock(state: &Mutex<SenderState>) -> std::sync::MutexGuard<'_, SenderState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the thread does.
struct Work {
    server: Server,
    folder: PathBuf,
    sensor: String,
    link: watch::Receiver<Link>,
    finish: watch::Receiver<Option<Instant>>,
    state: Arc<Mutex<SenderState>>,
    /// How far the log is trimmed.
    trimmed: Option<(u64, u64)>,
}

/// A message that is not acknowledged.
struct UnderWay {
    batch: (u64, u64),
    length: usize,
    acknowledgement: Pin<Box<dyn Future<Output = Result<PublishAck, PublishError>> + Send>>,
}

impl Work {
    async fn run(mut self) -> bool {
        let finish = self.finish.clone();
        let is_all = tokio::select! {
            () = self.send() => true,
            () = deadline(finish) => false,
        };
        // The next start sends less again.
        let _ = self.trim();
        is_all
    }

    /// Sends until it is to finish, and all is acknowledged.
    async fn send(&mut self) {
        let mut pause = Pause::default();
        loop {
            let Some((number, context)) = up(&mut self.link).await else { return };
            let before = lock(&self.state).batches;
            let mut link = self.link.clone();
            let ended = tokio::select! {
                ended = self.send_over(&context) => ended,
                why = down(&mut link, number) => Err(why),
            };
            let Err(error) = ended else { return };
            let has_succeeded = {
                let mut state = lock(&self.state);
                state.error = Some(error);
                state.retries += 1;
                state.batches > before
            };
            if has_succeeded {
                pause = Pause::default();
            }
            pause.wait().await;
        }
    }

    /// Sends over one connection, from the first batch that is not acknowledged.
    async fn send_over(&mut self, context: &jetstream::Context) -> Result<(), String> {
        self.server.stream(context).await?;
        let subject = self.server.batches(&self.sensor);
        let next = lock(&self.state).acknowledged.map(|(epoch, sequence)| (epoch, sequence.saturating_add(1)));
        let mut log = Log::open(&self.folder, &self.sensor, next);
        let damaged = lock(&self.state).damaged;
        let mut under_way: VecDeque<UnderWay> = VecDeque::new();
        let mut bytes = 0;
        let mut before = None;
        // At first one: a server that refuses it would refuse all.
        let mut window = 1;
        let (mut look_at, mut trim_at) = (Instant::now(), Instant::now() + TRIM);
        loop {
            // First this, then the log: what it holds by now is all.
            let is_finishing = self.finish.borrow_and_update().is_some();
            let mut is_at_end = false;
            while under_way.len() < window && (bytes < WINDOW_BYTES || under_way.is_empty()) {
                if Instant::now() < look_at && !is_finishing {
                    break;
                }
                let Some(batch) = log.next().map_err(|error| format!("the spool: {error}"))? else {
                    is_at_end = true;
                    look_at = Instant::now() + POLL;
                    break;
                };
                let (key, length) = ((batch.epoch, batch.sequence), batch.bytes.len());
                let mut headers = HeaderMap::new();
                headers.insert(BATCH, batch_header(key));
                if let Some(before) = before.replace(key) {
                    headers.insert(AFTER, batch_header(before));
                }
                let publish = context.publish_with_headers(subject.clone(), headers, batch.bytes.into());
                let acknowledgement = publish.await.map_err(|error| error.to_string())?.into_future();
                under_way.push_back(UnderWay { batch: key, length, acknowledgement });
                bytes += length;
            }
            {
                let mut state = lock(&self.state);
                state.damaged = damaged + log.damaged();
                if is_at_end && under_way.is_empty() {
                    state.error = None;
                }
            }
            if is_finishing && is_at_end && under_way.is_empty() {
                return Ok(());
            }
            let is_full = under_way.len() >= window || bytes >= WINDOW_BYTES;
            let first = under_way.front_mut().map(|first| &mut first.acknowledgement);
            tokio::select! {
                acknowledged = wait_for(first) => {
                    acknowledged.map_err(|error| error.to_string())?;
                    let first = under_way.pop_front().expect("it was waited for");
                    bytes -= first.length;
                    window = WINDOW;
                    let mut state = lock(&self.state);
                    state.acknowledged = Some(first.batch);
                    state.batches += 1;
                    state.bytes += first.length as u64;
                    state.error = None;
                }
                () = sleep_until(look_at), if !is_full => {}
                _ = self.finish.changed() => {}
            }
            if Instant::now() >= trim_at {
                trim_at = Instant::now() + TRIM;
                self.trim()?;
            }
        }
    }

    /// Removes from the log what is acknowledged.
    fn trim(&mut self) -> Result<(), String> {
        let acknowledged = lock(&self.state).acknowledged;
        if let Some((epoch, sequence)) = acknowledged.filter(|_| acknowledged != self.trimmed) {
            let folder = self.folder.join(&self.sensor);
            trim(&folder, epoch, sequence).map_err(|error| format!("the spool: {error}"))?;
            self.trimmed = acknowledged;
        }
        Ok(())
    }
}

/// Waits for the first acknowledgement, if there is one to come.
async fn wait_for<T>(first: Option<&mut Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    match first {
        Some(first) => first.await,
        None => std::future::pending().await,
    }
}

/// Waits until a time is set, and until then.
async fn deadline(mut finish: watch::Receiver<Option<Instant>>) {
    let end = match finish.wait_for(Option::is_some).await {
        Ok(end) => *end,
        Err(_) => None,
    };
    if let Some(end) = end {
        sleep_until(end).await;
    }
}
