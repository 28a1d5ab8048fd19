//! One ready end among many: the time in which one thread finds it and takes its item.

use super::reading::{Outcome, Reading};
use crate::rig::{self, Side, Stop, Work};
use crate::setting::Setting;
use corelane::spsc::{self, Consumer, Producer};
use corelane::wait::Select;

const CAPACITY: usize = 64;

/// The queue that gets the item of this number, in an order without a pattern.
struct Places(u64);

impl Places {
    #[inline(always)]
    fn next(&mut self, queues: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % queues
    }
}

/// Pushes `count` items, each to one of `queues` queues, and finds and takes each of them there.
#[inline(always)]
fn one_at_a_time(
    side: &mut Side,
    count: u64,
    queues: usize,
    mut push: impl FnMut(usize, u64),
    mut pop: impl FnMut() -> u64,
) -> Result<(), Stop> {
    let mut places = Places(0x9e37_79b9_7f4a_7c15);
    for item in 0..count.min(1_000) {
        push(places.next(queues), item);
        side.check(pop(), item)?;
    }
    side.start()?;
    for item in 0..count {
        push(places.next(queues), item);
        side.check(pop(), item)?;
    }
    side.stop();
    Ok(())
}

fn lanes(queues: usize) -> (Vec<Producer<u64>>, Vec<Consumer<u64>>) {
    (0..queues).map(|_| spsc::channel(CAPACITY)).unzip()
}

fn run(setting: &Setting, work: impl FnOnce(&mut Side, u64) -> Result<(), Stop> + Send + 'static) -> Outcome {
    let count = setting.count;
    let work: Work<()> = Box::new(move |side| work(side, count));
    let (_, took) = rig::run(setting, vec![(setting.cpus[0], work)])?;
    Ok(Reading::new(count, took))
}

/// A loop of `try_pop` over lanes, which starts behind the last lane that had an item.
pub(crate) fn by_hand(setting: &Setting, queues: usize) -> Outcome {
    run(setting, move |side, count| {
        let (mut tx, mut rx) = lanes(queues);
        let mut at = 0;
        let push = |to: usize, item| tx[to].try_push(item).expect("it is empty");
        one_at_a_time(side, count, queues, push, || {
            loop {
                let popped = rx[at].try_pop();
                at = if at + 1 == queues { 0 } else { at + 1 };
                if let Ok(item) = popped {
                    break item;
                }
            }
        })
    })
}

/// A [`Select`] over lanes.
pub(crate) fn by_select(setting: &Setting, queues: usize) -> Outcome {
    run(setting, move |side, count| {
        let (mut tx, rx) = lanes(queues);
        let mut select = Select::new();
        let keys: Vec<_> = rx.into_iter().map(|rx| select.add(rx)).collect();
        let push = |to: usize, item| tx[to].try_push(item).expect("it is empty");
        one_at_a_time(side, count, queues, push, || {
            let ready = select.wait().expect("there are ends");
            select[keys[ready.index()]].try_pop().expect("it is ready")
        })
    })
}

/// crossbeam's `Select` over its bounded channels, made once.
pub(crate) fn by_crossbeam(setting: &Setting, queues: usize) -> Outcome {
    run(setting, move |side, count| {
        let (tx, rx): (Vec<_>, Vec<_>) = (0..queues).map(|_| crossbeam_channel::bounded(CAPACITY)).unzip();
        let mut select = crossbeam_channel::Select::new();
        for receiver in &rx {
            select.recv(receiver);
        }
        let push = |to: usize, item: u64| tx[to].try_send(item).expect("it is empty");
        one_at_a_time(side, count, queues, push, || {
            let operation = select.select();
            let at = operation.index();
            operation.recv(&rx[at]).expect("it is ready")
        })
    })
}
