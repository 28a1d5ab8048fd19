//! The contenders, one type each.
//!
//! To add a crate:
//!
//! - add a file here;
//! - add a line in [`each_crate`];
//! - add a line in [`each_crate_that_waits`] or [`each_crate_that_does_not_wait`];
//! - add a line in [`each_crate_with_batches`], or in [`WITHOUT_BATCHES`] with the reason.

mod concurrent_queue;
mod corelane;
mod crossbeam;
mod disruptor;
mod executor;
mod flume;
mod gil;
mod handoff;
mod heapless;
mod jobs;
mod kanal;
mod messages;
mod nexus;
mod paper;
mod pools;
mod ringbuf;
mod rtrb;
mod std_channel;
mod thingbuf;

pub(crate) use self::concurrent_queue::ConcurrentQueue;
pub(crate) use self::corelane::{BQueue, Lamport, Lane, LaneTuned, Linked, Locked, McRing, MultiLine, SafeFastForward};
pub(crate) use self::crossbeam::{CrossbeamArrayQueue, CrossbeamChannel};
pub(crate) use self::disruptor::Disruptor;
pub(crate) use self::executor::{ExecutorFair, ExecutorJavaFair, ExecutorJavaUnfair, ExecutorUnfair};
pub(crate) use self::flume::Flume;
pub(crate) use self::gil::Gil;
pub(crate) use self::handoff::{
    ArrayQueueSpins, ArrayQueueYields, BusyWaitSpins, ChannelUnbounded, ConcurrentUnbounded, CondvarSleeps,
    CrossbeamBounded, CrossbeamUnbounded, CrossbeamZero, Eliminating, Fair, FlumeBounded, FlumeUnbounded, FlumeZero,
    Hanson, JavaFiveFair, JavaFiveUnfair, KanalBounded, KanalUnbounded, KanalZero, LanesBounded, LanesSpin,
    MichaelScottSpins, Naive, ScqBounded, ScqSpins, SyncChannelZero, TicketBounded, TicketSpins, TransferPush,
    TransferPut, TwoLockSpins, Unfair, Word,
};
pub(crate) use self::heapless::Heapless;
pub(crate) use self::jobs::{
    Bwq, BwqCounts, Clq, ClqCounts, CrossbeamJobs, Cvq, CvqCounts, FlumeJobs, KanalJobs, LanesAdapt, LanesYield,
    RtrbByHand, TicketAdapts, TicketCounts, TicketYields, Tlq, TlqCounts,
};
pub(crate) use self::kanal::Kanal;
pub(crate) use self::messages::{
    BbqueueFramed, FastFlowShort, LaneBoxes, LinkedBoxes, LinkedShort, MpscBoxes, RtrbBytes, SegQueueBoxes, Stream,
    StreamWithin, UnboundedBoxes,
};
pub(crate) use self::nexus::Nexus;
pub(crate) use self::paper::{
    BasicRingBuffer, FastForward, FastForwardTuned, LockRingBuffer, McRingBuffer, McRingBufferCallback,
    McRingBufferSane, PaperBQueue, PaperBQueueAdaptive,
};
pub(crate) use self::pools::{
    Bounded, CachedFair, CachedUnfair, Rayon, RustyPool, Threadpool, TokioBlocking, Unbounded,
};
pub(crate) use self::ringbuf::Ringbuf;
pub(crate) use self::rtrb::Rtrb;
pub(crate) use self::std_channel::SyncChannel;
pub(crate) use self::thingbuf::{ThingBuf, ThingBufChannel};

/// Expands the body once for each type of the list, under the given name.
macro_rules! each {
    ([$($contender:ident),* $(,)?] $name:ident => $body:expr) => {$({
        type $name = crate::contenders::$contender;
        $body;
    })*};
}

/// Every safe design of this library, the flagship first.
macro_rules! each_design {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            Lane,
            BQueue,
            McRing,
            SafeFastForward,
            MultiLine,
            Lamport,
            Locked,
        ] $name => $body)
    };
}

/// Every queue of other crates.
macro_rules! each_crate {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            Rtrb,
            Ringbuf,
            Gil,
            Nexus,
            Heapless,
            Disruptor,
            CrossbeamArrayQueue,
            CrossbeamChannel,
            ConcurrentQueue,
            ThingBuf,
            Kanal,
            Flume,
            SyncChannel,
        ] $name => $body)
    };
}

/// Every queue of other crates with batch calls on both sides.
macro_rules! each_crate_with_batches {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            Rtrb,
            Ringbuf,
            Gil,
            Disruptor,
        ] $name => $body)
    };
}

/// Every queue of other crates that has waiting calls.
macro_rules! each_crate_that_waits {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            Gil,
            CrossbeamChannel,
            ThingBufChannel,
            Kanal,
            Flume,
            SyncChannel,
        ] $name => $body)
    };
}

/// Every queue of other crates without waiting calls.
macro_rules! each_crate_that_does_not_wait {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            Rtrb,
            Ringbuf,
            Nexus,
            Heapless,
            Disruptor,
            CrossbeamArrayQueue,
            ConcurrentQueue,
        ] $name => $body)
    };
}

/// Every queue of messages of any length.
macro_rules! each_messages {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            Stream,
            StreamWithin,
            LinkedBoxes,
            LaneBoxes,
            SegQueueBoxes,
            UnboundedBoxes,
            MpscBoxes,
            RtrbBytes,
            BbqueueFramed,
        ] $name => $body)
    };
}

/// Every queue that hands items from thread to thread without storing any: this library's, the paper's comparisons, and
/// those of other crates.
macro_rules! each_handoff {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            Unfair,
            Fair,
            JavaFiveUnfair,
            JavaFiveFair,
            Hanson,
            Naive,
            CrossbeamZero,
            KanalZero,
            FlumeZero,
            SyncChannelZero,
        ] $name => $body)
    };
}

/// Every queue between any number of threads without a bound.
macro_rules! each_unbounded {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            TransferPush,
            CrossbeamUnbounded,
            KanalUnbounded,
            FlumeUnbounded,
            ChannelUnbounded,
            ConcurrentUnbounded,
        ] $name => $body)
    };
}

/// Every bounded queue between any number of threads.
macro_rules! each_bounded {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            TicketBounded,
            ScqBounded,
            LanesBounded,
            CrossbeamBounded,
            ArrayQueueYields,
            KanalBounded,
            FlumeBounded,
        ] $name => $body)
    };
}

/// Queues between any number of threads, in which threads of this library spin. `corelane-bench scale` models them. The
/// first entry is a word to which all threads write.
macro_rules! each_crowd {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            Word,
            TicketSpins,
            ScqSpins,
            LanesSpin,
            MichaelScottSpins,
            TwoLockSpins,
            BusyWaitSpins,
            CondvarSleeps,
            CrossbeamBounded,
            ArrayQueueSpins,
            KanalBounded,
            FlumeBounded,
        ] $name => $body)
    };
}

/// The paper's executor over each queue with which it was measured, except Hanson's, which has no `try_put`.
macro_rules! each_executor {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            ExecutorUnfair,
            ExecutorFair,
            ExecutorJavaUnfair,
            ExecutorJavaFair,
        ] $name => $body)
    };
}

/// Every pool of threads.
macro_rules! each_pool {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            CachedUnfair,
            CachedFair,
            Unbounded,
            Bounded,
            Threadpool,
            RustyPool,
            Rayon,
            TokioBlocking,
        ] $name => $body)
    };
}

/// Every queue between any number of threads that a dispatcher may use, one for all workers or one for each worker,
/// with batches. The paper's four come first.
macro_rules! each_queue_of_jobs {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            Clq,
            Tlq,
            Cvq,
            Bwq,
            TicketYields,
            TicketAdapts,
        ] $name => $body)
    };
}

/// The queues of [`each_queue_of_jobs`] that count, each with one way to wait.
macro_rules! each_counted_queue_of_jobs {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            ClqCounts,
            TlqCounts,
            CvqCounts,
            BwqCounts,
            TicketCounts,
        ] $name => $body)
    };
}

/// Every channel of other crates that workers may share.
macro_rules! each_channel_of_jobs {
    ($name:ident => $body:expr) => {
        crate::contenders::each!([
            CrossbeamJobs,
            FlumeJobs,
            KanalJobs,
        ] $name => $body)
    };
}

pub(crate) use {
    each, each_bounded, each_channel_of_jobs, each_counted_queue_of_jobs, each_crate, each_crate_that_does_not_wait,
    each_crate_that_waits, each_crate_with_batches, each_crowd, each_design, each_executor, each_handoff,
    each_messages, each_pool, each_queue_of_jobs, each_unbounded,
};

/// Crates that are not measured in batches, and why.
pub(crate) const WITHOUT_BATCHES: &[(&str, &str)] = &[
    ("nexus-queue", "has no batch calls"),
    ("heapless", "has no batch calls"),
    ("crossbeam ArrayQueue", "has no batch calls"),
    ("crossbeam channel", "has no batch calls"),
    ("concurrent-queue", "has no batch calls; try_iter pops one by one"),
    ("thingbuf", "has no batch calls"),
    ("kanal", "has a batch call on the receiving side only (drain_into)"),
    ("flume", "has a batch call on the receiving side only (drain)"),
    ("std sync_channel", "has no batch calls; try_iter pops one by one"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Pair;

    /// The lists of crates make claims about them, so each kind of list must name every crate.
    #[test]
    fn every_crate_says_what_it_can_do() {
        let (mut all, mut in_batches, mut by_itself_or_not) = (Vec::new(), Vec::new(), Vec::new());
        each_crate!(P => all.push(<P as Pair<u64>>::name()));
        each_crate_with_batches!(P => in_batches.push(<P as Pair<u64>>::name()));
        in_batches.extend(WITHOUT_BATCHES.iter().map(|(name, _)| (*name).to_owned()));
        each_crate_that_waits!(P => by_itself_or_not.push(<P as Pair<u64>>::name()));
        each_crate_that_does_not_wait!(P => by_itself_or_not.push(<P as Pair<u64>>::name()));
        // thingbuf's queue does not wait, but its channel does.
        by_itself_or_not
            .iter_mut()
            .filter(|name| *name == "thingbuf channel")
            .for_each(|name| *name = "thingbuf".into());
        for list in [&mut all, &mut in_batches, &mut by_itself_or_not] {
            list.sort();
        }
        assert_eq!(all, in_batches);
        assert_eq!(all, by_itself_or_not);
    }
}
