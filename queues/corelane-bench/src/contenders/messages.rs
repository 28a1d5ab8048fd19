//! Queues of messages: the bytes lie in the queue, or in boxes whose pointers do.

use crate::contender::{Kind, Messages, Unable};
use crate::raw::rtrb_push_prefixed;
use bbqueue::nicknames::GogiGui;
use bbqueue::prod_cons::framed::{FramedConsumer, FramedProducer};
use bbqueue::traits::coordination::cas::AtomicCoord;
use bbqueue::traits::notifier::polling::Polling;
use bbqueue::traits::storage::BoxedSlice;
use corelane::spsc::{self, Options, linked, stream};
use corelane_papers::fastflow;
use crossbeam_queue::SegQueue;
use std::sync::{Arc, mpsc};

/// The capacity of a bounded queue of pointers.
const CAPACITY: usize = 2048;
/// The capacity of a bounded queue of bytes. It is larger for long messages.
const BYTES: usize = 64 * 1024;

fn unable(error: impl ToString) -> Unable {
    Unable::because(error.to_string())
}

/// The stream, with bytes in the queue: without a bound, or within a limit.
#[derive(Debug)]
pub(crate) struct Streams<const BOUNDED: bool>;

pub(crate) type Stream = Streams<false>;
pub(crate) type StreamWithin = Streams<true>;

impl<const BOUNDED: bool> Messages for Streams<BOUNDED> {
    const KIND: Kind = Kind::Corelane;
    type Tx = stream::Producer;
    type Rx = stream::Consumer;

    fn name() -> String {
        if BOUNDED { "stream, bounded" } else { "stream" }.to_owned()
    }

    fn pair(longest: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        let tuning = stream::Tuning::new();
        let tuning = if BOUNDED { tuning.limit(BYTES.max(64 * longest)) } else { tuning };
        stream::channel_with(Options::new().tuning(tuning)).map_err(unable)
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, message: &[u8]) -> bool {
        tx.try_push(message).is_ok()
    }

    #[inline(always)]
    fn try_pop<R>(rx: &mut Self::Rx, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        rx.try_pop().ok().map(read)
    }
}

/// A message as the case study's benchmark passes it by pointer: its length, and at most 16 bytes.
type Short = [u8; 20];

#[inline(always)]
fn short(message: &[u8]) -> Box<Short> {
    let mut short = Box::new([0; 20]);
    short[..message.len()].copy_from_slice(message);
    short
}

/// The bytes of a short message. It begins with their number.
#[inline(always)]
fn bytes_of(short: &Short) -> &[u8] {
    let len = u32::from_ne_bytes([short[0], short[1], short[2], short[3]]) as usize;
    short.get(..len).unwrap_or(short)
}

/// FastFlow's queue, with thin pointers.
#[derive(Debug)]
pub(crate) struct FastFlowShort;

impl Messages for FastFlowShort {
    const KIND: Kind = Kind::Paper;
    type Tx = fastflow::Producer<Short>;
    type Rx = fastflow::Consumer<Short>;

    fn name() -> String {
        "fastflow".to_owned()
    }

    fn pair(_: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        fastflow::try_channel(CAPACITY).map_err(unable)
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, message: &[u8]) -> bool {
        tx.push(short(message)).is_ok()
    }

    #[inline(always)]
    fn try_pop<R>(rx: &mut Self::Rx, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        rx.pop().map(|short| read(bytes_of(&short)))
    }
}

/// The unbounded lane, with thin pointers.
#[derive(Debug)]
pub(crate) struct LinkedShort;

impl Messages for LinkedShort {
    const KIND: Kind = Kind::Corelane;
    type Tx = linked::Producer<Box<Short>>;
    type Rx = linked::Consumer<Box<Short>>;

    fn name() -> String {
        "linked of boxes".to_owned()
    }

    fn pair(_: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        linked::try_channel().map_err(unable)
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, message: &[u8]) -> bool {
        tx.try_push(short(message)).is_ok()
    }

    #[inline(always)]
    fn try_pop<R>(rx: &mut Self::Rx, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        rx.try_pop().ok().map(|short| read(bytes_of(&short)))
    }
}

macro_rules! boxes {
    (
        $(#[doc = $doc:literal])+ $name:ident, $label:literal, $kind:ident, $tx:ty, $rx:ty,
        $pair:expr, $push:expr, $pop:expr
    ) => {
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub(crate) struct $name;

        impl Messages for $name {
            const KIND: Kind = Kind::$kind;
            type Tx = $tx;
            type Rx = $rx;

            fn name() -> String {
                $label.to_owned()
            }

            fn pair(_: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
                $pair
            }

            #[inline(always)]
            fn try_push(tx: &mut Self::Tx, message: &[u8]) -> bool {
                let push: fn(&mut $tx, &[u8]) -> bool = $push;
                push(tx, message)
            }

            #[inline(always)]
            fn try_pop<R>(rx: &mut Self::Rx, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
                let pop: fn(&mut $rx) -> Option<Box<[u8]>> = $pop;
                pop(rx).map(|message| read(&message))
            }
        }
    };
}

boxes!(
    /// The unbounded lane.
    LinkedBoxes,
    "linked of boxes",
    Corelane,
    linked::Producer<Box<[u8]>>,
    linked::Consumer<Box<[u8]>>,
    linked::try_channel().map_err(unable),
    |tx, message| tx.try_push(message.into()).is_ok(),
    |rx| rx.try_pop().ok()
);
boxes!(
    /// The bounded lane.
    LaneBoxes,
    "lane of boxes",
    Corelane,
    spsc::lane::Producer<Box<[u8]>>,
    spsc::lane::Consumer<Box<[u8]>>,
    spsc::try_channel(CAPACITY).map_err(unable),
    |tx, message| {
        // No box is made if the queue is full: no user would pay that cost.
        tx.try_reserve().is_ok_and(|slot| slot.write(message.into()).is_ok())
    },
    |rx| rx.try_pop().ok()
);
boxes!(
    /// crossbeam's unbounded queue.
    SegQueueBoxes,
    "SegQueue of boxes",
    Crate,
    Arc<SegQueue<Box<[u8]>>>,
    Arc<SegQueue<Box<[u8]>>>,
    {
        let queue = Arc::new(SegQueue::new());
        Ok((queue.clone(), queue))
    },
    |tx, message| {
        tx.push(message.into());
        true
    },
    |rx| rx.pop()
);
boxes!(
    /// crossbeam's unbounded channel.
    UnboundedBoxes,
    "crossbeam unbounded of boxes",
    Crate,
    crossbeam_channel::Sender<Box<[u8]>>,
    crossbeam_channel::Receiver<Box<[u8]>>,
    Ok(crossbeam_channel::unbounded()),
    |tx, message| tx.send(message.into()).is_ok(),
    |rx| rx.try_recv().ok()
);
boxes!(
    /// The standard library's unbounded channel.
    MpscBoxes,
    "std mpsc of boxes",
    Crate,
    mpsc::Sender<Box<[u8]>>,
    mpsc::Receiver<Box<[u8]>>,
    Ok(mpsc::channel()),
    |tx, message| tx.send(message.into()).is_ok(),
    |rx| rx.try_recv().ok()
);

/// rtrb's ring of bytes. Each message follows its length.
#[derive(Debug)]
pub(crate) struct RtrbBytes;

/// rtrb's receiving end, and room for a message that wraps around.
#[derive(Debug)]
pub(crate) struct RtrbReader {
    rx: rtrb::Consumer<u8>,
    scratch: Vec<u8>,
}

impl Messages for RtrbBytes {
    const KIND: Kind = Kind::Crate;
    type Tx = rtrb::Producer<u8>;
    type Rx = RtrbReader;

    fn name() -> String {
        "rtrb of bytes".to_owned()
    }

    fn pair(longest: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        let (tx, rx) = rtrb::RingBuffer::new(BYTES.max(64 * longest));
        Ok((tx, RtrbReader { rx, scratch: Vec::with_capacity(longest + 4) }))
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, message: &[u8]) -> bool {
        rtrb_push_prefixed(tx, message)
    }

    #[inline(always)]
    fn try_pop<R>(rx: &mut Self::Rx, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let prefix = rx.rx.read_chunk(4).ok()?;
        let len = match prefix.as_slices() {
            (&[a, b, c, d], _) => u32::from_ne_bytes([a, b, c, d]),
            (first, second) => {
                let mut bytes = [0; 4];
                bytes.iter_mut().zip(first.iter().chain(second)).for_each(|(to, from)| *to = *from);
                u32::from_ne_bytes(bytes)
            }
        };
        // The length and the message were published at once.
        let chunk = rx.rx.read_chunk(4 + len as usize).ok()?;
        let answer = match chunk.as_slices() {
            (whole, []) => read(&whole[4..]),
            (first, second) => {
                rx.scratch.clear();
                rx.scratch.extend_from_slice(first);
                rx.scratch.extend_from_slice(second);
                read(&rx.scratch[4..])
            }
        };
        chunk.commit_all();
        Some(answer)
    }
}

/// bbqueue's frames.
#[derive(Debug)]
pub(crate) struct BbqueueFramed;

type Bbqueue = Arc<bbqueue::BBQueue<BoxedSlice, AtomicCoord, Polling>>;

/// bbqueue's ends have no `Debug`.
pub(crate) struct BbqueueTx(FramedProducer<Bbqueue>);
pub(crate) struct BbqueueRx(FramedConsumer<Bbqueue>);

impl std::fmt::Debug for BbqueueTx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BbqueueTx").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for BbqueueRx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BbqueueRx").finish_non_exhaustive()
    }
}

impl Messages for BbqueueFramed {
    const KIND: Kind = Kind::Crate;
    type Tx = BbqueueTx;
    type Rx = BbqueueRx;

    fn name() -> String {
        "bbqueue framed".to_owned()
    }

    fn pair(longest: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
        let queue = GogiGui::new_with_storage(BoxedSlice::new(BYTES.max(64 * longest)));
        Ok((BbqueueTx(queue.framed_producer()), BbqueueRx(queue.framed_consumer())))
    }

    #[inline(always)]
    fn try_push(tx: &mut Self::Tx, message: &[u8]) -> bool {
        let len = message.len() as u16;
        let Ok(mut grant) = tx.0.grant(len) else { return false };
        grant.copy_from_slice(message);
        grant.commit(len);
        true
    }

    #[inline(always)]
    fn try_pop<R>(rx: &mut Self::Rx, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let grant = rx.0.read().ok()?;
        let answer = read(&grant);
        grant.release();
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::each_messages;

    fn hands_over<M: Messages>() {
        let longest = 20;
        let (mut tx, mut rx) = M::pair(longest).expect("it can be made");
        assert_eq!(M::try_pop(&mut rx, <[u8]>::to_vec), None);
        for turn in 0..20_000_usize {
            for len in [5, 12, 20] {
                let mut message = vec![turn as u8; len];
                message[..4].copy_from_slice(&(len as u32).to_ne_bytes());
                assert!(M::try_push(&mut tx, &message), "{}", M::name());
            }
            for len in [5, 12, 20] {
                let got = M::try_pop(&mut rx, <[u8]>::to_vec).expect("there is one");
                assert!(got.len() == len && got[len - 1] == turn as u8, "{}", M::name());
            }
            assert_eq!(M::try_pop(&mut rx, <[u8]>::to_vec), None);
        }
    }

    #[test]
    fn every_contender_hands_messages_over() {
        each_messages!(M => hands_over::<M>());
        hands_over::<FastFlowShort>();
        hands_over::<LinkedShort>();
    }
}
