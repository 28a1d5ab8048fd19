//! Items on their way out of a vector.

use alloc::vec::Vec;

/// A vector whose first items are being moved into a queue. When it is dropped the rest moves up: what was not pushed
/// is left in the vector, also where a user's wait strategy panics in between.
#[doc(hidden)]
#[derive(Debug)]
#[allow(unreachable_pub, reason = "not every machine has the family that shows it")]
pub struct Moving<'a, T> {
    /// Items `moved .. count` are still here. The vector itself knows of none meanwhile.
    items: &'a mut Vec<T>,
    count: usize,
    pub(crate) moved: usize,
}

impl<'a, T> Moving<'a, T> {
    pub(crate) fn new(items: &'a mut Vec<T>) -> Self {
        let count = items.len();
        // SAFETY: fewer than there are. The items are this one's until it gives them back.
        unsafe { items.set_len(0) };
        Self { items, count, moved: 0 }
    }

    /// How many are left.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.count - self.moved
    }

    pub(crate) fn is_over(&self) -> bool {
        self.moved == self.count
    }

    /// Where the items lay, those that were moved too, and how many.
    pub(crate) fn all(&self) -> (*const T, usize) {
        (self.items.as_ptr(), self.count)
    }

    /// Where the items lie that were not moved, and how many.
    pub(crate) fn rest(&self) -> (*const T, usize) {
        // SAFETY: `moved` is at most `count`.
        (unsafe { self.items.as_ptr().add(self.moved) }, self.len())
    }

    /// Moves the first item out.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<T> {
        if self.is_over() {
            return None;
        }
        // SAFETY: an item that was not moved yet; the position moves on, so that it is moved out once.
        let item = unsafe { self.rest().0.read() };
        self.moved += 1;
        Some(item)
    }

    /// Takes the last `n` calls of [`next`](Self::next) back.
    ///
    /// # Safety
    /// There were so many, and their items are forgotten.
    pub(crate) unsafe fn restore(&mut self, n: usize) {
        self.moved -= n;
    }
}

impl<T> Drop for Moving<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let (from, count) = self.rest();
        // SAFETY: so many items lie there, inside the vector's memory, and none was taken.
        unsafe {
            if self.moved != 0 && count != 0 {
                self.items.as_mut_ptr().copy_from(from, count);
            }
            self.items.set_len(count);
        }
    }
}
