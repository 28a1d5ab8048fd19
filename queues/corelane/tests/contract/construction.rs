//! What cannot be made is refused.

use crate::case::{Case, Page, options};
use corelane::error::ChannelError;
use corelane::spsc::{
    self, BQueue, Design, FastForward, McRing, MultiLine, Options, bqueue, fastforward, mcring, multiline,
};
use corelane::wait::Adaptive;
use std::panic::catch_unwind;

fn error<T: Send, D: Design<T>>(capacity: usize, tuning: D::Tuning) -> Option<ChannelError> {
    spsc::any_channel::<T, D, Adaptive, _>(capacity, Options::new().tuning(tuning)).err()
}

pub(crate) fn capacity_zero_is_refused<C: Case>() {
    let made = spsc::any_channel::<u64, C::Design, _, _>(0, options::<C, _>(8, Adaptive));
    assert_eq!(made.err(), Some(ChannelError::ZeroCapacity));
}

pub(crate) fn absurd_capacities_are_refused<C: Case>() {
    for capacity in [usize::MAX, isize::MAX as usize, usize::MAX / 4 + 1, usize::MAX / 4] {
        assert_eq!(error::<u64, C::Design>(capacity, C::tuning(capacity)), Some(ChannelError::TooLarge));
        assert_eq!(error::<Page, C::Design>(capacity, C::tuning(capacity)), Some(ChannelError::TooLarge));
    }
    assert_eq!(error::<(), C::Design>(usize::MAX, C::tuning(8)), Some(ChannelError::TooLarge));
}

pub(crate) fn channel_panics_with_the_error<C: Case>() {
    fn message(make: impl FnOnce() + std::panic::UnwindSafe) -> String {
        *catch_unwind(make).unwrap_err().downcast::<String>().unwrap()
    }
    let zero = "the capacity is too small to hold a single item: choose a larger one, at least 1";
    let large = "the capacity is too large for the queue or for this machine's addresses: choose a smaller one";
    assert_eq!(message(|| drop(spsc::channel::<u64>(0))), zero);
    assert_eq!(message(|| drop(spsc::lamport::channel::<u64>(0))), zero);
    assert_eq!(message(|| drop(spsc::mcring::channel::<u64>(0))), zero);
    assert_eq!(message(|| drop(spsc::bqueue::channel::<u64>(usize::MAX))), large);
    assert_eq!(spsc::lane::try_channel::<u64>(0).err(), Some(ChannelError::ZeroCapacity));
}

#[test]
fn batches_of_nothing_or_beyond_the_queue_are_refused() {
    for batch in [0, 101, usize::MAX] {
        let tuning = mcring::Tuning::new().batch(batch);
        assert_eq!(error::<u64, McRing>(100, tuning), Some(ChannelError::BadBatch));
        let tuning = bqueue::Tuning::new().batch_size(batch);
        assert_eq!(error::<u64, BQueue>(100, tuning), Some(ChannelError::BadBatch));
        let tuning = bqueue::Tuning::new().batch_max(batch);
        assert_eq!(error::<u64, BQueue>(100, tuning), Some(ChannelError::BadBatch));
    }
    let tuning = bqueue::Tuning::new().increment(0);
    assert_eq!(error::<u64, BQueue>(100, tuning), Some(ChannelError::BadBatch));
    let refused = error::<u64, MultiLine>(100, multiline::Tuning::new().lines(0));
    assert_eq!(refused, Some(ChannelError::BadBatch));
    for lines in [1, 2, 100, usize::MAX] {
        let tuning = multiline::Tuning::new().lines(lines);
        assert_eq!(error::<u64, MultiLine>(1, tuning), None);
        assert_eq!(error::<Page, MultiLine>(3, tuning), None);
        assert_eq!(error::<(), MultiLine>(100, tuning), None);
    }
    for batch in [1, 100] {
        assert_eq!(error::<u64, McRing>(100, mcring::Tuning::new().batch(batch)), None);
        let tuning = bqueue::Tuning::new().batch_size(batch).batch_max(batch);
        assert_eq!(error::<u64, BQueue>(100, tuning), None);
    }
}

#[test]
fn slips_that_make_no_sense_are_refused() {
    use fastforward::Tuning;
    let fits = |capacity, tuning| match error::<u64, FastForward>(capacity, tuning) {
        None => true,
        Some(ChannelError::BadSlip) => false,
        Some(error) => panic!("{error}"),
    };
    let slip = |good, danger| Tuning::new().good(good).danger(danger);
    assert!(fits(100, slip(100, 100)) && fits(100, slip(0, 0)) && fits(1, slip(1, 1)));
    assert!(!fits(100, slip(101, 1)) && !fits(100, slip(50, 51)) && !fits(1, slip(2, 1)));
    // The other one adapts.
    assert!(fits(100, Tuning::new().good(1)));
    assert!(!fits(100, Tuning::new().danger(100)));
    assert!(fits(100, Tuning::new().avg_time(u32::MAX).interval(u32::MAX)));
    assert!(!fits(100, Tuning::new().interval(0)));
}
