//! The items of an end, one after the other: the iterators of every family.

use core::iter::FusedIterator;

/// An end that waits for an item.
#[doc(hidden)]
pub trait Pops {
    type Item;

    /// The next item; `None` once the queue is closed and drained.
    fn next_item(&mut self) -> Option<Self::Item>;
}

impl<E: Pops> Pops for &mut E {
    type Item = E::Item;

    #[inline(always)]
    fn next_item(&mut self) -> Option<E::Item> {
        (**self).next_item()
    }
}

/// The items that an end pops, in order: of a queue, or the jobs of a worker. It waits for each, and ends once the
/// queue is closed and drained.
///
/// Each family names it for its own ends, as [`spsc::Iter`](crate::spsc::Iter) and
/// [`spsc::IntoIter`](crate::spsc::IntoIter).
///
/// ```
/// let (mut producer, consumer) = corelane::spsc::channel(4);
/// producer.push_slice(&[1, 2]).unwrap();
/// drop(producer);
/// let items: corelane::Items<_> = consumer.into_iter();
/// assert!(items.eq([1, 2]));
/// ```
#[derive(Debug)]
#[must_use = "an iterator pops nothing by itself"]
pub struct Items<E>(pub(crate) E);

impl<E: Pops> Iterator for Items<E> {
    type Item = E::Item;

    #[inline(always)]
    fn next(&mut self) -> Option<E::Item> {
        self.0.next_item()
    }
}

impl<E: Pops> FusedIterator for Items<E> {}
