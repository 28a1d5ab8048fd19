//! The safe designs of this library as a user gets them, with default options and the default wait strategy.

use crate::contender::{Batches, Kind, Pair, Unable, Waits};
use crate::item::Item;
use corelane::spsc::{self, Consumer, Design, Options, Producer, lane};
use std::sync::Mutex;

macro_rules! design {
    ($(#[$doc:meta])* $name:ident, $label:literal, $design:ty) => {
        design!($(#[$doc])* $name, $label, $design, <$design as Design<T>>::Tuning::default());
    };
    ($(#[$doc:meta])* $name:ident, $label:literal, $design:ty, $tuning:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl<T: Item> Pair<T> for $name {
            const KIND: Kind = Kind::Corelane;
            type Tx = Producer<T, $design>;
            type Rx = Consumer<T, $design>;

            fn name() -> String {
                $label.to_owned()
            }

            fn pair(capacity: usize) -> Result<(Self::Tx, Self::Rx), Unable> {
                let options = Options::new().tuning($tuning);
                spsc::any_channel(capacity, options).map_err(|error| Unable::because(error.to_string()))
            }

            #[inline(always)]
            fn try_push(tx: &mut Self::Tx, item: T) -> bool {
                tx.try_push(item).is_ok()
            }

            #[inline(always)]
            fn try_pop(rx: &mut Self::Rx) -> Option<T> {
                rx.try_pop().ok()
            }
        }

        impl<T: Item> Batches<T> for $name {
            #[inline(always)]
            fn push_slice(tx: &mut Self::Tx, items: &[T]) -> usize {
                tx.try_push_slice(items).unwrap_or(0)
            }

            #[inline(always)]
            fn pop_slice(rx: &mut Self::Rx, items: &mut [T]) -> usize {
                rx.try_pop_slice(items).unwrap_or(0)
            }
        }

        impl<T: Item> Waits<T> for $name {
            #[inline(always)]
            fn push(tx: &mut Self::Tx, item: T) -> bool {
                tx.push(item).is_ok()
            }

            #[inline(always)]
            fn pop(rx: &mut Self::Rx) -> Option<T> {
                rx.pop().ok()
            }
        }
    };
}

design!(
    /// The flagship.
    Lane,
    "lane",
    spsc::Lane
);
design!(
    /// The same with the policy that was asked for.
    LaneTuned,
    "lane, tuned",
    spsc::Lane,
    *TUNING.lock().expect("no thread panics with a tuning")
);

/// The policy of the lanes that are made next, if it is not the default.
static TUNING: Mutex<lane::Tuning> = Mutex::new(lane::Tuning::new());

impl LaneTuned {
    /// Sets the policy of the lanes that are made from now on.
    pub(crate) fn tuning(tuning: lane::Tuning) {
        *TUNING.lock().expect("no thread panics with a tuning") = tuning;
    }
}

design!(
    /// B-Queue made safe.
    BQueue,
    "bqueue",
    spsc::BQueue
);
design!(
    /// MCRingBuffer made safe.
    McRing,
    "mcring",
    spsc::McRing
);
design!(
    /// Lamport's ring with an index a cache line.
    Lamport,
    "lamport",
    spsc::Lamport
);
design!(
    /// Multi-line update made safe.
    MultiLine,
    "multiline",
    spsc::MultiLine
);
design!(
    /// A ring behind a spin lock.
    Locked,
    "locked",
    spsc::Locked
);
design!(
    /// FastForward made safe.
    SafeFastForward,
    "fastforward",
    spsc::FastForward
);
design!(
    /// The lane without a bound.
    Linked,
    "linked",
    spsc::Linked
);
