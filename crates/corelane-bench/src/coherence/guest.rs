//! What runs inside the emulator: threads that take turns at a queue, so that what moves does not depend on time.

use crate::raw;
use crate::raw::directory::{self, Costs};
use std::process;
use std::sync::{Condvar, Mutex};
use std::thread;

/// Counts one case: its number, and what it plays, which returns how many items went through.
pub(super) fn count(case: usize, play: impl FnOnce() -> u64) {
    directory::begin();
    let items = play();
    directory::end(case, items);
}

/// Makes a queue, whose memory are regions then.
pub(super) fn made<Q>(make: impl FnOnce() -> Q) -> Q {
    raw::apart(make)
}

/// What a thread does here is seen, and counted or only remembered.
fn seen<R>(thread: usize, counted: bool, f: impl FnOnce() -> R) -> R {
    /// The others would wait for the turns of a thread that panics. Its message is out by then.
    struct AbortOnPanic;
    impl Drop for AbortOnPanic {
        fn drop(&mut self) {
            if thread::panicking() {
                process::abort();
            }
        }
    }
    raw::apart(|| {
        let _abort_on_panic = AbortOnPanic;
        directory::enter(thread, counted);
        let result = f();
        directory::leave();
        result
    })
}

/// Whose turn it is: turns are numbered, and thread `i` of `n` has number `i`, `i + n` and so on. The threads meet here
/// between their turns, when nothing is counted.
#[derive(Debug, Default)]
struct Turns {
    now: Mutex<u64>,
    changed: Condvar,
}

impl Turns {
    fn take<R>(&self, number: u64, f: impl FnOnce() -> R) -> R {
        let now = self.now.lock().expect("no panic with it locked");
        drop(self.changed.wait_while(now, |now| *now != number).expect("no panic with it locked"));
        // The others would wait for the further turns of a thread that panics. Its message is out by then.
        struct Next<'a>(&'a Turns);
        impl Drop for Next<'_> {
            fn drop(&mut self) {
                if thread::panicking() {
                    process::exit(101);
                }
                *self.0.now.lock().expect("no panic with it locked") += 1;
                self.0.changed.notify_all();
            }
        }
        let _next = Next(self);
        f()
    }
}

/// Rounds in which each thread has one turn. The first ones warm up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    pub(super) warm: u64,
    pub(super) counted: u64,
}

/// What a thread does in one of its turns, with the end of a queue that it has; how many items it took.
pub(super) type Actor<'a> = Box<dyn FnMut() -> u64 + Send + 'a>;

/// One that puts. The end lies on lines of its own.
pub(super) fn puts<'a>(mut turn: impl FnMut() + Send + 'a) -> Actor<'a> {
    takes(move || {
        turn();
        0
    })
}

/// One that takes. The end lies on lines of its own.
pub(super) fn takes<'a>(turn: impl FnMut() -> u64 + Send + 'a) -> Actor<'a> {
    made(|| Box::new(turn))
}

/// The actors play in turns, each in a thread of its own, in this order. Returns how many items were taken in the turns
/// that were counted.
pub(super) fn in_turns(mut actors: Vec<Actor<'_>>, rounds: Rounds) -> u64 {
    let turns = &Turns::default();
    let threads = actors.len() as u64;
    let play = |thread: usize, turn: &mut Actor<'_>| {
        let mut sum = 0;
        for round in 0..rounds.warm + rounds.counted {
            let counted = round >= rounds.warm;
            let number = round * threads + thread as u64;
            let taken = turns.take(number, || seen(thread, counted, &mut *turn));
            sum += if counted { taken } else { 0 };
        }
        sum
    };
    // An end outlives the last turn: what its drop tells the others is not for them to see before.
    thread::scope(|scope| {
        let play = &play;
        let actors = actors.iter_mut().enumerate();
        let threads: Vec<_> = actors.map(|(i, actor)| scope.spawn(move || play(i, actor))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a panic ends the process")).sum()
    })
}

/// Both as fast as they go, as the papers measure. What moves then depends on time.
pub(super) fn at_once([mut putter, mut taker]: [Actor<'_>; 2]) -> u64 {
    thread::scope(|scope| {
        let putter = scope.spawn(|| seen(0, true, &mut putter));
        let taker = scope.spawn(|| seen(1, true, &mut taker));
        putter.join().expect("the thread that puts has not panicked");
        taker.join().expect("the thread that takes has not panicked")
    })
}

/// Has a thread of this number do something before the others come, which is remembered.
pub(super) fn before<R>(thread: usize, f: impl FnOnce() -> R) -> R {
    seen(thread, false, f)
}

/// The actors play at once, each in a thread of its own, on the directory's clocks: how they are switched depends on
/// the seed, and on nothing else but them. Returns how many items were taken.
pub(super) fn on_clocks(mut actors: Vec<Actor<'_>>, seed: u64, costs: &Costs) -> u64 {
    directory::crowd(actors.len(), seed, costs);
    thread::scope(|scope| {
        let actors = actors.iter_mut().enumerate();
        let threads: Vec<_> = actors.map(|(i, actor)| scope.spawn(move || seen(i, true, actor))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread does not panic")).sum()
    })
}
