//! Queues between one producer and one consumer.

/// The names every design's module offers, for its own type parameter.
macro_rules! aliases {
    ($design:ident) => {
        /// The sending end.
        pub type Producer<T, W = crate::wait::DefaultStrategy> = crate::spsc::Producer<T, $design, W>;
        /// The receiving end.
        pub type Consumer<T, W = crate::wait::DefaultStrategy> = crate::spsc::Consumer<T, $design, W>;

        /// Makes a queue for `capacity` items with the design's defaults.
        ///
        /// # Panics
        /// Where [`try_channel`] returns an error.
        #[track_caller]
        pub fn channel<T: Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
            try_channel(capacity).unwrap_or_else(|error| panic!("{error}"))
        }

        /// Makes a queue for `capacity` items with the design's defaults.
        ///
        /// # Errors
        /// A capacity of 0 or beyond what the indices hold, or no memory.
        pub fn try_channel<T: Send>(capacity: usize) -> Result<(Producer<T>, Consumer<T>), crate::error::ChannelError> {
            channel_with(capacity, crate::spsc::Options::default())
        }

        /// Makes a queue for `capacity` items.
        ///
        /// # Errors
        /// As [`try_channel`], and where the options contradict the capacity.
        pub fn channel_with<T: Send, W: crate::wait::Strategy>(
            capacity: usize,
            options: crate::spsc::Options<<$design as crate::spsc::Design<T>>::Tuning, W>,
        ) -> Result<(Producer<T, W>, Consumer<T, W>), crate::error::ChannelError> {
            crate::spsc::channel_with(capacity, options)
        }
    };
}
use aliases;

mod buffer;
mod control;
mod design;
mod handle;
mod slots;

pub mod bqueue;
pub mod lamport;
pub mod lane;
pub mod mcring;

pub use bqueue::BQueue;
pub use design::Design;
pub use handle::{Consumer, Options, Peeked, Producer, Reserved, channel_with};
pub use lamport::Lamport;
pub use lane::{Lane, channel, try_channel};
pub use mcring::McRing;

#[cfg(test)]
mod tests {
    use super::*;

    fn smoke<D: Design<u64>>() {
        for capacity in [1, 2, 3, 7, 63, 64, 100, 2000] {
            let (mut tx, mut rx) = channel_with::<u64, D, crate::wait::Adaptive>(
                capacity,
                Options::<()>::default().tuning(D::Tuning::default()).start_at(usize::MAX - 3),
            )
            .unwrap();
            let mut next = 0;
            for lap in 0..5 {
                let mut n = 0;
                while tx.try_push(next + n).is_ok() {
                    n += 1;
                }
                assert_eq!(n as usize, capacity, "lap {lap}");
                assert_eq!(rx.len(), capacity);
                for i in 0..n {
                    assert_eq!(rx.try_pop(), Ok(next + i));
                }
                assert!(rx.try_pop().is_err());
                next += n;
            }
            let t = std::thread::spawn(move || {
                for i in 0..300_000 {
                    tx.push(i).unwrap();
                }
            });
            for i in 0..300_000 {
                assert_eq!(rx.pop(), Ok(i));
            }
            assert!(rx.pop().is_err());
            t.join().unwrap();
        }
    }

    #[test]
    fn smoke_all() {
        smoke::<Lane>();
        smoke::<Lamport>();
        smoke::<McRing>();
        smoke::<BQueue>();
    }
}
