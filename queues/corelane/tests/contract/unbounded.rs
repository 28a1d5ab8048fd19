//! Queues without a bound: never full, and in all else like the others.

use crate::case::{Case, STARTS, options, queue_from};
use corelane::error::{ChannelError, TryPopError};
use corelane::spsc::{self, Counting, Linked, linked};
use corelane::wait::Adaptive;

/// Some of which are the length of a segment in one of the suites.
const LENGTHS: [usize; 6] = [1, 2, 7, 50, 64, 1000];

pub(crate) fn it_is_never_full<C: Case>() {
    for (length, start) in LENGTHS.into_iter().flat_map(|length| STARTS.map(|start| (length, start))) {
        let (mut tx, mut rx) = queue_from::<u64, C>(length, start);
        assert_eq!((tx.len(), rx.len(), tx.release_lag()), (0, 0, 0));
        assert!(tx.capacity() == rx.capacity() && tx.capacity() >= isize::MAX as usize / 2);
        let (mut pushed, mut popped) = (0, 0);
        for round in 0..6 {
            for _ in 0..3_000 {
                assert_eq!(tx.try_push(pushed), Ok(()));
                pushed += 1;
            }
            let inside = (pushed - popped) as usize;
            assert_eq!(rx.len(), inside);
            assert!(tx.len() >= inside);
            let most = if round % 2 == 0 { 3_000 } else { inside as u64 };
            for _ in 0..most {
                assert_eq!(rx.try_pop(), Ok(popped));
                popped += 1;
            }
        }
        assert_eq!(rx.try_pop(), Err(TryPopError::Empty));
        assert_eq!((tx.len(), rx.len()), (0, 0), "a consumer that says Empty has told of all it popped");
        assert_eq!(tx.wait_for_room(1_000_000), Ok(()));
    }
}

pub(crate) fn what_is_inside_is_counted<C: Case>() {
    let options = options::<C, _>(8, Adaptive).stats::<Counting>();
    let (mut tx, mut rx) = spsc::any_channel::<u64, C::Design, _, _>(8, options).unwrap();
    assert_eq!(tx.try_push_batch(&mut (0..100).collect()).unwrap_or(0), 100);
    assert_eq!(rx.try_pop_batch(&mut Vec::new(), 60).unwrap_or(0), 60);
    let (sent, received) = (tx.stats(), rx.stats());
    assert_eq!((sent.pushes, sent.full, sent.high_water), (100, 0, 100));
    assert_eq!((received.pops, received.empty), (60, 0));
}

#[test]
fn segments_of_nothing_are_refused() {
    use linked::Tuning;
    let refused = |tuning| {
        let options = spsc::Options::new().tuning(tuning);
        linked::channel_with::<u64, Adaptive, spsc::NoStats>(options).err()
    };
    assert_eq!(refused(Tuning::new().segment(0)), Some(ChannelError::BadSegment));
    assert_eq!(refused(Tuning::new().cached(0)), Some(ChannelError::BadSegment));
    assert_eq!(refused(Tuning::new().segment(usize::MAX)), Some(ChannelError::TooLarge));
    assert_eq!(refused(Tuning::new().segment(usize::MAX / 16)), Some(ChannelError::TooLarge));
    assert_eq!(refused(Tuning::new().cached(usize::MAX / 8)), Some(ChannelError::NoMemory));
    assert_eq!(refused(Tuning::new().segment(1).cached(1)), None);
    assert_eq!(refused(Tuning::new()), None);
}

/// The generic constructor takes any capacity, and makes it no bound.
#[test]
fn a_capacity_is_no_bound() {
    let options = spsc::Options::new().tuning(linked::Tuning::default());
    let (mut tx, rx) = spsc::any_channel::<u64, Linked, Adaptive, _>(3, options).unwrap();
    assert_eq!(tx.try_push_batch(&mut (0..50_000).collect()).unwrap_or(0), 50_000);
    assert_eq!((rx.len(), rx.capacity()), (50_000, linked::UNBOUNDED));
    let (mut tx, mut rx) = linked::channel();
    assert_eq!(tx.try_push(5), Ok(()));
    assert_eq!(rx.try_pop(), Ok(5));
}
