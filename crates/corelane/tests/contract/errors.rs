//! Errors say what happened and do not print the item.

use corelane::error::*;
use std::error::Error;

fn texts(error: impl Error) -> (String, String) {
    (format!("{error:?}"), error.to_string())
}

#[test]
fn errors_describe_themselves() {
    let expected = [
        (texts(TryPushError::Full(7)), "Full(..)", "the queue is full"),
        (texts(TryPushError::Closed(7)), "Closed(..)", "the queue is closed"),
        (texts(Closed(7)), "Closed(..)", "the queue is closed"),
        (texts(PushTimeoutError::Timeout(7)), "Timeout(..)", "the queue was still full when the time was up"),
        (texts(PushTimeoutError::Closed(7)), "Closed(..)", "the queue is closed"),
        (texts(TryPopError::Empty), "Empty", "the queue is empty"),
        (texts(TryPopError::Closed), "Closed", "the queue is closed and drained"),
        (texts(TryPopError::Busy), "Busy", "another thread is in the middle of its call"),
        (texts(PushTimeoutError::Cancelled(7)), "Cancelled(..)", "the wait was cancelled"),
        (texts(PopTimeoutError::Cancelled), "Cancelled", "the wait was cancelled"),
        (texts(PopTimeoutError::Timeout), "Timeout", "the queue was still empty when the time was up"),
        (texts(PopTimeoutError::Closed), "Closed", "the queue is closed and drained"),
        (texts(TryPushError::Busy(7)), "Busy(..)", "another thread is in the middle of its call"),
        (texts(ChannelError::ZeroCapacity), "ZeroCapacity", "a queue needs a capacity of at least 1"),
        (texts(ChannelError::TooLarge), "TooLarge", "the capacity is too large"),
        (
            texts(ChannelError::BadBatch),
            "BadBatch",
            "a batch must hold at least 1 item and at most the queue's capacity",
        ),
        (
            texts(ChannelError::BadSlip),
            "BadSlip",
            "a slip's danger must be at most its good distance, that at most the capacity, its interval at least 1",
        ),
        (
            texts(ChannelError::BadSegment),
            "BadSegment",
            "a segment must hold at least 1 item or byte, and at least 1 segment must be cached",
        ),
        (texts(ChannelError::NoMemory), "NoMemory", "no memory for the queue"),
    ];
    for (said, debug, display) in expected {
        assert_eq!(said, (debug.to_owned(), display.to_owned()));
    }
}

#[test]
fn errors_are_padded_as_asked() {
    assert_eq!(format!("{:>10}", TryPopError::Empty), "the queue is empty");
    assert_eq!(format!("{:>20}", TryPopError::Empty), "  the queue is empty");
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
