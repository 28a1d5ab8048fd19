//! The part that runs inside the emulator. Threads take turns at a queue, so that the counts do not depend on time.

use crate::raw;
use crate::raw::directory;
use std::process;
use std::sync::{Condvar, Mutex};
use std::thread;

/// Counts one case. Gets its number and a function that plays it and returns how many items went through.
pub(super) fn count(case: usize, play: impl FnOnce() -> u64) {
    directory::begin();
    let items = play();
    directory::end(case, items);
}

/// Makes a queue whose memory lies in counted regions.
pub(super) fn made<Q>(make: impl FnOnce() -> Q) -> Q {
    raw::apart(make)
}

/// Shows the directory what a thread does in `f`. The directory counts it or only remembers it.
fn seen<R>(thread: usize, counted: bool, f: impl FnOnce() -> R) -> R {
    /// Aborts if the thread panics: the others would wait for its turns for ever. The panic's message is out by then.
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

/// The order of turns. Turns are numbered, and thread `i` of `n` has the turns `i`, `i + n` and so on. The threads
/// synchronize here between their turns, where nothing is counted.
#[derive(Debug, Default)]
struct Turns {
    now: Mutex<u64>,
    changed: Condvar,
}

impl Turns {
    fn take<R>(&self, number: u64, f: impl FnOnce() -> R) -> R {
        let now = self.now.lock().expect("no panic with it locked");
        drop(self.changed.wait_while(now, |now| *now != number).expect("no panic with it locked"));
        // If the thread panics, the others would wait for its turns for ever. The panic's message is out by then.
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

/// How many rounds are played. Each thread has one turn a round. The first rounds warm up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(super) warm: u64,
    pub(super) counted: u64,
}

/// One turn of a thread, with its end of the queue. Returns how many items it took.
pub(super) type Actor<'a> = Box<dyn FnMut() -> u64 + Send + 'a>;

/// A thread that puts. Its end lies on lines of its own.
pub(super) fn puts<'a>(mut turn: impl FnMut() + Send + 'a) -> Actor<'a> {
    takes(move || {
        turn();
        0
    })
}

/// A thread that takes. Its end lies on lines of its own.
pub(super) fn takes<'a>(turn: impl FnMut() -> u64 + Send + 'a) -> Actor<'a> {
    made(|| Box::new(turn))
}

/// The actors play in turns, each in a thread of its own, in this order. Returns how many items were taken in the
/// counted turns.
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
    // An end outlives the last turn, so that no other thread sees the effects of its drop.
    thread::scope(|scope| {
        let play = &play;
        let actors = actors.iter_mut().enumerate();
        let threads: Vec<_> = actors.map(|(i, actor)| scope.spawn(move || play(i, actor))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a panic ends the process")).sum()
    })
}

/// Both actors run as fast as they can, as the papers measure. The counts then depend on time.
pub(super) fn at_once([mut putter, mut taker]: [Actor<'_>; 2]) -> u64 {
    thread::scope(|scope| {
        let putter = scope.spawn(|| seen(0, true, &mut putter));
        let taker = scope.spawn(|| seen(1, true, &mut taker));
        putter.join().expect("the thread that puts has not panicked");
        taker.join().expect("the thread that takes has not panicked")
    })
}
