//! The items: numbered, and of any size.

use crate::contenders::{Rx, Tx};
use crate::measure::{Made, Slices, Streams, Words};
use std::hint::black_box;
use std::rc::Rc;

/// An item that carries a number, so that the receiving end can check order and loss.
pub(crate) trait Item: Copy + Default + Send + Sync + 'static {
    /// Size in bytes.
    const BYTES: usize;
    /// A stock from which items are made, made itself before the measurement.
    type Stock: Send + 'static;

    /// A new stock.
    fn stock() -> Self::Stock;

    /// The item of this number.
    fn numbered(stock: &Self::Stock, number: u64) -> Self;

    /// The number that the item contains.
    fn says(&self) -> u64;

    /// The value that the item of this number must contain.
    fn due(number: u64) -> u64;

    /// What is measured with items of one word only.
    fn words<X: Tx<Self>, R: Rx<Self>>(_: &Rc<Made<X, R>>) -> Option<Rc<dyn Words>> {
        None
    }

    /// The same of a queue whose calls wait.
    fn streams<X: Tx<Self>, R: Rx<Self>>(_: Made<X, R>) -> Option<Rc<dyn Streams>> {
        None
    }

    /// The same of a queue's calls with slices.
    fn slices<X, R, F, G>(_: Made<(X, F), (R, G)>) -> Option<Rc<dyn Slices>>
    where
        X: Send + 'static,
        R: Send + 'static,
        F: Fn(&mut X, &[Self]) -> usize + Send + 'static,
        G: Fn(&mut R, &mut [Self]) -> usize + Send + 'static,
    {
        None
    }
}

/// The smallest item. It travels in registers on both sides.
impl Item for u64 {
    const BYTES: usize = 8;
    type Stock = ();

    fn stock() -> Self::Stock {}

    #[inline(always)]
    fn numbered(&(): &Self::Stock, number: u64) -> Self {
        number
    }

    #[inline(always)]
    fn says(&self) -> u64 {
        *self
    }

    #[inline(always)]
    fn due(number: u64) -> u64 {
        number
    }

    fn words<X: Tx<u64>, R: Rx<u64>>(made: &Rc<Made<X, R>>) -> Option<Rc<dyn Words>> {
        Some(made.clone())
    }

    fn streams<X: Tx<u64>, R: Rx<u64>>(made: Made<X, R>) -> Option<Rc<dyn Streams>> {
        Some(Rc::new(made))
    }

    fn slices<X, R, F, G>(made: Made<(X, F), (R, G)>) -> Option<Rc<dyn Slices>>
    where
        X: Send + 'static,
        R: Send + 'static,
        F: Fn(&mut X, &[u64]) -> usize + Send + 'static,
        G: Fn(&mut R, &mut [u64]) -> usize + Send + 'static,
    {
        Some(Rc::new(made))
    }
}

/// The number of blocks in stock. Block numbers repeat, but a lost or swapped item still shows.
const STOCK: usize = 8;

/// An item of `WORDS` words.
///
/// Blocks are made beforehand, because a processor cannot forward several small stores to one wide load: a block
/// written just before its copy would delay the copy. Both ends pass a block through `black_box`. So a contender copies
/// all of it in and out, however much of its code the compiler can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block<const WORDS: usize>(pub(crate) [u64; WORDS]);

impl<const WORDS: usize> Default for Block<WORDS> {
    fn default() -> Self {
        Block([0; WORDS])
    }
}

impl<const WORDS: usize> Item for Block<WORDS> {
    const BYTES: usize = 8 * WORDS;
    type Stock = Box<[Self; STOCK]>;

    fn stock() -> Self::Stock {
        Box::new(std::array::from_fn(|number| Block([number as u64; WORDS])))
    }

    #[inline(always)]
    fn numbered(stock: &Self::Stock, number: u64) -> Self {
        *black_box(&stock[number as usize % STOCK])
    }

    #[inline(always)]
    fn says(&self) -> u64 {
        let Block(words) = black_box(self);
        // A torn item contains a value that no item has.
        if words[0] == words[WORDS - 1] { words[0] } else { u64::MAX }
    }

    #[inline(always)]
    fn due(number: u64) -> u64 {
        number % STOCK as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<T: Item>() {
        let stock = T::stock();
        for number in 0..100 {
            assert_eq!(T::numbered(&stock, number).says(), T::due(number));
            assert_ne!(T::numbered(&stock, number).says(), T::due(number + 1));
        }
        assert_eq!(T::BYTES, size_of::<T>());
    }

    #[test]
    fn an_item_says_its_number() {
        comes_back::<u64>();
        comes_back::<Block<2>>();
        comes_back::<Block<128>>();
        assert_eq!(Block([1, 2, 3]).says(), u64::MAX);
    }
}
