//! The producer's half: where it stands in its segment, and how far it may go.

#[cfg(corelane_loom)]
use super::body::ALIGN;
use super::body::{Body, EMPTY, Word, distance, header, position, words};
use super::error::PushError;
use crate::end::Control;
use crate::spsc::design::Shared;
use crate::sync::{Acquire, Arc, Relaxed};

/// The producer's half.
pub(super) struct Tx {
    /// Where the next header goes. It holds `EMPTY`.
    pub(super) at: *mut Word,
    /// A message may be written if it ends here at the latest: the last word of the segment, which is kept for the
    /// header behind it, or less where the limit says so.
    pub(super) end: *mut Word,
    pub(super) shared: Arc<Shared<Body>>,
}

// SAFETY: the pointers point into segments that `shared` keeps alive.
unsafe impl Send for Tx {}

impl Tx {
    #[inline(always)]
    pub(super) fn control(&self) -> &Control {
        &self.shared.control
    }

    /// Words that were pushed since the queue was made, plus the start, wrapping.
    pub(super) fn position(&self) -> usize {
        // SAFETY: only the producer reaches this.
        position(self.shared.body.writer.with(|writer| unsafe { (*writer).segment }), self.at)
    }

    /// Words inside, at most.
    pub(super) fn inside(&self) -> usize {
        self.position().wrapping_sub(self.shared.body.consumed.load(Acquire))
    }

    /// True if a message of so many words can be written at once.
    #[inline(always)]
    pub(super) fn has_room(&self, need: usize) -> bool {
        distance(self.at, self.end) >= need
    }

    /// Looks for room where there seems to be none.
    #[inline(always)]
    pub(super) fn make_room(&mut self, need: usize) -> Result<(), PushError> {
        let (at, end, made) = self.shared.make_room(self.at, self.end, need);
        self.at = at;
        self.end = end;
        made
    }

    /// Where the next message's bytes go.
    #[cfg(not(corelane_loom))]
    #[inline(always)]
    pub(super) fn bytes(&self) -> *mut u8 {
        self.at.wrapping_add(1).cast()
    }

    /// Steps over a message that was written, and returns where its header goes. It is not published.
    ///
    /// # Safety
    /// There is room for a message of this length.
    #[inline(always)]
    pub(super) unsafe fn pass(&mut self, len: usize) -> *mut Word {
        let place = self.at;
        self.at = place.wrapping_add(words(len));
        // SAFETY: there is room, and always a word behind it.
        unsafe { header(self.at) }.store(EMPTY, Relaxed);
        place
    }

    /// Called after a publication that found the consumer's state; how many of the messages published last are refused.
    #[inline(always)]
    pub(super) fn handed_over(&mut self, state: u32, from: *mut Word) -> usize {
        let Some((refused, at)) = self.shared.handed_over(state, from, self.at) else { return 0 };
        self.at = at;
        // The consumer may still be looking for the last message, if this end has decided where that is.
        self.halt();
        refused
    }

    #[inline(always)]
    pub(super) fn halt(&mut self) {
        self.control().halt();
        self.end = self.at;
    }
}

/// The same length, of which the optimizer knows nothing.
///
/// A caller tries again with the same message. So the optimizer would compute before that loop what follows from the
/// length alone, and keep it on the stack. That makes up to five stores a message between those to the queue, and
/// halves the rate of short messages.
#[cfg(not(corelane_loom))]
#[inline(always)]
fn unknown(len: usize) -> usize {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut len = len;
        // SAFETY: no instruction at all.
        unsafe { core::arch::asm!("/* {0} */", inout(reg) len, options(nomem, nostack, preserves_flags)) };
        len
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    len
}

/// Copies a message into the queue.
///
/// # Safety
/// There is room for it.
#[inline(always)]
pub(super) unsafe fn copy_in(tx: &Tx, message: &[u8]) {
    let len = message.len();
    #[cfg(not(corelane_loom))]
    crate::sync::writes(tx.bytes(), len);
    #[cfg(not(corelane_loom))]
    // SAFETY: there is room for `len` bytes, rounded up to words; each piece lies inside the message.
    unsafe {
        let (from, to) = (message.as_ptr(), tx.bytes());
        // Overlapping pieces for short messages: a call costs more than the copy, and so does a branch on an
        // unpredictable length. Hence four words for all lengths up to 32, some of them the same.
        let len = unknown(len);
        match len {
            8..=32 => {
                let last = len - 8;
                let word = |at: usize| from.add(at).cast::<u64>().read_unaligned();
                let (b, c) = (last.min(8), last.min(16));
                let words = [word(0), word(b), word(c), word(last)];
                for (at, word) in [0, b, c, last].into_iter().zip(words) {
                    to.add(at).cast::<u64>().write_unaligned(word);
                }
            }
            4..8 => {
                let half = |at: usize| from.add(at).cast::<u32>().read_unaligned();
                let halves = [half(0), half(len - 4)];
                to.cast::<u32>().write_unaligned(halves[0]);
                to.add(len - 4).cast::<u32>().write_unaligned(halves[1]);
            }
            _ => to.copy_from_nonoverlapping(from, len),
        }
    }
    #[cfg(corelane_loom)]
    for (i, piece) in message.chunks(ALIGN).enumerate() {
        // SAFETY: there is room for so many words.
        unsafe { (*tx.at.add(1 + i)).bytes.with_mut(|bytes| (&mut *bytes)[..piece.len()].copy_from_slice(piece)) };
    }
    let _ = len;
}
