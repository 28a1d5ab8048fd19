//! Items on their way out of a vector.

use alloc::vec::Vec;

/// A vector whose first items are being moved into a queue. When it is dropped the rest moves up: what was not pushed
/// is left in the vector, also where a user's wait strategy panics in between.
pub(crate) struct Moving<'a, T> {
    items: &'a mut Vec<T>,
    len: usize,
    pub(crate) moved: usize,
}

impl<'a, T> Moving<'a, T> {
    pub(crate) fn new(items: &'a mut Vec<T>) -> Self {
        let len = items.len();
        // SAFETY: fewer than there are. The items are this one's until it gives them back.
        unsafe { items.set_len(0) };
        Self { items, len, moved: 0 }
    }

    /// Where the items lie that were not moved, and how many.
    pub(crate) fn rest(&self) -> (*const T, usize) {
        // SAFETY: `moved` is at most `len`.
        (unsafe { self.items.as_ptr().add(self.moved) }, self.len - self.moved)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.moved == self.len
    }
}

impl<T> Drop for Moving<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let (from, count) = self.rest();
        if count > 0 {
            // SAFETY: so many items lie there, inside the vector's memory, and none was taken.
            unsafe {
                self.items.as_mut_ptr().copy_from(from, count);
                self.items.set_len(count);
            }
        }
    }
}
