//! Queues of messages: the bytes lie in the queue, or in boxes whose pointers do.

use super::Kind::{self, Corelane, Crate, Paper};
use super::Unable;
use crate::coherence;
use crate::measure::{self, Outcome, Receives, Sends};
use crate::raw::rtrb_push_prefixed;
use crate::setting::Setting;
use bbqueue::nicknames::GogiGui;
use bbqueue::prod_cons::framed::{FramedConsumer, FramedProducer};
use bbqueue::traits::coordination::cas::AtomicCoord;
use bbqueue::traits::notifier::polling::Polling;
use bbqueue::traits::storage::BoxedSlice;
use corelane::spsc::{self, Options, linked, stream};
use corelane_papers::fastflow;
use crossbeam_queue::SegQueue;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, mpsc};

/// The capacity of a bounded queue of pointers.
const CAPACITY: usize = 2048;
/// The capacity of a bounded queue of bytes. It is larger for long messages.
const BYTES: usize = 64 * 1024;

/// A queue of messages.
#[derive(Clone)]
pub(crate) struct Messages {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) runs: Rc<dyn Carries>,
}

/// What is measured of it.
pub(crate) trait Carries {
    /// Messages of `least` to `longest` bytes.
    fn messages(&self, setting: &Setting, least: usize, longest: usize) -> Outcome;
    /// A ring of a main thread and workers.
    fn ring(&self, setting: &Setting, workers: usize) -> Outcome;
    /// In the emulator: turns of `a_turn` messages of 8 bytes.
    fn in_turns(&self, a_turn: usize, rounds: coherence::Rounds) -> u64;
}

/// Makes a queue. A bounded one holds at least 32 messages of the length that it gets.
struct Made<F>(F);

impl<X: Sends, Y: Receives, F: Fn(usize) -> Result<(X, Y), Unable>> Carries for Made<F> {
    fn messages(&self, setting: &Setting, least: usize, longest: usize) -> Outcome {
        measure::messages((self.0)(longest)?, setting, least, longest)
    }

    fn ring(&self, setting: &Setting, workers: usize) -> Outcome {
        measure::message_ring(&self.0, setting, workers)
    }

    fn in_turns(&self, a_turn: usize, rounds: coherence::Rounds) -> u64 {
        coherence::messages(|| (self.0)(8), a_turn, rounds)
    }
}

/// An end and its call.
impl<X: Send + 'static, F: Fn(&mut X, &[u8]) -> bool + Send + 'static> Sends for (X, F) {
    #[inline(always)]
    fn try_send(&mut self, message: &[u8]) -> bool {
        (self.1)(&mut self.0, message)
    }
}

impl<Y: Send + 'static, B: Deref<Target = [u8]>, G: Fn(&mut Y) -> Option<B> + Send + 'static> Receives for (Y, G) {
    #[inline(always)]
    fn try_receive<R>(&mut self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        (self.1)(&mut self.0).map(|message| read(&message))
    }
}

fn queue<X: Sends, Y: Receives>(
    name: &'static str,
    kind: Kind,
    pair: impl Fn(usize) -> Result<(X, Y), Unable> + 'static,
) -> Messages {
    Messages { name, kind, runs: Rc::new(Made(pair)) }
}

/// A queue of boxes, by its calls.
fn boxes<X: Send + 'static, Y: Send + 'static, B: Deref<Target = [u8]> + 'static>(
    name: &'static str,
    kind: Kind,
    pair: impl Fn() -> Result<(X, Y), Unable> + 'static,
    push: impl Fn(&mut X, &[u8]) -> bool + Copy + Send + 'static,
    pop: impl Fn(&mut Y) -> Option<B> + Copy + Send + 'static,
) -> Messages {
    queue(name, kind, move |_| pair().map(|(tx, rx)| ((tx, push), (rx, pop))))
}

/// Every queue of messages of any length.
pub(crate) fn any_length() -> Vec<Messages> {
    let linked = || linked::try_channel::<Box<[u8]>>().map_err(Unable::because);
    let lane = || spsc::try_channel::<Box<[u8]>>(CAPACITY).map_err(Unable::because);
    // No box is made if the queue is full: no user would pay that cost.
    let reserve = |tx: &mut spsc::lane::Producer<Box<[u8]>>, message: &[u8]| {
        tx.try_reserve().is_ok_and(|slot| slot.write(message.into()).is_ok())
    };
    let segments = || {
        let queue = Arc::new(SegQueue::<Box<[u8]>>::new());
        Ok((queue.clone(), queue))
    };
    let crossbeam = || Ok(crossbeam_channel::unbounded::<Box<[u8]>>());
    let std = || Ok(mpsc::channel::<Box<[u8]>>());
    vec![
        stream(),
        stream_of("stream, bounded", |longest| stream::Tuning::new().limit(BYTES.max(64 * longest))),
        boxes("linked of boxes", Corelane, linked, |tx, m| tx.try_push(m.into()).is_ok(), |rx| rx.try_pop().ok()),
        boxes("lane of boxes", Corelane, lane, reserve, |rx| rx.try_pop().ok()),
        boxes("SegQueue of boxes", Crate, segments, |tx, m| (tx.push(m.into()), true).1, |rx| rx.pop()),
        boxes(
            "crossbeam unbounded of boxes",
            Crate,
            crossbeam,
            |tx, m| tx.send(m.into()).is_ok(),
            |rx| rx.try_recv().ok(),
        ),
        boxes("std mpsc of boxes", Crate, std, |tx, m| tx.send(m.into()).is_ok(), |rx| rx.try_recv().ok()),
        queue("rtrb of bytes", Crate, |longest| {
            let (tx, rx) = rtrb::RingBuffer::new(BYTES.max(64 * longest));
            let push = |tx: &mut rtrb::Producer<u8>, message: &[u8]| rtrb_push_prefixed(tx, message);
            Ok(((tx, push), RtrbReader { rx, scratch: Vec::with_capacity(longest + 4) }))
        }),
        queue("bbqueue framed", Crate, |longest| {
            let queue = GogiGui::new_with_storage(BoxedSlice::new(BYTES.max(64 * longest)));
            let push = |tx: &mut FramedProducer<Bbqueue>, message: &[u8]| {
                let len = message.len() as u16;
                let Ok(mut grant) = tx.grant(len) else { return false };
                grant.copy_from_slice(message);
                grant.commit(len);
                true
            };
            Ok(((queue.framed_producer(), push), Frames(queue.framed_consumer())))
        }),
    ]
}

/// The stream, with bytes in the queue, without a bound.
pub(crate) fn stream() -> Messages {
    stream_of("stream", |_| stream::Tuning::new())
}

fn stream_of(name: &'static str, tuning: fn(usize) -> stream::Tuning) -> Messages {
    queue(name, Corelane, move |longest| {
        let (tx, rx) = stream::channel_with(Options::new().tuning(tuning(longest))).map_err(Unable::because)?;
        Ok(((tx, |tx: &mut stream::Producer, message: &[u8]| tx.try_push(message).is_ok()), StreamReader(rx)))
    })
}

struct StreamReader(stream::Consumer);

impl Receives for StreamReader {
    #[inline(always)]
    fn try_receive<R>(&mut self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.try_pop().ok().map(read)
    }
}

/// A message as the case study's benchmark passes it by pointer: its length, and at most 16 bytes.
type Short = [u8; 20];

/// A box of a short message, which begins with its length.
struct ShortBox(Box<Short>);

impl Deref for ShortBox {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        let short = &*self.0;
        let len = u32::from_ne_bytes([short[0], short[1], short[2], short[3]]) as usize;
        short.get(..len).unwrap_or(short)
    }
}

#[inline(always)]
fn short(message: &[u8]) -> Box<Short> {
    let mut short = Box::new([0; 20]);
    short[..message.len()].copy_from_slice(message);
    short
}

/// FastFlow's queue, with thin pointers.
pub(crate) fn fastflow_short() -> Messages {
    let pair = || fastflow::try_channel::<Short>(CAPACITY).map_err(Unable::because);
    boxes("fastflow", Paper, pair, |tx, m| tx.push(short(m)).is_ok(), |rx| rx.pop().map(ShortBox))
}

/// The unbounded lane, with thin pointers.
pub(crate) fn linked_short() -> Messages {
    let pair = || linked::try_channel::<Box<Short>>().map_err(Unable::because);
    let pop = |rx: &mut linked::Consumer<Box<Short>>| rx.try_pop().ok().map(ShortBox);
    boxes("linked of boxes", Corelane, pair, |tx, m| tx.try_push(short(m)).is_ok(), pop)
}

/// The receiving end of rtrb's ring of bytes, and room for a message that wraps around. Each message follows its
/// length.
struct RtrbReader {
    rx: rtrb::Consumer<u8>,
    scratch: Vec<u8>,
}

impl Receives for RtrbReader {
    #[inline(always)]
    fn try_receive<R>(&mut self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let prefix = self.rx.read_chunk(4).ok()?;
        let len = match prefix.as_slices() {
            (&[a, b, c, d], _) => u32::from_ne_bytes([a, b, c, d]),
            (first, second) => {
                let mut bytes = [0; 4];
                bytes.iter_mut().zip(first.iter().chain(second)).for_each(|(to, from)| *to = *from);
                u32::from_ne_bytes(bytes)
            }
        };
        // The length and the message were published at once.
        let chunk = self.rx.read_chunk(4 + len as usize).ok()?;
        let answer = match chunk.as_slices() {
            (whole, []) => read(&whole[4..]),
            (first, second) => {
                self.scratch.clear();
                self.scratch.extend_from_slice(first);
                self.scratch.extend_from_slice(second);
                read(&self.scratch[4..])
            }
        };
        chunk.commit_all();
        Some(answer)
    }
}

type Bbqueue = Arc<bbqueue::BBQueue<BoxedSlice, AtomicCoord, Polling>>;

/// The receiving end of bbqueue's frames.
struct Frames(FramedConsumer<Bbqueue>);

impl Receives for Frames {
    #[inline(always)]
    fn try_receive<R>(&mut self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let grant = self.0.read().ok()?;
        let answer = read(&grant);
        grant.release();
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Each message is checked in the measurement: a lap and more of every queue, with messages that wrap around.
    #[test]
    fn every_contender_hands_messages_over() {
        let setting =
            Setting { cpus: [None; 2], bound: Duration::from_secs(9), count: 20_000, counting: false, quick: false };
        for queue in any_length().into_iter().chain([fastflow_short(), linked_short()]) {
            let outcome = queue.runs.messages(&setting, 5, 20);
            assert!(outcome.is_ok_and(|reading| reading.items == 20_000), "{}", queue.name);
        }
    }
}
