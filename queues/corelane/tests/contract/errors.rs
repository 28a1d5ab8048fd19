//! Errors say what happened and do not print the item.

use corelane::error::*;
use std::error::Error;

fn texts(error: impl Error) -> (String, String) {
    (format!("{error:?}"), error.to_string())
}

#[test]
fn errors_describe_themselves() {
    let busy = "another thread was in the middle of a call on the queue";
    let cancelled = "the wait was cancelled before an item was passed on";
    let closed = "the queue is closed";
    let drained = "the queue is closed and has no more items";
    let expected = [
        (texts(TryPushError::Full(7)), "Full(..)", "the queue is full, or no partner waits"),
        (texts(TryPushError::Closed(7)), "Closed(..)", closed),
        (texts(Closed(7)), "Closed(..)", closed),
        (
            texts(PushTimeoutError::Timeout(7)),
            "Timeout(..)",
            "the queue was still full, or no partner had come, when the time was up",
        ),
        (texts(PushTimeoutError::Closed(7)), "Closed(..)", closed),
        (texts(TryPopError::Empty), "Empty", "the queue is empty"),
        (texts(TryPopError::Closed), "Closed", drained),
        (texts(TryPopError::Busy), "Busy", busy),
        (texts(PushTimeoutError::Cancelled(7)), "Cancelled(..)", cancelled),
        (texts(PopTimeoutError::Cancelled), "Cancelled", cancelled),
        (texts(PopTimeoutError::Timeout), "Timeout", "the queue was still empty when the time was up"),
        (texts(PopTimeoutError::Closed), "Closed", drained),
        (texts(TryPushError::Busy(7)), "Busy(..)", busy),
        (
            texts(ChannelError::ZeroCapacity),
            "ZeroCapacity",
            "the capacity is too small to hold a single item: choose a larger one, at least 1",
        ),
        (
            texts(ChannelError::TooLarge),
            "TooLarge",
            "the capacity is too large for the queue or for this machine's addresses: choose a smaller one",
        ),
        (
            texts(ChannelError::BadBatch),
            "BadBatch",
            "a batch size or increment is 0 or above the queue's capacity: choose from 1 to the capacity",
        ),
        (
            texts(ChannelError::BadSlip),
            "BadSlip",
            "the slip's parameters do not fit: choose danger <= good <= capacity, and an interval of at least 1",
        ),
        (
            texts(ChannelError::BadSegment),
            "BadSegment",
            "a segment's length or the number of cached segments is 0: choose at least 1 for each",
        ),
        (
            texts(ChannelError::NoMemory),
            "NoMemory",
            "there is not enough memory for the queue: choose a smaller capacity, or free memory",
        ),
    ];
    for (said, debug, display) in expected {
        assert_eq!(said, (debug.to_owned(), display.to_owned()));
    }
}

#[test]
fn errors_are_padded_as_asked() {
    let empty = TryPopError::Empty.to_string();
    assert_eq!(format!("{:>10}", TryPopError::Empty), empty);
    assert_eq!(format!("{:>1$}", TryPopError::Empty, empty.len() + 2), format!("  {empty}"));
    assert_eq!(format!("{:>12?}", Closed(1)), "  Closed(..)");
}

#[test]
fn refused_items_are_given_back() {
    struct NoDebug(u64);
    let full = TryPushError::Full(NoDebug(1));
    assert!(full.is_full() && !full.is_closed());
    assert_eq!(full.into_inner().0, 1);
    let closed = TryPushError::Closed(NoDebug(2));
    assert!(closed.is_closed() && !closed.is_full());
    assert_eq!(closed.into_inner().0, 2);
    assert_eq!(PushTimeoutError::Timeout(NoDebug(3)).into_inner().0, 3);
    assert_eq!(PushTimeoutError::Closed(NoDebug(4)).into_inner().0, 4);
    assert_eq!(format!("{:?}", PushTimeoutError::Timeout(NoDebug(5))), "Timeout(..)");
}
