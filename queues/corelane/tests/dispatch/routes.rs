//! Which worker gets which job.

use crate::{Case, Rx, build, drain};
use corelane::dispatch::{Builder, ByKey, LeastLoaded};
use corelane::wait::Park;
use std::thread;

pub(crate) fn round_robin_goes_by_batches<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(3).batch(4));
    (0..26).for_each(|job| dispatcher.dispatch(job).unwrap());
    let got = workers.iter_mut().map(drain::<_, C, _>).collect::<Vec<_>>();
    assert_eq!(got[0], [0, 1, 2, 3, 12, 13, 14, 15, 24, 25]);
    assert_eq!(got[1], [4, 5, 6, 7, 16, 17, 18, 19]);
    assert_eq!(got[2], [8, 9, 10, 11, 20, 21, 22, 23]);
}

pub(crate) fn slices_go_by_batches<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2).batch(4));
    // The batches go on over the calls.
    dispatcher.dispatch_slice(&[0, 1, 2]).unwrap();
    dispatcher.dispatch_slice(&[3, 4, 5, 6, 7, 8]).unwrap();
    dispatcher.dispatch_slice(&[]).unwrap();
    assert_eq!(dispatcher.try_dispatch_slice(&[9]), Ok(1));
    assert_eq!(drain::<_, C, _>(&mut workers[0]), [0, 1, 2, 3, 8, 9]);
    assert_eq!(drain::<_, C, _>(&mut workers[1]), [4, 5, 6, 7]);
}

pub(crate) fn a_sleeping_worker_gets_what_another_has_no_time_for<C: Case>() {
    // Whether the second worker sleeps by then is the scheduler's; some time it does.
    loop {
        let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(2).batch(1000).wait(Park));
        let mut busy = workers.remove(0);
        let mut free = workers.remove(0);
        let got = thread::scope(|scope| {
            let free = scope.spawn(move || free.pop().ok());
            for job in 0..100 {
                dispatcher.try_dispatch(job).unwrap();
                thread::yield_now();
            }
            drop(dispatcher);
            free.join().unwrap()
        });
        // It got one although the first one's batch was not over, and only after the first had something to do.
        if let Some(job) = got {
            let first = busy.jobs().collect::<Vec<_>>();
            assert_eq!(first[0], 0);
            assert!(job > 0 && !first.contains(&job));
            return;
        }
    }
}

type Keyed = (u64, u64);

/// The worker of each of some keys, as one job each shows. No two jobs are left.
fn owners<C: Case>(keys: u64, dispatch: impl Fn(u64), workers: &mut [Rx<Keyed, C>]) -> Vec<usize> {
    (0..keys).for_each(dispatch);
    let mut owners = vec![usize::MAX; keys as usize];
    for worker in workers {
        for (key, _) in drain::<_, C, _>(worker) {
            assert_eq!(owners[key as usize], usize::MAX);
            owners[key as usize] = worker.number();
        }
    }
    assert!(!owners.contains(&usize::MAX));
    owners
}

macro_rules! owners {
    ($dispatcher:expr, $workers:expr) => {{
        let dispatcher = std::cell::RefCell::new(&mut $dispatcher);
        owners::<C>(5_000, |key| dispatcher.borrow_mut().try_dispatch((key, 0)).unwrap(), &mut $workers)
    }};
}

fn by_key() -> ByKey<impl FnMut(&Keyed) -> u64 + Send> {
    ByKey::new(|job: &Keyed| job.0)
}

pub(crate) fn a_key_has_one_worker_and_its_order<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, Keyed, _, _>(Builder::new(3).capacity(5_000).route(by_key()));
    let first = owners!(dispatcher, workers);
    for job in 0..4_000 {
        dispatcher.try_dispatch((job % 97, job)).unwrap();
    }
    for worker in &mut workers {
        let mut last = [None; 97];
        for (key, job) in drain::<_, C, _>(worker) {
            assert_eq!(first[key as usize], worker.number());
            assert!(last[key as usize] < Some(job));
            last[key as usize] = Some(job);
        }
    }
    // Whatever the call.
    dispatcher.dispatch_batch(&mut (0..97).map(|key| (key, 0)).collect()).unwrap();
    dispatcher.dispatch_slice(&(0..97).map(|key| (key, 0)).collect::<Vec<_>>()).unwrap();
    for worker in &mut workers {
        let jobs = drain::<_, C, _>(worker);
        assert!(jobs.iter().all(|&(key, _)| first[key as usize] == worker.number()));
    }
}

pub(crate) fn keys_are_spread_over_all_workers<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, Keyed, _, _>(Builder::new(4).capacity(5_000).route(by_key()));
    let owners = owners!(dispatcher, workers);
    for worker in 0..4 {
        let share = owners.iter().filter(|&&owner| owner == worker).count();
        // Keys that count up, 1,250 expected.
        assert!((1_000..1_500).contains(&share), "{share}");
    }
}

pub(crate) fn a_leave_moves_the_keys_of_that_worker_only<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, Keyed, _, _>(Builder::new(4).capacity(5_000).route(by_key()));
    let before = owners!(dispatcher, workers);
    workers.remove(1).leave().unwrap();
    assert_eq!(dispatcher.flush(), 0);
    let after = owners!(dispatcher, workers);
    let mut gained = [0; 4];
    for (before, after) in before.into_iter().zip(after) {
        if before == 1 {
            gained[after] += 1;
        } else {
            assert_eq!(before, after);
        }
    }
    assert!(gained[1] == 0 && [0, 2, 3].iter().all(|&worker| gained[worker] > 300), "{gained:?}");
}

pub(crate) fn a_join_takes_keys_from_all_and_moves_no_other<C: Case>() {
    for count in 1..7 {
        let (mut dispatcher, mut workers) =
            build::<C, Keyed, _, _>(Builder::new(count).capacity(5_000).route(by_key()));
        let before = owners!(dispatcher, workers);
        workers.push(dispatcher.add_worker().unwrap());
        let after = owners!(dispatcher, workers);
        let mut lost = vec![0; count];
        for (before, after) in before.into_iter().zip(after) {
            if after == count {
                lost[before] += 1;
            } else {
                assert_eq!(before, after);
            }
        }
        let fair = 5_000 / count / (count + 1);
        assert!(lost.iter().all(|&lost| lost > fair / 2 && lost < fair * 2), "{lost:?}");
    }
}

pub(crate) fn least_loaded_prefers_an_empty_worker<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(3).capacity(16).route(LeastLoaded::new()));
    (0..9).for_each(|job| dispatcher.try_dispatch(job).unwrap());
    assert_eq!(dispatcher.loads().collect::<Vec<_>>(), [(0, 3), (1, 3), (2, 3)]);
    drain::<_, C, _>(&mut workers[1]);
    for _ in 0..3 {
        dispatcher.try_dispatch(9).unwrap();
    }
    assert_eq!(drain::<_, C, _>(&mut workers[1]), [9, 9, 9]);
}

pub(crate) fn least_loaded_takes_turns_among_equals<C: Case>() {
    let (mut dispatcher, mut workers) = build::<C, u64, _, _>(Builder::new(3).capacity(16).route(LeastLoaded::new()));
    for turn in 0..6 {
        dispatcher.try_dispatch(turn).unwrap();
        assert_eq!(workers[turn as usize % 3].try_pop(), Ok(turn));
        assert!(workers[turn as usize % 3].try_pop().is_err());
    }
}
