//! No design of `corelane::spsc` hangs where published ones do, by its `try_` calls: two of them in a ring.
//! `corelane-papers` has the same for the published ones.
#![cfg(not(any(corelane_loom, corelane_shuttle)))]

#[macro_use]
#[path = "support/designs.rs"]
mod designs;
#[path = "support/two_queues.rs"]
#[expect(dead_code, reason = "nothing hangs here")]
mod two_queues;
#[path = "support/watchdog.rs"]
mod watchdog;

use corelane::spsc::{self, Consumer, Design, Options, Producer};
use corelane::wait::Spin;
use two_queues::{BATCH, Dequeue, Enqueue, SLOTS, Word, never_hangs};

impl<D: Design<Word>> Enqueue for Producer<Word, D, Spin> {
    fn enqueue(&mut self, item: Word) -> Result<(), Word> {
        self.try_push(item).map_err(|error| error.into_inner())
    }
}

impl<D: Design<Word>> Dequeue for Consumer<Word, D, Spin> {
    fn dequeue(&mut self) -> Option<Word> {
        self.try_pop().ok()
    }
}

fn design_never_hangs<D: Design<Word>>(tuning: D::Tuning) {
    never_hangs(|| {
        let options = Options::new().tuning(tuning.clone()).wait(Spin);
        spsc::any_channel::<Word, D, _, _>(SLOTS, options).unwrap()
    });
}

/// With the batches that hang as printed.
#[test]
fn no_safe_design_hangs() {
    macro_rules! never_hangs {
        (mcring, $design:ident, $flags:tt) => {
            design_never_hangs::<spsc::$design>(spsc::mcring::Tuning::new().batch(BATCH));
        };
        (bqueue, $design:ident, $flags:tt) => {
            design_never_hangs::<spsc::$design>(spsc::bqueue::Tuning::new().batch_size(BATCH));
        };
        ($name:ident, $design:ident, $flags:tt) => {
            design_never_hangs::<spsc::$design>(Default::default());
        };
    }
    designs!(never_hangs);
}
