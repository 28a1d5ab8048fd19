//! Closures of any type, stored in one type of fixed size: small closures in place, others in a box.
//!
//! The allocator is the largest cost of a task that one thread makes and another consumes: one thread takes the memory
//! and the other gives it back, so the cache lines of the allocator's lists travel as well. Most tasks capture one or
//! two references, so they need no memory of their own.
//!
//! # How it works
//!
//! 1. A closure of at most three words, aligned no stricter than a word, is moved into the words here. Any other
//!    closure is boxed, and the box is moved into them.
//! 2. Beside the words is the address of a table for the closure's type, with two functions: one calls the closure and
//!    one drops it.
//!
//! # Why this is sound
//!
//! - The words hold a whole `F` from `new` until `call` or `drop`. Both consume it: after `call` the rest is forgotten.
//! - The table is the one that `new` made for that `F`, and nothing changes it.
//! - Only closures that are `Send` and live at least for `'a` come in. A closure cannot be called by reference, so
//!   threads share nothing, and `Sync` is not needed.

use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr;

/// Words for a closure's captures. With the table's address they fill half a cache line.
type Words = MaybeUninit<[usize; 3]>;

/// The functions for closures of one type.
struct Table {
    /// Moves the closure out of the words and calls it.
    call: unsafe fn(*mut Words),
    /// Drops the closure in the words.
    drop: unsafe fn(*mut Words),
}

/// `FnOnce() + Send + 'a`, whatever its type.
pub(crate) struct Closure<'a> {
    words: Words,
    table: &'static Table,
    // Not `Sync`, because the closure inside may not be. Invariant in `'a`, because no caller needs more.
    kind: PhantomData<*mut dyn FnOnce(&'a ())>,
}

// SAFETY: `new` takes only closures that are.
unsafe impl Send for Closure<'_> {}

impl<'a> Closure<'a> {
    #[inline]
    pub(crate) fn new<F: FnOnce() + Send + 'a>(closure: F) -> Self {
        if fits::<F>() { Self::place(closure) } else { Self::place(Box::new(closure)) }
    }

    #[inline]
    fn place<F: FnOnce() + Send + 'a>(closure: F) -> Self {
        const { assert!(fits::<Box<[u128; 64]>>(), "a box is a word") };
        assert!(fits::<F>(), "checked by the caller");
        let mut words = Words::uninit();
        // SAFETY: it fits, in size and alignment.
        unsafe { words.as_mut_ptr().cast::<F>().write(closure) };
        Self { words, table: Of::<F>::TABLE, kind: PhantomData }
    }

    #[inline]
    pub(crate) fn call(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the table belongs to the closure in the words. That closure is consumed here, and only here, because
        // `this` is never dropped.
        unsafe { (this.table.call)(&raw mut this.words) };
    }
}

impl Drop for Closure<'_> {
    fn drop(&mut self) {
        // SAFETY: the table belongs to the closure in the words. The closure was not called: `call` forgets the whole
        // value.
        unsafe { (self.table.drop)(&raw mut self.words) };
    }
}

const fn fits<F>() -> bool {
    size_of::<F>() <= size_of::<Words>() && align_of::<F>() <= align_of::<Words>()
}

/// A place for the table of a type.
struct Of<F>(PhantomData<F>);

impl<F: FnOnce()> Of<F> {
    const TABLE: &'static Table = &Table {
        // SAFETY: by the field's contract the words hold an `F`, which the caller gives up to this function.
        call: |words| unsafe { words.cast::<F>().read()() },
        // SAFETY: as above.
        drop: |words| unsafe { ptr::drop_in_place(words.cast::<F>()) },
    };
}

#[cfg(all(test, not(any(corelane_loom, corelane_shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fmt;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Counts its drops.
    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn a_closure_is_half_a_line() {
        assert_eq!(size_of::<Closure<'_>>(), 4 * size_of::<usize>());
    }

    /// Called, dropped and panicking, with captures of the size of `rest` and a word.
    fn captures_are_dropped_once<R: Copy + Send + PartialEq + fmt::Debug + 'static>(rest: R) {
        let drops = Arc::new(AtomicUsize::new(0));
        let calls = Arc::new(AtomicUsize::new(0));
        let make = |panics: bool| {
            let (counted, calls) = (Counted(drops.clone()), calls.clone());
            Closure::new(move || {
                let (_counted, seen) = (&counted, std::hint::black_box(rest));
                assert_eq!(seen, rest);
                calls.fetch_add(1, Relaxed);
                assert!(!panics, "on purpose");
            })
        };
        make(false).call();
        assert_eq!((calls.load(Relaxed), drops.load(Relaxed)), (1, 1));
        drop(make(false));
        assert_eq!((calls.load(Relaxed), drops.load(Relaxed)), (1, 2));
        let closure = make(true);
        catch_unwind(AssertUnwindSafe(|| closure.call())).expect_err("it panics");
        assert_eq!((calls.load(Relaxed), drops.load(Relaxed)), (2, 3));
        let closure = make(false);
        std::thread::spawn(move || closure.call()).join().expect("it does not panic");
        assert_eq!((calls.load(Relaxed), drops.load(Relaxed)), (3, 4));
        assert_eq!(Arc::strong_count(&drops), 1);
    }

    #[test]
    fn captures_of_every_size_are_dropped_once() {
        captures_are_dropped_once(());
        captures_are_dropped_once(1_u8);
        captures_are_dropped_once([7_usize; 1]);
        captures_are_dropped_once([7_usize; 2]);
        captures_are_dropped_once([7_usize; 100]);
    }

    #[test]
    fn captures_that_are_aligned_find_their_place() {
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[repr(align(64))]
        struct Line(u64);

        captures_are_dropped_once(Line(5));
        let line = Line(9);
        Closure::new(move || assert_eq!(&raw const line as usize % 64, 0)).call();
    }

    #[test]
    fn a_closure_may_borrow() {
        let seen = Cell::new(0);
        let mut text = String::new();
        let other = &mut text;
        Closure::new(move || other.push('x')).call();
        seen.set(text.len());
        assert_eq!(seen.get(), 1);
    }

    /// No words, and no memory.
    #[test]
    fn a_closure_without_captures_is_called() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        Closure::new(|| {
            CALLS.fetch_add(1, Relaxed);
        })
        .call();
        assert_eq!(CALLS.load(Relaxed), 1);
    }
}
