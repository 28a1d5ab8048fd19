//! The consumer's half: where it stands in its segment, and what it lends.

#[cfg(corelane_loom)]
use super::body::UNWRITTEN;
use super::body::{Body, EMPTY, Word, header, position, words};
use crate::mem::segments::Segment;
use crate::spsc::design::Shared;
use crate::sync::{Acquire, Arc};

/// The consumer's half.
pub(super) struct Rx {
    /// The header of the next message, if there is one.
    pub(super) at: *mut Word,
    /// From here on something has to be done before a header is read: the position to be published, or nothing more to
    /// be popped.
    pub(super) stop: *mut Word,
    /// Loom's words do not lie side by side, so what is lent is a copy.
    #[cfg(corelane_loom)]
    pub(super) lent: alloc::vec::Vec<alloc::boxed::Box<[u8]>>,
    pub(super) shared: Arc<Shared<Body>>,
}

// SAFETY: as for the producer's half.
unsafe impl Send for Rx {}

impl Rx {
    fn segment(&self) -> *mut Segment {
        // SAFETY: only the consumer reaches this.
        self.shared.body.reader.with(|reader| unsafe { (*reader).segment })
    }

    pub(super) fn position(&self) -> usize {
        position(self.segment(), self.at)
    }

    /// The header of the next message; 0 if there is none.
    #[inline(always)]
    pub(super) fn next(&mut self) -> usize {
        if self.at >= self.stop && self.is_over() {
            return EMPTY;
        }
        // SAFETY: where this side stands there is a header.
        let found = unsafe { header(self.at) }.load(Acquire);
        #[cfg(corelane_loom)]
        assert_ne!(found, UNWRITTEN, "a header was read before it was written");
        if found as isize > 0 { found } else { self.follow(found) }
    }

    /// Called at `stop`: true if nothing behind it may be popped.
    #[inline(always)]
    pub(super) fn is_over(&mut self) -> bool {
        let (over, stop) = self.shared.stopped(self.at);
        self.stop = stop;
        over
    }

    /// Called where no message is: goes on to the next segment, or says so.
    #[inline(always)]
    fn follow(&mut self, found: usize) -> usize {
        let (found, at, stop) = self.shared.follow(found, self.at);
        self.at = at;
        self.stop = stop;
        found
    }

    /// Steps over the message with this header, and lends its bytes.
    #[inline(always)]
    pub(super) fn take(&mut self, found: usize) -> &[u8] {
        let message = self.at;
        self.at = message.wrapping_add(words(found - 1));
        // SAFETY: the header was found there, and the segment stays until this side looks for the next message.
        unsafe { self.lend(message, found - 1) }
    }

    /// # Safety
    /// A message of this length was published there, in the segment this side is in.
    #[inline(always)]
    pub(super) unsafe fn lend(&mut self, message: *mut Word, len: usize) -> &[u8] {
        #[cfg(not(corelane_loom))]
        crate::sync::reads(message.wrapping_add(1).cast::<u8>(), len);
        #[cfg(not(corelane_loom))]
        // SAFETY: its bytes lie behind its header, initialised, and no thread writes there before the segment is given
        // back.
        unsafe {
            core::slice::from_raw_parts(message.add(1).cast::<u8>(), len)
        }
        #[cfg(corelane_loom)]
        {
            let mut bytes = alloc::vec::Vec::new();
            for i in 1..words(len) {
                // SAFETY: the caller's.
                unsafe { (*message.add(i)).bytes.with(|word| bytes.extend_from_slice(&*word)) };
            }
            bytes.truncate(len);
            self.lent.push(bytes.into());
            self.lent.last().expect("just pushed")
        }
    }

    /// The position behind the last message that may be popped.
    pub(super) fn end(&self) -> usize {
        // SAFETY: only the consumer reaches this.
        let sealed = self.shared.body.reader.with(|reader| unsafe { (*reader).sealed });
        sealed.unwrap_or_else(|| self.shared.body.published_end(self.segment(), self.at))
    }

    pub(super) fn seal(&mut self) -> usize {
        let end = self.shared.body.published_end(self.segment(), self.at);
        // SAFETY: only the consumer reaches this.
        self.stop = self.shared.body.reader.with_mut(|reader| unsafe {
            (*reader).sealed = Some(end);
            self.shared.body.stop(&*reader)
        });
        end
    }
}
