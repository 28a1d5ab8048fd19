//! Results back.

use crate::Case;
use corelane::dispatch::Collector;
use corelane::error::{Closed, PopTimeoutError, TryPopError};
use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) fn nobody_is_starved<C: Case>() {
    let mut results = Collector::<u64>::new(100);
    let mut producers = (0..3).map(|_| results.add().unwrap()).collect::<Vec<_>>();
    for producer in &mut producers {
        (0..100).for_each(|result| producer.push(result).unwrap());
    }
    // However much is in the first one's queue, and however often it is filled up again.
    let mut seen = [0; 3];
    for _ in 0..96 {
        let (worker, _) = results.try_collect().unwrap();
        seen[worker] += 1;
        let _ = producers[0].try_push(0);
    }
    assert_eq!(seen, [32; 3]);
}

pub(crate) fn a_collector_waits<C: Case>() {
    let mut results = Collector::<u64>::new(4);
    let mut first = results.add().unwrap();
    let mut second = results.add().unwrap();
    let (time, since) = (Duration::from_millis(10), Instant::now());
    assert_eq!(results.collect_timeout(time), Err(PopTimeoutError::Timeout));
    assert!(since.elapsed() >= time);
    thread::scope(|scope| {
        let collector = scope.spawn(|| {
            let got = [results.collect().unwrap(), results.collect().unwrap()];
            (got, results.collect_timeout(Duration::MAX), results.collect())
        });
        thread::sleep(time);
        second.push(8).unwrap();
        thread::sleep(time);
        first.push(7).unwrap();
        thread::sleep(time);
        second.push(9).unwrap();
        thread::sleep(time);
        drop(first);
        thread::sleep(time);
        drop(second);
        let (got, last, end) = collector.join().unwrap();
        let mut all = [got[0], got[1], last.unwrap()];
        all.sort_unstable();
        assert_eq!((all, end), ([(0, 7), (1, 8), (1, 9)], Err(Closed(()))));
    });
}

pub(crate) fn a_producer_that_is_gone_is_forgotten<C: Case>() {
    let mut results = Collector::<u64>::new(4);
    assert_eq!(results.try_collect(), Err(TryPopError::Closed), "no worker was added");
    let mut producers = (0..4).map(|_| results.add().unwrap()).collect::<Vec<_>>();
    producers[2].push(2).unwrap();
    drop(producers.remove(2));
    drop(producers.remove(0));
    assert_eq!(results.try_collect(), Ok((2, 2)));
    assert_eq!(results.try_collect(), Err(TryPopError::Empty));
    producers[0].push(1).unwrap();
    producers[1].push(3).unwrap();
    let mut late = results.add().unwrap();
    late.push(4).unwrap();
    let got = std::iter::from_fn(|| results.try_collect().ok()).collect::<HashSet<_>>();
    assert_eq!(got, HashSet::from([(1, 1), (3, 3), (4, 4)]));
    drop((producers, late));
    assert_eq!(results.try_collect(), Err(TryPopError::Closed));
}
